//! The errors of regions, with the place in the text.

use crate::expression::ExpressionError;
use crate::expression::error::Fault;
use std::fmt;

/// A region does not read, or breaks a rule.
///
/// It prints as the message, the line and a caret under the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RegionError {
    /// The line of the region's text that contains the place.
    pub text: String,
    /// The number of the line, from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The fault at that place.
    pub message: String,
}

impl RegionError {
    /// The error at a byte of the whole text.
    pub fn at(text: &str, at: usize, message: impl Into<String>) -> RegionError {
        let at = text.floor_char_boundary(at);
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        RegionError {
            text: text[start..end].to_string(),
            line: text[..at].matches('\n').count() + 1,
            column: text[start..at].chars().count() + 1,
            message: message.into(),
        }
    }

    pub(crate) fn of(text: &str, fault: Fault) -> RegionError {
        RegionError::at(text, fault.at, fault.message)
    }
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 1 {
            write!(f, "line {}: ", self.line)?;
        }
        let (text, message) = (self.text.clone(), self.message.clone());
        ExpressionError { text, column: self.column, message }.fmt(f)
    }
}
