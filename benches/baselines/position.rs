//! The first greatest element: a NaN is greater than all others.

use super::typed::{Typed, given};
use super::walk::Along;
use super::{Walk, Ways, Work, nd};
use cranefold::DType;
use half::f16;

/// The ways of `argmax` and `max,argmax`.
pub fn ways<'a>(work: &Work, walk: &'a Walk) -> Option<Ways<'a>> {
    let both = match work.op.as_str() {
        "argmax" => false,
        "max,argmax" => true,
        _ => return None,
    };
    let along = walk.along()?;
    Some(match work.dtype {
        DType::F16 => of::<f16>(both, along, walk),
        DType::F32 => of::<f32>(both, along, walk),
        DType::F64 => of::<f64>(both, along, walk),
        DType::I8 => of::<i8>(both, along, walk),
        _ => return None,
    })
}

fn of<'a, T: Typed + PartialOrd>(both: bool, along: Along, walk: &'a Walk) -> Ways<'a> {
    if both {
        [
            given(move |x: &[T]| unzip(greatest(x, along))),
            given(move |x: &[T]| unzip(nd::lanes(x, walk, |lane| first_greatest(lane.iter().copied())))),
        ]
    } else {
        [
            given(move |x: &[T]| unzip(greatest(x, along)).1),
            given(move |x: &[T]| unzip(nd::lanes(x, walk, |lane| first_greatest(lane.iter().copied()))).1),
        ]
    }
}

/// The first greatest of each output's elements, and its position.
fn greatest<T: Copy + PartialOrd>(x: &[T], along: Along) -> Vec<(T, i64)> {
    if along.inside == 1 {
        return x.chunks_exact(along.count).map(|row| first_greatest(row.iter().copied())).collect();
    }
    let mut outputs = Vec::with_capacity(along.outside * along.inside);
    for block in x.chunks_exact(along.count * along.inside) {
        let mut rows = (0..).zip(block.chunks_exact(along.inside));
        let start = outputs.len();
        outputs.extend(rows.by_ref().take(1).flat_map(|(position, row)| row.iter().map(move |&x| (x, position))));
        for (position, row) in rows {
            for (best, &x) in outputs[start..].iter_mut().zip(row) {
                if beats(x, best.0) {
                    *best = (x, position);
                }
            }
        }
    }
    outputs
}

fn first_greatest<T: Copy + PartialOrd>(elements: impl Iterator<Item = T>) -> (T, i64) {
    let mut elements = elements.zip(0..);
    let first = elements.next().expect("an element");
    elements.fold(first, |best, one| if beats(one.0, best.0) { one } else { best })
}

/// Whether an element is greater than the best before it.
fn beats<T: PartialOrd>(x: T, best: T) -> bool {
    let is_nan = |x: &T| x.partial_cmp(x).is_none();
    x > best || (is_nan(&x) && !is_nan(&best))
}

fn unzip<T>(pairs: Vec<(T, i64)>) -> (Vec<T>, Vec<i64>) {
    pairs.into_iter().unzip()
}
