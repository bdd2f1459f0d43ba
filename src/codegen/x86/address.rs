//! Numbers of 64 bits: addresses and counters.

use super::Generator;
use super::machine::code::{Arg, Class, Inst, Item, Object, Reg, View};
use super::machine::encode::FRAME;
use super::machine::table::Opcode;
use crate::codegen::address::Base;
use crate::codegen::emit::Numbers;

impl Numbers for Generator<'_> {
    fn number(&mut self, value: i64) -> Reg {
        let number = self.program.reg(Class::General);
        self.set_number(number, value);
        number
    }

    fn plus_scaled(&mut self, sum: Reg, number: Reg, factor: i64) -> Reg {
        let term = self.program.reg(Class::General);
        self.scaled(term, number, factor);
        let args = [Arg::Reg(sum, View::R64), Arg::Reg(term, View::R64)];
        self.emit(Inst::new(Opcode::Add, &args));
        sum
    }

    fn trailing_ones(&mut self, number: Reg) -> Reg {
        self.bump(number, 1);
        let ones = self.program.reg(Class::General);
        let args = [Arg::Reg(ones, View::R64), Arg::Reg(number, View::R64)];
        self.emit(Inst::new(Opcode::Tzcnt, &args));
        ones
    }

    fn base(&mut self, base: Base) -> (Reg, i64) {
        let around = self.around;
        if let Base::Acc(acc) = base
            && let Some(&at) = around.storage.frame.accs.get(&acc)
        {
            return (FRAME, at as i64);
        }
        if let Some(&known) = self.bases.get(&base) {
            return (known, 0);
        }
        let reg = self.program.reg(Class::General);
        let accumulators = around.nest.buffers.len() as u32 + 1;
        let object = match base {
            Base::Buf(buf) => buf.0 + 1,
            Base::Acc(acc) => accumulators + acc.0,
        };
        self.program.objects.insert(reg, Object(object));
        let (slot, offset) = match base {
            Base::Buf(buf) => (buf.0, 0),
            Base::Acc(acc) => (around.nest.buffers.len() as u32, around.storage.scratch.offsets[&acc]),
        };
        let args = [Arg::Reg(reg, View::R64), Arg::Mem(self.buffers, slot as i32 * 8)];
        self.prologue.push(Item::Inst(Inst::new(Opcode::Mov, &args)));
        if offset > 0 {
            let distance = self.program.reg(Class::General);
            let (to, from) = (Arg::Reg(reg, View::R64), Arg::Reg(distance, View::R64));
            self.prologue.push(Item::Inst(Inst::number(distance, offset as i64)));
            self.prologue.push(Item::Inst(Inst::new(Opcode::Add, &[to, from])));
        }
        self.bases.insert(base, reg);
        (reg, 0)
    }

    fn pointer(&mut self, (start, offset): (Reg, i64), multiple: Option<(Reg, i64)>) -> Reg {
        if let Some((number, bytes)) = multiple
            && let Some(pointer) = self.start_of_line((start, offset as i32), number, bytes)
        {
            return pointer;
        }
        let (pointer, offset) = (self.program.address_like(start), offset as i32);
        let to = Arg::Reg(pointer, View::R64);
        let Some((number, bytes)) = multiple else {
            match offset == 0 && start != FRAME {
                true => self.program.items.push(Item::Copy { to: pointer, from: start }),
                false => self.emit(Inst::new(Opcode::Lea, &[to, Arg::Mem(start, offset)])),
            }
            return pointer;
        };
        self.scaled(pointer, number, bytes);
        let start = match offset {
            0 => start,
            _ => {
                let whole = self.program.reg(Class::General);
                self.emit(Inst::new(Opcode::Lea, &[Arg::Reg(whole, View::R64), Arg::Mem(start, offset)]));
                whole
            }
        };
        self.emit(Inst::new(Opcode::Add, &[to, Arg::Reg(start, View::R64)]));
        pointer
    }

    fn bump(&mut self, reg: Reg, value: i64) {
        let to = Arg::Reg(reg, View::R64);
        if value == 0 {
            return;
        }
        if i32::try_from(value).is_ok() {
            return self.emit(Inst::new(Opcode::AddBy, &[to, Arg::Imm(value)]));
        }
        let distance = self.program.reg(Class::General);
        self.set_number(distance, value);
        self.emit(Inst::new(Opcode::Add, &[to, Arg::Reg(distance, View::R64)]));
    }

    fn near(&mut self, pointer: Reg, bytes: i64) -> (Reg, i32) {
        match i32::try_from(bytes) {
            Ok(offset) if offset.abs() < i32::MAX - 4096 => (pointer, offset),
            _ => {
                let far = self.program.address_like(pointer);
                self.set_number(far, bytes);
                let args = [Arg::Reg(far, View::R64), Arg::Reg(pointer, View::R64)];
                self.emit(Inst::new(Opcode::Add, &args));
                (far, 0)
            }
        }
    }
}

impl Generator<'_> {
    /// `to = value`.
    pub(super) fn set_number(&mut self, to: Reg, value: i64) {
        self.emit(Inst::number(to, value));
    }

    /// `to = value * factor`.
    pub(super) fn scaled(&mut self, to: Reg, value: Reg, factor: i64) {
        let (to_arg, value) = (Arg::Reg(to, View::R64), Arg::Reg(value, View::R64));
        if i32::try_from(factor).is_ok() {
            return self.emit(Inst::new(Opcode::ImulBy, &[to_arg, value, Arg::Imm(factor)]));
        }
        self.set_number(to, factor);
        self.emit(Inst::new(Opcode::Imul, &[to_arg, value]));
    }
}
