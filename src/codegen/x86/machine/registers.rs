//! Linear-scan register allocation over intervals.

use super::code::{Arg, Item, MachineProgram, Reg};
use super::encode::FRAME;
use super::live::{Interval, by_start, loops};
use super::spills;
use super::tier::Tier;
use iced_x86::Register;

/// The place of a virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// None: the register is never used.
    None,
    /// The machine's register with this number, of its class.
    Register(u8),
    /// The frame, so many bytes after the start of spilled registers.
    Frame(u32),
}

/// General registers; caller-saved ones come first. `rsi` is missing: it holds the frame.
pub const GENERAL: [Register; 14] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::RDI,
    Register::RBX,
    Register::RBP,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// The homes of all registers.
#[derive(Debug)]
pub struct Homes {
    pub(super) homes: Vec<Home>,
    /// Bytes of the frame.
    pub frame_bytes: u32,
    /// The allocated general registers, one bit for each number.
    pub general: u16,
}

impl Homes {
    /// The home of a register.
    pub fn of(&self, reg: Reg) -> Home {
        self.homes[reg.0 as usize]
    }
}

/// The number in [`GENERAL`] of the register that holds the argument `buffers`.
pub const BUFFERS: u8 = 7;

/// Allocates registers; `buffers` is the register that holds a value from the start. If some are spilled, as many
/// registers of their class are kept free as the operands of one instruction need.
pub fn allocate(program: &MachineProgram, tier: Tier, buffers: Reg) -> Homes {
    let (live, order) = by_start(program, &loops(program), &[buffers]);
    let all = [GENERAL.len() as u8, tier.registers() as u8, 7];
    let mut kept = [0; 3];
    loop {
        let homes = scan(program, (&live, &order), std::array::from_fn(|n| all[n] - kept[n]), buffers);
        let needed = spills::scratch(program, &homes, tier);
        if (0..3).all(|n| needed[n] <= kept[n]) {
            let scratch = u16::MAX << (all[0] - kept[0]) & ((1 << all[0]) - 1);
            return Homes { general: homes.general | scratch, ..homes };
        }
        kept = std::array::from_fn(|n| kept[n].max(needed[n]));
    }
}

/// The machine's registers of a class.
struct Pool {
    /// The number of registers that may be given.
    count: u8,
    /// The free ones, one bit for each number.
    free: u64,
    /// The virtual register in each that is not free.
    holders: [Reg; 32],
}

impl Pool {
    fn of(count: u8) -> Pool {
        Pool { count, free: (1u64 << count) - 1, holders: [FRAME; 32] }
    }

    fn give(&mut self, number: u8, to: Reg) {
        self.free &= !(1 << number);
        self.holders[usize::from(number)] = to;
    }

    /// The virtual registers that hold one.
    fn held(&self) -> impl Iterator<Item = Reg> {
        (0..self.count).filter(|&n| self.free >> n & 1 == 0).map(|n| self.holders[usize::from(n)])
    }
}

/// Registers by the item at which they end: those of each item are a list.
struct Endings {
    first: Vec<Reg>,
    next: Vec<Reg>,
    /// The first item whose registers may still hold one.
    at: usize,
}

impl Endings {
    fn of(items: usize, registers: usize) -> Endings {
        Endings { first: vec![FRAME; items + 1], next: vec![FRAME; registers], at: 0 }
    }

    fn add(&mut self, reg: Reg, end: u32) {
        self.next[reg.0 as usize] = std::mem::replace(&mut self.first[end as usize], reg);
    }

    /// Calls `f` on every register that ends at `start` or before, once.
    fn take_up_to(&mut self, start: u32, mut f: impl FnMut(Reg)) {
        while self.at <= start as usize {
            let mut reg = std::mem::replace(&mut self.first[self.at], FRAME);
            while reg != FRAME {
                f(reg);
                reg = self.next[reg.0 as usize];
            }
            self.at += 1;
        }
        // More registers may end where this one starts.
        self.at = start as usize;
    }
}

fn scan(program: &MachineProgram, (live, order): (&[Interval], &[Reg]), counts: [u8; 3], buffers: Reg) -> Homes {
    let mut homes = vec![Home::None; live.len()];
    let mut pools = counts.map(Pool::of);
    let mut endings = Endings::of(program.items.len(), live.len());
    let (mut frame_bytes, mut general) = (0u32, 0u16);
    for &reg in order.iter().filter(|&&reg| reg != FRAME) {
        let n = reg.0 as usize;
        let own = live[n];
        endings.take_up_to(own.start, |ended| {
            if let Home::Register(r) = homes[ended.0 as usize] {
                pools[program.classes[ended.0 as usize].number()].free |= 1 << r;
            }
        });
        let class = program.classes[n].number();
        let pool = &mut pools[class];
        let wanted = hint(program, live, &homes, n).filter(|&r| pool.free >> r & 1 == 1);
        let wanted = if reg == buffers { Some(BUFFERS) } else { wanted };
        let given = wanted.or((pool.free != 0).then(|| pool.free.trailing_zeros() as u8));
        if let Some(r) = given {
            pool.give(r, reg);
            homes[n] = Home::Register(r);
            endings.add(reg, own.end);
        } else {
            // The register that is named least, for the time that it would be free, is spilled to the frame.
            let worth = |reg: Reg| live[reg.0 as usize].worth();
            let least = pool.held().min_by(|&a, &b| worth(a).total_cmp(&worth(b)));
            let bytes = if class == 1 { 64 } else { 8 };
            let place = Home::Frame(frame_bytes.next_multiple_of(bytes));
            frame_bytes = frame_bytes.next_multiple_of(bytes) + bytes;
            match least.filter(|&least| worth(least) < own.worth() && least != buffers) {
                Some(least) => {
                    homes[n] = std::mem::replace(&mut homes[least.0 as usize], place);
                    if let Home::Register(r) = homes[n] {
                        pool.give(r, reg);
                    }
                    endings.add(reg, own.end);
                }
                None => homes[n] = place,
            }
        }
        if let (0, Home::Register(r)) = (class, homes[n]) {
            general |= 1 << r;
        }
    }
    Homes { homes, frame_bytes, general }
}

/// The register of an operand that ends where this one begins, so that no copy between them is needed.
fn hint(program: &MachineProgram, live: &[Interval], homes: &[Home], n: usize) -> Option<u8> {
    let start = live[n].start;
    let ends = |reg: Reg| match homes[reg.0 as usize] {
        Home::Register(r) if live[reg.0 as usize].end == start => Some(r),
        _ => None,
    };
    let arg = |a: Arg| if let Arg::Reg(reg, _) = a { ends(reg) } else { None };
    match program.items.get(start as usize)? {
        Item::Copy { from, .. } => ends(*from),
        Item::Fma { a, b, c, .. } => arg(*c).or_else(|| ends(*a)).or_else(|| arg(*b)),
        _ => None,
    }
}
