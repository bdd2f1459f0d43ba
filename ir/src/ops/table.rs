//! The rows.

use super::extreme::extreme;
use super::float::{PRODUCT, SUM, log, magnitude, norm, reducer, root, same, square};
use super::log_sum_exp::log_sum_exp;
use super::{Forms, Param, Row, integer, truth};
use crate::{Expr, Op};

const P: Param = Param { name: "p", default: None, at_least: 1.0 };
const EPS: Param = Param { name: "eps", default: Some(0.0), at_least: f64::MIN };

const NO_FORMS: Forms = Forms { truth: None, integer: None, float: None };

/// What rows have in common: no parameters, a copy over no axes, integers clamped.
const ROW: Row = Row {
    name: "",
    aliases: &[],
    formula: "",
    params: &[],
    identity_over_no_axes: true,
    wraps: false,
    integer_of_nothing: true,
    canonical: |_| None,
    forms: NO_FORMS,
};

/// oneDNN's norms: under the root or not, eps the least value or added.
const NORM: Row = Row { params: &[P, EPS], identity_over_no_axes: false, ..ROW };

/// Every reduction, in the order of the documentation's tables.
pub static ROWS: &[Row] = &[
    Row {
        name: "sum",
        aliases: &["ReduceSum", "add", "reduce_sum", "reduction_sum"],
        formula: "sum x",
        wraps: true,
        forms: Forms { integer: Some(integer::sum), float: Some(|r| reducer(r, SUM, same, same)), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "prod",
        aliases: &["ReduceProd", "mul", "reduce_prod", "reduction_mul"],
        formula: "product of x",
        wraps: true,
        forms: Forms { integer: Some(integer::prod), float: Some(|r| reducer(r, PRODUCT, same, same)), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "min",
        aliases: &["ReduceMin", "amin", "reduce_min", "reduction_min"],
        formula: "least x",
        forms: Forms { truth: Some(truth::all), integer: Some(integer::min), float: Some(|r| extreme(r, Op::Min)) },
        ..ROW
    },
    Row {
        name: "max",
        aliases: &["ReduceMax", "amax", "reduce_max", "reduction_max"],
        formula: "greatest x",
        forms: Forms { truth: Some(truth::any), integer: Some(integer::max), float: Some(|r| extreme(r, Op::Max)) },
        ..ROW
    },
    Row {
        name: "mean",
        aliases: &["ReduceMean", "avg", "average", "reduce_mean", "reduction_mean"],
        formula: "(sum x) / n",
        integer_of_nothing: false,
        forms: Forms {
            integer: Some(integer::mean),
            float: Some(|r| reducer(r, SUM, same, |_, s| s.div(r.count_in_accumulator()))),
            ..NO_FORMS
        },
        ..ROW
    },
    Row {
        name: "any",
        aliases: &["ReduceLogicalOr", "or", "logical_or", "reduce_or", "reduce_any"],
        formula: "whether some x is true",
        forms: Forms { truth: Some(truth::any), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "all",
        aliases: &["ReduceLogicalAnd", "and", "logical_and", "reduce_and", "reduce_all"],
        formula: "whether all x are true",
        forms: Forms { truth: Some(truth::all), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "l1",
        aliases: &["ReduceL1", "norm_l1"],
        formula: "sum |x|",
        wraps: true,
        forms: Forms { integer: Some(integer::l1), float: Some(|r| reducer(r, SUM, magnitude, same)), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "l2",
        aliases: &["ReduceL2", "norm_l2", "norm"],
        formula: "sqrt(sum x^2)",
        forms: Forms { integer: Some(integer::l2), float: Some(|r| reducer(r, SUM, square, root)), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "sum_squares",
        aliases: &["ReduceSumSquare", "sumsq", "sum_square", "sum_sq"],
        formula: "sum x^2",
        wraps: true,
        forms: Forms {
            integer: Some(integer::sum_squares),
            float: Some(|r| reducer(r, SUM, square, same)),
            ..NO_FORMS
        },
        ..ROW
    },
    Row {
        name: "log_sum",
        aliases: &["ReduceLogSum", "logsum"],
        formula: "log(sum x)",
        forms: Forms { float: Some(|r| reducer(r, SUM, same, log)), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "log_sum_exp",
        aliases: &["ReduceLogSumExp", "logsumexp", "lse"],
        formula: "log(sum exp x)",
        forms: Forms { float: Some(log_sum_exp), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "lp",
        aliases: &["ReduceLp", "norm_lp"],
        formula: "(sum |x|^p)^(1/p)",
        params: &[P],
        canonical: |p| match p {
            [1.0] => Some(("l1", vec![])),
            [2.0] => Some(("l2", vec![])),
            _ => None,
        },
        forms: Forms { float: Some(|r| norm(r, |s, _| s, true)), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "lp_max",
        aliases: &["norm_lp_max", "reduction_norm_lp_max"],
        formula: "max(sum |x|^p, eps)^(1/p)",
        forms: Forms { float: Some(|r| norm(r, Expr::max, true)), ..NO_FORMS },
        ..NORM
    },
    Row {
        name: "lp_sum",
        aliases: &["norm_lp_sum", "norm_lp_add", "reduction_norm_lp_sum"],
        formula: "(sum |x|^p + eps)^(1/p)",
        forms: Forms { float: Some(|r| norm(r, Expr::add, true)), ..NO_FORMS },
        ..NORM
    },
    Row {
        name: "lp_power_p_max",
        aliases: &["norm_lp_power_p_max", "reduction_norm_lp_power_p_max"],
        formula: "max(sum |x|^p, eps)",
        forms: Forms { float: Some(|r| norm(r, Expr::max, false)), ..NO_FORMS },
        ..NORM
    },
    Row {
        name: "lp_power_p_sum",
        aliases: &["norm_lp_power_p_sum", "norm_lp_power_p_add", "reduction_norm_lp_power_p_sum"],
        formula: "sum |x|^p + eps",
        forms: Forms { float: Some(|r| norm(r, Expr::add, false)), ..NO_FORMS },
        ..NORM
    },
];
