//! Asks for memory ahead of the vectors that are loaded.

use super::visits::Visits;
use crate::schedule::{Level, Machine, Schedule};
use crate::vectors::Vectors;
use cranefold_ir::analysis::visit_exprs;
use cranefold_ir::{
    BufId, Buffer, BufferRole, DType, Def, Expr, Extent, Index, Loop, LoopKind, LoopVar, Nest, Over, Stmt,
};

/// The fewest bytes of a vector whose line is asked for: narrower ones would ask for each line several times.
const LEAST_BYTES: u64 = 32;

/// The most bytes ahead from which lines are brought into the first-level cache, which would lose others to more.
const NEAR_BYTES: u64 = 8 << 10;

/// The fewest bytes that are walked without a gap where the schedule names no distance.
const WALKED_BYTES: u64 = 64 << 10;

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
/// A far line is asked for in each visit, so that memory is never idle: asking again costs an instruction.
///
/// On Intel's cores ([`Vectors::intel`]) no line is far, and inputs that lie in memory are asked for where the schedule names
/// no distance, too, by the loops that walk at least 64 KB of them without a gap: regions of 64 MB took 0.92 of their time
/// that way in the geometric mean.
///
/// An input that is no longer than the distance, such as weights, is walked again from its start: nothing is ahead.
///
/// Legal because no value depends on a prefetch, which may name memory outside of the buffer. Vectors of 128 bits are
/// made by Cranelift, which has no such instruction: there is nothing to do.
pub fn prefetch(nest: Nest, schedule: &Schedule, vectors: Vectors) -> Nest {
    let Some(bytes) = distance(&nest, schedule, vectors) else { return nest };
    let ahead = Ahead { buffers: &nest.buffers, defs: &nest.defs, bytes, is_named: schedule.prefetch > 0 };
    let body = ahead.body(nest.body, Place::Outside, &mut vec![], &[]);
    Nest { body, ..nest }
}

/// The bytes ahead at which a nest asks; `None` if it asks for nothing.
fn distance(nest: &Nest, schedule: &Schedule, vectors: Vectors) -> Option<u64> {
    let inputs = nest.buffers.iter().filter(|buffer| buffer.role == BufferRole::In);
    let bytes_read = inputs.map(Buffer::bytes).fold(0, u64::saturating_add);
    match schedule.prefetch {
        _ if !vectors.are_wide() => None,
        0 => (vectors.intel && Machine::TYPICAL.level(bytes_read) == Level::Memory).then_some(NEAR_BYTES),
        bytes => Some(if vectors.intel { bytes.min(NEAR_BYTES) } else { bytes }),
    }
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
    /// True if the schedule names the distance.
    is_named: bool,
}

impl Ahead<'_> {
    /// The statements of a body in these loops, with prefetches of all inputs but `unasked`.
    fn body(&self, body: Vec<Stmt>, place: Place, around: &mut Vec<(LoopVar, u64)>, unasked: &[BufId]) -> Vec<Stmt> {
        let is_visit = |l: &Loop| place != Place::Outside && matches!(l.var.over, Over::Step | Over::Position);
        let visits = (self.is_near() && place == Place::Wide)
            .then(|| Visits::of(&body, self.defs, |l| is_visit(l), |l, e| self.line(l, e).is_some()));
        let mut out = Vec::with_capacity(body.len());
        let mut asked: Vec<(BufId, DType, Index)> = vec![];
        for (at, stmt) in body.into_iter().enumerate() {
            if let Stmt::For(l) = &stmt
                && l.kind == LoopKind::Lanes
            {
                if place == Place::Elements {
                    self.of_lanes(l, unasked, &mut asked, &mut out);
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
            let unasked = match &visits {
                Some(visits) => &self.unasked(visits, at, around),
                None => unasked,
            };
            let outside = around.len();
            if let Stmt::For(l) = &stmt {
                // Iterations that are counted while the nest runs walk no input.
                around.push((l.var, if let Extent::Const(iterations) = l.extent { iterations } else { 1 }));
            }
            out.push(stmt.with_body(|body| self.body(body, inside, around, unasked)));
            around.truncate(outside);
        }
        out
    }

    /// The inputs that the visit at `at` does not ask for, in these loops.
    fn unasked(&self, visits: &Visits, at: usize, around: &[(LoopVar, u64)]) -> Vec<BufId> {
        let mut unasked = visits.of_heavier(at);
        if !self.is_named {
            let bytes = |buf: BufId, elements: u64| elements.saturating_mul(self.buffers[buf.0 as usize].dtype.bytes());
            let walked = visits.walked(at, around);
            let is_walked =
                |buf: BufId| walked.iter().any(|&(of, elements)| of == buf && bytes(buf, elements) >= WALKED_BYTES);
            unasked.extend((0..self.buffers.len() as u32).map(BufId).filter(|&buf| !is_walked(buf)));
        }
        unasked
    }

    /// True if lines come into the first-level cache.
    fn is_near(&self) -> bool {
        self.bytes <= NEAR_BYTES
    }

    /// Adds prefetches for the vectors that a loop over lanes loads, one for each line that the loops before it in their
    /// body do not ask for.
    fn of_lanes(&self, l: &Loop, unasked: &[BufId], asked: &mut Vec<(BufId, DType, Index)>, out: &mut Vec<Stmt>) {
        visit_exprs(&l.body, &mut |e| {
            let Some((buf, dtype, index)) = self.line(l, e) else { return };
            let in_line = (Machine::LINE_BYTES / dtype.bytes()) as i64;
            let is_line_of = |(of, as_type, at): &(BufId, DType, Index)| {
                *of == buf
                    && *as_type == dtype
                    && (0..in_line).contains(&index.offset.wrapping_sub(at.offset))
                    && at.terms().eq(index.terms())
            };
            if !unasked.contains(&buf) && !asked.iter().any(is_line_of) {
                asked.push((buf, dtype, index.clone()));
                out.push(Stmt::Prefetch { buf, index, far: !self.is_near() });
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
        let is_ahead = buffer.bytes() > self.bytes;
        let elements = (self.bytes / dtype.bytes()) as i64;
        let ahead = || (*buf, *dtype, index.clone().plus(l.var, -1).offset_by(elements));
        (is_whole && is_run && is_ahead).then(ahead)
    }
}
