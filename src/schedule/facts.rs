//! The facts on which the choice of a schedule depends.

use super::Transform;
use super::form::{finishing, operations};
use super::machine::{Level, Machine};
use crate::problem::search_windows::Windows;
use crate::problem::tree::Tree;
use crate::problem::{Dim, IndexBox, Problem, rank_of};
use cranefold_ir::ops::{Apply, Computation, Form, Group, Method, Phase};
use cranefold_ir::region::Repeated;
use cranefold_ir::work::Work;
use cranefold_ir::{Expr, LoopVar, Op, Var};

/// A loop over slices.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputLoop {
    pub extent: u64,
    pub var: LoopVar,
}

/// The loops of each box of slices.
pub(super) fn output_loops(problem: &Problem) -> Vec<Vec<OutputLoop>> {
    let one = |(d, var): (&Dim, LoopVar)| OutputLoop { extent: d.extent, var };
    let loops = |(slices, vars): (&IndexBox, Vec<LoopVar>)| slices.dims.iter().zip(vars).map(one).collect();
    problem.slices.iter().zip(problem.output_loops()).map(loops).collect()
}

/// Slices that are runs of memory far apart.
pub(super) struct Runs<'f> {
    /// Bytes of a run.
    pub bytes: u64,
    /// Bytes from the start of a run to that of the next run of the slice.
    pub distance: u64,
    /// The loops over outputs that walk neighbouring runs.
    pub loops: &'f [OutputLoop],
    /// The transformation of a tile in which runs of neighbours follow one another: it depends on whether a block takes
    /// whole runs, or a run is several blocks.
    pub transform: Transform,
}

/// A visit of slices after the first, by a group of reductions.
pub(super) struct Later {
    /// The names of its reductions.
    pub name: String,
    /// The number of times that an element is read.
    pub phases: usize,
    /// Operations on an element, over all phases.
    pub operations: u64,
    /// Bytes of the widest value of a state.
    pub value_bytes: u64,
    /// Blocks of a slice at whose end something waits for a result.
    pub waits: u64,
}

impl Later {
    /// The visit of a group; `None` if it selects, or takes its only phase from an earlier group.
    fn of(
        problem: &Problem,
        computation: &Computation,
        (number, group): (usize, &Group),
        width: u32,
        machine: &Machine,
    ) -> Option<Later> {
        let method = &group.reducer.method;
        let known = usize::from(problem.first_phase_before(computation, number).is_some());
        let phases = method.phases().len() - known;
        let tree = Tree::of(problem.walks.get(group.walk)?, method);
        (phases > 0).then(|| Later {
            name: group.name.clone(),
            phases,
            operations: operations(&group.reducer, width, machine).iter().skip(known).sum(),
            value_bytes: method.state_bytes() / method.state_values().max(1) as u64,
            waits: if phases > 1 { tree.blocks() * phases as u64 } else { 1 },
        })
    }
}

/// The visit that writes each position of a slice.
pub(super) struct Written {
    /// Bytes of the outputs.
    pub bytes: u64,
    /// Bytes of the inputs that it reads.
    pub read_bytes: u64,
    /// Operations on an element.
    pub operations: u64,
    /// The fewest bytes of an output that are written in order.
    pub run_bytes: u64,
}

impl Written {
    pub fn of(problem: &Problem, apply: &Apply, width: u32, machine: &Machine) -> Written {
        let elements = problem.elements_read();
        let out: u64 = apply.outputs.iter().map(|&o| problem.outputs[o].dtype.bytes()).sum();
        let read_bytes = apply.inputs.iter().map(|&i| input_bytes(problem, i)).fold(0, u64::saturating_add);
        let work = Work::new(&[], |op, dtype| machine.operations(op, dtype, width));
        let runs = apply.outputs.iter().map(|&o| run_bytes(problem, o));
        Written {
            bytes: elements.saturating_mul(out),
            read_bytes,
            operations: work.def(&apply.def),
            run_bytes: runs.min().unwrap_or(0),
        }
    }
}

/// The outputs side by side from which on each position is a row of its own, whose last vector costs little where it is not
/// full: the pass `spread` joins fewer with those of the next positions.
pub(crate) const MOST_JOINED: u64 = 64;

/// Bytes of an output that are written one after the other: along the positions of a slice, or across slices side by side
/// and then, if they are few, along their positions. Each position of more begins a row of its own.
pub(super) fn run_bytes(problem: &Problem, output: usize) -> u64 {
    let longer = |run: u64, b: &IndexBox| {
        let follow = |run: u64, dim: &Dim| match dim.stride.outputs[output] == run as i64 {
            true => run.saturating_mul(dim.extent),
            false => run,
        };
        b.dims.iter().rev().fold(run, follow)
    };
    let along = |run: u64| problem.positions.iter().map(|b| longer(run, b)).min().unwrap_or(run);
    let across = problem.slices.iter().map(|b| longer(1, b)).min().unwrap_or(1);
    let run = if across < MOST_JOINED { along(across) } else { across };
    run.saturating_mul(problem.outputs[output].dtype.bytes())
}

/// The number of a tile's states that live at once: one for each block in flight, a level of the stack for each
/// doubling of the number of blocks, and the states that are merged and folded at the end.
pub(super) fn states_kept(tree: &Tree, in_flight: u64) -> u64 {
    u64::from(tree.blocks().ilog2()) + 2 + in_flight
}

/// The facts of a reduction over at least one element.
pub(super) struct Facts<'p> {
    pub problem: &'p Problem,
    /// The figures of the machine by which schedules are chosen.
    pub machine: Machine,
    /// The form of the reducer.
    pub form: Form,
    /// The names of the reductions of the first visit.
    pub name: String,
    pub tree: Tree,
    /// The loops of each box of slices.
    pub loops: Vec<Vec<OutputLoop>>,
    /// Bytes of all elements of input 0 that are reduced.
    pub input_bytes: u64,
    /// Bytes of all elements that are reduced.
    pub bytes: u64,
    /// Bytes of an element of input 0.
    pub element_bytes: u64,
    /// Bytes of the state of a lane.
    pub state_bytes: u64,
    /// Bytes of the lanes in the phase where they have the most.
    pub phase_bytes: u64,
    /// Bytes of a value of a state, in the phase whose state has the most bytes.
    pub value_bytes: u64,
    /// Bytes of a value while steps add to it: sums of small integers are narrower than their states for a block of steps.
    pub step_bytes: u64,
    /// Bytes of the widest value of a state, of all phases and groups.
    pub widest_bytes: u64,
    /// Bytes of the narrowest value of a state that folds, of all groups.
    pub narrowest_bytes: u64,
    /// The number of times that an element is read.
    pub phases: usize,
    /// True if the end of a block or a slice waits for a result.
    pub waits: bool,
    /// The time of the dependent operations from one step to the next, in additions of floats.
    pub chain: f64,
    /// True if slices are searched for an extreme, and its place in a part of the slice.
    pub searched: bool,
    /// True if slices are searched for the extreme of floats by value.
    pub compares_floats: bool,
    /// Operations on an element, over all phases.
    pub operations: u64,
    /// Operations that make the result of a slice.
    pub finishing: u64,
    /// True if an element costs little more than its load, so that visiting accumulators less often pays.
    pub is_light: bool,
    /// The number of slices.
    pub slices: u64,
    /// The element values that several visits of a slice need and may keep between them, each with its operations on an
    /// element, which no other count has; those that a load is as cheap as are left out.
    pub repeated: Vec<(Repeated, u64)>,
    /// The visits of slices after the first, by groups of reductions.
    pub later: Vec<Later>,
    /// The visit that writes the positions of slices, if there is one.
    pub written: Option<Written>,
    /// True if the first visit can write them.
    pub writes_first: bool,
    /// The computation that keeps the values of `repeated`.
    keeping: Computation,
}

impl<'p> Facts<'p> {
    /// Returns true if the checks for NaN of the maxima of so many searched slices are joined: code generation joins a few
    /// chains of maxima of floats.
    pub fn joins_maxima(&self, slices: u64, width: u32) -> bool {
        let vectors = (self.tree.lanes_present() * self.value_bytes).div_ceil(u64::from(width / 8));
        !self.compares_floats || slices * vectors <= self.machine.joined_maxima
    }

    /// Returns true if the elements of a slice do not follow one another at one distance.
    pub fn is_window(&self) -> bool {
        self.problem.elements().iter().any(|walk| walk.dims.len() > 1)
    }

    /// Operations on an element in the visits of reductions after the first, and those that make values which several
    /// visits need.
    fn reduced_later(&self) -> impl Iterator<Item = u64> {
        let later = self.later.iter().map(|later| later.operations);
        later.chain(self.repeated.iter().map(|(_, operations)| *operations))
    }

    /// The same with those of the visit that writes.
    fn later_operations(&self) -> impl Iterator<Item = u64> {
        self.reduced_later().chain(self.written.iter().map(|written| written.operations))
    }

    /// The most operations on an element in a visit of a reduction: those that interleaved slices do side by side.
    pub fn most_joined_operations(&self) -> u64 {
        self.reduced_later().fold(self.operations, u64::max)
    }

    /// The most operations on an element in a visit.
    pub fn most_operations(&self) -> u64 {
        self.later_operations().fold(self.operations, u64::max)
    }

    /// Returns true if visits of slices after the first leave the level that holds the data idle: they write nothing, or
    /// compute for longer than it takes to deliver what is read next. So do those that write as many bytes to memory as
    /// were read from it, and read slices from a cache: on an AMD EPYC (Zen 5) `l2_normalize` of 8,192 rows of 1,024 floats
    /// took 1.6 ms, and 1.1 where the next row was asked for meanwhile.
    pub fn leaves_idle(&self) -> bool {
        let operations: u64 = self.later_operations().sum();
        let writes_all = self.written.as_ref().is_some_and(|written| written.bytes >= self.bytes);
        let level = |bytes| self.machine.level(bytes);
        if writes_all && level(self.bytes) == Level::Memory && level(self.slice_bytes().saturating_mul(2)) <= Level::L2
        {
            return true;
        }
        let rate = |level: Level| self.machine.read_rate[level as usize];
        let delivering = self.machine.read_ops as f64 * rate(Level::Memory) / rate(self.machine.level(self.bytes));
        operations as f64 > delivering || operations > 0 && self.written.is_none()
    }

    /// The facts of a problem in a form, on vectors of `width` bits; `None` if only the width can be chosen, because
    /// nothing is reduced or slices are selected from.
    pub fn of(problem: &'p Problem, form: Form, width: u32) -> Option<Facts<'p>> {
        let machine = Machine::TYPICAL;
        // The operations of values that may be kept are counted apart.
        let repeated = repeated(problem, width, &machine);
        let names: Vec<String> = repeated.iter().map(|(value, _)| value.name.clone()).collect();
        let keeping = problem.computation_keeping(form, &names)?;
        let reducer = &keeping.groups().next()?.reducer;
        if matches!(reducer.method, Method::Select { .. }) || problem.elements().is_empty() || problem.slices.is_empty()
        {
            return None;
        }
        let element_bytes = problem.inputs[0].operand.dtype.bytes();
        let tree = Tree::of(&problem.walks[0], &reducer.method);
        let searched = Windows::of(problem, &keeping, &tree).is_some();
        let compares_floats = searched && reducer.method.phases()[0].identity[0].dtype().is_float();
        let phases = if searched { 1 } else { reducer.method.phases().len() };
        let operations = operations(reducer, width, &machine);
        let name = keeping.groups().next()?.name.clone();
        let present = tree.lanes_present();
        let lanes = tree.phases.iter().map(|&lanes| lanes.min(present));
        let states = reducer.method.phases().iter().map(Phase::state_bytes);
        let values = keeping.groups().flat_map(|g| g.reducer.method.phases().iter().flat_map(|p| &p.identity));
        let bytes: Vec<u64> = values.map(|value| value.dtype().bytes()).collect();
        let narrowest_bytes = bytes.iter().copied().min().unwrap_or(0);
        let widest_bytes = bytes.iter().copied().max().unwrap_or(1);
        let value_bytes = reducer.method.state_bytes() / reducer.method.state_values().max(1) as u64;
        Some(Facts {
            problem,
            machine,
            form,
            name,
            phase_bytes: lanes.zip(states).map(|(lanes, bytes)| lanes * bytes).max().unwrap_or(0),
            tree,
            loops: output_loops(problem),
            input_bytes: problem.elements_read().saturating_mul(element_bytes),
            bytes: bytes_read(problem),
            element_bytes,
            state_bytes: reducer.method.state_bytes(),
            value_bytes,
            step_bytes: step_bytes(&reducer.method, element_bytes, value_bytes),
            widest_bytes,
            narrowest_bytes,
            phases,
            waits: reducer.method.phases().len() > 1,
            chain: match searched {
                true if compares_floats => machine.compared_extreme_latency,
                true => machine.extreme_latency,
                false => phases as f64,
            },
            searched,
            compares_floats,
            operations: operations.iter().take(phases).sum(),
            finishing: finishing(reducer, width, &machine),
            is_light: operations.iter().all(|&n| n <= machine.light_ops),
            later: keeping
                .groups()
                .enumerate()
                .skip(1)
                .filter_map(|group| Later::of(problem, &keeping, group, width, &machine))
                .collect(),
            written: keeping.apply.as_ref().map(|apply| Written::of(problem, apply, width, &machine)),
            writes_first: problem.written_first(&keeping).is_some(),
            slices: problem.slices.iter().map(IndexBox::positions).fold(0, u64::saturating_add),
            repeated,
            keeping,
        })
    }

    /// The computation that keeps the element values of these names, if the facts are of it.
    pub fn into_computation(self, keep: &[String]) -> Option<Computation> {
        keep.iter().eq(self.repeated.iter().map(|(value, _)| &value.name)).then_some(self.keeping)
    }

    /// The number of vectors of `vector_bytes` bytes that hold one value for each element.
    pub fn vectors(&self, vector_bytes: f64) -> f64 {
        self.elements() * self.value_bytes as f64 / vector_bytes
    }

    /// The same while steps add to a value.
    pub fn step_vectors(&self, vector_bytes: f64) -> f64 {
        self.elements() * self.step_bytes as f64 / vector_bytes
    }

    /// The number of values of a lane's state.
    pub fn values(&self) -> f64 {
        (self.state_bytes / self.value_bytes) as f64
    }

    /// The number of reduced elements.
    pub fn elements(&self) -> f64 {
        self.input_bytes as f64 / self.element_bytes as f64
    }

    /// Returns true if a mapped input lies across the steps: a vector takes one element of each of several lines of
    /// memory, and the lines hold neighbours along the innermost dim of the other kind, reduced or parallel.
    pub fn crosses(&self) -> bool {
        let problem = self.problem;
        let (Some(steps), Some(slices)) = (problem.elements().first(), problem.slices.first()) else { return false };
        let (Some(step), Some(output)) = (steps.dims.last(), slices.dims.last()) else { return false };
        let (along, across) = if self.is_inner() { (step, output) } else { (output, step) };
        let bytes = problem.inputs.iter().map(|i| i.operand.dtype.bytes());
        let mut inputs = problem.inputs.iter().zip(bytes).zip(along.stride.inputs.iter().zip(&across.stride.inputs));
        inputs.any(|((input, bytes), (&along, &across))| {
            input.mapped
                && along.unsigned_abs().saturating_mul(bytes) >= Machine::LINE_BYTES
                && across.unsigned_abs() == 1
        })
    }

    /// Returns whether the elements of each mapped input follow one another along the innermost reduction dim.
    pub fn follows(&self) -> bool {
        let step = self.problem.elements().first().and_then(|elements| elements.dims.last());
        let mut inputs = step.iter().flat_map(|step| self.problem.inputs.iter().zip(&step.stride.inputs));
        inputs.all(|(input, &stride)| !input.mapped || stride == 1)
    }

    /// The number of inputs with elements of slices.
    pub fn mapped_inputs(&self) -> u64 {
        self.problem.inputs.iter().filter(|input| input.mapped).count() as u64
    }

    /// Bytes of the elements of a slice of input 0.
    pub fn slice_bytes(&self) -> u64 {
        self.problem.count.saturating_mul(self.element_bytes)
    }

    /// Elements of input 0 in a line of memory.
    pub fn in_line(&self) -> u64 {
        Machine::LINE_BYTES / self.element_bytes
    }

    /// The loops of a box of slices inside the innermost reduction dim.
    pub fn inside(&self, number: usize) -> &[OutputLoop] {
        let loops = &self.loops[number];
        &loops[loops.len() - self.problem.inside(&self.problem.slices[number]).len()..]
    }

    /// Returns true if slices are contiguous: the first box has no loop over outputs inside the innermost reduction
    /// dim.
    pub fn is_inner(&self) -> bool {
        self.inside(0).is_empty()
    }

    /// Bytes of the lanes of a state.
    pub fn lanes_bytes(&self) -> u64 {
        self.tree.lanes_present().saturating_mul(self.state_bytes)
    }

    /// Bytes of a block's state when it is merged: of every lane, unless lanes fold before.
    pub fn merged_bytes(&self) -> u64 {
        if self.waits { self.state_bytes } else { self.lanes_bytes() }
    }

    /// The runs of a box of slices; `None` unless slices are runs of memory far apart with runs of neighbouring outputs
    /// between them, and no block takes elements of dims around the runs.
    pub fn runs(&self, number: usize) -> Option<Runs<'_>> {
        let (problem, slices) = (self.problem, &self.problem.slices[number]);
        let (elements, grid) = (problem.elements().first()?, self.tree.grids.first()?);
        let inputs = problem.mapped();
        let rank = |d: &Dim| rank_of(d, &inputs);
        let outermost = rank(elements.dims.first()?);
        let outside = slices.dims.iter().take_while(|d| rank(d) <= outermost).count();
        let innermost = rank(slices.dims[outside..].last()?);
        let around = elements.dims.iter().take_while(|d| rank(d) < innermost).count();
        let run: u64 = elements.dims[around..].iter().map(|d| d.extent).product();
        let bytes = run.saturating_mul(self.element_bytes);
        let next = elements.dims[..around].last();
        let to_next =
            next.map_or(0, |d| inputs.iter().map(|&input| d.stride.inputs[input].unsigned_abs()).max().unwrap_or(0));
        let distance = to_next.saturating_mul(self.element_bytes);
        let transform = if grid.cut < around { Transform::Blocks } else { Transform::Runs };
        (grid.cut + 1 >= around).then(|| Runs { bytes, distance, loops: &self.loops[number][outside..], transform })
    }
}

/// The element values that may be kept between visits and are worth it, with their operations.
fn repeated(problem: &Problem, width: u32, machine: &Machine) -> Vec<(Repeated, u64)> {
    let work = Work::new(&[], |op, dtype| machine.operations(op, dtype, width));
    let values = problem.keepable(|def| work.def(def) > machine.kept_ops);
    let priced = |value: Repeated| {
        let operations = work.def(&value.def);
        (value, operations)
    };
    values.into_iter().map(priced).collect()
}

/// The bytes of all elements read, each once.
pub(super) fn bytes_read(problem: &Problem) -> u64 {
    (0..problem.inputs.len()).map(|input| input_bytes(problem, input)).fold(0, u64::saturating_add)
}

/// The bytes of an input's elements, each once: one that is the same along a dim counts once for all its positions. What
/// is not mapped counts as nothing.
fn input_bytes(problem: &Problem, input: usize) -> u64 {
    let Some(known) = problem.inputs.get(input).filter(|known| known.mapped) else { return 0 };
    let of_box = |b: &IndexBox| {
        let moving = b.dims.iter().filter(|d| d.stride.inputs[input] != 0);
        moving.map(|d| d.extent).fold(1, u64::saturating_mul)
    };
    let all = |boxes: &[IndexBox]| boxes.iter().map(of_box).fold(0, u64::saturating_add);
    let elements = all(problem.elements()).max(all(&problem.positions)).max(1);
    all(&problem.slices).saturating_mul(elements).saturating_mul(known.operand.dtype.bytes())
}

/// Bytes of a value of a state while steps add to it, as the pass `narrow` makes them.
fn step_bytes(method: &Method, element_bytes: u64, value_bytes: u64) -> u64 {
    let [phase] = method.phases() else { return value_bytes };
    let adds = matches!(phase.combine.results.as_slice(), [Expr::Op(Op::Add, dtype, _)] if dtype.is_int());
    let is_element = |e: &Expr| matches!(e, Expr::Var(Var(0), dtype) if dtype.is_int());
    let widens = matches!(phase.lift.results.as_slice(), [Expr::Op(Op::Cast, _, args)] if is_element(&args[0]));
    let narrow = narrow_bytes(element_bytes, value_bytes).filter(|_| adds && widens);
    narrow.unwrap_or(value_bytes)
}

/// The bytes in which integers of `element_bytes` bytes are summed for a block of steps before they are added to a state
/// of `state_bytes`; `None` if that would not halve it.
pub(crate) fn narrow_bytes(element_bytes: u64, state_bytes: u64) -> Option<u64> {
    (element_bytes <= 2 && 4 * element_bytes <= state_bytes).then_some(2 * element_bytes)
}
