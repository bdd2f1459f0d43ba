//! Comparisons of positions in 32 bits.

use super::{Body, Definition, Reach, Reaches, Value};
use crate::DType;
use crate::expression::Expression;
use crate::expression::literal::Literal;
use crate::expression::node::{Kind, Node, Operation};
use rustc_hash::FxHashMap;

impl Body {
    /// The body with comparisons of positions in `i32`, where each position fits it: a value of the slice beside one is
    /// brought to the range of `i32`, which changes no comparison. A vector then has as many positions as elements of
    /// four bytes.
    ///
    /// ```text
    /// p = position(1); select(p < n, x, 0)
    /// ->
    /// p, p$32 = position(1); select(p$32 < i32(max(min(n, 2147483647), -2147483648)), x, 0)
    /// ```
    ///
    /// The second name of a position is its value in `i32`.
    pub(super) fn narrowed(&self) -> Body {
        let positions = self.definitions.iter().filter(|d| matches!(d.value, Value::Position(_)));
        let names: FxHashMap<&str, String> =
            positions.map(|d| (d.names[0].as_str(), format!("{}$32", d.names[0]))).collect();
        let mut narrow = Narrow { names, reaches: self.reaches(), found: vec![] };
        let mut definitions = self.definitions.clone();
        for definition in &mut definitions {
            match &mut definition.value {
                Value::Expression(e) => narrow.expression(e),
                Value::Reduction(reduction) if reduction.over.is_none() => narrow.expression(&mut reduction.of),
                Value::Reduction(_) | Value::Position(_) | Value::Old(_) => {}
            }
        }
        let mut outputs = self.outputs.clone();
        outputs.iter_mut().for_each(|e| narrow.expression(e));
        let found = narrow.found;
        // The other side of a comparison names reductions too, which keep their one name.
        let is_found = |d: &&mut Definition| matches!(d.value, Value::Position(_)) && found.contains(&d.names[0]);
        for definition in definitions.iter_mut().filter(is_found) {
            let second = format!("{}$32", definition.names[0]);
            definition.names.push(second);
        }
        Body { definitions, outputs, ..self.clone() }
    }
}

struct Narrow<'a> {
    /// The second name of each position.
    names: FxHashMap<&'a str, String>,
    reaches: Reaches<'a>,
    /// The positions that are named in 32 bits.
    found: Vec<String>,
}

impl Narrow<'_> {
    fn expression(&mut self, expression: &mut Expression) {
        let root = self.node(&expression.root);
        if root != expression.root {
            *expression = Expression { root, text: Some("".into()) };
        }
    }

    fn node(&mut self, node: &Node) -> Node {
        let Kind::Apply(operation, args) = &node.kind else { return node.clone() };
        use Operation::{Eq, Ge, Gt, Le, Lt, Ne};
        if let (Eq | Ne | Lt | Le | Gt | Ge, [a, b]) = (operation, args.as_slice())
            && (self.position(a).is_some() || self.position(b).is_some())
            && let (Some(a), Some(b)) = (self.side(a), self.side(b))
        {
            args.iter().for_each(|side| side.visit_names(&mut |name, _| self.found.push(name.into())));
            return Node::of_any_depth(*operation, vec![a, b]);
        }
        Node::of_any_depth(*operation, args.iter().map(|arg| self.node(arg)).collect())
    }

    /// The second name of a position.
    fn position(&self, node: &Node) -> Option<&String> {
        let Kind::Name(name) = &node.kind else { return None };
        self.names.get(name.as_str())
    }

    /// A side of a comparison in `i32`; none if it is of elements but no position.
    fn side(&self, node: &Node) -> Option<Node> {
        if let Some(second) = self.position(node) {
            return Some(Node::leaf(Kind::Name(second.clone()), 0));
        }
        let mut reach = None;
        node.visit_names(&mut |name, _| reach = reach.max(Some(self.reaches.of(name))));
        match reach {
            // A number stays one, of any type.
            None => match node.number()? {
                Literal::Int(n) if i32::try_from(n).is_ok() => Some(node.clone()),
                _ => None,
            },
            Some(Reach::Scalar | Reach::Slice) => {
                let number = |n: i32| Node::of_number(Literal::Int(n.into()), 0);
                let least = Node::of_any_depth(Operation::Min, vec![node.clone(), number(i32::MAX)]);
                let clamped = Node::of_any_depth(Operation::Max, vec![least, number(i32::MIN)]);
                Some(Node::of_any_depth(Operation::Cast(DType::I32), vec![clamped]))
            }
            Some(_) => None,
        }
    }
}
