//! Reducers of floats: accumulated in f32 or f64, converted to the output once.

use super::{Reducer, RowTypes, combine};
use crate::{Def, Expr, Lets, Op, Scalar, math};

/// The result in the output's type: NaN canonical, rounded once; integers rounded as asked and clamped.
pub(super) fn give(lets: &mut Lets, value: Expr, types: &RowTypes) -> Expr {
    if types.output.is_int() {
        let whole = if types.half_even { value.nearest() } else { value };
        return whole.cast(types.output);
    }
    let canon = math::canon(value.dtype());
    lets.splice(&canon, &[value]).remove(0).cast(types.output)
}

/// The results in the types of the row's outputs, each like [`give`].
pub(super) fn give_all(lets: &mut Lets, values: Vec<Expr>, types: &RowTypes) -> Vec<Expr> {
    let outputs = values.into_iter().zip(&types.outputs);
    outputs.map(|(value, &output)| give(lets, value, &RowTypes { output, ..types.clone() })).collect()
}

/// The monoid of a reducer with one phase and one accumulator.
pub(super) struct Monoid {
    /// The identity element.
    pub identity: f64,
    /// The operation.
    pub combine: Op,
    /// The accumulator that finish gets if there is nothing to reduce.
    pub nothing: f64,
}

/// The sum, which starts from -0, the true identity; the sum of nothing is +0.
pub(super) const SUM: Monoid = Monoid { identity: -0.0, combine: Op::Add, nothing: 0.0 };

pub(super) const PRODUCT: Monoid = Monoid { identity: 1.0, combine: Op::Mul, nothing: 1.0 };

/// The reducer of a monoid over lifted elements; elements are converted to the accumulator's type
/// before, results to the output's after.
pub(super) fn reducer(
    types: &RowTypes,
    monoid: Monoid,
    lift: impl FnOnce(&mut Lets, Expr) -> Expr,
    finish: impl FnOnce(&mut Lets, Expr) -> Expr,
) -> Reducer {
    let acc = types.accumulator;
    let lift = Def::build("lift", &[types.input], |lets, args| {
        let x = args[0].clone().cast(acc);
        vec![lift(lets, x)]
    });
    let finish = Def::build("finish", &[acc], |lets, args| {
        let value = finish(lets, args[0].clone());
        vec![give(lets, value, types)]
    });
    let identity = vec![Scalar::float(acc, monoid.identity)];
    let nothing = vec![Scalar::float(acc, monoid.nothing)];
    Reducer { nothing, ..Reducer::simple(identity, lift, combine(monoid.combine, acc), finish) }
}

/// The lift or finish that changes nothing.
pub(super) fn same(_: &mut Lets, x: Expr) -> Expr {
    x
}

/// |x|.
pub(super) fn magnitude(_: &mut Lets, x: Expr) -> Expr {
    x.abs()
}

/// x^2.
pub(super) fn square(lets: &mut Lets, x: Expr) -> Expr {
    let x = lets.bind(x);
    x.clone().mul(x)
}

/// The square root.
pub(super) fn root(_: &mut Lets, s: Expr) -> Expr {
    s.sqrt()
}

/// The natural logarithm.
pub(super) fn log(lets: &mut Lets, s: Expr) -> Expr {
    lets.splice(&math::log(s.dtype()), &[s]).remove(0)
}

/// sum |x|^p, then `eps`, then the root.
pub(super) fn norm(types: &RowTypes, eps: impl FnOnce(Expr, Expr) -> Expr, root: bool) -> Reducer {
    let acc = types.accumulator;
    let p = types.params[0];
    let power = |lets: &mut Lets, x: Expr| match p {
        1.0 => x.abs(),
        2.0 => square(lets, x),
        _ if p.fract() == 0.0 && p <= 8.0 => lets.splice(&math::pow_int(acc, p as u32), &[x]).remove(0),
        _ => {
            let p = Scalar::float(acc, p).into();
            lets.splice(&math::pow(acc), &[x.abs(), p]).remove(0)
        }
    };
    let e = Scalar::float(acc, types.params.get(1).copied().unwrap_or(0.0)).into();
    reducer(types, SUM, power, |lets, s| {
        let s = eps(s, e);
        match p {
            _ if !root => s,
            1.0 => s,
            2.0 => s.sqrt(),
            _ => {
                // A negative eps may bring the sum below zero, where there is no root.
                let s = lets.bind(s);
                let root = lets.splice(&math::pow(acc), &[s.clone(), Scalar::float(acc, 1.0 / p).into()]).remove(0);
                s.clone().lt(s.float(0.0)).select(Scalar::nan(acc).into(), root)
            }
        }
    })
}
