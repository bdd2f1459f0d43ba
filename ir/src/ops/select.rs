//! Order statistics: what is found in a slice by the order of its elements.
//!
//! NaN is greatest in that order, so the last element tells whether there is one.

use super::float::give;
use super::{Method, Reducer, Request, integer};
use crate::{DType, Def, Expr, Lets, Scalar, Selection};
use DType::{F32, F64};

/// A reducer that selects elements at positions of the sorted slice; `finish` gets them.
fn nth(request: &Request, positions: Vec<u64>, finish: impl FnOnce(&mut Lets, &[Expr]) -> Expr) -> Reducer {
    let lift = as_comparable(request);
    let dtype = lift.results[0].dtype();
    // Over nothing there is no element at a position, and a float result is NaN.
    let nothing = vec![if dtype.is_float() { Scalar::nan(dtype) } else { Scalar::zero(dtype) }; positions.len()];
    let types = vec![dtype; positions.len()];
    let finish = Def::build("finish", &types, |lets, args| match request.count == 0 && request.output.is_float() {
        true => vec![Scalar::nan(request.output).into()],
        false => vec![finish(lets, args)],
    });
    let method = Method::Select { lift, what: Selection::Nth(positions) };
    Reducer { method, finish, reads: vec![], nothing, apply: None }
}

/// The element as it is compared: halves exactly in f32.
fn as_comparable(request: &Request) -> Def {
    let half = request.input.is_float() && request.input.bytes() < 4;
    Def::build("value", &[request.input], |_, args| {
        vec![if half { args[0].clone().cast(F32) } else { args[0].clone() }]
    })
}

/// A value of floats in the output's type; NaN where the greatest element is NaN.
fn give_unless_nan(lets: &mut Lets, value: Expr, greatest: &Expr, request: &Request) -> Expr {
    let nan = Scalar::nan(value.dtype()).into();
    let value = greatest.clone().is_nan().select(nan, value);
    give(lets, value, request)
}

/// The last position of a slice, and those around the middle.
fn middle(request: &Request) -> [u64; 3] {
    let last = request.count.saturating_sub(1);
    [last / 2, request.count / 2, last].map(|p| p.min(last))
}

/// The mean of the two middle elements.
pub(super) fn median(request: &Request) -> Reducer {
    let [low, high, last] = middle(request);
    if !request.is_float() {
        return nth(request, vec![low, high], |lets, args| integer::mean_of_two(lets, &args[0], &args[1], request));
    }
    nth(request, vec![low, high, last], |lets, args| {
        let [low, high, greatest] = [0, 1, 2].map(|i| args[i].clone().cast(request.accumulator));
        let sum = lets.bind(low.clone().add(high.clone()));
        let half = sum.float(0.5);
        // Where the sum overflows, the halves do not.
        let largest = sum.float(if request.accumulator == F64 { f64::MAX } else { f64::from(f32::MAX) });
        let finite = sum.clone().abs().le(largest);
        let of_halves = low.clone().mul(half.clone()).add(high.clone().mul(half.clone()));
        let mean = finite.select(sum.mul(half), of_halves);
        // Equal elements are their mean, infinite ones too.
        let mean = low.clone().eq(high).select(low, mean);
        give_unless_nan(lets, mean, &greatest, request)
    })
}

/// The lower of the two middle elements.
pub(super) fn median_low(request: &Request) -> Reducer {
    let [low, _, last] = middle(request);
    if !request.is_float() {
        return nth(request, vec![low], |lets, args| {
            integer::give(lets, args[0].clone(), &Request { saturate: true, ..request.clone() })
        });
    }
    nth(request, vec![low, last], |lets, args| {
        let [low, greatest] = [0, 1].map(|i| args[i].clone().cast(request.accumulator));
        give_unless_nan(lets, low, &greatest, request)
    })
}

/// Linear interpolation between the elements around position q (n - 1): an infinite one of them is the value, and
/// NaN lies between -inf and +inf.
pub(super) fn quantile(request: &Request) -> Reducer {
    let last = request.count.saturating_sub(1);
    let at = request.params[0] * last as f64;
    let low = (at as u64).min(last);
    let part = at - low as f64;
    nth(request, vec![low, (low + 1).min(last), last], |lets, args| {
        let [low, high, greatest] = [0, 1, 2].map(|i| args[i].clone().cast(request.accumulator));
        // On an element nothing is computed.
        if part == 0.0 {
            return give_unless_nan(lets, low, &greatest, request);
        }
        let share = low.float(part);
        let distance = lets.bind(high.clone().sub(low.clone()));
        // Where the distance of finite elements overflows, parts of them do not.
        let rest = low.float(1.0 - part);
        let of_parts = low.clone().mul(rest).add(high.clone().mul(share.clone()));
        let infinity = || low.float(f64::INFINITY);
        let finite = |x: &Expr| x.clone().abs().lt(infinity());
        let by_distance = low.clone().add(distance.clone().mul(share.clone()));
        let between = finite(&distance).select(by_distance, of_parts);
        // Between equal elements nothing is computed, nor where the share is 0 in the accumulator's type.
        let exact = share.clone().eq(share.float(0.0)).or(low.clone().eq(high.clone()));
        let of_finite = exact.select(low.clone(), between);
        // Any share of an infinite element is infinite, and the two infinities have nothing between them.
        let of_infinite = low.clone().add(high.clone());
        let value = finite(&low).and(finite(&high)).select(of_finite, of_infinite);
        give_unless_nan(lets, value, &greatest, request)
    })
}

/// The least of the most frequent elements, and how often it occurs.
pub(super) fn mode(request: &Request) -> Reducer {
    let lift = as_comparable(request);
    let dtype = lift.results[0].dtype();
    let finish = Def::build("finish", &[dtype, DType::I64], |lets, args| {
        let value = match dtype.is_float() {
            true => give(lets, args[0].clone().cast(request.accumulator), request),
            false => integer::give(lets, args[0].clone(), &Request { saturate: true, ..request.clone() }),
        };
        vec![value, args[1].clone().cast(request.count_output)]
    });
    let nothing =
        vec![if dtype.is_float() { Scalar::nan(dtype) } else { Scalar::zero(dtype) }, Scalar::int(DType::I64, 0)];
    let method = Method::Select { lift, what: Selection::Mode };
    Reducer { method, finish, reads: vec![], nothing, apply: None }
}
