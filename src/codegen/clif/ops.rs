//! The table of operations: each with its Cranelift form, for scalars and vectors.

use super::{ClifValue, Generator, Val, scalar_type, vector_type};
use crate::codegen::Refused;
use cranefold_ir::{DType, Op, Scalar};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{ConstantData, InstBuilder, MemFlagsData, Value, types};

impl Generator<'_> {
    /// The value of an operation whose operands are not all constants: scalar if all operands are.
    pub(super) fn operation(&mut self, op: Op, result: DType, args: &[ClifValue]) -> Result<ClifValue, Refused> {
        let lanes = args.iter().map(|a| if let ClifValue::Val(v) = a { v.lanes } else { 1 }).max().expect("an operand");
        if op == Op::Select
            && lanes > 1
            && let Some(value) = self.select_by_mask(args, lanes)
        {
            return Ok(ClifValue::Val(Val { value, dtype: result, lanes }));
        }
        let vals: Vec<Val> = match lanes {
            1 => args.iter().map(|&a| self.scalar(a)).collect::<Result<_, _>>()?,
            // The amount of a shift is one scalar for all lanes.
            _ if matches!(op, Op::Shl | Op::Shr) => vec![self.vector(args[0], lanes), self.scalar(args[1])?],
            _ if op == Op::Fma => {
                let (a, b) = (self.vector(args[0], lanes), self.vector(args[1], lanes));
                vec![a, b, Val { value: self.addend(args[2], lanes), ..a }]
            }
            _ => args.iter().map(|&a| self.vector(a, lanes)).collect(),
        };
        let value = match (op, lanes) {
            (Op::Cast, 1) => self.cast(vals[0], result)?,
            (Op::Cast, _) => self.cast_lanes(vals[0], result)?,
            (Op::Bits, 1) => self.reread_scalar(vals[0], result),
            (Op::Bits, _) => self.reread(vals[0].value, vector_type(result)),
            (Op::Select, _) => self.select(&vals, lanes),
            (Op::Div, 1) if result.is_int() => self.divide(vals[0], args[1], vals[1].value),
            _ if vals[0].dtype.is_float() => self.float_op(op, &vals)?,
            _ => self.int_op(op, &vals, lanes)?,
        };
        Ok(ClifValue::Val(Val { value, dtype: result, lanes }))
    }

    fn float_op(&mut self, op: Op, args: &[Val]) -> Result<Value, Refused> {
        let mut a = args[0].value;
        let mut b = args.last().expect("an operand").value;
        if matches!(op, Op::Eq | Op::Ne | Op::Lt | Op::Le) && args[0].lanes > 1 && self.target.without_avx {
            (a, b) = (self.in_register(a), self.in_register(b));
        }
        let ins = self.builder.ins();
        Ok(match op {
            Op::Neg => ins.fneg(a),
            Op::Abs => ins.fabs(a),
            Op::Sqrt => ins.sqrt(a),
            Op::Nearest => ins.nearest(a),
            Op::Add => ins.fadd(a, b),
            Op::Sub => ins.fsub(a, b),
            Op::Mul => ins.fmul(a, b),
            Op::Div => ins.fdiv(a, b),
            Op::DivBy => ins.fdiv(a, args[1].value),
            Op::Fma => ins.fma(a, args[1].value, b),
            Op::Eq => ins.fcmp(FloatCC::Equal, a, b),
            Op::Ne => ins.fcmp(FloatCC::NotEqual, a, b),
            Op::Lt => ins.fcmp(FloatCC::LessThan, a, b),
            Op::Le => ins.fcmp(FloatCC::LessThanOrEqual, a, b),
            _ => return Err(Refused(format!("{} of {}", op.name(), args[0].dtype))),
        })
    }

    /// A vector that its user does not fold as a load. Cranelift 0.135 folds loads into `cmpps` and `cmppd` without
    /// knowing that these two instructions of SSE need aligned operands in memory.
    fn in_register(&mut self, value: Value) -> Value {
        let ty = self.builder.func.dfg.value_type(value);
        let bits = self.reread(value, types::I8X16);
        self.reread(bits, ty)
    }

    fn int_op(&mut self, op: Op, args: &[Val], lanes: u64) -> Result<Value, Refused> {
        let dtype = args[0].dtype;
        let signed = dtype.is_signed();
        let (mut a, mut b) = (args[0].value, args.last().expect("an operand").value);
        if dtype == DType::Bool && lanes > 1 {
            // Truth values are as wide as the compared values; a truth value from outside lanes is as wide as a byte.
            let [bytes_a, bytes_b] = [a, b].map(|v| self.builder.func.dfg.value_type(v).lane_bits() / 8);
            let wide = signed_of(u64::from(bytes_a.max(bytes_b)));
            (a, b) = (self.truth_of_size(a, wide), self.truth_of_size(b, wide));
            b = self.reread(b, self.builder.func.dfg.value_type(a));
        }
        let ins = self.builder.ins();
        Ok(match op {
            Op::Neg => ins.ineg(a),
            Op::Abs if signed => ins.iabs(a),
            Op::Abs => a,
            Op::Not if dtype == DType::Bool && lanes == 1 => ins.bxor_imm_s(a, 1),
            Op::Not => ins.bnot(a),
            Op::Clz => ins.clz(a),
            Op::Add => ins.iadd(a, b),
            Op::Sub => ins.isub(a, b),
            Op::Mul => ins.imul(a, b),
            Op::MulHigh if dtype == DType::U64 => ins.umulhi(a, b),
            Op::MulHigh => self.upper_products(a, b, lanes),
            Op::Min if signed => ins.smin(a, b),
            Op::Min => ins.umin(a, b),
            Op::Max if signed => ins.smax(a, b),
            Op::Max => ins.umax(a, b),
            Op::And => ins.band(a, b),
            Op::Or => ins.bor(a, b),
            Op::Xor => ins.bxor(a, b),
            Op::Shl => ins.ishl(a, b),
            Op::Shr if signed => ins.sshr(a, b),
            Op::Shr => ins.ushr(a, b),
            Op::Eq => ins.icmp(IntCC::Equal, a, b),
            Op::Ne => ins.icmp(IntCC::NotEqual, a, b),
            Op::Lt if signed => ins.icmp(IntCC::SignedLessThan, a, b),
            Op::Lt => ins.icmp(IntCC::UnsignedLessThan, a, b),
            Op::Le if signed => ins.icmp(IntCC::SignedLessThanOrEqual, a, b),
            Op::Le => ins.icmp(IntCC::UnsignedLessThanOrEqual, a, b),
            _ => return Err(Refused(format!("{} of {dtype}", op.name()))),
        })
    }

    /// The upper halves of products of `i16`.
    fn upper_products(&mut self, a: Value, b: Value, lanes: u64) -> Value {
        let bits = i64::from(DType::I16.bits());
        if lanes == 1 {
            let [a, b] = [a, b].map(|value| self.builder.ins().sextend(types::I32, value));
            let product = self.builder.ins().imul(a, b);
            let upper = self.builder.ins().sshr_imm_u(product, bits);
            return self.builder.ins().ireduce(types::I16, upper);
        }
        let [low, high] = [true, false].map(|is_low| {
            let [a, b] = [a, b].map(|value| match is_low {
                true => self.builder.ins().swiden_low(value),
                false => self.builder.ins().swiden_high(value),
            });
            let product = self.builder.ins().imul(a, b);
            self.builder.ins().sshr_imm_u(product, bits)
        });
        self.builder.ins().snarrow(low, high)
    }

    /// Integer division that never traps: by 0 it gives 0, by -1 the negated dividend.
    fn divide(&mut self, a: Val, divisor: ClifValue, b: Value) -> Value {
        let (signed, ty) = (a.dtype.is_signed(), scalar_type(a.dtype));
        let is = |value: i128| matches!(divisor, ClifValue::Const(s) if s.as_int() == Some(value));
        let plain = |this: &mut Self, b: Value| match signed {
            true => this.builder.ins().sdiv(a.value, b),
            false => this.builder.ins().udiv(a.value, b),
        };
        if matches!(divisor, ClifValue::Const(_)) && !is(0) && !is(-1) {
            return plain(self, b);
        }
        let one = self.builder.ins().iconst(ty, 1);
        let is_zero = self.builder.ins().icmp_imm_s(IntCC::Equal, b, 0);
        let safe = self.builder.ins().select(is_zero, one, b);
        let quotient = if signed {
            let is_minus_one = self.builder.ins().icmp_imm_s(IntCC::Equal, b, -1);
            let safe = self.builder.ins().select(is_minus_one, one, safe);
            let quotient = plain(self, safe);
            let negated = self.builder.ins().ineg(a.value);
            self.builder.ins().select(is_minus_one, negated, quotient)
        } else {
            plain(self, safe)
        };
        let zero = self.builder.ins().iconst(ty, 0);
        self.builder.ins().select(is_zero, zero, quotient)
    }

    fn select(&mut self, args: &[Val], lanes: u64) -> Value {
        let (condition, yes, no) = (args[0].value, args[1].value, args[2].value);
        if lanes == 1 {
            return self.builder.ins().select(condition, yes, no);
        }
        let mask = self.truth_of_size(condition, args[1].dtype);
        let mask = self.reread(mask, vector_type(args[1].dtype));
        self.builder.ins().bitselect(mask, yes, no)
    }

    /// A selection between all bits set or none and another value, as one logical operation on the mask.
    fn select_by_mask(&mut self, args: &[ClifValue], lanes: u64) -> Option<Value> {
        let bits = |a: ClifValue, bits: u64| matches!(a, ClifValue::Const(s) if s.bits() == bits & (u64::MAX >> (64 - s.dtype().bits())));
        let (ones, zeros) = (u64::MAX, 0);
        let (yes, no) = (args[1], args[2]);
        let arm = match () {
            _ if bits(yes, ones) || bits(yes, zeros) => no,
            _ if bits(no, zeros) => yes,
            _ => return None,
        };
        let dtype = match arm {
            ClifValue::Const(s) => s.dtype(),
            ClifValue::Val(v) => v.dtype,
        };
        let ty = vector_type(dtype).as_int();
        let condition = self.vector(args[0], lanes).value;
        let mask = self.truth_of_size(condition, dtype);
        let mask = self.reread(mask, ty);
        let other = self.vector(arm, lanes).value;
        let other = self.reread(other, ty);
        let value = match () {
            _ if bits(yes, ones) => self.builder.ins().bor(mask, other),
            _ if bits(yes, zeros) => self.builder.ins().band_not(other, mask),
            _ => self.builder.ins().band(mask, other),
        };
        Some(self.reread(value, vector_type(dtype)))
    }

    /// The truth in lanes of the size of a type's.
    fn truth_of_size(&mut self, truth: Value, of: DType) -> Value {
        let bytes = u64::from(self.builder.func.dfg.value_type(truth).lane_bits() / 8);
        if bytes == of.bytes() {
            return truth;
        }
        self.resize_lanes(truth, signed_of(bytes), signed_of(of.bytes()))
    }

    fn reread_scalar(&mut self, v: Val, to: DType) -> Value {
        let ty = scalar_type(to);
        if self.builder.func.dfg.value_type(v.value) == ty {
            return v.value;
        }
        self.builder.ins().bitcast(ty, MemFlagsData::new(), v.value)
    }

    /// Converts a scalar.
    fn cast(&mut self, v: Val, to: DType) -> Result<Value, Refused> {
        let from = v.dtype;
        match (from.is_float(), to.is_float()) {
            (false, false) => Ok(self.resize(v.value, from, to)),
            (false, true) if matches!(to, DType::F32 | DType::F64) => {
                let wide = if from.bytes() < 4 { DType::I32 } else { from };
                let value = self.resize(v.value, from, wide);
                Ok(match from.is_signed() || from.bytes() < 4 {
                    true => self.builder.ins().fcvt_from_sint(scalar_type(to), value),
                    false => self.builder.ins().fcvt_from_uint(scalar_type(to), value),
                })
            }
            (true, true) => match (from, to) {
                (DType::F32, DType::F64) => Ok(self.builder.ins().fpromote(types::F64, v.value)),
                (DType::F64, DType::F32) => Ok(self.builder.ins().fdemote(types::F32, v.value)),
                _ => Err(Refused(format!("{to} of {from}"))),
            },
            (true, false) if matches!(from, DType::F32 | DType::F64) => Ok(self.float_to_int(v.value, to)),
            _ => Err(Refused(format!("{to} of {from}"))),
        }
    }

    /// Converts a float towards zero, clamped, NaN to 0.
    fn float_to_int(&mut self, value: Value, to: DType) -> Value {
        if to.bytes() >= 4 {
            return match to.is_signed() {
                true => self.builder.ins().fcvt_to_sint_sat(scalar_type(to), value),
                false => self.builder.ins().fcvt_to_uint_sat(scalar_type(to), value),
            };
        }
        let wide = self.builder.ins().fcvt_to_sint_sat(types::I32, value);
        let (low, high) = to.int_range().expect("an integer type");
        let low = self.builder.ins().iconst(types::I32, i64::from(low as u32));
        let high = self.builder.ins().iconst(types::I32, i64::from(high as u32));
        let clamped = self.builder.ins().smax(wide, low);
        let clamped = self.builder.ins().smin(clamped, high);
        self.builder.ins().ireduce(scalar_type(to), clamped)
    }

    fn resize(&mut self, value: Value, from: DType, to: DType) -> Value {
        let ty = scalar_type(to);
        match from.bytes().cmp(&to.bytes()) {
            std::cmp::Ordering::Less if from.is_signed() => self.builder.ins().sextend(ty, value),
            std::cmp::Ordering::Less => self.builder.ins().uextend(ty, value),
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Greater => self.builder.ins().ireduce(ty, value),
        }
    }

    /// Converts lanes.
    fn cast_lanes(&mut self, v: Val, to: DType) -> Result<Value, Refused> {
        let from = v.dtype;
        let is_small = |d: DType| d.is_int() && d.bytes() < 4;
        Ok(match (from, to) {
            _ if from.is_int() && to.is_int() => self.resize_lanes(v.value, from, to),
            (DType::F32, DType::F64) => self.builder.ins().fvpromote_low(v.value),
            (DType::F64, DType::F32) => self.builder.ins().fvdemote(v.value),
            (_, DType::F32 | DType::F64) if is_small(from) => {
                let value = self.resize_lanes(v.value, from, DType::I32);
                return self.cast_lanes(Val { value, dtype: DType::I32, ..v }, to);
            }
            (DType::I32, DType::F32) => self.builder.ins().fcvt_from_sint(types::F32X4, v.value),
            (DType::U32, DType::F32) => self.builder.ins().fcvt_from_uint(types::F32X4, v.value),
            (DType::I32, DType::F64) => {
                let wide = self.builder.ins().swiden_low(v.value);
                self.builder.ins().fcvt_from_sint(types::F64X2, wide)
            }
            (DType::U32, DType::F64) => {
                let wide = self.builder.ins().uwiden_low(v.value);
                self.builder.ins().fcvt_from_uint(types::F64X2, wide)
            }
            (DType::F32, DType::I32) => self.builder.ins().fcvt_to_sint_sat(types::I32X4, v.value),
            (DType::F32, DType::U32) => self.builder.ins().fcvt_to_uint_sat(types::I32X4, v.value),
            (DType::F64, DType::I32) => {
                let wide = self.builder.ins().fcvt_to_sint_sat(types::I64X2, v.value);
                let zero = self.zero_lanes();
                self.builder.ins().snarrow(wide, zero)
            }
            (DType::F64, DType::U32) => {
                let wide = self.builder.ins().fcvt_to_uint_sat(types::I64X2, v.value);
                let zero = self.zero_lanes();
                self.builder.ins().uunarrow(wide, zero)
            }
            (DType::F32 | DType::F64, _) if is_small(to) => {
                let wide = self.cast_lanes(v, DType::I32)?;
                let (low, high) = to.int_range().expect("an integer type");
                let [low, high] = [low, high].map(|limit| self.splat_constant(Scalar::int(DType::I32, limit)));
                let clamped = self.builder.ins().smax(wide, low);
                let clamped = self.builder.ins().smin(clamped, high);
                self.resize_lanes(clamped, DType::I32, to)
            }
            _ => return Err(Refused(format!("{to} of {from} in lanes"))),
        })
    }

    /// Two zeros of 64 bits, beside the instruction that takes them: Cranelift has one for both together.
    fn zero_lanes(&mut self) -> Value {
        let zero = self.builder.func.dfg.constants.insert(ConstantData::from([0; 16].as_slice()));
        self.builder.ins().vconst(types::I64X2, zero)
    }
}

/// The signed integer type of so many bytes.
fn signed_of(bytes: u64) -> DType {
    match bytes {
        1 => DType::I8,
        2 => DType::I16,
        4 => DType::I32,
        _ => DType::I64,
    }
}
