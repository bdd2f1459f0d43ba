//! The exceptions of the package.

use cranefold::{CallError, Error};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

create_exception!(
    cranefold,
    SpecError,
    PyValueError,
    "The text of a spec or region is wrong; the message shows the place of the fault.\n\n\
     >>> import cranefold as cf\n\
     >>> try:\n\
     ...     cf.compile('sum f32[2,3] axes=[2]')\n\
     ... except cf.SpecError as error:\n\
     ...     print(error)\n\
     axis 2 is out of range for rank 2: its axes are -2 to 1\n  sum f32[2,3] axes=[2]\n               ^"
);
create_exception!(cranefold, InternalError, PyException, "A bug of Cranefold. The message says what to report.");

/// The address for reports of bugs.
const REPORT: &str = "please report this message with the call and the shapes, dtypes and strides of its arrays";

/// The exception for a bug of ours.
pub fn internal(message: &str) -> PyErr {
    InternalError::new_err(format!("this is a bug in cranefold: {message}\n{REPORT}"))
}

/// The exception with the name of the argument before its text.
#[cold]
pub fn of_argument(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    let text = format!("{name}: {}", error.value(py));
    error.get_type(py).call1((text,)).map_or(error, PyErr::from_value)
}

/// The exception of a failure to compile.
pub fn of_compile(error: Error) -> PyErr {
    match error {
        Error::Spec(error) => of_spec(&error),
        Error::Internal { .. } => internal(&error.to_string()),
        Error::Memory(_) => PyMemoryError::new_err(error.to_string()),
        Error::Target { .. } => PyRuntimeError::new_err(error.to_string()),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// The exception of a wrong spec.
pub fn of_spec(error: &cranefold::SpecError) -> PyErr {
    SpecError::new_err(error.to_string())
}

/// The exception of a call that fails.
pub fn of_call(error: CallError) -> PyErr {
    match error {
        CallError::Scratch { .. } => PyMemoryError::new_err(error.to_string()),
        CallError::Executor { message } => internal(&message),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// Runs a function; a panic in it becomes an [`InternalError`].
pub fn guarded<T>(function: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(function)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(internal(&text.unwrap_or_else(|| "a panic without a message".into())))
    })
}
