//! Runs of memory far apart: the runs of neighbouring outputs follow one another.

use super::super::cost::Cost;
use super::super::facts::{Facts, Runs, states_kept};
use super::super::{Schedule, Tile, Transform};
use super::contiguous::{self, Way};
use super::{tile_of, tiled};

/// The bytes of the runs that follow one another, together.
const TOGETHER_BYTES: u64 = 256 << 10;

/// The bytes of a run that is too short for a tile: a page of such runs makes too many loops. Where the positions of
/// slices are written, a tile of shorter runs writes whole lines.
const SHORT_BYTES: u64 = 512;

pub(super) fn candidates(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    tiled(facts, plain, |number| tile(facts, number)).into_iter().collect()
}

fn tile(facts: &Facts, number: usize) -> Option<Tile> {
    let Runs { bytes, loops, transform, .. } = facts.runs(number)?;
    let kept = facts.lanes_bytes().saturating_mul(states_kept(&facts.tree, 1));
    let outputs = (TOGETHER_BYTES / bytes.max(1)).min(Schedule::MAX_STATE_BYTES / kept.max(1));
    ((bytes >= SHORT_BYTES || facts.written.is_some()) && outputs > 1).then(|| tile_of(loops, outputs, 1, transform))?
}

/// The cost: runs begin less often, and the states of blocks are pushed to memory.
pub(super) fn cost(facts: &Facts, schedule: &Schedule) -> Cost {
    let Tile { by, transform, .. } = contiguous::outputs_of(facts, schedule);
    let states = facts.slices as f64 * facts.tree.blocks() as f64 * facts.merged_bytes() as f64;
    let visits = match transform {
        Transform::Blocks => facts.machine.pushed_in_tile,
        _ => facts.machine.pushed,
    };
    let way = Way {
        at_once: schedule.in_flight * schedule.interleave,
        runs_of: Some(by),
        pushed_bytes: visits * states,
        end: contiguous::end(facts),
        waits: facts.waits,
        folding: 1.0,
        reads_on: false,
    };
    contiguous::cost_of(facts, schedule, &way)
}
