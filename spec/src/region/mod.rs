//! Regions: a whole fused loop over a slice as one spec.
//!
//! ```text
//! region  = "region" operand { "," operand } { word } "{" { def SEP } out { "," out } "}"
//! operand = [ NAME ":" ] DTYPE "[" [ INT { "," INT } ] "]" [ "@" layout ]
//! word    = "axes" "=" ( INT | "[" [ INT { "," INT } ] "]" )
//!         | "scalar" NAME ":" DTYPE
//!         | "keep_dims"
//!         | "acc" "=" DTYPE
//!         | "order" "=" ( "memory" | "logical" )
//! def     = NAME { "," NAME } "=" value
//! out     = value [ "@" layout ]
//! value   = an expression, in which calls may stand:
//!         | REDUCTION "(" value { "," KEY "=" NUMBER } [ "," "axes" "=" AXES ] ")"
//!         | "centered" "(" value ")" | "position" "(" AXIS ")" | "extent" "(" AXIS ")" | "old" "(" OUT ")"
//! ```
//!
//! SEP is `;` or the end of a line outside brackets; `#` begins a comment to the end of the line. Operands without a
//! name are `x0`, `x1` and so on by their place. [`cranefold_ir::region`] has the meaning of the body, and
//! [`text`](crate::text) that of the other words.
//!
//! # Shape
//!
//! The shape of a region is the broadcast of all operands' shapes, as in NumPy; axes refer to it. An operand is of
//! elements if it has the region's extent along a reduced axis. Outputs of elements have the whole shape, those of
//! slices the kept axes, totals those without the axes that they reduce; `keep_dims` leaves ones.

mod build;
mod check;
mod text;

pub use build::RegionBuilder;
pub(super) use build::{RegionTexts, built, text};
pub(super) use check::{dropped, mapped};
pub(super) use text::read;

use super::Spec;
use cranefold_ir::region::Body;

/// The order in which a reduction accumulates: the rule of its reduction tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// The order follows the strides of the inputs; `memory` in text. The default.
    #[default]
    Memory,
    /// The order follows the shape and the axes alone, whatever the strides; `logical` in text.
    Logical,
}

impl Order {
    /// The word in text.
    pub const fn word(self) -> &'static str {
        match self {
            Order::Memory => "memory",
            Order::Logical => "logical",
        }
    }
}

impl Spec {
    /// The definitions and outputs of a region; none for a spec of ops.
    ///
    /// ```
    /// use cranefold_spec::Spec;
    ///
    /// let spec: Spec = "region x:f32[8,768], w:f32[768] axes=[-1] { x / sqrt(mean(x * x) + 1e-6) * w }".parse()?;
    /// assert_eq!(spec.body().map(|body| body.definitions.len()), Some(1));
    /// assert_eq!("sum f32[8]".parse::<Spec>()?.body(), None);
    /// # Ok::<(), cranefold_spec::SpecError>(())
    /// ```
    pub fn body(&self) -> Option<&Body> {
        self.body.as_deref()
    }

    /// The shape that is reduced: a region's, or input 0's.
    ///
    /// ```
    /// use cranefold_spec::Spec;
    ///
    /// let spec: Spec = "region row:f32[768], column:f32[8,1] axes=[1] { max(row * column) }".parse()?;
    /// assert_eq!(spec.shape(), [8, 768]);
    /// # Ok::<(), cranefold_spec::SpecError>(())
    /// ```
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The order of accumulation.
    pub fn order(&self) -> Order {
        self.order
    }
}
