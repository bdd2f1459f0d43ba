//! The place of a fault in the text of a spec: an error of a text prints its line and a caret.

use super::SpecError;
use super::text::Parser;
use cranefold_ir::expression::ExpressionError;
use cranefold_ir::ops::{self, ParamError, RecipeError};
use std::fmt;

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPlace {
    /// The byte of the whole text, from 0.
    pub at: usize,
    /// The line of the text that contains the place.
    pub line: String,
    /// The column in the line, in characters from 1.
    pub column: usize,
}

impl TextPlace {
    /// The place at a byte of a text.
    pub(crate) fn of(text: &str, at: usize) -> TextPlace {
        let at = text.floor_char_boundary(at);
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        TextPlace { at, line: text[start..end].into(), column: text[start..at].chars().count() + 1 }
    }
}

/// The kind of thing that stands at a place which the parser has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Op,
    Element,
    Then,
    Scalar,
    Output,
    Word(&'static str),
    /// The first character between the quotes of a word.
    Quoted(&'static str),
}

impl SpecError {
    /// The error itself, without its place in a text: the variants can be matched.
    ///
    /// ```
    /// use cranefold_spec::{Spec, SpecError};
    ///
    /// let error = "sum f32[4] axes=[1]".parse::<Spec>().unwrap_err();
    /// assert!(matches!(error.kind(), SpecError::AxisOutOfRange { axis: 1, rank: 1 }));
    /// ```
    pub fn kind(&self) -> &SpecError {
        if let SpecError::InText { error, .. } = self { error.kind() } else { self }
    }

    /// The byte of the text at which the fault is; `None` of a builder's error.
    ///
    /// ```
    /// use cranefold_spec::Spec;
    ///
    /// let error = "sum f32[4] axes=[1]".parse::<Spec>().unwrap_err();
    /// assert_eq!(error.place(), Some(11));
    /// assert_eq!(
    ///     error.to_string(),
    ///     "axis 1 is out of range for rank 1: its axes are -1 to 0\n  sum f32[4] axes=[1]\n             ^",
    /// );
    /// ```
    pub fn place(&self) -> Option<usize> {
        if let SpecError::InText { place, .. } = self { Some(place.at) } else { None }
    }

    /// The error with its place in a text.
    pub(crate) fn in_text(self, text: &str, at: usize) -> SpecError {
        match self {
            SpecError::InText { .. } => self,
            error => SpecError::InText { place: Box::new(TextPlace::of(text, at)), error: Box::new(error) },
        }
    }
}

/// An error with the line and a caret below its place, unless its own message has them.
pub(crate) struct Shown<'a>(pub &'a SpecError, pub &'a TextPlace);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(error, place) = self;
        let message = error.to_string();
        if message.contains('\n') || matches!(error, SpecError::TextTooLong { .. }) {
            return f.write_str(&message);
        }
        ExpressionError { text: place.line.clone(), column: place.column, message }.fmt(f)
    }
}

/// The byte at which a region's error is.
pub(crate) fn in_region(text: &str, error: &SpecError) -> usize {
    let SpecError::Region(error) = error else { return 0 };
    let line = text.split_inclusive('\n').take(error.line - 1).map(str::len).sum::<usize>();
    line + characters(&text[line..], error.column - 1)
}

/// The bytes of so many characters.
fn characters(text: &str, count: usize) -> usize {
    text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)
}

impl Parser<'_> {
    /// An error of this text, or of a builder that was made from it, with its place.
    pub(super) fn placed(&self, error: SpecError) -> SpecError {
        let at = self.place_of(&error).unwrap_or_else(|| self.first(Mark::Op).unwrap_or(0));
        error.in_text(self.text, at)
    }

    fn all(&self, mark: Mark) -> impl Iterator<Item = usize> + '_ {
        self.marks.iter().filter(move |(is, _)| *is == mark).map(|&(_, at)| at)
    }

    pub(super) fn first(&self, mark: Mark) -> Option<usize> {
        self.all(mark).next()
    }

    fn word_at(&self, word: &'static str) -> Option<usize> {
        self.first(Mark::Word(word))
    }

    /// The last place of a mark at which this name stands.
    fn named(&self, mark: Mark, name: &str) -> Option<usize> {
        let is = |at: &usize| {
            let rest = &self.text[*at..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            rest[..end].eq_ignore_ascii_case(name)
        };
        self.all(mark).filter(is).last()
    }

    /// The op that is this row, by its name or an alias.
    fn op_of(&self, row: &str) -> Option<usize> {
        let is = |at: &usize| {
            let rest = &self.text[*at..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            ops::find(&rest[..end]).is_some_and(|known| known.name == row)
        };
        self.all(Mark::Op).find(is)
    }

    /// The operand that messages call `input 0`, `output 0`, `x0` or `y0`.
    fn operand(&self, name: &str) -> Option<usize> {
        let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
        let number = digits.parse::<usize>().ok()?;
        match name.chars().next()? {
            'o' => self.all(Mark::Output).nth(number),
            'y' => self.all(Mark::Then).nth(number),
            'x' => self.all(Mark::Element).nth(number),
            'i' => self.all(Mark::Element).chain(self.all(Mark::Then)).nth(number),
            _ => None,
        }
    }

    fn place_of(&self, error: &SpecError) -> Option<usize> {
        use SpecError::*;
        let column = |column: usize| Some(characters(self.text, column - 1));
        match error {
            Syntax { column: at, .. }
            | RepeatedWord { column: at, .. }
            | UnknownWord { column: at, .. }
            | Misplaced { column: at, .. }
            | UnknownDType { column: at, .. }
            | LayoutText { column: at, .. }
            | IntegerTooLarge { column: at, .. }
            | CombinerText { column: at, .. } => column(*at),
            UnknownOp { name } => self.named(Mark::Op, name),
            Param(error) => self.op_of(param_op(error)),
            InputCount { op, .. }
            | InputsWithMap { op, .. }
            | StandsAlone { op, .. }
            | TooManyToSelect { op, .. }
            | IntegerOverNothing { op, .. }
            | PositionOverNothing { op, .. }
            | TypeRefused { op, .. } => self.op_of(op),
            TooManyInputs { limit, .. } => self.all(Mark::Element).chain(self.all(Mark::Then)).nth(*limit),
            OutputCount { given, expected, .. } => {
                self.all(Mark::Output).nth(*(given.min(expected))).or(self.word_at("->"))
            }
            ThenAndApply => self.word_at("apply"),
            MapWithCombiner => self.word_at("map"),
            OneExpression { field, .. } => self.word_at(field),
            Recipe(RecipeError::Expression { field, error }) => {
                let start = self.first(Mark::Quoted(field))?;
                Some(start + characters(&self.text[start..], error.column - 1))
            }
            Recipe(_) => None,
            Broadcast { message } => self.operand(message),
            Unused { what: "scalar", name } => self.named(Mark::Scalar, name),
            Unused { name, .. } => self.operand(name),
            ScalarName { name } | RepeatedScalar { name } => self.named(Mark::Scalar, name),
            CountType { .. } | CountRange { .. } | BoolMismatch { .. } | RoundingNeeded { .. } => {
                self.first(Mark::Output)
            }
            RankTooLarge { .. } => self.first(Mark::Element),
            Layout { operand, .. } => self.operand(operand),
            // They are found where they are read.
            NegativeExtent { .. } | NegativeOffset { .. } => Some(self.begun),
            AxisOutOfRange { .. } | AxisOfRankZero { .. } | RepeatedAxis { .. } => self.word_at("axes"),
            NoIdentity { .. } => self.word_at("empty_axes"),
            TwoRoundings => self.word_at("round_half_even"),
            RoundingWithoutInteger { word, .. } => self.word_at(word),
            SaturateRefused { .. } => self.word_at("saturate"),
            AccumulatorWithoutFloat { .. } | AccumulatorRefused { .. } => self.word_at("acc"),
            _ => None,
        }
    }
}

/// The row that an error of a parameter is about.
fn param_op(error: &ParamError) -> &'static str {
    match error {
        ParamError::Unknown { op, .. }
        | ParamError::Repeated { op, .. }
        | ParamError::Missing { op, .. }
        | ParamError::OutOfRange { op, .. }
        | ParamError::NotFinite { op, .. }
        | ParamError::TooLarge { op, .. }
        | ParamError::FlagValue { op, .. }
        | ParamError::Overflow { op, .. } => op,
        _ => "",
    }
}
