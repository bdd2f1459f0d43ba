//! Splits vectors and replaces what the target lacks.

use super::vector_forms::{Forms, converts_half};
use super::{Region, renamed, rewrite_regions, substitute};
use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::{DType, Def, DefId, Expr, Extent, Index, Lets, Loop, LoopKind, Names, Nest, Op, Stmt, math};
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
    let mut legal = LegalDefs { nest: &mut nest, defs, tile_bits: vectors.bits, known: HashMap::new() };
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
    /// Bits of the vectors in tiles.
    tile_bits: u32,
    known: HashMap<(DefId, Region), DefId>,
}

impl LegalDefs<'_> {
    fn bits(&self, region: Region) -> u32 {
        match region {
            Region::Outside => Vectors::BASE.bits,
            Region::Tile => self.tile_bits,
        }
    }

    fn def(&mut self, id: DefId, region: Region) -> DefId {
        let bits = self.bits(region);
        let (nest, defs) = (&mut *self.nest, &self.defs);
        *self.known.entry((id, region)).or_insert_with(|| nest.define(legal_def(&defs[id.0 as usize], bits)))
    }

    fn expr(&mut self, e: Expr, region: Region) -> Expr {
        match e {
            Expr::Call(def, dtype, args) => Expr::Call(self.def(def, region), dtype, args),
            e => match replacement(&e, self.bits(region)) {
                Some(def) => {
                    let Expr::Op(_, dtype, args) = e else { unreachable!("operations are replaced") };
                    Expr::Call(self.nest.define(def), dtype, args)
                }
                None => e,
            },
        }
    }
}

/// The definition that stands for an operation that vectors of these bits lack.
fn replacement(e: &Expr, bits: u32) -> Option<Def> {
    let Expr::Op(op, result, args) = e else { return None };
    let from = args[0].dtype();
    match op {
        _ if is_primitive(*op, *result, from, bits) => None,
        Op::Min if from.is_float() => Some(math::fmin(from)),
        Op::Max if from.is_float() => Some(math::fmax(from)),
        Op::Cast => math::half_conversion(*result, from),
        _ => None,
    }
}

/// Whether vectors of so many bits have an operation that others lack.
fn is_primitive(op: Op, result: DType, from: DType, bits: u32) -> bool {
    match op {
        Op::Min | Op::Max => bits > Vectors::BASE.bits && from.is_float(),
        Op::Cast => converts_half(result, from, bits),
        _ => false,
    }
}

fn legal_def(def: &Def, bits: u32) -> Def {
    let mut is_other = false;
    def.lets.iter().chain(&def.results).for_each(|e| {
        e.visit(&mut |e| {
            is_other |= matches!(e, Expr::Op(op, to, args) if is_primitive(*op, *to, args[0].dtype(), bits))
        })
    });
    let name = if is_other { format!("{}.wide", def.name) } else { def.name.clone() };
    Def::build(name, &def.params, |lets, args| {
        let mut values = args.to_vec();
        for value in &def.lets {
            let value = legal_expr(value, &values, lets, bits);
            values.push(lets.bind(value));
        }
        def.results.iter().map(|r| legal_expr(r, &values, lets, bits)).collect()
    })
}

fn legal_expr(e: &Expr, values: &[Expr], lets: &mut Lets, bits: u32) -> Expr {
    match e {
        Expr::Var(v, _) => values[v.0 as usize].clone(),
        Expr::Op(op, dtype, args) => {
            let args: Vec<Expr> = args.iter().map(|a| legal_expr(a, values, lets, bits)).collect();
            let whole = Expr::Op(*op, *dtype, args);
            match replacement(&whole, bits) {
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
