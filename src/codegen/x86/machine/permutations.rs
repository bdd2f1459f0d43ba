//! Permutes once what is permuted twice, in vectors of 512 bits.
//!
//! ```text
//! b = permute a by p; c = permute b by q          ->   c = permute a by p[q]
//! b = permute a, a' by p; c = permute b by q      ->   c = permute a, a' by p[q]
//! ```
//!
//! Elements of a short row are brought into order, and then to the lanes of a wider type: both by constants. So it is
//! done where a permuted value is read by such permutations alone; [`dead`](super::dead) removes the first.

use super::code::{Arg, Constant, Inst, Item, MachineProgram, Reg, View};
use super::table::Opcode;
use rustc_hash::FxHashMap;

/// Bytes of a vector.
const VECTOR_BYTES: usize = 64;

/// A permutation by a constant.
#[derive(Clone, Copy)]
struct Permutation {
    to: Reg,
    /// The register of the constant.
    order: Reg,
    from: Reg,
    /// The second vector, whose elements are numbered on; `to` holds the first before.
    other: Option<Reg>,
    /// Bytes of an element.
    bytes: usize,
}

/// The permuted value of a register.
#[derive(Clone)]
struct Known {
    from: Reg,
    other: Option<Reg>,
    order: Vec<u8>,
    bytes: usize,
}

/// Composes permutations in runs of instructions without jumps.
pub fn compose(program: &mut MachineProgram) {
    if !program.items.iter().any(|item| permutation(item).is_some()) {
        return;
    }
    let readers = Readers::of(program);
    let mut run = Run::default();
    for item in std::mem::take(&mut program.items) {
        if matches!(item, Item::Enter(_) | Item::Leave | Item::Label(_) | Item::Jump(..)) {
            run = Run::default();
        }
        let composed = run.composed(&item, program);
        match &composed {
            Some(value) => write(program, &item, value),
            None => program.items.push(item),
        }
        if let Some((reg, _)) = item.def() {
            let value = composed.or_else(|| run.value(&item, program));
            run.writes(reg, &item, value.filter(|_| readers.are_permutations(reg)));
        }
    }
}

/// The registers of a run, up to an item.
#[derive(Default)]
struct Run {
    /// The permuted values.
    known: FxHashMap<Reg, Known>,
    /// The copies, with what they are of: a permutation of two vectors overwrites a copy of the first.
    copies: FxHashMap<Reg, Reg>,
}

impl Run {
    /// The value of an item that permutes a permuted value; `None` if it cannot be written as one permutation.
    fn composed(&self, item: &Item, program: &MachineProgram) -> Option<Known> {
        let of = permutation(item).filter(|of| of.other.is_none())?;
        let before = self.known.get(&of.from)?;
        // A copy of the first of two vectors takes the place of what the mask keeps, and must not be the second.
        let has_place = before.other.is_none_or(|other| other != of.to && !keeps(item));
        let order = orders(program, of.order).filter(|_| has_place)?;
        composed(before, &order, (of.bytes, is_masked(item)))
    }

    /// The value of a permutation by itself, or of a copy of a permuted value.
    fn value(&self, item: &Item, program: &MachineProgram) -> Option<Known> {
        if let Item::Copy { from, .. } = item {
            return self.known.get(from).cloned();
        }
        let of = permutation(item)?;
        let from = if of.other.is_some() { *self.copies.get(&of.to)? } else { of.from };
        Some(Known { from, other: of.other, order: orders(program, of.order)?, bytes: of.bytes })
    }

    /// An item has written a register, perhaps a permuted value of others.
    fn writes(&mut self, reg: Reg, item: &Item, value: Option<Known>) {
        let reads = |value: &Known| value.from == reg || value.other == Some(reg);
        self.known.retain(|of, value| *of != reg && !reads(value));
        self.copies.retain(|of, from| *of != reg && *from != reg);
        if let Item::Copy { to, from } = *item {
            self.copies.insert(to, from);
        }
        if let Some(value) = value.filter(|value| !reads(value) && !is_masked(item)) {
            self.known.insert(reg, value);
        }
    }
}

/// The readers of registers.
struct Readers {
    /// The number of writes and reads of each register, and of reads by permutations that may be composed.
    counts: Vec<[u32; 3]>,
}

impl Readers {
    fn of(program: &MachineProgram) -> Readers {
        let mut counts = vec![[0; 3]; program.classes.len()];
        for item in &program.items {
            if let Some((reg, reads)) = item.def() {
                // A permutation of two vectors overwrites a copy.
                let of_two = permutation(item).is_some_and(|of| of.other.is_some());
                counts[reg.0 as usize][0] += u32::from(!(of_two && reads));
            }
            item.uses(|reg| counts[reg.0 as usize][1] += 1);
            if let Some(of) = permutation(item).filter(|of| orders(program, of.order).is_some()) {
                let reg = if of.other.is_some() { of.to } else { of.from };
                counts[reg.0 as usize][2] += 1;
            }
        }
        // A copy is read in place of what it copies.
        for item in program.items.iter().rev() {
            if let Item::Copy { to, from } = *item {
                let [writes, reads, permuted] = counts[to.0 as usize];
                counts[from.0 as usize][2] += u32::from(writes == 1 && reads == permuted);
            }
        }
        Readers { counts }
    }

    /// Returns true if a register is written once, and read by permutations alone.
    fn are_permutations(&self, reg: Reg) -> bool {
        let [writes, reads, permuted] = self.counts[reg.0 as usize];
        writes == 1 && reads == permuted
    }
}

/// The permutation of an item, if it is one of whole vectors.
fn permutation(item: &Item) -> Option<Permutation> {
    let Item::Inst(inst) = item else { return None };
    let (bytes, of_two) = match inst.opcode {
        Opcode::Vpermb => (1, false),
        Opcode::Vpermw => (2, false),
        Opcode::Vpermd => (4, false),
        Opcode::Vpermq => (8, false),
        Opcode::Vpermt2b => (1, true),
        Opcode::Vpermt2w => (2, true),
        Opcode::Vpermt2d => (4, true),
        Opcode::Vpermt2q => (8, true),
        _ => return None,
    };
    let [Arg::Reg(to, View::Zmm), Arg::Reg(order, View::Zmm), Arg::Reg(from, View::Zmm), Arg::None] = inst.args else {
        return None;
    };
    let other = of_two.then_some(from);
    Some(Permutation { to, order, from, other, bytes })
}

fn is_masked(item: &Item) -> bool {
    matches!(item, Item::Inst(Inst { mask: Some(_), .. }))
}

/// Returns true if lanes outside the item's mask keep their values.
fn keeps(item: &Item) -> bool {
    matches!(item, Item::Inst(Inst { mask: Some(_), zeroing: false, .. }))
}

/// The bytes of a constant, the numbers of elements; `None` if the register holds none.
fn orders(program: &MachineProgram, reg: Reg) -> Option<Vec<u8>> {
    let of = program.constants.iter().find(|(constant, _)| *constant == reg)?;
    match &of.1 {
        Constant::Bytes(bytes) => Some(bytes.clone()),
        Constant::Splat(..) | Constant::Mask(_) => None,
    }
}

/// The number of each unit of `unit` bytes that an order takes, of elements of `bytes` bytes out of so many vectors.
fn units(order: &[u8], bytes: usize, unit: usize, vectors: usize) -> Vec<usize> {
    let (each, elements) = (bytes / unit, vectors * VECTOR_BYTES / bytes);
    let number = |element: &[u8]| element.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
    let of = |element: &[u8]| {
        let first = number(element) as usize % elements * each;
        first..first + each
    };
    order.chunks_exact(bytes).flat_map(of).collect()
}

/// The permutation of a permuted value by `order`, of elements of so many bytes, perhaps under a mask for each; `None` if
/// it takes elements that the first order leaves open, or the mask is of other elements.
fn composed(before: &Known, order: &[u8], (bytes, masked): (usize, bool)) -> Option<Known> {
    let unit = bytes.min(before.bytes);
    if masked && unit != bytes {
        return None;
    }
    let first = units(&before.order, before.bytes, unit, if before.other.is_some() { 2 } else { 1 });
    let taken: Option<Vec<usize>> = units(order, bytes, unit, 1).iter().map(|&n| first.get(n).copied()).collect();
    let order = taken?.iter().flat_map(|n| n.to_le_bytes().into_iter().take(unit)).collect();
    Some(Known { from: before.from, other: before.other, order, bytes: unit })
}

/// Writes a composed permutation in place of an item, under its mask.
fn write(program: &mut MachineProgram, item: &Item, value: &Known) {
    let (Item::Inst(inst), Some(Permutation { to, .. })) = (item, permutation(item)) else {
        unreachable!("only a permutation is composed")
    };
    let of_two = value.other.is_some();
    let opcode = match (value.bytes, of_two) {
        (1, false) => Opcode::Vpermb,
        (2, false) => Opcode::Vpermw,
        (4, false) => Opcode::Vpermd,
        (_, false) => Opcode::Vpermq,
        (1, true) => Opcode::Vpermt2b,
        (2, true) => Opcode::Vpermt2w,
        (4, true) => Opcode::Vpermt2d,
        (_, true) => Opcode::Vpermt2q,
    };
    let order = program.constant(Constant::Bytes(value.order.clone()));
    if of_two {
        program.items.push(Item::Copy { to, from: value.from });
    }
    let from = value.other.unwrap_or(value.from);
    let args = [to, order, from].map(|reg| Arg::Reg(reg, View::Zmm));
    program.items.push(Item::Inst(Inst { mask: inst.mask, zeroing: inst.zeroing, ..Inst::new(opcode, &args) }));
}

#[cfg(test)]
mod tests {
    use super::super::code::Class;
    use super::super::dead::remove_dead;
    use super::*;

    const OPCODES: [Opcode; 8] = [
        Opcode::Vpermb,
        Opcode::Vpermw,
        Opcode::Vpermd,
        Opcode::Vpermq,
        Opcode::Vpermt2b,
        Opcode::Vpermt2w,
        Opcode::Vpermt2d,
        Opcode::Vpermt2q,
    ];

    /// Numbers without order (xorshift).
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 8) as usize % end
        }
    }

    /// The bytes of all registers after a program of permutations and copies, where masks have two of three elements. A
    /// byte that an order leaves open has a value of its own.
    fn run(program: &MachineProgram) -> Vec<Vec<u16>> {
        let mut values: Vec<Vec<u16>> =
            (0..program.classes.len() as u16).map(|reg| (0..64).map(|byte| 64 * reg + byte).collect()).collect();
        for item in &program.items {
            if let Item::Copy { to, from } = item {
                values[to.0 as usize] = values[from.0 as usize].clone();
            }
            let Some(of) = permutation(item) else { continue };
            let old = values[of.to.0 as usize].clone();
            let order = orders(program, of.order).expect("a constant");
            let tables = match of.other {
                Some(other) => [old.clone(), values[other.0 as usize].clone()].concat(),
                None => values[of.from.0 as usize].clone(),
            };
            let all = units(&order, of.bytes, 1, if of.other.is_some() { 2 } else { 1 });
            let byte = |n: usize| match n / of.bytes % 3 {
                0 if keeps(item) => old[n],
                0 if is_masked(item) => 0,
                _ => all.get(n).map_or(u16::MAX, |&from| tables[from]),
            };
            values[of.to.0 as usize] = (0..VECTOR_BYTES).map(byte).collect();
        }
        values
    }

    /// A program of so many permutations, whose results of the last half are stored in the end.
    fn program(random: &mut Random, items: usize) -> MachineProgram {
        let mut program = MachineProgram::default();
        let address = program.reg(Class::General);
        let mask = program.constant(Constant::Mask(0));
        let regs: Vec<Reg> = (0..4 + items).map(|_| program.reg(Class::Vector)).collect();
        for n in 0..items {
            // Most write a new register, some an old one.
            let to = if random.below(8) == 0 { regs[random.below(4 + n)] } else { regs[4 + n] };
            let [from, other] = [(); 2].map(|()| regs[(4 + n).saturating_sub(1 + random.below(4))]);
            let opcode = OPCODES[random.below(OPCODES.len())];
            let of_two = OPCODES[4..].contains(&opcode);
            if random.below(6) == 0 || of_two {
                program.items.push(Item::Copy { to, from });
            }
            let bytes = 1 << (OPCODES.iter().position(|known| *known == opcode).expect("one of them") % 4);
            let whole = VECTOR_BYTES / bytes;
            let count = if random.below(4) == 0 { whole / 2 } else { whole };
            let of = if of_two { 2 * whole } else { whole };
            let order = (0..count).flat_map(|_| random.below(of).to_le_bytes().into_iter().take(bytes)).collect();
            let order = program.constant(Constant::Bytes(order));
            let args = [to, order, other].map(|reg| Arg::Reg(reg, View::Zmm));
            let inst = Inst::new(opcode, &args);
            let inst = match random.below(4) {
                0 => inst.masked(mask, true),
                1 => inst.masked(mask, false),
                _ => inst,
            };
            program.items.push(Item::Inst(inst));
        }
        for (n, reg) in regs.iter().enumerate().skip(4 + items / 2) {
            let args = [Arg::Mem(address, 64 * n as i32), Arg::Reg(*reg, View::Zmm)];
            program.items.push(Item::Inst(Inst::new(Opcode::Vmovdqu32, &args)));
        }
        program
    }

    #[test]
    fn composed_permutations_take_the_same_bytes() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut fewer = 0;
        for _ in 0..2000 {
            let items = 2 + random.below(12);
            let mut before = program(&mut random, items);
            let mut after = before.clone();
            compose(&mut after);
            let [expected, found] = [&before, &after].map(run);
            for reg in 4 + items / 2..4 + items {
                // The address and the mask come before them.
                let reg = 2 + reg;
                // A byte that was left open may be any.
                let same = expected[reg].iter().zip(&found[reg]).all(|(a, b)| a == b || *a == u16::MAX);
                assert!(same, "register {reg}: {:?}\n{:?}", before.items, after.items);
            }
            remove_dead(&mut before);
            remove_dead(&mut after);
            let count = |p: &MachineProgram| p.items.iter().filter(|item| permutation(item).is_some()).count();
            assert!(count(&after) <= count(&before), "{:?}\n{:?}", before.items, after.items);
            fewer += usize::from(count(&after) < count(&before));
        }
        assert!(fewer > 100, "{fewer} programs became shorter");
    }
}
