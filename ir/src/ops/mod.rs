//! The op table: every reduction is one row, made of nest expressions.
//!
//! A row holds the names and parameters of a reduction and builds its [`Reducer`]: the phases, each a
//! monoid with a lift, then finish. No code outside this folder depends on the formula of a row.

mod arg;
mod combiner;
mod computation;
mod extreme;
mod float;
mod in_region;
mod integer;
mod invariant;
mod log_sum_exp;
mod moments;
mod order;
mod params;
mod part;
mod product;
mod recipe;
mod search;
mod select;
mod table;
mod truth;

pub use combiner::{Combiner, OwnPhase};
pub use computation::{Computation, Ending, Group, Kept, SliceOutputs, Stage};
pub(crate) use in_region::{as_byte, as_truth, grouped, stored, types_in_region};
pub use params::ParamError;
pub use product::Agree;
pub(crate) use product::product;
pub(crate) use recipe::{Element, expression_type, in_expression, number};
pub use recipe::{OpCall, Recipe, RecipeError, Types, in_memory};
pub use table::ROWS;

use crate::{DType, Def, Expr, Op, Scalar, Selection};
use std::fmt;

/// One reduction.
#[derive(Debug)]
pub struct Row {
    /// The canonical name.
    pub name: &'static str,
    /// Other spellings, of specs and of other libraries; compared without regard to case.
    pub aliases: &'static [&'static str],
    /// The names in oneDNN's proposal for a reduction primitive.
    pub proposal: &'static [&'static str],
    /// The formula.
    pub formula: &'static str,
    /// Its parameters, in the order they are written.
    pub params: &'static [Param],
    /// True if reducing over no axes is the identity (a copy), rather than reducing groups of one.
    pub identity_over_no_axes: bool,
    /// True if an integer result is by default taken modulo 2^bits of the output, rather than clamped to
    /// its range.
    pub wraps: bool,
    /// True if reducing no integers has an integer result.
    pub integer_of_nothing: bool,
    /// The row and parameters that mean the same, where another row is simpler: `lp(p=2)` is `l2`.
    pub canonical: fn(&[f64]) -> Option<Simpler>,
    /// Its outputs.
    pub results: &'static [ResultKind],
    /// The most inputs it takes; those after the first are read where it writes the whole slice.
    pub inputs: usize,
    /// True if lift takes the position of the element in the slice, after the element.
    pub takes_position: bool,
    /// True if the row writes an output for each element of the slice, rather than one for the slice.
    pub applies: bool,
    /// True if the row selects elements by their order, which is no monoid.
    pub selects: bool,
    /// The type of its value of integers in a region.
    pub integers: Integers,
    /// The region of floats that the row stands for, if it writes an output at each position: `x` is the element, and
    /// parameters stand in braces. Further inputs follow it: times `x1`, plus `x2`.
    pub text: &'static str,
    /// The builders for truth values, integers and floats; `None` where the row does not take them.
    pub forms: Forms,
}

/// The type of a row's value of integers in a region; positions and counts are `i64` whatever it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integers {
    /// `i64` or `u64`, exact modulo 2^64.
    Wide,
    /// The type of the elements.
    Same,
    /// None: a region converts the elements to floats.
    Refused,
}

/// The kind of a row's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// A value of the elements' kind, by default of their type.
    Value,
    /// A value by default of the accumulator's type.
    Accumulated,
    /// A position in the slice or a number of elements: `i64`, or any integer type that holds the greatest one.
    Count,
}

/// Builds a reducer.
pub type Build = fn(&RowTypes) -> Reducer;

/// The name and parameters of a row that means the same.
pub type Simpler = (&'static str, Vec<f64>);

/// Builds a reducer of the same results by other operations on another state, for types that have one.
pub type BuildOther = fn(&RowTypes) -> Option<Reducer>;

/// A builder for each kind of element type that a row takes.
#[derive(Debug)]
#[allow(missing_docs, reason = "each field is its own name")]
pub struct Forms {
    pub truth: Option<Build>,
    pub integer: Option<Build>,
    pub float: Option<Build>,
    /// The second form, which takes fewer operations if the vectors have its instructions or slices are short. The results of both forms are exact: they do not depend on the order in which elements are combined.
    pub direct: Option<BuildOther>,
}

/// The form of a reducer: the operations and the state of a row, whose results are the same to the bit in each form.
///
/// A row has a second form only where both are exact in every order of the elements: another state has another tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// The form that every row has.
    #[default]
    Plain,
    /// The form of [`Forms::direct`].
    Direct,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::Plain => "plain",
            Form::Direct => "direct",
        })
    }
}

impl Row {
    /// Returns true if no element is above the first result, which is a NaN if one of them is.
    ///
    /// ```
    /// use cranefold_ir::ops::find;
    ///
    /// assert!(find("max").is_some_and(|row| row.gives_greatest()));
    /// assert!(!find("linf").is_some_and(|row| row.gives_greatest()));
    /// ```
    pub fn gives_greatest(&self) -> bool {
        matches!(self.name, "max" | "sum_exp")
    }

    /// Returns true if the row takes elements of this type.
    pub fn takes(&self, dtype: DType) -> bool {
        if !self.text.is_empty() {
            return dtype.is_float();
        }
        let form = match dtype {
            DType::Bool => self.forms.truth,
            _ if dtype.is_int() => self.forms.integer,
            _ => self.forms.float,
        };
        form.is_some()
    }

    /// The element types that it takes, in words for messages and tables: `integers and floats`.
    pub fn takes_words(&self) -> String {
        if !self.text.is_empty() {
            return "floats".into();
        }
        let forms = [(self.forms.truth, "bool"), (self.forms.integer, "integers"), (self.forms.float, "floats")];
        let words: Vec<&str> = forms.iter().filter(|(form, _)| form.is_some()).map(|(_, word)| *word).collect();
        match words.as_slice() {
            [but_last @ .., last] if !but_last.is_empty() => format!("{} and {last}", but_last.join(", ")),
            words => words.concat(),
        }
    }

    /// The reducer for these types and parameters.
    ///
    /// # Panics
    /// If the row does not take the input type, which the spec has refused.
    pub fn build(&self, types: &RowTypes) -> Reducer {
        let form = match types.truth {
            true => self.forms.truth,
            false if types.is_float() => self.forms.float,
            false => self.forms.integer,
        };
        form.expect("a type the row takes")(types)
    }

    /// The reducer for these types and parameters in the direct form; none where there is no such form.
    pub fn build_direct(&self, types: &RowTypes) -> Option<Reducer> {
        self.forms.direct.filter(|_| !types.truth)?(types)
    }
}

/// A parameter of a row.
#[derive(Debug)]
pub struct Param {
    /// The name, as in `p=3`.
    pub name: &'static str,
    /// The default value; none if it must be given.
    pub default: Option<f64>,
    /// The least and greatest values allowed; every value must be finite.
    pub at_least: f64,
    #[allow(missing_docs, reason = "described above")]
    pub at_most: f64,
    /// True for a flag, written as a bare word: 1 if it is present, else 0.
    pub is_flag: bool,
}

/// The types and parameters that a row builds a reducer for.
#[derive(Clone, Debug, PartialEq)]
pub struct RowTypes {
    /// Type of the elements that are lifted; for `bool` it is `U8`, and `truth` is set.
    pub input: DType,
    /// Type of the outputs of the elements' kind, as `input`.
    pub output: DType,
    /// Types of all outputs of the row, in its order.
    pub outputs: Vec<DType>,
    /// Type of the outputs that are positions or numbers of elements.
    pub count_output: DType,
    /// Type of the position of an element, for rows that take it.
    pub position: DType,
    /// True if the elements are truth values.
    pub truth: bool,
    /// Types of the inputs after the first, for rows that take them.
    pub extra: Vec<DType>,
    /// The accumulator type of float inputs: `F32` or `F64`.
    pub accumulator: DType,
    /// The number of elements that each output is reduced from.
    pub count: u64,
    /// True if phases should hold positions in the narrowest type that holds them.
    pub narrow: bool,
    /// The parameters' values, in the row's order.
    pub params: Vec<f64>,
    /// True if integer results are clamped to the output's range, rather than taken modulo 2^bits.
    pub saturate: bool,
    /// True if results are rounded to an integer output to nearest, ties to even, rather than
    /// towards zero.
    pub half_even: bool,
}

/// The definitions that make a reduction.
#[derive(Clone, Debug, PartialEq)]
pub struct Reducer {
    /// The reduction of the elements to a state.
    pub method: Method,
    /// (state, the values of `reads`) -> results.
    pub finish: Def,
    /// The sources of the parameters that finish takes after the state.
    pub reads: Vec<Source>,
    /// The state that finish gets if there is nothing to reduce.
    pub nothing: Vec<Scalar>,
    /// The output at each position of the slice; without it, the results are written.
    pub apply: Option<Apply>,
}

/// The reduction of a slice's elements to a state.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "a reducer has one")]
pub enum Method {
    /// Phases over a block, then merging of block states.
    ///
    /// With one phase, the state of a block is the phase's state, lane by lane, and `merge` is its
    /// combine. With more, each phase's lanes are folded and closed after the walk of the block, the
    /// results of all phases together are the state of the block, and `merge` combines such states.
    Phases {
        /// The phases, at least one.
        phases: Vec<Phase>,
        /// (older state, newer state) -> state.
        merge: Def,
        /// True if elements may be combined in another order than the slice's.
        commutative: bool,
        /// The states that the tree follows, one for each phase, where they are others than those of the phases: several
        /// reductions in one have the tree that each has alone. Empty if there are none.
        alone: Vec<StateSize>,
        /// The search that lets the second of two phases walk one window alone.
        search: Option<Search>,
    },
    /// Order statistics of the lifted elements.
    Select {
        /// (element of each input) -> value.
        lift: Def,
        /// The selection, whose results are the state.
        what: Selection,
    },
}

/// The size of one lane's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSize {
    /// The number of values.
    pub values: usize,
    /// The bytes.
    pub bytes: u64,
}

impl StateSize {
    fn of(phase: &Phase) -> StateSize {
        StateSize { values: phase.identity.len(), bytes: phase.state_bytes() }
    }
}

/// An element that is read beside the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The element of an input, by the input's number.
    Input(usize),
    /// The old element of an output, by the output's number.
    Old(usize),
}

/// The output at each position of the slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Apply {
    /// (elements of `inputs`, old elements of `old`, the values in `takes`) -> outputs.
    pub def: Def,
    /// The inputs it reads, by their numbers.
    pub inputs: Vec<usize>,
    /// The outputs whose old elements it reads, after the inputs.
    pub old: Vec<usize>,
    /// The values of the slice that it takes, by their numbers.
    pub takes: Vec<usize>,
    /// The outputs, by their numbers.
    pub outputs: Vec<usize>,
}

/// The search by windows, which replaces two phases over all elements by one.
///
/// The first phase walks the windows of the slice in order; each lane keeps the best state and the start of its window.
/// Then lanes fold, and the second phase walks that window alone. Windows may overlap. Results are exact, so the order
/// of the elements does not matter.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// (best, start) of nothing.
    pub identity: Vec<Scalar>,
    /// (best, start, a lane's state of the first phase, the start of its window) -> (best, start).
    pub keep: Def,
    /// (best, start) of two lanes -> of both.
    pub combine: Def,
    /// best -> the last parameters of the second phase's lift, which also begin the state that finish takes.
    pub close: Def,
}

/// A monoid, the lift into it, and the results that later phases read.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// The identity element; its parts give the types of the state.
    pub identity: Vec<Scalar>,
    /// (element of each input, its position if the recipe asks for it, results of all earlier phases) -> state.
    pub lift: Def,
    /// (older state, newer state) -> state.
    pub combine: Def,
    /// (state, parameters of lift) -> state: a lane's step to its next element, in place of combine after lift.
    /// The result is equal up to rounding.
    pub update: Option<Def>,
    /// (state, number of elements in the block as a value of the accumulator type) -> results.
    /// Used where there are several phases.
    pub close: Option<Def>,
}

/// (older state, newer state) -> state, by one operation.
fn combine(op: Op, acc: DType) -> Def {
    Def::build(format!("combine_{}", op.name()), &[acc, acc], |_, args| vec![Expr::op(op, args.to_vec())])
}

impl Reducer {
    /// The reducer of one phase. The state for nothing is the identity element.
    fn simple(identity: Vec<Scalar>, lift: Def, combine: Def, finish: Def) -> Reducer {
        let nothing = identity.clone();
        let merge = combine.clone();
        Reducer::phases(vec![Phase { identity, lift, combine, update: None, close: None }], merge, finish, nothing)
    }

    /// The reducer of one or more phases.
    fn phases(phases: Vec<Phase>, merge: Def, finish: Def, nothing: Vec<Scalar>) -> Reducer {
        let method = Method::Phases { phases, merge, commutative: true, alone: vec![], search: None };
        Reducer { method, finish, reads: vec![], nothing, apply: None }
    }
}

impl Phase {
    /// The bytes of one lane's state.
    pub fn state_bytes(&self) -> u64 {
        self.identity.iter().map(|s| s.dtype().bytes()).sum()
    }

    /// Returns true if the state is one of integers.
    fn is_exact(&self) -> bool {
        self.identity.iter().all(|s| !s.dtype().is_float())
    }
}

impl Method {
    /// The phases; none if the method selects.
    pub fn phases(&self) -> &[Phase] {
        match self {
            Method::Phases { phases, .. } => phases,
            Method::Select { .. } => &[],
        }
    }

    /// Returns true if elements may be combined in another order than the slice's.
    pub fn is_commutative(&self) -> bool {
        !matches!(self, Method::Phases { commutative: false, .. })
    }

    /// The size of the state that the tree follows in each phase; none if the method selects.
    pub fn tree_states(&self) -> Vec<StateSize> {
        let Method::Phases { phases, alone, .. } = self else { return vec![] };
        if alone.is_empty() { phases.iter().map(StateSize::of).collect() } else { alone.clone() }
    }

    /// Returns true if the results are the same in whatever order and tree elements are combined: the states are
    /// integers, whose operations in the table's rows are exact.
    pub fn is_exact(&self) -> bool {
        self.phases().iter().all(Phase::is_exact)
    }

    /// Returns true if elements may be combined in any order and tree to the same bits: of integers, and the least or
    /// greatest of floats.
    pub fn has_any_order(&self) -> bool {
        let of_states = |args: &[Expr]| args.iter().all(|arg| matches!(arg, Expr::Var(..)));
        let is_extreme = |e: &Expr| matches!(e, Expr::Op(Op::Min | Op::Max, _, args) if of_states(args));
        let are_extremes = |phase: &Phase| {
            phase.update.is_none() && phase.combine.lets.is_empty() && phase.combine.results.iter().all(is_extreme)
        };
        self.phases().iter().all(|phase| phase.is_exact() || are_extremes(phase))
    }

    /// Returns true if the lanes stay apart while blocks merge: with several phases they fold at the end of each block.
    pub fn keeps_lanes(&self) -> bool {
        matches!(self.phases(), [phase] if phase.close.is_none())
    }

    /// The number of values of one lane's state, in the phase with the most.
    pub fn state_values(&self) -> usize {
        self.phases().iter().map(|p| p.identity.len()).max().unwrap_or(1)
    }

    /// The bytes of one lane's state, in the phase with the most; a lifted value's if the method selects.
    pub fn state_bytes(&self) -> u64 {
        match self {
            Method::Phases { phases, .. } => phases.iter().map(Phase::state_bytes).max().expect("a phase"),
            Method::Select { lift, .. } => lift.results[0].dtype().bytes(),
        }
    }
}

impl RowTypes {
    /// The number of elements, as a value of the accumulator's type.
    fn count_in_accumulator(&self) -> Expr {
        Scalar::int(self.accumulator, self.count.into()).into()
    }

    /// The types of a conversion of one `input` to `output`, with defaults for the rest.
    fn of(output: DType, input: DType) -> RowTypes {
        RowTypes {
            input,
            output,
            outputs: vec![output],
            count_output: DType::I64,
            position: DType::I64,
            truth: false,
            extra: vec![],
            accumulator: if input == DType::F64 { DType::F64 } else { DType::F32 },
            count: 1,
            narrow: false,
            params: vec![],
            saturate: false,
            half_even: false,
        }
    }

    /// Returns true if the row is computed on floats.
    fn is_float(&self) -> bool {
        self.input.is_float()
    }
}

/// The conversion of one element, which is a reduction over no axes.
pub fn convert(input: DType, output: DType, saturate: bool, half_even: bool) -> Def {
    if input == DType::Bool {
        return truth::as_bool();
    }
    let types = &RowTypes { saturate, half_even, ..RowTypes::of(output, input) };
    Def::build("convert", &[types.input], |lets, args| {
        let x = args[0].clone();
        let value = match types.is_float() {
            true => float::give(lets, x.cast(types.accumulator), types),
            false => integer::give(lets, x, types),
        };
        vec![value]
    })
}

/// The row called `name`, by its own name or an alias, without regard to case.
pub fn find(name: &str) -> Option<&'static Row> {
    let is = |n: &str| n.eq_ignore_ascii_case(name);
    ROWS.iter().find(|r| is(r.name)).or_else(|| ROWS.iter().find(|r| r.aliases.iter().any(|a| is(a))))
}
