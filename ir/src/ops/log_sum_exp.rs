//! log(sum exp x) in two phases.

use super::extreme::{bits_of, extreme_of, extremes, no_bits};
use super::float::{give, give_all};
use super::{Phase, Reducer, RowTypes, combine};
use crate::{DType, Def, Expr, Lets, Op, Scalar, math};
use DType::{F32, F64};

/// The pivot of a block is its greatest element, at least the least finite value; then exp(x - pivot) of the
/// elements is summed, where x - pivot is never above 0. An element of -inf adds 0. Merging rescales blocks to the
/// greater of their pivots. If the pivot is infinite or NaN the sum is NaN, and the pivot is the result.
pub(super) fn log_sum_exp(types: &RowTypes) -> Reducer {
    sums(types, |lets, [pivot, sum]| {
        let value = lets.splice(&math::log(sum.dtype()), &[sum]).remove(0).add(pivot.clone());
        let value = pivot.clone().lt(pivot.float(f64::INFINITY)).select(value, pivot);
        vec![give(lets, value, types)]
    })
}

/// The greatest element m and the sum of exp(x - m). Without elements above -inf they are -inf and 0; with +inf or NaN
/// the sum is NaN.
pub(super) fn sum_exp(types: &RowTypes) -> Reducer {
    sums(types, |lets, [pivot, sum]| {
        let greatest = sum.clone().eq(sum.float(0.0)).select(sum.float(f64::NEG_INFINITY), pivot.clone());
        let nan = Scalar::nan(sum.dtype()).into();
        let sum = pivot.clone().lt(pivot.float(f64::INFINITY)).select(sum, nan);
        give_all(lets, vec![greatest, sum], types)
    })
}

/// The greatest element as the pivot and the sum of exp(x - pivot), finished by `results`.
pub(super) fn sums(types: &RowTypes, results: impl FnOnce(&mut Lets, [Expr; 2]) -> Vec<Expr>) -> Reducer {
    let acc = types.accumulator;
    let exp = math::exp_below(acc);
    let finite = |lets: &mut Lets, m: Expr| {
        let least = m.float(if acc == F32 { f64::from(f32::MIN) } else { f64::MIN });
        let m = lets.bind(m);
        m.clone().lt(least.clone()).select(least, m)
    };
    let pivot = match types.input {
        F64 => Phase {
            identity: vec![Scalar::lowest(acc)],
            lift: Def::build("value", &[F64], |_, args| args.to_vec()),
            combine: combine(Op::Max, acc),
            update: None,
            close: Some(Def::build("pivot", &[acc, acc], |lets, args| vec![finite(lets, args[0].clone())])),
        },
        float => Phase {
            identity: no_bits(float),
            lift: bits_of(float),
            combine: extremes(float),
            update: None,
            close: Some(Def::build("pivot", &[float.signed(), float.signed(), float.unsigned(), acc], |lets, args| {
                let m = extreme_of(Op::Max, float, &args[..3]);
                vec![finite(lets, m.cast(acc))]
            })),
        },
    };
    let sum = Phase {
        identity: vec![Scalar::float(acc, -0.0)],
        lift: Def::build("exp_from", &[types.input, acc], |lets, args| {
            let x = args[0].clone().cast(acc).sub(args[1].clone());
            lets.splice(&exp, &[x])
        }),
        combine: combine(Op::Add, acc),
        update: None,
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
    let finish = Def::build("finish", &[acc; 2], |lets, args| results(lets, [args[0].clone(), args[1].clone()]));
    Reducer::phases(vec![pivot, sum], merge, finish, vec![Scalar::float(acc, 0.0); 2])
}
