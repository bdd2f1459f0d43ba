//! Arrays of callers: where their elements lie, and the kind of array that an answer should be.

use crate::dlpack::{Answer, CPU, Owned};
use crate::door::{Exchange, Fresh, Lent};
use crate::{door, dtype};
use cranefold::DType;
use numpy::npyffi::npy_intp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyTuple};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicI32, Ordering};

/// Extents or strides, of up to 6 axes without memory on the heap.
pub type Dims = SmallVec<[i64; 6]>;

/// The strides of an array in row-major order.
pub fn row_major(shape: &[i64]) -> Dims {
    let mut strides = Dims::from_elem(1, shape.len());
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1);
    }
    strides
}

/// The library whose array a caller has given, and takes an answer from.
#[derive(Clone)]
pub enum Kind<'py> {
    /// NumPy: also of what has the buffer protocol alone, and of Python's numbers and lists.
    NumPy,
    /// A library whose function takes an array by DLPack.
    Other(Bound<'py, PyAny>),
    /// A library with a table of C functions.
    Exchanged(Exchange),
}

/// The elements of an array.
pub struct View<'py> {
    /// The address of the element whose indices are all 0.
    pub data: *mut u8,
    pub dtype: DType,
    pub shape: Dims,
    /// Distances in elements; 0 along an axis of extent 1 or of an empty array.
    pub strides: Dims,
    pub writable: bool,
    pub kind: Kind<'py>,
    /// True if the elements are a copy, of Python's numbers or lists or of NumPy's scalars.
    pub is_copy: bool,
    /// The object that keeps the memory, if it is not the caller's own.
    _owner: Option<Bound<'py, PyAny>>,
}

/// The type of torch's tensors with the table of its functions, once one has been seen.
static TORCH: PyOnceLock<(Py<PyAny>, Exchange)> = PyOnceLock::new();

/// NumPy's number of bfloat16, once an array of it has been seen.
static BFLOAT16: AtomicI32 = AtomicI32::new(-1);

impl<'py> View<'py> {
    /// The elements of anything that has some.
    ///
    /// # Errors
    /// `TypeError` if it is no array of a dtype of ours, in memory of the CPU; `ValueError` if its strides are no whole
    /// elements.
    #[inline]
    pub fn of(object: &Bound<'py, PyAny>) -> PyResult<View<'py>> {
        if door::is_ndarray(object) {
            return View::of_ndarray(object, None);
        }
        match View::of_torch(object)? {
            Some(view) => Ok(view),
            None => View::of_other(object),
        }
    }

    /// The elements of a plain tensor of torch; `None` of anything else, and of tensors that are refused.
    #[inline]
    fn of_torch(object: &Bound<'py, PyAny>) -> PyResult<Option<View<'py>>> {
        let py = object.py();
        let is_torch = |known: &&(Py<PyAny>, Exchange)| known.0.as_ptr() == object.get_type().as_ptr();
        let Some((_, exchange)) = TORCH.get(py).filter(is_torch) else { return Ok(None) };
        if object.getattr(intern!(py, "requires_grad"))?.is_truthy()?
            || object.call_method0(intern!(py, "is_neg"))?.is_truthy()?
        {
            return Ok(None);
        }
        let Some(lent) = exchange.lent(object).filter(|lent| lent.device == CPU) else { return Ok(None) };
        let (code, bits, lanes) = lent.dtype;
        let dtype = dtype::of_dlpack(code, bits, lanes);
        Ok(dtype.map(|dtype| View::of_lent(lent, dtype, Kind::Exchanged(*exchange), None)))
    }

    /// The elements of a tensor of DLPack's.
    fn of_lent(lent: Lent, dtype: DType, kind: Kind<'py>, owner: Option<Bound<'py, PyAny>>) -> View<'py> {
        let any = lent.shape.iter().all(|&extent| extent > 0);
        let strides = lent.shape.iter().zip(&lent.strides);
        let strides = strides.map(|(&extent, &stride)| if extent > 1 && any { stride } else { 0 }).collect();
        View {
            data: lent.data,
            dtype,
            shape: lent.shape,
            strides,
            writable: lent.writable,
            kind,
            is_copy: false,
            _owner: owner,
        }
    }

    #[inline]
    fn of_ndarray(array: &Bound<'py, PyAny>, owner: Option<Bound<'py, PyAny>>) -> PyResult<View<'py>> {
        let fields = door::fields(array);
        let foreign = if cfg!(target_endian = "little") { b'>' } else { b'<' };
        let dtype = match dtype::of_numpy_number(fields.number) {
            Some(dtype) => dtype,
            None if fields.number == BFLOAT16.load(Ordering::Relaxed) => DType::Bf16,
            None => rare_dtype(array, fields.number)?,
        };
        if fields.byte_order == foreign {
            return Err(PyTypeError::new_err(format!(
                "dtype {} is in the byte order of another machine; pass x.astype(x.dtype.newbyteorder('='))",
                array.getattr("dtype")?.str()?
            )));
        }
        let mut view = View {
            data: fields.data,
            dtype,
            shape: fields.shape.iter().map(|&extent| extent as i64).collect(),
            strides: Dims::new(),
            writable: fields.writable,
            kind: Kind::NumPy,
            is_copy: false,
            _owner: owner,
        };
        let shift = dtype.bytes().trailing_zeros();
        let any = view.shape.iter().all(|&extent| extent > 0);
        for (&extent, &bytes) in view.shape.iter().zip(fields.strides) {
            let stride = if extent > 1 && any { bytes as i64 } else { 0 };
            if stride & ((1 << shift) - 1) != 0 {
                return Err(PyValueError::new_err(format!(
                    "a stride of {stride} bytes is no whole number of {} elements of {} bytes; pass x.copy()",
                    dtype::name(dtype),
                    dtype.bytes()
                )));
            }
            view.strides.push(stride >> shift);
        }
        Ok(view)
    }

    /// The elements of what is no plain `numpy.ndarray`.
    #[cold]
    fn of_other(object: &Bound<'py, PyAny>) -> PyResult<View<'py>> {
        let py = object.py();
        if door::is_ndarray_or_derived(object) {
            refuse_derived(object)?;
            return View::of_ndarray(object, None);
        }
        if object.hasattr("__dlpack__")? {
            return View::of_dlpack(object);
        }
        let numpy = py.import("numpy")?;
        let has_interface = object.hasattr("__array_interface__")? || object.hasattr("__array_struct__")?;
        let array = if has_interface || is_number_or_list(object) {
            numpy.call_method1("asarray", (object,))?
        } else if let Ok(memory) = py.import("builtins")?.call_method1("memoryview", (object,)) {
            numpy.call_method1("asarray", (memory,))?
        } else {
            return Err(no_array(object)?);
        };
        let mut view = View::of_ndarray(&array, Some(array.clone()))?;
        view.is_copy = is_number_or_list(object) || object.is_instance(&numpy.getattr("generic")?)?;
        Ok(view)
    }

    fn of_dlpack(object: &Bound<'py, PyAny>) -> PyResult<View<'py>> {
        let py = object.py();
        let kind = Kind::of(object)?;
        refuse_torch(object)?;
        let type_error = |error: PyErr| {
            let text = format!("{} gives no tensor by DLPack: {}", type_name(object), error.value(py));
            let refused = PyTypeError::new_err(text);
            refused.set_cause(py, Some(error));
            refused
        };
        let (device, number): (i32, i32) =
            object.call_method0("__dlpack_device__").and_then(|device| device.extract()).map_err(type_error)?;
        // 3 and 11 are memory of the host that is pinned for CUDA and ROCm.
        if ![CPU, 3, 11].contains(&device) {
            return Err(PyTypeError::new_err(format!(
                "the array is on device ({device}, {number}) of DLPack's, not on the CPU; move it there"
            )));
        }
        let versioned = PyDict::new(py);
        versioned.set_item("max_version", (1, 0))?;
        let capsule = match object.call_method("__dlpack__", (), Some(&versioned)) {
            Err(error) if error.is_instance_of::<PyTypeError>(py) => object.call_method0("__dlpack__"),
            answered => answered,
        }
        .map_err(type_error)?;
        let lent = door::lent(&capsule).map_err(type_error)?;
        let (code, bits, lanes) = lent.dtype;
        let dtype = dtype::of_dlpack(code, bits, lanes).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "dtype {} is not supported; the dtypes are {}",
                object.getattr("dtype").map_or("?".into(), |dtype| dtype.to_string()),
                dtype::ALL
            ))
        })?;
        Ok(View::of_lent(lent, dtype, kind, Some(capsule)))
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The range of addresses between the lowest element and the end of the highest.
    #[inline]
    pub fn span(&self) -> (*mut u8, usize) {
        if self.shape.contains(&0) {
            return (self.data, 0);
        }
        let (mut low, mut high) = (0, 0);
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            let far = (extent - 1) * stride;
            if far < 0 { low += far } else { high += far }
        }
        let size = self.dtype.bytes() as i64;
        (self.data.wrapping_offset((low * size) as isize), ((high - low + 1) * size) as usize)
    }
}

impl<'py> Kind<'py> {
    /// The library of an array that has DLPack.
    fn of(object: &Bound<'py, PyAny>) -> PyResult<Kind<'py>> {
        let py = object.py();
        let module = object.get_type().module()?.to_string();
        let module = match module.split('.').next().unwrap_or("") {
            "torch" => {
                let torch = py.import("torch")?;
                let tensor = torch.getattr("Tensor")?;
                if let Some(exchange) = door::exchange_of(&tensor) {
                    TORCH.get_or_init(py, || (tensor.unbind(), exchange));
                    return Ok(Kind::Exchanged(exchange));
                }
                torch.into_any()
            }
            "jax" | "jaxlib" => py.import("jax.dlpack")?.into_any(),
            _ if object.hasattr("__array_namespace__")? => object.call_method0("__array_namespace__")?,
            _ => return Ok(Kind::NumPy),
        };
        Ok(Kind::Other(module.getattr("from_dlpack")?))
    }

    /// A new array of this kind, whose elements are undefined.
    #[inline]
    pub fn new_array(&self, py: Python<'py>, dtype: DType, shape: &[npy_intp]) -> PyResult<New<'py>> {
        match self {
            Kind::NumPy => {
                let (array, data) = door::new_ndarray(py, shape, dtype::numpy_number(dtype))?;
                Ok(New { data, memory: Memory::NumPy(array) })
            }
            Kind::Other(take) => {
                let shape: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
                let mut owned = Owned::new(dtype, &shape)?;
                Ok(New { data: owned.data(), memory: Memory::Other(owned, take.clone()) })
            }
            Kind::Exchanged(exchange) => {
                let shape: Dims = shape.iter().map(|&extent| extent as i64).collect();
                let fresh = exchange.new_tensor(dtype, &shape)?;
                Ok(New { data: fresh.data(), memory: Memory::Exchanged(fresh) })
            }
        }
    }
}

/// A new array.
pub struct New<'py> {
    /// The address of its first element.
    pub data: *mut u8,
    memory: Memory<'py>,
}

enum Memory<'py> {
    NumPy(Bound<'py, PyAny>),
    Other(Owned, Bound<'py, PyAny>),
    Exchanged(Fresh),
}

impl<'py> New<'py> {
    /// The array as its library has it.
    #[inline]
    pub fn finish(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.memory {
            Memory::NumPy(array) => door::scalar_or_array(array),
            Memory::Exchanged(fresh) => fresh.into_object(py),
            Memory::Other(owned, take) => take.call1((Bound::new(py, Answer::new(owned))?,)),
        }
    }
}

/// The element type of an array that is none of NumPy's own: bfloat16 of `ml_dtypes`.
#[cold]
fn rare_dtype(array: &Bound<'_, PyAny>, number: i32) -> PyResult<DType> {
    let dtype = array.getattr("dtype")?;
    if dtype.getattr("name")?.to_string() == "bfloat16" && number >= 256 {
        BFLOAT16.store(number, Ordering::Relaxed);
        return Ok(DType::Bf16);
    }
    Err(PyTypeError::new_err(format!("dtype {} is not supported; the dtypes are {}", dtype.str()?, dtype::ALL)))
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().fully_qualified_name().map_or_else(|_| "?".into(), |name| name.to_string())
}

/// Refuses the classes derived from `numpy.ndarray` whose elements mean something else.
fn refuse_derived(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let numpy = object.py().import("numpy")?;
    if object.is_instance(&numpy.getattr("ma")?.getattr("MaskedArray")?)? {
        return Err(PyTypeError::new_err("a masked array is not supported; pass x.data and where=~x.mask"));
    }
    if object.is_instance(&numpy.getattr("matrix")?)? {
        return Err(PyTypeError::new_err("numpy.matrix is not supported; pass numpy.asarray(x)"));
    }
    Ok(())
}

/// Refuses tensors of torch whose elements are not those in memory, or whose history would be lost.
fn refuse_torch(object: &Bound<'_, PyAny>) -> PyResult<()> {
    if !object.get_type().module()?.to_string().starts_with("torch") {
        return Ok(());
    }
    let is = |name: &str| object.getattr(name).is_ok_and(|value| value.is_truthy().unwrap_or(false));
    let calls = |name: &str| object.call_method0(name).is_ok_and(|value| value.is_truthy().unwrap_or(false));
    let refused = |text: &str| Err(PyTypeError::new_err(text.to_string()));
    if is("requires_grad") {
        return refused("the tensor requires gradients, which are not computed; pass x.detach()");
    }
    if calls("is_conj") {
        return refused("the tensor is a conjugate view; pass x.resolve_conj()");
    }
    if calls("is_neg") {
        return refused("the tensor is a negated view; pass x.resolve_neg()");
    }
    Ok(())
}

fn is_number_or_list(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyBool>()
        || object.is_instance_of::<PyComplex>()
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
}

/// The exception of an object that is no array.
fn no_array(object: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let name = type_name(object);
    let remedy = match object.hasattr("to_numpy")? {
        true => "; pass x.to_numpy()",
        false if object.hasattr("toarray")? => "; pass x.toarray()",
        false => "",
    };
    Ok(PyTypeError::new_err(format!("{name} is no array: it has neither DLPack nor the buffer protocol{remedy}")))
}
