//! Reducers of floats: accumulated in f32 or f64, converted to the output once.

use super::{Phase, Reducer, Request};
use crate::{DType, Def, Expr, Lets, Op, Scalar, math};
use DType::{F32, F64};

/// The result in the output's type: NaN canonical, rounded once; integers rounded as asked and clamped.
pub(super) fn give(lets: &mut Lets, value: Expr, request: &Request) -> Expr {
    if request.output.is_int() {
        let whole = if request.half_even { value.nearest() } else { value };
        return whole.cast(request.output);
    }
    let canon = math::canon(value.dtype());
    lets.splice(&canon, &[value]).remove(0).cast(request.output)
}

/// What of a reducer with one phase and one accumulator is its own.
struct Monoid {
    identity: f64,
    combine: Op,
    /// The accumulator that finish gets where nothing was reduced.
    nothing: f64,
}

/// Sums start from -0, the true identity; the sum of nothing is +0.
const SUM: Monoid = Monoid { identity: -0.0, combine: Op::Add, nothing: 0.0 };

fn reducer(
    request: &Request,
    monoid: Monoid,
    lift: impl FnOnce(&mut Lets, Expr) -> Expr,
    finish: impl FnOnce(&mut Lets, Expr) -> Expr,
) -> Reducer {
    let acc = request.accumulator;
    let lift = Def::build("lift", &[request.input], |lets, args| {
        let x = args[0].clone().cast(acc);
        vec![lift(lets, x)]
    });
    let finish = Def::build("finish", &[acc], |lets, args| {
        let value = finish(lets, args[0].clone());
        vec![give(lets, value, request)]
    });
    let over_nothing = finish.eval(&[Scalar::float(acc, monoid.nothing)]);
    Reducer::simple(vec![Scalar::float(acc, monoid.identity)], lift, combine(monoid.combine, acc), finish, over_nothing)
}

fn combine(op: Op, acc: DType) -> Def {
    Def::build(format!("combine_{}", op.name()), &[acc, acc], |_, args| vec![Expr::op(op, args.to_vec())])
}

fn same(_: &mut Lets, x: Expr) -> Expr {
    x
}

fn magnitude(_: &mut Lets, x: Expr) -> Expr {
    x.abs()
}

fn square(lets: &mut Lets, x: Expr) -> Expr {
    let x = lets.bind(x);
    x.clone().mul(x)
}

pub(super) fn sum(request: &Request) -> Reducer {
    reducer(request, SUM, same, same)
}

pub(super) fn prod(request: &Request) -> Reducer {
    reducer(request, Monoid { identity: 1.0, combine: Op::Mul, nothing: 1.0 }, same, same)
}

pub(super) fn min(request: &Request) -> Reducer {
    extreme(request, Op::Min)
}

pub(super) fn max(request: &Request) -> Reducer {
    extreme(request, Op::Max)
}

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
fn extreme(request: &Request, op: Op) -> Reducer {
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
fn bits_of(float: DType) -> Def {
    let (signed, unsigned) = (float.signed(), float.unsigned());
    Def::build("bits_of", &[float], |_, args| {
        let x = args[0].clone();
        vec![x.clone().bits(signed), x.clone().bits(signed), x.bits(unsigned)]
    })
}

/// The identity element of [`extremes`].
fn no_bits(float: DType) -> Vec<Scalar> {
    vec![Scalar::lowest(float.signed()), Scalar::highest(float.signed()), Scalar::lowest(float.unsigned())]
}

fn extremes(float: DType) -> Def {
    let (signed, unsigned) = (float.signed(), float.unsigned());
    Def::build("extremes", &[signed, signed, unsigned, signed, signed, unsigned], |_, args| {
        let [a, c, d, a2, c2, d2] = args else { unreachable!("six parameters") };
        vec![a.clone().max(a2.clone()), c.clone().min(c2.clone()), d.clone().max(d2.clone())]
    })
}

/// The minimum or maximum that a state stands for, NaN canonical.
fn extreme_of(op: Op, float: DType, state: &[Expr]) -> Expr {
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

/// One division by n in the accumulator's type; nothing divided by 0 is NaN.
pub(super) fn mean(request: &Request) -> Reducer {
    let count = Scalar::int(request.accumulator, request.count.into());
    reducer(request, SUM, same, |_, s| s.div(count.into()))
}

pub(super) fn l1(request: &Request) -> Reducer {
    reducer(request, SUM, magnitude, same)
}

pub(super) fn l2(request: &Request) -> Reducer {
    reducer(request, SUM, square, |_, s| s.sqrt())
}

pub(super) fn sum_squares(request: &Request) -> Reducer {
    reducer(request, SUM, square, same)
}

pub(super) fn log_sum(request: &Request) -> Reducer {
    let log = math::log(request.accumulator);
    reducer(request, SUM, same, |lets, s| lets.splice(&log, &[s]).remove(0))
}

/// The pivot of a block is its greatest element, clamped to finite values; then the elements are
/// summed as exp(x - pivot). An element of -inf adds 0 to that, one of +inf makes it infinite.
/// Blocks are brought to the greater of their pivots when they merge.
pub(super) fn log_sum_exp(request: &Request) -> Reducer {
    let acc = request.accumulator;
    let exp = math::exp(acc);
    let log = math::log(acc);
    let clamp = |lets: &mut Lets, m: Expr| {
        let greatest = if acc == F32 { f64::from(f32::MAX) } else { f64::MAX };
        let m = lets.bind(m);
        let above = lets.bind(m.clone().lt(m.float(-greatest)).select(m.float(-greatest), m));
        above.float(greatest).lt(above.clone()).select(above.float(greatest), above)
    };
    let pivot = match request.input {
        F64 => Phase {
            identity: vec![Scalar::lowest(acc)],
            lift: Def::build("value", &[F64], |_, args| args.to_vec()),
            combine: combine(Op::Max, acc),
            close: Some(Def::build("pivot", &[acc, acc], |lets, args| vec![clamp(lets, args[0].clone())])),
        },
        float => Phase {
            identity: no_bits(float),
            lift: bits_of(float),
            combine: extremes(float),
            close: Some(Def::build("pivot", &[float.signed(), float.signed(), float.unsigned(), acc], |lets, args| {
                let m = extreme_of(Op::Max, float, &args[..3]);
                vec![clamp(lets, m.cast(acc))]
            })),
        },
    };
    let sum = Phase {
        identity: vec![Scalar::float(acc, -0.0)],
        lift: Def::build("exp_from", &[request.input, acc], |lets, args| {
            let x = args[0].clone().cast(acc).sub(args[1].clone());
            lets.splice(&exp, &[x])
        }),
        combine: combine(Op::Add, acc),
        close: None,
    };
    let merge = Def::build("merge", &[acc; 4], |lets, args| {
        let pivot = lets.bind(args[0].clone().max(args[2].clone()));
        let mut part = |p: &Expr, s: &Expr| {
            let scale = lets.splice(&exp, &[p.clone().sub(pivot.clone())]).remove(0);
            s.clone().mul(scale)
        };
        let (older, newer) = (part(&args[0], &args[1]), part(&args[2], &args[3]));
        vec![pivot, older.add(newer)]
    });
    let finish = Def::build("finish", &[acc; 2], |lets, args| {
        let value = lets.splice(&log, &[args[1].clone()]).remove(0).add(args[0].clone());
        vec![give(lets, value, request)]
    });
    let over_nothing = finish.eval(&[Scalar::float(acc, 0.0), Scalar::float(acc, 0.0)]);
    Reducer { phases: vec![pivot, sum], merge, finish, over_nothing }
}

/// sum |x|^p, then `eps`, then the root.
fn norm(request: &Request, eps: impl FnOnce(Expr, Expr) -> Expr, root: bool) -> Reducer {
    let acc = request.accumulator;
    let p = request.params[0];
    let power = |lets: &mut Lets, x: Expr| match p {
        1.0 => x.abs(),
        2.0 => square(lets, x),
        _ if p.fract() == 0.0 && p <= 8.0 => lets.splice(&math::pow_int(acc, p as u32), &[x]).remove(0),
        _ => {
            let p = Scalar::float(acc, p).into();
            lets.splice(&math::pow(acc), &[x.abs(), p]).remove(0)
        }
    };
    let e = Scalar::float(acc, request.params.get(1).copied().unwrap_or(0.0)).into();
    reducer(request, SUM, power, |lets, s| {
        let s = eps(s, e);
        match p {
            _ if !root => s,
            1.0 => s,
            2.0 => s.sqrt(),
            _ => {
                // Of a sum that a negative eps has brought below zero there is no root.
                let s = lets.bind(s);
                let root = lets.splice(&math::pow(acc), &[s.clone(), Scalar::float(acc, 1.0 / p).into()]).remove(0);
                s.clone().lt(s.float(0.0)).select(Scalar::nan(acc).into(), root)
            }
        }
    })
}

pub(super) fn lp(request: &Request) -> Reducer {
    norm(request, |s, _| s, true)
}

pub(super) fn lp_max(request: &Request) -> Reducer {
    norm(request, Expr::max, true)
}

pub(super) fn lp_sum(request: &Request) -> Reducer {
    norm(request, Expr::add, true)
}

pub(super) fn lp_power_p_max(request: &Request) -> Reducer {
    norm(request, Expr::max, false)
}

pub(super) fn lp_power_p_sum(request: &Request) -> Reducer {
    norm(request, Expr::add, false)
}
