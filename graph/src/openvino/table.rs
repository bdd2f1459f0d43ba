//! The ops of OpenVINO that become graph operations.

use super::layer::{Cx, Results};
use super::{elementwise, norm, reduce, views};
use rustc_hash::FxHashMap;

/// The newest set of ops that is read.
pub const MAX_OPSET: u32 = 17;

/// The lowering of an op.
#[derive(Clone, Copy)]
pub(super) enum How {
    /// A formula of the operands.
    Formula(&'static str),
    /// A row of the op table.
    Row(fn(&mut Cx, &'static str) -> Results, &'static str),
    /// A function of the layer.
    Layer(fn(&mut Cx) -> Results),
}

use How::{Formula, Layer, Row};

/// Every op by the type of its layers, which is not always its name: `Const`, `ReLU`, `SoftMax`.
static TYPES: &[(&str, How)] = &[
    // Formulas.
    ("Abs", Formula("abs(x0)")),
    ("Acosh", Formula("log(x0 + sqrt((x0 - 1) * (x0 + 1)))")),
    ("Add", Formula("x0 + x1")),
    ("Asinh", Formula("sign(x0) * log1p(abs(x0) + x0 * x0 / (1 + sqrt(x0 * x0 + 1)))")),
    ("Atanh", Formula("0.5 * log1p(2 * x0 / (1 - x0))")),
    ("BitwiseAnd", Formula("x0 & x1")),
    ("BitwiseNot", Formula("~x0")),
    ("BitwiseOr", Formula("x0 | x1")),
    ("BitwiseXor", Formula("x0 ^ x1")),
    ("Ceiling", Formula("ceil(x0)")),
    ("Cosh", Formula("0.5 * exp(x0) + 0.5 * exp(-x0)")),
    ("Equal", Formula("x0 == x1")),
    ("Erf", Formula("erf(x0)")),
    ("Exp", Formula("exp(x0)")),
    ("Floor", Formula("floor(x0)")),
    ("Greater", Formula("x0 > x1")),
    ("GreaterEqual", Formula("x0 >= x1")),
    ("HSigmoid", Formula("min(max(x0 + 3, 0), 6) / 6")),
    ("HSwish", Formula("x0 * (min(max(x0 + 3, 0), 6) / 6)")),
    ("IsFinite", Formula("not (is_nan(x0) or is_inf(x0))")),
    ("IsNaN", Formula("is_nan(x0)")),
    ("Less", Formula("x0 < x1")),
    ("LessEqual", Formula("x0 <= x1")),
    ("Log", Formula("log(x0)")),
    ("LogicalAnd", Formula("x0 and x1")),
    ("LogicalNot", Formula("not x0")),
    ("LogicalOr", Formula("x0 or x1")),
    ("LogicalXor", Formula("x0 != x1")),
    ("Maximum", Formula("max(x0, x1)")),
    ("Minimum", Formula("min(x0, x1)")),
    ("Mish", Formula("x0 * tanh(softplus(x0))")),
    ("Multiply", Formula("x0 * x1")),
    ("Negative", Formula("-x0")),
    ("NotEqual", Formula("x0 != x1")),
    ("ReLU", Formula("max(x0, 0)")),
    ("Select", Formula("select(x0, x1, x2)")),
    ("Sigmoid", Formula("sigmoid(x0)")),
    ("Sign", Formula("sign(x0)")),
    ("Sinh", Formula("0.5 * expm1(x0) - 0.5 * expm1(-x0)")),
    ("SoftPlus", Formula("softplus(x0)")),
    ("SoftSign", Formula("x0 / (1 + abs(x0))")),
    ("Sqrt", Formula("sqrt(x0)")),
    ("SquaredDifference", Formula("(x0 - x1) * (x0 - x1)")),
    ("Subtract", Formula("x0 - x1")),
    ("Tanh", Formula("tanh(x0)")),
    // Element-wise ops with attributes.
    ("Clamp", Layer(elementwise::clamp)),
    ("Convert", Layer(elementwise::convert)),
    ("ConvertLike", Layer(elementwise::convert_like)),
    ("Divide", Layer(elementwise::divide)),
    ("Elu", Layer(elementwise::elu)),
    ("FloorMod", Layer(elementwise::floor_mod)),
    ("Gelu", Layer(elementwise::gelu)),
    ("HardSigmoid", Layer(elementwise::hard_sigmoid)),
    ("IsInf", Layer(elementwise::is_inf)),
    ("Mod", Layer(elementwise::modulo)),
    ("PReLU", Layer(elementwise::prelu)),
    ("Power", Layer(elementwise::power)),
    ("Round", Layer(elementwise::round)),
    ("Selu", Layer(elementwise::selu)),
    ("Swish", Layer(elementwise::swish)),
    // Reductions.
    ("ReduceL1", Row(reduce::reduce, "l1")),
    ("ReduceL2", Row(reduce::reduce, "l2")),
    ("ReduceLogicalAnd", Row(reduce::reduce, "all")),
    ("ReduceLogicalOr", Row(reduce::reduce, "any")),
    ("ReduceMax", Row(reduce::reduce, "max")),
    ("ReduceMean", Row(reduce::reduce, "mean")),
    ("ReduceMin", Row(reduce::reduce, "min")),
    ("ReduceProd", Row(reduce::reduce, "prod")),
    ("ReduceSum", Row(reduce::reduce, "sum")),
    ("TopK", Layer(reduce::top_k)),
    // Normalisations.
    ("BatchNormInference", Layer(norm::batch)),
    ("GroupNormalization", Layer(norm::group)),
    ("LogSoftmax", Row(reduce::softmax, "log_softmax")),
    ("MVN", Layer(norm::mvn)),
    ("NormalizeL2", Layer(norm::normalize_l2)),
    ("SoftMax", Row(reduce::softmax, "softmax")),
    // Views, parts and known values.
    ("Broadcast", Layer(views::spread)),
    ("Concat", Layer(views::concat)),
    ("Gather", Layer(views::gather)),
    ("GatherElements", Layer(views::gather_elements)),
    ("Identity", Layer(views::identity)),
    ("Reshape", Layer(views::reshape)),
    ("ShapeOf", Layer(views::shape_of)),
    ("Slice", Layer(views::slice)),
    ("Split", Layer(views::split)),
    ("Squeeze", Layer(views::squeeze)),
    ("StridedSlice", Layer(views::strided_slice)),
    ("Tile", Layer(views::tile)),
    ("Transpose", Layer(views::transpose)),
    ("Unsqueeze", Layer(views::unsqueeze)),
    ("VariadicSplit", Layer(views::variadic_split)),
];

/// The lowerings by type.
pub(super) fn by_type() -> FxHashMap<&'static str, How> {
    TYPES.iter().copied().collect()
}

/// The layers whose results are one kind of reduction or another.
pub(super) fn is_reduction(kind: &str) -> bool {
    kind.starts_with("Reduce") || ["SoftMax", "LogSoftmax", "MVN", "NormalizeL2", "GroupNormalization"].contains(&kind)
}

/// Returns true for layers whose results are read where their operands lie, or by formulas.
pub(super) fn is_passed_through(how: How, kind: &str) -> bool {
    let views = ["Broadcast", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze", "Convert", "Power", "Divide"];
    matches!(how, Formula(_)) || views.contains(&kind)
}
