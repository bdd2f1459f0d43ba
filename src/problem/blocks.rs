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
    /// The states of a problem in a form; `None` if nothing is reduced in blocks, or in several stages.
    pub fn of(problem: &Problem, form: Form) -> Option<Stored> {
        let computation = problem.computation_in(form).filter(|_| !problem.elements().is_empty())?;
        let groups = groups_in_blocks(&computation)?.iter().map(|group| {
            let Method::Phases { phases, merge, .. } = &group.reducer.method else { unreachable!("it has a tree") };
            match phases.as_slice() {
                [phase] if phase.close.is_none() => {
                    let tree = Tree::of(&problem.walks[group.walk], &group.reducer.method);
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

/// The groups of a computation that reduces slices in blocks, in one stage.
fn groups_in_blocks(computation: &Computation) -> Option<&[Group]> {
    let mut stages = computation.stages.iter().filter(|stage| !stage.groups.is_empty());
    let groups = &stages.next().filter(|_| stages.next().is_none())?.groups;
    let selects = |group: &Group| matches!(group.reducer.method, Method::Select { .. });
    (!groups.iter().any(selects)).then_some(groups)
}

/// The trees of a computation of one stage that reduces slices in blocks, in the order of their first groups, each with the
/// numbers of its groups; `None` of another computation.
pub(crate) fn trees(problem: &Problem, computation: &Computation) -> Option<Vec<(Tree, Vec<usize>)>> {
    let groups = groups_in_blocks(computation)?;
    let mut trees: Vec<(Tree, Vec<usize>)> = vec![];
    for (number, group) in groups.iter().enumerate() {
        let tree = Tree::of(&problem.walks[group.walk], &group.reducer.method);
        let of_walk = |first: usize| groups[first].walk == group.walk;
        match trees.iter_mut().find(|(known, of)| of_walk(of[0]) && tree.has_blocks_of(known)) {
            Some((_, of)) => of.push(number),
            None => trees.push((tree, vec![number])),
        }
    }
    Some(trees)
}

/// The tree that all reductions of a computation have; `None` if they have several, stages, or none.
pub(crate) fn common_tree(problem: &Problem, computation: &Computation) -> Option<Tree> {
    let groups = groups_in_blocks(computation)?;
    if groups.iter().any(|group| group.walk != 0) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;

    #[test]
    fn the_groups_of_each_tree_are_a_problem() {
        for text in [
            "sum,argmax f32[20000] order=logical",
            "region x:f32[700,6], w:f32[700,1] axes=[0] order=logical { sum(x) / sum(w), argmax(x * w) }",
        ] {
            let problem = Problem::of_shape(&text.parse::<Spec>().expect("a spec"));
            let computation = problem.computation().expect("a reduction");
            let groups: Vec<&Group> = computation.groups().collect();
            let trees = trees(&problem, &computation).expect("one stage");
            assert!(trees.len() > 1, "{text}");
            for (tree, of) in trees {
                let only: Vec<usize> = of.iter().map(|&group| groups[group].results[0]).collect();
                let part = problem.of_groups(only, groups[of[0]].walk);
                let computed = part.computation().expect("a reduction");
                assert_eq!(computed.groups().count(), of.len(), "{text}");
                assert!(common_tree(&part, &computed).is_some_and(|common| common.has_blocks_of(&tree)), "{text}");
                assert_eq!(part.to_string().parse(), Ok(part), "{text}");
            }
        }
    }
}
