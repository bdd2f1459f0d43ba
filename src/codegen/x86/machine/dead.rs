//! Removes what nothing needs.

use super::code::{First, Inst, Item, Program, Reg};

/// Keeps the items that write memory, jump or mark loops, and those whose results they need.
pub fn remove_dead(program: &mut Program) {
    let mut writers: Vec<Vec<usize>> = vec![vec![]; program.classes.len()];
    let mut needed: Vec<bool> = vec![false; program.items.len()];
    let mut wanted = vec![false; program.classes.len()];
    let mut todo: Vec<Reg> = vec![];
    let mut want = |reg: Reg, todo: &mut Vec<Reg>| {
        if !std::mem::replace(&mut wanted[reg.0 as usize], true) {
            todo.push(reg);
        }
    };
    for (at, item) in program.items.iter().enumerate() {
        match item.def() {
            Some((reg, _)) if !sets_flags(item) => writers[reg.0 as usize].push(at),
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

/// Whether an item counts a loop down, for the jump after it.
fn sets_flags(item: &Item) -> bool {
    matches!(item, Item::Inst(Inst { code: iced_x86::Code::Sub_rm64_imm32, first: First::Mod, .. }))
}
