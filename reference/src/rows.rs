//! The reductions of a slice, whatever its elements.

use super::bound::Accumulator;
use super::elements::Elements;
use super::exact::{Allowed, Exact};
use super::known::{Known, integer};
use super::meaning::{Dependence, OfSlice};
use super::moments::Moments;
use super::real::Real;
use super::{floats, integers, logic, position, selection};
use cranefold_ir::DType;

/// The parameters and types of a reduction.
#[derive(Clone, Debug)]
pub struct Task {
    /// The values of its parameters.
    pub params: Vec<f64>,
    /// Type of the elements.
    pub input: DType,
    /// Type of the result: the output's, or the one that an expression sees.
    pub to: DType,
    /// Type of the accumulator of floats.
    pub accumulator: DType,
    /// True if integers are clamped rather than taken modulo 2^bits, whatever the row's default.
    pub saturate: bool,
    /// True if the result of integers is taken modulo 2^bits of the output.
    pub wraps: bool,
    /// True if means and roots of integers are rounded to nearest even.
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

/// The results; none if the oracle has no arm for the reduction of such elements.
pub fn reduce(op: OfSlice, task: &Task, elements: &Elements) -> Option<Vec<Exact>> {
    let least = op == OfSlice::ArgMin;
    Some(match op {
        OfSlice::ArgMax | OfSlice::ArgMin => vec![position::extreme(elements, least, task.params[0] == 1.0)],
        OfSlice::CountNonzero => vec![position::count_nonzero(elements)],
        OfSlice::Mode => selection::mode(elements),
        OfSlice::SumExp if task.input.is_float() => floats::sum_exp(task.acc(), elements).into(),
        OfSlice::MeanPair if task.input.is_float() => {
            Moments::of(task.acc(), elements).parts().map(|part| Exact::known(part, false)).into()
        }
        _ => vec![one(op, task, elements)?],
    })
}

/// The result of a reduction with one result of a value's type.
fn one(op: OfSlice, task: &Task, elements: &Elements) -> Option<Exact> {
    match task.input {
        d if d.is_float() => of_floats(op, task, elements),
        _ => exactly(op, task, elements),
    }
}

/// The result of integers and truth values. Over bounds, one that rises is bounded by the results of their ends.
fn exactly(op: OfSlice, task: &Task, elements: &Elements) -> Option<Exact> {
    let of = |end: fn(Known) -> Real| {
        if task.input == DType::Bool {
            return logic::reduce(op, elements.iter().map(|element| !end(element).is_zero()));
        }
        let whole = |element| Known::exactly(task.input, end(element)).whole();
        integers::reduce(op, task, elements.count(), || elements.iter().map(whole))
    };
    let of_values = of(|element| element.value)?;
    if elements.are_known() {
        return Some(of_values);
    }
    let (low, high) = match op.dependence() {
        Dependence::Rising => (of(Known::low)?, of(Known::high)?),
        Dependence::RisingInMagnitude => (of(Known::least_magnitude)?, of(Known::greatest_magnitude)?),
        Dependence::Free => return Some(of_values.within(Known::anything(task.to, Real::ZERO).allowed)),
    };
    Some(of_values.within(low.allowed().or(high.allowed())))
}

/// The result of floats. Over intervals, a reduction that rises with each element, or with its magnitude, is bounded
/// by its results of the lower ends and of the upper ends.
fn of_floats(op: OfSlice, task: &Task, elements: &Elements) -> Option<Exact> {
    let count = elements.count();
    if matches!(op, OfSlice::Var | OfSlice::Std) {
        return Some(Moments::of(task.acc(), elements).variance(task.param(0), op == OfSlice::Std));
    }
    let of_values = floats::reduce(op, task, count, || elements.iter().map(|element| element.value))?;
    if elements.are_known() {
        return Some(of_values);
    }
    if op == OfSlice::Ptp || op == OfSlice::Prod {
        return Some(of_values.within(match op {
            OfSlice::Ptp => floats::peak_to_peak(task.acc(), elements),
            _ => floats::product_between(task.acc(), elements),
        }));
    }
    let of_magnitudes = op.dependence() == Dependence::RisingInMagnitude;
    let (anything, nan) = elements.doubt();
    let end = |upper: bool| {
        let value = match (of_magnitudes, upper) {
            (true, true) => Known::greatest_magnitude,
            (true, false) => Known::least_magnitude,
            (false, true) => Known::high,
            (false, false) => Known::low,
        };
        Some(floats::reduce(op, task, count, || elements.iter().map(value))?.allowed())
    };
    let (low, high) = (end(false)?, end(true)?);
    let is_nan = |bounds| bounds == Allowed::exactly(Real::Nan);
    let allowed = match (low, high) {
        _ if anything || op.dependence() == Dependence::Free => Allowed::Anything,
        // A sum of opposite infinities, or the logarithm of a value that may be below zero.
        _ if is_nan(low) != is_nan(high) => Allowed::Anything,
        _ => low.or(high).or_nan(nan),
    };
    Some(of_values.within(allowed))
}

/// A number of elements as a real number.
pub fn whole(value: u64) -> Real {
    integer(i128::from(value))
}
