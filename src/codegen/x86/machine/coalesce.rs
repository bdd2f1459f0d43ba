//! Removes copies that the instruction before them can do.

use super::code::{Arg, First, Inst, Item, Program, Reg, masked_load};
use iced_x86::Code::{self, *};

/// Lets an instruction write a register to which its result is only copied:
///
/// ```text
/// t = max c, x ; ... ; c = t   ->   c = max c, x ; ...
/// ```
///
/// where `t` is written once and read once, both in one run of items without jumps, between which `c` is
/// neither read nor written. The same of a copy under a mask, where the instruction can have it:
///
/// ```text
/// t = max c, x ; ... ; c{k} = t   ->   c{k} = max c, x ; ...
/// ```
pub fn coalesce(program: &mut Program) {
    let registers = program.classes.len();
    let (mut defs, mut uses) = (vec![0u32; registers], vec![0u32; registers]);
    for item in &program.items {
        item.uses(|r| uses[r.0 as usize] += 1);
        if let Some((r, is_read)) = item.def() {
            defs[r.0 as usize] += if is_read { 2 } else { 1 };
        }
    }
    // The item of the current run that wrote a register last, and the last that named it.
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

/// Makes an item that writes `from` write `to`; false where it cannot.
fn retarget(item: &mut Item, from: Reg, to: Reg) -> bool {
    match item {
        Item::Inst(Inst { args, first: First::Def, .. }) => {
            let Arg::Reg(reg, _) = &mut args[0] else { return false };
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

/// A copy under a mask: to where, from where, and the mask.
fn copied_under_mask(item: &Item) -> Option<(Reg, Reg, Reg)> {
    match item {
        &Item::Inst(Inst { args: [Arg::Reg(to, _), Arg::Reg(from, _), ..], first: First::Mod, mask, .. }) => {
            Some((to, from, mask?))
        }
        _ => None,
    }
}

/// Bytes of the elements that a copy under a mask goes by.
fn lane_bytes_of_copy(item: &Item) -> Option<u64> {
    let Item::Inst(inst) = item else { return None };
    [1, 2, 4, 8].into_iter().find(|&bytes| masked_load(bytes) == inst.code)
}

/// Makes an instruction over elements of so many bytes write `to` under a mask; false where it cannot.
fn put_under_mask(item: &mut Item, to: Reg, mask: Reg, bytes: u64) -> bool {
    match item {
        Item::Inst(inst) if inst.first == First::Def && inst.mask.is_none() && lane_bytes(inst.code) == Some(bytes) => {
            let Arg::Reg(reg, _) = &mut inst.args[0] else { return false };
            *reg = to;
            (inst.first, inst.mask) = (First::Mod, Some(mask));
            true
        }
        _ => false,
    }
}

/// Bytes of the elements whose results an instruction masks, of those that combine what a loop over steps reads.
fn lane_bytes(code: Code) -> Option<u64> {
    let all: [(u64, &[Code]); 4] = [
        (
            1,
            &[
                EVEX_Vpaddb_zmm_k1z_zmm_zmmm512,
                EVEX_Vpmaxsb_zmm_k1z_zmm_zmmm512,
                EVEX_Vpmaxub_zmm_k1z_zmm_zmmm512,
                EVEX_Vpminsb_zmm_k1z_zmm_zmmm512,
                EVEX_Vpminub_zmm_k1z_zmm_zmmm512,
            ],
        ),
        (
            2,
            &[
                EVEX_Vpaddw_zmm_k1z_zmm_zmmm512,
                EVEX_Vpmaxsw_zmm_k1z_zmm_zmmm512,
                EVEX_Vpmaxuw_zmm_k1z_zmm_zmmm512,
                EVEX_Vpminsw_zmm_k1z_zmm_zmmm512,
                EVEX_Vpminuw_zmm_k1z_zmm_zmmm512,
            ],
        ),
        (
            4,
            &[
                EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er,
                EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er,
                EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32,
                EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32,
                EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32,
                EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32,
                EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32,
                EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32,
            ],
        ),
        (
            8,
            &[
                EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er,
                EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er,
                EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64,
                EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64,
                EVEX_Vpmaxuq_zmm_k1z_zmm_zmmm512b64,
                EVEX_Vpminsq_zmm_k1z_zmm_zmmm512b64,
                EVEX_Vpminuq_zmm_k1z_zmm_zmmm512b64,
                EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64,
            ],
        ),
    ];
    all.into_iter().find(|(_, codes)| codes.contains(&code)).map(|(bytes, _)| bytes)
}
