//! The op table: every reduction is one row, made of expressions.
//!
//! A row says what a reduction is called, what it takes, and builds its [`Reducer`]: the phases,
//! each a monoid with a lift, then finish. Nothing outside this folder knows what any row computes.

mod extreme;
mod float;
mod integer;
mod log_sum_exp;
mod table;
mod truth;

pub use table::ROWS;

use crate::{DType, Def, Expr, Scalar};

/// One reduction.
#[derive(Debug)]
pub struct Row {
    /// The canonical name.
    pub name: &'static str,
    /// Other spellings, those of the specs and of peers; compared without regard to case.
    pub aliases: &'static [&'static str],
    /// What it computes, as a formula.
    pub formula: &'static str,
    /// Its parameters, in the order they are written.
    pub params: &'static [Param],
    /// Whether reducing over no axes is the identity (a copy), rather than reducing groups of one.
    pub identity_over_no_axes: bool,
    /// Whether an integer result, where nothing else is said, is taken modulo 2^bits of the output;
    /// others are clamped to its range.
    pub wraps: bool,
    /// Whether reducing no integers has an integer result.
    pub integer_of_nothing: bool,
    /// The row and parameters that mean the same, where another row is simpler: `lp(p=2)` is `l2`.
    pub canonical: fn(&[f64]) -> Option<Simpler>,
    /// How it reduces truth values, integers and floats; `None` where it does not take them.
    pub forms: Forms,
}

/// Builds a reducer.
pub type Build = fn(&Request) -> Reducer;

/// The name and parameters of a row that means the same.
pub type Simpler = (&'static str, Vec<f64>);

/// A builder for each kind of element type that a row takes.
#[derive(Debug)]
#[allow(missing_docs, reason = "each field is its own name")]
pub struct Forms {
    pub truth: Option<Build>,
    pub integer: Option<Build>,
    pub float: Option<Build>,
}

impl Row {
    /// Whether it takes elements of this type.
    pub fn takes(&self, dtype: DType) -> bool {
        let form = match dtype {
            DType::Bool => self.forms.truth,
            _ if dtype.is_int() => self.forms.integer,
            _ => self.forms.float,
        };
        form.is_some()
    }

    /// The element types it takes in words, for messages and tables: `integers and floats`.
    pub fn takes_words(&self) -> String {
        let forms = [(self.forms.truth, "bool"), (self.forms.integer, "integers"), (self.forms.float, "floats")];
        let words: Vec<&str> = forms.iter().filter(|(form, _)| form.is_some()).map(|(_, word)| *word).collect();
        match words.as_slice() {
            [but_last @ .., last] if !but_last.is_empty() => format!("{} and {last}", but_last.join(", ")),
            words => words.concat(),
        }
    }

    /// The reducer for a request.
    ///
    /// # Panics
    /// If the row does not take the request's type, which the spec has refused.
    pub fn build(&self, request: &Request) -> Reducer {
        let form = match request.truth {
            true => self.forms.truth,
            false if request.is_float() => self.forms.float,
            false => self.forms.integer,
        };
        form.expect("a type the row takes")(request)
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
/// With one phase, the state of a block is that of the phase, lane by lane, and `merge` is its
/// combine. With more, each phase's lanes are folded and closed when the block has been walked, the
/// results of all phases together are the state of the block, and `merge` combines those.
#[derive(Clone, Debug, PartialEq)]
pub struct Reducer {
    /// One or more.
    pub phases: Vec<Phase>,
    /// (older state, newer state) -> state.
    pub merge: Def,
    /// (state) -> outputs.
    pub finish: Def,
    /// What reducing nothing gives, for each output.
    pub over_nothing: Vec<Scalar>,
}

/// A monoid, the lift into it, and what later phases see of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// The identity element; its parts give the types of the state.
    pub identity: Vec<Scalar>,
    /// (element of each input, results of all earlier phases) -> state.
    pub lift: Def,
    /// (older state, newer state) -> state.
    pub combine: Def,
    /// (state, number of elements in the block as a value of the accumulator type) -> results.
    /// Used where there are several phases.
    pub close: Option<Def>,
}

impl Reducer {
    /// One phase.
    fn simple(identity: Vec<Scalar>, lift: Def, combine: Def, finish: Def, over_nothing: Vec<Scalar>) -> Reducer {
        let merge = combine.clone();
        Reducer { phases: vec![Phase { identity, lift, combine, close: None }], merge, finish, over_nothing }
    }

    /// The bytes of one lane's state, in the phase with the most.
    pub fn state_bytes(&self) -> u64 {
        let bytes = |p: &Phase| p.identity.iter().map(|s| s.dtype().bytes()).sum();
        self.phases.iter().map(bytes).max().expect("a phase")
    }
}

impl Request {
    /// How many elements there are, as a value of the accumulator's type.
    fn count_in_accumulator(&self) -> Expr {
        Scalar::int(self.accumulator, self.count.into()).into()
    }

    /// Whether the row is computed on floats.
    fn is_float(&self) -> bool {
        self.input.is_float()
    }
}

/// The conversion of one element: what a reduction over no axes does.
pub fn convert(request: &Request) -> Def {
    if request.truth {
        return truth::as_bool();
    }
    Def::build("convert", &[request.input], |lets, args| {
        let x = args[0].clone();
        let value = match request.is_float() {
            true => float::give(lets, x.cast(request.accumulator), request),
            false => integer::give(lets, x, request),
        };
        vec![value]
    })
}

/// The row called `name`, by its own name or an alias, without regard to case.
pub fn find(name: &str) -> Option<&'static Row> {
    let is = |n: &str| n.eq_ignore_ascii_case(name);
    ROWS.iter().find(|r| is(r.name)).or_else(|| ROWS.iter().find(|r| r.aliases.iter().any(|a| is(a))))
}
