//! The loop that all share.
//!
//! What is here has no features of its own: it must become part of the loop that calls it, and its closures have the
//! features of that.

/// Bytes of the largest piece: two vectors.
const LARGEST: usize = 128;

/// No bytes, then all: a piece of it masks the last ones of a piece.
const WINDOW: &[u8] = [[0; LARGEST], [!0; LARGEST]].as_flattened();

/// Takes pieces of `SIZE` bytes into `N` accumulators in turn, by `step`. What is left at the end is a piece filled up
/// with the element `pad`; bytes that are no element are left out.
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

/// The piece that ends with the last `left` bytes that are elements, and holds `pad` before them.
#[inline(always)]
fn last_piece<const SIZE: usize, const E: usize>(bytes: &[u8], left: usize, pad: [u8; E]) -> [u8; SIZE] {
    const { assert!(SIZE <= LARGEST && SIZE.is_multiple_of(E)) };
    let end = bytes.len() / E * E;
    match bytes[..end].last_chunk::<SIZE>() {
        // Vectors are loaded and blended: to copy so few bytes would take as long as a thousand are summed.
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

/// Combines 1 to 16 parts, a power of two of them, as a tree: each with the one half the number further on.
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
