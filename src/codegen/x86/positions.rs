//! Values of indices: vectors of positions.

use super::machine::code::{Arg, Inst, Item, Reg, View};
use super::machine::table::Opcode;
use super::{Generator, Refused, Walk};
use cranefold_ir::{DType, Expr, Index, Loop, LoopKind, LoopVar, Scalar, Stmt};

/// The most vectors of positions that loops count up; each takes a register.
const MOST_MOVING: usize = 4;

/// A vector of positions that a loop counts up.
#[derive(Clone, Debug)]
pub(super) struct Moving {
    /// The loop.
    pub var: LoopVar,
    dtype: DType,
    /// The index without its constant and its lanes.
    start: Index,
    /// The distance from lane to lane.
    lane: i64,
    reg: Reg,
}

impl<'a> Generator<'a> {
    /// Makes, before a loop, a vector for each position that moves with it: in its lanes, or the same in all lanes.
    pub(super) fn count_positions(&mut self, walk: &mut Walk<'a>, l: &'a Loop) -> Result<(), Refused> {
        let mut found: Vec<(DType, Index, i64)> = vec![];
        let mut find = |e: &Expr, lane: Option<LoopVar>| {
            let Expr::At(dtype, index) = e else { return };
            let distance = lane.map_or(0, |lane| index.coefficient(lane));
            let start = lane.map_or(index.clone(), |lane| index.clone().plus(lane, -distance)).offset_by(-index.offset);
            if start.coefficient(l.var) != 0 && !found.contains(&(*dtype, start.clone(), distance)) {
                found.push((*dtype, start, distance));
            }
        };
        for stmt in &l.body {
            match stmt {
                Stmt::For(inner) if inner.kind == LoopKind::Lanes => {
                    super::each_expr(&inner.body, &mut |e| find(e, Some(inner.var)));
                }
                // The same in all lanes.
                Stmt::Let { value, .. } => value.visit(&mut |e| find(e, None)),
                _ => {}
            }
        }
        if found.len() > MOST_MOVING {
            return Ok(());
        }
        for (dtype, start, lane) in found {
            let outside = start.clone().plus(l.var, -start.coefficient(l.var));
            let steps = self.steps_of(dtype, 0, lane);
            let first = match outside.is_constant() {
                true => None,
                false => Some(walk.position(self, dtype, &outside)?),
            };
            let reg = self.vector();
            match first {
                None => self.program.items.push(Item::Copy { to: reg, from: steps }),
                Some(first) => {
                    let first = self.reg(first);
                    let args = [self.full(reg), self.full(first), self.full(steps)];
                    self.emit(Inst::new(self.add_code(dtype), &args));
                }
            }
            self.moving.push(Moving { var: l.var, dtype, start, lane, reg });
        }
        Ok(())
    }

    /// Counts up the vectors of a loop, at its end.
    pub(super) fn step_positions(&mut self, var: LoopVar) {
        let moving: Vec<Moving> = self.moving.iter().filter(|m| m.var == var).cloned().collect();
        for m in moving {
            let step = Scalar::int(m.dtype, m.start.coefficient(var).into());
            let step = self.splat(step.bits(), m.dtype.bytes());
            let args = [self.full(m.reg), self.full(m.reg), self.full(step)];
            self.emit(Inst::new(self.add_code(m.dtype), &args));
        }
        self.moving.retain(|m| m.var != var);
    }

    fn add_code(&self, dtype: DType) -> Opcode {
        match dtype.bytes() {
            1 => Opcode::Vpaddb,
            2 => Opcode::Vpaddw,
            4 => Opcode::Vpaddd,
            _ => Opcode::Vpaddq,
        }
    }

    /// The vector `offset, offset + c, offset + 2 c` and so on.
    pub(super) fn steps_of(&mut self, dtype: DType, offset: i64, c: i64) -> Reg {
        let bytes = dtype.bytes();
        let lane = |n: i128| Scalar::int(dtype, i128::from(offset) + i128::from(c) * n).bits().to_le_bytes();
        let lanes = (self.tier.bytes() / bytes) as i128;
        let steps = (0..lanes).flat_map(|n| lane(n)[..bytes as usize].to_vec()).collect();
        self.bytes_constant(steps)
    }

    /// The vector of these positions that a loop counts up, if there is one.
    pub(super) fn counted_up(&self, dtype: DType, start: &Index, lane: i64) -> Option<Reg> {
        self.moving.iter().find(|m| m.dtype == dtype && m.start == *start && m.lane == lane).map(|m| m.reg)
    }

    /// A number of a register in all lanes.
    pub(super) fn number_in_lanes(&mut self, dtype: DType, number: Reg) -> Reg {
        let to = self.vector();
        if self.tier.is_512() {
            let (code, view) = match dtype.bytes() {
                1 => (Opcode::VpbroadcastbOf, View::R32),
                2 => (Opcode::VpbroadcastwOf, View::R32),
                4 => (Opcode::VpbroadcastdOf, View::R32),
                _ => (Opcode::VpbroadcastqOf, View::R64),
            };
            let args = [self.full(to), Arg::Reg(number, view)];
            self.emit(Inst::new(code, &args));
        } else {
            let (code, view, spread) = match dtype.bytes() {
                1 => (Opcode::Vmovd, View::R32, Opcode::Vpbroadcastb),
                2 => (Opcode::Vmovd, View::R32, Opcode::Vpbroadcastw),
                4 => (Opcode::Vmovd, View::R32, Opcode::Vpbroadcastd),
                _ => (Opcode::VmovqOf, View::R64, Opcode::Vpbroadcastq),
            };
            let low = self.vector();
            self.emit(Inst::new(code, &[Arg::Reg(low, View::Xmm), Arg::Reg(number, view)]));
            let args = [self.full(to), Arg::Reg(low, View::Xmm)];
            self.emit(Inst::new(spread, &args));
        }
        to
    }
}
