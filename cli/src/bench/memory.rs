//! The read rate of memory on one core, to which kernels are compared.

use crate::buffer::Buffer;
use crate::failure::Failure;
use crate::timing;
use std::hint::black_box;

/// Bytes read: sizes that fit the first-, second- and third-level cache of most machines, and one that fits none.
pub const SIZES: [usize; 4] = [16 << 10, 512 << 10, 8 << 20, 256 << 20];

/// Words that are summed side by side: on 128-bit vectors, 8 accumulators. With 16 accumulators, no register is left
/// for loads, which reads 92 GB/s from the first-level cache where 8 read 112.
const WORDS: usize = 16;

/// The sum of the words in the bytes, without a remainder of less than 128 bytes.
///
/// The loop does one addition for each vector loaded, with the vectors of this build (128 bits on plain x86-64):
/// kernels with wider vectors may be faster on cached data.
#[inline(never)]
pub fn read(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    let (rows, _) = words.as_chunks::<WORDS>();
    let mut sums = [0u64; WORDS];
    for row in rows {
        for (sum, word) in sums.iter_mut().zip(row) {
            *sum = sum.wrapping_add(u64::from_ne_bytes(*word));
        }
    }
    sums.iter().fold(0, |total, &sum| total.wrapping_add(sum))
}

/// The read rate for each of the [`SIZES`]: the median time of one pass.
///
/// # Errors
/// [`Failure::Memory`].
pub fn ladder() -> Result<[f64; SIZES.len()], Failure> {
    let mut buffer = Buffer::zeroed(SIZES[SIZES.len() - 1] as u64)?;
    // A page that was never written is the same page of zeros everywhere, and is read from the cache.
    buffer.bytes_mut().fill(1);
    let mut medians = [0.0; SIZES.len()];
    for (median, size) in medians.iter_mut().zip(SIZES) {
        let bytes = &buffer.bytes()[..size];
        let mut pass = || {
            black_box(read(black_box(bytes)));
            Ok(())
        };
        *median = timing::in_turn(&mut [&mut pass], (7, 301), 1.5e8)?[0].median_ns();
    }
    Ok(medians)
}
