//! Writes out short loops.

use super::{renamed, substitute};
use crate::schedule::Schedule;
use cranefold_ir::{Extent, Index, Loop, LoopKind, Names, Nest, Over, Stmt};

/// The most iterations of a parallel loop that are written out: as many vectors as fit the registers.
pub const SHORT: u64 = 16;

/// The most statements a loop over steps is written out to.
const SMALL: u64 = 48;

/// Writes out loops of one iteration, loops over rows, short parallel loops without loops of scalar
/// or sequential code inside, and loops over steps that stay small:
///
/// ```text
/// for l2 in 0..2 parallel { for l0 in 0..4 lanes { a0[4*l2 + l0] = add(a0[4*l2 + l0], x0[4*l2 + l0]) } }
/// ->
/// for l0 in 0..4 lanes { a0[l0] = add(a0[l0], x0[l0]) }
/// for l0 in 0..4 lanes { a0[l0 + 4] = add(a0[l0 + 4], x0[l0 + 4]) }
/// ```
///
/// Accumulators whose every index has become constant live in registers.
pub fn unroll(nest: Nest, _: &Schedule) -> Nest {
    let mut names = Names::after(&nest);
    let body = super::rewrite(nest.body, &mut |stmt| match stmt {
        Stmt::For(l) => match l.extent {
            Extent::Const(n) if is_short(&l, n) => write_out(l, n, &mut names),
            _ => vec![Stmt::For(l)],
        },
        other => vec![other],
    });
    Nest { body, ..nest }
}

fn is_short(l: &Loop, n: u64) -> bool {
    let vectors = l.body.iter().all(|s| match s {
        Stmt::For(inner) => inner.kind == LoopKind::Lanes,
        other => super::is_straight(std::slice::from_ref(other)),
    });
    match (l.kind, l.var.over) {
        _ if n == 1 => true,
        (LoopKind::Lanes, _) => false,
        (_, Over::Row) => true,
        (_, Over::Step) => vectors && n.saturating_mul(l.body.len() as u64) <= SMALL,
        (LoopKind::Parallel, Over::Lane | Over::Element) => vectors && n <= SHORT,
        // An output loop is written out where it is a tile's: with vectors inside.
        (LoopKind::Parallel, Over::Output) => vectors && n <= SHORT && l.body.iter().all(|s| matches!(s, Stmt::For(_))),
        _ => false,
    }
}

fn write_out(l: Loop, n: u64, names: &mut Names) -> Vec<Stmt> {
    let iteration = |i: u64, names: &mut Names| {
        let body = substitute(l.body.clone(), l.var, &Index::constant(i as i64));
        if i == 0 { body } else { renamed(body, names) }
    };
    (0..n).flat_map(|i| iteration(i, names)).collect()
}
