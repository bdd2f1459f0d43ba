//! The windows in which a slice is searched for one element.
//!
//! Windows are no part of the meaning: the element that is found does not depend on them.

use crate::problem::tree::Tree;
use crate::problem::{Dim, IndexBox, Problem};
use cranefold_ir::ops::{Method, Reducer};

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

/// The fewest steps of a slice that is searched, and the fewest and the most steps of a window.
const SEARCH_STEPS: u64 = 32;
const WINDOW_STEPS: (u64, u64) = (8, 256);

/// The expected cost of keeping the best of a window, in steps that walk a window again. Those compute positions, which
/// takes longer for elements of fewer bytes.
const KEEP_STEPS: u64 = 8;
const KEEP_STEPS_OF_NARROW: u64 = 2;

impl Windows {
    /// The windows of a slice that is one run of elements in the order of their positions, alone at its place, and long
    /// enough to gain by a search; else `None`.
    pub fn of(problem: &Problem, reducer: &Reducer, tree: &Tree) -> Option<Windows> {
        let Method::Phases { search: Some(_), .. } = reducer.method else { return None };
        let [IndexBox { dims, .. }] = problem.elements.as_slice() else { return None };
        let [Dim { extent, stride }] = dims.as_slice() else { return None };
        let alone = problem.slices.iter().all(|s| problem.inside(s).is_empty());
        let lanes = tree.lanes;
        let steps = extent / lanes;
        if !alone || reducer.apply.is_some() || stride.position <= 0 || problem.gathers() || steps < SEARCH_STEPS {
            return None;
        }
        // All windows are kept and one is walked again; the sum is least where both cost the same.
        let narrow = problem.inputs[0].operand.dtype.bytes() < 4;
        let keep = if narrow { KEEP_STEPS_OF_NARROW } else { KEEP_STEPS };
        let steps = (keep * steps).isqrt().clamp(WINDOW_STEPS.0, WINDOW_STEPS.1);
        let count = extent.div_ceil(steps * lanes);
        let steps = extent.div_ceil(count * lanes);
        let elements = steps * lanes;
        Some(Windows { steps, elements, whole: extent / elements, last: extent - elements })
    }
}
