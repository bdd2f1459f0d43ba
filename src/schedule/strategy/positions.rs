//! The visit that writes the positions of slices, after their reductions.

use super::super::Schedule;
use super::super::cost::{Cost, Visit};
use super::super::facts::{Facts, Written, run_bytes};
use super::super::machine::{Level, Machine};
use super::later::{lanes, parts, slices_together};
use super::vector_bytes;
use crate::problem::Problem;
use crate::vectors::Vectors;

/// Bytes of a value in this visit.
const VALUE_BYTES: u64 = 4;

/// Bytes of a run that is long beside the line at its end.
const LONG_RUN: u64 = 16 << 10;

/// Returns true if whole vectors of the outputs should be written past the caches: where inputs and outputs together take
/// most of the last one. There a line of output would be read before it is written, and drive out what is read.
pub(super) fn pass_caches(facts: &Facts, width: u32) -> bool {
    facts.written.as_ref().is_some_and(|written| write_past_caches(facts, width, written.run_bytes))
}

/// The same of outputs that are written in order `run_bytes` bytes at a time.
pub(super) fn write_past_caches(facts: &Facts, width: u32, run_bytes: u64) -> bool {
    let Some(written) = &facts.written else { return false };
    fill_caches(facts.bytes.saturating_add(written.bytes), width) && fills_lines(run_bytes)
}

/// Returns true if runs of so many bytes end with a line, or are long: the caches fetch the line after one that they write,
/// and a store past them then waits for it. On an Intel Xeon rows of 800 bytes took 12.2 ms, and 4.1 through
/// the caches; rows of 8,016, which are seldom at a line, 6.8 and 7.4.
fn fills_lines(run_bytes: u64) -> bool {
    run_bytes.is_multiple_of(Machine::LINE_BYTES) || run_bytes >= LONG_RUN
}

/// The same of a problem without reductions, which writes each element.
pub(in crate::schedule) fn elements_pass_caches(problem: &Problem, width: u32) -> bool {
    let operands = problem.inputs.iter().map(|input| &input.operand).chain(&problem.outputs);
    let bytes = operands.map(|o| o.len.saturating_mul(o.dtype.bytes())).fold(0, u64::saturating_add);
    let fill_lines = || (0..problem.outputs.len()).all(|output| fills_lines(run_bytes(problem, output)));
    problem.walks.is_empty() && fill_caches(bytes, width) && fill_lines()
}

fn fill_caches(bytes: u64, width: u32) -> bool {
    Vectors::WIDEST.at_most(width).are_wide() && bytes > Machine::TYPICAL.write_past_bytes
}

/// Bytes per ns that are written, of data at a level.
fn write_rate(machine: &Machine, schedule: &Schedule, level: Level) -> f64 {
    if schedule.nontemporal { machine.write_past_rate } else { machine.write_rate[level as usize] }
}

/// The cost of a problem without reductions; `None` of another one.
pub(in crate::schedule) fn alone(problem: &Problem, schedule: &Schedule) -> Option<Cost> {
    let computation = problem.computation_in(schedule.form)?;
    let apply = computation.apply.filter(|_| computation.stages.iter().all(|stage| stage.groups.is_empty()))?;
    let machine = Machine::TYPICAL;
    let written = Written::of(problem, &apply, schedule.width, &machine);
    let level = machine.level(written.read_bytes.saturating_add(written.bytes));
    let vectors = problem.elements_read() as f64 * VALUE_BYTES as f64 / vector_bytes(schedule);
    Some(Cost {
        reading_ns: written.read_bytes as f64 / machine.read_rate[level as usize]
            + written.bytes as f64 / write_rate(&machine, schedule, level),
        computing_ns: vectors * written.operations as f64 / machine.vector_ops,
        ..Cost::default()
    })
}

/// The level that holds the slices which are taken together and their outputs; `None` if no position is written.
pub(super) fn level(facts: &Facts, schedule: &Schedule) -> Option<Level> {
    let written = facts.written.as_ref()?;
    let slice_bytes = written.read_bytes.saturating_add(written.bytes) / facts.slices.max(1);
    Some(facts.machine.level(slice_bytes.saturating_mul(slices_together(facts, schedule))))
}

/// The visit: it reads slices again, from the cache that holds them, and writes outputs, which leave less of the caches
/// to the inputs. As a part of the first visit it reads nothing.
pub(super) fn visit(facts: &Facts, schedule: &Schedule) -> Option<Visit> {
    let written = facts.written.as_ref()?;
    let machine = &facts.machine;
    let all = machine.level(facts.bytes.saturating_add(written.bytes));
    let level = level(facts, schedule)?;
    let more_ns = facts.bytes as f64 / machine.read_rate[all as usize] - machine.read_ns(facts.bytes);
    let read_bytes = if schedule.write_first { 0 } else { written.read_bytes };
    let reading_ns = read_bytes as f64 / machine.read_rate[level as usize] * parts(facts, schedule, level);
    let storing_ns = written.bytes as f64 / write_rate(machine, schedule, all) * parts(facts, schedule, all);
    let operations = facts.elements() / lanes(facts, schedule, VALUE_BYTES) * written.operations as f64;
    Some(Visit {
        name: "outputs".into(),
        read_bytes,
        times: 1,
        level,
        written_bytes: written.bytes,
        operations: written.operations,
        port_cycles: operations / machine.ports,
        ns: more_ns + (reading_ns + storing_ns).hypot(operations / machine.vector_ops),
    })
}
