//! Positions and numbers of elements.

use super::elements::Elements;
use super::exact::{Allowed, Exact, Value};
use super::known::{Known, integer};
use super::real::Real;
use super::wide::Integer;
use std::cmp::Ordering;

fn number(value: usize) -> Exact {
    Exact::certain(Value::Int(Integer::from(value as i128)))
}

/// The position of the greatest or `least` element in row-major order: the first one's, or the `last` one's. NaN is
/// beyond all numbers; -0 equals +0.
pub fn extreme(elements: &Elements, least: bool, last: bool) -> Exact {
    // The order of the element and the best one so far: `Greater` is better.
    let order = |new: Real, best: Real| match (new, best) {
        (Real::Nan, Real::Nan) => Ordering::Equal,
        (Real::Nan, _) => Ordering::Greater,
        (_, Real::Nan) => Ordering::Less,
        _ if least => best.compare(new).expect("numbers"),
        _ => new.compare(best).expect("numbers"),
    };
    let mut best: Option<(usize, Real)> = None;
    for (position, element) in elements.iter().enumerate() {
        let takes = match best.map(|(_, best)| order(element.value, best)) {
            None | Some(Ordering::Greater) => true,
            Some(Ordering::Equal) => last,
            Some(Ordering::Less) => false,
        };
        if takes {
            best = Some((position, element.value));
        }
    }
    let found = number(best.map_or(0, |(position, _)| position));
    if elements.are_known() {
        return found;
    }
    let (first, last) = candidates(elements, least);
    found.within(Allowed::between(integer(first), integer(last)))
}

/// The first and the last position that may be the greatest or `least` element's: if all elements lie between bounds,
/// those of elements that reach the best of the other ends.
fn candidates(elements: &Elements, least: bool) -> (i128, i128) {
    // The ends, with the better values greater.
    let worst = |element: Known| if least { element.high().minus() } else { element.low() };
    let best = |element: Known| if least { element.low().minus() } else { element.high() };
    let all = (0, i128::from(elements.count()) - 1);
    if elements.iter().any(|element| element.ends().is_none()) {
        return all;
    }
    let sure = elements.iter().map(worst).fold(Real::INFINITY.minus(), Real::max);
    let reaches = |element: Known| !best(element).below(sure);
    let mut positions =
        (0..).zip(elements.iter()).filter(|(_, element)| reaches(*element)).map(|(position, _)| position);
    let first = positions.next().unwrap_or(all.0);
    (first, positions.last().unwrap_or(first))
}

/// The number of elements that are not zero; a NaN counts.
pub fn count_nonzero(elements: &Elements) -> Exact {
    let is_zero = |element: &Known| element.value.is_zero();
    let found = number(elements.iter().filter(|element| !is_zero(element)).count());
    if elements.are_known() {
        return found;
    }
    let may_be_zero = |element: &Known| match element.allowed {
        Allowed::Anything => true,
        Allowed::Between { low, high, .. } => !Real::ZERO.below(low) && !high.below(Real::ZERO),
    };
    let certain = elements.iter().filter(|element| !may_be_zero(element)).count();
    let possible = elements.iter().filter(|e| !e.point().is_some_and(Real::is_zero)).count();
    found.within(Allowed::between(integer(certain as i128), integer(possible as i128)))
}
