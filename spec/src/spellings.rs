//! Other spellings of the words of a spec, by which NumPy, PyTorch and others call the same things.
//!
//! The parser reads them, and a spec prints the one canonical spelling.

use super::build::{Builder, Named};
use super::place::Mark;
use super::text::{Parser, shorten};
use super::{NamedOp, SpecError};
use cranefold_ir::ops::{self, Row};
use cranefold_ir::{DType, UnknownDType};
use std::str::FromStr;

/// Element types by other names. `float`, `int` and `long` are not among them: they differ between languages.
const DTYPES: [(&str, DType); 16] = [
    ("boolean", DType::Bool),
    ("bool_", DType::Bool),
    ("int8", DType::I8),
    ("int16", DType::I16),
    ("int32", DType::I32),
    ("int64", DType::I64),
    ("uint8", DType::U8),
    ("uint16", DType::U16),
    ("uint32", DType::U32),
    ("uint64", DType::U64),
    ("float16", DType::F16),
    ("half", DType::F16),
    ("bfloat16", DType::Bf16),
    ("float32", DType::F32),
    ("float64", DType::F64),
    ("double", DType::F64),
];

/// Words by other names.
const WORDS: [(&str, &str); 6] = [
    ("axis", "axes"),
    ("dim", "axes"),
    ("dims", "axes"),
    ("keepdims", "keep_dims"),
    ("keepdim", "keep_dims"),
    ("correction", "ddof"),
];

/// The element type of a name, canonical or not, in any case.
pub(crate) fn dtype(name: &str) -> Result<DType, UnknownDType> {
    DType::from_str(name).or_else(|unknown| {
        let lower = name.to_ascii_lowercase();
        let other = DTYPES.iter().find(|(other, _)| *other == lower).map(|&(_, dtype)| dtype);
        other.or_else(|| DType::from_str(&lower).ok()).ok_or(unknown)
    })
}

/// The canonical word for a word.
pub(crate) fn word(name: &str) -> &str {
    WORDS.iter().find(|(other, _)| *other == name).map_or(name, |&(_, word)| word)
}

/// The ops that have a parameter of this name.
pub(super) fn ops_with(param: &str) -> impl Iterator<Item = &'static Row> {
    ops::ROWS.iter().filter(move |row| row.params.iter().any(|p| p.name == param))
}

/// A parameter that stands as a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParamWord<'a> {
    name: &'a str,
    value: f64,
    at: usize,
}

impl<'a> Parser<'a> {
    /// Parses the axes after `axes=`: `1`, `1,0`, `[1,0]`, `(1,0)`, `all`, and NumPy's `None`.
    pub(super) fn axes(&mut self) -> Result<Option<Vec<i64>>, SpecError> {
        if self.eat('[') {
            return self.ints(']', "an axis or `]`").map(Some);
        }
        if self.eat('(') {
            // A comma may stand behind the last axis, as in Python.
            let mut axes = vec![];
            while !self.eat(')') {
                axes.push(self.int("an axis or `)`")?);
                if !self.eat(',') {
                    self.expect(')', "`,` or `)`")?;
                    break;
                }
            }
            return Ok(Some(axes));
        }
        let before = self.at;
        for all in ["all", "None"] {
            if self.word_is(all) {
                return Ok(None);
            }
            self.at = before;
        }
        let mut axes = vec![self.int("an axis, a list such as `[0,2]`, or `all`")?];
        loop {
            let before = self.at;
            if !self.eat(',') {
                return Ok(Some(axes));
            }
            self.skip_space();
            if !self.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
                self.at = before;
                return Ok(Some(axes));
            }
            axes.push(self.int("an axis")?);
        }
    }

    /// Takes the next word; returns whether it is this one.
    fn word_is(&mut self, word: &str) -> bool {
        self.skip_space();
        self.run(|c| c.is_ascii_alphanumeric() || c == '_') == word
    }

    /// Parses what may follow a word that is there or not: `=true`, `=false`, or nothing, which is true.
    pub(super) fn flag(&mut self) -> Result<bool, SpecError> {
        if !self.eat('=') {
            return Ok(true);
        }
        self.skip_space();
        let at = self.at;
        match self.run(|c| c.is_ascii_alphanumeric()).to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => {
                self.at = at;
                Err(self.expected("`true` or `false`"))
            }
        }
    }

    /// Parses a number of a parameter.
    pub(super) fn number(&mut self) -> Result<f64, SpecError> {
        self.skip_space();
        let start = self.at;
        let digits = self.run(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-'));
        digits.parse().map_err(|_| {
            self.at = start;
            self.expected("a number")
        })
    }

    /// Parses a parameter that stands as a word: `ddof=1`, or a flag as `last`.
    pub(super) fn param_word(&mut self, name: &'a str, at: usize) -> Result<(), SpecError> {
        let is_flag = ops_with(name).flat_map(|row| row.params).any(|p| p.name == name && p.is_flag);
        let value = match is_flag {
            true => f64::from(u8::from(self.flag()?)),
            false => {
                self.expect('=', "`=`")?;
                self.number()?
            }
        };
        self.params.push(ParamWord { name, value, at });
        Ok(())
    }

    /// Gives a parameter to each op that has it.
    pub(super) fn with_param(&self, mut builder: Builder, param: ParamWord) -> Result<Builder, SpecError> {
        let ParamWord { name, value, at } = param;
        let mut any = false;
        for reducer in &mut builder.reducers {
            if let Named::Op(NamedOp { name: op, params }) = reducer
                && ops::find(op).is_some_and(|row| row.params.iter().any(|p| p.name == name))
            {
                params.push((name.to_string(), value));
                any = true;
            }
        }
        let ops = || ops_with(name).map(|row| row.name).collect::<Vec<_>>().join(", ");
        let message = || format!("no op of this spec has the parameter `{name}`; {} have it", ops());
        if any { Ok(builder) } else { Err(SpecError::Misplaced { column: self.column(at), message: message() }) }
    }

    /// The error of an element type that stands where an op is expected.
    pub(super) fn type_for_op(&self, dtype: &str, start: usize) -> SpecError {
        let column = self.column(start);
        let operand = self.operand_at(start);
        if self.text[..start].trim_end().ends_with(',') {
            return SpecError::Misplaced {
                column,
                message: format!("`{dtype}` is a type, and no comma stands between the ops and the operands"),
            };
        }
        let call = self.text[..start].trim_end().strip_suffix('(').map(|before| {
            let before = before.trim_end();
            let begin = before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
            before[begin..].to_string()
        });
        let message = match call {
            Some(op) => {
                format!("operands stand after the op, not in its parentheses: `{} {operand}`", shorten(&op))
            }
            None => {
                let words = self.text[start..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let op = words.into_iter().find_map(ops::find).map_or("sum", |row| row.name);
                format!("the op comes first: `{op} {operand}`")
            }
        };
        SpecError::Misplaced { column, message }
    }

    /// The error of an op that stands where an operand or a word is expected.
    pub(super) fn op_for_word(&self, op: &str, start: usize) -> SpecError {
        let first = self.first(Mark::Op).map_or("", |at| &self.text[at..]);
        let end = first.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(first.len());
        let message = format!(
            "`{op}` is an op, and the ops come first, with commas between them: `{}, {op} f32[2,3]`",
            shorten(&first[..end])
        );
        SpecError::Misplaced { column: self.column(start), message }
    }

    /// The error of an expression that begins without a quote: a shell takes away quotes that stand outside of others.
    pub(super) fn not_quoted(&mut self, word: &str) -> SpecError {
        let error = self.expected("`\"`");
        let SpecError::Syntax { column, found, .. } = error else { return error };
        if found == "the end" {
            return SpecError::Syntax { column, expected: "`\"`", found };
        }
        let message = format!(
            "expected `\"`, found {found}: an expression stands in double quotes, and in a shell the whole spec in single \
             ones, as in '{word}=\"..\"'"
        );
        SpecError::Misplaced { column, message }
    }

    /// The operand at a place, up to its closing bracket.
    fn operand_at(&self, start: usize) -> String {
        let rest = &self.text[start..];
        shorten(&rest[..rest.find(']').map_or(rest.len(), |end| end + 1)])
    }
}

impl Builder {
    /// Sets the type in which NumPy's `dtype=` computes and which it gives: that of the output, and of the accumulator of
    /// narrower floats.
    pub(super) fn numpy_dtype(mut self, dtype: DType) -> Builder {
        self = self.output_parts(Some(dtype), None);
        let narrower = self.inputs.first().is_some_and(|x| x.dtype.is_float() && x.dtype != DType::F64);
        if dtype == DType::F64 && narrower && self.accumulator.is_none() {
            self.accumulator = Some(DType::F64);
        }
        self
    }
}
