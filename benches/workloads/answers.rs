//! Answers of a workload, and whether they are right.

use super::data::Data;
use cranefold::ir::{Nest, eval};
use cranefold::spec::{Operand, Role};
use cranefold::{Input, Kernel, Output, Scalar, Spec};
use cranefold_reference as reference;
use cranefold_reference::Exact;

/// Elements that the sample has with the reference at most, unless one slice alone has more.
const SAMPLE_ELEMS: u64 = 20_000;

/// Buffers for the outputs.
pub fn buffers(spec: &Spec) -> Vec<Vec<u8>> {
    spec.outputs().iter().map(|output| vec![0; output.span_bytes() as usize]).collect()
}

/// The data as the inputs of a call.
pub fn inputs(data: &[Data]) -> Vec<Input<'_>> {
    data.iter().map(Data::input).collect()
}

/// The data as the interpreter reads it.
pub fn bytes(data: &[Data]) -> Vec<Vec<u8>> {
    data.iter().map(|data| data.bytes(0..data.len())).collect()
}

/// Buffers as the outputs of a call.
pub fn outputs<'a>(spec: &Spec, buffers: &'a mut [Vec<u8>]) -> Vec<Output<'a>> {
    let operands = spec.outputs().iter().zip(buffers);
    operands.map(|(operand, bytes)| Output::from_bytes(operand.dtype(), bytes)).collect()
}

/// Runs the kernel.
///
/// # Panics
/// If it refuses the buffers.
pub fn run(kernel: &Kernel, inputs: &[Input<'_>], outputs: &mut [Output<'_>]) {
    kernel.run(inputs, outputs).expect("buffers of the right lengths");
}

/// Evaluates the nest that a kernel was made from.
pub fn interpret(nest: &Nest, inputs: &[Vec<u8>], outputs: &mut [Vec<u8>]) {
    let inputs = inputs.iter().map(Vec::as_slice).collect();
    let outputs = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    eval::run(nest, &mut eval::Bits { inputs, outputs });
}

/// The elements of each output in the row-major order of its shape, from its buffer.
pub fn scalars(spec: &Spec, buffers: &[Vec<u8>]) -> Vec<Vec<Scalar>> {
    let one = |(operand, bytes): (&Operand, &Vec<u8>)| {
        let along = |axis| Way::Along(operand, axis);
        let ways = (0..operand.shape().len()).map(along).collect();
        let places = Places { extents: operand.shape().into(), ways, origin: operand.origin() };
        (0..places.count()).map(|n| Scalar::read(operand.dtype(), bytes, places.at(n))).collect()
    };
    spec.outputs().iter().zip(buffers).map(one).collect()
}

/// What the reference gives for a sample of the slices.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The reduction of one slice, its elements all in a row.
    slice: Spec,
    sample: Vec<Slice>,
}

/// What one slice gives.
#[derive(Clone, Debug)]
struct Slice {
    /// The numbers of its elements in the row-major order of an output's shape: one, or one for each
    /// position of the slice. All outputs of a spec have one shape.
    numbers: Vec<usize>,
    /// Their exact results, for each output.
    outputs: Vec<Vec<Exact>>,
}

impl Expected {
    /// The expected answers of a workload: of as many slices as the sample has room for, evenly spread, the
    /// first and the last among them.
    ///
    /// # Panics
    /// If the spec has no outputs or reduces nothing.
    pub fn of(spec: &Spec, data: &[Data]) -> Expected {
        let input = |i: usize| {
            let operand = &spec.inputs()[i];
            let way = |axis| spec.input_axis(i, axis).map_or(Way::By(0), |own| Way::Along(operand, own));
            parts(spec, &(0..spec.rank()).map(way).collect::<Vec<_>>(), operand.origin())
        };
        let inputs: Vec<[Places; 2]> = (0..data.len()).map(input).collect();
        let [starts, positions] = &inputs[0];
        let slice = slice_spec(spec, positions.count());
        let numbers = numbers(spec);
        let of_slice = |number: u64| {
            let gather = |((operand, [starts, offsets]), data): ((&Operand, &[Places; 2]), &Data)| {
                let count = if *operand.role() == Role::Element { offsets.count() } else { 1 };
                data.bytes((0..count).map(|n| starts.at(number) + offsets.at(n)))
            };
            let bytes: Vec<Vec<u8>> = spec.inputs().iter().zip(&inputs).zip(data).map(gather).collect();
            let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
            let outputs = reference::reduce(&slice, &bytes).expect("buffers of the right length");
            let [starts, offsets] = &numbers;
            let numbers = (0..outputs[0].len() as u64).map(|n| starts.at(number) + offsets.at(n)).collect();
            Slice { numbers, outputs }
        };
        let last = starts.count() - 1;
        let steps = (SAMPLE_ELEMS / positions.count()).clamp(1, last.max(1));
        let chosen = if last == 0 { 0..=0 } else { 0..=steps };
        Expected { sample: chosen.map(|step| of_slice(step * last / steps)).collect(), slice }
    }

    /// Checks answers, all elements of each output in the row-major order of its shape. What may be off is
    /// allowed to differ from the exact result by that part of the greatest of the slice's results, wherever
    /// the reference's bounds are closer.
    ///
    /// # Errors
    /// The first answer that is not allowed.
    pub fn check(&self, answers: &[Vec<Scalar>], may_be_off: f64) -> Result<(), String> {
        for Slice { numbers, outputs } in &self.sample {
            for (output, (exact, answers)) in outputs.iter().zip(answers).enumerate() {
                let magnitudes = exact.iter().map(|exact| exact.round(&self.slice).as_f64().abs());
                let tolerance = magnitudes.fold(0.0, f64::max) * may_be_off;
                for (&number, exact) in numbers.iter().zip(exact) {
                    let got = answers[number];
                    let is_near = may_be_off > 0.0 && exact.error(&self.slice, got) <= tolerance;
                    match reference::check(&self.slice, exact, got) {
                        Err(mismatch) if !is_near => {
                            return Err(format!("output {output}, element {number}: {mismatch}"));
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }
}

/// The reduction of one slice, its elements all in a row; inputs that are broadcast have as many.
fn slice_spec(spec: &Spec, elems: u64) -> Spec {
    let shape = |input: usize| match spec.inputs()[input].role() {
        Role::Then => vec![],
        _ => vec![elems],
    };
    let axes = if spec.axes().is_empty() { vec![] } else { vec![0] };
    spec.to_builder().reshape(shape).axes(axes).build().unwrap_or_else(|error| panic!("a slice of {spec}: {error}"))
}

/// The numbers of a slice's elements in the row-major order of an output's shape: of each slice's first, and
/// what its others are beyond that.
fn numbers(spec: &Spec) -> [Places<'_>; 2] {
    let shape = spec.inputs()[0].shape();
    let mut next = 1;
    let mut strides = vec![0; spec.rank()];
    for axis in (0..spec.rank()).rev().filter(|&axis| spec.applies() || !spec.reduced()[axis]) {
        strides[axis] = next;
        next *= shape[axis] as i64;
    }
    parts(spec, &strides.into_iter().map(Way::By).collect::<Vec<_>>(), 0)
}

/// The places of each slice's first element, and what its others are beyond that.
fn parts<'a>(spec: &Spec, ways: &[Way<'a>], origin: u64) -> [Places<'a>; 2] {
    let shape = spec.inputs()[0].shape();
    [(false, origin), (true, 0)].map(|(reduced, origin)| {
        let axes = (0..spec.rank()).filter(|&axis| spec.reduced()[axis] == reduced);
        let (extents, ways) = axes.map(|axis| (shape[axis], ways[axis])).unzip();
        Places { extents, ways, origin }
    })
}

/// Indices of a box that is not empty, in row-major order.
struct Places<'a> {
    extents: Vec<u64>,
    ways: Vec<Way<'a>>,
    origin: u64,
}

/// How places move along an axis.
#[derive(Clone, Copy)]
enum Way<'a> {
    /// By a stride.
    By(i64),
    /// As an axis of an operand does.
    Along(&'a Operand, usize),
}

impl Places<'_> {
    fn count(&self) -> u64 {
        self.extents.iter().product()
    }

    fn at(&self, mut n: u64) -> usize {
        let mut place = self.origin as i64;
        for (&extent, way) in self.extents.iter().zip(&self.ways).rev() {
            place += match way {
                Way::By(stride) => (n % extent) as i64 * stride,
                Way::Along(operand, axis) => operand.placement().along(*axis, n % extent),
            };
            n /= extent;
        }
        place as usize
    }
}
