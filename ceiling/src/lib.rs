//! Hand-written vector loops that reduce memory or write rows, by operation and vector width. Their speed is the ceiling that
//! generated kernels are compared with.
//!
//! A [`HandLoop`] is one loop over one width. Loops of the same [`what`](HandLoop::what) and [`bits`](HandLoop::bits)
//! but another [`form`](HandLoop::form) compute the same result in other ways; the fastest of them is the ceiling.
//!
//! | operation | formula | element types |
//! | --- | --- | --- |
//! | `sum` | sum x, in f32 for 16-bit floats | f32, f64, i32 (modulo 2^32), bf16, f16, i8, u8 |
//! | `sum vpdpbusd` | the same by that instruction, modulo 2^32 | i8 |
//! | `prod`, `l1`, `sum_squares` | product of x, sum \|x\|, sum x^2 | f32, f64 |
//! | `max` | greatest x where none is NaN, of zeros either | f32, f64 |
//! | `max exact` | IEEE 754-2019's maximum: NaN if there is one, +0 above -0 | f32, f64 |
//! | `log_sum_exp` | log(sum exp x), exp within 0.9 ulp, for all inputs | f32 |
//! | `log_sum_exp rough` | the same where x is within 87 of the greatest, exp to some 6 digits | f32 |
//! | `var` | sum (x - mean)^2 / n, in two passes over all | f32 |
//! | `var in blocks` | the same, in two passes over each 4 KB | f32 |
//! | `outer sum` | sum x of each column of a matrix | f32, f64 |
//!
//! A [`RowLoop`] writes each row of a matrix of f32, normalised over the row:
//!
//! | rows | formula | visits of a row |
//! | --- | --- | --- |
//! | `softmax` | e / sum e, e = exp(x - max x), exp within 0.9 ulp | 3 |
//! | `layer_norm` | (x - mean) / sqrt(var + 1e-5) * w + b by one reciprocal, var in a visit of its own | 3 |
//! | `rms_norm` | x / sqrt(mean x^2 + 1e-6) * w by one reciprocal | 2 |
//! | `int8` | x * (127 / max \|x\|), rounded to the nearest even integer and saturated | 2 |
//!
//! Loops are in `std::arch` and keep as many accumulators as hide the latency of the operation (eight for floats).
//! They read their bytes at any alignment, and take vectors that are not whole padded by the identity element. There
//! are loops for x86-64 with AVX2, FMA and F16C (128 and 256 bits) and with AVX-512 F, BW, DQ and VL (512 bits); on
//! other machines the table is empty.
//!
//! Sums are not exact: a loop adds in the order that suits it. `exact` in a name holds for every input.

mod rows;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use rows::{RowLoop, row_loops};

/// A loop.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there are no loops"))]
enum Loop {
    /// One result of all elements.
    Whole(unsafe fn(&[u8]) -> f64),
    /// A result for each column, written.
    Columns(unsafe fn(&[u8], &mut [u8]) -> f64),
}

/// A loop over vectors of one width, which this machine can run.
///
/// ```
/// let ones = [1.0f32; 100].map(f32::to_le_bytes);
/// for hand in cranefold_ceiling::loops().iter().filter(|hand| hand.what() == "f32 sum") {
///     assert_eq!(hand.run(ones.as_flattened(), &mut []), 100.0);
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HandLoop {
    what: &'static str,
    form: &'static str,
    bits: u32,
    code: Loop,
}

/// The loops that this machine can run, in the order of the printed table.
pub fn loops() -> Vec<HandLoop> {
    #[cfg(target_arch = "x86_64")]
    return x86::loops();
    #[cfg(not(target_arch = "x86_64"))]
    vec![]
}

impl HandLoop {
    /// The element type and the operation, as in `f32 sum`.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// The method of a loop that has alternatives, as in `row streaming`; else empty.
    pub fn form(&self) -> &'static str {
        self.form
    }

    /// Bits of a vector.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The element type of the bytes: `f32`, `f64`, `f16`, `bf16`, `i8`, `u8` or `i32`.
    pub fn input(&self) -> &'static str {
        self.what.split(' ').next().expect("a word")
    }

    /// Returns true if the loop reduces columns.
    pub fn takes_columns(&self) -> bool {
        matches!(self.code, Loop::Columns(_))
    }

    /// The loop's name: operation, form and bits, as in `f32 outer sum, row streaming 512`.
    pub fn name(&self) -> String {
        let form = if self.form.is_empty() { String::new() } else { format!(", {}", self.form) };
        format!("{}{form} {}", self.what, self.bits)
    }

    /// Reduces elements that lie one after the other; bytes beyond the last whole element are left out.
    ///
    /// A loop that [takes columns](HandLoop::takes_columns) reads a matrix whose rows are as long as `columns`, writes
    /// the sum of each column there, and gives the first; rows that are not whole are left out. Others leave `columns`
    /// alone.
    ///
    /// # Panics
    /// If the loop takes columns and there are none.
    #[inline]
    pub fn run(&self, bytes: &[u8], columns: &mut [u8]) -> f64 {
        // SAFETY: a loop is made by `x86::loops` alone, where the features of its loop were found on this machine.
        #[allow(unsafe_code, reason = "the door to code for features that the compiler was not told of")]
        unsafe {
            match self.code {
                Loop::Whole(code) => code(bytes),
                Loop::Columns(code) => code(bytes, columns),
            }
        }
    }
}
