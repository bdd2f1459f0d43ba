//! The validation of specs, common to text, dims and builder.

use super::boxes;
use super::build::{Builder, Given, Named};
use super::error::INPUT;
use super::{MAX_RANK, Operand, Role, Rounding, Spec, SpecError, expression_names};
use crate::layout::{Layout, list};
use cranefold_ir::DType::{self, *};
use cranefold_ir::expression::{self, Expression};
use cranefold_ir::ops::{Form, OpCall, Recipe, RecipeError, ResultKind, Row, Types};
use std::slice;

/// Returns the spec, if it is valid.
pub(super) fn checked(builder: Builder) -> Result<Spec, SpecError> {
    if builder.region.is_some() {
        return super::region::built(builder);
    }
    let reducers = builder.reducers.iter().map(Named::resolve).collect::<Result<Vec<_>, _>>()?;
    let expressions = Texts::of(&builder)?;
    let name = name_of(&reducers);
    check_together(&reducers, &expressions)?;
    let inputs = inputs(&builder, name, &reducers, &expressions)?;
    let shape = inputs[0].shape.clone();
    let reduced = mask(builder.axes.as_deref(), shape.len())?;
    let none_reduced = !reduced.contains(&true);
    let applies = expressions.apply.is_some() || reducers.iter().any(|c| c.as_row().is_some_and(|row| row.applies));
    let keep_dims = builder.keep_dims && !none_reduced && !applies;
    let out_shape = if applies { shape.clone() } else { super::shape_without(&shape, &reduced, keep_dims) };

    check_roles(&inputs, &reducers, &expressions)?;
    let recipe = recipe(&builder, &reducers, &expressions, &inputs)?;
    let outputs = output_types(&builder, &recipe, &inputs, &shape, &reduced)?;
    check_used(&inputs, &reducers, &expressions)?;
    let element = recipe.element(&typed(&inputs)).map_err(in_spec)?;
    check_types(&builder, &recipe, element, &outputs)?;
    let alone =
        expressions.map.is_none() && expressions.then.is_empty() && expressions.apply.is_none() && reducers.len() == 1;
    let copies = alone && reducers[0].as_row().is_some_and(|row| row.identity_over_no_axes);
    if none_reduced && builder.lift == Some(false) && !copies {
        return Err(SpecError::NoIdentity { op: name });
    }
    let nothing = (0..shape.len()).find(|&axis| reduced[axis] && shape[axis] == 0);
    if let Some(axis) = nothing
        && !out_shape.contains(&0)
        && let Some(row) = without_value(&recipe, element, &outputs)
    {
        return Err(match row.takes_position {
            true => SpecError::PositionOverNothing { op: row.name, axis },
            false => SpecError::IntegerOverNothing { op: row.name, axis },
        });
    }
    let mut spec = Spec {
        hash: 0,
        lift: none_reduced && copies && builder.lift == Some(true),
        inputs,
        outputs: vec![],
        map: expressions.map,
        then: expressions.then,
        apply: expressions.apply,
        body: None,
        shape,
        order: builder.order,
        lost: vec![(!applies).then(|| reduced.clone()); outputs.len()],
        accumulator: element.is_float().then_some(recipe.accumulator),
        saturate: builder.saturate,
        rounding: match (builder.trunc, builder.half_even) {
            (true, _) if outputs.iter().any(|o| o.rounded) => Some(Rounding::Trunc),
            (_, true) => Some(Rounding::HalfEven),
            _ => None,
        },
        reducers,
        reduced,
        keep_dims,
    };
    place_outputs(&mut spec, &builder, &outputs, out_shape, applies)?;
    check_then_inputs(&spec)?;
    boxes::check(&spec)?;
    let selects = spec.reducers[0].as_row().is_some_and(|row| row.selects);
    // A row that writes each position stands alone, but for a map, whose type has been found.
    let is_region = spec.reducers[0].as_row().is_some_and(|row| row.applies);
    if !is_region && (!alone || selects || matches!(spec.reducers[0], OpCall::Own(_))) {
        let types = Types {
            inputs: typed(&spec.inputs),
            mapped: spec.mapped(),
            outputs: outputs.iter().map(|o| o.dtype).collect(),
            count: spec.reduced_count(),
            index: DType::I64,
            narrow: false,
        };
        let computation =
            spec.recipe_as_written().computation(&types, Form::Plain, &|_, _, _| false).map_err(in_spec)?;
        let state = computation.groups().map(|group| group.reducer.method.state_bytes()).max();
        let (given, element_bytes) = (spec.reduced_count(), state.unwrap_or(0));
        let gathered = given.checked_mul(element_bytes).filter(|&bytes| bytes <= MAX_GATHERED_BYTES);
        if selects && gathered.is_none() && spec.outputs[0].elems() > 0 {
            return Err(SpecError::TooManyToSelect { op: name, given, element_bytes, limit: MAX_GATHERED_BYTES });
        }
    }
    Ok(spec.hashed())
}

/// Adds the outputs, each in its layout.
fn place_outputs(
    spec: &mut Spec,
    builder: &Builder,
    outputs: &[OutputType],
    shape: Vec<u64>,
    applies: bool,
) -> Result<(), SpecError> {
    for (o, output) in outputs.iter().enumerate() {
        let given = builder.outputs.get(o).and_then(|(_, layout)| layout.clone()).unwrap_or_default();
        let layout = match given.is_any() {
            true => spec.inputs[0].layout.kept(&spec.reduced, spec.keep_dims || applies, &shape, &given),
            false => given,
        };
        let name = format!("output {o}");
        let output = operand(Role::Output, &name, output.dtype, shape.clone(), layout)?;
        let disjoint = output.placement.check_disjoint();
        disjoint.map_err(|error| SpecError::Layout { operand: name, error })?;
        spec.outputs.push(output);
    }
    Ok(())
}

fn in_spec(error: RecipeError) -> SpecError {
    SpecError::Recipe(error)
}

/// The expressions of a spec.
struct Texts {
    map: Option<Expression>,
    then: Vec<Expression>,
    apply: Option<Expression>,
}

impl Texts {
    fn of(builder: &Builder) -> Result<Texts, SpecError> {
        let list = |field: &'static str, given: &Option<super::build::Expressions>| match given {
            None => Ok(vec![]),
            Some(expressions) => {
                expressions.0.clone().map_err(|error| in_spec(RecipeError::Expression { field, error }))
            }
        };
        let one = |field: &'static str, given| match <[Expression; 1]>::try_from(list(field, given)?) {
            Ok([one]) => Ok(Some(one)),
            Err(list) if list.is_empty() => Ok(None),
            Err(list) => Err(SpecError::OneExpression { field, given: list.len() }),
        };
        Ok(Texts {
            map: one("map", &builder.map)?,
            then: list("then", &builder.then)?,
            apply: one("apply", &builder.apply)?,
        })
    }
}

/// The op's name in messages.
fn name_of(reducers: &[OpCall]) -> &'static str {
    match &reducers[0] {
        OpCall::Row { name, .. } => name,
        OpCall::Own(_) => "combiner",
    }
}

/// Refuses reducers and expressions that do not go together, or too many of them.
fn check_together(reducers: &[OpCall], expressions: &Texts) -> Result<(), SpecError> {
    let phases = |c: &OpCall| if let OpCall::Own(own) = c { own.phases.len() } else { 1 };
    let results: usize = reducers.iter().map(|c| c.results().len()).sum();
    let most = reducers.iter().map(phases).max().unwrap_or(0).max(results).max(expressions.then.len());
    if most > MAX_OPERANDS {
        return Err(SpecError::TooManyParts { given: most, limit: MAX_OPERANDS });
    }
    for call in reducers {
        let Some(row) = call.as_row() else { continue };
        let with = match () {
            _ if reducers.len() > 1 && (row.applies || row.selects) => "other reducers",
            _ if row.applies && !expressions.then.is_empty() => "`then`",
            _ if row.applies && expressions.apply.is_some() => "`apply`",
            _ => continue,
        };
        return Err(SpecError::StandsAlone { op: row.name, with });
    }
    if !expressions.then.is_empty() && expressions.apply.is_some() {
        return Err(SpecError::ThenAndApply);
    }
    if expressions.map.is_some() && reducers.iter().any(|c| matches!(c, OpCall::Own(_))) {
        return Err(SpecError::MapWithCombiner);
    }
    Ok(())
}

/// The inputs' names in expressions, and their types.
fn typed(inputs: &[Operand]) -> Vec<(String, DType)> {
    expression_names(inputs).into_iter().zip(inputs.iter().map(|i| i.dtype)).collect()
}

/// The names and types of all inputs but the ones of a role.
fn typed_but(role: &Role, inputs: &[Operand]) -> Vec<(String, DType)> {
    typed(inputs).into_iter().zip(inputs).filter(|(_, input)| input.role != *role).map(|(typed, _)| typed).collect()
}

/// The inputs in the order of a call.
fn inputs(
    builder: &Builder,
    op: &'static str,
    reducers: &[OpCall],
    expressions: &Texts,
) -> Result<Vec<Operand>, SpecError> {
    let row = reducers[0].as_row();
    let own = reducers.iter().any(|c| matches!(c, OpCall::Own(_)));
    let free = expressions.map.is_some() || expressions.apply.is_some() || own;
    let most = if free { usize::MAX } else { row.map_or(1, |row| row.inputs) };
    if builder.inputs.is_empty() || builder.inputs.len() > most {
        return Err(SpecError::InputCount { op, expected: most.min(MAX_OPERANDS), given: builder.inputs.len() });
    }
    if let Some(row) = row
        && builder.inputs.iter().take(row.inputs).skip(1).any(|given| given.dtype == Bool)
        && !free
    {
        return Err(SpecError::TypeRefused {
            op: row.name,
            given: Bool,
            accepted: "numbers for its further inputs".into(),
        });
    }
    if let Some(row) = row
        && expressions.map.is_some()
        && row.inputs > 1
        && builder.inputs.len() > 1
    {
        return Err(SpecError::InputsWithMap { op: row.name, given: builder.inputs.len() });
    }
    let operands = builder.inputs.len() + builder.thens.len() + builder.scalars.len();
    if operands > MAX_OPERANDS {
        return Err(SpecError::TooManyInputs { given: operands, limit: MAX_OPERANDS });
    }
    let given = |role: Role, letter: char| {
        move |(i, g): (usize, &Given)| {
            let name = if letter == 'x' { format!("input {i}") } else { format!("input {letter}{i}") };
            operand(role.clone(), &name, g.dtype, g.shape.clone(), g.layout.clone())
        }
    };
    let mut inputs: Vec<Operand> =
        builder.inputs.iter().enumerate().map(given(Role::Element, 'x')).collect::<Result<_, _>>()?;
    inputs.extend(builder.thens.iter().enumerate().map(given(Role::Then, 'y')).collect::<Result<Vec<_>, _>>()?);
    for (n, (name, dtype)) in builder.scalars.iter().enumerate() {
        let numbered = |c: char| name.strip_prefix(c).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
        let taken = ["d", "i", "n", "x", "y", "r", "a", "b"].contains(&name.as_str()) || "xyrab".chars().any(numbered);
        if !expression::is_name(name) || taken {
            return Err(SpecError::ScalarName { name: shorten(name) });
        }
        if builder.scalars[..n].iter().any(|(other, _)| other == name) {
            return Err(SpecError::RepeatedScalar { name: shorten(name) });
        }
        inputs.push(operand(Role::Scalar(name.clone()), name, *dtype, vec![], Layout::row_major())?);
    }
    check_elements(&inputs, expressions)?;
    Ok(inputs)
}

/// The beginning of a name, for messages.
pub(super) fn shorten(name: &str) -> String {
    name.chars().take(40).collect()
}

/// The most inputs, results, expressions and phases of a spec.
pub const MAX_OPERANDS: usize = 64;

/// The most bytes of a slice that is selected from, which a call gathers.
pub(super) const MAX_GATHERED_BYTES: u64 = 1 << 62;

/// Refuses element inputs that do not broadcast to input 0.
fn check_elements(inputs: &[Operand], expressions: &Texts) -> Result<(), SpecError> {
    let names = expression_names(inputs);
    for (i, input) in inputs.iter().enumerate().skip(1).filter(|(_, o)| o.role == Role::Element) {
        if !broadcasts(&input.shape, &inputs[0].shape) {
            let (own, to) = (list(&input.shape, '[', ']'), list(&inputs[0].shape, '[', ']'));
            let message = format!("x{i} of shape {own} does not broadcast to x0 of shape {to}");
            return Err(refused_at(&names[i], message, expressions));
        }
    }
    Ok(())
}

/// The error at the use of an input in an expression, or without a place if none uses it.
fn refused_at(name: &str, message: String, expressions: &Texts) -> SpecError {
    let parts = [
        ("map", expressions.map.iter().collect::<Vec<_>>()),
        ("then", expressions.then.iter().collect()),
        ("apply", expressions.apply.iter().collect()),
    ];
    for (field, expressions) in parts {
        if let Some(expression) = expressions.into_iter().find(|f| f.uses(name)) {
            return in_spec(RecipeError::Expression { field, error: expression.error_at_name(name, message) });
        }
    }
    SpecError::Broadcast { message }
}

fn broadcasts(shape: &[u64], to: &[u64]) -> bool {
    let pairs = shape.iter().rev().zip(to.iter().rev());
    shape.len() <= to.len() && pairs.into_iter().all(|(own, to)| own == to || *own == 1)
}

/// Refuses inputs of `then` that do not broadcast to the output.
fn check_then_inputs(spec: &Spec) -> Result<(), SpecError> {
    let names = expression_names(&spec.inputs);
    let to = spec.outputs[0].shape();
    for (i, input) in spec.inputs.iter().enumerate().filter(|(_, o)| o.role == Role::Then) {
        if !broadcasts(&input.shape, to) {
            let (own, to) = (list(&input.shape, '[', ']'), list(to, '[', ']'));
            let message = format!("{} of shape {own} does not broadcast to the output's shape {to}", names[i]);
            let expression = spec.then.iter().find(|f| f.uses(&names[i])).expect("inputs are used");
            let error = expression.error_at_name(&names[i], message);
            return Err(in_spec(RecipeError::Expression { field: "then", error }));
        }
    }
    Ok(())
}

/// Returns true if a combiner's lift reads a name.
fn is_lifted(reducers: &[OpCall], name: &str) -> bool {
    reducers.iter().any(|c| matches!(c, OpCall::Own(own) if own.reads(name)))
}

/// Refuses an input that is read by an expression which may not read it.
fn check_roles(inputs: &[Operand], reducers: &[OpCall], expressions: &Texts) -> Result<(), SpecError> {
    for (input, name) in inputs.iter().zip(expression_names(inputs)) {
        let reads = |field: &'static str, list: &[Expression]| {
            let expression = list.iter().find(|f| f.uses(&name))?;
            Some((field, expression.clone()))
        };
        let [map, apply] = [&expressions.map, &expressions.apply]
            .map(|expression| expression.as_ref().map_or(&[][..], slice::from_ref));
        let (read, message) = match input.role {
            Role::Element => (
                reads("then", &expressions.then),
                format!("`{name}` is an element; `then` reads results and inputs marked `:then`"),
            ),
            Role::Then => (
                reads("map", map).or_else(|| reads("apply", apply)),
                format!("`{name}` is marked `:then`, and only `then` reads it"),
            ),
            _ => continue,
        };
        if let Some((field, expression)) = read {
            let error = expression.error_at_name(&name, message);
            return Err(in_spec(RecipeError::Expression { field, error }));
        }
        if input.role == Role::Then && is_lifted(reducers, &name) {
            return Err(SpecError::Broadcast { message });
        }
    }
    Ok(())
}

/// Refuses an input that nothing reads.
fn check_used(inputs: &[Operand], reducers: &[OpCall], expressions: &Texts) -> Result<(), SpecError> {
    let all = expressions.map.iter().chain(&expressions.then).chain(&expressions.apply);
    for ((i, input), name) in inputs.iter().enumerate().zip(expression_names(inputs)) {
        let by_row = i == 0 || reducers[0].as_row().is_some_and(|row| i < row.inputs);
        let by_row = by_row && expressions.map.is_none() && input.role == Role::Element;
        if !by_row && !all.clone().any(|f| f.uses(&name)) && !is_lifted(reducers, &name) {
            let what = if matches!(input.role, Role::Scalar(_)) { "scalar" } else { "input" };
            return Err(SpecError::Unused { what, name: shorten(&name) });
        }
    }
    Ok(())
}

/// The recipe in the words of the spec.
fn recipe(
    builder: &Builder,
    reducers: &[OpCall],
    expressions: &Texts,
    inputs: &[Operand],
) -> Result<Recipe, SpecError> {
    let mut recipe = Recipe {
        calls: reducers.to_vec(),
        map: expressions.map.clone(),
        then: expressions.then.clone(),
        apply: expressions.apply.clone(),
        // The map's floats have this type, also without an explicit accumulator.
        accumulator: if builder.accumulator == Some(F64) { F64 } else { default_accumulator(inputs) },
        saturate: builder.saturate,
        half_even: builder.half_even,
    };
    let element = recipe.element(&typed_but(&Role::Then, inputs)).map_err(in_spec)?;
    if element == F64 {
        recipe.accumulator = F64;
    }
    match builder.accumulator {
        Some(_) if !element.is_float() => {
            return Err(SpecError::AccumulatorWithoutFloat { given: element, by: element_by(&recipe) });
        }
        Some(given) if given != F64 && (given != F32 || recipe.accumulator == F64) => {
            let accepted = if recipe.accumulator == F64 { "f64" } else { "f32 or f64" };
            let input = if expressions.map.is_some() { element } else { inputs[0].dtype };
            return Err(SpecError::AccumulatorRefused { input, by: element_by(&recipe), given, accepted });
        }
        Some(given) => recipe.accumulator = given,
        None => {}
    }
    Ok(recipe)
}

/// The default accumulator type: as wide as the widest float.
pub(super) fn default_accumulator(inputs: &[Operand]) -> DType {
    if inputs.iter().any(|i| i.dtype == F64) { F64 } else { F32 }
}

/// An output's type, and its value before that is rounded to the type.
struct OutputType {
    dtype: DType,
    /// The type of the value.
    from: DType,
    /// The source of that type.
    by: &'static str,
    /// True if the value is a position or a number of elements.
    counts: bool,
    /// True if a float is rounded to an integer.
    rounded: bool,
}

fn output_types(
    builder: &Builder,
    recipe: &Recipe,
    inputs: &[Operand],
    shape: &[u64],
    reduced: &[bool],
) -> Result<Vec<OutputType>, SpecError> {
    let given: Vec<Option<DType>> = builder.outputs.iter().map(|(dtype, _)| *dtype).collect();
    let values = values(recipe, inputs, &given).map_err(in_spec)?;
    if !given.is_empty() && given.len() != values.len() {
        let by = match (recipe.then.is_empty(), &recipe.apply) {
            (false, _) => "then".into(),
            (_, Some(_)) => "apply".into(),
            _ => recipe.name(),
        };
        return Err(SpecError::OutputCount { by, expected: values.len(), given: given.len() });
    }
    let slice = shape.iter().zip(reduced).filter(|(_, reduced)| **reduced).map(|(&n, _)| n);
    let most = slice.fold(1u64, u64::saturating_mul);
    let greatest = recipe.greatest_counts(most);
    let one = |(o, (kind, from, dtype)): (usize, (ResultKind, DType, DType))| {
        let counts = kind == ResultKind::Count;
        if counts && !dtype.is_int() {
            return Err(SpecError::CountType { given: dtype });
        }
        // A count is checked only as an output by itself: an expression of one is a value.
        if let Some(most) = greatest.get(o).copied().flatten().filter(|&most| counts && !dtype.holds(most)) {
            return Err(SpecError::CountRange { given: dtype, most });
        }
        let rounded = from.is_float() && dtype.is_int();
        Ok(OutputType { dtype, from, by: given_by(recipe, o), counts, rounded })
    };
    values.into_iter().enumerate().map(one).collect()
}

/// Returns the source of the type of the elements that are reduced: the input, or the map.
fn element_by(recipe: &Recipe) -> &'static str {
    if recipe.map.is_some() { "map" } else { INPUT }
}

/// Returns the source of the type of an output's value: the last expression that made it, else the input.
fn given_by(recipe: &Recipe, output: usize) -> &'static str {
    let of_call = |call: &OpCall| match call {
        OpCall::Row { .. } => vec![element_by(recipe); call.results().len()],
        OpCall::Own(own) => vec![if own.finish.is_empty() { "lift" } else { "finish" }; own.outputs()],
    };
    match () {
        () if !recipe.then.is_empty() => "then",
        () if recipe.apply.is_some() => "apply",
        () => recipe.calls.iter().flat_map(of_call).nth(output).unwrap_or(INPUT),
    }
}

/// Returns each output's kind, the type of its value, and its own type: the one given, else the default.
///
/// If an output is a float, expressions see results of integers as floats; so if the default of an output turns
/// out to be a float, the values are typed again.
fn values(
    recipe: &Recipe,
    inputs: &[Operand],
    given: &[Option<DType>],
) -> Result<Vec<(ResultKind, DType, DType)>, RecipeError> {
    let (elements, beside) = (typed_but(&Role::Then, inputs), typed_but(&Role::Element, inputs));
    let with_defaults = |values: Vec<(ResultKind, DType)>| {
        let one = |(o, (kind, value)): (usize, (ResultKind, DType))| {
            let dtype = given.get(o).copied().flatten();
            Ok((kind, value, dtype.map_or_else(|| default_output(recipe, inputs, kind, value), Ok)?))
        };
        values.into_iter().enumerate().map(one).collect::<Result<Vec<_>, RecipeError>>()
    };
    let values = with_defaults(recipe.values(&elements, &beside, given)?)?;
    let is_float = |dtype: &Option<DType>| dtype.is_some_and(|dtype| dtype.is_float());
    let outputs: Vec<Option<DType>> = values.iter().map(|&(_, _, dtype)| Some(dtype)).collect();
    let made = !recipe.then.is_empty() || recipe.apply.is_some();
    if !made || given.iter().any(is_float) || !outputs.iter().any(is_float) {
        return Ok(values);
    }
    with_defaults(recipe.values(&elements, &beside, &outputs)?)
}

/// The default type of an output: positions are i64, an accumulated value has the accumulator's type, floats have the type of input 0 if that is a float, integers
/// the type of the reduced elements; else the type of the value.
fn default_output(recipe: &Recipe, inputs: &[Operand], kind: ResultKind, value: DType) -> Result<DType, RecipeError> {
    let element = recipe.element(&typed(inputs))?;
    let input = inputs[0].dtype;
    let only_counts = recipe.calls.iter().all(|c| c.results().iter().all(|&r| r == ResultKind::Count));
    Ok(match (kind, value) {
        (ResultKind::Count, _) => I64,
        (ResultKind::Accumulated, value) => value,
        (_, value) if value.is_float() => {
            if input.is_float() {
                input
            } else {
                value
            }
        }
        (_, value) if value.is_int() && element.is_int() && !only_counts => element,
        (_, value) => value,
    })
}

/// The default types of a spec's outputs.
pub(super) fn default_outputs(spec: &Spec) -> Vec<DType> {
    let recipe = spec.recipe_as_written();
    let values = values(&recipe, &spec.inputs, &[]).unwrap_or_default();
    values.into_iter().map(|(_, _, dtype)| dtype).collect()
}

/// Checks every rule on element types.
fn check_types(builder: &Builder, recipe: &Recipe, element: DType, outputs: &[OutputType]) -> Result<(), SpecError> {
    for call in &recipe.calls {
        if let Some(row) = call.as_row()
            && !row.takes(element)
        {
            return Err(SpecError::TypeRefused { op: row.name, given: element, accepted: row.takes_words() });
        }
    }
    let values = || outputs.iter().filter(|o| !o.counts);
    if (builder.saturate || builder.trunc || builder.half_even) && values().next().is_none() {
        return Err(SpecError::ExactCount);
    }
    if let Some(o) = values().find(|o| (o.from == Bool) != (o.dtype == Bool)) {
        return Err(SpecError::BoolMismatch { given: o.from, by: o.by, output: o.dtype });
    }
    let is_integer = |o: &OutputType| o.from.is_int() && o.dtype.is_int();
    if builder.saturate && !values().any(is_integer) {
        let o = &outputs[0];
        return Err(SpecError::SaturateRefused { given: o.from, by: o.by, output: o.dtype });
    }
    if builder.trunc && builder.half_even {
        return Err(SpecError::TwoRoundings);
    }
    if (builder.trunc || builder.half_even) && !values().any(|o| o.dtype.is_int()) {
        let rounding = if builder.trunc { Rounding::Trunc } else { Rounding::HalfEven };
        return Err(SpecError::RoundingWithoutInteger { word: rounding.word(), output: outputs[0].dtype });
    }
    if let Some(o) = outputs.iter().find(|o| o.rounded)
        && !builder.trunc
        && !builder.half_even
    {
        return Err(SpecError::RoundingNeeded { given: o.from, by: o.by, output: o.dtype });
    }
    for call in recipe.calls.iter().filter(|_| element.is_float()) {
        call.check_overflow(recipe.accumulator).map_err(SpecError::Param)?;
    }
    Ok(())
}

/// Returns the first reducer that has no value over an empty slice, if there is one.
fn without_value(recipe: &Recipe, element: DType, outputs: &[OutputType]) -> Option<&'static Row> {
    let mut rows = recipe.calls.iter().filter_map(OpCall::as_row).filter(|row| !row.integer_of_nothing);
    let expressions = !recipe.then.is_empty() || recipe.apply.is_some();
    // In expressions, results of integers are integers unless an output is a float.
    let integers = match expressions {
        true => !outputs.iter().any(|o| o.dtype.is_float()),
        false => outputs.iter().any(|o| !o.counts && o.dtype.is_int()),
    };
    rows.find(|row| row.takes_position || element.is_int() && integers)
}

pub(super) fn operand(
    role: Role,
    name: &str,
    dtype: DType,
    shape: Vec<u64>,
    layout: Layout,
) -> Result<Operand, SpecError> {
    if shape.len() > MAX_RANK {
        return Err(SpecError::RankTooLarge { given: shape.len(), limit: MAX_RANK });
    }
    match layout.resolve(&shape, dtype.bytes()) {
        Ok(placement) => Ok(Operand { role, dtype, shape, layout, placement }),
        Err(error) => Err(SpecError::Layout { operand: shorten(name), error }),
    }
}

/// Returns for each axis of this rank true if it is reduced.
pub(super) fn mask(axes: Option<&[i64]>, rank: usize) -> Result<Vec<bool>, SpecError> {
    let Some(axes) = axes else { return Ok(vec![true; rank]) };
    let mut reduced = vec![false; rank];
    for &axis in axes {
        let index = if axis < 0 { axis + rank as i64 } else { axis };
        if rank == 0 {
            return Err(SpecError::AxisOfRankZero { axis });
        }
        if index < 0 || index >= rank as i64 {
            return Err(SpecError::AxisOutOfRange { axis, rank });
        }
        if std::mem::replace(&mut reduced[index as usize], true) {
            return Err(SpecError::RepeatedAxis { axis: index as usize, rank });
        }
    }
    Ok(reduced)
}
