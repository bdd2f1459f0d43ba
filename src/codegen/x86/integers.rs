//! Conversions of lanes from floats to integers: towards zero, clamped, and 0 of a NaN.
//!
//! The instructions give one number for all values outside their result's range and for NaN: the least of signed
//! integers, the greatest of unsigned ones. Where both limits of the result are floats, the value is clamped before; of
//! other results the ends are mended after the instruction.
//!
//! | result | of | AVX-512 | AVX2 |
//! | --- | --- | --- | --- |
//! | 8 and 16 bits | f32, f64 | clamp, convert to i32, narrow | the same |
//! | `i32` | f64 | clamp, convert | the same |
//! | `i32`, `i64` | f32, f64 | convert; the greatest from its limit on | `i32` of f32: the same |
//! | `u32`, `u64` | f32, f64 | at least 0, convert | |

use super::machine::code::{Inst, Reg, masked_load};
use super::machine::table::Opcode;
use super::{Generator, Refused, Val, ValuePlace};
use cranefold_ir::{DType, Op, Scalar};

/// The instruction that converts towards zero, if there is one.
fn truncate(from: DType, to: DType) -> Option<Opcode> {
    use DType::{F32, F64, I32, I64, U32, U64};
    Some(match (from, to) {
        (F32, I32) => Opcode::Vcvttps2dq,
        (F32, U32) => Opcode::Vcvttps2udq,
        (F32, I64) => Opcode::Vcvttps2qq,
        (F32, U64) => Opcode::Vcvttps2uqq,
        (F64, I32) => Opcode::Vcvttpd2dq,
        (F64, U32) => Opcode::Vcvttpd2udq,
        (F64, I64) => Opcode::Vcvttpd2qq,
        (F64, U64) => Opcode::Vcvttpd2uqq,
        _ => return None,
    })
}

impl Generator<'_> {
    /// Converts floats to integers.
    pub(super) fn integer_of(&mut self, a: Val, result: DType, to: Option<Reg>) -> Result<Val, Refused> {
        let wide = if result.bytes() < 4 { DType::I32 } else { result };
        let opcode = truncate(a.dtype, wide).filter(|&opcode| self.tier.has(opcode));
        let Some(opcode) = opcode else { return Err(Refused(format!("{result} of {}", a.dtype))) };
        let a = Val { place: ValuePlace::Reg(self.reg(a)), ..a };
        let (low, high) = result.int_range().expect("an integer type");
        let limits = [low, high].map(|limit| Scalar::int(a.dtype, limit));
        let are_floats = result.bytes() < a.dtype.bytes() || result.bytes() < 4;
        if are_floats && opcode != Opcode::Vcvttpd2udq {
            let clamped = self.clamped(a, limits, result.is_signed());
            return Ok(match wide == result {
                true => self.converted(opcode, clamped, result, to),
                false => {
                    let wide = self.converted(opcode, clamped, wide, None);
                    self.resized(wide, result, to)
                }
            });
        }
        if !result.is_signed() {
            let zero = self.constant_reg(limits[0]);
            let zero = Val { place: ValuePlace::Reg(zero), ..a };
            // The instruction gives 0 where the value is a NaN.
            let value = self.float_extreme(Op::Max, a, zero, None);
            return Ok(self.converted(opcode, Val { lanes: a.lanes, ..value }, result, to));
        }
        Ok(self.with_mended_ends(opcode, a, result, to))
    }

    /// The value clamped to limits, and 0 where it is a NaN.
    fn clamped(&mut self, a: Val, limits: [Scalar; 2], signed: bool) -> Val {
        let [low, high] = limits.map(|limit| Val { place: ValuePlace::Reg(self.constant_reg(limit)), ..a });
        let value = match signed {
            true => self.at_least(a, low),
            // The second operand is the result where one is a NaN.
            false => self.float_extreme(Op::Max, a, low, None),
        };
        Val { lanes: a.lanes, ..self.float_extreme(Op::Min, value, high, None) }
    }

    /// The value, but at least `low`, and 0 where it is a NaN.
    fn at_least(&mut self, a: Val, low: Val) -> Val {
        if !self.tier.is_512() {
            let number = self.number_or_zero(a);
            return self.float_extreme(Op::Max, number, low, None);
        }
        let ordered = self.operation_truth(Op::Eq, a, a);
        let opcode = if a.bytes == 4 { Opcode::Vmaxps } else { Opcode::Vmaxpd };
        let (from, low, to) = (self.reg(a), self.reg(low), self.vector());
        let args = [self.full(to), self.full(from), self.full(low)];
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
