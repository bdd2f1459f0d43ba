//! Rows that write every position of the slice.

use super::bound::Accumulator;
use super::elements::Elements;
use super::exact::Exact;
use super::formula::seen;
use super::known::Known;
use super::moments::Moments;
use super::real::Real;
use super::rows::{self, Task};
use super::walk::Slice;

/// The outputs at the positions of a slice, in row-major order; `further` are the inputs after the first.
pub fn apply(task: &Task, elements: &Elements, further: &[Slice]) -> Vec<Exact> {
    let acc = task.accumulator;
    let mut further: Vec<_> = further.iter().map(Slice::elements).collect();
    // Scale and bias at the next position.
    let mut scaled = |value: Known| {
        let factors: Vec<Known> =
            further.iter_mut().map(|f| seen(Known::element(f.next().expect("as many")), acc)).collect();
        match factors.as_slice() {
            [] => value,
            [scale] => value.times(*scale),
            [scale, bias, ..] => value.times(*scale).plus(*bias),
        }
    };
    let values = elements.iter().map(|element| seen(element, acc));
    let one: Box<dyn Fn(Known) -> Known> = match task.name {
        "softmax" | "log_softmax" => exponentials(task, elements),
        "layer_norm" | "standardize" => deviations(task, elements),
        _ => quotients(task, elements),
    };
    values.map(|x| Exact::known(scaled(one(x)), false)).collect()
}

/// x over what a row and eps make.
fn quotients(task: &Task, elements: &Elements) -> Box<dyn Fn(Known) -> Known> {
    let acc = task.accumulator;
    let eps = Known::exactly(acc, task.param(0));
    let row = |name| {
        let task = Task { name, params: vec![], to: acc, ..task.clone() };
        rows::reduce(&task, elements).remove(0).in_formula(acc)
    };
    let divisor = match task.name {
        "l1_normalize_add" => row("l1").plus(eps),
        "l1_normalize_max" => row("l1").max(eps),
        "linf_normalize_add" => row("linf").plus(eps),
        "linf_normalize_max" => row("linf").max(eps),
        // OpenVINO, eps added; OpenVINO with the greater, and TensorFlow; PyTorch.
        "l2_normalize_add" => row("sum_squares").plus(eps).root(),
        "l2_normalize_max" => row("sum_squares").max(eps).root(),
        "l2_normalize_max_root" => row("sum_squares").root().max(eps),
        "rms_norm" => {
            let n = Accumulator::of(acc).rounded(elements.count() as f64);
            row("sum_squares").over(Known::exactly(acc, n)).plus(eps).root()
        }
        name => unreachable!("the reference does not know {name}"),
    };
    Box::new(move |x| x.over(divisor))
}

/// (x - mean) / sqrt(var + eps), (x - mean) / std.
fn deviations(task: &Task, elements: &Elements) -> Box<dyn Fn(Known) -> Known> {
    let moments = Moments::of(task.acc(), elements);
    let divisor = match task.name {
        "standardize" => moments.known_variance(task.param(0), true),
        _ => {
            let variance = moments.known_variance(Real::ZERO, false);
            variance.plus(Known::exactly(task.accumulator, task.param(0))).root()
        }
    };
    Box::new(move |x| moments.deviation(x).over(divisor))
}

/// exp(x - m) times 1 / S, and x - m - log S, with S = sum exp(x - m), m the greatest element. A row with
/// +inf or NaN, or of nothing but -inf, is NaN.
fn exponentials(task: &Task, elements: &Elements) -> Box<dyn Fn(Known) -> Known> {
    let (acc, dtype, log) = (task.acc(), task.accumulator, task.name == "log_softmax");
    let values = || elements.iter().map(|element| element.value);
    let greatest = values().fold(Real::INFINITY.minus(), Real::max);
    if !greatest.is_finite() {
        return Box::new(move |_| Known::exactly(dtype, Real::Nan));
    }
    let sum = values().fold(Real::ZERO, |sum, x| sum.plus(x.plus(greatest.minus()).exp()));
    let (greatest, sum) = match elements.are_known() {
        true => {
            let allowed = acc.sum_exp(sum, elements.count());
            (Known::exactly(dtype, greatest), Known { dtype, value: acc.nearest(sum), allowed })
        }
        false => (Known::anything(dtype, greatest), Known::anything(dtype, acc.nearest(sum))),
    };
    let share = Known::exactly(dtype, Real::ONE).over(sum);
    Box::new(move |x| {
        let beyond = x.less(greatest);
        if log {
            return beyond.less(sum.ln());
        }
        let part = beyond.exp();
        Known { allowed: acc.or_vanished(part.allowed), ..part }.times(share)
    })
}
