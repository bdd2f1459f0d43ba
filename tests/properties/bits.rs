//! The same bits from every executor, schedule and width; nothing written but the outputs' elements;
//! and a result that the reference allows.

use crate::data::{Buffer, elements};
use crate::specs::{Case, cases};
use cranefold::ir::{Nest, eval};
use cranefold::schedule::choose;
use cranefold::{Compiler, Input, Options, Output, Problem, Reduction, Scalar, pipeline, reference};
use proptest::prelude::*;
use std::sync::LazyLock;

static COMPILER: LazyLock<Compiler> = LazyLock::new(|| Compiler::host().expect("this machine"));

/// Widths that a compiler may be told to keep to.
const WIDTHS: [u32; 5] = [0, 64, 128, 256, 1024];

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_stage_and_native_code_give_the_same_bits(case in cases(1500, 6)) {
        check(&case, true)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn naive_nest_and_native_code_give_the_same_bits(case in cases(20_000, 5)) {
        check(&case, false)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn naive_nest_and_native_code_give_the_same_bits_of_many_elements(case in cases(300_000, 3)) {
        check(&case, false)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn native_code_keeps_to_the_bounds_of_the_reference(case in cases(2000, 6)) {
        let spec = case.spec();
        let input = input(&case, &spec);
        let output = native(&case, &spec, &input, &Options::default())?;
        is_allowed(&spec, input.bytes(), output.bytes())?;
    }
}

fn check(case: &Case, stages: bool) -> Result<(), TestCaseError> {
    let spec = case.spec();
    let input = input(case, &spec);
    let problem = Problem::of(&spec);
    let chosen = choose(&problem, 128);
    let forced = case.schedules(&problem);
    let naive = interpret(&spec, &pipeline::stages(&problem, &chosen).expect("stages that verify")[0].1, &input);
    only_elements_are_written(&spec, &naive)?;
    if stages {
        for schedule in forced.iter().chain([&chosen]) {
            let stages = pipeline::stages(&problem, schedule).map_err(|e| TestCaseError::fail(e.to_string()))?;
            for pair in stages.windows(2) {
                let [(_, before), (stage, nest)] = pair else { unreachable!("windows of two") };
                if before != nest {
                    let same = interpret(&spec, nest, &input).bytes() == naive.bytes();
                    prop_assert!(same, "the interpreter gives other bits after {stage}, {schedule}\n{nest}");
                }
            }
        }
    }
    let schedules = forced.into_iter().map(|s| Options { schedule: Some(s), width: None });
    let widths = WIDTHS.map(|width| Options { schedule: None, width: Some(width) });
    for options in [Options::default()].into_iter().chain(widths).chain(schedules) {
        let output = native(case, &spec, &input, &options)?;
        prop_assert!(output.bytes() == naive.bytes(), "{}", difference(&spec, &options, &naive, &output));
    }
    is_allowed(&spec, input.bytes(), naive.bytes())
}

fn input(case: &Case, spec: &Reduction) -> Buffer {
    let operand = &spec.inputs()[0];
    let bytes = elements(operand.dtype(), operand.span_elems() as usize, case.kind, case.seed);
    Buffer::holding(&bytes, case.offsets.0)
}

fn interpret(spec: &Reduction, nest: &Nest, input: &Buffer) -> Buffer {
    let mut output = Buffer::new(spec.outputs()[0].span_bytes() as usize, 0);
    eval::run(nest, &mut eval::Bits { inputs: vec![input.bytes()], outputs: vec![output.bytes_mut()] });
    output
}

fn native(case: &Case, spec: &Reduction, input: &Buffer, options: &Options) -> Result<Buffer, TestCaseError> {
    let kernel = COMPILER.compile_with(spec, options).map_err(|e| TestCaseError::fail(format!("{options:?}: {e}")))?;
    let operand = &spec.outputs()[0];
    let mut output = Buffer::new(operand.span_bytes() as usize, case.offsets.1);
    let inputs = [Input::from_bytes(spec.inputs()[0].dtype(), input.bytes())];
    kernel.run(&inputs, &mut [Output::from_bytes(operand.dtype(), output.bytes_mut())]).expect("the right buffers");
    prop_assert!(output.guards_hold(), "native code writes outside of the output, {options:?}");
    prop_assert!(input.guards_hold(), "native code writes beside the input, {options:?}");
    Ok(output)
}

fn difference(spec: &Reduction, options: &Options, naive: &Buffer, output: &Buffer) -> String {
    let operand = &spec.outputs()[0];
    let at = |b: &Buffer, i| Scalar::read(operand.dtype(), b.bytes(), i);
    let all = 0..operand.span_elems() as usize;
    let differ: Vec<usize> = all.filter(|&i| at(naive, i).bits() != at(output, i).bits()).collect();
    let first = differ.first().copied().unwrap_or(0);
    format!(
        "native code gives other bits at {} places, the first {first}: {} and not {}, {options:?}",
        differ.len(),
        at(output, first),
        at(naive, first)
    )
}

/// The places of the output's elements in its buffer, in row-major order, from the strides.
pub fn places(spec: &Reduction) -> Vec<usize> {
    let output = &spec.outputs()[0];
    let mut places = vec![output.origin() as i64];
    for (&extent, &stride) in output.shape().iter().zip(output.strides()) {
        let along = |p: i64| (0..extent as i64).map(move |i| p + i * stride);
        places = places.into_iter().flat_map(along).collect();
    }
    places.into_iter().map(|p| p as usize).collect()
}

/// For each place of the output's buffer, whether an element lies there.
pub fn is_element(spec: &Reduction) -> Vec<bool> {
    let mut is_element = vec![false; spec.outputs()[0].span_elems() as usize];
    places(spec).into_iter().for_each(|place| is_element[place] = true);
    is_element
}

/// What lies between the elements of the output is as it was.
fn only_elements_are_written(spec: &Reduction, output: &Buffer) -> Result<(), TestCaseError> {
    let size = spec.outputs()[0].dtype().bytes() as usize;
    for (place, is_element) in is_element(spec).into_iter().enumerate() {
        let as_it_was = output.still_pattern(place * size..(place + 1) * size);
        prop_assert!(is_element || as_it_was, "place {} is written and is no element", place);
    }
    Ok(())
}

fn is_allowed(spec: &Reduction, input: &[u8], output: &[u8]) -> Result<(), TestCaseError> {
    let exact = reference::reduce(spec, &[input]).expect("the right buffers");
    for (place, exact) in places(spec).into_iter().zip(&exact[0]) {
        let got = Scalar::read(spec.outputs()[0].dtype(), output, place);
        if let Err(mismatch) = reference::check(spec, exact, got) {
            return Err(TestCaseError::fail(format!("place {place}: {mismatch}")));
        }
    }
    Ok(())
}
