//! Floats, to some 38 digits.

use super::bound::{Accumulator, Sum, non_negative};
use super::exact::{Exact, Value};
use super::real::Real;
use super::rows::Task;
use super::selection;

/// Reduces floats.
pub fn reduce<I: Iterator<Item = Real>>(task: &Task, count: u64, values: impl Fn() -> I) -> Exact {
    let acc = task.acc();
    let greatest = || values().fold(Real::INFINITY.minus(), Real::max);
    match task.name {
        "max" => Exact::certain(Value::Float(greatest())),
        "min" => Exact::certain(Value::Float(values().fold(Real::INFINITY, Real::min))),
        "linf" => Exact::certain(Value::Float(values().map(Real::abs).fold(Real::ZERO, Real::max))),
        "ptp" if count == 0 => Exact::certain(Value::Float(Real::Nan)),
        "ptp" => {
            let least = values().fold(Real::INFINITY, Real::min);
            Exact::certain(Value::Float(acc.nearest(greatest().plus(least.minus()))))
        }
        "median" | "median_low" | "quantile" => selection::quantile(task, values()),
        "sum" => {
            let sum = sum(values());
            Exact::float(acc.held(sum.total), sum.scale, acc.sum(sum, 0.0))
        }
        "l1" => {
            let sum = sum(values().map(Real::abs));
            Exact::float(acc.held(sum.total), sum.scale, acc.sum(sum, 0.0))
        }
        "sum_squares" => {
            let sum = sum(values().map(|x| x.times(x)));
            Exact::float(acc.held(sum.total), sum.scale, acc.sum(sum, 1.0))
        }
        "l2" => {
            let sum = sum(values().map(|x| x.times(x)));
            let bounds = acc.rounded_once(non_negative(acc.sum(sum, 1.0)), Real::square_root);
            Exact::float(acc.held(sum.total).square_root(), sum.scale, bounds)
        }
        "mean" => {
            let sum = sum(values());
            let n = acc.rounded(count as f64);
            let bounds = acc.rounded_once(acc.sum(sum, 0.0), |x| x.over(n));
            Exact::float(acc.held(sum.total).over(n), sum.scale, bounds)
        }
        "log_sum" => {
            let sum = sum(values());
            Exact::float(acc.held(sum.total).ln(), sum.scale, acc.logarithm(acc.sum(sum, 0.0)))
        }
        "log_sum_exp" => log_sum_exp(acc, count, greatest(), values()),
        "prod" => product(acc, count, values()),
        _ => norm(task, values()),
    }
}

/// The sum; that of nothing is +0, that of negative zeros -0.
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

/// Any NaN gives NaN, else any +inf +inf; all -inf, or nothing, -inf.
fn log_sum_exp(acc: Accumulator, count: u64, greatest: Real, values: impl Iterator<Item = Real>) -> Exact {
    if !greatest.is_finite() {
        return Exact::certain(Value::Float(greatest));
    }
    let total = values.fold(Real::ZERO, |sum, x| sum.plus(x.plus(greatest.minus()).exp()));
    let bounds = acc.log_sum_exp(greatest, total, count);
    Exact::float(greatest.plus(total.ln()), total, bounds)
}

/// `lp` and oneDNN's norms: of S = sum |x|^p, S or one of max(S, eps) and S + eps, and its p-th root.
fn norm(task: &Task, values: impl Iterator<Item = Real>) -> Exact {
    let (acc, p) = (task.acc(), task.param(0));
    let eps = || task.param(1);
    let sum = sum(values.map(|x| x.abs().power(p)));
    let bounds = non_negative(acc.sum(sum, Accumulator::power_roundings(p.to_f64())));
    let total = acc.held(sum.total);
    let (base, bounds) = match task.name {
        "lp" => (total, bounds),
        "lp_max" | "lp_power_p_max" => (total.max(eps()), bounds.mapped(|s| s.max(eps()))),
        "lp_sum" | "lp_power_p_sum" => (total.plus(eps()), acc.rounded_once(bounds, |s| s.plus(eps()))),
        name => unreachable!("the reference does not know {name}"),
    };
    match task.name {
        "lp" | "lp_max" | "lp_sum" if p != Real::ONE => {
            Exact::float(base.power(Real::ONE.over(p)), sum.scale, acc.root(bounds, p))
        }
        _ => Exact::float(base, sum.scale, bounds),
    }
}
