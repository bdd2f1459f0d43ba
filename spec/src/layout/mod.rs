//! The layouts of operands in their buffers.
//!
//! A [`Layout`] is the user's description; with a shape it resolves to a [`Placement`]. Strides, extents,
//! blocks, offsets and spans are in elements.
//!
//! # Text
//!
//! ```text
//! layout  = ( "any" | TAG | "(" [ INT { "," INT } ] ")" { block } | ) [ "+" INT ]
//! TAG     = LETTER { LETTER } { block }
//! block   = INT LETTER
//! ```
//!
//! A tag is oneDNN's: letters from the outermost axis to the innermost, `a` for axis 0, so `acdb` over logical NCHW is
//! NHWC. An axis whose letter is a capital is cut into blocks, whose sizes follow from the outermost block to the
//! innermost: `aBcd16b` holds 16 neighbours along axis 1 together, and `ABcd4b16a4b` cuts axis 1 twice. An axis that is
//! no multiple of its block is padded to one. The familiar names mean the same, in any order of their letters and with
//! blocks: the names of activations (`nc ncw nchw ncdhw`, so `nhwc` and `nChw16c`), of weights
//! (`oi oiw oihw oidhw goiw goihw goidhw`), of sequences (`tnc`), and `x`.
//!
//! Operands of one spec may be blocked in different sizes. If blocks do not divide their axis, or one
//! another, the spec is computed in several boxes, at most
//! [64](crate::MAX_BOXES).
//!
//! Strides are of whole blocks where an axis is blocked, and any integers: zero repeats an element, a negative one runs
//! backwards. `+` and a number skip so many elements at the start of the buffer. `any`, for outputs, keeps the layout
//! of input 0 ([`Layout::any`]).

mod error;
mod keep;
mod placement;
mod places;
pub mod split;
mod tag;

pub use error::LayoutError;
pub use placement::{PlacedLayoutBlock, Placement};
pub use places::Places;

use std::fmt;

/// The most bytes an operand may hold or span.
pub const MAX_BYTES: u64 = i64::MAX as u64;

/// The largest block of an axis, in elements.
pub const MAX_LAYOUT_BLOCK: u64 = 1 << 16;

/// The layout of an operand's elements.
///
/// ```
/// use cranefold_spec::Layout;
///
/// let nhwc = Layout::tag("nhwc")?;
/// let placement = nhwc.resolve(&[8, 32, 7, 7], 2)?;
/// assert_eq!(placement.strides, [1568, 1, 224, 32]);
/// assert_eq!(nhwc.to_string(), "acdb");
///
/// let blocked = Layout::tag("aBcd16b")?.resolve(&[8, 20, 7, 7], 4)?;
/// assert_eq!((blocked.padded.as_slice(), blocked.span_elems), (&[8, 32, 7, 7][..], 12544));
/// assert_eq!(blocked.index(&[0, 17, 0, 2]), 784 + 2 * 16 + 1);
///
/// let backwards = Layout::strides([-1]).resolve(&[10], 4)?;
/// assert_eq!((backwards.origin, backwards.span_elems), (9, 10));
/// # Ok::<(), cranefold_spec::layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Layout {
    order: Order,
    /// The blocks, from the outermost to the innermost.
    blocks: Vec<LayoutBlock>,
    offset: u64,
}

/// The order of whole blocks, or of elements without blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Order {
    /// Dense, the last axis fastest. It prints as nothing.
    #[default]
    RowMajor,
    /// Dense, in the order of these axes from the outermost to the innermost.
    Axes(Vec<u8>),
    /// A stride for each axis.
    Strides(Vec<i64>),
    /// The order and blocks of input 0.
    Any,
}

/// A level of blocking of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LayoutBlock {
    axis: u8,
    size: u64,
}

impl Layout {
    /// The default layout: dense, the last axis fastest.
    pub fn row_major() -> Layout {
        Layout::default()
    }

    /// The dense layout that a tag names (see [`layout`](self)).
    ///
    /// # Errors
    /// If the letters are neither the first ones of the alphabet, each once, nor a familiar name's; if blocks and
    /// capitals do not agree; or if a block has not from 2 to [`MAX_LAYOUT_BLOCK`] elements.
    pub fn tag(tag: &str) -> Result<Layout, LayoutError> {
        let (axes, blocks) = tag::parse(tag)?;
        Ok(Layout { order: Order::Axes(axes), blocks, offset: 0 })
    }

    /// The layout with these strides, in elements.
    pub fn strides(strides: impl Into<Vec<i64>>) -> Layout {
        Layout { order: Order::Strides(strides.into()), ..Layout::default() }
    }

    /// The layout with these strides of whole blocks, and inside them the blocks of a tag's end, such as
    /// `16b` or `4b16a4b`.
    ///
    /// ```
    /// use cranefold_spec::Layout;
    ///
    /// // Rows of blocks with a gap after each.
    /// let layout = Layout::blocked_strides([100, 8], "8b")?;
    /// assert_eq!(layout.to_string(), "(100,8)8b");
    /// assert_eq!(layout.resolve(&[4, 90], 4)?.padded, [4, 96]);
    /// # Ok::<(), cranefold_spec::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// If the text is no list of blocks, a block's axis has no stride, or a block has not from 2 to
    /// [`MAX_LAYOUT_BLOCK`] elements.
    pub fn blocked_strides(strides: impl Into<Vec<i64>>, blocks: &str) -> Result<Layout, LayoutError> {
        let strides = strides.into();
        let blocks = tag::parse_blocks(blocks, strides.len())?;
        Ok(Layout { order: Order::Strides(strides), blocks, offset: 0 })
    }

    /// The layout of an output with the order and blocks of input 0, as oneDNN's RFC proposes for `any`.
    ///
    /// With `keep_dims`, and where each position of the slice is written, order and blocks stay; a reduced
    /// axis that is blocked becomes one block, whose padding is zero. Without, reduced axes leave the
    /// order, with their blocks. After explicit strides the output is dense, its axes in the order of their
    /// |stride|, the largest outermost, and zero outside of all. The offset of input 0 is not kept; an
    /// explicit one (`any+8`) is. A spec holds the resolved layout in place of `any`.
    ///
    /// ```
    /// use cranefold_spec::Spec;
    ///
    /// let kept: Spec = "sum f32[8,32,7,7]@nChw16c axes=[1,2] keep_dims -> @any".parse()?;
    /// assert_eq!(kept.to_string(), "sum f32[8,32,7,7]@aBcd16b axes=[1,2] keep_dims -> @aBcd16b");
    /// let dropped: Spec = "sum f32[8,32,7,7]@nChw16c axes=[0,2] -> @any".parse()?;
    /// assert_eq!(dropped.to_string(), "sum f32[8,32,7,7]@aBcd16b axes=[0,2] -> @Ab16a");
    /// # Ok::<(), cranefold_spec::SpecError>(())
    /// ```
    pub fn any() -> Layout {
        Layout { order: Order::Any, ..Layout::default() }
    }

    /// The layout after so many skipped elements of the buffer.
    #[must_use]
    pub fn offset(self, elems: u64) -> Layout {
        Layout { offset: elems, ..self }
    }

    /// Returns true for the row-major layout without an offset, which prints as nothing.
    pub fn is_row_major(&self) -> bool {
        *self == Layout::default()
    }

    /// Returns true for [`any`](Layout::any).
    pub fn is_any(&self) -> bool {
        self.order == Order::Any
    }
}

/// Prints the text after the `@` in a spec; nothing for row-major.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.order {
            Order::RowMajor => {}
            Order::Any => f.write_str("any")?,
            Order::Axes(axes) => tag::write_axes(f, axes, &self.blocks)?,
            Order::Strides(strides) => f.write_str(&list(strides, '(', ')'))?,
        }
        tag::write_blocks(f, &self.blocks)?;
        match self.offset {
            0 => Ok(()),
            offset => write!(f, "+{offset}"),
        }
    }
}

/// Numbers with commas, in brackets.
pub fn list<T: fmt::Display>(items: &[T], open: char, close: char) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    format!("{open}{}{close}", items.join(","))
}
