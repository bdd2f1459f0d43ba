//! The bytes of an instruction, by its encoding.

use super::encoding::{Encoding, Prefix};
use iced_x86::{Instruction, OpKind, Register};

/// The fields of an instruction.
#[derive(Default)]
struct Fields {
    /// The register in `reg`, or the part of the opcode that stands there.
    reg: u8,
    /// The register in `vvvv`.
    vvvv: u8,
    rm: Rm,
    /// The register in the opcode.
    in_opcode: u8,
    /// The number behind the instruction.
    number: u64,
}

/// The field `rm`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Rm {
    #[default]
    Absent,
    Register(u8),
    /// Memory at an offset from a register, or from the end of the instruction.
    Memory(Register),
}

impl Rm {
    /// The number of the register.
    fn number(self) -> u8 {
        match self {
            Rm::Register(number) => number,
            Rm::Memory(base) if base != Register::RIP => number_of(base),
            Rm::Absent | Rm::Memory(_) => 0,
        }
    }
}

/// Adds the bytes of an instruction. Returns the place of four bytes for the distance to an operand in memory behind the
/// code, if there is one; the distance to the target of a jump is its last four bytes.
pub fn write(encoding: &Encoding, instruction: &Instruction, bytes: &mut Vec<u8>) -> Option<usize> {
    let fields = fields(encoding, instruction);
    match encoding.prefix {
        Prefix::Legacy => legacy(encoding, &fields, bytes),
        Prefix::Vex => vex(encoding, &fields, bytes),
        Prefix::Evex => evex(encoding, &fields, instruction, bytes),
    }
    bytes.push(encoding.opcode | fields.in_opcode & 7);
    bytes.extend(encoding.second);
    let place = match fields.rm {
        Rm::Absent => None,
        Rm::Register(number) => {
            bytes.push(0xc0 | (fields.reg & 7) << 3 | number & 7);
            None
        }
        Rm::Memory(base) => memory(encoding, base, fields.reg, instruction, bytes),
    };
    bytes.extend_from_slice(&fields.number.to_le_bytes()[..usize::from(encoding.number_bytes)]);
    place
}

fn fields(encoding: &Encoding, instruction: &Instruction) -> Fields {
    let mut fields = Fields { reg: encoding.digit, ..Fields::default() };
    for (n, letter) in (0..).zip(encoding.operands) {
        let register = || number_of(instruction.op_register(n));
        match letter {
            b'R' => fields.reg = register(),
            b'V' => fields.vvvv = register(),
            b'M' if instruction.op_kind(n) == OpKind::Register => fields.rm = Rm::Register(register()),
            b'M' => fields.rm = Rm::Memory(instruction.memory_base()),
            b'O' => fields.in_opcode = register(),
            b'S' => fields.number = u64::from(register() << 4),
            b'I' => fields.number = instruction.immediate(n),
            b'D' => {}
            _ => unreachable!("a letter of a field"),
        }
    }
    fields
}

/// The number of a register in its class.
fn number_of(register: Register) -> u8 {
    const FIRST: [Register; 6] =
        [Register::K0, Register::ZMM0, Register::YMM0, Register::XMM0, Register::RAX, Register::EAX];
    let first = FIRST.into_iter().find(|&first| first <= register).expect("a register of instructions in the table");
    (register as u32 - first as u32) as u8
}

/// The bit of a number, 0 or 1.
fn bit(number: u8, place: u8) -> u8 {
    number >> place & 1
}

fn legacy(encoding: &Encoding, fields: &Fields, bytes: &mut Vec<u8>) {
    const MANDATORY: [u8; 4] = [0, 0x66, 0xf3, 0xf2];
    if encoding.mandatory > 0 {
        bytes.push(MANDATORY[usize::from(encoding.mandatory)]);
    }
    let last = bit(fields.rm.number() | fields.in_opcode, 3);
    let rex = u8::from(encoding.w) << 3 | bit(fields.reg, 3) << 2 | last;
    if rex > 0 {
        bytes.push(0x40 | rex);
    }
    if encoding.map > 0 {
        bytes.push(0x0f);
    }
}

fn vex(encoding: &Encoding, fields: &Fields, bytes: &mut Vec<u8>) {
    let (not_r, not_b) = (1 - bit(fields.reg, 3), 1 - bit(fields.rm.number(), 3));
    let last = (!fields.vvvv & 15) << 3 | encoding.length << 2 | encoding.mandatory;
    match encoding.map == 1 && !encoding.w && not_b == 1 {
        true => bytes.extend([0xc5, not_r << 7 | last]),
        false => {
            let first = not_r << 7 | 1 << 6 | not_b << 5 | encoding.map;
            bytes.extend([0xc4, first, u8::from(encoding.w) << 7 | last]);
        }
    }
}

fn evex(encoding: &Encoding, fields: &Fields, instruction: &Instruction, bytes: &mut Vec<u8>) {
    let (reg, rm, vvvv) = (!fields.reg, !fields.rm.number(), !fields.vvvv);
    let mask = match instruction.op_mask() {
        Register::None => 0,
        mask => number_of(mask),
    };
    let first = bit(reg, 3) << 7 | bit(rm, 4) << 6 | bit(rm, 3) << 5 | bit(reg, 4) << 4 | encoding.map;
    let second = u8::from(encoding.w) << 7 | (vvvv & 15) << 3 | 1 << 2 | encoding.mandatory;
    let broadcast = u8::from(instruction.is_broadcast()) << 4;
    let zeroing = u8::from(instruction.zeroing_masking()) << 7;
    bytes.extend([0x62, first, second, zeroing | encoding.length << 5 | broadcast | bit(vvvv, 4) << 3 | mask]);
}

/// Adds the ModRM byte of an operand in memory, and what follows it.
fn memory(
    encoding: &Encoding,
    base: Register,
    reg: u8,
    instruction: &Instruction,
    bytes: &mut Vec<u8>,
) -> Option<usize> {
    let reg = (reg & 7) << 3;
    let offset = instruction.memory_displacement64() as i32;
    if base == Register::RIP {
        bytes.push(reg | 5);
        bytes.extend_from_slice(&[0; 4]);
        return Some(bytes.len() - 4);
    }
    let number = number_of(base) & 7;
    let short = short_offset(encoding, offset, instruction.is_broadcast());
    // The number of rbp and r13 without an offset means the end of the instruction.
    let is_absent = instruction.memory_displ_size() == 0 && number != 5;
    let mode = match short {
        Some(_) if is_absent => 0,
        Some(_) => 1,
        None => 2,
    };
    bytes.push(mode << 6 | reg | number);
    if number == 4 {
        // The number of rsp and r12 means this byte, which names the base alone.
        bytes.push(0x24);
    }
    match (mode, short) {
        (0, _) => {}
        (1, Some(short)) => bytes.push(short as u8),
        _ => bytes.extend_from_slice(&offset.to_le_bytes()),
    }
    None
}

/// The offset in one byte, if it fits: EVEX counts multiples of the operand's bytes.
fn short_offset(encoding: &Encoding, offset: i32, is_broadcast: bool) -> Option<i8> {
    let unit = match (encoding.prefix, is_broadcast) {
        (Prefix::Legacy | Prefix::Vex, _) => 1,
        (Prefix::Evex, true) => i32::from(encoding.element_bytes),
        (Prefix::Evex, false) => i32::from(encoding.memory_bytes),
    };
    let count = i8::try_from(offset / unit).ok()?;
    (offset % unit == 0).then_some(count)
}
