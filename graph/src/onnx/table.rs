//! The ops of ONNX that become graph operations, with the versions of the operator set that each lowering reads.

use super::node::{Cx, Results};
use super::{constants, elementwise, gather, loss, norm, reduce, views};
use rustc_hash::FxHashMap;

/// The newest operator set that is read.
pub const MAX_OPSET: i64 = 28;

/// The lowering of an op.
#[derive(Clone, Copy)]
pub(super) enum How {
    /// A formula of the operands.
    Formula(&'static str),
    /// A row of the op table.
    Row(fn(&mut Cx, &'static str) -> Results, &'static str),
    /// A function of the node.
    Node(fn(&mut Cx) -> Results),
}

/// An op in some versions of the operator set.
pub(super) struct OpRow {
    pub op: &'static str,
    pub since: i64,
    pub how: How,
}

use How::{Formula, Node, Row};

const fn row(op: &'static str, since: i64, how: How) -> OpRow {
    OpRow { op, since, how }
}

/// Every op; a version is that from which the op exists, and a lowering asks for the version where a newer one differs.
pub(super) static OPS: &[OpRow] = &[
    // Formulas.
    row("Abs", 1, Formula("abs(x0)")),
    row("Acosh", 9, Formula("log(x0 + sqrt((x0 - 1) * (x0 + 1)))")),
    row("Add", 1, Formula("x0 + x1")),
    row("And", 1, Formula("x0 and x1")),
    row("Asinh", 9, Formula("sign(x0) * log1p(abs(x0) + x0 * x0 / (1 + sqrt(x0 * x0 + 1)))")),
    row("Atanh", 9, Formula("0.5 * log1p(2 * x0 / (1 - x0))")),
    row("BitwiseAnd", 18, Formula("x0 & x1")),
    row("BitwiseNot", 18, Formula("~x0")),
    row("BitwiseOr", 18, Formula("x0 | x1")),
    row("BitwiseXor", 18, Formula("x0 ^ x1")),
    row("Ceil", 1, Formula("ceil(x0)")),
    row("Cosh", 9, Formula("0.5 * exp(x0) + 0.5 * exp(-x0)")),
    row("Div", 1, Formula("x0 / x1")),
    row("Equal", 1, Formula("x0 == x1")),
    row("Erf", 9, Formula("erf(x0)")),
    row("Exp", 1, Formula("exp(x0)")),
    row("Floor", 1, Formula("floor(x0)")),
    row("Greater", 1, Formula("x0 > x1")),
    row("GreaterOrEqual", 12, Formula("x0 >= x1")),
    row("HardSwish", 14, Formula("x0 * max(min(x0 / 6 + 0.5, 1), 0)")),
    row("IsNaN", 9, Formula("is_nan(x0)")),
    row("Less", 1, Formula("x0 < x1")),
    row("LessOrEqual", 12, Formula("x0 <= x1")),
    row("Log", 1, Formula("log(x0)")),
    row("Mish", 18, Formula("x0 * tanh(softplus(x0))")),
    row("Mul", 1, Formula("x0 * x1")),
    row("Neg", 1, Formula("-x0")),
    row("Not", 1, Formula("not x0")),
    row("Or", 1, Formula("x0 or x1")),
    row("Reciprocal", 1, Formula("1 / x0")),
    row("Relu", 1, Formula("max(x0, 0)")),
    row("Round", 11, Formula("round(x0)")),
    row("Sigmoid", 1, Formula("sigmoid(x0)")),
    row("Sign", 9, Formula("sign(x0)")),
    row("Sinh", 9, Formula("0.5 * expm1(x0) - 0.5 * expm1(-x0)")),
    row("Softplus", 1, Formula("softplus(x0)")),
    row("Softsign", 1, Formula("x0 / (1 + abs(x0))")),
    row("Sqrt", 1, Formula("sqrt(x0)")),
    row("Sub", 1, Formula("x0 - x1")),
    row("Tanh", 1, Formula("tanh(x0)")),
    row("Where", 9, Formula("select(x0, x1, x2)")),
    row("Xor", 1, Formula("x0 != x1")),
    // Element-wise ops with attributes.
    row("BitShift", 11, Node(elementwise::bit_shift)),
    row("Cast", 1, Node(elementwise::cast)),
    row("CastLike", 15, Node(elementwise::cast_like)),
    row("Celu", 12, Node(elementwise::celu)),
    row("Clip", 1, Node(elementwise::clip)),
    row("Elu", 1, Node(elementwise::elu)),
    row("Gelu", 20, Node(elementwise::gelu)),
    row("HardSigmoid", 1, Node(elementwise::hard_sigmoid)),
    row("IsInf", 10, Node(elementwise::is_inf)),
    row("LeakyRelu", 1, Node(elementwise::leaky_relu)),
    row("Max", 1, Node(elementwise::max)),
    row("Mean", 1, Node(elementwise::mean)),
    row("Min", 1, Node(elementwise::min)),
    row("Mod", 10, Node(elementwise::modulo)),
    row("PRelu", 1, Node(elementwise::prelu)),
    row("Pow", 1, Node(elementwise::pow)),
    row("Selu", 1, Node(elementwise::selu)),
    row("Shrink", 9, Node(elementwise::shrink)),
    row("Sum", 1, Node(elementwise::sum)),
    row("SwiGLU", 28, Node(elementwise::swiglu)),
    row("Swish", 24, Node(elementwise::swish)),
    row("ThresholdedRelu", 10, Node(elementwise::thresholded_relu)),
    // Reductions.
    row("ArgMax", 1, Row(reduce::arg, "argmax")),
    row("ArgMin", 1, Row(reduce::arg, "argmin")),
    row("GlobalAveragePool", 1, Node(reduce::global_average)),
    row("GlobalLpPool", 1, Node(reduce::global_lp)),
    row("GlobalMaxPool", 1, Node(reduce::global_max)),
    row("ReduceL1", 1, Row(reduce::reduce, "l1")),
    row("ReduceL2", 1, Row(reduce::reduce, "l2")),
    row("ReduceLogSum", 1, Row(reduce::reduce, "log_sum")),
    row("ReduceLogSumExp", 1, Row(reduce::reduce, "log_sum_exp")),
    row("ReduceMax", 1, Row(reduce::reduce, "max")),
    row("ReduceMean", 1, Row(reduce::reduce, "mean")),
    row("ReduceMin", 1, Row(reduce::reduce, "min")),
    row("ReduceProd", 1, Row(reduce::reduce, "prod")),
    row("ReduceSum", 1, Row(reduce::reduce, "sum")),
    row("ReduceSumSquare", 1, Row(reduce::reduce, "sum_squares")),
    row("TopK", 1, Node(reduce::top_k)),
    // Normalisations and losses.
    row("BatchNormalization", 1, Node(norm::batch)),
    row("GroupNormalization", 18, Node(norm::group)),
    row("Hardmax", 1, Node(reduce::hardmax)),
    row("InstanceNormalization", 1, Node(norm::instance)),
    row("LayerNormalization", 17, Node(norm::layer)),
    row("LogSoftmax", 1, Row(reduce::softmax, "log_softmax")),
    row("LpNormalization", 1, Node(reduce::lp_normalization)),
    row("MeanVarianceNormalization", 9, Node(norm::mean_variance)),
    row("NegativeLogLikelihoodLoss", 12, Node(loss::nll)),
    row("RMSNormalization", 23, Node(norm::rms)),
    row("Softmax", 1, Row(reduce::softmax, "softmax")),
    row("SoftmaxCrossEntropyLoss", 12, Node(loss::cross_entropy)),
    // Views and parts.
    row("Concat", 1, Node(views::concat)),
    row("DepthToSpace", 1, Node(views::depth_to_space)),
    row("Dropout", 1, Node(views::dropout)),
    row("Expand", 8, Node(views::expand)),
    row("Flatten", 1, Node(views::flatten)),
    row("Gather", 1, Node(gather::gather)),
    row("GatherElements", 11, Node(gather::elements)),
    row("Identity", 1, Node(views::identity)),
    row("Reshape", 1, Node(views::reshape)),
    row("Slice", 1, Node(views::slice)),
    row("SpaceToDepth", 1, Node(views::space_to_depth)),
    row("Split", 1, Node(views::split)),
    row("Squeeze", 1, Node(views::squeeze)),
    row("Tile", 6, Node(views::tile)),
    row("Transpose", 1, Node(views::transpose)),
    row("Unsqueeze", 1, Node(views::unsqueeze)),
    // Known values and masks.
    row("Constant", 1, Node(constants::constant)),
    row("ConstantOfShape", 9, Node(constants::constant_of_shape)),
    row("EyeLike", 9, Node(constants::eye_like)),
    row("OneHot", 9, Node(constants::one_hot)),
    row("Range", 11, Node(constants::range)),
    row("Shape", 1, Node(constants::shape)),
    row("Size", 1, Node(constants::size)),
    row("Trilu", 14, Node(constants::trilu)),
];

/// The rows by the names of their ops.
pub(super) fn by_name() -> FxHashMap<&'static str, &'static OpRow> {
    OPS.iter().map(|row| (row.op, row)).collect()
}

/// The ops whose results are one kind of reduction or another.
pub(super) fn is_reduction(op: &str) -> bool {
    let from = ["Reduce", "Arg", "Softmax", "LogSoftmax", "Global", "NegativeLog", "Hardmax"];
    op.ends_with("Normalization") || from.iter().any(|start| op.starts_with(start))
}

/// Returns true for ops whose results are read where their operands lie, or by formulas.
pub(super) fn is_passed_through(row: &OpRow) -> bool {
    let views =
        ["Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze", "Cast", "Pow"];
    matches!(row.how, Formula(_)) || views.contains(&row.op)
}
