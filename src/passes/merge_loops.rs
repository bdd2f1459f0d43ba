//! Joins loops that walk memory as one.

use crate::schedule::{Schedule, Transform};
use crate::vectors::Vectors;
use cranefold_ir::{Expr, Extent, Index, Loop, LoopKind, Nest, Over, Stmt};

/// Joins two parallel loops, one directly inside the other, where every index steps through both as
/// through one:
///
/// ```text
/// for l0 in 0..32 parallel { for i1 in 0..2 parallel { a0[2*l0 + i1] = add(a0[2*l0 + i1], x0[2*l0 + i1]) } }
/// ->
/// for i1 in 0..64 parallel { a0[i1] = add(a0[i1], x0[i1]) }
/// ```
///
/// Legal because both are parallel. A loop over blocks keeps apart from others: `stream` has to find it; and so does a
/// tile of outputs that share folds.
pub fn merge_loops(nest: Nest, schedule: &Schedule, _: Vectors) -> Nest {
    let shares = |l: &Loop| schedule.tile_of(l.var).is_some_and(|tile| tile.transform == Transform::SharedFolds);
    let body = super::rewrite(nest.body, &mut |stmt, out| {
        out.push(match stmt {
            Stmt::For(l) if matches!(&l.body[..], [Stmt::For(inner)] if shares(inner)) => Stmt::For(l),
            Stmt::For(l) => Stmt::For(join(l)),
            other => other,
        })
    });
    Nest { body, ..nest }
}

fn join(outer: Loop) -> Loop {
    let [Stmt::For(inner)] = outer.body.as_slice() else { return outer };
    let (Extent::Const(m), Extent::Const(n)) = (outer.extent, inner.extent) else { return outer };
    let parallel = outer.kind == LoopKind::Parallel && inner.kind == LoopKind::Parallel;
    let alike = (outer.var.over == Over::Block) == (inner.var.over == Over::Block);
    if !parallel || !alike || !walks_as_one(&outer, inner, n) {
        return outer;
    }
    let drop_outer = super::substitute(inner.body.clone(), outer.var, &Index::default());
    Loop::new(inner.var, m * n, LoopKind::Parallel, drop_outer)
}

/// Whether every index in a loop steps through it, of `n` iterations, and the loop directly around it as through one.
pub(super) fn walks_as_one(outer: &Loop, inner: &Loop, n: u64) -> bool {
    let fits = |i: &Index| i.coefficient(outer.var) == n as i64 * i.coefficient(inner.var);
    let mut all = true;
    inner.body.iter().for_each(|s| {
        s.visit(&mut |s| match s {
            Stmt::Set { index, .. } | Stmt::Store { index, .. } | Stmt::Carry { of: index, .. } => all &= fits(index),
            _ => {}
        })
    });
    super::visit_exprs(&inner.body, &mut |e| {
        if let Expr::Load(_, _, index) | Expr::Read(_, _, index) | Expr::At(_, index) = e {
            all &= fits(index);
        }
    });
    all
}
