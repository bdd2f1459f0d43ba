//! Error bounds of float results: the rounding errors of the reduction tree.
//!
//! Write u for half an ulp of 1 in the accumulator type (eps / 2), n for the number of elements.
//!
//! **Sums.** By DESIGN's tree an element takes part in at most 64 additions of its lane within a
//! block, ceil(log2(blocks)) + 1 merges of blocks (the counter, then the leftovers) and 6 steps of
//! the fold of at most 64 lanes. With at most n blocks this is [`depth`] = log2(n) + 72, and never
//! more than n. Each addition rounds by at most u of a partial sum of magnitudes, so
//!
//! ```text
//! |err| <= (depth + t) u (1 + small) sum |x|            t: roundings in each term
//! ```
//!
//! which is `c eps (log2(n) + k) sum |x|` with c = 1/2 and k = 72 + t. [`SLACK`] covers the products
//! of roundings: (depth + t) u is below 2^-10 by far. Terms that are products may also underflow,
//! by at most the least subnormal each.
//!
//! Where all terms are multiples of a power of two, q, and `sum |x|` is at most 2^24 q (2^53 q in f64),
//! every partial sum in any order is exact, and the bound is 0.
//!
//! **Terms.** t = 0 for x and |x|, 1 for x^2, p - 1 for small integer p; [`POWER`] for another p,
//! whose polynomials are allowed 8 ulp.
//!
//! **Products.** n - 1 multiplications, whatever the order: (n - 1) u of the result.
//!
//! **Finish.** The bounds of the sum go through the finishing functions, which are monotone; then
//! the error of these functions is added: u for a division or root, [`LOG_EXP`] u for log or exp, [`POWER`] u
//! for a power, plus `u |ln x| / p` since 1/p is rounded to the accumulator type.
//!
//! **log_sum_exp.** With m the greatest and S = sum exp(x - m) >= 1, a term is rescaled by exp on
//! its way: once when lifted and once in each merge, log2(n) + 9 times. Each costs [`LOG_EXP`] + 1
//! roundings. The differences of maxima on the way of x add up to m - x, and rounding them costs u
//! (m - x) of the term; the mean of m - x weighted by the terms is at most ln n. Below the normal numbers
//! the exponential is off by up to the least subnormal, w, and each product in a merge by w again: together
//! V = `2 (log2(n) + 10) n w`, beside S >= 1. So S is known to `u R S + V`, with R = depth +
//! (log2(n) + 9)(LOG_EXP + 1) + ln n; ln S to u R + V; and the result to
//! `u (R + LOG_EXP |ln S| + |result|) + V`.

use super::exact::Allowed;
use super::real::Real;
use cranefold_ir::DType;

/// The additions of an element beside log2(n): 64 in a block, 6 of lanes, 1 of leftovers and 1 for
/// rounding log2 up.
const DEPTH: f64 = 72.0;
/// Roundings that a power may cost: 8 ulp.
const POWER: f64 = 16.0;
/// Roundings that an exponential, logarithm, hyperbolic tangent or error function may cost: 2 ulp.
const LOG_EXP: f64 = 4.0;
/// The factor that covers products of relative errors.
const SLACK: f64 = 1.01;

/// Additions that an element can take part in.
fn depth(n: u64) -> f64 {
    let n = n.max(1) as f64;
    n.min(n.log2() + DEPTH)
}

/// Roundings in the sum of exp(x - greatest).
fn roundings_of_sum_exp(count: u64) -> f64 {
    let n = count.max(1) as f64;
    depth(count) + (n.log2() + 9.0) * (LOG_EXP + 1.0) + n.ln()
}

/// The numbers of an accumulator type.
#[derive(Clone, Copy, Debug)]
pub struct Accumulator {
    dtype: DType,
    /// Half an ulp of 1.
    unit: Real,
    /// The least subnormal.
    tiny: Real,
    /// The least normal number.
    normal: Real,
    /// The greatest finite number.
    max: Real,
}

/// A sum and the figures that bound its error.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// The total.
    pub total: Real,
    /// The sum of the magnitudes of the finite terms.
    pub scale: Real,
    /// The number of terms.
    pub count: u64,
    /// True if there are terms above and below zero.
    pub mixed: bool,
    /// The power of two that all finite terms are multiples of.
    pub quantum: i64,
}

impl Accumulator {
    /// The numbers of `F32` or `F64`.
    pub fn of(dtype: DType) -> Accumulator {
        let (digits, least_power) = if dtype == DType::F32 { (24, -126) } else { (53, -1022) };
        let max = if dtype == DType::F32 { f64::from(f32::MAX) } else { f64::MAX };
        Accumulator {
            dtype,
            unit: Real::power_of_two(-digits),
            tiny: Real::power_of_two(least_power - digits + 1),
            normal: Real::power_of_two(least_power),
            max: Real::from(max),
        }
    }

    /// A number rounded to this type, as parameters and counts are.
    pub fn rounded(self, value: f64) -> Real {
        self.nearest(Real::from(value))
    }

    /// The nearest number of this type.
    pub fn nearest(self, value: Real) -> Real {
        Real::from(value.to_float(self.dtype).as_f64())
    }

    /// A total as the accumulator can hold it: infinite if it rounds to infinity in this type, else
    /// unchanged. So an unscaled norm overflows, whatever its root.
    pub fn held(self, total: Real) -> Real {
        match total {
            Real::Finite { negative, .. } if total.to_float(self.dtype).as_f64().is_infinite() => {
                Real::Infinite { negative }
            }
            _ => total,
        }
    }

    /// The type.
    pub fn dtype(self) -> DType {
        self.dtype
    }

    /// The least subnormal.
    pub fn tiny(self) -> Real {
        self.tiny
    }

    /// The greatest finite number.
    pub fn max(self) -> Real {
        self.max
    }

    /// The error of `count` roundings of 1, and a little more.
    pub fn units(self, count: f64) -> Real {
        self.unit.times(Real::from(count * SLACK))
    }

    /// Bounds of a sum whose terms cost so many roundings each, before finish.
    pub fn sum(self, sum: Sum, term_roundings: f64) -> Allowed {
        let bound = self.units(depth(sum.count) + term_roundings).times(sum.scale);
        if sum.mixed && self.max.below(sum.scale.plus(bound)) && sum.total != Real::Nan {
            // The order decides if a partial sum overflows.
            return Allowed::Anything;
        }
        if sum.scale.is_zero() || !sum.total.is_finite() {
            return Allowed::exactly(sum.total);
        }
        if term_roundings < POWER && self.sums_exactly(sum) {
            return self.overflow(Allowed::exactly(sum.total));
        }
        let underflow = if term_roundings == 0.0 { Real::ZERO } else { self.tiny.times(Real::from(sum.count as f64)) };
        let bound = bound.plus(underflow);
        self.overflow(Allowed::between(sum.total.plus(bound.minus()), sum.total.plus(bound)))
    }

    /// Returns true if every partial sum, in any order, is a number of this type.
    pub fn sums_exactly(self, sum: Sum) -> bool {
        let quantum = Real::power_of_two(sum.quantum);
        !quantum.over(self.unit).below(sum.scale) && !quantum.below(self.tiny)
    }

    /// Roundings in `|x|^p`.
    pub fn power_roundings(p: f64) -> f64 {
        if p.fract() == 0.0 && p <= 8.0 { p - 1.0 } else { POWER }
    }

    /// Bounds of a product: `largest` and `least` bound the magnitude of any partial result but 0.
    pub fn product(self, product: Real, largest: Real, least: Real, count: u64) -> Allowed {
        let roundings = self.units(count.saturating_sub(1) as f64);
        if product == Real::Nan {
            return Allowed::exactly(product);
        }
        let error = Real::ONE.plus(roundings);
        let out_of_range = self.max.below(largest.times(error)) || least.below(self.normal.times(error));
        if out_of_range || Real::from(0.1).below(roundings) {
            return Allowed::Anything;
        }
        if !product.is_finite() || product.is_zero() {
            return Allowed::exactly(product);
        }
        Allowed::between(product, product).widened(|bound| bound.abs().times(roundings))
    }

    /// Bounds after a monotone function with an error of so many roundings of its result.
    pub fn finished(self, bounds: Allowed, roundings: f64, function: impl Fn(Real) -> Real) -> Allowed {
        let widened = bounds.mapped(function).widened(|bound| {
            if bound.is_zero() { bound } else { bound.abs().times(self.units(roundings)).plus(self.tiny) }
        });
        self.overflow(widened)
    }

    /// Bounds after a division or a root, which takes one value to one value.
    pub fn rounded_once(self, bounds: Allowed, function: impl Fn(Real) -> Real) -> Allowed {
        match bounds.mapped(&function) {
            Allowed::Between { low, high, nan: false } if low == high => Allowed::exactly(self.nearest(low)),
            _ => self.finished(bounds, 1.0, function),
        }
    }

    /// Bounds after a logarithm.
    pub fn logarithm(self, bounds: Allowed) -> Allowed {
        self.finished(bounds, LOG_EXP, Real::ln)
    }

    /// Bounds after the logarithm of 1 and a number, which is undefined below -1.
    pub fn logarithm_of_one_plus(self, bounds: Allowed) -> Allowed {
        let least = Real::ONE.minus();
        let bounds = match bounds {
            Allowed::Between { low, high, .. } if low.below(least) && !high.below(least) => {
                Allowed::Between { low: least, high, nan: true }
            }
            other => other,
        };
        self.finished(bounds, LOG_EXP, Real::ln_of_one_plus)
    }

    /// Bounds after an exponential less 1.
    pub fn exponential_less_one(self, bounds: Allowed) -> Allowed {
        self.finished(bounds, LOG_EXP, Real::exp_less_one)
    }

    /// Bounds after a hyperbolic tangent or error function, none of which is beyond 1.
    pub fn sigmoidal(self, bounds: Allowed, function: impl Fn(Real) -> Real) -> Allowed {
        let one = Real::ONE;
        self.finished(bounds, LOG_EXP, function).ends(|bound| match bound {
            Real::Nan => bound,
            _ => bound.min(one).max(one.minus()),
        })
    }

    /// Bounds after an exponential, which is never below zero.
    pub fn exponential(self, bounds: Allowed) -> Allowed {
        non_negative(self.finished(bounds, LOG_EXP, Real::exp))
    }

    /// Bounds of powers between `bounds`: by our own function, or by up to 7 multiplications, of which all but
    /// the last may fall below the normal numbers.
    pub fn power(self, bounds: Allowed) -> Allowed {
        let tiny = self.tiny.times(Real::from(8.0));
        self.overflow(bounds.widened(|bound| bound.abs().times(self.units(POWER)).plus(tiny)))
    }

    /// Bounds after the p-th root, p other than 1.
    pub fn root(self, bounds: Allowed, p: Real) -> Allowed {
        let exponent = Real::ONE.over(p);
        let steepness = |bound: Real| bound.abs().ln().abs().over(p).to_f64();
        let roundings = match bounds {
            Allowed::Between { low, high, .. } => {
                [low, high].into_iter().map(steepness).filter(|s| s.is_finite()).fold(0.0, f64::max)
            }
            Allowed::Anything => 0.0,
        };
        self.finished(bounds, POWER + roundings, |x| x.power(exponent))
    }

    /// Bounds of `greatest + ln(sum)`, where `sum` is the sum of `exp(x - greatest)`.
    pub fn log_sum_exp(self, greatest: Real, sum: Real, count: u64) -> Allowed {
        let log = sum.ln();
        let result = greatest.plus(log);
        let of_sum = roundings_of_sum_exp(count);
        let of_log = log.abs().times(self.units(LOG_EXP));
        let vanished = self.vanished(count);
        let bound = self.units(of_sum).plus(of_log).plus(result.abs().times(self.units(1.0)));
        let bound = bound.plus(vanished).plus(self.tiny);
        self.overflow(Allowed::between(result.plus(bound.minus()), result.plus(bound)))
    }

    /// The error bound of a sum of terms of this scale with a few operations on each; none if it may
    /// overflow.
    pub fn of_sum(self, scale: Real, count: u64) -> Option<Real> {
        let bound = scale.times(self.units(depth(count) + 16.0)).plus(self.tiny.times(Real::from(count as f64)));
        scale.plus(bound).below(self.max).then_some(bound)
    }

    /// Bounds of the mean of two elements, which is rounded once and cannot overflow.
    pub fn mean_of_two(self, mean: Real) -> Allowed {
        let bound = mean.abs().times(self.units(1.0)).plus(self.tiny);
        Allowed::exactly(mean).widened(|_| bound)
    }

    /// Bounds of a value interpolated between two others by adding a part of their difference, which may overflow,
    /// to the lower: three roundings, and one of the part.
    pub fn interpolated(self, low: Real, high: Real, value: Real) -> Allowed {
        let widest = low.abs().max(high.abs());
        if value.is_finite() && self.max.below(high.plus(low.minus())) {
            return Allowed::Anything;
        }
        let bound = widest.times(self.units(8.0)).plus(self.tiny);
        Allowed::exactly(value).widened(|_| bound)
    }

    /// Bounds of the sum of exp(x - greatest), which is at least 1: see the head of this file.
    pub fn sum_exp(self, sum: Real, count: u64) -> Allowed {
        let bound = sum.times(self.units(roundings_of_sum_exp(count))).plus(self.vanished(count));
        Allowed::between(sum.plus(bound.minus()), sum.plus(bound))
    }

    /// The most that terms exp(x - greatest) below the least normal number lose together.
    fn vanished(self, count: u64) -> Real {
        let n = count.max(1) as f64;
        self.tiny.times(Real::from(2.0 * (n.log2() + 10.0) * n))
    }

    /// Bounds after overflow: a bound beyond the greatest number may become infinite, one well beyond must.
    fn overflow(self, bounds: Allowed) -> Allowed {
        let well_beyond = self.max.times(Real::ONE.plus(self.units(4.0)));
        let one = |bound: Real, outward: bool| {
            let beyond = self.max.below(bound.abs());
            match bound {
                Real::Finite { negative, .. } if beyond && (outward || well_beyond.below(bound.abs())) => {
                    Real::Infinite { negative }
                }
                Real::Finite { negative, .. } if beyond => {
                    if negative {
                        self.max.minus()
                    } else {
                        self.max
                    }
                }
                _ => bound,
            }
        };
        match bounds {
            Allowed::Between { low, high, nan } => {
                Allowed::Between { low: one(low, low.is_negative()), high: one(high, !high.is_negative()), nan }
            }
            Allowed::Anything => Allowed::Anything,
        }
    }
}

/// Bounds of a result that cannot be below zero.
pub fn non_negative(bounds: Allowed) -> Allowed {
    match bounds {
        Allowed::Between { low, high, nan } if low.is_negative() && !high.is_negative() => {
            Allowed::Between { low: Real::ZERO, high, nan }
        }
        other => other,
    }
}
