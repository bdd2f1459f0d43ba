//! Slices across the lines of an input: a vector takes one slice in each lane, and a step takes lines of all of them.

use super::super::cost::{Cost, lines_ns};
use super::super::facts::{Facts, OutputLoop, states_kept};
use super::super::{Schedule, Tile, Transform};
use super::{LANES, gathering_ops, short_slices, tiled, vector_bytes};
use crate::vectors::Vectors;

pub(super) fn candidates(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    let is_wide = plain.width > Vectors::BASE.bits;
    let is_long = facts.problem.count > short_slices::SHORT;
    match is_wide && facts.crosses() && facts.is_light && facts.phases == 1 && is_long {
        true => tiled(facts, plain, |number| tile(facts, number)).into_iter().collect(),
        false => vec![],
    }
}

fn tile(facts: &Facts, number: usize) -> Option<Tile> {
    let &OutputLoop { var, extent, .. } = facts.loops[number].last()?;
    let kept = facts.lanes_bytes().saturating_mul(states_kept(&facts.tree, 1)).saturating_mul(LANES);
    let fits = extent >= LANES && kept <= Schedule::MAX_STATE_BYTES && !facts.problem.takes_position;
    fits.then_some(Tile { var, by: LANES, transform: Transform::Steps })
}

pub(super) fn cost(facts: &Facts, schedule: &Schedule) -> Cost {
    let machine = &facts.machine;
    let visited = 2.0 * facts.elements() * facts.state_bytes as f64;
    let operations = facts.vectors(vector_bytes(schedule)) * facts.operations as f64;
    Cost {
        reading_ns: machine.read_ns(facts.bytes) + lines_ns(facts, machine.level(facts.bytes), facts.in_line()),
        computing_ns: (operations + gathering_ops(facts, schedule, machine.transpose_ops)) / machine.vector_ops,
        visiting_ns: visited / machine.state_rate,
        ..Cost::default()
    }
}
