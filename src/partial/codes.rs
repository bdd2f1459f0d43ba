//! The codes of subtrees in arrays of chunks, lowered once for all subtrees that differ in their place alone.

use super::shard::SubtreeCode;
use super::{Partial, Shared, nests};
use crate::error::Error;
use crate::kernel::Routine;
use cranefold_ir::Nest;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The most codes that are kept: all sizes of subtrees, for some lengths of chunks.
const MOST: usize = 512;

/// The facts that decide the code of a subtree, beside its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    blocks: u64,
    /// The units of its first position before it.
    within: u64,
    /// True if the last of all blocks, which may be shorter, is among them.
    is_last: bool,
    /// The positions that the arrays hold, where slices are further apart in longer ones; else 0.
    positions: u64,
}

/// The code of a kind.
#[derive(Clone)]
struct Kept {
    code: Routine,
    /// For each input that blocks read, the elements before those that the code reads, less those before the subtree's
    /// first position; `None` if it reads none.
    starts: Vec<Option<i64>>,
}

/// The codes of some partial results.
#[derive(Default)]
pub(super) struct Codes(Mutex<FxHashMap<Kind, Kept>>);

impl Partial {
    /// The code of a subtree on arrays that hold a range of positions.
    pub(super) fn code_on(&self, positions: &Range<u64>, subtree: &Range<u64>) -> Result<SubtreeCode, Error> {
        let Shared { maker, codes, reads: inputs, .. } = &*self.inner.shared;
        let (along, problem) = (self.along()?, &maker.problem);
        let (first, kind) = self.place(positions, subtree)?;
        let before = |input: usize| along.elems_before(problem, input, first - positions.start) as i64;
        let kept = match codes.get(&kind) {
            Some(kept) => kept,
            None => {
                let (nest, starts) = self.nest_on(positions, subtree)?;
                let start =
                    |&input: &usize| (nest.buffers[input].len > 0).then(|| starts[input] as i64 - before(input));
                let starts = inputs.iter().map(start).collect();
                let kept = Kept { starts, code: maker.code(nest, &maker.schedule)? };
                codes.keep(kind, kept.clone());
                kept
            }
        };
        let start = |(start, &input): (&Option<i64>, &usize)| start.map_or(0, |start| (start + before(input)) as u64);
        Ok(SubtreeCode {
            starts: kept.starts.iter().zip(inputs).map(start).collect(),
            code: kept.code,
            numbers: along.numbers_at(problem, &along.counted(problem), first),
        })
    }

    /// The naive nest of a subtree on arrays that hold a range of positions, and the starts of its buffers. It is the same
    /// for all subtrees of a kind.
    pub(super) fn nest_on(&self, positions: &Range<u64>, subtree: &Range<u64>) -> Result<(Nest, Vec<u64>), Error> {
        let (along, problem) = (self.along()?, &self.inner.shared.maker.problem);
        let (first, _) = self.place(positions, subtree)?;
        let part = along.on(problem, positions, first);
        Ok(nests::of_blocks(&part, &self.inner.shared.maker.name, subtree.clone(), along.counted(problem)))
    }

    /// The first position of a subtree, and its kind.
    fn place(&self, positions: &Range<u64>, subtree: &Range<u64>) -> Result<(u64, Kind), Error> {
        let (layout, are_apart) = (&self.inner.layout, self.inner.shared.are_apart);
        let (first, within) = self.along()?.position_of(layout.units().of_blocks(subtree).start);
        let kind = Kind {
            blocks: subtree.end - subtree.start,
            within,
            is_last: subtree.end == layout.blocks,
            positions: if are_apart { positions.end - positions.start } else { 0 },
        };
        Ok((first, kind))
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
