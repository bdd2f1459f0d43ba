//! Reduction -> problem.

use super::{Dim, Operand, Problem, Rounding, Work};
use crate::spec::{self, Reduction};
use cranefold_ir::DType;

impl Problem {
    /// The problem of a reduction.
    pub fn of(spec: &Reduction) -> Problem {
        let truth = spec.inputs()[0].dtype() == DType::Bool;
        // Over no axes what is left of a row is whether it wraps.
        let saturate = spec.saturate() || (spec.is_identity() && !spec.row().wraps);
        let rounding = Rounding { saturate, half_even: spec.rounding() == spec::Rounding::HalfEven };
        let work = if spec.is_identity() {
            Work::Convert { truth, rounding }
        } else {
            Work::Reduce {
                op: spec.row().name,
                params: spec.params().iter().map(|p| p.to_bits()).collect(),
                truth,
                accumulator: spec.accumulator().unwrap_or(DType::F32),
                rounding,
            }
        };
        let operand = |o: &spec::Operand| Operand {
            dtype: if o.dtype() == DType::Bool { DType::U8 } else { o.dtype() },
            len: o.span_elems(),
            origin: o.origin() as i64,
        };
        let mut problem = Problem {
            work,
            count: spec.reduced_count(),
            inputs: spec.inputs().iter().map(operand).collect(),
            outputs: spec.outputs().iter().map(operand).collect(),
            dims: dims(spec),
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
        // The sort is stable, so equal strides stay in order of the axes.
        self.dims.sort_by_key(|d| d.input_strides.iter().map(|s| place(*s)).collect::<Vec<_>>());
        self.merge();
        if matches!(self.work, Work::Reduce { .. }) && self.count > 0 && self.dims.iter().all(|d| !d.reduced) {
            self.dims.insert(0, self.groups_of_one());
        }
    }

    /// Walks each dim forwards in the first input that moves with it.
    fn flip(&mut self) {
        for dim in &mut self.dims {
            if dim.input_strides.iter().find(|&&s| s != 0).is_some_and(|&s| s < 0) {
                let last = dim.extent as i64 - 1;
                let inputs = self.inputs.iter_mut().zip(&mut dim.input_strides);
                let outputs = self.outputs.iter_mut().zip(&mut dim.output_strides);
                for (operand, stride) in inputs.chain(outputs) {
                    operand.origin += *stride * last;
                    *stride = -*stride;
                }
            }
        }
    }

    /// Joins neighbours that walk memory as one dim.
    fn merge(&mut self) {
        let mut merged: Vec<Dim> = Vec::new();
        for dim in self.dims.drain(..) {
            match merged.last_mut() {
                Some(outer) if fits(outer, &dim) => *outer = Dim { extent: outer.extent * dim.extent, ..dim },
                _ => merged.push(dim),
            }
        }
        self.dims = merged;
    }

    /// A reduction dim of one element, for reductions of groups of one.
    fn groups_of_one(&self) -> Dim {
        Dim {
            extent: 1,
            reduced: true,
            input_strides: vec![0; self.inputs.len()],
            output_strides: vec![0; self.outputs.len()],
        }
    }
}

fn dims(spec: &Reduction) -> Vec<Dim> {
    let outputs: Vec<Vec<i64>> = (0..spec.outputs().len()).map(|o| spec.output_stride_of_axis(o)).collect();
    let dim = |axis: usize| Dim {
        extent: spec.inputs()[0].shape()[axis],
        reduced: spec.reduced()[axis],
        input_strides: spec.inputs().iter().map(|i| i.strides()[axis]).collect(),
        output_strides: outputs.iter().map(|strides| strides[axis]).collect(),
    };
    (0..spec.rank()).map(dim).collect()
}

/// The sort key of a stride: outermost first, and stride 0 before all.
fn place(stride: i64) -> u64 {
    match stride {
        0 => 0,
        s => u64::MAX - s.unsigned_abs(),
    }
}

/// Whether an outer and an inner dim walk all operands as one.
fn fits(outer: &Dim, inner: &Dim) -> bool {
    let one = |(o, i): (&i64, &i64)| i.checked_mul(inner.extent as i64) == Some(*o);
    let inputs = outer.input_strides.iter().zip(&inner.input_strides).all(one);
    let outputs = outer.output_strides.iter().zip(&inner.output_strides).all(one);
    outer.reduced == inner.reduced && inputs && (outer.reduced || outputs)
}
