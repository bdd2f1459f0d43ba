//! Recipes that are regions: what writes an output at each position of a slice.

use super::{OpCall, Recipe, number};
use crate::DType;
use crate::expression::name;
use crate::region::{Body, BodyInput, Definition, Reach, Reduction, Value};

impl Recipe {
    /// The region that the recipe stands for, over inputs `x0`, `x1` and so on; `None` unless it writes an output of this
    /// type at each position, from floats alone.
    pub fn region(&self, inputs: Vec<BodyInput>, output: DType) -> Option<Body> {
        let typed: Vec<(String, DType)> = inputs.iter().map(|input| (input.name.clone(), input.dtype)).collect();
        let of_map = self.element(&typed).ok()?;
        let element = match &self.map {
            // Elements of other floats are reduced in the accumulator's type.
            Some(map) if of_map.is_float() && of_map != self.accumulator => map.clone().cast(self.accumulator),
            Some(map) => map.clone(),
            None => name("x0"),
        };
        let mut definitions = vec![Definition { names: vec!["x".into()], value: Value::Expression(element) }];
        let outputs = match (&self.calls[..], &self.apply) {
            ([call], None) => {
                let row = call.as_row().filter(|row| row.applies)?;
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
                body.outputs
            }
            (calls, Some(apply)) => {
                let mut results = 0usize..;
                for call in calls {
                    call.as_row()?;
                    let count = call.results().len();
                    let names = results.by_ref().take(count).map(|n| format!("r{n}")).collect();
                    let reduction = Reduction { call: call.clone(), of: name("x"), over: None };
                    definitions.push(Definition { names, value: Value::Reduction(reduction) });
                }
                vec![apply.clone()]
            }
            _ => return None,
        };
        let body = Body { inputs, reduced: vec![true], definitions, outputs, accumulator: self.accumulator };
        let types = body.types().ok()?;
        let is_float = types.definitions[0][0].is_float() && types.outputs[0].is_float();
        // What only values of the slice are in is an output of the slice in a region, and of each position here.
        if !is_float || body.reaches().outputs[0] != Reach::Element {
            return None;
        }
        let value = body.outputs[0].clone();
        let value = if output.is_int() && self.half_even { value.round() } else { value };
        let value = if output == types.outputs[0] { value } else { value.cast(output) };
        Some(Body { outputs: vec![value], ..body }.canonical())
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
