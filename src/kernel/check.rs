//! The check of a call's buffers against its spec.

use super::{Input, Output};
use crate::error::{CallError, CalledOperand};
use crate::keyed::{Expected, KeyedSpec};
use cranefold_ir::DType;

/// Checks the number and element types of all buffers, and that none is too short.
pub(super) fn check(keyed: &KeyedSpec, inputs: &[Input<'_>], outputs: &[Output<'_>]) -> Result<(), CallError> {
    let (of_inputs, of_outputs) = keyed.expected();
    let all = inputs.len() == of_inputs.len()
        && outputs.len() == of_outputs.len()
        && of_inputs.iter().zip(inputs).all(|(of, i)| i.output().is_none() && of.is(i.dtype, i.bytes))
        && of_outputs.iter().zip(outputs).all(|(of, o)| of.is(o.dtype, o.bytes));
    if all {
        return Ok(());
    }
    check_each(keyed, inputs, outputs)
}

/// Checks the inputs, then the outputs, one by one; inputs in the place of outputs too.
#[cold]
fn check_each(keyed: &KeyedSpec, inputs: &[Input<'_>], outputs: &[Output<'_>]) -> Result<(), CallError> {
    let mut given = vec![];
    for (input, memory) in inputs.iter().enumerate() {
        given.push(match memory.output() {
            None => (memory.dtype, memory.bytes),
            Some(output) => {
                let may_replace = keyed.spec().is_some_and(|spec| spec.may_replace(output, input));
                let taken = outputs.get(output).filter(|_| may_replace);
                taken.map(|taken| (taken.dtype, taken.bytes)).ok_or(CallError::Replaces { output, input })?
            }
        });
    }
    let (of_inputs, of_outputs) = keyed.expected();
    check_all(keyed, "input", of_inputs, given.into_iter())?;
    check_all(keyed, "output", of_outputs, outputs.iter().map(|o| (o.dtype, o.bytes)))
}

fn check_all(
    keyed: &KeyedSpec,
    role: &'static str,
    operands: &[Expected],
    given: impl ExactSizeIterator<Item = (DType, usize)>,
) -> Result<(), CallError> {
    if given.len() != operands.len() {
        return Err(CallError::Count { role, given: given.len(), expected: operands.len(), kernel: keyed.title() });
    }
    let operand = |position: usize| CalledOperand::new(keyed.spec(), keyed.title(), role, position);
    for (position, ((dtype, bytes), expected)) in given.zip(operands).enumerate() {
        if dtype != expected.dtype() {
            return Err(CallError::DType { operand: operand(position), given: dtype, expected: expected.dtype() });
        }
        if (bytes as u64) < expected.bytes() {
            return Err(too_short(operand(position), bytes as u64, expected));
        }
    }
    Ok(())
}

/// Why so many bytes are too few.
fn too_short(operand: Box<CalledOperand>, given: u64, expected: &Expected) -> CallError {
    let (dtype, element_bytes) = (expected.dtype(), expected.dtype().bytes());
    match given.is_multiple_of(element_bytes) {
        false => CallError::PartialElement { operand, given, dtype, element_bytes },
        true => {
            let (given, expected) = (given / element_bytes, expected.bytes() / element_bytes);
            CallError::Length { operand, given, expected }
        }
    }
}
