//! Declarations, reads and writes of accumulators in memory and in registers.

use super::Refused;
use super::address::{Access, Base};
use super::emit::{Emit, RegisterElements};
use super::storage::{Cell, CellLanes, Copies, cell_of, is_dead};
use super::walk::Walk;
use cranefold_ir::{AccId, DType, Expr, Index, LoopVar, Scalar};

/// The lower and the upper halves of two adjacent vectors, for lanes of two loops.
///
/// ```text
/// for e0 in 0..2 lanes { for e1 in 0..8 lanes { a1[8*e0 + e1] = add(a0[16*e0 + e1], a0[16*e0 + e1 + 8]) } }
/// ```
///
/// The halves are the even and the odd elements, if an element is as many lanes as the inner loop has.
pub struct Halves<V> {
    acc: AccId,
    /// The start of the first vector.
    start: Index,
    halves: [V; 2],
}

impl<'a, E: Emit<'a>> Walk<'a, E> {
    /// Makes an accumulator, all of whose elements are equal to `init`.
    pub(super) fn declare(&mut self, out: &mut E, acc: AccId, dtype: DType, len: u64, init: Scalar) {
        let Some(cells) = self.storage.cells.get(&acc) else {
            if !self.set_before_read.contains(&acc) {
                out.fill(acc, dtype, len, init);
            }
            return;
        };
        for &cell in cells {
            let key = (acc, cell);
            self.registers.entry(key).or_insert_with(|| out.register(dtype, cell.lanes));
            self.forget_initial(key);
            self.fresh.push((key, init));
        }
        if dtype == DType::Bool {
            // The lanes of a truth value are as wide as the compared values, which are not known for a constant.
            self.start_cells_where(out, |&(of, _)| of == acc);
        }
    }

    /// Writes initial values to registers before a loop, whose later iterations find other values in them.
    pub fn start_cells(&mut self, out: &mut E) {
        self.start_cells_where(out, |_| true);
    }

    fn start_cells_where(&mut self, out: &mut E, is_one: impl Fn(&(AccId, Cell)) -> bool) {
        let (starts, others): (Vec<_>, Vec<_>) = self.fresh.drain(..).partition(|(key, _)| is_one(key));
        let start = |(key, init): ((AccId, Cell), Scalar)| (self.registers[&key], key.1.lanes, init);
        out.start(&starts.into_iter().map(start).collect::<Vec<_>>());
        self.fresh = others;
    }

    /// The initial value of a cell, if its register does not hold it yet.
    pub fn initial(&self, of: (AccId, Cell)) -> Option<Scalar> {
        self.fresh.iter().find(|(key, _)| *key == of).map(|(_, init)| *init)
    }

    fn forget_initial(&mut self, of: (AccId, Cell)) {
        self.fresh.retain(|&(key, _)| key != of);
    }

    /// The place of the elements that an index names.
    fn place(&self, index: &Index) -> Result<CellLanes, Refused> {
        let Some(vector) = self.vector else { return Ok(CellLanes::Run(index.clone())) };
        vector.place(index).ok_or_else(|| Refused(format!("lanes of two loops at {index}")))
    }

    /// The register and the elements in it that an index names; `None` if the accumulator is in memory.
    pub fn part(&self, acc: AccId, index: &Index) -> Option<RegisterElements> {
        let cells = self.storage.cells.get(&acc)?;
        let cell = cell_of(cells, index.offset as u64);
        let lanes = self.lane().filter(|&(var, _)| index.coefficient(var) != 0).map(|(_, lanes)| lanes);
        let at = index.offset as u64 - cell.start;
        Some(RegisterElements { dtype: self.types[&acc], cell, at, lanes, alike: self.storage.alike.contains(&acc) })
    }

    fn register(&self, acc: AccId, part: &RegisterElements) -> Result<E::Register, Refused> {
        self.registers.get(&(acc, part.cell)).copied().ok_or_else(|| Refused(format!("{acc} from elsewhere")))
    }

    /// Elements of an accumulator.
    pub(super) fn read(&mut self, out: &mut E, acc: AccId, index: &Index) -> Result<E::Value, Refused> {
        let (start, half, upper) = match self.place(index)? {
            CellLanes::Run(start) => return self.read_run(out, acc, &start),
            CellLanes::Halves { start, half, upper } => (start, half, upper),
        };
        let known = self.halves.iter().find(|h| h.acc == acc && h.start == start).map(|h| h.halves);
        if let Some(known) = known {
            return Ok(known[usize::from(upper)]);
        }
        let lanes = self.lane().map_or(0, |(_, lanes)| lanes as i64);
        let vectors = [self.read_run(out, acc, &start)?, self.read_run(out, acc, &start.clone().offset_by(lanes))?];
        let halves = out.halves(vectors, half)?;
        self.halves.push(Halves { acc, start, halves });
        Ok(halves[usize::from(upper)])
    }

    /// Elements side by side.
    fn read_run(&mut self, out: &mut E, acc: AccId, index: &Index) -> Result<E::Value, Refused> {
        let Some(part) = self.part(acc, index) else { return self.load(out, Base::Acc(acc), index) };
        let register = self.register(acc, &part)?;
        let (cell, end) = (part.cell, index.offset as u64 + part.lanes.unwrap_or(1));
        if end > cell.end() && self.storage.joining.contains(&acc) {
            let next = cell_of(&self.storage.cells[&acc], cell.end());
            let second = self.register(acc, &RegisterElements { cell: next, ..part })?;
            self.start_cells_where(out, |&key| key == (acc, cell) || key == (acc, next));
            return out.read_joined([register, second], part);
        }
        match self.initial((acc, part.cell)) {
            Some(init) => Ok(out.constant(init)),
            None => Ok(out.read(register, part)),
        }
    }

    /// Sets the elements of an accumulator that an index names.
    pub(super) fn set(&mut self, out: &mut E, acc: AccId, index: &Index, value: &Expr) -> Result<(), Refused> {
        let CellLanes::Run(index) = self.place(index)? else {
            return Err(Refused(format!("{acc} set by halves")));
        };
        self.halves.retain(|h| h.acc != acc);
        let Some(part) = self.part(acc, &index) else {
            let value = self.expr(out, value, None, None)?;
            return self.store(out, Base::Acc(acc), &index, value);
        };
        let register = self.register(acc, &part)?;
        let cell = part.cell;
        // An element that moves with the lanes may stand for more lanes than the nest has.
        let written = part.lanes.map_or(1, |lanes| lanes.min(self.lanes_written));
        // A register of one element holds it in all lanes.
        let is_all = match part.lanes {
            None => cell.lanes == 1,
            Some(lanes) => lanes == cell.lanes && written == lanes && cell.lanes > 1,
        };
        let is_whole = is_all
            || part.at == 0 && cell.lanes > 1 && self.is_dead(acc, cell.start + written, cell.start + cell.lanes);
        if is_whole || cell.lanes == 1 {
            let to = if is_whole { out.in_place(register) } else { None };
            let value = self.expr(out, value, None, to)?;
            self.forget_initial((acc, cell));
            return out.write(register, part, value);
        }
        self.start_cells_where(out, |&key| key == (acc, cell));
        let value = self.expr(out, value, None, None)?;
        out.write_part(register, part, written, value)
    }

    /// Sets each register that copies reach to a permutation of their lanes.
    pub(super) fn set_copies(&mut self, out: &mut E, copies: &Copies<'a>) -> Result<(), Refused> {
        let Copies { acc, elements, value, .. } = *copies;
        self.halves.retain(|h| h.acc != acc);
        let value = self.expr(out, value, None, None)?;
        let value = out.kept(self, value);
        let dtype = self.types[&acc];
        let vector_lanes = u64::from(out.vectors().bits / 8) / dtype.bytes();
        let reached = |cell: &&Cell| cell.start < elements.end() && elements.start < cell.end();
        let mut last: Option<(Vec<u64>, E::Value)> = None;
        for cell in self.storage.cells[&acc].iter().filter(reached).copied() {
            let (start, end) = (cell.start.max(elements.start), cell.end().min(elements.end()));
            let order: Vec<u64> = copies.lanes_from(start).take(vector_lanes as usize).collect();
            let known = last.take().filter(|(known, _)| *known == order);
            let (order, permuted) = known.unwrap_or_else(|| {
                let permuted = out.permuted(value, &order);
                (order, permuted)
            });
            last = Some((order, permuted));
            let (at, lanes, alike) = (start - cell.start, Some(end - start), self.storage.alike.contains(&acc));
            let part = RegisterElements { dtype, cell, at, lanes, alike };
            let register = self.register(acc, &part)?;
            if (cell.start, cell.end()) == (start, end) {
                self.forget_initial((acc, cell));
                out.write(register, part, permuted)?;
            } else {
                self.start_cells_where(out, |&key| key == (acc, cell));
                out.write_part(register, part, end - start, permuted)?;
            }
        }
        Ok(())
    }

    /// Moves elements of an accumulator in registers down by a variable's number, the first ones behind the last.
    pub(super) fn rotate(
        &mut self,
        out: &mut E,
        acc: AccId,
        (start, len): (u64, u64),
        by: LoopVar,
    ) -> Result<(), Refused> {
        self.start_cells_where(out, |&(of, _)| of == acc);
        let refused = || Refused(format!("a rotation of {acc} from {start} by {len} elements"));
        let cells: Vec<Cell> = self.storage.cells.get(&acc).ok_or_else(refused)?.clone();
        let own: Vec<Cell> = cells.into_iter().filter(|c| (start..start + len).contains(&c.start)).collect();
        let lanes = own.first().map_or(0, |c| c.lanes);
        let are_whole =
            own.iter().zip((start..).step_by(lanes.max(1) as usize)).all(|(c, at)| (c.start, c.lanes) == (at, lanes));
        if !are_whole || own.len() as u64 * lanes != len {
            return Err(refused());
        }
        let find = |cell: &Cell| self.registers.get(&(acc, *cell)).copied();
        let registers = own.iter().map(find).collect::<Option<Vec<E::Register>>>().ok_or_else(refused)?;
        let place = *self.counters.get(&by).ok_or_else(refused)?;
        out.rotate(&registers, (self.types[&acc], lanes), place)
    }

    /// Sets a run of elements at a constant place of an accumulator.
    pub(super) fn set_run(&mut self, out: &mut E, acc: AccId, run: Cell, value: E::Value) -> Result<(), Refused> {
        let (dtype, lanes) = (self.types[&acc], (run.lanes > 1).then_some(run.lanes));
        let Some(cells) = self.storage.cells.get(&acc) else {
            let (pointer, offset_bytes) = self.address(out, Base::Acc(acc), &Index::constant(run.start as i64));
            let lanes = lanes.map(|lanes| (lanes, 1));
            return out.store(Access { base: Base::Acc(acc), dtype, pointer, offset_bytes, lanes }, value);
        };
        let cell = cell_of(cells, run.start);
        let alike = self.storage.alike.contains(&acc);
        let part = RegisterElements { dtype, cell, at: run.start - cell.start, lanes, alike };
        let register = self.register(acc, &part)?;
        if cell == run {
            self.forget_initial((acc, cell));
            return out.write(register, part, value);
        }
        self.start_cells_where(out, |&key| key == (acc, cell));
        out.write_part(register, part, run.lanes, value)
    }

    /// A run of elements at a constant place of an accumulator.
    pub(super) fn run(&mut self, out: &mut E, acc: AccId, run: Cell) -> Result<E::Value, Refused> {
        let (dtype, lanes) = (self.types[&acc], (run.lanes > 1).then_some(run.lanes));
        let Some(cells) = self.storage.cells.get(&acc) else {
            let (pointer, offset_bytes) = self.address(out, Base::Acc(acc), &Index::constant(run.start as i64));
            let lanes = lanes.map(|lanes| (lanes, 1));
            return out.load(self, Access { base: Base::Acc(acc), dtype, pointer, offset_bytes, lanes });
        };
        let cell = cell_of(cells, run.start);
        let alike = self.storage.alike.contains(&acc);
        let part = RegisterElements { dtype, cell, at: run.start - cell.start, lanes, alike };
        let register = self.register(acc, &part)?;
        self.start_cells_where(out, |&key| key == (acc, cell));
        Ok(out.read(register, part))
    }

    /// Returns true if no later statement of the current body reads these elements, and the accumulator ends with the
    /// body.
    fn is_dead(&self, acc: AccId, start: u64, end: u64) -> bool {
        // The statements of the lanes' body, and of the body around its loop.
        let (Some(_), Some(after)) = (self.vector, self.rest.last_chunk::<2>()) else { return false };
        self.declared_here.last().is_some_and(|declared| declared.contains(&acc)) && is_dead(acc, start, end, after)
    }
}
