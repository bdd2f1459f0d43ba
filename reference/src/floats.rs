//! Reductions of floats, to some 38 digits.

use super::bound::{Accumulator, Sum, non_negative};
use super::elements::Elements;
use super::exact::{Allowed, Exact, Value};
use super::known::Known;
use super::meaning::{Eps, Norm, OfSlice};
use super::real::Real;
use super::rows::Task;
use super::selection::{self, Rank};

/// The result of floats; none if the reduction takes no floats, or needs more than their values.
pub fn reduce<I: Iterator<Item = Real>>(op: OfSlice, task: &Task, count: u64, values: impl Fn() -> I) -> Option<Exact> {
    let acc = task.acc();
    let greatest = || values().fold(Real::INFINITY.minus(), Real::max);
    Some(match op {
        OfSlice::Max => Exact::certain(Value::Float(greatest())),
        OfSlice::Min => Exact::certain(Value::Float(values().fold(Real::INFINITY, Real::min))),
        OfSlice::Linf => Exact::certain(Value::Float(values().map(Real::abs).fold(Real::ZERO, Real::max))),
        OfSlice::Ptp if count == 0 => Exact::certain(Value::Float(Real::Nan)),
        OfSlice::Ptp => {
            let least = values().fold(Real::INFINITY, Real::min);
            Exact::certain(Value::Float(acc.nearest(greatest().plus(least.minus()))))
        }
        OfSlice::Median => selection::quantile(Rank::Middle, task, values()),
        OfSlice::MedianLow => selection::quantile(Rank::LowerMiddle, task, values()),
        OfSlice::Quantile => selection::quantile(Rank::Share(task.params[0]), task, values()),
        OfSlice::Sum => {
            let sum = sum(values());
            Exact::float(acc.held(sum.total), sum.scale, acc.sum(sum, 0.0))
        }
        OfSlice::L1 => {
            let sum = sum(values().map(Real::abs));
            Exact::float(acc.held(sum.total), sum.scale, acc.sum(sum, 0.0))
        }
        OfSlice::SumSquares => {
            let sum = sum(values().map(|x| x.times(x)));
            Exact::float(acc.held(sum.total), sum.scale, acc.sum(sum, 1.0))
        }
        OfSlice::L2 => {
            let sum = sum(values().map(|x| x.times(x)));
            let bounds = acc.rounded_once(non_negative(acc.sum(sum, 1.0)), Real::square_root);
            Exact::float(acc.held(sum.total).square_root(), sum.scale, bounds)
        }
        OfSlice::Mean => {
            let sum = sum(values());
            let n = acc.rounded(count as f64);
            let bounds = acc.rounded_once(acc.sum(sum, 0.0), |x| x.over(n));
            Exact::float(acc.held(sum.total).over(n), sum.scale, bounds)
        }
        OfSlice::LogSum => {
            let sum = sum(values());
            Exact::float(acc.held(sum.total).ln(), sum.scale, acc.logarithm(acc.sum(sum, 0.0)))
        }
        OfSlice::LogSumExp => log_sum_exp(acc, count, greatest(), values()),
        OfSlice::Prod => product(acc, count, values()),
        OfSlice::Norm(kind) => norm(kind, task, values()),
        OfSlice::Any | OfSlice::All | OfSlice::BitAnd | OfSlice::BitOr | OfSlice::BitXor => return None,
        OfSlice::ArgMax | OfSlice::ArgMin | OfSlice::CountNonzero | OfSlice::Mode => return None,
        OfSlice::SumExp | OfSlice::MeanPair => return None,
        OfSlice::Var | OfSlice::Std => return None,
    })
}

/// The sum: +0 of nothing, -0 of negative zeros.
pub fn sum(terms: impl Iterator<Item = Real>) -> Sum {
    let mut sum =
        Sum { total: Real::MINUS_ZERO, scale: Real::ZERO, count: 0, mixed: false, quantum: i64::from(i32::MAX) };
    let (mut above, mut below) = (false, false);
    for term in terms {
        sum.total = sum.total.plus(term);
        if term.is_finite() {
            sum.scale = sum.scale.plus(term.abs());
        }
        if let Real::Finite { exponent, mantissa, .. } = term {
            sum.quantum = sum.quantum.min(exponent + i64::from(mantissa.trailing_zeros()));
        }
        sum.count += 1;
        above |= Real::ZERO.below(term);
        below |= term.below(Real::ZERO);
    }
    sum.mixed = above && below;
    if sum.count == 0 {
        sum.total = Real::ZERO;
    }
    sum
}

fn product(acc: Accumulator, count: u64, values: impl Iterator<Item = Real>) -> Exact {
    let (mut product, mut largest, mut least) = (Real::ONE, Real::ONE, Real::ONE);
    for x in values {
        product = product.times(x);
        if matches!(x, Real::Finite { .. }) {
            largest = largest.times(x.abs().max(Real::ONE));
            least = least.times(x.abs().min(Real::ONE));
        }
    }
    Exact::float(acc.held(product), product.abs(), acc.product(product, largest, least, count))
}

/// Bounds of the product of elements between bounds: a product of magnitudes that does not overflow is off by a rounding
/// of the greatest for each element, and by least subnormals times the other magnitudes.
pub fn product_between(acc: Accumulator, elements: &Elements) -> Allowed {
    let (mut low, mut high, mut most, mut largest) = (Real::ONE, Real::ONE, Real::ONE, Real::ONE);
    for element in elements.iter() {
        let Some((from, to, _)) = element.ends() else { return Allowed::Anything };
        let corners = [low.times(from), low.times(to), high.times(from), high.times(to)];
        low = corners.into_iter().fold(Real::INFINITY, Real::min);
        high = corners.into_iter().fold(Real::INFINITY.minus(), Real::max);
        let magnitude = from.abs().max(to.abs());
        (most, largest) = (most.times(magnitude), largest.times(magnitude.max(Real::ONE)));
    }
    let count = elements.count() as f64;
    let bound = most.times(acc.units(count)).plus(largest.times(acc.tiny()).times(Real::from(count)));
    if acc.max().below(largest.plus(bound)) || Real::from(0.1).below(acc.units(count)) {
        return Allowed::Anything;
    }
    Allowed::between(low.plus(bound.minus()), high.plus(bound))
}

/// Bounds of the difference of the greatest and the least of elements between bounds.
pub fn peak_to_peak(acc: Accumulator, elements: &Elements) -> Allowed {
    if elements.iter().any(|element| element.ends().is_none()) {
        return Allowed::Anything;
    }
    let least = |end: fn(Known) -> Real| elements.iter().map(end).fold(Real::INFINITY, Real::min);
    let greatest = |end: fn(Known) -> Real| elements.iter().map(end).fold(Real::INFINITY.minus(), Real::max);
    let low = greatest(Known::low).plus(least(Known::high).minus()).max(Real::ZERO);
    let high = greatest(Known::high).plus(least(Known::low).minus());
    Allowed::between(acc.nearest(low), acc.nearest(high))
}

/// The greatest element m and the sum of exp(x - m), which is NaN with a NaN or +inf, and 0 of -inf alone or of nothing.
/// Of elements between bounds, a term is at most that of its high end beside the least m, and 1.
pub fn sum_exp(acc: Accumulator, elements: &Elements) -> [Exact; 2] {
    let greatest = |end: fn(Known) -> Real| elements.iter().map(end).fold(Real::INFINITY.minus(), Real::max);
    let of = |m: Real, end: fn(Known) -> Real| match m {
        Real::Nan | Real::Infinite { negative: false } => Real::Nan,
        // Each difference of -inf is NaN, but the terms are 0.
        Real::Infinite { .. } if greatest(end) == m => Real::ZERO,
        _ => {
            let term = |element| end(element).plus(m.minus()).min(Real::ZERO).exp();
            elements.iter().map(term).fold(Real::ZERO, Real::plus)
        }
    };
    let value = |element: Known| element.value;
    let m = greatest(value);
    let sum = of(m, value);
    let exact = |m: Real, allowed| Exact::float(m, sum, allowed);
    if elements.are_known() {
        let allowed = if m.is_finite() { acc.sum_exp(sum, elements.count()) } else { Allowed::exactly(sum) };
        return [Exact::certain(Value::Float(m)), exact(sum, allowed)];
    }
    let (low, high) = (greatest(Known::low), greatest(Known::high));
    let (anything, nan) = elements.doubt();
    if anything || nan || !high.is_finite() {
        return [exact(m, Allowed::Anything), exact(sum, Allowed::Anything)];
    }
    // With a least m of -inf all elements may be -inf, or each be the greatest.
    let (fewest, most) = match low.is_finite() {
        true => (of(high, Known::low).max(Real::ONE), of(low, Known::high)),
        false => (Real::ZERO, super::rows::whole(elements.count())),
    };
    let bounds = |sum| acc.sum_exp(sum, elements.count());
    [exact(m, Allowed::between(low, high)), exact(sum, bounds(fewest).or(bounds(most)))]
}

/// log(sum exp x): NaN with any NaN, else +inf with any +inf; -inf of -inf alone or of nothing.
fn log_sum_exp(acc: Accumulator, count: u64, greatest: Real, values: impl Iterator<Item = Real>) -> Exact {
    if !greatest.is_finite() {
        return Exact::certain(Value::Float(greatest));
    }
    let total = values.fold(Real::ZERO, |sum, x| sum.plus(x.plus(greatest.minus()).exp()));
    let bounds = acc.log_sum_exp(greatest, total, count);
    Exact::float(greatest.plus(total.ln()), total, bounds)
}

/// `lp` and oneDNN's norms: of S = sum |x|^p, S or one of max(S, eps) and S + eps, and its p-th root.
fn norm(kind: Norm, task: &Task, values: impl Iterator<Item = Real>) -> Exact {
    let (acc, p) = (task.acc(), task.param(0));
    let eps = || task.param(1);
    let sum = sum(values.map(|x| x.abs().power(p)));
    let bounds = non_negative(acc.sum(sum, Accumulator::power_roundings(p.to_f64())));
    let total = acc.held(sum.total);
    let (base, bounds) = match kind.eps {
        Eps::Absent => (total, bounds),
        Eps::Least => (total.max(eps()), bounds.mapped(|s| s.max(eps()))),
        Eps::Added => (total.plus(eps()), acc.rounded_once(bounds, |s| s.plus(eps()))),
    };
    match kind.root && p != Real::ONE {
        true => Exact::float(base.power(Real::ONE.over(p)), sum.scale, acc.root(bounds, p)),
        false => Exact::float(base, sum.scale, bounds),
    }
}
