//! An exact result, its rounding to the output, and the check of another executor's.

use super::real::Real;
use super::wide::Integer;
use crate::spec::{Reduction, Rounding};
use cranefold_ir::{DType, Scalar};
use std::cmp::Ordering;

/// The exact result of one output element, before it is rounded, wrapped or clamped to the output's
/// type.
#[derive(Clone, Debug, PartialEq)]
pub struct Exact {
    /// The result.
    pub value: Value,
    /// The sum of the magnitudes of the terms, which errors are measured by: of the finite x, |x|,
    /// x^2 or |x|^p; of exp(x - max); for a product its magnitude. 0 where the result is certain.
    pub scale: f64,
    allowed: Allowed,
}

/// A result by kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Of integers.
    Int(Integer),
    /// Of floats, or finished in f64.
    Float(Real),
    /// Of truth values.
    Bool(bool),
}

/// Results that the order and rounding of the accumulation may give, before the output's rounding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allowed {
    /// A partial result may overflow or underflow, and then anything.
    Anything,
    /// From `low` to `high`; and a NaN if `nan`. A NaN for both means a NaN.
    Between { low: Real, high: Real, nan: bool },
}

impl Allowed {
    /// This value alone.
    pub fn exactly(value: Real) -> Allowed {
        Allowed::Between { low: value, high: value, nan: false }
    }

    /// From `low` to `high`.
    pub fn between(low: Real, high: Real) -> Allowed {
        Allowed::Between { low, high, nan: false }
    }

    /// After an increasing function; where it is undefined below a point, a NaN and all from there.
    pub fn mapped(self, function: impl Fn(Real) -> Real) -> Allowed {
        match self {
            Allowed::Anything => self,
            Allowed::Between { low, high, nan } => match (function(low), function(high)) {
                (Real::Nan, high) if high != Real::Nan => {
                    // Roots are defined from 0 on, where they are 0; logarithms start below all.
                    Allowed::Between { low: function(Real::ZERO), high, nan: true }
                }
                (low, high) => Allowed::Between { low, high, nan },
            },
        }
    }

    /// Both bounds moved outwards.
    pub fn widened(self, by: impl Fn(Real) -> Real) -> Allowed {
        let moved = |bound: Real, sign: fn(Real) -> Real| {
            if matches!(bound, Real::Finite { .. }) { bound.plus(sign(by(bound))) } else { bound }
        };
        match self {
            Allowed::Anything => self,
            Allowed::Between { low, high, nan } => {
                Allowed::Between { low: moved(low, Real::minus), high: moved(high, |by| by), nan }
            }
        }
    }
}

/// A result outside what the spec allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{got} is not in {low} to {high}, expected {expected}")]
pub struct Mismatch {
    /// The result.
    pub got: Scalar,
    /// The exact result, rounded once.
    pub expected: Scalar,
    /// The least result allowed.
    pub low: Scalar,
    /// The greatest result allowed.
    pub high: Scalar,
}

impl Exact {
    /// A result that leaves no choice.
    pub(super) fn certain(value: Value) -> Exact {
        let bound = if let Value::Float(value) = value { value } else { Real::ZERO };
        Exact { value, scale: 0.0, allowed: Allowed::exactly(bound) }
    }

    /// A result with its bounds.
    pub(super) fn float(value: Real, scale: Real, allowed: Allowed) -> Exact {
        Exact { value: Value::Float(value), scale: scale.to_f64(), allowed }
    }

    /// The result in the output's type, rounded, wrapped or clamped once.
    ///
    /// The spec must be the one that the result was reduced for.
    pub fn round(&self, spec: &Reduction) -> Scalar {
        let output = spec.outputs()[0].dtype();
        match self.value {
            Value::Bool(value) => Scalar::bool(value),
            Value::Float(value) => round_real(spec, value),
            Value::Int(value) => match output.int_range() {
                None => {
                    let nearest = Real::from(Real::from(value).to_f64());
                    nearest.to_float(output)
                }
                Some(_) if wraps(spec) => Scalar::int(output, value.wrapped()),
                Some((low, high)) => Scalar::int(output, value.clamped(low, high)),
            },
        }
    }

    /// The least and the greatest result allowed, in the output's type, and whether a NaN is too;
    /// nothing if the order of accumulation decides.
    fn limits(&self, spec: &Reduction) -> Option<(Scalar, Scalar, bool)> {
        match (self.value, self.allowed) {
            (_, Allowed::Anything) => None,
            (Value::Float(_), Allowed::Between { low, high, nan }) => {
                Some((round_real(spec, low), round_real(spec, high), nan))
            }
            _ => Some((self.round(spec), self.round(spec), false)),
        }
    }

    /// The most that a right result may differ from the exact one: 0 for integers and truth values,
    /// infinite where the order of accumulation may decide that it overflows or is no number.
    pub fn error_bound(&self, spec: &Reduction) -> f64 {
        match self.limits(spec) {
            None => f64::INFINITY,
            Some((_, _, true)) => f64::INFINITY,
            Some((low, high, _)) => self.error(low).max(self.error(high)),
        }
    }

    /// How much a result differs from the exact one; 0 where both are the same infinity or NaN.
    ///
    /// Of results that are integers or truth values, it is 0 or infinite.
    pub fn error(&self, got: Scalar) -> f64 {
        let Value::Float(value) = self.value else {
            let same = match self.value {
                Value::Int(value) => got.as_int().is_none_or(|got| Integer::from(got) == value),
                Value::Bool(value) => got == Scalar::bool(value),
                Value::Float(_) => unreachable!("matched above"),
            };
            return if same { 0.0 } else { f64::INFINITY };
        };
        let got = Real::from(got.as_f64());
        match got.plus(value.minus()).abs() {
            _ if got == value => 0.0,
            Real::Nan => f64::INFINITY,
            difference => difference.to_f64(),
        }
    }
}

/// Checks one element of another executor's output.
///
/// Integer and truth results, minima, maxima and copies must be equal in bits; float results must
/// lie within the bounds that `src/reference/bound.rs` derives, and be of the same class (NaN,
/// infinite, finite) wherever that does not depend on the order of accumulation.
///
/// # Errors
/// What was expected, where `got` is not allowed.
pub fn check(spec: &Reduction, exact: &Exact, got: Scalar) -> Result<(), Mismatch> {
    let Some((low, high, nan)) = exact.limits(spec) else { return Ok(()) };
    let between = if low == high { got == low } else { ordered(low, got) && ordered(got, high) };
    let is_nan = if got.dtype().is_float() { got == Scalar::nan(got.dtype()) } else { got.bits() == 0 };
    if got.dtype() == low.dtype() && (between || (nan && is_nan)) {
        return Ok(());
    }
    Err(Mismatch { got, expected: exact.round(spec), low, high })
}

/// Whether `a` is at most `b`; false with a NaN.
fn ordered(a: Scalar, b: Scalar) -> bool {
    let order = match (a.as_int(), b.as_int()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64().partial_cmp(&b.as_f64()),
    };
    matches!(order, Some(Ordering::Less | Ordering::Equal))
}

/// A float result in the output's type.
fn round_real(spec: &Reduction, value: Real) -> Scalar {
    let output: DType = spec.outputs()[0].dtype();
    match output.int_range() {
        None => value.to_float(output),
        Some((low, high)) => Scalar::int(output, value.to_int(spec.rounding() == Rounding::HalfEven, low, high)),
    }
}

/// Whether integer results are taken modulo 2^bits.
fn wraps(spec: &Reduction) -> bool {
    matches!(spec.row().name, "sum" | "prod" | "l1" | "sum_squares") && !spec.saturate()
}
