//! The cuts of a spec's axes by the blocks of its operands.
//!
//! An axis whose extent is no multiple of a block size is cut at the end of the last whole block of that size, so a
//! spec is computed in boxes: combinations of a piece of each axis. If the block sizes do not divide one another, the
//! axis is cut at the end of each block.

use super::{Operand, Spec, SpecError};
use crate::layout::split::{cutting, most_pieces, split};

/// The most boxes of a spec: the product of the numbers of pieces of all axes.
pub const MAX_BOXES: u64 = 64;

/// The sizes of the blocks that cut each axis of the shape, the smallest first.
#[derive(Clone, Debug)]
pub struct BlockSizes {
    /// The sizes by the blocks of mapped inputs.
    pub mapped: Vec<Vec<u64>>,
    /// The sizes by the blocks of all operands.
    pub all: Vec<Vec<u64>>,
}

impl BlockSizes {
    /// The block sizes of a spec.
    pub fn of(spec: &Spec) -> BlockSizes {
        let mut found = BlockSizes { mapped: vec![vec![]; spec.rank()], all: vec![vec![]; spec.rank()] };
        if spec.inputs.iter().chain(&spec.outputs).all(|o| o.placement.blocks.is_empty()) {
            return found;
        }
        let mapped = spec.mapped();
        for (axis, &extent) in spec.shape.iter().enumerate() {
            let sizes = |o: &Operand, own: usize| o.placement.block_sizes(own).collect::<Vec<_>>();
            let input = |i: usize| spec.input_axis(i, axis).map_or(vec![], |own| sizes(&spec.inputs[i], own));
            let output = |o: usize| spec.output_axis(o, axis).map_or(vec![], |own| sizes(&spec.outputs[o], own));
            let all = (0..spec.inputs.len()).flat_map(input).chain((0..spec.outputs.len()).flat_map(output));
            found.all[axis] = cutting(extent, all);
            found.mapped[axis] = cutting(extent, mapped.iter().flat_map(|&i| input(i)));
        }
        found
    }
}

/// Checks that there are not too many boxes.
pub(super) fn check(spec: &Spec) -> Result<(), SpecError> {
    let sizes = BlockSizes::of(spec);
    let (mut parallel, mut reduced) = (1u64, 1u64);
    let mut most = (0, 0);
    for (axis, &extent) in spec.shape.iter().enumerate().filter(|(_, extent)| **extent > 0) {
        let pieces = match most_pieces(extent, &sizes.all[axis]) {
            many if many > MAX_BOXES => many,
            _ => split(0, extent, &sizes.all[axis]).len() as u64,
        };
        let boxes = if spec.reduced[axis] { &mut reduced } else { &mut parallel };
        *boxes = boxes.saturating_mul(pieces);
        most = most.max((pieces, axis));
    }
    let given = parallel.saturating_mul(reduced);
    if given > MAX_BOXES {
        return Err(SpecError::TooManyBoxes { given, pieces: most.0, axis: most.1, limit: MAX_BOXES });
    }
    Ok(())
}
