//! Minimum and maximum of floats.

use super::float::{Monoid, give, reducer, same};
use super::{Reducer, Request};
use crate::{DType, Def, Expr, Op, Scalar};
use DType::{F32, F64};

/// Minimum and maximum of types up to 32 bits are found on the bits, read as integers, with three
/// integer operations an element where IEEE 754's take seven:
///
/// ```text
/// a = greatest bits, signed       the greatest value that is not negative, or a positive NaN
/// c = least bits, signed          where all are negative, the greatest; where none is, the least
/// d = greatest bits, unsigned     the least negative value, or a negative NaN
///
/// NaN if a > bits(inf), signed, or d > bits(-inf), unsigned
/// max = a if a >= 0 else c        min = d if d is negative else c
/// ```
///
/// The bits of an f16 need no conversion for it. An f64 is combined as such: there are no vectors of
/// 64-bit minima.
pub(super) fn extreme(request: &Request, op: Op) -> Reducer {
    let nothing = if op == Op::Max { f64::NEG_INFINITY } else { f64::INFINITY };
    // The accumulator cannot show in an exact result.
    let request = &Request { accumulator: if request.input == F64 { F64 } else { F32 }, ..request.clone() };
    if request.input == F64 {
        return reducer(request, Monoid { identity: nothing, combine: op, nothing }, same, same);
    }
    let float = request.input;
    let (signed, unsigned) = (float.signed(), float.unsigned());
    let finish = Def::build("finish", &[signed, signed, unsigned], |lets, args| {
        let value = extreme_of(op, float, args);
        vec![if request.output == float { value } else { give(lets, value.cast(request.accumulator), request) }]
    });
    let lift = bits_of(float);
    let over_nothing = finish.eval(&lift.eval(&[Scalar::float(float, nothing)]));
    Reducer::simple(no_bits(float), lift, extremes(float), finish, over_nothing)
}

/// The state of one element: its bits, thrice.
pub(super) fn bits_of(float: DType) -> Def {
    let (signed, unsigned) = (float.signed(), float.unsigned());
    Def::build("bits_of", &[float], |_, args| {
        let x = args[0].clone();
        vec![x.clone().bits(signed), x.clone().bits(signed), x.bits(unsigned)]
    })
}

/// The identity element of [`extremes`].
pub(super) fn no_bits(float: DType) -> Vec<Scalar> {
    vec![Scalar::lowest(float.signed()), Scalar::highest(float.signed()), Scalar::lowest(float.unsigned())]
}

pub(super) fn extremes(float: DType) -> Def {
    let (signed, unsigned) = (float.signed(), float.unsigned());
    Def::build("extremes", &[signed, signed, unsigned, signed, signed, unsigned], |_, args| {
        let [a, c, d, a2, c2, d2] = args else { unreachable!("six parameters") };
        vec![a.clone().max(a2.clone()), c.clone().min(c2.clone()), d.clone().max(d2.clone())]
    })
}

/// The minimum or maximum that a state stands for, NaN canonical.
pub(super) fn extreme_of(op: Op, float: DType, state: &[Expr]) -> Expr {
    let [a, c, d] = state else { unreachable!("three parts") };
    let (a, c, d) = (a.clone(), c.clone(), d.clone());
    let bits = |v| i128::from(Scalar::float(float, v).bits());
    let is_nan = a.int(bits(f64::INFINITY)).lt(a.clone()).or(d.int(bits(f64::NEG_INFINITY)).lt(d.clone()));
    let value = match op {
        Op::Max => a.clone().lt(a.int(0)).select(c, a),
        _ => {
            let least = d.bits(float.signed());
            least.clone().lt(least.int(0)).select(least, c)
        }
    };
    is_nan.select(Expr::from(Scalar::nan(float)).bits(float.signed()), value).bits(float)
}
