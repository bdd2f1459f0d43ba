//! Conversions between f32 and bf16, whose bits are the upper half of an f32's.

use super::machine::code::{Arg, Class, Constant, Inst, Reg, View};
use super::machine::table::Opcode;
use super::{Generator, Val, ValuePlace};
use cranefold_ir::DType;

impl Generator<'_> {
    /// Converts from bf16. What was rounded to bf16 just before is still in lanes of an f32.
    pub(super) fn of_bf16(&mut self, a: Val, to: Option<Reg>) -> Val {
        let all = self.tier.bytes();
        if let ValuePlace::Reg(reg) = a.place
            && let Some(&rounded) = self.rounded.get(&reg)
        {
            let upper = self.splat(0xffff_0000, 4);
            let upper = self.full(upper);
            let value = self.pair(Opcode::Vpand, rounded, upper, to);
            return self.value(value, DType::F32, a.lanes);
        }
        if self.tier.is_512() {
            // Element n goes to the upper half of lane n, zeros to the lower.
            let from = self.reg(a);
            let places = self.table(|i| if i % 2 == 0 { (i / 4) as u8 } else { 0 });
            let upper = self.program.constant(Constant::Mask(0xaaaa_aaaa));
            let to = self.target(to);
            let args = [self.full(to), self.full(places), self.full(from)];
            self.emit(Inst::new(Opcode::Vpermw, &args).masked(upper, true));
            return self.value(to, DType::F32, a.lanes);
        }
        let from = self.operand(a, all / 2);
        let wide = self.vector();
        let args = [self.full(wide), from];
        self.emit(Inst::new(Opcode::Vpmovzxwd, &args));
        let to = self.target(to);
        let args = [self.full(to), self.full(wide), Arg::Imm(16)];
        self.emit(Inst::new(Opcode::Vpslld, &args));
        self.value(to, DType::F32, a.lanes)
    }

    /// Converts to bf16, to nearest even, in AVX-512: adds to the bits a half of the last place where that place is odd, and
    /// one less where it is even. A carry runs into the exponent, up to infinity, and leaves the canonical NaN what it is.
    pub(super) fn bf16_of(&mut self, a: Val, to: Option<Reg>) -> Val {
        let from = self.reg(a);
        let [last_place, one, less] = [1 << 16, 1, 0x7fff].map(|bits| self.splat(bits, 4));
        let x = self.vector();
        let x = self.unless_nan(from, DType::F32, x);
        let odd = self.program.reg(Class::Mask);
        let args = [Arg::Reg(odd, View::K), self.full(x), self.full(last_place)];
        self.emit(Inst::new(Opcode::Vptestmd, &args));
        let rounded = self.both(Opcode::Vpaddd, x, less);
        let args = [self.full(rounded), self.full(rounded), self.full(one)];
        self.emit(Inst::new(Opcode::Vpaddd, &args).masked(odd, false));
        // The upper half of lane n is element n.
        let places = self.table(|i| if i % 2 == 0 { (i + 1) as u8 % 32 } else { 0 });
        let result = self.target(to);
        let args = [self.full(result), self.full(places), self.full(rounded)];
        self.emit(Inst::new(Opcode::Vpermw, &args));
        if to.is_none() {
            self.rounded.insert(result, rounded);
        }
        self.value(result, DType::Bf16, a.lanes)
    }
}
