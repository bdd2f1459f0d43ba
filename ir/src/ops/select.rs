//! Order statistics of a slice.
//!
//! NaN is greatest in the order of elements, so the last element is NaN if there is one.

use super::float::give;
use super::{Method, Reducer, RowTypes, integer};
use crate::{DType, Def, Expr, Lets, Scalar, Selection};
use DType::{F32, F64};

/// A reducer that selects elements at positions of the sorted slice; `finish` gets them.
fn nth(types: &RowTypes, positions: Vec<u64>, finish: impl FnOnce(&mut Lets, &[Expr]) -> Expr) -> Reducer {
    let lift = as_comparable(types);
    let dtype = lift.results[0].dtype();
    // An empty slice has no element at a position, and a float result is NaN.
    let nothing = vec![if dtype.is_float() { Scalar::nan(dtype) } else { Scalar::zero(dtype) }; positions.len()];
    let elements = vec![dtype; positions.len()];
    let finish = Def::build("finish", &elements, |lets, args| match types.count == 0 && types.output.is_float() {
        true => vec![Scalar::nan(types.output).into()],
        false => vec![finish(lets, args)],
    });
    let method = Method::Select { lift, what: Selection::Nth(positions) };
    Reducer { method, finish, reads: vec![], nothing, apply: None }
}

/// The lift of an element for comparison: halves exactly in f32.
fn as_comparable(types: &RowTypes) -> Def {
    let half = types.input.is_float() && types.input.bytes() < 4;
    Def::build("value", &[types.input], |_, args| vec![if half { args[0].clone().cast(F32) } else { args[0].clone() }])
}

/// A float value in the output's type; NaN if the greatest element is NaN.
fn give_unless_nan(lets: &mut Lets, value: Expr, greatest: &Expr, types: &RowTypes) -> Expr {
    let nan = Scalar::nan(value.dtype()).into();
    let value = greatest.clone().is_nan().select(nan, value);
    give(lets, value, types)
}

/// The last position of a slice, and those around the middle.
fn middle(types: &RowTypes) -> [u64; 3] {
    let last = types.count.saturating_sub(1);
    [last / 2, types.count / 2, last].map(|p| p.min(last))
}

/// The mean of the two middle elements.
pub(super) fn median(types: &RowTypes) -> Reducer {
    let [low, high, last] = middle(types);
    if !types.is_float() {
        return nth(types, vec![low, high], |lets, args| integer::mean_of_two(lets, &args[0], &args[1], types));
    }
    nth(types, vec![low, high, last], |lets, args| {
        let [low, high, greatest] = [0, 1, 2].map(|i| args[i].clone().cast(types.accumulator));
        let sum = lets.bind(low.clone().add(high.clone()));
        let half = sum.float(0.5);
        // If the sum overflows, the sum of the halves does not.
        let largest = sum.float(if types.accumulator == F64 { f64::MAX } else { f64::from(f32::MAX) });
        let finite = sum.clone().abs().le(largest);
        let of_halves = low.clone().mul(half.clone()).add(high.clone().mul(half.clone()));
        let mean = finite.select(sum.mul(half), of_halves);
        // Two equal elements are their own mean, infinite ones too.
        let mean = low.clone().eq(high).select(low, mean);
        give_unless_nan(lets, mean, &greatest, types)
    })
}

/// The lower of the two middle elements.
pub(super) fn median_low(types: &RowTypes) -> Reducer {
    let [low, _, last] = middle(types);
    if !types.is_float() {
        return nth(types, vec![low], |lets, args| {
            integer::give(lets, args[0].clone(), &RowTypes { saturate: true, ..types.clone() })
        });
    }
    nth(types, vec![low, last], |lets, args| {
        let [low, greatest] = [0, 1].map(|i| args[i].clone().cast(types.accumulator));
        give_unless_nan(lets, low, &greatest, types)
    })
}

/// Linear interpolation between the elements around position q (n - 1): an infinite one of them is the value, and
/// NaN lies between -inf and +inf.
pub(super) fn quantile(types: &RowTypes) -> Reducer {
    let last = types.count.saturating_sub(1);
    let at = types.params[0] * last as f64;
    let low = (at as u64).min(last);
    let part = at - low as f64;
    nth(types, vec![low, (low + 1).min(last), last], |lets, args| {
        let [low, high, greatest] = [0, 1, 2].map(|i| args[i].clone().cast(types.accumulator));
        // At the position of an element the result is that element.
        if part == 0.0 {
            return give_unless_nan(lets, low, &greatest, types);
        }
        let share = low.float(part);
        let distance = lets.bind(high.clone().sub(low.clone()));
        // If the distance of finite elements overflows, the parts of each do not.
        let rest = low.float(1.0 - part);
        let of_parts = low.clone().mul(rest).add(high.clone().mul(share.clone()));
        let infinity = || low.float(f64::INFINITY);
        let finite = |x: &Expr| x.clone().abs().lt(infinity());
        let by_distance = low.clone().add(distance.clone().mul(share.clone()));
        let between = finite(&distance).select(by_distance, of_parts);
        // The lower element is the result if both are equal, or the share is 0 in the accumulator's type.
        let exact = share.clone().eq(share.float(0.0)).or(low.clone().eq(high.clone()));
        let of_finite = exact.select(low.clone(), between);
        // Any share of an infinite element is infinite, and between the two infinities lies NaN.
        let of_infinite = low.clone().add(high.clone());
        let value = finite(&low).and(finite(&high)).select(of_finite, of_infinite);
        give_unless_nan(lets, value, &greatest, types)
    })
}

/// The least of the most frequent elements, and how often it occurs.
pub(super) fn mode(types: &RowTypes) -> Reducer {
    let lift = as_comparable(types);
    let dtype = lift.results[0].dtype();
    let finish = Def::build("finish", &[dtype, DType::I64], |lets, args| {
        let value = match dtype.is_float() {
            true => give(lets, args[0].clone().cast(types.accumulator), types),
            false => integer::give(lets, args[0].clone(), &RowTypes { saturate: true, ..types.clone() }),
        };
        vec![value, args[1].clone().cast(types.count_output)]
    });
    let nothing =
        vec![if dtype.is_float() { Scalar::nan(dtype) } else { Scalar::zero(dtype) }, Scalar::int(DType::I64, 0)];
    let method = Method::Select { lift, what: Selection::Mode };
    Reducer { method, finish, reads: vec![], nothing, apply: None }
}
