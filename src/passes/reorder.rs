//! Moves the loops of a tile inside the loops of the reduction.

use super::walks::walks_as_one;
use crate::schedule::{Schedule, Transform};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Access, Band, Side, map_elements, rewrite, visit_accesses};
use cranefold_ir::{AccId, Extent, Index, Loop, LoopVar, Nest, Over, Stmt};
use rustc_hash::FxHashSet;

/// Moves the loop of the schedule's tile, and the output loops inside it, to the innermost place, but outside loops
/// over jammed steps. A step then walks the outputs of the tile:
///
/// ```text
/// for i0 in 0..64 parallel {
///   acc a0: f32[16] = -0.0
///   for b1 in 0..16 parallel { for k2 in 0..64 seq { a0[b1] = add(a0[b1], x0[..]) } }
///   merge a0 by sum over 16 of 1
///   x1[i0] = a0[0]
/// }
/// ->
/// acc a0: f32[1024] = -0.0
/// for b1 in 0..16 parallel {
///   for k2 in 0..64 seq { for i0 in 0..64 parallel { a0[64*b1 + i0] = add(a0[64*b1 + i0], x0[..]) } }
/// }
/// merge a0 by sum over 16 of 64
/// for i0 in 0..64 parallel { x1[i0] = a0[i0] }
/// ```
///
/// A tile of `@across` also moves inside the output loops that it is around:
///
/// ```text
/// for i0 in 0..16 parallel { for i1 in 0..2 parallel { for k2 in 0..3 seq { a0[0] = add(a0[0], x0[6*i0 + i1 + 2*k2]) } } }
/// ->
/// for k2 in 0..3 seq {
///   for i1 in 0..2 parallel { for i0 in 0..16 parallel { a0[16*i1 + i0] = add(a0[16*i1 + i0], x0[6*i0 + i1 + 2*k2]) } }
/// }
/// ```
///
/// In the same way, the inner one of the two loops over blocks that `tile` makes moves inside the loops over steps, so
/// that several blocks are in flight.
///
/// Legal because iterations of the tile's loops write different elements, once each has its own part of every
/// accumulator. The parts are interleaved. A loop that holds a `select` or a `pick` stays where it is: a `select` takes
/// neighbours, and each output picks a place of its own.
pub fn reorder(nest: Nest, schedule: &Schedule, _: Vectors) -> Nest {
    // Of a loop that moves, whether it also moves inside the output loops that it is around.
    let moves = |var: LoopVar| match schedule.tile_of(var)?.transform {
        Transform::Steps | Transform::Rows => Some(false),
        Transform::Across => Some(true),
        Transform::Blocks | Transform::Runs | Transform::SharedFolds | Transform::Lanes => None,
    };
    let body = rewrite(nest.body, &mut |stmt| {
        let Stmt::For(l) = stmt else { return None };
        if let Some(across) = moves(l.var)
            && !selects(l)
        {
            return Some(sink(l.take(), across));
        }
        if schedule.in_flight > 1 && is_pair(l, schedule.in_flight) && !selects(l) {
            let body = std::mem::take(&mut l.body).into_iter();
            l.body = body.flat_map(|s| if let Stmt::For(inner) = s { sink(inner, false) } else { vec![s] }).collect();
        }
        None
    });
    Nest { body, ..nest }
}

/// Returns true if the loop holds a `select` or a `pick`.
fn selects(l: &Loop) -> bool {
    let mut found = false;
    l.body.iter().for_each(|s| s.visit(&mut |s| found |= matches!(s, Stmt::Select { .. } | Stmt::Pick { .. })));
    found
}

/// Returns true if the loop is the outer one of the two that `tile` has made of a loop over blocks: the inner one has
/// `blocks` iterations, and both walk memory as one.
fn is_pair(l: &Loop, blocks: u64) -> bool {
    let [Stmt::For(inner)] = l.body.as_slice() else { return false };
    let over_blocks = l.var.over == Over::Block && inner.var.over == Over::Block;
    over_blocks && inner.extent == Extent::Const(blocks) && walks_as_one(l, inner, blocks)
}

/// The loops being moved, and the accumulators declared inside them.
struct MovedLoops {
    band: Band,
    own: FxHashSet<AccId>,
}

/// Moves a loop and those directly inside it inward; the loop itself is the innermost of them if it moves `across`.
fn sink(l: Loop, across: bool) -> Vec<Stmt> {
    let (mut band, body) = Band::of(l).expect("loops over outputs and blocks are constant");
    if across {
        band.loops.rotate_left(1);
    }
    let mut own = FxHashSet::default();
    for stmt in &body {
        visit_accesses(stmt, &mut |acc, access| {
            if access == Access::Declared {
                own.insert(acc);
            }
        });
    }
    let moved = MovedLoops { band, own };
    let body = map_elements(body, &mut |acc, index| (acc, moved.widen(acc, index)));
    moved.body(body)
}

impl MovedLoops {
    /// Returns true if the moved loops move inside this one. Blocks stay outside lanes and outputs, which become
    /// vectors.
    fn enters(&self, l: &Loop) -> bool {
        match self.band.loops[0].0.over == Over::Block {
            true => l.var.over == Over::Step,
            false => l.var.over != Over::Jam,
        }
    }

    /// The index into the part of an accumulator that belongs to the current iteration.
    fn widen(&self, acc: AccId, index: Index) -> Index {
        if !self.own.contains(&acc) {
            return index;
        }
        index.times(self.band.count() as i64).add(&self.band.position())
    }

    /// The statements with the tile's loops around each run of simple statements.
    fn body(&self, body: Vec<Stmt>) -> Vec<Stmt> {
        let count = self.band.count();
        self.band.sink(body, &mut |stmt| match stmt {
            Stmt::Acc { acc, dtype, len, init } => Side::Outside(Stmt::Acc { acc, dtype, len: len * count, init }),
            Stmt::Merge { accs, def, blocks, elems } => {
                Side::Outside(Stmt::Merge { accs, def, blocks, elems: elems * count })
            }
            Stmt::Fold { accs, def, present, lanes, elems } => {
                Side::Outside(Stmt::Fold { accs, def, present, lanes, elems: elems * count })
            }
            Stmt::For(l) if self.enters(&l) => Side::Outside(Stmt::For(Loop { body: self.body(l.body), ..l })),
            stmt @ (Stmt::For(_) | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. }) => {
                Side::Inside(stmt)
            }
            stmt @ (Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Select { .. } | Stmt::Wide { .. }) => {
                Side::Inside(stmt)
            }
            stmt @ (Stmt::Transpose(_) | Stmt::TransposedStore(_)) => Side::Inside(stmt),
            stmt @ (Stmt::Misalign { .. } | Stmt::Rotate { .. } | Stmt::Prefetch { .. }) => Side::Inside(stmt),
        })
    }
}
