//! Addresses: a pointer for each pattern of indices, bumped by the loops it moves with.

use super::Unsupported;
use super::{Generator, Operand, Val, scalar_type, tile, vector_type};
use cranefold_ir::{AccId, BufId, BufferRole, DType, Expr, Index, LoopVar, Scalar, Stmt};
use cranelift_codegen::ir::{ConstantData, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Value, types};
use cranelift_frontend::Variable;
use std::collections::{BTreeSet, HashMap};

/// What an address starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Base {
    Buf(BufId),
    Acc(AccId),
}

/// A base and the terms of an index whose variables are bound, outermost first.
type Pattern = (Base, Vec<(LoopVar, i64)>);

/// The pointers in scope.
#[derive(Default)]
pub(super) struct Pointers {
    scope: Vec<LoopVar>,
    variables: HashMap<Pattern, Variable>,
    pub(super) bases: HashMap<Base, Value>,
    /// The counters of the loops in scope.
    numbers: HashMap<LoopVar, Variable>,
}

impl Pointers {
    /// Where a buffer or an accumulator in memory begins.
    pub(super) fn base(&self, base: Base) -> Value {
        self.bases[&base]
    }

    /// The terms of an index over variables in scope, outermost first.
    fn terms(&self, index: &Index) -> Vec<(LoopVar, i64)> {
        self.scope.iter().map(|&v| (v, index.coefficient(v))).filter(|&(_, c)| c != 0).collect()
    }
}

impl<'a> Generator<'a> {
    /// Finds the start of every buffer, and of every accumulator that lives in memory.
    pub(super) fn bases(&mut self, buffers: Value) {
        for i in 0..self.nest.buffers.len() {
            let flags = MemFlagsData::trusted().with_readonly().with_can_move();
            let base = self.builder.ins().load(types::I64, flags, buffers, i as i32 * 8);
            self.pointers.bases.insert(Base::Buf(BufId(i as u32)), base);
        }
        let scratch = (self.scratch.bytes > 0).then(|| {
            let flags = MemFlagsData::trusted().with_readonly().with_can_move();
            self.builder.ins().load(types::I64, flags, buffers, self.nest.buffers.len() as i32 * 8)
        });
        self.shared = tile::Shared::of(&mut self.builder, self.nest, buffers);
        let nest = self.nest;
        nest.visit(&mut |stmt| {
            let Stmt::Acc { acc, dtype, len, .. } = stmt else { return };
            self.types.insert(*acc, *dtype);
            if self.cells.contains_key(acc) {
                return;
            }
            if let (Some(scratch), Some(&offset)) = (scratch, self.scratch.offsets.get(acc)) {
                let base = self.builder.ins().iadd_imm_s(scratch, offset as i64);
                self.pointers.bases.insert(Base::Acc(*acc), base);
                return;
            }
            if let (Some(shared), Some(&at)) = (&self.shared, self.frame.accs.get(acc)) {
                let base = self.builder.ins().iadd_imm_s(shared.base, at as i64);
                self.pointers.bases.insert(Base::Acc(*acc), base);
                return;
            }
            let bytes = u32::try_from(len * dtype.bytes()).expect("larger ones lie in scratch memory");
            let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4);
            let slot = self.builder.create_sized_stack_slot(slot);
            let base = self.builder.ins().stack_addr(types::I64, slot, 0);
            self.pointers.bases.insert(Base::Acc(*acc), base);
        });
    }

    /// Makes a pointer for each pattern in the body that moves with `var`: where the variable has a
    /// value (a carry), there; else at the start of the loop, to be bumped by the bytes given back.
    pub(super) fn enter(&mut self, var: LoopVar, body: &[Stmt], value: Option<Value>) -> Vec<(Variable, i64)> {
        self.pointers.scope.push(var);
        let mut patterns: BTreeSet<Pattern> = BTreeSet::new();
        self.collect(body, var, &mut patterns);
        let mut bumps = vec![];
        for (base, terms) in patterns {
            let (&(_, c), outer) = terms.split_last().expect("a term in the variable");
            let start = self.pointer(base, outer);
            let bytes = c * self.element_bytes(base);
            let start = match value {
                None => start,
                Some(value) => {
                    let distance = self.builder.ins().imul_imm_s(value, bytes);
                    self.builder.ins().iadd(start, distance)
                }
            };
            let pointer = self.builder.declare_var(types::I64);
            self.builder.def_var(pointer, start);
            self.pointers.variables.insert((base, terms), pointer);
            bumps.push((pointer, bytes));
        }
        bumps
    }

    /// Ends the scope of a loop variable, and of carry variables bound in its body.
    pub(super) fn leave(&mut self, var: LoopVar) {
        while self.pointers.scope.pop().is_some_and(|v| v != var) {}
    }

    fn element_bytes(&self, base: Base) -> i64 {
        let dtype = match base {
            Base::Buf(buf) => self.nest.buffers[buf.0 as usize].dtype,
            Base::Acc(acc) => self.types[&acc],
        };
        dtype.bytes() as i64
    }

    fn pointer(&mut self, base: Base, terms: &[(LoopVar, i64)]) -> Value {
        if terms.is_empty() {
            return self.pointers.bases[&base];
        }
        let variable = self.pointers.variables[&(base, terms.to_vec())];
        self.builder.use_var(variable)
    }

    /// The patterns of the accesses in the body that move with `var`, over variables bound by now.
    fn collect(&self, body: &[Stmt], var: LoopVar, patterns: &mut BTreeSet<Pattern>) {
        let mut take = |base: Base, index: &Index| {
            if index.coefficient(var) != 0 {
                patterns.insert((base, self.pointers.terms(index)));
            }
        };
        let in_memory = |acc: &AccId| !self.cells.contains_key(acc);
        for stmt in body {
            tile::visit_outside(stmt, &mut |s| {
                for e in s.exprs() {
                    e.visit(&mut |e| match e {
                        Expr::Load(buf, _, index) => take(Base::Buf(*buf), index),
                        Expr::Read(acc, _, index) if in_memory(acc) => take(Base::Acc(*acc), index),
                        _ => {}
                    });
                }
                match s {
                    Stmt::Store { buf, index, .. } => take(Base::Buf(*buf), index),
                    Stmt::Set { acc, index, .. } if in_memory(acc) => take(Base::Acc(*acc), index),
                    _ => {}
                }
            });
        }
    }

    /// The address of an element (of lane 0) and the stride of the lanes in elements.
    fn address(&mut self, base: Base, index: &Index) -> (Value, i32, i64) {
        let stride = self.lane.map_or(0, |(var, _)| index.coefficient(var));
        let terms = self.pointers.terms(index);
        let pointer = self.pointer(base, &terms);
        let offset = index.offset * self.element_bytes(base);
        match i32::try_from(offset) {
            Ok(offset) if offset < i32::MAX - 4096 => (pointer, offset, stride),
            _ => (self.builder.ins().iadd_imm_s(pointer, offset), 0, stride),
        }
    }

    /// The value of an index: a scalar, or where it moves with the lanes a vector.
    pub(super) fn at(&mut self, dtype: DType, index: &Index) -> Operand {
        let Some((var, lanes)) = self.lane.filter(|&(var, _)| index.coefficient(var) != 0) else {
            if index.is_constant() {
                return Operand::Const(Scalar::int(dtype, index.offset.into()));
            }
            return Operand::Val(Val { value: self.position(dtype, index), dtype, lanes: 1 });
        };
        // Vectors of one loop differ by constants.
        let c = index.coefficient(var);
        let first = index.clone().plus(var, -c).offset_by(-index.offset);
        let steps = self.steps_of(dtype, index.offset, c);
        let key = (dtype, first.clone().plus(var, 1));
        let start = match self.positions.get(&key) {
            Some(&known) => known,
            None => {
                let scalar = self.position(dtype, &first);
                let splat = self.builder.ins().splat(vector_type(dtype), scalar);
                self.positions.insert(key, splat);
                splat
            }
        };
        let value = self.builder.ins().iadd(start, steps);
        Operand::Val(Val { value, dtype, lanes })
    }

    /// The vector `offset, offset + c, offset + 2 c` and so on.
    pub(super) fn steps_of(&mut self, dtype: DType, offset: i64, c: i64) -> Value {
        if let Some(&known) = self.steps.get(&(dtype, offset, c)) {
            return known;
        }
        let size = dtype.bytes() as usize;
        let lane = |n: i128| Scalar::int(dtype, i128::from(offset) + i128::from(c) * n).bits().to_le_bytes();
        let bytes: Vec<u8> = (0..16 / size as i128).flat_map(|n| lane(n)[..size].to_vec()).collect();
        let data = self.builder.func.dfg.constants.insert(ConstantData::from(bytes));
        self.builder.ins().vconst(vector_type(dtype), data)
    }

    /// The value of an index that is the same in all lanes.
    fn position(&mut self, dtype: DType, index: &Index) -> Value {
        let key = (dtype, index.clone());
        if let Some(&known) = self.positions.get(&key) {
            return known;
        }
        let wide = self.index_value(index);
        let value = if dtype.bytes() == 8 { wide } else { self.builder.ins().ireduce(scalar_type(dtype), wide) };
        self.positions.insert(key, value);
        value
    }

    /// The value of an index over counters and carries.
    pub(super) fn index_value(&mut self, index: &Index) -> Value {
        let mut sum = self.builder.ins().iconst(types::I64, index.offset);
        for (var, c) in index.terms() {
            let number = self.number_of(var);
            let term = self.builder.ins().imul_imm_s(number, c);
            sum = self.builder.ins().iadd(sum, term);
        }
        sum
    }

    /// The value of a counter or carry.
    pub(super) fn number_of(&mut self, var: LoopVar) -> Value {
        match self.carries.get(&var) {
            Some(&value) => value,
            None => self.builder.use_var(self.pointers.numbers[&var]),
        }
    }

    /// Remembers the counter of a loop.
    pub(super) fn count(&mut self, var: LoopVar, counter: Variable) {
        self.pointers.numbers.insert(var, counter);
    }

    /// Flags of a load. Accumulators and outputs change, and so may input 0 where each position of a slice is
    /// written: the output may be the same memory.
    pub(super) fn load_flags(&self, base: Base) -> MemFlagsData {
        let flags = MemFlagsData::new().with_notrap();
        match base {
            Base::Buf(buf) if self.nest.buffers[buf.0 as usize].role == BufferRole::In && !self.writes_slices => {
                flags.with_readonly().with_can_move()
            }
            _ => flags,
        }
    }

    /// An element, or the lanes of a vector.
    pub(super) fn load(&mut self, base: Base, dtype: DType, index: &Index) -> Val {
        let (pointer, offset, stride) = self.address(base, index);
        let flags = self.load_flags(base);
        let Some((_, lanes)) = self.lane.filter(|_| stride != 0) else {
            let value = self.builder.ins().load(scalar_type(dtype), flags, pointer, offset);
            return Val { value, dtype, lanes: 1 };
        };
        if let Base::Buf(buf) = base
            && let Some(value) = self.column((buf, dtype, index), pointer, offset, stride)
        {
            return Val { value, dtype, lanes };
        }
        let value = match stride {
            1 => self.load_lanes(dtype, lanes, flags, pointer, offset),
            _ => self.gather(dtype, lanes, flags, pointer, offset, stride),
        };
        Val { value, dtype, lanes }
    }

    fn gather(
        &mut self,
        dtype: DType,
        lanes: u64,
        flags: MemFlagsData,
        pointer: Value,
        offset: i32,
        stride: i64,
    ) -> Value {
        let mut vector = None;
        for lane in 0..lanes {
            let distance = lane as i64 * stride * dtype.bytes() as i64;
            let (pointer, offset) = self.displaced(pointer, offset, distance);
            let element = self.builder.ins().load(scalar_type(dtype), flags, pointer, offset);
            vector = Some(match vector {
                None => self.builder.ins().splat(vector_type(dtype), element),
                Some(v) => self.builder.ins().insertlane(v, element, lane as u8),
            });
        }
        vector.expect("a lane")
    }

    pub(super) fn displaced(&mut self, pointer: Value, offset: i32, distance: i64) -> (Value, i32) {
        match i32::try_from(i64::from(offset) + distance) {
            Ok(offset) => (pointer, offset),
            Err(_) => (self.builder.ins().iadd_imm_s(pointer, distance), offset),
        }
    }

    /// Writes an element, or the lanes of a vector.
    pub(super) fn store(&mut self, base: Base, dtype: DType, index: &Index, value: Operand) -> Result<(), Unsupported> {
        let (pointer, offset, stride) = self.address(base, index);
        let flags = MemFlagsData::new().with_notrap();
        let Some((_, lanes)) = self.lane.filter(|_| stride != 0) else {
            let value = self.scalar(value)?;
            self.builder.ins().store(flags, value.value, pointer, offset);
            return Ok(());
        };
        let value = self.vector(value, lanes).value;
        if stride == 1 {
            self.store_lanes(dtype, lanes, value, flags, pointer, offset);
            return Ok(());
        }
        for lane in 0..lanes {
            let element = self.builder.ins().extractlane(value, lane as u8);
            let distance = lane as i64 * stride * dtype.bytes() as i64;
            let (pointer, offset) = self.displaced(pointer, offset, distance);
            self.builder.ins().store(flags, element, pointer, offset);
        }
        Ok(())
    }
}
