//! Asks for memory ahead of the vectors that are loaded.

use crate::schedule::{Machine, Schedule};
use crate::vectors::Vectors;
use cranefold_ir::analysis::visit_exprs;
use cranefold_ir::{BufId, Buffer, BufferRole, DType, Expr, Extent, Index, Loop, LoopKind, Nest, Over, Stmt};

/// The fewest bytes of a vector whose line is asked for: narrower ones would ask for each line several times.
const LEAST_BYTES: u64 = 32;

/// The most bytes ahead from which lines are brought into the first-level cache, which would lose others to more.
const NEAR_BYTES: u64 = 8 << 10;

/// In wide functions, asks for memory so many bytes ahead of each whole vector that a loop over steps or positions loads of
/// an input:
///
/// ```text
/// for k0 in 0..64 seq {
///   for l1 in 0..16 lanes { a0[l1] = add(a0[l1], x0[16*k0 + l1]) }
/// }
/// ->  (prefetch=32768)
/// for k0 in 0..64 seq {
///   prefetch far x0[16*k0 + 8192]
///   for l1 in 0..16 lanes { a0[l1] = add(a0[l1], x0[16*k0 + l1]) }
/// }
/// ```
///
/// Each visit of a slice asks, so that memory is never idle: a line that has been asked for already costs an instruction.
///
/// An input that is no longer than the distance, such as weights, is walked again from its start: nothing is ahead.
///
/// Legal because no value depends on a prefetch, which may name memory outside of the buffer. Vectors of 128 bits are
/// made by Cranelift, which has no such instruction: there is nothing to do.
pub fn prefetch(nest: Nest, schedule: &Schedule, vectors: Vectors) -> Nest {
    if schedule.prefetch == 0 || !vectors.are_wide() {
        return nest;
    }
    let ahead = Ahead { buffers: &nest.buffers, bytes: schedule.prefetch };
    let body = ahead.body(nest.body, Place::Outside);
    Nest { body, ..nest }
}

/// The place of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Around wide functions.
    Outside,
    /// In a wide function.
    Wide,
    /// In a loop over steps or positions there.
    Elements,
}

struct Ahead<'a> {
    buffers: &'a [Buffer],
    bytes: u64,
}

impl Ahead<'_> {
    fn body(&self, body: Vec<Stmt>, place: Place) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(body.len());
        let mut asked: Vec<(BufId, DType, Index)> = vec![];
        for stmt in body {
            if let Stmt::For(l) = &stmt
                && l.kind == LoopKind::Lanes
            {
                if place == Place::Elements {
                    self.of_lanes(l, &mut asked, &mut out);
                }
                out.push(stmt);
                continue;
            }
            let walks = |l: &Loop| place != Place::Outside && matches!(l.var.over, Over::Step | Over::Position);
            let inside = if matches!(stmt, Stmt::Wide { .. }) {
                Place::Wide
            } else if matches!(&stmt, Stmt::For(l) if walks(l)) {
                Place::Elements
            } else {
                place
            };
            out.push(stmt.with_body(|body| self.body(body, inside)));
        }
        out
    }

    /// Adds prefetches for the vectors that a loop over lanes loads, one for each line that the loops before it in their
    /// body do not ask for.
    fn of_lanes(&self, l: &Loop, asked: &mut Vec<(BufId, DType, Index)>, out: &mut Vec<Stmt>) {
        let Extent::Const(lanes) = l.extent else { return };
        visit_exprs(&l.body, &mut |e| {
            let Expr::Load(buf, dtype, index) = e else { return };
            let vector_bytes = lanes * dtype.bytes();
            let is_whole = vector_bytes.is_power_of_two() && vector_bytes >= LEAST_BYTES;
            let buffer = &self.buffers[buf.0 as usize];
            let is_run = index.coefficient(l.var) == 1 && buffer.role == BufferRole::In;
            let is_ahead = buffer.len.saturating_mul(dtype.bytes()) > self.bytes;
            if !(is_whole && is_run && is_ahead) {
                return;
            }
            let elements = (self.bytes / dtype.bytes()) as i64;
            let index = index.clone().plus(l.var, -1).offset_by(elements);
            let in_line = (Machine::LINE_BYTES / dtype.bytes()) as i64;
            let is_line_of = |(of, as_type, at): &(BufId, DType, Index)| {
                of == buf
                    && as_type == dtype
                    && (0..in_line).contains(&index.offset.wrapping_sub(at.offset))
                    && at.terms().eq(index.terms())
            };
            if !asked.iter().any(is_line_of) {
                asked.push((*buf, *dtype, index.clone()));
                out.push(Stmt::Prefetch { buf: *buf, index, far: self.bytes > NEAR_BYTES });
            }
        });
    }
}
