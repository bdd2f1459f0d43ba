//! Lets lanes and the outputs of a tile inside them be walked as one row.

#![allow(clippy::wildcard_enum_match_arm, reason = "the pass asks for loops; all else stays as it is")]

use super::spreads::{Fixed, Spreads, walks_as_row};
use crate::schedule::{MOST_JOINED, Schedule};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{
    Access, Band, is_elementwise, is_straight, partition, renamed, substitute, visit_accesses,
};
use cranefold_ir::work::{Work, one_each};
use cranefold_ir::{AccId, BufferRole, DefId, Expr, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Stmt};
use rustc_hash::FxHashSet;

/// The bytes of a vector: outputs whose elements fill it, or several, need no rows.
const VECTOR_BYTES: u64 = 64;

/// The bytes of an f32: outputs of larger elements fill as many vectors as its.
const MOST_BYTES: u64 = 4;

/// The most lanes that are walked one by one: more would be so many registers.
const FEW_LANES: u64 = 8;

/// The operations that values cost which are permuted in registers, beside one for each vector.
const PERMUTED: u64 = 10;

/// The operations of loading and storing a part of a vector under a mask, beside a whole one: `x * (y - sum(x * y))` of
/// f32[682,4,6] took 7.1 us by four parts of six, and 2.7 by rows.
const PART: u64 = 4;

/// The operations that values cost which are stored in pieces and read across them, beside one for each piece.
const LATE: u64 = 30;

/// The positions of a row: rows of f32 end with a full vector, whatever the number of slices.
const POSITIONS: u64 = 16;

/// Spreads what lanes read of the values of a few neighbouring slices, and the numbers of their positions, over rows: an
/// element for each lane and each slice. All else walks memory as one loop does, and `merge_loops` makes one of both:
///
/// ```text
/// for k1 in 0..64 seq {
///   for l2 in 0..16 parallel { for i0 in 0..3 parallel { a1[3*l2 + i0] = add(a1[3*l2 + i0], sub(x0[48*k1 + 3*l2 + i0], a0[i0])) } }
/// }
/// ->
/// acc a2: f32[48] = 0.0
/// for e3 in 0..16 parallel { for e4 in 0..3 parallel { a2[3*e3 + e4] = a0[e4] } }
/// for k1 in 0..64 seq {
///   for l2 in 0..16 parallel { for i0 in 0..3 parallel { a1[3*l2 + i0] = add(a1[3*l2 + i0], sub(x0[48*k1 + 3*l2 + i0], a2[3*l2 + i0])) } }
/// }
/// ```
///
/// The numbers of positions of a row are the same for all slices: they are spread once, before all loops of the nest.
///
/// A loop that writes positions is split first, so that sixteen positions of all slices are a row, or fewer where that pays.
/// So is a loop over outputs that are computed of inputs alone: sixteen pixels of three channels are a row. Rows that
/// directly follow a loop over steps, the steps that are left, share what is spread for it:
///
/// ```text
/// for l5 in 0..4 parallel { for i0 in 0..3 parallel { a1[3*l5 + i0] = add(a1[3*l5 + i0], sub(x0[3*l5 + i0 + 3072], a0[i0])) } }
/// ->
/// for l5 in 0..4 parallel { for i0 in 0..3 parallel { a1[3*l5 + i0] = add(a1[3*l5 + i0], sub(x0[3*l5 + i0 + 3072], a2[3*l5 + i0])) } }
/// ```
///
/// Legal because nothing changes these values while the loop around the rows runs, and numbers of positions never change.
pub fn spread(mut nest: Nest, _: &Schedule, vectors: Vectors) -> Nest {
    if !vectors.are_wide() {
        return nest;
    }
    let mut names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    let mut numbers = Spreads::default();
    let body = in_body(body, &nest, &mut numbers, &mut names);
    nest.body = numbers.stmts();
    nest.body.extend(body);
    nest
}

fn in_body(body: Vec<Stmt>, nest: &Nest, numbers: &mut Spreads, names: &mut Names) -> Vec<Stmt> {
    let mut out = vec![];
    let mut rest = body.into_iter().peekable();
    while let Some(stmt) = rest.next() {
        match stmt {
            Stmt::For(l)
                if l.var.over == Over::Step || is_row_of_lanes(&l) && (has_many_lanes(&l) || pays_alone(&l, nest)) =>
            {
                let mut loops = vec![l];
                while let Some(Stmt::For(l)) = rest.next_if(|s| matches!(s, Stmt::For(l) if is_row_of_lanes(l))) {
                    loops.push(l);
                }
                let mut rows = Rows::of(&loops, nest, numbers, names);
                let walk = |l| if is_row_of_lanes(&l) { rows.row(l) } else { rows.in_loop(l) };
                let loops: Vec<Loop> = loops.into_iter().map(walk).collect();
                out.extend(rows.spreads.stmts());
                out.extend(loops.into_iter().map(Stmt::For));
            }
            Stmt::For(l) if l.var.over == Over::Position || (l.var.over == Over::Output && is_row(&l)) => {
                let mut rows = Rows::of(std::slice::from_ref(&l), nest, numbers, names);
                let loops = rows.in_positions(l);
                out.extend(rows.spreads.stmts());
                out.extend(loops);
            }
            other => out.push(other.with_body(|body| in_body(body, nest, numbers, names))),
        }
    }
    out
}

/// The rows that a loop walks, and those that follow it.
struct Rows<'n> {
    spreads: Spreads,
    /// The numbers of positions that rows of the nest read.
    numbers: &'n mut Spreads,
    nest: &'n Nest,
    names: &'n mut Names,
    /// Accumulators that the loops change or declare.
    changed: FxHashSet<AccId>,
    /// The variables of the loops and of those in them.
    inside: Vec<LoopVar>,
}

impl<'n> Rows<'n> {
    fn of(loops: &[Loop], nest: &'n Nest, numbers: &'n mut Spreads, names: &'n mut Names) -> Rows<'n> {
        let mut changed = FxHashSet::default();
        let mut inside: Vec<LoopVar> = loops.iter().map(|l| l.var).collect();
        for stmt in loops.iter().flat_map(|l| &l.body) {
            visit_accesses(stmt, &mut |acc, access| match access {
                Access::Read(_) => {}
                Access::Declared | Access::Set(_) | Access::Combined => _ = changed.insert(acc),
                Access::Transposed | Access::Stored | Access::Selected => _ = changed.insert(acc),
            });
            stmt.visit(&mut |s| inside.extend(s.bound_loop_var()));
        }
        Rows { spreads: Spreads::default(), numbers, nest, names, changed, inside }
    }

    /// The loop with spread values in the rows that it walks.
    fn in_loop(&mut self, l: Loop) -> Loop {
        let mut body = vec![];
        for stmt in l.body {
            body.push(match stmt {
                Stmt::For(inner) if is_row(&inner) => Stmt::For(self.row(inner)),
                Stmt::For(inner) => Stmt::For(self.in_loop(inner)),
                other => other,
            });
        }
        Loop { body, ..l }
    }

    /// The loops over positions of a loop around a few neighbouring slices: over rows of several positions, and over
    /// those that are left.
    fn in_positions(&mut self, l: Loop) -> Vec<Stmt> {
        let Extent::Const(extent) = l.extent else { return vec![Stmt::For(l)] };
        match l.body.as_slice() {
            [Stmt::For(inner)] if inner.var.over == Over::Position && !is_row(&l) => {
                let body = l.body.into_iter().flat_map(|s| match s {
                    Stmt::For(inner) => self.in_positions(inner),
                    other => vec![other],
                });
                vec![Stmt::For(Loop { body: body.collect(), ..l })]
            }
            [Stmt::For(_)] if is_row(&l) && extent <= POSITIONS && pays_alone(&l, self.nest) => {
                vec![Stmt::For(self.row(l))]
            }
            [Stmt::For(_)] if is_row(&l) && extent > POSITIONS => {
                let (rows, rest) = (extent / POSITIONS, extent % POSITIONS);
                let (var, outer) = (l.var, self.names.loop_over(l.var.over));
                self.inside.push(outer);
                let within = substitute(l.body.clone(), var, &Index::term(outer, POSITIONS as i64).plus(var, 1));
                let row = self.row(Loop::new(var, POSITIONS, LoopKind::Parallel, within));
                let mut out = vec![Stmt::For(Loop::new(outer, rows, LoopKind::Parallel, vec![Stmt::For(row)]))];
                if rest > 0 {
                    let start = (rows * POSITIONS) as i64;
                    let body = substitute(l.body, var, &Index::term(var, 1).offset_by(start));
                    let body = renamed(body, self.names);
                    out.push(Stmt::For(self.row(Loop::new(var, rest, LoopKind::Parallel, body))));
                }
                out
            }
            _ => vec![Stmt::For(l)],
        }
    }

    /// The two loops of a row with spread values inside.
    fn row(&mut self, mut l: Loop) -> Loop {
        let (Extent::Const(lanes), [Stmt::For(inner)]) = (l.extent, l.body.as_mut_slice()) else { return l };
        let Extent::Const(outputs) = inner.extent else { return l };
        let row = Band { loops: vec![(l.var, lanes), (inner.var, outputs)] };
        let fixed = Fixed {
            acc: &|acc| !self.changed.contains(&acc),
            buffer: &|buffer| self.nest.buffers[buffer.0 as usize].role == BufferRole::In,
            around: &|var| !self.inside.contains(&var),
        };
        let body = std::mem::take(&mut inner.body).into_iter().map(|s| without_unused(s, &row, self.nest)).collect();
        inner.body = self.spreads.replace(body, &row, &fixed, self.numbers, self.names);
        l
    }
}

/// The statement with one number in place of the positions of a row where a definition uses none.
fn without_unused(stmt: Stmt, row: &Band, nest: &Nest) -> Stmt {
    let of_row = |var: LoopVar| row.loops.iter().any(|&(v, _)| v == var);
    let one = |def: DefId, (n, arg): (usize, Expr)| match arg {
        Expr::At(dtype, index) if nest.def(def).is_hint(n) => Expr::At(dtype, partition(&index, of_row).1),
        other => other,
    };
    let stmt = stmt.map_exprs(&mut |e| {
        e.rewrite(&mut |e| match e {
            Expr::Call(def, dtype, args) => {
                Expr::Call(def, dtype, args.into_iter().enumerate().map(|arg| one(def, arg)).collect())
            }
            other => other,
        })
    });
    let Stmt::Call { vars, def, args } = stmt else { return stmt };
    Stmt::Call { vars, def, args: args.into_iter().enumerate().map(|arg| one(def, arg)).collect() }
}

/// Returns true for a row of several lanes that walks memory as one loop: one lane reads values of the slices as they
/// stand, and elements that lie otherwise are not copied to be read once.
fn is_row_of_lanes(l: &Loop) -> bool {
    let [Stmt::For(inner)] = l.body.as_slice() else { return false };
    let (Extent::Const(lanes), Extent::Const(outputs)) = (l.extent, inner.extent) else { return false };
    let row = Band { loops: vec![(l.var, lanes), (inner.var, outputs)] };
    let mut walks_on = true;
    inner.body.iter().flat_map(Stmt::exprs).for_each(|e| {
        e.visit(&mut |e| {
            let (Expr::Load(.., index) | Expr::Read(.., index)) = e else { return };
            let differs = row.loops.iter().all(|&(var, _)| index.coefficient(var) != 0);
            walks_on &= !differs || walks_as_row(index, &row);
        })
    });
    l.var.over == Over::Lane && lanes > 1 && is_row(l) && walks_on
}

/// Returns true if spreading values for one row costs less than to walk its lanes or positions one by one, each in vectors
/// of its own. Values that registers permute cost least: those of fewer outputs than a vector has lanes, and least of all
/// where several of them fill one. Others are stored in pieces and read across them, and come late.
fn pays_alone(l: &Loop, nest: &Nest) -> bool {
    let [Stmt::For(inner)] = l.body.as_slice() else { return false };
    let (Extent::Const(rows), Extent::Const(outputs)) = (l.extent, inner.extent) else { return false };
    let vector = VECTOR_BYTES / bytes_written(&inner.body);
    let (apart, joined) = (rows * outputs.div_ceil(vector), (rows * outputs).div_ceil(vector));
    let (spread, part) = if outputs < vector { (joined + PERMUTED, PART) } else { (apart + LATE, 0) };
    let saved = (apart - joined) * (part + Work::new(&nest.defs, one_each).body(&inner.body));
    vector.is_multiple_of(outputs) || saved > spread
}

/// Returns true for a row of more lanes than are walked one by one.
fn has_many_lanes(l: &Loop) -> bool {
    matches!(l.extent, Extent::Const(lanes) if lanes > FEW_LANES)
}

/// The bytes of the widest values that a body writes.
fn bytes_written(body: &[Stmt]) -> u64 {
    let written = body.iter().filter_map(|s| match s {
        Stmt::Set { value, .. } | Stmt::Store { value, .. } => Some(value.dtype().bytes()),
        _ => None,
    });
    written.max().unwrap_or(MOST_BYTES)
}

/// Returns true if a loop over lanes or positions, or over outputs that are computed of inputs alone, is directly around one
/// over neighbouring outputs, too few for vectors of their own, with a straight body that writes the elements of a row one
/// behind the other.
fn is_row(l: &Loop) -> bool {
    let [Stmt::For(inner)] = l.body.as_slice() else { return false };
    let Extent::Const(outputs) = inner.extent else { return false };
    let are_parallel = l.kind == LoopKind::Parallel && inner.kind == LoopKind::Parallel;
    let filled = VECTOR_BYTES / bytes_written(&inner.body).min(MOST_BYTES);
    let few = outputs < MOST_JOINED && !outputs.is_multiple_of(filled);
    let is_of_inputs = l.var.over == Over::Output && is_elementwise(&inner.body);
    let loops = (matches!(l.var.over, Over::Lane | Over::Position) || is_of_inputs) && inner.var.over == Over::Output;
    let walks_on = |index: &Index| index.coefficient(l.var) == outputs as i64 * index.coefficient(inner.var);
    let are_written = inner.body.iter().all(|s| match s {
        Stmt::Set { index, .. } | Stmt::Store { index, .. } => walks_on(index),
        _ => true,
    });
    are_parallel && few && loops && is_straight(&inner.body) && are_written
}
