//! Loads the rows of an accumulator together.

use super::lanes::lanes_of;
use crate::schedule::Schedule;
use crate::transposes::{MOST_COLUMNS, way};
use crate::vectors::Vectors;
use cranefold_ir::analysis::{Access, Zone, visit_accesses};
use cranefold_ir::{AccId, BufId, BufferRole, DType, Expr, Index, LoopKind, Names, Nest, Scalar, Stmt, Transpose};
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
    let is_input = nest.buffers.iter().map(|b| b.role == BufferRole::In).collect();
    let mut rows = Rows { is_input, inside: vectors, names: Names::after(&nest) };
    let body = rows.body(nest.body, Zone::Outside);
    Nest { body, ..nest }
}

struct Rows {
    /// For each buffer, true if it is an input.
    is_input: Vec<bool>,
    /// The vectors of wide functions.
    inside: Vectors,
    names: Names,
}

/// An accumulator that a body declares, and of which loads in lanes set each element once.
struct Loaded {
    acc: AccId,
    dtype: DType,
    buf: BufId,
    /// The index of the loads without the lanes and without the constant.
    terms: Index,
    /// The constant of the load of each element.
    offsets: Vec<i64>,
    /// The numbers of the statements: the declaration and the loads.
    stmts: Vec<usize>,
}

/// Runs of elements: their lanes and the elements between two of those, and the same of runs.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Runs {
    lanes: u64,
    stride: i64,
    runs: u64,
    run_stride: i64,
}

impl Rows {
    fn body(&mut self, body: Vec<Stmt>, zone: Zone) -> Vec<Stmt> {
        let mut inner = |stmt: Stmt| {
            if matches!(&stmt, Stmt::For(l) if l.kind == LoopKind::Lanes) {
                return stmt;
            }
            let zone = if matches!(stmt, Stmt::Wide { .. }) { Zone::Wide } else { zone };
            stmt.with_body(|body| self.body(body, zone))
        };
        let body: Vec<Stmt> = body.into_iter().map(&mut inner).collect();
        if zone == Zone::Outside {
            return body;
        }
        let made = self.made(&body);
        if made.is_empty() {
            return body;
        }
        let mut read_from: FxHashMap<AccId, (AccId, i64)> = FxHashMap::default();
        let mut dropped = vec![];
        let mut placed: FxHashMap<usize, Vec<Stmt>> = FxHashMap::default();
        for (t, columns) in made {
            for loaded in &columns {
                let column = t.columns.iter().position(|&c| t.first.offset + c as i64 == loaded.offsets[0]);
                let column = column.expect("a column of each") as u64;
                read_from.insert(loaded.acc, (t.acc, (column * t.column_elements()) as i64));
                dropped.extend(&loaded.stmts);
            }
            let first = columns.iter().filter_map(|loaded| loaded.stmts.first().copied()).min().unwrap_or(0);
            let dtype = columns[0].dtype;
            let acc = Stmt::Acc { acc: t.acc, dtype, len: t.elements(), init: Scalar::from_bits(dtype, 0) };
            placed.entry(first).or_default().extend([acc, Stmt::Transpose(t)]);
        }
        let mut out = vec![];
        for (at, stmt) in body.into_iter().enumerate() {
            out.extend(placed.remove(&at).into_iter().flatten());
            if !dropped.contains(&at) {
                out.push(reading(stmt, &read_from));
            }
        }
        out
    }

    /// The transposes of a body, each with the accumulators that are its columns.
    fn made(&mut self, body: &[Stmt]) -> Vec<(Transpose, Vec<Loaded>)> {
        let mut all: Vec<(Runs, Loaded)> =
            self.loaded(body).into_iter().filter_map(|loaded| Some((Runs::of(&loaded.offsets)?, loaded))).collect();
        all.sort_by_key(|(_, loaded)| loaded.offsets[0]);
        let mut made = vec![];
        while !all.is_empty() {
            let (runs, first) = &all[0];
            let (runs, buf, terms, start) = (*runs, first.buf, first.terms.clone(), first.offsets[0]);
            let is_of = |of: &Runs, loaded: &Loaded| (of, loaded.buf, &loaded.terms) == (&runs, buf, &terms);
            let reach = runs.reach(all.iter().filter(|(of, loaded)| is_of(of, loaded)), self.inside);
            let fits = |of: &Runs, loaded: &Loaded| is_of(of, loaded) && loaded.offsets[0] - start < reach;
            let (columns, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|(of, loaded)| fits(of, loaded));
            all = rest;
            let mut offsets: Vec<i64> = columns.iter().map(|(_, loaded)| loaded.offsets[0]).collect();
            offsets.dedup();
            let transpose = Transpose {
                acc: AccId(0),
                buf,
                first: terms.offset_by(start),
                lanes: runs.lanes,
                stride: runs.stride,
                runs: runs.runs,
                run_stride: runs.run_stride,
                columns: offsets.iter().map(|offset| offset.abs_diff(start)).collect(),
                within: 0,
            };
            let bytes = columns[0].1.dtype.bytes();
            if way(self.inside, &transpose, bytes).is_some() && transpose.columns.len() as u64 <= MOST_COLUMNS {
                let transpose = Transpose { acc: self.names.acc(), ..transpose };
                made.push((transpose, columns.into_iter().map(|(_, loaded)| loaded).collect()));
            }
        }
        made
    }

    /// The accumulators of a body of which loads in lanes set each element once, and nothing else does.
    fn loaded(&self, body: &[Stmt]) -> Vec<Loaded> {
        let mut all: FxHashMap<AccId, (Loaded, Vec<Option<i64>>)> = FxHashMap::default();
        let mut others: Vec<AccId> = vec![];
        for (at, stmt) in body.iter().enumerate() {
            if let Stmt::Acc { acc, dtype, len, .. } = stmt {
                let (buf, terms) = (BufId(u32::MAX), Index::default());
                let loaded = Loaded { acc: *acc, dtype: *dtype, buf, terms, offsets: vec![], stmts: vec![at] };
                all.insert(*acc, (loaded, vec![None; *len as usize]));
            } else if let Some((acc, load)) = self.load(stmt)
                && let Some((loaded, offsets)) = all.get_mut(&acc)
            {
                let Load { buf, terms, start, of_lanes } = load;
                let is_first = loaded.stmts.len() == 1;
                let is_one = is_first || (loaded.buf == buf && loaded.terms == terms);
                (loaded.buf, loaded.terms) = (buf, terms);
                loaded.stmts.push(at);
                for (n, offset) in (start..).zip(of_lanes) {
                    match offsets.get_mut(n as usize) {
                        Some(none @ None) if is_one => *none = Some(offset),
                        _ => others.push(acc),
                    }
                }
            } else {
                visit_accesses(stmt, &mut |acc, access| match access {
                    Access::Read(_) | Access::Declared => {}
                    Access::Set(_) | Access::Combined | Access::Transposed | Access::Stored | Access::Selected => {
                        others.push(acc);
                    }
                });
            }
        }
        others.iter().for_each(|acc| _ = all.remove(acc));
        let mut all: Vec<Loaded> = all
            .into_values()
            .filter_map(|(loaded, offsets)| {
                Some(Loaded { offsets: offsets.into_iter().collect::<Option<Vec<i64>>>()?, ..loaded })
            })
            .collect();
        all.sort_by_key(|loaded| loaded.stmts[0]);
        all
    }

    /// The accumulator that a loop over lanes sets to elements of an input, and nothing else, with the load.
    fn load(&self, stmt: &Stmt) -> Option<(AccId, Load)> {
        let (var, lanes) = lanes_of(stmt)?;
        let [Stmt::Set { acc, index, value: Expr::Load(buf, _, of) }] = stmt.body() else { return None };
        let own = index.clone().plus(var, -1);
        let stride = of.coefficient(var);
        if index.coefficient(var) != 1 || !own.is_constant() || !self.is_input[buf.0 as usize] {
            return None;
        }
        let terms = of.clone().plus(var, -stride).offset_by(-of.offset);
        let of_lanes = (0..lanes as i64).map(|n| of.offset + stride * n).collect();
        Some((*acc, Load { buf: *buf, terms, start: own.offset, of_lanes }))
    }
}

/// A load in lanes.
struct Load {
    buf: BufId,
    /// The index without the lanes and without the constant.
    terms: Index,
    /// The element of the accumulator that the first lane sets.
    start: i64,
    /// The constant of the index in each lane.
    of_lanes: Vec<i64>,
}

impl Runs {
    /// The runs in which these elements come; `None` if they are one run, or no runs at one distance.
    fn of(offsets: &[i64]) -> Option<Runs> {
        let [first, second, ..] = offsets else { return None };
        let stride = second - first;
        let lanes = 1 + offsets.windows(2).take_while(|pair| pair[1] - pair[0] == stride).count();
        let run_stride = offsets.get(lanes)? - first;
        let place = |n: usize| first + run_stride * (n / lanes) as i64 + stride * (n % lanes) as i64;
        let fits = offsets.len().is_multiple_of(lanes) && (0..).zip(offsets).all(|(n, &offset)| place(n) == offset);
        fits.then_some(Runs { lanes: lanes as u64, stride, runs: (offsets.len() / lanes) as u64, run_stride })
    }

    /// The elements behind the first column in which those that are loaded with it begin: columns that fill the distance of
    /// the runs are loaded at once, others as far as one vector of each run has them.
    fn reach<'l>(&self, all: impl Iterator<Item = &'l (Runs, Loaded)>, vectors: Vectors) -> i64 {
        let (mut offsets, mut bytes): (Vec<i64>, u64) = (vec![], 1);
        all.for_each(|(_, loaded)| {
            offsets.push(loaded.offsets[0]);
            bytes = loaded.dtype.bytes();
        });
        offsets.sort_unstable();
        offsets.dedup();
        let near = offsets.iter().filter(|&&offset| offset - offsets[0] < self.run_stride).count() as i64;
        let are_dense = 2 * near * self.lanes as i64 > self.run_stride && near as u64 <= MOST_COLUMNS;
        let in_vector = i64::from(vectors.bits / 8) / bytes as i64 - (self.lanes as i64 - 1) * self.stride;
        let reach = if are_dense { self.run_stride } else { in_vector.min(self.run_stride) };
        reach.max(1)
    }
}

/// The statement with reads of the transposes' accumulators in place of those of their columns.
fn reading(stmt: Stmt, from: &FxHashMap<AccId, (AccId, i64)>) -> Stmt {
    let read = |e: Expr| match e {
        Expr::Read(acc, dtype, index) => match from.get(&acc) {
            Some(&(of, start)) => Expr::Read(of, dtype, index.offset_by(start)),
            None => Expr::Read(acc, dtype, index),
        },
        e @ (Expr::Const(_) | Expr::Var(..) | Expr::Load(..) | Expr::At(..) | Expr::Op(..) | Expr::Call(..)) => e,
    };
    let stmt = stmt.with_body(|body| body.into_iter().map(|stmt| reading(stmt, from)).collect());
    stmt.map_exprs(&mut |e| e.rewrite(&mut { read }))
}
