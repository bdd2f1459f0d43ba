//! The exponential function.

use super::horner;
use crate::{DType, Def, Expr, Lets, Scalar};

/// The constants of one of the two types.
pub(super) struct Constants {
    /// Above `fraction_bits` of the type: 1.5 * 2^fraction_bits, plus twice the exponent bias.
    pub(super) magic: f64,
    /// The exponent bias.
    bias: f64,
    /// Below this the result rounds to zero.
    lowest: f64,
    /// Divided by log 2 it rounds to -bias.
    flushed: f64,
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
    bias: 127.0,
    lowest: -104.0,
    flushed: -88.0,
    highest: 89.0,
    log2_e: std::f32::consts::LOG2_E as f64,
    ln_2: [0.693_147_182_464_599_6, -1.904_654_212_125_933_6e-9],
    fraction_bits: 23,
    // Relative error of 1 + r * poly(r) as a real function: 2^-27.4.
    poly: &[0.001_379_706_494, 0.008_368_693_535, 0.041_668_091_66, 0.166_665_249_1, 0.5, 1.0],
};

pub(super) const F64: Constants = Constants {
    magic: 6_755_399_441_055_744.0 + 2046.0,
    bias: 1023.0,
    lowest: -746.0,
    flushed: -709.0,
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
/// exp x = 2^n (1 + r p(r)) = fma(r s1, p(r), s1) * s2,    s1 s2 = 2^n
/// ```
///
/// where s1 and s2 are powers of two near 2^(n/2), both normal, so that the last multiplication is
/// the only one that can overflow or round to a subnormal. n comes out of the low bits of
/// x / log 2 + 1.5 * 2^fraction_bits, to which twice the exponent bias is added so that a half of
/// those bits is already the exponent field of s1.
///
/// Every input is taken: exp(+-0) = 1, exp(-inf) = +0, exp(inf) = inf, exp(NaN) is a NaN; subnormal
/// results are rounded once.
///
/// | | f32, all inputs | f64, 2,258 points |
/// | --- | --- | --- |
/// | operations | 20 | 25 |
/// | greatest error, normal results | 0.898 ulp | 0.757 ulp |
/// | greatest error, subnormal results | 0.875 ulp | 0.675 ulp |
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn exp(dtype: DType) -> Def {
    let c = constants(dtype);
    let float = |v: f64| Expr::from(Scalar::float(dtype, v));
    Def::build(format!("exp.{dtype}"), &[dtype], |lets, args| {
        // Each comparison is false for a NaN, which passes on.
        let x = args[0].clone();
        let x = lets.bind(x.clone().lt(float(c.lowest)).select(float(c.lowest), x));
        let x = lets.bind(float(c.highest).lt(x.clone()).select(float(c.highest), x));
        let t = lets.bind(x.clone().fma(float(c.log2_e), float(c.magic)));
        let n = lets.bind(t.clone().sub(float(c.magic)));
        // The first product less x is exact; r is rounded once, in the second.
        let r = n.clone().fma(float(-c.ln_2[0]), x);
        let r = lets.bind(n.fma(float(-c.ln_2[1]), r));
        let [s1, s2] = two_powers(lets, &t, c.fraction_bits);
        let p = horner(&r, c.poly);
        vec![r.mul(s1.clone()).fma(p, s1).mul(s2)]
    })
}

/// `exp_below.f32(x)`, `exp_below.f64(x)`: e^x for x <= 0, or NaN.
///
/// With n = x / log 2 rounded to an integer, at least -bias, and r = x - n log 2,
///
/// ```text
/// exp x = (1 + r p(r)) s,    s = 2^n, or 0 where n = -bias
/// ```
///
/// It is shorter than [`exp`], since one power of two is enough: the greatest is 1, and the bits of
/// n + bias are the exponent field of 0 where n = -bias. So a result below 2^(1/2 - bias) is exactly +0
/// (x below -87.68 for f32, -708.74 for f64), and one from there to 2^(1 - bias) is subnormal, rounded
/// twice.
///
/// exp_below(+-0) = 1, exp_below(-inf) = +0, exp_below(NaN) is a NaN. Far above 0 the result is meaningless.
///
/// | | f32, all inputs | f64, 1,052 points |
/// | --- | --- | --- |
/// | operations | 14 | 19 |
/// | greatest error, normal results | 0.898 ulp | 0.720 ulp |
/// | greatest error, subnormal results | 0.843 ulp | 0.675 ulp |
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn exp_below(dtype: DType) -> Def {
    let c = constants(dtype);
    let float = |v: f64| Expr::from(Scalar::float(dtype, v));
    Def::build(format!("exp_below.{dtype}"), &[dtype], |lets, args| {
        // The comparison is false for a NaN, which passes on.
        let x = args[0].clone();
        let x = lets.bind(x.clone().lt(float(c.flushed)).select(float(c.flushed), x));
        let magic = float(c.magic - c.bias);
        let t = lets.bind(x.clone().fma(float(c.log2_e), magic.clone()));
        let n = lets.bind(t.clone().sub(magic));
        // The first product less x is exact; r is rounded once, in the second.
        let r = n.clone().fma(float(-c.ln_2[0]), x);
        let r = lets.bind(n.fma(float(-c.ln_2[1]), r));
        let s = t.bits(dtype.unsigned());
        let s = s.clone().shl(s.int(c.fraction_bits)).bits(dtype);
        vec![horner(&r, c.poly).fma(r, float(1.0)).mul(s)]
    })
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
