//! Takes several rows of outputs as one.

use super::lanes::lanes;
use super::spreads::walks_as_row;
use super::vector_forms::VectorForms;
use crate::schedule::{Schedule, Transform};
use crate::transposes::loads_runs;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Band, Zone, is_straight, rewrite_zones, substitute};
use cranefold_ir::{
    AccId, BufId, Buffer, BufferRole, DType, Expr, Extent, Index, Loop, LoopKind, Names, Nest, Over, Scalar, Stmt,
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
/// Elements of outputs that do not lie as the rows do are stored row by row out of such an accumulator, behind the loop.
/// `load_rows` and `store_rows` make transposes of these loads and stores. The pass works in wide functions whose vectors have
/// a way for that.
///
/// Legal because the loops are parallel, and inputs do not change while a nest runs; an output that the loop reads is stored as
/// it stands.
pub fn rows(mut nest: Nest, schedule: &Schedule, vectors: Vectors) -> Nest {
    let is_tile = |l: &Loop| schedule.tile_of(l.var).is_some_and(|tile| tile.transform == Transform::Rows);
    let mut names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    let mut forms = VectorForms::new(&nest.defs, vectors);
    let of = |b: &Buffer| loads_runs(vectors, b.dtype.bytes()).then_some(b.role);
    let roles: Vec<Option<BufferRole>> = nest.buffers.iter().map(of).collect();
    nest.body = rewrite_zones(body, Zone::Outside, &mut |stmt, zone| {
        let Stmt::For(l) = stmt else { return None };
        let row = if zone == Zone::Wide && is_tile(l) { row(l, &roles) } else { None }?;
        let Stmt::For(inner) = &l.body[0] else { return None };
        let lanes = lanes(inner, schedule.width, &mut forms)?;
        let is_full = row.loops[1].1.is_multiple_of(lanes);
        (!is_full).then(|| joined(l.take(), &row, &mut names))
    });
    nest
}

/// The two loops, if the inner one is all that is in the outer one, all accumulators are walked as by one loop, and elements of
/// inputs or outputs are not; `roles` are those of the buffers whose elements vectors bring into order.
fn row(l: &Loop, roles: &[Option<BufferRole>]) -> Option<Band> {
    let [Stmt::For(inner)] = l.body.as_slice() else { return None };
    let (Extent::Const(rows), Extent::Const(outputs)) = (l.extent, inner.extent) else { return None };
    let are_parallel = l.kind == LoopKind::Parallel && inner.kind == LoopKind::Parallel;
    if rows == 1 || !are_parallel || inner.var.over != Over::Output || !is_straight(&inner.body) {
        return None;
    }
    let row = Band { loops: vec![(l.var, rows), (inner.var, outputs)] };
    let (mut walks, mut differs) = (true, false);
    let mut of_buffer = |buf: BufId, role: BufferRole, index: &Index| {
        let is_apart = !walks_as_row(index, &row);
        differs |= is_apart;
        let lies_in_order = row.loops.iter().all(|&(var, _)| index.coefficient(var) > 0);
        !is_apart || (roles[buf.0 as usize] == Some(role) && lies_in_order)
    };
    for stmt in &inner.body {
        if let Stmt::Set { index, .. } = stmt {
            walks &= walks_as_row(index, &row);
        }
        if let Stmt::Store { buf, index, .. } = stmt {
            walks &= of_buffer(*buf, BufferRole::Out, index);
        }
        stmt.exprs().iter().for_each(|e| {
            e.visit(&mut |e| match e {
                Expr::Read(.., index) | Expr::At(_, index) => walks &= walks_as_row(index, &row),
                Expr::Load(buf, _, index) => walks &= of_buffer(*buf, BufferRole::In, index),
                Expr::Const(_) | Expr::Var(..) | Expr::Op(..) | Expr::Call(..) => {}
            });
        });
    }
    (walks && differs).then_some(row)
}

/// The rows as one loop, behind the loads of their elements and before the stores.
fn joined(l: Loop, row: &Band, names: &mut Names) -> Vec<Stmt> {
    let &[(outer, rows), (inner, outputs)] = &row.loops[..] else { return vec![Stmt::For(l)] };
    let Some(Stmt::For(of_row)) = l.body.into_iter().next() else { return vec![] };
    let (mut out, mut stores) = (vec![], vec![]);
    let mut known: Vec<(Expr, AccId)> = vec![];
    let mut load = |e: Expr, names: &mut Names, out: &mut Vec<Stmt>| {
        let Expr::Load(_, dtype, index) = &e else { return e };
        if walks_as_row(index, row) {
            return e;
        }
        let dtype = *dtype;
        let acc = known.iter().find(|(other, _)| *other == e).map(|&(_, acc)| acc);
        let acc = acc.unwrap_or_else(|| {
            let acc = names.acc();
            known.push((e.clone(), acc));
            out.push(declared(acc, dtype, row));
            out.extend(row_by_row(Stmt::Set { acc, index: row.position(), value: e }, row));
            acc
        });
        Expr::Read(acc, dtype, row.position())
    };
    let mut body = vec![];
    for stmt in of_row.body {
        let stmt = stmt.map_exprs(&mut |e| e.rewrite(&mut |e| load(e, names, &mut out)));
        let Some((buf, index, value)) = stored_apart(&stmt, row) else {
            body.push(stmt);
            continue;
        };
        let (acc, dtype) = (names.acc(), value.dtype());
        out.push(declared(acc, dtype, row));
        let element = Expr::Read(acc, dtype, row.position());
        stores.extend(row_by_row(Stmt::Store { buf, index, value: element }, row));
        body.push(Stmt::Set { acc, index: row.position(), value });
    }
    let body = substitute(body, outer, &Index::default());
    out.push(Stmt::For(Loop::new(inner, rows * outputs, LoopKind::Parallel, body)));
    out.extend(stores);
    out
}

/// The buffer, the index and the value of a store that does not walk an output as the row does.
fn stored_apart(stmt: &Stmt, row: &Band) -> Option<(BufId, Index, Expr)> {
    let Stmt::Store { buf, index, value } = stmt else { return None };
    (!walks_as_row(index, row)).then(|| (*buf, index.clone(), value.clone()))
}

/// An accumulator with an element for each output.
fn declared(acc: AccId, dtype: DType, row: &Band) -> Stmt {
    Stmt::Acc { acc, dtype, len: row.count(), init: Scalar::from_bits(dtype, 0) }
}

/// The statement of an output for all of them, row by row.
fn row_by_row(stmt: Stmt, row: &Band) -> impl Iterator<Item = Stmt> {
    let [(outer, rows), (inner, outputs)] = [row.loops[0], row.loops[1]];
    (0..rows).map(move |n| {
        let body = substitute(vec![stmt.clone()], outer, &Index::constant(n as i64));
        Stmt::For(Loop::new(inner, outputs, LoopKind::Lanes, body))
    })
}
