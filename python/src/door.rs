//! The only file of unsafe code that reads arrays of others: NumPy's objects, DLPack's capsules, memory by address.
//!
//! Strides are in elements and addresses in bytes, as everywhere. An address that leaves this file is that of the lowest
//! element of an array, whose span was computed from its shape and strides; the object that owns it is held meanwhile.
#![allow(unsafe_code, reason = "reads and writes the memory of arrays that Python owns")]

use crate::dlpack::{
    CPU, DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor, EXCHANGE, ExchangeApi, LEGACY,
    USED_LEGACY, VERSIONED,
};
use crate::view::{Dims, row_major};
use crate::work::Work;
use cranefold::{CallError, DType, Executor, Input, Kernel, Output};
use numpy::PY_ARRAY_API;
use numpy::npyffi::{NpyTypes, PyArrayObject, get_type_object, npy_intp};
use pyo3::exceptions::{PyBufferError, PyMemoryError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::CStr;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicPtr, Ordering};

/// NumPy's flag of an array that may be written.
const WRITEABLE: i32 = 0x0400;

/// The value behind a pointer that is null, or leaked and never freed.
pub fn leaked<T>(pointer: &AtomicPtr<T>) -> Option<&'static T> {
    // SAFETY: `engine` alone stores into such pointers, and stores leaked boxes.
    unsafe { pointer.load(Ordering::Acquire).as_ref() }
}

/// The parts of a `numpy.ndarray`.
pub struct Fields<'a> {
    pub data: *mut u8,
    pub shape: &'a [npy_intp],
    /// Distances in bytes.
    pub strides: &'a [npy_intp],
    pub number: i32,
    pub byte_order: u8,
    pub writable: bool,
}

/// Returns true if the object is a `numpy.ndarray` and of no class derived from it.
#[inline]
pub fn is_ndarray(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: NumPy's table of functions has this type, and the interpreter is attached.
    unsafe { object.get_type_ptr() == get_type_object(object.py(), NpyTypes::PyArray_Type) }
}

/// Returns true if the object is a `numpy.ndarray` or of a class derived from it.
pub fn is_ndarray_or_derived(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: as above.
    unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), get_type_object(object.py(), NpyTypes::PyArray_Type)) != 0 }
}

/// The parts of an array, which [`is_ndarray_or_derived`] has seen; they stay as long as it is not resized.
#[inline]
pub fn fields<'a>(array: &'a Bound<'_, PyAny>) -> Fields<'a> {
    debug_assert!(is_ndarray_or_derived(array));
    // SAFETY: the object is a NumPy array, whose fields NumPy's ABI fixes; its shape and strides have `nd` numbers each, and
    // are no pointers where `nd` is 0.
    unsafe {
        let fields = &(*array.as_ptr().cast::<PyArrayObject>()).fields;
        let descr = &(*fields.descr).fields;
        let rank = usize::try_from(fields.nd).unwrap_or(0);
        let list = |start: *mut npy_intp| if rank == 0 { &[][..] } else { std::slice::from_raw_parts(start, rank) };
        Fields {
            data: fields.data.cast(),
            shape: list(fields.dimensions),
            strides: list(fields.strides),
            number: descr.type_num,
            byte_order: descr.byteorder as u8,
            writable: fields.flags & WRITEABLE != 0,
        }
    }
}

/// A new array of a shape, in row-major order, whose elements are undefined, and the address of its elements.
///
/// # Errors
/// `MemoryError` if there is no memory.
#[inline]
pub fn new_ndarray<'py>(
    py: Python<'py>,
    shape: &[npy_intp],
    number: Option<i32>,
) -> PyResult<(Bound<'py, PyAny>, *mut u8)> {
    // SAFETY: NumPy copies the shape; the functions give a new reference or null with an exception set. `NewFromDescr` and
    // `Empty` take the reference of the type that is given to them.
    unsafe {
        let descr = match number {
            Some(number) => PY_ARRAY_API.PyArray_DescrFromType(py, number),
            None => crate::dtype::numpy_bfloat16(py)?.clone().into_ptr().cast(),
        };
        let rank = shape.len() as i32;
        let kind = get_type_object(py, NpyTypes::PyArray_Type);
        let null = std::ptr::null_mut();
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            kind,
            descr,
            rank,
            shape.as_ptr().cast_mut(),
            null,
            null.cast(),
            0,
            null.cast(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        let data = (*array.as_ptr().cast::<PyArrayObject>()).fields.data;
        Ok((array, data.cast()))
    }
}

/// The scalar of an array of rank 0, and any other array itself, as NumPy's functions answer.
#[inline]
pub fn scalar_or_array<'py>(array: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    // SAFETY: the function takes the reference of a NumPy array and gives a new one, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, PY_ARRAY_API.PyArray_Return(py, array.into_ptr().cast())) }
}

/// A tensor of DLPack's, with its flag of memory that may only be read.
pub struct Lent {
    pub data: *mut u8,
    pub shape: Dims,
    pub strides: Dims,
    pub device: i32,
    pub dtype: (u8, u8, u16),
    pub writable: bool,
}

/// The tensor in a capsule of DLPack's, which keeps its memory as long as it lives.
///
/// # Errors
/// `BufferError` if the capsule holds none.
pub fn lent(capsule: &Bound<'_, PyAny>) -> PyResult<Lent> {
    let read = |name: &CStr| {
        // SAFETY: the calls check that the object is a capsule of this name.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
                return std::ptr::null_mut();
            }
            ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr())
        }
    };
    // SAFETY: a capsule of this name points to such a tensor, by the protocol.
    if let Some(tensor) = unsafe { read(LEGACY).cast::<DLManagedTensor>().as_ref() } {
        return Ok(tensor_of(&tensor.dl_tensor, true));
    }
    // SAFETY: as above.
    let tensor = unsafe { read(VERSIONED).cast::<DLManagedTensorVersioned>().as_ref() };
    let tensor = tensor.ok_or_else(|| PyBufferError::new_err("`__dlpack__` gave no capsule of a tensor"))?;
    if tensor.version.major != 1 {
        let major = tensor.version.major;
        return Err(PyBufferError::new_err(format!("DLPack {major} is not supported; the versions are 0 and 1")));
    }
    Ok(tensor_of(&tensor.dl_tensor, tensor.flags & 1 == 0))
}

fn tensor_of(tensor: &DLTensor, writable: bool) -> Lent {
    let rank = usize::try_from(tensor.ndim).unwrap_or(0);
    let list = |start: *mut i64| match rank == 0 || start.is_null() {
        true => None,
        // SAFETY: by the protocol shape and strides have `ndim` numbers; strides may be null, and mean row-major order.
        false => Some(Dims::from_slice(unsafe { std::slice::from_raw_parts(start, rank) })),
    };
    let shape = list(tensor.shape).unwrap_or_default();
    Lent {
        data: tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize),
        strides: list(tensor.strides).unwrap_or_else(|| row_major(&shape)),
        shape,
        device: tensor.device.device_type,
        dtype: (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes),
        writable,
    }
}

/// A library's table of C functions, and the type of its arrays.
#[derive(Clone, Copy)]
pub struct Exchange(&'static ExchangeApi);

// SAFETY: the table is constant, and its functions may be called by any thread that is attached to the interpreter.
unsafe impl Send for Exchange {}
// SAFETY: as above.
unsafe impl Sync for Exchange {}

/// The table of a type; `None` if it has none that this module knows.
pub fn exchange_of(kind: &Bound<'_, PyAny>) -> Option<Exchange> {
    let capsule = kind.getattr("__dlpack_c_exchange_api__").ok()?;
    // SAFETY: the calls check that the object is a capsule of this name, which by the protocol points to such a table, and
    // the table lives as long as the process.
    let api = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), EXCHANGE.as_ptr()) == 0 {
            return None;
        }
        ffi::PyCapsule_GetPointer(capsule.as_ptr(), EXCHANGE.as_ptr()).cast::<ExchangeApi>().as_ref()?
    };
    let is_whole = api.version.major == 1 && api.allocate.is_some() && api.give.is_some() && api.describe.is_some();
    is_whole.then_some(Exchange(api))
}

impl Exchange {
    /// The tensor of an object of the table's type; `None` if the library refuses.
    #[inline]
    pub fn lent(self, object: &Bound<'_, PyAny>) -> Option<Lent> {
        let mut tensor = DLTensor {
            data: std::ptr::null_mut(),
            device: DLDevice { device_type: 0, device_id: 0 },
            ndim: 0,
            dtype: DLDataType { code: 0, bits: 0, lanes: 0 },
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        // SAFETY: the object is of the type whose table this is, and the interpreter is attached. The shape and strides that
        // the call gives are the object's, which the caller holds.
        unsafe {
            if self.0.describe?(object.as_ptr().cast(), &mut tensor) != 0 {
                ffi::PyErr_Clear();
                return None;
            }
        }
        Some(tensor_of(&tensor, true))
    }

    /// A new tensor in row-major order, whose elements are undefined.
    ///
    /// # Errors
    /// `MemoryError` if the library gives none.
    pub fn new_tensor(self, dtype: DType, shape: &[i64]) -> PyResult<Fresh> {
        /// Ignores the library's message.
        unsafe extern "C" fn ignore(_: *mut std::ffi::c_void, _: *const std::ffi::c_char, _: *const std::ffi::c_char) {}
        let refused = || PyMemoryError::new_err(format!("the library gives no array of shape {shape:?}"));
        let mut prototype = DLTensor {
            data: std::ptr::null_mut(),
            device: DLDevice { device_type: CPU, device_id: 0 },
            ndim: shape.len() as i32,
            dtype: DLDataType { code: crate::dtype::dlpack_code(dtype), bits: dtype.bytes() as u8 * 8, lanes: 1 },
            shape: shape.as_ptr().cast_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        let mut tensor = std::ptr::null_mut();
        let allocate = self.0.allocate.ok_or_else(refused)?;
        // SAFETY: the prototype's shape is read alone; a result of 0 says that `tensor` is one.
        let result = unsafe { allocate(&mut prototype, &mut tensor, std::ptr::null_mut(), ignore) };
        match result == 0 && !tensor.is_null() {
            true => Ok(Fresh { tensor, exchange: self }),
            false => Err(refused()),
        }
    }
}

/// A new tensor of a library, which no object owns.
pub struct Fresh {
    tensor: *mut DLManagedTensorVersioned,
    exchange: Exchange,
}

impl Fresh {
    /// The address of the first element.
    pub fn data(&self) -> *mut u8 {
        // SAFETY: the tensor is alive until it is given away.
        let tensor = unsafe { &(*self.tensor).dl_tensor };
        tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize)
    }

    /// The tensor as the library's object.
    ///
    /// # Errors
    /// That of the library.
    pub fn into_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let this = ManuallyDrop::new(self);
        let mut object = std::ptr::null_mut();
        let give = this.exchange.0.give.ok_or_else(|| PyBufferError::new_err("the library takes no tensor"))?;
        // SAFETY: the tensor is alive and not used again; the call gives a new reference, or sets an exception.
        unsafe {
            if give(this.tensor, &mut object) != 0 {
                return Err(PyErr::fetch(py));
            }
            Bound::from_owned_ptr_or_err(py, object.cast())
        }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // SAFETY: the tensor is alive and not used again.
        unsafe {
            if let Some(deleter) = (*self.tensor).deleter {
                deleter(self.tensor);
            }
        }
    }
}

/// A capsule of a tensor, which frees it unless a consumer takes it.
///
/// # Errors
/// `MemoryError` if there is no memory.
pub fn capsule_of(py: Python<'_>, tensor: Box<DLManagedTensor>) -> PyResult<Py<PyAny>> {
    /// Frees the tensor of a capsule that no consumer has renamed.
    unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
        // SAFETY: Python gives the capsule made below; of an unused one the name is unchanged and the tensor alive.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule, USED_LEGACY.as_ptr()) == 0
                && ffi::PyCapsule_IsValid(capsule, LEGACY.as_ptr()) != 0
            {
                let tensor = ffi::PyCapsule_GetPointer(capsule, LEGACY.as_ptr()).cast::<DLManagedTensor>();
                if let Some(deleter) = (*tensor).deleter {
                    deleter(tensor);
                }
            }
        }
    }
    let tensor = Box::into_raw(tensor);
    // SAFETY: the pointer is that of a tensor alive, and the name is static.
    let capsule = unsafe { ffi::PyCapsule_New(tensor.cast(), LEGACY.as_ptr(), Some(destroy)) };
    // SAFETY: the call gives a new reference, or null with an exception set.
    let capsule = unsafe { Bound::from_owned_ptr_or_opt(py, capsule) };
    let Some(capsule) = capsule else {
        // SAFETY: no capsule has taken the box.
        drop(unsafe { Box::from_raw(tensor) });
        return Err(PyMemoryError::new_err("there is no memory for a capsule"));
    };
    Ok(capsule.unbind())
}

/// Frees a tensor that [`capsule_of`] has given away.
pub unsafe extern "C" fn free_tensor(tensor: *mut DLManagedTensor) {
    // SAFETY: the protocol calls this once, on the box of `capsule_of`, whose context is the box of its memory.
    unsafe {
        let tensor = Box::from_raw(tensor);
        drop(Box::from_raw(tensor.manager_ctx.cast::<crate::dlpack::Owned>()));
    }
}

/// The bytes at the address of an array that is read.
#[inline]
pub fn bytes<'a>(lowest: *const u8, bytes: usize) -> &'a [u8] {
    let start = if bytes == 0 { std::ptr::NonNull::dangling().as_ptr() } else { lowest };
    // SAFETY: the span was computed from the shape and strides of an array that the caller holds, and starts at its lowest
    // element. That nobody writes into it meanwhile is up to the caller's threads, as with NumPy; what reads then finds some
    // value, as no operation depends on one being valid.
    unsafe { std::slice::from_raw_parts(start, bytes) }
}

/// The bytes at the address of an array that is written.
#[inline]
pub fn bytes_mut<'a>(lowest: *mut u8, bytes: usize) -> &'a mut [u8] {
    let start = if bytes == 0 { std::ptr::NonNull::dangling().as_ptr() } else { lowest };
    // SAFETY: as above, of an array that may be written; it overlaps no other buffer, which `call` checks for arrays of
    // callers, and others are new.
    unsafe { std::slice::from_raw_parts_mut(start, bytes) }
}

/// The elements at an address as an input.
#[inline]
pub fn input<'a>(dtype: DType, lowest: *const u8, bytes: usize) -> Input<'a> {
    Input::from_bytes(dtype, self::bytes(lowest, bytes))
}

/// The elements at an address as an output.
#[inline]
pub fn output<'a>(dtype: DType, lowest: *mut u8, bytes: usize) -> Output<'a> {
    Output::from_bytes(dtype, bytes_mut(lowest, bytes))
}

/// A value that goes along while the interpreter is detached.
struct Along<T>(T);

// SAFETY: the value is used by the thread that made it; detaching moves it to no other.
unsafe impl<T> Send for Along<T> {}

/// Runs a kernel; other Python threads run meanwhile if the work may be long.
#[inline]
pub fn run(
    py: Python<'_>,
    work: &Work,
    kernel: &Kernel,
    executor: Option<&dyn Executor>,
    inputs: &[Input<'_>],
    outputs: &mut [Output<'_>],
) -> Result<(), CallError> {
    let run = |inputs: &[Input<'_>], outputs: &mut [Output<'_>]| match executor {
        Some(executor) => kernel.run_on(executor, inputs, outputs),
        None => kernel.run(inputs, outputs),
    };
    if !work.is_long() {
        return run(inputs, outputs);
    }
    let along = Along((inputs, outputs));
    py.detach(move || {
        let along = along;
        let Along((inputs, outputs)) = along;
        work.note(|| run(inputs, outputs))
    })
}
