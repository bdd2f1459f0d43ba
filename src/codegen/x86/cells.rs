//! Accumulators: cells in registers, and runs of elements in the frame.

use super::machine::code::masked_load;
use super::machine::code::{Arg, Class, Inst, Item, Reg, View};
use super::machine::encode::FRAME;
use super::machine::table::Opcode;
use super::{ActiveLanes, Generator, LANE_SLOT_BYTES, Refused, Val, ValuePlace};
use crate::codegen::address::Base;
use crate::codegen::emit::{Accumulators, Numbers, RegisterElements};
use cranefold_ir::{AccId, DType, Scalar};

/// The most vectors of an accumulator whose filling is unrolled.
const FEW_VECTORS: u64 = 8;

impl Accumulators for Generator<'_> {
    /// Fills a vector at a time, and the rest by halves of a vector, quarters and so on.
    fn fill(&mut self, acc: AccId, dtype: DType, len: u64, init: Scalar) {
        let (base, offset) = self.base(Base::Acc(acc));
        let (base, offset) = self.near(base, offset);
        let value = self.splat(init.bits(), dtype.bytes());
        let (bytes, vector) = (len * dtype.bytes(), self.tier.bytes());
        let vectors = bytes / vector;
        if vectors <= FEW_VECTORS {
            (0..vectors).for_each(|n| self.store_bytes(value, base, offset + (n * vector) as i32, vector));
        } else {
            let (at, left, head) =
                (self.program.reg(Class::General), self.program.reg(Class::General), self.program.label());
            self.emit(Inst::new(Opcode::Lea, &[Arg::Reg(at, View::R64), Arg::Mem(base, offset)]));
            self.set_number(left, vectors as i64);
            self.program.loops.push(format!("fill {acc}"));
            let number = self.program.loops.len() as u32 - 1;
            self.program.items.push(Item::Enter(number));
            self.program.items.push(Item::Label(head));
            self.store_bytes(value, at, 0, vector);
            self.bump(at, vector as i64);
            self.emit(Inst::new(Opcode::SubBy, &[Arg::Reg(left, View::R64), Arg::Imm(1)]));
            self.program.items.push(Item::Jump(Opcode::Jne, head));
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

    fn register(&mut self, dtype: DType, _: u64) -> Reg {
        let is_mask = dtype == DType::Bool && self.tier.is_512();
        self.program.reg(if is_mask { Class::Mask } else { Class::Vector })
    }

    fn start(&mut self, registers: &[(Reg, u64, Scalar)]) {
        for &(to, _, init) in registers {
            let from = self.constant_reg(init);
            self.program.items.push(Item::Copy { to, from });
        }
    }

    fn read(&mut self, reg: Reg, part: RegisterElements) -> Val {
        let RegisterElements { dtype, cell, at, lanes, alike } = part;
        let bytes = dtype.bytes();
        let val = |reg, lanes| Val { place: ValuePlace::Reg(reg), dtype, lanes, bytes };
        if cell.lanes == 1 {
            return val(reg, if alike { ActiveLanes::Same } else { ActiveLanes::First(1) });
        }
        let count = lanes.unwrap_or(1);
        let from = match at {
            0 => reg,
            _ => self.lanes_from(reg, at * bytes, count * bytes),
        };
        let val = val(from, ActiveLanes::First(count));
        if lanes.is_some() { val } else { self.broadcast(val) }
    }

    fn read_joined(&mut self, [first, second]: [Reg; 2], part: RegisterElements) -> Result<Val, Refused> {
        let (bytes, lanes) = (part.dtype.bytes(), part.lanes.unwrap_or(1));
        let start = part.at * bytes;
        let joins = self.tier.is_512() || start.is_multiple_of(4);
        if part.cell.lanes * bytes != self.tier.bytes() || !joins {
            return Err(Refused(format!("{lanes} elements from {} on, in two registers", part.at)));
        }
        if !self.tier.is_512() {
            let [first, second] = [first, second].map(|reg| self.rotated(reg, start));
            let kept = (self.tier.bytes() - start) / 4;
            let joined = self.vector();
            self.blend_fours(joined, [second, first], (1 << kept) - 1);
            return Ok(self.value(joined, part.dtype, ActiveLanes::First(lanes)));
        }
        let to = self.joined([first, second], start);
        Ok(self.value(to, part.dtype, ActiveLanes::First(lanes)))
    }

    fn halves(&mut self, vectors: [Val; 2], half: u64) -> Result<[Val; 2], Refused> {
        let (dtype, bytes) = (vectors[0].dtype, vectors[0].bytes);
        let lanes = self.tier.bytes() / bytes;
        if vectors.iter().any(|v| matches!(v.lanes, ActiveLanes::First(n) if n != lanes)) {
            return Err(Refused(format!("halves of vectors of {dtype} that are not full")));
        }
        let [first, second] = vectors.map(|v| self.reg(v));
        let halves = self.even_and_odd(first, second, half * bytes, lanes / half);
        Ok(halves.map(|reg| self.value(reg, dtype, ActiveLanes::First(lanes))))
    }

    fn in_place(&self, register: Reg) -> Option<Reg> {
        self.lines.edge.is_none().then_some(register)
    }

    fn write(&mut self, reg: Reg, part: RegisterElements, val: Val) -> Result<(), Refused> {
        if let Some(mask) = self.lines.edge {
            if part.cell.lanes * val.bytes != self.tier.bytes() {
                return Err(Refused("parts of registers of which some lanes are left out".into()));
            }
            self.set_edge(mask, reg, val);
            return Ok(());
        }
        // A cell of one element holds that element in all lanes where a statement takes it so.
        let val = match (part.cell.lanes, val) {
            (1, val) if !part.alike => val,
            (1, Val { lanes: ActiveLanes::First(_), place: ValuePlace::Mem(base, offset), dtype, .. }) => {
                self.broadcast_load(dtype, base, offset)
            }
            (1, Val { lanes: ActiveLanes::First(_), .. }) => self.broadcast(val),
            _ => val,
        };
        let from = self.reg(val);
        if from != reg {
            self.program.items.push(Item::Copy { to: reg, from });
        }
        Ok(())
    }

    fn rotate(&mut self, registers: &[Reg], (dtype, lanes): (DType, u64), by: Reg) -> Result<(), Refused> {
        let are_full = lanes * dtype.bytes() == self.tier.bytes() && !registers.is_empty();
        if !are_full || !self.lines.is_known(by, dtype.bytes()) {
            return Err(Refused(format!("a rotation of vectors of {lanes} {dtype}")));
        }
        self.rotate_lanes(registers, dtype, by);
        Ok(())
    }

    fn write_part(&mut self, register: Reg, part: RegisterElements, written: u64, value: Val) -> Result<(), Refused> {
        if self.lines.edge.is_some() {
            return Err(Refused("parts of registers of which some lanes are left out".into()));
        }
        let from = self.reg(value);
        let bytes = part.dtype.bytes();
        self.put_lanes(register, from, part.at * bytes, written * bytes, bytes);
        Ok(())
    }
}

impl Generator<'_> {
    /// The vector that begins `start` bytes into the first of two, and goes on in the second. AVX-512 only.
    fn joined(&mut self, [first, second]: [Reg; 2], start: u64) -> Reg {
        let from_four = |generator: &mut Self, four: u64| {
            let (low, high, four) = if four < 16 { (first, second, four) } else { (second, second, four - 16) };
            if four == 0 {
                return low;
            }
            let to = generator.vector();
            let args = [generator.full(to), generator.full(high), generator.full(low), Arg::Imm(four as i64)];
            generator.emit(Inst::new(Opcode::Valignd, &args));
            to
        };
        let low = from_four(self, start / 4);
        if start.is_multiple_of(4) {
            return low;
        }
        // Each 16 bytes of the result begin in the same 16 bytes of `low` and end in those after them.
        let high = from_four(self, start / 4 + 4);
        let to = self.vector();
        let args = [self.full(to), self.full(high), self.full(low), Arg::Imm(start as i64 % 4)];
        self.emit(Inst::new(Opcode::Vpalignr, &args));
        to
    }

    /// The vector that begins `start` bytes into another, of which `len` bytes matter.
    fn lanes_from(&mut self, reg: Reg, start: u64, len: u64) -> Reg {
        let to = self.vector();
        let is_by_bytes = !start.is_multiple_of(4) && start + len <= 16;
        if self.tier.is_512() && !is_by_bytes {
            return self.joined([reg, reg], start);
        }
        if start + len <= 16 {
            let code = Opcode::Vpsrldq;
            let args = [Arg::Reg(to, View::Xmm), Arg::Reg(reg, View::Xmm), Arg::Imm(start as i64)];
            self.emit(Inst::new(code, &args));
            return to;
        }
        if start.is_multiple_of(16) && len <= 16 {
            return self.group(reg, start / 16);
        }
        if start.is_multiple_of(4) {
            return self.rotated(reg, start);
        }
        let slot = self.lane_slot();
        self.store_bytes(reg, FRAME, slot, self.tier.bytes());
        self.load_bytes(to, FRAME, slot + start as i32, self.tier.bytes());
        to
    }

    /// The vector that begins `start` bytes into another and goes on with its first ones, by groups of four bytes. AVX2 only.
    fn rotated(&mut self, reg: Reg, start: u64) -> Reg {
        let (fours, by) = (self.tier.bytes() / 4, start / 4);
        let order: Vec<u64> = (0..fours).map(|n| (n + by) % fours).collect();
        self.in_order(reg, &order, 4)
    }

    /// Writes groups of four bytes to a vector: those of `yes` where a bit is set, else those of `no`. AVX2 only.
    fn blend_fours(&mut self, to: Reg, [no, yes]: [Reg; 2], bits: i64) {
        let args = [self.full(to), self.full(no), self.full(yes), Arg::Imm(bits)];
        self.emit(Inst::new(Opcode::Vpblendd, &args));
    }

    /// The place in the frame where lanes are moved, after the part that all wide functions share.
    fn lane_slot(&self) -> i32 {
        const { assert!(LANE_SLOT_BYTES == 128) };
        self.around.storage.frame.bytes as i32
    }

    /// Writes lanes into a vector, from `start` bytes on.
    fn put_lanes(&mut self, reg: Reg, from: Reg, start: u64, len: u64, bytes: u64) {
        if self.tier.is_512() {
            let moved = if start == 0 { from } else { self.joined([from, from], self.tier.bytes() - start) };
            let mask = self.mask_of(start / bytes, len / bytes);
            let code = masked_load(bytes);
            let args = [self.full(reg), self.full(moved)];
            self.emit(Inst::new(code, &args).masked(mask, false));
            return;
        }
        if start.is_multiple_of(4) && len.is_multiple_of(4) {
            let moved = if start == 0 { from } else { self.rotated(from, self.tier.bytes() - start) };
            self.blend_fours(reg, [reg, moved], ((1 << (len / 4)) - 1) << (start / 4));
            return;
        }
        if start + len <= 16 {
            // Within the first 16 bytes, at any byte.
            let byte = |at: u64| (at + 16 - start) as u8 % 16;
            let order = self.bytes_constant((0..self.tier.bytes()).map(|at| byte(at % 16)).collect());
            let moved = self.both(Opcode::Vpshufb, from, order);
            let is_written = |at| (start..start + len).contains(&at);
            let mask = (0..self.tier.bytes()).map(|at| if is_written(at) { 0xff } else { 0 }).collect();
            let mask = self.bytes_constant(mask);
            let args = [self.full(reg), self.full(reg), self.full(moved), self.full(mask)];
            self.emit(Inst::new(Opcode::Vpblendvb, &args));
            return;
        }
        let slot = self.lane_slot();
        let bytes = self.tier.bytes();
        self.store_bytes(reg, FRAME, slot, bytes);
        let mut done = 0;
        let mut rest = from;
        while done < len {
            // The largest power of two; other sizes take several parts.
            let part = 1 << (len - done).ilog2();
            self.store_bytes(rest, FRAME, slot + (start + done) as i32, part);
            done += part;
            if done < len {
                rest = self.lanes_from_slot(from, done);
            }
        }
        self.load_bytes(reg, FRAME, slot, bytes);
    }

    /// The vector that begins `start` bytes into another, in its first 16 bytes. AVX2 only.
    fn lanes_from_slot(&mut self, reg: Reg, start: u64) -> Reg {
        let whole = self.group(reg, start / 16);
        if start.is_multiple_of(16) {
            return whole;
        }
        let to = self.vector();
        let code = Opcode::Vpsrldq;
        let args = [Arg::Reg(to, View::Xmm), Arg::Reg(whole, View::Xmm), Arg::Imm(start as i64 % 16)];
        self.emit(Inst::new(code, &args));
        to
    }
}
