//! Splits output dims, blocks and steps into tiles.

use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{renamed, rewrite, substitute};
use cranefold_ir::{Extent, Index, Loop, LoopKind, Names, Nest, Over, Stmt};

/// Splits the output loop of the schedule's tile, the innermost loops over steps (into jammed steps), and the innermost
/// loops over blocks (into blocks in flight):
///
/// ```text
/// for i0 in 0..1000 parallel { S(i0) }
/// ->  (tile=i0:64)
/// for i5 in 0..15 parallel { for i0 in 0..64 parallel { S(64*i5 + i0) } }
/// for i0 in 0..40 parallel { S(i0 + 960) }
///
/// for k1 in 0..63 seq { S(k1) }
/// ->  (jam=8)
/// for k1 in 0..7 seq { for j6 in 0..8 seq { S(8*k1 + j6) } }
/// for j7 in 0..7 seq { S(j7 + 56) }
///
/// for k1 in 0..63 seq { for l2 in 0..9 parallel { S(k1, l2) } }
/// ->  (jam=8)
/// for k1 in 0..7 seq { for l2 in 0..9 parallel { for j6 in 0..8 seq { S(8*k1 + j6, l2) } } }
/// for l2 in 0..9 parallel { for j7 in 0..7 seq { S(j7 + 56, l2) } }
///
/// for b1 in 0..25 parallel { S(b1) }
/// ->  (in_flight=4)
/// for b6 in 0..6 parallel { for b1 in 0..4 parallel { S(4*b6 + b1) } }
/// for b1 in 0..1 parallel { S(b1 + 24) }
/// ```
///
/// Always legal: the order of iterations that touch one element does not change; lanes touch elements of their own.
pub fn tile(nest: Nest, schedule: &Schedule, _: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let body = rewrite(nest.body, &mut |stmt| {
        let Stmt::For(l) = stmt else { return None };
        match (schedule.tile_of(l.var), l.var.over) {
            (Some(tile), _) => Some(split(l.take(), tile.by, &mut names)),
            (_, Over::Step) if schedule.jam > 1 && is_innermost(&l.body) => {
                Some(split_steps(l.take(), schedule.jam, &mut names))
            }
            (_, Over::Block) if schedule.in_flight > 1 && l.kind == LoopKind::Parallel && !has_blocks(&l.body) => {
                Some(split(l.take(), schedule.in_flight, &mut names))
            }
            _ => None,
        }
    });
    Nest { body, ..nest }
}

/// Returns true if the body holds no loop over steps.
fn is_innermost(body: &[Stmt]) -> bool {
    let mut found = false;
    let steps = |s: &Stmt| matches!(s, Stmt::For(l) if matches!(l.var.over, Over::Step | Over::Jam));
    body.iter().for_each(|s| s.visit(&mut |s| found |= steps(s)));
    !found
}

/// Returns true if a loop over blocks is a statement of the body.
fn has_blocks(body: &[Stmt]) -> bool {
    body.iter().any(|s| matches!(s, Stmt::For(l) if l.var.over == Over::Block))
}

fn split(l: Loop, by: u64, names: &mut Names) -> Vec<Stmt> {
    let Extent::Const(extent) = l.extent else { return vec![Stmt::For(l)] };
    let (whole, rest) = (extent / by, extent % by);
    if whole == 0 || extent == by {
        return vec![Stmt::For(l)];
    }
    let tiles = names.loop_over(l.var.over);
    let inner = Index::term(tiles, by as i64).plus(l.var, 1);
    let tile = Loop::new(l.var, by, LoopKind::Parallel, substitute(l.body.clone(), l.var, &inner));
    let mut stmts = vec![Stmt::For(Loop::new(tiles, whole, LoopKind::Parallel, vec![Stmt::For(tile)]))];
    if rest > 0 {
        let index = Index::term(l.var, 1).offset_by((whole * by) as i64);
        let body = renamed(substitute(l.body, l.var, &index), names);
        stmts.push(Stmt::For(Loop::new(l.var, rest, LoopKind::Parallel, body)));
    }
    stmts
}

fn split_steps(l: Loop, by: u64, names: &mut Names) -> Vec<Stmt> {
    let Extent::Const(extent) = l.extent else { return vec![Stmt::For(l)] };
    let (whole, rest) = (extent / by, extent % by);
    let mut jammed = |count: u64, start: Index| {
        let jam = names.loop_over(Over::Jam);
        let body = renamed(substitute(l.body.clone(), l.var, &start.plus(jam, 1)), names);
        inside_lanes(Loop::new(jam, count, LoopKind::Seq, body))
    };
    let mut stmts = vec![];
    if whole > 0 {
        let body = vec![jammed(by, Index::term(l.var, by as i64))];
        stmts.push(Stmt::For(Loop::new(l.var, whole, LoopKind::Seq, body)));
    }
    if rest > 0 {
        stmts.push(jammed(rest, Index::constant((whole * by) as i64)));
    }
    stmts
}

/// The loop, inside the loop over lanes if that is all it holds.
fn inside_lanes(mut l: Loop) -> Stmt {
    match &mut l.body[..] {
        [Stmt::For(lanes)] if lanes.var.over == Over::Lane && lanes.kind == LoopKind::Parallel => {
            let mut lanes = lanes.take();
            l.body = std::mem::take(&mut lanes.body);
            lanes.body = vec![Stmt::For(l)];
            Stmt::For(lanes)
        }
        _ => Stmt::For(l),
    }
}
