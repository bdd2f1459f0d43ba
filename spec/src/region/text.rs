//! The reading of a region's text: operands and words; the body is read by its own crate.

use super::check::{self, Head, Operands};
use crate::build::Given;
use crate::layout::Layout;
use crate::spellings;
use crate::text::Parser;
use crate::{Spec, SpecError};
use cranefold_ir::region::RegionError;
use cranefold_ir::{DType, nearest};

/// Reads a text that begins with the word `region`.
pub(crate) fn read(text: &str) -> Result<Spec, SpecError> {
    let mut reader = Reader { parser: Parser::new(text), head: Head::default() };
    // Errors of a part without a place of their own are the part's.
    let mut start = 0;
    let head = reader.head(&mut start).map_err(|error| placed(text, start, error))?;
    check::checked(text, head)
}

/// An error in the text of a region, with a caret at its column, or at `at` if it has none.
pub(super) fn placed(text: &str, at: usize, error: SpecError) -> SpecError {
    if let SpecError::Region(_) = error {
        return error;
    }
    let message = error.to_string();
    let column = message.strip_prefix("column ").and_then(|rest| rest.split_once(": "));
    let (at, message) = match column.and_then(|(column, rest)| Some((column.parse::<usize>().ok()?, rest))) {
        Some((column, rest)) => (text.char_indices().nth(column - 1).map_or(text.len(), |(at, _)| at), rest),
        None => (at, message.as_str()),
    };
    SpecError::Region(RegionError::at(text, at, message))
}

struct Reader<'a> {
    parser: Parser<'a>,
    head: Head,
}

impl<'a> Reader<'a> {
    /// Reads up to the opening brace; `start` is the place of the part that is read.
    fn head(&mut self, start: &mut usize) -> Result<Head, SpecError> {
        self.parser.name("`region`")?;
        loop {
            self.parser.skip_space();
            *start = self.parser.at;
            self.operand()?;
            if !self.parser.eat(',') {
                break;
            }
        }
        loop {
            self.parser.skip_space();
            *start = self.parser.at;
            if self.parser.eat('{') {
                self.head.body_at = self.parser.at;
                return Ok(std::mem::take(&mut self.head));
            }
            self.word()?;
        }
    }

    /// Reads an operand with its name, or without.
    fn operand(&mut self) -> Result<(), SpecError> {
        let at = self.parser.at;
        let mut name = self.parser.name("an operand, as in `x:f32[2,3]`")?;
        let mut dtype_at = at;
        let given = match self.parser.eat(':') {
            true => {
                self.parser.skip_space();
                dtype_at = self.parser.at;
                Some(std::mem::replace(&mut name, self.parser.name("a dtype")?))
            }
            false => None,
        };
        let dtype = self.dtype(name, dtype_at)?;
        self.parser.expect('[', "`[`")?;
        let mut shape = vec![];
        for (axis, extent) in self.parser.ints(']', "an extent or `]`")?.into_iter().enumerate() {
            shape.push(u64::try_from(extent).map_err(|_| SpecError::NegativeExtent { axis, extent })?);
        }
        let layout = if self.parser.eat('@') { self.parser.layout()? } else { Layout::row_major() };
        let Operands { names, places, given: operands } = &mut self.head.operands;
        names.push(given.map_or_else(|| format!("x{}", operands.len()), str::to_string));
        places.push(at);
        operands.push(Given { dtype, shape, layout });
        Ok(())
    }

    fn dtype(&self, name: &str, at: usize) -> Result<DType, SpecError> {
        spellings::dtype(name).map_err(|error| {
            let message = match check::is_fp8(name) {
                true => format!("`{}`: floats of 8 bits are not supported", crate::check::shorten(name)),
                false => error.to_string(),
            };
            SpecError::Region(RegionError::at(self.parser.text, at, message))
        })
    }

    /// Reads a word and what belongs to it.
    fn word(&mut self) -> Result<(), SpecError> {
        let parser = &mut self.parser;
        let start = parser.at;
        match spellings::word(parser.name("a word or `{`")?) {
            "axes" => {
                parser.once("axes", start)?;
                parser.expect('=', "`=`")?;
                self.head.axes = parser.axes()?.map(|axes| (axes, start));
            }
            "scalar" => {
                parser.skip_space();
                let at = parser.at;
                let name = parser.name("the name of a scalar")?.to_string();
                parser.expect(':', "`:`")?;
                parser.skip_space();
                let dtype_at = parser.at;
                let dtype = parser.name("a dtype")?;
                let dtype = self.dtype(dtype, dtype_at)?;
                self.head.scalars.push((name, at, dtype));
            }
            "keep_dims" => {
                parser.once("keep_dims", start)?;
                self.head.keep_dims = parser.flag()?;
            }
            "acc" => {
                parser.once("acc", start)?;
                parser.expect('=', "`=`")?;
                parser.skip_space();
                let at = parser.at;
                self.head.accumulator = Some((parser.dtype()?, at));
            }
            "order" => {
                parser.once("order", start)?;
                parser.expect('=', "`=`")?;
                self.head.order = parser.order()?;
            }
            word => {
                let message = format!(
                    "unknown word `{}`{}; the words of a region are `axes=`, `scalar NAME:DTYPE`, `keep_dims`, `acc=` and \
                     `order=`, and its body stands in braces",
                    crate::check::shorten(word),
                    nearest::meant(word, ["axes", "scalar", "keep_dims", "acc", "order"])
                );
                return Err(SpecError::Region(RegionError::at(parser.text, start, message)));
            }
        }
        Ok(())
    }
}
