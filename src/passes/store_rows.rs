//! Stores the rows of an accumulator together.

use super::runs::{Direction, Moved, Runs, moved};
use crate::schedule::Schedule;
use crate::transposes::{MOST_COLUMNS, stored_run};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Zone, map_elements, rewrite_bodies};
use cranefold_ir::{AccId, Expr, Names, Nest, Stmt, Transpose};
use rustc_hash::FxHashMap;

/// Replaces stores row by row by one transposed store, where the elements of accumulators go to the same runs of memory:
///
/// ```text
/// acc a1: f32[8] = 0.0
/// for i1 in 0..8 lanes { a1[i1] = neg(a0[i1]) }
/// for i1 in 0..4 lanes { x1[2*i1] = a1[i1] }
/// for i1 in 0..4 lanes { x1[2*i1 + 16] = a1[i1 + 4] }
/// acc a2: f32[8] = 0.0
/// for i1 in 0..8 lanes { a2[i1] = abs(a0[i1]) }
/// for i1 in 0..4 lanes { x1[2*i1 + 1] = a2[i1] }
/// for i1 in 0..4 lanes { x1[2*i1 + 17] = a2[i1 + 4] }
/// ->
/// acc a3: f32[16] = 0.0
/// for i1 in 0..8 lanes { a3[i1] = neg(a0[i1]) }
/// for i1 in 0..8 lanes { a3[i1 + 8] = abs(a0[i1]) }
/// transpose x1[0] = a3 over 2 by 16, 4 by 2 at 0, 1
/// ```
///
/// A schedule with `transpose=off` has none. The store stands where the last of the stores stood.
/// [`transposes`](crate::transposes) says which runs the vectors of a zone store.
///
/// Legal because nothing between these stores reads or writes the output, and each element of the output is written once.
pub fn store_rows(nest: Nest, schedule: &Schedule, vectors: Vectors) -> Nest {
    if !schedule.transpose {
        return nest;
    }
    let mut names = Names::after(&nest);
    let body = rewrite_bodies(nest.body, Zone::Outside, &mut |body, zone| match zone {
        Zone::Outside => body,
        Zone::Wide => stored_together(body, vectors, &mut names),
    });
    Nest { body, ..nest }
}

fn stored_together(body: Vec<Stmt>, vectors: Vectors, names: &mut Names) -> Vec<Stmt> {
    let made = made(&body, vectors, names);
    if made.is_empty() {
        return body;
    }
    let mut set_in: FxHashMap<AccId, (AccId, i64)> = FxHashMap::default();
    let mut dropped = vec![];
    let (mut before, mut behind): (FxHashMap<usize, Stmt>, FxHashMap<usize, Stmt>) = Default::default();
    for (t, columns) in made {
        for stored in &columns {
            set_in.insert(stored.acc, (t.acc, stored.start_in(&t)));
            dropped.extend(&stored.stmts);
        }
        let stmts = || columns.iter().flat_map(|stored| stored.stmts.iter().copied());
        before.insert(stmts().min().unwrap_or(0), columns[0].declared(&t));
        behind.insert(stmts().max().unwrap_or(0), Stmt::TransposedStore(t));
    }
    let mut out = vec![];
    for (at, stmt) in body.into_iter().enumerate() {
        out.extend(before.remove(&at));
        if !dropped.contains(&at) {
            out.push(stmt);
        }
        out.extend(behind.remove(&at));
    }
    map_elements(out, &mut |acc, index| match set_in.get(&acc) {
        Some(&(of, start)) => (of, index.offset_by(start)),
        None => (acc, index),
    })
}

/// The transposed stores of a body, each with the accumulators that are its columns.
fn made(body: &[Stmt], vectors: Vectors, names: &mut Names) -> Vec<(Transpose, Vec<Moved>)> {
    let mut all = moved(body, Direction::Stored);
    let mut made = vec![];
    while let Some((runs, first)) = all.first() {
        let (runs, buf, terms) = (*runs, first.buf, first.terms.clone());
        let is_of = |of: &Runs, stored: &Moved| (of, stored.buf, &stored.terms) == (&runs, buf, &terms);
        let (mut columns, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|(of, stored)| is_of(of, stored));
        all = rest;
        // The most columns from the first on whose elements follow one another.
        let starts: Vec<i64> = columns.iter().map(|(_, stored)| stored.offsets[0]).collect();
        let transpose = |count: usize| runs.transpose(&columns[0].1, starts[..count].to_vec());
        let fits = |count: &usize| {
            let t = transpose(*count);
            let are_once = t.columns.len() == *count;
            are_once && *count as u64 <= MOST_COLUMNS && stored_run(vectors, &t, columns[0].1.dtype.bytes()).is_some()
        };
        let Some(count) = (1..=columns.len()).rev().find(fits) else {
            all.extend(columns.drain(1..));
            all.sort_by_key(|(_, stored)| (stored.offsets[0], stored.stmts[0]));
            continue;
        };
        let transpose = transpose(count);
        all.extend(columns.drain(count..));
        all.sort_by_key(|(_, stored)| (stored.offsets[0], stored.stmts[0]));
        let columns: Vec<Moved> = columns.into_iter().map(|(_, stored)| stored).collect();
        if may_move(&columns, body) {
            made.push((Transpose { acc: names.acc(), ..transpose }, columns));
        }
    }
    made
}

/// Returns true if the columns may be stored where the last of them is: until then nothing else reads the output or writes it.
fn may_move(columns: &[Moved], body: &[Stmt]) -> bool {
    let own: Vec<usize> = columns.iter().flat_map(|stored| stored.stmts.iter().copied()).collect();
    let [first, last] = [own.iter().min(), own.iter().max()].map(|at| at.copied().unwrap_or(0));
    let buf = columns[0].buf;
    let mut is_free = true;
    let between = (first..=last).filter(|at| !own.contains(at));
    between.for_each(|at| {
        body[at].visit(&mut |s| {
            is_free &= !matches!(s, Stmt::Store { buf: b, .. } if *b == buf);
            is_free &= !matches!(s, Stmt::TransposedStore(t) if t.buf == buf);
            s.exprs().iter().for_each(|e| e.visit(&mut |e| is_free &= !matches!(e, Expr::Load(b, ..) if *b == buf)));
        });
    });
    is_free
}
