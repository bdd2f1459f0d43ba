//! The position of the extreme element.

use super::extreme::{bits_of, extreme_of, extremes, no_bits};
use super::order::Order;
use super::{Method, Phase, Reducer, RowTypes, Search, combine, search, truth};
use crate::{DType, Def, Expr, Lets, Op, Scalar};
use DType::{Bf16, F16, F32, F64, I8, I16, I32, I64, U64};

/// Two passes over each block: its extreme element, then the least position (the greatest, if `last` is
/// set) of an element that equals it. Both are plain monoids, so the order of the walk does not matter. Where the
/// slice allows, the second pass walks one window alone: see [`search`](super::search). Beside integers of one or two
/// bytes the second pass holds positions in as few bytes, where those of the slice fit; the state holds them in full.
///
/// NaN is the extreme. To find the elements that equal the extreme with one comparison, they are compared
/// with a bound just beyond it:
///
/// ```text
/// for the greatest m: not (x <= t),  t = the float below m;  NaN where m = -inf;  inf where m is NaN
/// ```
///
/// A NaN on either side makes the comparison false and its negation true. -0 and +0 are equal, and have the
/// same float below.
pub(super) fn arg(types: &RowTypes, op: Op) -> Reducer {
    let extreme = match types.input {
        F64 => extreme_by_value(types, op),
        _ if types.is_float() => extreme_on_bits(types, op),
        _ => integer_extreme(types, op),
    };
    by_phases(types, op, extreme, Some(search::search(types, op, types.params[0] == 1.0)))
}

/// The reducer of the position by the two passes, the first of which is `extreme`.
fn by_phases(types: &RowTypes, op: Op, extreme: Phase, search: Option<Search>) -> Reducer {
    let last = types.params[0] == 1.0;
    let float = types.input.is_float();
    let extreme = Phase { lift: with_position(&extreme.lift, types.position), ..extreme };
    let value = extreme.close.as_ref().map_or(types.input, |c| c.results[0].dtype());
    let position = types.position;
    // The state without a position has all bits set: the greatest without a sign, the least with one.
    let of = |position: DType| if last { position } else { position.unsigned() };
    let (narrow, held) = (narrow(types), of(position));
    let in_phase = of(narrow);
    let none = Scalar::int(in_phase, -1);
    let params: Vec<DType> = match float {
        true => vec![types.input, position, value, value],
        false => vec![types.input, position, value],
    };
    let find = Phase {
        identity: vec![none],
        lift: Def::build("position_of", &params, |_, args| {
            let x = args[0].clone();
            let other = match (float, op) {
                (true, Op::Max) => x.cast(value).le(args[3].clone()),
                (true, _) => args[3].clone().le(x.cast(value)),
                (false, _) if types.truth => beside(truth::truth_of(x), narrow).ne(beside(args[2].clone(), narrow)),
                (false, _) => beside(x, narrow).ne(beside(args[2].clone(), narrow)),
            };
            vec![other.select(none.into(), args[1].clone().cast(narrow).bits(in_phase))]
        }),
        update: None,
        combine: Def::build("nearer", &[in_phase; 2], |_, args| vec![nearer(&args[0], &args[1], last)]),
        // The conversion keeps the sign, so that all bits set, no position, stay all bits set.
        close: (narrow != position).then(|| {
            Def::build("position", &[in_phase, types.accumulator], |_, args| {
                vec![args[0].clone().bits(narrow).cast(position).bits(held)]
            })
        }),
    };
    let state: Vec<DType> = if float { vec![value, value, held] } else { vec![value, held] };
    let merge = merge(&state, op, last);
    let finish = Def::build("finish", &state, |_, args| {
        vec![args[state.len() - 1].clone().bits(position).cast(types.count_output)]
    });
    let nothing = state.iter().map(|&d| Scalar::zero(d)).collect();
    let method = Method::Phases { phases: vec![extreme, find], merge, commutative: true, alone: vec![], search };
    Reducer { method, finish, reads: vec![], nothing, apply: None }
}

/// The better of two states, whose first value is the extreme or its order and whose last is the position; of two as good
/// the first position, or the last.
fn merge(state: &[DType], op: Op, last: bool) -> Def {
    Def::build("merge_arg", &[state, state].concat(), |lets, args| {
        let (older, newer) = args.split_at(state.len());
        let (m, m2) = (older[0].clone(), newer[0].clone());
        let (p, p2) = (&older[state.len() - 1], &newer[state.len() - 1]);
        let beyond = if op == Op::Max { m.clone().lt(m2.clone()) } else { m2.clone().lt(m.clone()) };
        let equal = m.clone().eq(m2.clone());
        let (beyond, equal) = match state[0].is_float() {
            false => (beyond, equal),
            true => {
                let (nan, nan2) = (lets.bind(m.clone().is_nan()), lets.bind(m2.clone().is_nan()));
                (beyond.or(nan2.clone().and(nan.clone().not())), equal.or(nan.and(nan2)))
            }
        };
        let (beyond, equal) = (lets.bind(beyond), lets.bind(equal));
        let mut merged: Vec<Expr> =
            older.iter().zip(newer).map(|(a, b)| beyond.clone().select(b.clone(), a.clone())).collect();
        let other = merged.pop().expect("the position");
        merged.push(equal.select(nearer(p, p2, last), other));
        merged
    })
}

/// The position of an extreme f32 by value, which has one value where the form on bits has three. That of 16-bit floats by
/// their [`Order`], whose comparison fills as many lanes as elements do; none of slices with more positions than 16 bits
/// hold.
pub(super) fn direct(types: &RowTypes, op: Op) -> Option<Reducer> {
    match types.input {
        F32 => Some(by_phases(types, op, extreme_by_value(types, op), None)),
        F16 | Bf16 if types.count <= 1 << 15 => Some(by_order(types, op)),
        _ => None,
    }
}

fn by_order(types: &RowTypes, op: Op) -> Reducer {
    let last = types.params[0] == 1.0;
    let order = Order::new(types.input, op);
    let position = I16;
    let held = if last { position } else { position.unsigned() };
    let none = Scalar::int(held, -1);
    let extreme = Phase {
        identity: vec![order.least()],
        lift: Def::build("order", &[types.input, types.position], |_, args| vec![order.of(&args[0])]),
        combine: combine(Op::Max, order.dtype()),
        update: None,
        close: Some(Def::build("bound", &[order.dtype(), types.accumulator], |_, args| vec![order.bound(&args[0])])),
    };
    let params = [types.input, types.position, order.dtype()];
    let nearest = Def::build("nearer", &[held; 2], |_, args| vec![nearer(&args[0], &args[1], last)]);
    let find = Phase {
        identity: vec![none],
        lift: Def::build("position_of", &params, |_, args| {
            let worse = order.of(&args[0]).lt(args[2].clone());
            vec![worse.select(none.into(), args[1].clone().cast(position).bits(held))]
        }),
        combine: nearest,
        update: None,
        close: None,
    };
    let state = [order.dtype(), held];
    let merge = merge(&state, Op::Max, last);
    let finish = Def::build("finish", &state, |_, args| vec![args[1].clone().bits(position).cast(types.count_output)]);
    let nothing = state.iter().map(|&d| Scalar::zero(d)).collect();
    Reducer::phases(vec![extreme, find], merge, finish, nothing)
}

/// The type in which the second pass holds a position: beside integers the narrowest that is no narrower than an element
/// and holds all positions of a slice, so that both fill as many lanes.
fn narrow(types: &RowTypes) -> DType {
    let holds = |dtype: DType| types.count <= 1 << (dtype.bits() - 1);
    let of_size = |dtype: &DType| types.input.is_int() && types.narrow && dtype.bytes() >= types.input.bytes();
    [I8, I16].into_iter().filter(of_size).find(|&dtype| holds(dtype)).unwrap_or(types.position)
}

/// A lift of elements that takes the position too.
fn with_position(lift: &Def, position: DType) -> Def {
    Def::build(lift.name.clone(), &[lift.params[0], position], |lets, args| lets.splice(lift, &args[..1]))
}

/// The first of two positions, or the last, by a comparison: 64-bit minima have no vector form.
pub(super) fn nearer(a: &Expr, b: &Expr, last: bool) -> Expr {
    let (a, b) = (a.clone(), b.clone());
    match (a.dtype(), last) {
        (I64 | U64, false) => b.clone().lt(a.clone()).select(b, a),
        (I64 | U64, true) => a.clone().lt(b.clone()).select(b, a),
        (_, false) => a.min(b),
        (_, true) => a.max(b),
    }
}

/// An integer that is compared beside positions of a type: no narrower than these.
fn beside(x: Expr, position: DType) -> Expr {
    match position.bytes() {
        2 if x.dtype().bytes() < 2 => x.cast(I16),
        4.. if x.dtype().bytes() < 4 => x.cast(I32),
        _ => x,
    }
}

/// The extreme element of a block, and the bound just beyond it, by value.
fn extreme_by_value(types: &RowTypes, op: Op) -> Phase {
    let value = types.input;
    let start = if op == Op::Max { f64::NEG_INFINITY } else { f64::INFINITY };
    Phase {
        identity: vec![Scalar::float(value, start)],
        lift: Def::build("value", &[value], |_, args| args.to_vec()),
        combine: combine(op, value),
        update: None,
        close: Some(Def::build("bound", &[value, types.accumulator], |lets, args| {
            with_bound(lets, args[0].clone(), op)
        })),
    }
}

/// The same of floats up to 32 bits, on the bits.
fn extreme_on_bits(types: &RowTypes, op: Op) -> Phase {
    let input = types.input;
    let params = [input.signed(), input.signed(), input.unsigned(), types.accumulator];
    Phase {
        identity: no_bits(input),
        lift: bits_of(input),
        combine: extremes(input),
        update: None,
        close: Some(Def::build("bound", &params, |lets, args| {
            let extreme = extreme_of(op, input, &args[..3]).cast(F32);
            with_bound(lets, extreme, op)
        })),
    }
}

/// An extreme, and the bound just beyond it.
fn with_bound(lets: &mut Lets, extreme: Expr, op: Op) -> Vec<Expr> {
    let extreme = lets.bind(extreme);
    let bound = beyond(lets, &extreme, op);
    vec![extreme, bound]
}

/// For the greatest element the float below it, for the least the one above: see [`arg`].
pub(super) fn beyond(lets: &mut Lets, m: &Expr, op: Op) -> Expr {
    let m = match op {
        Op::Max => m.clone(),
        _ => lets.bind(m.clone().neg()),
    };
    let bits = m.dtype().signed();
    let i = lets.bind(m.clone().bits(bits));
    let zero = i.int(0);
    // Away from zero below it, towards zero above; from both zeros to the least subnormal.
    let up = i.clone().add(i.int(1));
    let down = i.clone().sub(i.int(1));
    let sign = 1u64 << (m.dtype().bits() - 1);
    let least = Expr::from(Scalar::from_bits(bits, sign | 1));
    let next = m.clone().eq(m.float(0.0)).select(least, i.clone().lt(zero).select(up, down));
    let next = lets.bind(next.bits(m.dtype()));
    let lowest = m.clone().eq(m.float(f64::NEG_INFINITY));
    let bound = lowest.select(Scalar::nan(m.dtype()).into(), next);
    let bound = m.clone().is_nan().select(m.float(f64::INFINITY), bound);
    match op {
        Op::Max => bound,
        _ => bound.neg(),
    }
}

/// The extreme element of a block.
fn integer_extreme(types: &RowTypes, op: Op) -> Phase {
    let dtype = types.input;
    let identity = if op == Op::Max { Scalar::lowest(dtype) } else { Scalar::highest(dtype) };
    Phase {
        identity: vec![identity],
        lift: Def::build("value", &[dtype], |_, args| {
            vec![if types.truth { truth::truth_of(args[0].clone()) } else { args[0].clone() }]
        }),
        combine: combine(op, dtype),
        update: None,
        close: None,
    }
}
