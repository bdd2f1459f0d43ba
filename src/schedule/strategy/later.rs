//! The visits of slices by reductions after the first ones.

use super::super::Schedule;
use super::super::cost::Visit;
use super::super::facts::{Facts, Later};
use super::super::machine::Level;
use super::{Strategy, columns, rows, short_slices, side_by_side, vector_bytes};

/// The visits: each reads slices again, from the cache that holds those which are taken at once.
pub(super) fn visits(facts: &Facts, schedule: &Schedule) -> Vec<Visit> {
    let machine = &facts.machine;
    let slice_bytes = facts.bytes / facts.slices.max(1);
    let level = machine.level(slice_bytes.saturating_mul(slices_together(facts, schedule)));
    let reading_ns = facts.bytes as f64 / machine.read_rate[level as usize] * parts(facts, schedule, level);
    let waits_alone = matches!(Strategy::of(facts, schedule), Strategy::Contiguous | Strategy::Runs);
    let of = |later: &Later| {
        let operations = facts.elements() / lanes(facts, schedule, later.value_bytes) * later.operations as f64;
        let waits = if waits_alone { facts.slices as f64 * later.waits as f64 } else { 0.0 };
        let waiting_ns = waits * machine.wait_ns / schedule.interleave as f64;
        let computing_ns = operations / machine.vector_ops;
        Visit {
            name: later.name.clone(),
            read_bytes: facts.bytes,
            times: later.phases,
            level,
            written_bytes: 0,
            operations: later.operations,
            port_cycles: operations / machine.ports,
            ns: (later.phases as f64 * reading_ns).hypot(computing_ns) + waiting_ns,
        }
    };
    facts.later.iter().map(of).collect()
}

/// The slices that are visited again before the next ones are read.
pub(super) fn slices_together(facts: &Facts, schedule: &Schedule) -> u64 {
    let at_once = facts.loops.iter().map(|loops| schedule.outputs_at_once(loops)).max().unwrap_or(1);
    at_once.saturating_mul(schedule.interleave).min(facts.slices).max(1)
}

/// The slowdown of reading and writing, of data at a level, where slices are visited by parts of rows.
pub(super) fn parts(facts: &Facts, schedule: &Schedule, level: Level) -> f64 {
    match Strategy::of(facts, schedule) {
        Strategy::SideBySide => side_by_side::parts(facts, schedule, level),
        _ => 1.0,
    }
}

/// The elements in a vector of values of so many bytes. Slices that are walked one by one, and runs of memory that do not
/// stand beside one another, end with a vector of their own; so do tiles of columns and of rows.
pub(super) fn lanes(facts: &Facts, schedule: &Schedule, value_bytes: u64) -> f64 {
    let most = vector_bytes(schedule) / value_bytes as f64;
    match Strategy::of(facts, schedule) {
        Strategy::Columns => return most * columns::filled(facts, schedule, most as u64),
        Strategy::Rows => return most * rows::filled(facts, schedule),
        Strategy::ShortSlices => return most / short_slices::emptiness(facts, schedule, most),
        strategy if !strategy.is_of_one_slice() => return most,
        _ => {}
    }
    let run = facts.runs(0).map_or(facts.problem.count, |runs| runs.bytes / facts.element_bytes).max(1) as f64;
    run / (run / most).ceil()
}
