//! The check of results against the reference.
//!
//! The reference takes from 20 ns an element to some microseconds. It is timed on a few elements and then given a budget,
//! [`BUDGET_NS`] where no other is asked for: for all slices if that is enough, else for as many as fit, evenly spread, the first and the last
//! among them. A slice is the elements that one element of each output is reduced from; if an output is written at each
//! position of a slice, all positions are checked together.

use crate::failure::Failure;
use crate::timing;
use cranefold::ops::{OpCall, RecipeError};
use cranefold::spec::{Operand, Role};
use cranefold::{DType, Scalar, Spec, SpecError};
use cranefold_reference as reference;
use cranefold_reference::{Exact, Value};

/// The approximate time given to the reference, in ns.
pub const BUDGET_NS: f64 = 2e9;

/// The approximate time of the reference for a value of an element of a region, in ns: 900 for a sum, 2,300 for a
/// softmax.
const VALUE_NS: f64 = 1500.0;

/// The elements of the slice on which the reference is timed.
const TIMED: u64 = 4096;

/// The verdict of the reference on the outputs.
#[derive(Debug)]
pub enum Verdict {
    /// All checked elements are allowed; with the findings on each output.
    Right(Vec<Found>),
    /// An element is not allowed.
    Wrong(String),
    /// One slice takes longer than the time given to the reference.
    NotChecked {
        /// The approximate time of one slice.
        needed_ns: f64,
    },
}

/// The findings on an output.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The number of elements that were checked.
    pub checked: u64,
    /// The number of elements.
    pub elements: u64,
    /// The greatest error of a float, and its bound.
    pub worst: Option<Worst>,
    /// The number of elements without a bound, because they may overflow.
    pub unbounded: u64,
}

/// An error of a float, and its bound.
#[derive(Clone, Copy, Debug)]
pub struct Worst {
    /// The difference between the result and the exact one.
    pub error: f64,
    /// The largest error that the reduction tree allows for this element.
    pub bound: f64,
}

/// The data that a call gets.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The inputs' bytes.
    pub inputs: &'a [&'a [u8]],
    /// The bytes of the outputs before the call; of any content if they are not read.
    pub old: &'a [&'a [u8]],
}

/// Checks outputs against the reference, as many as `budget_ns` allows.
///
/// # Errors
/// If the buffers do not fit the spec; [`Failure::Check`] if the check cannot be made, which is a fault of ours.
pub fn against_reference(spec: &Spec, given: Given, outputs: &[&[u8]], budget_ns: f64) -> Result<Verdict, Failure> {
    if let Some(body) = spec.body() {
        return of_region(spec, body.definitions.len() + body.outputs.len(), given, outputs, budget_ns);
    }
    let kept: Vec<u64> = extents(spec, |(reduced, extent)| if reduced { 1 } else { extent });
    let slices = kept.iter().fold(1, |product: u64, &extent| product.saturating_mul(extent));
    let mut tally = Tally::of(spec, outputs);
    if let Some(wrong) = tally.padding() {
        return Ok(Verdict::Wrong(wrong));
    }
    let each_ns = if slices == 0 { 0.0 } else { time_of_one(spec, given)? };
    if each_ns * slices as f64 <= budget_ns {
        return Ok(tally.add_all(&reference::reduce_over(spec, given.inputs, given.old)?, &vec![0; spec.rank()], spec));
    }
    if each_ns > budget_ns {
        return Ok(Verdict::NotChecked { needed_ns: each_ns });
    }
    let one = spec_of_one(spec, u64::MAX).map_err(Failure::check)?;
    let samples = ((budget_ns / each_ns) as u64).clamp(1, slices);
    for sample in 0..samples {
        let number = u128::from(sample) * u128::from(slices - 1) / u128::from(samples.max(2) - 1);
        let at = indices(&kept, number as u64);
        let wrong = tally.add_all(&one_slice(spec, &one, given, &at)?, &at, &one);
        if matches!(wrong, Verdict::Wrong(_)) {
            return Ok(wrong);
        }
    }
    Ok(Verdict::Right(tally.found))
}

/// Checks all outputs of a region, which computes so many values of an element, or none where that takes too long: a total
/// follows from all slices.
fn of_region(spec: &Spec, values: usize, given: Given, outputs: &[&[u8]], budget_ns: f64) -> Result<Verdict, Failure> {
    let mut tally = Tally::of(spec, outputs);
    if let Some(wrong) = tally.padding() {
        return Ok(Verdict::Wrong(wrong));
    }
    let elements = spec.shape().iter().map(|&extent| extent as f64).product::<f64>();
    let needed_ns = elements * values as f64 * VALUE_NS;
    if needed_ns > budget_ns {
        return Ok(Verdict::NotChecked { needed_ns });
    }
    for (output, exact) in reference::reduce_over(spec, given.inputs, given.old)?.iter().enumerate() {
        let shape = spec.outputs()[output].shape();
        for (number, exact) in (0..).zip(exact) {
            if let Some(wrong) = tally.add(output, exact, &indices(shape, number)) {
                return Ok(Verdict::Wrong(wrong));
            }
        }
    }
    Ok(Verdict::Right(tally.found))
}

/// Returns the failure of a wrong answer: the spec's, if a combiner of it breaks its contract, else ours.
pub fn blame(spec: &Spec, wrong: String) -> Failure {
    match broken_law(spec) {
        Some(law) => Failure::Contract { law },
        None => Failure::WrongAnswer { wrong },
    }
}

/// The law that a combiner of the spec breaks, if one does; the results then depend on the order of combining.
pub fn broken_law(spec: &Spec) -> Option<String> {
    let recipe = spec.recipe();
    let types: Vec<DType> = spec.inputs().iter().map(Operand::dtype).collect();
    recipe.calls.iter().find_map(|call| match call {
        OpCall::Row { .. } => None,
        OpCall::Own(own) => match own.check(&types, recipe.accumulator) {
            Err(
                law @ (RecipeError::Identity { .. }
                | RecipeError::Associativity { .. }
                | RecipeError::Commutativity { .. }),
            ) => Some(law.to_string()),
            _ => None,
        },
    })
}

/// A value for each axis of input 0, made of its extent and of true if it is reduced.
fn extents(spec: &Spec, with: impl FnMut((bool, u64)) -> u64) -> Vec<u64> {
    spec.reduced().iter().copied().zip(spec.inputs()[0].shape().iter().copied()).map(with).collect()
}

/// The approximate time in ns that the reference takes for a slice, from the time of the first slice or of a part of
/// it.
fn time_of_one(spec: &Spec, given: Given) -> Result<f64, Failure> {
    let part = spec_of_one(spec, TIMED).map_err(Failure::check)?;
    let (_, part_ns) = timing::once_ns(|| one_slice(spec, &part, given, &vec![0; spec.rank()]))?;
    Ok(part_ns * spec.reduced_count() as f64 / part.reduced_count().max(1) as f64)
}

struct Tally<'a> {
    spec: &'a Spec,
    outputs: &'a [&'a [u8]],
    found: Vec<Found>,
}

impl<'a> Tally<'a> {
    fn of(spec: &'a Spec, outputs: &'a [&'a [u8]]) -> Tally<'a> {
        let none = |o: &Operand| Found { checked: 0, elements: o.elems(), worst: None, unbounded: 0 };
        Tally { spec, outputs, found: spec.outputs().iter().map(none).collect() }
    }

    /// The name of an output in messages.
    fn name(&self, output: usize) -> String {
        if self.outputs.len() > 1 { format!("output {output}") } else { "output".into() }
    }

    /// Checks that the padding is zero; returns a message if it is not.
    fn padding(&self) -> Option<String> {
        let wrong = |(output, operand): (usize, &'a Operand)| {
            let size = operand.dtype().bytes() as usize;
            let written =
                operand.padding().find(|&place| self.outputs[output][place * size..][..size] != [0; 8][..size]);
            written.map(|place| {
                format!(
                    "{} of `{}`: element {place} of the buffer is padding and not zero",
                    self.name(output),
                    self.spec
                )
            })
        };
        self.spec.outputs().iter().enumerate().find_map(wrong)
    }

    /// Checks the results of `part`, which is this spec from the place `at` on.
    fn add_all(&mut self, exact: &[Vec<Exact>], at: &[u64], part: &Spec) -> Verdict {
        for (output, exact) in exact.iter().enumerate() {
            let shape = part.outputs()[output].shape();
            for (number, exact) in (0..).zip(exact) {
                let within = in_axes(part, &indices(shape, number));
                let place: Vec<u64> = at.iter().zip(within).map(|(a, b)| a + b).collect();
                if let Some(wrong) = self.add(output, exact, &in_output(self.spec, &place)) {
                    return Verdict::Wrong(wrong);
                }
            }
        }
        Verdict::Right(self.found.clone())
    }

    /// Checks one element at these indices in its output; returns a message if it is wrong.
    fn add(&mut self, output: usize, exact: &Exact, at: &[u64]) -> Option<String> {
        let operand = &self.spec.outputs()[output];
        let got = Scalar::read(operand.dtype(), self.outputs[output], operand.placement().index(at) as usize);
        if let Err(mismatch) = reference::check(self.spec, exact, got) {
            return Some(format!("{} {at:?} of `{}`: {mismatch}", self.name(output), self.spec));
        }
        let found = &mut self.found[output];
        found.checked += 1;
        if let Value::Float(_) = exact.value {
            let error = Worst { error: exact.error(self.spec, got), bound: exact.error_bound(self.spec) };
            if error.bound.is_infinite() {
                found.unbounded += 1;
            } else if found.worst.is_none_or(|worst| error.error > worst.error) {
                found.worst = Some(error);
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

/// Returns true if outputs have an axis for each axis of input 0.
fn has_all_axes(spec: &Spec) -> bool {
    spec.applies() || spec.keep_dims()
}

/// The indices along the axes of input 0 of an element of an output.
fn in_axes(spec: &Spec, at: &[u64]) -> Vec<u64> {
    let mut at = at.iter().copied();
    let mut next = || at.next().expect("an index of each axis of the output");
    spec.reduced().iter().map(|&reduced| if reduced && !has_all_axes(spec) { 0 } else { next() }).collect()
}

/// The indices in an output of a place along the axes of input 0.
fn in_output(spec: &Spec, place: &[u64]) -> Vec<u64> {
    let axes = place.iter().zip(spec.reduced());
    axes.filter(|&(_, &reduced)| !reduced || has_all_axes(spec)).map(|(&index, _)| index).collect()
}

/// The exact results of the slice at `at`, or of a part of it: those of the spec `one` on copies of the elements.
fn one_slice(spec: &Spec, one: &Spec, given: Given, at: &[u64]) -> Result<Vec<Vec<Exact>>, Failure> {
    let inputs = given.inputs.iter().enumerate().map(|(i, bytes)| {
        let (whole, part) = (&spec.inputs()[i], &one.inputs()[i]);
        let mut first = vec![0; whole.shape().len()];
        for (axis, &index) in at.iter().enumerate() {
            if let Some(own) = spec.input_axis(i, axis) {
                first[own] = index;
            }
        }
        part_of(whole, bytes, &first, part.shape())
    });
    let old = given.old.iter().enumerate().map(|(o, bytes)| {
        let (whole, part) = (&spec.outputs()[o], &one.outputs()[o]);
        // The output at each position of a slice is not read; only its length matters.
        match spec.applies() {
            true => vec![0; part.span_bytes() as usize],
            false => part_of(whole, bytes, &in_output(spec, at), &vec![1; whole.shape().len()]),
        }
    });
    let (inputs, old): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (inputs.collect(), old.collect());
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let old: Vec<&[u8]> = old.iter().map(Vec::as_slice).collect();
    reference::reduce_over(one, &inputs, &old).map_err(Failure::check)
}

/// A copy, in row-major order, of `extents` elements of an operand along each axis, from the indices `first` on.
fn part_of(whole: &Operand, bytes: &[u8], first: &[u64], extents: &[u64]) -> Vec<u8> {
    let size = whole.dtype().bytes() as usize;
    let mut part = vec![];
    for place in whole.placement().places_from(first, extents) {
        part.extend_from_slice(&bytes[place * size..][..size]);
    }
    part
}

/// The same reduction of one slice, with row-major inputs: kept axes have extent 1, and the slice has at most about
/// `most` elements.
fn spec_of_one(spec: &Spec, most: u64) -> Result<Spec, SpecError> {
    let mut left = most;
    let taken = extents(spec, |(reduced, extent)| {
        let taken = if reduced { extent.min(left) } else { 1 };
        left = (left / taken.max(1)).max(1);
        taken
    });
    let shape = |input: usize| {
        let operand = &spec.inputs()[input];
        match operand.role() {
            Role::Then => vec![1; operand.shape().len()],
            _ => {
                let own = operand.shape().iter().zip(&taken[taken.len() - operand.shape().len()..]);
                own.map(|(&own, &taken)| if own == 1 { 1 } else { taken }).collect()
            }
        }
    };
    spec.to_builder().reshape(shape).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the results of each slice alone are those of all slices together.
    fn check_slices(text: &str) {
        let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let bytes = |(n, input): (usize, &Operand)| -> Vec<u8> {
            (0..input.span_bytes()).map(|i| ((i + n as u64) * 37 % 61) as u8).collect()
        };
        let inputs: Vec<Vec<u8>> = spec.inputs().iter().enumerate().map(bytes).collect();
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let old: Vec<Vec<u8>> =
            spec.outputs().iter().map(|o| (0..o.span_bytes()).map(|i| (i % 61) as u8).collect()).collect();
        let old: Vec<&[u8]> = old.iter().map(Vec::as_slice).collect();
        let given = Given { inputs: &inputs, old: &old };
        let all = reference::reduce_over(&spec, &inputs, &old).unwrap();
        let one = spec_of_one(&spec, u64::MAX).unwrap_or_else(|e| panic!("one of {text}: {e}"));
        let kept = extents(&spec, |(reduced, extent)| if reduced { 1 } else { extent });
        for number in 0..kept.iter().product() {
            let at = indices(&kept, number);
            let slice = one_slice(&spec, &one, given, &at).unwrap();
            for (output, exact) in slice.iter().enumerate() {
                let shape = spec.outputs()[output].shape();
                for (number, exact) in (0..).zip(exact) {
                    let within = in_axes(&one, &indices(one.outputs()[output].shape(), number));
                    let place: Vec<u64> = at.iter().zip(within).map(|(a, b)| a + b).collect();
                    let index = in_output(&spec, &place).iter().zip(shape).fold(0, |sum, (i, n)| sum * n + i);
                    assert_eq!(*exact, all[output][index as usize], "output {output} {place:?} of {text}");
                }
            }
        }
    }

    #[test]
    fn slices_alone_are_as_all_together() {
        for text in [
            "sum f32[3,4,5] axes=[1]",
            "mean f16[3,4,5]@cab axes=[0,2] acc=f64 -> f32",
            "sum i8[3,4,5]@(20,-5,1) axes=[1,2] keep_dims saturate -> i16",
            "mean i32[3,4,5]@(0,5,1) axes=[0,1] round_half_even -> @(2)",
            "lp_max(p=3,eps=1e-6) f32[3,4,5] axes=[2]",
            "l1 i16[3,4] axes=[] empty_axes=lift",
            "max f64[3,4] axes=[]",
            "sum f32[6] axes=[0] trunc -> i32",
            "any bool[3,4] axes=[0]",
            "max,argmax f32[3,40] axes=[1]",
            "var(ddof=1) f16[4,5] axes=[1] keep_dims",
            r#"sum f32[3,4,5], f32[4,1] axes=[1] map="x0*x1""#,
            r#"mean f32[3,4], f32[3]@(-1):then axes=[1] scalar k:i8 then="max(r0, f32(k)) + y0""#,
            r#"sum i32[3,5]@ba axes=[1] then="r0 / 2 + d" -> i16@(-2)"#,
            r#"min,max f32[3,4] axes=[0] keep_dims then="r0, r1 * d" -> f32, f64@ba"#,
            r#"sum f32[5,6], f32[1,1]:then axes=[1] keep_dims then="r0 + y0""#,
            r#"max f16[2,5,6]@cab, f32[2,1,6]@cab:then axes=[1] keep_dims then="r0 * y0 + d" -> f32@cab"#,
            "softmax f32[3,10]@ba axes=[1]",
            r#"sum f32[3,10] axes=[0] apply="x0 / r0" -> f64@(-10,1)"#,
            "layer_norm f32[3,10], f32[10], f32[3,1] axes=[1]",
            "sum f32[3,20,4]@aBc16b axes=[2] -> @any",
            "mean i8[3,20,4]@BAc4b2a4b+5 axes=[0,1] keep_dims -> f32@any",
            r#"max f16[3,20,4]@aBc8b, f16[20,1]@Ab8a axes=[1] map="x0*x1""#,
            r#"sum f32[3,20]@(100,16)8b+3, f32[3]@A2a:then axes=[1] then="r0 + d * y0" -> @A2a+4"#,
            "softmax f32[3,20]@Ba8b axes=[1] -> @aB16b",
            r#"combiner(identity="0, i64(0)", lift="x0, i", combine="a0+b0, b1") f32[3,4] axes=[1]"#,
        ] {
            check_slices(text);
        }
    }

    /// The spec of one slice is the same but for extents and layouts.
    #[test]
    fn one_slice_of_every_kind_of_spec() {
        for (text, one) in [
            ("max,argmax f32[32,1000] axes=[1]", "max, argmax f32[1,1000] axes=[1]"),
            ("argmax(last) i8[4,5] axes=[0] -> i32", "argmax(last) i8[4,1] axes=[0] -> i32"),
            ("var(ddof=1) f16[4,5] axes=[1] keep_dims", "var(ddof=1) f16[1,5] axes=[1] keep_dims"),
            (
                "sum f32[5,6]@ba, f32[1,1]:then axes=[1] keep_dims then=\"r0 + y0\" -> f64@ba",
                "sum f32[1,6], f32[1,1]:then axes=[1] keep_dims then=\"r0 + y0\" -> f64",
            ),
            ("sum f32[64,512], f32[512] axes=[1] map=\"x0*x1\"", "sum f32[1,512], f32[512] axes=[1] map=\"x0 * x1\""),
            ("sum f32[4,8], f32[4,1] axes=[1] map=\"x0*x1\"", "sum f32[1,8], f32[1,1] axes=[1] map=\"x0 * x1\""),
            (
                "mean f32[32,768], f32[32]:then axes=[1] scalar eps:f32 then=\"max(r0, eps) + y0\"",
                "mean f32[1,768], f32[1]:then axes=[1] scalar eps:f32 then=\"max(r0, eps) + y0\"",
            ),
            ("sum i32[4,5] axes=[1] then=\"r0 / 2 + d\" -> i16", "sum i32[1,5] axes=[1] then=\"r0 / 2 + d\" -> i16"),
            ("softmax f32[8,100] axes=[1]", "softmax f32[1,100] axes=[1]"),
            ("layer_norm f32[8,10], f32[10], f32[8,1] axes=[1]", "layer_norm f32[1,10], f32[10], f32[1,1] axes=[1]"),
            ("sum f32[8,100] axes=[1] apply=\"x0 / r0\"", "sum f32[1,100] axes=[1] apply=\"x0 / r0\""),
            ("count_nonzero bool[4,5]", "count_nonzero bool[4,5]"),
            ("bit_xor u8[4,5] axes=[]", "bit_xor u8[1,1] axes=[]"),
            (
                "combiner(identity=\"0\",lift=\"x0\",combine=\"a0+b0\"), sum f32[4,5] axes=[1] -> f32, f64",
                "combiner(identity=\"0\", lift=\"x0\", combine=\"a0 + b0\"), sum f32[1,5] axes=[1] -> f32, f64",
            ),
        ] {
            let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            let part = spec_of_one(&spec, u64::MAX).unwrap_or_else(|e| panic!("one of {text}: {e}"));
            assert_eq!(part.to_string(), one, "{text}");
            assert_eq!(part.accumulator(), spec.accumulator(), "{text}");
            spec_of_one(&spec, 3).unwrap_or_else(|e| panic!("a part of one of {text}: {e}"));
        }
    }
}
