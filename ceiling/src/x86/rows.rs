//! Rows of f32, normalised over the row.

use super::exp;
use super::fold::{fold, tree};
use super::sums;

/// Added to a mean of squares.
const LAYER_NORM_EPS: f32 = 1e-5;
const RMS_NORM_EPS: f32 = 1e-6;

fn f32_of(bytes: &[u8; 4]) -> f32 {
    f32::from_le_bytes(*bytes)
}

macro_rules! kernels {
    ($width:ident, $features:literal) => {
        pub mod $width {
            use super::super::width::$width::*;
            use super::*;

            /// Vectors that are taken together where each takes a chain of operations.
            const TOGETHER: usize = if BYTES == 64 { 4 } else { 2 };

            /// Softmax: a visit for the greatest element, one that writes exponentials and adds them, one that divides.
            #[target_feature(enable = $features)]
            pub fn softmax(x: &[u8], weights: [&[u8]; 2], out: &mut [u8]) {
                let row = weights[0].len();
                for (x, out) in x.chunks_exact(row).zip(out.chunks_exact_mut(row)) {
                    let lowest = f32::NEG_INFINITY.to_le_bytes();
                    let parts = fold(x, [set1_ps(f32::NEG_INFINITY); 4], lowest, |a, piece| max_ps(load_ps(piece), a));
                    let greatest = tree(f32s(tree(parts, |a, b| max_ps(a, b))), f32::max);
                    let m = set1_ps(greatest);
                    let (vectors, rest) = x.as_chunks::<BYTES>();
                    let (written, rest_written) = out.as_chunks_mut::<BYTES>();
                    let mut sums = [set1_ps(0.0); TOGETHER];
                    for (x, out) in vectors.chunks(TOGETHER).zip(written.chunks_mut(TOGETHER)) {
                        for ((x, out), sum) in x.iter().zip(out).zip(&mut sums) {
                            let e = exp::$width::exp(sub_ps(load_ps(x), m));
                            *sum = add_ps(*sum, e);
                            *out = bytes_of(castps_si(e));
                        }
                    }
                    let mut sum = tree(f32s(tree(sums, |a, b| add_ps(a, b))), |a, b| a + b);
                    for (x, out) in rest.as_chunks().0.iter().zip(rest_written.as_chunks_mut().0) {
                        let e = (f32_of(x) - greatest).exp();
                        sum += e;
                        *out = e.to_le_bytes();
                    }
                    let y = set1_ps(1.0 / sum);
                    for out in written {
                        *out = bytes_of(castps_si(mul_ps(load_ps(out), y)));
                    }
                    for out in rest_written.as_chunks_mut().0 {
                        *out = (f32_of(out) / sum).to_le_bytes();
                    }
                }
            }

            /// Writes `f` of the vectors of rows, and `rest` of the elements after the last whole one.
            #[inline(always)]
            fn write(
                x: &[u8],
                [w, b]: [&[u8]; 2],
                out: &mut [u8],
                f: impl Fn(Ps, Ps, Ps) -> Ps,
                rest: impl Fn(f32, f32, f32) -> f32,
            ) {
                let (x, x_rest) = x.as_chunks::<BYTES>();
                let (w, w_rest) = w.as_chunks::<BYTES>();
                let (b, b_rest) = b.as_chunks::<BYTES>();
                let (out, out_rest) = out.as_chunks_mut::<BYTES>();
                for (((x, w), b), out) in x.iter().zip(w).zip(b).zip(out) {
                    // SAFETY: the callers have these features, and this function is part of them.
                    #[allow(unsafe_code, reason = "a function that is always inlined has no features of its own")]
                    unsafe {
                        *out = bytes_of(castps_si(f(load_ps(x), load_ps(w), load_ps(b))));
                    }
                }
                let elements = x_rest.as_chunks().0.iter().zip(w_rest.as_chunks().0).zip(b_rest.as_chunks().0);
                for (((x, w), b), out) in elements.zip(out_rest.as_chunks_mut().0) {
                    *out = rest(f32_of(x), f32_of(w), f32_of(b)).to_le_bytes();
                }
            }

            /// Layer norm: visits for the mean, for the variance, and for the results.
            #[target_feature(enable = $features)]
            pub fn layer_norm(x: &[u8], weights: [&[u8]; 2], out: &mut [u8]) {
                let row = weights[0].len();
                let n = (row / 4) as f32;
                for (x, out) in x.chunks_exact(row).zip(out.chunks_exact_mut(row)) {
                    let mean = sums::$width::f32_sum(x) as f32 / n;
                    let m = set1_ps(mean);
                    let parts = fold(x, [set1_ps(0.0); 8], mean.to_le_bytes(), |a, piece| {
                        let d = sub_ps(load_ps(piece), m);
                        fmadd_ps(d, d, a)
                    });
                    let var = tree(f32s(tree(parts, |a, b| add_ps(a, b))), |a, b| a + b) / n;
                    let y = 1.0 / (var + LAYER_NORM_EPS).sqrt();
                    let r = set1_ps(y);
                    let f = |x, w, b| fmadd_ps(mul_ps(sub_ps(x, m), r), w, b);
                    write(x, weights, out, f, |x, w, b| (x - mean) * y * w + b);
                }
            }

            /// RMS norm: visits for the mean of squares, and for the results.
            #[target_feature(enable = $features)]
            pub fn rms_norm(x: &[u8], weights: [&[u8]; 2], out: &mut [u8]) {
                let row = weights[0].len();
                for (x, out) in x.chunks_exact(row).zip(out.chunks_exact_mut(row)) {
                    let mean = sums::$width::f32_sum_squares(x) as f32 / (row / 4) as f32;
                    let y = 1.0 / (mean + RMS_NORM_EPS).sqrt();
                    let r = set1_ps(y);
                    write(x, weights, out, |x, w, _| mul_ps(mul_ps(x, r), w), |x, w, _| x * y * w);
                }
            }

            /// Quantisation to int8: visits for the greatest absolute value, and for the results. The greatest value times
            /// the scale may round to 127, so that nothing saturates.
            #[target_feature(enable = $features)]
            pub fn int8(x: &[u8], weights: [&[u8]; 2], out: &mut [u8]) {
                let row = weights[0].len();
                for (x, out) in x.chunks_exact(row).zip(out.chunks_exact_mut(row / 4)) {
                    let positive = castsi_ps(set1_epi32(i32::MAX));
                    let parts =
                        fold(x, [set1_ps(0.0); 4], [0; 4], |a, piece| max_ps(and_ps(load_ps(piece), positive), a));
                    let greatest = tree(f32s(tree(parts, |a, b| max_ps(a, b))), f32::max);
                    let scale = 127.0 / greatest;
                    let s = set1_ps(scale);
                    let (vectors, rest) = x.as_chunks::<BYTES>();
                    let (written, rest_written) = out.split_at_mut(vectors.len() * BYTES / 4);
                    for (x, out) in vectors.iter().zip(written.as_chunks_mut().0) {
                        *out = low_bytes(cvtps_epi32(mul_ps(load_ps(x), s)));
                    }
                    for (x, out) in rest.as_chunks().0.iter().zip(rest_written) {
                        *out = (f32_of(x) * scale).round_ties_even() as i8 as u8;
                    }
                }
            }
        }
    };
}

at_each_width!(kernels);
