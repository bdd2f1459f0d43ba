//! The memory of one call, and its execution: by the interpreter or by a kernel.

use crate::data::{Buffer, elements};
use cranefold::ir::{Nest, eval};
use cranefold::{Input, Kernel, Output, Reduction};

/// The buffers of a call, from before it.
pub struct Memory {
    pub inputs: Vec<Buffer>,
    pub outputs: Vec<Buffer>,
}

impl Memory {
    /// Elements of a kind in all inputs and in the outputs whose old elements are read, the others of a
    /// pattern; inputs and outputs as many bytes off alignment.
    pub fn of(spec: &Reduction, kind: u8, seed: u64, offsets: (usize, usize)) -> Memory {
        let input = |(i, operand): (u64, &cranefold::spec::Operand)| {
            let seed = seed.wrapping_add(i.wrapping_mul(0x5851_f42d_4c95_7f2d));
            let bytes = elements(operand.dtype(), operand.span_elems() as usize, kind, seed);
            Buffer::holding(&bytes, offsets.0)
        };
        let output = |(o, operand): (usize, &cranefold::spec::Operand)| {
            let reads_old = spec.then().get(o).is_some_and(|f| f.uses("d"));
            let mut buffer = Buffer::new(operand.span_bytes() as usize, offsets.1);
            if reads_old {
                let bytes = elements(operand.dtype(), operand.span_elems() as usize, kind, seed ^ (0xd + o as u64));
                buffer.bytes_mut().copy_from_slice(&bytes);
            }
            buffer
        };
        Memory {
            inputs: (0..).zip(spec.inputs()).map(input).collect(),
            outputs: spec.outputs().iter().enumerate().map(output).collect(),
        }
    }

    /// The outputs after the interpreter ran a nest.
    pub fn interpreted(&self, nest: &Nest) -> Vec<Buffer> {
        let mut outputs = self.outputs.clone();
        let inputs = self.inputs.iter().map(Buffer::bytes).collect();
        eval::run(nest, &mut eval::Bits { inputs, outputs: outputs.iter_mut().map(Buffer::bytes_mut).collect() });
        outputs
    }

    /// The outputs after a kernel ran.
    ///
    /// # Panics
    /// If it is a kernel of another spec.
    pub fn run(&self, kernel: &Kernel) -> Vec<Buffer> {
        let spec = kernel.spec();
        let mut outputs = self.outputs.clone();
        let inputs = spec.inputs().iter().zip(&self.inputs);
        let inputs: Vec<Input> = inputs.map(|(o, b)| Input::from_bytes(o.dtype(), b.bytes())).collect();
        let places = spec.outputs().iter().zip(&mut outputs);
        let mut places: Vec<Output> = places.map(|(o, b)| Output::from_bytes(o.dtype(), b.bytes_mut())).collect();
        kernel.run(&inputs, &mut places).expect("the right buffers");
        drop(places);
        outputs
    }
}

/// The places of an output's elements in its buffer, in row-major order, from the strides.
pub fn places(spec: &Reduction, output: usize) -> Vec<usize> {
    let output = &spec.outputs()[output];
    if output.shape().contains(&0) {
        return vec![];
    }
    let mut places = vec![output.origin() as i64];
    for (&extent, &stride) in output.shape().iter().zip(output.strides()) {
        let along = |p: i64| (0..extent as i64).map(move |i| p + i * stride);
        places = places.into_iter().flat_map(along).collect();
    }
    places.into_iter().map(|p| p as usize).collect()
}

/// For each place of an output's buffer, whether an element lies there.
pub fn is_element(spec: &Reduction, output: usize) -> Vec<bool> {
    let mut is_element = vec![false; spec.outputs()[output].span_elems() as usize];
    places(spec, output).into_iter().for_each(|place| is_element[place] = true);
    is_element
}
