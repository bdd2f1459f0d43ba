//! Reads nests from text.
//!
//! `parse(print(n)) == n` for every nest `n` that verifies.
//!
//! The grammar stands at the head of the [crate], where it is rendered. The parser checks the types of
//! operations, the verifier all other rules.

mod expr;
mod lexer;
mod stmt;

use crate::{AccId, Buffer, BufferRole, DType, Def, DefId, LoopVar, Nest, Over, Var};
use lexer::{Lexer, Token, cut};
use std::collections::HashMap;
use std::hash::Hash;
use std::str::FromStr;

/// The greatest depth of loops and wide functions, and of expressions.
///
/// It keeps every recursive walk over a nest within a small stack; real nests stay below 30.
pub const MAX_DEPTH: usize = 200;

/// The greatest number of a loop variable, an accumulator or a value in a nest that verifies: executors keep them in
/// tables.
pub const MAX_NUMBER: u32 = (1 << 20) - 1;

/// The text is no nest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The message: the fault at that place.
    pub message: String,
}

type Result<T> = std::result::Result<T, ParseError>;

/// # Errors
/// If the text departs from the grammar at the head of the crate, an operation does not take the
/// types it is given, or something is used that is not declared before.
impl FromStr for Nest {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Nest> {
        Parser::new(text)?.nest()
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next token and its place.
    token: Token<'a>,
    at: usize,
    buffers: Vec<Buffer>,
    defs: Vec<Def>,
    /// The first definition of each name.
    def_ids: HashMap<String, DefId>,
    vars: Scoped<Var>,
    accs: Scoped<AccId>,
    /// The numbers of open loops and wide functions, and of open expressions.
    loop_depth: usize,
    expr_depth: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>> {
        let mut lexer = Lexer::new(text);
        let (token, at) = lexer.next()?;
        Ok(Parser {
            lexer,
            token,
            at,
            buffers: Vec::new(),
            defs: Vec::new(),
            def_ids: HashMap::new(),
            vars: Scoped::default(),
            accs: Scoped::default(),
            loop_depth: 0,
            expr_depth: 0,
        })
    }

    fn nest(mut self) -> Result<Nest> {
        self.expect_word("nest")?;
        let Token::Text(name) = &mut self.token else {
            return Err(self.expected("the name in quotes"));
        };
        let name = std::mem::take(name);
        self.bump()?;
        self.expect("{")?;
        while let Some(role) = self.role() {
            self.buffer(role)?;
        }
        while self.is_word("def") {
            self.def()?;
        }
        let body = self.stmts()?;
        if self.token != Token::End {
            return Err(self.expected("the end"));
        }
        Ok(Nest { name, buffers: self.buffers, defs: self.defs, body })
    }

    fn role(&self) -> Option<BufferRole> {
        BufferRole::ALL.into_iter().find(|role| self.is_word(role.name()))
    }

    fn buffer(&mut self, role: BufferRole) -> Result<()> {
        self.bump()?;
        self.expect_numbered('x', self.buffers.len())?;
        self.expect(":")?;
        let (dtype, len) = self.array()?;
        self.buffers.push(Buffer { role, dtype, len });
        Ok(())
    }

    fn def(&mut self) -> Result<()> {
        self.expect_word("def")?;
        let name = self.word("a name")?.to_string();
        let outside = (self.vars.mark(), self.accs.mark());
        self.expect("(")?;
        let mut params = Vec::new();
        if !self.accept(")")? {
            loop {
                let var = self.expect_numbered('v', params.len())?;
                self.expect(":")?;
                let dtype = self.dtype()?;
                self.vars.bind(Var(var), dtype);
                params.push(dtype);
                if !self.accept(",")? {
                    break;
                }
            }
            self.expect(")")?;
        }
        self.expect("->")?;
        let mut types = vec![(self.at, self.dtype()?)];
        while self.accept(",")? {
            types.push((self.at, self.dtype()?));
        }
        self.expect("{")?;
        let mut lets = Vec::new();
        while self.is_word("let") {
            self.bump()?;
            let var = self.expect_numbered('v', params.len() + lets.len())?;
            self.expect("=")?;
            let value = self.expr()?;
            self.vars.bind(Var(var), value.dtype());
            lets.push(value);
        }
        let mut results = Vec::new();
        for (i, &(_, dtype)) in types.iter().enumerate() {
            if i > 0 {
                self.expect(",")?;
            }
            let at = self.at;
            let result = self.expr()?;
            if result.dtype() != dtype {
                let message = format!("the result is {}, not {dtype} as declared", result.dtype());
                return Err(self.error(at, message));
            }
            results.push(result);
        }
        self.expect("}")?;
        self.vars.leave(outside.0);
        self.accs.leave(outside.1);
        self.def_ids.entry(name.clone()).or_insert(DefId(self.defs.len() as u32));
        self.defs.push(Def { name, params, lets, results });
        Ok(())
    }

    /// Parses a type and a length, as `f32[400]`.
    fn array(&mut self) -> Result<(DType, u64)> {
        let dtype = self.dtype()?;
        self.expect("[")?;
        let len = self.count()?;
        self.expect("]")?;
        Ok((dtype, len))
    }
}

/// The methods that take tokens.
impl<'a> Parser<'a> {
    fn error(&self, at: usize, message: impl Into<String>) -> ParseError {
        self.lexer.error(at, message)
    }

    /// An error at the next token.
    fn expected(&self, what: &str) -> ParseError {
        self.error(self.at, format!("expected {what}, found {}", self.token))
    }

    fn bump(&mut self) -> Result<Token<'a>> {
        let (token, at) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn is(&self, mark: &str) -> bool {
        matches!(self.token, Token::Mark(m) if m == mark)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.token, Token::Word(w) if w == word)
    }

    /// Takes the mark if it is next.
    fn accept(&mut self, mark: &str) -> Result<bool> {
        let found = self.is(mark);
        if found {
            self.bump()?;
        }
        Ok(found)
    }

    fn expect(&mut self, mark: &str) -> Result<()> {
        if self.accept(mark)? { Ok(()) } else { Err(self.expected(&format!("`{mark}`"))) }
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if !self.is_word(word) {
            return Err(self.expected(&format!("`{word}`")));
        }
        self.bump().map(drop)
    }

    fn word(&mut self, what: &str) -> Result<&'a str> {
        let Token::Word(word) = self.token else {
            return Err(self.expected(what));
        };
        self.bump()?;
        Ok(word)
    }

    fn count(&mut self) -> Result<u64> {
        let Token::Number(text) = self.token else {
            return Err(self.expected("a count"));
        };
        let count = text.parse().map_err(|_| self.expected("a count below 2^64"))?;
        self.bump()?;
        Ok(count)
    }

    fn dtype(&mut self) -> Result<DType> {
        match self.token {
            Token::Word(word) => {
                let dtype = word.parse().map_err(|_| self.expected("a dtype"))?;
                self.bump()?;
                Ok(dtype)
            }
            _ => Err(self.expected("a dtype")),
        }
    }

    /// Takes a letter and a number, as `v0`; returns the number.
    fn numbered(&mut self, letter: char, what: &str) -> Result<u32> {
        let id = match self.token {
            Token::Word(word) => number_after(letter, word),
            _ => None,
        };
        let id = id.ok_or_else(|| self.expected(what))?;
        self.bump()?;
        Ok(id)
    }

    /// Takes a letter and the number that is next in order; returns it.
    fn expect_numbered(&mut self, letter: char, next: usize) -> Result<u32> {
        let what = format!("`{letter}{next}`");
        match self.token {
            Token::Word(word) if number_after(letter, word).is_some_and(|id| id as usize == next) => {
                self.bump()?;
                Ok(next as u32)
            }
            _ => Err(self.expected(&what)),
        }
    }

    fn loop_var(&mut self) -> Result<LoopVar> {
        let var = match self.token {
            Token::Word(word) => loop_var(word),
            _ => None,
        };
        let var = var.ok_or_else(|| self.expected("a loop variable"))?;
        self.bump()?;
        Ok(var)
    }

    fn def_id(&mut self) -> Result<DefId> {
        let at = self.at;
        let name = self.word("the name of a definition")?;
        self.find_def(at, name)
    }

    fn find_def(&self, at: usize, name: &str) -> Result<DefId> {
        let found = self.def_ids.get(name).copied();
        found.ok_or_else(|| self.error(at, format!("no operation or definition is called `{}`", cut(name))))
    }
}

/// The number in a word such as `v12`.
fn number_after(letter: char, word: &str) -> Option<u32> {
    let digits = word.strip_prefix(letter)?;
    digits.starts_with(|c: char| c.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn loop_var(word: &str) -> Option<LoopVar> {
    let find = |(over, letter)| number_after(letter, word).map(|id| LoopVar { over, id });
    Over::LETTERS.into_iter().find_map(find)
}

/// The types of the names in scope; leaving a body restores the scope around it.
struct Scoped<K> {
    types: HashMap<K, DType>,
    undo: Vec<(K, Option<DType>)>,
}

impl<K> Default for Scoped<K> {
    fn default() -> Scoped<K> {
        Scoped { types: HashMap::new(), undo: Vec::new() }
    }
}

impl<K: Copy + Eq + Hash> Scoped<K> {
    fn get(&self, key: K) -> Option<DType> {
        self.types.get(&key).copied()
    }

    fn bind(&mut self, key: K, dtype: DType) {
        self.undo.push((key, self.types.insert(key, dtype)));
    }

    fn mark(&self) -> usize {
        self.undo.len()
    }

    fn leave(&mut self, mark: usize) {
        for (key, before) in self.undo.drain(mark..).rev() {
            match before {
                Some(dtype) => self.types.insert(key, dtype),
                None => self.types.remove(&key),
            };
        }
    }
}
