//! Machine instructions over virtual registers: what is selected, before registers are given out.

use iced_x86::Code;

/// A virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

/// What a virtual register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// An address or a counter.
    General,
    /// Lanes.
    Vector,
    /// One bit for each lane.
    Mask,
}

/// How much of a register an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the registers")]
pub enum View {
    R32,
    R64,
    Xmm,
    Ymm,
    Zmm,
    K,
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// No operand.
    None,
    /// A register.
    Reg(Reg, View),
    /// Memory, so many bytes after an address.
    Mem(Reg, i32),
    /// A constant of the pool; with whether its one element is broadcast.
    Pool(u32, bool),
    /// A number in the instruction.
    Imm(i64),
}

/// What an instruction does to its first operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// Writes it.
    Def,
    /// Reads and writes it.
    Mod,
    /// Reads it, or it is memory that is written.
    Use,
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub struct Inst {
    /// Which.
    pub code: Code,
    /// The operands, those used first.
    pub args: [Arg; 4],
    /// What it does to the first.
    pub first: First,
    /// The mask register under which it writes.
    pub mask: Option<Reg>,
    /// Whether lanes outside of the mask become zero.
    pub zeroing: bool,
    /// Bytes of the elements where the last register operand may be memory instead, else 0.
    pub fold: u8,
    /// Whether it should stay in the order of memory: a load of a view with holes.
    pub in_order: bool,
}

impl Inst {
    /// An instruction that writes its first operand.
    pub fn new(code: Code, args: &[Arg]) -> Inst {
        let mut all = [Arg::None; 4];
        all[..args.len()].copy_from_slice(args);
        Inst { code, args: all, first: First::Def, mask: None, zeroing: false, fold: 0, in_order: false }
    }

    /// The same, with what it does to its first operand.
    pub fn first(self, first: First) -> Inst {
        Inst { first, ..self }
    }

    /// The same under a mask.
    pub fn masked(self, mask: Reg, zeroing: bool) -> Inst {
        Inst { mask: Some(mask), zeroing, ..self }
    }

    /// The same, whose last register operand may be memory with elements of so many bytes.
    pub fn folding(self, bytes: u64) -> Inst {
        Inst { fold: bytes as u8, ..self }
    }

    /// The place of the operand that may be memory, where none is.
    pub fn foldable(&self) -> Option<usize> {
        let in_memory = self.args.iter().any(|a| matches!(a, Arg::Mem(..) | Arg::Pool(..)));
        let last = || self.args.iter().rposition(|a| matches!(a, Arg::Reg(..)));
        (self.fold > 0 && !in_memory).then(last).flatten()
    }
}

/// A place in the code to jump to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(pub u32);

/// A step of the program.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    /// An instruction.
    Inst(Inst),
    /// A copy between registers of one class.
    Copy { to: Reg, from: Reg },
    /// `to = a * b + c`, rounded once; of `b` and `c` at most one is memory or a constant. The form of
    /// the instruction follows from the registers. `double` says that the lanes are f64.
    Fma { to: Reg, a: Reg, b: Arg, c: Arg, double: bool },
    /// The first item of a loop's body; its number among the loops.
    Enter(u32),
    /// The end of a loop.
    Leave,
    /// A jump, taken on a condition or always.
    Jump(Code, Label),
    /// Where jumps go.
    Label(Label),
}

/// What a virtual register holds from the start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// Elements of so many bytes, all with these bits.
    Splat(u64, u8),
    /// The bytes of a vector, or of its start.
    Bytes(Vec<u8>),
    /// A mask.
    Mask(u64),
}

/// A tile in virtual registers.
#[derive(Debug, Default)]
pub struct Program {
    /// The steps.
    pub items: Vec<Item>,
    /// The class of each register.
    pub classes: Vec<Class>,
    /// Registers that hold constants.
    pub constants: Vec<(Reg, Constant)>,
    /// What each loop is called.
    pub loops: Vec<String>,
    /// Labels so far.
    labels: u32,
}

impl Program {
    /// A new register.
    pub fn reg(&mut self, class: Class) -> Reg {
        self.classes.push(class);
        Reg(self.classes.len() as u32 - 1)
    }

    /// A new label.
    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// The register of a constant.
    pub fn constant(&mut self, constant: Constant) -> Reg {
        if let Some((reg, _)) = self.constants.iter().find(|(_, c)| *c == constant) {
            return *reg;
        }
        let class = if matches!(constant, Constant::Mask(_)) { Class::Mask } else { Class::Vector };
        let reg = self.reg(class);
        self.constants.push((reg, constant));
        reg
    }

    /// How many labels there are.
    pub fn labels(&self) -> usize {
        self.labels as usize
    }
}

impl Item {
    /// Calls `f` on every register that is read.
    pub fn uses(&self, mut f: impl FnMut(Reg)) {
        let mut arg = |a: &Arg| match *a {
            Arg::Reg(reg, _) | Arg::Mem(reg, _) => f(reg),
            _ => {}
        };
        match self {
            Item::Inst(i) => {
                let skipped = usize::from(i.first == First::Def && matches!(i.args[0], Arg::Reg(..)));
                i.args[skipped..].iter().for_each(&mut arg);
                i.mask.into_iter().for_each(f);
            }
            Item::Copy { from, .. } => f(*from),
            Item::Fma { a, b, c, .. } => {
                arg(b);
                arg(c);
                f(*a);
            }
            _ => {}
        }
    }

    /// The register that is written, and whether it is read before.
    pub fn def(&self) -> Option<(Reg, bool)> {
        match self {
            Item::Inst(Inst { args: [Arg::Reg(reg, _), ..], first, .. }) => match first {
                First::Def => Some((*reg, false)),
                First::Mod => Some((*reg, true)),
                First::Use => None,
            },
            Item::Copy { to, .. } | Item::Fma { to, .. } => Some((*to, false)),
            _ => None,
        }
    }
}

/// The move into a register under a mask of elements.
pub fn masked_load(bytes: u64) -> Code {
    match bytes {
        1 => Code::EVEX_Vmovdqu8_zmm_k1z_zmmm512,
        2 => Code::EVEX_Vmovdqu16_zmm_k1z_zmmm512,
        4 => Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512,
        _ => Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512,
    }
}
