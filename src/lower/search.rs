//! The search for one element of a slice by windows.

use super::phases::fold;
use super::{At, Lowering, Slice};
use crate::problem::search_windows::Windows;
use crate::problem::tree::Tree;
use cranefold_ir::ops::{Phase, Search};
use cranefold_ir::{Expr, Index, LoopKind, Over, Stmt};

/// The most windows whose loop is unrolled, so that several slices may be searched at once.
const FEW_WINDOWS: u64 = 4;

impl Lowering<'_> {
    /// Walks the windows; each lane keeps its best element and the start of that element's window. Then walks the
    /// window of the best element of all lanes:
    ///
    /// ```text
    /// acc a0: i32[16] = -2147483648          # the best
    /// acc a1: i32[16] = 0                    # where its window starts
    /// for b0 in 0..9 seq {
    ///   acc a2: i32[16] = -2147483648
    ///   for k1 in 0..30 seq { for l2 in 0..16 parallel { a2[l2] = max(a2[l2], x0[480*b0 + 16*k1 + l2]) } }
    ///   for l3 in 0..16 parallel { a0[l3], a1[l3] = keep(a0[l3], a1[l3], a2[l3], i32[480*b0]) }
    /// }
    /// fold a0, a1 by better over 16 of 16 by 1
    /// pick s4 = a1[0] to 3840
    /// acc a5: u32[16] = 4294967295
    /// for k6 in 0..30 seq { for l7 in 0..16 parallel { a5[l7] = min(a5[l7], position_of(x0[s4 + 16*k6 + l7], ..)) } }
    /// fold a5 by nearer over 16 of 16 by 1
    /// ```
    pub(super) fn search(
        &mut self,
        phases: &[Phase],
        search: &Search,
        (tree, windows): (&Tree, &Windows),
        slice: &mut Slice,
        at: &At,
    ) -> Vec<Expr> {
        let [extreme, find] = phases else { unreachable!("a search has two phases") };
        let region = &self.visit.boxes[0];
        let (first, stride) = (at.entering(&region.start, 0), region.dims[0].stride.clone());
        let to = |element: &Index| first.along(&stride, 1, element);
        let lanes = tree.lanes;
        let (best, mut body) = self.accumulate(&search.identity, lanes);
        let window = |this: &mut Self, start: &Index| {
            let (state, mut body) = this.accumulate(&extreme.identity, lanes);
            body.extend(this.window(windows, lanes, start, &mut |this, element, lane| {
                let (mut stmts, element) = this.loads(&to(element));
                stmts.extend(this.take(extreme, &state, lane, element));
                stmts
            }));
            body.extend(this.repeat(Over::Element, lanes, LoopKind::Parallel, |this, lane| {
                let here = Expr::At(search.identity[1].dtype(), start.clone());
                let args = [best.read(&lane), state.read(&lane), vec![here]].concat();
                let (mut stmts, values) = this.apply(&search.keep, args);
                stmts.extend(best.set(&lane, values));
                stmts
            }));
            body
        };
        let elements = windows.elements as i64;
        if windows.whole <= FEW_WINDOWS {
            let starts = (0..windows.whole as i64).map(|b| Index::constant(b * elements));
            starts.for_each(|start| body.extend(window(self, &start)));
        } else {
            let over_all = |this: &mut Self, b: Index| window(this, &b.times(elements));
            body.extend(self.repeat(Over::Block, windows.whole, LoopKind::Seq, over_all));
        }
        if windows.last % windows.elements != 0 {
            body.extend(window(self, &Index::constant(windows.last as i64)));
        }
        let combine = self.nest.define(search.combine.clone());
        body.extend(fold(&best, combine, lanes, lanes));
        let mut kept = best.read(&Index::default());
        let start = self.names.loop_over(Over::Start);
        body.push(Stmt::Pick { var: start, value: kept.remove(1), most: windows.last });
        let zeros: Vec<_> =
            search.close.results.iter().map(|r| cranefold_ir::Scalar::from_bits(r.dtype(), 0)).collect();
        let (results, accs) = self.accumulate(&zeros, 1);
        body.extend(accs);
        let (stmts, values) = self.apply(&search.close, kept);
        body.extend(stmts);
        body.extend(results.set(&Index::default(), values));
        let results = results.read(&Index::default());
        let (found, accs) = self.accumulate(&find.identity, lanes);
        body.extend(accs);
        body.extend(self.window(windows, lanes, &Index::term(start, 1), &mut |this, element, lane| {
            let (mut stmts, element) = this.loads(&to(element));
            let element = element.into_iter().chain(results.iter().cloned()).collect();
            stmts.extend(this.take(find, &found, lane, element));
            stmts
        }));
        let combine = self.nest.define(find.combine.clone());
        body.extend(fold(&found, combine, lanes, lanes));
        let mut found = found.read(&Index::default());
        if let Some(close) = &find.close {
            found = self.close(close, found, windows.elements, &mut body);
        }
        slice.body.extend(body);
        results.into_iter().chain(found).collect()
    }

    /// Loops over the elements of a window; `each` gets the element's number and its lane.
    fn window(
        &mut self,
        windows: &Windows,
        lanes: u64,
        start: &Index,
        each: &mut dyn FnMut(&mut Self, &Index, &Index) -> Vec<Stmt>,
    ) -> Vec<Stmt> {
        self.repeat(Over::Step, windows.steps, LoopKind::Seq, |this, k| {
            let step = start.add(&k.times(lanes as i64));
            this.repeat(Over::Lane, lanes, LoopKind::Parallel, |this, l| each(this, &step.add(&l), &l))
        })
    }
}
