//! The median, of elements that are no NaN. `ndarray` has none.

use super::typed::given;
use super::walk::Along;
use super::{Walk, Ways, Work};
use cranefold::DType;

/// The ways of `median`.
pub fn ways<'a>(work: &Work, walk: &'a Walk) -> Option<Ways<'a>> {
    if (work.op.as_str(), work.dtype) != ("median", DType::F32) {
        return None;
    }
    let along = walk.along()?;
    Some([given(move |x| medians(x, along)), None])
}

/// Copies each slice to memory of its own and selects from it.
fn medians(x: &[f32], along: Along) -> Vec<f32> {
    let mut slice = vec![0.0; along.count];
    let mut medians = Vec::with_capacity(along.outside * along.inside);
    for block in x.chunks_exact(along.count * along.inside) {
        for column in 0..along.inside {
            let elements = block[column..].iter().step_by(along.inside);
            slice.iter_mut().zip(elements).for_each(|(place, x)| *place = *x);
            medians.push(median(&mut slice));
        }
    }
    medians
}

/// The middle element, or the mean of the middle two.
fn median(slice: &mut [f32]) -> f32 {
    let is_even = slice.len().is_multiple_of(2);
    let (below, upper, _) = slice.select_nth_unstable_by(slice.len() / 2, f32::total_cmp);
    if !is_even {
        return *upper;
    }
    let lower = below.iter().fold(f32::NEG_INFINITY, |m, x| m.max(*x));
    (lower + *upper) / 2.0
}
