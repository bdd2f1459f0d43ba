//! Loops over the blocks, steps and lanes of a tree.

use super::{At, Lowering};
use crate::problem::IndexBox;
use crate::problem::tree::{Grid, Tree};
use cranefold_ir::{Index, LoopKind, Over, Stmt};
use std::ops::Range;

/// A function that makes the statements of a block, from its start, its number and its kind.
pub(super) type EachBlock<'p, 'f> = dyn FnMut(&mut Lowering<'p>, &At, &Index, &Blocks) -> Vec<Stmt> + 'f;

/// A function that makes the statements of an element, from its position and its lane.
pub(super) type EachElement<'p, 'f> = dyn FnMut(&mut Lowering<'p>, &At, &Index) -> Vec<Stmt> + 'f;

/// A kind of blocks: blocks of one shape.
pub(super) enum Blocks {
    /// The only block: all boxes of the slice.
    One,
    /// Blocks of one walk of the cut dim of a box.
    Alike(Alike),
}

/// Blocks of one shape in one walk of the cut dim, from the `first` on.
#[derive(Clone, Copy)]
pub(super) struct Alike {
    /// The number of their box.
    grid: usize,
    first: u64,
    /// Iterations of the cut dim in each block.
    iterations: u64,
}

impl Blocks {
    /// Lanes that hold an element in one of these blocks.
    pub fn lanes(&self, tree: &Tree) -> u64 {
        match self {
            Blocks::One => tree.lanes_present(),
            Blocks::Alike(alike) => tree.lanes.min(tree.grids[alike.grid].innermost() - alike.start(tree)),
        }
    }

    /// The blocks as a phase walks them, in the steps of its own lanes.
    pub fn in_phase(&self, whole: &Tree, phase: &Tree) -> Blocks {
        let Blocks::Alike(alike) = self else { return Blocks::One };
        let grid = &whole.grids[alike.grid];
        let iterations = match grid.cut + 1 == grid.steps.len() {
            true => (alike.iterations * whole.lanes).min(grid.innermost() - alike.start(whole)).div_ceil(phase.lanes),
            false => alike.iterations,
        };
        Blocks::Alike(Alike { iterations, ..*alike })
    }

    /// Elements in one of these blocks.
    pub fn elements(&self, tree: &Tree) -> u64 {
        match self {
            Blocks::One => tree.grids.iter().map(|grid| grid.extents.iter().product::<u64>()).sum(),
            Blocks::Alike(alike) => alike.elements(tree),
        }
    }
}

impl Alike {
    /// Elements of the innermost reduction dim before the first block of the walk.
    fn start(&self, tree: &Tree) -> u64 {
        let grid = &tree.grids[self.grid];
        if grid.cut + 1 == grid.steps.len() { self.first * grid.block * tree.lanes } else { 0 }
    }

    fn elements(&self, tree: &Tree) -> u64 {
        let grid = &tree.grids[self.grid];
        let inner: u64 = grid.extents[grid.cut + 1..].iter().product();
        if grid.cut + 1 < grid.extents.len() {
            return self.iterations * inner;
        }
        (self.iterations * tree.lanes).min(grid.innermost() - self.start(tree))
    }
}

/// The indices `by` positions further along a dim of a box.
fn along(region: &IndexBox, dim: usize, at: &At, by: &Index) -> At {
    // A box of one element has no dims.
    let Some(d) = region.dims.get(dim) else { return at.clone() };
    let inner = region.dims[dim + 1..].iter().map(|d| d.extent).product();
    at.along(&d.stride, inner, by)
}

impl<'p> Lowering<'p> {
    /// Loops over the blocks of the share. `each` gets the start, the number and the kind of the block.
    pub(super) fn blocks(&mut self, tree: &Tree, at: &At, each: &mut EachBlock<'p, '_>) -> Vec<Stmt> {
        let share = self.share.blocks(tree);
        if tree.is_one_block() {
            return if share.is_empty() { vec![] } else { each(self, at, &Index::default(), &Blocks::One) };
        }
        let mut body = vec![];
        let mut before = 0;
        for (number, grid) in tree.grids.iter().enumerate() {
            let at = self.visit.entering(number, at);
            let of_grid = |block: u64| block.clamp(before, before + grid.blocks()) - before;
            let within = of_grid(share.start)..of_grid(share.end);
            if !within.is_empty() {
                let walk = Walk { tree, grid, number, first: before as i64 - share.start as i64 };
                body.extend(self.outer_blocks(&walk, 0, at, Index::default(), within, each));
            }
            before += grid.blocks();
        }
        body
    }

    /// Loops over the blocks `within` the range, of the dims from `level` on.
    fn outer_blocks(
        &mut self,
        walk: &Walk,
        level: usize,
        at: At,
        row: Index,
        within: Range<u64>,
        each: &mut EachBlock<'p, '_>,
    ) -> Vec<Stmt> {
        let Walk { tree, grid, number, .. } = *walk;
        if level < grid.cut {
            let extent = grid.steps[level] as i64;
            let mut body = vec![];
            for (first, count, within) in rows(within, grid.blocks_inside(level)) {
                let mut row = |this: &mut Self, b: Index| {
                    let at = along(&this.visit.boxes[number], level, &at, &b);
                    this.outer_blocks(walk, level + 1, at, row.times(extent).add(&b), within.clone(), each)
                };
                body.extend(match within == (0..grid.blocks_inside(level)) {
                    true => self
                        .repeat(Over::Block, count, LoopKind::Parallel, |this, b| row(this, b.offset_by(first as i64))),
                    false => row(self, Index::constant(first as i64)),
                });
            }
            return body;
        }
        // All blocks of a row have one shape except perhaps the last, which may have fewer iterations or end in a
        // partial step.
        let innermost = level + 1 == grid.steps.len();
        let last = grid.steps[level] - (grid.blocks_per_cut() - 1) * grid.block;
        let partial = innermost && !grid.innermost().is_multiple_of(tree.lanes);
        let alike = if last < grid.block || partial { grid.blocks_per_cut() - 1 } else { grid.blocks_per_cut() };
        let groups = [(0, alike, grid.block), (alike, grid.blocks_per_cut() - alike, last)];
        let unit = if innermost { tree.lanes } else { 1 };
        let mut body = vec![];
        for (start, count, iterations) in groups {
            let first = start.max(within.start);
            let count = (start + count).min(within.end).saturating_sub(first);
            let blocks = Blocks::Alike(Alike { grid: number, first, iterations });
            let row = row.times(grid.blocks_per_cut() as i64).offset_by(walk.first);
            body.extend(self.repeat(Over::Block, count, LoopKind::Parallel, |this, b| {
                let b = b.offset_by(first as i64);
                let at = along(&this.visit.boxes[number], level, &at, &b.times((grid.block * unit) as i64));
                each(this, &at, &row.add(&b), &blocks)
            }));
        }
        body
    }

    /// Loops over the steps and lanes of one block that starts at `at`; `each` gets the position of an element and its
    /// lane.
    pub(super) fn steps(&mut self, tree: &Tree, at: &At, blocks: &Blocks, each: &mut EachElement<'p, '_>) -> Vec<Stmt> {
        if let Blocks::Alike(alike) = blocks {
            return self.inner_steps(tree, tree.grids[alike.grid].cut, at.clone(), alike, each);
        }
        let mut body = vec![];
        for (number, grid) in tree.grids.iter().enumerate() {
            let at = self.visit.entering(number, at);
            let whole = Alike { grid: number, first: 0, iterations: grid.steps[grid.cut] };
            body.extend(self.inner_steps(tree, grid.cut, at, &whole, each));
        }
        body
    }

    fn inner_steps(
        &mut self,
        tree: &Tree,
        level: usize,
        at: At,
        blocks: &Alike,
        each: &mut EachElement<'p, '_>,
    ) -> Vec<Stmt> {
        let grid = &tree.grids[blocks.grid];
        let region = self.visit.boxes[blocks.grid].clone();
        let iterations = if level == grid.cut { blocks.iterations } else { grid.steps[level] };
        if level + 1 < grid.steps.len() {
            return self.repeat(Over::Step, iterations, LoopKind::Seq, |this, k| {
                this.inner_steps(tree, level + 1, along(&region, level, &at, &k), blocks, each)
            });
        }
        // Whole steps come first, then the partial step at the end of the dim.
        let whole = iterations.min((grid.innermost() - blocks.start(tree)) / tree.lanes);
        let lanes = tree.lanes as i64;
        let mut lane_loop = |this: &mut Self, at: At, count: u64| {
            this.repeat(Over::Lane, count, LoopKind::Parallel, |this, l| {
                each(this, &along(&region, level, &at, &l), &l)
            })
        };
        let mut body = self.repeat(Over::Step, whole, LoopKind::Seq, |this, k| {
            lane_loop(this, along(&region, level, &at, &k.times(lanes)), tree.lanes)
        });
        if whole < iterations {
            let at = along(&region, level, &at, &Index::constant(whole as i64 * lanes));
            body.extend(lane_loop(self, at, grid.innermost() % tree.lanes));
        }
        body
    }
}

/// The walk of the blocks of one box.
#[derive(Clone, Copy)]
struct Walk<'t> {
    tree: &'t Tree,
    grid: &'t Grid,
    /// The number of the box.
    number: usize,
    /// The number of the box's first block, counted from the first block of the share.
    first: i64,
}

/// The rows of `inside` blocks each that a range of blocks touches: the first row, the number of rows, and the blocks
/// of each. First a row that begins before the range, then whole rows, then a row that ends after it.
fn rows(blocks: Range<u64>, inside: u64) -> Vec<(u64, u64, Range<u64>)> {
    let (first, last) = (blocks.start.div_ceil(inside), blocks.end / inside);
    if first > last {
        return vec![(last, 1, blocks.start - last * inside..blocks.end - last * inside)];
    }
    let entered = first * inside - blocks.start;
    let begun = (entered > 0).then(|| (first - 1, 1, inside - entered..inside));
    let whole = (last > first).then_some((first, last - first, 0..inside));
    let left = (blocks.end > last * inside).then(|| (last, 1, 0..blocks.end - last * inside));
    begun.into_iter().chain(whole).chain(left).collect()
}
