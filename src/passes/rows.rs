//! Takes several rows of outputs as one.

use super::lanes::lanes;
use super::spreads::walks_as_row;
use super::vector_forms::VectorForms;
use crate::schedule::{Schedule, Transform};
use crate::transposes::loads_runs;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Band, Zone, is_straight, rewrite_zones, substitute};
use cranefold_ir::{
    AccId, Buffer, BufferRole, DType, Expr, Extent, Index, Loop, LoopKind, Names, Nest, Over, Scalar, Stmt,
};

/// Joins the loop of a `@rows` tile and the loop over outputs directly inside it. The elements of inputs, which do not lie
/// as the outputs do, are loaded row by row into an accumulator in the order of the outputs:
///
/// ```text
/// for i0 in 0..2 parallel { for i1 in 0..4 parallel { a0[4*i0 + i1] = add(a0[4*i0 + i1], x0[16*i0 + 2*i1 + 8*k2]) } }
/// ->
/// acc a1: f32[8] = 0.0
/// for i1 in 0..4 lanes { a1[i1] = x0[2*i1 + 8*k2] }
/// for i1 in 0..4 lanes { a1[i1 + 4] = x0[2*i1 + 8*k2 + 16] }
/// for i1 in 0..8 parallel { a0[i1] = add(a0[i1], a1[i1]) }
/// ```
///
/// `transpose` loads the rows of such an accumulator together. The pass works in wide functions whose vectors have a way for
/// that.
///
/// Legal because the loops are parallel, and inputs do not change while a nest runs.
pub fn rows(mut nest: Nest, schedule: &Schedule, vectors: Vectors) -> Nest {
    let is_tile = |l: &Loop| schedule.tile_of(l.var).is_some_and(|tile| tile.transform == Transform::Rows);
    let mut names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    let mut forms = VectorForms::new(&nest.defs, vectors);
    let is_loaded = |b: &Buffer| b.role == BufferRole::In && loads_runs(vectors, b.dtype.bytes());
    let loaded: Vec<bool> = nest.buffers.iter().map(is_loaded).collect();
    nest.body = rewrite_zones(body, Zone::Outside, &mut |stmt, zone| {
        let Stmt::For(l) = stmt else { return None };
        let row = if zone == Zone::Wide && is_tile(l) { row(l, &loaded) } else { None }?;
        let Stmt::For(inner) = &l.body[0] else { return None };
        let lanes = lanes(inner, schedule.width, &mut forms)?;
        let is_full = row.loops[1].1.is_multiple_of(lanes);
        (!is_full).then(|| joined(l.take(), &row, &mut names))
    });
    nest
}

/// The two loops, if the inner one is all that is in the outer one, all accumulators and outputs are walked as by one loop, and
/// the elements of inputs are not.
fn row(l: &Loop, loaded: &[bool]) -> Option<Band> {
    let [Stmt::For(inner)] = l.body.as_slice() else { return None };
    let (Extent::Const(rows), Extent::Const(outputs)) = (l.extent, inner.extent) else { return None };
    let are_parallel = l.kind == LoopKind::Parallel && inner.kind == LoopKind::Parallel;
    if rows == 1 || !are_parallel || inner.var.over != Over::Output || !is_straight(&inner.body) {
        return None;
    }
    let row = Band { loops: vec![(l.var, rows), (inner.var, outputs)] };
    let (mut walks, mut differs) = (true, false);
    for stmt in &inner.body {
        if let Stmt::Set { index, .. } | Stmt::Store { index, .. } = stmt {
            walks &= walks_as_row(index, &row);
        }
        stmt.exprs().iter().for_each(|e| {
            e.visit(&mut |e| match e {
                Expr::Read(.., index) | Expr::At(_, index) => walks &= walks_as_row(index, &row),
                Expr::Load(buf, _, index) if !walks_as_row(index, &row) => {
                    differs = true;
                    walks &= loaded[buf.0 as usize] && row.loops.iter().all(|&(var, _)| index.coefficient(var) > 0);
                }
                Expr::Load(..) | Expr::Const(_) | Expr::Var(..) | Expr::Op(..) | Expr::Call(..) => {}
            });
        });
    }
    (walks && differs).then_some(row)
}

/// The rows as one loop, behind the loads of their elements.
fn joined(l: Loop, row: &Band, names: &mut Names) -> Vec<Stmt> {
    let &[(outer, rows), (inner, outputs)] = &row.loops[..] else { return vec![Stmt::For(l)] };
    let Some(Stmt::For(of_row)) = l.body.into_iter().next() else { return vec![] };
    let mut out = vec![];
    let mut known: Vec<(Expr, AccId)> = vec![];
    let mut load = |e: Expr| {
        let Expr::Load(_, dtype, index) = &e else { return e };
        if walks_as_row(index, row) {
            return e;
        }
        let dtype = *dtype;
        let acc = known.iter().find(|(other, _)| *other == e).map(|&(_, acc)| acc);
        let acc = acc.unwrap_or_else(|| {
            let acc = names.acc();
            known.push((e.clone(), acc));
            out.extend(loads(e, dtype, acc, row));
            acc
        });
        Expr::Read(acc, dtype, row.position())
    };
    let body: Vec<Stmt> = of_row.body.into_iter().map(|stmt| stmt.map_exprs(&mut |e| e.rewrite(&mut load))).collect();
    let body = substitute(body, outer, &Index::default());
    out.push(Stmt::For(Loop::new(inner, rows * outputs, LoopKind::Parallel, body)));
    out
}

/// The loads of an element of each output, row by row, into an accumulator.
fn loads(element: Expr, dtype: DType, acc: AccId, row: &Band) -> Vec<Stmt> {
    let &[(outer, rows), (inner, outputs)] = &row.loops[..] else { return vec![] };
    let set = Stmt::Set { acc, index: row.position(), value: element };
    let of_row = |n: u64| {
        let body = substitute(vec![set.clone()], outer, &Index::constant(n as i64));
        Stmt::For(Loop::new(inner, outputs, LoopKind::Lanes, body))
    };
    let mut out = vec![Stmt::Acc { acc, dtype, len: rows * outputs, init: Scalar::from_bits(dtype, 0) }];
    out.extend((0..rows).map(of_row));
    out
}
