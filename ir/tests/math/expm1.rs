//! `expm1` against a better one.

use crate::accuracy::{Table, stride, sweep_f32};
use crate::eval::{Program, eval1};
use cranefold_ir::math::expm1;
use cranefold_ir::{DType, Scalar};

#[test]
fn f32_is_within_an_ulp() {
    let [normal, subnormal] = sweep_f32(&expm1(DType::F32), stride(1), |x| f64::from(x).exp_m1());
    println!("expm1.f32: {normal} {subnormal}");
    assert!(normal.ulps < 0.9 && subnormal.ulps < 0.9, "{normal} {subnormal}");
}

#[test]
fn f64_is_within_an_ulp() {
    let table = Table::read("expm1_f64.txt");
    let [normal, subnormal] = table.check(&expm1(DType::F64));
    println!("expm1.f64: {normal} {subnormal} {} points", table.len());
    assert!(normal.ulps < 0.9 && subnormal.ulps < 0.9, "{normal} {subnormal}");
}

#[test]
fn special_values() {
    for (dtype, last) in [(DType::F32, 88.722_83), (DType::F64, 709.782_712_893_383_9)] {
        let d = expm1(dtype);
        let f = |x: f64| eval1(&d, &[Scalar::float(dtype, x)]);
        let (inf, tiny) = (f64::INFINITY, Scalar::from_bits(dtype, 1).as_f64());
        for (x, want) in [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -1.0), (1e30, inf), (-1e30, -1.0)] {
            assert_eq!(f(x), Scalar::float(dtype, want), "{x}");
        }
        for x in [tiny, -tiny, 3.0 * tiny, 1e-30, -1e-30] {
            assert_eq!(f(x), Scalar::float(dtype, x), "{x}");
        }
        assert!(f(last).as_f64().is_finite(), "{last}");
        assert!(f(last * 1.000_01).as_f64().is_infinite(), "{last}");
        assert!(f(f64::NAN).is_nan() && f(-f64::NAN).is_nan());
        let payload = Scalar::from_bits(dtype, Scalar::float(dtype, inf).bits() + 1);
        assert!(payload.is_nan() && eval1(&d, &[payload]).is_nan());
    }
}

#[test]
fn it_is_as_short_as_documented() {
    assert_eq!(Program::new(&expm1(DType::F32)).ops(), 30);
    assert_eq!(Program::new(&expm1(DType::F64)).ops(), 35);
}
