//! First phases that groups of reductions have in common.

use super::Problem;
use super::tree::Tree;
use cranefold_ir::ops::{Computation, Group, Phase};

impl Problem {
    /// The number of an earlier group whose first phase is that of this one, if the slice is one block: its folded lanes are
    /// the result of both. The sum for the mean of a variance is that of the mean beside it, for example, though their
    /// second phases have other lanes.
    pub fn group_with_first_phase_of(&self, computation: &Computation, group: usize) -> Option<usize> {
        let groups: Vec<&Group> = computation.groups().take(group + 1).collect();
        let (one, earlier) = groups.split_last()?;
        let first = self.first_phase(one)?;
        earlier.iter().position(|other| {
            (one.walk, &one.inputs, one.takes_position, &one.takes)
                == (other.walk, &other.inputs, other.takes_position, &other.takes)
                && self.first_phase(other).is_some_and(|(phase, tree)| tree == first.1 && is_alike(phase, first.0))
        })
    }

    /// The first of several phases of a group over one block, with its tree.
    fn first_phase<'a>(&self, group: &'a Group) -> Option<(&'a Phase, Tree)> {
        let [phase, _, ..] = group.reducer.method.phases() else { return None };
        let tree = Tree::of(self.walks.get(group.walk)?, &group.reducer.method);
        tree.is_one_block().then(|| (phase, tree.in_phase(0)))
    }
}

/// Returns true if two phases fold the same state, whatever the names of their definitions are.
fn is_alike(a: &Phase, b: &Phase) -> bool {
    let steps = |phase: &Phase| {
        let defs = [Some(&phase.lift), Some(&phase.combine), phase.update.as_ref()];
        defs.map(|def| def.map(|def| (def.params.clone(), def.lets.clone(), def.results.clone())))
    };
    a.identity == b.identity && steps(a) == steps(b)
}
