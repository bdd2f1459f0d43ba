//! The joining of reductions: each goes into a kernel that it shares operands with or follows from, else into a new one.

use super::kernel::{Attempt, Kernel, MAX_STAGES, MAX_TERMS, Refused, Try};
use super::place::{Placement, Unit};
use super::space::Space;
use super::terms::{T, TermOp};
use super::waits::{Step, Steps};
use smallvec::SmallVec;

/// The most kernels that are tried for one reduction.
const MAX_TRIED: usize = 12;

/// A few terms.
type Few = SmallVec<[T; 64]>;

impl Placement<'_> {
    /// Puts a reduction into a kernel: one that it shares operands with or follows from, else a new one.
    pub(super) fn place(&mut self, t: T) -> Step {
        let term = self.terms.get(t);
        let (axes, of) = match &term.op {
            TermOp::Reduce { axes, .. } | TermOp::Centered(axes) => (axes.clone(), term.args[0]),
            _ => unreachable!("a reduction is placed"),
        };
        let sources: Steps = self.sources_of(of).into();
        let mut tried: Steps = sources.iter().copied().filter(|&step| self.kernel(step).is_some()).collect();
        tried.sort_unstable_by(|a, b| b.cmp(a));
        let tried = first_distinct(tried);
        if let Some(step) = tried.iter().copied().find(|&step| self.takes(step, t, &axes, &sources)) {
            return step;
        }
        let near = first_distinct(tried.iter().copied().chain(self.near_readers(of)));
        if let Some(step) = near.into_iter().skip(tried.len()).find(|&step| self.takes(step, t, &axes, &sources)) {
            return step;
        }
        let (space, index) = Space::new(self.terms.shape(of), &axes);
        let mut kernel = Kernel::new(space, of, &index);
        kernel.reductions.push(t);
        kernel.stage.insert(t, 1);
        let step = self.units.len();
        self.units.push(Unit::Changing);
        self.waits.push(false);
        let attempt = self.whole(step, Box::new(kernel), of, &index, &sources);
        self.commit(step, attempt);
        step
    }

    /// Puts a reduction into a kernel, where that makes no steps wait for one another. Returns true if it is done.
    fn takes(&mut self, step: Step, t: T, axes: &[usize], sources: &[Step]) -> bool {
        !self.is_early(step, sources, &[])
            && self.attempt(step, None, |this, attempt| this.join(step, attempt, t, axes))
    }

    /// The kernels that read the leaves near a term, a few of each leaf.
    pub(super) fn near_readers(&self, t: T) -> impl Iterator<Item = Step> {
        self.leaves(t).into_iter().flat_map(|leaf| self.readers[leaf as usize].iter().rev().take(4).copied())
    }

    /// The leaves near a term, a few of them.
    pub(super) fn leaves(&self, t: T) -> Few {
        let (mut seen, mut open, mut leaves) = (Few::new(), Few::from_slice(&[t]), Few::new());
        while let Some(t) = open.pop() {
            if seen.len() > 64 || leaves.len() > 8 {
                break;
            }
            if seen.contains(&t) {
                continue;
            }
            seen.push(t);
            match &self.terms.get(t).op {
                TermOp::Leaf(_) => leaves.push(t),
                TermOp::Reduce { .. } => {}
                _ => open.extend_from_slice(&self.terms.get(t).args),
            }
        }
        leaves
    }

    /// Brings another reduction into a kernel.
    fn join(&self, step: Step, attempt: &mut Attempt, t: T, axes: &[usize]) -> Try<()> {
        let of = self.terms.get(t).args[0];
        let kernel = &mut attempt.kernel;
        // A reduction keeps the accumulator that it has alone.
        let is_wide = |t: &T| self.wide[*t as usize];
        let agrees = kernel.reductions.first().map(is_wide) == Some(is_wide(&t));
        if kernel.is_map || !agrees || kernel.computed.len() > MAX_TERMS {
            return Err(Refused);
        }
        let index = self.forward(step, kernel, of).ok_or(Refused)?;
        let space = &kernel.space;
        let reduced = space.parts_of(axes.iter().flat_map(|&axis| index[axis].iter().copied()));
        let all = space.atoms_of(&index);
        let mut both: Vec<usize> = space.order().into_iter().filter(|&atom| space.extent(atom) != 1).collect();
        both.sort_unstable();
        let (over, kept): (Vec<usize>, Vec<usize>) = both.iter().partition(|&&atom| space.is_reduced(atom));
        let is_slice = reduced == over && all == both && !over.is_empty();
        let is_centered = matches!(self.terms.get(t).op, TermOp::Centered(_));
        // Positions of totals are a kernel of their own: a region would give 0 for them.
        let is_position = matches!(&self.terms.get(t).op, TermOp::Reduce { call, .. }
            if call.as_row().is_some_and(|row| row.takes_position));
        let is_total =
            !is_slice && !is_centered && !is_position && all == kept && !reduced.is_empty() && !over.is_empty();
        let totals = kernel.totals.as_ref().map(|totals| space.parts_of(totals.iter().copied()));
        let totals_agree = totals.is_none_or(|totals| totals == reduced);
        if !(is_slice || is_total && totals_agree) || !self.is_free_of_totals(kernel, of) {
            return Err(Refused);
        }
        let stage = 1 + self.stage_of(kernel, of);
        if stage > MAX_STAGES {
            return Err(Refused);
        }
        if is_total {
            kernel.totals = Some(reduced);
        }
        kernel.reductions.push(t);
        kernel.stage.insert(t, stage);
        attempt.waits.extend(self.sources_of(of).iter().filter(|&&source| source != step));
        self.pull(step, attempt, of, &index)
    }

    /// Returns true if no total is among the reductions of the kernel that a term follows from, so that it may be reduced.
    fn is_free_of_totals(&self, kernel: &Kernel, t: T) -> bool {
        kernel.totals.is_none() || !self.own_reductions(kernel, t).iter().any(|&r| self.is_total(kernel, r))
    }

    /// Returns true for a reduction over kept axes of the kernel.
    pub(crate) fn is_total(&self, kernel: &Kernel, t: T) -> bool {
        let term = self.terms.get(t);
        let TermOp::Reduce { axes, .. } = &term.op else { return false };
        let Some(index) = term.args.first().and_then(|of| kernel.index.get(of)) else { return false };
        let index = kernel.space.resolved(index);
        let mut atoms = axes.iter().flat_map(|&axis| index[axis].iter());
        atoms.any(|&atom| !kernel.space.is_reduced(atom))
    }
}

/// The first kernels that are tried, each once.
pub(super) fn first_distinct(steps: impl IntoIterator<Item = Step>) -> Steps {
    let mut tried = Steps::new();
    for step in steps {
        if tried.len() == MAX_TRIED {
            break;
        }
        if !tried.contains(&step) {
            tried.push(step);
        }
    }
    tried
}
