//! Writes out the folds of lanes.

use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::{AccId, DType, Def, Expr, Index, Loop, LoopKind, Names, Nest, Over, Scalar, Stmt, tree};
use std::collections::HashMap;

/// Halves the lanes until one is left:
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
/// States of a number of elements that is no power of two are copied first: halves then start at odd
/// places, and the copy alone has to live in memory for it.
///
/// Legal because `fold` means just this order (see [`cranefold_ir::tree`]).
pub fn fold(mut nest: Nest, _: &Schedule, _: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let declared = parts(&nest);
    let body = std::mem::take(&mut nest.body);
    nest.body = super::rewrite(body, &mut |stmt, out| match stmt {
        Stmt::Fold { accs, def, present, lanes, elems } => {
            let parts: Vec<Part> = accs.iter().map(|acc| declared[acc]).collect();
            let fold = Fold { def: nest.def(def).clone(), present, lanes, elems };
            out.extend(fold.write_out(&parts, &mut nest, &mut names))
        }
        other => out.push(other),
    });
    nest
}

/// One accumulator of the state.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub acc: AccId,
    pub dtype: DType,
    pub init: Scalar,
}

/// The accumulators that the nest declares.
pub(super) fn parts(nest: &Nest) -> HashMap<AccId, Part> {
    let mut parts = HashMap::new();
    nest.visit(&mut |s| {
        if let Stmt::Acc { acc, dtype, init, .. } = s {
            parts.insert(*acc, Part { acc: *acc, dtype: *dtype, init: *init });
        }
    });
    parts
}

/// A fold, but for its accumulators.
struct Fold {
    def: Def,
    present: u64,
    lanes: u64,
    elems: u64,
}

impl Fold {
    fn write_out(&self, parts: &[Part], nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
        if self.elems.is_power_of_two() {
            return self.halve(parts, nest, names);
        }
        let copies: Vec<Part> = parts.iter().map(|p| Part { acc: names.acc(), ..*p }).collect();
        let len = self.present * self.elems;
        let declare = |p: &Part| Stmt::Acc { acc: p.acc, dtype: p.dtype, len, init: p.init };
        let mut out: Vec<Stmt> = copies.iter().map(declare).collect();
        out.push(copy(&copies, parts, len, names));
        out.extend(self.halve(&copies, nest, names));
        out.push(copy(parts, &copies, self.elems, names));
        out
    }

    fn halve(&self, parts: &[Part], nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
        let step = |(half, count): (u64, u64)| {
            let var = names.loop_over(Over::Element);
            let lower = Index::term(var, 1);
            let upper = lower.clone().offset_by((half * self.elems) as i64);
            let body = combined(&self.def, parts, [&lower, &upper], parts, &lower, nest, names);
            Stmt::For(Loop::new(var, count * self.elems, LoopKind::Parallel, body))
        };
        tree::folds(self.lanes, self.present).map(step).collect()
    }
}

/// `to[at] = def(from[lower], from[upper])`.
pub(super) fn combined(
    def: &Def,
    from: &[Part],
    [lower, upper]: [&Index; 2],
    to: &[Part],
    at: &Index,
    nest: &mut Nest,
    names: &mut Names,
) -> Vec<Stmt> {
    let read = |p: &Part, at: &Index| Expr::Read(p.acc, p.dtype, at.clone());
    let args = from.iter().map(|p| read(p, lower)).chain(from.iter().map(|p| read(p, upper))).collect();
    let (mut body, values) = nest.apply(names, def, args);
    body.extend(to.iter().zip(values).map(|(p, value)| Stmt::Set { acc: p.acc, index: at.clone(), value }));
    body
}

fn copy(to: &[Part], from: &[Part], len: u64, names: &mut Names) -> Stmt {
    let var = names.loop_over(Over::Element);
    let at = Index::term(var, 1);
    let set = |(to, from): (&Part, &Part)| Stmt::Set {
        acc: to.acc,
        index: at.clone(),
        value: Expr::Read(from.acc, from.dtype, at.clone()),
    };
    Stmt::For(Loop::new(var, len, LoopKind::Parallel, to.iter().zip(from).map(set).collect()))
}
