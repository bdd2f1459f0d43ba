//! The limits of short loops, on which `vectorize` and `unroll` agree.

/// The most iterations of a parallel loop that is unrolled: as many vectors as fit the registers, and as many lanes of
/// 4 bytes as a line of memory holds.
pub(super) const SHORT: u64 = 16;

/// The iterations that are unrolled into one where each does so little that the end of the loop costs as much.
/// `vectorize` makes loops over groups of so many vectors, and `unroll` writes the groups out.
pub(super) const GROUP: u64 = 4;

const _: () = assert!(GROUP <= SHORT);
