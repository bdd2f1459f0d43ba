//! The spec: what to reduce, over which axes, from and to what.

pub mod boxes;
mod build;
pub mod check;
mod desc;
mod dims;
mod error;
mod extent;
pub mod layout;
pub mod onednn;
pub mod op;
mod place;
mod print;
mod region;
mod spellings;
pub mod text;

pub use boxes::MAX_BOXES;
pub use build::{Builder, Expressions};
pub use cranefold_ir::DType;
pub use desc::OutputDesc;
pub use dims::Dims;
pub use error::SpecError;
pub use extent::{Integer, IntoAxes};
pub use layout::Layout;
pub use op::NamedOp;
pub use place::TextPlace;
pub use region::{Order, RegionBuilder};

use crate::layout::{Placement, Places};
use cranefold_ir::expression::Expression;
use cranefold_ir::ops::{Combiner, OpCall, Recipe};
use cranefold_ir::region::{Body, Reach};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The greatest rank of an operand.
pub const MAX_RANK: usize = 64;

/// The longest text that is parsed, in bytes.
pub const MAX_TEXT: usize = 100_000;

/// A validated spec of a reduction.
///
/// Two specs of the same meaning with the same layout texts are equal, whatever their spelling: axes
/// are sorted and not negative, aliases and defaults are resolved. (Regions keep their names: equal ones have equal
/// definitions.) The text form
/// ([`Display`](std::fmt::Display), [`FromStr`](std::str::FromStr)) reads back to an equal spec.
///
/// ```
/// use cranefold_spec::{DType, Spec};
///
/// let built = Spec::builder("ReduceMean").input(DType::F32, &[6, 12, 10, 24]).axes(-2).keep_dims(true).build()?;
/// let parsed: Spec = "mean keep_dims f32[6,12,10,24] axes=2".parse()?;
/// assert_eq!(built, parsed);
/// assert_eq!(built.to_string(), "mean f32[6,12,10,24] axes=[2] keep_dims");
/// assert_eq!(built.outputs()[0].shape(), [6, 12, 1, 24]);
/// assert_eq!(built.outputs()[0].strides(), [288, 24, 24, 1]);
/// # Ok::<(), cranefold_spec::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The hash of the other fields, computed once: a compiler's cache looks a spec up by it.
    hash: u64,
    reducers: Vec<OpCall>,
    /// Elements, then inputs of `then`, then scalars.
    inputs: Vec<Operand>,
    outputs: Vec<Operand>,
    map: Option<Expression>,
    then: Vec<Expression>,
    apply: Option<Expression>,
    /// The meaning of a region; then the four fields above say nothing but its reductions.
    body: Option<Arc<Body>>,
    /// The shape that is reduced.
    shape: Vec<u64>,
    order: Order,
    /// For each output the axes that it is reduced over, true for each; none for an output of the whole shape.
    lost: Vec<Option<Vec<bool>>>,
    reduced: Vec<bool>,
    keep_dims: bool,
    /// True if a reduction over no axes reduces groups of one, where the row would copy.
    lift: bool,
    /// The accumulator of floats, if there are any.
    accumulator: Option<DType>,
    saturate: bool,
    /// The explicit rounding, if it is not the default.
    rounding: Option<Rounding>,
}

impl Spec {
    /// The spec with the hash of its fields.
    fn hashed(mut self) -> Spec {
        let Spec { hash: _, reducers, inputs, outputs, map, then, apply, body, order, reduced, .. } = &self;
        let mut hasher = DefaultHasher::new();
        (reducers, inputs, outputs, map, then, apply, body, order, reduced).hash(&mut hasher);
        (self.keep_dims, self.lift, self.accumulator, self.saturate, self.rounding).hash(&mut hasher);
        self.hash = hasher.finish();
        self
    }
}

impl Spec {
    /// The hash of the spec, computed once.
    pub fn known_hash(&self) -> u64 {
        self.hash
    }
}

impl Hash for Spec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// The rounding of a value that is no integer to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Towards zero; `trunc` in text. The default of integer means.
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

/// The role of an operand in the reduction; an input's name in expressions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// `x0`, `x1` and so on: elements. Input 0 has the shape that is reduced; others broadcast to it,
    /// right-aligned.
    Element,
    /// `y0`, `y1` and so on: read by `then`, broadcast to the output's shape, right-aligned.
    Then,
    /// One value by its name, given at each call.
    Scalar(String),
    /// An output.
    Output,
}

/// An input or output: element type, shape as the user sees it, and the places of the elements.
#[derive(Clone, Debug)]
pub struct Operand {
    role: Role,
    dtype: DType,
    shape: Vec<u64>,
    layout: Layout,
    placement: Placement,
}

impl Operand {
    /// The fields that define the operand: the placement follows from shape and layout.
    fn key(&self) -> (&Role, DType, &[u64], &Layout) {
        (&self.role, self.dtype, &self.shape, &self.layout)
    }
}

impl PartialEq for Operand {
    fn eq(&self, other: &Operand) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Operand {}

impl Hash for Operand {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl Operand {
    /// The role in the reduction.
    pub fn role(&self) -> &Role {
        &self.role
    }

    /// The element type; a `bool` is one byte.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents; an output's after reduction, with ones under `keep_dims`.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The layout as it was given; for `any` the resolved one.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The places of the elements.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Elements between neighbours along each axis of the shape; between neighbouring blocks where it is blocked.
    pub fn strides(&self) -> &[i64] {
        &self.placement.strides
    }

    /// Index in the buffer of the element whose indices are all 0.
    pub fn origin(&self) -> u64 {
        self.placement.origin
    }

    /// Length of the buffer in elements, from its start to the operand's last, padding included; 0 if
    /// there are none.
    pub fn span_elems(&self) -> u64 {
        self.placement.span_elems
    }

    /// Length of the buffer in bytes.
    pub fn span_bytes(&self) -> u64 {
        self.placement.span_elems * self.dtype.bytes()
    }

    /// The index in the buffer of each element, in row-major order.
    pub fn places(&self) -> Places<'_> {
        self.placement.places(&self.shape)
    }

    /// The index in the buffer of each element of the padding.
    pub fn padding(&self) -> impl Iterator<Item = usize> + '_ {
        self.placement.padding(&self.shape)
    }

    /// The number of elements of the shape.
    pub fn elems(&self) -> u64 {
        count(self.shape.iter().copied())
    }
}

impl Spec {
    /// Starts a spec for one op, by its name or an alias, or by a function of [`op`].
    pub fn builder(op: impl Into<NamedOp>) -> Builder {
        Builder::of(build::Named::Op(op.into()))
    }

    /// Starts a region.
    pub fn region() -> RegionBuilder {
        RegionBuilder::default()
    }

    /// Starts a spec for a user's combiner.
    pub fn own(combiner: Combiner) -> Builder {
        Builder::of(build::Named::Own(combiner))
    }

    /// The reducers, with their parameters; of a region, its reductions in the order of its definitions.
    pub fn reducers(&self) -> &[OpCall] {
        &self.reducers
    }

    /// The inputs in the order of a call: elements, then inputs of `then`, then scalars.
    pub fn inputs(&self) -> &[Operand] {
        &self.inputs
    }

    /// The outputs, in the order of a call.
    pub fn outputs(&self) -> &[Operand] {
        &self.outputs
    }

    /// The expression of the element that is reduced; none if it is input 0's.
    pub fn map(&self) -> Option<&Expression> {
        self.map.as_ref()
    }

    /// The expressions of the outputs; empty if the results are the outputs.
    pub fn then(&self) -> &[Expression] {
        &self.then
    }

    /// The expression of the output at each position of a slice, if there is one.
    pub fn apply(&self) -> Option<&Expression> {
        self.apply.as_ref()
    }

    /// Returns true if outputs have the shape of input 0, each element computed from the one there and the results.
    pub fn applies(&self) -> bool {
        self.apply.is_some() || self.reducers.iter().any(|c| c.as_row().is_some_and(|row| row.applies))
    }

    /// The rank of the shape.
    pub fn rank(&self) -> usize {
        self.reduced.len()
    }

    /// For each axis of the shape, true if it is reduced.
    pub fn reduced(&self) -> &[bool] {
        &self.reduced
    }

    /// The reduced axes in ascending order.
    pub fn axes(&self) -> Vec<usize> {
        (0..self.rank()).filter(|&axis| self.reduced[axis]).collect()
    }

    /// The other axes in ascending order.
    pub fn axes_kept(&self) -> Vec<usize> {
        (0..self.rank()).filter(|&axis| !self.reduced[axis]).collect()
    }

    /// Returns true if reduced axes stay in the output's shape, with extent 1. It is false over no axes and where
    /// each position of the slice is written, since it makes no difference there.
    pub fn keep_dims(&self) -> bool {
        self.keep_dims
    }

    /// The number of elements that each output element is reduced from: the product of the reduced extents.
    pub fn reduced_count(&self) -> u64 {
        count(self.axes().into_iter().map(|axis| self.shape[axis]))
    }

    /// Returns true if the spec only copies: each element is converted to the output's type, and a NaN made
    /// canonical. Specs over no axes copy, unless they ask for groups of one or the op never copies.
    pub fn is_identity(&self) -> bool {
        let alone = self.map.is_none() && self.then.is_empty() && self.apply.is_none() && self.body.is_none();
        let copies = |c: &OpCall| c.as_row().is_some_and(|row| row.identity_over_no_axes);
        !self.reduced.contains(&true) && alone && self.reducers.len() == 1 && copies(&self.reducers[0]) && !self.lift
    }

    /// The accumulator type of floats, `F32` or `F64`; none for a spec without floats.
    pub fn accumulator(&self) -> Option<DType> {
        self.accumulator
    }

    /// Returns true if integer results are clamped to the output's range, rather than taken modulo 2^bits.
    pub fn saturate(&self) -> bool {
        self.saturate
    }

    /// The rounding of results to an integer output.
    pub fn rounding(&self) -> Rounding {
        self.rounding.unwrap_or(Rounding::Trunc)
    }

    /// The axis of an output that corresponds to an axis of the shape; none for an axis that the output lacks, or has
    /// with extent 1 because it is reduced.
    ///
    /// # Panics
    /// If there is no such output or axis.
    pub fn output_axis(&self, output: usize, axis: usize) -> Option<usize> {
        let Some(reduced) = &self.lost[output] else { return Some(axis) };
        let stays = |axis: &usize| self.keep_dims || !reduced[*axis];
        (!reduced[axis]).then(|| (0..axis).filter(stays).count())
    }

    /// The axis of an input that corresponds to an axis of the shape; none if the input is broadcast along it.
    ///
    /// # Panics
    /// If there is no such input or axis.
    pub fn input_axis(&self, input: usize, axis: usize) -> Option<usize> {
        let operand = &self.inputs[input];
        let (shape, axis) = match operand.role {
            Role::Then => (self.outputs[0].shape(), self.output_axis(0, axis)?),
            _ => (self.shape.as_slice(), axis),
        };
        let own = (axis + operand.shape.len()).checked_sub(shape.len())?;
        (operand.shape[own] == shape[axis]).then_some(own)
    }

    /// The axes that an input depends on: those of elements, of slices, or none.
    ///
    /// ```
    /// use cranefold_ir::region::Reach;
    /// use cranefold_spec::Spec;
    ///
    /// let spec: Spec = "sum f32[8,9], f32[9], f32[8,1], f32[1] axes=[1] map=\"x0 * x1 + x2 * x3\"".parse()?;
    /// let reaches: Vec<Reach> = (0..4).map(|input| spec.input_reach(input)).collect();
    /// assert_eq!(reaches, [Reach::Element, Reach::Element, Reach::Slice, Reach::Scalar]);
    /// # Ok::<(), cranefold_spec::SpecError>(())
    /// ```
    ///
    /// # Panics
    /// If there is no such input.
    pub fn input_reach(&self, input: usize) -> Reach {
        region::reach(|axis| self.input_axis(input, axis).is_some(), &self.shape, &self.reduced)
    }

    /// The inputs that lift reads, by their numbers.
    pub fn mapped(&self) -> Vec<usize> {
        if let Some(body) = &self.body {
            return body.mapped();
        }
        let names = self.expression_names();
        let read = |name: &str| match &self.map {
            Some(map) => map.uses(name),
            None => self.reducers.iter().any(|c| matches!(c, OpCall::Own(own) if own.reads(name))),
        };
        let by_default = self.map.is_none() && !self.reducers.iter().all(|c| matches!(c, OpCall::Own(_)));
        let mapped: Vec<usize> =
            (0..self.inputs.len()).filter(|&i| read(&names[i]) || (i == 0 && by_default)).collect();
        // The shape of input 0 is walked even if no input is read.
        if mapped.is_empty() { vec![0] } else { mapped }
    }

    /// The names of the inputs in expressions.
    pub fn expression_names(&self) -> Vec<String> {
        match &self.body {
            Some(body) => body.inputs.iter().map(|input| input.name.clone()).collect(),
            None => expression_names(&self.inputs),
        }
    }

    /// The types of outputs without explicit ones.
    fn default_outputs(&self) -> Vec<DType> {
        check::default_outputs(self)
    }

    /// The computation, with `x` and its number as the name of every input.
    pub fn recipe(&self) -> Recipe {
        let names = self.expression_names();
        let number = |name: &str| names.iter().position(|known| known == name).map(|i| format!("x{i}"));
        let rename = |f: &Expression| f.renamed(number);
        let own = |call: &OpCall| match call {
            OpCall::Own(own) => OpCall::Own(own.renamed(number)),
            row => row.clone(),
        };
        Recipe {
            calls: self.reducers.iter().map(own).collect(),
            map: self.map.as_ref().map(rename),
            then: self.then.iter().map(rename).collect(),
            apply: self.apply.as_ref().map(rename),
            ..self.recipe_as_written()
        }
    }

    /// The computation, in the spec's own names.
    fn recipe_as_written(&self) -> Recipe {
        Recipe {
            calls: self.reducers.clone(),
            map: self.map.clone(),
            then: self.then.clone(),
            apply: self.apply.clone(),
            accumulator: self.accumulator.unwrap_or(check::default_accumulator(&self.inputs)),
            saturate: self.saturate,
            half_even: self.rounding == Some(Rounding::HalfEven),
        }
    }
}

/// `x0`, `x1`, ..., `y0`, ... and the names of scalars, for inputs in the order of a call.
fn expression_names(inputs: &[Operand]) -> Vec<String> {
    let (mut elements, mut thens) = (0.., 0..);
    let mut name = |o: &Operand| match &o.role {
        Role::Scalar(name) => name.clone(),
        Role::Then => format!("y{}", thens.next().expect("a number")),
        _ => format!("x{}", elements.next().expect("a number")),
    };
    inputs.iter().map(&mut name).collect()
}

/// The shape after a reduction of the marked axes.
fn shape_without(shape: &[u64], reduced: &[bool], keep_dims: bool) -> Vec<u64> {
    let kept = shape.iter().zip(reduced).filter(|&(_, &reduced)| keep_dims || !reduced);
    kept.map(|(&extent, &reduced)| if reduced { 1 } else { extent }).collect()
}

/// The product of extents. A validated operand's cannot overflow, but a 0 may come after large extents.
fn count(extents: impl Iterator<Item = u64>) -> u64 {
    extents.fold(1, u64::saturating_mul)
}
