//! Values of expressions: constants, scalars and vectors.

use super::{ClifValue, Generator, Number, Val, Walk, loop_at, scalar_type, vector_type};
use crate::codegen::Refused;
use crate::codegen::emit::Values;
use cranefold_ir::{DType, Op, Scalar};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{
    ConstantData, Function, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value, types,
};
use cranelift_frontend::{FunctionBuilder, Variable};

/// Vector constants that are kept in the frame.
#[derive(Default)]
pub(super) struct Addends {
    slot: Option<StackSlot>,
    known: Vec<Scalar>,
}

impl Addends {
    /// The vector of a constant, from the frame.
    fn load(&mut self, builder: &mut FunctionBuilder, s: Scalar) -> Value {
        let empty = StackSlotData::new(StackSlotKind::ExplicitSlot, 0, 4);
        let slot = *self.slot.get_or_insert_with(|| builder.create_sized_stack_slot(empty));
        let at = self.known.iter().position(|&k| k == s).unwrap_or_else(|| {
            self.known.push(s);
            self.known.len() - 1
        });
        let base = builder.ins().stack_addr(types::I64, slot, 0);
        builder.ins().load(vector_type(s.dtype()), MemFlagsData::new().with_notrap(), base, at as i32 * 16)
    }

    /// Sizes the slot of the constants, and writes them at the start of the function.
    pub(super) fn fill(self, function: &mut Function) {
        let (Some(slot), Some(entry)) = (self.slot, function.layout.entry_block()) else { return };
        function.sized_stack_slots[slot].size = self.known.len() as u32 * 16;
        let mut cursor = FuncCursor::new(function).at_first_insertion_point(entry);
        let base = cursor.ins().stack_addr(types::I64, slot, 0);
        for (at, s) in self.known.into_iter().enumerate() {
            let data = cursor.func.dfg.constants.insert(ConstantData::from(splat_bytes(s)));
            let value = cursor.ins().vconst(vector_type(s.dtype()), data);
            cursor.ins().store(MemFlagsData::new().with_notrap(), value, base, at as i32 * 16);
        }
    }
}

/// The bytes of a vector of one constant in all lanes.
fn splat_bytes(s: Scalar) -> Vec<u8> {
    let size = s.dtype().bytes() as usize;
    let bits = if s.dtype() == DType::Bool { 0u64.wrapping_sub(s.bits()) } else { s.bits() };
    bits.to_le_bytes()[..size].repeat(16 / size)
}

impl<'a> Values<'a> for Generator<'a> {
    fn constant(&self, s: Scalar) -> ClifValue {
        ClifValue::Const(s)
    }

    fn known(value: &ClifValue) -> Option<Scalar> {
        if let ClifValue::Const(s) = value { Some(*s) } else { None }
    }

    fn op(&mut self, op: Op, result: DType, args: &[ClifValue], _: Option<Variable>) -> Result<ClifValue, Refused> {
        self.operation(op, result, args)
    }

    fn kept(&mut self, walk: &Walk<'a>, value: ClifValue) -> ClifValue {
        if let (None, ClifValue::Val(v)) = (walk.vector, value) {
            let splat = self.splat(v);
            self.splats.push((v.value, splat));
        }
        value
    }

    fn picked(&mut self, value: ClifValue, most: u64) -> Result<Number, Refused> {
        let value = self.scalar(value)?;
        let number = match value.dtype.bytes() {
            8 => value.value,
            _ => self.builder.ins().uextend(types::I64, value.value),
        };
        let most = self.builder.ins().iconst(types::I64, most as i64);
        let is_less = self.builder.ins().icmp(IntCC::UnsignedLessThan, number, most);
        Ok(Number::Fixed(self.builder.ins().select(is_less, number, most)))
    }

    fn position(&mut self, dtype: DType, number: Number) -> Result<ClifValue, Refused> {
        let wide = self.value_of(number);
        let value = if dtype.bytes() == 8 { wide } else { self.builder.ins().ireduce(scalar_type(dtype), wide) };
        Ok(ClifValue::Val(Val { value, dtype, lanes: 1 }))
    }

    fn steps(&mut self, dtype: DType, offset: i64, c: i64, lanes: u64) -> Result<ClifValue, Refused> {
        let value = self.steps_of(dtype, offset, c);
        Ok(ClifValue::Val(Val { value, dtype, lanes }))
    }
}

impl Generator<'_> {
    /// A scalar constant.
    pub(super) fn scalar_constant(&mut self, s: Scalar) -> Value {
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
        self.vector_constant(s.dtype(), splat_bytes(s))
    }

    /// The vector `offset`, `offset + c`, `offset + 2 c` and so on.
    pub(super) fn steps_of(&mut self, dtype: DType, offset: i64, c: i64) -> Value {
        let size = dtype.bytes() as usize;
        let lane = |n: i128| Scalar::int(dtype, i128::from(offset) + i128::from(c) * n).bits().to_le_bytes();
        let bytes: Vec<u8> = (0..16 / size as i128).flat_map(|n| lane(n)[..size].to_vec()).collect();
        self.vector_constant(dtype, bytes)
    }

    /// A vector with these bytes.
    fn vector_constant(&mut self, dtype: DType, bytes: Vec<u8>) -> Value {
        let data = self.builder.func.dfg.constants.insert(ConstantData::from(bytes));
        let builder = &mut self.builder;
        *self.constants.entry((data, dtype)).or_insert_with(|| builder.ins().vconst(vector_type(dtype), data))
    }

    /// The operand as a scalar.
    pub(super) fn scalar(&mut self, operand: ClifValue) -> Result<Val, Refused> {
        match operand {
            ClifValue::Const(s) => Ok(Val { value: self.scalar_constant(s), dtype: s.dtype(), lanes: 1 }),
            ClifValue::Val(v) if v.lanes == 1 => Ok(v),
            ClifValue::Val(_) => Err(Refused("a vector where a scalar belongs".into())),
        }
    }

    /// The operand as a vector; a scalar is the same in all lanes.
    pub(super) fn vector(&mut self, operand: ClifValue, lanes: u64) -> Val {
        match operand {
            ClifValue::Const(s) => Val { value: self.splat_constant(s), dtype: s.dtype(), lanes },
            ClifValue::Val(v) if v.lanes == lanes => v,
            ClifValue::Val(v) => {
                let made = self.splats.iter().find(|(scalar, _)| *scalar == v.value).map(|(_, splat)| *splat);
                let value = made.unwrap_or_else(|| {
                    let splat = self.splat(v);
                    self.splats.push((v.value, splat));
                    splat
                });
                Val { value, lanes, ..v }
            }
        }
    }

    /// The last operand of a fused multiply-add. In a loop, a constant that is in no register is read from the frame,
    /// which costs nothing as an operand of the instruction. A polynomial has more coefficients than there are
    /// registers, and a spilled one would need another instruction to load.
    pub(super) fn addend(&mut self, operand: ClifValue, lanes: u64) -> Value {
        let ClifValue::Const(s) = operand else { return self.vector(operand, lanes).value };
        let data = self.builder.func.dfg.constants.insert(ConstantData::from(splat_bytes(s)));
        match self.constants.get(&(data, s.dtype())) {
            Some(&known) => known,
            None if loop_at(self.builder.srcloc()).is_none() => self.splat_constant(s),
            None => self.addends.load(&mut self.builder, s),
        }
    }

    /// A scalar in all lanes. A truth value is 0 or 1 as a scalar, and no or all bits in lanes of any size.
    pub(super) fn splat(&mut self, v: Val) -> Value {
        let value = if v.dtype == DType::Bool { self.builder.ins().ineg(v.value) } else { v.value };
        self.builder.ins().splat(vector_type(v.dtype), value)
    }
}
