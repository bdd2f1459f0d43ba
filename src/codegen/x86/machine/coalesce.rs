//! Coalesces copies with the instructions before them.

use super::code::{Arg, Item, MachineProgram, Reg, masked_load};
use super::row::{First, Masking};

/// Lets an instruction write the register to which its result is only copied:
///
/// ```text
/// t = max c, x ; ... ; c = t   ->   c = max c, x ; ...
/// ```
///
/// Legal where `t` is written once and read once, both in one run of items without jumps, between which `c` is neither
/// read nor written. A copy under a mask is removed too, if the instruction can have the mask:
///
/// ```text
/// t = max c, x ; ... ; c{k} = t   ->   c{k} = max c, x ; ...
/// ```
pub fn coalesce(program: &mut MachineProgram) {
    let registers = program.classes.len();
    let (mut defs, mut uses) = (vec![0u32; registers], vec![0u32; registers]);
    for item in &program.items {
        item.uses(|r| uses[r.0 as usize] += 1);
        if let Some((r, is_read)) = item.def() {
            defs[r.0 as usize] += if is_read { 2 } else { 1 };
        }
    }
    // For the current run, the item that last wrote each register, and the last that named it.
    let mut written: Vec<Option<usize>> = vec![None; registers];
    let mut named: Vec<usize> = vec![0; registers];
    let mut run = 0;
    for at in 0..program.items.len() {
        if let Item::Copy { to, from } = program.items[at]
            && defs[from.0 as usize] == 1
            && uses[from.0 as usize] == 1
            && let Some(source) = written[from.0 as usize].filter(|&source| source >= run)
            && named[to.0 as usize] <= source
            && retarget(&mut program.items[source], from, to)
        {
            program.items[at] = Item::Copy { to, from: to };
            written[to.0 as usize] = Some(source);
            named[to.0 as usize] = at;
            continue;
        }
        if let Some((to, from, mask)) = copied_under_mask(&program.items[at])
            && defs[from.0 as usize] == 1
            && uses[from.0 as usize] == 1
            && let Some(source) = written[from.0 as usize].filter(|&source| source >= run)
            && named[to.0 as usize] <= source
            && written[mask.0 as usize].is_none_or(|at| at < source)
            && let Some(bytes) = lane_bytes_of_copy(&program.items[at])
            && put_under_mask(&mut program.items[source], to, mask, bytes)
        {
            program.items[at] = Item::Copy { to, from: to };
            written[to.0 as usize] = Some(source);
            named[to.0 as usize] = at;
            named[mask.0 as usize] = at;
            continue;
        }
        match &program.items[at] {
            Item::Enter(_) | Item::Leave | Item::Jump(..) | Item::Label(_) => run = at + 1,
            item => {
                item.uses(|r| named[r.0 as usize] = at);
                if let Some((r, _)) = item.def() {
                    written[r.0 as usize] = Some(at);
                    named[r.0 as usize] = at;
                }
            }
        }
    }
    program.items.retain(|item| !matches!(item, Item::Copy { to, from } if to == from));
}

/// Makes an item that writes `from` write `to`; returns false if it cannot.
fn retarget(item: &mut Item, from: Reg, to: Reg) -> bool {
    match item {
        Item::Inst(inst) if inst.first() == First::Def => {
            let Arg::Reg(reg, _) = &mut inst.args[0] else { return false };
            debug_assert_eq!(*reg, from);
            *reg = to;
            true
        }
        Item::Copy { to: written, .. } | Item::Fma { to: written, .. } => {
            *written = to;
            true
        }
        _ => false,
    }
}

/// The target, the source and the mask of a copy under a mask; `None` for other items.
fn copied_under_mask(item: &Item) -> Option<(Reg, Reg, Reg)> {
    match item {
        Item::Inst(inst) if inst.first() == First::Mod => {
            let [Arg::Reg(to, _), Arg::Reg(from, _), ..] = inst.args else { return None };
            Some((to, from, inst.mask?))
        }
        _ => None,
    }
}

/// Bytes of the elements of a copy under a mask.
fn lane_bytes_of_copy(item: &Item) -> Option<u64> {
    let Item::Inst(inst) = item else { return None };
    [1, 2, 4, 8].into_iter().find(|&bytes| masked_load(bytes) == inst.opcode)
}

/// Makes an instruction over elements of `bytes` bytes write `to` under a mask; returns false if it cannot.
fn put_under_mask(item: &mut Item, to: Reg, mask: Reg, bytes: u64) -> bool {
    let Item::Inst(inst) = item else { return false };
    let row = inst.opcode.row();
    let may = inst.first() == First::Def && inst.mask.is_none() && row.masking == Masking::Merges(bytes);
    let (true, Arg::Reg(reg, _)) = (may, &mut inst.args[0]) else { return false };
    *reg = to;
    inst.mask = Some(mask);
    true
}
