//! Recipes: reducers and the expressions around them, made into one reducer.
//!
//! ```text
//! element = map(x0, x1, ...)                       before; x0 itself where there is no map
//! r0, r1  = the reducers' results over the slice   from one pass over the elements
//! z0, ... = then(r0, r1, ..., x2, ..., d)          after; or
//! z[p]    = apply(x0[p], ..., r0, r1, ...)         at every position p of the slice
//! ```
//!
//! In expressions a float has the accumulator's type, an integer of 8 or 16 bits is `i32`, others have
//! their own type. If `then` or `apply` follow, the result of a reduction of integers is exact in 64
//! bits (modulo 2^64 if the row wraps), or an `f64` if an output is a float.

mod build;
mod element;
mod region;
mod typing;

pub(crate) use element::Element;
pub(crate) use typing::expression_type;
pub(crate) use typing::in_expression;
pub(super) use typing::try_def;

use super::combiner::Combiner;
use super::{Form, ResultKind, Row, find};
use crate::DType;
use crate::expression::{Expression, ExpressionError};
use DType::{Bool, I32, I64, U8};
use std::fmt;

/// The computation on the elements of a slice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// The reducers, at least one.
    pub calls: Vec<OpCall>,
    /// The reduced element, from the inputs `x0`, `x1` and so on, by their numbers.
    pub map: Option<Expression>,
    /// The outputs, from the results `r0`, `r1` and so on, from inputs, and from the old element `d`.
    pub then: Vec<Expression>,
    /// The output at each position of the slice, from inputs and results.
    pub apply: Option<Expression>,
    /// The accumulator type of floats: `F32` or `F64`.
    pub accumulator: DType,
    /// True if integer results are clamped to the output's range, rather than taken modulo 2^bits.
    pub saturate: bool,
    /// True if results are rounded to integers to nearest, ties to even, rather than towards zero.
    pub half_even: bool,
}

/// A reducer by name with the values of its parameters, or one of the user's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OpCall {
    /// A row of the op table.
    Row {
        /// Its name.
        name: &'static str,
        /// The bits of the parameters' values, in the row's order.
        params: Vec<u64>,
    },
    /// A combiner.
    Own(Combiner),
}

/// The types a recipe is built for; truth values are `Bool`.
#[derive(Clone, Debug, PartialEq)]
pub struct Types {
    /// Each input's name in expressions and type, in a call's order.
    pub inputs: Vec<(String, DType)>,
    /// The numbers of the inputs that lift reads, in order.
    pub mapped: Vec<usize>,
    /// Each output's type.
    pub outputs: Vec<DType>,
    /// The number of elements in a slice.
    pub count: u64,
    /// The type of indices along axes: `i32` if it holds them.
    pub index: DType,
    /// True if phases should hold positions in the narrowest type that holds them.
    pub narrow: bool,
}

impl Types {
    /// The type of positions in a slice, and of numbers of its elements.
    pub fn position(&self) -> DType {
        if self.count <= i32::MAX as u64 { I32 } else { I64 }
    }
}

impl OpCall {
    /// The row and its parameters, with -0 as +0, so that equal calls are equal.
    pub fn row(row: &'static Row, params: &[f64]) -> OpCall {
        OpCall::Row { name: row.name, params: params.iter().map(|p| (p + 0.0).to_bits()).collect() }
    }

    /// The row of the table that it names.
    pub fn as_row(&self) -> Option<&'static Row> {
        match self {
            OpCall::Row { name, .. } => find(name),
            OpCall::Own(_) => None,
        }
    }

    /// The values of the parameters, in the row's order.
    pub fn params(&self) -> Vec<f64> {
        match self {
            OpCall::Row { params, .. } => params.iter().map(|&bits| f64::from_bits(bits)).collect(),
            OpCall::Own(_) => vec![],
        }
    }

    /// The kinds of its results.
    pub fn results(&self) -> Vec<ResultKind> {
        match self {
            OpCall::Row { .. } => self.as_row().map_or(vec![], |row| row.results.to_vec()),
            OpCall::Own(own) => vec![ResultKind::Value; own.outputs()],
        }
    }

    /// Returns true if lift takes the position of the element.
    pub fn takes_position(&self) -> bool {
        match self {
            OpCall::Row { .. } => self.as_row().is_some_and(|row| row.takes_position),
            OpCall::Own(own) => own.takes_position(),
        }
    }
}

/// The reason that a recipe is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages define the variants and their fields")]
pub enum RecipeError {
    #[error("{field}: {error}")]
    Expression { field: &'static str, error: ExpressionError },
    #[error(
        "`{name}` is no field of a combiner; they are identity, lift, combine, close, merge, finish and commutative"
    )]
    UnknownPart { name: String },
    #[error("the combiner has no `{field}`")]
    MissingField { field: &'static str },
    #[error("the combiner has `{field}` twice")]
    RepeatedField { field: &'static str },
    #[error("`merge` is for several phases or one with `close`; the blocks of one phase merge by `combine`")]
    MergeOfOnePhase,
    #[error("`{field}` of the combiner gives {given} value{} where the state has {expected}", if *.given == 1 { "" } else { "s" })]
    Width { field: &'static str, given: usize, expected: usize },
    #[error("value {index} of `{field}` of the combiner is {given} where the state has {expected}")]
    Type { field: &'static str, index: usize, given: DType, expected: DType },
    #[error("`{name}` has no {form} form for these types")]
    NoForm { name: String, form: Form },
    #[error("the identity of phase {phase} is not neutral: combined with {state} it gives {result}")]
    Identity { phase: usize, state: String, result: String },
    #[error("`{field}` is not associative: {sides}")]
    Associativity { field: &'static str, sides: String },
    #[error("`{field}` is not commutative: {sides}")]
    Commutativity { field: &'static str, sides: String },
}

fn in_field(field: &'static str) -> impl FnOnce(ExpressionError) -> RecipeError {
    move |error| RecipeError::Expression { field, error }
}

/// Prints the op with its parameters, without defaults: `lp_max(p=3)`, `argmax(last)`.
impl fmt::Display for OpCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OpCall::Row { name, .. } = self else {
            let OpCall::Own(own) = self else { unreachable!("the other kind") };
            return write!(f, "{own}");
        };
        f.write_str(name)?;
        let row = self.as_row().expect("a row of the table");
        let given = row.params.iter().zip(self.params()).filter(|(param, value)| param.default != Some(*value));
        let given: Vec<String> = given
            .map(|(param, value)| match param.is_flag {
                true => param.name.to_string(),
                false => format!("{}={}", param.name, number(value)),
            })
            .collect();
        if given.is_empty() { Ok(()) } else { write!(f, "({})", given.join(",")) }
    }
}

/// The shortest digits that read back, without `.0`.
pub(crate) fn number(value: f64) -> String {
    let digits = format!("{value:?}");
    digits.strip_suffix(".0").map(str::to_string).unwrap_or(digits)
}

/// The type in memory: truth values are bytes.
pub fn in_memory(dtype: DType) -> DType {
    if dtype == Bool { U8 } else { dtype }
}

impl Recipe {
    /// The recipe of one reducer without expressions.
    pub fn simple(call: OpCall, accumulator: DType) -> Recipe {
        Recipe {
            calls: vec![call],
            map: None,
            then: vec![],
            apply: None,
            accumulator,
            saturate: false,
            half_even: false,
        }
    }

    /// The names of the reducers, for people.
    pub fn name(&self) -> String {
        let name = |call: &OpCall| match call {
            OpCall::Row { name, .. } => *name,
            OpCall::Own(_) => "combiner",
        };
        self.calls.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// Returns for each result of the reducers the greatest position or number of elements that it may have in slices
    /// of `count` elements; none for a value.
    pub fn greatest_counts(&self, count: u64) -> Vec<Option<u64>> {
        let of_call = |call: &OpCall| {
            let greatest = if call.takes_position() { count.saturating_sub(1) } else { count };
            call.results()
                .into_iter()
                .map(move |kind| (kind == ResultKind::Count).then_some(greatest))
                .collect::<Vec<_>>()
        };
        self.calls.iter().flat_map(of_call).collect()
    }

    /// Returns true if lift takes the position of the element, after the inputs.
    pub fn takes_position(&self) -> bool {
        self.calls.iter().any(OpCall::takes_position)
    }

    /// Returns true if an output is written for each element of the slice.
    pub fn applies(&self) -> bool {
        self.apply.is_some() || self.calls.iter().any(|c| c.as_row().is_some_and(|row| row.applies))
    }
}
