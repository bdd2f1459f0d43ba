//! The greatest element, by the `max` instruction alone and exactly.
//!
//! `max` alone forgets NaN and the sign of zeros. The exact result is IEEE 754-2019's maximum: NaN if there is one, and
//! +0 above -0. Three loops compute it:
//!
//! - **integers**: the greatest and the least bits as signed integers and the greatest as unsigned ones, three
//!   operations an element. With A, C and D for them, the maximum is NaN if A is above the bits of inf or D above
//!   the bits of -inf, else A if that is not negative, else C.
//! - **unordered**: `max`, and one comparison for two elements that finds a NaN in either; a second pass finds the
//!   sign of a zero result.
//! - **range**: AVX-512's `vrange` for the greater of two, which orders zeros, and one ordered comparison
//!   into a mask for two elements.

use super::fold::{fold, tree};

/// Maps the bits of a float to an integer of the same order, -0 below +0.
fn ordered_f32(bits: i32) -> i32 {
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

fn ordered_f64(bits: i64) -> i64 {
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// +0 if the bits of one of the elements are 0, else -0.
#[cold]
fn zero_of<const E: usize>(bytes: &[u8]) -> f64 {
    if bytes.as_chunks().0.contains(&[0; E]) { 0.0 } else { -0.0 }
}

/// The maximum by the `max` instruction, which after a NaN takes the next element, whatever came before.
macro_rules! plain {
    ($name:ident, $features:literal, $T:ident, $load:ident, $lanes:ident, $set1:ident, $max:ident) => {
        #[target_feature(enable = $features)]
        pub fn $name(bytes: &[u8]) -> f64 {
            let lowest = <$T>::NEG_INFINITY;
            let parts = fold(bytes, [$set1(lowest); 8], lowest.to_le_bytes(), |a, piece| $max(a, $load(piece)));
            let vector = tree(parts, |a, b| $max(a, b));
            tree($lanes(vector), |a, b| if a > b { a } else { b }).into()
        }
    };
}

/// The exact maximum by three integer operations an element.
macro_rules! integers {
    ($name:ident, $features:literal, $T:ident, $I:ident, $U:ident, $lanes:ident, $set1:ident,
     $max:ident, $min:ident, $max_unsigned:ident) => {
        #[target_feature(enable = $features)]
        pub fn $name(bytes: &[u8]) -> f64 {
            let start = ($set1($I::MIN), $set1($I::MAX), zero());
            let pad = <$T>::NEG_INFINITY.to_le_bytes();
            let parts = fold(bytes, [start; 4], pad, |(a, c, d), piece| {
                let x = load(piece);
                ($max(a, x), $min(c, x), $max_unsigned(d, x))
            });
            let (a, c, d) = tree(parts, |x, y| ($max(x.0, y.0), $min(x.1, y.1), $max_unsigned(x.2, y.2)));
            let (a, c) = (tree($lanes(a), $I::max), tree($lanes(c), $I::min));
            let d = tree($lanes(d), |x, y| if x as $U > y as $U { x } else { y }) as $U;
            if a > <$T>::INFINITY.to_bits() as $I || d > <$T>::NEG_INFINITY.to_bits() {
                return f64::NAN;
            }
            <$T>::from_bits(if a >= 0 { a } else { c } as $U).into()
        }
    };
}

/// The exact maximum by `max` and unordered comparisons.
macro_rules! unordered {
    ($name:ident, $features:literal, $T:ident, $load:ident, $lanes:ident, $set1:ident,
     $max:ident, $cmp:ident, $or:ident) => {
        #[target_feature(enable = $features)]
        pub fn $name(bytes: &[u8]) -> f64 {
            let lowest = <$T>::NEG_INFINITY;
            let start = ($set1(lowest), $set1(lowest), $set1(0.0));
            let parts = fold(bytes, [start; 4], lowest.to_le_bytes(), |(a, b, nan), pair: &[u8; 2 * BYTES]| {
                let (vectors, _) = pair.as_chunks();
                let (x, y) = ($load(&vectors[0]), $load(&vectors[1]));
                ($max(x, a), $max(y, b), $or(nan, $cmp::<_CMP_UNORD_Q>(x, y)))
            });
            let (a, b, nan) = tree(parts, |p, q| ($max(p.0, q.0), $max(p.1, q.1), $or(p.2, q.2)));
            if $lanes(nan).map(<$T>::to_bits) != [0; _] {
                return f64::NAN;
            }
            let greatest = tree($lanes($max(a, b)), |a, b| if a > b { a } else { b });
            if greatest == 0.0 { zero_of::<{ size_of::<$T>() }>(bytes) } else { greatest.into() }
        }
    };
}

/// The exact maximum by `vrange` and ordered comparisons.
macro_rules! range {
    ($name:ident, $T:ident, $U:ident, $load:ident, $lanes:ident, $cast:ident, $ordered:ident, $set1:ident,
     $range:ident, $cmp:ident) => {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        pub fn $name(bytes: &[u8]) -> f64 {
            /// The selector of `vrange` for the greater of two, with its sign.
            const GREATER: i32 = 0b0101;
            let lowest = <$T>::NEG_INFINITY;
            let start = ($set1(lowest), $set1(lowest), !0);
            let parts = fold(bytes, [start; 4], lowest.to_le_bytes(), |(a, b, no_nan), pair: &[u8; 2 * BYTES]| {
                let (vectors, _) = pair.as_chunks();
                let (x, y) = ($load(&vectors[0]), $load(&vectors[1]));
                ($range::<GREATER>(a, x), $range::<GREATER>(b, y), $cmp::<_CMP_ORD_Q>(no_nan, x, y))
            });
            let greater = |a, b| $range::<GREATER>(a, b);
            let (a, b, no_nan) = tree(parts, |p, q| (greater(p.0, q.0), greater(p.1, q.1), p.2 & q.2));
            if no_nan != !0 {
                return f64::NAN;
            }
            // The map is its own inverse.
            let greatest = tree($lanes($cast(greater(a, b))).map($ordered), Ord::max);
            <$T>::from_bits($ordered(greatest) as $U).into()
        }
    };
}

macro_rules! kernels {
    ($width:ident, $features:literal) => {
        pub mod $width {
            use super::super::width::$width::*;
            use super::*;

            plain!(f32_max, $features, f32, load_ps, f32s, set1_ps, max_ps);
            plain!(f64_max, $features, f64, load_pd, f64s, set1_pd, max_pd);
            integers!(f32_integers, $features, f32, i32, u32, i32s, set1_epi32, max_epi32, min_epi32, max_epu32);
            only!($width, $features);
        }
    };
}

/// The loops of some widths only: at 512 bits comparisons give masks, and 64-bit integers have maxima only there.
macro_rules! only {
    (w512, $features:literal) => {
        use std::arch::x86_64::{
            _CMP_ORD_Q, _mm512_mask_cmp_pd_mask, _mm512_mask_cmp_ps_mask, _mm512_max_epi64, _mm512_max_epu64,
            _mm512_min_epi64, _mm512_range_pd, _mm512_range_ps, _mm512_set1_epi64,
        };
        integers!(
            f64_integers,
            $features,
            f64,
            i64,
            u64,
            i64s,
            _mm512_set1_epi64,
            _mm512_max_epi64,
            _mm512_min_epi64,
            _mm512_max_epu64
        );
        range!(
            f32_range,
            f32,
            u32,
            load_ps,
            i32s,
            castps_si,
            ordered_f32,
            set1_ps,
            _mm512_range_ps,
            _mm512_mask_cmp_ps_mask
        );
        range!(
            f64_range,
            f64,
            u64,
            load_pd,
            i64s,
            castpd_si,
            ordered_f64,
            set1_pd,
            _mm512_range_pd,
            _mm512_mask_cmp_pd_mask
        );
    };
    ($width:ident, $features:literal) => {
        use std::arch::x86_64::_CMP_UNORD_Q;
        unordered!(f32_unordered, $features, f32, load_ps, f32s, set1_ps, max_ps, cmp_ps, or_ps);
        unordered!(f64_unordered, $features, f64, load_pd, f64s, set1_pd, max_pd, cmp_pd, or_pd);
    };
}

at_each_width!(kernels);
