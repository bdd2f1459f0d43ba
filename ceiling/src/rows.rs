//! Loops that write rows.

/// A loop that writes each row of a matrix of f32, over vectors of one width, which this machine can run.
///
/// ```
/// let x = [1.0f32, 2.0, 3.0, 6.0].map(f32::to_le_bytes);
/// let ones = [1.0f32; 4].map(f32::to_le_bytes);
/// for rows in cranefold_ceiling::row_loops().iter().filter(|rows| rows.what() == "softmax") {
///     let mut out = [[0; 4]; 4];
///     rows.run(x.as_flattened(), [ones.as_flattened(), ones.as_flattened()], out.as_flattened_mut());
///     let sum: f32 = out.into_iter().map(f32::from_le_bytes).sum();
///     assert!((sum - 1.0).abs() < 1e-6);
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RowLoop {
    what: &'static str,
    bits: u32,
    code: Code,
}

/// A loop over the rows, the weights of a row, and where the results go.
type Code = unsafe fn(&[u8], [&[u8]; 2], &mut [u8]);

/// The loops over rows that this machine can run.
pub fn row_loops() -> Vec<RowLoop> {
    #[cfg(target_arch = "x86_64")]
    return crate::x86::row_loops();
    #[cfg(not(target_arch = "x86_64"))]
    vec![]
}

impl RowLoop {
    #[cfg(target_arch = "x86_64")]
    pub(crate) const fn new(what: &'static str, bits: u32, code: Code) -> RowLoop {
        RowLoop { what, bits, code }
    }

    /// The rows: `softmax`, `layer_norm`, `rms_norm` or `int8`.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Bits of a vector.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Writes the rows of `x`, each as long as the first of `weights`, which are w and b; formulas without weights ignore
    /// their values. `int8` writes a byte for each element, others four.
    ///
    /// # Panics
    /// If both weights are not of one length, above 0, or `x` and `out` do not hold as many whole rows.
    #[inline]
    pub fn run(&self, x: &[u8], weights: [&[u8]; 2], out: &mut [u8]) {
        let (row, result) = (weights[0].len(), if self.what == "int8" { 1 } else { 4 });
        assert!(row > 0 && row.is_multiple_of(4) && weights[1].len() == row, "weights of {row} bytes");
        assert!(x.len().is_multiple_of(row) && x.len() / 4 * result == out.len(), "{} bytes, {}", x.len(), out.len());
        // SAFETY: a loop is made by `x86::row_loops` alone, where the features of its loop were found on this machine.
        #[allow(unsafe_code, reason = "the door to code for features that the compiler was not told of")]
        unsafe {
            (self.code)(x, weights, out)
        }
    }
}
