//! Which accumulators live in registers.
//!
//! An accumulator all of whose indices are constant (but for the lane) is cut into cells: runs of
//! elements that are read and written together, one register each. A smaller access inside a cell
//! takes lanes out of the register. Accumulators with other indices, with accesses that overlap
//! without nesting, with more cells than [`MOST_CELLS`], or that are selected from live in memory, and so do
//! those that a tile shares with what is around it.

use cranefold_ir::{AccId, Expr, Extent, Index, LoopKind, LoopVar, Nest, Stmt};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The most registers one accumulator takes.
const MOST_CELLS: usize = 24;

/// The elements of a register: the first, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    pub start: u64,
    pub lanes: u64,
}

/// The cells of each accumulator that lives in registers.
pub fn cells(nest: &Nest) -> HashMap<AccId, Vec<Cell>> {
    let mut accesses = Accesses::default();
    accesses.body(&nest.body, None);
    let in_registers = |(acc, runs): (AccId, BTreeMap<u64, u64>)| {
        if accesses.dynamic.contains(&acc) {
            return None;
        }
        let mut cells: Vec<Cell> = vec![];
        // Runs come by their start, the longest of each start.
        for (start, lanes) in runs {
            match cells.last() {
                Some(c) if start < c.start + c.lanes => {
                    if start + lanes > c.start + c.lanes {
                        return None;
                    }
                }
                _ => cells.push(Cell { start, lanes }),
            }
        }
        (cells.len() <= MOST_CELLS).then_some((acc, cells))
    };
    accesses.runs.into_iter().filter_map(in_registers).collect()
}

/// The cell that holds an element.
pub fn cell_of(cells: &[Cell], element: u64) -> Cell {
    *cells.iter().find(|c| c.start <= element && element < c.start + c.lanes).expect("an element in a cell")
}

#[derive(Default)]
struct Accesses {
    runs: HashMap<AccId, BTreeMap<u64, u64>>,
    dynamic: HashSet<AccId>,
    /// The tile in which each was declared; 0 is none.
    declared: HashMap<AccId, u32>,
    tiles: u32,
    tile: u32,
}

impl Accesses {
    fn body(&mut self, body: &[Stmt], lane: Option<(LoopVar, u64)>) {
        for stmt in body {
            for e in stmt.exprs() {
                e.visit(&mut |e| {
                    if let Expr::Read(acc, _, index) = e {
                        self.access(*acc, index, lane);
                    }
                });
            }
            match stmt {
                Stmt::Acc { acc, .. } => {
                    self.declared.insert(*acc, self.tile);
                }
                Stmt::Tile { body } => {
                    self.tiles += 1;
                    self.tile = self.tiles;
                    self.body(body, lane);
                    self.tile = 0;
                }
                Stmt::Set { acc, index, .. } => self.access(*acc, index, lane),
                Stmt::Select { acc, .. } => {
                    self.dynamic.insert(*acc);
                }
                Stmt::For(l) => match (l.kind, l.extent) {
                    (LoopKind::Lanes, Extent::Const(n)) => self.body(&l.body, Some((l.var, n))),
                    _ => self.body(&l.body, None),
                },
                _ => {}
            }
        }
    }

    fn access(&mut self, acc: AccId, index: &Index, lane: Option<(LoopVar, u64)>) {
        let stride = lane.map_or(0, |(var, _)| index.coefficient(var));
        let others = index.terms().filter(|&(v, _)| lane.is_none_or(|(var, _)| v != var)).count();
        let shared = self.declared.get(&acc) != Some(&self.tile);
        if others > 0 || !matches!(stride, 0 | 1) || shared {
            self.dynamic.insert(acc);
            return;
        }
        let lanes = if stride == 1 { lane.expect("a lane variable").1 } else { 1 };
        let run = self.runs.entry(acc).or_default().entry(index.offset as u64).or_insert(0);
        *run = (*run).max(lanes);
    }
}
