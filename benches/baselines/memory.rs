//! How fast one core reads memory: what no kernel of 128-bit vectors can exceed by much.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Bytes read: in the first-, second- and third-level cache of most machines, and in none.
const SIZES: [usize; 4] = [16 << 10, 512 << 10, 4 << 20, 256 << 20];

/// Words that are summed side by side: on 128-bit vectors 8 accumulators, which leaves registers for
/// what is loaded.
const WORDS: usize = 16;

/// Time spent on a size.
const BUDGET: Duration = Duration::from_millis(300);

/// Prints the read rate for each size, from the median time of a pass.
pub fn print_read_rates() {
    // Pages that were never written are the same page everywhere, and read from the cache.
    let buffer: Vec<u64> = (0..SIZES[SIZES.len() - 1] as u64 / 8).collect();
    println!("one core reads memory at (sums of 64-bit words, safe Rust):");
    for size in SIZES {
        let words = &buffer[..size / 8];
        // Passes timed together, so that the clock does not show.
        let together = ((1 << 20) / size).max(1);
        let mut times = vec![];
        let begin = Instant::now();
        while times.len() < 5 || begin.elapsed() < BUDGET {
            let start = Instant::now();
            for _ in 0..together {
                black_box(read(black_box(words)));
            }
            times.push(start.elapsed().as_secs_f64() / together as f64);
        }
        times.sort_by(f64::total_cmp);
        let rate = size as f64 / times[times.len() / 2];
        println!("{:>10} KiB {:7.1} GB/s {:7.1} GiB/s", size >> 10, rate / 1e9, rate / 2f64.powi(30));
    }
}

/// The sum of the words: one addition for each vector loaded, by the vectors of this build.
#[inline(never)]
fn read(words: &[u64]) -> u64 {
    let mut sums = [0u64; WORDS];
    for row in words.as_chunks::<WORDS>().0 {
        sums.iter_mut().zip(row).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}
