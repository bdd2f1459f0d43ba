//! The descriptions of outputs, for callers that allocate them.

use super::Spec;
use crate::layout::{PlacedLayoutBlock, Placement};
use cranefold_ir::DType;
use cranefold_ir::region::{Body, Value};

/// The memory of an output, in the terms of oneDNN's memory descriptors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputDesc {
    /// Element type.
    pub dtype: DType,
    /// Extents, as the user sees them.
    pub shape: Vec<u64>,
    /// Extents in whole blocks.
    pub padded_shape: Vec<u64>,
    /// Strides in elements; of whole blocks where an axis is blocked.
    pub strides: Vec<i64>,
    /// The blocks, from the outermost to the innermost.
    pub blocks: Vec<PlacedLayoutBlock>,
    /// Index in the buffer of the element whose indices are all 0.
    pub origin: u64,
    /// Length of the buffer in elements.
    pub span_elems: u64,
    /// Length of the buffer in bytes.
    pub span_bytes: u64,
}

impl OutputDesc {
    /// An array of one axis.
    pub fn flat(dtype: DType, elems: u64) -> OutputDesc {
        OutputDesc {
            dtype,
            shape: vec![elems],
            padded_shape: vec![elems],
            strides: vec![1],
            blocks: vec![],
            origin: 0,
            span_elems: elems,
            span_bytes: elems.saturating_mul(dtype.bytes()),
        }
    }
}

impl Spec {
    /// Returns true if there is one output and it may be the memory of input 0: see [`may_replace`](Spec::may_replace).
    pub fn runs_in_place(&self) -> bool {
        self.outputs.len() == 1 && self.may_replace(0, 0)
    }

    /// Returns true if an output may be the memory of an input: it has an element at each position, of the input's type
    /// and in the same place. So each element of the input is read for the last time before that place is written: at
    /// other positions it is read by reductions of the slice alone, which end before elements are written.
    ///
    /// ```
    /// use cranefold_spec::Spec;
    ///
    /// let spec: Spec = "region x:f32[4,6], h:f32[4,6] axes=[1] { y = x + h; y, y / sum(y), max(y) }".parse()?;
    /// assert!(spec.may_replace(0, 0) && spec.may_replace(1, 1) && !spec.may_replace(2, 0));
    /// # Ok::<(), cranefold_spec::SpecError>(())
    /// ```
    pub fn may_replace(&self, output: usize, input: usize) -> bool {
        let place = |o: &super::Operand| (o.dtype, o.placement.clone());
        let whole = |lost: &Option<Vec<bool>>| lost.is_none() || (self.body.is_some() && !self.reduced.contains(&true));
        let has_each = self.lost.get(output).is_some_and(whole);
        let operands = self.outputs.get(output).zip(self.inputs.get(input));
        has_each && operands.is_some_and(|(output, input)| place(output) == place(input))
    }

    /// Returns true if a call reads the elements that an output held before it: its `then` uses `d`, or an expression of
    /// the region has `old(output)`.
    ///
    /// ```
    /// use cranefold_spec::Spec;
    ///
    /// let spec: Spec = "region x:f32[4,6] axes=[1] { max(x), sum(x) + old(0) }".parse()?;
    /// assert!(spec.reads_old(0) && !spec.reads_old(1));
    /// # Ok::<(), cranefold_spec::SpecError>(())
    /// ```
    pub fn reads_old(&self, output: usize) -> bool {
        let in_region = |body: &Body| body.definitions.iter().any(|d| d.value == Value::Old(output));
        self.then.get(output).is_some_and(|f| f.uses("d")) || self.body.as_deref().is_some_and(in_region)
    }

    /// The descriptions of the outputs: shapes, strides and lengths of their buffers.
    ///
    /// ```
    /// use cranefold_spec::Spec;
    ///
    /// let spec: Spec = "sum f32[8,20,7,7]@nChw16c axes=[2,3] keep_dims -> @any".parse()?;
    /// let output = &spec.output_desc()[0];
    /// assert_eq!((output.shape.as_slice(), output.padded_shape.as_slice()), (&[8, 20, 1, 1][..], &[8, 32, 1, 1][..]));
    /// assert_eq!((output.strides.as_slice(), output.span_bytes), (&[32, 16, 16, 16][..], 1024));
    /// # Ok::<(), cranefold_spec::SpecError>(())
    /// ```
    pub fn output_desc(&self) -> Vec<OutputDesc> {
        let desc = |o: &super::Operand| {
            let Placement { strides, blocks, padded, origin, span_elems } = o.placement.clone();
            OutputDesc {
                dtype: o.dtype,
                shape: o.shape.clone(),
                padded_shape: padded,
                strides,
                blocks,
                origin,
                span_elems,
                span_bytes: o.span_bytes(),
            }
        };
        self.outputs.iter().map(desc).collect()
    }
}
