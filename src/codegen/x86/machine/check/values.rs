//! Comparison of a program before and after a pass, by symbolic execution of each run.
//!
//! At the start of a run a register has an unknown value, the same in both programs. Let the runs store the same values
//! at the same addresses in the same order, and let all registers that a later run may read hold the same values at the
//! end. Then the same holds at the start of every following run, and the programs are equal. Values are equal if they
//! are the same operation on equal values; loads are equal if as many stores of the run that may change them are before
//! both.
//!
//! A register that the pass added may hold a constant from run to run: the constants that reach a run on all paths are
//! found first.

use super::{Runs, ends_run, is_zero};
use crate::codegen::x86::machine::code::{Address, Arg, Constant, Inst, Item, MachineProgram, Reg, View};
use crate::codegen::x86::machine::constants::Pool;
use crate::codegen::x86::machine::row::{First, Flags, Masking, Memory};
use crate::codegen::x86::machine::table::Opcode;
use crate::codegen::x86::machine::tier::Tier;
use rustc_hash::{FxHashMap, FxHashSet};

/// The flags, treated as a register.
const FLAGS: Reg = Reg(u32::MAX);

/// A value; its operands are the numbers of other values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Value {
    /// The value of a register at the start of a run.
    Start(usize, Reg),
    Bytes(Vec<u8>),
    Mask(u64),
    Number(i64),
    Address(u32, i32),
    /// The element at an address after a number of stores of the run that may change it.
    Load(u32, i32, usize),
    Fma(bool, [u32; 3]),
    Result(Opcode, Option<View>, Vec<u32>),
    Flags(Opcode, Vec<u32>),
    /// Lanes of so many bytes: the new ones where the mask is set, else the old ones or zero.
    Merged(u64, u32, Option<u32>, u32),
}

#[derive(Default)]
struct Values {
    numbers: FxHashMap<Value, u32>,
    all: Vec<Value>,
}

impl Values {
    fn number(&mut self, value: Value) -> u32 {
        let all = &mut self.all;
        *self.numbers.entry(value).or_insert_with_key(|value| {
            all.push(value.clone());
            all.len() as u32 - 1
        })
    }

    /// Returns true if a value is the same in all runs.
    fn is_constant(&self, number: u32) -> bool {
        matches!(self.all[number as usize], Value::Bytes(_) | Value::Mask(_) | Value::Number(_))
    }
}

type Held = FxHashMap<Reg, u32>;

/// The effects of a run, which later runs, memory and jumps see.
#[derive(Default)]
struct Run {
    held: Held,
    /// Stores, then hints: the item, and the value of the whole.
    effects: [Vec<(usize, u32)>; 2],
    /// The addresses of stores, and the values of their bases.
    stored_at: Vec<(Address, u32)>,
}

struct Side<'a> {
    program: &'a MachineProgram,
    pool: &'a Pool,
    tier: Tier,
    constants: FxHashMap<Reg, &'a Constant>,
}

/// Checks that a pass kept all values that are read.
pub fn same(before: &MachineProgram, after: &MachineProgram, pool: &Pool, tier: Tier) -> Result<(), String> {
    let (runs, runs_after) = (Runs::of(before), Runs::of(after));
    let ends = |program: &MachineProgram| -> Vec<String> {
        program.items.iter().filter(|item| ends_run(item)).map(|item| format!("{item:?}")).collect()
    };
    if ends(before) != ends(after) {
        return Err("jumps, labels or loops are others".into());
    }
    let none = Pool::default();
    let before = Side::new(before, &none, tier);
    let after = Side::new(after, pool, tier);
    let mut values = Values::default();
    let known = before.program.classes.len();
    let starts = after.constants_at_starts(&runs_after, known, &mut values);
    let live = after.live_at_ends(&runs_after);
    for n in 0..runs.runs.len() {
        let was = before.run(&runs, n, &Held::default(), &mut values);
        let is = after.run(&runs_after, n, &starts[n], &mut values);
        let end = runs_after.runs[n].end;
        for (kind, (was, is)) in ["store", "hint"].into_iter().zip(was.effects.iter().zip(&is.effects)) {
            if let Some((_, &(at, _))) = was.iter().zip(is).find(|(was, is)| was.1 != is.1) {
                return Err(format!("the {kind} of item {at}, {:?}", after.program.items[at]));
            }
            if was.len() != is.len() {
                return Err(format!("{} {kind}s before item {end} where there were {}", is.len(), was.len()));
            }
        }
        let is_known = |reg: &Reg| *reg == FLAGS || (reg.0 as usize) < known;
        let mut read: Vec<Reg> = live[n].iter().copied().filter(is_known).collect();
        read.sort_unstable();
        for reg in read {
            let mut at_end = |run: &Run, side: &Side| match run.held.get(&reg) {
                Some(&value) => value,
                None => side.start(n, reg, &mut values),
            };
            if at_end(&was, &before) != at_end(&is, &after) {
                let name = if reg == FLAGS { "the flags".into() } else { format!("register {}", reg.0) };
                let item = after.program.items.get(end);
                return Err(format!("{name} before item {end}, {item:?}"));
            }
        }
    }
    Ok(())
}

impl<'a> Side<'a> {
    fn new(program: &'a MachineProgram, pool: &'a Pool, tier: Tier) -> Side<'a> {
        let constants = program.constants.iter().map(|(reg, constant)| (*reg, constant)).collect();
        Side { program, pool, tier, constants }
    }

    /// The value of a register at the start of a run.
    fn start(&self, run: usize, reg: Reg, values: &mut Values) -> u32 {
        let value = match self.constants.get(&reg) {
            None => Value::Start(run, reg),
            Some(&&Constant::Mask(bits)) => Value::Mask(bits),
            Some(&&Constant::Splat(bits, size)) => self.vector(&bits.to_le_bytes()[..usize::from(size)], true),
            Some(Constant::Bytes(bytes)) => self.vector(bytes, false),
        };
        values.number(value)
    }

    /// A vector of bytes that repeat, or of bytes with zeros after them.
    fn vector(&self, bytes: &[u8], repeats: bool) -> Value {
        let all = self.tier.bytes() as usize;
        Value::Bytes(match repeats {
            true => bytes.iter().copied().cycle().take(all).collect(),
            false => bytes.iter().copied().chain(std::iter::repeat(0)).take(all).collect(),
        })
    }

    fn run(&self, runs: &Runs, n: usize, start: &Held, values: &mut Values) -> Run {
        let mut run = Run { held: start.clone(), ..Run::default() };
        for at in runs.runs[n].clone() {
            let mut step = Step { side: self, n, at, run: &mut run, values };
            step.item(&self.program.items[at]);
        }
        run
    }

    /// The constants that added registers hold at the start of each run, on every path to it.
    fn constants_at_starts(&self, runs: &Runs, known: usize, values: &mut Values) -> Vec<Held> {
        let mut starts: Vec<Option<Held>> = vec![None; runs.runs.len()];
        starts[0] = Some(Held::default());
        let mut todo = if self.program.classes.len() > known { vec![0] } else { vec![] };
        while let Some(n) = todo.pop() {
            let start = starts[n].clone().unwrap_or_default();
            let mut held = self.run(runs, n, &start, values).held;
            held.retain(|reg, value| *reg != FLAGS && reg.0 as usize >= known && values.is_constant(*value));
            for &next in &runs.next[n] {
                let Some(old) = &mut starts[next] else {
                    starts[next] = Some(held.clone());
                    todo.push(next);
                    continue;
                };
                let count = old.len();
                old.retain(|reg, value| held.get(reg) == Some(value));
                if old.len() < count {
                    todo.push(next);
                }
            }
        }
        starts.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// The registers that are read after each run before they are written, and the flags likewise.
    fn live_at_ends(&self, runs: &Runs) -> Vec<FxHashSet<Reg>> {
        let mut facts: Vec<(FxHashSet<Reg>, FxHashSet<Reg>)> = vec![];
        for run in &runs.runs {
            let (mut read, mut written) = (FxHashSet::default(), FxHashSet::default());
            for item in &self.program.items[run.start..self.program.items.len().min(run.end + 1)] {
                let flags = item.flags();
                let mut uses: Vec<Reg> = if flags == Flags::Reads { vec![FLAGS] } else { vec![] };
                if !is_zero(item) {
                    item.uses(|reg| uses.push(reg));
                }
                read.extend(uses.into_iter().filter(|reg| !written.contains(reg)));
                written.extend(item.def().map(|(reg, _)| reg));
                if flags == Flags::Sets {
                    written.insert(FLAGS);
                }
            }
            facts.push((read, written));
        }
        let mut starts: Vec<FxHashSet<Reg>> = facts.iter().map(|(read, _)| read.clone()).collect();
        let mut ends: Vec<FxHashSet<Reg>> = vec![FxHashSet::default(); starts.len()];
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for n in (0..starts.len()).rev() {
                for &next in &runs.next[n] {
                    let new: Vec<Reg> = starts[next].difference(&ends[n]).copied().collect();
                    changed |= !new.is_empty();
                    starts[n].extend(new.iter().filter(|reg| !facts[n].1.contains(reg)));
                    ends[n].extend(new);
                }
            }
        }
        for (run, end) in runs.runs.iter().zip(&mut ends) {
            if self.program.items.get(run.end).is_some_and(|item| item.flags() == Flags::Reads) {
                end.insert(FLAGS);
            }
        }
        ends
    }
}

/// The execution of an item.
struct Step<'a, 'b> {
    side: &'a Side<'a>,
    n: usize,
    at: usize,
    run: &'b mut Run,
    values: &'b mut Values,
}

impl Step<'_, '_> {
    fn reg(&mut self, reg: Reg) -> u32 {
        match self.run.held.get(&reg) {
            Some(&value) => value,
            None => self.side.start(self.n, reg, self.values),
        }
    }

    fn arg(&mut self, arg: Arg, reads_memory: bool) -> u32 {
        let value = match arg {
            Arg::Reg(reg, _) => return self.reg(reg),
            Arg::Mem(base, offset) if reads_memory => {
                let number = self.reg(base);
                let may_change = |&&(store, its_base): &&(Address, u32)| {
                    self.side.program.may_overlap(store, Address { base, offset }, its_base == number)
                };
                let stores = self.run.stored_at.iter().filter(may_change).count();
                Value::Load(number, offset, stores)
            }
            Arg::Mem(base, offset) => Value::Address(self.reg(base), offset),
            Arg::Pool(entry, broadcast) => self.side.vector(&self.side.pool.entries[entry as usize], broadcast),
            Arg::Imm(number) => Value::Number(number),
            Arg::None => unreachable!("operands end before"),
        };
        self.values.number(value)
    }

    fn item(&mut self, item: &Item) {
        match *item {
            Item::Inst(inst) => self.inst(&inst),
            Item::Copy { to, from } => {
                let value = self.reg(from);
                self.run.held.insert(to, value);
            }
            Item::Fma { to, a, b, c, double } => {
                let parts = [self.reg(a), self.arg(b, true), self.arg(c, true)];
                let value = self.values.number(Value::Fma(double, parts));
                self.run.held.insert(to, value);
            }
            Item::Quotient { .. } => unreachable!("its instructions were written by `quotients`"),
            Item::Enter(_) | Item::Leave | Item::Jump(..) | Item::Label(_) => {}
        }
    }

    fn inst(&mut self, inst: &Inst) {
        let row = inst.opcode.row();
        let (loads, stores) = inst.memory();
        let def = Item::Inst(*inst).def().map(|(reg, _)| reg);
        // The value that a mask keeps is no operand of the instruction itself.
        let from = usize::from(def.is_some() && row.shape.first == First::Def);
        let operands: Vec<Arg> = inst.args[from..].iter().copied().take_while(|arg| *arg != Arg::None).collect();
        let mut args: Vec<u32> = operands.into_iter().map(|arg| self.arg(arg, loads)).collect();
        let mask = inst.mask.map(|mask| self.reg(mask));
        let merges =
            if let (Some(mask), Masking::Merges(bytes)) = (mask, row.masking) { Some((mask, bytes)) } else { None };
        if merges.is_none() || stores {
            args.extend(mask);
        }
        if row.shape.flags == Flags::Reads {
            args.push(self.reg(FLAGS));
        }
        if row.shape.flags == Flags::Sets {
            let value = self.values.number(Value::Flags(inst.opcode, args.clone()));
            self.run.held.insert(FLAGS, value);
        }
        let Some(reg) = def else {
            if stores || row.memory == Memory::Address {
                let value = self.values.number(Value::Result(inst.opcode, None, args));
                self.run.effects[usize::from(!stores)].push((self.at, value));
                if let Some((address, true)) = Item::Inst(*inst).memory() {
                    let base = self.reg(address.base);
                    self.run.stored_at.push((address, base));
                }
            }
            return;
        };
        let mut value = self.result(inst, args);
        if let Some((mask, bytes)) = merges {
            let old = if inst.zeroing { None } else { Some(self.reg(reg)) };
            value = self.values.number(Value::Merged(bytes, mask, old, value));
        }
        self.run.held.insert(reg, value);
    }

    /// The result without its mask. A load of a constant and a move between registers have the value that they move.
    fn result(&mut self, inst: &Inst, args: Vec<u32>) -> u32 {
        use Opcode::*;
        let Arg::Reg(_, view) = inst.args[0] else { unreachable!("it writes a register") };
        let value = match (inst.opcode, inst.args[1]) {
            (Zero, _) if is_zero(&Item::Inst(*inst)) => self.side.vector(&[], false),
            (Vpbroadcastb | Vpbroadcastw | Vpbroadcastd | Vpbroadcastq, Arg::Pool(entry, false)) => {
                self.side.vector(&self.side.pool.entries[entry as usize], true)
            }
            (Vmovdqu32 | VmovdquYmm | VmovdquXmm, Arg::Pool(..)) => return args[0],
            (Vmovdqu8 | Vmovdqu16 | Vmovdqu32 | Vmovdqu64, Arg::Reg(..)) => return args[0],
            (MovBy32 | MovBy64, _) => return args[0],
            (KmovqOf, _) => match self.values.all[args[0] as usize] {
                Value::Number(bits) => Value::Mask(bits as u64),
                _ => Value::Result(KmovqOf, None, args),
            },
            _ => Value::Result(inst.opcode, Some(view), args),
        };
        self.values.number(value)
    }
}
