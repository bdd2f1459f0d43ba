//! Divides by what a loop does not change through its reciprocal.

use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Access, substitute, visit_accesses};
use cranefold_ir::work::{Work, one_each};
use cranefold_ir::{
    AccId, DType, Def, DefId, Expr, Extent, Index, Loop, LoopKind, Names, Nest, Op, Over, Scalar, Stmt, Var, math,
};
use rustc_hash::FxHashMap;

/// The fewest quotients for which a reciprocal is computed.
const FEW: u64 = 256;

/// The fewest quotients by each element of an accumulator for which reciprocals are computed.
const OFTEN: u64 = 16;

/// The most vectors of an accumulator that stay in registers, and the number of elements that a statement reads beside which
/// more of them are not read: a division takes as long as six loads.
const MOST_IN_REGISTERS: u64 = 4;
const MANY_READS: usize = 6;

/// The most operations of a statement, its division counted, that waits for the division: with more, the unit that divides
/// works beside the others.
const MANY_OPERATIONS: u64 = 16;

/// In wide functions, lets loops divide by a value that was bound before them with the help of its reciprocal:
///
/// ```text
/// let v0 = a1[0]
/// for p1 in 0..16 parallel { for p0 in 0..16 lanes { x1[16*p1 + p0] = apply(x0[16*p1 + p0], v0) } }
/// ->
/// let v0 = a1[0]
/// let v1 = reciprocal(v0)
/// for p1 in 0..16 parallel { for p0 in 0..16 lanes { x1[16*p1 + p0] = apply.div_by(x0[16*p1 + p0], v0, v1) } }
/// ```
///
/// The same of divisors in an accumulator of which a loop reads each element often, as where slices lie side by side:
///
/// ```text
/// for p2 in 0..900 parallel { for i0 in 0..16 lanes { x1[16*p2 + i0] = div(x0[16*p2 + i0], a1[i0]) } }
/// ->
/// acc a2: f32[16] = 0.0
/// for e3 in 0..16 lanes { a2[e3] = reciprocal(a1[e3]) }
/// for p2 in 0..900 parallel { for i0 in 0..16 lanes { x1[16*p2 + i0] = div_by(x0[16*p2 + i0], a1[i0], a2[i0]) } }
/// ```
///
/// A statement of more than 16 operations keeps its division. The division in a definition becomes [`Op::DivBy`], with the
/// reciprocal as one more parameter. See [`math::quotient`] for what a generator makes of it; it may divide some vectors
/// after all, where that takes the time of other work.
///
/// Legal because the operation gives the bits of a division.
pub fn divide(mut nest: Nest, _: &Schedule, vectors: Vectors) -> Nest {
    if !vectors.are_wide() {
        return nest;
    }
    let names = Names::after(&nest);
    let body = std::mem::take(&mut nest.body);
    let (known, accs) = (FxHashMap::default(), FxHashMap::default());
    let mut divider = Divider { nest: &mut nest, names, vectors, known, accs };
    let body = divider.body(body, false);
    nest.body = body;
    nest
}

struct Divider<'a> {
    nest: &'a mut Nest,
    names: Names,
    vectors: Vectors,
    /// The definitions with reciprocals, by those without and the numbers of their divisors.
    known: FxHashMap<(DefId, Vec<usize>), DefId>,
    /// The types and lengths of the accumulators declared so far.
    accs: FxHashMap<AccId, (DType, u64)>,
}

/// A place from which statements take divisors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Divisor {
    /// A value.
    Var(Var),
    /// Elements of an accumulator.
    Acc(AccId),
}

impl Divisor {
    /// The divisor that an argument is.
    fn of(arg: &Expr) -> Option<Divisor> {
        match arg {
            Expr::Var(var, _) => Some(Divisor::Var(*var)),
            Expr::Read(acc, ..) => Some(Divisor::Acc(*acc)),
            Expr::Const(_) | Expr::Load(..) | Expr::At(..) | Expr::Op(..) | Expr::Call(..) => None,
        }
    }

    /// The same argument of the reciprocals.
    fn taken_like(self, arg: &Expr) -> Expr {
        match (self, arg) {
            (Divisor::Acc(acc), Expr::Read(_, dtype, index)) => Expr::Read(acc, *dtype, index.clone()),
            (Divisor::Var(var), _) => Expr::Var(var, arg.dtype()),
            (Divisor::Acc(_), _) => unreachable!("elements of an accumulator are read"),
        }
    }
}

/// The places with a reciprocal, and its own.
type Reciprocals = FxHashMap<Divisor, Divisor>;

impl Divider<'_> {
    fn body(&mut self, body: Vec<Stmt>, is_wide: bool) -> Vec<Stmt> {
        let mut reciprocals = Reciprocals::default();
        let mut out = Vec::with_capacity(body.len());
        let mut rest = body.into_iter();
        while let Some(stmt) = rest.next() {
            if is_loop(&stmt) {
                let mut reciprocals = reciprocals.clone();
                if is_wide {
                    self.reciprocals_before(&stmt, &mut reciprocals, &mut out);
                }
                let stmt = if reciprocals.is_empty() { stmt } else { self.divided(stmt, &reciprocals) };
                out.push(stmt.with_body(|body| self.body(body, is_wide)));
            } else if let Stmt::Wide { body } = stmt {
                out.push(Stmt::Wide { body: self.body(body, true) });
            } else if let Stmt::Let { var, value } = stmt {
                let dtype = value.dtype();
                out.push(Stmt::Let { var, value });
                let mut loops = rest.as_slice().iter().filter(|s| is_loop(s));
                let by = Divisor::Var(var);
                if is_wide && is_float(dtype) && loops.any(|s| self.quotients(s, by) >= FEW) {
                    let reciprocal = self.names.var();
                    let value = self.reciprocal(Expr::Var(var, dtype));
                    out.push(Stmt::Let { var: reciprocal, value });
                    reciprocals.insert(by, Divisor::Var(reciprocal));
                }
            } else {
                if let Stmt::Acc { acc, dtype, len, .. } = stmt {
                    self.accs.insert(acc, (dtype, len));
                }
                out.push(stmt);
            }
        }
        out
    }

    fn reciprocal(&mut self, of: Expr) -> Expr {
        let dtype = of.dtype();
        Expr::Call(self.nest.define(math::reciprocal(dtype)), dtype, vec![of])
    }

    /// Computes the reciprocals of accumulators of which a loop reads each element often, and writes none.
    fn reciprocals_before(&mut self, stmt: &Stmt, reciprocals: &mut Reciprocals, out: &mut Vec<Stmt>) {
        let mut found = vec![];
        self.divided_by(stmt, &mut found);
        for acc in found {
            let Some(&(dtype, len)) = self.accs.get(&acc) else { continue };
            let quotients = self.quotients(stmt, Divisor::Acc(acc));
            if !is_float(dtype) || quotients < FEW.max(OFTEN * len) || writes(stmt, acc) {
                continue;
            }
            let vectors = (len * dtype.bytes()).div_ceil(u64::from(self.vectors.bits / 8));
            if vectors > MOST_IN_REGISTERS && reads(stmt) >= MANY_READS {
                continue;
            }
            let to = self.names.acc();
            self.accs.insert(to, (dtype, len));
            out.push(Stmt::Acc { acc: to, dtype, len, init: Scalar::zero(dtype) });
            let lanes = u64::from(self.vectors.bits / 8) / dtype.bytes();
            let whole = len / lanes;
            if whole > 0 {
                let vector = self.names.loop_over(Over::Element);
                let one = self.reciprocals_of(acc, to, dtype, lanes, Index::term(vector, lanes as i64));
                match whole {
                    1 => out.push(one.with_body(|body| substitute(body, vector, &Index::constant(0)))),
                    _ => out.push(Stmt::For(Loop::new(vector, whole, LoopKind::Parallel, vec![one]))),
                }
            }
            if len % lanes > 0 {
                let start = Index::constant((whole * lanes) as i64);
                out.push(self.reciprocals_of(acc, to, dtype, len % lanes, start));
            }
            reciprocals.insert(Divisor::Acc(acc), Divisor::Acc(to));
        }
    }

    /// `to[start + e] = reciprocal(from[start + e])` in lanes.
    fn reciprocals_of(&mut self, from: AccId, to: AccId, dtype: DType, lanes: u64, start: Index) -> Stmt {
        let lane = self.names.loop_over(Over::Element);
        let index = start.plus(lane, 1);
        let value = self.reciprocal(Expr::Read(from, dtype, index.clone()));
        Stmt::For(Loop::new(lane, lanes, LoopKind::Lanes, vec![Stmt::Set { acc: to, index, value }]))
    }

    /// The accumulators by whose elements a statement divides.
    fn divided_by(&self, stmt: &Stmt, found: &mut Vec<AccId>) {
        let mut see = |divisor: Option<Divisor>| match divisor {
            Some(Divisor::Acc(acc)) if !found.contains(&acc) => found.push(acc),
            _ => {}
        };
        stmt.visit(&mut |s| {
            if let Stmt::Call { def, args, .. } = s {
                self.divisors(*def, args, |_| true).into_iter().for_each(|n| see(Divisor::of(&args[n])));
            }
            for e in s.exprs() {
                e.visit(&mut |e| match e {
                    Expr::Call(def, _, args) => {
                        self.divisors(*def, args, |_| true).into_iter().for_each(|n| see(Divisor::of(&args[n])));
                    }
                    Expr::Op(..) => see(divisor(e)),
                    Expr::Const(_) | Expr::Var(..) | Expr::Load(..) | Expr::Read(..) | Expr::At(..) => {}
                });
            }
        });
    }

    /// The number of quotients by a divisor in a statement.
    fn quotients(&self, stmt: &Stmt, by: Divisor) -> u64 {
        let mut found = stmt.body().iter().fold(0u64, |found, s| found.saturating_add(self.quotients(s, by)));
        if self.waits_for_quotients(stmt) {
            if let Stmt::Call { def, args, .. } = stmt {
                found = found.saturating_add(u64::from(!self.divisors(*def, args, |d| d == by).is_empty()));
            }
            for e in stmt.exprs() {
                e.visit(&mut |e| found = found.saturating_add(u64::from(self.divides(e, by))));
            }
        }
        let iterations = if let Stmt::For(Loop { extent: Extent::Const(n), .. }) = stmt { *n } else { 1 };
        found.saturating_mul(iterations)
    }

    /// Returns whether a statement does so little that a division is not done beside it.
    fn waits_for_quotients(&self, stmt: &Stmt) -> bool {
        Work::new(&self.nest.defs, one_each).stmt(stmt) <= MANY_OPERATIONS
    }

    fn divides(&self, e: &Expr, by: Divisor) -> bool {
        if let Expr::Call(def, _, args) = e {
            return !self.divisors(*def, args, |d| d == by).is_empty();
        }
        divisor(e) == Some(by)
    }

    /// The numbers of the arguments by which a definition divides, of those that are divisors of which `f` is true.
    fn divisors(&self, def: DefId, args: &[Expr], f: impl Fn(Divisor) -> bool) -> Vec<usize> {
        let def = self.nest.def(def);
        let is_one = |n: &usize| Divisor::of(&args[*n]).is_some_and(&f) && divides_by(def, *n);
        (0..args.len()).filter(is_one).collect()
    }

    /// The statement with reciprocals for the divisions in it.
    fn divided(&mut self, stmt: Stmt, reciprocals: &Reciprocals) -> Stmt {
        let mut stmt = stmt.with_body(|body| body.into_iter().map(|s| self.divided(s, reciprocals)).collect());
        if !stmt.body().is_empty() || !self.waits_for_quotients(&stmt) {
            return stmt;
        }
        if let Stmt::Call { def, args, .. } = &mut stmt {
            self.called(def, args, reciprocals);
        }
        stmt.map_exprs(&mut |e| {
            e.rewrite(&mut |e| {
                if let Some(reciprocal) = divisor(&e).and_then(|by| reciprocals.get(&by)) {
                    return by_reciprocal(e, |by| reciprocal.taken_like(by));
                }
                let Expr::Call(mut def, dtype, mut args) = e else { return e };
                self.called(&mut def, &mut args, reciprocals);
                Expr::Call(def, dtype, args)
            })
        })
    }

    /// Gives a call the reciprocals of its divisors.
    fn called(&mut self, def: &mut DefId, args: &mut Vec<Expr>, reciprocals: &Reciprocals) {
        let divisors = self.divisors(*def, args, |by| reciprocals.contains_key(&by));
        if divisors.is_empty() {
            return;
        }
        for &n in &divisors {
            let by = Divisor::of(&args[n]).expect("a divisor");
            args.push(reciprocals[&by].taken_like(&args[n]));
        }
        let nest = &mut *self.nest;
        *def = *self.known.entry((*def, divisors)).or_insert_with_key(|(def, divisors)| {
            let divided = with_reciprocals(nest.def(*def), divisors);
            nest.define(divided)
        });
    }
}

/// The most elements that a statement in it reads for one lane.
fn reads(stmt: &Stmt) -> usize {
    let mut most = 0;
    stmt.visit(&mut |s| {
        let mut found = 0;
        let mut see = |e: &Expr| found += usize::from(matches!(e, Expr::Load(..) | Expr::Read(..)));
        s.exprs().iter().for_each(|e| e.visit(&mut see));
        most = most.max(found);
    });
    most
}

/// Returns whether a statement writes an accumulator.
fn writes(stmt: &Stmt, acc: AccId) -> bool {
    let mut found = false;
    visit_accesses(stmt, &mut |other, access| found |= other == acc && !matches!(access, Access::Read(_)));
    found
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64)
}

fn is_loop(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For(l) if l.kind != LoopKind::Lanes)
}

/// The divisor of an expression that divides floats, if it does.
fn divisor(e: &Expr) -> Option<Divisor> {
    let Expr::Op(Op::Div, dtype, args) = e else { return None };
    Divisor::of(&args[1]).filter(|_| is_float(*dtype))
}

/// A division with the help of a reciprocal.
fn by_reciprocal(e: Expr, reciprocal: impl FnOnce(&Expr) -> Expr) -> Expr {
    let Expr::Op(Op::Div, dtype, mut args) = e else { return e };
    args.push(reciprocal(&args[1]));
    Expr::Op(Op::DivBy, dtype, args)
}

fn divides_by(def: &Def, parameter: usize) -> bool {
    let mut found = false;
    let mut see = |e: &Expr| found |= divisor(e) == Some(Divisor::Var(Var(parameter as u32)));
    def.lets.iter().chain(&def.results).for_each(|e| e.visit(&mut see));
    found
}

/// The definition with one more parameter for each of these, its reciprocal.
fn with_reciprocals(def: &Def, divisors: &[usize]) -> Def {
    let added = divisors.iter().map(|&n| def.params[n]);
    let params: Vec<DType> = def.params.iter().copied().chain(added).collect();
    Def::build(format!("{}.div_by", def.name), &params, |lets, args| {
        let (own, reciprocals) = args.split_at(def.params.len());
        let mut values = own.to_vec();
        // The parameters keep their numbers.
        let divided = |e: &Expr, values: &[Expr]| {
            e.clone().with_vars(values).rewrite(&mut |e| {
                let is_by = |n: &usize| divisor(&e) == Some(Divisor::Var(Var(*n as u32)));
                match divisors.iter().position(is_by) {
                    Some(n) => by_reciprocal(e, |_| reciprocals[n].clone()),
                    None => e,
                }
            })
        };
        for value in &def.lets {
            let value = divided(value, &values);
            values.push(lets.bind(value));
        }
        def.results.iter().map(|r| divided(r, &values)).collect()
    })
}
