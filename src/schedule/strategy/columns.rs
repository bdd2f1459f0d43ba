//! Columns: outputs lie inside the innermost reduction dim, and a step walks the outputs of a tile.

use super::super::cost::{Cost, lines_ns};
use super::super::facts::{Facts, states_kept};
use super::super::machine::{Level, Machine};
use super::super::{Schedule, Transform};
use super::{LANES, column_by_column, short_slices, tile_of, vector_bytes, vector_outputs};
use crate::vectors::Vectors;

/// Bytes of accumulators, in memory, of a tile whose loops are inside the steps: parts of the first-level and of the
/// second-level cache. 16 KB gained 3 % over the better of these at most.
const TILE_BYTES: [u64; 2] = [4 << 10, 64 << 10];

/// Bytes that a tile in registers takes from each row of the matrix; longer pieces gain nothing.
const PIECE_BYTES: u64 = 512;

/// Steps taken in one visit of an accumulator.
const JAM: u64 = 4;

/// The least bytes of a row, of columns of 16-bit elements with accumulators in memory, that is asked for ahead: `max` of rows
/// of 448 took 1.00 ms that way and 1.73 without, of 384 1.24 and 0.93.
const ASKED_BYTES: u64 = 800;

/// Time in ns at the end of a group of columns that fill no vector, if it is not visited again.
const GROUP_NS: f64 = 1.0;

/// The same of elements that become wider, where a group fills a vector or two: `sum(x * y)` of bf16[1024,4,4] took 1.6 more.
const WIDENED_GROUP_NS: f64 = 1.6;

/// The same if it is visited again once, to write positions by its results: the next groups begin meanwhile.
const WRITTEN_GROUP_NS: f64 = 2.0;

/// Time in ns for each halving of the lanes of columns that fill no vector, for each value of their states but the first:
/// `max` of bf16[555,9,6] over axis 1, of three values, took 3.2 us by columns, and 1.8 by rows, which fold no lanes.
const FOLDED_NS: f64 = 0.4;

/// Time in ns for values of few columns to be spread over a row of lanes: they are stored in pieces and read across these.
const SPREADING_NS: f64 = 18.0;

/// The same of values that searches for positions compare elements of four bytes with, and of fewer: registers permute them.
const SEARCHED_SPREADING_NS: [f64; 2] = [11.0, 8.0];

/// The most pages of memory from which a tile of columns takes positions in registers: of 100 rows of 4 KB, `argmax` took
/// 0.75 times as long as with the states of whole rows in memory, of 256 rows 1.3 times.
const MOST_PAGES: u64 = 128;

/// The most rows of a matrix whose pieces are asked for ahead: of `var` of f32[20000,1000] over axis 0 they took 8.6 ms that way,
/// and 5.0 in whole rows.
const MOST_ASKED_ROWS: u64 = 512;

/// Steps that are summed in a narrower integer before the state is visited: 128 unsigned bytes fit 16 bits.
const NARROW_STEPS: u64 = 128;

/// The most steps of a problem whose steps are all unrolled.
const FEW_STEPS: u64 = 8;

pub(super) fn candidates(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    let few_steps = facts.problem.count <= FEW_STEPS;
    let whole = whole_outputs(facts);
    let outputs = |bytes: u64| bytes / facts.state_bytes / whole * whole;
    let most = Schedule::MAX_STATE_BYTES / states_kept(&facts.tree, 1) / facts.lanes_bytes();
    let sizes = match (few_steps, facts.is_light) {
        (true, true) if facts.phases == 1 => vec![in_registers(facts, plain)],
        (true, _) => vec![vector_outputs(plain.width)],
        (false, _) => {
            let half = reads_near(facts).then(|| (in_registers(facts, plain) / 2 / whole * whole).max(whole));
            // Whole states that stay in registers, and sums that do and are narrower.
            let states =
                (facts.step_bytes < facts.value_bytes).then(|| states_in_registers(facts, plain, facts.state_bytes));
            let tiles = [in_registers(facts, plain)].into_iter().chain(states).chain(half);
            tiles.chain(TILE_BYTES.map(outputs)).collect()
        }
    };
    let whole_rows: u64 = facts.inside(0).iter().map(|l| l.extent).product();
    let mut all: Vec<Schedule> = vec![];
    for outputs in sizes.into_iter().map(|outputs| outputs.min(most)) {
        let tiles = (0..facts.loops.len()).filter_map(|number| match facts.inside(number) {
            [] => short_slices::tile(facts, plain.width, number),
            inside => tile_of(inside, outputs, whole, Transform::Steps),
        });
        let tiled = Schedule { tiles: tiles.collect(), ..plain.clone() };
        let line = facts.in_line().min(LANES);
        let jams: &[u64] =
            if plain.width > Vectors::BASE.bits && facts.crosses() { &[line, JAM, 1] } else { &[JAM, 1] };
        let several = facts.is_light && facts.tree.lanes == 1 && outputs > in_registers(facts, plain);
        // Pieces of one row at a time were slower everywhere than tiles in registers or several rows.
        let jams = if outputs < whole_rows { &jams[..jams.len() - 1] } else { jams };
        for jam in if several { jams } else { &[1] } {
            let schedule = Schedule { jam: *jam, ..tiled.clone() };
            if !all.contains(&schedule) {
                all.push(schedule);
            }
        }
    }
    all
}

/// The number of outputs whose states stay in registers during a block, in whole vectors.
fn in_registers(facts: &Facts, schedule: &Schedule) -> u64 {
    states_in_registers(facts, schedule, facts.state_bytes / facts.value_bytes * facts.step_bytes)
}

/// The same for states of `state_bytes` bytes.
fn states_in_registers(facts: &Facts, schedule: &Schedule, state_bytes: u64) -> u64 {
    let bytes = facts.machine.state_bytes(schedule.width);
    let whole = whole_outputs(facts);
    (bytes / state_bytes).min(PIECE_BYTES / facts.element_bytes).max(whole) / whole * whole
}

/// Returns true if the states of a tile stay in registers during a block.
pub(super) fn are_in_registers(facts: &Facts, schedule: &Schedule) -> bool {
    tile_outputs(facts, schedule) <= in_registers(facts, schedule)
}

/// Returns true if columns in memory are read sooner if they are asked for ahead: where operations, or those with visits of
/// accumulators, take a part of the time. Of 8-byte elements `argmax` took 1.1 times as long that way, and rows whose outputs
/// go through the caches 1.1 to 1.7 times: those are read before they are written.
pub(super) fn gain_by_asking(facts: &Facts, schedule: &Schedule, visits_again: bool) -> bool {
    let machine = &facts.machine;
    let read_ns = machine.read_ns(facts.bytes);
    let operations = facts.vectors(vector_bytes(schedule)) * facts.most_operations() as f64;
    let works = operations / machine.vector_ops > machine.asking_share * read_ns;
    let Cost { computing_ns, visiting_ns, .. } = cost(facts, schedule);
    let is_wide = facts.element_bytes * tile_outputs(facts, schedule) >= ASKED_BYTES;
    let widens = facts.element_bytes == 2 && is_wide && visiting_ns > 0.0;
    let visits = widens && computing_ns + visiting_ns > machine.visiting_share * read_ns;
    let gains = works || visits || facts.problem.takes_position;
    let writes = facts.written.is_some() && !schedule.nontemporal;
    gains && facts.element_bytes < 8 && !writes || visits_again && are_in_registers(facts, schedule)
}

/// Returns true if columns are asked for ahead though the last cache is thought to hold them: of data that fills most of it,
/// much is in memory where other programs use it too, and the pieces of rows that a tile visits several times are no stream
/// that processors follow. `argmax` of f32[1193,16,196] took 1.6 to 2.4 ms, asked for ahead 0.38; of 7 MB 178 and 170 us. Pieces
/// of one line took 1.1 times as long.
pub(super) fn gain_by_asking_last_cache(facts: &Facts, schedule: &Schedule) -> bool {
    let [_, _, last] = facts.machine.cache_bytes;
    2 * facts.bytes > last && are_pieces_asked(facts, schedule)
}

/// Returns true if the second of two phases gains by tiles so narrow that the first-level cache has their blocks still, as
/// searches for positions do: `argmax` of i16[64,1000] took 3.6 us by tiles of 256 columns, and 2.1 of 128. Data that fill
/// most of the last cache are read sooner in longer pieces: of f64[100,64,256] 350 us and 388.
fn reads_near(facts: &Facts) -> bool {
    let [_, _, last] = facts.machine.cache_bytes;
    facts.problem.takes_position && facts.phases == 2 && 2 * facts.bytes <= last
}

/// Outputs of a tile that are whole vectors of f32 and whole lines of the input, so that no load of a vector crosses
/// two lines.
fn whole_outputs(facts: &Facts) -> u64 {
    (Machine::LINE_BYTES / facts.element_bytes).max(LANES)
}

pub(super) fn cost(facts: &Facts, schedule: &Schedule) -> Cost {
    let machine = &facts.machine;
    let level = machine.level(facts.bytes);
    let slices = facts.slices as f64;
    let (tile, whole) = (tile_outputs(facts, schedule), facts.inside(0).iter().map(|l| l.extent).product::<u64>());
    let in_registers = are_in_registers(facts, schedule);
    // Each accumulator is initialised, visited once in so many steps, and read at the end.
    // Sums that are narrower than their states are added to those after each block of steps: read, widened and written.
    let are_near = tile.saturating_mul(facts.state_bytes) <= machine.state_bytes(schedule.width);
    let are_states_near = facts.step_bytes == facts.value_bytes || are_near;
    let visits = match in_registers && (!facts.problem.takes_position || positions_gain(facts, whole)) {
        true if are_states_near => 0.0,
        true => 4.0 * slices * (facts.problem.count.div_ceil(NARROW_STEPS) + 1) as f64,
        false => 2.0 * slices * (facts.problem.count.div_ceil(schedule.jam) + 1) as f64,
    };
    let visited = visits * facts.state_bytes as f64 * facts.phases as f64;
    let at_once = tile.saturating_mul(schedule.jam.saturating_mul(facts.element_bytes) + facts.state_bytes);
    let visiting = if at_once > machine.cache_bytes[0] { machine.visiting_far } else { 1.0 };
    let far = if tile > machine.near_pages { machine.lines_far } else { 1.0 };
    let [piece_bytes, row_bytes] = [tile, whole].map(|outputs| outputs * facts.element_bytes);
    // A loop over outputs begins at memory that does not follow the memory before.
    let is_apart = piece_bytes < row_bytes || schedule.jam > 1 && row_bytes < Machine::PAGE_BYTES;
    let begins_ns = match is_apart && !in_registers && level < Level::Memory {
        true => facts.input_bytes as f64 / (piece_bytes * schedule.jam) as f64 * machine.begin_ns(facts.bytes),
        false => 0.0,
    };
    // Few columns fill a vector or two, and each group of them ends by itself.
    let lanes = (vector_bytes(schedule) / facts.value_bytes as f64).max(1.0);
    let of_vector = lanes / (whole * facts.tree.lanes_present()) as f64;
    let empty = of_vector.max(1.0);
    let ends_ns = end_of_group_ns(facts, whole, of_vector);
    // Results of few columns leave lanes of a vector empty.
    let vectors = whole as f64 / lanes;
    let finishing_ns = (vectors.ceil() - vectors) * facts.finishing as f64 / machine.vector_ops;
    let block = machine.level((facts.slice_bytes() / facts.tree.blocks()).saturating_mul(tile));
    let read_again = |level: Level| facts.bytes as f64 / machine.read_rate[level as usize];
    let again_ns = if reads_near(facts) { read_again(block) - read_again(Level::L1) } else { 0.0 };
    let slowdown = slowdown(facts, schedule, level, [piece_bytes, row_bytes]);
    // Nothing is read from memory while a later phase reads a block again.
    let is_alone = facts.phases > 1 && level == Level::Memory && !in_registers;
    let alone = if is_alone { (facts.phases - 1) as f64 / facts.phases as f64 } else { 0.0 };
    let computing_ns =
        empty * facts.step_vectors(vector_bytes(schedule)) * facts.operations as f64 / machine.vector_ops;
    let visiting_ns = visited / (machine.state_rate / visiting);
    let alone_ns = alone * (computing_ns.hypot(visiting_ns) + facts.phases as f64 * read_again(block));
    Cost {
        reading_ns: machine.read_ns(facts.bytes) * slowdown
            + begins_ns
            + again_ns
            + alone_ns
            + far * lines_ns(facts, level, schedule.jam),
        computing_ns: (1.0 - alone) * computing_ns,
        ending_ns: slices / whole as f64 * (ends_ns + finishing_ns) + column_by_column::rows_ns(facts, schedule),
        visiting_ns: (1.0 - alone) * visiting_ns,
        ..Cost::default()
    }
}

/// The time in ns at the end of a group of `whole` columns, of whose lanes a vector holds the share `of_vector`: for the
/// results that its next visit waits for, and for values that are spread over its rows. Later groups hide less of it, the
/// more vectors there are.
fn end_of_group_ns(facts: &Facts, whole: u64, of_vector: f64) -> f64 {
    let wait_ns = facts.machine.wait_ns;
    let takes_position = facts.problem.takes_position;
    let waits = facts.waits || !facts.later.is_empty() || takes_position;
    let spreads = whole < LANES && !LANES.is_multiple_of(whole);
    if !waits && facts.written.is_none() {
        let lanes = facts.tree.lanes_present();
        let halvings = if of_vector * lanes as f64 > 1.0 { f64::from(lanes.max(1).ilog2()) } else { 0.0 };
        return (facts.values() - 1.0) * halvings * FOLDED_NS
            + match of_vector {
                share if share > 1.0 => GROUP_NS,
                share if share >= 0.5 && facts.element_bytes < facts.value_bytes => WIDENED_GROUP_NS,
                _ => 0.0,
            };
    }
    match of_vector {
        share if share >= 0.5 && waits => wait_ns / 2.0,
        share if share >= 0.25 && !(takes_position && spreads) => match (waits, spreads) {
            (false, _) => WRITTEN_GROUP_NS,
            (true, false) => wait_ns / 2.0,
            (true, true) => wait_ns,
        },
        _ if spreads && takes_position && facts.value_bytes <= 4 => {
            SEARCHED_SPREADING_NS[usize::from(facts.value_bytes < 4)]
        }
        _ if spreads => SPREADING_NS,
        _ => 0.0,
    }
}

/// Returns true if positions of rows of so many outputs gain by registers as other states do: those of bytes pass through
/// memory, and those of many pages wait for these.
fn positions_gain(facts: &Facts, outputs: u64) -> bool {
    let row_bytes = outputs.saturating_mul(facts.element_bytes).min(Machine::PAGE_BYTES);
    facts.element_bytes > 1 && facts.problem.count.saturating_mul(row_bytes) <= MOST_PAGES * Machine::PAGE_BYTES
}

/// The slowdown of reading a matrix by pieces of `piece_bytes` bytes, or by several rows, instead of in order, and of asking
/// ahead.
fn slowdown(facts: &Facts, schedule: &Schedule, level: Level, [piece_bytes, row_bytes]: [u64; 2]) -> f64 {
    let machine = &facts.machine;
    let is_piece = piece_bytes < row_bytes;
    let in_registers = are_in_registers(facts, schedule);
    // A piece that begins inside a line reads it again after the piece before.
    let lines = match is_piece && row_bytes % Machine::LINE_BYTES > 0 {
        true => 1.0 + Machine::LINE_BYTES as f64 / piece_bytes as f64,
        false => 1.0,
    };
    let asks = schedule.prefetch > 0;
    let visits_pieces_again = level == Level::Memory && is_piece && in_registers && facts.phases > 1;
    if asks && visits_pieces_again && are_pieces_asked(facts, schedule) {
        return lines * machine.reading_pieces_asked;
    }
    let [_, _, last] = machine.cache_bytes;
    let written = facts.written.as_ref().filter(|_| !schedule.nontemporal).map_or(0, |written| written.bytes);
    let cached = facts.bytes.saturating_add(written);
    let scattered = match (level, is_piece, schedule.jam > 1) {
        (Level::L3, true, _) if in_registers && !asks && cached > last => machine.reading_pieces_crowded,
        (Level::L3, true, _) if in_registers => machine.reading_pieces[level as usize],
        (Level::L1 | Level::L2 | Level::L3, ..) | (_, false, false) => 1.0,
        (Level::Memory, _, true) => {
            let pages = Machine::PAGE_BYTES as f64 / piece_bytes as f64;
            (1.0 + machine.reading_rows * pages).min(machine.reading_rows_most)
        }
        (Level::Memory, true, false) => machine.reading_pieces[level as usize],
    };
    let gains = asks && !visits_pieces_again;
    lines * scattered * if gains { machine.reading_columns_asked[level as usize] } else { 1.0 }
}

/// Returns true for tiles in registers of several lines, of elements of at least four bytes, whose blocks are visited again, and
/// whose rows are few and do not begin whole pages apart: those would share the sets of the caches.
fn are_pieces_asked(facts: &Facts, schedule: &Schedule) -> bool {
    let is_long = facts.element_bytes * tile_outputs(facts, schedule) > Machine::LINE_BYTES;
    let row_bytes = facts.inside(0).iter().map(|l| l.extent).product::<u64>() * facts.element_bytes;
    let are_apart = facts.problem.count <= MOST_ASKED_ROWS && !row_bytes.is_multiple_of(Machine::PAGE_BYTES);
    facts.element_bytes >= 4 && is_long && are_apart && facts.phases > 1 && are_in_registers(facts, schedule)
}

/// The number of outputs that lie side by side, where all of them are in one tile whose states are in registers and fill whole
/// lines.
pub(super) fn whole(facts: &Facts, schedule: &Schedule) -> Option<u64> {
    let outputs = tile_outputs(facts, schedule);
    let whole: u64 = facts.inside(0).iter().map(|l| l.extent).product();
    let bytes = outputs * facts.tree.lanes * facts.element_bytes;
    let fits = outputs <= in_registers(facts, schedule) && bytes.is_multiple_of(Machine::LINE_BYTES);
    (outputs == whole && fits).then_some(outputs)
}

/// The share of the lanes of vectors, of so many each, that the outputs of tiles fill in visits after the first, each with
/// the lanes of its tree.
pub(super) fn filled(facts: &Facts, schedule: &Schedule, lanes: u64) -> f64 {
    let (tile, whole) = (tile_outputs(facts, schedule), facts.inside(0).iter().map(|l| l.extent).product::<u64>());
    let joined = facts.tree.lanes_present().max(1);
    let vectors = |outputs: u64| outputs.saturating_mul(joined).div_ceil(lanes.max(1));
    let all = (whole / tile.max(1)).saturating_mul(vectors(tile)) + vectors(whole % tile.max(1));
    whole.saturating_mul(joined) as f64 / all.saturating_mul(lanes.max(1)).max(1) as f64
}

/// The number of outputs in a tile, of the first box inside the innermost reduction dim.
fn tile_outputs(facts: &Facts, schedule: &Schedule) -> u64 {
    let mut outputs = 1;
    for l in facts.inside(0).iter().rev() {
        match schedule.tile_of(l.var) {
            Some(tile) => return outputs * tile.by.min(l.extent),
            None => outputs *= l.extent,
        }
    }
    outputs
}
