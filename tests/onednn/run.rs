//! Compiling, running and checking a spec against the reference.

use cranefold::spec::Operand;
use cranefold::{Compiler, DType, Input, Output, Scalar, Spec};
use cranefold_fuzz::data::{Buffer, elements};
use cranefold_reference as reference;
use std::collections::HashSet;
use std::sync::LazyLock;

static COMPILER: LazyLock<Compiler> = LazyLock::new(|| Compiler::host().expect("this machine"));

/// Places in a buffer: of elements in row-major order, and of the padding of blocks.
pub struct Places {
    pub elements: Vec<usize>,
    pub padding: Vec<usize>,
}

impl Places {
    pub fn of(operand: &Operand) -> Places {
        let place = |at: Vec<u64>| operand.placement().index(&at) as usize;
        let elements: Vec<usize> = indices(operand.shape()).into_iter().map(place).collect();
        let known: HashSet<usize> = elements.iter().copied().collect();
        let is_padded = !elements.is_empty() && operand.shape() != operand.placement().padded;
        let padded = if is_padded { indices(&operand.placement().padded) } else { vec![] };
        let padding = padded.into_iter().map(place).filter(|place| !known.contains(place)).collect();
        Places { elements, padding }
    }
}

/// All indices of a shape, the last fastest.
fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
    let start = vec![Vec::with_capacity(shape.len())];
    shape.iter().fold(start, |all, &extent| {
        let longer = |at: &Vec<u64>, i: u64| at.iter().copied().chain([i]).collect();
        all.iter().flat_map(|at| (0..extent).map(move |i| longer(at, i))).collect()
    })
}

/// What must not be read into a result: NaN, or the ends of an integer's range.
fn poison(dtype: DType, place: usize) -> Scalar {
    match dtype.is_float() {
        true => Scalar::from_bits(dtype, Scalar::nan(dtype).bits() | (place as u64 % 7)),
        false if place.is_multiple_of(2) => Scalar::lowest(dtype),
        false => Scalar::highest(dtype),
    }
}

/// Runs the kernel of a spec over these buffers.
pub fn run(spec: &Spec, inputs: &[Buffer], outputs: &mut [Buffer]) -> Result<(), String> {
    let kernel = COMPILER.compile(spec).map_err(|e| format!("{spec}: {e}"))?;
    let ins = spec.inputs().iter().zip(inputs);
    let ins: Vec<Input> = ins.map(|(o, b)| Input::from_bytes(o.dtype(), b.bytes())).collect();
    let outs = spec.outputs().iter().zip(outputs);
    let mut outs: Vec<Output> = outs.map(|(o, b)| Output::from_bytes(o.dtype(), b.bytes_mut())).collect();
    kernel.run(&ins, &mut outs).map_err(|e| format!("{spec}: {e}"))
}

/// Checks a spec on elements of a kind ([`elements`]), with poison in the padding of inputs and garbage in the
/// destination: every element against the reference, zeros in the destination's padding, all else as it was.
pub fn check(spec: &Spec, kind: u8, seed: u64) -> Result<(), String> {
    let mut inputs = vec![];
    for (operand, seed) in spec.inputs().iter().zip(seed..) {
        let mut bytes = elements(operand.dtype(), operand.span_elems() as usize, kind, seed * 0x9e37_79b9);
        if operand.shape() != operand.placement().padded {
            let padding = Places::of(operand).padding;
            padding.into_iter().for_each(|place| poison(operand.dtype(), place).write(&mut bytes, place));
        }
        inputs.push(Buffer::holding(&bytes, seed as usize % 16));
    }
    let output = &spec.outputs()[0];
    let places = Places::of(output);
    let old = elements(output.dtype(), output.span_elems() as usize, kind, seed ^ 0xd00d);
    let mut written = [Buffer::holding(&old, seed as usize % 5)];
    run(spec, &inputs, &mut written)?;

    let refs: Vec<&[u8]> = inputs.iter().map(Buffer::bytes).collect();
    let exact = reference::reduce_over(spec, &refs, &[&old]).map_err(|e| e.to_string())?;
    let at = |bytes: &[u8], place: usize| Scalar::read(output.dtype(), bytes, place);
    let mut expected = old.clone();
    for (n, (&place, exact)) in places.elements.iter().zip(&exact[0]).enumerate() {
        let got = at(written[0].bytes(), place);
        reference::check(spec, exact, got).map_err(|e| format!("{spec}: kind {kind}, element {n}: {e}"))?;
        got.write(&mut expected, place);
    }
    let zero = Scalar::from_bits(output.dtype(), 0);
    places.padding.iter().for_each(|&place| zero.write(&mut expected, place));
    if exact[0].len() != places.elements.len() || expected != written[0].bytes() || !written[0].guards_hold() {
        let differs = (0..output.span_elems() as usize).find(|&p| at(&expected, p) != at(written[0].bytes(), p));
        return Err(format!("{spec}: something beside the elements was written or not zeroed, {differs:?}"));
    }
    Ok(())
}

/// Collects what failed.
#[derive(Default)]
pub struct Tally {
    pub checked: usize,
    failed: Vec<String>,
}

impl Tally {
    /// As [`check`], of a kind that the number decides: every second time like magnitudes with a corner among a
    /// hundred, else bits, corners, every magnitude, small integers, or one sign.
    pub fn check(&mut self, spec: &Spec, number: u64) {
        let kind = [5, 0, 5, 1, 3, 2, 5, 4, 5, 7][number as usize % 10];
        self.checked += 1;
        self.failed.extend(check(spec, kind, number).err());
    }

    pub fn fail(&mut self, message: String) {
        self.failed.push(message);
    }

    pub fn conclude(self) -> usize {
        let few = &self.failed[..self.failed.len().min(20)];
        assert!(few.is_empty(), "{} of {} failed:\n{}", self.failed.len(), self.checked, few.join("\n"));
        self.checked
    }
}
