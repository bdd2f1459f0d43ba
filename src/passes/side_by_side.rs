//! Puts the lanes of neighbouring slices side by side.

use super::positions::lies_inside;
use super::spreads::{Fixed, Spreads};
use crate::schedule::{Schedule, Transform};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Access, Band, map_elements, rewrite, split_block, visit_accesses, visit_exprs};
use cranefold_ir::{AccId, DType, Expr, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Scalar, Stmt, Var};
use rustc_hash::{FxHashMap, FxHashSet};

/// Moves the loop of a `@lanes` tile, with the output loops inside it, inside the loops over blocks, steps and positions,
/// and around those over lanes. The slices of a tile, runs of a few elements that lie side by side, are then walked as
/// one row. What a lane reads of its slice's values is spread over the lanes before the loop over steps, and numbers of
/// positions before all loops:
///
/// ```text
/// for i0 in 0..32 parallel {
///   S
///   acc a1: f32[8] = -0.0
///   for k1 in 0..64 seq { for l2 in 0..8 parallel { a1[l2] = add(a1[l2], sub(x0[8*i0 + 256*k1 + l2], a0[0])) } }
///   fold a1 by sum over 8 of 8 by 1
///   x1[i0] = a1[0]
/// }
/// ->  (tile=i0:32@lanes)
/// for i0 in 0..32 parallel { S }
/// acc a1: f32[256] = -0.0
/// acc a2: f32[256] = 0.0
/// for i0 in 0..32 parallel { for l2 in 0..8 parallel { a2[8*i0 + l2] = a0[i0] } }
/// for k1 in 0..64 seq {
///   for i0 in 0..32 parallel {
///     for l2 in 0..8 parallel { a1[8*i0 + l2] = add(a1[8*i0 + l2], sub(x0[8*i0 + 256*k1 + l2], a2[8*i0 + l2])) }
///   }
/// }
/// acc a3: f32[32] = 0.0
/// for i0 in 0..32 parallel {
///   acc a4: f32[8] = 0.0
///   for e3 in 0..8 parallel { a4[e3] = a1[8*i0 + e3] }
///   fold a4 by sum over 8 of 8 by 1
///   a3[i0] = a4[0]
///   x1[i0] = a3[i0]
/// }
/// ```
///
/// `merge_loops` makes one loop of the two innermost, and `share_folds` folds as many slices together as a vector has
/// results of.
///
/// Values of the elements that are kept for later visits lie as the elements do: the rows of all slices for a step, then
/// those for the next.
///
/// Legal because iterations of the tile's loops write different elements, once each has its own part of every
/// accumulator: a part of each block where blocks merge, so that a merge takes the states of all slices at once. A loop
/// that holds anything else stays where it is.
pub fn side_by_side(mut nest: Nest, schedule: &Schedule, _: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let mut numbers = Spreads::default();
    let body = std::mem::take(&mut nest.body);
    let body = rewrite(body, &mut |stmt| {
        let Stmt::For(l) = stmt else { return None };
        schedule.tile_of(l.var).filter(|tile| tile.transform == Transform::Lanes)?;
        let mut with_own = numbers.clone();
        let moved = moved(l, &mut with_own, &mut names)?;
        numbers = with_own;
        Some(moved)
    });
    nest.body = numbers.stmts();
    nest.body.extend(body);
    nest
}

/// The loops that a tile moves, and the accumulators inside.
struct Moved<'n> {
    band: Band,
    own: FxHashMap<AccId, Own>,
    /// The numbers of positions that rows of the nest read.
    numbers: &'n mut Spreads,
    names: &'n mut Names,
}

/// An accumulator that each slice has for itself.
#[derive(Clone, Copy)]
struct Own {
    dtype: DType,
    /// The elements that lie side by side with those of other slices: of a block's state, of a row of values that are kept,
    /// or all.
    elems: u64,
    parts: Parts,
}

/// The parts of an accumulator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    /// All of it.
    One,
    /// The states of a block, which merge.
    Blocks,
    /// A row of elements: a step or a position takes one.
    Rows,
}

/// The place of a statement.
enum Part {
    /// In the tile's loops, once a slice.
    Inside(Vec<Stmt>),
    /// Once for all slices.
    Outside(Vec<Stmt>),
    /// Before the run of statements that a slice takes, in whose middle it stands.
    Declared(Stmt),
}

fn moved(l: &Loop, numbers: &mut Spreads, names: &mut Names) -> Option<Vec<Stmt>> {
    let (band, body) = Band::of(l.clone())?;
    let own = own(&body)?;
    let mut moved = Moved { band, own, numbers, names };
    let body = map_elements(body, &mut |acc, index| (acc, moved.widened(acc, index)));
    moved.body(body)
}

/// The accumulators declared in the body; `None` if something in it has to stay in one slice.
fn own(body: &[Stmt]) -> Option<FxHashMap<AccId, Own>> {
    let (mut own, mut merged): (FxHashMap<AccId, Own>, FxHashMap<AccId, u64>) = Default::default();
    let mut extents: FxHashMap<LoopVar, u64> = FxHashMap::default();
    let mut is_plain = true;
    let mut see = |s: &Stmt| match s {
        Stmt::Acc { acc, dtype, len, .. } => {
            own.insert(*acc, Own { dtype: *dtype, elems: *len, parts: Parts::One });
        }
        Stmt::Merge { accs, elems, .. } => {
            accs.iter().for_each(|&acc| is_plain &= merged.insert(acc, *elems).is_none_or(|other| other == *elems));
        }
        Stmt::For(l) => {
            if let Extent::Const(extent) = l.extent {
                extents.insert(l.var, extent);
            }
        }
        Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. } | Stmt::Fold { .. } => {}
        Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Select { .. } | Stmt::Wide { .. } => is_plain = false,
        Stmt::Transpose(_)
        | Stmt::TransposedStore(_)
        | Stmt::Misalign { .. }
        | Stmt::Rotate { .. }
        | Stmt::Prefetch { .. } => is_plain = false,
    };
    body.iter().for_each(|s| s.visit(&mut see));
    for (acc, elems) in rows(body, &extents) {
        if let Some(own) = own.get_mut(&acc) {
            (own.elems, own.parts) = (elems, Parts::Rows);
        }
    }
    for (acc, elems) in merged {
        let own = own.get_mut(&acc)?;
        (own.elems, own.parts) = (elems, Parts::Blocks);
    }
    is_plain.then_some(own)
}

/// The accumulators of which all elements are read and set row by row, each with the elements of its rows: of every index,
/// one variable walks a row, and the rest counts rows.
fn rows(body: &[Stmt], extents: &FxHashMap<LoopVar, u64>) -> FxHashMap<AccId, u64> {
    let mut rows: FxHashMap<AccId, Option<u64>> = FxHashMap::default();
    let row_of = |index: &Index| {
        let (along, _) = index.terms().find(|&(_, c)| c == 1)?;
        let elems = *extents.get(&along)?;
        let is_row = |of: i64| of % elems as i64 == 0;
        let counts_rows = index.terms().all(|(var, c)| var == along || is_row(c));
        (elems > 1 && counts_rows && is_row(index.offset)).then_some(elems)
    };
    let mut see = |acc, access: Access<'_>| {
        let row = match access {
            Access::Declared => return,
            Access::Read(index) | Access::Set(index) => row_of(index),
            Access::Combined | Access::Transposed | Access::Stored | Access::Selected => None,
        };
        let known = rows.entry(acc).or_insert(row);
        *known = known.filter(|_| *known == row);
    };
    body.iter().for_each(|s| visit_accesses(s, &mut see));
    rows.into_iter().filter_map(|(acc, row)| Some((acc, row?))).collect()
}

impl Moved<'_> {
    /// The index, in the accumulator of all slices, of an element of the current slice's.
    fn widened(&self, acc: AccId, index: Index) -> Index {
        let Some(own) = self.own.get(&acc) else { return index };
        let (part, element) = match own.parts {
            Parts::One => (Index::default(), index),
            Parts::Blocks => split_block(&index, own.elems, |var| var.over == Over::Block),
            Parts::Rows => split_block(&index, own.elems, |_| true),
        };
        part.times(self.band.count() as i64).add(&self.band.position()).times(own.elems as i64).add(&element)
    }

    /// The statements with the tile's loops inside loops over blocks, steps and positions.
    fn body(&mut self, body: Vec<Stmt>) -> Option<Vec<Stmt>> {
        let (mut parts, mut declared) = (vec![], FxHashSet::default());
        // The accumulator with the result of each slice, of each that has folded here.
        let mut results: FxHashMap<AccId, AccId> = FxHashMap::default();
        for stmt in body {
            let read = |acc: AccId, index: Index| match results.get(&acc) {
                Some(&result) if index == self.band.position().times(self.own[&acc].elems as i64) => {
                    (result, self.band.position())
                }
                _ => (acc, index),
            };
            let stmt = map_elements(vec![stmt], &mut { read }).remove(0);
            if let Stmt::Acc { acc, .. } = stmt {
                declared.insert(acc);
            }
            if let Stmt::Fold { accs, elems: 1, .. } = &stmt
                && accs.iter().all(|acc| declared.contains(acc))
            {
                for &acc in accs {
                    let (result, dtype) = (self.names.acc(), self.own[&acc].dtype);
                    let len = self.band.count();
                    parts.push(Part::Declared(Stmt::Acc { acc: result, dtype, len, init: Scalar::zero(dtype) }));
                    self.own.insert(result, Own { dtype, elems: 1, parts: Parts::One });
                    results.insert(acc, result);
                }
            }
            parts.push(self.part(stmt, &results)?);
        }
        self.distributed(parts)
    }

    fn part(&mut self, stmt: Stmt, results: &FxHashMap<AccId, AccId>) -> Option<Part> {
        let count = self.band.count();
        let one = |stmt| Some(Part::Outside(vec![stmt]));
        match stmt {
            Stmt::Acc { acc, dtype, len, init } => {
                Some(Part::Declared(Stmt::Acc { acc, dtype, len: len * count, init }))
            }
            Stmt::Merge { accs, def, blocks, elems } => one(Stmt::Merge { accs, def, blocks, elems: elems * count }),
            Stmt::Fold { accs, def, present, lanes, elems } => {
                Some(Part::Inside(self.folded(&accs, present * elems, elems, results, |accs| Stmt::Fold {
                    accs,
                    def,
                    present,
                    lanes,
                    elems,
                })))
            }
            Stmt::For(l) if l.var.over == Over::Block => one(Stmt::For(Loop { body: self.body(l.body)?, ..l })),
            Stmt::For(l) if self.enters(&l) || is_jammed(&l) => {
                let mut set = FxHashSet::default();
                let mut see = |acc, access: Access<'_>| match access {
                    Access::Read(_) => {}
                    Access::Declared | Access::Set(_) | Access::Combined => _ = set.insert(acc),
                    Access::Transposed | Access::Stored | Access::Selected => _ = set.insert(acc),
                };
                l.body.iter().for_each(|s| visit_accesses(s, &mut see));
                let mut spreads = Spreads::default();
                let walked = self.step_part(Stmt::For(l), &set, &mut spreads)?;
                let walked = self.distributed(vec![walked])?;
                let mut out = spreads.stmts();
                out.extend(walked);
                Some(Part::Outside(out))
            }
            stmt @ (Stmt::For(_) | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. }) => {
                Some(Part::Inside(vec![stmt]))
            }
            Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Select { .. } | Stmt::Wide { .. } => None,
            Stmt::Transpose(_)
            | Stmt::TransposedStore(_)
            | Stmt::Misalign { .. }
            | Stmt::Rotate { .. }
            | Stmt::Prefetch { .. } => None,
        }
    }

    /// Returns true if the tile's loops move inside this one, of no blocks.
    fn enters(&self, l: &Loop) -> bool {
        matches!(l.var.over, Over::Step | Over::Jam) || lies_inside(&self.band, l)
    }

    /// The place of a statement of a step: loops over steps and positions hold the tile's loops, in which lanes read spread
    /// values of those that no step sets.
    fn step_part(&mut self, stmt: Stmt, set: &FxHashSet<AccId>, spreads: &mut Spreads) -> Option<Part> {
        match stmt {
            Stmt::For(l) if self.enters(&l) => {
                let parts = l.body.into_iter().map(|s| self.step_part(s, set, spreads)).collect::<Option<_>>()?;
                Some(Part::Outside(vec![Stmt::For(Loop { body: self.distributed(parts)?, ..l })]))
            }
            Stmt::For(lanes) => Some(Part::Inside(vec![Stmt::For(self.reading_spreads(lanes, set, spreads))])),
            stmt @ (Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. }) => {
                Some(Part::Inside(vec![stmt]))
            }
            Stmt::Acc { .. } | Stmt::Merge { .. } | Stmt::Fold { .. } | Stmt::Carry { .. } => None,
            Stmt::Pick { .. }
            | Stmt::Select { .. }
            | Stmt::Wide { .. }
            | Stmt::Transpose(_)
            | Stmt::TransposedStore(_) => None,
            Stmt::Misalign { .. } | Stmt::Rotate { .. } | Stmt::Prefetch { .. } => None,
        }
    }

    /// The parts in order, with the tile's loops around each longest run of those inside; `None` if a variable of one run
    /// is used outside it.
    fn distributed(&self, parts: Vec<Part>) -> Option<Vec<Stmt>> {
        let (mut out, mut run): (Vec<Stmt>, Vec<Stmt>) = (vec![], vec![]);
        let mut ended: FxHashSet<Var> = FxHashSet::default();
        for part in parts {
            match part {
                Part::Declared(acc) => out.push(acc),
                Part::Inside(stmts) if uses_none(&ended, &stmts) => run.extend(stmts),
                Part::Outside(stmts) => {
                    if !run.is_empty() {
                        run.iter().for_each(|s| s.visit(&mut |s| ended.extend(s.bound_vars())));
                        out.extend(self.band.around(std::mem::take(&mut run)));
                    }
                    if !uses_none(&ended, &stmts) {
                        return None;
                    }
                    out.extend(stmts);
                }
                Part::Inside(_) => return None,
            }
        }
        if !run.is_empty() {
            out.extend(self.band.around(run));
        }
        Some(out)
    }

    /// The fold of a copy of the current slice's states, and the copy to the results, or back.
    fn folded(
        &mut self,
        accs: &[AccId],
        before: u64,
        after: u64,
        results: &FxHashMap<AccId, AccId>,
        fold: impl FnOnce(Vec<AccId>) -> Stmt,
    ) -> Vec<Stmt> {
        let copies: Vec<(AccId, Own, AccId)> =
            accs.iter().map(|&acc| (acc, self.own[&acc], self.names.acc())).collect();
        let declared = |&(_, own, copy): &(AccId, Own, AccId)| Stmt::Acc {
            acc: copy,
            dtype: own.dtype,
            len: before,
            init: Scalar::zero(own.dtype),
        };
        let mut out: Vec<Stmt> = copies.iter().map(declared).collect();
        let there = |own: Own, e: &Index| self.band.position().times(own.elems as i64).add(e);
        let copy = |(acc, own, copy): (AccId, Own, AccId), e: &Index| Stmt::Set {
            acc: copy,
            index: e.clone(),
            value: Expr::Read(acc, own.dtype, there(own, e)),
        };
        let back = |(acc, own, copy): (AccId, Own, AccId), e: &Index| {
            let value = Expr::Read(copy, own.dtype, e.clone());
            match results.get(&acc) {
                Some(&result) => Stmt::Set { acc: result, index: self.band.position(), value },
                None => Stmt::Set { acc, index: there(own, e), value },
            }
        };
        let var = self.names.loop_over(Over::Element);
        out.extend(elements(var, before, |e| copies.iter().map(|&one| copy(one, e)).collect()));
        out.push(fold(copies.iter().map(|&(.., copy)| copy).collect()));
        let var = self.names.loop_over(Over::Element);
        out.extend(elements(var, after, |e| copies.iter().map(|&one| back(one, e)).collect()));
        out
    }

    /// The loop over lanes with spread values in place of those that all lanes of a slice read alike.
    fn reading_spreads(&mut self, l: Loop, set: &FxHashSet<AccId>, spreads: &mut Spreads) -> Loop {
        let Extent::Const(lanes) = l.extent else { return l };
        let row = Band { loops: self.band.loops.iter().copied().chain([(l.var, lanes)]).collect() };
        let own = &self.own;
        let fixed =
            Fixed { acc: &|acc| own.contains_key(&acc) && !set.contains(&acc), buffer: &|_| false, around: &|_| false };
        let body = spreads.replace(l.body, &row, &fixed, self.numbers, self.names);
        Loop { body, ..l }
    }
}

/// Returns true for a loop over lanes around one over jammed steps, and nothing else.
fn is_jammed(l: &Loop) -> bool {
    l.var.over == Over::Lane && matches!(&l.body[..], [Stmt::For(inner)] if inner.var.over == Over::Jam)
}

/// The statements of each of `count` elements.
fn elements(var: LoopVar, count: u64, each: impl Fn(&Index) -> Vec<Stmt>) -> Vec<Stmt> {
    match count {
        1 => each(&Index::default()),
        count => vec![Stmt::For(Loop::new(var, count, LoopKind::Parallel, each(&Index::term(var, 1))))],
    }
}

/// Returns true if the statements use none of these variables.
fn uses_none(vars: &FxHashSet<Var>, body: &[Stmt]) -> bool {
    let mut none = true;
    visit_exprs(body, &mut |e| none &= !matches!(e, Expr::Var(var, _) if vars.contains(var)));
    none
}
