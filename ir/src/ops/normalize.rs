//! Reducers that write the whole slice: the elements divided by a norm, softmax and the like.
//!
//! In the expressions `x0` is the element, `x1` and `x2` are further inputs, `r0`, `r1` and so on the results
//! of the reduction, and a parameter has its name.

use super::float::give;
use super::moments::{moments, variance};
use super::{Apply, Reducer, RowTypes, find, log_sum_exp};
use crate::expression::Expression;
use crate::{DType, Def, Expr, Scalar, math};

/// The reducer of a row of the table with `expression` as the output at each position.
pub(super) fn normalized(types: &RowTypes, op: &str, expression: &str) -> Reducer {
    let row = find(op).expect("a row of the table");
    let reducer = row.build(&RowTypes { output: types.accumulator, params: vec![], ..types.clone() });
    applied(types, reducer, expression)
}

/// `reducer`, whose results are of the accumulator's type, with an expression at each position.
fn applied(types: &RowTypes, reducer: Reducer, expression: &str) -> Reducer {
    let acc = types.accumulator;
    let inputs = 1 + types.extra.len();
    let elements = std::iter::once(types.input).chain(types.extra.iter().copied());
    let params: Vec<DType> = elements.chain(reducer.finish.results.iter().map(Expr::dtype)).collect();
    let expression: Expression = expression.parse().expect("an expression of the table");
    let def = Def::build("apply", &params, |lets, args| {
        let mut names =
            vec![("eps".to_string(), Scalar::float(acc, types.params.first().copied().unwrap_or(0.0)).into())];
        for (i, arg) in args.iter().enumerate() {
            let letter = if i < inputs { format!("x{i}") } else { format!("r{}", i - inputs) };
            names.push((letter, lets.bind(arg.clone().cast(acc))));
        }
        let value = expression.build(lets, &names, acc).expect("an expression of the table");
        vec![give(lets, value, types)]
    });
    Reducer {
        apply: Some(Apply {
            def,
            inputs: (0..inputs).collect(),
            old: vec![],
            lifted: None,
            takes: vec![],
            outputs: vec![0],
        }),
        ..reducer
    }
}

/// x less the mean, over the root of the variance plus eps; then times `x1`, plus `x2`, if given.
/// The mean is a pair: see [`moments`].
pub(super) fn layer_norm(types: &RowTypes) -> Reducer {
    let reducer = moments(types, |_, [c, e, m2]| vec![c, e, variance(types, m2, 0.0)]);
    applied(types, reducer, &scaled("(x0 - r0 - r1) / sqrt(r2 + eps)", types))
}

/// x less the mean, over the standard deviation.
pub(super) fn standardize(types: &RowTypes) -> Reducer {
    let ddof = types.params[0];
    let reducer = moments(types, |_, [c, e, m2]| vec![c, e, variance(types, m2, ddof).sqrt()]);
    applied(&RowTypes { params: vec![], ..types.clone() }, reducer, "(x0 - r0 - r1) / r2")
}

/// x over the root of the mean square plus eps; then times `x1`, plus `x2`, if given.
pub(super) fn rms_norm(types: &RowTypes) -> Reducer {
    let row = find("sum_squares").expect("a row of the table");
    let squares = row.build(&RowTypes { output: types.accumulator, params: vec![], ..types.clone() });
    let finish = Def::build("mean_square", &[types.accumulator], |_, args| {
        vec![args[0].clone().div(types.count_in_accumulator())]
    });
    applied(types, Reducer { finish, ..squares }, &scaled("x0 / sqrt(r0 + eps)", types))
}

/// The expression with scale and bias, if the row has inputs for them.
fn scaled(expression: &str, types: &RowTypes) -> String {
    let [scale, bias] = [" * x1", " + x2"].map(str::to_string);
    [expression.to_string(), scale, bias].into_iter().take(1 + types.extra.len()).collect()
}

/// exp(x - m) times the reciprocal of sum exp(x - m), m being the greatest element. The sum is at least about 1,
/// so that its reciprocal is a normal number.
pub(super) fn softmax(types: &RowTypes) -> Reducer {
    let acc = types.accumulator;
    let reducer = log_sum_exp::sums(types, |_, [m, s]| vec![m, s.float(1.0).div(s)]);
    let def = Def::build("apply", &[acc; 3], |lets, args| {
        let value = args[0].clone().mul(args[2].clone());
        vec![give(lets, value, types)]
    });
    Reducer {
        apply: Some(Apply { def, inputs: vec![], old: vec![], lifted: Some(1), takes: vec![], outputs: vec![0] }),
        ..reducer
    }
}

/// (x - m) - log(sum exp(x - m)), m being the greatest element.
pub(super) fn log_softmax(types: &RowTypes) -> Reducer {
    let acc = types.accumulator;
    let reducer = log_sum_exp::sums(types, |lets, [m, s]| {
        let log = lets.splice(&math::log(acc), &[s]).remove(0);
        vec![m, log]
    });
    applied(types, reducer, "x0 - r0 - r1")
}
