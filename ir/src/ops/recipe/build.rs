//! The computation of a recipe.

use super::element::Element;
use super::typing::{literal_of, old_type};
use super::{OpCall, Recipe, RecipeError, Types, in_expression, in_field, in_memory, try_def};
use crate::expression::Expression;
use crate::ops::product::{self, Members};
use crate::ops::{
    Agree, Apply, Computation, Ending, Form, Group, Reducer, ResultKind, RowTypes, Source, Stage, float, integer,
    invariant, truth,
};
use crate::{DType, Def, Expr, Lets, Scalar};
use DType::{Bool, I64, U8};

impl Recipe {
    /// The names of inputs with their values in expressions; `args` are the elements of the inputs in `which`.
    pub(super) fn inputs(
        &self,
        lets: &mut Lets,
        inputs: &[(String, DType)],
        args: &[Expr],
        which: &[usize],
    ) -> Vec<(String, Expr)> {
        let named = which.iter().zip(args).map(|(&i, x)| {
            let (name, dtype) = &inputs[i];
            let value = in_expression(x.clone(), *dtype, self.accumulator);
            let value = if value.args().is_empty() { value } else { lets.bind(value) };
            (name.clone(), value)
        });
        named.collect()
    }

    /// The computation in a form; of reductions that `agree`, one takes part in a phase of the other. A row among others has the plain form only: another form would change their common
    /// monoids.
    ///
    /// # Errors
    /// If an expression is refused, or [`RecipeError::NoForm`].
    ///
    /// # Panics
    /// If a row does not take the elements' type, which the spec has refused.
    pub fn computation(&self, types: &Types, form: Form, agree: &Agree) -> Result<Computation, RecipeError> {
        if form == Form::Direct && !self.may_be_direct() {
            return Err(self.no_form(form));
        }
        let element = Element::of(self, types)?;
        let mut outputs = types.outputs.iter().copied();
        let (mut results, mut reducers, mut numbers) = (vec![], vec![], vec![]);
        for call in &self.calls {
            let plain = self.plain_types(call, element.dtype, &types.inputs)?;
            let own: Vec<DType> =
                plain.into_iter().map(|(kind, value)| self.result_type(kind, value, types, &mut outputs)).collect();
            reducers.push(self.one(call, &element, types, &own, form)?);
            numbers.push(results.len()..results.len() + own.len());
            results.extend(own);
        }
        let positions = self.takes_position();
        let own: Vec<bool> = self.calls.iter().map(|call| matches!(call, OpCall::Own(_))).collect();
        let product =
            |members: Vec<Reducer>, alone| product::product(members, alone, &element.params(), positions, types.count);
        let groups = product::groups(&reducers, &own, (0, agree));
        if let [Members { alone, numbers }] = groups.as_slice() {
            let mut reducers: Vec<Option<Reducer>> = reducers.into_iter().map(Some).collect();
            let members = numbers.iter().filter_map(|&i| reducers[i].take()).collect();
            let mut whole = product(members, alone.clone());
            self.ends(&mut whole, &results, types)?;
            return Ok(Computation::of_one(self.name(), invariant::once(whole), types.mapped.clone(), positions));
        }
        let name = |members: &Members| {
            let calls = members.numbers.iter().map(|&i| self.calls[i].clone()).collect();
            Recipe { calls, ..self.clone() }.name()
        };
        let group = |members: &Members| Group {
            name: name(members),
            reducer: product(members.numbers.iter().map(|&i| reducers[i].clone()).collect(), members.alone.clone()),
            inputs: types.mapped.clone(),
            takes_position: positions,
            takes: vec![],
            results: members.numbers.iter().flat_map(|&i| numbers[i].clone()).collect(),
            walk: 0,
        };
        let stage = Stage { groups: groups.iter().map(group).collect(), end: None };
        self.after_groups(stage, &results, types)
    }

    /// The computation of one stage of several groups.
    fn after_groups(&self, stage: Stage, results: &[DType], types: &Types) -> Result<Computation, RecipeError> {
        let stored: Vec<DType> = results.iter().map(|&d| in_memory(d)).collect();
        let same = Def::build("results", &stored, |_, args| args.to_vec());
        let method = stage.groups[0].reducer.method.clone();
        let mut whole = Reducer { method, finish: same, reads: vec![], nothing: vec![], apply: None };
        self.ends(&mut whole, results, types)?;
        let whole = invariant::once(whole);
        let ending = |results| Ending {
            def: whole.finish.clone(),
            takes: (0..stored.len()).collect(),
            reads: whole.reads.clone(),
            results,
        };
        if whole.apply.is_none() {
            let outputs = (!self.then.is_empty()).then(|| ending((0..types.outputs.len()).collect()));
            return Ok(Computation { stages: vec![stage], outputs, apply: None, kept: vec![] });
        }
        // The values that are hoisted out of the positions follow the results.
        let all = 0..whole.finish.results.len();
        let end = (all.len() > stored.len()).then(|| {
            let Ending { mut def, takes, reads, .. } = ending(vec![]);
            def.results.drain(..stored.len());
            Ending { def, takes, reads, results: (stored.len()..all.len()).collect() }
        });
        let apply = whole.apply.map(|apply| Apply { takes: all.collect(), ..apply });
        Ok(Computation { stages: vec![Stage { end, ..stage }], outputs: None, apply, kept: vec![] })
    }

    /// Adds the expressions after the reduction to a reducer.
    fn ends(&self, whole: &mut Reducer, results: &[DType], types: &Types) -> Result<(), RecipeError> {
        if !self.then.is_empty() {
            self.then(whole, results, types)?;
        }
        if let Some(expression) = &self.apply {
            whole.apply = Some(self.apply(expression, results, types)?);
        }
        Ok(())
    }

    /// Returns true if the only reducer is a row with a direct form of some types.
    fn may_be_direct(&self) -> bool {
        matches!(&self.calls[..], [call] if call.as_row().is_some_and(|row| row.forms.direct.is_some()))
    }

    fn no_form(&self, form: Form) -> RecipeError {
        RecipeError::NoForm { name: self.name(), form }
    }

    /// The type of a result of finish: the output's, or one to compute with.
    fn result_type(
        &self,
        kind: ResultKind,
        value: DType,
        types: &Types,
        outputs: &mut impl Iterator<Item = DType>,
    ) -> DType {
        if self.then.is_empty() && self.apply.is_none() {
            return match self.applies() {
                // A row that writes each position rounds its outputs itself.
                true => types.outputs[0],
                false => outputs.next().expect("an output for each result"),
            };
        }
        self.working_type(kind, value, types.outputs.iter().any(|d| d.is_float()))
    }

    /// The reducer of one call, whose lifts take the elements of the mapped inputs.
    fn one(
        &self,
        call: &OpCall,
        element: &Element,
        types: &Types,
        results: &[DType],
        form: Form,
    ) -> Result<Reducer, RecipeError> {
        let row = match call {
            OpCall::Own(own) => return own.reducer(self, types, results),
            OpCall::Row { .. } => call.as_row().expect("a row of the table"),
        };
        let value = row.results.iter().position(|&r| r != ResultKind::Count).map(|i| results[i]);
        let count = row.results.iter().position(|&r| r == ResultKind::Count).map(|i| results[i]);
        // With a map, the inputs after the first are the map's.
        let further = types.inputs.iter().skip(1).filter(|_| self.map.is_none());
        let extra = further.take(row.inputs - 1).map(|&(_, d)| in_memory(d)).collect();
        let row_types = RowTypes {
            input: in_memory(element.dtype),
            output: in_memory(value.unwrap_or(element.dtype)),
            outputs: results.iter().map(|&d| in_memory(d)).collect(),
            count_output: count.unwrap_or(I64),
            position: types.position(),
            narrow: types.narrow,
            truth: element.dtype == Bool,
            extra,
            accumulator: self.accumulator,
            count: types.count,
            params: call.params(),
            saturate: self.saturate,
            half_even: self.half_even,
        };
        let reducer = match form {
            Form::Plain => row.build(&row_types),
            Form::Direct => row.build_direct(&row_types).ok_or_else(|| self.no_form(form))?,
        };
        Ok(element.adapt(reducer, row.takes_position, types, self.takes_position()))
    }

    fn then(&self, whole: &mut Reducer, results: &[DType], types: &Types) -> Result<(), RecipeError> {
        let uses = |name: &str| self.then.iter().any(|f| f.uses(name));
        let inputs: Vec<usize> = (0..types.inputs.len()).filter(|&i| uses(&types.inputs[i].0)).collect();
        let old: Vec<usize> = (0..self.then.len()).filter(|&o| self.then[o].uses("d")).collect();
        let state = whole.finish.params.clone();
        let reads = inputs.iter().map(|&i| in_memory(types.inputs[i].1));
        let params: Vec<DType> =
            state.iter().copied().chain(reads).chain(old.iter().map(|&o| in_memory(types.outputs[o]))).collect();
        let finish = try_def("finish", &params, |lets, args| {
            let (state, rest) = args.split_at(state.len());
            let (elements, olds) = rest.split_at(inputs.len());
            let values = lets.splice(&whole.finish, state);
            let mut names = result_names(lets, values, results);
            names.extend(self.inputs(lets, &types.inputs, elements, &inputs));
            let mut given = vec![];
            for (o, expression) in self.then.iter().enumerate() {
                let mut names = names.clone();
                if let Some(at) = old.iter().position(|&n| n == o) {
                    let old = in_expression(olds[at].clone(), types.outputs[o], self.accumulator);
                    names.push(("d".into(), old.cast(old_type(types.outputs[o], results, self.accumulator))));
                }
                let value = expression.build(lets, &names, literal_of(results))?;
                given.push(self.give(lets, value, types.outputs[o]));
            }
            Ok(given)
        })
        .map_err(in_field("then"))?;
        whole.finish = finish;
        whole.reads = inputs.into_iter().map(Source::Input).chain(old.into_iter().map(Source::Old)).collect();
        Ok(())
    }

    fn apply(&self, expression: &Expression, results: &[DType], types: &Types) -> Result<Apply, RecipeError> {
        let uses = |name: &str| expression.uses(name);
        let inputs: Vec<usize> = (0..types.inputs.len()).filter(|&i| uses(&types.inputs[i].0)).collect();
        let elements = inputs.iter().map(|&i| in_memory(types.inputs[i].1));
        let params: Vec<DType> = elements.chain(results.iter().map(|&d| in_memory(d))).collect();
        let def = try_def("apply", &params, |lets, args| {
            let (elements, values) = args.split_at(inputs.len());
            let mut names = self.inputs(lets, &types.inputs, elements, &inputs);
            names.extend(result_names(lets, values.to_vec(), results));
            let value = expression.build(lets, &names, literal_of(results))?;
            Ok(vec![self.give(lets, value, types.outputs[0])])
        })
        .map_err(in_field("apply"))?;
        Ok(Apply { def, inputs, old: vec![], takes: vec![], outputs: vec![0] })
    }

    /// The value of an expression in an output's type.
    pub(in crate::ops) fn give(&self, lets: &mut Lets, value: Expr, output: DType) -> Expr {
        let rounding = RowTypes {
            output: in_memory(output),
            saturate: self.saturate,
            half_even: self.half_even,
            ..RowTypes::of(in_memory(output), value.dtype())
        };
        match value.dtype() {
            Bool if output == Bool => value.select(Scalar::int(U8, 1).into(), Scalar::int(U8, 0).into()),
            Bool => value.cast(output),
            _ if output == Bool => {
                let zero = Scalar::zero(value.dtype()).into();
                value.ne(zero).select(Scalar::int(U8, 1).into(), Scalar::int(U8, 0).into())
            }
            d if d.is_float() => float::give(lets, value, &rounding),
            _ => integer::give(lets, value, &rounding),
        }
    }
}

/// The results by their names `r0`, `r1` and so on.
fn result_names(lets: &mut Lets, values: Vec<Expr>, results: &[DType]) -> Vec<(String, Expr)> {
    let named = values.into_iter().zip(results).enumerate().map(|(i, (value, &dtype))| {
        let value = if dtype == Bool { truth::is_true(value) } else { value };
        (format!("r{i}"), lets.bind(value))
    });
    named.collect()
}
