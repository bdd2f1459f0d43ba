//! The totals of a body, as a body over the values of all slices.

use super::{Body, BodyInput, Definition, Reach, Reduction, Value};
use crate::expression::Expression;
use crate::expression::node::{Kind, Node};
use std::collections::BTreeSet;

/// The totals of a region: reductions of values of the slices over kept axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    /// The body: its first inputs are the values, in the order of the totals, then scalars.
    pub body: Body,
    /// The values of the slice that are reduced.
    pub values: Vec<Expression>,
    /// The inputs of the region that are scalars of the body.
    pub scalars: Vec<usize>,
    /// The outputs of the region that the body's outputs are.
    pub outputs: Vec<usize>,
    /// The kept axes that are reduced.
    pub over: Vec<usize>,
}

impl Totals {
    /// The number of reductions.
    pub fn reductions(&self) -> usize {
        self.values.len()
    }
}

impl Body {
    /// The number of reductions over the slice.
    pub fn reductions(&self) -> usize {
        self.definitions.iter().filter(|d| matches!(&d.value, Value::Reduction(r) if r.over.is_none())).count()
    }

    /// The names of the reductions over the slice, and that it is a region, for people.
    pub fn name(&self) -> String {
        let row = |d: &Definition| match &d.value {
            Value::Reduction(r) if r.over.is_none() => r.call.as_row().map(|row| row.name),
            _ => None,
        };
        let mut names: Vec<&str> = self.definitions.iter().filter_map(row).collect();
        names.dedup();
        format!("region {}", names.join(", ")).trim_end().to_string()
    }

    /// Returns true if a reduction takes the position of an element.
    pub fn takes_position(&self) -> bool {
        self.definitions.iter().any(|d| matches!(&d.value, Value::Reduction(r) if r.call.takes_position()))
    }

    /// The values of the slice that totals reduce, in the order of the definitions.
    pub fn values_of_totals(&self) -> Vec<&Expression> {
        let of = |d: &'_ Definition| matches!(&d.value, Value::Reduction(r) if r.over.is_some());
        let totals = self.definitions.iter().filter(|d| of(d));
        totals.filter_map(|d| if let Value::Reduction(r) = &d.value { Some(&r.of) } else { None }).collect()
    }

    /// The totals; `None` if there are none.
    ///
    /// # Panics
    /// If the body has not been checked.
    pub fn totals(&self) -> Option<Totals> {
        let values: Vec<Expression> = self.values_of_totals().into_iter().cloned().collect();
        if values.is_empty() {
            return None;
        }
        let types = self.types_of_totals();
        let reaches = self.reaches();
        let value = |(n, dtype)| BodyInput { name: format!("t{n}"), dtype, reach: Reach::Element };
        let mut inputs: Vec<BodyInput> = types.into_iter().enumerate().map(value).collect();
        let outputs: Vec<usize> = (0..self.outputs.len()).filter(|&o| reaches.outputs[o] == Reach::Total).collect();
        let mut over = vec![];
        let mut definitions = vec![];
        for definition in &self.definitions {
            let names = definition.names.clone();
            match &definition.value {
                Value::Reduction(Reduction { call, over: Some(axes), .. }) => {
                    let number = definitions.iter().filter(|d: &&Definition| matches!(d.value, Value::Reduction(_)));
                    let of = by_name(&format!("t{}", number.count()));
                    over = axes.clone();
                    let reduction = Reduction { call: call.clone(), of, over: None };
                    definitions.push(Definition { names, value: Value::Reduction(reduction) });
                }
                Value::Expression(e) if matches!(reaches.of(&names[0]), Reach::Total | Reach::Scalar) => {
                    definitions.push(Definition { names, value: Value::Expression(e.clone()) });
                }
                Value::Old(output) => {
                    let number = outputs.iter().position(|o| o == output);
                    definitions.extend(number.map(|n| Definition { names, value: Value::Old(n) }));
                }
                Value::Expression(_) | Value::Reduction(_) | Value::Position(_) => {}
            }
        }
        let expressions: Vec<Expression> = outputs.iter().map(|&o| self.outputs[o].clone()).collect();
        let definitions = needed(definitions, &expressions);
        let is_used = |name: &str| {
            let in_definition = |d: &Definition| matches!(&d.value, Value::Expression(e) if e.uses(name));
            definitions.iter().any(in_definition) || expressions.iter().any(|e| e.uses(name))
        };
        let is_scalar = |i: &usize| self.inputs[*i].reach == Reach::Scalar && is_used(&self.inputs[*i].name);
        let scalars: Vec<usize> = (0..self.inputs.len()).filter(is_scalar).collect();
        inputs.extend(scalars.iter().map(|&i| self.inputs[i].clone()));
        let body = Body { inputs, reduced: vec![], definitions, outputs: expressions, accumulator: self.accumulator };
        Some(Totals { body: body.canonical(), values, scalars, outputs, over })
    }

    /// The types of the values that totals reduce.
    fn types_of_totals(&self) -> Vec<crate::DType> {
        let outputs = self.values_of_totals().into_iter().cloned().collect();
        let values = Body { outputs, ..self.clone() };
        values.types().expect("a body that was checked").outputs
    }
}

/// The definitions that the outputs need. One of scalars alone may serve values of the slice, which are no part of totals.
fn needed(definitions: Vec<Definition>, outputs: &[Expression]) -> Vec<Definition> {
    let own = |e: &Expression| e.used().into_iter().map(str::to_string).collect::<Vec<String>>();
    let mut used: BTreeSet<String> = outputs.iter().flat_map(own).collect();
    let mut needed: Vec<Definition> = vec![];
    for definition in definitions.into_iter().rev() {
        match &definition.value {
            Value::Expression(e) if definition.names.iter().any(|name| used.contains(name)) => used.extend(own(e)),
            Value::Expression(_) => continue,
            Value::Reduction(_) | Value::Position(_) | Value::Old(_) => {}
        }
        needed.push(definition);
    }
    needed.reverse();
    needed
}

/// The expression that is a name, of whatever letters.
pub(super) fn by_name(name: &str) -> Expression {
    Expression { root: Node::leaf(Kind::Name(name.to_string()), 0), text: Some("".into()) }
}
