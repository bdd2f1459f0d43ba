//! The variance of the population, sum (x - mean)^2 / n: a pass for the mean, a pass for the deviations.

use super::fold::{fold, tree};
use super::sums;

/// Bytes of a block, which has one mean.
const BLOCK: usize = 4096;

macro_rules! kernels {
    ($width:ident, $features:literal) => {
        pub mod $width {
            use super::super::width::$width::*;
            use super::*;

            /// The variance in two passes over all.
            #[target_feature(enable = $features)]
            pub fn f32_var(bytes: &[u8]) -> f64 {
                let n = (bytes.len() / 4) as f64;
                let mean = (sums::$width::f32_sum(bytes) / n) as f32;
                let m = set1_ps(mean);
                let parts = fold(bytes, [set1_ps(0.0); 8], mean.to_le_bytes(), |a, piece| {
                    let d = sub_ps(load_ps(piece), m);
                    fmadd_ps(d, d, a)
                });
                f64::from(tree(f32s(tree(parts, |a, b| add_ps(a, b))), |a, b| a + b)) / n
            }

            /// Two passes over each block of 4 KB, which keeps the sum of the deviations from its rounded mean beside
            /// the sum of their squares; blocks merge by Chan, Golub and LeVeque (1983).
            #[target_feature(enable = $features)]
            pub fn f32_var_in_blocks(bytes: &[u8]) -> f64 {
                let (mut n, mut mean, mut m2) = (0.0f32, 0.0f32, 0.0f32);
                for block in bytes.chunks(BLOCK) {
                    let count = (block.len() / 4) as f32;
                    let c = sums::$width::f32_sum(block) as f32 / count;
                    let (m, one) = (set1_ps(c), set1_ps(1.0));
                    let none = (set1_ps(0.0), set1_ps(0.0));
                    let parts = fold(block, [none; 4], c.to_le_bytes(), |(s1, s2), piece| {
                        let d = sub_ps(load_ps(piece), m);
                        // The sum by fma, since the multipliers are idle and the adders are not.
                        (fmadd_ps(s1, one, d), fmadd_ps(d, d, s2))
                    });
                    let (s1, s2) = tree(parts, |a, b| (add_ps(a.0, b.0), add_ps(a.1, b.1)));
                    let s1 = tree(f32s(s1), |a, b| a + b);
                    let s2 = tree(f32s(s2), |a, b| a + b);
                    let e = s1 / count;
                    let both = n + count;
                    let delta = c + e - mean;
                    m2 += s2 - s1 * e + delta * delta * n * (count / both);
                    mean += delta * (count / both);
                    n = both;
                }
                f64::from(m2 / n)
            }
        }
    };
}

at_each_width!(kernels);
