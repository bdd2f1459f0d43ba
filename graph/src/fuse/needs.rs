//! The needs of terms: the values that are in memory before any kernel computes a term.
//!
//! A kernel reads a slice of a value in memory, and a concatenation is written by its parts. A reshape whose axes are no runs
//! of its operand's axes leads through memory as well. A step that reads a value waits for all that the value needs, even
//! before it is known which kernels write it: a kernel that writes a need after such a step would close a circle.

use super::place::Placement;
use super::space::Space;
use super::terms::{T, TermOp, Terms};
use super::waits::{Step, Steps};
use rustc_hash::FxHashSet;

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
    /// The values that no step writes yet.
    pub(super) open: Vec<T>,
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

impl Placement<'_> {
    /// The needs of a term that a step reads in memory.
    pub(super) fn needs(&self, step: Step, t: T) -> Needs {
        let mut needs = Needs::default();
        let (mut open, mut seen) = (vec![], FxHashSet::default());
        self.push_needs(t, true, &mut open);
        while let Some((t, is_need)) = open.pop() {
            if !seen.insert((t, is_need)) {
                continue;
            }
            match self.written_home(t) {
                // Whatever it needs comes before it.
                Some(home) if !self.follows(home, step) => {
                    needs.steps.push(home);
                    continue;
                }
                Some(_) if is_need => needs.is_circular = true,
                None if is_need => needs.open.push(t),
                _ => {}
            }
            self.push_needs(t, false, &mut open);
        }
        needs
    }

    /// The terms that the writing of a term leads to, each with true if it is needed in memory. A reshape that a step reads
    /// has the memory of its operand.
    fn push_needs(&self, t: T, is_read: bool, open: &mut Vec<(T, bool)>) {
        let term = self.terms.get(t);
        let of = |t: T| self.need[t as usize];
        for &arg in &term.args {
            let is_need = match term.op {
                TermOp::Slice(_) => of(t) == Need::Own,
                TermOp::Reshape => !is_given(self.terms, arg) && (is_read || of(t) == Need::Own),
                TermOp::Reduce { .. } | TermOp::Centered(_) => return,
                _ => matches!(self.terms.get(arg).op, TermOp::Concat(_)),
            };
            if is_need || of(arg) != Need::Nothing {
                open.push((arg, is_need));
            }
        }
    }

    /// Makes a step that reads a term wait for what the term needs, also for what gets its home later.
    pub(super) fn wait_for_needs(&mut self, step: Step, t: T) {
        let Needs { steps, open, .. } = self.needs(step, t);
        self.waits.add(step, steps);
        for t in open {
            self.later.entry(t).or_default().insert(step);
        }
    }

    /// The steps that stand after the home of a term: those that read it, and those that read what needs it.
    pub(super) fn followers_of(&self, t: T) -> Vec<Step> {
        let mut steps = self.readers_of(t);
        let later = self.later.get(&t).into_iter().flatten();
        later.for_each(|step| {
            if !steps.contains(step) {
                steps.push(*step)
            }
        });
        steps
    }
}
