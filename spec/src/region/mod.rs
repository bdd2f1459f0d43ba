//! Regions: a whole fused loop over a slice as one spec.
//!
//! [`RegionBuilder`] has the grammar of the text; [`cranefold_ir::region`] that of the body, and its meaning.

mod build;
mod check;
mod text;
mod unreduced;

pub use build::RegionBuilder;
pub(super) use build::{RegionTexts, built, text};
pub(super) use check::reach;
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
