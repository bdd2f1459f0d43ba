//! Lowers a problem to a naive nest: obviously right, never clever.
//!
//! One loop for each output dim, outermost; inside, for each block of the tree, loops over its steps and lanes; then
//! the merge of the blocks, the fold of the lanes, finish and store. With several phases, each phase walks each block
//! and folds its lanes, but for a first one that another reduction has had (`phases.rs`). A reduction that selects
//! elements by their order gathers each slice instead. A search for one element in a run walks windows instead of blocks
//! (`search.rs`). If each position of the slice is written, a loop over positions replaces the store, or the only visit
//! writes them (`after.rs`). If layouts cut the problem into boxes, each box of slices has its loops, and in them each
//! box of elements its blocks. A part has a share of the slices or of the blocks (`cut.rs`); if blocks are divided, their
//! states are stored, and a finish merges them (`states.rs`). The nest of a whole problem with one phase:
//!
//! ```text
//! for i0 in 0..4 parallel {
//!   acc a0: f32[1600] = -0.0
//!   for b0 in 0..25 parallel {
//!     for k0 in 0..63 seq {
//!       for l0 in 0..64 parallel { a0[64*b0 + l0] = add(a0[64*b0 + l0], x0[100000*i0 + 4032*b0 + 64*k0 + l0]) }
//!     }
//!   }
//!   merge a0 by sum over 25 of 64
//!   fold a0 by sum over 64 of 64 by 1
//!   x1[i0] = canon(a0[0])
//! }
//! ```

#![warn(clippy::wildcard_enum_match_arm)]

mod after;
mod at;
mod cut;
mod keep;
mod narrow;
mod phases;
pub mod program;
mod search;
mod states;
mod walk;

pub use cut::cut;

use crate::problem::first_phase::FirstPhase;
use crate::problem::search_windows::Windows;
use crate::problem::tree::Tree;
use crate::problem::{Dim, IndexBox, Input, Offsets, OperandSpan, Padding, Problem, Work};
use crate::schedule::Schedule;
use at::At;
use cranefold_ir::ops::{Computation, Form, Group, Method, Phase, in_memory};
use cranefold_ir::{
    AccId, BufId, Buffer, BufferRole, DType, Def, Expr, Index, Loop, LoopKind, LoopVar, Names, Nest, Op, Over, Scalar,
    Stmt,
};
use phases::first_phase;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// The share of a problem that a nest computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    /// The whole problem.
    Whole,
    /// Some of the slices.
    Slices {
        /// Boxes of slices, each with the number of the problem's box that contains it, and as many dims.
        boxes: Vec<(usize, IndexBox)>,
        /// True if the padding of outputs is written too.
        padding: bool,
    },
    /// Some blocks of every slice, an aligned subtree, whose merged states are stored among those of all parts.
    Blocks {
        /// The numbers of the blocks.
        blocks: Range<u64>,
        /// The number of the part.
        part: u64,
        /// The number of parts.
        parts: u64,
        /// The numbers that the problem counts from the first of the blocks on.
        counted: Counted,
    },
    /// The finish after all parts of blocks: their states are merged and finished.
    Finish {
        /// The number of parts.
        parts: u64,
    },
}

/// The positions and indices that a problem counts from the start of a part, and not of the slice. The number at the
/// start is added when the nest runs: it is the one element of a buffer, one buffer for each after those of the states,
/// the position's first. Parts that differ in these numbers alone have one nest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// True if the position in the slice is counted so.
    pub position: bool,
    /// The indices, by their numbers among inputs.
    pub indices: Vec<usize>,
}

impl Counted {
    /// The buffers of the numbers at the start.
    pub fn buffers(&self, problem: &Problem) -> Vec<Buffer> {
        let position = self.position.then(|| problem.types().position());
        let indices = self.indices.iter().map(|_| problem.index_type());
        let buffer = |dtype| Buffer { role: BufferRole::In, dtype, len: 1 };
        position.into_iter().chain(indices).map(buffer).collect()
    }

    /// The place of an index among the buffers.
    fn of_index(&self, input: usize) -> Option<usize> {
        let at = self.indices.iter().position(|&index| index == input)?;
        Some(at + usize::from(self.position))
    }
}

/// The naive nest of a problem in its plain form, named `name`.
pub fn lower(problem: &Problem, name: &str) -> Nest {
    lower_share(problem, Form::Plain, name, &Share::Whole)
}

/// The naive nest of a share of a problem in one of its forms. Its buffers are those of the problem, then those of
/// states.
pub fn lower_share(problem: &Problem, form: Form, name: &str, share: &Share) -> Nest {
    lower_as(problem, &Schedule { form, ..Schedule::default() }, name, share)
}

/// The naive nest of a share of a problem as a schedule says: the form, the element values that are kept between the
/// visits of a slice, and the visit that writes outputs at its positions.
pub fn lower_as(problem: &Problem, schedule: &Schedule, name: &str, share: &Share) -> Nest {
    let computation = problem.computation_keeping(schedule.form, &schedule.keep).map(Arc::new);
    lower_computation(problem, schedule, computation, name, share)
}

/// The same nest, given the computation that the schedule asks for.
fn lower_computation(
    problem: &Problem,
    schedule: &Schedule,
    computation: Option<Arc<Computation>>,
    name: &str,
    share: &Share,
) -> Nest {
    let buffer = |role, o: &OperandSpan| Buffer { role, dtype: in_memory(o.dtype), len: o.len };
    let inputs = problem.inputs.iter().map(|i| buffer(BufferRole::In, &i.operand));
    let old = |o| if problem.reads_old(o) { BufferRole::InOut } else { BufferRole::Out };
    let outputs = problem.outputs.iter().enumerate().map(|(i, o)| buffer(old(i), o));
    let buffers = inputs.chain(outputs).chain(states::buffers(problem, schedule.form, share)).collect();
    let nest = Nest { name: name.into(), buffers, defs: vec![], body: vec![] };
    let mut lowering = Lowering {
        problem,
        computation,
        written_first: None,
        share,
        operands: Operands::of(problem),
        visit: Visit::default(),
        gathered: vec![],
        kept: vec![],
        first_state: 0,
        first_phases: vec![],
        lanes: FxHashMap::default(),
        nest,
        names: Names::default(),
    };
    // Blocks are divided only where nothing is written at positions.
    if schedule.write_first {
        lowering.written_first =
            lowering.computation.as_ref().and_then(|computation| problem.written_first(computation));
    }
    lowering.whole();
    lowering.nest
}

/// The memory of a problem's operands.
#[derive(Clone)]
struct Operands {
    inputs: Vec<Place>,
    /// Outputs, then the values of slices that totals reduce.
    outputs: Vec<Place>,
}

/// The memory of an operand.
#[derive(Clone, Copy)]
enum Place {
    Buffer(BufId),
    Scratch(AccId),
}

impl Operands {
    fn of(problem: &Problem) -> Operands {
        let buffer = |b: usize| Place::Buffer(BufId(b as u32));
        let outputs = problem.inputs.len()..problem.inputs.len() + problem.outputs.len();
        Operands { inputs: (0..outputs.start).map(buffer).collect(), outputs: outputs.map(buffer).collect() }
    }
}

struct Lowering<'a> {
    problem: &'a Problem,
    /// The computation; none of a conversion.
    computation: Option<Arc<Computation>>,
    /// The boxes of elements with the places of outputs, if the visit of a slice writes those at its positions.
    written_first: Option<Vec<IndexBox>>,
    share: &'a Share,
    operands: Operands,
    visit: Visit,
    /// The elements of the slice in the order of their positions: the walk and the inputs that are gathered for it.
    gathered: Vec<(usize, Vec<usize>, State)>,
    /// The memory of each value that is kept between visits, once a visit has computed it.
    kept: Vec<Option<State>>,
    /// The number of values in the states of the groups before, which are stored if blocks are divided.
    first_state: usize,
    /// The folded lanes of the first phase of each group before, if it has several and one block.
    first_phases: Vec<Option<State>>,
    /// The merged lanes of groups of one phase that the first phase of an earlier group has had, by the groups' numbers.
    lanes: FxHashMap<usize, State>,
    nest: Nest,
    names: Names,
}

/// The visit of a slice's elements that is being lowered.
#[derive(Clone, Default)]
struct Visit {
    /// The boxes of elements that the tree is over.
    boxes: Vec<IndexBox>,
    /// The inputs that lifts take.
    inputs: Vec<usize>,
    /// True if lifts take the position.
    takes_position: bool,
    /// The values of earlier stages that lifts take.
    taken: Vec<Expr>,
    /// The elements in the order of their positions, if they are gathered first.
    gathered: Option<State>,
    /// The kept values that the visit computes, each with the values of the slice that it takes.
    computed: Vec<(usize, Vec<Expr>)>,
    /// True if it writes the outputs at positions of the slice.
    writes: bool,
    /// The folded lanes of the first of several phases over one block, once they are known.
    first_phase: Option<State>,
}

impl Visit {
    /// The indices at the start of a box of elements.
    fn entering(&self, number: usize, at: &At) -> At {
        let before = self.boxes[..number].iter().map(IndexBox::positions).sum();
        at.entering(&self.boxes[number].start, before)
    }
}

/// The states of one reducer: an accumulator for each value of a state.
#[derive(Clone)]
struct State {
    accs: Vec<(AccId, DType)>,
}

impl State {
    fn read(&self, index: &Index) -> Vec<Expr> {
        self.accs.iter().map(|&(acc, dtype)| Expr::Read(acc, dtype, index.clone())).collect()
    }

    fn set(&self, index: &Index, values: Vec<Expr>) -> Vec<Stmt> {
        let set = |(&(acc, _), value): (&(AccId, DType), Expr)| Stmt::Set { acc, index: index.clone(), value };
        self.accs.iter().zip(values).map(set).collect()
    }

    fn ids(&self) -> Vec<AccId> {
        self.accs.iter().map(|&(acc, _)| acc).collect()
    }
}

/// The statements of a slice so far, and its values.
struct Slice {
    body: Vec<Stmt>,
    /// The values by their numbers, as far as they are known.
    values: Vec<Option<Expr>>,
}

impl Slice {
    fn set(&mut self, numbers: &[usize], values: Vec<Expr>) {
        numbers.iter().zip(values).for_each(|(&n, value)| self.values[n] = Some(value));
    }

    fn take(&self, numbers: &[usize]) -> Vec<Expr> {
        numbers.iter().map(|&n| self.values[n].clone().expect("a value of an earlier stage")).collect()
    }
}

impl<'p> Lowering<'p> {
    /// A loop over `body`, which gets the variable as an index. A single iteration makes no loop, except over blocks,
    /// so that the body of a loop over blocks is a whole block.
    fn repeat(
        &mut self,
        over: Over,
        extent: u64,
        kind: LoopKind,
        body: impl FnOnce(&mut Self, Index) -> Vec<Stmt>,
    ) -> Vec<Stmt> {
        match extent {
            0 => vec![],
            1 if over != Over::Block => body(self, Index::default()),
            _ => {
                let var = self.names.loop_over(over);
                let body = body(self, Index::term(var, 1));
                vec![Stmt::For(Loop::new(var, extent, kind, body))]
            }
        }
    }

    /// Loops over the slices, and over the padding of outputs.
    fn whole(&mut self) {
        let (problem, share) = (self.problem, self.share);
        // A schedule names these loops, so they are numbered before all other loops.
        let loops = problem.output_loops();
        loops.iter().flatten().for_each(|&var| assert_eq!(self.names.loop_over(Over::Output), var));
        let mut body = self.values();
        let boxes: Vec<(usize, &IndexBox)> = match share {
            Share::Slices { boxes, .. } => boxes.iter().map(|(number, slices)| (*number, slices)).collect(),
            Share::Whole | Share::Blocks { .. } | Share::Finish { .. } => problem.slices.iter().enumerate().collect(),
        };
        let mut before = 0;
        for (number, slices) in boxes {
            body.extend(self.slices(&slices.dims, &loops[number], At::of(&slices.start).at_slice(before)));
            before += slices.positions();
        }
        if let Some(totals) = &problem.totals {
            body.extend(self.totals(totals));
        }
        for padding in problem.padding.iter().filter(|_| share.pads()) {
            body.extend(self.pad(padding));
        }
        self.nest.body = body;
    }

    /// Scratch memory for the values of the slices that totals reduce.
    fn values(&mut self) -> Vec<Stmt> {
        let mut stmts = vec![];
        for value in &self.problem.values {
            let init = Scalar::zero(in_memory(value.dtype));
            let acc = self.names.acc();
            stmts.push(Stmt::Acc { acc, dtype: init.dtype(), len: value.len, init });
            self.operands.outputs.push(Place::Scratch(acc));
        }
        stmts
    }

    /// Loops over the totals, which reduce the values of all slices.
    fn totals(&mut self, problem: &'p Problem) -> Vec<Stmt> {
        let Work::Region(body) = &self.problem.work else { unreachable!("a region has totals") };
        let of = body.totals().expect("a region with totals");
        let values = self.operands.outputs[self.problem.outputs.len()..].iter().copied();
        let inputs = values.chain(of.scalars.iter().map(|&i| self.operands.inputs[i])).collect();
        let outputs = of.outputs.iter().map(|&o| self.operands.outputs[o]).collect();
        let operands = Operands { inputs, outputs };
        let outer = (self.problem, self.computation.take(), std::mem::replace(&mut self.operands, operands));
        self.problem = problem;
        self.computation = problem.computation().map(Arc::new);
        let mut body = vec![];
        for slices in &problem.slices {
            let vars: Vec<LoopVar> = slices.dims.iter().map(|_| self.names.loop_over(Over::Output)).collect();
            body.extend(self.slices(&slices.dims, &vars, At::of(&slices.start)));
        }
        (self.problem, self.computation, self.operands) = outer;
        body
    }

    fn slices(&mut self, dims: &[Dim], vars: &[LoopVar], at: At) -> Vec<Stmt> {
        let (Some((d, dims)), Some((&var, vars))) = (dims.split_first(), vars.split_first()) else {
            return self.element(&at);
        };
        let inner = dims.iter().map(|d| d.extent).product();
        let body = self.slices(dims, vars, at.along(&d.stride, 0, &Index::term(var, 1)).past_slices(inner, var));
        vec![Stmt::For(Loop::new(var, d.extent, LoopKind::Parallel, body))]
    }

    /// Loops that write zeros to padding.
    fn pad(&mut self, padding: &Padding) -> Vec<Stmt> {
        let vars: Vec<LoopVar> = padding.dims.iter().map(|_| self.names.loop_over(Over::Output)).collect();
        let dims = padding.dims.iter().zip(&vars);
        let index = dims.clone().fold(Index::constant(padding.start), |sum, (&(_, by), &var)| sum.plus(var, by));
        let zero = Scalar::zero(in_memory(self.problem.outputs[padding.output].dtype));
        let store = Stmt::Store { buf: self.output_buffer(padding.output), index, value: zero.into() };
        let around = |body, (&(extent, _), &var): (&(u64, i64), &LoopVar)| {
            vec![Stmt::For(Loop::new(var, extent, LoopKind::Parallel, body))]
        };
        dims.rev().fold(vec![store], around)
    }

    /// All statements for the slice at a position.
    fn element(&mut self, at: &At) -> Vec<Stmt> {
        let Some(computation) = self.computation.clone() else {
            let def = self.problem.conversion().expect("a conversion where nothing is reduced");
            let value = vec![self.load(0, at)];
            let (mut stmts, values) = self.apply(&def, value);
            stmts.extend(self.store(values, &[0], at));
            return stmts;
        };
        self.gathered.clear();
        self.kept = vec![None; computation.kept.len()];
        self.first_state = 0;
        self.first_phases.clear();
        self.lanes.clear();
        let mut slice = Slice { body: vec![], values: vec![None; computation.values()] };
        let mut loops = computation.groups().count() + usize::from(computation.apply.is_some());
        for stage in &computation.stages {
            let mut are_stored = false;
            for group in &stage.groups {
                loops -= 1;
                are_stored |= !self.group(&computation, group, loops > 0, &mut slice, at);
                self.first_state += group.reducer.nothing.len();
                self.first_phases.push(self.visit.first_phase.take());
            }
            if are_stored {
                return slice.body;
            }
            if let Some(end) = &stage.end {
                let (stmts, values) = self.ending(end, &slice, at);
                let values = self.held(stmts, values, loops > 0, &mut slice.body);
                slice.set(&end.results, values);
            }
        }
        self.outputs(&computation, slice, at)
    }

    /// The results of a group, which become values of the slice; returns false if the states are stored instead.
    fn group(
        &mut self,
        computation: &Computation,
        group: &Group,
        loops_follow: bool,
        slice: &mut Slice,
        at: &At,
    ) -> bool {
        let reducer = &group.reducer;
        let state = match self.problem.count {
            0 => Some(reducer.nothing.iter().map(|&s| s.into()).collect()),
            _ => self.reduce(computation, group, slice, at),
        };
        let Some(mut args) = state else { return false };
        args.extend(self.sources(&reducer.reads, at));
        let (stmts, values) = self.apply(&reducer.finish, args);
        let values = self.held(stmts, values, loops_follow, &mut slice.body);
        slice.set(&group.results, values);
        true
    }

    /// The state of a group, to be finished; `None` if it is stored.
    fn reduce(&mut self, computation: &Computation, group: &Group, slice: &mut Slice, at: &At) -> Option<Vec<Expr>> {
        let walk = &self.problem.walks[group.walk];
        self.visit = Visit {
            boxes: walk.elements.clone(),
            inputs: group.inputs.clone(),
            takes_position: group.takes_position,
            taken: slice.take(&group.takes),
            gathered: None,
            computed: vec![],
            writes: false,
            first_phase: None,
        };
        let mut needs = group.inputs.clone();
        if let (Some(boxes), Some(apply)) = (&self.written_first, &computation.apply) {
            self.visit.boxes = boxes.clone();
            self.visit.writes = true;
            needs.extend(&apply.inputs);
        }
        self.visit.computed = self.begin_keeping(&needs, slice);
        let reducer = &group.reducer;
        match &reducer.method {
            Method::Select { lift, what } => Some(self.select(lift, what, slice, at)),
            Method::Phases { phases, merge, search, .. } => {
                let tree = Tree::of(walk, &reducer.method);
                if let Some(search) = search
                    && matches!(self.share, Share::Whole | Share::Slices { .. })
                    && let Some(windows) = Windows::of(self.problem, computation, &tree)
                {
                    return Some(self.search(phases, search, (&tree, &windows), slice, at));
                }
                if let Some(extents) = &walk.gathered {
                    self.gather(group.walk, walk, slice, at);
                    self.visit.boxes = vec![in_a_row(self.problem, extents)];
                }
                let number = self.first_phases.len();
                let first = self.problem.first_phase_before(computation, number);
                match phases.as_slice() {
                    [phase] if phase.close.is_none() => {
                        // Names of definitions are in terms. A group whose lanes an earlier one has computed takes its
                        // phase, so that the names are the same where blocks are divided and each computes its own lanes.
                        let phase = match first {
                            Some(FirstPhase::Lanes(earlier)) => first_phase(computation, earlier),
                            Some(FirstPhase::Folded(_)) | None => phase,
                        };
                        self.one_phase(phase, &tree, slice, at)
                    }
                    phases => {
                        if let Some(FirstPhase::Folded(earlier)) = first {
                            self.visit.first_phase = self.first_phases[earlier].clone();
                        }
                        let taker = self.taker_of_lanes(computation, number);
                        self.phases(phases, merge, &tree, taker, slice, at)
                    }
                }
            }
        }
    }

    /// Accumulators for the values of a state, `len` elements each.
    fn accumulate(&mut self, identity: &[Scalar], len: u64) -> (State, Vec<Stmt>) {
        let mut accs = vec![];
        let mut stmts = vec![];
        for &init in identity {
            let acc = self.names.acc();
            accs.push((acc, init.dtype()));
            stmts.push(Stmt::Acc { acc, dtype: init.dtype(), len, init });
        }
        (State { accs }, stmts)
    }

    /// The statements by which a lane takes its next element.
    fn take(&mut self, phase: &Phase, state: &State, lane: &Index, mut element: Vec<Expr>) -> Vec<Stmt> {
        if let Some(update) = &phase.update {
            let (mut stmts, values) = self.apply(update, [state.read(lane), element].concat());
            stmts.extend(state.set(lane, values));
            return stmts;
        }
        // After the elements of inputs and the values of earlier stages: see `arguments`.
        let place = self.visit.inputs.len() + self.visit.taken.len();
        let count = self.problem.types().count;
        let narrow = self.visit.takes_position.then(|| narrow::lift(&phase.lift, place, &mut element, count)).flatten();
        let (mut stmts, lifted) = self.apply(narrow.as_ref().unwrap_or(&phase.lift), element);
        stmts.extend(self.combine(&phase.combine, state, lane, lifted));
        stmts
    }

    /// `state[index] = combine(state[index], lifted)`.
    fn combine(&mut self, combine: &Def, state: &State, index: &Index, lifted: Vec<Expr>) -> Vec<Stmt> {
        let (mut stmts, values) = self.apply(combine, [state.read(index), lifted].concat());
        stmts.extend(state.set(index, values));
        stmts
    }

    /// The results of a definition: inline if it is simple, else by a call.
    fn apply(&mut self, def: &Def, args: Vec<Expr>) -> (Vec<Stmt>, Vec<Expr>) {
        self.nest.apply(&mut self.names, def, args)
    }

    fn load(&self, input: usize, at: &At) -> Expr {
        let Some(Input { operand, .. }) = self.problem.inputs.get(input) else {
            let index = Expr::At(self.problem.index_type(), at.input(input));
            return self.past_start(index, |counted| counted.of_index(input));
        };
        let dtype = in_memory(operand.dtype);
        match self.operands.inputs[input] {
            Place::Buffer(buffer) => Expr::Load(buffer, dtype, at.input(input)),
            Place::Scratch(acc) => Expr::Read(acc, dtype, at.input(input)),
        }
    }

    /// A position or an index, with the number at the start of the part added if the problem counts it from there on.
    fn past_start(&self, number: Expr, of: impl Fn(&Counted) -> Option<usize>) -> Expr {
        let Share::Blocks { counted, .. } = self.share else { return number };
        let Some(at) = of(counted) else { return number };
        let (buf, dtype) = (self.start_buffer(at), number.dtype());
        Expr::Op(Op::Add, dtype, vec![number, Expr::Load(buf, dtype, Index::default())])
    }

    /// The first arguments of lifts, after statements that compute some: the element of each input that they read, the
    /// values of earlier stages, and the position of the element if lifts take it.
    fn loads(&mut self, at: &At) -> (Vec<Stmt>, Vec<Expr>) {
        let (stmts, elements) = match &self.visit.gathered {
            Some(gathered) => (vec![], gathered.read(&at.position())),
            None => {
                let inputs = self.visit.inputs.clone();
                self.elements(&inputs, at)
            }
        };
        (stmts, self.arguments(elements, at))
    }

    /// These elements, and what lifts take beside them.
    fn arguments(&self, mut elements: Vec<Expr>, at: &At) -> Vec<Expr> {
        elements.extend(self.visit.taken.iter().cloned());
        let position = self.visit.takes_position.then(|| {
            let position = Expr::At(self.problem.types().position(), at.position());
            self.past_start(position, |counted| counted.position.then_some(0))
        });
        elements.extend(position);
        elements
    }
}

/// The box of a slice's elements after they have been brought into order, with these extents.
fn in_a_row(problem: &Problem, extents: &[u64]) -> IndexBox {
    let along = |position| Offsets { position, ..Offsets::zero(problem.inputs.len(), problem.outputs.len()) };
    let mut stride = 1;
    let mut dims: Vec<Dim> = vec![];
    for &extent in extents.iter().rev() {
        dims.push(Dim { extent, stride: along(stride) });
        stride *= extent as i64;
    }
    dims.reverse();
    IndexBox { start: along(0), dims }
}
