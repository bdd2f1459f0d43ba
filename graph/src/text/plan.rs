//! The text of plans: its buffers, then its steps, then its outputs.

use super::lexer::{Token, unquoted};
use super::parse::{Parser, Result, Word};
use super::print::{Name, Shown, Text, constant};
use crate::error::{GraphError, cut};
use crate::plan::{Buffer, Plan, PlanKernel, PlanOpaque, PlanOutput, PlanStep};
use crate::shape::{elements, shown};
use cranefold_spec::Spec;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan {{")?;
        let inputs: FxHashSet<usize> = self.inputs.iter().copied().collect();
        for (number, buffer) in self.buffers.iter().enumerate() {
            write!(f, "  {}: {}{} = ", Name(&buffer.name), buffer.dtype, shown(&buffer.shape))?;
            match &buffer.data {
                Some(data) => {
                    f.write_str("const")?;
                    constant(f, data)?;
                }
                None if inputs.contains(&number) => f.write_str("input")?,
                None => f.write_str("buffer")?,
            }
            writeln!(f)?;
        }
        let names = |all: &[usize]| {
            let names: Vec<String> = all.iter().map(|&b| Name(&self.buffers[b].name).to_string()).collect();
            names.join(", ")
        };
        let texts = |all: &[String]| {
            let texts: Vec<String> = all.iter().map(|text| Text(text).to_string()).collect();
            format!("[{}]", texts.join(", "))
        };
        for step in &self.steps {
            match step {
                PlanStep::Kernel(kernel) => {
                    let PlanKernel { spec, inputs, outputs, nodes, bytes, bytes_before, notes } = kernel;
                    write!(f, "  {} = kernel({}) {}", names(outputs), names(inputs), Text(&spec.to_string()))?;
                    writeln!(f, " bytes={bytes} before={bytes_before} nodes={} notes={}", texts(nodes), texts(notes))?;
                }
                PlanStep::Opaque(opaque) => {
                    let PlanOpaque { name, op, attributes, inputs, outputs, why } = opaque;
                    write!(f, "  {} = opaque({})", names(outputs), names(inputs))?;
                    write!(f, " name={} op={} why={}", Text(name), Text(op), Text(why))?;
                    attributes.iter().try_for_each(|(name, value)| write!(f, " {}={}", Name(name), Shown(value)))?;
                    writeln!(f)?;
                }
            }
        }
        f.write_str("  return ")?;
        for (number, output) in self.outputs.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            let buffer = &self.buffers[output.buffer].name;
            write!(f, "{comma}{} = {} {}", Name(&output.name), Name(buffer), shown(&output.shape))?;
        }
        writeln!(f, "\n}}")
    }
}

/// # Errors
/// If the text departs from the grammar, a kernel does not fit its buffers, or a step reads what no step before it writes.
impl FromStr for Plan {
    type Err = GraphError;

    fn from_str(text: &str) -> Result<Plan> {
        let extents = BTreeMap::new();
        let parser = Parser::new(text, "bytes of a plan's text", &extents)?;
        let mut reader =
            Reader { parser, plan: Plan::default(), of: FxHashMap::default(), ready: FxHashSet::default() };
        reader.plan()?;
        Ok(reader.plan)
    }
}

struct Reader<'a> {
    parser: Parser<'a>,
    plan: Plan,
    /// The buffers by their names.
    of: FxHashMap<String, usize>,
    /// The buffers that hold a value.
    ready: FxHashSet<usize>,
}

impl Reader<'_> {
    fn plan(&mut self) -> Result<()> {
        self.lines()?;
        match self.parser.lexer.take()? {
            Token::Word("plan") => {}
            _ => return Err(self.parser.lexer.error_at(0, "a plan begins with `plan {`")),
        }
        self.parser.expect('{')?;
        loop {
            self.lines()?;
            if self.parser.lexer.next.0 == Token::Word("return") {
                break;
            }
            self.line()?;
        }
        self.parser.lexer.take()?;
        loop {
            let name = self.parser.name()?;
            self.parser.expect('=')?;
            let at = self.parser.lexer.next.1;
            let buffer = self.buffer()?;
            self.is_ready(buffer, at)?;
            let shape = self.parser.list()?;
            let shape: Vec<u64> = self.parser.numbers(at, &shape)?;
            if elements(&shape) != elements(&self.plan.buffers[buffer].shape) {
                let own = shown(&self.plan.buffers[buffer].shape);
                return Err(self.error(at, format!("a buffer of shape {own} is no output of shape {}", shown(&shape))));
            }
            self.plan.outputs.push(PlanOutput { name, buffer, shape });
            if !self.parser.lexer.eat(',')? {
                break;
            }
        }
        self.lines()?;
        self.parser.expect('}')?;
        self.lines()?;
        match self.parser.lexer.next.0 {
            Token::End => Ok(()),
            _ => Err(self.parser.lexer.error("the text goes on after the plan")),
        }
    }

    fn lines(&mut self) -> Result<()> {
        while self.parser.lexer.next.0 == Token::Line {
            self.parser.lexer.take()?;
        }
        Ok(())
    }

    fn error(&self, at: usize, reason: impl Into<String>) -> GraphError {
        self.parser.lexer.error_at(at, reason)
    }

    /// A buffer that is declared before.
    fn buffer(&mut self) -> Result<usize> {
        let at = self.parser.lexer.next.1;
        let name = self.parser.name()?;
        let unknown = || self.error(at, format!("there is no buffer `{}` before this line", cut(&name)));
        self.of.get(&name).copied().ok_or_else(unknown)
    }

    /// Refuses a buffer with elements that nothing wrote.
    fn is_ready(&self, buffer: usize, at: usize) -> Result<()> {
        let name = || cut(&self.plan.buffers[buffer].name);
        let holds_all = self.ready.contains(&buffer) || self.plan.buffers[buffer].bytes() == 0;
        holds_all.then_some(()).ok_or_else(|| self.error(at, format!("nothing writes `{}`", name())))
    }

    /// `NAME: TYPE = input`, or `NAME, … = kernel(NAME, …) "SPEC" WORDS`.
    fn line(&mut self) -> Result<()> {
        let at = self.parser.lexer.next.1;
        let name = self.parser.name()?;
        if self.parser.lexer.eat(':')? {
            self.declared(name, at)?;
        } else {
            let known = |reader: &Self, name: &str| {
                let unknown = || reader.error(at, format!("there is no buffer `{}` before this line", cut(name)));
                reader.of.get(name).copied().ok_or_else(unknown)
            };
            let mut outputs = vec![known(self, &name)?];
            while self.parser.lexer.eat(',')? {
                outputs.push(self.buffer()?);
            }
            self.parser.expect('=')?;
            self.step(outputs, at)?;
        }
        match self.parser.lexer.next.0 {
            Token::Line => self.parser.lexer.take().map(|_| ()),
            _ => Err(self.parser.lexer.error("the end of the line is expected")),
        }
    }

    fn declared(&mut self, name: String, at: usize) -> Result<()> {
        let (dtype, shape) = self.parser.dtype_and_shape()?;
        let count = elements(&shape).map_err(|reason| self.error(at, reason))?;
        if count.checked_mul(dtype.bytes()).is_none() {
            return Err(self.error(at, "the buffer is too large"));
        }
        self.parser.expect('=')?;
        let number = self.plan.buffers.len();
        let data = match self.parser.lexer.take()? {
            Token::Word("input") => {
                self.plan.inputs.push(number);
                self.ready.insert(number);
                None
            }
            Token::Word("const") => {
                self.ready.insert(number);
                Some(self.parser.constant((dtype, shape.clone()), at)?)
            }
            Token::Word("buffer") => None,
            _ => return Err(self.error(at, "a buffer is `input`, `const` or `buffer`")),
        };
        if self.of.insert(name.clone(), number).is_some() {
            return Err(self.error(at, format!("another buffer has the name `{}`", cut(&name))));
        }
        self.plan.buffers.push(Buffer { name, dtype, shape, data });
        Ok(())
    }

    fn step(&mut self, outputs: Vec<usize>, at: usize) -> Result<()> {
        let kind = self.parser.lexer.take()?;
        let mut inputs = vec![];
        self.parser.expect('(')?;
        while !self.parser.lexer.eat(')')? {
            let place = self.parser.lexer.next.1;
            let buffer = self.buffer()?;
            self.is_ready(buffer, place)?;
            inputs.push(buffer);
            if !self.parser.lexer.eat(',')? {
                self.parser.expect(')')?;
                break;
            }
        }
        for (number, &output) in outputs.iter().enumerate() {
            let buffer = &self.plan.buffers[output];
            if buffer.data.is_some() || self.plan.inputs.contains(&output) {
                return Err(self.error(at, format!("`{}` is no buffer that a step may write", cut(&buffer.name))));
            }
            if inputs.contains(&output) || outputs[..number].contains(&output) {
                return Err(self.error(at, format!("one step uses `{}` twice", cut(&buffer.name))));
            }
        }
        let step = match kind {
            Token::Word("kernel") => PlanStep::Kernel(self.kernel(inputs, outputs.clone(), at)?),
            Token::Word("opaque") => PlanStep::Opaque(self.opaque(inputs, outputs.clone(), at)?),
            _ => return Err(self.error(at, "a step is `kernel` or `opaque`")),
        };
        self.ready.extend(outputs);
        self.plan.steps.push(step);
        Ok(())
    }

    fn quoted(&mut self) -> Result<String> {
        let at = self.parser.lexer.next.1;
        match self.parser.lexer.take()? {
            Token::Quoted(text) => unquoted(text).ok_or_else(|| self.error(at, "a wrong escape")),
            _ => Err(self.error(at, "a text in quotes is expected")),
        }
    }

    fn word(&mut self, word: &str) -> Result<()> {
        let at = self.parser.lexer.next.1;
        match self.parser.lexer.take()? {
            Token::Word(found) if found == word => self.parser.expect('='),
            _ => Err(self.error(at, format!("`{word}=` is expected"))),
        }
    }

    fn number(&mut self, word: &str) -> Result<u64> {
        self.word(word)?;
        let at = self.parser.lexer.next.1;
        let item = self.parser.item()?;
        Ok(self.parser.numbers(at, &[item])?[0])
    }

    fn texts(&mut self, word: &str) -> Result<Vec<String>> {
        self.word(word)?;
        self.parser.expect('[')?;
        let mut texts = vec![];
        while !self.parser.lexer.eat(']')? {
            texts.push(self.quoted()?);
            if !self.parser.lexer.eat(',')? {
                self.parser.expect(']')?;
                break;
            }
        }
        Ok(texts)
    }

    fn kernel(&mut self, inputs: Vec<usize>, outputs: Vec<usize>, at: usize) -> Result<PlanKernel> {
        let place = self.parser.lexer.next.1;
        let text = self.quoted()?;
        let spec: Spec = text.parse().map_err(|error| self.error(place, format!("{error}")))?;
        for (kind, operands, buffers) in [("inputs", spec.inputs(), &inputs), ("outputs", spec.outputs(), &outputs)] {
            if operands.len() != buffers.len() {
                let (given, needed) = (buffers.len(), operands.len());
                return Err(self.error(at, format!("{given} {kind} for a kernel with {needed}")));
            }
            for (operand, &number) in operands.iter().zip(buffers) {
                let buffer = &self.plan.buffers[number];
                if operand.dtype() != buffer.dtype || operand.span_bytes() > buffer.bytes() {
                    let (dtype, bytes, name) = (operand.dtype(), operand.span_bytes(), cut(&buffer.name));
                    let own = format!("{}, {} bytes", buffer.dtype, buffer.bytes());
                    let reason = format!("the kernel takes {bytes} bytes of {dtype}, and `{name}` has {own}");
                    return Err(self.error(at, reason));
                }
            }
        }
        if (0..outputs.len()).any(|output| spec.reads_old(output)) {
            return Err(self.error(place, "a kernel of a plan reads no elements that its outputs held before"));
        }
        let (bytes, bytes_before) = (self.number("bytes")?, self.number("before")?);
        let (nodes, notes) = (self.texts("nodes")?, self.texts("notes")?);
        Ok(PlanKernel { spec: Arc::new(spec), inputs, outputs, nodes, bytes, bytes_before, notes })
    }

    fn opaque(&mut self, inputs: Vec<usize>, outputs: Vec<usize>, at: usize) -> Result<PlanOpaque> {
        let mut texts = vec![];
        for word in ["name", "op", "why"] {
            self.word(word)?;
            texts.push(self.quoted()?);
        }
        let words: Vec<(String, Word)> = self.parser.words()?;
        let attributes = self.parser.attributes(at, words.into_iter())?;
        let [name, op, why] = <[String; 3]>::try_from(texts).unwrap_or_default();
        Ok(PlanOpaque { name, op, attributes, inputs, outputs, why })
    }
}
