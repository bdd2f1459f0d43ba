//! `canon`, `fmax` and `fmin` on a table of special values, each with each.

use crate::eval::{Program, eval1};
use cranefold_ir::math::{canon, fmax, fmin};
use cranefold_ir::{DType, Op, Scalar};

/// Values of each kind, NaNs of several payloads and signs among them.
fn specials(dtype: DType) -> Vec<Scalar> {
    let bits = dtype.bits();
    let inf = Scalar::float(dtype, f64::INFINITY).bits();
    let one = Scalar::float(dtype, 1.0).bits();
    let quiet = Scalar::nan(dtype).bits();
    let least_normal = 1 << (dtype.significand_bits().expect("a float") - 1);
    let magnitudes = [
        0,
        1,
        2,
        least_normal - 1,
        least_normal,
        one - 1,
        one,
        one + 1,
        inf - 1,
        inf,
        inf + 1,
        quiet - 1,
        quiet,
        quiet + 1,
        (1 << (bits - 1)) - 1,
    ];
    magnitudes.iter().flat_map(|&m| [m, m | 1 << (bits - 1)]).map(|b| Scalar::from_bits(dtype, b)).collect()
}

#[test]
fn canon_changes_only_nans() {
    for dtype in [DType::F32, DType::F64] {
        for x in specials(dtype) {
            let want = if x.is_nan() { Scalar::nan(dtype) } else { x };
            assert_eq!(eval1(&canon(dtype), &[x]), want, "{x}");
        }
    }
}

#[test]
fn max_and_min_are_those_of_the_operations() {
    for dtype in [DType::F32, DType::F64] {
        for a in specials(dtype) {
            for b in specials(dtype) {
                for (def, op) in [(fmax(dtype), Op::Max), (fmin(dtype), Op::Min)] {
                    let got = eval1(&def, &[a, b]);
                    let nan = a.is_nan() || b.is_nan();
                    let want = if nan { Scalar::nan(dtype) } else { op.eval(dtype, &[a, b]) };
                    assert_eq!(got, want, "{} {a} {b}", def.name);
                }
            }
        }
    }
}

#[test]
fn max_and_min_order_zeros_and_infinities() {
    let f = |def, a, b| f32::from_bits(eval1(&def, &[Scalar::f32(a), Scalar::f32(b)]).bits() as u32);
    let inf = f32::INFINITY;
    for (a, b, max, min) in
        [(0.0, -0.0, 0.0, -0.0), (-0.0, -0.0, -0.0, -0.0), (-inf, -inf, -inf, -inf), (inf, -1.0, inf, -1.0)]
    {
        for (a, b) in [(a, b), (b, a)] {
            assert_eq!(f(fmax(DType::F32), a, b).to_bits(), f32::to_bits(max));
            assert_eq!(f(fmin(DType::F32), a, b).to_bits(), f32::to_bits(min));
        }
    }
}

#[test]
fn they_are_as_short_as_documented() {
    assert_eq!(Program::new(&canon(DType::F32)).ops(), 2);
    assert_eq!(Program::new(&fmax(DType::F32)).ops(), 7);
    assert_eq!(Program::new(&fmin(DType::F64)).ops(), 7);
}
