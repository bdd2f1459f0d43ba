//! List scheduling: orders instructions in loops so that dependent chains overlap.
//!
//! A core looks ahead a few dozen instructions. Chains that are longer (an exponential) would run one after the other
//! if they stood one after the other.
//!
//! If a run has many loads from a view with holes, all its instructions stay in the order of memory: a prefetcher
//! follows no other, and early loads fill the registers. Rows of 1,024 elements that lie 32 bytes apart took three
//! times as long in another order.

use super::code::{Address, Class, Item, MachineProgram, Reg};
use super::live::{Interval, intervals, loops};
use super::table::{Opcode, fma};
use super::tier::Tier;
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The instructions of a run that is too short to gain by an order, and of one that would take too long to order.
const FEW: usize = 16;
const MANY: usize = 512;

/// The loads from views with holes beyond which a run keeps its order.
const MANY_IN_ORDER: usize = 32;

/// Registers for masks.
const MASKS: usize = 7;

/// The cycles of a chain beyond which spilling values to memory is better than waiting for them.
const SHORT: u32 = 40;

/// The cycles of a chain beyond which loads of later chains go before the stores of earlier ones. An exponential has 62.
const LONG: u32 = 50;

/// Cycles from a load, or an instruction with an operand in memory, to its result.
const LOAD_CYCLES: u32 = 7;

/// Instructions that begin in one cycle.
const WIDTH: u32 = 3;

/// Registers that are kept for a constant, and to load others, in a run that names any: what `constants` asks for.
const FOR_CONSTANTS: usize = 2;

/// Registers that are kept for values which live through a run without being named in it, if there are any: the frame
/// holds them, and the instructions that need one load it.
const FOR_OTHERS: usize = 2;

/// Orders each run of instructions without jumps inside loops: of the instructions whose operands are ready, first the
/// one with the longest chain of dependent instructions. If that order needs too many registers, loads and
/// copies of constants wait for the instructions that need them; if that order needs too many too, the run keeps its own.
pub fn order(program: &mut MachineProgram, tier: Tier) {
    let mut depth = 0;
    let mut start = 0;
    let mut registers = Registers::of(program);
    let live = intervals(program, &loops(program), &[]);
    for at in 0..=program.items.len() {
        let ends = match program.items.get(at) {
            None => true,
            Some(item) => matches!(item, Item::Enter(_) | Item::Leave | Item::Label(_) | Item::Jump(..)),
        };
        if !ends {
            continue;
        }
        let in_order = program.items[start..at].iter().filter(|item| matches!(item, Item::Inst(i) if i.in_order));
        if depth > 0 && (FEW..=MANY).contains(&(at - start)) && in_order.count() <= MANY_IN_ORDER {
            let run: Vec<Item> = program.items[start..at].to_vec();
            let room = room(&run, (start, at), program, (tier, &live));
            if let Some(order) = chosen_order(&run, program, (tier, room), &mut registers) {
                program.items[start..at].copy_from_slice(&order);
            }
        }
        match program.items.get(at) {
            Some(Item::Enter(_)) => depth += 1,
            Some(Item::Leave) => depth -= 1,
            _ => {}
        }
        start = at + 1;
    }
}

/// The vector registers for a run: some are kept for constants, and some for values that live through it unnamed.
fn room(
    run: &[Item],
    (start, end): (usize, usize),
    program: &MachineProgram,
    (tier, live): (Tier, &[Interval]),
) -> usize {
    let mut named = FxHashSet::default();
    for item in run {
        item.uses(|reg| {
            named.insert(reg);
        });
        named.extend(item.def().map(|(reg, _)| reg));
    }
    let is_vector = |reg: Reg| program.classes[reg.0 as usize] == Class::Vector;
    let has_constants = program.constants.iter().any(|&(reg, _)| is_vector(reg) && named.contains(&reg));
    let lives_through = |n: usize| {
        let reg = Reg(n as u32);
        let through = live[n].used && (live[n].start as usize) < start && live[n].end as usize >= end;
        through && is_vector(reg) && !named.contains(&reg)
    };
    let has_others = (0..live.len()).any(lives_through);
    let kept = [(has_constants, FOR_CONSTANTS), (has_others, FOR_OTHERS)];
    tier.registers() - kept.into_iter().filter(|(is_kept, _)| *is_kept).map(|(_, count)| count).sum::<usize>()
}

/// The most registers of a class that are live at once in a run, as the allocator counts: each from the first item that
/// names it to the last, and through the whole run if it is read before it is written.
fn at_once(run: &[Item], class: Class, program: &MachineProgram, registers: &mut Registers) -> usize {
    let is_of_class = |reg: Reg| program.classes[reg.0 as usize] == class;
    let (first, last) = (&mut registers.writer, &mut registers.last_use);
    let mut named: Vec<Reg> = vec![];
    for (at, item) in run.iter().enumerate() {
        let mut name = |reg: Reg, whole: bool| {
            let n = reg.0 as usize;
            if !is_of_class(reg) {
                return;
            }
            if first[n].is_none() {
                named.push(reg);
                (first[n], last[n]) = if whole { (Some(0), Some(run.len())) } else { (Some(at), Some(at)) };
            }
            last[n] = last[n].max(Some(at));
        };
        item.uses(|reg| name(reg, true));
        if let Some((reg, _)) = item.def() {
            name(reg, false);
        }
    }
    let mut change = vec![0i32; run.len() + 1];
    for reg in named {
        let start = first[reg.0 as usize].take().expect("a named register");
        let end = last[reg.0 as usize].take().expect("a named register");
        change[start] += 1;
        change[end.max(start + 1)] -= 1;
    }
    let held = change.into_iter().scan(0, |held, by| {
        *held += by;
        Some(*held)
    });
    held.max().unwrap_or(0) as usize
}

/// The new order of a run, in which at most `room` vectors are live at once if there is one; `None` for its own order.
fn chosen_order(
    run: &[Item],
    program: &MachineProgram,
    (tier, room): (Tier, usize),
    registers: &mut Registers,
) -> Option<Vec<Item>> {
    let in_order = |order: Vec<usize>| order.into_iter().map(|from| run[from]).collect::<Vec<Item>>();
    let (way, order, cycles) = by_chains(run, program, tier, registers);
    let order = in_order(order);
    let masks = |order: &[Item], registers: &mut Registers| at_once(order, Class::Mask, program, registers);
    let vectors = |order: &[Item], registers: &mut Registers| at_once(order, Class::Vector, program, registers);
    let keeps_masks = |order: &[Item], registers: &mut Registers| masks(order, registers) <= MASKS;
    let has_masks = keeps_masks(run, registers);
    let may = |order: &[Item], registers: &mut Registers| !has_masks || keeps_masks(order, registers);
    let width = vectors(&order, registers);
    if width <= room && may(&order, registers) {
        return Some(order);
    }
    let late = in_order(ordered(run, program, Way { late: true, ..way }, tier, registers).0);
    let late_width = vectors(&late, registers);
    let (order, width) = if late_width < width { (late, late_width) } else { (order, width) };
    if !may(&order, registers) {
        return None;
    }
    let own = vectors(run, registers);
    (width <= room || cycles > SHORT || own > room.max(width)).then_some(order)
}

/// A way to order a run.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// A load waits for the last store to the same object; else for the last store.
    by_object: bool,
    /// Loads and copies of constants stand before the first instruction that needs them; else where their chain says.
    late: bool,
}

/// The order by chains and the cycles of the longest. Long chains begin before the stores of others; loads of short ones
/// stay behind them, as memory is walked: maxima of columns of f64, which take a load and a store each, took twice as
/// long with their loads together.
fn by_chains(run: &[Item], program: &MachineProgram, tier: Tier, registers: &mut Registers) -> (Way, Vec<usize>, u32) {
    let (apart, together) = (Way { by_object: true, late: false }, Way { by_object: false, late: false });
    let kinds = run.iter().filter_map(|item| item.memory().map(|(_, stores)| stores));
    // No load stands behind a store.
    if !kinds.is_sorted() {
        let (order, cycles) = ordered(run, program, apart, tier, registers);
        if cycles > LONG {
            return (apart, order, cycles);
        }
    }
    let (order, cycles) = ordered(run, program, together, tier, registers);
    (together, order, cycles)
}

/// Facts of each register in a run; none between runs.
struct Registers {
    /// The last item that wrote it.
    writer: Vec<Option<usize>>,
    /// The items that have read it since.
    readers: Vec<Vec<usize>>,
    /// The last item that reads its value.
    last_use: Vec<Option<usize>>,
}

impl Registers {
    fn of(program: &MachineProgram) -> Registers {
        let count = program.classes.len();
        Registers { writer: vec![None; count], readers: vec![vec![]; count], last_use: vec![None; count] }
    }
}

/// A store of a run.
struct Store {
    address: Address,
    at: usize,
    /// The item of the run that wrote the base, if one did.
    base_by: Option<usize>,
}

/// An item that waits for another.
#[derive(Clone, Copy, Debug, Default)]
struct Edge {
    to: u32,
    /// Cycles.
    latency: u16,
    /// True if it reads the other's result.
    reads: bool,
}

/// The items that wait for each item of a run.
struct Edges {
    /// The number of the first edge of each item, and of the end.
    starts: Vec<u32>,
    all: Vec<Edge>,
}

impl Edges {
    /// The edges of a run of `items` items, each with the item that it begins at.
    fn of(found: &[(u32, Edge)], items: usize) -> Edges {
        let mut starts = vec![0; items + 2];
        found.iter().for_each(|(from, _)| starts[*from as usize + 2] += 1);
        for at in 2..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut all = vec![Edge::default(); found.len()];
        for (from, edge) in found {
            let next = &mut starts[*from as usize + 1];
            all[*next as usize] = *edge;
            *next += 1;
        }
        Edges { starts, all }
    }

    /// The edges of an item.
    fn from(&self, item: usize) -> &[Edge] {
        &self.all[self.starts[item] as usize..self.starts[item + 1] as usize]
    }
}

/// The order of a run, and the cycles of its longest chain.
fn ordered(
    run: &[Item],
    program: &MachineProgram,
    Way { by_object, late }: Way,
    tier: Tier,
    registers: &mut Registers,
) -> (Vec<usize>, u32) {
    let mut edges: Vec<(u32, Edge)> = Vec::with_capacity(3 * run.len());
    let mut loaded_by: Vec<Vec<usize>> = vec![vec![]; if late { run.len() } else { 0 }];
    let mut waits = vec![0u32; run.len()];
    let is_late: Vec<bool> = run.iter().map(|item| late && only_begins(item, program)).collect();
    let mut edge_of = |from: usize, to: usize, latency: u32, reads: bool| {
        edges.push((from as u32, Edge { to: to as u32, latency: latency as u16, reads }));
        if reads && is_late[from] {
            loaded_by[to].push(from);
        }
        waits[to] += 1;
    };
    let Registers { writer, readers, .. } = registers;
    // Stores keep their order, and come after the loads before them.
    let (mut stores, mut loads): (Vec<Store>, Vec<usize>) = (vec![], vec![]);
    let mut last_general: Option<usize> = None;
    for (at, item) in run.iter().enumerate() {
        let def = item.def();
        item.uses(|r| {
            if let Some(from) = writer[r.0 as usize] {
                edge_of(from, at, latency(&run[from], tier), true);
            }
            readers[r.0 as usize].push(at);
        });
        let mut edge = |from: usize, to: usize, latency: u32| edge_of(from, to, latency, false);
        if let Some((r, _)) = def {
            let n = r.0 as usize;
            readers[n].iter().filter(|&&reader| reader != at).for_each(|&reader| edge(reader, at, 0));
            if let Some(from) = writer[n].filter(|&from| from != at) {
                edge(from, at, 1);
            }
            readers[n].clear();
            writer[n] = Some(at);
        }
        let memory = item.memory();
        match memory {
            Some((address, true)) => {
                loads.drain(..).for_each(|load| edge(load, at, 0));
                stores.last().iter().for_each(|store| edge(store.at, at, u32::from(!by_object)));
                stores.push(Store { address, at, base_by: writer[address.base.0 as usize] });
            }
            Some((address, false)) => {
                let may_change = |store: &&Store| {
                    let is_same = store.address.base == address.base;
                    let is_same = is_same && store.base_by == writer[address.base.0 as usize];
                    !by_object || program.may_overlap(store.address, address, is_same)
                };
                stores.iter().rev().find(may_change).iter().for_each(|store| edge(store.at, at, 1));
                loads.push(at);
            }
            None => {}
        }
        let stores_memory = matches!(memory, Some((_, true)));
        // Instructions on general registers share the flags.
        let general = match def {
            Some((r, _)) => program.classes[r.0 as usize] == Class::General,
            None => !stores_memory,
        };
        if general {
            if let Some(before) = last_general {
                edge(before, at, 0);
            }
            last_general = Some(at);
        }
    }
    for item in run {
        item.uses(|r| readers[r.0 as usize].clear());
        if let Some((r, _)) = item.def() {
            writer[r.0 as usize] = None;
        }
    }
    let after = Edges::of(&edges, run.len());
    let mut length = vec![0u32; run.len()];
    for at in (0..run.len()).rev() {
        let through = |edge: &Edge| length[edge.to as usize] + u32::from(edge.latency);
        length[at] = after.from(at).iter().map(through).max().unwrap_or(0);
    }
    // The ready items, by the chains that wait for them; then the other items, by the time when their operands are
    // ready.
    let mut ready: BinaryHeap<(u32, Reverse<usize>)> = BinaryHeap::new();
    let mut later: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
    let mut time = vec![0u32; run.len()];
    (0..run.len()).filter(|&at| waits[at] == 0).for_each(|at| later.push(Reverse((0, at))));
    let (mut now, mut begun) = (0, 0);
    let mut out = Vec::with_capacity(run.len());
    // Late items that may begin: what reads them is ready too.
    let mut put_off: BTreeSet<usize> = BTreeSet::new();
    while out.len() < run.len() {
        while let Some(&Reverse((at_time, at))) = later.peek() {
            if at_time > now {
                break;
            }
            later.pop();
            ready.push((length[at], Reverse(at)));
        }
        let next = ready.pop().map(|(_, Reverse(at))| at);
        let Some(next) = next.or_else(|| put_off.first().copied().filter(|_| later.is_empty())) else {
            now += 1;
            begun = 0;
            continue;
        };
        let mut release = |at: usize, now: u32, is_released: &dyn Fn(&Edge) -> bool| {
            for edge in after.from(at).iter().filter(|edge| is_released(edge)) {
                let to = edge.to as usize;
                time[to] = time[to].max(now + u32::from(edge.latency));
                waits[to] -= 1;
                if waits[to] == 0 {
                    later.push(Reverse((time[to], to)));
                }
            }
        };
        if is_late[next] && put_off.insert(next) {
            release(next, now, &|edge| edge.reads);
            continue;
        }
        let loaded = loaded_by.get(next).into_iter().flatten().copied();
        for at in loaded.chain([next]) {
            if is_late[at] && !put_off.remove(&at) {
                continue;
            }
            out.push(at);
            begun += 1;
            release(at, now, &|edge| !is_late[at] || !edge.reads);
            if begun == WIDTH {
                now += 1;
                begun = 0;
            }
        }
    }
    (out, length.into_iter().max().unwrap_or(0))
}

/// Returns true if an item only begins the life of a vector: it loads one, or copies a constant.
fn only_begins(item: &Item, program: &MachineProgram) -> bool {
    let Some((to, false)) = item.def() else { return false };
    if program.classes[to.0 as usize] != Class::Vector {
        return false;
    }
    let mut others = 0;
    let is_constant = |reg: Reg| program.constants.iter().any(|(constant, _)| *constant == reg);
    item.uses(|reg| others += usize::from(program.classes[reg.0 as usize] != Class::General && !is_constant(reg)));
    others == 0 && matches!(item, Item::Copy { .. } | Item::Inst(_)) && item.memory().is_none_or(|(_, stores)| !stores)
}

/// The approximate cycles until the result is ready.
fn latency(item: &Item, tier: Tier) -> u32 {
    match item {
        Item::Fma { double, .. } => cycles(fma(*double).adds_to, tier),
        Item::Copy { .. } => 0,
        Item::Inst(inst) if inst.memory().0 => LOAD_CYCLES,
        Item::Inst(inst) => cycles(inst.opcode, tier),
        _ => 1,
    }
}

fn cycles(opcode: Opcode, tier: Tier) -> u32 {
    opcode.row().form(tier).map_or(1, |form| form.cycles)
}
