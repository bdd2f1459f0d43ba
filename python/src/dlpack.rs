//! DLPack's structures, and answers that libraries take by it.
//!
//! The layouts are those of `dlpack.h`, version 1.

use crate::door;
use crate::view::row_major;
use cranefold::DType;
use pyo3::exceptions::{PyBufferError, PyMemoryError};
use pyo3::prelude::*;
use std::ffi::{CStr, c_char, c_int, c_void};

/// The name of a capsule of a [`DLManagedTensor`].
pub const LEGACY: &CStr = c"dltensor";
/// Its name once a consumer has taken the tensor.
pub const USED_LEGACY: &CStr = c"used_dltensor";
/// The name of a capsule of a [`DLManagedTensorVersioned`].
pub const VERSIONED: &CStr = c"dltensor_versioned";

/// DLPack's number of the CPU as a device.
pub const CPU: i32 = 1;

/// A device.
#[repr(C)]
pub struct DLDevice {
    pub device_type: i32,
    pub device_id: i32,
}

/// An element type.
#[repr(C)]
pub struct DLDataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

/// A tensor whose memory another object owns; strides are in elements.
#[repr(C)]
pub struct DLTensor {
    pub data: *mut c_void,
    pub device: DLDevice,
    pub ndim: i32,
    pub dtype: DLDataType,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

/// A tensor with the function that frees it.
#[repr(C)]
pub struct DLManagedTensor {
    pub dl_tensor: DLTensor,
    pub manager_ctx: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// A version of DLPack.
#[repr(C)]
pub struct DLPackVersion {
    pub major: u32,
    pub minor: u32,
}

/// A tensor with a version and flags, of which bit 0 forbids to write.
#[repr(C)]
pub struct DLManagedTensorVersioned {
    pub version: DLPackVersion,
    pub manager_ctx: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    pub flags: u64,
    pub dl_tensor: DLTensor,
}

/// The table of C functions by which a library exchanges tensors without Python's calls; a type has it as the capsule
/// `__dlpack_c_exchange_api__`.
#[repr(C)]
pub struct ExchangeApi {
    pub version: DLPackVersion,
    pub older: *const c_void,
    /// Makes a tensor of a prototype's shape and type.
    pub allocate: Option<
        unsafe extern "C" fn(
            *mut DLTensor,
            *mut *mut DLManagedTensorVersioned,
            *mut c_void,
            unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char),
        ) -> c_int,
    >,
    pub take: *const c_void,
    /// Makes a Python object of a tensor, which it then owns.
    pub give: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned, *mut *mut c_void) -> c_int>,
    /// Describes the tensor of a Python object, which still owns it; null where a library has no such function.
    pub describe: Option<unsafe extern "C" fn(*mut c_void, *mut DLTensor) -> c_int>,
    pub stream: *const c_void,
}

/// The name of a capsule of an [`ExchangeApi`].
pub const EXCHANGE: &CStr = c"dlpack_exchange_api";

/// A line of memory, at whose start elements of any type and of any vector may stand.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; 64],
}

/// The memory of an answer, with its shape and strides.
pub struct Owned {
    lines: Vec<Line>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    dtype: DType,
}

impl Owned {
    /// Memory for an array of this shape in row-major order, zeroed.
    ///
    /// # Errors
    /// `MemoryError` if there is none.
    pub fn new(dtype: DType, shape: &[i64]) -> PyResult<Owned> {
        let elems: i64 = shape.iter().product();
        let lines_needed = (elems as usize * dtype.bytes() as usize).div_ceil(64).max(1);
        let mut lines = vec![];
        let refused = |_| PyMemoryError::new_err(format!("there is no memory for an array of shape {shape:?}"));
        lines.try_reserve_exact(lines_needed).map_err(refused)?;
        lines.resize(lines_needed, Line { _bytes: [0; 64] });
        Ok(Owned { lines, shape: shape.to_vec(), strides: row_major(shape).to_vec(), dtype })
    }

    /// The address of the first element.
    pub fn data(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }
}

/// An array that a library takes by DLPack, once.
#[pyclass(module = "cranefold._core")]
pub struct Answer(Option<Owned>);

impl Answer {
    /// An answer in this memory.
    pub fn new(owned: Owned) -> Answer {
        Answer(Some(owned))
    }
}

#[pymethods]
impl Answer {
    /// The capsule of the tensor, whose memory the consumer then owns.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__(
        &mut self,
        py: Python<'_>,
        stream: Option<Py<PyAny>>,
        max_version: Option<Py<PyAny>>,
        dl_device: Option<Py<PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        let _ = (stream, max_version, dl_device, copy);
        let owned = self.0.take().ok_or_else(|| PyBufferError::new_err("the answer has been taken"))?;
        let (code, bits) = (crate::dtype::dlpack_code(owned.dtype), owned.dtype.bytes() as u8 * 8);
        let mut owned = Box::new(owned);
        let dl_tensor = DLTensor {
            data: owned.data().cast(),
            device: DLDevice { device_type: CPU, device_id: 0 },
            ndim: owned.shape.len() as i32,
            dtype: DLDataType { code, bits, lanes: 1 },
            shape: owned.shape.as_mut_ptr(),
            strides: owned.strides.as_mut_ptr(),
            byte_offset: 0,
        };
        let manager_ctx = Box::into_raw(owned).cast();
        door::capsule_of(py, Box::new(DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(door::free_tensor) }))
    }

    /// The device of the memory: the CPU.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (CPU, 0)
    }
}
