//! Random elements for which the results of a reduction are meaningful.

use crate::buffer::Buffer;
use crate::scalars;
use cranefold::ops::Form;
use cranefold::spec::Operand;
use cranefold::{DType, Problem, Scalar, Spec};
use fastrand::Rng;

/// The way to draw the elements of an operand.
///
/// - Floats are uniform in [-1, 1), moved up by 2 / sqrt(n) (at most 1/2) for n elements per output: totals are then
///   nearly always positive, logarithms exist, and totals in f16 are finite up to 2^24.
/// - Integers are uniform over their range.
/// - If 1 is the identity element, elements are multiplied, and totals must not grow without bound: floats are +-2^e, e
///   uniform in +-4 / sqrt(n) (at most 1); integers are odd, lest the total be 0 modulo 2^64.
/// - Truth values are the identity so often that half the outputs are.
/// - Scalars, by which expressions like to divide, are in (0, 1] and integers from 1 to 16.
#[derive(Clone, Copy, Debug)]
struct Draw {
    dtype: DType,
    /// Elements per output.
    count: f64,
    /// True if the identity element is 1, or true.
    one: bool,
}

/// Fills the inputs. Elements are drawn in row-major order, so that they are the same in every layout with a place for
/// each. Gaps are filled with NaN or the limits of the type, which results would show. Elements in one place are drawn
/// once.
pub fn fill(spec: &Spec, seed: u64, inputs: &mut [Buffer]) {
    let mut rng = Rng::with_seed(seed);
    let one = has_identity_one(spec);
    for (operand, buffer) in spec.inputs().iter().zip(inputs) {
        if scalars::name(operand).is_some() {
            scalar(operand.dtype(), &mut rng).write(buffer.bytes_mut(), 0);
            continue;
        }
        let draw = Draw { dtype: operand.dtype(), count: spec.reduced_count().max(1) as f64, one };
        let extents = apart(operand);
        let count = extents.iter().fold(1, |count: u64, &extent| count.saturating_mul(extent));
        if count > operand.span_elems() {
            // Strides that overlap put several elements in most places: all places are drawn, and none is a gap.
            draw.fill(0..operand.span_elems() as usize, &mut rng, buffer.bytes_mut());
            continue;
        }
        if !operand.layout().is_row_major() {
            draw.fill_gaps(buffer.bytes_mut());
        }
        draw.fill(operand.placement().places(&extents), &mut rng, buffer.bytes_mut());
    }
}

/// Elements of buffers of which no more is known than their types: floats uniform in [-1, 1), moved up by 1/2, integers over
/// their range, and truth values.
#[derive(Debug)]
pub struct Flat(Rng);

impl Flat {
    /// The generator of a seed.
    pub fn of_seed(seed: u64) -> Flat {
        Flat(Rng::with_seed(seed))
    }

    /// Fills a buffer.
    pub fn fill(&mut self, dtype: DType, bytes: &mut [u8]) {
        let places = 0..bytes.len() / dtype.bytes() as usize;
        Draw { dtype, count: 1.0, one: false }.fill(places, &mut self.0, bytes);
    }
}

/// The extents of an operand without what a stride of 0 repeats.
fn apart(operand: &Operand) -> Vec<u64> {
    let placement = operand.placement();
    let is_cut = |axis: usize| placement.blocks.iter().any(|block| block.axis == axis);
    let extent = |(axis, (&extent, &stride)): (usize, (&u64, &i64))| {
        if stride == 0 && !is_cut(axis) { extent.min(1) } else { extent }
    };
    operand.shape().iter().zip(&placement.strides).enumerate().map(extent).collect()
}

fn scalar(dtype: DType, rng: &mut Rng) -> Scalar {
    match dtype {
        DType::Bool => Scalar::bool(rng.bool()),
        dtype if dtype.is_int() => Scalar::int(dtype, rng.i128(1..=16)),
        dtype => Scalar::float(dtype, 1.0 - rng.f64()),
    }
}

/// Returns true if 1, or true, is the identity element of some reducer, such as a product or `all`.
fn has_identity_one(spec: &Spec) -> bool {
    let reducer = Problem::of(spec).reducer_in(Form::Plain);
    let phases = reducer.as_ref().map_or(&[][..], |reducer| reducer.method.phases());
    // In a state of truth values, any number but 0 is true.
    let truth = spec.inputs()[0].dtype() == DType::Bool;
    let one = |identity: &Scalar| if truth { identity.bits() != 0 } else { identity.as_f64() == 1.0 };
    phases.first().is_some_and(|phase| phase.identity.iter().any(one))
}

impl Draw {
    /// Fills all bytes with the value of gaps.
    fn fill_gaps(self, bytes: &mut [u8]) {
        let [even, odd] = match self.dtype.int_range() {
            Some((low, high)) => [low, high].map(|limit| Scalar::int(self.dtype, limit)),
            None if self.dtype == DType::Bool => [Scalar::bool(!self.one); 2],
            None => [Scalar::nan(self.dtype); 2],
        };
        let span = bytes.len() / self.dtype.bytes() as usize;
        (0..span).for_each(|i| if i % 2 == 0 { even } else { odd }.write(bytes, i));
    }

    /// Draws an element for each of these places.
    fn fill(self, places: impl Iterator<Item = usize>, rng: &mut Rng, bytes: &mut [u8]) {
        match self.dtype {
            DType::Bool => {
                let other = 1.0 - 0.5f64.powf(1.0 / self.count);
                places.for_each(|place| bytes[place] = u8::from(self.one != (rng.f64() < other)));
            }
            dtype if dtype.is_int() => {
                let odd = u64::from(self.one);
                places.for_each(|place| Scalar::from_bits(dtype, rng.u64(..) | odd).write(bytes, place));
            }
            dtype => places.for_each(|place| Scalar::float(dtype, self.float(rng)).write(bytes, place)),
        }
    }

    fn float(self, rng: &mut Rng) -> f64 {
        let uniform = 2.0 * rng.f64() - 1.0;
        if self.one {
            let magnitude = (uniform * (4.0 / self.count.sqrt()).min(1.0)).exp2();
            if rng.bool() { magnitude } else { -magnitude }
        } else {
            uniform + (2.0 / self.count.sqrt()).min(0.5)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The elements of an input by their places, and the number of those that are not NaN.
    fn filled(text: &str) -> (Vec<f32>, usize) {
        let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let mut inputs = [Buffer::zeroed(spec.inputs()[0].span_bytes()).expect("memory")];
        fill(&spec, 7, &mut inputs);
        let elements = inputs[0].bytes().chunks_exact(4).map(|e| f32::from_ne_bytes(e.try_into().expect("four bytes")));
        let elements: Vec<f32> = elements.collect();
        let numbers = elements.iter().filter(|x| !x.is_nan()).count();
        (elements, numbers)
    }

    /// A billion elements and more would take hours to draw, but their places are few.
    #[test]
    fn what_lies_in_one_place_is_drawn_once() {
        assert_eq!(filled("max f32[1000000000000]@(0)").1, 1);
        assert_eq!(filled("max f32[1000000000,3,1000]@(0,2,0)+1 axes=[0]").1, 3);
        let (overlapping, numbers) = filled("max f32[1000000,1000000]@(1,1) axes=[1]");
        assert_eq!((overlapping.len(), numbers), (1_999_999, 1_999_999));
        assert_eq!(filled("max f32[1000000000,37]@(0,8)8b").1, 37);
    }

    #[test]
    fn layouts_that_repeat_nothing_hold_the_same_elements() {
        let (rows, _) = filled("max f32[2,3]");
        let (columns, _) = filled("max f32[2,3]@ba");
        assert_eq!(columns, [0, 3, 1, 4, 2, 5].map(|n| rows[n]));
        let (apart, numbers) = filled("max f32[2,3]@(8,-2)");
        assert_eq!(([4, 2, 0, 12, 10, 8].map(|n| apart[n]).to_vec(), numbers), (rows, 6));
    }
}
