//! The places of constants: in registers around loops while there are enough, else operands in memory or registers that
//! are loaded where they are used.

use super::code::{Arg, Class, Constant, Inst, Item, MachineProgram, Reg, View};
use super::live::{Interval, LoopSpan, intervals, loops};
use super::row::Memory;
use super::table::Opcode;
use super::tier::Tier;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The constants in memory, and the offset of each.
#[derive(Debug, Default)]
pub struct Pool {
    /// The entries, by their number.
    pub entries: Vec<Vec<u8>>,
}

impl Pool {
    fn entry(&mut self, bytes: Vec<u8>) -> u32 {
        let known = self.entries.iter().position(|e| *e == bytes);
        known.unwrap_or_else(|| {
            self.entries.push(bytes);
            self.entries.len() - 1
        }) as u32
    }
}

/// The number of the constant that a register stands for.
struct Numbers(Vec<Option<usize>>);

impl Numbers {
    fn of(&self, reg: Reg) -> Option<usize> {
        self.0.get(reg.0 as usize).copied().flatten()
    }
}

/// A constant in a register of its own around a loop.
struct Home {
    constant: usize,
    span: LoopSpan,
    reg: Reg,
}

/// A constant in a register that was loaded where it is used.
#[derive(Clone, Copy)]
struct Loaded {
    constant: usize,
    reg: Reg,
    /// The last item that uses it.
    used: u32,
}

/// The uses in the body of a loop, none of which takes an operand in memory, from which on a constant has a register there in
/// place of a value from before the loop: the value is an operand in memory then.
const OFTEN: u32 = 4;

/// Loads constants. The most used ones are loaded before the outermost loops around their uses through which a register
/// is free, and before a loop that would load them often. The others are operands in memory where they are used, if the
/// instruction takes one; else they are loaded there, and again where no register is free up to their next use, or a label
/// or a loop begins before it.
pub fn place(program: &mut MachineProgram, tier: Tier, fixed: &[Reg]) -> Pool {
    let mut pool = Pool::default();
    if program.constants.is_empty() {
        return pool;
    }
    let constants = std::mem::take(&mut program.constants);
    let mut index = Numbers(vec![None; program.classes.len()]);
    constants.iter().enumerate().for_each(|(n, (reg, _))| index.0[reg.0 as usize] = Some(n));
    let spans = loops(program);
    let live = intervals(program, &spans, fixed);
    let (around, often) = around(program, constants.len(), &index);
    let mut pressure = Pressure::new(program, tier, &live, &index);
    let mut homes: Vec<Home> = vec![];
    let mut order: Vec<usize> = (0..constants.len()).filter(|&n| live[constants[n].0.0 as usize].used).collect();
    order.sort_by(|&a, &b| {
        let weight = |n: usize| live[constants[n].0.0 as usize].weight;
        weight(b).total_cmp(&weight(a))
    });
    for constant in order {
        let class = program.classes[constants[constant].0.0 as usize];
        let mut held_to = None;
        for &number in &around[constant] {
            let span = spans[number];
            let is_worth = || often.contains(&(constant, number)) && holds_values(program, &live, &index, span);
            if held_to.is_none_or(|end| span.start > end) && (pressure.fits(class, span) || is_worth()) {
                pressure.add(class, span);
                homes.push(Home { constant, span, reg: program.reg(class) });
                held_to = Some(span.end);
            }
        }
    }
    rewrite(program, tier, &constants, &index, &homes, pressure, &mut pool);
    pool
}

/// The loops around the uses of each constant, in order of their starts: outer ones come before inner ones. With them the
/// constants that are loaded often in the body of a loop, without loops in it, with that loop.
fn around(program: &MachineProgram, constants: usize, index: &Numbers) -> (Vec<Vec<usize>>, Vec<(usize, usize)>) {
    let mut around: Vec<Vec<usize>> = vec![vec![]; constants];
    let mut loaded: FxHashMap<(usize, usize), u32> = FxHashMap::default();
    let mut open: Vec<usize> = vec![];
    let mut next = 0;
    for item in &program.items {
        match item {
            Item::Enter(_) => {
                if let Some(&outer) = open.last() {
                    loaded.retain(|&(_, l), _| l != outer);
                }
                open.push(next);
                next += 1;
            }
            Item::Leave => {
                open.pop();
            }
            _ => {}
        }
        item.uses(|r| {
            let (Some(n), Some(&inner)) = (index.of(r), open.last()) else { return };
            if program.classes[r.0 as usize] == Class::Vector && !takes_memory(item, r) {
                *loaded.entry((n, inner)).or_default() += 1;
            }
            // An inner loop comes with all those around it.
            if !around[n].contains(&inner) {
                let around = &mut around[n];
                around.extend(open.iter().copied().filter(|l| !around.contains(l)).collect::<SmallVec<[usize; 8]>>());
            }
        });
    }
    around.iter_mut().for_each(|loops| loops.sort_unstable());
    (around, loaded.into_iter().filter(|&(_, uses)| uses >= OFTEN).map(|(of, _)| of).collect())
}

/// Returns true if a vector from before a loop, no constant, is read in it and is not written.
fn holds_values(program: &MachineProgram, live: &[Interval], index: &Numbers, span: LoopSpan) -> bool {
    let body = &program.items[span.start as usize..=span.end as usize];
    let is_before = |reg: Reg| {
        let interval = live[reg.0 as usize];
        let is_vector = program.classes[reg.0 as usize] == Class::Vector;
        is_vector && index.of(reg).is_none() && interval.start < span.start && interval.end >= span.end
    };
    let written: SmallVec<[Reg; 32]> = body.iter().filter_map(Item::def).map(|(reg, _)| reg).collect();
    let mut holds = false;
    body.iter().for_each(|item| item.uses(|reg| holds |= is_before(reg) && !written.contains(&reg)));
    holds
}

/// Returns true if the item may take this register's constant as an operand in memory.
fn takes_memory(item: &Item, reg: Reg) -> bool {
    match item {
        Item::Inst(inst) => inst.foldable().is_some_and(|at| matches!(inst.args[at], Arg::Reg(r, _) if r == reg)),
        Item::Fma { a, .. } => *a != reg,
        _ => false,
    }
}

/// The mask registers that instructions may name as their mask.
const MASKS: usize = 7;

/// The number of live registers of each class at each item.
struct Pressure {
    vector: Vec<i32>,
    mask: Vec<i32>,
    /// The vector registers of the target.
    vectors: usize,
}

impl Pressure {
    fn new(program: &MachineProgram, tier: Tier, live: &[Interval], constants: &Numbers) -> Pressure {
        // What begins at each item, less what has ended there.
        let len = program.items.len() + 1;
        let (mut vector, mut mask) = (vec![0i32; len], vec![0i32; len]);
        for (n, interval) in live.iter().enumerate() {
            let changes = match program.classes[n] {
                Class::General => continue,
                Class::Vector => &mut vector,
                Class::Mask => &mut mask,
            };
            if interval.used && constants.of(Reg(n as u32)).is_none() {
                changes[interval.start as usize] += 1;
                // The last instruction that needs the register may write its result there.
                changes[interval.end.max(interval.start + 1) as usize] -= 1;
            }
        }
        let [vector, mask] = [vector, mask].map(|changes| {
            let counts = changes.into_iter().scan(0, |count, change| {
                *count += change;
                Some(*count)
            });
            counts.collect()
        });
        Pressure { vector, mask, vectors: tier.registers() }
    }

    fn of(&mut self, class: Class) -> &mut Vec<i32> {
        if class == Class::Mask { &mut self.mask } else { &mut self.vector }
    }

    /// Returns true if two registers are free throughout a span: one for the constant, and one to load others.
    fn fits(&mut self, class: Class, span: LoopSpan) -> bool {
        let most = if class == Class::Mask { MASKS } else { self.vectors };
        let counts = &self.of(class)[span.start as usize..=span.end as usize];
        counts.iter().fold(0, |most, &count| most.max(count)) as usize + 2 <= most
    }

    fn add(&mut self, class: Class, span: LoopSpan) {
        self.of(class)[span.start as usize..=span.end as usize].iter_mut().for_each(|c| *c += 1);
    }
}

fn rewrite(
    program: &mut MachineProgram,
    tier: Tier,
    constants: &[(Reg, Constant)],
    index: &Numbers,
    homes: &[Home],
    mut pressure: Pressure,
    pool: &mut Pool,
) {
    let items = std::mem::take(&mut program.items);
    // A loop may be entered by a jump past its first items.
    let is_jump = |at: usize| matches!(items[at], Item::Jump(Opcode::Jmp, _));
    let entered = |start: usize| if start > 0 && is_jump(start - 1) { start - 1 } else { start };
    let mut entries: Vec<(usize, &Home)> = homes.iter().map(|home| (entered(home.span.start as usize), home)).collect();
    entries.sort_by_key(|&(entry, _)| entry);
    let mut entries = entries.into_iter().peekable();
    let mut out = Vec::with_capacity(items.len() + constants.len());
    let mut loaded: SmallVec<[Loaded; 8]> = SmallVec::new();
    for (at, &item) in items.iter().enumerate() {
        if matches!(item, Item::Enter(_) | Item::Leave | Item::Label(_)) {
            loaded.clear();
        }
        while let Some((_, home)) = entries.next_if(|&(entry, _)| entry == at) {
            load(program, tier, home.reg, &constants[home.constant].1, pool, &mut out);
        }
        let mut used: SmallVec<[(Reg, usize); 4]> = SmallVec::new();
        item.uses(|r| {
            if let Some(n) = index.of(r)
                && !used.contains(&(r, n))
            {
                used.push((r, n));
            }
        });
        let mut item = item;
        for (reg, n) in used {
            let holds = |home: &&Home| home.constant == n && (home.span.start..=home.span.end).contains(&(at as u32));
            if let Some(home) = homes.iter().find(holds) {
                item = renamed(item, reg, home.reg);
                continue;
            }
            let class = program.classes[reg.0 as usize];
            if let Some(last) = loaded.iter_mut().find(|l| l.constant == n) {
                let span = LoopSpan { start: last.used, end: at as u32 };
                if pressure.fits(class, span) {
                    pressure.add(class, span);
                    last.used = at as u32;
                    item = renamed(item, reg, last.reg);
                    continue;
                }
            }
            let constant = &constants[n].1;
            if let Some(folded) = fold(item, reg, constant, tier, pool) {
                item = folded;
                continue;
            }
            let here = program.reg(class);
            load(program, tier, here, constant, pool, &mut out);
            loaded.retain(|l| l.constant != n);
            loaded.push(Loaded { constant: n, reg: here, used: at as u32 });
            item = renamed(item, reg, here);
        }
        out.push(item);
    }
    program.items = out;
}

/// The item with the constant as an operand in memory; `None` if it takes none.
fn fold(item: Item, reg: Reg, constant: &Constant, tier: Tier, pool: &mut Pool) -> Option<Item> {
    let is_reg = |a: &Arg| matches!(a, Arg::Reg(r, _) if *r == reg);
    match item {
        Item::Inst(mut inst) => {
            let place = inst.foldable()?;
            if inst.args.iter().filter(|a| is_reg(a)).count() != 1 || !is_reg(&inst.args[place]) {
                return None;
            }
            inst.args[place] = operand(constant, inst.opcode.row().memory, tier, pool)?;
            Some(Item::Inst(inst))
        }
        Item::Fma { to, a, b, c, double } => {
            let memory = Memory::Each(if double { 8 } else { 4 });
            let in_memory = |x: &Arg| matches!(x, Arg::Mem(..) | Arg::Pool(..));
            if a == reg || (is_reg(&b) && is_reg(&c)) || in_memory(&b) || in_memory(&c) {
                return None;
            }
            let memory = operand(constant, memory, tier, pool)?;
            let (b, c) = if is_reg(&c) { (b, memory) } else { (memory, c) };
            Some(Item::Fma { to, a, b, c, double })
        }
        _ => None,
    }
}

/// The constant as an operand in memory; `None` if its element is wider than the instruction's.
fn operand(constant: &Constant, memory: Memory, tier: Tier, pool: &mut Pool) -> Option<Arg> {
    match (constant, memory) {
        (&Constant::Splat(bits, size), Memory::Each(bytes)) if tier.is_512() => {
            let size = u64::from(size);
            let times = bytes / size;
            let element = bits.to_le_bytes()[..size as usize].repeat(times as usize);
            (times > 0).then(|| Arg::Pool(pool.entry(element), true))
        }
        (&Constant::Splat(bits, size), _) => {
            let size = u64::from(size);
            let all = bits.to_le_bytes()[..size as usize].repeat((tier.bytes() / size) as usize);
            Some(Arg::Pool(pool.entry(all), false))
        }
        (Constant::Bytes(all), _) if all.len() as u64 == tier.bytes() => {
            Some(Arg::Pool(pool.entry(all.clone()), false))
        }
        _ => None,
    }
}

/// Loads a constant into a register.
fn load(program: &mut MachineProgram, tier: Tier, to: Reg, constant: &Constant, pool: &mut Pool, out: &mut Vec<Item>) {
    let full = Arg::Reg(to, tier.view());
    let mut emit = |opcode, args: &[Arg]| out.push(Item::Inst(Inst::new(opcode, args)));
    match constant {
        Constant::Mask(bits) => {
            let number = program.reg(Class::General);
            out.push(Item::Inst(Inst::number(number, *bits as i64)));
            let args = [Arg::Reg(to, View::K), Arg::Reg(number, View::R64)];
            out.push(Item::Inst(Inst::new(Opcode::KmovqOf, &args)));
        }
        Constant::Splat(0, _) => emit(Opcode::Zero, &[full, full, full]),
        Constant::Splat(bits, size) => {
            let opcode = match size {
                1 => Opcode::Vpbroadcastb,
                2 => Opcode::Vpbroadcastw,
                4 => Opcode::Vpbroadcastd,
                _ => Opcode::Vpbroadcastq,
            };
            let element = pool.entry(bits.to_le_bytes()[..usize::from(*size)].to_vec());
            emit(opcode, &[full, Arg::Pool(element, false)]);
        }
        Constant::Bytes(bytes) => {
            let entry = Arg::Pool(pool.entry(bytes.clone()), false);
            let (opcode, view) = match bytes.len() {
                64 => (Opcode::Vmovdqu32, View::Zmm),
                32 => (Opcode::VmovdquYmm, View::Ymm),
                _ => (Opcode::VmovdquXmm, View::Xmm),
            };
            emit(opcode, &[Arg::Reg(to, view), entry]);
        }
    }
}

/// The item with register `to` in place of register `from` among those it reads.
fn renamed(item: Item, from: Reg, to: Reg) -> Item {
    let reg = |r: Reg| if r == from { to } else { r };
    let arg = |a: Arg| match a {
        Arg::Reg(r, view) => Arg::Reg(reg(r), view),
        other => other,
    };
    match item {
        Item::Inst(i) => Item::Inst(Inst { args: i.args.map(arg), mask: i.mask.map(reg), ..i }),
        Item::Copy { to: written, from } => Item::Copy { to: written, from: reg(from) },
        Item::Fma { to: written, a, b, c, double } => {
            Item::Fma { to: written, a: reg(a), b: arg(b), c: arg(c), double }
        }
        other => other,
    }
}
