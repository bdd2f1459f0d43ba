//! Vectors: partial loads and stores, lanes in and out of registers, conversions between sizes.

use super::{Generator, Operand, Unsupported, Val, scalar_type, vector_type};
use cranefold_ir::{DType, Scalar};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{
    ConstantData, Endianness, Function, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Type,
    Value, types,
};
use cranelift_frontend::FunctionBuilder;

/// Reinterprets a vector as if each lane lay in memory with its lowest byte first, in the order of lanes: what a lane
/// becomes is then the same on every target.
pub(super) fn little() -> MemFlagsData {
    MemFlagsData::new().with_endianness(Endianness::Little)
}

/// Vector constants that are kept in the frame.
pub(super) struct Addends {
    slot: StackSlot,
    /// The address of the first.
    base: Value,
    known: Vec<Scalar>,
}

impl Addends {
    /// None yet; the builder is at the start of the function.
    pub(super) fn new(builder: &mut FunctionBuilder) -> Addends {
        let slot = builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 0, 4));
        Addends { slot, base: builder.ins().stack_addr(types::I64, slot, 0), known: vec![] }
    }

    /// The distance of a constant from the first, in bytes.
    fn offset_bytes(&mut self, s: Scalar) -> i32 {
        let at = self.known.iter().position(|&k| k == s).unwrap_or_else(|| {
            self.known.push(s);
            self.known.len() - 1
        });
        at as i32 * 16
    }

    /// Makes room for the constants and writes them where the function starts.
    pub(super) fn fill(self, function: &mut Function) {
        function.sized_stack_slots[self.slot].size = self.known.len() as u32 * 16;
        let start = function.dfg.value_def(self.base).unwrap_inst();
        let mut cursor = FuncCursor::new(function).after_inst(start);
        for (at, s) in self.known.into_iter().enumerate() {
            let data = cursor.func.dfg.constants.insert(bytes_of(s));
            let value = cursor.ins().vconst(vector_type(s.dtype()), data);
            cursor.ins().store(MemFlagsData::new().with_notrap(), value, self.base, at as i32 * 16);
        }
    }
}

/// The bytes of a vector of one constant in all lanes.
fn bytes_of(s: Scalar) -> ConstantData {
    let size = s.dtype().bytes() as usize;
    let bits = if s.dtype() == DType::Bool { 0u64.wrapping_sub(s.bits()) } else { s.bits() };
    ConstantData::from(bits.to_le_bytes()[..size].repeat(16 / size))
}

impl Generator<'_> {
    /// A scalar constant.
    pub(super) fn constant(&mut self, s: Scalar) -> Value {
        match s.dtype() {
            DType::F32 => self.builder.ins().f32const(Ieee32::with_bits(s.bits() as u32)),
            DType::F64 => self.builder.ins().f64const(Ieee64::with_bits(s.bits())),
            d => {
                // `iconst` takes the bits as an unsigned number of the type's size.
                self.builder.ins().iconst(scalar_type(d), s.bits() as i64)
            }
        }
    }

    /// A vector of one constant in all lanes.
    pub(super) fn splat_constant(&mut self, s: Scalar) -> Value {
        if let Some(&known) = self.constants.get(&s) {
            return known;
        }
        let data = self.builder.func.dfg.constants.insert(bytes_of(s));
        let value = self.builder.ins().vconst(vector_type(s.dtype()), data);
        if self.lane.is_some() {
            self.constants.insert(s, value);
        }
        value
    }

    /// The operand as a scalar.
    pub(super) fn scalar(&mut self, operand: Operand) -> Result<Val, Unsupported> {
        match operand {
            Operand::Const(s) => Ok(Val { value: self.constant(s), dtype: s.dtype(), lanes: 1 }),
            Operand::Val(v) if v.lanes == 1 => Ok(v),
            Operand::Val(_) => Err(Unsupported("a vector where a scalar belongs".into())),
        }
    }

    /// The operand as a vector, the same in all lanes where it was scalar.
    pub(super) fn vector(&mut self, operand: Operand, lanes: u64) -> Val {
        match operand {
            Operand::Const(s) => Val { value: self.splat_constant(s), dtype: s.dtype(), lanes },
            Operand::Val(v) if v.lanes == lanes => v,
            Operand::Val(v) => {
                let made = self.splats.iter().find(|(scalar, _)| *scalar == v.value).map(|(_, splat)| *splat);
                let value = made.unwrap_or_else(|| self.splat(v));
                Val { value, lanes, ..v }
            }
        }
    }

    /// The last operand of a fused multiply-add. A constant that the loop has not in a register is read
    /// from the frame, which costs nothing as an operand of the instruction: a polynomial has more
    /// coefficients than there are registers, and what is spilled is loaded by one instruction more.
    pub(super) fn addend(&mut self, operand: Operand, lanes: u64) -> Value {
        match (operand, &mut self.addends) {
            (Operand::Const(s), Some(addends)) if self.in_lane_loop && !self.constants.contains_key(&s) => {
                let (base, offset) = (addends.base, addends.offset_bytes(s));
                let flags = MemFlagsData::new().with_notrap();
                self.builder.ins().load(vector_type(s.dtype()), flags, base, offset)
            }
            _ => self.vector(operand, lanes).value,
        }
    }

    /// A scalar in all lanes. A truth value is 0 or 1 as a scalar, no bits or all bits in lanes of any size.
    pub(super) fn splat(&mut self, v: Val) -> Value {
        let value = if v.dtype == DType::Bool { self.builder.ins().ineg(v.value) } else { v.value };
        self.builder.ins().splat(vector_type(v.dtype), value)
    }

    /// The vector read as another type of 128 bits.
    pub(super) fn reread(&mut self, value: Value, ty: Type) -> Value {
        if self.builder.func.dfg.value_type(value) == ty {
            return value;
        }
        self.builder.ins().bitcast(ty, little(), value)
    }

    /// The vector read as another type, as if it had been stored and loaded: elements keep their place in memory, which
    /// in a lane of several elements is its high end where the highest byte comes first.
    fn reread_memory(&mut self, value: Value, ty: Type) -> Value {
        if self.builder.func.dfg.value_type(value) == ty {
            return value;
        }
        let flags = MemFlagsData::new().with_endianness(self.target.order);
        self.builder.ins().bitcast(ty, flags, value)
    }

    /// Lanes from consecutive elements: exactly their bytes are read.
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
                    // The bytes that come first in memory are the high ones.
                    Endianness::Big => self.builder.ins().ishl_imm_s(low, 16),
                }
            }
        };
        let part_type = self.builder.func.dfg.value_type(part);
        let whole = self.builder.ins().scalar_to_vector(part_type.by(128 / part_type.bits()).expect("a vector"), part);
        self.reread_memory(whole, ty)
    }

    /// Lanes to consecutive elements: exactly their bytes are written.
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

    /// A shuffle of the bytes of two vectors: 0..16 names those of `a`, 16..32 those of `b`.
    fn shuffle(&mut self, a: Value, b: Value, bytes: [u8; 16]) -> Value {
        let ty = self.builder.func.dfg.value_type(a);
        let (a, b) = (self.reread(a, types::I8X16), self.reread(b, types::I8X16));
        let mask = self.builder.func.dfg.immediates.push(ConstantData::from(bytes.as_slice()));
        let shuffled = self.builder.ins().shuffle(a, b, mask);
        self.reread(shuffled, ty)
    }

    /// The vector whose lane `i` is lane `from(i)` of two, those of `b` numbered on after those of `a`.
    pub(super) fn pick_lanes(&mut self, a: Value, b: Value, dtype: DType, from: impl Fn(u64) -> u64) -> Value {
        let bytes = dtype.bytes();
        let byte = |i: usize| (from(i as u64 / bytes) * bytes) as u8 + (i as u64 % bytes) as u8;
        self.shuffle(a, b, std::array::from_fn(byte))
    }

    /// The vector with lane `lane` moved to lane 0, and those after it along.
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
