//! The axes that values depend on.

use super::{Body, Reach, Value};
use crate::expression::Expression;
use rustc_hash::FxHashMap;

/// The reach of every name of a body, and of its outputs.
#[derive(Clone, Debug)]
pub struct Reaches<'a> {
    names: FxHashMap<&'a str, Reach>,
    /// The reach of each output.
    pub outputs: Vec<Reach>,
}

impl Reaches<'_> {
    /// The reach of a name; that of a number for an unknown one.
    pub fn of(&self, name: &str) -> Reach {
        self.names.get(name).copied().unwrap_or(Reach::Scalar)
    }

    /// The reach of an expression: the widest of its names'.
    pub fn of_expression(&self, expression: &Expression) -> Reach {
        let mut reach = Reach::Scalar;
        expression.each_name(&mut |name, _| reach = reach.max(self.of(name)));
        reach
    }
}

impl Body {
    /// The reach of all names and outputs, computed together.
    ///
    /// An output of numbers and scalars alone has the reach of a slice, and an old element has its output's.
    pub fn reaches(&self) -> Reaches<'_> {
        let mut old = vec![Reach::Scalar; self.outputs.len()];
        // Each round widens an old element or is the last: three widths for each output.
        loop {
            let reaches = self.reaches_with(&old);
            let found: Vec<Reach> = self.outputs.iter().map(|output| reaches.of_expression(output)).collect();
            if found == old {
                let outputs: Vec<Reach> =
                    found.iter().map(|&reach| if reach == Reach::Scalar { Reach::Slice } else { reach }).collect();
                return Reaches { names: self.reaches_with(&outputs).names, outputs };
            }
            old = found;
        }
    }

    fn reaches_with(&self, old: &[Reach]) -> Reaches<'_> {
        let names = self.inputs.iter().map(|input| (input.name.as_str(), input.reach)).collect();
        let mut reaches = Reaches { names, outputs: vec![] };
        for definition in &self.definitions {
            let reach = match &definition.value {
                Value::Expression(expression) => reaches.of_expression(expression),
                Value::Reduction(reduction) if reduction.over.is_some() => Reach::Total,
                Value::Reduction(_) => Reach::Slice,
                Value::Position(axis) if self.reduced.get(*axis) == Some(&true) => Reach::Element,
                Value::Position(_) => Reach::Slice,
                Value::Old(output) => old.get(*output).copied().unwrap_or(Reach::Scalar),
            };
            for name in &definition.names {
                reaches.names.insert(name, reach);
            }
        }
        reaches
    }

    /// The reach of an expression over inputs and names. For many, [`reaches`](Body::reaches) is faster.
    pub fn reach(&self, expression: &Expression) -> Reach {
        self.reaches().of_expression(expression)
    }

    /// The reach of an input or a name.
    pub fn reach_of(&self, name: &str) -> Reach {
        self.reaches().of(name)
    }
}
