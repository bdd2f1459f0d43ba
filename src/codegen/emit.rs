//! The contract between the walk of a nest and an emitter of instructions.
//!
//! The walk decides the values to compute, the places of elements and the contents of accumulators; an emitter writes
//! the instructions. A method that takes the walk may call it again.

use super::Refused;
use super::address::{Access, Base};
use super::storage::{Cell, Vector};
use super::walk::Walk;
use crate::vectors::Vectors;
use cranefold_ir::{AccId, BufId, DType, Expr, Index, Loop, Op, Scalar, Stmt};

/// The handles of an emitter, which are opaque to the walk.
pub trait Handles: Sized {
    /// The value of an expression: a scalar, lanes, or a constant without an instruction yet.
    type Value: Copy;
    /// A number of 64 bits: an address, a counter of a loop, a carry. Pointers and counters change as loops run.
    type Number: Copy;
    /// The register of an accumulator's cell.
    type Register: Copy;
}

/// An emitter: it writes the instructions of a nest that is walked.
pub trait Emit<'a>: Numbers + Memory<'a> + Shuffles<'a> + Accumulators + Values<'a> + Loops<'a> {}

impl<'a, E: Numbers + Memory<'a> + Shuffles<'a> + Accumulators + Values<'a> + Loops<'a>> Emit<'a> for E {}

/// Numbers and addresses.
pub trait Numbers: Handles {
    /// The number of a constant.
    fn number(&mut self, value: i64) -> Self::Number;

    /// The sum of `sum`, which has no other use, and a multiple of a number.
    fn plus_scaled(&mut self, sum: Self::Number, number: Self::Number, factor: i64) -> Self::Number;

    /// The count of trailing ones of a number, which has no other use.
    fn trailing_ones(&mut self, number: Self::Number) -> Self::Number;

    /// The start of a buffer or of an accumulator in memory: an address, and bytes after it.
    fn base(&mut self, base: Base) -> (Self::Number, i64);

    /// A new pointer: `from`, plus a multiple of a number of bytes.
    fn pointer(&mut self, from: (Self::Number, i64), multiple: Option<(Self::Number, i64)>) -> Self::Number;

    /// Moves a pointer by `bytes` bytes.
    fn bump(&mut self, pointer: Self::Number, bytes: i64);

    /// The same address as a pointer and a distance that, with 4096 bytes added, fits an instruction.
    fn near(&mut self, pointer: Self::Number, bytes: i64) -> (Self::Number, i32);
}

/// Elements in memory.
pub trait Memory<'a>: Handles {
    /// The value of elements in memory.
    fn load(&mut self, walk: &Walk<'a, Self>, from: Access<Self::Number>) -> Result<Self::Value, Refused>;

    /// Writes elements to memory.
    fn store(&mut self, to: Access<Self::Number>, value: Self::Value) -> Result<(), Refused>;

    /// The elements from the start of the line of memory on in which one of a buffer lies; a line is so many lanes of so
    /// many bytes.
    fn misaligned(&mut self, buf: BufId, at: (Self::Number, i32), lanes: (u64, u64)) -> Result<Self::Number, Refused>;

    /// Asks for the line of memory at an address, which may be one that the caller does not own; `far` leaves out the
    /// first-level cache.
    fn prefetch(&mut self, at: (Self::Number, i32), far: bool);
}

/// Whole loads and lane shuffles, of which transposes are made.
pub trait Shuffles<'a>: Handles {
    /// The vectors of the code that is emitted here.
    fn vectors(&self) -> Vectors;

    /// The vector at an address. Its first `needed` elements matter, and its first `known` elements may be read.
    fn load_whole(&mut self, walk: &Walk<'a, Self>, from: Access<Self::Number>, bounds: [u64; 2]) -> Self::Value;

    /// The 16 bytes at an address, without the first `skipped` elements: a vector by themselves, or in place of the 16
    /// bytes with a given number in another vector.
    fn load_piece(
        &mut self,
        walk: &Walk<'a, Self>,
        from: Access<Self::Number>,
        skipped: u64,
        into: Option<(Self::Value, u64)>,
    ) -> Self::Value;

    /// The elements of the lower and of the upper halves of each 16 bytes of two vectors, interleaved.
    fn interleaved(&mut self, vectors: [Self::Value; 2]) -> [Self::Value; 2];

    /// The even and the odd elements of two adjacent vectors of `width` elements each.
    fn evens_and_odds(&mut self, vectors: [Self::Value; 2], width: u64) -> [Self::Value; 2];

    /// The elements of two vectors of `width` elements by turns: the first `width` of them, and the others.
    fn by_turns(&mut self, vectors: [Self::Value; 2], width: u64) -> [Self::Value; 2];

    /// The lanes of the second vector where `second` is true, else those of the first.
    fn blended(&mut self, vectors: [Self::Value; 2], second: &[bool]) -> Self::Value;

    /// The lanes of two vectors in this order, one for each lane of a vector; those of the second are numbered on.
    fn chosen(&mut self, vectors: [Self::Value; 2], order: &[u64]) -> Self::Value;

    /// The lanes of a vector in this order.
    fn permuted(&mut self, vector: Self::Value, order: &[u64]) -> Self::Value;
}

/// Elements of an accumulator's register.
#[derive(Clone, Copy, Debug)]
pub struct RegisterElements {
    pub dtype: DType,
    /// The elements of the register.
    pub cell: Cell,
    /// The first element, counted from the start of the register.
    pub at: u64,
    /// The number of elements if they are the lanes of a vector; `None` for one element, the same in all lanes.
    pub lanes: Option<u64>,
    /// True if a register of one element holds it in all lanes, since some statement takes it so.
    pub alike: bool,
}

/// Accumulators.
pub trait Accumulators: Handles {
    /// Fills an accumulator in memory.
    fn fill(&mut self, acc: AccId, dtype: DType, len: u64, init: Scalar);

    /// A register for a cell of `lanes` lanes.
    fn register(&mut self, dtype: DType, lanes: u64) -> Self::Register;

    /// Writes initial values to registers, each with its number of lanes.
    fn start(&mut self, registers: &[(Self::Register, u64, Scalar)]);

    /// The value of elements in a register.
    fn read(&mut self, register: Self::Register, part: RegisterElements) -> Self::Value;

    /// The value of elements that begin in a register of a whole vector and end in the next one.
    fn read_joined(&mut self, _: [Self::Register; 2], part: RegisterElements) -> Result<Self::Value, Refused> {
        Err(Refused(format!("{:?} elements from {} on, in two registers", part.lanes, part.at)))
    }

    /// The lower and the upper halves, of `half` lanes, in each group of two adjacent vectors.
    fn halves(&mut self, vectors: [Self::Value; 2], half: u64) -> Result<[Self::Value; 2], Refused>;

    /// The register to which an expression may write its value directly, if that is to become the value of this
    /// register.
    fn in_place(&self, _: Self::Register) -> Option<Self::Register> {
        None
    }

    /// Writes all elements of a register that matter.
    fn write(&mut self, register: Self::Register, part: RegisterElements, value: Self::Value) -> Result<(), Refused>;

    /// Moves the elements of registers, so many lanes of a type in each, one behind the other, down by a number that
    /// `misaligned` gave.
    fn rotate(&mut self, registers: &[Self::Register], lanes: (DType, u64), by: Self::Number) -> Result<(), Refused>;

    /// Writes elements of a register, of the lanes the first `written`, and leaves the others.
    fn write_part(
        &mut self,
        to: Self::Register,
        part: RegisterElements,
        written: u64,
        value: Self::Value,
    ) -> Result<(), Refused>;
}

/// Values of expressions.
pub trait Values<'a>: Handles {
    /// The value of a constant.
    fn constant(&self, s: Scalar) -> Self::Value;

    /// The constant that a value is, if it is one.
    fn known(value: &Self::Value) -> Option<Scalar>;

    /// The value of an operation whose operands are not all constants; written to `to` if that costs nothing.
    fn op(
        &mut self,
        op: Op,
        result: DType,
        args: &[Self::Value],
        to: Option<Self::Register>,
    ) -> Result<Self::Value, Refused>;

    /// The value of an operation that an instruction computes from its whole expression; `None` if no pattern fits.
    fn pattern(
        &mut self,
        _: &mut Walk<'a, Self>,
        _: &Expr,
        _params: Option<&[Self::Value]>,
        _to: Option<Self::Register>,
    ) -> Result<Option<Self::Value>, Refused> {
        Ok(None)
    }

    /// The value in a form that may be used more than once.
    fn reused(&mut self, value: Self::Value) -> Self::Value {
        value
    }

    /// The value in a form that later statements may use.
    fn kept(&mut self, walk: &Walk<'a, Self>, value: Self::Value) -> Self::Value;

    /// An unsigned value as a number, at most `most`.
    fn picked(&mut self, value: Self::Value, most: u64) -> Result<Self::Number, Refused>;

    /// The value of a number in a type, the same in all lanes.
    fn position(&mut self, dtype: DType, number: Self::Number) -> Result<Self::Value, Refused>;

    /// The vector `offset`, `offset + c`, `offset + 2 c` and so on.
    fn steps(&mut self, dtype: DType, offset: i64, c: i64, lanes: u64) -> Result<Self::Value, Refused>;

    /// The vector, counted up by open loops, with lane 0 at an index and lanes `c` apart; `None` if there is none.
    fn counted(&mut self, _: DType, _: &Index, _c: i64, _lanes: u64) -> Option<Self::Value> {
        None
    }
}

/// Loops, lanes, and the statements around wide functions.
pub trait Loops<'a>: Handles {
    /// The facts of an open loop.
    type Loop;

    /// Begins a body of lanes; returns the lanes of its values, or `None` for scalars.
    fn begin_lanes(&mut self, walk: &Walk<'a, Self>, vector: Vector, body: &[Stmt]) -> Result<Option<Vector>, Refused>;

    /// Ends a body of lanes.
    fn end_lanes(&mut self) {}

    /// Begins a loop, by [`Walk::start_cells`], and makes its counter.
    fn begin_loop(&mut self, walk: &mut Walk<'a, Self>, l: &'a Loop) -> Self::Loop;

    /// Makes what else stands before the loop, whose pointers are made; then its head.
    fn enter_loop(&mut self, walk: &mut Walk<'a, Self>, l: &'a Loop, open: &mut Self::Loop) -> Result<(), Refused>;

    /// Ends the loop, whose pointers have been moved.
    fn end_loop(&mut self, l: &'a Loop, open: Self::Loop);

    /// Emits a statement that only stands outside wide functions: a selection or a wide function.
    fn outside(&mut self, walk: &mut Walk<'a, Self>, stmt: &'a Stmt) -> Result<(), Refused>;
}
