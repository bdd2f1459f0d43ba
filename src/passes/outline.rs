//! Moves statements into wide functions.

use super::lanes::lanes;
use super::vector_forms::VectorForms;
use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Access, map_elements, mentions, visit_accesses, visit_exprs, visit_indices};
use cranefold_ir::{AccId, DType, Expr, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Scalar, Stmt, Var};
use rustc_hash::FxHashMap;
use std::vec::IntoIter;

/// Wraps the longest possible runs of statements in wide functions, outermost first, where the vectors are wider than
/// 128 bits:
///
/// ```text
/// acc a0: u64[32] = 0
/// for b1 in 0..25 seq { S }
/// for e2 in 0..16 parallel { a0[e2] = add(a0[e2], a0[e2 + 16]) }
/// x1[0] = div(a0[0], 1000:u64)
/// ->
/// acc a0: u64[32] = 0
/// wide {
///   for b1 in 0..25 seq { S }
///   for e2 in 0..16 parallel { a0[e2] = add(a0[e2], a0[e2 + 16]) }
/// }
/// x1[0] = div(a0[0], 1000:u64)
/// ```
///
/// Every operation in a wide function, also in the definitions it calls, has a form in wide vectors; no statement in it
/// merges, folds or selects; and at least one of its loops becomes lanes, as there is nothing to gain otherwise. In the
/// body of a loop that does not fit, the pass looks for runs again. A statement whose value is used after the run stays
/// outside.
///
/// Legal because a wide function means its statements. An accumulator that is used after the run is declared before the
/// wide function. If it is only read after the run, the elements that are read are copied at the end of the run:
///
/// ```text
/// acc a0: u64[32] = 0
/// for b1 in 0..25 seq { S(a0) }
/// x1[0] = div(a0[0], 1000:u64)
/// ->
/// acc a1: u64[1] = 0
/// wide {
///   acc a0: u64[32] = 0
///   for b1 in 0..25 seq { S(a0) }
///   a1[0] = a0[0]
/// }
/// x1[0] = div(a1[0], 1000:u64)
/// ```
///
/// The accumulator may then live in registers of the wide function, because no other code uses it. All elements are
/// copied if some are read by an index that is no constant, and they fit the registers.
pub fn outline(nest: Nest, schedule: &Schedule, vectors: Vectors) -> Nest {
    if !vectors.are_wide() {
        return nest;
    }
    let names = Names::after(&nest);
    let mut outliner = Outliner { forms: VectorForms::new(&nest.defs, vectors), width: schedule.width, names };
    let body = outliner.body(nest.body);
    Nest { body, ..nest }
}

struct Outliner<'a> {
    forms: VectorForms<'a>,
    width: u32,
    names: Names,
}

/// The most elements of an accumulator that are copied out of a wide function one by one.
const FEW: usize = 4;

/// The most vectors of an accumulator that is copied out as a whole; more do not fit the registers of its wide
/// function.
const MOST_VECTORS: u64 = 16;

impl Outliner<'_> {
    fn body(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        let uses = Uses::of(&body);
        let ends = self.runs(&body, &uses);
        let mut out = Vec::with_capacity(body.len());
        let mut rest = body.into_iter();
        let mut at = 0;
        while let Some(&end) = ends.get(at) {
            if let Some(end) = end {
                let run = rest.by_ref().take(end + 1 - at).collect();
                rest = self.close(run, rest, &mut out);
                at = end + 1;
                continue;
            }
            out.extend(rest.next().map(|mut stmt| {
                if let Stmt::For(l) = &mut stmt
                    && l.kind != LoopKind::Lanes
                {
                    l.body = self.body(std::mem::take(&mut l.body));
                }
                stmt
            }));
            at += 1;
        }
        out
    }

    /// For each statement of a body, the last statement of its run; `None` if it is in no run.
    fn runs(&mut self, body: &[Stmt], uses: &Uses) -> Vec<Option<usize>> {
        let mut ends = vec![None; body.len()];
        let mut end = None;
        for (at, stmt) in body.iter().enumerate().rev() {
            let last = end.unwrap_or(at);
            let is_own = |name: Name| uses.last(name).is_none_or(|used| used <= last);
            let own_vars = stmt.bound_vars().iter().all(|v| is_own(Name::Var(*v)));
            let own_places = match stmt {
                Stmt::Carry { var, .. } | Stmt::Pick { var, .. } | Stmt::Misalign { var, .. } => {
                    is_own(Name::Carry(*var))
                }
                // A loop's variable ends with it.
                Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } => true,
                Stmt::Set { .. } | Stmt::Store { .. } | Stmt::Rotate { .. } | Stmt::Prefetch { .. } => true,
                Stmt::Merge { .. }
                | Stmt::Fold { .. }
                | Stmt::Select { .. }
                | Stmt::Transpose(_)
                | Stmt::TransposedStore(_) => true,
            };
            end = (own_vars && own_places && self.fits(stmt)).then_some(last);
            ends[at] = end;
        }
        ends
    }

    /// Returns true if the statement, with all statements inside it, may stand in a wide function.
    fn fits(&mut self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Merge { .. } | Stmt::Fold { .. } | Stmt::Select { .. } | Stmt::Wide { .. } => false,
            Stmt::For(l) => l.body.iter().all(|s| self.fits(s)),
            Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. } => {
                self.forms.has_form(stmt)
            }
            Stmt::Carry { .. }
            | Stmt::Pick { .. }
            | Stmt::Misalign { .. }
            | Stmt::Rotate { .. }
            | Stmt::Prefetch { .. }
            | Stmt::Transpose(_)
            | Stmt::TransposedStore(_) => self.forms.has_form(stmt),
        }
    }

    /// Puts the run in `out`, in a wide function if one of its loops has lanes; returns the statements after it.
    fn close(&mut self, run: Vec<Stmt>, mut after: IntoIter<Stmt>, out: &mut Vec<Stmt>) -> IntoIter<Stmt> {
        if !run.iter().any(|s| self.has_lanes(s)) {
            out.extend(run);
            return after;
        }
        let (mut body, mut handed_on) = (Vec::with_capacity(run.len()), vec![]);
        for stmt in run {
            let Stmt::Acc { acc, dtype, len, .. } = stmt else {
                body.push(stmt);
                continue;
            };
            if !after.as_slice().iter().any(|s| mentions(s, acc)) {
                body.push(stmt);
                continue;
            }
            let Some(elements) = self.handed_on(after.as_slice(), acc, dtype, len) else {
                out.push(stmt);
                continue;
            };
            let copy = self.names.acc();
            let init = Scalar::from_bits(dtype, 0);
            let len = if let Elements::Few(few) = &elements { few.len() as u64 } else { len };
            out.push(Stmt::Acc { acc: copy, dtype, len, init });
            body.push(stmt);
            handed_on.extend(self.copies(acc, copy, dtype, len, &elements));
            after = from_copy(after.collect(), acc, copy, &elements).into_iter();
        }
        body.extend(handed_on);
        out.push(Stmt::Wide { body });
        after
    }

    /// The elements of an accumulator that the statements read; `None` if they do more than read it, or it does not fit
    /// the registers.
    fn handed_on(&self, after: &[Stmt], acc: AccId, dtype: DType, len: u64) -> Option<Elements> {
        let fits = len * dtype.bytes() <= MOST_VECTORS * u64::from(self.forms.bits() / 8);
        let elements = elements_read(after, acc)?;
        let is_short = fits || matches!(elements, Elements::Few(_));
        (dtype != DType::Bool && is_short).then_some(elements)
    }

    /// Statements that copy elements of an accumulator to another.
    fn copies(&mut self, acc: AccId, copy: AccId, dtype: DType, len: u64, elements: &Elements) -> Vec<Stmt> {
        let set = |to: Index, from: Index| Stmt::Set { acc: copy, index: to, value: Expr::Read(acc, dtype, from) };
        match elements {
            Elements::Few(few) => {
                let one = |(n, &element): (usize, &i64)| set(Index::constant(n as i64), Index::constant(element));
                few.iter().enumerate().map(one).collect()
            }
            Elements::All => {
                let var = self.names.loop_over(Over::Element);
                let body = vec![set(Index::term(var, 1), Index::term(var, 1))];
                vec![Stmt::For(Loop::new(var, len, LoopKind::Parallel, body))]
            }
        }
    }

    /// Returns true if `vectorize` makes vectors of a loop in the statement.
    fn has_lanes(&mut self, stmt: &Stmt) -> bool {
        let Stmt::For(l) = stmt else { return false };
        let several = !matches!(l.extent, Extent::Const(0 | 1));
        (several && lanes(l, self.width, &mut self.forms).is_some()) || l.body.iter().any(|s| self.has_lanes(s))
    }
}

/// Elements of an accumulator.
enum Elements {
    /// Single elements, each once.
    Few(Vec<i64>),
    All,
}

/// The elements of an accumulator that statements read; `None` if they do more than read it.
fn elements_read(body: &[Stmt], acc: AccId) -> Option<Elements> {
    let mut elements = vec![];
    let (mut only_reads, mut are_few) = (true, true);
    for stmt in body {
        visit_accesses(stmt, &mut |a, access| match access {
            _ if a != acc => {}
            Access::Read(index) => {
                are_few &= index.is_constant();
                if !elements.contains(&index.offset) {
                    elements.push(index.offset);
                }
            }
            Access::Declared
            | Access::Set(_)
            | Access::Combined
            | Access::Transposed
            | Access::Stored
            | Access::Selected => only_reads = false,
        });
    }
    let are_few = are_few && elements.len() <= FEW;
    only_reads.then_some(if are_few { Elements::Few(elements) } else { Elements::All })
}

/// The body with reads of the copy in place of reads of the accumulator.
fn from_copy(body: Vec<Stmt>, acc: AccId, copy: AccId, elements: &Elements) -> Vec<Stmt> {
    map_elements(body, &mut |a, index| match elements {
        _ if a != acc => (a, index),
        Elements::Few(few) => {
            let n = few.iter().position(|&e| e == index.offset).expect("a known element");
            (copy, Index::constant(n as i64))
        }
        Elements::All => (copy, index),
    })
}

/// A variable or a carry that a statement binds for later statements.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Name {
    Var(Var),
    Carry(LoopVar),
}

/// For each name, the last statement of a body that uses it.
struct Uses {
    last: FxHashMap<Name, usize>,
}

impl Uses {
    fn of(body: &[Stmt]) -> Uses {
        let mut uses = Uses { last: FxHashMap::default() };
        for (at, stmt) in body.iter().enumerate() {
            uses.see(stmt, at);
        }
        uses
    }

    fn last(&self, name: Name) -> Option<usize> {
        self.last.get(&name).copied()
    }

    /// Records the names that a statement uses, at any depth.
    fn see(&mut self, stmt: &Stmt, at: usize) {
        let mut take = |name| {
            self.last.insert(name, at);
        };
        let body = std::slice::from_ref(stmt);
        visit_indices(body, &mut |index| index.terms().for_each(|(v, _)| take(Name::Carry(v))));
        visit_exprs(body, &mut |e| {
            if let Expr::Var(var, _) = e {
                take(Name::Var(*var));
            }
        });
        stmt.visit(&mut |s| {
            if let Stmt::For(Loop { extent: Extent::Carry(var), .. }) = s {
                take(Name::Carry(*var));
            }
        });
    }
}
