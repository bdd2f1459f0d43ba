//! The operations of a graph's nodes.

use crate::data::Data;
use cranefold_ir::DType;
use cranefold_ir::expression::Expression;
use cranefold_ir::ops::OpCall;

/// The operation of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A tensor that the caller gives.
    Input,
    /// A tensor that is known.
    Constant(Data),
    /// A formula of the elements of the inputs `x0`, `x1`, …, which broadcast right-aligned, as in NumPy.
    ///
    /// In the formula a float of 16 bits is an `f32`, an integer of 8 or 16 bits an `i32`; the result is converted once to
    /// the type of the node's value.
    Map(Expression),
    /// A conversion, by the rules of expressions: a float to an integer towards zero, clamped, NaN to 0; integers modulo
    /// 2^bits, or clamped if `saturate` is true.
    Cast {
        /// The element type of the result.
        to: DType,
        /// True if an integer beyond the range of an integer type becomes its limit.
        saturate: bool,
    },
    /// The same elements in row-major order in another shape.
    Reshape(Vec<u64>),
    /// Axis `i` of the result is axis `perm[i]` of the input.
    Transpose(Vec<usize>),
    /// The input stretched to this shape, right-aligned: extents of 1 are repeated, missing axes added in front.
    Broadcast(Vec<u64>),
    /// Every `step`-th element from `start` on, `extent` of them, along each axis; a negative step goes backwards.
    Slice(Vec<Range>),
    /// The inputs one after the other along an axis.
    Concat(usize),
    /// The index along an axis, of a shape, as `i64`.
    Position {
        /// The shape of the value.
        shape: Vec<u64>,
        /// The axis whose index it is.
        axis: usize,
    },
    /// A reduction: a row of the op table that gives values of the slice.
    Reduce {
        /// The row with its parameters.
        call: OpCall,
        /// The reduced axes in ascending order; over none each element is a slice.
        axes: Vec<usize>,
        /// True if reduced axes stay with extent 1.
        keep_dims: bool,
    },
    /// A row of the op table that writes a value at each position, such as `softmax`; scale and bias follow the first
    /// input where the row takes them.
    Normalize {
        /// The row with its parameters.
        call: OpCall,
        /// The reduced axes in ascending order.
        axes: Vec<usize>,
    },
    /// Picks elements by an index along an axis: `out[.., j, ..] = x[.., index[.., j, ..], ..]`, where the index has the
    /// extents of x along the other axes. A negative index counts from the end; one out of range picks 0.
    Pick(usize),
    /// An op that stands for several others.
    Composite {
        /// The row of [`COMPOSITES`].
        row: &'static CompositeRow,
        /// The axes in ascending order, for rows that take them.
        axes: Vec<usize>,
        /// The parameters in the row's order; none where an optional one is missing.
        params: Vec<Option<f64>>,
    },
    /// A host's operation that no kernel computes: a matrix product, a convolution.
    Opaque {
        /// The host's name of the operation.
        op: String,
        /// Its attributes in the host's order.
        attributes: Vec<(String, Attribute)>,
    },
}

/// Elements along one axis of a [slice](Op::Slice).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The first element.
    pub start: u64,
    /// The distance to the next, not 0.
    pub step: i64,
    /// The number of elements.
    pub extent: u64,
}

impl Range {
    /// All elements of an axis.
    pub fn all(extent: u64) -> Range {
        Range { start: 0, step: 1, extent }
    }
}

/// An attribute of an opaque node. Two are equal if their texts are: a NaN equals a NaN, and 0 is not -0.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each variant is its own name")]
pub enum Attribute {
    Int(i64),
    Float(f64),
    Text(String),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
}

impl PartialEq for Attribute {
    fn eq(&self, other: &Attribute) -> bool {
        let same = |a: &f64, b: &f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        match (self, other) {
            (Attribute::Int(a), Attribute::Int(b)) => a == b,
            (Attribute::Float(a), Attribute::Float(b)) => same(a, b),
            (Attribute::Text(a), Attribute::Text(b)) => a == b,
            (Attribute::Ints(a), Attribute::Ints(b)) => a == b,
            (Attribute::Floats(a), Attribute::Floats(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
            }
            _ => false,
        }
    }
}

impl Eq for Attribute {}

/// An op that stands for several others.
#[derive(Debug, PartialEq)]
pub struct CompositeRow {
    /// The name in text.
    pub name: &'static str,
    /// The meaning.
    pub formula: &'static str,
    /// The least and the greatest number of inputs.
    pub inputs: [usize; 2],
    /// The least and the greatest number of outputs.
    pub outputs: [usize; 2],
    /// True if it takes axes.
    pub takes_axes: bool,
    /// The parameters with their defaults.
    pub params: &'static [CompositeParam],
}

/// A parameter of a composite.
#[derive(Debug, PartialEq)]
pub struct CompositeParam {
    /// The name in text.
    pub name: &'static str,
    /// The value where none is given.
    pub default: Option<f64>,
    /// True if it must be given.
    pub is_needed: bool,
}

const fn given(name: &'static str, default: f64) -> CompositeParam {
    CompositeParam { name, default: Some(default), is_needed: false }
}

const fn needed(name: &'static str) -> CompositeParam {
    CompositeParam { name, default: None, is_needed: true }
}

const ROW: CompositeRow = CompositeRow {
    name: "",
    formula: "",
    inputs: [1, 1],
    outputs: [1, 1],
    takes_axes: false,
    params: &[given("eps", 1e-5)],
};

const IGNORE: &[CompositeParam] = &[CompositeParam { name: "ignore", default: None, is_needed: false }];

/// Every composite that is no row of the op table. Axis 1 of x is the channel, or the class.
pub static COMPOSITES: &[CompositeRow] = &[
    CompositeRow {
        name: "layer_norm_stats",
        formula: "layer_norm over axes, then the mean and 1 / sqrt(var + eps) with extents of 1",
        inputs: [1, 3],
        outputs: [3, 3],
        takes_axes: true,
        ..ROW
    },
    CompositeRow {
        name: "group_norm",
        formula: "each of `groups` runs of channels less its mean, over its deviation; times scale, plus bias of channels",
        inputs: [1, 3],
        params: &[needed("groups"), given("eps", 1e-5)],
        ..ROW
    },
    CompositeRow {
        name: "instance_norm",
        formula: "each channel less its mean, over its deviation; times scale, plus bias of channels",
        inputs: [1, 3],
        ..ROW
    },
    CompositeRow {
        name: "batch_norm",
        formula: "(x - mean) / sqrt(var + eps) * scale + bias; inputs x, scale, bias, mean, var of channels",
        inputs: [5, 5],
        ..ROW
    },
    CompositeRow {
        name: "batch_norm_training",
        formula: "batch_norm by the mean and variance of x, then mean and var with momentum parts of the old ones",
        inputs: [5, 5],
        outputs: [3, 3],
        params: &[given("eps", 1e-5), given("momentum", 0.9)],
        ..ROW
    },
    CompositeRow {
        name: "mvn",
        formula: "x less its mean; if `variance`, over sqrt(var + eps), or over sqrt(var) + eps if `outside`",
        takes_axes: true,
        params: &[given("eps", 1e-9), given("variance", 1.0), given("outside", 0.0)],
        ..ROW
    },
    CompositeRow {
        name: "hardmax",
        formula: "1 at the first greatest element along the axis, else 0",
        takes_axes: true,
        params: &[],
        ..ROW
    },
    CompositeRow {
        name: "nll_loss",
        formula: "-x at the label times its weight; inputs x, label, weight of classes; a label `ignore` has no loss",
        inputs: [2, 3],
        params: IGNORE,
        ..ROW
    },
    CompositeRow { name: "nll_loss_sum", formula: "sum of nll_loss", inputs: [2, 3], params: IGNORE, ..ROW },
    CompositeRow {
        name: "nll_loss_mean",
        formula: "sum of nll_loss over the sum of the weights of its labels",
        inputs: [2, 3],
        params: IGNORE,
        ..ROW
    },
    CompositeRow {
        name: "cross_entropy",
        formula: "nll_loss of log_softmax along axis 1, which is the second output",
        inputs: [2, 3],
        outputs: [1, 2],
        params: IGNORE,
        ..ROW
    },
    CompositeRow {
        name: "cross_entropy_sum",
        formula: "sum of cross_entropy",
        inputs: [2, 3],
        outputs: [1, 2],
        params: IGNORE,
        ..ROW
    },
    CompositeRow {
        name: "cross_entropy_mean",
        formula: "sum of cross_entropy over the sum of the weights of its labels",
        inputs: [2, 3],
        outputs: [1, 2],
        params: IGNORE,
        ..ROW
    },
];

impl CompositeRow {
    /// The row of this name.
    pub fn find(name: &str) -> Option<&'static CompositeRow> {
        COMPOSITES.iter().find(|row| row.name == name)
    }

    /// The parameters in the row's order.
    pub(crate) fn values(&self, given: &[(&str, f64)]) -> Result<Vec<Option<f64>>, String> {
        if let Some((name, _)) = given.iter().find(|(name, _)| self.params.iter().all(|p| p.name != *name)) {
            return Err(format!("`{}` has no parameter `{name}`", self.name));
        }
        let value = |param: &CompositeParam| {
            let mut values = given.iter().filter(|(name, _)| *name == param.name).map(|(_, value)| *value);
            match (values.next(), values.next()) {
                (_, Some(_)) => Err(format!("parameter `{}` is given twice", param.name)),
                (Some(value), _) if !value.is_finite() => Err(format!("parameter `{}` is {value}", param.name)),
                (None, _) if param.is_needed => Err(format!("`{}` needs the parameter `{}`", self.name, param.name)),
                (value, _) => Ok(value.or(param.default)),
            }
        };
        self.params.iter().map(value).collect()
    }

    /// The value of a parameter.
    pub(crate) fn param(&self, params: &[Option<f64>], name: &str) -> Option<f64> {
        self.params.iter().zip(params).find(|(param, _)| param.name == name).and_then(|(_, value)| *value)
    }
}

impl Op {
    /// The word that begins the operation in text.
    pub fn word(&self) -> &str {
        match self {
            Op::Input => "input",
            Op::Constant(_) => "const",
            Op::Map(_) => "map",
            Op::Cast { .. } => "cast",
            Op::Reshape(_) => "reshape",
            Op::Transpose(_) => "transpose",
            Op::Broadcast(_) => "broadcast",
            Op::Slice(_) => "slice",
            Op::Concat(_) => "concat",
            Op::Position { .. } => "position",
            Op::Reduce { call, .. } | Op::Normalize { call, .. } => call.as_row().map_or("combiner", |row| row.name),
            Op::Pick(_) => "pick",
            Op::Composite { row, .. } => row.name,
            Op::Opaque { .. } => "opaque",
        }
    }
}
