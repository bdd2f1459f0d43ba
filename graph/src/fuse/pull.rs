//! The pulling of terms into kernels: a term comes with all that it is computed from; what may not come is read.

use super::kernel::{Access, Attempt, MAX_OPERANDS, MAX_TERMS, Refused, Try, Why, access};
use super::place::Placement;
use super::space::{Index, seen_through};
use super::terms::{T, TermOp};
use super::waits::{Step, Steps};

impl Placement<'_> {
    /// Brings a term into a kernel at an index, with all that it is computed from there; the rest is read.
    pub(super) fn pull(&self, step: Step, attempt: &mut Attempt, t: T, index: &Index) -> Try<()> {
        let index = attempt.kernel.space.resolved(index);
        let term = self.terms.get(t);
        if self.terms.number(t).is_some() || attempt.kernel.computed.contains(&(t, index.clone())) {
            return Ok(());
        }
        if let TermOp::Leaf(_) = term.op {
            return self.read(attempt, t, access(&index));
        }
        if self.is_readable(step, t) {
            attempt.waits.extend(self.written_home(t));
            return self.read(attempt, t, access(&index));
        }
        match &term.op {
            TermOp::Reduce { axes, .. } => {
                if self.home_of(t) != Some(step) {
                    return self.read_other(step, attempt, t, &index, Why::OtherAxes);
                }
                let of = attempt.kernel.index.get(&term.args[0]).ok_or(Refused)?;
                let of = attempt.kernel.space.resolved(of);
                let own = of.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, atoms)| atoms);
                if own.eq(index.iter()) { Ok(()) } else { Err(Refused) }
            }
            TermOp::Centered(_) => {
                if self.home_of(t) != Some(step) {
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
                let Some(inner) = attempt.kernel.space.reshaped(&index, self.terms.shape(term.args[0])) else {
                    return self.read_other(step, attempt, t, &index, Why::Layout);
                };
                self.pull(step, attempt, term.args[0], &inner)?;
                let index = attempt.kernel.space.resolved(&index);
                attempt.compute(t, index);
                Ok(())
            }
            TermOp::Slice(ranges) => {
                let source = term.args[0];
                let part: Access =
                    index.iter().zip(ranges).map(|(atoms, r)| (atoms.clone(), r.start, r.step)).collect();
                if self.is_readable(step, source) {
                    attempt.waits.extend(self.written_home(source));
                } else if !matches!(self.terms.get(source).op, TermOp::Leaf(_)) {
                    attempt.waits.extend(self.may_read(step, source)?);
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
        let Some(written) = self.written(t) else { return false };
        match written.home {
            Some(home) => home != step && (written.readers.contains(&step) || !self.follows(home, step)),
            None => written.readers.contains(&step),
        }
    }

    /// The steps that write what a term needs; refuses to read a term that follows from the step itself.
    fn may_read(&self, step: Step, t: T) -> Try<Steps> {
        let home = self.written_home(t);
        let mut after = self.waits.followers(std::slice::from_ref(&step));
        if self.sources_of(t).iter().chain(&home).any(|&source| after.has(source)) {
            return Err(Refused);
        }
        let needs = self.needs(step, t);
        if needs.is_circular { Err(Refused) } else { Ok(needs.steps) }
    }

    fn read_other(&self, step: Step, attempt: &mut Attempt, t: T, index: &Index, why: Why) -> Try<()> {
        attempt.waits.extend(self.may_read(step, t)?);
        attempt.wanted.push((t, why));
        self.read(attempt, t, access(index))
    }

    fn read(&self, attempt: &mut Attempt, t: T, part: Access) -> Try<()> {
        let operands = &mut attempt.kernel.operands;
        let operand = (t, part);
        if operands.contains(&operand) {
            return Ok(());
        }
        if operands.len() >= MAX_OPERANDS {
            return Err(Refused);
        }
        operands.push(operand);
        Ok(())
    }

    /// Returns true for a term that another kernel computes from two large operands or more.
    fn is_shared(&self, step: Step, t: T) -> bool {
        let steps = &self.pulled[t as usize];
        !steps.is_empty() && !steps.contains(&step) && self.is_heavy(t)
    }

    /// Returns true for a term that is written in any case, by a kernel that it follows from.
    fn is_due(&self, step: Step, t: T) -> bool {
        let is_kernel = |&source: &Step| source != step && self.kernel(source).is_some();
        self.is_written(t) && self.sources_of(t).iter().any(is_kernel)
    }

    pub(super) fn is_heavy(&self, t: T) -> bool {
        *self.heavy[t as usize].get_or_init(|| {
            let size: u64 = self.terms.shape(t).iter().product();
            let near = self.leaves(t);
            near.iter().filter(|&&leaf| self.terms.shape(leaf).iter().product::<u64>() >= size).count() >= 2
        })
    }

    /// Computes each kernel's operands anew, now that it is known which values are written.
    pub(super) fn reread(&mut self) {
        for step in 0..self.units.len() {
            let Some(mut kernel) = self.taken(step) else { continue };
            let (computed, operands) = (std::mem::take(&mut kernel.computed), std::mem::take(&mut kernel.operands));
            let mut attempt = Attempt::of(kernel, None);
            let mut roots: Vec<(T, Index)> = vec![];
            for &reduction in &attempt.kernel.reductions {
                let of = self.terms.get(reduction).args[0];
                if let Some(index) = attempt.kernel.index.get(&of) {
                    roots.push((of, index.clone()));
                }
            }
            roots.extend(attempt.kernel.outputs.iter().map(|placed| (placed.term, placed.index.clone())));
            let pulled = roots.iter().try_for_each(|(t, index)| self.pull(step, &mut attempt, *t, index));
            if pulled.is_err() || !attempt.wanted.iter().all(|(t, _)| self.is_written(*t)) {
                attempt.kernel.computed = computed;
                attempt.fresh.clear();
                attempt.kernel.operands = operands;
                attempt.waits.clear();
                attempt.wanted.clear();
            }
            self.commit(step, attempt);
        }
    }
}
