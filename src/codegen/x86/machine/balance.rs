//! Adds in the units that multiply, where a loop has more for the units that add.
//!
//! A Zen adds in two units and multiplies in two others ([`units`](super::units)). A loop that only adds leaves half of
//! them idle, so some of its additions become products by one to which the other term is added:
//!
//! ```text
//! t = sub x, m            t = x; t = t * 1 - m
//! u = sub t, d     ->     u = sub t, d
//! a = add a, u            a = add a, u
//! ```
//!
//! A product by one is exact, and the sum is rounded once, as that of an addition is. A sum that the next iteration adds
//! to stays: an addition takes a cycle less. Processors whose units do both lose nothing.

use super::code::{Arg, Constant, Inst, Item, MachineProgram, Reg};
use super::table::Opcode;
use super::tier::Tier;
use super::units::{Cycles, innermost};

/// Balances each loop that has no loop inside.
pub fn balance(program: &mut MachineProgram, tier: Tier) {
    let mut chosen = vec![false; program.items.len()];
    for body in innermost(&program.items) {
        choose(&program.items[body.clone()], tier, &mut chosen[body]);
    }
    if !chosen.contains(&true) {
        return;
    }
    let items = std::mem::take(&mut program.items);
    for (item, chosen) in items.into_iter().zip(chosen) {
        match Sum::of(&item, tier).filter(|_| chosen) {
            Some(sum) => sum.write_product(program, tier),
            None => program.items.push(item),
        }
    }
}

/// Marks the sums of a body that become products: half of the work that the units which add have beyond the others, if
/// so many may.
fn choose(body: &[Item], tier: Tier, chosen: &mut [bool]) {
    let Cycles { multiplies, adds, .. } = Cycles::of_body(body);
    let may = |item: &Item| Sum::of(item, tier).is_some_and(|sum| !sum.is_carried());
    let all = body.iter().filter(|item| may(item)).count();
    let most = (adds.saturating_sub(multiplies) / 2).min(all);
    // They are spread over the body, so that all units have work all the time.
    let mut seen = 0;
    for (item, chosen) in body.iter().zip(chosen) {
        if may(item) {
            *chosen = (seen + 1) * most / all > seen * most / all;
            seen += 1;
        }
    }
}

/// `to = a + b`, or `a - b`.
struct Sum {
    to: Reg,
    a: Reg,
    b: Arg,
    subtracts: bool,
    double: bool,
}

impl Sum {
    /// The sum that an item is, if it is one of whole vectors.
    fn of(item: &Item, tier: Tier) -> Option<Sum> {
        let Item::Inst(inst) = item else { return None };
        let (subtracts, double) = match inst.opcode {
            Opcode::Vaddps => (false, false),
            Opcode::Vaddpd => (false, true),
            Opcode::Vsubps => (true, false),
            Opcode::Vsubpd => (true, true),
            _ => return None,
        };
        let [Arg::Reg(to, view), Arg::Reg(a, _), b, _] = inst.args else { return None };
        (inst.mask.is_none() && view == tier.view()).then_some(Sum { to, a, b, subtracts, double })
    }

    /// Returns whether the sum goes on in its own register.
    fn is_carried(&self) -> bool {
        self.to == self.a || matches!(self.b, Arg::Reg(b, _) if b == self.to)
    }

    /// Writes the sum as a product by one.
    fn write_product(self, program: &mut MachineProgram, tier: Tier) {
        let Sum { to, a, b, subtracts, double } = self;
        let one = program.constant(if double {
            Constant::Splat(1f64.to_bits(), 8)
        } else {
            Constant::Splat(1f32.to_bits().into(), 4)
        });
        let full = |reg| Arg::Reg(reg, tier.view());
        if subtracts {
            let opcode = if double { Opcode::Vfmsub213pd } else { Opcode::Vfmsub213ps };
            program.items.push(Item::Copy { to, from: a });
            program.items.push(Item::Inst(Inst::new(opcode, &[full(to), full(one), b])));
        } else {
            program.items.push(Item::Fma { to, a, b: full(one), c: b, double });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::x86::machine::code::{Class, View};

    /// The items of a loop over `a = a + ((x - m) - d)`, with this many products of other registers, after `balance`.
    fn balanced(products: usize, tier: Tier) -> Vec<Item> {
        let mut program = MachineProgram::default();
        let [a, x, m, d, t, u, p] = [0; 7].map(|_| program.reg(Class::Vector));
        let full = |reg| Arg::Reg(reg, tier.view());
        let op = |opcode, regs: [Reg; 3]| Item::Inst(Inst::new(opcode, &regs.map(full)));
        program.items.push(Item::Enter(0));
        program.items.extend([op(Opcode::Vsubps, [t, x, m]), op(Opcode::Vsubps, [u, t, d])]);
        program.items.push(op(Opcode::Vaddps, [a, a, u]));
        program.items.extend((0..products).map(|_| op(Opcode::Vmulps, [p, m, d])));
        program.items.extend([Item::Leave, op(Opcode::Vaddps, [t, x, m])]);
        balance(&mut program, tier);
        program.items
    }

    fn count(items: &[Item], is: fn(Opcode) -> bool) -> usize {
        items.iter().filter(|item| matches!(item, Item::Inst(inst) if is(inst.opcode))).count()
    }

    #[test]
    fn half_of_the_surplus_becomes_products() {
        for tier in [Tier::Avx2, Tier::Avx512] {
            for (products, expected) in [(0, 1), (1, 1), (2, 0), (5, 0)] {
                let items = balanced(products, tier);
                assert_eq!(count(&items, |op| op == Opcode::Vfmsub213ps), expected, "{products} products");
                let sums = count(&items, |op| matches!(op, Opcode::Vaddps | Opcode::Vsubps));
                assert_eq!(sums, 4 - expected, "{products} products");
            }
        }
    }

    #[test]
    fn a_sum_that_goes_on_and_one_outside_of_loops_stay() {
        let items = balanced(0, Tier::Avx512);
        assert_eq!(count(&items, |op| op == Opcode::Vaddps), 2);
    }

    #[test]
    fn a_sum_of_half_a_vector_stays() {
        let mut program = MachineProgram::default();
        let regs = [0; 3].map(|_| program.reg(Class::Vector));
        let half = Inst::new(Opcode::Vsubps, &regs.map(|reg| Arg::Reg(reg, View::Ymm)));
        program.items = vec![Item::Enter(0), Item::Inst(half), Item::Inst(half), Item::Leave];
        balance(&mut program, Tier::Avx512);
        assert_eq!(count(&program.items, |op| op == Opcode::Vsubps), 2);
    }
}
