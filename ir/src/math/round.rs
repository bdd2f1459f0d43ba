//! Roundings to an integer value, by the operation `nearest`, and the sign.

use crate::{DType, Def, Expr, Lets, Scalar};

/// `floor.f32(x)`, `floor.f64(x)`: the greatest integer value that is at most x.
///
/// With n = x rounded to nearest,
///
/// ```text
/// floor x = x < n ? n - 1 : n
/// ```
///
/// It is exact, in 4 operations. floor(-0) = -0, floor(+-inf) = +-inf, floor(NaN) is a NaN.
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn floor(dtype: DType) -> Def {
    of("floor", dtype, below)
}

/// `ceil.f32(x)`, `ceil.f64(x)`: the least integer value that is at least x.
///
/// ```text
/// ceil x = -floor(-x)
/// ```
///
/// It is exact, in 6 operations. A result of 0 has the sign of x: ceil(-0.5) = -0. ceil(+-inf) = +-inf,
/// ceil(NaN) is a NaN.
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn ceil(dtype: DType) -> Def {
    of("ceil", dtype, |lets, x| {
        let x = lets.bind(x.neg());
        below(lets, x).neg()
    })
}

/// `trunc.f32(x)`, `trunc.f64(x)`: x without its fraction.
///
/// ```text
/// trunc x = floor |x|, with the sign of x
/// ```
///
/// It is exact, in 7 operations. trunc(-0.5) = -0, trunc(+-inf) = +-inf, trunc(NaN) is a NaN.
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn trunc(dtype: DType) -> Def {
    of("trunc", dtype, |lets, x| {
        let a = lets.bind(x.clone().abs());
        let size = below(lets, a);
        super::with_sign(&x, size)
    })
}

/// `sign.f32(x)` and of the other types of numbers: 1 above zero, -1 below, else x, a zero or a NaN.
///
/// It has 4 operations; 2 for an unsigned x.
///
/// # Panics
/// If `dtype` is no type of numbers with operations.
pub fn sign(dtype: DType) -> Def {
    assert!(dtype.is_int() || matches!(dtype, DType::F32 | DType::F64), "no sign of {dtype}");
    Def::build(format!("sign.{dtype}"), &[dtype], |_, args| {
        let x = args[0].clone();
        let number = |v: i128| Expr::from(Scalar::int(dtype, v));
        let above = number(0).lt(x.clone());
        let unsigned = dtype.is_int() && !dtype.is_signed();
        let others = if unsigned { x.clone() } else { x.clone().lt(number(0)).select(number(-1), x.clone()) };
        vec![above.select(number(1), others)]
    })
}

fn of(name: &str, dtype: DType, body: impl FnOnce(&mut Lets, Expr) -> Expr) -> Def {
    assert!(matches!(dtype, DType::F32 | DType::F64), "no {name} of {dtype}");
    Def::build(format!("{name}.{dtype}"), &[dtype], |lets, args| vec![body(lets, args[0].clone())])
}

/// The greatest integer value that is at most x.
fn below(lets: &mut Lets, x: Expr) -> Expr {
    let n = lets.bind(x.clone().nearest());
    x.lt(n.clone()).select(n.clone().sub(n.float(1.0)), n)
}
