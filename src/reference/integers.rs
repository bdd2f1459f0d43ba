//! Integers, exactly.
//!
//! | op | before the result is wrapped or clamped to an integer output, or becomes a float |
//! | --- | --- |
//! | `sum l1 sum_squares` | the total |
//! | `prod` to an integer without `saturate` | the product modulo 2^64 |
//! | `prod` else | sign, and a magnitude that sticks at 2^64 - 1; zero wins |
//! | `min max` | the element; over nothing the limit of the input's type |
//! | `mean` to an integer | total / n, towards zero or to nearest even |
//! | `l2` to an integer | the floor of the root of the total, or the nearest integer |
//! | `mean l2` to a float | total to the nearest f64, then divided or the root taken in f64 |

use super::exact::{Exact, Value};
use super::real::Real;
use super::walk::Slice;
use super::wide::{Integer, U256};
use crate::spec::{Reduction, Rounding};
use cranefold_ir::{DType, Scalar};

/// Reduces integers.
pub fn reduce(spec: &Reduction, slice: &Slice) -> Exact {
    let input = spec.inputs()[0].dtype();
    let to_int = spec.outputs()[0].dtype().is_int();
    let half_even = spec.rounding() == Rounding::HalfEven;
    let (low, high) = input.int_range().expect("an integer type");
    let values = || slice.elements().map(value);
    let total = |lift: fn(i128) -> Integer| values().map(lift).fold(Integer::default(), Integer::plus);
    let square = |x: i128| Integer::new(false, U256::product(x.unsigned_abs(), x.unsigned_abs()));

    let result = match spec.row().name {
        "sum" => total(Integer::from),
        "l1" => total(|x| Integer::from(x.abs())),
        "sum_squares" => total(square),
        "prod" if to_int && !spec.saturate() => {
            Integer::from(values().fold(1, |product: i128, x| i128::from((product as u64).wrapping_mul(x as u64))))
        }
        "prod" => sticking_product(values()),
        "min" => Integer::from(values().fold(high, i128::min)),
        "max" => Integer::from(values().fold(low, i128::max)),
        "mean" if to_int => total(Integer::from).divided_by(slice.count(), half_even),
        "l2" if to_int => {
            let total = total(square).magnitude();
            let root = total.square_root();
            // root + 1/2 is never the root of an integer, so there are no ties.
            let past_half = half_even && total.minus(U256::product(root, root)) > U256::new(0, root);
            Integer::new(false, U256::new(0, root).plus(U256::new(0, u128::from(past_half))))
        }
        "mean" => return finished(as_f64(total(Integer::from)) / slice.count() as f64),
        "l2" => return finished(as_f64(total(square)).sqrt()),
        name => unreachable!("{name} takes no integers"),
    };
    Exact::certain(Value::Int(result))
}

/// An integer element.
pub fn value(element: Scalar) -> i128 {
    element.as_int().expect("an integer")
}

fn sticking_product(values: impl Iterator<Item = i128>) -> Integer {
    let (mut negative, mut magnitude) = (false, 1u64);
    for x in values {
        negative ^= x < 0;
        // Magnitudes are below 2^64; once stuck, only a zero changes it.
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
