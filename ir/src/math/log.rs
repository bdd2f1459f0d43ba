//! The natural logarithm.

use super::horner;
use crate::{DType, Def, Expr, Lets, Scalar};

/// The constants of one of the two types.
pub(super) struct Constants {
    /// Bits of the significand without the hidden one.
    fraction_bits: i128,
    bias: i128,
    /// Bits of sqrt(1/2).
    root_half: i128,
    /// log 2 rounded to the type, and the remainder.
    ln_2: [f64; 2],
    /// (2 atanh(s) - 2 s) / s^3 in z = s^2, highest power first.
    poly: &'static [f64],
}

const F32: Constants = Constants {
    fraction_bits: 23,
    bias: 127,
    root_half: 0x3f35_04f3,
    ln_2: super::exp::F32.ln_2,
    // Relative error of the logarithm as a real function: 2^-30.2.
    poly: &[0.298_709_914_9, 0.399_775_720_27, 0.666_667_761_02],
};

pub(super) const F64: Constants = Constants {
    fraction_bits: 52,
    bias: 1023,
    root_half: 0x3fe6_a09e_667f_3bcd,
    ln_2: super::exp::F64.ln_2,
    // Relative error of the logarithm as a real function: 2^-59.5.
    poly: &[
        0.147_955_205_481_499_7,
        0.153_140_945_757_892_71,
        0.181_835_625_603_317_4,
        0.222_221_986_080_298_59,
        0.285_714_287_420_397_9,
        0.399_999_999_994_162_77,
        0.666_666_666_666_673_4,
    ],
};

/// `log.f32(x)`, `log.f64(x)`: the natural logarithm.
///
/// With x = 2^e m, m in [sqrt(1/2), sqrt 2), f = m - 1, s = f / (2 + f), h = f^2 / 2,
///
/// ```text
/// log x = e log 2 + 2 atanh s = e log 2 + (f - (h - s (h + s^2 p(s^2))))
/// ```
///
/// where log 2 is two constants. A subnormal x is scaled up first. The bits of x less the bits of
/// sqrt(1/2) have e in the exponent field; the bits of e below an exponent whose last place is
/// worth 1 make a float out of it.
///
/// log(+-0) = -inf, log(x < 0) is a NaN, log(inf) = inf, log(1) = +0, log(NaN) is a NaN.
///
/// | | f32, all inputs | f64, 1,685 points |
/// | --- | --- | --- |
/// | operations | 30 | 34 |
/// | greatest error | 0.840 ulp | 0.784 ulp |
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn log(dtype: DType) -> Def {
    let c = match dtype {
        DType::F32 => F32,
        DType::F64 => F64,
        _ => panic!("no log of {dtype}"),
    };
    let float = |v: f64| Expr::from(Scalar::float(dtype, v));
    Def::build(format!("log.{dtype}"), &[dtype], |lets, args| {
        let x = args[0].clone();
        let [e, f] = split(lets, &x, &c, true);
        let s = lets.bind(f.clone().div(f.clone().add(float(2.0))));
        let z = lets.bind(s.clone().mul(s.clone()));
        let h = lets.bind(f.clone().mul(float(0.5)).mul(f.clone()));
        let sum = z.clone().fma(horner(&z, c.poly), h.clone());
        let rest = s.fma(sum, e.clone().mul(float(c.ln_2[1])));
        let of_m = f.sub(h.sub(rest));
        let log = e.fma(float(c.ln_2[0]), of_m);
        let log = x.clone().lt(float(f64::INFINITY)).select(log, x.clone());
        let log = x.clone().lt(float(0.0)).select(Scalar::nan(dtype).into(), log);
        vec![x.eq(float(0.0)).select(float(f64::NEG_INFINITY), log)]
    })
}

/// e and m - 1, where x = 2^e m and m is in [sqrt(1/2), sqrt 2).
///
/// x is finite and above zero, and normal unless `subnormal` is set; 0 counts as the power of two
/// below the least one, infinity as that above the greatest. 8 operations, 11 with subnormals.
pub(super) fn split(lets: &mut Lets, x: &Expr, c: &Constants, subnormal: bool) -> [Expr; 2] {
    let dtype = x.dtype();
    let of_bits = |b: i128| Expr::from(Scalar::from_bits(dtype, b as u64));
    let one = c.bias << c.fraction_bits;
    // The exponent whose last place is worth 1.
    let unit = (c.bias + c.fraction_bits) << c.fraction_bits;
    let (scaled, bias) = if subnormal {
        let up = c.fraction_bits + 2;
        let small = lets.bind(x.clone().lt(of_bits(1 << c.fraction_bits)));
        let scaled = small.clone().select(x.clone().mul(x.float(2f64.powi(up as i32))), x.clone());
        (scaled, small.select(of_bits(unit + c.bias + up), of_bits(unit + c.bias)))
    } else {
        (x.clone(), of_bits(unit + c.bias))
    };
    let i = scaled.bits(dtype.unsigned());
    let i = lets.bind(i.clone().add(i.int(one - c.root_half)));
    let m = i.clone().and(i.int((1 << c.fraction_bits) - 1)).add(i.int(c.root_half)).bits(dtype);
    let f = lets.bind(m.sub(x.float(1.0)));
    let e = i.clone().shr(i.int(c.fraction_bits)).or(i.int(unit)).bits(dtype);
    [lets.bind(e.sub(bias)), f]
}
