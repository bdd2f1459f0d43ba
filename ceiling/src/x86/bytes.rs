//! Sums of bytes.
//!
//! `psadbw` with zeros adds eight unsigned bytes into a 64-bit lane, which never overflows; signed bytes are moved up
//! by 128 for it, and the sum down by as much for each. `vpdpbusd` with ones adds four signed bytes into a 32-bit
//! lane, modulo 2^32.

use super::fold::{fold, tree};

macro_rules! kernels {
    ($width:ident, $features:literal) => {
        pub mod $width {
            use super::super::width::$width::*;
            use super::*;

            #[target_feature(enable = $features)]
            pub fn u8_sum(bytes: &[u8]) -> f64 {
                let parts = fold(bytes, [zero(); 4], [0], |a, piece| add_epi64(a, sad_epu8(load(piece), zero())));
                tree(i64s(tree(parts, |a, b| add_epi64(a, b))), i64::wrapping_add) as f64
            }

            #[target_feature(enable = $features)]
            pub fn i8_sum(bytes: &[u8]) -> f64 {
                let parts = fold(bytes, [zero(); 4], [0x80], |a, piece| {
                    let moved = xor_si(load(piece), set1_epi8(i8::MIN));
                    add_epi64(a, sad_epu8(moved, zero()))
                });
                let sum = tree(i64s(tree(parts, |a, b| add_epi64(a, b))), i64::wrapping_add);
                (sum - 128 * bytes.len() as i64) as f64
            }

            vnni!($width);
        }
    };
}

macro_rules! vnni {
    (w512) => {
        vnni!("avx512f,avx512vnni");
    };
    (w256) => {
        vnni!("avx2,avx512vnni,avx512vl");
    };
    (w128) => {
        vnni!("avx2,avx512vnni,avx512vl");
    };
    ($features:literal) => {
        #[target_feature(enable = $features)]
        pub fn i8_sum_vnni(bytes: &[u8]) -> f64 {
            let parts = fold(bytes, [zero(); 4], [0], |a, piece| dpbusd(a, set1_epi8(1), load(piece)));
            tree(i32s(tree(parts, |a, b| add_epi32(a, b))), i32::wrapping_add).into()
        }
    };
}

at_each_width!(kernels);
