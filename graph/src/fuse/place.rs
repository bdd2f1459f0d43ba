//! The placing of terms: which kernel computes each, and which values are written between kernels.

use super::space::{Index, Space};
use super::terms::{T, TermOp, Terms};
use cranefold_ir::DType::F64;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// The most terms of one kernel, its operands, outputs and stages.
const MAX_TERMS: usize = 300;
const MAX_OPERANDS: usize = 48;
const MAX_OUTPUTS: usize = 16;
const MAX_STAGES: u32 = 8;

/// The most kernels that are tried for one reduction.
const MAX_TRIED: usize = 12;

/// The number of a step of the plan: a kernel, or an opaque node.
pub(crate) type Step = usize;

/// A reason that a value is written between kernels, or that a kernel does not take a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    Output,
    Opaque,
    OtherAxes,
    Shared,
    Layout,
    Long,
}

/// A part of a value that a kernel reads: for each axis its atoms, the first element and the distance of elements.
pub(crate) type Access = Vec<(Vec<usize>, u64, i64)>;

#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) space: Space,
    /// The index of the operand of each reduction, and of each root.
    pub(crate) index: BTreeMap<T, Index>,
    pub(crate) reductions: Vec<T>,
    /// The kept atoms that totals reduce.
    pub(crate) totals: Option<Vec<usize>>,
    stage: FxHashMap<T, u32>,
    pub(crate) outputs: Vec<Placed>,
    /// The terms that it computes, by the index.
    pub(crate) computed: FxHashMap<(T, Index), ()>,
    /// The values that it reads.
    pub(crate) operands: Vec<(T, Access)>,
    /// True for a kernel without reductions.
    pub(crate) is_map: bool,
}

/// An output of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) term: T,
    pub(crate) index: Index,
    /// The term whose buffer it is written to, and the first element along an axis there.
    pub(crate) into: (T, usize, u64),
}

/// A step.
#[derive(Clone, Debug)]
pub(crate) enum Unit {
    Kernel(Box<Kernel>),
    /// An opaque node of the graph.
    Opaque(usize),
}

#[derive(Debug)]
pub(crate) struct Placement<'t> {
    pub(crate) terms: &'t Terms,
    pub(crate) units: Vec<Unit>,
    /// The steps that each step waits for.
    pub(crate) waits: Waits,
    /// The step that gives each reduction, or each leaf of an opaque node.
    home: FxHashMap<T, Step>,
    /// The steps that each term follows from.
    sources: Vec<Vec<Step>>,
    /// The terms that are written, with the steps that must read them there and the reasons.
    pub(crate) written: BTreeMap<T, Written>,
    /// The written terms that have no home yet.
    open: BTreeSet<T>,
    /// The kernels that read a leaf.
    readers: FxHashMap<T, Vec<Step>>,
    /// The kernels that compute a term of elements.
    pulled: FxHashMap<T, Vec<Step>>,
    takes_maps: bool,
    /// The terms that are computed in `f64`.
    wide: Vec<bool>,
    /// Terms that no kernel may compute, as there are no kernels of elements alone.
    pub(crate) left: BTreeSet<T>,
}

/// A value between steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    pub(crate) readers: BTreeSet<Step>,
    pub(crate) why: BTreeSet<Why>,
    pub(crate) home: Option<Step>,
    /// The term whose elements it shares, in the same order.
    pub(crate) alias: Option<T>,
}

/// The state of one attempt to bring terms into a kernel.
struct Attempt {
    kernel: Kernel,
    wanted: Vec<(T, Why)>,
    waits: BTreeSet<Step>,
    /// The output that is being added, which is computed here.
    root: Option<T>,
}

/// A term cannot be in the kernel.
struct Refused;

type Try<V> = Result<V, Refused>;

impl<'t> Placement<'t> {
    /// Places all reductions, in order; `opaque` gives each opaque node, its operands and its leaves.
    pub(crate) fn new(terms: &'t Terms, opaque: &[(usize, Vec<T>, Vec<T>)], outputs: &[T], takes_maps: bool) -> Self {
        let mut placement = Placement {
            terms,
            units: vec![],
            waits: Waits::default(),
            home: FxHashMap::default(),
            sources: vec![],
            written: BTreeMap::new(),
            open: BTreeSet::new(),
            readers: FxHashMap::default(),
            pulled: FxHashMap::default(),
            takes_maps,
            wide: vec![],
            left: BTreeSet::new(),
        };
        for (node, _, leaves) in opaque {
            let step = placement.units.len();
            placement.units.push(Unit::Opaque(*node));
            placement.waits.push();
            placement.home.extend(leaves.iter().map(|&leaf| (leaf, step)));
        }
        let needed = placement.needed(opaque, outputs);
        for (step, (_, args, _)) in opaque.iter().enumerate() {
            args.iter().for_each(|&arg| placement.want(arg, Some(step), Why::Opaque));
        }
        outputs.iter().for_each(|&output| placement.want(output, None, Why::Output));
        for t in 0..terms.len() as T {
            let is_wide = |arg: &T| match terms.get(*arg).op {
                TermOp::Reduce { .. } => terms.get(*arg).dtype == F64,
                _ => placement.wide[*arg as usize],
            };
            let own = terms.get(t).dtype == F64 || terms.get(t).args.iter().any(is_wide);
            placement.wide.push(own);
        }
        let mut next_opaque = 0;
        for t in 0..terms.len() as T {
            // The operands of an opaque node stand before its leaves.
            while let Some((_, args, leaves)) = opaque.get(next_opaque)
                && leaves.first().is_none_or(|&leaf| leaf <= t)
            {
                let sources: BTreeSet<Step> = args.iter().flat_map(|&arg| placement.sources_of(arg)).collect();
                placement.waits.add(next_opaque, sources);
                next_opaque += 1;
            }
            let own: Vec<Step> = match &terms.get(t).op {
                TermOp::Leaf(_) => placement.home.get(&t).copied().into_iter().collect(),
                TermOp::Reduce { .. } | TermOp::Centered(_) if needed[t as usize] => {
                    let step = placement.place(t);
                    placement.home.insert(t, step);
                    vec![step]
                }
                _ => {
                    let mut sources: Vec<Step> =
                        terms.get(t).args.iter().flat_map(|&arg| placement.sources_of(arg)).collect();
                    sources.sort_unstable();
                    sources.dedup();
                    placement.last_of(sources)
                }
            };
            placement.sources.push(own);
        }
        for (step, (_, args, _)) in opaque.iter().enumerate() {
            let sources: Vec<Step> = args.iter().flat_map(|&arg| placement.sources_of(arg)).collect();
            placement.waits.add(step, sources);
        }
        placement.share();
        while let Some(t) = placement.open.pop_first() {
            placement.settle(t);
        }
        placement.reread();
        placement
    }

    /// The steps without those that another of them follows.
    fn last_of(&self, steps: Vec<Step>) -> Vec<Step> {
        if steps.len() < 2 || self.units.len() > MAX_TRACED {
            return steps;
        }
        let is_last = |step: &Step| !steps.iter().any(|other| other != step && self.follows(*other, *step));
        steps.iter().copied().filter(|step| is_last(step)).collect()
    }

    fn sources_of(&self, t: T) -> Vec<Step> {
        self.sources.get(t as usize).cloned().unwrap_or_default()
    }

    /// The terms from which outputs or opaque nodes follow.
    fn needed(&self, opaque: &[(usize, Vec<T>, Vec<T>)], outputs: &[T]) -> Vec<bool> {
        let mut needed = vec![false; self.terms.len()];
        outputs.iter().chain(opaque.iter().flat_map(|(_, args, _)| args)).for_each(|&t| needed[t as usize] = true);
        for t in (0..self.terms.len()).rev() {
            if needed[t] {
                self.terms.get(t as T).args.iter().for_each(|&arg| needed[arg as usize] = true);
            }
        }
        needed
    }

    /// Returns true if a step waits for another, through any others.
    fn follows(&self, step: Step, other: Step) -> bool {
        self.waits.follows(step, other)
    }

    /// A term that must be written for a step, or for the caller.
    fn want(&mut self, t: T, reader: Option<Step>, why: Why) {
        if self.terms.number(t).is_some() || matches!(self.terms.get(t).op, TermOp::Leaf(_)) {
            return;
        }
        let is_new = !self.written.contains_key(&t);
        let written = self.written.entry(t).or_default();
        written.readers.extend(reader);
        written.why.insert(why);
        match (written.home, reader) {
            (Some(home), Some(reader)) if home != reader => {
                self.waits.add(reader, [home]);
            }
            _ if is_new => {
                self.open.insert(t);
            }
            _ => {}
        }
    }

    fn kernel(&self, step: Step) -> Option<&Kernel> {
        match &self.units[step] {
            Unit::Kernel(kernel) => Some(kernel),
            Unit::Opaque(_) => None,
        }
    }

    /// Puts a reduction into a kernel: one that it shares operands with or follows from, else a new one.
    fn place(&mut self, t: T) -> Step {
        let term = self.terms.get(t);
        let (axes, of) = match &term.op {
            TermOp::Reduce { axes, .. } | TermOp::Centered(axes) => (axes.clone(), term.args[0]),
            _ => unreachable!("a reduction is placed"),
        };
        let sources = self.sources_of(of);
        let mut tried: Vec<Step> = sources.iter().copied().filter(|&step| self.kernel(step).is_some()).collect();
        tried.sort_unstable_by(|a, b| b.cmp(a));
        let mut near = vec![];
        self.leaves(of, &mut near, &mut FxHashSet::default());
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
        self.waits.push();
        let mut attempt = Attempt { kernel, wanted: vec![], waits: sources.into_iter().collect(), root: None };
        if self.pull(step, &mut attempt, of, &index).is_err() {
            // The operand itself is written, which a new kernel can always read.
            attempt.kernel.computed.clear();
            attempt.kernel.operands.clear();
            attempt.wanted = vec![(of, Why::Layout)];
            attempt.kernel.operands.push((of, access(&index)));
        }
        self.commit(step, attempt);
        step
    }

    /// The leaves near a term, a few of them.
    fn leaves(&self, t: T, to: &mut Vec<T>, seen: &mut FxHashSet<T>) {
        let mut open = vec![t];
        while let Some(t) = open.pop() {
            if seen.len() > 64 || to.len() > 8 || !seen.insert(t) {
                continue;
            }
            match &self.terms.get(t).op {
                TermOp::Leaf(_) => to.push(t),
                TermOp::Reduce { .. } => {}
                _ => open.extend(self.terms.get(t).args.iter().copied()),
            }
        }
    }

    /// The kernel with another reduction in it.
    fn joined(&self, step: Step, t: T, of: T, axes: &[usize]) -> Try<Attempt> {
        let kernel = self.kernel(step).ok_or(Refused)?.clone();
        // A reduction keeps the accumulator that it has alone.
        let is_wide = |t: &T| self.wide[*t as usize];
        let agrees = kernel.reductions.first().map(is_wide) == Some(is_wide(&t));
        if kernel.is_map || !agrees || kernel.computed.len() > MAX_TERMS {
            return Err(Refused);
        }
        let mut attempt = Attempt { kernel, wanted: vec![], waits: BTreeSet::new(), root: None };
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
        let is_total = !is_slice && !is_centered && all == kept && !reduced.is_empty() && !over.is_empty();
        let totals_agree = attempt.kernel.totals.as_ref().is_none_or(|totals| {
            let parts = space.atoms_of(&vec![totals.clone()]);
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

    /// The reductions of the kernel that a term follows from, nearest first.
    fn own_reductions(&self, kernel: &Kernel, t: T) -> Vec<T> {
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

    fn stage_of(&self, kernel: &Kernel, t: T) -> u32 {
        self.own_reductions(kernel, t).iter().map(|r| kernel.stage[r]).max().unwrap_or(0)
    }

    /// The index of a term in a kernel, from the terms there that it follows from.
    fn forward(&self, step: Step, kernel: &mut Kernel, t: T) -> Option<Index> {
        self.forward_from(step, kernel, t, 0, &mut FxHashSet::default())
    }

    fn forward_from(
        &self,
        step: Step,
        kernel: &mut Kernel,
        t: T,
        depth: usize,
        tried: &mut FxHashSet<T>,
    ) -> Option<Index> {
        if let Some(index) = kernel.index.get(&t) {
            return Some(index.clone());
        }
        if depth > MAX_TERMS || !tried.insert(t) || tried.len() > MAX_TERMS {
            return None;
        }
        let term = self.terms.get(t);
        let found = match &term.op {
            TermOp::Reduce { axes, .. } if self.home.get(&t) == Some(&step) => {
                let index = kernel.index.get(&term.args[0])?;
                Some(index.iter().enumerate().filter(|(a, _)| !axes.contains(a)).map(|(_, i)| i.clone()).collect())
            }
            TermOp::Centered(_) if self.home.get(&t) == Some(&step) => kernel.index.get(&term.args[0]).cloned(),
            TermOp::View(from) => {
                let inner = self.forward_from(step, kernel, term.args[0], depth + 1, tried)?;
                let at = |(i, axis): (usize, &Option<usize>)| match axis {
                    Some(axis) => Some(inner[*axis].clone()),
                    None => (term.shape[i] == 1).then(Vec::new),
                };
                from.iter().enumerate().map(at).collect()
            }
            TermOp::Reshape => {
                let inner = self.forward_from(step, kernel, term.args[0], depth + 1, tried)?;
                let mut space = kernel.space.clone();
                let index = space.reshaped(&inner, &term.shape)?;
                kernel.space = space;
                Some(index)
            }
            TermOp::Apply(_) => {
                let real = |arg: &&T| self.terms.number(**arg).is_none();
                term.args.iter().filter(real).find_map(|&arg| self.forward_from(step, kernel, arg, depth + 1, tried))
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
        kernel.index.entry(t).or_insert_with(|| found.clone());
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

    fn commit(&mut self, step: Step, attempt: Attempt) {
        for (source, _) in &attempt.kernel.operands {
            let readers = self.readers.entry(*source).or_default();
            if readers.last() != Some(&step) && !readers.contains(&step) {
                readers.push(step);
            }
        }
        let mut computed: Vec<T> = attempt.kernel.computed.keys().map(|(t, _)| *t).collect();
        computed.sort_unstable();
        for t in computed {
            let steps = self.pulled.entry(t).or_default();
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        self.units[step] = Unit::Kernel(Box::new(attempt.kernel));
        self.waits.add(step, attempt.waits);
        for (t, why) in attempt.wanted {
            self.want(t, Some(step), why);
        }
    }

    /// Brings a term into a kernel at an index, with all that it is computed from there; the rest is read.
    fn pull(&self, step: Step, attempt: &mut Attempt, t: T, index: &Index) -> Try<()> {
        let index = attempt.kernel.space.resolved(index);
        let term = self.terms.get(t);
        if self.terms.number(t).is_some() || attempt.kernel.computed.contains_key(&(t, index.clone())) {
            return Ok(());
        }
        if let TermOp::Leaf(_) = term.op {
            return self.read(attempt, t, access(&index));
        }
        if self.is_readable(step, t) {
            attempt.waits.extend(self.written.get(&t).and_then(|written| written.home));
            return self.read(attempt, t, access(&index));
        }
        match &term.op {
            TermOp::Reduce { axes, .. } => {
                if self.home.get(&t) != Some(&step) {
                    return self.read_other(step, attempt, t, &index, Why::OtherAxes);
                }
                let of = attempt.kernel.index.get(&term.args[0]).ok_or(Refused)?;
                let of = attempt.kernel.space.resolved(of);
                let own = of.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, atoms)| atoms);
                if own.eq(&index) { Ok(()) } else { Err(Refused) }
            }
            TermOp::Centered(_) => {
                if self.home.get(&t) != Some(&step) {
                    return self.read_other(step, attempt, t, &index, Why::OtherAxes);
                }
                let of = attempt.kernel.index.get(&term.args[0]).ok_or(Refused)?;
                if attempt.kernel.space.resolved(of) == index { Ok(()) } else { Err(Refused) }
            }
            _ if attempt.kernel.computed.len() >= MAX_TERMS => self.read_other(step, attempt, t, &index, Why::Long),
            TermOp::View(from) => {
                let inner = seen_through(from, &index, self.terms.shape(term.args[0]));
                self.pull(step, attempt, term.args[0], &inner)?;
                attempt.kernel.computed.insert((t, index), ());
                Ok(())
            }
            TermOp::Reshape => {
                let mut space = attempt.kernel.space.clone();
                let Some(inner) = space.reshaped(&index, self.terms.shape(term.args[0])) else {
                    return self.read_other(step, attempt, t, &index, Why::Layout);
                };
                attempt.kernel.space = space;
                self.pull(step, attempt, term.args[0], &inner)?;
                let index = attempt.kernel.space.resolved(&index);
                attempt.kernel.computed.insert((t, index), ());
                Ok(())
            }
            TermOp::Slice(ranges) => {
                let source = term.args[0];
                let part: Access =
                    index.iter().zip(ranges).map(|(atoms, r)| (atoms.clone(), r.start, r.step)).collect();
                if !matches!(self.terms.get(source).op, TermOp::Leaf(_)) && !self.is_readable(step, source) {
                    self.may_read(step, source)?;
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
                attempt.kernel.computed.insert((t, index.clone()), ());
                term.args.iter().try_for_each(|&arg| self.pull(step, attempt, arg, &index))
            }
            TermOp::Position(_) => {
                attempt.kernel.computed.insert((t, index), ());
                Ok(())
            }
            TermOp::Leaf(_) | TermOp::Number(_) => Ok(()),
        }
    }

    /// Returns true for a term that another step writes, which a step may read.
    fn is_readable(&self, step: Step, t: T) -> bool {
        let Some(written) = self.written.get(&t) else { return false };
        match written.home {
            Some(home) => home != step && (written.readers.contains(&step) || !self.follows(home, step)),
            None => written.readers.contains(&step),
        }
    }

    /// Refuses to read a term that follows from the step itself.
    fn may_read(&self, step: Step, t: T) -> Try<()> {
        let follows = |&source: &Step| source == step || self.follows(source, step);
        let home = self.written.get(&t).and_then(|written| written.home);
        if self.sources_of(t).iter().chain(&home).any(follows) { Err(Refused) } else { Ok(()) }
    }

    fn read_other(&self, step: Step, attempt: &mut Attempt, t: T, index: &Index, why: Why) -> Try<()> {
        self.may_read(step, t)?;
        attempt.wanted.push((t, why));
        self.read(attempt, t, access(index))
    }

    fn read(&self, attempt: &mut Attempt, t: T, part: Access) -> Try<()> {
        let operand = (t, part);
        if attempt.kernel.operands.contains(&operand) {
            return Ok(());
        }
        if attempt.kernel.operands.len() >= MAX_OPERANDS {
            return Err(Refused);
        }
        attempt.kernel.operands.push(operand);
        Ok(())
    }

    /// Returns true for a term that another kernel computes from two large operands or more.
    fn is_shared(&self, step: Step, t: T) -> bool {
        let is_other = |steps: &Vec<Step>| steps.iter().any(|&other| other != step) && !steps.contains(&step);
        self.pulled.get(&t).is_some_and(is_other) && self.is_heavy(t)
    }

    /// Returns true for a term that is written in any case, by a kernel that it follows from.
    fn is_due(&self, step: Step, t: T) -> bool {
        let is_kernel = |&source: &Step| source != step && self.kernel(source).is_some();
        self.written.contains_key(&t) && self.sources_of(t).iter().any(is_kernel)
    }

    fn is_heavy(&self, t: T) -> bool {
        let size: u64 = self.terms.shape(t).iter().product();
        let mut near = vec![];
        self.leaves(t, &mut near, &mut FxHashSet::default());
        near.iter().filter(|&&leaf| self.terms.shape(leaf).iter().product::<u64>() >= size).count() >= 2
    }

    /// Values that several kernels compute from two large operands or more are written once.
    fn share(&mut self) {
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
    fn settle(&mut self, t: T) {
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

    fn set_home(&mut self, t: T, home: Step) {
        let readers: Vec<Step> = match self.written.get_mut(&t) {
            Some(written) => {
                written.home = Some(home);
                written.readers.iter().copied().filter(|&reader| reader != home).collect()
            }
            None => vec![],
        };
        for reader in readers {
            self.waits.add(reader, [home]);
        }
    }

    /// Returns true if a kernel would wait for a step that waits for what it writes.
    fn closes_circle(&self, attempt: &Attempt, readers: &[Step]) -> bool {
        attempt.waits.iter().any(|&wait| readers.iter().any(|&reader| self.follows(wait, reader)))
    }

    /// The kernel with another output.
    fn with_output(&self, step: Step, t: T) -> Try<Attempt> {
        let kernel = self.kernel(step).ok_or(Refused)?.clone();
        let is_wide = |t: &T| self.wide[*t as usize];
        let widens =
            is_wide(&t) && !kernel.reductions.iter().chain(kernel.outputs.iter().map(|p| &p.term)).any(is_wide);
        if widens || kernel.outputs.len() >= MAX_OUTPUTS || kernel.computed.len() > MAX_TERMS {
            return Err(Refused);
        }
        let mut attempt = Attempt { kernel, wanted: vec![], waits: BTreeSet::new(), root: Some(t) };
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
        let total = kernel.totals.as_ref().map(|totals| space.atoms_of(&vec![totals.clone()])).unwrap_or_default();
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

    /// Returns true if a term is computed from values that the kernel reads, other than by reductions.
    fn reads_any(&self, kernel: &Kernel, t: T) -> bool {
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
    fn depends(&self, kernel: &Kernel, t: T, index: &Index) -> BTreeSet<usize> {
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
                .any(|(source, part)| *source == t && part.iter().map(|(atoms, ..)| atoms).eq(&index));
            match &term.op {
                TermOp::View(from) if !is_read => {
                    open.push((term.args[0], seen_through(from, &index, self.terms.shape(term.args[0]))));
                }
                TermOp::Reshape if !is_read => {
                    let mut space = kernel.space.clone();
                    match space.reshaped(&index, self.terms.shape(term.args[0])) {
                        Some(inner) => open.push((term.args[0], inner)),
                        None => atoms.extend(index.into_iter().flatten()),
                    }
                }
                TermOp::Apply(_) if !is_read => open.extend(term.args.iter().map(|&arg| (arg, index.clone()))),
                TermOp::Position(axis) if !is_read => atoms.extend(index[*axis].iter().copied()),
                _ => atoms.extend(index.into_iter().flatten()),
            }
        }
        atoms
    }

    /// The parts of a concatenation, each written to its place.
    fn settle_concat(&mut self, t: T, axis: usize) {
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
    fn settle_map(&mut self, t: T, value: T, sources: &[Step], readers: &[Step], into: (T, usize, u64)) {
        if !self.takes_maps {
            self.left.insert(t);
        }
        // A kernel of elements of the same shape takes it, where it reads the same.
        if into.0 == value {
            let mut near = vec![];
            self.leaves(value, &mut near, &mut FxHashSet::default());
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
        self.waits.push();
        self.waits.add(step, sources.iter().copied());
        // What follows from a reader is not read here.
        readers.iter().for_each(|&reader| self.waits.add(reader, [step]));
        let mut attempt =
            Attempt { kernel, wanted: vec![], waits: sources.iter().copied().collect(), root: Some(value) };
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
            attempt.kernel.operands = vec![(value, access(&index))];
            attempt.wanted = vec![(value, Why::Layout)];
        }
        self.commit(step, attempt);
        self.set_home(t, step);
    }

    /// Computes each kernel's operands anew, now that it is known which values are written.
    fn reread(&mut self) {
        for step in 0..self.units.len() {
            let Some(kernel) = self.kernel(step) else { continue };
            let mut kernel = kernel.clone();
            let (computed, operands) = (std::mem::take(&mut kernel.computed), std::mem::take(&mut kernel.operands));
            let mut attempt = Attempt { kernel, wanted: vec![], waits: BTreeSet::new(), root: None };
            let mut roots: Vec<(T, Index)> = vec![];
            for &reduction in &attempt.kernel.reductions {
                let of = self.terms.get(reduction).args[0];
                if let Some(index) = attempt.kernel.index.get(&of) {
                    roots.push((of, index.clone()));
                }
            }
            roots.extend(attempt.kernel.outputs.iter().map(|placed| (placed.term, placed.index.clone())));
            let outputs: FxHashSet<T> = attempt.kernel.outputs.iter().map(|placed| placed.term).collect();
            let pulled = roots.iter().try_for_each(|(t, index)| self.pull_own(step, &mut attempt, *t, index, &outputs));
            if pulled.is_err() || !attempt.wanted.iter().all(|(t, _)| self.written.contains_key(t)) {
                attempt.kernel.computed = computed;
                attempt.kernel.operands = operands;
                attempt.waits.clear();
                attempt.wanted.clear();
            }
            self.commit(step, attempt);
        }
    }

    /// Brings a root into its kernel: an output of its own is never read from another's buffer.
    fn pull_own(&self, step: Step, attempt: &mut Attempt, t: T, index: &Index, outputs: &FxHashSet<T>) -> Try<()> {
        let is_other = self.written.get(&t).is_some_and(|written| written.home.is_some_and(|home| home != step));
        if is_other && outputs.contains(&t) && !matches!(self.terms.get(t).op, TermOp::Leaf(_)) {
            // A part of a concatenation that another kernel writes too.
            return self.pull(step, attempt, t, index);
        }
        self.pull(step, attempt, t, index)
    }

    /// The steps in an order in which each stands after those that it waits for.
    pub(crate) fn order(&self) -> Vec<Step> {
        let waits = &self.waits.direct;
        let mut missing: Vec<usize> = waits.iter().map(|waits| waits.len()).collect();
        let mut next: Vec<Vec<Step>> = vec![vec![]; self.units.len()];
        for (step, waits) in waits.iter().enumerate() {
            waits.iter().for_each(|&other| next[other].push(step));
        }
        let mut ready: BTreeSet<Step> = (0..self.units.len()).filter(|&step| missing[step] == 0).collect();
        let mut order = vec![];
        while let Some(step) = ready.pop_first() {
            order.push(step);
            for &user in &next[step] {
                missing[user] -= 1;
                if missing[user] == 0 {
                    ready.insert(user);
                }
            }
        }
        order
    }
}

/// The steps that each step waits for, directly and through others.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    direct: Vec<BTreeSet<Step>>,
    /// A bit for each step that a step waits for.
    all: Vec<Vec<u64>>,
    /// True for a step that another waits for.
    is_awaited: Vec<bool>,
}

/// The most steps for which all waits are kept; among more, a step counts as one that follows any other.
const MAX_TRACED: usize = 1 << 14;

impl Waits {
    fn push(&mut self) {
        self.direct.push(BTreeSet::new());
        self.all.push(vec![]);
        self.is_awaited.push(false);
    }

    fn has(&self, step: Step, other: Step) -> bool {
        self.all[step].get(other / 64).is_some_and(|word| word >> (other % 64) & 1 == 1)
    }

    fn follows(&self, step: Step, other: Step) -> bool {
        step == other || self.direct.len() > MAX_TRACED || self.has(step, other)
    }

    fn add(&mut self, step: Step, others: impl IntoIterator<Item = Step>) {
        let mut new: Vec<u64> = vec![];
        for other in others {
            if other == step || !self.direct[step].insert(other) || self.direct.len() > MAX_TRACED {
                continue;
            }
            self.is_awaited[other] = true;
            let own = self.all[other].clone();
            join(&mut new, &own);
            new.resize(new.len().max(other / 64 + 1), 0);
            new[other / 64] |= 1 << (other % 64);
        }
        if new.is_empty() {
            return;
        }
        if self.is_awaited[step] {
            for later in 0..self.all.len() {
                if self.has(later, step) {
                    join(&mut self.all[later], &new);
                }
            }
        }
        join(&mut self.all[step], &new);
    }
}

fn join(to: &mut Vec<u64>, from: &[u64]) {
    to.resize(to.len().max(from.len()), 0);
    to.iter_mut().zip(from).for_each(|(to, from)| *to |= from);
}

/// A whole value at an index.
fn access(index: &Index) -> Access {
    index.iter().map(|atoms| (atoms.clone(), 0, 1)).collect()
}

/// The index of what a view shows.
fn seen_through(from: &[Option<usize>], index: &Index, inner: &[u64]) -> Index {
    let mut result = vec![vec![]; inner.len()];
    for (axis, atoms) in from.iter().zip(index) {
        if let Some(axis) = axis {
            result[*axis] = atoms.clone();
        }
    }
    result
}
