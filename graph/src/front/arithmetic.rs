//! Formulas whose text depends on the types of their operands.

use super::{Lower, Operand, Stop};
use crate::DType;

/// The remainder of `x0 / x1` by the quotient towards zero, or rounded down.
pub(crate) fn remainder(is_float: bool, truncates: bool) -> &'static str {
    // The remainder by the quotient towards zero has the sign of x0; where x1 has another one, x1 is added.
    match (is_float, truncates) {
        (true, true) => "select(is_inf(x1) and not is_inf(x0), x0, fma(-trunc(x0 / x1), x1, x0))",
        (true, false) => {
            "select(is_inf(x1) and not is_inf(x0), select(x0 == 0 or (x0 < 0) == (x1 < 0), x0, x1), \
             fma(-floor(x0 / x1), x1, x0))"
        }
        (false, true) => "x0 - x0 / x1 * x1",
        (false, false) => {
            "select(x0 - x0 / x1 * x1 != 0 and (x0 < 0) != (x1 < 0), x0 - x0 / x1 * x1 + x1, x0 - x0 / x1 * x1)"
        }
    }
}

/// The integer quotient rounded down.
pub(crate) const FLOOR_DIVISION: &str = "select(x0 - x0 / x1 * x1 != 0 and (x0 < 0) != (x1 < 0), x0 / x1 - 1, x0 / x1)";

impl Lower {
    /// The power, of the type of its base.
    pub fn pow(&mut self, name: &str, x: &Operand, exponent: &Operand) -> Result<Operand, Stop> {
        let (of, by) = (x.dtype()?, exponent.dtype()?);
        // A constant exponent that does not stretch the result is part of the formula, where small ones are products.
        let (shape, other) = (x.shape()?, exponent.shape()?);
        let stretches = other.len() > shape.len() || other.iter().any(|&extent| extent != 1) && other != shape;
        let constant = match exponent {
            Operand::Splat(value, _) => Some(*value),
            Operand::Known(data) => data.uniform(),
            _ => None,
        };
        if let Some(value) = constant.filter(|_| !stretches) {
            let (whole, float) = (value.as_int(), value.as_f64());
            let whole = whole.or((float.fract() == 0.0 && float.abs() < 1e9).then_some(float as i128));
            match whole {
                Some(whole) if of.is_float() || (0..=64).contains(&whole) && by.is_int() => {
                    return self.map(name, &format!("pow(x0, {whole})"), &[x]);
                }
                None if of.is_float() && float.is_finite() => {
                    return self.map(name, &format!("pow(x0, {float:?})"), &[x]);
                }
                _ => {}
            }
        }
        let text = match (of.is_float(), by.is_float()) {
            (true, _) => {
                // The base decides the type of the formula.
                let to = if of == DType::F64 { DType::F64 } else { DType::F32 };
                let exponent = if by == to { exponent.clone() } else { self.cast("", to, exponent)? };
                return self.map_to(name, "pow(x0, x1)", &[x, &exponent], Some(of));
            }
            (false, true) => format!("{}(pow(f64(x0), f64(x1)))", of.name()),
            // The power of integers is whole; rounding takes away the error of its float.
            (false, false) => format!("{}(round(pow(f64(x0), f64(x1))))", of.name()),
        };
        self.map_to(name, &text, &[x, exponent], Some(of))
    }
}

/// A number in a formula; whole ones have no point, so that formulas of integers take them.
pub(crate) fn number(value: f32) -> String {
    match value {
        _ if value.is_nan() => "nan".into(),
        _ if value.is_infinite() => {
            if value > 0.0 {
                "inf".into()
            } else {
                "(-inf)".into()
            }
        }
        _ if value.fract() == 0.0 && value.abs() < 1e15 && (value != 0.0 || value.is_sign_positive()) => {
            if value < 0.0 { format!("({})", value as i64) } else { format!("{}", value as i64) }
        }
        _ if value.is_sign_negative() => format!("({value:?})"),
        _ => format!("{value:?}"),
    }
}
