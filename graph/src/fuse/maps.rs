//! The kernels of elements alone: values that no kernel with a reduction writes, and the parts of concatenations.

use super::join::MAX_TRIED;
use super::kernel::{Attempt, Kernel, Placed, Refused, Why, access};
use super::place::{Placement, Unit};
use super::space::Space;
use super::terms::{T, TermOp};
use super::waits::Step;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

impl Placement<'_> {
    /// The parts of a concatenation, each written to its place.
    pub(super) fn settle_concat(&mut self, t: T, axis: usize) {
        let readers: Vec<Step> = self.written.get(&t).map(|w| w.readers.iter().copied().collect()).unwrap_or_default();
        let parts = self.terms.get(t).args.clone();
        let mut start = 0;
        let sources = self.sources_of(t);
        for part in parts {
            let extent = self.terms.shape(part).get(axis).copied().unwrap_or(1);
            if extent > 0 {
                self.settle_map(t, part, &sources, &readers, (t, axis, start));
            }
            start += extent;
        }
    }

    /// A kernel of elements alone that writes a term.
    pub(super) fn settle_map(&mut self, t: T, value: T, sources: &[Step], readers: &[Step], into: (T, usize, u64)) {
        if !self.takes_maps {
            self.left.insert(t);
        }
        // A kernel of elements of the same shape takes it, where it reads the same.
        if into.0 == value {
            let mut near = vec![];
            self.leaves(value, &mut near);
            let mut tried: Vec<Step> = sources.to_vec();
            for leaf in near {
                tried.extend(self.readers.get(&leaf).into_iter().flatten().rev().take(4).copied());
            }
            tried.sort_unstable();
            tried.dedup();
            for &step in tried.iter().rev().take(MAX_TRIED) {
                let is_map = self.kernel(step).is_some_and(|kernel| {
                    kernel.is_map
                        && kernel.outputs.first().is_some_and(|first| {
                            first.into.0 == first.term && self.terms.shape(first.term) == self.terms.shape(value)
                        })
                });
                let is_early = sources.iter().any(|&source| source != step && self.follows(source, step))
                    || readers.iter().any(|&reader| self.follows(step, reader));
                if !is_map || is_early {
                    continue;
                }
                if let Some(kernel) = self.kernel(step) {
                    let mut kernel = kernel.clone();
                    let index = kernel.outputs[0].index.clone();
                    kernel.index.entry(value).or_insert(index);
                    let old = std::mem::replace(&mut self.units[step], Unit::Kernel(Box::new(kernel)));
                    match self.with_output(step, value) {
                        Ok(attempt) if !self.closes_circle(&attempt, readers) => {
                            self.commit(step, attempt);
                            self.set_home(t, step);
                            return;
                        }
                        _ => self.units[step] = old,
                    }
                }
            }
        }
        let (space, index) = Space::new(self.terms.shape(value), &[]);
        let kernel = Kernel {
            space,
            index: BTreeMap::from([(value, index.clone())]),
            reductions: vec![],
            totals: None,
            stage: FxHashMap::default(),
            outputs: vec![Placed { term: value, index: index.clone(), into }],
            computed: FxHashMap::default(),
            operands: vec![],
            is_map: true,
        };
        let step = self.units.len();
        self.units.push(Unit::Kernel(Box::new(kernel.clone())));
        self.waits.push(true);
        self.waits.add(step, sources.iter().copied());
        // What follows from a reader is not read here.
        readers.iter().for_each(|&reader| self.waits.add(reader, [step]));
        let mut attempt = Attempt::of(kernel, sources.iter().copied().collect(), Some(value));
        // The value itself is computed here, whatever else is read.
        let term = self.terms.get(value);
        let done = match &term.op {
            TermOp::Concat(_) | TermOp::Reduce { .. } | TermOp::Centered(_) => Err(Refused),
            TermOp::Reshape => {
                let mut space = attempt.kernel.space.clone();
                match space.reshaped(&index, self.terms.shape(term.args[0])) {
                    Some(inner) => {
                        attempt.kernel.space = space;
                        self.pull(step, &mut attempt, term.args[0], &inner)
                    }
                    None => Err(Refused),
                }
            }
            _ => self.pull(step, &mut attempt, value, &index),
        };
        if done.is_err() {
            attempt.kernel.computed.clear();
            attempt.fresh.clear();
            attempt.kernel.operands = vec![(value, access(&index))];
            attempt.wanted = vec![(value, Why::Layout)];
        }
        self.commit(step, attempt);
        self.set_home(t, step);
    }
}
