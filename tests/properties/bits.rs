//! The same bits from every executor, schedule and width; nothing written but the outputs' elements;
//! and a result that the reference allows.

use crate::cases;
use cranefold::schedule::{Bounds, Decided, choose};
use cranefold::{Compiler, Options, Problem, Spec, Vectors, pipeline};
use cranefold_fuzz::bits::{are_equal, difference, is_allowed, native, only_elements_are_written};
use cranefold_fuzz::execute::Memory;
use cranefold_fuzz::specs::Case;
use proptest::prelude::*;
use std::sync::LazyLock;

static COMPILER: LazyLock<Compiler> = LazyLock::new(|| Compiler::host().expect("this machine"));

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_stage_and_native_code_give_the_same_bits(case in cases(1500, 6)) {
        check(&case, true)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn naive_nest_and_native_code_give_the_same_bits(case in cases(20_000, 5)) {
        check(&case, false)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn naive_nest_and_native_code_give_the_same_bits_of_many_elements(case in cases(300_000, 3)) {
        check(&case, false)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn native_code_keeps_to_the_bounds_of_the_reference(case in cases(2000, 6)) {
        let spec = case.spec();
        let memory = memory(&case, &spec);
        let outputs = native(&COMPILER, &spec, &memory, &Options::default()).map_err(TestCaseError::fail)?;
        is_allowed(&spec, &memory, &outputs).map_err(TestCaseError::fail)?;
    }
}

fn check(case: &Case, stages: bool) -> Result<(), TestCaseError> {
    let spec = case.spec();
    let memory = memory(case, &spec);
    let problem = Problem::of(&spec);
    let chosen = choose(&problem, case.width());
    let forced = case.schedules(&problem);
    let first = pipeline::checked("nest", cranefold::lower::lower(&problem, "naive"));
    let naive = memory.interpreted(&first.map_err(|e| TestCaseError::fail(e.to_string()))?);
    only_elements_are_written(&spec, &memory, &naive).map_err(TestCaseError::fail)?;
    if stages {
        for schedule in forced.iter().chain([&chosen]) {
            let decided = Decided::of(problem.clone(), Some(schedule), Bounds::new(Vectors::WIDEST));
            let decided = decided.map_err(|e| TestCaseError::fail(e.to_string()))?;
            let stages = pipeline::stages(&decided).map_err(|e| TestCaseError::fail(e.to_string()))?;
            let same = are_equal(&memory.interpreted_program(&stages[0].1), &naive);
            prop_assert!(same, "the interpreter gives other bits in parts, {schedule}\n{}", stages[0].1);
            for pair in stages.windows(2) {
                let [(_, before), (stage, nest)] = pair else { unreachable!("windows of two") };
                if before != nest {
                    let same = are_equal(&memory.interpreted_program(nest), &naive);
                    prop_assert!(same, "the interpreter gives other bits after {stage}, {schedule}\n{nest}");
                }
            }
        }
    }
    for options in case.options(&problem) {
        let outputs = native(&COMPILER, &spec, &memory, &options).map_err(TestCaseError::fail)?;
        prop_assert!(are_equal(&outputs, &naive), "{}", difference(&spec, &options, &naive, &outputs));
    }
    is_allowed(&spec, &memory, &naive).map_err(TestCaseError::fail)
}

fn memory(case: &Case, spec: &Spec) -> Memory {
    Memory::of(spec, case.kind, case.seed, case.offsets)
}
