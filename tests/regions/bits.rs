//! Equal bits on every executor, and text that reads back.

use super::list;
use cranefold::lower::lower;
use cranefold::schedule::{Bounds, Decided};
use cranefold::{Compiler, Options, Problem, Schedule, Spec, Vectors, pipeline};
use cranefold_fuzz::execute::Memory;

/// The bits of a region by every executor are those of the interpreter on the naive nest.
pub fn check(compiler: &Compiler, name: &str, spec: &Spec) {
    let problem = Problem::of(spec);
    let text = problem.to_string();
    let read: Problem = text.parse().unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
    assert_eq!(read, problem, "{name}: {text}");
    let naive = lower(&problem, "region");
    cranefold::ir::verify(&naive).unwrap_or_else(|e| panic!("{name}: {e}\n{naive}"));
    for kind in [0, 1, 2] {
        let memory = Memory::of(spec, kind, 7, (0, 0));
        let expected = memory.interpreted(&naive);
        for width in [512, 256, 128, 0] {
            let options = Options { width: Some(width), ..Options::default() };
            let kernel = compiler.compile_with(spec, &options).unwrap_or_else(|e| panic!("{name}, {width}: {e}"));
            let found = memory.run(&kernel);
            for (o, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert_eq!(found.bytes(), expected.bytes(), "{name}: output {o} at {width} bits, data {kind}\n{naive}");
            }
        }
    }
    for width in [512, 128] {
        let bounds = Bounds::new(Vectors::WIDEST.at_most(width));
        let decided = Decided::of(problem.clone(), None, bounds).expect("a decision");
        pipeline::stages(&decided).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn every_executor_gives_the_same_bits() {
    let compiler = Compiler::host().expect("a compiler");
    for (name, spec) in list() {
        check(&compiler, &name, &spec);
    }
}

#[test]
fn threads_and_schedules_change_no_bit() {
    let one = Compiler::host().expect("a compiler");
    let two = Compiler::builder().threads(2).build().expect("a compiler");
    for (name, spec) in list() {
        let memory = Memory::of(&spec, 0, 11, (0, 0));
        let expected = memory.run(&one.compile(&spec).expect("a kernel"));
        let kernel = two.compile(&spec).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(memory.run(&kernel).iter().zip(&expected).all(|(a, b)| a.bytes() == b.bytes()), "{name}, two threads");
        for schedule in ["width=512 jam=4 in_flight=2", "width=256 interleave=2", "width=128 parts=3 transpose=off"] {
            let schedule: Schedule = schedule.parse().expect("a schedule");
            let options = Options { schedule: Some(schedule.clone()), ..Options::default() };
            let kernel = one.compile_with(&spec, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
            let found = memory.run(&kernel);
            assert!(found.iter().zip(&expected).all(|(a, b)| a.bytes() == b.bytes()), "{name}, {schedule}");
        }
    }
}
