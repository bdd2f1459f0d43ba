//! Few columns beside an input with one element for each of their rows: a vector takes several elements of one column.
//!
//! The weights of rows do not walk memory as rows of a few columns do, so that these are taken piece by piece, a piece for
//! each row, and neighbouring pieces of the states share vectors. Column by column, every vector is loaded by a transpose.

use super::super::cost::Cost;
use super::super::facts::{Facts, OutputLoop};
use super::super::{Schedule, Tile, Transform};
use super::{LANES, vector_bytes};
use crate::vectors::Vectors;

/// Time in ns to load the elements of one column by a transpose, for each vector and input. `sum(x * w) / sum(w)` of 10,922
/// rows of 12 took 76 us column by column, of 43,690 rows of 3 24 us.
const TRANSPOSE_NS: f64 = 1.8;

/// Time in ns of a row of columns that divide a vector, taken by itself, and of one that crosses vectors, whose parts are
/// stored before the next row reads them across: the same sums took 181 and 855 us that way.
const PIECE_NS: [f64; 2] = [1.5, 10.0];

/// The most columns of integers, and of values of more than four bytes: states of more columns often stay in registers,
/// piece by piece. `sum(x * w)` of i32 took 25 us that way in rows of 7, and 62 column by column; in rows of 6 73 and 24.
const FEW_WIDE: u64 = 6;

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
        let are_floats = problem.inputs.iter().any(|input| input.mapped && input.operand.dtype.is_float());
        let most = if are_floats && facts.value_bytes <= 4 { LANES - 1 } else { FEW_WIDE };
        (has_rows && columns <= most && !problem.takes_position).then_some(Inputs { columns, of_elements })
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

/// The time to take rows piece by piece.
pub(super) fn pieces_ns(facts: &Facts) -> f64 {
    let Some(Inputs { columns, .. }) = Inputs::of(facts) else { return 0.0 };
    elements(facts) / columns as f64 * PIECE_NS[usize::from(!LANES.is_multiple_of(columns))]
}

/// The number of elements of all slices.
fn elements(facts: &Facts) -> f64 {
    facts.slices as f64 * facts.problem.count as f64
}
