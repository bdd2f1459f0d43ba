//! The outputs of kernels: whether a kernel can write a term beside what it computes.

use super::kernel::{Attempt, Kernel, MAX_OUTPUTS, MAX_TERMS, Placed, Refused, Try};
use super::place::Placement;
use super::space::Index;
use super::terms::T;
use super::waits::Step;

impl Placement<'_> {
    /// Returns true if a kernel would wait for a step that waits for what it writes.
    pub(super) fn closes_circle(&self, attempt: &Attempt, readers: &[Step]) -> bool {
        let mut after = self.waits.followers(readers);
        attempt.waits.iter().any(|&wait| after.has(wait))
    }

    /// Makes a term another output of a kernel.
    pub(super) fn add_output(&self, step: Step, attempt: &mut Attempt, t: T) -> Try<()> {
        let kernel = &mut attempt.kernel;
        let is_wide = |t: &T| self.wide[*t as usize];
        let widens =
            is_wide(&t) && !kernel.reductions.iter().chain(kernel.outputs.iter().map(|p| &p.term)).any(is_wide);
        if widens || kernel.outputs.len() >= MAX_OUTPUTS || kernel.computed.len() > MAX_TERMS {
            return Err(Refused);
        }
        let index = self.forward(step, kernel, t).ok_or(Refused)?;
        attempt.waits.extend(self.sources_of(t).iter().filter(|&&source| source != step));
        self.pull(step, attempt, t, &index)?;
        // A kernel that is long enough would read the value itself.
        let reads_itself = attempt.wanted.iter().any(|(wanted, _)| *wanted == t);
        if reads_itself || !self.is_output(&attempt.kernel, t, &index) {
            return Err(Refused);
        }
        attempt.kernel.outputs.push(Placed { term: t, index, into: (t, 0, 0) });
        Ok(())
    }

    /// Returns true if the values of a term at an index are those of an output: of all elements, all slices, or all totals,
    /// and the term depends on elements, slices or totals.
    fn is_output(&self, kernel: &Kernel, t: T, index: &Index) -> bool {
        let space = &kernel.space;
        let atoms = space.atoms_of(index);
        let total =
            kernel.totals.iter().flat_map(|totals| space.parts_of(totals.iter().copied())).collect::<Vec<usize>>();
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
