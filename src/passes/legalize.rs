//! Splits vectors and replaces operations that the target lacks.

use super::lanes::is_vector;
use super::limits;
use super::vector_forms::{VectorForms, is_defined, is_primitive};
use crate::schedule::Schedule;
use crate::transposes::{stored_run, way};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Zone, renamed, rewrite, rewrite_zones, substitute, visit_exprs};
use cranefold_ir::{
    Buffer, DType, Def, DefId, Expr, Extent, Index, Lets, Loop, LoopKind, LoopVar, Names, Nest, Op, Over, Stmt,
    Transpose, math,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Splits vectors wider than the target's, and replaces operations that the target lacks by calls of equivalent
/// definitions:
///
/// ```text
/// for l0 in 0..8 lanes { a0[l0] = max(a0[l0], x0[l0]) }
/// ->
/// for l0 in 0..4 lanes { a0[l0] = max.f32(a0[l0], x0[l0]) }
/// for l0 in 0..4 lanes { a0[l0 + 4] = max.f32(a0[l0 + 4], x0[l0 + 4]) }
/// ```
///
/// In the body of a definition, an equivalent sequence of operations takes the place of the operation. The term of an
/// output names the operation itself in both cases.
///
/// The vectors of a wide function are wider; they convert between f32 and f16 and from bf16, and have the minimum and
/// maximum of floats. Vectors with masks multiply by a power of two in one instruction, and there, on Intel's cores
/// ([`Vectors::intel`]), the lower limit of an exponential's argument becomes the mask of its result. A definition whose
/// operations differ there gets a name of its own, such as `finish.wide`:
///
/// ```text
/// def f(v0: f32) -> f32 {
///   let v1 = select(lt(v0, -120.0:f32), -120.0:f32, v0)
///   scale(.., ..)
/// }
/// ->
/// def f.wide(v0: f32) -> f32 {
///   let v1 = v0
///   select(lt(v0, -120.0:f32), 0.0:f32, scale(.., ..))
/// }
/// ```
///
/// In a nest that a caller gives, statements of later passes may stand already. The place of an element in its line
/// becomes 0, so that no bits depend on an address. A transpose becomes loads of its columns, which are split as other
/// vectors; `transpose` finds those that vectors load together. One whose lanes come in runs stays where vectors load or store
/// these:
///
/// ```text
/// misalign s0 = x0[0] in 16
/// for l1 in s0..16 lanes { a0[l1] = x0[l1 - s0] }
/// for l1 in 0..s0 of 16 lanes { a0[l1] = x0[l1 - s0 + 16] }
/// rotate a0[0..16] by s0
/// transpose a1 = x0[48*i2] over 16 by 3 at 0, 2
/// ->
/// for l1 in 0..16 lanes { a0[l1] = x0[l1] }
/// for e3 in 0..16 lanes { a1[e3] = x0[48*i2 + 3*e3] }
/// for e3 in 0..16 lanes { a1[e3 + 16] = x0[48*i2 + 3*e3 + 2] }
/// ```
///
/// Legal because lanes are parallel, and a definition gives the bits of the operation that it replaces. 0 is the place of
/// each element in the interpreter, and in memory where elements do not lie at multiples of their size.
pub fn legalize(mut nest: Nest, _: &Schedule, vectors: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let defs = std::mem::take(&mut nest.defs);
    let mut outside = VectorForms::new(&defs, Vectors::BASE);
    let mut inside = VectorForms::new(&defs, vectors);
    let mut body = std::mem::take(&mut nest.body);
    if !vectors.are_wide() {
        body = without_wide(body);
    }
    let mut is_of_later_passes = false;
    body.iter().for_each(|s| s.visit(&mut |s| is_of_later_passes |= is_later(s)));
    if is_of_later_passes {
        let (buffers, places) = (&nest.buffers[..], FxHashSet::default());
        let mut given = Given { buffers, names: &mut names, places, vectors: Vectors::BASE };
        body = given.written_out(body, vectors);
    }
    let mut body = rewrite_zones(body, Zone::Outside, &mut |stmt, zone| {
        let Stmt::For(l) = stmt else { return None };
        match zone {
            _ if l.kind != LoopKind::Lanes => None,
            Zone::Outside if vectors == Vectors::NONE || !is_vector(l, &mut outside) => {
                l.kind = LoopKind::Parallel;
                None
            }
            Zone::Outside => {
                let mut out = vec![];
                split(l.take(), &mut outside, &mut names, &mut |part| match is_of_memory(&part) {
                    true => out.extend(substitute(part.body, part.var, &Index::constant(0))),
                    false => out.push(Stmt::For(part)),
                });
                Some(out)
            }
            Zone::Wide => {
                if fits(l, &mut inside) {
                    return None;
                }
                let mut out = vec![];
                split(l.take(), &mut inside, &mut names, &mut |part| out.push(Stmt::For(part)));
                Some(out)
            }
        }
    });
    let mut legal = LegalDefs { nest: &mut nest, defs, in_wide: vectors, known: FxHashMap::default() };
    legal.body(&mut body, Place::Scalars);
    nest.body = body;
    nest
}

/// The place of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// Outside wide functions, where a value is one element.
    Scalars,
    /// Lanes outside wide functions.
    Lanes,
    /// In a wide function.
    Wide,
}

/// The definitions that the legal nest calls, in legal operations.
struct LegalDefs<'a> {
    nest: &'a mut Nest,
    defs: Vec<Def>,
    /// The vectors in wide functions.
    in_wide: Vectors,
    known: FxHashMap<(DefId, Place), DefId>,
}

impl LegalDefs<'_> {
    /// Puts legal operations into the statements, which stand in this place.
    fn body(&mut self, body: &mut [Stmt], place: Place) {
        for stmt in body {
            let is_lanes = matches!(stmt, Stmt::For(l) if l.kind == LoopKind::Lanes);
            let inside = match (matches!(stmt, Stmt::Wide { .. }), place) {
                (true, _) => Place::Wide,
                (false, Place::Scalars) if is_lanes => Place::Lanes,
                (false, place) => place,
            };
            if let Some(body) = stmt.body_mut() {
                self.body(body, inside);
            }
            if let Stmt::Call { def, .. } = stmt {
                *def = self.def(*def, place);
            }
            stmt.exprs_mut().iter_mut().for_each(|e| e.each_mut(&mut |e| self.expr(e, place)));
        }
    }

    fn target(&self, place: Place) -> (Vectors, Place) {
        let vectors = if place == Place::Wide { self.in_wide } else { Vectors::BASE };
        (vectors, place)
    }

    fn def(&mut self, id: DefId, place: Place) -> DefId {
        let target = self.target(place);
        let (nest, defs) = (&mut *self.nest, &self.defs);
        *self.known.entry((id, place)).or_insert_with(|| nest.define(legal_def(&defs[id.0 as usize], target)))
    }

    fn expr(&mut self, e: &mut Expr, place: Place) {
        match e {
            Expr::Call(def, ..) => *def = self.def(*def, place),
            Expr::Op(op, dtype, args) => {
                if let Some(def) = replacement(*op, *dtype, args[0].dtype(), self.target(place)) {
                    *e = Expr::Call(self.nest.define(def), *dtype, std::mem::take(args));
                }
            }
            Expr::Const(_) | Expr::Var(..) | Expr::Load(..) | Expr::Read(..) | Expr::At(..) => {}
        }
    }
}

/// The definition that replaces an operation that these vectors lack; `None` if they have it.
fn replacement(op: Op, result: DType, from: DType, target: (Vectors, Place)) -> Option<Def> {
    let (vectors, _) = target;
    if is_primitive(vectors, op, result, from) {
        return None;
    }
    if op == Op::Cast {
        return math::half_conversion(result, from).or_else(|| converts(op, result, from, target));
    }
    let of_floats = |sequence: fn(DType) -> Def| from.is_float().then(|| sequence(from));
    let sequences: [(Op, Sequence); 4] =
        [(Op::Min, math::fmin), (Op::Max, math::fmax), (Op::Scale, math::scale), (Op::ScaleDown, math::scale_down)];
    sequences.into_iter().find(|(known, _)| *known == op).and_then(|(_, sequence)| of_floats(sequence))
}

/// The definition of a conversion between floats and integers that lanes of these vectors lack. Every target has
/// instructions that convert scalars.
fn converts(op: Op, result: DType, from: DType, (vectors, place): (Vectors, Place)) -> Option<Def> {
    let lacks = op == Op::Cast && place != Place::Scalars && is_defined(vectors, op, result, from);
    if lacks { math::integer_conversion(result, from) } else { None }
}

/// A function that makes the definition of an operation on floats of a type.
type Sequence = fn(DType) -> Def;

/// Returns true if lower limits of arguments become masks: where one instruction multiplies lanes by powers of two, and
/// takes long if it rounds to a subnormal number. Elsewhere a limit is better: the units that add find it, while those that
/// multiply are the ones an exponential waits for.
fn masks_limits((vectors, place): (Vectors, Place)) -> bool {
    vectors.intel && place == Place::Wide && is_primitive(vectors, Op::Scale, DType::F32, DType::F32)
}

fn legal_def(def: &Def, target: (Vectors, Place)) -> Def {
    let (vectors, place) = target;
    let masked = masks_limits(target).then(|| limits::as_masks(def)).flatten();
    let mut is_other = masked.is_some();
    let def = masked.as_ref().unwrap_or(def);
    def.lets.iter().chain(&def.results).for_each(|e| {
        e.visit(&mut |e| {
            let Expr::Op(op, to, args) = e else { return };
            let from = args[0].dtype();
            is_other |= is_primitive(vectors, *op, *to, from) || converts(*op, *to, from, target).is_some();
        })
    });
    let name = match place {
        Place::Lanes if is_other => format!("{}.lanes", def.name),
        Place::Wide if is_other => format!("{}.wide", def.name),
        Place::Scalars | Place::Lanes | Place::Wide => def.name.clone(),
    };
    Def::build(name, &def.params, |lets, args| {
        let mut values = args.to_vec();
        for value in &def.lets {
            let value = legal_expr(value, def, &values, lets, target);
            values.push(lets.bind(value));
        }
        def.results.iter().map(|r| legal_expr(r, def, &values, lets, target)).collect()
    })
}

fn legal_expr(e: &Expr, def: &Def, values: &[Expr], lets: &mut Lets, target: (Vectors, Place)) -> Expr {
    if let Some(x) = rounded_to_bf16(e, target) {
        let x = legal_expr(x, def, values, lets, target);
        return lets.splice(&math::f32_through_bf16(), &[x]).remove(0);
    }
    match e {
        Expr::Var(v, _) => values[v.0 as usize].clone(),
        Expr::Op(op, dtype, args) => {
            let sum = sum_of(*op, args, def);
            let mut args: Vec<Expr> = args.iter().map(|a| legal_expr(a, def, values, lets, target)).collect();
            match replacement(*op, *dtype, args[0].dtype(), target) {
                Some(sequence) => match sum {
                    Some((by, sum)) => {
                        args[1] = legal_expr(sum, def, values, lets, target);
                        lets.splice(&by(*dtype), &args).remove(0)
                    }
                    None => lets.splice(&sequence, &args).remove(0),
                },
                None => Expr::Op(*op, *dtype, args),
            }
        }
        Expr::Const(_) | Expr::Load(..) | Expr::Read(..) | Expr::At(..) | Expr::Call(..) => e.clone(),
    }
}

/// The f32 that an expression converts to bf16 and back, if these vectors have no instruction for that.
fn rounded_to_bf16(e: &Expr, (vectors, _): (Vectors, Place)) -> Option<&Expr> {
    let Expr::Op(Op::Cast, DType::F32, args) = e else { return None };
    let Expr::Op(Op::Cast, DType::Bf16, args) = &args[0] else { return None };
    let is_sequence = !is_primitive(vectors, Op::Cast, DType::Bf16, DType::F32);
    (args[0].dtype() == DType::F32 && is_sequence).then_some(&args[0])
}

/// The sum that the definition of a product with a power of two makes of n, where n is that sum less the number that is
/// added: see [`math::scale`]. With it the definition that takes it.
fn sum_of<'a>(op: Op, args: &'a [Expr], def: &'a Def) -> Option<(Sequence, &'a Expr)> {
    let sequences: [(Op, Sequence); 2] =
        [(Op::Scale, math::scale::scale_by), (Op::ScaleDown, math::scale::scale_down_by)];
    let (_, by) = sequences.into_iter().find(|(known, _)| *known == op)?;
    let n = if let Expr::Var(v, _) = args[1] {
        def.lets.get((v.0 as usize).checked_sub(def.params.len())?)?
    } else {
        &args[1]
    };
    let Expr::Op(Op::Sub, dtype, difference) = n else { return None };
    let [sum, Expr::Const(number)] = difference.as_slice() else { return None };
    (*number == math::scale::offset(op, *dtype)).then_some((by, sum))
}

/// Returns whether a loop is over one lane of memory: of two lanes, which a vector has at least, the other would be beside it.
fn is_of_memory(l: &Loop) -> bool {
    let mut found = l.body.iter().any(|s| matches!(s, Stmt::Store { .. }));
    visit_exprs(&l.body, &mut |e| found |= matches!(e, Expr::Load(..) | Expr::At(..)));
    found && l.extent == Extent::Const(1)
}

/// Returns true if the lanes of a loop are those of one vector.
fn fits(l: &Loop, forms: &mut VectorForms) -> bool {
    let Extent::Const(lanes) = l.extent else { return true };
    let most = u64::from(forms.bits() / 8) / forms.widest_bytes(&l.body);
    lanes <= most && part_of(lanes, forms) == lanes
}

/// The lanes of one vector, of so many that are left.
fn part_of(left: u64, forms: &VectorForms) -> u64 {
    if forms.has_masks() || left == 0 { left } else { 1 << left.ilog2() }
}

/// Calls `f` with loops over as many lanes as fit a vector.
fn split(l: Loop, forms: &mut VectorForms, names: &mut Names, f: &mut impl FnMut(Loop)) {
    let Extent::Const(lanes) = l.extent else { return f(l) };
    if fits(&l, forms) {
        return f(l);
    }
    let most = u64::from(forms.bits() / 8) / forms.widest_bytes(&l.body);
    let part_of = |left: u64| part_of(left, forms);
    let mut start = 0;
    while start < lanes {
        let part = part_of(most.min(lanes - start));
        let at = Index::term(l.var, 1).offset_by(start as i64);
        let body = substitute(renamed(l.body.clone(), names), l.var, &at);
        f(Loop::new(l.var, part, LoopKind::Lanes, body));
        start += part;
    }
}

/// Returns true for a statement that only a later pass writes.
fn is_later(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::For(l) => matches!(l.extent, Extent::From(..) | Extent::Below(..)),
        Stmt::Misalign { .. } | Stmt::Rotate { .. } | Stmt::Transpose(_) | Stmt::TransposedStore(_) => true,
        Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } => false,
        Stmt::Store { .. } | Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Prefetch { .. } => false,
        Stmt::Merge { .. } | Stmt::Fold { .. } | Stmt::Select { .. } => false,
    }
}

/// The body with the statements of wide functions in their place.
fn without_wide(body: Vec<Stmt>) -> Vec<Stmt> {
    rewrite(body, &mut |stmt| {
        let Stmt::Wide { body } = stmt else { return None };
        Some(std::mem::take(body))
    })
}

/// The statements that later passes make, in a nest that says them itself.
struct Given<'a> {
    buffers: &'a [Buffer],
    names: &'a mut Names,
    /// The places in lines that are bound.
    places: FxHashSet<LoopVar>,
    /// The vectors of the code that statements stand in.
    vectors: Vectors,
}

impl Given<'_> {
    /// The body with 0 for each place in a line, so that no lane is left out and nothing is rotated, and with loads in
    /// place of each transpose but those of runs that these vectors load or store; `in_wide` are those of wide functions.
    fn written_out(&mut self, body: Vec<Stmt>, in_wide: Vectors) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(body.len());
        let mut bound = vec![];
        for stmt in body {
            if let Stmt::Misalign { var, .. } = stmt {
                self.places.insert(var);
                bound.push(var);
            } else if let Stmt::Transpose(t) | Stmt::TransposedStore(t) = &stmt
                && self.has_runs(t, matches!(stmt, Stmt::TransposedStore(_)))
            {
                out.push(stmt);
            } else if let Stmt::Transpose(t) = stmt {
                let (acc, buf) = (t.acc, t.buf);
                let load = |dtype, at, index| Stmt::Set { acc, index, value: Expr::Load(buf, dtype, at) };
                self.columns(t, &mut out, load);
            } else if let Stmt::TransposedStore(t) = stmt {
                let (acc, buf) = (t.acc, t.buf);
                let store = |dtype, index, at| Stmt::Store { buf, index, value: Expr::Read(acc, dtype, at) };
                self.columns(t, &mut out, store);
            } else if let Some(mut stmt) = at_line_start(stmt) {
                let inside = if matches!(stmt, Stmt::Wide { .. }) { in_wide } else { self.vectors };
                if let Some(body) = stmt.body_mut() {
                    let around = std::mem::replace(&mut self.vectors, inside);
                    *body = self.written_out(std::mem::take(body), in_wide);
                    self.vectors = around;
                } else if !self.places.is_empty() {
                    stmt.each_index_mut(&mut |index| *index = self.without_places(std::mem::take(index)));
                }
                out.push(stmt);
            }
        }
        bound.iter().for_each(|var| _ = self.places.remove(var));
        out
    }

    /// Returns true for a transpose of several runs, at no place in a line, that the vectors have a way for.
    fn has_runs(&self, t: &Transpose, is_store: bool) -> bool {
        let bytes = self.buffers[t.buf.0 as usize].dtype.bytes();
        let has_way = match is_store {
            true => stored_run(self.vectors, t, bytes).is_some(),
            false => way(self.vectors, t, bytes).is_some(),
        };
        t.runs > 1 && has_way && t.first.terms().all(|(var, _)| !self.places.contains(&var))
    }

    fn without_places(&self, index: Index) -> Index {
        let places: Vec<(LoopVar, i64)> = index.terms().filter(|(var, _)| self.places.contains(var)).collect();
        places.into_iter().fold(index, |index, (var, c)| index.plus(var, -c))
    }

    /// The loads or stores of each column of a transpose: `one` gives the statement of a lane, by the elements of the
    /// buffer and of the accumulator.
    fn columns(&mut self, t: Transpose, out: &mut Vec<Stmt>, one: impl Fn(DType, Index, Index) -> Stmt) {
        let dtype = self.buffers[t.buf.0 as usize].dtype;
        let first = self.without_places(t.first);
        let var = self.names.loop_over(Over::Element);
        let runs = t.columns.iter().flat_map(|&column| (0..t.runs as i64).map(move |run| (column, run)));
        for (n, (column, run)) in (0..).zip(runs) {
            let element = Index::term(var, t.stride).add(&first).offset_by(column as i64 + t.run_stride * run);
            let of_run = Index::term(var, 1).offset_by((n * t.lanes) as i64);
            let lane = one(dtype, element, of_run);
            out.push(Stmt::For(Loop::new(var, t.lanes, LoopKind::Lanes, vec![lane])));
        }
    }
}

/// The statement where all places in lines are 0: lanes from there on are all lanes, and those below it none.
fn at_line_start(stmt: Stmt) -> Option<Stmt> {
    match stmt {
        Stmt::Rotate { .. } | Stmt::For(Loop { extent: Extent::Below(..), .. }) => None,
        Stmt::For(Loop { extent: Extent::From(_, lanes), var, kind, body }) => {
            Some(Stmt::For(Loop::new(var, lanes, kind, body)))
        }
        other @ (Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. }) => {
            Some(other)
        }
        other @ (Stmt::Set { .. } | Stmt::Store { .. } | Stmt::Carry { .. } | Stmt::Pick { .. }) => Some(other),
        other @ (Stmt::Merge { .. }
        | Stmt::Fold { .. }
        | Stmt::Select { .. }
        | Stmt::Transpose(_)
        | Stmt::TransposedStore(_)) => Some(other),
        other @ (Stmt::Misalign { .. } | Stmt::Prefetch { .. }) => Some(other),
    }
}
