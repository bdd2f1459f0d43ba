//! The elements of an accumulator that nothing reads any more.

use cranefold_ir::{AccId, Expr, LoopKind, LoopVar, Stmt};

/// Returns true if none of these statements reads the elements of an accumulator from `start` to `end`.
pub fn is_dead(acc: AccId, start: u64, end: u64, after: &[&[Stmt]]) -> bool {
    after.iter().copied().flatten().all(|stmt| {
        let mut dead = true;
        reads_of(stmt, acc, None, &mut |first, last| dead &= last <= start || first >= end);
        dead
    })
}

/// Calls `f` with each range of an accumulator's elements that a statement reads: start and end. An index that moves
/// with a loop reads all elements.
fn reads_of(stmt: &Stmt, of: AccId, lane: Option<(LoopVar, u64)>, f: &mut impl FnMut(u64, u64)) {
    if let Stmt::For(l) = stmt {
        let lanes = l.extent.lanes().filter(|_| l.kind == LoopKind::Lanes);
        let lane = lanes.map_or(lane, |lanes| Some((l.var, lanes)));
        return l.body.iter().for_each(|s| reads_of(s, of, lane, f));
    }
    if let Stmt::Rotate { acc, start, len, .. } = stmt
        && *acc == of
    {
        f(*start, start + len);
    }
    if let Stmt::TransposedStore(t) = stmt
        && t.acc == of
    {
        f(0, t.elements());
    }
    for e in stmt.exprs() {
        e.visit(&mut |e| {
            let Expr::Read(acc, _, index) = e else { return };
            if *acc != of {
                return;
            }
            let lanes = lane.map_or(1, |(var, n)| if index.coefficient(var) != 0 { n } else { 1 });
            let others = index.terms().filter(|&(v, _)| lane.is_none_or(|(var, _)| v != var)).count();
            match others {
                0 => f(index.offset as u64, index.offset as u64 + lanes),
                _ => f(0, u64::MAX),
            }
        });
    }
}
