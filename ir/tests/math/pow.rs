//! `pow` and `pow_int` against better ones.

use crate::accuracy::{Table, Worst, stride, ulps_f32};
use crate::eval::{BLOCK, Program, eval1};
use cranefold_ir::math::{pow, pow_int};
use cranefold_ir::{DType, Scalar};

/// Exponents of norms and their inverses, others, and some that reach the limits.
const EXPONENTS: [f32; 20] = [
    1.0,
    1.5,
    2.0,
    2.5,
    3.0,
    3.3,
    4.7,
    7.77,
    16.0,
    100.5,
    1e6,
    0.5,
    0.333_333_34,
    0.1,
    0.01,
    1e-6,
    0.75,
    -1.0,
    -2.5,
    1e-30,
];

fn check_f32(stride: usize) {
    let mut worst = [Worst::default(); 2];
    let mut program = Program::new(&pow(DType::F32));
    for y in EXPONENTS {
        let ys = [u64::from(y.to_bits()); BLOCK];
        let mut bases = (0..0x7f80_0000u64).step_by(stride).peekable();
        while bases.peek().is_some() {
            let block: Vec<u64> = bases.by_ref().take(BLOCK).collect();
            program.run(&[&block, &ys[..block.len()]]);
            for (&x, &got) in block.iter().zip(program.result(0)) {
                let x = f64::from(f32::from_bits(x as u32));
                let (ulps, subnormal) = ulps_f32(f32::from_bits(got as u32), x.powf(f64::from(y)));
                worst[usize::from(subnormal)].see(ulps, x);
            }
        }
    }
    let [normal, subnormal] = worst;
    println!("pow.f32: {normal} {subnormal}");
    assert!(normal.ulps < 0.6 && subnormal.ulps < 0.6, "{normal} {subnormal}");
}

#[test]
fn f32_is_within_an_ulp() {
    check_f32(stride(251) as usize);
}

#[test]
fn f64_is_within_an_ulp() {
    let [normal, subnormal] = Table::read("pow_f64.txt").check(&pow(DType::F64));
    println!("pow.f64: {normal} {subnormal}");
    assert!(normal.ulps < 1.0 && subnormal.ulps < 1.0, "{normal} {subnormal}");
}

#[test]
fn special_values() {
    let inf = f64::INFINITY;
    for dtype in [DType::F32, DType::F64] {
        let d = pow(dtype);
        let f = |x: f64, y: f64| eval1(&d, &[Scalar::float(dtype, x), Scalar::float(dtype, y)]);
        let is = |x: f64, y: f64, want: f64| assert_eq!(f(x, y), Scalar::float(dtype, want), "{x}^{y} {dtype}");
        for y in [1.0, 1.5, 2.0, 3.3, 1e-3, 1e-30, 0.5, 1e30, f64::from(f32::MAX)] {
            is(0.0, y, 0.0);
            is(-0.0, y, 0.0);
            is(inf, y, inf);
            is(1.0, y, 1.0);
            is(0.0, -y, inf);
            is(inf, -y, 0.0);
            assert!(f(f64::NAN, y).is_nan());
            let payload = Scalar::from_bits(dtype, Scalar::float(dtype, inf).bits() + 1);
            assert!(eval1(&d, &[payload, Scalar::float(dtype, y)]).is_nan());
        }
        for x in [0.0, 1e-30, 1.0, 2.5, 1e30, inf, f64::NAN] {
            is(x, 0.0, 1.0);
            is(x, -0.0, 1.0);
        }
        for (x, y, want) in
            [(2.0, 10.0, 1024.0), (4.0, 0.5, 2.0), (2.0, -3.0, 0.125), (1e30, 1e30, inf), (0.5, 1e30, 0.0)]
        {
            is(x, y, want);
        }
        let most = Scalar::from_bits(dtype, Scalar::highest(dtype).bits() - 1);
        for x in [Scalar::from_bits(dtype, 1), most] {
            assert_eq!(eval1(&d, &[x, Scalar::float(dtype, 1.0)]), x, "x^1");
        }
    }
}

#[test]
fn small_powers_multiply_in_the_documented_order() {
    for x in [-3.7f64, 0.3, 1.1, 123.456, -0.0, 1e200, f64::NEG_INFINITY] {
        let a = x.abs();
        let a2 = a * a;
        let a4 = a2 * a2;
        let want = [a, a2, a2 * a, a4, a4 * a, a4 * a2, a4 * a2 * a, a4 * a4];
        for (p, want) in (1..=8).zip(want) {
            assert_eq!(eval1(&pow_int(DType::F64, p), &[Scalar::f64(x)]), Scalar::f64(want), "{x}^{p}");
        }
        let a = a as f32;
        let (a2, a4) = (a * a, (a * a) * (a * a));
        let want = [a, a2, a2 * a, a4, a4 * a, a4 * a2, a4 * a2 * a, a4 * a4];
        for (p, want) in (1..=8).zip(want) {
            let def = pow_int(DType::F32, p);
            assert_eq!(def.name, format!("pow{p}.f32"));
            assert_eq!(eval1(&def, &[Scalar::f32(x as f32)]), Scalar::f32(want), "{x}^{p}");
        }
    }
}

#[test]
fn they_are_as_short_as_documented() {
    assert_eq!(Program::new(&pow(DType::F32)).ops(), 40);
    assert_eq!(Program::new(&pow(DType::F64)).ops(), 98);
}
