//! Values of elements that are kept between the visits of a slice.
//!
//! The first visit that needs a kept value computes it at each element and puts it into scratch memory; later visits
//! read it there. The bits are those of the computation that is left out. With `keep=v1` the nest of
//! `e = exp(x - max(x)); e / sum(e)` has, after the visit of the maximum,
//!
//! ```text
//! acc a5: f32[128] = 0.0
//! for k3 in 0..2 seq {
//!   for l4 in 0..64 parallel {
//!     let v6 = keep_v1(x0[128*i0 + 64*k3 + l4], a4[0])
//!     a5[64*k3 + l4] = v6
//!     a6[l4] = add(a6[l4], v6)
//!   }
//! }
//! fold a6 by combine_add over 64 of 64 by 1
//! for p5 in 0..128 parallel { x1[128*i0 + p5] = apply(a5[p5], a6[0]) }
//! ```
//!
//! Visits number elements alike: a value is kept only where its inputs have the same boxes in all of them
//! ([`Problem::keepable`](crate::problem::Problem::keepable)).

use super::{At, Lowering, Slice};
use cranefold_ir::{Expr, Scalar, Stmt};

impl Lowering<'_> {
    /// Declares the memory of the kept values that a visit is the first to need, and returns these, each with the
    /// values of the slice that it takes. Where there is but one visit, a value needs no memory.
    pub(super) fn begin_keeping(&mut self, inputs: &[usize], slice: &mut Slice) -> Vec<(usize, Vec<Expr>)> {
        let Some(computation) = self.computation.clone() else { return vec![] };
        let mut computed = vec![];
        for &input in inputs {
            let Some(k) = input.checked_sub(self.problem.first_kept()) else { continue };
            if self.kept[k].is_some() {
                continue;
            }
            let kept = &computation.kept[k];
            computed.extend(self.begin_keeping(&kept.inputs, slice));
            // A visit that writes outputs is the only one.
            let (zeros, count) = ([Scalar::zero(kept.dtype())], self.problem.count);
            let (state, accs) = self.accumulate(if self.visit.writes { &[] } else { &zeros }, count);
            slice.body.extend(accs);
            self.kept[k] = Some(state);
            computed.push((k, slice.take(&kept.takes)));
        }
        computed
    }

    /// The elements of inputs, indices and kept values, after the statements that compute and keep some of them.
    pub(super) fn elements(&mut self, inputs: &[usize], at: &At) -> (Vec<Stmt>, Vec<Expr>) {
        let (mut stmts, mut elements) = (vec![], vec![]);
        // What one kept value is computed from may be another one, which is computed once.
        let mut known: Vec<(usize, Expr)> = vec![];
        for &input in inputs {
            let element = self.element_of(input, at, &mut known, &mut stmts);
            elements.push(element);
        }
        (stmts, elements)
    }

    fn element_of(&mut self, input: usize, at: &At, known: &mut Vec<(usize, Expr)>, stmts: &mut Vec<Stmt>) -> Expr {
        let Some(k) = input.checked_sub(self.problem.first_kept()) else { return self.load(input, at) };
        if let Some((_, element)) = known.iter().find(|(of, _)| *of == k) {
            return element.clone();
        }
        let state = self.kept[k].clone().expect("a visit begins with what it keeps");
        let Some((_, takes)) = self.visit.computed.iter().find(|(of, _)| *of == k).cloned() else {
            return state.read(&at.element()).remove(0);
        };
        let computation = self.computation.clone().expect("of what keeps values");
        let kept = &computation.kept[k];
        let mut args: Vec<Expr> = kept.inputs.iter().map(|&i| self.element_of(i, at, known, stmts)).collect();
        args.extend(takes);
        let (applied, mut values) = self.apply(&kept.def, args);
        stmts.extend(applied);
        let value = values.remove(0);
        let value = if let Expr::Var(..) = value {
            value
        } else {
            let (var, dtype) = (self.names.var(), value.dtype());
            stmts.push(Stmt::Let { var, value });
            Expr::Var(var, dtype)
        };
        stmts.extend(state.set(&at.element(), vec![value.clone()]));
        known.push((k, value.clone()));
        value
    }
}
