//! The problem: a reduction without its accidents.
//!
//! Axes are positive, unit extents are gone, dims stand in canonical order, neighbours that walk
//! memory as one are one, operands have no names but their numbers. Two specs with the same problem are
//! the same computation and share code.
//!
//! # Canonical order
//! Only inputs that lift reads (the mapped ones) count. A dim whose first non-zero stride in them is
//! negative is flipped. Dims go by decreasing |stride| in the first of them, ties by the next, then by axis
//! number; stride-0 dims are outermost. Adjacent reduction dims merge where the strides of all mapped inputs
//! allow it; adjacent parallel dims where those of all operands do (which cannot show in a result).
//!
//! For a combiner that is not commutative, reduction dims keep the order of the axes and are not flipped;
//! parallel dims stand inside of them all or outside of them all, as the last of them says.

mod canonical;
mod check;
mod text;

pub use text::ProblemError;

use cranefold_ir::ops::{Call, Recipe, Reducer, Types};
use cranefold_ir::{DType, Def, ops};

/// A canonical reduction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// What is computed.
    pub work: Work,
    /// How many elements of the spec each slice has.
    pub count: u64,
    /// Every buffer that is only read, in the order of a call. In formulas it is `x` and its number.
    pub inputs: Vec<Input>,
    /// The outputs, in the order of a call.
    pub outputs: Vec<Operand>,
    /// The position in its slice of the element at position 0 of all dims, where the recipe asks for it.
    pub position: Option<i64>,
    /// The dims, outermost first. Without elements to reduce there are no reduction dims; without
    /// outputs there are no dims.
    pub dims: Vec<Dim>,
    /// The reduction dims again, as outputs at each position of the slice walk them.
    pub slice: Vec<Dim>,
}

/// What a problem computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "a problem has one")]
pub enum Work {
    /// Each element converted to the output's type.
    Convert {
        /// Whether integers are clamped to the output's range rather than taken modulo 2^bits.
        saturate: bool,
        /// Whether floats become integers to nearest, ties to even, rather than towards zero.
        half_even: bool,
    },
    /// A recipe.
    Reduce(Recipe),
}

/// A buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Element type; a `bool` is a byte.
    pub dtype: DType,
    /// Length in elements.
    pub len: u64,
    /// Index of the element at position 0 of all dims.
    pub origin: i64,
}

/// A buffer that is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// The buffer.
    pub operand: Operand,
    /// Whether lift reads it; others are read once a slice is reduced.
    pub mapped: bool,
}

/// A dim of the iteration space.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dim {
    /// Number of positions, at least 2; 1 only in a reduction of groups of one.
    pub extent: u64,
    /// Whether it is reduced.
    pub reduced: bool,
    /// Stride in each input, in elements; where reduced, 0 in those that are not mapped.
    pub input_strides: Vec<i64>,
    /// Stride in each output, in elements; 0 where reduced.
    pub output_strides: Vec<i64>,
    /// Stride of the position in the slice; 0 where there is none.
    pub position_stride: i64,
}

impl Problem {
    /// The reducer, for work of that kind.
    pub fn reducer(&self) -> Option<Reducer> {
        let Work::Reduce(recipe) = &self.work else { return None };
        Some(recipe.reducer(&self.types()).expect("a recipe that the spec has checked"))
    }

    /// The types of the operands.
    pub fn types(&self) -> Types {
        Types {
            inputs: self.inputs.iter().enumerate().map(|(i, x)| (format!("x{i}"), x.operand.dtype)).collect(),
            mapped: (0..self.inputs.len()).filter(|&i| self.inputs[i].mapped).collect(),
            outputs: self.outputs.iter().map(|o| o.dtype).collect(),
            count: self.count,
        }
    }

    /// The conversion of one element, for work of that kind.
    pub fn conversion(&self) -> Option<Def> {
        let Work::Convert { saturate, half_even } = self.work else { return None };
        Some(ops::convert(self.inputs[0].operand.dtype, self.outputs[0].dtype, saturate, half_even))
    }

    /// Whether an output is written at each position of the slice.
    pub fn applies(&self) -> bool {
        matches!(&self.work, Work::Reduce(recipe) if recipe.applies())
    }

    /// Whether the old elements of an output are read.
    pub fn reads_old(&self, output: usize) -> bool {
        matches!(&self.work, Work::Reduce(recipe) if recipe.then.get(output).is_some_and(|f| f.uses("d")))
    }

    /// Whether elements may be combined in another order than that of the slice.
    pub fn is_commutative(&self) -> bool {
        let own = |c: &Call| matches!(c, Call::Own(own) if !own.commutative);
        !matches!(&self.work, Work::Reduce(recipe) if recipe.calls.iter().any(own))
    }
}
