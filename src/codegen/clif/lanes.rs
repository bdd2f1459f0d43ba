//! Vectors: partial loads and stores, lanes in and out of registers, conversions between sizes.

use super::{Generator, vector_type};
use cranefold_ir::DType;
use cranelift_codegen::ir::{ConstantData, Endianness, InstBuilder, MemFlagsData, Type, Value, types};

/// Flags of a reinterpretation in which each lane lies in memory with its lowest byte first, in the order of lanes: the
/// lanes of the result are then the same on every target.
pub(super) fn little() -> MemFlagsData {
    MemFlagsData::new().with_endianness(Endianness::Little)
}

impl Generator<'_> {
    /// Reinterprets the vector as another type of 128 bits.
    pub(super) fn reread(&mut self, value: Value, ty: Type) -> Value {
        if self.builder.func.dfg.value_type(value) == ty {
            return value;
        }
        self.builder.ins().bitcast(ty, little(), value)
    }

    /// Reinterprets the vector as if it had been stored and loaded: elements keep their place in memory, which on
    /// big-endian targets is the high end of a lane of several elements.
    fn reread_memory(&mut self, value: Value, ty: Type) -> Value {
        if self.builder.func.dfg.value_type(value) == ty {
            return value;
        }
        let flags = MemFlagsData::new().with_endianness(self.target.order);
        self.builder.ins().bitcast(ty, flags, value)
    }

    /// Loads lanes from consecutive elements, and reads exactly their bytes.
    pub(super) fn load_lanes(
        &mut self,
        dtype: DType,
        lanes: u64,
        flags: MemFlagsData,
        pointer: Value,
        offset: i32,
    ) -> Value {
        let ty = vector_type(dtype);
        let part = match lanes * dtype.bytes() {
            16 => return self.builder.ins().load(ty, flags, pointer, offset),
            8 => self.builder.ins().load(types::I64, flags, pointer, offset),
            4 => self.builder.ins().load(types::I32, flags, pointer, offset),
            _ => {
                let low = self.builder.ins().uload16(types::I32, flags, pointer, offset);
                match self.target.order {
                    Endianness::Little => low,
                    // The first bytes in memory are the high ones.
                    Endianness::Big => self.builder.ins().ishl_imm_s(low, 16),
                }
            }
        };
        let part_type = self.builder.func.dfg.value_type(part);
        let whole = self.builder.ins().scalar_to_vector(part_type.by(128 / part_type.bits()).expect("a vector"), part);
        self.reread_memory(whole, ty)
    }

    /// Stores lanes to consecutive elements, and writes exactly their bytes.
    pub(super) fn store_lanes(
        &mut self,
        dtype: DType,
        lanes: u64,
        value: Value,
        flags: MemFlagsData,
        pointer: Value,
        offset: i32,
    ) {
        let ty = match lanes * dtype.bytes() {
            16 => {
                self.builder.ins().store(flags, value, pointer, offset);
                return;
            }
            8 => types::I64X2,
            4 => types::I32X4,
            _ => types::I16X8,
        };
        let whole = self.reread_memory(value, ty);
        let part = self.builder.ins().extractlane(whole, 0);
        self.builder.ins().store(flags, part, pointer, offset);
    }

    /// A shuffle of the bytes of two vectors: 0..16 are the bytes of `a`, 16..32 those of `b`.
    fn shuffle(&mut self, a: Value, b: Value, bytes: [u8; 16]) -> Value {
        let ty = self.builder.func.dfg.value_type(a);
        let (a, b) = (self.reread(a, types::I8X16), self.reread(b, types::I8X16));
        let mask = self.builder.func.dfg.immediates.push(ConstantData::from(bytes.as_slice()));
        let shuffled = self.builder.ins().shuffle(a, b, mask);
        self.reread(shuffled, ty)
    }

    /// The vector whose lane `i` is lane `from(i)` of two vectors, with the lanes of `b` numbered after those of `a`.
    pub(super) fn pick_lanes(&mut self, a: Value, b: Value, dtype: DType, from: impl Fn(u64) -> u64) -> Value {
        let bytes = dtype.bytes();
        let byte = |i: usize| (from(i as u64 / bytes) * bytes) as u8 + (i as u64 % bytes) as u8;
        self.shuffle(a, b, std::array::from_fn(byte))
    }

    /// The vector with lane `lane` and all after it moved to lane 0 and on.
    pub(super) fn take_lanes(&mut self, value: Value, dtype: DType, lane: u64) -> Value {
        if lane == 0 {
            return value;
        }
        let start = (lane * dtype.bytes()) as u8;
        self.shuffle(value, value, std::array::from_fn(|i| (start + i as u8) % 16))
    }

    /// The vector `old` with the first lanes of `new` from lane `lane` on.
    pub(super) fn put_lanes(&mut self, old: Value, new: Value, dtype: DType, lane: u64, lanes: u64) -> Value {
        let (start, end) = (lane * dtype.bytes(), (lane + lanes) * dtype.bytes());
        let byte = |i: usize| if (start..end).contains(&(i as u64)) { 16 + i as u8 - start as u8 } else { i as u8 };
        self.shuffle(old, new, std::array::from_fn(byte))
    }

    /// Converts integer lanes to another size, modulo 2^bits.
    pub(super) fn resize_lanes(&mut self, value: Value, from: DType, to: DType) -> Value {
        let mut value = value;
        let mut bytes = from.bytes();
        while bytes < to.bytes() {
            value = match from.is_signed() {
                true => self.builder.ins().swiden_low(value),
                false => self.builder.ins().uwiden_low(value),
            };
            bytes *= 2;
        }
        if bytes > to.bytes() {
            let (wide, narrow) = (bytes as usize, to.bytes() as usize);
            let lanes = 16 / wide;
            let byte = |i: usize| ((i / narrow % lanes) * wide + i % narrow) as u8;
            value = self.shuffle(value, value, std::array::from_fn(byte));
            value = self.reread(value, vector_type(to));
        }
        value
    }
}
