//! The form in which a problem is computed on some vectors.
//!
//! A row of the op table may have a second form, the direct one: the same results by other operations on another
//! state. Which takes less depends on what is an operation of the vectors, and on how many elements share what comes once
//! a slice. So the form is no part of what a problem means: it is chosen for the width, before a schedule is, and the
//! problem in that form goes through lowering and passes as any other.
//!
//! A state of another size has another tree, so that elements are combined in another order where the width is another.
//! That cannot show: a row has such a form only where both are exact in every order (`tests/laws/forms.rs` names these
//! rows, and holds both forms to a walk over the slice). What is not exact has one form on all machines.

use super::{Problem, Work};
use cranefold_ir::ops::{Phase, Reducer};
use cranefold_ir::{Def, Expr, Op};
use std::borrow::Cow;

/// Operations in the time of a division or a square root.
const DIVISION: usize = 6;

/// Operations in the time of an IEEE 754 minimum or maximum: of vectors of 512 bits a comparison beside that of the
/// instruction, of others five instructions.
const EXTREME: usize = 2;
const EXTREME_OF_NARROW: usize = 5;

impl Problem {
    /// The problem in the form that takes fewer operations on vectors of `width` bits.
    ///
    /// ```
    /// use cranefold::{Problem, Reduction};
    ///
    /// let rows = |spec: &str| Ok::<_, cranefold::SpecError>(Problem::of(&spec.parse::<Reduction>()?));
    /// let is_direct = |problem: &Problem, width| problem.on_vectors(width).to_string().contains("over 1000 direct");
    /// let (one, two) = (rows("max f32[8,1000] axes=[1]")?, rows("min,max f32[8,1000] axes=[1]")?);
    /// assert!(is_direct(&one, 512) && !is_direct(&one, 256) && !is_direct(&two, 512));
    /// # Ok::<(), cranefold::SpecError>(())
    /// ```
    pub fn on_vectors(&self, width: u32) -> Cow<'_, Problem> {
        let Work::Reduce(recipe) = &self.work else { return Cow::Borrowed(self) };
        let Some(direct) = recipe.in_direct_form() else { return Cow::Borrowed(self) };
        let direct = Problem { work: Work::Reduce(direct), ..self.clone() };
        let [of_plain, of_direct] =
            [self, &direct].map(|problem| problem.reducer().map(|r| weight_of_slice(&r, self.count, width)));
        if of_direct < of_plain { Cow::Owned(direct) } else { Cow::Borrowed(self) }
    }
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
pub(crate) fn operations(reducer: &Reducer, width: u32) -> Vec<usize> {
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
