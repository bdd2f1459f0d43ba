//! The cutting of values that are too long for one kernel: it computes the end, and reads what stands before it.

use super::kernel::{Attempt, Kernel, MAX_OPERANDS, MAX_TERMS, Refused, Try, Why, access};
use super::place::Placement;
use super::space::Index;
use super::terms::{T, TermOp};
use super::waits::Step;
use std::collections::BTreeSet;

impl Placement<'_> {
    /// A new kernel with all that its value is computed from: the operand of its reduction, or its output. What is too long
    /// for it is cut.
    pub(super) fn whole(
        &mut self,
        step: Step,
        kernel: Box<Kernel>,
        value: T,
        index: &Index,
        sources: &[Step],
    ) -> Attempt {
        let root = kernel.is_map.then_some(value);
        let mut kernel = kernel;
        for most in lengths() {
            let mut attempt = Attempt::of(kernel, root);
            attempt.waits.extend(sources);
            let done = self.pull_first(step, &mut attempt, value, index);
            // What stands before the end of a chain is one value where it can be.
            let long = attempt.wanted.iter().filter(|(_, why)| *why == Why::Long).count();
            match done {
                Ok(()) if long < 2 => return attempt,
                _ => kernel = attempt.undone(),
            }
            self.cut(value, most).into_iter().for_each(|t| self.want(t, Some(step), Why::Long));
        }
        // The value itself is written, which a new kernel can always read.
        let mut attempt = Attempt::of(kernel, root);
        attempt.waits.extend(sources);
        attempt.read_only(vec![(value, access(index))]);
        attempt.wanted = vec![(value, Why::Layout)];
        attempt
    }

    /// Brings the value of a new kernel into it. A kernel of elements computes its output itself, whatever else is read; it
    /// reads the parts of a concatenation that are no elements' formula.
    fn pull_first(&self, step: Step, attempt: &mut Attempt, value: T, index: &Index) -> Try<()> {
        let term = self.terms.get(value);
        match &term.op {
            TermOp::Concat(_) | TermOp::Reduce { .. } | TermOp::Centered(_) if attempt.kernel.is_map => {
                attempt.read_only(vec![(value, access(index))]);
                attempt.wanted = vec![(value, Why::Layout)];
                Ok(())
            }
            TermOp::Reshape if attempt.kernel.is_map => {
                let inner = attempt.kernel.space.reshaped(index, self.terms.shape(term.args[0])).ok_or(Refused)?;
                self.pull(step, attempt, term.args[0], &inner)?;
                let index = attempt.kernel.space.resolved(index);
                attempt.compute(value, index);
                Ok(())
            }
            _ => self.pull(step, attempt, value, index),
        }
    }

    /// The terms that a kernel with at most `most` terms reads to compute a value: as few as there can be, and the furthest of
    /// those. It computes at least the value itself.
    fn cut(&self, value: T, most: usize) -> Vec<T> {
        // Operands stand before their users: the greatest term is used by none of the others that are left.
        let (mut left, mut read) = (BTreeSet::from([value]), BTreeSet::new());
        let mut best: Option<BTreeSet<T>> = None;
        for _ in 0..most {
            let Some(t) = left.pop_last() else { break };
            for &arg in &self.terms.get(t).args {
                let arg = self.behind_views(arg);
                match self.terms.get(arg).op {
                    TermOp::Number(_) => {}
                    TermOp::Apply(_) if !self.is_written(arg) => _ = left.insert(arg),
                    _ => _ = read.insert(arg),
                }
            }
            let is_shorter = best.as_ref().is_none_or(|best| left.len() <= best.len());
            if best.is_none() || is_shorter && left.len() + read.len() <= MAX_OPERANDS {
                best = Some(left.clone());
            }
        }
        best.into_iter().flatten().collect()
    }

    /// The term that views and reshapes of it lead to.
    fn behind_views(&self, mut t: T) -> T {
        while let TermOp::View(_) | TermOp::Reshape = self.terms.get(t).op {
            t = self.terms.get(t).args[0];
        }
        t
    }
}

/// The numbers of terms that are tried for a kernel, each half of the one before.
fn lengths() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(MAX_TERMS / 2), |&most| (most > 1).then_some(most / 2))
}
