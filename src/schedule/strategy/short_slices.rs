//! Slices of a few elements, which would leave lanes empty: each lane of a vector takes a slice instead.

use super::super::cost::Cost;
use super::super::facts::{Facts, OutputLoop};
use super::super::{Schedule, Tile, Transform};
use super::{LANES, gathering_ops, tiled, vector_bytes, vector_outputs};
use crate::vectors::Vectors;

/// The most elements of a slice that is a lane of vectors of 512 bits, if an element costs little: slices of 16 ran at
/// 55 GB/s, one by one at 27; with 256 bits at 19 and 43.
pub(super) const SHORT: u64 = 16;

pub(super) fn candidates(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    tiled(facts, plain, |number| tile(facts, plain.width, number)).into_iter().collect()
}

/// The tile of a box of short slices.
pub(super) fn tile(facts: &Facts, width: u32, number: usize) -> Option<Tile> {
    let vector = vector_outputs(width);
    let by = match facts.problem.count {
        2..=4 if facts.is_light => LANES,
        2..=8 => vector,
        9..=SHORT if facts.is_light && vector == LANES => vector,
        _ => return None,
    };
    let &OutputLoop { var, extent, .. } = facts.loops[number].last()?;
    // Bytes deinterleave in whole vectors if their distance is a power of two.
    let all = u64::from(width / 8);
    let is_bytes = facts.state_bytes == 1 && facts.problem.count.is_power_of_two() && width > Vectors::BASE.bits;
    let by = if is_bytes && extent >= all { all } else { by };
    (extent >= by).then_some(Tile { var, by, transform: Transform::Steps })
}

/// The cost: gathering the elements of a vector takes an operation for each halving of their distance.
pub(super) fn cost(facts: &Facts, schedule: &Schedule) -> Cost {
    let machine = &facts.machine;
    let operations = facts.vectors(vector_bytes(schedule)) * facts.operations as f64;
    let moves = f64::from(facts.problem.count.next_power_of_two().ilog2());
    Cost {
        reading_ns: machine.read_ns(facts.bytes),
        computing_ns: (operations + gathering_ops(facts, schedule, moves)) / machine.vector_ops,
        ..Cost::default()
    }
}
