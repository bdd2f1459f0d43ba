//! What a schedule is expected to take.

use super::candidates::in_registers;
use super::facts::{Facts, LINE_BYTES, Runs};
use super::machine::{Level, Machine};
use super::{Depth, Schedule, Tile};
use crate::vectors::Vectors;
use std::fmt;

/// The time of a call on one thread in ns, by what takes it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Reading the elements, with what the beginnings of runs of memory cost.
    pub reading_ns: f64,
    /// Operations on elements, or waiting for the results of those before.
    pub computing_ns: f64,
    /// Visiting accumulators that are not in registers.
    pub visiting_ns: f64,
    /// Ending slices: folding lanes, finishing, storing, beginning loops; and blocks whose states lie beside those of other
    /// outputs.
    pub ending_ns: f64,
    /// Calling.
    pub calling_ns: f64,
}

impl Cost {
    /// The whole: what is read, what is done with it and what is stored overlap, but not wholly.
    pub fn total_ns(&self) -> f64 {
        self.reading_ns.hypot(self.computing_ns).hypot(self.visiting_ns) + self.ending_ns + self.calling_ns
    }

    /// The parts by name.
    pub fn terms(&self) -> [(&'static str, f64); 5] {
        [
            ("reading", self.reading_ns),
            ("computing", self.computing_ns),
            ("visiting accumulators", self.visiting_ns),
            ("ending slices", self.ending_ns),
            ("calling", self.calling_ns),
        ]
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Time(self.total_ns()))?;
        let terms = self.terms().map(|(name, ns)| format!("{name} {}", Time(ns)));
        write!(f, " ({})", terms.join(", "))
    }
}

/// What a call is expected to take.
pub(super) fn cost(facts: &Facts, schedule: &Schedule, machine: &Machine) -> Cost {
    let tile = facts.loops.iter().flatten().find_map(|l| schedule.tile_of(l.var));
    let mut cost = match (facts.is_inner(), tile) {
        (true, Some(tile)) if tile.depth == Depth::Steps && facts.crosses() => turned(facts, schedule, machine),
        (true, Some(tile)) if tile.depth == Depth::Steps => short_rows(facts, schedule, machine),
        (true, tile) => rows(facts, schedule, tile, machine),
        (false, _) => columns(facts, schedule, machine),
    };
    cost.calling_ns = if schedule.width > Vectors::BASE.bits { machine.tile_ns } else { 0.0 };
    cost
}

/// Slices that are rows, or runs of memory far apart.
fn rows(facts: &Facts, schedule: &Schedule, tile: Option<Tile>, machine: &Machine) -> Cost {
    let level = machine.level(facts.bytes);
    let (tree, slices) = (&facts.tree, facts.slices as f64);
    let steps = slices * facts.problem.count.div_ceil(tree.lanes) as f64;
    let vectors = (facts.tree.lanes_present() as f64 * facts.value_bytes as f64 / vector_bytes(schedule)).ceil();
    let (shares, tile) = match tile.filter(|tile| tile.depth == Depth::Folds) {
        None => (None, tile),
        shares => (shares, None),
    };
    let at_once = shares.map_or(schedule.blocks * schedule.interleave, |tile| tile.by);
    let step_ns =
        (vectors * facts.operations as f64 / machine.vector_ops).max(facts.chain * machine.latency_ns / at_once as f64);
    // Prefetchers follow a few short runs from output to output.
    let are_followed = |runs: &Runs| runs.bytes < PAGE_BYTES && facts.row_bytes() / runs.bytes <= STREAMS;
    let runs = facts.runs(0).filter(|runs| !are_followed(runs));
    let run_ns = runs.as_ref().map_or(0.0, |runs| {
        let following = tile.map_or(1.0, |tile| tile.by.min(facts.slices) as f64);
        facts.input_bytes as f64 / runs.bytes as f64 * machine.begin_ns(facts.bytes) / following
    });
    // What is asked for beyond a short run is not what follows.
    let astray = tile.is_none() && runs.is_some_and(|runs| runs.bytes < schedule.prefetch);
    let (idle, asking) = looking_again(facts, schedule, level, astray);
    let pushed = tile.map_or(0.0, |tile| pushes(tile) * slices * tree.blocks() as f64 * facts.merged_bytes() as f64);
    // Blocks that are interleaved end together. From memory, what is read takes longer than their ends.
    let waiting = match facts.waits && level < Level::Memory {
        true => slices * tree.blocks() as f64 / schedule.interleave as f64,
        false => 0.0,
    };
    let (waited_ns, fold_ns) = end_of_slice(facts, shares, machine);
    // Nothing is read from memory while rows fold together: `sum` over axis 1 of `nChw16c` took 1.1 times as long.
    let idle = if shares.is_some() && level == Level::Memory { 1.08 * idle } else { idle };
    Cost {
        reading_ns: machine.read_ns(facts.bytes) * idle + run_ns + lines_ns(facts, level, 1, machine),
        computing_ns: (steps * step_ns + slices * fold_ns + waiting * machine.wait_ns) * asking,
        ending_ns: slices * waited_ns + pushed / machine.state_rate,
        ..Cost::default()
    }
}

/// Time in ns that the end of a slice is waited for, and that of the fold of its lanes where this overlaps with the rows after.
fn end_of_slice(facts: &Facts, shares: Option<Tile>, machine: &Machine) -> (f64, f64) {
    let values = (facts.state_bytes / facts.value_bytes) as f64;
    let halvings = f64::from(facts.tree.lanes_present().max(1).ilog2());
    match (shares, facts.waits) {
        // Two moves of lanes for each value, beside what takes little.
        (Some(_), _) => (2.0 * values / machine.vector_ops, 0.0),
        (None, true) => ((halvings + 2.0) * facts.phases as f64 * machine.latency_ns, 0.0),
        // Two moves and a combination for each halving.
        (None, false) => (0.0, 3.0 * halvings * values / machine.vector_ops),
    }
}

/// How often the state of a block is written or read beyond what it is where outputs come one after the other: it has a place
/// among those of the tile before it is pushed, or a stack of its own that left the registers and the nearest lines.
fn pushes(tile: Tile) -> f64 {
    if tile.depth == Depth::Blocks { 5.0 } else { 2.0 }
}

/// How much longer reading takes where elements are looked at again, and computing where it asks for memory ahead.
///
/// While elements are looked at again nothing is read, unless it was asked for. Where all are at hand, asking costs a little;
/// from memory, both it and reading at two places are in the prefetchers' way.
/// What is asked for astray has to be read all the same.
fn looking_again(facts: &Facts, schedule: &Schedule, level: Level, astray: bool) -> (f64, f64) {
    match (level, schedule.prefetch > 0, schedule.interleave > 1) {
        (Level::L3, _, true) if facts.phases == 1 => (1.2, 1.0),
        (Level::Memory, _, true) if facts.phases == 1 => (1.3, 1.0),
        _ if facts.phases == 1 => (1.0, 1.0),
        (Level::L1, asks, _) => (1.0, if asks { 1.03 } else { 1.0 }),
        (Level::L2 | Level::L3, true, _) => (if astray { 1.7 } else { 1.0 }, 1.0),
        (Level::L2 | Level::L3, false, false) => (1.3, 1.0),
        (Level::L2 | Level::L3, false, true) => (1.5, 1.0),
        (Level::Memory, false, false) => (1.0, 1.0),
        (Level::Memory, true, _) => (1.5, 1.0),
        (Level::Memory, false, true) => (1.6, 1.0),
    }
}

/// The time to read the lines of an input that lies across the others, of each of which so many elements are taken at once.
fn lines_ns(facts: &Facts, level: Level, taken: u64, machine: &Machine) -> f64 {
    let taken = taken.clamp(1, facts.in_line()) as f64;
    if facts.crosses() { facts.elements() / taken * machine.line_ns[level as usize] } else { 0.0 }
}

/// Rows of several outputs at once, one in each lane, whose elements share lines of an input that lies across the others.
fn turned(facts: &Facts, schedule: &Schedule, machine: &Machine) -> Cost {
    let visited = 2.0 * facts.elements() * facts.state_bytes as f64;
    Cost {
        reading_ns: machine.read_ns(facts.bytes)
            + lines_ns(facts, machine.level(facts.bytes), facts.in_line(), machine),
        // Bringing the elements of a vector together is some four operations more.
        computing_ns: facts.vectors(vector_bytes(schedule)) * (facts.operations as f64 + 4.0) / machine.vector_ops,
        visiting_ns: visited / machine.state_rate,
        ..Cost::default()
    }
}

/// Rows of a few elements, several in a vector.
fn short_rows(facts: &Facts, schedule: &Schedule, machine: &Machine) -> Cost {
    let vectors = facts.vectors(vector_bytes(schedule));
    let moves = f64::from(facts.problem.count.next_power_of_two().ilog2());
    Cost {
        reading_ns: machine.read_ns(facts.bytes),
        // Bringing the elements of a vector together takes an operation for each halving of their distance.
        computing_ns: vectors * (facts.operations as f64 + moves) / machine.vector_ops,
        ..Cost::default()
    }
}

/// Outputs inside the innermost reduction dim.
fn columns(facts: &Facts, schedule: &Schedule, machine: &Machine) -> Cost {
    let level = machine.level(facts.bytes);
    let slices = facts.slices as f64;
    let (tile, whole) = (tile_outputs(facts, schedule), facts.inside(0).iter().map(|l| l.extent).product::<u64>());
    let in_registers = tile <= in_registers(facts, schedule);
    // Each accumulator is made, visited once in so many steps, and read at the end.
    let visits = match in_registers && !facts.problem.takes_position {
        true => 0.0,
        false => 2.0 * slices * (facts.problem.count.div_ceil(schedule.rows) + 1) as f64,
    };
    let visited = visits * facts.state_bytes as f64 * facts.phases as f64;
    let at_once = tile.saturating_mul(schedule.rows.saturating_mul(facts.element_bytes) + facts.state_bytes);
    let rate = machine.state_rate / if at_once > machine.cache_bytes[0] { 3.0 } else { 1.0 };
    let far = if tile > machine.near_pages { 2.0 } else { 1.0 };
    let [piece_bytes, row_bytes] = [tile, whole].map(|outputs| outputs * facts.element_bytes);
    // A loop over outputs begins at memory that does not follow what came before.
    let is_apart = piece_bytes < row_bytes || schedule.rows > 1 && row_bytes < PAGE_BYTES;
    let begins_ns = match is_apart && !in_registers && level < Level::Memory {
        true => facts.input_bytes as f64 / (piece_bytes * schedule.rows) as f64 * machine.begin_ns(facts.bytes),
        false => 0.0,
    };
    Cost {
        reading_ns: machine.read_ns(facts.bytes)
            * scattered(level, schedule.rows > 1, in_registers, [piece_bytes, row_bytes])
            + begins_ns
            + far * lines_ns(facts, level, schedule.rows, machine),
        computing_ns: facts.vectors(vector_bytes(schedule)) * facts.operations as f64 / machine.vector_ops,
        visiting_ns: visited / rate,
        ..Cost::default()
    }
}

/// How much longer than a read in order it takes to read a matrix by pieces of so many bytes of rows of so many.
fn scattered(level: Level, several_rows: bool, in_registers: bool, [piece_bytes, row_bytes]: [u64; 2]) -> f64 {
    let is_piece = piece_bytes < row_bytes;
    // A piece that begins inside of a line reads it as the one before did.
    let lines = if is_piece && row_bytes % LINE_BYTES > 0 { 1.0 + LINE_BYTES as f64 / piece_bytes as f64 } else { 1.0 };
    let scattered = match (level, is_piece, several_rows) {
        (Level::L3, true, _) if in_registers => 1.12,
        (Level::L1 | Level::L2 | Level::L3, ..) | (_, false, false) => 1.0,
        // Prefetchers follow one of several rows in a page.
        (Level::Memory, _, true) => (1.0 + 0.5 * PAGE_BYTES as f64 / piece_bytes as f64).min(2.0),
        (Level::Memory, true, false) => 2.5,
    };
    lines * scattered
}

/// Bytes of a page of memory.
const PAGE_BYTES: u64 = 4 << 10;

/// How many streams of memory prefetchers follow.
const STREAMS: u64 = 16;

/// Bytes of a vector; scalar code computes in those of 4 bytes.
fn vector_bytes(schedule: &Schedule) -> f64 {
    f64::from(schedule.width.max(32)) / 8.0
}

/// How many outputs of the first box inside the innermost reduction dim are in a tile.
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

/// A time in ns as people read it.
pub(crate) struct Time(pub f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns if ns < 999.5 => write!(f, "{ns:.1} ns"),
            ns if ns < 999.5e3 => write!(f, "{:.1} us", ns / 1e3),
            ns => write!(f, "{:.2} ms", ns / 1e6),
        }
    }
}
