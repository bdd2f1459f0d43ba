//! Adds the integers of all blocks into one state.

use super::sums::{added, is_sum};
use super::walks::walks_as_one;
use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{mentions, split_block, substitute};
use cranefold_ir::{AccId, Expr, Extent, Index, Loop, LoopKind, LoopVar, Nest, Over, Stmt};

/// Lets all blocks of integers that merge by addition add to one state. The loop over blocks and the loop over the
/// steps of a block become one loop where blocks lie one after the other:
///
/// ```text
/// acc a0: i32[1600] = 0
/// for b1 in 0..25 parallel {
///   for k2 in 0..64 seq { for l3 in 0..64 parallel { a0[64*b1 + l3] = add(a0[64*b1 + l3], x0[4096*b1 + 64*k2 + l3]) } }
/// }
/// merge a0 by combine_add over 25 of 64
/// ->
/// acc a0: i32[64] = 0
/// for k2 in 0..1600 seq { for l3 in 0..64 parallel { a0[l3] = add(a0[l3], x0[64*k2 + l3]) } }
/// ```
///
/// Legal where the accumulator starts from 0 and integers are added to its elements until it is merged, and nothing
/// else happens to it. A merge by addition then makes one sum of each element's values in all blocks. Integer addition
/// is exact modulo 2^bits, so the sum does not depend on the order.
pub fn join_blocks(mut nest: Nest, _: &Schedule, _: Vectors) -> Nest {
    let body = std::mem::take(&mut nest.body);
    nest.body = in_body(body, &nest);
    nest
}

fn in_body(body: Vec<Stmt>, nest: &Nest) -> Vec<Stmt> {
    let inner = |stmt| {
        let Stmt::For(l) = stmt else { return stmt };
        Stmt::For(Loop { body: in_body(l.body, nest), ..l })
    };
    let mut body: Vec<Stmt> = body.into_iter().map(inner).collect();
    let mut at = 0;
    while at < body.len() {
        match joined(&body, at, nest) {
            // The body has one statement less.
            Some(without) => body = without,
            None => at += 1,
        }
    }
    body
}

/// The body without the merge at this place; `None` if there is no merge, or one that has to stay.
fn joined(body: &[Stmt], at: usize, nest: &Nest) -> Option<Vec<Stmt>> {
    let Stmt::Merge { accs, def, blocks, elems } = &body[at] else { return None };
    let &[acc] = accs.as_slice() else { return None };
    if !is_sum(nest.def(*def)) {
        return None;
    }
    let mut is_declared = false;
    let mut joined = Joined { acc, elems: *elems, extents: vec![] };
    let mut out = Vec::with_capacity(body.len());
    for stmt in &body[..at] {
        if let Stmt::Acc { acc: a, dtype, len, init } = stmt
            && *a == acc
        {
            is_declared = *len == blocks * elems && init.bits() == 0;
            out.push(Stmt::Acc { acc, dtype: *dtype, len: *elems, init: *init });
        } else {
            out.push(joined.stmt(stmt)?);
        }
    }
    out.extend_from_slice(&body[at + 1..]);
    is_declared.then_some(out)
}

/// An accumulator whose blocks become one.
struct Joined {
    acc: AccId,
    elems: u64,
    /// The extents of the loops around the current statement.
    extents: Vec<(LoopVar, u64)>,
}

impl Joined {
    /// The statement with its updates in the only block; `None` if it does anything but add to the accumulator.
    fn stmt(&mut self, stmt: &Stmt) -> Option<Stmt> {
        if !mentions(stmt, self.acc) {
            return Some(stmt.clone());
        }
        match stmt {
            Stmt::For(l) => {
                let Extent::Const(extent) = l.extent else { return None };
                self.extents.push((l.var, extent));
                let body: Option<Vec<Stmt>> = l.body.iter().map(|s| self.stmt(s)).collect();
                self.extents.pop();
                let is_over_blocks = l.var.over == Over::Block;
                let kind = if is_over_blocks { LoopKind::Seq } else { l.kind };
                let l = Loop { kind, body: body?, ..l.clone() };
                Some(Stmt::For(if is_over_blocks { in_one_walk(l) } else { l }))
            }
            Stmt::Set { acc, index, value } if *acc == self.acc => {
                let value = added(self.acc, index, value)?;
                let index = self.within(index)?;
                let value = Expr::Read(*acc, value.dtype(), index.clone()).add(value.clone());
                Some(Stmt::Set { acc: *acc, index, value })
            }
            Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. } => None,
            Stmt::Carry { .. }
            | Stmt::Pick { .. }
            | Stmt::Misalign { .. }
            | Stmt::Rotate { .. }
            | Stmt::Prefetch { .. }
            | Stmt::Wide { .. } => None,
            Stmt::Merge { .. }
            | Stmt::Fold { .. }
            | Stmt::Select { .. }
            | Stmt::Transpose(_)
            | Stmt::TransposedStore(_) => None,
        }
    }

    /// The index of an element within its block; `None` if it may lie outside.
    fn within(&self, index: &Index) -> Option<Index> {
        let (_, element) = split_block(index, self.elems, |var| var.over == Over::Block);
        let mut last = element.offset;
        for (var, c) in element.terms() {
            let (_, extent) = *self.extents.iter().find(|(v, _)| *v == var)?;
            last += c * (extent as i64 - 1);
            if c < 0 {
                return None;
            }
        }
        (last < self.elems as i64).then_some(element)
    }
}

/// A loop over blocks whose body is one loop over steps, joined with that loop where they walk memory as one.
fn in_one_walk(outer: Loop) -> Loop {
    let [Stmt::For(inner)] = outer.body.as_slice() else { return outer };
    let (Extent::Const(m), Extent::Const(n)) = (outer.extent, inner.extent) else { return outer };
    if inner.var.over != Over::Step || inner.kind != LoopKind::Seq || !walks_as_one(&outer, inner, n) {
        return outer;
    }
    let body = substitute(inner.body.clone(), outer.var, &Index::default());
    Loop::new(inner.var, m * n, LoopKind::Seq, body)
}
