//! The blocks of a problem as units of work: which problems have several, and the states that a run of them leaves.

use super::tree::Tree;
use super::{Problem, Region};
use cranefold_ir::ops::{Form, Method};
use cranefold_ir::{DType, Def, Expr};

/// What a part stores of a slice.
pub(crate) struct Stored {
    /// (older state, newer state) -> state, value by value.
    pub merge: Def,
    /// How many states there are, one for each lane.
    pub lanes: u64,
}

impl Stored {
    /// The states of a problem in a form; none where nothing is reduced by blocks.
    pub fn of(problem: &Problem, form: Form) -> Option<Stored> {
        let reducer = problem.reducer_in(form).filter(|_| !problem.elements.is_empty())?;
        let Method::Phases { phases, merge, .. } = &reducer.method else { return None };
        Some(match phases.as_slice() {
            [phase] if phase.close.is_none() => {
                let lanes = Tree::of(problem, &reducer.method).lanes_present();
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

/// How many blocks each part has, if there are to be at least `count`: a power of two.
pub fn blocks_of_part(blocks: u64, count: u64) -> u64 {
    1 << ((blocks - 1) / (count.max(2) - 1)).max(1).ilog2()
}

/// How many blocks may be shared out: those of one reduction tree that are more than one, where a slice has one result
/// and is reduced as its elements lie.
pub fn blocks(problem: &Problem, form: Form) -> Option<u64> {
    let reducer = problem.reducer_in(form).filter(|_| !problem.elements.is_empty() && !problem.gathers())?;
    if problem.applies() || reducer.method.phases().is_empty() {
        return None;
    }
    Some(Tree::of(problem, &reducer.method).blocks()).filter(|&blocks| blocks > 1)
}

/// Bytes of the states that parts store, of blocks that are shared out.
pub fn stored_bytes(problem: &Problem, form: Form, count: u64) -> u64 {
    let (Some(blocks), Some(stored)) = (blocks(problem, form), Stored::of(problem, form)) else { return 0 };
    let parts = blocks.div_ceil(blocks_of_part(blocks, count));
    let slices = problem.slices.iter().map(Region::positions).fold(0, u64::saturating_add);
    let each = stored.types().iter().map(|t| t.bytes()).sum::<u64>();
    parts.saturating_mul(slices).saturating_mul(stored.lanes).saturating_mul(each)
}
