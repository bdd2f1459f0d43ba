//! Tests the addresses of stores past the caches, which only write whole vectors at multiples of their bytes:
//!
//! ```text
//!                           test r8, 63
//!                           jne other
//!                           vmovntps [r8], zmm1
//! vmovntps [r8], zmm1  ->   jmp done
//!                           other: vmovdqu32 [r8], zmm1
//!                           done:
//! ```
//!
//! Where the flags are read after a store, it is the other one. A program with such stores ends with a fence: what it has written can be seen by every thread that learns of its end.

use super::code::{Arg, Inst, Item, MachineProgram, View};
use super::live;
use super::table::Opcode;

/// A store of a vector.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    /// The store past the caches.
    pub past: Opcode,
    /// The other one.
    plain: Opcode,
    /// The register's view.
    pub view: View,
    bytes: i64,
}

const STORES: [Store; 2] = [
    Store { past: Opcode::VmovntpsZmm, plain: Opcode::Vmovdqu32Store, view: View::Zmm, bytes: 64 },
    Store { past: Opcode::VmovntpsYmm, plain: Opcode::VmovdquYmmStore, view: View::Ymm, bytes: 32 },
];

/// The store of so many bytes, if there is one past the caches.
pub fn of_bytes(bytes: u64) -> Option<Store> {
    STORES.into_iter().find(|store| store.bytes as u64 == bytes)
}

/// The store past the caches that an item is.
fn store(item: &Item) -> Option<(Inst, Store)> {
    let Item::Inst(inst) = item else { return None };
    STORES.into_iter().find(|store| store.past == inst.opcode).map(|store| (*inst, store))
}

/// Writes the tests and the fence.
pub fn expand(program: &mut MachineProgram) {
    if !program.items.iter().any(|item| store(item).is_some()) {
        return;
    }
    let flags = live::flags(program);
    for (item, keeps_flags) in std::mem::take(&mut program.items).into_iter().zip(flags) {
        let Some((inst, store)) = store(&item) else {
            program.items.push(item);
            continue;
        };
        let plain = Item::Inst(Inst { opcode: store.plain, ..inst });
        let Arg::Mem(base, _) = inst.args[0] else { unreachable!("a store has an address") };
        if keeps_flags {
            program.items.push(plain);
            continue;
        }
        let [other, done] = [0; 2].map(|_| program.label());
        let test = Inst::new(Opcode::TestBy, &[Arg::Reg(base, View::R64), Arg::Imm(store.bytes - 1)]);
        program.items.extend([Item::Inst(test), Item::Jump(Opcode::Jne, other), item, Item::Jump(Opcode::Jmp, done)]);
        program.items.extend([Item::Label(other), plain, Item::Label(done)]);
    }
    program.items.push(Item::Inst(Inst::new(Opcode::Sfence, &[])));
}
