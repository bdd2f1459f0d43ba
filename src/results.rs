//! The version of the bits of results.

/// The version of the rules that decide a result's bits: the reduction tree, the functions of
/// [`math`](cranefold_ir::math), and the text of each normalisation. Results of different versions may differ in
/// their last bits. Signatures, states of partial results and headers of objects carry it.
pub const RESULTS_VERSION: u32 = 4;
