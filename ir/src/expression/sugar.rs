//! Functions that stand for an expression of others; the head of the module has the table of them.

use super::arithmetic::{apply, share};
use super::node::{Kind, Node, Operation};
use super::parse;
use crate::{Expr, Lets};

/// The expression of a function of `x`. No operation in it has numbers alone.
fn expression(operation: Operation) -> &'static str {
    match operation {
        Operation::Rsqrt => "1 / sqrt(x)",
        Operation::Sigmoid => "1 / (1 + exp(-x))",
        Operation::Silu => "x * sigmoid(x)",
        Operation::Softplus => "max(x, 0) + log1p(exp(-abs(x)))",
        Operation::Gelu => "0.5 * x * (1 + erf(0.7071067811865476 * x))",
        Operation::GeluTanh => "0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))",
        _ => unreachable!("{} is an operation of its own", operation.text()),
    }
}

/// The function's expression at x.
pub(super) fn build(lets: &mut Lets, operation: Operation, x: Expr) -> Expr {
    let x = share(lets, x);
    let root = parse::one(expression(operation)).unwrap_or_else(|_| unreachable!("the texts above parse"));
    at(lets, &root, &x)
}

fn at(lets: &mut Lets, node: &Node, x: &Expr) -> Expr {
    match &node.kind {
        Kind::Apply(operation, args) => {
            let args = args.iter().map(|arg| at(lets, arg, x)).collect();
            apply(lets, *operation, args)
        }
        Kind::Number(number) => {
            number.of_type(x.dtype()).unwrap_or_else(|_| unreachable!("f32 and f64 hold the numbers above")).into()
        }
        Kind::Name(_) | Kind::Invalid(_) => x.clone(),
    }
}
