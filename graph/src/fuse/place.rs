//! The placing of terms: which kernel computes each, and which values are written between kernels.
//!
//! | file | part |
//! | --- | --- |
//! | `join` | each reduction goes into a kernel |
//! | `pull` | what it is computed from comes with it; the rest is read |
//! | `settle` | each value that is read elsewhere gets its home, by `outputs`, `maps` and `cut` |
//! | `locate` | the index of a term in a kernel |
//! | `needs` | the values that are in memory before a term is computed |
//! | `waits` | no step may follow from itself |

use super::kernel::{Attempt, Kernel, Try, Why};
use super::needs::{Need, need, users};
use super::terms::{T, TermOp, Terms};
use super::waits::{Step, Steps, Waits};
use cranefold_ir::DType::F64;
use rustc_hash::FxHashMap;
use smallvec::smallvec;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// A step.
#[derive(Debug)]
pub(crate) enum Unit {
    Kernel(Box<Kernel>),
    /// An opaque node of the graph.
    Opaque(usize),
    /// A kernel that is being changed.
    Changing,
}

#[derive(Debug)]
pub(crate) struct Placement<'t> {
    pub(crate) terms: &'t Terms,
    pub(crate) units: Vec<Unit>,
    /// The steps that each step waits for.
    pub(crate) waits: Waits,
    /// The step that gives each reduction, or each leaf of an opaque node.
    home: Vec<Option<Step>>,
    /// The steps that each term follows from.
    sources: Vec<Steps>,
    /// The terms that are written, with the steps that must read them there and the reasons.
    pub(crate) written: BTreeMap<T, Written>,
    /// True for a term that is written.
    is_written: Vec<bool>,
    /// For each term the place of its needs.
    pub(super) need: Vec<Need>,
    /// The users of each term through which its followers are found.
    pub(super) users: FxHashMap<T, Vec<T>>,
    /// The first term that has a home as it is written.
    pub(super) first_home: T,
    /// The written terms that have no home yet.
    pub(super) open: BTreeSet<T>,
    /// The kernels that read a leaf.
    pub(super) readers: Vec<Vec<Step>>,
    /// The kernels that compute a term of elements.
    pub(super) pulled: Vec<Steps>,
    pub(super) takes_maps: bool,
    /// The terms that are computed in `f64`.
    pub(super) wide: Vec<bool>,
    /// True for a term of two large leaves or more, once it was asked for.
    pub(super) heavy: Vec<OnceCell<bool>>,
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

impl<'t> Placement<'t> {
    /// Places all reductions, in order; `opaque` gives each opaque node, its operands and its leaves.
    pub(crate) fn new(terms: &'t Terms, opaque: &[(usize, Vec<T>, Vec<T>)], outputs: &[T], takes_maps: bool) -> Self {
        let mut placement = Placement {
            terms,
            units: vec![],
            waits: Waits::default(),
            home: vec![None; terms.len()],
            sources: Vec::with_capacity(terms.len()),
            written: BTreeMap::new(),
            is_written: vec![false; terms.len()],
            need: Vec::with_capacity(terms.len()),
            users: FxHashMap::default(),
            first_home: T::MAX,
            open: BTreeSet::new(),
            readers: vec![vec![]; terms.len()],
            pulled: vec![Steps::new(); terms.len()],
            takes_maps,
            wide: Vec::with_capacity(terms.len()),
            heavy: vec![OnceCell::new(); terms.len()],
            left: BTreeSet::new(),
        };
        for (node, _, leaves) in opaque {
            let step = placement.units.len();
            placement.units.push(Unit::Opaque(*node));
            placement.waits.push(false);
            leaves.iter().for_each(|&leaf| placement.home[leaf as usize] = Some(step));
        }
        for t in 0..terms.len() as T {
            placement.need.push(need(terms, t, &placement.need));
        }
        placement.users = users(terms, &placement.need);
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
                let sources: BTreeSet<Step> = args.iter().flat_map(|&arg| placement.sources_of(arg)).copied().collect();
                placement.waits.add(next_opaque, sources);
                next_opaque += 1;
            }
            let own: Steps = match &terms.get(t).op {
                TermOp::Leaf(_) => placement.home_of(t).into_iter().collect(),
                TermOp::Reduce { .. } | TermOp::Centered(_) if needed[t as usize] => {
                    let step = placement.place(t);
                    placement.home[t as usize] = Some(step);
                    smallvec![step]
                }
                _ => {
                    let mut sources: Steps =
                        terms.get(t).args.iter().flat_map(|&arg| placement.sources_of(arg)).copied().collect();
                    sources.sort_unstable();
                    sources.dedup();
                    placement.waits.last_of(sources)
                }
            };
            placement.sources.push(own);
        }
        for (step, (_, args, _)) in opaque.iter().enumerate() {
            let sources: Steps = args.iter().flat_map(|&arg| placement.sources_of(arg)).copied().collect();
            placement.waits.add(step, sources);
        }
        placement.share();
        while let Some(t) = placement.open.pop_first() {
            placement.settle(t);
        }
        placement.reread();
        placement
    }

    /// The steps that a term follows from.
    pub(super) fn sources_of(&self, t: T) -> &[Step] {
        self.sources.get(t as usize).map_or(&[], |steps| steps)
    }

    /// The step that gives a reduction, or a leaf of an opaque node.
    pub(super) fn home_of(&self, t: T) -> Option<Step> {
        self.home[t as usize]
    }

    /// Returns true for a term that is written.
    pub(super) fn is_written(&self, t: T) -> bool {
        self.is_written[t as usize]
    }

    /// A term as it is written, if it is.
    pub(super) fn written(&self, t: T) -> Option<&Written> {
        if self.is_written(t) { self.written.get(&t) } else { None }
    }

    /// The step that writes a term, if that is known.
    pub(super) fn written_home(&self, t: T) -> Option<Step> {
        self.written(t).and_then(|written| written.home)
    }

    /// The steps that must read a written term.
    pub(super) fn readers_of(&self, t: T) -> Vec<Step> {
        self.written(t).map(|written| written.readers.iter().copied().collect()).unwrap_or_default()
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
    pub(super) fn follows(&self, step: Step, other: Step) -> bool {
        self.waits.follows(step, other)
    }

    /// A term that must be written for a step, or for the caller.
    pub(super) fn want(&mut self, t: T, reader: Option<Step>, why: Why) {
        if self.terms.number(t).is_some() || matches!(self.terms.get(t).op, TermOp::Leaf(_)) {
            return;
        }
        let is_new = !std::mem::replace(&mut self.is_written[t as usize], true);
        let written = self.written.entry(t).or_default();
        let new_reader = reader.filter(|reader| written.readers.insert(*reader));
        written.why.insert(why);
        let home = written.home;
        if let (None, Some(reader)) = (home, new_reader) {
            let needs = self.needs(reader, t).steps;
            self.waits.add(reader, needs);
        }
        match (home, reader) {
            (Some(home), Some(reader)) if home != reader => {
                self.waits.add(reader, [home]);
            }
            _ if is_new => {
                self.open.insert(t);
            }
            _ => {}
        }
    }

    pub(super) fn set_home(&mut self, t: T, home: Step) {
        if let Some(written) = self.written.get_mut(&t) {
            written.home = Some(home);
            self.first_home = self.first_home.min(t);
        }
        for follower in self.followers_of(t) {
            self.waits.add(follower, [home]);
        }
    }

    pub(super) fn kernel(&self, step: Step) -> Option<&Kernel> {
        match &self.units[step] {
            Unit::Kernel(kernel) => Some(kernel),
            Unit::Opaque(_) | Unit::Changing => None,
        }
    }

    /// Takes a kernel out of its step, for a change.
    pub(super) fn taken(&mut self, step: Step) -> Option<Box<Kernel>> {
        match std::mem::replace(&mut self.units[step], Unit::Changing) {
            Unit::Kernel(kernel) => Some(kernel),
            other => {
                self.units[step] = other;
                None
            }
        }
    }

    /// Changes a kernel, which stays as it was if the change is refused. Returns true if it is done.
    pub(super) fn attempt(
        &mut self,
        step: Step,
        root: Option<T>,
        change: impl FnOnce(&Self, &mut Attempt) -> Try<()>,
    ) -> bool {
        let Some(kernel) = self.taken(step) else { return false };
        let mut attempt = Attempt::of(kernel, root);
        let done = change(self, &mut attempt).is_ok();
        match done {
            true => self.commit(step, attempt),
            false => self.units[step] = Unit::Kernel(attempt.undone()),
        }
        done
    }

    pub(super) fn commit(&mut self, step: Step, mut attempt: Attempt) {
        for (source, _) in &attempt.kernel.operands {
            let readers = &mut self.readers[*source as usize];
            if readers.last() != Some(&step) && !readers.contains(&step) {
                readers.push(step);
            }
        }
        for (t, _) in attempt.fresh {
            let steps = &mut self.pulled[t as usize];
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        attempt.kernel.indexed.clear();
        self.units[step] = Unit::Kernel(attempt.kernel);
        self.waits.add(step, attempt.waits);
        for (t, why) in attempt.wanted {
            self.want(t, Some(step), why);
        }
    }
}
