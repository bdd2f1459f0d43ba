//! Loops that load whole lines of memory, wherever an input begins.

use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{mentions, renamed, rewrite, substitute, visit_exprs};
use cranefold_ir::work::{Work, one_each};
use cranefold_ir::{
    AccId, BufId, Buffer, BufferRole, DType, Def, Expr, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Stmt,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// The fewest vectors of a loop, so that it gains more than is done before and after it.
const FEWEST: u64 = 32;

/// The fewest vectors of a ring: with one, each vector waits for the one before it longer than for memory.
const FEWEST_IN_RING: usize = 2;

/// The most vectors of an accumulator that is rotated: more do not fit the registers.
const MOST_VECTORS: u64 = 16;

/// The most operations on what a load reads: with more, memory is not what a loop waits for.
const MOST_WORK: u64 = 4;

/// In wide functions whose vectors have masks, lets loops over steps load whole lines instead of vectors that lie
/// across two:
///
/// ```text
/// acc a0: f32[64] = -0.0
/// for k0 in 0..16 seq {
///   for l1 in 0..16 lanes { a0[l1] = add(a0[l1], x0[64*k0 + l1]) }
///   for l1 in 0..16 lanes { a0[l1 + 16] = add(a0[l1 + 16], x0[64*k0 + l1 + 16]) }
///   ..
/// }
/// ->  (align=64)
/// misalign s2 = x0[0] in 16
/// acc a0: f32[64] = -0.0
/// for l1 in s2..16 lanes { a0[l1] = add(a0[l1], x0[l1 - s2]) }
/// for l1 in 0..16 lanes { a0[l1 + 16] = add(a0[l1 + 16], x0[l1 - s2 + 16]) }
/// ..
/// for k0 in 0..15 seq {
///   for l1 in 0..16 lanes { a0[l1] = add(a0[l1], x0[64*k0 + l1 - s2 + 64]) }
///   ..
/// }
/// for l1 in 0..s2 of 16 lanes { a0[l1] = add(a0[l1], x0[l1 - s2 + 1024]) }
/// rotate a0[0..64] by s2
/// ```
///
/// A core loads one line of 64 bytes at a time, so that a vector of 64 bytes that lies across two takes half as long again.
///
/// Legal where the loop loads vectors of a line that follow one another, and they go to the vectors of an accumulator by
/// turns, a *ring*, whose elements all still hold the initial value. With the input `s` elements after the start of a
/// line, the loop loads from that start on:
///
/// ```text
/// vectors    | 0 1 2 .. 15 | 16 17 ..   | ..          | 1008 .. 1023 |
/// lines  | . . 0 1 2 .. 13 | 14 15 ..   | ..          | 1006 .. 1021 | 1022 1023 . . |      s = 2
/// ```
///
/// Lane i of line v is element 16 v + i - s, which goes to the element of the ring that is s further than before, modulo
/// the ring's length: for each element of the ring, the elements of the input are the same in the same order, and it starts
/// with the same value. `rotate` moves it back. Of the first line the lanes before s, and of the line after the last one
/// those from s on, are not the loop's: they are left out. Where a loop has several inputs, the first one decides, and
/// the others are loaded as far before their vectors. No lane meets another, so it does not matter which one an element is in.
///
/// The place in a line is the same for indices that differ by whole lines, so that `misalign` stands as far out as the other
/// terms of the index allow.
pub fn align(nest: Nest, schedule: &Schedule, vectors: Vectors) -> Nest {
    if schedule.align == 0 || !vectors.has_masks() {
        return nest;
    }
    let mut accs = FxHashMap::default();
    nest.visit(&mut |s| {
        if let Stmt::Acc { acc, dtype, len, .. } = s {
            accs.insert(*acc, (*dtype, *len));
        }
    });
    let mut moving = FxHashSet::default();
    find_moving(&nest.body, &mut vec![], &mut moving);
    let mut aligner = Aligner {
        buffers: &nest.buffers,
        defs: &nest.defs,
        accs,
        moving,
        line_bytes: schedule.align,
        names: Names::after(&nest),
        places: vec![],
    };
    let body = aligner.wide_functions(nest.body);
    Nest { body, ..nest }
}

/// Finds the accumulators of which an index moves with a loop that is none over lanes.
fn find_moving(body: &[Stmt], lanes: &mut Vec<LoopVar>, found: &mut FxHashSet<AccId>) {
    for stmt in body {
        let mut see = |acc: AccId, index: &Index| {
            if index.terms().any(|(var, _)| !lanes.contains(&var)) {
                found.insert(acc);
            }
        };
        if let Stmt::Set { acc, index, .. } = stmt {
            see(*acc, index);
        }
        stmt.exprs().iter().for_each(|e| {
            e.visit(&mut |e| {
                if let Expr::Read(acc, _, index) = e {
                    see(*acc, index);
                }
            });
        });
        let around = lanes.len();
        if let Stmt::For(Loop { var, kind: LoopKind::Lanes, .. }) = stmt {
            lanes.push(*var);
        }
        find_moving(stmt.body(), lanes, found);
        lanes.truncate(around);
    }
}

struct Aligner<'a> {
    buffers: &'a [Buffer],
    defs: &'a [Def],
    /// The type and the length of each accumulator.
    accs: FxHashMap<AccId, (DType, u64)>,
    /// The accumulators that do not live in registers.
    moving: FxHashSet<AccId>,
    line_bytes: u64,
    names: Names,
    /// The places in lines that loops need and no statement binds yet.
    places: Vec<Place>,
}

/// The place of an element in its line.
struct Place {
    var: LoopVar,
    buf: BufId,
    /// The index of an element at that place.
    index: Index,
    lanes: u64,
}

impl Place {
    fn bind(self) -> Stmt {
        Stmt::Misalign { var: self.var, buf: self.buf, index: self.index, lanes: self.lanes }
    }
}

/// A loop that may load lines.
struct Lines {
    /// The element that the first iteration loads first.
    first: (BufId, Index),
    lanes: u64,
    /// The elements of accumulators that are rings: which, the first, how many.
    rings: Vec<(AccId, u64, u64)>,
}

/// The accesses of a vector of a loop.
#[derive(Default)]
struct Accesses<'a> {
    loads: Vec<(BufId, DType, &'a Index)>,
    reads: Vec<(AccId, &'a Index)>,
    sets: Vec<(AccId, &'a Index)>,
    /// True where something else is not the same in all lanes, or names a place by other things than lanes.
    others: bool,
}

impl<'a> Accesses<'a> {
    fn of(body: &'a [Stmt]) -> Accesses<'a> {
        let mut all = Accesses::default();
        for stmt in body {
            match stmt {
                Stmt::Set { acc, index, .. } => all.sets.push((*acc, index)),
                Stmt::Let { .. } | Stmt::Call { .. } => {}
                Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Store { .. } => all.others = true,
                Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Misalign { .. } => all.others = true,
                Stmt::Rotate { .. } | Stmt::Prefetch { .. } => all.others = true,
                Stmt::Merge { .. }
                | Stmt::Fold { .. }
                | Stmt::Select { .. }
                | Stmt::Transpose(_)
                | Stmt::TransposedStore(_) => {
                    all.others = true;
                }
            }
        }
        visit_exprs(body, &mut |e| match e {
            Expr::Load(buf, dtype, index) => all.loads.push((*buf, *dtype, index)),
            Expr::Read(acc, _, index) => all.reads.push((*acc, index)),
            Expr::At(..) => all.others = true,
            Expr::Const(_) | Expr::Var(..) | Expr::Op(..) | Expr::Call(..) => {}
        });
        all
    }
}

impl Aligner<'_> {
    /// The body with lines in its wide functions.
    fn wide_functions(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        rewrite(body, &mut |stmt| {
            let Stmt::Wide { body } = stmt else { return None };
            let aligned = self.body(std::mem::take(body));
            let places = self.places.drain(..).map(Place::bind);
            body.extend(places.chain(aligned));
            None
        })
    }

    /// A body in a wide function; the places that it leaves unbound are left for those around it.
    fn body(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(body.len());
        for stmt in body {
            let Stmt::For(l) = stmt else {
                out.push(stmt);
                continue;
            };
            if l.kind == LoopKind::Lanes {
                out.push(Stmt::For(l));
            } else if let Some(lines) = self.lines(&l, &out) {
                out.extend(self.aligned(l, lines));
            } else {
                let mut body = self.body(l.body);
                body.splice(..0, self.bound(|index| index.coefficient(l.var) != 0));
                out.push(Stmt::For(Loop { body, ..l }));
            }
        }
        // Behind the carries and picks of which the places are made, the last one first.
        for n in (0..out.len()).rev() {
            let var = out[n].bound_loop_var().filter(|_| !matches!(out[n], Stmt::For(_)));
            if let Some(var) = var {
                out.splice(n + 1..n + 1, self.bound(|index| index.coefficient(var) != 0));
            }
        }
        out
    }

    /// The statements that bind the places of such indices, which nobody else binds.
    fn bound(&mut self, is_here: impl Fn(&Index) -> bool) -> Vec<Stmt> {
        let (here, others) = std::mem::take(&mut self.places).into_iter().partition(|place| is_here(&place.index));
        self.places = others;
        let here: Vec<Place> = here;
        here.into_iter().map(Place::bind).collect()
    }

    /// The lines of a loop that may load them, behind these statements.
    fn lines(&self, l: &Loop, before: &[Stmt]) -> Option<Lines> {
        let (Extent::Const(trips), Over::Step) = (l.extent, l.var.over) else { return None };
        let many = trips > 1 && trips * l.body.len() as u64 >= FEWEST;
        let (vector, first_body) = vector(l.body.first().filter(|_| many)?)?;
        let first = Accesses::of(first_body);
        let &(buf, dtype, start) = first.loads.first()?;
        if Work::new(self.defs, one_each).body(first_body) > MOST_WORK * first.loads.len() as u64 {
            return None;
        }
        let bytes = dtype.bytes();
        let lanes = self.line_bytes / bytes;
        let mut rings: Vec<Vec<u64>> = vec![vec![]; first.sets.len()];
        for (v, stmt) in l.body.iter().enumerate() {
            let (own, body) = self::vector(stmt)?;
            let is_alike = body.len() == first_body.len() && body.iter().zip(first_body).all(|(a, b)| are_alike(a, b));
            let all = Accesses::of(body);
            let counts = all.loads.len() == first.loads.len() && all.sets.len() == first.sets.len();
            if all.others || !is_alike || !counts || own.lanes != lanes {
                return None;
            }
            // Loads follow one another, from vector to vector and from iteration to iteration.
            for (&(buf, dtype, index), &(first_buf, _, from)) in all.loads.iter().zip(&first.loads) {
                let steps = index.coefficient(l.var) == (lanes * l.body.len() as u64) as i64;
                let is_input = self.buffers[buf.0 as usize].role == BufferRole::In;
                let at = from.clone().plus(vector.var, -1).offset_by((v as u64 * lanes) as i64);
                let follows = index.clone().plus(own.var, -1) == at && index.coefficient(own.var) == 1;
                let is_same = buf == first_buf && dtype.bytes() == bytes && dtype != DType::Bool;
                if !(steps && is_input && follows && is_same) {
                    return None;
                }
            }
            for (n, &(acc, index)) in all.sets.iter().enumerate() {
                let is_own = index.coefficient(own.var) == 1 && index.terms().count() == 1;
                if acc != first.sets[n].0 || !is_own || self.accs[&acc].0.bytes() != bytes {
                    return None;
                }
                rings[n].push(index.offset as u64);
            }
            // Lanes meet their own lanes only, or what is the same in all.
            let is_set = |acc: AccId| first.sets.iter().any(|set| set.0 == acc);
            let in_lane = |&(acc, index): &(AccId, &Index)| match is_set(acc) {
                true => all.sets.contains(&(acc, index)),
                false => index.is_constant(),
            };
            if !all.reads.iter().all(in_lane) {
                return None;
            }
        }
        let accs: FxHashSet<AccId> = first.sets.iter().map(|set| set.0).collect();
        if accs.len() != first.sets.len() || !accs.iter().all(|&acc| self.is_fresh(acc, before)) {
            return None;
        }
        let ring = |(&(acc, _), starts): (&(AccId, &Index), Vec<u64>)| {
            let len = ring(&starts, lanes)?;
            Some((acc, starts[0], len))
        };
        let rings = first.sets.iter().zip(rings).map(ring).collect::<Option<Vec<_>>>()?;
        let start = start.clone().substituted(l.var, &Index::default()).plus(vector.var, -1);
        Some(Lines { first: (buf, start), lanes, rings })
    }

    /// Returns whether an accumulator, which lives in registers, still holds its initial value behind these statements of
    /// the body that declares it.
    fn is_fresh(&self, acc: AccId, before: &[Stmt]) -> bool {
        let (dtype, len) = self.accs[&acc];
        let fits = len * dtype.bytes() <= MOST_VECTORS * self.line_bytes;
        let declares = |s: &Stmt| matches!(s, Stmt::Acc { acc: declared, .. } if *declared == acc);
        let declared = before.iter().rposition(declares);
        fits && !self.moving.contains(&acc)
            && declared.is_some_and(|at| !before[at + 1..].iter().any(|s| mentions(s, acc)))
    }

    /// The loop by lines.
    fn aligned(&mut self, l: Loop, lines: Lines) -> Vec<Stmt> {
        let Extent::Const(trips) = l.extent else { return vec![Stmt::For(l)] };
        let Lines { first: (buf, start), lanes, rings } = lines;
        let place = self.place(buf, &start, lanes);
        let body = rewrite(l.body, &mut |stmt| {
            for e in stmt.exprs_mut() {
                e.each_mut(&mut |e| match e {
                    Expr::Load(_, _, index) => *index = std::mem::take(index).plus(place, -1),
                    Expr::Const(_) | Expr::Var(..) | Expr::Read(..) | Expr::At(..) => {}
                    Expr::Op(..) | Expr::Call(..) => {}
                });
            }
            None
        });
        let at = |body: &[Stmt], n: u64, names: &mut Names| {
            renamed(substitute(body.to_vec(), l.var, &Index::constant(n as i64)), names)
        };
        let mut out = at(&body, 0, &mut self.names);
        with_extent(&mut out[0], Extent::From(place, lanes));
        let mut last = at(&body[..1], trips, &mut self.names);
        with_extent(&mut last[0], Extent::Below(place, lanes));
        match trips {
            2 => out.extend(substitute(body, l.var, &Index::constant(1))),
            _ => {
                let body = substitute(body, l.var, &Index::term(l.var, 1).offset_by(1));
                out.push(Stmt::For(Loop { extent: Extent::Const(trips - 1), body, ..l }));
            }
        }
        out.extend(last);
        out.extend(rings.into_iter().map(|(acc, start, len)| Stmt::Rotate { acc, start, len, by: place }));
        out
    }

    /// The variable of the place of an element, where terms of whole lines do not count.
    fn place(&mut self, buf: BufId, index: &Index, lanes: u64) -> LoopVar {
        let lanes_signed = lanes as i64;
        let others = index.terms().filter(|&(_, c)| c % lanes_signed != 0);
        let within =
            others.fold(Index::constant(index.offset.rem_euclid(lanes_signed)), |sum, (var, c)| sum.plus(var, c));
        let is_in_buffer = within.terms().all(|(_, c)| c > 0);
        let index = if is_in_buffer { within } else { index.clone() };
        let known = self.places.iter().find(|p| (p.buf, &p.index, p.lanes) == (buf, &index, lanes));
        if let Some(known) = known {
            return known.var;
        }
        let var = self.names.loop_over(Over::Start);
        self.places.push(Place { var, buf, index, lanes });
        var
    }
}

/// A loop over lanes.
struct Vector {
    var: LoopVar,
    lanes: u64,
}

/// The vector that a statement is, of one loop, and the statements in it.
fn vector(stmt: &Stmt) -> Option<(Vector, &[Stmt])> {
    let Stmt::For(Loop { var, extent: Extent::Const(lanes), kind: LoopKind::Lanes, body }) = stmt else { return None };
    Some((Vector { var: *var, lanes: *lanes }, body))
}

fn with_extent(stmt: &mut Stmt, extent: Extent) {
    if let Stmt::For(l) = stmt {
        l.extent = extent;
    }
}

/// The elements that vectors go to by turns, which start at these; none where they do not follow one another.
fn ring(starts: &[u64], lanes: u64) -> Option<u64> {
    let len = starts.iter().skip(1).position(|s| *s == starts[0]).map_or(starts.len(), |n| n + 1);
    let turns = len >= FEWEST_IN_RING
        && starts.len().is_multiple_of(len)
        && starts.iter().enumerate().all(|(v, s)| *s == starts[0] + (v % len) as u64 * lanes);
    turns.then_some(len as u64 * lanes)
}

/// Returns whether statements of two vectors do the same, but for the elements that they name.
fn are_alike(a: &Stmt, b: &Stmt) -> bool {
    let is_kind = match a {
        Stmt::Set { acc, .. } => matches!(b, Stmt::Set { acc: other, .. } if other == acc),
        Stmt::Let { var, .. } => matches!(b, Stmt::Let { var: other, .. } if other == var),
        Stmt::Call { vars, def, .. } => matches!(b, Stmt::Call { vars: v, def: d, .. } if (v, d) == (vars, def)),
        Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Store { .. } | Stmt::Carry { .. } => false,
        Stmt::Pick { .. } | Stmt::Misalign { .. } | Stmt::Rotate { .. } | Stmt::Prefetch { .. } => false,
        Stmt::Merge { .. }
        | Stmt::Fold { .. }
        | Stmt::Select { .. }
        | Stmt::Transpose(_)
        | Stmt::TransposedStore(_) => false,
    };
    is_kind && a.exprs().len() == b.exprs().len() && a.exprs().iter().zip(b.exprs()).all(|(a, b)| are_alike_exprs(a, b))
}

fn are_alike_exprs(a: &Expr, b: &Expr) -> bool {
    let is_kind = match a {
        Expr::Load(buf, ..) => matches!(b, Expr::Load(other, ..) if other == buf),
        Expr::Read(acc, _, at) => {
            matches!(b, Expr::Read(other, _, index) if other == acc && (index == at || !at.is_constant()))
        }
        Expr::Op(op, dtype, _) => matches!(b, Expr::Op(other, d, _) if (other, d) == (op, dtype)),
        Expr::Call(def, ..) => matches!(b, Expr::Call(other, ..) if other == def),
        Expr::Const(_) | Expr::Var(..) | Expr::At(..) => a == b,
    };
    is_kind && a.args().len() == b.args().len() && a.args().iter().zip(b.args()).all(|(a, b)| are_alike_exprs(a, b))
}
