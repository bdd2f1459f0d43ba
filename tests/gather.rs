//! Elements brought into the order of the shape a stretch of a slice at a time, with the same bits.

use cranefold::{Compiler, Options, Problem, Schedule, Spec, lower, schedule};
use cranefold_fuzz::execute::Memory;

/// Operands that no fixed stride leads through; extents that have no common stretch, several inputs, phases, positions.
const SPECS: [&str; 9] = [
    "sum f32[96,128]@(1,96) order=logical",
    "var f32[31,8,64]@(1,31,248) order=logical",
    "log_sum_exp bf16[2,64,24]@acb axes=[1,2] order=logical",
    "sum f32[7,96,96]@(1,7,672) axes=[1,2] order=logical",
    "sum f32[40,250]@(1,40), f32[40,1] axes=[0,1] map=\"x0 * x1\" order=logical",
    "mean f64[6,32,7,7]@acdb axes=[1,2,3] order=logical",
    "region x:f32[64,100]@(1,64) axes=[0,1] order=logical { m, s = sum_exp(x); m, s, argmax(x) }",
    "region x:f32[48,64]@(1,48), y:f32[48,64] axes=[0,1] order=logical { sum(x * y), var(x) }",
    "sum f32[64,96]@(0,1) axes=[0,1] order=logical",
];

#[test]
fn stretches_have_the_interpreters_bits() {
    let compiler = Compiler::host().expect("this machine");
    let mut stretches = 0;
    for text in SPECS {
        let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let naive = lower::lower(&Problem::of(&spec), "naive");
        let memory = Memory::of(&spec, 2, 5, (4, 8));
        let expected = memory.interpreted(&naive);
        for width in [128, 256, 512] {
            for (gather, parts) in [(0, "1"), (64, "1"), (1000, "1"), (4096, "1"), (1024, "2@blocks"), (1024, "3")] {
                let schedule: Schedule =
                    format!("width={width} gather={gather} parts={parts}").parse().expect("a schedule");
                if schedule.check(&Problem::of(&spec)).is_err() {
                    assert_ne!(parts, "1", "{spec}: only parts of blocks may be refused");
                    continue;
                }
                let options = Options { schedule: Some(schedule), width: None };
                let kernel = compiler.compile_with(&spec, &options).expect("a kernel");
                stretches += usize::from(kernel.dump("gather").is_ok_and(|nest| !nest.contains("no change")));
                let same = memory.run(&kernel).iter().zip(&expected).all(|(a, b)| a.bytes() == b.bytes());
                assert!(same, "{spec}, {width} bits, gather={gather} parts={parts}");
            }
        }
    }
    assert!(stretches > 50, "{stretches} kernels gather stretches");
}

#[test]
fn long_slices_are_gathered_in_stretches() {
    let chosen = |text: &str| {
        let spec: Spec = text.parse().expect("a spec");
        schedule::choose(&Problem::of(&spec), 512).gather
    };
    assert_eq!(chosen("sum f32[64,64]@(1,64) order=logical"), 0, "it stays in the first-level cache");
    assert_eq!(chosen("sum f32[256,256]@(1,256) order=logical"), 4096);
    assert_eq!(chosen("sum f32[1024,1024]@(1,1024) order=logical"), 4096);
    assert_eq!(chosen("sum f64[4096,4096]@(1,4096) order=logical"), 32768, "it lies in memory");
    assert_eq!(chosen("sum f64[512,4096,64]@cba axes=[0,1] order=logical"), 32768, "it lies in memory");
    assert_eq!(chosen("sum f32[1024,1024]@(1,1024)"), 0, "it is read in the order of memory");
    assert_eq!(chosen("max f32[1024,1024]@(1,1024) order=logical"), 0, "any order has the same bits");
}

/// The greatest and the least, their positions, and counts have one problem in every order.
#[test]
fn reductions_that_are_exact_in_any_order_follow_memory() {
    let problem = |text: String| Problem::of(&text.parse::<Spec>().unwrap_or_else(|e| panic!("{text}: {e}")));
    for op in ["max", "min", "argmax", "argmin", "linf", "ptp", "count_nonzero"] {
        for operand in ["f32[40,50]@(1,40) axes=[0,1]", "f64[40,50]@(1,40) axes=[0]", "bf16[4,33,7]@acb axes=[1,2]"] {
            let [memory, logical] = ["", " order=logical"].map(|order| problem(format!("{op} {operand}{order}")));
            assert_eq!(memory, logical, "{op} {operand}");
        }
    }
    let [memory, logical] = ["", " order=logical"].map(|order| problem(format!("sum f32[40,50]@(1,40){order}")));
    assert_ne!(memory, logical);
}
