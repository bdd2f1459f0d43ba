//! Folds the lanes of several outputs together.

use super::state::{StateAcc, accumulators, combined};
use crate::schedule::{Schedule, Transform};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Access, is_straight, map_elements, rewrite, visit_accesses, visit_exprs};
use cranefold_ir::{AccId, Def, Expr, Extent, Index, Loop, LoopKind, Names, Nest, Over, Stmt, Var, tree};

/// Folds the lanes of each output in a `@folds` tile down to the lanes of one vector, and then folds the outputs of the
/// tile side by side; each output's result becomes one lane of a vector:
///
/// ```text
/// for i0 in 0..16 parallel {
///   acc a0: f32[32] = -0.0
///   for l1 in 0..32 parallel { a0[l1] = add(a0[l1], x0[32*i0 + l1]) }
///   fold a0 by sum over 32 of 64 by 1
///   x1[i0] = finish(a0[0])
/// }
/// ->  (tile=i0:16@folds, vectors of 512 bits)
/// acc a1: f32[256] = -0.0
/// for i0 in 0..16 parallel {
///   acc a0: f32[32] = -0.0
///   for l1 in 0..32 parallel { a0[l1] = add(a0[l1], x0[32*i0 + l1]) }
///   for e2 in 0..16 parallel { a0[e2] = sum(a0[e2], a0[e2 + 16]) }
///   for e3 in 0..16 parallel { a1[e3 + 16*i0] = a0[e3] }
/// }
/// acc a2: f32[128] = -0.0
/// for e4 in 0..16 parallel { for e5 in 0..8 parallel { a2[8*e4 + e5] = sum(a1[16*e4 + e5], a1[16*e4 + e5 + 8]) } }
/// ...
/// acc a5: f32[16] = -0.0
/// for e10 in 0..16 parallel { for e11 in 0..1 parallel { a5[e10 + e11] = sum(a4[2*e10 + e11], a4[2*e10 + e11 + 1]) } }
/// for i0 in 0..16 parallel { x1[i0] = finish(a5[i0]) }
/// ```
///
/// Each vector of sums combines two full vectors; `vectorize` joins outputs to fill them.
///
/// Legal because `fold` means just these combinations (see [`cranefold_ir::tree`]), and outputs are independent. A tile
/// stays as it is if its outputs do not fill whole vectors, or an output has fewer lanes than a vector.
pub fn share_folds(mut nest: Nest, schedule: &Schedule, vectors: Vectors) -> Nest {
    let shares = |l: &Loop| {
        let tile = schedule.tile_of(l.var).filter(|tile| tile.transform == Transform::SharedFolds);
        tile.is_some_and(|tile| l.extent == Extent::Const(tile.by))
    };
    if !vectors.are_wide() || schedule.tiles.iter().all(|tile| tile.transform != Transform::SharedFolds) {
        return nest;
    }
    let mut names = Names::after(&nest);
    let declared = accumulators(&nest);
    let body = std::mem::take(&mut nest.body);
    nest.body = rewrite(body, &mut |stmt| {
        let Stmt::For(l) = stmt else { return None };
        let state = |acc: &AccId| declared[acc];
        let shared = shares(l).then(|| SharedFolds::of(l, u64::from(vectors.bits / 8), &nest, state)).flatten();
        shared.map(|shared| shared.written_out(l, &mut nest, &mut names))
    });
    nest
}

/// The fold of each output of a tile.
struct SharedFolds {
    /// The place of the fold in the body.
    at: usize,
    state: Vec<StateAcc>,
    def: Def,
    present: u64,
    lanes: u64,
    /// Outputs of the tile.
    outputs: u64,
    /// Lanes of a vector.
    width: u64,
}

impl SharedFolds {
    /// The folds of a loop; `None` if its body is not the steps of an output, a fold and uses of its results, or the
    /// vectors would not be whole.
    fn of(l: &Loop, vector_bytes: u64, nest: &Nest, part: impl Fn(&AccId) -> StateAcc) -> Option<SharedFolds> {
        let Extent::Const(outputs) = l.extent else { return None };
        let at = l.body.iter().position(|s| matches!(s, Stmt::Fold { elems: 1, .. }))?;
        let Stmt::Fold { accs, def, present, lanes, .. } = &l.body[at] else { return None };
        let (before, after) = (&l.body[..at], &l.body[at + 1..]);
        let state: Vec<StateAcc> = accs.iter().map(part).collect();
        let bytes = state[0].dtype.bytes();
        let width = vector_bytes / bytes;
        let declares = |acc: &AccId| before.iter().any(|s| matches!(s, Stmt::Acc { acc: a, .. } if a == acc));
        let is_state = state.iter().all(|p| p.dtype.bytes() == bytes && declares(&p.acc));
        let is_whole = width > 1 && outputs.is_multiple_of(width) && *present >= width;
        let fits = is_state && is_whole && is_straight(after) && only_takes_results(after, before, accs);
        let def = nest.def(*def).clone();
        fits.then_some(SharedFolds { at, state, def, present: *present, lanes: *lanes, outputs, width })
    }

    fn written_out(&self, l: &Loop, nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
        let mut out = vec![];
        let mut sums = self.declared(self.width, &mut out, names);
        let mut body = l.body[..self.at].to_vec();
        let wide = tree::folds(self.lanes, self.present).filter(|&(half, _)| half >= self.width);
        for (half, count) in wide {
            let var = names.loop_over(Over::Element);
            let lower = Index::term(var, 1);
            let upper = lower.clone().offset_by(half as i64);
            let sum = combined(&self.def, &self.state, [&lower, &upper], &self.state, &lower, nest, names);
            body.push(Stmt::For(Loop::new(var, count, LoopKind::Parallel, sum)));
        }
        let var = names.loop_over(Over::Element);
        let to = Index::term(l.var, self.width as i64).plus(var, 1);
        let set = |(to_part, from): (&StateAcc, &StateAcc)| {
            let value = Expr::Read(from.acc, from.dtype, Index::term(var, 1));
            Stmt::Set { acc: to_part.acc, index: to.clone(), value }
        };
        let copies = sums.iter().zip(&self.state).map(set).collect();
        body.push(Stmt::For(Loop::new(var, self.width, LoopKind::Parallel, copies)));
        out.push(Stmt::For(Loop { body, ..l.clone() }));
        let mut half = self.width / 2;
        while half > 0 {
            let halves = self.declared(half, &mut out, names);
            let (output, lane) = (names.loop_over(Over::Element), names.loop_over(Over::Element));
            let lower = Index::term(output, 2 * half as i64).plus(lane, 1);
            let upper = lower.clone().offset_by(half as i64);
            let at = Index::term(output, half as i64).plus(lane, 1);
            let sum = combined(&self.def, &sums, [&lower, &upper], &halves, &at, nest, names);
            let lanes = Stmt::For(Loop::new(lane, half, LoopKind::Parallel, sum));
            out.push(Stmt::For(Loop::new(output, self.outputs, LoopKind::Parallel, vec![lanes])));
            (sums, half) = (halves, half / 2);
        }
        let after = map_elements(l.body[self.at + 1..].to_vec(), &mut |acc, index| {
            let part = self.state.iter().position(|p| p.acc == acc);
            part.map_or((acc, index), |n| (sums[n].acc, Index::term(l.var, 1)))
        });
        out.push(Stmt::For(Loop { body: after, ..l.clone() }));
        out
    }

    /// New accumulators with `lanes` lanes for each output, declared in `out`.
    fn declared(&self, lanes: u64, out: &mut Vec<Stmt>, names: &mut Names) -> Vec<StateAcc> {
        let values: Vec<StateAcc> = self.state.iter().map(|p| StateAcc { acc: names.acc(), ..*p }).collect();
        let len = lanes * self.outputs;
        out.extend(values.iter().map(|p| p.declare(len)));
        values
    }
}

/// Returns true if the statements after a fold use nothing that the statements before it declare or bind but the fold's
/// results.
fn only_takes_results(after: &[Stmt], before: &[Stmt], state: &[AccId]) -> bool {
    let declares = |acc: AccId| before.iter().any(|s| matches!(s, Stmt::Acc { acc: a, .. } if *a == acc));
    let binds = |v: Var| before.iter().any(|s| s.bound_vars().contains(&v));
    let mut takes_results = true;
    for stmt in after {
        visit_accesses(stmt, &mut |acc, access| {
            takes_results &= match access {
                Access::Read(at) => !declares(acc) || (state.contains(&acc) && *at == Index::default()),
                Access::Declared
                | Access::Set(_)
                | Access::Combined
                | Access::Transposed
                | Access::Stored
                | Access::Selected => false,
            };
        });
    }
    visit_exprs(after, &mut |e| {
        if let Expr::Var(var, _) = e {
            takes_results &= !binds(*var);
        }
    });
    takes_results
}
