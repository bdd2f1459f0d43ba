//! Interprets nests of any text that take little time and memory.

use crate::data::{Buffer, elements};
use crate::execute::Memory;
use cranefold::ir::eval::{self, Domain};
use cranefold::ir::work::visits;
use cranefold::ir::{self, BufId, BufferRole, Nest, Op, Selection};
use cranefold::{Compiler, DType, Error, Kernel, Options, Scalar};

/// The most visits of an execution.
const MOST_VISITS: u64 = 100_000;

/// The most bytes of buffers.
const MOST_BYTES: u64 = 1 << 16;

/// Returns whether a nest is interpreted soon, and in little memory.
pub(crate) fn is_small(nest: &Nest) -> bool {
    let bytes = nest.buffers.iter().map(|b| b.len.saturating_mul(b.dtype.bytes()));
    bytes.fold(0, u64::saturating_add) <= MOST_BYTES && visits(nest) <= MOST_VISITS
}

/// Interprets a nest that verifies, if it is small.
pub(crate) fn interpret(nest: &Nest) {
    // The domain's inputs come before its outputs; a nest whose buffers do not is for the verifier alone.
    if is_small(nest) && nest.buffers.is_sorted_by_key(|b| b.role != BufferRole::In) {
        Memory::of_nest(nest, 0, 1).interpreted(nest);
    }
}

impl Memory {
    /// Elements of a kind in all buffers that are read, the others of a pattern.
    pub fn of_nest(nest: &Nest, kind: u8, seed: u64) -> Memory {
        let buffer = |(n, b): (u64, &ir::Buffer)| match b.role {
            BufferRole::Out | BufferRole::Nontemporal => Buffer::new((b.len * b.dtype.bytes()) as usize, 0),
            BufferRole::In | BufferRole::InOut => {
                Buffer::holding(&elements(b.dtype, b.len as usize, kind, seed.wrapping_add(n << 32)), 0)
            }
        };
        let (inputs, outputs): (Vec<_>, Vec<_>) = (0..).zip(&nest.buffers).partition(|(_, b)| b.role == BufferRole::In);
        Memory { inputs: inputs.into_iter().map(buffer).collect(), outputs: outputs.into_iter().map(buffer).collect() }
    }
}

/// The bits of a nest, and true if some operation has operands for which its result is not specified.
struct Watched<'a> {
    bits: eval::Bits<'a>,
    leaves_open: bool,
}

impl Domain for Watched<'_> {
    type Value = Scalar;

    fn constant(&mut self, value: Scalar) -> Scalar {
        self.bits.constant(value)
    }

    fn load(&mut self, buf: BufId, dtype: DType, index: usize) -> Scalar {
        self.bits.load(buf, dtype, index)
    }

    fn store(&mut self, buf: BufId, index: usize, value: Scalar) {
        self.bits.store(buf, index, value);
    }

    fn op(&mut self, op: Op, result: DType, args: &[Scalar]) -> Scalar {
        self.leaves_open |= !op.is_specified(args);
        self.bits.op(op, result, args)
    }

    fn pick(&mut self, value: Scalar, most: u64) -> u64 {
        self.bits.pick(value, most)
    }

    fn select(&mut self, what: &Selection, dtype: DType, slice: &[Scalar]) -> Vec<Scalar> {
        self.bits.select(what, dtype, slice)
    }
}

/// The outputs after the interpreter ran a nest; `None` if the language leaves them open.
fn expected(memory: &Memory, nest: &Nest) -> Option<Vec<Buffer>> {
    let mut outputs = memory.outputs.clone();
    let inputs = memory.inputs.iter().map(Buffer::bytes).collect();
    let bits = eval::Bits { inputs, outputs: outputs.iter_mut().map(Buffer::bytes_mut).collect() };
    let mut watched = Watched { bits, leaves_open: false };
    eval::run(nest, &mut watched);
    (!watched.leaves_open).then_some(outputs)
}

/// Holds the native code of a nest that verifies against the interpreter; says whether there is any: a nest may have no
/// form on the target.
///
/// # Errors
/// As [`agrees`]; also what fails to compile in another way.
pub fn native(compiler: &Compiler, nest: &Nest, options: &Options, kind: u8, seed: u64) -> Result<bool, String> {
    let kernel = match compiler.compile_nest(nest, options) {
        Ok(kernel) => kernel,
        Err(Error::Nest(_)) => return Ok(false),
        Err(error) => return Err(format!("{options:?}: {error}")),
    };
    agrees(&kernel, nest, kind, seed).map(|()| true).map_err(|error| format!("{options:?}: {error}"))
}

/// Holds a kernel on random elements against the interpreter of its nest.
///
/// # Errors
/// Other bits, but for those of a NaN, which the language leaves open, as it does all bits where an operation has operands
/// beyond its range; bytes written beside a buffer.
pub fn agrees(kernel: &Kernel, nest: &Nest, kind: u8, seed: u64) -> Result<(), String> {
    let memory = Memory::of_nest(nest, kind, seed);
    let outputs = memory.run(kernel);
    if !outputs.iter().chain(&memory.inputs).all(Buffer::guards_hold) {
        return Err("native code writes beside a buffer".into());
    }
    let Some(expected) = expected(&memory, nest) else { return Ok(()) };
    let written = nest.buffers.iter().filter(|b| b.role != BufferRole::In);
    for (n, (buffer, (expected, output))) in written.zip(expected.iter().zip(&outputs)).enumerate() {
        let at = |bytes: &Buffer, i| Scalar::read(buffer.dtype, bytes.bytes(), i);
        let is_same =
            |a: Scalar, b: Scalar| a.bits() == b.bits() || buffer.dtype.is_float() && a.is_nan() && b.is_nan();
        if let Some(i) = (0..buffer.len as usize).find(|&i| !is_same(at(expected, i), at(output, i))) {
            let (expected, output) = (at(expected, i), at(output, i));
            return Err(format!("element {i} of output {n} is {output} and not {expected}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_beyond_a_range_leave_the_bits_open() {
        let is_open = |n: &str| {
            let text = format!("nest \"\" {{ in x0: f32[1] out x1: f32[1] x1[0] = scale_down(1.5:f32, {n}:f32) }}");
            let nest: Nest = text.parse().expect("a nest");
            expected(&Memory::of_nest(&nest, 0, 1), &nest).is_none()
        };
        assert_eq!(
            ["-190.0", "0.0", "-191.0", "1.0", "-0.5", "nan"].map(is_open),
            [false, false, true, true, true, true]
        );
    }
}
