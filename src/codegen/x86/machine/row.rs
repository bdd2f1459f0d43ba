//! The facts of a machine instruction, a row of the [`table`](super::table).

use super::encoding::Encoding;
use super::tier::Tier;
use iced_x86::Code;

/// The use of an instruction's first operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// It is written: a register, or memory.
    Def,
    /// It is read and written.
    Mod,
    /// It is read.
    Use,
}

/// The instruction of a row in one instruction set.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Its name.
    pub code: Code,
    /// Its encoding.
    pub encoding: Encoding,
    /// Cycles from its operands to its result.
    pub cycles: u32,
}

/// The operands of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Operands, the number in the instruction too.
    pub operands: usize,
    /// The use of the first operand.
    pub first: First,
    /// The number in the instruction, its last operand.
    pub number: Number,
    /// The use of the flags.
    pub flags: Flags,
}

/// The number in an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// No number.
    Absent,
    /// A byte.
    Byte,
    /// 32 bits, extended to 64 with their sign.
    Signed32,
    /// 32 bits.
    Bits32,
    /// 64 bits.
    Bits64,
}

/// The use of the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flags {
    /// No use: the instruction keeps them.
    Keeps,
    /// It sets them.
    Sets,
    /// The instruction's effect depends on them.
    Reads,
}

/// The effect of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masking {
    /// No mask, or the result is no whole vector.
    Unmasked,
    /// Lanes of so many bytes outside the mask keep their value, or become zero.
    Merges(u64),
    /// The mask chooses between the operands.
    Picks,
    /// The result is a mask, with no bits outside this one.
    Holds,
}

/// The operands that may be memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// No operand.
    Registers,
    /// One operand, which is an address and is not read.
    Address,
    /// One operand, but no constants.
    Plain,
    /// One operand; the last register may be replaced by a constant in memory, a whole vector.
    Whole,
    /// The operand of `Whole`; in AVX-512 the constant may also be an element of so many bytes, for all lanes.
    Each(u64),
}

/// The facts of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its operands.
    pub shape: Shape,
    /// The effect of a mask.
    pub masking: Masking,
    /// The operands that may be memory.
    pub memory: Memory,
    /// The form in AVX2.
    pub avx2: Option<Form>,
    /// The form in AVX-512.
    pub avx512: Option<Form>,
}

impl Row {
    /// The instruction of a tier, if it has one.
    pub fn form(&self, tier: Tier) -> Option<&Form> {
        if tier.is_512() { self.avx512.as_ref() } else { self.avx2.as_ref() }
    }
}

/// Returns the shape of an instruction that writes its first operand and keeps the flags.
const fn writes(operands: usize, number: Number) -> Shape {
    Shape { operands, first: First::Def, number, flags: Flags::Keeps }
}

/// Returns the shape of an instruction that changes its first operand and sets the flags.
const fn counts(operands: usize, number: Number) -> Shape {
    Shape { operands, first: First::Mod, number, flags: Flags::Sets }
}

/// Returns the shape of an instruction whose first operand is only read.
const fn reads(operands: usize, number: Number, flags: Flags) -> Shape {
    Shape { operands, first: First::Use, number, flags }
}

/// `to = op(a)`.
pub const UNARY: Shape = writes(2, Number::Absent);
/// `to = op(a, number)`.
pub const UNARY_BY: Shape = writes(3, Number::Byte);
/// `to = op(a, b)`.
pub const BINARY: Shape = writes(3, Number::Absent);
/// `to = op(a, b, number)`.
pub const BINARY_BY: Shape = writes(4, Number::Byte);
/// `to = op(a, b, c)`.
pub const TERNARY: Shape = writes(4, Number::Absent);
/// `to = op(to, a, b)`.
pub const ONTO: Shape = Shape { first: First::Mod, ..BINARY };
/// `to = op(to, a, b, number)`.
pub const ONTO_BY: Shape = Shape { first: First::Mod, ..BINARY_BY };
/// `to = number`, of 32 bits.
pub const NUMBER_32: Shape = writes(2, Number::Bits32);
/// `to = number`, of 64 bits.
pub const NUMBER_64: Shape = writes(2, Number::Bits64);
/// `to = op(to, a)`.
pub const COUNT: Shape = counts(2, Number::Absent);
/// `to = op(to, number)`.
pub const COUNT_BY: Shape = counts(2, Number::Signed32);
/// `to = op(to)`.
pub const NEGATE: Shape = counts(1, Number::Absent);
/// `to = op(to, number)`, of a byte.
pub const SHIFT: Shape = counts(2, Number::Byte);
/// `to = op(a, number)` that sets the flags.
pub const MULTIPLY: Shape = Shape { first: First::Def, ..counts(3, Number::Signed32) };
/// `to = op(a)` that sets the flags.
pub const BIT: Shape = Shape { first: First::Def, ..COUNT };
/// `to = flags ? a : to`.
pub const CHOOSE: Shape = Shape { flags: Flags::Reads, ..COUNT };
/// The flags of two operands.
pub const TEST: Shape = reads(2, Number::Absent, Flags::Sets);
/// The flags of an operand and a number.
pub const TEST_BY: Shape = reads(2, Number::Signed32, Flags::Sets);
/// A hint about an address.
pub const HINT: Shape = reads(1, Number::Absent, Flags::Keeps);
/// A jump.
pub const JUMP: Shape = reads(1, Number::Absent, Flags::Keeps);
/// A jump where the flags say so.
pub const JUMP_IF: Shape = reads(1, Number::Absent, Flags::Reads);
/// A register to the stack.
pub const SAVE: Shape = reads(1, Number::Absent, Flags::Keeps);
/// A register from the stack.
pub const RESTORE: Shape = writes(1, Number::Absent);
/// No operands.
pub const BARE: Shape = reads(0, Number::Absent, Flags::Keeps);
