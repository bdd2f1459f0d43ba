//! The reading of a region's body: definitions and outputs, from text.

use super::names::{nearest, refused_name};
use super::{Body, BodyInput, BodyTypes, Definition, RegionError, Value, check};
use crate::DType;
use crate::expression::Expression;
use crate::expression::error::Fault;
use crate::expression::lexer::{Token, cut};
use crate::expression::literal::Literal;
use crate::expression::node::{Kind, Level, Node};
use crate::expression::parse::Parser;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

pub(super) type Result<T> = std::result::Result<T, Fault>;

/// The most definitions of a region that a user writes.
pub const MAX_DEFINITIONS: usize = 1_000;

/// The most outputs of a region.
pub const MAX_OUTPUTS: usize = 16;

/// The most stages of a region.
pub const MAX_STAGES: usize = 8;

/// The surroundings of a body: its inputs and axes.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The inputs in the order of a call.
    pub inputs: Vec<BodyInput>,
    /// For each axis of the region, true if it is reduced.
    pub reduced: Vec<bool>,
    /// The extents of the axes; without them the body may not ask for one.
    pub shape: Option<Vec<u64>>,
    /// The accumulator type of floats: `F32` or `F64`.
    pub accumulator: DType,
    /// The most definitions.
    pub most_definitions: usize,
    /// The places of the inputs in the text, in bytes, for errors; empty if they do not stand there.
    pub places: Vec<usize>,
}

/// A body that was read, with its places in the text.
#[derive(Clone, Debug)]
pub struct ReadBody {
    /// The body.
    pub body: Body,
    /// The types of its values.
    pub types: BodyTypes,
    /// The byte at which the text goes on: at the closing brace, or the end.
    pub end: usize,
    /// The byte at which each definition is written; a reduction's own place where it stands in an expression.
    pub places: Vec<usize>,
    /// The byte at which each output begins.
    pub output_places: Vec<usize>,
    /// The bytes of each output's layout, if it has one.
    pub layouts: Vec<Option<Range<usize>>>,
}

impl Body {
    /// Reads a body of lines, or of definitions and outputs separated by `;`, over given inputs.
    ///
    /// ```
    /// use cranefold_ir::DType;
    /// use cranefold_ir::region::{Body, BodyInput, Reach};
    ///
    /// let x = BodyInput { name: "x".into(), dtype: DType::F16, reach: Reach::Element };
    /// let body = Body::parse("m = mean(x); (x - m) / std(x, ddof=1), m", vec![x], &[true], DType::F32)?;
    /// assert_eq!(body.to_string(), "m = mean(x)\n(x - m) / std(x, ddof=1), m");
    /// assert_eq!(body.reach_of("m"), Reach::Slice);
    /// # Ok::<(), cranefold_ir::region::RegionError>(())
    /// ```
    ///
    /// # Errors
    /// If the text departs from the grammar of the [module](super) or breaks a rule of it.
    pub fn parse(
        text: &str,
        inputs: Vec<BodyInput>,
        reduced: &[bool],
        accumulator: DType,
    ) -> std::result::Result<Body, RegionError> {
        let most_definitions = text.len().max(MAX_DEFINITIONS);
        let places = vec![];
        let scope = Scope { inputs, reduced: reduced.to_vec(), shape: None, accumulator, most_definitions, places };
        let read = scope.read(text, 0)?;
        match (read.end == text.trim_end().len(), read.layouts.iter().flatten().next()) {
            (false, _) => Err(RegionError::at(text, read.end, "expected the end, found `}`")),
            (true, Some(layout)) => Err(RegionError::at(text, layout.start, "the outputs have no layouts here")),
            (true, None) => Ok(read.body),
        }
    }
}

impl Scope {
    /// Reads a body that begins at a byte of a text and ends at a closing brace or at the end.
    ///
    /// # Errors
    /// If the text departs from the grammar of the [module](super) or breaks a rule of it.
    pub fn read(self, text: &str, at: usize) -> std::result::Result<ReadBody, RegionError> {
        let read = || -> Result<ReadBody> {
            let mut reader = Reader {
                parser: Parser::in_region(text, at)?,
                text: text.into(),
                known: HashMap::new(),
                used: HashSet::new(),
                numbers: vec![],
                definitions: vec![],
                places: vec![],
                words: vec![],
                hidden: 0,
                scope: self,
            };
            reader.inputs()?;
            reader.body()
        };
        read().map_err(|fault| RegionError::of(text, fault))
    }
}

/// The reader of one body.
pub(super) struct Reader<'a> {
    pub(super) parser: Parser<'a>,
    pub(super) text: Arc<str>,
    pub(super) scope: Scope,
    /// The names so far.
    known: HashMap<String, Known>,
    used: HashSet<String>,
    /// The definitions of numbers alone.
    numbers: Vec<Named>,
    pub(super) definitions: Vec<Definition>,
    pub(super) places: Vec<usize>,
    /// The word that each definition was written with, for messages; empty for an expression.
    pub(super) words: Vec<String>,
    /// The number of names that were made here.
    hidden: usize,
}

/// The meaning of a name.
enum Known {
    Input,
    Value,
    /// A number alone is read where its name stands.
    Number(Literal),
}

/// A name in a definition, and its place.
pub(super) type Named = (String, usize);

impl Reader<'_> {
    /// Enters the inputs' names.
    fn inputs(&mut self) -> Result<()> {
        for (i, input) in self.scope.inputs.iter().enumerate() {
            let at = self.scope.places.get(i).copied().unwrap_or(0);
            if let Some(refused) = refused_name(&input.name) {
                return Err(Fault::new(at, refused));
            }
            if self.known.insert(input.name.clone(), Known::Input).is_some() {
                return Err(Fault::new(at, format!("the input `{}` is given twice", cut(&input.name))));
            }
        }
        Ok(())
    }

    fn body(mut self) -> Result<ReadBody> {
        loop {
            self.skip_separators()?;
            if self.at_end() {
                return Err(Fault::new(self.parser.at, "a region ends with its outputs, and here are none"));
            }
            if !self.is_definition()? {
                break;
            }
            self.definition()?;
            if !self.is_separator() && !self.at_end() {
                return Err(self.parser.expected("an operator, `;` or the end of the line"));
            }
        }
        let (outputs, output_places, layouts) = self.outputs()?;
        let end = self.parser.at;
        self.all_used()?;
        let Scope { inputs, reduced, accumulator, .. } = self.scope;
        let body = Body { inputs, reduced, definitions: self.definitions, outputs, accumulator };
        let places = check::Places { definitions: &self.places, words: &self.words };
        let types = check::checked(&body, &places)?;
        Ok(ReadBody { body, types, end, places: self.places, output_places, layouts })
    }

    pub(super) fn at_end(&self) -> bool {
        matches!(self.parser.token, Token::End | Token::Mark("}"))
    }

    pub(super) fn is_separator(&self) -> bool {
        matches!(self.parser.token, Token::Mark("\n" | ";"))
    }

    pub(super) fn skip_separators(&mut self) -> Result<()> {
        while self.is_separator() {
            self.parser.bump()?;
        }
        Ok(())
    }

    pub(super) fn skip_lines(&mut self) -> Result<()> {
        while self.parser.token == Token::Mark("\n") {
            self.parser.bump()?;
        }
        Ok(())
    }

    /// Returns true if names and `=` come next.
    pub(super) fn is_definition(&self) -> Result<bool> {
        let mut ahead = self.parser.clone();
        while let Token::Word(_) = ahead.token {
            ahead.bump()?;
            match ahead.token {
                Token::Mark("=") => return Ok(true),
                Token::Mark(",") => ahead.bump()?,
                _ => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Reads `NAME, NAME = value`.
    fn definition(&mut self) -> Result<()> {
        let mut names: Vec<Named> = vec![];
        while let Token::Word(word) = self.parser.token {
            let at = self.parser.at;
            if let Some(refused) = refused_name(word) {
                return Err(Fault::new(at, refused));
            }
            let again = names.iter().any(|(name, _)| name == word);
            match self.known.get(word) {
                Some(Known::Input) => {
                    return Err(Fault::new(at, format!("`{}` is an input and cannot be defined", cut(word))));
                }
                _ if again => return Err(Fault::new(at, format!("`{}` is defined twice", cut(word)))),
                Some(_) => return Err(Fault::new(at, format!("`{}` is defined twice", cut(word)))),
                None => names.push((word.to_string(), at)),
            }
            self.parser.bump()?;
            if self.parser.token != Token::Mark(",") {
                break;
            }
            self.parser.bump()?;
        }
        self.parser.bump()?;
        let Some(root) = self.value(Some(&names))? else { return Ok(()) };
        let (name, at) = match names.as_slice() {
            [one] => one.clone(),
            [.., (_, at)] => return Err(Fault::new(*at, format!("{} names for 1 value", names.len()))),
            [] => unreachable!("a definition has names"),
        };
        if let Some(number) = root.number() {
            self.numbers.push((name.clone(), at));
            self.known.insert(name, Known::Number(number));
            return Ok(());
        }
        let value = Value::Expression(self.expression(root));
        self.define(vec![(name, at)], value, "")
    }

    /// Reads a value, with the definitions of its calls. A call that is the whole value takes the names, and no
    /// expression is left.
    pub(super) fn value(&mut self, names: Option<&[Named]>) -> Result<Option<Node>> {
        let root = self.parser.expression(Level::Or)?;
        let calls = self.parser.calls.replace(vec![]).unwrap_or_default();
        let last = calls.len();
        let mut made = vec![];
        for (i, call) in calls.into_iter().enumerate() {
            let whole = i + 1 == last && matches!(&root.kind, Kind::Name(name) if *name == format!("${i}"));
            match self.call(call, &made, names.filter(|_| whole))? {
                Some(node) => made.push(node),
                None => return Ok(None),
            }
        }
        self.resolved(root, &made).map(Some)
    }

    /// The tree with its names' meanings: numbers, and the values that stand for calls.
    pub(super) fn resolved(&mut self, node: Node, made: &[Node]) -> Result<Node> {
        let (known, used) = (&self.known, &mut self.used);
        let mut unknown = None;
        let node = node.replaced(&mut |name, at| {
            if let Some(number) = name.strip_prefix('$') {
                return Ok(number.parse::<usize>().ok().and_then(|i| made.get(i)).cloned());
            }
            match known.get(name) {
                Some(Known::Number(number)) => {
                    used.insert(name.to_string());
                    return Ok(Some(Node::of_number(*number, at)));
                }
                Some(_) => drop(used.insert(name.to_string())),
                None => {
                    unknown.get_or_insert((name.to_string(), at));
                }
            }
            Ok(None)
        })?;
        match unknown {
            Some((name, at)) => Err(Fault::new(at, self.unknown(&name))),
            None => Ok(node),
        }
    }

    /// The message for a name without a meaning.
    fn unknown(&self, name: &str) -> String {
        let shown = cut(name);
        if super::names::row(name).is_some() {
            return format!("`{shown}` is an op; write `{shown}(value)`");
        }
        if let Some(refused) = refused_name(name) {
            return refused;
        }
        if self.is_defined_later(name) {
            return format!("`{shown}` is used before its definition");
        }
        let mut names: Vec<&str> = self.known.keys().map(String::as_str).collect();
        names.sort_unstable();
        match nearest(name, names.iter().copied()) {
            Some(near) => format!("unknown name `{shown}`; did you mean `{}`?", cut(near)),
            None if names.is_empty() => format!("unknown name `{shown}`; there are no names here"),
            None if names.len() > 12 => format!("unknown name `{shown}`"),
            None => format!(
                "unknown name `{shown}`; the names here are {}",
                names.iter().map(|name| cut(name)).collect::<Vec<_>>().join(", ")
            ),
        }
    }

    /// Returns true if a definition of this name follows.
    fn is_defined_later(&self, name: &str) -> bool {
        let mut ahead = self.parser.clone();
        let mut found = false;
        while ahead.token != Token::End && ahead.bump().is_ok() {
            match ahead.token {
                Token::Word(word) if word == name => found = true,
                Token::Mark("=") if found && ahead.lexer.brackets == 0 => return true,
                Token::Word(_) | Token::Mark(",") => {}
                _ => found = false,
            }
        }
        false
    }

    /// Returns true if a name has a meaning.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    pub(super) fn expression(&self, root: Node) -> Expression {
        Expression { root, text: Some(self.text.clone()) }
    }

    /// A new name of a value that was written without one.
    pub(super) fn hidden(&mut self, at: usize) -> Named {
        self.hidden += 1;
        (format!("${}", self.hidden - 1), at)
    }

    /// Enters a definition.
    pub(super) fn define(&mut self, names: Vec<Named>, value: Value, word: &str) -> Result<()> {
        let at = names.first().map_or(0, |(_, at)| *at);
        if self.definitions.len() >= self.scope.most_definitions {
            let limit = self.scope.most_definitions;
            return Err(Fault::new(at, format!("the region has more than {limit} definitions")));
        }
        let names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
        for name in names.iter().filter(|name| !name.starts_with('$')) {
            self.known.insert(name.clone(), Known::Value);
        }
        self.definitions.push(Definition { names, value });
        self.places.push(at);
        self.words.push(word.to_string());
        Ok(())
    }

    /// Refuses inputs and definitions that no value uses.
    fn all_used(&self) -> Result<()> {
        for (definition, &at) in self.definitions.iter().zip(&self.places) {
            let is_used = |name: &String| name.starts_with('$') || self.used.contains(name);
            if !definition.names.iter().any(is_used) {
                let names: Vec<&str> = definition.names.iter().map(|name| cut(name)).collect();
                return Err(Fault::new(at, format!("`{}` is not used", names.join(", "))));
            }
        }
        if let Some((name, at)) = self.numbers.iter().find(|(name, _)| !self.used.contains(name)) {
            return Err(Fault::new(*at, format!("`{}` is not used", cut(name))));
        }
        for (i, input) in self.scope.inputs.iter().enumerate() {
            if !self.used.contains(&input.name) {
                let at = self.scope.places.get(i).copied().unwrap_or(0);
                return Err(Fault::new(at, format!("the input `{}` is not used", cut(&input.name))));
            }
        }
        Ok(())
    }
}
