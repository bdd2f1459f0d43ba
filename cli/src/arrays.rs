//! The inputs and outputs of a spec in memory.

use crate::buffer::Buffer;
use crate::failure::Failure;
use crate::{npy, random};
use cranefold::Reduction;
use std::path::PathBuf;

/// Buffers for each operand, in the spec's layouts.
#[derive(Debug)]
pub struct Arrays {
    /// The inputs.
    pub inputs: Vec<Buffer>,
    /// The outputs, zero so far.
    pub outputs: Vec<Buffer>,
}

impl Arrays {
    /// Inputs of random elements.
    ///
    /// # Errors
    /// [`Failure::Memory`].
    pub fn random(spec: &Reduction, seed: u64) -> Result<Arrays, Failure> {
        let mut inputs = operands(spec.inputs())?;
        random::fill(spec, seed, &mut inputs);
        Ok(Arrays { inputs, outputs: operands(spec.outputs())? })
    }

    /// Inputs from files.
    ///
    /// # Errors
    /// If there are too few or too many, or one cannot be read or is not the operand.
    pub fn read(spec: &Reduction, paths: &[PathBuf]) -> Result<Arrays, Failure> {
        check_count("input", paths.len(), spec.inputs().len())?;
        let files = spec.inputs().iter().zip(paths).enumerate();
        let inputs = files.map(|(index, (operand, path))| npy::read(path, operand, &format!("input {index}")));
        Ok(Arrays { inputs: inputs.collect::<Result<_, _>>()?, outputs: operands(spec.outputs())? })
    }

    /// Writes the outputs to files; none, if `paths` is empty.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn write(&self, spec: &Reduction, paths: &[PathBuf]) -> Result<(), Failure> {
        let files = spec.outputs().iter().zip(&self.outputs).zip(paths);
        files.into_iter().try_for_each(|((operand, buffer), path)| npy::write(path, operand, buffer.bytes()))
    }

    /// The bytes of the inputs.
    pub fn input_bytes(&self) -> Vec<&[u8]> {
        self.inputs.iter().map(Buffer::bytes).collect()
    }

    /// The bytes of the outputs.
    pub fn output_bytes(&self) -> Vec<&[u8]> {
        self.outputs.iter().map(Buffer::bytes).collect()
    }
}

/// Zeroed buffers for operands.
///
/// # Errors
/// [`Failure::Memory`].
pub fn operands(operands: &[cranefold::spec::Operand]) -> Result<Vec<Buffer>, Failure> {
    operands.iter().map(|operand| Buffer::zeroed(operand.span_bytes())).collect()
}

/// Checks the number of files.
///
/// # Errors
/// [`Failure::Files`] if it is another than expected.
pub fn check_count(role: &'static str, given: usize, expected: usize) -> Result<(), Failure> {
    if given == expected { Ok(()) } else { Err(Failure::Files { role, given, expected }) }
}

/// Bytes of the elements of all inputs, each counted once.
pub fn element_bytes(spec: &Reduction) -> u64 {
    spec.inputs().iter().map(|operand| operand.elems().saturating_mul(operand.dtype().bytes())).sum()
}
