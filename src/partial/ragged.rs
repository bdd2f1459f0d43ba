//! Ranges of the first reduced axis, which end anywhere: the units that states count, and the elements that they carry raw.
//!
//! A state counts its range in units. A unit is a block, or, where the ends of blocks lie inside the first reduced dim, a
//! position of that dim. A range of positions is the rest of a block that began before it (the head), whole blocks, and the
//! start of a block that goes on after it (the tail). Head and tail travel raw, as elements of the inputs:
//!
//! ```text
//! block      0         1         2         3
//!        |---------|---------|---------|------|
//! shards |-----|-----------------|------------|
//!         tail  head  1     tail  head  3
//! ```
//!
//! In a fragment an input is a row-major array like that of the shard: its outer dims, so many positions, its inner dims. An
//! input that is broadcast along the axis is whole in every fragment.

use crate::error::Error;
use crate::kernel::Input;
use crate::lower::Counted;
use crate::problem::tree::Tree;
use crate::problem::{Offsets, Problem};
use crate::spec::{Order, Spec};
use cranefold_ir::{Buffer, DType};
use std::ops::Range;

/// The first reduced axis of extent above 1, and the dim of the problem that it lies in.
#[derive(Clone, Debug)]
pub(super) struct Along {
    /// The axis, and its extent.
    pub axis: usize,
    pub extent: u64,
    /// The positions of the dim in an index of the axis: the extents of the reduced axes right after it.
    per_index: u64,
    /// The units in a position.
    per_position: u64,
}

/// The units of a state's range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Units {
    /// The number of all units.
    pub all: u64,
    /// The units of a block; the last may have fewer.
    pub block: u64,
}

/// An input in a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawInput {
    /// The number of the input.
    pub input: usize,
    /// Bytes of the elements of one outer position, for each unit, or of all where the input is broadcast.
    run_bytes: u64,
    /// The number of outer positions.
    outer: u64,
    /// True if the input has an element for each unit.
    pub moves: bool,
}

/// The parts of a range of units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub head: Range<u64>,
    pub blocks: Range<u64>,
    pub tail: Range<u64>,
}

impl Units {
    /// The parts of a range. A range inside one block is a head, unless it begins the block.
    pub fn split(&self, range: &Range<u64>) -> Split {
        let block_at = |unit: u64| unit / self.block;
        let start_of = |block: u64| block.saturating_mul(self.block).min(self.all);
        let first = range.start.div_ceil(self.block);
        let end = if range.end == self.all { self.all.div_ceil(self.block) } else { block_at(range.end) };
        if range.is_empty() {
            return Split { head: 0..0, blocks: 0..0, tail: 0..0 };
        }
        if end < first {
            return Split { head: range.clone(), blocks: 0..0, tail: 0..0 };
        }
        let (head, tail) = (range.start..start_of(first), start_of(end)..range.end);
        let some = |part: Range<u64>| if part.is_empty() { 0..0 } else { part };
        Split { head: some(head), blocks: some(first..end), tail: some(tail) }
    }

    /// The units of a range of blocks.
    pub fn of_blocks(&self, blocks: &Range<u64>) -> Range<u64> {
        let at = |block: u64| block.saturating_mul(self.block).min(self.all);
        if blocks.is_empty() { 0..0 } else { at(blocks.start)..at(blocks.end) }
    }

    /// The number of a fragment's block.
    pub fn block_of(&self, fragment: &Range<u64>) -> u64 {
        fragment.start / self.block
    }

    /// Returns true if a fragment is a whole block.
    pub fn is_block(&self, fragment: &Range<u64>) -> bool {
        let block = self.block_of(fragment);
        *fragment == self.of_blocks(&(block..block + 1))
    }

    /// The most units of a head and of a tail.
    pub fn most_raw(&self) -> (u64, u64) {
        let most = self.block.min(self.all).saturating_sub(1);
        (most, if self.block < self.all { most } else { 0 })
    }
}

/// The axis that ranges are of and the units, or the reason why ranges of elements have no states.
pub(super) fn along(spec: &Spec, problem: &Problem, tree: Option<&Tree>) -> Result<(Along, Units), String> {
    if spec.order() != Order::Logical {
        return Err("its order is that of memory: ask for `order=logical`".into());
    }
    if !is_dense(spec) {
        return Err("an operand has a layout: write shapes alone, and give each shard as a row-major array".into());
    }
    let axes = spec.axes();
    let Some(axis) = axes.iter().copied().find(|&axis| spec.shape()[axis] > 1).or(axes.first().copied()) else {
        return Err("it reduces no axis".into());
    };
    let run = axes.iter().copied().filter(|&a| a >= axis).enumerate().take_while(|&(n, a)| a == axis + n);
    let per_index = run.skip(1).map(|(_, a)| spec.shape()[a]).product();
    let extent = spec.shape()[axis];
    let Some((tree, walk)) = tree.zip(problem.walks.first()) else {
        return Ok((Along { axis, extent, per_index, per_position: 0 }, Units { all: 0, block: 1 }));
    };
    let [grid] = tree.grids.as_slice() else { return Err("its slices are several boxes".into()) };
    let positions = extent * per_index;
    let first = walk.elements[0].dims.first().map_or(1, |dim| dim.extent);
    assert_eq!(first, positions, "the first dim of a walk by shape is the first run of reduced axes");
    let innermost = grid.steps.len() == 1;
    let (per_position, units) = if tree.is_one_block() {
        (1, Units { all: positions, block: positions })
    } else if grid.cut == 0 {
        (1, Units { all: positions, block: grid.block * if innermost { tree.lanes } else { 1 } })
    } else {
        (grid.blocks_inside(0), Units { all: grid.blocks(), block: 1 })
    };
    Ok((Along { axis, extent, per_index, per_position }, units))
}

/// Returns true if every operand is row-major without gaps.
pub(super) fn is_dense(spec: &Spec) -> bool {
    let shapes: Vec<Vec<u64>> = spec.inputs().iter().map(|o| o.shape().to_vec()).collect();
    let dense = spec.to_builder().reshape(|input| shapes[input].clone()).build();
    let same = |dense: Spec| {
        let operands = |spec: &Spec| spec.inputs().iter().chain(spec.outputs()).cloned().collect::<Vec<_>>();
        operands(spec).iter().zip(operands(&dense)).all(|(a, b)| a.placement() == b.placement())
    };
    dense.is_ok_and(same)
}

impl Along {
    /// Checks that a range is within the axis.
    pub fn check(&self, range: &Range<u64>) -> Result<(), Error> {
        let Along { axis, extent, .. } = *self;
        match range.start <= range.end && range.end <= extent {
            true => Ok(()),
            false => Err(Error::NoShard {
                axis,
                given: range.clone(),
                extent,
                why: "the range is not within the axis".into(),
            }),
        }
    }

    /// The axis with positions as units.
    pub fn of_positions(&self) -> Along {
        Along { per_position: 1, ..self.clone() }
    }

    /// The units of a range of positions.
    pub fn of(&self, positions: &Range<u64>) -> Range<u64> {
        positions.start * self.per_position..positions.end * self.per_position
    }

    /// The positions of the dim in a range of the axis.
    pub fn positions(&self, range: &Range<u64>) -> Range<u64> {
        range.start * self.per_index..range.end * self.per_index
    }

    /// The units in a range of the axis.
    pub fn units(&self, range: &Range<u64>) -> Range<u64> {
        self.of(&self.positions(range))
    }

    /// The range of the axis that has these units.
    pub fn indices(&self, units: &Range<u64>) -> Range<u64> {
        let each = (self.per_index * self.per_position).max(1);
        units.start / each..units.end.div_ceil(each)
    }

    /// The position that a unit lies in, and the units of that before it.
    pub fn position_of(&self, unit: u64) -> (u64, u64) {
        let each = self.per_position.max(1);
        (unit / each, unit % each)
    }

    /// The elements of an input's array in so many positions of one outer position.
    pub fn elems_before(&self, problem: &Problem, input: usize, positions: u64) -> u64 {
        self.inner(problem, input).map_or(0, |inner| inner * positions)
    }

    /// The number of all positions.
    pub fn all(&self) -> u64 {
        self.extent * self.per_index
    }

    /// The elements that an input has inside one position; `None` if it is broadcast along the axis.
    fn inner(&self, problem: &Problem, input: usize) -> Option<u64> {
        problem.elements().first()?;
        match self.stride(problem) {
            Some(stride) => Some(stride.inputs[input].unsigned_abs()).filter(|&stride| stride > 0),
            // A dim of one position may count as the outermost.
            None => Some(problem.inputs[input].operand.len),
        }
    }

    /// The distance from a position to the next; `None` if there is but one.
    fn stride<'p>(&self, problem: &'p Problem) -> Option<&'p Offsets> {
        let dim = problem.elements().first()?.dims.first().filter(|_| self.all() > 1);
        dim.map(|dim| &dim.stride)
    }

    /// The numbers that count along the positions: those of elements, and indices that a region reads.
    pub fn counted(&self, problem: &Problem) -> Counted {
        let Some(stride) = self.stride(problem) else { return Counted::default() };
        let indices = problem.inputs.len()..problem.inputs.len() + problem.indices.len();
        Counted {
            position: problem.takes_position && stride.position != 0,
            indices: indices.filter(|&index| stride.inputs[index] != 0).collect(),
        }
    }

    /// The values of these numbers at a position, in the order of their buffers.
    pub fn numbers_at(&self, problem: &Problem, counted: &Counted, position: u64) -> Vec<Input<'static>> {
        let Some(stride) = self.stride(problem) else { return vec![] };
        let position_stride = counted.position.then_some(stride.position);
        let strides = position_stride.into_iter().chain(counted.indices.iter().map(|&index| stride.inputs[index]));
        let number = |(buffer, stride): (Buffer, i64)| match stride * position as i64 {
            number if buffer.dtype == DType::I32 => Input::scalar(number as i32),
            number => Input::scalar(number),
        };
        counted.buffers(problem).into_iter().zip(strides).map(number).collect()
    }

    /// The problem on arrays that hold a range of positions, and not all, with the numbers that count along them counted
    /// from the position `first` on.
    pub fn on(&self, problem: &Problem, positions: &Range<u64>, first: u64) -> Problem {
        let mut part = problem.clone();
        if self.all() <= 1 {
            return part;
        }
        let counted = self.counted(problem);
        for elements in part.walks.iter_mut().flat_map(|walk| &mut walk.elements) {
            let (start, stride) = (&mut elements.start, &elements.dims[0].stride);
            start.position -= stride.position * first as i64;
            counted.indices.iter().for_each(|&index| start.inputs[index] -= stride.inputs[index] * first as i64);
        }
        let count = (positions.end - positions.start) as i64;
        for input in 0..problem.inputs.len() {
            let Some(inner) = self.inner(problem, input) else { continue };
            let whole = (inner * self.all()) as i64;
            let outer = part.slices.iter_mut().flat_map(|slices| &mut slices.dims);
            let outer = outer.filter(|dim| dim.stride.inputs[input] >= whole);
            outer.for_each(|dim| dim.stride.inputs[input] = dim.stride.inputs[input] / whole * inner as i64 * count);
            for elements in part.walks.iter_mut().flat_map(|walk| &mut walk.elements) {
                // Only inputs that the walk reads move along it.
                let stride = elements.dims[0].stride.inputs[input];
                elements.start.inputs[input] -= stride * positions.start as i64;
            }
        }
        part
    }

    /// The elements of an input's array for a range of positions.
    pub fn elems(&self, problem: &Problem, input: usize, positions: &Range<u64>) -> u64 {
        let len = problem.inputs[input].operand.len;
        match self.inner(problem, input) {
            Some(_) if self.all() > 0 => len / self.all() * (positions.end - positions.start),
            _ => len,
        }
    }

    /// The inputs in a fragment.
    pub fn raw(&self, problem: &Problem) -> Vec<RawInput> {
        let raw = |input: usize| {
            let operand = &problem.inputs[input].operand;
            match self.inner(problem, input) {
                Some(inner) if self.all() > 0 => {
                    let outer = operand.len / (inner * self.all()).max(1);
                    RawInput { input, run_bytes: inner * operand.dtype.bytes(), outer, moves: true }
                }
                _ => RawInput { input, run_bytes: operand.len * operand.dtype.bytes(), outer: 1, moves: false },
            }
        };
        problem.reduced_inputs().into_iter().map(raw).collect()
    }
}

impl RawInput {
    /// Returns true if the input has several outer positions, which lie further apart in longer arrays.
    pub fn is_apart(&self) -> bool {
        self.moves && self.outer > 1
    }

    /// Bytes of the input in a fragment of so many units.
    pub fn bytes(&self, units: u64) -> u64 {
        self.outer.saturating_mul(self.run_bytes).saturating_mul(if self.moves { units } else { 1 })
    }

    /// The runs of bytes of some units in the array of others, which contain them.
    pub fn runs(&self, units: &Range<u64>, of: &Range<u64>) -> impl Iterator<Item = Range<usize>> + use<> {
        let RawInput { run_bytes, outer, moves, .. } = *self;
        let (skipped, count, all) = match moves {
            true => (units.start - of.start, units.end - units.start, of.end - of.start),
            false => (0, 1, 1),
        };
        (0..outer).map(move |n| {
            let start = (n * all + skipped) * run_bytes;
            start as usize..(start + count * run_bytes) as usize
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_heads_blocks_and_tails() {
        for (all, block) in [(0, 1), (1, 1), (7, 1), (7, 3), (9, 3), (5, 5), (5, 8)] {
            let units = Units { all, block: block.min(all.max(1)) };
            for (start, end) in (0..=all).flat_map(|start| (start..=all).map(move |end| (start, end))) {
                let split = units.split(&(start..end));
                let of_blocks = units.of_blocks(&split.blocks);
                let parts = [split.head.clone(), of_blocks, split.tail.clone()];
                let mut at = start;
                for part in parts.iter().filter(|part| !part.is_empty()) {
                    assert_eq!(part.start, at, "{start}..{end} of {all} by {block}");
                    at = part.end;
                }
                assert_eq!(at, end, "{start}..{end} of {all} by {block}");
                for raw in [&split.head, &split.tail].into_iter().filter(|raw| !raw.is_empty()) {
                    assert!(!units.is_block(raw) && raw.end <= (units.block_of(raw) + 1) * units.block);
                }
            }
        }
    }
}
