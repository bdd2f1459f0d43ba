//! The parameters of a row, as a user gives them.

use super::{OpCall, Row, find};
use crate::DType;

/// The fault of a parameter, with the given value and the accepted ones.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages define the variants and their fields")]
pub enum ParamError {
    #[error("`{op}` has no parameter `{param}`; {}", known(op))]
    Unknown { op: &'static str, param: String },
    #[error("parameter `{param}` of `{op}` is given twice")]
    Repeated { op: &'static str, param: String },
    #[error("`{op}` needs the parameter `{param}`")]
    Missing { op: &'static str, param: &'static str },
    #[error("parameter `{param}` of `{op}` must be finite and at least {at_least}, {given} given")]
    OutOfRange { op: &'static str, param: &'static str, given: f64, at_least: f64 },
    #[error("parameter `{param}` of `{op}` must be finite, {given} given")]
    NotFinite { op: &'static str, param: &'static str, given: f64 },
    #[error("parameter `{param}` of `{op}` must be at most {at_most}, {given} given")]
    TooLarge { op: &'static str, param: &'static str, given: f64, at_most: f64 },
    #[error("`{param}` of `{op}` is 0 or 1, {given} given")]
    FlagValue { op: &'static str, param: &'static str, given: f64 },
    #[error("parameter `{param}` of `{op}` is {given}, which overflows the accumulator type {accumulator}")]
    Overflow { op: &'static str, param: &'static str, given: f64, accumulator: DType },
}

/// The parameters of a row, in words.
fn known(op: &str) -> String {
    let names: Vec<&str> = find(op).into_iter().flat_map(|row| row.params).map(|p| p.name).collect();
    if names.is_empty() { "it has none".into() } else { format!("it has {}", names.join(", ")) }
}

impl OpCall {
    /// The row with parameters by name, or the simpler row of the same meaning.
    ///
    /// ```
    /// use cranefold_ir::ops::{OpCall, find};
    ///
    /// let lp = find("lp").expect("a row");
    /// assert_eq!(OpCall::of(lp, &[("p".to_string(), 2.0)])?.to_string(), "l2");
    /// assert_eq!(OpCall::of(lp, &[]).unwrap_err().to_string(), "`lp` needs the parameter `p`");
    /// # Ok::<(), cranefold_ir::ops::ParamError>(())
    /// ```
    ///
    /// # Errors
    /// If a parameter is unknown, missing, given twice or outside its range.
    pub fn of(row: &'static Row, given: &[(String, f64)]) -> Result<OpCall, ParamError> {
        let mut values = vec![None; row.params.len()];
        for (name, value) in given {
            let param = || name.chars().take(40).collect();
            let index = row.params.iter().position(|p| p.name == name);
            let index = index.ok_or_else(|| ParamError::Unknown { op: row.name, param: param() })?;
            if values[index].replace(*value).is_some() {
                return Err(ParamError::Repeated { op: row.name, param: param() });
            }
        }
        let mut params = vec![];
        for (param, value) in row.params.iter().zip(values) {
            let (op, name, at_least, at_most) = (row.name, param.name, param.at_least, param.at_most);
            let given = value.or(param.default).ok_or(ParamError::Missing { op, param: name })?;
            if !given.is_finite() && at_least == f64::MIN {
                return Err(ParamError::NotFinite { op, param: name, given });
            }
            if param.is_flag && given != 0.0 && given != 1.0 {
                return Err(ParamError::FlagValue { op, param: name, given });
            }
            if given.is_finite() && given > at_most {
                return Err(ParamError::TooLarge { op, param: name, given, at_most });
            }
            if !given.is_finite() || given < at_least {
                return Err(ParamError::OutOfRange { op, param: name, given, at_least });
            }
            params.push(given);
        }
        Ok(match (row.canonical)(&params) {
            Some((name, params)) => OpCall::row(find(name).expect("a canonical row"), &params),
            None => OpCall::row(row, &params),
        })
    }

    /// Refuses a parameter that is infinite in the accumulator's type.
    ///
    /// # Errors
    /// If there is such a parameter.
    pub fn check_overflow(&self, accumulator: DType) -> Result<(), ParamError> {
        let Some(row) = self.as_row().filter(|_| accumulator == DType::F32) else { return Ok(()) };
        let mut named = row.params.iter().map(|p| p.name).zip(self.params());
        match named.find(|(_, value)| (*value as f32).is_infinite()) {
            Some((param, given)) => Err(ParamError::Overflow { op: row.name, param, given, accumulator }),
            None => Ok(()),
        }
    }
}
