//! Statements replaced, substituted and renamed.

#![warn(clippy::wildcard_enum_match_arm)]

use crate::{AccId, Expr, Index, LoopVar, Names, Stmt, Transpose, Var};
use rustc_hash::FxHashMap;

/// The code that a statement stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Zone {
    /// The code around wide functions, where vectors have 128 bits.
    Outside,
    /// A wide function, where vectors have the most bits that the target has.
    Wide,
}

/// The body with `f` applied to every statement in it, innermost bodies first; `f` adds the
/// statements that take its place to the new body.
pub fn rewrite(body: Vec<Stmt>, f: &mut impl FnMut(Stmt, &mut Vec<Stmt>)) -> Vec<Stmt> {
    rewrite_zones(body, Zone::Outside, &mut |stmt, _, out| f(stmt, out))
}

/// The body, which stands in this zone, rewritten as by [`rewrite`]; `f` is told the zone of each statement.
pub fn rewrite_zones(body: Vec<Stmt>, zone: Zone, f: &mut impl FnMut(Stmt, Zone, &mut Vec<Stmt>)) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(body.len());
    for mut stmt in body {
        let inside = if matches!(stmt, Stmt::Wide { .. }) { Zone::Wide } else { zone };
        if let Some(body) = stmt.body_mut() {
            *body = rewrite_zones(std::mem::take(body), inside, f);
        }
        f(stmt, zone, &mut out);
    }
    out
}

/// The body with an index in place of a loop variable.
pub fn substitute(mut body: Vec<Stmt>, var: LoopVar, index: &Index) -> Vec<Stmt> {
    body.iter_mut().for_each(|s| s.each_index_mut(&mut |i| i.substitute(var, index)));
    body
}

/// The body with `f` applied to the accumulator and the index of every element that is read or set, at any depth.
pub fn map_elements(body: Vec<Stmt>, f: &mut impl FnMut(AccId, Index) -> (AccId, Index)) -> Vec<Stmt> {
    rewrite(body, &mut |stmt, out| {
        let stmt = stmt.map_exprs(&mut |e| {
            e.rewrite(&mut |e| match e {
                Expr::Read(acc, dtype, index) => {
                    let (acc, index) = f(acc, index);
                    Expr::Read(acc, dtype, index)
                }
                e @ (Expr::Const(_) | Expr::Var(..) | Expr::Load(..) | Expr::At(..)) => e,
                e @ (Expr::Op(..) | Expr::Call(..)) => e,
            })
        });
        out.push(match stmt {
            Stmt::Set { acc, index, value } => {
                let (acc, index) = f(acc, index);
                Stmt::Set { acc, index, value }
            }
            other @ (Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Let { .. }) => other,
            other @ (Stmt::Call { .. } | Stmt::Store { .. } | Stmt::Carry { .. } | Stmt::Pick { .. }) => other,
            other @ (Stmt::Merge { .. } | Stmt::Fold { .. } | Stmt::Select { .. } | Stmt::Transpose(_)) => other,
            other @ (Stmt::Misalign { .. } | Stmt::Rotate { .. } | Stmt::Prefetch { .. }) => other,
        });
    })
}

/// The body with `f` applied to every accumulator that is declared, merged, folded or selected from, at any depth.
/// Elements are for [`map_elements`].
pub fn map_accs(body: Vec<Stmt>, f: &mut impl FnMut(AccId) -> AccId) -> Vec<Stmt> {
    rewrite(body, &mut |stmt, out| out.push(with_accs(stmt, f)))
}

/// The statement with `f` applied to its accumulators, without the statements in its body.
fn with_accs(stmt: Stmt, f: &mut impl FnMut(AccId) -> AccId) -> Stmt {
    match stmt {
        Stmt::Acc { acc, dtype, len, init } => Stmt::Acc { acc: f(acc), dtype, len, init },
        Stmt::Merge { accs, def, blocks, elems } => {
            Stmt::Merge { accs: accs.into_iter().map(f).collect(), def, blocks, elems }
        }
        Stmt::Fold { accs, def, present, lanes, elems } => {
            Stmt::Fold { accs: accs.into_iter().map(f).collect(), def, present, lanes, elems }
        }
        Stmt::Select { vars, what, acc, len } => Stmt::Select { vars, what, acc: f(acc), len },
        Stmt::Transpose(t) => Stmt::Transpose(Transpose { acc: f(t.acc), ..t }),
        other @ (Stmt::For(_) | Stmt::Wide { .. } | Stmt::Let { .. } | Stmt::Call { .. }) => other,
        other @ (Stmt::Set { .. } | Stmt::Store { .. } | Stmt::Carry { .. } | Stmt::Pick { .. }) => other,
        Stmt::Rotate { acc, start, len, by } => Stmt::Rotate { acc: f(acc), start, len, by },
        other @ (Stmt::Misalign { .. } | Stmt::Prefetch { .. }) => other,
    }
}

/// A copy of the body with new names for the values and accumulators it declares, and for the variables it picks. Loops
/// and carries keep their variables, which end with them.
pub fn renamed(body: Vec<Stmt>, names: &mut Names) -> Vec<Stmt> {
    let mut vars: FxHashMap<Var, Var> = FxHashMap::default();
    let mut accs: FxHashMap<AccId, AccId> = FxHashMap::default();
    let mut picks: Vec<(LoopVar, LoopVar)> = vec![];
    body.iter().for_each(|s| {
        s.visit(&mut |s| {
            vars.extend(s.bound_vars().iter().map(|&v| (v, names.var())));
            if let Stmt::Acc { acc, .. } = s {
                accs.insert(*acc, names.acc());
            }
            if let Stmt::Pick { var, .. } = s {
                picks.push((*var, names.loop_over(var.over)));
            }
        })
    });
    if vars.is_empty() && accs.is_empty() && picks.is_empty() {
        return body;
    }
    let body = picks.iter().fold(body, |body, &(from, to)| substitute(body, from, &Index::term(to, 1)));
    let pick = |v: LoopVar| picks.iter().find(|&&(from, _)| from == v).map_or(v, |&(_, to)| to);
    let var = |v: Var| vars.get(&v).copied().unwrap_or(v);
    let acc = |a: AccId| accs.get(&a).copied().unwrap_or(a);
    let expr = |e: &mut Expr| match e {
        Expr::Var(v, _) => *v = var(*v),
        Expr::Read(a, _, _) => *a = acc(*a),
        Expr::Const(_) | Expr::Load(..) | Expr::At(..) | Expr::Op(..) | Expr::Call(..) => {}
    };
    rewrite(body, &mut |mut s, out| {
        s.exprs_mut().iter_mut().for_each(|e| e.each_mut(&mut { expr }));
        out.push(match with_accs(s, &mut { acc }) {
            Stmt::Let { var: v, value } => Stmt::Let { var: var(v), value },
            Stmt::Call { vars, def, args } => Stmt::Call { vars: vars.into_iter().map(var).collect(), def, args },
            Stmt::Select { vars, what, acc, len } => {
                Stmt::Select { vars: vars.into_iter().map(var).collect(), what, acc, len }
            }
            Stmt::Pick { var: v, value, most } => Stmt::Pick { var: pick(v), value, most },
            Stmt::Set { acc: a, index, value } => Stmt::Set { acc: acc(a), index, value },
            other @ (Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. }) => other,
            other @ (Stmt::Store { .. } | Stmt::Carry { .. } | Stmt::Merge { .. } | Stmt::Fold { .. }) => other,
            other @ Stmt::Transpose(_) => other,
            other @ (Stmt::Misalign { .. } | Stmt::Rotate { .. } | Stmt::Prefetch { .. }) => other,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loop, LoopVar, Nest, Over};

    fn nest(body: &str) -> Nest {
        let text = format!("nest \"\" {{ in x0: f32[64] out x1: f32[64] {body} }}");
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn assert_same(body: Vec<Stmt>, expected: &str) {
        let (mut got, expected) = (nest(""), nest(expected));
        got.body = body;
        assert_eq!(got.to_string(), expected.to_string());
    }

    #[test]
    fn what_is_declared_in_a_copy_has_new_names() {
        let body = "acc a0: f32[2] = 0.0 for e0 in 0..2 parallel { let v0 = x0[e0] a0[e0] = v0 x1[e0] = a0[e0] }";
        let before = nest(body);
        let copy = renamed(before.body.clone(), &mut Names::after(&before));
        assert_same(copy, &body.replace("a0", "a1").replace("v0", "v1"));
        // A name declared outside of the body stays.
        let inner = before.body[1].body().to_vec();
        let copy = renamed(inner, &mut Names::after(&before));
        assert_same(
            vec![before.body[0].clone(), Stmt::For(Loop { body: copy, ..of_loop(&before.body[1]) })],
            &body.replace("v0", "v1"),
        );
    }

    fn of_loop(stmt: &Stmt) -> Loop {
        let Stmt::For(l) = stmt else { panic!("a loop") };
        l.clone()
    }

    #[test]
    fn elements_and_whole_accumulators_are_mapped_apart() {
        let body = "acc a0: f32[2] = 0.0 for e0 in 0..2 parallel { a0[e0] = neg(a0[e0]) }";
        let elements = map_elements(nest(body).body, &mut |_, index| (AccId(7), index.offset_by(3)));
        let all = map_accs(elements, &mut |_| AccId(7));
        assert_eq!(all.len(), 2);
        assert!(matches!(all[0], Stmt::Acc { acc: AccId(7), .. }));
        let Stmt::Set { acc, index, value } = &all[1].body()[0] else { panic!("a set") };
        let Expr::Op(_, _, args) = value else { panic!("an operation") };
        let Expr::Read(read, _, at) = &args[0] else { panic!("a read") };
        assert_eq!((acc, index.offset, read, at.offset), (&AccId(7), 3, &AccId(7), 3));
    }

    #[test]
    fn a_substitution_reaches_every_index() {
        let e0 = LoopVar { over: Over::Element, id: 0 };
        let body = of_loop(&nest("for e0 in 0..2 parallel { x1[e0] = x0[2*e0 + 1] }").body[0]).body;
        assert_same(substitute(body, e0, &Index::constant(5)), "x1[5] = x0[11]");
    }

    #[test]
    fn zones_end_with_their_wide_functions() {
        let nest = nest("for e0 in 0..2 parallel { wide { x1[e0] = x0[e0] } } x1[9] = x0[9]");
        let mut zones = vec![];
        rewrite_zones(nest.body, Zone::Outside, &mut |stmt, zone, out| {
            zones.push(zone);
            out.push(stmt);
        });
        assert_eq!(zones, [Zone::Wide, Zone::Outside, Zone::Outside, Zone::Outside]);
    }
}
