//! The selections of [`Stmt::Select`](crate::Stmt::Select) from a slice.
//!
//! Elements are ordered: numbers ascending, -0 before +0, every NaN after all numbers and equal to every other NaN.
//! So every result is a function of the elements alone, not of their positions. A NaN result is the canonical one.

use crate::{DType, Scalar};
use std::cmp::{Ordering, Reverse};
use std::fmt;

/// A selection from the elements of a slice, which has at least one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selection {
    /// `nth 499, 500`: for each of at most [`MAX_POSITIONS`](Selection::MAX_POSITIONS) positions, the element
    /// at that position of the sorted slice, counted from 0.
    Nth(Vec<u64>),
    /// `mode`: the most frequent element, the least of the most frequent; and how often it occurs, an
    /// `i64`. Here -0 equals +0, and the result is +0.
    Mode,
}

impl Selection {
    /// The most positions of one selection.
    pub const MAX_POSITIONS: usize = 3;

    /// The types of the results, of elements of `dtype`.
    pub fn results(&self, dtype: DType) -> Vec<DType> {
        match self {
            Selection::Nth(positions) => vec![dtype; positions.len()],
            Selection::Mode => vec![dtype, DType::I64],
        }
    }

    /// The results: the slice is put in order and looked at.
    ///
    /// ```
    /// use cranefold_ir::{Scalar, Selection};
    ///
    /// let slice = [3.0, f32::NAN, 1.0, 3.0].map(Scalar::f32);
    /// assert_eq!(Selection::Nth(vec![0, 2]).eval(&slice), [Scalar::f32(1.0), Scalar::f32(3.0)]);
    /// assert_eq!(Selection::Mode.eval(&slice)[0], Scalar::f32(3.0));
    /// ```
    ///
    /// # Panics
    /// If the slice is empty or a position lies outside of it.
    pub fn eval(&self, slice: &[Scalar]) -> Vec<Scalar> {
        let mut sorted = slice.to_vec();
        sorted.sort_by(|&a, &b| order(a, b));
        match self {
            Selection::Nth(positions) => positions.iter().map(|&p| canonical(sorted[p as usize])).collect(),
            Selection::Mode => {
                let runs = sorted.chunk_by(|&a, &b| plus_zero(a) == plus_zero(b));
                // The first of the longest.
                let longest = runs.min_by_key(|run| Reverse(run.len())).expect("an element");
                vec![plus_zero(longest[0]), Scalar::int(DType::I64, longest.len() as i128)]
            }
        }
    }
}

/// Prints the selection as in the text of a nest: `nth 499, 500` or `mode`.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selection::Nth(positions) => {
                let words: Vec<String> = positions.iter().map(u64::to_string).collect();
                write!(f, "nth {}", words.join(", "))
            }
            Selection::Mode => f.write_str("mode"),
        }
    }
}

fn order(a: Scalar, b: Scalar) -> Ordering {
    match (a.as_int(), b.as_int()) {
        (Some(a), Some(b)) => a.cmp(&b),
        // -0 stands before +0 in it, and the canonical NaN after all.
        _ => canonical(a).as_f64().total_cmp(&canonical(b).as_f64()),
    }
}

fn canonical(s: Scalar) -> Scalar {
    if s.is_nan() { Scalar::nan(s.dtype()) } else { s }
}

fn plus_zero(s: Scalar) -> Scalar {
    let zero = Scalar::from_bits(s.dtype(), 0);
    if s.as_f64() == 0.0 { zero } else { canonical(s) }
}
