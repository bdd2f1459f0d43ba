//! The public walk over an expression, from the leaves to the root.

use super::Expression;
use super::literal::Literal;
use super::node::{Kind, Node, Operation};

/// A node of an expression, with the walk's values of its operands.
#[derive(Clone, Debug, PartialEq)]
pub enum Folded<'a, T> {
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
    /// Makes one value of the expression: `f` gets every node after its operands, these from left to right.
    ///
    /// ```
    /// use cranefold_ir::expression::{Expression, Folded, Operation};
    ///
    /// let expression: Expression = "x0*x0 + 2*x0".parse()?;
    /// let value = expression.fold(&mut |folded: Folded<i128>| match folded {
    ///     Folded::Int(value) => value,
    ///     Folded::Name("x0") => 5,
    ///     Folded::Apply(Operation::Add, args) => args[0] + args[1],
    ///     Folded::Apply(Operation::Mul, args) => args[0] * args[1],
    ///     other => unreachable!("{other:?}"),
    /// });
    /// assert_eq!(value, 35);
    /// # Ok::<(), cranefold_ir::expression::ExpressionError>(())
    /// ```
    ///
    /// # Panics
    /// If no text can express a builder's call in it; [`build`](Expression::build) refuses such an expression.
    pub fn fold<T>(&self, f: &mut impl FnMut(Folded<'_, T>) -> T) -> T {
        in_node(&self.root, f)
    }
}

fn in_node<T>(node: &Node, f: &mut impl FnMut(Folded<'_, T>) -> T) -> T {
    let folded = match &node.kind {
        Kind::Number(Literal::Int(value)) => Folded::Int(*value),
        Kind::Number(Literal::Real(value)) => Folded::Real(*value),
        Kind::Name(name) => Folded::Name(name),
        Kind::Apply(operation, args) => Folded::Apply(*operation, args.iter().map(|arg| in_node(arg, f)).collect()),
        Kind::Invalid(message) => panic!("{message}"),
    };
    f(folded)
}
