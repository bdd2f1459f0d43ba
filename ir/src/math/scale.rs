//! Products with powers of two, rounded once.
//!
//! The definitions make a power of two out of the low bits of a sum: n and a number so large that the last place of the
//! sum is worth 1, the exponent biases added to it. The caller has often that sum, for n is the sum less the number:
//! [`offset`] is the number, and [`scale_by`] and [`scale_down_by`] take the sum in place of n.

use crate::{DType, Def, Expr, Op, Scalar};

/// The exponent range of one of the two types.
struct Range {
    bias: f64,
    /// 1.5 * 2^fraction_bits.
    one: f64,
    fraction_bits: i128,
    /// The power of two by which `scale_down` keeps its first product normal.
    up: i32,
}

const F32: Range = Range { bias: 127.0, one: 12_582_912.0, fraction_bits: 23, up: 64 };
const F64: Range = Range { bias: 1023.0, one: 6_755_399_441_055_744.0, fraction_bits: 52, up: 512 };

fn range(dtype: DType) -> Range {
    match dtype {
        DType::F32 => F32,
        DType::F64 => F64,
        _ => panic!("no scale of {dtype}"),
    }
}

/// The number that the definition of [`Op::Scale`] or [`Op::ScaleDown`] adds to n.
///
/// Where n = t - offset(op, dtype), rounded, is in the range that the operation takes, n + offset(op, dtype) = t: the
/// difference is exact, as t is between half and twice the number.
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`, or for another operation.
pub fn offset(op: Op, dtype: DType) -> Scalar {
    let c = range(dtype);
    let biases = match op {
        Op::Scale => 2.0 * c.bias,
        Op::ScaleDown => c.bias + f64::from(c.up),
        _ => panic!("`{}` is no product with a power of two", op.name()),
    };
    Scalar::float(dtype, c.one + biases)
}

/// `scale.f32(a, n)`, `scale.f64(a, n)`: [`Op::Scale`], made of two products.
///
/// ```text
/// a s1 s2,    s1 = 2^floor(n / 2),  s2 = 2^(n - floor(n / 2))
/// ```
///
/// Both powers are normal and the first product is exact, so that only the second one rounds. A NaN passes. 7 operations.
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn scale(dtype: DType) -> Def {
    Def::build(format!("scale.{dtype}"), &[dtype, dtype], |lets, args| {
        let t = args[1].clone().add(offset(Op::Scale, dtype).into());
        lets.splice(&scale_by(dtype), &[args[0].clone(), t])
    })
}

/// `scale_by.f32(a, t)`, `scale_by.f64(a, t)`: [`scale`], given n + [`offset`]; 6 operations.
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn scale_by(dtype: DType) -> Def {
    let c = range(dtype);
    Def::build(format!("scale_by.{dtype}"), &[dtype, dtype], |lets, args| {
        let i = lets.bind(args[1].clone().bits(dtype.unsigned()));
        let half = lets.bind(i.clone().shr(i.int(1)));
        let power = |e: Expr| e.shl(i.int(c.fraction_bits)).bits(dtype);
        vec![args[0].clone().mul(power(half.clone())).mul(power(i.clone().sub(half)))]
    })
}

/// `scale_down.f32(a, n)`, `scale_down.f64(a, n)`: [`Op::ScaleDown`], made of two products.
///
/// ```text
/// a 2^(n + up) 2^-up,    up = 64 (f64: 512)
/// ```
///
/// The first product is normal and exact, so that only the second one rounds. A NaN passes. 4 operations.
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn scale_down(dtype: DType) -> Def {
    Def::build(format!("scale_down.{dtype}"), &[dtype, dtype], |lets, args| {
        let t = args[1].clone().add(offset(Op::ScaleDown, dtype).into());
        lets.splice(&scale_down_by(dtype), &[args[0].clone(), t])
    })
}

/// `scale_down_by.f32(a, t)`, `scale_down_by.f64(a, t)`: [`scale_down`], given n + [`offset`]; 3 operations.
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn scale_down_by(dtype: DType) -> Def {
    let c = range(dtype);
    Def::build(format!("scale_down_by.{dtype}"), &[dtype, dtype], |_, args| {
        let i = args[1].clone().bits(dtype.unsigned());
        let power = i.clone().shl(i.int(c.fraction_bits)).bits(dtype);
        vec![args[0].clone().mul(power).mul(args[0].float(2f64.powi(-c.up)))]
    })
}
