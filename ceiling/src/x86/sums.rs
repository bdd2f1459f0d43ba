//! Reductions of one or two operations an element: sums of elements, magnitudes and squares; products.

use super::fold::{fold, tree};

/// A loop over floats with eight accumulators, from the identity element by `$lift` and `$combine`.
macro_rules! float {
    ($name:ident, $features:literal, $T:ident, $load:ident, $lanes:ident, $set1:ident,
     from $identity:literal, $combine:ident by $op:tt, |$x:ident| $lift:expr) => {
        #[target_feature(enable = $features)]
        pub fn $name(bytes: &[u8]) -> f64 {
            let parts = fold(bytes, [$set1($identity); 8], <$T>::to_le_bytes($identity), |a, piece| {
                let $x = $load(piece);
                $combine(a, $lift)
            });
            let vector = tree(parts, |a, b| $combine(a, b));
            tree($lanes(vector), |a, b| a $op b).into()
        }
    };
}

macro_rules! kernels {
    ($width:ident, $features:literal) => {
        pub mod $width {
            use super::super::width::$width::*;
            use super::*;

            float!(f32_sum, $features, f32, load_ps, f32s, set1_ps, from 0.0, add_ps by +, |x| x);
            float!(f64_sum, $features, f64, load_pd, f64s, set1_pd, from 0.0, add_pd by +, |x| x);
            float!(f32_prod, $features, f32, load_ps, f32s, set1_ps, from 1.0, mul_ps by *, |x| x);
            float!(f64_prod, $features, f64, load_pd, f64s, set1_pd, from 1.0, mul_pd by *, |x| x);
            float!(f32_l1, $features, f32, load_ps, f32s, set1_ps, from 0.0, add_ps by +,
                |x| and_ps(x, set1_ps(f32::from_bits(!0 >> 1))));
            float!(f64_l1, $features, f64, load_pd, f64s, set1_pd, from 0.0, add_pd by +,
                |x| and_pd(x, set1_pd(f64::from_bits(!0 >> 1))));
            // Rounded twice: a combine by addition in a fixed order cannot be fused with the lift.
            float!(f32_sum_squares, $features, f32, load_ps, f32s, set1_ps, from 0.0, add_ps by +, |x| mul_ps(x, x));
            float!(f64_sum_squares, $features, f64, load_pd, f64s, set1_pd, from 0.0, add_pd by +, |x| mul_pd(x, x));

            /// The sum of i32 modulo 2^32.
            #[target_feature(enable = $features)]
            pub fn i32_sum(bytes: &[u8]) -> f64 {
                let parts = fold(bytes, [zero(); 8], [0; 4], |a, piece| add_epi32(a, load(piece)));
                let vector = tree(parts, |a, b| add_epi32(a, b));
                tree(i32s(vector), i32::wrapping_add).into()
            }
        }
    };
}

at_each_width!(kernels);
