//! Sums of neighbouring bytes.
//!
//! A lane of 4 bytes sums the 4 bytes of memory under it, a lane of 8 bytes the 8 under it, so that a vector of lanes
//! is one vector of bytes in memory. Products with ones are the bytes themselves:
//!
//! | lane | bytes | instructions | why it is exact |
//! | --- | --- | --- | --- |
//! | 4 | signed | `vpdpbusd acc, ones, x` | products and sums in 32 bits |
//! | 4 | unsigned | `vpdpbusd acc, x, ones` | the same |
//! | 4 | either, without VNNI | `vpmaddubsw`, `vpmaddwd`, `vpaddd` | two bytes are below 2^10 |
//! | 8 | unsigned | `vpsadbw x, 0`, `vpaddq` | eight bytes are below 2^11 |
//! | 8 | signed | `vpxor x, 128`, `vpsadbw`, `vpsubq 1024`, `vpaddq` | x ^ 128 is x + 128 without sign |
//! | 8 | either, in a loop, with VNNI | `vpdpbusd narrow, ..`; after the loop `vpmuldq`, `vpsraq`, `vpaddq` twice | so many iterations cannot overflow 32 bits |

use super::machine::code::{Arg, Inst, Item, Reg};
use super::machine::table::Opcode;
use super::{ActiveLanes, Generator, Refused, Val, ValuePlace, Walk};
use crate::codegen::address::Base;
use crate::codegen::storage::Vector;
use cranefold_ir::analysis::NeighbourSum;
use cranefold_ir::{DType, Expr, Extent, Loop, LoopVar, Op, Stmt};

/// The most iterations of a loop whose sums of bytes fit 32 bits: each adds at most 4 * 255.
const MOST_NARROW: u64 = (1 << 31) / (4 * 256);

/// The iterations from which on narrow sums gain more than widening them costs: for signed and for unsigned bytes (rows
/// of 4 iterations: 128 and 110 GB/s, without narrow sums 87 and 129).
const FEWEST_NARROW: [u64; 2] = [4, 8];

/// A sum of neighbouring bytes in each lane.
pub(super) struct SumOfBytes<'e> {
    /// The value to which the sums are added, if any.
    plus: Option<&'e Expr>,
    sum: NeighbourSum<'e>,
}

impl<'a> Generator<'a> {
    /// An expression as a sum of the bytes under a vector of lanes; `None` if it is anything else.
    pub(super) fn sum_of_bytes<'e>(&self, lane: Option<(LoopVar, u64)>, e: &'e Expr) -> Option<SumOfBytes<'e>> {
        let Expr::Op(Op::Add, _, args) = e else { return None };
        self.bytes_of(lane, e)
            .or_else(|| self.bytes_of(lane, &args[1]).map(|sum| SumOfBytes { plus: Some(&args[0]), ..sum }))
    }

    fn bytes_of<'e>(&self, lane: Option<(LoopVar, u64)>, e: &'e Expr) -> Option<SumOfBytes<'e>> {
        let (var, lanes) = lane?;
        let sum = NeighbourSum::of(e).filter(|sum| sum.fills_lanes(var))?;
        (lanes * sum.dtype.bytes() == self.tier.bytes()).then_some(SumOfBytes { plus: None, sum })
    }

    pub(super) fn add_bytes(&mut self, walk: &mut Walk<'a>, sum: SumOfBytes, to: Option<Reg>) -> Result<Val, Refused> {
        let SumOfBytes { plus, sum: NeighbourSum { buf, from, dtype, first } } = sum;
        let lanes = self.tier.bytes() / dtype.bytes();
        let plus = plus.map(|e| walk.expr(self, e, None, None)).transpose()?;
        let (pointer, offset) = walk.address(self, Base::Buf(buf), first);
        let (place, lanes) = (ValuePlace::Mem(pointer, offset), ActiveLanes::First(lanes));
        let bytes = Val { place, dtype: from, lanes: ActiveLanes::First(self.tier.bytes()), bytes: 1 };
        let done = |reg| Val { place: ValuePlace::Reg(reg), dtype, lanes, bytes: dtype.bytes() };
        if dtype.bytes() == 4 && self.around.vectors.dot && self.tier.is_512() {
            return Ok(done(self.dot_with_ones(bytes, plus, to)));
        }
        if let Some(Val { place: ValuePlace::Reg(wide), .. }) = plus
            && let Some(&narrow) = self.narrow.get(&wide)
        {
            let so_far = Val { place: ValuePlace::Reg(narrow), dtype: DType::I32, lanes: ActiveLanes::Same, bytes: 4 };
            self.dot_with_ones(bytes, Some(so_far), Some(narrow));
            return Ok(done(wide));
        }
        let sums = match dtype.bytes() {
            4 => self.sums_of_four(bytes),
            _ => self.sums_of_eight(bytes),
        };
        match plus {
            Some(plus) => walk.op(self, Op::Add, dtype, &[plus, done(sums)], to),
            None => Ok(done(sums)),
        }
    }

    /// Adds the sums of the bytes, in place, to `plus`.
    fn dot_with_ones(&mut self, bytes: Val, plus: Option<Val>, to: Option<Reg>) -> Reg {
        let plus = match plus {
            Some(plus) => self.reg(plus),
            None => self.splat(0, 8),
        };
        let sum = self.target(to);
        if sum != plus {
            self.program.items.push(Item::Copy { to: sum, from: plus });
        }
        let (unsigned, signed) = self.with_ones(bytes);
        let args = [self.full(sum), self.full(unsigned), signed];
        self.emit(Inst::new(Opcode::Vpdpbusd, &args));
        sum
    }

    /// Begins to sum bytes in 32-bit lanes if the loop only sums them into 64-bit lanes: sets the narrow sums to 0.
    pub(super) fn start_narrow_sums(&mut self, walk: &mut Walk<'a>, l: &Loop) {
        let Extent::Const(extent) = l.extent else { return };
        if !self.around.vectors.dot || !self.tier.is_512() || extent > MOST_NARROW {
            return;
        }
        let sums: Option<Vec<Reg>> = l.body.iter().map(|s| self.wide_sum(walk, s, extent)).collect();
        for wide in sums.unwrap_or_default() {
            let (narrow, zero) = (self.vector(), self.splat(0, 8));
            self.program.items.push(Item::Copy { to: narrow, from: zero });
            self.narrow.insert(wide, narrow);
        }
    }

    /// The register of 64-bit lanes to which a statement adds bytes; `None` if it does more, or for too few iterations.
    fn wide_sum(&self, walk: &mut Walk<'a>, stmt: &Stmt, extent: u64) -> Option<Reg> {
        let Stmt::For(lanes) = stmt else { return None };
        let (vector @ Vector { outer: None, .. }, [Stmt::Set { acc, index, value }]) = Vector::of(lanes)? else {
            return None;
        };
        walk.vector = Some(vector);
        let sum = self.sum_of_bytes(walk.lane(), value);
        let part = walk.part(*acc, index).filter(|part| part.at == 0 && part.lanes.unwrap_or(1) == part.cell.lanes);
        walk.vector = None;
        let (sum, part) = (sum?, part?);
        let adds = matches!(sum.plus, Some(Expr::Read(a, _, at)) if a == acc && at == index);
        let wide = walk.registers.get(&(*acc, part.cell)).copied();
        let fewest = FEWEST_NARROW[usize::from(!sum.sum.from.is_signed())];
        wide.filter(|_| adds && sum.sum.dtype.bytes() == 8 && extent >= fewest)
    }

    /// Adds both 32-bit sums in each lane to the 64-bit sum of that lane.
    pub(super) fn end_narrow_sums(&mut self) {
        let mut sums: Vec<(Reg, Reg)> = self.narrow.drain().collect();
        sums.sort();
        for (wide, narrow) in sums {
            let one = self.splat(1, 8);
            let lower = self.both(Opcode::Vpmuldq, narrow, one);
            let upper = self.by_number(Opcode::Vpsraq, narrow, 32);
            let both = self.both(Opcode::Vpaddq, lower, upper);
            let both = self.full(both);
            self.pair(Opcode::Vpaddq, wide, both, Some(wide));
        }
    }

    /// The unsigned and the signed operand whose products are the bytes: one is the bytes, the other ones.
    fn with_ones(&mut self, bytes: Val) -> (Reg, Arg) {
        let ones = self.splat(1, 1);
        if bytes.dtype.is_signed() {
            return (ones, self.operand(bytes, self.tier.bytes()));
        }
        (self.reg(bytes), self.full(ones))
    }

    fn sums_of_four(&mut self, bytes: Val) -> Reg {
        let (unsigned, signed) = self.with_ones(bytes);
        let pairs = Opcode::Vpmaddubsw;
        let pairs = self.pair(pairs, unsigned, signed, None);
        let ones = self.splat(1, 2);
        let fours = Opcode::Vpmaddwd;
        self.both(fours, pairs, ones)
    }

    fn sums_of_eight(&mut self, bytes: Val) -> Reg {
        let differences = Opcode::Vpsadbw;
        let zero = self.splat(0, 8);
        let memory = self.operand(bytes, self.tier.bytes());
        if !bytes.dtype.is_signed() {
            return self.pair(differences, zero, memory, None);
        }
        let sign = self.splat(0x80, 1);
        let flip = Opcode::Vpxor;
        let unsigned = self.pair(flip, sign, memory, None);
        let sums = self.both(differences, unsigned, zero);
        let excess = self.splat(8 * 128, 8);
        let subtract = Opcode::Vpsubq;
        self.both(subtract, sums, excess)
    }
}
