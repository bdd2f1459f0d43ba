//! Divides by what a loop does not change through its reciprocal.

use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::work::{Work, one_each};
use cranefold_ir::{DType, Def, DefId, Expr, Extent, Loop, LoopKind, Names, Nest, Op, Stmt, Var, math};
use rustc_hash::FxHashMap;

/// The fewest quotients for which a reciprocal is computed.
const FEW: u64 = 256;

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
    let mut divider = Divider { nest: &mut nest, names, known: FxHashMap::default() };
    let body = divider.body(body, false);
    nest.body = body;
    nest
}

struct Divider<'a> {
    nest: &'a mut Nest,
    names: Names,
    /// The definitions with reciprocals, by those without and the numbers of their divisors.
    known: FxHashMap<(DefId, Vec<usize>), DefId>,
}

/// The values with a reciprocal, and its name.
type Reciprocals = FxHashMap<Var, Var>;

impl Divider<'_> {
    fn body(&mut self, body: Vec<Stmt>, is_wide: bool) -> Vec<Stmt> {
        let mut reciprocals = Reciprocals::default();
        let mut out = Vec::with_capacity(body.len());
        let mut rest = body.into_iter();
        while let Some(stmt) = rest.next() {
            if is_loop(&stmt) {
                let stmt = if reciprocals.is_empty() { stmt } else { self.divided(stmt, &reciprocals) };
                out.push(stmt.with_body(|body| self.body(body, is_wide)));
            } else if let Stmt::Wide { body } = stmt {
                out.push(Stmt::Wide { body: self.body(body, true) });
            } else if let Stmt::Let { var, value } = stmt {
                let dtype = value.dtype();
                out.push(Stmt::Let { var, value });
                let mut loops = rest.as_slice().iter().filter(|s| is_loop(s));
                if is_wide && is_float(dtype) && loops.any(|s| self.quotients(s, var) >= FEW) {
                    let reciprocal = self.names.var();
                    let def = self.nest.define(math::reciprocal(dtype));
                    let value = Expr::Call(def, dtype, vec![Expr::Var(var, dtype)]);
                    out.push(Stmt::Let { var: reciprocal, value });
                    reciprocals.insert(var, reciprocal);
                }
            } else {
                out.push(stmt);
            }
        }
        out
    }

    /// The number of quotients by a value in a statement.
    fn quotients(&self, stmt: &Stmt, by: Var) -> u64 {
        let mut found = stmt.body().iter().fold(0u64, |found, s| found.saturating_add(self.quotients(s, by)));
        if self.waits_for_quotients(stmt) {
            if let Stmt::Call { def, args, .. } = stmt {
                found = found.saturating_add(u64::from(!self.divisors(*def, args, |var| var == by).is_empty()));
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

    fn divides(&self, e: &Expr, by: Var) -> bool {
        if let Expr::Call(def, _, args) = e {
            return !self.divisors(*def, args, |var| var == by).is_empty();
        }
        divisor(e) == Some(by)
    }

    /// The numbers of the arguments by which a definition divides, of those that are values of which `f` is true.
    fn divisors(&self, def: DefId, args: &[Expr], f: impl Fn(Var) -> bool) -> Vec<usize> {
        let def = self.nest.def(def);
        let is_one = |n: &usize| matches!(args[*n], Expr::Var(var, _) if f(var)) && divides_by(def, *n);
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
                let by = divisor(&e).and_then(|var| reciprocals.get(&var));
                if let Some(&reciprocal) = by {
                    let dtype = e.dtype();
                    return by_reciprocal(e, Expr::Var(reciprocal, dtype));
                }
                let Expr::Call(mut def, dtype, mut args) = e else { return e };
                self.called(&mut def, &mut args, reciprocals);
                Expr::Call(def, dtype, args)
            })
        })
    }

    /// Gives a call the reciprocals of its divisors.
    fn called(&mut self, def: &mut DefId, args: &mut Vec<Expr>, reciprocals: &Reciprocals) {
        let divisors = self.divisors(*def, args, |var| reciprocals.contains_key(&var));
        if divisors.is_empty() {
            return;
        }
        for &n in &divisors {
            if let Expr::Var(var, dtype) = args[n] {
                args.push(Expr::Var(reciprocals[&var], dtype));
            }
        }
        let nest = &mut *self.nest;
        *def = *self.known.entry((*def, divisors)).or_insert_with_key(|(def, divisors)| {
            let divided = with_reciprocals(nest.def(*def), divisors);
            nest.define(divided)
        });
    }
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64)
}

fn is_loop(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For(l) if l.kind != LoopKind::Lanes)
}

/// The variable by which an expression divides floats, if it does.
fn divisor(e: &Expr) -> Option<Var> {
    let Expr::Op(Op::Div, dtype, args) = e else { return None };
    let Expr::Var(var, _) = args[1] else { return None };
    is_float(*dtype).then_some(var)
}

/// A division with the help of a reciprocal.
fn by_reciprocal(e: Expr, reciprocal: Expr) -> Expr {
    let Expr::Op(Op::Div, dtype, mut args) = e else { return e };
    args.push(reciprocal);
    Expr::Op(Op::DivBy, dtype, args)
}

fn divides_by(def: &Def, parameter: usize) -> bool {
    let mut found = false;
    let mut see = |e: &Expr| found |= divisor(e) == Some(Var(parameter as u32));
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
                let by = divisors.iter().position(|&n| divisor(&e) == Some(Var(n as u32)));
                if let Some(n) = by { by_reciprocal(e, reciprocals[n].clone()) } else { e }
            })
        };
        for value in &def.lets {
            let value = divided(value, &values);
            values.push(lets.bind(value));
        }
        def.results.iter().map(|r| divided(r, &values)).collect()
    })
}
