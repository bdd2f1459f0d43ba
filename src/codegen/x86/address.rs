//! Addresses: a pointer for each pattern of indices, bumped by the loops it moves with.

use super::machine::code::{Arg, Class, First, Inst, Item, Reg, View};
use super::machine::encode::FRAME;
use super::{Generator, each_expr};
use cranefold_ir::{AccId, BufId, Expr, Index, LoopVar, Stmt};
use iced_x86::Code;
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
    registers: HashMap<Pattern, Reg>,
    bases: HashMap<Base, Reg>,
}

impl Pointers {
    /// The terms of an index over variables in scope, outermost first.
    fn terms(&self, index: &Index) -> Vec<(LoopVar, i64)> {
        self.scope.iter().map(|&v| (v, index.coefficient(v))).filter(|&(_, c)| c != 0).collect()
    }
}

impl<'a> Generator<'a> {
    /// Makes a pointer for each pattern in the body that moves with `var`: where the variable has a value (a carry,
    /// a counter from around), there; else at the start of the loop, to be bumped by the bytes given back.
    pub(super) fn enter(&mut self, var: LoopVar, body: &'a [Stmt], value: Option<Reg>) -> Vec<(Reg, i64)> {
        self.pointers.scope.push(var);
        let mut bumps = vec![];
        for (base, terms) in self.patterns(body, var) {
            let (&(_, c), outer) = terms.split_last().expect("a term in the variable");
            let (start, offset) = self.pointer(base, outer);
            let bytes = c * self.element_bytes(base);
            let pointer = self.program.reg(Class::General);
            let to = Arg::Reg(pointer, View::R64);
            match value {
                None if offset == 0 && start != FRAME => {
                    self.program.items.push(Item::Copy { to: pointer, from: start })
                }
                None => self.emit(Inst::new(Code::Lea_r64_m, &[to, Arg::Mem(start, offset)])),
                Some(value) => {
                    self.scaled(pointer, value, bytes);
                    let start = match offset {
                        0 => start,
                        _ => {
                            let whole = self.program.reg(Class::General);
                            let args = [Arg::Reg(whole, View::R64), Arg::Mem(start, offset)];
                            self.emit(Inst::new(Code::Lea_r64_m, &args));
                            whole
                        }
                    };
                    self.emit(Inst::new(Code::Add_rm64_r64, &[to, Arg::Reg(start, View::R64)]).first(First::Mod));
                }
            }
            self.pointers.registers.insert((base, terms), pointer);
            bumps.push((pointer, bytes));
        }
        bumps
    }

    /// Ends the scope of a loop variable, and of carry variables bound in its body.
    pub(super) fn leave(&mut self, var: LoopVar) {
        while self.pointers.scope.pop().is_some_and(|v| v != var) {}
    }

    /// Bytes of an element.
    fn element_bytes(&self, base: Base) -> i64 {
        let dtype = match base {
            Base::Buf(buf) => self.nest.buffers[buf.0 as usize].dtype,
            Base::Acc(acc) => self.types[&acc],
        };
        dtype.bytes() as i64
    }

    /// The register of a pattern, and how far its start lies behind it.
    pub(super) fn pointer(&mut self, base: Base, terms: &[(LoopVar, i64)]) -> (Reg, i32) {
        if !terms.is_empty() {
            return (self.pointers.registers[&(base, terms.to_vec())], 0);
        }
        if let Base::Acc(acc) = base
            && let Some(&at) = self.around.frame.accs.get(&acc)
        {
            return (FRAME, at as i32);
        }
        if let Some(&known) = self.pointers.bases.get(&base) {
            return (known, 0);
        }
        let reg = self.program.reg(Class::General);
        let (slot, offset) = match base {
            Base::Buf(buf) => (buf.0, 0),
            Base::Acc(acc) => (self.nest.buffers.len() as u32, self.around.scratch.offsets[&acc]),
        };
        let args = [Arg::Reg(reg, View::R64), Arg::Mem(self.buffers, slot as i32 * 8)];
        self.prologue.push(Item::Inst(Inst::new(Code::Mov_r64_rm64, &args)));
        if offset > 0 {
            let distance = self.program.reg(Class::General);
            let (to, from) = (Arg::Reg(reg, View::R64), Arg::Reg(distance, View::R64));
            self.prologue.push(Item::Inst(Inst::new(Code::Mov_r64_imm64, &[from, Arg::Imm(offset as i64)])));
            self.prologue.push(Item::Inst(Inst::new(Code::Add_rm64_r64, &[to, from]).first(First::Mod)));
        }
        self.pointers.bases.insert(base, reg);
        (reg, 0)
    }

    /// The patterns of the accesses in the body that move with `var`, over variables bound by now.
    fn patterns(&self, body: &'a [Stmt], var: LoopVar) -> BTreeSet<Pattern> {
        let mut patterns = BTreeSet::new();
        let mut take = |base: Base, index: &Index| {
            if index.coefficient(var) != 0 {
                patterns.insert((base, self.pointers.terms(index)));
            }
        };
        let in_memory = |acc: &AccId| !self.around.cells.contains_key(acc);
        each_expr(body, &mut |e| match e {
            Expr::Load(buf, _, index) => take(Base::Buf(*buf), index),
            Expr::Read(acc, _, index) if in_memory(acc) => take(Base::Acc(*acc), index),
            _ => {}
        });
        body.iter().for_each(|s| {
            s.visit(&mut |s| match s {
                Stmt::Store { buf, index, .. } => take(Base::Buf(*buf), index),
                Stmt::Set { acc, index, .. } if in_memory(acc) => take(Base::Acc(*acc), index),
                _ => {}
            })
        });
        patterns
    }

    /// The address of an element (of lane 0), and the stride of the lanes in elements.
    pub(super) fn address(&mut self, base: Base, index: &Index) -> (Reg, i32, i64) {
        let stride = self.lane.map_or(0, |(var, _)| index.coefficient(var));
        let terms = self.pointers.terms(index);
        let (pointer, start) = self.pointer(base, &terms);
        let offset = index.offset * self.element_bytes(base) + i64::from(start);
        let (pointer, offset) = self.near(pointer, offset);
        (pointer, offset, stride)
    }

    /// The same address with a distance that an instruction can hold, and some more.
    pub(super) fn near(&mut self, pointer: Reg, offset: i64) -> (Reg, i32) {
        match i32::try_from(offset) {
            Ok(offset) if offset.abs() < i32::MAX - 4096 => (pointer, offset),
            _ => {
                let far = self.program.reg(Class::General);
                self.number(far, offset);
                let args = [Arg::Reg(far, View::R64), Arg::Reg(pointer, View::R64)];
                self.emit(Inst::new(Code::Add_rm64_r64, &args).first(First::Mod));
                (far, 0)
            }
        }
    }

    /// `to = value`.
    pub(super) fn number(&mut self, to: Reg, value: i64) {
        let inst = match u32::try_from(value) {
            Ok(small) => Inst::new(Code::Mov_r32_imm32, &[Arg::Reg(to, View::R32), Arg::Imm(i64::from(small))]),
            Err(_) => Inst::new(Code::Mov_r64_imm64, &[Arg::Reg(to, View::R64), Arg::Imm(value)]),
        };
        self.emit(inst);
    }

    /// `reg += value`.
    pub(super) fn add(&mut self, reg: Reg, value: i64) {
        let to = Arg::Reg(reg, View::R64);
        if value == 0 {
            return;
        }
        if i32::try_from(value).is_ok() {
            return self.emit(Inst::new(Code::Add_rm64_imm32, &[to, Arg::Imm(value)]).first(First::Mod));
        }
        let distance = self.program.reg(Class::General);
        self.number(distance, value);
        self.emit(Inst::new(Code::Add_rm64_r64, &[to, Arg::Reg(distance, View::R64)]).first(First::Mod));
    }

    /// `to = value * factor`.
    pub(super) fn scaled(&mut self, to: Reg, value: Reg, factor: i64) {
        let (to_arg, value) = (Arg::Reg(to, View::R64), Arg::Reg(value, View::R64));
        if i32::try_from(factor).is_ok() {
            return self.emit(Inst::new(Code::Imul_r64_rm64_imm32, &[to_arg, value, Arg::Imm(factor)]));
        }
        self.number(to, factor);
        self.emit(Inst::new(Code::Imul_r64_rm64, &[to_arg, value]).first(First::Mod));
    }

    /// The value of an index over counters and carries, in a register of its own.
    pub(super) fn index_value(&mut self, index: &Index) -> Reg {
        let sum = self.program.reg(Class::General);
        self.number(sum, index.offset);
        let terms: Vec<(LoopVar, i64)> = index.terms().collect();
        for (var, c) in terms {
            let term = self.program.reg(Class::General);
            self.scaled(term, self.counters[&var], c);
            let args = [Arg::Reg(sum, View::R64), Arg::Reg(term, View::R64)];
            self.emit(Inst::new(Code::Add_rm64_r64, &args).first(First::Mod));
        }
        sum
    }
}
