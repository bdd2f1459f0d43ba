//! Minimum and maximum of floats.

use super::float::{Monoid, give, magnitude, reducer, same};
use super::order::Order;
use super::{Reducer, RowTypes};
use crate::{DType, Def, Expr, Op, Scalar};
use DType::{Bf16, F16, F32, F64};

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
/// The bits of an f16 are compared without conversion. An f64 is combined [by value](by_value), since vectors have no
/// 64-bit minima.
pub(super) fn extreme(types: &RowTypes, op: Op) -> Reducer {
    if types.input == F64 {
        return by_value(types, op);
    }
    // An exact result does not depend on the accumulator.
    let types = &RowTypes { accumulator: F32, ..types.clone() };
    let float = types.input;
    let (signed, unsigned) = (float.signed(), float.unsigned());
    let finish = Def::build("finish", &[signed, signed, unsigned], |lets, args| {
        let value = extreme_of(op, float, args);
        vec![if types.output == float { value } else { give(lets, value.cast(types.accumulator), types) }]
    });
    let lift = bits_of(float);
    let nothing = lift.eval(&[Scalar::float(float, of_nothing(op))]);
    Reducer { nothing, ..Reducer::simple(no_bits(float), lift, extremes(float), finish) }
}

/// The extreme of f32 by value: one operation an element and none to finish, where the form on bits takes three and
/// six. That of 16-bit floats by their [`Order`]: four operations an element, and one value to fold.
pub(super) fn direct(types: &RowTypes, op: Op) -> Option<Reducer> {
    match types.input {
        F32 => Some(by_value(types, op)),
        F16 | Bf16 => Some(by_order(types, op)),
        _ => None,
    }
}

fn by_order(types: &RowTypes, op: Op) -> Reducer {
    let types = &RowTypes { accumulator: F32, ..types.clone() };
    let order = Order::new(types.input, op);
    let lift = Def::build("order", &[types.input], |_, args| vec![order.of(&args[0])]);
    let finish = Def::build("finish", &[order.dtype()], |lets, args| {
        let value = order.value(&args[0]);
        vec![if types.output == types.input { value } else { give(lets, value.cast(types.accumulator), types) }]
    });
    let nothing = lift.eval(&[Scalar::float(types.input, of_nothing(op))]);
    let identity = vec![order.least()];
    Reducer { nothing, ..Reducer::simple(identity, lift, super::combine(Op::Max, order.dtype()), finish) }
}

/// The extreme of floats that are accumulated in their own type, by the operation itself. The operation makes NaNs
/// canonical, so finish does so only for a single element.
fn by_value(types: &RowTypes, op: Op) -> Reducer {
    let types = &RowTypes { accumulator: types.input, ..types.clone() };
    let nothing = of_nothing(op);
    let by_value = reducer(types, Monoid { identity: nothing, combine: op, nothing }, same, same);
    if types.count < 2 || types.output.is_int() {
        return by_value;
    }
    let finish = Def::build("finish", &[types.input], |_, args| vec![args[0].clone().cast(types.output)]);
    Reducer { finish, ..by_value }
}

/// The extreme of no elements, which is neutral.
fn of_nothing(op: Op) -> f64 {
    if op == Op::Max { f64::NEG_INFINITY } else { f64::INFINITY }
}

/// The greatest magnitude: of types up to 32 bits as the greatest bits without the sign, NaN among them.
pub(super) fn linf(types: &RowTypes) -> Reducer {
    let float = types.input;
    if float == F64 {
        let types = &RowTypes { accumulator: F64, ..types.clone() };
        return reducer(types, Monoid { identity: 0.0, combine: Op::Max, nothing: 0.0 }, magnitude, same);
    }
    let types = &RowTypes { accumulator: F32, ..types.clone() };
    let bits = float.unsigned();
    let lift = Def::build("magnitude", &[float], |_, args| {
        let bits = args[0].clone().bits(bits);
        let mask = bits.int((1 << (float.bits() - 1)) - 1);
        vec![bits.and(mask)]
    });
    let finish = Def::build("finish", &[bits], |lets, args| {
        let value = args[0].clone().bits(float);
        vec![give(lets, value.cast(F32), types)]
    });
    Reducer::simple(vec![Scalar::int(bits, 0)], lift, super::combine(Op::Max, bits), finish)
}

/// The greatest less the least.
pub(super) fn ptp(types: &RowTypes) -> Reducer {
    let float = types.input;
    if float == F64 {
        let identity = vec![Scalar::f64(f64::INFINITY), Scalar::f64(f64::NEG_INFINITY)];
        let lift = Def::build("both", &[F64], |_, args| vec![args[0].clone(), args[0].clone()]);
        let combine = Def::build("least_and_greatest", &[F64; 4], |_, args| {
            let [least, greatest, least2, greatest2] = args else { unreachable!("four parameters") };
            vec![least.clone().min(least2.clone()), greatest.clone().max(greatest2.clone())]
        });
        let finish = Def::build("finish", &[F64; 2], |lets, args| {
            let value = args[1].clone().sub(args[0].clone());
            vec![give(lets, value, types)]
        });
        let nothing = vec![Scalar::nan(F64); 2];
        return Reducer { nothing, ..Reducer::simple(identity, lift, combine, finish) };
    }
    let (signed, unsigned) = (float.signed(), float.unsigned());
    let finish = Def::build("finish", &[signed, signed, unsigned], |lets, args| {
        let extreme = |op| extreme_of(op, float, args).cast(types.accumulator);
        let value = extreme(Op::Max).sub(extreme(Op::Min));
        vec![give(lets, value, types)]
    });
    Reducer::simple(no_bits(float), bits_of(float), extremes(float), finish)
}

/// The state of one element: its bits, three times.
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

/// The minimum or maximum of a state, NaN canonical.
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
