//! Transposes: loads of whole vectors, and shuffles that make columns of them; and stores, the other way round.
//!
//! [`Way::Deinterleave`], for rows that lie close together: with W elements in a vector, element `p` after the first is
//! lane `p mod W` of vector `p / W`, and the lanes of column `c` are the elements `p` with `p mod stride = c`. The
//! stride is removed factor by factor:
//!
//! - An even stride: each pair of vectors becomes its even and its odd elements, which have half the stride.
//! - An odd stride: `p mod W` differs for each element of a column, so each lane of the column is already in that lane
//!   of some vector, for lane `q` of vector `(c - q) / W` modulo the stride: the vectors rotate from lane to lane.
//!   Blends rotate the lanes among the vectors by one, two and four, by the bits of `q / W`, and one permutation
//!   finishes each column.
//!
//! [`Way::Pieces`], for rows that lie far apart: with N elements in 16 bytes, row `r` is loaded into 16 bytes number `r
//! / N` of vector `r mod N`. Then N rows by N columns are transposed within each 16 bytes of the N vectors: log2(N)
//! times, elements of the first and the second half of the vectors are interleaved. Each time rotates the bits of an
//! element's number by one, until row and column have changed places. Pieces of one line of memory are loaded together,
//! row by row, because rows a power of two apart may evict one another from the cache.
//!
//! [`Way::Runs`], for lanes that come in runs: vectors load all elements between the first and the last, and their stride is
//! removed as above if it divides the distance of the runs; where the runs lie far apart, vectors load each run. The lanes of
//! a column are then chosen from the few vectors that hold them, two at a time.

use super::Refused;
use super::address::{Access, Base};
use super::emit::Emit;
use super::storage::Cell;
use super::walk::Walk;
use crate::transposes::{PIECE_BYTES, Way, piece_starts, store_width, stored_run, way};
use cranefold_ir::Transpose;

impl<'a, E: Emit<'a>> Walk<'a, E> {
    pub(super) fn transpose(&mut self, out: &mut E, t: &Transpose) -> Result<(), Refused> {
        let from = self.access(out, Base::Buf(t.buf), &t.first)?;
        let columns = match way(out.vectors(), t, from.dtype.bytes()) {
            Some(Way::Deinterleave { vectors, width }) => self.deinterleaved(out, from, t, [vectors, width]),
            Some(Way::Pieces) => self.pieces(out, from, t),
            Some(Way::Runs) => return self.runs(out, from, t),
            None => return Err(Refused(format!("a transpose over {} by {}", t.lanes, t.stride))),
        };
        for (c, value) in (0..).zip(columns) {
            self.set_run(out, t.acc, Cell { start: c * t.lanes, lanes: t.lanes }, value)?;
        }
        Ok(())
    }

    /// Stores columns by interleaving them.
    pub(super) fn transposed_store(&mut self, out: &mut E, t: &Transpose) -> Result<(), Refused> {
        let to = self.access(out, Base::Buf(t.buf), &t.first)?;
        if t.runs > 1 {
            return self.stored_runs(out, to, t);
        }
        let Some(width) = store_width(out.vectors(), t, to.dtype.bytes()) else {
            return Err(Refused(format!("a transposed store over {} by {}", t.lanes, t.stride)));
        };
        let run = |c| Cell { start: c * t.lanes, lanes: t.lanes };
        let columns = (0..t.columns.len() as u64).map(|c| self.run(out, t.acc, run(c))).collect::<Result<_, _>>()?;
        let elements = t.elements();
        for (v, value) in (0..).zip(rows(out, columns, t.lanes, width)) {
            let lanes = (elements - v * width).min(width);
            let to = Access { lanes: Some((lanes, 1)), ..to.behind(out, (v * width) as i64) };
            out.store(to, value)?;
        }
        Ok(())
    }

    /// The columns by deinterleaving, from `vectors` vectors of `width` elements with all elements from first to last.
    fn deinterleaved(
        &mut self,
        out: &mut E,
        from: Access<E::Number>,
        t: &Transpose,
        [vectors, width]: [u64; 2],
    ) -> Vec<E::Value> {
        let span = (t.span().1 + 1) as u64;
        let load = |v: u64| {
            let [needed, known] = [span, t.within.max(span)].map(|end| (end - v * width).min(width));
            let from = from.behind(out, (v * width) as i64);
            Some(out.load_whole(self, from, [needed, known]))
        };
        let loaded = (0..vectors).map(load).collect();
        let wanted: Vec<bool> = (0..t.stride as u64).map(|start| t.columns.contains(&start)).collect();
        let made = deinterleaved(out, loaded, &wanted, width);
        t.columns.iter().map(|&column| made[column as usize].expect("a column that is wanted")).collect()
    }

    /// The columns whose lanes come in runs: each vector of them that a register holds, or the accumulator in memory.
    fn runs(&mut self, out: &mut E, from: Access<E::Number>, t: &Transpose) -> Result<(), Refused> {
        let width = u64::from(out.vectors().bits / 8) / from.dtype.bytes();
        let sources =
            if are_dense(t) { self.all_deinterleaved(out, from, t, width) } else { self.each_run(out, from, t, width) };
        let cells = self.vectors_of(t, width);
        for cell in cells {
            let lanes: Vec<(usize, u64)> =
                (cell.start..cell.end()).map(|element| sources.lane(t, element, width)).collect();
            let value = chosen(out, &lanes, &sources.vectors, width);
            self.set_run(out, t.acc, cell, value)?;
        }
        Ok(())
    }

    /// The vectors of all elements from the first to the last, with the stride of the lanes removed.
    fn all_deinterleaved(
        &mut self,
        out: &mut E,
        from: Access<E::Number>,
        t: &Transpose,
        width: u64,
    ) -> Sources<E::Value> {
        let span = (t.span().1 + 1) as u64;
        let known = t.within.max(span);
        let mut load = |v: u64| {
            let bounds = [span, known].map(|end| (end - v * width).min(width));
            let from = from.behind(out, (v * width) as i64);
            Some(out.load_whole(self, from, bounds))
        };
        let loaded: Vec<Option<E::Value>> = (0..span.div_ceil(width)).map(&mut load).collect();
        let apart = if t.run_stride % t.stride == 0 { t.stride as u64 } else { 1 };
        let wanted: Vec<bool> = (0..apart).map(|start| t.columns.iter().any(|c| c % apart == start)).collect();
        let chunks = loaded.chunks(apart as usize);
        let vectors = chunks.flat_map(|chunk| deinterleaved(out, chunk.to_vec(), &wanted, width)).collect();
        Sources { vectors, runs_apart: None, apart }
    }

    /// The vectors of the elements of each run, from that of its first lane in the first column on.
    fn each_run(&mut self, out: &mut E, from: Access<E::Number>, t: &Transpose, width: u64) -> Sources<E::Value> {
        let span = (t.span().1 + 1) as u64;
        let of_run = run_span(t);
        let mut vectors = vec![];
        for run in 0..t.runs {
            for start in (0..of_run).step_by(width as usize) {
                let start = run * t.run_stride as u64 + start;
                let bounds = [(span - start).min(width); 2];
                let from = from.behind(out, start as i64);
                vectors.push(Some(out.load_whole(self, from, bounds)));
            }
        }
        Sources { vectors, runs_apart: Some(of_run.div_ceil(width)), apart: 1 }
    }

    /// Stores columns whose lanes come in runs: each vector of a run, or of several that follow one another, is chosen from
    /// the vectors of the accumulator.
    fn stored_runs(&mut self, out: &mut E, to: Access<E::Number>, t: &Transpose) -> Result<(), Refused> {
        let bytes = to.dtype.bytes();
        let Some(of_run) = stored_run(out.vectors(), t, bytes) else {
            return Err(Refused(format!("a transposed store over {} by {}, {}", t.runs, t.run_stride, t.lanes)));
        };
        let width = u64::from(out.vectors().bits / 8) / bytes;
        let cells = self.vectors_of(t, width);
        let vectors: Vec<Option<E::Value>> =
            cells.iter().map(|&cell| self.run(out, t.acc, cell).map(Some)).collect::<Result<_, _>>()?;
        // The element of the accumulator at each place of a run.
        let mut elements = vec![0; of_run as usize];
        for (c, &column) in (0..).zip(&t.columns) {
            let place = |lane: u64| (column + lane * t.stride as u64) as usize;
            (0..t.lanes).for_each(|lane| elements[place(lane)] = c * t.column_elements() + lane);
        }
        let source = |place: u64| {
            let element = elements[(place % of_run) as usize] + place / of_run * t.lanes;
            let n = cells.iter().position(|cell| (cell.start..cell.end()).contains(&element));
            let n = n.expect("a vector of each element");
            (n, element - cells[n].start)
        };
        let follow = of_run == t.run_stride as u64;
        let (runs, len) = if follow { (1, of_run * t.runs) } else { (t.runs, of_run) };
        for run in 0..runs {
            for start in (0..len).step_by(width as usize) {
                let count = (len - start).min(width);
                let lanes: Vec<(usize, u64)> = (run * len + start..run * len + start + count).map(source).collect();
                let value = chosen(out, &lanes, &vectors, width);
                let at = run as i64 * t.run_stride + start as i64;
                let to = to.behind(out, at);
                out.store(Access { lanes: Some((count, 1)), ..to }, value)?;
            }
        }
        Ok(())
    }

    /// The vectors of a transpose's accumulator: its registers, or whole vectors in memory.
    fn vectors_of(&self, t: &Transpose, width: u64) -> Vec<Cell> {
        match self.storage.cells.get(&t.acc) {
            Some(cells) => cells.clone(),
            None => (0..t.elements())
                .step_by(width as usize)
                .map(|start| Cell { start, lanes: (t.elements() - start).min(width) })
                .collect(),
        }
    }

    /// The columns by pieces of rows.
    fn pieces(&mut self, out: &mut E, from: Access<E::Number>, t: &Transpose) -> Vec<E::Value> {
        let bytes = from.dtype.bytes();
        let in_piece = PIECE_BYTES / bytes;
        let starts = piece_starts(&t.columns, bytes);
        let last = t.span().1 as i64;
        let mut vectors: Vec<Vec<E::Value>> = vec![vec![]; starts.len()];
        for row in 0..t.lanes {
            let (group, place) = (row / in_piece, (row % in_piece) as usize);
            for (&start, vectors) in starts.iter().zip(&mut vectors) {
                let element = row as i64 * t.stride + start as i64;
                // A piece that would reach beyond the last element starts earlier than its column.
                let skipped = (element + in_piece as i64 - 1 - last).max(0);
                let into = (group > 0).then(|| (vectors[place], group));
                let from = from.behind(out, element - skipped);
                let piece = out.load_piece(self, from, skipped as u64, into);
                match group {
                    0 => vectors.push(piece),
                    _ => vectors[place] = piece,
                }
            }
        }
        let made: Vec<Vec<E::Value>> = vectors.into_iter().map(|rows| turned(out, rows, in_piece as usize)).collect();
        let column = |column: &u64| {
            let piece = starts.iter().position(|start| (*start..start + in_piece).contains(column));
            let piece = piece.expect("a piece for each column");
            made[piece][(column - starts[piece]) as usize]
        };
        t.columns.iter().map(column).collect()
    }
}

/// Vectors from which the columns of a transpose are chosen.
struct Sources<V> {
    vectors: Vec<Option<V>>,
    /// The vectors of a run, where each run has vectors of its own.
    runs_apart: Option<u64>,
    /// The number of vectors that have the elements at each distance from the first by its remainder.
    apart: u64,
}

impl<V> Sources<V> {
    /// The number of the vector that has an element of a transpose's accumulator, and the lane there.
    fn lane(&self, t: &Transpose, element: u64, width: u64) -> (usize, u64) {
        let (column, n) = (element / t.column_elements(), element % t.column_elements());
        let (run, in_run) = (n / t.lanes, t.columns[column as usize] + n % t.lanes * t.stride as u64);
        if let Some(vectors) = self.runs_apart {
            return ((run * vectors + in_run / width) as usize, in_run % width);
        }
        let place = run * t.run_stride as u64 + in_run;
        let (at, start) = (place / self.apart, place % self.apart);
        ((at / width * self.apart + start) as usize, at % width)
    }
}

/// Returns true if the columns are most of the elements between the first and the last.
fn are_dense(t: &Transpose) -> bool {
    2 * i128::from(t.elements()) > t.span().1
}

/// The elements from the first lane of a run, in the first column, to the last lane, in the last column.
fn run_span(t: &Transpose) -> u64 {
    t.columns.last().map_or(0, |column| column + (t.lanes - 1) * t.stride as u64 + 1)
}

/// The vector of `width` elements whose lanes are these of other vectors: of each the number of the vector, and the lane in it.
fn chosen<'a, E: Emit<'a>>(out: &mut E, lanes: &[(usize, u64)], vectors: &[Option<E::Value>], width: u64) -> E::Value {
    let value = |n: usize| vectors[n].expect("a vector that is wanted");
    let mut from: Vec<usize> = lanes.iter().map(|&(n, _)| n).collect();
    from.sort_unstable();
    from.dedup();
    let in_width = |order: &mut dyn Iterator<Item = u64>| -> Vec<u64> {
        let mut order: Vec<u64> = order.collect();
        order.resize(width as usize, 0);
        order
    };
    let mut made = value(from[0]);
    if from.len() == 1 {
        let order = in_width(&mut lanes.iter().map(|&(_, lane)| lane));
        let is_in_order = (0..).zip(lanes).all(|(at, &(_, lane))| at == lane);
        return if is_in_order { made } else { out.permuted(made, &order) };
    }
    // The lanes of the first vector go to their places as those of the second do; after that, they are there.
    for (of, &next) in from.iter().enumerate().skip(1) {
        let lane = |(at, &(n, lane)): (u64, &(usize, u64))| match n {
            n if n == next => width + lane,
            n if of > 1 || n != from[0] => at,
            _ => lane,
        };
        let order = in_width(&mut (0..).zip(lanes).map(lane));
        made = out.chosen([made, value(next)], &order);
    }
    made
}

/// Transposes rows to columns, in `count` vectors; there may be fewer rows.
fn turned<'a, E: Emit<'a>>(out: &mut E, mut vectors: Vec<E::Value>, count: usize) -> Vec<E::Value> {
    // The lanes of missing rows may hold anything.
    vectors.resize(count, vectors[0]);
    for _ in 0..count.ilog2() {
        let (first, second) = vectors.split_at(count / 2);
        vectors = first.iter().zip(second).flat_map(|(&a, &b)| out.interleaved([a, b])).collect();
    }
    vectors
}

/// The columns of elements `stride` apart that begin at the `wanted` starts, from vectors of `width` elements.
fn deinterleaved<'a, E: Emit<'a>>(
    out: &mut E,
    vectors: Vec<Option<E::Value>>,
    wanted: &[bool],
    width: u64,
) -> Vec<Option<E::Value>> {
    let stride = wanted.len();
    if stride == 1 {
        return vec![vectors[0]];
    }
    if !stride.is_multiple_of(2) {
        return rotated(out, vectors, stride as u64, width);
    }
    // The columns with even starts are among the even elements.
    let mut halves = [vec![], vec![]];
    for pair in vectors.chunks(2) {
        let a = pair[0].expect("the loads have no holes");
        let b = pair.last().copied().flatten().unwrap_or(a);
        let both = out.evens_and_odds([a, b], width);
        halves.iter_mut().zip(both).for_each(|(half, value)| half.push(Some(value)));
    }
    let mut all = vec![None; stride];
    for (odd, half) in halves.into_iter().enumerate() {
        let wanted: Vec<bool> = wanted.iter().copied().skip(odd).step_by(2).collect();
        if wanted.contains(&true) {
            let each = deinterleaved(out, half, &wanted, width);
            each.into_iter().enumerate().for_each(|(c, value)| all[2 * c + odd] = value);
        }
    }
    all
}

/// The columns with an odd stride, by their starts.
fn rotated<'a, E: Emit<'a>>(
    out: &mut E,
    mut vectors: Vec<Option<E::Value>>,
    stride: u64,
    width: u64,
) -> Vec<Option<E::Value>> {
    let by_width = (1..stride).find(|v| v * width % stride == 1).expect("a power of two has an inverse");
    let turns = |q: u64| by_width * q % stride;
    vectors.resize(stride as usize, None);
    let mut turn = 1;
    while turn < stride {
        let moves: Vec<bool> = (0..width).map(|q| turns(q) & turn != 0).collect();
        let rotated = (0..stride).map(|v| {
            let from = vectors[((v + stride - turn) % stride) as usize];
            match (vectors[v as usize], from) {
                (Some(stays), Some(from)) => Some(out.blended([stays, from], &moves)),
                (stays, from) => stays.or(from),
            }
        });
        vectors = rotated.collect();
        turn *= 2;
    }
    let column = |c: u64| {
        let order: Vec<u64> = (0..width).map(|lane| (stride * lane + c) % width).collect();
        vectors[turns(c) as usize].map(|from| out.permuted(from, &order))
    };
    (0..stride).map(column).collect()
}

/// The rows one after the other, in vectors of `width` elements, of columns with so many lanes: deinterleaving backwards.
fn rows<'a, E: Emit<'a>>(out: &mut E, columns: Vec<E::Value>, lanes: u64, width: u64) -> Vec<E::Value> {
    let stride = columns.len();
    if stride == 1 {
        return columns;
    }
    let count = (stride as u64 * lanes).div_ceil(width) as usize;
    if !stride.is_multiple_of(2) {
        return rotated_back(out, columns, count, width);
    }
    let [even, odd] = [0, 1].map(|odd| {
        let half = columns.iter().copied().skip(odd).step_by(2).collect();
        rows(out, half, lanes, width)
    });
    let pairs = even.into_iter().zip(odd);
    pairs.flat_map(|(a, b)| out.by_turns([a, b], width)).take(count).collect()
}

/// The first `count` vectors with the elements of columns, of which there is an odd number, by turns.
fn rotated_back<'a, E: Emit<'a>>(out: &mut E, columns: Vec<E::Value>, count: usize, width: u64) -> Vec<E::Value> {
    let stride = columns.len() as u64;
    let by_width = (1..stride).find(|v| v * width % stride == 1).expect("a power of two has an inverse");
    let turns = |q: u64| by_width * q % stride;
    // The vectors that a step of the rotation needs, the last step first.
    let mut steps = vec![];
    let mut needed: Vec<bool> = (0..stride).map(|v| v < count as u64).collect();
    let mut turn = 1;
    while turn < stride {
        let before = |v: u64| needed[v as usize] || needed[((v + stride - turn) % stride) as usize];
        let before = (0..stride).map(before).collect();
        steps.push((turn, std::mem::replace(&mut needed, before)));
        turn *= 2;
    }
    let mut vectors: Vec<Option<E::Value>> = vec![None; stride as usize];
    for (c, column) in (0..).zip(columns) {
        let mut order = vec![0; width as usize];
        (0..width).for_each(|lane| order[((stride * lane + c) % width) as usize] = lane);
        let at = turns(c) as usize;
        vectors[at] = needed[at].then(|| out.permuted(column, &order));
    }
    for (turn, needed) in steps.into_iter().rev() {
        let moves: Vec<bool> = (0..width).map(|q| turns(q) & turn != 0).collect();
        let rotated = (0..stride).map(|v| {
            let [stays, from] = [v, (v + turn) % stride].map(|v| vectors[v as usize]);
            needed[v as usize].then(|| out.blended([stays, from].map(|v| v.expect("a vector that is needed")), &moves))
        });
        vectors = rotated.collect();
    }
    vectors.into_iter().map_while(|vector| vector).collect()
}
