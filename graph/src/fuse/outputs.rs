//! The outputs of kernels: whether a kernel can write a term beside what it computes.

use super::kernel::{Attempt, Kernel, MAX_OUTPUTS, MAX_TERMS, Placed, Refused, Try};
use super::place::Placement;
use super::space::Index;
use super::terms::T;
use super::waits::Step;
use std::collections::BTreeSet;

impl Placement<'_> {
    /// Returns true if a kernel would wait for a step that waits for what it writes.
    pub(super) fn closes_circle(&self, attempt: &Attempt, readers: &[Step]) -> bool {
        attempt.waits.iter().any(|&wait| readers.iter().any(|&reader| self.follows(wait, reader)))
    }

    /// The kernel with another output.
    pub(super) fn with_output(&self, step: Step, t: T) -> Try<Attempt> {
        let kernel = self.kernel(step).ok_or(Refused)?;
        let is_wide = |t: &T| self.wide[*t as usize];
        let widens =
            is_wide(&t) && !kernel.reductions.iter().chain(kernel.outputs.iter().map(|p| &p.term)).any(is_wide);
        if widens || kernel.outputs.len() >= MAX_OUTPUTS || kernel.computed.len() > MAX_TERMS {
            return Err(Refused);
        }
        let mut attempt = Attempt::of(kernel.clone(), BTreeSet::new(), Some(t));
        let index = self.forward(step, &mut attempt.kernel, t).ok_or(Refused)?;
        attempt.waits.extend(self.sources_of(t).into_iter().filter(|&source| source != step));
        self.pull(step, &mut attempt, t, &index)?;
        if !self.is_output(&attempt.kernel, t, &index) {
            return Err(Refused);
        }
        attempt.kernel.outputs.push(Placed { term: t, index, into: (t, 0, 0) });
        Ok(attempt)
    }

    /// Returns true if the values of a term at an index are those of an output: of all elements, all slices, or all totals,
    /// and the term depends on elements, slices or totals.
    fn is_output(&self, kernel: &Kernel, t: T, index: &Index) -> bool {
        let space = &kernel.space;
        let atoms = space.atoms_of(index);
        let total = kernel.totals.as_ref().map(|totals| space.atoms_of(&[totals.clone()].into())).unwrap_or_default();
        let depends = self.depends(kernel, t, index);
        let has_total = self.own_reductions(kernel, t).iter().any(|&r| self.is_total(kernel, r));
        let has_reduced = depends.iter().any(|&atom| space.is_reduced(atom));
        let all = |is: &dyn Fn(usize) -> bool| {
            let mut all: Vec<usize> =
                space.order().into_iter().filter(|&atom| space.extent(atom) != 1 && is(atom)).collect();
            all.sort_unstable();
            all
        };
        if has_total {
            // A total combines with totals and numbers alone.
            let only = self.own_reductions(kernel, t).iter().all(|&r| self.is_total(kernel, r));
            return only
                && !self.reads_any(kernel, t)
                && atoms == all(&|a| !space.is_reduced(a) && !total.contains(&a));
        }
        match has_reduced {
            true => atoms == all(&|_| true),
            false => {
                atoms == all(&|atom| !space.is_reduced(atom))
                    && !(kernel.is_map && depends.is_empty() && !atoms.is_empty())
            }
        }
    }
}
