//! The elements of an operand, index by index in row-major order.

use super::BufferError;
use crate::spec::{Operand, Reduction};
use cranefold_ir::{DType, Scalar};

/// Buffer indices of all elements of a box, the last axis fastest.
#[derive(Clone, Debug)]
pub struct Indices {
    extents: Vec<u64>,
    strides: Vec<i64>,
    at: Vec<u64>,
    next: i64,
    left: u64,
}

impl Indices {
    fn new(extents: Vec<u64>, strides: Vec<i64>, start: i64) -> Indices {
        let left = extents.iter().fold(1, |product: u64, &extent| product.saturating_mul(extent));
        Indices { at: vec![0; extents.len()], extents, strides, next: start, left }
    }

    /// All elements of an operand.
    pub fn of(operand: &Operand) -> Indices {
        Indices::new(operand.shape().into(), operand.strides().into(), operand.origin() as i64)
    }

    /// The elements of an operand that meet those of a shape to which it broadcasts, right-aligned.
    pub fn broadcast(operand: &Operand, shape: &[u64]) -> Indices {
        Indices::new(shape.into(), broadcast_strides(operand, shape), operand.origin() as i64)
    }
}

/// Elements between neighbours along each axis of a shape to which the operand broadcasts.
fn broadcast_strides(operand: &Operand, shape: &[u64]) -> Vec<i64> {
    let missing = shape.len() - operand.shape().len();
    let own = operand.shape().iter().zip(operand.strides());
    let own = own.zip(&shape[missing..]).map(|((&own, &stride), &to)| if own == to { stride } else { 0 });
    std::iter::repeat_n(0, missing).chain(own).collect()
}

impl Iterator for Indices {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let index = self.next;
        for axis in (0..self.extents.len()).rev() {
            self.at[axis] += 1;
            if self.at[axis] < self.extents[axis] {
                self.next = self.next.wrapping_add(self.strides[axis]);
                break;
            }
            self.at[axis] = 0;
            // What the axis had advanced by; the last step past the end may wrap and come back.
            self.next = self.next.wrapping_sub(self.strides[axis].wrapping_mul(self.extents[axis] as i64 - 1));
        }
        Some(index)
    }
}

/// An operand's elements that one output element is reduced from, or that meet those of input 0.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    operand: &'a Operand,
    bytes: &'a [u8],
    indices: Indices,
}

impl<'a> Slice<'a> {
    /// The slices of all output elements, in the row-major order of the axes that are kept.
    pub fn all(spec: &'a Reduction, operand: &'a Operand, bytes: &'a [u8]) -> impl Iterator<Item = Slice<'a>> {
        let shape = spec.inputs()[0].shape();
        let [kept, reduced] = parts(spec, &broadcast_strides(operand, shape), operand.origin() as i64);
        kept.map(move |start| Slice { operand, bytes, indices: Indices { next: start, ..reduced.clone() } })
    }

    /// The elements, in row-major order.
    pub fn elements(&self) -> impl Iterator<Item = Scalar> {
        self.indices.clone().map(|index| Scalar::read(self.operand.dtype(), self.bytes, index as usize))
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.indices.left
    }

    /// Their type.
    pub fn dtype(&self) -> DType {
        self.operand.dtype()
    }
}

/// For each slice, the places of its elements in the row-major order of input 0's shape.
pub fn places(spec: &Reduction) -> impl Iterator<Item = Indices> {
    let shape = spec.inputs()[0].shape();
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as i64;
    }
    let [kept, reduced] = parts(spec, &strides, 0);
    kept.map(move |start| Indices { next: start, ..reduced.clone() })
}

/// The walks over the axes of input 0 that are kept and over those that are reduced.
fn parts(spec: &Reduction, strides: &[i64], start: i64) -> [Indices; 2] {
    [false, true].map(|reduced| {
        let axes = || (0..spec.rank()).filter(move |&axis| spec.reduced()[axis] == reduced);
        let extents = axes().map(|axis| spec.inputs()[0].shape()[axis]).collect();
        Indices::new(extents, axes().map(|axis| strides[axis]).collect(), start)
    })
}

/// Checks that the buffers are as many and at least as long as the operands.
pub fn check_buffers(
    kind: &'static str,
    operands: &[Operand],
    lengths: impl ExactSizeIterator<Item = usize>,
) -> Result<(), BufferError> {
    if lengths.len() != operands.len() {
        return Err(BufferError::Count { kind, given: lengths.len(), expected: operands.len() });
    }
    for (index, (operand, given)) in operands.iter().zip(lengths).enumerate() {
        let needed = operand.span_bytes();
        if (given as u64) < needed {
            return Err(BufferError::TooShort { kind, index, given, needed });
        }
    }
    Ok(())
}
