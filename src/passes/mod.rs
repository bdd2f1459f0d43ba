//! The passes, in the order they run.
//!
//! A pass is one function from nest to nest in one file, whose rewrite is drawn in its doc comment.
//! What it does is decided by the schedule; it never fails, and finding nothing to do it returns what
//! it was given. Each keeps the term of every output.

mod fold;
mod hoist;
mod interchange;
mod interleave;
mod jam;
mod join_blocks;
mod legalize;
mod merge_loops;
mod neighbours;
mod outline;
mod reorder;
mod share_folds;
mod stream;
mod sums;
mod tile;
mod unroll;
mod vector_forms;
mod vectorize;

use crate::schedule::Schedule;
use crate::vectors::Vectors;
use cranefold_ir::{AccId, Expr, Index, Loop, LoopVar, Names, Nest, Stmt, Var};
use std::collections::HashMap;

/// A pass.
#[derive(Debug)]
pub struct Pass {
    /// The name of the stage after it in a dump.
    pub name: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// The function; it gets the vectors that the code is made of.
    pub run: fn(Nest, &Schedule, Vectors) -> Nest,
}

/// Every pass, in order.
pub const PASSES: &[Pass] = &[
    Pass { name: "tile", summary: "split output dims and steps into tiles", run: tile::tile },
    Pass { name: "reorder", summary: "move a tile's loops inside the reduction's", run: reorder::reorder },
    Pass {
        name: "interchange",
        summary: "move a tile's loops inside those over blocks",
        run: interchange::interchange,
    },
    Pass { name: "merge_loops", summary: "join loops that walk memory as one", run: merge_loops::merge_loops },
    Pass { name: "join_blocks", summary: "add integers of all blocks into one state", run: join_blocks::join_blocks },
    Pass { name: "neighbours", summary: "add bytes that lie side by side in one lane", run: neighbours::neighbours },
    Pass { name: "stream", summary: "merge blocks as they are done", run: stream::stream },
    Pass { name: "share_folds", summary: "fold the lanes of several outputs together", run: share_folds::share_folds },
    Pass { name: "fold", summary: "write out the folds of lanes", run: fold::fold },
    Pass { name: "jam", summary: "take several steps in one visit of an accumulator", run: jam::jam },
    Pass { name: "hoist", summary: "read what a loop does not change before it", run: hoist::hoist },
    Pass { name: "interleave", summary: "take several blocks or outputs at once", run: interleave::interleave },
    Pass { name: "outline", summary: "give statements to the generator of wide vectors", run: outline::outline },
    Pass { name: "vectorize", summary: "make lanes of parallel loops", run: vectorize::vectorize },
    Pass { name: "unroll", summary: "write out short loops", run: unroll::unroll },
    Pass { name: "legalize", summary: "split vectors and replace what the target lacks", run: legalize::legalize },
];

/// The body with `f` applied to every statement in it, innermost bodies first; `f` adds the
/// statements that take its place to the new body.
fn rewrite(body: Vec<Stmt>, f: &mut impl FnMut(Stmt, &mut Vec<Stmt>)) -> Vec<Stmt> {
    rewrite_regions(body, Region::Outside, &mut |stmt, _, out| f(stmt, out))
}

/// Where a statement stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Region {
    /// Where vectors have 128 bits.
    Outside,
    /// In a tile, where they have the most that the target has.
    Tile,
}

/// As [`rewrite`] of a body in that region; `f` is told where the statement stands.
fn rewrite_regions(body: Vec<Stmt>, region: Region, f: &mut impl FnMut(Stmt, Region, &mut Vec<Stmt>)) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(body.len());
    for stmt in body {
        let stmt = match stmt {
            Stmt::For(l) => Stmt::For(Loop { body: rewrite_regions(l.body, region, f), ..l }),
            Stmt::Tile { body } => Stmt::Tile { body: rewrite_regions(body, Region::Tile, f) },
            other => other,
        };
        f(stmt, region, &mut out);
    }
    out
}

/// The body with an index in place of a loop variable.
fn substitute(body: Vec<Stmt>, var: LoopVar, index: &Index) -> Vec<Stmt> {
    body.into_iter().map(|s| s.map_indices(&mut |i| i.substitute(var, index))).collect()
}

/// A copy of the body with new names for the values and accumulators it declares.
fn renamed(body: Vec<Stmt>, names: &mut Names) -> Vec<Stmt> {
    let mut vars: HashMap<Var, Var> = HashMap::new();
    let mut accs: HashMap<AccId, AccId> = HashMap::new();
    let mut picks: Vec<(LoopVar, LoopVar)> = vec![];
    body.iter().for_each(|s| {
        s.visit(&mut |s| match s {
            Stmt::Let { var, .. } => {
                vars.insert(*var, names.var());
            }
            Stmt::Call { vars: bound, .. } | Stmt::Select { vars: bound, .. } => bound.iter().for_each(|v| {
                vars.insert(*v, names.var());
            }),
            Stmt::Acc { acc, .. } => {
                accs.insert(*acc, names.acc());
            }
            Stmt::Pick { var, .. } => picks.push((*var, names.loop_over(var.over))),
            _ => {}
        })
    });
    if vars.is_empty() && accs.is_empty() && picks.is_empty() {
        return body;
    }
    let body = picks.iter().fold(body, |body, &(from, to)| substitute(body, from, &Index::term(to, 1)));
    let pick = |v: LoopVar| picks.iter().find(|&&(from, _)| from == v).map_or(v, |&(_, to)| to);
    let var = |v: Var| vars.get(&v).copied().unwrap_or(v);
    let acc = |a: AccId| accs.get(&a).copied().unwrap_or(a);
    let expr = |e| match e {
        Expr::Var(v, dtype) => Expr::Var(var(v), dtype),
        Expr::Read(a, dtype, index) => Expr::Read(acc(a), dtype, index),
        e => e,
    };
    rewrite(body, &mut |s, out| {
        out.push(match s.map_exprs(&mut |e| e.rewrite(&mut { expr })) {
            Stmt::Let { var: v, value } => Stmt::Let { var: var(v), value },
            Stmt::Call { vars, def, args } => Stmt::Call { vars: vars.into_iter().map(var).collect(), def, args },
            Stmt::Acc { acc: a, dtype, len, init } => Stmt::Acc { acc: acc(a), dtype, len, init },
            Stmt::Set { acc: a, index, value } => Stmt::Set { acc: acc(a), index, value },
            Stmt::Pick { var: v, value, most } => Stmt::Pick { var: pick(v), value, most },
            Stmt::Merge { accs, def, blocks, elems } => {
                Stmt::Merge { accs: accs.into_iter().map(acc).collect(), def, blocks, elems }
            }
            Stmt::Fold { accs, def, present, lanes, elems } => {
                Stmt::Fold { accs: accs.into_iter().map(acc).collect(), def, present, lanes, elems }
            }
            Stmt::Select { vars, what, acc: a, len } => {
                Stmt::Select { vars: vars.into_iter().map(var).collect(), what, acc: acc(a), len }
            }
            other => other,
        })
    })
}

/// Whether no statement is a loop, selects or declares anything but values.
fn is_straight(body: &[Stmt]) -> bool {
    let simple = |s: &Stmt| matches!(s, Stmt::Let { .. } | Stmt::Call { .. } | Stmt::Set { .. } | Stmt::Store { .. });
    body.iter().all(simple)
}

/// Calls `f` on every expression in the body, at any depth, operands too.
fn visit_exprs<'a>(body: &'a [Stmt], f: &mut impl FnMut(&'a Expr)) {
    fn each<'a>(e: &'a Expr, f: &mut impl FnMut(&'a Expr)) {
        f(e);
        e.args().iter().for_each(|a| each(a, f));
    }
    body.iter().for_each(|s| s.visit(&mut |s| s.exprs().iter().for_each(|e| each(e, f))));
}
