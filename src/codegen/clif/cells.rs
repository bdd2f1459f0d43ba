//! Accumulators: cells in registers, and runs of elements in memory.

use super::memory::Base;
use super::{Generator, Operand, Unsupported, Val, scalar_type, vector_type};
use crate::codegen::storage::{cell_of, is_dead};
use crate::vectors::Vectors;
use cranefold_ir::{AccId, DType, Index, Scalar};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, types};

impl Generator<'_> {
    /// Makes an accumulator: registers or memory, all elements equal to `init`.
    pub(super) fn declare(&mut self, acc: AccId, dtype: DType, len: u64, init: Scalar) {
        if let Some(cells) = self.cells.get(&acc).cloned() {
            // One constant for all registers: each of its own would want one more register to be made in.
            let (mut scalar, mut vector) = (None, None);
            for cell in cells {
                let ty = if cell.lanes == 1 { scalar_type(dtype) } else { vector_type(dtype) };
                let builder = &mut self.builder;
                let register = *self.registers.entry((acc, cell)).or_insert_with(|| builder.declare_var(ty));
                let value = match cell.lanes {
                    1 => *scalar.get_or_insert_with(|| self.constant(init)),
                    _ => *vector.get_or_insert_with(|| self.splat_constant(init)),
                };
                self.builder.def_var(register, value);
                self.fresh.insert((acc, cell), init);
            }
            return;
        }
        if !self.set_before_read.contains(&acc) {
            self.fill(acc, dtype, len, init);
        }
    }

    /// Fills an accumulator in memory, a vector at a time where there are any.
    fn fill(&mut self, acc: AccId, dtype: DType, len: u64, init: Scalar) {
        let base = self.pointers.bases[&Base::Acc(acc)];
        let flags = MemFlagsData::new().with_notrap();
        let lanes = if self.plan.vectors == Vectors::NONE { 1 } else { 16 / dtype.bytes() };
        let (vectors, step) = (len / lanes, (lanes * dtype.bytes()) as i64);
        if vectors > 0 {
            let value = if lanes == 1 { self.constant(init) } else { self.splat_constant(init) };
            let end = self.builder.ins().iadd_imm_s(base, vectors as i64 * step);
            let at = self.builder.declare_var(types::I64);
            self.builder.def_var(at, base);
            let (header, body, exit) =
                (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
            self.builder.ins().jump(header, &[]);
            let around = self.begin_loop(format!("fill {acc}"));
            self.builder.switch_to_block(header);
            let pointer = self.builder.use_var(at);
            let more = self.builder.ins().icmp(IntCC::UnsignedLessThan, pointer, end);
            self.builder.ins().brif(more, body, &[], exit, &[]);
            self.builder.switch_to_block(body);
            self.builder.seal_block(body);
            self.builder.ins().store(flags, value, pointer, 0);
            let next = self.builder.ins().iadd_imm_s(pointer, step);
            self.builder.def_var(at, next);
            self.builder.ins().jump(header, &[]);
            self.builder.seal_block(header);
            self.end_loop(around);
            self.builder.switch_to_block(exit);
            self.builder.seal_block(exit);
        }
        let value = self.constant(init);
        for element in vectors * lanes..len {
            let (base, offset) = self.displaced(base, 0, (element * dtype.bytes()) as i64);
            self.builder.ins().store(flags, value, base, offset);
        }
    }

    /// An element of an accumulator, or the lanes of a vector.
    pub(super) fn read(&mut self, acc: AccId, dtype: DType, index: &Index) -> Operand {
        let Some(cells) = self.cells.get(&acc) else {
            return Operand::Val(self.load(Base::Acc(acc), dtype, index));
        };
        let lanes = self.lanes_of(index);
        let cell = cell_of(cells, index.offset as u64);
        if let Some(&init) = self.fresh.get(&(acc, cell)) {
            return Operand::Const(init);
        }
        let whole = self.builder.use_var(self.registers[&(acc, cell)]);
        let lane = index.offset as u64 - cell.start;
        let value = match (cell.lanes, lanes) {
            (1, _) => whole,
            (_, 1) => self.builder.ins().extractlane(whole, lane as u8),
            _ => self.take_lanes(whole, dtype, lane),
        };
        Operand::Val(Val { value, dtype, lanes })
    }

    /// Writes an element of an accumulator, or the lanes of a vector.
    pub(super) fn set(&mut self, acc: AccId, index: &Index, value: Operand) -> Result<(), Unsupported> {
        let dtype = self.types[&acc];
        let Some(cells) = self.cells.get(&acc) else { return self.store(Base::Acc(acc), dtype, index, value) };
        let lanes = self.lanes_of(index);
        let cell = cell_of(cells, index.offset as u64);
        let register = self.registers[&(acc, cell)];
        let lane = index.offset as u64 - cell.start;
        self.fresh.remove(&(acc, cell));
        let value = if lanes == 1 { self.scalar(value)?.value } else { self.vector(value, lanes).value };
        let written = if self.one_lane { 1 } else { lanes };
        let is_all = lanes == cell.lanes
            && (written == lanes || self.is_dead(acc, cell.start + written, cell.start + lanes))
            || lanes > 1 && lane == 0 && self.is_dead(acc, cell.start + written, cell.start + cell.lanes);
        let whole = match is_all {
            true => value,
            false => {
                let old = self.builder.use_var(register);
                match lanes {
                    1 => self.builder.ins().insertlane(old, value, lane as u8),
                    _ => self.put_lanes(old, value, dtype, lane, written),
                }
            }
        };
        self.builder.def_var(register, whole);
        Ok(())
    }

    /// Whether no later statement of the current body reads these elements, and the accumulator ends with it.
    fn is_dead(&self, acc: AccId, start: u64, end: u64) -> bool {
        // The body of the lanes, and the body in which its loop stands.
        let (Some(_), Some(after)) = (self.lane, self.rest.last_chunk::<2>()) else { return false };
        self.declared_here.last().is_some_and(|declared| declared.contains(&acc)) && is_dead(acc, start, end, after)
    }

    /// How many elements an access takes: the lanes where it moves with them, else one.
    fn lanes_of(&self, index: &Index) -> u64 {
        self.lane.map_or(1, |(var, lanes)| if index.coefficient(var) == 0 { 1 } else { lanes })
    }
}
