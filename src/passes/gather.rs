//! Brings elements into the order of their positions a stretch of the slice at a time.

use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Access, Band, map_elements, mentions, renamed, substitute, visit_accesses};
use cranefold_ir::{AccId, DType, Expr, Extent, Index, Loop, LoopKind, LoopVar, Names, Nest, Over, Scalar, Stmt};

/// The fewest neighbours of an input that are gathered together: a line of f32.
const LINE: u64 = 16;

/// Gathers as many elements at a time as the schedule says, before the blocks that read them, instead of a whole slice.
/// Then they are read again from a near cache. With `gather=8192`:
///
/// ```text
/// acc a0: f32[262144] = 0.0
/// for p0 in 0..512 parallel { for p1 in 0..512 parallel { a0[512*p0 + p1] = x0[p0 + 512*p1] } }
/// for b2 in 0..64 seq { S(a0[4096*b2 + ..]) }
/// ->
/// for b3 in 0..32 seq {
///   acc a1: f32[8192] = 0.0
///   for p0 in 0..16 parallel { for p1 in 0..512 parallel { a1[512*p0 + p1] = x0[p0 + 16*b3 + 512*p1] } }
///   for b4 in 0..2 seq { S(a1[4096*b4 + ..]) }
/// }
/// ```
///
/// A stretch is a number of whole iterations of the loop over blocks and of a loop that copies, so that it begins with
/// both. Where two extents have no such number near that of the schedule, the slice is gathered as a whole.
///
/// Legal because nothing but the loop reads what is gathered, an iteration reads no elements but those of its stretch,
/// and nothing is stored in between.
pub fn gather(mut nest: Nest, schedule: &Schedule, _: Vectors) -> Nest {
    if schedule.gather == 0 {
        return nest;
    }
    let mut names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    nest.body = in_body(body, schedule.gather, &mut names);
    nest
}

fn in_body(body: Vec<Stmt>, most: u64, names: &mut Names) -> Vec<Stmt> {
    let inner = |stmt: Stmt| stmt.with_body(|body| in_body(body, most, names));
    let mut body: Vec<Stmt> = body.into_iter().map(inner).collect();
    let mut from = 0;
    while let Some(at) = (from..body.len()).find(|&at| Gathered::of(&body[at]).is_some()) {
        from = at + 1;
        let gathered = Gathered::of(&body[at]).expect("just found");
        if let Some(stretches) = gathered.stretches(&body, at, most) {
            body = gathered.in_stretches(body, at, &stretches, names);
        }
    }
    body
}

/// Loops that copy elements of inputs into accumulators, in row-major order.
struct Gathered {
    accs: Vec<(AccId, DType)>,
    /// The loops as they are nested, outermost first.
    band: Band,
    /// Each loop's variable, its extent and its stride in the accumulators, from the longest stride on.
    dims: Vec<(LoopVar, u64, u64)>,
    /// The loop whose iterations are neighbours in the first input, by its place among `dims`.
    neighbours: Option<usize>,
    body: Vec<Stmt>,
}

/// A loop that reads what is gathered, and the stretches that it reads.
struct Reader {
    /// Its place in the body.
    at: usize,
    walk: Walk,
    stretch: Stretch,
}

/// A walk of neighbouring elements.
#[derive(Clone, Copy)]
struct Walk {
    /// The first element.
    first: u64,
    /// Elements of an iteration.
    elements: u64,
    iterations: u64,
}

/// The elements that are gathered at a time.
#[derive(Clone, Copy)]
struct Stretch {
    /// The copying loop of which a stretch has some iterations, by its place among the dims; those before it have one.
    dim: usize,
    /// Iterations of that loop, and of the reader.
    rows: u64,
    iterations: u64,
}

impl Gathered {
    /// The copies of a statement; `None` if it is anything else.
    fn of(stmt: &Stmt) -> Option<Gathered> {
        let Stmt::For(l) = stmt else { return None };
        if l.var.over != Over::Position || l.kind != LoopKind::Parallel {
            return None;
        }
        let (band, body) = Band::of(l.clone())?;
        let mut accs = vec![];
        let mut places: Vec<(&Index, &Index)> = vec![];
        for stmt in &body {
            let Stmt::Set { acc, index, value: Expr::Load(_, dtype, from) } = stmt else { return None };
            accs.push((*acc, *dtype));
            places.push((index, from));
        }
        let &(to, from) = places.first()?;
        if to.offset != 0 || places.iter().any(|(index, _)| *index != to) {
            return None;
        }
        let dim = |&(var, extent): &(LoopVar, u64)| Some((var, extent, u64::try_from(to.coefficient(var)).ok()?));
        let mut dims: Vec<(LoopVar, u64, u64)> = band.loops.iter().map(dim).collect::<Option<_>>()?;
        dims.sort_by_key(|&(.., stride)| std::cmp::Reverse(stride));
        let mut inside = 1;
        for &(_, extent, stride) in dims.iter().rev() {
            if stride != inside {
                return None;
            }
            inside *= extent;
        }
        let is_whole = to.terms().count() == dims.len();
        let neighbours = dims.iter().position(|&(var, ..)| from.coefficient(var).unsigned_abs() == 1);
        is_whole.then_some(Gathered { accs, band, dims, neighbours, body })
    }

    fn count(&self) -> u64 {
        self.dims.iter().map(|&(_, extent, _)| extent).product()
    }

    /// The stretches of every loop that reads what the statement `at` gathers; `None` if anything else does, or if one
    /// of them would read everything at once.
    fn stretches(&self, body: &[Stmt], at: usize, most: u64) -> Option<Vec<Reader>> {
        let uses = |stmt: &Stmt| self.accs.iter().any(|&(acc, _)| mentions(stmt, acc));
        let is_declared = |acc: AccId| body[..at].iter().any(|s| matches!(s, Stmt::Acc { acc: a, .. } if *a == acc));
        let before = body[..at].iter().filter(|s| uses(s)).all(|s| matches!(s, Stmt::Acc { .. }));
        if self.count() <= most || !before || !self.accs.iter().all(|&(acc, _)| is_declared(acc)) {
            return None;
        }
        let mut readers = vec![];
        for (i, stmt) in body.iter().enumerate().skip(at + 1) {
            if uses(stmt) {
                readers.push(self.reader(stmt, i, most)?);
            }
        }
        let last = readers.last()?.at;
        let mut stores = false;
        body[at..=last].iter().for_each(|s| s.visit(&mut |s| stores |= matches!(s, Stmt::Store { .. })));
        let is_shorter = readers.iter().any(|r| r.stretch.iterations < r.walk.iterations);
        (!stores && is_shorter).then_some(readers)
    }

    /// The stretches of a loop that reads elements which follow one another from iteration to iteration.
    fn reader(&self, stmt: &Stmt, at: usize, most: u64) -> Option<Reader> {
        let Stmt::For(Loop { var, extent: Extent::Const(iterations), .. }) = stmt else { return None };
        let mut extents = vec![];
        stmt.visit(&mut |s| {
            if let Stmt::For(Loop { var, extent: Extent::Const(n), .. }) = s {
                extents.push((*var, *n as i64));
            }
        });
        // The first and the last element that each access reads in the first iteration.
        let span = |index: &Index| {
            let mut last = index.offset;
            for (v, c) in index.terms().filter(|(v, _)| v != var) {
                let &(_, extent) = extents.iter().find(|&&(of, _)| of == v)?;
                last += (c >= 0 && extent > 0).then_some(c * (extent - 1))?;
            }
            Some((index.coefficient(*var), index.offset, last))
        };
        let mut spans = vec![];
        visit_accesses(stmt, &mut |acc, access| {
            if self.accs.iter().any(|&(a, _)| a == acc) {
                spans.push(if let Access::Read(index) = access { span(index) } else { None });
            }
        });
        let spans: Vec<(i64, i64, i64)> = spans.into_iter().collect::<Option<_>>()?;
        let &(elements, ..) = spans.first()?;
        let first = spans.iter().map(|&(_, first, _)| first).min()?;
        let alike = |&(step, _, last): &(i64, i64, i64)| step == elements && last < first + elements;
        if elements <= 0 || first < 0 || !spans.iter().all(alike) {
            return None;
        }
        let walk = Walk { first: first as u64, elements: elements as u64, iterations: *iterations };
        Some(Reader { at, walk, stretch: self.stretch(walk, most)? })
    }

    /// The longest stretch of at most so many elements, else the shortest one beyond; at most the walk.
    fn stretch(&self, walk: Walk, most: u64) -> Option<Stretch> {
        let rows = (walk.first % self.dims[0].2 + walk.all()).div_ceil(self.dims[0].2);
        let mut best = (walk.all(), Stretch { dim: 0, rows, iterations: walk.iterations });
        for (dim, &(_, extent, stride)) in self.dims.iter().enumerate() {
            let unit = walk.elements.checked_mul(stride / gcd(walk.elements, stride))?;
            let rows = unit / stride;
            // Lines of the input are read whole.
            let lines = match self.neighbours {
                Some(near) if near < dim => continue,
                Some(near) if near == dim => LINE.div_ceil(rows),
                _ => 1,
            };
            let is_inside = dim == 0 || self.begins_with(walk, dim);
            for times in (1..).map(|n| n * lines).take_while(|times| times * rows <= extent) {
                let elements = times * unit;
                let iterations = elements / walk.elements;
                let divides = dim == 0 || extent % (times * rows) == 0;
                if is_inside && divides && iterations < walk.iterations {
                    let is_better = match (best.0 <= most, elements <= most) {
                        (true, fits) => fits && elements > best.0,
                        (false, fits) => fits || elements < best.0,
                    };
                    if is_better {
                        best = (elements, Stretch { dim, rows: times * rows, iterations });
                    }
                }
                if elements > most {
                    break;
                }
            }
        }
        Some(best.1)
    }

    /// Returns true if a walk has whole iterations of the loop around that of a dim, one after the other.
    fn begins_with(&self, walk: Walk, dim: usize) -> bool {
        let around = self.dims[dim - 1].2;
        let all = walk.elements * walk.iterations;
        walk.first.is_multiple_of(around)
            && all.is_multiple_of(around)
            && walk.first + all <= self.count()
            && (dim == 1 || walk.first == 0 && all == self.count())
    }

    /// The body with these readers in stretches, and nothing gathered before them.
    fn in_stretches(&self, body: Vec<Stmt>, at: usize, readers: &[Reader], names: &mut Names) -> Vec<Stmt> {
        let is_of = |acc: AccId| self.accs.iter().any(|&(a, _)| a == acc);
        let mut out = vec![];
        for (i, stmt) in body.into_iter().enumerate() {
            match (stmt, readers.iter().find(|reader| reader.at == i)) {
                (Stmt::Acc { acc, .. }, _) if is_of(acc) => {}
                (_, _) if i == at => {}
                (Stmt::For(l), Some(reader)) => self.read_in_stretches(&l, reader, names, &mut out),
                (stmt, _) => out.push(stmt),
            }
        }
        out
    }

    fn read_in_stretches(&self, l: &Loop, reader: &Reader, names: &mut Names, out: &mut Vec<Stmt>) {
        let &Reader { walk, stretch, .. } = reader;
        let (dim, over) = (stretch.dim, l.var.over);
        let (_, extent, stride) = self.dims[dim];
        let around = |out: &mut Vec<Stmt>, loops: &[(LoopVar, u64)], body: Vec<Stmt>| {
            let around = |body, &(var, n): &(LoopVar, u64)| vec![Stmt::For(Loop::new(var, n, LoopKind::Seq, body))];
            out.extend(loops.iter().rev().fold(body, around));
        };
        if dim > 0 {
            // Loops over the iterations of the dims before, and over the stretches of this one.
            let mut loops = vec![];
            let (mut start, mut before) = (vec![], Index::default());
            for &(_, n, inside) in &self.dims[..dim] {
                let var = names.loop_over(over);
                let (first, n) = if dim == 1 { (walk.first / inside, walk.all() / inside) } else { (0, n) };
                loops.push((var, n));
                start.push(Index::term(var, 1).offset_by(first as i64));
                before = before.plus(var, (inside / walk.elements) as i64);
            }
            let var = names.loop_over(over);
            loops.push((var, extent / stretch.rows));
            start.push(Index::term(var, stretch.rows as i64));
            let place = Place { start, before: before.plus(var, stretch.iterations as i64), skipped: 0 };
            let body = self.one(l, reader, &place, (stretch.rows, stretch.iterations), names);
            return around(out, &loops, body);
        }
        // Whole stretches, then a shorter one. A walk may begin inside of a row, which is gathered whole, and its last
        // iteration may end with the slice.
        let (row, skipped) = (walk.first / stride, walk.first % stride);
        let rows = |before: u64, iterations: u64| {
            let all = (skipped + iterations * walk.elements).div_ceil(stride);
            all.min(extent - row - before * stretch.rows)
        };
        let whole = walk.iterations / stretch.iterations;
        let is_cut = whole > 1 && rows(whole - 1, stretch.iterations) < rows(0, stretch.iterations);
        let whole = whole - u64::from(is_cut);
        let var = names.loop_over(over);
        let index = if whole > 1 { Index::term(var, 1) } else { Index::default() };
        let place = |at: Index| Place {
            start: vec![at.times(stretch.rows as i64).offset_by(row as i64)],
            before: at.times(stretch.iterations as i64),
            skipped,
        };
        let taken = (rows(0, stretch.iterations), stretch.iterations);
        let body = self.one(l, reader, &place(index), taken, names);
        let loops = [(var, whole)];
        around(out, if whole > 1 { &loops } else { &[] }, body);
        let rest = walk.iterations - whole * stretch.iterations;
        if rest > 0 {
            let taken = (rows(whole, rest), rest);
            let body = self.one(l, reader, &place(Index::constant(whole as i64)), taken, names);
            out.extend(renamed(body, names));
        }
    }

    /// The statements that gather and read one stretch, of so many rows and iterations.
    fn one(
        &self,
        l: &Loop,
        reader: &Reader,
        place: &Place,
        (rows, iterations): (u64, u64),
        names: &mut Names,
    ) -> Vec<Stmt> {
        let Reader { walk, stretch, .. } = reader;
        let dim = stretch.dim;
        let len = rows * self.dims[dim].2;
        let accs: Vec<(AccId, AccId)> = self.accs.iter().map(|&(acc, _)| (acc, names.acc())).collect();
        let new = |acc: AccId| accs.iter().find(|(of, _)| *of == acc).map(|&(_, new)| new);
        let declare = |&(acc, dtype): &(AccId, DType)| Stmt::Acc {
            acc: new(acc).expect("one of them"),
            dtype,
            len,
            init: Scalar::zero(dtype),
        };
        let mut out: Vec<Stmt> = self.accs.iter().map(declare).collect();
        // Elements of the accumulator are those of the stretch; those of inputs are further on.
        let inside = |var: LoopVar| self.dims[dim..].iter().any(|&(v, ..)| v == var);
        let in_stretch = |index: &Index| {
            index.terms().filter(|&(var, _)| inside(var)).fold(Index::default(), |at, (var, c)| at.plus(var, c))
        };
        let mut copies = vec![];
        for stmt in &self.body {
            let Stmt::Set { acc, index, value: Expr::Load(buffer, dtype, from) } = stmt else { unreachable!("a copy") };
            let mut from = from.clone();
            for (d, start) in place.start.iter().enumerate() {
                let var = self.dims[d].0;
                from = from.substituted(var, &if d == dim { start.clone().plus(var, 1) } else { start.clone() });
            }
            let value = Expr::Load(*buffer, *dtype, from);
            copies.push(Stmt::Set { acc: new(*acc).expect("one of them"), index: in_stretch(index), value });
        }
        for &(var, extent) in self.band.loops.iter().rev().filter(|&&(var, _)| inside(var)) {
            let extent = if var == self.dims[dim].0 { rows } else { extent };
            copies = vec![Stmt::For(Loop::new(var, extent, LoopKind::Parallel, copies))];
        }
        out.extend(copies);
        let var = names.loop_over(l.var.over);
        let body = map_elements(l.body.clone(), &mut |acc, index| match new(acc) {
            Some(new) => {
                let by = place.skipped as i64 - walk.first as i64;
                (new, index.substituted(l.var, &Index::term(var, 1)).offset_by(by))
            }
            None => (acc, index),
        });
        let body = substitute(body, l.var, &place.before.clone().plus(var, 1));
        out.push(Stmt::For(Loop::new(var, iterations, l.kind, body)));
        out
    }
}

/// The place of a stretch.
struct Place {
    /// The first iterations of the copying loops, down to that of the stretch.
    start: Vec<Index>,
    /// Iterations of the reader before it.
    before: Index,
    /// Elements that are gathered before the first that is read.
    skipped: u64,
}

impl Walk {
    /// The elements of all iterations.
    fn all(&self) -> u64 {
        self.elements * self.iterations
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
