//! Removes dead code.

use super::code::{MachineProgram, Reg};
use super::live;
use super::row::Flags;

/// Keeps the items that write memory, jump or mark loops, and the items whose results those need.
pub fn remove_dead(program: &mut MachineProgram) {
    let mut writers: Vec<Vec<usize>> = vec![vec![]; program.classes.len()];
    let mut needed: Vec<bool> = vec![false; program.items.len()];
    let mut wanted = vec![false; program.classes.len()];
    let mut todo: Vec<Reg> = vec![];
    let flags = live::flags(program);
    let mut want = |reg: Reg, todo: &mut Vec<Reg>| {
        if !std::mem::replace(&mut wanted[reg.0 as usize], true) {
            todo.push(reg);
        }
    };
    for (at, item) in program.items.iter().enumerate() {
        match item.def() {
            Some((reg, _)) if !(flags[at] && item.flags() == Flags::Sets) => writers[reg.0 as usize].push(at),
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
