//! What the kernels are compared with: plain Rust loops, the `ndarray` crate, and the rate memory is read at.

pub mod memory;
mod nd;
mod plain;
mod walk;

pub use walk::Walk;

use crate::data::{Bits, Data};
use half::{bf16, f16};
use std::hint::black_box;

/// A way to compute a workload: it makes the outputs in the row-major order of their shape, and gives
/// their bits if asked to.
pub type Baseline<'a> = Box<dyn Fn(bool) -> Vec<u64> + 'a>;

/// The names of the baselines.
pub const BASELINES: [&str; 2] = ["loop", "ndarray"];

/// The [`BASELINES`] of a workload.
///
/// # Panics
/// If the op on that element type has no row below.
pub fn baselines<'a>(op: &str, data: &'a Data, walk: &'a Walk) -> [Baseline<'a>; 2] {
    let n = walk.count();
    /// Both ways of a fold: its zero, a step, the join of two, and what becomes of the last.
    macro_rules! folds {
        ($x:ident, $zero:expr, $step:expr, $join:expr, $finish:expr) => {
            [
                given(move || plain::reduce($x, walk, $zero, |a, x, _| $step(a, x), $finish)),
                given(move || nd::fold($x, walk, $zero, $step, $join, $finish)),
            ]
        };
    }
    /// As `folds`, of a sum in the type of the elements.
    macro_rules! sums {
        ($x:ident, $zero:expr, $add:expr, $finish:expr) => {
            [
                given(move || plain::reduce($x, walk, $zero, |a, x, _| $add(a, x), $finish)),
                given(move || nd::sum($x, walk, $finish)),
            ]
        };
    }
    match (op, data) {
        ("sum", Data::F32(x)) => sums!(x, 0.0, |a: f32, x: f32| a + x, |a| a),
        ("sum", Data::F64(x)) => sums!(x, 0.0, |a: f64, x: f64| a + x, |a| a),
        ("sum", Data::I32(x)) => sums!(x, 0, i32::wrapping_add, |a| a),
        ("sum", Data::I64(x)) => sums!(x, 0, i64::wrapping_add, |a| a),
        ("mean", Data::F32(x)) => sums!(x, 0.0, |a: f32, x: f32| a + x, move |a| a / n as f32),
        ("mean", Data::F64(x)) => sums!(x, 0.0, |a: f64, x: f64| a + x, move |a| a / n as f64),
        ("sum", Data::F16(x)) => folds!(x, 0.0, |a: f32, x: f16| a + x.to_f32(), |a, b| a + b, f16::from_f32),
        ("mean", Data::F16(x)) => {
            folds!(x, 0.0, |a: f32, x: f16| a + x.to_f32(), |a, b| a + b, move |a| f16::from_f32(a / n as f32))
        }
        ("mean", Data::Bf16(x)) => {
            folds!(x, 0.0, |a: f32, x: bf16| a + x.to_f32(), |a, b| a + b, move |a| bf16::from_f32(a / n as f32))
        }
        ("sum_squares", Data::F32(x)) => folds!(x, 0.0, |a: f32, x: f32| a + x * x, |a, b| a + b, |a| a),
        ("sum_squares", Data::F16(x)) => {
            let square = |a: f32, x: f16| a + x.to_f32() * x.to_f32();
            folds!(x, 0.0, square, |a, b| a + b, f16::from_f32)
        }
        ("l2", Data::F32(x)) => folds!(x, 0.0, |a: f32, x: f32| a + x * x, |a, b| a + b, f32::sqrt),
        ("l1", Data::F64(x)) => folds!(x, 0.0, |a: f64, x: f64| a + x.abs(), |a, b| a + b, |a| a),
        ("prod", Data::F32(x)) => folds!(x, 1.0, |a: f32, x: f32| a * x, |a, b| a * b, |a| a),
        ("sum", Data::I8(x)) => folds!(x, 0, |a: i32, x: i8| a + i32::from(x), |a, b| a + b, |a| a),
        ("sum", Data::U8(x)) => folds!(x, 0, |a: i32, x: u8| a + i32::from(x), |a, b| a + b, |a| a),
        ("mean", Data::U8(x)) => {
            let finish = move |a| (f64::from(a) / n as f64) as f32;
            folds!(x, 0, |a: u32, x: u8| a + u32::from(x), |a, b| a + b, finish)
        }
        ("mean", Data::I64(x)) => {
            let finish = move |a| (a / n as i128) as i64;
            folds!(x, 0, |a: i128, x: i64| a + i128::from(x), |a, b| a + b, finish)
        }
        ("max", Data::F32(x)) => folds!(x, f32::NEG_INFINITY, f32::max, f32::max, |a| a),
        ("max", Data::F16(x)) => folds!(x, f16::NEG_INFINITY, f16::max, f16::max, |a| a),
        ("max", Data::Bf16(x)) => folds!(x, bf16::NEG_INFINITY, bf16::max, bf16::max, |a| a),
        ("max", Data::I32(x)) => folds!(x, i32::MIN, i32::max, i32::max, |a| a),
        ("max", Data::U8(x)) => folds!(x, u8::MIN, u8::max, u8::max, |a| a),
        ("any", Data::Bool(x)) => folds!(x, false, |a, x| a | x, |a, b| a | b, |a| a),
        ("all", Data::Bool(x)) => folds!(x, true, |a, x| a & x, |a, b| a & b, |a| a),
        ("log_sum_exp", Data::F32(x)) => {
            [given(move || plain::log_sum_exp(x, walk)), given(move || nd::log_sum_exp(x, walk))]
        }
        _ => panic!("{op} has no row for that element type in benches/baselines"),
    }
}

/// A baseline from what makes its outputs.
fn given<'a, U: Copy + Into<Bits>>(outputs: impl Fn() -> Vec<U> + 'a) -> Baseline<'a> {
    Box::new(move |wanted| {
        let outputs = black_box(outputs());
        if wanted { outputs.into_iter().map(|x| x.into().0).collect() } else { vec![] }
    })
}
