//! Slices in short rows of outputs that lie apart, as windows of pooling and a few columns do: several rows fill a vector.

use super::super::cost::Cost;
use super::super::facts::{Facts, OutputLoop};
use super::super::{Schedule, Tile, Transform};
use super::{tiled, vector_bytes};
use crate::problem::Dim;
use crate::vectors::Vectors;

/// The most vectors of outputs in a tile.
const MOST_VECTORS: u64 = 3;

/// The share of a tile's lanes that outputs fill, at least: in one vector of values of at most four bytes, and in others.
const LEAST_FULL: f64 = 0.75;
const LEAST_FULL_OF_SEVERAL: f64 = 0.8;

/// The most elements of a slice, if it is no window, whose positions are written, of values of at most four bytes and of
/// eight: softmax of f32[170,16,6] over axis 1 took 1.2 times as long in rows as by columns, of f64[341,16,3] 1.6 times;
/// standardised f32[606,9,3] took 0.6 times.
const MOST_WRITTEN: [u64; 2] = [12, 8];

/// Operations that choose the elements of a vector, for each vector from which they come.
const CHOOSING: f64 = 1.5;

/// The elements from an output to the next beyond which bringing them into order takes so many times as long: rows of groups
/// of five and more took two to four times as long as of four, beside what their distance explains.
const FAR_ELEMENTS: f64 = 4.0;
const FAR: f64 = 3.0;

/// The same beyond which each visit of a window brings them into order, as it does with more elements than a step takes:
/// registers do not hold them until the next visit. Variances of f32[5,196,4,4] over axes 1 and 3 took 3.5 times the price of
/// one order, of f32[10,196,4,2] 1.9 times.
const NEAR_ELEMENTS: f64 = 2.0;

/// The most registers of a tile's states: in memory, every step would read and write them. So many elements of a slice or fewer
/// are a single step, whose states are combined as they are made: `max` of bf16[555,9,6] over axis 1, of 27 states, took 1.8
/// us in rows and 3.1 by columns.
const MOST_STATES: u64 = 24;
const MOST_STATES_OF_STEP: u64 = 36;
const MOST_ELEMENTS_OF_STEP: u64 = 16;

/// Operations that each vector of outputs but the first costs besides, for each four bytes of its slices' states, and at most:
/// fewer values stay in registers.
const CROWDING: f64 = 0.5;
const MOST_CROWDING: f64 = 4.0;

/// The operations on an element of a visit, as of an exponential, from which on vectors do not crowd: they hide how long each
/// other's operations take. Log softmax of bf16[2094,8,2,4,2] over axes 2 and 4 took 129 us by tiles of one vector, 106 of
/// two and 91 of three.
pub(super) const HIDING_OPERATIONS: u64 = 15;

/// Time in ns that a tile of such vectors waits at its end.
const TILE_NS: f64 = 4.0;

/// The most vectors of elements of eight bytes that such visits keep in registers until they write: softmax of
/// f64[400,5,8] over axis 1 took 5.6 us by tiles of two vectors and 8.6 of three.
const MOST_KEPT: u64 = 12;

pub(super) fn candidates(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    let has_masks = Vectors::WIDEST.at_most(plain.width).has_masks();
    // Positions beside bytes are four times as wide: argmax of i8[1168,7,2] over axis 1 took 2.4 times as long in rows.
    let widens_bytes = facts.element_bytes == 1 && facts.problem.takes_position;
    let most_written = MOST_WRITTEN[usize::from(facts.widest_bytes > 4)];
    let writes_long = facts.written.is_some() && !facts.is_window() && facts.problem.count > most_written;
    if !has_masks || widens_bytes || writes_long {
        return vec![];
    }
    (1..=MOST_VECTORS).filter_map(|vectors| tiled(facts, plain, |number| tile(facts, plain, number, vectors))).collect()
}

/// The lanes of a vector of outputs.
fn lanes(facts: &Facts, schedule: &Schedule) -> u64 {
    (vector_bytes(schedule) as u64 / facts.widest_bytes).max(1)
}

/// The tile of a box of slices: as many rows as so many vectors hold.
fn tile(facts: &Facts, plain: &Schedule, number: usize, vectors: u64) -> Option<Tile> {
    let [.., outer, inner] = &facts.loops[number][..] else { return None };
    let &OutputLoop { var, extent, .. } = outer;
    let lanes = vectors * lanes(facts, plain);
    let by = lanes / inner.extent;
    let states = vectors * values(facts);
    let is_narrow = vectors == 1 && facts.widest_bytes <= 4;
    let least_full = if is_narrow { LEAST_FULL } else { LEAST_FULL_OF_SEVERAL };
    let is_full = by > 1 && (by * inner.extent) as f64 >= least_full * lanes as f64;
    let is_step = facts.problem.count <= facts.tree.lanes.min(MOST_ELEMENTS_OF_STEP);
    let most_states = if is_step { MOST_STATES_OF_STEP } else { MOST_STATES };
    let fits = is_full && inner.extent > 1 && extent >= by && states <= most_states && lie_apart(facts, number);
    fits.then_some(Tile { var, by, transform: Transform::Rows })
}

/// The values of a slice's states in the phase where they have the most.
fn values(facts: &Facts) -> u64 {
    facts.phase_bytes / facts.value_bytes.max(1)
}

/// Returns true if the rows of outputs of a box lie apart in all inputs, in order.
fn lie_apart(facts: &Facts, number: usize) -> bool {
    let [.., rows, outputs] = &facts.problem.slices[number].dims[..] else { return false };
    let mapped = (0..facts.problem.inputs.len()).filter(|&input| facts.problem.inputs[input].mapped);
    let mut strides = mapped.map(|input| [rows, outputs].map(|dim: &Dim| dim.stride.inputs[input]));
    strides.all(|[rows, along]| along > 0 && rows > along * outputs.extent as i64)
}

/// The elements of input 0 from an output to the next.
fn apart(facts: &Facts) -> f64 {
    facts.problem.slices[0].dims.last().map_or(1.0, |outputs| outputs.stride.inputs[0].max(1) as f64)
}

/// The operations that bring a vector of elements into order: those that remove the distance of outputs, and those that choose
/// from the vectors that hold the elements. Rows that lie far apart have vectors of their own.
fn ordering(facts: &Facts, schedule: &Schedule) -> f64 {
    let [.., rows, outputs] = &facts.problem.slices[0].dims[..] else { return 0.0 };
    let (rows_apart, apart) = (rows.stride.inputs[0].max(1) as f64, apart(facts));
    let in_vector = lanes(facts, schedule) as f64 / outputs.extent as f64;
    let read = vector_bytes(schedule) / facts.element_bytes as f64;
    let from = in_vector.min(in_vector * rows_apart / apart / read).max(1.0);
    let far = if apart > FAR_ELEMENTS { FAR } else { 1.0 };
    far * (apart.log2() + CHOOSING * from)
}

/// The outputs of a tile, and the vectors that they fill but for the end.
fn tile_vectors(facts: &Facts, schedule: &Schedule) -> (u64, u64) {
    let outputs = facts.loops.iter().find_map(|loops| match &loops[..] {
        [.., outer, inner] => schedule.tile_of(outer.var).map(|tile| tile.by * inner.extent),
        _ => None,
    });
    let outputs = outputs.unwrap_or(1);
    (outputs, outputs.div_ceil(lanes(facts, schedule)))
}

/// The share of a tile's lanes that outputs fill.
pub(super) fn filled(facts: &Facts, schedule: &Schedule) -> f64 {
    let (outputs, vectors) = tile_vectors(facts, schedule);
    outputs as f64 / (vectors * lanes(facts, schedule)) as f64
}

/// Returns true if vectors of a tile hide how long each other's operations take.
fn hides(facts: &Facts, vectors: u64) -> bool {
    let keeps = facts.widest_bytes > 4 && facts.written.is_some() && !facts.is_window();
    let fits = !keeps || vectors.saturating_mul(facts.problem.count) <= MOST_KEPT;
    facts.most_operations() >= HIDING_OPERATIONS && !facts.problem.takes_position && fits
}

/// The cost: outputs fill vectors but for the end of a tile, and each is brought into order.
pub(super) fn cost(facts: &Facts, schedule: &Schedule) -> Cost {
    let machine = &facts.machine;
    let (outputs, vectors) = tile_vectors(facts, schedule);
    let inputs = facts.mapped_inputs() as f64;
    // What is written is brought back into the order of its elements; windows pay for that in any schedule.
    let writes = facts.written.is_some();
    let orders = match facts.is_window() {
        true if apart(facts) > NEAR_ELEMENTS || facts.problem.count > MOST_ELEMENTS_OF_STEP => {
            inputs * (1 + facts.later.len() + usize::from(writes)) as f64
        }
        true => inputs,
        false => inputs + f64::from(u8::from(writes)),
    };
    let of_vector = CROWDING * (values(facts) * facts.value_bytes.div_ceil(4)) as f64;
    let hides = hides(facts, vectors);
    let visits = match facts.is_window() && facts.element_bytes >= 4 {
        true => 1 + facts.later.len() + usize::from(writes),
        false => 1,
    };
    let crowding = if hides { 0.0 } else { visits as f64 * (vectors - 1) as f64 * of_vector.min(MOST_CROWDING) };
    let waiting_ns = if hides { facts.slices as f64 / outputs as f64 * TILE_NS } else { 0.0 };
    let operations = facts.operations as f64 + orders * ordering(facts, schedule) + crowding;
    Cost {
        reading_ns: machine.read_ns(facts.bytes),
        computing_ns: facts.vectors(vector_bytes(schedule)) * operations / filled(facts, schedule) / machine.vector_ops,
        ending_ns: waiting_ns,
        ..Cost::default()
    }
}
