//! The memory of one call, and its execution: by the interpreter or by a kernel.

use crate::data::{Buffer, Random, elements};
use cranefold::ir::eval::{self, Domain};
use cranefold::ir::{self, BufId, Nest, Op, Selection};
use cranefold::lower::program::Program;
use cranefold::spec::Operand;
use cranefold::{DType, Input, Kernel, Output, Scalar, Spec};

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
            let mut buffer = Buffer::new(operand.span_bytes() as usize, offsets.1);
            if spec.reads_old(o) {
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
        self.interpreted_over(program, &[])
    }

    /// The outputs after the interpreter ran a program in which some inputs are the memory of outputs: `over` has the
    /// output of each.
    pub fn interpreted_over(&self, program: &Program, over: &[Option<usize>]) -> Vec<Buffer> {
        let mut outputs = self.outputs.clone();
        // The initial contents of states do not matter.
        let bytes = |b: &ir::Buffer| vec![0xaa; (b.len * b.dtype.bytes()) as usize];
        let mut states: Vec<Vec<u8>> = program.states().iter().map(bytes).collect();
        let inputs = self.inputs.iter().map(Buffer::bytes).collect();
        let all = outputs.iter_mut().map(Buffer::bytes_mut).chain(states.iter_mut().map(Vec::as_mut_slice)).collect();
        program.interpret(&mut Over { bits: eval::Bits { inputs, outputs: all }, over });
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

    /// The outputs after a kernel ran with some inputs in the memory of outputs: `over` has the output of each.
    ///
    /// # Panics
    /// If the kernel is of another spec, or an output may not take the place of an input.
    pub fn run_over(&self, kernel: &Kernel, over: &[Option<usize>]) -> Vec<Buffer> {
        let mut outputs = self.outputs.clone();
        let mut inputs = vec![];
        for (((dtype, _), buffer), over) in kernel.inputs().zip(&self.inputs).zip(over) {
            inputs.push(match *over {
                Some(output) => Input::of_output(output),
                None => Input::from_bytes(dtype, buffer.bytes()),
            });
        }
        let places = kernel.outputs().zip(&mut outputs);
        let mut places: Vec<Output> = places.map(|((dtype, _), b)| Output::from_bytes(dtype, b.bytes_mut())).collect();
        kernel.run(&inputs, &mut places).expect("the right buffers, and outputs that may replace inputs");
        drop(places);
        outputs
    }

    /// The memory in which outputs that take the place of inputs hold what these hold.
    pub fn over(&self, over: &[Option<usize>]) -> Memory {
        let mut memory = self.clone();
        for (input, output) in over.iter().enumerate() {
            if let Some(output) = *output {
                memory.outputs[output] = self.inputs[input].clone();
            }
        }
        memory
    }
}

/// For each input of a spec an output that may take its place, each output once: the choice with this number.
pub fn replaced(spec: &Spec, choice: u64) -> Vec<Option<usize>> {
    let (mut random, mut taken) = (Random::new(choice), vec![]);
    let mut output_of = |input| {
        let may = |output: &usize| spec.may_replace(*output, input) && !taken.contains(output);
        let outputs: Vec<usize> = (0..spec.outputs().len()).filter(may).collect();
        let output = (!outputs.is_empty() && random.below(4) > 0).then(|| random.pick(&outputs));
        taken.extend(output);
        output
    };
    (0..spec.inputs().len()).map(&mut output_of).collect()
}

/// The domain of bits in which some inputs are the memory of outputs.
struct Over<'a> {
    bits: eval::Bits<'a>,
    over: &'a [Option<usize>],
}

impl Domain for Over<'_> {
    type Value = Scalar;

    fn constant(&mut self, value: Scalar) -> Scalar {
        self.bits.constant(value)
    }

    fn load(&mut self, buf: BufId, dtype: DType, index: usize) -> Scalar {
        let output = self.over.get(buf.0 as usize).copied().flatten();
        let buf = output.map_or(buf, |output| BufId((self.bits.inputs.len() + output) as u32));
        self.bits.load(buf, dtype, index)
    }

    fn store(&mut self, buf: BufId, index: usize, value: Scalar) {
        self.bits.store(buf, index, value);
    }

    fn op(&mut self, op: Op, result: DType, args: &[Scalar]) -> Scalar {
        self.bits.op(op, result, args)
    }

    fn pick(&mut self, value: Scalar, most: u64) -> u64 {
        self.bits.pick(value, most)
    }

    fn select(&mut self, what: &Selection, dtype: DType, slice: &[Scalar]) -> Vec<Scalar> {
        self.bits.select(what, dtype, slice)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_elements_that_are_read_are_of_the_kind() {
        for (text, read) in [
            ("region x:f32[3,5] axes=[1] { x + old(1), max(x), sum(x) + old(2) }", [false, true, true]),
            ("region x:f32[3,5] axes=[1] { s = sum(x); x, s, sum(s * old(1), axes=[0]) }", [false, true, false]),
        ] {
            let spec: Spec = text.parse().expect("a region");
            let of = |kind| Memory::of(&spec, kind, 5, (0, 0));
            for (o, (one, other)) in of(3).outputs.iter().zip(of(4).outputs).enumerate() {
                assert_eq!(one.bytes() != other.bytes(), read[o], "{text}: output {o}");
            }
        }
        let spec: Spec = "sum, max f32[3,5] axes=[1] then=\"r0 + d, r1\"".parse().expect("a spec");
        let of = |kind| Memory::of(&spec, kind, 5, (0, 0)).outputs;
        assert!(of(3)[0].bytes() != of(4)[0].bytes() && of(3)[1].bytes() == of(4)[1].bytes());
    }
}
