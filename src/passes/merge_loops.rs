//! Joins loops that walk memory as one.

use super::walks::walks_as_one;
use crate::schedule::{Schedule, Transform};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{rewrite, substitute};
use cranefold_ir::{Extent, Index, Loop, LoopKind, Nest, Over, Stmt};

/// Joins two parallel loops, one directly inside the other, where every index steps through both as through one:
///
/// ```text
/// for l0 in 0..32 parallel { for i1 in 0..2 parallel { a0[2*l0 + i1] = add(a0[2*l0 + i1], x0[2*l0 + i1]) } }
/// ->
/// for i1 in 0..64 parallel { a0[i1] = add(a0[i1], x0[i1]) }
/// ```
///
/// Legal because both are parallel. A loop over blocks joins only another one, because `stream` has to find it; a tile
/// whose outputs share folds stays apart for `share_folds`.
pub fn merge_loops(nest: Nest, schedule: &Schedule, _: Vectors) -> Nest {
    let shares = |l: &Loop| schedule.tile_of(l.var).is_some_and(|tile| tile.transform == Transform::SharedFolds);
    let body = rewrite(nest.body, &mut |stmt| {
        if let Stmt::For(l) = stmt
            && !matches!(&l.body[..], [Stmt::For(inner)] if shares(inner))
        {
            join(l);
        }
        None
    });
    Nest { body, ..nest }
}

fn join(outer: &mut Loop) {
    let [Stmt::For(inner)] = outer.body.as_slice() else { return };
    let (Extent::Const(m), Extent::Const(n)) = (outer.extent, inner.extent) else { return };
    let parallel = outer.kind == LoopKind::Parallel && inner.kind == LoopKind::Parallel;
    let alike = (outer.var.over == Over::Block) == (inner.var.over == Over::Block);
    if !parallel || !alike || !walks_as_one(outer, inner, n) {
        return;
    }
    let drop_outer = substitute(inner.body.clone(), outer.var, &Index::default());
    *outer = Loop::new(inner.var, m * n, LoopKind::Parallel, drop_outer);
}
