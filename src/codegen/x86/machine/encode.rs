//! Encodes a program after register allocation.

use super::FrameFrom;
use super::bytes;
use super::check::places::Record;
use super::code::{Arg, Class, Inst, Item, Label, MachineProgram, Reg, View};
use super::constants::Pool;
use super::encoding::{Encoding, encoding};
use super::registers::{GENERAL, Home, Homes};
use super::row::Number;
use super::spills::{Spilled, replacing};
use super::table::Opcode;
use super::tier::Tier;
use crate::codegen::marks::Mark;
use crate::codegen::storage::SCRATCH_ALIGN;
use crate::codegen::x86::Refused;
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, OpKind, Register};

/// Machine code.
#[derive(Debug)]
pub struct Encoded {
    /// Code, then constants.
    pub bytes: Vec<u8>,
    /// Bytes of code.
    pub code_bytes: usize,
    /// The begins and ends of loops: offsets in bytes.
    pub marks: Vec<(usize, Mark)>,
    /// The instructions of each item, if they are checked.
    pub record: Record,
}

/// The machine code; spilled registers lie `spills_at` bytes into the frame.
///
/// # Errors
/// An error if the instruction set lacks an instruction: a bug of ours.
pub fn encode(
    program: &MachineProgram,
    homes: &Homes,
    pool: &Pool,
    tier: Tier,
    (frame, spills_at): (FrameFrom, u64),
) -> Result<Encoded, Refused> {
    let mut writer = Writer {
        program,
        homes,
        tier,
        frame: spills_at,
        bytes: Vec::with_capacity(8 * program.items.len()),
        labels: vec![None; program.labels()],
        jumps: vec![],
        constants: vec![],
        marks: vec![],
        record: Record::default(),
    };
    let saved: Vec<Register> =
        (8..GENERAL.len()).filter(|&r| homes.general >> r & 1 == 1).map(|r| GENERAL[r]).collect();
    for &r in &saved {
        writer.plain(Opcode::Push, Some(r))?;
    }
    let own = own_frame(frame, spills_at, program, homes);
    if let Some(bytes) = own {
        writer.begin_frame(bytes)?;
    }
    for item in &program.items {
        writer.record.begin();
        writer.item(item)?;
    }
    writer.record.begin();
    writer.plain(Opcode::Vzeroupper, None)?;
    if let Some(bytes) = own {
        writer.end_frame(bytes)?;
    }
    for &r in saved.iter().rev() {
        writer.plain(Opcode::Pop, Some(r))?;
    }
    writer.plain(Opcode::Ret, None)?;
    writer.finish(pool)
}

/// Bytes of the frame that a program makes itself: what it names, and spilled registers behind it; `None` if it makes none.
fn own_frame(frame: FrameFrom, spills_at: u64, program: &MachineProgram, homes: &Homes) -> Option<u64> {
    let is_named = || homes.frame_bytes > 0 || program.items.iter().any(|item| item.reads(FRAME));
    let bytes = (spills_at + u64::from(homes.frame_bytes)).next_multiple_of(8);
    (frame == FrameFrom::Stack && is_named()).then_some(bytes)
}

/// Bytes of the stack below which a system may have a page that nobody may touch, but grows the stack for whoever
/// touches its pages one after the other.
const PAGE: u64 = 4096;

/// The alignment of the first instruction of a loop, in bytes.
const LOOP_ALIGN: usize = 32;

/// Instructions that do nothing, of 1 to 9 bytes, as AMD and Intel recommend them.
const NOTHING: [&[u8]; 9] = [
    &[0x90],
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0x00],
    &[0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];

/// The encoding of a move to a register.
const LOAD: Encoding = encoding(Code::Mov_r64_rm64);

struct Writer<'a> {
    program: &'a MachineProgram,
    homes: &'a Homes,
    tier: Tier,
    frame: u64,
    bytes: Vec<u8>,
    labels: Vec<Option<usize>>,
    /// The places of distances to labels, 4 bytes each.
    jumps: Vec<(usize, Label)>,
    /// The places of distances to constants, with the start of the next instruction.
    constants: Vec<(usize, usize, u32)>,
    marks: Vec<(usize, Mark)>,
    record: Record,
}

impl Writer<'_> {
    /// The place of the next byte.
    fn at(&self) -> usize {
        self.bytes.len()
    }

    /// Writes an instruction; returns the place of the distance to an operand behind the code.
    fn write(&mut self, (encoding, instruction): (&Encoding, Instruction)) -> Option<usize> {
        self.record.wrote(instruction);
        bytes::write(encoding, &instruction, &mut self.bytes)
    }

    /// Makes a frame on the stack at a multiple of 64 bytes; the stack's old end lies behind it.
    fn begin_frame(&mut self, bytes: u64) -> Result<(), Refused> {
        const TOUCH: Encoding = encoding(Code::Mov_rm8_imm8);
        const LOAD_ADDRESS: Encoding = encoding(Code::Lea_r64_m);
        const AND: Encoding = encoding(Code::And_rm64_imm8);
        const STORE: Encoding = encoding(Code::Mov_rm64_r64);
        let below = |bytes: u64| MemoryOperand::with_base_displ(Register::RSP, -(bytes as i64));
        for page in 1..=(bytes + 8 + SCRATCH_ALIGN) / PAGE {
            let touch = Instruction::with1(Code::Mov_rm8_imm8, below(page * PAGE));
            self.framing(&TOUCH, with_byte(touch, OpKind::Immediate8, 0))?;
        }
        self.framing(&LOAD_ADDRESS, Instruction::with2(Code::Lea_r64_m, Register::RSI, below(bytes + 8)))?;
        let and = Instruction::with1(Code::And_rm64_imm8, Register::RSI);
        self.framing(&AND, with_byte(and, OpKind::Immediate8to64, -(SCRATCH_ALIGN as i8)))?;
        let old_end = MemoryOperand::with_base_displ(Register::RSI, bytes as i64);
        self.framing(&STORE, Instruction::with2(Code::Mov_rm64_r64, old_end, Register::RSP))?;
        self.framing(&LOAD, Instruction::with2(Code::Mov_r64_rm64, Register::RSP, Register::RSI))
    }

    /// Ends the frame that [`begin_frame`](Self::begin_frame) made.
    fn end_frame(&mut self, bytes: u64) -> Result<(), Refused> {
        let old_end = MemoryOperand::with_base_displ(Register::RSI, bytes as i64);
        self.framing(&LOAD, Instruction::with2(Code::Mov_r64_rm64, Register::RSP, old_end))
    }

    /// Writes an instruction around the program, which names no virtual registers.
    fn framing(&mut self, encoding: &Encoding, instruction: Result<Instruction, IcedError>) -> Result<(), Refused> {
        let instruction = instruction.map_err(|e| Refused(format!("the frame: {e}")))?;
        bytes::write(encoding, &instruction, &mut self.bytes);
        Ok(())
    }

    /// The instruction of the tier, without its operands, and its encoding.
    fn bare(&self, opcode: Opcode) -> Result<(&'static Encoding, Instruction), Refused> {
        let form = opcode.row().form(self.tier).ok_or_else(|| Refused(format!("{opcode:?} in {:?}", self.tier)))?;
        let mut i = Instruction::default();
        i.set_code(form.code);
        Ok((&form.encoding, i))
    }

    /// Writes an instruction of one register of the machine, or of none.
    fn plain(&mut self, opcode: Opcode, register: Option<Register>) -> Result<(), Refused> {
        let (encoding, mut i) = self.bare(opcode)?;
        if let Some(register) = register {
            i.set_op0_register(register);
        }
        self.write((encoding, i));
        Ok(())
    }

    fn item(&mut self, item: &Item) -> Result<(), Refused> {
        match *item {
            Item::Inst(ref inst) => self.inst(inst, None),
            Item::Copy { to, from } => self.copy(to, from),
            Item::Fma { to, a, b, c, double } => self.fma(to, a, b, c, double),
            Item::Quotient { .. } => unreachable!("its instructions were written by `quotients`"),
            Item::Enter(number) => {
                self.align();
                self.marks.push((self.at(), Mark::Enter(number)));
                Ok(())
            }
            Item::Leave => {
                self.marks.push((self.at(), Mark::Leave));
                Ok(())
            }
            Item::Label(label) => {
                self.labels[label.0 as usize] = Some(self.at());
                Ok(())
            }
            Item::Jump(opcode, label) => {
                let (encoding, mut i) = self.bare(opcode)?;
                i.set_op0_kind(OpKind::NearBranch64);
                i.set_near_branch64(self.at() as u64);
                self.write((encoding, i));
                self.jumps.push((self.at() - 4, label));
                Ok(())
            }
        }
    }

    /// Aligns the begin of a loop to the blocks in which the processor fetches instructions.
    fn align(&mut self) {
        let mut missing = self.at().next_multiple_of(LOOP_ALIGN) - self.at();
        while missing > 0 {
            // One instruction of up to 9 bytes that does nothing.
            let bytes = missing.min(NOTHING.len());
            self.bytes.extend_from_slice(NOTHING[bytes - 1]);
            missing -= bytes;
        }
    }

    fn copy(&mut self, to: Reg, from: Reg) -> Result<(), Refused> {
        let class = self.program.classes[to.0 as usize];
        match (self.homes.of(to), self.homes.of(from)) {
            (Home::None, _) => Ok(()),
            (to, from) if to == from => Ok(()),
            (Home::Register(number), Home::Frame(_)) => self.frame_access(from, number, true),
            (Home::Frame(_), Home::Register(number)) => self.frame_access(to, number, false),
            (Home::Frame(_), _) => {
                let number = last(class, self.tier) - 1;
                self.frame_access(from, number, true)?;
                self.frame_access(to, number, false)
            }
            (Home::Register(to), Home::Register(from)) => self.move_within(class, to, from),
            (Home::Register(_), Home::None) => unreachable!("a register that is read has a home"),
        }
    }

    /// Copies a register of the machine.
    fn move_within(&mut self, class: Class, to: u8, from: u8) -> Result<(), Refused> {
        let opcode = match class {
            Class::General => Opcode::Mov,
            Class::Mask => Opcode::Kmovq,
            Class::Vector => Opcode::Vmovdqa,
        };
        let view = full_view(class, self.tier);
        let (encoding, mut i) = self.bare(opcode)?;
        for (n, number) in [(0, to), (1, from)] {
            i.set_op_kind(n, OpKind::Register);
            i.set_op_register(n, physical(class, number, view));
        }
        self.write((encoding, i));
        Ok(())
    }

    /// Writes `to = a * b + c`. The operand that the instruction replaces is copied first if it has another place.
    fn fma(&mut self, to: Reg, a: Reg, b: Arg, c: Arg, double: bool) -> Result<(), Refused> {
        let factors = [Arg::Reg(a, self.tier.view()), b, c];
        let (copied, inst) = replacing(to, factors, double, self.homes, self.tier);
        match (copied, self.homes.of(to)) {
            (Some(from), Home::Frame(_)) => self.inst(&inst, Some(from)),
            (Some(from), _) => {
                self.copy(to, from)?;
                self.inst(&inst, None)
            }
            (None, _) => self.inst(&inst, None),
        }
    }

    /// Writes an instruction; operands in the frame are memory or pass through scratch registers. If there is `first`, the
    /// operand that the instruction replaces begins with its value.
    fn inst(&mut self, inst: &Inst, first: Option<Reg>) -> Result<(), Refused> {
        if let Some((reg, _)) = inst.def()
            && self.homes.of(reg) == Home::None
        {
            // A result that is never read needs no instruction.
            return Ok(());
        }
        let spilled = Spilled::of(inst, self.program, self.homes);
        let mut scratch: [Vec<(Reg, u8)>; 3] = Default::default();
        for &reg in &spilled.loaded {
            let number = self.scratch(reg, &mut scratch);
            let from = first.filter(|_| spilled.stored == Some(reg)).unwrap_or(reg);
            match self.homes.of(from) {
                Home::Register(held) => self.move_within(self.program.classes[reg.0 as usize], number, held)?,
                _ => self.frame_access(from, number, true)?,
            }
        }
        if let Some(to) = spilled.stored
            && !spilled.loaded.contains(&to)
        {
            match spilled.shared {
                Some(with) => {
                    let of_class = &mut scratch[self.program.classes[to.0 as usize].number()];
                    let number = of_class.iter().find(|(reg, _)| *reg == with).map(|&(_, number)| number);
                    of_class.push((to, number.expect("a loaded register")));
                }
                None => {
                    self.scratch(to, &mut scratch);
                }
            }
        }
        let (encoding, mut i) = self.bare(inst.opcode)?;
        let mut constant = None;
        for (n, arg) in inst.args.iter().enumerate() {
            let n = n as u32;
            match *arg {
                Arg::None => break,
                Arg::Reg(reg, _) if spilled.in_memory == Some(n as usize) => {
                    i.set_op_kind(n, OpKind::Memory);
                    i.set_memory_base(Register::RSI);
                    i.set_memory_displacement64(self.slot(reg));
                    i.set_memory_displ_size(1);
                }
                Arg::Reg(reg, view) => {
                    i.set_op_kind(n, OpKind::Register);
                    i.set_op_register(n, self.register(reg, view, &scratch));
                }
                Arg::Mem(base, offset) => {
                    i.set_op_kind(n, OpKind::Memory);
                    let base = if base == FRAME { Register::RSI } else { self.register(base, View::R64, &scratch) };
                    i.set_memory_base(base);
                    i.set_memory_displacement64(offset as i64 as u64);
                    i.set_memory_displ_size(if offset == 0 { 0 } else { 1 });
                }
                Arg::Pool(entry, broadcast) => {
                    i.set_op_kind(n, OpKind::Memory);
                    i.set_memory_base(Register::RIP);
                    i.set_memory_displacement64(self.at() as u64);
                    i.set_memory_displ_size(8);
                    i.set_is_broadcast(broadcast);
                    constant = Some(entry);
                }
                Arg::Imm(value) => {
                    let kind = match inst.opcode.row().shape.number {
                        Number::Bits64 => OpKind::Immediate64,
                        Number::Signed32 => OpKind::Immediate32to64,
                        Number::Bits32 => OpKind::Immediate32,
                        Number::Byte => OpKind::Immediate8,
                        Number::Absent => unreachable!("the operands of a row are those of its shape"),
                    };
                    i.set_op_kind(n, kind);
                    match kind {
                        OpKind::Immediate64 => i.set_immediate64(value as u64),
                        OpKind::Immediate32to64 => i.set_immediate32to64(value),
                        OpKind::Immediate32 => i.set_immediate32(value as u32),
                        _ => i.set_immediate8(value as u8),
                    }
                }
            }
        }
        if let Some(mask) = inst.mask {
            i.set_op_mask(self.register(mask, View::K, &scratch));
            i.set_zeroing_masking(inst.zeroing);
        }
        let place = self.write((encoding, i));
        if let (Some(entry), Some(place)) = (constant, place) {
            self.constants.push((place, self.at(), entry));
        }
        match spilled.stored {
            Some(to) => {
                let number = scratch.iter().flatten().find(|(reg, _)| *reg == to).map(|&(_, number)| number);
                self.frame_access(to, number.expect("a scratch register"), false)
            }
            None => Ok(()),
        }
    }

    /// A free scratch register for a virtual register in the frame.
    fn scratch(&self, reg: Reg, taken: &mut [Vec<(Reg, u8)>; 3]) -> u8 {
        let class = self.program.classes[reg.0 as usize];
        let of_class = &mut taken[class.number()];
        let number = last(class, self.tier) - 1 - of_class.len() as u8;
        of_class.push((reg, number));
        number
    }

    /// The place of a spilled register, in bytes into the frame.
    fn slot(&self, reg: Reg) -> u64 {
        let Home::Frame(offset) = self.homes.of(reg) else { unreachable!("it lies in the frame") };
        self.frame + u64::from(offset)
    }

    /// Loads or stores a virtual register in the frame.
    fn frame_access(&mut self, reg: Reg, number: u8, load: bool) -> Result<(), Refused> {
        let opcode = match (self.program.classes[reg.0 as usize], self.tier, load) {
            (Class::General, _, true) => Opcode::Mov,
            (Class::General, _, false) => Opcode::MovStore,
            (Class::Mask, _, true) => Opcode::Kmovq,
            (Class::Mask, _, false) => Opcode::KmovqStore,
            (Class::Vector, Tier::Avx2, true) => Opcode::VmovdquYmm,
            (Class::Vector, Tier::Avx2, false) => Opcode::VmovdquYmmStore,
            (Class::Vector, Tier::Avx512, true) => Opcode::Vmovdqu32,
            (Class::Vector, Tier::Avx512, false) => Opcode::Vmovdqu32Store,
        };
        let (encoding, mut i) = self.bare(opcode)?;
        let (at, memory) = if load { (0, 1) } else { (1, 0) };
        i.set_op_kind(at, OpKind::Register);
        let class = self.program.classes[reg.0 as usize];
        i.set_op_register(at, physical(class, number, full_view(class, self.tier)));
        i.set_op_kind(memory, OpKind::Memory);
        i.set_memory_base(Register::RSI);
        i.set_memory_displacement64(self.slot(reg));
        i.set_memory_displ_size(1);
        self.write((encoding, i));
        Ok(())
    }

    fn register(&self, reg: Reg, view: View, scratch: &[Vec<(Reg, u8)>; 3]) -> Register {
        if reg == FRAME {
            return Register::RSI;
        }
        let class = self.program.classes[reg.0 as usize];
        match self.homes.of(reg) {
            Home::Register(n) => physical(class, n, view),
            Home::Frame(_) => {
                let (_, n) = scratch.iter().flatten().find(|(r, _)| *r == reg).expect("a scratch register");
                physical(class, *n, view)
            }
            Home::None => physical(class, 0, view),
        }
    }

    fn finish(mut self, pool: &Pool) -> Result<Encoded, Refused> {
        let mut bytes = std::mem::take(&mut self.bytes);
        let code_bytes = bytes.len();
        for (place, label) in &self.jumps {
            let target = self.labels[label.0 as usize].ok_or_else(|| Refused("a jump to nowhere".into()))?;
            let distance = target as i64 - (*place as i64 + 4);
            bytes[*place..place + 4].copy_from_slice(&(distance as i32).to_le_bytes());
        }
        // The largest constants come first, so that each is aligned to its size.
        let mut order: Vec<usize> = (0..pool.entries.len()).collect();
        order.sort_by_key(|&n| std::cmp::Reverse(pool.entries[n].len()));
        let mut places = vec![0; pool.entries.len()];
        if !order.is_empty() {
            bytes.resize(bytes.len().next_multiple_of(64), 0xcc);
        }
        for n in order {
            bytes.resize(bytes.len().next_multiple_of(pool.entries[n].len().next_power_of_two()), 0);
            places[n] = bytes.len();
            bytes.extend(&pool.entries[n]);
        }
        for &(place, next, entry) in &self.constants {
            let distance = places[entry as usize] as i64 - next as i64;
            bytes[place..place + 4].copy_from_slice(&(distance as i32).to_le_bytes());
        }
        Ok(Encoded { bytes, code_bytes, marks: self.marks, record: self.record })
    }
}

/// The instruction with a number of one byte as its second operand. A constructor that takes a number would look up its
/// kind in a table of 0.8 MB, which is made when it is first used.
fn with_byte(instruction: Result<Instruction, IcedError>, kind: OpKind, byte: i8) -> Result<Instruction, IcedError> {
    let mut instruction = instruction?;
    instruction.set_op1_kind(kind);
    instruction.set_immediate8(byte as u8);
    Ok(instruction)
}

/// The register that holds the frame; it is `rsi` of the machine throughout.
pub const FRAME: Reg = Reg(0);

/// The number after the last register of a class.
fn last(class: Class, tier: Tier) -> u8 {
    match class {
        Class::General => GENERAL.len() as u8,
        Class::Vector => tier.registers() as u8,
        Class::Mask => 7,
    }
}

fn full_view(class: Class, tier: Tier) -> View {
    match class {
        Class::General => View::R64,
        Class::Vector => tier.view(),
        Class::Mask => View::K,
    }
}

/// The machine's register with a number. Mask 0 means no mask and is never allocated.
pub fn physical(class: Class, n: u8, view: View) -> Register {
    match (class, view) {
        // The 32-bit registers have the order of the 64-bit ones.
        (Class::General, View::R32) => Register::EAX + (GENERAL[usize::from(n)] as u32 - Register::RAX as u32),
        (Class::General, _) => GENERAL[usize::from(n)],
        (Class::Mask, _) => Register::K1 + u32::from(n),
        (_, View::Xmm) => Register::XMM0 + u32::from(n),
        (_, View::Ymm) => Register::YMM0 + u32::from(n),
        (_, _) => Register::ZMM0 + u32::from(n),
    }
}
