//! Parts of kernels: the same bits for any number, on any executor, and what is refused.
//!
//! `programs_*` compare the program of every schedule with the whole nest, in bits and in terms, so that a part that goes
//! wrong is told apart from code that does.

#[path = "shared/specs.rs"]
mod specs;

use cranefold::ir::eval::Terms;
use cranefold::lower::program::Program;
use cranefold::ops::ROWS;
use cranefold::problem::first_phase::FirstPhase;
use cranefold::problem::search_windows::Windows;
use cranefold::schedule::{Bounds, Decided, Divided, Parts, choose, choose_for};
use cranefold::{
    CallError, Compiler, Executor, Input, Kernel, Options, Output, Problem, Rayon, Schedule, Serial, Spec, Spinning,
    Vectors, lower, pipeline,
};
use cranefold_fuzz::data::Buffer;
use cranefold_fuzz::execute::{self, Memory};
use specs::SHARED;
use std::collections::HashMap;
use std::mem::MaybeUninit;

const COUNTS: [u64; 6] = [1, 2, 3, 5, 8, 64];

/// Beside [`SHARED`].
const SPECS: &[&str] = &[
    // One output of a few lanes, and more outputs than parts.
    "sum f32[333,17] axes=[1]",
    "sum f32[64,3,3] axes=[1,2]",
    // Several inputs and outputs, expressions, old elements.
    "sum f32[9000,3], f32[3]:then axes=[0] then=\"r0 + y0 + d\"",
    // Selections and slices.
    "median f32[9,501] axes=[1]",
    "quantile(q=0.3) f32[501,9] axes=[0]",
    "mode i16[9,501] axes=[1]",
    "softmax f32[38,129] axes=[1]",
    "softmax f32[129,38] axes=[0]",
    "softmax f32[9000]",
    "layer_norm(eps=1e-5) f32[9,768], f32[768], f32[768] axes=[1]",
    // Layouts: blocked with padding, cut into boxes, strided, backwards.
    "softmax f32[3,20,9,9]@aBcd16b axes=[1]",
    // Nothing to write, nothing to reduce.
    "sum f32[0,5] axes=[1]",
    "sum f32[]",
    "sum f32[5,6] axes=[] ",
];

fn spec(text: &str) -> Spec {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// A combiner whose order shows: the composition of affine maps.
fn composition(shape: &[u64], axes: &[i64]) -> Spec {
    let maps = cranefold::ops::Combiner::new("1, 0", "x0, x1", "a0*b0, a1*b0 + b1").expect("a combiner");
    let own = Spec::own(maps).input(cranefold::DType::F32, shape).input(cranefold::DType::F32, shape);
    own.axes(axes.to_vec()).build().expect("a spec")
}

fn specs() -> Vec<Spec> {
    let own = [composition(&[9000], &[0]), composition(&[700, 9], &[0]), composition(&[9, 700], &[1])];
    SHARED.iter().chain(SPECS).map(|text| spec(text)).chain(own).collect()
}

/// The schedules to force: the cost model's, in each number of parts, of outputs and of blocks where there are some.
fn schedules(problem: &Problem, width: u32) -> Vec<Schedule> {
    let chosen = choose(problem, width);
    let all = COUNTS.iter().flat_map(|&count| [Divided::Outputs, Divided::Blocks].map(|of| Parts { count, of }));
    let all = all.map(|parts| Schedule { parts, ..chosen.clone() });
    all.filter(|schedule| schedule.check(problem).is_ok()).collect()
}

fn terms(program: &Program, whole: &cranefold::ir::Nest, outputs: usize) -> Vec<Vec<Option<u128>>> {
    let mut terms = Terms::new(whole).with_states(program.states());
    program.interpret(&mut terms);
    terms.outputs.truncate(outputs);
    terms.outputs
}

fn same(a: &[Buffer], b: &[Buffer]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.bytes() == b.bytes())
}

/// Whether slices are searched where they are whole, and looked at twice where their blocks are shared out: the same element
/// is found by other operations.
fn is_searched(problem: &Problem) -> bool {
    problem.computation().is_some_and(|computation| Windows::of_computation(problem, &computation).is_some())
}

/// Checks the program of each schedule of parts against the whole nest, in bits and in terms. Returns the number of
/// programs whose parts have outputs of their own, and of those that finish the states of blocks.
fn check_parts(spec: &Spec) -> [usize; 2] {
    let mut split = [0, 0];
    let problem = Problem::of(spec);
    let form = choose(&problem, 512).form;
    let whole = lower::lower_share(&problem, form, "whole", &lower::Share::Whole);
    let mut expected: HashMap<Vec<String>, _> = HashMap::new();
    let memory = Memory::of(spec, 3, 7, (4, 8));
    let bits = memory.interpreted(&whole);
    for schedule in schedules(&problem, 512).into_iter().filter(|s| s.parts.count != 64) {
        // A value that is kept between visits is a definition of its own, whose name is part of a term.
        let keeping = |keep: &[String]| {
            let schedule = Schedule { form, keep: keep.to_vec(), ..Schedule::default() };
            lower::lower_as(&problem, &schedule, "whole", &lower::Share::Whole)
        };
        let kept = schedule.keep.clone();
        let expected = expected.entry(kept).or_insert_with_key(|keep| Terms::of(&keeping(keep)));
        let decided = Decided::of(problem.clone(), Some(&schedule), Bounds::new(Vectors::WIDEST));
        let stages = pipeline::stages(&decided.expect("a schedule that fits"));
        let stages = stages.unwrap_or_else(|e| panic!("{spec}: {schedule}: {e}"));
        for (stage, program) in [&stages[0], &stages[stages.len() - 1]] {
            let found = terms(program, &whole, spec.outputs().len());
            let is_divided = schedule.parts.of == Divided::Blocks && schedule.parts.count > 1;
            let other = is_searched(&problem) && is_divided;
            assert!(other || found == *expected, "{spec}: {schedule}: other terms after {stage}\n{program}");
            assert!(same(&memory.interpreted_program(program), &bits), "{spec}: {schedule}: other bits after {stage}");
            let again: Program = program.to_string().parse().unwrap_or_else(|e| panic!("{e}\n{program}"));
            assert!(again == *program, "{spec}: {schedule}: {stage} reads back as another\n{program}\n{again}");
        }
        let (_, program) = &stages[0];
        if program.parts.len() > 1 {
            split[usize::from(program.finish.is_some())] += 1;
        }
    }
    split
}

/// The law of the tree, part by part: what each stage of each program computes is what the whole nest does.
#[test]
fn programs_have_the_terms_and_bits_of_the_whole() {
    let mut split = [0, 0];
    for spec in specs() {
        let [outputs, blocks] = check_parts(&spec);
        split = [split[0] + outputs, split[1] + blocks];
    }
    assert!(split.iter().all(|&n| n > 50), "{split:?}");
}

/// A reduction that takes the lanes of another one's first phase has them of its own where the blocks are divided.
#[test]
fn lanes_of_two_reductions_are_those_of_each_in_parts() {
    let rows: Vec<_> = ROWS
        .iter()
        .filter(|row| !row.applies && !row.selects && row.params.iter().all(|p| p.default.is_some()))
        .collect();
    let pairs = rows.iter().flat_map(|a| rows.iter().map(move |b| format!("{}, {}", a.name, b.name)));
    // An expression that takes its element twice is no operation: the name of its definition is in terms.
    let pairs =
        pairs.flat_map(|ops| ["f32", "f64"].map(|dtype| format!("{ops} {dtype}[2,4097] axes=[1] map=\"x0 * x0 - 2\"")));
    let shares = |spec: &Spec| {
        let problem = Problem::of(spec);
        let known = problem.computation().and_then(|c| problem.first_phase_before(&c, 1));
        matches!(known, Some(FirstPhase::Lanes(_)))
    };
    let specs: Vec<Spec> = pairs.filter_map(|text| text.parse().ok()).filter(shares).collect();
    assert!(specs.len() > 20, "{} pairs", specs.len());
    assert!(specs.iter().all(|spec| check_parts(spec)[1] > 0));
}

fn call<R>(kernel: &Kernel, memory: &Memory, run: impl FnOnce(&[Input], &mut [Output]) -> R) -> (R, Vec<Buffer>) {
    let spec = kernel.spec().expect("a kernel of a spec");
    let mut outputs = memory.outputs.clone();
    let inputs: Vec<Input> =
        spec.inputs().iter().zip(&memory.inputs).map(|(o, b)| Input::from_bytes(o.dtype(), b.bytes())).collect();
    let places = spec.outputs().iter().zip(&mut outputs);
    let mut places: Vec<Output> = places.map(|(o, b)| Output::from_bytes(o.dtype(), b.bytes_mut())).collect();
    let result = run(&inputs, &mut places);
    drop(places);
    (result, outputs)
}

fn run_on(kernel: &Kernel, memory: &Memory, executor: &dyn Executor) -> Vec<Buffer> {
    let (result, outputs) = call(kernel, memory, |inputs, outputs| kernel.run_on(executor, inputs, outputs));
    result.unwrap_or_else(|e| panic!("{:?}: {e}", kernel.spec()));
    assert!(outputs.iter().all(Buffer::guards_hold), "{:?}: written outside of an output", kernel.spec());
    outputs
}

/// Runs parts in an order of its own, on the calling thread.
struct Ordered(fn(usize) -> Vec<usize>);

impl Executor for Ordered {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        (self.0)(parts).into_iter().for_each(part);
    }
}

/// A thread for each part.
struct Threads;

impl Executor for Threads {
    fn threads(&self) -> usize {
        64
    }

    fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| (0..parts).for_each(|n| drop(scope.spawn(move || part(n)))));
    }
}

fn shuffled(parts: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..parts).collect();
    order.sort_by_key(|&n| (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    order
}

#[test]
fn kernels_give_the_same_bits_in_any_number_of_parts_on_any_executor() {
    let compiler = Compiler::host().expect("this machine");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("threads");
    let spinning = Spinning::new(3).expect("threads");
    let executors: [&dyn Executor; 7] =
        [&Serial, &Rayon, &pool, &spinning, &Ordered(|parts| (0..parts).rev().collect()), &Ordered(shuffled), &Threads];
    let mut turn = 0;
    for spec in specs() {
        let problem = Problem::of(&spec);
        let memory = Memory::of(&spec, 3, 7, (4, 8));
        let expected = memory.interpreted(&lower::lower(&problem, "whole"));
        assert!(same(&memory.run(&compiler.compile(&spec).expect("a kernel")), &expected), "{spec}");
        for schedule in schedules(&problem, compiler.vectors().bits) {
            let options = Options { schedule: Some(schedule.clone()), width: None };
            let kernel = compiler.compile_with(&spec, &options).unwrap_or_else(|e| panic!("{spec}: {schedule}: {e}"));
            assert!(same(&memory.run(&kernel), &expected), "{spec}: {schedule}: run");
            // Each executor has its turn.
            for _ in 0..2 {
                turn += 1;
                let outputs = run_on(&kernel, &memory, executors[turn % executors.len()]);
                assert!(same(&outputs, &expected), "{spec}: {schedule}: executor {}", turn % executors.len());
            }
        }
    }
}

#[test]
fn padding_and_what_lies_between_elements_is_as_in_one_part() {
    let compiler = Compiler::host().expect("this machine");
    for text in ["sum f32[3,20,9,9]@aBcd16b axes=[2,3] keep_dims -> @aBcd16b", "softmax f32[3,20,9,9]@aBcd16b axes=[1]"]
    {
        let spec = spec(text);
        for count in COUNTS {
            let options = Options { schedule: Some(format!("parts={count}").parse().expect("parts")), width: None };
            let kernel = compiler.compile_with(&spec, &options).expect("a kernel");
            let memory = Memory::of(&spec, 0, 1, (0, 0));
            let outputs = run_on(&kernel, &memory, &Rayon);
            let size = spec.outputs()[0].dtype().bytes() as usize;
            let written = execute::is_written(&spec, 0).into_iter().zip(execute::is_element(&spec, 0));
            for (place, (written, element)) in written.enumerate() {
                let bytes = &outputs[0].bytes()[place * size..(place + 1) * size];
                assert!(!written || element || bytes == [0; 4], "{text}: {count} parts: place {place} is no zero");
            }
        }
    }
}

fn summing(parts: &str) -> (Kernel, Vec<f32>) {
    let options = Options { schedule: Some(parts.parse().expect("a schedule")), width: None };
    let kernel = Compiler::host().expect("this machine").compile_with(&spec("sum f32[40000]"), &options);
    (kernel.expect("a kernel"), (0..40000).map(|x| x as f32).collect())
}

#[test]
fn a_part_runs_once_and_all_have_to() {
    let (kernel, x) = summing("parts=4@blocks");
    let mut y = [0.0f32];
    let (inputs, mut outputs) = ([Input::from(&x[..])], [Output::from(&mut y[..])]);
    let message = |result: Result<(), CallError>| result.expect_err("a refusal").to_string();
    let parts = kernel.parts();
    let call = kernel.call(&inputs, &mut outputs).expect("a call");
    assert_eq!(call.parts(), parts);
    assert_eq!(call.run_part(0), Ok(()));
    assert_eq!(message(call.run_part(0)), format!("part 0 of {parts} has been run before"));
    assert_eq!(message(call.run_part(parts)), format!("part {parts} is out of range for {parts} parts"));
    assert_eq!(message(call.run_part(usize::MAX)), format!("part {} is out of range for {parts} parts", usize::MAX));
    assert_eq!(message(call.finish()), format!("part 1 of {parts} has not been run"));
    // Nothing is left of it.
    let call = kernel.call(&inputs, &mut outputs).expect("a call");
    (0..parts).for_each(|part| call.run_part(part).expect("a part"));
    call.finish().expect("all parts");
    let mut expected = [0.0f32];
    summing("width=0").0.run_one(&x, &mut expected).expect("one part");
    assert_eq!(y, expected);
}

#[test]
fn hostile_executors_make_an_error_and_no_more() {
    let (kernel, x) = summing("parts=4@blocks");
    let parts = kernel.parts();
    let message = |order: fn(usize) -> Vec<usize>| {
        let mut y = [0.0f32];
        let result = kernel.run_on(&Ordered(order), &[Input::from(&x[..])], &mut [Output::from(&mut y[..])]);
        result.expect_err("a refusal").to_string()
    };
    assert_eq!(message(|_| vec![]), format!("part 0 of {parts} has not been run"));
    assert_eq!(message(|parts| (0..parts - 1).collect()), format!("part {} of {parts} has not been run", parts - 1));
    assert_eq!(message(|_| vec![1, 1]), format!("part 1 of {parts} has been run before"));
    assert_eq!(message(|parts| (0..=parts).collect()), format!("part {parts} is out of range for {parts} parts"));
}

/// A panic on another thread reaches the caller as an error, and the kernel runs on.
#[test]
fn a_panic_of_an_executor_is_an_error() {
    struct Panics;
    impl Executor for Panics {
        fn threads(&self) -> usize {
            2
        }

        fn run(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
            Rayon.run(parts, &|n| {
                part(n);
                if n == 1 {
                    panic!("as it was told to");
                }
            });
        }
    }
    let (kernel, x) = summing("parts=4@blocks");
    let mut y = [0.0f32];
    let result = kernel.run_on(&Panics, &[Input::from(&x[..])], &mut [Output::from(&mut y[..])]);
    assert_eq!(result, Err(CallError::Executor { message: "as it was told to".into() }));
    kernel.run_on(&Rayon, &[Input::from(&x[..])], &mut [Output::from(&mut y[..])]).expect("all parts");
    let mut expected = [0.0f32];
    summing("width=0").0.run_one(&x, &mut expected).expect("one part");
    assert_eq!(y, expected);
}

#[repr(align(64))]
struct Lines([MaybeUninit<u8>; 1 << 16]);

#[test]
fn scratch_memory_of_the_caller_is_checked_and_used() {
    let (kernel, x) = summing("parts=4@blocks");
    let bytes = kernel.scratch_bytes() as usize;
    assert!(bytes > 0);
    let mut lines = Box::new(Lines([MaybeUninit::new(0xa5); 1 << 16]));
    let mut y = [0.0f32];
    let message = |memory: &mut [MaybeUninit<u8>], y: &mut [f32]| {
        let (inputs, mut outputs) = ([Input::from(&x[..])], [Output::from(y)]);
        kernel.call_in(&inputs, &mut outputs, memory).map(drop).expect_err("a refusal").to_string()
    };
    let short = format!("the scratch memory has {} bytes, the kernel takes {bytes}", bytes - 1);
    assert_eq!(message(&mut lines.0[..bytes - 1], &mut y), short);
    assert_eq!(message(&mut [], &mut y), format!("the scratch memory has 0 bytes, the kernel takes {bytes}"));
    let off = message(&mut lines.0[1..], &mut y);
    assert!(off.ends_with(", which is not aligned to 64 bytes"), "{off}");
    let (inputs, mut outputs) = ([Input::from(&x[..])], [Output::from(&mut y[..])]);
    let call = kernel.call_in(&inputs, &mut outputs, &mut lines.0[..bytes]).expect("a call");
    (0..call.parts()).for_each(|part| call.run_part(part).expect("a part"));
    call.finish().expect("all parts");
    let mut expected = [0.0f32];
    summing("width=0").0.run_one(&x, &mut expected).expect("one part");
    assert_eq!(y, expected);
    // A kernel of one part takes none.
    let (one, x) = summing("width=0");
    let (inputs, mut outputs) = ([Input::from(&x[..])], [Output::from(&mut y[..])]);
    let call = one.call_in(&inputs, &mut outputs, &mut []).expect("a call");
    assert_eq!(call.parts(), 1);
    call.run_part(0).expect("a part");
    call.finish().expect("all");
}

#[test]
fn a_call_with_wrong_buffers_is_refused_before_it_begins() {
    let (kernel, x) = summing("parts=4@blocks");
    let mut y = [7.0f32];
    let result = kernel.run_on(&Rayon, &[Input::from(&x[1..])], &mut [Output::from(&mut y[..])]);
    let message = "input 0 has 39999 elements, the kernel `sum f32[40000]` takes 40000";
    assert_eq!(result.expect_err("a refusal").to_string(), message);
    assert_eq!(y, [7.0]);
}

#[test]
fn what_cannot_be_shared_out_is_refused() {
    let text = |text: &str| text.parse::<Schedule>().expect_err("no schedule").to_string();
    assert_eq!(text("parts=0"), "parts=0 is outside 1 to 4096");
    assert_eq!(text("parts=4097@blocks"), "parts=4097 is outside 1 to 4096");
    assert_eq!(text("parts=2 parts=2"), "`parts` of the schedule is given twice");
    for of in ["softmax f32[9000]", "median f32[9000]", "sum f32[40]", "sum f32[5,6] axes=[] "] {
        let schedule: Schedule = "parts=2@blocks".parse().expect("a schedule");
        let error = schedule.check(&Problem::of(&spec(of))).expect_err("no blocks").to_string();
        assert!(error.starts_with("parts=2@blocks: only blocks of"), "{error}");
    }
    let schedule: Schedule = "parts=4096@blocks".parse().expect("a schedule");
    let error = schedule.check(&Problem::of(&spec("sum f32[300000,1000] axes=[0]"))).map_err(|e| e.to_string());
    assert_eq!(error, Ok(()));
    let error = schedule.check(&Problem::of(&spec("sum f32[300000,100000] axes=[0]"))).expect_err("too much");
    assert!(error.to_string().ends_with("bytes of states, above the limit of 268435456"), "{error}");
    let read: Schedule = "parts=8@blocks".parse().expect("a schedule");
    assert_eq!(read.to_string(), "width=128 jam=1 in_flight=1 parts=8@blocks");
}

/// What the cost model shares out, for two threads.
#[test]
fn small_work_stays_in_one_part() {
    for (text, parts) in [
        ("sum f32[1000]", "1"),
        ("sum f32[16384]", "1"),
        ("sum f32[16777216]", "8@blocks"),
        ("log_sum_exp f32[16777216]", "8@blocks"),
        ("sum f32[8,1024,4096] axes=[1]", "8"),
        ("sum f32[64,128,56,56] axes=[0,2,3]", "8"),
        ("mean f32[64,128,56,56] axes=[2,3]", "8"),
        ("sum f32[10000000,2] axes=[0]", "8@blocks"),
        ("softmax f32[4096,1024] axes=[1]", "8"),
        ("softmax f32[16777216]", "1"),
    ] {
        let problem = Problem::of(&spec(text));
        assert_eq!(choose_for(&problem, 256, 2).parts.to_string(), parts, "{text}");
        assert_eq!(choose_for(&problem, 256, 1), choose(&problem, 256), "{text}");
    }
}

#[test]
fn facts_and_dumps_say_the_parts() {
    let compiler = Compiler::builder().threads(2).build().expect("this machine");
    assert_eq!(compiler.threads(), 2);
    let one = compiler.compile(&spec("sum f32[1000]")).expect("a kernel").facts();
    assert_eq!((one.parts, one.divided, one.codes), (1, None, 1));
    let kernel = compiler.compile(&spec("sum f32[4194304]")).expect("a kernel");
    let facts = kernel.facts();
    assert_eq!((facts.parts, facts.divided), (kernel.parts() as u64, Some(Divided::Blocks)));
    assert!(facts.parts >= 8 && facts.codes < facts.parts, "parts share code: {facts:?}");
    assert_eq!(facts.code_bytes, kernel.code().len() as u64);
    let legal: Program = kernel.dump("prefetch").expect("a dump").parse().expect("a program");
    assert_eq!((legal.parts.len() as u64, legal.nests.len() as u64 + 1), (facts.parts, facts.codes));
    // A dump of assembly whose bytes are not those of the kernel is an error.
    let asm = kernel.dump("asm").expect("assembly");
    assert!(asm.contains("parts 0 1 ") && asm.contains("\nfinish:\n"), "{asm}");
    assert!(kernel.dump("clif").expect("clif").contains("\n; finish:\n"));
    assert!(kernel.dump("all").expect("a dump").contains("\nfinish\nnest "));
}
