//! The visit that writes the positions of slices, after their reductions.

use super::super::Schedule;
use super::super::facts::Facts;
use super::{Strategy, vector_bytes};

/// Bytes of a value in this visit.
const VALUE_BYTES: f64 = 4.0;

/// The time of the visit: it reads slices again, from the cache that holds them, and writes outputs, which leave less of
/// the caches to the inputs.
pub(super) fn writing_ns(facts: &Facts, schedule: &Schedule) -> f64 {
    let Some(written) = &facts.written else { return 0.0 };
    let machine = &facts.machine;
    let all = machine.level(facts.bytes.saturating_add(written.bytes));
    let slices = facts.slices.max(1);
    let slice = machine.level((written.read_bytes.saturating_add(written.bytes)) / slices);
    let more_ns = facts.bytes as f64 / machine.read_rate[all as usize] - machine.read_ns(facts.bytes);
    let reading_ns = written.read_bytes as f64 / machine.read_rate[slice as usize];
    let storing_ns = written.bytes as f64 / machine.write_rate[all as usize];
    let lanes = vector_bytes(schedule) / VALUE_BYTES;
    // Runs of memory that do not stand beside one another are vectors of their own.
    let run = match (facts.runs(0), Strategy::of(facts, schedule)) {
        (_, Strategy::SideBySide) | (None, _) => u64::MAX,
        (Some(runs), _) => runs.bytes / facts.element_bytes,
    };
    let vectors = facts.elements() / lanes.min(run as f64);
    let computing_ns = vectors * written.operations as f64 / machine.vector_ops;
    more_ns + (reading_ns + storing_ns).hypot(computing_ns)
}
