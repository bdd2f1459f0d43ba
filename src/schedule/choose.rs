//! The choice of a schedule, and the check of a forced one.

use super::{Depth, Schedule, ScheduleError, Tile};
use crate::problem::{Dim, Problem, Region};
use crate::tree::{Tree, Windows};
use crate::vectors::Vectors;
use cranefold_ir::ops::{Method, Reducer};
use cranefold_ir::{Def, LoopVar};

/// Input bytes up to which vectors stay at 128 bits: a call of wider code costs more than it gains.
const TINY_BYTES: u64 = 512;

/// Bytes of accumulators that fill the 128-bit registers: a tile this small is kept in them.
const REGISTER_BYTES: u64 = 256;

/// Bytes of accumulators that rows stream through: half of the first-level cache.
const STREAM_BYTES: u64 = 16 << 10;

/// Input bytes up to which a tile in registers beats streaming whole rows: data in the first-level cache.
const CACHED_BYTES: u64 = 24 << 10;

/// Input bytes from which data comes from memory.
const FAR_BYTES: u64 = 12 << 20;

/// Bytes of a run of memory that hide what its beginning costs: runs of 12 KB ran at 17 GB/s each by itself, and at
/// 31 where those of 32 outputs followed one another.
const RUN_BYTES: u64 = 256 << 10;

/// Bytes of a run that are too few to follow those of other outputs with gain: 200 bytes had none, 800 had 17 %.
const SHORT_RUN_BYTES: u64 = 512;

/// Bytes of a page: several rows in one, taken together, ran at 8 GB/s from memory where one after the other they
/// ran at 20. That the prefetcher follows one row of a page at a time is a guess.
const PAGE_BYTES: u64 = 4 << 10;

/// Bytes of accumulators that leave the adders idle: two vectors. Four blocks of one vector each ran at
/// 80 GB/s where one ran at 52, of two at 109 against 97.
const LATENCY_BYTES: u64 = 32;

/// Blocks, or outputs, taken together where several phases have one vector of lanes each and wait for its result:
/// var over rows ran at 32 GB/s one by one, at 41 by two and at 43 by four, argmax at 30, 37 and 34.
const INTERLEAVED: u64 = 2;

/// Bytes that memory is asked for ahead where a block is read twice: while it is read again the prefetcher has nothing
/// to follow. log_sum_exp of 256 MB ran at 10.4 GB/s without, at 11.1, 12.5 and 11.8 with 4, 8 and 16 KB, var of 8 MB
/// at 45, and at 48, 52 and 49; in the first-level cache it cost nothing.
const AHEAD_BYTES: u64 = 8 << 10;

/// The most lanes a vector has: tiles are whole vectors.
const LANES: u64 = 16;

/// Outputs of a tile that is written out where an element takes many operations: one vector of f32, so
/// that the code stays short.
const HEAVY_OUTPUTS: u64 = 4;

/// Elements of a row up to which vectors of 512 bits take a lane from each of as many rows, where an element costs
/// little: rows of 16 ran at 55 GB/s, one by one at 27; of 256 bits at 19 and 43.
const SHORT_ROW: u64 = 16;

/// The most operands in lift and combine of an element that is light.
const LIGHT_OPS: usize = 12;

/// The schedule for a problem on a target with vectors of `width` bits.
///
/// - Output dims outside the innermost reduction dim stay outermost: each output is reduced from
///   lanes, blocks after blocks, with all lanes in registers. Rows of a few elements are taken several
///   at a time. Where a slice is runs of memory far apart, those of neighbouring outputs follow one another.
/// - Output dims inside it are tiled and move into the reduction, so that a step walks memory. Where
///   the data is in the first-level cache the tile fills the registers; else rows stream through a
///   tile of 16 KB, eight at a time, or one by one if they are in registers, or short and far.
/// - Where a reduction of several phases is made in wide vectors, two blocks or outputs are taken together, and
///   memory is asked for ahead of the look that reads it first.
///
/// Each box of slices has a tile of its own; rows and blocks are those of the first.
pub fn choose(problem: &Problem, width: u32) -> Schedule {
    let width = if bytes_read(problem) <= TINY_BYTES { width.min(128) } else { width };
    let plain = Schedule { width, tiles: vec![], rows: 1, blocks: 1, interleave: 1, prefetch: 0 };
    let Some(reducer) = problem.reducer() else { return plain };
    if matches!(reducer.method, Method::Select { .. }) || problem.elements.is_empty() {
        return plain;
    }
    let tree = Tree::of(problem, &reducer.method);
    let light = light(&reducer);
    let state_bytes = reducer.method.state_bytes();
    let input_bytes = problem.elements_read().saturating_mul(problem.inputs[0].operand.dtype.bytes());
    let few_steps = problem.count <= 8;
    let in_registers = input_bytes <= CACHED_BYTES || few_steps;
    let bytes = match in_registers {
        true => REGISTER_BYTES,
        false => STREAM_BYTES.min(Schedule::MAX_STATE_BYTES / states_kept(&tree, 1)),
    };
    let outputs = match few_steps && !light {
        true => HEAVY_OUTPUTS,
        // Whole vectors of the narrowest type.
        false => bytes / state_bytes / LANES * LANES,
    };
    let loops = output_loops(problem);
    let tile = |(slices, loops): (&Region, &Vec<OutputLoop>)| {
        let inside = inside(problem, slices, loops);
        match inside {
            [] if input_bytes > FAR_BYTES => runs(problem, &tree, state_bytes, slices, loops)
                .or_else(|| short_rows(problem, light, state_bytes, width, loops)),
            [] => short_rows(problem, light, state_bytes, width, loops),
            inside => tile_of(inside, outputs, Depth::Steps),
        }
    };
    let tiles: Vec<Tile> = problem.slices.iter().zip(&loops).filter_map(tile).collect();
    let inner = problem.slices.first().zip(loops.first()).is_some_and(|(s, l)| inside(problem, s, l).is_empty());
    let row_bytes = problem.beside.saturating_mul(problem.inputs[0].operand.dtype.bytes());
    let in_one_page = row_bytes < PAGE_BYTES && input_bytes > FAR_BYTES;
    let in_registers = in_registers || problem.beside.saturating_mul(state_bytes) <= REGISTER_BYTES;
    let several = few_steps || (!in_registers && !in_one_page);
    let rows = if !inner && light && tree.lanes == 1 && several { 8 } else { 1 };
    let into_blocks = tiles.iter().any(|tile| tile.depth == Depth::Blocks);
    let blocks = if inner && !into_blocks { blocks_in_flight(&tree, &reducer) } else { 1 };
    let waits = width > Vectors::BASE.bits && reducer.method.phases().len() > 1;
    let looks_once = Windows::of(problem, &reducer.method, tree.lanes).is_some();
    let (interleave, prefetch) = match waits && inner && tiles.is_empty() {
        true => (INTERLEAVED, if looks_once { 0 } else { AHEAD_BYTES }),
        false => (1, 0),
    };
    Schedule { tiles, rows, blocks, interleave, prefetch, ..plain }
}

/// The bytes of all elements read.
fn bytes_read(problem: &Problem) -> u64 {
    let element: u64 = problem.inputs.iter().filter(|i| i.mapped).map(|i| i.operand.dtype.bytes()).sum();
    problem.elements_read().saturating_mul(element)
}

/// The tile for rows of a few elements, whose lanes would stay empty: lanes are taken from as many rows
/// instead.
fn short_rows(problem: &Problem, light: bool, state_bytes: u64, width: u32, loops: &[OutputLoop]) -> Option<Tile> {
    let vector = u64::from(width / 32).clamp(HEAVY_OUTPUTS, LANES);
    let by = match problem.count {
        2..=4 if light => LANES,
        2..=8 => vector,
        9..=SHORT_ROW if light && vector == LANES => vector,
        _ => return None,
    };
    let &OutputLoop { var, extent, .. } = loops.last()?;
    // Bytes go apart in whole vectors where their distance is a power of two.
    let all = u64::from(width / 8);
    let is_bytes = state_bytes == 1 && problem.count.is_power_of_two() && width > Vectors::BASE.bits;
    let by = if is_bytes && extent >= all { all } else { by };
    (extent >= by).then_some(Tile { var, by, depth: Depth::Steps })
}

/// How many blocks to take at once where the lanes of one are too few to hide the latency of a combine.
fn blocks_in_flight(tree: &Tree, reducer: &Reducer) -> u64 {
    let bytes = tree.lanes_present() * reducer.method.state_bytes();
    if bytes <= LATENCY_BYTES && tree.blocks() >= 8 { 4 } else { 1 }
}

/// Whether an element costs little more than its load, so that visiting accumulators less often shows.
fn light(reducer: &Reducer) -> bool {
    let ops = |def: &Def| def.lets.len() + def.results.iter().map(|r| r.args().len()).sum::<usize>();
    reducer.method.phases().iter().all(|p| ops(&p.lift) + ops(&p.combine) <= LIGHT_OPS)
}

/// The tile for slices that are runs of memory far apart, of which a block takes one or more, and between which
/// lie those of neighbouring outputs: some of these follow one another.
fn runs(problem: &Problem, tree: &Tree, state_bytes: u64, slices: &Region, loops: &[OutputLoop]) -> Option<Tile> {
    let (elements, grid) = (problem.elements.first()?, tree.grids.first()?);
    let rank = |d: &Dim| problem.rank_of(d);
    let outermost = rank(elements.dims.first()?);
    let outside = slices.dims.iter().take_while(|d| rank(d) <= outermost).count();
    let innermost = rank(slices.dims[outside..].last()?);
    let around = elements.dims.iter().take_while(|d| rank(d) < innermost).count();
    let run: u64 = elements.dims[around..].iter().map(|d| d.extent).product();
    let run_bytes = run.saturating_mul(problem.inputs[0].operand.dtype.bytes());
    let kept = tree.lanes_present().saturating_mul(state_bytes).saturating_mul(states_kept(tree, 1));
    let outputs = (RUN_BYTES / run_bytes.max(1)).min(Schedule::MAX_STATE_BYTES / kept.max(1));
    let fits = grid.cut + 1 == around && run_bytes >= SHORT_RUN_BYTES && outputs > 1;
    fits.then(|| tile_of(&loops[outside..], outputs, Depth::Blocks))?
}

/// The tile of at most `most` outputs (at least one) of these loops.
fn tile_of(inside: &[OutputLoop], most: u64, depth: Depth) -> Option<Tile> {
    let mut outputs = 1;
    let mut tile = None;
    for &OutputLoop { var, extent, .. } in inside.iter().rev() {
        if outputs * extent <= most {
            outputs *= extent;
            tile = Some(Tile { var, by: extent, depth });
            continue;
        }
        // Even shares, so that no narrow tile is left over.
        let share = extent.div_ceil(extent.div_ceil((most / outputs).max(1)));
        let by = match depth {
            Depth::Steps if share > LANES => share.next_multiple_of(LANES).min(extent),
            _ => share,
        };
        return match tile {
            Some(tile) if by <= 1 => Some(tile),
            _ => Some(Tile { var, by, depth }),
        };
    }
    tile
}

/// A loop over slices.
struct OutputLoop {
    extent: u64,
    var: LoopVar,
}

/// The loops of each box of slices.
fn output_loops(problem: &Problem) -> Vec<Vec<OutputLoop>> {
    let one = |(d, var): (&Dim, LoopVar)| OutputLoop { extent: d.extent, var };
    let loops = |(slices, vars): (&Region, Vec<LoopVar>)| slices.dims.iter().zip(vars).map(one).collect();
    problem.slices.iter().zip(problem.output_loops()).map(loops).collect()
}

/// Those inside the innermost reduction dim.
fn inside<'l>(problem: &Problem, slices: &Region, loops: &'l [OutputLoop]) -> &'l [OutputLoop] {
    &loops[loops.len() - problem.inside(slices).len()..]
}

impl Schedule {
    /// Checks a forced schedule against the problem.
    ///
    /// # Errors
    /// What the schedule names that the problem does not have, or a limit it exceeds.
    pub fn check(&self, problem: &Problem) -> Result<(), ScheduleError> {
        self.check_numbers()?;
        let loops = output_loops(problem);
        for tile in &self.tiles {
            if !loops.iter().flatten().any(|l| l.var == tile.var) {
                let names: Vec<String> = loops.iter().flatten().map(|l| l.var.to_string()).collect();
                let loops = if names.is_empty() { "none".into() } else { names.join(" ") };
                return Err(ScheduleError::NoLoop { var: tile.var, loops });
            }
        }
        for loops in &loops {
            let mut tiles = self.tiles.iter().filter(|tile| loops.iter().any(|l| l.var == tile.var));
            if let (Some(first), Some(second)) = (tiles.next(), tiles.next()) {
                return Err(ScheduleError::TwoTiles { first: first.var, second: second.var });
            }
        }
        let Some(reducer) = problem.reducer().filter(|_| !problem.elements.is_empty()) else { return Ok(()) };
        let bytes = loops.iter().map(|loops| self.state_bytes(problem, &reducer, loops)).max().unwrap_or(0);
        match bytes <= Schedule::MAX_STATE_BYTES {
            true => Ok(()),
            false => Err(ScheduleError::StateTooLarge { bytes, limit: Schedule::MAX_STATE_BYTES }),
        }
    }

    /// The bytes of the states that are kept at once for a box of slices.
    fn state_bytes(&self, problem: &Problem, reducer: &Reducer, loops: &[OutputLoop]) -> u64 {
        let tree = Tree::of(problem, &reducer.method);
        let tiled = loops.iter().position(|l| self.tile_of(l.var).is_some());
        let outputs = loops.iter().skip(tiled.unwrap_or(loops.len()));
        let taken = outputs.map(|l| self.tile_of(l.var).map_or(l.extent, |tile| tile.by.min(l.extent)));
        let lanes = taken.fold(tree.lanes, u64::saturating_mul);
        lanes
            .saturating_mul(reducer.method.state_bytes())
            .saturating_mul(states_kept(&tree, self.blocks))
            .saturating_mul(self.interleave)
    }
}

/// How many states of a tile live at once: of the blocks in flight, a level of the stack for each
/// doubling of the number of blocks, and of what is merged and folded at the end.
fn states_kept(tree: &Tree, in_flight: u64) -> u64 {
    u64::from(tree.blocks().ilog2()) + 2 + in_flight
}
