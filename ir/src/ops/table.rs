//! The rows.

use super::arg::{self, arg};
use super::extreme::{self, extreme};
use super::float::{PRODUCT, SUM, log, magnitude, norm, reducer, root, same, square};
use super::log_sum_exp::{log_sum_exp, sum_exp};
use super::moments::{mean_pair, var};
use super::select::{median, median_low, mode, quantile};
use super::{Forms, Integers, Param, ResultKind, Row, integer, truth};
use crate::{Expr, Op};

const PARAM: Param = Param { name: "", default: Some(0.0), at_least: f64::MIN, at_most: f64::MAX, is_flag: false };
const P: Param = Param { name: "p", default: None, at_least: 1.0, ..PARAM };
const EPS: Param = Param { name: "eps", ..PARAM };
const EPS_NOT_NEGATIVE: Param = Param { at_least: 0.0, ..EPS };
const DDOF: Param = Param { name: "ddof", at_least: 0.0, ..PARAM };
const Q: Param = Param { name: "q", default: None, at_least: 0.0, at_most: 1.0, ..PARAM };
const LAST: Param = Param { name: "last", at_least: 0.0, at_most: 1.0, is_flag: true, ..PARAM };

const NO_FORMS: Forms = Forms { truth: None, integer: None, float: None, direct: None };

/// The defaults of rows: no parameters, a copy over no axes, integers clamped.
const ROW: Row = Row {
    name: "",
    aliases: &[],
    proposal: &[],
    formula: "",
    params: &[],
    identity_over_no_axes: true,
    wraps: false,
    integer_of_nothing: true,
    canonical: |_| None,
    results: &[ResultKind::Value],
    inputs: 1,
    takes_position: false,
    applies: false,
    selects: false,
    integers: Integers::Refused,
    text: "",
    forms: NO_FORMS,
};

/// oneDNN's norms: under the root or not, eps the least value or added.
const NORM: Row = Row { params: &[P, EPS], identity_over_no_axes: false, ..ROW };

/// The defaults of rows for the position of an extreme.
const ARG: Row = Row {
    params: &[LAST],
    identity_over_no_axes: false,
    integer_of_nothing: false,
    results: &[ResultKind::Count],
    takes_position: true,
    ..ROW
};

/// The defaults of rows that select elements by their order.
const SELECT: Row = Row { identity_over_no_axes: false, integer_of_nothing: false, selects: true, ..ROW };

/// The defaults of rows that write the whole slice: regions.
const NORMALIZE: Row = Row { params: &[EPS_NOT_NEGATIVE], identity_over_no_axes: false, applies: true, ..ROW };

/// Every reduction, in the order of the documentation's tables.
pub static ROWS: &[Row] = &[
    Row {
        name: "sum",
        aliases: &["ReduceSum", "add", "reduce_sum", "reduction_sum"],
        proposal: &["Sum"],
        formula: "sum x",
        wraps: true,
        integers: Integers::Wide,
        forms: Forms { integer: Some(integer::sum), float: Some(|r| reducer(r, SUM, same, same)), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "prod",
        aliases: &["ReduceProd", "mul", "reduce_prod", "reduction_mul"],
        proposal: &["Prod"],
        formula: "product of x",
        wraps: true,
        integers: Integers::Wide,
        forms: Forms { integer: Some(integer::prod), float: Some(|r| reducer(r, PRODUCT, same, same)), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "min",
        aliases: &["ReduceMin", "amin", "reduce_min", "reduction_min"],
        proposal: &["Min"],
        formula: "least x",
        integers: Integers::Same,
        forms: Forms {
            truth: Some(truth::all),
            integer: Some(integer::min),
            float: Some(|r| extreme(r, Op::Min)),
            direct: Some(|r| extreme::direct(r, Op::Min)),
        },
        ..ROW
    },
    Row {
        name: "max",
        aliases: &["ReduceMax", "amax", "reduce_max", "reduction_max"],
        proposal: &["Max"],
        formula: "greatest x",
        integers: Integers::Same,
        forms: Forms {
            truth: Some(truth::any),
            integer: Some(integer::max),
            float: Some(|r| extreme(r, Op::Max)),
            direct: Some(|r| extreme::direct(r, Op::Max)),
        },
        ..ROW
    },
    Row {
        name: "mean",
        aliases: &["ReduceMean", "avg", "average", "reduce_mean", "reduction_mean"],
        proposal: &["Mean"],
        formula: "(sum x) / n",
        integer_of_nothing: false,
        forms: Forms {
            integer: Some(integer::mean),
            float: Some(|r| reducer(r, SUM, same, |_, s| s.div(r.count_in_accumulator()))),
            direct: Some(integer::direct_mean),
            ..NO_FORMS
        },
        ..ROW
    },
    Row {
        name: "any",
        aliases: &["ReduceLogicalOr", "or", "logical_or", "reduce_or", "reduce_any"],
        proposal: &["Or"],
        formula: "whether some x is true",
        forms: Forms { truth: Some(truth::any), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "all",
        aliases: &["ReduceLogicalAnd", "and", "logical_and", "reduce_and", "reduce_all"],
        proposal: &["And"],
        formula: "whether all x are true",
        forms: Forms { truth: Some(truth::all), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "l1",
        aliases: &["ReduceL1", "norm_l1"],
        formula: "sum |x|",
        wraps: true,
        integers: Integers::Wide,
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
        integers: Integers::Wide,
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
        proposal: &["LogSumExp"],
        formula: "log(sum exp x)",
        forms: Forms { float: Some(log_sum_exp), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "sum_exp",
        aliases: &[],
        formula: "m = max x and sum exp(x - m)",
        identity_over_no_axes: false,
        results: &[ResultKind::Accumulated; 2],
        forms: Forms { float: Some(sum_exp), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "lp",
        aliases: &["ReduceLp", "norm_lp"],
        proposal: &["p-norm"],
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
    Row {
        name: "linf",
        aliases: &["norm_linf", "max_abs", "absmax"],
        formula: "greatest |x|",
        forms: Forms { integer: Some(integer::linf), float: Some(extreme::linf), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "ptp",
        aliases: &["peak_to_peak", "range"],
        formula: "greatest x - least x",
        identity_over_no_axes: false,
        integer_of_nothing: false,
        forms: Forms { integer: Some(integer::ptp), float: Some(extreme::ptp), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "count_nonzero",
        aliases: &["countnonzero"],
        formula: "how many x are not 0",
        identity_over_no_axes: false,
        results: &[ResultKind::Count],
        forms: Forms {
            truth: Some(integer::count_nonzero),
            integer: Some(integer::count_nonzero),
            float: Some(integer::count_nonzero),
            ..NO_FORMS
        },
        ..ROW
    },
    Row {
        name: "bit_and",
        aliases: &["bitwise_and"],
        formula: "bits set in all x",
        wraps: true,
        integers: Integers::Same,
        forms: Forms { truth: Some(truth::all), integer: Some(|r| integer::bitwise(r, Op::And)), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "bit_or",
        aliases: &["bitwise_or"],
        formula: "bits set in some x",
        wraps: true,
        integers: Integers::Same,
        forms: Forms { truth: Some(truth::any), integer: Some(|r| integer::bitwise(r, Op::Or)), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "bit_xor",
        aliases: &["bitwise_xor", "xor", "parity"],
        formula: "bits set in an odd number of x",
        wraps: true,
        integers: Integers::Same,
        forms: Forms { truth: Some(truth::odd), integer: Some(|r| integer::bitwise(r, Op::Xor)), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "argmax",
        aliases: &["ArgMax", "arg_max"],
        formula: "position of the greatest x",
        forms: Forms {
            truth: Some(|r| arg(r, Op::Max)),
            integer: Some(|r| arg(r, Op::Max)),
            float: Some(|r| arg(r, Op::Max)),
            direct: Some(|r| arg::direct(r, Op::Max)),
        },
        ..ARG
    },
    Row {
        name: "argmin",
        aliases: &["ArgMin", "arg_min"],
        formula: "position of the least x",
        forms: Forms {
            truth: Some(|r| arg(r, Op::Min)),
            integer: Some(|r| arg(r, Op::Min)),
            float: Some(|r| arg(r, Op::Min)),
            direct: Some(|r| arg::direct(r, Op::Min)),
        },
        ..ARG
    },
    Row {
        name: "var",
        aliases: &["variance"],
        proposal: &["Variance"],
        formula: "sum (x - mean x)^2 / (n - ddof)",
        params: &[DDOF],
        identity_over_no_axes: false,
        forms: Forms { float: Some(|r| var(r, |v| v)), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "std",
        aliases: &["stddev", "standard_deviation"],
        proposal: &["Std"],
        formula: "sqrt(sum (x - mean x)^2 / (n - ddof))",
        params: &[DDOF],
        identity_over_no_axes: false,
        forms: Forms { float: Some(|r| var(r, Expr::sqrt)), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "mean_pair",
        aliases: &[],
        formula: "c and e, where c + e = mean x",
        identity_over_no_axes: false,
        results: &[ResultKind::Accumulated; 2],
        forms: Forms { float: Some(mean_pair), ..NO_FORMS },
        ..ROW
    },
    Row {
        name: "median",
        aliases: &[],
        proposal: &["Median"],
        formula: "mean of the middle two of sorted x",
        forms: Forms { integer: Some(median), float: Some(median), ..NO_FORMS },
        ..SELECT
    },
    Row {
        name: "median_low",
        aliases: &["torch_median"],
        formula: "lower of the middle two of sorted x",
        forms: Forms { integer: Some(median_low), float: Some(median_low), ..NO_FORMS },
        ..SELECT
    },
    Row {
        name: "quantile",
        aliases: &[],
        formula: "sorted x at q (n - 1), linear between",
        params: &[Q],
        forms: Forms { float: Some(quantile), ..NO_FORMS },
        ..SELECT
    },
    Row {
        name: "mode",
        aliases: &[],
        proposal: &["Mode"],
        formula: "least of the most frequent x, and how often it occurs",
        results: &[ResultKind::Value, ResultKind::Count],
        forms: Forms { integer: Some(mode), float: Some(mode), ..NO_FORMS },
        ..SELECT
    },
    Row {
        name: "l1_normalize_add",
        aliases: &[],
        formula: "x / (sum |x| + eps)",
        text: "x / (l1(x) + {eps})",
        ..NORMALIZE
    },
    Row {
        name: "l1_normalize_max",
        aliases: &["l1_normalize"],
        formula: "x / max(sum |x|, eps)",
        text: "x / max(l1(x), {eps})",
        ..NORMALIZE
    },
    Row {
        name: "linf_normalize_add",
        aliases: &[],
        formula: "x / (greatest |x| + eps)",
        text: "x / (linf(x) + {eps})",
        ..NORMALIZE
    },
    Row {
        name: "linf_normalize_max",
        aliases: &["linf_normalize"],
        formula: "x / max(greatest |x|, eps)",
        text: "x / max(linf(x), {eps})",
        ..NORMALIZE
    },
    Row {
        name: "l2_normalize_add",
        aliases: &["NormalizeL2_add", "openvino_l2_normalize_add"],
        proposal: &["l2_normalize of OpenVino, eps_mode add"],
        formula: "x / sqrt(sum x^2 + eps)",
        text: "x / sqrt(sum_squares(x) + {eps})",
        ..NORMALIZE
    },
    Row {
        name: "l2_normalize_max",
        aliases: &["l2_normalize", "NormalizeL2_max", "openvino_l2_normalize_max", "tf_l2_normalize"],
        proposal: &["l2_normalize of OpenVino, eps_mode max", "l2_normalize of TensorFlow"],
        formula: "x / sqrt(max(sum x^2, eps))",
        text: "x / sqrt(max(sum_squares(x), {eps}))",
        ..NORMALIZE
    },
    Row {
        name: "l2_normalize_max_root",
        aliases: &["normalize", "torch_normalize"],
        proposal: &["l2_normalize of PyTorch"],
        formula: "x / max(sqrt(sum x^2), eps)",
        text: "x / max(l2(x), {eps})",
        ..NORMALIZE
    },
    Row {
        name: "softmax",
        aliases: &[],
        formula: "exp(x - m) / sum exp(x - m), m = max x",
        params: &[],
        text: "m = max(x); e = exp(x - m); e / sum(e)",
        ..NORMALIZE
    },
    Row {
        name: "log_softmax",
        aliases: &["LogSoftmax"],
        formula: "x - m - log(sum exp(x - m)), m = max x",
        params: &[],
        text: "m = max(x); d = x - m; d - log(sum(exp(d)))",
        ..NORMALIZE
    },
    Row {
        name: "layer_norm",
        aliases: &["LayerNormalization", "layernorm"],
        formula: "(x - mean x) * r * x1 + x2, r = 1 / sqrt(var x + eps)",
        inputs: 3,
        text: "c = centered(x); r = 1 / sqrt(var(x) + {eps}); c * r",
        ..NORMALIZE
    },
    Row {
        name: "rms_norm",
        aliases: &["RMSNormalization", "rmsnorm"],
        formula: "x * r * x1, r = 1 / sqrt(mean x^2 + eps)",
        inputs: 2,
        text: "r = 1 / sqrt(mean(x * x) + {eps}); x * r",
        ..NORMALIZE
    },
    Row {
        name: "standardize",
        aliases: &["zscore"],
        formula: "(x - mean x) / std x",
        params: &[DDOF],
        text: "centered(x) / std(x, ddof={ddof})",
        ..NORMALIZE
    },
];
