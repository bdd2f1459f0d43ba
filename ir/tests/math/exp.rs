//! `exp` and `exp_below` against a better one.

use crate::accuracy::{Table, Worst, stride, sweep_f32};
use crate::eval::{BLOCK, Program, eval, eval1};
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

/// Both functions at -|x|, an argument that each of them takes.
fn both_below(dtype: DType) -> Def {
    Def::build("both", &[dtype], |lets, args| {
        let x = lets.bind(args[0].clone().abs().neg());
        [exp(dtype), exp_below(dtype)].iter().flat_map(|def| lets.splice(def, std::slice::from_ref(&x))).collect()
    })
}

#[test]
fn f32_below_zero_has_the_same_bits() {
    let mut program = Program::new(&both_below(DType::F32));
    let mut all = (0..1u64 << 31).step_by(stride(1) as usize).peekable();
    while all.peek().is_some() {
        let block: Vec<u64> = all.by_ref().take(BLOCK).collect();
        program.run(&[&block]);
        let results = program.result(0).iter().zip(program.result(1));
        for (x, (a, b)) in block.iter().zip(results) {
            let is_nan = |bits: u64| f32::from_bits(bits as u32).is_nan();
            assert!(a == b || is_nan(*a) && is_nan(*b), "-{}: {a:x} {b:x}", f32::from_bits(*x as u32));
        }
    }
}

#[test]
fn f64_below_zero_has_the_same_bits() {
    let def = both_below(DType::F64);
    let near = [0.0, 1e-300, 1.0, 708.3, 708.4, 708.5, 745.1, 745.2, 746.0, 1e4, f64::MAX, f64::INFINITY];
    let spread = (0..40_000).map(|k| f64::from(k) * 0.018_740_231);
    for x in near.into_iter().flat_map(|x: f64| [x.next_down(), x, x.next_up()]).chain(spread) {
        let results = eval(&def, &[Scalar::f64(x)]);
        assert!(results[0] == results[1] || results.iter().all(|r| r.is_nan()), "-{x}: {results:?}");
    }
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
    assert_eq!(Program::new(&exp(DType::F32)).ops(), 15);
    assert_eq!(Program::new(&exp(DType::F64)).ops(), 20);
    assert_eq!(Program::new(&exp_below(DType::F32)).ops(), 13);
    assert_eq!(Program::new(&exp_below(DType::F64)).ops(), 18);
}
