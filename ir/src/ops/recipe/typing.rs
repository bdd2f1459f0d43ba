//! The types of expressions and of their results.

use super::{OpCall, Recipe, RecipeError, ResultKind, in_field, in_memory};
use crate::expression::{Expression, ExpressionError};
use crate::{DType, Def, Expr, Lets};
use DType::{Bool, F32, F64, I32, I64, U64};

/// A definition whose body may be refused.
pub(in crate::ops) fn try_def(
    name: &str,
    params: &[DType],
    body: impl FnOnce(&mut Lets, &[Expr]) -> Result<Vec<Expr>, ExpressionError>,
) -> Result<Def, ExpressionError> {
    let mut error = None;
    let def = Def::build(name, params, |lets, args| {
        body(lets, args).unwrap_or_else(|e| {
            error = Some(e);
            vec![]
        })
    });
    error.map_or(Ok(def), Err)
}

impl Recipe {
    /// The type of the elements that are reduced: the map's, or input 0's without a map.
    ///
    /// # Errors
    /// If the map is refused.
    pub fn element(&self, inputs: &[(String, DType)]) -> Result<DType, RecipeError> {
        match &self.map {
            None => Ok(inputs[0].1),
            Some(map) => self.type_of(map, "map", inputs, &[]),
        }
    }

    /// The type of an expression over inputs and results.
    fn type_of(
        &self,
        expression: &Expression,
        field: &'static str,
        inputs: &[(String, DType)],
        results: &[(String, DType)],
    ) -> Result<DType, RecipeError> {
        let params: Vec<DType> =
            inputs.iter().map(|&(_, d)| in_memory(d)).chain(results.iter().map(|&(_, d)| d)).collect();
        let def = try_def(field, &params, |lets, args| {
            let (elements, results_here) = args.split_at(inputs.len());
            let mut names = self.inputs(lets, inputs, elements, &(0..inputs.len()).collect::<Vec<_>>());
            names.extend(results.iter().zip(results_here).map(|((name, _), r)| (name.clone(), r.clone())));
            let literal = results.first().map_or(self.accumulator, |&(_, d)| d);
            Ok(vec![expression.build(lets, &names, if literal == Bool { F32 } else { literal })?])
        });
        Ok(def.map_err(in_field(field))?.results[0].dtype())
    }

    /// Returns each output's kind and the type of its value before that is rounded to the output. Map, lifts and
    /// `apply` read `inputs`, `then` reads `beside`; `given` are the outputs' explicit types.
    ///
    /// # Errors
    /// If an expression is refused.
    pub fn values(
        &self,
        inputs: &[(String, DType)],
        beside: &[(String, DType)],
        given: &[Option<DType>],
    ) -> Result<Vec<(ResultKind, DType)>, RecipeError> {
        let element = self.element(inputs)?;
        let to_float = given.iter().flatten().any(|d| d.is_float());
        let mut plain = vec![];
        let mut working = vec![];
        for call in &self.calls {
            for (kind, value) in self.plain_types(call, element, inputs)? {
                plain.push((kind, value));
                working.push(self.working_type(kind, value, to_float));
            }
        }
        let mut named: Vec<(String, DType)> =
            working.into_iter().enumerate().map(|(i, d)| (format!("r{i}"), d)).collect();
        if let Some(expression) = &self.apply {
            return Ok(vec![(ResultKind::Value, self.type_of(expression, "apply", inputs, &named)?)]);
        }
        if self.then.is_empty() {
            return Ok(plain);
        }
        let typed = self.then.iter().enumerate().map(|(o, expression)| {
            // The old element has the output's type; without an explicit one, the first result's.
            let results: Vec<DType> = named.iter().map(|&(_, d)| d).collect();
            let old = given.get(o).copied().flatten();
            let old = old.map_or(results[0], |d| old_type(d, &results, self.accumulator));
            named.push(("d".into(), old));
            let typed = self.type_of(expression, "then", beside, &named);
            named.pop();
            Ok((ResultKind::Value, typed?))
        });
        typed.collect()
    }

    /// The kinds of a reducer's results, and the types of their values.
    pub(super) fn plain_types(
        &self,
        call: &OpCall,
        element: DType,
        inputs: &[(String, DType)],
    ) -> Result<Vec<(ResultKind, DType)>, RecipeError> {
        let value = |kind| match kind {
            ResultKind::Value => element,
            ResultKind::Accumulated => self.accumulator,
            ResultKind::Count => I64,
        };
        Ok(match call {
            OpCall::Row { .. } => call.results().into_iter().map(|kind| (kind, value(kind))).collect(),
            OpCall::Own(own) => own.output_types(self, inputs)?.into_iter().map(|d| (ResultKind::Value, d)).collect(),
        })
    }

    /// The type of a result in the expressions that follow.
    pub(super) fn working_type(&self, kind: ResultKind, element: DType, to_float: bool) -> DType {
        match (kind, element) {
            (ResultKind::Count, _) => I64,
            (_, Bool) => Bool,
            (_, d) if d.is_float() => self.accumulator,
            _ if to_float => F64,
            (_, d) if d.is_signed() => I64,
            _ => U64,
        }
    }
}

/// The type that an expression of literals alone has.
pub(super) fn literal_of(results: &[DType]) -> DType {
    results.first().copied().filter(|&d| d != Bool).unwrap_or(F32)
}

/// The type of an element in expressions.
pub(crate) fn expression_type(dtype: DType, accumulator: DType) -> DType {
    match dtype {
        Bool => Bool,
        d if d.is_float() => accumulator,
        d if d.bytes() < 4 => I32,
        d => d,
    }
}

/// The type of an output's old element in expressions: an integer has the results' type, if they are integers.
pub(super) fn old_type(output: DType, results: &[DType], accumulator: DType) -> DType {
    match (output, results.first()) {
        (d, Some(&r)) if d.is_int() && r.is_int() => r,
        (d, _) => expression_type(d, accumulator),
    }
}

/// An element as expressions see it.
pub(crate) fn in_expression(x: Expr, dtype: DType, accumulator: DType) -> Expr {
    match dtype {
        Bool => {
            let zero = x.int(0);
            x.ne(zero)
        }
        d if d.is_float() => x.cast(accumulator),
        d if d.bytes() < 4 => x.cast(I32),
        _ => x,
    }
}
