//! Slices of a few steps: the lanes of as many slices as a vector has lanes fold together.

use super::super::cost::Cost;
use super::super::facts::{Facts, OutputLoop};
use super::super::{Schedule, Tile, Transform};
use super::contiguous::{self, End, Way};
use super::{tiled, unfilled_ns, vector_bytes};
use crate::vectors::Vectors;

/// The most steps of a slice whose fold is shared: sums of f32 in slices of 32 ran at 110 GB/s instead of 51, in slices
/// of 64 at 111 instead of 85, in slices of 256 as before.
const MOST_STEPS: u64 = 4;

/// The same where the end of a slice waits for a result: `var` of rows of 80 floats took 32 us that way, alone 56.
const MOST_WAITED_STEPS: u64 = 16;

/// Bytes of slices so short that processors read the next ones while they read one again.
const NEAR_BYTES: u64 = 256;

/// The fewest lanes of a slice that fold together with those of others.
const FEWEST_PRESENT: u64 = 4;

pub(super) fn candidates(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    tiled(facts, plain, |number| tile(facts, plain.width, number)).into_iter().collect()
}

fn tile(facts: &Facts, width: u32, number: usize) -> Option<Tile> {
    let by = u64::from(width / 8) / facts.narrowest_bytes.max(1);
    let has_form = width > Vectors::BASE.bits && !facts.searched;
    let most_steps = if facts.waits { MOST_WAITED_STEPS } else { MOST_STEPS };
    let present = facts.tree.lanes_present();
    let is_short = facts.tree.is_one_block() && facts.problem.count <= most_steps * facts.tree.lanes;
    let &OutputLoop { var, extent, .. } = facts.loops[number].last()?;
    let fits = has_form && is_short && present >= FEWEST_PRESENT && 2 * extent >= by;
    fits.then_some(Tile { var, by: by.min(extent), transform: Transform::SharedFolds })
}

/// The cost: the end of a slice is its share of a few moves. Nothing is read from memory while slices fold together.
pub(super) fn cost(facts: &Facts, schedule: &Schedule) -> Cost {
    let machine = &facts.machine;
    let in_vector = u64::from(schedule.width / 8) / facts.narrowest_bytes.max(1);
    let by = contiguous::outputs_of(facts, schedule).by;
    let filled = by as f64 / by.next_multiple_of(in_vector) as f64;
    let waited_ns = machine.shared_fold_ops * facts.values() * facts.phases as f64 / machine.vector_ops / filled;
    let slice = facts.problem.count as f64 * facts.value_bytes as f64;
    let is_part = facts.element_bytes > 1 && facts.value_bytes > 2 && slice < vector_bytes(schedule);
    let part_ns = if is_part { machine.part_of_vector_ns } else { 0.0 };
    let odd_ns = contiguous::odd_window_ns(facts) * facts.phases as f64;
    let way = Way {
        at_once: by,
        runs_of: None,
        pushed_bytes: 0.0,
        end: End { waited_ns: waited_ns + part_ns + odd_ns, fold_ns: 0.0 },
        waits: false,
        reads_on: facts.slice_bytes() <= NEAR_BYTES,
        folding: machine.reading_shared_folds[machine.level(facts.bytes) as usize],
    };
    let cost = contiguous::cost_of(facts, schedule, &way);
    Cost { ending_ns: cost.ending_ns + unfilled_ns(facts, schedule), ..cost }
}
