//! `list`: the op table for people.

use crate::failure::Failure;
use cranefold::ops::Phase;
use cranefold::ops::{self, Row};
use cranefold::{DType, Problem, Reduction, Scalar, SpecError};
use std::io::{self, Write};

/// The element type that stands for each kind.
const KINDS: [DType; 3] = [DType::Bool, DType::I32, DType::F32];

/// Prints the op table.
///
/// # Errors
/// [`Failure::Stdout`].
pub fn list(out: &mut dyn Write) -> Result<(), Failure> {
    print(out).map_err(Failure::Stdout)
}

fn print(out: &mut dyn Write) -> io::Result<()> {
    let of_kind = |is: fn(DType) -> bool| {
        let names = DType::ALL.iter().filter(|&&dtype| is(dtype)).map(|dtype| dtype.name());
        names.collect::<Vec<_>>().join(" ")
    };
    writeln!(out, "bool      one byte, non-zero reads true")?;
    writeln!(out, "integers  {}", of_kind(DType::is_int))?;
    writeln!(out, "floats    {}", of_kind(DType::is_float))?;
    ops::ROWS.iter().try_for_each(|row| op(row, out))
}

fn op(row: &'static Row, out: &mut dyn Write) -> io::Result<()> {
    let names = row.params.iter().map(|param| match param.default {
        None => param.name.to_string(),
        Some(default) => format!("{}={default}", param.name),
    });
    let params = names.collect::<Vec<_>>();
    let params = if params.is_empty() { String::new() } else { format!("({})", params.join(",")) };
    writeln!(out, "\n{}{params} = {}", row.name, row.formula)?;
    writeln!(out, "  aliases   {}", row.aliases.join(" "))?;
    writeln!(out, "  takes     {}", row.takes_words())?;
    for param in row.params {
        let least = if param.at_least == f64::MIN { String::new() } else { format!(", at least {}", param.at_least) };
        let needed = if param.default.is_none() { ", must be given" } else { "" };
        writeln!(out, "  {:<9} finite{least}{needed}", param.name)?;
    }
    writeln!(out, "  identity  {}", of_kinds(row, identity))?;
    writeln!(out, "  nothing   {}", of_kinds(row, over_nothing))?;
    let no_axes = if row.identity_over_no_axes { "a copy" } else { "groups of one" };
    writeln!(out, "  axes=[]   {no_axes}")
}

/// What a function of an op and an element type says for one type of each kind that the op takes.
fn of_kinds(row: &'static Row, says: fn(&'static Row, DType) -> String) -> String {
    let taken = KINDS.iter().filter(|&&dtype| row.takes(dtype));
    taken.map(|&dtype| format!("{dtype}: {}", says(row, dtype))).collect::<Vec<_>>().join(", ")
}

/// The identity element. Where the state is no single value of the element's kind, what it stands for: the
/// result of no elements.
fn identity(row: &'static Row, dtype: DType) -> String {
    match reduction(row, dtype, 2).map(|spec| Problem::of(&spec).reducer()) {
        Ok(Some(reducer)) => match &reducer.phases[..] {
            [Phase { identity, .. }] if identity.len() == 1 && identity[0].dtype().is_float() == dtype.is_float() => {
                values(identity, dtype)
            }
            _ => over_nothing(row, dtype),
        },
        Ok(None) => "none".into(),
        Err(error) => error.to_string(),
    }
}

/// What the op gives for no elements.
fn over_nothing(row: &'static Row, dtype: DType) -> String {
    match reduction(row, dtype, 0).map(|spec| Problem::of(&spec).reducer()) {
        Ok(Some(reducer)) => values(&reducer.over_nothing, dtype),
        Ok(None) => "none".into(),
        Err(SpecError::IntegerOverNothing { .. }) => "refused".into(),
        Err(error) => error.to_string(),
    }
}

/// The op over so many elements; parameters that must be given are 3, for which no op is another.
fn reduction(row: &'static Row, dtype: DType, elements: u64) -> Result<Reduction, SpecError> {
    let needed = row.params.iter().filter(|param| param.default.is_none());
    let builder = needed.fold(Reduction::builder(row.name), |builder, param| builder.param(param.name, 3.0));
    builder.input(dtype, &[elements]).build()
}

/// Values; those of `bool` are kept as bytes.
fn values(values: &[Scalar], dtype: DType) -> String {
    let value = |value: &Scalar| match dtype {
        DType::Bool => (value.bits() != 0).to_string(),
        _ => value.to_string(),
    };
    values.iter().map(value).collect::<Vec<_>>().join(" ")
}
