//! `tanh` against a better one.

use crate::accuracy::{Table, stride, sweep_f32};
use crate::eval::Program;
use cranefold_ir::DType;
use cranefold_ir::math::tanh;

#[test]
fn f32_is_within_an_ulp() {
    let [normal, subnormal] = sweep_f32(&tanh(DType::F32), stride(1), |x| f64::from(x).tanh());
    println!("tanh.f32: {normal} {subnormal}");
    assert!(normal.ulps < 0.9 && subnormal.ulps < 0.9, "{normal} {subnormal}");
}

#[test]
fn f64_is_within_an_ulp() {
    let table = Table::read("tanh_f64.txt");
    let [normal, subnormal] = table.check(&tanh(DType::F64));
    println!("tanh.f64: {normal} {subnormal} {} points", table.len());
    assert!(normal.ulps < 0.9 && subnormal.ulps < 0.9, "{normal} {subnormal}");
}

#[test]
fn special_values() {
    crate::odd_from_minus_one_to_one(&tanh, 0.0);
}

#[test]
fn it_is_as_short_as_documented() {
    assert_eq!(Program::new(&tanh(DType::F32)).ops(), 30);
    assert_eq!(Program::new(&tanh(DType::F64)).ops(), 46);
}
