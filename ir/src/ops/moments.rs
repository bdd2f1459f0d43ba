//! Reducers of the mean and the deviations from it, such as the variance.

use super::float::{SUM, give, give_all, reducer, same};
use super::{Phase, Reducer, RowTypes, combine};
use crate::{Def, Expr, Lets, Scalar};

/// Two passes over each block: its mean c, rounded; then, of the deviations d = x - c, the sum s1 and the sum
/// of squares s2. With n elements the block's state is
///
/// ```text
/// c, n, e = s1 / n, m2 = s2 - s1 e        the mean is c + e, a pair that is never rounded to one value
/// ```
///
/// and older and newer blocks merge, with delta = (c' - c) + (e' - e), as
///
/// ```text
/// n = n + n',   c, e = TwoSum(c, e + delta n'/n),   m2 = m2 + m2' + delta^2 n n'/(n + n')
/// ```
///
/// (Chan, Golub, LeVeque 1983). A lane takes its next element with fused operations, s1 = fma(s1, 1, d) and
/// s2 = fma(d, d, s2): multipliers are idle, adders are not.
///
/// The pair keeps the mean exact where it is large beside the deviations.
/// `results` gets c, e and m2 over the whole slice.
pub(super) fn moments(types: &RowTypes, results: impl FnOnce(&mut Lets, [Expr; 3]) -> Vec<Expr>) -> Reducer {
    let acc = types.accumulator;
    let add = combine(crate::Op::Add, acc);
    let deviation = |lets: &mut Lets, x: &Expr, c: &Expr| lets.bind(x.clone().cast(acc).sub(c.clone()));
    let deviations = Phase {
        identity: vec![Scalar::float(acc, -0.0); 2],
        lift: Def::build("deviation", &[types.input, acc], |lets, args| {
            let d = deviation(lets, &args[0], &args[1]);
            vec![d.clone(), d.clone().mul(d)]
        }),
        update: Some(Def::build("add_deviation", &[acc, acc, types.input, acc], |lets, args| {
            let d = deviation(lets, &args[2], &args[3]);
            let one = d.float(1.0);
            vec![args[0].clone().fma(one, d.clone()), d.clone().fma(d, args[1].clone())]
        })),
        combine: Def::build("add_deviations", &[acc; 4], |_, args| {
            let sum = |i: usize| add.inline(&[args[i].clone(), args[i + 2].clone()]);
            vec![sum(0), sum(1)]
        }),
        close: Some(Def::build("block_moments", &[acc; 3], |lets, args| {
            let [s1, s2, n] = args else { unreachable!("three parameters") };
            let e = lets.bind(s1.clone().div(n.clone()));
            let m2 = not_negative(lets, s2.clone().sub(s1.clone().mul(e.clone())));
            vec![n.clone(), e, m2]
        })),
    };
    let merge = Def::build("merge_moments", &[acc; 8], |lets, args| {
        let [c, n, e, m2, c2, n2, e2, m22] = args else { unreachable!("eight parameters") };
        let Merged { c: hi, n: both, e: lo, delta, share } = merged(lets, [c, n, e], [c2, n2, e2]);
        let between = delta.clone().mul(delta).mul(n.clone().mul(share));
        vec![hi, both, lo, m2.clone().add(m22.clone()).add(between)]
    });
    let finish = Def::build("finish", &[acc; 4], |lets, args| {
        results(lets, [args[0].clone(), args[2].clone(), args[3].clone()])
    });
    Reducer::phases(vec![block_mean(types), deviations], merge, finish, vec![Scalar::float(acc, 0.0); 4])
}

/// The mean as the pair c and e: the first of the two passes of [`moments`], and the sum s1 of the second. Of nothing
/// both are NaN.
pub(super) fn mean_pair(types: &RowTypes) -> Reducer {
    let acc = types.accumulator;
    let rest = Phase {
        identity: vec![Scalar::float(acc, -0.0)],
        lift: Def::build("deviation", &[types.input, acc], |_, args| {
            vec![args[0].clone().cast(acc).sub(args[1].clone())]
        }),
        update: None,
        combine: combine(crate::Op::Add, acc),
        close: Some(Def::build("block_rest", &[acc; 2], |_, args| {
            let [s1, n] = args else { unreachable!("two parameters") };
            vec![n.clone(), s1.clone().div(n.clone())]
        })),
    };
    let merge = Def::build("merge_means", &[acc; 6], |lets, args| {
        let [c, n, e, c2, n2, e2] = args else { unreachable!("six parameters") };
        let both = merged(lets, [c, n, e], [c2, n2, e2]);
        vec![both.c, both.n, both.e]
    });
    let finish =
        Def::build("finish", &[acc; 3], |lets, args| give_all(lets, vec![args[0].clone(), args[2].clone()], types));
    Reducer::phases(vec![block_mean(types), rest], merge, finish, vec![Scalar::nan(acc); 3])
}

/// The phase of a block's mean, rounded.
fn block_mean(types: &RowTypes) -> Phase {
    let sums = reducer(types, SUM, same, same);
    let close = Def::build("block_mean", &[types.accumulator; 2], |_, args| vec![args[0].clone().div(args[1].clone())]);
    Phase { close: Some(close), ..sums.method.phases()[0].clone() }
}

/// The mean and number of elements of two neighbouring parts.
struct Merged {
    c: Expr,
    n: Expr,
    e: Expr,
    /// The difference of the parts' means.
    delta: Expr,
    /// The newer part's share of the elements.
    share: Expr,
}

/// Merges c, n and e of an older and a newer part.
fn merged(lets: &mut Lets, [c, n, e]: [&Expr; 3], [c2, n2, e2]: [&Expr; 3]) -> Merged {
    let both = lets.bind(n.clone().add(n2.clone()));
    let delta = lets.bind(c2.clone().sub(c.clone()).add(e2.clone().sub(e.clone())));
    let share = lets.bind(n2.clone().div(both.clone()));
    let moved = lets.bind(e.clone().add(delta.clone().mul(share.clone())));
    let (c, e) = two_sum(lets, c, &moved);
    Merged { c, n: both, e, delta, share }
}

/// The greater of m2 and zero, since rounding may bring m2 below; NaN passes.
fn not_negative(lets: &mut Lets, m2: Expr) -> Expr {
    let m2 = lets.bind(m2);
    m2.clone().lt(m2.float(0.0)).select(m2.float(0.0), m2)
}

/// The sum as a rounded value and its rounding error (Knuth).
fn two_sum(lets: &mut Lets, a: &Expr, b: &Expr) -> (Expr, Expr) {
    let sum = lets.bind(a.clone().add(b.clone()));
    let of_b = lets.bind(sum.clone().sub(a.clone()));
    let of_a = sum.clone().sub(of_b.clone());
    (sum, a.clone().sub(of_a).add(b.clone().sub(of_b)))
}

/// m2 / (n - ddof), over nothing and below m2 / 0; n and ddof in the accumulator's type.
pub(super) fn variance(types: &RowTypes, m2: Expr, ddof: f64) -> Expr {
    let n = Scalar::int(types.accumulator, types.count.into()).as_f64();
    let ddof = Scalar::float(types.accumulator, ddof).as_f64();
    let freedom = m2.float((n - ddof).max(0.0));
    m2.div(freedom)
}

/// The variance, finished by `then`.
pub(super) fn var(types: &RowTypes, then: fn(Expr) -> Expr) -> Reducer {
    moments(types, |lets, [_, _, m2]| {
        let value = then(variance(types, m2, types.params[0]));
        vec![give(lets, value, types)]
    })
}
