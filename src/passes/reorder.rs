//! Moves the loops of a tile inside the loops of the reduction.

use crate::schedule::{Schedule, Transform};
use crate::vectors::Vectors;
use cranefold_ir::{AccId, Expr, Extent, Index, Loop, LoopKind, LoopVar, Nest, Over, Stmt};
use std::collections::HashSet;

/// Moves the loop of the schedule's tile, and the output loops inside it, to the innermost place (but
/// outside of loops over rows), so that a step walks the outputs of the tile:
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
/// In the same way, the inner one of two loops over blocks moves inside the loops over steps, so that
/// several blocks are in flight.
///
/// Legal because iterations of the tile's loops write different elements, once each has its own part
/// of every accumulator. The parts lie interleaved, and a `select` takes neighbours; each output picks a place of its
/// own: a loop that holds either stays where it is.
pub fn reorder(nest: Nest, schedule: &Schedule, _: Vectors) -> Nest {
    let into_steps = |var: LoopVar| schedule.tile_of(var).is_some_and(|tile| tile.transform == Transform::Steps);
    let body = super::rewrite(nest.body, &mut |stmt, out| match stmt {
        Stmt::For(l) if into_steps(l.var) && !selects(&l) => out.extend(sink(l)),
        Stmt::For(l) if schedule.blocks > 1 && is_pair(&l) && !selects(&l) => {
            let body = l.body.into_iter().flat_map(|s| if let Stmt::For(inner) = s { sink(inner) } else { vec![s] });
            out.push(Stmt::For(Loop { body: body.collect(), ..l }));
        }
        other => out.push(other),
    });
    Nest { body, ..nest }
}

/// Whether a selection, or a place that was found, stands in the loop.
fn selects(l: &Loop) -> bool {
    let mut found = false;
    l.body.iter().for_each(|s| s.visit(&mut |s| found |= matches!(s, Stmt::Select { .. } | Stmt::Pick { .. })));
    found
}

/// Whether this is the outer one of two loops over blocks that `tile` has made of one: its variable is
/// the newer.
fn is_pair(l: &Loop) -> bool {
    let inner = |s: &Stmt| matches!(s, Stmt::For(inner) if inner.var.over == Over::Block && inner.var.id < l.var.id);
    l.var.over == Over::Block && matches!(l.body.as_slice(), [only] if inner(only))
}

/// The loops being moved, outermost first, and the accumulators declared inside them.
struct Tile {
    loops: Vec<(LoopVar, u64)>,
    own: HashSet<AccId>,
}

fn sink(l: Loop) -> Vec<Stmt> {
    let over = l.var.over;
    let mut loops = vec![];
    let mut body = vec![Stmt::For(l)];
    while matches!(body.as_slice(), [Stmt::For(l)] if l.var.over == over) {
        let Some(Stmt::For(l)) = body.pop() else { unreachable!("just seen") };
        let Extent::Const(extent) = l.extent else { unreachable!("loops over outputs and blocks are constant") };
        loops.push((l.var, extent));
        body = l.body;
    }
    let mut own = HashSet::new();
    body.iter().for_each(|s| {
        s.visit(&mut |s| {
            if let Stmt::Acc { acc, .. } = s {
                own.insert(*acc);
            }
        })
    });
    Tile { loops, own }.body(body)
}

impl Tile {
    /// Whether the loops move inside this one: blocks stay outside of lanes and outputs, which are
    /// made vectors of.
    fn enters(&self, l: &Loop) -> bool {
        match self.loops[0].0.over {
            Over::Block => l.var.over == Over::Step,
            _ => l.var.over != Over::Row,
        }
    }

    fn elements(&self) -> u64 {
        self.loops.iter().map(|&(_, extent)| extent).product()
    }

    /// The index in the part of an accumulator that belongs to the current iteration.
    fn widen(&self, acc: AccId, index: Index) -> Index {
        if !self.own.contains(&acc) {
            return index;
        }
        let position = self.loops.iter().fold(Index::default(), |at, &(var, n)| at.times(n as i64).plus(var, 1));
        index.times(self.elements() as i64).add(&position)
    }

    /// The statements with the tile's loops around each run of simple ones.
    fn body(&self, body: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = vec![];
        let mut run = vec![];
        for stmt in body {
            let stmt = match stmt {
                Stmt::Acc { acc, dtype, len, init } => Stmt::Acc { acc, dtype, len: len * self.elements(), init },
                Stmt::Merge { accs, def, blocks, elems } => {
                    Stmt::Merge { accs, def, blocks, elems: elems * self.elements() }
                }
                Stmt::Fold { accs, def, present, lanes, elems } => {
                    Stmt::Fold { accs, def, present, lanes, elems: elems * self.elements() }
                }
                Stmt::For(l) if self.enters(&l) => Stmt::For(Loop { body: self.body(l.body), ..l }),
                other => {
                    run.push(self.simple(other));
                    continue;
                }
            };
            self.close(&mut run, &mut out);
            out.push(stmt);
        }
        self.close(&mut run, &mut out);
        out
    }

    fn close(&self, run: &mut Vec<Stmt>, out: &mut Vec<Stmt>) {
        if !run.is_empty() {
            let wrap = |body, &(var, n): &(LoopVar, u64)| vec![Stmt::For(Loop::new(var, n, LoopKind::Parallel, body))];
            out.extend(self.loops.iter().rev().fold(std::mem::take(run), wrap));
        }
    }

    /// A statement with its accumulators widened.
    fn simple(&self, stmt: Stmt) -> Stmt {
        let widen = |e: Expr| {
            e.rewrite(&mut |e| match e {
                Expr::Read(acc, dtype, index) => Expr::Read(acc, dtype, self.widen(acc, index)),
                e => e,
            })
        };
        match stmt.map_exprs(&mut { widen }) {
            Stmt::For(l) => Stmt::For(Loop { body: l.body.into_iter().map(|s| self.simple(s)).collect(), ..l }),
            Stmt::Set { acc, index, value } => Stmt::Set { acc, index: self.widen(acc, index), value },
            other => other,
        }
    }
}
