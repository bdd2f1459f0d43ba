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
        self.followers(&[other]).has(step)
    }

    /// The steps that wait for one of these, through any others, to be asked for one by one.
    pub(super) fn followers<'a>(&'a self, of: &'a [Step]) -> Followers<'a> {
        // No step waits for the others.
        let mut waited_for: Steps = of.iter().copied().filter(|&step| !self.users[step].is_empty()).collect();
        waited_for.sort_unstable();
        let lowest = waited_for.iter().map(|&step| self.level[step]).min().unwrap_or(u64::MAX);
        Followers { waits: self, of, waited_for, lowest, others: FxHashSet::default(), left: 4 * MAX_SEARCHED }
    }

    /// The steps without those that another of them follows, as far as a search of bounded length finds them.
    pub(super) fn last_of(&self, steps: Steps) -> Steps {
        if steps.len() < 2 {
            return steps;
        }
        let mut left = 4 * MAX_SEARCHED;
        let mut is_last = |step: Step| {
            let of = [step];
            let mut after = Followers { left, ..self.followers(&of) };
            let is_last = !steps.iter().any(|&other| other != step && after.find(other) == Some(true));
            left = after.left;
            is_last
        };
        steps.iter().copied().filter(|&step| is_last(step)).collect()
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

/// The steps that wait for some steps, and those that were found not to, so that many questions take one search.
pub(super) struct Followers<'a> {
    waits: &'a Waits,
    of: &'a [Step],
    /// The steps of `of` for which any step waits, in order.
    waited_for: Steps,
    /// The lowest level of these: no step at or below it waits for them.
    lowest: u64,
    /// The steps that are known to wait for none of them.
    others: FxHashSet<Step>,
    /// The steps that may still be searched: the time of all questions together is bounded.
    left: usize,
}

impl Followers<'_> {
    /// Returns true for one of the steps itself, and for a step that waits for one, or may do so.
    pub(super) fn has(&mut self, step: Step) -> bool {
        self.find(step).unwrap_or(true)
    }

    /// Returns true as [`has`](Self::has) does; none where no more steps may be searched.
    fn find(&mut self, step: Step) -> Option<bool> {
        self.left = self.left.checked_sub(1)?;
        if self.of.contains(&step) {
            return Some(true);
        }
        if !self.may_follow(step) {
            return Some(false);
        }
        let mut seen = vec![step];
        let mut next = 0;
        while let Some(&step) = seen.get(next) {
            next += 1;
            self.left = self.left.saturating_sub(1);
            let waits = &self.waits.direct[step];
            let is_found = match waits.len() < self.waited_for.len() {
                true => waits.iter().any(|wait| self.waited_for.binary_search(wait).is_ok()),
                false => self.waited_for.iter().any(|step| waits.contains(step)),
            };
            if is_found || seen.len() - next > self.left {
                seen.iter().for_each(|step| _ = self.others.remove(step));
                return is_found.then_some(true);
            }
            for &wait in waits {
                if self.may_follow(wait) {
                    seen.push(wait);
                }
            }
        }
        Some(false)
    }

    /// Returns true for a step that is high enough and was not asked for yet, which is put among the others until it is
    /// found.
    fn may_follow(&mut self, step: Step) -> bool {
        self.waits.level[step] > self.lowest && self.others.insert(step)
    }
}
