//! Loops over positions of slices, apart from the rest of the loops over outputs.

use cranefold_ir::analysis::{Access, Band, Side, visit_accesses, visit_exprs};
use cranefold_ir::{AccId, Expr, Index, Loop, Names, Over, Scalar, Stmt, Var};
use rustc_hash::FxHashSet;

/// The statements with the loops of a band around them, where the last ones write positions of slices and slices lie
/// beside one another in a position. There the band's loops go inside those over positions, so that the outputs of a
/// position are written one behind the other:
///
/// ```text
/// for i0 in 0..32 parallel {
///   S
///   for p1 in 0..784 parallel { for p2 in 0..8 parallel { x1[256*p1 + 8*i0 + p2] = sub(x0[256*p1 + 8*i0 + p2], a0[0]) } }
/// }
/// ->
/// acc a1: f32[32] = 0.0
/// for i0 in 0..32 parallel { S a1[i0] = a0[0] }
/// for p1 in 0..784 parallel {
///   for i0 in 0..32 parallel { for p2 in 0..8 parallel { x1[256*p1 + 8*i0 + p2] = sub(x0[256*p1 + 8*i0 + p2], a1[i0]) } }
/// }
/// ```
///
/// Legal because outputs are independent, and an element that is read at a position is written there, if at all.
pub(super) fn apart(band: &Band, mut body: Vec<Stmt>, names: &mut Names) -> Vec<Stmt> {
    let is_over_positions = |s: &Stmt| matches!(s, Stmt::For(l) if l.var.over == Over::Position);
    let rest = body.iter().rposition(|s| !is_over_positions(s)).map_or(0, |at| at + 1);
    let moves = |s: &Stmt| matches!(s, Stmt::For(l) if lies_inside(band, l));
    let values = values_read(&body[rest..]).filter(|_| body[rest..].iter().any(moves));
    let Some(values) = values else { return band.around(body) };
    let positions = body.split_off(rest);
    let mut out = vec![];
    let mut copies: Vec<(Expr, AccId)> = vec![];
    for value in values {
        let (acc, dtype) = (names.acc(), value.dtype());
        out.push(Stmt::Acc { acc, dtype, len: band.count(), init: Scalar::zero(dtype) });
        body.push(Stmt::Set { acc, index: band.position(), value: value.clone() });
        copies.push((value, acc));
    }
    out.extend(band.around(body));
    let from_copy = |e: Expr| match copies.iter().find(|(value, _)| *value == e) {
        Some((value, acc)) => Expr::Read(*acc, value.dtype(), band.position()),
        None => e,
    };
    let positions = positions.into_iter().map(|s| map_all(s, &from_copy)).collect();
    out.extend(band.sink(positions, &mut |stmt| {
        if !moves(&stmt) {
            return Side::Inside(stmt);
        }
        let Stmt::For(l) = stmt else { unreachable!("a loop moves") };
        Side::Outside(Stmt::For(inside(band, l)))
    }));
    out
}

/// The statement with `f` applied to each expression in it, at any depth.
fn map_all(stmt: Stmt, f: &impl Fn(Expr) -> Expr) -> Stmt {
    let stmt = stmt.with_body(|body| body.into_iter().map(|s| map_all(s, f)).collect());
    stmt.map_exprs(&mut |e| e.rewrite(&mut |e| f(e)))
}

/// A loop over positions with the band's loops inside it, and inside the loops in it that walk memory further.
fn inside(band: &Band, mut l: Loop) -> Loop {
    let body = match l.body.pop() {
        Some(Stmt::For(inner)) if l.body.is_empty() && lies_inside(band, &inner) => {
            vec![Stmt::For(inside(band, inner))]
        }
        last => {
            l.body.extend(last);
            band.around(l.body)
        }
    };
    Loop { body, ..l }
}

/// Returns whether a loop over positions walks the outputs further than each loop of the band does.
pub(super) fn lies_inside(band: &Band, l: &Loop) -> bool {
    let own = stride(&l.body, |index| index.coefficient(l.var));
    let walks_less = |&(var, _): &_| {
        let other = stride(&l.body, |index| index.coefficient(var));
        0 < other && other < own
    };
    l.var.over == Over::Position && band.loops.iter().all(walks_less)
}

/// The longest stride of the stores to outputs.
fn stride(body: &[Stmt], of: impl Fn(&Index) -> i64) -> u64 {
    let mut stride = 0;
    body.iter().for_each(|s| {
        s.visit(&mut |s| {
            if let Stmt::Store { index, .. } = s {
                stride = stride.max(of(index).unsigned_abs());
            }
        })
    });
    stride
}

/// The elements of accumulators from outside that the statements read; `None` if they use more than elements of constant
/// indices.
fn values_read(body: &[Stmt]) -> Option<Vec<Expr>> {
    let (mut own, mut bound): (FxHashSet<AccId>, FxHashSet<Var>) = (FxHashSet::default(), FxHashSet::default());
    let mut is_plain = true;
    for stmt in body {
        stmt.visit(&mut |s| bound.extend(s.bound_vars()));
        visit_accesses(stmt, &mut |acc, access| match access {
            Access::Declared => _ = own.insert(acc),
            Access::Read(_) => {}
            Access::Set(_) | Access::Combined | Access::Transposed | Access::Stored | Access::Selected => {
                is_plain &= own.contains(&acc)
            }
        });
    }
    let mut values = vec![];
    visit_exprs(body, &mut |e| match e {
        Expr::Var(var, _) => is_plain &= bound.contains(var),
        Expr::Read(acc, _, index) if !own.contains(acc) => {
            is_plain &= index.is_constant();
            if !values.contains(e) {
                values.push(e.clone());
            }
        }
        Expr::Read(..) | Expr::Load(..) | Expr::At(..) | Expr::Const(_) | Expr::Op(..) | Expr::Call(..) => {}
    });
    is_plain.then_some(values)
}
