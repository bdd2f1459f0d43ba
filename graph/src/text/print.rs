//! The printer of graphs.

use crate::data::Data;
use crate::graph::{Graph, Node};
use crate::op::{Attribute, Op};
use crate::shape::shown;
use std::fmt;

/// The most elements of a constant that are written as numbers; others are written as bytes.
const NUMBERS: usize = 64;

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "graph {{")?;
        for node in &self.nodes {
            f.write_str("  ")?;
            self.node(f, node)?;
            writeln!(f)?;
        }
        f.write_str("  return ")?;
        for (i, output) in self.outputs.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            let name = &self.value(output.value).name;
            match *name == output.name {
                true => write!(f, "{comma}{}", Name(name))?,
                false => write!(f, "{comma}{} = {}", Name(&output.name), Name(name))?,
            }
        }
        writeln!(f, "\n}}")
    }
}

impl Graph {
    fn node(&self, f: &mut fmt::Formatter<'_>, node: &Node) -> fmt::Result {
        for (i, &id) in node.outputs.iter().enumerate() {
            let (comma, value) = (if i > 0 { ", " } else { "" }, self.value(id));
            write!(f, "{comma}{}: {}{}", Name(&value.name), value.dtype, shown(&value.shape))?;
        }
        write!(f, " = {}", node.op.word())?;
        if !node.inputs.is_empty() {
            let names: Vec<String> = node.inputs.iter().map(|&id| Name(&self.value(id).name).to_string()).collect();
            write!(f, "({})", names.join(", "))?;
        }
        words(f, &node.op)
    }
}

/// The words of an operation after its inputs.
fn words(f: &mut fmt::Formatter<'_>, op: &Op) -> fmt::Result {
    let all = |f: &mut fmt::Formatter<'_>, axes: &[usize]| write!(f, " axes={}", list(axes));
    match op {
        Op::Input | Op::Reshape(_) | Op::Broadcast(_) => Ok(()),
        Op::Constant(data) => constant(f, data),
        Op::Map(formula) => write!(f, " {}", Text(&formula.to_string())),
        Op::Cast { saturate, .. } => f.write_str(if *saturate { " saturate" } else { "" }),
        Op::Transpose(perm) => write!(f, " perm={}", list(perm)),
        Op::Slice(ranges) => {
            let (start, step): (Vec<u64>, Vec<i64>) = ranges.iter().map(|range| (range.start, range.step)).unzip();
            write!(f, " start={} step={}", list(&start), list(&step))
        }
        Op::Concat(axis) | Op::Pick(axis) | Op::Position { axis, .. } => write!(f, " axis={axis}"),
        Op::Reduce { call, axes, keep_dims } => {
            params(f, call)?;
            all(f, axes)?;
            f.write_str(if *keep_dims { " keep_dims" } else { "" })
        }
        Op::Normalize { call, axes } => {
            params(f, call)?;
            all(f, axes)
        }
        Op::Composite { row, axes, params } => {
            for (param, value) in row.params.iter().zip(params) {
                if let Some(value) = value {
                    write!(f, " {}={value:?}", param.name)?;
                }
            }
            if row.takes_axes { all(f, axes) } else { Ok(()) }
        }
        Op::Opaque { op, attributes } => {
            write!(f, " op={}", Text(op))?;
            attributes.iter().try_for_each(|(name, value)| write!(f, " {}={}", Name(name), Shown(value)))
        }
    }
}

fn params(f: &mut fmt::Formatter<'_>, call: &cranefold_ir::ops::OpCall) -> fmt::Result {
    let Some(row) = call.as_row() else { return Ok(()) };
    row.params.iter().zip(call.params()).try_for_each(|(param, value)| write!(f, " {}={value:?}", param.name))
}

pub(super) fn constant(f: &mut fmt::Formatter<'_>, data: &Data) -> fmt::Result {
    if data.len() <= NUMBERS {
        let numbers: Vec<String> = (0..data.len()).map(|i| data.at(i).to_string()).collect();
        return write!(f, " [{}]", numbers.join(", "));
    }
    if let Some(value) = data.uniform() {
        return write!(f, " splat {value}");
    }
    f.write_str(" hex \"")?;
    // Little-endian elements, so that a text means the same on every machine.
    for element in data.bytes().chunks_exact(data.dtype().bytes() as usize) {
        let hex = |f: &mut fmt::Formatter<'_>, byte: &u8| write!(f, "{byte:02x}");
        match cfg!(target_endian = "big") {
            true => element.iter().rev().try_for_each(|byte| hex(f, byte))?,
            false => element.iter().try_for_each(|byte| hex(f, byte))?,
        }
    }
    f.write_str("\"")
}

fn list<T: fmt::Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    format!("[{}]", items.join(","))
}

/// A name, in quotes where it is no word.
pub(super) struct Name<'a>(pub(super) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match is_word(self.0) && self.0 != "return" {
            true => f.write_str(self.0),
            false => Text(self.0).fmt(f),
        }
    }
}

/// Returns true for a letter or `_`, then letters, digits, `_` and `.`.
pub(super) fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
}

/// A text in quotes.
pub(super) struct Text<'a>(pub(super) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}

/// An attribute's value.
pub(super) struct Shown<'a>(pub(super) &'a Attribute);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Attribute::Int(value) => write!(f, "{value}"),
            Attribute::Float(value) => write!(f, "{value:?}"),
            Attribute::Text(value) => Text(value).fmt(f),
            Attribute::Ints(values) => f.write_str(&list(values)),
            Attribute::Floats(values) => {
                let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
                write!(f, "floats [{}]", values.join(","))
            }
        }
    }
}
