//! Short slices that lie apart with few outputs between them, as windows of pooling do: each lane of a vector takes a
//! slice, and the rows of a matrix with all elements of a lane's outputs are transposed.
//! So are rows of a few outputs that are computed of inputs alone.

use super::super::cost::Cost;
use super::super::facts::{Facts, OutputLoop, output_loops};
use super::super::{Schedule, Tile, Transform};
use super::{LANES, LANES_OF_LONG, tiled, vector_bytes};
use crate::problem::{IndexBox, Offsets, Problem};
use crate::vectors::Vectors;

/// The most outputs between the slices of two lanes, and where columns may be more: vectors of more are as good along them.
const MOST_BETWEEN: u64 = 4;
const MOST_BETWEEN_OF_HEAVY: u64 = 6;

/// The most columns of a row, which vectors deinterleave: of 24, sums of f32 took 1.6 times as long as along the outputs.
const MOST_COLUMNS: u64 = 16;

/// The same where a visit takes so many operations, or makes elements wider and is the only one: log_sum_exp of rows of 24
/// took 0.8 times as long as along the outputs, its bf16 0.7, and sums of bf16 0.9.
const MOST_OF_HEAVY: u64 = 24;
const HEAVY_OPS: u64 = 12;

/// The same where positions of values of four bytes are taken: of 16, argmax took 1.5 times as long as along the outputs.
const MOST_WITH_POSITIONS: u64 = 15;

/// The same of values of eight bytes in windows, where a slice's elements do not follow one another at one distance: of 16,
/// variances took 1.9 times as long.
const MOST_OF_LONG_WINDOWS: u64 = 8;

/// The lanes of tiles of values of two bytes, which fill a vector: with half as many, extremes of bf16 took 1.5 to 3 times as
/// long. Positions beside bytes take as many.
const LANES_OF_HALVES: u64 = 32;

/// The lanes of tiles of bytes, which fill a vector: with half as many, sums of i8 took 1.5 to 2 times as long.
const LANES_OF_BYTES: u64 = 64;

/// The most elements of a row of outputs that are computed of inputs alone, by the bytes of an output: with more, vectors
/// along the row are as good.
const MOST_OF_LONG_ROWS: u64 = 3;
const MOST_OF_ROWS: u64 = 7;
const MOST_OF_NARROW_ROWS: u64 = 12;

/// Operations that transpose a vector.
const TRANSPOSING: f64 = 8.0;

/// The same in each visit of rows that are longer than a vector has lanes, whose states and elements fill the registers:
/// softmax and standardised rows of 18 to 24 columns took twice their price without.
const TRANSPOSING_AGAIN: f64 = 6.0;

pub(super) fn candidates(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    let has_masks = Vectors::WIDEST.at_most(plain.width).has_masks();
    match has_masks {
        true => tiled(facts, plain, |number| tile(facts, number)).into_iter().collect(),
        false => vec![],
    }
}

/// The tile of a box whose elements between two of its outputs are those of the first one's slice and of its neighbours.
fn tile(facts: &Facts, number: usize) -> Option<Tile> {
    let [.., outer, inner] = &facts.loops[number][..] else { return None };
    let &OutputLoop { var, extent, .. } = outer;
    let columns = inner.extent.checked_mul(facts.problem.count)?;
    // Bytes that become wider take more than moves save: means of i8 over 6 windows a row took 1.5 times as long.
    let widens_bytes = facts.element_bytes == 1 && facts.widest_bytes > 1;
    let widens = facts.element_bytes < facts.value_bytes && facts.phases == 1 && !widens_bytes;
    let takes_position = facts.problem.takes_position;
    let is_heavy = widens || facts.most_operations() >= HEAVY_OPS;
    // Vectors along a few outputs are the emptier, the narrower their values are.
    let is_narrow = match facts.widest_bytes {
        1 => !takes_position && facts.operations <= 1,
        2 => !widens_bytes && (!takes_position || is_heavy),
        _ => false,
    };
    let (most, between) = match (facts.value_bytes, takes_position) {
        _ if is_narrow && facts.is_window() => (MOST_OF_HEAVY, MOST_BETWEEN_OF_HEAVY),
        _ if is_narrow => (MOST_COLUMNS, MOST_BETWEEN_OF_HEAVY),
        (5.., _) if facts.is_window() => (MOST_OF_LONG_WINDOWS, MOST_BETWEEN),
        (4, true) => (MOST_WITH_POSITIONS, MOST_BETWEEN),
        (..5, false) if is_heavy => (MOST_OF_HEAVY, MOST_BETWEEN_OF_HEAVY),
        _ => (MOST_COLUMNS, MOST_BETWEEN),
    };
    let slices: &IndexBox = &facts.problem.slices[number];
    let [.., across, _] = &slices.dims[..] else { return None };
    let mut inputs = facts.problem.inputs.iter().zip(&across.stride.inputs).filter(|(input, _)| input.mapped);
    let are_rows = inputs.all(|(_, &stride)| stride == columns as i64);
    let by = match facts.widest_bytes {
        5.. => LANES_OF_LONG,
        3.. => LANES,
        _ if !facts.later.is_empty() || facts.written.is_some() => LANES,
        1 if !takes_position => LANES_OF_BYTES,
        _ => LANES_OF_HALVES,
    };
    let fits = inner.extent <= between && columns <= most && extent >= by;
    (fits && are_rows).then_some(Tile { var, by, transform: Transform::Across })
}

/// The tiles of a problem without reductions whose outputs are rows of a few elements, and of which an input has a value for
/// each row, or other elements between them: `x * scale` of f32[133333,3] by [133333,1] took 177 us row by row, 37 so.
pub(in crate::schedule) fn of_elements(problem: &Problem, width: u32) -> Vec<Tile> {
    let has_masks = Vectors::WIDEST.at_most(width).has_masks();
    let widest = problem.outputs.iter().map(|output| output.dtype.bytes()).max().unwrap_or(0);
    let (most, by) = match widest {
        _ if !problem.walks.is_empty() || !has_masks => return vec![],
        8.. => (MOST_OF_LONG_ROWS, LANES_OF_LONG),
        3..8 => (MOST_OF_ROWS, LANES),
        0..3 => (MOST_OF_NARROW_ROWS, LANES),
    };
    let tile = |(slices, loops): (&IndexBox, &Vec<OutputLoop>)| {
        let ([.., outer, inner], [.., across, _]) = (&slices.dims[..], &loops[..]) else { return None };
        let of = |strides: fn(&Offsets) -> &[i64]| strides(&outer.stride).iter().zip(strides(&inner.stride));
        let is_row = |(of_rows, along): (&i64, &i64)| *of_rows == *along * inner.extent as i64;
        let are_written = of(|stride| &stride.outputs).all(|strides| *strides.1 == 1 && is_row(strides));
        let is_along = |(_, along): (&i64, &i64)| matches!(along, 0 | 1);
        let differs = |strides: (&i64, &i64)| *strides.0 != 0 && !is_row(strides);
        let are_read = of(|stride| &stride.inputs).all(is_along) && of(|stride| &stride.inputs).any(differs);
        let fits = inner.extent <= most && across.extent >= by;
        (are_written && are_read && fits).then_some(Tile { var: across.var, by, transform: Transform::Across })
    };
    problem.slices.iter().zip(&output_loops(problem)).filter_map(tile).collect()
}

/// The cost: vectors are full, and those of each input are transposed.
pub(super) fn cost(facts: &Facts, schedule: &Schedule) -> Cost {
    let machine = &facts.machine;
    let inputs = facts.mapped_inputs() as f64;
    let visits = facts.phases + facts.later.len() + usize::from(facts.written.is_some());
    let of_long = if columns(facts) > LANES { TRANSPOSING_AGAIN * visits as f64 } else { 0.0 };
    let operations = facts.operations as f64 + inputs * (TRANSPOSING + of_long);
    Cost {
        reading_ns: machine.read_ns(facts.bytes),
        computing_ns: facts.vectors(vector_bytes(schedule)) * operations / machine.vector_ops,
        ..Cost::default()
    }
}

/// The elements of a lane's outputs.
fn columns(facts: &Facts) -> u64 {
    let inner = facts.loops.iter().filter_map(|loops| loops.last()).map(|l| l.extent).max().unwrap_or(1);
    inner.saturating_mul(facts.problem.count)
}
