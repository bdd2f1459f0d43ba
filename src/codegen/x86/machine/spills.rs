//! The operands of an instruction that lie in the frame: one may be read there, the others pass through scratch registers.

use super::code::{Arg, Inst, Item, MachineProgram, Reg};
use super::registers::{Home, Homes};
use super::table::{Fma, Opcode, fma};
use super::tier::Tier;

/// The operands in the frame of an instruction.
#[derive(Debug, Default)]
pub struct Spilled {
    /// The place among the operands of the one that the instruction reads in the frame.
    pub in_memory: Option<usize>,
    /// The registers to load into scratch registers before the instruction.
    pub loaded: Vec<Reg>,
    /// The register to store after it.
    pub stored: Option<Reg>,
    /// The loaded register whose scratch register the result takes: the instruction reads it before it writes.
    pub shared: Option<Reg>,
}

impl Spilled {
    /// The operands of an instruction, by the homes of registers.
    pub fn of(inst: &Inst, program: &MachineProgram, homes: &Homes) -> Spilled {
        let mut spilled = Spilled::default();
        if homes.frame_bytes == 0 {
            return spilled;
        }
        let lies_in_frame = |reg: Reg| matches!(homes.of(reg), Home::Frame(_));
        inst.uses(|reg| {
            if inst.opcode != Opcode::Zero && lies_in_frame(reg) && !spilled.loaded.contains(&reg) {
                spilled.loaded.push(reg);
            }
        });
        let result = inst.def().filter(|&(reg, _)| lies_in_frame(reg));
        spilled.stored = result.map(|(reg, _)| reg);
        if let Some(place) = inst.foldable()
            && let Arg::Reg(reg, _) = inst.args[place]
            && (place > 0 && spilled.loaded.contains(&reg))
            && names(inst, reg) == 1
        {
            spilled.in_memory = Some(place);
            spilled.loaded.retain(|&loaded| loaded != reg);
        }
        if let Some((to, false)) = result
            && !spilled.loaded.contains(&to)
        {
            let class = program.classes[to.0 as usize];
            spilled.shared = spilled.loaded.iter().copied().find(|loaded| program.classes[loaded.0 as usize] == class);
        }
        spilled
    }

    /// The number of scratch registers of each class.
    fn scratch(&self, program: &MachineProgram) -> [u8; 3] {
        let result = self.stored.filter(|to| self.shared.is_none() && !self.loaded.contains(to));
        let mut counts = [0; 3];
        for reg in self.loaded.iter().copied().chain(result) {
            counts[program.classes[reg.0 as usize].number()] += 1;
        }
        counts
    }
}

/// The number of times that an instruction reads or writes a register.
fn names(inst: &Inst, reg: Reg) -> usize {
    let args = inst.args.iter().filter(|arg| matches!(arg, Arg::Reg(r, _) | Arg::Mem(r, _) if *r == reg));
    args.count() + usize::from(inst.mask == Some(reg))
}

/// The most scratch registers of each class that an instruction of the program needs.
pub fn scratch(program: &MachineProgram, homes: &Homes, tier: Tier) -> [u8; 3] {
    if homes.frame_bytes == 0 {
        return [0; 3];
    }
    let needs = |inst: &Inst| Spilled::of(inst, program, homes).scratch(program);
    let of_item = |item: &Item| match *item {
        Item::Inst(inst) => needs(&inst),
        Item::Fma { to, a, b, c, double } => {
            needs(&replacing(to, [Arg::Reg(a, tier.view()), b, c], double, homes, tier).1)
        }
        // A copy within the frame passes through one.
        Item::Copy { to, from } if matches!((homes.of(to), homes.of(from)), (Home::Frame(_), Home::Frame(_))) => {
            let class = program.classes[to.0 as usize].number();
            std::array::from_fn(|n| u8::from(n == class))
        }
        _ => [0; 3],
    };
    let most = |a: [u8; 3], b: [u8; 3]| std::array::from_fn(|n| a[n].max(b[n]));
    program.items.iter().map(of_item).fold([0; 3], most)
}

/// The form of `to = a * b + c` whose replaced operand is in the register of the result; with the register to copy there
/// first, if none is.
pub fn replacing(to: Reg, [a, b, c]: [Arg; 3], double: bool, homes: &Homes, tier: Tier) -> (Option<Reg>, Inst) {
    let Fma { adds_to, multiplies, multiplies_by_last } = fma(double);
    let home = |arg: Arg| if let Arg::Reg(reg, _) = arg { Some(homes.of(reg)) } else { None };
    let is_target = |arg: Arg| home(arg) == Some(homes.of(to));
    let to = Arg::Reg(to, tier.view());
    let three = |opcode, x: Arg, y: Arg| Inst::new(opcode, &[to, x, y]);
    // A factor in the frame comes last, where it may be memory.
    let in_frame = |arg: Arg| matches!(home(arg), Some(Home::Frame(_)));
    let (first, last) = if in_frame(a) && matches!(home(b), Some(Home::Register(_))) { (b, a) } else { (a, b) };
    match (a, b, c) {
        // to = a * b + to
        _ if is_target(c) => (None, three(adds_to, first, last)),
        // to = a * to + c
        _ if is_target(b) => (None, three(multiplies, a, c)),
        (_, Arg::Reg(..), _) if is_target(a) => (None, three(multiplies, b, c)),
        // to = to * [b] + c
        _ if is_target(a) => (None, three(multiplies_by_last, c, b)),
        (_, _, Arg::Reg(c, _)) => (Some(c), three(adds_to, first, last)),
        (Arg::Reg(a, _), ..) => (Some(a), three(multiplies, b, c)),
        _ => unreachable!("the first factor is a register"),
    }
}
