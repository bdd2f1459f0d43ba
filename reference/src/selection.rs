//! Order statistics, by sorting the elements: numbers ascending, -0 before +0, NaN after all.

use super::elements::Elements;
use super::exact::{Allowed, Exact, Value};
use super::known::Known;
use super::real::Real;
use super::rows::Task;
use super::wide::Integer;
use std::cmp::Ordering;

fn order(a: Real, b: Real) -> Ordering {
    match (a, b) {
        (Real::Nan, Real::Nan) => Ordering::Equal,
        (Real::Nan, _) => Ordering::Greater,
        (_, Real::Nan) => Ordering::Less,
        _ => a.compare(b).expect("numbers").then_with(|| b.is_negative().cmp(&a.is_negative())),
    }
}

/// A rank among the sorted elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rank {
    /// The mean of the middle two.
    Middle,
    /// The lower of the middle two.
    LowerMiddle,
    /// The linear interpolation at q (n - 1), rounded to 53 bits, between its neighbours.
    Share(f64),
}

/// The element at a rank. Between equal elements it is the lower; beside an infinite one it is infinite, and NaN
/// between -inf and +inf. It is NaN if an element is, and over nothing.
pub fn quantile(place: Rank, task: &Task, values: impl Iterator<Item = Real>) -> Exact {
    let mut sorted: Vec<Real> = values.collect();
    sorted.sort_by(|&a, &b| order(a, b));
    let Some(&last) = sorted.last() else { return Exact::certain(Value::Float(Real::Nan)) };
    if last == Real::Nan {
        return Exact::certain(Value::Float(Real::Nan));
    }
    let (acc, top) = (task.acc(), sorted.len() - 1);
    match place {
        Rank::LowerMiddle => Exact::certain(Value::Float(sorted[top / 2])),
        Rank::Middle if top % 2 == 0 => Exact::certain(Value::Float(sorted[top / 2])),
        Rank::Middle => {
            let (low, high) = (sorted[top / 2], sorted[top / 2 + 1]);
            if low.compare(high) == Some(Ordering::Equal) {
                return Exact::certain(Value::Float(low));
            }
            let mean = low.plus(high).over(Real::from(2.0));
            Exact::float(mean, Real::ZERO, acc.mean_of_two(mean))
        }
        Rank::Share(q) => {
            let at = Real::from(q).times(super::rows::whole(top as u64)).to_f64();
            let (low, share) = (sorted[at.floor() as usize], at.fract());
            let high = sorted[(at.floor() as usize + 1).min(top)];
            if share == 0.0 || low.compare(high) == Some(Ordering::Equal) {
                return Exact::certain(Value::Float(low));
            }
            // Both weights are above 0: with one infinite neighbour the sum is infinite, with opposite ones NaN.
            let weights = (Real::from(1.0 - share), Real::from(share));
            let between = low.times(weights.0).plus(high.times(weights.1));
            if !between.is_finite() {
                return Exact::certain(Value::Float(between));
            }
            Exact::float(between, Real::ZERO, acc.interpolated(low, high, between))
        }
    }
}

/// The middle of integers: the lower of the middle two, or their mean.
pub fn middle(mean_of_two: bool, task: &Task, values: impl Iterator<Item = i128>) -> Exact {
    let mut sorted: Vec<i128> = values.collect();
    sorted.sort_unstable();
    let top = sorted.len() - 1;
    if mean_of_two && top % 2 == 1 {
        let total = Integer::from(sorted[top / 2] + sorted[top / 2 + 1]);
        return match task.to.is_int() {
            true => Exact::certain(Value::Int(total.divided_by(2, task.half_even))),
            false => Exact::certain(Value::Float(Real::from(Real::from(total).to_f64() / 2.0))),
        };
    }
    Exact::certain(Value::Int(Integer::from(sorted[top / 2])))
}

/// The least of the most frequent elements, and the number of its occurrences. -0 equals +0 and the result is
/// +0; NaN equals NaN and is the greatest. Among elements between bounds it is one of them.
pub fn mode(elements: &Elements) -> Vec<Exact> {
    let plus_zero = |x: Real| if x.is_zero() { Real::ZERO } else { x };
    let mut sorted: Vec<Real> = elements.iter().map(|element| plus_zero(element.value)).collect();
    sorted.sort_by(|&a, &b| order(a, b));
    let mut best = (Real::Nan, 0);
    for run in sorted.chunk_by(|a, b| order(*a, *b) == Ordering::Equal) {
        if run.len() > best.1 {
            best = (run[0], run.len());
        }
    }
    let value = Exact::known(Known::exactly(elements.dtype(), best.0), false);
    let count = Exact::certain(Value::Int(Integer::from(best.1 as i128)));
    match elements.are_known() {
        true => vec![value, count],
        false => {
            let hull = elements.iter().map(|element| element.allowed).reduce(Allowed::or).expect("elements");
            let any = Allowed::between(Real::ONE, super::rows::whole(elements.count()));
            vec![value.within(hull), count.within(any)]
        }
    }
}
