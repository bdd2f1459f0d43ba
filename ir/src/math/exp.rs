//! The exponential function.

use super::{horner, scale};
use crate::{DType, Def, Expr, Lets, Op};

/// The constants of one of the two types.
pub(super) struct Constants {
    /// Above `fraction_bits` of the type: 1.5 * 2^fraction_bits, plus twice the exponent bias.
    pub(super) magic: f64,
    /// Below this the result rounds to zero. It is 2^-173 (f64: 2^-1240), so far below the least subnormal that processors
    /// round it to zero as fast as any product; where they may have to round to a subnormal, some take 150 cycles.
    lowest: f64,
    /// Above this the result rounds to infinity.
    highest: f64,
    log2_e: f64,
    /// log 2 rounded to the type, and the remainder.
    pub(super) ln_2: [f64; 2],
    /// Bits of the significand without the hidden one.
    pub(super) fraction_bits: i128,
    /// (e^r - 1) / r for |r| <= log(2) / 2, highest power first.
    poly: &'static [f64],
}

pub(super) const F32: Constants = Constants {
    magic: 12_582_912.0 + 254.0,
    lowest: -120.0,
    highest: 89.0,
    log2_e: std::f32::consts::LOG2_E as f64,
    ln_2: [0.693_147_182_464_599_6, -1.904_654_212_125_933_6e-9],
    fraction_bits: 23,
    // Relative error of 1 + r * poly(r) as a real function: 2^-27.4.
    poly: &[0.001_379_706_494, 0.008_368_693_535, 0.041_668_091_66, 0.166_665_249_1, 0.5, 1.0],
};

pub(super) const F64: Constants = Constants {
    magic: 6_755_399_441_055_744.0 + 2046.0,
    lowest: -860.0,
    highest: 710.0,
    log2_e: std::f64::consts::LOG2_E,
    ln_2: [std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17],
    fraction_bits: 52,
    // Relative error of 1 + r * poly(r) as a real function: 2^-57.2.
    poly: &[
        2.498_892_169_211_823_7e-8,
        2.762_526_955_951_357_7e-7,
        2.755_760_724_681_298_5e-6,
        2.480_150_845_939_835e-5,
        1.984_126_950_435_104e-4,
        1.388_888_892_699_221e-3,
        8.333_333_333_481_95e-3,
        4.166_666_666_660_34e-2,
        0.166_666_666_666_664_64,
        0.5,
        1.0,
    ],
};

/// `exp.f32(x)`, `exp.f64(x)`: e^x.
///
/// With n = x / log 2 rounded to an integer and r = x - n log 2,
///
/// ```text
/// exp x = (1 + r p(r)) 2^n
/// ```
///
/// where [`Op::Scale`](crate::Op::Scale) multiplies by 2^n and is the only operation that can overflow or round to a
/// subnormal. n is x / log 2 + [`offset`](scale::offset) less the latter, which rounds to an integer.
///
/// Every input is taken: exp(+-0) = 1, exp(-inf) = +0, exp(inf) = inf, exp(NaN) is a NaN; subnormal
/// results are rounded once.
///
/// | | f32, all inputs | f64, 2,258 points |
/// | --- | --- | --- |
/// | operations | 15 | 20 |
/// | greatest error, normal results | 0.898 ulp | 0.757 ulp |
/// | greatest error, subnormal results | 0.875 ulp | 0.675 ulp |
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn exp(dtype: DType) -> Def {
    let c = constants(dtype);
    Def::build(format!("exp.{dtype}"), &[dtype], |lets, args| {
        // The comparison is false for a NaN, which passes on.
        let x = at_least(lets, &args[0], c.lowest);
        let x = lets.bind(x.float(c.highest).lt(x.clone()).select(x.float(c.highest), x));
        let [f, n] = parts(lets, x, &c, Op::Scale);
        vec![f.scale(n)]
    })
}

/// `exp_below.f32(x)`, `exp_below.f64(x)`: e^x for x <= 0, or NaN, with the bits of [`exp`].
///
/// It needs no upper limit, and [`Op::ScaleDown`](crate::Op::ScaleDown) is enough. Above 0 the result is not specified.
///
/// | | f32 | f64 |
/// | --- | --- | --- |
/// | operations | 13 | 18 |
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn exp_below(dtype: DType) -> Def {
    let c = constants(dtype);
    Def::build(format!("exp_below.{dtype}"), &[dtype], |lets, args| {
        let x = at_least(lets, &args[0], c.lowest);
        let [f, n] = parts(lets, x, &c, Op::ScaleDown);
        vec![f.scale_down(n)]
    })
}

/// The greater of x and `lowest`; a NaN, for which the comparison is false, passes.
fn at_least(lets: &mut Lets, x: &Expr, lowest: f64) -> Expr {
    lets.bind(x.clone().lt(x.float(lowest)).select(x.float(lowest), x.clone()))
}

/// e^r and n, where x = n log 2 + r, for an operation that multiplies by 2^n.
fn parts(lets: &mut Lets, x: Expr, c: &Constants, op: Op) -> [Expr; 2] {
    let magic = Expr::from(scale::offset(op, x.dtype()));
    let t = lets.bind(x.clone().fma(x.float(c.log2_e), magic.clone()));
    let n = lets.bind(t.sub(magic));
    // The first product less x is exact; r is rounded once, in the second.
    let r = n.clone().fma(n.float(-c.ln_2[0]), x);
    let r = lets.bind(n.clone().fma(n.float(-c.ln_2[1]), r));
    [horner(&r, c.poly).fma(r.clone(), r.float(1.0)), n]
}

fn constants(dtype: DType) -> Constants {
    match dtype {
        DType::F32 => F32,
        DType::F64 => F64,
        _ => panic!("no exp of {dtype}"),
    }
}

/// 2^(n / 2) rounded down and 2^(n / 2) rounded up, given n + `magic`.
pub(super) fn two_powers(lets: &mut Lets, t: &Expr, fraction_bits: i128) -> [Expr; 2] {
    let i = lets.bind(t.clone().bits(t.dtype().unsigned()));
    let half = lets.bind(i.clone().shr(i.int(1)));
    let s1 = lets.bind(half.clone().shl(i.int(fraction_bits)).bits(t.dtype()));
    let s2 = i.clone().sub(half).shl(i.int(fraction_bits)).bits(t.dtype());
    [s1, s2]
}
