//! Removes dead code.

use super::code::{Item, MachineProgram, Reg};
use super::row::Flags;

/// Keeps the items that write memory, jump or mark loops, and the items whose results those need.
pub fn remove_dead(program: &mut MachineProgram) {
    let mut writers: Vec<Vec<usize>> = vec![vec![]; program.classes.len()];
    let mut needed: Vec<bool> = vec![false; program.items.len()];
    let mut wanted = vec![false; program.classes.len()];
    let mut todo: Vec<Reg> = vec![];
    let wanted_flags = wanted_flags(program);
    let mut want = |reg: Reg, todo: &mut Vec<Reg>| {
        if !std::mem::replace(&mut wanted[reg.0 as usize], true) {
            todo.push(reg);
        }
    };
    for (at, item) in program.items.iter().enumerate() {
        match item.def() {
            Some((reg, _)) if !wanted_flags[at] => writers[reg.0 as usize].push(at),
            _ => {
                needed[at] = true;
                item.uses(|r| want(r, &mut todo));
            }
        }
    }
    while let Some(reg) = todo.pop() {
        for &at in &writers[reg.0 as usize] {
            if !std::mem::replace(&mut needed[at], true) {
                program.items[at].uses(|r| want(r, &mut todo));
            }
        }
    }
    let mut needed = needed.into_iter();
    program.items.retain(|_| needed.next().unwrap_or(true));
}

/// Returns for each item true if a later item reads the flags that it sets.
fn wanted_flags(program: &MachineProgram) -> Vec<bool> {
    let mut wanted = false;
    let mut all: Vec<bool> = program
        .items
        .iter()
        .rev()
        .map(|item| {
            let opcode = match item {
                Item::Inst(inst) => inst.opcode,
                Item::Jump(opcode, _) => *opcode,
                _ => return false,
            };
            let sets = opcode.row().shape.flags == Flags::Sets && wanted;
            match opcode.row().shape.flags {
                Flags::Keeps => {}
                Flags::Sets => wanted = false,
                Flags::Reads => wanted = true,
            }
            sets
        })
        .collect();
    all.reverse();
    all
}
