//! The accumulators that live in registers.
//!
//! An accumulator whose indices are all constant (except for lanes) is cut into cells: runs of elements that are read
//! and written together, one register each. A smaller access inside a cell takes lanes out of the register, and where
//! vectors join, a read may begin in a register of a whole vector and end in the next one.
//! Accumulators live in memory if they have other indices, other accesses that overlap without nesting, more cells than
//! [`MOST_CELLS`], or selections, and if a wide function shares them with the code around it.
//!
//! Where several [`Copies`] of the same lanes follow one another, the cells are those of the other accesses.
//!
//! The lanes of two loops are one run if the outer loop moves by the lanes of the inner one; if it moves by twice as
//! many, they are halves of two adjacent runs.

use super::Copies;
use crate::transposes::MOST_COLUMNS;
use crate::vectors::Vectors;
use cranefold_ir::{AccId, DType, Expr, Extent, Index, Loop, LoopKind, LoopVar, Nest, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The most registers one accumulator takes.
const MOST_CELLS: usize = 64;

const _: () = assert!(MOST_COLUMNS as usize <= MOST_CELLS);

/// The elements of a register: the first, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    pub start: u64,
    pub lanes: u64,
}

impl Cell {
    /// The element after the last.
    pub fn end(self) -> u64 {
        self.start + self.lanes
    }
}

/// The longest runs that begin at an element.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    /// Elements that are read or written.
    lanes: u64,
    /// Elements that are written.
    written: u64,
}

/// The registers of accumulators.
pub struct Cells {
    /// The cells of each accumulator that lives in registers.
    pub cells: FxHashMap<AccId, Vec<Cell>>,
    /// The accumulators of which reads join two.
    pub joining: FxHashSet<AccId>,
    /// The accumulators of which some statement takes one element outside of lanes, or in all lanes alike.
    pub alike: FxHashSet<AccId>,
}

/// The registers of the accumulators of a nest.
pub fn cells(nest: &Nest, vectors: Vectors) -> Cells {
    let mut accesses = Accesses::of(vectors);
    accesses.body(&nest.body, None);
    let mut joining = FxHashSet::default();
    let in_registers = |(acc, runs): (AccId, BTreeMap<u64, Run>)| {
        if accesses.dynamic.contains(&acc) {
            return None;
        }
        let &(in_function, dtype) = accesses.declared.get(&acc)?;
        let joined = vectors.joined_lanes(dtype.bytes()).filter(|_| in_function != OUTSIDE);
        let mut cells: Vec<Cell> = vec![];
        // The elements of the next cell that a read needs.
        let mut needed: Vec<Cell> = vec![];
        // Runs are sorted by start.
        for (start, run) in runs {
            let Some(cell) = cells.last().filter(|cell| start < cell.end()) else {
                cells.push(Cell { start, lanes: run.lanes });
                continue;
            };
            let end = start + run.lanes;
            if end > cell.end() {
                if start + run.written > cell.end() || joined != Some(cell.lanes) {
                    return None;
                }
                needed.push(Cell { start: cell.end(), lanes: end - cell.end() });
            }
        }
        // A store of runs takes elements that nothing else names from memory, which has their initial values.
        let stored = accesses.stored.get(&acc).copied().unwrap_or(0);
        let follow = cells.iter().try_fold(0, |end, cell| (cell.start <= end).then_some(cell.end()));
        if follow.is_none_or(|end| end < stored) && stored > 0 {
            return None;
        }
        let has = |part: &Cell| cells.iter().any(|cell| cell.start == part.start && cell.lanes >= part.lanes);
        if !needed.iter().all(has) || cells.len() > MOST_CELLS {
            return None;
        }
        if !needed.is_empty() {
            joining.insert(acc);
        }
        Some((acc, cells))
    };
    let cells = accesses.runs.into_iter().filter_map(in_registers).collect();
    Cells { cells, joining, alike: accesses.alike }
}

/// The cell that holds an element.
pub fn cell_of(cells: &[Cell], element: u64) -> Cell {
    *cells.iter().find(|c| c.start <= element && element < c.start + c.lanes).expect("an element in a cell")
}

/// The lanes that a vector has at the start or at the end of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The lanes from the variable's number on.
    From(LoopVar),
    /// The lanes below it.
    Below(LoopVar),
}

/// The loops whose iterations are the lanes of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    /// The loop over lanes side by side, the inner one of two.
    pub var: LoopVar,
    pub lanes: u64,
    /// The outer loop of two, with the lanes of the inner one.
    pub outer: Option<(LoopVar, u64)>,
    /// The lanes that are left out.
    pub edge: Option<Edge>,
}

/// The place of a vector's lanes in an accumulator.
pub enum CellLanes {
    /// Elements side by side, from this index on.
    Run(Index),
    /// Halves of two adjacent vectors, from `start` on: in each group of twice `half` lanes, the lower or the upper
    /// half.
    Halves { start: Index, half: u64, upper: bool },
}

impl Vector {
    /// The vector whose lanes are a loop's iterations, with the statements in it.
    pub fn of(l: &Loop) -> Option<(Vector, &[Stmt])> {
        let n = l.extent.lanes().filter(|_| l.kind == LoopKind::Lanes)?;
        let edge = match l.extent {
            Extent::Const(_) | Extent::Carry(_) => None,
            Extent::From(var, _) => Some(Edge::From(var)),
            Extent::Below(var, _) => Some(Edge::Below(var)),
        };
        match &l.body[..] {
            [Stmt::For(inner)] => {
                let Extent::Const(half) = inner.extent else { return None };
                Some((Vector { var: inner.var, lanes: n * half, outer: Some((l.var, half)), edge }, &inner.body))
            }
            body => Some((Vector { var: l.var, lanes: n, outer: None, edge }, body)),
        }
    }

    /// The place of the lanes that an index names; `None` if they are neither a run nor halves.
    pub fn place(&self, index: &Index) -> Option<CellLanes> {
        let Some((outer, half)) = self.outer else { return Some(CellLanes::Run(index.clone())) };
        let (own, all) = (half as i64, index.coefficient(outer));
        let inner = index.clone().plus(outer, -all);
        match all {
            _ if [(0, 0), (own, 1)].contains(&(all, index.coefficient(self.var))) => Some(CellLanes::Run(inner)),
            _ if (all, index.coefficient(self.var)) == (2 * own, 1) => {
                let ahead = index.offset.rem_euclid(2 * own);
                let start = inner.offset_by(-ahead);
                (ahead % own == 0).then_some(CellLanes::Halves { start, half, upper: ahead == own })
            }
            _ => None,
        }
    }
}

/// The number of the code around wide functions.
const OUTSIDE: u32 = 0;

struct Accesses {
    vectors: Vectors,
    runs: FxHashMap<AccId, BTreeMap<u64, Run>>,
    dynamic: FxHashSet<AccId>,
    alike: FxHashSet<AccId>,
    /// The elements that a store of runs takes, of each accumulator that has one.
    stored: FxHashMap<AccId, u64>,
    /// The wide function that declares each accumulator, and its type.
    declared: FxHashMap<AccId, (u32, DType)>,
    wide_functions: u32,
    wide_function: u32,
}

impl Accesses {
    fn of(vectors: Vectors) -> Accesses {
        Accesses {
            vectors,
            runs: FxHashMap::default(),
            dynamic: FxHashSet::default(),
            alike: FxHashSet::default(),
            stored: FxHashMap::default(),
            declared: FxHashMap::default(),
            wide_functions: 0,
            wide_function: OUTSIDE,
        }
    }

    fn body(&mut self, body: &[Stmt], lane: Option<Vector>) {
        let mut rest = body;
        while let Some((stmt, after)) = rest.split_first() {
            if let Some(copies) = self.copies(rest) {
                // The registers are those that other statements read or write.
                self.reads(copies.value, Some(copies.vector));
                rest = &rest[copies.statements..];
                continue;
            }
            rest = after;
            for e in stmt.exprs() {
                self.reads(e, lane);
            }
            if let Stmt::Transpose(t) | Stmt::TransposedStore(t) = stmt {
                self.alike.insert(t.acc);
            }
            match stmt {
                Stmt::Acc { acc, dtype, .. } => {
                    self.declared.insert(*acc, (self.wide_function, *dtype));
                }
                Stmt::Wide { body } => {
                    self.wide_functions += 1;
                    self.wide_function = self.wide_functions;
                    self.body(body, lane);
                    self.wide_function = OUTSIDE;
                }
                Stmt::Set { acc, index, .. } => self.access(*acc, index, lane, Way::Written),
                // Of lanes that come in runs, the vectors are those that other statements read or write.
                Stmt::Transpose(t) if t.runs > 1 => {}
                Stmt::TransposedStore(t) if t.runs > 1 => {
                    let whole = self.stored.entry(t.acc).or_default();
                    *whole = t.elements().max(*whole);
                }
                Stmt::Transpose(t) => {
                    (0..t.columns.len() as u64).for_each(|c| self.elements(t.acc, c * t.lanes, t.lanes, Way::Written))
                }
                Stmt::TransposedStore(t) => {
                    (0..t.columns.len() as u64).for_each(|c| self.elements(t.acc, c * t.lanes, t.lanes, Way::Read))
                }
                Stmt::Select { acc, .. } => {
                    self.dynamic.insert(*acc);
                }
                Stmt::For(l) => match Vector::of(l) {
                    Some((vector, body)) => self.body(body, Some(vector)),
                    None => self.body(&l.body, None),
                },
                _ => {}
            }
        }
    }

    /// The copies with which a body begins, if a register of the accumulator may be a permutation of their lanes.
    fn copies<'a>(&self, body: &'a [Stmt]) -> Option<Copies<'a>> {
        let copies = Copies::first_of(body)?;
        let (function, dtype) = *self.declared.get(&copies.acc)?;
        let is_own = function != OUTSIDE && function == self.wide_function;
        (is_own && copies.are_permutations(dtype, self.vectors)).then_some(copies)
    }

    fn reads(&mut self, e: &Expr, lane: Option<Vector>) {
        e.visit(&mut |e| {
            if let Expr::Read(acc, _, index) = e {
                self.access(*acc, index, lane, Way::Read);
            }
        });
    }

    fn access(&mut self, acc: AccId, index: &Index, lane: Option<Vector>, way: Way) {
        match lane.map(|vector| (vector, vector.place(index))) {
            None => self.run(acc, index, None, way),
            Some((vector, Some(CellLanes::Run(start)))) => self.run(acc, &start, Some(vector), way),
            Some((vector, Some(CellLanes::Halves { start, .. }))) => {
                // The two vectors are registers of their own.
                self.run(acc, &start, Some(vector), Way::Written);
                self.run(acc, &start.offset_by(vector.lanes as i64), Some(vector), Way::Written);
            }
            Some((_, None)) => {
                self.dynamic.insert(acc);
            }
        }
    }

    /// Records an access to one element or to a run of elements.
    fn run(&mut self, acc: AccId, index: &Index, lane: Option<Vector>, way: Way) {
        let stride = lane.map_or(0, |vector| index.coefficient(vector.var));
        let others = index.terms().filter(|&(v, _)| lane.is_none_or(|vector| v != vector.var)).count();
        let shared = self.declared.get(&acc).is_none_or(|(function, _)| *function != self.wide_function);
        if others > 0 || !matches!(stride, 0 | 1) || shared {
            self.dynamic.insert(acc);
            return;
        }
        if stride == 0 {
            self.alike.insert(acc);
        }
        let lanes = if stride == 1 { lane.expect("a lane variable").lanes } else { 1 };
        self.elements(acc, index.offset as u64, lanes, way);
    }

    fn elements(&mut self, acc: AccId, start: u64, lanes: u64, way: Way) {
        let run = self.runs.entry(acc).or_default().entry(start).or_default();
        run.lanes = run.lanes.max(lanes);
        if way == Way::Written {
            run.written = run.written.max(lanes);
        }
    }
}

/// A way to use elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Read,
    Written,
}
