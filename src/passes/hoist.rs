//! Hoists loop-invariant reads.

use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::rewrite;
use cranefold_ir::{AccId, Buffer, BufferRole, Expr, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Stmt};
use rustc_hash::FxHashSet;

/// Hoists reads of accumulators, loads of inputs and values of indices out of each loop that changes neither their
/// index nor the accumulator:
///
/// ```text
/// for k0 in 0..64 seq { for l1 in 0..32 parallel { a1[l1] = add(a1[l1], exp_sub(x0[..], a0[0])) } }
/// ->
/// let v0 = a0[0]
/// for k0 in 0..64 seq { for l1 in 0..32 parallel { a1[l1] = add(a1[l1], exp_sub(x0[..], v0)) } }
/// ```
///
/// Legal because a value that a loop does not change may be read once, and inputs do not change while a nest runs.
pub fn hoist(nest: Nest, _: &Schedule, _: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let buffers = nest.buffers.clone();
    let body = rewrite(nest.body, &mut |stmt| {
        let Stmt::For(l) = stmt else { return None };
        match l.kind {
            // What never runs may name elements that there are not.
            _ if l.extent == Extent::Const(0) => None,
            LoopKind::Parallel | LoopKind::Seq => {
                let mut before = out_of(l, &buffers, &mut names);
                if before.is_empty() {
                    return None;
                }
                before.push(Stmt::For(l.take()));
                Some(before)
            }
            LoopKind::Lanes => None,
        }
    });
    Nest { body, ..nest }
}

/// The reads that are hoisted out of a loop; inner loops have been handled before.
fn out_of(l: &mut Loop, buffers: &[Buffer], names: &mut Names) -> Vec<Stmt> {
    let mut changed: FxHashSet<AccId> = FxHashSet::default();
    let mut bound: FxHashSet<LoopVar> = FxHashSet::from_iter([l.var]);
    for stmt in &l.body {
        stmt.visit(&mut |s| {
            changed.extend(s.changed_accs());
            bound.extend(s.bound_loop_var());
        });
    }
    let fixed = |index: &Index| index.terms().all(|(v, _)| !bound.contains(&v));
    let moves = |e: &Expr| match e {
        Expr::Read(acc, _, index) => !changed.contains(acc) && fixed(index),
        Expr::Load(buf, _, index) => buffers[buf.0 as usize].role == BufferRole::In && fixed(index),
        Expr::At(_, index) => !index.is_constant() && fixed(index),
        Expr::Const(_) | Expr::Var(..) | Expr::Op(..) | Expr::Call(..) => false,
    };
    let mut before: Vec<Stmt> = vec![];
    l.body.retain_mut(|stmt| {
        if let Stmt::Let { var, value } = stmt
            && moves(value)
        {
            before.push(Stmt::Let { var: *var, value: value.clone() });
            return false;
        }
        let mut hoisted = |e: &mut Expr| {
            if !moves(e) {
                return;
            }
            let known = before.iter().find_map(|s| {
                let Stmt::Let { var, value } = s else { return None };
                (value == e).then_some(*var)
            });
            let var = known.unwrap_or_else(|| {
                let var = names.var();
                before.push(Stmt::Let { var, value: e.clone() });
                var
            });
            *e = Expr::Var(var, e.dtype());
        };
        stmt.exprs_mut().iter_mut().for_each(|e| e.each_mut(&mut hoisted));
        true
    });
    before
}
