//! The parser of the one-line text form.
//!
//! ```text
//! spec    = region | op { "," op } { word } [ "->" output { "," output } { word } ]
//! op      = NAME [ "(" [ param { "," param } ] ")" ]
//!         | "combiner" "(" field { "," field } ")"
//! param   = NAME "=" NUMBER
//!         | NAME                            a flag: 1
//! field   = ( "identity" | "lift" | "combine" | "close" | "merge" | "finish" ) "=" QUOTED
//!         | "commutative"
//! word    = operand { "," operand }         each input, in order
//!         | "scalar" NAME ":" DTYPE         each after the inputs, in order
//!         | ( "map" | "then" | "apply" ) "=" QUOTED
//!         | "axes" "=" ( INT { "," INT } | "[" [ INT { "," INT } ] "]" | "all" )
//!         | "keep_dims" [ "=" ( "true" | "false" ) ]
//!         | NAME [ "=" NUMBER ]             a parameter of the ops that have it, as in `ddof=1`
//!         | "empty_axes" "=" ( "identity" | "lift" )
//!         | "acc" "=" DTYPE
//!         | "order" "=" ( "memory" | "logical" )
//!         | "saturate" | "trunc" | "round_half_even"
//! operand = DTYPE "[" [ INT { "," INT } ] "]" [ "@" layout ] [ ":" "then" ]
//! output  = DTYPE [ "@" layout ] | "@" layout
//! layout  = ( TAG | "any" | "(" [ INT { "," INT } ] ")" [ BLOCKS ] | ) [ "+" INT ]
//! ```
//!
//! A text that begins with the word `region` is a region ([`RegionBuilder`](crate::RegionBuilder) has the grammar).
//! QUOTED is an expression, or several separated by commas, between two `"`
//! ([`expression`](cranefold_ir::expression) has their grammar). A combiner's fields are in the order of its
//! phases, each from `identity` on. NAME is a letter or `_`, then letters, digits and `_`; TAG is letters and digits
//! ([`layout`](crate::layout) defines it), BLOCKS is its end after the letters; INT is decimal
//! with an optional `-`; NUMBER is an `f64` as Rust parses it. White space may stand between any
//! two tokens and must stand between two words. Words come in any order, each at most once, but for
//! operands and scalars. Names of ops are read without regard to case. From `#` to the end of its line a text is a comment.
//!
//! Spellings of other libraries are read too, and print as the canonical ones: `axis`, `dim` and `dims` for `axes`, with
//! parentheses for brackets and `None` for `all`; `keepdims` and `keepdim` for `keep_dims`; `correction` for `ddof`; the types `float32`, `int8`, `uint8`, `bfloat16`,
//! `half`, `double` and the like, in any case. `dtype=T` is NumPy's: the type of the output, and where that is `f64` also of
//! the accumulator of narrower floats.

use super::build::Named;
use super::place::{self, Mark};
use super::spellings::{self, ParamWord};
use super::{Builder, MAX_TEXT, NamedOp, Order, Rounding, Spec, SpecError};
use crate::layout::Layout;
use cranefold_ir::ops::{Combiner, OpCall, RecipeError};
use cranefold_ir::{DType, nearest};
use std::str::FromStr;

impl FromStr for Spec {
    type Err = SpecError;

    /// Reads the one-line text form.
    ///
    /// # Errors
    /// If the text is outside the grammar, with the column, or [`Builder::build`] refuses the spec.
    fn from_str(text: &str) -> Result<Spec, SpecError> {
        if text.len() > MAX_TEXT {
            return Err(SpecError::TextTooLong { given: text.len(), limit: MAX_TEXT }.in_text("", 0));
        }
        let mut parser = Parser::new(text);
        if parser.is_region() {
            return super::region::read(text).map_err(|error| {
                let at = place::in_region(text, &error);
                error.in_text(text, at)
            });
        }
        parser.spec().and_then(Builder::build).map_err(|error| parser.placed(error))
    }
}

impl FromStr for Layout {
    type Err = SpecError;

    /// Reads a layout as a spec has it after `@`: a tag such as `nchw` or `aBcd16b`, strides as `(100,1)`, `any`, and an
    /// offset as in `nchw+8`.
    ///
    /// ```
    /// use cranefold_spec::Layout;
    ///
    /// assert_eq!("nChw16c".parse::<Layout>()?, Layout::tag("aBcd16b").expect("a tag"));
    /// assert_eq!("(100,1)+8".parse::<Layout>()?, Layout::strides([100, 1]).offset(8));
    /// # Ok::<(), cranefold_spec::SpecError>(())
    /// ```
    ///
    /// # Errors
    /// If the text is no layout, with its place.
    fn from_str(text: &str) -> Result<Layout, SpecError> {
        let mut parser = Parser::new(text);
        let layout = parser.layout().and_then(|layout| {
            parser.skip_space();
            if parser.rest().is_empty() { Ok(layout) } else { Err(parser.expected("`+` or the end")) }
        });
        layout.map_err(|error| parser.placed(error))
    }
}

/// Parses ops with their parameters, as in a spec, up to the end of the text.
///
/// # Errors
/// If the text is outside the grammar or an op is refused.
pub fn calls(text: &str) -> Result<Vec<OpCall>, SpecError> {
    let mut parser = Parser::new(text);
    let mut calls = vec![parser.op()?.resolve()?];
    while parser.eat(',') {
        calls.push(parser.op()?.resolve()?);
    }
    parser.skip_space();
    if parser.rest().is_empty() { Ok(calls) } else { Err(parser.expected("`,` or the end")) }
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    /// Byte offset of the next character.
    pub(super) at: usize,
    /// The words read so far that may come once.
    pub(super) seen: Vec<&'static str>,
    /// The parameters that stand as words, with their places.
    pub(super) params: Vec<ParamWord<'a>>,
    /// The type of NumPy's `dtype=`, and its place.
    pub(super) dtype: Option<(DType, usize)>,
    /// The places passed so far, for errors that are found later.
    pub(super) marks: Vec<(Mark, usize)>,
    /// The place at which the part that is read begins.
    pub(super) begun: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Parser<'a> {
        Parser { text, at: 0, seen: vec![], params: vec![], dtype: None, marks: vec![], begun: 0 }
    }

    /// Notes what stands at a place.
    fn mark(&mut self, mark: Mark, at: usize) {
        self.marks.push((mark, at));
        self.begun = at;
    }

    fn spec(&mut self) -> Result<Builder, SpecError> {
        let mut builder = Builder::of(self.op()?);
        while self.eat(',') {
            builder = builder.with(self.op()?);
        }
        loop {
            self.skip_space();
            let start = self.at;
            if self.rest().is_empty() {
                return self.finished(builder);
            }
            if let Some(mark) = ['>', '<', '|', '&', ';'].into_iter().find(|mark| self.rest().starts_with(*mark)) {
                let message = format!("`{mark}` is the shell's, and stands outside of the quotes of a spec");
                return Err(SpecError::Misplaced { column: self.column(start), message });
            }
            if self.at > 0 && !self.text[..start].ends_with(|c: char| c.is_ascii_whitespace()) {
                return Err(self.expected("a space"));
            }
            if self.rest().starts_with("->") {
                self.once("->", start)?;
                self.at += 2;
                builder = self.output(builder)?;
                while self.eat(',') {
                    builder = self.output(builder)?;
                }
            } else if self.rest().starts_with("=>") {
                let message = "the type of the output stands after `->`, as in `-> f64`".into();
                return Err(SpecError::Misplaced { column: self.column(start), message });
            } else {
                builder = self.word(builder)?;
            }
        }
    }

    /// The builder with what only holds for the whole text.
    fn finished(&mut self, builder: Builder) -> Result<Builder, SpecError> {
        let params = std::mem::take(&mut self.params);
        let builder = params.into_iter().try_fold(builder, |builder, param| self.with_param(builder, param))?;
        match self.dtype {
            None => Ok(builder),
            Some((_, at)) if self.seen.contains(&"->") => {
                let message = "`dtype=` and `->` both name the type of the output: one of them is enough".into();
                Err(SpecError::Misplaced { column: self.column(at), message })
            }
            Some((dtype, _)) => Ok(builder.numpy_dtype(dtype)),
        }
    }

    /// Parses an op with its parameters, or a combiner.
    fn op(&mut self) -> Result<Named, SpecError> {
        self.skip_space();
        let start = self.at;
        self.mark(Mark::Op, start);
        if self.rest().starts_with(['"', '\'']) {
            let message = "a spec has no quotes around itself: `sum f32[4,5]`".into();
            return Err(SpecError::Misplaced { column: self.column(start), message });
        }
        self.refuse_file("a spec begins with an op, as in `sum f32[4,5]`")?;
        let op = self.name("the name of an op")?.to_string();
        if spellings::dtype(&op).is_ok() && self.next_is('[') {
            return Err(self.type_for_op(&op, start));
        }
        if op.eq_ignore_ascii_case("combiner") {
            return self.combiner().map(Named::Own);
        }
        if self.next_is('.')
            && let Some(remedy) = nearest::remedy(&op)
        {
            return Err(SpecError::Misplaced { column: self.column(start), message: format!("`{op}.`: {remedy}") });
        }
        let mut params = vec![];
        if !self.eat('(') || self.eat(')') {
            return Ok(Named::Op(NamedOp { name: op, params }));
        }
        loop {
            self.skip_space();
            let start = self.at;
            let name = self.name("the name of a parameter")?.to_string();
            if spellings::dtype(&name).is_ok() && self.next_is('[') {
                return Err(self.type_for_op(&name, start));
            }
            let flag = self.eat(',') || self.eat(')');
            if flag {
                params.push((name, 1.0));
            } else {
                self.expect('=', "`=`")?;
                let value = self.number()?;
                params.push((name, value));
                if !self.eat(',') && !self.eat(')') {
                    return Err(self.expected("`,` or `)`"));
                }
            }
            if self.text[..self.at].ends_with(')') {
                return Ok(Named::Op(NamedOp { name: op, params }));
            }
        }
    }

    /// Parses the fields that follow the word `combiner`.
    fn combiner(&mut self) -> Result<Combiner, SpecError> {
        let mut combiner = Combiner { phases: vec![], merge: vec![], finish: vec![], commutative: false };
        self.expect('(', "`(`")?;
        loop {
            self.skip_space();
            let at = self.at;
            let word = self.name("a field of the combiner")?;
            if word == "commutative" {
                if std::mem::replace(&mut combiner.commutative, true) {
                    let error = RecipeError::RepeatedField { field: "commutative" };
                    return Err(SpecError::CombinerText { column: self.column(at), error });
                }
            } else {
                self.expect('=', "`=`")?;
                let list = self.quoted(word)?;
                let refused = |error| SpecError::CombinerText { column: self.column(at), error };
                combiner.add(word, list).map_err(refused)?;
            }
            if self.eat(')') {
                let refused = |error| SpecError::CombinerText { column: self.column(at), error };
                return combiner.whole().map_err(refused);
            }
            self.expect(',', "`,` or `)`")?;
        }
    }

    /// Takes the text of an expression, which stands between two quotes after `word=`.
    fn quoted(&mut self, word: &str) -> Result<&'a str, SpecError> {
        if !self.eat('"') {
            return Err(self.not_quoted(word));
        }
        let rest = self.rest();
        let Some(end) = rest.find('"') else {
            self.at = self.text.len();
            return Err(self.expected("`\"`"));
        };
        self.at += end + 1;
        Ok(&rest[..end])
    }

    /// Refuses the name of a file at this place; the message ends with what stands here.
    fn refuse_file(&self, instead: &str) -> Result<(), SpecError> {
        let word = self.rest().split(|c: char| c.is_ascii_whitespace() || c == ',').next().unwrap_or_default();
        let is_file = [".npy", ".npz", ".txt", ".csv", ".onnx"].iter().any(|end| word.ends_with(end));
        match is_file {
            true => {
                let message = format!("`{}` is a file, which no spec names: {instead}", shorten(word));
                Err(SpecError::Misplaced { column: self.column(self.at), message })
            }
            false => Ok(()),
        }
    }

    fn word(&mut self, builder: Builder) -> Result<Builder, SpecError> {
        let start = self.at;
        self.refuse_file("an operand is its type and its shape, as in `f32[4,5]`")?;
        let name = self.name("a word")?;
        match spellings::word(name) {
            _ if self.next_is('[') || spellings::dtype(name).is_ok() => self.operands(builder, name, start),
            "axes" => {
                self.once("axes", start)?;
                self.expect('=', "`=`")?;
                Ok(match self.axes()? {
                    Some(axes) => builder.axes(axes),
                    None => builder,
                })
            }
            "scalar" => {
                self.skip_space();
                self.mark(Mark::Scalar, self.at);
                let name = self.name("the name of a scalar")?;
                self.expect(':', "`:`")?;
                Ok(builder.scalar(name, self.dtype()?))
            }
            "map" | "then" | "apply" => {
                let word = ["map", "then", "apply"].into_iter().find(|&w| w == name).expect("one of them");
                self.once(word, start)?;
                self.expect('=', "`=`")?;
                let text = self.quoted(word)?;
                self.mark(Mark::Quoted(word), self.at - 1 - text.len());
                Ok(match word {
                    "map" => builder.map(text),
                    "then" => builder.then(text),
                    _ => builder.apply(text),
                })
            }
            "keep_dims" => {
                self.once("keep_dims", start)?;
                Ok(builder.keep_dims(self.flag()?))
            }
            "dtype" => {
                self.once("dtype", start)?;
                self.expect('=', "`=`")?;
                self.dtype = Some((self.dtype()?, start));
                Ok(builder)
            }
            "saturate" => self.once("saturate", start).map(|()| builder.saturate()),
            "trunc" => self.once("trunc", start).map(|()| builder.round(Rounding::Trunc)),
            "round_half_even" => self.once("round_half_even", start).map(|()| builder.round(Rounding::HalfEven)),
            "acc" => {
                self.once("acc", start)?;
                self.expect('=', "`=`")?;
                Ok(builder.accumulator(self.dtype()?))
            }
            "order" => {
                self.once("order", start)?;
                self.expect('=', "`=`")?;
                Ok(builder.order(self.order()?))
            }
            "empty_axes" => {
                self.once("empty_axes", start)?;
                self.expect('=', "`=`")?;
                self.skip_space();
                let at = self.at;
                match self.name("`identity` or `lift`")? {
                    "identity" => Ok(builder.empty_axes_identity()),
                    "lift" => Ok(builder.empty_axes_lift()),
                    _ => {
                        self.at = at;
                        Err(self.expected("`identity` or `lift`"))
                    }
                }
            }
            name if spellings::ops_with(name).next().is_some() => self.param_word(name, start).map(|()| builder),
            name if cranefold_ir::ops::find(name).is_some() => Err(self.op_for_word(name, start)),
            _ => Err(SpecError::UnknownWord { column: self.column(start), word: shorten(name) }),
        }
    }

    /// Parses one operand, or several separated by commas.
    fn operands(&mut self, builder: Builder, dtype: &'a str, start: usize) -> Result<Builder, SpecError> {
        let mut builder = self.input(builder, dtype, start)?;
        while self.eat(',') {
            self.skip_space();
            let start = self.at;
            let dtype = self.name("an operand")?;
            builder = self.input(builder, dtype, start)?;
        }
        Ok(builder)
    }

    fn input(&mut self, builder: Builder, dtype: &str, start: usize) -> Result<Builder, SpecError> {
        let dtype = match spellings::dtype(dtype) {
            Ok(dtype) => dtype,
            Err(_) if cranefold_ir::ops::find(dtype).is_some() => return Err(self.op_for_word(dtype, start)),
            Err(error) => return Err(SpecError::UnknownDType { column: self.column(start), error }),
        };
        self.begun = start;
        self.expect('[', "`[` and a shape, as in `f32[2,3]`")?;
        let mut shape = vec![];
        for (axis, extent) in self.ints(']', EXTENT)?.into_iter().enumerate() {
            shape.push(u64::try_from(extent).map_err(|_| SpecError::NegativeExtent { axis, extent })?);
        }
        let layout = if self.eat('@') { self.layout()? } else { Layout::row_major() };
        if !self.eat(':') {
            self.mark(Mark::Element, start);
            return Ok(builder.input_at(dtype, &shape, layout));
        }
        self.skip_space();
        let at = self.at;
        if self.name("`then`")? != "then" {
            self.at = at;
            return Err(self.expected("`then`"));
        }
        self.mark(Mark::Then, start);
        Ok(builder.then_input_at(dtype, &shape, layout))
    }

    fn output(&mut self, builder: Builder) -> Result<Builder, SpecError> {
        self.skip_space();
        self.mark(Mark::Output, self.at);
        if self.eat('@') {
            let layout = self.layout()?;
            return Ok(builder.output_parts(None, Some(layout)));
        }
        self.skip_space();
        if !self.rest().starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(self.expected("a dtype or `@` and a layout"));
        }
        self.refuse_file("`->` names the type of the output, as in `-> f64`")?;
        let dtype = self.dtype()?;
        if self.next_is('[') {
            let message = "the shape of the output follows from the axes, and `->` names its type alone; with `keep_dims` \
                           reduced axes stay, with extent 1";
            return Err(SpecError::Misplaced { column: self.column(self.at), message: message.into() });
        }
        let layout = if self.eat('@') { Some(self.layout()?) } else { None };
        Ok(builder.output_parts(Some(dtype), layout))
    }

    pub(super) fn layout(&mut self) -> Result<Layout, SpecError> {
        self.skip_space();
        let start = self.at;
        let column = self.column(start);
        let refused = |error| SpecError::LayoutText { column, error };
        let strides = if self.eat('(') { Some(self.ints(')', "a stride or `)`")?) } else { None };
        let word = self.run(|c| c.is_ascii_alphanumeric());
        let layout = match (strides, word) {
            (Some(strides), blocks) => Layout::blocked_strides(strides, blocks).map_err(refused)?,
            (None, "any") => Layout::any(),
            (None, "") if self.rest().starts_with('+') => Layout::row_major(),
            (None, "") => return Err(self.expected("a layout tag, `any`, `(` or `+`")),
            (None, "F" | "f") => {
                let message = "column-major order is `@ba` for rank 2 and `@cba` for rank 3".into();
                return Err(SpecError::Misplaced { column, message });
            }
            (None, tag) => Layout::tag(tag).map_err(refused)?,
        };
        if !self.eat('+') {
            return Ok(layout);
        }
        let offset = self.int("an offset")?;
        let negative = || SpecError::NegativeOffset { offset };
        Ok(layout.offset(u64::try_from(offset).map_err(|_| negative())?))
    }

    pub(super) fn dtype(&mut self) -> Result<DType, SpecError> {
        self.skip_space();
        let start = self.at;
        let name = self.name("a dtype")?;
        spellings::dtype(name).map_err(|error| SpecError::UnknownDType { column: self.column(start), error })
    }

    /// Parses integers separated by commas, and the closing bracket.
    pub(super) fn ints(&mut self, close: char, expected: &'static str) -> Result<Vec<i64>, SpecError> {
        let mut ints = vec![];
        if self.eat(close) {
            return Ok(ints);
        }
        let is_shape = expected == EXTENT;
        loop {
            self.skip_space();
            if is_shape && self.rest().starts_with(|c: char| c.is_ascii_alphabetic()) {
                let message =
                    "an extent is a number, which is known when the kernel is compiled, as in `[64,512]`".into();
                return Err(SpecError::Misplaced { column: self.column(self.at), message });
            }
            ints.push(self.int(expected)?);
            if self.eat(close) {
                return Ok(ints);
            }
            if is_shape && self.rest().starts_with(['e', 'E', 'k', 'K', 'M', 'G', '_', '.', '\'']) {
                let message = "an extent is a number of elements, in digits alone, as in `[1000000]`".into();
                return Err(SpecError::Misplaced { column: self.column(self.at), message });
            }
            if close == ']' && self.rest().starts_with(['x', 'X', '*', ';']) {
                let message = "extents are separated by commas, as in `[4,5]`".into();
                return Err(SpecError::Misplaced { column: self.column(self.at), message });
            }
            self.expect(',', if close == ']' { "`,` or `]`" } else { "`,` or `)`" })?;
        }
    }

    pub(super) fn int(&mut self, expected: &'static str) -> Result<i64, SpecError> {
        self.skip_space();
        let start = self.at;
        if self.rest().starts_with('-') {
            self.at += 1;
        }
        if self.run(|c| c.is_ascii_digit()).is_empty() {
            self.at = start;
            return Err(self.expected(expected));
        }
        let text = &self.text[start..self.at];
        if text.len() > 1 && text.trim_start_matches('-').starts_with('0') && text != "-0" {
            let message = format!("`{}` begins with 0: digits stand without commas, as in `[1000000]`", shorten(text));
            return Err(SpecError::Misplaced { column: self.column(start), message });
        }
        text.parse().map_err(|_| SpecError::IntegerTooLarge { column: self.column(start), text: shorten(text) })
    }

    pub(super) fn name(&mut self, expected: &'static str) -> Result<&'a str, SpecError> {
        self.skip_space();
        if !self.rest().starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Err(self.expected(expected));
        }
        Ok(self.run(|c| c.is_ascii_alphanumeric() || c == '_'))
    }

    pub(super) fn once(&mut self, word: &'static str, start: usize) -> Result<(), SpecError> {
        if self.seen.contains(&word) {
            return Err(SpecError::RepeatedWord { column: self.column(start), word });
        }
        self.seen.push(word);
        self.mark(Mark::Word(word), start);
        Ok(())
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn skip_space(&mut self) {
        self.run(|c| c.is_ascii_whitespace());
        while self.rest().starts_with('#') {
            self.run(|c| c != '\n');
            self.run(|c| c.is_ascii_whitespace());
        }
    }

    /// Returns true if the first word is `region`.
    fn is_region(&self) -> bool {
        let rest = self.text.trim_ascii_start().strip_prefix("region");
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    }

    pub(super) fn order(&mut self) -> Result<Order, SpecError> {
        self.skip_space();
        let at = self.at;
        match self.name("`memory` or `logical`")? {
            "memory" => Ok(Order::Memory),
            "logical" => Ok(Order::Logical),
            "C" | "F" | "A" | "K" | "c" | "fortran" => {
                let message = "`order` is that of the additions, `memory` or `logical`; a layout stands behind the shape, as in \
                               `f32[4,5]@ba`, which is column-major";
                Err(SpecError::Misplaced { column: self.column(at), message: message.into() })
            }
            _ => {
                self.at = at;
                Err(self.expected("`memory` or `logical`"))
            }
        }
    }

    /// Takes the characters, all of them ASCII, that `is` accepts.
    pub(super) fn run(&mut self, is: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !is(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Takes this character and white space before it, if it is next; returns true if it is.
    pub(super) fn eat(&mut self, c: char) -> bool {
        let start = self.at;
        self.skip_space();
        let found = self.rest().starts_with(c);
        self.at = if found { self.at + c.len_utf8() } else { start };
        found
    }

    /// Returns true if this character comes next, after white space if there is any.
    fn next_is(&mut self, c: char) -> bool {
        let start = self.at;
        let found = self.eat(c);
        self.at = start;
        found
    }

    pub(super) fn expect(&mut self, c: char, expected: &'static str) -> Result<(), SpecError> {
        if self.eat(c) { Ok(()) } else { Err(self.expected(expected)) }
    }

    pub(super) fn expected(&mut self, expected: &'static str) -> SpecError {
        self.skip_space();
        let rest = self.rest();
        let found = match rest.chars().next() {
            None => "the end".to_string(),
            Some(c) if c.is_ascii_alphanumeric() => format!("`{}`", shorten(self.run(|c| c.is_ascii_alphanumeric()))),
            Some(c) => format!("`{c}`"),
        };
        SpecError::Syntax { column: self.column(self.text.len() - rest.len()), expected, found }
    }

    /// The column, in characters from 1, of a byte offset.
    pub(super) fn column(&self, at: usize) -> usize {
        self.text[..at].chars().count() + 1
    }
}

/// The words for an extent that is expected.
const EXTENT: &str = "an extent or `]`";

pub(super) fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}
