//! Statements replaced, substituted and renamed.

#![warn(clippy::wildcard_enum_match_arm)]

use crate::{AccId, Expr, Index, LoopKind, LoopVar, Names, Stmt, Var};
use rustc_hash::FxHashMap;

/// The code that a statement stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Zone {
    /// The code around wide functions, where vectors have 128 bits.
    Outside,
    /// A wide function, where vectors have the most bits that the target has.
    Wide,
}

/// The body with `f` applied to every statement in it, innermost bodies first; `f` may change a statement, or return the
/// statements that take its place.
pub fn rewrite(body: Vec<Stmt>, f: &mut impl FnMut(&mut Stmt) -> Option<Vec<Stmt>>) -> Vec<Stmt> {
    rewrite_zones(body, Zone::Outside, &mut |stmt, _| f(stmt))
}

/// The body, which stands in this zone, rewritten as by [`rewrite`]; `f` is told the zone of each statement.
pub fn rewrite_zones(
    mut body: Vec<Stmt>,
    zone: Zone,
    f: &mut impl FnMut(&mut Stmt, Zone) -> Option<Vec<Stmt>>,
) -> Vec<Stmt> {
    rewrite_in_place(&mut body, zone, f);
    body
}

/// The body, which stands in this zone, and all bodies in it but those of lanes, innermost first, as `f` makes them.
pub fn rewrite_bodies(body: Vec<Stmt>, zone: Zone, f: &mut impl FnMut(Vec<Stmt>, Zone) -> Vec<Stmt>) -> Vec<Stmt> {
    let mut inner = |stmt: Stmt| {
        if matches!(&stmt, Stmt::For(l) if l.kind == LoopKind::Lanes) {
            return stmt;
        }
        let zone = if matches!(stmt, Stmt::Wide { .. }) { Zone::Wide } else { zone };
        stmt.with_body(|body| rewrite_bodies(body, zone, f))
    };
    let body = body.into_iter().map(&mut inner).collect();
    f(body, zone)
}

fn rewrite_in_place(body: &mut Vec<Stmt>, zone: Zone, f: &mut impl FnMut(&mut Stmt, Zone) -> Option<Vec<Stmt>>) {
    let mut replaced: Vec<(usize, Vec<Stmt>)> = vec![];
    for (at, stmt) in body.iter_mut().enumerate() {
        let inside = if matches!(stmt, Stmt::Wide { .. }) { Zone::Wide } else { zone };
        if let Some(body) = stmt.body_mut() {
            rewrite_in_place(body, inside, f);
        }
        replaced.extend(f(stmt, zone).map(|stmts| (at, stmts)));
    }
    if replaced.is_empty() {
        return;
    }
    let count = body.len() + replaced.iter().map(|(_, stmts)| stmts.len()).sum::<usize>();
    let old = std::mem::replace(body, Vec::with_capacity(count));
    let mut replaced = replaced.into_iter().peekable();
    for (at, stmt) in old.into_iter().enumerate() {
        match replaced.next_if(|(of, _)| *of == at) {
            Some((_, stmts)) => body.extend(stmts),
            None => body.push(stmt),
        }
    }
}

/// The body with an index in place of a loop variable.
pub fn substitute(mut body: Vec<Stmt>, var: LoopVar, index: &Index) -> Vec<Stmt> {
    body.iter_mut().for_each(|s| s.each_index_mut(&mut |i| i.substitute(var, index)));
    body
}

/// The body with `f` applied to the accumulator and the index of every element that is read or set, at any depth.
pub fn map_elements(body: Vec<Stmt>, f: &mut impl FnMut(AccId, Index) -> (AccId, Index)) -> Vec<Stmt> {
    rewrite(body, &mut |stmt| {
        for e in stmt.exprs_mut() {
            e.each_mut(&mut |e| match e {
                Expr::Read(acc, _, index) => (*acc, *index) = f(*acc, std::mem::take(index)),
                Expr::Const(_) | Expr::Var(..) | Expr::Load(..) | Expr::At(..) | Expr::Op(..) | Expr::Call(..) => {}
            });
        }
        if let Stmt::Set { acc, index, .. } = stmt {
            (*acc, *index) = f(*acc, std::mem::take(index));
        }
        None
    })
}

/// The body with `f` applied to every accumulator that is declared, merged, folded or selected from, at any depth.
/// Elements are for [`map_elements`].
pub fn map_accs(body: Vec<Stmt>, f: &mut impl FnMut(AccId) -> AccId) -> Vec<Stmt> {
    rewrite(body, &mut |stmt| {
        each_acc_mut(stmt, &mut |acc| *acc = f(*acc));
        None
    })
}

/// Calls `f` on the accumulators of a statement, without those of elements and of the statements in its body, to change
/// them.
fn each_acc_mut(stmt: &mut Stmt, f: &mut impl FnMut(&mut AccId)) {
    match stmt {
        Stmt::Acc { acc, .. } | Stmt::Select { acc, .. } | Stmt::Rotate { acc, .. } => f(acc),
        Stmt::Transpose(t) | Stmt::TransposedStore(t) => f(&mut t.acc),
        Stmt::Merge { accs, .. } | Stmt::Fold { accs, .. } => accs.iter_mut().for_each(f),
        Stmt::For(_) | Stmt::Wide { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } => {}
        Stmt::Store { .. } | Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Misalign { .. } => {}
        Stmt::Prefetch { .. } => {}
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
    let rename = |e: &mut Expr| match e {
        Expr::Var(v, _) => *v = var(*v),
        Expr::Read(a, _, _) => *a = acc(*a),
        Expr::Const(_) | Expr::Load(..) | Expr::At(..) | Expr::Op(..) | Expr::Call(..) => {}
    };
    rewrite(body, &mut |stmt| {
        stmt.exprs_mut().iter_mut().for_each(|e| e.each_mut(&mut { rename }));
        each_acc_mut(stmt, &mut |a| *a = acc(*a));
        match stmt {
            Stmt::Let { var: v, .. } => *v = var(*v),
            Stmt::Call { vars, .. } | Stmt::Select { vars, .. } => vars.iter_mut().for_each(|v| *v = var(*v)),
            Stmt::Pick { var: v, .. } => *v = pick(*v),
            Stmt::Set { acc: a, .. } => *a = acc(*a),
            Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Store { .. } | Stmt::Carry { .. } => {}
            Stmt::Merge { .. }
            | Stmt::Fold { .. }
            | Stmt::Transpose(_)
            | Stmt::TransposedStore(_)
            | Stmt::Misalign { .. } => {}
            Stmt::Rotate { .. } | Stmt::Prefetch { .. } => {}
        }
        None
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
        rewrite_zones(nest.body, Zone::Outside, &mut |_, zone| {
            zones.push(zone);
            None
        });
        assert_eq!(zones, [Zone::Wide, Zone::Outside, Zone::Outside, Zone::Outside]);
    }
}
