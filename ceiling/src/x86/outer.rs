//! Sums of columns: eight vectors of columns down all rows at a time, or four rows at a time onto a row of sums.

/// The column sums of one element type and width.
macro_rules! outer {
    ($blocks:ident, $rows:ident, $features:literal, $T:ident, $load:ident, $set1:ident, $add:ident, $cast:ident) => {
        #[target_feature(enable = $features)]
        pub fn $blocks(bytes: &[u8], sums: &mut [u8]) -> f64 {
            let len = sums.len();
            // Made once, since it divides.
            let rows = bytes.chunks_exact(len);
            let mut at = 0;
            while at + 8 * BYTES <= len {
                let mut parts = [$set1(0.0); 8];
                for row in rows.clone() {
                    let (vectors, _) = row[at..at + 8 * BYTES].as_chunks::<BYTES>();
                    for (part, vector) in parts.iter_mut().zip(vectors) {
                        *part = $add(*part, $load(vector));
                    }
                }
                for (sum, part) in sums[at..at + 8 * BYTES].as_chunks_mut::<BYTES>().0.iter_mut().zip(parts) {
                    *sum = bytes_of($cast(part));
                }
                at += 8 * BYTES;
            }
            while at + BYTES <= len {
                let mut part = $set1(0.0);
                for row in rows.clone() {
                    part = $add(part, $load(row[at..].first_chunk().expect("a vector")));
                }
                *sums[at..].first_chunk_mut().expect("a vector") = bytes_of($cast(part));
                at += BYTES;
            }
            if at < len {
                let (rest, _) = sums[at..].as_chunks_mut();
                rest.fill(<$T>::to_le_bytes(0.0));
                for row in rows.clone() {
                    add(rest, row[at..].as_chunks().0, <$T>::from_le_bytes, <$T>::to_le_bytes);
                }
            }
            sums.first_chunk().map_or(0.0, |&x| <$T>::from_le_bytes(x).into())
        }

        #[target_feature(enable = $features)]
        pub fn $rows(bytes: &[u8], sums: &mut [u8]) -> f64 {
            let len = sums.len();
            sums.fill(0);
            let fours = bytes.chunks_exact(4 * len);
            let single = fours.remainder().chunks_exact(len);
            for four in fours {
                let (top, bottom) = four.split_at(2 * len);
                let ((a, b), (c, d)) = (top.split_at(len), bottom.split_at(len));
                let (out, rest) = sums.as_chunks_mut::<BYTES>();
                let (a, a_rest) = a.as_chunks::<BYTES>();
                let (b, b_rest) = b.as_chunks::<BYTES>();
                let (c, c_rest) = c.as_chunks::<BYTES>();
                let (d, d_rest) = d.as_chunks::<BYTES>();
                for ((((sum, a), b), c), d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                    let part = $add($add($load(a), $load(b)), $add($load(c), $load(d)));
                    *sum = bytes_of($cast($add($load(sum), part)));
                }
                for row in [a_rest, b_rest, c_rest, d_rest] {
                    add(rest.as_chunks_mut().0, row.as_chunks().0, <$T>::from_le_bytes, <$T>::to_le_bytes);
                }
            }
            for row in single {
                let (out, rest) = sums.as_chunks_mut::<BYTES>();
                let (vectors, row_rest) = row.as_chunks::<BYTES>();
                for (sum, vector) in out.iter_mut().zip(vectors) {
                    *sum = bytes_of($cast($add($load(sum), $load(vector))));
                }
                add(rest.as_chunks_mut().0, row_rest.as_chunks().0, <$T>::from_le_bytes, <$T>::to_le_bytes);
            }
            sums.first_chunk().map_or(0.0, |&x| <$T>::from_le_bytes(x).into())
        }
    };
}

/// Adds elements to sums, one by one.
fn add<const E: usize, T: std::ops::Add<Output = T>>(
    sums: &mut [[u8; E]],
    row: &[[u8; E]],
    read: impl Fn([u8; E]) -> T,
    write: impl Fn(T) -> [u8; E],
) {
    for (sum, x) in sums.iter_mut().zip(row) {
        *sum = write(read(*sum) + read(*x));
    }
}

macro_rules! kernels {
    ($width:ident, $features:literal) => {
        pub mod $width {
            use super::super::width::$width::*;
            use super::*;

            outer!(f32_blocks, f32_rows, $features, f32, load_ps, set1_ps, add_ps, castps_si);
            outer!(f64_blocks, f64_rows, $features, f64, load_pd, set1_pd, add_pd, castpd_si);
        }
    };
}

at_each_width!(kernels);
