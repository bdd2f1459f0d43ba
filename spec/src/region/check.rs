//! The validation of a region: shapes, operands, body and outputs.

use super::Order;
use super::text::placed;
use crate::build::Given;
use crate::check::{MAX_GATHERED_BYTES, MAX_OPERANDS, mask, operand};
use crate::layout::{MAX_BYTES, list};
use crate::text::Parser;
use crate::{Layout, MAX_TEXT, Operand, Role, Spec, SpecError, boxes, count, shape_without};
use cranefold_ir::DType::{self, F32, F64};
use cranefold_ir::region::{Body, BodyInput, MAX_DEFINITIONS, Reach, ReadBody, RegionError, Scope, Value};
use std::sync::Arc;

/// The part of a region's text before its body.
#[derive(Default)]
pub(super) struct Head {
    pub operands: Operands,
    /// The names, places and types.
    pub scalars: Vec<(String, usize, DType)>,
    /// The axes and their place.
    pub axes: Option<(Vec<i64>, usize)>,
    pub keep_dims: bool,
    /// The type and its place.
    pub accumulator: Option<(DType, usize)>,
    pub order: Order,
    /// The byte after the opening brace.
    pub body_at: usize,
}

/// The operands, their names and their places in the text.
#[derive(Default)]
pub(super) struct Operands {
    pub names: Vec<String>,
    pub places: Vec<usize>,
    pub given: Vec<Given>,
}

/// Returns true if a word names a float of 8 bits elsewhere.
pub(super) fn is_fp8(word: &str) -> bool {
    ["f8", "fp8", "float8", "e4m3", "e5m2"].iter().any(|start| word.starts_with(start))
}

/// The spec of a region's text, whose head was read.
pub(super) fn checked(text: &str, head: Head) -> Result<Spec, SpecError> {
    let at = |place: usize, message: String| SpecError::Region(RegionError::at(text, place, message));
    let inputs = inputs(text, &head)?;
    let shape = shape(text, &head)?;
    let (axes, axes_at) = head.axes.as_ref().map_or((None, 0), |(axes, at)| (Some(axes.as_slice()), *at));
    let reduced = mask(axes, shape.len()).map_err(|error| placed(text, axes_at, error))?;
    let accumulator = accumulator(&head).map_err(|(place, message)| at(place, message))?;
    let names = head.operands.names.iter().chain(head.scalars.iter().map(|(name, ..)| name));
    let body_input = |(input, name): (&Operand, &String)| {
        let before = shape.len() - input.shape.len();
        let has = |axis: usize| axis.checked_sub(before).is_some_and(|own| input.shape[own] == shape[axis]);
        let reach = reach(has, &shape, &reduced);
        BodyInput { name: name.clone(), dtype: input.dtype, reach }
    };
    let scope = Scope {
        inputs: inputs.iter().zip(names).map(body_input).collect(),
        reduced: reduced.clone(),
        shape: Some(shape.clone()),
        accumulator,
        most_definitions: MAX_DEFINITIONS,
        places: head.operands.places.iter().copied().chain(head.scalars.iter().map(|(_, at, _)| *at)).collect(),
    };
    let read = scope.read(text, head.body_at).map_err(SpecError::Region)?;
    closed(text, read.end)?;
    check_nothing(text, &read, &shape, &reduced)?;
    let reaches = read.body.reaches().outputs;
    let lost: Vec<Option<Vec<bool>>> = reaches.into_iter().map(|reach| lost(&read.body, reach, &reduced)).collect();
    let outputs = outputs(text, &read, &inputs, &shape, &lost, head.keep_dims)?;
    let mut spec = Spec {
        hash: 0,
        reducers: reducers(&read.body),
        inputs,
        outputs,
        map: None,
        then: vec![],
        apply: None,
        shape,
        order: head.order,
        keep_dims: head.keep_dims && reduced.contains(&true) && lost.iter().any(Option::is_some),
        lost,
        reduced,
        lift: false,
        accumulator: Some(accumulator),
        saturate: false,
        rounding: None,
        body: None,
    };
    check_selections(text, &read, &spec)?;
    spec.body = Some(Arc::new(read.body));
    boxes::check(&spec).map_err(|error| placed(text, 0, error))?;
    let spec = spec.hashed();
    let given = spec.to_string().len();
    if given > MAX_TEXT {
        return Err(at(0, format!("the region prints as {given} bytes; the limit is {MAX_TEXT}")));
    }
    Ok(spec)
}

/// The inputs in the order of a call.
fn inputs(text: &str, head: &Head) -> Result<Vec<Operand>, SpecError> {
    let Operands { names, places, given } = &head.operands;
    let all = given.len() + head.scalars.len();
    if all > MAX_OPERANDS {
        return Err(placed(text, 0, SpecError::TooManyInputs { given: all, limit: MAX_OPERANDS }));
    }
    let mut inputs = vec![];
    for ((name, &at), Given { dtype, shape, layout }) in names.iter().zip(places).zip(given) {
        let input = operand(Role::Element, name, *dtype, shape.clone(), layout.clone());
        inputs.push(input.map_err(|error| placed(text, at, error))?);
    }
    for (name, at, dtype) in &head.scalars {
        let input = operand(Role::Scalar(name.clone()), name, *dtype, vec![], Layout::row_major());
        inputs.push(input.map_err(|error| placed(text, *at, error))?);
    }
    Ok(inputs)
}

/// The broadcast of all operands' shapes.
fn shape(text: &str, head: &Head) -> Result<Vec<u64>, SpecError> {
    let Operands { names, places, given } = &head.operands;
    let rank = given.iter().map(|g| g.shape.len()).max().unwrap_or(0);
    let mut shape = vec![1; rank];
    for ((name, &at), Given { shape: own, .. }) in names.iter().zip(places).zip(given) {
        for (axis, &extent) in (rank - own.len()..).zip(own) {
            if extent != 1 && shape[axis] != 1 && extent != shape[axis] {
                let (own, to) = (list(own, '[', ']'), list(&shape, '[', ']'));
                let name = crate::check::shorten(name);
                let message = format!("`{name}` of shape {own} does not broadcast with {to}, the shape before it");
                return Err(SpecError::Region(RegionError::at(text, at, message)));
            }
            if extent != 1 {
                shape[axis] = extent;
            }
        }
    }
    let elems = shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent.max(1)));
    match elems.filter(|&elems| elems <= MAX_BYTES / 8) {
        Some(_) => Ok(shape),
        None => {
            let message =
                format!("the region's shape {} has more than {} elements", list(&shape, '[', ']'), MAX_BYTES / 8);
            Err(SpecError::Region(RegionError::at(text, places[0], message)))
        }
    }
}

/// The axes that an operand depends on, which `has` those of the region's extent. Of a slice of several elements, an
/// extent of 1 along a reduced axis is a broadcast; of a slice of one, an operand that has all reduced axes is of
/// elements.
pub(crate) fn reach(has: impl Fn(usize) -> bool, shape: &[u64], reduced: &[bool]) -> Reach {
    let among_reduced = |holds: &dyn Fn(usize) -> bool| (0..shape.len()).all(|axis| !reduced[axis] || holds(axis));
    let is_of_one = among_reduced(&|axis| shape[axis] == 1) && among_reduced(&has);
    let depends = (0..shape.len()).filter(|&axis| has(axis)).map(|axis| match reduced[axis] {
        true if shape[axis] != 1 || is_of_one => Reach::Element,
        true => Reach::Scalar,
        false => Reach::Slice,
    });
    depends.max().unwrap_or(Reach::Scalar)
}

/// The accumulator type of floats; an error is a place and a message.
fn accumulator(head: &Head) -> Result<DType, (usize, String)> {
    let dtypes = head.operands.given.iter().map(|g| g.dtype).chain(head.scalars.iter().map(|(_, _, dtype)| *dtype));
    let default = default_accumulator(dtypes);
    match head.accumulator {
        None => Ok(default),
        Some((given @ (F32 | F64), _)) if given == F64 || default == F32 => Ok(given),
        Some((given, at)) => {
            let accepted = if default == F64 { "an f64 input takes f64" } else { "f32 or f64 would be accepted" };
            Err((at, format!("acc={given} is refused: {accepted}")))
        }
    }
}

/// The accumulator type without `acc=`.
pub(super) fn default_accumulator(mut dtypes: impl Iterator<Item = DType>) -> DType {
    if dtypes.any(|dtype| dtype == F64) { F64 } else { F32 }
}

/// Refuses a text that does not end with the body's brace.
fn closed(text: &str, end: usize) -> Result<(), SpecError> {
    let rest = &text[end..];
    if !rest.starts_with('}') {
        return Err(SpecError::Region(RegionError::at(text, end, "expected `}`, found the end")));
    }
    let mut parser = Parser { at: end + 1, ..Parser::new(text) };
    parser.skip_space();
    if parser.rest().is_empty() { Ok(()) } else { Err(placed(text, end, parser.expected("the end"))) }
}

/// Refuses positions in nothing: reductions of no elements that have no value.
fn check_nothing(text: &str, read: &ReadBody, shape: &[u64], reduced: &[bool]) -> Result<(), SpecError> {
    let kept: Vec<usize> = (0..shape.len()).filter(|&axis| !reduced[axis]).collect();
    for (definition, &at) in read.body.definitions.iter().zip(&read.places) {
        let Value::Reduction(reduction) = &definition.value else { continue };
        let Some(row) = reduction.call.as_row().filter(|row| row.takes_position) else { continue };
        let axes: Vec<usize> = match &reduction.over {
            Some(over) => over.clone(),
            None => (0..shape.len()).filter(|&axis| reduced[axis]).collect(),
        };
        let left = kept.iter().filter(|axis| !axes.contains(axis));
        if let Some(&axis) = axes.iter().find(|&&axis| shape[axis] == 0)
            && left.clone().all(|&axis| shape[axis] != 0)
        {
            return Err(placed(text, at, SpecError::PositionOverNothing { op: row.name, axis }));
        }
    }
    Ok(())
}

/// Refuses selections from more memory than a call can gather.
fn check_selections(text: &str, read: &ReadBody, spec: &Spec) -> Result<(), SpecError> {
    for (definition, &at) in read.body.definitions.iter().zip(&read.places) {
        let Value::Reduction(reduction) = &definition.value else { continue };
        let Some(row) = reduction.call.as_row().filter(|row| row.selects) else { continue };
        let given = match &reduction.over {
            Some(over) => count(over.iter().map(|&axis| spec.shape[axis])),
            None => spec.reduced_count(),
        };
        if given.checked_mul(8).is_none_or(|bytes| bytes > MAX_GATHERED_BYTES) {
            let (op, limit) = (row.name, MAX_GATHERED_BYTES);
            return Err(placed(text, at, SpecError::TooManyToSelect { op, given, element_bytes: 8, limit }));
        }
    }
    Ok(())
}

/// For each axis, true if an output of this reach is reduced over it; none for an output of elements.
fn lost(body: &Body, reach: Reach, reduced: &[bool]) -> Option<Vec<bool>> {
    let mut lost = reduced.to_vec();
    match reach {
        Reach::Element => return None,
        Reach::Slice | Reach::Scalar => {}
        Reach::Total => {
            let over = body.definitions.iter().find_map(|definition| match &definition.value {
                Value::Reduction(reduction) => reduction.over.as_ref(),
                _ => None,
            });
            over.into_iter().flatten().for_each(|&axis| lost[axis] = true);
        }
    }
    Some(lost)
}

/// The outputs, each in its layout.
fn outputs(
    text: &str,
    read: &ReadBody,
    inputs: &[Operand],
    shape: &[u64],
    lost: &[Option<Vec<bool>>],
    keep_dims: bool,
) -> Result<Vec<Operand>, SpecError> {
    let mut outputs = vec![];
    for (o, lost) in lost.iter().enumerate() {
        let (place, bytes) = (read.output_places[o], read.layouts[o].clone());
        let layout_at = bytes.as_ref().map_or(place, |bytes| bytes.start);
        let given = match bytes {
            None => Layout::row_major(),
            Some(bytes) => {
                let mut parser = Parser { at: bytes.start, ..Parser::new(&text[..bytes.end]) };
                let layout = parser.layout().and_then(|layout| match parser.rest() {
                    "" => Ok(layout),
                    _ => Err(parser.expected("the end of the layout")),
                });
                layout.map_err(|error| placed(text, bytes.start, error))?
            }
        };
        let own = lost.as_ref().map_or(shape.to_vec(), |lost| shape_without(shape, lost, keep_dims));
        let layout = match given.is_any() {
            false => given,
            true => {
                let whole = inputs.iter().find(|input| input.shape == shape).ok_or_else(|| {
                    let message = "`any` keeps the layout of an operand of the region's whole shape, and there is none";
                    SpecError::Region(RegionError::at(text, layout_at, message))
                })?;
                let gone = lost.clone().unwrap_or(vec![false; shape.len()]);
                whole.layout.kept(&gone, keep_dims || lost.is_none(), &own, &given)
            }
        };
        let name = format!("output {o}");
        let output = operand(Role::Output, &name, read.types.outputs[o], own, layout);
        let output = output.map_err(|error| placed(text, layout_at, error))?;
        let disjoint = output.placement.check_disjoint();
        disjoint.map_err(|error| placed(text, layout_at, SpecError::Layout { operand: name, error }))?;
        outputs.push(output);
    }
    Ok(outputs)
}

/// The reductions in the order of the definitions.
fn reducers(body: &Body) -> Vec<cranefold_ir::ops::OpCall> {
    let calls = body.definitions.iter().map(|definition| match &definition.value {
        Value::Reduction(reduction) => Some(reduction.call.clone()),
        _ => None,
    });
    calls.flatten().collect()
}
