//! The codes of subtrees in arrays of chunks, lowered once for all subtrees that differ in their place alone.

use super::shard::SubtreeCode;
use super::{Inner, Partial, nests};
use crate::error::Error;
use crate::kernel::Routine;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The most codes that are kept: all sizes of subtrees, for some lengths of chunks.
const MOST: usize = 512;

/// The facts that decide the code of a subtree, beside its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    blocks: u64,
    /// True if the last of all blocks, which may be shorter, is among them.
    is_last: bool,
    /// The positions that the arrays hold, where slices are further apart in longer ones; else 0.
    positions: u64,
}

/// The code of a kind.
#[derive(Clone)]
struct Kept {
    code: Routine,
    /// For each input that blocks read, the elements before those that the code reads, less those before the subtree;
    /// `None` if it reads none.
    starts: Vec<Option<i64>>,
}

/// The codes of some partial results.
#[derive(Default)]
pub(super) struct Codes(Mutex<FxHashMap<Kind, Kept>>);

impl Partial {
    /// The code of a subtree on arrays that hold a range of positions.
    pub(super) fn code_on(&self, positions: &Range<u64>, subtree: &Range<u64>) -> Result<SubtreeCode, Error> {
        let Inner { maker, layout, codes, reads: inputs, .. } = &*self.inner;
        let (along, problem) = (self.along()?, &maker.problem);
        // Positions of elements are constants of the code.
        let is_anywhere = along.counts_positions() && !problem.takes_position && problem.indices.is_empty();
        let (first, kind) = match is_anywhere {
            true => (layout.units().of_blocks(subtree).start - positions.start, Some(self.kind(positions, subtree))),
            false => (0, None),
        };
        let before = |input: usize| along.elems_before(problem, input, first) as i64;
        let known = kind.and_then(|kind| codes.get(&kind));
        let kept = match known {
            Some(kept) => kept,
            None => {
                let (nest, starts) = nests::of_blocks(&along.on(problem, positions), &maker.name, subtree.clone());
                let start =
                    |&input: &usize| (nest.buffers[input].len > 0).then(|| starts[input] as i64 - before(input));
                let starts = inputs.iter().map(start).collect();
                let kept = Kept { starts, code: maker.code(nest, &maker.schedule)? };
                if let Some(kind) = kind {
                    codes.keep(kind, kept.clone());
                }
                kept
            }
        };
        let start = |(start, &input): (&Option<i64>, &usize)| start.map_or(0, |start| (start + before(input)) as u64);
        Ok(SubtreeCode { starts: kept.starts.iter().zip(inputs).map(start).collect(), code: kept.code })
    }

    fn kind(&self, positions: &Range<u64>, subtree: &Range<u64>) -> Kind {
        let Inner { layout, are_apart, .. } = &*self.inner;
        Kind {
            blocks: subtree.end - subtree.start,
            is_last: subtree.end == layout.blocks,
            positions: if *are_apart { positions.end - positions.start } else { 0 },
        }
    }
}

impl Codes {
    fn get(&self, kind: &Kind) -> Option<Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(kind).cloned()
    }

    fn keep(&self, kind: Kind, kept: Kept) {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if codes.len() >= MOST {
            codes.clear();
        }
        codes.insert(kind, kept);
    }
}
