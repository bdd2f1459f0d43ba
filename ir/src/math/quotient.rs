//! Divisions of many numbers by one, through its reciprocal.
//!
//! Let `y` be `1 / b`, rounded once, and `q = a y`, `r = b q - a`, `q' = q - r y`, of which the last two are `fma`. Then
//! `q'` is `a / b`, rounded once: `q` is at most 1.5 units in the last place off, so that `r y` corrects it to within
//! less than the distance of a quotient from the middle between two numbers (Markstein, "Computation of elementary
//! functions on the IBM RISC System/6000 processor", 1990). No step may leave the range of normal numbers:
//!
//! - `b` lies in the [range] of [`reciprocal`], which gives a NaN for others;
//! - `|a|` is 0 or at least [`least`]. For a larger `a` than the quotient has room for, `q'` is a NaN.
//!
//! So a vector of quotients is right if none of them is a NaN and no `a` is small but not 0. The sign of 0 is that of
//! `a`, since `b` is positive and `r` is +0 there.

use crate::{DType, Def, Expr, Scalar};

/// The greatest power of two by which [`reciprocal`] divides; the least is one over it.
fn power(dtype: DType) -> i32 {
    if dtype == DType::F32 { 24 } else { 200 }
}

/// The numbers whose [`reciprocal`] is no NaN: from the first to the second.
pub fn range(dtype: DType) -> [f64; 2] {
    [-power(dtype), power(dtype)].map(|n| 2f64.powi(n))
}

/// The least numerator but 0: quotients of it and what is exact beside them are normal numbers.
pub fn least(dtype: DType) -> f64 {
    if dtype == DType::F32 { 2f64.powi(-101) } else { 2f64.powi(-700) }
}

/// The definition of `1 / b` for [`Op::DivBy`](crate::Op::DivBy); a NaN if `b` lies outside the [range].
///
/// ```
/// use cranefold_ir::{DType, Scalar, math};
///
/// let def = math::reciprocal(DType::F32);
/// let of = |b: f32| def.eval(&[Scalar::f32(b)])[0];
/// assert_eq!(of(4.0), Scalar::f32(0.25));
/// assert!(of(1e-20).as_f64().is_nan() && of(-4.0).as_f64().is_nan());
/// ```
pub fn reciprocal(dtype: DType) -> Def {
    let [least, most] = range(dtype).map(|x| Expr::Const(Scalar::float(dtype, x)));
    Def::build("reciprocal", &[dtype], |_, args| {
        let b = args[0].clone();
        let fits = least.le(b.clone()).and(b.clone().le(most));
        vec![fits.select(b.float(1.0).div(b), Expr::Const(Scalar::nan(dtype)))]
    })
}
