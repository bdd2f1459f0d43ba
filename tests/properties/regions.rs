//! Random regions: the same bits from the interpreter on the naive nest, after every pass, and from native code at
//! every width and under random schedules, also over the memory of inputs; the terms of the naive nest after every pass;
//! and results that the reference allows.

use cranefold::ir::Nest;
use cranefold::ir::eval::Terms;
use cranefold::ir::work::visits;
use cranefold::lower::program::Program;
use cranefold::schedule::{Bounds, Decided, choose};
use cranefold::{Compiler, Options, Problem, Scalar, Schedule, Spec, Vectors, lower, pipeline};
use cranefold_fuzz::bits::{are_equal, difference, native, only_elements_are_written};
use cranefold_fuzz::data::{Buffer, Random};
use cranefold_fuzz::execute::{Memory, places, replaced};
use cranefold_fuzz::regions::RegionCase;
use cranefold_reference as reference;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::LazyLock;

static COMPILER: LazyLock<Compiler> =
    LazyLock::new(|| Compiler::builder().most_kernels(64).build().expect("this machine"));

fn cases(most_elements: u64) -> impl Strategy<Value = RegionCase> {
    prop::collection::vec(any::<u8>(), RegionCase::BYTES).prop_map(move |bytes| RegionCase::of(&bytes, most_elements))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn native_code_gives_the_bits_of_the_naive_nest(case in cases(3000)) {
        check_bits(&case)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn native_code_gives_the_bits_of_the_naive_nest_of_many_elements(case in cases(40_000)) {
        check_bits(&case)?;
    }
}

/// Schedules of many kinds that the problem takes.
fn schedules(problem: &Problem, seed: u64) -> Vec<Schedule> {
    let mut random = Random::new(seed);
    let mut schedules = vec![];
    for _ in 0..20 {
        let (width, jam) = (random.pick(&[128, 256, 512]), 1 + random.below(4));
        let folds = random.below(4) == 0;
        // Blocks of outputs that fold together are not in flight together.
        let in_flight = if folds { 1 } else { 1 + random.below(3) };
        let mut text = format!("width={width} jam={jam} in_flight={in_flight}");
        if random.below(2) == 0 {
            text += &format!(" interleave={}", 1 + random.below(3));
        }
        if folds {
            text += &format!(" tile=i{}:{}@folds", random.below(3), random.pick(&[8, 16, 32]));
        } else if random.below(2) == 0 {
            let across = if in_flight == 1 { random.pick(&["", "@across", "@rows"]) } else { "" };
            text += &format!(" tile=i{}:{}{across}", random.below(3), 1 + random.below(9));
        }
        if random.below(3) == 0 {
            text += " transpose=off";
        }
        let mut schedule: Schedule = text.parse().expect("a schedule");
        let write_first = Schedule { write_first: true, ..schedule.clone() };
        if random.below(2) == 0 && write_first.check(problem).is_ok() {
            schedule = write_first;
        }
        if schedule.check(problem).is_ok() {
            schedules.push(schedule);
        }
        if schedules.len() == 2 {
            break;
        }
    }
    schedules
}

fn check_bits(case: &RegionCase) -> Result<(), TestCaseError> {
    let spec = case.spec();
    let problem = Problem::of(&spec);
    let memory = Memory::of(&spec, case.kind, case.seed, case.offsets);
    let first = pipeline::checked("nest", lower::lower(&problem, "naive"));
    let naive = memory.interpreted(&first.map_err(|e| TestCaseError::fail(e.to_string()))?);
    only_elements_are_written(&spec, &memory, &naive).map_err(TestCaseError::fail)?;
    let widths = [0, 128, 256, 512].map(|width| Options { width: Some(width), ..Options::default() });
    let forced = schedules(&problem, case.seed).into_iter().map(|s| Options { schedule: Some(s), width: None });
    for options in widths.into_iter().chain(forced) {
        let outputs = native(&COMPILER, &spec, &memory, &options).map_err(TestCaseError::fail)?;
        prop_assert!(are_equal(&outputs, &naive), "{}", difference(&spec, &options, &naive, &outputs));
        check_in_place(case, &spec, &memory, &options)?;
    }
    Ok(())
}

/// Checks that outputs in the place of inputs have the bits that they have elsewhere.
fn check_in_place(case: &RegionCase, spec: &Spec, memory: &Memory, options: &Options) -> Result<(), TestCaseError> {
    let over = replaced(spec, case.seed);
    if over.iter().all(Option::is_none) {
        return Ok(());
    }
    let memory = memory.over(&over);
    let kernel = COMPILER.compile_with(spec, options).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let (elsewhere, found) = (memory.run(&kernel), memory.run_over(&kernel, &over));
    let message = || format!("{over:?} in place: {}", difference(spec, options, &elsewhere, &found));
    prop_assert!(are_equal(&found, &elsewhere), "{}", message());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_pass_changes_a_term_or_a_bit(bytes in prop::collection::vec(any::<u8>(), RegionCase::BYTES)) {
        let (case, naive) = interpreted_soon(&bytes);
        let spec = case.spec();
        let problem = Problem::of(&spec);
        let memory = Memory::of(&spec, case.kind, case.seed, case.offsets);
        let expected = memory.interpreted(&naive);
        // A value that is kept between visits is a definition of its own, whose name is part of a term; and the direct form
        // computes other terms than the plain one.
        let (mut known, mut seen): (HashMap<_, _>, Vec<Program>) = (HashMap::new(), vec![]);
        for schedule in schedules(&problem, case.seed).into_iter().chain([choose(&problem, 512)]) {
            let decided = Decided::of(problem.clone(), Some(&schedule), Bounds::new(Vectors::WIDEST));
            let decided = decided.map_err(|e| TestCaseError::fail(e.to_string()))?;
            for (stage, program) in pipeline::stages(&decided).map_err(|e| TestCaseError::fail(e.to_string()))? {
                if seen.contains(&program) {
                    continue;
                }
                let same = are_equal(&memory.interpreted_program(&program), &expected);
                prop_assert!(same, "other bits after {stage}, {schedule}\n{program}");
                if let [nest] = program.nests.as_slice() {
                    let terms = Terms::of(nest);
                    let known = known.entry((schedule.form, schedule.keep.clone())).or_insert_with(|| terms.clone());
                    prop_assert!(*known == terms, "other terms after {stage}, {schedule}\n{program}");
                }
                seen.push(program);
            }
        }
    }
}

/// The most visits of a naive nest whose every stage is interpreted: a tenth of a second for each kind of values.
const MOST_VISITS: u64 = 30_000;

/// The case of these bytes with as many elements as are soon interpreted, and its naive nest.
fn interpreted_soon(bytes: &[u8]) -> (RegionCase, Nest) {
    let mut most_elements = 1500;
    loop {
        let case = RegionCase::of(bytes, most_elements);
        let naive = lower::lower(&Problem::of(&case.spec()), "naive");
        if visits(&naive) <= MOST_VISITS || most_elements == 1 {
            return (case, naive);
        }
        most_elements = (most_elements / 2).max(1);
    }
}

#[test]
fn the_reference_allows_the_results() {
    let (unbounded, all) = (Cell::new(0u64), Cell::new(0u64));
    let config = ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() };
    let result = TestRunner::new(config).run(&cases(1000), |case| {
        let spec = case.spec();
        // Corners of types have unbounded results by right.
        let is_tame = matches!(case.kind, 3 | 4 | 7);
        let memory = Memory::of(&spec, case.kind, case.seed, case.offsets);
        let options = Options::default();
        let outputs = native(&COMPILER, &spec, &memory, &options).map_err(TestCaseError::fail)?;
        let (more, of) = check_allowed(&spec, &memory, &outputs).map_err(TestCaseError::fail)?;
        if is_tame {
            unbounded.set(unbounded.get() + more);
            all.set(all.get() + of);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    println!("{} of {} results of tame data have no bounds", unbounded.get(), all.get());
    assert!(unbounded.get() * 20 <= all.get(), "{} of {} results have no bounds", unbounded.get(), all.get());
}

/// Checks that the reference allows every element; returns the number of those that it cannot bound, and of all.
fn check_allowed(spec: &Spec, memory: &Memory, outputs: &[Buffer]) -> Result<(u64, u64), String> {
    let inputs: Vec<&[u8]> = memory.inputs.iter().map(Buffer::bytes).collect();
    let old: Vec<&[u8]> = memory.outputs.iter().map(Buffer::bytes).collect();
    let exact = reference::reduce_over(spec, &inputs, &old).map_err(|e| e.to_string())?;
    let (mut unbounded, mut all) = (0, 0);
    for (o, (exact, output)) in exact.iter().zip(outputs).enumerate() {
        for (place, exact) in places(spec, o).into_iter().zip(exact) {
            let got = Scalar::read(spec.outputs()[o].dtype(), output.bytes(), place);
            all += 1;
            unbounded += u64::from(!exact.is_bounded(spec));
            if let Err(mismatch) = reference::check(spec, exact, got) {
                return Err(format!("place {place} of output {o}: {mismatch}"));
            }
        }
    }
    Ok((unbounded, all))
}
