//! The phases of a reduction over the blocks of a tree, and those that groups have in common.

use super::walk::Blocks;
use super::{At, Lowering, Share, Slice, State};
use crate::problem::first_phase::FirstPhase;
use crate::problem::tree::Tree;
use cranefold_ir::ops::{Computation, Phase};
use cranefold_ir::{Def, DefId, Expr, Index, LoopKind, Over, Scalar, Stmt};

impl Lowering<'_> {
    /// The group of one phase that takes the lanes of a group's first phase; none where blocks are divided, whose states
    /// each group stores.
    pub(super) fn taker_of_lanes(&self, computation: &Computation, group: usize) -> Option<usize> {
        let takes =
            |&other: &usize| self.problem.first_phase_before(computation, other) == Some(FirstPhase::Lanes(group));
        let all = group + 1..computation.groups().count();
        all.into_iter().find(takes).filter(|_| matches!(self.share, Share::Whole | Share::Slices { .. }))
    }

    /// The statements of one phase: lanes stay apart while blocks merge, and fold at the end. Lanes that an earlier group's
    /// first phase has had are merged already.
    pub(super) fn one_phase(&mut self, phase: &Phase, tree: &Tree, slice: &mut Slice, at: &At) -> Option<Vec<Expr>> {
        let lanes = tree.lanes_present();
        let merge = self.nest.define(phase.combine.clone());
        if let Some(state) = self.lanes.remove(&self.first_phases.len()) {
            slice.body.extend(fold(&state, merge, lanes, tree.lanes));
            return Some(state.read(&Index::default()));
        }
        let blocks = self.share.states(tree);
        let (state, mut body) = self.accumulate(&phase.identity, blocks * lanes);
        body.extend(self.taken(&state, lanes, at));
        body.extend(self.blocks(tree, at, &mut |this, at, block, blocks| {
            let base = block.times(lanes as i64);
            this.steps(tree, at, blocks, &mut |this, at, lane| {
                let element = base.add(lane);
                // An output may lie in the memory of an input, so it is stored after the element is taken.
                let ((mut stmts, x), stores) = this.loads_and_stores(at);
                stmts.extend(this.take(phase, &state, &element, x));
                stmts.extend(stores);
                stmts
            })
        }));
        if blocks > 1 {
            body.push(Stmt::Merge { accs: state.ids(), def: merge, blocks, elems: lanes });
        }
        if let Share::Blocks { .. } = self.share {
            body.extend(self.given(&state, lanes, at));
            slice.body.extend(body);
            return None;
        }
        body.extend(fold(&state, merge, lanes, tree.lanes));
        slice.body.extend(body);
        Some(state.read(&Index::default()))
    }

    /// The statements of several phases: each folds its lanes at the end of a block. A first phase that an earlier group
    /// has had is not computed again; the lanes of the first phase are kept for the group that takes them.
    pub(super) fn phases(
        &mut self,
        phases: &[Phase],
        merge: &Def,
        tree: &Tree,
        taker: Option<usize>,
        slice: &mut Slice,
        at: &At,
    ) -> Option<Vec<Expr>> {
        let parts = merge.results.iter().map(Expr::dtype);
        let merge = self.nest.define(merge.clone());
        // A block's state is overwritten before it is read, so its initial value does not matter.
        let zeros: Vec<Scalar> = parts.map(|d| Scalar::from_bits(d, 0)).collect();
        let blocks = self.share.states(tree);
        let (states, mut body) = self.accumulate(&zeros, blocks);
        body.extend(self.taken(&states, 1, at));
        let present = tree.lanes_present();
        let given = taker.map(|_| self.accumulate(&phases[0].identity, blocks * present));
        let given = given.map(|(state, accs)| {
            body.extend(accs);
            state
        });
        let whole = tree;
        body.extend(self.blocks(tree, at, &mut |this, at, block, blocks| {
            let mut body = vec![];
            let mut results: Vec<Expr> = vec![];
            // The first phase computes what is kept.
            let computed = this.visit.computed.clone();
            for (k, phase) in phases.iter().enumerate() {
                let tree = &tree.in_phase(k);
                let blocks = &blocks.in_phase(whole, tree);
                let lanes = blocks.lanes(tree);
                let state = match this.visit.first_phase.clone().filter(|_| k == 0) {
                    Some(state) => state,
                    None => {
                        let combine = this.nest.define(phase.combine.clone());
                        let (state, acc) = this.accumulate(&phase.identity, lanes);
                        body.extend(acc);
                        body.extend(this.steps(tree, at, blocks, &mut |this, at, lane| {
                            let (mut stmts, args) = this.loads(at);
                            let args = args.into_iter().chain(results.iter().cloned()).collect();
                            stmts.extend(this.take(phase, &state, lane, args));
                            stmts
                        }));
                        this.visit.computed.clear();
                        if let Some(given) = given.as_ref().filter(|_| k == 0) {
                            let start = block.times(present as i64);
                            body.extend(this.repeat(Over::Lane, lanes, LoopKind::Parallel, |_, l| {
                                given.set(&start.add(&l), state.read(&l))
                            }));
                        }
                        body.extend(fold(&state, combine, lanes, tree.lanes));
                        state
                    }
                };
                if k == 0 && matches!(blocks, Blocks::One) {
                    this.visit.first_phase = Some(state.clone());
                }
                let folded = state.read(&Index::default());
                results.extend(match &phase.close {
                    None => folded,
                    Some(close) => {
                        let count = blocks.elements(tree);
                        this.close(close, folded, count, &mut body)
                    }
                });
            }
            this.visit.computed = computed;
            assert_eq!(states.accs.len(), results.len(), "a block's state is the results of all phases");
            body.extend(states.set(block, results));
            body
        }));
        if blocks > 1 {
            body.push(Stmt::Merge { accs: states.ids(), def: merge, blocks, elems: 1 });
        }
        if let Some((group, state)) = taker.zip(given) {
            let merge = self.nest.define(phases[0].combine.clone());
            body.push(Stmt::Merge { accs: state.ids(), def: merge, blocks, elems: present });
            self.lanes.insert(group, state);
        }
        if let Share::Blocks { .. } = self.share {
            body.extend(self.given(&states, 1, at));
            slice.body.extend(body);
            return None;
        }
        slice.body.extend(body);
        Some(states.read(&Index::default()))
    }

    /// Keeps the results of a phase that later phases read, in accumulators of one element.
    pub(super) fn close(&mut self, close: &Def, folded: Vec<Expr>, count: u64, body: &mut Vec<Stmt>) -> Vec<Expr> {
        let dtype = *close.params.last().expect("the number of elements");
        let count = Scalar::int(dtype, count.into()).into();
        let zeros: Vec<Scalar> = close.results.iter().map(|r| Scalar::from_bits(r.dtype(), 0)).collect();
        let (kept, accs) = self.accumulate(&zeros, 1);
        body.extend(accs);
        let (stmts, values) = self.apply(close, [folded, vec![count]].concat());
        body.extend(stmts);
        body.extend(kept.set(&Index::default(), values));
        kept.read(&Index::default())
    }
}

/// The first phase of a group of several.
pub(super) fn first_phase(computation: &Computation, group: usize) -> &Phase {
    let group = computation.groups().nth(group).expect("a group before this one");
    &group.reducer.method.phases()[0]
}

/// The fold of a state's lanes; none of one lane.
pub(super) fn fold(state: &State, def: DefId, present: u64, lanes: u64) -> Option<Stmt> {
    (present > 1).then(|| Stmt::Fold { accs: state.ids(), def, present, lanes, elems: 1 })
}
