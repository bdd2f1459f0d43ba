//! The shape of the reduction tree: lanes, steps and blocks of a problem.
//!
//! The tree depends on the reduction's own state, and on the extents and input strides of the walk alone, so that a
//! result cannot depend on anything else: not on the other reductions of a kernel either.
//!
//! - **Lanes.** Element k of the innermost reduction dim belongs to lane k mod L. L is the largest
//!   power of two for which L states of every output beside one another inside that dim (of whole blocks where
//!   mapped inputs are blocked) fit [`LANE_BYTES`], or [`LANE_BYTES_OF_SEVERAL`], at least 1. For a combiner that is
//!   not commutative it is 1. Where outputs lie beside one another, a state of integers counts as one value, since no
//!   tree changes its bits. Of several phases the first decides; each of the others walks the same blocks with as
//!   many lanes, or with fewer if its own state is larger: those of the variance have 64 lanes, then 32.
//! - **Steps.** A step is up to L neighbours of the innermost reduction dim. It has ceil(K / L)
//!   steps for K elements, the last perhaps partial.
//! - **Blocks.** A block is a rectangle of the space of steps of at most [`BLOCK_STEPS`]: as many
//!   whole inner dims as fit, then the greatest power of two of iterations of the next, the cut dim. So the blocks of
//!   few lanes lie within the blocks of many. Blocks are numbered row-major; inside a
//!   block steps go row-major too, each lane combining in that order. Where a slice is several boxes,
//!   each is a space of steps with the same L. If they have at most [`BLOCK_STEPS`] together they are one
//!   block, box after box; else the blocks of each are numbered on after those of the ones before.
//!
//! How blocks merge and lanes fold stands in [`cranefold_ir::tree`].

use crate::problem::{Dim, SliceWalk};
use cranefold_ir::ops::Method;

/// The most bytes of state that a step's lanes may take, over the outputs inside the innermost reduction dim, for a
/// state of one value, or of two in one of two phases: all vector registers of 128 bits.
pub const LANE_BYTES: u64 = 256;

/// The most bytes for a state of more values: some registers are left for its computation.
pub const LANE_BYTES_OF_SEVERAL: u64 = 192;

/// The most steps of a block.
pub const BLOCK_STEPS: u64 = 64;

/// The lanes and blocks of a problem's reduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The number of lanes, L.
    pub lanes: u64,
    /// The number of lanes in each phase, at most L.
    pub phases: Vec<u64>,
    /// The steps and blocks of each box of elements.
    pub grids: Vec<Grid>,
}

/// The steps and blocks of a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Extents of the reduction dims in canonical order, at least one.
    pub extents: Vec<u64>,
    /// The same extents, with the innermost in steps.
    pub steps: Vec<u64>,
    /// The number of the dim that is cut into blocks; the dims inside it are whole in every block.
    pub cut: usize,
    /// The iterations of the cut dim in a block; the last block of each walk may have fewer.
    pub block: u64,
}

/// The lanes of each phase of a reduction, none of which has more than the first.
fn lanes(beside: u64, method: &Method) -> Vec<u64> {
    let states = method.tree_states();
    let fit = |values: usize, bytes: u64| {
        let most = if values <= states.len() { LANE_BYTES } else { LANE_BYTES_OF_SEVERAL };
        let fit = most / beside.saturating_mul(bytes).min(most + 1);
        if method.is_commutative() { 1 << fit.max(1).ilog2() } else { 1 }
    };
    if method.is_exact() {
        // Any tree will do: one walk serves all phases, over few lanes of a slice that lies by itself, and over as many
        // as one value of slices beside one another has.
        let values = states.iter().map(|state| state.values).max().unwrap_or(1);
        let bytes = states.iter().map(|state| state.bytes).max().unwrap_or(1);
        let lanes = if beside > 1 { fit(1, bytes / values as u64) } else { fit(values, bytes) };
        return vec![lanes; method.phases().len().max(1)];
    }
    let mut own: Vec<u64> = states.iter().map(|state| fit(state.values, state.bytes)).collect();
    // The phases beyond those of the states are of exact reductions alone, which any tree serves.
    let last = own.last().copied().unwrap_or(1);
    own.resize(own.len().max(method.phases().len()), last);
    own.iter().map(|&lanes| lanes.min(own[0])).collect()
}

/// Returns true if a reduction may take part in another over a walk: its tree is that of the other in each phase. One of
/// a single phase takes part in the first, where there is one block or one lane, so that it makes no difference when
/// lanes fold.
pub fn agree(walk: &SliceWalk, part: &Method, whole: &Method) -> bool {
    let of_one_phase = part.keeps_lanes();
    let (part, whole) = (Tree::of(walk, part), Tree::of(walk, whole));
    let have_phases_alike = if of_one_phase { part.is_one_block() || part.lanes_present() <= 1 } else { part == whole };
    part.has_blocks_of(&whole) && have_phases_alike
}

impl Tree {
    /// The tree of a reduction over a walk.
    pub fn of(walk: &SliceWalk, method: &Method) -> Tree {
        let phases = lanes(walk.beside, method);
        let lanes = phases[0];
        let extents = |dims: &[Dim]| dims.iter().map(|d| d.extent).collect();
        let grids = match &walk.gathered {
            Some(dims) => vec![Grid::of(dims.clone(), lanes)],
            None => walk.elements.iter().map(|e| Grid::of(extents(&e.dims), lanes)).collect(),
        };
        Tree { lanes, phases, grids }
    }

    /// The tree as a phase walks its blocks: with the phase's lanes, and the same blocks in steps of so many elements.
    pub fn in_phase(&self, phase: usize) -> Tree {
        let lanes = self.phases[phase];
        Tree { lanes, phases: vec![lanes], grids: self.grids.iter().map(|g| g.finer(self.lanes, lanes)).collect() }
    }

    /// Returns true if the blocks are those of another tree, and the lanes of the first phase.
    pub fn has_blocks_of(&self, other: &Tree) -> bool {
        (self.lanes, &self.grids) == (other.lanes, &other.grids)
    }

    /// Returns true if all boxes are one block.
    pub fn is_one_block(&self) -> bool {
        self.grids.iter().map(Grid::all_steps).fold(0, u64::saturating_add) <= BLOCK_STEPS
    }

    /// The number of blocks of all boxes.
    pub fn blocks(&self) -> u64 {
        if self.is_one_block() { 1 } else { self.grids.iter().map(Grid::blocks).sum() }
    }

    /// The number of lanes that ever take an element.
    pub fn lanes_present(&self) -> u64 {
        self.grids.iter().map(|g| g.innermost().min(self.lanes)).max().unwrap_or(0)
    }
}

impl Grid {
    fn of(mut extents: Vec<u64>, lanes: u64) -> Grid {
        if extents.is_empty() {
            extents.push(1);
        }
        let mut steps = extents.clone();
        let innermost = steps.last_mut().expect("a dim");
        *innermost = innermost.div_ceil(lanes);
        let mut cut = steps.len() - 1;
        let mut whole = 1;
        while cut > 0 && whole * steps[cut] <= BLOCK_STEPS {
            whole *= steps[cut];
            cut -= 1;
        }
        let block = steps[cut].min(1 << (BLOCK_STEPS / whole).ilog2());
        Grid { extents, steps, cut, block }
    }

    /// The same blocks in steps of fewer lanes.
    fn finer(&self, of: u64, lanes: u64) -> Grid {
        let mut grid = self.clone();
        let innermost = grid.steps.len() - 1;
        grid.steps[innermost] = self.innermost().div_ceil(lanes);
        if grid.cut == innermost {
            grid.block *= of / lanes;
        }
        grid
    }

    /// The extent of the innermost reduction dim.
    pub fn innermost(&self) -> u64 {
        *self.extents.last().expect("a dim")
    }

    fn all_steps(&self) -> u64 {
        self.steps.iter().copied().fold(1, u64::saturating_mul)
    }

    /// The number of blocks in one walk of the cut dim.
    pub fn blocks_per_cut(&self) -> u64 {
        self.steps[self.cut].div_ceil(self.block)
    }

    /// The number of blocks in one iteration of a dim outside the cut one.
    pub fn blocks_inside(&self, dim: usize) -> u64 {
        self.steps[dim + 1..self.cut].iter().product::<u64>() * self.blocks_per_cut()
    }

    /// The number of blocks of the box.
    pub fn blocks(&self) -> u64 {
        self.steps[..self.cut].iter().product::<u64>() * self.blocks_per_cut()
    }
}
