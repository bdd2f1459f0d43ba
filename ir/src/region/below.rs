//! Exponentials of what is never above zero.

use super::{Body, Definition, Reduction, Value};
use crate::expression::Expression;
use crate::expression::node::{Kind, Node, Operation};

impl Body {
    /// The body with the exponentials of values less their greatest in the operation that takes no value above 0, and so
    /// needs no upper limit; `None` if there are none such:
    ///
    /// ```text
    /// m = max(x); e = exp(x - m)   ->   m = max(x); e = exp_below(x - m)
    /// ```
    ///
    /// It has the bits of the exponential. A NaN among the values makes the greatest one NaN, and so the differences.
    pub(super) fn with_exponentials_below(&self) -> Option<Body> {
        let mut body = None;
        for d in 0..self.definitions.len() {
            let replaced = match &self.definitions[d].value {
                Value::Expression(e) => self.below(e).map(Value::Expression),
                Value::Reduction(r) if r.over.is_none() => {
                    self.below(&r.of).map(|of| Value::Reduction(Reduction { of, ..r.clone() }))
                }
                Value::Reduction(_) | Value::Position(_) | Value::Old(_) => None,
            };
            if let Some(value) = replaced {
                body.get_or_insert_with(|| self.clone()).definitions[d].value = value;
            }
        }
        for (o, output) in self.outputs.iter().enumerate() {
            if let Some(output) = self.below(output) {
                body.get_or_insert_with(|| self.clone()).outputs[o] = output;
            }
        }
        body
    }

    /// The expression with exponentials of what is never above zero; `None` if it has none.
    fn below(&self, expression: &Expression) -> Option<Expression> {
        let mut found = false;
        expression.root.visit(&mut |node| found |= self.is_exponential_below(node));
        found.then(|| Expression { root: self.replaced(&expression.root), text: Some("".into()) })
    }

    fn replaced(&self, node: &Node) -> Node {
        let Kind::Apply(operation, args) = &node.kind else { return node.clone() };
        let operation = if self.is_exponential_below(node) { Operation::ExpBelow } else { *operation };
        Node::of_any_depth(operation, args.iter().map(|arg| self.replaced(arg)).collect())
    }

    fn is_exponential_below(&self, node: &Node) -> bool {
        let Kind::Apply(Operation::Exp, args) = &node.kind else { return false };
        let Kind::Apply(Operation::Sub, sides) = &self.meant(&args[0]).kind else { return false };
        let [value, Node { kind: Kind::Name(greatest), .. }] = sides.as_slice() else { return false };
        let is_it = |d: &Definition| d.names[0] == *greatest;
        let Some(Value::Reduction(r)) = self.definitions.iter().find(|d| is_it(d)).map(|d| &d.value) else {
            return false;
        };
        let is_greatest = r.call.as_row().is_some_and(|row| row.gives_greatest());
        is_greatest && r.over.is_none() && self.meant(&r.of.root) == self.meant(value)
    }

    /// The expression that a name stands for, or the node itself.
    fn meant<'a>(&'a self, node: &'a Node) -> &'a Node {
        let Kind::Name(name) = &node.kind else { return node };
        let defined = self.definitions.iter().find(|d| d.names[0] == *name);
        match defined.map(|d| &d.value) {
            Some(Value::Expression(e)) => &e.root,
            _ => node,
        }
    }
}
