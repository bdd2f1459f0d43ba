//! The problem: a reduction without its accidents.
//!
//! Axes are positive, unit extents are gone, dims stand in canonical order, neighbours that walk
//! memory as one are one. Two specs with the same problem are the same computation and share code.
//!
//! # Canonical order
//! A dim whose first non-zero input stride is negative is flipped. Dims go by decreasing |stride| in
//! the first input, ties by the next input, then by axis number; stride-0 dims are outermost.
//! Adjacent reduction dims merge where the strides of all inputs allow it; adjacent parallel dims
//! where those of the outputs do too (which cannot show in a result).

mod canonical;
mod check;
mod text;

pub use text::ProblemError;

use cranefold_ir::ops::{Reducer, Request, Row};
use cranefold_ir::{DType, Def, ops};

/// A canonical reduction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// What is computed.
    pub work: Work,
    /// How many elements of the spec each output element is reduced from.
    pub count: u64,
    /// The inputs.
    pub inputs: Vec<Operand>,
    /// The outputs.
    pub outputs: Vec<Operand>,
    /// The dims, outermost first. Without elements to reduce there are no reduction dims; without
    /// outputs there are no dims.
    pub dims: Vec<Dim>,
}

/// What a problem computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Each element converted to the output's type.
    Convert {
        /// Whether the elements are truth values.
        truth: bool,
        /// Whether an integer output takes the value modulo 2^bits, clamped or rounded.
        rounding: Rounding,
    },
    /// A row of the op table.
    Reduce {
        /// The row's name.
        op: &'static str,
        /// The bits of the parameters, as `f64`, in the row's order.
        params: Vec<u64>,
        /// Whether the elements are truth values.
        truth: bool,
        /// The accumulator type of floats.
        accumulator: DType,
        /// How results become integers.
        rounding: Rounding,
    },
}

/// How results become integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rounding {
    /// Clamped to the range rather than taken modulo 2^bits.
    pub saturate: bool,
    /// To nearest, ties to even, rather than towards zero.
    pub half_even: bool,
}

/// A buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Element type in memory (truth values are `u8`).
    pub dtype: DType,
    /// Length in elements.
    pub len: u64,
    /// Index of the element at position 0 of all dims.
    pub origin: i64,
}

/// A dim of the iteration space.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dim {
    /// Number of positions, at least 2; 1 only in a reduction of groups of one.
    pub extent: u64,
    /// Whether it is reduced.
    pub reduced: bool,
    /// Stride in each input, in elements.
    pub input_strides: Vec<i64>,
    /// Stride in each output, in elements; 0 where reduced.
    pub output_strides: Vec<i64>,
}

impl Problem {
    /// The reducer, for work of that kind.
    pub fn reducer(&self) -> Option<Reducer> {
        let Work::Reduce { op, params, truth, accumulator, rounding } = &self.work else { return None };
        let row: &Row = ops::find(op).expect("a row of the table");
        Some(row.build(&self.request(*truth, *accumulator, *rounding, params)))
    }

    /// The conversion of one element, for work of that kind.
    pub fn conversion(&self) -> Option<Def> {
        let Work::Convert { truth, rounding } = self.work else { return None };
        let through = if self.inputs[0].dtype == DType::F64 { DType::F64 } else { DType::F32 };
        Some(ops::convert(&self.request(truth, through, rounding, &[])))
    }

    fn request(&self, truth: bool, accumulator: DType, rounding: Rounding, params: &[u64]) -> Request {
        Request {
            input: self.inputs[0].dtype,
            output: self.outputs[0].dtype,
            truth,
            accumulator,
            count: self.count,
            params: params.iter().map(|&p| f64::from_bits(p)).collect(),
            saturate: rounding.saturate,
            half_even: rounding.half_even,
        }
    }
}
