//! Machine instructions over virtual registers, as instruction selection writes them.

use super::row::{First, Flags, Masking, Memory};
use super::table::Opcode;
use rustc_hash::FxHashMap;

/// A virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

/// The class of a virtual register's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// An address or a counter.
    General,
    /// Lanes.
    Vector,
    /// One bit for each lane.
    Mask,
}

impl Class {
    /// The place of the class in lists of three.
    pub fn number(self) -> usize {
        match self {
            Class::General => 0,
            Class::Vector => 1,
            Class::Mask => 2,
        }
    }
}

/// The part of a register that an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Memory at an address plus so many bytes.
    Mem(Reg, i32),
    /// A constant of the pool, and true if its one element is broadcast.
    Pool(u32, bool),
    /// A number in the instruction, the immediate.
    Imm(i64),
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub struct Inst {
    /// The row of the instruction's facts.
    pub opcode: Opcode,
    /// The operands; unused ones come last.
    pub args: [Arg; 4],
    /// The mask register under which the instruction writes.
    pub mask: Option<Reg>,
    /// True if lanes outside the mask become zero.
    pub zeroing: bool,
    /// True if the instruction should stay in the order of memory: it loads from a view with holes.
    pub in_order: bool,
}

impl Inst {
    /// An instruction.
    pub fn new(opcode: Opcode, args: &[Arg]) -> Inst {
        debug_assert_eq!(args.len(), opcode.row().shape.operands, "the operands of {opcode:?}");
        let mut all = [Arg::None; 4];
        all[..args.len()].copy_from_slice(args);
        Inst { opcode, args: all, mask: None, zeroing: false, in_order: false }
    }

    /// `to = value`.
    pub fn number(to: Reg, value: i64) -> Inst {
        match u32::try_from(value) {
            Ok(small) => Inst::new(Opcode::MovBy32, &[Arg::Reg(to, View::R32), Arg::Imm(i64::from(small))]),
            Err(_) => Inst::new(Opcode::MovBy64, &[Arg::Reg(to, View::R64), Arg::Imm(value)]),
        }
    }

    /// The same instruction under a mask.
    pub fn masked(self, mask: Reg, zeroing: bool) -> Inst {
        debug_assert_ne!(self.opcode.row().masking, Masking::Unmasked, "a mask of {:?}", self.opcode);
        Inst { mask: Some(mask), zeroing, ..self }
    }

    /// The use of the first operand. Under a mask, lanes outside the mask keep their values.
    pub fn first(&self) -> First {
        let row = self.opcode.row();
        let keeps = || self.mask.is_some() && !self.zeroing && matches!(row.masking, Masking::Merges(_));
        match row.shape.first {
            First::Def if keeps() => First::Mod,
            first => first,
        }
    }

    /// Calls `f` on every register that the instruction reads.
    pub fn uses(&self, mut f: impl FnMut(Reg)) {
        let skipped = usize::from(matches!(self.args[0], Arg::Reg(..)) && self.first() == First::Def);
        for arg in &self.args[skipped..] {
            match *arg {
                Arg::Reg(reg, _) | Arg::Mem(reg, _) => f(reg),
                Arg::Pool(..) | Arg::Imm(_) => {}
                Arg::None => break,
            }
        }
        if let Some(mask) = self.mask {
            f(mask);
        }
    }

    /// The register that the instruction writes, and true if it reads it before.
    pub fn def(&self) -> Option<(Reg, bool)> {
        let Arg::Reg(reg, _) = self.args[0] else { return None };
        match self.first() {
            First::Def => Some((reg, false)),
            First::Mod => Some((reg, true)),
            First::Use => None,
        }
    }

    /// The place of the operand that may be a constant in memory; `None` if there is none, or an operand is memory
    /// already.
    pub fn foldable(&self) -> Option<usize> {
        let may = matches!(self.opcode.row().memory, Memory::Whole | Memory::Each(_));
        let in_memory = self.args.iter().any(|a| matches!(a, Arg::Mem(..) | Arg::Pool(..)));
        let last = || self.args.iter().rposition(|a| matches!(a, Arg::Reg(..)));
        (may && !in_memory).then(last).flatten()
    }

    /// Returns two flags: true if it reads memory that may be written, and true if it writes memory.
    pub fn memory(&self) -> (bool, bool) {
        let row = self.opcode.row();
        let in_memory = |a: &Arg| matches!(a, Arg::Mem(..));
        let any = row.memory != Memory::Address && self.args.iter().any(in_memory);
        let stores = any && in_memory(&self.args[0]) && row.shape.first != First::Use;
        (any && !stores, stores)
    }
}

/// A target of jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(pub u32);

/// A step of the program.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    /// An instruction.
    Inst(Inst),
    /// A copy between registers of one class.
    Copy { to: Reg, from: Reg },
    /// `to = a * b + c`, rounded once; at most one of `b` and `c` is memory or a constant. The registers decide the
    /// form of the instruction. `double` is true for lanes of f64.
    Fma { to: Reg, a: Reg, b: Arg, c: Arg, double: bool },
    /// `to = a / b`, where `y` is 1 / b or a NaN; [`quotients`](super::quotients) writes its instructions.
    Quotient { to: Reg, a: Reg, b: Reg, y: Reg, double: bool },
    /// The first item of a loop's body; its number among the loops.
    Enter(u32),
    /// The end of a loop.
    Leave,
    /// A jump, taken on a condition or always.
    Jump(Opcode, Label),
    /// The place of a label.
    Label(Label),
}

/// The value that a virtual register holds from the start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// Elements of so many bytes, all with these bits.
    Splat(u64, u8),
    /// The bytes of a vector, or of its start.
    Bytes(Vec<u8>),
    /// A mask.
    Mask(u64),
}

/// An address: a register, and bytes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The register.
    pub base: Reg,
    /// The bytes.
    pub offset: i32,
}

/// The most bytes that an instruction loads or stores.
const MOST_BYTES: u32 = 64;

/// A memory object: a buffer, an accumulator in scratch memory, or the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object(pub u32);

/// A wide function in virtual registers.
#[derive(Clone, Debug, Default)]
pub struct MachineProgram {
    /// The steps.
    pub items: Vec<Item>,
    /// The class of each register.
    pub classes: Vec<Class>,
    /// Registers that hold constants.
    pub constants: Vec<(Reg, Constant)>,
    /// The name of each loop.
    pub loops: Vec<String>,
    /// The memory object that an address lies in, by its register, where it is known. Stores to one object change no
    /// element of another, but where an output takes the place of an input: there each element is loaded before it is
    /// stored.
    pub objects: FxHashMap<Reg, Object>,
    /// The number of labels so far.
    labels: u32,
}

impl MachineProgram {
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

    /// A new register for an address in the same memory object.
    pub fn address_like(&mut self, other: Reg) -> Reg {
        let reg = self.reg(Class::General);
        if let Some(&object) = self.objects.get(&other) {
            self.objects.insert(reg, object);
        }
        reg
    }

    /// Returns whether what lies at two addresses may overlap; `is_same_base` says that both bases have one value.
    pub fn may_overlap(&self, a: Address, b: Address, is_same_base: bool) -> bool {
        let objects = (self.objects.get(&a.base), self.objects.get(&b.base));
        let is_apart = is_same_base && a.offset.abs_diff(b.offset) >= MOST_BYTES;
        !is_apart && !matches!(objects, (Some(a), Some(b)) if a != b)
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

    /// The number of labels.
    pub fn labels(&self) -> usize {
        self.labels as usize
    }
}

impl Item {
    /// Calls `f` on every register that the item reads.
    pub fn uses(&self, mut f: impl FnMut(Reg)) {
        match self {
            Item::Inst(inst) => inst.uses(f),
            Item::Copy { from, .. } => f(*from),
            Item::Quotient { a, b, y, .. } => [*a, *b, *y].into_iter().for_each(f),
            Item::Fma { a, b, c, .. } => {
                for arg in [b, c] {
                    if let Arg::Reg(reg, _) | Arg::Mem(reg, _) = *arg {
                        f(reg);
                    }
                }
                f(*a);
            }
            Item::Enter(_) | Item::Leave | Item::Jump(..) | Item::Label(_) => {}
        }
    }

    /// The item's use of the flags.
    pub fn flags(&self) -> Flags {
        match self {
            Item::Inst(inst) => inst.opcode.row().shape.flags,
            Item::Jump(opcode, _) => opcode.row().shape.flags,
            Item::Copy { .. }
            | Item::Fma { .. }
            | Item::Quotient { .. }
            | Item::Enter(_)
            | Item::Leave
            | Item::Label(_) => Flags::Keeps,
        }
    }

    /// Returns true if the item reads a register.
    pub fn reads(&self, reg: Reg) -> bool {
        let mut reads = false;
        self.uses(|read| reads |= read == reg);
        reads
    }

    /// The address at which the item loads elements that may be written, or stores elements; with true for a store.
    pub fn memory(&self) -> Option<(Address, bool)> {
        let address = |a: &Arg| if let Arg::Mem(base, offset) = *a { Some(Address { base, offset }) } else { None };
        match self {
            Item::Inst(inst) => {
                let (loads, stores) = inst.memory();
                inst.args.iter().find_map(address).filter(|_| loads || stores).map(|at| (at, stores))
            }
            Item::Fma { b, c, .. } => address(b).or(address(c)).map(|at| (at, false)),
            _ => None,
        }
    }

    /// The register that the item writes, and true if the item reads it before.
    pub fn def(&self) -> Option<(Reg, bool)> {
        match self {
            Item::Inst(inst) => inst.def(),
            Item::Copy { to, .. } | Item::Fma { to, .. } | Item::Quotient { to, .. } => Some((*to, false)),
            _ => None,
        }
    }
}

/// The masked move to a register, for elements of `bytes` bytes.
pub fn masked_load(bytes: u64) -> Opcode {
    match bytes {
        1 => Opcode::Vmovdqu8,
        2 => Opcode::Vmovdqu16,
        4 => Opcode::Vmovdqu32,
        _ => Opcode::Vmovdqu64,
    }
}
