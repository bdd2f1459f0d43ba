//! The hoist of values of the slice out of expressions of elements.

use super::{Body, Definition, Reach, Value};
use crate::expression::Expression;
use crate::expression::node::{Kind, Node, Operation};
use rustc_hash::FxHashMap;

impl Body {
    /// The body with a definition for each largest operation on values of the slice that stands in an expression of
    /// elements, so that it is computed once for a slice:
    ///
    /// ```text
    /// x / sqrt(v0 + 1e-5)   ->   $h0 = sqrt(v0 + 1e-5); x / $h0
    /// ```
    pub(super) fn hoisted(&self) -> Body {
        let reaches = self.reaches();
        let mut hoist = Hoist { reaches: FxHashMap::default(), found: vec![], definitions: vec![] };
        for input in &self.inputs {
            hoist.reaches.insert(input.name.clone(), input.reach);
        }
        for definition in &self.definitions {
            let own = reaches.of(&definition.names[0]);
            let value = match &definition.value {
                Value::Expression(e) if own == Reach::Element => Value::Expression(hoist.expression(e)),
                Value::Reduction(r) if r.over.is_none() => {
                    let of = hoist.expression(&r.of);
                    Value::Reduction(super::Reduction { of, ..r.clone() })
                }
                other => other.clone(),
            };
            hoist.reaches.extend(definition.names.iter().map(|name| (name.clone(), own)));
            hoist.definitions.push(Definition { names: definition.names.clone(), value });
        }
        let outputs = self.outputs.iter().zip(&reaches.outputs);
        let outputs =
            outputs.map(|(e, &reach)| if reach == Reach::Element { hoist.expression(e) } else { e.clone() }).collect();
        Body {
            inputs: self.inputs.clone(),
            reduced: self.reduced.clone(),
            definitions: hoist.definitions,
            outputs,
            accumulator: self.accumulator,
        }
    }
}

struct Hoist {
    reaches: FxHashMap<String, Reach>,
    /// The operations that were hoisted, and their names.
    found: Vec<(Node, String)>,
    definitions: Vec<Definition>,
}

impl Hoist {
    fn expression(&mut self, expression: &Expression) -> Expression {
        let root = self.node(&expression.root);
        Expression { root, text: Some("".into()) }
    }

    fn reach(&self, node: &Node) -> Reach {
        let mut reach = Reach::Scalar;
        node.visit_names(&mut |name, _| reach = reach.max(self.reaches.get(name).copied().unwrap_or(Reach::Scalar)));
        reach
    }

    fn has_name(node: &Node) -> bool {
        let mut found = false;
        node.visit_names(&mut |_, _| found = true);
        found
    }

    fn node(&mut self, node: &Node) -> Node {
        let Kind::Apply(operation, args) = &node.kind else { return node.clone() };
        if self.reach(node) == Reach::Element || !Hoist::has_name(node) || has_no_type(node) {
            let args = args.iter().map(|arg| self.node(arg)).collect();
            return Node::of_any_depth(*operation, args);
        }
        let known = self.found.iter().find(|(known, _)| known == node).map(|(_, name)| name.clone());
        let name = known.unwrap_or_else(|| {
            let name = format!("$h{}", self.found.len());
            self.found.push((node.clone(), name.clone()));
            self.reaches.insert(name.clone(), self.reach(node));
            let value = Value::Expression(Expression { root: node.clone(), text: Some("".into()) });
            self.definitions.push(Definition { names: vec![name.clone()], value });
            name
        });
        Node::leaf(Kind::Name(name), 0)
    }
}

/// Returns true for numbers, and for choices between them, which take the type of what stands beside them.
fn has_no_type(node: &Node) -> bool {
    match &node.kind {
        Kind::Number(_) => true,
        Kind::Name(_) | Kind::Invalid(_) | Kind::Apply(Operation::Cast(_), _) => false,
        Kind::Apply(Operation::Select, args) => args[1..].iter().all(has_no_type),
        Kind::Apply(_, args) => args.iter().all(has_no_type),
    }
}
