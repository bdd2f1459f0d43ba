//! `log1p` against a better one.

use crate::accuracy::{Table, stride, sweep_f32};
use crate::eval::{Program, eval1};
use cranefold_ir::math::log1p;
use cranefold_ir::{DType, Scalar};

#[test]
fn f32_is_within_an_ulp() {
    let [normal, subnormal] = sweep_f32(&log1p(DType::F32), stride(1), |x| f64::from(x).ln_1p());
    println!("log1p.f32: {normal} {subnormal}");
    assert!(normal.ulps < 0.9 && subnormal.ulps < 0.9, "{normal} {subnormal}");
}

#[test]
fn f64_is_within_an_ulp() {
    let table = Table::read("log1p_f64.txt");
    let [normal, subnormal] = table.check(&log1p(DType::F64));
    println!("log1p.f64: {normal} {subnormal} {} points", table.len());
    assert!(normal.ulps < 0.9 && subnormal.ulps < 0.9, "{normal} {subnormal}");
}

#[test]
fn special_values() {
    for dtype in [DType::F32, DType::F64] {
        let d = log1p(dtype);
        let f = |x: f64| eval1(&d, &[Scalar::float(dtype, x)]);
        let (inf, tiny) = (f64::INFINITY, Scalar::from_bits(dtype, 1).as_f64());
        for (x, want) in [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-1.0, -inf)] {
            assert_eq!(f(x), Scalar::float(dtype, want), "{x}");
        }
        for x in [tiny, -tiny, 3.0 * tiny, 1e-30, -1e-30] {
            assert_eq!(f(x), Scalar::float(dtype, x), "{x}");
        }
        let greatest = if dtype == DType::F32 { f64::from(f32::MAX) } else { f64::MAX };
        assert!((f(greatest).as_f64() - greatest.ln()).abs() < 1e-4);
        for x in [-1.000_001, -2.0, -1e30, -inf, f64::NAN, -f64::NAN] {
            assert!(f(x).is_nan(), "{x}");
        }
        let payload = Scalar::from_bits(dtype, Scalar::float(dtype, inf).bits() + 1);
        assert!(payload.is_nan() && eval1(&d, &[payload]).is_nan());
    }
}

#[test]
fn it_is_as_short_as_documented() {
    assert_eq!(Program::new(&log1p(DType::F32)).ops(), 32);
    assert_eq!(Program::new(&log1p(DType::F64)).ops(), 44);
}
