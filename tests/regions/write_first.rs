//! Outputs at positions that the first visit of a slice writes: the same bits as by a visit after it.

use super::list;
use cranefold::{Compiler, Options, Problem, Schedule, ScheduleError, Spec};
use cranefold_fuzz::execute::Memory;

/// Specs whose first visit can write: columns and rows of one block and of several, boxes, several outputs and
/// reductions, indices, narrow types, slices that lie apart in outputs.
const WRITTEN: &[&str] = &[
    "region x:f32[300,37], dy:f32[300,37] axes=[0] { dx = dy * exp(x); dx, sum(dx) }",
    "region x:f32[3,9001] axes=[1] { y = max(x, 0); y, sum(y) }",
    "region x:f32[3,300], w:f32[300] axes=[1] { y = tanh(x) + w; y, mean(y * y), max(y * w) }",
    "region x:f32[5,40] axes=[1] { e = exp(x); e, sum(e), x * 2, l1(x) }",
    "region x:f32[2,17,5,7] axes=[1,3] { y = x * x; y, sum(y) }",
    "region x:f32[3,37]@aB16b axes=[1] { y = x + 1; y, max(y) }",
    "region x:f32[3,37] axes=[1] { y = x + 1; y, max(y) }",
    "region x:bf16[6,70] axes=[1] { y = bf16(exp(x)); y, sum(f32(y)) }",
    "region x:f32[4,70] axes=[1] { i8(round(x * 30)), linf(x) }",
    "region x:f32[5,40] axes=[1] { e = x * f32(position(1)); e, max(e) }",
    "region x:f64[7,129] axes=[0] { y = exp(x); y, sum(y), sum(y * y) }",
    "region x:f32[100000] { y = exp(x); y, sum(y) }",
];

/// The schedule without and with `write=first`, keeping what is worth it or nothing.
fn pairs(problem: &Problem, width: u32) -> Vec<(Schedule, Schedule)> {
    let plain: Schedule = format!("width={width}").parse().expect("a schedule");
    let keep: Vec<String> = problem.keepable(|_| true).into_iter().map(|value| value.name).collect();
    let first = |keep| Schedule { keep, write_first: true, ..plain.clone() };
    [first(keep), first(vec![])].map(|first| (plain.clone(), first)).into()
}

#[test]
fn what_the_first_visit_writes_has_the_same_bits() {
    let compiler = Compiler::host().expect("a compiler");
    let mut specs: Vec<Spec> =
        WRITTEN.iter().map(|text| text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))).collect();
    specs.extend(list().into_iter().map(|(_, spec)| spec));
    let outputs = |spec: &Spec, schedule: &Schedule, kind| {
        let options = Options { schedule: Some(schedule.clone()), ..Options::default() };
        let kernel = compiler.compile_with(spec, &options).unwrap_or_else(|e| panic!("{spec}, {schedule}: {e}"));
        assert_eq!(kernel.schedule(), schedule);
        let found = Memory::of(spec, kind, 7, (0, 0)).run(&kernel);
        found.iter().map(|buffer| buffer.bytes().to_vec()).collect::<Vec<_>>()
    };
    for (n, spec) in specs.iter().enumerate() {
        let problem = Problem::of(spec);
        for (kind, width) in [(0, 512), (1, 256), (2, 128), (0, 0)] {
            for (last, first) in pairs(&problem, width) {
                assert_eq!(first.to_string().parse(), Ok(first.clone()));
                match first.check(&problem) {
                    Ok(()) => assert_eq!(outputs(spec, &first, kind), outputs(spec, &last, kind), "{spec}, {first}"),
                    Err(e) => assert!(n >= WRITTEN.len(), "{spec}, {first}: {e}"),
                }
            }
        }
    }
}

#[test]
fn outputs_that_the_first_visit_cannot_write_are_refused() {
    let check = |spec: &str| {
        let schedule: Schedule = "width=128 write=first".parse().expect("a schedule");
        schedule.check(&Problem::of(&spec.parse::<Spec>().expect("a spec")))
    };
    for spec in [
        // A result of the reduction is in the output; there is none at positions; nothing is reduced.
        "softmax f32[5,129] axes=[1]",
        "sum f32[5,129] axes=[1]",
        "region x:f32[5,129] axes=[1] { y = exp(x); y, y / sum(y) }",
        "region x:f32[5,129] axes=[] { exp(x) }",
        // Reductions visit the slice several times.
        "region x:f32[5,129] axes=[1] { x * 2, var(x) }",
        "region x:f32[5,129] axes=[1] { x * 2, mean(centered(x)) }",
        // The visit reads what an output held.
        "region x:f32[5,129] axes=[1] { x + old(0), sum(x) }",
        // The elements are gathered before they are reduced.
        "region x:f32[64,5]@ba order=logical { x * 2, sum(x) }",
    ] {
        assert_eq!(check(spec), Err(ScheduleError::NotFirst), "{spec}");
    }
    assert!(matches!("width=128 write=second".parse::<Schedule>(), Err(ScheduleError::Unknown(_))));
    assert_eq!("width=128 write=last".parse::<Schedule>().map(|s| s.write_first), Ok(false));
}

/// One visit is chosen where it writes all, and each value is computed once.
#[test]
fn the_cost_chooses_one_visit() {
    let choose = |spec: &str| cranefold::schedule::choose(&Problem::of(&spec.parse::<Spec>().expect("a spec")), 512);
    for axis in 0..2 {
        let spec = format!("region x:f32[512,512], dy:f32[512,512] axes=[{axis}] {{ dx = dy * erf(x); dx, sum(dx) }}");
        let chosen = choose(&spec);
        assert!(chosen.write_first && chosen.keep == ["v0"], "{chosen}");
    }
    let chosen = choose("region x:f32[512,512] axes=[1] { y = x * 2; y, sum(y) }");
    assert!(chosen.write_first && chosen.keep == ["v0"], "{chosen}");
    assert!(!choose("softmax f32[512,512] axes=[1]").write_first);
}
