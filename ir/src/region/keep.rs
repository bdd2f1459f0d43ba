//! Values of elements that may be kept between the visits of a slice.

use super::build::{Builder, Needs, lists};
use super::{Body, Reach, Value};
use crate::ops::{Kept, Types, as_byte};
use crate::{DType, Def};
use std::collections::BTreeSet;

/// A value of elements that several visits of the slice are computed from.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeated {
    /// The name of its definition.
    pub name: String,
    /// (inputs and indices, values of the slice) -> value.
    pub def: Def,
    /// The inputs and indices that it is computed from, in ascending order.
    pub inputs: Vec<usize>,
    /// The reductions over the slice that are computed from it, by their order among the definitions.
    pub reductions: Vec<usize>,
    /// The number of visits that need it while the values of the list after it are kept.
    pub visits: usize,
    /// True if outputs at positions of the slice are computed from it.
    pub is_written: bool,
}

impl Body {
    /// The element values that several visits of the slice are computed from and that `may_keep` accepts, in the order of
    /// the definitions. One that other such values alone are computed from is left out.
    pub fn repeated(&self, may_keep: impl Fn(&Repeated) -> bool) -> Vec<Repeated> {
        let types =
            Types { inputs: vec![], mapped: vec![], outputs: vec![], count: 1, index: DType::I64, narrow: false };
        let hoisted = self.hoisted();
        let keeping_none = Builder::new(&hoisted, &types);
        let mut builder = keeping_none.clone();
        let mut found = vec![];
        for d in (0..hoisted.definitions.len()).rev().filter(|&d| keeping_none.is_of_elements(d)) {
            let readers = builder.readers(d);
            let visits = readers.stages + usize::from(readers.is_written);
            if visits < 2 {
                continue;
            }
            // Without the others, which need not be kept when this one is, more may read it.
            let all = keeping_none.readers(d);
            if let Some(value) = builder.repeated(d, visits, all).filter(&may_keep) {
                builder.kept.push(d);
                found.push(value);
            }
        }
        found.reverse();
        found
    }
}

/// The readers of a value of elements.
struct Readers {
    /// The reductions over the slice, by their order among the definitions.
    reductions: Vec<usize>,
    /// The number of stages with such a reduction.
    stages: usize,
    /// True for outputs at positions of the slice.
    is_written: bool,
}

impl Builder<'_> {
    /// Returns true for an expression of elements.
    pub(super) fn is_of_elements(&self, d: usize) -> bool {
        let definition = &self.body.definitions[d];
        let is_expression = matches!(definition.value, Value::Expression(_));
        is_expression && self.reaches.of(&definition.names[0]) == Reach::Element
    }

    /// The number of the first kept value among the inputs.
    pub(super) fn first_kept(&self) -> usize {
        self.body.inputs.len() + self.indices.len()
    }

    /// The definition of a kept value by its number among the inputs.
    pub(super) fn kept_at(&self, input: usize) -> Option<usize> {
        input.checked_sub(self.first_kept()).map(|k| self.kept[k])
    }

    /// A value of elements as a definition over what it is computed from: `(elements, values) -> value`.
    pub(super) fn of_elements(&self, d: usize) -> (Def, Needs) {
        let Value::Expression(expression) = &self.body.definitions[d].value else {
            unreachable!("an expression of elements")
        };
        let needs = self.needs([expression], &[]);
        let (inputs, old, takes) = lists(&needs);
        let name = format!("keep_{}", self.body.definitions[d].names[0]);
        let def = Def::build(name, &self.params(&inputs, &old, &takes), |lets, args| {
            let names = self.names(lets, args, (&inputs, &old, &takes), &needs.definitions);
            let value = self.expression(lets, expression, &names);
            vec![if value.dtype() == DType::Bool { as_byte(value) } else { value }]
        });
        (def, needs)
    }

    pub(super) fn kept(&self) -> Vec<Kept> {
        let one = |&d: &usize| {
            let (def, needs) = self.of_elements(d);
            let (inputs, _, takes) = lists(&needs);
            Kept { name: self.body.definitions[d].names[0].clone(), def, inputs, takes }
        };
        self.kept.iter().map(one).collect()
    }

    /// The readers of a value of elements, but for those that read it through a kept one.
    fn readers(&self, d: usize) -> Readers {
        let all: BTreeSet<usize> = self.stages.reductions.iter().flatten().copied().collect();
        let uses = |r: &usize| self.needs([self.of(*r)], &[]).definitions.contains(&d);
        let reductions = all.iter().enumerate().filter(|(_, r)| uses(r)).map(|(number, _)| number).collect();
        let stages = self.stages.reductions.iter().filter(|stage| stage.iter().any(uses)).count();
        let outputs = (0..self.body.outputs.len()).filter(|&o| self.reaches.outputs[o] == Reach::Element);
        let is_written = self.needs(outputs.map(|o| &self.body.outputs[o]), &[]).definitions.contains(&d);
        Readers { reductions, stages, is_written }
    }

    /// The value that so many visits of the slice need, unless it reads what an output held.
    fn repeated(&self, d: usize, visits: usize, all: Readers) -> Option<Repeated> {
        let name = self.body.definitions[d].names[0].clone();
        let (def, needs) = self.of_elements(d);
        let (inputs, old, _) = lists(&needs);
        let Readers { reductions, is_written, .. } = all;
        old.is_empty().then_some(Repeated { name, def, inputs, reductions, visits, is_written })
    }
}
