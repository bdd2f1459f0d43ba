//! Results against the reference.
//!
//! The reference takes from 20 ns an element to some microseconds, so it is timed on a few of them and
//! then given [`BUDGET_NS`]: for all outputs where that is enough, else for as many as fit, evenly
//! spread, the first and the last among them.

use crate::failure::Failure;
use crate::strided::Placed;
use crate::timing;
use cranefold::reference::{self, Exact, Value};
use cranefold::{Layout, Reduction, Scalar, SpecError};

/// How long the reference may take, about.
pub const BUDGET_NS: f64 = 2e9;

/// Elements that it is timed on.
const TIMED: u64 = 4096;

/// What the reference says of the first output's elements.
#[derive(Debug)]
pub enum Verdict {
    /// All that were looked at are allowed.
    Right {
        /// How many were looked at.
        checked: u64,
        /// How many there are.
        outputs: u64,
        /// The greatest error of a float, and how large it may be.
        worst: Option<Worst>,
        /// Outputs for which there is no bound, for they may overflow.
        unbounded: u64,
    },
    /// An element is not allowed.
    Wrong(String),
    /// One output alone takes longer than the reference is given.
    NotChecked {
        /// How long that would be, about.
        needed_ns: f64,
    },
}

/// An error.
#[derive(Clone, Copy, Debug)]
pub struct Worst {
    /// Of the result to the exact one.
    pub error: f64,
    /// The largest that the reduction tree allows there.
    pub bound: f64,
}

/// Holds outputs against the reference.
///
/// # Errors
/// If the buffers do not fit the spec.
pub fn against_reference(spec: &Reduction, inputs: &[&[u8]], outputs: &[&[u8]]) -> Result<Verdict, Failure> {
    let operand = &spec.outputs()[0];
    let count = operand.elems();
    let got = |at: &[u64]| Scalar::read(operand.dtype(), outputs[0], Placed::of(operand).index(at) as usize);
    let mut tally = Tally { spec, worst: None, unbounded: 0 };
    let each_ns = if count == 0 { 0.0 } else { time_of_one(spec, inputs[0])? };
    if each_ns * count as f64 <= BUDGET_NS {
        for (number, exact) in (0..).zip(&reference::reduce(spec, inputs)?[0]) {
            let at = indices(operand.shape(), number);
            if let Some(wrong) = tally.add(exact, got(&at), &at) {
                return Ok(Verdict::Wrong(wrong));
            }
        }
        return Ok(tally.verdict(count, count));
    }
    if each_ns > BUDGET_NS {
        return Ok(Verdict::NotChecked { needed_ns: each_ns });
    }
    let one = spec_of_one(spec, u64::MAX)?;
    let checked = ((BUDGET_NS / each_ns) as u64).clamp(1, count);
    for sample in 0..checked {
        let number = u128::from(sample) * u128::from(count - 1) / u128::from(checked.max(2) - 1);
        let at = indices(operand.shape(), number as u64);
        let exact = one_output(spec, &one, inputs[0], &at)?;
        if let Some(wrong) = tally.add(&exact, got(&at), &at) {
            return Ok(Verdict::Wrong(wrong));
        }
    }
    Ok(tally.verdict(checked, count))
}

/// About how long the reference takes for an output: the time for the first, or for a part of what it is
/// reduced from, in proportion.
fn time_of_one(spec: &Reduction, bytes: &[u8]) -> Result<f64, Failure> {
    let part = spec_of_one(spec, TIMED)?;
    let first = vec![0; spec.outputs()[0].shape().len()];
    let (_, part_ns) = timing::once_ns(|| one_output(spec, &part, bytes, &first))?;
    Ok(part_ns * spec.reduced_count() as f64 / part.reduced_count().max(1) as f64)
}

struct Tally<'a> {
    spec: &'a Reduction,
    worst: Option<Worst>,
    unbounded: u64,
}

impl Tally<'_> {
    fn verdict(self, checked: u64, outputs: u64) -> Verdict {
        Verdict::Right { checked, outputs, worst: self.worst, unbounded: self.unbounded }
    }

    /// Checks one output; says what is wrong with it.
    fn add(&mut self, exact: &Exact, got: Scalar, at: &[u64]) -> Option<String> {
        if let Err(mismatch) = reference::check(self.spec, exact, got) {
            return Some(format!("output {at:?} of `{}`: {mismatch}", self.spec));
        }
        if let Value::Float(_) = exact.value {
            let found = Worst { error: exact.error(got), bound: exact.error_bound(self.spec) };
            if found.bound.is_infinite() {
                self.unbounded += 1;
            } else if self.worst.is_none_or(|worst| found.error > worst.error) {
                self.worst = Some(found);
            }
        }
        None
    }
}

/// The indices of an element by its number in row-major order.
fn indices(shape: &[u64], mut number: u64) -> Vec<u64> {
    let mut at = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        at[axis] = number % shape[axis];
        number /= shape[axis];
    }
    at
}

/// The exact result of the output element `at`, or of a part of what it is reduced from: of `one` on the
/// input's bytes from there on.
fn one_output(spec: &Reduction, one: &Reduction, bytes: &[u8], at: &[u64]) -> Result<Exact, Failure> {
    let (whole, part) = (&spec.inputs()[0], &one.inputs()[0]);
    let mut kept = at.iter();
    let mut start = whole.origin() as i64;
    for (axis, &reduced) in spec.reduced().iter().enumerate() {
        let index = if reduced && !spec.keep_dims() { 0 } else { *kept.next().expect("an index of each kept axis") };
        start += index as i64 * whole.strides()[axis];
    }
    let size = whole.dtype().bytes();
    // An input without elements has no place that the start could be.
    let first = if part.span_elems() == 0 { 0 } else { (start as u64 - part.origin()) * size };
    let bytes = &bytes[first as usize..][..part.span_bytes() as usize];
    Ok(reference::reduce(one, &[bytes])?.swap_remove(0).swap_remove(0))
}

/// The same reduction for one output element: with extent 1 along the axes that are kept, and of at most
/// about `most` elements.
fn spec_of_one(spec: &Reduction, most: u64) -> Result<Reduction, SpecError> {
    let (input, row) = (&spec.inputs()[0], spec.row());
    let mut left = most;
    let extents = input.shape().iter().zip(spec.reduced()).map(|(&extent, &reduced)| {
        let taken = if reduced { extent.min(left) } else { 1 };
        left = (left / taken.max(1)).max(1);
        taken
    });
    let output = spec.outputs()[0].dtype();
    let mut builder = Reduction::builder(row.name)
        .input_at(input.dtype(), &extents.collect::<Vec<_>>(), Layout::strides(input.strides()))
        .axes(spec.axes().into_iter().map(|axis| axis as i64))
        .output(output);
    for (param, value) in row.params.iter().zip(spec.params()) {
        builder = builder.param(param.name, value);
    }
    if let Some(accumulator) = spec.accumulator() {
        builder = builder.accumulator(accumulator);
    }
    if spec.saturate() {
        builder = builder.saturate();
    }
    if output.is_int() {
        builder = builder.round(spec.rounding());
    }
    if spec.axes().is_empty() && !spec.is_identity() && row.identity_over_no_axes {
        builder = builder.empty_axes_lift();
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_alone_are_as_all_together() {
        let specs = [
            "sum f32[3,4,5] axes=[1]",
            "mean f16[3,4,5]@cab axes=[0,2] acc=f64 -> f32",
            "sum i8[3,4,5]@(20,-5,1) axes=[1,2] keep_dims saturate -> i16",
            "mean i32[3,4,5]@(0,5,1) axes=[0,1] round_half_even -> @(2)",
            "lp_max(p=3,eps=1e-6) f32[3,4,5] axes=[2]",
            "l1 i16[3,4] axes=[] empty_axes=lift",
            "max f64[3,4] axes=[]",
            "sum f32[6] axes=[0] trunc -> i32",
            "any bool[3,4] axes=[0]",
        ];
        for text in specs {
            let spec: Reduction = text.parse().unwrap();
            let bytes: Vec<u8> = (0..spec.inputs()[0].span_bytes()).map(|i| (i * 37 % 61) as u8).collect();
            let all = reference::reduce(&spec, &[&bytes]).unwrap().remove(0);
            for (number, exact) in (0..).zip(all) {
                let at = indices(spec.outputs()[0].shape(), number);
                let one = one_output(&spec, &spec_of_one(&spec, u64::MAX).unwrap(), &bytes, &at).unwrap();
                assert_eq!(one, exact, "output {at:?} of {text}");
            }
        }
    }
}
