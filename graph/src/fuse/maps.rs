//! The kernels of elements alone: values that no kernel with a reduction writes, and the parts of concatenations.

use super::join::first_distinct;
use super::kernel::{Kernel, Placed, Refused};
use super::place::{Placement, Unit};
use super::space::{Index, Space};
use super::terms::T;
use super::waits::{Step, Steps};

impl Placement<'_> {
    /// The parts of a concatenation, each written to its place.
    pub(super) fn settle_concat(&mut self, t: T, axis: usize) {
        let readers = self.followers_of(t);
        let parts = self.terms.get(t).args.clone();
        let mut start = 0;
        let sources: Steps = self.sources_of(t).into();
        let mut before: Option<Step> = None;
        for part in parts {
            let extent = self.terms.shape(part).get(axis).copied().unwrap_or(1);
            if extent > 0 {
                let step = self.settle_map(t, part, &sources, &readers, (t, axis, start));
                // The home is the step of the last part: it stands after those of all others.
                self.waits.add(step, before);
                before = Some(step);
            }
            start += extent;
        }
    }

    /// A kernel of elements alone that writes a term; returns its step.
    pub(super) fn settle_map(
        &mut self,
        t: T,
        value: T,
        sources: &[Step],
        readers: &[Step],
        into: (T, usize, u64),
    ) -> Step {
        if !self.takes_maps {
            self.left.insert(t);
        }
        // A kernel of elements of the same shape takes it, where it reads the same.
        if into.0 == value {
            let mut tried: Steps = sources.into();
            tried.extend(self.near_readers(value));
            tried.sort_unstable();
            for step in first_distinct(tried.into_iter().rev()) {
                let Some(index) = self.map_index(step, value) else { continue };
                if self.is_early(step, sources, readers) {
                    continue;
                }
                let done = self.attempt(step, Some(value), |this, attempt| {
                    attempt.kernel.give_index(value, &index);
                    this.add_output(step, attempt, value)?;
                    if this.closes_circle(attempt, readers) { Err(Refused) } else { Ok(()) }
                });
                if done {
                    self.set_home(t, step);
                    return step;
                }
            }
        }
        let (space, index) = Space::new(self.terms.shape(value), &[]);
        let mut kernel = Kernel::new(space, value, &index);
        kernel.outputs.push(Placed { term: value, index: index.clone(), into });
        kernel.is_map = true;
        let step = self.units.len();
        self.units.push(Unit::Changing);
        self.waits.push(true);
        self.waits.add(step, sources.iter().copied());
        // What follows from a reader is not read here.
        readers.iter().for_each(|&reader| self.waits.add(reader, [step]));
        let attempt = self.whole(step, Box::new(kernel), value, &index, sources);
        self.commit(step, attempt);
        self.set_home(t, step);
        step
    }

    /// The index that a term of its outputs' shape has in a kernel of elements alone.
    fn map_index(&self, step: Step, t: T) -> Option<Index> {
        let kernel = self.kernel(step).filter(|kernel| kernel.is_map)?;
        let first = kernel.outputs.first()?;
        let is_alike = first.into.0 == first.term && self.terms.shape(first.term) == self.terms.shape(t);
        is_alike.then(|| first.index.clone())
    }
}
