//! The values of a tensor message: raw bytes, typed lists, or data outside of the model.

use super::messages::Tensor;
use super::wire::{Field, Fields, WireError};
use crate::front::native;
use cranefold_spec::DType;

/// A fault of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// An element type that the library does not have.
    #[error("element type {0} is none of the library's")]
    Type(&'static str),
    /// A dim below 0.
    #[error("dim {0} is below 0")]
    NegativeDim(i64),
    /// More elements than memory could hold.
    #[error("the shape {0:?} has too many elements")]
    TooLarge(Vec<i64>),
    /// Another number of values than the shape says.
    #[error("the shape {dims:?} of {dtype} needs {needed} {unit} and the tensor has {found}")]
    Length {
        /// The shape.
        dims: Vec<i64>,
        /// The element type.
        dtype: DType,
        /// The values that it needs.
        needed: u64,
        /// The values that are there.
        found: u64,
        /// Bytes or values.
        unit: &'static str,
    },
    /// A value beyond the range of the element type.
    #[error("value {value} is out of range for {dtype}")]
    Range {
        /// The value.
        value: i64,
        /// The element type.
        dtype: DType,
    },
    /// A fault of the message.
    #[error("{0}")]
    Wire(#[from] WireError),
    /// External data without a place, or with a place outside of the model's folder.
    #[error("external data: {0}")]
    External(String),
}

/// A range of a file beside the model, in which values of a tensor lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct External {
    /// The path of the file from the model's folder, in which it lies: relative, with `/`, and without `..`.
    pub location: String,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes that the shape and the type of the tensor need.
    pub bytes: u64,
}

/// The name of an element type of ONNX that the library does not have.
pub(crate) fn type_name(data_type: i64) -> &'static str {
    const NAMES: [&str; 29] = [
        "undefined",
        "float",
        "uint8",
        "int8",
        "uint16",
        "int16",
        "int32",
        "int64",
        "string",
        "bool",
        "float16",
        "double",
        "uint32",
        "uint64",
        "complex64",
        "complex128",
        "bfloat16",
        "float8e4m3fn",
        "float8e4m3fnuz",
        "float8e5m2",
        "float8e5m2fnuz",
        "uint4",
        "int4",
        "float4e2m1",
        "float8e8m0",
        "uint2",
        "int2",
        "float6e2m3",
        "float6e3m2",
    ];
    usize::try_from(data_type).ok().and_then(|at| NAMES.get(at).copied()).unwrap_or("unknown")
}

/// The element type of a number of `TensorProto.DataType`.
pub(crate) fn dtype(data_type: i64) -> Result<DType, TensorError> {
    Ok(match data_type {
        1 => DType::F32,
        2 => DType::U8,
        3 => DType::I8,
        4 => DType::U16,
        5 => DType::I16,
        6 => DType::I32,
        7 => DType::I64,
        9 => DType::Bool,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::U32,
        13 => DType::U64,
        16 => DType::Bf16,
        _ => return Err(TensorError::Type(type_name(data_type))),
    })
}

impl Tensor<'_> {
    /// The shape and the number of elements, which fits memory.
    pub fn shape(&self) -> Result<(Vec<u64>, u64), TensorError> {
        let mut shape = Vec::with_capacity(self.dims.len());
        for &dim in &self.dims {
            shape.push(u64::try_from(dim).map_err(|_| TensorError::NegativeDim(dim))?);
        }
        let count = match shape.contains(&0) {
            true => Some(0),
            false => shape.iter().try_fold(1u64, |count, &dim| count.checked_mul(dim)),
        };
        match count {
            Some(count) if count < 1 << 48 => Ok((shape, count)),
            _ => Err(TensorError::TooLarge(self.dims.clone())),
        }
    }

    /// The place of external data, checked: it is relative and leads to no folder above.
    pub fn external(&self) -> Result<External, TensorError> {
        let (dtype, (_, count)) = (dtype(self.data_type)?, self.shape()?);
        let bytes = count * dtype.bytes();
        let fault = |text: String| Err(TensorError::External(text));
        let (mut location, mut offset, mut length) = (None, 0, None);
        for &(key, value) in &self.entries {
            let number = || {
                value.parse::<u64>().map_err(|_| match value.parse::<i64>() {
                    Ok(number) => TensorError::External(format!("{key} {number} is below 0")),
                    Err(_) => TensorError::External(format!("{key} {value:?} is no number")),
                })
            };
            match key {
                "location" => location = Some(value),
                "offset" => offset = number()?,
                "length" => length = Some(number()?),
                _ => {}
            }
        }
        let Some(location) = location else { return fault("there is no location".into()) };
        let is_inside = !location.is_empty()
            && location.len() <= 4096
            && !location.contains(['\\', ':', '\0'])
            && location.split('/').all(|part| part != ".." && !part.is_empty());
        if !is_inside {
            return fault(format!("the location {location:?} is not a path inside of the model's folder"));
        }
        match length {
            Some(length) if length != bytes => fault(format!("length {length} where the shape needs {bytes} bytes")),
            _ if offset.checked_add(bytes).is_none() => fault(format!("offset {offset} is too large")),
            _ => Ok(External { location: location.into(), offset, bytes }),
        }
    }

    /// The elements as the machine's bytes, of a tensor whose data is not external.
    pub fn bytes(&self) -> Result<Vec<u8>, TensorError> {
        let (dtype, (_, count)) = (dtype(self.data_type)?, self.shape()?);
        let length = |needed: u64, found: u64, unit: &'static str| {
            Err(TensorError::Length { dims: self.dims.clone(), dtype, needed, found, unit })
        };
        if let Some(raw) = self.raw {
            let needed = count * dtype.bytes();
            return match raw.len() as u64 == needed {
                true => Ok(native(dtype, raw)),
                false => length(needed, raw.len() as u64, "bytes"),
            };
        }
        let (mut bytes, mut found, mut wrong) = (vec![], 0u64, None);
        let mut fields = Fields::of(self.message);
        while let Some(field) = fields.next()? {
            self.typed(dtype, &field, |element| {
                found += 1;
                if found <= count {
                    match element {
                        Ok(element) => bytes.extend_from_slice(&element.to_ne_bytes()[range(dtype)]),
                        Err(value) => wrong = Some(TensorError::Range { value, dtype }),
                    }
                }
            })?;
        }
        match wrong {
            Some(error) => Err(error),
            None if found != count => length(count, found, "values"),
            None => Ok(bytes),
        }
    }

    /// Calls `each` with the bits of every element in the field, or with an integer that is none.
    fn typed(&self, dtype: DType, field: &Field, mut each: impl FnMut(Result<u64, i64>)) -> Result<(), WireError> {
        let in_range = |value: i64, least: i64, most: i64| match (least..=most).contains(&value) {
            true => Ok(value as u64),
            false => Err(value),
        };
        match (field.number, dtype) {
            (4, DType::F32) => field.floats(|value| {
                each(Ok(u64::from(value.to_bits())));
                Ok(())
            }),
            (10, DType::F64) => field.doubles(|value| {
                each(Ok(value.to_bits()));
                Ok(())
            }),
            (7, DType::I64) | (11, DType::U64) => field.ints(|value| {
                each(Ok(value as u64));
                Ok(())
            }),
            (11, DType::U32) => field.ints(|value| {
                each(in_range(value, 0, i64::from(u32::MAX)));
                Ok(())
            }),
            (5, _) => {
                let (least, most) = match dtype {
                    DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
                    DType::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
                    DType::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
                    DType::U8 => (0, i64::from(u8::MAX)),
                    DType::Bool => (0, 1),
                    DType::U16 | DType::F16 | DType::Bf16 => (0, i64::from(u16::MAX)),
                    _ => return Ok(()),
                };
                field.ints(|value| {
                    each(in_range(value, least, most));
                    Ok(())
                })
            }
            _ => Ok(()),
        }
    }
}

/// The bytes of a word of 64 bits that hold an element.
fn range(dtype: DType) -> std::ops::Range<usize> {
    let size = dtype.bytes() as usize;
    match cfg!(target_endian = "big") {
        true => 8 - size..8,
        false => 0..size,
    }
}
