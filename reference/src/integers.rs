//! Reductions of integers, exact.
//!
//! | op | before the result is wrapped or clamped to an integer output, or becomes a float |
//! | --- | --- |
//! | `sum l1 sum_squares` | the total |
//! | `prod` to an integer without `saturate` | the product modulo 2^64 |
//! | `prod` else | sign, and a magnitude that sticks at 2^64 - 1; zero wins |
//! | `min max` | the element; over nothing the limit of the input's type |
//! | `linf` | the greatest magnitude; over nothing 0 |
//! | `ptp` | the greatest less the least; over nothing, to a float, NaN |
//! | `bit_and bit_or bit_xor` | the element of the input's type that these bits are |
//! | `median median_low` | the lower of the middle two; or their mean |
//! | `mean` to an integer | total / n, towards zero or to nearest even |
//! | `l2` to an integer | the floor of the root of the total, or the nearest integer |
//! | `mean l2` to a float | total to the nearest f64, then divided or the root taken in f64 |

use super::exact::{Exact, Value};
use super::meaning::OfSlice;
use super::real::Real;
use super::rows::Task;
use super::selection;
use super::wide::{Integer, U256};
use cranefold_ir::{DType, Scalar};

/// The result of integers; none if the reduction takes no integers.
pub fn reduce<I: Iterator<Item = i128>>(op: OfSlice, task: &Task, count: u64, values: impl Fn() -> I) -> Option<Exact> {
    let to_int = task.to.is_int();
    let (low, high) = task.input.int_range().expect("an integer type");
    let total = |lift: fn(i128) -> Integer| values().map(lift).fold(Integer::default(), Integer::plus);
    let square = |x: i128| Integer::new(false, U256::product(x.unsigned_abs(), x.unsigned_abs()));
    let bits = |x: i128| Integer::from(Scalar::int(task.input, x).as_int().expect("an integer"));
    let (least, greatest) = (|| values().fold(high, i128::min), || values().fold(low, i128::max));

    let of_nothing = Exact::certain(Value::Float(Real::Nan));
    let result = match op {
        OfSlice::Sum => total(Integer::from),
        OfSlice::L1 => total(|x| Integer::from(x.abs())),
        OfSlice::SumSquares => total(square),
        OfSlice::Prod if to_int && !task.saturate => {
            Integer::from(values().fold(1, |product: i128, x| i128::from((product as u64).wrapping_mul(x as u64))))
        }
        OfSlice::Prod => sticking_product(values()),
        OfSlice::Min => Integer::from(least()),
        OfSlice::Max => Integer::from(greatest()),
        OfSlice::Linf => Integer::from(values().map(i128::abs).fold(0, i128::max)),
        OfSlice::Ptp if count == 0 => return Some(of_nothing),
        OfSlice::Ptp => Integer::from(greatest() - least()),
        OfSlice::BitAnd => bits(values().fold(-1, |a, b| a & b)),
        OfSlice::BitOr => bits(values().fold(0, |a, b| a | b)),
        OfSlice::BitXor => bits(values().fold(0, |a, b| a ^ b)),
        OfSlice::Median | OfSlice::MedianLow if count == 0 => return Some(of_nothing),
        OfSlice::Median => return Some(selection::middle(true, task, values())),
        OfSlice::MedianLow => return Some(selection::middle(false, task, values())),
        OfSlice::Mean if to_int => total(Integer::from).divided_by(count, task.half_even),
        OfSlice::L2 if to_int => {
            let total = total(square).magnitude();
            let root = total.square_root();
            // root + 1/2 is never the root of an integer, so there are no ties.
            let past_half = task.half_even && total.minus(U256::product(root, root)) > U256::new(0, root);
            Integer::new(false, U256::new(0, root).plus(U256::new(0, u128::from(past_half))))
        }
        OfSlice::Mean => return Some(finished(as_f64(total(Integer::from)) / count as f64)),
        OfSlice::L2 => return Some(finished(as_f64(total(square)).sqrt())),
        OfSlice::Any | OfSlice::All | OfSlice::LogSum | OfSlice::LogSumExp | OfSlice::Norm(_) => return None,
        OfSlice::ArgMax | OfSlice::ArgMin | OfSlice::CountNonzero | OfSlice::Mode => return None,
        OfSlice::SumExp | OfSlice::MeanPair => return None,
        OfSlice::Var | OfSlice::Std | OfSlice::Quantile => return None,
    };
    Some(Exact::certain(Value::Int(result)).wrapping(task.wraps))
}

fn sticking_product(values: impl Iterator<Item = i128>) -> Integer {
    let (mut negative, mut magnitude) = (false, 1u64);
    for x in values {
        negative ^= x < 0;
        // Magnitudes are below 2^64; a saturated one changes only to zero.
        magnitude = magnitude.saturating_mul(x.unsigned_abs() as u64);
    }
    Integer::new(negative, U256::new(0, u128::from(magnitude)))
}

fn as_f64(total: Integer) -> f64 {
    f64::from_bits(Real::from(total).to_float(DType::F64).bits())
}

fn finished(value: f64) -> Exact {
    Exact::certain(Value::Float(Real::from(value)))
}
