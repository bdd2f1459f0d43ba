//! The inputs and outputs of a spec in memory.

use crate::buffer::Buffer;
use crate::failure::Failure;
use crate::npy::Form;
use crate::output_files::OutputFiles;
use crate::{npy, random, scalars};
use cranefold::spec::{Operand, Role};
use cranefold::{Scalar, Spec};
use std::path::PathBuf;

/// Buffers for each operand, in the spec's layouts.
#[derive(Debug)]
pub struct Arrays {
    /// The inputs.
    pub inputs: Vec<Buffer>,
    /// The outputs: their contents before a call, then its results.
    pub outputs: Vec<Buffer>,
}

impl Arrays {
    /// Inputs of random elements.
    ///
    /// # Errors
    /// [`Failure::Memory`].
    pub fn random(spec: &Spec, seed: u64) -> Result<Arrays, Failure> {
        let mut inputs = inputs(spec)?;
        random::fill(spec, seed, &mut inputs);
        Ok(Arrays { inputs, outputs: outputs(spec)? })
    }

    /// Inputs from files, without scalars.
    ///
    /// # Errors
    /// If there are too few or too many, or one cannot be read or is not the operand.
    pub fn read(spec: &Spec, form: Form, paths: &[PathBuf]) -> Result<Arrays, Failure> {
        let names = names(spec);
        check_count("input", paths.len(), names.iter().flatten().count())?;
        let mut paths = paths.iter();
        let inputs = spec.inputs().iter().zip(names).map(|(operand, name)| match name {
            Some(name) => npy::read(paths.next().expect("as many as are named"), form, operand, &name),
            None => Buffer::zeroed(operand.span_bytes()),
        });
        Ok(Arrays { inputs: inputs.collect::<Result<_, _>>()?, outputs: outputs(spec)? })
    }

    /// Sets the scalars whose values are given.
    pub fn set_scalars(&mut self, spec: &Spec, values: &[Option<Scalar>]) {
        let scalars =
            spec.inputs().iter().zip(&mut self.inputs).filter(|(operand, _)| scalars::name(operand).is_some());
        for ((_, buffer), value) in scalars.zip(values) {
            if let Some(value) = value {
                value.write(buffer.bytes_mut(), 0);
            }
        }
    }

    /// The scalars with their values, as `eps=0.5`.
    pub fn scalars(&self, spec: &Spec) -> Vec<String> {
        let inputs = spec.inputs().iter().zip(&self.inputs);
        let shown = inputs.filter_map(|(operand, buffer)| {
            let name = scalars::name(operand)?;
            Some(format!("{name}={}", Scalar::read(operand.dtype(), buffer.bytes(), 0)))
        });
        shown.collect()
    }

    /// The contents, before a call, of the outputs that it reads: from files, or zeros if `paths` is empty. In raw form
    /// there is a file for each output, read or not, because its buffer may have gaps.
    ///
    /// # Errors
    /// If there are too few or too many, or one cannot be read or is not the operand.
    pub fn old(spec: &Spec, form: Form, paths: &[PathBuf]) -> Result<Vec<Old>, Failure> {
        let all = form == Form::Raw && !paths.is_empty();
        let read: Vec<usize> = (0..spec.outputs().len()).filter(|&o| all || spec.reads_old(o)).collect();
        if all {
            check_count("old", paths.len(), read.len())?;
        } else if !paths.is_empty() && paths.len() != read.len() {
            return Err(Failure::Old { given: paths.len(), expected: read.len() });
        }
        let file = |(i, output): (usize, usize)| {
            let operand = &spec.outputs()[output];
            let elements = match paths.get(i) {
                Some(path) => npy::read(path, form, operand, &format!("output {output}"))?,
                None => unwritten(operand)?,
            };
            Ok(Old { output, elements })
        };
        read.into_iter().enumerate().map(file).collect()
    }

    /// Restores the outputs that are read to their contents before the first call.
    pub fn restore(&mut self, old: &[Old]) {
        for Old { output, elements } in old {
            self.outputs[*output].bytes_mut().copy_from_slice(elements.bytes());
        }
    }

    /// Writes the outputs to files, all or none of them; nothing if there are no places.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn write(&self, spec: &Spec, form: Form, places: &OutputFiles) -> Result<(), Failure> {
        places.write(|output, given, file| {
            npy::write(file, given, form, &spec.outputs()[output], self.outputs[output].bytes())
        })
    }

    /// The bytes of the inputs.
    pub fn input_bytes(&self) -> Vec<&[u8]> {
        self.inputs.iter().map(Buffer::bytes).collect()
    }

    /// The bytes before the first call of the outputs that are read, and the present bytes of the others.
    pub fn old_bytes<'a>(&'a self, old: &'a [Old]) -> Vec<&'a [u8]> {
        let before = |output: usize| old.iter().find(|old| old.output == output).map(|old| old.elements.bytes());
        (0..self.outputs.len()).map(|o| before(o).unwrap_or(self.outputs[o].bytes())).collect()
    }

    /// The bytes of the outputs.
    pub fn output_bytes(&self) -> Vec<&[u8]> {
        self.outputs.iter().map(Buffer::bytes).collect()
    }
}

/// The contents of an output before a call that reads it.
#[derive(Debug)]
pub struct Old {
    output: usize,
    elements: Buffer,
}

/// The names of the inputs in messages: `input 0`, `input y0`; `None` for scalars.
fn names(spec: &Spec) -> Vec<Option<String>> {
    let (mut elements, mut thens) = (0.., 0..);
    let mut name = |operand: &Operand| match operand.role() {
        Role::Scalar(_) => None,
        Role::Then => thens.next().map(|n| format!("input y{n}")),
        _ => elements.next().map(|n| format!("input {n}")),
    };
    spec.inputs().iter().map(&mut name).collect()
}

fn inputs(spec: &Spec) -> Result<Vec<Buffer>, Failure> {
    spec.inputs().iter().map(|operand| Buffer::zeroed(operand.span_bytes())).collect()
}

/// Buffers for the outputs of a spec: zeros, except for padding, which a call has to set to zero.
///
/// # Errors
/// [`Failure::Memory`].
pub fn outputs(spec: &Spec) -> Result<Vec<Buffer>, Failure> {
    spec.outputs().iter().map(unwritten).collect()
}

fn unwritten(operand: &Operand) -> Result<Buffer, Failure> {
    let mut buffer = Buffer::zeroed(operand.span_bytes())?;
    let size = operand.dtype().bytes() as usize;
    // The padding is NaN, -1, true or the greatest number.
    operand.padding().for_each(|place| buffer.bytes_mut()[place * size..][..size].fill(0xff));
    Ok(buffer)
}

/// Checks the number of files.
///
/// # Errors
/// [`Failure::Files`] if the number differs from the expected one.
pub fn check_count(role: &'static str, given: usize, expected: usize) -> Result<(), Failure> {
    if given == expected { Ok(()) } else { Err(Failure::Files { role, given, expected }) }
}

fn bytes(operand: &Operand) -> u64 {
    operand.elems().saturating_mul(operand.dtype().bytes())
}

/// Bytes of the elements of all inputs, each counted once.
pub fn input_bytes(spec: &Spec) -> u64 {
    spec.inputs().iter().map(bytes).sum()
}

/// Bytes of the elements of all outputs.
pub fn output_bytes(spec: &Spec) -> u64 {
    spec.outputs().iter().map(bytes).fold(0, u64::saturating_add)
}

/// Bytes of the elements that a call reads and writes, each counted once; outputs that it also reads count twice.
pub fn moved_bytes(spec: &Spec) -> u64 {
    let written: u64 = spec.outputs().iter().map(bytes).sum();
    let old = (0..spec.outputs().len()).filter(|&o| spec.reads_old(o)).map(|o| bytes(&spec.outputs()[o]));
    input_bytes(spec) + written + old.sum::<u64>()
}
