//! One suite of cases, instantiated for every executor.

mod conformance;
mod data;
mod large;
mod layouts;
mod rows;
mod semantics;

use cranefold::ir::eval;
use cranefold::lower::program::Program;
use cranefold::schedule::{Bounds, Decided};
use cranefold::{Compiler, Input, Output, Spec, Vectors};
use std::sync::LazyLock;

/// Runs a spec: the inputs' buffers in, and what the outputs' buffers hold before; these out. Each is as
/// long as the operand's span.
pub type Execute = fn(&Spec, &[Vec<u8>], Vec<Vec<u8>>) -> Vec<Vec<u8>>;

/// Runs a spec over outputs of zeros, so that zeros are what lies between their elements.
pub fn run(execute: Execute, spec: &Spec, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    execute(spec, inputs, spec.outputs().iter().map(|o| vec![0; o.span_bytes() as usize]).collect())
}

/// The slow and obviously right executor.
fn reference(spec: &Spec, inputs: &[Vec<u8>], mut outputs: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    cranefold_reference::run(spec, &inputs, &mut slices).expect("buffers of the right length");
    outputs
}

/// The interpreter, on the nest after every pass: all give the same bits.
fn interpreter(spec: &Spec, inputs: &[Vec<u8>], old: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let problem = cranefold::Problem::of(spec);
    let mut before: Option<(Program, Vec<Vec<u8>>)> = None;
    for width in [128, 256, 512] {
        let decided = Decided::of(problem.clone(), None, Bounds::new(Vectors::WIDEST).at_most(width));
        let decided = decided.expect("a choice");
        for (stage, program) in cranefold::pipeline::stages(&decided).expect("stages that verify") {
            if before.as_ref().is_some_and(|(known, _)| *known == program) {
                continue;
            }
            let mut outputs = old.clone();
            let mut domain = eval::Bits {
                inputs: inputs.iter().map(Vec::as_slice).collect(),
                outputs: outputs.iter_mut().map(Vec::as_mut_slice).collect(),
            };
            program.interpret(&mut domain);
            let same = before.as_ref().is_none_or(|(_, known)| *known == outputs);
            assert!(same, "{spec}: other bits after {stage}, {}", decided.schedule);
            before = Some((program, outputs));
        }
    }
    before.expect("a stage").1
}

/// The compiled kernel.
fn native(spec: &Spec, inputs: &[Vec<u8>], mut outputs: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    static COMPILER: LazyLock<Compiler> = LazyLock::new(|| Compiler::host().expect("this machine"));
    let kernel = COMPILER.compile(spec).expect("a kernel");
    let ins: Vec<Input> =
        spec.inputs().iter().zip(inputs).map(|(operand, bytes)| Input::from_bytes(operand.dtype(), bytes)).collect();
    let operands = spec.outputs().iter().zip(&mut outputs);
    let mut outs: Vec<Output> = operands.map(|(o, bytes)| Output::from_bytes(o.dtype(), bytes)).collect();
    kernel.run(&ins, &mut outs).expect("buffers of the right length");
    outputs
}

/// Instantiates the suite for one executor.
macro_rules! suite {
    ($name:ident, $execute:expr) => {
        mod $name {
            #[test]
            fn semantics() {
                super::semantics::check($execute);
            }

            #[test]
            fn a_nan_anywhere_in_a_max() {
                super::semantics::check_nan_positions($execute);
            }

            #[test]
            fn every_nonzero_byte_is_true() {
                super::semantics::check_truth_bytes($execute);
            }

            #[test]
            fn onnx() {
                super::conformance::check_onnx($execute);
            }

            #[test]
            fn openvino() {
                super::conformance::check_openvino($execute);
            }

            #[test]
            fn layouts() {
                super::layouts::check($execute);
            }

            #[test]
            fn blocked_layouts() {
                super::layouts::check_blocked($execute);
            }

            #[test]
            fn high_ranks() {
                super::layouts::check_high_ranks($execute);
            }

            #[test]
            fn rows() {
                super::rows::check($execute);
            }

            #[test]
            fn counts_of_every_type() {
                super::rows::check_counts($execute);
            }

            #[test]
            fn composed() {
                super::rows::check_composed($execute);
            }

            #[test]
            fn variance_far_from_zero() {
                super::large::check_variance($execute);
            }

            #[test]
            fn large() {
                super::large::check($execute);
            }
        }
    };
}

suite!(on_reference, crate::reference);
suite!(on_the_interpreter, crate::interpreter);
suite!(on_native_code, crate::native);
