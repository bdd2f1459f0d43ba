//! Mean and variance, and their error bounds with two passes over each block.
//!
//! Per block of n elements the first pass takes the mean c, rounded; the second s1 = sum(x - c) and
//! s2 = sum (x - c)^2; then e = s1/n and m2 = s2 - s1 e, so that the mean is c + e. Blocks merge by
//! Chan's formulas in a tree with at most J = ceil(log2(n / 32)) + 1 merges on any path, since blocks have 32
//! elements on average or more. With u half an ulp of 1:
//!
//! **The pivot.** An element takes part in at most 64 additions of its lane and 6 of lanes, in 37.4 +
//! 6 at the quadratic mean over the places of a lane, and in the second pass 128 and 5, 74.3 + 5. By Cauchy's inequality the pivots are off by at
//! most E = 45 u of the quadratic mean of the elements. This changes only the size of the
//! deviations: D = M2 + n E^2 is the sum of their squares.
//!
//! **A block.** d = x - c is rounded once, s2 costs 133 + 3 roundings of D; s1 is off by 80 u sqrt(n D),
//! which s1^2 / n turns into 160 u D at most; 10 for the remaining operations: together 306 u D.
//!
//! **Merging.** To wrong means of blocks, off by 80 u of their own D and so together by 80 u sqrt(n D),
//! merging is exact; the sum of squares between blocks, at most M2, is off by 160 u sqrt(M2 D). The
//! difference of two means costs 2 u of itself and 4 u E, the mean of both 4 u of the difference and
//! 2 u E. Over J levels, each again by Cauchy, these are (4 + 16 sqrt(J) + 5 J) u D at most, and the
//! additions and products J + 8.
//!
//! ```text
//! |error of M2|          <= (478 + 16 sqrt(J) + 6 J) u D        (306 u D in one block)
//! |error of the mean|    <= (80 + 6 sqrt(J) + 3 J) u sqrt(D / n)
//! ```
//!
//! In f32, of 2^20 elements around 0 this is 3e-5 of M2, and where the mean is 10^6 deviations, 2e-4:
//! for adding up the elements to a block's mean may lose more than a deviation. The measured error is 1e-7.
//! A variance from sum x^2 - (sum x)^2/n is off there by 10^4 of M2.
//!
//! Where all elements are equal, and all their sums numbers of the accumulator's type, nothing is rounded.
//!
//! Deviations whose squares fall below the normal numbers lose a least subnormal each. The means of a block and each
//! merge round a quotient or a product, which loses half a least subnormal; sums of subnormal numbers are exact. So a mean
//! is off by 1 + J / 2 of them besides.
//!
//! **Elements between bounds.** If elements are up to r off, the mean is off by the mean of r, and the vector of
//! deviations by one of length R, R^2 = sum r^2. So M2 lies between (sqrt(M2) - R)^2 and (sqrt(M2) + R)^2, and errors of
//! rounding are those of the greatest M2 and magnitudes.
//!
//! **The pair.** The first part of the mean is a mean of blocks, off by E, or the whole mean rounded; the second part is
//! off as much, and only their sum is the mean within its own error.

use super::bound::{Accumulator, non_negative};
use super::elements::Elements;
use super::exact::{Allowed, Exact};
use super::floats;
use super::known::Known;
use super::real::Real;
use super::rows::whole;

/// The mean of elements and the squares of their deviations from it.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    acc: Accumulator,
    count: u64,
    mean: Real,
    /// The sum of the squares of the deviations: M2.
    squares: Real,
    /// The allowed values of M2.
    allowed: Allowed,
    /// The root of D / n.
    spread: Real,
    /// The error bound of the mean, which no deviation is less than.
    mean_error: Real,
    /// The error bound of each part of the mean.
    part_error: Real,
    /// True if the mean may overflow, or an element be without bounds.
    unbounded: bool,
}

/// Sums over the elements and their bounds.
struct Sums {
    mean: Real,
    /// M2.
    squares: Real,
    /// The sum of the squares of the greatest magnitudes.
    magnitudes: Real,
    /// The greatest magnitude.
    largest: Real,
    /// The mean of r.
    shift: Real,
    /// R.
    radius: Real,
    /// True if an element is without bounds.
    unbounded: bool,
}

fn square(x: Real) -> Real {
    x.times(x)
}

impl Sums {
    fn of(elements: &Elements, n: Real) -> Sums {
        let values = || elements.iter().map(|element| element.value);
        let sum = |terms: &mut dyn Iterator<Item = Real>| terms.fold(Real::ZERO, Real::plus);
        let mean = sum(&mut values()).over(n);
        let squares = sum(&mut values().map(|x| square(x.plus(mean.minus()))));
        let unbounded = !elements.are_known() && elements.iter().any(|element| element.ends().is_none());
        let radius = |element: Known| match element.point() {
            Some(_) => Real::ZERO,
            None => element.ends().map_or(Real::INFINITY, |(_, _, radius)| radius),
        };
        let magnitude = |element: Known| element.value.abs().plus(radius(element));
        Sums {
            mean,
            squares,
            magnitudes: sum(&mut elements.iter().map(|element| square(magnitude(element)))),
            largest: elements.iter().map(magnitude).fold(Real::ZERO, Real::max),
            shift: sum(&mut elements.iter().map(radius)).over(n),
            radius: sum(&mut elements.iter().map(|element| square(radius(element)))).square_root(),
            unbounded,
        }
    }

    /// The least and the greatest M2 of elements between their bounds.
    fn squares_between(&self) -> (Real, Real) {
        let root = self.squares.square_root();
        match self.radius.is_zero() {
            true => (self.squares, self.squares),
            false => {
                let least = root.plus(self.radius.minus()).max(Real::ZERO);
                (square(least), square(root.plus(self.radius)))
            }
        }
    }
}

impl Moments {
    /// The moments of the elements.
    pub fn of(acc: Accumulator, elements: &Elements) -> Moments {
        let count = elements.count();
        let n = whole(count.max(1));
        let sums = Sums::of(elements, n);
        let (least, greatest) = sums.squares_between();

        let merges = ((count as f64 / 32.0).log2().ceil() + 1.0).max(0.0);
        let (in_block, merging) = if count <= 64 { (306.0, 0.0) } else { (478.0, 16.0 * merges.sqrt() + 6.0 * merges) };
        let values = || elements.iter().map(|element| element.value);
        let certain = count <= 1 || (greatest.is_zero() && acc.sums_exactly(floats::sum(values())));
        let pivot = if certain { Real::ZERO } else { sums.magnitudes.times(square(acc.units(45.0))) };
        let deviations = if count <= 1 { Real::ZERO } else { greatest.plus(pivot) };
        let spread = deviations.over(n).square_root();
        let underflow = if certain { Real::ZERO } else { acc.tiny().times(n).times(Real::from(4.0)) };
        let bound = deviations.times(acc.units(in_block + merging)).plus(underflow);
        let limit = square(sums.largest.plus(sums.largest)).times(n);
        let allowed = match () {
            _ if count == 0 || (sums.squares == Real::Nan && !sums.unbounded) => Allowed::exactly(Real::Nan),
            _ if acc.max().below(limit) || sums.unbounded => Allowed::Anything,
            _ if certain => Allowed::exactly(sums.squares),
            _ => non_negative(Allowed::between(least.plus(bound.minus()), greatest.plus(bound))),
        };
        let rounding = match certain {
            true => Real::ZERO,
            false => {
                let underflow = acc.tiny().times(Real::from(1.0 + merges / 2.0));
                spread.times(acc.units(80.0 + 6.0 * merges.sqrt() + 3.0 * merges)).plus(underflow)
            }
        };
        let mean_error = rounding.plus(sums.shift);
        let part_error = match certain {
            true => sums.shift,
            false => pivot.over(n).square_root().plus(sums.mean.abs().times(acc.units(2.0))).plus(mean_error),
        };
        let sum_of_deviations = sums.largest.times(n).times(Real::from(2.02));
        Moments {
            acc,
            count,
            mean: sums.mean,
            squares: sums.squares,
            allowed,
            spread,
            mean_error,
            part_error,
            unbounded: sums.unbounded || sums.largest.is_finite() && acc.max().below(sum_of_deviations),
        }
    }

    /// M2 / (n - ddof), or M2 / 0 for n <= ddof; or the root of it.
    pub fn variance(&self, ddof: Real, root: bool) -> Exact {
        let result = self.known_variance(ddof, root);
        Exact::float(result.value, self.squares, result.allowed)
    }

    /// The variance or its root in the accumulator's type.
    pub fn known_variance(&self, ddof: Real, root: bool) -> Known {
        let freedom = whole(self.count).plus(ddof.minus()).max(Real::ZERO);
        let freedom = self.acc.nearest(freedom);
        let value = if self.count == 0 { Real::Nan } else { self.squares.over(freedom) };
        let allowed = match (self.allowed, freedom.is_zero()) {
            (Allowed::Between { low, high, .. }, true) if low != high => {
                // Divided by zero, 0 is NaN and any other number infinite.
                Allowed::exactly(Real::INFINITY).or_nan(low.is_zero())
            }
            (allowed, _) => self.acc.rounded_once(allowed, |squares| squares.over(freedom)),
        };
        let (value, allowed) = match root {
            true => (value.square_root(), self.acc.rounded_once(allowed, Real::square_root)),
            false => (value, allowed),
        };
        Known { dtype: self.acc.dtype(), value, allowed }
    }

    /// The two parts of the mean, NaN of nothing. Beside an infinity the first may be infinite or NaN, and the second is NaN.
    pub fn parts(&self) -> [Known; 2] {
        let first = self.acc.nearest(self.mean);
        [first, self.acc.nearest(self.mean.plus(first.minus()))].map(|value| {
            let value = if self.count == 0 { Real::Nan } else { value };
            let error = self.part_error;
            let allowed = match () {
                _ if self.count == 0 => Allowed::exactly(Real::Nan),
                _ if self.unbounded => Allowed::Anything,
                _ if !self.mean.is_finite() => Allowed::exactly(value).or_nan(value != Real::Nan),
                // Either zero.
                _ if value.is_zero() => Allowed::between(error.minus(), error),
                _ => Allowed::between(value.plus(error.minus()), value.plus(error)),
            };
            Known { dtype: self.acc.dtype(), value, allowed }
        })
    }

    /// An element less the mean, which is subtracted in two parts.
    pub fn deviation(&self, element: Known) -> Known {
        // The second part of a mean that is not finite is NaN.
        let exact = if self.mean.is_finite() { element.value.plus(self.mean.minus()) } else { Real::Nan };
        let (acc, value) = (self.acc, self.acc.nearest(exact));
        let allowed = match element.ends() {
            _ if self.unbounded => Allowed::Anything,
            _ if exact == Real::Nan || !self.mean.is_finite() => Allowed::exactly(Real::Nan),
            None => Allowed::Anything,
            Some((low, high, radius)) => {
                let near = exact.abs().plus(radius).plus(self.spread).times(acc.units(2.0));
                let bound = if self.spread.is_zero() { self.mean_error } else { self.mean_error.plus(near) };
                let from = |end: Real| end.plus(self.mean.minus());
                let allowed = Allowed::between(from(low).plus(bound.minus()), from(high).plus(bound));
                allowed.ends(|end| acc.nearest(end))
            }
        };
        Known { dtype: acc.dtype(), value, allowed }
    }
}
