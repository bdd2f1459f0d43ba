//! Joins the checks for NaN of successive minima or maxima.
//!
//! In AVX-512, a maximum is three instructions: `vrange` gives the number, or the other operand if one is a NaN; a
//! comparison finds the lanes without NaN; and a blend puts the canonical NaN into the others. Of several in a row,
//! only the last needs all three:
//!
//! ```text
//! n = range a, x; k = ordered a, x; a = k ? n : nan         n = range a, x; k = ordered a, x
//! n = range a, y; k = ordered a, y; a = k ? n : nan    ->   n = range n, y
//! n = range a, z; k = ordered a, z; a = k ? n : nan         n = range n, z; k = k and ordered y, z; a = k ? n : nan
//! ```
//!
//! One comparison finds a NaN in two operands. Instructions that the last maximum makes needless are removed here if
//! their results are overwritten, and else by [`dead`](super::dead).

use super::code::{Arg, Class, Inst, Item, MachineProgram, Reg, View};
use super::table::Opcode;
use rustc_hash::FxHashSet;

/// The most chains of maxima that are joined at once, which `Machine::joined_maxima` of the cost model repeats: each keeps a mask, and there are seven registers for masks.
const CHAINS: usize = 5;

/// The value of a register before NaNs are put in.
#[derive(Clone, Copy)]
struct Number {
    /// The number, in lanes where neither an operand in `ordered` nor a later one is NaN.
    number: Reg,
    /// The lanes in which no operand is NaN, apart from `unseen`.
    ordered: Reg,
    /// An operand that has not been compared yet.
    unseen: Option<Reg>,
}

impl Number {
    fn names(&self, reg: Reg) -> bool {
        self.number == reg || self.ordered == reg || self.unseen == Some(reg)
    }
}

/// Joins successive minima and maxima in runs of instructions without jumps.
pub fn join_maxima(program: &mut MachineProgram) {
    if program.items.iter().any(|item| matches!(item, Item::Inst(inst) if is_range(inst))) {
        join(program);
        remove_overwritten(program);
    }
}

fn join(program: &mut MachineProgram) {
    let items = std::mem::take(&mut program.items);
    program.items.reserve(items.len());
    let goes_on = going_on(&items);
    let mut numbers = Numbers::default();
    let mut at = 0;
    while at < items.len() {
        let Some(found) = Maximum::at(&items[at..]) else {
            let item = items[at];
            if ends_run(&item) {
                numbers.0.clear();
            }
            if let Some((reg, _)) = item.def() {
                numbers.forget(reg);
            }
            program.items.push(item);
            at += 1;
            continue;
        };
        let number = found.emit(&mut numbers, program);
        numbers.forget(found.to);
        if goes_on[at] && numbers.0.len() < CHAINS {
            numbers.0.push((found.to, number));
        }
        at += 3;
    }
}

/// Returns true for the instruction that a minimum or maximum begins with.
fn is_range(inst: &Inst) -> bool {
    matches!(inst.opcode, Opcode::Vrangeps | Opcode::Vrangepd)
}

/// For each item, true if it begins a maximum whose result is an operand of a later one in the same run.
fn going_on(items: &[Item]) -> Vec<bool> {
    let mut goes_on = vec![false; items.len()];
    let mut wanted: FxHashSet<Reg> = FxHashSet::default();
    let mut end = items.len();
    while end > 0 {
        let start = end.saturating_sub(3);
        if let Some(found) = Maximum::at(&items[start..end]) {
            goes_on[start] = wanted.remove(&found.to);
            wanted.extend([found.a, found.b]);
            end = start;
            continue;
        }
        end -= 1;
        if ends_run(&items[end]) {
            wanted.clear();
        } else if let Some((reg, _)) = items[end].def() {
            wanted.remove(&reg);
        }
    }
    goes_on
}

fn ends_run(item: &Item) -> bool {
    matches!(item, Item::Enter(_) | Item::Leave | Item::Label(_) | Item::Jump(..))
}

/// The registers whose values are known before NaNs are put in: a few.
#[derive(Default)]
struct Numbers(Vec<(Reg, Number)>);

impl Numbers {
    /// Forgets a register, whose value changes here.
    fn forget(&mut self, reg: Reg) {
        self.0.retain(|(of, number)| *of != reg && !number.names(reg));
    }

    /// Takes the number of a register.
    fn take(&mut self, reg: Reg) -> Option<Number> {
        let at = self.0.iter().position(|(of, _)| *of == reg)?;
        Some(self.0.swap_remove(at).1)
    }
}

/// The three instructions of a minimum or maximum.
struct Maximum {
    range: Inst,
    compare: Inst,
    blend: Inst,
    to: Reg,
    /// The operands.
    a: Reg,
    b: Reg,
}

impl Maximum {
    /// The minimum or maximum that the items begin with, if they do.
    fn at(items: &[Item]) -> Option<Maximum> {
        let [Item::Inst(range), Item::Inst(compare), Item::Inst(blend), ..] = items else { return None };
        if !is_range(range) {
            return None;
        }
        let (range, compare, blend) = (*range, *compare, *blend);
        let [Arg::Reg(number, _), Arg::Reg(a, _), Arg::Reg(b, _), _] = range.args else { return None };
        let [Arg::Reg(ordered, _), Arg::Reg(c, _), Arg::Reg(d, _), _] = compare.args else { return None };
        let [Arg::Reg(to, _), _, Arg::Reg(chosen, _), _] = blend.args else { return None };
        let fits = (a, b) == (c, d) && chosen == number && blend.mask == Some(ordered);
        fits.then_some(Maximum { range, compare, blend, to, a, b })
    }

    /// Adds the instructions, given the known numbers in registers; returns the result before NaNs are put in.
    fn emit(&self, numbers: &mut Numbers, program: &mut MachineProgram) -> Number {
        let mut known = |of: Reg, other: Reg| numbers.take(of).map(|number| (number, other));
        let Some((before, other)) = known(self.a, self.b).or_else(|| known(self.b, self.a)) else {
            program.items.extend([self.range, self.compare, self.blend].map(Item::Inst));
            let [number, ordered] = [self.range, self.compare].map(|inst| register(inst.args[0]));
            return Number { number, ordered, unseen: None };
        };
        let (number, ordered) = (program.reg(Class::Vector), program.reg(Class::Mask));
        let view = |reg, like: Arg| if let Arg::Reg(_, view) = like { Arg::Reg(reg, view) } else { like };
        let mut range = self.range;
        let [to, a, b, _] = &mut range.args;
        (*to, *a, *b) = (view(number, *to), view(before.number, *a), view(other, *b));
        let mut compare = self.compare.masked(before.ordered, false);
        let [to, a, b, _] = &mut compare.args;
        (*to, *a, *b) = (Arg::Reg(ordered, View::K), view(before.unseen.unwrap_or(other), *a), view(other, *b));
        let mut blend = self.blend.masked(ordered, false);
        blend.args[2] = view(number, blend.args[2]);
        program.items.extend([range, compare, blend].map(Item::Inst));
        match before.unseen {
            // The operand still has its value when the next one comes.
            None if other != self.to => Number { number, ordered: before.ordered, unseen: Some(other) },
            _ => Number { number, ordered, unseen: None },
        }
    }
}

fn register(arg: Arg) -> Reg {
    let Arg::Reg(reg, _) = arg else { unreachable!("a register") };
    reg
}

/// Removes instructions whose results are overwritten before they are read.
fn remove_overwritten(program: &mut MachineProgram) {
    // The number of the run, from the end, in which a later item overwrites a register before any reads it.
    let mut overwritten = vec![0u32; program.classes.len()];
    let mut run = 1;
    let mut needed = vec![true; program.items.len()];
    for (at, item) in program.items.iter().enumerate().rev() {
        if ends_run(item) {
            run += 1;
            continue;
        }
        let def = item.def();
        match def {
            Some((reg, false)) if overwritten[reg.0 as usize] == run => {
                needed[at] = false;
                continue;
            }
            Some((reg, false)) => overwritten[reg.0 as usize] = run,
            _ => {}
        }
        item.uses(|reg| overwritten[reg.0 as usize] = 0);
        if let Some((reg, true)) = def {
            overwritten[reg.0 as usize] = 0;
        }
    }
    let mut needed = needed.into_iter();
    program.items.retain(|_| needed.next().unwrap_or(true));
}
