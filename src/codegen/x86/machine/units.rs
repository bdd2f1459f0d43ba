//! The units of a core that vector instructions take.
//!
//! | units | instructions |
//! | --- | --- |
//! | that multiply | products, comparisons, canonical NaNs; a division takes them twice |
//! | that add | sums, extremes of floats, roundings, conversions, shifts; a product with a power of two takes them twice |
//! | either | sums and extremes of integers, logic, selections, permutations |
//!
//! Each kind does one whole vector in a cycle of AVX-512, two in AVX2, and so do those that load. Measured on Zen 4, by loops of instructions that do
//! not depend on one another, alone and beside sums and products, for one instruction of each kind on lanes of 32 bits; the
//! others, roots and permutations are taken to be like them. Processors whose units do all of it lose nothing where the two
//! kinds have equal work.

use super::code::{Arg, Inst, Item, View};
use super::row::Masking;
use super::table::Opcode;
use std::iter::Sum;
use std::ops::{Add, Range};

/// The whole vectors that units of each kind do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cycles {
    /// Vectors that only units which multiply do.
    pub multiplies: usize,
    /// Vectors that only units which add do.
    pub adds: usize,
    /// Vectors that any unit does.
    pub either: usize,
    /// Vectors that are loaded.
    pub loads: usize,
}

impl Cycles {
    /// One vector of the units that multiply.
    pub const PRODUCT: Cycles = Cycles { multiplies: 1, adds: 0, either: 0, loads: 0 };
    /// One vector of the units that add.
    pub const SUM: Cycles = Cycles { multiplies: 0, adds: 1, either: 0, loads: 0 };
    /// One vector of any unit.
    pub const EITHER: Cycles = Cycles { multiplies: 0, adds: 0, either: 1, loads: 0 };

    /// The cycles of an item.
    pub fn of(item: &Item) -> Cycles {
        let loads = usize::from(matches!(item.memory(), Some((_, false))));
        let of_units = match item {
            Item::Fma { .. } => Cycles::PRODUCT,
            Item::Inst(inst) => of_inst(inst),
            _ => Cycles::default(),
        };
        Cycles { loads, ..of_units }
    }

    /// The cycles of a loop's body, without what its jumps leave out.
    pub fn of_body(body: &[Item]) -> Cycles {
        let mut left_out = None;
        let each = body.iter().map(|item| match (item, left_out) {
            (Item::Label(label), Some(until)) if *label == until => {
                left_out = None;
                Cycles::default()
            }
            (_, Some(_)) => Cycles::default(),
            (Item::Jump(_, label), None) => {
                let is_ahead = |item: &Item| matches!(item, Item::Label(other) if other == label);
                left_out = body.iter().any(is_ahead).then_some(*label);
                Cycles::default()
            }
            (item, None) => Cycles::of(item),
        });
        each.sum()
    }

    /// The cycles until all of it is done, times two.
    pub fn twice(self) -> usize {
        let Cycles { multiplies, adds, either, loads } = self;
        (2 * multiplies.max(adds).max(loads)).max(multiplies + adds + either)
    }

    /// These cycles so many times.
    pub fn times(self, n: usize) -> Cycles {
        let Cycles { multiplies, adds, either, loads } = self;
        Cycles { multiplies: n * multiplies, adds: n * adds, either: n * either, loads: n * loads }
    }
}

impl Add for Cycles {
    type Output = Cycles;

    fn add(self, other: Cycles) -> Cycles {
        Cycles {
            multiplies: self.multiplies + other.multiplies,
            adds: self.adds + other.adds,
            either: self.either + other.either,
            loads: self.loads + other.loads,
        }
    }
}

impl Sum for Cycles {
    fn sum<I: Iterator<Item = Cycles>>(all: I) -> Cycles {
        all.fold(Cycles::default(), Cycles::add)
    }
}

#[allow(clippy::enum_glob_use, reason = "a table of instructions")]
fn of_inst(inst: &Inst) -> Cycles {
    use Opcode::*;
    match inst.opcode {
        Vmulps | Vmulpd | Vpmulhw | Vfmsub213ps | Vfmsub213pd | Vfnmadd231ps | Vfnmadd231pd | Vfixupimmps
        | Vfixupimmpd => Cycles::PRODUCT,
        Vdivps | Vdivpd | Vsqrtps | Vsqrtpd => Cycles::PRODUCT.times(2),
        Vaddps | Vaddpd | Vsubps | Vsubpd | Vminps | Vminpd | Vmaxps | Vmaxpd | Vrangeps | Vrangepd | Vroundps
        | Vroundpd | Vcvtdq2ps | Vcvtudq2ps | Vcvtps2dq | Vcvttps2dq | Vcvtph2ps | Vpsllw | Vpslld | Vpsllq
        | Vpsrlw | Vpsrld | Vpsrlq | Vpsraw | Vpsrad | Vpsraq => Cycles::SUM,
        Vscalefps | Vscalefpd => Cycles::SUM.times(2),
        Vmovdqa | VmovdquXmm | VmovdquYmm | Vmovdqu8 | Vmovdqu16 | Vmovdqu32 | Vmovdqu64 => Cycles::default(),
        opcode if opcode.row().masking == Masking::Holds => Cycles::PRODUCT,
        _ => match inst.args[0] {
            Arg::Reg(_, View::Xmm | View::Ymm | View::Zmm) => Cycles::EITHER,
            _ => Cycles::default(),
        },
    }
}

/// The bodies of the loops that have no loop inside.
pub fn innermost(items: &[Item]) -> Vec<Range<usize>> {
    let mut bodies = vec![];
    let mut start = None;
    for (at, item) in items.iter().enumerate() {
        match item {
            Item::Enter(_) => start = Some(at),
            Item::Leave => bodies.extend(start.take().map(|start| start..at)),
            _ => {}
        }
    }
    bodies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::x86::machine::code::{Class, MachineProgram};
    use crate::codegen::x86::machine::tier::Tier;

    #[test]
    fn what_a_jump_leaves_out_counts_for_nothing() {
        let mut program = MachineProgram::default();
        let done = program.label();
        let reg = Arg::Reg(program.reg(Class::Vector), Tier::Avx512.view());
        let inst = |opcode| Item::Inst(Inst::new(opcode, &[reg; 3]));
        let body = [
            inst(Opcode::Vmulps),
            Item::Jump(Opcode::Je, done),
            inst(Opcode::Vdivps),
            Item::Label(done),
            inst(Opcode::Vscalefps),
            inst(Opcode::Vpaddd),
        ];
        let cycles = Cycles::of_body(&body);
        assert_eq!(cycles, Cycles { multiplies: 1, adds: 2, either: 1, loads: 0 });
        assert_eq!((cycles.twice(), cycles.times(2).twice()), (4, 8));
        assert_eq!(Cycles { multiplies: 2, adds: 2, either: 3, loads: 1 }.twice(), 7);
    }
}
