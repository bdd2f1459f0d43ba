//! The elements of an operand, index by index in row-major order.

use super::ReferenceError;
use cranefold_ir::{DType, Scalar};
use cranefold_spec::layout::Placement;
use cranefold_spec::{Operand, Spec};

/// Buffer indices of all elements of a box, the last axis fastest.
#[derive(Clone, Debug)]
pub struct Indices<'a> {
    extents: Vec<u64>,
    ways: Vec<Way<'a>>,
    at: Vec<u64>,
    next: i64,
    left: u64,
}

/// The stride of an axis in a buffer.
#[derive(Clone, Copy, Debug)]
enum Way<'a> {
    /// None: the operand is broadcast.
    Still,
    /// The distances along an operand's axis, which may be blocked.
    Along(&'a Placement, usize),
    /// A constant stride.
    By(i64),
}

impl Way<'_> {
    /// The distance from index 0 to index `i`.
    fn to(self, i: u64) -> i64 {
        match self {
            Way::Still => 0,
            Way::Along(placement, axis) => placement.along(axis, i),
            Way::By(stride) => stride.wrapping_mul(i as i64),
        }
    }
}

impl<'a> Indices<'a> {
    fn new(extents: Vec<u64>, ways: Vec<Way<'a>>, start: i64) -> Indices<'a> {
        let left = extents.iter().fold(1, |product: u64, &extent| product.saturating_mul(extent));
        Indices { at: vec![0; extents.len()], extents, ways, next: start, left }
    }

    /// The indices of an operand's elements at each position of a shape that it broadcasts to, right-aligned.
    pub fn broadcast(operand: &'a Operand, shape: &[u64]) -> Indices<'a> {
        Indices::new(shape.into(), broadcast_ways(operand, shape), operand.origin() as i64)
    }
}

/// The stride of each axis of a shape in an operand that broadcasts to it.
fn broadcast_ways<'a>(operand: &'a Operand, shape: &[u64]) -> Vec<Way<'a>> {
    let missing = shape.len() - operand.shape().len();
    let own = operand.shape().iter().zip(&shape[missing..]).enumerate();
    let way = |(axis, (own, to))| if own == to { Way::Along(operand.placement(), axis) } else { Way::Still };
    std::iter::repeat_n(Way::Still, missing).chain(own.map(way)).collect()
}

impl Iterator for Indices<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let index = self.next;
        for axis in (0..self.extents.len()).rev() {
            let (way, at) = (self.ways[axis], self.at[axis]);
            let next = if at + 1 < self.extents[axis] { at + 1 } else { 0 };
            // A distance that no index has may wrap; the sum wraps back.
            self.next = self.next.wrapping_add(way.to(next).wrapping_sub(way.to(at)));
            self.at[axis] = next;
            if next > 0 {
                break;
            }
        }
        Some(index)
    }
}

/// The elements of an operand that one output element is reduced from, broadcast to input 0's shape.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    operand: &'a Operand,
    bytes: &'a [u8],
    indices: Indices<'a>,
}

impl<'a> Slice<'a> {
    /// The slices of all output elements, in the row-major order of the axes that are kept.
    pub fn all(spec: &'a Spec, operand: &'a Operand, bytes: &'a [u8]) -> impl Iterator<Item = Slice<'a>> {
        let shape = spec.inputs()[0].shape();
        let [kept, reduced] = parts(spec, &broadcast_ways(operand, shape), operand.origin() as i64);
        kept.map(move |start| Slice { operand, bytes, indices: Indices { next: start, ..reduced.clone() } })
    }

    /// The elements, in row-major order.
    pub fn elements(&self) -> impl Iterator<Item = Scalar> {
        self.indices.clone().map(|index| Scalar::read(self.operand.dtype(), self.bytes, index as usize))
    }

    /// The number of elements.
    pub fn count(&self) -> u64 {
        self.indices.left
    }

    /// The elements' type.
    pub fn dtype(&self) -> DType {
        self.operand.dtype()
    }
}

/// The positions of each slice's elements in the row-major order of input 0's shape.
pub fn places(spec: &Spec) -> impl Iterator<Item = Indices<'_>> {
    let shape = spec.inputs()[0].shape();
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as i64;
    }
    let ways: Vec<Way> = strides.into_iter().map(Way::By).collect();
    let [kept, reduced] = parts(spec, &ways, 0);
    kept.map(move |start| Indices { next: start, ..reduced.clone() })
}

/// The walks over the kept axes of input 0 and over its reduced axes.
fn parts<'a>(spec: &Spec, ways: &[Way<'a>], start: i64) -> [Indices<'a>; 2] {
    [false, true].map(|reduced| {
        let axes = || (0..spec.rank()).filter(move |&axis| spec.reduced()[axis] == reduced);
        let extents = axes().map(|axis| spec.inputs()[0].shape()[axis]).collect();
        Indices::new(extents, axes().map(|axis| ways[axis]).collect(), start)
    })
}

/// Refuses buffers that are not as many as the operands, or shorter.
pub fn check_buffers(
    kind: &'static str,
    operands: &[Operand],
    lengths: impl ExactSizeIterator<Item = usize>,
) -> Result<(), ReferenceError> {
    if lengths.len() != operands.len() {
        return Err(ReferenceError::Count { kind, given: lengths.len(), expected: operands.len() });
    }
    for (index, (operand, given)) in operands.iter().zip(lengths).enumerate() {
        let needed = operand.span_bytes();
        if (given as u64) < needed {
            return Err(ReferenceError::TooShort { kind, index, given, needed });
        }
    }
    Ok(())
}
