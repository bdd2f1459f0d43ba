//! Checks of the machine passes by symbolic execution, in tests and with debug assertions.
//!
//! | after | law | file |
//! | --- | --- | --- |
//! | each pass over virtual registers | stores, hints, jumps and later runs read the values of before | [`values`] |
//! | register allocation and encoding | each use reads a place that holds its virtual register, on every path | [`places`] |
//!
//! A fault is a bug of ours: it panics with the name of the pass, the item and the register.
//!
//! These are not checked: the algebra of [`quotients`](super::quotients) and [`maxima`](super::maxima), numbers in
//! encoded instructions, and the distances of jumps and places of constants, which are patched after encoding. The
//! facts of instructions are taken from the [`table`](super::table), which has a test of its own.

pub mod places;
#[cfg(test)]
mod tests;
mod values;

use super::code::{Item, Label, MachineProgram, Reg};
use super::constants::Pool;
use super::encode::Encoded;
use super::registers::Homes;
use super::table::Opcode;
use super::tier::Tier;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// True where passes are checked.
pub const ON: bool = cfg!(any(test, debug_assertions, feature = "check-machine-code"));

/// A program on its way through the passes.
#[derive(Debug)]
pub struct Watch {
    /// The program before the next pass; `None` if passes are not checked.
    before: Option<MachineProgram>,
    tier: Tier,
}

impl Watch {
    /// A watch that begins with this program.
    pub fn new(program: &MachineProgram, tier: Tier) -> Watch {
        Watch { before: ON.then(|| program.clone()), tier }
    }

    /// Checks that a pass kept all values; `pool` holds the constants that the pass put into memory.
    pub fn passed(&mut self, pass: &str, program: &MachineProgram, pool: &Pool) {
        let Some(before) = &self.before else { return };
        if let Err(fault) = values::same(before, program, pool, self.tier) {
            panic!("the machine pass {pass} changed a value: {fault}");
        }
        self.before = Some(program.clone());
    }

    /// Checks the registers and the frame of the encoded program; `buffers` holds a value from the start.
    pub fn encoded(&self, program: &MachineProgram, homes: &Homes, code: &Encoded, buffers: Reg, spills_at: u64) {
        if self.before.is_none() {
            return;
        }
        let frame = spills_at..spills_at + u64::from(homes.frame_bytes);
        if let Err(fault) = places::hold(program, &code.record, self.tier, buffers, frame) {
            panic!("register allocation lost a value: {fault}");
        }
    }
}

/// The runs of a program: its items between jumps, labels, and begins and ends of loops.
struct Runs {
    runs: Vec<Range<usize>>,
    next: Vec<Vec<usize>>,
}

impl Runs {
    fn of(program: &MachineProgram) -> Runs {
        let mut runs = vec![];
        let mut labels: FxHashMap<u32, usize> = FxHashMap::default();
        let mut start = 0;
        for (at, item) in program.items.iter().enumerate() {
            if ends_run(item) {
                runs.push(start..at);
                start = at + 1;
            }
            if let Item::Label(label) = item {
                labels.insert(label.0, runs.len());
            }
        }
        runs.push(start..program.items.len());
        let following = |n: usize| match program.items.get(runs[n].end) {
            None => vec![],
            Some(&Item::Jump(opcode, Label(to))) => {
                let target = labels.get(&to).copied();
                target.into_iter().chain((opcode != Opcode::Jmp).then_some(n + 1)).collect()
            }
            Some(_) => vec![n + 1],
        };
        let next = (0..runs.len()).map(following).collect();
        Runs { runs, next }
    }
}

fn ends_run(item: &Item) -> bool {
    matches!(item, Item::Enter(_) | Item::Leave | Item::Label(_) | Item::Jump(..))
}

/// Returns true if an item is `Zero` of one register, which depends on no register.
fn is_zero(item: &Item) -> bool {
    matches!(item, Item::Inst(inst) if inst.opcode == Opcode::Zero && inst.args[0] == inst.args[1])
}
