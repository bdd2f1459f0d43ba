//! Adds bytes that lie side by side in one lane.

use super::sums::{added, is_sum};
use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Access, mentions, rewrite, substitute, visit_accesses};
use cranefold_ir::{AccId, BufId, BufferRole, DType, Expr, Extent, Index, Loop, LoopKind, Nest, Op, Over, Stmt};

/// Sums 4 or 8 neighbouring bytes in one lane per step, where bytes are summed in integers of 4 or 8 bytes; left-over
/// steps follow. Wide vectors have instructions that sum neighbouring bytes, and then convert sums instead of bytes:
///
/// ```text
/// acc a0: i32[64] = 0
/// for k1 in 0..63 seq { for l2 in 0..64 parallel { a0[l2] = add(a0[l2], i32(x0[64*k1 + l2])) } }
/// fold a0 by combine_add over 64 of 64 by 1
/// ->
/// acc a0: i32[64] = 0
/// for k1 in 0..15 seq {
///   for l2 in 0..64 parallel {
///     a0[l2] = add(a0[l2], add(add(add(i32(x0[256*k1 + 4*l2]), i32(x0[256*k1 + 4*l2 + 1])), i32(x0[.. + 2])), i32(x0[.. + 3])))
///   }
/// }
/// for k1 in 0..3 seq { for l2 in 0..64 parallel { a0[l2] = add(a0[l2], i32(x0[64*k1 + l2 + 3840])) } }
/// fold a0 by combine_add over 64 of 64 by 1
/// ```
///
/// Legal where the accumulator, from its declaration to the fold of its lanes, is only added to: each update is an
/// integer addition, lanes fold by `add`, and nothing reads it before. The result is one sum of all elements in all
/// lanes. Integer addition is exact modulo 2^bits, so the sum does not depend on the lane to which an element is added.
///
/// The pass runs while `fold` is still a statement, which says that all lanes end in one sum.
pub fn neighbours(mut nest: Nest, _: &Schedule, vectors: Vectors) -> Nest {
    if !vectors.are_wide() {
        return nest;
    }
    let body = std::mem::take(&mut nest.body);
    nest.body = in_body(body, &nest, u64::from(vectors.bits / 8));
    nest
}

fn in_body(body: Vec<Stmt>, nest: &Nest, vector_bytes: u64) -> Vec<Stmt> {
    let inner = |stmt| {
        let Stmt::For(l) = stmt else { return stmt };
        Stmt::For(Loop { body: in_body(l.body, nest, vector_bytes), ..l })
    };
    let mut body: Vec<Stmt> = body.into_iter().map(inner).collect();
    let declared = |s: &Stmt| if let Stmt::Acc { acc, .. } = s { Some(*acc) } else { None };
    let accs: Vec<AccId> = body.iter().filter_map(declared).collect();
    for acc in accs.into_iter().filter(|&acc| is_one_sum(acc, &body, nest)).collect::<Vec<_>>() {
        body = rewrite(body, &mut |stmt| {
            let Stmt::For(k) = stmt else { return None };
            steps(k, acc, nest, vector_bytes)
        });
    }
    body
}

/// Returns true if the accumulator, which this body declares, is one sum of integers: it is only added to, then all its
/// lanes fold by addition, and later statements read only the sum. Its blocks were joined before.
fn is_one_sum(acc: AccId, body: &[Stmt], nest: &Nest) -> bool {
    let declared = body.iter().find_map(|s| {
        let Stmt::Acc { acc: a, len, .. } = s else { return None };
        (*a == acc).then_some(*len)
    });
    let fold = body.iter().position(|s| {
        let Stmt::Fold { accs, def, present, lanes, elems: 1 } = s else { return false };
        *accs == [acc] && present == lanes && Some(*lanes) == declared && is_sum(nest.def(*def))
    });
    let Some(fold) = fold else { return false };
    let mut is_one = true;
    // The visit reaches the statements in a loop one by one.
    let adds = |s: &Stmt| match s {
        Stmt::Set { acc: a, index, value } if *a == acc => added(acc, index, value).is_some(),
        Stmt::Acc { .. } | Stmt::For(_) | Stmt::Wide { .. } => true,
        Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. } => !mentions(s, acc),
        Stmt::Carry { .. }
        | Stmt::Pick { .. }
        | Stmt::Misalign { .. }
        | Stmt::Rotate { .. }
        | Stmt::Prefetch { .. } => !mentions(s, acc),
        Stmt::Merge { .. }
        | Stmt::Fold { .. }
        | Stmt::Select { .. }
        | Stmt::Transpose(_)
        | Stmt::TransposedStore(_) => !mentions(s, acc),
    };
    body[..fold].iter().for_each(|s| s.visit(&mut |s| is_one &= adds(s)));
    for stmt in &body[fold + 1..] {
        visit_accesses(stmt, &mut |a, access| is_one &= a != acc || access == Access::Read(&Index::default()));
    }
    is_one
}

/// The parts of a byte of an input that is cast to a wider integer: its type, the buffer, the byte's type, the index.
fn byte<'a>(e: &'a Expr, nest: &Nest) -> Option<(DType, BufId, DType, &'a Index)> {
    let Expr::Op(Op::Cast, dtype, args) = e else { return None };
    let Expr::Load(buf, from, index) = &args[0] else { return None };
    let is_input = nest.buffers[buf.0 as usize].role == BufferRole::In;
    let widens = from.is_int() && from.bytes() == 1 && dtype.is_int() && dtype.bytes() >= 4;
    (is_input && widens).then_some((*dtype, *buf, *from, index))
}

/// The loops that replace a loop over steps that adds bytes to the accumulator; `None` if it adds no bytes, or has
/// fewer steps than a sum has bytes.
fn steps(k: &Loop, acc: AccId, nest: &Nest, vector_bytes: u64) -> Option<Vec<Stmt>> {
    let (Over::Step, Extent::Const(steps), [Stmt::For(l)]) = (k.var.over, k.extent, k.body.as_slice()) else {
        return None;
    };
    let (Over::Lane, LoopKind::Parallel, Extent::Const(lanes)) = (l.var.over, l.kind, l.extent) else { return None };
    let [Stmt::Set { acc: set, index: at, value }] = l.body.as_slice() else { return None };
    if *set != acc || at.coefficient(l.var) != 1 || at.coefficient(k.var) != 0 {
        return None;
    }
    let (dtype, buf, from, index) = byte(added(acc, at, value)?, nest)?;
    let together = dtype.bytes();
    let side_by_side = index.coefficient(l.var) == 1 && index.coefficient(k.var) == lanes as i64;
    // Lanes that do not fill whole vectors would have to gather their bytes.
    let whole = (lanes * dtype.bytes()).is_multiple_of(vector_bytes);
    if steps < together || !side_by_side || !whole {
        return None;
    }
    let by_group = |var| Index::term(var, together as i64);
    let first = index.clone().substituted(k.var, &by_group(k.var)).substituted(l.var, &by_group(l.var));
    let one = |n: u64| Expr::Load(buf, from, first.clone().offset_by(n as i64)).cast(dtype);
    let sum = (1..together).fold(one(0), |sum, n| sum.add(one(n)));
    let value = Expr::Read(acc, dtype, at.clone()).add(sum);
    let set = Stmt::Set { acc, index: at.clone(), value };
    let body = vec![Stmt::For(Loop { body: vec![set], ..l.clone() })];
    let mut out = vec![Stmt::For(Loop::new(k.var, steps / together, LoopKind::Seq, body))];
    let done = steps / together * together;
    if done < steps {
        let later = Index::term(k.var, 1).offset_by(done as i64);
        let body = substitute(k.body.clone(), k.var, &later);
        out.push(Stmt::For(Loop::new(k.var, steps - done, LoopKind::Seq, body)));
    }
    Some(out)
}
