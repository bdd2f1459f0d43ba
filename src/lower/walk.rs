//! Loops over the blocks, steps and lanes of a tree.

use super::Lowering;
use crate::tree::Tree;
use cranefold_ir::{Index, LoopKind, Over, Stmt};

/// Makes the statements of a block: from the position where it starts, its number, and what it has in
/// common with its like.
pub(super) type EachBlock<'p, 'f> = dyn FnMut(&mut Lowering<'p>, &[Index], &Index, &Blocks) -> Vec<Stmt> + 'f;

/// Makes the statements of an element: from its position and its lane.
pub(super) type EachElement<'p, 'f> = dyn FnMut(&mut Lowering<'p>, &[Index], &Index) -> Vec<Stmt> + 'f;

/// Blocks of one walk of the cut dim that are alike, from the `first` on.
pub(super) struct Blocks {
    first: u64,
    /// Iterations of the cut dim in each block.
    iterations: u64,
}

impl<'p> Lowering<'p> {
    /// Loops over all blocks. `each` gets positions in the dims outside and at the cut, where the
    /// block starts, the block's number and what it has in common with its like.
    pub(super) fn blocks(&mut self, tree: &Tree, at: &[Index], each: &mut EachBlock<'p, '_>) -> Vec<Stmt> {
        if tree.blocks() == 1 {
            let iterations = tree.steps[tree.cut];
            return each(self, at, &Index::default(), &Blocks { first: 0, iterations });
        }
        self.outer_blocks(tree, 0, at.to_vec(), Index::default(), each)
    }

    fn outer_blocks(
        &mut self,
        tree: &Tree,
        level: usize,
        at: Vec<Index>,
        row: Index,
        each: &mut EachBlock<'p, '_>,
    ) -> Vec<Stmt> {
        let dim = self.reduction_dim(level);
        if level < tree.cut {
            let extent = tree.steps[level];
            return self.repeat(Over::Block, extent, LoopKind::Parallel, |this, b| {
                let mut at = at;
                at[dim] = b.clone();
                this.outer_blocks(tree, level + 1, at, row.times(extent as i64).add(&b), each)
            });
        }
        // All blocks of a row are alike but perhaps the last: it may have fewer iterations, or end in
        // a partial step.
        let innermost = level + 1 == tree.steps.len();
        let last = tree.steps[level] - (tree.row() - 1) * tree.block;
        let partial = innermost && !self.problem.dims[dim].extent.is_multiple_of(tree.lanes);
        let alike = if last < tree.block || partial { tree.row() - 1 } else { tree.row() };
        let groups = [
            (alike, Blocks { first: 0, iterations: tree.block }),
            (tree.row() - alike, Blocks { first: alike, iterations: last }),
        ];
        let unit = if innermost { tree.lanes } else { 1 };
        let mut body = vec![];
        for (count, blocks) in groups {
            let (at, row) = (at.clone(), row.times(tree.row() as i64));
            body.extend(self.repeat(Over::Block, count, LoopKind::Parallel, |this, b| {
                let b = b.offset_by(blocks.first as i64);
                let mut at = at;
                at[dim] = b.times((tree.block * unit) as i64);
                each(this, &at, &row.add(&b), &blocks)
            }));
        }
        body
    }

    /// The position in the problem's dims of the reduction dim of a level.
    fn reduction_dim(&self, level: usize) -> usize {
        let reduced = self.problem.dims.iter().enumerate().filter(|(_, d)| d.reduced);
        reduced.map(|(i, _)| i).nth(level).expect("a reduction dim")
    }

    /// Loops over the steps and lanes of one block that starts at `at`; `each` gets the position of
    /// an element and its lane.
    pub(super) fn steps(
        &mut self,
        tree: &Tree,
        at: &[Index],
        blocks: &Blocks,
        each: &mut EachElement<'p, '_>,
    ) -> Vec<Stmt> {
        self.inner_steps(tree, tree.cut, at.to_vec(), blocks, each)
    }

    fn inner_steps(
        &mut self,
        tree: &Tree,
        level: usize,
        at: Vec<Index>,
        blocks: &Blocks,
        each: &mut EachElement<'p, '_>,
    ) -> Vec<Stmt> {
        let dim = self.reduction_dim(level);
        let iterations = if level == tree.cut { blocks.iterations } else { tree.steps[level] };
        if level + 1 < tree.steps.len() {
            return self.repeat(Over::Step, iterations, LoopKind::Seq, |this, k| {
                let mut at = at;
                at[dim] = at[dim].add(&k);
                this.inner_steps(tree, level + 1, at, blocks, each)
            });
        }
        // Whole steps, then the partial one at the end of the dim.
        let extent = self.problem.dims[dim].extent;
        let start = if level == tree.cut { blocks.first * tree.block * tree.lanes } else { 0 };
        let whole = iterations.min((extent - start) / tree.lanes);
        let lanes = tree.lanes as i64;
        let mut lane_loop = |this: &mut Self, at: Vec<Index>, count: u64| {
            this.repeat(Over::Lane, count, LoopKind::Parallel, |this, l| {
                let mut at = at;
                at[dim] = at[dim].add(&l);
                each(this, &at, &l)
            })
        };
        let mut body = self.repeat(Over::Step, whole, LoopKind::Seq, |this, k| {
            let mut at = at.clone();
            at[dim] = at[dim].add(&k.times(lanes));
            lane_loop(this, at, tree.lanes)
        });
        if whole < iterations {
            let mut at = at;
            at[dim] = at[dim].clone().offset_by(whole as i64 * lanes);
            body.extend(lane_loop(self, at, extent % tree.lanes));
        }
        body
    }

    pub(super) fn lanes_present(&self, tree: &Tree) -> u64 {
        let innermost = self.problem.dims.iter().rfind(|d| d.reduced).expect("a reduction dim");
        tree.lanes.min(innermost.extent)
    }

    /// Lanes that hold an element in a block like these.
    pub(super) fn lanes_of_block(&self, tree: &Tree, blocks: &Blocks) -> u64 {
        let innermost = self.problem.dims.iter().rfind(|d| d.reduced).expect("a reduction dim").extent;
        if tree.cut + 1 < tree.steps.len() {
            return tree.lanes.min(innermost);
        }
        tree.lanes.min(innermost - blocks.first * tree.block * tree.lanes)
    }

    /// Elements in a block like these.
    pub(super) fn elements_of_block(&self, tree: &Tree, blocks: &Blocks) -> u64 {
        let extents: Vec<u64> = self.problem.dims.iter().filter(|d| d.reduced).map(|d| d.extent).collect();
        let inner: u64 = extents[tree.cut + 1..].iter().product();
        if tree.cut + 1 < extents.len() {
            return blocks.iterations * inner;
        }
        let start = blocks.first * tree.block * tree.lanes;
        (blocks.iterations * tree.lanes).min(extents[tree.cut] - start)
    }
}
