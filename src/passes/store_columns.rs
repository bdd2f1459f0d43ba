//! Stores the columns of a matrix by transposing them to rows.

use super::lanes::lanes_of;
use crate::schedule::Schedule;
use crate::transposes::store_width;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Zone, rewrite_bodies};
use cranefold_ir::{
    AccId, BufId, Buffer, BufferRole, DType, Expr, Index, LoopVar, Names, Nest, Scalar, Stmt, Transpose,
};

/// Replaces neighbouring strided stores of a body by one transposed store: they write columns of a matrix, which is
/// transposed in registers and written whole.
///
/// ```text
/// for i0 in 0..16 lanes { x1[2*i0 + 32*i2] = mul(a0[i0], v0) }
/// for i0 in 0..16 lanes { x1[2*i0 + 32*i2 + 1] = mul(a0[i0 + 16], v0) }
/// ->
/// acc a1: f32[32] = 0.0
/// for i0 in 0..16 lanes { a1[i0] = mul(a0[i0], v0) }
/// for i0 in 0..16 lanes { a1[i0 + 16] = mul(a0[i0 + 16], v0) }
/// transpose x1[32*i2] = a1 over 16 by 2 at 0, 1
/// ```
///
/// A schedule with `transpose=off` has none. [`store_width`] says what the vectors of a zone have a way for: a matrix
/// without holes between its columns.
///
/// Legal because the transposed store stands where the last of its columns was stored, every element is written once, and
/// nothing in between reads the output or writes one of these elements.
pub fn store_columns(nest: Nest, schedule: &Schedule, vectors: Vectors) -> Nest {
    if !schedule.transpose || !nest.body.iter().any(has_columns) {
        return nest;
    }
    let outside = if vectors == Vectors::NONE { Vectors::NONE } else { Vectors::BASE };
    let mut names = Names::after(&nest);
    let mut stores = Stores { buffers: &nest.buffers, names: &mut names };
    let body = rewrite_bodies(nest.body, Zone::Outside, &mut |body, zone| match zone {
        Zone::Outside => stores.body(body, outside),
        Zone::Wide => stores.body(body, vectors),
    });
    Nest { body, ..nest }
}

/// Returns true if lanes of the statement, or of one in it, store elements that lie apart.
fn has_columns(stmt: &Stmt) -> bool {
    let apart = |s: &Stmt, var| matches!(s, Stmt::Store { index, .. } if index.coefficient(var) > 1);
    match lanes_of(stmt) {
        Some((var, _)) => stmt.body().iter().any(|s| apart(s, var)),
        None => stmt.body().iter().any(has_columns),
    }
}

struct Stores<'n> {
    buffers: &'n [Buffer],
    names: &'n mut Names,
}

/// A store in lanes whose elements lie apart.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    /// The number of the statement in its body.
    at: usize,
    buf: BufId,
    lanes: u64,
    stride: i64,
    /// The element of lane 0.
    first: Index,
}

/// A transposed store in place of columns.
struct Made {
    transpose: Transpose,
    dtype: DType,
    columns: Vec<Column>,
}

impl Stores<'_> {
    fn body(&mut self, body: Vec<Stmt>, vectors: Vectors) -> Vec<Stmt> {
        let made = self.made(&body, vectors);
        if made.is_empty() {
            return body;
        }
        let mut out = Vec::with_capacity(body.len() + 2 * made.len());
        for (at, stmt) in body.into_iter().enumerate() {
            for Made { transpose: t, dtype, columns } in &made {
                if columns.iter().map(|column| column.at).min() == Some(at) {
                    let init = Scalar::from_bits(*dtype, 0);
                    out.push(Stmt::Acc { acc: t.acc, dtype: *dtype, len: t.elements(), init });
                }
            }
            out.push(match lanes_of(&stmt) {
                Some((var, lanes)) => stmt.map_body(&mut |s| into_accumulator(s, at, (var, lanes), &made)),
                None => stmt,
            });
            for Made { transpose, columns, .. } in &made {
                if columns.iter().map(|column| column.at).max() == Some(at) {
                    out.push(Stmt::TransposedStore(transpose.clone()));
                }
            }
        }
        out
    }

    /// The transposed stores of a body.
    fn made(&mut self, body: &[Stmt], vectors: Vectors) -> Vec<Made> {
        let mut rest = self.columns(body);
        let mut made = vec![];
        while let Some(column) = rest.first().cloned() {
            let columns = neighbours(&column, &rest);
            let found = self.transposed(&columns, vectors).filter(|_| may_move(&columns, body, self.buffers));
            rest.retain(|other| match &found {
                Some(_) => !columns.contains(other),
                None => *other != column,
            });
            made.extend(found);
        }
        made
    }

    /// The stores in the lanes of a body whose lanes lie apart, those of the same matrix in the order of their elements.
    fn columns(&self, body: &[Stmt]) -> Vec<Column> {
        let mut all: Vec<Column> = vec![];
        for (at, stmt) in body.iter().enumerate() {
            let Some((var, lanes)) = lanes_of(stmt) else { continue };
            for s in stmt.body() {
                let Stmt::Store { buf, index, .. } = s else { continue };
                let stride = index.coefficient(var);
                if stride > 1 && lanes > 1 {
                    all.push(Column { at, buf: *buf, lanes, stride, first: without(index, var) });
                }
            }
        }
        all.sort_by_key(|column| column.first.offset);
        all
    }

    /// The transposed store of these columns; `None` if the vectors have no way for it.
    fn transposed(&mut self, columns: &[Column], vectors: Vectors) -> Option<Made> {
        let Column { buf, lanes, stride, first, .. } = &columns[0];
        let dtype = self.buffers[buf.0 as usize].dtype;
        let distance = |column: &Column| column.first.offset.abs_diff(first.offset);
        let mut transpose = Transpose {
            acc: AccId(0),
            buf: *buf,
            first: first.clone(),
            lanes: *lanes,
            stride: *stride,
            runs: 1,
            run_stride: 0,
            columns: columns.iter().map(distance).collect(),
            within: 0,
        };
        store_width(vectors, &transpose, dtype.bytes())?;
        transpose.acc = self.names.acc();
        Some(Made { transpose, dtype, columns: columns.to_vec() })
    }
}

fn without(index: &Index, var: LoopVar) -> Index {
    index.clone().plus(var, -index.coefficient(var))
}

/// The columns of the matrix that begins with this one: as many as a row has elements, or up to the first one missing.
fn neighbours(first: &Column, all: &[Column]) -> Vec<Column> {
    let next = |n: i64| {
        let wanted = first.first.clone().offset_by(n);
        let is_one = |c: &&Column| (c.buf, c.lanes, c.stride) == (first.buf, first.lanes, first.stride);
        all.iter().filter(is_one).find(|column| column.first == wanted).cloned()
    };
    (0..first.stride).map_while(next).collect()
}

/// Returns true if the columns may be stored where the last one is: until then nothing else reads the output, or writes
/// one of their elements.
fn may_move(columns: &[Column], body: &[Stmt], buffers: &[Buffer]) -> bool {
    let Column { buf, lanes, stride, first, .. } = &columns[0];
    let [start, end] =
        [columns.iter().map(|c| c.at).min(), columns.iter().map(|c| c.at).max()].map(Option::unwrap_or_default);
    let is_read = buffers[buf.0 as usize].role == BufferRole::InOut;
    // Each index of the columns is stored to once.
    let mut stores = 0;
    let mut is_free = true;
    for stmt in &body[start..=end] {
        let of_lanes = lanes_of(stmt);
        stmt.visit(&mut |s| {
            s.exprs().iter().for_each(|e| {
                e.visit(&mut |e| is_free &= !(is_read && matches!(e, Expr::Load(b, ..) if b == buf)));
            });
            match s {
                Stmt::Store { buf: b, index, .. } if b == buf => {
                    let other = of_lanes.filter(|(var, _)| index.coefficient(*var) == *stride);
                    let other = other.map(|(var, lanes)| (without(index, var), lanes));
                    let is_own = other
                        .as_ref()
                        .is_some_and(|(other, count)| count == lanes && columns.iter().any(|c| c.first == *other));
                    stores += usize::from(is_own);
                    is_free &= is_own || other.is_some_and(|other| lies_beside(other, (first, *lanes), *stride));
                }
                Stmt::TransposedStore(t) => is_free &= t.buf != *buf,
                Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } => {}
                Stmt::Set { .. } | Stmt::Store { .. } | Stmt::Carry { .. } | Stmt::Pick { .. } => {}
                Stmt::Misalign { .. } | Stmt::Rotate { .. } | Stmt::Prefetch { .. } | Stmt::Transpose(_) => {}
                Stmt::Merge { .. } | Stmt::Fold { .. } | Stmt::Select { .. } => {}
            }
        });
    }
    is_free && stores == columns.len()
}

/// Returns true if a column has no element of a matrix, each from its first index on and of so many lanes, where elements
/// lie `stride` apart.
fn lies_beside((other, count): (Index, u64), (first, lanes): (&Index, u64), stride: i64) -> bool {
    let distance = i128::from(other.offset) - i128::from(first.offset);
    let is_constant = other.clone().offset_by(-other.offset) == first.clone().offset_by(-first.offset);
    let elements = |count: u64| i128::from(stride) * i128::from(count);
    let last = distance + elements(count.saturating_sub(1));
    is_constant && (last < 0 || distance >= elements(lanes))
}

/// The statement of lanes with its store, if a transposed store takes it, set in the accumulator.
fn into_accumulator(stmt: Stmt, at: usize, (var, lanes): (LoopVar, u64), made: &[Made]) -> Stmt {
    let Stmt::Store { buf, index, value } = stmt else { return stmt };
    let first = without(&index, var);
    let column = |made: &Made| {
        let c = made.columns.iter().position(|c| c.at == at && c.buf == buf && c.first == first)?;
        (index.coefficient(var) == made.transpose.stride).then_some((made.transpose.acc, c as u64))
    };
    match made.iter().find_map(column) {
        Some((acc, c)) => Stmt::Set { acc, index: Index::term(var, 1).offset_by((c * lanes) as i64), value },
        None => Stmt::Store { buf, index, value },
    }
}
