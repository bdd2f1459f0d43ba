//! Slices that are runs of a few elements between those of other slices: the lanes of several slices are one row.

use super::super::cost::Cost;
use super::super::facts::{Facts, OutputLoop, states_kept};
use super::super::machine::{Level, Machine};
use super::super::{Schedule, Tile, Transform};
use super::{contiguous, positions, tiled, vector_bytes};
use crate::problem::IndexBox;
use crate::vectors::Vectors;

/// The most bytes of the states of a row that stay in registers.
const ROW_BYTES: u64 = 1 << 10;

/// The most bytes of a row's states.
const MOST_BYTES: u64 = 8 << 10;

/// The most bytes of a run whose lanes stand beside others. Longer ones fill vectors of their own, but begin late in the last
/// cache and in memory: maxima over 68 runs of 144 bytes took 137 us slice by slice, and 33 where registers held the states of
/// seven slices.
const RUN_BYTES: u64 = 2 * Machine::LINE_BYTES;

/// The steps in one visit of states in memory: argmax of 64 rows of 56 runs of 9 floats took 4.4 us one by one, 3.4 by
/// two, 3.0 by four and by eight.
const JAM: u64 = 4;

/// Rows whose states stay in registers, and whole rows, with one step or several in each visit of their states.
pub(super) fn candidates(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    if plain.width <= Vectors::BASE.bits {
        return vec![];
    }
    let of = |bytes| {
        let schedule = tiled(facts, plain, |number| tile(facts, number, bytes))?;
        Some(Schedule { nontemporal: writes_rows_past_caches(facts, &schedule), ..schedule })
    };
    let mut all: Vec<Schedule> = [ROW_BYTES, MOST_BYTES].into_iter().filter_map(of).collect();
    all.dedup();
    let jammed = all.iter().filter(|&s| visits_memory(facts, s) && takes_steps_together(facts));
    let jammed: Vec<Schedule> = jammed.map(|s| Schedule { jam: JAM, ..s.clone() }).collect();
    all.extend(jammed);
    all
}

/// Returns true if the states of a row do not stay in registers.
fn visits_memory(facts: &Facts, schedule: &Schedule) -> bool {
    contiguous::outputs_of(facts, schedule).by * facts.phase_bytes > ROW_BYTES
}

/// Returns true if several steps may pay in one visit of the states: beyond the second-level cache the rows of a first
/// visit are better read one after the other.
fn takes_steps_together(facts: &Facts) -> bool {
    let steps = facts.problem.count.div_ceil(facts.tree.lanes_present().max(1));
    steps >= 2 * JAM && (facts.phases > 1 || facts.machine.level(facts.bytes) <= Level::L2)
}

fn tile(facts: &Facts, number: usize, bytes: u64) -> Option<Tile> {
    let run = facts.runs(number)?;
    let step = facts.problem.elements().first()?.dims.last()?;
    let outputs = facts.problem.slices[number].dims.last()?;
    // The elements of the next slice follow those of a run, and a step takes the run.
    let inputs = facts.problem.inputs.iter().zip(step.stride.inputs.iter().zip(&outputs.stride.inputs));
    let mut mapped = inputs.filter(|(input, _)| input.mapped);
    let is_row = mapped.all(|(_, (&along, &across))| across == along * step.extent as i64);
    let is_step = step.extent * facts.element_bytes == run.bytes && step.extent == facts.tree.lanes_present();
    let &OutputLoop { var, extent, .. } = run.loops.last()?;
    let kept = facts.lanes_bytes().saturating_mul(states_kept(&facts.tree, 1));
    let most = (bytes / facts.phase_bytes.max(1)).min(Schedule::MAX_STATE_BYTES / kept.max(1));
    let by = extent.div_ceil(extent.div_ceil(most.max(1)));
    let is_far = facts.machine.level(facts.bytes) > Level::L2 && facts.phases == 1;
    let begins_late = is_far && by * facts.phase_bytes <= ROW_BYTES;
    let is_short = run.bytes <= RUN_BYTES || begins_late;
    (is_row && is_step && is_short && by > 1).then_some(Tile { var, by, transform: Transform::Lanes })
}

/// Returns true if whole vectors of outputs should be written past the caches: the runs of a row follow one another in
/// the outputs too, and fill lines together.
fn writes_rows_past_caches(facts: &Facts, schedule: &Schedule) -> bool {
    let problem = facts.problem;
    let row_bytes = |output: usize| {
        let positions = problem.positions.first()?.dims.last()?;
        let tiled = |(_, l): &(usize, &OutputLoop)| schedule.tile_of(l.var).is_some();
        let row = |(number, loops): (usize, &Vec<OutputLoop>)| {
            let (dim, OutputLoop { var, .. }) = loops.iter().enumerate().find(tiled)?;
            let across = problem.slices[number].dims[dim].stride.outputs[output];
            let follows = positions.stride.outputs[output] == 1 && across == positions.extent as i64;
            let by = schedule.tile_of(*var)?.by;
            follows.then(|| by * positions.extent * problem.outputs[output].dtype.bytes())
        };
        facts.loops.iter().enumerate().map(row).min()?
    };
    let is_written = |&output: &usize| {
        let of = |b: &IndexBox| b.dims.iter().any(|dim| dim.stride.outputs[output] != 0);
        problem.positions.iter().any(of)
    };
    let rows = (0..problem.outputs.len()).filter(is_written).map(row_bytes).min().flatten();
    rows.is_some_and(|row_bytes| positions::write_past_caches(facts, schedule.width, row_bytes))
}

/// Times in ns of a row's folds.
struct Folds {
    /// For each vector of the states.
    vector: f64,
    /// The same where lanes do not halve to whole vectors, or to parts of one that halve again.
    odd_vector: f64,
    /// Any row of such lanes besides.
    odd_row: f64,
}

/// Slices that fold one by one: rows of two to six slices of five and seven lanes took 90 to 100, of 256 slices of 25 bytes
/// 1,000.
const ALONE: Folds = Folds { vector: 6.0, odd_vector: 8.0, odd_row: 84.0 };

/// Slices that fill more than half a vector with their results, and fold together.
const TOGETHER: Folds = Folds { vector: 3.5, odd_vector: 3.0, odd_row: 25.0 };

/// The share of the time to visit states in memory that other operations do not hide.
const VISITED_SHARE: f64 = 0.4;

/// The slowdown of reading and writing, of data at a level, by tiles that are parts of rows: root-mean-square
/// normalization of 7,990 rows of 56 runs of 9 floats took 2.5 ms in halves of rows, and 1.3 in whole ones.
pub(super) fn parts(facts: &Facts, schedule: &Schedule, level: Level) -> f64 {
    let Tile { var, by, .. } = contiguous::outputs_of(facts, schedule);
    let is_part = facts.loops.iter().flatten().any(|l| l.var == var && l.extent > by);
    if is_part { facts.machine.reading_parts[level as usize] } else { 1.0 }
}

/// The cost: rows are read in order, again from the cache that holds a block of them, and the slices of a row fold
/// together. The steps of a row wait for one another. States that do not stay in registers are visited
/// once for every few jammed steps.
pub(super) fn cost(facts: &Facts, schedule: &Schedule) -> Cost {
    let machine = &facts.machine;
    let by = contiguous::outputs_of(facts, schedule).by;
    let block = facts.slice_bytes() / facts.tree.blocks() * by;
    let again = (facts.phases - 1) as f64 * facts.bytes as f64 / machine.read_rate[machine.level(block) as usize];
    let visited = match visits_memory(facts, schedule) {
        true => {
            let visits = facts.elements() * facts.phases as f64 / schedule.jam as f64;
            2.0 * VISITED_SHARE * visits * facts.state_bytes as f64
        }
        false => 0.0,
    };
    let rows = (facts.slices as f64 / by as f64).ceil();
    let (blocks, vector) = (facts.tree.blocks() as f64, vector_bytes(schedule));
    let vectors = ((by * facts.phase_bytes) as f64 / vector).ceil();
    let folds = if 2 * by * facts.widest_bytes > vector as u64 { TOGETHER } else { ALONE };
    let fold_ns = match (by * facts.tree.lanes_present()).is_power_of_two() {
        true => folds.vector * vectors,
        false => folds.odd_row + folds.odd_vector * vectors,
    };
    let fold_ns = if facts.waits { blocks * facts.phases as f64 * (machine.wait_ns + fold_ns) } else { fold_ns };
    let steps = rows * facts.problem.count.div_ceil(facts.tree.lanes_present().max(1)) as f64;
    let operations_ns = facts.vectors(vector) * facts.operations as f64 / machine.vector_ops;
    Cost {
        reading_ns: machine.read_ns(facts.bytes) * parts(facts, schedule, machine.level(facts.bytes)) + again,
        computing_ns: operations_ns.max(steps * facts.chain * machine.latency_ns),
        visiting_ns: visited / machine.state_rate,
        ending_ns: rows * fold_ns,
        ..Cost::default()
    }
}
