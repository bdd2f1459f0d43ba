//! The form in which a reducer is computed.
//!
//! A row of the op table may have a second form, the direct one: the same results by other operations on another
//! state. Which takes less depends on what is an operation of the vectors, and on how many elements share what comes once
//! a slice. So the form is no part of what a problem means: it is a decision of the schedule.
//!
//! A state of another size has another tree, so that elements are combined in another order where the form is another.
//! That cannot show: a row has such a form only where both are exact in every order (`tests/laws/forms.rs` names these
//! rows, and holds both forms to a walk over the slice). What is not exact has one form on all machines.

use crate::problem::Problem;
use cranefold_ir::ops::{Form, Phase, Reducer};
use cranefold_ir::{Def, Expr, Op};

/// Operations in the time of a division or a square root.
const DIVISION: usize = 6;

/// Operations in the time of an IEEE 754 minimum or maximum: of vectors of 512 bits a comparison beside that of the
/// instruction, of others five instructions.
const EXTREME: usize = 2;
const EXTREME_OF_NARROW: usize = 5;

/// The form of a problem that takes fewer operations on vectors of `width` bits.
///
/// ```
/// use cranefold::ops::Form;
/// use cranefold::schedule::choose_form;
/// use cranefold::{Problem, Reduction};
///
/// let problem = |spec: &str| Ok::<_, cranefold::SpecError>(Problem::of(&spec.parse::<Reduction>()?));
/// let (one, two) = (problem("max f32[8,1000] axes=[1]")?, problem("min,max f32[8,1000] axes=[1]")?);
/// assert_eq!(choose_form(&one, 512), Form::Direct, "by value");
/// assert_eq!(choose_form(&one, 256), Form::Plain, "on the bits");
/// assert_eq!(choose_form(&two, 512), Form::Plain, "there is one form alone");
/// # Ok::<(), cranefold::SpecError>(())
/// ```
pub fn choose_form(problem: &Problem, width: u32) -> Form {
    let of = |form| slice_operations(problem, form, width);
    match (of(Form::Direct), of(Form::Plain)) {
        (Some(direct), Some(plain)) if direct < plain => Form::Direct,
        _ => Form::Plain,
    }
}

/// The operations that a slice takes in a form on vectors of `width` bits; none where the problem has no such form.
pub fn slice_operations(problem: &Problem, form: Form, width: u32) -> Option<u64> {
    Some(weight_of_slice(&problem.reducer_in(form)?, problem.count, width))
}

/// How many operations a slice of so many elements takes. The first element is the state.
fn weight_of_slice(reducer: &Reducer, count: u64, width: u32) -> u64 {
    let of_phase = |phase: &Phase| {
        let (lift, combine) = (weight(&phase.lift, width) as u64, weight(&phase.combine, width) as u64);
        count.saturating_mul(lift).saturating_add(count.saturating_sub(1).saturating_mul(combine))
    };
    let phases = reducer.method.phases().iter().map(of_phase).fold(0, u64::saturating_add);
    phases.saturating_add(weight(&reducer.finish, width) as u64)
}

/// The operations of a lane on an element, by phase, on vectors of so many bits.
pub(super) fn operations(reducer: &Reducer, width: u32) -> Vec<usize> {
    let of = |p: &Phase| match &p.update {
        Some(update) => weight(update, width),
        None => weight(&p.lift, width) + weight(&p.combine, width),
    };
    reducer.method.phases().iter().map(of).collect()
}

/// How many operations a definition takes on vectors of so many bits.
fn weight(def: &Def, width: u32) -> usize {
    let mut weight = 0;
    let mut add = |e: &Expr| {
        weight += match e {
            Expr::Op(Op::Bits, ..) => 0,
            Expr::Op(Op::Div | Op::Sqrt, ..) => DIVISION,
            Expr::Op(Op::Min | Op::Max, dtype, _) if dtype.is_float() => match width {
                512.. => EXTREME,
                _ => EXTREME_OF_NARROW,
            },
            Expr::Op(..) => 1,
            _ => 0,
        }
    };
    def.lets.iter().chain(&def.results).for_each(|e| e.visit(&mut add));
    weight
}
