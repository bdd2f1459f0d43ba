//! Asks for memory ahead of the vectors that are loaded.

use super::visits::Visits;
use crate::schedule::{Machine, Schedule};
use crate::vectors::Vectors;
use cranefold_ir::analysis::visit_exprs;
use cranefold_ir::{BufId, Buffer, BufferRole, DType, Def, Expr, Extent, Index, Loop, LoopKind, Nest, Over, Stmt};

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
/// A near line is asked for once. Of the loops in a body that visit the same elements, the one with the most operations for
/// each byte that it moves asks: a core follows few misses of its first-level cache at once, and has most time for them
/// there. From the last-level cache of an Intel Xeon, softmax of rows of 4 KB took 1.4 times as long where each visit asked.
///
/// A far line is asked for in each visit, so that memory is never idle: asking again costs an instruction. On Intel's cores
/// ([`Vectors::intel`]) one visit asks for it too: four regions of 64 MB took 0.89 of their time that way.
///
/// An input that is no longer than the distance, such as weights, is walked again from its start: nothing is ahead.
///
/// Legal because no value depends on a prefetch, which may name memory outside of the buffer. Vectors of 128 bits are
/// made by Cranelift, which has no such instruction: there is nothing to do.
pub fn prefetch(nest: Nest, schedule: &Schedule, vectors: Vectors) -> Nest {
    if schedule.prefetch == 0 || !vectors.are_wide() {
        return nest;
    }
    let once = schedule.prefetch <= NEAR_BYTES || vectors.intel;
    let ahead = Ahead { buffers: &nest.buffers, defs: &nest.defs, bytes: schedule.prefetch, once };
    let body = ahead.body(nest.body, Place::Outside, &[]);
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
    defs: &'a [Def],
    bytes: u64,
    /// True if one of several visits of the same elements asks for what is ahead.
    once: bool,
}

impl Ahead<'_> {
    /// The statements of a body, with prefetches of all inputs but those of `others`, which other loops ask for.
    fn body(&self, body: Vec<Stmt>, place: Place, others: &[BufId]) -> Vec<Stmt> {
        let is_visit = |l: &Loop| place != Place::Outside && matches!(l.var.over, Over::Step | Over::Position);
        let visits = (self.once && place == Place::Wide)
            .then(|| Visits::of(&body, self.defs, |l| is_visit(l), |l, e| self.line(l, e).is_some()));
        let mut out = Vec::with_capacity(body.len());
        let mut asked: Vec<(BufId, DType, Index)> = vec![];
        for (at, stmt) in body.into_iter().enumerate() {
            if let Stmt::For(l) = &stmt
                && l.kind == LoopKind::Lanes
            {
                if place == Place::Elements {
                    self.of_lanes(l, others, &mut asked, &mut out);
                }
                out.push(stmt);
                continue;
            }
            let inside = if matches!(stmt, Stmt::Wide { .. }) {
                Place::Wide
            } else if matches!(&stmt, Stmt::For(l) if is_visit(l)) {
                Place::Elements
            } else {
                place
            };
            let of_heavier = visits.as_ref().map(|visits| visits.of_heavier(at));
            let others = of_heavier.as_deref().unwrap_or(others);
            out.push(stmt.with_body(|body| self.body(body, inside, others)));
        }
        out
    }

    /// Adds prefetches for the vectors that a loop over lanes loads, one for each line that the loops before it in their
    /// body do not ask for.
    fn of_lanes(&self, l: &Loop, others: &[BufId], asked: &mut Vec<(BufId, DType, Index)>, out: &mut Vec<Stmt>) {
        visit_exprs(&l.body, &mut |e| {
            let Some((buf, dtype, index)) = self.line(l, e) else { return };
            let in_line = (Machine::LINE_BYTES / dtype.bytes()) as i64;
            let is_line_of = |(of, as_type, at): &(BufId, DType, Index)| {
                *of == buf
                    && *as_type == dtype
                    && (0..in_line).contains(&index.offset.wrapping_sub(at.offset))
                    && at.terms().eq(index.terms())
            };
            if !others.contains(&buf) && !asked.iter().any(is_line_of) {
                asked.push((buf, dtype, index.clone()));
                out.push(Stmt::Prefetch { buf, index, far: self.bytes > NEAR_BYTES });
            }
        });
    }

    /// An element of the line that is ahead of a vector, with its buffer and type; `None` for an expression that is no load
    /// of a whole vector of an input, and for an input that ends before that.
    fn line(&self, l: &Loop, e: &Expr) -> Option<(BufId, DType, Index)> {
        let (Extent::Const(lanes), Expr::Load(buf, dtype, index)) = (l.extent, e) else { return None };
        let vector_bytes = lanes * dtype.bytes();
        let is_whole = vector_bytes.is_power_of_two() && vector_bytes >= LEAST_BYTES;
        let buffer = &self.buffers[buf.0 as usize];
        let is_run = index.coefficient(l.var) == 1 && buffer.role == BufferRole::In;
        let is_ahead = buffer.len.saturating_mul(dtype.bytes()) > self.bytes;
        let elements = (self.bytes / dtype.bytes()) as i64;
        let ahead = || (*buf, *dtype, index.clone().plus(l.var, -1).offset_by(elements));
        (is_whole && is_run && is_ahead).then(ahead)
    }
}
