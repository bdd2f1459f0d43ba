//! Splits vectors and replaces what the target lacks.

use super::vector_forms::{Forms, is_primitive};
use super::{Region, renamed, rewrite_regions, substitute};
use crate::schedule::Schedule;
use crate::vectors::Vectors;
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
///
/// In a tile the vectors are wider, convert between f32 and f16, and from bf16, by themselves, and have the minimum and
/// maximum of floats; a definition that is another one there is called `finish.wide`.
pub fn legalize(mut nest: Nest, _: &Schedule, vectors: Vectors) -> Nest {
    let mut names = Names::after(&nest);
    let defs = std::mem::take(&mut nest.defs);
    let mut outside = Forms::new(&defs, Vectors::BASE);
    let mut inside = Forms::new(&defs, vectors);
    let body = std::mem::take(&mut nest.body);
    let body = rewrite_regions(body, Region::Outside, &mut |stmt, region, out| match (stmt, region) {
        (Stmt::For(l), Region::Outside) if l.kind == LoopKind::Lanes => split(l, &mut outside, &mut names, out),
        (Stmt::For(l), Region::Tile) if l.kind == LoopKind::Lanes => split(l, &mut inside, &mut names, out),
        (other, _) => out.push(other),
    });
    let mut legal = LegalDefs { nest: &mut nest, defs, in_tiles: vectors, known: HashMap::new() };
    let body = rewrite_regions(body, Region::Outside, &mut |stmt, region, out| {
        let stmt = match stmt {
            Stmt::Call { vars, def, args } => Stmt::Call { vars, def: legal.def(def, region), args },
            other => other,
        };
        out.push(stmt.map_exprs(&mut |e| e.rewrite(&mut |e| legal.expr(e, region))))
    });
    nest.body = body;
    nest
}

/// The definitions of the legal nest: those it calls, in legal operations.
struct LegalDefs<'a> {
    nest: &'a mut Nest,
    defs: Vec<Def>,
    /// The vectors in tiles.
    in_tiles: Vectors,
    known: HashMap<(DefId, Region), DefId>,
}

impl LegalDefs<'_> {
    fn vectors(&self, region: Region) -> Vectors {
        match region {
            Region::Outside => Vectors::BASE,
            Region::Tile => self.in_tiles,
        }
    }

    fn def(&mut self, id: DefId, region: Region) -> DefId {
        let vectors = self.vectors(region);
        let (nest, defs) = (&mut *self.nest, &self.defs);
        *self.known.entry((id, region)).or_insert_with(|| nest.define(legal_def(&defs[id.0 as usize], vectors)))
    }

    fn expr(&mut self, e: Expr, region: Region) -> Expr {
        match e {
            Expr::Call(def, dtype, args) => Expr::Call(self.def(def, region), dtype, args),
            e => match replacement(&e, self.vectors(region)) {
                Some(def) => {
                    let Expr::Op(_, dtype, args) = e else { unreachable!("operations are replaced") };
                    Expr::Call(self.nest.define(def), dtype, args)
                }
                None => e,
            },
        }
    }
}

/// The definition that stands for an operation that these vectors lack.
fn replacement(e: &Expr, vectors: Vectors) -> Option<Def> {
    let Expr::Op(op, result, args) = e else { return None };
    let from = args[0].dtype();
    match op {
        _ if is_primitive(vectors, *op, *result, from) => None,
        Op::Min if from.is_float() => Some(math::fmin(from)),
        Op::Max if from.is_float() => Some(math::fmax(from)),
        Op::Cast => math::half_conversion(*result, from),
        _ => None,
    }
}

fn legal_def(def: &Def, vectors: Vectors) -> Def {
    let mut is_other = false;
    def.lets.iter().chain(&def.results).for_each(|e| {
        e.visit(&mut |e| {
            is_other |= matches!(e, Expr::Op(op, to, args) if is_primitive(vectors, *op, *to, args[0].dtype()))
        })
    });
    let name = if is_other { format!("{}.wide", def.name) } else { def.name.clone() };
    Def::build(name, &def.params, |lets, args| {
        let mut values = args.to_vec();
        for value in &def.lets {
            let value = legal_expr(value, &values, lets, vectors);
            values.push(lets.bind(value));
        }
        def.results.iter().map(|r| legal_expr(r, &values, lets, vectors)).collect()
    })
}

fn legal_expr(e: &Expr, values: &[Expr], lets: &mut Lets, vectors: Vectors) -> Expr {
    match e {
        Expr::Var(v, _) => values[v.0 as usize].clone(),
        Expr::Op(op, dtype, args) => {
            let args: Vec<Expr> = args.iter().map(|a| legal_expr(a, values, lets, vectors)).collect();
            let whole = Expr::Op(*op, *dtype, args);
            match replacement(&whole, vectors) {
                Some(def) => lets.splice(&def, whole.args()).remove(0),
                None => whole,
            }
        }
        other => other.clone(),
    }
}

fn split(l: Loop, forms: &mut Forms, names: &mut Names, out: &mut Vec<Stmt>) {
    let Extent::Const(lanes) = l.extent else { unreachable!("lanes are constant") };
    let most = u64::from(forms.bits() / 8) / forms.widest_bytes(&l.body);
    if lanes <= most {
        return out.push(Stmt::For(l));
    }
    for start in (0..lanes).step_by(most as usize) {
        let at = Index::term(l.var, 1).offset_by(start as i64);
        let body = substitute(renamed(l.body.clone(), names), l.var, &at);
        out.push(Stmt::For(Loop::new(l.var, most.min(lanes - start), LoopKind::Lanes, body)));
    }
}
