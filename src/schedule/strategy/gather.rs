//! Elements that are brought into the order of their positions before they are combined.

use super::super::facts::Facts;
use super::super::machine::{Level, Machine};
use cranefold_ir::ops::in_memory;

/// Bytes that are gathered at a time from the caches, which stay in the second-level cache until they are read again.
const FROM_CACHES: u64 = 256 << 10;

/// Bytes that are gathered at a time from memory, which stay in the last-level cache: longer runs are read together. Of
/// 64 MB of f32 that lie across, stretches of 4 MB took 7.1 ms, of 256 KB 11 ms, and all at once 49 ms.
const FROM_MEMORY: u64 = 4 << 20;

/// The elements that are gathered at a time; 0 for whole slices, which are short or lie in order.
pub(super) fn stretch(facts: &Facts) -> u64 {
    let problem = facts.problem;
    if !problem.gathers() {
        return 0;
    }
    let bytes: u64 = problem.inputs.iter().map(|input| in_memory(input.operand.dtype).bytes()).max().unwrap_or(1);
    let level = facts.machine.level(facts.bytes.saturating_add(problem.count.saturating_mul(bytes)));
    let most = if level == Level::Memory { FROM_MEMORY } else { FROM_CACHES } / bytes;
    if problem.count > 2 * most { most } else { 0 }
}

/// The time in ns to gather every element.
pub(super) fn ns(facts: &Facts) -> f64 {
    if !facts.problem.gathers() {
        return 0.0;
    }
    let Machine { gather_ns, .. } = facts.machine;
    facts.elements() * gather_ns[facts.machine.level(2 * facts.bytes) as usize]
}
