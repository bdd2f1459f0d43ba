//! Asks for memory ahead of the vectors that are loaded.

use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::visit_exprs;
use cranefold_ir::{Buffer, BufferRole, Expr, Extent, Index, Loop, LoopKind, Nest, Over, Stmt};

/// The fewest bytes of a vector whose line is asked for: narrower ones would ask for each line several times.
const LEAST_BYTES: u64 = 32;

/// In wide functions, asks for memory so many bytes ahead of each whole vector that a loop over steps loads of an input:
///
/// ```text
/// for k0 in 0..64 seq {
///   for l1 in 0..16 lanes { a0[l1] = add(a0[l1], x0[16*k0 + l1]) }
/// }
/// ->  (prefetch=4096)
/// for k0 in 0..64 seq {
///   prefetch x0[16*k0 + 1024]
///   for l1 in 0..16 lanes { a0[l1] = add(a0[l1], x0[16*k0 + l1]) }
/// }
/// ```
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
    /// In a loop over steps there.
    Steps,
}

struct Ahead<'a> {
    buffers: &'a [Buffer],
    bytes: u64,
}

impl Ahead<'_> {
    fn body(&self, body: Vec<Stmt>, place: Place) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(body.len());
        for stmt in body {
            if let Stmt::For(l) = &stmt
                && l.kind == LoopKind::Lanes
            {
                if place == Place::Steps {
                    out.extend(self.of_lanes(l));
                }
                out.push(stmt);
                continue;
            }
            let is_of_steps = |l: &Loop| place != Place::Outside && l.var.over == Over::Step;
            let inside = if matches!(stmt, Stmt::Wide { .. }) {
                Place::Wide
            } else if matches!(&stmt, Stmt::For(l) if is_of_steps(l)) {
                Place::Steps
            } else {
                place
            };
            out.push(stmt.with_body(|body| self.body(body, inside)));
        }
        out
    }

    /// The prefetches for the vectors that a loop over lanes loads, each once.
    fn of_lanes(&self, l: &Loop) -> Vec<Stmt> {
        let Extent::Const(lanes) = l.extent else { return vec![] };
        let mut found: Vec<Stmt> = vec![];
        visit_exprs(&l.body, &mut |e| {
            let Expr::Load(buf, dtype, index) = e else { return };
            let vector_bytes = lanes * dtype.bytes();
            let is_whole = vector_bytes.is_power_of_two() && vector_bytes >= LEAST_BYTES;
            let is_run = index.coefficient(l.var) == 1 && self.buffers[buf.0 as usize].role == BufferRole::In;
            if !(is_whole && is_run) {
                return;
            }
            let elements = (self.bytes / dtype.bytes()) as i64;
            let index: Index = index.clone().plus(l.var, -1).offset_by(elements);
            let prefetch = Stmt::Prefetch { buf: *buf, index };
            if !found.contains(&prefetch) {
                found.push(prefetch);
            }
        });
        found
    }
}
