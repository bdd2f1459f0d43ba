//! Values of expressions.

use super::machine::code::{Arg, Class, Inst, Item, Reg, View};
use super::machine::table::Opcode;
use super::{ActiveLanes, Generator, Refused, Val, ValuePlace, Walk, ops};
use crate::codegen::emit::Values;
use cranefold_ir::{DType, Expr, Index, Op, Scalar};

impl<'a> Values<'a> for Generator<'a> {
    fn constant(&self, s: Scalar) -> Val {
        Val { place: ValuePlace::Const(s), dtype: s.dtype(), lanes: ActiveLanes::Same, bytes: s.dtype().bytes() }
    }

    fn known(value: &Val) -> Option<Scalar> {
        if let ValuePlace::Const(s) = value.place { Some(s) } else { None }
    }

    fn op(&mut self, op: Op, result: DType, args: &[Val], to: Option<Reg>) -> Result<Val, Refused> {
        self.operation(op, result, args, to)
    }

    fn pattern(
        &mut self,
        walk: &mut Walk<'a>,
        operation: &Expr,
        params: Option<&[Val]>,
        to: Option<Reg>,
    ) -> Result<Option<Val>, Refused> {
        let Expr::Op(op, dtype, args) = operation else { return Ok(None) };
        if params.is_none() {
            if let Some(sum) = self.sum_of_bytes(walk.lane(), operation) {
                return self.add_bytes(walk, sum, to).map(Some);
            }
            if let Some(value) = self.combined_where(walk, (*op, *dtype, args), to)? {
                return Ok(Some(value));
            }
        }
        if let Some(value) = self.scaled_where(walk, (*op, args), params, to)? {
            return Ok(Some(value));
        }
        if let (Op::Cast, true, [Expr::Op(Op::Nearest, from, rounded)]) = (op, dtype.is_int(), &args[..])
            && self.converts(*from, *dtype)
        {
            let value = walk.expr(self, &rounded[0], params, None)?;
            if Self::known(&value).is_none() {
                return self.rounded(value, *dtype, to).map(Some);
            }
        }
        if let Some(value) = self.canonical(walk, (*op, args), params, to)? {
            return Ok(Some(value));
        }
        let Some((extreme, a, b)) = ops::lesser_or_greater(*op, args) else { return Ok(None) };
        let (a, b) = (walk.expr(self, a, params, None)?, walk.expr(self, b, params, None)?);
        Ok(Some(self.float_extreme(extreme, a, b, to)))
    }

    fn reused(&mut self, value: Val) -> Val {
        match value.place {
            ValuePlace::Mem(..) => Val { place: ValuePlace::Reg(self.reg(value)), ..value },
            _ => value,
        }
    }

    fn kept(&mut self, walk: &Walk<'a>, value: Val) -> Val {
        let value = self.reused(value);
        match value.place {
            // The register of an accumulator may change later.
            ValuePlace::Reg(from) if walk.registers.values().any(|&r| r == from) => {
                let to = self.program.reg(self.program.classes[from.0 as usize]);
                self.program.items.push(Item::Copy { to, from });
                Val { place: ValuePlace::Reg(to), ..value }
            }
            _ => value,
        }
    }

    fn picked(&mut self, value: Val, most: u64) -> Result<Reg, Refused> {
        let (unsigned, bytes) = (value.dtype.unsigned(), value.bytes);
        if !matches!(bytes, 4 | 8) {
            return Err(Refused(format!("a place of {}", value.dtype)));
        }
        let greatest = if bytes == 8 { most } else { most.min(u32::MAX.into()) };
        let most = self.constant(Scalar::int(unsigned, greatest.into()));
        let value = match Self::known(&value) {
            Some(known) => self.constant(Scalar::from_bits(unsigned, known.bits().min(greatest))),
            None => self.operation(Op::Min, unsigned, &[Val { dtype: unsigned, ..value }, most], None)?,
        };
        let from = self.reg(value);
        let number = self.program.reg(Class::General);
        let (code, view) = match bytes {
            4 => (Opcode::VmovdStore, View::R32),
            _ => (Opcode::VmovqTo, View::R64),
        };
        self.emit(Inst::new(code, &[Arg::Reg(number, view), Arg::Reg(from, View::Xmm)]));
        Ok(number)
    }

    fn position(&mut self, dtype: DType, number: Reg) -> Result<Val, Refused> {
        let reg = self.number_in_lanes(dtype, number);
        Ok(self.value(reg, dtype, ActiveLanes::Same))
    }

    fn steps(&mut self, dtype: DType, offset: i64, c: i64, lanes: u64) -> Result<Val, Refused> {
        let reg = self.steps_of(dtype, offset, c);
        Ok(self.value(reg, dtype, ActiveLanes::First(lanes)))
    }

    fn counted(&mut self, dtype: DType, index: &Index, c: i64, lanes: u64) -> Option<Val> {
        let lanes = if c == 0 { ActiveLanes::Same } else { ActiveLanes::First(lanes) };
        self.counted_up(dtype, index, c).map(|reg| self.value(reg, dtype, lanes))
    }
}
