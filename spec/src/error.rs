//! The errors of a spec.

use crate::layout::LayoutError;
use crate::place::{Shown, TextPlace};
use cranefold_ir::ops::{ParamError, RecipeError};
use cranefold_ir::region::RegionError;
use cranefold_ir::{DType, UnknownDType, nearest, ops};

/// The fault of a refused spec, with the given value and the accepted ones.
///
/// Columns count characters of the text from 1.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages define the variants and their fields")]
pub enum SpecError {
    /// Any of the others, with its place in the text that was read. See [`kind`](SpecError::kind).
    #[error("{}", Shown(error, place))]
    InText { error: Box<SpecError>, place: Box<TextPlace> },
    #[error("the text has {given} bytes; the limit is {limit}")]
    TextTooLong { given: usize, limit: usize },
    #[error("column {column}: expected {expected}, found {found}")]
    Syntax { column: usize, expected: &'static str, found: String },
    #[error("column {column}: `{word}` is given twice")]
    RepeatedWord { column: usize, word: &'static str },
    #[error("column {column}: {message}")]
    Misplaced { column: usize, message: String },
    #[error("column {column}: unknown word `{word}`{}", meant_or(word, &WORDS, "words", WORDS_SHOWN))]
    UnknownWord { column: usize, word: String },
    #[error("column {column}: {error}")]
    UnknownDType { column: usize, error: UnknownDType },
    #[error("column {column}: {error}")]
    LayoutText { column: usize, error: LayoutError },
    #[error("column {column}: `{text}` does not fit 64 bits")]
    IntegerTooLarge { column: usize, text: String },

    #[error("unknown op `{name}`{}", meant_or(name, &all_op_names(), "ops", &op_names()))]
    UnknownOp { name: String },
    #[error("{0}")]
    Param(ParamError),

    #[error("`{op}` takes {} input{}, {given} given", up_to(*.expected), plural(*.expected))]
    InputCount { op: &'static str, expected: usize, given: usize },
    #[error("{given} inputs are above the limit of {limit}")]
    TooManyInputs { given: usize, limit: usize },
    #[error("`{by}` gives {expected} output{}, {given} given", plural(*.expected))]
    OutputCount { by: String, expected: usize, given: usize },
    #[error("{given} results, expressions or phases are above the limit of {limit}")]
    TooManyParts { given: usize, limit: usize },
    #[error("positions and counts are exact: there is nothing to round or clamp")]
    ExactCount,
    #[error("`{op}` with `map` takes 1 input, {given} given: its further inputs stand without `map`")]
    InputsWithMap { op: &'static str, given: usize },
    #[error("`{op}` does not stand with {with}")]
    StandsAlone { op: &'static str, with: &'static str },
    #[error("`then` and `apply` exclude each other: `apply` reads the results itself")]
    ThenAndApply,
    #[error("`map` does not stand with a combiner, whose `lift` reads the inputs itself")]
    MapWithCombiner,
    #[error("`{field}` is one expression, {given} given")]
    OneExpression { field: &'static str, given: usize },
    #[error("{0}")]
    Recipe(RecipeError),
    #[error("{0}")]
    Region(RegionError),
    #[error("column {column}: {error}")]
    CombinerText { column: usize, error: RecipeError },
    #[error("{message}")]
    Broadcast { message: String },
    #[error("{what} `{name}` is not used")]
    Unused { what: &'static str, name: String },
    #[error(
        "`{name}` cannot name a scalar: a name is a word without a meaning in expressions, where x0, y0, r0, a0, b0 \
         and the like, d, i and n have one"
    )]
    ScalarName { name: String },
    #[error("the scalar `{name}` is given twice")]
    RepeatedScalar { name: String },
    #[error("{given} output is refused for positions and counts, which are integers")]
    CountType { given: DType },
    #[error("{given} output is refused for positions and counts up to {most}: it holds {} at most", highest(*.given))]
    CountRange { given: DType, most: u64 },

    #[error("rank {given} is above the limit of {limit}")]
    RankTooLarge { given: usize, limit: usize },
    #[error("extent {extent} of axis {axis} is negative")]
    NegativeExtent { axis: usize, extent: i64 },
    #[error("{operand}: {error}")]
    Layout { operand: String, error: LayoutError },
    #[error("offset {offset} of a layout is negative")]
    NegativeOffset { offset: i64 },
    #[error(
        "blocks that do not divide their axes, or one another, cut the spec into {given} boxes, above the limit of \
         {limit}; axis {axis} alone into {pieces}"
    )]
    TooManyBoxes { given: u64, pieces: u64, axis: usize, limit: u64 },
    #[error("`{op}` gathers {given} {element_bytes}-byte elements, above the limit of {limit} bytes")]
    TooManyToSelect { op: &'static str, given: u64, element_bytes: u64, limit: u64 },
    #[error("axis {axis} is out of range for rank {rank}: its axes are -{rank} to {}", rank.saturating_sub(1))]
    AxisOutOfRange { axis: i64, rank: usize },
    #[error("axis {axis} is out of range for rank 0, which takes only `axes=[]`")]
    AxisOfRankZero { axis: i64 },
    #[error("axis {axis} is listed twice for rank {rank}")]
    RepeatedAxis { axis: usize, rank: usize },
    #[error("`empty_axes=identity` is not for `{op}`, which reduces groups of one over no axes")]
    NoIdentity { op: &'static str },

    #[error("`{op}` does not take {given}; it takes {accepted}")]
    TypeRefused { op: &'static str, given: DType, accepted: String },
    #[error(
        "{} to {output} output is refused: bool goes to bool only, and only bool goes to bool",
        value(*.given, by)
    )]
    BoolMismatch { given: DType, by: &'static str, output: DType },
    #[error("{} to {output} output needs `trunc` or `round_half_even`", value(*.given, by))]
    RoundingNeeded { given: DType, by: &'static str, output: DType },
    #[error("`trunc` and `round_half_even` exclude each other")]
    TwoRoundings,
    #[error("`{word}` is for integer outputs, the output is {output}")]
    RoundingWithoutInteger { word: &'static str, output: DType },
    #[error(
        "`saturate` is for integers to integers, given {} to {output} output; floats always saturate where they become \
         integers",
        value(*.given, by)
    )]
    SaturateRefused { given: DType, by: &'static str, output: DType },
    #[error("`acc` is for floats, given {}", value(*.given, by))]
    AccumulatorWithoutFloat { given: DType, by: &'static str },
    #[error("acc={given} is refused for {}: {accepted} would be accepted", value(*.input, by))]
    AccumulatorRefused { input: DType, by: &'static str, given: DType, accepted: &'static str },
    #[error("`{op}` of integers over nothing has no integer value: reduced axis {axis} has extent 0")]
    IntegerOverNothing { op: &'static str, axis: usize },
    #[error("`{op}` of nothing has no position: reduced axis {axis} has extent 0")]
    PositionOverNothing { op: &'static str, axis: usize },

    #[error("source rank {source_rank} and destination rank {destination_rank} differ")]
    RanksDiffer { source_rank: usize, destination_rank: usize },
    #[error("destination dim {given} of axis {axis} must be 1 or {expected}")]
    DestinationDim { axis: usize, given: i64, expected: i64 },
    #[error("source and destination dims {dims} are equal: nothing is reduced")]
    NothingReduced { dims: String },
    #[error("`{name}` is no {what} that is translated from oneDNN; those are {}", names.join(", "))]
    OneDnnName { what: &'static str, name: String, names: &'static [&'static str] },
    #[error("`{alg}` needs an alpha of at most beta, given {alpha} and {beta}")]
    ClipBounds { alg: &'static str, alpha: f32, beta: f32 },
    #[error(
        "a `sum` post-op cannot read the old {destination} destination as {given}: only i8 and u8 stand for another"
    )]
    SumType { given: DType, destination: DType },
}

/// The source of a value's type if that is no expression.
pub(super) const INPUT: &str = "input";

/// A value by its type and the type's source: `f32 input`, or ``bool from `map` ``.
fn value(dtype: DType, by: &str) -> String {
    if by == INPUT { format!("{dtype} input") } else { format!("{dtype} from `{by}`") }
}

/// The greatest number of an integer type.
fn highest(dtype: DType) -> i128 {
    dtype.int_range().map_or(0, |(_, highest)| highest)
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

fn up_to(n: usize) -> String {
    if n == 1 { "1".into() } else { format!("1 to {n}") }
}

/// The words of a spec.
const WORDS: [&str; 13] = [
    "axes",
    "keep_dims",
    "empty_axes",
    "scalar",
    "map",
    "then",
    "apply",
    "acc",
    "order",
    "saturate",
    "trunc",
    "round_half_even",
    "region",
];

/// The words as a message lists them.
const WORDS_SHOWN: &str = "an operand as `f32[2,3]`, `axes=`, `keep_dims`, `empty_axes=`, `scalar NAME:DTYPE`, `map=`, \
                           `then=`, `apply=`, `acc=`, `order=`, `saturate`, `trunc`, `round_half_even` and `->`";

/// The words that take the word's place here; else the nearest of the names, or all of them where none is near.
fn meant_or(word: &str, names: &[&'static str], what: &str, all: &str) -> String {
    if let Some(remedy) = nearest::remedy(word) {
        return format!(": {remedy}");
    }
    match nearest::meant(word, names.iter().copied()) {
        none if none.is_empty() => format!("; the {what} are {all}"),
        meant => meant,
    }
}

/// Every name of an op, aliases too.
fn all_op_names() -> Vec<&'static str> {
    ops::ROWS.iter().flat_map(|row| [row.name].into_iter().chain(row.aliases.iter().copied())).collect()
}

fn op_names() -> String {
    ops::ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
}
