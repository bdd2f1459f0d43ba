//! Reduction -> problem.

use super::{Dim, Input, Operand, Problem, Work};
use crate::spec::{self, Reduction};

impl Problem {
    /// The problem of a reduction.
    pub fn of(spec: &Reduction) -> Problem {
        let work = if spec.is_identity() {
            // Over no axes what is left of a row is whether it wraps.
            let wraps = spec.reducers()[0].as_row().is_some_and(|row| row.wraps);
            let half_even = spec.rounding() == spec::Rounding::HalfEven;
            Work::Convert { saturate: spec.saturate() || !wraps, half_even }
        } else {
            Work::Reduce(spec.recipe())
        };
        let operand = |o: &spec::Operand| Operand { dtype: o.dtype(), len: o.span_elems(), origin: o.origin() as i64 };
        let mapped = spec.mapped();
        let input = |(i, o): (usize, &spec::Operand)| Input { operand: operand(o), mapped: mapped.contains(&i) };
        let takes_position = matches!(&work, Work::Reduce(recipe) if recipe.takes_position());
        let mut problem = Problem {
            work,
            count: spec.reduced_count(),
            inputs: spec.inputs().iter().enumerate().map(input).collect(),
            outputs: spec.outputs().iter().map(operand).collect(),
            position: takes_position.then_some(0),
            dims: dims(spec, takes_position),
            slice: vec![],
        };
        problem.canonical();
        problem
    }

    /// Brings the dims into canonical form.
    fn canonical(&mut self) {
        if self.outputs.iter().all(|o| o.len == 0) {
            self.dims.clear();
            return;
        }
        if self.count == 0 {
            self.dims.retain(|d| !d.reduced);
        }
        self.dims.retain(|d| d.extent > 1);
        self.flip();
        if self.applies() {
            let mut slice: Vec<Dim> = self.dims.iter().filter(|d| d.reduced).cloned().collect();
            slice.iter_mut().for_each(|d| d.position_stride = 0);
            self.sort(&mut slice);
            self.slice = merge(slice, |outer, inner| fits(outer, inner, true));
        }
        // What happens after the reduction is nothing to the order of its dims.
        for dim in self.dims.iter_mut().filter(|d| d.reduced) {
            dim.output_strides.fill(0);
            let strides = self.inputs.iter().zip(&mut dim.input_strides);
            strides.filter(|(input, _)| !input.mapped).for_each(|(_, stride)| *stride = 0);
        }
        let mut dims = std::mem::take(&mut self.dims);
        if self.is_commutative() {
            self.sort(&mut dims);
        } else {
            dims = self.in_order(dims);
        }
        self.dims = merge(dims, |outer, inner| fits(outer, inner, !outer.reduced));
        if matches!(self.work, Work::Reduce { .. }) && self.count > 0 && self.dims.iter().all(|d| !d.reduced) {
            self.dims.insert(0, self.groups_of_one());
        }
    }

    /// Walks each dim forwards in the first mapped input that moves with it.
    fn flip(&mut self) {
        let commutative = self.is_commutative();
        for dim in self.dims.iter_mut().filter(|d| commutative || !d.reduced) {
            let mut mapped = self.inputs.iter().zip(&dim.input_strides).filter(|(i, _)| i.mapped).map(|(_, &s)| s);
            if mapped.find(|&s| s != 0).is_some_and(|s| s < 0) {
                let last = dim.extent as i64 - 1;
                let inputs = self.inputs.iter_mut().map(|i| &mut i.operand.origin).zip(&mut dim.input_strides);
                let outputs = self.outputs.iter_mut().map(|o| &mut o.origin).zip(&mut dim.output_strides);
                let position = self.position.iter_mut().zip(std::iter::once(&mut dim.position_stride));
                for (origin, stride) in inputs.chain(outputs).chain(position) {
                    *origin += *stride * last;
                    *stride = -*stride;
                }
            }
        }
    }

    /// The sort is stable, so equal strides stay in order of the axes.
    fn sort(&self, dims: &mut [Dim]) {
        dims.sort_by_key(|d| self.place(d));
    }

    /// The sort key of a dim: outermost first, and stride 0 before all.
    fn place(&self, dim: &Dim) -> Vec<u64> {
        let mapped = self.inputs.iter().zip(&dim.input_strides).filter(|(input, _)| input.mapped);
        let place = |stride: i64| if stride == 0 { 0 } else { u64::MAX - stride.unsigned_abs() };
        mapped.map(|(_, &stride)| place(stride)).collect()
    }

    /// Reduction dims in the order of the axes, parallel dims around and inside of them.
    fn in_order(&self, dims: Vec<Dim>) -> Vec<Dim> {
        let (reduced, mut parallel): (Vec<Dim>, Vec<Dim>) = dims.into_iter().partition(|d| d.reduced);
        self.sort(&mut parallel);
        let innermost = reduced.last().map(|d| self.place(d));
        let (outside, inside): (Vec<Dim>, Vec<Dim>) =
            parallel.into_iter().partition(|d| innermost.as_ref().is_none_or(|place| self.place(d) < *place));
        outside.into_iter().chain(reduced).chain(inside).collect()
    }

    /// A reduction dim of one element, for reductions of groups of one.
    fn groups_of_one(&self) -> Dim {
        Dim {
            extent: 1,
            reduced: true,
            input_strides: vec![0; self.inputs.len()],
            output_strides: vec![0; self.outputs.len()],
            position_stride: 0,
        }
    }
}

fn dims(spec: &Reduction, takes_position: bool) -> Vec<Dim> {
    let outputs: Vec<Vec<i64>> = (0..spec.outputs().len()).map(|o| spec.output_stride_of_axis(o)).collect();
    let inputs: Vec<Vec<i64>> = (0..spec.inputs().len()).map(|i| spec.input_stride_of_axis(i)).collect();
    let shape = spec.inputs()[0].shape();
    // Row-major over the reduced axes.
    let mut positions = vec![0; spec.rank()];
    let mut next: i64 = 1;
    for axis in spec.axes().into_iter().rev().filter(|_| takes_position) {
        positions[axis] = next;
        next = next.saturating_mul(shape[axis] as i64);
    }
    let dim = |axis: usize| Dim {
        extent: shape[axis],
        reduced: spec.reduced()[axis],
        input_strides: inputs.iter().map(|strides| strides[axis]).collect(),
        output_strides: outputs.iter().map(|strides| strides[axis]).collect(),
        position_stride: positions[axis],
    };
    (0..spec.rank()).map(dim).collect()
}

/// Joins neighbours that walk memory as one dim.
fn merge(dims: Vec<Dim>, fits: impl Fn(&Dim, &Dim) -> bool) -> Vec<Dim> {
    let mut merged: Vec<Dim> = Vec::new();
    for dim in dims {
        match merged.last_mut() {
            Some(outer) if outer.reduced == dim.reduced && fits(outer, &dim) => {
                *outer = Dim { extent: outer.extent * dim.extent, ..dim }
            }
            _ => merged.push(dim),
        }
    }
    merged
}

/// Whether an outer and an inner dim walk all inputs as one, and all outputs where those matter.
fn fits(outer: &Dim, inner: &Dim, outputs: bool) -> bool {
    let one = |(o, i): (&i64, &i64)| i.checked_mul(inner.extent as i64) == Some(*o);
    let position = one((&outer.position_stride, &inner.position_stride));
    outer.input_strides.iter().zip(&inner.input_strides).all(one)
        && position
        && (!outputs || outer.output_strides.iter().zip(&inner.output_strides).all(one))
}
