//! Loads that cross no line of memory, wherever an input begins.
//!
//! ```text
//! for k0 in 0..16 seq {
//!   for l1 in 0..16 lanes { a0[l1] = add(a0[l1], x0[64*k0 + l1]) }
//!   for l1 in 0..16 lanes { a0[l1 + 16] = add(a0[l1 + 16], x0[64*k0 + l1 + 16]) }
//!   for l1 in 0..16 lanes { a0[l1 + 32] = add(a0[l1 + 32], x0[64*k0 + l1 + 32]) }
//!   for l1 in 0..16 lanes { a0[l1 + 48] = add(a0[l1 + 48], x0[64*k0 + l1 + 48]) }
//! }
//! ```
//!
//! A core reads one line of 64 bytes at a time, so that a vector of 64 bytes that lies across two takes half as long again.
//! A loop like this one reads whole vectors that follow one another, and its registers take turns: vector `v` goes to
//! register `v` modulo their number, a *ring*. Where `x0` begins `e` elements after a multiple of 64 bytes, the loop reads
//! from that multiple on: the lines, not the vectors. Then lane `i` of line `v` is element `16 v + i - e`, and always the
//! same element of the ring as before, `e` lanes further on: each element of the accumulator combines the same elements
//! in the same order, in another lane. After the loop the ring is turned back.
//!
//! Of the first line the lanes from `e` on are elements, and of one more line, after the loop, the first `e`: a mask keeps
//! the others out, of memory too. The first line is read before the loop, which is entered behind its first vector.
//!
//! Where a loop has several inputs, the first one decides; others are read as far before their vectors as that one.
//! Nothing changes where `e` is zero, nor where elements do not begin at multiples of their size.

use super::machine::code::masked_load;
use super::machine::code::{Arg, Class, Constant, Inst, Item, Reg, View};
use super::machine::table::Opcode;
use super::{Generator, Refused, Val, ValuePlace, Walk};
use crate::codegen::address::Base;
use crate::codegen::emit::Numbers;
use crate::codegen::storage::Vector;
use cranefold_ir::work::{Work, one_each};
use cranefold_ir::{AccId, BufId, BufferRole, DType, Expr, Extent, Index, Loop, Over, Stmt};
use std::collections::HashMap;

/// Bytes of a line of memory.
const LINE_BYTES: u64 = 64;

/// The fewest vectors of a loop, so that it gains more than is done before and after it.
const FEWEST: u64 = 32;

/// The fewest registers of a ring: with one, each vector waits for the one before it longer than for memory.
const FEWEST_IN_RING: usize = 2;

/// The most operations on what a load reads: with more, memory is not what a loop waits for.
const MOST_WORK: u64 = 4;

/// A loop that may read lines.
pub(super) struct Lines {
    /// The first vector of the first input.
    first: (BufId, Index),
    /// Bytes of an element.
    bytes: u64,
    rings: Vec<Vec<Reg>>,
}

/// Where a loop begins in its first line.
#[derive(Clone, Copy)]
pub(super) struct Start {
    /// The bytes of the line before the first element.
    before: Reg,
    /// The lanes of the line from the first element on.
    pub(super) first: Reg,
    /// The lanes before them: those of the line after the last one.
    last: Reg,
}

/// What is known of inputs before all loops.
#[derive(Default)]
pub(super) struct Starts {
    /// The bits of an address that say where in a line it is; none where elements lie across their own size.
    in_line: HashMap<BufId, Reg>,
    /// The start of the loops that begin so many bytes after the start of an input, but for whole lines.
    same: Option<(BufId, i64, Start)>,
}

/// What a vector of a loop reads and sets.
#[derive(Default)]
struct Accesses<'a> {
    loads: Vec<(BufId, DType, &'a Index)>,
    reads: Vec<(AccId, &'a Index)>,
    sets: Vec<(AccId, &'a Index)>,
    /// Whether there is something else that is not the same in all lanes, or a place that lanes do not name.
    others: bool,
}

impl<'a> Accesses<'a> {
    fn of(body: &'a [Stmt]) -> Accesses<'a> {
        let mut all = Accesses::default();
        for stmt in body {
            match stmt {
                Stmt::Set { acc, index, .. } => all.sets.push((*acc, index)),
                Stmt::Let { .. } | Stmt::Call { .. } => {}
                _ => all.others = true,
            }
        }
        super::each_expr(body, &mut |e| match e {
            Expr::Load(buf, dtype, index) => all.loads.push((*buf, *dtype, index)),
            Expr::Read(acc, _, index) => all.reads.push((*acc, index)),
            Expr::At(..) => all.others = true,
            _ => {}
        });
        all
    }
}

impl<'a> Generator<'a> {
    /// The lines of a loop that may read them; asked before its registers are started.
    pub(super) fn lines(&mut self, walk: &Walk<'a>, l: &'a Loop) -> Option<Lines> {
        let (Extent::Const(trips), Over::Step, true) = (l.extent, l.var.over, self.tier.is_512()) else { return None };
        let many = trips * l.body.len() as u64 >= FEWEST;
        let Some(Stmt::For(first)) = l.body.first().filter(|_| many) else { return None };
        let (vector, first_body) = Vector::of(first)?;
        let first = Accesses::of(first_body);
        let &(buf, dtype, start) = first.loads.first()?;
        if Work::new(&self.around.nest.defs, one_each).body(first_body) > MOST_WORK * first.loads.len() as u64 {
            return None;
        }
        let bytes = dtype.bytes();
        let per_line = (LINE_BYTES / bytes) as i64;
        let own = |index: &Index, var| index.coefficient(var) == 1 && index.terms().count() == 1;
        let mut rings: Vec<Vec<u64>> = vec![vec![]; first.sets.len()];
        for (v, stmt) in l.body.iter().enumerate() {
            let Stmt::For(lanes) = stmt else { return None };
            let (Vector { var, lanes, outer: None }, body) = Vector::of(lanes)? else { return None };
            if body.len() != first_body.len() || !body.iter().zip(first_body).all(|(a, b)| are_alike(a, b)) {
                return None;
            }
            let all = Accesses::of(body);
            let counts = all.loads.len() == first.loads.len() && all.sets.len() == first.sets.len();
            if all.others || !counts || lanes as i64 != per_line {
                return None;
            }
            // Loads follow one another, from vector to vector and from iteration to iteration.
            for (&(buf, dtype, index), &(first_buf, _, from)) in all.loads.iter().zip(&first.loads) {
                let steps = index.coefficient(l.var) == per_line * l.body.len() as i64;
                let is_input = self.around.nest.buffers[buf.0 as usize].role == BufferRole::In;
                let follows =
                    index.clone().plus(var, -1) == from.clone().plus(vector.var, -1).offset_by(v as i64 * per_line);
                let is_alike = buf == first_buf && dtype.bytes() == bytes && dtype != DType::Bool;
                if !(steps && is_input && follows && is_alike && index.coefficient(var) == 1) {
                    return None;
                }
            }
            for (n, &(acc, index)) in all.sets.iter().enumerate() {
                if acc != first.sets[n].0 || !own(index, var) || walk.types[&acc].bytes() != bytes {
                    return None;
                }
                rings[n].push(index.offset as u64);
            }
            // Lanes meet their own lanes only, or what is the same in all.
            let is_set = |acc: AccId| first.sets.iter().any(|set| set.0 == acc);
            let in_lane = |&(acc, index): &(AccId, &Index)| match is_set(acc) {
                true => all.sets.contains(&(acc, index)),
                false => index.is_constant(),
            };
            if !all.reads.iter().all(in_lane) {
                return None;
            }
        }
        let sets = first.sets.iter().map(|set| set.0);
        let rings = sets
            .zip(rings)
            .map(|(acc, starts)| ring(walk, acc, &starts, per_line as u64))
            .collect::<Option<Vec<_>>>()?;
        let mut registers: Vec<Reg> = rings.iter().flatten().copied().collect();
        registers.sort();
        if registers.windows(2).any(|pair| pair[0] == pair[1]) {
            return None;
        }
        let first = (buf, start.clone().plus(vector.var, -1));
        Some(Lines { first, bytes, rings })
    }

    /// Lets the pointers of a loop begin at a line.
    pub(super) fn start_lines(&mut self, walk: &mut Walk<'a>, lines: &Lines, pointers: &[(Reg, i64)]) -> Start {
        let (buf, index) = &lines.first;
        let in_line = self.in_line(*buf, lines.bytes);
        let by_lines = index.terms().all(|(_, c)| c * lines.bytes as i64 % LINE_BYTES as i64 == 0);
        let offset = (index.offset * lines.bytes as i64).rem_euclid(LINE_BYTES as i64);
        let start = match self.starts.same {
            Some((of, at, start)) if by_lines && (of, at) == (*buf, offset) => start,
            None if by_lines => {
                let start = self.in_prologue(|own| {
                    let (base, _) = own.base(Base::Buf(*buf));
                    own.start_at(base, offset as i32, in_line, lines.bytes)
                });
                self.starts.same = Some((*buf, offset, start));
                start
            }
            _ => {
                let (pointer, offset) = walk.address(self, Base::Buf(*buf), index);
                self.start_at(pointer, offset, in_line, lines.bytes)
            }
        };
        let before = Arg::Reg(start.before, View::R64);
        for &(pointer, _) in pointers {
            self.emit(Inst::new(Opcode::Sub, &[Arg::Reg(pointer, View::R64), before]));
        }
        start
    }

    /// Writes code before all else, and after what stands there by now.
    fn in_prologue<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        let items = std::mem::take(&mut self.program.items);
        self.program.items = std::mem::take(&mut self.prologue);
        let written = write(self);
        self.prologue = std::mem::replace(&mut self.program.items, items);
        written
    }

    /// The bits of an input's addresses that say where in a line they are.
    fn in_line(&mut self, buf: BufId, bytes: u64) -> Reg {
        if let Some(&known) = self.starts.in_line.get(&buf) {
            return known;
        }
        let (base, _) = self.base(Base::Buf(buf));
        let bits = self.in_prologue(|own| {
            let [bits, none] = [Class::General; 2].map(|class| own.program.reg(class));
            own.set_number(bits, LINE_BYTES as i64 - 1);
            own.set_number(none, 0);
            let in_element = Arg::Imm(bytes as i64 - 1);
            own.emit(Inst::new(Opcode::TestBy, &[Arg::Reg(base, View::R64), in_element]));
            let args = [Arg::Reg(bits, View::R64), Arg::Reg(none, View::R64)];
            own.emit(Inst::new(Opcode::Cmovne, &args));
            bits
        });
        self.starts.in_line.insert(buf, bits);
        bits
    }

    /// Where in its line an address is.
    fn start_at(&mut self, pointer: Reg, offset: i32, in_line: Reg, bytes: u64) -> Start {
        let before = self.program.reg(Class::General);
        let [first, last] = [Class::Mask; 2].map(|class| self.program.reg(class));
        let before_arg = Arg::Reg(before, View::R64);
        self.emit(Inst::new(Opcode::Lea, &[before_arg, Arg::Mem(pointer, offset)]));
        self.emit(Inst::new(Opcode::And, &[before_arg, Arg::Reg(in_line, View::R64)]));
        let elements = self.divided(before, bytes);
        let (elements, numbers) = (self.in_lanes(elements, bytes), self.lane_numbers(bytes));
        let code = match bytes {
            1 => Opcode::Vpcmpgtb,
            2 => Opcode::Vpcmpgtw,
            4 => Opcode::Vpcmpgtd,
            _ => Opcode::Vpcmpgtq,
        };
        let (first_arg, last_arg) = (Arg::Reg(first, View::K), Arg::Reg(last, View::K));
        self.emit(Inst::new(code, &[last_arg, self.full(elements), self.full(numbers)]));
        self.emit(Inst::new(Opcode::Knotq, &[first_arg, last_arg]));
        Start { before, first, last }
    }

    /// The first vector of a body, for the lanes of a mask.
    pub(super) fn edge_of_lines(&mut self, walk: &mut Walk<'a>, mask: Reg, body: &'a [Stmt]) -> Result<(), Refused> {
        self.edge = Some(mask);
        let done = walk.body(self, &body[..1]);
        self.edge = None;
        done
    }

    /// The line after the last one, and the ring as it was.
    pub(super) fn end_lines(
        &mut self,
        walk: &mut Walk<'a>,
        lines: &Lines,
        start: Start,
        body: &'a [Stmt],
    ) -> Result<(), Refused> {
        let aligned = self.program.label();
        let before = Arg::Reg(start.before, View::R64);
        self.emit(Inst::new(Opcode::Test, &[before, before]));
        self.program.items.push(Item::Jump(Opcode::Je, aligned));
        self.edge_of_lines(walk, start.last, body)?;
        match lines.bytes {
            1 => self.turn_bytes_back(lines, start.before),
            _ => self.turn_back(lines, start.before),
        }
        self.program.items.push(Item::Label(aligned));
        Ok(())
    }

    /// Each register of a ring gets the lanes of itself and of the next one, from the first element on.
    fn turn_back(&mut self, lines: &Lines, before: Reg) {
        let (add, permute) = match lines.bytes {
            2 => (Opcode::Vpaddw, Opcode::Vpermt2w),
            4 => (Opcode::Vpaddd, Opcode::Vpermt2d),
            _ => (Opcode::Vpaddq, Opcode::Vpermt2q),
        };
        let elements = self.divided(before, lines.bytes);
        let (elements, numbers) = (self.in_lanes(elements, lines.bytes), self.lane_numbers(lines.bytes));
        let order = self.both(add, elements, numbers);
        for (reg, next) in self.neighbours(lines) {
            let args = [self.full(reg), self.full(order), self.full(next)];
            self.emit(Inst::new(permute, &args));
        }
    }

    /// The same of bytes, which no instruction permutes across two registers: the four bytes that the first one lies in
    /// and those after them, shifted together.
    fn turn_bytes_back(&mut self, lines: &Lines, before: Reg) {
        let four = self.divided(before, 4);
        let [bits, others] = [Class::General; 2].map(|class| self.program.reg(class));
        let [bits_arg, others_arg] = [bits, others].map(|reg| Arg::Reg(reg, View::R64));
        self.program.items.push(Item::Copy { to: bits, from: before });
        self.emit(Inst::new(Opcode::AndBy, &[bits_arg, Arg::Imm(3)]));
        self.emit(Inst::new(Opcode::ImulBy, &[bits_arg, bits_arg, Arg::Imm(8)]));
        self.set_number(others, 32);
        self.emit(Inst::new(Opcode::Sub, &[others_arg, bits_arg]));
        let (four, numbers, one) = (self.in_lanes(four, 4), self.lane_numbers(4), self.splat(1, 4));
        let first = self.both(Opcode::Vpaddd, four, numbers);
        let second = self.both(Opcode::Vpaddd, first, one);
        let shifts = [bits, others].map(|number| {
            let to = self.vector();
            self.emit(Inst::new(Opcode::Vmovd, &[Arg::Reg(to, View::Xmm), Arg::Reg(number, View::R32)]));
            Arg::Reg(to, View::Xmm)
        });
        for (reg, next) in self.neighbours(lines) {
            let codes = [Opcode::VpsrldCount, Opcode::VpslldCount];
            let parts = [(first, codes[0], shifts[0]), (second, codes[1], shifts[1])].map(|(order, code, by)| {
                let part = self.vector();
                self.program.items.push(Item::Copy { to: part, from: reg });
                let args = [self.full(part), self.full(order), self.full(next)];
                self.emit(Inst::new(Opcode::Vpermt2d, &args));
                self.pair(code, part, by, None)
            });
            let part = self.full(parts[1]);
            self.pair(Opcode::Vpor, parts[0], part, Some(reg));
        }
    }

    /// The registers of all rings, each with the next one as it was when the ring began to be turned.
    fn neighbours(&mut self, lines: &Lines) -> Vec<(Reg, Reg)> {
        let mut pairs = vec![];
        for ring in &lines.rings {
            let first = self.vector();
            self.program.items.push(Item::Copy { to: first, from: ring[0] });
            let next = ring[1..].iter().copied().chain([first]);
            pairs.extend(ring.iter().copied().zip(next));
        }
        pairs
    }

    /// A number divided by a power of two.
    fn divided(&mut self, number: Reg, by: u64) -> Reg {
        let to = self.program.reg(Class::General);
        self.program.items.push(Item::Copy { to, from: number });
        if by > 1 {
            let args = [Arg::Reg(to, View::R64), Arg::Imm(by.ilog2().into())];
            self.emit(Inst::new(Opcode::ShrBy, &args));
        }
        to
    }

    /// Elements of a line, of which not all are there.
    pub(super) fn load_edge(&mut self, mask: Reg, pointer: Reg, offset: i32, val: Val) -> Val {
        let to = self.vector();
        let args = [self.full(to), Arg::Mem(pointer, offset)];
        self.emit(Inst::new(masked_load(val.bytes), &args).masked(mask, true));
        Val { place: ValuePlace::Reg(to), ..val }
    }

    /// Sets the lanes of a register that a mask has.
    pub(super) fn set_edge(&mut self, mask: Reg, reg: Reg, val: Val) {
        let from = self.reg(val);
        let args = [self.full(reg), self.full(from)];
        self.emit(Inst::new(masked_load(val.bytes), &args).masked(mask, false));
    }

    /// A number in all lanes.
    fn in_lanes(&mut self, number: Reg, bytes: u64) -> Reg {
        let to = self.vector();
        let (code, view) = match bytes {
            1 => (Opcode::VpbroadcastbOf, View::R32),
            2 => (Opcode::VpbroadcastwOf, View::R32),
            4 => (Opcode::VpbroadcastdOf, View::R32),
            _ => (Opcode::VpbroadcastqOf, View::R64),
        };
        self.emit(Inst::new(code, &[self.full(to), Arg::Reg(number, view)]));
        to
    }

    /// The number of each lane.
    fn lane_numbers(&mut self, bytes: u64) -> Reg {
        let numbers = (0..LINE_BYTES / bytes).flat_map(|n| n.to_le_bytes()[..bytes as usize].to_vec());
        self.program.constant(Constant::Bytes(numbers.collect()))
    }
}

/// The registers that vectors go to by turns, from these elements of an accumulator on; all still hold what they
/// start with, the same in all lanes.
fn ring(walk: &Walk, acc: AccId, starts: &[u64], lanes: u64) -> Option<Vec<Reg>> {
    let len = starts.iter().skip(1).position(|s| *s == starts[0]).map_or(starts.len(), |n| n + 1);
    let turns = len >= FEWEST_IN_RING
        && starts.len().is_multiple_of(len)
        && starts.iter().enumerate().all(|(v, s)| *s == starts[v % len]);
    let cells = walk.storage.cells.get(&acc).filter(|_| turns)?;
    let whole = |start: &u64| {
        let cell = cells.iter().find(|cell| cell.start == *start && cell.lanes == lanes)?;
        let reg = *walk.registers.get(&(acc, *cell))?;
        walk.initial((acc, *cell)).map(|_| reg)
    };
    starts[..len].iter().map(whole).collect()
}

/// Whether statements of two vectors do the same, but for the elements that they name.
fn are_alike(a: &Stmt, b: &Stmt) -> bool {
    let is_kind = match (a, b) {
        (Stmt::Set { acc: a, .. }, Stmt::Set { acc: b, .. }) => a == b,
        (Stmt::Let { var: a, .. }, Stmt::Let { var: b, .. }) => a == b,
        (Stmt::Call { vars: a, def: f, .. }, Stmt::Call { vars: b, def: g, .. }) => (a, f) == (b, g),
        _ => false,
    };
    is_kind && a.exprs().len() == b.exprs().len() && a.exprs().iter().zip(b.exprs()).all(|(a, b)| are_alike_exprs(a, b))
}

fn are_alike_exprs(a: &Expr, b: &Expr) -> bool {
    let is_kind = match (a, b) {
        (Expr::Load(a, ..), Expr::Load(b, ..)) => a == b,
        (Expr::Read(a, _, at), Expr::Read(b, _, other)) => a == b && (at == other || !at.is_constant()),
        (Expr::Op(f, d, _), Expr::Op(g, e, _)) => (f, d) == (g, e),
        (Expr::Call(f, ..), Expr::Call(g, ..)) => f == g,
        _ => a == b,
    };
    is_kind && a.args().len() == b.args().len() && a.args().iter().zip(b.args()).all(|(a, b)| are_alike_exprs(a, b))
}
