//! The virtual registers in each place, followed through the encoded instructions.
//!
//! A place is a register of the machine or a slot of the frame. After a copy it holds several virtual registers. An
//! instruction must find each virtual register that it reads in the place that it names; the register that it writes is
//! no longer in any other place. Where paths meet, a place holds the virtual registers that it holds on all of them;
//! loops are followed until nothing changes.

use super::is_zero;
use crate::codegen::x86::machine::code::{Arg, Class, Inst, Item, MachineProgram, Reg, View};
use crate::codegen::x86::machine::encode::{FRAME, physical};
use crate::codegen::x86::machine::registers::{BUFFERS, GENERAL};
use crate::codegen::x86::machine::row::{First, Flags};
use crate::codegen::x86::machine::table::{Opcode, fma};
use crate::codegen::x86::machine::tier::Tier;
use iced_x86::{Code, Instruction, OpKind, Register};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The instructions that the encoder wrote; empty if they are not checked.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub(super) written: Vec<Instruction>,
    /// The number of the first instruction of each item, and of the end.
    pub(super) starts: Vec<usize>,
}

impl Record {
    /// Begins the next item.
    pub fn begin(&mut self) {
        if super::ON {
            self.starts.push(self.written.len());
        }
    }

    /// Adds an instruction.
    pub fn wrote(&mut self, instruction: Instruction) {
        if super::ON {
            self.written.push(instruction);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Register(Class, u8),
    /// A slot of the frame: its start and its length, in bytes.
    Slot(u64, u64),
}

impl Place {
    fn overlaps(self, other: Place) -> bool {
        match (self, other) {
            (Place::Slot(a, a_bytes), Place::Slot(b, b_bytes)) => a < b + b_bytes && b < a + a_bytes,
            _ => self == other,
        }
    }
}

/// The facts of a point of the program.
#[derive(Clone, Debug, Default)]
struct State {
    /// The virtual registers in each place.
    held: FxHashMap<Place, Vec<Reg>>,
    /// True where the flags are those that the last item that sets any has set.
    has_flags: bool,
}

/// The use of the flags by each machine instruction of the table.
type FlagsOf = FxHashMap<Code, Flags>;

fn flags_of(tier: Tier) -> FlagsOf {
    Opcode::ALL.iter().filter_map(|opcode| Some((opcode.row().form(tier)?.code, opcode.row().shape.flags))).collect()
}

/// Checks that each use reads the place of its definition; `frame` is the part of the frame for spilled registers.
pub fn hold(
    program: &MachineProgram,
    record: &Record,
    tier: Tier,
    buffers: Reg,
    frame: Range<u64>,
) -> Result<(), String> {
    let saved = record.written[..record.starts[0]].iter().map(|i| i.op0_register()).collect();
    let flags = flags_of(tier);
    let mut labels: Vec<Option<State>> = vec![None; program.labels()];
    let mut changed = true;
    while std::mem::take(&mut changed) {
        let held = FxHashMap::from_iter([(Place::Register(Class::General, BUFFERS), vec![buffers])]);
        // None behind a jump that is always taken.
        let mut now = Some(State { held, has_flags: false });
        for (at, item) in program.items.iter().enumerate() {
            match item {
                Item::Label(label) => {
                    let known = &mut labels[label.0 as usize];
                    if let Some(state) = now {
                        changed |= meet(known, state);
                    }
                    now = known.clone();
                }
                Item::Jump(opcode, label) => {
                    if let Some(state) = &mut now {
                        let written = &record.written[record.starts[at]..record.starts[at + 1]];
                        let mut step = Step { program, tier, flags: &flags, frame: &frame, saved: &saved, state };
                        step.jump(*opcode, written).map_err(|fault| format!("{fault} in item {at}, {item:?}"))?;
                        changed |= meet(&mut labels[label.0 as usize], state.clone());
                    }
                    now = now.filter(|_| *opcode != Opcode::Jmp);
                }
                _ => {
                    let Some(state) = &mut now else { continue };
                    let written = &record.written[record.starts[at]..record.starts[at + 1]];
                    let mut step = Step { program, tier, flags: &flags, frame: &frame, saved: &saved, state };
                    step.item(item, written).map_err(|fault| format!("{fault} in item {at}, {item:?}"))?;
                }
            }
        }
    }
    Ok(())
}

/// Keeps in a label's state only the registers that another path to it holds too; returns true if the state changed.
fn meet(known: &mut Option<State>, state: State) -> bool {
    let Some(known) = known else {
        *known = Some(state);
        return true;
    };
    let mut changed = known.has_flags && !state.has_flags;
    known.has_flags &= state.has_flags;
    known.held.retain(|place, regs| {
        let count = regs.len();
        regs.retain(|reg| state.held.get(place).is_some_and(|others| others.contains(reg)));
        changed |= regs.len() < count;
        !regs.is_empty()
    });
    changed
}

/// The execution of an item.
struct Step<'a> {
    program: &'a MachineProgram,
    tier: Tier,
    flags: &'a FlagsOf,
    frame: &'a Range<u64>,
    saved: &'a Vec<Register>,
    state: &'a mut State,
}

impl Step<'_> {
    fn item(&mut self, item: &Item, written: &[Instruction]) -> Result<(), String> {
        let own: Vec<usize> = (0..written.len()).filter(|&n| self.slot(&written[n]).is_none()).collect();
        let moves = match item {
            Item::Inst(_) if own.len() != 1 => return Err(format!("{} instructions", own.len())),
            Item::Inst(_) => 0,
            Item::Fma { .. } if own.is_empty() => return Err("no instruction".into()),
            Item::Fma { .. } => own.len() - 1,
            _ => own.len(),
        };
        let means = match item {
            Item::Inst(inst) => inst.opcode.row().shape.flags,
            _ => Flags::Keeps,
        };
        for (n, instruction) in written.iter().enumerate() {
            let is_own = own.get(moves) == Some(&n) && matches!(item, Item::Inst(_) | Item::Fma { .. });
            self.flags(instruction, if is_own { means } else { Flags::Keeps })?;
            match own.iter().position(|&own| own == n) {
                None => self.slot_access(instruction)?,
                Some(nth) if nth < moves => self.moved(instruction)?,
                Some(_) => match *item {
                    Item::Inst(inst) => self.inst(&inst, instruction)?,
                    Item::Fma { to, a, b, c, double } => {
                        self.fma(to, [Arg::Reg(a, self.tier.view()), b, c], double, instruction)?
                    }
                    _ => {}
                },
            }
        }
        if let Item::Copy { to, from } = *item {
            for regs in self.state.held.values_mut() {
                regs.retain(|&reg| reg != to || to == from);
                if regs.contains(&from) && to != from {
                    regs.push(to);
                }
            }
        }
        Ok(())
    }

    fn jump(&mut self, opcode: Opcode, written: &[Instruction]) -> Result<(), String> {
        for (n, instruction) in written.iter().enumerate() {
            let is_last = n + 1 == written.len();
            self.flags(instruction, if is_last { opcode.row().shape.flags } else { Flags::Keeps })?;
        }
        match written {
            [jump] if Some(jump.code()) == self.code(opcode) => Ok(()),
            [jump] => Err(format!("{:?}", jump.code())),
            _ => Err(format!("{} instructions", written.len())),
        }
    }

    /// Follows the flags through an instruction, which the program means to use them so.
    fn flags(&mut self, instruction: &Instruction, means: Flags) -> Result<(), String> {
        let code = instruction.code();
        let does = *self.flags.get(&code).ok_or_else(|| format!("{code:?}, which is not in the table"))?;
        match (does, means) {
            (Flags::Reads, _) if !self.state.has_flags => Err("flags that are not set last for it".into()),
            (Flags::Reads | Flags::Keeps, Flags::Reads | Flags::Keeps) if does == means => Ok(()),
            (Flags::Sets, _) => {
                self.state.has_flags = means == Flags::Sets;
                Ok(())
            }
            _ => Err(format!("{code:?}, which makes another use of the flags")),
        }
    }

    /// The slot that an instruction moves from or to a register.
    fn slot(&self, instruction: &Instruction) -> Option<Place> {
        use Opcode::{Kmovq, KmovqStore, Mov, MovStore, Vmovdqu32, Vmovdqu32Store, VmovdquYmm, VmovdquYmmStore};
        let vector = if self.tier.is_512() { [Vmovdqu32, Vmovdqu32Store] } else { [VmovdquYmm, VmovdquYmmStore] };
        let moves = [Mov, MovStore, Kmovq, KmovqStore, vector[0], vector[1]];
        self.slot_of(instruction).filter(|_| self.is_one_of(instruction, &moves))
    }

    /// The slot that is an instruction's operand.
    fn slot_of(&self, instruction: &Instruction) -> Option<Place> {
        let memory = (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory);
        let offset = instruction.memory_displacement64();
        let is_slot = memory && instruction.memory_base() == Register::RSI && offset >= self.frame.start;
        let is_number =
            self.is_one_of(instruction, &[Opcode::Mov, Opcode::MovStore, Opcode::Kmovq, Opcode::KmovqStore]);
        let bytes = if is_number { 8 } else { self.tier.bytes() };
        is_slot.then_some(Place::Slot(offset, bytes))
    }

    fn slot_access(&mut self, instruction: &Instruction) -> Result<(), String> {
        use Opcode::*;
        let Some(slot) = self.slot(instruction) else { unreachable!("an access of a slot") };
        let Place::Slot(offset, bytes) = slot else { unreachable!("a slot") };
        if offset + bytes > self.frame.end {
            return Err(format!("a slot at {offset} behind the frame of {} bytes", self.frame.end));
        }
        let vector = if self.tier.is_512() { [Vmovdqu32, Vmovdqu32Store] } else { [VmovdquYmm, VmovdquYmmStore] };
        if self.is_one_of(instruction, &[Mov, Kmovq, vector[0]]) {
            return self.move_value(place(instruction.op0_register())?, slot);
        }
        if self.is_one_of(instruction, &[MovStore, KmovqStore, vector[1]]) {
            return self.move_value(slot, place(instruction.op1_register())?);
        }
        Err(format!("{:?} of a slot", instruction.code()))
    }

    fn moved(&mut self, instruction: &Instruction) -> Result<(), String> {
        if !self.is_one_of(instruction, &[Opcode::Mov, Opcode::Kmovq, Opcode::Vmovdqa]) || instruction.has_op_mask() {
            return Err(format!("{:?} where a move should be", instruction.code()));
        }
        self.move_value(place(instruction.op0_register())?, place(instruction.op1_register())?)
    }

    fn is_one_of(&self, instruction: &Instruction, opcodes: &[Opcode]) -> bool {
        opcodes.iter().any(|opcode| self.code(*opcode) == Some(instruction.code()))
    }

    fn code(&self, opcode: Opcode) -> Option<Code> {
        Some(opcode.row().form(self.tier)?.code)
    }

    fn move_value(&mut self, to: Place, from: Place) -> Result<(), String> {
        let held = self.state.held.get(&from).cloned().unwrap_or_default();
        self.overwrite(to)?;
        self.state.held.insert(to, held);
        Ok(())
    }

    /// Empties a place.
    fn overwrite(&mut self, place: Place) -> Result<(), String> {
        if let Place::Register(Class::General, n @ 8..) = place
            && !self.saved.contains(&GENERAL[usize::from(n)])
        {
            return Err(format!("{:?}, which was not saved, is written", GENERAL[usize::from(n)]));
        }
        self.state.held.retain(|held, _| !held.overlaps(place));
        Ok(())
    }

    fn define(&mut self, reg: Reg, register: Register) -> Result<(), String> {
        let place = place(register)?;
        self.overwrite(place)?;
        self.state.held.values_mut().for_each(|regs| regs.retain(|held| *held != reg));
        self.state.held.insert(place, vec![reg]);
        Ok(())
    }

    fn inst(&mut self, inst: &Inst, instruction: &Instruction) -> Result<(), String> {
        if Some(instruction.code()) != self.code(inst.opcode) {
            return Err(format!("{:?}", instruction.code()));
        }
        let item = Item::Inst(*inst);
        for (n, &arg) in inst.args.iter().enumerate().take_while(|(_, arg)| **arg != Arg::None) {
            let is_read = (n > 0 || inst.first() != First::Def) && !is_zero(&item);
            self.operand(arg, instruction, n as u32, is_read)?;
        }
        match inst.mask {
            Some(mask) => self.reads(mask, instruction.op_mask())?,
            None if instruction.has_op_mask() => return Err("a mask that it should not have".into()),
            None => {}
        }
        if (inst.mask.is_some() && inst.zeroing) != instruction.zeroing_masking() {
            return Err("lanes outside of the mask".into());
        }
        match item.def() {
            Some((reg, _)) => self.define(reg, instruction.op0_register()),
            None => Ok(()),
        }
    }

    /// `to = a * b + c`, which replaces the first operand; the opcode decides which operands are the factors.
    fn fma(&mut self, to: Reg, [a, b, c]: [Arg; 3], double: bool, instruction: &Instruction) -> Result<(), String> {
        let opcodes = fma(double);
        let [x, y, added] = match Some(instruction.code()) {
            code if code == self.code(opcodes.adds_to) => [1, 2, 0],
            code if code == self.code(opcodes.multiplies) => [1, 0, 2],
            code if code == self.code(opcodes.multiplies_by_last) => [0, 2, 1],
            _ => return Err(format!("{:?}", instruction.code())),
        };
        self.operand(c, instruction, added, true)?;
        let is = |arg, n| self.operand(arg, instruction, n, true);
        is(a, x).and_then(|()| is(b, y)).or_else(|_| is(a, y).and_then(|()| is(b, x)))?;
        self.define(to, instruction.op0_register())
    }

    /// Checks that an operand is the expected one.
    fn operand(&self, arg: Arg, instruction: &Instruction, n: u32, is_read: bool) -> Result<(), String> {
        let is_memory = instruction.op_kind(n) == OpKind::Memory;
        let base = instruction.memory_base();
        match arg {
            Arg::Reg(reg, _) if is_memory => {
                let slot = self.slot_of(instruction).filter(|_| is_read && base == Register::RSI);
                match slot.and_then(|slot| self.state.held.get(&slot)) {
                    Some(held) if held.contains(&reg) => Ok(()),
                    held => Err(format!("a slot that holds {held:?}, not register {}", reg.0)),
                }
            }
            Arg::Reg(reg, view) => {
                let register = instruction.op_register(n);
                let class = self.program.classes[reg.0 as usize];
                let fits = matches!(place(register), Ok(Place::Register(of, number)) if of == class
                    && physical(class, number, view) == register);
                let is_frame = reg == FRAME && register == Register::RSI && view == View::R64;
                if !fits && !is_frame {
                    return Err(format!("{register:?} as {view:?} of register {}", reg.0));
                }
                if is_read { self.reads(reg, register) } else { Ok(()) }
            }
            Arg::Mem(reg, offset) if is_memory && instruction.memory_displacement64() == offset as i64 as u64 => {
                self.reads(reg, base)
            }
            Arg::Pool(_, broadcast)
                if is_memory && base == Register::RIP && broadcast == instruction.is_broadcast() =>
            {
                Ok(())
            }
            Arg::Imm(_) if !is_memory && instruction.op_kind(n) != OpKind::Register => Ok(()),
            _ => Err(format!("operand {n}, which is not {arg:?}")),
        }
    }

    /// Checks that a register of the machine holds this virtual register.
    fn reads(&self, reg: Reg, register: Register) -> Result<(), String> {
        if reg == FRAME {
            return if register == Register::RSI { Ok(()) } else { Err(format!("{register:?} as the frame")) };
        }
        let held = self.state.held.get(&place(register)?).map_or(&[][..], |held| held);
        if held.contains(&reg) {
            return Ok(());
        }
        let held: Vec<u32> = held.iter().map(|reg| reg.0).collect();
        Err(format!("{register:?} holds {held:?}, not register {}", reg.0))
    }
}

/// The place of a register of the machine.
fn place(register: Register) -> Result<Place, String> {
    let number = register as u32;
    let from = |first: Register, count: u32| number.checked_sub(first as u32).filter(|&n| n < count).map(|n| n as u8);
    let vector = [Register::XMM0, Register::YMM0, Register::ZMM0].into_iter().find_map(|first| from(first, 32));
    let general = (0..GENERAL.len() as u8)
        .find(|&n| [View::R32, View::R64].into_iter().any(|view| physical(Class::General, n, view) == register));
    let found = vector.map(|n| (Class::Vector, n)).or_else(|| Some((Class::General, general?)));
    let found = found.or_else(|| Some((Class::Mask, from(Register::K1, 7)?)));
    let (class, n) = found.ok_or_else(|| format!("{register:?}, which is not given out"))?;
    Ok(Place::Register(class, n))
}
