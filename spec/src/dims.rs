//! Specs from the dims of source and destination, as in oneDNN.

use super::{Spec, SpecError};
use crate::layout::{Layout, list};
use cranefold_ir::DType;

/// A memory descriptor: element type, dims and layout of a source or destination.
#[derive(Clone, Debug)]
pub struct Dims<'a> {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub dims: &'a [i64],
    /// Layout over these dims.
    pub layout: Layout,
}

impl<'a> Dims<'a> {
    /// Dims in row-major layout.
    pub fn new(dtype: DType, dims: &'a [i64]) -> Dims<'a> {
        Dims { dtype, dims, layout: Layout::row_major() }
    }

    /// The same dims in another layout.
    #[must_use]
    pub fn at(self, layout: Layout) -> Dims<'a> {
        Dims { layout, ..self }
    }

    pub(super) fn extents(&self) -> Result<Vec<u64>, SpecError> {
        let dims = self.dims.iter().enumerate();
        dims.map(|(axis, &extent)| u64::try_from(extent).map_err(|_| SpecError::NegativeExtent { axis, extent }))
            .collect()
    }
}

impl Spec {
    /// The reduction of a source to a destination of the same rank: an axis is reduced where the
    /// destination's dim is 1 and the source's is not, and stays with extent 1.
    ///
    /// The op has its meaning in this library; [`onednn::Primitive`](super::onednn::Primitive) has oneDNN's, with
    /// post-ops.
    ///
    /// ```
    /// use cranefold_spec::Dims;
    /// use cranefold_spec::{DType, Spec};
    ///
    /// let (src, dst) = (Dims::new(DType::I8, &[32, 17, 2, 3]), Dims::new(DType::I32, &[32, 17, 1, 1]));
    /// let spec = Spec::from_dims("reduction_sum", &[], src, dst)?;
    /// assert_eq!(spec.to_string(), "sum i8[32,17,2,3] axes=[2,3] keep_dims -> i32");
    /// # Ok::<(), cranefold_spec::SpecError>(())
    /// ```
    ///
    /// # Errors
    /// If the ranks differ, a destination dim is neither 1 nor the source's, all dims are equal, or
    /// [`Builder::build`](super::Builder::build) refuses the spec.
    pub fn from_dims(op: &str, params: &[(&str, f64)], src: Dims, dst: Dims) -> Result<Spec, SpecError> {
        let mut builder = Spec::builder(op);
        for &(name, value) in params {
            builder = builder.param(name, value);
        }
        let (axes, _) = reduced_axes(&src, &dst)?;
        let shape = src.extents()?;
        let builder = builder.input_at(src.dtype, &shape, src.layout).axes(axes).keep_dims(true);
        builder.output_parts(Some(dst.dtype), Some(dst.layout)).build()
    }
}

/// The axes to reduce, and the number of elements that are reduced to one.
pub(super) fn reduced_axes(src: &Dims, dst: &Dims) -> Result<(Vec<i64>, u64), SpecError> {
    if src.dims.len() != dst.dims.len() {
        return Err(SpecError::RanksDiffer { source_rank: src.dims.len(), destination_rank: dst.dims.len() });
    }
    src.extents()?;
    dst.extents()?;
    let (mut axes, mut count) = (vec![], 1u64);
    for (axis, (&from, &to)) in src.dims.iter().zip(dst.dims).enumerate() {
        match to {
            _ if to == from => {}
            1 => {
                axes.push(axis as i64);
                count = count.saturating_mul(from as u64);
            }
            _ => return Err(SpecError::DestinationDim { axis, given: to, expected: from }),
        }
    }
    if axes.is_empty() {
        return Err(SpecError::NothingReduced { dims: list(src.dims, '[', ']') });
    }
    Ok((axes, count))
}
