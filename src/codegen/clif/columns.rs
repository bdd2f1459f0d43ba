//! Lanes that lie apart in memory, where neighbours of each are loaded beside them: several outputs in a vector, each with
//! a row of elements.
//!
//! ```text
//! for i0 in 0..4 lanes { a0[i0] = x0[6*i0 + 24*i2] }
//! for i0 in 0..4 lanes { a0[i0 + 4] = x0[6*i0 + 24*i2 + 1] }
//! ...
//! for i0 in 0..4 lanes { a0[i0 + 20] = x0[6*i0 + 24*i2 + 5] }
//! ```
//!
//! Loads of one body like these are the *columns* of a matrix, which is loaded by vectors instead of elements:
//!
//! - Rows of 2, 4 or 8 elements that are fewer than lanes, side by side: pairs of vectors become their even and their odd
//!   elements, as often as the elements of a row can be halved.
//! - Others: a vector from each row is a square, which is turned by interleaving the vectors of its halves, as often as
//!   lanes can be halved. What lies behind the last element is not read: a vector that would reach there begins before,
//!   and is moved along.

use super::{Generator, Number, Walk, vector_type};
use crate::codegen::address::Access;
use cranefold_ir::{BufId, BufferRole, DType, Expr, Extent, Index, LoopKind, Stmt};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};

/// Columns side by side.
pub(super) struct Matrix {
    buf: BufId,
    /// The first element, without what moves with the lanes.
    first: Index,
    /// Elements from a row to the next.
    stride: i64,
    columns: u64,
    /// The columns, once one was loaded.
    made: Vec<Option<Value>>,
}

impl Matrix {
    /// The column of a load.
    fn column(&self, buf: BufId, start: &Index, stride: i64) -> Option<u64> {
        let column = u64::try_from(start.offset - self.first.offset).ok()?;
        let is_one = self.buf == buf && self.stride == stride && column < self.columns;
        (is_one && self.first.clone().offset_by(column as i64) == *start).then_some(column)
    }
}

impl<'a> Generator<'a> {
    /// The matrices among the loads of a body, those in its lanes.
    pub(super) fn matrices(walk: &Walk<'a>, body: &'a [Stmt]) -> Vec<Matrix> {
        let mut loads: Vec<(BufId, i64, i64, Index)> = vec![];
        for stmt in body {
            let Stmt::For(l) = stmt else { continue };
            let (LoopKind::Lanes, Extent::Const(lanes)) = (l.kind, l.extent) else { continue };
            let mut see = |e: &Expr| {
                let Expr::Load(buf, dtype, index) = e else { return };
                let stride = index.coefficient(l.var);
                let is_input = walk.nest.buffers[buf.0 as usize].role == BufferRole::In;
                if is_input && stride > 1 && lanes * dtype.bytes() == 16 {
                    loads.push((*buf, stride, index.offset, index.clone().plus(l.var, -stride)));
                }
            };
            l.body.iter().for_each(|s| s.visit(&mut |s| s.exprs().iter().for_each(|e| e.visit(&mut see))));
        }
        loads.sort_by_key(|&(buf, stride, offset, _)| (buf, stride, offset));
        let mut matrices: Vec<Matrix> = vec![];
        for (buf, stride, _, start) in loads {
            let is_known = matrices.iter().any(|m| m.column(buf, &start, stride).is_some());
            if is_known {
                continue;
            }
            let before = start.clone().offset_by(-1);
            let next = |m: &&mut Matrix| m.column(buf, &before, stride).is_some() && (m.columns as i64) < stride;
            match matrices.iter_mut().find(next) {
                Some(matrix) => matrix.columns += 1,
                None => matrices.push(Matrix { buf, first: start, stride, columns: 1, made: vec![] }),
            }
        }
        matrices.retain(|m| m.columns > 1);
        matrices
    }

    /// The lanes of a load, where it is a column of a matrix; its index without the lanes is `start`.
    pub(super) fn column(
        &mut self,
        buf: BufId,
        start: &Index,
        from: &Access<Number>,
        flags: MemFlagsData,
    ) -> Option<Value> {
        let (dtype, bytes) = (from.dtype, from.dtype.bytes());
        let (_, stride) = from.lanes.filter(|&(lanes, _)| lanes * bytes == 16)?;
        let is_column = |(n, m): (usize, &Matrix)| m.column(buf, start, stride).map(|column| (n, column));
        let (number, column) = self.matrices.iter().enumerate().find_map(is_column)?;
        if self.matrices[number].made.is_empty() {
            let columns = self.matrices[number].columns;
            let mut load = |generator: &mut Self, element: u64| {
                let (pointer, offset) = generator.behind(from, (element as i64 - column as i64) * bytes as i64);
                generator.builder.ins().load(vector_type(dtype), flags, pointer, offset)
            };
            self.matrices[number].made = self.turned(dtype, stride as u64, columns, &mut load);
        }
        self.matrices[number].made[column as usize]
    }

    /// The columns of a matrix, of which `load` loads a vector from an element on.
    fn turned(
        &mut self,
        dtype: DType,
        stride: u64,
        columns: u64,
        load: &mut impl FnMut(&mut Self, u64) -> Value,
    ) -> Vec<Option<Value>> {
        let lanes = 16 / dtype.bytes();
        if columns == stride && columns < lanes && columns.is_power_of_two() {
            let vectors = (0..columns).map(|n| load(self, n * lanes)).collect();
            return self.parted(dtype, vectors).into_iter().map(Some).collect();
        }
        let mut made = vec![None; columns as usize];
        // The last square shares columns with that before it.
        let starts = (0..columns.div_ceil(lanes)).map(|n| (n * lanes).min(columns.saturating_sub(lanes)));
        let last = (lanes - 1) * stride + columns - lanes;
        for start in starts {
            let row = |n: u64| {
                let from = start + n * stride;
                let vector = load(self, from.min(last));
                self.take_lanes(vector, dtype, from - from.min(last))
            };
            let mut vectors: Vec<Value> = (0..lanes).map(row).collect();
            for _ in 0..lanes.ilog2() {
                let half = vectors.len() / 2;
                let pairs = (0..half).flat_map(|n| [(n, 0), (n, lanes / 2)]);
                vectors = pairs
                    .map(|(n, from)| {
                        self.pick_lanes(vectors[n], vectors[n + half], dtype, |i| i % 2 * lanes + from + i / 2)
                    })
                    .collect();
            }
            for (column, vector) in made[start as usize..].iter_mut().zip(vectors) {
                *column = Some(vector);
            }
        }
        made
    }

    /// The columns of rows that lie side by side in vectors, as many as a row has elements.
    fn parted(&mut self, dtype: DType, vectors: Vec<Value>) -> Vec<Value> {
        if vectors.len() == 1 {
            return vectors;
        }
        let mut part = |odd: u64| {
            let pick = |pair: &[Value]| self.pick_lanes(pair[0], pair[1], dtype, |i| 2 * i + odd);
            let half = vectors.chunks_exact(2).map(pick).collect();
            self.parted(dtype, half)
        };
        let (even, odd) = (part(0), part(1));
        even.into_iter().zip(odd).flat_map(|(even, odd)| [even, odd]).collect()
    }
}
