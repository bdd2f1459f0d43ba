//! A kernel in the making: what it computes, reads and writes, and the attempts to bring more into it.

use super::space::{Atoms, Index, Space};
use super::terms::T;
use super::waits::Step;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::rc::Rc;

/// The most terms of one kernel, its operands, outputs and stages.
pub(super) const MAX_TERMS: usize = 300;
pub(super) const MAX_OPERANDS: usize = 48;
pub(super) const MAX_OUTPUTS: usize = 16;
pub(super) const MAX_STAGES: u32 = 8;

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
pub(crate) type Access = Rc<[(Atoms, u64, i64)]>;

#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) space: Space,
    /// The index of the operand of each reduction, and of each root.
    pub(crate) index: BTreeMap<T, Index>,
    /// The terms that got an index since the last commit.
    pub(super) indexed: Vec<T>,
    pub(crate) reductions: Vec<T>,
    /// The kept atoms that totals reduce.
    pub(crate) totals: Option<Vec<usize>>,
    pub(super) stage: FxHashMap<T, u32>,
    pub(crate) outputs: Vec<Placed>,
    /// The terms that it computes, by the index.
    pub(crate) computed: FxHashSet<(T, Index)>,
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

impl Kernel {
    /// A kernel that computes a value of this index in a space, and nothing yet.
    pub(super) fn new(space: Space, of: T, index: &Index) -> Kernel {
        Kernel {
            space,
            index: BTreeMap::from([(of, index.clone())]),
            indexed: vec![],
            reductions: vec![],
            totals: None,
            stage: FxHashMap::default(),
            outputs: vec![],
            computed: FxHashSet::default(),
            operands: vec![],
            is_map: false,
        }
    }

    /// Gives a term an index, if it has none.
    pub(super) fn give_index(&mut self, t: T, index: &Index) {
        if let Entry::Vacant(entry) = self.index.entry(t) {
            entry.insert(index.clone());
            self.indexed.push(t);
        }
    }
}

/// The state of one attempt to bring terms into a kernel.
pub(super) struct Attempt {
    pub(super) kernel: Box<Kernel>,
    pub(super) wanted: Vec<(T, Why)>,
    pub(super) waits: BTreeSet<Step>,
    /// The output that is being added, which is computed here.
    pub(super) root: Option<T>,
    /// The terms that the kernel computes since the attempt began.
    pub(super) fresh: Vec<(T, Index)>,
    /// The numbers of atoms, reductions, outputs and operands before the attempt, and the totals.
    before: ([usize; 4], Option<Vec<usize>>),
}

impl Attempt {
    pub(super) fn of(kernel: Box<Kernel>, root: Option<T>) -> Attempt {
        let counts = [kernel.space.len(), kernel.reductions.len(), kernel.outputs.len(), kernel.operands.len()];
        let before = (counts, kernel.totals.clone());
        Attempt { kernel, wanted: vec![], waits: BTreeSet::new(), root, fresh: vec![], before }
    }

    /// Computes a term at an index.
    pub(super) fn compute(&mut self, t: T, index: Index) {
        if self.kernel.computed.insert((t, index.clone())) {
            self.fresh.push((t, index));
        }
    }

    /// The kernel reads these values and computes none.
    pub(super) fn read_only(&mut self, operands: Vec<(T, Access)>) {
        self.kernel.computed.clear();
        self.fresh.clear();
        self.kernel.operands = operands;
    }

    /// The kernel as it was before the attempt.
    pub(super) fn undone(self) -> Box<Kernel> {
        let Attempt { mut kernel, fresh, before: ([atoms, reductions, outputs, operands], totals), .. } = self;
        kernel.space.truncate(atoms);
        for reduction in kernel.reductions.drain(reductions..) {
            kernel.stage.remove(&reduction);
        }
        kernel.outputs.truncate(outputs);
        kernel.operands.truncate(operands);
        kernel.totals = totals;
        for t in std::mem::take(&mut kernel.indexed) {
            kernel.index.remove(&t);
        }
        for term in &fresh {
            kernel.computed.remove(term);
        }
        kernel
    }
}

/// A term cannot be in the kernel.
pub(super) struct Refused;

pub(super) type Try<V> = Result<V, Refused>;

/// A whole value at an index.
pub(super) fn access(index: &Index) -> Access {
    index.iter().map(|atoms| (atoms.clone(), 0, 1)).collect()
}
