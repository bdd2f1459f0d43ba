//! The choice of a schedule, and the check of a forced one.

use super::{Schedule, ScheduleError, Tile};
use crate::problem::Problem;
use crate::tree::Tree;
use cranefold_ir::ops::{Method, Reducer};
use cranefold_ir::{Def, LoopVar, Over};

/// Bytes of accumulators that fill the 128-bit registers: a tile this small is kept in them.
const REGISTER_BYTES: u64 = 256;

/// Bytes of accumulators that rows stream through: half of the first-level cache.
const STREAM_BYTES: u64 = 16 << 10;

/// Input bytes up to which a tile in registers beats streaming whole rows: data in the first-level cache.
const CACHED_BYTES: u64 = 24 << 10;

/// Bytes of accumulators that leave the adders idle: two vectors. Four blocks of one vector each ran at
/// 80 GB/s where one ran at 52, of two at 109 against 97.
const LATENCY_BYTES: u64 = 32;

/// The most lanes a vector has: tiles are whole vectors.
const LANES: u64 = 16;

/// Outputs of a tile that is written out where an element takes many operations: one vector of f32, so
/// that the code stays short.
const HEAVY_OUTPUTS: u64 = 4;

/// The most operands in lift and combine of an element that is light.
const LIGHT_OPS: usize = 12;

/// The schedule for a problem on a target with vectors of `width` bits.
///
/// - Output dims outside the innermost reduction dim stay outermost: each output is reduced from
///   lanes, blocks after blocks, with all lanes in registers. Rows of a few elements are taken several
///   at a time.
/// - Output dims inside it are tiled and move into the reduction, so that a step walks memory. Where
///   the data is in the first-level cache the tile fills the registers; else rows stream through a
///   tile of 16 KB, eight at a time.
pub fn choose(problem: &Problem, width: u32) -> Schedule {
    let plain = Schedule { width, tile: None, rows: 1, blocks: 1 };
    let Some(reducer) = problem.reducer() else { return plain };
    if matches!(reducer.method, Method::Select { .. }) {
        return plain;
    }
    let Some(last) = problem.dims.iter().rposition(|d| d.reduced) else { return plain };
    if last + 1 == problem.dims.len() {
        return Schedule { tile: short_rows(problem, &reducer), blocks: blocks_in_flight(problem, &reducer), ..plain };
    }
    let state_bytes = reducer.method.state_bytes();
    let elements: u64 = problem.dims.iter().map(|d| d.extent).fold(1, u64::saturating_mul);
    let input_bytes = elements.saturating_mul(problem.inputs[0].operand.dtype.bytes());
    let steps = problem.dims.iter().filter(|d| d.reduced).map(|d| d.extent).fold(1, u64::saturating_mul);
    let few_steps = steps <= 8;
    let tree = Tree::of(problem, &reducer.method);
    let in_registers = input_bytes <= CACHED_BYTES || few_steps;
    let bytes = match in_registers {
        true => REGISTER_BYTES,
        false => STREAM_BYTES.min(Schedule::MAX_STATE_BYTES / states_kept(&tree, 1)),
    };
    let outputs = match few_steps && !light(&reducer) {
        true => HEAVY_OUTPUTS,
        // Whole vectors of the narrowest type.
        false => bytes / state_bytes / LANES * LANES,
    };
    let tile = tile_of(problem, last, outputs);
    let rows = match light(&reducer) {
        true if tree.lanes == 1 && (!in_registers || few_steps) => 8,
        _ => 1,
    };
    Schedule { tile, rows, ..plain }
}

/// The tile for rows of a few elements, whose lanes would stay empty: lanes are taken from as many rows
/// instead.
fn short_rows(problem: &Problem, reducer: &Reducer) -> Option<Tile> {
    let elements: u64 = problem.dims.iter().filter(|d| d.reduced).map(|d| d.extent).product();
    let by = match elements {
        2..=4 if light(reducer) => 4 * HEAVY_OUTPUTS,
        2..=8 => HEAVY_OUTPUTS,
        _ => return None,
    };
    let (dim, var) = output_loops(problem).pop()?;
    (problem.dims[dim].extent >= by).then_some(Tile { var, by })
}

/// How many blocks to take at once where the lanes of one are too few to hide the latency of a combine.
fn blocks_in_flight(problem: &Problem, reducer: &Reducer) -> u64 {
    let tree = Tree::of(problem, &reducer.method);
    let innermost = problem.dims.iter().rfind(|d| d.reduced).map_or(1, |d| d.extent);
    let bytes = innermost.min(tree.lanes) * reducer.method.state_bytes();
    let few = bytes <= LATENCY_BYTES && tree.blocks() >= 8;
    if few && problem.count > 0 { 4 } else { 1 }
}

/// Whether an element costs little more than its load, so that visiting accumulators less often shows.
fn light(reducer: &Reducer) -> bool {
    let ops = |def: &Def| def.lets.len() + def.results.iter().map(|r| r.args().len()).sum::<usize>();
    reducer.method.phases().iter().all(|p| ops(&p.lift) + ops(&p.combine) <= LIGHT_OPS)
}

/// The tile of at most `most` outputs (at least one) inside the last reduction dim; none where no output dim
/// inside has a loop.
fn tile_of(problem: &Problem, last: usize, most: u64) -> Option<Tile> {
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
        // Even shares, so that no narrow tile is left over.
        let share = extent.div_ceil(extent.div_ceil((most / outputs).max(1)));
        let by = if share > LANES { share.next_multiple_of(LANES).min(extent) } else { share };
        return match tile {
            Some(tile) if by <= 1 => Some(tile),
            _ => Some(Tile { var, by }),
        };
    }
    tile
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
        let loops = output_loops(problem);
        let first = match self.tile {
            None => problem.dims.len(),
            Some(tile) => match loops.iter().find(|&&(_, var)| var == tile.var) {
                Some(&(dim, _)) => dim,
                None => {
                    let names: Vec<String> = loops.iter().map(|(_, var)| var.to_string()).collect();
                    let loops = if names.is_empty() { "none".into() } else { names.join(" ") };
                    return Err(ScheduleError::NoLoop { var: tile.var, loops });
                }
            },
        };
        let reduces = problem.count > 0 && problem.dims.iter().any(|d| d.reduced);
        let Some(reducer) = problem.reducer().filter(|_| reduces) else { return Ok(()) };
        let bytes = self.state_bytes(problem, &reducer, first);
        match bytes <= Schedule::MAX_STATE_BYTES {
            true => Ok(()),
            false => Err(ScheduleError::StateTooLarge { bytes, limit: Schedule::MAX_STATE_BYTES }),
        }
    }

    /// The bytes of the states that are kept at once, where the dims from `first` on are in the tile.
    fn state_bytes(&self, problem: &Problem, reducer: &Reducer, first: usize) -> u64 {
        let tree = Tree::of(problem, &reducer.method);
        let outputs =
            problem.dims.iter().enumerate().skip(first).filter(|(_, d)| !d.reduced).map(|(dim, d)| match self.tile {
                Some(tile) if dim == first => tile.by.min(d.extent),
                _ => d.extent,
            });
        let lanes = outputs.fold(tree.lanes, u64::saturating_mul);
        lanes.saturating_mul(reducer.method.state_bytes()).saturating_mul(states_kept(&tree, self.blocks))
    }
}

/// How many states of a tile live at once: of the blocks in flight, a level of the stack for each
/// doubling of the number of blocks, and of what is merged and folded at the end.
fn states_kept(tree: &Tree, in_flight: u64) -> u64 {
    u64::from(tree.blocks().ilog2()) + 2 + in_flight
}
