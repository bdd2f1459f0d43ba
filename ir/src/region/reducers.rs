//! The reducers of a body's reductions, in groups that share a tree.

use super::build::{Builder, lists};
use super::totals::by_name;
use super::{BodyInput, Reduction, Value};
use crate::ops::{Agree, Element, Form, Group, Reducer, Row, RowTypes, as_byte, grouped, product, types_in_region};
use crate::{DType, Def};
use std::collections::BTreeSet;

impl<'a> Builder<'a> {
    /// Returns true if the reductions have the form: another than the plain one only a reduction of floats alone has.
    pub(super) fn has_form(&self) -> bool {
        let mut reductions = self.stages.reductions.iter().flatten();
        match (self.form, reductions.next(), reductions.next()) {
            (Form::Plain, ..) => true,
            (Form::Direct, Some(&d), None) => {
                let (inputs, _, takes) = lists(&self.needs([self.of(d)], &[]));
                let element = self.element(d, &inputs, &takes);
                self.row(d).build_direct(&self.row_types(d, &element)).is_some()
            }
            (Form::Direct, ..) => false,
        }
    }

    pub(super) fn reduction(&self, d: usize) -> &'a Reduction {
        match &self.body.definitions[d].value {
            Value::Reduction(reduction) => reduction,
            _ => unreachable!("a definition that is a reduction"),
        }
    }

    /// The row of a reduction.
    pub(super) fn row(&self, d: usize) -> &'static Row {
        self.reduction(d).call.as_row().expect("a row of the table")
    }

    /// The reductions of a stage in groups: by their walks, then by their trees.
    pub(super) fn groups(&self, reductions: &[usize], walk_of: &[usize], agree: &Agree) -> Vec<Group> {
        let all: BTreeSet<usize> = self.stages.reductions.iter().flatten().copied().collect();
        let walk = |d: &usize| walk_of[all.iter().position(|known| known == d).expect("a reduction")];
        let walks: BTreeSet<usize> = reductions.iter().map(walk).collect();
        let of_walk = |number: usize| {
            let own: Vec<usize> = reductions.iter().copied().filter(|d| walk(d) == number).collect();
            self.groups_of_walk(&own, number, agree)
        };
        walks.into_iter().flat_map(of_walk).collect()
    }

    pub(super) fn groups_of_walk(&self, reductions: &[usize], walk: usize, agree: &Agree) -> Vec<Group> {
        let positions = |d: &usize| self.row(*d).takes_position;
        let made = |members: &[usize]| {
            let needs = self.needs(members.iter().map(|&d| self.of(d)), &[]);
            let (inputs, _, takes) = lists(&needs);
            let takes_position = members.iter().any(positions);
            let reducers = members.iter().map(|&d| self.reducer(d, &inputs, &takes, takes_position)).collect();
            (reducers, self.params(&inputs, &[], &takes), inputs, takes, takes_position)
        };
        let (reducers, ..) = made(reductions);
        let group = |members: Vec<usize>, alone| {
            let (reducers, params, inputs, takes, takes_position) = made(&members);
            let reducer = product(reducers, alone, &params, takes_position, self.types.count);
            let numbers = |d: &usize| {
                let first = self.values[*d].expect("a reduction is a value");
                first..first + self.body.definitions[*d].names.len()
            };
            let name = members.iter().map(|&d| self.row(d).name).collect::<Vec<_>>().join(", ");
            Group {
                name,
                reducer,
                inputs,
                takes_position,
                takes,
                results: members.iter().flat_map(numbers).collect(),
                walk,
            }
        };
        let groups = grouped(&reducers, walk, agree).into_iter();
        groups.map(|g| group(g.numbers.into_iter().map(|n| reductions[n]).collect(), g.alone)).collect()
    }

    /// The reducer of a reduction, whose lifts take these inputs and values, and perhaps the position.
    pub(super) fn reducer(&self, d: usize, inputs: &[usize], takes: &[usize], positions: bool) -> Reducer {
        let element = self.element(d, inputs, takes);
        let (row, types) = (self.row(d), self.row_types(d, &element));
        let reducer = match self.form {
            Form::Plain => row.build(&types),
            Form::Direct => row.build_direct(&types).expect("a row with the form"),
        };
        element.adapt(reducer, row.takes_position, self.types, positions)
    }

    /// The types of the row of a reduction of such elements.
    pub(super) fn row_types(&self, d: usize, element: &Element) -> RowTypes {
        let (call, results) = (&self.reduction(d).call, &self.typed.definitions[d]);
        types_in_region(call, element.dtype, results, self.body.accumulator, self.types)
    }

    /// The elements of a reduction, from these inputs and values.
    pub(super) fn element(&self, d: usize, inputs: &[usize], takes: &[usize]) -> Element {
        let of = self.of(d);
        let params = self.params(inputs, &[], takes);
        let needs = self.needs([of], &[]);
        let mut dtype = DType::Bool;
        let map = Def::build("map", &params, |lets, args| {
            let names = self.names(lets, args, (inputs, &[], takes), &needs.definitions);
            let value = self.expression(lets, of, &names);
            dtype = value.dtype();
            vec![if dtype == DType::Bool { as_byte(value) } else { value }]
        });
        // An input itself is reduced in its type in memory.
        let bare = inputs.iter().position(|&i| {
            let is_input = |input: &BodyInput| *of == by_name(&input.name);
            self.body.inputs.get(i).is_some_and(is_input)
        });
        match bare {
            Some(first) => Element::of_input(self.input_type(inputs[first]), params, first),
            None => Element::of_map(dtype, map, params),
        }
    }
}
