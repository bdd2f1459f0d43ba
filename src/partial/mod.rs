//! Partial results: states of parts of a reduction, which other processes and machines merge and finish.
//!
//! A slice is reduced in blocks (see [`tree`](crate::problem::tree)), whose states merge pairwise. The state of the
//! blocks `a..b` of all slices is the states of the largest aligned subtrees in that range, in order, at most two of
//! each size ([`subtrees`]). Two adjacent ranges combine: their subtrees are put in a row, and the halves of a subtree
//! merge. The result depends on the range alone: in whatever brackets a row of ranges is combined, the bytes of the
//! state are the same. The state of all blocks, finished, is the bits of [`Kernel::run`](crate::Kernel::run).
//!
//! ```text
//! 0..3 is (0 1) 2        3..6 is 3 (4 5)        6..7 is 6
//! 0..6 is ((0 1) (2 3)) (4 5)        3..7 is 3 (4 5) 6
//! 0..7 is ((0 1) (2 3)) (4 5) 6      finished: ((0 1) (2 3)) ((4 5) 6)
//! ```
//!
//! # Ranges that end inside blocks
//! Under `order=logical` a shard is also any range of the first reduced axis of extent above 1, with all other reduced axes
//! whole ([`Partial::shard_of`]), of any box of the kept axes ([`Compiler::partial_of`]). Its state counts positions of that
//! axis and the reduced ones right after it. The elements of a block that the range begins or ends inside travel raw:
//!
//! ```text
//! block      0         1         2         3
//!        |---------|---------|---------|------|
//! shards |-----|-----------------|------------|
//!         tail  head  1     tail  head  3
//! ```
//!
//! Combining neighbours completes blocks and reduces them. Again the bytes of a state depend on its range alone.
//!
//! Reductions of one pass may have several trees, as a sum and an argmax do, whose blocks differ. They have shards of elements
//! alone. Their state has a header of positions and then, for each tree, the used bytes of a state of its reductions.
//!
//! # Four functions
//!
//! | | |
//! | --- | --- |
//! | [`Partial::identity`] | writes states of no block, which combine with any |
//! | [`Shard::partial`] | writes the state of a range, from the part of the inputs that it reads |
//! | [`Partial::combine`] | combines each state with one of an adjacent range, as an associative `MPI_Op` does |
//! | [`Partial::finish`] | writes the outputs of states of all blocks |
//!
//! All but the second work on several states at once, which lie one after the other. An empty range is allowed wherever
//! another range is. Merging and finishing are code of wide vectors like a kernel's.
//!
//! # The bytes of a state
//! A state has a fixed number of bytes, [`Partial::state_bytes`], of which [`Partial::used_bytes`] are used: a header,
//! an entry for each subtree of its range, in order, and raw elements. It has no pointers, needs no alignment, and may be
//! sent unchanged. Its numbers are little-endian on all machines; a machine of the other order has no partial results.
//!
//! | byte | contents |
//! | --- | --- |
//! | 0 | u64: a mark |
//! | 8 | u32: the version of this layout |
//! | 12 | u32: [`RESULTS_VERSION`](crate::results::RESULTS_VERSION) |
//! | 16 | u128: a hash of the problem; specs of one problem have the same states |
//! | 32 | u64: the first unit: a position if raw elements may follow, else a block |
//! | 40 | u64: the number of units |
//! | 48 | zeros |
//! | 64 | the entries |
//!
//! An entry holds an array for each value of a state, ordered by slice and then by lane. Where reductions of one tree
//! keep their states apart, as a sum and a variance do, those of one follow those of the other. Every array begins at a
//! multiple of 64 bytes, with zeros before the next. [`StateLayout`] gives the places, and prints. Every NaN in an entry
//! is the canonical one, so that states are the same on all machines. After the entries the head's elements follow, then
//! the tail's: each input that the range reads as a row-major array of the fragment, from a multiple of 64 bytes on.
//!
//! The header and the length are checked whenever a state is read. A state with other numbers in its entries gives
//! other results, and nothing worse.

mod call;
mod codes;
mod nests;
mod ragged;
mod ranges;
mod shard;
mod state;

pub use ranges::subtrees;
pub use shard::{InputSpan, Shard};
pub use state::{StateLayout, StateValue, fingerprint_of, poison};

use crate::compiler::Compiler;
use crate::error::Error;
use crate::kernel::Routine;
use crate::keyed::hash;
use crate::pipeline;
use crate::problem::blocks::{Stored, StoredGroup, trees};
use crate::problem::tree::Tree;
use crate::problem::{Problem, Work};
use crate::schedule::{self, Schedule};
use crate::spec::{Order, Spec};
use codes::Codes;
use cranefold_ir::Nest;
use cranefold_ir::ops::{Form, Group, Method, Reducer, Source};
use nests::Keep;
use ragged::{Along, Units};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The partial results of a reduction: the states of ranges of its blocks. Cheap to clone; threads may share it.
///
/// ```
/// use cranefold::{Compiler, Input, Output, Spec};
///
/// let spec: Spec = "mean f32[1000000]".parse()?;
/// let partial = Compiler::host()?.partial(&spec)?;
/// let x: Vec<f32> = (0..1_000_000).map(|i| i as f32).collect();
///
/// // Each of these may be another process, which has its part of x.
/// let mut states = vec![];
/// for blocks in partial.shards(3) {
///     let shard = partial.shard(blocks)?;
///     let elements = shard.inputs()[0].elems.clone();
///     let part = &x[elements.start as usize..elements.end as usize];
///     let mut state = vec![0; partial.state_bytes()];
///     shard.partial(&[Input::from(part)], &mut state)?;
///     states.push(state);
/// }
///
/// let mut all = vec![0; partial.state_bytes()];
/// partial.identity(&mut all, 1)?;
/// for state in &states {
///     partial.combine(state, &mut all, 1)?;
/// }
/// let mut mean = [0.0f32];
/// partial.finish(&all, &[], &mut [Output::from(&mut mean[..])], 1)?;
///
/// let mut whole = [0.0f32];
/// Compiler::host()?.compile(&spec)?.run_one(&x, &mut whole)?;
/// assert_eq!(mean[0].to_bits(), whole[0].to_bits());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Partial {
    inner: Arc<Inner>,
}

struct Inner {
    /// The elements of the array along each kept axis that the slices are of.
    kept: Vec<Range<u64>>,
    layout: StateLayout,
    /// The partial results of the reductions of each tree, if there are several trees.
    trees: Vec<Partial>,
    shared: Arc<Shared>,
}

/// The part that boxes of equal extents share.
struct Shared {
    /// The spec of the array.
    whole: Spec,
    /// The hash of the problem of these extents, and of that of the array.
    hash: u128,
    /// The spec of a box.
    spec: Spec,
    /// The axis that shards are ranges of, or the reason why there are none.
    along: Result<Along, String>,
    maker: Maker,
    codes: Codes,
    /// The numbers of the inputs that blocks read.
    reads: Vec<usize>,
    /// True if a longer array has its slices further apart.
    are_apart: bool,
    /// The routine that merges two states into the older one.
    merge_into_older: Routine,
    merge_into_newer: Routine,
    finish: Routine,
    /// The values that the finish takes, each by the number of its tree and its own among the tree's.
    finish_values: Vec<(usize, usize)>,
    /// The numbers of the inputs that the finish reads.
    finish_inputs: Vec<usize>,
}

impl fmt::Debug for Partial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Partial({})", self.inner.shared.spec)
    }
}

/// The most ranges that blocks are divided into.
pub const MOST_RANGES: usize = 1 << 20;

/// The compiler of the nests of partial results, and the reduction that they belong to.
struct Maker {
    compiler: Compiler,
    problem: Arc<Problem>,
    name: String,
    schedule: Schedule,
}

impl Maker {
    /// The code of a naive nest by a schedule, compiled or from the compiler's cache.
    fn code(&self, naive: Nest, schedule: &Schedule) -> Result<Routine, Error> {
        self.compiler.routine(&self.problem, naive, schedule)
    }

    /// The nests that merge states into the older and into the newer one, and that finish them: a name, the naive nest
    /// and its schedule.
    fn nests(&self, layout: &StateLayout) -> [(&'static str, Nest, Schedule); 3] {
        let (problem, name) = (&self.problem, &self.name);
        let nothing = || Nest { name: name.into(), buffers: vec![], defs: vec![], body: vec![] };
        // Of several trees each merges its own states, and all are finished together.
        let stored = Stored::of(problem, Form::Plain).filter(|_| layout.trees.is_empty());
        let merge =
            |keep| stored.as_ref().map_or_else(nothing, |stored| nests::merge(stored, name, layout.slices, keep));
        let finish = match problem.only.is_empty() {
            true => nests::finish(problem, name, layout.blocks > 0 || !layout.trees.is_empty()),
            false => nothing(),
        };
        [
            ("merge into older", merge(Keep::Older), self.plain()),
            ("merge into newer", merge(Keep::Newer), self.plain()),
            ("finish", finish, self.schedule.clone()),
        ]
    }

    /// A naive nest and the legal one as text, under headings.
    fn dump(&self, what: &str, naive: Nest, schedule: &Schedule) -> Result<String, Error> {
        let routine = self.code(naive.clone(), schedule)?;
        let legal = pipeline::legal(routine.decided())?;
        Ok(format!("== {what}: nest ==\n{naive}\n== {what}: legal ==\n{legal}\n"))
    }

    /// The schedule of loops over elements.
    fn plain(&self) -> Schedule {
        Schedule { width: self.schedule.width, ..Schedule::default() }
    }
}

impl Compiler {
    /// The partial results of a reduction. The code that merges and finishes them is compiled here; the code for a
    /// range of blocks is compiled by [`Partial::shard`]. The cache keeps both.
    ///
    /// # Errors
    /// [`Error::NotInBlocks`] unless slices are reduced in blocks to one result each: if the reduction writes every
    /// position of a slice, selects from its elements in order, copies, or combines them in an order other than
    /// memory's; if it has stages or totals, or its reductions have several trees without `order=logical`;
    /// [`Error::StateTooLarge`]; [`Error::Target`] if the target is not this machine.
    pub fn partial(&self, spec: &Spec) -> Result<Partial, Error> {
        let kept: Vec<Range<u64>> = spec.axes_kept().into_iter().map(|axis| 0..spec.shape()[axis]).collect();
        let by_shape = spec.order() == Order::Logical && ragged::is_dense(spec);
        let problem = if by_shape { Problem::of_shape(spec) } else { Problem::of(spec) };
        self.partial_on(spec, spec.clone(), problem, kept)
    }

    /// The partial results of a box of the kept axes of a reduction, given as a range of each in order: of the part of an
    /// array that one chunk of them has. Operands are row-major arrays of the box; the spec of the partial results,
    /// [`Partial::spec`], has their shapes. The results are the bits of the whole reduction's at these places.
    ///
    /// ```
    /// use cranefold::{Compiler, Input, Output, Spec};
    ///
    /// let spec: Spec = "sum f32[1000,6] axes=[0] order=logical".parse()?;
    /// let partial = Compiler::host()?.partial_of(&spec, &[2..5])?;
    /// assert_eq!(partial.spec().to_string(), "sum f32[1000,3] axes=[0] order=logical");
    ///
    /// let chunk = vec![0.5f32; 1000 * 3];
    /// let mut state = vec![0; partial.state_bytes()];
    /// partial.shard_of(&[0..1000, 2..5])?.partial(&[Input::from(&chunk)], &mut state)?;
    /// let mut sums = [0.0f32; 3];
    /// partial.finish(&state, &[], &mut [Output::from(&mut sums)], 1)?;
    /// assert_eq!(sums, [500.0; 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`partial`](Compiler::partial); [`Error::NotInShards`] unless the spec has `order=logical` and operands without
    /// layouts; [`Error::NoShard`] if a range is empty or not within its axis, or there is not one for each kept axis.
    pub fn partial_of(&self, spec: &Spec, kept: &[Range<u64>]) -> Result<Partial, Error> {
        let axes = spec.axes_kept();
        if kept.len() != axes.len() {
            let why = format!("{} ranges are given for the {} kept axes", kept.len(), axes.len());
            return Err(Error::NotInShards { why });
        }
        if spec.order() != Order::Logical || !ragged::is_dense(spec) {
            let why = "it takes `order=logical`, and operands without layouts".into();
            return Err(Error::NotInShards { why });
        }
        for (&axis, given) in axes.iter().zip(kept) {
            let extent = spec.shape()[axis];
            if given.is_empty() || given.end > extent {
                let why = "a range of a kept axis has elements, all within the axis".into();
                return Err(Error::NoShard { axis, given: given.clone(), extent, why });
            }
        }
        if axes.iter().zip(kept).all(|(&axis, range)| *range == (0..spec.shape()[axis])) {
            return self.partial(spec);
        }
        let shape_of = |input: usize| {
            let mut shape = spec.inputs()[input].shape().to_vec();
            for (&axis, range) in axes.iter().zip(kept) {
                if let Some(own) = spec.input_axis(input, axis) {
                    shape[own] = range.end - range.start;
                }
            }
            shape
        };
        let part = spec.to_builder().reshape(shape_of).build()?;
        let mut problem = Problem::of_shape(&part);
        // The tree is that of all slices.
        let beside = spec.shape().iter().zip(spec.reduced()).rev().take_while(|(_, reduced)| !**reduced);
        let beside = beside.map(|(&extent, _)| extent).fold(1, u64::saturating_mul);
        problem.walks.iter_mut().for_each(|walk| walk.beside = beside);
        problem.begin_at(spec, |axis| axes.iter().position(|&kept| kept == axis).map(|n| kept[n].start));
        self.partial_on(spec, part, problem, kept.to_vec())
    }

    /// The partial results of a box of an array.
    fn partial_on(&self, whole: &Spec, spec: Spec, problem: Problem, kept: Vec<Range<u64>>) -> Result<Partial, Error> {
        let refused = |reason: &str| Error::Target { target: self.target().to_string(), reason: reason.into() };
        if !self.target().is_host() {
            return Err(refused("partial results are made on this machine alone"));
        }
        if cfg!(target_endian = "big") {
            return Err(refused("the bytes of states are little-endian"));
        }
        let problem = Arc::new(problem);
        let trees = trees_of(&problem).map_err(|why| Error::NotInBlocks { why })?;
        let parts = self.parts(whole, &spec, &problem, &kept, &trees)?;
        let tree = trees.first().map(|(tree, _)| tree).filter(|_| parts.is_empty());
        let blocks = tree.map_or(0, Tree::blocks);
        let along = match parts.first() {
            Some(part) => {
                let along = part.along().map(Along::of_positions).map_err(|error| error.to_string());
                along.map(|along| (along.clone(), Units { all: along.all(), block: 1 }))
            }
            None => ragged::along(&spec, &problem, tree),
        };
        let (units, raw) = match &along {
            Ok((along, units)) if units.block > 1 => (*units, along.raw(&problem)),
            Ok((_, units)) => (*units, vec![]),
            Err(_) => (Units { all: blocks, block: 1 }, vec![]),
        };
        let of_array = if spec == *whole { String::new() } else { Problem::of_shape(whole).to_string() };
        let hash = hash(format_args!("{problem}{of_array} in {} of {}", units.all, units.block));
        let stored = Stored::of(&problem, Form::Plain);
        let fingerprint = fingerprint(hash, whole, &kept);
        let layout = match parts.is_empty() {
            true => StateLayout::of(&problem, stored.as_ref(), blocks, (units, raw), fingerprint)?,
            false => StateLayout::of_trees(parts.iter().map(|part| part.layout().clone()), units, fingerprint)?,
        };
        let finish_values = finish_values(stored.as_ref(), &trees);
        let schedule = schedule::choose_in(&problem, Form::Plain, self.vectors().bits);
        let maker = Maker { compiler: self.clone(), name: pipeline::name(&problem), problem, schedule };
        let [older, newer, finish] = maker.nests(&layout);
        let code = |(_, naive, schedule): (_, _, Schedule)| maker.code(naive, &schedule);
        let (merge_into_older, merge_into_newer, finish) = (code(older)?, code(newer)?, code(finish)?);
        let computation = maker.problem.computation();
        let read = |source: Source| if let Source::Input(input) = source { Some(input) } else { None };
        let mut finish_inputs: Vec<usize> = computation.iter().flat_map(|c| c.reads()).filter_map(read).collect();
        finish_inputs.sort_unstable();
        finish_inputs.dedup();
        // The numbers of indices follow those of inputs.
        finish_inputs.retain(|&input| input < spec.inputs().len());
        let along = along.map(|(along, _)| along);
        let reads = maker.problem.reduced_inputs();
        let are_apart = along.as_ref().is_ok_and(|along| along.raw(&maker.problem).iter().any(|raw| raw.is_apart()));
        let shared = Shared {
            whole: whole.clone(),
            hash,
            spec,
            along,
            maker,
            codes: Codes::default(),
            reads,
            are_apart,
            merge_into_older,
            merge_into_newer,
            finish,
            finish_values,
            finish_inputs,
        };
        Ok(Partial { inner: Arc::new(Inner { kept, layout, trees: parts, shared: Arc::new(shared) }) })
    }

    /// The partial results of the reductions of each tree; none if there is one tree.
    fn parts(
        &self,
        whole: &Spec,
        spec: &Spec,
        problem: &Problem,
        kept: &[Range<u64>],
        trees: &[(Tree, Vec<usize>)],
    ) -> Result<Vec<Partial>, Error> {
        let computation = problem.computation().filter(|_| !trees.is_empty());
        let groups: Vec<&Group> = computation.iter().flat_map(|computation| computation.groups()).collect();
        if trees.len() <= 1 && groups.iter().all(|group| group.walk == 0) {
            return Ok(vec![]);
        }
        if spec.order() != Order::Logical || !ragged::is_dense(spec) {
            let why =
                "reduces slices by several trees: ask for each op alone, or for `order=logical` of arrays in order";
            return Err(Error::NotInBlocks { why });
        }
        let part = |(_, of): &(Tree, Vec<usize>)| {
            let only = of.iter().map(|&group| groups[group].results[0]).collect();
            self.partial_on(whole, spec.clone(), problem.of_groups(only, groups[of[0]].walk), kept.to_vec())
        };
        trees.iter().map(part).collect()
    }
}

/// The values that a finish takes, in the order of the groups: each by the number of its tree and its own among the tree's.
fn finish_values(stored: Option<&Stored>, trees: &[(Tree, Vec<usize>)]) -> Vec<(usize, usize)> {
    let mut ends = vec![0; trees.len()];
    let of_group = |(number, group): (usize, &StoredGroup)| {
        let tree = trees.iter().position(|(_, of)| of.contains(&number)).expect("the tree of each group");
        let first = ends[tree];
        ends[tree] += group.types().len();
        (first..ends[tree]).map(|value| (tree, value)).collect::<Vec<_>>()
    };
    stored.iter().flat_map(|stored| stored.groups.iter().enumerate()).flat_map(of_group).collect()
}

/// The fingerprint of a box's states: the hash of the problems, and the box if it is not all of the array.
fn fingerprint(of_problems: u128, whole: &Spec, kept: &[Range<u64>]) -> u128 {
    let is_all = whole.axes_kept().iter().zip(kept).all(|(&axis, range)| *range == (0..whole.shape()[axis]));
    if is_all { of_problems } else { hash(format_args!("{of_problems:032x} of {kept:?}")) }
}

/// The trees that slices are reduced by, each with the numbers of its groups, none without elements; or the reason why slices
/// are not reduced in blocks.
fn trees_of(problem: &Problem) -> Result<Vec<(Tree, Vec<usize>)>, &'static str> {
    if let Work::Convert { .. } = problem.work {
        return Err("copies elements");
    }
    if problem.applies() {
        return Err("writes an output at each position of a slice");
    }
    if problem.totals.is_some() {
        return Err("reduces the values of all slices to totals");
    }
    let computation = problem.computation().expect("not a conversion");
    if let Some(Group { reducer: Reducer { method: Method::Select { .. }, .. }, .. }) = computation.only_group() {
        return Err("selects from all elements of a slice in order");
    }
    if problem.gathers() {
        return Err("combines elements in another order than that of memory");
    }
    if problem.elements().is_empty() {
        return Ok(vec![]);
    }
    trees(problem, &computation)
        .ok_or("reduces slices in several stages: reduce in one, finish, and give the results to the next as an input")
}

impl Partial {
    /// The spec.
    pub fn spec(&self) -> &Spec {
        &self.inner.shared.spec
    }

    /// The partial results of another box of the same array. A box of equal extents shares the code, and takes well below a
    /// microsecond; another, and one of a region that reads an index, is as from [`partial_of`](Compiler::partial_of).
    ///
    /// ```
    /// use cranefold::{Compiler, Input, Output, Spec};
    ///
    /// let compiler = Compiler::host()?;
    /// let spec: Spec = "sum f32[1000,6] axes=[0] order=logical".parse()?;
    /// let left = compiler.partial_of(&spec, &[0..3])?;
    /// let right = left.of_box(&[3..6])?;
    /// assert_eq!(right.layout(), compiler.partial_of(&spec, &[3..6])?.layout());
    /// assert_ne!(right.layout().fingerprint, left.layout().fingerprint);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`partial_of`](Compiler::partial_of).
    pub fn of_box(&self, kept: &[Range<u64>]) -> Result<Partial, Error> {
        let Inner { kept: own, layout, trees, shared } = &*self.inner;
        let axes = shared.whole.axes_kept();
        let is_alike = |((&axis, own), given): ((&usize, &Range<u64>), &Range<u64>)| {
            let extent = |range: &Range<u64>| range.end.saturating_sub(range.start);
            extent(own) == extent(given) && given.end <= shared.whole.shape()[axis]
        };
        let are_alike = kept.len() == own.len() && axes.iter().zip(own).zip(kept).all(is_alike);
        if !are_alike || !shared.maker.problem.indices.is_empty() {
            return shared.maker.compiler.partial_of(&shared.whole, kept);
        }
        let fingerprint = fingerprint(shared.hash, &shared.whole, kept);
        let mut layout = layout.clone();
        layout.fingerprint = fingerprint;
        let trees = trees.iter().map(|tree| tree.of_box(kept)).collect::<Result<Vec<_>, Error>>()?;
        layout.trees = trees.iter().map(|tree| tree.layout().clone()).collect();
        Ok(Partial { inner: Arc::new(Inner { kept: kept.to_vec(), layout, trees, shared: shared.clone() }) })
    }

    /// The nests that merge and finish states, before the first and after the last pass: text that reads back. They are
    /// made again, in the same way as for the code.
    ///
    /// ```
    /// use cranefold::{Compiler, Spec};
    ///
    /// let spec: Spec = "sum f32[1000000]".parse()?;
    /// let text = Compiler::host()?.partial(&spec)?.dump()?;
    /// assert!(text.starts_with("== merge into older: nest ==\nnest \"sum f32 (1000000) -> f32, merge\" {"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Internal`] if a nest cannot be made again: a bug of ours.
    pub fn dump(&self) -> Result<String, Error> {
        let (layout, maker) = (&self.inner.layout, &self.inner.shared.maker);
        // Of several trees each merges its own states, and all are finished together.
        let (has_trees, is_of_tree) = (!layout.trees.is_empty(), !maker.problem.only.is_empty());
        let is_own = |what: &str| if what == "finish" { !is_of_tree } else { !has_trees };
        let nests = maker.nests(layout).into_iter().filter(|&(what, _, _)| is_own(what));
        let trees = self.inner.trees.iter().map(Partial::dump);
        trees.chain(nests.map(|(what, naive, schedule)| maker.dump(what, naive, &schedule))).collect()
    }

    /// The number of blocks of each slice; 0 if slices have no elements, or reductions have several trees, each with its own
    /// blocks.
    pub fn blocks(&self) -> u64 {
        self.inner.layout.blocks
    }

    /// The axis that shards of elements are ranges of: the first reduced axis of extent above 1.
    ///
    /// # Errors
    /// [`Error::NotInShards`] if there are none, as without `order=logical`.
    pub fn axis(&self) -> Result<usize, Error> {
        Ok(self.along()?.axis)
    }

    fn along(&self) -> Result<&Along, Error> {
        self.inner.shared.along.as_ref().map_err(|why| Error::NotInShards { why: why.clone() })
    }

    /// The bytes of a state.
    pub fn state_bytes(&self) -> usize {
        self.inner.layout.bytes
    }

    /// The places of a state's fields and values.
    pub fn layout(&self) -> &StateLayout {
        &self.inner.layout
    }

    /// The numbers in the spec of the inputs that [`finish`](Partial::finish) takes: scalars, and inputs of `then`.
    pub fn finish_inputs(&self) -> &[usize] {
        &self.inner.shared.finish_inputs
    }

    /// All blocks in `count` ranges, nearly even, and at most [`MOST_RANGES`]; some are empty if there are fewer blocks
    /// than ranges.
    ///
    /// ```
    /// use cranefold::{Compiler, Spec};
    ///
    /// let spec: Spec = "sum f32[1000000]".parse()?;
    /// let partial = Compiler::host()?.partial(&spec)?;
    /// assert_eq!(partial.blocks(), 245);
    /// assert_eq!(partial.shards(4), [0..60, 60..122, 122..184, 184..245]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shards(&self, count: usize) -> Vec<Range<u64>> {
        ranges::shards(self.blocks(), count.min(MOST_RANGES) as u64).collect()
    }

    /// A range of blocks in pieces that read at most `most_bytes` bytes each, or are one block: aligned subtrees, most
    /// of which run the same code.
    ///
    /// # Errors
    /// [`Error::NoBlocks`] if the range exceeds the blocks, [`Error::TooManyPieces`] if there would be more pieces than
    /// [`MOST_RANGES`].
    pub fn pieces(&self, blocks: Range<u64>, most_bytes: u64) -> Result<Vec<Range<u64>>, Error> {
        self.check(&blocks)?;
        let mut pieces: Vec<Range<u64>> = vec![];
        let mut start = blocks.start;
        // A size that fits at one place may fit at the next.
        let mut size = 1;
        while let Some(first) = subtrees(start..blocks.end).next() {
            let most = first.end - first.start;
            let fits = |size: u64| self.bytes_of(start..start + size) <= most_bytes;
            size = size.min(most);
            while size > 1 && !fits(size) {
                size /= 2;
            }
            while size < most && fits(2 * size) {
                size *= 2;
            }
            if pieces.len() == MOST_RANGES {
                return Err(Error::TooManyPieces { most_bytes, limit: MOST_RANGES });
            }
            pieces.push(start..start + size);
            start += size;
        }
        Ok(pieces)
    }

    fn check(&self, blocks: &Range<u64>) -> Result<(), Error> {
        let all = self.blocks();
        if !self.inner.trees.is_empty() {
            let why = "reduces slices by several trees, whose blocks differ: ask for shards of elements, by `shard_of`";
            return Err(Error::NotInBlocks { why });
        }
        match blocks.start <= blocks.end && blocks.end <= all {
            true => Ok(()),
            false => Err(Error::NoBlocks { given: blocks.clone(), blocks: all }),
        }
    }
}
