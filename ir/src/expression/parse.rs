//! Reads expressions; the grammar is at the head of the module.

use super::MAX_DEPTH;
use super::error::Fault;
use super::lexer::{Lexer, Token, cut};
use super::literal::Literal;
use super::node::{Kind, Level, Node, Operation, is_reserved, too_deep};
use crate::nearest;

type Result<T> = std::result::Result<T, Fault>;

/// Parses a text that is one expression.
pub(crate) fn one(text: &str) -> Result<Node> {
    let mut parser = Parser::new(text)?;
    let root = parser.expression(Level::Or)?;
    parser.end("an operator")?;
    Ok(root)
}

/// Parses a text that is one expression or more.
pub(crate) fn list(text: &str) -> Result<Vec<Node>> {
    let mut parser = Parser::new(text)?;
    let roots = parser.expressions()?;
    parser.end("an operator or `,`")?;
    Ok(roots)
}

#[derive(Clone)]
pub(crate) struct Parser<'a> {
    pub(crate) lexer: Lexer<'a>,
    /// The next token and its place.
    pub(crate) token: Token<'a>,
    pub(crate) at: usize,
    /// The number of open parentheses and prefixes.
    open: usize,
    /// The calls that are no operations, inner ones first; `None` outside a region, which refuses them.
    pub(crate) calls: Option<Vec<Call>>,
}

/// A call in a region that is no operation; the name `$` and its number stand for it in the expression.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The called word and its place.
    pub(crate) word: String,
    pub(crate) at: usize,
    pub(crate) args: Vec<Node>,
    pub(crate) keys: Vec<Key>,
}

/// A key of a call, as `ddof=1` or `axes=[0,2]`.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) at: usize,
    pub(crate) values: Vec<f64>,
    /// True if the values stand in brackets.
    pub(crate) is_list: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>> {
        let mut lexer = Lexer::new(text);
        let (token, at) = lexer.next()?;
        Ok(Parser { lexer, token, at, open: 0, calls: None })
    }

    /// The parser of a region's body, which begins at a byte of the text.
    pub(crate) fn in_region(text: &'a str, at: usize) -> Result<Parser<'a>> {
        let mut lexer = Lexer::in_region(text, at);
        let (token, at) = lexer.next()?;
        Ok(Parser { lexer, token, at, open: 0, calls: Some(vec![]) })
    }

    fn expressions(&mut self) -> Result<Vec<Node>> {
        let mut all = vec![self.expression(Level::Or)?];
        while self.token == Token::Mark(",") {
            self.bump()?;
            all.push(self.expression(Level::Or)?);
        }
        Ok(all)
    }

    /// Parses an expression of operators of the level `least` or tighter.
    pub(crate) fn expression(&mut self, least: Level) -> Result<Node> {
        let mut left = self.prefix(least)?;
        while let Some(operation) = self.infix().filter(|op| op.level() >= least) {
            let (at, level) = (self.at, operation.level());
            self.bump()?;
            let right = self.expression(level.tighter())?;
            left = apply(operation, vec![left, right], at)?;
            if level == Level::Compare && self.infix().is_some_and(|op| op.level() == level) {
                return Err(Fault::new(self.at, "comparisons do not chain; join two of them by `and`"));
            }
        }
        Ok(left)
    }

    fn prefix(&mut self, least: Level) -> Result<Node> {
        let at = self.at;
        let (operation, level) = match self.token {
            Token::Mark("-") => (Operation::Neg, Level::Neg),
            Token::Mark("~") => (Operation::BitNot, Level::Neg),
            Token::Word("not") => (Operation::Not, Level::Not),
            _ => return self.atom(),
        };
        if level < least {
            return Err(Fault::new(at, "`not` binds less tightly than what stands before it; put it in parentheses"));
        }
        self.bump()?;
        let operand = self.nested(|p| if level == Level::Neg { p.prefix(level) } else { p.expression(level) })?;
        apply(operation, vec![operand], at)
    }

    fn atom(&mut self) -> Result<Node> {
        let at = self.at;
        match self.token {
            Token::Number(number, _) => {
                self.bump()?;
                Ok(Node::leaf(Kind::Number(number), at))
            }
            Token::Word(word @ ("inf" | "nan")) => {
                self.bump()?;
                let value = if word == "inf" { f64::INFINITY } else { f64::NAN };
                Ok(Node::leaf(Kind::Number(Literal::Real(value)), at))
            }
            Token::Word("or" | "and") => Err(self.expected("a value")),
            Token::Word(word) => {
                self.bump()?;
                if self.token == Token::Mark("(") {
                    return self.call(word, at);
                }
                match Operation::call(word) {
                    Some(operation) => Err(Fault::new(at, format!("a name cannot be `{word}`, {}", usage(operation)))),
                    None => Ok(Node::leaf(Kind::Name(word.to_string()), at)),
                }
            }
            Token::Mark("(") => {
                self.bump()?;
                let inside = self.nested(|p| p.expression(Level::Or))?;
                self.close("`)`")?;
                Ok(inside)
            }
            _ => Err(self.expected("a value")),
        }
    }

    /// Parses a call of `word` from its parenthesis on, in a region.
    fn region_call(&mut self, word: &str, at: usize) -> Result<Node> {
        self.bump()?;
        let (mut args, mut keys) = (vec![], vec![]);
        while self.token != Token::Mark(")") {
            match self.is_key()? {
                true => keys.push(self.key()?),
                false if keys.is_empty() => args.push(self.nested(|p| p.expression(Level::Or))?),
                false => return Err(self.expected("a key, as in `ddof=1`")),
            }
            if self.token != Token::Mark(",") {
                break;
            }
            self.bump()?;
            if self.token == Token::Mark(")") {
                return Err(self.expected("a value"));
            }
        }
        self.close("`,` or `)`")?;
        if let Some(operation) = Operation::call(word)
            && operation.arity() == args.len()
            && keys.is_empty()
        {
            return apply(operation, args, at);
        }
        let calls = self.calls.get_or_insert_default();
        calls.push(Call { word: word.to_string(), at, args, keys });
        Ok(Node::leaf(Kind::Name(format!("${}", calls.len() - 1)), at))
    }

    /// Returns true if a key of a call comes next: a word and `=`.
    pub(crate) fn is_key(&self) -> Result<bool> {
        let next = || Ok(self.lexer.clone().next()?.0);
        Ok(matches!(self.token, Token::Word(_)) && next()? == Token::Mark("="))
    }

    /// Parses `NAME = NUMBER`, or `NAME = [NUMBER, ...]`.
    fn key(&mut self) -> Result<Key> {
        let (Token::Word(name), at) = (self.token, self.at) else { return Err(self.expected("a key")) };
        self.bump()?;
        self.bump()?;
        let is_list = self.token == Token::Mark("[");
        let mut values = vec![];
        if is_list {
            self.bump()?;
        }
        while self.token != Token::Mark("]") {
            values.push(self.number()?);
            if !is_list || self.token != Token::Mark(",") {
                break;
            }
            self.bump()?;
        }
        if is_list {
            match self.token {
                Token::Mark("]") => self.bump()?,
                _ => return Err(self.expected("`,` or `]`")),
            }
        }
        Ok(Key { name: name.to_string(), at, values, is_list })
    }

    /// Parses a number with its sign.
    fn number(&mut self) -> Result<f64> {
        let negative = self.token == Token::Mark("-");
        if negative {
            self.bump()?;
        }
        let value = match self.token {
            Token::Number(number, _) => number.value(),
            Token::Word("inf") => f64::INFINITY,
            Token::Word("nan") => f64::NAN,
            _ => return Err(self.expected("a number")),
        };
        self.bump()?;
        Ok(if negative { -value } else { value })
    }

    /// Parses a call of `word` from its parenthesis on.
    fn call(&mut self, word: &str, at: usize) -> Result<Node> {
        if self.calls.is_some() {
            return self.region_call(word, at);
        }
        let Some(operation) = Operation::call(word) else {
            let functions: Vec<&str> = Operation::FUNCTIONS.iter().map(|op| op.text()).collect();
            let hint = match nearest::remedy(word) {
                Some(remedy) => format!(": {remedy}"),
                None => format!("; there are {} and the dtypes", functions.join(", ")),
            };
            let message = format!("unknown function `{}`{hint}", cut(word));
            return Err(Fault::new(at, message));
        };
        self.bump()?;
        let args = if self.token == Token::Mark(")") { Vec::new() } else { self.nested(Parser::expressions)? };
        self.close("`,` or `)`")?;
        if args.len() != operation.arity() {
            let message = format!("`{word}` is {}; here are {}", usage(operation), args.len());
            return Err(Fault::new(at, message));
        }
        apply(operation, args, at)
    }

    /// Runs `f` one level deeper.
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.open == MAX_DEPTH {
            return Err(Fault::new(self.at, too_deep()));
        }
        self.open += 1;
        let inside = f(self);
        self.open -= 1;
        inside
    }

    /// The operator that comes next.
    fn infix(&self) -> Option<Operation> {
        match self.token {
            Token::Mark(text) | Token::Word(text) => Operation::INFIX.into_iter().find(|op| op.text() == text),
            _ => None,
        }
    }

    pub(crate) fn bump(&mut self) -> Result<()> {
        (self.token, self.at) = self.lexer.next()?;
        Ok(())
    }

    fn close(&mut self, what: &str) -> Result<()> {
        if self.token == Token::Mark(")") { self.bump() } else { Err(self.expected(what)) }
    }

    fn end(&self, what: &str) -> Result<()> {
        if self.token == Token::End { Ok(()) } else { Err(self.expected(what)) }
    }

    pub(crate) fn expected(&self, what: &str) -> Fault {
        Fault::new(self.at, format!("expected {what}, found {}", self.token))
    }
}

pub(crate) fn apply(operation: Operation, args: Vec<Node>, at: usize) -> Result<Node> {
    Node::apply(operation, args, at).map_err(|message| Fault::new(at, message))
}

/// The usage of a function in messages, as `a function of 2 operands`.
pub(crate) fn usage(operation: Operation) -> String {
    match operation {
        Operation::Cast(_) => "a conversion of 1 operand".to_string(),
        _ => match operation.arity() {
            1 => "a function of 1 operand".to_string(),
            n => format!("a function of {n} operands"),
        },
    }
}

/// A name as a node; the error says why the text is no name.
pub(crate) fn name(text: &str) -> std::result::Result<Kind, String> {
    match super::is_name(text) {
        true => Ok(Kind::Name(text.to_string())),
        false if is_reserved(text) => Err(format!("{text} has a meaning of its own and cannot be a name")),
        false => Err(format!("{:?} is no name: letters, digits and underscores", cut(text))),
    }
}
