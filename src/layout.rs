//! Where the elements of one operand lie in its buffer.
//!
//! A [`Layout`] is what the user says; with a shape it resolves to a [`Placement`]. Strides,
//! extents and spans are in elements. The buffer starts at the lowest address that any element
//! touches, so the element with all indices 0 lies at `origin`, and element `i` at
//!
//! ```text
//! origin + i[0] * strides[0] + i[1] * strides[1] + ...        0 <= index < span_elems
//! ```
//!
//! Blocked tags (`aBcd16b`) are no part of this yet: they would be one more kind of [`Tag`] and
//! one more field of [`Placement`] (an axis split in two). Their spelling is refused by name.

use std::fmt;

/// How the elements of an operand are laid out.
///
/// ```
/// use cranefold::Layout;
///
/// let nhwc = Layout::tag("acdb")?;
/// let placement = nhwc.resolve(&[8, 32, 7, 7], 2)?;
/// assert_eq!(placement.strides, [1568, 1, 224, 32]);
/// assert_eq!(nhwc.to_string(), "acdb");
///
/// let backwards = Layout::strides([-1]).resolve(&[10], 4)?;
/// assert_eq!((backwards.origin, backwards.span_elems), (9, 10));
/// # Ok::<(), cranefold::layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// Dense, the last axis fastest. It prints as nothing.
    #[default]
    RowMajor,
    /// Dense, in the order of axes that a tag names.
    Tag(Tag),
    /// A stride in elements for each axis: zero repeats an element, negative runs backwards.
    Strides(Vec<i64>),
}

/// A dense layout by the order of its axes, in oneDNN's convention: letters from the outermost axis
/// to the innermost, `a` for axis 0. `acdb` over logical NCHW is NHWC.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tag {
    order: Vec<u8>,
}

/// A layout and a shape, resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    /// Elements between neighbours along each axis.
    pub strides: Vec<i64>,
    /// Index in the buffer of the element whose indices are all 0.
    pub origin: u64,
    /// Elements from the lowest to the highest touched, both included; 0 where an extent is 0.
    pub span_elems: u64,
}

/// A layout that cannot be, or does not fit its shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages define the variants and their fields")]
pub enum LayoutError {
    #[error("layout tag `{tag}` is not one of each of the letters from `a` on")]
    BadTag { tag: String },
    #[error("layout tag `{tag}` is blocked, which is not supported")]
    Blocked { tag: String },
    #[error("layout tag `{tag}` names {given} axes for rank {rank}")]
    TagRank { tag: String, given: usize, rank: usize },
    #[error("{given} strides for rank {rank}")]
    StridesRank { given: usize, rank: usize },
    #[error("shape {shape} of {element_bytes}-byte elements is larger than {limit} bytes")]
    TooLarge { shape: String, element_bytes: u64, limit: u64 },
    #[error("strides {strides} over shape {shape} of {element_bytes}-byte elements span more than {limit} bytes")]
    SpanTooLarge { strides: String, shape: String, element_bytes: u64, limit: u64 },
    #[error("stride 0 of axis {axis} would write one element {extent} times")]
    ZeroStride { axis: usize, extent: u64 },
    #[error(
        "stride {stride} of axis {axis} may write one element twice: it must reach over the {span} elements \
         that the smaller strides span"
    )]
    Overlap { axis: usize, stride: i64, span: u64 },
}

/// The most bytes an operand may hold or span.
pub const MAX_BYTES: u64 = i64::MAX as u64;

impl Layout {
    /// The dense layout that a tag names.
    ///
    /// # Errors
    /// If the letters are not each of the first ones of the alphabet once, at most 26.
    pub fn tag(tag: &str) -> Result<Layout, LayoutError> {
        let shown = || tag.chars().take(40).collect::<String>();
        let order: Vec<u8> = tag.bytes().map(|b| b.wrapping_sub(b'a')).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !order.is_empty() && order.len() <= 26 && sorted.iter().enumerate().all(|(i, &axis)| i == usize::from(axis))
        {
            return Ok(Layout::Tag(Tag { order }));
        }
        let blocked = tag.bytes().all(|b| b.is_ascii_alphanumeric()) && tag.bytes().any(|b| b.is_ascii_digit());
        Err(if blocked { LayoutError::Blocked { tag: shown() } } else { LayoutError::BadTag { tag: shown() } })
    }

    /// The layout with these strides, in elements.
    pub fn strides(strides: impl Into<Vec<i64>>) -> Layout {
        Layout::Strides(strides.into())
    }

    /// Where the elements of an operand of this shape lie.
    ///
    /// # Errors
    /// If the layout has another rank, or the elements or the memory they span exceed [`MAX_BYTES`].
    /// Extents of 0 do not hide an overflow of the others.
    pub fn resolve(&self, shape: &[u64], element_bytes: u64) -> Result<Placement, LayoutError> {
        let rank = shape.len();
        let dense = |order: &mut dyn Iterator<Item = usize>| dense_strides(shape, element_bytes, order);
        let row_major = dense(&mut (0..rank).rev())?;
        let strides = match self {
            Layout::RowMajor => row_major,
            Layout::Tag(tag) if tag.order.len() != rank => {
                return Err(LayoutError::TagRank { tag: tag.to_string(), given: tag.order.len(), rank });
            }
            Layout::Tag(tag) => dense(&mut tag.order.iter().rev().map(|&axis| usize::from(axis)))?,
            Layout::Strides(strides) if strides.len() != rank => {
                return Err(LayoutError::StridesRank { given: strides.len(), rank });
            }
            Layout::Strides(strides) => strides.clone(),
        };
        place(shape, strides, element_bytes)
    }
}

/// Strides with the axes of `order` from the innermost to the outermost; an extent 0 counts as 1.
fn dense_strides(
    shape: &[u64],
    element_bytes: u64,
    order: &mut dyn Iterator<Item = usize>,
) -> Result<Vec<i64>, LayoutError> {
    let mut strides = vec![0; shape.len()];
    let mut elems = 1u64;
    for axis in order {
        strides[axis] = elems as i64;
        elems = elems
            .checked_mul(shape[axis].max(1))
            .filter(|&e| e.checked_mul(element_bytes).is_some_and(|bytes| bytes <= MAX_BYTES))
            .ok_or_else(|| LayoutError::TooLarge { shape: list(shape, '[', ']'), element_bytes, limit: MAX_BYTES })?;
    }
    Ok(strides)
}

fn place(shape: &[u64], strides: Vec<i64>, element_bytes: u64) -> Result<Placement, LayoutError> {
    if shape.contains(&0) {
        return Ok(Placement { strides, origin: 0, span_elems: 0 });
    }
    // Each sum has at most 64 terms below 2^126, which a saturating i128 orders rightly.
    let (mut low, mut high) = (0i128, 0i128);
    for (&extent, &stride) in shape.iter().zip(&strides) {
        let reach = i128::from(extent - 1) * i128::from(stride);
        low = low.saturating_add(reach.min(0));
        high = high.saturating_add(reach.max(0));
    }
    let span = high.saturating_sub(low).saturating_add(1);
    if span.saturating_mul(i128::from(element_bytes)) > i128::from(MAX_BYTES) {
        return Err(LayoutError::SpanTooLarge {
            strides: list(&strides, '(', ')'),
            shape: list(shape, '[', ']'),
            element_bytes,
            limit: MAX_BYTES,
        });
    }
    Ok(Placement { strides, origin: (-low) as u64, span_elems: span as u64 })
}

impl Placement {
    /// Checks that no element of the buffer belongs to two indices, as it must be in an output.
    ///
    /// The check is simple rather than exact: in the order of their magnitudes, each stride must
    /// reach over all that the smaller ones span. Interleavings that are disjoint all the same,
    /// such as strides `(2,3)` over shape `[3,3]`, are refused.
    ///
    /// # Errors
    /// Names the axis whose stride is zero or too small.
    pub fn check_disjoint(&self, shape: &[u64]) -> Result<(), LayoutError> {
        if shape.contains(&0) {
            return Ok(());
        }
        let mut axes: Vec<usize> = (0..shape.len()).filter(|&axis| shape[axis] > 1).collect();
        axes.sort_by_key(|&axis| self.strides[axis].unsigned_abs());
        let mut span = 1u64;
        for axis in axes {
            let (stride, extent) = (self.strides[axis], shape[axis]);
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

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.order.iter().try_for_each(|&axis| write!(f, "{}", char::from(b'a' + axis)))
    }
}

/// What stands after the `@` in a spec; nothing for row-major.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::RowMajor => Ok(()),
            Layout::Tag(tag) => tag.fmt(f),
            Layout::Strides(strides) => f.write_str(&list(strides, '(', ')')),
        }
    }
}

/// Numbers with commas between brackets.
pub(crate) fn list<T: fmt::Display>(items: &[T], open: char, close: char) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    format!("{open}{}{close}", items.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(layout: Layout, shape: &[u64]) -> (Vec<i64>, u64, u64) {
        let p = layout.resolve(shape, 4).unwrap();
        (p.strides, p.origin, p.span_elems)
    }

    #[test]
    fn layouts_resolve() {
        assert_eq!(placed(Layout::RowMajor, &[]), (vec![], 0, 1));
        assert_eq!(placed(Layout::RowMajor, &[2, 3, 4]), (vec![12, 4, 1], 0, 24));
        assert_eq!(placed(Layout::RowMajor, &[2, 0, 4]), (vec![4, 4, 1], 0, 0));
        assert_eq!(placed(Layout::tag("bca").unwrap(), &[2, 3, 4]), (vec![1, 8, 2], 0, 24));
        assert_eq!(placed(Layout::strides([20, 2]), &[4, 10]), (vec![20, 2], 0, 79));
        assert_eq!(placed(Layout::strides([-20, 2]), &[4, 10]), (vec![-20, 2], 60, 79));
        assert_eq!(placed(Layout::strides([0, 0]), &[1 << 30, 1 << 30]), (vec![0, 0], 0, 1));
        assert_eq!(placed(Layout::strides([i64::MIN]), &[1]), (vec![i64::MIN], 0, 1));
    }

    #[test]
    fn overflow_is_an_error_whatever_the_extents() {
        let error = |layout: Layout, shape: &[u64]| layout.resolve(shape, 8).unwrap_err().to_string();
        let limit = "9223372036854775807";
        assert_eq!(
            error(Layout::RowMajor, &[0, 1 << 60]),
            format!("shape [0,1152921504606846976] of 8-byte elements is larger than {limit} bytes")
        );
        assert_eq!(
            error(Layout::strides([i64::MAX; 3]), &[2, 2, 2]),
            format!(
                "strides ({limit},{limit},{limit}) over shape [2,2,2] of 8-byte elements span more than {limit} bytes"
            )
        );
        assert!(Layout::strides(vec![i64::MIN; 60]).resolve(&[2; 60], 1).is_err());
        assert!(Layout::RowMajor.resolve(&[u64::MAX; 64], 1).is_err());
    }

    #[test]
    fn outputs_may_not_overlap() {
        let check = |strides: &[i64], shape: &[u64]| {
            Layout::strides(strides).resolve(shape, 4).unwrap().check_disjoint(shape).map_err(|e| e.to_string())
        };
        assert_eq!(check(&[1, -4], &[4, 4]), Ok(()));
        assert_eq!(check(&[0, 1], &[1, 4]), Ok(()));
        assert_eq!(check(&[0, 0], &[3, 0]), Ok(()));
        assert_eq!(check(&[1, 0], &[2, 3]), Err("stride 0 of axis 1 would write one element 3 times".into()));
        assert_eq!(
            check(&[1, -3], &[4, 4]),
            Err("stride -3 of axis 1 may write one element twice: it must reach over the 4 elements that the \
                 smaller strides span"
                .into())
        );
    }

    #[test]
    fn tags_are_checked() {
        let error = |tag: &str| Layout::tag(tag).unwrap_err().to_string();
        assert_eq!(error("nchw"), "layout tag `nchw` is not one of each of the letters from `a` on");
        assert_eq!(error("aab"), "layout tag `aab` is not one of each of the letters from `a` on");
        assert_eq!(error(""), "layout tag `` is not one of each of the letters from `a` on");
        assert_eq!(error("aBcd16b"), "layout tag `aBcd16b` is blocked, which is not supported");
        let long = Layout::tag("zyxwvutsrqponmlkjihgfedcba").unwrap();
        assert_eq!(
            long.resolve(&[1; 25], 1).unwrap_err().to_string(),
            format!("layout tag `{long}` names 26 axes for rank 25")
        );
    }
}
