//! The accumulators, expressions and indices that statements touch.

#![warn(clippy::wildcard_enum_match_arm)]

use crate::{AccId, Expr, Index, Stmt};
use rustc_hash::FxHashSet;

/// A way in which a statement touches an accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access<'a> {
    /// It declares the accumulator, and fills it.
    Declared,
    /// It reads the element of this index.
    Read(&'a Index),
    /// It sets the element of this index.
    Set(&'a Index),
    /// It merges or folds the accumulator: reads and sets any element.
    Combined,
    /// It sets the first elements to transposed ones of an input.
    Transposed,
    /// It reads the first elements to store them, transposed.
    Stored,
    /// It selects from the accumulator, and may move its elements.
    Selected,
}

/// Calls `f` on every access of an accumulator in the statement, at any depth, in the order of the text.
///
/// ```
/// use cranefold_ir::analysis::{Access, visit_accesses};
/// use cranefold_ir::Nest;
///
/// let nest: Nest = r#"nest "" { out x0: i32[1] acc a0: i32[1] = 0 a0[0] = add(a0[0], 1:i32) x0[0] = a0[0] }"#.parse()?;
/// let mut sets = 0;
/// nest.body.iter().for_each(|s| visit_accesses(s, &mut |_, access| sets += u32::from(matches!(access, Access::Set(_)))));
/// assert_eq!(sets, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn visit_accesses<'a>(stmt: &'a Stmt, f: &mut impl FnMut(AccId, Access<'a>)) {
    stmt.visit(&mut |stmt| {
        for e in stmt.exprs() {
            e.visit(&mut |e| {
                if let Expr::Read(acc, _, index) = e {
                    f(*acc, Access::Read(index));
                }
            });
        }
        match stmt {
            Stmt::Acc { acc, .. } => f(*acc, Access::Declared),
            Stmt::Set { acc, index, .. } => f(*acc, Access::Set(index)),
            Stmt::Merge { accs, .. } | Stmt::Fold { accs, .. } => {
                accs.iter().for_each(|acc| f(*acc, Access::Combined));
            }
            Stmt::Rotate { acc, .. } => f(*acc, Access::Combined),
            Stmt::Select { acc, .. } => f(*acc, Access::Selected),
            Stmt::Transpose(t) => f(t.acc, Access::Transposed),
            Stmt::TransposedStore(t) => f(t.acc, Access::Stored),
            // Their expressions and bodies are seen above; they name no accumulator by themselves.
            Stmt::For(_) | Stmt::Wide { .. } | Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Store { .. } => {}
            Stmt::Carry { .. } | Stmt::Pick { .. } | Stmt::Misalign { .. } | Stmt::Prefetch { .. } => {}
        }
    });
}

/// Returns true if the statement, or one in it, declares, reads or writes the accumulator.
pub fn mentions(stmt: &Stmt, acc: AccId) -> bool {
    let mut found = false;
    visit_accesses(stmt, &mut |a, _| found |= a == acc);
    found
}

/// The accumulators that the body reads or sets elements of, at any depth.
pub fn touched(body: &[Stmt]) -> FxHashSet<AccId> {
    let mut found = FxHashSet::default();
    for stmt in body {
        visit_accesses(stmt, &mut |acc, access| match access {
            Access::Read(_) | Access::Set(_) | Access::Transposed | Access::Stored => {
                found.insert(acc);
            }
            Access::Declared | Access::Combined | Access::Selected => {}
        });
    }
    found
}

/// Returns true if the expression reads an element of the accumulator.
pub fn reads(e: &Expr, acc: AccId) -> bool {
    let mut found = false;
    e.visit(&mut |e| found |= matches!(e, Expr::Read(a, ..) if *a == acc));
    found
}

/// Calls `f` on every expression in the body, at any depth, operands too.
pub fn visit_exprs<'a>(body: &'a [Stmt], f: &mut impl FnMut(&'a Expr)) {
    body.iter().for_each(|s| s.visit(&mut |s| s.exprs().iter().for_each(|e| e.visit(f))));
}

/// Calls `f` on every index in the body, at any depth.
pub fn visit_indices<'a>(body: &'a [Stmt], f: &mut impl FnMut(&'a Index)) {
    let mut of_stmt = |stmt: &'a Stmt| {
        match stmt {
            Stmt::Set { index, .. } | Stmt::Store { index, .. } | Stmt::Carry { of: index, .. } => f(index),
            Stmt::Misalign { index, .. } | Stmt::Prefetch { index, .. } => f(index),
            Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Let { .. } | Stmt::Call { .. } => {}
            Stmt::Transpose(t) | Stmt::TransposedStore(t) => f(&t.first),
            Stmt::Pick { .. } | Stmt::Merge { .. } | Stmt::Fold { .. } | Stmt::Select { .. } => {}
            Stmt::Rotate { .. } => {}
        }
        for e in stmt.exprs() {
            e.visit(&mut |e| match e {
                Expr::Load(_, _, index) | Expr::Read(_, _, index) | Expr::At(_, index) => f(index),
                Expr::Const(_) | Expr::Var(..) | Expr::Op(..) | Expr::Call(..) => {}
            });
        }
    };
    body.iter().for_each(|s| s.visit(&mut of_stmt));
}

/// Returns true if every statement is a `let`, call, set or store: no loop, no selection, no declaration of an
/// accumulator.
pub fn is_straight(body: &[Stmt]) -> bool {
    body.iter().all(|stmt| match stmt {
        Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. } => true,
        Stmt::For(_) | Stmt::Wide { .. } | Stmt::Acc { .. } | Stmt::Carry { .. } | Stmt::Pick { .. } => false,
        Stmt::Merge { .. }
        | Stmt::Fold { .. }
        | Stmt::Select { .. }
        | Stmt::Transpose(_)
        | Stmt::TransposedStore(_)
        | Stmt::Prefetch { .. } => false,
        Stmt::Misalign { .. } | Stmt::Rotate { .. } => false,
    })
}

/// Returns true for a straight body that stores what it computes of buffers alone: it names no accumulator.
pub fn is_elementwise(body: &[Stmt]) -> bool {
    let mut reads_buffers = true;
    body.iter().flat_map(Stmt::exprs).for_each(|e| {
        e.visit(&mut |e| reads_buffers &= !matches!(e, Expr::Read(..)));
    });
    reads_buffers && is_straight(body) && !body.iter().any(|stmt| matches!(stmt, Stmt::Set { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LoopVar, Nest, Over};

    /// A nest that touches accumulators in every way.
    const EACH: &str = r#"nest "" {
        in x0: f32[8]
        out x1: f32[4]
        def sum(v0: f32, v1: f32) -> f32 { add(v0, v1) }
        acc a0: f32[4] = 0.0
        for e0 in 0..4 parallel { a0[e0] = x0[2*e0] }
        acc a1: f32[4] = 0.0
        acc a2: f32[4] = 0.0
        for e1 in 0..4 parallel { a1[e1] = add(a1[e1], a0[e1]) }
        fold a1 by sum over 4 of 4 by 1
        for e1 in 0..4 parallel { a2[e1] = x0[e1] }
        select v2 = nth 1 of a2 over 4
        x1[0] = v2
    }"#;

    fn nest() -> Nest {
        EACH.parse().unwrap_or_else(|e| panic!("{e}"))
    }

    fn accesses(acc: AccId) -> Vec<String> {
        let mut found = vec![];
        let name = |access| match access {
            Access::Declared => "declared",
            Access::Read(_) => "read",
            Access::Set(_) => "set",
            Access::Combined => "combined",
            Access::Transposed => "transposed",
            Access::Stored => "stored",
            Access::Selected => "selected",
        };
        for stmt in &nest().body {
            visit_accesses(stmt, &mut |a, access| {
                if a == acc {
                    found.push(name(access).to_string());
                }
            });
        }
        found
    }

    #[test]
    fn every_access_is_told() {
        assert_eq!(accesses(AccId(0)), ["declared", "set", "read"]);
        assert_eq!(accesses(AccId(1)), ["declared", "read", "set", "combined"]);
        assert_eq!(accesses(AccId(2)), ["declared", "set", "selected"]);
        assert_eq!(accesses(AccId(3)), [""; 0]);
    }

    #[test]
    fn a_statement_mentions_what_it_accesses() {
        let nest = nest();
        let mentioning = |acc| nest.body.iter().filter(|s| mentions(s, acc)).count();
        assert_eq!([0, 1, 2, 3].map(|n| mentioning(AccId(n))), [3, 3, 3, 0]);
        let mut both: Vec<u32> = touched(&nest.body).into_iter().map(|acc| acc.0).collect();
        both.sort_unstable();
        assert_eq!(both, [0, 1, 2]);
    }

    #[test]
    fn every_index_and_expression_is_seen() {
        let nest = nest();
        let e1 = LoopVar { over: Over::Element, id: 1 };
        let (mut indices, mut loads) = (0, 0);
        visit_indices(&nest.body, &mut |index| indices += u32::from(index.coefficient(e1) != 0));
        visit_exprs(&nest.body, &mut |e| loads += u32::from(matches!(e, Expr::Load(..))));
        assert_eq!((indices, loads), (5, 2));
        let straight: Vec<bool> = nest.body.iter().map(|s| is_straight(std::slice::from_ref(s))).collect();
        assert_eq!(straight.iter().filter(|is| **is).count(), 1, "the last store alone");
    }
}
