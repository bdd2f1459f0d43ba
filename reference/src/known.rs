//! Interval arithmetic on values of a type: the results that rounding allows.
//!
//! Operations that IEEE 754 rounds correctly give one value where their operands are one value; so a
//! expression without `exp`, `log` and `pow` is known to the bit. On intervals they give the interval of all
//! results, or [`Allowed::Anything`] if a corner is NaN; of integers, all values of the type if a corner wraps. A
//! comparison that intervals do not decide may be true or false, and `select` then gives the hull of both arms.
//! Operands are taken to be independent of one another, but for a value with itself: [`Known::with_itself`].

use super::bound::{Accumulator, non_negative};
use super::exact::Allowed;
use super::real::Real;
use cranefold_ir::expression::Operation;
use cranefold_ir::{DType, Scalar};
use std::cmp::Ordering;

/// A value of a type: floats as they are, integers and truth (0 or 1) as real numbers, which hold 128
/// bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// The type.
    pub dtype: DType,
    /// The value if every operation is rounded correctly.
    pub value: Real,
    /// The allowed values.
    pub allowed: Allowed,
}

impl Known {
    /// One known value.
    pub fn exactly(dtype: DType, value: Real) -> Known {
        Known { dtype, value, allowed: Allowed::exactly(value) }
    }

    /// An element of a buffer.
    pub fn element(element: Scalar) -> Known {
        let value = match element.as_int() {
            Some(value) => integer(value),
            None => Real::from(element.as_f64()),
        };
        Known::exactly(element.dtype(), value)
    }

    /// One known truth value.
    pub fn truth(value: bool) -> Known {
        Known::exactly(DType::Bool, if value { Real::ONE } else { Real::ZERO })
    }

    /// A value without bounds; `value` is the result for exact operands.
    pub fn anything(dtype: DType, value: Real) -> Known {
        Known { dtype, value, allowed: anything(dtype) }
    }

    /// An integer of which bounds are known: beyond an integer type it may be any value, by wrapping; to a float it is
    /// rounded.
    pub fn whole_between(dtype: DType, value: Real, allowed: Allowed) -> Known {
        let Some((least, greatest)) = dtype.int_range() else {
            return Known { dtype, value, allowed: allowed.ends(|end| nearest(dtype, end)) };
        };
        let inside = |end: Real| !end.below(integer(least)) && !integer(greatest).below(end);
        match allowed {
            Allowed::Between { low, high, .. } if inside(low) && inside(high) => Known { dtype, value, allowed },
            _ => Known::anything(dtype, value),
        }
    }

    /// The least allowed value; NaN if there is none.
    pub fn low(self) -> Real {
        if let Allowed::Between { low, .. } = self.allowed { low } else { Real::Nan }
    }

    /// The greatest allowed value; NaN if there is none.
    pub fn high(self) -> Real {
        if let Allowed::Between { high, .. } = self.allowed { high } else { Real::Nan }
    }

    /// The least allowed magnitude; NaN if there is none.
    pub fn least_magnitude(self) -> Real {
        if self.spans_zero() && self.low() != Real::Nan { Real::ZERO } else { self.low().abs().min(self.high().abs()) }
    }

    /// The greatest allowed magnitude; NaN if there is none.
    pub fn greatest_magnitude(self) -> Real {
        self.low().abs().max(self.high().abs())
    }

    /// The ends of the bounds and the furthest that they are from the value; none if an end is infinite or NaN.
    pub fn ends(self) -> Option<(Real, Real, Real)> {
        let Allowed::Between { low, high, .. } = self.allowed else { return None };
        let radius = high.plus(self.value.minus()).max(self.value.plus(low.minus()));
        self.allowed.is_finite().then_some((low, high, radius))
    }

    /// Returns the value if only one is allowed.
    pub fn point(self) -> Option<Real> {
        match self.allowed {
            Allowed::Between { low, high, nan: false } if low == high => Some(low),
            _ => None,
        }
    }

    /// Returns the truth value if it is known.
    pub fn is_true(self) -> Option<bool> {
        self.point().map(|truth| !truth.is_zero())
    }

    /// The value as an integer, rounded towards zero.
    pub fn whole(self) -> i128 {
        whole(self.value)
    }

    /// The value rounded to a float type, to nearest.
    fn rounded(dtype: DType, value: Real, allowed: Allowed) -> Known {
        Known { dtype, value: nearest(dtype, value), allowed: allowed.ends(|bound| nearest(dtype, bound)) }
    }

    /// A correctly rounded operation on two floats: `operation` at the corners.
    fn corners(self, other: Known, operation: impl Fn(Real, Real) -> Real) -> Known {
        let value = operation(self.value, other.value);
        if self.point() == Some(Real::Nan) || other.point() == Some(Real::Nan) {
            return Known::exactly(self.dtype, Real::Nan);
        }
        if let (Some(a), Some(b)) = (self.point(), other.point()) {
            return Known::rounded(self.dtype, value, Allowed::exactly(operation(a, b)));
        }
        let allowed = match (self.allowed, other.allowed) {
            (Allowed::Between { low: a, high: b, nan }, Allowed::Between { low: c, high: d, nan: other_nan }) => {
                let corners = [(a, c), (a, d), (b, c), (b, d)].map(|(x, y)| operation(x, y));
                between(&corners, nan || other_nan)
            }
            _ => Allowed::Anything,
        };
        Known::rounded(self.dtype, value, allowed)
    }

    /// The sum.
    pub fn plus(self, other: Known) -> Known {
        if self.dtype.is_int() {
            return self.monotone(other, |a, b| a.checked_add(b));
        }
        self.corners(other, Real::plus)
    }

    /// The difference.
    pub fn less(self, other: Known) -> Known {
        if self.dtype.is_int() {
            return self.monotone(other, |a, b| a.checked_sub(b));
        }
        self.corners(other, |a, b| a.plus(b.minus()))
    }

    /// The product.
    pub fn times(self, other: Known) -> Known {
        if self.dtype.is_int() {
            return self.monotone(other, |a, b| Some((a as u128).wrapping_mul(b as u128) as i128));
        }
        if self.times_may_be_undefined(other) {
            return Known::anything(self.dtype, nearest(self.dtype, self.value.times(other.value)));
        }
        self.corners(other, Real::times)
    }

    /// The quotient; of integers towards zero, by 0 it is 0.
    pub fn over(self, other: Known) -> Known {
        if self.dtype.is_int() {
            let quotient = |a, b| Some(if b == 0 { 0 } else { a / b });
            return if other.spans_zero() { self.integers(other, quotient) } else { self.monotone(other, quotient) };
        }
        if other.point().is_none() && other.spans_zero() {
            return Known::anything(self.dtype, nearest(self.dtype, self.value.over(other.value)));
        }
        self.corners(other, Real::over)
    }

    /// `self * b + c`, rounded once.
    pub fn fused(self, b: Known, c: Known) -> Known {
        let value = nearest(self.dtype, self.value.times(b.value).plus(c.value));
        if let (Some(x), Some(y), Some(z)) = (self.point(), b.point(), c.point()) {
            return Known::exactly(self.dtype, nearest(self.dtype, x.times(y).plus(z)));
        }
        let allowed = match (self.allowed, b.allowed, c.allowed) {
            (
                Allowed::Between { low: a0, high: a1, nan: n0 },
                Allowed::Between { low: b0, high: b1, nan: n1 },
                Allowed::Between { low: c0, high: c1, nan: n2 },
            ) if !self.times_may_be_undefined(b) => {
                let products = [a0.times(b0), a0.times(b1), a1.times(b0), a1.times(b1)];
                let corners: Vec<Real> = products.into_iter().flat_map(|p| [p.plus(c0), p.plus(c1)]).collect();
                between(&corners, n0 || n1 || n2)
            }
            _ => Allowed::Anything,
        };
        Known { value, ..Known::rounded(self.dtype, value, allowed) }
    }

    /// The lesser; NaN if either is.
    pub fn min(self, other: Known) -> Known {
        self.corners(other, Real::min)
    }

    /// The greater; NaN if either is.
    pub fn max(self, other: Known) -> Known {
        self.corners(other, Real::max)
    }

    /// The negative; of integers modulo 2^bits.
    pub fn minus(self) -> Known {
        if self.dtype.is_int() {
            return Known::exactly(self.dtype, Real::ZERO).monotone(self, |a, b| a.checked_sub(b));
        }
        let allowed = match self.allowed {
            Allowed::Between { low, high, nan } => Allowed::Between { low: high.minus(), high: low.minus(), nan },
            Allowed::Anything => Allowed::Anything,
        };
        Known { value: self.value.minus(), allowed, ..self }
    }

    /// The magnitude; the least integer's is itself.
    pub fn abs(self) -> Known {
        let least = self.dtype.int_range().map(|(least, _)| integer(least));
        let wraps = matches!(self.allowed, Allowed::Between { low, .. } if low.is_negative() && Some(low) == least);
        if self.point().is_some() && least.is_some() || wraps {
            return self.integers(self, |a, _| a.checked_abs());
        }
        let allowed = match self.allowed {
            Allowed::Between { low, high, nan } if low.is_negative() && !high.is_negative() => {
                Allowed::Between { low: Real::ZERO, high: low.abs().max(high), nan }
            }
            Allowed::Between { low, high, nan } if low.is_negative() => {
                Allowed::Between { low: high.abs(), high: low.abs(), nan }
            }
            other => other,
        };
        Known { value: self.value.abs(), allowed, ..self }
    }

    /// The root.
    pub fn root(self) -> Known {
        Known::rounded(self.dtype, self.value.square_root(), self.allowed.mapped(Real::square_root))
    }

    /// Returns e to this power, within the error of our own function.
    pub fn exp(self) -> Known {
        let special = self.point().is_some_and(|x| x.is_zero() || !x.is_finite());
        self.function(special, Real::exp, Accumulator::exponential)
    }

    /// The natural logarithm, within the error of our own function.
    pub fn ln(self) -> Known {
        let special = self.point().is_some_and(|x| x == Real::ONE || x.is_zero() || x.is_negative() || !x.is_finite());
        self.function(special, Real::ln, Accumulator::logarithm)
    }

    /// Returns e to this power less 1, within the error of our own function.
    pub fn exp_less_one(self) -> Known {
        self.function(self.is_limit(), Real::exp_less_one, Accumulator::exponential_less_one)
    }

    /// The natural logarithm of 1 and this, within the error of our own function.
    pub fn ln_of_one_plus(self) -> Known {
        let special = self.is_limit() || self.point().is_some_and(|x| !Real::ONE.minus().below(x));
        self.function(special, Real::ln_of_one_plus, Accumulator::logarithm_of_one_plus)
    }

    /// The hyperbolic tangent, within the error of our own function.
    pub fn tanh(self) -> Known {
        self.function(self.is_limit(), Real::tanh, |a, bounds| a.sigmoidal(bounds, Real::tanh))
    }

    /// The error function, within the error of our own function.
    pub fn erf(self) -> Known {
        self.function(self.is_limit(), Real::erf, |a, bounds| a.sigmoidal(bounds, Real::erf))
    }

    /// Returns true for one zero, infinity or NaN.
    fn is_limit(self) -> bool {
        self.point().is_some_and(|x| x.is_zero() || !x.is_finite())
    }

    /// An exact function that never falls, on floats; an integer stays as it is.
    pub fn rounded_by(self, function: impl Fn(Real) -> Real) -> Known {
        if self.dtype.is_int() {
            return self;
        }
        Known { value: function(self.value), allowed: self.allowed.ends(function), ..self }
    }

    /// 1 above zero, -1 below, else the value itself.
    pub fn sign(self) -> Known {
        if self.dtype.is_int() {
            return self.integers(self, |a, _| Some(a.signum()));
        }
        self.rounded_by(|x| match x {
            Real::Nan | Real::Zero { .. } => x,
            _ if x.is_negative() => Real::ONE.minus(),
            _ => Real::ONE,
        })
    }

    /// The condition that this is NaN.
    pub fn is_nan(self) -> Known {
        let value = Known::truth(self.value == Real::Nan);
        match self.allowed {
            _ if self.point().is_some() => value,
            Allowed::Between { low, high, nan: false } if low != Real::Nan && high != Real::Nan => Known::truth(false),
            _ => value.or_not(),
        }
    }

    /// The condition that this is infinite.
    pub fn is_infinite(self) -> Known {
        let value = Known::truth(matches!(self.value, Real::Infinite { .. }));
        match self.allowed {
            _ if self.point().is_some() => value,
            Allowed::Between { low, high, .. } if low.is_finite() && high.is_finite() => Known::truth(false),
            _ => value.or_not(),
        }
    }

    /// An operation on the bits of two integers, or on two truth values as integers of 0 and 1.
    pub fn bits(self, other: Known, operation: impl Fn(i128, i128) -> i128) -> Known {
        if self.dtype != DType::Bool {
            return self.integers(other, |a, b| Some(operation(a, b)));
        }
        let at = |a: Known, b: Known| Known::truth(operation(whole(a.value), whole(b.value)) & 1 == 1);
        let value = at(self, other);
        if self.point().is_some() && other.point().is_some() { value } else { value.or_not() }
    }

    /// The amount of a shift of this type: modulo its bits.
    pub fn amount(self, amount: i128) -> u32 {
        (amount & i128::from(self.dtype.bits() - 1)) as u32
    }

    fn function(
        self,
        special: bool,
        function: impl Fn(Real) -> Real,
        bounds: impl Fn(Accumulator, Allowed) -> Allowed,
    ) -> Known {
        let value = nearest(self.dtype, function(self.value));
        let allowed = if special { Allowed::exactly(value) } else { bounds(Accumulator::of(self.dtype), self.allowed) };
        Known { value, ..Known::rounded(self.dtype, value, allowed) }
    }

    /// Returns this to a power, with the corner cases of IEEE 754; of integers modulo 2^bits.
    pub fn power(self, exponent: Known) -> Known {
        if self.dtype.is_int() {
            let power =
                |a: i128, n: i128| (0..n).try_fold(1i128, |p, _| Some((p as u128).wrapping_mul(a as u128) as i128));
            return self.integers(exponent, power);
        }
        let value = nearest(self.dtype, power(self.value, exponent.value));
        let allowed = match (self.allowed, exponent.point()) {
            (_, Some(y)) if y.is_zero() => Allowed::exactly(Real::ONE),
            (_, y) => match (self.point(), y) {
                (Some(x), Some(y)) => {
                    let exact = power(x, y);
                    let certain = x.is_zero() || !x.is_finite() || x == Real::ONE || !exact.is_finite();
                    let exact = Allowed::exactly(exact);
                    if certain { exact } else { Accumulator::of(self.dtype).power(exact) }
                }
                (None, Some(y)) if self.allowed.is_finite() => match whole_kind(y) {
                    Whole::Even if !y.is_negative() => self.abs().power_at_corners(exponent),
                    Whole::Odd if !y.is_negative() => self.power_of_ends(y),
                    Whole::Even | Whole::Odd if !self.spans_zero() => self.power_of_ends(y),
                    _ => self.power_at_corners(exponent),
                },
                _ => self.power_at_corners(exponent),
            },
        };
        Known { value, ..Known::rounded(self.dtype, value, allowed) }
    }

    /// The power of an interval to an exponent for which it is monotone there.
    fn power_of_ends(self, exponent: Real) -> Allowed {
        let Allowed::Between { low, high, .. } = self.allowed else { return Allowed::Anything };
        Accumulator::of(self.dtype).power(between(&[low, high].map(|end| power(end, exponent)), false))
    }

    /// The power of intervals, from zero on, where it is monotone in base and exponent.
    fn power_at_corners(self, exponent: Known) -> Allowed {
        match (self.allowed, exponent.allowed) {
            (Allowed::Between { low: a, high: b, nan: false }, Allowed::Between { low: c, high: d, nan: false })
                if (Real::ZERO.below(a) || !a.below(Real::ZERO) && Real::ZERO.below(c))
                    && b.is_finite()
                    && c.is_finite()
                    && d.is_finite() =>
            {
                let corners = [power(a, c), power(a, d), power(b, c), power(b, d)];
                non_negative(Accumulator::of(self.dtype).power(between(&corners, false)))
            }
            _ => Allowed::Anything,
        }
    }

    /// The numeric comparison; `holds` gets the order, none if an operand is NaN.
    pub fn compare(self, other: Known, holds: impl Fn(Option<Ordering>) -> bool) -> Known {
        let value = Known::truth(holds(self.value.compare(other.value)));
        let (Allowed::Between { low: a, high: b, nan }, Allowed::Between { low: c, high: d, nan: other_nan }) =
            (self.allowed, other.allowed)
        else {
            return value.or_not();
        };
        let orders = [a.compare(c), a.compare(d), b.compare(c), b.compare(d)];
        // An interval includes all values between its ends: both orders imply equality too.
        let both = orders.contains(&Some(Ordering::Less)) && orders.contains(&Some(Ordering::Greater));
        let further = [both.then_some(Some(Ordering::Equal)), (nan || other_nan).then_some(None)];
        match orders.into_iter().chain(further.into_iter().flatten()).all(|o| holds(o) == holds(orders[0])) {
            true => Known::truth(holds(orders[0])),
            false => value.or_not(),
        }
    }

    /// A truth value that may be this one or the other.
    fn or_not(self) -> Known {
        Known { allowed: Allowed::between(Real::ZERO, Real::ONE), ..self }
    }

    /// The conjunction.
    pub fn and(self, other: Known) -> Known {
        let value = Known::truth(!self.value.is_zero() && !other.value.is_zero());
        match (self.is_true(), other.is_true()) {
            (Some(false), _) | (_, Some(false)) => Known::truth(false),
            (Some(true), Some(true)) => Known::truth(true),
            _ => value.or_not(),
        }
    }

    /// The negation.
    pub fn not(self) -> Known {
        let value = Known::truth(self.value.is_zero());
        if self.is_true().is_some() { value } else { value.or_not() }
    }

    /// The disjunction.
    pub fn or(self, other: Known) -> Known {
        self.not().and(other.not()).not()
    }

    /// Returns `yes` if this is true, else `no`.
    pub fn select(self, yes: Known, no: Known) -> Known {
        let value = if self.value.is_zero() { no } else { yes };
        match self.is_true() {
            Some(_) => value,
            None => Known { allowed: yes.allowed.or(no.allowed), ..value },
        }
    }

    /// The value converted to another type.
    pub fn cast(self, to: DType) -> Known {
        let from = self.dtype;
        match to.int_range() {
            _ if from == to => self,
            _ if to == DType::Bool => {
                let zero = Known::exactly(from, Real::ZERO);
                self.compare(zero, |order| order != Some(Ordering::Equal))
            }
            Some(range) if from.is_float() => {
                let whole = |x: Real| integer(x.to_int(false, range.0, range.1));
                let allowed = match self.allowed {
                    Allowed::Between { low, high, nan } => {
                        let all = Allowed::between(whole(low), whole(high));
                        if nan { all.or(Allowed::exactly(Real::ZERO)) } else { all }
                    }
                    Allowed::Anything => anything(to),
                };
                Known { dtype: to, value: whole(self.value), allowed }
            }
            Some(_) => Known { dtype: to, ..self }.monotone(self, |a, _| Some(a)),
            None => {
                // Integers become 16-bit floats through f64, as sums of integers do.
                let through = if from.is_int() && to.bytes() < 4 { DType::F64 } else { to };
                let nearest = |x: Real| nearest(to, nearest(through, x));
                Known { dtype: to, value: nearest(self.value), allowed: self.allowed.ends(nearest) }
            }
        }
    }

    /// An operation on integers, modulo 2^bits of `self`'s type; `operation` returns `None` beyond 128 bits.
    fn integers(self, other: Known, operation: impl Fn(i128, i128) -> Option<i128>) -> Known {
        let at = |a: Real, b: Real| {
            operation(whole(a), whole(b)).map_or(0, |v| Scalar::int(self.dtype, v).as_int().expect("an integer"))
        };
        let value = integer(at(self.value, other.value));
        match (self.point(), other.point()) {
            (Some(a), Some(b)) => Known::exactly(self.dtype, integer(at(a, b))),
            _ => Known::anything(self.dtype, value),
        }
    }

    /// An operation on integers that is monotone in each operand: on intervals the interval of its corners, or all
    /// values if one of them is beyond the type.
    fn monotone(self, other: Known, operation: impl Fn(i128, i128) -> Option<i128>) -> Known {
        let of_value = self.integers(other, &operation);
        let (None, Some((least, greatest))) = (of_value.point(), self.dtype.int_range()) else { return of_value };
        let (Allowed::Between { low: a, high: b, .. }, Allowed::Between { low: c, high: d, .. }) =
            (self.allowed, other.allowed)
        else {
            return of_value;
        };
        let corners = [(a, c), (a, d), (b, c), (b, d)].map(|(x, y)| operation(whole(x), whole(y)));
        let inside = |corner: &Option<i128>| corner.is_some_and(|value| least <= value && value <= greatest);
        match corners.iter().all(inside) {
            true => Known { allowed: between(&corners.map(|c| integer(c.unwrap_or(0))), false), ..of_value },
            false => of_value,
        }
    }

    /// An operation on this value and itself, where it is narrower than on two values of the same bounds.
    pub fn with_itself(self, operation: Operation) -> Option<Known> {
        if self.point().is_some() || !self.allowed.is_finite() {
            return None;
        }
        Some(match operation {
            Operation::Sub => Known::exactly(self.dtype, Real::ZERO),
            Operation::Div if !self.spans_zero() => Known::exactly(self.dtype, Real::ONE),
            Operation::Mul => self.abs().times(self.abs()),
            Operation::Min | Operation::Max => self,
            Operation::Eq | Operation::Le | Operation::Ge => Known::truth(true),
            Operation::Ne | Operation::Lt | Operation::Gt => Known::truth(false),
            _ => return None,
        })
    }

    /// Returns true if a zero is among the values.
    fn spans_zero(self) -> bool {
        match self.allowed {
            Allowed::Anything => true,
            Allowed::Between { low, high, .. } => !Real::ZERO.below(low) && !high.below(Real::ZERO),
        }
    }

    /// Returns true if an infinity is among the values.
    fn reaches_infinity(self) -> bool {
        match self.allowed {
            Allowed::Anything => true,
            Allowed::Between { low, high, .. } => {
                [low, high].into_iter().any(|end| matches!(end, Real::Infinite { .. }))
            }
        }
    }

    /// Returns true if the product may be NaN because one value may be zero and the other infinite. It is false where
    /// both are points, whose product is known, and where one is a NaN.
    fn times_may_be_undefined(self, other: Known) -> bool {
        let points = self.point().is_some() && other.point().is_some();
        let meet = |a: Known, b: Known| a.point() != Some(Real::Nan) && a.spans_zero() && b.reaches_infinity();
        !points && (meet(self, other) || meet(other, self))
    }
}

/// An integer as a real number.
pub fn integer(value: i128) -> Real {
    Real::from(super::wide::Integer::from(value))
}

fn whole(value: Real) -> i128 {
    value.to_int(false, i128::from(i64::MIN), i128::from(u64::MAX))
}

/// The nearest number of a float type; integers are whole already.
fn nearest(dtype: DType, value: Real) -> Real {
    if dtype.is_float() { Real::from(value.to_float(dtype).as_f64()) } else { value }
}

/// All values of a type.
fn anything(dtype: DType) -> Allowed {
    match dtype.int_range() {
        Some((low, high)) => Allowed::between(integer(low), integer(high)),
        None if dtype == DType::Bool => Allowed::between(Real::ZERO, Real::ONE),
        None => Allowed::Anything,
    }
}

/// The bounds from the least corner to the greatest.
fn between(corners: &[Real], nan: bool) -> Allowed {
    if corners.contains(&Real::Nan) {
        return Allowed::Anything;
    }
    let low = corners.iter().copied().fold(Real::INFINITY, Real::min);
    let high = corners.iter().copied().fold(Real::INFINITY.minus(), Real::max);
    Allowed::Between { low, high, nan }
}

/// x^y with the corner cases of IEEE 754.
fn power(x: Real, y: Real) -> Real {
    let whole = whole_kind(y);
    match (x, y) {
        _ if y.is_zero() || x == Real::ONE => Real::ONE,
        (Real::Nan, _) | (_, Real::Nan) => Real::Nan,
        (_, Real::Infinite { negative }) => match x.abs().compare(Real::ONE) {
            Some(Ordering::Equal) => Real::ONE,
            order if (order == Some(Ordering::Less)) == negative => Real::INFINITY,
            _ => Real::ZERO,
        },
        _ => {
            let size = match (x.abs(), y.is_negative()) {
                (a, false) => a.power(y),
                (a, true) => Real::ONE.over(a.power(y.minus())),
            };
            match (x.is_negative(), whole) {
                (true, Whole::Odd) => size.minus(),
                (true, Whole::No) if matches!(x, Real::Finite { .. }) => Real::Nan,
                _ => size,
            }
        }
    }
}

/// The parity of a number, or none for a fraction.
enum Whole {
    Odd,
    Even,
    No,
}

fn whole_kind(y: Real) -> Whole {
    match y {
        Real::Finite { exponent, mantissa, .. } => {
            let least_bit = exponent + i64::from(mantissa.trailing_zeros());
            match least_bit.cmp(&0) {
                Ordering::Less => Whole::No,
                Ordering::Equal => Whole::Odd,
                Ordering::Greater => Whole::Even,
            }
        }
        _ => Whole::Even,
    }
}
