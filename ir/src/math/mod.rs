//! Arithmetic beyond the element operations, as definitions.
//!
//! Each function builds the [`Def`] of one function for given types. The definitions
//! are straight sequences of element operations: no branch, no table, no call. Every executor
//! evaluates the same sequence, so their results have the same bits. Errors are in ulps of the
//! result, measured by `ir/tests/math`.

use crate::{DType, Def, Expr};

mod exp;
mod half;
pub mod limbs;
mod log;
mod minmax;
mod pow;
pub mod scale;

pub use exp::{exp, exp_below};
pub use half::{
    bf16_from_f32, bf16_from_f64, f16_from_f32, f16_from_f64, f32_from_bf16, f32_from_f16, f64_from_bf16, f64_from_f16,
};
pub use log::log;
pub use minmax::{canon, fmax, fmin};
pub use pow::{pow, pow_int};
pub use scale::{scale, scale_down};

/// The definition of a conversion from or to a 16-bit float; `None` for other conversions, and for
/// integers, which go through a wider float.
pub fn half_conversion(to: DType, from: DType) -> Option<Def> {
    use DType::{Bf16, F16, F32, F64};
    match (to, from) {
        (F32, F16) => Some(f32_from_f16()),
        (F32, Bf16) => Some(f32_from_bf16()),
        (F64, F16) => Some(f64_from_f16()),
        (F64, Bf16) => Some(f64_from_bf16()),
        (F16, F32) => Some(f16_from_f32()),
        (F16, F64) => Some(f16_from_f64()),
        (Bf16, F32) => Some(bf16_from_f32()),
        (Bf16, F64) => Some(bf16_from_f64()),
        _ => None,
    }
}

/// The polynomial with these coefficients, highest power first, at `x`: one fma for each but the first.
fn horner(x: &Expr, coefficients: &[f64]) -> Expr {
    let (first, rest) = coefficients.split_first().expect("a coefficient");
    rest.iter().fold(x.float(*first), |sum, &c| sum.fma(x.clone(), x.float(c)))
}
