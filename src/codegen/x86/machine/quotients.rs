//! Writes the quotients by one number through its reciprocal: [`math::quotient`] has the law.
//!
//! In each run of instructions without jumps, all quotients that do not depend on one another come first, with a test of
//! them all; where one may be wrong, and where there is no reciprocal, they are divided after all:
//!
//! ```text
//! load a; q = a / b; store q          load a; load c; q = a y, ..; p = c y, ..
//! load c; p = c / b; store p    ->    if a, c, q and p fit, jump to done
//!                                     q = div a, b; p = div c, b
//!                                     done: store q; store p
//! ```
//!
//! A Zen 4 divides 16 numbers of 4 bytes in 6 cycles. With three products, the test of a group, and no instructions that
//! make NaNs canonical, a softmax of rows of 1,024 takes 8 % less time, and an L2 normalisation 20 %.

use super::check;
use super::code::{Address, Arg, Class, Constant, Inst, Item, MachineProgram, Reg, View};
use super::row::Flags;
use super::table::Opcode;
use super::tier::Tier;
use cranefold_ir::{DType, math};
use rustc_hash::FxHashSet;

/// Writes the instructions of all quotients.
pub fn expand(program: &mut MachineProgram, tier: Tier) {
    if !program.items.iter().any(is_quotient) {
        return;
    }
    let mut run = vec![];
    for item in std::mem::take(&mut program.items) {
        match item {
            Item::Enter(_) | Item::Leave | Item::Label(_) | Item::Jump(..) => {
                let (start, setter) = (program.items.len(), check::ON.then(|| last_setter(&run)));
                expand_run(std::mem::take(&mut run), program, tier);
                if let Some(setter) = setter.filter(|_| item.flags() == Flags::Reads) {
                    assert_eq!(last_setter(&program.items[start..]), setter, "quotients took the flags of a jump");
                }
                program.items.push(item);
            }
            _ => run.push(item),
        }
    }
    expand_run(run, program, tier);
}

/// The last instruction that sets the flags, as text.
fn last_setter(items: &[Item]) -> Option<String> {
    items.iter().rfind(|item| item.flags() == Flags::Sets).map(|item| format!("{item:?}"))
}

fn is_quotient(item: &Item) -> bool {
    matches!(item, Item::Quotient { .. })
}

/// Writes a run.
fn expand_run(mut run: Vec<Item>, program: &mut MachineProgram, tier: Tier) {
    while run.iter().any(is_quotient) {
        let mut parts = Parts::of(run, program, tier);
        let canonical = parts.take_canonical();
        program.items.extend(parts.before);
        Writer { program, tier, double: parts.double }.write(&parts.quotients, &canonical);
        run = parts.after;
    }
    program.items.extend(run);
}

/// A quotient: its result and its operands.
#[derive(Clone, Copy)]
struct Quotient {
    to: Reg,
    a: Reg,
    b: Reg,
    y: Reg,
}

/// A run of instructions around its first quotients.
struct Parts {
    before: Vec<Item>,
    quotients: Vec<Quotient>,
    double: bool,
    after: Vec<Item>,
}

impl Parts {
    /// The parts of a run. An item comes after the quotients if it needs one of them, or must stay behind an item that
    /// does.
    fn of(run: Vec<Item>, program: &MachineProgram, tier: Tier) -> Parts {
        // Each takes two registers until all are tested, beside the operands of others.
        let most = tier.registers() / 8;
        let mut parts = Parts { before: vec![], quotients: vec![], double: false, after: vec![] };
        let mut behind = Behind::default();
        for item in run {
            let is_full = parts.quotients.len() == most;
            match item {
                Item::Quotient { to, a, b, y, double }
                    if !is_full
                        && !behind.holds(&item, program)
                        && (parts.quotients.is_empty() || parts.double == double) =>
                {
                    parts.double = double;
                    parts.quotients.push(Quotient { to, a, b, y });
                    behind.add(&item, program);
                }
                _ if (is_full || is_quotient(&item) || behind.holds(&item, program)) && !parts.quotients.is_empty() => {
                    behind.add(&item, program);
                    parts.after.push(item);
                }
                _ => parts.before.push(item),
            }
        }
        parts
    }
}

/// The instructions that replace a NaN in a quotient by the canonical one.
#[derive(Clone, Copy)]
struct Canonical {
    /// Copies the canonical NaN to where the quotient goes.
    copy: Item,
    /// Writes the quotient there, unless it is a NaN.
    fix: Item,
    from: Reg,
    to: Reg,
}

/// The comparison that is true where one operand is a NaN.
const UNORDERED: i64 = 3;
/// The comparison that is true where no operand is a NaN.
const ORDERED: i64 = 7;
/// The comparison of integers that is true where the first is not below the second.
const NOT_BELOW: i64 = 5;

impl Parts {
    /// Takes the instructions that make NaNs canonical, which quotients that passed the test need not: each becomes a copy
    /// of the quotient.
    fn take_canonical(&mut self) -> Vec<Canonical> {
        let quotients: FxHashSet<Reg> = self.quotients.iter().map(|q| q.to).collect();
        let mut found = vec![];
        for at in (0..self.after.len()).rev() {
            let fix = self.after[at];
            let Item::Inst(Inst { opcode: Opcode::Vfixupimmps | Opcode::Vfixupimmpd, args, mask: None, .. }) = fix
            else {
                continue;
            };
            let [Arg::Reg(to, _), Arg::Reg(from, _), ..] = args else { continue };
            let is_copy = |item: &Item| matches!(item, Item::Copy { to: copied, .. } if *copied == to);
            if !quotients.contains(&from) {
                continue;
            }
            // The copy of the NaN depends on no quotient: it may stand before them.
            let behind = self.after[..at].iter().rposition(is_copy);
            let before = || self.before.iter().rposition(is_copy);
            let Some(place) = behind.or_else(before) else { continue };
            self.after[at] = Item::Copy { to, from };
            let copy = if behind.is_some() { self.after.remove(place) } else { self.before.remove(place) };
            found.push(Canonical { copy, fix, from, to });
        }
        found
    }
}

/// The effects of quotients and of the items after them.
#[derive(Default)]
struct Behind {
    written: FxHashSet<Reg>,
    read: FxHashSet<Reg>,
    /// True if an item loads.
    loads: bool,
    /// The addresses of stores.
    stores: Vec<Address>,
    /// True if an item may use the flags.
    flags: bool,
}

impl Behind {
    fn add(&mut self, item: &Item, program: &MachineProgram) {
        item.uses(|reg| _ = self.read.insert(reg));
        self.written.extend(item.def().map(|(reg, _)| reg));
        match item.memory() {
            Some((address, true)) => self.stores.push(address),
            Some(_) => self.loads = true,
            None => {}
        }
        // The test of quotients sets the flags, on which the end of a loop depends.
        self.flags |= is_quotient(item) || may_use_flags(item, program);
    }

    /// Returns true if an item must stay behind those that were added.
    fn holds(&self, item: &Item, program: &MachineProgram) -> bool {
        let mut holds = item.def().is_some_and(|(reg, _)| self.read.contains(&reg) || self.written.contains(&reg));
        item.uses(|reg| holds |= self.written.contains(&reg));
        holds
            || self.flags && may_use_flags(item, program)
            || match item.memory() {
                Some((_, true)) => self.loads || !self.stores.is_empty(),
                Some((address, false)) => self.stores.iter().any(|&to| program.may_overlap(to, address, false)),
                None => false,
            }
    }
}

/// Returns true for instructions on general registers, which share the flags.
fn may_use_flags(item: &Item, program: &MachineProgram) -> bool {
    match item.def() {
        Some((reg, _)) => program.classes[reg.0 as usize] == Class::General,
        None => !matches!(item.memory(), Some((_, true))),
    }
}

struct Writer<'a> {
    program: &'a mut MachineProgram,
    tier: Tier,
    double: bool,
}

impl Writer<'_> {
    fn full(&self, reg: Reg) -> Arg {
        Arg::Reg(reg, self.tier.view())
    }

    /// Emits `opcode`, whose first operand it writes.
    fn emit(&mut self, opcode: Opcode, to: Reg, from: &[Reg]) {
        let args: Vec<Arg> = std::iter::once(to).chain(from.iter().copied()).map(|reg| self.full(reg)).collect();
        self.program.items.push(Item::Inst(Inst::new(opcode, &args)));
    }

    /// Emits `opcode` of two vectors into a new one.
    fn pair(&mut self, opcode: Opcode, a: Reg, b: Reg) -> Reg {
        let to = self.program.reg(Class::Vector);
        self.emit(opcode, to, &[a, b]);
        to
    }

    /// The opcode for f64, or for f32.
    fn of_type(&self, of_f64: Opcode, of_f32: Opcode) -> Opcode {
        if self.double { of_f64 } else { of_f32 }
    }

    /// A number in all lanes.
    fn splat(&mut self, bits: u64) -> Reg {
        self.program.constant(match self.double {
            true => Constant::Splat(bits, 8),
            false => Constant::Splat(bits & u64::from(u32::MAX), 4),
        })
    }

    fn write(mut self, quotients: &[Quotient], canonical: &[Canonical]) {
        let done = self.program.label();
        for &Quotient { to, a, b, y } in quotients {
            let rest = self.program.reg(Class::Vector);
            self.emit(self.of_type(Opcode::Vmulpd, Opcode::Vmulps), to, &[a, y]);
            self.program.items.push(Item::Copy { to: rest, from: to });
            self.emit(self.of_type(Opcode::Vfmsub213pd, Opcode::Vfmsub213ps), rest, &[b, a]);
            self.emit(self.of_type(Opcode::Vfnmadd231pd, Opcode::Vfnmadd231ps), to, &[rest, y]);
        }
        match self.tier {
            Tier::Avx512 => self.test_masks(quotients),
            Tier::Avx2 => self.test_lanes(quotients),
        }
        self.program.items.push(Item::Jump(Opcode::Je, done));
        for &Quotient { to, a, b, .. } in quotients {
            self.emit(self.of_type(Opcode::Vdivpd, Opcode::Vdivps), to, &[a, b]);
        }
        for &Canonical { copy, fix, from, to } in canonical {
            self.program.items.extend([copy, fix, Item::Copy { to: from, from: to }]);
        }
        self.program.items.push(Item::Label(done));
    }

    /// The first bit of each byte of a vector.
    fn first_bits(&mut self, to: Reg, from: Reg) {
        let args = [Arg::Reg(to, View::R32), self.full(from)];
        self.program.items.push(Item::Inst(Inst::new(Opcode::Vpmovmskb, &args)));
    }

    /// The bits of |a| without their highest, less one: greatest for 0.
    fn size(&mut self, a: Reg) -> Reg {
        let add = self.of_type(Opcode::Vpaddq, Opcode::Vpaddd);
        let ones = self.splat(u64::MAX);
        let doubled = self.pair(add, a, a);
        self.pair(add, doubled, ones)
    }

    /// The bits of the least numerator that is not 0.
    fn least(&self) -> u64 {
        match self.double {
            true => math::quotient::least(DType::F64).to_bits(),
            false => u64::from((math::quotient::least(DType::F32) as f32).to_bits()),
        }
    }

    /// Sets the flags to equal if all quotients are right, by masks of the lanes that are.
    fn test_masks(&mut self, quotients: &[Quotient]) {
        let sizes: Vec<Reg> = quotients.iter().map(|q| self.size(q.a)).collect();
        let smaller = self.of_type(Opcode::Vpminuq, Opcode::Vpminud);
        let smallest = sizes[1..].iter().fold(sizes[0], |least, &size| self.pair(smaller, least, size));
        let least = self.splat(2 * self.least() - 1);
        let below = self.of_type(Opcode::Vpcmpuq, Opcode::Vpcmpud);
        let mut fit = self.mask(below, [smallest, least], NOT_BELOW, None);
        let compare = self.of_type(Opcode::Vcmppd, Opcode::Vcmpps);
        for pair in quotients.chunks(2) {
            fit = self.mask(compare, [pair[0].to, pair[pair.len() - 1].to], ORDERED, Some(fit));
        }
        let (lanes, number) = (if self.double { 8 } else { 16 }, self.program.reg(Class::General));
        let wide = Arg::Reg(number, View::R64);
        self.program.items.push(Item::Inst(Inst::new(Opcode::KmovqTo, &[wide, Arg::Reg(fit, View::K)])));
        self.program.items.push(Item::Inst(Inst::new(Opcode::CmpBy, &[wide, Arg::Imm((1 << lanes) - 1)])));
    }

    /// The lanes for which a comparison holds, of those of a mask.
    fn mask(&mut self, opcode: Opcode, [a, b]: [Reg; 2], kind: i64, of: Option<Reg>) -> Reg {
        let to = self.program.reg(Class::Mask);
        let inst = Inst::new(opcode, &[Arg::Reg(to, View::K), self.full(a), self.full(b), Arg::Imm(kind)]);
        let inst = if let Some(of) = of { inst.masked(of, false) } else { inst };
        self.program.items.push(Item::Inst(inst));
        to
    }

    /// The same by lanes of ones where a quotient may be wrong.
    fn test_lanes(&mut self, quotients: &[Quotient]) {
        let sizes: Vec<Reg> = quotients.iter().map(|q| self.size(q.a)).collect();
        let least = 2 * self.least() - 1;
        let mut wrong: Vec<Reg> = if self.double {
            // There is no unsigned minimum; a shift makes the sizes signed numbers.
            let least = self.splat(least >> 1);
            let is_small = |own: &mut Self, size: Reg| {
                let half = own.program.reg(Class::Vector);
                let args = [own.full(half), own.full(size), Arg::Imm(1)];
                own.program.items.push(Item::Inst(Inst::new(Opcode::Vpsrlq, &args)));
                own.pair(Opcode::Vpcmpgtq, least, half)
            };
            sizes.iter().map(|&size| is_small(self, size)).collect()
        } else {
            let size = sizes[1..].iter().fold(sizes[0], |least, &size| self.pair(Opcode::Vpminud, least, size));
            let below = self.splat(least - 1);
            let least = self.pair(Opcode::Vpminud, size, below);
            vec![self.pair(Opcode::Vpcmpeqd, least, size)]
        };
        for pair in quotients.chunks(2) {
            let to = self.program.reg(Class::Vector);
            let args = [self.full(to), self.full(pair[0].to), self.full(pair[pair.len() - 1].to), Arg::Imm(UNORDERED)];
            let opcode = self.of_type(Opcode::Vcmppd, Opcode::Vcmpps);
            self.program.items.push(Item::Inst(Inst::new(opcode, &args)));
            wrong.push(to);
        }
        let any = wrong[1..].iter().fold(wrong[0], |any, &lanes| self.pair(Opcode::Vpor, any, lanes));
        let number = self.program.reg(Class::General);
        self.first_bits(number, any);
        let wide = Arg::Reg(number, View::R64);
        self.program.items.push(Item::Inst(Inst::new(Opcode::CmpBy, &[wide, Arg::Imm(0)])));
    }
}
