//! The homes of written values: the kernel that computes one anyway writes it, else a kernel of its own.

use super::join::first_distinct;
use super::kernel::{Attempt, Placed, Refused, Why};
use super::place::{Placement, Unit};
use super::terms::{T, TermOp};
use super::waits::{Step, Steps};
use rustc_hash::FxHashSet;

impl Placement<'_> {
    /// Values that several kernels compute from two large operands or more are written once.
    pub(super) fn share(&mut self) {
        let mut shared: Vec<T> = vec![];
        for t in 0..self.terms.len() as T {
            if self.pulled[t as usize].len() < 2 || self.is_written(t) {
                continue;
            }
            if matches!(self.terms.get(t).op, TermOp::Apply(_)) && self.is_heavy(t) {
                shared.push(t);
            }
        }
        // The last of a chain stands for those before it.
        let all: FxHashSet<T> = shared.iter().copied().collect();
        let inner: FxHashSet<T> =
            shared.iter().flat_map(|&t| self.terms.get(t).args.iter().copied()).filter(|t| all.contains(t)).collect();
        for t in shared.into_iter().filter(|t| !inner.contains(t)) {
            self.want(t, None, Why::Shared);
        }
    }

    /// Gives a written term its home.
    pub(super) fn settle(&mut self, t: T) {
        if let Some(home) = self.home_of(t) {
            self.settle_reduction(t, home);
            return;
        }
        let term = self.terms.get(t);
        if let TermOp::Concat(axis) = term.op {
            self.settle_concat(t, axis);
            return;
        }
        if let TermOp::Reshape = term.op {
            let source = term.args[0];
            let is_there = matches!(self.terms.get(source).op, TermOp::Leaf(_)) || self.is_written(source);
            if is_there || !self.is_fusible(t) {
                let readers = self.readers_of(t);
                self.want(source, None, Why::Layout);
                for reader in readers {
                    self.want(source, Some(reader), Why::Layout);
                }
                if let Some(written) = self.written.get_mut(&t) {
                    written.alias = Some(source);
                }
                // The home of an alias is that of its source.
                match self.written_home(source).or(self.home_of(source)) {
                    Some(home) => self.set_home(t, home),
                    None if self.is_written(source) => {
                        self.open.remove(&source);
                        self.settle(source);
                        if let Some(home) = self.written_home(source) {
                            self.set_home(t, home);
                        }
                    }
                    None => {}
                }
                return;
            }
        }
        let readers = self.followers_of(t);
        let sources: Steps = self.sources_of(t).into();
        let mut tried = sources.clone();
        tried.sort_unstable_by(|a, b| b.cmp(a));
        tried.extend_from_slice(&self.pulled[t as usize]);
        tried.retain(|step| self.kernel(*step).is_some());
        for step in first_distinct(tried) {
            if !self.is_early(step, &sources, &readers) && self.gives(step, t, &readers) {
                self.set_home(t, step);
                return;
            }
        }
        self.settle_map(t, t, &sources, &readers, (t, 0, 0));
    }

    /// Returns true if a step comes before one of a term's sources, or after one of its readers.
    pub(super) fn is_early(&self, step: Step, sources: &[Step], readers: &[Step]) -> bool {
        let mut after = self.waits.followers(std::slice::from_ref(&step));
        sources.iter().any(|&source| source != step && after.has(source)) || self.waits.followers(readers).has(step)
    }

    /// Makes a term an output of a kernel, where that makes no steps wait for one another. Returns true if it is done.
    pub(super) fn gives(&mut self, step: Step, t: T, readers: &[Step]) -> bool {
        self.attempt(step, Some(t), |this, attempt| {
            this.add_output(step, attempt, t)?;
            if this.closes_circle(attempt, readers) { Err(Refused) } else { Ok(()) }
        })
    }

    /// Returns true if a kernel could compute a reshape as an output: one that its operand follows from.
    fn is_fusible(&mut self, t: T) -> bool {
        let sources: Steps = self.sources_of(t).into();
        sources.into_iter().any(|step| {
            let Some(kernel) = self.taken(step) else { return false };
            let mut attempt = Attempt::of(kernel, Some(t));
            let is_output = self.add_output(step, &mut attempt, t).is_ok();
            self.units[step] = Unit::Kernel(attempt.undone());
            is_output
        })
    }

    fn settle_reduction(&mut self, t: T, home: Step) {
        let Some(mut kernel) = self.taken(home) else { return };
        let index = self.forward(home, &mut kernel, t).unwrap_or_default();
        kernel.indexed.clear();
        kernel.outputs.push(Placed { term: t, index, into: (t, 0, 0) });
        self.units[home] = Unit::Kernel(kernel);
        self.set_home(t, home);
    }
}
