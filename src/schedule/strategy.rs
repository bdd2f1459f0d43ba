//! The strategies: ways to walk slices, each with its schedules and their cost side by side in one file.
//!
//! | strategy | slices are | schedules |
//! | --- | --- | --- |
//! | [`contiguous`] | contiguous slices | one output after the other; several blocks at once, interleaved, or asked for ahead |
//! | [`runs`] | runs of memory far apart | tiles that move into the loops over blocks |
//! | [`across`] | slices of a few elements, with few outputs between them | tiles that move into the loops over steps and over those outputs |
//! | [`rows`] | slices in short rows of outputs, a row apart from the next | tiles that move into the loops over steps: rows become one |
//! | [`short_slices`] | slices of a few elements | tiles that move into the loops over steps: a lane for each slice |
//! | [`transposed`] | slices across the lines of an input, or with trees of one lane | the same |
//! | [`side_by_side`] | runs of a few elements between those of other slices | tiles that move into the loops over steps, around lanes |
//! | [`shared_folds`] | slices of a few steps | tiles of outputs whose lanes fold together |
//! | [`columns`] | columns | tiles that move into the loops over steps, several steps in one visit |
//! | [`column_by_column`] | few columns beside values of their rows | tiles that move into the loops over blocks |

pub(super) mod across;
mod column_by_column;
mod columns;
mod contiguous;
mod gather;
mod later;
pub(super) mod positions;
mod rows;
mod runs;
mod shared_folds;
mod short_slices;
mod side_by_side;
mod transposed;

use super::cost::{Cost, Visit};
use super::facts::{Facts, OutputLoop};
use super::machine::{Level, Machine};
use super::{Schedule, Tile, Transform};
use crate::vectors::Vectors;
use cranefold_ir::region::Repeated;

/// The most lanes a vector has: tiles are whole vectors.
const LANES: u64 = 16;

/// The lanes of tiles of values of more than four bytes, which fill a vector of 512 bits: with twice as many, `argmax` of
/// f64 took 1.5 times as long, and `var` over few columns up to five times.
const LANES_OF_LONG: u64 = 8;

/// The prefetch distance in bytes of data in a cache, and of data in memory: parts of the first-level and of the
/// second-level cache.
const AHEAD_BYTES: [u64; 2] = [8 << 10, 32 << 10];

/// The fewest lines of a loop that loads whole ones, where slices begin anywhere in a line, and where all begin where the
/// first does: rows of 768 and 1,024 floats took 1.1 times as long that way, and no less where the first began beside a
/// line.
const LEAST_LINES: [u64; 2] = [32, 128];

/// Outputs in a vector of f32 of 128 bits.
const LEAST_OUTPUTS: u64 = 4;

/// A way to walk slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    Across,
    Rows,
    Contiguous,
    Runs,
    SideBySide,
    ShortSlices,
    Transposed,
    SharedFolds,
    Columns,
    ColumnByColumn,
}

use Strategy::{
    Across, ColumnByColumn, Columns, Contiguous, Rows, Runs, SharedFolds, ShortSlices, SideBySide, Transposed,
};

/// Every strategy, in the order in which their schedules are considered: the first of equal cost is chosen.
const ALL: [Strategy; 10] =
    [Across, Rows, Contiguous, Runs, SideBySide, ShortSlices, Transposed, SharedFolds, Columns, ColumnByColumn];

impl Strategy {
    /// The strategy of a schedule. No other function interprets the tiles of a schedule.
    fn of(facts: &Facts, schedule: &Schedule) -> Strategy {
        let tile = facts.loops.iter().flatten().find_map(|l| schedule.tile_of(l.var));
        match (facts.is_inner(), tile.map(|tile| tile.transform)) {
            (_, Some(Transform::Across)) => Across,
            (_, Some(Transform::Rows)) => Rows,
            (false, Some(Transform::Runs)) => ColumnByColumn,
            (false, _) => Columns,
            (true, None) => Contiguous,
            (true, Some(Transform::Blocks | Transform::Runs)) => Runs,
            (true, Some(Transform::Lanes)) => SideBySide,
            (true, Some(Transform::SharedFolds)) => SharedFolds,
            (true, Some(Transform::Steps)) if facts.crosses() || transposed::has_one_lane(facts) => Transposed,
            (true, Some(Transform::Steps)) => ShortSlices,
        }
    }

    /// The schedules of this strategy, each a change of the plain one; none if the slices are of another kind.
    fn candidates(self, facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
        if !matches!(self, Across | Rows) && matches!(self, Columns | ColumnByColumn) == facts.is_inner() {
            return vec![];
        }
        match self {
            Across => across::candidates(facts, plain),
            Rows => rows::candidates(facts, plain),
            Contiguous => contiguous::candidates(facts, plain),
            Runs => runs::candidates(facts, plain),
            SideBySide => side_by_side::candidates(facts, plain),
            ShortSlices => short_slices::candidates(facts, plain),
            Transposed => transposed::candidates(facts, plain),
            SharedFolds => shared_folds::candidates(facts, plain),
            Columns => columns::candidates(facts, plain),
            ColumnByColumn => column_by_column::candidates(facts, plain),
        }
    }

    /// Returns true if the lanes of a vector are elements of one slice.
    fn is_of_one_slice(self) -> bool {
        matches!(self, Contiguous | Runs | SharedFolds | ColumnByColumn)
    }

    /// The cost of a schedule of this strategy, without the cost of the call.
    fn cost(self, facts: &Facts, schedule: &Schedule) -> Cost {
        let cost = match self {
            Across => across::cost(facts, schedule),
            Rows => rows::cost(facts, schedule),
            Contiguous => contiguous::cost(facts, schedule),
            Runs => runs::cost(facts, schedule),
            SideBySide => side_by_side::cost(facts, schedule),
            ShortSlices => short_slices::cost(facts, schedule),
            Transposed => transposed::cost(facts, schedule),
            SharedFolds => shared_folds::cost(facts, schedule),
            Columns => columns::cost(facts, schedule),
            ColumnByColumn => column_by_column::cost(facts, schedule),
        };
        let later = later::visits(facts, schedule).into_iter().chain(positions::visit(facts, schedule));
        let reading_ns = cost.reading_ns + gather::ns(facts);
        Cost { reading_ns, later_ns: later.map(|visit| visit.ns).sum(), ..cost }
    }
}

/// Every schedule that may be the fastest on vectors of `width` bits, at least one.
pub(super) fn candidates(facts: &Facts, width: u32) -> Vec<Schedule> {
    let nontemporal = positions::pass_caches(facts, width);
    let plain =
        Schedule { width, form: facts.form, nontemporal, gather: gather::stretch(facts), ..Schedule::default() };
    let mut all: Vec<Schedule> = ALL.into_iter().flat_map(|strategy| strategy.candidates(facts, &plain)).collect();
    let asking: Vec<Schedule> =
        all.iter().filter_map(|s| Some(Schedule { prefetch: ahead(facts, s)?, ..s.clone() })).collect();
    all.extend(asking);
    let loads_lines = |s: &&Schedule| line_loops(facts, s).is_some();
    let aligned: Vec<Schedule> =
        all.iter().filter(loads_lines).map(|s| Schedule { align: Machine::LINE_BYTES, ..s.clone() }).collect();
    all.extend(aligned);
    let keep: Vec<String> = facts.repeated.iter().map(|(value, _)| value.name.clone()).collect();
    if !keep.is_empty() {
        let keeping: Vec<Schedule> = all.iter().map(|s| Schedule { keep: keep.clone(), ..s.clone() }).collect();
        all.extend(keeping.into_iter().filter(|schedule| fits(facts, schedule)));
    }
    if facts.writes_first {
        // A value that is computed once for the output and for the reduction takes no memory.
        let keep: Vec<String> = facts.problem.keepable(|_| true).into_iter().map(|value| value.name).collect();
        let writing: Vec<Schedule> = all
            .iter()
            // Several rows of outputs at once are slower to write than one after the other.
            .filter(|s| {
                matches!(Strategy::of(facts, s), Contiguous | Runs | Columns) && s.jam == 1 && s.keep.is_empty()
            })
            .map(|s| Schedule { keep: keep.clone(), write_first: true, ..s.clone() })
            .collect();
        all.extend(writing.into_iter().filter(|schedule| fits(facts, schedule)));
    }
    all
}

/// The distance at which a schedule may ask ahead for what is read next: where memory, or the last-level cache, is idle
/// while slices are visited again, or operations take a part of the time; `None` for a schedule that gains nothing. What is
/// read once is read as fast without it.
fn ahead(facts: &Facts, schedule: &Schedule) -> Option<u64> {
    let machine = &facts.machine;
    let [near, far] = AHEAD_BYTES;
    let strategy = Strategy::of(facts, schedule);
    if schedule.width <= Vectors::BASE.bits {
        return None;
    }
    let level = machine.level(facts.bytes);
    if level < Level::Memory {
        if strategy == Columns && columns::gain_by_asking_last_cache(facts, schedule) {
            return Some(far);
        }
        let joins = facts.phases > 1 && schedule.interleave > 1;
        let gains = strategy == Contiguous && (joins || level == Level::L3 && facts.leaves_idle());
        return (gains && have_room(facts, schedule.interleave, near)).then_some(near);
    }
    let visits_again = facts.phases > 1 || facts.leaves_idle();
    let gains = match strategy {
        Contiguous | Runs => visits_again,
        Columns => columns::gain_by_asking(facts, schedule, visits_again),
        Across | Rows | ShortSlices | Transposed | SharedFolds | SideBySide | ColumnByColumn => false,
    };
    gains.then_some(far)
}

/// Returns true if `slices` slices with their outputs, and `ahead` bytes of each input, fit the first-level cache together.
/// Two rows of 3 KB of two inputs, with 8 KB of each asked for ahead, took 1.2 times as long as without.
fn have_room(facts: &Facts, slices: u64, ahead: u64) -> bool {
    let written = facts.written.as_ref().map_or(0, |written| written.bytes);
    let of_slices = facts.bytes.saturating_add(written) / facts.slices.max(1) * slices;
    let operands = facts.problem.inputs.iter().map(|input| &input.operand);
    let walked = operands.filter(|o| o.len.saturating_mul(o.dtype.bytes()) > ahead).count() as u64;
    of_slices + walked * ahead <= facts.machine.cache_bytes[Level::L1 as usize]
}

/// Returns true if the element values that a schedule keeps fit.
fn fits(facts: &Facts, schedule: &Schedule) -> bool {
    let values: Vec<Repeated> = facts.repeated.iter().map(|(value, _)| value.clone()).collect();
    schedule.kept_bytes(facts.problem, &values, &facts.loops) <= Schedule::MAX_KEPT_BYTES
}

/// The time of element values that several visits need: the first stores them and those after it load them, or each
/// computes them.
fn keeping_ns(facts: &Facts, schedule: &Schedule) -> f64 {
    let vectors = facts.vectors(vector_bytes(schedule));
    let one = |(value, operations): &(Repeated, u64)| {
        let (visits, once_ns) = (value.visits as f64, vectors * *operations as f64 / facts.machine.vector_ops);
        match schedule.keep.contains(&value.name) {
            true if schedule.write_first => once_ns,
            true => once_ns + visits * vectors * vector_bytes(schedule) / facts.machine.state_rate,
            false => visits * once_ns,
        }
    };
    facts.repeated.iter().map(one).sum()
}

/// The visits of slices, in order.
pub(super) fn visits(facts: &Facts, schedule: &Schedule) -> Vec<Visit> {
    let first = Cost { later_ns: 0.0, ..Strategy::of(facts, schedule).cost(facts, schedule) };
    let operations = facts.elements() / later::lanes(facts, schedule, facts.value_bytes) * facts.operations as f64;
    let first = Visit {
        name: facts.name.clone(),
        read_bytes: facts.bytes,
        times: facts.phases,
        level: facts.machine.level(facts.bytes),
        written_bytes: 0,
        operations: facts.operations,
        port_cycles: operations / facts.machine.ports,
        ns: first.total_ns(),
    };
    let mut visits: Vec<Visit> = [first].into_iter().chain(later::visits(facts, schedule)).collect();
    match positions::visit(facts, schedule) {
        Some(outputs) if schedule.write_first => {
            let first = &mut visits[0];
            first.written_bytes = outputs.written_bytes;
            first.operations += outputs.operations;
            first.port_cycles += outputs.port_cycles;
            first.ns += outputs.ns;
        }
        outputs => visits.extend(outputs),
    }
    visits
}

/// The cost of a call of code by a schedule.
pub(super) fn cost(facts: &Facts, schedule: &Schedule) -> Cost {
    let is_wide = schedule.width > Vectors::BASE.bits;
    let calling_ns = if is_wide { facts.machine.wide_call_ns } else { 0.0 };
    let keeping_ns = keeping_ns(facts, schedule);
    let cost = Cost { calling_ns, keeping_ns, ..Strategy::of(facts, schedule).cost(facts, schedule) };
    match line_loops(facts, schedule) {
        None => cost,
        Some(loops) if schedule.align > 0 => {
            Cost { ending_ns: cost.ending_ns + loops * facts.machine.line_ends_ns, ..cost }
        }
        Some(_) => {
            let across = facts.machine.reading_across[facts.machine.level(facts.bytes) as usize];
            Cost { reading_ns: cost.reading_ns * across, ..cost }
        }
    }
}

/// The number of loops over steps that may load whole lines of memory; none where they wait for operations, are short, or
/// load no vectors of a line that follow one another.
fn line_loops(facts: &Facts, schedule: &Schedule) -> Option<f64> {
    let has_masks = Vectors::WIDEST.at_most(schedule.width).has_masks();
    let waits_for_memory = !facts.waits && facts.is_light && facts.value_bytes == facts.element_bytes;
    // Of columns, a step takes all that lie side by side.
    let (side_by_side, in_loop) = match facts.is_inner() {
        true if facts.follows() => (1, facts.slice_bytes() / facts.tree.blocks()),
        true => return None,
        false if Strategy::of(facts, schedule) == ColumnByColumn => return None,
        false => (columns::whole(facts, schedule)?, facts.input_bytes),
    };
    let loops = facts.slices as f64 * facts.tree.blocks() as f64 / side_by_side as f64;
    let begin_alike = facts.slices > 1 && facts.slice_bytes().is_multiple_of(Machine::LINE_BYTES);
    let least = LEAST_LINES[usize::from(begin_alike)];
    (has_masks && waits_for_memory && in_loop >= least * Machine::LINE_BYTES).then_some(loops)
}

/// The schedule with the tiles of the boxes of slices that have one; `None` if no box has one.
fn tiled(facts: &Facts, plain: &Schedule, tile: impl Fn(usize) -> Option<Tile>) -> Option<Schedule> {
    let tiles: Vec<Tile> = (0..facts.loops.len()).filter_map(tile).collect();
    (!tiles.is_empty()).then(|| Schedule { tiles, ..plain.clone() })
}

/// The tile of at most `most` outputs (at least one) of these loops, a multiple of `whole` if possible.
fn tile_of(inside: &[OutputLoop], most: u64, whole: u64, transform: Transform) -> Option<Tile> {
    let mut outputs = 1;
    let mut tile = None;
    for &OutputLoop { var, extent, .. } in inside.iter().rev() {
        if outputs * extent <= most {
            outputs *= extent;
            tile = Some(Tile { var, by: extent, transform });
            continue;
        }
        // The shares are even, so that no narrow tile is left over.
        let fit = (most / outputs).max(1);
        let share = extent.div_ceil(extent.div_ceil(fit));
        let even = share.next_multiple_of(whole).min(extent);
        let by = if even <= fit { even } else { share };
        return match tile {
            Some(tile) if by <= 1 => Some(tile),
            _ => Some(Tile { var, by, transform }),
        };
    }
    tile
}

/// Outputs of an unrolled tile if an element takes many operations: one vector of f32, so that the code stays short.
fn vector_outputs(width: u32) -> u64 {
    u64::from(width / 32).clamp(LEAST_OUTPUTS, LANES)
}

/// The operations that bring the elements of vectors together whose lanes lie apart in memory: by transposes, of so many
/// operations a vector, or element by element.
fn gathering_ops(facts: &Facts, schedule: &Schedule, transpose_ops: f64) -> f64 {
    match schedule.transpose {
        true => facts.vectors(vector_bytes(schedule)) * transpose_ops,
        false => facts.elements() * facts.machine.gather_ops,
    }
}

/// The outputs of a tile of the innermost output loop, and all of that loop.
fn row_of_tiles(facts: &Facts, schedule: &Schedule) -> Option<(u64, u64)> {
    let last = facts.loops.iter().filter_map(|loops| loops.last());
    let mut tiled = last.filter_map(|l| Some((schedule.tile_of(l.var)?.by.clamp(1, l.extent), l.extent)));
    tiled.next()
}

/// The time of the empty lanes of vectors in which the results of a tile's outputs are made: those are values of four bytes at
/// least.
fn unfilled_ns(facts: &Facts, schedule: &Schedule) -> f64 {
    let Some((by, extent)) = row_of_tiles(facts, schedule) else { return 0.0 };
    let lanes = (vector_bytes(schedule) / facts.value_bytes.max(4) as f64).max(1.0);
    let empty = |outputs: u64| (outputs as f64 / lanes).ceil() - outputs as f64 / lanes;
    let of_row = (extent / by) as f64 * empty(by) + empty(extent % by);
    facts.slices as f64 / extent as f64 * of_row * facts.finishing as f64 / facts.machine.vector_ops
}

/// Bytes of a vector; scalar code computes in those of 4 bytes.
fn vector_bytes(schedule: &Schedule) -> f64 {
    f64::from(schedule.width.max(32)) / 8.0
}
