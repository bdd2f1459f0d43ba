//! Lines of memory: where an element lies in its line, vectors without the lanes before or behind it, and rotations.
//!
//! ```text
//! misalign s0 = x0[0] in 16
//! for l1 in s0..16 lanes { a0[l1] = add(a0[l1], x0[l1 - s0]) }
//! for l1 in 0..s0 of 16 lanes { a0[l1] = add(a0[l1], x0[l1 - s0 + 4096]) }
//! rotate a0[0..64] by s0
//! ```
//!
//! A vector without some lanes is a vector under a mask, which keeps these lanes out of memory too. The masks of both kinds
//! of vectors are made where the place is. A vector and a rotation that do nothing where the place is 0 are left out then.

use super::machine::code::masked_load;
use super::machine::code::{Arg, Class, Constant, Inst, Item, Label, Reg, View};
use super::machine::table::Opcode;
use super::{Generator, Refused, Val, ValuePlace, Walk};
use crate::codegen::address::Base;
use crate::codegen::emit::Numbers;
use crate::codegen::storage::Edge;
use crate::schedule::Machine;
use cranefold_ir::{BufId, DType};
use rustc_hash::FxHashMap;

/// A place in a line.
#[derive(Clone, Copy)]
struct Known {
    /// The bytes of the line before it.
    before: Reg,
    /// Bytes of an element.
    bytes: u64,
    /// The mask of the lanes from the place on.
    from: Reg,
    /// The mask of those below it.
    below: Reg,
}

/// The places in lines that are known.
#[derive(Default)]
pub(super) struct Lines {
    /// The bits of a buffer's addresses that say where in a line they are; none where elements lie across their own size.
    in_line: FxHashMap<BufId, Reg>,
    /// The places, by the number of elements before each.
    known: FxHashMap<Reg, Known>,
    /// The mask of the lanes of the current vector, where some are left out.
    pub(super) edge: Option<Reg>,
    /// The end of a vector that is left out where it has no lanes.
    end: Option<Label>,
}

impl Lines {
    /// Returns whether a number is that of a place of an element of so many bytes.
    pub(super) fn is_known(&self, place: Reg, bytes: u64) -> bool {
        self.known.get(&place).is_some_and(|known| known.bytes == bytes)
    }
}

impl<'a> Generator<'a> {
    /// The number of elements from the start of a line to an address.
    pub(super) fn place_in_line(
        &mut self,
        buf: BufId,
        (pointer, offset): (Reg, i32),
        bytes: u64,
    ) -> Result<Reg, Refused> {
        if !self.tier.is_512() {
            return Err(Refused("lines of memory in vectors without masks".into()));
        }
        let in_line = self.in_line(buf, bytes);
        let before = self.program.reg(Class::General);
        let [from, below] = [Class::Mask; 2].map(|class| self.program.reg(class));
        let before_arg = Arg::Reg(before, View::R64);
        self.emit(Inst::new(Opcode::Lea, &[before_arg, Arg::Mem(pointer, offset)]));
        self.emit(Inst::new(Opcode::And, &[before_arg, Arg::Reg(in_line, View::R64)]));
        let place = self.divided(before, bytes);
        let (elements, numbers) = (self.in_lanes(place, bytes), self.lane_numbers(bytes));
        let code = match bytes {
            1 => Opcode::Vpcmpgtb,
            2 => Opcode::Vpcmpgtw,
            4 => Opcode::Vpcmpgtd,
            _ => Opcode::Vpcmpgtq,
        };
        let (from_arg, below_arg) = (Arg::Reg(from, View::K), Arg::Reg(below, View::K));
        self.emit(Inst::new(code, &[below_arg, self.full(elements), self.full(numbers)]));
        self.emit(Inst::new(Opcode::Knotq, &[from_arg, below_arg]));
        self.lines.known.insert(place, Known { before, bytes, from, below });
        Ok(place)
    }

    /// The address so many elements of a line before another, where the number of bytes for each fits.
    pub(super) fn start_of_line(&mut self, start: (Reg, i32), place: Reg, bytes: i64) -> Option<Reg> {
        let known = self.lines.known.get(&place).filter(|known| bytes == -(known.bytes as i64)).copied()?;
        let pointer = self.program.address_like(start.0);
        let to = Arg::Reg(pointer, View::R64);
        self.emit(Inst::new(Opcode::Lea, &[to, Arg::Mem(start.0, start.1)]));
        self.emit(Inst::new(Opcode::Sub, &[to, Arg::Reg(known.before, View::R64)]));
        Some(pointer)
    }

    /// Writes code before all else, and after what stands there by now.
    fn in_prologue<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        let items = std::mem::take(&mut self.program.items);
        self.program.items = std::mem::take(&mut self.prologue);
        let written = write(self);
        self.prologue = std::mem::replace(&mut self.program.items, items);
        written
    }

    /// The bits of a buffer's addresses that say where in a line they are.
    fn in_line(&mut self, buf: BufId, bytes: u64) -> Reg {
        if let Some(&known) = self.lines.in_line.get(&buf) {
            return known;
        }
        let (base, _) = self.base(Base::Buf(buf));
        let bits = self.in_prologue(|own| {
            let [bits, none] = [Class::General; 2].map(|class| own.program.reg(class));
            own.set_number(bits, Machine::LINE_BYTES as i64 - 1);
            own.set_number(none, 0);
            let in_element = Arg::Imm(bytes as i64 - 1);
            own.emit(Inst::new(Opcode::TestBy, &[Arg::Reg(base, View::R64), in_element]));
            let args = [Arg::Reg(bits, View::R64), Arg::Reg(none, View::R64)];
            own.emit(Inst::new(Opcode::Cmovne, &args));
            bits
        });
        self.lines.in_line.insert(buf, bits);
        bits
    }

    /// Begins a vector of which lanes are left out, or none.
    pub(super) fn begin_edge(&mut self, walk: &Walk<'a>, edge: Option<Edge>) -> Result<(), Refused> {
        let Some(edge) = edge else { return Ok(()) };
        let (Edge::From(var) | Edge::Below(var)) = edge;
        let known = walk.counters.get(&var).and_then(|place| Some((*place, *self.lines.known.get(place)?)));
        let Some((place, masks)) = known else { return Err(Refused(format!("lanes from {var}, which is elsewhere"))) };
        self.lines.edge = Some(match edge {
            Edge::From(_) => masks.from,
            Edge::Below(_) => masks.below,
        });
        if let Edge::Below(_) = edge {
            self.lines.end = Some(self.unless_zero(place));
        }
        Ok(())
    }

    /// Ends it.
    pub(super) fn end_edge(&mut self) {
        self.lines.edge = None;
        if let Some(end) = self.lines.end.take() {
            self.program.items.push(Item::Label(end));
        }
    }

    /// Leaves out what follows, up to the label that is to be placed, where a number is 0.
    fn unless_zero(&mut self, number: Reg) -> Label {
        let (end, number) = (self.program.label(), Arg::Reg(number, View::R64));
        self.emit(Inst::new(Opcode::Test, &[number, number]));
        self.program.items.push(Item::Jump(Opcode::Je, end));
        end
    }

    /// Each register gets the lanes of itself and of the next one, from a place on.
    pub(super) fn rotate_lanes(&mut self, registers: &[Reg], dtype: DType, place: Reg) {
        let end = self.unless_zero(place);
        match dtype.bytes() {
            1 => self.rotate_bytes(registers, place),
            bytes => self.rotate_elements(registers, bytes, place),
        }
        self.program.items.push(Item::Label(end));
    }

    fn rotate_elements(&mut self, registers: &[Reg], bytes: u64, place: Reg) {
        let (add, permute) = match bytes {
            2 => (Opcode::Vpaddw, Opcode::Vpermt2w),
            4 => (Opcode::Vpaddd, Opcode::Vpermt2d),
            _ => (Opcode::Vpaddq, Opcode::Vpermt2q),
        };
        let (elements, numbers) = (self.in_lanes(place, bytes), self.lane_numbers(bytes));
        let order = self.both(add, elements, numbers);
        for (reg, next) in self.neighbours(registers) {
            let args = [self.full(reg), self.full(order), self.full(next)];
            self.emit(Inst::new(permute, &args));
        }
    }

    /// The same of bytes, which no instruction permutes across two registers: the four bytes that the first one lies in
    /// and those after them, shifted together.
    fn rotate_bytes(&mut self, registers: &[Reg], before: Reg) {
        let four = self.divided(before, 4);
        let [bits, others] = [Class::General; 2].map(|class| self.program.reg(class));
        let [bits_arg, others_arg] = [bits, others].map(|reg| Arg::Reg(reg, View::R64));
        self.program.items.push(Item::Copy { to: bits, from: before });
        self.emit(Inst::new(Opcode::AndBy, &[bits_arg, Arg::Imm(3)]));
        self.emit(Inst::new(Opcode::ImulBy, &[bits_arg, bits_arg, Arg::Imm(8)]));
        self.set_number(others, 32);
        self.emit(Inst::new(Opcode::Sub, &[others_arg, bits_arg]));
        let (four, numbers, one) = (self.in_lanes(four, 4), self.lane_numbers(4), self.splat(1, 4));
        let first = self.both(Opcode::Vpaddd, four, numbers);
        let second = self.both(Opcode::Vpaddd, first, one);
        let shifts = [bits, others].map(|number| {
            let to = self.vector();
            self.emit(Inst::new(Opcode::Vmovd, &[Arg::Reg(to, View::Xmm), Arg::Reg(number, View::R32)]));
            Arg::Reg(to, View::Xmm)
        });
        for (reg, next) in self.neighbours(registers) {
            let codes = [Opcode::VpsrldCount, Opcode::VpslldCount];
            let parts = [(first, codes[0], shifts[0]), (second, codes[1], shifts[1])].map(|(order, code, by)| {
                let part = self.vector();
                self.program.items.push(Item::Copy { to: part, from: reg });
                let args = [self.full(part), self.full(order), self.full(next)];
                self.emit(Inst::new(Opcode::Vpermt2d, &args));
                self.pair(code, part, by, None)
            });
            let part = self.full(parts[1]);
            self.pair(Opcode::Vpor, parts[0], part, Some(reg));
        }
    }

    /// The registers, each with the next one as it was before the rotation.
    fn neighbours(&mut self, registers: &[Reg]) -> Vec<(Reg, Reg)> {
        let first = self.vector();
        self.program.items.push(Item::Copy { to: first, from: registers[0] });
        let next = registers[1..].iter().copied().chain([first]);
        registers.iter().copied().zip(next).collect()
    }

    /// A number divided by a power of two.
    fn divided(&mut self, number: Reg, by: u64) -> Reg {
        let to = self.program.reg(Class::General);
        self.program.items.push(Item::Copy { to, from: number });
        if by > 1 {
            let args = [Arg::Reg(to, View::R64), Arg::Imm(by.ilog2().into())];
            self.emit(Inst::new(Opcode::ShrBy, &args));
        }
        to
    }

    /// The lanes of memory that a mask has; zero in the others.
    pub(super) fn load_edge(&mut self, mask: Reg, pointer: Reg, offset: i32, val: Val) -> Val {
        let to = self.vector();
        let args = [self.full(to), Arg::Mem(pointer, offset)];
        self.emit(Inst::new(masked_load(val.bytes), &args).masked(mask, true));
        Val { place: ValuePlace::Reg(to), ..val }
    }

    /// Sets the lanes of a register that a mask has.
    pub(super) fn set_edge(&mut self, mask: Reg, reg: Reg, val: Val) {
        let from = self.reg(val);
        let args = [self.full(reg), self.full(from)];
        self.emit(Inst::new(masked_load(val.bytes), &args).masked(mask, false));
    }

    /// A number in all lanes.
    fn in_lanes(&mut self, number: Reg, bytes: u64) -> Reg {
        let to = self.vector();
        let (code, view) = match bytes {
            1 => (Opcode::VpbroadcastbOf, View::R32),
            2 => (Opcode::VpbroadcastwOf, View::R32),
            4 => (Opcode::VpbroadcastdOf, View::R32),
            _ => (Opcode::VpbroadcastqOf, View::R64),
        };
        self.emit(Inst::new(code, &[self.full(to), Arg::Reg(number, view)]));
        to
    }

    /// The number of each lane.
    fn lane_numbers(&mut self, bytes: u64) -> Reg {
        let numbers = (0..Machine::LINE_BYTES / bytes).flat_map(|n| n.to_le_bytes()[..bytes as usize].to_vec());
        self.program.constant(Constant::Bytes(numbers.collect()))
    }
}
