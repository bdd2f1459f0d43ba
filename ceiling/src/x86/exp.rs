//! log(sum exp x): a pass for the greatest element as the pivot, a pass for the sum of exp(x - pivot).

use super::extremes;
use super::fold::{fold, tree};

/// Bytes of a block, which has one pivot.
const BLOCK: usize = 4096;

/// 1.5 * 2^23, which brings an integer to the low bits of an f32, plus its exponent bias.
const MAGIC: f32 = 12_582_912.0 + 127.0;

/// The least argument of exp: divided by log 2 it rounds to the exponent of 0.
const FLUSHED: f32 = -88.0;

/// log 2 rounded to f32, and the remainder.
const LN_2: [f32; 2] = [std::f32::consts::LN_2, -1.904_654_2e-9];

/// (e^r - 1) / r for |r| <= log(2) / 2, highest power first; relative error of 1 + r * poly(r): 2^-27.4.
const POLY: [f32; 6] = [0.001_379_706_5, 0.008_368_693, 0.041_668_09, 0.166_665_25, 0.5, 1.0];

/// Returns log(sum exp x) of `pivot` and the sum of exp(x - pivot).
fn finish(pivot: f32, sum: f32, bytes: &[u8]) -> f64 {
    if pivot == f32::INFINITY {
        // The sum is NaN with or without a NaN among the elements, so the elements are searched.
        let (elements, _) = bytes.as_chunks();
        let is_nan = elements.iter().any(|&x| f32::from_le_bytes(x).is_nan());
        return if is_nan { f64::NAN } else { f64::INFINITY };
    }
    (pivot + sum.ln()).into()
}

macro_rules! kernels {
    ($width:ident, $features:literal) => {
        pub mod $width {
            use super::super::width::$width::*;
            use super::*;

            /// The accumulators of a loop: the 16 registers of AVX2 hold no more beside the constants.
            const ACCUMULATORS: usize = if BYTES == 64 { 4 } else { 2 };

            /// e^x for x from -87 to 0, to some 6 digits: a polynomial of degree 5 by powers of 1/n!.
            #[inline]
            #[target_feature(enable = $features)]
            fn rough_exp(x: Ps) -> Ps {
                let n = cvtps_epi32(mul_ps(x, set1_ps(std::f32::consts::LOG2_E)));
                let f = cvtepi32_ps(n);
                let r = fnmadd_ps(f, set1_ps(0.693_359_4), x);
                let r = fnmadd_ps(f, set1_ps(-2.121_944_4e-4), r);
                let mut p = set1_ps(1.0 / 120.0);
                for c in [1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
                    p = fmadd_ps(p, r, set1_ps(c));
                }
                mul_ps(p, castsi_ps(slli_epi32::<23>(add_epi32(n, set1_epi32(127)))))
            }

            /// e^x for x <= 0 or NaN, within 0.9 ulp: (1 + r p(r)) 2^n with n = x / log 2 rounded and
            /// r = x - n log 2 in two steps; +0 where x is below -87.7.
            #[inline]
            #[target_feature(enable = $features)]
            pub fn exp(x: Ps) -> Ps {
                // If one operand is a NaN, max gives the second.
                let x = max_ps(set1_ps(FLUSHED), x);
                let t = fmadd_ps(x, set1_ps(std::f32::consts::LOG2_E), set1_ps(MAGIC));
                let n = sub_ps(t, set1_ps(MAGIC));
                let r = fmadd_ps(n, set1_ps(-LN_2[0]), x);
                let r = fmadd_ps(n, set1_ps(-LN_2[1]), r);
                let s = castsi_ps(slli_epi32::<23>(castps_si(t)));
                let mut p = set1_ps(POLY[0]);
                for c in &POLY[1..] {
                    p = fmadd_ps(p, r, set1_ps(*c));
                }
                mul_ps(fmadd_ps(p, r, set1_ps(1.0)), s)
            }

            /// log(sum exp x) in two passes over all, for elements within 87 of the greatest, no NaN, no infinity.
            #[target_feature(enable = $features)]
            pub fn f32_rough(bytes: &[u8]) -> f64 {
                let pivot = extremes::$width::f32_max(bytes) as f32;
                let m = set1_ps(pivot);
                let (vectors, rest) = bytes.as_chunks::<BYTES>();
                let parts = fold(vectors.as_flattened(), [set1_ps(0.0); ACCUMULATORS], [0; 4], |a, piece| {
                    add_ps(a, rough_exp(sub_ps(load_ps(piece), m)))
                });
                let sum = tree(f32s(tree(parts, |a, b| add_ps(a, b))), |a, b| a + b);
                let rest = rest.as_chunks().0.iter().map(|&x| (f32::from_le_bytes(x) - pivot).exp());
                finish(pivot, sum + rest.sum::<f32>(), bytes)
            }

            /// log(sum exp x) in two passes over each block of 4 KB, for all inputs: NaN if there is one, else inf if
            /// there is one; elements of -inf add 0.
            #[target_feature(enable = $features)]
            pub fn f32_log_sum_exp(bytes: &[u8]) -> f64 {
                let mut pivot = f32::MIN;
                let mut parts = [set1_ps(0.0); ACCUMULATORS];
                for block in bytes.chunks(BLOCK) {
                    // With a NaN in the block this is any number or NaN; the sum is NaN.
                    let greatest = extremes::$width::f32_max(block) as f32;
                    if greatest > pivot {
                        let scale = exp(set1_ps(pivot - greatest));
                        parts = parts.map(|part| mul_ps(part, scale));
                        pivot = greatest;
                    }
                    let m = set1_ps(pivot);
                    let lowest = f32::NEG_INFINITY.to_le_bytes();
                    parts = fold(block, parts, lowest, |a, piece| add_ps(a, exp(sub_ps(load_ps(piece), m))));
                }
                finish(pivot, tree(f32s(tree(parts, |a, b| add_ps(a, b))), |a, b| a + b), bytes)
            }
        }
    };
}

at_each_width!(kernels);
