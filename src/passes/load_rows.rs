//! Loads the rows of an accumulator together.

use super::runs::{Direction, Moved, Runs, moved};
use crate::schedule::Schedule;
use crate::transposes::{MOST_COLUMNS, way};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Zone, map_elements, rewrite_bodies};
use cranefold_ir::{AccId, BufferRole, Names, Nest, Stmt, Transpose};
use rustc_hash::FxHashMap;

/// Replaces loads row by row by one transpose, where the elements of accumulators lie in the same way:
///
/// ```text
/// acc a1: f32[8] = 0.0
/// for i1 in 0..4 lanes { a1[i1] = x0[2*i1] }
/// for i1 in 0..4 lanes { a1[i1 + 4] = x0[2*i1 + 16] }
/// acc a2: f32[8] = 0.0
/// for i1 in 0..4 lanes { a2[i1] = x0[2*i1 + 1] }
/// for i1 in 0..4 lanes { a2[i1 + 4] = x0[2*i1 + 17] }
/// ->
/// acc a3: f32[16] = 0.0
/// transpose a3 = x0[0] over 2 by 16, 4 by 2 at 0, 1
/// ```
///
/// and reads of `a3` in place of those of `a1` and `a2`. A schedule with `transpose=off` has none. The transpose stands where
/// the first of the loads stood. [`transposes`](crate::transposes) says what the vectors of a zone have a way for.
///
/// Legal because inputs do not change while a nest runs, nothing else sets these accumulators, and what is read besides lies
/// between elements that are read.
pub fn load_rows(nest: Nest, schedule: &Schedule, vectors: Vectors) -> Nest {
    if !schedule.transpose {
        return nest;
    }
    let is_input: Vec<bool> = nest.buffers.iter().map(|b| b.role == BufferRole::In).collect();
    let mut names = Names::after(&nest);
    let body = rewrite_bodies(nest.body, Zone::Outside, &mut |body, zone| match zone {
        Zone::Outside => body,
        Zone::Wide => loaded_together(body, &is_input, vectors, &mut names),
    });
    Nest { body, ..nest }
}

fn loaded_together(body: Vec<Stmt>, is_input: &[bool], vectors: Vectors, names: &mut Names) -> Vec<Stmt> {
    let made = made(&body, is_input, vectors, names);
    if made.is_empty() {
        return body;
    }
    let mut read_from: FxHashMap<AccId, (AccId, i64)> = FxHashMap::default();
    let mut dropped = vec![];
    let mut placed: FxHashMap<usize, Vec<Stmt>> = FxHashMap::default();
    for (t, columns) in made {
        for loaded in &columns {
            read_from.insert(loaded.acc, (t.acc, loaded.start_in(&t)));
            dropped.extend(&loaded.stmts);
        }
        let first = columns.iter().filter_map(|loaded| loaded.stmts.get(1).copied()).min().unwrap_or(0);
        placed.entry(first).or_default().extend([columns[0].declared(&t), Stmt::Transpose(t)]);
    }
    let mut out = vec![];
    for (at, stmt) in body.into_iter().enumerate() {
        out.extend(placed.remove(&at).into_iter().flatten());
        if !dropped.contains(&at) {
            out.push(stmt);
        }
    }
    map_elements(out, &mut |acc, index| match read_from.get(&acc) {
        Some(&(of, start)) => (of, index.offset_by(start)),
        None => (acc, index),
    })
}

/// The transposes of a body, each with the accumulators that are its columns.
fn made(body: &[Stmt], is_input: &[bool], vectors: Vectors, names: &mut Names) -> Vec<(Transpose, Vec<Moved>)> {
    let mut all = moved(body, Direction::Loaded);
    all.retain(|(_, loaded)| is_input[loaded.buf.0 as usize]);
    let mut made = vec![];
    while let Some((runs, first)) = all.first() {
        let (runs, buf, terms, start) = (*runs, first.buf, first.terms.clone(), first.offsets[0]);
        let is_of = |of: &Runs, loaded: &Moved| (of, loaded.buf, &loaded.terms) == (&runs, buf, &terms);
        let reach = reach(runs, all.iter().filter(|(of, loaded)| is_of(of, loaded)).map(|(_, loaded)| loaded), vectors);
        let fits = |of: &Runs, loaded: &Moved| is_of(of, loaded) && loaded.offsets[0] - start < reach;
        let (columns, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|(of, loaded)| fits(of, loaded));
        all = rest;
        let columns: Vec<Moved> = columns.into_iter().map(|(_, loaded)| loaded).collect();
        let transpose = runs.transpose(&columns[0], columns.iter().map(|loaded| loaded.offsets[0]).collect());
        let has_way = way(vectors, &transpose, columns[0].dtype.bytes()).is_some();
        if has_way && transpose.columns.len() as u64 <= MOST_COLUMNS {
            made.push((Transpose { acc: names.acc(), ..transpose }, columns));
        }
    }
    made
}

/// The elements behind the first column in which those that are loaded with it begin: columns that fill the distance of the
/// runs are loaded at once, others as far as one vector of each run has them.
fn reach<'l>(runs: Runs, all: impl Iterator<Item = &'l Moved>, vectors: Vectors) -> i64 {
    let (mut starts, mut bytes): (Vec<i64>, u64) = (vec![], 1);
    all.for_each(|loaded| {
        starts.push(loaded.offsets[0]);
        bytes = loaded.dtype.bytes();
    });
    starts.dedup();
    let near = starts.iter().filter(|&&start| start - starts[0] < runs.run_stride).count() as i64;
    let are_dense = 2 * near * runs.lanes as i64 > runs.run_stride && near as u64 <= MOST_COLUMNS;
    let in_vector = i64::from(vectors.bits / 8) / bytes as i64 - (runs.lanes as i64 - 1) * runs.stride;
    let reach = if are_dense { runs.run_stride } else { in_vector.min(runs.run_stride) };
    reach.max(1)
}
