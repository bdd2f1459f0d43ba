//! The elements that one output element is reduced from.

use super::exact::Allowed;
use super::expression::{Names, evaluate, seen};
use super::known::Known;
use super::real::Real;
use super::walk::Slice;
use cranefold_ir::DType;
use cranefold_ir::expression::Expression;

/// The elements of a slice.
#[derive(Clone, Copy, Debug)]
pub enum Elements<'a> {
    /// The elements that inputs give.
    Mapped(&'a Mapped<'a>),
    /// Values of this type, computed before.
    Computed(DType, &'a [Known]),
}

/// The inputs of a slice: input 0 gives the elements, or all inputs the values of `map`.
#[derive(Debug)]
pub struct Mapped<'a> {
    /// The inputs by their names in expressions.
    pub inputs: Vec<(&'a str, Slice<'a>)>,
    /// The expression that maps them.
    pub map: Option<&'a Expression>,
    /// The type of floats in expressions.
    pub accumulator: DType,
}

impl Mapped<'_> {
    /// The number of elements.
    pub fn count(&self) -> u64 {
        self.inputs[0].1.count()
    }

    /// The inputs' values at each position, by their names in expressions.
    pub fn names(&self) -> impl Iterator<Item = Names> {
        let mut inputs: Vec<_> = self.inputs.iter().map(|(name, slice)| (*name, slice.elements())).collect();
        std::iter::from_fn(move || {
            let one = |(name, elements): &mut (&str, _)| {
                let element = Iterator::next(elements)?;
                Some((name.to_string(), seen(Known::element(element), self.accumulator)))
            };
            inputs.iter_mut().map(one).collect()
        })
    }

    /// The elements, in row-major order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Known> + '_> {
        match self.map {
            None => Box::new(self.inputs[0].1.elements().map(Known::element)),
            Some(map) => Box::new(self.names().map(|names| evaluate(map, &names, self.accumulator))),
        }
    }

    /// The elements' type.
    pub fn dtype(&self) -> DType {
        match self.map {
            None => self.inputs[0].1.dtype(),
            Some(map) => {
                let one = |(name, slice): &(&str, Slice)| {
                    (name.to_string(), seen(Known::exactly(slice.dtype(), Real::ZERO), self.accumulator))
                };
                evaluate(map, &self.inputs.iter().map(one).collect(), self.accumulator).dtype
            }
        }
    }
}

impl Elements<'_> {
    /// The number of elements.
    pub fn count(&self) -> u64 {
        match self {
            Elements::Mapped(mapped) => mapped.count(),
            Elements::Computed(_, values) => values.len() as u64,
        }
    }

    /// The elements, in row-major order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Known> + '_> {
        match self {
            Elements::Mapped(mapped) => mapped.iter(),
            Elements::Computed(_, values) => Box::new(values.iter().copied()),
        }
    }

    /// The elements' type.
    pub fn dtype(&self) -> DType {
        match self {
            Elements::Mapped(mapped) => mapped.dtype(),
            Elements::Computed(dtype, _) => *dtype,
        }
    }

    /// Returns true if each element is one value, as elements without a map are.
    pub fn are_known(&self) -> bool {
        let read = matches!(self, Elements::Mapped(mapped) if mapped.map.is_none());
        read || self.iter().all(|element| element.point().is_some())
    }

    /// Returns two flags: true if an element may be any value, and true if one may be NaN.
    pub fn doubt(&self) -> (bool, bool) {
        self.iter().fold((false, false), |(anything, nan), element| match element.allowed {
            Allowed::Anything => (true, nan),
            Allowed::Between { nan: may_be, .. } => (anything, nan || may_be),
        })
    }
}
