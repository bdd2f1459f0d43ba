//! The form in which a reducer is computed.
//!
//! A row of the op table may have a second form, the direct one: the same results by other operations on another state.
//! The form that takes less work depends on the vectors and on the number of elements in a slice. The form is
//! therefore a decision of the schedule, and no part of the meaning of a problem.
//!
//! A state of another size has another tree, so the two forms combine elements in different orders. No result shows it:
//! a row has a direct form only if both are exact in every order (`tests/laws/forms.rs` names these rows, and compares
//! both forms with a walk over the slice). A reduction that rounds has one form on all machines.

use super::machine::Machine;
use crate::problem::Problem;
use crate::problem::search_windows::Windows;
use crate::vectors::Vectors;
use cranefold_ir::ops::{Computation, Form, Phase, Reducer};
use cranefold_ir::work::Work;
use cranefold_ir::{DType, Op};

/// The work, in operations times bytes, at the ends of the phases of a slice among so many columns or fewer, and among more,
/// that fill no vector: a phase waits for the results of the phase before, which folds several values in the plain form.
/// `argmax` of bf16[138,36,6] over axis 1 took 4.2 us in the plain form and 2.9 in the direct one, of bf16[10,200,14] 1.7 and
/// 2.0.
const ENDING: [u64; 2] = [400, 200];
const FEW_COLUMNS: u64 = 7;

/// The rows of states, in those that registers hold, from which on every step reads and writes them: maxima of 7,990 rows of
/// 56 runs of 9 bf16 took 300 us, and 100 in the direct form, which has a third of the state.
const VISITED_ROWS: u64 = 3;

/// The form of a problem that takes less work on vectors of `width` bits.
///
/// ```
/// use cranefold::ops::Form;
/// use cranefold::schedule::choose_form;
/// use cranefold::{Problem, Spec};
///
/// let problem = |spec: &str| Ok::<_, cranefold::SpecError>(Problem::of(&spec.parse::<Spec>()?));
/// let (one, two) = (problem("max f32[8,1000] axes=[1]")?, problem("min,max f32[8,1000] axes=[1]")?);
/// assert_eq!(choose_form(&one, 512), Form::Direct, "by value");
/// assert_eq!(choose_form(&one, 256), Form::Plain, "on the bits");
/// assert_eq!(choose_form(&two, 512), Form::Plain, "there is one form alone");
/// let (short, long) = (problem("max bf16[8,48] axes=[1]")?, problem("max bf16[8,1000] axes=[1]")?);
/// assert_eq!(choose_form(&short, 512), Form::Direct, "one value to fold");
/// assert_eq!(choose_form(&long, 512), Form::Plain, "three operations an element");
/// # Ok::<(), cranefold::SpecError>(())
/// ```
pub fn choose_form(problem: &Problem, width: u32) -> Form {
    let Some(direct) = slice_work(problem, Form::Direct, width) else { return Form::Plain };
    let takes_more = |plain: Computation| {
        // A search visits most elements once, where the direct form visits all twice.
        let is_searched = Windows::of_computation(problem, &plain).is_some();
        let of_plain =
            |reducer: &Reducer| work(problem, reducer, width).saturating_add(ending_columns(problem, reducer, width));
        !is_searched && plain.groups().next().is_some_and(|group| direct < of_plain(&group.reducer))
    };
    if problem.computation_in(Form::Plain).is_some_and(takes_more) { Form::Direct } else { Form::Plain }
}

/// The work of a slice in a form on vectors of `width` bits: operations of vectors where slices are rows, and of the bytes of
/// lanes where other slices fill the vectors. Rows too short for vectors of their own have as many lanes in every phase as
/// the widest phase; a state that registers do not hold is read and written at each step. `None` if the problem has no
/// such form.
pub fn slice_work(problem: &Problem, form: Form, width: u32) -> Option<u64> {
    problem.reducer_in(form).map(|reducer| work(problem, &reducer, width))
}

/// The work of a slice by a reducer.
fn work(problem: &Problem, reducer: &Reducer, width: u32) -> u64 {
    let machine = Machine::TYPICAL;
    match run(problem) {
        Some(run) if width > Vectors::BASE.bits && run > u64::from(width) / 32 => {
            of_row(reducer, problem.count, width, &machine)
        }
        Some(_) => {
            let widest = reducer.method.phases().iter().map(lane_bytes).max().unwrap_or(1);
            of_slice(reducer, problem.count, width, &machine, |_| widest, |_| 0)
        }
        None => {
            let is_alone = reducer.method.phases().len() == 1;
            let row = row_of_runs(problem, width).filter(|_| is_alone).unwrap_or(0);
            let visits = |phase: &Phase| {
                let is_row = row.saturating_mul(phase.state_bytes()) > VISITED_ROWS * machine.state_bytes(width);
                if is_row { 2 * phase.identity.len() as u64 } else { 0 }
            };
            of_slice(reducer, problem.count, width, &machine, lane_bytes, visits)
        }
    }
}

/// The elements of slices that are runs of memory.
fn run(problem: &Problem) -> Option<u64> {
    let [elements] = problem.elements() else { return None };
    let [run] = elements.dims.as_slice() else { return None };
    (run.stride.inputs.first() == Some(&1)).then_some(run.extent)
}

/// The elements of a row of neighbouring slices, where slices are runs too short for vectors of `width` bits.
fn row_of_runs(problem: &Problem, width: u32) -> Option<u64> {
    let (elements, slices) = (problem.elements().first()?, problem.slices.first()?);
    let (run, across) = (elements.dims.last()?, slices.dims.last()?);
    let bytes = run.extent.saturating_mul(problem.inputs.first()?.operand.dtype.bytes());
    let is_row = run.stride.inputs.first()? == &1 && across.stride.inputs.first()? == &(run.extent as i64);
    (is_row && bytes < u64::from(width / 8)).then(|| run.extent.saturating_mul(across.extent))
}

/// The work at the ends of the phases of a slice that the direct form saves, where slices are columns that fill no vector.
fn ending_columns(problem: &Problem, reducer: &Reducer, width: u32) -> u64 {
    let (Some(slices), Some(input)) = (problem.slices.first(), problem.inputs.first()) else { return 0 };
    let [.., _, columns] = slices.dims.as_slice() else { return 0 };
    let bytes = columns.extent.saturating_mul(input.operand.dtype.bytes());
    let are_columns = columns.stride.inputs.first() == Some(&1) && bytes < u64::from(width / 8);
    let waits = reducer.method.phases().len() > 1;
    let has_masks = Vectors::WIDEST.at_most(width).has_masks();
    if has_masks && are_columns && waits { ENDING[usize::from(columns.extent > FEW_COLUMNS)] } else { 0 }
}

/// Bytes of a lane of a phase: those of the widest value of its state.
fn lane_bytes(phase: &Phase) -> u64 {
    phase.identity.iter().map(|value| value.dtype().bytes()).max().unwrap_or(1)
}

/// The operations of vectors on a row of `count` elements, and those at the end of each phase: of the folds of its lanes, and
/// on the result.
fn of_row(reducer: &Reducer, count: u64, width: u32, machine: &Machine) -> u64 {
    let work = Work::new(&[], |op, dtype| machine.operations(op, dtype, width));
    let of_phase = |phase: &Phase| {
        let vectors = count.saturating_mul(8 * lane_bytes(phase)).div_ceil(u64::from(width));
        let of_vector = work.def(&phase.lift) + work.def(&phase.combine);
        let folds = machine.folding_ops(width) * phase.identity.len() as u64;
        vectors.saturating_mul(of_vector).saturating_add(folds + closing(phase, &work))
    };
    reducer.method.phases().iter().map(of_phase).fold(0, u64::saturating_add)
}

/// The operations on the elements of a slice of `count`, and the visits of the state at each, times the bytes of the phase's
/// lanes. The first element is the state.
fn of_slice(
    reducer: &Reducer,
    count: u64,
    width: u32,
    machine: &Machine,
    bytes: impl Fn(&Phase) -> u64,
    visits: impl Fn(&Phase) -> u64,
) -> u64 {
    let work = Work::new(&[], |op, dtype| machine.operations(op, dtype, width));
    let of_phase = |phase: &Phase| {
        let (lift, combine) = (work.def(&phase.lift) + visits(phase), work.def(&phase.combine));
        let operations = count.saturating_mul(lift).saturating_add(count.saturating_sub(1).saturating_mul(combine));
        operations.saturating_add(closing(phase, &work)).saturating_mul(bytes(phase))
    };
    let phases = reducer.method.phases().iter().map(of_phase).fold(0, u64::saturating_add);
    let finish = work.def(&reducer.finish).saturating_mul(reducer.method.phases().first().map_or(1, bytes));
    phases.saturating_add(finish)
}

/// The operations on the state of a phase that make what later phases read.
fn closing(phase: &Phase, work: &Work<impl Fn(Op, DType) -> u64>) -> u64 {
    phase.close.as_ref().map_or(0, |close| work.def(close))
}

/// The operations of a lane on an element, by phase, on vectors of `width` bits.
pub(super) fn operations(reducer: &Reducer, width: u32, machine: &Machine) -> Vec<u64> {
    let work = Work::new(&[], |op, dtype| machine.operations(op, dtype, width));
    let of = |p: &Phase| match &p.update {
        Some(update) => work.def(update),
        None => work.def(&p.lift) + work.def(&p.combine),
    };
    reducer.method.phases().iter().map(of).collect()
}

/// The operations on the state of a slice that make its result.
pub(super) fn finishing(reducer: &Reducer, width: u32, machine: &Machine) -> u64 {
    Work::new(&[], |op, dtype| machine.operations(op, dtype, width)).def(&reducer.finish)
}
