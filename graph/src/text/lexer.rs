//! The tokens of a graph's text.

use crate::error::GraphError;

/// A token, with its place in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A word: a letter or `_`, then letters, digits, `_` and `.`.
    Word(&'a str),
    /// A text between quotes, as it stands there.
    Quoted(&'a str),
    /// A number, with its sign.
    Number(&'a str),
    /// A sign.
    Sign(char),
    /// The end of a line outside brackets, or `;`.
    Line,
    /// The end of the text.
    End,
}

pub(super) struct Lexer<'a> {
    text: &'a str,
    /// The place after the token.
    at: usize,
    /// The number of open brackets, in which lines do not end.
    open: usize,
    /// The next token and its place.
    pub(super) next: (Token<'a>, usize),
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Result<Lexer<'a>, GraphError> {
        let mut lexer = Lexer { text, at: 0, open: 0, next: (Token::End, 0) };
        lexer.advance()?;
        Ok(lexer)
    }

    /// Takes the next token.
    pub(super) fn take(&mut self) -> Result<Token<'a>, GraphError> {
        let token = self.next.0.clone();
        self.advance()?;
        Ok(token)
    }

    /// Takes a sign if it is next.
    pub(super) fn eat(&mut self, sign: char) -> Result<bool, GraphError> {
        let is_next = self.next.0 == Token::Sign(sign);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    /// An error at the next token.
    pub(super) fn error(&self, reason: impl Into<String>) -> GraphError {
        self.error_at(self.next.1, reason)
    }

    pub(super) fn error_at(&self, at: usize, reason: impl Into<String>) -> GraphError {
        let before = &self.text[..at];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let (line, column) = (1 + before.matches('\n').count(), 1 + before[start..].chars().count());
        GraphError::Text { line, column, reason: reason.into() }
    }

    fn advance(&mut self) -> Result<(), GraphError> {
        let mut is_line = false;
        loop {
            let rest = &self.text[self.at..];
            let Some(c) = rest.chars().next() else { break };
            match c {
                '#' => self.at += rest.find('\n').unwrap_or(rest.len()),
                '\n' | ';' => {
                    is_line |= self.open == 0;
                    self.at += 1;
                }
                c if c.is_ascii_whitespace() => self.at += 1,
                _ => break,
            }
        }
        let start = self.at;
        let rest = &self.text[start..];
        if is_line {
            self.next = (Token::Line, start);
            return Ok(());
        }
        let Some(first) = rest.chars().next() else {
            self.next = (Token::End, start);
            return Ok(());
        };
        let run = |is: fn(u8) -> bool| rest.bytes().position(|b| !is(b)).unwrap_or(rest.len());
        let (token, length) = match first {
            'a'..='z' | 'A'..='Z' | '_' => {
                let length = run(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
                (Token::Word(&rest[..length]), length)
            }
            '0'..='9' | '-' => {
                let sign = usize::from(first == '-');
                let is_number = |b: u8| b.is_ascii_alphanumeric() || b == b'.';
                let mut length = sign + rest[sign..].bytes().position(|b| !is_number(b)).unwrap_or(rest.len() - sign);
                // The sign of an exponent.
                if rest[..length].ends_with(['e', 'E']) && rest[length..].starts_with(['-', '+']) {
                    length += 1;
                    length += rest[length..].bytes().position(|b| !is_number(b)).unwrap_or(rest.len() - length);
                }
                (Token::Number(&rest[..length]), length)
            }
            '"' => {
                let mut escaped = false;
                let end = rest[1..].bytes().position(|b| {
                    let is_end = b == b'"' && !escaped;
                    escaped = b == b'\\' && !escaped;
                    is_end
                });
                let Some(end) = end else { return Err(self.error_at(start, "the quote has no end")) };
                (Token::Quoted(&rest[1..1 + end]), end + 2)
            }
            '(' | ')' | '[' | ']' | '{' | '}' | ',' | ':' | '=' => {
                match first {
                    '(' | '[' => self.open += 1,
                    ')' | ']' => self.open = self.open.saturating_sub(1),
                    _ => {}
                }
                (Token::Sign(first), 1)
            }
            _ => return Err(self.error_at(start, format!("unexpected `{}`", first.escape_default()))),
        };
        self.at += length;
        self.next = (token, start);
        Ok(())
    }
}

/// The text that a quoted one stands for.
pub(super) fn unquoted(text: &str) -> Option<String> {
    let mut result = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            result.push(c);
            continue;
        }
        match rest.next()? {
            c @ ('"' | '\\') => result.push(c),
            'n' => result.push('\n'),
            'u' => {
                let hex: String = rest.by_ref().take_while(|&c| c != '}').collect();
                result.push(char::from_u32(u32::from_str_radix(hex.strip_prefix('{')?, 16).ok()?)?);
            }
            _ => return None,
        }
    }
    Some(result)
}
