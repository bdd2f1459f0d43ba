//! The table of operations: each with its instructions in AVX2 and AVX-512.

use super::machine::code::masked_load;
use super::machine::code::{Arg, Class, Constant, First, Inst, Item, Reg, View};
use super::machine::tier::Tier;
use super::{Generator, Lanes, Place, Refused, Val, Walk};
use crate::codegen::emit::Values;
use cranefold_ir::{DType, Expr, Op, Scalar};
use iced_x86::Code::{self, *};

/// The instruction for two vectors of elements of a type, in AVX2 and AVX-512.
fn binary(op: Op, dtype: DType) -> Option<(Code, Code)> {
    let signed = dtype.is_signed();
    Some(match (op, dtype) {
        (Op::Add, DType::F32) => (VEX_Vaddps_ymm_ymm_ymmm256, EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er),
        (Op::Add, DType::F64) => (VEX_Vaddpd_ymm_ymm_ymmm256, EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er),
        (Op::Sub, DType::F32) => (VEX_Vsubps_ymm_ymm_ymmm256, EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er),
        (Op::Sub, DType::F64) => (VEX_Vsubpd_ymm_ymm_ymmm256, EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er),
        (Op::Mul, DType::F32) => (VEX_Vmulps_ymm_ymm_ymmm256, EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er),
        (Op::Mul, DType::F64) => (VEX_Vmulpd_ymm_ymm_ymmm256, EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er),
        (Op::Div, DType::F32) => (VEX_Vdivps_ymm_ymm_ymmm256, EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er),
        (Op::Div, DType::F64) => (VEX_Vdivpd_ymm_ymm_ymmm256, EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er),
        (Op::And, _) => (VEX_Vpand_ymm_ymm_ymmm256, EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32),
        (Op::Or, _) => (VEX_Vpor_ymm_ymm_ymmm256, EVEX_Vpord_zmm_k1z_zmm_zmmm512b32),
        (Op::Xor, _) => (VEX_Vpxor_ymm_ymm_ymmm256, EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32),
        _ => match (op, dtype.bytes(), signed) {
            (Op::Add, 1, _) => (VEX_Vpaddb_ymm_ymm_ymmm256, EVEX_Vpaddb_zmm_k1z_zmm_zmmm512),
            (Op::Add, 2, _) => (VEX_Vpaddw_ymm_ymm_ymmm256, EVEX_Vpaddw_zmm_k1z_zmm_zmmm512),
            (Op::Add, 4, _) => (VEX_Vpaddd_ymm_ymm_ymmm256, EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32),
            (Op::Add, 8, _) => (VEX_Vpaddq_ymm_ymm_ymmm256, EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64),
            (Op::Sub, 1, _) => (VEX_Vpsubb_ymm_ymm_ymmm256, EVEX_Vpsubb_zmm_k1z_zmm_zmmm512),
            (Op::Sub, 2, _) => (VEX_Vpsubw_ymm_ymm_ymmm256, EVEX_Vpsubw_zmm_k1z_zmm_zmmm512),
            (Op::Sub, 4, _) => (VEX_Vpsubd_ymm_ymm_ymmm256, EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32),
            (Op::Sub, 8, _) => (VEX_Vpsubq_ymm_ymm_ymmm256, EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64),
            (Op::Mul, 2, _) => (VEX_Vpmullw_ymm_ymm_ymmm256, EVEX_Vpmullw_zmm_k1z_zmm_zmmm512),
            (Op::Mul, 4, _) => (VEX_Vpmulld_ymm_ymm_ymmm256, EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32),
            (Op::Min, 1, true) => (VEX_Vpminsb_ymm_ymm_ymmm256, EVEX_Vpminsb_zmm_k1z_zmm_zmmm512),
            (Op::Min, 2, true) => (VEX_Vpminsw_ymm_ymm_ymmm256, EVEX_Vpminsw_zmm_k1z_zmm_zmmm512),
            (Op::Min, 4, true) => (VEX_Vpminsd_ymm_ymm_ymmm256, EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32),
            (Op::Max, 1, true) => (VEX_Vpmaxsb_ymm_ymm_ymmm256, EVEX_Vpmaxsb_zmm_k1z_zmm_zmmm512),
            (Op::Max, 2, true) => (VEX_Vpmaxsw_ymm_ymm_ymmm256, EVEX_Vpmaxsw_zmm_k1z_zmm_zmmm512),
            (Op::Max, 4, true) => (VEX_Vpmaxsd_ymm_ymm_ymmm256, EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32),
            (Op::Min, 1, false) => (VEX_Vpminub_ymm_ymm_ymmm256, EVEX_Vpminub_zmm_k1z_zmm_zmmm512),
            (Op::Min, 2, false) => (VEX_Vpminuw_ymm_ymm_ymmm256, EVEX_Vpminuw_zmm_k1z_zmm_zmmm512),
            (Op::Min, 4, false) => (VEX_Vpminud_ymm_ymm_ymmm256, EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32),
            (Op::Max, 1, false) => (VEX_Vpmaxub_ymm_ymm_ymmm256, EVEX_Vpmaxub_zmm_k1z_zmm_zmmm512),
            (Op::Max, 2, false) => (VEX_Vpmaxuw_ymm_ymm_ymmm256, EVEX_Vpmaxuw_zmm_k1z_zmm_zmmm512),
            (Op::Max, 4, false) => (VEX_Vpmaxud_ymm_ymm_ymmm256, EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32),
            _ => return None,
        },
    })
}

/// Operations on 64-bit integers that only AVX-512 has.
fn quads(op: Op, signed: bool) -> Option<Code> {
    Some(match (op, signed) {
        (Op::Mul, _) => EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64,
        (Op::Min, true) => EVEX_Vpminsq_zmm_k1z_zmm_zmmm512b64,
        (Op::Max, true) => EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64,
        (Op::Min, false) => EVEX_Vpminuq_zmm_k1z_zmm_zmmm512b64,
        (Op::Max, false) => EVEX_Vpmaxuq_zmm_k1z_zmm_zmmm512b64,
        _ => return None,
    })
}

/// Shifts by a number in the instruction: left, right, right with the sign.
fn shift(op: Op, bytes: u64, signed: bool) -> Option<(Code, Code)> {
    Some(match (op, bytes, signed) {
        (Op::Shl, 2, _) => (VEX_Vpsllw_ymm_ymm_imm8, EVEX_Vpsllw_zmm_k1z_zmmm512_imm8),
        (Op::Shl, 4, _) => (VEX_Vpslld_ymm_ymm_imm8, EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8),
        (Op::Shl, 8, _) => (VEX_Vpsllq_ymm_ymm_imm8, EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8),
        (Op::Shr, 2, false) => (VEX_Vpsrlw_ymm_ymm_imm8, EVEX_Vpsrlw_zmm_k1z_zmmm512_imm8),
        (Op::Shr, 4, false) => (VEX_Vpsrld_ymm_ymm_imm8, EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8),
        (Op::Shr, 8, false) => (VEX_Vpsrlq_ymm_ymm_imm8, EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8),
        (Op::Shr, 2, true) => (VEX_Vpsraw_ymm_ymm_imm8, EVEX_Vpsraw_zmm_k1z_zmmm512_imm8),
        (Op::Shr, 4, true) => (VEX_Vpsrad_ymm_ymm_imm8, EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8),
        _ => return None,
    })
}

/// Comparison of integers in AVX2: equal, greater as signed numbers.
fn compare_avx2(bytes: u64) -> (Code, Code) {
    match bytes {
        1 => (VEX_Vpcmpeqb_ymm_ymm_ymmm256, VEX_Vpcmpgtb_ymm_ymm_ymmm256),
        2 => (VEX_Vpcmpeqw_ymm_ymm_ymmm256, VEX_Vpcmpgtw_ymm_ymm_ymmm256),
        4 => (VEX_Vpcmpeqd_ymm_ymm_ymmm256, VEX_Vpcmpgtd_ymm_ymm_ymmm256),
        _ => (VEX_Vpcmpeqq_ymm_ymm_ymmm256, VEX_Vpcmpgtq_ymm_ymm_ymmm256),
    }
}

/// Comparison of integers in AVX-512.
fn compare_avx512(bytes: u64, signed: bool) -> Code {
    match (bytes, signed) {
        (1, true) => EVEX_Vpcmpb_kr_k1_zmm_zmmm512_imm8,
        (1, false) => EVEX_Vpcmpub_kr_k1_zmm_zmmm512_imm8,
        (2, true) => EVEX_Vpcmpw_kr_k1_zmm_zmmm512_imm8,
        (2, false) => EVEX_Vpcmpuw_kr_k1_zmm_zmmm512_imm8,
        (4, true) => EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8,
        (4, false) => EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8,
        (_, true) => EVEX_Vpcmpq_kr_k1_zmm_zmmm512b64_imm8,
        (_, false) => EVEX_Vpcmpuq_kr_k1_zmm_zmmm512b64_imm8,
    }
}

fn is_commutative(op: Op) -> bool {
    matches!(op, Op::Add | Op::Mul | Op::Min | Op::Max | Op::And | Op::Or | Op::Xor | Op::Eq | Op::Ne)
}

impl<'a> Generator<'a> {
    /// An operation of which not all operands are constants.
    pub(super) fn operation(&mut self, op: Op, result: DType, args: &[Val], to: Option<Reg>) -> Result<Val, Refused> {
        let lanes = common_lanes(args);
        let a = args[0];
        let reg = match op {
            Op::Cast => return self.cast(a, result, to),
            Op::Bits => return Ok(Val { dtype: result, place: reread(a.place, result), ..a }),
            Op::Eq | Op::Ne | Op::Lt | Op::Le => return Ok(self.compare(op, a, args[1], lanes, to)),
            Op::And | Op::Or | Op::Xor | Op::Not if a.dtype == DType::Bool => {
                return self.logical(op, args, lanes, to);
            }
            Op::Select => return Ok(self.select(args, lanes, to)),
            Op::Fma => self.fused(args, to),
            Op::Shl | Op::Shr => self.shifted(op, a, args[1], to)?,
            Op::Neg | Op::Abs | Op::Sqrt | Op::Nearest | Op::Not => self.unary(op, a, to)?,
            _ => self.two(op, a, args[1], to)?,
        };
        Ok(Val { place: Place::Reg(reg), dtype: result, lanes, bytes: result.bytes() })
    }

    /// The register of a result.
    pub(super) fn target(&mut self, to: Option<Reg>) -> Reg {
        to.unwrap_or_else(|| self.vector())
    }

    /// `to = code(a, b)`, of which `b` may be memory with elements of so many bytes.
    pub(super) fn pair(&mut self, code: Code, a: Reg, b: Arg, bytes: u64, to: Option<Reg>) -> Reg {
        let to = self.target(to);
        let args = [self.full(to), self.full(a), b];
        self.emit(Inst::new(code, &args).folding(bytes));
        to
    }

    /// The same with registers.
    pub(super) fn both(&mut self, code: Code, a: Reg, b: Reg, bytes: u64) -> Reg {
        let b = self.full(b);
        self.pair(code, a, b, bytes, None)
    }

    fn two(&mut self, op: Op, a: Val, b: Val, to: Option<Reg>) -> Result<Reg, Refused> {
        let (mut a, mut b) = (a, b);
        let in_register = |v: &Val| matches!(v.place, Place::Reg(_));
        if is_commutative(op) && !in_register(&a) && in_register(&b) {
            (a, b) = (b, a);
        }
        let dtype = a.dtype;
        let bytes = dtype.bytes();
        if dtype.is_float() && matches!(op, Op::Min | Op::Max) {
            return Ok(match self.tier {
                Tier::Avx512 => self.minimum_or_maximum(op, a, b, to),
                Tier::Avx2 => self.minimum_or_maximum_of_two(op, a, b, to),
            });
        }
        if let Some((vex, evex)) = binary(op, dtype) {
            let first = self.reg(a);
            let second = self.operand(b, self.tier.bytes());
            // Logical instructions have elements of 4 bytes whatever the type.
            let bytes = if matches!(op, Op::And | Op::Or | Op::Xor) { bytes.max(4) } else { bytes };
            let folds = if matches!(op, Op::And | Op::Or | Op::Xor) && bytes == 8 { 0 } else { bytes };
            return Ok(self.pair(self.tier.pick(vex, evex), first, second, folds, to));
        }
        if dtype.is_int()
            && bytes == 8
            && let Some(code) = quads(op, dtype.is_signed())
        {
            let first = self.reg(a);
            if self.tier.is_512() {
                let second = self.operand(b, 64);
                return Ok(self.pair(code, first, second, 8, to));
            }
            let second = self.reg(b);
            return Ok(match op {
                Op::Mul => self.multiplied(first, second, to),
                _ => self.extreme(op, dtype.is_signed(), first, second, to),
            });
        }
        Err(Refused(format!("{} of {dtype}", op.name())))
    }

    /// The lesser or greater of floats in AVX-512, -0 below +0: the canonical NaN where either is NaN.
    fn minimum_or_maximum(&mut self, op: Op, a: Val, b: Val, to: Option<Reg>) -> Reg {
        let (dtype, bytes) = (a.dtype, a.dtype.bytes());
        let (a, b) = (self.reg(a), self.reg(b));
        let nan = self.constant_reg(Scalar::nan(dtype));
        let (range, compare, blend) = match bytes {
            4 => (
                EVEX_Vrangeps_zmm_k1z_zmm_zmmm512b32_imm8_sae,
                EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae,
                EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32,
            ),
            _ => (
                EVEX_Vrangepd_zmm_k1z_zmm_zmmm512b64_imm8_sae,
                EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae,
                EVEX_Vpblendmq_zmm_k1z_zmm_zmmm512b64,
            ),
        };
        // The sign is that of the result; where one is a NaN, the other is given.
        let kind = if op == Op::Max { 5 } else { 4 };
        let number = self.vector();
        let args = [self.full(number), self.full(a), self.full(b), Arg::Imm(kind)];
        self.emit(Inst::new(range, &args));
        let ordered = self.program.reg(Class::Mask);
        let args = [Arg::Reg(ordered, View::K), self.full(a), self.full(b), Arg::Imm(7)];
        self.emit(Inst::new(compare, &args));
        let to = self.target(to);
        let args = [self.full(to), self.full(nan), self.full(number)];
        self.emit(Inst::new(blend, &args).masked(ordered, false));
        to
    }

    /// The same in AVX2: of both instructions, each of which gives its second operand where one is NaN or both are zeros.
    fn minimum_or_maximum_of_two(&mut self, op: Op, a: Val, b: Val, to: Option<Reg>) -> Reg {
        let dtype = a.dtype;
        let [a, b] = [a, b].map(|v| Val { place: Place::Reg(self.reg(v)), ..v });
        let (m, k) = (self.float_extreme(op, a, b, None), self.float_extreme(op, b, a, None));
        let bits = |v: Val| Val { dtype: dtype.unsigned(), ..v };
        // Other bits only of zeros of two signs.
        let (join, _) = binary(if op == Op::Max { Op::And } else { Op::Or }, dtype.unsigned()).expect("of every type");
        let (first, second) = (self.reg(bits(m)), self.operand(bits(k), self.tier.bytes()));
        let both = self.pair(join, first, second, 0, None);
        let ordered = self.compare(Op::Eq, m, k, m.lanes, None);
        let (ordered, nan) = (self.reg(ordered), self.constant_reg(Scalar::nan(dtype)));
        self.blend(ordered, both, nan, to)
    }

    /// The low 64 bits of products, of three products of halves.
    fn multiplied(&mut self, a: Reg, b: Reg, to: Option<Reg>) -> Reg {
        let multiply = VEX_Vpmuludq_ymm_ymm_ymmm256;
        let low = self.both(multiply, a, b, 0);
        let a_high = self.by_number(VEX_Vpsrlq_ymm_ymm_imm8, a, 32);
        let b_high = self.by_number(VEX_Vpsrlq_ymm_ymm_imm8, b, 32);
        let first = self.both(multiply, a_high, b, 0);
        let second = self.both(multiply, a, b_high, 0);
        let crossed = self.both(VEX_Vpaddq_ymm_ymm_ymmm256, first, second, 0);
        let high = self.by_number(VEX_Vpsllq_ymm_ymm_imm8, crossed, 32);
        let high = self.full(high);
        self.pair(VEX_Vpaddq_ymm_ymm_ymmm256, low, high, 0, to)
    }

    /// The lesser or greater of 64-bit integers in AVX2.
    fn extreme(&mut self, op: Op, signed: bool, a: Reg, b: Reg, to: Option<Reg>) -> Reg {
        let (mut x, mut y) = (a, b);
        if !signed {
            let sign = self.splat(1 << 63, 8);
            x = self.both(VEX_Vpxor_ymm_ymm_ymmm256, a, sign, 0);
            y = self.both(VEX_Vpxor_ymm_ymm_ymmm256, b, sign, 0);
        }
        let greater = self.both(VEX_Vpcmpgtq_ymm_ymm_ymmm256, x, y, 0);
        let (no, yes) = if op == Op::Max { (b, a) } else { (a, b) };
        self.blend(greater, yes, no, to)
    }

    /// `mask ? yes : no` in AVX2.
    fn blend(&mut self, mask: Reg, yes: Reg, no: Reg, to: Option<Reg>) -> Reg {
        let to = self.target(to);
        let args = [self.full(to), self.full(no), self.full(yes), self.full(mask)];
        self.emit(Inst::new(VEX_Vpblendvb_ymm_ymm_ymmm256_ymm, &args));
        to
    }

    /// `code(a, number)`.
    pub(super) fn by_number(&mut self, code: Code, a: Reg, number: i64) -> Reg {
        let to = self.vector();
        let args = [self.full(to), self.full(a), Arg::Imm(number)];
        self.emit(Inst::new(code, &args));
        to
    }

    fn shifted(&mut self, op: Op, a: Val, amount: Val, to: Option<Reg>) -> Result<Reg, Refused> {
        let Place::Const(amount) = amount.place else { return Err(Refused("a shift by what varies".into())) };
        let (bytes, signed) = (a.dtype.bytes(), a.dtype.is_signed());
        let amount = amount.bits() as i64 & (8 * bytes as i64 - 1);
        let from = self.reg(a);
        let to = self.target(to);
        let args = [self.full(to), self.full(from), Arg::Imm(amount)];
        if let Some((vex, evex)) = shift(op, bytes, signed) {
            self.emit(Inst::new(self.tier.pick(vex, evex), &args));
            return Ok(to);
        }
        if bytes != 8 {
            return Err(Refused(format!("{} of {}", op.name(), a.dtype)));
        }
        if self.tier.is_512() {
            self.emit(Inst::new(EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8, &args));
            return Ok(to);
        }
        // Zeros come in from above; where the sign is set they become ones.
        let zero = self.splat(0, 8);
        let negative = self.both(VEX_Vpcmpgtq_ymm_ymm_ymmm256, zero, from, 0);
        let plain = self.by_number(VEX_Vpsrlq_ymm_ymm_imm8, from, amount);
        let ones = self.by_number(VEX_Vpsllq_ymm_ymm_imm8, negative, 64 - amount);
        let ones = self.full(ones);
        Ok(self.pair(VEX_Vpor_ymm_ymm_ymmm256, plain, ones, 0, Some(to)))
    }

    fn unary(&mut self, op: Op, a: Val, to: Option<Reg>) -> Result<Reg, Refused> {
        let (dtype, bytes) = (a.dtype, a.dtype.bytes());
        let all = self.tier.bytes();
        if dtype.is_float() {
            let sign = 1u64 << (8 * bytes - 1);
            let bitwise = |this: &mut Self, vex, evex, bits| {
                let from = this.reg(a);
                let bits = this.splat(bits, bytes);
                let bits = this.full(bits);
                // Broadcast of 8 bytes wants another form of the instruction.
                let fold = if bytes == 4 || !this.tier.is_512() { bytes } else { 0 };
                this.pair(this.tier.pick(vex, evex), from, bits, fold, to)
            };
            return match op {
                Op::Neg => Ok(bitwise(self, VEX_Vpxor_ymm_ymm_ymmm256, EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, sign)),
                Op::Abs => Ok(bitwise(self, VEX_Vpand_ymm_ymm_ymmm256, EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, sign - 1)),
                Op::Sqrt | Op::Nearest => {
                    let from = self.operand(a, all);
                    let to = self.target(to);
                    let (vex, evex, rounds) = match (op, bytes) {
                        (Op::Sqrt, 4) => (VEX_Vsqrtps_ymm_ymmm256, EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er, false),
                        (Op::Sqrt, _) => (VEX_Vsqrtpd_ymm_ymmm256, EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er, false),
                        (_, 4) => (VEX_Vroundps_ymm_ymmm256_imm8, EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae, true),
                        _ => (VEX_Vroundpd_ymm_ymmm256_imm8, EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae, true),
                    };
                    let code = self.tier.pick(vex, evex);
                    let (plain, rounding) = ([self.full(to), from], [self.full(to), from, Arg::Imm(0)]);
                    self.emit(Inst::new(code, if rounds { &rounding } else { &plain }));
                    Ok(to)
                }
                _ => Err(Refused(format!("{} of {dtype}", op.name()))),
            };
        }
        match op {
            Op::Neg => {
                let zero = self.splat(0, 8);
                let from = self.operand(a, all);
                let (vex, evex) = binary(Op::Sub, dtype).expect("a subtraction of every type");
                Ok(self.pair(self.tier.pick(vex, evex), zero, from, bytes, to))
            }
            Op::Not => {
                let from = self.reg(a);
                let ones = self.splat(u64::MAX, 4);
                let ones = self.full(ones);
                let code = self.tier.pick(VEX_Vpxor_ymm_ymm_ymmm256, EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32);
                Ok(self.pair(code, from, ones, 4, to))
            }
            Op::Abs if !dtype.is_signed() => Ok(self.reg(a)),
            Op::Abs if bytes == 8 && !self.tier.is_512() => {
                let from = self.reg(a);
                let zero = self.splat(0, 8);
                let sign = self.both(VEX_Vpcmpgtq_ymm_ymm_ymmm256, zero, from, 0);
                let flipped = self.both(VEX_Vpxor_ymm_ymm_ymmm256, from, sign, 0);
                let sign = self.full(sign);
                Ok(self.pair(VEX_Vpsubq_ymm_ymm_ymmm256, flipped, sign, 0, to))
            }
            Op::Abs => {
                let from = self.operand(a, all);
                let to = self.target(to);
                let (vex, evex) = match bytes {
                    1 => (VEX_Vpabsb_ymm_ymmm256, EVEX_Vpabsb_zmm_k1z_zmmm512),
                    2 => (VEX_Vpabsw_ymm_ymmm256, EVEX_Vpabsw_zmm_k1z_zmmm512),
                    4 => (VEX_Vpabsd_ymm_ymmm256, EVEX_Vpabsd_zmm_k1z_zmmm512b32),
                    _ => (EVEX_Vpabsq_zmm_k1z_zmmm512b64, EVEX_Vpabsq_zmm_k1z_zmmm512b64),
                };
                let args = [self.full(to), from];
                self.emit(Inst::new(self.tier.pick(vex, evex), &args));
                Ok(to)
            }
            _ => Err(Refused(format!("{} of {dtype}", op.name()))),
        }
    }

    /// `a * b + c`, rounded once.
    fn fused(&mut self, args: &[Val], to: Option<Reg>) -> Reg {
        let all = self.tier.bytes();
        let (mut a, mut b) = (args[0], args[1]);
        if matches!(a.place, Place::Mem(..) | Place::Const(_)) {
            (a, b) = (b, a);
        }
        let double = a.dtype == DType::F64;
        let a = self.reg(a);
        let c = self.operand(args[2], all);
        let b = match c {
            // One operand in memory is all an instruction takes.
            Arg::Mem(..) => Arg::Reg(self.reg(b), self.tier.view()),
            _ => self.operand(b, all),
        };
        let to = self.target(to);
        self.program.items.push(Item::Fma { to, a, b, c, double });
        to
    }

    fn compare(&mut self, op: Op, a: Val, b: Val, lanes: Lanes, to: Option<Reg>) -> Val {
        self.compared(op, false, a, b, lanes, to)
    }

    /// A comparison, or in AVX-512 its `negation`.
    fn compared(&mut self, op: Op, negation: bool, a: Val, b: Val, lanes: Lanes, to: Option<Reg>) -> Val {
        let (dtype, bytes) = (a.dtype, a.dtype.bytes());
        let (mut a, mut b) = (a, b);
        if is_commutative(op) && !matches!(a.place, Place::Reg(_)) {
            (a, b) = (b, a);
        }
        let first = self.reg(a);
        let second = self.operand(b, self.tier.bytes());
        let float = match op {
            Op::Eq => 0,
            Op::Ne => 4,
            // Quiet, false where one is NaN.
            Op::Lt => 0x11,
            _ => 0x12,
        };
        let int = match op {
            Op::Eq => 0,
            Op::Ne => 4,
            Op::Lt => 1,
            _ => 2,
        };
        let truth = |reg| Val { place: Place::Reg(reg), dtype: DType::Bool, lanes, bytes };
        if self.tier.is_512() {
            let to = to.filter(|&t| self.program.classes[t.0 as usize] == Class::Mask);
            let to = to.unwrap_or_else(|| self.program.reg(Class::Mask));
            let (code, number) = match dtype {
                DType::F32 => (EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae, float),
                DType::F64 => (EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae, float),
                _ => (compare_avx512(bytes, dtype.is_signed()), int),
            };
            // The third bit negates, also what is false of NaN.
            let number = if negation { number ^ 4 } else { number };
            let args = [Arg::Reg(to, View::K), self.full(first), second, Arg::Imm(number)];
            self.emit(Inst::new(code, &args).folding(bytes));
            return truth(to);
        }
        if dtype.is_float() {
            let to = self.target(to);
            let code = if bytes == 4 { VEX_Vcmpps_ymm_ymm_ymmm256_imm8 } else { VEX_Vcmppd_ymm_ymm_ymmm256_imm8 };
            let args = [self.full(to), self.full(first), second, Arg::Imm(float)];
            self.emit(Inst::new(code, &args).folding(bytes));
            return truth(to);
        }
        let (equal, greater) = compare_avx2(bytes);
        if matches!(op, Op::Eq | Op::Ne) {
            let is_equal = self.pair(equal, first, second, bytes, if op == Op::Eq { to } else { None });
            return truth(if op == Op::Eq { is_equal } else { self.inverted(is_equal, to) });
        }
        let second = match second {
            Arg::Reg(reg, _) => reg,
            _ => self.reg(b),
        };
        let (mut x, mut y) = (first, second);
        if !dtype.is_signed() {
            let sign = self.splat(1 << (8 * bytes - 1), bytes);
            x = self.both(VEX_Vpxor_ymm_ymm_ymmm256, first, sign, bytes);
            y = self.both(VEX_Vpxor_ymm_ymm_ymmm256, second, sign, bytes);
        }
        match op {
            Op::Lt => {
                let x = self.full(x);
                truth(self.pair(greater, y, x, 0, to))
            }
            _ => {
                let is_greater = self.both(greater, x, y, 0);
                truth(self.inverted(is_greater, to))
            }
        }
    }

    /// All bits inverted, in AVX2.
    fn inverted(&mut self, reg: Reg, to: Option<Reg>) -> Reg {
        let ones = self.splat(u64::MAX, 8);
        let ones = self.full(ones);
        self.pair(VEX_Vpxor_ymm_ymm_ymmm256, reg, ones, 8, to)
    }

    /// An operation on truth values.
    fn logical(&mut self, op: Op, args: &[Val], lanes: Lanes, to: Option<Reg>) -> Result<Val, Refused> {
        let bytes = args.iter().filter(|a| !matches!(a.place, Place::Const(_))).map(|a| a.bytes).max().unwrap_or(1);
        let truth = |reg| Val { place: Place::Reg(reg), dtype: DType::Bool, lanes, bytes };
        let regs: Vec<Reg> = args.iter().map(|&a| self.reg(a)).collect();
        if !self.tier.is_512() {
            if op == Op::Not {
                return Ok(truth(self.inverted(regs[0], to)));
            }
            let (vex, _) = binary(op, DType::U64).expect("a logical operation");
            let second = self.full(regs[1]);
            return Ok(truth(self.pair(vex, regs[0], second, 0, to)));
        }
        let code = match op {
            Op::And => VEX_Kandq_kr_kr_kr,
            Op::Or => VEX_Korq_kr_kr_kr,
            Op::Xor => VEX_Kxorq_kr_kr_kr,
            _ => VEX_Knotq_kr_kr,
        };
        let to = to.filter(|&t| self.program.classes[t.0 as usize] == Class::Mask);
        let to = to.unwrap_or_else(|| self.program.reg(Class::Mask));
        let mut all = vec![Arg::Reg(to, View::K)];
        all.extend(regs.iter().map(|&r| Arg::Reg(r, View::K)));
        self.emit(Inst::new(code, &all));
        Ok(truth(to))
    }

    /// `op(a, condition ? identity : b)` in AVX-512: the lanes where the condition holds keep `a`.
    pub(super) fn combined_where(
        &mut self,
        walk: &mut Walk<'a>,
        (op, dtype, args): (Op, DType, &[Expr]),
        to: Option<Reg>,
    ) -> Result<Option<Val>, Refused> {
        let [a, Expr::Op(Op::Select, _, arms)] = args else { return Ok(None) };
        let (Expr::Op(compare, _, compared), Expr::Const(kept), true) = (&arms[0], &arms[1], self.tier.is_512()) else {
            return Ok(None);
        };
        let comparison = matches!(compare, Op::Eq | Op::Ne | Op::Lt | Op::Le);
        let Some(code) = extreme_of(op, dtype).filter(|_| comparison && op.is_neutral(*kept)) else { return Ok(None) };
        let compared = compared.iter().map(|e| walk.expr(self, e, None, None)).collect::<Result<Vec<_>, _>>()?;
        if compared.iter().all(|v| matches!(v.place, Place::Const(_))) {
            return Ok(None);
        }
        let lanes = common_lanes(&compared);
        let condition = self.compared(*compare, true, compared[0], compared[1], lanes, None);
        let (a, b) = (walk.expr(self, a, None, None)?, walk.expr(self, &arms[2], None, None)?);
        let lanes = common_lanes(&[condition, a, b]);
        let condition = match condition.lanes {
            Lanes::Same if condition.bytes > dtype.bytes() => self.broadcast_truth(condition),
            _ => condition,
        };
        let (mask, first) = (self.reg(condition), self.reg(a));
        let second = self.operand(b, self.tier.bytes());
        let to = self.target(to);
        self.program.items.push(Item::Copy { to, from: first });
        let args = [self.full(to), self.full(to), second];
        self.emit(Inst::new(code, &args).first(First::Mod).masked(mask, false).folding(dtype.bytes()));
        Ok(Some(Val { place: Place::Reg(to), dtype, lanes, bytes: dtype.bytes() }))
    }

    /// `a < b ? a : b` or `a > b ? a : b`: the second where one is NaN or both are zeros, as the instructions have it.
    pub(super) fn float_extreme(&mut self, op: Op, a: Val, b: Val, to: Option<Reg>) -> Val {
        let (dtype, bytes, lanes) = (a.dtype, a.dtype.bytes(), common_lanes(&[a, b]));
        let (vex, evex) = match (op, bytes) {
            (Op::Min, 4) => (VEX_Vminps_ymm_ymm_ymmm256, EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae),
            (Op::Min, _) => (VEX_Vminpd_ymm_ymm_ymmm256, EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae),
            (_, 4) => (VEX_Vmaxps_ymm_ymm_ymmm256, EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae),
            _ => (VEX_Vmaxpd_ymm_ymm_ymmm256, EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae),
        };
        let first = self.reg(a);
        let second = self.operand(b, self.tier.bytes());
        let reg = self.pair(self.tier.pick(vex, evex), first, second, bytes, to);
        Val { place: Place::Reg(reg), dtype, lanes, bytes }
    }

    /// `condition ? yes : no`.
    fn select(&mut self, args: &[Val], lanes: Lanes, to: Option<Reg>) -> Val {
        let (mut condition, yes, no) = (args[0], args[1], args[2]);
        let (dtype, bytes) = (yes.dtype, yes.dtype.bytes());
        let val = |reg| Val { place: Place::Reg(reg), dtype, lanes, bytes };
        if let Place::Const(s) = condition.place {
            return if s.bits() != 0 { yes } else { no };
        }
        let is_zero = |v: Val| matches!(v.place, Place::Const(s) if s.bits() == 0);
        if !self.tier.is_512() {
            let mask = self.reg(condition);
            if is_zero(no) {
                let yes = self.operand(yes, 32);
                return val(self.pair(VEX_Vpand_ymm_ymm_ymmm256, mask, yes, bytes, to));
            }
            if is_zero(yes) {
                let no = self.operand(no, 32);
                return val(self.pair(VEX_Vpandn_ymm_ymm_ymmm256, mask, no, bytes, to));
            }
            let (yes, no) = (self.reg(yes), self.reg(no));
            return val(self.blend(mask, yes, no, to));
        }
        if condition.lanes == Lanes::Same && condition.bytes > bytes {
            condition = self.broadcast_truth(condition);
        }
        let mask = self.reg(condition);
        if is_zero(no) {
            let yes = self.operand(yes, 64);
            let to = self.target(to);
            let args = [self.full(to), yes];
            let code = masked_load(bytes);
            self.emit(Inst::new(code, &args).masked(mask, true));
            return val(to);
        }
        let no = self.reg(no);
        let yes = self.operand(yes, 64);
        let to = self.target(to);
        let code = match bytes {
            1 => EVEX_Vpblendmb_zmm_k1z_zmm_zmmm512,
            2 => EVEX_Vpblendmw_zmm_k1z_zmm_zmmm512,
            4 => EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32,
            _ => EVEX_Vpblendmq_zmm_k1z_zmm_zmmm512b64,
        };
        let args = [self.full(to), self.full(no), yes];
        self.emit(Inst::new(code, &args).masked(mask, false).folding(bytes));
        val(to)
    }

    /// The first lane's truth in all lanes.
    pub(super) fn broadcast_truth(&mut self, val: Val) -> Val {
        let from = self.reg(val);
        if !self.tier.is_512() {
            let whole = Val { place: Place::Reg(from), dtype: DType::U64, bytes: val.bytes, lanes: val.lanes };
            let whole = self.broadcast(whole);
            return Val { dtype: DType::Bool, ..whole };
        }
        let number = self.program.reg(Class::General);
        let to = self.program.reg(Class::Mask);
        let wide = Arg::Reg(number, View::R64);
        self.emit(Inst::new(VEX_Kmovq_r64_kr, &[wide, Arg::Reg(from, View::K)]));
        self.emit(Inst::new(And_rm64_imm32, &[wide, Arg::Imm(1)]).first(First::Mod));
        self.emit(Inst::new(Neg_rm64, &[wide]).first(First::Mod));
        self.emit(Inst::new(VEX_Kmovq_kr_r64, &[Arg::Reg(to, View::K), wide]));
        Val { place: Place::Reg(to), dtype: DType::Bool, lanes: Lanes::Same, bytes: 1 }
    }

    /// Whether lanes are not zero.
    pub(super) fn is_nonzero(&mut self, val: Val) -> Val {
        let zero = self.constant(Scalar::int(val.dtype, 0));
        self.compare(Op::Ne, val, zero, val.lanes, None)
    }

    /// Constant bytes, one vector long where `f` gives one for each place.
    pub(super) fn table(&mut self, f: impl Fn(usize) -> u8) -> Reg {
        let bytes = (0..self.tier.bytes() as usize).map(f).collect();
        self.program.constant(Constant::Bytes(bytes))
    }
}

/// A selection that is one instruction on floats, with its operands: `a < b ? a : b` as `min`, `a > b ? a : b` as `max`.
pub(super) fn lesser_or_greater(op: Op, args: &[Expr]) -> Option<(Op, &Expr, &Expr)> {
    let (Op::Select, [Expr::Op(Op::Lt, _, compared), yes, no]) = (op, args) else { return None };
    let [a, b] = compared.as_slice() else { return None };
    let float = matches!(a.dtype(), DType::F32 | DType::F64);
    match () {
        _ if float && yes == a && no == b => Some((Op::Min, a, b)),
        _ if float && yes == b && no == a => Some((Op::Max, b, a)),
        _ => None,
    }
}

/// The instruction for the lesser or greater of integers in AVX-512.
fn extreme_of(op: Op, dtype: DType) -> Option<Code> {
    if !dtype.is_int() || !matches!(op, Op::Min | Op::Max) {
        return None;
    }
    binary(op, dtype).map(|(_, evex)| evex).or_else(|| quads(op, dtype.is_signed()))
}

/// The lanes of what is made of all operands.
fn common_lanes(args: &[Val]) -> Lanes {
    let first = |v: &Val| if let Lanes::First(n) = v.lanes { Some(n) } else { None };
    args.iter().filter_map(first).min().map_or(Lanes::Same, Lanes::First)
}

/// A constant's bits as another type.
fn reread(place: Place, to: DType) -> Place {
    match place {
        Place::Const(s) => Place::Const(Scalar::from_bits(to, s.bits())),
        other => other,
    }
}
