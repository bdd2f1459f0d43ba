//! The text form of a problem.
//!
//! ```text
//! problem {
//!   reduce lp_sum(p=3,eps=1e-6) in f32 over 240
//!   then "r0 / x1"
//!   in x0: f32[17280] at 0
//!   with x1: f32[72] at 0
//!   out x2: f32[72] at 0
//!   dim 72: 240, 1 -> 1
//!   dim 240 reduced: 1, 0
//! }
//! ```
//!
//! The first line is `reduce` or `convert`, the ops with their parameters and `in` the accumulator type,
//! `over` the number of elements of each slice, then the words `saturate` and `half_even` that hold.
//! Lines for expressions follow, `map`, `then` (one for each output) and `apply`, in which inputs are `x`
//! and their number. Operands have their element type, length and the index of the first element; lift
//! reads those marked `in`, `with` is read once a slice is reduced. `position at 0` says that lift takes
//! the position in the slice, and what it is at the first element. Each dim has its extent, its stride in
//! each input, where there are positions then theirs, and, after an arrow, its stride in each output. `slice` are the
//! reduction dims again, for outputs at each position.

use super::{Dim, Input, Operand, Problem, Work};
use crate::spec::text::calls;
use cranefold_ir::DType;
use cranefold_ir::formula::Formula;
use cranefold_ir::ops::Recipe;
use std::fmt;
use std::str::FromStr;

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "problem {{")?;
        let (saturate, half_even) = match &self.work {
            Work::Convert { saturate, half_even } => {
                write!(f, "  convert over {}", self.count)?;
                (*saturate, *half_even)
            }
            Work::Reduce(recipe) => {
                let calls: Vec<String> = recipe.calls.iter().map(|c| c.to_string()).collect();
                write!(f, "  reduce {} in {} over {}", calls.join(", "), recipe.accumulator, self.count)?;
                (recipe.saturate, recipe.half_even)
            }
        };
        let words = [(saturate, " saturate"), (half_even, " half_even")];
        words.iter().filter(|(holds, _)| *holds).try_for_each(|(_, word)| f.write_str(word))?;
        writeln!(f)?;
        if let Work::Reduce(recipe) = &self.work {
            let formulas = recipe.map.iter().map(|m| ("map", m)).chain(recipe.then.iter().map(|t| ("then", t)));
            for (word, formula) in formulas.chain(recipe.apply.iter().map(|a| ("apply", a))) {
                writeln!(f, "  {word} \"{formula}\"")?;
            }
        }
        let inputs = self.inputs.iter().map(|i| (if i.mapped { "in" } else { "with" }, &i.operand));
        let outputs = self.outputs.iter().map(|o| ("out", o));
        for (i, (word, o)) in inputs.chain(outputs).enumerate() {
            writeln!(f, "  {word} x{i}: {}[{}] at {}", o.dtype, o.len, o.origin)?;
        }
        if let Some(origin) = self.position {
            writeln!(f, "  position at {origin}")?;
        }
        for dim in &self.dims {
            let word = if dim.reduced { " reduced" } else { "" };
            write!(f, "  dim {}{word}: {}", dim.extent, self.strides(dim))?;
            match dim.reduced {
                true => writeln!(f)?,
                false => writeln!(f, " -> {}", list(&dim.output_strides))?,
            }
        }
        for dim in &self.slice {
            writeln!(f, "  slice {}: {} -> {}", dim.extent, list(&dim.input_strides), list(&dim.output_strides))?;
        }
        write!(f, "}}")
    }
}

impl Problem {
    fn strides(&self, dim: &Dim) -> String {
        match self.position {
            None => list(&dim.input_strides),
            Some(_) => format!("{}, {}", list(&dim.input_strides), dim.position_stride),
        }
    }
}

fn list(strides: &[i64]) -> String {
    strides.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

/// The text is no problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ProblemError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

impl FromStr for Problem {
    type Err = ProblemError;

    fn from_str(text: &str) -> Result<Problem, ProblemError> {
        let mut problem: Option<Problem> = None;
        let mut closed = false;
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            let fail = |message: String| ProblemError { line: n + 1, message };
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match (&mut problem, word) {
                (None, "problem") if rest == "{" => {}
                (None, "reduce" | "convert") => problem = Some(started(word, rest).map_err(fail)?),
                (_, "") => {}
                (Some(_), "}") if rest.is_empty() && !closed => closed = true,
                (Some(p), _) if !closed => p.line(word, rest).map_err(fail)?,
                _ => return Err(fail(not_expected(word))),
            }
        }
        let end = |message: &str| ProblemError { line: text.lines().count().max(1), message: message.into() };
        let problem = problem.ok_or_else(|| end("there is no `reduce` or `convert`"))?;
        if !closed {
            return Err(end("there is no closing brace"));
        }
        problem.check().map_err(|message| end(&message))?;
        Ok(problem)
    }
}

impl Problem {
    /// Takes a line that begins with `word`.
    fn line(&mut self, word: &str, rest: &str) -> Result<(), String> {
        if matches!(word, "in" | "with" | "out" | "position") && !(self.dims.is_empty() && self.slice.is_empty()) {
            return Err(format!("`{word}` stands before the dims"));
        }
        match word {
            "in" | "with" => {
                self.inputs.push(Input { operand: operand(rest)?, mapped: word == "in" });
                return Ok(());
            }
            "out" => {
                self.outputs.push(operand(rest)?);
                return Ok(());
            }
            "position" => {
                let origin = rest.strip_prefix("at ").ok_or("a position is written `position at 0`")?;
                self.position = Some(number(origin)?);
                return Ok(());
            }
            "dim" => {
                let dim = self.dim(rest, self.position.is_some())?;
                self.dims.push(dim);
                return Ok(());
            }
            "slice" => {
                let dim = self.dim(rest, false)?;
                self.slice.push(Dim { reduced: true, ..dim });
                return Ok(());
            }
            _ => {}
        }
        let Work::Reduce(recipe) = &mut self.work else { return Err(not_expected(word)) };
        let formula = || -> Result<Formula, String> {
            let text = rest.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
            text.ok_or("an expression stands between quotes")?.parse().map_err(|e| format!("{e}"))
        };
        match word {
            "map" if recipe.map.is_none() => recipe.map = Some(formula()?),
            "then" => recipe.then.push(formula()?),
            "apply" if recipe.apply.is_none() => recipe.apply = Some(formula()?),
            _ => return Err(not_expected(word)),
        }
        Ok(())
    }

    /// `240 reduced: 1`, or `72: 240 -> 1`; with `positions` the stride of positions is the last before the arrow.
    fn dim(&self, text: &str, positions: bool) -> Result<Dim, String> {
        let (head, strides) = text.split_once(':').ok_or("a dim is written `72: 240 -> 1` or `240 reduced: 1`")?;
        let list = |text: &str| text.split(',').map(number::<i64>).collect::<Result<Vec<_>, _>>();
        let (extent, reduced) = match head.strip_suffix(" reduced") {
            Some(extent) => (extent, true),
            None => (head, false),
        };
        let (inputs, output_strides) = match strides.split_once("->") {
            Some((inputs, outputs)) => (inputs, list(outputs)?),
            None if reduced => (strides, vec![0; self.outputs.len()]),
            None => return Err("a dim that is not reduced has output strides".into()),
        };
        let mut input_strides = list(inputs)?;
        let position_stride = if positions { input_strides.pop().unwrap_or(0) } else { 0 };
        if input_strides.len() != self.inputs.len() || output_strides.len() != self.outputs.len() {
            return Err("a dim has one stride for each operand".into());
        }
        Ok(Dim { extent: number(extent)?, reduced, input_strides, output_strides, position_stride })
    }
}

fn not_expected(word: &str) -> String {
    format!("`{}` is not expected here", shorten(word))
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("`{}` is no number in range", shorten(text)))
}

fn dtype(text: &str) -> Result<DType, String> {
    text.parse().map_err(|e: cranefold_ir::UnknownDType| e.to_string())
}

/// `sum in f32 over 240 saturate` after `reduce`; `over 1` after `convert`.
fn started(kind: &str, text: &str) -> Result<Problem, String> {
    let (head, tail) = match text.strip_prefix("over ") {
        Some(tail) => ("", tail),
        None => text.rsplit_once(" over ").ok_or("the number of elements is missing")?,
    };
    let mut words = tail.split(' ');
    let count = number(words.next().unwrap_or(""))?;
    let (mut saturate, mut half_even) = (false, false);
    for word in words {
        match word {
            "saturate" => saturate = true,
            "half_even" => half_even = true,
            _ => return Err(format!("`{}` is neither saturate nor half_even", shorten(word))),
        }
    }
    let work = match (kind, head) {
        ("convert", "") => Work::Convert { saturate, half_even },
        ("convert", _) => return Err("`convert` takes no op".into()),
        _ => {
            let (ops, accumulator) = head.rsplit_once(" in ").ok_or("the accumulator type is missing")?;
            let calls = calls(ops).map_err(|e| e.to_string())?;
            let accumulator = dtype(accumulator)?;
            Work::Reduce(Recipe { calls, map: None, then: vec![], apply: None, accumulator, saturate, half_even })
        }
    };
    Ok(Problem { work, count, inputs: vec![], outputs: vec![], position: None, dims: vec![], slice: vec![] })
}

/// `x0: f32[17280] at 0`.
fn operand(text: &str) -> Result<Operand, String> {
    let shape = "an operand is written `x0: f32[17280] at 0`";
    let (_, text) = text.split_once(": ").ok_or(shape)?;
    let (array, origin) = text.split_once(" at ").ok_or(shape)?;
    let (name, len) = array.strip_suffix(']').and_then(|a| a.split_once('[')).ok_or(shape)?;
    Ok(Operand { dtype: dtype(name)?, len: number(len)?, origin: number(origin)? })
}
