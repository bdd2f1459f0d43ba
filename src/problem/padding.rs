//! The padding of outputs: the elements of layout blocks beyond the extents of their axes.

use super::Padding;
use crate::layout::split::{Piece, cutting, split};
use crate::spec::{Operand, Spec};

/// The boxes of padding of all outputs.
///
/// In the box of an axis, that axis is beyond its extent, the axes before it are within theirs, and those after it are
/// anywhere.
pub(super) fn of(spec: &Spec) -> Vec<Padding> {
    let outputs = spec.outputs().iter().enumerate().filter(|(_, o)| o.span_elems() > 0);
    outputs.flat_map(|(output, o)| (0..o.shape().len()).flat_map(move |axis| beyond(output, o, axis))).collect()
}

fn beyond(output: usize, operand: &Operand, axis: usize) -> Vec<Padding> {
    let placement = operand.placement();
    if placement.padded[axis] == operand.shape()[axis] {
        return vec![];
    }
    let whole = Padding { output, start: operand.origin() as i64, dims: vec![] };
    let boxes = (0..operand.shape().len()).fold(vec![whole], |boxes, at| {
        let (extent, padded) = (operand.shape()[at], placement.padded[at]);
        let (low, high) = match at.cmp(&axis) {
            std::cmp::Ordering::Less => (0, extent),
            std::cmp::Ordering::Equal => (extent, padded),
            std::cmp::Ordering::Greater => (0, padded),
        };
        let pieces = split(low, high, &cutting(u64::MAX, placement.block_sizes(at)));
        let with = |padding: &Padding, piece: &Piece| {
            let mut padding = padding.clone();
            padding.start += placement.along(at, piece.start);
            padding.dims.extend(piece.digits.iter().map(|&(extent, by)| (extent, placement.along(at, by))));
            padding
        };
        boxes.iter().flat_map(|padding| pieces.iter().map(move |piece| with(padding, piece))).collect()
    });
    boxes.into_iter().map(canonical).collect()
}

/// The padding walked forwards, with the largest stride outermost and neighbours merged.
fn canonical(mut padding: Padding) -> Padding {
    let mut dims: Vec<(u64, i64)> = vec![];
    padding.dims.retain(|&(extent, _)| extent > 1);
    for (extent, stride) in &mut padding.dims {
        if *stride < 0 {
            padding.start += *stride * (*extent as i64 - 1);
            *stride = -*stride;
        }
    }
    padding.dims.sort_by_key(|&(_, stride)| std::cmp::Reverse(stride));
    for (extent, stride) in padding.dims {
        match dims.last_mut() {
            Some((outer, by)) if stride.checked_mul(extent as i64) == Some(*by) => {
                (*outer, *by) = (*outer * extent, stride)
            }
            _ => dims.push((extent, stride)),
        }
    }
    Padding { dims, ..padding }
}
