//! Words, numbers, quoted text and marks.

use super::ParseError;
use std::fmt;

/// A token with its text as written; quoted text has its escapes resolved.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    Number(&'a str),
    Text(String),
    Mark(&'static str),
    End,
}

/// Prints a token for messages, a long word cut so that a message stays one line.
impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(text) | Token::Number(text) => write!(f, "`{}`", cut(text)),
            Token::Text(_) => f.write_str("quoted text"),
            Token::Mark(mark) => write!(f, "`{mark}`"),
            Token::End => f.write_str("the end"),
        }
    }
}

/// Returns at most the first 40 characters.
pub(super) fn cut(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}

/// Longer marks before those they begin with.
const MARKS: [&str; 14] = ["->", "..", "{", "}", "(", ")", "[", "]", ",", ":", "=", "+", "-", "*"];

pub(super) struct Lexer<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, pos: 0 }
    }

    /// An error at a byte position, which is on a character boundary.
    pub(super) fn error(&self, at: usize, message: impl Into<String>) -> ParseError {
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ParseError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }

    /// Returns the next token and its place; at the end of the text always `End`.
    pub(super) fn next(&mut self) -> Result<(Token<'a>, usize), ParseError> {
        self.skip_space();
        let start = self.pos;
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else {
            return Ok((Token::End, start));
        };
        let token = if first == '"' {
            Token::Text(self.quoted(start)?)
        } else if first.is_ascii_digit() {
            Token::Number(self.take(number_len(rest)))
        } else if first.is_ascii_alphabetic() || first == '_' {
            Token::Word(self.take(word_len(rest)))
        } else if let Some(mark) = MARKS.into_iter().find(|mark| rest.starts_with(mark)) {
            self.pos += mark.len();
            Token::Mark(mark)
        } else {
            return Err(self.error(start, format!("unexpected character {first:?}")));
        };
        Ok((token, start))
    }

    fn take(&mut self, len: usize) -> &'a str {
        let taken = &self.text[self.pos..self.pos + len];
        self.pos += len;
        taken
    }

    /// Skips white space and comments.
    fn skip_space(&mut self) {
        loop {
            let rest = self.text[self.pos..].trim_start();
            self.pos = self.text.len() - rest.len();
            if !rest.starts_with('#') {
                return;
            }
            self.pos += rest.find('\n').unwrap_or(rest.len());
        }
    }

    fn quoted(&mut self, start: usize) -> Result<String, ParseError> {
        let mut value = String::new();
        let mut chars = self.text[start + 1..].char_indices();
        while let Some((at, c)) = chars.next() {
            let at = start + 1 + at;
            match c {
                '"' => {
                    self.pos = at + 1;
                    return Ok(value);
                }
                '\n' => break,
                '\\' => {
                    let escaped = match chars.next() {
                        Some((_, c @ ('"' | '\\'))) => Some(c),
                        Some((_, 'n')) => Some('\n'),
                        Some((_, 'u')) => {
                            let digits = self.text[at + 2..].strip_prefix('{').and_then(|t| t.split_once('}'));
                            digits.and_then(|(hex, _)| {
                                // The braces and digits are read a second time here, to step over them.
                                chars.nth(hex.chars().count() + 1);
                                u32::from_str_radix(hex, 16).ok().and_then(char::from_u32)
                            })
                        }
                        _ => None,
                    };
                    value.push(escaped.ok_or_else(|| {
                        self.error(at, "unknown escape; there are `\\\"`, `\\\\`, `\\n` and `\\u{hex}`")
                    })?);
                }
                c => value.push(c),
            }
        }
        Err(self.error(start, "the quoted text does not end on its line"))
    }
}

/// The length of a word: letters, digits, `_`, and dots that one of these follows.
fn word_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_word = |i: usize| bytes.get(i).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let mut len = 0;
    while is_word(len) || (bytes.get(len) == Some(&b'.') && is_word(len + 1)) {
        len += 1;
    }
    len
}

/// The length of a number: a word that begins with a digit, and the sign of an exponent. `0..4` is a number, a mark and
/// a number.
fn number_len(text: &str) -> usize {
    let len = word_len(text);
    let number = &text[..len];
    let signed =
        text[len..].strip_prefix(['-', '+']).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if number.ends_with(['e', 'E']) && !number.starts_with("0x") && signed {
        len + 1 + text[len + 1..].bytes().take_while(u8::is_ascii_digit).count()
    } else {
        len
    }
}
