//! Canonical NaNs; maximum and minimum by IEEE 754-2019.

use crate::{DType, Def, Expr, Scalar};

/// `canon.f32(x)`, `canon.f64(x)`: x, or the canonical NaN ([`Scalar::nan`]) for any NaN. Exact; 2 operations.
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn canon(dtype: DType) -> Def {
    Def::build(format!("canon.{dtype}"), &[dtype], |_, args| {
        let x = &args[0];
        vec![x.clone().is_nan().select(Scalar::nan(dtype).into(), x.clone())]
    })
}

/// `max.f32(a, b)`, `max.f64(a, b)`: the IEEE 754-2019 maximum.
///
/// NaN, the canonical one, if either is NaN; else the greater; +0 above -0. So the maximum of -inf
/// and -inf is -inf. It is [`Op::Max`](crate::Op::Max) made of comparisons:
///
/// ```text
/// m = if a < b then b else a           # both are maxps
/// k = if b < a then a else b
/// if m = k then m and k else NaN       # bitwise and
/// ```
///
/// m and k are the same number whenever a and b compare; only for zeros of two signs are they
/// different bits, and then `and` gives +0. If a or b is a NaN, m is a and k is b, which
/// are not equal. Exact; 7 operations.
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn fmax(dtype: DType) -> Def {
    Def::build(format!("max.{dtype}"), &[dtype, dtype], |lets, args| {
        let [a, b] = [&args[0], &args[1]];
        let m = lets.bind(a.clone().lt(b.clone()).select(b.clone(), a.clone()));
        let k = lets.bind(b.clone().lt(a.clone()).select(a.clone(), b.clone()));
        vec![join(m, k, Expr::and)]
    })
}

/// `min.f32(a, b)`, `min.f64(a, b)`: the IEEE 754-2019 minimum.
///
/// NaN, the canonical one, if either is NaN; else the lesser; -0 below +0. As [`fmax`], with `or`
/// for the zeros:
///
/// ```text
/// m = if a < b then a else b           # both are minps
/// k = if b < a then b else a
/// if m = k then m or k else NaN        # bitwise or
/// ```
///
/// Exact; 7 operations.
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn fmin(dtype: DType) -> Def {
    Def::build(format!("min.{dtype}"), &[dtype, dtype], |lets, args| {
        let [a, b] = [&args[0], &args[1]];
        let m = lets.bind(a.clone().lt(b.clone()).select(a.clone(), b.clone()));
        let k = lets.bind(b.clone().lt(a.clone()).select(b.clone(), a.clone()));
        vec![join(m, k, Expr::or)]
    })
}

/// `if m = k then both(m, k) else NaN`.
fn join(m: Expr, k: Expr, both: fn(Expr, Expr) -> Expr) -> Expr {
    let dtype = m.dtype();
    let bits = both(m.clone().bits(dtype.unsigned()), k.clone().bits(dtype.unsigned()));
    m.eq(k).select(bits.bits(dtype), Scalar::nan(dtype).into())
}
