//! `exp` and `exp_below` against a better one.

use crate::accuracy::{Table, Worst, stride, sweep_f32};
use crate::eval::{Program, eval1};
use cranefold_ir::math::{exp, exp_below};
use cranefold_ir::{DType, Def, Scalar};

/// Errors in ulps: of normal results and of subnormal ones.
fn check_f32(stride: u32) -> [Worst; 2] {
    sweep_f32(&exp(DType::F32), stride, |x| f64::from(x).exp())
}

#[test]
fn f32_is_within_an_ulp() {
    let [normal, subnormal] = check_f32(stride(1));
    println!("exp.f32: {normal} {subnormal}");
    assert!(normal.ulps < 0.9 && subnormal.ulps < 0.9, "{normal} {subnormal}");
}

#[test]
fn f64_is_within_an_ulp() {
    let table = Table::read("exp_f64.txt");
    let [normal, subnormal] = table.check(&exp(DType::F64));
    println!("exp.f64: {normal} {subnormal}");
    assert!(normal.ulps < 0.9 && subnormal.ulps < 0.9, "{normal} {subnormal}");
}

/// The least f32 whose result is not +0, as 2^-126.5.
const LEAST_F32: f32 = -87.683_11;
/// The least f64 whose result is not +0, as 2^-1022.5.
const LEAST_F64: f64 = -708.742_992_122_544;

/// `exp_below` of -|x|, so that every argument is in its domain.
fn below(dtype: DType) -> Def {
    Def::build("below", &[dtype], |lets, args| lets.splice(&exp_below(dtype), &[args[0].clone().abs().neg()]))
}

#[test]
fn f32_below_zero_is_within_an_ulp() {
    let truth = |x: f32| if x.abs() > -LEAST_F32 { 0.0 } else { (-f64::from(x.abs())).exp() };
    let [normal, subnormal] =
        sweep_f32(&below(DType::F32), stride(1), |x| if x.is_nan() { f64::NAN } else { truth(x) });
    println!("exp_below.f32: {normal} {subnormal}");
    assert!(normal.ulps < 0.9 && subnormal.ulps < 0.9, "{normal} {subnormal}");
}

#[test]
fn f64_below_zero_is_within_an_ulp() {
    let table = Table::read("exp_f64.txt").only(|x| (LEAST_F64..=0.0).contains(&x));
    let [normal, subnormal] = table.check(&exp_below(DType::F64));
    println!("exp_below.f64: {normal} {subnormal} {} points", table.len());
    assert!(normal.ulps < 0.9 && subnormal.ulps < 0.9, "{normal} {subnormal}");
}

#[test]
fn special_values() {
    let d = exp(DType::F32);
    let f = |x: f32| f32::from_bits(eval1(&d, &[Scalar::f32(x)]).bits() as u32);
    assert_eq!(f(0.0), 1.0);
    assert_eq!(f(-0.0), 1.0);
    assert_eq!(f(f32::INFINITY), f32::INFINITY);
    assert_eq!(f(f32::MAX), f32::INFINITY);
    assert_eq!(f(f32::NEG_INFINITY).to_bits(), 0);
    assert_eq!(f(f32::MIN).to_bits(), 0);
    assert_eq!(f(88.722_84), f64::from(88.722_84f32).exp() as f32, "the greatest finite result");
    assert_eq!(f(88.722_85), f32::INFINITY);
    assert_eq!(f(-103.972_08), f32::from_bits(1), "the least result");
    assert_eq!(f(-103.972_1), 0.0);
    let d = exp(DType::F64);
    let f = |x: f64| f64::from_bits(eval1(&d, &[Scalar::f64(x)]).bits());
    assert_eq!(f(0.0), 1.0);
    assert_eq!(f(-0.0), 1.0);
    assert_eq!(f(f64::INFINITY), f64::INFINITY);
    assert_eq!(f(f64::MAX), f64::INFINITY);
    assert_eq!(f(f64::NEG_INFINITY).to_bits(), 0);
    assert_eq!(f(f64::MIN).to_bits(), 0);
    assert!(f(709.782_712_893_383_9).is_finite());
    assert_eq!(f(709.782_712_893_384_1), f64::INFINITY);
    assert_eq!(f(-745.133_219_101_941_1), f64::from_bits(1));
    assert_eq!(f(-745.133_219_101_941_3), 0.0);
}

#[test]
fn special_values_below_zero() {
    let d = exp_below(DType::F32);
    let f = |x: f32| f32::from_bits(eval1(&d, &[Scalar::f32(x)]).bits() as u32);
    assert_eq!(f(0.0), 1.0);
    assert_eq!(f(-0.0), 1.0);
    assert_eq!(f(-f32::from_bits(1)), 1.0);
    assert!(f(LEAST_F32) > 0.0);
    for x in [LEAST_F32.next_down(), -88.0, -104.0, -1e4, f32::MIN, f32::NEG_INFINITY] {
        assert_eq!(f(x).to_bits(), 0, "{x}");
    }
    let d = exp_below(DType::F64);
    let f = |x: f64| f64::from_bits(eval1(&d, &[Scalar::f64(x)]).bits());
    assert_eq!(f(0.0), 1.0);
    assert_eq!(f(-0.0), 1.0);
    assert!(f(LEAST_F64) > 0.0);
    for x in [LEAST_F64.next_down(), -708.743, -709.0, -746.0, -1e6, f64::MIN, f64::NEG_INFINITY] {
        assert_eq!(f(x).to_bits(), 0, "{x}");
    }
}

#[test]
fn a_nan_of_any_payload_gives_a_nan() {
    for k in 0..64u64 {
        for low in [0, 1 << (k % 23), 0x3f_ffff, 0x7f_ffff] {
            let bits = 0x7f80_0000 | (k & 1) << 31 | low | 1;
            for def in [exp(DType::F32), exp_below(DType::F32)] {
                assert!(eval1(&def, &[Scalar::from_bits(DType::F32, bits)]).is_nan(), "{} {bits:#x}", def.name);
            }
        }
        for low in [1, 1 << (k % 52), 0xf_ffff_ffff_ffff] {
            let bits = 0x7ff << 52 | (k & 1) << 63 | low;
            for def in [exp(DType::F64), exp_below(DType::F64)] {
                assert!(eval1(&def, &[Scalar::from_bits(DType::F64, bits)]).is_nan(), "{} {bits:#x}", def.name);
            }
        }
    }
}

#[test]
fn it_is_as_short_as_documented() {
    assert_eq!(Program::new(&exp(DType::F32)).ops(), 20);
    assert_eq!(Program::new(&exp(DType::F64)).ops(), 25);
    assert_eq!(Program::new(&exp_below(DType::F32)).ops(), 14);
    assert_eq!(Program::new(&exp_below(DType::F64)).ops(), 19);
}
