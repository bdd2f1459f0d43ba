//! Words, numbers and marks.

use super::error::Fault;
use super::literal::Literal;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    Word(&'a str),
    Number(Literal, &'a str),
    Mark(&'static str),
    End,
}

/// Prints a token for messages, a long word cut so that a message stays one line.
impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(text) | Token::Number(_, text) => write!(f, "`{}`", cut(text)),
            Token::Mark("\n") => f.write_str("the end of the line"),
            Token::Mark(mark) => write!(f, "`{mark}`"),
            Token::End => f.write_str("the end"),
        }
    }
}

/// Returns at most the first 40 characters.
pub(crate) fn cut(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}

/// Longer marks before those they begin with.
const MARKS: [&str; 19] =
    ["==", "!=", "<=", ">=", "<<", ">>", "<", ">", "|", "^", "&", "~", "+", "-", "*", "/", "(", ")", ","];

/// Operators and signs of other languages, with the ones here.
const FOREIGN: [(&str, &str); 19] = [
    ("&&", "and"),
    ("||", "or"),
    ("**", "pow(a, b)"),
    ("=", "=="),
    ("!", "not"),
    ("?", "select(c, a, b)"),
    ("%", "a - b * floor(a / b)"),
    ("²", "pow(a, 2)"),
    ("³", "pow(a, 3)"),
    ("√", "sqrt(a)"),
    ("×", "*"),
    ("·", "*"),
    ("÷", "/"),
    ("−", "-"),
    ("–", "-"),
    ("≤", "<="),
    ("≥", ">="),
    ("≠", "!="),
    ("∞", "inf"),
];

/// The marks that only regions have; a line break is one outside brackets.
const REGION_MARKS: [&str; 8] = ["\n", "=", ";", "@", "[", "]", "{", "}"];

#[derive(Clone, Copy)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    pub(crate) pos: usize,
    /// True in a region, which has lines, comments and further marks.
    region: bool,
    /// The number of open brackets.
    pub(crate) brackets: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, pos: 0, region: false, brackets: 0 }
    }

    /// The lexer of a region's body, which begins at a byte of the text.
    pub(crate) fn in_region(text: &'a str, pos: usize) -> Lexer<'a> {
        Lexer { text, pos, region: true, brackets: 0 }
    }

    /// The text from the next token on.
    fn skip_space(&self) -> &'a str {
        let mut rest = &self.text[self.pos..];
        if !self.region {
            return rest.trim_start();
        }
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() && (c != '\n' || self.brackets > 0));
            match rest.starts_with('#') {
                true => rest = &rest[rest.find('\n').unwrap_or(rest.len())..],
                false => return rest,
            }
        }
    }

    /// Returns the mark that the text begins with.
    fn mark(&self, rest: &str) -> Option<&'static str> {
        // One mark may be a half of another language's.
        if ["&&", "||", "**"].iter().any(|foreign| rest.starts_with(foreign)) {
            return None;
        }
        let common = MARKS.into_iter().find(|mark| rest.starts_with(mark));
        common.or_else(|| REGION_MARKS.into_iter().find(|mark| self.region && rest.starts_with(mark)))
    }

    /// Returns the next token and its place; at the end of the text always `End`.
    pub(crate) fn next(&mut self) -> Result<(Token<'a>, usize), Fault> {
        let rest = self.skip_space();
        let start = self.text.len() - rest.len();
        let Some(first) = rest.chars().next() else {
            self.pos = start;
            // An error at the end points behind the last word, not behind the space after it.
            return Ok((Token::End, self.text.trim_end().len()));
        };
        let (token, len) = if first.is_ascii_digit() || first == '.' {
            let len = number_len(rest);
            let text = &rest[..len];
            let number = Literal::parse(text);
            (Token::Number(number.map_err(|message| Fault::new(start, message))?, text), len)
        } else if first.is_ascii_alphabetic() || first == '_' {
            let len = word_len(rest);
            (Token::Word(&rest[..len]), len)
        } else if let Some(mark) = self.mark(rest) {
            match mark {
                "(" | "[" => self.brackets += 1,
                ")" | "]" => self.brackets = self.brackets.saturating_sub(1),
                _ => {}
            }
            (Token::Mark(mark), mark.len())
        } else {
            return Err(Fault::new(start, unexpected(rest, first)));
        };
        self.pos = start + len;
        Ok((token, start))
    }
}

fn unexpected(rest: &str, first: char) -> String {
    match FOREIGN.into_iter().find(|(start, _)| rest.starts_with(start)) {
        Some((start, ours)) => format!("`{start}` means nothing here; write `{ours}`"),
        None if first == '[' => "an expression has no indices: `x0` is the element itself".into(),
        None => format!("unexpected character {first:?}"),
    }
}

fn word_len(text: &str) -> usize {
    text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count()
}

/// The length of a number: digits, letters and points, and the sign of an exponent. A malformed one is refused whole.
fn number_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_part = |i: usize| {
        let signs = matches!(bytes[i], b'+' | b'-') && i > 0 && matches!(bytes[i - 1], b'e' | b'E');
        bytes[i].is_ascii_alphanumeric() || matches!(bytes[i], b'.' | b'_') || signs
    };
    (0..bytes.len()).take_while(|&i| is_part(i)).count()
}
