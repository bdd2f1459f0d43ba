//! The pulling of terms into kernels: a term comes with all that it is computed from; what may not come is read.

use super::kernel::{Access, Attempt, MAX_OPERANDS, MAX_TERMS, Refused, Try, Why, access};
use super::place::Placement;
use super::space::{Index, seen_through};
use super::terms::{T, TermOp};
use super::waits::Step;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

impl Placement<'_> {
    /// Brings a term into a kernel at an index, with all that it is computed from there; the rest is read.
    pub(super) fn pull(&self, step: Step, attempt: &mut Attempt, t: T, index: &Index) -> Try<()> {
        let index = attempt.kernel.space.resolved(index);
        let term = self.terms.get(t);
        if self.terms.number(t).is_some() || attempt.kernel.computed.contains_key(&(t, index.clone())) {
            return Ok(());
        }
        if let TermOp::Leaf(_) = term.op {
            return self.read(attempt, t, access(&index));
        }
        if self.is_readable(step, t) {
            attempt.waits.extend(self.written.get(&t).and_then(|written| written.home));
            return self.read(attempt, t, access(&index));
        }
        match &term.op {
            TermOp::Reduce { axes, .. } => {
                if self.home.get(&t) != Some(&step) {
                    return self.read_other(step, attempt, t, &index, Why::OtherAxes);
                }
                let of = attempt.kernel.index.get(&term.args[0]).ok_or(Refused)?;
                let of = attempt.kernel.space.resolved(of);
                let own = of.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, atoms)| atoms);
                if own.eq(index.iter()) { Ok(()) } else { Err(Refused) }
            }
            TermOp::Centered(_) => {
                if self.home.get(&t) != Some(&step) {
                    return self.read_other(step, attempt, t, &index, Why::OtherAxes);
                }
                let of = attempt.kernel.index.get(&term.args[0]).ok_or(Refused)?;
                if attempt.kernel.space.resolved(of) == index { Ok(()) } else { Err(Refused) }
            }
            _ if attempt.kernel.computed.len() >= MAX_TERMS => self.read_other(step, attempt, t, &index, Why::Long),
            TermOp::View(from) => {
                let inner = seen_through(from, &index, self.terms.shape(term.args[0]));
                self.pull(step, attempt, term.args[0], &inner)?;
                attempt.compute(t, index);
                Ok(())
            }
            TermOp::Reshape => {
                let mut space = attempt.kernel.space.clone();
                let Some(inner) = space.reshaped(&index, self.terms.shape(term.args[0])) else {
                    return self.read_other(step, attempt, t, &index, Why::Layout);
                };
                attempt.kernel.space = space;
                self.pull(step, attempt, term.args[0], &inner)?;
                let index = attempt.kernel.space.resolved(&index);
                attempt.compute(t, index);
                Ok(())
            }
            TermOp::Slice(ranges) => {
                let source = term.args[0];
                let part: Access =
                    index.iter().zip(ranges).map(|(atoms, r)| (atoms.clone(), r.start, r.step)).collect();
                if !matches!(self.terms.get(source).op, TermOp::Leaf(_)) && !self.is_readable(step, source) {
                    self.may_read(step, source)?;
                    attempt.wanted.push((source, Why::Layout));
                }
                self.read(attempt, source, part)
            }
            TermOp::Concat(_) => self.read_other(step, attempt, t, &index, Why::Layout),
            TermOp::Apply(_)
                if attempt.root != Some(t)
                    && (self.is_shared(step, t) || self.is_due(step, t))
                    && self.may_read(step, t).is_ok() =>
            {
                self.read_other(step, attempt, t, &index, Why::Shared)
            }
            TermOp::Apply(_) => {
                attempt.compute(t, index.clone());
                term.args.iter().try_for_each(|&arg| self.pull(step, attempt, arg, &index))
            }
            TermOp::Position(_) => {
                attempt.compute(t, index);
                Ok(())
            }
            TermOp::Leaf(_) | TermOp::Number(_) => Ok(()),
        }
    }

    /// Returns true for a term that another step writes, which a step may read.
    fn is_readable(&self, step: Step, t: T) -> bool {
        let Some(written) = self.written.get(&t) else { return false };
        match written.home {
            Some(home) => home != step && (written.readers.contains(&step) || !self.follows(home, step)),
            None => written.readers.contains(&step),
        }
    }

    /// Refuses to read a term that follows from the step itself.
    fn may_read(&self, step: Step, t: T) -> Try<()> {
        let follows = |&source: &Step| source == step || self.follows(source, step);
        let home = self.written.get(&t).and_then(|written| written.home);
        if self.sources_of(t).iter().chain(&home).any(follows) { Err(Refused) } else { Ok(()) }
    }

    fn read_other(&self, step: Step, attempt: &mut Attempt, t: T, index: &Index, why: Why) -> Try<()> {
        self.may_read(step, t)?;
        attempt.wanted.push((t, why));
        self.read(attempt, t, access(index))
    }

    fn read(&self, attempt: &mut Attempt, t: T, part: Access) -> Try<()> {
        let operand = (t, part);
        if attempt.kernel.operands.contains(&operand) {
            return Ok(());
        }
        if attempt.kernel.operands.len() >= MAX_OPERANDS {
            return Err(Refused);
        }
        attempt.kernel.operands.push(operand);
        Ok(())
    }

    /// Returns true for a term that another kernel computes from two large operands or more.
    fn is_shared(&self, step: Step, t: T) -> bool {
        let is_other = |steps: &Vec<Step>| steps.iter().any(|&other| other != step) && !steps.contains(&step);
        self.pulled.get(&t).is_some_and(is_other) && self.is_heavy(t)
    }

    /// Returns true for a term that is written in any case, by a kernel that it follows from.
    fn is_due(&self, step: Step, t: T) -> bool {
        let is_kernel = |&source: &Step| source != step && self.kernel(source).is_some();
        self.written.contains_key(&t) && self.sources_of(t).iter().any(is_kernel)
    }

    pub(super) fn is_heavy(&self, t: T) -> bool {
        *self.heavy[t as usize].get_or_init(|| {
            let size: u64 = self.terms.shape(t).iter().product();
            let mut near = vec![];
            self.leaves(t, &mut near);
            near.iter().filter(|&&leaf| self.terms.shape(leaf).iter().product::<u64>() >= size).count() >= 2
        })
    }

    /// Computes each kernel's operands anew, now that it is known which values are written.
    pub(super) fn reread(&mut self) {
        for step in 0..self.units.len() {
            let Some(kernel) = self.kernel(step) else { continue };
            let mut kernel = kernel.clone();
            let (computed, operands) = (std::mem::take(&mut kernel.computed), std::mem::take(&mut kernel.operands));
            let mut attempt = Attempt::of(kernel, BTreeSet::new(), None);
            let mut roots: Vec<(T, Index)> = vec![];
            for &reduction in &attempt.kernel.reductions {
                let of = self.terms.get(reduction).args[0];
                if let Some(index) = attempt.kernel.index.get(&of) {
                    roots.push((of, index.clone()));
                }
            }
            roots.extend(attempt.kernel.outputs.iter().map(|placed| (placed.term, placed.index.clone())));
            let outputs: FxHashSet<T> = attempt.kernel.outputs.iter().map(|placed| placed.term).collect();
            let pulled = roots.iter().try_for_each(|(t, index)| self.pull_own(step, &mut attempt, *t, index, &outputs));
            if pulled.is_err() || !attempt.wanted.iter().all(|(t, _)| self.written.contains_key(t)) {
                attempt.kernel.computed = computed;
                attempt.fresh.clear();
                attempt.kernel.operands = operands;
                attempt.waits.clear();
                attempt.wanted.clear();
            }
            self.commit(step, attempt);
        }
    }

    /// Brings a root into its kernel: an output of its own is never read from another's buffer.
    fn pull_own(&self, step: Step, attempt: &mut Attempt, t: T, index: &Index, outputs: &FxHashSet<T>) -> Try<()> {
        let is_other = self.written.get(&t).is_some_and(|written| written.home.is_some_and(|home| home != step));
        if is_other && outputs.contains(&t) && !matches!(self.terms.get(t).op, TermOp::Leaf(_)) {
            // A part of a concatenation that another kernel writes too.
            return self.pull(step, attempt, t, index);
        }
        self.pull(step, attempt, t, index)
    }
}
