//! The loops that are written out, as `vectorize` and `unroll` agree on them.

/// The most iterations of a parallel loop that are written out: as many vectors as fit the registers, and as many lanes of
/// 4 bytes as a line of memory holds.
pub(super) const SHORT: u64 = 16;

/// Iterations taken in one where each does little, so that its end would cost as much. `vectorize` makes loops of so many
/// vectors, and `unroll` writes them out.
pub(super) const GROUP: u64 = 4;

const _: () = assert!(GROUP <= SHORT);
