//! The live interval of each virtual register, and the items after which flags are read.

use super::code::{Item, MachineProgram, Reg};
use super::row::Flags;

/// The items from the first that writes a register to the last that needs it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// The item that first writes the register.
    pub start: u32,
    /// The item that last needs the register. A loop that needs a value from before it needs it to its end.
    pub end: u32,
    /// The number of times that the register is named; each loop around a name multiplies it by eight.
    pub weight: f32,
    /// True if the register occurs.
    pub used: bool,
}

impl Interval {
    /// The worth of a register for the interval: its weight, less for a long one, which keeps the register from many others.
    pub fn worth(&self) -> f32 {
        self.weight / ((self.end - self.start + 1) as f32).sqrt()
    }
}

/// Returns for each item true if a later one reads the flags as they are after it.
pub fn flags(program: &MachineProgram) -> Vec<bool> {
    let mut read = false;
    let after = |item: &Item| {
        let is_read = read;
        match item.flags() {
            Flags::Keeps => {}
            Flags::Sets => read = false,
            Flags::Reads => read = true,
        }
        is_read
    };
    let mut all: Vec<bool> = program.items.iter().rev().map(after).collect();
    all.reverse();
    all
}

/// A loop: the place of its first item and of its end.
#[derive(Clone, Copy, Debug)]
pub struct LoopSpan {
    pub start: u32,
    pub end: u32,
}

/// The loops, in order of their starts.
pub fn loops(program: &MachineProgram) -> Vec<LoopSpan> {
    let mut spans: Vec<LoopSpan> = vec![];
    let mut open: Vec<usize> = vec![];
    for (at, item) in program.items.iter().enumerate() {
        match item {
            Item::Enter(_) => {
                spans.push(LoopSpan { start: at as u32, end: 0 });
                open.push(spans.len() - 1);
            }
            Item::Leave => spans[open.pop().expect("an open loop")].end = at as u32,
            _ => {}
        }
    }
    spans
}

/// The weight of a name inside so many loops.
fn weight_in(loops: usize) -> f32 {
    (8.0f32).powi(loops.min(6) as i32)
}

/// The interval of each register; the registers in `fixed` hold a value from the start.
pub fn intervals(program: &MachineProgram, loops: &[LoopSpan], fixed: &[Reg]) -> Vec<Interval> {
    by_start(program, loops, fixed).0
}

/// The interval of each register, and the registers that occur in the order in which their intervals start; those in
/// `fixed` hold a value from the start.
pub fn by_start(program: &MachineProgram, loops: &[LoopSpan], fixed: &[Reg]) -> (Vec<Interval>, Vec<Reg>) {
    let mut all = vec![Interval::default(); program.classes.len()];
    let mut order = Vec::with_capacity(all.len());
    for &reg in fixed {
        all[reg.0 as usize].used = true;
        order.push(reg);
    }
    let mut open: Vec<usize> = vec![];
    let mut next = 0;
    let mut weight = 1.0;
    // The start of the innermost loop that is open.
    let mut innermost = 0;
    for (at, item) in program.items.iter().enumerate() {
        match item {
            Item::Enter(_) => {
                open.push(next);
                next += 1;
                weight = weight_in(open.len());
                innermost = at as u32;
                continue;
            }
            Item::Leave => {
                open.pop();
                weight = weight_in(open.len());
                innermost = open.last().map_or(0, |&l| loops[l].start);
                continue;
            }
            _ => {}
        }
        let mut touch = |reg: Reg| {
            let interval = &mut all[reg.0 as usize];
            if !interval.used {
                *interval = Interval { start: at as u32, end: at as u32, weight: 0.0, used: true };
                order.push(reg);
            }
            let mut end = at as u32;
            if innermost > interval.start {
                let outside = open.iter().find(|&&l| loops[l].start > interval.start);
                end = outside.map_or(end, |&l| loops[l].end);
            }
            interval.end = interval.end.max(end);
            interval.weight += weight;
        };
        item.uses(&mut touch);
        if let Some((reg, _)) = item.def() {
            touch(reg);
        }
    }
    (all, order)
}
