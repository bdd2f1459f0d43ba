//! The element that rows reduce.

use super::{Recipe, RecipeError, Types, in_field, in_memory, try_def};
use crate::ops::{Apply, Method, Phase, Reducer};
use crate::{DType, Def, Expr, Lets, Scalar};
use DType::{Bool, U8};

/// The element that rows reduce, as a definition over the mapped inputs.
pub(crate) struct Element {
    /// Its type.
    pub dtype: DType,
    /// (element of each mapped input) -> element; none if it is the one input's.
    map: Option<Def>,
    /// The mapped inputs' types in memory, and which of them is input 0.
    inputs: Vec<DType>,
    first: usize,
}

impl Element {
    pub(super) fn of(recipe: &Recipe, types: &Types) -> Result<Element, RecipeError> {
        let inputs: Vec<DType> = types.mapped.iter().map(|&i| in_memory(types.inputs[i].1)).collect();
        let first = types.mapped.iter().position(|&i| i == 0).unwrap_or(0);
        let Some(map) = &recipe.map else { return Ok(Element { dtype: types.inputs[0].1, map: None, inputs, first }) };
        let mut dtype = Bool;
        let def = try_def("map", &inputs, |lets, args| {
            let names = recipe.inputs(lets, &types.inputs, args, &types.mapped);
            let value = map.build(lets, &names, recipe.accumulator)?;
            dtype = value.dtype();
            Ok(vec![match dtype {
                Bool => value.select(Scalar::int(U8, 1).into(), Scalar::int(U8, 0).into()),
                _ => value,
            }])
        })
        .map_err(in_field("map"))?;
        Ok(Element { dtype, map: Some(def), inputs, first })
    }

    /// An input itself, among the inputs of these types in memory.
    pub(crate) fn of_input(dtype: DType, inputs: Vec<DType>, first: usize) -> Element {
        Element { dtype, map: None, inputs, first }
    }

    /// The result of a definition over inputs of these types in memory.
    pub(crate) fn of_map(dtype: DType, map: Def, inputs: Vec<DType>) -> Element {
        Element { dtype, map: Some(map), inputs, first: 0 }
    }

    /// The types of the first parameters of lifts.
    pub(super) fn params(&self) -> Vec<DType> {
        self.inputs.clone()
    }

    /// The reducer with lifts that take the mapped inputs, and the position where `positions` says so.
    pub(crate) fn adapt(&self, reducer: Reducer, takes_position: bool, types: &Types, positions: bool) -> Reducer {
        if self.map.is_none() && self.inputs.len() == 1 && takes_position == positions {
            return reducer;
        }
        // `before` parameters precede a lift's own.
        let adapted = |lift: &Def, before: usize| {
            let own = before + 1 + usize::from(takes_position);
            let position = positions.then(|| types.position());
            let elements = self.inputs.iter().copied().chain(position);
            let params: Vec<DType> = lift.params[..before]
                .iter()
                .copied()
                .chain(elements)
                .chain(lift.params[own..].iter().copied())
                .collect();
            Def::build(lift.name.clone(), &params, |lets, args| {
                let (state, args) = args.split_at(before);
                let (elements, rest) = args.split_at(self.inputs.len());
                let (position, earlier) = rest.split_at(usize::from(positions));
                let element = self.element(lets, elements);
                let position = if takes_position { position } else { &[] };
                lets.splice(lift, &[state, &[element], position, earlier].concat())
            })
        };
        let method = match reducer.method {
            Method::Phases { phases, merge, commutative, alone, search } => {
                let phases = phases.into_iter().map(|p| Phase {
                    lift: adapted(&p.lift, 0),
                    update: p.update.as_ref().map(|update| adapted(update, p.identity.len())),
                    ..p
                });
                let phases = phases.collect();
                Method::Phases { phases, merge, commutative, alone, search }
            }
            Method::Select { lift, what } => Method::Select { lift: adapted(&lift, 0), what },
        };
        let apply = reducer.apply.map(|apply| match (&self.map, apply.inputs.first()) {
            (Some(_), Some(0)) => {
                let params: Vec<DType> = self.inputs.iter().chain(&apply.def.params[1..]).copied().collect();
                let def = Def::build(apply.def.name.clone(), &params, |lets, args| {
                    let (elements, rest) = args.split_at(self.inputs.len());
                    let element = self.element(lets, elements);
                    lets.splice(&apply.def, &[&[element], rest].concat())
                });
                Apply { def, inputs: [&types.mapped, &apply.inputs[1..]].concat(), ..apply }
            }
            _ => apply,
        });
        Reducer { method, apply, ..reducer }
    }

    fn element(&self, lets: &mut Lets, elements: &[Expr]) -> Expr {
        match &self.map {
            None => elements[self.first].clone(),
            Some(map) => {
                let value = lets.splice(map, elements).remove(0);
                if value.args().is_empty() { value } else { lets.bind(value) }
            }
        }
    }
}
