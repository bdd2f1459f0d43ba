//! The check of a call's buffers against its spec.

use super::{Input, Output};
use crate::error::CallError;
use crate::keyed::{Expected, KeyedSpec};
use cranefold_ir::DType;

/// Checks the number, element types and lengths of all buffers.
pub(super) fn check(keyed: &KeyedSpec, inputs: &[Input<'_>], outputs: &[Output<'_>]) -> Result<(), CallError> {
    let (of_inputs, of_outputs) = keyed.expected();
    let all = inputs.len() == of_inputs.len()
        && outputs.len() == of_outputs.len()
        && of_inputs.iter().zip(inputs).all(|(of, i)| of.is(i.dtype, i.bytes))
        && of_outputs.iter().zip(outputs).all(|(of, o)| of.is(o.dtype, o.bytes));
    if all {
        return Ok(());
    }
    wrong(keyed, inputs, outputs)
}

/// Finds the first buffer that is wrong.
#[cold]
fn wrong(keyed: &KeyedSpec, inputs: &[Input<'_>], outputs: &[Output<'_>]) -> Result<(), CallError> {
    check_operands(keyed, inputs.iter().map(|i| (i.dtype, i.bytes)), outputs.iter().map(|o| (o.dtype, o.bytes)))
}

/// Checks the number, element types and lengths of inputs, then of outputs.
pub(super) fn check_operands(
    keyed: &KeyedSpec,
    inputs: impl ExactSizeIterator<Item = (DType, usize)>,
    outputs: impl ExactSizeIterator<Item = (DType, usize)>,
) -> Result<(), CallError> {
    let (of_inputs, of_outputs) = keyed.expected();
    check_all("input", of_inputs, inputs)?;
    check_all("output", of_outputs, outputs)
}

fn check_all(
    role: &'static str,
    operands: &[Expected],
    given: impl ExactSizeIterator<Item = (DType, usize)>,
) -> Result<(), CallError> {
    if given.len() != operands.len() {
        return Err(CallError::Count { role, given: given.len(), expected: operands.len() });
    }
    for (position, ((dtype, bytes), operand)) in given.zip(operands).enumerate() {
        if dtype != operand.dtype() {
            return Err(CallError::DType { role, position, given: dtype, expected: operand.dtype() });
        }
        if bytes as u64 != operand.bytes() {
            return Err(wrong_length(role, position, bytes as u64, operand));
        }
    }
    Ok(())
}

/// Why so many bytes are not an operand's.
fn wrong_length(role: &'static str, position: usize, given: u64, operand: &Expected) -> CallError {
    let (dtype, element_bytes) = (operand.dtype(), operand.dtype().bytes());
    match given.is_multiple_of(element_bytes) {
        false => CallError::PartialElement { role, position, given, dtype, element_bytes },
        true => CallError::Length {
            role,
            position,
            given: given / element_bytes,
            expected: operand.bytes() / element_bytes,
        },
    }
}
