//! The rows of the op table by their names.

use super::bound::Accumulator;
use super::elements::Elements;
use super::exact::{Allowed, Exact};
use super::known::{Known, integer};
use super::moments::Moments;
use super::real::Real;
use super::{floats, integers, logic, position, selection};
use cranefold_ir::DType;

/// What a row computes, and to what.
#[derive(Clone, Debug)]
pub struct Task {
    /// The row.
    pub name: &'static str,
    /// The values of its parameters.
    pub params: Vec<f64>,
    /// Type of the elements.
    pub input: DType,
    /// Type of the result: the output's, or the one that a formula sees.
    pub to: DType,
    /// Type of the accumulator of floats.
    pub accumulator: DType,
    /// Whether integers are clamped rather than taken modulo 2^bits.
    pub saturate: bool,
    /// Whether means and roots of integers are rounded to nearest even.
    pub half_even: bool,
}

impl Task {
    /// The accumulator of floats.
    pub fn acc(&self) -> Accumulator {
        Accumulator::of(self.accumulator)
    }

    /// A parameter in the accumulator's type.
    pub fn param(&self, index: usize) -> Real {
        self.acc().rounded(self.params[index])
    }
}

/// The results.
pub fn reduce(task: &Task, elements: &Elements) -> Vec<Exact> {
    match task.name {
        "argmax" | "argmin" => return vec![position::extreme(task, elements)],
        "count_nonzero" => return vec![position::count_nonzero(elements)],
        "mode" => return selection::mode(elements),
        _ => {}
    }
    vec![match task.input {
        d if d.is_float() => of_floats(task, elements),
        _ if !elements.are_known() => {
            let all = Known::anything(task.to, Real::ZERO).allowed;
            exactly(task, elements).within(all)
        }
        _ => exactly(task, elements),
    }]
}

/// Of integers and truth values.
fn exactly(task: &Task, elements: &Elements) -> Exact {
    if task.input == DType::Bool {
        return logic::reduce(task.name, elements.iter().map(|element| !element.value.is_zero()));
    }
    integers::reduce(task, elements.count(), || elements.iter().map(Known::whole))
}

/// Of floats. Where elements are intervals, a row that is monotone in each, or in its magnitude, goes
/// from its result of the lower ends to that of the upper.
fn of_floats(task: &Task, elements: &Elements) -> Exact {
    let count = elements.count();
    let of_values = || floats::reduce(task, count, || elements.iter().map(|element| element.value));
    if matches!(task.name, "var" | "std") {
        return Moments::of(task.acc(), elements).variance(task);
    }
    if elements.are_known() {
        return of_values();
    }
    let is_norm = task.name.starts_with('l') && !task.name.starts_with("log");
    let of_magnitudes = is_norm || task.name == "sum_squares";
    let (anything, nan) = elements.doubt();
    let end = |upper: bool| {
        let value = move |element: Known| {
            let element = if of_magnitudes { element.abs() } else { element };
            match element.allowed {
                Allowed::Between { low, .. } if !upper => low,
                Allowed::Between { high, .. } => high,
                Allowed::Anything => Real::Nan,
            }
        };
        floats::reduce(task, count, || elements.iter().map(value)).allowed()
    };
    let (low, high) = (end(false), end(true));
    let is_nan = |bounds| bounds == Allowed::exactly(Real::Nan);
    let may_cancel = task.name == "prod" || task.name == "ptp";
    let allowed = match (low, high) {
        _ if anything || may_cancel => Allowed::Anything,
        // A sum of opposite infinities, or the logarithm of what may be below zero.
        _ if is_nan(low) != is_nan(high) => Allowed::Anything,
        _ => low.or(high).or_nan(nan),
    };
    of_values().within(allowed)
}

/// How many elements there are, as a result.
pub fn whole(value: u64) -> Real {
    integer(i128::from(value))
}
