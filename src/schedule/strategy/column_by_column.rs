//! Few columns beside an input with one element for each of their rows: a vector takes several elements of one column.
//!
//! The weights of rows do not walk memory as rows of a few columns do, so that these are not joined: each takes a vector of
//! its own. Column by column, vectors are full, and loaded by transposes.

use super::super::cost::Cost;
use super::super::facts::{Facts, OutputLoop};
use super::super::{Schedule, Tile, Transform};
use super::{LANES, vector_bytes};
use crate::vectors::Vectors;

/// Time in ns to load the elements of one column by a transpose, for each vector and input. `sum(x * w) / sum(w)` of 10,922
/// rows of 12 took 76 us column by column, of 43,690 rows of 3 24 us.
const TRANSPOSE_NS: f64 = 1.8;

/// Time in ns of a row that is taken by itself: if columns divide a vector, if registers hold the states of each row, and
/// else, where parts of vectors are stored before the next row reads them across.
const ROW_NS: [f64; 3] = [1.5, 2.0, 10.0];

/// The most columns of integers whose states lie in memory, though registers would hold them: those of four bytes, and of
/// eight. The states of all their blocks are one, and folding it crosses rows. `sum(x * w)` of i32[21845,6] took 93 us row by
/// row and 31 column by column, of i32[18724,7] 18 and 46.
const FEW_INTEGERS: [u64; 2] = [5, 6];

/// The inputs of columns beside those of rows.
struct Inputs {
    /// The number of columns.
    columns: u64,
    /// The inputs whose elements of a row lie side by side.
    of_elements: u64,
}

impl Inputs {
    /// The inputs of few columns; `None` if all inputs walk as one, or columns do not lie side by side.
    fn of(facts: &Facts) -> Option<Inputs> {
        let (&[OutputLoop { extent: columns, .. }], 1) = (facts.inside(0), facts.loops.len()) else { return None };
        let problem = facts.problem;
        let step = problem.elements().first()?.dims.last()?;
        let output = problem.slices.first()?.dims.last()?;
        let strides = || output.stride.inputs.iter().zip(&step.stride.inputs);
        let mapped =
            || problem.inputs.iter().zip(strides()).filter(|(input, _)| input.mapped).map(|(_, strides)| strides);
        let has_rows = mapped().any(|(&across, &along)| across == 0 && along != 0);
        let of_elements = mapped().filter(|(across, _)| **across != 0).count() as u64;
        (has_rows && columns < LANES && !problem.takes_position).then_some(Inputs { columns, of_elements })
    }
}

pub(super) fn candidates(facts: &Facts, plain: &Schedule) -> Vec<Schedule> {
    let is_wide = plain.width > Vectors::BASE.bits;
    let (Some(Inputs { columns, .. }), true) = (Inputs::of(facts), is_wide && facts.tree.lanes_present() > 1) else {
        return vec![];
    };
    let tile = Tile { var: facts.inside(0)[0].var, by: columns, transform: Transform::Runs };
    vec![Schedule { tiles: vec![tile], ..plain.clone() }]
}

pub(super) fn cost(facts: &Facts, schedule: &Schedule) -> Cost {
    let machine = &facts.machine;
    let most = vector_bytes(schedule) / facts.value_bytes as f64;
    let vectors = elements(facts) / most.min(facts.tree.lanes_present() as f64);
    let transposed = Inputs::of(facts).map_or(1, |inputs| inputs.of_elements);
    let states = facts.slices as f64 * facts.tree.blocks() as f64 * facts.merged_bytes() as f64;
    Cost {
        reading_ns: machine.read_ns(facts.bytes),
        computing_ns: vectors * (facts.operations as f64 / machine.vector_ops + transposed as f64 * TRANSPOSE_NS),
        visiting_ns: machine.pushed * states / machine.state_rate,
        ..Cost::default()
    }
}

/// The time to take rows one by one, if weights of rows keep them from being joined.
pub(super) fn rows_ns(facts: &Facts, schedule: &Schedule) -> f64 {
    let Some(Inputs { columns, .. }) = Inputs::of(facts) else { return 0.0 };
    let of_row = (columns as f64 * facts.value_bytes as f64 / vector_bytes(schedule)).ceil() * facts.values();
    let registers = Vectors::WIDEST.at_most(schedule.width).state_registers() as f64;
    let of_floats = facts.problem.inputs.iter().any(|input| input.mapped && input.operand.dtype.is_float());
    let are_walked_alike = of_floats || columns > FEW_INTEGERS[usize::from(facts.value_bytes > 4)];
    let fit = facts.problem.walks.len() == 1 && facts.tree.lanes_present() as f64 * of_row <= registers;
    let [dividing, fitting, crossing] = ROW_NS;
    let row_ns = match (LANES.is_multiple_of(columns), fit && are_walked_alike) {
        (true, _) => dividing,
        (false, true) => fitting,
        (false, false) => crossing,
    };
    elements(facts) / columns as f64 * row_ns
}

/// The number of elements of all slices.
fn elements(facts: &Facts) -> f64 {
    facts.slices as f64 * facts.problem.count as f64
}
