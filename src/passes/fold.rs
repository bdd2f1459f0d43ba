//! Writes out the folds of lanes, and the merges of blocks that are left.

use super::state::{StateAcc, accumulators, combined};
use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::rewrite;
use cranefold_ir::{AccId, Def, Expr, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Stmt, tree};
use rustc_hash::{FxHashMap, FxHashSet};

/// Writes a fold as loops that halve the lanes until one is left:
///
/// ```text
/// fold a0 by sum over 49 of 64 by 1
/// ->
/// for e0 in 0..17 parallel { a0[e0] = sum(a0[e0], a0[e0 + 32]) }
/// for e1 in 0..16 parallel { a0[e1] = sum(a0[e1], a0[e1 + 16]) }
/// ...
/// for e5 in 0..1 parallel { a0[e5] = sum(a0[e5], a0[e5 + 1]) }
/// ```
///
/// The halves of a state whose number of elements is no power of two start at odd places, which vectors over several
/// lanes do not. Where a loop sets the elements of one lane, each lane has vectors of its own, unless a loop over several
/// lanes has other vectors:
///
/// ```text
/// fold a0 by sum over 4 of 4 by 12
/// ->
/// for e0 in 0..2 parallel { for e1 in 0..12 parallel { a0[12*e0 + e1] = sum(a0[12*e0 + e1], a0[12*e0 + e1 + 24]) } }
/// for e2 in 0..1 parallel { for e3 in 0..12 parallel { a0[12*e2 + e3] = sum(a0[12*e2 + e3], a0[12*e2 + e3 + 12]) } }
/// ```
///
/// Else such a state is copied first, and only the copy lives in memory.
///
/// Legal because `fold` means just this order (see [`cranefold_ir::tree`]).
///
/// A merge is left where `stream` did not see the loops over its blocks, in nests that callers give. Its blocks merge level
/// by level, each with the one before it:
///
/// ```text
/// merge a0 by sum over 7 of 64
/// ->
/// for b0 in 0..3 seq { for e1 in 0..64 parallel { a0[128*b0 + e1] = sum(a0[128*b0 + e1], a0[128*b0 + e1 + 64]) } }
/// for b2 in 0..2 seq { for e3 in 0..64 parallel { a0[256*b2 + e3] = sum(a0[256*b2 + e3], a0[256*b2 + e3 + 128]) } }
/// for b4 in 0..1 seq { for e5 in 0..64 parallel { a0[512*b4 + e5] = sum(a0[512*b4 + e5], a0[512*b4 + e5 + 256]) } }
/// ```
///
/// Legal because these are the pairs that `merge` combines, and of two such that share a state the first comes first.
pub fn fold(mut nest: Nest, _: &Schedule, vectors: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let declared = accumulators(&nest);
    let mut kept = FxHashSet::default();
    read_beyond(&nest.body, &mut kept);
    let mut side_by_side = FxHashMap::default();
    set_side_by_side(&nest.body, None, &mut side_by_side);
    let body = std::mem::take(&mut nest.body);
    nest.body = rewrite(body, &mut |stmt| {
        let values = |accs: &[AccId]| accs.iter().map(|acc| declared[acc]).collect::<Vec<StateAcc>>();
        match stmt {
            &mut Stmt::Fold { ref accs, def, present, lanes, elems } => {
                let has_vectors = |acc: &AccId| {
                    let Some(&(fewest, most)) = side_by_side.get(acc) else { return false };
                    let vector = u64::from(vectors.bits / 8) / declared[acc].dtype.bytes();
                    fewest == elems && (most == elems || elems.is_multiple_of(vector.max(1)))
                };
                let by_lane = !elems.is_power_of_two() && accs.iter().all(has_vectors);
                let fold = Fold { def: nest.def(def).clone(), present, lanes, elems, by_lane };
                Some(fold.write_out(&values(accs), &kept, &mut nest, &mut names))
            }
            &mut Stmt::Merge { ref accs, def, blocks, elems } => {
                let def = nest.def(def).clone();
                Some(merged(&def, &values(accs), (blocks, elems), &mut nest, &mut names))
            }
            Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } => None,
            Stmt::Set { .. } | Stmt::Store { .. } | Stmt::Carry { .. } | Stmt::Pick { .. } => None,
            Stmt::Select { .. } | Stmt::Transpose(_) | Stmt::TransposedStore(_) => None,
            Stmt::Misalign { .. } | Stmt::Rotate { .. } | Stmt::Prefetch { .. } => None,
        }
    });
    nest
}

/// The merges of so many blocks of so many elements, level by level.
fn merged(
    def: &Def,
    values: &[StateAcc],
    (blocks, elems): (u64, u64),
    nest: &mut Nest,
    names: &mut Names,
) -> Vec<Stmt> {
    let mut out = vec![];
    let mut apart = 1;
    while apart < blocks && elems > 0 {
        let pairs = (blocks - apart).div_ceil(2 * apart);
        let (pair, element) = (names.loop_over(Over::Block), names.loop_over(Over::Element));
        let older = Index::term(pair, (2 * apart * elems) as i64).plus(element, 1);
        let newer = older.clone().offset_by((apart * elems) as i64);
        let body = combined(def, values, [&older, &newer], values, &older, nest, names);
        let elements = Loop::new(element, elems, LoopKind::Parallel, body);
        out.push(Stmt::For(Loop::new(pair, pairs, LoopKind::Seq, vec![Stmt::For(elements)])));
        apart *= 2;
    }
    out
}

/// Finds the accumulators of which loops set elements that lie side by side, with the fewest and the most iterations of one,
/// or of two over outputs that walk the accumulator as one. `around` is a loop that has only this body.
fn set_side_by_side(body: &[Stmt], around: Option<(LoopVar, u64)>, found: &mut FxHashMap<AccId, (u64, u64)>) {
    for stmt in body {
        let Stmt::For(Loop { var, extent: Extent::Const(n), body, .. }) = stmt else {
            set_side_by_side(stmt.body(), None, found);
            continue;
        };
        for stmt in body {
            if let Stmt::Set { acc, index, .. } = stmt
                && index.coefficient(*var) == 1
            {
                let outer = around.filter(|&(outer, _)| index.coefficient(outer) == *n as i64);
                let n = outer.map_or(*n, |(_, outer)| n * outer);
                let (fewest, most) = found.entry(*acc).or_insert((n, n));
                (*fewest, *most) = (n.min(*fewest), n.max(*most));
            }
        }
        let is_alone = body.len() == 1 && var.over == Over::Output;
        set_side_by_side(body, is_alone.then_some((*var, *n)), found);
    }
}

/// A fold, but for its accumulators.
struct Fold {
    def: Def,
    present: u64,
    lanes: u64,
    elems: u64,
    /// True if each lane has vectors of its own.
    by_lane: bool,
}

impl Fold {
    fn write_out(&self, values: &[StateAcc], kept: &FxHashSet<AccId>, nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
        if self.elems.is_power_of_two() || self.by_lane || values.iter().any(|p| kept.contains(&p.acc)) {
            return self.halve(values, nest, names);
        }
        let copies: Vec<StateAcc> = values.iter().map(|p| StateAcc { acc: names.acc(), ..*p }).collect();
        let len = self.present * self.elems;
        let mut out: Vec<Stmt> = copies.iter().map(|p| p.declare(len)).collect();
        out.push(copy(&copies, values, len, names));
        out.extend(self.halve(&copies, nest, names));
        out.push(copy(values, &copies, self.elems, names));
        out
    }

    fn halve(&self, values: &[StateAcc], nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
        let by_lane = self.by_lane;
        let step = |(half, count): (u64, u64)| {
            let (lanes, elements) = if by_lane { (count, self.elems) } else { (1, count * self.elems) };
            let (lane, element) = (by_lane.then(|| names.loop_over(Over::Element)), names.loop_over(Over::Element));
            let lower = lane.iter().fold(Index::term(element, 1), |at, &lane| at.plus(lane, self.elems as i64));
            let upper = lower.clone().offset_by((half * self.elems) as i64);
            let body = combined(&self.def, values, [&lower, &upper], values, &lower, nest, names);
            let inner = Stmt::For(Loop::new(element, elements, LoopKind::Parallel, body));
            match lane {
                Some(lane) => Stmt::For(Loop::new(lane, lanes, LoopKind::Parallel, vec![inner])),
                None => inner,
            }
        };
        tree::folds(self.lanes, self.present).map(step).collect()
    }
}

/// Gathers the accumulators of folds of which more than the first elements, the result, may be read afterwards.
fn read_beyond(body: &[Stmt], found: &mut FxHashSet<AccId>) {
    for (at, stmt) in body.iter().enumerate() {
        read_beyond(stmt.body(), found);
        let Stmt::Fold { accs, elems, .. } = stmt else { continue };
        for acc in accs {
            let is_own = body[..at].iter().any(|s| matches!(s, Stmt::Acc { acc: a, .. } if a == acc));
            let of_result = body[at + 1..].iter().all(|s| reads_below(s, *acc, *elems, &mut FxHashMap::default()));
            if !is_own || !of_result {
                found.insert(*acc);
            }
        }
    }
}

/// Returns whether a statement reads of an accumulator no more than so many first elements; `extents` are those of the loops
/// around.
fn reads_below(stmt: &Stmt, of: AccId, elems: u64, extents: &mut FxHashMap<LoopVar, u64>) -> bool {
    if let Stmt::For(Loop { var, extent: Extent::Const(extent), .. }) = stmt {
        extents.insert(*var, *extent);
    }
    let mut are_below = !matches!(stmt, Stmt::Merge { accs, .. } | Stmt::Fold { accs, .. } if accs.contains(&of));
    are_below &= !matches!(stmt, Stmt::Select { acc, .. } if *acc == of);
    for e in stmt.exprs() {
        e.visit(&mut |e| {
            if let Expr::Read(acc, _, index) = e
                && *acc == of
            {
                are_below &= greatest(index, extents).is_some_and(|greatest| greatest < i128::from(elems));
            }
        });
    }
    are_below && stmt.body().iter().all(|s| reads_below(s, of, elems, extents))
}

/// The greatest value of an index in these loops; `None` where it moves with what is none of them.
fn greatest(index: &Index, extents: &FxHashMap<LoopVar, u64>) -> Option<i128> {
    let most = |(var, c): (LoopVar, i64)| Some(i128::from(c).max(0) * i128::from(extents.get(&var)?.saturating_sub(1)));
    index.terms().map(most).try_fold(i128::from(index.offset), |sum, most| sum.checked_add(most?))
}

fn copy(to: &[StateAcc], from: &[StateAcc], len: u64, names: &mut Names) -> Stmt {
    let var = names.loop_over(Over::Element);
    let at = Index::term(var, 1);
    let set = |(to, from): (&StateAcc, &StateAcc)| Stmt::Set {
        acc: to.acc,
        index: at.clone(),
        value: Expr::Read(from.acc, from.dtype, at.clone()),
    };
    Stmt::For(Loop::new(var, len, LoopKind::Parallel, to.iter().zip(from).map(set).collect()))
}
