//! Folds the lanes of several outputs together.

use super::state::{StateAcc, accumulators, combined};
use crate::schedule::{Schedule, Tile, Transform};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{
    Access, map_elements, mentions, renamed, rewrite, substitute, visit_accesses, visit_exprs,
};
use cranefold_ir::{AccId, Def, Expr, Extent, Index, Loop, LoopKind, Names, Nest, Over, Stmt, Var, tree};
use rustc_hash::FxHashMap;

/// The fewest outputs that fold together.
const FEWEST: u64 = 4;

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
/// Each vector of sums combines two full vectors; `vectorize` joins outputs to fill them. Where what comes after waits for
/// the result, to visit the slice again or to write it, each part of the body becomes a loop over the outputs of its own,
/// and what a part hands on is kept for each output:
///
/// ```text
/// for i0 in 0..16 parallel {
///   ...                                        up to a fold, as above
///   acc a6: f32[1] = 0.0
///   a6[0] = div(a0[0], 32.0:f32)
///   acc a7: f32[32] = -0.0
///   for l2 in 0..32 parallel { a7[l2] = add(a7[l2], square(sub(x0[32*i0 + l2], a6[0]))) }
///   fold a7 by sum over 32 of 64 by 1
///   x1[i0] = a7[0]
/// }
/// ->
/// acc a6: f32[16] = 0.0
/// ...
/// for i0 in 0..16 parallel { a6[i0] = div(a5[i0], 32.0:f32) }
/// acc a8: f32[256] = -0.0
/// for i0 in 0..16 parallel { ... x0[32*i0 + l2], a6[i0] ... }
/// ...
/// ```
///
/// The folds at the end of a `@lanes` tile (see `side_by_side`) are shared by as many outputs as a vector has results of;
/// where half as many outputs or fewer are left, each of these folds alone.
/// Lanes that stand side by side already are copied as one row:
///
/// ```text
/// for i0 in 0..32 parallel {
///   acc a4: f32[8] = 0.0
///   for e3 in 0..8 parallel { a4[e3] = a1[8*i0 + e3] }
///   fold a4 by sum over 8 of 8 by 1
///   a3[i0] = a4[0]
/// }
/// ->  (tile=i0:32@lanes, vectors of 512 bits)
/// for i5 in 0..2 parallel {
///   acc a5: f32[128] = 0.0
///   for e6 in 0..128 parallel { a5[e6] = a1[128*i5 + e6] }
///   ...                                        the folds of 16 outputs, as above
///   for i0 in 0..16 parallel { a3[16*i5 + i0] = a8[i0] }
/// }
/// ```
///
/// Vectors that the outputs of a tile, or of the rest beside whole tiles, do not fill have initial values in their other
/// lanes.
///
/// Legal because `fold` means just these combinations (see [`cranefold_ir::tree`]), and outputs are independent. A tile
/// stays as it is if it has few outputs, an output has one lane, or a part uses lanes of a state, or values, of a part
/// before it.
pub fn share_folds(mut nest: Nest, schedule: &Schedule, vectors: Vectors) -> Nest {
    let of = |transform| schedule.tiles.iter().any(|tile| tile.transform == transform);
    if !vectors.are_wide() || !of(Transform::SharedFolds) && !of(Transform::Lanes) {
        return nest;
    }
    let mut names = Names::after(&nest);
    let declared = accumulators(&nest);
    let body = std::mem::take(&mut nest.body);
    let vector_bytes = u64::from(vectors.bits / 8);
    let mut sharing = Sharing { vector_bytes, declared: &declared, nest: &mut nest, names: &mut names };
    let body = rewrite(body, &mut |stmt| {
        let Stmt::For(l) = stmt else { return None };
        let Tile { transform, by, .. } = schedule.tile_of(l.var)?;
        let is_whole = matches!(l.extent, Extent::Const(outputs) if outputs <= by);
        match transform {
            Transform::SharedFolds if is_whole => sharing.at_once(l),
            Transform::Lanes => sharing.by_vectors(l),
            Transform::SharedFolds | Transform::Steps | Transform::Across | Transform::Rows => None,
            Transform::Blocks | Transform::Runs => None,
        }
    });
    Nest { body, ..nest }
}

/// The nest whose folds are shared.
struct Sharing<'n> {
    vector_bytes: u64,
    declared: &'n FxHashMap<AccId, StateAcc>,
    nest: &'n mut Nest,
    names: &'n mut Names,
}

impl Sharing<'_> {
    /// The statements of a loop over outputs that all fold together; `None` if they are few or their folds cannot be shared.
    fn at_once(&mut self, l: &Loop) -> Option<Vec<Stmt>> {
        let Extent::Const(FEWEST..) = l.extent else { return None };
        Some(Parts::of(l, self.vector_bytes, self.nest, self.declared)?.written_out(l, self.nest, self.names))
    }

    /// The same where as many outputs fold together as a vector has results of: a loop over vectors of outputs, and those
    /// that are left.
    fn by_vectors(&mut self, l: &Loop) -> Option<Vec<Stmt>> {
        let Extent::Const(outputs) = l.extent else { return None };
        let bytes = |s: &Stmt| {
            let Stmt::Fold { accs, .. } = s else { return None };
            Some(self.declared[accs.first()?].dtype.bytes())
        };
        let by = self.vector_bytes / l.body.iter().filter_map(bytes).max()?;
        let (whole, rest) = (outputs / by, outputs % by);
        let part = |outputs: u64, start: Index| {
            let body = substitute(l.body.clone(), l.var, &start.plus(l.var, 1));
            Loop::new(l.var, outputs, LoopKind::Parallel, body)
        };
        let mut out = vec![];
        if whole > 0 {
            let vectors = self.names.loop_over(l.var.over);
            let body = self.at_once(&part(by, Index::term(vectors, by as i64)))?;
            out.push(Stmt::For(Loop::new(vectors, whole, LoopKind::Parallel, body)));
        }
        if rest > 0 {
            let part = part(rest, Index::constant((whole * by) as i64));
            let shared = if 2 * rest > by { self.at_once(&part) } else { None };
            let body = shared.unwrap_or_else(|| vec![Stmt::For(part)]);
            out.extend(if whole > 0 { renamed(body, self.names) } else { body });
        }
        Some(out)
    }
}

/// The body of a tile in parts, which become loops over its outputs.
struct Parts {
    parts: Vec<Part>,
    /// The accumulators that are kept for each output, with their elements for one.
    kept: Vec<(StateAcc, u64)>,
    /// Outputs of the tile.
    outputs: u64,
}

/// Statements of one output, and the fold at their end.
#[derive(Default)]
struct Part {
    body: Vec<Stmt>,
    fold: Option<SharedFold>,
}

/// The fold of each output of a tile.
struct SharedFold {
    state: Vec<StateAcc>,
    def: Def,
    present: u64,
    lanes: u64,
    /// Lanes of each output that fold together with those of others.
    width: u64,
    /// The outputs that fill whole vectors, at least those of the tile.
    outputs: u64,
}

impl Parts {
    /// The parts of a loop; `None` if it has no fold, or not all of its folds can be shared.
    fn of(l: &Loop, vector_bytes: u64, nest: &Nest, declared: &FxHashMap<AccId, StateAcc>) -> Option<Parts> {
        let Extent::Const(outputs) = l.extent else { return None };
        let mut parts = vec![];
        let mut part = Part::default();
        let mut waits = false;
        for stmt in &l.body {
            match stmt {
                Stmt::Fold { accs, def, present, lanes, elems: 1 } => {
                    let state: Vec<StateAcc> = accs.iter().map(|acc| declared[acc]).collect();
                    let bytes = state[0].dtype.bytes();
                    let in_vector = vector_bytes / bytes;
                    let width = in_vector.min(1 << present.checked_ilog2()?);
                    let is_state = state.iter().all(|p| p.dtype.bytes() == bytes && part.declares(p.acc));
                    if !is_state || width == 1 {
                        return None;
                    }
                    let outputs = outputs.next_multiple_of(in_vector);
                    let def = nest.def(*def).clone();
                    part.fold = Some(SharedFold { state, def, present: *present, lanes: *lanes, width, outputs });
                    parts.push(std::mem::take(&mut part));
                    waits = true;
                }
                Stmt::For(_) => {
                    if std::mem::replace(&mut waits, false) {
                        let next = part.split_declarations();
                        parts.push(std::mem::replace(&mut part, next));
                    }
                    part.body.push(stmt.clone());
                }
                Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. } => {
                    part.body.push(stmt.clone());
                }
                Stmt::Fold { .. } | Stmt::Merge { .. } | Stmt::Select { .. } | Stmt::Wide { .. } => return None,
                Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Misalign { .. } | Stmt::Rotate { .. } => return None,
                Stmt::Prefetch { .. } | Stmt::Transpose(_) | Stmt::TransposedStore(_) => return None,
            }
        }
        parts.push(part);
        parts.retain(|part| !part.body.is_empty());
        let has_fold = parts.iter().any(|part| part.fold.is_some());
        let kept = kept(&parts, declared).filter(|_| has_fold)?;
        Some(Parts { parts, kept, outputs })
    }

    fn written_out(&self, l: &Loop, nest: &mut Nest, names: &mut Names) -> Vec<Stmt> {
        let mut out: Vec<Stmt> = self.kept.iter().map(|(acc, len)| acc.declare(len * self.outputs)).collect();
        // The accumulator that has each output's result of a state.
        let mut results: FxHashMap<AccId, AccId> = FxHashMap::default();
        for Part { body, fold } in &self.parts {
            let is_kept = |acc: AccId| self.kept.iter().find(|(kept, _)| kept.acc == acc);
            let body = body.iter().filter(|s| !matches!(s, Stmt::Acc { acc, .. } if is_kept(*acc).is_some())).cloned();
            let body = map_elements(body.collect(), &mut |acc, index| match (results.get(&acc), is_kept(acc)) {
                (Some(&result), _) => (result, Index::term(l.var, 1)),
                (None, Some(&(_, len))) => (acc, index.plus(l.var, len as i64)),
                (None, None) => (acc, index),
            });
            let sums = match fold {
                Some(fold) => fold.written_out(Loop { body, ..l.clone() }, &mut out, nest, names),
                None => {
                    out.push(Stmt::For(Loop { body, ..l.clone() }));
                    vec![]
                }
            };
            let state = fold.iter().flat_map(|fold| &fold.state);
            results.extend(state.zip(&sums).map(|(state, sum)| (state.acc, sum.acc)));
        }
        out
    }
}

impl Part {
    fn declares(&self, acc: AccId) -> bool {
        self.body.iter().any(|s| matches!(s, Stmt::Acc { acc: a, .. } if *a == acc))
    }

    /// Takes the declarations that nothing here uses for the next part.
    fn split_declarations(&mut self) -> Part {
        let is_used =
            |acc: AccId, body: &[Stmt]| body.iter().any(|s| !matches!(s, Stmt::Acc { .. }) && mentions(s, acc));
        let all = std::mem::take(&mut self.body);
        let unused = |s: &Stmt| matches!(s, Stmt::Acc { acc, .. } if !is_used(*acc, &all));
        let (next, own) = all.iter().cloned().partition(unused);
        self.body = own;
        Part { body: next, fold: None }
    }

    /// The accumulators of the fold's state.
    fn state(&self) -> impl Iterator<Item = AccId> {
        self.fold.iter().flat_map(|fold| fold.state.iter().map(|p| p.acc))
    }
}

/// The accumulators that parts hand on to later ones, or use outside of loops; `None` if parts hand on more than these
/// and the results of folds.
fn kept(parts: &[Part], declared: &FxHashMap<AccId, StateAcc>) -> Option<Vec<(StateAcc, u64)>> {
    let mut kept = vec![];
    for (n, part) in parts.iter().enumerate() {
        let later = || parts[n + 1..].iter().flat_map(|part| &part.body);
        let binds = |var: &Var| part.body.iter().any(|s| s.bound_vars().contains(var));
        let mut is_alone = true;
        for stmt in later() {
            visit_accesses(stmt, &mut |acc, access| {
                is_alone &= access == Access::Read(&Index::default()) || !part.state().any(|own| own == acc);
            });
        }
        let later_body: Vec<Stmt> = later().cloned().collect();
        visit_exprs(&later_body, &mut |e| is_alone &= !matches!(e, Expr::Var(var, _) if binds(var)));
        if !is_alone {
            return None;
        }
        let has_loops = part.body.iter().any(|s| matches!(s, Stmt::For(_)));
        for stmt in &part.body {
            let &Stmt::Acc { acc, len, .. } = stmt else { continue };
            let is_state = part.state().any(|own| own == acc);
            if !is_state && (!has_loops || later().any(|s| mentions(s, acc))) {
                kept.push((declared[&acc], len));
            }
        }
    }
    Some(kept)
}

impl SharedFold {
    /// The loop over the steps of each output, and the folds of all; the results are in the accumulators that it returns.
    fn written_out(&self, mut l: Loop, out: &mut Vec<Stmt>, nest: &mut Nest, names: &mut Names) -> Vec<StateAcc> {
        let sums = self.declared(self.width, out, names);
        let row = self.row(&l);
        if let (Some(row), Extent::Const(outputs)) = (row, l.extent) {
            let var = names.loop_over(Over::Element);
            let set = |(sum, (from, start)): (&StateAcc, &(AccId, Index))| {
                let value = Expr::Read(*from, sum.dtype, start.clone().plus(var, 1));
                Stmt::Set { acc: sum.acc, index: Index::term(var, 1), value }
            };
            let copies = sums.iter().zip(&row).map(set).collect();
            out.push(Stmt::For(Loop::new(var, outputs * self.width, LoopKind::Parallel, copies)));
            return self.folded(sums, out, nest, names);
        }
        let wide = tree::folds(self.lanes, self.present).filter(|&(half, _)| half >= self.width);
        for (half, count) in wide {
            let var = names.loop_over(Over::Element);
            let lower = Index::term(var, 1);
            let upper = lower.clone().offset_by(half as i64);
            let sum = combined(&self.def, &self.state, [&lower, &upper], &self.state, &lower, nest, names);
            l.body.push(Stmt::For(Loop::new(var, count, LoopKind::Parallel, sum)));
        }
        let var = names.loop_over(Over::Element);
        let to = Index::term(l.var, self.width as i64).plus(var, 1);
        let set = |(to_part, from): (&StateAcc, &StateAcc)| {
            let value = Expr::Read(from.acc, from.dtype, Index::term(var, 1));
            Stmt::Set { acc: to_part.acc, index: to.clone(), value }
        };
        let copies = sums.iter().zip(&self.state).map(set).collect();
        l.body.push(Stmt::For(Loop::new(var, self.width, LoopKind::Parallel, copies)));
        out.push(Stmt::For(l));
        self.folded(sums, out, nest, names)
    }

    /// The elements that a loop over outputs copies to the lanes of their states, one output behind the other, where it
    /// does nothing else: the accumulator of each, and the index of the first.
    fn row(&self, l: &Loop) -> Option<Vec<(AccId, Index)>> {
        let (copy, declarations) = l.body.split_last()?;
        let (Stmt::For(copy), true) = (copy, declarations.iter().all(|s| matches!(s, Stmt::Acc { .. }))) else {
            return None;
        };
        if self.present != self.width || copy.extent != Extent::Const(self.width) || copy.body.len() != self.state.len()
        {
            return None;
        }
        let own = Index::term(l.var, self.width as i64).plus(copy.var, 1);
        let from = |(s, state): (&Stmt, &StateAcc)| {
            let Stmt::Set { acc, index, value: Expr::Read(from, _, at) } = s else { return None };
            let start = at.add(&own.times(-1));
            let is_own = (*acc, index) == (state.acc, &Index::term(copy.var, 1));
            let is_row = start.coefficient(l.var) == 0 && start.coefficient(copy.var) == 0;
            (is_own && is_row).then_some((*from, start))
        };
        copy.body.iter().zip(&self.state).map(from).collect()
    }

    /// The folds of the lanes of all outputs, which stand side by side; the results are in the accumulators that it returns.
    fn folded(
        &self,
        mut sums: Vec<StateAcc>,
        out: &mut Vec<Stmt>,
        nest: &mut Nest,
        names: &mut Names,
    ) -> Vec<StateAcc> {
        let mut half = self.width / 2;
        while half > 0 {
            let halves = self.declared(half, out, names);
            let (output, lane) = (names.loop_over(Over::Element), names.loop_over(Over::Element));
            let lower = Index::term(output, 2 * half as i64).plus(lane, 1);
            let upper = lower.clone().offset_by(half as i64);
            let at = Index::term(output, half as i64).plus(lane, 1);
            let sum = combined(&self.def, &sums, [&lower, &upper], &halves, &at, nest, names);
            let lanes = Stmt::For(Loop::new(lane, half, LoopKind::Parallel, sum));
            out.push(Stmt::For(Loop::new(output, self.outputs, LoopKind::Parallel, vec![lanes])));
            (sums, half) = (halves, half / 2);
        }
        sums
    }

    /// New accumulators with `lanes` lanes for each output, declared in `out`.
    fn declared(&self, lanes: u64, out: &mut Vec<Stmt>, names: &mut Names) -> Vec<StateAcc> {
        let values: Vec<StateAcc> = self.state.iter().map(|p| StateAcc { acc: names.acc(), ..*p }).collect();
        out.extend(values.iter().map(|p| p.declare(lanes * self.outputs)));
        values
    }
}
