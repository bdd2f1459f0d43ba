//! Powers.

use super::{exp, horner, log};
use crate::DType::{F32, F64};
use crate::{DType, Def, Expr, Lets};

/// `pow.f32(x, y)`, `pow.f64(x, y)`: x^y for x >= 0 and finite y.
///
/// pow(x, +-0) = 1 for every x, as in IEEE 754; else a NaN base gives a NaN; pow(1, y) = 1;
/// pow(0, y) = 0 and pow(inf, y) = inf for y > 0, the other way round for y < 0. Overflow is
/// infinite, subnormal results are rounded once. A base below zero (not -0) and an exponent that is
/// infinite or a NaN give no useful result.
///
/// f32 computes 2^(y log2 x) in f64. f64 computes log2 x as the sum of two f64, to about
/// 2^-64 of itself (by analysis).
///
/// | | f32 | f64, 2,383 points |
/// | --- | --- | --- |
/// | operations | 40 | 98 |
/// | greatest error, normal results | 0.532 ulp | 0.843 ulp |
/// | greatest error, subnormal results | 0.515 ulp | 0.598 ulp |
///
/// The f32 error was measured over 2^23 bases for each of 20 exponents.
///
/// # Panics
/// If `dtype` is neither `F32` nor `F64`.
pub fn pow(dtype: DType) -> Def {
    let body = match dtype {
        F32 => through_f64,
        F64 => in_two_parts,
        _ => panic!("no pow of {dtype}"),
    };
    Def::build(format!("pow.{dtype}"), &[dtype, dtype], |lets, args| {
        let [x, y] = [&args[0], &args[1]];
        let power = body(lets, x, y);
        vec![y.clone().eq(y.float(0.0)).select(y.float(1.0), power)]
    })
}

/// `pow1.f32(x)` to `pow8.f64(x)`: |x|^p by multiplications.
///
/// With a = |x|, every product rounded:
///
/// ```text
/// a2 = a a   a3 = a2 a   a4 = a2 a2   a5 = a4 a   a6 = a4 a2   a7 = (a4 a2) a   a8 = a4 a4
/// ```
///
/// The relative error is below (p - 1) 2^-24 for f32 and (p - 1) 2^-53 for f64, so (p - 1) / 2 to
/// p - 1 ulp, where no product is subnormal.
///
/// # Panics
/// If p is not in 1..=8 or `dtype` is neither `F32` nor `F64`.
pub fn pow_int(dtype: DType, p: u32) -> Def {
    assert!((1..=8).contains(&p), "power {p} is out of range 1..=8");
    assert!(matches!(dtype, F32 | F64), "no power of {dtype}");
    Def::build(format!("pow{p}.{dtype}"), &[dtype], |lets, args| {
        let times = |lets: &mut Lets, a: &Expr, b: &Expr| lets.bind(a.clone().mul(b.clone()));
        // The sign does not survive a square.
        let a = if p.is_multiple_of(2) { args[0].clone() } else { lets.bind(args[0].clone().abs()) };
        let mut square = a.clone();
        let mut power: Option<Expr> = None;
        for bit in (0..p.ilog2()).map(|i| 2 << i) {
            square = times(lets, &square, &square);
            if p & bit != 0 {
                power = Some(match power {
                    None => square.clone(),
                    Some(low) => times(lets, &square, &low),
                });
            }
        }
        vec![match power {
            None => a,
            Some(power) if p % 2 == 1 => times(lets, &power, &a),
            Some(power) => power,
        }]
    })
}

/// x^y in f64, for an f32 x, then rounded to f32.
fn through_f64(lets: &mut Lets, x: &Expr, y: &Expr) -> Expr {
    // log2(m) / s in z = s^2; relative error 2^-37.7.
    const LOG: [f64; 5] = [
        0.340_729_350_281_786_6,
        0.411_672_747_640_566,
        0.577_083_584_806_579_2,
        0.961_796_673_339_217_2,
        2.885_390_081_790_1,
    ];
    // (2^r - 1) / r for |r| <= 1/2; relative error of 2^r 2^-28.9.
    const EXP: [f64; 6] = [
        1.535_332_911_488_007e-4,
        1.339_890_563_097_598e-3,
        9.618_437_674_945_263e-3,
        5.550_332_397_093_694e-2,
        0.240_226_479_096_769_64,
        0.693_147_202_885_870_7,
    ];
    /// The greatest magnitude of an exponent: beyond it a power of two rounds to zero or infinity in f32.
    const FAR: f64 = 200.0;
    const MAGIC: f64 = 6_755_399_441_055_744.0 + 1023.0;
    let x = lets.bind(x.clone().cast(F64));
    let y = y.clone().cast(F64);
    let [e, f] = log::split(lets, &x, &log::F64, false);
    let s = lets.bind(f.clone().div(f.clone().add(f.float(2.0))));
    let z = lets.bind(s.clone().mul(s.clone()));
    let log = s.fma(horner(&z, &LOG), e);
    let log = with_limits(&x, log);
    let l = lets.bind(y.mul(log));
    let l = clamped(lets, l, FAR);
    let t = lets.bind(l.clone().add(l.float(MAGIC)));
    let r = lets.bind(l.clone().sub(t.clone().sub(l.float(MAGIC))));
    let i = t.bits(DType::U64);
    let scale = lets.bind(i.clone().shl(i.int(52)).bits(F64));
    r.clone().mul(scale.clone()).fma(horner(&r, &EXP), scale).cast(F32)
}

/// -inf for x = 0, x for an infinity or NaN, else `log`.
fn with_limits(x: &Expr, log: Expr) -> Expr {
    let log = x.clone().eq(x.float(0.0)).select(x.float(f64::NEG_INFINITY), log);
    x.clone().lt(x.float(f64::INFINITY)).select(log, x.clone())
}

/// l clamped to -far and far; a NaN passes.
fn clamped(lets: &mut Lets, l: Expr, far: f64) -> Expr {
    let l = lets.bind(l.clone().lt(l.float(-far)).select(l.float(-far), l));
    lets.bind(l.float(far).lt(l.clone()).select(l.float(far), l))
}

/// A number as the sum of two f64, of which the second is at most some ulps of the first.
type Two = [Expr; 2];

/// x^y in f64.
fn in_two_parts(lets: &mut Lets, x: &Expr, y: &Expr) -> Expr {
    // (2^r - 1) / r for |r| <= 1/2; relative error of 2^r 2^-57.9.
    const EXP: [f64; 11] = [
        4.436_298_384_985_761e-10,
        7.073_587_463_234_994e-9,
        1.017_818_474_463_222e-7,
        1.321_543_656_565_071_5e-6,
        1.525_273_354_652_945_2e-5,
        1.540_353_045_414_473e-4,
        1.333_355_814_668_656_5e-3,
        9.618_129_107_596_953e-3,
        5.550_410_866_482_073e-2,
        0.240_226_506_959_101_22,
        std::f64::consts::LN_2,
    ];
    /// The greatest magnitude of an exponent: beyond it a power of two is zero or infinite.
    const FAR: f64 = 1100.0;
    let [high, low] = log2(lets, x);
    let high = lets.bind(with_limits(x, high));
    let t = lets.bind(y.clone().mul(high.clone()));
    let rest = y.clone().fma(high, t.clone().neg());
    let rest = y.clone().fma(low, rest);
    // The rest counts as 0 where the logarithm or its product is infinite.
    let rest = t.clone().abs().lt(t.float(FAR)).select(rest, t.float(0.0));
    let l = clamped(lets, t, FAR);
    let n = lets.bind(l.clone().add(l.float(exp::F64.magic)));
    let r = l.clone().sub(n.clone().sub(l.float(exp::F64.magic)));
    let r = lets.bind(r.add(rest));
    let [s1, s2] = exp::two_powers(lets, &n, exp::F64.fraction_bits);
    r.clone().mul(s1.clone()).fma(horner(&r, &EXP), s1).mul(s2)
}

/// log2 x in two parts, for a finite x above zero.
///
/// With f = m - 1 and s = f / (2 + f), log2 m = 2 / log 2 (s + s z (1/3 + z q(z))), z = s^2. The term
/// z q(z), small against the sum, is one f64; all others are in two parts.
fn log2(lets: &mut Lets, x: &Expr) -> Two {
    // (atanh(s) - s - s^3 / 3) / s^5 in z; its error is 2^-66.2 of atanh s.
    const TAIL: [f64; 7] = [
        0.065_979_278_663_330_36,
        0.066_284_348_568_485_77,
        0.076_933_775_269_185_3,
        0.090_908_922_088_038_16,
        0.111_111_112_596_666_69,
        0.142_857_142_850_514_76,
        0.200_000_000_000_011_24,
    ];
    let third = [1.0 / 3.0, 1.850_371_707_708_594e-17].map(|v| x.float(v));
    let two_log2_e = [2.885_390_081_777_926_8, 4.071_054_748_186_206_6e-17].map(|v| x.float(v));
    let [e, f] = log::split(lets, x, &log::F64, true);
    // 2 + f = 1 + m is one bit too long for an f64.
    let d = fast_two_sum(lets, x.float(2.0), f.clone());
    let s = lets.bind(f.clone().div(d[0].clone()));
    let left = s.clone().neg().fma(d[0].clone(), f);
    let left = s.clone().neg().fma(d[1].clone(), left);
    let s = [s, lets.bind(left.div(d[0].clone()))];
    let z = times(lets, &s, &s);
    let small = lets.bind(z[0].clone().mul(horner(&z[0], &TAIL)));
    let sum = fast_two_sum(lets, third[0].clone(), small);
    let sum = [sum[0].clone(), lets.bind(sum[1].clone().add(third[1].clone()))];
    let w = times(lets, &z, &sum);
    let w = times(lets, &s, &w);
    let atanh = fast_two_sum(lets, s[0].clone(), w[0].clone());
    let low = atanh[1].clone().add(w[1].clone().add(s[1].clone()));
    let atanh = [atanh[0].clone(), lets.bind(low)];
    let of_m = times(lets, &atanh, &two_log2_e);
    let log = fast_two_sum(lets, e, of_m[0].clone());
    [log[0].clone(), lets.bind(log[1].clone().add(of_m[1].clone()))]
}

/// a + b, exact, where a is 0 or |a| >= |b|.
fn fast_two_sum(lets: &mut Lets, a: Expr, b: Expr) -> Two {
    let high = lets.bind(a.clone().add(b.clone()));
    let low = lets.bind(b.sub(high.clone().sub(a)));
    [high, low]
}

/// a b, to about 2^-103 of itself.
fn times(lets: &mut Lets, a: &Two, b: &Two) -> Two {
    let [a0, a1] = a.clone();
    let [b0, b1] = b.clone();
    let high = lets.bind(a0.clone().mul(b0.clone()));
    let low = a0.clone().fma(b0.clone(), high.clone().neg());
    let low = lets.bind(a0.fma(b1, a1.fma(b0, low)));
    [high, low]
}
