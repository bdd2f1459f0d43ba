//! `log` against a better one.

use crate::accuracy::{Table, Worst, stride, sweep_f32};
use crate::eval::{Program, eval1};
use cranefold_ir::math::log;
use cranefold_ir::{DType, Scalar};

fn check_f32(stride: u32) {
    let [worst, _] = sweep_f32(&log(DType::F32), stride, |x| f64::from(x).ln());
    println!("log.f32: {worst}");
    assert!(worst.ulps < 0.9, "{worst}");
}

#[test]
fn f32_is_within_an_ulp() {
    check_f32(stride(1));
}

#[test]
fn f64_is_within_an_ulp() {
    let [worst, subnormal] = Table::read("log_f64.txt").check(&log(DType::F64));
    println!("log.f64: {worst}");
    assert!(worst.ulps < 0.9, "{worst}");
    assert_eq!(subnormal, Worst::default(), "no logarithm is subnormal");
}

#[test]
fn special_values() {
    for dtype in [DType::F32, DType::F64] {
        let d = log(dtype);
        let f = |x: f64| eval1(&d, &[Scalar::float(dtype, x)]);
        let inf = Scalar::float(dtype, f64::INFINITY);
        let minus_inf = Scalar::float(dtype, f64::NEG_INFINITY);
        assert_eq!(f(0.0), minus_inf);
        assert_eq!(f(-0.0), minus_inf);
        assert_eq!(f(1.0), Scalar::float(dtype, 0.0));
        assert_eq!(f(f64::INFINITY), inf);
        for x in [-1.0, -1e-300, f64::NEG_INFINITY, f64::MIN, f64::NAN, -f64::NAN] {
            let x = Scalar::float(dtype, x);
            assert!(eval1(&d, &[x]).is_nan() || x.as_f64() == 0.0, "{x}");
        }
        let least = Scalar::from_bits(dtype, 1);
        assert!((eval1(&d, &[least]).as_f64() - least.as_f64().ln()).abs() < 1e-4);
        let payload = Scalar::from_bits(dtype, inf.bits() + 1);
        assert!(payload.is_nan() && eval1(&d, &[payload]).is_nan());
    }
}

#[test]
fn it_is_as_short_as_documented() {
    assert_eq!(Program::new(&log(DType::F32)).ops(), 30);
    assert_eq!(Program::new(&log(DType::F64)).ops(), 34);
}
