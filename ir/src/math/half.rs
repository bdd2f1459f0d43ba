//! Conversions between the 16-bit floats and the others, in integer operations.
//!
//! A definition is named by its result and its source: `f32.f16` is f32 of an f16. All are right
//! for every input: infinities, NaNs and subnormals. To a narrower type they round once, to
//! nearest, ties to even, as [`Op::Cast`](crate::Op::Cast) means, and give the canonical NaN.

use crate::{DType, Def, Expr, Scalar};
use DType::*;

/// `f32.f16(h)`: exact; a NaN gives a NaN with the payload moved up. 9 operations.
///
/// Moved to their place in an f32, the bits of `h` are the number h * 2^-112, also where h is
/// subnormal; the exponent field of an infinity or NaN comes out of the product as 2^16 and is
/// filled up.
pub fn f32_from_f16() -> Def {
    Def::build("f32.f16", &[F16], |lets, args| {
        let v = widen_f16(lets, &args[0]);
        vec![v]
    })
}

/// `f32.bf16(h)`: exact; the bits moved up by 16. 2 operations.
pub fn f32_from_bf16() -> Def {
    Def::build("f32.bf16", &[Bf16], |_, args| vec![widen_bf16(&args[0])])
}

/// `f64.f16(h)`: exact, through f32. 10 operations.
pub fn f64_from_f16() -> Def {
    Def::build("f64.f16", &[F16], |lets, args| vec![widen_f16(lets, &args[0]).cast(F64)])
}

/// `f64.bf16(h)`: exact, through f32. 3 operations.
pub fn f64_from_bf16() -> Def {
    Def::build("f64.bf16", &[Bf16], |_, args| vec![widen_bf16(&args[0]).cast(F64)])
}

/// `f16.f32(x)`: rounded to nearest, ties to even; from 65520 on infinite. 18 operations.
pub fn f16_from_f32() -> Def {
    narrow(F16, F32)
}

/// `f16.f64(x)`: as [`f16_from_f32`], rounded once and not through f32. 18 operations.
pub fn f16_from_f64() -> Def {
    narrow(F16, F64)
}

/// `bf16.f32(x)`: rounded to nearest, ties to even. 8 operations.
///
/// The rounding carries into the exponent, up to infinity, correctly; only a NaN is a special case.
pub fn bf16_from_f32() -> Def {
    Def::build("bf16.f32", &[F32], |lets, args| {
        let rounded = rounded_to_bf16(lets, &args[0]);
        let rounded = rounded.clone().shr(rounded.int(16));
        vec![canonical(&args[0], rounded, Bf16)]
    })
}

/// `f32.bf16(bf16.f32(x))`: rounded to the nearest bf16, in the bits of an f32. 7 operations.
pub fn f32_through_bf16() -> Def {
    Def::build("f32_through_bf16", &[F32], |lets, args| {
        let x = &args[0];
        let rounded = rounded_to_bf16(lets, x);
        let rounded = rounded.clone().and(rounded.int(0xffff_0000)).bits(F32);
        vec![x.clone().is_nan().select(Expr::Const(Scalar::nan(F32)), rounded)]
    })
}

/// The bits of an f32 whose upper half are those of the nearest bf16.
fn rounded_to_bf16(lets: &mut crate::Lets, x: &Expr) -> Expr {
    let w = lets.bind(x.clone().bits(U32));
    let odd = w.clone().shr(w.int(16)).and(w.int(1));
    w.clone().add(w.int(0x7fff)).add(odd)
}

/// `bf16.f64(x)`: as [`bf16_from_f32`], rounded once and not through f32. 18 operations.
pub fn bf16_from_f64() -> Def {
    narrow(Bf16, F64)
}

fn widen_f16(lets: &mut crate::Lets, h: &Expr) -> Expr {
    let wide = h.clone().bits(U16).cast(U32);
    // The shift of a signed value keeps the sign, and `and` clears the copies of it that it makes.
    let wide = wide.clone().shl(wide.int(16)).bits(I32);
    let placed = wide.clone().shr(wide.int(3));
    let placed = placed.clone().and(placed.int(0x8fff_e000)).bits(F32);
    let v = lets.bind(placed.clone().mul(placed.float(2f64.powi(112))));
    let filled = v.clone().bits(U32).or(Expr::from(Scalar::int(U32, 0x7f80_0000)));
    v.float(65536.0).le(v.clone().abs()).select(filled.bits(F32), v)
}

fn widen_bf16(h: &Expr) -> Expr {
    let wide = h.clone().bits(U16).cast(U32);
    wide.clone().shl(wide.int(16)).bits(F32)
}

/// The bits in the low end of `rounded` as a `to`, or the canonical NaN where `x` is a NaN.
fn canonical(x: &Expr, rounded: Expr, to: DType) -> Expr {
    let nan = rounded.int(i128::from(Scalar::nan(to).bits()));
    x.clone().is_nan().select(nan, rounded).cast(U16).bits(to)
}

/// Conversion to a narrower type: f32 to f16, f64 to f16 or bf16.
///
/// The magnitude is clamped to the least power of two that is too great, whose bits the normal case
/// turns into infinity. Where the result is normal, the exponent is rebiased and the
/// fraction rounded by adding a half of the last place kept, less one where that place is even;
/// a carry runs into the exponent. Where it is subnormal, adding a power of two whose last place
/// is worth the least `to` rounds the same way in the float addition.
fn narrow(to: DType, from: DType) -> Def {
    let bits = from.unsigned();
    let fraction = |d: DType| i128::from(d.significand_bits().expect("a float")) - 1;
    let bias = |d: DType| (1i128 << (i128::from(d.bits()) - fraction(d) - 2)) - 1;
    let drop = fraction(from) - fraction(to);
    let rebias = (bias(to) - bias(from)) << fraction(from);
    let half_less_one = (1i128 << (drop - 1)) - 1;
    let power = |n: i128| Expr::from(Scalar::float(from, 2f64.powi(n as i32)));
    let too_great = power(bias(to) + 1);
    let least_normal = power(1 - bias(to));
    // fraction(from) places above the least subnormal.
    let magic = power(fraction(from) + 1 - bias(to) - fraction(to));
    Def::build(format!("{to}.{from}"), &[from], |lets, args| {
        let x = &args[0];
        let m = lets.bind(x.clone().abs());
        let m = lets.bind(m.clone().lt(too_great.clone()).select(m, too_great));
        let a = lets.bind(m.clone().bits(bits));
        let odd = a.clone().shr(a.int(drop)).and(a.int(1));
        let normal = a.clone().add(a.int(rebias + half_less_one)).add(odd).shr(a.int(drop));
        let subnormal = m.clone().add(magic.clone()).bits(bits).sub(magic.bits(bits));
        let rounded = m.lt(least_normal).select(subnormal, normal);
        let w = x.clone().bits(bits);
        let sign = w.clone().shr(w.int(i128::from(from.bits()) - 16)).and(w.int(0x8000));
        vec![canonical(x, rounded.or(sign), to)]
    })
}
