//! The needs of terms: the values that are in memory before any kernel computes a term.
//!
//! A kernel reads a slice of a value in memory, and a concatenation is written by its parts. A reshape whose axes are no runs
//! of its operand's axes leads through memory as well. A step that reads a value waits for all that the value needs, even
//! before it is known which kernels write it: a kernel that writes a need after such a step would close a circle.

use super::place::Placement;
use super::space::Space;
use super::terms::{T, TermOp, Terms};
use super::waits::{MAX_SEARCHED, Step, Steps};
use rustc_hash::{FxHashMap, FxHashSet};

/// The place of a term's needs, on the way to reductions and leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// There are none.
    Nothing,
    /// Operands have needs.
    Below,
    /// The operand of the term is needed, or the term itself if it is a concatenation.
    Own,
}

/// The values that a term needs, as seen from a step that reads the term.
#[derive(Default)]
pub(super) struct Needs {
    /// The steps that write them, as far as these are known.
    pub(super) steps: Steps,
    /// True if one of them is written by the step that reads the term, or after it.
    pub(super) is_circular: bool,
}

/// The place of the needs of the next term, after those of all terms before it.
pub(super) fn need(terms: &Terms, t: T, before: &[Need]) -> Need {
    let term = terms.get(t);
    let below = || match term.args.iter().any(|&arg| before[arg as usize] != Need::Nothing) {
        true => Need::Below,
        false => Need::Nothing,
    };
    match term.op {
        TermOp::Leaf(_) | TermOp::Number(_) | TermOp::Position(_) | TermOp::Reduce { .. } | TermOp::Centered(_) => {
            Need::Nothing
        }
        TermOp::Concat(_) => Need::Own,
        TermOp::Slice(_) if is_given(terms, term.args[0]) => Need::Nothing,
        TermOp::Slice(_) => Need::Own,
        TermOp::Reshape if !is_given(terms, term.args[0]) && is_scattered(terms, t) => Need::Own,
        _ => below(),
    }
}

/// Returns true for a term that a known step gives.
fn is_given(terms: &Terms, t: T) -> bool {
    matches!(terms.get(t).op, TermOp::Leaf(_) | TermOp::Reduce { .. } | TermOp::Centered(_))
}

/// Returns true for a reshape whose operand has no index in a kernel over its axes.
fn is_scattered(terms: &Terms, t: T) -> bool {
    let (mut space, index) = Space::new(terms.shape(t), &[]);
    space.reshaped(&index, terms.shape(terms.get(t).args[0])).is_none()
}

/// The users of each term through which steps that read them wait for it.
pub(super) fn users(terms: &Terms, need: &[Need]) -> FxHashMap<T, Vec<T>> {
    let mut users: FxHashMap<T, Vec<T>> = FxHashMap::default();
    for t in 0..terms.len() as T {
        if need[t as usize] != Need::Nothing || matches!(terms.get(t).op, TermOp::Reshape) {
            terms.get(t).args.iter().for_each(|&arg| users.entry(arg).or_default().push(t));
        }
    }
    users
}

impl Placement<'_> {
    /// The needs of a term that a step reads in memory.
    pub(super) fn needs(&self, step: Step, t: T) -> Needs {
        let mut needs = Needs::default();
        let mut after = self.waits.followers(std::slice::from_ref(&step));
        let (mut open, mut seen) = (vec![], FxHashSet::default());
        self.push_needs(t, true, &mut open);
        while let Some((t, is_need)) = open.pop() {
            // Operands stand before their users: nothing is written before the first term that has a home.
            if t < self.first_home || seen.len() == MAX_SEARCHED || !seen.insert((t, is_need)) {
                continue;
            }
            match self.written_home(t) {
                // Whatever it needs comes before it.
                Some(home) if !after.has(home) => {
                    needs.steps.push(home);
                    continue;
                }
                Some(_) if is_need => needs.is_circular = true,
                _ => {}
            }
            self.push_needs(t, false, &mut open);
        }
        needs
    }

    /// The terms that the writing of a term leads to, each with true if it is needed in memory.
    fn push_needs(&self, t: T, is_read: bool, open: &mut Vec<(T, bool)>) {
        if let TermOp::Reduce { .. } | TermOp::Centered(_) = self.terms.get(t).op {
            return;
        }
        for &arg in &self.terms.get(t).args {
            let is_need = self.is_need(arg, t, is_read);
            if is_need || self.need[arg as usize] != Need::Nothing {
                open.push((arg, is_need));
            }
        }
    }

    /// Returns true if an operand of a term is in memory before the term is computed. A reshape that a step reads has the
    /// memory of its operand.
    fn is_need(&self, arg: T, t: T, is_read: bool) -> bool {
        let is_own = self.need[t as usize] == Need::Own;
        match self.terms.get(t).op {
            TermOp::Slice(_) => is_own,
            TermOp::Reshape => is_own || is_read && !is_given(self.terms, arg),
            _ => matches!(self.terms.get(arg).op, TermOp::Concat(_)),
        }
    }

    /// The steps that stand after the home of a term: those that read it, and those that read what needs it and has no home
    /// yet.
    pub(super) fn followers_of(&self, t: T) -> Vec<Step> {
        let mut steps = self.readers_of(t);
        let users = |t: T| self.users.get(&t).into_iter().flatten().copied();
        let mut open: Vec<T> = users(t).filter(|&user| self.is_need(t, user, self.is_written(user))).collect();
        let mut seen = FxHashSet::default();
        while let Some(t) = open.pop() {
            if self.written_home(t).is_some() || seen.len() == MAX_SEARCHED || !seen.insert(t) {
                continue;
            }
            steps.extend(self.readers_of(t));
            open.extend(users(t));
        }
        steps.sort_unstable();
        steps.dedup();
        steps
    }
}
