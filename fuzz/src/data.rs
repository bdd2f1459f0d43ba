//! Random elements, and the buffers that hold them.

use cranefold::{DType, Scalar};
use std::ops::Range;

/// A generator of random numbers (splitmix64).
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number of 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// One of these values.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// The elements of one input, of one of these kinds:
///
/// | kind | |
/// | --- | --- |
/// | 0 | any bits |
/// | 1 | the corners of the type only |
/// | 2 | finite, of every magnitude |
/// | 3 | finite, of like magnitude |
/// | 4 | small integers |
/// | 5 | like magnitude, with one corner among a hundred |
/// | 6 | one corner, everywhere |
/// | 7 | like magnitude, all of one sign |
pub fn elements(dtype: DType, count: usize, kind: u8, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let dtype = if dtype == DType::Bool { DType::U8 } else { dtype };
    let all = corner(dtype, &mut random);
    let mut bytes = vec![0; count * dtype.bytes() as usize];
    for index in 0..count {
        let value = match kind {
            0 => Scalar::from_bits(dtype, random.bits()),
            1 => corner(dtype, &mut random),
            2 => finite(dtype, 1 << 11, &mut random),
            3 => finite(dtype, 3, &mut random),
            4 => small(dtype, &mut random),
            5 if random.below(100) == 0 => corner(dtype, &mut random),
            5 => finite(dtype, 3, &mut random),
            6 => all,
            _ => positive(finite(dtype, 3, &mut random)),
        };
        value.write(&mut bytes, index);
    }
    bytes
}

/// The stored bits of the significand, and the bits of the exponent.
fn format(dtype: DType) -> (u32, u32) {
    let stored = dtype.significand_bits().expect("a float type") - 1;
    (stored, dtype.bits() - 1 - stored)
}

/// A corner value: NaNs of any sign and payload, infinities, zeros, subnormals, the ends of the range, one; for
/// integers the limits and their neighbours, and the numbers next to zero.
fn corner(dtype: DType, random: &mut Random) -> Scalar {
    if !dtype.is_float() {
        let (low, high) = dtype.int_range().expect("an integer type");
        let corners = [low, low + 1, high, high - 1, 0, 1, 2, -1, high / 2, low / 2];
        return Scalar::int(dtype, corners[random.below(10) as usize]);
    }
    let (stored, exponent) = format(dtype);
    let top = ((1 << exponent) - 1) << stored;
    let significand = (1 << stored) - 1;
    let magnitude = match random.below(10) {
        0 => top | (random.bits() & significand).max(1),
        1 => top | 1 << (stored - 1),
        2 | 3 => top,
        4 | 5 => 0,
        6 => 1 + random.below(3),
        7 => random.bits() & significand,
        8 => top - 1,
        _ => 1 << stored,
    };
    signed(dtype, magnitude, random)
}

fn signed(dtype: DType, magnitude: u64, random: &mut Random) -> Scalar {
    Scalar::from_bits(dtype, magnitude | random.below(2) << (dtype.bits() - 1))
}

/// A float with an exponent within `spread` of that of 1; an integer of few or of all bits.
fn finite(dtype: DType, spread: u64, random: &mut Random) -> Scalar {
    if !dtype.is_float() {
        let bits = if spread > 8 { random.below(u64::from(dtype.bits())) } else { u64::from(dtype.bits()) / 2 };
        let value = (random.bits() >> (63 - bits)) as i128;
        return Scalar::int(dtype, if dtype.is_signed() && random.below(2) == 0 { -value } else { value });
    }
    let (stored, exponent) = format(dtype);
    let bias = (1 << (exponent - 1)) - 1;
    let spread = spread.min(bias - 1);
    let power = bias - spread + random.below(2 * spread + 1);
    signed(dtype, power << stored | random.bits() & ((1 << stored) - 1), random)
}

fn small(dtype: DType, random: &mut Random) -> Scalar {
    Scalar::int(dtype, i128::from(random.below(7)) - 3)
}

fn positive(value: Scalar) -> Scalar {
    match value.dtype().is_float() {
        true => Scalar::from_bits(value.dtype(), value.bits() & !(1 << (value.dtype().bits() - 1))),
        false => value,
    }
}

/// Bytes at a chosen distance from 16-byte alignment, with guards on both sides.
pub struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

/// The guard bytes on each side, which nothing may write.
const GUARD: usize = 64;

/// The initial byte of a buffer at a distance from its start.
fn pattern(at: isize) -> u8 {
    (at * 37 + 11) as u8
}

impl Clone for Buffer {
    /// A copy of the bytes at the same distance from alignment.
    fn clone(&self) -> Buffer {
        let offset = (self.memory.as_ptr().addr() + self.start) % 16;
        Buffer::holding(self.bytes(), offset)
    }
}

impl Buffer {
    /// A buffer of a pattern of bytes, `offset` bytes off alignment.
    pub fn new(len: usize, offset: usize) -> Buffer {
        let mut memory = vec![0; len + 2 * GUARD + 32];
        let start = memory.as_ptr().align_offset(16) + GUARD + offset;
        memory.iter_mut().zip(-(start as isize)..).for_each(|(byte, at)| *byte = pattern(at));
        Buffer { memory, start, len }
    }

    /// A buffer that holds these bytes.
    pub fn holding(bytes: &[u8], offset: usize) -> Buffer {
        let mut buffer = Buffer::new(bytes.len(), offset);
        buffer.bytes_mut().copy_from_slice(bytes);
        buffer
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..][..self.len]
    }

    /// The bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.len]
    }

    /// Returns true if no byte outside the buffer has changed.
    pub fn guards_hold(&self) -> bool {
        self.untouched(0..self.start) && self.untouched(self.start + self.len..self.memory.len())
    }

    fn untouched(&self, mut memory: Range<usize>) -> bool {
        memory.all(|i| self.memory[i] == pattern(i as isize - self.start as isize))
    }
}
