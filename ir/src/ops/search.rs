//! The position of the extreme element, by one visit of most elements.

use super::arg::{beyond, nearer};
use super::{RowTypes, Search};
use crate::{DType, Def, Expr, Lets, Op, Scalar};
use DType::{F32, F64, I32, I64};

/// The search for an extreme element by windows. A lane takes a better element than it has, or with `last` set one as
/// good, since windows come in the order of positions. Of lanes with equal elements the earliest window wins, with
/// `last` the latest.
///
/// Elements are compared themselves, small integers in 32 bits; floats up to 32 bits are compared by an integer that
/// orders them, see [`order_of`].
pub(super) fn search(types: &RowTypes, op: Op, last: bool) -> Search {
    let input = types.input;
    let has_order = input.is_float() && input != F64;
    let best = if input.bytes() < 4 || input == F32 { I32 } else { input };
    // Of the integers that order floats the greatest is the best.
    let greatest = has_order || op == Op::Max;
    // The condition on `best` selects it: 8 bytes beside 8 bytes, else the type of positions.
    let start = if best.bytes() == 8 { I64 } else { types.position };
    let worst = match (best, greatest) {
        (F64, true) => Scalar::f64(f64::NEG_INFINITY),
        (F64, false) => Scalar::f64(f64::INFINITY),
        (_, true) => Scalar::lowest(best),
        (_, false) => Scalar::highest(best),
    };
    let state = match has_order {
        true => vec![input.signed(), input.signed(), input.unsigned()],
        false => vec![input],
    };
    let keep = Def::build("keep", &[&[best, start][..], &state, &[start]].concat(), |lets, args| {
        let found = match has_order {
            true => order_of(lets, op, input, &args[2..5]),
            false => args[2].clone(),
        };
        let found = lets.bind(found.cast(best));
        let (better, equal) = compare(lets, greatest, &args[0], &found);
        let taken = lets.bind(if last { better.or(equal) } else { better });
        let here = args[args.len() - 1].clone();
        vec![taken.clone().select(found, args[0].clone()), taken.select(here, args[1].clone())]
    });
    let combine = Def::build("better", &[best, start, best, start], |lets, args| {
        let (better, equal) = compare(lets, greatest, &args[0], &args[2]);
        let better = lets.bind(better);
        let other = better.clone().select(args[3].clone(), args[1].clone());
        let start = equal.select(nearer(&args[1], &args[3], last), other);
        vec![better.select(args[2].clone(), args[0].clone()), start]
    });
    let close = Def::build("found", &[best], |lets, args| match input {
        F64 => vec![args[0].clone(), beyond(lets, &args[0], op)],
        _ if has_order => {
            let value = value_of(args[0].clone().cast(input.signed()), op, input).cast(F32);
            let value = lets.bind(value);
            let bound = beyond(lets, &value, op);
            vec![value, bound]
        }
        _ => vec![args[0].clone().cast(input)],
    });
    Search { identity: vec![worst, Scalar::zero(start)], keep, combine, close }
}

/// The conditions that `b` is better than `a`, and that both are as good.
fn compare(lets: &mut Lets, greatest: bool, a: &Expr, b: &Expr) -> (Expr, Expr) {
    let better = if greatest { a.clone().lt(b.clone()) } else { b.clone().lt(a.clone()) };
    let equal = a.clone().eq(b.clone());
    if a.dtype() != F64 {
        return (better, equal);
    }
    let (nan, nan2) = (lets.bind(a.clone().is_nan()), lets.bind(b.clone().is_nan()));
    (better.or(nan2.clone().and(nan.clone().not())), equal.or(nan.and(nan2)))
}

/// An integer that orders the extremes of states of [`extremes`](super::extreme::extremes): the greater the better, the
/// same for both zeros, and the greatest for any NaN:
///
/// ```text
/// greatest value m: the bits of |m|, negated where m < 0
/// least value m:    the order of -m
/// ```
fn order_of(lets: &mut Lets, op: Op, float: DType, state: &[Expr]) -> Expr {
    let [a, c, d] = state else { unreachable!("three parts") };
    let (a, c, d) = (a.clone(), c.clone(), d.clone());
    let bits = |v| i128::from(Scalar::float(float, v).bits());
    let is_nan = a.int(bits(f64::INFINITY)).lt(a.clone()).or(d.int(bits(f64::NEG_INFINITY)).lt(d.clone()));
    let sign = Expr::from(Scalar::lowest(float.signed()));
    let order = match op {
        Op::Max => a.clone().lt(a.int(0)).select(sign.sub(c), a.clone()),
        _ => {
            let least = lets.bind(d.bits(float.signed()));
            least.clone().lt(least.int(0)).select(least.sub(sign), c.int(0).sub(c))
        }
    };
    is_nan.select(Scalar::highest(float.signed()).into(), order)
}

/// The float with this [order](order_of); +0 for both zeros, and one NaN for all.
fn value_of(order: Expr, op: Op, float: DType) -> Expr {
    let sign = Expr::from(Scalar::lowest(float.signed()));
    let zero = order.int(0);
    let bits = match op {
        Op::Max => order.clone().lt(zero).select(sign.sub(order.clone()), order),
        // The greatest number orders a NaN, with or without a sign.
        _ => zero.clone().lt(order.clone()).select(order.clone().or(sign), zero.sub(order)),
    };
    bits.bits(float)
}
