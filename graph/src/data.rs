//! The elements of a constant.

use crate::shape::elements;
use cranefold_ir::{DType, Scalar};
use std::sync::Arc;

/// A constant tensor: type, shape and the bytes of its elements in row-major order, in the machine's byte order.
///
/// ```
/// use cranefold_graph::{DType, Data};
///
/// let axes = Data::of_ints(DType::I64, &[2], &[1, -1])?;
/// assert_eq!(axes.ints(), Some(vec![1, -1]));
/// assert_eq!(Data::splat(DType::F32, &[3], 0.5)?.floats(), Some(vec![0.5; 3]));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Data {
    dtype: DType,
    shape: Vec<u64>,
    bytes: Arc<[u8]>,
}

impl Data {
    /// The tensor of these bytes.
    ///
    /// # Errors
    /// If their number is not that of the elements.
    pub fn new(dtype: DType, shape: &[u64], bytes: impl Into<Arc<[u8]>>) -> Result<Data, String> {
        let bytes = bytes.into();
        let needed = elements(shape)?.checked_mul(dtype.bytes()).ok_or("the constant is too large")?;
        match bytes.len() as u64 == needed {
            true => Ok(Data { dtype, shape: shape.to_vec(), bytes }),
            false => Err(format!("{} bytes of data, and {dtype} of shape {shape:?} needs {needed}", bytes.len())),
        }
    }

    /// The tensor of these values, in row-major order.
    ///
    /// # Errors
    /// If their number is not that of the elements.
    pub fn of(dtype: DType, shape: &[u64], values: &[Scalar]) -> Result<Data, String> {
        let mut bytes = vec![0; values.len() * dtype.bytes() as usize];
        values.iter().enumerate().for_each(|(i, value)| value.write(&mut bytes, i));
        Data::new(dtype, shape, bytes)
    }

    /// The tensor of these integers; a float type takes the nearest floats, an integer type the values modulo 2^bits.
    ///
    /// # Errors
    /// If their number is not that of the elements.
    pub fn of_ints(dtype: DType, shape: &[u64], values: &[i64]) -> Result<Data, String> {
        Data::of(dtype, shape, &values.iter().map(|&v| Scalar::int(dtype, v.into())).collect::<Vec<_>>())
    }

    /// The tensor of one value everywhere, at most 2^24 elements.
    ///
    /// # Errors
    /// If the tensor is larger.
    pub fn splat(dtype: DType, shape: &[u64], value: f64) -> Result<Data, String> {
        let count = elements(shape)?;
        if count > 1 << 24 {
            return Err(format!("a constant of {count} equal elements, and the limit is {}", 1 << 24));
        }
        Data::of(dtype, shape, &vec![scalar(dtype, value); count as usize])
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The bytes of the elements, row-major.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.bytes() as usize
    }

    /// Returns true if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Element `index` in row-major order.
    ///
    /// # Panics
    /// If there is none.
    pub fn at(&self, index: usize) -> Scalar {
        Scalar::read(self.dtype, &self.bytes, index)
    }

    /// The elements as integers; none for floats and for values beyond `i64`.
    pub fn ints(&self) -> Option<Vec<i64>> {
        (0..self.len()).map(|i| self.at(i).as_int().and_then(|v| i64::try_from(v).ok())).collect()
    }

    /// The elements as floats, an integer as the nearest one; none for truth values.
    pub fn floats(&self) -> Option<Vec<f64>> {
        (self.dtype != DType::Bool).then(|| (0..self.len()).map(|i| self.at(i).as_f64()).collect())
    }

    /// The one value that all elements have; none where they differ or there is none.
    pub fn uniform(&self) -> Option<Scalar> {
        let size = self.dtype.bytes() as usize;
        let first = self.bytes.get(..size)?;
        self.bytes.chunks_exact(size).all(|element| element == first).then(|| self.at(0))
    }

    /// The same elements in another shape.
    ///
    /// # Errors
    /// If the shape has another number of elements.
    pub fn reshaped(&self, shape: &[u64]) -> Result<Data, String> {
        Data::new(self.dtype, shape, self.bytes.clone())
    }
}

/// The value of a type nearest to a number; an integer towards zero, clamped.
pub(crate) fn scalar(dtype: DType, value: f64) -> Scalar {
    match dtype {
        DType::Bool => Scalar::bool(value != 0.0),
        _ if dtype.is_float() => Scalar::float(dtype, value),
        _ => {
            let (least, greatest) = dtype.int_range().unwrap_or_default();
            Scalar::int(dtype, (value as i128).clamp(least, greatest))
        }
    }
}
