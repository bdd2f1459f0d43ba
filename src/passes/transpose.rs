//! Loads the columns of a matrix by transposing its rows.

use super::lanes::lanes_of;
use crate::schedule::{Machine, Schedule};
use crate::transposes::{MOST_COLUMNS, PIECE_BYTES, Way, most_pieces, piece_starts, way};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{NeighbourSum, Zone, rewrite_bodies};
use cranefold_ir::{AccId, BufId, BufferRole, DType, Expr, Index, LoopVar, Names, Nest, Scalar, Stmt, Transpose};

/// Replaces neighbouring strided loads of a body by one transpose: they load columns of a matrix, whose rows are loaded
/// whole and transposed in registers.
///
/// ```text
/// for i0 in 0..16 lanes { a0[i0] = x0[3*i0 + 48*i2] }
/// for i0 in 0..16 lanes { a0[i0 + 16] = x0[3*i0 + 48*i2 + 1] }
/// for i0 in 0..16 lanes { a0[i0 + 32] = x0[3*i0 + 48*i2 + 2] }
/// ->
/// acc a1: f32[48] = 0.0
/// transpose a1 = x0[48*i2] over 16 by 3 at 0, 1, 2
/// for i0 in 0..16 lanes { a0[i0] = a1[i0] }
/// for i0 in 0..16 lanes { a0[i0 + 16] = a1[i0 + 16] }
/// for i0 in 0..16 lanes { a0[i0 + 32] = a1[i0 + 32] }
/// ```
///
/// A schedule with `transpose=off` has none. A transpose stands before the first statement that uses it.
/// [`transposes`](crate::transposes) says what the vectors of a zone have a way for. Where loads are transposed and others
/// of the body lie behind them in the input, the last vector may be read whole up to there, which `within` says.
///
/// Legal because inputs do not change while a nest runs, and what is read besides lies between elements that are read.
pub fn transpose(nest: Nest, schedule: &Schedule, vectors: Vectors) -> Nest {
    if !schedule.transpose {
        return nest;
    }
    let is_input = nest.buffers.iter().map(|b| b.role == BufferRole::In).collect();
    let mut transposes = Transposes { is_input, names: Names::after(&nest) };
    let outside = if vectors == Vectors::NONE { Vectors::NONE } else { Vectors::BASE };
    let body = rewrite_bodies(nest.body, Zone::Outside, &mut |body, zone| match zone {
        Zone::Outside => transposes.body(body, outside),
        Zone::Wide => transposes.body(body, vectors),
    });
    Nest { body, ..nest }
}

struct Transposes {
    /// For each buffer, true if it is an input.
    is_input: Vec<bool>,
    names: Names,
}

/// Loads of one body that differ by constants: columns of one matrix.
struct Columns {
    buf: BufId,
    dtype: DType,
    /// The index of the loads without the lanes and without the constant.
    terms: Index,
    lanes: u64,
    stride: i64,
    /// The constants of the loads, in ascending order.
    offsets: Vec<i64>,
}

/// A transpose, and the type of its elements.
struct Made {
    transpose: Transpose,
    dtype: DType,
    is_placed: bool,
}

impl Transposes {
    fn body(&mut self, body: Vec<Stmt>, vectors: Vectors) -> Vec<Stmt> {
        let mut made = self.made(&body, vectors);
        if made.is_empty() {
            return body;
        }
        let mut out = Vec::with_capacity(body.len() + 2 * made.len());
        for stmt in body {
            let stmt = match lanes_of(&stmt) {
                None => stmt,
                Some((var, count)) => {
                    let lanes = Lanes { var, count, vectors };
                    stmt.map_body(&mut |stmt| stmt.map_exprs(&mut |e| lanes.read_columns(e, &mut made, &mut out)))
                }
            };
            out.push(stmt);
        }
        out
    }

    /// The transposes of a body.
    fn made(&mut self, body: &[Stmt], vectors: Vectors) -> Vec<Made> {
        let all = self.columns(body, vectors);
        let mut found = match vectors.are_wide() {
            true => wide(&all, vectors),
            false => all.iter().flat_map(|columns| columns.rows_of_matrices(vectors)).collect(),
        };
        found.iter_mut().for_each(|made| made.transpose.acc = self.names.acc());
        found
    }

    /// The loads in the lanes of a body whose lanes lie apart in an input.
    fn columns(&self, body: &[Stmt], vectors: Vectors) -> Vec<Columns> {
        let mut all: Vec<Columns> = vec![];
        for stmt in body {
            let Some((var, count)) = lanes_of(stmt) else { continue };
            let mut see = |buf: BufId, dtype, index: &Index| {
                let stride = index.coefficient(var);
                if !self.is_input[buf.0 as usize] || count == 1 || matches!(stride, 0 | 1) {
                    return;
                }
                let terms = without(index, var).offset_by(-index.offset);
                let is_of = |c: &&mut Columns| (c.buf, c.stride, c.lanes) == (buf, stride, count) && c.terms == terms;
                match all.iter_mut().find(is_of) {
                    Some(columns) => columns.offsets.push(index.offset),
                    None => all.push(Columns { buf, dtype, terms, lanes: count, stride, offsets: vec![index.offset] }),
                }
            };
            let lanes = Lanes { var, count, vectors };
            stmt.body().iter().for_each(|s| s.exprs().iter().for_each(|e| lanes.visit_loads(e, &mut see)));
        }
        for columns in &mut all {
            columns.offsets.sort_unstable();
            columns.offsets.dedup();
        }
        all
    }
}

fn without(index: &Index, var: LoopVar) -> Index {
    index.clone().plus(var, -index.coefficient(var))
}

/// The lanes in which a statement stands, and the vectors of its zone.
#[derive(Clone, Copy)]
struct Lanes {
    var: LoopVar,
    count: u64,
    vectors: Vectors,
}

impl Lanes {
    /// Returns true if wide vectors compute the expression, a sum of neighbouring bytes, with one load of a whole
    /// vector.
    fn is_whole(self, e: &Expr) -> bool {
        let is_vector = |sum: NeighbourSum| self.count * sum.dtype.bytes() == u64::from(self.vectors.bits / 8);
        let sum = self.vectors.are_wide().then(|| NeighbourSum::of(e)).flatten();
        sum.is_some_and(|sum| sum.fills_lanes(self.var) && is_vector(sum))
    }

    /// Calls `f` on each load below the expression, except loads within a whole vector of bytes.
    fn visit_loads<'e>(self, e: &'e Expr, f: &mut impl FnMut(BufId, DType, &'e Index)) {
        if let Expr::Load(buf, dtype, index) = e {
            f(*buf, *dtype, index);
        } else if !self.is_whole(e) {
            e.args().iter().for_each(|arg| self.visit_loads(arg, f));
        }
    }

    /// The expression with reads of transposes' accumulators in place of their loads. A transpose is put in `out`
    /// before its first use.
    fn read_columns(self, e: Expr, made: &mut [Made], out: &mut Vec<Stmt>) -> Expr {
        let all = |args: Vec<Expr>, made: &mut [Made], out: &mut Vec<Stmt>| {
            args.into_iter().map(|arg| self.read_columns(arg, made, out)).collect()
        };
        if self.is_whole(&e) {
            return e;
        }
        match e {
            Expr::Load(buf, dtype, index) => self.load(buf, dtype, index, made, out),
            Expr::Op(op, dtype, args) => Expr::Op(op, dtype, all(args, made, out)),
            Expr::Call(def, dtype, args) => Expr::Call(def, dtype, all(args, made, out)),
            e @ (Expr::Const(_) | Expr::Var(..) | Expr::Read(..) | Expr::At(..)) => e,
        }
    }

    fn load(self, buf: BufId, dtype: DType, index: Index, made: &mut [Made], out: &mut Vec<Stmt>) -> Expr {
        let (stride, start) = (index.coefficient(self.var), without(&index, self.var));
        let place = |(n, made): (usize, &Made)| Some((n, made.column(buf, stride, self.count, &start)?));
        let Some((n, column)) = made.iter().enumerate().find_map(place) else { return Expr::Load(buf, dtype, index) };
        let Made { transpose, is_placed, .. } = &mut made[n];
        if !std::mem::replace(is_placed, true) {
            let (len, init) = (transpose.elements(), Scalar::from_bits(dtype, 0));
            out.push(Stmt::Acc { acc: transpose.acc, dtype, len, init });
            out.push(Stmt::Transpose(transpose.clone()));
        }
        Expr::Read(transpose.acc, dtype, Index::term(self.var, 1).offset_by((column * self.count) as i64))
    }
}

impl Made {
    /// The column of the transpose that a load of `lanes` lanes from `start` on reads; `None` if it reads no column.
    fn column(&self, buf: BufId, stride: i64, lanes: u64, start: &Index) -> Option<u64> {
        let t = &self.transpose;
        let ahead = u64::try_from(start.offset - t.first.offset).ok()?;
        let column = t.columns.iter().position(|&column| column == ahead)?;
        let is_of = (t.buf, t.stride, t.lanes) == (buf, stride, lanes);
        (is_of && t.first.clone().offset_by(ahead as i64) == *start).then_some(column as u64)
    }
}

/// The transposes of wide vectors: by deinterleaving where rows lie close together, else by pieces of rows.
fn wide(all: &[Columns], vectors: Vectors) -> Vec<Made> {
    let mut near: Vec<(&Columns, Made)> = vec![];
    for columns in all {
        near.extend(columns.windows().into_iter().map(|made| (columns, made)));
    }
    let end = |t: &Transpose| t.first.clone().offset_by(t.span().1 as i64 + 1);
    let ends: Vec<(BufId, Index)> = near.iter().map(|(_, made)| (made.transpose.buf, end(&made.transpose))).collect();
    for (_, Made { transpose: t, .. }) in &mut near {
        let distance = |(buf, end): &(BufId, Index)| {
            let distance = end.offset - t.first.offset;
            (*buf == t.buf && t.first.clone().offset_by(distance) == *end).then_some(distance)
        };
        let known = ends.iter().filter_map(distance).max().unwrap_or(0);
        t.within = if i128::from(known) > t.span().1 + 1 { known as u64 } else { 0 };
    }
    near.retain(|(_, made)| {
        matches!(way(vectors, &made.transpose, made.dtype.bytes()), Some(Way::Deinterleave { .. }))
    });
    let mut far = vec![];
    for columns in all {
        let is_taken = |offset: &i64| {
            let takes = |(of, made): &(&Columns, Made)| {
                let t = &made.transpose;
                std::ptr::eq(*of, columns) && t.columns.iter().any(|&c| t.first.offset + c as i64 == *offset)
            };
            near.iter().any(takes)
        };
        let rest: Vec<i64> = columns.offsets.iter().copied().filter(|offset| !is_taken(offset)).collect();
        far.extend(columns.pieces(&rest, vectors));
    }
    near.into_iter().map(|(_, made)| made).chain(far).collect()
}

impl Columns {
    /// The transpose of columns at these offsets.
    fn made(&self, offsets: &[i64]) -> Made {
        let first = offsets[0];
        let transpose = Transpose {
            acc: AccId(0),
            buf: self.buf,
            first: self.terms.clone().offset_by(first),
            lanes: self.lanes,
            stride: self.stride,
            runs: 1,
            run_stride: 0,
            columns: offsets.iter().map(|offset| offset.abs_diff(first)).collect(),
            within: 0,
        };
        Made { transpose, dtype: self.dtype, is_placed: false }
    }

    /// Transposes of columns less than one stride apart.
    fn windows(&self) -> Vec<Made> {
        let mut rest = self.offsets.as_slice();
        let mut windows = vec![];
        while let Some(&first) = rest.first().filter(|_| self.stride > 1) {
            let len = rest.iter().take_while(|offset| **offset - first < self.stride).count();
            let (window, after) = rest.split_at(len);
            windows.push(self.made(window));
            rest = after;
        }
        windows
    }

    /// Transposes of neighbouring columns by whole pieces of rows: at most a line of memory at once, and at most as
    /// many pieces as fit the registers.
    fn pieces(&self, offsets: &[i64], vectors: Vectors) -> Vec<Made> {
        let bytes = self.dtype.bytes();
        let in_piece = PIECE_BYTES / bytes;
        let at_once = most_pieces(vectors, bytes).min(Machine::LINE_BYTES / PIECE_BYTES) as usize;
        let mut all = vec![];
        for run in offsets.chunk_by(|a, b| a + 1 == *b) {
            let columns: Vec<u64> = (0..run.len() as u64).collect();
            for starts in piece_starts(&columns, bytes).chunks(at_once) {
                let end = starts[starts.len() - 1] + in_piece;
                if let Some(together) = run.get(starts[0] as usize..end as usize) {
                    all.push(self.made(together));
                }
            }
        }
        all.retain(|made| way(vectors, &made.transpose, bytes).is_some());
        all
    }

    /// Transposes of neighbouring columns for vectors of 128 bits.
    fn rows_of_matrices(&self, vectors: Vectors) -> Vec<Made> {
        let most = u64::try_from(self.stride).unwrap_or(0).min(MOST_COLUMNS) as usize;
        if most < 2 {
            return vec![];
        }
        let runs = self.offsets.chunk_by(|a, b| a + 1 == *b);
        let mut all: Vec<Made> = runs.flat_map(|run| run.chunks(most)).map(|run| self.made(run)).collect();
        all.retain(|made| way(vectors, &made.transpose, self.dtype.bytes()).is_some());
        all
    }
}
