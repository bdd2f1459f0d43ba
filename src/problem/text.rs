//! The text form of a problem: printer and parser. The grammar stands at the head of [`problem`](crate::problem).

use super::{Dim, Distances, IndexBox, Input, Offsets, OperandSpan, Padding, Problem, SliceWalk, Work};
use crate::spec::MAX_BOXES;
use crate::spec::check::MAX_OPERANDS;
use crate::spec::text::calls;
use cranefold_ir::DType;
use cranefold_ir::expression::Expression;
use cranefold_ir::ops::Recipe;
use cranefold_ir::region::{Body, BodyInput, MAX_DEFINITIONS, Reach};
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
            Work::Region(body) => {
                write!(f, "  region in {} over {}", body.accumulator, self.count)?;
                let axes = body.reduced.iter().map(|&reduced| if reduced { " reduced" } else { " kept" });
                axes.into_iter().try_for_each(|axis| f.write_str(axis))?;
                (false, false)
            }
        };
        let words = [(saturate, " saturate"), (half_even, " half_even")];
        words.iter().filter(|(holds, _)| *holds).try_for_each(|(_, word)| f.write_str(word))?;
        writeln!(f)?;
        if let Work::Reduce(recipe) = &self.work {
            let expressions = recipe.map.iter().map(|m| ("map", m)).chain(recipe.then.iter().map(|t| ("then", t)));
            for (word, expression) in expressions.chain(recipe.apply.iter().map(|a| ("apply", a))) {
                writeln!(f, "  {word} \"{expression}\"")?;
            }
        }
        for (i, input) in self.inputs.iter().enumerate() {
            let word = if input.mapped { "in" } else { "with" };
            write!(f, "  {word} x{i}: {}[{}]", input.operand.dtype, input.operand.len)?;
            match &self.work {
                Work::Region(body) => writeln!(f, " {}", reach_word(body.inputs[i].reach))?,
                Work::Convert { .. } | Work::Reduce(_) => writeln!(f)?,
            }
        }
        for (o, output) in self.outputs.iter().enumerate() {
            writeln!(f, "  out x{}: {}[{}]", self.inputs.len() + o, output.dtype, output.len)?;
        }
        self.indices.iter().try_for_each(|extent| writeln!(f, "  index {extent}"))?;
        if let Work::Region(body) = &self.work {
            writeln!(f, "  body")?;
            body.to_string().lines().try_for_each(|line| writeln!(f, "    {line}"))?;
            writeln!(f, "  end")?;
        }
        if self.takes_position {
            writeln!(f, "  takes position")?;
        }
        if !self.only.is_empty() {
            let only: Vec<String> = self.only.iter().map(usize::to_string).collect();
            writeln!(f, "  only {}", only.join(", "))?;
        }
        boxes(f, "slices", &self.slices, true)?;
        for walk in &self.walks {
            if let Work::Region(_) = self.work {
                let reductions: Vec<String> = walk.reductions.iter().map(usize::to_string).collect();
                writeln!(f, "  walk of {}", reductions.join(", "))?;
            }
            boxes(f, "elements", &walk.elements, false)?;
            if let Some(extents) = &walk.gathered {
                let extents: Vec<String> = extents.iter().map(u64::to_string).collect();
                writeln!(f, "  gathered {}", if extents.is_empty() { "1".into() } else { extents.join(", ") })?;
            }
            if walk.beside != 1 {
                writeln!(f, "  beside {}", walk.beside)?;
            }
        }
        boxes(f, "positions", &self.positions, true)?;
        if let Some(totals) = &self.totals {
            writeln!(f, "  totals")?;
            totals.to_string().lines().try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        for padding in &self.padding {
            writeln!(f, "  padding of x{} at {}", self.inputs.len() + padding.output, padding.start)?;
            padding.dims.iter().try_for_each(|(extent, stride)| writeln!(f, "    dim {extent}: {stride}"))?;
        }
        write!(f, "}}")
    }
}

/// Boxes of a kind, with outputs or without.
fn boxes(f: &mut fmt::Formatter<'_>, word: &str, boxes: &[IndexBox], outputs: bool) -> fmt::Result {
    for region in boxes {
        writeln!(f, "  {word} at {}", OffsetsText(&region.start, outputs))?;
        for dim in &region.dims {
            writeln!(f, "    dim {}: {}", dim.extent, OffsetsText(&dim.stride, outputs))?;
        }
    }
    Ok(())
}

/// A place, printed with outputs or without.
struct OffsetsText<'a>(&'a Offsets, bool);

impl fmt::Display for OffsetsText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |distances: &[i64]| distances.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "{}", list(&self.0.inputs))?;
        if self.1 {
            write!(f, " -> {}", list(&self.0.outputs))?;
        }
        match self.0.position {
            0 => Ok(()),
            position => write!(f, " position {position}"),
        }
    }
}

/// A text that is no problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ProblemError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The error in that line.
    pub message: String,
}

impl FromStr for Problem {
    type Err = ProblemError;

    fn from_str(text: &str) -> Result<Problem, ProblemError> {
        let mut problem: Option<Problem> = None;
        let (mut closed, mut section) = (false, Section::Head);
        // The lines of a body, or of the problem of the totals.
        let mut inner: Option<(&str, String)> = None;
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            let fail = |message: String| ProblemError { line: n + 1, message };
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            if let (Some((kind, lines)), Some(p)) = (&mut inner, &mut problem) {
                let ends = line == if *kind == "body" { "end" } else { "}" };
                if !ends || *kind == "totals" {
                    lines.push_str(line);
                    lines.push('\n');
                }
                if ends {
                    p.inner(kind, lines).map_err(fail)?;
                    inner = None;
                }
                continue;
            }
            match (&mut problem, word) {
                (None, "problem") if rest == "{" => {}
                (Some(_), "body" | "totals") if rest.is_empty() && !closed => inner = Some((word, String::new())),
                (None, "reduce" | "convert" | "region") => problem = Some(started(word, rest).map_err(fail)?),
                (_, "") => {}
                (Some(_), "}") if rest.is_empty() && !closed => closed = true,
                (Some(p), _) if !closed => p.line(word, rest, &mut section).map_err(fail)?,
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
    /// Takes the lines of a body, or of the problem of the totals.
    fn inner(&mut self, kind: &str, lines: &str) -> Result<(), String> {
        let Work::Region(head) = &mut self.work else { return Err(not_expected(kind)) };
        if kind == "totals" {
            if self.totals.is_some() {
                return Err("`totals` is given twice".into());
            }
            let totals: Problem = lines.parse().map_err(|e: ProblemError| e.message)?;
            let values = totals.inputs.iter().take(self.values.len());
            self.values = values.map(|input| input.operand.clone()).collect();
            self.totals = Some(Box::new(totals));
            return Ok(());
        }
        let inputs = std::mem::take(&mut head.inputs);
        *head = Body::parse(lines.trim_end(), inputs, &head.reduced, head.accumulator).map_err(|e| e.to_string())?;
        let values = head.values_of_totals().len();
        self.values = vec![OperandSpan { dtype: DType::U8, len: 0 }; values];
        Ok(())
    }

    /// Takes a line that begins with `word`.
    fn line(&mut self, word: &str, rest: &str, last: &mut Section) -> Result<(), String> {
        if matches!(word, "in" | "with" | "out" | "takes" | "only") && *last != Section::Head {
            return Err(format!("`{word}` stands before the boxes"));
        }
        match word {
            "in" | "with" => {
                within("inputs", self.inputs.len(), MAX_OPERANDS)?;
                let (rest, reach) = match (&self.work, rest.rsplit_once(' ')) {
                    (Work::Region(_), Some((rest, reach))) => (rest, Some(reach_of(reach)?)),
                    _ => (rest, None),
                };
                let operand = operand(rest)?;
                if let (Work::Region(body), Some(reach)) = (&mut self.work, reach) {
                    let name = format!("x{}", self.inputs.len());
                    body.inputs.push(BodyInput { name, dtype: operand.dtype, reach });
                }
                self.inputs.push(Input { operand, mapped: word == "in" });
                return Ok(());
            }
            "index" => {
                within("indices", self.indices.len(), MAX_OPERANDS)?;
                self.indices.push(number(rest)?);
                return Ok(());
            }
            "out" => {
                within("outputs", self.outputs.len(), MAX_OPERANDS)?;
                self.outputs.push(operand(rest)?);
                return Ok(());
            }
            "takes" if rest == "position" => {
                self.takes_position = true;
                return Ok(());
            }
            "only" => {
                self.only = rest.split(", ").map(number).collect::<Result<_, _>>()?;
                return Ok(());
            }
            "slices" | "elements" | "positions" => {
                *last = match word {
                    "slices" => Section::Slices,
                    "elements" => Section::Elements,
                    _ => Section::Positions,
                };
                let start = rest.strip_prefix("at ").ok_or_else(|| format!("boxes are written `{word} at 0 -> 0`"))?;
                let region = IndexBox { start: self.place(start, *last)?, dims: vec![] };
                if *last == Section::Elements && self.walks.is_empty() {
                    self.walks.push(SliceWalk::default());
                }
                let boxes = self.boxes(*last).expect("one of the three");
                within("boxes", boxes.len(), MAX_BOXES as usize)?;
                boxes.push(region);
                return Ok(());
            }
            "walk" => {
                within("walks", self.walks.len(), MAX_DEFINITIONS)?;
                let list = rest.strip_prefix("of ").ok_or("a walk is written `walk of 0, 1`")?;
                let reductions = list.split(',').map(number).collect::<Result<Vec<usize>, _>>()?;
                self.walks.push(SliceWalk { reductions, ..SliceWalk::default() });
                return Ok(());
            }
            "beside" | "gathered" => {
                let walk = self.walks.last_mut().ok_or_else(|| format!("`{word}` stands after elements"))?;
                match word {
                    "beside" if walk.beside == 1 => walk.beside = number(rest)?,
                    "gathered" if walk.gathered.is_none() => {
                        let extents = rest.split(',').map(number::<u64>).collect::<Result<Vec<_>, _>>()?;
                        walk.gathered = Some(extents.into_iter().filter(|&extent| extent != 1).collect());
                    }
                    _ => return Err(format!("`{word}` is given twice")),
                }
                return Ok(());
            }
            "padding" => {
                *last = Section::Padding;
                let shape = "padding is written `padding of x1 at 17`";
                let (name, start) = rest.strip_prefix("of x").and_then(|r| r.split_once(" at ")).ok_or(shape)?;
                let output = number::<usize>(name)?.checked_sub(self.inputs.len()).ok_or(shape)?;
                self.padding.push(Padding { output, start: number(start)?, dims: vec![] });
                return Ok(());
            }
            "dim" => return self.dim(rest, *last),
            _ => {}
        }
        let Work::Reduce(recipe) = &mut self.work else { return Err(not_expected(word)) };
        let expression = || -> Result<Expression, String> {
            let text = rest.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
            text.ok_or("an expression stands between quotes")?.parse().map_err(|e| format!("{e}"))
        };
        match word {
            "map" if recipe.map.is_none() => recipe.map = Some(expression()?),
            "then" => {
                within("expressions", recipe.then.len(), MAX_OPERANDS)?;
                recipe.then.push(expression()?);
            }
            "apply" if recipe.apply.is_none() => recipe.apply = Some(expression()?),
            _ => return Err(not_expected(word)),
        }
        Ok(())
    }

    fn boxes(&mut self, section: Section) -> Option<&mut Vec<IndexBox>> {
        match section {
            Section::Slices => Some(&mut self.slices),
            Section::Elements => self.walks.last_mut().map(|walk| &mut walk.elements),
            Section::Positions => Some(&mut self.positions),
            _ => None,
        }
    }

    /// `72: 240, 1 -> 1`, the extent and the stride in each operand.
    fn dim(&mut self, text: &str, section: Section) -> Result<(), String> {
        let (extent, strides) = text.split_once(": ").ok_or("a dim is written `dim 72: 240 -> 1`")?;
        let extent = number(extent)?;
        if section == Section::Padding {
            let dims = self.padding.last_mut().map(|p| &mut p.dims);
            dims.expect("the line before").push((extent, number(strides)?));
            return Ok(());
        }
        let dim = Dim { extent, stride: self.place(strides, section)? };
        let boxes = self.boxes(section).and_then(|boxes| boxes.last_mut());
        boxes.ok_or("a dim stands under a box")?.dims.push(dim);
        Ok(())
    }

    /// `240, 1 -> 1 position 3`; boxes of elements have no outputs.
    fn place(&self, text: &str, section: Section) -> Result<Offsets, String> {
        let list = |text: &str| text.split(',').map(number::<i64>).collect::<Result<Distances, _>>();
        let (text, position) = match text.split_once(" position ") {
            Some((text, position)) => (text, number(position)?),
            None => (text, 0),
        };
        let (inputs, outputs) = match (text.split_once(" -> "), section) {
            (None, Section::Elements) => (list(text)?, Distances::from_elem(0, self.outputs.len() + self.values.len())),
            (Some((inputs, outputs)), Section::Slices | Section::Positions) => (list(inputs)?, list(outputs)?),
            _ => return Err("slices and positions have an arrow before the outputs, elements have none".into()),
        };
        let operands = (self.inputs.len() + self.indices.len(), self.outputs.len() + self.values.len());
        if (inputs.len(), outputs.len()) != operands {
            return Err("there is one number for each operand".into());
        }
        Ok(Offsets { inputs, outputs, position })
    }
}

/// The section of the last lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Work and operands.
    Head,
    Slices,
    Elements,
    Positions,
    Padding,
}

/// Returns an error if `given` has reached `limit`.
fn within(what: &str, given: usize, limit: usize) -> Result<(), String> {
    if given < limit { Ok(()) } else { Err(format!("there are more than {limit} {what}")) }
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
    if kind == "region" {
        return region(text);
    }
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
            within("ops", calls.len() - 1, MAX_OPERANDS)?;
            let accumulator = dtype(accumulator)?;
            Work::Reduce(Recipe { calls, map: None, then: vec![], apply: None, accumulator, saturate, half_even })
        }
    };
    Ok(empty(work, count))
}

/// `f32 over 240 kept reduced` after `region in`.
fn region(text: &str) -> Result<Problem, String> {
    let shape = "a region is written `region in f32 over 240`";
    let (accumulator, tail) = text.strip_prefix("in ").and_then(|t| t.split_once(" over ")).ok_or(shape)?;
    let mut words = tail.split(' ');
    let count = number(words.next().unwrap_or(""))?;
    let axis = |word: &str| match word {
        "reduced" => Ok(true),
        "kept" => Ok(false),
        _ => Err(format!("`{}` is neither kept nor reduced", shorten(word))),
    };
    let reduced = words.map(axis).collect::<Result<Vec<bool>, String>>()?;
    let accumulator = dtype(accumulator)?;
    let body = Body { inputs: vec![], reduced, definitions: vec![], outputs: vec![], accumulator };
    Ok(empty(Work::Region(body), count))
}

fn empty(work: Work, count: u64) -> Problem {
    Problem {
        work,
        count,
        inputs: vec![],
        outputs: vec![],
        indices: vec![],
        values: vec![],
        totals: None,
        takes_position: false,
        only: vec![],
        slices: vec![],
        walks: vec![],
        positions: vec![],
        padding: vec![],
    }
}

const REACHES: [(Reach, &str); 3] = [(Reach::Element, "element"), (Reach::Slice, "slice"), (Reach::Scalar, "scalar")];

fn reach_word(reach: Reach) -> &'static str {
    REACHES.iter().find(|(known, _)| *known == reach).map_or("total", |(_, word)| word)
}

fn reach_of(word: &str) -> Result<Reach, String> {
    let known = REACHES.iter().find(|(_, known)| *known == word).map(|(reach, _)| *reach);
    known.ok_or_else(|| format!("`{}` is neither element, slice nor scalar", shorten(word)))
}

/// `x0: f32[17280]`.
fn operand(text: &str) -> Result<OperandSpan, String> {
    let shape = "an operand is written `x0: f32[17280]`";
    let (_, array) = text.split_once(": ").ok_or(shape)?;
    let (name, len) = array.strip_suffix(']').and_then(|a| a.split_once('[')).ok_or(shape)?;
    Ok(OperandSpan { dtype: dtype(name)?, len: number(len)? })
}
