//! List scheduling: orders instructions in loops so that dependent chains overlap.
//!
//! A core looks ahead a few dozen instructions. Chains that are longer (an exponential) would run one after the other
//! if they stood one after the other.
//!
//! If a run has many loads from a view with holes, all its instructions stay in the order of memory: a prefetcher
//! follows no other, and early loads fill the registers. Rows of 1,024 elements that lie 32 bytes apart took three
//! times as long in another order.

use super::code::{Address, Class, Inst, Item, MachineProgram, Reg};
use super::live::{Interval, intervals, loops};
use super::table::{Opcode, fma};
use super::tier::Tier;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Range;

/// The instructions of a run that is too short to gain by an order, and of one that would take too long to order.
const FEW: usize = 16;
const MANY: usize = 512;

/// The loads from views with holes beyond which a run keeps its order.
const MANY_IN_ORDER: usize = 32;

/// The instructions that a core looks ahead: it begins a chain that stands further behind only when the one before it ends.
const LOOKS_AHEAD: usize = 192;

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
/// one with the longest chain of dependent instructions. If a long run needs too many masks that way, comparisons wait for
/// the instructions that need them. If it needs too many registers, loads and copies of constants do; if that order needs
/// too many too, the run keeps its own.
pub fn order(program: &mut MachineProgram, tier: Tier) {
    let mut depth = 0;
    let mut start = 0;
    let mut registers = Registers::of(program);
    let mut live: Option<Vec<Interval>> = None;
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
            let live = live.get_or_insert_with(|| intervals(program, &loops(program), &[]));
            let run = Run::of(program, start..at, tier);
            let room = room(&run, (tier, live), &mut registers);
            if let Some(order) = chosen_order(&run, room, &mut registers) {
                let ordered: Vec<Item> = order.into_iter().map(|from| run.items[from as usize]).collect();
                program.items[start..at].copy_from_slice(&ordered);
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

/// A run of instructions without jumps, with the facts of each that an order depends on.
struct Run<'p> {
    program: &'p MachineProgram,
    /// The places of its items in the program.
    range: Range<usize>,
    items: &'p [Item],
    facts: Vec<Facts>,
    /// The registers that items read, one item behind the other.
    reads: Vec<Reg>,
}

/// The facts of an item.
struct Facts {
    /// The end of its registers among those that are read; they begin where those of the item before end.
    reads_end: u32,
    /// The register that it writes.
    writes: Option<Reg>,
    /// The address of elements that it loads or stores, and true if it stores them.
    memory: Option<(Address, bool)>,
    /// Cycles until the result is ready.
    latency: u32,
}

impl<'p> Run<'p> {
    fn of(program: &'p MachineProgram, range: Range<usize>, tier: Tier) -> Run<'p> {
        let items = &program.items[range.clone()];
        let mut reads = Vec::with_capacity(4 * items.len());
        let facts = |item: &Item| {
            item.uses(|reg| reads.push(reg));
            let writes = item.def().map(|(reg, _)| reg);
            Facts { reads_end: reads.len() as u32, writes, memory: item.memory(), latency: latency(item, tier) }
        };
        let facts = items.iter().map(facts).collect();
        Run { program, range, items, facts, reads }
    }

    fn len(&self) -> usize {
        self.items.len()
    }

    /// The registers that an item reads.
    fn reads(&self, at: usize) -> &[Reg] {
        let start = at.checked_sub(1).map_or(0, |before| self.facts[before].reads_end);
        &self.reads[start as usize..self.facts[at].reads_end as usize]
    }

    fn class(&self, reg: Reg) -> Class {
        self.program.classes[reg.0 as usize]
    }

    fn is_constant(&self, reg: Reg) -> bool {
        self.program.constants.iter().any(|(constant, _)| *constant == reg)
    }

    /// Returns true for a copy onto which the next item fixes a number up: early copies would only take registers.
    fn is_fixed_up(&self, at: usize) -> bool {
        let Item::Copy { to, .. } = self.items[at] else { return false };
        let fix = |inst: &Inst| matches!(inst.opcode, Opcode::Vfixupimmps | Opcode::Vfixupimmpd);
        matches!(self.items.get(at + 1), Some(Item::Inst(inst)) if fix(inst) && inst.def() == Some((to, true)))
    }
}

/// The vector registers for a run: some are kept for constants, and some for values that live through it unnamed.
fn room(run: &Run, (tier, live): (Tier, &[Interval]), registers: &mut Registers) -> usize {
    let names = || run.reads.iter().copied().chain(run.facts.iter().filter_map(|facts| facts.writes));
    let named = &mut registers.named;
    names().for_each(|reg| named[reg.0 as usize] = true);
    let is_named = |reg: Reg| named[reg.0 as usize];
    let is_vector = |reg: Reg| run.class(reg) == Class::Vector;
    let has_constants = run.program.constants.iter().any(|&(reg, _)| is_vector(reg) && is_named(reg));
    let lives_through = |n: usize| {
        let reg = Reg(n as u32);
        let through =
            live[n].used && (live[n].start as usize) < run.range.start && live[n].end as usize >= run.range.end;
        through && is_vector(reg) && !is_named(reg)
    };
    let has_others = (0..live.len()).any(lives_through);
    names().for_each(|reg| named[reg.0 as usize] = false);
    let kept = [(has_constants, FOR_CONSTANTS), (has_others, FOR_OTHERS)];
    tier.registers() - kept.into_iter().filter(|(is_kept, _)| *is_kept).map(|(_, count)| count).sum::<usize>()
}

/// The most registers of a class that are live at once.
#[derive(Clone, Copy)]
struct AtOnce {
    vectors: usize,
    masks: usize,
}

/// The most registers that are live at once in an order of a run, as the allocator counts: each from the first item that
/// names it to the last, and through the whole run if it is read before it is written.
fn at_once(run: &Run, order: impl Iterator<Item = u32>, registers: &mut Registers) -> AtOnce {
    let (first, last) = (&mut registers.writer, &mut registers.last_use);
    let mut named: Vec<Reg> = Vec::with_capacity(run.len());
    for (at, item) in (0..).zip(order) {
        let item = item as usize;
        let mut name = |reg: Reg, whole: bool| {
            let n = reg.0 as usize;
            if first[n].is_none() {
                named.push(reg);
                (first[n], last[n]) = if whole { (Some(0), run.len() as u32) } else { (Some(at), at) };
            }
            last[n] = last[n].max(at);
        };
        run.reads(item).iter().for_each(|&reg| name(reg, true));
        if let Some(reg) = run.facts[item].writes {
            name(reg, false);
        }
    }
    // What begins at each place, less what has ended there.
    let mut changes = vec![[0i32; 2]; run.len() + 1];
    for reg in named {
        let start = first[reg.0 as usize].take().expect("a named register");
        let class = match run.class(reg) {
            Class::Vector => 0,
            Class::Mask => 1,
            Class::General => continue,
        };
        changes[start as usize][class] += 1;
        changes[last[reg.0 as usize].max(start + 1) as usize][class] -= 1;
    }
    let (mut held, mut most) = ([0; 2], [0; 2]);
    for by in changes {
        held = [held[0] + by[0], held[1] + by[1]];
        most = [most[0].max(held[0]), most[1].max(held[1])];
    }
    AtOnce { vectors: most[0] as usize, masks: most[1] as usize }
}

/// The new order of a run, in which at most `room` vectors are live at once if there is one; `None` for its own order.
fn chosen_order(run: &Run, room: usize, registers: &mut Registers) -> Option<Vec<u32>> {
    let (mut way, mut order, cycles) = by_chains(run, registers);
    let mut chains = at_once(run, order.iter().copied(), registers);
    if chains.masks > MASKS && run.len() > LOOKS_AHEAD {
        way.late_masks = true;
        order = Graph::of(run, way, registers).order();
        chains = at_once(run, order.iter().copied(), registers);
    }
    if chains.vectors <= room && chains.masks <= MASKS {
        return Some(order);
    }
    let own = at_once(run, 0..run.len() as u32, registers);
    let may = |live: AtOnce| own.masks > MASKS || live.masks <= MASKS;
    if chains.vectors <= room && may(chains) {
        return Some(order);
    }
    let late = Graph::of(run, Way { late: true, ..way }, registers).order();
    let late_live = at_once(run, late.iter().copied(), registers);
    let (order, live) = if late_live.vectors < chains.vectors { (late, late_live) } else { (order, chains) };
    if !may(live) {
        return None;
    }
    let width = live.vectors;
    (width <= room || cycles > SHORT || own.vectors > room.max(width)).then_some(order)
}

/// A way to order a run.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// A load waits for the last store to the same object; else for the last store.
    by_object: bool,
    /// Loads and copies of constants stand before the first instruction that needs them; else where their chain says.
    late: bool,
    /// The same of comparisons that write masks.
    late_masks: bool,
}

/// The order by chains and the cycles of the longest. Long chains begin before the stores of others; loads of short ones
/// stay behind them, as memory is walked: maxima of columns of f64, which take a load and a store each, took twice as
/// long with their loads together.
fn by_chains(run: &Run, registers: &mut Registers) -> (Way, Vec<u32>, u32) {
    let together = Way { by_object: false, late: false, late_masks: false };
    let apart = Way { by_object: true, ..together };
    let kinds = run.facts.iter().filter_map(|facts| facts.memory.map(|(_, stores)| stores));
    // No load stands behind a store.
    if !kinds.is_sorted() {
        let graph = Graph::of(run, apart, registers);
        let cycles = graph.cycles();
        if cycles > LONG {
            return (apart, graph.order(), cycles);
        }
    }
    let graph = Graph::of(run, together, registers);
    let cycles = graph.cycles();
    (together, graph.order(), cycles)
}

/// Facts of each register in a run; none between runs.
struct Registers {
    /// The last item that wrote it.
    writer: Vec<Option<u32>>,
    /// The last read of its value, by its number among the reads of the run.
    last_read: Vec<Option<u32>>,
    /// The last item that reads its value.
    last_use: Vec<u32>,
    /// True if the run names it.
    named: Vec<bool>,
}

impl Registers {
    fn of(program: &MachineProgram) -> Registers {
        let count = program.classes.len();
        Registers {
            writer: vec![None; count],
            last_read: vec![None; count],
            last_use: vec![0; count],
            named: vec![false; count],
        }
    }
}

/// A store of a run.
struct Store {
    address: Address,
    at: usize,
    /// The item of the run that wrote the base, if one did.
    base_by: Option<u32>,
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

/// The items of a run, and which wait for which in a way to order them.
struct Graph {
    /// The number of items that each waits for.
    waits: Vec<u32>,
    after: Edges,
    /// Cycles of the longest chain that begins at each item's end.
    length: Vec<u32>,
    /// True for each item that stands before the first instruction that needs it.
    is_late: Vec<bool>,
    /// For each item, the late ones whose results it reads; empty if none is late.
    late_before: Vec<Vec<usize>>,
}

impl Graph {
    fn of(run: &Run, Way { by_object, late, late_masks }: Way, registers: &mut Registers) -> Graph {
        let mut edges: Vec<(u32, Edge)> = Vec::with_capacity(4 * run.len());
        let mut waits = vec![0u32; run.len()];
        let is_late =
            |at: usize| (late || run.is_fixed_up(at)) && only_begins(run, at) || late_masks && compares(run, at);
        let is_late: Vec<bool> = (0..run.len()).map(is_late).collect();
        let mut late_before: Vec<Vec<usize>> = vec![vec![]; if is_late.contains(&true) { run.len() } else { 0 }];
        let mut edge_of = |from: usize, to: usize, latency: u32, reads: bool| {
            edges.push((from as u32, Edge { to: to as u32, latency: latency as u16, reads }));
            if reads && is_late[from] {
                late_before[to].push(from);
            }
            waits[to] += 1;
        };
        let Registers { writer, last_read, .. } = registers;
        // The item of each read, and the read of the same value before it.
        let mut reads: Vec<(u32, Option<u32>)> = Vec::with_capacity(run.reads.len());
        // Stores keep their order, and come after the loads before them.
        let (mut stores, mut loads): (Vec<Store>, Vec<usize>) = (vec![], vec![]);
        let mut last_general: Option<usize> = None;
        // A core follows a few dozen misses at once. Many prefetches in a row would make loads wait, so that each keeps its
        // place between loads.
        let mut prefetch: Option<usize> = None;
        for (at, &Facts { writes, memory, .. }) in run.facts.iter().enumerate() {
            for reg in run.reads(at) {
                let n = reg.0 as usize;
                if let Some(from) = writer[n] {
                    edge_of(from as usize, at, run.facts[from as usize].latency, true);
                }
                reads.push((at as u32, last_read[n].replace(reads.len() as u32)));
            }
            let mut edge = |from: usize, to: usize, latency: u32| edge_of(from, to, latency, false);
            if let Some(reg) = writes {
                let n = reg.0 as usize;
                let mut read = last_read[n].take();
                while let Some((reader, before)) = read.map(|read| reads[read as usize]) {
                    if reader as usize != at {
                        edge(reader as usize, at, 0);
                    }
                    read = before;
                }
                if let Some(from) = writer[n].replace(at as u32).filter(|&from| from as usize != at) {
                    edge(from as usize, at, 1);
                }
            }
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
                        !by_object || run.program.may_overlap(store.address, address, is_same)
                    };
                    stores.iter().rev().find(may_change).iter().for_each(|store| edge(store.at, at, 1));
                    prefetch.iter().for_each(|&before| edge(before, at, 0));
                    loads.push(at);
                }
                None if is_prefetch(&run.items[at]) => {
                    loads.last().iter().for_each(|&&load| edge(load, at, 0));
                    prefetch = Some(at);
                }
                None => {}
            }
            let stores_memory = matches!(memory, Some((_, true)));
            // Instructions on general registers share the flags.
            let general = match writes {
                Some(reg) => run.class(reg) == Class::General,
                None => !stores_memory,
            };
            if general {
                if let Some(before) = last_general {
                    edge(before, at, 0);
                }
                last_general = Some(at);
            }
        }
        run.reads.iter().for_each(|reg| last_read[reg.0 as usize] = None);
        run.facts.iter().filter_map(|facts| facts.writes).for_each(|reg| writer[reg.0 as usize] = None);
        let after = Edges::of(&edges, run.len());
        let mut length = vec![0u32; run.len()];
        for at in (0..run.len()).rev() {
            let through = |edge: &Edge| length[edge.to as usize] + u32::from(edge.latency);
            length[at] = after.from(at).iter().map(through).max().unwrap_or(0);
        }
        Graph { waits, after, length, is_late, late_before }
    }

    /// Cycles of the longest chain.
    fn cycles(&self) -> u32 {
        self.length.iter().copied().max().unwrap_or(0)
    }

    /// The order of the items.
    fn order(self) -> Vec<u32> {
        let Graph { mut waits, after, length, is_late, late_before } = self;
        let items = waits.len();
        // The ready items, by the chains that wait for them; then the other items, by the time when their operands are
        // ready.
        let mut ready: BinaryHeap<(u32, Reverse<usize>)> = BinaryHeap::with_capacity(items);
        let mut later: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::with_capacity(items);
        let mut time = vec![0u32; items];
        (0..items).filter(|&at| waits[at] == 0).for_each(|at| later.push(Reverse((0, at))));
        let (mut now, mut begun) = (0, 0);
        let mut out = Vec::with_capacity(items);
        // Late items that may begin: what reads them is ready too.
        let mut put_off: BTreeSet<usize> = BTreeSet::new();
        let mut group: Vec<usize> = vec![];
        while out.len() < items {
            while let Some(&Reverse((at_time, at))) = later.peek() {
                if at_time > now {
                    break;
                }
                later.pop();
                ready.push((length[at], Reverse(at)));
            }
            let next = ready.pop().map(|(_, Reverse(at))| at);
            let Some(next) = next.or_else(|| put_off.first().copied().filter(|_| later.is_empty())) else {
                now = later.peek().map_or(now, |&Reverse((at_time, _))| at_time);
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
            with_late(next, &late_before, &mut group);
            for at in group.drain(..) {
                if is_late[at] && !put_off.remove(&at) {
                    continue;
                }
                out.push(at as u32);
                begun += 1;
                release(at, now, &|edge| !is_late[at] || !edge.reads);
                if begun == WIDTH {
                    now += 1;
                    begun = 0;
                }
            }
        }
        out
    }
}

/// Adds an item, behind the late ones whose results it needs.
fn with_late(at: usize, late_before: &[Vec<usize>], group: &mut Vec<usize>) {
    late_before.get(at).into_iter().flatten().for_each(|&late| with_late(late, late_before, group));
    group.push(at);
}

/// Returns true for a prefetch.
fn is_prefetch(item: &Item) -> bool {
    matches!(item, Item::Inst(inst) if matches!(inst.opcode, Opcode::Prefetcht0 | Opcode::Prefetcht1))
}

/// Returns true for a comparison of vectors in registers, of all their lanes.
fn compares(run: &Run, at: usize) -> bool {
    let (item, facts) = (&run.items[at], &run.facts[at]);
    let writes_mask = facts.writes.is_some_and(|reg| run.class(reg) == Class::Mask);
    let is_of_vectors = || run.reads(at).iter().all(|&reg| run.class(reg) == Class::Vector);
    matches!(item, Item::Inst(_)) && writes_mask && facts.memory.is_none() && is_of_vectors()
}

/// Returns true if an item only begins the life of a vector: it loads one, or copies a constant.
fn only_begins(run: &Run, at: usize) -> bool {
    let (item, facts) = (&run.items[at], &run.facts[at]);
    let Some((to, false)) = item.def() else { return false };
    if run.class(to) != Class::Vector || !matches!(item, Item::Copy { .. } | Item::Inst(_)) {
        return false;
    }
    let is_other = |&reg: &Reg| run.class(reg) != Class::General && !run.is_constant(reg);
    !run.reads(at).iter().any(is_other) && facts.memory.is_none_or(|(_, stores)| !stores)
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
