//! The waits: which step of a plan stands after which.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// The number of a step of the plan: a kernel, or an opaque node.
pub(crate) type Step = usize;

/// A few steps.
pub(super) type Steps = SmallVec<[Step; 2]>;

/// The steps that each step waits for.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    direct: Vec<BTreeSet<Step>>,
    /// The steps that wait for each step directly.
    users: Vec<Vec<Step>>,
    /// A number above those of all steps that a step waits for.
    level: Vec<u64>,
    /// The distance of a step's level from those below it.
    gap: Vec<u64>,
    /// True after steps were made to wait for one another.
    is_circular: bool,
}

/// The distance that leaves room for steps that come between later.
const GAP: u64 = 1 << 24;

/// The most steps of one search; beyond them a step counts as one that follows.
pub(super) const MAX_SEARCHED: usize = 1 << 12;

impl Waits {
    /// Adds a step. One that comes `between` others moves none of them.
    pub(super) fn push(&mut self, between: bool) {
        self.direct.push(BTreeSet::new());
        self.users.push(vec![]);
        self.level.push(0);
        self.gap.push(if between { 1 } else { GAP });
    }

    /// Returns true if a step waits for another, through any others, or may do so.
    pub(super) fn follows(&self, step: Step, other: Step) -> bool {
        self.search(step, other).unwrap_or(true)
    }

    /// Returns true if a step waits for another, through any others; none after a long search.
    fn search(&self, step: Step, other: Step) -> Option<bool> {
        if step == other {
            return Some(true);
        }
        if self.users[other].is_empty() {
            return Some(false);
        }
        let is_above = |&step: &Step| self.level[step] > self.level[other];
        let (mut open, mut seen) = (vec![step], FxHashSet::default());
        open.retain(is_above);
        while let Some(next) = open.pop() {
            if self.direct[next].contains(&other) {
                return Some(true);
            }
            if seen.len() >= MAX_SEARCHED {
                return None;
            }
            open.extend(self.direct[next].iter().copied().filter(|wait| is_above(wait) && seen.insert(*wait)));
        }
        Some(false)
    }

    /// The steps without those that another of them follows.
    pub(super) fn last_of(&self, steps: Steps) -> Steps {
        if steps.len() < 2 {
            return steps;
        }
        let is_last =
            |step: &Step| !steps.iter().any(|other| other != step && self.search(*other, *step) == Some(true));
        steps.iter().copied().filter(|step| is_last(step)).collect()
    }

    /// Makes a step wait for others.
    pub(super) fn add(&mut self, step: Step, others: impl IntoIterator<Item = Step>) {
        for other in others {
            if other == step || !self.direct[step].insert(other) {
                continue;
            }
            self.users[other].push(step);
            let mut open = vec![(step, self.level[other])];
            while let Some((step, below)) = open.pop() {
                if self.is_circular || self.level[step] > below {
                    continue;
                }
                // What raises the step below it waits for itself.
                self.is_circular = step == other;
                self.level[step] = below + self.gap[step];
                open.extend(self.users[step].iter().map(|&user| (user, self.level[step])));
            }
        }
    }

    /// The steps in an order in which each stands after those that it waits for.
    pub(crate) fn order(&self) -> Vec<Step> {
        let waits = &self.direct;
        let mut missing: Vec<usize> = waits.iter().map(|waits| waits.len()).collect();
        let mut next: Vec<Vec<Step>> = vec![vec![]; waits.len()];
        for (step, waits) in waits.iter().enumerate() {
            waits.iter().for_each(|&other| next[other].push(step));
        }
        let mut ready: BTreeSet<Step> = (0..waits.len()).filter(|&step| missing[step] == 0).collect();
        let mut order = vec![];
        while let Some(step) = ready.pop_first() {
            order.push(step);
            for &user in &next[step] {
                missing[user] -= 1;
                if missing[user] == 0 {
                    ready.insert(user);
                }
            }
        }
        order
    }
}
