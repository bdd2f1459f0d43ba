//! Recipes that are regions, which compute on floats before or after their reductions, and regions that are rows
//! alone.

use super::typing::old_type;
use super::{OpCall, Recipe, number};
use crate::DType;
use crate::expression::node::{Kind, Node, Operation};
use crate::expression::{Expression, name};
use crate::region::{Body, BodyInput, BodyTypes, Definition, Reach, Reduction, Value};

impl Recipe {
    /// The region that the recipe stands for, over inputs `x0`, `x1` and so on, with outputs of these types; `None` of a
    /// row alone, of combiners, and unless the elements and the outputs are floats or follow from floats.
    pub fn region(&self, inputs: Vec<BodyInput>, outputs: &[DType]) -> Option<Body> {
        let typed: Vec<(String, DType)> = inputs.iter().map(|input| (input.name.clone(), input.dtype)).collect();
        let of_map = self.element(&typed).ok()?;
        let element = match &self.map {
            // Elements of other floats are reduced in the accumulator's type.
            Some(map) if of_map.is_float() && of_map != self.accumulator => map.clone().cast(self.accumulator),
            Some(map) => map.clone(),
            None => name("x0"),
        };
        let mut definitions = vec![Definition { names: vec!["x".into()], value: Value::Expression(element) }];
        let (values, reach) = match (&self.calls[..], &self.apply) {
            ([call], None) if self.applies() => {
                let row = call.as_row()?;
                let body = self.body_of(row.text, call, inputs.len())?;
                for (i, input) in inputs.iter().enumerate().skip(1).take(body.inputs.len() - 1) {
                    let value = if input.dtype.is_float() {
                        name(&input.name)
                    } else {
                        name(&input.name).cast(self.accumulator)
                    };
                    definitions.push(Definition { names: vec![format!("y{i}")], value: Value::Expression(value) });
                }
                definitions.extend(body.definitions);
                (body.outputs, Reach::Element)
            }
            (_, Some(apply)) => {
                definitions.extend(self.reductions()?);
                (vec![apply.clone()], Reach::Element)
            }
            (_, None) if !self.then.is_empty() => {
                definitions.extend(self.reductions()?);
                (self.then_over_old(&mut definitions), Reach::Slice)
            }
            (calls, None) if self.map.is_some() || calls.len() > 1 => {
                let reductions = self.reductions()?;
                let values = reductions.iter().flat_map(|d| &d.names).map(name).collect();
                definitions.extend(reductions);
                (values, Reach::Slice)
            }
            _ => return None,
        };
        let given = |values: Vec<Expression>, types: &[DType]| {
            let values = values.into_iter().zip(types).zip(outputs);
            values.map(|((value, &of), &to)| self.given(value, of, to)).collect::<Option<Vec<Expression>>>()
        };
        let mut body =
            Body { inputs, reduced: vec![true], definitions, outputs: values, accumulator: self.accumulator };
        // An old element has the type of the conversion that its output is, which is not known before.
        let mut types = BodyTypes::default();
        let computed = body.outputs.clone();
        for _ in 0..2 {
            types = body.types().ok()?;
            body.outputs = given(body.outputs.clone(), &types.outputs)?;
        }
        if !self.reads_old_alike(&body, &types, outputs) {
            return None;
        }
        if self.saturate && has_integers(&body, computed) {
            // A region takes an integer modulo 2^bits of the output.
            return None;
        }
        let expressions = || self.then.iter().chain(&self.apply);
        let literal = types.definitions.get(1).map(|of| of[0]);
        if literal != Some(self.accumulator) && expressions().any(|e| has_constants(&e.root)) {
            // Of constants alone the first result has the type here, the accumulator in a region.
            return None;
        }
        // What only values of the slice are in is an output of the slice in a region, and of each position with `apply`.
        let is_float = types.definitions[0][0].is_float();
        if !is_float || body.reaches().outputs.iter().any(|&of| of != reach) {
            return None;
        }
        // A region uses each input and has reductions; a recipe walks elements that no output needs too.
        let body = body.canonical();
        (body.reductions() > 0 && body.inputs.iter().all(|input| body.uses(&input.name))).then_some(body)
    }

    /// The definitions of the reductions of `x`, with the results `r0`, `r1` and so on; `None` if one is a combiner.
    fn reductions(&self) -> Option<Vec<Definition>> {
        let mut results = 0usize..;
        let reduction = |call: &OpCall| {
            call.as_row()?;
            let names = results.by_ref().take(call.results().len()).map(|n| format!("r{n}")).collect();
            let reduction = Reduction { call: call.clone(), of: name("x"), over: None };
            Some(Definition { names, value: Value::Reduction(reduction) })
        };
        self.calls.iter().map(reduction).collect()
    }

    /// Returns true if each old element that a body reads has the type that it has in the recipe, where an integer has
    /// the type of the first result if that is an integer.
    fn reads_old_alike(&self, body: &Body, types: &BodyTypes, outputs: &[DType]) -> bool {
        let first = types.definitions.get(1).map_or(&[][..], |of| &of[..]);
        body.definitions.iter().zip(&types.definitions).all(|(definition, of)| match definition.value {
            Value::Old(output) => of[0] == old_type(outputs[output], first, self.accumulator),
            _ => true,
        })
    }

    /// The expressions of `then`, with a definition for each old element `d` that one reads.
    fn then_over_old(&self, definitions: &mut Vec<Definition>) -> Vec<Expression> {
        let one = |(output, then): (usize, &Expression)| {
            let old = format!("d{output}");
            if then.uses("d") {
                definitions.push(Definition { names: vec![old.clone()], value: Value::Old(output) });
            }
            then.renamed(|name| (name == "d").then(|| old.clone()))
        };
        self.then.iter().enumerate().map(one).collect()
    }

    /// The value in an output's type; `None` unless it is a float, or a number of elements that stays as it is.
    fn given(&self, value: Expression, of: DType, output: DType) -> Option<Expression> {
        match of == output {
            true => Some(value),
            false if !of.is_float() || output == DType::Bool => None,
            false if output.is_int() && self.half_even => Some(value.round().cast(output)),
            false => Some(value.cast(output)),
        }
    }

    /// The body of a row over the element `x`, with the values of its parameters, and scale `y1` and bias `y2` if there
    /// are inputs for them.
    fn body_of(&self, text: &str, call: &OpCall, inputs: usize) -> Option<Body> {
        let mut text = text.to_string();
        for (param, value) in call.as_row()?.params.iter().zip(call.params()) {
            text = text.replace(&format!("{{{}}}", param.name), &number(value));
        }
        let further = if self.map.is_some() { 0 } else { inputs - 1 };
        let suffixes = [" * y1", " + y2"];
        suffixes.iter().take(further).for_each(|suffix| text += suffix);
        let names = std::iter::once("x".to_string()).chain((1..=further.min(2)).map(|i| format!("y{i}")));
        let input = |name: String| BodyInput { name, dtype: self.accumulator, reach: Reach::Element };
        Body::parse(&text, names.map(input).collect(), &[true], self.accumulator).ok()
    }
}

/// Returns true if one of these expressions over a body's definitions, whose outputs are converted, is an integer and no
/// output as it is.
fn has_integers(body: &Body, expressions: Vec<Expression>) -> bool {
    let mut all = body.clone();
    let named = |(i, value)| Definition { names: vec![format!("computed{i}")], value: Value::Expression(value) };
    all.definitions.extend(expressions.into_iter().enumerate().map(named));
    let Ok(types) = all.types() else { return true };
    let computed = &types.definitions[body.definitions.len()..];
    computed.iter().zip(&types.outputs).any(|(of, to)| of[0] != *to && !of[0].is_float())
}

impl Body {
    /// The recipe of a row alone that this canonical body stands for; `None` if it computes anything before or after the
    /// reduction, but for the conversion of a float to an output's type.
    pub fn row_alone(&self) -> Option<Recipe> {
        let ([BodyInput { reach: Reach::Element, .. }], [definition]) = (&self.inputs[..], &self.definitions[..])
        else {
            return None;
        };
        let Value::Reduction(Reduction { call, of, over: None }) = &definition.value else { return None };
        let types = self.types().ok()?;
        let is_result = |((output, result), of): ((&Expression, &String), &DType)| match &output.root.kind {
            Kind::Name(own) => own == result,
            Kind::Apply(Operation::Cast(to), args) => {
                let named = matches!(&args[..], [Node { kind: Kind::Name(own), .. }] if own == result);
                named && of.is_float() && to.is_float()
            }
            _ => false,
        };
        let outputs = self.outputs.iter().zip(&definition.names).zip(&types.definitions[0]);
        let is_alone = *of == name("x0") && self.outputs.len() == definition.names.len();
        (is_alone && outputs.into_iter().all(is_result)).then(|| Recipe::simple(call.clone(), self.accumulator))
    }
}

impl Body {
    /// Returns true if a definition or an output uses a name.
    fn uses(&self, name: &str) -> bool {
        let in_definition = |definition: &Definition| match &definition.value {
            Value::Expression(of) | Value::Reduction(Reduction { of, .. }) => of.uses(name),
            Value::Position(_) | Value::Old(_) => false,
        };
        self.definitions.iter().any(in_definition) || self.outputs.iter().any(|output| output.uses(name))
    }
}

/// Returns true if an operation takes numbers alone.
fn has_constants(node: &Node) -> bool {
    let Kind::Apply(_, args) = &node.kind else { return false };
    let mut is_named = false;
    node.visit_names(&mut |_, _| is_named = true);
    !is_named || args.iter().any(has_constants)
}
