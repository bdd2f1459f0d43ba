//! The extension module of the Python package `cranefold`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`function`] | the functions as regions: text by the element types of a call |
//! | [`call`] | keys and plans of calls, and the path of a warm one |
//! | [`select`] | medians and quantiles that leave NaN out |
//! | [`kernel`] | kernels of specs and regions, `reduce` without shapes |
//! | [`partial`] | states of chunks of larger arrays |
//! | [`view`], [`dtype`], [`dlpack`] | arrays of NumPy and of what speaks DLPack |
//! | [`engine`] | the compiler of this process and its threads |
//! | [`work`] | the time of a kernel's first calls, by which other Python threads run meanwhile |
//! | [`error`] | exceptions |
//! | [`door`] | the unsafe code |
//!
//! The package's Python files give these functions their signatures and documentation.

mod call;
mod dlpack;
mod door;
mod dtype;
mod engine;
mod error;
mod function;
mod kernel;
mod partial;
mod select;
mod view;
mod work;

use call::Arguments;
use engine::Engine;
use function::Function;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};

/// Calls a function by its number. `order` is "logical" or "memory".
#[pyfunction]
#[pyo3(signature = (function, x, axis, keepdims, order, dtype=None, out=None, initial=None, r#where=None,
                    parameter=None, second=None, skips_nan=false, weight=None, bias=None, /))]
#[allow(clippy::too_many_arguments, reason = "Python's arguments are passed on as they come")]
fn apply<'py>(
    py: Python<'py>,
    function: usize,
    x: &Bound<'py, PyAny>,
    axis: Option<&Bound<'py, PyAny>>,
    keepdims: &Bound<'py, PyAny>,
    order: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    initial: Option<&Bound<'py, PyAny>>,
    r#where: Option<&Bound<'py, PyAny>>,
    parameter: Option<&Bound<'py, PyAny>>,
    second: Option<&Bound<'py, PyAny>>,
    skips_nan: bool,
    weight: Option<&Bound<'py, PyAny>>,
    bias: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let function = *Function::ALL.get(function).ok_or_else(|| PyValueError::new_err("no function of that number"))?;
    let in_memory_order = match order.cast::<PyString>() {
        Ok(order) => order_of(order.to_str()?)?,
        Err(_) => return Err(PyTypeError::new_err(format!("order is {}, not a string", order.repr()?))),
    };
    let keepdims = flag("keepdims", keepdims)?;
    let others = [weight, bias];
    let parameter = number(function.parameter(), parameter, 0.0)?;
    let second = number("ord", second, 2.0)?;
    let given = Arguments {
        function,
        skips_nan,
        x,
        axis,
        keepdims,
        dtype,
        out,
        initial,
        mask: r#where,
        parameter,
        second,
        in_memory_order,
        others,
    };
    error::guarded(|| call::call(py, &given))
}

/// An argument that is true or false; as with NumPy, integers are taken too.
#[inline]
fn flag(name: &str, given: &Bound<'_, PyAny>) -> PyResult<bool> {
    match given.extract::<bool>() {
        Err(_) if given.is_instance_of::<PyInt>() => given.is_truthy(),
        Err(_) => Err(PyTypeError::new_err(format!("{name} is {}, not a bool", given.repr()?))),
        known => Ok(known?),
    }
}

/// An argument that is a number.
#[inline]
fn number(name: &str, given: Option<&Bound<'_, PyAny>>, default: f64) -> PyResult<f64> {
    let Some(given) = given else { return Ok(default) };
    given.extract().map_err(|error| error::of_argument(given.py(), name, error))
}

/// The text of a function for elements of a dtype, without operands: an op, or the body of a region; and true if floats
/// accumulate in float64 though no element is one.
#[pyfunction]
#[pyo3(signature = (function, dtype, parameter=0.0, skips_nan=false, result=None, /))]
fn body(
    function: usize,
    dtype: &Bound<'_, PyAny>,
    parameter: f64,
    skips_nan: bool,
    result: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, bool)> {
    let function = *Function::ALL.get(function).ok_or_else(|| PyValueError::new_err("no function of that number"))?;
    let asked = function::Asked {
        function,
        skips_nan,
        // Nothing looks at the positions afterwards.
        finds_infinities: true,
        dtype: dtype::asked(dtype)?,
        result: result.map(dtype::asked).transpose()?,
        has_mask: false,
        has_initial: false,
        parameter,
        second: 2.0,
        others: [None, None],
        count: 1,
    };
    let text = asked.text()?;
    let outputs: Vec<&str> = text.outputs.iter().map(|(value, _)| value.as_str()).collect();
    let region = || format!("{}{}", text.definitions, outputs.join(", "));
    Ok((text.row.map_or_else(region, |row| row.to_string()), text.in_f64))
}

/// Returns true for "memory", false for "logical".
fn order_of(order: &str) -> PyResult<bool> {
    match order {
        "logical" => Ok(false),
        "memory" => Ok(true),
        other => Err(PyValueError::new_err(format!("order is {other:?}, not \"logical\" or \"memory\""))),
    }
}

/// The number of threads that calls use.
#[pyfunction]
fn get_num_threads() -> PyResult<usize> {
    error::guarded(|| Ok(Engine::current().map_err(error::of_compile)?.threads()))
}

/// Sets the number of threads; 0 is the default.
#[pyfunction]
#[pyo3(signature = (threads, /))]
fn set_num_threads(threads: usize) -> PyResult<()> {
    if threads > 4096 {
        return Err(PyValueError::new_err(format!("{threads} threads are above the limit of 4096")));
    }
    error::guarded(|| {
        let width = Engine::current().map_err(error::of_compile)?.width();
        engine::set(threads, width).map_err(error::of_compile)
    })
}

/// Sets the bits of the widest vector, for tests; 0 is the machine's.
#[pyfunction]
#[pyo3(signature = (bits, /))]
fn set_width(bits: u32) -> PyResult<()> {
    if ![0, 128, 256, 512].contains(&bits) {
        return Err(PyValueError::new_err(format!("vectors of {bits} bits; the widths are 128, 256 and 512, or 0")));
    }
    let threads = get_num_threads()?;
    error::guarded(|| engine::set(threads, bits).map_err(error::of_compile))
}

/// The facts of this build and machine.
#[pyfunction]
fn config<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    error::guarded(|| {
        let engine = Engine::current().map_err(error::of_compile)?;
        let facts = PyDict::new(py);
        facts.set_item("version", env!("CARGO_PKG_VERSION"))?;
        facts.set_item("target", engine.compiler().target().to_string())?;
        let width = engine.compiler().vectors().bits;
        facts.set_item("vector_bits", if engine.width() == 0 { width } else { width.min(engine.width()) })?;
        facts.set_item("threads", engine.threads())?;
        facts.set_item("processors", engine::processors())?;
        facts.set_item("results_version", cranefold::results::RESULTS_VERSION)?;
        facts.set_item("kernels", engine.compiler().statistics().kernels)?;
        Ok(facts)
    })
}

/// Panics, for the test of `InternalError`.
#[pyfunction]
fn fail() -> PyResult<()> {
    error::guarded(|| panic!("a panic on purpose"))
}

#[pymodule(gil_used = false)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::{
        apply, body, config, fail, get_num_threads, kernel::compile, kernel::reduce, kernel::reduce_chunk,
        set_num_threads, set_width,
    };
    #[pymodule_export]
    use crate::dlpack::Answer;
    #[pymodule_export]
    use crate::kernel::PyKernel;
    #[pymodule_export]
    use crate::partial::{PyPartial, PyReduction};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("SpecError", module.py().get_type::<error::SpecError>())?;
        module.add("InternalError", module.py().get_type::<error::InternalError>())?;
        let numbers = PyDict::new(module.py());
        for (number, function) in Function::ALL.iter().enumerate() {
            numbers.set_item(function.name(), number)?;
        }
        module.add("FUNCTIONS", numbers)?;
        let methods = PyDict::new(module.py());
        for (number, (name, _)) in select::METHODS.iter().enumerate() {
            methods.set_item(name, number)?;
        }
        module.add("METHODS", methods)
    }
}
