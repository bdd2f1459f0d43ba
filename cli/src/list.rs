//! `list`: the op table for people.

use crate::failure::Failure;
use cranefold::ops::{self, Form, Param, Phase, ResultKind, Row};
use cranefold::spec::Builder;
use cranefold::{DType, Problem, Scalar, Spec, SpecError};
use std::io::{self, Write};

/// The element type that stands for each kind.
const KINDS: [DType; 3] = [DType::Bool, DType::I32, DType::F32];

/// Prints the op table, or the op of this name or alias.
///
/// # Errors
/// [`SpecError::UnknownOp`]; [`Failure::Stdout`].
pub fn list(name: Option<&str>, out: &mut dyn Write) -> Result<(), Failure> {
    let Some(name) = name else { return print(out).map_err(Failure::Stdout) };
    let row =
        ops::find(name).ok_or_else(|| Failure::Spec(SpecError::UnknownOp { name: name.chars().take(40).collect() }))?;
    op(row, out).map_err(Failure::Stdout)
}

fn print(out: &mut dyn Write) -> io::Result<()> {
    let of_kind = |is: fn(DType) -> bool| {
        let names = DType::ALL.iter().filter(|&&dtype| is(dtype)).map(|dtype| dtype.name());
        names.collect::<Vec<_>>().join(" ")
    };
    writeln!(out, "bool      one byte, non-zero reads true")?;
    writeln!(out, "integers  {}", of_kind(DType::is_int))?;
    writeln!(out, "floats    {}", of_kind(DType::is_float))?;
    ops::ROWS.iter().try_for_each(|row| {
        writeln!(out)?;
        op(row, out)
    })
}

fn op(row: &'static Row, out: &mut dyn Write) -> io::Result<()> {
    let names = row.params.iter().map(|param| match param.default {
        None => param.name.to_string(),
        Some(_) if param.is_flag => format!("[{}]", param.name),
        Some(default) => format!("{}={default}", param.name),
    });
    let params = names.collect::<Vec<_>>();
    let params = if params.is_empty() { String::new() } else { format!("({})", params.join(",")) };
    writeln!(out, "{}{params} = {}", row.name, row.formula)?;
    if !row.aliases.is_empty() {
        writeln!(out, "  aliases   {}", row.aliases.join(" "))?;
    }
    if !row.proposal.is_empty() {
        writeln!(out, "  oneDNN    {}", row.proposal.join("; "))?;
    }
    writeln!(out, "  takes     {}", row.takes_words())?;
    if row.inputs > 1 {
        writeln!(out, "  inputs    1 to {}; x1 and so on broadcast to x0", row.inputs)?;
    }
    writeln!(out, "  gives     {}", gives(row))?;
    for param in row.params {
        writeln!(out, "  {:<9} {}", param.name, allowed(param))?;
    }
    // Results at each position, selected elements and positions have no identity element.
    if !row.applies && !row.selects && row.results == [ResultKind::Value] {
        let identities = of_kinds(row, identity);
        if !identities.is_empty() {
            writeln!(out, "  identity  {identities}")?;
        }
    }
    if !row.applies {
        writeln!(out, "  nothing   {}", of_kinds(row, |row, dtype| Some(over_nothing(row, dtype))))?;
    }
    let no_axes = if row.identity_over_no_axes { "a copy" } else { "groups of one" };
    writeln!(out, "  axes=[]   {no_axes}")
}

/// The outputs in words.
fn gives(row: &Row) -> String {
    if row.applies {
        return "a value at each position of the slice".into();
    }
    let word = |output: &ResultKind| match output {
        ResultKind::Value => "a value",
        ResultKind::Accumulated => "a value, by default of the accumulator's type",
        ResultKind::Count if row.takes_position => "a position, i64 or another integer type that holds it",
        ResultKind::Count => "a count, i64 or another integer type that holds it",
    };
    row.results.iter().map(word).collect::<Vec<_>>().join("; ")
}

/// The values of a parameter in words.
fn allowed(param: &Param) -> String {
    if param.is_flag {
        return "a word, there or not".into();
    }
    let mut text = "finite".to_string();
    if param.at_least != f64::MIN {
        text += &format!(", at least {}", param.at_least);
    }
    if param.at_most != f64::MAX {
        text += &format!(", at most {}", param.at_most);
    }
    if param.default.is_none() {
        text += ", must be given";
    }
    text
}

/// The text of a function for one type of each kind that the op takes, by type.
fn of_kinds(row: &'static Row, says: fn(&'static Row, DType) -> Option<String>) -> String {
    let taken = KINDS.iter().filter(|&&dtype| row.takes(dtype));
    let said = taken.filter_map(|&dtype| Some(format!("{dtype}: {}", says(row, dtype)?)));
    said.collect::<Vec<_>>().join(", ")
}

/// The identity element as text. If the state is no single value of the element's kind, the result of no elements
/// stands for it, if that is one.
fn identity(row: &'static Row, dtype: DType) -> Option<String> {
    let reducer = Problem::of(&reduction(row, dtype, 2).ok()?).reducer_in(Form::Plain)?;
    match reducer.method.phases() {
        [Phase { identity, .. }] if identity.len() == 1 && identity[0].dtype().is_float() == dtype.is_float() => {
            Some(values(row, identity, dtype))
        }
        _ => Some(over_nothing(row, dtype)).filter(|text| text != "nan" && text != "refused"),
    }
}

/// The op's result for no elements.
fn over_nothing(row: &'static Row, dtype: DType) -> String {
    match reduction(row, dtype, 0).map(|spec| Problem::of(&spec).reducer_in(Form::Plain)) {
        Ok(Some(reducer)) => values(row, &reducer.finish.eval(&reducer.nothing), dtype),
        Ok(None) => "none".into(),
        Err(SpecError::IntegerOverNothing { .. } | SpecError::PositionOverNothing { .. }) => "refused".into(),
        Err(error) => error.to_string(),
    }
}

/// The op over `elements` elements. Required parameters are 3, which makes no op equal to another, or the greatest
/// allowed value.
fn reduction(row: &'static Row, dtype: DType, elements: u64) -> Result<Spec, SpecError> {
    let needed = row.params.iter().filter(|param| param.default.is_none());
    let with = |builder: Builder, param: &Param| builder.param(param.name, param.at_most.min(3.0));
    let builder = needed.fold(Spec::builder(row.name), with);
    builder.input(dtype, &[elements]).build()
}

/// The values of a row's outputs; those of `bool` are kept as bytes.
fn values(row: &Row, values: &[Scalar], dtype: DType) -> String {
    let value = |(value, kind): (&Scalar, &ResultKind)| match (kind, dtype) {
        (ResultKind::Value, DType::Bool) => (value.bits() != 0).to_string(),
        _ => value.to_string(),
    };
    values.iter().zip(row.results).map(value).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_op_of_the_proposal_is_listed() {
        let mut out = vec![];
        print(&mut out).expect("memory takes all");
        let out = String::from_utf8(out).expect("text");
        let rows = "And Or Min Max Sum Prod Mean Variance Std LogSumExp Median Mode p-norm";
        let normalize = ["OpenVino, eps_mode add", "OpenVino, eps_mode max", "TensorFlow", "PyTorch"];
        let normalize = normalize.map(|of| format!("l2_normalize of {of}"));
        let listed: Vec<&str> =
            out.lines().filter_map(|l| l.strip_prefix("  oneDNN    ")).flat_map(|l| l.split("; ")).collect();
        for asked in rows.split(' ').chain(normalize.iter().map(String::as_str)) {
            assert_eq!(listed.iter().filter(|l| **l == asked).count(), 1, "{asked}");
        }
    }
}
