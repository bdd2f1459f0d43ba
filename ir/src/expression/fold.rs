//! Looking at an expression from outside: a walk from the leaves to the root.

use super::Expression;
use super::literal::Literal;
use super::node::{Kind, Node, Operation};

/// A part of an expression, with what the walk has made of its operands.
#[derive(Clone, Debug, PartialEq)]
pub enum Part<'a, T> {
    /// A number written without point and exponent; it has no type yet, and is not negative.
    Int(i128),
    /// Another number; it has no type yet, and its sign is plus.
    Real(f64),
    /// A name.
    Name(&'a str),
    /// An operation, with as many operands as it takes.
    Apply(Operation, Vec<T>),
}

impl Expression {
    /// Makes one value of the expression: `f` gets every part after its operands, these from left to right.
    ///
    /// ```
    /// use cranefold_ir::expression::{Expression, Operation, Part};
    ///
    /// let expression: Expression = "x0*x0 + 2*x0".parse()?;
    /// let value = expression.fold(&mut |part: Part<i128>| match part {
    ///     Part::Int(value) => value,
    ///     Part::Name("x0") => 5,
    ///     Part::Apply(Operation::Add, args) => args[0] + args[1],
    ///     Part::Apply(Operation::Mul, args) => args[0] * args[1],
    ///     other => unreachable!("{other:?}"),
    /// });
    /// assert_eq!(value, 35);
    /// # Ok::<(), cranefold_ir::expression::ExpressionError>(())
    /// ```
    ///
    /// # Panics
    /// If the builder was asked for what no text can say; [`build`](Expression::build) refuses such an expression.
    pub fn fold<T>(&self, f: &mut impl FnMut(Part<'_, T>) -> T) -> T {
        in_node(&self.root, f)
    }
}

fn in_node<T>(node: &Node, f: &mut impl FnMut(Part<'_, T>) -> T) -> T {
    let part = match &node.kind {
        Kind::Number(Literal::Int(value)) => Part::Int(*value),
        Kind::Number(Literal::Real(value)) => Part::Real(*value),
        Kind::Name(name) => Part::Name(name),
        Kind::Apply(operation, args) => Part::Apply(*operation, args.iter().map(|arg| in_node(arg, f)).collect()),
        Kind::Invalid(message) => panic!("{message}"),
    };
    f(part)
}
