//! Moves the loops of a tile inside the loops over blocks.

use super::positions::apart;
use super::state::StateAcc;
use crate::schedule::{Schedule, Transform};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Band, Side, map_accs, map_elements, rewrite, split_block, visit_exprs};
use cranefold_ir::{AccId, Expr, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Stmt};

/// Moves the loop of a `@blocks` tile, with the output loops inside it, inside the loops over blocks. A block of one
/// output is then followed by the same block of the next output:
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
/// The loop of a `@runs` tile moves less far: it stays outside the loops over the blocks of a run, which walk memory in
/// shorter strides than the tile:
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
/// Loops at the end that write the positions of slices are loops over the outputs of each position then, where these lie
/// side by side ([`positions`](super::positions)).
///
/// Legal because iterations of the tile's loops write different elements, once each output has its own part of the
/// states; `stream` makes a stack of all these states. Without a merge there is one block, which stays as it is.
/// The loops of outputs whose elements are first brought into order stay too.
pub fn interchange(mut nest: Nest, schedule: &Schedule, _: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    nest.body = rewrite(body, &mut |stmt| {
        let Stmt::For(l) = stmt else { return None };
        match schedule.tile_of(l.var).map(|tile| tile.transform) {
            Some(transform @ (Transform::Blocks | Transform::Runs)) => Some(moved(l.take(), transform, &mut names)),
            _ => None,
        }
    });
    nest
}

/// The loops that a tile moves.
struct MovedLoops {
    band: Band,
    /// The values of the states of all blocks.
    states: Vec<StateAcc>,
    /// Elements of the state of one block.
    elems: u64,
    /// The least stride, in elements, of a loop over blocks that walks whole runs; the tile stays outside all others.
    run: u64,
}

fn moved(l: Loop, transform: Transform, names: &mut Names) -> Vec<Stmt> {
    let stays = |l| vec![Stmt::For(l)];
    let Some((band, mut body)) = Band::of(l.clone()) else { return stays(l) };
    let Some(at) = body.iter().position(|s| matches!(s, Stmt::Merge { .. })) else { return apart(&band, body, names) };
    let after = body.split_off(at + 1);
    let Some(Stmt::Merge { accs, def, blocks, elems }) = body.pop() else { unreachable!("just found") };
    let is_part = |s: &Stmt| match s {
        Stmt::Acc { acc, .. } => accs.contains(acc),
        Stmt::For(l) => l.var.over == Over::Block,
        Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. } | Stmt::Wide { .. } => false,
        Stmt::Carry { .. }
        | Stmt::Pick { .. }
        | Stmt::Misalign { .. }
        | Stmt::Rotate { .. }
        | Stmt::Prefetch { .. } => false,
        Stmt::Merge { .. }
        | Stmt::Fold { .. }
        | Stmt::Select { .. }
        | Stmt::Transpose(_)
        | Stmt::TransposedStore(_) => false,
    };
    if l.var.over != Over::Output || !body.iter().all(is_part) {
        return stays(l);
    }
    let run = match transform {
        Transform::Runs => {
            let strides = band.loops.iter().map(|&(var, _)| stride(&body, var));
            strides.filter(|&s| s > 0).min().unwrap_or(u64::MAX)
        }
        Transform::Blocks
        | Transform::Steps
        | Transform::Across
        | Transform::Rows
        | Transform::SharedFolds
        | Transform::Lanes => 0,
    };
    let mut moved = MovedLoops { band, states: vec![], elems, run };
    let mut out = vec![];
    let mut over_blocks = vec![];
    for stmt in body {
        if let Stmt::Acc { acc, dtype, len, init } = stmt {
            moved.states.push(StateAcc { acc, dtype, init });
            out.push(Stmt::Acc { acc, dtype, len: len * moved.band.count(), init });
        } else {
            over_blocks.push(stmt);
        }
    }
    out.extend(moved.in_blocks(over_blocks, names));
    out.push(Stmt::Merge { accs, def, blocks, elems: elems * moved.band.count() });
    let start = moved.band.position().times(elems as i64);
    let own = moved.own(names);
    let mut last = moved.declared(&own);
    last.extend(moved.copy(|s, e| (own[s], e), |s, e| (moved.states[s].acc, start.add(&e)), names));
    last.extend(moved.with_own(after, &own, &mut |index| index));
    out.extend(apart(&moved.band, last, names));
    out
}

impl MovedLoops {
    /// New accumulators for the state of one block of one output.
    fn own(&self, names: &mut Names) -> Vec<AccId> {
        self.states.iter().map(|_| names.acc()).collect()
    }

    fn declared(&self, own: &[AccId]) -> Vec<Stmt> {
        let declare = |(s, &acc): (&StateAcc, &AccId)| StateAcc { acc, ..*s }.declare(self.elems);
        self.states.iter().zip(own).map(declare).collect()
    }

    /// The body with the tile's loops inside its loops over blocks, or around the loops over the blocks of a run.
    fn in_blocks(&self, body: Vec<Stmt>, names: &mut Names) -> Vec<Stmt> {
        let all: Vec<AccId> = self.states.iter().map(|s| s.acc).collect();
        let mut among_all = |index: Index| {
            let (block, element) = self.apart(&index);
            self.start(&block).add(&element)
        };
        let walks_runs = |s: &Stmt| matches!(s, Stmt::For(l) if stride(&l.body, l.var) >= self.run);
        self.band.sink(body, &mut |stmt| {
            if !walks_runs(&stmt) {
                return Side::Inside(self.with_own(vec![stmt], &all, &mut among_all).remove(0));
            }
            let Stmt::For(l) = stmt else { unreachable!("a loop walks runs") };
            Side::Outside(Stmt::For(self.in_block(l, names)))
        })
    }

    /// A loop over blocks that walks whole runs, with the tile's loops inside.
    fn in_block(&self, l: Loop, names: &mut Names) -> Loop {
        if matches!(&l.body[..], [Stmt::For(inner), ..] if inner.var.over == Over::Block) {
            return Loop { body: self.in_blocks(l.body, names), ..l };
        }
        let own = self.own(names);
        let mut number = Index::default();
        let mut body = self.declared(&own);
        body.extend(self.with_own(l.body, &own, &mut |index| {
            let (block, element) = self.apart(&index);
            number = block;
            element
        }));
        let start = self.start(&number);
        body.extend(self.copy(|s, e| (self.states[s].acc, start.add(&e)), |s, e| (own[s], e), names));
        Loop { body: self.band.around(body), ..l }
    }

    /// The block and the element in that block that an index into the states of one output names.
    fn apart(&self, index: &Index) -> (Index, Index) {
        split_block(index, self.elems, |var| var.over == Over::Block)
    }

    /// The start of the current output's state of a block among the states of all outputs.
    fn start(&self, block: &Index) -> Index {
        block.times(self.band.count() as i64).add(&self.band.position()).times(self.elems as i64)
    }

    /// `to[e] = from[e]` for every element of every value.
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

    /// The statements with the accumulators of one output in place of those of all outputs.
    fn with_own(&self, body: Vec<Stmt>, names: &[AccId], index: &mut dyn FnMut(Index) -> Index) -> Vec<Stmt> {
        let own = |acc: AccId| self.states.iter().position(|s| s.acc == acc).map(|s| names[s]);
        let body = map_elements(body, &mut |acc, at| match own(acc) {
            Some(own) => (own, index(at)),
            None => (acc, at),
        });
        map_accs(body, &mut |acc| own(acc).unwrap_or(acc))
    }
}

/// The longest stride, in elements, of the body's loads along the variable.
fn stride(body: &[Stmt], var: LoopVar) -> u64 {
    let mut stride = 0;
    visit_exprs(body, &mut |e| {
        if let Expr::Load(_, _, index) = e {
            stride = stride.max(index.coefficient(var).unsigned_abs());
        }
    });
    stride
}
