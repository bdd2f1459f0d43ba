//! Keeps elements of accumulators in registers while a loop adds to them.

use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Zone, map_elements, rewrite_zones};
use cranefold_ir::{AccId, DType, Expr, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;

/// The fewest steps of a loop for which its elements are copied to registers and back.
const FEW_STEPS: u64 = 8;

/// In wide functions, copies the elements that a loop over steps adds to before the loop, and back after it, where each
/// is the same in all steps, and the accumulator is in memory since it is read by a loop that walks it:
///
/// ```text
/// for k0 in 0..64 seq { for l1 in 0..16 lanes { a0[l1] = add(a0[l1], x0[16*k0 + l1]) } }
/// for i2 in 0..2 parallel { x1[i2] = a0[8*i2] }
/// ->
/// acc a1: f32[16] = 0.0
/// for e3 in 0..16 lanes { a1[e3] = a0[e3] }
/// for k0 in 0..64 seq { for l1 in 0..16 lanes { a1[l1] = add(a1[l1], x0[16*k0 + l1]) } }
/// for e4 in 0..16 lanes { a0[e4] = a1[e4] }
/// for i2 in 0..2 parallel { x1[i2] = a0[8*i2] }
/// ```
///
/// All indices of the copy are constant, so that it lives in registers. Of more elements than two thirds of the registers
/// hold, the others stay where they are. `layer_norm f32[9,512,8,7] axes=[1,3]`, which folds 7 lanes for each of 8 slices
/// out of rows of 56, took 0.6 of the time.
///
/// Legal because the copies hold the same values, and nothing in the loop names the elements otherwise.
pub fn promote(mut nest: Nest, _: &Schedule, vectors: Vectors) -> Nest {
    if !vectors.are_wide() {
        return nest;
    }
    let Walked { walked, declared } = Walked::of(&nest);
    if walked.is_empty() {
        return nest;
    }
    let mut names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    nest.body = rewrite_zones(body, Zone::Outside, &mut |stmt, zone| {
        let Stmt::For(l) = stmt else { return None };
        if zone != Zone::Wide || l.var.over != Over::Step || !matches!(l.extent, Extent::Const(FEW_STEPS..)) {
            return None;
        }
        let most = vectors.registers() * 2 / 3;
        let runs = Run::all_of(l)?;
        let vectors_of = |run: &Run| (run.lanes * run.dtype.bytes()).div_ceil(u64::from(vectors.bits / 8));
        let (promoted, others): (Vec<Run>, Vec<Run>) =
            runs.into_iter().filter(|run| run.is_set).partition(|run| walked.contains(&run.acc));
        let mut left = most.saturating_sub(others.iter().map(vectors_of).sum());
        let fits = |run: &Run| {
            let fits = vectors_of(run) <= left;
            left -= if fits { vectors_of(run) } else { 0 };
            fits
        };
        let promoted: Vec<Run> = promoted.into_iter().filter(fits).collect();
        (!promoted.is_empty()).then(|| in_registers(l.take(), &promoted, &declared, &mut names))
    });
    nest
}

/// The accumulators of a nest.
#[derive(Default)]
struct Walked {
    /// The accumulators of which an index has the variable of a loop that is none over lanes: they are in memory.
    walked: FxHashSet<AccId>,
    /// The declaration of each accumulator.
    declared: FxHashMap<AccId, Stmt>,
}

impl Walked {
    fn of(nest: &Nest) -> Walked {
        let mut all = Walked::default();
        all.see(&nest.body, &mut vec![]);
        all
    }

    /// Sees a body inside loops over these lanes.
    fn see(&mut self, body: &[Stmt], lanes: &mut Vec<LoopVar>) {
        for stmt in body {
            if let Stmt::Acc { acc, .. } = stmt {
                self.declared.insert(*acc, stmt.clone());
            }
            let is_walked = |index: &Index| index.terms().any(|(var, _)| !lanes.contains(&var));
            if let Stmt::Set { acc, index, .. } = stmt
                && is_walked(index)
            {
                self.walked.insert(*acc);
            }
            for e in stmt.exprs() {
                e.visit(&mut |e| {
                    if let Expr::Read(acc, _, index) = e
                        && is_walked(index)
                    {
                        self.walked.insert(*acc);
                    }
                });
            }
            let around = lanes.len();
            if let Stmt::For(l) = stmt
                && l.kind == LoopKind::Lanes
            {
                lanes.push(l.var);
            }
            self.see(stmt.body(), lanes);
            lanes.truncate(around);
        }
    }
}

/// Elements side by side that a loop over lanes reads or sets, the same in each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    acc: AccId,
    dtype: DType,
    start: u64,
    lanes: u64,
    is_set: bool,
}

impl Run {
    /// The runs of a loop's body, each once; `None` of a body that is no row of loops over lanes, or names elements
    /// otherwise.
    fn all_of(l: &Loop) -> Option<Vec<Run>> {
        let mut runs: Vec<Run> = vec![];
        for stmt in &l.body {
            let Stmt::For(inner) = stmt else { return None };
            let Extent::Const(lanes) = inner.extent else { return None };
            if inner.kind != LoopKind::Lanes {
                return None;
            }
            for stmt in &inner.body {
                let mut found = true;
                for e in stmt.exprs() {
                    e.visit(&mut |e| {
                        if let Expr::Read(acc, dtype, index) = e {
                            found &=
                                Run::of(*acc, *dtype, index, (inner.var, lanes)).is_some_and(|run| run.join(&mut runs));
                        }
                    });
                }
                match stmt {
                    Stmt::Let { .. } | Stmt::Call { .. } => {}
                    Stmt::Set { acc, index, value } => {
                        let run = Run::of(*acc, value.dtype(), index, (inner.var, lanes));
                        found &= run.is_some_and(|run| Run { is_set: true, ..run }.join(&mut runs));
                    }
                    Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Store { .. } => return None,
                    Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Misalign { .. } | Stmt::Rotate { .. } => {
                        return None;
                    }
                    Stmt::Merge { .. } | Stmt::Fold { .. } | Stmt::Select { .. } | Stmt::Prefetch { .. } => {
                        return None;
                    }
                    Stmt::Transpose(_) | Stmt::TransposedStore(_) => return None,
                }
                if !found {
                    return None;
                }
            }
        }
        Some(runs)
    }

    fn of(acc: AccId, dtype: DType, index: &Index, (var, lanes): (LoopVar, u64)) -> Option<Run> {
        let is_run = *index == Index::term(var, 1).offset_by(index.offset);
        let start = u64::try_from(index.offset).ok()?;
        is_run.then_some(Run { acc, dtype, start, lanes, is_set: false })
    }

    /// Adds a run to others; false if it shares elements with another one without being the same.
    fn join(self, runs: &mut Vec<Run>) -> bool {
        let shares = |run: &&mut Run| {
            run.acc == self.acc && run.start < self.start + self.lanes && self.start < run.start + run.lanes
        };
        match runs.iter_mut().find(shares) {
            Some(run) => {
                run.is_set |= self.is_set;
                (run.start, run.lanes) == (self.start, self.lanes)
            }
            None => {
                runs.push(self);
                true
            }
        }
    }
}

/// The loop over copies of these runs.
fn in_registers(l: Loop, promoted: &[Run], declared: &FxHashMap<AccId, Stmt>, names: &mut Names) -> Vec<Stmt> {
    let mut copies: FxHashMap<AccId, AccId> = FxHashMap::default();
    let mut out = vec![];
    for run in promoted {
        if let Entry::Vacant(entry) = copies.entry(run.acc) {
            let copy = *entry.insert(names.acc());
            let mut declaration = declared[&run.acc].clone();
            if let Stmt::Acc { acc, .. } = &mut declaration {
                *acc = copy;
            }
            out.push(declaration);
        }
    }
    let mut copy = |run: &Run, to: AccId, from: AccId| {
        let var = names.loop_over(Over::Element);
        let index = Index::term(var, 1).offset_by(run.start as i64);
        let set = Stmt::Set { acc: to, index: index.clone(), value: Expr::Read(from, run.dtype, index) };
        Stmt::For(Loop::new(var, run.lanes, LoopKind::Lanes, vec![set]))
    };
    out.extend(promoted.iter().map(|run| copy(run, copies[&run.acc], run.acc)));
    let after: Vec<Stmt> = promoted.iter().map(|run| copy(run, run.acc, copies[&run.acc])).collect();
    let is_promoted =
        |acc: AccId, at: &Index| promoted.iter().any(|run| run.acc == acc && run.start as i64 == at.offset);
    let body = map_elements(l.body, &mut |acc, index| match is_promoted(acc, &index) {
        true => (copies[&acc], index),
        false => (acc, index),
    });
    out.push(Stmt::For(Loop { body, ..l }));
    out.extend(after);
    out
}
