//! The scalars of a spec, as the command line gives them.

use cranefold::spec::{Operand, Role};
use cranefold::{DType, Scalar, Spec};

/// An error in a scalar.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages define the variants and their fields")]
pub enum ScalarError {
    #[error("`{given}` is no scalar: NAME=VALUE is expected")]
    NoPair { given: String },
    #[error("the spec has no scalar `{name}`; {}", known(.names))]
    Unknown { name: String, names: Vec<String> },
    #[error("scalar `{name}` is given twice")]
    Repeated { name: String },
    #[error("scalar `{name}` is not given: --scalar {name}=VALUE")]
    Missing { name: String },
    #[error("scalar `{name}`: `{given}` is no {dtype}{}", accepted(*.dtype))]
    NoValue { name: String, given: String, dtype: DType },
    #[error("scalar `{name}`: {given} overflows {dtype}")]
    Overflow { name: String, given: String, dtype: DType },
}

fn known(names: &[String]) -> String {
    if names.is_empty() { "it has none".into() } else { format!("it has {}", names.join(", ")) }
}

/// The values that a type accepts, as an addition to its name; empty if the name says it.
fn accepted(dtype: DType) -> String {
    match dtype.int_range() {
        Some((low, high)) => format!(", which is an integer from {low} to {high}"),
        None if dtype == DType::Bool => ", which is true or false".into(),
        None => String::new(),
    }
}

/// The name of a scalar; `None` for other operands.
pub fn name(operand: &Operand) -> Option<&str> {
    match operand.role() {
        Role::Scalar(name) => Some(name),
        _ => None,
    }
}

/// The given values, in the order of the spec's scalars; `None` for scalars without one.
///
/// # Errors
/// A text that is no pair, a name that is unknown or given twice, or a value that the type lacks.
pub fn given(spec: &Spec, texts: &[String]) -> Result<Vec<Option<Scalar>>, ScalarError> {
    let scalars: Vec<(&str, DType)> =
        spec.inputs().iter().filter_map(|operand| Some((name(operand)?, operand.dtype()))).collect();
    let mut values = vec![None; scalars.len()];
    for text in texts {
        let Some((name, text)) = text.split_once('=') else {
            return Err(ScalarError::NoPair { given: text.clone() });
        };
        let (name, text) = (name.trim(), text.trim());
        let Some(index) = scalars.iter().position(|&(known, _)| known == name) else {
            let names = scalars.iter().map(|(name, _)| name.to_string()).collect();
            return Err(ScalarError::Unknown { name: name.into(), names });
        };
        if values[index].replace(value(name, text, scalars[index].1)?).is_some() {
            return Err(ScalarError::Repeated { name: name.into() });
        }
    }
    Ok(values)
}

/// The value of a text: for a float the nearest one of its type, but an error if a finite number becomes infinite.
fn value(name: &str, text: &str, dtype: DType) -> Result<Scalar, ScalarError> {
    let none = || ScalarError::NoValue { name: name.into(), given: text.into(), dtype };
    if !dtype.is_float() {
        return Scalar::parse(dtype, text).ok_or_else(none);
    }
    let number: f64 = text.parse().map_err(|_| none())?;
    // The parser of f32 rounds once; other floats have no parser of their own.
    let value = if dtype == DType::F32 { text.parse().ok().map(Scalar::f32) } else { None };
    let value = value.unwrap_or(Scalar::float(dtype, number));
    // `1e999` is infinite as soon as it is read.
    let infinite = text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("inf");
    if value.as_f64().is_infinite() && !infinite {
        return Err(ScalarError::Overflow { name: name.into(), given: text.into(), dtype });
    }
    Ok(if value.is_nan() { Scalar::nan(dtype) } else { value })
}
