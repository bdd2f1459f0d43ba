//! The first two laws, spot by spot: the spec alone decides the bits, whatever the schedule, the width
//! and the compilation; and what a dump shows is what ran.
//!
//! `tests/properties` tries the same on random specs; here every place a reduction dim can have is
//! met by a grid of schedules.

#[path = "laws/bytes.rs"]
mod bytes;
#[path = "laws/forms.rs"]
mod forms;
#[path = "laws/found.rs"]
mod found;
#[path = "laws/order.rs"]
mod order;
#[path = "laws/regions.rs"]
mod regions;
#[path = "laws/rows.rs"]
mod rows;
#[path = "laws/search.rs"]
mod search;

use cranefold::ir::eval;
use cranefold::passes::PASSES;
use cranefold::schedule::{Bounds, Decided, choose};
use cranefold::{Compiler, Input, Kernel, Options, Output, Problem, Scalar, Schedule, Spec, Vectors, pipeline};
use cranefold_fuzz::data::{Random, elements};

/// Where the reduction dim lies, with extents beside the boundaries of vectors, lanes and blocks.
const SHAPES: &[&str] = &[
    "[5,4161] axes=[1]",             // inner: 66 steps of 64 lanes, two blocks, the last step partial
    "[4161,5] axes=[0]",             // outer, tiny inside
    "[131,67] axes=[0]",             // outer: whole rows, three blocks
    "[70,1030] axes=[0]",            // outer, wide rows
    "[3,129,33] axes=[1]",           // middle
    "[7,9,11,13] axes=[0,2]",        // several, apart
    "[9,6,130] axes=[0,2]",          // outer and inner
    "[5,65,66] axes=[1,2]",          // several that merge
    "[3,5,4163] axes=[0,2]",         // several, apart, the inner one of several blocks, the last one shorter
    "[97,3] axes=[1]",               // tiny inner
    "[2,257] axes=[0]",              // tiny outer
    "[64,65]@ba axes=[0]",           // inner by its layout
    "[33,65]@(-70,1) axes=[0]",      // backwards, with gaps
    "[6,1,300]@(0,7,-2) axes=[0,2]", // repeated
    "[8449]",                        // all
    "[3,4163]@aB16b axes=[1]",       // inner, cut: whole blocks, then three elements
    "[131,71]@aB64b axes=[0]",       // outer, what is kept is cut
    "[70,35]@AB16b4a4b axes=[0]",    // both, in blocks in blocks
];

const OPS: &[(&str, &str)] = &[
    ("sum", "f32"),
    ("sum", "f64"),
    ("sum", "f16"),
    ("sum", "i8"),
    ("sum", "u8"),
    ("sum", "i64"),
    ("mean", "f32"),
    ("mean", "bf16"),
    ("mean", "i64"),
    ("max", "f16"),
    ("max", "f32"),
    ("max", "i8"),
    ("max", "i64"),
    ("min", "f64"),
    ("log_sum_exp", "f32"),
    ("log_sum_exp", "f64"),
    ("l2", "f32"),
    ("l2", "i64"),
    ("prod", "f32"),
    ("prod", "u8"),
    ("prod", "i64"),
    ("lp(p=2.5)", "f32"),
];

/// Schedules of every kind for a problem: each width, output loops tiled at and beside the lanes of a
/// vector, several jams, a tile in each box of slices. What a problem refuses is left out.
fn schedules(problem: &Problem) -> Vec<Schedule> {
    let widths =
        ["0 jam=3", "64", "128", "128 in_flight=4", "256 in_flight=2 jam=2", "512 in_flight=3", "1024 in_flight=16"];
    let widths = widths.into_iter().chain(["512 align=64", "512 in_flight=2 align=64 prefetch=256"]);
    let widths = widths.map(|rest| format!("width={rest}"));
    let mut texts: Vec<String> = widths.collect();
    let loops = problem.slices.iter().map(|slices| slices.dims.len()).sum::<usize>();
    for var in 0..loops {
        for (by, jam, width) in [(1, 1, 128), (3, 2, 0), (4, 7, 128), (16, 16, 256), (63, 3, 512), (1 << 20, 5, 1024)] {
            texts.push(format!("width={width} tile=i{var}:{by} jam={jam} in_flight={}", jam.min(4)));
        }
        texts.push(format!("width=128 tile=i{var}:3@blocks jam=2"));
        texts.push(format!("width=512 tile=i{var}:64@blocks"));
        texts.push(format!("width=256 tile=i{var}:2@runs interleave=2"));
        texts.push(format!("width=512 tile=i{var}:64@runs jam=3 align=64"));
        texts.push(format!("width=256 tile=i{var}:8@lanes jam=3"));
        for (by, width) in [(4, 256), (8, 256), (16, 512), (32, 512)] {
            texts.push(format!("width={width} tile=i{var}:{by}@folds"));
            texts.push(format!("width={width} tile=i{var}:{by}@lanes"));
            texts.push(format!("width={width} tile=i{var}:{by}@across"));
            texts.push(format!("width={width} tile=i{var}:{by}@rows"));
        }
    }
    if problem.slices.len() > 1 {
        let mut before = 0;
        let firsts = problem.slices.iter().filter(|slices| !slices.dims.is_empty()).map(|slices| {
            before += slices.dims.len();
            before - slices.dims.len()
        });
        let firsts: Vec<usize> = firsts.collect();
        for (by, other, rest) in [(1, 5, "width=0"), (4, 1 << 20, "width=128 jam=7"), (1 << 20, 3, "jam=2 in_flight=3")]
        {
            let tile = |(n, var): (usize, &usize)| format!(" tile=i{var}:{}", if n % 2 == 0 { by } else { other });
            let tiles: String = firsts.iter().enumerate().map(tile).collect();
            texts.push(format!("{rest}{tiles}"));
        }
    }
    let all = texts.iter().map(|text| text.parse::<Schedule>().expect("a schedule"));
    all.filter(|schedule| schedule.check(problem).is_ok()).collect()
}

fn run(kernel: &Kernel, spec: &Spec, input: &[u8]) -> Vec<u8> {
    let operand = &spec.outputs()[0];
    let mut output = vec![0xa5; operand.span_bytes() as usize];
    let inputs = [Input::from_bytes(spec.inputs()[0].dtype(), input)];
    kernel.run(&inputs, &mut [Output::from_bytes(operand.dtype(), &mut output)]).expect("the right buffers");
    output
}

fn host() -> Compiler {
    Compiler::host().expect("this machine")
}

#[test]
fn no_schedule_changes_a_bit() {
    let compiler = host();
    let mut tried = 0;
    for (op, dtype) in OPS {
        for shape in SHAPES {
            let spec: Spec = format!("{op} {dtype}{shape}").parse().expect("a spec");
            let problem = Problem::of(&spec);
            let operand = &spec.inputs()[0];
            let schedules = schedules(&problem);
            for kind in [3, 5] {
                let input = elements(operand.dtype(), operand.span_elems() as usize, kind, 7 * tried + 1);
                let chosen = run(&compiler.compile(&spec).expect("a kernel"), &spec, &input);
                for schedule in &schedules {
                    let options = Options { schedule: Some(schedule.clone()), width: None };
                    let kernel = compiler.compile_with(&spec, &options).expect("a kernel");
                    assert!(
                        run(&kernel, &spec, &input) == chosen,
                        "{spec}, {schedule}, data {kind} of {}",
                        7 * tried + 1
                    );
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 5000, "{tried} schedules");
}

#[test]
fn the_choice_of_a_schedule_keeps_to_the_width_and_changes_no_bit() {
    let compiler = host();
    for (op, dtype) in OPS {
        for shape in SHAPES {
            let spec: Spec = format!("{op} {dtype}{shape}").parse().expect("a spec");
            let operand = &spec.inputs()[0];
            let input = elements(operand.dtype(), operand.span_elems() as usize, 3, 3);
            let widest = run(&compiler.compile(&spec).expect("a kernel"), &spec, &input);
            for width in [0, 64, 128] {
                let options = Options { schedule: None, width: Some(width) };
                let kernel = compiler.compile_with(&spec, &options).expect("a kernel");
                assert!(kernel.schedule().width <= width, "{spec}: {} at {width}", kernel.schedule());
                assert!(run(&kernel, &spec, &input) == widest, "{spec} at {width} bits");
            }
        }
    }
}

/// One NaN, of any sign and payload, anywhere in any slice, on every way through the lanes: the
/// result is the canonical NaN, and that of the other slices is none.
#[test]
fn a_nan_anywhere_is_in_the_result_of_its_slice_alone() {
    let compiler = host();
    let mut random = Random::new(11);
    for op in ["max", "min", "sum", "mean", "prod", "l1", "l2", "sum_squares", "log_sum", "log_sum_exp", "lp_max(p=3)"]
    {
        for (dtype, quiet) in [("f16", 0x7e00u64), ("f32", 0x7fc0_0000), ("f64", 0x7ff8_0000_0000_0000)] {
            for shape in
                ["[3,130] axes=[1]", "[66,5] axes=[0]", "[66,70] axes=[0]", "[2,35,9] axes=[1]", "[3,2,7] axes=[2]"]
            {
                let spec: Spec = format!("{op} {dtype}{shape}").parse().expect("a spec");
                let operand = &spec.inputs()[0];
                let (dtype, count) = (operand.dtype(), operand.span_elems());
                let kernel = compiler.compile(&spec).expect("a kernel");
                for _ in 0..40 {
                    let mut input = vec![0; operand.span_bytes() as usize];
                    (0..count as usize).for_each(|i| Scalar::float(dtype, 1.0).write(&mut input, i));
                    let at = random.below(count) as usize;
                    let payload = random.bits() % (quiet & quiet.wrapping_neg()).max(2);
                    let sign = random.below(2) << (dtype.bits() - 1);
                    let infinity = Scalar::highest(dtype).bits();
                    let nan = Scalar::from_bits(dtype, infinity | payload.max(1) | sign);
                    assert!(nan.is_nan(), "{nan}");
                    nan.write(&mut input, at);
                    let output = run(&kernel, &spec, &input);
                    let results = (0..spec.outputs()[0].elems() as usize).map(|i| Scalar::read(dtype, &output, i));
                    let nans: Vec<Scalar> = results.filter(|r| r.is_nan()).collect();
                    assert_eq!(nans, [Scalar::from_bits(dtype, quiet)], "{spec} with {nan} at {at}");
                }
            }
        }
    }
}

/// Counts at which a wrong accumulator shows, along every axis. What holds for the whole of an array in
/// row-major layout stands in `tests/suite`.
#[test]
fn long_reductions_are_exact_along_any_axis() {
    let compiler = host();
    let cases: &[(&str, &str, &str)] = &[
        ("sum f32[2,8388640] axes=[0,1]", "1", "16777280"),
        ("sum f32[8388640,2]@ba", "1", "16777280"),
        ("sum f32[16777280,3]@(0,1) axes=[0]", "1", "16777280"),
        ("sum f32[3,16777280]@(1,0) axes=[1]", "1", "16777280"),
        ("sum bf16[70000,130]@(0,1) axes=[0] -> f32", "1", "70000"),
        ("sum bf16[5,70000,2]@(2,0,1) axes=[1] -> f32", "1", "70000"),
        ("sum i32[1000003]", "17", "17000051"),
        ("sum i32[100003,3]@(0,1) axes=[0]", "167773", "-402065865"),
        ("sum i32[100003,3]@(0,1) axes=[0] -> i64", "167773", "16777803319"),
        ("sum i32[100003,3]@(0,1) axes=[0] -> f64", "-167773", "-16777803319"),
        ("mean i64[70000,9]@(0,1) axes=[0]", "-9223372036854775808", "-9223372036854775808"),
        ("mean i64[70000,9]@(0,1) axes=[0] round_half_even", "9223372036854775807", "9223372036854775807"),
        ("mean u64[70000,9]@(0,1) axes=[0]", "18446744073709551615", "18446744073709551615"),
        ("max f64[70000,9]@(0,1) axes=[0]", "-inf", "-inf"),
        ("min f16[9,70000]@(1,0) axes=[1]", "inf", "inf"),
        ("prod i8[70001,33]@(0,1) axes=[0] saturate", "-1", "-1"),
    ];
    for (text, value, expected) in cases {
        let spec: Spec = text.parse().expect("a spec");
        let (operand, output) = (&spec.inputs()[0], &spec.outputs()[0]);
        let value = Scalar::parse(operand.dtype(), value).expect("a value");
        let mut one = vec![0; operand.dtype().bytes() as usize];
        value.write(&mut one, 0);
        let input = one.repeat(operand.span_elems() as usize);
        let expected = Scalar::parse(output.dtype(), expected).expect("a value");
        for width in [0, 128] {
            let options = Options { schedule: None, width: Some(width) };
            let got = run(&compiler.compile_with(&spec, &options).expect("a kernel"), &spec, &input);
            for i in 0..output.elems() as usize {
                assert_eq!(Scalar::read(output.dtype(), &got, i), expected, "{spec}, element {i}, {width} bits");
            }
        }
    }
}

#[test]
fn what_a_dump_shows_is_what_ran() {
    let (first, second) = (host(), host());
    for (op, dtype) in OPS {
        for shape in SHAPES {
            let spec: Spec = format!("{op} {dtype}{shape}").parse().expect("a spec");
            let kernel = first.compile(&spec).expect("a kernel");
            let dump = kernel.dump("all").expect("a dump");
            assert!(kernel.dump("all").as_deref() == Ok(&dump), "{spec}: the second dump differs");

            // The schedule as the dump shows it, forced on another compiler, gives the same code.
            let schedule: Schedule = kernel.dump("schedule").expect("a stage").parse().expect("a schedule");
            assert_eq!(schedule, *kernel.schedule());
            let again =
                second.compile_with(&spec, &Options { schedule: Some(schedule), width: None }).expect("a kernel");
            assert!(kernel.code() == again.code(), "{spec}: other code");
            assert!(again.dump("all").as_deref() == Ok(&dump), "{spec}: another dump");

            // The last nest shown, read back and interpreted, gives the bits that the code gives.
            let last = PASSES.last().expect("a pass").name;
            let nest: cranefold::ir::Nest = kernel.dump(last).expect("a stage").parse().expect("a nest");
            let operand = &spec.inputs()[0];
            let input = elements(operand.dtype(), operand.span_elems() as usize, 1, 5);
            let expected = run(&kernel, &spec, &input);
            let is_aligned = nest.to_string().contains("misalign ");
            for place in if is_aligned { vec![0, 1, 15, 37] } else { vec![0] } {
                let mut output = vec![0xa5; spec.outputs()[0].span_bytes() as usize];
                let mut bits = eval::Bits { inputs: vec![&input], outputs: vec![&mut output] };
                eval::run(&nest, &mut eval::Misaligned { domain: &mut bits, elements: &[place, 0] });
                assert!(expected == output, "{spec}: the nest shown gives other bits, {place} elements into a line");
            }
        }
    }
}

/// Wide vectors do not pay for a few hundred bytes.
#[test]
fn tiny_problems_stay_at_128_bits() {
    let width = |text: &str, width| choose(&Problem::of(&text.parse().expect("a spec")), width).width;
    for (text, chosen) in [
        ("sum f32[128]", 128),
        ("sum f32[129]", 512),
        ("sum f32[16,8] axes=[1]", 128),
        ("max u8[4,128] axes=[0]", 128),
        ("max u8[4,129] axes=[0]", 512),
        ("softmax f64[64]", 128),
        ("sum f32[0]", 128),
        ("median f32[200]", 512),
    ] {
        assert_eq!(width(text, 512), chosen, "{text}");
        assert_eq!(width(text, 0), 0, "{text}");
    }
}

/// The lowering does not look at the schedule, and the choice of one depends on nothing else than
/// the problem and the width.
#[test]
fn the_way_is_deterministic() {
    for (op, dtype) in OPS {
        let spec: Spec = format!("{op} {dtype}[33,70,5] axes=[1]").parse().expect("a spec");
        let problem = Problem::of(&spec);
        let stages = |width| {
            let bounds = Bounds::new(Vectors::WIDEST).at_most(width);
            let decided = Decided::of(problem.clone(), None, bounds).expect("a choice");
            pipeline::stages(&decided).expect("stages that verify")
        };
        assert!(stages(128) == stages(128) && stages(512) == stages(512), "{spec}");
        assert_eq!(stages(0)[0], stages(128)[0]);
    }
}
