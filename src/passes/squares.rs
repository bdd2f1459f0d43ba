//! Walks matrices that lie across memory by squares.

use super::short::SHORT;
use crate::schedule::{Machine, Schedule};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Band, is_elementwise, renamed, rewrite, substitute};
use cranefold_ir::{Expr, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Stmt};

/// The fewest rows and columns for which squares are worthwhile.
const FEW: u64 = 4;

/// The fewest channels of which planes are made, or that are made of planes.
const FEW_CHANNELS: u64 = 2;

/// Walks elements of an input that are brought into the order of their positions, or of an output, by squares, where
/// neighbours of one order lie apart in the other. A square takes whole lines of the input and of what is written; else
/// each element would take a line of its own:
///
/// ```text
/// for p0 in 0..256 parallel { for p1 in 0..512 parallel { a0[512*p0 + p1] = x0[p0 + 256*p1] } }
/// ->
/// for p3 in 0..32 parallel {
///   for p2 in 0..16 parallel {
///     for p0 in 0..16 parallel {
///       for p1 in 0..16 parallel { a0[512*p0 + p1 + 8192*p2 + 16*p3] = x0[p0 + 256*p1 + 16*p2 + 4096*p3] }
///     }
///   }
/// }
/// ```
///
/// `vectorize` makes lanes of the innermost loop, `unroll` writes out the one around it, and `transpose` loads its columns
/// together. Rows and columns that fill no square are walked by loops of their own.
///
/// An image of a few channels may lie pixel by pixel in the input and plane by plane in the output, or the other way round.
/// A square then has all channels of some pixels, and its lanes are pixels.
///
/// Legal because all iterations write different elements.
pub fn squares(mut nest: Nest, _: &Schedule, vectors: Vectors) -> Nest {
    if !vectors.are_wide() {
        return nest;
    }
    let mut names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    nest.body = rewrite(body, &mut |stmt| {
        let Stmt::For(l) = stmt else { return None };
        Crossing::of(l).map(|crossing| crossing.by_squares(&mut names))
    });
    nest
}

/// Loops that copy or compute elements, and the two by which neighbours lie apart.
struct Crossing {
    /// The other loops, outermost first.
    others: Vec<(LoopVar, u64)>,
    /// The loop along the input, its extent, and that of a square.
    along: (LoopVar, u64, u64),
    /// The same of the loop along what is written.
    across: (LoopVar, u64, u64),
    /// True if lanes are neighbours in the input, since what is written has too few for a vector.
    lanes_along: bool,
    body: Vec<Stmt>,
}

impl Crossing {
    /// The crossing of a loop with those in it; `None` if it does anything else, or neighbours lie side by side.
    fn of(l: &Loop) -> Option<Crossing> {
        if let Some(one) = sunk(l) {
            return Crossing::of(&one);
        }
        let inner = innermost(l);
        let is_copy = |s: &Stmt| matches!(s, Stmt::Set { value: Expr::Load(..), .. });
        let copies = l.var.over == Over::Position && inner.iter().all(is_copy);
        let computes = l.var.over == Over::Output && is_elementwise(inner);
        let few = if copies { FEW } else { FEW_CHANNELS };
        let mut places = inner.iter().filter_map(written);
        let (to, written_bytes) = places.next()?;
        let across = neighbours(to)?;
        if !(copies || computes)
            || l.kind != LoopKind::Parallel
            || places.any(|(index, _)| neighbours(index) != Some(across))
        {
            return None;
        }
        let mut crossed = None;
        inner.iter().flat_map(Stmt::exprs).for_each(|e| {
            e.visit(&mut |e| {
                let Expr::Load(_, dtype, from) = e else { return };
                let lie_apart = from.coefficient(across).unsigned_abs() > 1;
                let along = neighbours(from).filter(|&along| lie_apart && along != across);
                crossed = crossed.or(along.map(|along| (along, dtype.bytes())));
            });
        });
        let (along, read_bytes) = crossed?;
        let (band, body) = Band::of(l.clone())?;
        let extent = |var: LoopVar| band.loops.iter().find(|(v, _)| *v == var).map(|&(_, extent)| extent);
        let [along_extent, across_extent] = [extent(along)?, extent(across)?];
        let in_line = Machine::LINE_BYTES / read_bytes.max(written_bytes);
        let lanes_along = computes && across_extent < in_line.min(along_extent);
        let [lanes, others] = [in_line, in_line.min(SHORT)];
        let [by_along, by_across] = if lanes_along { [lanes, others] } else { [others, lanes] };
        (along_extent >= few && across_extent >= few).then(|| Crossing {
            others: band.loops.iter().copied().filter(|(var, _)| ![along, across].contains(var)).collect(),
            along: (along, along_extent, by_along.min(along_extent)),
            across: (across, across_extent, by_across.min(across_extent)),
            lanes_along,
            body,
        })
    }

    fn by_squares(self, names: &mut Names) -> Vec<Stmt> {
        let mut all = vec![];
        for across in pieces(self.across, names) {
            for along in pieces(self.along, names) {
                let mut body = substitute(self.body.clone(), self.across.0, &across.index);
                body = substitute(body, self.along.0, &along.index);
                let inside = match self.lanes_along {
                    true => [along.inside, across.inside],
                    false => [across.inside, along.inside],
                };
                for (var, extent) in inside.into_iter().chain(along.outside).chain(across.outside) {
                    body = vec![Stmt::For(Loop::new(var, extent, LoopKind::Parallel, body))];
                }
                all.extend(renamed(body, names));
            }
        }
        for &(var, extent) in self.others.iter().rev() {
            all = vec![Stmt::For(Loop::new(var, extent, LoopKind::Parallel, all))];
        }
        all
    }
}

/// The loop with the values that it computes of inputs before the loop in it moved into that loop, so that the loops are
/// one directly inside the other; `None` if there are no such values.
fn sunk(l: &Loop) -> Option<Loop> {
    let [before @ .., Stmt::For(inner)] = l.body.as_slice() else { return None };
    let inside = sunk(inner);
    let inner = inside.as_ref().unwrap_or(inner);
    let values = before.iter().all(|s| matches!(s, Stmt::Let { .. } | Stmt::Call { .. }));
    if before.is_empty() || !values || l.var.over != Over::Output || !is_elementwise(before) {
        return inside.map(|inside| Loop { body: [before, &[Stmt::For(inside)]].concat(), ..l.clone() });
    }
    if inner.var.over != Over::Output || !is_elementwise(innermost(inner)) {
        return None;
    }
    let body = before.iter().chain(&inner.body).cloned().collect();
    Some(Loop { body: vec![Stmt::For(Loop { body, ..inner.clone() })], ..l.clone() })
}

/// The body inside a loop and those of the same range perfectly nested in it.
fn innermost(l: &Loop) -> &[Stmt] {
    match l.body.as_slice() {
        [Stmt::For(inner)] if inner.var.over == l.var.over => innermost(inner),
        body => body,
    }
}

/// The place that a statement writes, and the bytes of its element.
fn written(stmt: &Stmt) -> Option<(&Index, u64)> {
    let (Stmt::Set { index, value, .. } | Stmt::Store { index, value, .. }) = stmt else { return None };
    Some((index, value.dtype().bytes()))
}

/// The loop along which neighbours are walked.
fn neighbours(index: &Index) -> Option<LoopVar> {
    index.terms().find(|&(_, c)| c == 1).map(|(var, _)| var)
}

/// A piece of a loop: whole squares, or what is left.
struct Piece {
    /// The value of the loop's variable.
    index: Index,
    /// The loop inside squares.
    inside: (LoopVar, u64),
    /// The loop over squares.
    outside: Option<(LoopVar, u64)>,
}

/// The pieces of a loop: its variable, its extent, and the iterations in a square.
fn pieces((var, extent, by): (LoopVar, u64, u64), names: &mut Names) -> Vec<Piece> {
    let (whole, rest) = (extent / by, extent % by);
    let squares = names.loop_over(var.over);
    let first = match whole {
        1 => Piece { index: Index::term(var, 1), inside: (var, by), outside: None },
        _ => Piece {
            index: Index::term(squares, by as i64).plus(var, 1),
            inside: (var, by),
            outside: Some((squares, whole)),
        },
    };
    let last = Piece { index: Index::term(var, 1).offset_by((whole * by) as i64), inside: (var, rest), outside: None };
    std::iter::once(first).chain((rest > 0).then_some(last)).collect()
}
