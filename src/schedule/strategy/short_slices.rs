//! Slices of a few elements, which would leave lanes empty: each lane of a vector takes a slice instead.

use super::super::cost::Cost;
use super::super::facts::{Facts, OutputLoop};
use super::super::{Schedule, Tile, Transform};
use super::rows::HIDING_OPERATIONS;
use super::{LANES, LANES_OF_LONG, gathering_ops, row_of_tiles, tiled, unfilled_ns, vector_bytes, vector_outputs};
use crate::vectors::Vectors;
use cranefold_ir::DType;

/// The most elements of a slice that is a lane of vectors of 512 bits, if an element costs little: slices of 16 ran at
/// 55 GB/s, one by one at 27; with 256 bits at 19 and 43.
pub(super) const SHORT: u64 = 16;

/// The same where an element takes many operations, or is visited several times, and no position is written:
/// log_sum_exp of rows of 28 took 84 us that way, one by one 132. `argmax` of rows of 31 took 6.3 us, of rows of 32, whose
/// elements come by another way, 10.7, and 5.3 where the lanes of several rows fold together.
const HEAVY: u64 = 31;

/// Bytes of the pieces between which moves choose. Values beside positions become as long first.
const PIECE_BYTES: u64 = 4;

/// Operations that widen and place a vector of a window's elements beside those that a row's take: sums of bf16 over windows
/// of 2 x 2 took twice as long as those of f32.
const WIDENING: f64 = 3.0;

/// The vectors of slices that hide how long each other's results take, and the most registers of their elements: log
/// softmax of f32[50417,2] took 45 us by tiles of one vector and 30 of three, of f32[6938,3] 8.3 and 5.8; of f32[2000,8], which
/// three vectors crowd, 4.5 and 4.7.
const HIDING_VECTORS: u64 = 3;
const HIDING_REGISTERS: u64 = 18;

pub(super) fn candidates(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    tiled(facts, plain, |number| tile(facts, plain.width, number)).into_iter().collect()
}

/// The fewest outputs that are lanes of a vector with masks: rows of 7 ran at 55 GB/s, one by one at 14.
const FEWEST: u64 = 3;

/// Time in ns of a tile of windows beside its operations: the steps of its addresses, and masks at the end of its rows.
const TILE_NS: f64 = 0.4;

/// The most bytes of a tile's elements, which are all in registers until they fold: without and with masks.
const TILE_BYTES: [u64; 2] = [256, 1 << 10];

/// The tile of a box of short slices.
pub(super) fn tile(facts: &Facts, width: u32, number: usize) -> Option<Tile> {
    let is_wide = vector_outputs(width) == LANES;
    let vector = if is_wide && facts.value_bytes > 4 { LANES_OF_LONG } else { vector_outputs(width) };
    let is_heavy = facts.phases > 1 || facts.written.is_none();
    let by = match facts.problem.count {
        2..=4 if facts.is_light => LANES,
        2..=8 => vector,
        9..=SHORT if is_wide && (facts.is_light || is_heavy) => vector,
        9..=HEAVY if is_wide && is_heavy && facts.written.is_none() => vector,
        _ => return None,
    };
    let &OutputLoop { var, extent, .. } = facts.loops[number].last()?;
    let has_masks = Vectors::WIDEST.at_most(width).has_masks();
    let state = facts.tree.lanes_present() * facts.widest_bytes;
    let fits = |by: &u64| by.min(&extent) * state <= TILE_BYTES[usize::from(has_masks)];
    let narrow = narrow_outputs(facts, width);
    let by = narrow.unwrap_or([by, by]).into_iter().find(fits).unwrap_or(by.min(vector));
    let by = hiding_outputs(facts, width).unwrap_or(by).min(extent);
    let by = match has_masks {
        true => by,
        // Without masks, vectors have a power of two of lanes.
        false => 1 << by.ilog2(),
    };
    // The vectors of a narrow rest cost more than slices one by one: rows of 14 took 212 us at 256 bits, one by one 148.
    let rest = extent % by;
    let is_cut = !has_masks && extent < LANES && rest > 0 && !rest.is_power_of_two();
    (by >= FEWEST && !is_cut).then_some(Tile { var, by, transform: Transform::Steps })
}

/// The outputs of a tile whose vectors hide each other's time; `None` where nothing waits for a slice's results, or too few
/// vectors fit registers.
fn hiding_outputs(facts: &Facts, width: u32) -> Option<u64> {
    let has_masks = Vectors::WIDEST.at_most(width).has_masks();
    let waits = facts.phases > 1 || !facts.later.is_empty() || facts.written.is_some();
    let lanes = u64::from(width / 8) / facts.widest_bytes.max(4);
    let elements = facts.problem.count.saturating_mul(facts.mapped_inputs());
    // Rows of four elements of eight bytes are ordered with more in registers: layer norms took 1.4 times as long.
    let is_half = facts.problem.count == LANES_OF_LONG / 2 && facts.element_bytes == 8;
    let fits = elements.saturating_mul(HIDING_VECTORS) <= HIDING_REGISTERS && !is_half;
    // What windows compute besides few operations is the order of their elements, which waits for nothing.
    let is_long = !facts.is_window() || facts.most_operations() >= HIDING_OPERATIONS;
    // Two results that become f16 take more operations than `unroll` writes out three times, and states that a loop ends lie
    // in memory: mean and variance of f16[25956,6] took 31 us, and 16 by one vector.
    let of_half = facts.problem.inputs.iter().any(|input| input.operand.dtype == DType::F16);
    let is_loop = of_half && facts.problem.outputs.len() > 1;
    let hides = waits && is_long && fits && !is_loop && !facts.problem.takes_position;
    (has_masks && hides).then_some(HIDING_VECTORS * lanes)
}

/// The outputs whose elements fill a vector, and those whose states of one or two bytes a value do; `None` if vectors do not
/// move the elements as a whole: those without masks move bytes if their distance is a power of two.
fn narrow_outputs(facts: &Facts, width: u32) -> Option<[u64; 2]> {
    let has_masks = Vectors::WIDEST.at_most(width).has_masks();
    let moves = match facts.widest_bytes {
        1 => has_masks || (width > Vectors::BASE.bits && facts.problem.count.is_power_of_two()),
        2 => has_masks,
        _ => false,
    };
    moves.then(|| [facts.element_bytes.min(facts.widest_bytes), facts.widest_bytes].map(|b| u64::from(width / 8) / b))
}

/// The cost: gathering the elements of a vector takes an operation for each halving of their distance in memory. Vectors
/// at the end of a row are not full.
pub(super) fn cost(facts: &Facts, schedule: &Schedule) -> Cost {
    let machine = &facts.machine;
    let empty = emptiness(facts, schedule, (vector_bytes(schedule) / facts.value_bytes as f64).max(1.0));
    let operations = facts.vectors(vector_bytes(schedule)) * facts.operations as f64;
    let bytes = if facts.problem.takes_position { facts.element_bytes.max(PIECE_BYTES) } else { facts.element_bytes };
    let moves = (facts.problem.count as f64 * bytes as f64 / PIECE_BYTES as f64).max(1.0).log2();
    let widens = facts.is_window() && facts.element_bytes > 1 && facts.element_bytes < facts.value_bytes;
    let moves = if widens { moves + WIDENING } else { moves };
    Cost {
        reading_ns: machine.read_ns(facts.bytes),
        computing_ns: (operations + gathering_ops(facts, schedule, moves)) * empty / machine.vector_ops,
        ending_ns: unfilled_ns(facts, schedule) + TILE_NS * tiles(facts, schedule),
        ..Cost::default()
    }
}

/// The number of tiles of windows of narrow elements that are visited once: later phases have the time of a tile among
/// their own, and wide elements are loaded and ordered meanwhile.
fn tiles(facts: &Facts, schedule: &Schedule) -> f64 {
    let counts = facts.is_window() && facts.phases == 1 && facts.element_bytes < 4;
    let of_row = row_of_tiles(facts, schedule).filter(|_| counts);
    of_row.map_or(0.0, |(by, extent)| facts.slices as f64 / extent as f64 * extent.div_ceil(by) as f64)
}

/// The number of vectors, of so many lanes, of a row of outputs, in those that the row would fill.
pub(super) fn emptiness(facts: &Facts, schedule: &Schedule, lanes: f64) -> f64 {
    let Some((by, extent)) = row_of_tiles(facts, schedule) else { return 1.0 };
    let vectors = |outputs: u64| (outputs as f64 / lanes).ceil();
    let all = (extent / by) as f64 * vectors(by) + vectors(extent % by);
    all * lanes / extent as f64
}
