//! Conversions of lanes.

use super::integers::Rounding;
use super::machine::code::masked_load;
use super::machine::code::{Arg, Inst, Reg, View};
use super::machine::table::Opcode;
use super::{ActiveLanes, Generator, Refused, Val, ValuePlace};
use cranefold_ir::DType;

/// The instruction that converts between floats, or from integers to floats, if there is one.
fn convert(from: DType, to: DType) -> Option<Opcode> {
    use DType::{F16, F32, F64, I32, I64, U32, U64};
    Some(match (from, to) {
        (F32, F64) => Opcode::Vcvtps2pd,
        (F64, F32) => Opcode::Vcvtpd2ps,
        (F16, F32) => Opcode::Vcvtph2ps,
        (I32, F32) => Opcode::Vcvtdq2ps,
        (I32, F64) => Opcode::Vcvtdq2pd,
        (U32, F32) => Opcode::Vcvtudq2ps,
        (U32, F64) => Opcode::Vcvtudq2pd,
        (I64, F32) => Opcode::Vcvtqq2ps,
        (I64, F64) => Opcode::Vcvtqq2pd,
        (U64, F32) => Opcode::Vcvtuqq2ps,
        (U64, F64) => Opcode::Vcvtuqq2pd,
        _ => return None,
    })
}

/// The instruction that widens integers.
fn widen(from: u64, to: u64, signed: bool) -> Opcode {
    match (from, to, signed) {
        (1, 2, true) => Opcode::Vpmovsxbw,
        (1, 4, true) => Opcode::Vpmovsxbd,
        (1, _, true) => Opcode::Vpmovsxbq,
        (2, 4, true) => Opcode::Vpmovsxwd,
        (2, _, true) => Opcode::Vpmovsxwq,
        (_, _, true) => Opcode::Vpmovsxdq,
        (1, 2, false) => Opcode::Vpmovzxbw,
        (1, 4, false) => Opcode::Vpmovzxbd,
        (1, _, false) => Opcode::Vpmovzxbq,
        (2, 4, false) => Opcode::Vpmovzxwd,
        (2, _, false) => Opcode::Vpmovzxwq,
        (_, _, false) => Opcode::Vpmovzxdq,
    }
}

/// The instruction of AVX-512 that narrows integers, and the bytes of its result.
fn narrow(from: u64, to: u64) -> (Opcode, u64) {
    match (from, to) {
        (8, 4) => (Opcode::Vpmovqd, 32),
        (8, 2) => (Opcode::Vpmovqw, 16),
        (8, _) => (Opcode::Vpmovqb, 16),
        (4, 2) => (Opcode::Vpmovdw, 32),
        (4, _) => (Opcode::Vpmovdb, 16),
        _ => (Opcode::Vpmovwb, 32),
    }
}

impl Generator<'_> {
    /// Converts lanes.
    pub(super) fn cast(&mut self, a: Val, result: DType, to: Option<Reg>) -> Result<Val, Refused> {
        let from = a.dtype;
        let value = match (from, result) {
            (DType::Bool, _) => self.number_of_truth(a, result, to)?,
            _ if from.is_int() && result.is_int() => self.resized(a, result, to),
            _ if from.is_float() && result.is_int() => self.integer_of(a, result, Rounding::Zero, to)?,
            (DType::F32, DType::F16) => self.half_of(a, to),
            (DType::F16 | DType::Bf16, DType::F64) => {
                let wide = self.cast(a, DType::F32, None)?;
                return self.cast(wide, result, to);
            }
            (DType::Bf16, DType::F32) => self.of_bf16(a, to),
            (DType::F32, DType::Bf16) if self.tier.is_512() => self.bf16_of(a, to),
            _ => match convert(from, result) {
                Some(opcode) if self.tier.has(opcode) => self.converted(opcode, a, result, to),
                Some(_) => return Err(Refused(format!("{result} of {from}"))),
                None if from.is_int() && from.bytes() < 4 => {
                    let wide = self.resized(a, DType::I32, None);
                    return self.cast(wide, result, to);
                }
                None => return Err(Refused(format!("{result} of {from}"))),
            },
        };
        // A narrower result fills only a part of the register.
        Ok(if a.lanes == ActiveLanes::Same && result.bytes() < from.bytes() { self.broadcast(value) } else { value })
    }

    /// Converts floats, rounded to nearest, to integers.
    pub(super) fn rounded(&mut self, a: Val, result: DType, to: Option<Reg>) -> Result<Val, Refused> {
        let from = a.dtype;
        let value = self.integer_of(a, result, Rounding::Nearest, to)?;
        Ok(if a.lanes == ActiveLanes::Same && result.bytes() < from.bytes() { self.broadcast(value) } else { value })
    }

    pub(super) fn value(&self, reg: Reg, dtype: DType, lanes: ActiveLanes) -> Val {
        Val { place: ValuePlace::Reg(reg), dtype, lanes, bytes: dtype.bytes() }
    }

    /// A conversion by one instruction.
    pub(super) fn converted(&mut self, opcode: Opcode, a: Val, result: DType, to: Option<Reg>) -> Val {
        let all = self.tier.bytes();
        let (from_bytes, to_bytes) = (a.dtype.bytes(), result.bytes());
        let lanes = all / from_bytes.max(to_bytes);
        let from = self.operand(a, lanes * from_bytes);
        let to = self.target(to);
        let args = [Arg::Reg(to, self.tier.view_of(lanes * to_bytes)), from];
        self.emit(Inst::new(opcode, &args));
        self.value(to, result, a.lanes)
    }

    /// Converts integers to another size, modulo 2^bits.
    pub(super) fn resized(&mut self, a: Val, result: DType, to: Option<Reg>) -> Val {
        let (from_bytes, to_bytes) = (a.dtype.bytes(), result.bytes());
        if from_bytes == to_bytes {
            return Val { dtype: result, ..a };
        }
        if from_bytes < to_bytes {
            return self.converted(widen(from_bytes, to_bytes, a.dtype.is_signed()), a, result, to);
        }
        let from = self.reg(a);
        let to = self.target(to);
        if self.tier.is_512() {
            let (code, bytes) = narrow(from_bytes, to_bytes);
            let args = [Arg::Reg(to, self.tier.view_of(bytes)), self.full(from)];
            self.emit(Inst::new(code, &args));
        } else {
            self.narrowed(from, from_bytes as usize, to_bytes as usize, to);
        }
        self.value(to, result, a.lanes)
    }

    /// Narrows integers in AVX2: packs the elements of each half, and then the halves.
    fn narrowed(&mut self, from: Reg, wide: usize, small: usize, to: Reg) {
        let in_half = 16 / wide * small;
        let gather = self.table(|i| {
            let i = i % 16;
            if i < in_half { (i / small * wide + i % small) as u8 } else { 0x80 }
        });
        let gather = self.full(gather);
        let parts = self.pair(Opcode::Vpshufb, from, gather, None);
        let upper = self.group(parts, 1);
        // The upper half's elements follow those of the lower half.
        let args = [Arg::Reg(to, View::Xmm), Arg::Reg(parts, View::Xmm), Arg::Reg(upper, View::Xmm)];
        match in_half {
            8 => self.emit(Inst::new(Opcode::VpunpcklqdqXmm, &args)),
            4 => self.emit(Inst::new(Opcode::VpunpckldqXmm, &args)),
            _ => self.emit(Inst::new(Opcode::VpunpcklwdXmm, &args)),
        }
    }

    /// Converts to f16, to nearest even.
    fn half_of(&mut self, a: Val, to: Option<Reg>) -> Val {
        let from = self.reg(a);
        let to = self.target(to);
        let code = Opcode::Vcvtps2ph;
        let view = self.tier.pick_view(View::Xmm, View::Ymm);
        let args = [Arg::Reg(to, view), self.full(from), Arg::Imm(0)];
        self.emit(Inst::new(code, &args));
        self.value(to, DType::F16, a.lanes)
    }

    /// The truth in lanes of so many bytes, in AVX2.
    pub(super) fn truth_of_size(&mut self, truth: Val, bytes: u64) -> Reg {
        let integer = |bytes| match bytes {
            1 => DType::I8,
            2 => DType::I16,
            4 => DType::I32,
            _ => DType::I64,
        };
        // All bits of a value outside lanes are the same.
        if truth.lanes == ActiveLanes::Same || truth.bytes == bytes {
            return self.reg(truth);
        }
        let lanes = Val { dtype: integer(truth.bytes), ..truth };
        let resized = self.resized(lanes, integer(bytes), None);
        self.reg(resized)
    }

    /// Converts a truth value to 1 or 0.
    fn number_of_truth(&mut self, a: Val, result: DType, to: Option<Reg>) -> Result<Val, Refused> {
        if result.is_float() {
            return Err(Refused(format!("{result} of bool")));
        }
        if self.tier.is_512() {
            let a = if a.lanes == ActiveLanes::Same && a.bytes > result.bytes() { self.broadcast_truth(a) } else { a };
            let mask = self.reg(a);
            let one = self.splat(1, result.bytes());
            let to = self.target(to);
            let args = [self.full(to), self.full(one)];
            self.emit(Inst::new(masked_load(result.bytes()), &args).masked(mask, true));
            return Ok(self.value(to, result, a.lanes));
        }
        let mask = self.reg(a);
        let as_int = |bytes| match bytes {
            1 => DType::U8,
            2 => DType::U16,
            4 => DType::U32,
            _ => DType::U64,
        };
        let one = self.splat(1, a.bytes);
        let one = self.full(one);
        let number = self.pair(Opcode::Vpand, mask, one, None);
        let number = self.value(number, as_int(a.bytes), a.lanes);
        let value = self.resized(number, result, to);
        Ok(if a.lanes == ActiveLanes::Same && result.bytes() < a.bytes { self.broadcast(value) } else { value })
    }
}
