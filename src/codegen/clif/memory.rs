//! Memory: addresses, loads and stores.

use super::{ClifValue, Generator, Number, Val, Walk, scalar_type, vector_type, wide};
use crate::codegen::Refused;
use crate::codegen::address::{Access, Base};
use crate::codegen::emit::{Memory, Numbers};
use crate::codegen::storage::Storage;
use cranefold_ir::{BufId, BufferRole, Nest, Stmt};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Value, types};

impl Numbers for Generator<'_> {
    fn number(&mut self, value: i64) -> Number {
        Number::Fixed(self.builder.ins().iconst(types::I64, value))
    }

    fn plus_scaled(&mut self, sum: Number, number: Number, factor: i64) -> Number {
        let (sum, number) = (self.value_of(sum), self.value_of(number));
        let term = self.builder.ins().imul_imm_s(number, factor);
        Number::Fixed(self.builder.ins().iadd(sum, term))
    }

    fn trailing_ones(&mut self, number: Number) -> Number {
        let number = self.value_of(number);
        let next = self.builder.ins().iadd_imm_s(number, 1);
        Number::Fixed(self.builder.ins().ctz(next))
    }

    fn base(&mut self, base: Base) -> (Number, i64) {
        (Number::Fixed(self.bases[&base]), 0)
    }

    fn pointer(&mut self, (start, bytes): (Number, i64), multiple: Option<(Number, i64)>) -> Number {
        debug_assert_eq!(bytes, 0, "every base has an address of its own");
        let mut start = self.value_of(start);
        if let Some((number, bytes)) = multiple {
            let number = self.value_of(number);
            let distance = self.builder.ins().imul_imm_s(number, bytes);
            start = self.builder.ins().iadd(start, distance);
        }
        let pointer = self.builder.declare_var(types::I64);
        self.builder.def_var(pointer, start);
        Number::Moving(pointer)
    }

    fn bump(&mut self, pointer: Number, bytes: i64) {
        let Number::Moving(variable) = pointer else { unreachable!("a pointer moves") };
        let at = self.builder.use_var(variable);
        let next = self.builder.ins().iadd_imm_s(at, bytes);
        self.builder.def_var(variable, next);
    }

    fn near(&mut self, pointer: Number, bytes: i64) -> (Number, i32) {
        match i32::try_from(bytes) {
            Ok(offset) if offset.abs() < i32::MAX - 4096 => (pointer, offset),
            _ => {
                let pointer = self.value_of(pointer);
                (Number::Fixed(self.builder.ins().iadd_imm_s(pointer, bytes)), 0)
            }
        }
    }
}

impl<'a> Memory<'a> for Generator<'a> {
    fn load(&mut self, walk: &Walk<'a>, from: Access<Number>) -> Result<ClifValue, Refused> {
        let Access { base, dtype, offset_bytes: offset, lanes, .. } = from;
        let pointer = self.value_of(from.pointer);
        let flags = self.load_flags(base, walk.nest);
        let Some((lanes, stride)) = lanes else {
            let value = self.builder.ins().load(scalar_type(dtype), flags, pointer, offset);
            return Ok(ClifValue::Val(Val { value, dtype, lanes: 1 }));
        };
        let value = match stride {
            1 => self.load_lanes(dtype, lanes, flags, pointer, offset),
            _ => self.gather(&from, flags),
        };
        Ok(ClifValue::Val(Val { value, dtype, lanes }))
    }

    fn store(&mut self, to: Access<Number>, value: ClifValue) -> Result<(), Refused> {
        let pointer = self.value_of(to.pointer);
        let flags = MemFlagsData::new().with_notrap();
        let Some((lanes, stride)) = to.lanes else {
            let value = self.scalar(value)?.value;
            self.builder.ins().store(flags, value, pointer, to.offset_bytes);
            return Ok(());
        };
        let value = self.vector(value, lanes).value;
        if stride == 1 {
            self.store_lanes(to.dtype, lanes, value, flags, pointer, to.offset_bytes);
            return Ok(());
        }
        for lane in 0..lanes {
            let element = self.builder.ins().extractlane(value, lane as u8);
            let (pointer, offset) = self.lane_address(&to, lane, stride);
            self.builder.ins().store(flags, element, pointer, offset);
        }
        Ok(())
    }

    fn misaligned(&mut self, _: BufId, _: (Number, i32), _: (u64, u64)) -> Result<Number, Refused> {
        Err(Refused("lines of memory outside of wide functions".into()))
    }

    /// Nothing: Cranelift has no instruction for it.
    fn prefetch(&mut self, _: (Number, i32), _: bool) {}
}

impl Generator<'_> {
    /// Finds the start of every buffer, and of every accumulator that lives in memory.
    pub(super) fn find_bases(&mut self, nest: &Nest, storage: &Storage, buffers: Value) {
        let slot = |own: &mut Self, n: usize| {
            let flags = MemFlagsData::trusted().with_readonly().with_can_move();
            own.builder.ins().load(types::I64, flags, buffers, n as i32 * 8)
        };
        for i in 0..nest.buffers.len() {
            let base = slot(self, i);
            self.bases.insert(Base::Buf(BufId(i as u32)), base);
        }
        let scratch = (storage.scratch.bytes > 0).then(|| slot(self, nest.buffers.len()));
        self.shared = wide::SharedFrame::of(&mut self.builder, nest, buffers);
        nest.visit(&mut |stmt| {
            let Stmt::Acc { acc, dtype, len, .. } = stmt else { return };
            if storage.cells.contains_key(acc) {
                return;
            }
            let builder = &mut self.builder;
            let scratch = scratch.zip(storage.scratch.offsets.get(acc));
            let frame = self.shared.as_ref().map(|shared| shared.base).zip(storage.frame.accs.get(acc));
            let base = match scratch.or(frame) {
                Some((start, &bytes)) => builder.ins().iadd_imm_s(start, bytes as i64),
                None => {
                    let bytes = u32::try_from(len * dtype.bytes()).expect("larger ones lie in scratch memory");
                    let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4);
                    let slot = builder.create_sized_stack_slot(slot);
                    builder.ins().stack_addr(types::I64, slot, 0)
                }
            };
            self.bases.insert(Base::Acc(*acc), base);
        });
    }

    /// The current value of a number.
    pub(super) fn value_of(&mut self, number: Number) -> Value {
        match number {
            Number::Fixed(value) => value,
            Number::Moving(variable) => self.builder.use_var(variable),
        }
    }

    /// The flags of a load. Accumulators and outputs change, and so may inputs if each position of a slice is written,
    /// because an output may be the same memory.
    pub(super) fn load_flags(&self, base: Base, nest: &Nest) -> MemFlagsData {
        let flags = MemFlagsData::new().with_notrap();
        match base {
            Base::Buf(buf) if nest.buffers[buf.0 as usize].role == BufferRole::In && self.fixed_inputs => {
                flags.with_readonly().with_can_move()
            }
            _ => flags,
        }
    }

    /// Loads strided elements one by one.
    fn gather(&mut self, from: &Access<Number>, flags: MemFlagsData) -> Value {
        let (lanes, stride) = from.lanes.expect("lanes");
        let mut vector = None;
        for lane in 0..lanes {
            let (pointer, offset) = self.lane_address(from, lane, stride);
            let element = self.builder.ins().load(scalar_type(from.dtype), flags, pointer, offset);
            vector = Some(match vector {
                None => self.builder.ins().splat(vector_type(from.dtype), element),
                Some(v) => self.builder.ins().insertlane(v, element, lane as u8),
            });
        }
        vector.expect("a lane")
    }

    /// The address of a lane's element.
    fn lane_address(&mut self, of: &Access<Number>, lane: u64, stride: i64) -> (Value, i32) {
        self.behind(of, lane as i64 * stride * of.dtype.bytes() as i64)
    }

    /// The address `bytes` bytes after the address of an access.
    fn behind(&mut self, of: &Access<Number>, bytes: i64) -> (Value, i32) {
        let (pointer, offset) = self.near(of.pointer, i64::from(of.offset_bytes) + bytes);
        (self.value_of(pointer), offset)
    }
}
