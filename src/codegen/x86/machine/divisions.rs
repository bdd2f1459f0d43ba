//! Divides some of the quotients by one number, beside the products that the others are made of.
//!
//! The unit that divides works beside those that multiply and add, so that the fastest loop uses all of them:
//!
//! ```text
//! q = quotient a, b            q = quotient a, b
//! r = quotient c, b      ->    r = div c, b
//! q = q * w + v                q = q * w + v
//! r = r * w + v                r = r * w + v
//! ```
//!
//! Both give the bits of a division. A quotient by products takes three of them and a test
//! ([`quotients`](super::quotients)); a division takes six cycles of its unit for f32 and nine for f64, and two of those
//! that multiply. The number of divisions is the one with the fewest cycles of the busiest unit ([`units`](super::units)).

use super::code::{Arg, Inst, Item, MachineProgram, Reg};
use super::table::Opcode;
use super::tier::Tier;
use super::units::{Cycles, innermost};
use rustc_hash::FxHashSet;

/// Divides some quotients of each loop that has no loop inside.
pub fn divide(program: &mut MachineProgram, tier: Tier) {
    if !program.items.iter().any(|item| matches!(item, Item::Quotient { .. })) {
        return;
    }
    for body in innermost(&program.items) {
        divide_in(&mut program.items[body], tier);
    }
}

fn divide_in(body: &mut [Item], tier: Tier) {
    let Some(loop_) = Quotients::of(body) else { return };
    let divisions = (0..=loop_.number).rev().min_by_key(|&n| loop_.twice_cycles(n)).expect("a number");
    let mut seen = 0;
    for item in body {
        let Item::Quotient { to, a, b, double, .. } = *item else { continue };
        seen += 1;
        // They are spread over the body.
        if seen * divisions / loop_.number > (seen - 1) * divisions / loop_.number {
            let opcode = if double { Opcode::Vdivpd } else { Opcode::Vdivps };
            *item = Item::Inst(Inst::new(opcode, &[to, a, b].map(|reg| Arg::Reg(reg, tier.view()))));
        }
    }
}

/// The quotients in a loop.
struct Quotients {
    number: usize,
    /// True if one of them is of f64.
    double: bool,
    /// The number of them whose NaNs become canonical at once: products need not do that.
    canonical: usize,
    /// The number of them whose reciprocals are loaded, which divisions do not need.
    loaded: usize,
    /// The other work of the loop, with what makes NaNs canonical.
    others: Cycles,
}

impl Quotients {
    fn of(body: &[Item]) -> Option<Quotients> {
        let (mut results, mut loads) = (FxHashSet::<Reg>::default(), FxHashSet::default());
        let (mut double, mut canonical, mut loaded) = (false, 0, 0);
        for item in body {
            if matches!(item.memory(), Some((_, false))) {
                loads.extend(item.def().map(|(reg, _)| reg));
            }
            match item {
                Item::Quotient { to, y, double: of_f64, .. } => {
                    results.insert(*to);
                    double |= of_f64;
                    loaded += usize::from(loads.contains(y));
                }
                Item::Inst(Inst { opcode: Opcode::Vfixupimmps | Opcode::Vfixupimmpd, args, .. }) => {
                    canonical += usize::from(matches!(args[1], Arg::Reg(from, _) if results.contains(&from)));
                }
                _ => {}
            }
        }
        let number = body.iter().filter(|item| matches!(item, Item::Quotient { .. })).count();
        (number > 0).then(|| Quotients { number, double, canonical, loaded, others: Cycles::of_body(body) })
    }

    /// The cycles of the busiest unit, times two, if so many are divided.
    fn twice_cycles(&self, divisions: usize) -> usize {
        let products = self.number - divisions;
        // A test has one comparison for each two quotients, and one for all.
        let tests = if products > 0 { 1 + products.div_ceil(2) } else { 0 };
        let all = self.others
            + Cycles::PRODUCT.times(2 * divisions + 3 * products + tests)
            + Cycles::EITHER.times(3 * products);
        let needless = products.min(self.canonical);
        let unread = divisions.min(self.loaded);
        let all = Cycles { multiplies: all.multiplies - needless, loads: all.loads - unread, ..all };
        let of_one = if self.double { 9 } else { 6 };
        all.twice().max(2 * of_one * divisions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::x86::machine::code::Class;

    /// The divisions among four quotients of a loop with so many other products and sums for each, of a type.
    fn divided(products: usize, sums: usize, double: bool) -> usize {
        let mut program = MachineProgram::default();
        let [a, b, y] = [0; 3].map(|_| program.reg(Class::Vector));
        program.items.push(Item::Enter(0));
        for _ in 0..4 {
            let to = program.reg(Class::Vector);
            program.items.push(Item::Quotient { to, a, b, y, double });
            for (opcode, number) in [(Opcode::Vmulps, products), (Opcode::Vsubps, sums)] {
                let inst = Inst::new(opcode, &[to, to, y].map(|reg| Arg::Reg(reg, Tier::Avx512.view())));
                program.items.extend(vec![Item::Inst(inst); number]);
            }
        }
        program.items.push(Item::Leave);
        divide(&mut program, Tier::Avx512);
        let is_division =
            |item: &&Item| matches!(item, Item::Inst(inst) if matches!(inst.opcode, Opcode::Vdivps | Opcode::Vdivpd));
        program.items.iter().filter(is_division).count()
    }

    #[test]
    fn divisions_take_the_time_of_other_work() {
        assert_eq!(divided(0, 0, false), 2);
        assert_eq!(divided(2, 3, false), 3);
        assert_eq!(divided(2, 3, true), 2);
        assert_eq!(divided(6, 6, false), 4);
    }

    #[test]
    fn a_quotient_outside_of_loops_stays() {
        let mut program = MachineProgram::default();
        let [to, a, b, y] = [0; 4].map(|_| program.reg(Class::Vector));
        program.items.push(Item::Quotient { to, a, b, y, double: false });
        divide(&mut program, Tier::Avx512);
        assert!(matches!(program.items.as_slice(), [Item::Quotient { .. }]));
    }
}
