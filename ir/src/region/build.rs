//! The computation of a body: its reductions in stages, its values of the slice, and its outputs.

use super::totals::by_name;
use super::{Body, BodyInput, BodyTypes, Definition, Reach, Reduction, Stages, Value};
use crate::expression::Expression;
use crate::ops::{
    Agree, Apply, Computation, Element, Ending, Form, Group, Kept, Reducer, Row, RowTypes, Source, Stage, Types,
    as_byte, as_truth, grouped, in_expression, in_memory, product, stored, types_in_region,
};
use crate::{DType, Def, Expr, Lets};
use std::collections::{BTreeSet, HashMap};

impl Body {
    /// The computation on a slice of `types.count` elements. `walk_of` gives the number of the walk of each reduction
    /// over the slice, in the order of the definitions; of reductions that `agree`, one takes part in a phase of the other.
    /// Totals are of another body ([`Body::totals`]), which reduces values that are numbered after the outputs.
    ///
    /// Inputs are numbered as the body has them; the index of each definition that is a position follows them.
    ///
    /// A reduction alone has the forms of its row; `None` if there is no such form. The element values of the names in `keep`
    /// are kept between the visits of the slice, which no result shows; names of no such value are passed over.
    ///
    /// # Panics
    /// If the body has not been checked.
    pub fn computation(
        &self,
        types: &Types,
        walk_of: &[usize],
        form: Form,
        keep: &[String],
        agree: &Agree,
    ) -> Option<Computation> {
        let hoisted = self.hoisted();
        let mut builder = Builder { form, ..Builder::new(&hoisted, types) };
        let is_kept = |d: &usize| keep.contains(&hoisted.definitions[*d].names[0]) && builder.is_of_elements(*d);
        builder.kept = (0..hoisted.definitions.len()).filter(is_kept).collect();
        builder.has_form().then(|| builder.computation(walk_of, agree))
    }

    /// The element values that several visits of the slice are computed from and for whose definition `is_worth` holds,
    /// in the order of the definitions. One that other such values alone are computed from is left out.
    pub fn repeated(&self, is_worth: impl Fn(&Def) -> bool) -> Vec<Repeated> {
        let types = Types { inputs: vec![], mapped: vec![], outputs: vec![], count: 1 };
        let hoisted = self.hoisted();
        let mut builder = Builder::new(&hoisted, &types);
        let mut found = vec![];
        for d in (0..hoisted.definitions.len()).rev() {
            if let Some(value) = builder.repeated(d).filter(|value| is_worth(&value.def)) {
                builder.kept.push(d);
                found.push(value);
            }
        }
        found.reverse();
        found
    }

    /// For each reduction over the slice, in the order of the definitions, the inputs and indices that its elements
    /// are computed from, in ascending order.
    pub fn reads_of_reductions(&self) -> Vec<Vec<usize>> {
        let types = Types { inputs: vec![], mapped: vec![], outputs: vec![], count: 1 };
        let builder = Builder::new(self, &types);
        let reductions = builder.stages.reductions.iter().flatten().copied().collect::<BTreeSet<usize>>();
        reductions.into_iter().map(|d| builder.needs([builder.of(d)], &[]).inputs.into_iter().collect()).collect()
    }

    /// The inputs of elements that reductions over the slice depend on, by their numbers; without such, all inputs of
    /// elements, or input 0.
    pub fn mapped(&self) -> Vec<usize> {
        let mut needed: BTreeSet<&str> = BTreeSet::new();
        for definition in self.definitions.iter().rev() {
            let over_slice = matches!(&definition.value, Value::Reduction(reduction) if reduction.over.is_none());
            if over_slice || definition.names.iter().any(|name| needed.contains(name.as_str())) {
                needed.extend(match &definition.value {
                    Value::Expression(expression) => expression.used(),
                    Value::Reduction(reduction) => reduction.of.used(),
                    Value::Position(_) | Value::Old(_) => vec![],
                });
            }
        }
        let elements = || (0..self.inputs.len()).filter(|&i| self.inputs[i].reach == Reach::Element);
        let mapped: Vec<usize> = elements().filter(|&i| needed.contains(self.inputs[i].name.as_str())).collect();
        let all = if mapped.is_empty() { elements().collect() } else { mapped };
        if all.is_empty() { vec![0] } else { all }
    }

    /// The axes of the definitions that are positions, in order.
    pub fn positions(&self) -> Vec<usize> {
        let axis = |d: &Definition| if let Value::Position(axis) = d.value { Some(axis) } else { None };
        self.definitions.iter().filter_map(axis).collect()
    }
}

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
    /// The number of visits.
    pub visits: usize,
    /// True if outputs at positions of the slice are computed from it.
    pub is_written: bool,
}

/// The values that an expression is computed from.
#[derive(Default)]
struct Needs {
    /// Inputs and indices, by their numbers.
    inputs: BTreeSet<usize>,
    /// Old elements, by their outputs.
    old: BTreeSet<usize>,
    /// Values of the slice, by their numbers.
    values: BTreeSet<usize>,
    /// The definitions that are computed on the way.
    definitions: BTreeSet<usize>,
}

struct Builder<'a> {
    body: &'a Body,
    types: &'a Types,
    typed: BodyTypes,
    stages: Stages,
    /// The definition of each name, and its place among the names.
    defined: HashMap<&'a str, (usize, usize)>,
    inputs: HashMap<&'a str, usize>,
    /// For each definition, the number of the first of its values of the slice.
    values: Vec<Option<usize>>,
    /// For each definition that is a position, the number of its index.
    indices: HashMap<usize, usize>,
    /// The form of the reducers.
    form: Form,
    /// The definitions whose values are kept between visits, in ascending order.
    kept: Vec<usize>,
}

impl<'a> Builder<'a> {
    fn new(body: &'a Body, types: &'a Types) -> Builder<'a> {
        let reaches = body.reaches();
        let names = body.definitions.iter().enumerate();
        let defined = names.flat_map(|(d, def)| def.names.iter().enumerate().map(move |(k, n)| (n.as_str(), (d, k))));
        let of = |def: &Definition| reaches.of(&def.names[0]);
        let reaches: Vec<Reach> = body.definitions.iter().map(of).collect();
        let mut next = 0;
        let mut values = vec![];
        for (d, def) in body.definitions.iter().enumerate() {
            let is_value = match &def.value {
                Value::Reduction(reduction) => reduction.over.is_none(),
                Value::Expression(_) => matches!(reaches[d], Reach::Scalar | Reach::Slice),
                Value::Position(_) | Value::Old(_) => false,
            };
            values.push(is_value.then_some(next));
            next += if is_value { def.names.len() } else { 0 };
        }
        let positions = body.definitions.iter().enumerate().filter(|(_, d)| matches!(d.value, Value::Position(_)));
        let indices = positions.enumerate().map(|(n, (d, _))| (d, body.inputs.len() + n)).collect();
        Builder {
            body,
            types,
            typed: body.types().expect("a body that was checked"),
            stages: body.stages(),
            defined: defined.collect(),
            inputs: body.inputs.iter().enumerate().map(|(i, input)| (input.name.as_str(), i)).collect(),
            values,
            indices,
            form: Form::Plain,
            kept: vec![],
        }
    }

    /// Returns true if the reductions have the form: another than the plain one only a reduction of floats alone has.
    fn has_form(&self) -> bool {
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

    fn reduction(&self, d: usize) -> &'a Reduction {
        match &self.body.definitions[d].value {
            Value::Reduction(reduction) => reduction,
            _ => unreachable!("a definition that is a reduction"),
        }
    }

    /// The row of a reduction.
    fn row(&self, d: usize) -> &'static Row {
        self.reduction(d).call.as_row().expect("a row of the table")
    }

    /// Returns true for an expression of elements.
    fn is_of_elements(&self, d: usize) -> bool {
        matches!(self.body.definitions[d].value, Value::Expression(_)) && self.values[d].is_none()
    }

    /// The number of the first kept value among the inputs.
    fn first_kept(&self) -> usize {
        self.body.inputs.len() + self.indices.len()
    }

    /// The definition of a kept value by its number among the inputs.
    fn kept_at(&self, input: usize) -> Option<usize> {
        input.checked_sub(self.first_kept()).map(|k| self.kept[k])
    }

    /// A value of elements as a definition over what it is computed from: `(elements, values) -> value`.
    fn of_elements(&self, d: usize) -> (Def, Needs) {
        let Value::Expression(expression) = &self.body.definitions[d].value else {
            unreachable!("an expression of elements")
        };
        let needs = self.needs([expression], &[]);
        let (inputs, old, takes) = lists(&needs);
        let name = format!("keep_{}", self.body.definitions[d].names[0]);
        let def = Def::build(name, &self.params(&inputs, &old, &takes), |lets, args| {
            let names = self.names(lets, args, (&inputs, &old, &takes), &needs.definitions);
            let value = self.expression(lets, expression, &names);
            vec![if value.dtype() == DType::Bool { crate::ops::as_byte(value) } else { value }]
        });
        (def, needs)
    }

    fn kept(&self) -> Vec<Kept> {
        let one = |&d: &usize| {
            let (def, needs) = self.of_elements(d);
            let (inputs, _, takes) = lists(&needs);
            Kept { name: self.body.definitions[d].names[0].clone(), def, inputs, takes }
        };
        self.kept.iter().map(one).collect()
    }

    /// The value if several visits of the slice are computed from it, and it reads nothing that an output held.
    fn repeated(&self, d: usize) -> Option<Repeated> {
        if !self.is_of_elements(d) {
            return None;
        }
        let all: BTreeSet<usize> = self.stages.reductions.iter().flatten().copied().collect();
        let uses = |r: &usize| self.needs([self.of(*r)], &[]).definitions.contains(&d);
        let reductions: Vec<usize> =
            all.iter().enumerate().filter(|(_, r)| uses(r)).map(|(number, _)| number).collect();
        let stages = self.stages.reductions.iter().filter(|stage| stage.iter().any(uses)).count();
        let reaches = self.body.reaches().outputs;
        let outputs = (0..self.body.outputs.len()).filter(|&o| reaches[o] == Reach::Element);
        let is_written = self.needs(outputs.map(|o| &self.body.outputs[o]), &[]).definitions.contains(&d);
        let visits = stages + usize::from(is_written);
        let name = self.body.definitions[d].names[0].clone();
        let (def, needs) = self.of_elements(d);
        let (inputs, old, _) = lists(&needs);
        (visits > 1 && old.is_empty()).then_some(Repeated { name, def, inputs, reductions, visits, is_written })
    }

    /// The expression of the elements of a reduction.
    fn of(&self, d: usize) -> &'a Expression {
        &self.reduction(d).of
    }

    /// The values that expressions are computed from, where the definitions `here` are computed too.
    fn needs<'e>(&self, expressions: impl IntoIterator<Item = &'e Expression>, here: &[usize]) -> Needs {
        let mut needs = Needs::default();
        expressions.into_iter().for_each(|expression| self.add(expression, here, &mut needs));
        needs
    }

    fn add(&self, expression: &Expression, here: &[usize], needs: &mut Needs) {
        expression.each_name(&mut |name, _| {
            if let Some(&input) = self.inputs.get(name) {
                needs.inputs.insert(input);
                return;
            }
            let (d, k) = self.defined[name];
            match (&self.body.definitions[d].value, self.values[d]) {
                (Value::Position(_), _) => needs.inputs.extend([self.indices[&d]]),
                (Value::Old(output), _) => needs.old.extend([*output]),
                (_, Some(value)) if !here.contains(&d) => needs.values.extend([value + k]),
                _ if self.kept.contains(&d) => {
                    let place = self.kept.iter().position(|&kept| kept == d).expect("found by it");
                    needs.inputs.extend([self.first_kept() + place]);
                }
                (Value::Expression(inner), _) => {
                    if needs.definitions.insert(d) {
                        self.add(inner, here, needs);
                    }
                }
                (Value::Reduction(_), _) => unreachable!("a reduction is a value of the slice"),
            }
        });
    }

    /// The type in expressions of an input or index.
    fn input_type(&self, input: usize) -> DType {
        match (self.body.inputs.get(input), self.kept_at(input)) {
            (Some(input), _) => input.dtype,
            (None, Some(d)) => self.typed.definitions[d][0],
            (None, None) => DType::I64,
        }
    }

    /// The definition and the name of a value of the slice.
    fn named(&self, value: usize) -> (usize, usize) {
        let of = |d: &usize| self.values[*d].is_some_and(|first| first <= value);
        let d = (0..self.values.len()).rev().find(of).expect("a value of the slice");
        (d, value - self.values[d].expect("found by it"))
    }

    fn value_type(&self, value: usize) -> DType {
        let (d, k) = self.named(value);
        self.typed.definitions[d][k]
    }

    /// The types of the parameters of a definition over these inputs, old elements and values.
    fn params(&self, inputs: &[usize], old: &[usize], values: &[usize]) -> Vec<DType> {
        let inputs = inputs.iter().map(|&i| in_memory(self.input_type(i)));
        let old = old.iter().map(|&o| in_memory(self.typed.outputs[o]));
        inputs.chain(old).chain(values.iter().map(|&v| in_memory(self.value_type(v)))).collect()
    }

    /// The values of all names that are needed: of parameters, then of definitions that are computed.
    fn names(
        &self,
        lets: &mut Lets,
        args: &[Expr],
        (inputs, old, values): (&[usize], &[usize], &[usize]),
        definitions: &BTreeSet<usize>,
    ) -> Vec<(String, Expr)> {
        let accumulator = self.body.accumulator;
        let mut names: Vec<(String, Expr)> = vec![];
        let mut bind = |lets: &mut Lets, name: &str, value: Expr| {
            let value = if value.args().is_empty() { value } else { lets.bind(value) };
            names.push((name.to_string(), value));
        };
        let (of_inputs, rest) = args.split_at(inputs.len());
        let (of_old, of_values) = rest.split_at(old.len());
        for (&i, arg) in inputs.iter().zip(of_inputs) {
            match self.body.inputs.get(i) {
                Some(input) => bind(lets, &input.name, in_expression(arg.clone(), input.dtype, accumulator)),
                None if self.kept_at(i).is_some() => {
                    let d = self.kept_at(i).expect("a kept value");
                    let is_truth = self.typed.definitions[d][0] == DType::Bool;
                    let value = if is_truth { as_truth(arg.clone()) } else { arg.clone() };
                    bind(lets, &self.body.definitions[d].names[0], value);
                }
                None => {
                    let found = self.indices.iter().find(|(_, number)| **number == i).map(|(&d, _)| d);
                    let definition = &self.body.definitions[found.expect("an index")];
                    definition.names.iter().for_each(|name| bind(lets, name, arg.clone()));
                }
            }
        }
        for (&o, arg) in old.iter().zip(of_old) {
            let value = in_expression(arg.clone(), self.typed.outputs[o], accumulator);
            for definition in self.body.definitions.iter().filter(|d| d.value == Value::Old(o)) {
                bind(lets, &definition.names[0], value.clone());
            }
        }
        for (&v, arg) in values.iter().zip(of_values) {
            let (d, k) = self.named(v);
            let value = if self.typed.definitions[d][k] == DType::Bool { as_truth(arg.clone()) } else { arg.clone() };
            bind(lets, &self.body.definitions[d].names[k], value);
        }
        for &d in definitions {
            let Definition { names: own, value: Value::Expression(expression) } = &self.body.definitions[d] else {
                unreachable!("what is computed on the way is an expression")
            };
            let value = self.expression(lets, expression, &names);
            let value = if value.args().is_empty() { value } else { lets.bind(value) };
            names.push((own[0].clone(), value));
        }
        names
    }

    fn expression(&self, lets: &mut Lets, expression: &Expression, names: &[(String, Expr)]) -> Expr {
        let value = expression.build(lets, names, self.body.accumulator);
        value.unwrap_or_else(|error| unreachable!("a body that was checked: {error}"))
    }

    fn computation(&self, walk_of: &[usize], agree: &Agree) -> Computation {
        let mut stages = vec![];
        if let Some(end) = self.end(0) {
            stages.push(Stage { groups: vec![], end: Some(end) });
        }
        for (number, reductions) in self.stages.reductions.iter().enumerate() {
            stages.push(Stage { groups: self.groups(reductions, walk_of, agree), end: self.end(number + 1) });
        }
        let of_reach = |wanted: Reach| {
            let reaches = self.body.reaches().outputs;
            (0..self.body.outputs.len()).filter(|&o| reaches[o] == wanted).collect::<Vec<usize>>()
        };
        let slices = of_reach(Reach::Slice);
        // The values that totals reduce are numbered after the outputs.
        let values = self.body.values_of_totals();
        let numbers: Vec<usize> =
            slices.iter().copied().chain(self.body.outputs.len()..self.body.outputs.len() + values.len()).collect();
        let expressions: Vec<&Expression> = slices.iter().map(|&o| &self.body.outputs[o]).chain(values).collect();
        let outputs = (!numbers.is_empty()).then(|| self.ending("finish", &expressions, &[], &numbers));
        let elements = of_reach(Reach::Element);
        let apply = (!elements.is_empty()).then(|| self.apply(elements));
        Computation { stages, outputs, apply, kept: self.kept() }
    }

    /// The values of the slice that are known after so many stages.
    fn end(&self, after: usize) -> Option<Ending> {
        let is_here = |&d: &usize| {
            let is_expression = matches!(self.body.definitions[d].value, Value::Expression(_));
            is_expression && self.values[d].is_some() && self.stages.known_after[d] == after
        };
        let here: Vec<usize> = (0..self.body.definitions.len()).filter(is_here).collect();
        let name = |d: &usize| self.body.definitions[*d].names[0].as_str();
        let expressions: Vec<Expression> = here.iter().map(|d| by_name(name(d))).collect();
        let numbers: Vec<usize> = here.iter().map(|&d| self.values[d].expect("a value of the slice")).collect();
        let ending = || self.ending("values", &expressions.iter().collect::<Vec<_>>(), &here, &numbers);
        (!here.is_empty()).then(ending)
    }

    /// Expressions over values of the slice; `results` are the numbers of what they are.
    fn ending(&self, name: &str, expressions: &[&Expression], here: &[usize], results: &[usize]) -> Ending {
        let needs = self.needs(expressions.iter().copied(), here);
        let (inputs, old, takes) = lists(&needs);
        // Values come first, then what is read.
        let [of_values, of_reads] = [self.params(&[], &[], &takes), self.params(&inputs, &old, &[])];
        let def = Def::build(name, &[of_values, of_reads].concat(), |lets, args| {
            let (of_values, of_reads) = args.split_at(takes.len());
            let args = [of_reads, of_values].concat();
            let names = self.names(lets, &args, (&inputs, &old, &takes), &needs.definitions);
            let value = |lets: &mut Lets, e: &&Expression| {
                let value = self.expression(lets, e, &names);
                stored(lets, value)
            };
            expressions.iter().map(|e| value(lets, e)).collect()
        });
        let reads = inputs.iter().map(|&i| Source::Input(i)).chain(old.iter().map(|&o| Source::Old(o))).collect();
        Ending { def, takes, reads, results: results.to_vec() }
    }

    /// The outputs at each position.
    fn apply(&self, outputs: Vec<usize>) -> Apply {
        let expressions: Vec<&Expression> = outputs.iter().map(|&o| &self.body.outputs[o]).collect();
        let needs = self.needs(expressions.iter().copied(), &[]);
        let (inputs, old, takes) = lists(&needs);
        let def = Def::build("apply", &self.params(&inputs, &old, &takes), |lets, args| {
            let names = self.names(lets, args, (&inputs, &old, &takes), &needs.definitions);
            let value = |lets: &mut Lets, e: &&Expression| {
                let value = self.expression(lets, e, &names);
                stored(lets, value)
            };
            expressions.iter().map(|e| value(lets, e)).collect()
        });
        Apply { def, inputs, old, takes, outputs }
    }

    /// The reductions of a stage in groups: by their walks, then by their trees.
    fn groups(&self, reductions: &[usize], walk_of: &[usize], agree: &Agree) -> Vec<Group> {
        let all: BTreeSet<usize> = self.stages.reductions.iter().flatten().copied().collect();
        let walk = |d: &usize| walk_of[all.iter().position(|known| known == d).expect("a reduction")];
        let walks: BTreeSet<usize> = reductions.iter().map(walk).collect();
        let of_walk = |number: usize| {
            let own: Vec<usize> = reductions.iter().copied().filter(|d| walk(d) == number).collect();
            self.groups_of_walk(&own, number, agree)
        };
        walks.into_iter().flat_map(of_walk).collect()
    }

    fn groups_of_walk(&self, reductions: &[usize], walk: usize, agree: &Agree) -> Vec<Group> {
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
    fn reducer(&self, d: usize, inputs: &[usize], takes: &[usize], positions: bool) -> Reducer {
        let element = self.element(d, inputs, takes);
        let (row, types) = (self.row(d), self.row_types(d, &element));
        let reducer = match self.form {
            Form::Plain => row.build(&types),
            Form::Direct => row.build_direct(&types).expect("a row with the form"),
        };
        element.adapt(reducer, row.takes_position, self.types, positions)
    }

    /// The types of the row of a reduction of such elements.
    fn row_types(&self, d: usize, element: &Element) -> RowTypes {
        let (call, results) = (&self.reduction(d).call, &self.typed.definitions[d]);
        types_in_region(call, element.dtype, results, self.body.accumulator, self.types)
    }

    /// The elements of a reduction, from these inputs and values.
    fn element(&self, d: usize, inputs: &[usize], takes: &[usize]) -> Element {
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

/// Inputs, old elements and values, in ascending order.
fn lists(needs: &Needs) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    let list = |set: &BTreeSet<usize>| set.iter().copied().collect();
    (list(&needs.inputs), list(&needs.old), list(&needs.values))
}
