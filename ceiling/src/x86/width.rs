//! The instructions of each width under names without the width, so that a loop is written once.

/// Conversions between vectors and bytes, through which elements are loaded and stored.
macro_rules! bytes_of {
    ($features:literal) => {
        /// A vector from memory, at any alignment.
        #[inline]
        #[target_feature(enable = $features)]
        pub fn load(bytes: &[u8; BYTES]) -> Si {
            // SAFETY: both are `BYTES` bytes, and a vector may have any bits.
            #[allow(unsafe_code, reason = "the intrinsics that load take pointers")]
            unsafe {
                transmute::<[u8; BYTES], Si>(*bytes)
            }
        }

        /// A vector of f32 from memory.
        #[inline]
        #[target_feature(enable = $features)]
        pub fn load_ps(bytes: &[u8; BYTES]) -> Ps {
            castsi_ps(load(bytes))
        }

        /// A vector of f64 from memory.
        #[inline]
        #[target_feature(enable = $features)]
        pub fn load_pd(bytes: &[u8; BYTES]) -> Pd {
            castsi_pd(load(bytes))
        }

        /// The bytes of a vector.
        #[inline]
        #[target_feature(enable = $features)]
        pub fn bytes_of(vector: Si) -> [u8; BYTES] {
            // SAFETY: both are `BYTES` bytes, and bytes may have any bits.
            #[allow(unsafe_code, reason = "the intrinsics that store take pointers")]
            unsafe {
                transmute::<Si, [u8; BYTES]>(vector)
            }
        }

        /// The lanes of a vector.
        #[inline]
        #[target_feature(enable = $features)]
        pub fn i32s(vector: Si) -> [i32; BYTES / 4] {
            let bytes = bytes_of(vector);
            array::from_fn(|lane| i32::from_le_bytes(bytes.as_chunks().0[lane]))
        }

        /// The lanes of a vector.
        #[inline]
        #[target_feature(enable = $features)]
        pub fn i64s(vector: Si) -> [i64; BYTES / 8] {
            let bytes = bytes_of(vector);
            array::from_fn(|lane| i64::from_le_bytes(bytes.as_chunks().0[lane]))
        }

        /// The lanes of a vector.
        #[inline]
        #[target_feature(enable = $features)]
        pub fn f32s(vector: Ps) -> [f32; BYTES / 4] {
            let bytes = bytes_of(castps_si(vector));
            array::from_fn(|lane| f32::from_le_bytes(bytes.as_chunks().0[lane]))
        }

        /// The lanes of a vector.
        #[inline]
        #[target_feature(enable = $features)]
        pub fn f64s(vector: Pd) -> [f64; BYTES / 8] {
            let bytes = bytes_of(castpd_si(vector));
            array::from_fn(|lane| f64::from_le_bytes(bytes.as_chunks().0[lane]))
        }
    };
}

/// 128 bits: SSE, AVX and FMA, in the encodings of AVX.
pub mod w128 {
    pub use std::arch::x86_64::{
        __m128 as Ps, __m128d as Pd, __m128i as Si, _mm_add_epi32 as add_epi32, _mm_add_epi64 as add_epi64,
        _mm_add_pd as add_pd, _mm_add_ps as add_ps, _mm_and_pd as and_pd, _mm_and_ps as and_ps,
        _mm_and_si128 as and_si, _mm_castpd_si128 as castpd_si, _mm_castps_si128 as castps_si,
        _mm_castsi128_pd as castsi_pd, _mm_castsi128_ps as castsi_ps, _mm_cmp_pd as cmp_pd, _mm_cmp_ps as cmp_ps,
        _mm_cvtepi32_ps as cvtepi32_ps, _mm_cvtps_epi32 as cvtps_epi32, _mm_dpbusd_epi32 as dpbusd,
        _mm_fmadd_ps as fmadd_ps, _mm_fnmadd_ps as fnmadd_ps, _mm_max_epi32 as max_epi32, _mm_max_epu32 as max_epu32,
        _mm_max_pd as max_pd, _mm_max_ps as max_ps, _mm_min_epi32 as min_epi32, _mm_mul_pd as mul_pd,
        _mm_mul_ps as mul_ps, _mm_or_pd as or_pd, _mm_or_ps as or_ps, _mm_sad_epu8 as sad_epu8,
        _mm_set1_epi8 as set1_epi8, _mm_set1_epi32 as set1_epi32, _mm_set1_pd as set1_pd, _mm_set1_ps as set1_ps,
        _mm_setzero_si128 as zero, _mm_slli_epi32 as slli_epi32, _mm_sub_ps as sub_ps, _mm_xor_si128 as xor_si,
    };
    use std::arch::x86_64::{_mm_cvtph_ps, _mm_cvtsi64_si128, _mm_cvtsi128_si32, _mm_packs_epi16, _mm_packs_epi32};
    use std::array;
    use std::mem::transmute;

    /// Bytes of a vector.
    pub const BYTES: usize = 16;

    bytes_of!("avx2");

    /// Halves from memory, widened.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub fn load_halves(bytes: &[u8; BYTES / 2]) -> Ps {
        _mm_cvtph_ps(_mm_cvtsi64_si128(i64::from_le_bytes(*bytes)))
    }

    /// Lanes that fit a byte, as bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn low_bytes(vector: Si) -> [u8; BYTES / 4] {
        let halves = _mm_packs_epi32(vector, vector);
        _mm_cvtsi128_si32(_mm_packs_epi16(halves, halves)).to_le_bytes()
    }
}

/// 256 bits: AVX2 and FMA.
pub mod w256 {
    use super::w128;
    pub use std::arch::x86_64::{
        __m256 as Ps, __m256d as Pd, __m256i as Si, _mm256_add_epi32 as add_epi32, _mm256_add_epi64 as add_epi64,
        _mm256_add_pd as add_pd, _mm256_add_ps as add_ps, _mm256_and_pd as and_pd, _mm256_and_ps as and_ps,
        _mm256_and_si256 as and_si, _mm256_castpd_si256 as castpd_si, _mm256_castps_si256 as castps_si,
        _mm256_castsi256_pd as castsi_pd, _mm256_castsi256_ps as castsi_ps, _mm256_cmp_pd as cmp_pd,
        _mm256_cmp_ps as cmp_ps, _mm256_cvtepi32_ps as cvtepi32_ps, _mm256_cvtps_epi32 as cvtps_epi32,
        _mm256_dpbusd_epi32 as dpbusd, _mm256_fmadd_ps as fmadd_ps, _mm256_fnmadd_ps as fnmadd_ps,
        _mm256_max_epi32 as max_epi32, _mm256_max_epu32 as max_epu32, _mm256_max_pd as max_pd, _mm256_max_ps as max_ps,
        _mm256_min_epi32 as min_epi32, _mm256_mul_pd as mul_pd, _mm256_mul_ps as mul_ps, _mm256_or_pd as or_pd,
        _mm256_or_ps as or_ps, _mm256_sad_epu8 as sad_epu8, _mm256_set1_epi8 as set1_epi8,
        _mm256_set1_epi32 as set1_epi32, _mm256_set1_pd as set1_pd, _mm256_set1_ps as set1_ps,
        _mm256_setzero_si256 as zero, _mm256_slli_epi32 as slli_epi32, _mm256_sub_ps as sub_ps,
        _mm256_xor_si256 as xor_si,
    };
    use std::arch::x86_64::{
        _mm_cvtsi128_si64, _mm_packs_epi16, _mm_packs_epi32, _mm256_castsi256_si128, _mm256_cvtph_ps,
        _mm256_extracti128_si256,
    };
    use std::array;
    use std::mem::transmute;

    /// Bytes of a vector.
    pub const BYTES: usize = 32;

    bytes_of!("avx2");

    /// Halves from memory, widened.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub fn load_halves(bytes: &[u8; BYTES / 2]) -> Ps {
        _mm256_cvtph_ps(w128::load(bytes))
    }

    /// Lanes that fit a byte, as bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn low_bytes(vector: Si) -> [u8; BYTES / 4] {
        let halves = _mm_packs_epi32(_mm256_castsi256_si128(vector), _mm256_extracti128_si256::<1>(vector));
        _mm_cvtsi128_si64(_mm_packs_epi16(halves, halves)).to_le_bytes()
    }
}

/// 512 bits: AVX-512.
pub mod w512 {
    use super::{w128, w256};
    pub use std::arch::x86_64::{
        __m512 as Ps, __m512d as Pd, __m512i as Si, _mm512_add_epi32 as add_epi32, _mm512_add_epi64 as add_epi64,
        _mm512_add_pd as add_pd, _mm512_add_ps as add_ps, _mm512_and_pd as and_pd, _mm512_and_ps as and_ps,
        _mm512_and_si512 as and_si, _mm512_castpd_si512 as castpd_si, _mm512_castps_si512 as castps_si,
        _mm512_castsi512_pd as castsi_pd, _mm512_castsi512_ps as castsi_ps, _mm512_cvtepi32_ps as cvtepi32_ps,
        _mm512_cvtps_epi32 as cvtps_epi32, _mm512_dpbusd_epi32 as dpbusd, _mm512_fmadd_ps as fmadd_ps,
        _mm512_fnmadd_ps as fnmadd_ps, _mm512_max_epi32 as max_epi32, _mm512_max_epu32 as max_epu32,
        _mm512_max_pd as max_pd, _mm512_max_ps as max_ps, _mm512_min_epi32 as min_epi32, _mm512_mul_pd as mul_pd,
        _mm512_mul_ps as mul_ps, _mm512_sad_epu8 as sad_epu8, _mm512_set1_epi8 as set1_epi8,
        _mm512_set1_epi32 as set1_epi32, _mm512_set1_pd as set1_pd, _mm512_set1_ps as set1_ps,
        _mm512_setzero_si512 as zero, _mm512_slli_epi32 as slli_epi32, _mm512_sub_ps as sub_ps,
        _mm512_xor_si512 as xor_si,
    };
    use std::arch::x86_64::{_mm512_cvtepi32_epi8, _mm512_cvtph_ps};
    use std::array;
    use std::mem::transmute;

    /// Bytes of a vector.
    pub const BYTES: usize = 64;

    bytes_of!("avx512f");

    /// Halves from memory, widened.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn load_halves(bytes: &[u8; BYTES / 2]) -> Ps {
        _mm512_cvtph_ps(w256::load(bytes))
    }

    /// Lanes that fit a byte, as bytes.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn low_bytes(vector: Si) -> [u8; BYTES / 4] {
        w128::bytes_of(_mm512_cvtepi32_epi8(vector))
    }
}
