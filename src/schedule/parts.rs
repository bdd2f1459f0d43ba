//! The number and the kind of a kernel's parts, which threads may run at once.

use super::facts::bytes_read;
use super::{Cost, Machine, Schedule, ScheduleError};
use crate::problem::blocks::{blocks, stored_bytes};
use crate::problem::{Dim, Problem};
use cranefold_ir::ops::Form;
use std::fmt;
use std::str::FromStr;

/// Parts for each thread, so that a late thread delays the others by one part only.
const PARTS_OF_THREAD: u64 = 4;

/// The least bytes of a run of memory that a part reads if runs are cut.
const LEAST_RUN_BYTES: u64 = 2 << 10;

/// The least ratio of the bytes read to the bytes of stored states, which are written, read and merged once more.
const STORED_SHARE: u64 = 16;

/// The division of a problem into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parts {
    /// The intended number of parts: there are fewer if there is less to divide, and up to twice as many.
    pub count: u64,
    /// The quantity that parts divide.
    pub of: Divided,
}

/// A quantity that parts divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Divided {
    /// The outputs. It prints as nothing.
    Outputs,
    /// The blocks of every slice, aligned subtrees of the reduction tree; a last step merges their states. In text, `@blocks`.
    Blocks,
}

impl Parts {
    /// One part.
    pub const ONE: Parts = Parts { count: 1, of: Divided::Outputs };

    /// Checks that the problem can be divided in this way.
    pub(super) fn check(self, problem: &Problem, form: Form) -> Result<(), ScheduleError> {
        let Parts { count, of } = self;
        if of == Divided::Outputs {
            return Ok(());
        }
        if blocks(problem, form).is_none() {
            let why =
                "only blocks of reductions with one result for each slice, of more than one block, are shared out";
            return Err(ScheduleError::NoBlocks { count, why });
        }
        let (bytes, limit) = (stored_bytes(problem, form, count), Schedule::MAX_STORED_BYTES);
        if bytes > limit { Err(ScheduleError::StoredTooLarge { count, bytes, limit }) } else { Ok(()) }
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.count, if self.of == Divided::Blocks { "@blocks" } else { "" })
    }
}

impl FromStr for Parts {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Parts, Self::Err> {
        let (count, of) = match text.strip_suffix("@blocks") {
            Some(count) => (count, Divided::Blocks),
            None => (text, Divided::Outputs),
        };
        Ok(Parts { count: count.parse()?, of })
    }
}

/// Outputs outside the reduction dims are divided first: parts read memory as one thread would. If there are several
/// but too few, runs are cut as well if their pieces are long enough. Else blocks are divided if their states are few,
/// and else the few outputs.
pub(super) fn parts(problem: &Problem, form: Form, cost: Option<Cost>, threads: u64) -> Parts {
    let (bytes, machine) = (bytes_read(problem), Machine::TYPICAL);
    let ns = cost.map_or(bytes as f64 * machine.byte_ns, |cost| cost.total_ns());
    let worth = (ns / machine.part_ns) as u64;
    // If no cost is known, parts may gather slices, each in memory of its own.
    let most = if cost.is_some() { threads.saturating_mul(PARTS_OF_THREAD) } else { threads };
    let count = worth.min(most).min(Schedule::MAX_PARTS);
    let Some(largest) = problem.slices.iter().max_by_key(|slices| slices.positions()) else { return Parts::ONE };
    if threads <= 1 || count <= 1 || problem.totals.is_some() {
        return Parts::ONE;
    }
    let inside = problem.inside(largest);
    let positions = |dims: &[Dim]| dims.iter().map(|d| d.extent).fold(1, u64::saturating_mul);
    let outside = positions(&largest.dims[..largest.dims.len() - inside.len()]);
    let outputs = Parts { count, of: Divided::Outputs };
    if outside >= count {
        return outputs;
    }
    let run_bytes = positions(inside).saturating_mul(problem.inputs[0].operand.dtype.bytes());
    let runs_are_long = run_bytes / count.div_ceil(outside) >= LEAST_RUN_BYTES;
    let stored = Parts { count, of: Divided::Blocks };
    let few_states = stored_bytes(problem, form, count) <= bytes / STORED_SHARE;
    if outside > 1 && runs_are_long {
        return outputs;
    }
    match blocks(problem, form) {
        Some(blocks) if blocks >= 2 * count && few_states && stored.check(problem, form).is_ok() => stored,
        _ if runs_are_long || outside >= threads => outputs,
        _ => Parts::ONE,
    }
}
