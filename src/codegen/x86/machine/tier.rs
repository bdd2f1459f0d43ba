//! The two instruction sets: AVX2 on 256 bits, AVX-512 on 512.

use super::code::View;
use super::table::Opcode;
use crate::vectors::Vectors;

/// An instruction set of wide vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// x86-64-v3: 16 registers of 256 bits.
    Avx2,
    /// x86-64-v4: 32 registers of 512 bits, and masks.
    Avx512,
}

impl Tier {
    /// The tier of wide vectors.
    pub fn of(vectors: Vectors) -> Tier {
        if vectors.has_masks() { Tier::Avx512 } else { Tier::Avx2 }
    }

    /// Returns true if the tier has an instruction.
    pub fn has(self, opcode: Opcode) -> bool {
        opcode.row().form(self).is_some()
    }

    /// The argument for this tier.
    pub fn pick_view(self, avx2: View, avx512: View) -> View {
        if self.is_512() { avx512 } else { avx2 }
    }

    /// Returns true for AVX-512.
    pub fn is_512(self) -> bool {
        self == Tier::Avx512
    }

    /// Bytes of a vector.
    pub fn bytes(self) -> u64 {
        if self.is_512() { 64 } else { 32 }
    }

    /// The number of vector registers.
    pub fn registers(self) -> usize {
        if self.is_512() { 32 } else { 16 }
    }

    /// The whole of a vector register.
    pub fn view(self) -> View {
        if self.is_512() { View::Zmm } else { View::Ymm }
    }

    /// The view that holds `bytes` bytes, at least 16.
    pub fn view_of(self, bytes: u64) -> View {
        match bytes {
            0..=16 => View::Xmm,
            17..=32 => View::Ymm,
            _ => View::Zmm,
        }
    }
}
