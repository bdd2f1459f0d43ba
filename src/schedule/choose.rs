//! The choice of a schedule, and the check of a forced one.

use super::{Schedule, ScheduleError, Tile};
use crate::problem::Problem;
use crate::tree::Tree;
use cranefold_ir::ops::Reducer;
use cranefold_ir::{LoopVar, Over};

/// Bytes of accumulators that fill the 128-bit registers: a tile this small is kept in them.
const REGISTER_BYTES: u64 = 256;

/// Bytes of accumulators that rows stream through: a small part of the first-level cache.
const STREAM_BYTES: u64 = 4096;

/// Input bytes up to which a tile in registers beats streaming whole rows: data in the first-level cache.
const CACHED_BYTES: u64 = 24 << 10;

/// The schedule for a problem on a target with vectors of `width` bits.
///
/// - Output dims outside the innermost reduction dim stay outermost: each output is reduced from
///   lanes, blocks after blocks, with all lanes in registers.
/// - Output dims inside it are tiled and move into the reduction, so that a step walks memory. Where
///   the data is in the first-level cache the tile fills the registers; else rows stream through a
///   tile of 4 KB, eight at a time.
pub fn choose(problem: &Problem, width: u32) -> Schedule {
    let plain = Schedule { width, tile: None, rows: 1 };
    let Some(reducer) = problem.reducer() else { return plain };
    let Some(last) = problem.dims.iter().rposition(|d| d.reduced) else { return plain };
    if last + 1 == problem.dims.len() {
        return plain;
    }
    let state_bytes = reducer.state_bytes();
    let elements: u64 = problem.dims.iter().map(|d| d.extent).fold(1, u64::saturating_mul);
    let input_bytes = elements.saturating_mul(problem.inputs[0].dtype.bytes());
    let steps = problem.dims.iter().filter(|d| d.reduced).map(|d| d.extent).fold(1, u64::saturating_mul);
    let one_part = reducer.phases.len() == 1 && reducer.phases[0].identity.len() == 1;
    let few_steps = steps <= 8;
    let bytes = if input_bytes <= CACHED_BYTES || few_steps || !one_part { REGISTER_BYTES } else { STREAM_BYTES };
    let tile = tile_of(problem, last, bytes / state_bytes);
    let tree = Tree::of(problem, state_bytes);
    let rows = if tree.lanes > 1 || !one_part || bytes == REGISTER_BYTES && !few_steps { 1 } else { 8 };
    Schedule { width, tile: Some(tile), rows }
}

/// The tile of at most `most` outputs (at least one) inside the last reduction dim.
fn tile_of(problem: &Problem, last: usize, most: u64) -> Tile {
    let loops = output_loops(problem);
    let mut outputs = 1;
    let mut tile = None;
    for (dim, var) in loops.into_iter().rev().filter(|&(dim, _)| dim > last) {
        let extent = problem.dims[dim].extent;
        if outputs * extent <= most {
            outputs *= extent;
            tile = Some(Tile { var, by: extent });
            continue;
        }
        let by = most / outputs;
        return match tile {
            Some(tile) if by <= 1 => tile,
            _ => Tile { var, by: by.max(1) },
        };
    }
    tile.expect("an output dim inside")
}

/// The output dims with the variables lowering gives their loops.
fn output_loops(problem: &Problem) -> Vec<(usize, LoopVar)> {
    let outputs = problem.dims.iter().enumerate().filter(|(_, d)| !d.reduced && d.extent > 1);
    outputs.enumerate().map(|(n, (dim, _))| (dim, LoopVar { over: Over::Output, id: n as u32 })).collect()
}

impl Schedule {
    /// Checks a forced schedule against the problem.
    ///
    /// # Errors
    /// What the schedule names that the problem does not have, or a limit it exceeds.
    pub fn check(&self, problem: &Problem) -> Result<(), ScheduleError> {
        self.check_numbers()?;
        let Some(tile) = self.tile else { return Ok(()) };
        let loops = output_loops(problem);
        let Some(&(first, _)) = loops.iter().find(|&&(_, var)| var == tile.var) else {
            let names: Vec<String> = loops.iter().map(|(_, var)| var.to_string()).collect();
            let loops = if names.is_empty() { "none".into() } else { names.join(" ") };
            return Err(ScheduleError::NoLoop { var: tile.var, loops });
        };
        let Some(reducer) = problem.reducer().filter(|_| problem.count > 0) else { return Ok(()) };
        let bytes = state_bytes_of(problem, &reducer, first, tile.by);
        match bytes <= Schedule::MAX_STATE_BYTES {
            true => Ok(()),
            false => Err(ScheduleError::StateTooLarge {
                var: tile.var,
                by: tile.by,
                bytes,
                limit: Schedule::MAX_STATE_BYTES,
            }),
        }
    }
}

/// The bytes of the states a tile keeps at once: lanes, and a level of the stack for each doubling
/// of the number of blocks.
fn state_bytes_of(problem: &Problem, reducer: &Reducer, first: usize, by: u64) -> u64 {
    let tree = Tree::of(problem, reducer.state_bytes());
    let inner = problem.dims[first + 1..].iter().filter(|d| !d.reduced).map(|d| d.extent);
    let outputs = inner.fold(by.min(problem.dims[first].extent), u64::saturating_mul);
    let levels = u64::from(tree.blocks().ilog2()) + 3;
    let lanes = outputs.saturating_mul(tree.lanes);
    lanes.saturating_mul(reducer.state_bytes()).saturating_mul(levels)
}
