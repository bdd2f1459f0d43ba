//! The indices at a point of the nest.

use crate::problem::Offsets;
use cranefold_ir::{Index, LoopVar};

/// The index in each buffer, and in the slice.
#[derive(Clone)]
pub(super) struct At {
    inputs: Vec<Index>,
    outputs: Vec<Index>,
    position: Index,
    element: Index,
    slice: Index,
}

impl At {
    /// The indices at a fixed place.
    pub fn of(place: &Offsets) -> At {
        let indices = |distances: &[i64]| distances.iter().map(|&d| Index::constant(d)).collect();
        At {
            inputs: indices(&place.inputs),
            outputs: indices(&place.outputs),
            position: Index::constant(place.position),
            element: Index::default(),
            slice: Index::default(),
        }
    }

    /// The same indices in the slice with this number.
    pub fn at_slice(self, number: u64) -> At {
        At { slice: Index::constant(number as i64), ..self }
    }

    /// The indices after `count` slices for each iteration of a loop over them.
    pub fn past_slices(self, count: u64, var: LoopVar) -> At {
        At { slice: self.slice.plus(var, count as i64), ..self }
    }

    /// The indices `by` steps further; a step moves each buffer's index by `step`, and the box's by `elements`.
    pub fn along(&self, step: &Offsets, elements: u64, by: &Index) -> At {
        let add = |indices: &[Index], steps: &[i64]| {
            indices.iter().zip(steps).map(|(index, &step)| index.add(&by.times(step))).collect()
        };
        At {
            inputs: add(&self.inputs, &step.inputs),
            outputs: add(&self.outputs, &step.outputs),
            position: self.position.add(&by.times(step.position)),
            element: self.element.add(&by.times(elements as i64)),
            slice: self.slice.clone(),
        }
    }

    /// The indices at the start of a box that begins after so many elements of the boxes before it.
    pub fn entering(&self, start: &Offsets, before: u64) -> At {
        At { element: Index::constant(before as i64), ..self.along(start, 0, &Index::constant(1)) }
    }

    /// The index in an input.
    pub fn input(&self, input: usize) -> Index {
        self.inputs[input].clone()
    }

    /// The index in an output.
    pub fn output(&self, output: usize) -> Index {
        self.outputs[output].clone()
    }

    /// The position in the slice.
    pub fn position(&self) -> Index {
        self.position.clone()
    }

    /// The number of the slice, row-major over the dims of each box, box after box.
    pub fn slice(&self) -> Index {
        self.slice.clone()
    }

    /// The number of the element, row-major over the dims of each box, box after box.
    pub fn element(&self) -> Index {
        self.element.clone()
    }
}
