//! Accumulators: cells in registers, and runs of elements in the frame.

use super::address::Base;
use super::machine::code::masked_load;
use super::machine::code::{Arg, Class, First, Inst, Item, Reg, View};
use super::machine::encode::FRAME;
use super::{Generator, LANE_SLOT_BYTES, Lanes, Place, Refused, Val};
use crate::codegen::storage::{Cell, Lanes as At, cell_of, is_dead};
use cranefold_ir::{AccId, DType, Expr, Index, Scalar};
use iced_x86::Code::*;

/// Vectors up to which filling an accumulator is written out.
const FEW_VECTORS: u64 = 8;

impl<'a> Generator<'a> {
    /// Makes an accumulator, all of whose elements are equal to `init`.
    pub(super) fn declare(&mut self, acc: AccId, dtype: DType, len: u64, init: Scalar) {
        if let Some(cells) = self.around.cells.get(&acc) {
            for &cell in cells {
                let class = if dtype == DType::Bool && self.tier.is_512() { Class::Mask } else { Class::Vector };
                let program = &mut self.program;
                let reg = *self.cells.entry((acc, cell)).or_insert_with(|| program.reg(class));
                self.fresh.insert(reg, init);
                if dtype == DType::Bool {
                    self.start_cell(reg);
                }
            }
            return;
        }
        if !self.set_before_read.contains(&acc) {
            self.fill(acc, dtype, len, init);
        }
    }

    /// Lets the register of a cell hold what it starts with.
    fn start_cell(&mut self, reg: Reg) {
        if let Some(init) = self.fresh.remove(&reg) {
            let from = self.constant_reg(init);
            self.program.items.push(Item::Copy { to: reg, from });
        }
    }

    /// The same of all registers, before a loop.
    pub(super) fn start_cells(&mut self) {
        let fresh: Vec<Reg> = self.fresh.keys().copied().collect();
        fresh.into_iter().for_each(|reg| self.start_cell(reg));
    }

    /// Fills an accumulator in memory, a vector at a time; the last one overlaps that before it.
    fn fill(&mut self, acc: AccId, dtype: DType, len: u64, init: Scalar) {
        let (base, offset, _) = {
            let lane = self.lane.take();
            let address = self.address(Base::Acc(acc), &Index::constant(0));
            self.lane = lane;
            address
        };
        let value = self.splat(init.bits(), dtype.bytes());
        let (bytes, vector) = (len * dtype.bytes(), self.tier.bytes());
        let vectors = bytes / vector;
        if vectors <= FEW_VECTORS {
            (0..vectors).for_each(|n| self.store_bytes(value, base, offset + (n * vector) as i32, vector));
        } else {
            let (at, left, head) =
                (self.program.reg(Class::General), self.program.reg(Class::General), self.program.label());
            self.emit(Inst::new(Lea_r64_m, &[Arg::Reg(at, View::R64), Arg::Mem(base, offset)]));
            self.number(left, vectors as i64);
            self.program.loops.push(format!("fill {acc}"));
            let number = self.program.loops.len() as u32 - 1;
            self.program.items.push(Item::Enter(number));
            self.program.items.push(Item::Label(head));
            self.store_bytes(value, at, 0, vector);
            self.add(at, vector as i64);
            self.emit(Inst::new(Sub_rm64_imm32, &[Arg::Reg(left, View::R64), Arg::Imm(1)]).first(First::Mod));
            self.program.items.push(Item::Jump(Jne_rel32_64, head));
            self.program.items.push(Item::Leave);
        }
        let mut done = vectors * vector;
        let mut part = vector / 2;
        while part > 0 {
            if bytes - done >= part {
                let (base, offset) = self.near(base, i64::from(offset) + done as i64);
                self.store_bytes(value, base, offset, part);
                done += part;
            }
            part /= 2;
        }
    }

    /// The elements of an accumulator that an index names.
    pub(super) fn run(&self, acc: AccId, index: &Index) -> Option<(Cell, u64, u64)> {
        let cells = self.around.cells.get(&acc)?;
        let start = index.offset as u64;
        let lanes = match self.lane {
            Some((var, lanes)) if index.coefficient(var) != 0 => lanes,
            _ => 1,
        };
        let cell = cell_of(cells, start);
        Some((cell, start - cell.start, lanes))
    }

    /// Elements of an accumulator.
    pub(super) fn read(&mut self, acc: AccId, dtype: DType, index: &Index) -> Result<Val, Refused> {
        match self.place(index)? {
            At::Run(start) => self.read_run(acc, dtype, &start),
            At::Halves { start, half, upper } => self.read_halves(acc, dtype, &start, half, upper),
        }
    }

    /// Elements side by side.
    pub(super) fn read_run(&mut self, acc: AccId, dtype: DType, index: &Index) -> Result<Val, Refused> {
        let Some((cell, at, lanes)) = self.run(acc, index) else {
            return self.load(Base::Acc(acc), dtype, index);
        };
        let reg = self.cells.get(&(acc, cell)).copied().ok_or_else(|| Refused(format!("{acc} from elsewhere")))?;
        if let Some(&init) = self.fresh.get(&reg) {
            return Ok(self.constant(init));
        }
        let bytes = dtype.bytes();
        let walks = self.lane.is_some_and(|(var, _)| index.coefficient(var) != 0);
        let val = Val { place: Place::Reg(reg), dtype, lanes: Lanes::First(cell.lanes), bytes };
        if cell.lanes == 1 {
            return Ok(Val { lanes: Lanes::Same, ..val });
        }
        let part = match at {
            0 => reg,
            _ => self.lanes_from(reg, at * bytes, lanes * bytes),
        };
        let val = Val { place: Place::Reg(part), lanes: Lanes::First(lanes), ..val };
        Ok(if walks { val } else { self.broadcast(val) })
    }

    /// The vector from so many bytes on, of which `len` matter.
    fn lanes_from(&mut self, reg: Reg, start: u64, len: u64) -> Reg {
        let to = self.vector();
        if self.tier.is_512() && start.is_multiple_of(4) {
            let args = [self.full(to), self.full(reg), self.full(reg), Arg::Imm(start as i64 / 4)];
            self.emit(Inst::new(EVEX_Valignd_zmm_k1z_zmm_zmmm512b32_imm8, &args));
            return to;
        }
        if start + len <= 16 {
            let code = self.tier.pick(VEX_Vpsrldq_xmm_xmm_imm8, EVEX_Vpsrldq_xmm_xmmm128_imm8);
            let args = [Arg::Reg(to, View::Xmm), Arg::Reg(reg, View::Xmm), Arg::Imm(start as i64)];
            self.emit(Inst::new(code, &args));
            return to;
        }
        if start.is_multiple_of(16) && len <= 16 {
            return self.group(reg, start / 16);
        }
        let slot = self.lane_slot();
        self.store_bytes(reg, FRAME, slot, self.tier.bytes());
        self.load_bytes(to, FRAME, slot + start as i32, self.tier.bytes());
        to
    }

    /// Where lanes are moved about, after what all tiles share.
    fn lane_slot(&self) -> i32 {
        const { assert!(LANE_SLOT_BYTES == 128) };
        self.around.frame.bytes as i32
    }

    /// Sets elements of an accumulator.
    pub(super) fn set(&mut self, acc: AccId, index: &Index, value: &'a Expr) -> Result<(), Refused> {
        let At::Run(index) = self.place(index)? else {
            return Err(Refused(format!("{acc} set by halves")));
        };
        let index = &index;
        self.halves.retain(|h| h.acc != acc);
        let Some((cell, at, lanes)) = self.run(acc, index) else {
            let dtype = self.types[&acc];
            let value = self.expr(value, None)?;
            return self.store(Base::Acc(acc), dtype, index, value);
        };
        let reg = self.cells.get(&(acc, cell)).copied().ok_or_else(|| Refused(format!("{acc} from elsewhere")))?;
        if let Some(mask) = self.edge {
            let val = self.expr(value, None)?;
            self.set_edge(mask, reg, val);
            return Ok(());
        }
        let bytes = self.types[&acc].bytes();
        let walks = self.lane.is_some_and(|(var, _)| index.coefficient(var) != 0);
        // What a cell of one element holds is the same in all lanes.
        let whole = lanes == cell.lanes && (cell.lanes > 1 || !walks);
        let rest_is_dead = at == 0 && cell.lanes > 1 && self.is_dead(acc, cell.start + lanes, cell.start + cell.lanes);
        if whole || rest_is_dead {
            let val = self.expr(value, Some(reg))?;
            self.fresh.remove(&reg);
            let from = self.reg(val);
            if from != reg {
                self.program.items.push(Item::Copy { to: reg, from });
            }
            return Ok(());
        }
        if cell.lanes == 1 {
            let val = match self.expr(value, None)? {
                val if val.lanes == Lanes::Same => val,
                Val { place: Place::Mem(base, offset), dtype, .. } => self.broadcast_load(dtype, base, offset),
                val => self.broadcast(val),
            };
            self.fresh.remove(&reg);
            let from = self.reg(val);
            self.program.items.push(Item::Copy { to: reg, from });
            return Ok(());
        }
        self.start_cell(reg);
        let val = self.expr(value, None)?;
        let from = self.reg(val);
        self.put_lanes(reg, from, at * bytes, lanes * bytes, bytes);
        Ok(())
    }

    /// Whether no later statement of the current body reads these elements, and the accumulator ends with it.
    fn is_dead(&self, acc: AccId, start: u64, end: u64) -> bool {
        if self.lane.is_none() {
            return false;
        }
        // The body of the lanes, and the body in which its loop stands.
        let Some(&after) = self.rest.last_chunk::<2>() else { return false };
        if !self.declared_here.last().is_some_and(|declared| declared.contains(&acc)) {
            return false;
        }
        is_dead(acc, start, end, &after)
    }

    /// Writes lanes into a vector, so many bytes from its start on.
    fn put_lanes(&mut self, reg: Reg, from: Reg, start: u64, len: u64, bytes: u64) {
        if self.tier.is_512() && (start == 0 || (start.is_multiple_of(4) && bytes >= 4)) {
            let mut moved = from;
            if start > 0 {
                moved = self.vector();
                let by = 16 - start as i64 / 4;
                let args = [self.full(moved), self.full(from), self.full(from), Arg::Imm(by)];
                self.emit(Inst::new(EVEX_Valignd_zmm_k1z_zmm_zmmm512b32_imm8, &args));
            }
            let mask = self.mask_of(start / bytes, len / bytes);
            let code = masked_load(bytes);
            let args = [self.full(reg), self.full(moved)];
            self.emit(Inst::new(code, &args).first(First::Mod).masked(mask, false));
            return;
        }
        if !self.tier.is_512() && start == 0 && len.is_multiple_of(4) {
            let lanes = len / 4;
            let args = [self.full(reg), self.full(reg), self.full(from), Arg::Imm((1 << lanes) - 1)];
            self.emit(Inst::new(VEX_Vpblendd_ymm_ymm_ymmm256_imm8, &args));
            return;
        }
        let slot = self.lane_slot();
        let bytes = self.tier.bytes();
        self.store_bytes(reg, FRAME, slot, bytes);
        let mut done = 0;
        let mut rest = from;
        while done < len {
            // The largest power of two: a part that is none comes in several.
            let part = 1 << (len - done).ilog2();
            self.store_bytes(rest, FRAME, slot + (start + done) as i32, part);
            done += part;
            if done < len {
                rest = self.lanes_from_slot(from, done);
            }
        }
        self.load_bytes(reg, FRAME, slot, bytes);
    }

    /// The vector from so many bytes on, by way of the slot's second half.
    fn lanes_from_slot(&mut self, reg: Reg, start: u64) -> Reg {
        let to = self.vector();
        if self.tier.is_512() && start.is_multiple_of(4) {
            return self.lanes_from(reg, start, 4);
        }
        let whole = self.group(reg, start / 16);
        if start.is_multiple_of(16) {
            return whole;
        }
        let code = self.tier.pick(VEX_Vpsrldq_xmm_xmm_imm8, EVEX_Vpsrldq_xmm_xmmm128_imm8);
        let args = [Arg::Reg(to, View::Xmm), Arg::Reg(whole, View::Xmm), Arg::Imm(start as i64 % 16)];
        self.emit(Inst::new(code, &args));
        to
    }
}
