//! Users' combiners.
//!
//! The elements are combined one after the other, with the slice as one block: a combiner that keeps its
//! contract gives the same result in every other order, but for rounding. Integers and truth are exact. The
//! error of floats is not derived, since the expressions are arbitrary: each part of the state is allowed
//! `depth` + 16 roundings (see `bound.rs`) of the sum of the lifted magnitudes, or of the greatest state if
//! that is greater. This is the bound of a sum, and wide for most other combiners.

use super::bound::Accumulator;
use super::elements::Mapped;
use super::exact::Allowed;
use super::expression::{Names, evaluate};
use super::known::{Known, integer};
use super::real::Real;
use cranefold_ir::DType;
use cranefold_ir::expression::Expression;
use cranefold_ir::ops::Combiner;

fn numbered(letter: char, values: &[Known]) -> Names {
    values.iter().enumerate().map(|(i, &value)| (format!("{letter}{i}"), value)).collect()
}

fn all(expressions: &[Expression], names: &Names, literal: DType) -> Vec<Known> {
    expressions.iter().map(|expression| evaluate(expression, names, literal)).collect()
}

/// The outputs of a combiner over the slice.
pub fn reduce(combiner: &Combiner, slice: &Mapped) -> Vec<Known> {
    let literal = slice.accumulator;
    let rounded = Accumulator::of(literal).rounded(slice.count() as f64);
    let count = ("n".to_string(), Known::exactly(literal, rounded));
    let mut results: Vec<Known> = vec![];
    for phase in &combiner.phases {
        let mut state = all(&phase.identity, &vec![], literal);
        let mut scales = vec![(Real::ZERO, Real::ZERO); state.len()];
        for (position, mut names) in slice.names().enumerate() {
            names.push(("i".into(), Known::exactly(DType::I64, integer(position as i128))));
            names.extend(numbered('r', &results));
            let lifted = all(&phase.lift, &names, literal);
            let both = [numbered('a', &state), numbered('b', &lifted)].concat();
            state = all(&phase.combine, &both, literal);
            for ((total, most), (lifted, state)) in scales.iter_mut().zip(lifted.iter().zip(&state)) {
                *total = total.plus(lifted.value.abs());
                *most = most.max(state.value.abs());
            }
        }
        let state: Vec<Known> = state
            .into_iter()
            .zip(scales)
            .map(|(part, (total, most))| loosened(part, total.max(most), slice.count()))
            .collect();
        results.extend(match phase.close.is_empty() {
            true => state,
            false => all(&phase.close, &[numbered('a', &state), vec![count.clone()]].concat(), literal),
        });
    }
    if !combiner.finish.is_empty() {
        results = all(&combiner.finish, &[numbered('a', &results), vec![count]].concat(), literal);
    }
    results
}

/// A part of the state in which floats may be off by the roundings of a sum of this scale.
fn loosened(part: Known, scale: Real, count: u64) -> Known {
    if !part.dtype.is_float() || count <= 1 || part.value == Real::Nan {
        return part;
    }
    let allowed = match Accumulator::of(part.dtype).of_sum(scale, count) {
        Some(bound) if part.value.is_finite() => {
            Allowed::between(part.value.plus(bound.minus()), part.value.plus(bound))
        }
        _ => Allowed::Anything,
    };
    Known { allowed, ..part }
}
