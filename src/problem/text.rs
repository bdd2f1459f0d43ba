//! The text form of a problem.
//!
//! ```text
//! problem {
//!   reduce lp_sum(3.0, 1e-6) in f32 over 240
//!   in x0: f32[17280] at 0
//!   out x1: f32[72] at 0
//!   dim 72: 240 -> 1
//!   dim 240 reduced: 1
//! }
//! ```
//!
//! The first line is `reduce` or `convert`, the op with its parameters and `in` the accumulator type,
//! `over` the number of elements that each output is reduced from, then the words `truth`, `saturate`
//! and `half_even` that hold. Operands have their element type, length and the index of the first
//! element. Each dim has its extent, its stride in each input and, after an arrow, in each output.

use super::{Dim, Operand, Problem, Rounding, Work};
use cranefold_ir::{DType, ops};
use std::fmt;
use std::str::FromStr;

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "problem {{")?;
        let (truth, rounding) = match &self.work {
            Work::Convert { truth, rounding } => {
                write!(f, "  convert over {}", self.count)?;
                (truth, rounding)
            }
            Work::Reduce { op, params, truth, accumulator, rounding } => {
                let params: Vec<String> = params.iter().map(|&p| format!("{:?}", f64::from_bits(p))).collect();
                let params = if params.is_empty() { String::new() } else { format!("({})", params.join(", ")) };
                write!(f, "  reduce {op}{params} in {accumulator} over {}", self.count)?;
                (truth, rounding)
            }
        };
        let words = [(*truth, " truth"), (rounding.saturate, " saturate"), (rounding.half_even, " half_even")];
        words.iter().filter(|(holds, _)| *holds).try_for_each(|(_, word)| f.write_str(word))?;
        writeln!(f)?;
        let inputs = self.inputs.iter().map(|o| ("in ", o));
        let outputs = self.outputs.iter().map(|o| ("out", o));
        for (i, (role, o)) in inputs.chain(outputs).enumerate() {
            writeln!(f, "  {} x{i}: {}[{}] at {}", role.trim_end(), o.dtype, o.len, o.origin)?;
        }
        for dim in &self.dims {
            let list = |strides: &[i64]| strides.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            write!(
                f,
                "  dim {}{}: {}",
                dim.extent,
                if dim.reduced { " reduced" } else { "" },
                list(&dim.input_strides)
            )?;
            match dim.reduced {
                true => writeln!(f)?,
                false => writeln!(f, " -> {}", list(&dim.output_strides))?,
            }
        }
        write!(f, "}}")
    }
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
                (None, "reduce" | "convert") => {
                    let (work, count) = work(word, rest).map_err(fail)?;
                    problem = Some(Problem { work, count, inputs: vec![], outputs: vec![], dims: vec![] });
                }
                (_, "") => {}
                (Some(_), "}") if rest.is_empty() && !closed => closed = true,
                (Some(p), "in") if !closed => p.inputs.push(operand(rest).map_err(fail)?),
                (Some(p), "out") if !closed => p.outputs.push(operand(rest).map_err(fail)?),
                (Some(p), "dim") if !closed => {
                    let dim = dim(rest, p.outputs.len()).map_err(fail)?;
                    if dim.input_strides.len() != p.inputs.len() || dim.output_strides.len() != p.outputs.len() {
                        return Err(fail("a dim has one stride for each operand".into()));
                    }
                    p.dims.push(dim);
                }
                _ => return Err(fail(format!("`{}` is not expected here", shorten(word)))),
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
fn work(kind: &str, text: &str) -> Result<(Work, u64), String> {
    let (head, tail) = match text.strip_prefix("over ") {
        Some(tail) => ("", tail),
        None => text.split_once(" over ").ok_or("the number of elements is missing")?,
    };
    let mut words = tail.split(' ');
    let count = number(words.next().unwrap_or(""))?;
    let (mut truth, mut rounding) = (false, Rounding::default());
    for word in words {
        match word {
            "truth" => truth = true,
            "saturate" => rounding.saturate = true,
            "half_even" => rounding.half_even = true,
            _ => return Err(format!("`{}` is none of truth, saturate, half_even", shorten(word))),
        }
    }
    if kind == "convert" {
        return match head {
            "" => Ok((Work::Convert { truth, rounding }, count)),
            _ => Err("`convert` takes no op".into()),
        };
    }
    let (call, accumulator) = head.split_once(" in ").ok_or("the accumulator type is missing")?;
    let (name, params) = match call.split_once('(') {
        None => (call, vec![]),
        Some((name, params)) => {
            let params = params.strip_suffix(')').ok_or("the parameters do not end")?;
            let bits = params.split(',').map(|p| number::<f64>(p).map(f64::to_bits));
            (name, bits.collect::<Result<_, _>>()?)
        }
    };
    let row = ops::find(name).filter(|r| r.name == name).ok_or_else(|| format!("`{}` is no op", shorten(name)))?;
    if params.len() != row.params.len() {
        return Err(format!("{name} takes {} parameters, not {}", row.params.len(), params.len()));
    }
    Ok((Work::Reduce { op: row.name, params, truth, accumulator: dtype(accumulator)?, rounding }, count))
}

/// `x0: f32[17280] at 0`.
fn operand(text: &str) -> Result<Operand, String> {
    let shape = "an operand is written `x0: f32[17280] at 0`";
    let (_, text) = text.split_once(": ").ok_or(shape)?;
    let (array, origin) = text.split_once(" at ").ok_or(shape)?;
    let (name, len) = array.strip_suffix(']').and_then(|a| a.split_once('[')).ok_or(shape)?;
    Ok(Operand { dtype: dtype(name)?, len: number(len)?, origin: number(origin)? })
}

/// `240 reduced: 1` or `72: 240 -> 1`.
fn dim(text: &str, outputs: usize) -> Result<Dim, String> {
    let (head, strides) = text.split_once(':').ok_or("a dim is written `72: 240 -> 1` or `240 reduced: 1`")?;
    let list = |text: &str| text.split(',').map(number::<i64>).collect::<Result<Vec<_>, _>>();
    match head.strip_suffix(" reduced") {
        Some(extent) => Ok(Dim {
            extent: number(extent)?,
            reduced: true,
            input_strides: list(strides)?,
            output_strides: vec![0; outputs],
        }),
        None => {
            let (input, output) = strides.split_once("->").ok_or("a dim that is not reduced has output strides")?;
            Ok(Dim {
                extent: number(head)?,
                reduced: false,
                input_strides: list(input)?,
                output_strides: list(output)?,
            })
        }
    }
}
