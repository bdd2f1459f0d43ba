//! Expressions as text.

use super::Expression;
use super::node::{Kind, Level, Node};
use std::fmt;

/// The canonical text: single spaces around operators, no parentheses that are not needed. It
/// reads back to an equal expression, unless the expression is one that [`Expression::build`] refuses for
/// its length, its depth or a bad name.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_node(f, &self.root, Level::Or, &|_, _| None)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_node(f, self, Level::Or, &|_, _| None)
    }
}

/// The text of a node that the language cannot express: it does not read back.
pub(crate) fn invalid(message: &str) -> String {
    format!("<{message}>")
}

/// Writes a node that has another text, which is a call or a name; none for the others.
pub(crate) type Inline<'a> = dyn Fn(&mut fmt::Formatter<'_>, &Node) -> Option<fmt::Result> + 'a;

/// Writes a node, in parentheses if its level is looser than `least`.
pub(crate) fn write_node(f: &mut fmt::Formatter<'_>, node: &Node, least: Level, inline: &Inline<'_>) -> fmt::Result {
    if let Some(written) = inline(f, node) {
        return written;
    }
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
                write_node(f, arg, Level::Or, inline)?;
            }
            f.write_str(")")?;
        }
        (_, [left, right]) => {
            write_node(f, left, if level == Level::Compare { level.tighter() } else { level }, inline)?;
            write!(f, " {} ", operation.text())?;
            write_node(f, right, level.tighter(), inline)?;
        }
        (_, args) => {
            f.write_str(operation.text())?;
            f.write_str(if level == Level::Not { " " } else { "" })?;
            args.iter().try_for_each(|arg| write_node(f, arg, level, inline))?;
        }
    }
    f.write_str(if parentheses { ")" } else { "" })
}
