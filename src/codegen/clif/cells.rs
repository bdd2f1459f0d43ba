//! Accumulators: cells in registers, and runs of elements in memory.

use super::{ClifValue, Generator, Number, Val, Walk, scalar_type, vector_type};
use crate::codegen::Refused;
use crate::codegen::address::Base;
use crate::codegen::emit::{Accumulators, Numbers, RegisterElements};
use crate::codegen::storage::{Cell, cell_of};
use crate::vectors::Vectors;
use cranefold_ir::{AccId, DType, Expr, Index, Scalar, Stmt};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, types};
use cranelift_frontend::Variable;

impl Accumulators for Generator<'_> {
    /// Fills a vector at a time if the target has any.
    fn fill(&mut self, acc: AccId, dtype: DType, len: u64, init: Scalar) {
        let base = self.bases[&Base::Acc(acc)];
        let flags = MemFlagsData::new().with_notrap();
        let lanes = if self.vectors == Vectors::NONE { 1 } else { 16 / dtype.bytes() };
        let (vectors, step) = (len / lanes, (lanes * dtype.bytes()) as i64);
        if vectors > 0 {
            let value = if lanes == 1 { self.scalar_constant(init) } else { self.splat_constant(init) };
            let end = self.builder.ins().iadd_imm_s(base, vectors as i64 * step);
            let at = self.builder.declare_var(types::I64);
            self.builder.def_var(at, base);
            let (header, body, exit) =
                (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
            self.builder.ins().jump(header, &[]);
            let around = self.enter_place(format!("fill {acc}"));
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
            self.leave_place(around);
            self.builder.switch_to_block(exit);
            self.builder.seal_block(exit);
        }
        let value = self.scalar_constant(init);
        for element in vectors * lanes..len {
            let (base, offset) = self.near(Number::Fixed(base), (element * dtype.bytes()) as i64);
            let base = self.value_of(base);
            self.builder.ins().store(flags, value, base, offset);
        }
    }

    fn register(&mut self, dtype: DType, lanes: u64) -> Variable {
        self.builder.declare_var(if lanes == 1 { scalar_type(dtype) } else { vector_type(dtype) })
    }

    fn start(&mut self, registers: &[(Variable, u64, Scalar)]) {
        for &(register, lanes, init) in registers {
            let value = if lanes == 1 { self.scalar_constant(init) } else { self.splat_constant(init) };
            self.builder.def_var(register, value);
        }
    }

    fn read(&mut self, register: Variable, part: RegisterElements) -> ClifValue {
        let RegisterElements { dtype, cell, at, lanes, .. } = part;
        let whole = self.builder.use_var(register);
        let value = match (cell.lanes, lanes) {
            (1, _) => whole,
            (_, None) => self.builder.ins().extractlane(whole, at as u8),
            _ => self.take_lanes(whole, dtype, at),
        };
        ClifValue::Val(Val { value, dtype, lanes: lanes.unwrap_or(1) })
    }

    fn halves(&mut self, _: [ClifValue; 2], _: u64) -> Result<[ClifValue; 2], Refused> {
        Err(Refused("halves of vectors".into()))
    }

    fn write(&mut self, register: Variable, part: RegisterElements, value: ClifValue) -> Result<(), Refused> {
        let value = match part.cell.lanes {
            1 => self.scalar(value)?.value,
            lanes => self.vector(value, part.lanes.unwrap_or(lanes)).value,
        };
        self.builder.def_var(register, value);
        Ok(())
    }

    fn rotate(&mut self, _: &[Variable], _: (DType, u64), _: Number) -> Result<(), Refused> {
        Err(Refused("a rotation outside of wide functions".into()))
    }

    fn write_part(
        &mut self,
        register: Variable,
        part: RegisterElements,
        written: u64,
        value: ClifValue,
    ) -> Result<(), Refused> {
        let RegisterElements { dtype, at, lanes, .. } = part;
        let whole = match lanes {
            None => {
                let value = self.scalar(value)?.value;
                let old = self.builder.use_var(register);
                self.builder.ins().insertlane(old, value, at as u8)
            }
            Some(lanes) => {
                let value = self.vector(value, lanes).value;
                let old = self.builder.use_var(register);
                self.put_lanes(old, value, dtype, at, written)
            }
        };
        self.builder.def_var(register, whole);
        Ok(())
    }
}

/// Returns true if the body only uses accumulators in vector registers.
pub(super) fn in_vectors(walk: &Walk, body: &[Stmt]) -> bool {
    let in_vector = |acc: &AccId, index: &Index| {
        let cell = |cells: &Vec<Cell>| cell_of(cells, index.offset as u64).lanes > 1;
        walk.storage.cells.get(acc).is_some_and(cell)
    };
    let mut all = true;
    for stmt in body {
        if let Stmt::Set { acc, index, .. } = stmt {
            all &= in_vector(acc, index);
        }
        stmt.exprs().iter().for_each(|e| {
            e.visit(&mut |e| {
                if let Expr::Read(acc, _, index) = e {
                    all &= in_vector(acc, index);
                }
            })
        });
    }
    all
}
