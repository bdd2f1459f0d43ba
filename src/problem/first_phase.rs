//! First phases that groups of reductions have in common.

use super::Problem;
use super::tree::Tree;
use cranefold_ir::ops::{Computation, Group, Phase};

/// The first phase that a group takes from an earlier group of several phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstPhase {
    /// The folded lanes, where a slice is one block and this group has several phases too. The sum for the mean of a
    /// variance is that of the mean beside it, for example, though their second phases have other lanes.
    Folded(usize),
    /// The lanes of each block, where there are several blocks and this group has one phase: it merges them before they
    /// fold. So a sum beside a mean that is centered needs no visit of its own.
    Lanes(usize),
}

impl FirstPhase {
    /// The number of the earlier group.
    pub fn group(self) -> usize {
        match self {
            FirstPhase::Folded(group) | FirstPhase::Lanes(group) => group,
        }
    }
}

impl Problem {
    /// The first phase that a group takes from an earlier one; `None` if it computes its own.
    pub fn first_phase_before(&self, computation: &Computation, group: usize) -> Option<FirstPhase> {
        let groups: Vec<&Group> = computation.groups().take(group + 1).collect();
        let (one, earlier) = groups.split_last()?;
        let (phase, tree) = self.first_phase(one)?;
        let has_several = |group: &Group| group.reducer.method.phases().len() > 1;
        let known = earlier.iter().position(|other| {
            (one.walk, &one.inputs, one.takes_position, &one.takes)
                == (other.walk, &other.inputs, other.takes_position, &other.takes)
                && has_several(other)
                && self.first_phase(other).is_some_and(|other| other.1 == tree && is_alike(other.0, phase))
        })?;
        match (has_several(one), tree.is_one_block()) {
            (true, true) => Some(FirstPhase::Folded(known)),
            (false, false) if phase.close.is_none() => Some(FirstPhase::Lanes(known)),
            _ => None,
        }
    }

    /// The first phase of a group, with its tree.
    fn first_phase<'a>(&self, group: &'a Group) -> Option<(&'a Phase, Tree)> {
        let phase = group.reducer.method.phases().first()?;
        Some((phase, Tree::of(self.walks.get(group.walk)?, &group.reducer.method).in_phase(0)))
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
