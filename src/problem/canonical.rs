//! Makes the problem of a spec.

use super::{Dim, Distances, IndexBox, Input, Offsets, OperandSpan, Problem, SliceWalk, Work, dims_inside, rank_of};
use crate::layout::split::{Piece, split};
use crate::spec::boxes::BlockSizes;
use crate::spec::{self, Order, Spec};
use cranefold_ir::DType;
use cranefold_ir::ops::{Form, OpCall, in_memory};
use cranefold_ir::region::{Body, BodyInput, Definition, Reach, Totals, Value};
use std::cmp::Reverse;

impl Problem {
    /// The problem of a reduction.
    pub fn of(spec: &Spec) -> Problem {
        Problem::made(spec, false)
    }

    /// The problem of a reduction whose walks all follow the shape, also where the results are the same in any order:
    /// the blocks of a range of an axis then follow from the shape alone.
    pub(crate) fn of_shape(spec: &Spec) -> Problem {
        Problem::made(spec, true)
    }

    /// Counts the indices that a region reads along kept axes from `start` of the axis on, in an axis of the extent in
    /// `whole`: for the problem of a part of an array.
    pub(crate) fn begin_at(&mut self, whole: &Spec, start: impl Fn(usize) -> Option<u64>) {
        let Work::Region(body) = &self.work else { return };
        for (number, axis) in body.positions().into_iter().enumerate() {
            self.indices[number] = whole.shape()[axis];
            let index = self.inputs.len() + number;
            let at = start(axis).unwrap_or(0) as i64;
            self.slices.iter_mut().for_each(|slices| slices.start.inputs[index] += at);
        }
    }

    fn made(spec: &Spec, by_shape: bool) -> Problem {
        let unreduced = spec.unreduced();
        let spec = unreduced.as_ref().unwrap_or(spec);
        let work = if let Some(body) = spec.body() {
            let body = body.canonical();
            body.row_alone().map_or_else(|| Work::Region(body), Work::Reduce)
        } else if spec.is_identity() {
            // A reduction over no axes keeps only the row's rule of overflow: it wraps or clamps.
            let wraps = spec.reducers()[0].as_row().is_some_and(|row| row.wraps);
            let half_even = spec.rounding() == spec::Rounding::HalfEven;
            Work::Convert { saturate: spec.saturate() || !wraps, half_even }
        } else {
            let recipe = spec.recipe();
            let outputs: Vec<DType> = spec.outputs().iter().map(spec::Operand::dtype).collect();
            let region = recipe.region(body_inputs(spec), &outputs);
            let is_row = recipe.apply.is_none() && recipe.applies();
            assert!(region.is_some() || !is_row, "a row that writes each position is a region: {spec}");
            region.map_or(Work::Reduce(recipe), Work::Region)
        };
        let operand = |o: &spec::Operand| OperandSpan { dtype: o.dtype(), len: o.span_elems() };
        let mapped = match &work {
            Work::Region(body) => body.mapped(),
            Work::Convert { .. } | Work::Reduce(_) => spec.mapped(),
        };
        let input = |(i, o): (usize, &spec::Operand)| Input { operand: operand(o), mapped: mapped.contains(&i) };
        let takes_position = match &work {
            Work::Convert { .. } => false,
            Work::Reduce(recipe) => recipe.takes_position(),
            Work::Region(body) => body.takes_position(),
        };
        let indices = match &work {
            Work::Region(body) => body.positions().into_iter().map(|axis| spec.shape()[axis]).collect(),
            Work::Convert { .. } | Work::Reduce(_) => vec![],
        };
        let mut problem = Problem {
            work,
            count: spec.reduced_count(),
            inputs: spec.inputs().iter().enumerate().map(input).collect(),
            outputs: spec.outputs().iter().map(operand).collect(),
            indices,
            values: vec![],
            totals: None,
            takes_position,
            only: vec![],
            slices: vec![],
            walks: vec![],
            positions: vec![],
            padding: vec![],
        };
        if spec.outputs().iter().any(|o| o.span_elems() > 0) {
            problem.split(spec, by_shape);
        }
        if let Work::Region(body) = &problem.work
            && let Some(totals) = body.totals()
        {
            let slices = spec.axes_kept().into_iter().map(|axis| spec.shape()[axis]).fold(1, u64::saturating_mul);
            let value = |input: &BodyInput| OperandSpan { dtype: in_memory(input.dtype), len: slices };
            problem.values = totals.body.inputs[..totals.values.len()].iter().map(value).collect();
            problem.totals = Some(Box::new(problem.of_totals(spec, &totals)));
        }
        problem
    }

    /// The problem of the totals: the values of the slices are its first inputs, in row-major order.
    fn of_totals(&self, spec: &Spec, totals: &Totals) -> Problem {
        let strides = kept_strides(spec);
        let inputs = self.values.iter().map(|v| Input { operand: v.clone(), mapped: true });
        let scalars = totals.scalars.iter().map(|&i| Input { mapped: false, ..self.inputs[i].clone() });
        let inputs: Vec<Input> = inputs.chain(scalars).collect();
        let place = |axis: Option<usize>| Offsets {
            inputs: (0..inputs.len())
                .map(|i| axis.filter(|_| i < self.values.len()).map_or(0, |a| strides[a]))
                .collect(),
            outputs: totals
                .outputs
                .iter()
                .map(|&o| match axis {
                    None => spec.outputs()[o].origin() as i64,
                    Some(axis) => {
                        spec.output_axis(o, axis).map_or(0, |own| spec.outputs()[o].placement().along(own, 1))
                    }
                })
                .collect(),
            position: 0,
        };
        let dim = |axis: usize, outputs: bool| {
            let mut stride = place(Some(axis));
            if !outputs {
                stride.outputs.fill(0);
            }
            Dim { extent: spec.shape()[axis], stride }
        };
        let (over, kept): (Vec<usize>, Vec<usize>) =
            spec.axes_kept().into_iter().partition(|a| totals.over.contains(a));
        let count = over.iter().map(|&axis| spec.shape()[axis]).fold(1, u64::saturating_mul);
        let mut start = place(None);
        let slices = IndexBox { start: start.clone(), dims: kept.iter().map(|&axis| dim(axis, true)).collect() };
        start.outputs.fill(0);
        start.inputs.fill(0);
        // Neighbours among the kept axes are one dim, and an axis between two separates them.
        let takes_position = totals.body.takes_position();
        let mut elements = IndexBox { start, dims: over.iter().map(|&axis| dim(axis, false)).collect() };
        if takes_position {
            let mut inside = 1;
            for dim in elements.dims.iter_mut().rev() {
                dim.stride.position = inside;
                inside *= dim.extent as i64;
            }
        }
        let beside = kept.iter().rev().take_while(|&&axis| over.last().is_none_or(|&last| axis > last));
        let beside = beside.map(|&axis| spec.shape()[axis]).fold(1, u64::saturating_mul);
        let reductions = (0..totals.reductions()).collect();
        let runs = runs(spec.axes_kept().into_iter().map(|axis| (spec.shape()[axis], totals.over.contains(&axis))));
        let is_written = totals.outputs.iter().any(|&o| spec.outputs()[o].span_elems() > 0);
        let walk = (is_written && count > 0).then(|| {
            let elements = split_into(merged(sorted(elements, None)), &runs);
            let elements = vec![elements.expect("values of slices lie in their order")];
            SliceWalk { elements, gathered: None, beside, reductions }
        });
        Problem {
            work: Work::Region(totals.body.clone()),
            count,
            outputs: totals.outputs.iter().map(|&o| self.outputs[o].clone()).collect(),
            inputs,
            indices: vec![],
            values: vec![],
            totals: None,
            takes_position,
            only: vec![],
            slices: if is_written { vec![merged(sorted(slices, None))] } else { vec![] },
            walks: walk.into_iter().collect(),
            positions: vec![],
            padding: vec![],
        }
    }

    /// Finds the boxes of slices, elements and positions.
    fn split(&mut self, spec: &Spec, by_shape: bool) {
        let axes = Axes::of(spec, &self.work, by_shape);
        let mapped = axes.by_size((0..self.inputs.len()).filter(|&i| self.inputs[i].mapped).collect());
        match &self.work {
            Work::Convert { .. } => {}
            Work::Reduce(_) => self.walks = vec![self.walk(&axes, &mapped, &mapped, self.takes_position)],
            Work::Region(body) => self.walks = self.walks_of(body, &axes),
        }
        self.walks.retain(|walk| !walk.elements.is_empty());
        let slices = axes.boxes(false, true, axes.origin()).into_iter().map(forget_position).collect();
        self.slices = canonical(slices, Some(&mapped));
        if self.applies() {
            let positions = axes.boxes(true, true, axes.nowhere()).into_iter().map(forget_position).collect();
            self.positions = canonical(positions, Some(&mapped));
        }
        if self.slices.is_empty() {
            self.walks.clear();
            self.positions.clear();
        }
        self.padding = super::padding::of(spec);
        self.shift();
    }

    /// The walks of a region's reductions: one for all that have the same tree.
    fn walks_of(&self, body: &Body, axes: &Axes) -> Vec<SliceWalk> {
        let mut walks: Vec<(Vec<usize>, SliceWalk)> = vec![];
        let takes = |d: &Definition| match &d.value {
            Value::Reduction(reduction) if reduction.over.is_none() => Some(reduction.call.takes_position()),
            _ => None,
        };
        let takes_position = body.definitions.iter().filter_map(takes);
        for (reduction, (reads, takes_position)) in
            body.reads_of_reductions().into_iter().zip(takes_position).enumerate()
        {
            let elements = reads.iter().copied().filter(|&i| axes.moves(i)).collect();
            let walk = self.walk(axes, &axes.by_size(elements), &reads, takes_position);
            match walks.iter_mut().find_map(|known| shared(known, &reads, &walk)) {
                Some(known) => known.reductions.push(reduction),
                None => walks.push((reads, SliceWalk { reductions: vec![reduction], ..walk })),
            }
        }
        walks.into_iter().map(|(_, walk)| walk).collect()
    }

    /// The walk of a reduction that reads these inputs, and whose dims are sorted by some of them.
    fn walk(&self, axes: &Axes, inputs: &[usize], reads: &[usize], takes_position: bool) -> SliceWalk {
        let boxes = axes.boxes(true, false, axes.nowhere());
        let is_cut = boxes.len() > 1;
        let elements: Vec<IndexBox> = boxes.into_iter().map(|b| of_elements(b, reads)).collect();
        if axes.spec.order() == Order::Logical && (axes.by_shape || !self.has_any_order()) {
            return self.logical_walk(axes, elements, takes_position);
        }
        let commutative = self.is_commutative();
        let positions = takes_position || (is_cut && !commutative);
        let elements = if positions { elements } else { elements.into_iter().map(forget_position).collect() };
        let mut elements = canonical(elements, commutative.then_some(inputs));
        let gathered = (!commutative && elements.len() > 1).then(|| vec![self.count]);
        if !takes_position && gathered.is_none() {
            // Adjacent boxes that have become one need no order.
            elements = elements.into_iter().map(|b| merged(forget_position(b))).collect();
        }
        // The boxes that outputs cut or merge must not change the order.
        let by_inputs = axes.boxes(false, false, axes.origin()).into_iter().next();
        let slices = by_inputs.map(|b| sorted(b, Some(inputs)));
        let inside = slices.as_ref().map_or(&[][..], |slices| dims_inside(&slices.dims, &elements, inputs));
        let beside = inside.iter().map(|d| d.extent).fold(1, u64::saturating_mul);
        SliceWalk { beside, elements, gathered, reductions: vec![] }
    }

    /// Returns true if the results are the same in whatever order elements are combined, so that a walk may follow memory.
    fn has_any_order(&self) -> bool {
        let Work::Reduce(recipe) = &self.work else { return false };
        let is_own = recipe.calls.iter().any(|call| matches!(call, OpCall::Own(_)));
        let computation = recipe.computation(&self.types(), Form::Plain, &|_, _, _| true);
        !is_own && computation.is_ok_and(|c| c.groups().all(|group| group.reducer.method.has_any_order()))
    }

    /// The walk in the order of the shape: each run of neighbouring reduced axes is one dim, whatever lies between them
    /// in memory. Elements that no single stride leads through are gathered.
    fn logical_walk(&self, axes: &Axes, elements: Vec<IndexBox>, takes_position: bool) -> SliceWalk {
        let beside = axes.beside();
        let shape = axes.spec.shape().iter().zip(axes.spec.reduced());
        let runs = runs(shape.map(|(&extent, &reduced)| (extent, reduced)));
        if let [region] = elements.as_slice() {
            let region = if takes_position { region.clone() } else { forget_position(region.clone()) };
            let direct = merged(sorted(region, None));
            if direct.dims.iter().map(|d| d.extent).eq(runs.iter().copied()) {
                return SliceWalk { elements: vec![direct], gathered: None, beside, reductions: vec![] };
            }
            if let Some(split) = split_into(direct, &runs) {
                return SliceWalk { elements: vec![split], gathered: None, beside, reductions: vec![] };
            }
        }
        SliceWalk { elements: canonical(elements, None), gathered: Some(runs), beside, reductions: vec![] }
    }

    /// Moves the start of the first boxes of elements and of positions into the start of the slices, so that a dim that
    /// was walked backwards leaves no trace.
    fn shift(&mut self) {
        let elements = self.elements().first().map(|region| region.start.clone());
        let positions = self.positions.first().map(|region| region.start.clone());
        let Some(mut shift) = positions.or_else(|| elements.clone()) else { return };
        let is_mapped = |i: usize| self.inputs.get(i).is_none_or(|input| input.mapped);
        let mapped = |(i, to): (usize, &mut i64)| match &elements {
            Some(start) if is_mapped(i) => *to = start.inputs[i],
            _ => {}
        };
        shift.inputs.iter_mut().enumerate().for_each(mapped);
        shift.position = 0;
        self.slices.iter_mut().for_each(|region| region.start.add(&shift, 1));
        self.positions.iter_mut().for_each(|region| region.start.add(&shift, -1));
        let mapped: Vec<bool> = (0..shift.inputs.len()).map(is_mapped).collect();
        for region in self.walks.iter_mut().flat_map(|walk| &mut walk.elements) {
            let inputs = mapped.iter().zip(&shift.inputs).zip(&mut region.start.inputs);
            inputs.filter(|((mapped, _), _)| **mapped).for_each(|((_, shift), start)| *start -= shift);
        }
    }
}

/// The inputs of a spec of ops as those of a region. Elements of input 0 are elements even of slices of one.
fn body_inputs(spec: &Spec) -> Vec<BodyInput> {
    let one = |(i, o): (usize, &spec::Operand)| BodyInput {
        name: format!("x{i}"),
        dtype: o.dtype(),
        reach: if i == 0 { Reach::Element } else { spec.input_reach(i) },
    };
    spec.inputs().iter().enumerate().map(one).collect()
}

/// The known walk that serves another one too: all strides are the same in the inputs that both read, and one of them
/// reads all inputs of the other. The known one reads them all then. Positions are the same, or one takes none.
fn shared<'w>(known: &'w mut (Vec<usize>, SliceWalk), reads: &[usize], walk: &SliceWalk) -> Option<&'w mut SliceWalk> {
    let (of_known, own) = known;
    let has_positions = |walk: &SliceWalk| walk.elements.iter().any(|b| *b != forget_position(b.clone()));
    let (of_own, of_walk) = (has_positions(own), has_positions(walk));
    let within = |walk: &SliceWalk, reads: &[usize]| {
        let one = |region: &IndexBox| match of_own && of_walk {
            true => of_elements(region.clone(), reads),
            false => forget_position(of_elements(region.clone(), reads)),
        };
        walk.elements.iter().map(one).collect::<Vec<_>>()
    };
    let alike = (own.beside, &own.gathered) == (walk.beside, &walk.gathered);
    let (all, few) = if reads.len() > of_known.len() { (reads, &of_known[..]) } else { (&of_known[..], reads) };
    let nested = few.iter().all(|i| all.contains(i));
    if !alike || !nested || within(own, few) != within(walk, few) {
        return None;
    }
    let (mut elements, positions) = match reads.len() > of_known.len() {
        true => (walk.elements.clone(), if of_walk { &walk.elements } else { &own.elements }),
        false => (own.elements.clone(), if of_own { &own.elements } else { &walk.elements }),
    };
    for (to, from) in elements.iter_mut().zip(positions) {
        to.start.position = from.start.position;
        to.dims.iter_mut().zip(&from.dims).for_each(|(to, from)| to.stride.position = from.stride.position);
    }
    own.elements = elements;
    if reads.len() > of_known.len() {
        *of_known = reads.to_vec();
    }
    Some(own)
}

/// The box without its outputs and without inputs that the reduction does not read, which do not affect the order of
/// its dims.
pub(super) fn of_elements(mut region: IndexBox, read: &[usize]) -> IndexBox {
    let places = std::iter::once(&mut region.start).chain(region.dims.iter_mut().map(|d| &mut d.stride));
    for place in places {
        place.outputs.fill(0);
        let inputs = place.inputs.iter_mut().enumerate();
        inputs.filter(|(i, _)| !read.contains(i)).for_each(|(_, distance)| *distance = 0);
    }
    region
}

/// The boxes with their dims in canonical form, sorted only if there are inputs to sort by. Boxes that walk memory as
/// one become one.
fn canonical(boxes: Vec<IndexBox>, sort_by: Option<&[usize]>) -> Vec<IndexBox> {
    let mut boxes: Vec<IndexBox> = boxes.into_iter().map(|region| merged(sorted(region, sort_by))).collect();
    while let Some((first, whole)) = (1..boxes.len()).find_map(|n| Some((n - 1, boxes[n - 1].with(&boxes[n])?))) {
        boxes[first] = merged(whole);
        boxes.remove(first + 1);
    }
    boxes
}

/// The box without dims of one position; with inputs to sort by, each dim is walked forwards in the first of them that
/// moves with it.
///
/// The sort is stable, so equal strides stay in order of the axes.
fn sorted(mut region: IndexBox, by: Option<&[usize]>) -> IndexBox {
    region.dims.retain(|d| d.extent > 1);
    let Some(by) = by else { return region };
    for dim in &mut region.dims {
        if by.iter().map(|&i| dim.stride.inputs[i]).find(|&s| s != 0).is_some_and(|s| s < 0) {
            region.start.add(&dim.stride, dim.extent as i64 - 1);
            dim.stride.negate();
        }
    }
    region.dims.sort_by_key(|d| rank_of(d, by));
    region
}

/// The extents above 1 of the runs of neighbouring reduced axes; an axis that is kept separates two, whatever its
/// extent.
fn runs(axes: impl Iterator<Item = (u64, bool)>) -> Vec<u64> {
    let (mut runs, mut in_run) = (vec![], false);
    for (extent, reduced) in axes {
        match runs.last_mut() {
            Some(run) if reduced && in_run => *run *= extent,
            _ if reduced => runs.push(extent),
            _ => {}
        }
        in_run = reduced;
    }
    runs.into_iter().filter(|&extent| extent > 1).collect()
}

/// The box with its dims split into these extents, outermost first; `None` if no dim ends where one of them does.
fn split_into(region: IndexBox, extents: &[u64]) -> Option<IndexBox> {
    let mut dims = vec![];
    let mut wanted = extents.iter().rev().copied();
    for dim in region.dims.iter().rev() {
        let (mut left, mut stride) = (dim.extent, dim.stride.clone());
        while left > 1 {
            let extent = wanted.next().filter(|&extent| left.is_multiple_of(extent))?;
            dims.push(Dim { extent, stride: stride.clone() });
            stride = stride.times(extent as i64);
            left /= extent;
        }
    }
    dims.reverse();
    wanted.next().is_none().then_some(IndexBox { dims, ..region })
}

/// The axes of a spec, each cut where layout blocks end.
struct Axes<'a> {
    spec: &'a Spec,
    sizes: BlockSizes,
    /// The distance between two indices of each axis, in the row-major order of the reduced axes.
    positions: Vec<i64>,
    /// The axes whose indices are read.
    indices: Vec<usize>,
    /// The strides in the values of the slice that totals reduce, and their number.
    values: (Vec<i64>, usize),
    is_region: bool,
    /// True if walks follow the shape even where any order will do.
    by_shape: bool,
}

impl<'a> Axes<'a> {
    fn of(spec: &'a Spec, work: &Work, by_shape: bool) -> Axes<'a> {
        let shape = spec.shape();
        let mut positions = vec![0; spec.rank()];
        let mut next: i64 = 1;
        for axis in spec.axes().into_iter().rev() {
            positions[axis] = next;
            next = next.saturating_mul(shape[axis] as i64);
        }
        let (indices, totals) = match work {
            Work::Region(body) => (body.positions(), body.values_of_totals().len()),
            Work::Convert { .. } | Work::Reduce(_) => (vec![], 0),
        };
        let values = (kept_strides(spec), totals);
        Axes {
            spec,
            sizes: BlockSizes::of(spec),
            positions,
            indices,
            values,
            is_region: matches!(work, Work::Region(_)),
            by_shape,
        }
    }

    /// The inputs of a region with more elements first; others in order.
    fn by_size(&self, mut inputs: Vec<usize>) -> Vec<usize> {
        let shape = self.spec.shape();
        let moves = |i: usize| (0..shape.len()).filter(move |&axis| self.along(axis, 1).inputs[i] != 0);
        if self.is_region {
            inputs.sort_by_key(|&i| Reverse(moves(i).map(|axis| shape[axis]).fold(1, u64::saturating_mul)));
        }
        inputs
    }

    /// Returns true if an input or an index moves along a reduced axis.
    fn moves(&self, input: usize) -> bool {
        self.spec.axes().into_iter().any(|axis| self.along(axis, 1).inputs[input] != 0)
    }

    /// The number of slices side by side after the last reduced axis.
    fn beside(&self) -> u64 {
        let axes = self.spec.shape().iter().zip(self.spec.reduced()).rev();
        axes.take_while(|(_, reduced)| !**reduced).map(|(&extent, _)| extent).fold(1, u64::saturating_mul)
    }

    /// Offsets of 0 everywhere.
    fn nowhere(&self) -> Offsets {
        let (inputs, outputs) = (self.spec.inputs().len(), self.spec.outputs().len());
        let (inputs, outputs) = (inputs + self.indices.len(), outputs + self.values.1);
        Offsets::zero(inputs, outputs)
    }

    /// The place of the element whose indices are all 0.
    fn origin(&self) -> Offsets {
        let origins = |operands: &[spec::Operand], further: usize| {
            operands.iter().map(|o| o.origin() as i64).chain(std::iter::repeat_n(0, further)).collect()
        };
        let (inputs, outputs) = (self.spec.inputs(), self.spec.outputs());
        Offsets { inputs: origins(inputs, self.indices.len()), outputs: origins(outputs, self.values.1), position: 0 }
    }

    /// The distance from index 0 to index `i` of an axis.
    fn along(&self, axis: usize, i: u64) -> Offsets {
        let in_operand = |o: &spec::Operand, own: Option<usize>| own.map_or(0, |own| o.placement().along(own, i));
        let (inputs, outputs) = (self.spec.inputs().iter().enumerate(), self.spec.outputs().iter().enumerate());
        Offsets {
            inputs: inputs
                .map(|(n, o)| in_operand(o, self.spec.input_axis(n, axis)))
                .chain(self.indices.iter().map(|&index| if index == axis { i as i64 } else { 0 }))
                .collect(),
            outputs: outputs
                .map(|(n, o)| in_operand(o, self.spec.output_axis(n, axis)))
                .chain(std::iter::repeat_n(self.values.0[axis] * i as i64, self.values.1))
                .collect(),
            position: self.positions[axis].saturating_mul(i as i64),
        }
    }

    /// The boxes over the reduced axes or the other ones, cut by the layout blocks of mapped inputs or of all operands.
    fn boxes(&self, reduced: bool, all: bool, start: Offsets) -> Vec<IndexBox> {
        let axes = (0..self.spec.rank()).filter(|&axis| self.spec.reduced()[axis] == reduced);
        axes.fold(vec![IndexBox { start, dims: vec![] }], |boxes, axis| {
            let sizes = if all { &self.sizes.all } else { &self.sizes.mapped };
            let pieces = split(0, self.spec.shape()[axis], &sizes[axis]);
            let with = |region: &IndexBox, piece: &Piece| {
                let mut region = region.clone();
                region.start.add(&self.along(axis, piece.start), 1);
                let dim = |&(extent, by): &(u64, u64)| Dim { extent, stride: self.along(axis, by) };
                region.dims.extend(piece.digits.iter().map(dim));
                region
            };
            boxes.iter().flat_map(|region| pieces.iter().map(move |piece| with(region, piece))).collect()
        })
    }
}

/// The strides of the kept axes in their row-major order; 0 of reduced axes.
fn kept_strides(spec: &Spec) -> Vec<i64> {
    let mut strides = vec![0; spec.rank()];
    let mut next = 1i64;
    for axis in (0..spec.rank()).rev().filter(|&axis| !spec.reduced()[axis]) {
        strides[axis] = next;
        next = next.saturating_mul(spec.shape()[axis] as i64);
    }
    strides
}

impl Offsets {
    /// No distance in the buffers of so many operands.
    pub(crate) fn zero(inputs: usize, outputs: usize) -> Offsets {
        Offsets { inputs: Distances::from_elem(0, inputs), outputs: Distances::from_elem(0, outputs), position: 0 }
    }

    /// Adds `times` times the other offsets.
    fn add(&mut self, other: &Offsets, times: i64) {
        let inputs = self.inputs.iter_mut().zip(&other.inputs);
        let outputs = self.outputs.iter_mut().zip(&other.outputs);
        let position = std::iter::once((&mut self.position, &other.position));
        inputs.chain(outputs).chain(position).for_each(|(to, by)| *to = to.wrapping_add(by.wrapping_mul(times)));
    }

    /// The offsets `times` as far.
    fn times(&self, times: i64) -> Offsets {
        let mut all = Offsets::zero(self.inputs.len(), self.outputs.len());
        all.add(self, times);
        all
    }

    fn negate(&mut self) {
        let all = self.inputs.iter_mut().chain(&mut self.outputs).chain(std::iter::once(&mut self.position));
        all.for_each(|distance| *distance = distance.wrapping_neg());
    }

    /// Returns true if this stride of an outer dim is `extent` times the stride of the inner dim.
    fn continues(&self, inner: &Offsets, extent: u64) -> bool {
        let one = |(outer, inner): (&i64, &i64)| inner.checked_mul(extent as i64) == Some(*outer);
        let inputs = self.inputs.iter().zip(&inner.inputs);
        inputs.chain(self.outputs.iter().zip(&inner.outputs)).all(one) && one((&self.position, &inner.position))
    }
}

impl IndexBox {
    /// This box joined with the next one; `None` unless the next one continues it along one dim.
    fn with(&self, next: &IndexBox) -> Option<IndexBox> {
        (0..self.dims.len()).find_map(|d| {
            let (this, mut start) = (&self.dims[d], self.start.clone());
            start.add(&this.stride, this.extent as i64);
            let mut dims = next.dims.clone();
            // A dim of one position has been dropped from the box.
            if dims.len() + 1 == self.dims.len() {
                dims.insert(d, Dim { extent: 1, ..this.clone() });
            }
            let further = dims.get(d)?.extent;
            let mut whole = self.clone();
            whole.dims[d].extent = further;
            let fits = whole.dims == dims && start == next.start;
            whole.dims[d].extent = this.extent + further;
            fits.then_some(whole)
        })
    }
}

/// The region without positions, which do not distinguish slices and outputs.
pub(super) fn forget_position(mut region: IndexBox) -> IndexBox {
    region.start.position = 0;
    region.dims.iter_mut().for_each(|d| d.stride.position = 0);
    region
}

/// Joins neighbours that walk memory as one dim.
pub(super) fn merged(region: IndexBox) -> IndexBox {
    let mut dims: Vec<Dim> = Vec::new();
    for dim in region.dims {
        match dims.last_mut() {
            Some(outer) if outer.stride.continues(&dim.stride, dim.extent) => {
                *outer = Dim { extent: outer.extent * dim.extent, ..dim }
            }
            _ => dims.push(dim),
        }
    }
    IndexBox { dims, ..region }
}
