//! Accumulators whose elements are loaded or stored in lanes, run by run.

use super::lanes::lanes_of;
use cranefold_ir::analysis::{Access, visit_accesses};
use cranefold_ir::{AccId, BufId, DType, Expr, Index, Scalar, Stmt, Transpose};
use rustc_hash::FxHashMap;

/// The most elements of an accumulator that is one column: registers hold several of them.
const MOST_ELEMENTS: u64 = 256;

/// The most lanes of a run, and the most runs, that a transpose in a nest has.
const MOST_LANES: usize = 64;

/// The way of elements: from an input into an accumulator, or from there to an output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Loaded,
    Stored,
}

/// An accumulator that a body declares, and of which loads, or stores, in lanes name each element once. Nothing else sets an
/// element that is loaded, and nothing reads one before all are; nothing else reads an element that is stored, and nothing sets
/// one after that.
pub(super) struct Moved {
    pub acc: AccId,
    pub dtype: DType,
    pub buf: BufId,
    /// The index in the buffer without the lanes and without the constant.
    pub terms: Index,
    /// The constant of the index of each element.
    pub offsets: Vec<i64>,
    /// The numbers of the statements: the declaration, and the loads or stores.
    pub stmts: Vec<usize>,
}

/// Loads or stores of the lanes of one statement.
struct Lanes {
    acc: AccId,
    buf: BufId,
    terms: Index,
    /// The element of the accumulator that the first lane names.
    start: i64,
    /// The constant of the index in each lane.
    offsets: Vec<i64>,
}

/// Runs of elements: their lanes and the elements between two of those, and the same of runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Runs {
    pub lanes: u64,
    pub stride: i64,
    pub runs: u64,
    pub run_stride: i64,
}

/// The accumulators of a body whose elements all come this way, in runs.
pub(super) fn moved(body: &[Stmt], direction: Direction) -> Vec<(Runs, Moved)> {
    let is_column = |stmt: &Stmt| matches!(stmt, Stmt::Acc { len: ..=MOST_ELEMENTS, .. });
    let Some(last) = body.iter().rposition(is_column) else { return vec![] };
    let mut all: FxHashMap<AccId, (Moved, Vec<Option<i64>>)> = FxHashMap::default();
    for (at, stmt) in body.iter().enumerate() {
        if at > last && all.is_empty() {
            break;
        }
        if let Stmt::Acc { acc, dtype, len: len @ ..=MOST_ELEMENTS, .. } = stmt {
            let (buf, terms) = (BufId(u32::MAX), Index::default());
            let moved = Moved { acc: *acc, dtype: *dtype, buf, terms, offsets: vec![], stmts: vec![at] };
            all.insert(*acc, (moved, vec![None; *len as usize]));
        } else if let Some(lanes) = lanes(stmt, direction)
            && let Some((moved, offsets)) = all.get_mut(&lanes.acc)
        {
            let Lanes { acc, buf, terms, start, offsets: of_lanes } = lanes;
            let is_one = moved.stmts.len() == 1 || (moved.buf == buf && moved.terms == terms);
            (moved.buf, moved.terms) = (buf, terms);
            moved.stmts.push(at);
            let is_each_once = (start..).zip(of_lanes).all(|(n, offset)| match offsets.get_mut(n as usize) {
                Some(none @ None) if is_one => {
                    *none = Some(offset);
                    true
                }
                _ => false,
            });
            if !is_each_once {
                all.remove(&acc);
            }
        } else {
            visit_accesses(stmt, &mut |acc, access| {
                let Some((moved, offsets)) = all.get(&acc) else { return };
                let keeps = match (access, direction) {
                    (Access::Declared, _) => true,
                    (Access::Read(_), Direction::Loaded) => offsets.iter().all(Option::is_some),
                    (Access::Set(_), Direction::Stored) => moved.stmts.len() == 1,
                    (Access::Read(_) | Access::Set(_) | Access::Combined, _) => false,
                    (Access::Transposed | Access::Stored | Access::Selected, _) => false,
                };
                if !keeps {
                    all.remove(&acc);
                }
            });
        }
    }
    let in_runs = |(moved, offsets): (Moved, Vec<Option<i64>>)| {
        let offsets = offsets.into_iter().collect::<Option<Vec<i64>>>()?;
        Some((Runs::of(&offsets)?, Moved { offsets, ..moved }))
    };
    let mut all: Vec<(Runs, Moved)> = all.into_values().filter_map(in_runs).collect();
    all.sort_by_key(|(_, moved)| (moved.offsets[0], moved.stmts[0]));
    all
}

/// The loads or stores of a loop over lanes that does nothing else.
fn lanes(stmt: &Stmt, direction: Direction) -> Option<Lanes> {
    let (var, count) = lanes_of(stmt)?;
    let (acc, index, buf, of) = match (stmt.body(), direction) {
        ([Stmt::Set { acc, index, value: Expr::Load(buf, _, of) }], Direction::Loaded) => (acc, index, buf, of),
        ([Stmt::Store { buf, index: of, value: Expr::Read(acc, _, index) }], Direction::Stored) => {
            (acc, index, buf, of)
        }
        _ => return None,
    };
    let own = index.clone().plus(var, -1);
    let stride = of.coefficient(var);
    let terms = of.clone().plus(var, -stride).offset_by(-of.offset);
    let offsets = (0..count as i64).map(|n| of.offset + stride * n).collect();
    let is_run = index.coefficient(var) == 1 && own.is_constant();
    is_run.then_some(Lanes { acc: *acc, buf: *buf, terms, start: own.offset, offsets })
}

impl Runs {
    /// The runs in which these elements come; `None` if they are one run, or no runs at one distance.
    fn of(offsets: &[i64]) -> Option<Runs> {
        let [first, second, ..] = offsets else { return None };
        let stride = second - first;
        let lanes = 1 + offsets.windows(2).take_while(|pair| pair[1] - pair[0] == stride).count();
        let run_stride = offsets.get(lanes)? - first;
        let is_short = lanes <= MOST_LANES && offsets.len() <= MOST_LANES * lanes;
        let place = |n: usize| first + run_stride * (n / lanes) as i64 + stride * (n % lanes) as i64;
        let fits = offsets.len().is_multiple_of(lanes) && (0..).zip(offsets).all(|(n, &offset)| place(n) == offset);
        (is_short && fits).then_some(Runs {
            lanes: lanes as u64,
            stride,
            runs: (offsets.len() / lanes) as u64,
            run_stride,
        })
    }

    /// The transpose whose columns, each once, begin at these elements, in ascending order.
    pub fn transpose(self, of: &Moved, mut starts: Vec<i64>) -> Transpose {
        starts.dedup();
        let first = starts[0];
        Transpose {
            acc: AccId(0),
            buf: of.buf,
            first: of.terms.clone().offset_by(first),
            lanes: self.lanes,
            stride: self.stride,
            runs: self.runs,
            run_stride: self.run_stride,
            columns: starts.iter().map(|start| start.abs_diff(first)).collect(),
            within: 0,
        }
    }
}

impl Moved {
    /// The first element of the accumulator in that of a transpose in which it is a column.
    pub fn start_in(&self, t: &Transpose) -> i64 {
        let column = t.columns.iter().position(|&c| t.first.offset + c as i64 == self.offsets[0]);
        (column.expect("a column of each") as u64 * t.column_elements()) as i64
    }

    /// The declaration of the accumulator of a transpose in which it is a column.
    pub fn declared(&self, t: &Transpose) -> Stmt {
        Stmt::Acc { acc: t.acc, dtype: self.dtype, len: t.elements(), init: Scalar::from_bits(self.dtype, 0) }
    }
}
