//! The same bits from every executor, schedule and width; nothing written but the outputs' elements;
//! and a result that the reference allows.

use crate::data::Buffer;
use crate::execute::{Memory, is_element, is_written, places};
use crate::specs::{Case, cases};
use cranefold::ir::ops::Call;
use cranefold::schedule::choose;
use cranefold::{Compiler, Options, Problem, Reduction, Scalar, Vectors, pipeline, reference};
use proptest::prelude::*;
use std::sync::LazyLock;

static COMPILER: LazyLock<Compiler> = LazyLock::new(|| Compiler::host().expect("this machine"));

/// Widths that a compiler may be told to keep to.
const WIDTHS: [u32; 6] = [0, 64, 128, 256, 512, 1024];

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
        let outputs = native(&spec, &memory, &Options::default())?;
        is_allowed(&spec, &memory, &outputs)?;
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
    only_elements_are_written(&spec, &memory, &naive)?;
    if stages {
        for schedule in forced.iter().chain([&chosen]) {
            let stages = pipeline::program_stages(&problem, schedule, Vectors::WIDEST)
                .map_err(|e| TestCaseError::fail(e.to_string()))?;
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
    let schedules = forced.into_iter().map(|s| Options { schedule: Some(s), width: None });
    let widths = WIDTHS.map(|width| Options { schedule: None, width: Some(width) });
    for options in [Options::default()].into_iter().chain(widths).chain(schedules) {
        let outputs = native(&spec, &memory, &options)?;
        prop_assert!(are_equal(&outputs, &naive), "{}", difference(&spec, &options, &naive, &outputs));
    }
    is_allowed(&spec, &memory, &naive)
}

fn memory(case: &Case, spec: &Reduction) -> Memory {
    Memory::of(spec, case.kind, case.seed, case.offsets)
}

fn are_equal(a: &[Buffer], b: &[Buffer]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.bytes() == b.bytes())
}

fn native(spec: &Reduction, memory: &Memory, options: &Options) -> Result<Vec<Buffer>, TestCaseError> {
    let kernel = COMPILER.compile_with(spec, options).map_err(|e| TestCaseError::fail(format!("{options:?}: {e}")))?;
    let outputs = memory.run(&kernel);
    let outside = outputs.iter().all(Buffer::guards_hold);
    prop_assert!(outside, "native code writes outside of an output, {options:?}");
    prop_assert!(memory.inputs.iter().all(Buffer::guards_hold), "native code writes beside an input, {options:?}");
    Ok(outputs)
}

fn difference(spec: &Reduction, options: &Options, naive: &[Buffer], outputs: &[Buffer]) -> String {
    let differ = |o: &usize| naive[*o].bytes() != outputs[*o].bytes();
    let o = (0..outputs.len()).find(differ).expect("a difference");
    let operand = &spec.outputs()[o];
    let at = |b: &Buffer, i| Scalar::read(operand.dtype(), b.bytes(), i);
    let all = 0..operand.span_elems() as usize;
    let differ: Vec<usize> = all.filter(|&i| at(&naive[o], i).bits() != at(&outputs[o], i).bits()).collect();
    let first = differ.first().copied().unwrap_or(0);
    format!(
        "native code gives other bits at {} places of output {o}, the first {first}: {} and not {}, {options:?}",
        differ.len(),
        at(&outputs[o], first),
        at(&naive[o], first)
    )
}

/// Padding of blocks is zero, and what else lies between the elements of an output is as it was.
fn only_elements_are_written(spec: &Reduction, memory: &Memory, outputs: &[Buffer]) -> Result<(), TestCaseError> {
    for (o, (before, after)) in memory.outputs.iter().zip(outputs).enumerate() {
        let size = spec.outputs()[o].dtype().bytes() as usize;
        for (place, (element, written)) in is_element(spec, o).into_iter().zip(is_written(spec, o)).enumerate() {
            let bytes = place * size..(place + 1) * size;
            let (before, after) = (&before.bytes()[bytes.clone()], &after.bytes()[bytes]);
            let is_zero = after.iter().all(|&b| b == 0);
            prop_assert!(element || !written || is_zero, "place {place} of output {o} is padding and not zero");
            prop_assert!(written || before == after, "place {place} of output {o} is written and is no element");
        }
    }
    Ok(())
}

/// Whether every element is one that the reference allows. A combiner that is drawn keeps no contract: what it
/// gives depends on the tree, and there is no value to hold it against.
fn is_allowed(spec: &Reduction, memory: &Memory, outputs: &[Buffer]) -> Result<(), TestCaseError> {
    if spec.reducers().iter().any(|call| matches!(call, Call::Own(_))) {
        return Ok(());
    }
    let inputs: Vec<&[u8]> = memory.inputs.iter().map(Buffer::bytes).collect();
    let old: Vec<&[u8]> = memory.outputs.iter().map(Buffer::bytes).collect();
    let exact = reference::reduce_over(spec, &inputs, &old).expect("the right buffers");
    for (o, (exact, output)) in exact.iter().zip(outputs).enumerate() {
        for (place, exact) in places(spec, o).into_iter().zip(exact) {
            let got = Scalar::read(spec.outputs()[o].dtype(), output.bytes(), place);
            if let Err(mismatch) = reference::check(spec, exact, got) {
                return Err(TestCaseError::fail(format!("place {place} of output {o}: {mismatch}")));
            }
        }
    }
    Ok(())
}
