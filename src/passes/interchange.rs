//! Moves the loops of a tile inside the loops over blocks.

use super::{rewrite, visit_exprs};
use crate::schedule::{Schedule, Transform};
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
/// A tile that moves among runs stays outside of the loops over the blocks of a run, those that walk memory in shorter
/// strides than the tile:
///
/// ```text
/// for i0 in 0..20 parallel {
///   acc a0: f32[4096] = -0.0
///   for b1 in 0..64 parallel { for b2 in 0..4 parallel { S(a0[64*b1 + 16*b2 + ..], x0[401408*b1 + 3136*i0 + 784*b2 + ..]) } }
///   ..
/// }
/// ->  (tile=i0:20@runs)
/// acc a0: f32[81920] = -0.0
/// for b1 in 0..64 parallel {
///   for i0 in 0..20 parallel {
///     for b2 in 0..4 parallel { S(a0[16*i0 + 1280*b1 + 320*b2 + ..], x0[401408*b1 + 3136*i0 + 784*b2 + ..]) }
///   }
/// }
/// ..
/// ```
///
/// Legal because iterations of the tile's loops write different elements, once each has its own part of the
/// states; `stream` makes a stack of all these states. Without a merge there is one block, and nothing to do; where
/// each output first brings its elements into order, the loops stay where they are.
pub fn interchange(mut nest: Nest, schedule: &Schedule, _: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    nest.body = rewrite(body, &mut |stmt, out| match stmt {
        Stmt::For(l) => match schedule.tile_of(l.var).map(|tile| tile.transform) {
            Some(transform @ (Transform::Blocks | Transform::Runs)) => out.extend(moved(l, transform, &mut names)),
            _ => out.push(Stmt::For(l)),
        },
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
    /// The stride from which on a loop over blocks walks whole runs, in elements; the tile stays outside of others.
    run: u64,
}

fn moved(l: Loop, transform: Transform, names: &mut Names) -> Vec<Stmt> {
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
    let run = match transform {
        Transform::Runs => {
            loops.iter().map(|&(var, _)| stride(&body, var)).filter(|&s| s > 0).min().unwrap_or(u64::MAX)
        }
        _ => 0,
    };
    let mut tile = Tile { loops, states: vec![], elems, run };
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
    out.extend(tile.in_blocks(over_blocks, names));
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

    /// Loops over blocks with the tile's loops inside them, or around those over the blocks of a run.
    fn in_blocks(&self, body: Vec<Stmt>, names: &mut Names) -> Vec<Stmt> {
        let mut out = vec![];
        let mut of_run = vec![];
        for stmt in body {
            match stmt {
                Stmt::For(l) if stride(&l.body, l.var) >= self.run => {
                    out.extend(self.around_run(&mut of_run));
                    out.push(Stmt::For(self.in_block(l, names)));
                }
                other => of_run.push(other),
            }
        }
        out.extend(self.around_run(&mut of_run));
        out
    }

    /// Loops over the blocks of a run with the tile's loops around them, if there are any.
    fn around_run(&self, of_run: &mut Vec<Stmt>) -> Vec<Stmt> {
        if of_run.is_empty() {
            return vec![];
        }
        let all: Vec<AccId> = self.states.iter().map(|s| s.acc).collect();
        let mut among_all = |index: Index| {
            let (block, element) = self.apart(&index);
            self.start(&block).add(&element)
        };
        self.around(of_run.drain(..).map(|stmt| self.renamed(stmt, &all, &mut among_all)).collect())
    }

    /// A loop over blocks that walks whole runs.
    fn in_block(&self, l: Loop, names: &mut Names) -> Loop {
        if matches!(&l.body[..], [Stmt::For(inner), ..] if inner.var.over == Over::Block) {
            return Loop { body: self.in_blocks(l.body, names), ..l };
        }
        let own = self.own(names);
        let mut number = Index::default();
        let mut body = self.declared(&own);
        let mut in_block = |index: Index| {
            let (block, element) = self.apart(&index);
            number = block;
            element
        };
        body.extend(l.body.into_iter().map(|stmt| self.renamed(stmt, &own, &mut in_block)).collect::<Vec<_>>());
        let start = self.start(&number);
        body.extend(self.copy(|s, e| (self.states[s].acc, start.add(&e)), |s, e| (own[s], e), names));
        Loop { body: self.around(body), ..l }
    }

    /// The block and the element in it that an index in the states of one output names.
    fn apart(&self, index: &Index) -> (Index, Index) {
        let elems = self.elems as i64;
        let mut block = Index::constant(index.offset.div_euclid(elems));
        let mut element = Index::constant(index.offset.rem_euclid(elems));
        for (var, c) in index.terms() {
            match var.over {
                Over::Block => block = block.plus(var, c / elems),
                _ => element = element.plus(var, c),
            }
        }
        (block, element)
    }

    /// Where the current output's state of a block starts among those of all.
    fn start(&self, block: &Index) -> Index {
        block.clone().times(self.outputs() as i64).add(&self.position()).times(self.elems as i64)
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

/// The longest stride in elements in which the loop over the variable walks what the body loads.
fn stride(body: &[Stmt], var: LoopVar) -> u64 {
    let mut stride = 0;
    visit_exprs(body, &mut |e| {
        if let Expr::Load(_, _, index) = e {
            stride = stride.max(index.coefficient(var).unsigned_abs());
        }
    });
    stride
}
