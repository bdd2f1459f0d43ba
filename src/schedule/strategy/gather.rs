//! Elements that are brought into the order of their positions before they are combined.

use super::super::facts::Facts;
use super::super::machine::{Level, Machine};
use cranefold_ir::ops::in_memory;

/// Bytes that are gathered at a time from the caches, which stay in the first-level cache until they are read again. Of
/// 0.5 MB of f32 that lie across, stretches of 16 KB took 6.9 us, of 64 KB 13.8, and all at once 36.
const FROM_CACHES: u64 = 16 << 10;

/// Bytes that are gathered at a time from memory, where slices are that long: longer runs are read together. Of 64 MB of
/// f32 that lie across, stretches of 256 KB took 4.7 ms, of 16 KB 7.0, of 4 MB 6.6, and all at once 35.
const FROM_MEMORY: u64 = 256 << 10;

/// The elements that are gathered at a time; 0 for whole slices, which are short or lie in order.
pub(super) fn stretch(facts: &Facts) -> u64 {
    let problem = facts.problem;
    if !problem.gathers() {
        return 0;
    }
    let bytes: u64 = problem.inputs.iter().map(|input| in_memory(input.operand.dtype).bytes()).max().unwrap_or(1);
    let is_long = |stretch: u64| problem.count > 2 * stretch / bytes;
    let is_in_memory = facts.machine.level(facts.bytes) == Level::Memory;
    let stretches: &[u64] = if is_in_memory { &[FROM_MEMORY, FROM_CACHES] } else { &[FROM_CACHES] };
    stretches.iter().find(|&&stretch| is_long(stretch)).map_or(0, |stretch| stretch / bytes)
}

/// The time in ns to gather every element.
pub(super) fn ns(facts: &Facts) -> f64 {
    if !facts.problem.gathers() {
        return 0.0;
    }
    let Machine { gather_ns, .. } = facts.machine;
    facts.elements() * gather_ns[facts.machine.level(2 * facts.bytes) as usize]
}
