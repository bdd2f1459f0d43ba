//! Element types.

use crate::nearest;
use std::fmt;
use std::str::FromStr;

/// The type of one element.
///
/// In a nest, `Bool` is the type of comparisons and conditions only; a buffer of booleans is a
/// buffer of `U8` there, in which every non-zero byte means true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each variant is its own name")]
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

use DType::*;

impl DType {
    /// Every element type, in the order of the documentation's tables.
    pub const ALL: [DType; 13] = [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, Bf16, F32, F64];

    /// The name in text forms: `f32`, `bf16`, `u8`.
    pub const fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            I8 => "i8",
            I16 => "i16",
            I32 => "i32",
            I64 => "i64",
            U8 => "u8",
            U16 => "u16",
            U32 => "u32",
            U64 => "u64",
            F16 => "f16",
            Bf16 => "bf16",
            F32 => "f32",
            F64 => "f64",
        }
    }

    /// Size of one element in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Bool | I8 | U8 => 1,
            I16 | U16 | F16 | Bf16 => 2,
            I32 | U32 | F32 => 4,
            I64 | U64 | F64 => 8,
        }
    }

    /// Size of one element in bits.
    pub const fn bits(self) -> u32 {
        self.bytes() as u32 * 8
    }

    /// Returns true for the four binary floating-point types.
    pub const fn is_float(self) -> bool {
        matches!(self, F16 | Bf16 | F32 | F64)
    }

    /// Returns true for the eight integer types, of which `bool` is none.
    pub const fn is_int(self) -> bool {
        matches!(self, I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64)
    }

    /// Returns true for the signed integer types.
    pub const fn is_signed(self) -> bool {
        matches!(self, I8 | I16 | I32 | I64)
    }

    /// The signed integer type of the same size.
    pub const fn signed(self) -> DType {
        match self.bytes() {
            1 => I8,
            2 => I16,
            4 => I32,
            _ => I64,
        }
    }

    /// The unsigned integer type of the same size.
    pub const fn unsigned(self) -> DType {
        match self.bytes() {
            1 => U8,
            2 => U16,
            4 => U32,
            _ => U64,
        }
    }

    /// The least and the greatest value of an integer type; `None` for the others.
    pub const fn int_range(self) -> Option<(i128, i128)> {
        if !self.is_int() {
            None
        } else if self.is_signed() {
            Some((-(1 << (self.bits() - 1)), (1 << (self.bits() - 1)) - 1))
        } else {
            Some((0, (1 << self.bits()) - 1))
        }
    }

    /// Returns whether this is an integer type that holds this number.
    pub fn holds(self, number: u64) -> bool {
        self.int_range().is_some_and(|(_, highest)| i128::from(number) <= highest)
    }

    /// Bits of a float's significand, the hidden one included; `None` for the others.
    pub const fn significand_bits(self) -> Option<u32> {
        match self {
            F16 => Some(11),
            Bf16 => Some(8),
            F32 => Some(24),
            F64 => Some(53),
            _ => None,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text names no element type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is no dtype{meant}; the dtypes are bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64",
    name = .0,
    meant = nearest::meant_dtype(.0)
)]
pub struct UnknownDType(pub String);

impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(text: &str) -> Result<DType, UnknownDType> {
        DType::ALL.into_iter().find(|d| d.name() == text).ok_or_else(|| UnknownDType(text.chars().take(40).collect()))
    }
}
