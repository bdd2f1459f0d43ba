//! Makes the problem of a spec.

use super::{Dim, IndexBox, Input, Offsets, OperandSpan, Problem, Work};
use crate::layout::split::{Piece, split};
use crate::spec::boxes::BlockSizes;
use crate::spec::{self, Spec};

impl Problem {
    /// The problem of a reduction.
    pub fn of(spec: &Spec) -> Problem {
        let work = if spec.is_identity() {
            // A reduction over no axes keeps only the row's rule of overflow: it wraps or clamps.
            let wraps = spec.reducers()[0].as_row().is_some_and(|row| row.wraps);
            let half_even = spec.rounding() == spec::Rounding::HalfEven;
            Work::Convert { saturate: spec.saturate() || !wraps, half_even }
        } else {
            Work::Reduce(spec.recipe())
        };
        let operand = |o: &spec::Operand| OperandSpan { dtype: o.dtype(), len: o.span_elems() };
        let mapped = spec.mapped();
        let input = |(i, o): (usize, &spec::Operand)| Input { operand: operand(o), mapped: mapped.contains(&i) };
        let takes_position = matches!(&work, Work::Reduce(recipe) if recipe.takes_position());
        let mut problem = Problem {
            work,
            count: spec.reduced_count(),
            inputs: spec.inputs().iter().enumerate().map(input).collect(),
            outputs: spec.outputs().iter().map(operand).collect(),
            takes_position,
            slices: vec![],
            elements: vec![],
            beside: 1,
            positions: vec![],
            padding: vec![],
        };
        if spec.outputs().iter().any(|o| o.span_elems() > 0) {
            problem.split(spec);
        }
        problem
    }

    /// Finds the boxes of slices, elements and positions.
    fn split(&mut self, spec: &Spec) {
        let axes = Axes::of(spec);
        if matches!(self.work, Work::Reduce(_)) {
            let boxes = axes.boxes(true, false, axes.nowhere());
            let positions = self.takes_position || (boxes.len() > 1 && !self.is_commutative());
            let elements = boxes.into_iter().map(|region| self.of_elements(region, positions)).collect();
            self.elements = self.canonical(elements, self.is_commutative());
            if !self.takes_position && !self.gathers() {
                // Adjacent boxes that have become one need no order.
                let elements = std::mem::take(&mut self.elements).into_iter();
                self.elements = elements.map(|region| merged(forget_position(region))).collect();
            }
        }
        let slices = axes.boxes(false, true, axes.origin()).into_iter().map(forget_position).collect();
        self.slices = self.canonical(slices, true);
        if !self.elements.is_empty() {
            // The boxes that outputs cut or merge must not change the order.
            let by_inputs = axes.boxes(false, false, axes.origin());
            let sorted = by_inputs.into_iter().next().map(|region| self.sorted(region, true));
            let inside = sorted.as_ref().map_or(&[][..], |slices| self.inside(slices));
            self.beside = inside.iter().map(|d| d.extent).fold(1, u64::saturating_mul);
        }
        if self.applies() {
            let positions = axes.boxes(true, true, axes.nowhere()).into_iter().map(forget_position).collect();
            self.positions = self.canonical(positions, true);
        }
        self.padding = super::padding::of(spec);
        self.shift();
    }

    /// Moves the start of the first boxes of elements and of positions into the start of the slices, so that a dim that
    /// was walked backwards leaves no trace.
    fn shift(&mut self) {
        let elements = self.elements.first().map(|region| region.start.clone());
        let positions = self.positions.first().map(|region| region.start.clone());
        let Some(mut shift) = positions.or_else(|| elements.clone()) else { return };
        let mapped = |(i, to): (usize, &mut i64)| match &elements {
            Some(start) if self.inputs[i].mapped => *to = start.inputs[i],
            _ => {}
        };
        shift.inputs.iter_mut().enumerate().for_each(mapped);
        shift.position = 0;
        self.slices.iter_mut().for_each(|region| region.start.add(&shift, 1));
        self.positions.iter_mut().for_each(|region| region.start.add(&shift, -1));
        for region in &mut self.elements {
            let inputs = self.inputs.iter().zip(&shift.inputs).zip(&mut region.start.inputs);
            inputs.filter(|((input, _), _)| input.mapped).for_each(|((_, shift), start)| *start -= shift);
        }
    }

    /// The region without its outputs and inputs read later, which do not affect the order of a reduction's dims.
    fn of_elements(&self, mut region: IndexBox, positions: bool) -> IndexBox {
        let places = std::iter::once(&mut region.start).chain(region.dims.iter_mut().map(|d| &mut d.stride));
        for place in places {
            place.outputs.fill(0);
            let inputs = self.inputs.iter().zip(&mut place.inputs);
            inputs.filter(|(input, _)| !input.mapped).for_each(|(_, distance)| *distance = 0);
            place.position *= i64::from(positions);
        }
        region
    }

    /// The boxes with their dims in canonical form, sorted only if `may_sort`. Boxes that walk memory as one become
    /// one.
    fn canonical(&self, boxes: Vec<IndexBox>, may_sort: bool) -> Vec<IndexBox> {
        let mut boxes: Vec<IndexBox> = boxes.into_iter().map(|region| merged(self.sorted(region, may_sort))).collect();
        while let Some((first, whole)) = (1..boxes.len()).find_map(|n| Some((n - 1, boxes[n - 1].with(&boxes[n])?))) {
            boxes[first] = merged(whole);
            boxes.remove(first + 1);
        }
        boxes
    }

    /// The box without dims of one position, each dim walked forwards in the first mapped input that moves with it.
    ///
    /// The sort is stable, so equal strides stay in order of the axes.
    fn sorted(&self, mut region: IndexBox, may_sort: bool) -> IndexBox {
        region.dims.retain(|d| d.extent > 1);
        if may_sort {
            for dim in &mut region.dims {
                let mut mapped = self.inputs.iter().zip(&dim.stride.inputs).filter(|(i, _)| i.mapped).map(|(_, &s)| s);
                if mapped.find(|&s| s != 0).is_some_and(|s| s < 0) {
                    region.start.add(&dim.stride, dim.extent as i64 - 1);
                    dim.stride.negate();
                }
            }
            region.dims.sort_by_key(|d| self.rank_of(d));
        }
        region
    }
}

/// The axes of a spec, each cut where layout blocks end.
struct Axes<'a> {
    spec: &'a Spec,
    sizes: BlockSizes,
    /// The distance between two indices of each axis, in the row-major order of the reduced axes.
    positions: Vec<i64>,
}

impl<'a> Axes<'a> {
    fn of(spec: &'a Spec) -> Axes<'a> {
        let shape = spec.inputs()[0].shape();
        let mut positions = vec![0; spec.rank()];
        let mut next: i64 = 1;
        for axis in spec.axes().into_iter().rev() {
            positions[axis] = next;
            next = next.saturating_mul(shape[axis] as i64);
        }
        Axes { spec, sizes: BlockSizes::of(spec), positions }
    }

    /// Offsets of 0 everywhere.
    fn nowhere(&self) -> Offsets {
        let (inputs, outputs) = (self.spec.inputs(), self.spec.outputs());
        Offsets { inputs: vec![0; inputs.len()], outputs: vec![0; outputs.len()], position: 0 }
    }

    /// The place of the element whose indices are all 0.
    fn origin(&self) -> Offsets {
        let origins = |operands: &[spec::Operand]| operands.iter().map(|o| o.origin() as i64).collect();
        Offsets { inputs: origins(self.spec.inputs()), outputs: origins(self.spec.outputs()), position: 0 }
    }

    /// The distance from index 0 to index `i` of an axis.
    fn along(&self, axis: usize, i: u64) -> Offsets {
        let in_operand = |o: &spec::Operand, own: Option<usize>| own.map_or(0, |own| o.placement().along(own, i));
        let inputs = self.spec.inputs().iter().enumerate();
        Offsets {
            inputs: inputs.map(|(n, o)| in_operand(o, self.spec.input_axis(n, axis))).collect(),
            outputs: self.spec.outputs().iter().map(|o| in_operand(o, self.spec.output_axis(axis))).collect(),
            position: self.positions[axis].saturating_mul(i as i64),
        }
    }

    /// The boxes over the reduced axes or the other ones, cut by the layout blocks of mapped inputs or of all operands.
    fn boxes(&self, reduced: bool, all: bool, start: Offsets) -> Vec<IndexBox> {
        let axes = (0..self.spec.rank()).filter(|&axis| self.spec.reduced()[axis] == reduced);
        axes.fold(vec![IndexBox { start, dims: vec![] }], |boxes, axis| {
            let sizes = if all { &self.sizes.all } else { &self.sizes.mapped };
            let pieces = split(0, self.spec.inputs()[0].shape()[axis], &sizes[axis]);
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

impl Offsets {
    /// Adds `times` times the other offsets.
    fn add(&mut self, other: &Offsets, times: i64) {
        let inputs = self.inputs.iter_mut().zip(&other.inputs);
        let outputs = self.outputs.iter_mut().zip(&other.outputs);
        let position = std::iter::once((&mut self.position, &other.position));
        inputs.chain(outputs).chain(position).for_each(|(to, by)| *to = to.wrapping_add(by.wrapping_mul(times)));
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
fn forget_position(mut region: IndexBox) -> IndexBox {
    region.start.position = 0;
    region.dims.iter_mut().for_each(|d| d.stride.position = 0);
    region
}

/// Joins neighbours that walk memory as one dim.
fn merged(region: IndexBox) -> IndexBox {
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
