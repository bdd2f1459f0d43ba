//! Takes several blocks or outputs at once.

use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Access, renamed, substitute, visit_accesses};
use cranefold_ir::{AccId, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Stmt};
use rustc_hash::FxHashSet;

/// Runs several iterations of the loop around the steps in lockstep, step by step. Their chains of dependent operations
/// overlap:
///
/// ```text
/// for b0 in 0..128 seq { acc a1: f32[16] = 0.0  for k1 in 0..64 seq { S(b0, a1) }  T(b0, a1) }
/// ->  (interleave=2)
/// for b0 in 0..64 seq {
///   acc a1: f32[16] = 0.0  acc a2: f32[16] = 0.0
///   for k1 in 0..64 seq { S(2*b0, a1)  S(2*b0 + 1, a2) }
///   T(2*b0, a1)  T(2*b0 + 1, a2)
/// }
/// ```
///
/// The iterations are blocks where a slice has enough of them, else outputs. Left-over iterations run afterwards, one
/// by one. Loops over positions at the end run one iteration after the other too: each writes one run of memory.
///
/// Legal because an iteration writes only accumulators of its own up to its first statement that names another one (the
/// merge of a block); from there on, iterations run one after the other.
pub fn interleave(nest: Nest, schedule: &Schedule, _: Vectors) -> Nest {
    if schedule.interleave <= 1 {
        return nest;
    }
    let mut names = Names::after(&nest);
    let body = in_body(nest.body, schedule.interleave, &mut names);
    Nest { body, ..nest }
}

fn in_body(body: Vec<Stmt>, by: u64, names: &mut Names) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(body.len());
    for stmt in body {
        match stmt {
            Stmt::For(l) if takes_several(&l, by) => out.extend(several(l, by, names)),
            Stmt::For(l) => out.push(Stmt::For(Loop { body: in_body(l.body, by, names), ..l })),
            simple @ (Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. }) => out.push(simple),
            simple @ (Stmt::Store { .. } | Stmt::Carry { .. } | Stmt::Pick { .. }) => out.push(simple),
            simple @ (Stmt::Merge { .. }
            | Stmt::Fold { .. }
            | Stmt::Select { .. }
            | Stmt::Transpose(_)
            | Stmt::TransposedStore(_)) => out.push(simple),
            simple @ (Stmt::Misalign { .. } | Stmt::Rotate { .. } | Stmt::Prefetch { .. }) => out.push(simple),
            wide @ Stmt::Wide { .. } => out.push(wide),
        }
    }
    out
}

/// Returns true if the loop is the innermost one around loops over steps and has at least `by` iterations.
fn takes_several(l: &Loop, by: u64) -> bool {
    let Extent::Const(extent) = l.extent else { return false };
    let over_steps = |s: &Stmt| matches!(s, Stmt::For(l) if l.var.over == Over::Step);
    let has_steps = |body: &[Stmt]| body.iter().any(over_steps);
    match (l.var.over, l.kind) {
        (Over::Block, LoopKind::Seq) => extent >= by && has_steps(&l.body),
        (Over::Output, LoopKind::Parallel) => {
            let block = |l: &Loop| !takes_several(l, by) && has_steps(&l.body);
            let inner = |s: &Stmt| match s {
                Stmt::For(l) => {
                    if l.var.over == Over::Block {
                        block(l)
                    } else {
                        over_steps(s)
                    }
                }
                Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } => false,
                Stmt::Store { .. }
                | Stmt::Carry { .. }
                | Stmt::Pick { .. }
                | Stmt::Misalign { .. }
                | Stmt::Rotate { .. }
                | Stmt::Prefetch { .. } => false,
                Stmt::Merge { .. }
                | Stmt::Fold { .. }
                | Stmt::Select { .. }
                | Stmt::Transpose(_)
                | Stmt::TransposedStore(_) => false,
            };
            let several_blocks = |s: &Stmt| matches!(s, Stmt::For(inner) if takes_several(inner, by));
            extent >= 2 && l.body.iter().any(inner) && !l.body.iter().any(several_blocks)
        }
        _ => false,
    }
}

fn several(l: Loop, by: u64, names: &mut Names) -> Vec<Stmt> {
    let Extent::Const(extent) = l.extent else { return vec![Stmt::For(l)] };
    let by = by.min(extent);
    let together = match l.kind {
        LoopKind::Seq => independent(&l.body),
        LoopKind::Parallel | LoopKind::Lanes => before_positions(&l.body),
    };
    let (rounds, rest) = (extent / by, extent % by);
    let mut heads = vec![];
    let mut tails = vec![];
    for n in 0..by {
        let at = Index::term(l.var, by as i64).offset_by(n as i64);
        let mut body = renamed(substitute(l.body.clone(), l.var, &at), names);
        let tail = body.split_off(together);
        heads.push(body);
        tails.extend(own_carries(tail, names));
    }
    let mut body = joined(heads);
    body.extend(tails);
    let mut out = match rounds {
        1 => substitute(body, l.var, &Index::constant(0)),
        _ => vec![Stmt::For(Loop { extent: Extent::Const(rounds), body, ..l.clone() })],
    };
    if rest > 0 {
        let at = Index::term(l.var, 1).offset_by((rounds * by) as i64);
        let body = own_carries(renamed(substitute(l.body, l.var, &at), names), names);
        out.extend(match rest {
            1 => substitute(body, l.var, &Index::constant(0)),
            _ => vec![Stmt::For(Loop { extent: Extent::Const(rest), body, ..l })],
        });
    }
    out
}

/// The number of statements before the loops over positions at the end.
fn before_positions(body: &[Stmt]) -> usize {
    let is_over_positions = |s: &Stmt| matches!(s, Stmt::For(l) if l.var.over == Over::Position);
    body.iter().rposition(|s| !is_over_positions(s)).map_or(0, |last| last + 1)
}

/// The number of statements before the first that names an accumulator declared elsewhere, stores, or carries.
fn independent(body: &[Stmt]) -> usize {
    let mut own: FxHashSet<AccId> = FxHashSet::default();
    let mut count = 0;
    for stmt in body {
        let mut free = true;
        visit_accesses(stmt, &mut |acc, access| match access {
            Access::Declared => {
                own.insert(acc);
            }
            Access::Read(_) | Access::Set(_) | Access::Transposed | Access::Stored | Access::Selected => {
                free &= own.contains(&acc)
            }
            Access::Combined => free = false,
        });
        stmt.visit(&mut |s| {
            free &= match s {
                Stmt::Store { .. } | Stmt::TransposedStore(_) | Stmt::Carry { .. } => false,
                Stmt::Merge { .. } | Stmt::Fold { .. } => false,
                Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } => true,
                Stmt::Set { .. }
                | Stmt::Pick { .. }
                | Stmt::Select { .. }
                | Stmt::Misalign { .. }
                | Stmt::Rotate { .. }
                | Stmt::Prefetch { .. }
                | Stmt::Transpose(_) => true,
            };
        });
        if !free {
            break;
        }
        count += 1;
    }
    count
}

/// Joins bodies of one shape: loops become one loop, other statements stand side by side.
fn joined(bodies: Vec<Vec<Stmt>>) -> Vec<Stmt> {
    let mut bodies: Vec<_> = bodies.into_iter().map(Vec::into_iter).collect();
    let mut out = vec![];
    loop {
        let row: Vec<Stmt> = bodies.iter_mut().filter_map(Iterator::next).collect();
        match row.first() {
            None => return out,
            Some(Stmt::For(l)) => {
                let (var, extent, kind) = (l.var, l.extent, l.kind);
                let inner = row.into_iter().filter_map(|s| if let Stmt::For(l) = s { Some(l.body) } else { None });
                out.push(Stmt::For(Loop { var, extent, kind, body: joined(inner.collect()) }));
            }
            // All bodies carry the same number: a carry depends on blocks alone.
            Some(Stmt::Carry { .. }) => out.extend(row.into_iter().next()),
            Some(_) => out.extend(row),
        }
    }
}

/// The body with new names for its carries.
fn own_carries(body: Vec<Stmt>, names: &mut Names) -> Vec<Stmt> {
    let mut new: Vec<(LoopVar, LoopVar)> = vec![];
    let mut out = Vec::with_capacity(body.len());
    for stmt in body {
        if let Stmt::Carry { var, of } = stmt {
            let own = names.loop_over(var.over);
            new.push((var, own));
            out.push(Stmt::Carry { var: own, of });
            continue;
        }
        let stmt = new.iter().fold(stmt, |stmt, &(from, to)| with_carry(stmt, from, to));
        let Stmt::For(l) = stmt else {
            out.push(stmt);
            continue;
        };
        out.push(Stmt::For(Loop { body: own_carries(l.body, names), ..l }));
    }
    out
}

/// The statement with the carry `to` in place of `from`.
fn with_carry(mut stmt: Stmt, from: LoopVar, to: LoopVar) -> Stmt {
    stmt.each_index_mut(&mut |i| i.substitute(from, &Index::term(to, 1)));
    let Stmt::For(l) = stmt else { return stmt };
    let extent = if l.extent == Extent::Carry(from) { Extent::Carry(to) } else { l.extent };
    let body = l.body.into_iter().map(|s| with_carry(s, from, to)).collect();
    Stmt::For(Loop { extent, body, ..l })
}
