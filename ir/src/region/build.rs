//! The computation of a body: its reductions in stages, its values of the slice, and its outputs.

use super::totals::by_name;
use super::{Body, BodyTypes, Definition, Reach, Reaches, Stages, Value};
use crate::expression::Expression;
use crate::ops::{
    Agree, Apply, Computation, Ending, Form, Source, Stage, Types, as_truth, in_expression, in_memory, stored,
};
use crate::{DType, Def, Expr, Lets};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

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
        if form == Form::Direct && !self.may_be_direct() {
            return None;
        }
        let below = self.with_exponentials_below();
        let body = below.as_ref().unwrap_or(self);
        let hoisted = match types.index {
            DType::I32 if !body.positions().is_empty() => body.narrowed().hoisted(),
            _ => body.hoisted(),
        };
        let mut builder = Builder { form, ..Builder::new(&hoisted, types) };
        let is_kept = |d: &usize| keep.contains(&hoisted.definitions[*d].names[0]) && builder.is_of_elements(*d);
        builder.kept = (0..hoisted.definitions.len()).filter(is_kept).collect();
        builder.has_form().then(|| builder.computation(walk_of, agree))
    }

    /// Returns true if the only reduction over the slice is a row with a direct form of some types.
    fn may_be_direct(&self) -> bool {
        let reductions = self.definitions.iter().filter_map(|definition| match &definition.value {
            Value::Reduction(reduction) if reduction.over.is_none() => Some(reduction),
            _ => None,
        });
        let mut rows = reductions.map(|reduction| reduction.call.as_row());
        matches!((rows.next(), rows.next()), (Some(Some(row)), None) if row.forms.direct.is_some())
    }

    /// For each reduction over the slice, in the order of the definitions, the inputs and indices that its elements
    /// are computed from, in ascending order.
    pub fn reads_of_reductions(&self) -> Vec<Vec<usize>> {
        let types =
            Types { inputs: vec![], mapped: vec![], outputs: vec![], count: 1, index: DType::I64, narrow: false };
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

/// The values that an expression is computed from.
#[derive(Default)]
pub(super) struct Needs {
    /// Inputs and indices, by their numbers.
    pub(super) inputs: BTreeSet<usize>,
    /// Old elements, by their outputs.
    pub(super) old: BTreeSet<usize>,
    /// Values of the slice, by their numbers.
    pub(super) values: BTreeSet<usize>,
    /// The definitions that are computed on the way.
    pub(super) definitions: BTreeSet<usize>,
}

/// The parts of a body from which computations are made.
#[derive(Clone)]
pub(super) struct Builder<'a> {
    pub(super) body: &'a Body,
    pub(super) types: &'a Types,
    pub(super) typed: BodyTypes,
    pub(super) stages: Stages,
    pub(super) reaches: Reaches<'a>,
    /// The definition of each name, and its place among the names.
    pub(super) defined: FxHashMap<&'a str, (usize, usize)>,
    pub(super) inputs: FxHashMap<&'a str, usize>,
    /// For each definition, the number of the first of its values of the slice.
    pub(super) values: Vec<Option<usize>>,
    /// For each definition that is a position, the number of its index.
    pub(super) indices: FxHashMap<usize, usize>,
    /// The form of the reducers.
    pub(super) form: Form,
    /// The definitions whose values are kept between visits, in ascending order.
    pub(super) kept: Vec<usize>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(body: &'a Body, types: &'a Types) -> Builder<'a> {
        let reaches = body.reaches();
        let names = body.definitions.iter().enumerate();
        let defined = names.flat_map(|(d, def)| def.names.iter().enumerate().map(move |(k, n)| (n.as_str(), (d, k))));
        let mut next = 0;
        let mut values = vec![];
        for def in &body.definitions {
            let is_value = match &def.value {
                Value::Reduction(reduction) => reduction.over.is_none(),
                Value::Expression(_) => matches!(reaches.of(&def.names[0]), Reach::Scalar | Reach::Slice),
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
            reaches,
            defined: defined.collect(),
            inputs: body.inputs.iter().enumerate().map(|(i, input)| (input.name.as_str(), i)).collect(),
            values,
            indices,
            form: Form::Plain,
            kept: vec![],
        }
    }

    /// The expression of the elements of a reduction.
    pub(super) fn of(&self, d: usize) -> &'a Expression {
        &self.reduction(d).of
    }

    /// The values that expressions are computed from, where the definitions `here` are computed too.
    pub(super) fn needs<'e>(&self, expressions: impl IntoIterator<Item = &'e Expression>, here: &[usize]) -> Needs {
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
    pub(super) fn input_type(&self, input: usize) -> DType {
        match (self.body.inputs.get(input), self.kept_at(input)) {
            (Some(input), _) => input.dtype,
            (None, Some(d)) => self.typed.definitions[d][0],
            (None, None) => self.types.index,
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
    pub(super) fn params(&self, inputs: &[usize], old: &[usize], values: &[usize]) -> Vec<DType> {
        let inputs = inputs.iter().map(|&i| in_memory(self.input_type(i)));
        let old = old.iter().map(|&o| in_memory(self.typed.outputs[o]));
        inputs.chain(old).chain(values.iter().map(|&v| in_memory(self.value_type(v)))).collect()
    }

    /// The values of all names that are needed: of parameters, then of definitions that are computed.
    pub(super) fn names(
        &self,
        lets: &mut Lets,
        args: &[Expr],
        (inputs, old, values): (&[usize], &[usize], &[usize]),
        definitions: &BTreeSet<usize>,
    ) -> Vec<(String, Expr)> {
        let accumulator = self.body.accumulator;
        let mut names: Vec<(String, Expr)> = vec![];
        let mut of_indices = vec![];
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
                    // In 64 bits, and in 32 if it has a second name; not bound, so that what no one names is not computed.
                    let both = [arg.clone().cast(DType::I64), arg.clone()];
                    of_indices.extend(definition.names.iter().cloned().zip(both));
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
        names.extend(of_indices);
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

    pub(super) fn expression(&self, lets: &mut Lets, expression: &Expression, names: &[(String, Expr)]) -> Expr {
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
            (0..self.body.outputs.len()).filter(|&o| self.reaches.outputs[o] == wanted).collect::<Vec<usize>>()
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
}

/// Inputs, old elements and values, in ascending order.
pub(super) fn lists(needs: &Needs) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    let list = |set: &BTreeSet<usize>| set.iter().copied().collect();
    (list(&needs.inputs), list(&needs.old), list(&needs.values))
}
