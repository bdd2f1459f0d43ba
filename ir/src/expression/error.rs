//! The errors of expressions, with the place in the text.

use super::MAX_TEXT;
use std::fmt;

/// An expression does not read, or does not make sense.
///
/// It prints as the message, the text and a caret under the place; of a long text, the part
/// around it.
///
/// ```
/// use cranefold_ir::expression::{Expression, ExpressionError};
///
/// let error: ExpressionError = "x0 * (x1".parse::<Expression>().unwrap_err();
/// assert_eq!(error.column, 9);
/// assert_eq!(error.to_string(), "expected `)`, found the end\n  x0 * (x1\n          ^");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ExpressionError {
    /// The whole text of the expression, or of the list that contains it.
    pub text: String,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The message: the fault at that place.
    pub message: String,
}

/// The characters of a text that are shown on either side of the place.
const SHOWN: usize = 60;

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.column.saturating_sub(1);
        let first = place.saturating_sub(SHOWN);
        // A line break or a tab would move the caret away from its place.
        let flat = |c: char| if c.is_control() { ' ' } else { c };
        let mut rest = self.text.chars().map(flat).skip(first);
        let shown: String = rest.by_ref().take(place - first + SHOWN).collect();
        let before = if first > 0 { "..." } else { "" };
        let after = if rest.next().is_some() { "..." } else { "" };
        let indent = before.len() + place - first;
        write!(f, "{}\n  {before}{}{after}\n  {:indent$}^", self.message, shown.trim_end(), "")
    }
}

/// A fault at a byte of a text that the caller knows.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> Fault {
        Fault { at, message: message.into() }
    }

    pub(crate) fn in_text(self, text: &str) -> ExpressionError {
        let column = text.get(..self.at).unwrap_or(text).chars().count() + 1;
        // A text refused for its length is cut.
        let text = text.chars().take(MAX_TEXT).collect();
        ExpressionError { text, column, message: self.message }
    }
}
