//! An exact result, its rounding to the output, and the check of another executor's.

use super::known::Known;
use super::real::Real;
use super::wide::Integer;
use cranefold_ir::{DType, Scalar};
use cranefold_spec::{Rounding, Spec};
use std::cmp::Ordering;

/// The exact result of one output element, before it is rounded, wrapped or clamped to the output's
/// type.
#[derive(Clone, Debug, PartialEq)]
pub struct Exact {
    /// The result.
    pub value: Value,
    /// The sum of the magnitudes of the terms, the unit of errors: of the finite x, |x|, x^2 or |x|^p; of
    /// exp(x - max); for a product its magnitude. 0 if the result is certain, and after expressions.
    pub scale: f64,
    allowed: Allowed,
    /// True if an integer is taken modulo 2^bits of the output, rather than clamped to it.
    wraps: bool,
    /// The number of its output.
    output: usize,
}

/// A result by kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// The result of integers.
    Int(Integer),
    /// The result of floats, or one finished in f64.
    Float(Real),
    /// The result of truth values.
    Bool(bool),
}

/// Results that the order and rounding of the accumulation may give, before the output's rounding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allowed {
    /// Any result, since a partial one may overflow or underflow.
    Anything,
    /// From `low` to `high`; and a NaN if `nan`. A NaN for both means a NaN.
    Between { low: Real, high: Real, nan: bool },
}

impl Allowed {
    /// The bounds of one value.
    pub fn exactly(value: Real) -> Allowed {
        Allowed::Between { low: value, high: value, nan: false }
    }

    /// Returns true if all of them lie between finite numbers.
    pub fn is_finite(self) -> bool {
        matches!(self, Allowed::Between { low, high, nan: false } if low.is_finite() && high.is_finite())
    }

    /// The same results and NaN, if the result itself is NaN and they lie between numbers.
    fn with_nan(self, is_nan: bool) -> Allowed {
        match self {
            Allowed::Between { low, high, nan } if low != Real::Nan => {
                Allowed::Between { low, high, nan: nan || is_nan }
            }
            other => other,
        }
    }

    /// The bounds `low` and `high`.
    pub fn between(low: Real, high: Real) -> Allowed {
        Allowed::Between { low, high, nan: false }
    }

    /// The bounds after an increasing function; if it is undefined below a point, NaN and the results from there.
    pub fn mapped(self, function: impl Fn(Real) -> Real) -> Allowed {
        match self {
            Allowed::Anything => self,
            Allowed::Between { low, high, nan } => match (function(low), function(high)) {
                (Real::Nan, high) if high != Real::Nan => {
                    // Roots are defined from 0 on, where they are 0; logarithms start at -inf.
                    Allowed::Between { low: function(Real::ZERO), high, nan: true }
                }
                (low, high) => Allowed::Between { low, high, nan },
            },
        }
    }

    /// The bounds with both ends replaced by a function that keeps their order.
    pub fn ends(self, function: impl Fn(Real) -> Real) -> Allowed {
        match self {
            Allowed::Anything => self,
            Allowed::Between { low, high, nan } => Allowed::Between { low: function(low), high: function(high), nan },
        }
    }

    /// The hull of both bounds.
    pub fn or(self, other: Allowed) -> Allowed {
        match (self, other) {
            (Allowed::Between { low: Real::Nan, .. }, Allowed::Between { low, high, nan }) => {
                Allowed::Between { low, high, nan: nan || low != Real::Nan }
            }
            (Allowed::Between { low, high, .. }, Allowed::Between { low: Real::Nan, .. }) => {
                Allowed::Between { low, high, nan: true }
            }
            (Allowed::Between { low: a, high: b, nan }, Allowed::Between { low: c, high: d, nan: other_nan }) => {
                Allowed::Between { low: a.min(c), high: b.max(d), nan: nan || other_nan }
            }
            _ => Allowed::Anything,
        }
    }

    /// The bounds and NaN, if `nan` is set.
    pub fn or_nan(self, nan: bool) -> Allowed {
        if nan { self.or(Allowed::exactly(Real::Nan)) } else { self }
    }

    /// The bounds moved outwards at both ends.
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

/// A result outside the bounds that the spec allows.
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
    /// A result with one allowed value.
    pub(super) fn certain(value: Value) -> Exact {
        Exact { value, scale: 0.0, allowed: Allowed::exactly(real(value)), wraps: false, output: 0 }
    }

    /// A result with its bounds; if they allow one value, that is the result.
    pub(super) fn float(value: Real, scale: Real, allowed: Allowed) -> Exact {
        let value = match allowed {
            Allowed::Between { low, high, nan: false } if low == high => low,
            _ => value,
        };
        let allowed = allowed.with_nan(value == Real::Nan);
        Exact { value: Value::Float(value), scale: scale.to_f64(), allowed, wraps: false, output: 0 }
    }

    /// The value of an expression.
    pub(super) fn known(known: Known, wraps: bool) -> Exact {
        let value = match known.dtype {
            DType::Bool => Value::Bool(!known.value.is_zero()),
            dtype if dtype.is_float() => Value::Float(known.value),
            _ => Value::Int(Integer::from(known.whole())),
        };
        Exact { value, scale: 0.0, allowed: known.allowed.with_nan(known.value == Real::Nan), wraps, output: 0 }
    }

    /// The result, whose integer is taken modulo 2^bits of the output if `wraps` is set.
    pub(super) fn wrapping(self, wraps: bool) -> Exact {
        Exact { wraps, ..self }
    }

    /// The result for this output.
    pub(super) fn of_output(self, output: usize) -> Exact {
        Exact { output, ..self }
    }

    /// The allowed results, before the output's rounding.
    pub(super) fn allowed(&self) -> Allowed {
        self.allowed
    }

    /// The result with other bounds around it.
    pub(super) fn within(self, allowed: Allowed) -> Exact {
        Exact { allowed, ..self }
    }

    /// The result as expressions see it, in a type of its kind.
    pub(super) fn in_expression(&self, dtype: DType) -> Known {
        let settle = |value| Known::element(self.settled(value, dtype, false)).value;
        let allowed = match self.value {
            Value::Float(_) => self.allowed.ends(|bound| settle(Value::Float(bound))),
            Value::Int(_) => match self.allowed {
                Allowed::Between { low, high, .. } if low == high => Allowed::exactly(settle(self.value)),
                allowed => return Known::whole_between(dtype, settle(self.value), allowed),
            },
            Value::Bool(_) => self.allowed,
        };
        Known { dtype, value: settle(self.value), allowed }
    }

    /// Returns true if the allowed results are one, or lie between two numbers other than the limits of the output's
    /// type. The order of accumulation alone decides an unbounded result.
    ///
    /// The spec must be the one that the result was reduced for.
    pub fn is_bounded(&self, spec: &Spec) -> bool {
        match self.limits(spec) {
            None | Some((_, _, true)) => false,
            Some((low, high, _)) if low == high => true,
            Some((low, high, _)) => {
                let range = spec.outputs()[self.output].dtype().int_range();
                let limits = low.as_int().zip(high.as_int());
                low.as_f64().is_finite() && high.as_f64().is_finite() && (limits.is_none() || limits != range)
            }
        }
    }

    /// The result in the output's type, rounded, wrapped or clamped once.
    ///
    /// The spec must be the one that the result was reduced for.
    pub fn round(&self, spec: &Spec) -> Scalar {
        self.in_output(spec, self.value)
    }

    /// A value like this result's, in the output's type.
    fn in_output(&self, spec: &Spec, value: Value) -> Scalar {
        self.settled(value, spec.outputs()[self.output].dtype(), spec.rounding() == Rounding::HalfEven)
    }

    fn settled(&self, value: Value, to: DType, half_even: bool) -> Scalar {
        match (value, to.int_range()) {
            (Value::Bool(value), _) => Scalar::bool(value),
            (Value::Float(value), None) => value.to_float(to),
            (Value::Float(value), Some((low, high))) => Scalar::int(to, value.to_int(half_even, low, high)),
            (Value::Int(value), None) => Real::from(Real::from(value).to_f64()).to_float(to),
            (Value::Int(value), Some(_)) if self.wraps => Scalar::int(to, value.wrapped()),
            (Value::Int(value), Some((low, high))) => Scalar::int(to, value.clamped(low, high)),
        }
    }

    /// The least and the greatest allowed result, in the output's type, and true if NaN is allowed;
    /// none if the order of accumulation decides.
    fn limits(&self, spec: &Spec) -> Option<(Scalar, Scalar, bool)> {
        let Allowed::Between { low, high, nan } = self.allowed else { return None };
        if low == high {
            // Integers of more than 128 bits are not in the bounds.
            let bound = if let Value::Float(_) = self.value { Value::Float(low) } else { self.value };
            let only = self.in_output(spec, bound);
            return Some((only, only, nan));
        }
        match self.value {
            Value::Float(_) => {
                Some((self.in_output(spec, Value::Float(low)), self.in_output(spec, Value::Float(high)), nan))
            }
            Value::Bool(_) => None,
            Value::Int(_) => {
                let range = (i128::from(i64::MIN), i128::from(u64::MAX));
                let end = |bound: Real| Value::Int(Integer::from(bound.to_int(false, range.0, range.1)));
                let (low, high) = (self.in_output(spec, end(low)), self.in_output(spec, end(high)));
                // Modulo 2^bits the ends may change places.
                ordered(low, high).then_some((low, high, false)).filter(|_| !self.wraps)
            }
        }
    }

    /// The most that a correct result may differ from the exact one: 0 for integers and truth values, unless they are
    /// of values that are rounded; infinite if the order of accumulation may make it overflow or NaN.
    pub fn error_bound(&self, spec: &Spec) -> f64 {
        match self.limits(spec) {
            None => f64::INFINITY,
            Some((_, _, true)) => f64::INFINITY,
            Some((low, high, _)) if low == high && !matches!(self.value, Value::Float(_)) => 0.0,
            Some(_) if !matches!(self.value, Value::Float(_)) && !self.is_bounded(spec) => f64::INFINITY,
            Some((low, high, _)) if matches!(self.value, Value::Int(_)) => {
                let from = |end: Scalar| end.as_int().zip(self.round(spec).as_int()).map(|(end, x)| end.abs_diff(x));
                from(low).max(from(high)).map_or(f64::INFINITY, |distance| distance as f64)
            }
            Some((low, high, _)) => self.error(spec, low).max(self.error(spec, high)),
        }
    }

    /// The distance of a result from the exact one; 0 where both are the same infinity or NaN. For an integer output
    /// it is the distance from the exact result after rounding and clamping.
    ///
    /// For results that are integers or truth values from the start, it is 0 or infinite.
    pub fn error(&self, spec: &Spec, got: Scalar) -> f64 {
        let value = match self.value {
            Value::Float(value) => value,
            Value::Int(value) if got.as_int().is_none_or(|got| Integer::from(got) == value) => return 0.0,
            Value::Bool(value) if got == Scalar::bool(value) => return 0.0,
            _ => return f64::INFINITY,
        };
        if let (Some(got), Some(expected)) = (got.as_int(), self.round(spec).as_int()) {
            return got.abs_diff(expected) as f64;
        }
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
/// lie within the bounds that `bound.rs` derives, and be of the same class (NaN,
/// infinite, finite) wherever that does not depend on the order of accumulation.
///
/// # Errors
/// The expected result and its bounds, if `got` is not allowed.
pub fn check(spec: &Spec, exact: &Exact, got: Scalar) -> Result<(), Mismatch> {
    let Some((low, high, nan)) = exact.limits(spec) else { return Ok(()) };
    let between = if low == high { got == low } else { ordered(low, got) && ordered(got, high) };
    let is_nan = if got.dtype().is_float() { got == Scalar::nan(got.dtype()) } else { got.bits() == 0 };
    if got.dtype() == low.dtype() && (between || (nan && is_nan)) {
        return Ok(());
    }
    Err(Mismatch { got, expected: exact.round(spec), low, high })
}

/// Returns true if `a` is at most `b`; false with a NaN.
fn ordered(a: Scalar, b: Scalar) -> bool {
    let order = match (a.as_int(), b.as_int()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64().partial_cmp(&b.as_f64()),
    };
    matches!(order, Some(Ordering::Less | Ordering::Equal))
}

/// A result as a number; integers beyond 128 bits are not exact.
fn real(value: Value) -> Real {
    match value {
        Value::Int(value) => Real::from(value),
        Value::Float(value) => value,
        Value::Bool(value) => Known::truth(value).value,
    }
}
