//! The elements of an operand, index by index in row-major order.

use super::BufferError;
use crate::spec::{Operand, Reduction};
use cranefold_ir::Scalar;

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

/// What one output element is reduced from.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    operand: &'a Operand,
    bytes: &'a [u8],
    indices: Indices,
}

impl<'a> Slice<'a> {
    /// The slices of all output elements, in the output's row-major order.
    pub fn all(spec: &'a Reduction, bytes: &'a [u8]) -> impl Iterator<Item = Slice<'a>> {
        let operand = &spec.inputs()[0];
        let part = move |reduced: bool, start: i64| {
            let axes = || (0..spec.rank()).filter(move |&axis| spec.reduced()[axis] == reduced);
            let extents = axes().map(|axis| operand.shape()[axis]).collect();
            Indices::new(extents, axes().map(|axis| operand.strides()[axis]).collect(), start)
        };
        let kept = part(false, operand.origin() as i64);
        kept.map(move |start| Slice { operand, bytes, indices: part(true, start) })
    }

    /// The elements, in row-major order.
    pub fn elements(&self) -> impl Iterator<Item = Scalar> {
        self.indices.clone().map(|index| Scalar::read(self.operand.dtype(), self.bytes, index as usize))
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.indices.left
    }
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
