//! Contiguous slices, one output after the other.

use super::super::cost::{Cost, lines_ns};
use super::super::facts::{Facts, Runs};
use super::super::machine::{Level, Machine};
use super::super::{Schedule, Tile};
use super::{positions, vector_bytes};
use crate::vectors::Vectors;
use cranefold_ir::ops::Form;

/// Blocks in flight if a block has few lanes.
const BLOCKS: u64 = 4;

/// The most bytes of a block's lanes with which several blocks are in flight; more fill the registers.
const FEW_LANES_BYTES: u64 = 128;

/// Blocks or outputs that are interleaved, so that their visits end together.
const INTERLEAVED: u64 = 2;

/// The fewest steps of slices of one phase that are interleaved, and the most operations of a visit on an element: an
/// exponential has a few less.
const FEW_STEPS: u64 = 7;
const FEW_OPERATIONS: u64 = 17;

/// Time in ns of a window whose lanes do not halve, beside its fold: sums over 2 x 6, 3 x 7 and 5 x 5 took 2 longer.
const ODD_WINDOW_NS: f64 = 2.0;

/// The share of the time of dependent steps, of fewer lanes than a tree has, that the next slices do not hide.
const CHAINED: f64 = 0.35;

pub(super) fn candidates(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    let mut all = vec![plain.clone()];
    if facts.phases == 1 && facts.lanes_bytes() <= FEW_LANES_BYTES && facts.tree.blocks() >= 2 * BLOCKS {
        all.push(Schedule { in_flight: BLOCKS, ..plain.clone() });
    }
    let fits = plain.width > Vectors::BASE.bits && facts.phase_bytes < facts.machine.state_bytes(plain.width);
    let may_interleave = facts.waits || ends_weigh(facts);
    if fits && may_interleave && facts.joins_maxima(INTERLEAVED, plain.width) {
        all.push(Schedule { interleave: INTERLEAVED, ..plain.clone() });
    }
    all
}

/// Returns true if slices of one phase gain by ends that come together: slices of several steps, whose visits do little, in
/// data that the first two caches mostly hold. `rms_norm` takes 0.9 of the time by two slices at once for `f32[200,768]`,
/// but 1.1 times as long for `f32[200,2048]`, whose 3 MB are read from the last cache at two places, and 1.5 times for
/// `f32[64,256]`, whose four steps are no loop. Two long chains of operations for each vector of a step fill the registers,
/// and what only adds waits for what it reads, as extremes in their direct form do.
fn ends_weigh(facts: &Facts) -> bool {
    let written = facts.written.as_ref().map_or(0, |written| written.bytes);
    let [_, near, _] = facts.machine.cache_bytes;
    let follows = facts.written.is_some() || !facts.later.is_empty();
    facts.bytes.saturating_add(written) <= near + near / 4
        && (follows || facts.operations > 1)
        && facts.form == Form::Plain
        && facts.problem.count >= FEW_STEPS * facts.tree.lanes
        && facts.most_joined_operations() <= FEW_OPERATIONS
}

pub(super) fn cost(facts: &Facts, schedule: &Schedule) -> Cost {
    let at_once = schedule.in_flight * schedule.interleave;
    let (end, waits) = (end(facts), facts.waits);
    cost_of(
        facts,
        schedule,
        &Way { at_once, runs_of: None, pushed_bytes: 0.0, end, waits, folding: 1.0, reads_on: false },
    )
}

/// The differences between strategies that walk slices.
pub(super) struct Way {
    /// Chains of operations in flight at once.
    pub at_once: u64,
    /// The number of outputs whose runs of memory follow one another in a tile; `None` without such a tile.
    pub runs_of: Option<u64>,
    /// Bytes of states that are pushed, counted once for each write and each read.
    pub pushed_bytes: f64,
    /// The end of a slice.
    pub end: End,
    /// True if each block waits for its results.
    pub waits: bool,
    /// The slowdown of reading by folds.
    pub folding: f64,
    /// True if the next slices are read while elements are read again.
    pub reads_on: bool,
}

/// The end of a slice.
pub(super) struct End {
    /// Time in ns of waiting for its results.
    pub waited_ns: f64,
    /// Time in ns of the fold of its lanes, if it overlaps with the next slices.
    pub fold_ns: f64,
}

/// The end of a slice whose lanes fold alone.
pub(super) fn end(facts: &Facts) -> End {
    let machine = &facts.machine;
    let halvings = f64::from(facts.tree.lanes_present().max(1).ilog2());
    match facts.waits {
        true => {
            let chain = (halvings + machine.finish_chain) * facts.phases as f64;
            End { waited_ns: chain * machine.latency_ns, fold_ns: 0.0 }
        }
        false => {
            let operations = machine.halving_ops * halvings * facts.values();
            End { waited_ns: 0.0, fold_ns: operations / machine.vector_ops + odd_window_ns(facts) }
        }
    }
}

/// Time in ns of a window whose lanes do not halve, beside its fold.
pub(super) fn odd_window_ns(facts: &Facts) -> f64 {
    let is_odd = facts.is_window() && !facts.tree.lanes_present().is_power_of_two();
    if is_odd { ODD_WINDOW_NS } else { 0.0 }
}

pub(super) fn cost_of(facts: &Facts, schedule: &Schedule, way: &Way) -> Cost {
    let machine = &facts.machine;
    let level = machine.level(facts.bytes);
    let (tree, slices) = (&facts.tree, facts.slices as f64);
    let steps = |lanes: u64| slices * facts.problem.count.div_ceil(lanes.max(1)) as f64;
    let present = tree.lanes_present();
    let vectors = (present as f64 * facts.value_bytes as f64 / vector_bytes(schedule)).ceil();
    let chained = steps(tree.lanes).max(CHAINED * steps(present));
    let waited_ns = chained * facts.chain * machine.latency_ns / way.at_once as f64;
    let steps_ns = (steps(present) * vectors * facts.operations as f64 / machine.vector_ops).max(waited_ns);
    // Prefetchers follow a few short runs from output to output.
    let are_followed =
        |runs: &Runs| runs.bytes < Machine::PAGE_BYTES && facts.slice_bytes() / runs.bytes <= machine.streams;
    let runs = facts.runs(0).filter(|runs| !are_followed(runs));
    let number = runs.as_ref().map_or(0.0, |runs| facts.input_bytes as f64 / runs.bytes as f64);
    let is_strided = runs.as_ref().is_some_and(|runs| runs.bytes <= 2 * Machine::LINE_BYTES);
    let following = match way.runs_of {
        Some(outputs) if !is_strided => outputs.min(facts.slices) as f64,
        _ => 1.0,
    };
    let begin_ns = if is_strided { machine.strided_ns[level as usize] } else { machine.begin_ns(facts.bytes) };
    let is_of_pages = |runs: &Runs| runs.distance.is_multiple_of(Machine::PAGE_BYTES);
    let share_a_set = is_strided && way.runs_of.is_none() && runs.as_ref().is_some_and(is_of_pages);
    let set_ns = if share_a_set { facts.phases as f64 * machine.one_set_ns[level as usize] } else { 0.0 };
    let run_ns = number * (begin_ns / following + set_ns);
    let writes_apart = is_strided && facts.written.is_some() && way.runs_of.is_none();
    let writing_ns = if writes_apart { number * machine.strided_store_ns[level as usize] } else { 0.0 };
    // A prefetch beyond a short run fetches memory that is not read next; slices that are interleaved drive one another out
    // of the first-level cache if they fill it.
    let is_beyond = way.runs_of.is_none() && runs.is_some_and(|runs| runs.bytes < schedule.prefetch);
    let drives_out =
        schedule.interleave > 1 && positions::level(facts, schedule).is_some_and(|slices| slices > Level::L1);
    let idle = if way.reads_on { 1.0 } else { looking_again(facts, schedule, level, is_beyond || drives_out) };
    // Interleaved blocks end together. From memory, reading takes longer than their ends unless it is asked ahead. The end
    // of one phase is among other costs already, so that only the gain counts.
    let ends = slices * tree.blocks() as f64;
    let together = ends / schedule.interleave as f64;
    let waiting = match (level, way.waits) {
        (Level::Memory, _) if schedule.prefetch == 0 => 0.0,
        (_, true) => together,
        (_, false) => together - ends,
    };
    Cost {
        reading_ns: machine.read_ns(facts.bytes) * idle * way.folding + run_ns + lines_ns(facts, level, 1),
        computing_ns: (steps_ns + slices * way.end.fold_ns + waiting * machine.wait_ns).max(0.0),
        ending_ns: slices * way.end.waited_ns + way.pushed_bytes / machine.state_rate + writing_ns,
        ..Cost::default()
    }
}

/// The slowdown of reading by the visits of slices after the first.
///
/// While elements are read again, nothing new is read unless it is prefetched; from memory, reading at two places without
/// a prefetch disturbs the hardware's prefetchers. Where later visits of slices take longer than memory, what is read next
/// is asked for meanwhile.
fn looking_again(facts: &Facts, schedule: &Schedule, level: Level, astray: bool) -> f64 {
    let machine = &facts.machine;
    let (asks, interleaves) = (schedule.prefetch > 0, schedule.interleave > 1);
    let reading = match (facts.phases, asks, interleaves) {
        (1, false, false) => return 1.0,
        (1, true, false) if !facts.leaves_idle() => machine.reading_once_asked,
        (_, true, _) if astray => machine.reading_again_astray,
        (_, true, _) if facts.leaves_idle() => machine.reading_asked_between,
        (1, _, true) => machine.reading_interleaved,
        (_, true, _) => machine.reading_again_asked,
        (_, false, true) if astray => machine.reading_again_astray,
        (_, false, true) => machine.reading_again_interleaved,
        (_, false, false) => machine.reading_again,
    };
    reading[level as usize]
}

/// The tile of the schedule.
pub(super) fn outputs_of(facts: &Facts, schedule: &Schedule) -> Tile {
    let tile = facts.loops.iter().flatten().find_map(|l| schedule.tile_of(l.var));
    tile.expect("a strategy of tiles")
}
