//! The joining of reductions: each goes into a kernel that it shares operands with or follows from, else into a new one.

use super::kernel::{Attempt, Kernel, MAX_STAGES, MAX_TERMS, Refused, Try, Why, access};
use super::place::{Placement, Unit};
use super::space::{Index, Space};
use super::terms::{T, TermOp};
use super::waits::Step;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// The most kernels that are tried for one reduction.
pub(super) const MAX_TRIED: usize = 12;

impl Placement<'_> {
    /// Puts a reduction into a kernel: one that it shares operands with or follows from, else a new one.
    pub(super) fn place(&mut self, t: T) -> Step {
        let term = self.terms.get(t);
        let (axes, of) = match &term.op {
            TermOp::Reduce { axes, .. } | TermOp::Centered(axes) => (axes.clone(), term.args[0]),
            _ => unreachable!("a reduction is placed"),
        };
        let sources = self.sources_of(of);
        let mut tried: Vec<Step> = sources.iter().copied().filter(|&step| self.kernel(step).is_some()).collect();
        tried.sort_unstable_by(|a, b| b.cmp(a));
        let mut near = vec![];
        self.leaves(of, &mut near);
        for leaf in near {
            tried.extend(self.readers.get(&leaf).into_iter().flatten().rev().take(4).copied());
        }
        let mut seen = FxHashSet::default();
        tried.retain(|&step| seen.insert(step));
        for &step in tried.iter().take(MAX_TRIED) {
            let is_early = sources.iter().any(|&source| source != step && self.follows(source, step));
            if is_early {
                continue;
            }
            if let Ok(attempt) = self.joined(step, t, of, &axes) {
                self.commit(step, attempt);
                return step;
            }
        }
        let (space, index) = Space::new(self.terms.shape(of), &axes);
        let kernel = Kernel {
            space,
            index: BTreeMap::from([(of, index.clone())]),
            reductions: vec![t],
            totals: None,
            stage: FxHashMap::from_iter([(t, 1)]),
            outputs: vec![],
            computed: FxHashMap::default(),
            operands: vec![],
            is_map: false,
        };
        let step = self.units.len();
        self.units.push(Unit::Kernel(Box::new(kernel.clone())));
        self.waits.push(false);
        let mut attempt = Attempt::of(kernel, sources.into_iter().collect(), None);
        if self.pull(step, &mut attempt, of, &index).is_err() {
            // The operand itself is written, which a new kernel can always read.
            attempt.kernel.computed.clear();
            attempt.fresh.clear();
            attempt.kernel.operands.clear();
            attempt.wanted = vec![(of, Why::Layout)];
            attempt.kernel.operands.push((of, access(&index)));
        }
        self.commit(step, attempt);
        step
    }

    /// The leaves near a term, a few of them.
    pub(super) fn leaves(&self, t: T, to: &mut Vec<T>) {
        let (mut seen, mut open): (Vec<T>, Vec<T>) = (vec![], vec![t]);
        while let Some(t) = open.pop() {
            if seen.len() > 64 || to.len() > 8 {
                break;
            }
            if seen.contains(&t) {
                continue;
            }
            seen.push(t);
            match &self.terms.get(t).op {
                TermOp::Leaf(_) => to.push(t),
                TermOp::Reduce { .. } => {}
                _ => open.extend(self.terms.get(t).args.iter().copied()),
            }
        }
    }

    /// The kernel with another reduction in it.
    fn joined(&self, step: Step, t: T, of: T, axes: &[usize]) -> Try<Attempt> {
        let kernel = self.kernel(step).ok_or(Refused)?;
        // A reduction keeps the accumulator that it has alone.
        let is_wide = |t: &T| self.wide[*t as usize];
        let agrees = kernel.reductions.first().map(is_wide) == Some(is_wide(&t));
        if kernel.is_map || !agrees || kernel.computed.len() > MAX_TERMS {
            return Err(Refused);
        }
        let mut attempt = Attempt::of(kernel.clone(), BTreeSet::new(), None);
        let index = self.forward(step, &mut attempt.kernel, of).ok_or(Refused)?;
        let space = &attempt.kernel.space;
        let own: Index = axes.iter().map(|&axis| index[axis].clone()).collect();
        let (reduced, all) = (space.atoms_of(&own), space.atoms_of(&index));
        let wide = |is_reduced: bool| {
            let is = |&atom: &usize| space.is_reduced(atom) == is_reduced && space.extent(atom) != 1;
            let mut atoms: Vec<usize> = space.order().into_iter().filter(is).collect();
            atoms.sort_unstable();
            atoms
        };
        let (over, kept) = (wide(true), wide(false));
        let mut both: Vec<usize> = over.iter().chain(&kept).copied().collect();
        both.sort_unstable();
        let is_slice = reduced == over && all == both && !over.is_empty();
        let is_centered = matches!(self.terms.get(t).op, TermOp::Centered(_));
        // Positions of totals are a kernel of their own: a region would give 0 for them.
        let is_position = matches!(&self.terms.get(t).op, TermOp::Reduce { call, .. }
            if call.as_row().is_some_and(|row| row.takes_position));
        let is_total =
            !is_slice && !is_centered && !is_position && all == kept && !reduced.is_empty() && !over.is_empty();
        let totals_agree = attempt.kernel.totals.as_ref().is_none_or(|totals| {
            let parts = space.atoms_of(&[totals.clone()].into());
            parts == reduced
        });
        if !(is_slice || is_total && totals_agree && self.is_of_slices(&attempt.kernel, of)) {
            return Err(Refused);
        }
        let stage = 1 + self.stage_of(&attempt.kernel, of);
        if stage > MAX_STAGES {
            return Err(Refused);
        }
        if is_total {
            attempt.kernel.totals = Some(reduced);
        }
        attempt.kernel.stage.insert(t, stage);
        attempt.waits.extend(self.sources_of(of).into_iter().filter(|&source| source != step));
        self.pull(step, &mut attempt, of, &index)?;
        attempt.kernel.index.insert(of, index);
        attempt.kernel.reductions.push(t);
        Ok(attempt)
    }

    /// Returns true if no total is among the reductions of the kernel that a term follows from, so that it may be reduced.
    fn is_of_slices(&self, kernel: &Kernel, t: T) -> bool {
        let total = |r: &T| kernel.totals.is_some() && self.is_total(kernel, *r);
        !self.own_reductions(kernel, t).iter().any(total)
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
