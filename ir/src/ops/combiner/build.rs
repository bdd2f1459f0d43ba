//! The reducer of a combiner.

use super::{Combiner, OwnPhase};
use crate::expression::Expression;
use crate::ops::recipe::{Recipe, RecipeError, Types, in_expression, in_memory, try_def};
use crate::ops::{Method, Phase, Reducer, truth};
use crate::{DType, Def, Expr, Lets, Scalar};

/// A state: the types of its values in memory and in expressions, where truth values are bool.
struct States {
    nothing: Vec<Scalar>,
    types: Vec<DType>,
}

impl States {
    /// The types in memory.
    fn stored(&self) -> Vec<DType> {
        stored(&self.types)
    }
}

/// The types in memory: truth values are bytes.
fn stored(types: &[DType]) -> Vec<DType> {
    types.iter().copied().map(in_memory).collect()
}

/// The definition with its results in their memory types.
fn store(def: Def) -> Def {
    if def.results.iter().all(|r| r.dtype() != DType::Bool) {
        return def;
    }
    Def::build(def.name.clone(), &def.params, |lets, args| {
        let byte = |truth: bool| Expr::from(Scalar::int(DType::U8, truth.into()));
        let one = |v: Expr| if v.dtype() == DType::Bool { v.select(byte(true), byte(false)) } else { v };
        lets.splice(&def, args).into_iter().map(one).collect()
    })
}

/// A field as a definition over named arguments.
fn field(
    name: String,
    of: &'static str,
    params: &[DType],
    expressions: &[Expression],
    literal: DType,
    names: impl Fn(&mut Lets, &[Expr]) -> Vec<(String, Expr)>,
) -> Result<Def, RecipeError> {
    let def = try_def(&name, params, |lets, args| {
        let names = names(lets, args);
        expressions.iter().map(|f| f.build(lets, &names, literal)).collect()
    });
    def.map_err(|error| RecipeError::Expression { field: of, error })
}

/// Values of a state of these types by their names.
fn numbered(letter: char, values: &[Expr], types: &[DType]) -> Vec<(String, Expr)> {
    let value = |v: &Expr, dtype| if dtype == DType::Bool { truth::is_true(v.clone()) } else { v.clone() };
    let named = values.iter().zip(types).enumerate();
    named.map(|(i, (v, &dtype))| (format!("{letter}{i}"), value(v, dtype))).collect()
}

/// Refuses a definition whose results are not of these types.
fn gives(field: &'static str, def: &Def, types: &[DType]) -> Result<(), RecipeError> {
    let given = results(def);
    if given.len() != types.len() {
        return Err(RecipeError::Width { field, given: given.len(), expected: types.len() });
    }
    match given.iter().zip(types).position(|(g, t)| g != t) {
        None => Ok(()),
        Some(index) => Err(RecipeError::Type { field, index, given: given[index], expected: types[index] }),
    }
}

impl Combiner {
    /// The types of the outputs' values.
    pub(in crate::ops) fn output_types(
        &self,
        recipe: &Recipe,
        inputs: &[(String, DType)],
    ) -> Result<Vec<DType>, RecipeError> {
        let all: Vec<usize> = (0..inputs.len()).collect();
        let types =
            Types { inputs: inputs.to_vec(), mapped: all, outputs: vec![], count: 1, index: DType::I64, narrow: false };
        // Lift gets the position in any case, also if no field reads it.
        let state = self.method(recipe, &types, true)?.1;
        let def = self.values(recipe, &types, &state)?;
        Ok(results(&def))
    }

    /// The reducer over the mapped inputs, whose outputs have the types of `results`.
    pub(in crate::ops) fn reducer(
        &self,
        recipe: &Recipe,
        types: &Types,
        results: &[DType],
    ) -> Result<Reducer, RecipeError> {
        let (method, state) = self.method(recipe, types, recipe.takes_position())?;
        let values = self.values(recipe, types, &state)?;
        let finish = Def::build("finish", &state.stored(), |lets, args| {
            let values = lets.splice(&values, args);
            values.into_iter().zip(results).map(|(v, &to)| recipe.give(lets, v, to)).collect()
        });
        Ok(Reducer { method, finish, reads: vec![], nothing: state.nothing, apply: None })
    }

    /// The phases, whose lifts take the position where `positions` says so, and the state of a block.
    fn method(&self, recipe: &Recipe, types: &Types, positions: bool) -> Result<(Method, States), RecipeError> {
        let literal = recipe.accumulator;
        let mut state = States { nothing: vec![], types: vec![] };
        let mut phases = vec![];
        for (k, own) in self.phases.iter().enumerate() {
            let (phase, results) = self.one_phase(k, own, recipe, types, &state.types, positions)?;
            let zero = Scalar::int(literal, 0);
            state.nothing.extend(match &phase.close {
                None => phase.identity.clone(),
                Some(close) => close.eval(&[phase.identity.as_slice(), &[zero]].concat()),
            });
            state.types.extend(results);
            phases.push(phase);
        }
        let merge = match self.phases.len() {
            1 if self.phases[0].close.is_empty() => phases[0].combine.clone(),
            _ => both("merge".into(), "merge", &self.merge, &state.types, literal)?,
        };
        Ok((Method::Phases { phases, merge, commutative: self.commutative, alone: vec![], search: None }, state))
    }

    /// The outputs of a state, as values.
    fn values(&self, recipe: &Recipe, types: &Types, state: &States) -> Result<Def, RecipeError> {
        let count = Scalar::int(recipe.accumulator, types.count.into());
        let named = |args: &[Expr]| numbered('a', args, &state.types);
        if self.finish.is_empty() {
            return Ok(Def::build("values", &state.stored(), |_, args| {
                named(args).into_iter().map(|(_, value)| value).collect()
            }));
        }
        // The number of elements is a value here, so it does not decide which expressions are accepted.
        let params = [state.stored().as_slice(), &[recipe.accumulator]].concat();
        let def = field("values".into(), "finish", &params, &self.finish, recipe.accumulator, |_, args| {
            let (values, n) = args.split_at(args.len() - 1);
            [named(values), vec![("n".into(), n[0].clone())]].concat()
        })?;
        Ok(Def::build("values", &state.stored(), |lets, args| lets.splice(&def, &[args, &[count.into()]].concat())))
    }

    /// A phase, and the types of its results.
    fn one_phase(
        &self,
        k: usize,
        own: &OwnPhase,
        recipe: &Recipe,
        types: &Types,
        earlier: &[DType],
        positions: bool,
    ) -> Result<(Phase, Vec<DType>), RecipeError> {
        let literal = recipe.accumulator;
        let identity = field("identity".into(), "identity", &[], &own.identity, literal, |_, _| vec![])?;
        let state = results(&identity);
        let identity = store(identity).eval(&[]);
        let elements = types.mapped.iter().map(|&i| in_memory(types.inputs[i].1));
        let position = positions.then(|| types.position());
        let params: Vec<DType> = elements.chain(position).chain(stored(earlier)).collect();
        let lift = field(format!("lift_{k}"), "lift", &params, &own.lift, literal, |lets, args| {
            let (elements, rest) = args.split_at(types.mapped.len());
            let (position, results) = rest.split_at(usize::from(positions));
            let named = types.mapped.iter().zip(elements);
            let mut names: Vec<(String, Expr)> = named
                .map(|(&i, x)| {
                    let (name, dtype) = &types.inputs[i];
                    (name.clone(), lets.bind(in_expression(x.clone(), *dtype, literal)))
                })
                .collect();
            names.extend(position.iter().map(|p| ("i".into(), p.clone().cast(DType::I64))));
            names.extend(numbered('r', results, earlier));
            names
        })?;
        gives("lift", &lift, &state)?;
        let combine = both(format!("combine_{k}"), "combine", &own.combine, &state, literal)?;
        let mut results_of = state.clone();
        let close = match own.close.is_empty() {
            true => None,
            false => {
                let params = [stored(&state).as_slice(), &[literal]].concat();
                let close = field(format!("close_{k}"), "close", &params, &own.close, literal, |_, args| {
                    let (values, n) = args.split_at(args.len() - 1);
                    [numbered('a', values, &state), vec![("n".into(), n[0].clone())]].concat()
                })?;
                results_of = results(&close);
                Some(store(close))
            }
        };
        Ok((Phase { identity, lift: store(lift), combine, update: None, close }, results_of))
    }
}

/// A field that combines two states.
fn both(
    name: String,
    of: &'static str,
    expressions: &[Expression],
    state: &[DType],
    literal: DType,
) -> Result<Def, RecipeError> {
    let params = [stored(state), stored(state)].concat();
    let def = field(name, of, &params, expressions, literal, |_, args| {
        let (older, newer) = args.split_at(state.len());
        [numbered('a', older, state), numbered('b', newer, state)].concat()
    })?;
    gives(of, &def, state)?;
    Ok(store(def))
}

/// The types of a definition's results.
fn results(def: &Def) -> Vec<DType> {
    def.results.iter().map(Expr::dtype).collect()
}
