//! The visit that writes the positions of slices, after their reductions.

use super::super::Schedule;
use super::super::cost::{Cost, Visit};
use super::super::facts::{Facts, Written};
use super::super::machine::Machine;
use super::later::lanes;
use super::vector_bytes;
use crate::problem::Problem;

/// Bytes of a value in this visit.
const VALUE_BYTES: u64 = 4;

/// The cost of a problem without reductions; `None` of another one.
pub(in crate::schedule) fn alone(problem: &Problem, schedule: &Schedule) -> Option<Cost> {
    let computation = problem.computation_in(schedule.form)?;
    let apply = computation.apply.filter(|_| computation.stages.iter().all(|stage| stage.groups.is_empty()))?;
    let machine = Machine::TYPICAL;
    let written = Written::of(problem, &apply, schedule.width, &machine);
    let level = machine.level(written.read_bytes.saturating_add(written.bytes)) as usize;
    let vectors = problem.elements_read() as f64 * VALUE_BYTES as f64 / vector_bytes(schedule);
    Some(Cost {
        reading_ns: written.read_bytes as f64 / machine.read_rate[level]
            + written.bytes as f64 / machine.write_rate[level],
        computing_ns: vectors * written.operations as f64 / machine.vector_ops,
        ..Cost::default()
    })
}

/// The visit: it reads slices again, from the cache that holds them, and writes outputs, which leave less of the caches
/// to the inputs.
pub(super) fn visit(facts: &Facts, schedule: &Schedule) -> Option<Visit> {
    let written = facts.written.as_ref()?;
    let machine = &facts.machine;
    let all = machine.level(facts.bytes.saturating_add(written.bytes));
    let slices = facts.slices.max(1);
    let level = machine.level((written.read_bytes.saturating_add(written.bytes)) / slices);
    let more_ns = facts.bytes as f64 / machine.read_rate[all as usize] - machine.read_ns(facts.bytes);
    let reading_ns = written.read_bytes as f64 / machine.read_rate[level as usize];
    let storing_ns = written.bytes as f64 / machine.write_rate[all as usize];
    let operations = facts.elements() / lanes(facts, schedule, VALUE_BYTES) * written.operations as f64;
    Some(Visit {
        name: "outputs".into(),
        read_bytes: written.read_bytes,
        times: 1,
        level,
        written_bytes: written.bytes,
        operations: written.operations,
        port_cycles: operations / machine.ports,
        ns: more_ns + (reading_ns + storing_ns).hypot(operations / machine.vector_ops),
    })
}
