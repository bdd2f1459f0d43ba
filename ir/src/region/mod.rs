//! Regions: a whole fused loop over a slice, as definitions over elements, reductions and outputs.
//!
//! A [`Body`] is the meaning of a region without shapes and layouts: the spec that holds it has those. Its values are
//! named definitions, each of which uses the inputs and the names before it.
//!
//! ```
//! use cranefold_ir::DType;
//! use cranefold_ir::region::{Body, BodyInput, Reach};
//!
//! let x = BodyInput { name: "x".into(), dtype: DType::Bf16, reach: Reach::Element };
//! let w = BodyInput { name: "w".into(), dtype: DType::Bf16, reach: Reach::Element };
//! let text = "
//!     r = 1 / sqrt(mean(x * x) + 1e-6)   # of the slice
//!     bf16(x * r * w), r
//! ";
//! let body = Body::parse(text, vec![x, w], &[false, true], DType::F32)?;
//! assert_eq!(body.types()?.outputs, [DType::Bf16, DType::F32]);
//! assert_eq!(body.reaches().outputs, [Reach::Element, Reach::Slice]);
//! assert_eq!(body.stages().reductions.len(), 1);
//! # Ok::<(), cranefold_ir::region::RegionError>(())
//! ```
//!
//! # Text
//!
//! ```text
//! body  = { def SEP } out { "," out }
//! def   = NAME { "," NAME } "=" value
//! out   = value [ "@" layout ]                                                  layouts in specs alone
//! value = an expression, in which these calls may stand:
//!       | REDUCTION "(" value { "," KEY "=" NUMBER } [ "," "axes" "=" AXES ] ")"  a row of the op table
//!       | "centered" "(" value ")"                                              the value less its mean
//!       | "position" "(" AXIS ")"                                               the index along an axis
//!       | "extent" "(" AXIS ")"                                                 a number, where shapes are known
//!       | "old" "(" OUT ")"                                                     the element that an output held
//! ```
//!
//! [`expression`](crate::expression) has the grammar of expressions. SEP is `;` or the end of a line outside brackets;
//! a list may go on in the next line after its comma. `#` begins a comment to the end of the line. AXES is an axis or
//! a list in brackets; negative axes count from the end. `min` and `max` of one value reduce, of two compare; flags are
//! written `last=1`. An op with several results is the whole value of a definition with as many names.
//!
//! A name is a word that is no op, function, dtype, input or word of the grammar; it is used after its line and defined
//! once. Definitions and inputs that nothing uses are errors. A definition of numbers alone is read where its name
//! stands, as a number without a type. A reduction inside an expression is a definition whose name begins with `$`.
//! `centered(e)` is `e - c - d` where `c, d = mean_pair(e)` and e is computed once.
//!
//! # Values
//!
//! A value is of an *element* (it depends on a reduced axis), of a *slice*, or a *total* (a reduction of slice values
//! over kept axes); or it depends on no axis. [`Reach`] says which. Reductions without `axes=` take elements; those with
//! `axes=K` take values of slices over kept axes K, one K for a region, and give totals, which combine with numbers,
//! scalars and one another and go to outputs only. Meaning is literal: operation by operation, each rounded once,
//! nothing is recognised. Equal subexpressions are computed once, which no bit shows.
//!
//! # Types
//!
//! In expressions a float input has the accumulator's type, an integer of 8 or 16 bits is `i32`, others have their own
//! type; a position is `i64`. A reduction of floats has the accumulator's type. Of integers, `sum`, `prod`, `l1` and
//! `sum_squares` are exact modulo 2^64, in `i64` or `u64`; least and greatest elements and bits have the element's type;
//! positions and counts are `i64`; other rows refuse integers. An output has the type of its expression. An old element
//! has the type of the conversion that its output is, as expressions see it, else the accumulator's.
//!
//! # Limits
//!
//! [`MAX_DEFINITIONS`], those of reductions in expressions counted; [`MAX_OUTPUTS`]; [`MAX_STAGES`]; and the limits of
//! an expression for each value, in which names are not counted through.

mod below;
mod build;
mod call;
mod canonical;
mod check;
mod error;
mod hoist;
mod keep;
mod names;
mod narrow;
mod outputs;
mod print;
mod reach;
mod read;
mod reducers;
mod stages;
mod totals;
mod types;

pub use error::RegionError;
pub use keep::Repeated;
pub use names::refused_name;
pub use reach::Reaches;
pub use read::{MAX_DEFINITIONS, MAX_OUTPUTS, MAX_STAGES, ReadBody, Scope};
pub use stages::Stages;
pub use totals::Totals;
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
    /// `Element` if it has the region's extent, above 1, along a reduced axis, or if slices are of one element and it has
    /// all reduced axes; else `Slice` if it has one along a kept axis;
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
