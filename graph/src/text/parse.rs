//! The parser of graphs: each node is built as a caller would build it, so that a text is checked as a call is.

use super::lexer::{Lexer, Token, unquoted};
use crate::build::Builder;
use crate::data::Data;
use crate::dims::check_bound;
use crate::error::{GraphError, cut};
use crate::graph::{Graph, ValueId};
use crate::op::{Attribute, CompositeRow, Op, Range};
use crate::shape::{elements, shown};
use cranefold_ir::ops::{OpCall, find};
use cranefold_ir::{DType, Scalar};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// The most bytes of a graph's text.
pub const MAX_TEXT: usize = 1 << 28;

/// # Errors
/// If the text departs from the grammar, or a node breaks a rule.
impl FromStr for Graph {
    type Err = GraphError;

    fn from_str(text: &str) -> Result<Graph> {
        Graph::bound(text, &BTreeMap::new())
    }
}

impl Graph {
    /// The graph of a text whose symbolic dims, such as `N` in `f32[N,768]`, have these extents.
    ///
    /// ```
    /// use cranefold_graph::Graph;
    ///
    /// let text = "graph { x: f32[N,768] = input; m = mean(x) axes=[1]; return m }";
    /// let graph = Graph::bound(text, &[("N".to_string(), 8)].into())?;
    /// assert_eq!(graph.value(graph.outputs()[0].value).shape, [8]);
    /// let error = text.parse::<Graph>().expect_err("no number");
    /// assert_eq!(error.to_string(), "line 1, column 15: the extent `N` is not static: bind it to a number");
    /// # Ok::<(), cranefold_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// As of [`FromStr`]; also if a dim is not bound, or one is bound that the text does not have.
    pub fn bound(text: &str, dims: &BTreeMap<String, u64>) -> Result<Graph> {
        Parser::new(text, "bytes of a graph's text", dims)?.graph()
    }
}

pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    builder: Builder,
    /// The extents of symbolic dims.
    dims: &'a BTreeMap<String, u64>,
    /// The symbolic dims of the text.
    symbolic: BTreeSet<String>,
}

pub(super) type Result<T> = std::result::Result<T, GraphError>;

/// The name of a result, and its type if it is written.
type Declared = (String, Option<(DType, Vec<u64>)>);

/// The value of a word.
pub(super) enum Word {
    Flag,
    Number(String),
    Quoted(String),
    List(Vec<String>),
    Floats(Vec<String>),
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, what: &'static str, dims: &'a BTreeMap<String, u64>) -> Result<Parser<'a>> {
        if text.len() > MAX_TEXT {
            return Err(GraphError::Limit { what, given: text.len() as u64, limit: MAX_TEXT as u64 });
        }
        Ok(Parser { lexer: Lexer::new(text)?, builder: Builder::new(), dims, symbolic: BTreeSet::new() })
    }

    fn graph(mut self) -> Result<Graph> {
        while self.lexer.next.0 == Token::Line {
            self.lexer.take()?;
        }
        match self.lexer.take()? {
            Token::Word("graph") => {}
            _ => return Err(self.lexer.error_at(0, "a graph begins with `graph {`")),
        }
        self.expect('{')?;
        loop {
            match &self.lexer.next.0 {
                Token::Line => {
                    self.lexer.take()?;
                }
                Token::Word("return") => break,
                Token::Sign('}') | Token::End => {
                    return Err(self.lexer.error("the graph ends without its outputs: `return NAME, …`"));
                }
                _ => self.node()?,
            }
        }
        self.lexer.take()?;
        loop {
            let at = self.lexer.next.1;
            let first = self.name()?;
            let (name, value) = if self.lexer.eat('=')? { (first, self.name()?) } else { (String::new(), first) };
            let value = self.value(&value, at)?;
            self.builder.output(&name, value)?;
            if !self.lexer.eat(',')? {
                break;
            }
        }
        while self.lexer.next.0 == Token::Line {
            self.lexer.take()?;
        }
        self.expect('}')?;
        while self.lexer.next.0 == Token::Line {
            self.lexer.take()?;
        }
        match self.lexer.next.0 {
            Token::End => {
                check_bound(self.dims, &self.symbolic)?;
                self.builder.finish()
            }
            _ => Err(self.lexer.error("the text goes on after the graph")),
        }
    }

    pub(super) fn expect(&mut self, sign: char) -> Result<()> {
        match self.lexer.eat(sign)? {
            true => Ok(()),
            false => Err(self.lexer.error(format!("`{sign}` is expected"))),
        }
    }

    pub(super) fn name(&mut self) -> Result<String> {
        let at = self.lexer.next.1;
        match self.lexer.take()? {
            Token::Word(word) => Ok(word.to_string()),
            Token::Quoted(text) => match unquoted(text) {
                Some(name) if !name.is_empty() => Ok(name),
                _ => Err(self.lexer.error_at(at, "this is no name")),
            },
            _ => Err(self.lexer.error_at(at, "a name is expected")),
        }
    }

    fn value(&self, name: &str, at: usize) -> Result<ValueId> {
        let unknown = || self.lexer.error_at(at, format!("there is no value `{}` before this line", cut(name)));
        self.builder.find(name).ok_or_else(unknown)
    }

    /// `NAME: TYPE, … = OP(INPUTS) WORDS`
    fn node(&mut self) -> Result<()> {
        let mut results: Vec<Declared> = vec![];
        loop {
            let name = self.name()?;
            let declared = if self.lexer.eat(':')? { Some(self.dtype_and_shape()?) } else { None };
            results.push((name, declared));
            if !self.lexer.eat(',')? {
                break;
            }
        }
        self.expect('=')?;
        let at = self.lexer.next.1;
        let Token::Word(op) = self.lexer.take()? else { return Err(self.lexer.error_at(at, "an op is expected")) };
        let mut inputs = vec![];
        if self.lexer.eat('(')? && !self.lexer.eat(')')? {
            loop {
                let place = self.lexer.next.1;
                let name = self.name()?;
                inputs.push(self.value(&name, place)?);
                if !self.lexer.eat(',')? {
                    break;
                }
            }
            self.expect(')')?;
        }
        match op {
            "input" => {
                let Some((dtype, shape)) = results[0].1.clone().filter(|_| results.len() == 1 && inputs.is_empty())
                else {
                    return Err(self.lexer.error_at(at, "an input is one value with a type"));
                };
                self.builder.input(&results[0].0, dtype, &shape)?;
            }
            "opaque" => self.opaque(at, &results, &inputs)?,
            _ => {
                let op = self.operation(op, at, &results, &inputs)?;
                self.built(at, op, &results, &inputs)?;
            }
        }
        match self.lexer.next.0 {
            Token::Line => self.lexer.take().map(|_| ()),
            _ => Err(self.lexer.error("the end of the line is expected")),
        }
    }

    /// Builds the node, whose inferred types must be those that are written.
    fn built(&mut self, at: usize, op: Op, results: &[Declared], inputs: &[ValueId]) -> Result<()> {
        let names: Vec<&str> = results.iter().map(|(name, _)| name.as_str()).collect();
        let asked = match op {
            Op::Map(_) | Op::Reduce { .. } | Op::Normalize { .. } => results[0].1.as_ref().map(|(dtype, _)| *dtype),
            _ => None,
        };
        let values = self.builder.add_all(&names, op, inputs, asked)?;
        for ((name, declared), value) in results.iter().zip(values) {
            let own = (self.builder.dtype(value), self.builder.shape(value));
            if let Some((dtype, shape)) = declared
                && (*dtype, shape.as_slice()) != own
            {
                let (written, own) = (format!("{dtype}{}", shown(shape)), format!("{}{}", own.0, shown(own.1)));
                return Err(self.lexer.error_at(at, format!("`{}` is {own}, not {written}", cut(name))));
            }
        }
        Ok(())
    }

    pub(super) fn dtype_and_shape(&mut self) -> Result<(DType, Vec<u64>)> {
        let at = self.lexer.next.1;
        let Token::Word(dtype) = self.lexer.take()? else { return Err(self.lexer.error_at(at, "a dtype is expected")) };
        let dtype =
            dtype.parse().map_err(|error: cranefold_ir::UnknownDType| self.lexer.error_at(at, error.to_string()))?;
        let at = self.lexer.next.1;
        let shape = self.list()?;
        let mut extents = vec![];
        for item in shape {
            let is_name = item.starts_with(|c: char| c.is_alphabetic() || c == '_');
            extents.push(match self.dims.get(&item) {
                Some(&extent) if is_name => extent,
                None if is_name => {
                    let place = match self.lexer.error_at(at, "") {
                        GraphError::Text { line, column, .. } => format!("line {line}, column {column}"),
                        _ => String::new(),
                    };
                    return Err(GraphError::Unbound { place, dim: cut(&item) });
                }
                _ => self.numbers(at, std::slice::from_ref(&item))?[0],
            });
            if is_name {
                self.symbolic.insert(item);
            }
        }
        Ok((dtype, extents))
    }

    /// `[ITEM, …]` of numbers and words, which are read later.
    pub(super) fn list(&mut self) -> Result<Vec<String>> {
        self.expect('[')?;
        let mut items = vec![];
        if self.lexer.eat(']')? {
            return Ok(items);
        }
        loop {
            items.push(self.item()?);
            if !self.lexer.eat(',')? {
                break;
            }
        }
        self.expect(']')?;
        Ok(items)
    }

    /// A number, `inf`, `true` and the like, or `bits(0x…)`.
    pub(super) fn item(&mut self) -> Result<String> {
        let at = self.lexer.next.1;
        match self.lexer.take()? {
            Token::Number("-") => match self.lexer.take()? {
                Token::Word(word) => Ok(format!("-{word}")),
                _ => Err(self.lexer.error_at(at, "a number is expected")),
            },
            Token::Number(number) => Ok(number.to_string()),
            Token::Word("bits") => {
                self.expect('(')?;
                let Token::Number(number) = self.lexer.take()? else {
                    return Err(self.lexer.error_at(at, "a number is expected"));
                };
                self.expect(')')?;
                Ok(format!("bits({number})"))
            }
            Token::Word(word) => Ok(word.to_string()),
            _ => Err(self.lexer.error_at(at, "a number is expected")),
        }
    }

    pub(super) fn numbers<T: FromStr>(&self, at: usize, items: &[String]) -> Result<Vec<T>> {
        let number = |item: &String| {
            item.parse().map_err(|_| self.lexer.error_at(at, format!("`{}` is no such number", cut(item))))
        };
        items.iter().map(number).collect()
    }

    /// The words of an operation up to the end of the line.
    pub(super) fn words(&mut self) -> Result<Vec<(String, Word)>> {
        let mut words: Vec<(String, Word)> = vec![];
        while !matches!(self.lexer.next.0, Token::Line | Token::End) {
            let at = self.lexer.next.1;
            let name = self.name()?;
            if words.len() >= MAX_WORDS {
                return Err(self.lexer.error_at(at, format!("more than {MAX_WORDS} words")));
            }
            let value = match self.lexer.eat('=')? {
                false => Word::Flag,
                true => match self.lexer.next.0 {
                    Token::Sign('[') => Word::List(self.list()?),
                    Token::Word("floats") => {
                        self.lexer.take()?;
                        Word::Floats(self.list()?)
                    }
                    Token::Quoted(text) => {
                        let text = unquoted(text).ok_or_else(|| self.lexer.error("a wrong escape"))?;
                        self.lexer.take()?;
                        Word::Quoted(text)
                    }
                    _ => Word::Number(self.item()?),
                },
            };
            words.push((name, value));
        }
        Ok(words)
    }

    fn opaque(&mut self, at: usize, results: &[Declared], inputs: &[ValueId]) -> Result<()> {
        let mut words = self.words()?.into_iter();
        let op = match words.next() {
            Some((name, Word::Quoted(op))) if name == "op" => op,
            _ => return Err(self.lexer.error_at(at, "an opaque node begins with `op=\"NAME\"`")),
        };
        let attributes = self.attributes(at, words)?;
        let mut outputs: Vec<(&str, DType, &[u64])> = vec![];
        for (name, declared) in results {
            let missing = || self.lexer.error_at(at, format!("`{}` needs a type", cut(name)));
            let (dtype, shape) = declared.as_ref().ok_or_else(missing)?;
            outputs.push((name, *dtype, shape));
        }
        self.builder.opaque(&op, attributes, inputs, &outputs).map(|_| ())
    }

    /// The attributes of a host's operation.
    pub(super) fn attributes(
        &self,
        at: usize,
        words: impl Iterator<Item = (String, Word)>,
    ) -> Result<Vec<(String, Attribute)>> {
        let mut attributes = vec![];
        for (name, value) in words {
            let value = match value {
                Word::Flag => return Err(self.lexer.error_at(at, format!("`{}` has no value", cut(&name)))),
                Word::Quoted(text) => Attribute::Text(text),
                Word::List(items) => Attribute::Ints(self.numbers(at, &items)?),
                Word::Floats(items) => Attribute::Floats(self.numbers(at, &items)?),
                Word::Number(text) => match text.parse() {
                    Ok(int) => Attribute::Int(int),
                    Err(_) => Attribute::Float(self.numbers(at, &[text])?[0]),
                },
            };
            attributes.push((name, value));
        }
        Ok(attributes)
    }

    /// The operation of a node, from its word and the words after its inputs.
    fn operation(&mut self, word: &str, at: usize, results: &[Declared], inputs: &[ValueId]) -> Result<Op> {
        let declared = results.first().and_then(|(_, declared)| declared.clone());
        let typed = |parser: &Self| {
            declared.clone().ok_or_else(|| parser.lexer.error_at(at, format!("the result of `{word}` needs a type")))
        };
        match word {
            "const" => return self.constant(typed(self)?, at).map(Op::Constant),
            "map" => {
                let Token::Quoted(text) = self.lexer.take()? else {
                    return Err(self.lexer.error_at(at, "a formula in quotes is expected"));
                };
                let text = unquoted(text).ok_or_else(|| self.lexer.error_at(at, "a wrong escape"))?;
                let formula = text.parse().map_err(|e| self.lexer.error_at(at, format!("{e}")))?;
                return Ok(Op::Map(formula));
            }
            _ => {}
        }
        let mut words = Words { words: self.words()?, at };
        let rank = inputs.first().map_or(0, |&x| self.builder.shape(x).len());
        let op = match word {
            "cast" => Op::Cast { to: typed(self)?.0, saturate: words.flag("saturate") },
            "reshape" => Op::Reshape(typed(self)?.1),
            "broadcast" => Op::Broadcast(typed(self)?.1),
            "transpose" => Op::Transpose(words.list(self, "perm")?),
            "slice" => {
                let (start, step) = (words.list(self, "start")?, words.list(self, "step")?);
                let shape = typed(self)?.1;
                if start.len() != shape.len() || step.len() != shape.len() {
                    return Err(self.lexer.error_at(at, "start, step and shape have one length"));
                }
                let ranges = start.into_iter().zip(step).zip(shape);
                Op::Slice(ranges.map(|((start, step), extent)| Range { start, step, extent }).collect())
            }
            "concat" => Op::Concat(words.number(self, "axis")?),
            "pick" => Op::Pick(words.number(self, "axis")?),
            "position" => Op::Position { shape: typed(self)?.1, axis: words.number(self, "axis")? },
            _ => self.named(word, at, rank, &mut words)?,
        };
        match words.words.first() {
            Some((name, _)) => Err(self.lexer.error_at(at, format!("`{word}` has no word `{}`", cut(name)))),
            None => Ok(op),
        }
    }

    /// A reduction, a normalisation or a composite.
    fn named(&self, word: &str, at: usize, rank: usize, words: &mut Words) -> Result<Op> {
        let error = |reason: String| self.lexer.error_at(at, reason);
        let axes = |words: &mut Words| -> Result<Vec<usize>> {
            let axes: Vec<i64> = words.list(self, "axes")?;
            crate::shape::resolve_axes(&axes, rank).map_err(error)
        };
        if let Some(row) = CompositeRow::find(word) {
            let axes = if row.takes_axes { axes(words)? } else { vec![] };
            let given = words.params(self)?;
            let given: Vec<(&str, f64)> = given.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            return Ok(Op::Composite { row, axes, params: row.values(&given).map_err(error)? });
        }
        let row = find(word).filter(|row| row.name == word);
        let row = row
            .ok_or_else(|| error(format!("there is no op `{}`; a formula of elements is `map(x) \"…\"`", cut(word))))?;
        let (axes, keep_dims) = (axes(words)?, !row.applies && words.flag("keep_dims"));
        let call = OpCall::of(row, &words.params(self)?).map_err(|fault| error(fault.to_string()))?;
        Ok(match row.applies {
            true => Op::Normalize { call, axes },
            false => Op::Reduce { call, axes, keep_dims },
        })
    }

    pub(super) fn constant(&mut self, (dtype, shape): (DType, Vec<u64>), at: usize) -> Result<Data> {
        let scalar = |parser: &Self, item: &String| {
            Scalar::parse(dtype, item)
                .ok_or_else(|| parser.lexer.error_at(at, format!("`{}` is no {dtype}", cut(item))))
        };
        let made = match self.lexer.next.0 {
            Token::Word("splat") => {
                self.lexer.take()?;
                let item = self.item()?;
                let value = scalar(self, &item)?;
                let count = elements(&shape).map_err(|reason| self.lexer.error_at(at, reason))?;
                if count > MAX_SPLAT {
                    return Err(self
                        .lexer
                        .error_at(at, format!("{count} equal elements, and the limit is {MAX_SPLAT}")));
                }
                Data::of(dtype, &shape, &vec![value; count as usize])
            }
            Token::Word("hex") => {
                self.lexer.take()?;
                let Token::Quoted(hex) = self.lexer.take()? else {
                    return Err(self.lexer.error_at(at, "bytes in quotes are expected"));
                };
                let mut bytes = hex_bytes(hex).ok_or_else(|| self.lexer.error_at(at, "these are no bytes"))?;
                if cfg!(target_endian = "big") {
                    bytes.chunks_mut(dtype.bytes() as usize).for_each(<[u8]>::reverse);
                }
                Data::new(dtype, &shape, bytes)
            }
            _ => {
                let items = self.list()?;
                let values = items.iter().map(|item| scalar(self, item)).collect::<Result<Vec<Scalar>>>()?;
                Data::of(dtype, &shape, &values)
            }
        };
        made.map_err(|reason| self.lexer.error_at(at, reason))
    }
}

/// The most equal elements of a constant, and the most words of a node.
const MAX_SPLAT: u64 = 1 << 24;
const MAX_WORDS: usize = 1000;

fn hex_bytes(hex: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// The words of a node that are not yet read.
struct Words {
    words: Vec<(String, Word)>,
    at: usize,
}

impl Words {
    fn take(&mut self, name: &str) -> Option<Word> {
        let place = self.words.iter().position(|(word, _)| word == name)?;
        Some(self.words.remove(place).1)
    }

    fn flag(&mut self, name: &str) -> bool {
        let place = self.words.iter().position(|(word, value)| word == name && matches!(value, Word::Flag));
        place.map(|place| self.words.remove(place)).is_some()
    }

    fn list<T: FromStr>(&mut self, parser: &Parser, name: &str) -> Result<Vec<T>> {
        match self.take(name) {
            Some(Word::List(items)) => parser.numbers(self.at, &items),
            _ => Err(parser.lexer.error_at(self.at, format!("`{name}=[…]` is expected"))),
        }
    }

    fn number<T: FromStr + Copy>(&mut self, parser: &Parser, name: &str) -> Result<T> {
        match self.take(name) {
            Some(Word::Number(item)) => parser.numbers(self.at, &[item]).map(|numbers| numbers[0]),
            _ => Err(parser.lexer.error_at(self.at, format!("`{name}=NUMBER` is expected"))),
        }
    }

    /// The words that are left, which are parameters.
    fn params(&mut self, parser: &Parser) -> Result<Vec<(String, f64)>> {
        let param = |(name, value): (String, Word)| match value {
            Word::Flag => Ok((name, 1.0)),
            Word::Number(item) => parser.numbers(self.at, &[item]).map(|numbers| (name, numbers[0])),
            _ => Err(parser.lexer.error_at(self.at, format!("`{}` is no number", cut(&name)))),
        };
        std::mem::take(&mut self.words).into_iter().map(param).collect()
    }
}
