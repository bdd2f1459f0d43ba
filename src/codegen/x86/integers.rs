//! Conversions of lanes from floats to integers: towards zero, clamped, and 0 of a NaN.
//!
//! The instructions give one number for all values outside their result's range and for NaN: the least of signed
//! integers, the greatest of unsigned ones. Where both limits of the result are floats, the value is clamped before; of
//! other results the ends are mended after the instruction.
//!
//! | result | of | AVX-512 | AVX2 |
//! | --- | --- | --- | --- |
//! | `i8`, `i16` | f32, f64 | at most the greatest, 0 of a NaN; convert to i32; narrow, clamped | clamp, convert, narrow |
//! | `u8`, `u16` | f32, f64 | at least 0, convert to u32; narrow, clamped | clamp, convert to i32, narrow |
//! | `i32` | f64 | clamp, convert | the same |
//! | `i32`, `i64` | f32, f64 | convert; the greatest from its limit on | `i32` of f32: the same |
//! | `u32`, `u64` | f32, f64 | at least 0, convert | |
//!
//! An operand that is rounded to nearest, as in `i8(nearest(x))`, is converted by instructions that round: the limits of
//! results are integers or too great for a fraction, so that it does not matter which comes first.

use super::machine::code::{Arg, Inst, Reg, masked_load};
use super::machine::table::Opcode;
use super::{Generator, Refused, Val, ValuePlace};
use cranefold_ir::{DType, Op, Scalar};

/// The rounding of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// Towards zero.
    Zero,
    /// To nearest, ties to even.
    Nearest,
}

/// The instruction that converts, if there is one.
fn converter(from: DType, to: DType, rounding: Rounding) -> Option<Opcode> {
    use DType::{F32, F64, I32, I64, U32, U64};
    let [zero, nearest] = match (from, to) {
        (F32, I32) => [Opcode::Vcvttps2dq, Opcode::Vcvtps2dq],
        (F32, U32) => [Opcode::Vcvttps2udq, Opcode::Vcvtps2udq],
        (F32, I64) => [Opcode::Vcvttps2qq, Opcode::Vcvtps2qq],
        (F32, U64) => [Opcode::Vcvttps2uqq, Opcode::Vcvtps2uqq],
        (F64, I32) => [Opcode::Vcvttpd2dq, Opcode::Vcvtpd2dq],
        (F64, U32) => [Opcode::Vcvttpd2udq, Opcode::Vcvtpd2udq],
        (F64, I64) => [Opcode::Vcvttpd2qq, Opcode::Vcvtpd2qq],
        (F64, U64) => [Opcode::Vcvttpd2uqq, Opcode::Vcvtpd2uqq],
        _ => return None,
    };
    Some(if rounding == Rounding::Zero { zero } else { nearest })
}

impl Generator<'_> {
    /// Returns true if instructions convert floats to these integers.
    pub(super) fn converts(&self, from: DType, to: DType) -> bool {
        let wide = if to.bytes() < 4 { DType::I32 } else { to };
        converter(from, wide, Rounding::Zero).is_some_and(|opcode| self.tier.has(opcode))
    }

    /// Converts floats to integers.
    pub(super) fn integer_of(
        &mut self,
        a: Val,
        result: DType,
        rounding: Rounding,
        to: Option<Reg>,
    ) -> Result<Val, Refused> {
        let is_small = result.bytes() < 4;
        let wide = match is_small {
            true if self.tier.is_512() && !result.is_signed() => DType::U32,
            true => DType::I32,
            false => result,
        };
        let opcode = converter(a.dtype, wide, rounding).filter(|&opcode| self.tier.has(opcode));
        let Some(opcode) = opcode else { return Err(Refused(format!("{result} of {}", a.dtype))) };
        let a = Val { place: ValuePlace::Reg(self.reg(a)), ..a };
        let (low, high) = result.int_range().expect("an integer type");
        let [low, high] = [low, high].map(|limit| Scalar::int(a.dtype, limit));
        let value = match () {
            () if !wide.is_signed() => self.limited(Op::Max, a, low),
            () if !result.is_signed() => {
                let value = self.limited(Op::Max, a, low);
                self.limited(Op::Min, value, high)
            }
            () if self.tier.is_512() && is_small => self.number_limited(Op::Min, a, high),
            () if is_small || result.bytes() < a.bytes => {
                let value = self.number_limited(Op::Max, a, low);
                self.limited(Op::Min, value, high)
            }
            () => return Ok(self.with_mended_ends(opcode, a, result, to)),
        };
        if !is_small {
            return Ok(self.converted(opcode, value, result, to));
        }
        let whole = self.converted(opcode, value, wide, None);
        Ok(if self.tier.is_512() { self.narrowed_within(whole, result, to) } else { self.resized(whole, result, to) })
    }

    /// Narrows integers of 32 bits, clamped to the result's limits, in AVX-512.
    fn narrowed_within(&mut self, a: Val, result: DType, to: Option<Reg>) -> Val {
        let (opcode, bytes) = match (result.bytes(), result.is_signed()) {
            (1, true) => (Opcode::Vpmovsdb, 16),
            (1, false) => (Opcode::Vpmovusdb, 16),
            (_, true) => (Opcode::Vpmovsdw, 32),
            (_, false) => (Opcode::Vpmovusdw, 32),
        };
        let from = self.reg(a);
        let to = self.target(to);
        let args = [Arg::Reg(to, self.tier.view_of(bytes)), self.full(from)];
        self.emit(Inst::new(opcode, &args));
        self.value(to, result, a.lanes)
    }

    /// The lesser or the greater of a value and a limit; the limit where the value is a NaN.
    fn limited(&mut self, op: Op, a: Val, limit: Scalar) -> Val {
        let limit = Val { place: ValuePlace::Reg(self.constant_reg(limit)), ..a };
        // The instruction gives its second operand where one is a NaN.
        Val { lanes: a.lanes, ..self.float_extreme(op, a, limit, None) }
    }

    /// The lesser or the greater of a value and a limit; 0 where the value is a NaN.
    fn number_limited(&mut self, op: Op, a: Val, limit: Scalar) -> Val {
        if !self.tier.is_512() {
            let number = self.number_or_zero(a);
            return self.limited(op, number, limit);
        }
        let ordered = self.operation_truth(Op::Eq, a, a);
        let opcode = match (op, a.bytes) {
            (Op::Min, 4) => Opcode::Vminps,
            (Op::Min, _) => Opcode::Vminpd,
            (_, 4) => Opcode::Vmaxps,
            _ => Opcode::Vmaxpd,
        };
        let (from, limit, to) = (self.reg(a), self.constant_reg(limit), self.vector());
        let args = [self.full(to), self.full(from), self.full(limit)];
        self.emit(Inst::new(opcode, &args).masked(ordered, true));
        Val { place: ValuePlace::Reg(to), ..a }
    }

    /// The value, or 0 where it is a NaN, in AVX2.
    fn number_or_zero(&mut self, a: Val) -> Val {
        let ordered = self.operation_truth(Op::Eq, a, a);
        let from = self.reg(a);
        Val { place: ValuePlace::Reg(self.both(Opcode::Vpand, from, ordered)), ..a }
    }

    /// A conversion to signed integers whose greatest is no float: that one from the limit on, 0 of a NaN.
    fn with_mended_ends(&mut self, opcode: Opcode, a: Val, result: DType, to: Option<Reg>) -> Val {
        let limit = Scalar::float(a.dtype, 2f64.powi(result.bits() as i32 - 1));
        let limit = Val { place: ValuePlace::Reg(self.constant_reg(limit)), ..a };
        let above = self.operation_truth(Op::Le, limit, a);
        if !self.tier.is_512() {
            let number = self.number_or_zero(a);
            let whole = self.converted(opcode, number, result, None);
            // The bits of the least integer, all turned, are those of the greatest.
            let (whole, above) = (self.reg(whole), self.full(above));
            let mended = self.pair(Opcode::Vpxor, whole, above, to);
            return self.value(mended, result, a.lanes);
        }
        let ordered = self.operation_truth(Op::Eq, a, a);
        let greatest = self.constant_reg(Scalar::highest(result));
        let lanes = self.tier.bytes() / result.bytes();
        let from = self.operand(a, lanes * a.bytes);
        let to = self.target(to);
        let args = [self.full(to), from];
        self.emit(Inst::new(opcode, &args).masked(ordered, true));
        let args = [self.full(to), self.full(greatest)];
        self.emit(Inst::new(masked_load(result.bytes()), &args).masked(above, false));
        self.value(to, result, a.lanes)
    }

    /// The register of a comparison.
    fn operation_truth(&mut self, op: Op, a: Val, b: Val) -> Reg {
        let truth = self.compared(op, false, a, b, a.lanes, None);
        self.reg(truth)
    }
}
