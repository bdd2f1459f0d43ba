//! Copies matrices that lie across memory by squares.

use super::short::SHORT;
use crate::schedule::{Machine, Schedule};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Band, renamed, rewrite, substitute};
use cranefold_ir::{Expr, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Stmt};

/// The fewest rows and columns for which squares are worthwhile.
const FEW: u64 = 4;

/// Walks elements of an input that are brought into the order of their positions by squares, where neighbours of one order
/// lie apart in the other. A square takes whole lines of the input and of the accumulator; else each element would take
/// a line of its own:
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
/// Legal because all iterations write different elements.
pub fn squares(mut nest: Nest, _: &Schedule, vectors: Vectors) -> Nest {
    if !vectors.are_wide() {
        return nest;
    }
    let mut names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    nest.body = rewrite(body, &mut |stmt| {
        let Stmt::For(l) = stmt else { return None };
        Copies::of(l).map(|copies| copies.by_squares(&mut names))
    });
    nest
}

/// Loops that copy elements, and the two by which neighbours lie apart.
struct Copies {
    /// The other loops, outermost first.
    others: Vec<(LoopVar, u64)>,
    /// The loop along the input, its extent, and that of a square.
    along: (LoopVar, u64, u64),
    /// The same of the loop along the accumulator.
    across: (LoopVar, u64, u64),
    body: Vec<Stmt>,
}

impl Copies {
    /// The copies of a loop with those in it; `None` if it does anything else, or neighbours lie side by side.
    fn of(l: &Loop) -> Option<Copies> {
        if l.var.over != Over::Position || l.kind != LoopKind::Parallel {
            return None;
        }
        let (band, body) = Band::of(l.clone())?;
        let mut pairs = body.iter().map(|s| {
            let Stmt::Set { index, value: Expr::Load(_, dtype, from), .. } = s else { return None };
            Some((index, from, dtype.bytes()))
        });
        let are_copies = pairs.clone().all(|pair| pair.is_some());
        let (to, from, bytes) = pairs.next().flatten().filter(|_| are_copies)?;
        let extent = |var: LoopVar| band.loops.iter().find(|(v, _)| *v == var).map(|&(_, extent)| extent);
        let neighbours = |index: &Index| index.terms().find(|&(_, c)| c == 1).map(|(var, _)| var);
        let (along, across) = (neighbours(from)?, neighbours(to)?);
        let in_line = Machine::LINE_BYTES / bytes;
        let [along_extent, across_extent] = [extent(along)?, extent(across)?];
        let lie_apart = from.coefficient(across).unsigned_abs() > 1 && along != across;
        (lie_apart && along_extent >= FEW && across_extent >= FEW).then(|| Copies {
            others: band.loops.iter().copied().filter(|(var, _)| ![along, across].contains(var)).collect(),
            along: (along, along_extent, in_line.min(SHORT).min(along_extent)),
            across: (across, across_extent, in_line.min(across_extent)),
            body,
        })
    }

    fn by_squares(self, names: &mut Names) -> Vec<Stmt> {
        let mut all = vec![];
        for across in pieces(self.across, names) {
            for along in pieces(self.along, names) {
                let mut body = substitute(self.body.clone(), self.across.0, &across.index);
                body = substitute(body, self.along.0, &along.index);
                let inside = [across.inside, along.inside];
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
    let squares = names.loop_over(Over::Position);
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
