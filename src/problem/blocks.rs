//! The blocks of a problem as units of work: the problems that have several, and the states that blocks leave.

use super::tree::Tree;
use super::{IndexBox, Problem};
use cranefold_ir::ops::{Form, Method};
use cranefold_ir::{DType, Def, Expr};

/// The states that a part stores for each slice.
pub(crate) struct Stored {
    /// (older state, newer state) -> state, value by value.
    pub merge: Def,
    /// The number of states, one for each lane.
    pub lanes: u64,
}

impl Stored {
    /// The states of a problem in a form; `None` if nothing is reduced in blocks.
    pub fn of(problem: &Problem, form: Form) -> Option<Stored> {
        let computation = problem.computation_in(form).filter(|_| !problem.elements().is_empty())?;
        let reducer = &computation.only_group()?.reducer;
        let Method::Phases { phases, merge, .. } = &reducer.method else { return None };
        Some(match phases.as_slice() {
            [phase] if phase.close.is_none() => {
                let lanes = Tree::of(&problem.walks[0], &reducer.method).lanes_present();
                Stored { merge: phase.combine.clone(), lanes }
            }
            _ => Stored { merge: merge.clone(), lanes: 1 },
        })
    }

    /// The types of the values of a state.
    pub fn types(&self) -> Vec<DType> {
        self.merge.results.iter().map(Expr::dtype).collect()
    }
}

/// The number of blocks of each part if there are to be at least `count` parts: a power of two.
pub fn blocks_of_part(blocks: u64, count: u64) -> u64 {
    1 << ((blocks - 1) / (count.max(2) - 1)).max(1).ilog2()
}

/// The number of blocks that may be divided among parts; `None` unless slices with one result are reduced in several
/// blocks, in the order of their elements in memory.
pub fn blocks(problem: &Problem, form: Form) -> Option<u64> {
    let computation = problem.computation_in(form).filter(|_| !problem.elements().is_empty() && !problem.gathers())?;
    let reducer = &computation.only_group()?.reducer;
    if problem.applies() || problem.totals.is_some() || reducer.method.phases().is_empty() {
        return None;
    }
    Some(Tree::of(&problem.walks[0], &reducer.method).blocks()).filter(|&blocks| blocks > 1)
}

/// Bytes of the states that parts store when blocks are divided.
pub fn stored_bytes(problem: &Problem, form: Form, count: u64) -> u64 {
    let (Some(blocks), Some(stored)) = (blocks(problem, form), Stored::of(problem, form)) else { return 0 };
    let parts = blocks.div_ceil(blocks_of_part(blocks, count));
    let slices = problem.slices.iter().map(IndexBox::positions).fold(0, u64::saturating_add);
    let each = stored.types().iter().map(|t| t.bytes()).sum::<u64>();
    parts.saturating_mul(slices).saturating_mul(stored.lanes).saturating_mul(each)
}
