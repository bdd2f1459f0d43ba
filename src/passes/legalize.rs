//! Splits vectors and replaces what the target lacks.

use super::{renamed, substitute, vector_forms};
use crate::schedule::Schedule;
use cranefold_ir::{Def, DefId, Expr, Extent, Index, Lets, Loop, LoopKind, Names, Nest, Op, Stmt, math};
use std::collections::HashMap;

/// Splits vectors wider than the target's, and replaces operations it lacks by calls of the
/// definitions that mean the same:
///
/// ```text
/// for l0 in 0..8 lanes { a0[l0] = max(a0[l0], x0[l0]) }
/// ->
/// for l0 in 0..4 lanes { a0[l0] = max.f32(a0[l0], x0[l0]) }
/// for l0 in 0..4 lanes { a0[l0 + 4] = max.f32(a0[l0 + 4], x0[l0 + 4]) }
/// ```
///
/// In the body of a definition the sequence is written out. A term names the operation either way.
pub fn legalize(mut nest: Nest, _: &Schedule) -> Nest {
    let mut names = Names::after(&nest);
    let defs = std::mem::take(&mut nest.defs);
    let body = super::rewrite(std::mem::take(&mut nest.body), &mut |stmt, out| match stmt {
        Stmt::For(l) if l.kind == LoopKind::Lanes => split(l, &defs, &mut names, out),
        other => out.push(other),
    });
    let mut legal = LegalDefs { nest: &mut nest, defs, known: HashMap::new() };
    let body = super::rewrite(body, &mut |stmt, out| {
        let stmt = match stmt {
            Stmt::Call { vars, def, args } => Stmt::Call { vars, def: legal.def(def), args },
            other => other,
        };
        out.push(stmt.map_exprs(&mut |e| e.rewrite(&mut |e| legal.expr(e))))
    });
    nest.body = body;
    nest
}

/// The definitions of the legal nest: those it calls, in legal operations.
struct LegalDefs<'a> {
    nest: &'a mut Nest,
    defs: Vec<Def>,
    known: HashMap<DefId, DefId>,
}

impl LegalDefs<'_> {
    fn def(&mut self, id: DefId) -> DefId {
        let (nest, defs) = (&mut *self.nest, &self.defs);
        *self.known.entry(id).or_insert_with(|| nest.define(legal_def(&defs[id.0 as usize])))
    }

    fn expr(&mut self, e: Expr) -> Expr {
        match e {
            Expr::Call(def, dtype, args) => Expr::Call(self.def(def), dtype, args),
            e => match replacement(&e) {
                Some(def) => {
                    let Expr::Op(_, dtype, args) = e else { unreachable!("operations are replaced") };
                    Expr::Call(self.nest.define(def), dtype, args)
                }
                None => e,
            },
        }
    }
}

/// The definition that stands for an operation the target lacks.
fn replacement(e: &Expr) -> Option<Def> {
    let Expr::Op(op, result, args) = e else { return None };
    let from = args[0].dtype();
    match op {
        Op::Min if from.is_float() => Some(math::fmin(from)),
        Op::Max if from.is_float() => Some(math::fmax(from)),
        Op::Cast => math::half_conversion(*result, from),
        _ => None,
    }
}

fn legal_def(def: &Def) -> Def {
    Def::build(def.name.clone(), &def.params, |lets, args| {
        let mut values = args.to_vec();
        for value in &def.lets {
            let value = legal_expr(value, &values, lets);
            values.push(lets.bind(value));
        }
        def.results.iter().map(|r| legal_expr(r, &values, lets)).collect()
    })
}

fn legal_expr(e: &Expr, values: &[Expr], lets: &mut Lets) -> Expr {
    match e {
        Expr::Var(v, _) => values[v.0 as usize].clone(),
        Expr::Op(op, dtype, args) => {
            let args: Vec<Expr> = args.iter().map(|a| legal_expr(a, values, lets)).collect();
            let whole = Expr::Op(*op, *dtype, args);
            match replacement(&whole) {
                Some(def) => lets.splice(&def, whole.args()).remove(0),
                None => whole,
            }
        }
        other => other.clone(),
    }
}

fn split(l: Loop, defs: &[Def], names: &mut Names, out: &mut Vec<Stmt>) {
    let Extent::Const(lanes) = l.extent else { unreachable!("lanes are constant") };
    let most = u64::from(vector_forms::VECTOR_BITS / 8) / vector_forms::widest_bytes(&l.body, defs);
    if lanes <= most {
        return out.push(Stmt::For(l));
    }
    for start in (0..lanes).step_by(most as usize) {
        let at = Index::term(l.var, 1).offset_by(start as i64);
        let body = substitute(renamed(l.body.clone(), names), l.var, &at);
        out.push(Stmt::For(Loop::new(l.var, most, LoopKind::Lanes, body)));
    }
}
