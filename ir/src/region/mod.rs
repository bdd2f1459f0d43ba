//! Regions: a whole fused loop over a slice, as definitions over elements, reductions and outputs.
//!
//! A [`Body`] is the meaning of a region without shapes and layouts: the spec that holds it has those. Its values are
//! named definitions, each of which uses the inputs and the names before it.
//!
//! A value is of an *element* (it depends on a reduced axis), of a *slice*, or a *total* (a reduction of slice values
//! over kept axes); or it depends on no axis. [`Reach`] says which. Meaning is literal: operation by operation, each rounded once, nothing is
//! recognised. Equal subexpressions are computed once, which no bit shows.
//!
//! # Types
//!
//! In expressions a float input has the accumulator's type, an integer of 8 or 16 bits is `i32`, others have their own
//! type. A reduction of floats has the accumulator's type. Of integers, `sum`, `prod`, `l1` and `sum_squares` are exact
//! modulo 2^64, in `i64` or `u64`; least and greatest elements and bits have the element's type; positions and counts
//! are `i64`; other rows refuse integers. An output has the type of its expression.

mod call;
mod canonical;
mod check;
mod error;
mod names;
mod print;
mod reach;
mod read;
mod stages;
mod types;

pub use error::RegionError;
pub use names::refused_name;
pub use reach::Reaches;
pub use read::{MAX_DEFINITIONS, MAX_OUTPUTS, MAX_STAGES, ReadBody, Scope};
pub use stages::Stages;
pub use types::BodyTypes;

use crate::DType;
use crate::expression::Expression;
use crate::ops::OpCall;

/// The definitions and the outputs of a region.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Body {
    /// The inputs in the order of a call.
    pub inputs: Vec<BodyInput>,
    /// For each axis of the region, true if it is reduced; `position` and totals name axes by their numbers.
    pub reduced: Vec<bool>,
    /// The definitions in order: each uses inputs and names before it.
    pub definitions: Vec<Definition>,
    /// The outputs, over inputs and names.
    pub outputs: Vec<Expression>,
    /// The accumulator type of floats: `F32` or `F64`.
    pub accumulator: DType,
}

/// An input of a region.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BodyInput {
    /// The name in expressions.
    pub name: String,
    /// The type in memory; truth values are `Bool`.
    pub dtype: DType,
    /// `Element` if it has the region's extent along a reduced axis; else `Slice` if it has one along a kept axis;
    /// else, and for scalars, `Scalar`.
    pub reach: Reach,
}

/// The axes on which a value depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// No axis: numbers and scalars.
    Scalar,
    /// Some kept axes: a reduction of slice values over the others.
    Total,
    /// The kept axes.
    Slice,
    /// The kept and the reduced axes.
    Element,
}

/// Named values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Definition {
    /// The names: one, or one for each result of a reduction. A name that begins with `$` was written without one, in
    /// the expression that uses it.
    pub names: Vec<String>,
    /// The value.
    pub value: Value,
}

/// The value of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// An expression over inputs and names.
    Expression(Expression),
    /// A reduction of element values over the slice, or of slice values over kept axes.
    Reduction(Reduction),
    /// The index along an axis of the region, an `i64`.
    Position(usize),
    /// The element that an output held before.
    Old(usize),
}

/// A reduction in a region.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reduction {
    /// The row with its parameters.
    pub call: OpCall,
    /// The reduced value.
    pub of: Expression,
    /// The kept axes that a total reduces, in ascending order; `None` for a reduction over the slice.
    pub over: Option<Vec<usize>>,
}
