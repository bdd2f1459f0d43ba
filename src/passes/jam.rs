//! Takes several steps in one visit of an accumulator.

use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{is_straight, renamed, rewrite, substitute, visit_exprs};
use cranefold_ir::{AccId, Expr, Extent, Index, Names, Nest, Over, Stmt, Var};

/// Writes out a loop over jammed steps, and joins its updates of one accumulator element into one:
///
/// ```text
/// for j0 in 0..3 seq { a0[i1] = add(a0[i1], x0[100*j0 + i1]) }
/// ->
/// a0[i1] = add(add(add(a0[i1], x0[i1]), x0[i1 + 100]), x0[i1 + 200])
/// ```
///
/// An element that several steps read and none sets is read once, before the steps:
///
/// ```text
/// a1[i1] = f(f(a1[i1], x0[i1], a0[i1]), x0[i1 + 100], a0[i1])
/// ->
/// let v0 = a0[i1]
/// a1[i1] = f(f(a1[i1], x0[i1], v0), x0[i1 + 100], v0)
/// ```
///
/// Legal because the updates keep their order. A loop with loops inside is left to `unroll`.
pub fn jam(nest: Nest, _: &Schedule, _: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let body = rewrite(nest.body, &mut |stmt| {
        let Stmt::For(l) = stmt else { return None };
        if l.var.over != Over::Jam || !is_straight(&l.body) {
            return None;
        }
        let Extent::Const(extent) = l.extent else { unreachable!("loops over jammed steps are constant") };
        let step = |j| renamed(substitute(l.body.clone(), l.var, &Index::constant(j as i64)), &mut names);
        let joined = join((0..extent).flat_map(step).collect());
        Some(read_once(joined, &mut names))
    });
    Nest { body, ..nest }
}

/// The body after one read of each accumulator element that it reads several times and does not set.
fn read_once(body: Vec<Stmt>, names: &mut Names) -> Vec<Stmt> {
    let set: Vec<AccId> =
        body.iter().filter_map(|s| if let Stmt::Set { acc, .. } = s { Some(*acc) } else { None }).collect();
    let mut reads: Vec<(Expr, u32)> = vec![];
    visit_exprs(&body, &mut |e| {
        if let Expr::Read(acc, ..) = e
            && !set.contains(acc)
        {
            match reads.iter_mut().find(|(known, _)| known == e) {
                Some((_, uses)) => *uses += 1,
                None => reads.push((e.clone(), 1)),
            }
        }
    });
    let shared: Vec<(Expr, Var)> =
        reads.into_iter().filter(|(_, uses)| *uses > 1).map(|(read, _)| (read, names.var())).collect();
    let before = shared.iter().map(|(read, var)| Stmt::Let { var: *var, value: read.clone() });
    let in_place = |e: Expr| match shared.iter().find(|(read, _)| *read == e) {
        Some((_, var)) => Expr::Var(*var, e.dtype()),
        None => e,
    };
    let body = body.into_iter().map(|s| s.map_exprs(&mut |e| e.rewrite(&mut { in_place })));
    before.chain(body).collect()
}

/// An element that has been set; its value is kept here and set at the end.
struct Pending {
    acc: AccId,
    index: Index,
    value: Expr,
}

fn join(stmts: Vec<Stmt>) -> Vec<Stmt> {
    let mut out = vec![];
    let mut pending: Vec<Pending> = vec![];
    for stmt in stmts {
        let stmt = stmt.map_exprs(&mut |e| {
            e.rewrite(&mut |e| {
                let Expr::Read(acc, _, index) = &e else { return e };
                let known = pending.iter().find(|p| p.acc == *acc && p.index == *index);
                known.map_or(e.clone(), |p| p.value.clone())
            })
        });
        let Stmt::Set { acc, index, value } = stmt else {
            out.push(stmt);
            continue;
        };
        pending.retain(|p| p.acc != acc || p.index != index);
        pending.push(Pending { acc, index, value });
    }
    out.extend(pending.into_iter().map(|p| Stmt::Set { acc: p.acc, index: p.index, value: p.value }));
    out
}
