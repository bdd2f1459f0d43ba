//! The resolution of `any` to a layout.

use super::placement::dense;
use super::{Layout, LayoutBlock, Order};

/// The most axes that tags have letters for.
const LETTERS: usize = 26;

impl Layout {
    /// The layout of an output of this shape that keeps this layout of an input; `reduced` marks the input's
    /// reduced axes, which stay in the output if `stay` is set.
    pub(crate) fn kept(&self, reduced: &[bool], stay: bool, shape: &[u64], any: &Layout) -> Layout {
        let mut order: Vec<usize> = match &self.order {
            Order::RowMajor | Order::Any => (0..reduced.len()).collect(),
            Order::Axes(axes) => axes.iter().map(|&axis| usize::from(axis)).collect(),
            Order::Strides(strides) => {
                let mut axes: Vec<usize> = (0..strides.len()).collect();
                axes.sort_by_key(|&axis| match strides[axis] {
                    0 => 0,
                    stride => u64::MAX - stride.unsigned_abs(),
                });
                axes
            }
        };
        let left = |axis: usize| stay || !reduced[axis];
        // The number of an axis among the axes that are left.
        let renamed = |axis: usize| (0..axis).filter(|&before| left(before)).count();
        order.retain(|&axis| left(axis));
        order.iter_mut().for_each(|axis| *axis = renamed(*axis));
        let blocks = self.blocks.iter().filter(|b| left(b.axis.into()));
        let blocks: Vec<LayoutBlock> =
            blocks.map(|b| LayoutBlock { axis: renamed(b.axis.into()) as u8, ..*b }).collect();
        if order.is_sorted() && blocks.is_empty() {
            return Layout::row_major().offset(any.offset);
        }
        let order = match order.len() <= LETTERS {
            true => Order::Axes(order.into_iter().map(|axis| axis as u8).collect()),
            false => Order::Strides(dense(shape, &blocks, order.into_iter().rev())),
        };
        Layout { order, blocks, offset: any.offset }
    }
}
