//! The op table: every reduction is one row, made of expressions.
//!
//! A row says what a reduction is called, what it takes, and builds its [`Reducer`]: the phases,
//! each a monoid with a lift, then finish. Nothing outside this folder knows what any row computes.

mod table;

pub use table::ROWS;

use crate::{DType, Def, Scalar};

/// One reduction.
#[derive(Debug)]
pub struct Row {
    /// The canonical name.
    pub name: &'static str,
    /// Other spellings, those of the specs and of peers; compared without regard to case.
    pub aliases: &'static [&'static str],
    /// What it computes, as a formula.
    pub formula: &'static str,
    /// The element types it takes.
    pub takes: Takes,
    /// Its parameters, in the order they are written.
    pub params: &'static [Param],
    /// Whether reducing over no axes is the identity (a copy), rather than reducing groups of one.
    pub identity_over_no_axes: bool,
    /// The row and parameters that mean the same, where another row is simpler: `lp(p=2)` is `l2`.
    pub canonical: fn(&[f64]) -> Option<(&'static str, Vec<f64>)>,
    /// Builds the reducer.
    pub build: fn(&Request) -> Reducer,
}

/// Which element types a row takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Integers and floats.
    Numbers,
    /// Floats only.
    Floats,
    /// `bool` only.
    Bool,
    /// Everything.
    All,
}

impl Takes {
    /// Whether `dtype` is among them.
    pub fn accepts(self, dtype: DType) -> bool {
        match self {
            Takes::Numbers => dtype != DType::Bool,
            Takes::Floats => dtype.is_float(),
            Takes::Bool => dtype == DType::Bool,
            Takes::All => true,
        }
    }

    /// The element types in words, for messages and tables.
    pub fn words(self) -> &'static str {
        match self {
            Takes::Numbers => "integers and floats",
            Takes::Floats => "floats",
            Takes::Bool => "bool",
            Takes::All => "bool, integers and floats",
        }
    }
}

/// A parameter of a row.
#[derive(Debug)]
pub struct Param {
    /// The name, as in `p=3`.
    pub name: &'static str,
    /// The value where it is left out; none means that it must be given.
    pub default: Option<f64>,
    /// The least value allowed; every value must be finite.
    pub at_least: f64,
}

/// What a row builds a reducer for.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Element type of the input in memory; a buffer of `bool` is one of `U8`, and `truth` is set.
    pub input: DType,
    /// Element type of the output in memory, as `input`.
    pub output: DType,
    /// Whether input and output are truth values.
    pub truth: bool,
    /// The accumulator type of float inputs: `F32` or `F64`.
    pub accumulator: DType,
    /// How many elements each output is reduced from.
    pub count: u64,
    /// The parameters' values, in the row's order.
    pub params: Vec<f64>,
    /// Whether integer results are clamped to the output's range rather than taken modulo 2^bits.
    pub saturate: bool,
    /// Whether results are rounded to an integer output to nearest, ties to even, rather than
    /// towards zero.
    pub half_even: bool,
}

/// How to reduce: phases over a block, merging of block states, finish.
///
/// Each phase is a monoid. Its lift takes the element of each input, then the results of all
/// earlier phases; what it gives is combined over the block. With one phase, the state of a block
/// is that phase's result and `merge` its combine; with more, the results of all phases together.
#[derive(Clone, Debug, PartialEq)]
pub struct Reducer {
    /// One or more.
    pub phases: Vec<Phase>,
    /// (older states, newer states) -> states, over the results of all phases.
    pub merge: Def,
    /// (states) -> outputs.
    pub finish: Def,
    /// What reducing nothing gives, for each output.
    pub over_nothing: Vec<Scalar>,
}

/// A monoid and the lift into it.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// The identity element; its parts give the types of the state.
    pub identity: Vec<Scalar>,
    /// (element of each input, results of earlier phases) -> state.
    pub lift: Def,
    /// (older state, newer state) -> state.
    pub combine: Def,
}

/// The row called `name`, by its own name or an alias, without regard to case.
pub fn find(name: &str) -> Option<&'static Row> {
    let is = |n: &str| n.eq_ignore_ascii_case(name);
    ROWS.iter().find(|r| is(r.name)).or_else(|| ROWS.iter().find(|r| r.aliases.iter().any(|a| is(a))))
}
