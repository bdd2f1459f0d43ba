//! `erf` against a better one.

use crate::accuracy::{Table, stride, sweep_f32};
use crate::eval::{Program, eval1};
use cranefold_ir::math::erf;
use cranefold_ir::{DType, Scalar};

/// erf x, good to some 1e-14: the series of positive terms, 2 / sqrt(pi) e^(-x^2) sum of 2^k x^(2k+1) / (2k+1)!!.
fn truth(x: f32) -> f64 {
    let x = f64::from(x);
    let z = x * x;
    match x.abs() {
        a if a.is_nan() => f64::NAN,
        a if a > 6.5 => x.signum(),
        a if a < 1e-3 => x * std::f64::consts::FRAC_2_SQRT_PI * (1.0 - z / 3.0 + z * z / 10.0),
        _ => {
            let (mut term, mut sum, mut odd) = (x, x, 1.0);
            while term.abs() > sum.abs() * 1e-17 {
                odd += 2.0;
                term *= 2.0 * z / odd;
                sum += term;
            }
            std::f64::consts::FRAC_2_SQRT_PI * (-z).exp() * sum
        }
    }
}

#[test]
fn f32_is_within_an_ulp() {
    let [normal, subnormal] = sweep_f32(&erf(DType::F32), stride(1), truth);
    println!("erf.f32: {normal} {subnormal}");
    assert!(normal.ulps < 0.9 && subnormal.ulps < 0.9, "{normal} {subnormal}");
}

#[test]
fn f64_is_within_an_ulp() {
    let table = Table::read("erf_f64.txt");
    let [normal, subnormal] = table.check(&erf(DType::F64));
    println!("erf.f64: {normal} {subnormal} {} points", table.len());
    assert!(normal.ulps < 0.9 && subnormal.ulps < 0.9, "{normal} {subnormal}");
}

#[test]
fn special_values() {
    crate::odd_from_minus_one_to_one(&erf, 1.0);
}

#[test]
fn it_is_as_short_as_documented() {
    assert_eq!(Program::new(&erf(DType::F32)).ops(), 33);
    assert_eq!(Program::new(&erf(DType::F64)).ops(), 59);
}

#[test]
fn the_last_result_below_one_is_where_it_should_be() {
    // 1 - erf is 2^-24 at 3.833 and 2^-53 at 5.805, and half of that at 3.919 and 5.864.
    let f = |x: f64, dtype| eval1(&erf(dtype), &[Scalar::float(dtype, x)]).as_f64();
    assert!(f(3.83, DType::F32) < 1.0 && f(5.80, DType::F64) < 1.0);
    for x in [3.95, 4.0, 4.5, 5.0, 10.0] {
        assert!(f(x, DType::F32) == 1.0 && f(x + 2.0, DType::F64) == 1.0, "{x}");
    }
}
