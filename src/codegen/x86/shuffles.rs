//! Whole vector loads, and shuffles of lanes.

use super::machine::code::{Arg, Constant, Inst, Item, Reg, masked_load};
use super::machine::table::Opcode;
use super::machine::tier::Tier;
use super::{ActiveLanes, Generator, Val, Walk};
use crate::codegen::address::Access;
use crate::codegen::emit::Shuffles;
use crate::transposes::PIECE_BYTES;
use crate::vectors::Vectors;

impl<'a> Shuffles<'a> for Generator<'a> {
    fn vectors(&self) -> Vectors {
        self.around.vectors
    }

    fn load_whole(&mut self, _: &Walk<'a>, from: Access<Reg>, [needed, known]: [u64; 2]) -> Val {
        let Access { dtype, pointer, offset_bytes: offset, .. } = from;
        let bytes = dtype.bytes();
        let to = self.vector();
        let has_masks = self.tier.is_512() || bytes >= 4;
        match if has_masks || (known * bytes).is_power_of_two() { known } else { needed } {
            lanes if (lanes * bytes).is_power_of_two() => self.load_bytes(to, pointer, offset, lanes * bytes),
            lanes if self.tier.is_512() => {
                let (mask, args) = (self.mask_of(0, lanes), [self.full(to), Arg::Mem(pointer, offset)]);
                self.emit(Inst::new(masked_load(bytes), &args).masked(mask, true));
            }
            lanes => {
                let ones = (0..32).map(|byte| if byte < lanes * bytes { 0xff } else { 0 }).collect();
                let mask = self.bytes_constant(ones);
                let args = [self.full(to), self.full(mask), Arg::Mem(pointer, offset)];
                self.emit(Inst::new(Opcode::Vpmaskmovd, &args));
            }
        }
        self.stays_in_order();
        self.value(to, dtype, ActiveLanes::First(known))
    }

    fn load_piece(&mut self, _: &Walk<'a>, from: Access<Reg>, skipped: u64, into: Option<(Val, u64)>) -> Val {
        debug_assert_eq!(skipped, 0, "each run of columns has a whole piece");
        let Access { dtype, pointer, offset_bytes: offset, .. } = from;
        let to = self.vector();
        match into {
            None => self.load_bytes(to, pointer, offset, PIECE_BYTES),
            Some((vector, group)) => {
                let vector = self.reg(vector);
                let args = [self.full(to), self.full(vector), Arg::Mem(pointer, offset), Arg::Imm(group as i64)];
                self.emit(Inst::new(Opcode::Vinserti128, &args));
            }
        }
        self.stays_in_order();
        self.value(to, dtype, ActiveLanes::First(PIECE_BYTES / dtype.bytes()))
    }

    fn interleaved(&mut self, [a, b]: [Val; 2]) -> [Val; 2] {
        let [from, other] = [a, b].map(|v| self.reg(v));
        unpacking(a.bytes).map(|opcode| {
            let to = self.both(opcode, from, other);
            self.value(to, a.dtype, a.lanes)
        })
    }

    fn evens_and_odds(&mut self, [a, b]: [Val; 2], width: u64) -> [Val; 2] {
        let [first, second] = [a, b].map(|v| self.reg(v));
        self.even_and_odd(first, second, a.bytes, width).map(|reg| self.value(reg, a.dtype, a.lanes))
    }

    fn by_turns(&mut self, [a, b]: [Val; 2], width: u64) -> [Val; 2] {
        let [first, second] = [a, b].map(|v| self.reg(v));
        self.taken_by_turns([first, second], a.bytes, width)
            .map(|reg| self.value(reg, a.dtype, ActiveLanes::First(width)))
    }

    fn blended(&mut self, [a, b]: [Val; 2], second: &[bool]) -> Val {
        let [no, yes] = [a, b].map(|v| self.reg(v));
        let reg = self.by_mask(no, yes, second, a.bytes);
        self.value(reg, a.dtype, a.lanes)
    }

    fn chosen(&mut self, [a, b]: [Val; 2], order: &[u64]) -> Val {
        let width = order.len() as u64;
        if !self.tier.is_512() {
            let lanes: Vec<u64> = order.iter().map(|lane| lane % width).collect();
            let both = [a, b].map(|vector| self.permuted(vector, &lanes));
            let second: Vec<bool> = order.iter().map(|&lane| lane >= width).collect();
            return self.blended(both, &second);
        }
        let reg = [a, b].map(|v| self.reg(v));
        let reg = self.picked_of_two(reg, order, a.bytes);
        self.value(reg, a.dtype, ActiveLanes::First(width))
    }

    fn permuted(&mut self, vector: Val, order: &[u64]) -> Val {
        let from = self.reg(vector);
        let reg = self.in_order(from, order, vector.bytes);
        self.value(reg, vector.dtype, vector.lanes)
    }
}

/// The instructions that interleave the lower and the upper halves of each 16 bytes of two vectors.
fn unpacking(bytes: u64) -> [Opcode; 2] {
    match bytes {
        1 => [Opcode::Vpunpcklbw, Opcode::Vpunpckhbw],
        2 => [Opcode::Vpunpcklwd, Opcode::Vpunpckhwd],
        4 => [Opcode::Vpunpckldq, Opcode::Vpunpckhdq],
        _ => [Opcode::Vpunpcklqdq, Opcode::Vpunpckhqdq],
    }
}

impl Generator<'_> {
    /// Bytes of the smallest elements that an instruction permutes across a whole vector.
    fn least_permuted(&self) -> u64 {
        match self.tier {
            Tier::Avx2 => 4,
            Tier::Avx512 if self.around.vectors.byte_permutes => 1,
            Tier::Avx512 => 2,
        }
    }

    /// The even and the odd elements, of at most half a vector, of two adjacent vectors.
    pub(super) fn even_and_odd(&mut self, a: Reg, b: Reg, bytes: u64, width: u64) -> [Reg; 2] {
        if width * bytes == 16 {
            // Each vector gets its even elements, then its odd ones.
            let order: Vec<u64> = (0..width).step_by(2).chain((1..width).step_by(2)).collect();
            let (a, b) = (self.in_order(a, &order, bytes), self.in_order(b, &order, bytes));
            return [Opcode::Vpunpcklqdq, Opcode::Vpunpckhqdq].map(|opcode| self.both(opcode, a, b));
        }
        if bytes >= 16 {
            // The groups of 16 bytes of each vector stay in order.
            let [even, odd] = match (self.tier, bytes) {
                (Tier::Avx2, _) => [0x20, 0x31],
                (Tier::Avx512, 16) => [0x88, 0xdd],
                (Tier::Avx512, _) => [0x44, 0xee],
            };
            let code = Opcode::Groups;
            return [even, odd].map(|groups| {
                let to = self.vector();
                let args = [self.full(to), self.full(a), self.full(b), Arg::Imm(groups)];
                self.emit(Inst::new(code, &args));
                to
            });
        }
        if bytes < self.least_permuted() {
            // Each 16 bytes are ordered in this way; then their halves are separated.
            let in_group = 16 / bytes;
            let order: Vec<u64> = (0..in_group).step_by(2).chain((1..in_group).step_by(2)).collect();
            let (a, b) = (self.in_order(a, &order, bytes), self.in_order(b, &order, bytes));
            return self.even_and_odd(a, b, 8, self.tier.bytes() / 8);
        }
        [0, 1].map(|odd: u64| {
            if self.tier.is_512() {
                let order: Vec<u64> = (0..width).map(|lane| 2 * lane + odd).collect();
                return self.picked_of_two([a, b], &order, bytes);
            }
            // The halves of the vectors come first: those of `a` and `b` side by side.
            let halves = match bytes {
                4 => {
                    let to = self.vector();
                    let args = [self.full(to), self.full(a), self.full(b), Arg::Imm(0x88 + 0x55 * odd as i64)];
                    self.emit(Inst::new(Opcode::Vshufps, &args));
                    to
                }
                _ => {
                    let codes = [Opcode::Vpunpcklqdq, Opcode::Vpunpckhqdq];
                    self.both(codes[odd as usize], a, b)
                }
            };
            self.by_number(Opcode::VpermqBy, halves, 0xd8)
        })
    }

    /// The elements of two vectors by turns, in two vectors.
    fn taken_by_turns(&mut self, [a, b]: [Reg; 2], bytes: u64, width: u64) -> [Reg; 2] {
        let is_group = width * bytes == 16;
        if self.tier.is_512() && !is_group && bytes >= self.least_permuted() {
            return [0, width / 2].map(|from| {
                let order: Vec<u64> = (0..width).map(|lane| from + lane / 2 + lane % 2 * width).collect();
                self.picked_of_two([a, b], &order, bytes)
            });
        }
        let halves = unpacking(bytes).map(|opcode| self.both(opcode, a, b));
        if is_group {
            return halves;
        }
        // Each 16 bytes of the first stand before the same 16 bytes of the second.
        if self.tier.is_512() {
            return [[0, 1, 8, 9, 2, 3, 10, 11], [4, 5, 12, 13, 6, 7, 14, 15]]
                .map(|order| self.picked_of_two(halves, &order, 8));
        }
        [0x20, 0x31].map(|groups| {
            let to = self.vector();
            let args = [self.full(to), self.full(halves[0]), self.full(halves[1]), Arg::Imm(groups)];
            self.emit(Inst::new(Opcode::Groups, &args));
            to
        })
    }

    /// The lanes of two vectors of 512 bits in this order, those of the second numbered on.
    fn picked_of_two(&mut self, [a, b]: [Reg; 2], order: &[u64], bytes: u64) -> Reg {
        let code = match bytes {
            1 => Opcode::Vpermt2b,
            2 => Opcode::Vpermt2w,
            4 => Opcode::Vpermt2d,
            _ => Opcode::Vpermt2q,
        };
        let order = self.order_constant(order, bytes);
        let to = self.vector();
        self.program.items.push(Item::Copy { to, from: a });
        let args = [self.full(to), self.full(order), self.full(b)];
        self.emit(Inst::new(code, &args));
        to
    }

    /// The lanes of `yes` where `moves` is true, else those of `no`.
    fn by_mask(&mut self, no: Reg, yes: Reg, moves: &[bool], bytes: u64) -> Reg {
        let to = self.vector();
        let mask = |lanes: &[bool]| lanes.iter().rev().fold(0u64, |bits, &yes| bits << 1 | u64::from(yes));
        if self.tier.is_512() {
            let code = match bytes {
                1 => Opcode::Vpblendmb,
                2 => Opcode::Vpblendmw,
                4 => Opcode::Vpblendmd,
                _ => Opcode::Vpblendmq,
            };
            let mask = self.program.constant(Constant::Mask(mask(moves)));
            let args = [self.full(to), self.full(no), self.full(yes)];
            self.emit(Inst::new(code, &args).masked(mask, false));
            return to;
        }
        let (no, yes) = (self.full(no), self.full(yes));
        let inst = match bytes {
            1 => {
                let mask = (0..32).map(|lane| if moves[lane % 16] { 0xff } else { 0 }).collect();
                let mask = self.bytes_constant(mask);
                Inst::new(Opcode::Vpblendvb, &[self.full(to), no, yes, self.full(mask)])
            }
            2 => Inst::new(Opcode::Vpblendw, &[self.full(to), no, yes, Arg::Imm(mask(moves) as i64)]),
            _ => {
                let fours: Vec<bool> = moves.iter().flat_map(|&m| vec![m; bytes as usize / 4]).collect();
                let mask = Arg::Imm(mask(&fours) as i64);
                Inst::new(Opcode::Vpblendd, &[self.full(to), no, yes, mask])
            }
        };
        self.emit(inst);
        to
    }

    /// The lanes of `from` in this order.
    pub(super) fn in_order(&mut self, from: Reg, order: &[u64], bytes: u64) -> Reg {
        let tier = self.tier;
        if order.len() as u64 * bytes == 16 {
            let byte = |at: u64| (order[(at / bytes) as usize % order.len()] * bytes + at % bytes) as u8;
            let order = self.bytes_constant((0..tier.bytes()).map(byte).collect());
            return self.both(Opcode::Vpshufb, from, order);
        }
        if bytes < self.least_permuted() && tier.is_512() {
            return self.bytes_in_order(from, order);
        }
        let code = match (bytes, tier) {
            (8, Tier::Avx2) => {
                let number = order.iter().rev().fold(0, |number, &lane| number << 2 | lane as i64);
                return self.by_number(Opcode::VpermqBy, from, number);
            }
            (1, _) => Opcode::Vpermb,
            (2, _) => Opcode::Vpermw,
            (4, _) => Opcode::Vpermd,
            _ => Opcode::Vpermq,
        };
        let order = self.order_constant(order, bytes);
        self.both(code, order, from)
    }

    /// The bytes of `from` in this order: of the pairs of bytes in which they are, those for even places and those for odd
    /// ones. 512 bits only, where no instruction permutes bytes.
    fn bytes_in_order(&mut self, from: Reg, order: &[u64]) -> Reg {
        let [even, odd] = [0, 1].map(|odd| {
            let wanted: Vec<u64> = order.iter().copied().skip(odd).step_by(2).collect();
            let pairs: Vec<u64> = wanted.iter().map(|byte| byte / 2).collect();
            let pairs = self.order_constant(&pairs, 2);
            let there = self.both(Opcode::Vpermw, pairs, from);
            // The other byte of each pair becomes 0.
            let of_pair = |(n, byte): (usize, &u64)| {
                let mut bytes = [0x80; 2];
                bytes[odd] = (2 * n % 16) as u8 + (byte % 2) as u8;
                bytes
            };
            let picked = self.bytes_constant(wanted.iter().enumerate().flat_map(of_pair).collect());
            self.both(Opcode::Vpshufb, there, picked)
        });
        self.both(Opcode::Vpor, even, odd)
    }

    /// A constant with the numbers of lanes, one in each lane.
    fn order_constant(&mut self, order: &[u64], bytes: u64) -> Reg {
        self.bytes_constant(order.iter().flat_map(|n| n.to_le_bytes().into_iter().take(bytes as usize)).collect())
    }
}
