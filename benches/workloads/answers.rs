//! Answers of a workload, and whether they are right.

use super::data::Data;
use cranefold::ir::{Nest, eval};
use cranefold::reference::{self, Exact};
use cranefold::{Kernel, Output, Reduction, Scalar};

/// Elements that the sample has with the reference at most, unless one output alone has more.
const SAMPLE_ELEMS: u64 = 20_000;

/// Runs the kernel.
///
/// # Panics
/// If it refuses the data.
pub fn run(kernel: &Kernel, data: &Data, output: &mut [u8]) {
    let dtype = kernel.spec().outputs()[0].dtype();
    kernel.run(&[data.input()], &mut [Output::from_bytes(dtype, output)]).expect("buffers of the right lengths");
}

/// Evaluates the nest that a kernel was made from.
pub fn interpret(nest: &Nest, input: &[u8], output: &mut [u8]) {
    eval::run(nest, &mut eval::Bits { inputs: vec![input], outputs: vec![output] });
}

/// The outputs in the row-major order of their shape, from the buffer.
pub fn scalars(spec: &Reduction, output: &[u8]) -> Vec<Scalar> {
    let desc = &spec.outputs()[0];
    let places = Places { extents: desc.shape().into(), strides: desc.strides().into(), origin: desc.origin() };
    (0..places.count()).map(|n| Scalar::read(desc.dtype(), output, places.at(n))).collect()
}

/// What the reference gives for a sample of the outputs.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The reduction of one output's elements, all of them in a row.
    slice: Reduction,
    /// Numbers of outputs in the row-major order of their shape, and their exact results.
    outputs: Vec<(usize, Exact)>,
}

impl Expected {
    /// The expected answers of a workload: as many as the sample has room for, evenly spread, the first
    /// and the last output among them.
    ///
    /// # Panics
    /// If the spec has no outputs or reduces nothing.
    pub fn of(spec: &Reduction, data: &Data) -> Expected {
        let input = &spec.inputs()[0];
        let along = |reduced: bool, origin: u64| {
            let axes = (0..spec.rank()).filter(|&axis| spec.reduced()[axis] == reduced);
            let (extents, strides) = axes.map(|axis| (input.shape()[axis], input.strides()[axis])).unzip();
            Places { extents, strides, origin }
        };
        let (starts, offsets) = (along(false, input.origin()), along(true, 0));
        let slice = slice_spec(spec, offsets.count());
        let last = starts.count() - 1;
        let steps = (SAMPLE_ELEMS / offsets.count()).clamp(1, last.max(1));
        let exact = |step: u64| {
            let start = starts.at(step * last / steps);
            let bytes = data.bytes((0..offsets.count()).map(|n| start + offsets.at(n)));
            let mut exact = reference::reduce(&slice, &[&bytes]).expect("a buffer of the right length");
            ((step * last / steps) as usize, exact.remove(0).remove(0))
        };
        let steps = if last == 0 { 0..=0 } else { 0..=steps };
        Expected { outputs: steps.map(exact).collect(), slice }
    }

    /// Checks answers, all outputs in the row-major order of their shape. What may be off is allowed to
    /// differ from the exact result by that part of it, wherever the reference's bounds are closer.
    ///
    /// # Errors
    /// The first answer that is not allowed.
    pub fn check(&self, answers: &[Scalar], may_be_off: f64) -> Result<(), String> {
        self.outputs.iter().try_for_each(|(output, exact)| {
            let got = answers[*output];
            let tolerance = exact.round(&self.slice).as_f64().abs() * may_be_off;
            match reference::check(&self.slice, exact, got) {
                Err(_) if may_be_off > 0.0 && exact.error(got) <= tolerance => Ok(()),
                checked => checked.map_err(|mismatch| format!("output {output}: {mismatch}")),
            }
        })
    }
}

/// The reduction of one output's elements, all of them in a row.
fn slice_spec(spec: &Reduction, elems: u64) -> Reduction {
    let (input, output) = (spec.inputs()[0].dtype(), spec.outputs()[0].dtype());
    let text = spec.to_string();
    let is_option = |word: &&str| word.starts_with("acc=") || ["saturate", "trunc", "round_half_even"].contains(word);
    let options: Vec<&str> = text.split_whitespace().filter(is_option).collect();
    let text = format!("{} {input}[{elems}] {} -> {output}", spec.reducers()[0], options.join(" "));
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Buffer indices of a box that is not empty, in row-major order.
struct Places {
    extents: Vec<u64>,
    strides: Vec<i64>,
    origin: u64,
}

impl Places {
    fn count(&self) -> u64 {
        self.extents.iter().product()
    }

    fn at(&self, mut n: u64) -> usize {
        let mut place = self.origin as i64;
        for (&extent, &stride) in self.extents.iter().zip(&self.strides).rev() {
            place += (n % extent) as i64 * stride;
            n /= extent;
        }
        place as usize
    }
}
