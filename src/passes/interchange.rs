//! Moves the loops of a tile inside the loops over blocks.

use super::rewrite;
use crate::schedule::{Depth, Schedule};
use crate::vectors::Vectors;
use cranefold_ir::{AccId, DType, Expr, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Scalar, Stmt};

/// Moves the loop of a tile that the schedule moves into blocks, and the output loops inside it, inside the loops
/// over blocks, so that blocks of neighbouring outputs follow one another:
///
/// ```text
/// for i0 in 0..128 parallel {
///   acc a0: f32[4096] = -0.0
///   for b1 in 0..64 parallel { S(a0[64*b1 + ..]) }
///   merge a0 by sum over 64 of 64
///   fold a0 by sum over 64 of 64 by 1
///   x1[i0] = a0[0]
/// }
/// ->  (tile=i0:128@blocks)
/// acc a0: f32[524288] = -0.0
/// for b1 in 0..64 parallel {
///   for i0 in 0..128 parallel {
///     acc a1: f32[64] = -0.0
///     S(a1[..])
///     for e2 in 0..64 parallel { a0[64*i0 + 8192*b1 + e2] = a1[e2] }
///   }
/// }
/// merge a0 by sum over 64 of 8192
/// for i0 in 0..128 parallel {
///   acc a2: f32[64] = -0.0
///   for e3 in 0..64 parallel { a2[e3] = a0[64*i0 + e3] }
///   fold a2 by sum over 64 of 64 by 1
///   x1[i0] = a2[0]
/// }
/// ```
///
/// Legal because iterations of the tile's loops write different elements, once each has its own part of the
/// states; `stream` makes a stack of all these states. Without a merge there is one block, and nothing to do; where
/// each output first brings its elements into order, the loops stay where they are.
pub fn interchange(mut nest: Nest, schedule: &Schedule, _: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    let into_blocks = |var: LoopVar| schedule.tile_of(var).is_some_and(|tile| tile.depth == Depth::Blocks);
    nest.body = rewrite(body, &mut |stmt, out| match stmt {
        Stmt::For(l) if into_blocks(l.var) => out.extend(moved(l, &mut names)),
        other => out.push(other),
    });
    nest
}

/// An accumulator of the states of all blocks.
struct State {
    acc: AccId,
    dtype: DType,
    init: Scalar,
}

/// The tile.
struct Tile {
    /// The loops, outermost first.
    loops: Vec<(LoopVar, u64)>,
    /// The parts of the states.
    states: Vec<State>,
    /// Elements of the state of one block.
    elems: u64,
}

fn moved(l: Loop, names: &mut Names) -> Vec<Stmt> {
    let mut loops = vec![];
    let mut body = vec![Stmt::For(l.clone())];
    while let [Stmt::For(Loop { var, extent: Extent::Const(n), body: inner, .. })] = &body[..]
        && var.over == Over::Output
    {
        loops.push((*var, *n));
        body = inner.clone();
    }
    let Some(at) = body.iter().position(|s| matches!(s, Stmt::Merge { .. })) else { return vec![Stmt::For(l)] };
    let after = body.split_off(at + 1);
    let Some(Stmt::Merge { accs, def, blocks, elems }) = body.pop() else { unreachable!("just found") };
    let is_part = |s: &Stmt| match s {
        Stmt::Acc { acc, .. } => accs.contains(acc),
        Stmt::For(l) => l.var.over == Over::Block,
        _ => false,
    };
    if !body.iter().all(is_part) {
        return vec![Stmt::For(l)];
    }
    let mut tile = Tile { loops, states: vec![], elems };
    let mut out = vec![];
    let mut over_blocks = vec![];
    for stmt in body {
        match stmt {
            Stmt::Acc { acc, dtype, len, init } if accs.contains(&acc) => {
                tile.states.push(State { acc, dtype, init });
                out.push(Stmt::Acc { acc, dtype, len: len * tile.outputs(), init });
            }
            other => over_blocks.push(other),
        }
    }
    over_blocks.into_iter().for_each(|stmt| out.push(tile.in_blocks(stmt, names)));
    out.push(Stmt::Merge { accs, def, blocks, elems: elems * tile.outputs() });
    let start = tile.position().times(elems as i64);
    let own = tile.own(names);
    let mut last = tile.declared(&own);
    last.extend(tile.copy(|s, e| (own[s], e), |s, e| (tile.states[s].acc, start.add(&e)), names));
    last.extend(after.into_iter().map(|stmt| tile.renamed(stmt, &own, &mut |index| index)));
    out.extend(tile.around(last));
    out
}

impl Tile {
    fn outputs(&self) -> u64 {
        self.loops.iter().map(|&(_, extent)| extent).product()
    }

    /// The number of the iteration.
    fn position(&self) -> Index {
        self.loops.iter().fold(Index::default(), |at, &(var, extent)| at.times(extent as i64).plus(var, 1))
    }

    /// The statements with the tile's loops around them.
    fn around(&self, body: Vec<Stmt>) -> Vec<Stmt> {
        let wrap = |body, &(var, n): &(LoopVar, u64)| vec![Stmt::For(Loop::new(var, n, LoopKind::Parallel, body))];
        self.loops.iter().rev().fold(body, wrap)
    }

    /// New accumulators, for the state of one block of one output.
    fn own(&self, names: &mut Names) -> Vec<AccId> {
        self.states.iter().map(|_| names.acc()).collect()
    }

    fn declared(&self, own: &[AccId]) -> Vec<Stmt> {
        let declare = |(s, &acc): (&State, &AccId)| Stmt::Acc { acc, dtype: s.dtype, len: self.elems, init: s.init };
        self.states.iter().zip(own).map(declare).collect()
    }

    /// A loop over blocks with the tile's loops inside it.
    fn in_blocks(&self, stmt: Stmt, names: &mut Names) -> Stmt {
        let Stmt::For(l) = stmt else { return stmt };
        if matches!(&l.body[..], [Stmt::For(inner), ..] if inner.var.over == Over::Block) {
            let body = l.body.into_iter().map(|s| self.in_blocks(s, names)).collect();
            return Stmt::For(Loop { body, ..l });
        }
        let own = self.own(names);
        let mut block = Index::default();
        let mut body = self.declared(&own);
        let mut in_block = |index: Index| {
            let elems = self.elems as i64;
            block = Index::constant(index.offset.div_euclid(elems));
            let mut element = Index::constant(index.offset.rem_euclid(elems));
            for (var, c) in index.terms() {
                match var.over {
                    Over::Block => block = block.clone().plus(var, c / elems),
                    _ => element = element.plus(var, c),
                }
            }
            element
        };
        body.extend(l.body.into_iter().map(|stmt| self.renamed(stmt, &own, &mut in_block)).collect::<Vec<_>>());
        let start = block.times(self.outputs() as i64).add(&self.position()).times(self.elems as i64);
        body.extend(self.copy(|s, e| (self.states[s].acc, start.add(&e)), |s, e| (own[s], e), names));
        Stmt::For(Loop { body: self.around(body), ..l })
    }

    /// `to[e] = from[e]` for every element of every part.
    fn copy(
        &self,
        to: impl Fn(usize, Index) -> (AccId, Index),
        from: impl Fn(usize, Index) -> (AccId, Index),
        names: &mut Names,
    ) -> Vec<Stmt> {
        let var = names.loop_over(Over::Element);
        let e = if self.elems == 1 { Index::default() } else { Index::term(var, 1) };
        let set = |s: usize| {
            let ((acc, index), (source, at)) = (to(s, e.clone()), from(s, e.clone()));
            Stmt::Set { acc, index, value: Expr::Read(source, self.states[s].dtype, at) }
        };
        let body: Vec<Stmt> = (0..self.states.len()).map(set).collect();
        match self.elems {
            1 => body,
            elems => vec![Stmt::For(Loop::new(var, elems, LoopKind::Parallel, body))],
        }
    }

    /// The statement with an output's own accumulators in place of those of all.
    fn renamed(&self, stmt: Stmt, names: &[AccId], index: &mut dyn FnMut(Index) -> Index) -> Stmt {
        let own = |acc: AccId| self.states.iter().position(|s| s.acc == acc).map(|s| names[s]);
        let stmt = stmt.map_exprs(&mut |e| {
            e.rewrite(&mut |e| match e {
                Expr::Read(acc, dtype, at) => match own(acc) {
                    Some(own) => Expr::Read(own, dtype, index(at)),
                    None => Expr::Read(acc, dtype, at),
                },
                e => e,
            })
        });
        match stmt {
            Stmt::For(l) => {
                Stmt::For(Loop { body: l.body.into_iter().map(|s| self.renamed(s, names, index)).collect(), ..l })
            }
            Stmt::Set { acc, index: at, value } => match own(acc) {
                Some(own) => Stmt::Set { acc: own, index: index(at), value },
                None => Stmt::Set { acc, index: at, value },
            },
            Stmt::Fold { accs, def, present, lanes, elems } => {
                let accs = accs.into_iter().map(|acc| own(acc).unwrap_or(acc)).collect();
                Stmt::Fold { accs, def, present, lanes, elems }
            }
            other => other,
        }
    }
}
