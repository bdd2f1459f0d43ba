//! Writes out the folds of lanes.

use super::state::{StateAcc, accumulators, combined};
use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::rewrite;
use cranefold_ir::{Def, Expr, Index, Loop, LoopKind, Names, Nest, Over, Stmt, tree};

/// Writes a fold as loops that halve the lanes until one is left:
///
/// ```text
/// fold a0 by sum over 49 of 64 by 1
/// ->
/// for e0 in 0..17 parallel { a0[e0] = sum(a0[e0], a0[e0 + 32]) }
/// for e1 in 0..16 parallel { a0[e1] = sum(a0[e1], a0[e1 + 16]) }
/// ...
/// for e5 in 0..1 parallel { a0[e5] = sum(a0[e5], a0[e5 + 1]) }
/// ```
///
/// The halves of a state whose number of elements is no power of two start at odd places, which accumulators in
/// registers cannot have. Such a state is copied first, and only the copy lives in memory.
///
/// Legal because `fold` means just this order (see [`cranefold_ir::tree`]).
pub fn fold(mut nest: Nest, _: &Schedule, _: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let declared = accumulators(&nest);
    let body = std::mem::take(&mut nest.body);
    nest.body = rewrite(body, &mut |stmt, out| {
        let Stmt::Fold { accs, def, present, lanes, elems } = stmt else { return out.push(stmt) };
        let values: Vec<StateAcc> = accs.iter().map(|acc| declared[acc]).collect();
        let fold = Fold { def: nest.def(def).clone(), present, lanes, elems };
        out.extend(fold.write_out(&values, &mut nest, &mut names))
    });
    nest
}

/// A fold without its accumulators.
struct Fold {
    def: Def,
    present: u64,
    lanes: u64,
    elems: u64,
}

impl Fold {
    fn write_out(&self, values: &[StateAcc], nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
        if self.elems.is_power_of_two() {
            return self.halve(values, nest, names);
        }
        let copies: Vec<StateAcc> = values.iter().map(|p| StateAcc { acc: names.acc(), ..*p }).collect();
        let len = self.present * self.elems;
        let mut out: Vec<Stmt> = copies.iter().map(|p| p.declare(len)).collect();
        out.push(copy(&copies, values, len, names));
        out.extend(self.halve(&copies, nest, names));
        out.push(copy(values, &copies, self.elems, names));
        out
    }

    fn halve(&self, values: &[StateAcc], nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
        let step = |(half, count): (u64, u64)| {
            let var = names.loop_over(Over::Element);
            let lower = Index::term(var, 1);
            let upper = lower.clone().offset_by((half * self.elems) as i64);
            let body = combined(&self.def, values, [&lower, &upper], values, &lower, nest, names);
            Stmt::For(Loop::new(var, count * self.elems, LoopKind::Parallel, body))
        };
        tree::folds(self.lanes, self.present).map(step).collect()
    }
}

fn copy(to: &[StateAcc], from: &[StateAcc], len: u64, names: &mut Names) -> Stmt {
    let var = names.loop_over(Over::Element);
    let at = Index::term(var, 1);
    let set = |(to, from): (&StateAcc, &StateAcc)| Stmt::Set {
        acc: to.acc,
        index: at.clone(),
        value: Expr::Read(from.acc, from.dtype, at.clone()),
    };
    Stmt::For(Loop::new(var, len, LoopKind::Parallel, to.iter().zip(from).map(set).collect()))
}
