//! The rows.

use super::{Param, Reducer, Request, Row, Takes};

const P: Param = Param { name: "p", default: None, at_least: 1.0 };
const EPS: Param = Param { name: "eps", default: Some(0.0), at_least: f64::MIN };

/// A row without parameters whose reduction over no axes is the identity.
const fn row(
    name: &'static str,
    aliases: &'static [&'static str],
    formula: &'static str,
    takes: Takes,
    build: fn(&Request) -> Reducer,
) -> Row {
    Row { name, aliases, formula, takes, params: &[], identity_over_no_axes: true, canonical: |_| None, build }
}

fn todo(_: &Request) -> Reducer {
    todo!()
}

/// Every reduction, in the order of the documentation's tables.
pub static ROWS: &[Row] = &[
    row("sum", &["ReduceSum", "add", "reduce_sum", "reduction_sum"], "sum x", Takes::Numbers, todo),
    row("prod", &["ReduceProd", "mul", "reduce_prod", "reduction_mul"], "product of x", Takes::Numbers, todo),
    row("min", &["ReduceMin", "amin", "reduce_min", "reduction_min"], "least x", Takes::All, todo),
    row("max", &["ReduceMax", "amax", "reduce_max", "reduction_max"], "greatest x", Takes::All, todo),
    row(
        "mean",
        &["ReduceMean", "avg", "average", "reduce_mean", "reduction_mean"],
        "(sum x) / n",
        Takes::Numbers,
        todo,
    ),
    row(
        "any",
        &["ReduceLogicalOr", "or", "logical_or", "reduce_or", "reduce_any"],
        "whether some x is true",
        Takes::Bool,
        todo,
    ),
    row(
        "all",
        &["ReduceLogicalAnd", "and", "logical_and", "reduce_and", "reduce_all"],
        "whether all x are true",
        Takes::Bool,
        todo,
    ),
    row("l1", &["ReduceL1", "norm_l1"], "sum |x|", Takes::Numbers, todo),
    row("l2", &["ReduceL2", "norm_l2", "norm"], "sqrt(sum x^2)", Takes::Numbers, todo),
    row("sum_squares", &["ReduceSumSquare", "sumsq", "sum_square", "sum_sq"], "sum x^2", Takes::Numbers, todo),
    row("log_sum", &["ReduceLogSum", "logsum"], "log(sum x)", Takes::Floats, todo),
    row("log_sum_exp", &["ReduceLogSumExp", "logsumexp", "lse"], "log(sum exp x)", Takes::Floats, todo),
    Row {
        params: &[P],
        canonical: |p| match p {
            [1.0] => Some(("l1", vec![])),
            [2.0] => Some(("l2", vec![])),
            _ => None,
        },
        ..row("lp", &["ReduceLp", "norm_lp"], "(sum |x|^p)^(1/p)", Takes::Floats, todo)
    },
    lp("lp_max", &["norm_lp_max", "reduction_norm_lp_max"], "max(sum |x|^p, eps)^(1/p)"),
    lp("lp_sum", &["norm_lp_sum", "norm_lp_add", "reduction_norm_lp_sum"], "(sum |x|^p + eps)^(1/p)"),
    lp("lp_power_p_max", &["norm_lp_power_p_max", "reduction_norm_lp_power_p_max"], "max(sum |x|^p, eps)"),
    lp(
        "lp_power_p_sum",
        &["norm_lp_power_p_sum", "norm_lp_power_p_add", "reduction_norm_lp_power_p_sum"],
        "sum |x|^p + eps",
    ),
];

/// One of oneDNN's norms.
const fn lp(name: &'static str, aliases: &'static [&'static str], formula: &'static str) -> Row {
    Row { params: &[P, EPS], identity_over_no_axes: false, ..row(name, aliases, formula, Takes::Floats, todo) }
}
