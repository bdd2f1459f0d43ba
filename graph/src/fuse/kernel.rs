//! A kernel in the making: what it computes, reads and writes, and the attempts to bring more into it.

use super::space::{Index, Space};
use super::terms::T;
use super::waits::Step;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
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
pub(crate) type Access = Rc<[(Vec<usize>, u64, i64)]>;

#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) space: Space,
    /// The index of the operand of each reduction, and of each root.
    pub(crate) index: BTreeMap<T, Index>,
    pub(crate) reductions: Vec<T>,
    /// The kept atoms that totals reduce.
    pub(crate) totals: Option<Vec<usize>>,
    pub(super) stage: FxHashMap<T, u32>,
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

/// The state of one attempt to bring terms into a kernel.
pub(super) struct Attempt {
    pub(super) kernel: Kernel,
    pub(super) wanted: Vec<(T, Why)>,
    pub(super) waits: BTreeSet<Step>,
    /// The output that is being added, which is computed here.
    pub(super) root: Option<T>,
    /// The terms that the kernel computes since the attempt began.
    pub(super) fresh: Vec<T>,
}

impl Attempt {
    pub(super) fn of(kernel: Kernel, waits: BTreeSet<Step>, root: Option<T>) -> Attempt {
        Attempt { kernel, wanted: vec![], waits, root, fresh: vec![] }
    }

    /// Computes a term at an index.
    pub(super) fn compute(&mut self, t: T, index: Index) {
        self.kernel.computed.insert((t, index), ());
        self.fresh.push(t);
    }
}

/// A term cannot be in the kernel.
pub(super) struct Refused;

pub(super) type Try<V> = Result<V, Refused>;

/// A whole value at an index.
pub(super) fn access(index: &Index) -> Access {
    index.iter().map(|atoms| (atoms.clone(), 0, 1)).collect()
}
