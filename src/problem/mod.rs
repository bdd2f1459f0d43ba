//! The problem: a reduction without its accidents.
//!
//! Axes are positive, unit extents are gone, dims stand in canonical order, neighbours that walk
//! memory as one are one, operands have no names but their numbers. Two specs with the same problem are
//! the same computation and share code.
//!
//! # Canonical order
//! Only inputs that lift reads (the mapped ones) count. A dim whose first non-zero stride in them is
//! negative is flipped. Dims go by decreasing |stride| in the first of them, ties by the next, then by axis
//! number; stride-0 dims are outermost. Neighbours among the reduction dims merge where the strides of all mapped
//! inputs allow it; neighbours among the parallel dims where those of all operands do (which cannot show in a
//! result).
//!
//! For a combiner that is not commutative, reduction dims keep the order of the axes and are not flipped.
//!
//! # Blocked layouts
//! An axis in blocks is a dim over blocks and a dim over the positions in one, so that a layout shows in the
//! order of a reduction by its strides alone. An axis that is no multiple of its block is cut: the whole blocks,
//! then what is left. Slices are then several [boxes](Region), of which each has its dims, and are reduced as one
//! sequence: first the box of whole blocks along all axes; the axis written last moves on to its rest first. Boxes
//! that walk memory as one are one. Only mapped inputs cut slices, so the order does not depend on outputs;
//! outputs are cut by all operands.
//! A combiner that is not commutative, over an axis that is cut, takes the elements in the order of the slice.
//!
//! # Text
//!
//! ```text
//! problem {
//!   reduce lp_sum(p=3,eps=1e-6) in f32 over 240
//!   then "r0 / x1"
//!   in x0: f32[17280]
//!   with x1: f32[72]
//!   out x2: f32[72]
//!   slices at 0, 0 -> 0
//!     dim 72: 240, 1 -> 1
//!   elements at 0, 0
//!     dim 240: 1, 0
//! }
//! ```
//!
//! The grammar, in which `list(x)` is one or more `x` with commas between them, `x?` an optional and `x*` a repeated x;
//! each line of the text is one of `work` to `padding`:
//!
//! ```text
//! problem    = "problem" "{" work field* operand* takes? box* beside? padding* "}"
//! work       = "reduce" list(op) "in" dtype "over" count flag*     accumulator type, elements of a slice
//!            | "convert" "over" count flag*
//! flag       = "saturate" | "half_even"
//! field      = ("map" | "then" | "apply") '"' expression '"'       "then": one for each output
//! operand    = ("in" | "with" | "out") x ":" dtype "[" count "]"   read by lift; read after the reduction; written
//! takes      = "takes" "position"                                  lift takes the position in the slice
//! box        = ("slices" | "elements" | "positions") "at" place dim*
//! dim        = "dim" count ":" place                               extent, and the stride in each operand
//! place      = list(int) ("->" list(int))? ("position" int)?       inputs, outputs, position in the slice
//! beside     = "beside" count                                      slices side by side in a step, if not 1
//! padding    = "padding" "of" x "at" count ("dim" count ":" int)*  elements of an output that become zero
//! x          = "x" and a number, inputs first
//! ```
//!
//! A box begins at a place and has dims, outermost first. `slices` are the outputs, `elements` those of one slice,
//! `positions` the places of a slice at which outputs are written. `elements` have no outputs and no arrow.

pub mod blocks;
mod canonical;
mod check;
mod padding;
pub mod search_windows;
mod text;
pub mod tree;

pub use text::ProblemError;

use cranefold_ir::ops::{Form, OpCall, Recipe, Reducer, Types};
use cranefold_ir::{DType, Def, LoopVar, Over, ops};

/// A canonical reduction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// What is computed.
    pub work: Work,
    /// How many elements of the spec each slice has.
    pub count: u64,
    /// Every buffer that is only read, in the order of a call. In expressions it is `x` and its number.
    pub inputs: Vec<Input>,
    /// The outputs, in the order of a call.
    pub outputs: Vec<OperandSpan>,
    /// Whether elements are read with their position in the slice.
    pub takes_position: bool,
    /// The boxes of slices. None without outputs.
    pub slices: Vec<Region>,
    /// The boxes of the elements of each slice that the reduction takes, one after the other. None without
    /// elements.
    pub elements: Vec<Region>,
    /// How many slices lie side by side within one step of the innermost reduction dim, in the box of whole blocks
    /// that mapped inputs alone make. The number of lanes follows from it.
    pub beside: u64,
    /// The boxes of the positions of each slice that outputs are written at, where there are such outputs.
    pub positions: Vec<Region>,
    /// The boxes of outputs that are padding.
    pub padding: Vec<Padding>,
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
pub struct OperandSpan {
    /// Element type; a `bool` is a byte.
    pub dtype: DType,
    /// Length in elements.
    pub len: u64,
}

/// A buffer that is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// The buffer.
    pub operand: OperandSpan,
    /// Whether lift reads it; others are read once a slice is reduced.
    pub mapped: bool,
}

/// For each operand, a distance in its buffer: in elements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Offsets {
    /// In each input.
    pub inputs: Vec<i64>,
    /// In each output.
    pub outputs: Vec<i64>,
    /// In the slice: the position of an element in the row-major order of the reduced axes.
    pub position: i64,
}

/// A box: everything that is a position in each of its dims.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// Where position 0 of all dims is; in boxes of elements, from the start of the slice.
    pub start: Offsets,
    /// The dims, outermost first.
    pub dims: Vec<Dim>,
}

/// A dim of a box.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dim {
    /// Number of positions, at least 2.
    pub extent: u64,
    /// From one position to the next. Of elements, 0 in inputs that are not mapped and in outputs.
    pub stride: Offsets,
}

/// Elements of an output that belong to no index, and become zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Padding {
    /// The output.
    pub output: usize,
    /// Where the first is.
    pub start: i64,
    /// Extents and strides, outermost first.
    pub dims: Vec<(u64, i64)>,
}

impl Problem {
    /// The reducer in its plain form, for work of that kind.
    pub fn reducer(&self) -> Option<Reducer> {
        self.reducer_in(Form::Plain)
    }

    /// The reducer in a form; none where the work is of another kind or has no such form.
    pub fn reducer_in(&self, form: Form) -> Option<Reducer> {
        let Work::Reduce(recipe) = &self.work else { return None };
        let reducer = recipe.reducer(&self.types(), form);
        match form {
            Form::Plain => Some(reducer.expect("a recipe that the spec has checked")),
            Form::Direct => reducer.ok(),
        }
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

    /// The variables of the loops over each box of slices, one for each dim: what a schedule calls them.
    pub fn output_loops(&self) -> Vec<Vec<LoopVar>> {
        let mut ids = 0..;
        let loops = |slices: &Region| {
            let ids = (&mut ids).take(slices.dims.len());
            ids.map(|id| LoopVar { over: Over::Output, id }).collect()
        };
        self.slices.iter().map(loops).collect()
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

    /// Whether elements are brought into the order of the slice before they are combined.
    pub fn gathers(&self) -> bool {
        !self.is_commutative() && self.elements.len() > 1
    }

    /// Whether elements may be combined in another order than that of the slice.
    pub fn is_commutative(&self) -> bool {
        let own = |c: &OpCall| matches!(c, OpCall::Own(own) if !own.commutative);
        !matches!(&self.work, Work::Reduce(recipe) if recipe.calls.iter().any(own))
    }

    /// How many elements inputs are read at for all slices: of a reduction, or to convert.
    pub fn elements_read(&self) -> u64 {
        let slices = self.slices.iter().map(Region::positions).fold(0, u64::saturating_add);
        slices.saturating_mul(self.elements.iter().map(Region::positions).fold(0, u64::saturating_add).max(1))
    }

    /// The dims of a box of slices that lie inside the innermost reduction dim: the last ones.
    pub fn inside<'a>(&self, slices: &'a Region) -> &'a [Dim] {
        let innermost = self.elements.first().and_then(|e| e.dims.last()).map(|d| self.rank_of(d));
        let inside = |d: &&Dim| innermost.as_ref().is_none_or(|innermost| self.rank_of(d) > *innermost);
        let count = slices.dims.iter().rev().take_while(inside).count();
        &slices.dims[slices.dims.len() - count..]
    }

    /// What dims are sorted by: outermost first, and stride 0 before all.
    pub(crate) fn rank_of(&self, dim: &Dim) -> Vec<u64> {
        let mapped = self.inputs.iter().zip(&dim.stride.inputs).filter(|(input, _)| input.mapped);
        let rank = |stride: i64| if stride == 0 { 0 } else { u64::MAX - stride.unsigned_abs() };
        mapped.map(|(_, &stride)| rank(stride)).collect()
    }

    /// The dims of a box of slices and of the first box of their elements, outermost first, and whether each is
    /// reduced.
    pub fn dims(&self, slices: &Region) -> Vec<(Dim, bool)> {
        let inside = self.inside(slices);
        let outside = &slices.dims[..slices.dims.len() - inside.len()];
        let elements = self.elements.first().map_or(&[][..], |e| &e.dims);
        let mut dims: Vec<(Dim, bool)> = outside.iter().map(|d| (d.clone(), false)).collect();
        dims.extend(elements.iter().map(|d| (d.clone(), true)));
        if self.is_commutative() {
            dims.sort_by_key(|(d, _)| self.rank_of(d));
        }
        dims.extend(inside.iter().map(|d| (d.clone(), false)));
        dims
    }
}

impl Region {
    /// How many positions it has.
    pub fn positions(&self) -> u64 {
        self.dims.iter().map(|d| d.extent).fold(1, u64::saturating_mul)
    }
}
