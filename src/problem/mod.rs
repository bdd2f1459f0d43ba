//! The problem: a reduction in normal form.
//!
//! Axes are positive, unit extents are gone, dims stand in canonical order, neighbours that walk memory as one are
//! merged, and operands are numbered. Two specs with the same problem are the same computation and share code.
//!
//! # Canonical order
//! Only mapped inputs, which lift reads, count. A dim whose first non-zero stride in them is negative is flipped. Dims
//! are sorted by decreasing |stride| in the first mapped input, ties by the next one, then by axis number; dims of
//! stride 0 are outermost. Neighbouring reduction dims merge if the strides of all mapped inputs allow it; neighbouring
//! parallel dims merge if the strides of all operands do (which no result shows).
//!
//! For a combiner that is not commutative, reduction dims keep the order of the axes and are not flipped.
//!
//! # Blocked layouts
//! An axis in layout blocks is a dim over blocks and a dim over the positions in a block, so that a layout affects the
//! order of a reduction by its strides alone. An axis that is no multiple of its block is cut into the whole blocks and
//! the rest. Slices are then several [boxes](crate::problem::IndexBox), each with its own dims, which are reduced as one sequence: first
//! the box of whole blocks along all axes; the axis written last moves on to its rest first. Boxes that walk memory as
//! one are merged. Only mapped inputs cut slices, so the order does not depend on outputs; outputs are cut by all
//! operands. A combiner that is not commutative, over an axis that is cut, takes the elements in the order of the
//! slice.
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
//! each line of the text is one of `work` to `padding`, or `walk`, but for `body` and `totals`, which have several:
//!
//! ```text
//! problem    = "problem" "{" work field* operand* index* body? takes? only? slices* walks? positions* totals? padding* "}"
//! work       = "reduce" list(op) "in" dtype "over" count flag*     accumulator type, elements of a slice
//!            | "convert" "over" count flag*
//!            | "region" "in" dtype "over" count ("kept" | "reduced")*   axes, as far as positions and totals name them
//! flag       = "saturate" | "half_even"
//! field      = ("map" | "then" | "apply") '"' expression '"'       "then": one for each output
//! operand    = ("in" | "with" | "out") x ":" dtype "[" count "]"   read by lift; read after the reduction; written
//!              reach?                                              of an input of a region
//! reach      = "element" | "slice" | "scalar"
//! index      = "index" count                                       extent of an axis whose index a region reads
//! body       = "body" line* "end"                                  definitions, then outputs
//! takes      = "takes" "position"                                  lift takes the position in the slice
//! only       = "only" list(count)                                  the groups whose states are made, by a result of each
//! walks      = walk
//!            | ("walk" "of" list(count) walk)*                     the reductions of a region that follow it
//! walk       = elements* gathered? beside?
//! slices     = "slices" box
//! elements   = "elements" box
//! positions  = "positions" box
//! box        = "at" place dim*
//! dim        = "dim" count ":" place                               extent, and the stride in each operand
//! place      = list(int) ("->" list(int))? ("position" int)?       inputs, outputs, position in the slice
//! gathered   = "gathered" list(count)                              extents that elements are put in order for
//! beside     = "beside" count                                      slices side by side in a step, if not 1
//! totals     = "totals" problem                                    over the values of the slices
//! padding    = "padding" "of" x "at" count ("dim" count ":" int)*  elements of an output that become zero
//! x          = "x" and a number, inputs first
//! ```
//!
//! A box begins at a place and has dims, outermost first. `slices` are the outputs, `elements` those of one slice,
//! `positions` the places of a slice at which outputs are written. `elements` have no outputs and no arrow.
//! An index stands among the inputs after all others, and the values that totals reduce among the outputs. [`region`]
//! has the grammar of a body.
//!
//! [`region`]: cranefold_ir::region

pub mod blocks;
mod canonical;
mod check;
pub mod first_phase;
mod keep;
mod padding;
pub mod search_windows;
mod text;
pub mod tree;
mod written_first;

pub use text::ProblemError;

use cranefold_ir::ops::{Computation, Form, Method, OpCall, Recipe, Reducer, Source, Types};
use cranefold_ir::region::{Body, Reach, Value};
use cranefold_ir::{DType, Def, LoopVar, Over, ops};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Fewer slices side by side do not fill a vector, whatever their type.
const FEW_COLUMNS: u64 = 16;

/// Slices of fewer elements are short beside what is spread over a row of them.
const SHORT_COLUMNS: u64 = 1024;

/// A canonical reduction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// The computation.
    pub work: Work,
    /// The number of elements of the spec in each slice.
    pub count: u64,
    /// Every buffer that is only read, in the order of a call. In expressions it is `x` and its number.
    pub inputs: Vec<Input>,
    /// The outputs, in the order of a call.
    pub outputs: Vec<OperandSpan>,
    /// The extents of the axes whose indices a region reads. An index is numbered after the inputs, and its element is
    /// its place.
    pub indices: Vec<u64>,
    /// The values of the slices that totals reduce. A value is numbered after the outputs, and lies in scratch memory.
    pub values: Vec<OperandSpan>,
    /// The reduction of the values over kept axes, if there are totals.
    pub totals: Option<Box<Problem>>,
    /// True if elements are read with their position in the slice.
    pub takes_position: bool,
    /// The groups of reductions whose states are made, each by the number of its first result; all of them if empty. Their
    /// tree is that of the first walk.
    pub only: Vec<usize>,
    /// The boxes of slices; empty without outputs.
    pub slices: Vec<IndexBox>,
    /// The walks over the elements of each slice that reductions take; none without elements.
    pub walks: Vec<SliceWalk>,
    /// The boxes of the positions of each slice at which outputs are written, if there are such outputs.
    pub positions: Vec<IndexBox>,
    /// The boxes of outputs that are padding.
    pub padding: Vec<Padding>,
}

/// A walk over the elements of a slice: the order that a reduction tree follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SliceWalk {
    /// The boxes of the elements, one after the other.
    pub elements: Vec<IndexBox>,
    /// The extents of the dims that the tree is over, if elements are first brought into the order of their positions;
    /// `None` if it is over the boxes.
    pub gathered: Option<Vec<u64>>,
    /// The number of slices side by side within one step of the innermost reduction dim, in the box of whole layout
    /// blocks of the mapped inputs. The number of lanes follows from it.
    pub beside: u64,
    /// The reductions of a region that follow the walk, in the order of their definitions.
    pub reductions: Vec<usize>,
}

impl Default for SliceWalk {
    fn default() -> SliceWalk {
        SliceWalk { elements: vec![], gathered: None, beside: 1, reductions: vec![] }
    }
}

/// The computation of a problem.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "a problem has one")]
pub enum Work {
    /// The conversion of each element to the output's type.
    Convert {
        /// True if integers are clamped to the output's range rather than taken modulo 2^bits.
        saturate: bool,
        /// True if floats become integers to nearest, ties to even, rather than towards zero.
        half_even: bool,
    },
    /// The reduction that a recipe describes.
    Reduce(Recipe),
    /// The reductions and outputs of a region, in canonical form.
    Region(Body),
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
    /// True if lift reads it; other inputs are read after a slice is reduced.
    pub mapped: bool,
}

/// Distances in buffers, in elements; those of one buffer or two take no memory of their own.
pub type Distances = SmallVec<[i64; 2]>;

/// A distance in the buffer of each operand, in elements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Offsets {
    /// The distance in each input.
    pub inputs: Distances,
    /// The distance in each output.
    pub outputs: Distances,
    /// The distance in the slice: in positions in the row-major order of the reduced axes.
    pub position: i64,
}

/// A box: all combinations of a position in each of its dims.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexBox {
    /// The place of position 0 of all dims; for elements, from the start of the slice.
    pub start: Offsets,
    /// The dims, outermost first.
    pub dims: Vec<Dim>,
}

/// A dim of a box.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dim {
    /// The number of positions, at least 2.
    pub extent: u64,
    /// The distance between two positions. For elements, it is 0 in outputs and in inputs that are not mapped.
    pub stride: Offsets,
}

/// Elements of an output that no index names, and that become zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Padding {
    /// The output.
    pub output: usize,
    /// The place of the first element.
    pub start: i64,
    /// Extents and strides, outermost first.
    pub dims: Vec<(u64, i64)>,
}

impl Problem {
    /// The same problem in no more memory than it takes: kernels are kept with theirs.
    pub(crate) fn without_spare_memory(mut self) -> Problem {
        let walks = self.walks.iter_mut().map(|walk| &mut walk.elements);
        for boxes in [&mut self.slices, &mut self.positions].into_iter().chain(walks) {
            boxes.iter_mut().for_each(|one| one.dims.shrink_to_fit());
            boxes.shrink_to_fit();
        }
        self.inputs.shrink_to_fit();
        self.outputs.shrink_to_fit();
        self.walks.shrink_to_fit();
        self.padding.shrink_to_fit();
        if let Work::Region(body) = &mut self.work {
            body.definitions.shrink_to_fit();
        }
        self
    }

    /// The computation in its plain form; `None` if the work is a conversion.
    pub fn computation(&self) -> Option<Computation> {
        self.computation_in(Form::Plain)
    }

    /// The computation in a form; `None` if the work is a conversion, or the reducer has no such form.
    pub fn computation_in(&self, form: Form) -> Option<Computation> {
        self.computation_keeping(form, &[])
    }

    /// The computation in a form, where the element values of these names are kept between visits of the slice; `None`
    /// as [`computation_in`](Problem::computation_in).
    pub fn computation_keeping(&self, form: Form, keep: &[String]) -> Option<Computation> {
        let agree = |walk: usize, one: &Method, several: &Method| {
            self.walks.get(walk).is_some_and(|walk| tree::agree(walk, one, several))
        };
        let recipe = match &self.work {
            Work::Convert { .. } => return None,
            Work::Region(body) => {
                return body.computation(&self.types(), &self.walk_of(), form, keep, &agree).map(|c| self.with_only(c));
            }
            Work::Reduce(recipe) => recipe,
        };
        let computation = recipe.computation(&self.types(), form, &agree);
        let computation = match form {
            Form::Plain => Some(computation.expect("a recipe that the spec has checked")),
            Form::Direct => computation.ok(),
        };
        computation.map(|computation| self.with_only(computation))
    }

    /// The computation with the groups whose states are made.
    fn with_only(&self, mut computation: Computation) -> Computation {
        if !self.only.is_empty() {
            let groups = computation.stages.iter_mut().map(|stage| &mut stage.groups);
            groups
                .for_each(|groups| groups.retain(|group| group.results.first().is_some_and(|n| self.only.contains(n))));
        }
        computation
    }

    /// The problem whose states are those of some groups, each given by the number of its first result. They follow one
    /// walk, by its number.
    pub(crate) fn of_groups(&self, only: Vec<usize>, walk: usize) -> Problem {
        let mut part = Problem { only, ..self.clone() };
        // Reductions name their walk, whatever its place.
        part.walks.swap(0, walk);
        part
    }

    /// The reducer of the first group in a form; `None` as [`computation_in`](Problem::computation_in), or if nothing
    /// is reduced.
    pub fn reducer_in(&self, form: Form) -> Option<Reducer> {
        let computation = self.computation_in(form)?;
        computation.stages.into_iter().flat_map(|stage| stage.groups).next().map(|group| group.reducer)
    }

    /// The inputs that states are computed from, by their numbers in ascending order: those that lifts take, and those of
    /// the values of the slice that lifts take.
    pub fn reduced_inputs(&self) -> Vec<usize> {
        let computation = self.computation();
        let stages = || computation.iter().flat_map(|c| &c.stages);
        let taken = stages().flat_map(|stage| &stage.groups).flat_map(|group| &group.inputs).copied();
        let last =
            stages().enumerate().filter(|(_, stage)| !stage.groups.is_empty()).last().map_or(0, |(number, _)| number);
        let before = stages().take(last).filter_map(|stage| stage.end.as_ref()).flat_map(|end| &end.reads);
        let read = before.filter_map(|&source| if let Source::Input(input) = source { Some(input) } else { None });
        // The numbers of indices follow those of inputs.
        taken.chain(read).filter(|&i| i < self.inputs.len()).collect::<BTreeSet<usize>>().into_iter().collect()
    }

    /// The number of the walk of each reduction of a region.
    fn walk_of(&self) -> Vec<usize> {
        let Work::Region(body) = &self.work else { return vec![] };
        // Nothing is walked where there are no elements.
        let of = |r| self.walks.iter().position(|walk| walk.reductions.contains(&r)).unwrap_or(0);
        (0..body.reductions()).map(of).collect()
    }

    /// The boxes of elements of the first walk; empty without elements.
    pub fn elements(&self) -> &[IndexBox] {
        self.walks.first().map_or(&[], |walk| &walk.elements)
    }

    /// The types of the operands.
    pub fn types(&self) -> Types {
        Types {
            inputs: self.inputs.iter().enumerate().map(|(i, x)| (format!("x{i}"), x.operand.dtype)).collect(),
            mapped: (0..self.inputs.len()).filter(|&i| self.inputs[i].mapped).collect(),
            outputs: self.outputs.iter().map(|o| o.dtype).collect(),
            count: self.count,
            index: self.index_type(),
            narrow: !self.has_few_columns(),
        }
    }

    /// Returns true if short slices lie side by side, fewer than fill a vector: lanes then hold rows of them, with values
    /// of the slices and positions spread over each row, which narrow types make longer.
    fn has_few_columns(&self) -> bool {
        let few = |dim: &Dim| dim.extent < FEW_COLUMNS && dim.stride.inputs.contains(&1);
        self.count < SHORT_COLUMNS && self.slices.iter().flat_map(|slices| &slices.dims).any(few)
    }

    /// The type of indices along axes: `i32` if it holds them all.
    pub fn index_type(&self) -> DType {
        if self.indices.iter().all(|&extent| extent <= i32::MAX as u64) { DType::I32 } else { DType::I64 }
    }

    /// The variables of the loops over each box of slices, one for each dim: schedules use their names.
    pub fn output_loops(&self) -> Vec<Vec<LoopVar>> {
        let mut ids = 0..;
        let loops = |slices: &IndexBox| {
            let ids = (&mut ids).take(slices.dims.len());
            ids.map(|id| LoopVar { over: Over::Output, id }).collect()
        };
        self.slices.iter().map(loops).collect()
    }

    /// The conversion of one element; `None` if the work is a reduction.
    pub fn conversion(&self) -> Option<Def> {
        let Work::Convert { saturate, half_even } = self.work else { return None };
        Some(ops::convert(self.inputs[0].operand.dtype, self.outputs[0].dtype, saturate, half_even))
    }

    /// Returns true if an output is written at each position of the slice.
    pub fn applies(&self) -> bool {
        match &self.work {
            Work::Convert { .. } => false,
            Work::Reduce(recipe) => recipe.applies(),
            Work::Region(body) => body.reaches().outputs.contains(&Reach::Element),
        }
    }

    /// Returns true if the old elements of an output are read.
    pub fn reads_old(&self, output: usize) -> bool {
        match &self.work {
            Work::Convert { .. } => false,
            Work::Reduce(recipe) => recipe.then.get(output).is_some_and(|f| f.uses("d")),
            Work::Region(body) => body.definitions.iter().any(|d| d.value == Value::Old(output)),
        }
    }

    /// Returns true if elements are brought into the order of the slice before they are combined.
    pub fn gathers(&self) -> bool {
        self.walks.iter().any(|walk| walk.gathered.is_some())
    }

    /// Returns true if elements may be combined in another order than the slice's.
    pub fn is_commutative(&self) -> bool {
        let own = |c: &OpCall| matches!(c, OpCall::Own(own) if !own.commutative);
        !matches!(&self.work, Work::Reduce(recipe) if recipe.calls.iter().any(own))
    }

    /// The number of elements of each input that are reduced, converted or read for outputs, over all slices.
    pub fn elements_read(&self) -> u64 {
        let count = |boxes: &[IndexBox]| boxes.iter().map(IndexBox::positions).fold(0, u64::saturating_add);
        let in_slice = count(self.elements()).max(count(&self.positions)).max(1);
        count(&self.slices).saturating_mul(in_slice)
    }

    /// The dims of a box of slices that lie inside the innermost reduction dim: the last ones.
    pub fn inside<'a>(&self, slices: &'a IndexBox) -> &'a [Dim] {
        dims_inside(&slices.dims, self.elements(), &self.mapped())
    }

    /// The inputs that lifts read, by their numbers: in the order in which dims are sorted by them. Those of a region
    /// with more elements come first, since an input that is broadcast says less of the order in memory.
    pub fn mapped(&self) -> SmallVec<[usize; 4]> {
        let mut mapped: SmallVec<[usize; 4]> = (0..self.inputs.len()).filter(|&i| self.inputs[i].mapped).collect();
        if let Work::Region(_) = self.work {
            let dims = self.slices.first().into_iter().chain(self.elements().first()).flat_map(|region| &region.dims);
            let dims: Vec<&Dim> = dims.collect();
            let moves = |i: usize| dims.iter().filter(move |d| d.stride.inputs[i] != 0);
            mapped.sort_by_key(|&i| std::cmp::Reverse(moves(i).map(|d| d.extent).fold(1, u64::saturating_mul)));
        }
        mapped
    }

    /// The dims of a box of slices and of the first box of their elements, outermost first, each with true if it is
    /// reduced.
    pub fn dims(&self, slices: &IndexBox) -> Vec<(Dim, bool)> {
        let inside = self.inside(slices);
        let outside = &slices.dims[..slices.dims.len() - inside.len()];
        let elements = self.elements().first().map_or(&[][..], |e| &e.dims);
        let mut dims: Vec<(Dim, bool)> = outside.iter().map(|d| (d.clone(), false)).collect();
        dims.extend(elements.iter().map(|d| (d.clone(), true)));
        if self.is_commutative() {
            let inputs = self.mapped();
            dims.sort_by_key(|(d, _)| rank_of(d, &inputs));
        }
        dims.extend(inside.iter().map(|d| (d.clone(), false)));
        dims
    }
}

impl IndexBox {
    /// The number of positions of the box.
    pub fn positions(&self) -> u64 {
        self.dims.iter().map(|d| d.extent).fold(1, u64::saturating_mul)
    }
}

/// The dims of slices that lie inside the innermost dim of elements, by the strides of these inputs: the last ones.
fn dims_inside<'a>(slices: &'a [Dim], elements: &[IndexBox], inputs: &[usize]) -> &'a [Dim] {
    let innermost = elements.first().and_then(|e| e.dims.last()).map(|d| rank_of(d, inputs));
    let inside = |d: &&Dim| innermost.as_ref().is_none_or(|innermost| rank_of(d, inputs) > *innermost);
    let count = slices.iter().rev().take_while(inside).count();
    &slices[slices.len() - count..]
}

/// The sort key of a dim by the strides of these inputs: outermost first, and stride 0 before all.
pub(crate) fn rank_of(dim: &Dim, inputs: &[usize]) -> SmallVec<[u64; 4]> {
    let rank = |stride: i64| if stride == 0 { 0 } else { u64::MAX - stride.unsigned_abs() };
    inputs.iter().map(|&i| rank(dim.stride.inputs[i])).collect()
}
