//! The request: what to reduce, over which axes, from and to what.

mod build;
mod dims;
mod error;
mod print;
mod text;

pub use build::Builder;
pub use dims::Dims;
pub use error::SpecError;

use crate::layout::{Layout, Placement};
use cranefold_ir::DType;
use cranefold_ir::ops::Row;
use std::hash::{Hash, Hasher};

/// The greatest rank of an operand.
pub const MAX_RANK: usize = 64;

/// The longest text that is parsed, in bytes.
pub const MAX_TEXT: usize = 100_000;

/// A reduction as the user means it, validated.
///
/// Two requests that mean the same in the same words of layout are equal, however they were
/// spelled: axes are sorted and not negative, aliases and defaults are resolved. The text form
/// ([`Display`](std::fmt::Display), [`FromStr`](std::str::FromStr)) reads back to an equal request.
///
/// ```
/// use cranefold::{DType, Reduction};
///
/// let built = Reduction::builder("ReduceMean").input(DType::F32, &[6, 12, 10, 24]).axes([-2]).keep_dims().build()?;
/// let parsed: Reduction = "mean keep_dims f32[6,12,10,24] axes=2".parse()?;
/// assert_eq!(built, parsed);
/// assert_eq!(built.to_string(), "mean f32[6,12,10,24] axes=[2] keep_dims");
/// assert_eq!(built.outputs()[0].shape(), [6, 12, 1, 24]);
/// assert_eq!(built.output_stride_of_axis(0), [288, 24, 0, 1]);
/// # Ok::<(), cranefold::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reduction {
    reducers: Vec<Reducer>,
    inputs: Vec<Operand>,
    outputs: Vec<Operand>,
    reduced: Vec<bool>,
    keep_dims: bool,
    /// Whether a reduction over no axes reduces groups of one, where the row would copy.
    lift: bool,
    /// The accumulator of float inputs.
    accumulator: Option<DType>,
    saturate: bool,
    /// What was said, where it is not the default.
    rounding: Option<Rounding>,
}

/// How a value that is no integer becomes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Towards zero; `trunc` in text. What integer means do when nothing is said.
    Trunc,
    /// To the nearest integer, ties to the even one; `round_half_even` in text.
    HalfEven,
}

impl Rounding {
    /// The word in text.
    pub const fn word(self) -> &'static str {
        match self {
            Rounding::Trunc => "trunc",
            Rounding::HalfEven => "round_half_even",
        }
    }
}

/// A row of the op table with the values of its parameters.
#[derive(Clone, Debug)]
pub struct Reducer {
    row: &'static Row,
    params: Vec<u64>,
}

impl Reducer {
    fn new(row: &'static Row, params: &[f64]) -> Reducer {
        // A zero's sign does not count, so that equal requests are equal.
        Reducer { row, params: params.iter().map(|p| (p + 0.0).to_bits()).collect() }
    }

    /// The first parameter that an `f32` cannot hold.
    fn overflowing_param(&self) -> Option<(&'static str, f64)> {
        let mut named = self.row.params.iter().map(|p| p.name).zip(self.params());
        named.find(|(_, value)| (*value as f32).is_infinite())
    }

    /// The row.
    pub fn row(&self) -> &'static Row {
        self.row
    }

    /// The parameters' values, in the row's order, defaults filled in.
    pub fn params(&self) -> Vec<f64> {
        self.params.iter().map(|&bits| f64::from_bits(bits)).collect()
    }
}

impl PartialEq for Reducer {
    fn eq(&self, other: &Reducer) -> bool {
        self.row.name == other.row.name && self.params == other.params
    }
}

impl Eq for Reducer {}

impl Hash for Reducer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.row.name.hash(state);
        self.params.hash(state);
    }
}

/// An input or output: element type, shape as the user sees it, and where the elements lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    dtype: DType,
    shape: Vec<u64>,
    layout: Layout,
    placement: Placement,
}

impl Operand {
    /// The element type; a `bool` is one byte.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents. An output's are those after reduction, with ones under `keep_dims`.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The layout as it was said.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Elements between neighbours along each axis of the shape.
    pub fn strides(&self) -> &[i64] {
        &self.placement.strides
    }

    /// Index in the buffer of the element whose indices are all 0.
    pub fn origin(&self) -> u64 {
        self.placement.origin
    }

    /// Length of the buffer in elements, from the lowest to the highest touched; 0 if none is.
    pub fn span_elems(&self) -> u64 {
        self.placement.span_elems
    }

    /// Length of the buffer in bytes.
    pub fn span_bytes(&self) -> u64 {
        self.placement.span_elems * self.dtype.bytes()
    }

    /// How many elements the shape has.
    pub fn elems(&self) -> u64 {
        count(self.shape.iter().copied())
    }
}

impl Reduction {
    /// Starts a request for one op, by its name or an alias.
    pub fn builder(op: &str) -> Builder {
        Builder::new(op)
    }

    /// The reducers, with their parameters; one for now.
    pub fn reducers(&self) -> &[Reducer] {
        &self.reducers
    }

    /// The row of the op table.
    pub fn row(&self) -> &'static Row {
        self.reducers[0].row
    }

    /// The op's parameters, in the row's order, defaults filled in.
    pub fn params(&self) -> Vec<f64> {
        self.reducers[0].params()
    }

    /// The inputs; one for now.
    pub fn inputs(&self) -> &[Operand] {
        &self.inputs
    }

    /// The outputs; one for now.
    pub fn outputs(&self) -> &[Operand] {
        &self.outputs
    }

    /// The rank of the inputs.
    pub fn rank(&self) -> usize {
        self.reduced.len()
    }

    /// For each input axis, whether it is reduced.
    pub fn reduced(&self) -> &[bool] {
        &self.reduced
    }

    /// The reduced axes in ascending order.
    pub fn axes(&self) -> Vec<usize> {
        (0..self.rank()).filter(|&axis| self.reduced[axis]).collect()
    }

    /// Whether reduced axes stay in the output's shape, with extent 1. Over no axes this is false,
    /// for it makes no difference.
    pub fn keep_dims(&self) -> bool {
        self.keep_dims
    }

    /// How many elements each output element is reduced from: the product of the reduced extents.
    pub fn reduced_count(&self) -> u64 {
        count(self.axes().into_iter().map(|axis| self.inputs[0].shape[axis]))
    }

    /// Whether this only copies: each element is converted to the output's type, and a NaN made
    /// canonical. So it is over no axes, unless groups of one are asked for or the op's nature.
    pub fn is_identity(&self) -> bool {
        !self.reduced.contains(&true) && self.row().identity_over_no_axes && !self.lift
    }

    /// The accumulator type of float inputs, `F32` or `F64`; none for integers and `bool`.
    pub fn accumulator(&self) -> Option<DType> {
        self.accumulator
    }

    /// Whether integer results are clamped to the output's range rather than taken modulo 2^bits.
    pub fn saturate(&self) -> bool {
        self.saturate
    }

    /// How results become integers where the output is one.
    pub fn rounding(&self) -> Rounding {
        self.rounding.unwrap_or(Rounding::Trunc)
    }

    /// Strides of output `output` by *input* axis, in elements: 0 for the reduced ones.
    ///
    /// # Panics
    /// If there is no such output.
    pub fn output_stride_of_axis(&self, output: usize) -> Vec<i64> {
        let mut strides = self.outputs[output].strides().iter();
        let mut next = || *strides.next().expect("as many strides as kept axes");
        let by_axis = self.reduced.iter().map(|&reduced| {
            let stride = if reduced && !self.keep_dims { 0 } else { next() };
            if reduced { 0 } else { stride }
        });
        by_axis.collect()
    }
}

/// The shape that is left when the marked axes are reduced.
fn shape_without(shape: &[u64], reduced: &[bool], keep_dims: bool) -> Vec<u64> {
    let kept = shape.iter().zip(reduced).filter(|&(_, &reduced)| keep_dims || !reduced);
    kept.map(|(&extent, &reduced)| if reduced { 1 } else { extent }).collect()
}

/// The product. A validated operand's cannot overflow, but a 0 may come after large extents.
fn count(extents: impl Iterator<Item = u64>) -> u64 {
    extents.fold(1, u64::saturating_mul)
}
