//! The common loop over pieces of bytes.
//!
//! The functions here have no target features: they are inlined into the loop that calls them, and their closures have
//! that loop's features.

/// Bytes of the largest piece: two vectors.
const LARGEST: usize = 128;

/// Zero bytes, then all ones: a window of it is the mask of a piece's last bytes.
const WINDOW: &[u8] = [[0; LARGEST], [!0; LARGEST]].as_flattened();

/// Takes pieces of `SIZE` bytes into `N` accumulators in turn, by `step`. The last piece is filled up with the
/// element `pad`; bytes beyond the last whole element are left out.
#[inline(always)]
pub fn fold<const SIZE: usize, const N: usize, const E: usize, A: Copy>(
    bytes: &[u8],
    mut accumulators: [A; N],
    pad: [u8; E],
    step: impl Fn(A, &[u8; SIZE]) -> A,
) -> [A; N] {
    let (pieces, rest) = bytes.as_chunks::<SIZE>();
    let (groups, single) = pieces.as_chunks::<N>();
    for group in groups {
        for (a, piece) in accumulators.iter_mut().zip(group) {
            *a = step(*a, piece);
        }
    }
    for (a, piece) in accumulators.iter_mut().zip(single) {
        *a = step(*a, piece);
    }
    if rest.len() >= E {
        accumulators[N - 1] = step(accumulators[N - 1], &last_piece(bytes, rest.len() / E * E, pad));
    }
    accumulators
}

/// The last piece: `pad`, then the last `left` bytes that belong to elements.
#[inline(always)]
fn last_piece<const SIZE: usize, const E: usize>(bytes: &[u8], left: usize, pad: [u8; E]) -> [u8; SIZE] {
    const { assert!(SIZE <= LARGEST && SIZE.is_multiple_of(E)) };
    let end = bytes.len() / E * E;
    match bytes[..end].last_chunk::<SIZE>() {
        // Vectors are loaded and blended: a copy of so few bytes takes as long as a sum of a thousand.
        Some(taken) => {
            let mask: &[u8; SIZE] = WINDOW[LARGEST - SIZE + left..].first_chunk().expect("a mask");
            let mut piece = [0; SIZE];
            piece.as_chunks_mut::<E>().0.fill(pad);
            for ((byte, taken), mask) in piece.iter_mut().zip(taken).zip(mask) {
                *byte = taken & mask | *byte & !mask;
            }
            piece
        }
        None => {
            let mut piece = [0; SIZE];
            piece.as_chunks_mut::<E>().0.fill(pad);
            piece[SIZE - left..].copy_from_slice(&bytes[end - left..end]);
            piece
        }
    }
}

/// Combines 1 to 16 parts, a power of two of them, by halving: each part with the one half the number further on.
#[inline(always)]
pub fn tree<T: Copy, const N: usize>(mut parts: [T; N], both: impl Fn(T, T) -> T) -> T {
    const { assert!(N.is_power_of_two() && N <= 16) };
    // Loops of constant length, so that the parts stay in registers.
    if N >= 16 {
        (0..8).for_each(|i| parts[i] = both(parts[i], parts[i + 8]));
    }
    if N >= 8 {
        (0..4).for_each(|i| parts[i] = both(parts[i], parts[i + 4]));
    }
    if N >= 4 {
        (0..2).for_each(|i| parts[i] = both(parts[i], parts[i + 2]));
    }
    if N >= 2 {
        parts[0] = both(parts[0], parts[1]);
    }
    parts[0]
}
