//! Removes dead code.

use super::code::{MachineProgram, Reg};
use super::live;
use super::row::Flags;

/// Keeps the items that write memory, jump or mark loops, and the items whose results those need.
pub fn remove_dead(program: &mut MachineProgram) {
    // The last item that writes each register, and for each item the one that wrote its register before.
    let mut last_writer: Vec<Option<u32>> = vec![None; program.classes.len()];
    let mut writer_before: Vec<Option<u32>> = vec![None; program.items.len()];
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
            Some((reg, _)) if !(flags[at] && item.flags() == Flags::Sets) => {
                writer_before[at] = last_writer[reg.0 as usize].replace(at as u32);
            }
            _ => {
                needed[at] = true;
                item.uses(|r| want(r, &mut todo));
            }
        }
    }
    while let Some(reg) = todo.pop() {
        let mut writer = last_writer[reg.0 as usize];
        while let Some(at) = writer {
            if !std::mem::replace(&mut needed[at as usize], true) {
                program.items[at as usize].uses(|r| want(r, &mut todo));
            }
            writer = writer_before[at as usize];
        }
    }
    let mut needed = needed.into_iter();
    program.items.retain(|_| needed.next().unwrap_or(true));
}
