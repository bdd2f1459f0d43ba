//! Rows that write every position of the slice.

use super::bound::Accumulator;
use super::elements::Elements;
use super::exact::Exact;
use super::expression::seen;
use super::known::Known;
use super::meaning::{Divisor, OfPositions, OfSlice};
use super::moments::Moments;
use super::real::Real;
use super::rows::{self, Task};
use super::walk::Slice;

/// The outputs at the positions of a slice, in row-major order; `further` are the inputs after the first. None if the
/// oracle has no arm for such elements.
pub fn apply(op: OfPositions, task: &Task, elements: &Elements, further: &[Slice]) -> Option<Vec<Exact>> {
    if !task.input.is_float() {
        return None;
    }
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
    let one: Box<dyn Fn(Known) -> Known> = match op {
        OfPositions::Exponential { log } => exponentials(log, task, elements),
        OfPositions::LayerNorm => {
            let eps = Known::exactly(acc, task.param(0));
            let moments = Moments::of(task.acc(), elements);
            let divisor = moments.known_variance(Real::ZERO, false).plus(eps).root();
            let scale = Known::exactly(acc, Real::ONE).over(divisor);
            Box::new(move |x| moments.deviation(x).times(scale))
        }
        OfPositions::Standardize => {
            let moments = Moments::of(task.acc(), elements);
            let divisor = moments.known_variance(task.param(0), true);
            Box::new(move |x| moments.deviation(x).over(divisor))
        }
        OfPositions::Quotient(divisor) => quotients(divisor, task, elements)?,
    };
    Some(values.map(|x| Exact::known(scaled(one(x)), false)).collect())
}

/// x over a norm, or times the reciprocal of the root mean square.
fn quotients(divisor: Divisor, task: &Task, elements: &Elements) -> Option<Box<dyn Fn(Known) -> Known>> {
    let acc = task.accumulator;
    let eps = Known::exactly(acc, task.param(0));
    let of = |op| {
        let task = Task { params: vec![], to: acc, ..task.clone() };
        Some(rows::reduce(op, &task, elements)?.remove(0).in_expression(acc))
    };
    let divisor = match divisor {
        Divisor::L1Add => of(OfSlice::L1)?.plus(eps),
        Divisor::L1Max => of(OfSlice::L1)?.max(eps),
        Divisor::LinfAdd => of(OfSlice::Linf)?.plus(eps),
        Divisor::LinfMax => of(OfSlice::Linf)?.max(eps),
        // OpenVINO, eps added; OpenVINO with the greater, and TensorFlow; PyTorch.
        Divisor::L2Add => of(OfSlice::SumSquares)?.plus(eps).root(),
        Divisor::L2Max => of(OfSlice::SumSquares)?.max(eps).root(),
        Divisor::L2MaxRoot => of(OfSlice::SumSquares)?.root().max(eps),
        Divisor::RootMeanSquare => {
            let n = Accumulator::of(acc).rounded(elements.count() as f64);
            let root = of(OfSlice::SumSquares)?.over(Known::exactly(acc, n)).plus(eps).root();
            let scale = Known::exactly(acc, Real::ONE).over(root);
            return Some(Box::new(move |x| x.times(scale)));
        }
    };
    Some(Box::new(move |x| x.over(divisor)))
}

/// exp(x - m) / S, and x - m - log S, with S = sum exp(x - m), m the greatest element. The sum is that of
/// [`sum_exp`](Accumulator::sum_exp) without its rescaling, and no further off. A row with +inf or NaN, or of nothing but
/// -inf, is NaN.
fn exponentials(log: bool, task: &Task, elements: &Elements) -> Box<dyn Fn(Known) -> Known> {
    let (acc, dtype) = (task.acc(), task.accumulator);
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
    Box::new(move |x| {
        let beyond = x.less(greatest);
        if log {
            return beyond.less(sum.ln());
        }
        beyond.exp().over(sum)
    })
}
