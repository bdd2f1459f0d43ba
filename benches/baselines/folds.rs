//! Reductions that take one look at each element, and log(sum exp x), which takes two.

use super::typed::given;
use super::{Walk, Ways, Work, nd, plain};
use cranefold::DType;
use half::{bf16, f16};

/// The ways of an op that folds.
pub fn ways<'a>(work: &Work, walk: &'a Walk) -> Option<Ways<'a>> {
    let n = walk.count();
    /// Both ways of a fold: its zero, a step, the join of two, and what becomes of the last.
    macro_rules! folds {
        ($zero:expr, $step:expr, $join:expr, $finish:expr) => {
            [
                given(move |x: &[_]| plain::reduce(x, walk, $zero, |a, x, _| $step(a, x), $finish)),
                given(move |x: &[_]| nd::fold(x, walk, $zero, $step, $join, $finish)),
            ]
        };
    }
    /// As `folds`, of a sum in the type of the elements.
    macro_rules! sums {
        ($of:ty, $zero:expr, $add:expr, $finish:expr) => {
            [
                given(move |x: &[$of]| plain::reduce(x, walk, $zero, |a, x, _| $add(a, x), $finish)),
                given(move |x: &[$of]| nd::sum(x, walk, $finish)),
            ]
        };
    }
    Some(match (work.op.as_str(), work.dtype) {
        ("sum", DType::F32) => sums!(f32, 0.0, |a, x| a + x, |a| a),
        ("sum", DType::F64) => sums!(f64, 0.0, |a, x| a + x, |a| a),
        ("sum", DType::I32) => sums!(i32, 0, i32::wrapping_add, |a| a),
        ("sum", DType::I64) => sums!(i64, 0, i64::wrapping_add, |a| a),
        ("mean", DType::F32) => sums!(f32, 0.0, |a, x| a + x, move |a| a / n as f32),
        ("mean", DType::F64) => sums!(f64, 0.0, |a, x| a + x, move |a| a / n as f64),
        ("sum", DType::F16) => folds!(0.0, |a: f32, x: f16| a + x.to_f32(), |a, b| a + b, f16::from_f32),
        ("mean", DType::F16) => {
            folds!(0.0, |a: f32, x: f16| a + x.to_f32(), |a, b| a + b, move |a| f16::from_f32(a / n as f32))
        }
        ("mean", DType::Bf16) => {
            folds!(0.0, |a: f32, x: bf16| a + x.to_f32(), |a, b| a + b, move |a| bf16::from_f32(a / n as f32))
        }
        ("sum_squares", DType::F32) => folds!(0.0, |a: f32, x: f32| a + x * x, |a, b| a + b, |a| a),
        ("sum_squares", DType::F16) => {
            let square = |a: f32, x: f16| a + x.to_f32() * x.to_f32();
            folds!(0.0, square, |a, b| a + b, f16::from_f32)
        }
        ("l2", DType::F32) => folds!(0.0, |a: f32, x: f32| a + x * x, |a, b| a + b, f32::sqrt),
        ("l1", DType::F64) => folds!(0.0, |a: f64, x: f64| a + x.abs(), |a, b| a + b, |a| a),
        ("prod", DType::F32) => folds!(1.0, |a: f32, x: f32| a * x, |a, b| a * b, |a| a),
        ("sum", DType::I8) => folds!(0, |a: i32, x: i8| a + i32::from(x), |a, b| a + b, |a| a),
        ("sum", DType::U8) => folds!(0, |a: i32, x: u8| a + i32::from(x), |a, b| a + b, |a| a),
        ("mean", DType::U8) => {
            let finish = move |a| (f64::from(a) / n as f64) as f32;
            folds!(0, |a: u32, x: u8| a + u32::from(x), |a, b| a + b, finish)
        }
        ("mean", DType::I64) => {
            let finish = move |a| (a / n as i128) as i64;
            folds!(0, |a: i128, x: i64| a + i128::from(x), |a, b| a + b, finish)
        }
        ("max", DType::F32) => folds!(f32::NEG_INFINITY, f32::max, f32::max, |a| a),
        ("max", DType::F16) => folds!(f16::NEG_INFINITY, f16::max, f16::max, |a| a),
        ("max", DType::Bf16) => folds!(bf16::NEG_INFINITY, bf16::max, bf16::max, |a| a),
        ("max", DType::I32) => folds!(i32::MIN, i32::max, i32::max, |a| a),
        ("max", DType::U8) => folds!(u8::MIN, u8::max, u8::max, |a| a),
        ("any", DType::Bool) => folds!(false, |a: bool, x: bool| a | x, |a, b| a | b, |a| a),
        ("all", DType::Bool) => folds!(true, |a: bool, x: bool| a & x, |a, b| a & b, |a| a),
        ("log_sum_exp", DType::F32) => {
            [given(|x: &[f32]| plain::log_sum_exp(x, walk)), given(|x: &[f32]| nd::log_sum_exp(x, walk))]
        }
        ("linf", DType::F32) => folds!(0.0, |a: f32, x: f32| a.max(x.abs()), f32::max, |a| a),
        ("count_nonzero", DType::F32) => {
            folds!(0, |a: i64, x: f32| a + i64::from(x != 0.0), |a, b| a + b, |a| a)
        }
        ("ptp", DType::F32) => folds!(
            (f32::INFINITY, f32::NEG_INFINITY),
            |(least, greatest): (f32, f32), x: f32| (x.min(least), x.max(greatest)),
            |a: (f32, f32), b: (f32, f32)| (a.0.min(b.0), a.1.max(b.1)),
            |(least, greatest)| greatest - least
        ),
        _ => return None,
    })
}
