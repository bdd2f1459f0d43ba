//! Expressions as text.

use super::Expression;
use super::node::{Kind, Level, Node};
use std::fmt;

/// The canonical text: single spaces around operators, no parentheses that are not needed. It
/// reads back to an equal expression, unless the expression is one that [`Expression::build`] refuses for
/// its length, its depth or a bad name.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_node(f, &self.root, Level::Or)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_node(f, self, Level::Or)
    }
}

/// The text of a node that the language cannot express: it does not read back.
pub(super) fn invalid(message: &str) -> String {
    format!("<{message}>")
}

/// Writes a node, in parentheses if its level is looser than `least`.
fn write_node(f: &mut fmt::Formatter<'_>, node: &Node, least: Level) -> fmt::Result {
    let (operation, args) = match &node.kind {
        Kind::Number(number) => return write!(f, "{number}"),
        Kind::Name(name) => return f.write_str(name),
        Kind::Invalid(message) => return f.write_str(&invalid(message)),
        Kind::Apply(operation, args) => (*operation, args.as_slice()),
    };
    let level = operation.level();
    let parentheses = level < least;
    if parentheses {
        f.write_str("(")?;
    }
    match (level, args) {
        (Level::Atom, args) => {
            write!(f, "{}(", operation.text())?;
            for (i, arg) in args.iter().enumerate() {
                f.write_str(if i > 0 { ", " } else { "" })?;
                write_node(f, arg, Level::Or)?;
            }
            f.write_str(")")?;
        }
        (_, [left, right]) => {
            write_node(f, left, if level == Level::Compare { level.tighter() } else { level })?;
            write!(f, " {} ", operation.text())?;
            write_node(f, right, level.tighter())?;
        }
        (_, args) => {
            f.write_str(operation.text())?;
            f.write_str(if level == Level::Not { " " } else { "" })?;
            args.iter().try_for_each(|arg| write_node(f, arg, level))?;
        }
    }
    f.write_str(if parentheses { ")" } else { "" })
}
