//! The rules of a body that was read: reaches, totals, types and stages.

use super::reach::Reaches;
use super::read::{MAX_STAGES, Result};
use super::stages::reads_any;
use super::{Body, BodyTypes, Reach, Value, print, types};
use crate::expression::Expression;
use crate::expression::error::Fault;

/// The places of a body's parts in the text.
pub(super) struct Places<'a> {
    pub definitions: &'a [usize],
    /// The word that each definition was written with; empty for an expression.
    pub words: &'a [String],
}

/// The types of a body that keeps the rules.
pub(super) fn checked(body: &Body, places: &Places<'_>) -> Result<BodyTypes> {
    check_old(body, places)?;
    check_old_is_not_reduced(body, places)?;
    check_reaches(body, places)?;
    // The printer's recursion is as deep as stages and expressions together.
    check_stages(body, places)?;
    let types = types::types(body, &|d| places.definitions[d]);
    // A value that was written without a name is shown by its text.
    let types = types.map_err(|fault| Fault { message: print::with_texts(body, &fault.message), ..fault })?;
    Ok(types)
}

/// Refuses old elements of outputs that there are not.
fn check_old(body: &Body, places: &Places<'_>) -> Result<()> {
    for (definition, &at) in body.definitions.iter().zip(places.definitions) {
        if let Value::Old(output) = definition.value
            && output >= body.outputs.len()
        {
            let message = format!("there is no output {output}: the region has {}", body.outputs.len());
            return Err(Fault::new(at, message));
        }
    }
    Ok(())
}

/// Refuses reductions over the slice of what is computed from old elements: a slice is walked in inputs.
fn check_old_is_not_reduced(body: &Body, places: &Places<'_>) -> Result<()> {
    let of_old = body.names_of_old();
    for (d, definition) in body.definitions.iter().enumerate() {
        if let Value::Reduction(reduction) = &definition.value
            && reduction.over.is_none()
            && reads_any(&reduction.of, &of_old)
        {
            let message = format!(
                "`{}` of old elements: `old` stands in outputs alone; give what is reduced as an input",
                places.words[d]
            );
            return Err(Fault::new(places.definitions[d], message));
        }
    }
    Ok(())
}

/// Refuses reductions of values of another reach, totals over several sets of axes, and totals beside other values.
fn check_reaches(body: &Body, places: &Places<'_>) -> Result<()> {
    let reaches = body.reaches();
    let mut over: Option<&[usize]> = None;
    for (d, definition) in body.definitions.iter().enumerate() {
        let (at, word) = (places.definitions[d], &places.words[d]);
        let reduction = match &definition.value {
            Value::Expression(expression) => {
                check_total(&reaches, expression)?;
                continue;
            }
            Value::Reduction(reduction) => reduction,
            Value::Position(_) | Value::Old(_) => continue,
        };
        check_total(&reaches, &reduction.of)?;
        let message = match (&reduction.over, reaches.of_expression(&reduction.of)) {
            (_, Reach::Total) => format!("`{word}` of a total: totals go to outputs only"),
            (None, Reach::Element) => continue,
            (None, _) => format!("`{word}` of a value of the slice: `axes=` names the kept axes that a total reduces"),
            (Some(_), Reach::Element) => format!(
                "`{word}` over other axes than the region's: reduce the slice first, or write two regions with other axes"
            ),
            (Some(axes), _) => match over {
                Some(first) if first != axes.as_slice() => {
                    format!("the totals of a region reduce the same axes: {axes:?} here, {first:?} before")
                }
                _ => {
                    over = Some(axes);
                    continue;
                }
            },
        };
        return Err(Fault::new(at, message));
    }
    body.outputs.iter().try_for_each(|output| check_total(&reaches, output))
}

/// Refuses a total beside values of elements and slices.
fn check_total(reaches: &Reaches<'_>, expression: &Expression) -> Result<()> {
    let (mut total, mut other) = (None, false);
    expression.each_name(&mut |name, at| match reaches.of(name) {
        Reach::Total => drop(total.get_or_insert(at)),
        reach => other |= reach > Reach::Total,
    });
    match total.filter(|_| other) {
        Some(at) => Err(Fault::new(
            at,
            "a total combines only with numbers, scalars and other totals: use it in a second region",
        )),
        None => Ok(()),
    }
}

/// Refuses a region of too many stages.
fn check_stages(body: &Body, places: &Places<'_>) -> Result<()> {
    let stages = body.stages();
    match stages.reductions.get(MAX_STAGES).and_then(|stage| stage.first()) {
        Some(&d) => {
            let message =
                format!("this reduction needs {} visits before it; the limit is {MAX_STAGES} stages", MAX_STAGES);
            Err(Fault::new(places.definitions[d], message))
        }
        None => Ok(()),
    }
}
