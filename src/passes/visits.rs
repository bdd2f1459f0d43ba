//! Loops of one body that visit the same elements of inputs, and which of them has most time for memory.

use cranefold_ir::{BufId, Def, Expr, Extent, Index, Loop, LoopKind, LoopVar, Stmt};
use std::ops::ControlFlow;

/// Loops over elements in a body, several of which may visit the same.
pub(super) struct Visits(Vec<Visit>);

/// One loop, with the loops in it.
struct Visit {
    /// The place in the body.
    at: usize,
    /// Operations on vectors for each byte of inputs and outputs that is moved.
    intensity: f64,
    /// The elements that are loaded.
    runs: Vec<Run>,
}

/// Elements of an input beside each other.
#[derive(Clone)]
struct Run {
    buf: BufId,
    /// Their place in the input, by the loops around the visit.
    place: Index,
    /// The first element from there and the last.
    first: i64,
    last: i64,
    /// The number of elements that are loaded.
    elements: u64,
}

impl Visits {
    /// The visits of a body: the loops that `is_visit` names, and of what they load the vectors that `is_counted` names, by
    /// their loop over lanes.
    pub(super) fn of(
        body: &[Stmt],
        defs: &[Def],
        is_visit: impl Fn(&Loop) -> bool,
        is_counted: impl Fn(&Loop, &Expr) -> bool,
    ) -> Visits {
        let visit = |(at, stmt): (usize, &Stmt)| {
            let Stmt::For(l) = stmt else { return None };
            let mut walk = Walk {
                defs,
                is_counted: &is_counted,
                loops: vec![],
                operations: 0.0,
                bytes: 0.0,
                runs: vec![],
                loads: vec![],
            };
            (is_visit(l) && walk.enter(l)).then(|| Visit {
                at,
                intensity: walk.operations / walk.bytes,
                runs: walk.runs,
            })
        };
        Visits(body.iter().enumerate().filter_map(visit).collect())
    }

    /// The inputs of which everything that the visit at `at` loads is loaded by one that has more operations for each byte
    /// it moves, or as many and comes before.
    pub(super) fn of_heavier(&self, at: usize) -> Vec<BufId> {
        let Some(this) = self.0.iter().find(|visit| visit.at == at) else { return vec![] };
        let is_heavier =
            |one: &Visit| one.intensity > this.intensity || one.intensity == this.intensity && one.at < this.at;
        let heavier: Vec<&Visit> = self.0.iter().filter(|one| is_heavier(one)).collect();
        let all_by_one =
            |buf: &BufId| heavier.iter().any(|one| this.of(*buf).all(|run| one.of(*buf).any(|r| r.holds(run))));
        this.runs.iter().map(|run| run.buf).filter(all_by_one).collect()
    }

    /// For each input that the visit at `at` loads without a gap, the number of elements that all visits and the loops
    /// around them, with their iterations, walk one behind the other.
    pub(super) fn walked(&self, at: usize, around: &[(LoopVar, u64)]) -> Vec<(BufId, u64)> {
        let visit = self.0.iter().find(|visit| visit.at == at);
        let runs = visit.into_iter().flat_map(|visit| &visit.runs).filter(|run| !run.has_gaps());
        runs.map(|run| (run.buf, self.joined(run).walked(around))).collect()
    }

    /// A run, with those of all visits that end where it begins, begin where it ends, or share elements with it.
    fn joined(&self, run: &Run) -> Run {
        let others = || self.0.iter().flat_map(|visit| visit.of(run.buf)).filter(|one| !one.has_gaps());
        let mut joined = run.clone();
        while let Some(next) = others().find(|one| one.touches(&joined) && !joined.holds(one)) {
            (joined.first, joined.last) = (joined.first.min(next.first), joined.last.max(next.last));
        }
        joined
    }
}

impl Visit {
    /// The elements of an input.
    fn of(&self, buf: BufId) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.buf == buf)
    }
}

impl Run {
    /// The number of its elements, if it has no gaps.
    fn length(&self) -> u64 {
        self.last.abs_diff(self.first).saturating_add(1)
    }

    /// Returns true if not every element is loaded.
    fn has_gaps(&self) -> bool {
        self.elements != self.length()
    }

    /// The number of elements that loops walk one behind the other, of which each iteration walks this run.
    fn walked(&self, around: &[(LoopVar, u64)]) -> u64 {
        let goes_on = |walked: u64, &(var, iterations): &(LoopVar, u64)| {
            let is_next = u64::try_from(self.place.coefficient(var)) == Ok(walked);
            if is_next { ControlFlow::Continue(walked.saturating_mul(iterations)) } else { ControlFlow::Break(walked) }
        };
        let mut walking = around.iter().rev().filter(|(_, iterations)| *iterations > 1);
        match walking.try_fold(self.length(), goes_on) {
            ControlFlow::Continue(walked) | ControlFlow::Break(walked) => walked,
        }
    }

    /// Returns true if no element lies between this run and the other.
    fn touches(&self, other: &Run) -> bool {
        let reaches = |one: &Run, other: &Run| one.last.saturating_add(1) >= other.first;
        self.place == other.place && reaches(self, other) && reaches(other, self)
    }

    /// Returns true if all elements of the other run are among these.
    fn holds(&self, other: &Run) -> bool {
        self.place == other.place && self.first <= other.first && other.last <= self.last
    }
}

/// A walk over the statements of a visit.
struct Walk<'a> {
    defs: &'a [Def],
    is_counted: &'a dyn Fn(&Loop, &Expr) -> bool,
    /// The loops that the walk is in, from the visit's on, with their iterations.
    loops: Vec<(LoopVar, u64)>,
    operations: f64,
    bytes: f64,
    runs: Vec<Run>,
    /// The loads so far.
    loads: Vec<(BufId, Index)>,
}

impl Walk<'_> {
    /// Walks over a loop; false if its iterations, or those of a loop in it, are counted while it runs.
    fn enter(&mut self, l: &Loop) -> bool {
        let Extent::Const(iterations) = l.extent else { return false };
        self.loops.push((l.var, iterations));
        let times: f64 = self.loops.iter().map(|(_, iterations)| *iterations as f64).product();
        // Lanes are one vector.
        let vectors = if l.kind == LoopKind::Lanes { times / iterations as f64 } else { times };
        for stmt in &l.body {
            if let Stmt::For(inner) = stmt {
                if !self.enter(inner) {
                    return false;
                }
                continue;
            }
            self.statement(stmt, l, times, vectors);
        }
        self.loops.pop();
        true
    }

    /// A statement of a loop that is executed so many times, by so many vectors.
    fn statement(&mut self, stmt: &Stmt, l: &Loop, times: f64, vectors: f64) {
        for e in stmt.exprs() {
            self.operations += vectors * operations(e, self.defs);
            e.visit(&mut |e| {
                let Expr::Load(buf, dtype, index) = e else { return };
                if (self.is_counted)(l, e) {
                    self.bytes += times * dtype.bytes() as f64;
                    self.load(*buf, index);
                }
            });
        }
        if let Stmt::Call { def, .. } = stmt {
            self.operations += vectors * of_definition(&self.defs[def.0 as usize]);
        }
        if let Stmt::Store { value, .. } = stmt {
            self.bytes += times * value.dtype().bytes() as f64;
        }
    }

    fn load(&mut self, buf: BufId, index: &Index) {
        let (mut first, mut last) = (index.offset, index.offset);
        for &(var, iterations) in &self.loops {
            let across = index.coefficient(var).saturating_mul(iterations.saturating_sub(1) as i64);
            (first, last) = (first.saturating_add(across.min(0)), last.saturating_add(across.max(0)));
        }
        let is_around = |(var, _): &(LoopVar, i64)| self.loops.iter().all(|(inside, _)| inside != var);
        let place = index.terms().filter(is_around).fold(Index::constant(0), |place, (v, c)| place.plus(v, c));
        let is_new = !self.loads.iter().any(|(of, at)| *of == buf && at == index);
        if is_new {
            self.loads.push((buf, index.clone()));
        }
        let elements = if is_new { self.loops.iter().map(|(_, iterations)| iterations).product() } else { 0 };
        match self.runs.iter_mut().find(|run| run.buf == buf && run.place == place) {
            Some(run) => {
                (run.first, run.last) = (run.first.min(first), run.last.max(last));
                run.elements += elements;
            }
            None => self.runs.push(Run { buf, place, first, last, elements }),
        }
    }
}

/// The operations of an expression, with those of the definitions it calls, which call no other.
fn operations(e: &Expr, defs: &[Def]) -> f64 {
    let mut number = 0.0;
    e.visit(&mut |e| match e {
        Expr::Op(..) => number += 1.0,
        Expr::Call(def, ..) => number += of_definition(&defs[def.0 as usize]),
        Expr::Const(_) | Expr::Var(..) | Expr::Load(..) | Expr::Read(..) | Expr::At(..) => {}
    });
    number
}

fn of_definition(def: &Def) -> f64 {
    let mut number = 0.0;
    let mut count = |e: &Expr| number += f64::from(u8::from(matches!(e, Expr::Op(..))));
    def.lets.iter().chain(&def.results).for_each(|e| e.visit(&mut count));
    number
}
