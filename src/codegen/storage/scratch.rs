//! The accumulators in scratch memory, which the caller gives.
//!
//! They are the slices of selections beyond [`MOST_SLICE_BYTES`], which may have millions of elements, far more than a
//! thread's stack holds, and other accumulators beyond [`MOST_STATE_BYTES`]; schedules bound the states of reductions
//! to less. Bodies that never run at once share memory: each accumulator lies after those of the bodies around it and
//! those before it in its own body.

use crate::schedule::Schedule;
use cranefold_ir::{AccId, DType, Nest, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};

/// The most bytes, in the function's frame, of an accumulator that is selected from.
const MOST_SLICE_BYTES: u64 = 64 << 10;

/// The most bytes, in the function's frame, of any other accumulator.
const MOST_STATE_BYTES: u64 = Schedule::MAX_STATE_BYTES;

/// The most bytes of all accumulators there.
const MOST_FRAME_BYTES: u64 = 4 * MOST_STATE_BYTES;

/// The alignment of scratch memory and of each accumulator in it, in bytes: a cache line, and the
/// widest vector.
pub const SCRATCH_ALIGN: u64 = 64;

/// An accumulator has more bytes than an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an accumulator of {len} elements of {dtype}")]
pub struct TooLarge {
    len: u64,
    dtype: DType,
}

/// The places of accumulators in scratch memory.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The place of each accumulator, in bytes from the start.
    pub offsets: FxHashMap<AccId, u64>,
    /// Bytes that hold all of them, a multiple of [`SCRATCH_ALIGN`].
    pub bytes: u64,
}

impl Scratch {
    /// The places of the accumulators of `nest` that live in memory and do not fit the frame.
    ///
    /// # Errors
    /// An error if an accumulator has more bytes than an address space.
    pub fn of(nest: &Nest, in_memory: impl Fn(AccId) -> bool) -> Result<Scratch, TooLarge> {
        let mut slices = FxHashSet::default();
        nest.visit(&mut |s| {
            if let Stmt::Select { acc, .. } = s {
                slices.insert(*acc);
            }
        });
        let most_bytes = |acc| match in_memory(acc) {
            true if slices.contains(&acc) => MOST_SLICE_BYTES,
            true => MOST_STATE_BYTES,
            false => u64::MAX,
        };
        let mut scratch = Scratch::default();
        let mut frame = MOST_FRAME_BYTES;
        scratch.body(&nest.body, 0, &mut frame, &most_bytes)?;
        Ok(scratch)
    }

    /// The places of accumulators of more than `most_bytes`, or of more than are left of the frame, after `used` bytes.
    fn body(
        &mut self,
        body: &[Stmt],
        mut used: u64,
        frame: &mut u64,
        most_bytes: &impl Fn(AccId) -> u64,
    ) -> Result<(), TooLarge> {
        for stmt in body {
            match stmt {
                Stmt::For(l) => self.body(&l.body, used, frame, most_bytes)?,
                Stmt::Wide { body } => self.body(body, used, frame, most_bytes)?,
                Stmt::Acc { acc, dtype, len, .. } => {
                    let bytes = len.saturating_mul(dtype.bytes());
                    let most = most_bytes(*acc);
                    if most == u64::MAX {
                        continue;
                    }
                    if bytes <= most && bytes <= *frame {
                        *frame -= bytes;
                        continue;
                    }
                    self.offsets.insert(*acc, used);
                    let end = used.saturating_add(bytes);
                    if end > i64::MAX as u64 - SCRATCH_ALIGN {
                        return Err(TooLarge { len: *len, dtype: *dtype });
                    }
                    used = end.next_multiple_of(SCRATCH_ALIGN);
                    self.bytes = self.bytes.max(used);
                }
                _ => {}
            }
        }
        Ok(())
    }
}
