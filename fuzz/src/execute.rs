//! The memory of one call, and its execution: by the interpreter or by a kernel.

use crate::data::{Buffer, elements};
use cranefold::ir::{self, Nest, eval};
use cranefold::lower::program::Program;
use cranefold::spec::Operand;
use cranefold::{Input, Kernel, Output, Spec};

/// The buffers of a call, as they are before it.
#[derive(Clone)]
pub struct Memory {
    /// A buffer for each input.
    pub inputs: Vec<Buffer>,
    /// A buffer for each output.
    pub outputs: Vec<Buffer>,
}

impl Memory {
    /// The buffers of a spec: elements of a kind in all inputs and in the outputs whose old elements are read, a
    /// pattern in the other outputs. `offsets` are the bytes by which inputs and outputs are off alignment.
    pub fn of(spec: &Spec, kind: u8, seed: u64, offsets: (usize, usize)) -> Memory {
        let input = |(i, operand): (u64, &Operand)| {
            let seed = seed.wrapping_add(i.wrapping_mul(0x5851_f42d_4c95_7f2d));
            Buffer::holding(&guarded(operand, kind, seed), offsets.0)
        };
        let output = |(o, operand): (usize, &Operand)| {
            let reads_old = spec.then().get(o).is_some_and(|f| f.uses("d"));
            let mut buffer = Buffer::new(operand.span_bytes() as usize, offsets.1);
            if reads_old {
                buffer.bytes_mut().copy_from_slice(&guarded(operand, kind, seed ^ (0xd + o as u64)));
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

    /// The outputs after the interpreter ran a program.
    pub fn interpreted_program(&self, program: &Program) -> Vec<Buffer> {
        let mut outputs = self.outputs.clone();
        // The initial contents of states do not matter.
        let bytes = |b: &ir::Buffer| vec![0xaa; (b.len * b.dtype.bytes()) as usize];
        let mut states: Vec<Vec<u8>> = program.states().iter().map(bytes).collect();
        let inputs = self.inputs.iter().map(Buffer::bytes).collect();
        let all = outputs.iter_mut().map(Buffer::bytes_mut).chain(states.iter_mut().map(Vec::as_mut_slice)).collect();
        program.interpret(&mut eval::Bits { inputs, outputs: all });
        outputs
    }

    /// The outputs after a kernel ran.
    ///
    /// # Panics
    /// If the kernel is of another spec.
    pub fn run(&self, kernel: &Kernel) -> Vec<Buffer> {
        let mut outputs = self.outputs.clone();
        let inputs = kernel.inputs().zip(&self.inputs);
        let inputs: Vec<Input> = inputs.map(|((dtype, _), b)| Input::from_bytes(dtype, b.bytes())).collect();
        let places = kernel.outputs().zip(&mut outputs);
        let mut places: Vec<Output> = places.map(|((dtype, _), b)| Output::from_bytes(dtype, b.bytes_mut())).collect();
        kernel.run(&inputs, &mut places).expect("the right buffers");
        drop(places);
        outputs
    }
}

/// Elements of a kind in their places, and in all other places NaN or all bits set, which results would show.
fn guarded(operand: &Operand, kind: u8, seed: u64) -> Vec<u8> {
    let size = operand.dtype().bytes() as usize;
    let mut bytes = elements(operand.dtype(), operand.span_elems() as usize, kind, seed);
    for (place, is_element) in marked(operand, operand.shape()).into_iter().enumerate() {
        if !is_element {
            bytes[place * size..(place + 1) * size].fill(0xff);
        }
    }
    bytes
}

/// The places of an output's elements in its buffer, in row-major order.
pub fn places(spec: &Spec, output: usize) -> Vec<usize> {
    let output = &spec.outputs()[output];
    places_in(output, output.shape())
}

/// The places of the elements with indices below these extents.
pub fn places_in(operand: &Operand, extents: &[u64]) -> Vec<usize> {
    if extents.contains(&0) {
        return vec![];
    }
    let mut places = vec![operand.origin() as i64];
    for (axis, &extent) in extents.iter().enumerate() {
        let along: Vec<i64> = (0..extent).map(|i| operand.placement().along(axis, i)).collect();
        places = places.into_iter().flat_map(|p| along.iter().map(move |a| p + a)).collect();
    }
    places.into_iter().map(|p| p as usize).collect()
}

/// For each place of a buffer, true if an element with indices below these extents lies there.
fn marked(operand: &Operand, extents: &[u64]) -> Vec<bool> {
    let mut marked = vec![false; operand.span_elems() as usize];
    places_in(operand, extents).into_iter().for_each(|place| marked[place] = true);
    marked
}

/// For each place of an output's buffer, true if an element lies there.
pub fn is_element(spec: &Spec, output: usize) -> Vec<bool> {
    marked(&spec.outputs()[output], spec.outputs()[output].shape())
}

/// For each place of an output's buffer, true if an element or padding of a block lies there.
pub fn is_written(spec: &Spec, output: usize) -> Vec<bool> {
    marked(&spec.outputs()[output], &spec.outputs()[output].placement().padded)
}
