//! Products with powers of two, rounded once.

use crate::{DType, Def, Expr};

/// The exponent range of one of the two types.
struct Range {
    bias: f64,
    /// 1.5 * 2^fraction_bits: a sum of it and a small integer has the integer in its low bits.
    magic: f64,
    fraction_bits: i128,
    /// The power of two by which `scale_down` keeps its first product normal.
    up: i32,
}

const F32: Range = Range { bias: 127.0, magic: 12_582_912.0, fraction_bits: 23, up: 64 };
const F64: Range = Range { bias: 1023.0, magic: 6_755_399_441_055_744.0, fraction_bits: 52, up: 512 };

fn range(dtype: DType) -> Range {
    match dtype {
        DType::F32 => F32,
        DType::F64 => F64,
        _ => panic!("no scale of {dtype}"),
    }
}

/// `scale.f32(a, n)`, `scale.f64(a, n)`: [`Op::Scale`](crate::Op::Scale), made of two products.
///
/// ```text
/// a s1 s2,    s1 = 2^floor(n / 2),  s2 = 2^(n - floor(n / 2))
/// ```
///
/// The low bits of n + 1.5 * 2^fraction_bits + 2 * bias are the biased exponents of both powers together. Both are
/// normal and the first product is exact, so that only the second one rounds. A NaN passes. 7 operations.
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn scale(dtype: DType) -> Def {
    let c = range(dtype);
    Def::build(format!("scale.{dtype}"), &[dtype, dtype], |lets, args| {
        let [a, n] = [&args[0], &args[1]];
        let t = n.clone().add(n.float(c.magic + 2.0 * c.bias));
        let i = lets.bind(t.bits(dtype.unsigned()));
        let half = lets.bind(i.clone().shr(i.int(1)));
        let power = |e: Expr| e.shl(i.int(c.fraction_bits)).bits(dtype);
        vec![a.clone().mul(power(half.clone())).mul(power(i.clone().sub(half)))]
    })
}

/// `scale_down.f32(a, n)`, `scale_down.f64(a, n)`: [`Op::ScaleDown`](crate::Op::ScaleDown), made of two products.
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
    let c = range(dtype);
    Def::build(format!("scale_down.{dtype}"), &[dtype, dtype], |_, args| {
        let [a, n] = [&args[0], &args[1]];
        let t = n.clone().add(n.float(c.magic + c.bias + f64::from(c.up)));
        let i = t.bits(dtype.unsigned());
        let power = i.clone().shl(i.int(c.fraction_bits)).bits(dtype);
        vec![a.clone().mul(power).mul(a.float(2f64.powi(-c.up)))]
    })
}
