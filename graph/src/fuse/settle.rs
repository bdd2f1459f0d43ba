//! The homes of written values: the kernel that computes one anyway writes it, else a kernel of its own.

use super::join::MAX_TRIED;
use super::kernel::{Placed, Why};
use super::place::{Placement, Unit};
use super::terms::{T, TermOp};
use super::waits::Step;
use rustc_hash::FxHashSet;

impl Placement<'_> {
    /// Values that several kernels compute from two large operands or more are written once.
    pub(super) fn share(&mut self) {
        let mut shared: Vec<T> = vec![];
        for (&t, steps) in &self.pulled {
            let TermOp::Apply(_) = self.terms.get(t).op else { continue };
            if steps.len() < 2 || self.written.contains_key(&t) {
                continue;
            }
            if self.is_heavy(t) {
                shared.push(t);
            }
        }
        shared.sort_unstable();
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
        if let Some(&home) = self.home.get(&t) {
            self.settle_reduction(t, home);
            return;
        }
        let term = self.terms.get(t).clone();
        if let TermOp::Concat(axis) = term.op {
            self.settle_concat(t, axis);
            return;
        }
        if let TermOp::Reshape = term.op {
            let source = term.args[0];
            let is_there = matches!(self.terms.get(source).op, TermOp::Leaf(_)) || self.written.contains_key(&source);
            if is_there || !self.is_fusible(t) {
                let readers: Vec<Step> =
                    self.written.get(&t).map(|w| w.readers.iter().copied().collect()).unwrap_or_default();
                self.want(source, None, Why::Layout);
                for reader in readers {
                    self.want(source, Some(reader), Why::Layout);
                }
                if let Some(written) = self.written.get_mut(&t) {
                    written.alias = Some(source);
                }
                // The home of an alias is that of its source.
                match self.written.get(&source).and_then(|w| w.home).or(self.home.get(&source).copied()) {
                    Some(home) => self.set_home(t, home),
                    None if self.written.contains_key(&source) => {
                        self.open.remove(&source);
                        self.settle(source);
                        if let Some(home) = self.written.get(&source).and_then(|w| w.home) {
                            self.set_home(t, home);
                        }
                    }
                    None => {}
                }
                return;
            }
        }
        let readers: Vec<Step> = self.written.get(&t).map(|w| w.readers.iter().copied().collect()).unwrap_or_default();
        let sources = self.sources_of(t);
        let mut tried: Vec<Step> = sources.clone();
        tried.sort_unstable_by(|a, b| b.cmp(a));
        tried.extend(self.pulled.get(&t).into_iter().flatten().copied());
        let mut seen = FxHashSet::default();
        tried.retain(|&step| seen.insert(step) && self.kernel(step).is_some());
        for &step in tried.iter().take(MAX_TRIED) {
            let is_early = sources.iter().any(|&source| source != step && self.follows(source, step))
                || readers.iter().any(|&reader| self.follows(step, reader));
            if is_early {
                continue;
            }
            if let Ok(attempt) = self.with_output(step, t)
                && !self.closes_circle(&attempt, &readers)
            {
                self.commit(step, attempt);
                self.set_home(t, step);
                return;
            }
        }
        self.settle_map(t, t, &sources, &readers, (t, 0, 0));
    }

    /// Returns true if a kernel could compute a reshape as an output: one that its operand follows from.
    fn is_fusible(&self, t: T) -> bool {
        self.sources_of(t).iter().any(|&step| self.kernel(step).is_some() && self.with_output(step, t).is_ok())
    }

    fn settle_reduction(&mut self, t: T, home: Step) {
        let Some(kernel) = self.kernel(home) else { return };
        let mut kernel = kernel.clone();
        let index = self.forward(home, &mut kernel, t).unwrap_or_default();
        kernel.outputs.push(Placed { term: t, index, into: (t, 0, 0) });
        self.units[home] = Unit::Kernel(Box::new(kernel));
        self.set_home(t, home);
    }
}
