//! The roundings to integer values and the sign against the standard library's.

use crate::accuracy::stride;
use crate::eval::{BLOCK, Program, eval1};
use cranefold_ir::math::{ceil, floor, sign, trunc};
use cranefold_ir::{DType, Def, Scalar};

fn signum(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() { x } else { x.signum() }
}

/// A function that makes a definition for a type.
type Function = fn(DType) -> Def;

/// A function beside that of f64.
type Pair = (Function, fn(f64) -> f64);

/// Each function with the standard library's of f64, which gives an f32 for an f32.
const ALL: [Pair; 4] = [(floor, f64::floor), (ceil, f64::ceil), (trunc, f64::trunc), (sign, signum)];

#[test]
fn f32_is_exact_with_its_sign() {
    for (function, want) in ALL {
        let def = function(DType::F32);
        let mut program = Program::new(&def);
        let mut inputs = (0..1u64 << 32).step_by(stride(1) as usize * 8).peekable();
        while inputs.peek().is_some() {
            let block: Vec<u64> = inputs.by_ref().take(BLOCK).collect();
            program.run(&[&block]);
            for (&x, &got) in block.iter().zip(program.result(0)) {
                let (x, got) = (f32::from_bits(x as u32), f32::from_bits(got as u32));
                let want = want(f64::from(x)) as f32;
                assert!(
                    got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                    "{} of {x:e}: {got:e}",
                    def.name
                );
            }
        }
    }
}

#[test]
fn corners_are_exact_with_their_signs() {
    let numbers = [0.0, 0.3, 0.5, 0.7, 1.0, 1.5, 2.5, 4503599627370495.5, 8388607.5, 9007199254740993.0, 1e-310, 1e300];
    for (function, want) in ALL {
        for dtype in [DType::F32, DType::F64] {
            for x in numbers.into_iter().chain([f64::INFINITY, f64::NAN]).flat_map(|x| [x, -x]) {
                let x = Scalar::float(dtype, x);
                let got = eval1(&function(dtype), &[x]);
                let want = Scalar::float(dtype, want(x.as_f64()));
                assert!(got == want || got.is_nan() && want.is_nan(), "{} of {x}: {got}", function(dtype).name);
            }
        }
    }
}

#[test]
fn integers_have_a_sign() {
    for dtype in DType::ALL.into_iter().filter(|d| d.is_int()) {
        let (low, high) = dtype.int_range().unwrap();
        for x in [low, -1, 0, 1, 2, high].into_iter().filter(|&x| x >= low) {
            let got = eval1(&sign(dtype), &[Scalar::int(dtype, x)]);
            assert_eq!(got, Scalar::int(dtype, x.signum()), "{dtype} {x}");
        }
    }
}
