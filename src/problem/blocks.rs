//! The blocks of a problem as units of work: the problems that have several, and the states that blocks leave.

use super::tree::Tree;
use super::{IndexBox, Problem};
use cranefold_ir::ops::{Computation, Form, Group, Method};
use cranefold_ir::{DType, Def, Expr};

/// The states that a part stores for each slice: those of each group of reductions, one after the other.
pub(crate) struct Stored {
    /// The groups, in order.
    pub groups: Vec<StoredGroup>,
}

/// The states of a group.
pub(crate) struct StoredGroup {
    /// (older state, newer state) -> state, value by value.
    pub merge: Def,
    /// The number of states, one for each lane.
    pub lanes: u64,
}

impl Stored {
    /// The states of a problem in a form; `None` if nothing is reduced in blocks, or not all in the same.
    pub fn of(problem: &Problem, form: Form) -> Option<Stored> {
        let computation = problem.computation_in(form).filter(|_| !problem.elements().is_empty())?;
        let tree = common_tree(problem, &computation)?;
        let groups = computation.groups().map(|group| {
            let Method::Phases { phases, merge, .. } = &group.reducer.method else { unreachable!("it has a tree") };
            match phases.as_slice() {
                [phase] if phase.close.is_none() => {
                    StoredGroup { merge: phase.combine.clone(), lanes: tree.lanes_present() }
                }
                _ => StoredGroup { merge: merge.clone(), lanes: 1 },
            }
        });
        Some(Stored { groups: groups.collect() })
    }

    /// The values of a state: the type of each, and the number of its lanes.
    pub fn values(&self) -> impl Iterator<Item = (DType, u64)> + '_ {
        self.groups.iter().flat_map(|group| group.types().into_iter().map(|dtype| (dtype, group.lanes)))
    }
}

impl StoredGroup {
    /// The types of the values of a state.
    pub fn types(&self) -> Vec<DType> {
        self.merge.results.iter().map(Expr::dtype).collect()
    }
}

/// The tree that all reductions of a computation have; `None` if they have several, stages, or none.
pub(crate) fn common_tree(problem: &Problem, computation: &Computation) -> Option<Tree> {
    let mut stages = computation.stages.iter().filter(|stage| !stage.groups.is_empty());
    let groups = &stages.next().filter(|_| stages.next().is_none())?.groups;
    let selects = |group: &Group| matches!(group.reducer.method, Method::Select { .. });
    if groups.iter().any(|group| group.walk != 0 || selects(group)) {
        return None;
    }
    let mut trees = groups.iter().map(|group| Tree::of(&problem.walks[0], &group.reducer.method));
    let first = trees.next()?;
    trees.all(|tree| tree.has_blocks_of(&first)).then_some(first)
}

/// The number of blocks of each part if there are to be at least `count` parts: a power of two.
pub fn blocks_of_part(blocks: u64, count: u64) -> u64 {
    1 << ((blocks - 1) / (count.max(2) - 1)).max(1).ilog2()
}

/// The number of blocks that may be divided among parts; `None` unless slices are reduced to results by one tree of several
/// blocks, in the order of their elements in memory.
pub fn blocks(problem: &Problem, form: Form) -> Option<u64> {
    let computation = problem.computation_in(form).filter(|_| !problem.elements().is_empty() && !problem.gathers())?;
    if problem.applies() || problem.totals.is_some() {
        return None;
    }
    Some(common_tree(problem, &computation)?.blocks()).filter(|&blocks| blocks > 1)
}

/// Bytes of the states that parts store when blocks are divided.
pub fn stored_bytes(problem: &Problem, form: Form, count: u64) -> u64 {
    let (Some(blocks), Some(stored)) = (blocks(problem, form), Stored::of(problem, form)) else { return 0 };
    let parts = blocks.div_ceil(blocks_of_part(blocks, count));
    let slices = problem.slices.iter().map(IndexBox::positions).fold(0, u64::saturating_add);
    let each = stored.values().map(|(dtype, lanes)| dtype.bytes() * lanes).sum::<u64>();
    parts.saturating_mul(slices).saturating_mul(each)
}
