//! Makes machine code of x86-64, with vectors of 256 or 512 bits, of a wide function of a legal nest.
//!
//! A wide function is a function of two arguments, by the convention of System V: the array of pointers that the kernel
//! got (see [`link`](crate::link)), and the kernel's frame, which holds accumulators and the counters and values that
//! the wide function takes from outside (see [`Frame`](crate::codegen::storage::Frame)). It obeys that convention, and
//! leaves the upper halves of vector registers clear. One that is all of a nest takes the array alone, and makes its
//! frame itself: nothing is left for Cranelift.
//!
//! - Instruction selection (all files here) writes instructions over virtual registers, as the
//!   [walk](crate::codegen::walk) asks for them. All vectors have the tier's full width: missing lanes may hold
//!   anything. Outside lanes, a value is the same in all of them, so that it serves scalars and vectors alike.
//! - [`machine`] makes the bytes of these instructions.

mod address;
mod aligned;
mod bf16;
mod bytes;
mod canonical;
mod casts;
mod cells;
mod integers;
mod lanes;
mod loops;
mod machine;
mod ops;
mod positions;
mod shuffles;
mod values;

pub(super) use crate::codegen::Refused;
use crate::codegen::address::Base;
use crate::codegen::emit::Handles;
use crate::codegen::marks::Mark;
use crate::codegen::storage::Storage;
use crate::vectors::Vectors;
use cranefold_ir::{DType, Expr, Nest, Scalar, Stmt};
use machine::FrameFrom;
use machine::code::{Arg, Class, Inst, Item, MachineProgram, Object, Reg, View};
use machine::encode::FRAME;
use machine::table::Opcode;
use machine::tier::Tier;
use rustc_hash::FxHashMap;

/// The walk of a wide function.
type Walk<'a> = crate::codegen::walk::Walk<'a, Generator<'a>>;

/// The code of a wide function.
#[derive(Debug)]
pub struct WideFunction {
    /// Code, then constants; it begins at a multiple of 64 bytes.
    pub bytes: Vec<u8>,
    /// Bytes of code.
    pub code_bytes: usize,
    /// Bytes of the frame for the wide function alone.
    pub frame_bytes: u64,
    /// The begin and the end of each loop: offsets in bytes.
    pub marks: Vec<(usize, Mark)>,
    /// The name of each loop.
    pub loops: Vec<String>,
}

/// The alignment of a wide function's code, in bytes.
pub const ALIGN: u64 = 64;

/// The facts that wide functions share.
#[derive(Debug)]
pub struct Around<'a> {
    /// The nest.
    pub nest: &'a Nest,
    /// The places of its accumulators.
    pub storage: &'a Storage,
    /// The vectors that they are made of.
    pub vectors: Vectors,
}

/// The code of a wide function's body, for a caller that has the frame.
///
/// # Errors
/// An error if the body holds something without a form in wide vectors.
pub fn wide_function<'a>(around: &'a Around<'a>, body: &'a [Stmt]) -> Result<WideFunction, Refused> {
    function(around, body, FrameFrom::Caller)
}

/// The code of a nest that is one wide function; `None` for another nest.
///
/// # Errors
/// As [`wide_function`].
pub fn whole_nest<'a>(around: &'a Around<'a>) -> Option<Result<WideFunction, Refused>> {
    let [Stmt::Wide { body }] = around.nest.body.as_slice() else { return None };
    Some(function(around, body, FrameFrom::Stack))
}

fn function<'a>(around: &'a Around<'a>, body: &'a [Stmt], frame_from: FrameFrom) -> Result<WideFunction, Refused> {
    let tier = Tier::of(around.vectors);
    let mut program = MachineProgram::default();
    let (frame, buffers) = (program.reg(Class::General), program.reg(Class::General));
    debug_assert_eq!(frame, FRAME);
    program.objects.insert(frame, Object(0));
    let mut generator = Generator {
        around,
        tier,
        program,
        prologue: vec![],
        buffers,
        bases: FxHashMap::default(),
        moving: vec![],
        narrow: FxHashMap::default(),
        rounded: FxHashMap::default(),
        lines: aligned::Lines::default(),
    };
    let mut walk = Walk::new(around.nest, around.storage, body);
    generator.enter_around(&mut walk, body);
    walk.body(&mut generator, body)?;
    let mut program = generator.program;
    program.items.splice(0..0, generator.prologue);
    let assembled = machine::assemble(
        program,
        around.vectors,
        buffers,
        (frame_from, around.storage.frame.bytes + LANE_SLOT_BYTES),
    )?;
    Ok(WideFunction {
        bytes: assembled.code.bytes,
        code_bytes: assembled.code.code_bytes,
        frame_bytes: LANE_SLOT_BYTES + assembled.frame_bytes,
        marks: assembled.code.marks,
        loops: assembled.loops,
    })
}

/// Bytes at the start of a wide function's own part of the frame, in which lanes are moved: two vectors.
const LANE_SLOT_BYTES: u64 = 128;

/// The lanes of a value that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActiveLanes {
    /// All lanes, which are equal.
    Same,
    /// The first lanes, as many as this.
    First(u64),
}

/// The place of a value.
#[derive(Clone, Copy, Debug)]
enum ValuePlace {
    Const(Scalar),
    /// A register. A truth value is a mask in AVX-512, and no bits or all bits of each lane in AVX2.
    Reg(Reg),
    /// Lanes in memory, read where they are used.
    Mem(Reg, i32),
}

/// A value.
#[derive(Clone, Copy, Debug)]
struct Val {
    place: ValuePlace,
    dtype: DType,
    lanes: ActiveLanes,
    /// Bytes of a lane; for a truth value, of the compared lanes.
    bytes: u64,
}

struct Generator<'a> {
    around: &'a Around<'a>,
    tier: Tier,
    program: MachineProgram,
    /// The items before all others.
    prologue: Vec<Item>,
    buffers: Reg,
    /// The starts of buffers and of accumulators in scratch memory.
    bases: FxHashMap<Base, Reg>,
    /// Vectors of positions that loops around count up, see [`positions`].
    moving: Vec<positions::Moving>,
    /// In the current loop, the 32-bit sums of bytes, by the registers of the 64-bit sums to which they are added after
    /// it.
    narrow: FxHashMap<Reg, Reg>,
    /// For elements of bf16, the register with each in the upper half of a lane of f32.
    rounded: FxHashMap<Reg, Reg>,
    /// The places of elements in lines of memory, and the lanes that are left out there.
    lines: aligned::Lines,
}

impl Handles for Generator<'_> {
    type Value = Val;
    type Number = Reg;
    type Register = Reg;
}

impl<'a> Generator<'a> {
    fn emit(&mut self, inst: Inst) {
        self.program.items.push(Item::Inst(inst));
    }

    fn vector(&mut self) -> Reg {
        self.program.reg(Class::Vector)
    }

    fn full(&self, reg: Reg) -> Arg {
        Arg::Reg(reg, self.tier.view())
    }

    /// Loads the counters and values that the wide function takes from outside.
    fn enter_around(&mut self, walk: &mut Walk<'a>, body: &'a [Stmt]) {
        let taken = self.around.storage.frame.taken(body);
        for (var, at) in taken.counters {
            let counter = self.program.reg(Class::General);
            let args = [Arg::Reg(counter, View::R64), Arg::Mem(FRAME, at as i32)];
            self.emit(Inst::new(Opcode::Mov, &args));
            walk.bind_number(self, var, counter, body);
        }
        for (var, dtype, at) in taken.values {
            let val = self.broadcast_load(dtype, FRAME, at as i32);
            walk.values.insert(var, val);
        }
    }
}

/// Calls `f` on every expression in the body, with its operands.
fn each_expr<'a>(body: &'a [Stmt], f: &mut impl FnMut(&'a Expr)) {
    fn all<'a>(e: &'a Expr, f: &mut impl FnMut(&'a Expr)) {
        f(e);
        e.args().iter().for_each(|a| all(a, f));
    }
    body.iter().for_each(|s| s.visit(&mut |s| s.exprs().iter().for_each(|e| all(e, f))));
}
