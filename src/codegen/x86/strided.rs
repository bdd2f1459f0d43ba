//! Lanes that lie apart in memory by a few elements: several outputs in a vector, or a view with holes.
//!
//! ```text
//! for i0 in 0..16 lanes { a0[i0] = x0[3*i0 + 48*i2] }
//! for i0 in 0..16 lanes { a0[i0 + 16] = x0[3*i0 + 48*i2 + 1] }
//! for i0 in 0..16 lanes { a0[i0 + 32] = x0[3*i0 + 48*i2 + 2] }
//! ```
//!
//! Loads of one body that interleave like these are a *group*. Its span is loaded once, in whole vectors; what lies
//! behind its last element is left out by a mask, unless another load of the body lies behind it. With W lanes in a
//! vector, element `p` of the span is lane `p mod W` of vector `p / W`, and every lane of the result for start `c`
//! is an element `p` with `p mod stride = c`. The stride goes factor by factor:
//!
//! - An even one: each pair of vectors becomes its even and its odd elements, which are spans of half the stride.
//! - An odd one: `p mod W` is another one for each element of a result, so that every lane of it is in that lane of
//!   some vector already. In lane `q` it is vector `(c - q) / W` modulo the stride: vectors that rotate from lane to
//!   lane. So lanes are rotated among the vectors, by one, by two and by four as the bits of `q / W` say, each time by
//!   blends, and one permutation of each result ends it.

use super::machine::code::masked_load;
use super::machine::code::{Arg, Constant, Inst, Item, Reg};
use super::machine::table::Opcode;
use super::machine::tier::Tier;
use super::{Generator, each_expr};
use crate::codegen::address::Access;
use crate::codegen::emit::Numbers;
use cranefold_ir::{BufId, BufferRole, DType, Expr, Extent, Index, LoopKind, Stmt};

/// The largest stride of a group.
const MOST: i64 = 16;

/// Loads of one body whose lanes interleave.
pub(super) struct Group {
    /// The first one's, without what moves with the lanes.
    buf: BufId,
    dtype: DType,
    first: Index,
    stride: i64,
    lanes: u64,
    /// Which of the elements from the first on are the start of a load, a bit for each.
    starts: u64,
    /// The elements from the first one on that are known to lie in the buffer.
    known: u64,
    /// The loads by now, in the order of their starts.
    made: Option<Vec<Option<Reg>>>,
}

impl Group {
    /// Elements from the first to the last one.
    fn span(&self) -> u64 {
        self.stride as u64 * (self.lanes - 1) + u64::from(64 - self.starts.leading_zeros())
    }
}

/// Lanes of a vector that is loaded. Bytes, and halves in AVX2, are only permuted in 16 bytes, which an odd stride
/// needs.
fn lanes_loaded(tier: Tier, bytes: u64, stride: u64) -> u64 {
    let permutes = bytes >= least_permuted(tier) || stride.is_power_of_two();
    if permutes { tier.bytes() / bytes } else { 16 / bytes }
}

/// Bytes of the least elements that an instruction permutes in a whole vector.
fn least_permuted(tier: Tier) -> u64 {
    if tier.is_512() { 2 } else { 4 }
}

impl<'a> Generator<'a> {
    /// The groups among the loads of a body, those in its lanes.
    pub(super) fn groups(&self, body: &'a [Stmt]) -> Vec<Group> {
        let mut loads: Vec<(BufId, i64, u64, Index, i64, DType)> = vec![];
        for stmt in body {
            let Stmt::For(l) = stmt else { continue };
            let (LoopKind::Lanes, Extent::Const(lanes)) = (l.kind, l.extent) else { continue };
            each_expr(&l.body, &mut |e| {
                let Expr::Load(buf, dtype, index) = e else { return };
                let stride = index.coefficient(l.var);
                let is_input = self.around.nest.buffers[buf.0 as usize].role == BufferRole::In;
                if is_input && lanes > 1 && (2..=MOST).contains(&stride) {
                    let terms = index.clone().plus(l.var, -stride).offset_by(-index.offset);
                    loads.push((*buf, stride, lanes, terms, index.offset, *dtype));
                }
            });
        }
        loads.sort_by_key(|load| (load.0, load.1, load.2, load.4));
        let mut groups: Vec<Group> = vec![];
        for (buf, stride, lanes, terms, offset, dtype) in loads {
            let start = terms.offset_by(offset);
            let ahead = |g: &Group| {
                let is_near = g.buf == buf && g.stride == stride && g.lanes == lanes;
                let ahead = offset - g.first.offset;
                let joins = is_near && ahead < stride && g.first.clone().offset_by(ahead) == start;
                joins.then_some(ahead)
            };
            match groups.iter_mut().rev().find_map(|g| ahead(g).map(|ahead| (g, ahead))) {
                Some((group, ahead)) => group.starts |= 1 << ahead,
                None => groups.push(Group { buf, dtype, first: start, stride, lanes, starts: 1, known: 0, made: None }),
            }
        }
        let ends: Vec<(BufId, Index)> =
            groups.iter().map(|g| (g.buf, g.first.clone().offset_by(g.span() as i64))).collect();
        for group in &mut groups {
            let distance = |(buf, end): &(BufId, Index)| {
                let distance = end.offset - group.first.offset;
                (*buf == group.buf && group.first.clone().offset_by(distance) == *end).then_some(distance as u64)
            };
            group.known =
                ends.iter().filter(|(_, end)| end.offset > group.first.offset).filter_map(distance).max().unwrap_or(0);
        }
        groups
    }

    /// The lanes of a load, where it is one of a group that is worth the while.
    pub(super) fn strided(&mut self, buf: BufId, start: &Index, from: &Access<Reg>) -> Option<Reg> {
        let (lanes, stride) = from.lanes?;
        let (n, ahead) = self.strided.iter().enumerate().find_map(|(n, g)| {
            let ahead = start.offset - g.first.offset;
            let is_near = g.buf == buf && g.stride == stride && g.lanes == lanes && (0..stride).contains(&ahead);
            (is_near && g.first.clone().offset_by(ahead) == *start).then_some((n, ahead))
        })?;
        if self.strided[n].made.is_none() {
            let made = self.made(n, from, ahead)?;
            self.strided[n].made = Some(made);
        }
        self.strided[n].made.as_ref()?[ahead as usize]
    }

    /// The loads of a group by their starts; `None` where loading element by element costs no more.
    fn made(&mut self, n: usize, from: &Access<Reg>, ahead: i64) -> Option<Vec<Option<Reg>>> {
        let group = &self.strided[n];
        let (bytes, stride) = (group.dtype.bytes(), group.stride as u64);
        let (span, known, starts) = (group.span(), group.known, group.starts);
        let width = lanes_loaded(self.tier, bytes, stride);
        let vectors = span.div_ceil(width);
        let count = u64::from(starts.count_ones());
        let stages = u64::from(stride.next_power_of_two().ilog2());
        let each = if self.tier.is_512() && bytes > 1 { 1 } else { 2 };
        let cost = vectors + each * (vectors * stages).min(count * (vectors - 1));
        let last = (span - (vectors - 1) * width) * bytes;
        let ends_whole = known >= vectors * width || last.is_power_of_two();
        let has_masks = self.tier.is_512() || bytes >= 4;
        if group.lanes > width || cost > 2 * group.lanes * count || !(ends_whole || has_masks) {
            return None;
        }
        let (pointer, offset) = self.near(from.pointer, i64::from(from.offset_bytes) - ahead * bytes as i64);
        let loaded = (0..vectors).map(|v| {
            let (pointer, offset) = self.near(pointer, i64::from(offset) + (v * width * bytes) as i64);
            let to = self.vector();
            let [needed, known] = [span, known.max(span)].map(|end| (end - v * width).min(width));
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
            Some(to)
        });
        let loaded = loaded.collect();
        Some(self.apart(loaded, stride, bytes, width, starts))
    }

    /// Of the elements in these vectors every `stride`-th from each start on.
    fn apart(
        &mut self,
        vectors: Vec<Option<Reg>>,
        stride: u64,
        bytes: u64,
        width: u64,
        starts: u64,
    ) -> Vec<Option<Reg>> {
        if stride == 1 {
            return vec![vectors[0]];
        }
        if !stride.is_multiple_of(2) {
            return self.rotated(vectors, stride, bytes, width);
        }
        // Those of even starts are among the even elements.
        let half = |odd: u64| (0..stride / 2).map(|c| (starts >> (2 * c + odd) & 1) << c).sum::<u64>();
        let mut parts = [vec![], vec![]];
        for pair in vectors.chunks(2) {
            let a = pair[0].expect("the span has no holes");
            let b = pair.last().copied().flatten().unwrap_or(a);
            let both = self.even_and_odd(a, b, bytes, width);
            parts.iter_mut().zip(both).for_each(|(part, reg)| part.push(Some(reg)));
        }
        let mut all = vec![None; stride as usize];
        for (odd, part) in parts.into_iter().enumerate() {
            let starts = half(odd as u64);
            if starts != 0 {
                let each = self.apart(part, stride / 2, bytes, width, starts);
                each.into_iter().enumerate().for_each(|(c, reg)| all[2 * c + odd] = reg);
            }
        }
        all
    }

    /// The even and the odd elements, of at most half a vector, of two vectors that follow one another.
    pub(super) fn even_and_odd(&mut self, a: Reg, b: Reg, bytes: u64, width: u64) -> [Reg; 2] {
        if width * bytes == 16 {
            // In each the even ones, then the odd ones.
            let order: Vec<u64> = (0..width).step_by(2).chain((1..width).step_by(2)).collect();
            let (a, b) = (self.permuted(a, &order, bytes), self.permuted(b, &order, bytes));
            return [Opcode::Vpunpcklqdq, Opcode::Vpunpckhqdq].map(|opcode| self.both(opcode, a, b));
        }
        if bytes >= 16 {
            // Groups of 16 bytes, of which those of each vector stay in order.
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
        if bytes < least_permuted(self.tier) {
            // The same in each 16 bytes, the halves of which then go apart.
            let in_group = 16 / bytes;
            let order: Vec<u64> = (0..in_group).step_by(2).chain((1..in_group).step_by(2)).collect();
            let (a, b) = (self.permuted(a, &order, bytes), self.permuted(b, &order, bytes));
            return self.even_and_odd(a, b, 8, self.tier.bytes() / 8);
        }
        [0, 1].map(|odd: u64| {
            if self.tier.is_512() {
                let order: Vec<u64> = (0..width).map(|lane| 2 * lane + odd).collect();
                let order = self.order_constant(&order, bytes);
                let code = match bytes {
                    2 => Opcode::Vpermt2w,
                    4 => Opcode::Vpermt2d,
                    _ => Opcode::Vpermt2q,
                };
                let to = self.vector();
                self.program.items.push(Item::Copy { to, from: a });
                let args = [self.full(to), self.full(order), self.full(b)];
                self.emit(Inst::new(code, &args));
                return to;
            }
            // In halves of the vectors first: those of `a` and `b` side by side.
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

    /// An odd stride: the results by their starts.
    fn rotated(&mut self, vectors: Vec<Option<Reg>>, stride: u64, bytes: u64, width: u64) -> Vec<Option<Reg>> {
        let by_width = (1..stride).find(|v| v * width % stride == 1).expect("a power of two has an inverse");
        let turns = |q: u64| by_width * q % stride;
        let mut vectors = vectors;
        vectors.resize(stride as usize, None);
        let mut turn = 1;
        while turn < stride {
            let moves: Vec<bool> = (0..width).map(|q| turns(q) & turn != 0).collect();
            let rotated = (0..stride).map(|v| {
                let from = vectors[((v + stride - turn) % stride) as usize];
                match (vectors[v as usize], from) {
                    (Some(stays), Some(from)) => Some(self.blended(stays, from, &moves, bytes)),
                    (stays, from) => stays.or(from),
                }
            });
            vectors = rotated.collect();
            turn *= 2;
        }
        let result = |c: u64| {
            let order: Vec<u64> = (0..width).map(|lane| (stride * lane + c) % width).collect();
            vectors[turns(c) as usize].map(|from| self.permuted(from, &order, bytes))
        };
        (0..stride).map(result).collect()
    }

    /// The lanes of `yes` where `moves` says so, else those of `no`.
    fn blended(&mut self, no: Reg, yes: Reg, moves: &[bool], bytes: u64) -> Reg {
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

    /// The lanes in this order.
    fn permuted(&mut self, from: Reg, order: &[u64], bytes: u64) -> Reg {
        let tier = self.tier;
        if order.len() as u64 * bytes == 16 {
            let byte = |at: u64| (order[(at / bytes) as usize % order.len()] * bytes + at % bytes) as u8;
            let order = self.bytes_constant((0..tier.bytes()).map(byte).collect());
            return self.both(Opcode::Vpshufb, from, order);
        }
        let code = match (bytes, tier) {
            (8, Tier::Avx2) => {
                let number = order.iter().rev().fold(0, |number, &lane| number << 2 | lane as i64);
                return self.by_number(Opcode::VpermqBy, from, number);
            }
            (2, _) => Opcode::Vpermw,
            (4, _) => Opcode::Vpermd,
            _ => Opcode::Vpermq,
        };
        let order = self.order_constant(order, bytes);
        self.both(code, order, from)
    }

    /// The numbers of lanes, in each lane one.
    fn order_constant(&mut self, order: &[u64], bytes: u64) -> Reg {
        self.bytes_constant(order.iter().flat_map(|n| n.to_le_bytes()[..bytes as usize].to_vec()).collect())
    }
}
