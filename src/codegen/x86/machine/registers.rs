//! Linear-scan register allocation over intervals.

use super::code::{Arg, Item, MachineProgram, Reg};
use super::encode::FRAME;
use super::live::{Interval, intervals, loops};
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
    let spans = loops(program);
    let live = intervals(program, &spans, &[buffers]);
    let all = [GENERAL.len() as u8, tier.registers() as u8, 7];
    let mut kept = [0; 3];
    loop {
        let homes = scan(program, &live, std::array::from_fn(|n| all[n] - kept[n]), buffers);
        let needed = spills::scratch(program, &homes, tier);
        if (0..3).all(|n| needed[n] <= kept[n]) {
            let scratch = u16::MAX << (all[0] - kept[0]) & ((1 << all[0]) - 1);
            return Homes { general: homes.general | scratch, ..homes };
        }
        kept = std::array::from_fn(|n| kept[n].max(needed[n]));
    }
}

fn scan(program: &MachineProgram, live: &[Interval], counts: [u8; 3], buffers: Reg) -> Homes {
    let mut order: Vec<usize> = (0..live.len()).filter(|&n| live[n].used && Reg(n as u32) != FRAME).collect();
    order.sort_by_key(|&n| (live[n].start, Reg(n as u32) != buffers));
    let mut homes = vec![Home::None; live.len()];
    let mut free: [u64; 3] = counts.map(|n| (1u64 << n) - 1);
    let mut active: [Vec<usize>; 3] = Default::default();
    let (mut frame_bytes, mut general) = (0u32, 0u16);
    for n in order {
        let class = program.classes[n].number();
        active[class].retain(|&a| {
            let ends = live[a].end <= live[n].start;
            if ends && let Home::Register(r) = homes[a] {
                free[class] |= 1 << r;
            }
            !ends
        });
        let wanted = hint(program, live, &homes, n).filter(|&r| free[class] >> r & 1 == 1);
        let wanted = if Reg(n as u32) == buffers { Some(BUFFERS) } else { wanted };
        let given = wanted.or((free[class] != 0).then(|| free[class].trailing_zeros() as u8));
        if let Some(r) = given {
            free[class] &= !(1 << r);
            homes[n] = Home::Register(r);
            active[class].push(n);
        } else {
            // The register that is named least, for the time that it would be free, is spilled to the frame.
            let least = active[class].iter().copied().min_by(|&a, &b| live[a].worth().total_cmp(&live[b].worth()));
            let bytes = if class == 1 { 64 } else { 8 };
            let place = Home::Frame(frame_bytes.next_multiple_of(bytes));
            frame_bytes = frame_bytes.next_multiple_of(bytes) + bytes;
            match least.filter(|&l| live[l].worth() < live[n].worth() && Reg(l as u32) != buffers) {
                Some(l) => {
                    homes[n] = homes[l];
                    homes[l] = place;
                    active[class].retain(|&a| a != l);
                    active[class].push(n);
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
