//! `scale` and `scale_down` against the operations that they stand for.

use crate::eval::{Program, eval1};
use cranefold_ir::math::scale::{offset, scale, scale_by, scale_down, scale_down_by};
use cranefold_ir::{DType, Op, Scalar};

/// Significands from 1/2 to 2 of every kind, with both signs: ends, ties of every length, and others.
fn significands(dtype: DType) -> Vec<Scalar> {
    let fraction = u64::from(dtype.significand_bits().expect("a float")) - 1;
    let one = Scalar::float(dtype, 1.0).bits();
    let ties = (0..fraction).flat_map(|k| [1u64 << k, 3 << k, (1 << k) - 1, (1 << k) + 1]);
    let others = (1..50u64).map(|k| k.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let of = |bits: u64| bits & ((1 << fraction) - 1);
    let above = ties.chain(others).chain([0]).map(of).map(|bits| one | bits);
    let all = above.flat_map(|bits| [bits, bits - (1 << fraction)]).chain([one + (1 << fraction)]);
    let sign = 1u64 << (dtype.bits() - 1);
    all.flat_map(|bits| [bits, bits | sign]).map(|bits| Scalar::from_bits(dtype, bits)).collect()
}

fn check(dtype: DType, powers: impl Iterator<Item = i32> + Clone, is_down: bool) {
    let (op, def, by) = match is_down {
        true => (Op::ScaleDown, scale_down(dtype), scale_down_by(dtype)),
        false => (Op::Scale, scale(dtype), scale_by(dtype)),
    };
    let mut subnormal = 0;
    for a in significands(dtype) {
        for n in powers.clone() {
            let args = [a, Scalar::float(dtype, n.into())];
            let (got, want) = (eval1(&def, &args), op.eval(dtype, &args));
            assert_eq!(got, want, "{} {a} {n}", def.name);
            let sum = Op::Add.eval(dtype, &[args[1], offset(op, dtype)]);
            assert_eq!(Op::Sub.eval(dtype, &[sum, offset(op, dtype)]), args[1], "the sum is exact");
            assert_eq!(eval1(&by, &[a, sum]), want, "{} {a} {n}", by.name);
            if dtype == DType::F32 {
                // The product in f64 is exact and is rounded once.
                let exact = a.as_f64() * 2f64.powi(n);
                assert_eq!(want, Scalar::f32(exact as f32), "{a} {n}");
                subnormal += usize::from(exact.abs() < f64::from(f32::MIN_POSITIVE));
            }
        }
    }
    assert!(dtype == DType::F64 || subnormal > 1000, "{subnormal} results below the normal numbers");
}

#[test]
fn definitions_have_the_bits_of_the_operations() {
    check(DType::F32, -252..=252, false);
    check(DType::F32, -190..=0, true);
    check(DType::F64, (-2044..=2044).step_by(73), false);
    check(DType::F64, (-1534..=0).step_by(59), true);
}

#[test]
fn f64_is_rounded_once() {
    let scaled = |a: f64, n: f64| Op::Scale.eval(DType::F64, &[Scalar::f64(a), Scalar::f64(n)]).as_f64();
    let least = f64::from_bits(1);
    // 1.5 of the least number is a tie between two; a bit more or less is none.
    assert_eq!(scaled(1.5, -1074.0), 2.0 * least);
    assert_eq!(scaled(1.5f64.next_down(), -1074.0), least);
    assert_eq!(scaled(1.0, -1075.0), 0.0);
    assert_eq!(scaled(1f64.next_up(), -1075.0), least);
    assert_eq!(scaled(0.5, 1024.0), 2f64.powi(1023));
    assert_eq!(scaled(1f64.next_down(), 1024.0), f64::MAX);
    assert_eq!(scaled(1.0, 1024.0), f64::INFINITY);
}

#[test]
fn a_nan_passes() {
    for dtype in [DType::F32, DType::F64] {
        for n in [Scalar::float(dtype, -3.0), Scalar::nan(dtype)] {
            let args = [Scalar::nan(dtype), n];
            for (op, def) in [(Op::Scale, scale(dtype)), (Op::ScaleDown, scale_down(dtype))] {
                assert!(eval1(&def, &args).is_nan() && op.eval(dtype, &args).is_nan(), "{} {n}", def.name);
            }
        }
    }
}

#[test]
fn they_are_as_short_as_documented() {
    for dtype in [DType::F32, DType::F64] {
        let defs = [scale(dtype), scale_by(dtype), scale_down(dtype), scale_down_by(dtype)];
        assert_eq!(defs.map(|def| Program::new(&def).ops()), [7, 6, 4, 3]);
    }
}
