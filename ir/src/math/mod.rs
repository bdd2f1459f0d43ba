//! Arithmetic beyond the element operations, as definitions.
//!
//! Each function builds the [`Def`] of one function for given types. The definitions
//! are straight sequences of element operations: no branch, no table, no call. Every executor
//! evaluates the same sequence, so their results have the same bits. Errors are in ulps of the
//! result, measured by `ir/tests/math`.

use crate::{DType, Def, Expr, Lets};

mod by_constant;
mod convert;
mod erf;
mod exp;
mod expm1;
mod half;
pub mod limbs;
mod log;
mod log1p;
mod minmax;
mod pow;
pub mod quotient;
mod round;
pub mod scale;
mod tanh;

pub use by_constant::quotient_of_i16;
pub use convert::integer_conversion;
pub use erf::erf;
pub use exp::{exp, exp_below};
pub use expm1::expm1;
pub use half::{
    bf16_from_f32, bf16_from_f64, f16_from_f32, f16_from_f64, f32_from_bf16, f32_from_f16, f32_through_bf16,
    f64_from_bf16, f64_from_f16,
};
pub use log::log;
pub use log1p::log1p;
pub use minmax::{canon, fmax, fmin};
pub use pow::{pow, pow_int};
pub use quotient::reciprocal;
pub use round::{ceil, floor, sign, trunc};
pub use scale::{scale, scale_down};
pub use tanh::tanh;

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

/// The value, which is not negative, with the sign of x: 2 operations.
fn with_sign(x: &Expr, value: Expr) -> Expr {
    let dtype = x.dtype();
    let bits = x.clone().bits(dtype.unsigned());
    let sign = bits.clone().and(bits.int(1 << (dtype.bits() - 1)));
    value.bits(dtype.unsigned()).or(sign).bits(dtype)
}

/// n = x * `scale` rounded to an integer, and 2^(n + `shift`), where that is a normal number: 3 operations.
///
/// n comes out of the low bits of n + 1.5 * 2^fraction_bits, to which the exponent bias is added so that those bits are
/// the exponent field of the power.
fn power_of_two(lets: &mut Lets, x: &Expr, scale: f64, shift: i128) -> [Expr; 2] {
    let dtype = x.dtype();
    let (fraction_bits, bias) = if dtype == DType::F32 { (23, 127) } else { (52, 1023) };
    let magic = x.float(1.5 * 2f64.powi(fraction_bits) + (bias + shift) as f64);
    let t = lets.bind(x.clone().fma(x.float(scale), magic.clone()));
    let power = t.clone().bits(dtype.unsigned());
    let power = power.clone().shl(power.int(fraction_bits.into())).bits(dtype);
    [lets.bind(t.sub(magic)), lets.bind(power)]
}
