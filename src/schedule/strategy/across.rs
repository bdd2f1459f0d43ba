//! Short slices that lie apart with few outputs between them, as windows of pooling do: each lane of a vector takes a
//! slice, and the rows of a matrix with all elements of a lane's outputs are transposed.

use super::super::cost::Cost;
use super::super::facts::{Facts, OutputLoop};
use super::super::{Schedule, Tile, Transform};
use super::{LANES, LANES_OF_LONG, tiled, vector_bytes};
use crate::problem::IndexBox;
use crate::vectors::Vectors;

/// The most outputs between the slices of two lanes: vectors of more are as good along them.
const MOST_BETWEEN: u64 = 4;

/// The most columns of a row, which vectors deinterleave: of 24, sums of f32 took 1.3 times as long as along the outputs.
const MOST_COLUMNS: u64 = 16;

/// The same where positions are taken: of 16, argmax took 1.5 times as long as along the outputs.
const MOST_WITH_POSITIONS: u64 = 15;

/// The same of states of two bytes: of 15, maxima of bf16 took 1.4 times as long, of 16 four times.
const MOST_OF_HALVES: u64 = 8;

/// The same of values of eight bytes in windows, where a slice's elements do not follow one another at one distance: of 16,
/// variances took 1.9 times as long.
const MOST_OF_LONG_WINDOWS: u64 = 8;

/// The least bytes of a state's values: sums of bytes took four times as long as along the outputs.
const LEAST_BYTES: u64 = 2;

/// Operations that transpose a vector.
const TRANSPOSING: f64 = 8.0;

pub(super) fn candidates(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    let has_masks = Vectors::WIDEST.at_most(plain.width).has_masks();
    match has_masks && facts.value_bytes >= LEAST_BYTES {
        true => tiled(facts, plain, |number| tile(facts, number)).into_iter().collect(),
        false => vec![],
    }
}

/// The tile of a box whose elements between two of its outputs are those of the first one's slice and of its neighbours.
fn tile(facts: &Facts, number: usize) -> Option<Tile> {
    let [.., outer, inner] = &facts.loops[number][..] else { return None };
    let &OutputLoop { var, extent, .. } = outer;
    let columns = inner.extent.checked_mul(facts.problem.count)?;
    let is_window = facts.problem.elements().iter().any(|walk| walk.dims.len() > 1);
    let most = match (facts.value_bytes, facts.problem.takes_position) {
        (2, _) => MOST_OF_HALVES,
        (5.., _) if is_window => MOST_OF_LONG_WINDOWS,
        (..5, true) => MOST_WITH_POSITIONS,
        _ => MOST_COLUMNS,
    };
    let slices: &IndexBox = &facts.problem.slices[number];
    let [.., across, _] = &slices.dims[..] else { return None };
    let mut inputs = facts.problem.inputs.iter().zip(&across.stride.inputs).filter(|(input, _)| input.mapped);
    let are_rows = inputs.all(|(_, &stride)| stride == columns as i64);
    let by = if facts.value_bytes > 4 { LANES_OF_LONG } else { LANES };
    let fits = inner.extent <= MOST_BETWEEN && columns <= most && extent >= by;
    (fits && are_rows).then_some(Tile { var, by, transform: Transform::Across })
}

/// The cost: vectors are full, and each is transposed.
pub(super) fn cost(facts: &Facts, schedule: &Schedule) -> Cost {
    let machine = &facts.machine;
    let operations = facts.operations as f64 + TRANSPOSING;
    Cost {
        reading_ns: machine.read_ns(facts.bytes),
        computing_ns: facts.vectors(vector_bytes(schedule)) * operations / machine.vector_ops,
        ..Cost::default()
    }
}
