//! Which accumulators lie in scratch memory that the caller gives.
//!
//! Accumulators of more than [`MOST_FRAME_BYTES`] do: a slice that is selected from may have millions of
//! elements, far more than a thread's stack holds. Bodies that never run at once share memory: each
//! accumulator lies after those of the bodies around it and those before it in its own.

use super::Unsupported;
use cranefold_ir::{AccId, Nest, Stmt};
use std::collections::HashMap;

/// The most bytes of an accumulator in the function's frame.
pub const MOST_FRAME_BYTES: u64 = 64 << 10;

/// The alignment of scratch memory and of each accumulator in it, in bytes: a cache line, and the
/// widest vector.
pub const SCRATCH_ALIGN: u64 = 64;

/// Where accumulators lie in scratch memory.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The place of each, in bytes from the start.
    pub offsets: HashMap<AccId, u64>,
    /// Bytes that hold them all, a multiple of [`SCRATCH_ALIGN`].
    pub bytes: u64,
}

impl Scratch {
    /// The places of the accumulators of `nest` that live in memory and do not fit the frame.
    ///
    /// # Errors
    /// If an accumulator has more bytes than an address space.
    pub fn of(nest: &Nest, in_memory: impl Fn(AccId) -> bool) -> Result<Scratch, Unsupported> {
        let mut scratch = Scratch::default();
        scratch.body(&nest.body, 0, &in_memory)?;
        Ok(scratch)
    }

    fn body(&mut self, body: &[Stmt], mut used: u64, in_memory: &impl Fn(AccId) -> bool) -> Result<(), Unsupported> {
        for stmt in body {
            match stmt {
                Stmt::For(l) => self.body(&l.body, used, in_memory)?,
                Stmt::Acc { acc, dtype, len, .. } if in_memory(*acc) => {
                    let bytes = len.saturating_mul(dtype.bytes());
                    if bytes <= MOST_FRAME_BYTES {
                        continue;
                    }
                    self.offsets.insert(*acc, used);
                    let end = used.saturating_add(bytes);
                    if end > i64::MAX as u64 - SCRATCH_ALIGN {
                        return Err(Unsupported(format!("an accumulator of {len} elements of {dtype}")));
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
