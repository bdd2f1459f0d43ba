//! Products: full, and saturating.

use super::{clamp, constant, held, magnitude, negate_if, widen};
use crate::DType::U64;
use crate::{DType, Expr, Lets};

/// The product of two `U64` in 2 limbs.
pub fn multiply(lets: &mut Lets, a: &Expr, b: &Expr) -> Vec<Expr> {
    let [a, b] = [held(lets, a), held(lets, b)];
    vec![lets.bind(a.clone().mul(b.clone())), lets.bind(a.mul_high(b))]
}

/// The square of an integer of any type, unsigned, in 2 limbs.
///
/// The square of -2^63 is 2^126.
///
/// # Panics
/// If `x` is no integer.
pub fn square(lets: &mut Lets, x: &Expr) -> Vec<Expr> {
    let (_, size) = absolute(lets, x);
    multiply(lets, &size, &size)
}

/// The sign of an integer of any type, 1 below zero and else 0, and its magnitude, both `U64`.
fn absolute(lets: &mut Lets, x: &Expr) -> (Expr, Expr) {
    let limbs = widen(lets, x, 1);
    if !x.dtype().is_signed() {
        return (constant(0), limbs[0].clone());
    }
    let (negative, size) = magnitude(lets, &limbs);
    (negative.cast(U64), size[0].clone())
}

/// The lift of a saturating product: sign (0 or 1) and magnitude, both `U64`, of an integer of any
/// type. The identity element is (0, 1).
///
/// # Panics
/// If `x` is no integer.
pub fn saturating_of(lets: &mut Lets, x: &Expr) -> Vec<Expr> {
    let (sign, size) = absolute(lets, x);
    vec![sign, size]
}

/// The combine of a saturating product: signs and magnitudes, as [`saturating_of`] gives them.
///
/// The magnitude is the true product's, or 2^64 - 1 if that is greater: there it stays until a factor is
/// zero, which makes it zero. So the result does not depend on the order of the factors. 5 operations.
pub fn saturating_product(lets: &mut Lets, a: [&Expr; 2], b: [&Expr; 2]) -> Vec<Expr> {
    let sign = a[0].clone().xor(b[0].clone());
    let product = multiply(lets, a[1], b[1]);
    let fits = product[1].clone().eq(constant(0));
    vec![sign, fits.select(product[0].clone(), constant(u64::MAX))]
}

/// The finish of a saturating product: the nearest value of an integer type.
///
/// # Panics
/// If `dtype` is no integer type.
pub fn saturating_clamp(lets: &mut Lets, sign: &Expr, size: &Expr, dtype: DType) -> Expr {
    let negative = sign.clone().ne(constant(0));
    let value = negate_if(lets, &negative, &[size.clone(), constant(0)]);
    clamp(lets, &value, true, dtype)
}
