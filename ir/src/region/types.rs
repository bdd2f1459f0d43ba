//! The types of a body's values.

use super::{Body, Definition, RegionError, Value, print};
use crate::DType;
use crate::expression::error::Fault;
use crate::expression::node::{Kind, Operation};
use crate::expression::{Expression, typing};
use crate::ops::{Integers, OpCall, ResultKind, expression_type};
use DType::{F32, F64, I64, U64};
use rustc_hash::FxHashMap;

/// The types of the values of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyTypes {
    /// For each definition the types of its names.
    pub definitions: Vec<Vec<DType>>,
    /// The type of each output in memory.
    pub outputs: Vec<DType>,
}

impl Body {
    /// The types of all values.
    ///
    /// ```
    /// use cranefold_ir::DType;
    /// use cranefold_ir::region::{Body, BodyInput, Reach};
    ///
    /// let x = BodyInput { name: "x".into(), dtype: DType::I8, reach: Reach::Element };
    /// let body = Body::parse("s = sum(x); s, x + 1, f32(s) / 2", vec![x], &[true], DType::F32)?;
    /// let types = body.types()?;
    /// assert_eq!((types.definitions, types.outputs), (vec![vec![DType::I64]], vec![DType::I64, DType::I32, DType::F32]));
    /// # Ok::<(), cranefold_ir::region::RegionError>(())
    /// ```
    ///
    /// # Errors
    /// If an expression or a reduction does not take its operands; a body that was read has none.
    pub fn types(&self) -> Result<BodyTypes, RegionError> {
        types(self, &|_| 0).map_err(|fault| {
            let text = self.to_string();
            RegionError::at(&text, 0, fault.message)
        })
    }
}

/// The name of a row.
fn name_of(call: &OpCall) -> &'static str {
    call.as_row().map_or("combiner", |row| row.name)
}

/// The type of an input in expressions.
pub(super) fn of_input(dtype: DType, accumulator: DType) -> DType {
    expression_type(dtype, accumulator)
}

/// The types of all values; `place` is the place of a definition, for faults of reductions.
pub(super) fn types(body: &Body, place: &dyn Fn(usize) -> usize) -> Result<BodyTypes, Fault> {
    let input = |input: &super::BodyInput| (input.name.clone(), of_input(input.dtype, body.accumulator));
    let mut names: FxHashMap<String, DType> = body.inputs.iter().map(input).collect();
    let mut definitions: Vec<Vec<DType>> = vec![];
    for (d, Definition { names: own, value }) in body.definitions.iter().enumerate() {
        let types = match value {
            Value::Expression(expression) => vec![type_of(expression, &names, body.accumulator)?],
            Value::Reduction(reduction) => {
                let of = type_of(&reduction.of, &names, body.accumulator)?;
                let types = reduction.call.types_in_region(of, body.accumulator);
                let written =
                    if own.len() > 1 && own[0].starts_with('$') { "centered" } else { name_of(&reduction.call) };
                let shown = |message: String| {
                    let message = message.replace(name_of(&reduction.call), written);
                    message.replace("...", &print::short(body, reduction))
                };
                types.map_err(|message| Fault::new(place(d), shown(message)))?
            }
            // The second name of a position is its value in 32 bits.
            Value::Position(_) => vec![I64, DType::I32][..own.len()].to_vec(),
            Value::Old(output) => vec![old_type(body, *output)],
        };
        for (name, dtype) in own.iter().zip(&types) {
            names.insert(name.clone(), *dtype);
        }
        definitions.push(types);
    }
    let outputs = body.outputs.iter().map(|output| type_of(output, &names, body.accumulator));
    let outputs = outputs.collect::<Result<Vec<DType>, Fault>>()?;
    for (d, definition) in body.definitions.iter().enumerate() {
        if let Value::Old(output) = definition.value
            && let Some(&dtype) = outputs.get(output)
            && of_input(dtype, body.accumulator) != definitions[d][0]
        {
            let message =
                format!("output {output} is {dtype}: write its type, as in `{dtype}(...)`, where `old` reads it");
            return Err(Fault::new(place(d), message));
        }
    }
    Ok(BodyTypes { definitions, outputs })
}

/// The type of an output's old element in expressions: that of the conversion that the output is, else the
/// accumulator's.
fn old_type(body: &Body, output: usize) -> DType {
    let mut expression = body.outputs.get(output);
    // A name of an expression is followed to it; definitions are in order, so that this ends.
    for definition in body.definitions.iter().rev() {
        if let (Some(Kind::Name(name)), Value::Expression(value)) =
            (expression.map(|e| &e.root.kind), &definition.value)
            && definition.names.contains(name)
        {
            expression = Some(value);
        }
    }
    match expression.map(|e| &e.root.kind) {
        Some(Kind::Apply(Operation::Cast(dtype), _)) => of_input(*dtype, body.accumulator),
        _ => body.accumulator,
    }
}

/// The type of an expression over typed names.
fn type_of(expression: &Expression, names: &FxHashMap<String, DType>, accumulator: DType) -> Result<DType, Fault> {
    let root = &expression.root;
    if let Kind::Name(name) = &root.kind
        && let Some(&dtype) = names.get(name)
    {
        return Ok(dtype);
    }
    let mut used: Vec<(&str, DType)> = vec![];
    root.visit_names(&mut |name, _| {
        if let Some((known, &dtype)) = names.get_key_value(name)
            && !used.iter().any(|(other, _)| other == known)
        {
            used.push((known, dtype));
        }
    });
    typing::type_of(root, used, accumulator)
}

impl OpCall {
    /// The types of the results of a reduction in a region; an error says why the elements are refused.
    ///
    /// ```
    /// use cranefold_ir::DType::{F32, I8, I64};
    /// use cranefold_ir::ops::{OpCall, find};
    ///
    /// let sum = OpCall::row(find("sum").expect("a row"), &[]);
    /// assert_eq!(sum.types_in_region(I8, F32), Ok(vec![I64]));
    /// ```
    ///
    /// # Errors
    /// If the op does not take elements of this type in a region.
    pub fn types_in_region(&self, of: DType, accumulator: DType) -> Result<Vec<DType>, String> {
        let Some(row) = self.as_row() else { return Err("combiners stand in no region".to_string()) };
        let op = row.name;
        let counts = row.results.iter().all(|kind| *kind == ResultKind::Count);
        if matches!(of, DType::F16 | DType::Bf16) {
            return Err(format!("`{op}` does not take {of}; convert, as in `{op}({accumulator}(...))`"));
        }
        if of == F64 && accumulator == F32 {
            return Err(format!("`{op}` does not take f64 where floats accumulate in f32; say `acc=f64`"));
        }
        let refused_integer = of.is_int() && !counts && row.integers == Integers::Refused;
        if refused_integer && row.forms.float.is_some() {
            return Err(format!(
                "`{op}` of integers is refused: {of} given; convert, as in `{op}({accumulator}(...))`"
            ));
        }
        if refused_integer || !row.takes(of) {
            let words = row.takes_words();
            return Err(format!("`{op}` does not take {of}; it takes {words}"));
        }
        let value = match of {
            _ if of.is_float() => accumulator,
            _ if !of.is_int() || row.integers == Integers::Same => of,
            _ if of.is_signed() => I64,
            _ => U64,
        };
        Ok(row.results.iter().map(|kind| if *kind == ResultKind::Count { I64 } else { value }).collect())
    }
}
