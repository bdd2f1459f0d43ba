//! Canonical NaNs in AVX-512.

use super::machine::code::{Arg, Inst, Item, Reg};
use super::machine::table::Opcode;
use super::{Generator, Refused, Val, ValuePlace, Walk};
use crate::codegen::emit::Values;
use cranefold_ir::{DType, Expr, Op, Scalar};

/// The table by which `vfixupimm` keeps the first operand where the second is a NaN, and takes the second elsewhere. It has
/// four bits for each kind of number: 0 for both kinds of NaN, which come first, and 1 for the other six.
const UNLESS_NAN: u64 = 0x1111_1100;

impl<'a> Generator<'a> {
    /// `x != x ? NaN : x`, in one instruction onto a copy of the NaN.
    pub(super) fn canonical(
        &mut self,
        walk: &mut Walk<'a>,
        (op, args): (Op, &[Expr]),
        params: Option<&[Val]>,
        to: Option<Reg>,
    ) -> Result<Option<Val>, Refused> {
        let (Op::Select, [Expr::Op(Op::Ne, _, compared), Expr::Const(nan), x]) = (op, args) else { return Ok(None) };
        let is_float = matches!(nan.dtype(), DType::F32 | DType::F64);
        let is_of_one = is_float && compared.iter().all(|e| e == x) && nan.bits() == Scalar::nan(nan.dtype()).bits();
        if !is_of_one || !self.tier.is_512() {
            return Ok(None);
        }
        let x = walk.expr(self, x, params, None)?;
        if let Some(known) = Self::known(&x) {
            return Ok(Some(if known.is_nan() { self.constant(*nan) } else { x }));
        }
        let from = self.reg(x);
        let to = self.target(to.filter(|&to| to != from));
        let to = self.unless_nan(from, x.dtype, to);
        Ok(Some(Val { place: ValuePlace::Reg(to), ..x }))
    }

    /// `to = from`, and the canonical NaN in the lanes where `from` is a NaN.
    pub(super) fn unless_nan(&mut self, from: Reg, dtype: DType, to: Reg) -> Reg {
        let (opcode, bytes) = match dtype {
            DType::F32 => (Opcode::Vfixupimmps, 4),
            _ => (Opcode::Vfixupimmpd, 8),
        };
        let nan = self.constant_reg(Scalar::nan(dtype));
        let table = self.splat(UNLESS_NAN, bytes);
        self.program.items.push(Item::Copy { to, from: nan });
        self.emit(Inst::new(opcode, &[self.full(to), self.full(from), self.full(table), Arg::Imm(0)]));
        to
    }
}
