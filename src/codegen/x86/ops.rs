//! The table of operations: each with its instructions in AVX2 and AVX-512.

use super::machine::code::masked_load;
use super::machine::code::{Arg, Class, Constant, Inst, Item, Reg, View};
use super::machine::table::Opcode;
use super::machine::tier::Tier;
use super::{ActiveLanes, Generator, Refused, Val, ValuePlace, Walk};
use crate::codegen::emit::Values;
use cranefold_ir::{DType, Expr, Op, Scalar};

/// The instruction for two vectors of elements of a type; AVX2 may lack it.
fn binary(op: Op, dtype: DType) -> Option<Opcode> {
    let signed = dtype.is_signed();
    Some(match (op, dtype) {
        (Op::Add, DType::F32) => Opcode::Vaddps,
        (Op::Add, DType::F64) => Opcode::Vaddpd,
        (Op::Sub, DType::F32) => Opcode::Vsubps,
        (Op::Sub, DType::F64) => Opcode::Vsubpd,
        (Op::Mul, DType::F32) => Opcode::Vmulps,
        (Op::Mul, DType::F64) => Opcode::Vmulpd,
        (Op::Div, DType::F32) => Opcode::Vdivps,
        (Op::Div, DType::F64) => Opcode::Vdivpd,
        (Op::Scale | Op::ScaleDown, DType::F32) => Opcode::Vscalefps,
        (Op::Scale | Op::ScaleDown, DType::F64) => Opcode::Vscalefpd,
        (Op::And, _) => Opcode::Vpand,
        (Op::Or, _) => Opcode::Vpor,
        (Op::Xor, _) => Opcode::Vpxor,
        _ => match (op, dtype.bytes(), signed) {
            (Op::Add, 1, _) => Opcode::Vpaddb,
            (Op::Add, 2, _) => Opcode::Vpaddw,
            (Op::Add, 4, _) => Opcode::Vpaddd,
            (Op::Add, 8, _) => Opcode::Vpaddq,
            (Op::Sub, 1, _) => Opcode::Vpsubb,
            (Op::Sub, 2, _) => Opcode::Vpsubw,
            (Op::Sub, 4, _) => Opcode::Vpsubd,
            (Op::Sub, 8, _) => Opcode::Vpsubq,
            (Op::Mul, 2, _) => Opcode::Vpmullw,
            (Op::Mul, 4, _) => Opcode::Vpmulld,
            (Op::Mul, 8, _) => Opcode::Vpmullq,
            (Op::MulHigh, 2, true) => Opcode::Vpmulhw,
            (Op::Min, 1, true) => Opcode::Vpminsb,
            (Op::Min, 2, true) => Opcode::Vpminsw,
            (Op::Min, 4, true) => Opcode::Vpminsd,
            (Op::Min, 8, true) => Opcode::Vpminsq,
            (Op::Max, 1, true) => Opcode::Vpmaxsb,
            (Op::Max, 2, true) => Opcode::Vpmaxsw,
            (Op::Max, 4, true) => Opcode::Vpmaxsd,
            (Op::Max, 8, true) => Opcode::Vpmaxsq,
            (Op::Min, 1, false) => Opcode::Vpminub,
            (Op::Min, 2, false) => Opcode::Vpminuw,
            (Op::Min, 4, false) => Opcode::Vpminud,
            (Op::Min, 8, false) => Opcode::Vpminuq,
            (Op::Max, 1, false) => Opcode::Vpmaxub,
            (Op::Max, 2, false) => Opcode::Vpmaxuw,
            (Op::Max, 4, false) => Opcode::Vpmaxud,
            (Op::Max, 8, false) => Opcode::Vpmaxuq,
            _ => return None,
        },
    })
}

/// The instruction that shifts by a constant: left, right, or right with the sign.
fn shift(op: Op, bytes: u64, signed: bool) -> Option<Opcode> {
    Some(match (op, bytes, signed) {
        (Op::Shl, 2, _) => Opcode::Vpsllw,
        (Op::Shl, 4, _) => Opcode::Vpslld,
        (Op::Shl, 8, _) => Opcode::Vpsllq,
        (Op::Shr, 2, false) => Opcode::Vpsrlw,
        (Op::Shr, 4, false) => Opcode::Vpsrld,
        (Op::Shr, 8, false) => Opcode::Vpsrlq,
        (Op::Shr, 2, true) => Opcode::Vpsraw,
        (Op::Shr, 4, true) => Opcode::Vpsrad,
        (Op::Shr, 8, true) => Opcode::Vpsraq,
        _ => return None,
    })
}

/// The instructions that compare integers in AVX2: equal, and greater as signed numbers.
fn compare_avx2(bytes: u64) -> (Opcode, Opcode) {
    match bytes {
        1 => (Opcode::Vpcmpeqb, Opcode::Vpcmpgtb),
        2 => (Opcode::Vpcmpeqw, Opcode::Vpcmpgtw),
        4 => (Opcode::Vpcmpeqd, Opcode::Vpcmpgtd),
        _ => (Opcode::Vpcmpeqq, Opcode::Vpcmpgtq),
    }
}

/// The instruction that compares integers in AVX-512.
fn compare_avx512(bytes: u64, signed: bool) -> Opcode {
    match (bytes, signed) {
        (1, true) => Opcode::Vpcmpb,
        (1, false) => Opcode::Vpcmpub,
        (2, true) => Opcode::Vpcmpw,
        (2, false) => Opcode::Vpcmpuw,
        (4, true) => Opcode::Vpcmpd,
        (4, false) => Opcode::Vpcmpud,
        (_, true) => Opcode::Vpcmpq,
        (_, false) => Opcode::Vpcmpuq,
    }
}

fn is_commutative(op: Op) -> bool {
    matches!(op, Op::Add | Op::Mul | Op::MulHigh | Op::Min | Op::Max | Op::And | Op::Or | Op::Xor | Op::Eq | Op::Ne)
}

impl<'a> Generator<'a> {
    /// The value of an operation whose operands are not all constants.
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
            Op::DivBy => self.quotient(args),
            Op::Shl | Op::Shr => self.shifted(op, a, args[1], to)?,
            Op::Neg | Op::Abs | Op::Sqrt | Op::Nearest | Op::Not => self.unary(op, a, to)?,
            _ => self.two(op, a, args[1], to)?,
        };
        Ok(Val { place: ValuePlace::Reg(reg), dtype: result, lanes, bytes: result.bytes() })
    }

    /// The register of a result: `to` if given, else a new one.
    pub(super) fn target(&mut self, to: Option<Reg>) -> Reg {
        to.unwrap_or_else(|| self.vector())
    }

    /// `to = opcode(a, b)`.
    pub(super) fn pair(&mut self, opcode: Opcode, a: Reg, b: Arg, to: Option<Reg>) -> Reg {
        let to = self.target(to);
        let args = [self.full(to), self.full(a), b];
        self.emit(Inst::new(opcode, &args));
        to
    }

    /// `to = opcode(a, b)` on registers.
    pub(super) fn both(&mut self, opcode: Opcode, a: Reg, b: Reg) -> Reg {
        let b = self.full(b);
        self.pair(opcode, a, b, None)
    }

    fn two(&mut self, op: Op, a: Val, b: Val, to: Option<Reg>) -> Result<Reg, Refused> {
        let (mut a, mut b) = (a, b);
        let in_register = |v: &Val| matches!(v.place, ValuePlace::Reg(_));
        if is_commutative(op) && !in_register(&a) && in_register(&b) {
            (a, b) = (b, a);
        }
        let dtype = a.dtype;
        if dtype.is_float() && matches!(op, Op::Min | Op::Max) {
            return Ok(match self.tier {
                Tier::Avx512 => self.minimum_or_maximum(op, a, b, to),
                Tier::Avx2 => self.minimum_or_maximum_of_two(op, a, b, to),
            });
        }
        let opcode = binary(op, dtype).ok_or_else(|| Refused(format!("{} of {dtype}", op.name())))?;
        let first = self.reg(a);
        if self.tier.has(opcode) {
            let second = self.operand(b, self.tier.bytes());
            return Ok(self.pair(opcode, first, second, to));
        }
        let second = self.reg(b);
        Ok(match op {
            Op::Mul => self.multiplied(first, second, to),
            _ => self.extreme(op, dtype.is_signed(), first, second, to),
        })
    }

    /// The minimum or maximum of floats in AVX-512, with -0 below +0, and the canonical NaN if either is NaN.
    fn minimum_or_maximum(&mut self, op: Op, a: Val, b: Val, to: Option<Reg>) -> Reg {
        let (dtype, bytes) = (a.dtype, a.dtype.bytes());
        let (a, b) = (self.reg(a), self.reg(b));
        let nan = self.constant_reg(Scalar::nan(dtype));
        let (range, compare, blend) = match bytes {
            4 => (Opcode::Vrangeps, Opcode::Vcmpps, Opcode::Vpblendmd),
            _ => (Opcode::Vrangepd, Opcode::Vcmppd, Opcode::Vpblendmq),
        };
        // The sign is that of the result; if one operand is NaN, the other is given.
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

    /// The same in AVX2, by the instruction in both orders: it gives its second operand if one is NaN or both are
    /// zeros.
    fn minimum_or_maximum_of_two(&mut self, op: Op, a: Val, b: Val, to: Option<Reg>) -> Reg {
        let dtype = a.dtype;
        let [a, b] = [a, b].map(|v| Val { place: ValuePlace::Reg(self.reg(v)), ..v });
        let (m, k) = (self.float_extreme(op, a, b, None), self.float_extreme(op, b, a, None));
        let bits = |v: Val| Val { dtype: dtype.unsigned(), ..v };
        // The bits differ only for zeros of two signs.
        let join = binary(if op == Op::Max { Op::And } else { Op::Or }, dtype.unsigned()).expect("of every type");
        let (first, second) = (self.reg(bits(m)), self.operand(bits(k), self.tier.bytes()));
        let both = self.pair(join, first, second, None);
        let ordered = self.compare(Op::Eq, m, k, m.lanes, None);
        let (ordered, nan) = (self.reg(ordered), self.constant_reg(Scalar::nan(dtype)));
        self.blend(ordered, both, nan, to)
    }

    /// The low 64 bits of products, by three products of halves.
    fn multiplied(&mut self, a: Reg, b: Reg, to: Option<Reg>) -> Reg {
        let multiply = Opcode::Vpmuludq;
        let low = self.both(multiply, a, b);
        let a_high = self.by_number(Opcode::Vpsrlq, a, 32);
        let b_high = self.by_number(Opcode::Vpsrlq, b, 32);
        let first = self.both(multiply, a_high, b);
        let second = self.both(multiply, a, b_high);
        let crossed = self.both(Opcode::Vpaddq, first, second);
        let high = self.by_number(Opcode::Vpsllq, crossed, 32);
        let high = self.full(high);
        self.pair(Opcode::Vpaddq, low, high, to)
    }

    /// The minimum or maximum of 64-bit integers in AVX2.
    fn extreme(&mut self, op: Op, signed: bool, a: Reg, b: Reg, to: Option<Reg>) -> Reg {
        let (mut x, mut y) = (a, b);
        if !signed {
            let sign = self.splat(1 << 63, 8);
            x = self.both(Opcode::Vpxor, a, sign);
            y = self.both(Opcode::Vpxor, b, sign);
        }
        let greater = self.both(Opcode::Vpcmpgtq, x, y);
        let (no, yes) = if op == Op::Max { (b, a) } else { (a, b) };
        self.blend(greater, yes, no, to)
    }

    /// `mask ? yes : no` in AVX2.
    fn blend(&mut self, mask: Reg, yes: Reg, no: Reg, to: Option<Reg>) -> Reg {
        let to = self.target(to);
        let args = [self.full(to), self.full(no), self.full(yes), self.full(mask)];
        self.emit(Inst::new(Opcode::Vpblendvb, &args));
        to
    }

    /// `opcode(a, number)`.
    pub(super) fn by_number(&mut self, opcode: Opcode, a: Reg, number: i64) -> Reg {
        let to = self.vector();
        let args = [self.full(to), self.full(a), Arg::Imm(number)];
        self.emit(Inst::new(opcode, &args));
        to
    }

    fn shifted(&mut self, op: Op, a: Val, amount: Val, to: Option<Reg>) -> Result<Reg, Refused> {
        let ValuePlace::Const(amount) = amount.place else { return Err(Refused("a shift by what varies".into())) };
        let (bytes, signed) = (a.dtype.bytes(), a.dtype.is_signed());
        let amount = amount.bits() as i64 & (8 * bytes as i64 - 1);
        let from = self.reg(a);
        let to = self.target(to);
        let args = [self.full(to), self.full(from), Arg::Imm(amount)];
        let refused = || Refused(format!("{} of {}", op.name(), a.dtype));
        let opcode = shift(op, bytes, signed).ok_or_else(refused)?;
        if self.tier.has(opcode) {
            self.emit(Inst::new(opcode, &args));
            return Ok(to);
        }
        // The shift brings in zeros, which become ones if the sign is set.
        let zero = self.splat(0, 8);
        let negative = self.both(Opcode::Vpcmpgtq, zero, from);
        let plain = self.by_number(Opcode::Vpsrlq, from, amount);
        let ones = self.by_number(Opcode::Vpsllq, negative, 64 - amount);
        let ones = self.full(ones);
        Ok(self.pair(Opcode::Vpor, plain, ones, Some(to)))
    }

    fn unary(&mut self, op: Op, a: Val, to: Option<Reg>) -> Result<Reg, Refused> {
        let (dtype, bytes) = (a.dtype, a.dtype.bytes());
        let all = self.tier.bytes();
        if dtype.is_float() {
            let sign = 1u64 << (8 * bytes - 1);
            let bitwise = |this: &mut Self, opcode, bits| {
                let from = this.reg(a);
                let bits = this.splat(bits, bytes);
                let bits = this.full(bits);
                this.pair(opcode, from, bits, to)
            };
            return match op {
                Op::Neg => Ok(bitwise(self, Opcode::Vpxor, sign)),
                Op::Abs => Ok(bitwise(self, Opcode::Vpand, sign - 1)),
                Op::Sqrt | Op::Nearest => {
                    let from = self.operand(a, all);
                    let to = self.target(to);
                    let (opcode, rounds) = match (op, bytes) {
                        (Op::Sqrt, 4) => (Opcode::Vsqrtps, false),
                        (Op::Sqrt, _) => (Opcode::Vsqrtpd, false),
                        (_, 4) => (Opcode::Vroundps, true),
                        _ => (Opcode::Vroundpd, true),
                    };
                    let (plain, rounding) = ([self.full(to), from], [self.full(to), from, Arg::Imm(0)]);
                    self.emit(Inst::new(opcode, if rounds { &rounding } else { &plain }));
                    Ok(to)
                }
                _ => Err(Refused(format!("{} of {dtype}", op.name()))),
            };
        }
        match op {
            Op::Neg => {
                let zero = self.splat(0, 8);
                let from = self.operand(a, all);
                let opcode = binary(Op::Sub, dtype).expect("a subtraction of every type");
                Ok(self.pair(opcode, zero, from, to))
            }
            Op::Not => {
                let from = self.reg(a);
                let ones = self.splat(u64::MAX, 4);
                let ones = self.full(ones);
                Ok(self.pair(Opcode::Vpxor, from, ones, to))
            }
            Op::Abs if !dtype.is_signed() => Ok(self.reg(a)),
            Op::Abs if bytes == 8 && !self.tier.is_512() => {
                let from = self.reg(a);
                let zero = self.splat(0, 8);
                let sign = self.both(Opcode::Vpcmpgtq, zero, from);
                let flipped = self.both(Opcode::Vpxor, from, sign);
                let sign = self.full(sign);
                Ok(self.pair(Opcode::Vpsubq, flipped, sign, to))
            }
            Op::Abs => {
                let from = self.operand(a, all);
                let to = self.target(to);
                let opcode = match bytes {
                    1 => Opcode::Vpabsb,
                    2 => Opcode::Vpabsw,
                    4 => Opcode::Vpabsd,
                    _ => Opcode::Vpabsq,
                };
                let args = [self.full(to), from];
                self.emit(Inst::new(opcode, &args));
                Ok(to)
            }
            _ => Err(Refused(format!("{} of {dtype}", op.name()))),
        }
    }

    /// `a / b`, where the third operand is 1 / b or a NaN.
    fn quotient(&mut self, args: &[Val]) -> Reg {
        let [a, b, y] = [args[0], args[1], args[2]].map(|val| self.reg(val));
        let to = self.vector();
        self.program.items.push(Item::Quotient { to, a, b, y, double: args[0].dtype == DType::F64 });
        to
    }

    /// `a * b + c`, rounded once.
    fn fused(&mut self, args: &[Val], to: Option<Reg>) -> Reg {
        let all = self.tier.bytes();
        let (mut a, mut b) = (args[0], args[1]);
        if matches!(a.place, ValuePlace::Mem(..) | ValuePlace::Const(_)) {
            (a, b) = (b, a);
        }
        let double = a.dtype == DType::F64;
        let a = self.reg(a);
        let c = self.operand(args[2], all);
        let b = match c {
            // An instruction takes only one operand in memory.
            Arg::Mem(..) => Arg::Reg(self.reg(b), self.tier.view()),
            _ => self.operand(b, all),
        };
        let to = self.target(to);
        self.program.items.push(Item::Fma { to, a, b, c, double });
        to
    }

    fn compare(&mut self, op: Op, a: Val, b: Val, lanes: ActiveLanes, to: Option<Reg>) -> Val {
        self.compared(op, false, a, b, lanes, to)
    }

    /// A comparison, or in AVX-512 its negation.
    pub(super) fn compared(
        &mut self,
        op: Op,
        negation: bool,
        a: Val,
        b: Val,
        lanes: ActiveLanes,
        to: Option<Reg>,
    ) -> Val {
        let (dtype, bytes) = (a.dtype, a.dtype.bytes());
        let (mut a, mut b) = (a, b);
        if is_commutative(op) && !matches!(a.place, ValuePlace::Reg(_)) {
            (a, b) = (b, a);
        }
        let first = self.reg(a);
        let second = self.operand(b, self.tier.bytes());
        let float = match op {
            Op::Eq => 0,
            Op::Ne => 4,
            // The comparison is quiet, and false if one operand is NaN.
            Op::Lt => 0x11,
            _ => 0x12,
        };
        let int = match op {
            Op::Eq => 0,
            Op::Ne => 4,
            Op::Lt => 1,
            _ => 2,
        };
        let truth = |reg| Val { place: ValuePlace::Reg(reg), dtype: DType::Bool, lanes, bytes };
        if self.tier.is_512() {
            let to = to.filter(|&t| self.program.classes[t.0 as usize] == Class::Mask);
            let to = to.unwrap_or_else(|| self.program.reg(Class::Mask));
            let (code, number) = match dtype {
                DType::F32 => (Opcode::Vcmpps, float),
                DType::F64 => (Opcode::Vcmppd, float),
                _ => (compare_avx512(bytes, dtype.is_signed()), int),
            };
            // The third bit negates the result, also for NaN.
            let number = if negation { number ^ 4 } else { number };
            let args = [Arg::Reg(to, View::K), self.full(first), second, Arg::Imm(number)];
            self.emit(Inst::new(code, &args));
            return truth(to);
        }
        if dtype.is_float() {
            let to = self.target(to);
            let code = if bytes == 4 { Opcode::Vcmpps } else { Opcode::Vcmppd };
            let args = [self.full(to), self.full(first), second, Arg::Imm(float)];
            self.emit(Inst::new(code, &args));
            return truth(to);
        }
        let (equal, greater) = compare_avx2(bytes);
        if matches!(op, Op::Eq | Op::Ne) {
            let is_equal = self.pair(equal, first, second, if op == Op::Eq { to } else { None });
            return truth(if op == Op::Eq { is_equal } else { self.inverted(is_equal, to) });
        }
        let second = match second {
            Arg::Reg(reg, _) => reg,
            _ => self.reg(b),
        };
        let (mut x, mut y) = (first, second);
        if !dtype.is_signed() {
            let sign = self.splat(1 << (8 * bytes - 1), bytes);
            x = self.both(Opcode::Vpxor, first, sign);
            y = self.both(Opcode::Vpxor, second, sign);
        }
        match op {
            Op::Lt => {
                let x = self.full(x);
                truth(self.pair(greater, y, x, to))
            }
            _ => {
                let is_greater = self.both(greater, x, y);
                truth(self.inverted(is_greater, to))
            }
        }
    }

    /// Inverts all bits, in AVX2.
    fn inverted(&mut self, reg: Reg, to: Option<Reg>) -> Reg {
        let ones = self.splat(u64::MAX, 8);
        let ones = self.full(ones);
        self.pair(Opcode::Vpxor, reg, ones, to)
    }

    /// An operation on truth values.
    fn logical(&mut self, op: Op, args: &[Val], lanes: ActiveLanes, to: Option<Reg>) -> Result<Val, Refused> {
        let bytes =
            args.iter().filter(|a| !matches!(a.place, ValuePlace::Const(_))).map(|a| a.bytes).max().unwrap_or(1);
        let truth = |reg| Val { place: ValuePlace::Reg(reg), dtype: DType::Bool, lanes, bytes };
        let regs: Vec<Reg> = args.iter().map(|&a| self.reg(a)).collect();
        if !self.tier.is_512() {
            if op == Op::Not {
                return Ok(truth(self.inverted(regs[0], to)));
            }
            let opcode = binary(op, DType::U64).expect("a logical operation");
            let second = self.full(regs[1]);
            return Ok(truth(self.pair(opcode, regs[0], second, to)));
        }
        let code = match op {
            Op::And => Opcode::Kandq,
            Op::Or => Opcode::Korq,
            Op::Xor => Opcode::Kxorq,
            _ => Opcode::Knotq,
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
        if compared.iter().all(|v| matches!(v.place, ValuePlace::Const(_))) {
            return Ok(None);
        }
        let lanes = common_lanes(&compared);
        let condition = self.compared(*compare, true, compared[0], compared[1], lanes, None);
        let (a, b) = (walk.expr(self, a, None, None)?, walk.expr(self, &arms[2], None, None)?);
        let lanes = common_lanes(&[condition, a, b]);
        let condition = match condition.lanes {
            ActiveLanes::Same if condition.bytes > dtype.bytes() => self.broadcast_truth(condition),
            _ => condition,
        };
        let (mask, first) = (self.reg(condition), self.reg(a));
        let second = self.operand(b, self.tier.bytes());
        let to = self.target(to);
        self.program.items.push(Item::Copy { to, from: first });
        let args = [self.full(to), self.full(to), second];
        self.emit(Inst::new(code, &args).masked(mask, false));
        Ok(Some(Val { place: ValuePlace::Reg(to), dtype, lanes, bytes: dtype.bytes() }))
    }

    /// `a < b ? 0 : scale(value, n)` in AVX-512: the lanes where the condition holds are not multiplied.
    pub(super) fn scaled_where(
        &mut self,
        walk: &mut Walk<'a>,
        (op, args): (Op, &[Expr]),
        params: Option<&[Val]>,
        to: Option<Reg>,
    ) -> Result<Option<Val>, Refused> {
        let (Op::Select, [Expr::Op(Op::Lt, _, compared), Expr::Const(zero), product]) = (op, args) else {
            return Ok(None);
        };
        let Expr::Op(scale @ (Op::Scale | Op::ScaleDown), dtype, factors) = product else { return Ok(None) };
        if zero.bits() != 0 || !self.tier.is_512() || compared[0].dtype() != *dtype {
            return Ok(None);
        }
        let mut all = Vec::with_capacity(4);
        for e in compared.iter().chain(factors) {
            all.push(walk.expr(self, e, params, None)?);
        }
        let [a, b, value, n] = all[..] else { unreachable!("two operations of two operands") };
        let lanes = common_lanes(&all);
        let is_computed = self.compared(Op::Lt, true, a, b, lanes, None);
        let mask = self.reg(is_computed);
        let first = self.reg(value);
        let second = self.operand(n, self.tier.bytes());
        let to = self.target(to);
        let code = binary(*scale, *dtype).expect("an instruction of AVX-512");
        let args = [self.full(to), self.full(first), second];
        self.emit(Inst::new(code, &args).masked(mask, true));
        Ok(Some(Val { place: ValuePlace::Reg(to), dtype: *dtype, lanes, bytes: dtype.bytes() }))
    }

    /// `a < b ? a : b` or `a > b ? a : b`: the second operand if one is NaN or both are zeros, like the instructions.
    pub(super) fn float_extreme(&mut self, op: Op, a: Val, b: Val, to: Option<Reg>) -> Val {
        let (dtype, bytes, lanes) = (a.dtype, a.dtype.bytes(), common_lanes(&[a, b]));
        let opcode = match (op, bytes) {
            (Op::Min, 4) => Opcode::Vminps,
            (Op::Min, _) => Opcode::Vminpd,
            (_, 4) => Opcode::Vmaxps,
            _ => Opcode::Vmaxpd,
        };
        let first = self.reg(a);
        let second = self.operand(b, self.tier.bytes());
        let reg = self.pair(opcode, first, second, to);
        Val { place: ValuePlace::Reg(reg), dtype, lanes, bytes }
    }

    /// `condition ? yes : no`.
    fn select(&mut self, args: &[Val], lanes: ActiveLanes, to: Option<Reg>) -> Val {
        let (mut condition, yes, no) = (args[0], args[1], args[2]);
        let (dtype, bytes) = (yes.dtype, yes.dtype.bytes());
        let val = |reg| Val { place: ValuePlace::Reg(reg), dtype, lanes, bytes };
        if let ValuePlace::Const(s) = condition.place {
            return if s.bits() != 0 { yes } else { no };
        }
        let is_zero = |v: Val| matches!(v.place, ValuePlace::Const(s) if s.bits() == 0);
        if !self.tier.is_512() {
            let mask = self.truth_of_size(condition, bytes);
            if is_zero(no) {
                let yes = self.operand(yes, 32);
                return val(self.pair(Opcode::Vpand, mask, yes, to));
            }
            if is_zero(yes) {
                let no = self.operand(no, 32);
                return val(self.pair(Opcode::Vpandn, mask, no, to));
            }
            let (yes, no) = (self.reg(yes), self.reg(no));
            return val(self.blend(mask, yes, no, to));
        }
        if condition.lanes == ActiveLanes::Same && condition.bytes > bytes {
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
            1 => Opcode::Vpblendmb,
            2 => Opcode::Vpblendmw,
            4 => Opcode::Vpblendmd,
            _ => Opcode::Vpblendmq,
        };
        let args = [self.full(to), self.full(no), yes];
        self.emit(Inst::new(code, &args).masked(mask, false));
        val(to)
    }

    /// The truth of the first lane in all lanes.
    pub(super) fn broadcast_truth(&mut self, val: Val) -> Val {
        let from = self.reg(val);
        if !self.tier.is_512() {
            let whole = Val { place: ValuePlace::Reg(from), dtype: DType::U64, bytes: val.bytes, lanes: val.lanes };
            let whole = self.broadcast(whole);
            return Val { dtype: DType::Bool, ..whole };
        }
        let number = self.program.reg(Class::General);
        let to = self.program.reg(Class::Mask);
        let wide = Arg::Reg(number, View::R64);
        self.emit(Inst::new(Opcode::KmovqTo, &[wide, Arg::Reg(from, View::K)]));
        self.emit(Inst::new(Opcode::AndBy, &[wide, Arg::Imm(1)]));
        self.emit(Inst::new(Opcode::Neg, &[wide]));
        self.emit(Inst::new(Opcode::KmovqOf, &[Arg::Reg(to, View::K), wide]));
        Val { place: ValuePlace::Reg(to), dtype: DType::Bool, lanes: ActiveLanes::Same, bytes: 1 }
    }

    /// The truth values of lanes: true where they are not zero.
    pub(super) fn is_nonzero(&mut self, val: Val) -> Val {
        let zero = self.constant(Scalar::int(val.dtype, 0));
        self.compare(Op::Ne, val, zero, val.lanes, None)
    }

    /// Constant bytes, one vector long, by their places.
    pub(super) fn table(&mut self, f: impl Fn(usize) -> u8) -> Reg {
        let bytes = (0..self.tier.bytes() as usize).map(f).collect();
        self.program.constant(Constant::Bytes(bytes))
    }
}

/// The `min` or `max` of floats that a selection is, with its operands: `a < b ? a : b` is `min`, `a > b ? a : b` is
/// `max`; `None` for other selections.
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

/// The instruction for the minimum or maximum of integers in AVX-512.
fn extreme_of(op: Op, dtype: DType) -> Option<Opcode> {
    if !dtype.is_int() || !matches!(op, Op::Min | Op::Max) {
        return None;
    }
    binary(op, dtype)
}

/// The lanes of an operation's result: those that all operands have.
fn common_lanes(args: &[Val]) -> ActiveLanes {
    let first = |v: &Val| if let ActiveLanes::First(n) = v.lanes { Some(n) } else { None };
    args.iter().filter_map(first).min().map_or(ActiveLanes::Same, ActiveLanes::First)
}

/// A constant's bits as another type.
fn reread(place: ValuePlace, to: DType) -> ValuePlace {
    match place {
        ValuePlace::Const(s) => ValuePlace::Const(Scalar::from_bits(to, s.bits())),
        other => other,
    }
}
