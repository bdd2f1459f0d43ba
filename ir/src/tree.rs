//! The order in which block states merge and lanes fold: the upper part of the reduction tree.
//!
//! Block states merge as a binary counter carries. After block c, counted from 1, the newest state
//! is merged with the one before it ctz(c) times, older state first; when all blocks are done, the
//! remaining states merge from the newest to the oldest. Five blocks:
//!
//! ```text
//! ((0 + 1) + (2 + 3)) + 4
//! ```
//!
//! Lanes fold by halving: of L lanes, lane l takes lane l + L/2, then l + L/4, and so on; an absent
//! lane takes no part.

/// The merges of `blocks` states in order, as (older, newer) places; the result of each takes the
/// older place, so the last is in place 0.
///
/// ```
/// let merges: Vec<_> = cranefold_ir::tree::merges(5).collect();
/// assert_eq!(merges, [(0, 1), (2, 3), (0, 2), (0, 4)]);
/// ```
pub fn merges(blocks: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut stack: Vec<u64> = Vec::new();
    let mut pending: Vec<(u64, u64)> = Vec::new();
    let mut next = 0;
    std::iter::from_fn(move || {
        loop {
            if !pending.is_empty() {
                return Some(pending.remove(0));
            }
            if next < blocks {
                let mut newest = next;
                next += 1;
                for _ in 0..next.trailing_zeros() {
                    let older = stack.pop().expect("as many states as carries");
                    pending.push((older, newest));
                    newest = older;
                }
                stack.push(newest);
            } else {
                let newest = stack.pop()?;
                pending.push((*stack.last()?, newest));
            }
        }
    })
}

/// The levels of the stack that hold a state once `blocks` blocks are done, the newest (lowest) first.
///
/// Level q holds the state of 2^q blocks.
///
/// ```
/// assert_eq!(cranefold_ir::tree::levels(5).collect::<Vec<_>>(), [0, 2]);
/// ```
pub fn levels(blocks: u64) -> impl Iterator<Item = u32> {
    (0..u64::BITS).filter(move |q| blocks >> q & 1 == 1)
}

/// The folds of `lanes` lanes of which the first `present` hold a state, as (half, count): lanes
/// `0..count` each take the lane `half` above.
///
/// ```
/// assert_eq!(cranefold_ir::tree::folds(8, 7).collect::<Vec<_>>(), [(4, 3), (2, 2), (1, 1)]);
/// assert_eq!(cranefold_ir::tree::folds(8, 2).collect::<Vec<_>>(), [(1, 1)]);
/// ```
pub fn folds(lanes: u64, present: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut present = present;
    std::iter::successors(Some(lanes / 2), |half| Some(half / 2)).take_while(|&half| half > 0).filter_map(move |half| {
        let count = present.saturating_sub(half);
        present = present.min(half);
        (count > 0).then_some((half, count))
    })
}
