//! A layout and a shape, resolved.

use super::{Layout, LayoutBlock, LayoutError, MAX_BYTES, Order, list, tag};

/// The places of an operand's elements in its buffer.
///
/// An index along an axis has digits: one for each block of that axis, and the number of the block. With
/// `s` the strides and `n` the sizes, an axis in blocks of n contributes
///
/// ```text
/// along(axis, i) = (i / n) * strides[axis] + (i mod n) * s
/// ```
///
/// and the same again for blocks in blocks. The element with indices `i` lies at
/// `origin + along(0, i[0]) + along(1, i[1]) + ...`, from 0 to `span_elems` - 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    /// Elements between neighbours along each axis; between neighbouring blocks where it is blocked.
    pub strides: Vec<i64>,
    /// The blocks, from the outermost to the innermost.
    pub blocks: Vec<PlacedLayoutBlock>,
    /// The extents, rounded up to whole blocks.
    pub padded: Vec<u64>,
    /// Index in the buffer of the element whose indices are all 0.
    pub origin: u64,
    /// Elements from the start of the buffer to the operand's last, padding included; 0 if an extent
    /// is 0.
    pub span_elems: u64,
}

/// A level of blocking of an axis, with its stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlacedLayoutBlock {
    /// The axis.
    pub axis: usize,
    /// The number of positions in it: elements, or blocks inside it.
    pub size: u64,
    /// Elements between neighbouring positions.
    pub stride: i64,
}

impl Layout {
    /// Resolves the layout with a shape to the places of the elements.
    ///
    /// The buffer starts at the layout's offset before the lowest address that an element has. Extents of 0
    /// do not hide an overflow of the others.
    ///
    /// # Errors
    /// If the layout has another rank or is [`any`](Layout::any), or the elements or the memory they span
    /// exceed [`MAX_BYTES`].
    pub fn resolve(&self, shape: &[u64], element_bytes: u64) -> Result<Placement, LayoutError> {
        let rank = shape.len();
        let shape_text = || list(shape, '[', ']');
        let too_large = |whole_blocks: &str| LayoutError::TooLarge {
            shape: format!("{}{whole_blocks}", shape_text()),
            element_bytes,
            limit: MAX_BYTES,
        };
        let padded = padded(shape, &self.blocks).ok_or_else(|| too_large(" in whole blocks"))?;
        if !fits(&padded, element_bytes) {
            let is_padded = padded != shape;
            return Err(too_large(if is_padded { " in whole blocks" } else { "" }));
        }
        let strides = match &self.order {
            Order::Any => return Err(LayoutError::AnyOfInput),
            Order::RowMajor => dense(shape, &self.blocks, (0..rank).rev()),
            Order::Axes(axes) if axes.len() != rank => {
                let tag = Layout { offset: 0, ..self.clone() }.to_string();
                let named = tag::familiar(axes, &self.blocks).map_or(String::new(), |name| format!(" (`{name}`)"));
                return Err(LayoutError::TagRank { tag, named, given: axes.len(), rank });
            }
            Order::Axes(axes) => dense(shape, &self.blocks, axes.iter().rev().map(|&axis| usize::from(axis))),
            Order::Strides(strides) if strides.len() != rank => {
                return Err(LayoutError::StridesRank { given: strides.len(), rank });
            }
            Order::Strides(strides) => strides.clone(),
        };
        let mut placement = Placement { strides, blocks: placed(&self.blocks), padded, origin: 0, span_elems: 0 };
        if shape.contains(&0) {
            return Ok(placement);
        }
        // A term for each axis and each block, of which there are at most 62, since their product is below 2^63. Each
        // is below 2^127, and a saturating i128 orders their sum correctly.
        let (mut low, mut high) = (0i128, i128::from(self.offset));
        for (_, extent, stride) in placement.digits() {
            let reach = i128::from(extent - 1) * i128::from(stride);
            low = low.saturating_add(reach.min(0));
            high = high.saturating_add(reach.max(0));
        }
        let span = high.saturating_sub(low).saturating_add(1);
        if span.saturating_mul(i128::from(element_bytes)) > i128::from(MAX_BYTES) {
            let (layout, shape) = (self.to_string(), shape_text());
            return Err(LayoutError::SpanTooLarge { layout, shape, element_bytes, limit: MAX_BYTES });
        }
        (placement.origin, placement.span_elems) = ((i128::from(self.offset) - low) as u64, span as u64);
        Ok(placement)
    }
}

/// The extents in whole blocks; `None` if one overflows, or one block of all axes.
fn padded(shape: &[u64], blocks: &[LayoutBlock]) -> Option<Vec<u64>> {
    blocks.iter().try_fold(1u64, |all, b| all.checked_mul(b.size)).filter(|&all| all <= MAX_BYTES)?;
    let whole = |(axis, &extent): (usize, &u64)| extent.checked_next_multiple_of(block(blocks, axis)?);
    shape.iter().enumerate().map(whole).collect()
}

/// The number of elements in an outermost block of an axis; none on overflow.
fn block(blocks: &[LayoutBlock], axis: usize) -> Option<u64> {
    blocks.iter().filter(|b| usize::from(b.axis) == axis).try_fold(1u64, |all, b| all.checked_mul(b.size))
}

/// Returns true if the elements take at most [`MAX_BYTES`]; an extent 0 counts as 1.
fn fits(extents: &[u64], element_bytes: u64) -> bool {
    let bytes = extents.iter().try_fold(element_bytes, |bytes, &extent| bytes.checked_mul(extent.max(1)));
    bytes.is_some_and(|bytes| bytes <= MAX_BYTES)
}

/// The strides of dense blocks, with the axes of `order` from the innermost to the outermost; an
/// extent 0 counts as 1.
pub(super) fn dense(shape: &[u64], blocks: &[LayoutBlock], order: impl Iterator<Item = usize>) -> Vec<i64> {
    let mut strides = vec![0; shape.len()];
    let mut elems = blocks.iter().fold(1u64, |all, b| all.saturating_mul(b.size));
    for axis in order {
        strides[axis] = elems as i64;
        let whole = block(blocks, axis).unwrap_or(u64::MAX);
        elems = elems.saturating_mul(shape[axis].div_ceil(whole).max(1));
    }
    strides
}

/// The strides of blocks that are dense in one another.
fn placed(blocks: &[LayoutBlock]) -> Vec<PlacedLayoutBlock> {
    let mut stride = 1i64;
    let mut placed = vec![];
    for b in blocks.iter().rev() {
        placed.push(PlacedLayoutBlock { axis: b.axis.into(), size: b.size, stride });
        stride = stride.saturating_mul(b.size as i64);
    }
    placed.reverse();
    placed
}

impl Placement {
    /// The distance in the buffer from index 0 to index `i` of an axis, in elements.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn along(&self, axis: usize, i: u64) -> i64 {
        let (mut left, mut distance) = (i, 0i64);
        for block in self.blocks.iter().rev().filter(|b| b.axis == axis) {
            distance = distance.wrapping_add(((left % block.size) as i64).wrapping_mul(block.stride));
            left /= block.size;
        }
        distance.wrapping_add((left as i64).wrapping_mul(self.strides[axis]))
    }

    /// The index in the buffer of the element with these indices.
    ///
    /// # Panics
    /// If there are more indices than axes.
    pub fn index(&self, at: &[u64]) -> u64 {
        let along = at.iter().enumerate().map(|(axis, &i)| self.along(axis, i));
        along.fold(self.origin as i64, i64::wrapping_add) as u64
    }

    /// The elements along an axis in each of its blocks, with the blocks inside, the smallest first.
    pub fn block_sizes(&self, axis: usize) -> impl Iterator<Item = u64> + '_ {
        let sizes = self.blocks.iter().rev().filter(move |b| b.axis == axis).map(|b| b.size);
        sizes.scan(1, |all, size| {
            *all *= size;
            Some(*all)
        })
    }

    /// Every digit of every axis: the axis, the number of its values, and its stride.
    fn digits(&self) -> impl Iterator<Item = (usize, u64, i64)> + '_ {
        let outer = self.strides.iter().zip(&self.padded).enumerate().map(|(axis, (&stride, &padded))| {
            let block = self.block_sizes(axis).last().unwrap_or(1);
            (axis, padded / block, stride)
        });
        outer.chain(self.blocks.iter().map(|b| (b.axis, b.size, b.stride)))
    }

    /// Checks that no element of the buffer belongs to two indices, which an output requires.
    ///
    /// The check is simple rather than exact: in the order of their magnitudes, each stride must
    /// exceed the span of the smaller ones. Some disjoint interleavings, such as strides `(2,3)` over
    /// shape `[3,3]`, are refused too.
    ///
    /// # Errors
    /// If a stride is zero or too small; the error names its axis.
    pub fn check_disjoint(&self) -> Result<(), LayoutError> {
        if self.span_elems == 0 {
            return Ok(());
        }
        let mut digits: Vec<(usize, u64, i64)> = self.digits().filter(|&(_, extent, _)| extent > 1).collect();
        // Blocks come last and do not overlap in one another, so only the stride of an axis can be too small.
        digits.reverse();
        digits.sort_by_key(|&(_, _, stride)| stride.unsigned_abs());
        let mut span = 1u64;
        for (axis, extent, stride) in digits {
            if stride == 0 {
                return Err(LayoutError::ZeroStride { axis, extent });
            }
            if stride.unsigned_abs() < span {
                return Err(LayoutError::Overlap { axis, stride, span });
            }
            span += stride.unsigned_abs() * (extent - 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(layout: Layout, shape: &[u64]) -> (Vec<i64>, u64, u64) {
        let p = layout.resolve(shape, 4).unwrap();
        (p.strides, p.origin, p.span_elems)
    }

    fn tag(tag: &str) -> Layout {
        Layout::tag(tag).unwrap()
    }

    #[test]
    fn layouts_resolve() {
        assert_eq!(placed(Layout::row_major(), &[]), (vec![], 0, 1));
        assert_eq!(placed(Layout::row_major(), &[2, 3, 4]), (vec![12, 4, 1], 0, 24));
        assert_eq!(placed(Layout::row_major(), &[2, 0, 4]), (vec![4, 4, 1], 0, 0));
        assert_eq!(placed(tag("bca"), &[2, 3, 4]), (vec![1, 8, 2], 0, 24));
        assert_eq!(placed(tag("bca").offset(5), &[2, 3, 4]), (vec![1, 8, 2], 5, 29));
        assert_eq!(placed(Layout::strides([20, 2]), &[4, 10]), (vec![20, 2], 0, 79));
        assert_eq!(placed(Layout::strides([-20, 2]), &[4, 10]), (vec![-20, 2], 60, 79));
        assert_eq!(placed(Layout::strides([-20, 2]).offset(1), &[4, 10]), (vec![-20, 2], 61, 80));
        assert_eq!(placed(Layout::strides([0, 0]), &[1 << 30, 1 << 30]), (vec![0, 0], 0, 1));
        assert_eq!(placed(Layout::strides([i64::MIN]), &[1]), (vec![i64::MIN], 0, 1));
    }

    #[test]
    fn blocks_resolve() {
        assert_eq!(placed(tag("aBcd16b"), &[2, 17, 3, 5]), (vec![480, 240, 80, 16], 0, 960));
        assert_eq!(placed(tag("ABcd16a8b"), &[2, 17, 1, 1]), (vec![384, 128, 128, 128], 0, 384));
        assert_eq!(placed(tag("aB8b"), &[0, 9]), (vec![16, 8], 0, 0));
        let twice = tag("BAcd4b16a4b").resolve(&[20, 40, 3, 3], 4).unwrap();
        assert_eq!((twice.padded.as_slice(), twice.span_elems), (&[32, 48, 3, 3][..], 13824));
        // b = 16 * 2 + 4 * 1 + 3, a = 16 * 1 + 2.
        let index = 2 * 4608 + 2304 + (3 + 2) * 256 + 64 + 2 * 4 + 3;
        assert_eq!(twice.index(&[18, 39, 1, 2]), index);
        assert_eq!(twice.block_sizes(1).collect::<Vec<_>>(), [4, 16]);
        let gaps = Layout::blocked_strides([-100, 8], "8b").unwrap().offset(3).resolve(&[4, 90], 4).unwrap();
        assert_eq!((gaps.origin, gaps.span_elems, gaps.index(&[3, 89])), (303, 399, 3 + 8 * 11 + 1));
    }

    #[test]
    fn overflow_is_an_error_whatever_the_extents() {
        let error = |layout: Layout, shape: &[u64]| layout.resolve(shape, 8).unwrap_err().to_string();
        let limit = "9223372036854775807";
        assert_eq!(
            error(Layout::row_major(), &[0, 1 << 60]),
            format!("shape [0,1152921504606846976] of 8-byte elements is larger than {limit} bytes")
        );
        assert_eq!(
            error(Layout::strides([i64::MAX; 3]), &[2, 2, 2]),
            format!(
                "layout ({limit},{limit},{limit}) over shape [2,2,2] of 8-byte elements spans more than {limit} bytes"
            )
        );
        assert_eq!(
            error(tag("ab").offset(u64::MAX), &[2, 2]),
            format!("layout ab+{} over shape [2,2] of 8-byte elements spans more than {limit} bytes", u64::MAX)
        );
        assert_eq!(
            error(tag("A16a"), &[(1 << 60) - 1]),
            format!("shape [1152921504606846975] in whole blocks of 8-byte elements is larger than {limit} bytes")
        );
        assert!(Layout::strides(vec![i64::MIN; 60]).resolve(&[2; 60], 1).is_err());
        assert!(Layout::row_major().resolve(&[u64::MAX; 64], 1).is_err());
        assert!(tag("Ab65536a65536a65536a65536a65536a").resolve(&[1, 1], 1).is_err());
        assert!(tag("Ab2a").resolve(&[u64::MAX, 0], 1).is_err());
    }

    #[test]
    fn outputs_may_not_overlap() {
        let check = |layout: Layout, shape: &[u64]| {
            layout.resolve(shape, 4).unwrap().check_disjoint().map_err(|e| e.to_string())
        };
        assert_eq!(check(Layout::strides([1, -4]), &[4, 4]), Ok(()));
        assert_eq!(check(Layout::strides([0, 1]), &[1, 4]), Ok(()));
        assert_eq!(check(Layout::strides([0, 0]), &[3, 0]), Ok(()));
        assert_eq!(
            check(Layout::strides([1, 0]), &[2, 3]),
            Err("stride 0 of axis 1 would write one element 3 times".into())
        );
        assert_eq!(
            check(Layout::strides([1, -3]), &[4, 4]),
            Err("stride -3 of axis 1 may write one element twice: it must reach over the 4 elements that the \
                 smaller strides span"
                .into())
        );
        let blocked = |strides: [i64; 2]| Layout::blocked_strides(strides, "8b").unwrap();
        assert_eq!(check(blocked([16, 8]), &[3, 9]), Ok(()));
        assert_eq!(
            check(blocked([15, 8]), &[3, 9]),
            Err("stride 15 of axis 0 may write one element twice: it must reach over the 16 elements that the \
                 smaller strides span"
                .into())
        );
    }
}
