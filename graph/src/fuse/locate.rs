//! The index of a term in a kernel: which atoms of the kernel's space its axes are.

use super::kernel::{Access, Kernel, MAX_TERMS};
use super::place::Placement;
use super::space::{Atoms, Index, seen_through};
use super::terms::{T, TermOp};
use super::waits::Step;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

impl Placement<'_> {
    /// The reductions of the kernel that a term follows from, nearest first.
    pub(super) fn own_reductions(&self, kernel: &Kernel, t: T) -> Vec<T> {
        let (mut found, mut seen, mut open) = (vec![], FxHashSet::default(), vec![t]);
        // Operands stand before their users: a term before the first reduction follows from none.
        let first = kernel.reductions.iter().min().copied().unwrap_or(T::MAX);
        while let Some(t) = open.pop() {
            if t < first || !seen.insert(t) {
                continue;
            }
            if kernel.stage.contains_key(&t) {
                found.push(t);
            } else if !matches!(self.terms.get(t).op, TermOp::Reduce { .. } | TermOp::Centered(_)) {
                open.extend(self.terms.get(t).args.iter().copied());
            }
        }
        found
    }

    pub(super) fn stage_of(&self, kernel: &Kernel, t: T) -> u32 {
        self.own_reductions(kernel, t).iter().map(|r| kernel.stage[r]).max().unwrap_or(0)
    }

    /// The index of a term in a kernel, from the terms there that it follows from.
    pub(super) fn forward(&self, step: Step, kernel: &mut Kernel, t: T) -> Option<Index> {
        // Operands stand before their users: a term before all that has an index follows from none.
        let known = kernel.index.keys().next().into_iter().chain(kernel.operands.iter().map(|(source, _)| source));
        let first = known.min().copied().unwrap_or(T::MAX);
        self.forward_from(step, kernel, t, first, &mut FxHashSet::default())
    }

    fn forward_from(&self, step: Step, kernel: &mut Kernel, t: T, first: T, tried: &mut FxHashSet<T>) -> Option<Index> {
        if let Some(index) = kernel.index.get(&t) {
            return Some(index.clone());
        }
        if t < first || !tried.insert(t) || tried.len() > MAX_TERMS {
            return None;
        }
        let term = self.terms.get(t);
        let found = match &term.op {
            TermOp::Reduce { axes, .. } if self.home_of(t) == Some(step) => {
                let index = kernel.index.get(&term.args[0])?;
                Some(index.iter().enumerate().filter(|(a, _)| !axes.contains(a)).map(|(_, i)| i.clone()).collect())
            }
            TermOp::Centered(_) if self.home_of(t) == Some(step) => kernel.index.get(&term.args[0]).cloned(),
            TermOp::View(from) => {
                let inner = self.forward_from(step, kernel, term.args[0], first, tried)?;
                let at = |(i, axis): (usize, &Option<usize>)| match axis {
                    Some(axis) => Some(inner[*axis].clone()),
                    None => (term.shape[i] == 1).then(Atoms::new),
                };
                from.iter().enumerate().map(at).collect()
            }
            TermOp::Reshape => {
                let inner = self.forward_from(step, kernel, term.args[0], first, tried)?;
                Some(kernel.space.reshaped(&inner, &term.shape)?)
            }
            TermOp::Apply(_) => {
                let real = |arg: &&T| self.terms.number(**arg).is_none();
                term.args.iter().filter(real).find_map(|&arg| self.forward_from(step, kernel, arg, first, tried))
            }
            TermOp::Leaf(_) | TermOp::Reduce { .. } | TermOp::Concat(_) | TermOp::Slice(_) | TermOp::Centered(_) => {
                let whole = |(source, access): &&(T, Access)| {
                    *source == t && access.iter().all(|(_, start, step)| *start == 0 && *step == 1)
                };
                let place = kernel.operands.iter().find(whole);
                place.map(|(_, access)| access.iter().map(|(atoms, ..)| atoms.clone()).collect::<Index>()).filter(|i| {
                    // An axis that is repeated here has atoms in none.
                    i.iter().zip(&term.shape).all(|(atoms, &extent)| extent == 1 || !atoms.is_empty())
                })
            }
            _ => None,
        };
        let found = found.or_else(|| self.alike(kernel, t))?;
        kernel.give_index(t, &found);
        Some(found)
    }

    /// The index of another term of the same shape, for one that no operand tells: a value of the slice that is repeated.
    fn alike(&self, kernel: &Kernel, t: T) -> Option<Index> {
        let TermOp::View(from) = &self.terms.get(t).op else { return None };
        let inner = self.terms.get(t).args[0];
        let known = kernel.index.get(&inner)?;
        let shape = self.terms.shape(t);
        let of = kernel.reductions.first().map(|&r| self.terms.get(r).args[0])?;
        let index = kernel.index.get(&of)?;
        let agrees = |(i, axis): (usize, &Option<usize>)| axis.is_none_or(|axis| known[axis] == index[i]);
        (self.terms.shape(of) == shape && from.iter().enumerate().all(agrees)).then(|| index.clone())
    }

    /// Returns true if a term is computed from values that the kernel reads, other than by reductions.
    pub(super) fn reads_any(&self, kernel: &Kernel, t: T) -> bool {
        let (mut seen, mut open) = (FxHashSet::default(), vec![t]);
        while let Some(t) = open.pop() {
            if !seen.insert(t) || kernel.stage.contains_key(&t) {
                continue;
            }
            if kernel.operands.iter().any(|(source, _)| *source == t)
                || matches!(self.terms.get(t).op, TermOp::Position(_))
            {
                return true;
            }
            open.extend(self.terms.get(t).args.iter().copied());
        }
        false
    }

    /// The atoms on which the value of a term depends.
    pub(super) fn depends(&self, kernel: &Kernel, t: T, index: &Index) -> BTreeSet<usize> {
        let mut atoms = BTreeSet::new();
        let mut seen = FxHashSet::default();
        let mut open = vec![(t, kernel.space.resolved(index))];
        while let Some((t, index)) = open.pop() {
            if !seen.insert((t, index.clone())) {
                continue;
            }
            let term = self.terms.get(t);
            let is_read = kernel
                .operands
                .iter()
                .any(|(source, part)| *source == t && part.iter().map(|(atoms, ..)| atoms).eq(index.iter()));
            match &term.op {
                TermOp::View(from) if !is_read => {
                    open.push((term.args[0], seen_through(from, &index, self.terms.shape(term.args[0]))));
                }
                TermOp::Reshape if !is_read => {
                    let mut space = kernel.space.clone();
                    match space.reshaped(&index, self.terms.shape(term.args[0])) {
                        Some(inner) => open.push((term.args[0], inner)),
                        None => atoms.extend(index.iter().flatten()),
                    }
                }
                TermOp::Apply(_) if !is_read => open.extend(term.args.iter().map(|&arg| (arg, index.clone()))),
                TermOp::Position(axis) if !is_read => atoms.extend(index[*axis].iter().copied()),
                _ => atoms.extend(index.iter().flatten()),
            }
        }
        atoms
    }
}
