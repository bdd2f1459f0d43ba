//! The visits of slices by reductions after the first ones.

use super::super::Schedule;
use super::super::facts::{Facts, Later};
use super::{Strategy, vector_bytes};

/// The time of the visits: each reads slices again, from the cache that holds those which are taken at once.
pub(super) fn visits_ns(facts: &Facts, schedule: &Schedule) -> f64 {
    let machine = &facts.machine;
    let at_once = facts.loops.iter().map(|loops| schedule.outputs_at_once(loops)).max().unwrap_or(1);
    let together = at_once.saturating_mul(schedule.interleave).min(facts.slices).max(1);
    let held = (facts.bytes / facts.slices.max(1)).saturating_mul(together);
    let reading_ns = facts.bytes as f64 / machine.read_rate[machine.level(held) as usize];
    let is_of_one_slice = Strategy::of(facts, schedule).is_of_one_slice();
    let of = |visit: &Later| {
        let vectors = facts.elements() / lanes(facts, schedule, visit.value_bytes as f64);
        let computing_ns = vectors * visit.operations as f64 / machine.vector_ops;
        let waits = if is_of_one_slice { facts.slices as f64 * visit.waits as f64 } else { 0.0 };
        let waiting_ns = waits * machine.wait_ns / schedule.interleave as f64;
        (visit.phases as f64 * reading_ns).hypot(computing_ns) + waiting_ns
    };
    facts.later.iter().map(of).sum()
}

/// The elements in a vector of values of so many bytes. Runs of memory that do not stand beside one another are vectors
/// of their own.
pub(super) fn lanes(facts: &Facts, schedule: &Schedule, value_bytes: f64) -> f64 {
    let most = vector_bytes(schedule) / value_bytes;
    match facts.runs(0) {
        Some(runs) if Strategy::of(facts, schedule).is_of_one_slice() => {
            most.min(runs.bytes as f64 / facts.element_bytes as f64)
        }
        _ => most,
    }
}
