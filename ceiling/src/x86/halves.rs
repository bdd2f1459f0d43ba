//! Sums of 16-bit floats, in f32.

use super::fold::{fold, tree};

macro_rules! kernels {
    ($width:ident, $features:literal) => {
        pub mod $width {
            use super::super::width::$width::*;
            use super::*;

            /// The sum of bf16. A bf16 is the upper half of an f32: one in the lower half of 32 bits is shifted up, the
            /// upper one is masked.
            #[target_feature(enable = $features)]
            pub fn bf16_sum(bytes: &[u8]) -> f64 {
                let upper = set1_epi32(0xffff_0000_u32 as i32);
                let none = (set1_ps(0.0), set1_ps(0.0));
                let parts = fold(bytes, [none; 4], [0; 2], |(even, odd), piece| {
                    let x = load(piece);
                    let (low, high) = (castsi_ps(slli_epi32::<16>(x)), castsi_ps(and_si(x, upper)));
                    (add_ps(even, low), add_ps(odd, high))
                });
                let (even, odd) = tree(parts, |a, b| (add_ps(a.0, b.0), add_ps(a.1, b.1)));
                tree(f32s(add_ps(even, odd)), |a, b| a + b).into()
            }

            /// The sum of f16, converted by `vcvtph2ps`.
            #[target_feature(enable = $features)]
            pub fn f16_sum(bytes: &[u8]) -> f64 {
                let parts = fold(bytes, [set1_ps(0.0); 8], [0; 2], |a, piece| add_ps(a, load_halves(piece)));
                tree(f32s(tree(parts, |a, b| add_ps(a, b))), |a, b| a + b).into()
            }
        }
    };
}

at_each_width!(kernels);
