//! The windows in which a slice is searched for one element.
//!
//! Windows are no part of the meaning: the element that is found does not depend on them.

use crate::problem::tree::Tree;
use crate::problem::{Dim, IndexBox, Problem};
use cranefold_ir::ops::{Computation, Method};

/// The windows of a search, see [`Search`](cranefold_ir::ops::Search): whole steps, all of one length, the last window
/// moved back to end with the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Steps of a window.
    pub steps: u64,
    /// Elements of a window.
    pub elements: u64,
    /// The number of windows that follow one another from the start.
    pub whole: u64,
    /// The element at which the last window starts.
    pub last: u64,
}

/// The fewest steps of a slice that is searched. Elements of 32 bits, as positions mostly are, gain less: of 16 steps,
/// `argmax i32[1024,1024]` took 61 us by two visits and 64 us by a search.
const SEARCH_STEPS: u64 = 16;
const SEARCH_STEPS_OF_32_BITS: u64 = 32;

/// The fewest elements of a window, and the most steps of one.
const WINDOW_ELEMENTS: u64 = 128;
const WINDOW_STEPS: u64 = 256;

/// The expected cost of keeping the best of a window, in steps that walk a window again. A state of several values of 32
/// bits takes longer to compare.
const KEEP_STEPS: u64 = 2;
const KEEP_STEPS_OF_SEVERAL: u64 = 8;

impl Windows {
    /// The windows of a computation, by the tree of its only group; else `None`.
    pub fn of_computation(problem: &Problem, computation: &Computation) -> Option<Windows> {
        let group = computation.only_group()?;
        Windows::of(problem, computation, &Tree::of(problem.walks.get(group.walk)?, &group.reducer.method))
    }

    /// The windows of a slice that is one run of elements in the order of their positions, alone at its place, and long
    /// enough to gain by a search; else `None`.
    pub fn of(problem: &Problem, computation: &Computation, tree: &Tree) -> Option<Windows> {
        let group = computation.only_group()?;
        let Method::Phases { phases, search: Some(_), .. } = &group.reducer.method else { return None };
        let [IndexBox { dims, .. }] = problem.elements() else { return None };
        let [Dim { extent, stride }] = dims.as_slice() else { return None };
        let alone = problem.slices.iter().all(|s| problem.inside(s).is_empty());
        let lanes = tree.lanes;
        let steps = extent / lanes;
        let is_of_32_bits = problem.inputs[0].operand.dtype.bytes() == 4;
        let fewest = if is_of_32_bits { SEARCH_STEPS_OF_32_BITS } else { SEARCH_STEPS };
        if !alone || computation.apply.is_some() || stride.position <= 0 || problem.gathers() || steps < fewest {
            return None;
        }
        // All windows are kept and one is walked again; the sum is least where both cost the same.
        let state = &phases[0].identity;
        let keep = if state.len() > 1 && state[0].dtype().bytes() == 4 { KEEP_STEPS_OF_SEVERAL } else { KEEP_STEPS };
        let steps = (keep * steps).isqrt().clamp((WINDOW_ELEMENTS / lanes).max(1), WINDOW_STEPS);
        let count = extent.div_ceil(steps * lanes);
        let steps = extent.div_ceil(count * lanes);
        let elements = steps * lanes;
        Some(Windows { steps, elements, whole: extent / elements, last: extent - elements })
    }
}
