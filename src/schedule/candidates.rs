//! The schedules that may be worth it.

use super::facts::{Facts, LINE_BYTES, OutputLoop, Runs, states_kept};
use super::{Depth, Schedule, Tile};
use crate::vectors::Vectors;

/// Bytes of accumulators of a tile whose loops are inside the steps, beside what registers hold: parts of the first-level
/// and of the second-level cache. 16 KB gained 3 % over the better of these at most.
const TILE_BYTES: [u64; 2] = [4 << 10, 64 << 10];

/// Bytes of the elements that a tile in registers takes from each row: longer pieces gain nothing.
const PIECE_BYTES: u64 = 512;

/// Steps taken in one visit of an accumulator.
const ROWS: u64 = 4;

/// Blocks taken at once where a block has few lanes.
const BLOCKS: u64 = 4;

/// The most bytes of lanes of which several blocks are taken at once: more fill the registers.
const FEW_LANES_BYTES: u64 = 128;

/// Blocks, or outputs, taken together where several phases wait for one another.
const INTERLEAVED: u64 = 2;

/// Bytes that memory is asked for ahead where a block is read twice.
const AHEAD_BYTES: u64 = 8 << 10;

/// Bytes that the runs of outputs that follow one another have together.
const RUN_BYTES: u64 = 256 << 10;

/// Bytes of a run that are too few to follow those of other outputs: a page of them makes too many loops.
const SHORT_RUN_BYTES: u64 = 512;

/// Steps of a problem up to which they are all written out.
const FEW_STEPS: u64 = 8;

/// Elements of a row up to which vectors of 512 bits take a lane from each of as many rows, where an element costs
/// little: rows of 16 ran at 55 GB/s, one by one at 27; of 256 bits at 19 and 43.
const SHORT_ROW: u64 = 16;

/// Steps of a row up to which the fold of its lanes is worth sharing: sums of f32 in rows of 32 ran at 110 GB/s instead of
/// 51, in rows of 64 at 111 instead of 85, in rows of 256 as before.
const SHARED_STEPS: u64 = 4;

/// The least bytes of a value of a state that rows share the folds of.
const LEAST_SHARED: u64 = 4;

/// The most lanes a vector has: tiles are whole vectors.
const LANES: u64 = 16;

/// Outputs in a vector of f32 of 128 bits.
const LEAST_OUTPUTS: u64 = 4;

/// Every schedule that may be the fastest on vectors of `width` bits, at least one.
pub(super) fn candidates(facts: &Facts, width: u32) -> Vec<Schedule> {
    let plain = Schedule { width, form: facts.form, ..Schedule::default() };
    match facts.is_inner() {
        true => of_rows(facts, &plain),
        false => of_columns(facts, &plain),
    }
}

/// Where slices are rows, and where they are runs of memory far apart.
fn of_rows(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    let mut all = vec![plain.clone()];
    if facts.phases == 1 && facts.lanes_bytes() <= FEW_LANES_BYTES && facts.tree.blocks() >= 2 * BLOCKS {
        all.push(Schedule { blocks: BLOCKS, ..plain.clone() });
    }
    if plain.width > Vectors::BASE.bits && facts.waits {
        all.push(Schedule { interleave: INTERLEAVED, ..plain.clone() });
    }
    if plain.width > Vectors::BASE.bits && facts.phases > 1 {
        all.push(Schedule { interleave: INTERLEAVED, prefetch: AHEAD_BYTES, ..plain.clone() });
    }
    let tiled = |tile: &dyn Fn(usize) -> Option<Tile>| {
        let tiles: Vec<Tile> = (0..facts.loops.len()).filter_map(tile).collect();
        (!tiles.is_empty()).then(|| Schedule { tiles, ..plain.clone() })
    };
    all.extend(tiled(&|number| runs(facts, number)));
    all.extend(tiled(&|number| short_rows(facts, plain.width, number)));
    let is_wide = plain.width > Vectors::BASE.bits;
    if is_wide && facts.crosses() && facts.is_light && facts.phases == 1 && facts.problem.count > SHORT_ROW {
        all.extend(tiled(&|number| lines(facts, number)));
    }
    all.extend(tiled(&|number| shared_folds(facts, plain.width, number)));
    all
}

/// Where outputs lie inside the innermost reduction dim.
fn of_columns(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    let few_steps = facts.problem.count <= FEW_STEPS;
    let most = Schedule::MAX_STATE_BYTES / states_kept(&facts.tree, 1);
    let whole = whole_outputs(facts);
    let outputs = |bytes: u64| bytes.min(most) / facts.state_bytes / whole * whole;
    let sizes = match (few_steps, facts.is_light) {
        (true, true) if facts.phases == 1 => vec![in_registers(facts, plain)],
        (true, _) => vec![vector_outputs(plain.width)],
        (false, _) => std::iter::once(in_registers(facts, plain)).chain(TILE_BYTES.map(outputs)).collect(),
    };
    let whole_rows: u64 = facts.inside(0).iter().map(|l| l.extent).product();
    let mut all: Vec<Schedule> = vec![];
    for outputs in sizes {
        let tiles = (0..facts.loops.len()).filter_map(|number| match facts.inside(number) {
            [] => short_rows(facts, plain.width, number),
            inside => tile_of(inside, outputs, whole, Depth::Steps),
        });
        let tiled = Schedule { tiles: tiles.collect(), ..plain.clone() };
        let line = facts.in_line().min(LANES);
        let rows: &[u64] =
            if plain.width > Vectors::BASE.bits && facts.crosses() { &[line, ROWS, 1] } else { &[ROWS, 1] };
        let several = facts.is_light && facts.tree.lanes == 1 && outputs > in_registers(facts, plain);
        // One row at a time, pieces of rows lost to those in registers or to several rows everywhere.
        let rows = if outputs < whole_rows { &rows[..rows.len() - 1] } else { rows };
        for rows in if several { rows } else { &[1] } {
            let schedule = Schedule { rows: *rows, ..tiled.clone() };
            if !all.contains(&schedule) {
                all.push(schedule);
            }
        }
    }
    all
}

/// How many outputs have their states in registers while a block's steps go by, in whole vectors.
pub(super) fn in_registers(facts: &Facts, schedule: &Schedule) -> u64 {
    let bytes = if Vectors::WIDEST.at_most(schedule.width).has_masks() { 768 } else { 256 };
    let whole = whole_outputs(facts);
    (bytes / facts.state_bytes).min(PIECE_BYTES / facts.element_bytes).max(whole) / whole * whole
}

/// Outputs of a tile that is written out where an element takes many operations: one vector of f32, so that the code
/// stays short.
fn vector_outputs(width: u32) -> u64 {
    u64::from(width / 32).clamp(LEAST_OUTPUTS, LANES)
}

/// Outputs of a tile that are whole vectors of f32, and whole lines of the input: no load of a vector crosses two.
fn whole_outputs(facts: &Facts) -> u64 {
    (LINE_BYTES / facts.element_bytes).max(LANES)
}

/// The tile for rows of a few elements, whose lanes would stay empty: lanes are taken from as many rows
/// instead.
fn short_rows(facts: &Facts, width: u32, number: usize) -> Option<Tile> {
    let vector = vector_outputs(width);
    let by = match facts.problem.count {
        2..=4 if facts.is_light => LANES,
        2..=8 => vector,
        9..=SHORT_ROW if facts.is_light && vector == LANES => vector,
        _ => return None,
    };
    let &OutputLoop { var, extent, .. } = facts.loops[number].last()?;
    // Bytes go apart in whole vectors where their distance is a power of two.
    let all = u64::from(width / 8);
    let is_bytes = facts.state_bytes == 1 && facts.problem.count.is_power_of_two() && width > Vectors::BASE.bits;
    let by = if is_bytes && extent >= all { all } else { by };
    (extent >= by).then_some(Tile { var, by, depth: Depth::Steps })
}

/// The tile for outputs whose elements share lines of an input that lies across the others: as many as a vector holds, from
/// each of which a step takes lines of the others.
fn lines(facts: &Facts, number: usize) -> Option<Tile> {
    let &OutputLoop { var, extent, .. } = facts.loops[number].last()?;
    let kept = facts.lanes_bytes().saturating_mul(states_kept(&facts.tree, 1)).saturating_mul(LANES);
    let fits = extent >= LANES && kept <= Schedule::MAX_STATE_BYTES && !facts.problem.takes_position;
    fits.then_some(Tile { var, by: LANES, depth: Depth::Steps })
}

/// The tile of rows that share the folds of their lanes: as many as a vector has lanes.
fn shared_folds(facts: &Facts, width: u32, number: usize) -> Option<Tile> {
    let by = u64::from(width / 8) / facts.value_bytes;
    let has_form = width > Vectors::BASE.bits && facts.value_bytes >= LEAST_SHARED && facts.phases == 1;
    let is_short = facts.tree.is_one_block() && facts.problem.count <= SHARED_STEPS * facts.tree.lanes;
    let &OutputLoop { var, extent, .. } = facts.loops[number].last()?;
    let fits = has_form && is_short && facts.tree.lanes_present() >= by && extent >= by;
    fits.then_some(Tile { var, by, depth: Depth::Folds })
}

/// The tile for slices that are runs of memory far apart: those of neighbouring outputs follow one another.
fn runs(facts: &Facts, number: usize) -> Option<Tile> {
    let Runs { bytes, loops, depth } = facts.runs(number)?;
    let kept = facts.lanes_bytes().saturating_mul(states_kept(&facts.tree, 1));
    let outputs = (RUN_BYTES / bytes.max(1)).min(Schedule::MAX_STATE_BYTES / kept.max(1));
    (bytes >= SHORT_RUN_BYTES && outputs > 1).then(|| tile_of(loops, outputs, 1, depth))?
}

/// The tile of at most `most` outputs (at least one) of these loops, a multiple of `whole` if it may be.
fn tile_of(inside: &[OutputLoop], most: u64, whole: u64, depth: Depth) -> Option<Tile> {
    let mut outputs = 1;
    let mut tile = None;
    for &OutputLoop { var, extent, .. } in inside.iter().rev() {
        if outputs * extent <= most {
            outputs *= extent;
            tile = Some(Tile { var, by: extent, depth });
            continue;
        }
        // Even shares, so that no narrow tile is left over.
        let fit = (most / outputs).max(1);
        let share = extent.div_ceil(extent.div_ceil(fit));
        let even = share.next_multiple_of(whole).min(extent);
        let by = if even <= fit { even } else { share };
        return match tile {
            Some(tile) if by <= 1 => Some(tile),
            _ => Some(Tile { var, by, depth }),
        };
    }
    tile
}
