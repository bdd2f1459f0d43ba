//! Slices across the lines of an input: a vector takes one slice in each lane, and a step takes lines of all of them.
//!
//! So do slices that lie along memory but have trees of one lane, as `order=logical` gives the columns of a transposed
//! matrix: a vector of one slice has one element.

use super::super::cost::{Cost, lines_ns};
use super::super::facts::{Facts, OutputLoop, states_kept};
use super::super::{Schedule, Tile, Transform};
use super::{LANES, gathering_ops, short_slices, tiled, vector_bytes, vector_outputs};
use crate::vectors::Vectors;

/// Steps in one visit of an accumulator, where lanes are slices because trees have one lane: of f32 a whole line of each.
/// Four took 1.2 to 1.4 times as long for variances and log_sum_exp, and twice for bf16.
const JAM: u64 = 16;

pub(super) fn candidates(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    if has_one_lane(facts) {
        let tile = |number: usize| tile_of_lanes(facts, plain.width, number);
        return tiled(facts, &Schedule { jam: JAM, ..plain.clone() }, tile).into_iter().collect();
    }
    let is_wide = plain.width > Vectors::BASE.bits;
    let is_long = facts.problem.count > short_slices::SHORT;
    match is_wide && facts.crosses() && facts.is_light && facts.phases == 1 && is_long {
        true => tiled(facts, plain, |number| tile(facts, number)).into_iter().collect(),
        false => vec![],
    }
}

/// Returns true if the trees of contiguous slices have one lane, and lanes may be slices.
pub(super) fn has_one_lane(facts: &Facts) -> bool {
    let is_long = facts.problem.count > short_slices::SHORT;
    facts.is_inner() && facts.tree.lanes == 1 && is_long && !facts.problem.takes_position
}

/// The tile of as many slices as a vector has lanes.
fn tile_of_lanes(facts: &Facts, width: u32, number: usize) -> Option<Tile> {
    let &OutputLoop { var, extent, .. } = facts.loops[number].last()?;
    let by = vector_outputs(width).min(1 << extent.ilog2());
    (by > 1).then_some(Tile { var, by, transform: Transform::Steps })
}

fn tile(facts: &Facts, number: usize) -> Option<Tile> {
    let &OutputLoop { var, extent, .. } = facts.loops[number].last()?;
    let kept = facts.lanes_bytes().saturating_mul(states_kept(&facts.tree, 1)).saturating_mul(LANES);
    let fits = extent >= LANES && kept <= Schedule::MAX_STATE_BYTES && !facts.problem.takes_position;
    fits.then_some(Tile { var, by: LANES, transform: Transform::Steps })
}

pub(super) fn cost(facts: &Facts, schedule: &Schedule) -> Cost {
    let machine = &facts.machine;
    let visits = if has_one_lane(facts) { 0.0 } else { 2.0 * facts.elements() };
    let visited = visits * facts.state_bytes as f64;
    let operations = facts.vectors(vector_bytes(schedule)) * facts.operations as f64;
    Cost {
        reading_ns: machine.read_ns(facts.bytes) + lines_ns(facts, machine.level(facts.bytes), facts.in_line()),
        computing_ns: (operations + gathering_ops(facts, schedule, machine.transpose_ops)) / machine.vector_ops,
        visiting_ns: visited / machine.state_rate,
        ..Cost::default()
    }
}
