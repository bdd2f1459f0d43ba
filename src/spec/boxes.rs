//! How blocks of a request's operands cut its axes.
//!
//! An axis is cut where a block of an operand ends that its extent is no multiple of, so a request is
//! computed in boxes: combinations of a part of each axis.

use super::{Operand, Reduction, SpecError};
use crate::layout::split::{chain, split};

/// The most boxes of a request: of parallel axes times those of reduced ones.
const MAX_BOXES: u64 = 64;

/// For each axis of input 0 the sizes of blocks that cut it, the smallest first.
#[derive(Clone, Debug)]
pub(crate) struct Cuts {
    /// Of mapped inputs.
    pub mapped: Vec<Vec<u64>>,
    /// Of all operands.
    pub all: Vec<Vec<u64>>,
}

impl Cuts {
    /// The cuts of a request.
    ///
    /// # Errors
    /// Blocks on one axis of which the smaller does not divide the larger.
    pub fn of(spec: &Reduction) -> Result<Cuts, SpecError> {
        let mut cuts = Cuts { mapped: vec![vec![]; spec.rank()], all: vec![vec![]; spec.rank()] };
        if spec.inputs.iter().chain(&spec.outputs).all(|o| o.placement.blocks.is_empty()) {
            return Ok(cuts);
        }
        let mapped = spec.mapped();
        for (axis, &extent) in spec.inputs[0].shape.iter().enumerate() {
            let sizes = |o: &Operand, own: usize| o.placement.block_sizes(own).collect::<Vec<_>>();
            let input = |i: usize| spec.input_axis(i, axis).map_or(vec![], |own| sizes(&spec.inputs[i], own));
            let output = |o: &Operand| spec.output_axis(axis).map_or(vec![], |own| sizes(o, own));
            let all = (0..spec.inputs.len()).flat_map(input).chain(spec.outputs.iter().flat_map(output));
            let crossed = |(first, second)| SpecError::BlocksCross { axis, first, second };
            cuts.all[axis] = chain(extent, all).map_err(crossed)?;
            cuts.mapped[axis] = chain(extent, mapped.iter().flat_map(|&i| input(i))).map_err(crossed)?;
        }
        Ok(cuts)
    }
}

/// Checks that blocks fit into one another, and that there are not too many boxes.
pub(super) fn check(spec: &Reduction) -> Result<(), SpecError> {
    let cuts = Cuts::of(spec)?;
    let (mut parallel, mut reduced) = (1u64, 1u64);
    for (axis, &extent) in spec.inputs[0].shape.iter().enumerate() {
        let parts = split(0, extent, &cuts.all[axis]).len() as u64;
        let boxes = if spec.reduced[axis] { &mut reduced } else { &mut parallel };
        *boxes = boxes.saturating_mul(parts.max(1));
    }
    let given = parallel.saturating_mul(reduced);
    if given > MAX_BOXES {
        return Err(SpecError::TooManyBoxes { given, limit: MAX_BOXES });
    }
    Ok(())
}
