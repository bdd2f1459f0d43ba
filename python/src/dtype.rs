//! Element types: ours, NumPy's and DLPack's.

use cranefold::DType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

/// All element types, with the names that NumPy and the array API give them.
const NAMES: [(DType, &str); 13] = [
    (DType::Bool, "bool"),
    (DType::I8, "int8"),
    (DType::I16, "int16"),
    (DType::I32, "int32"),
    (DType::I64, "int64"),
    (DType::U8, "uint8"),
    (DType::U16, "uint16"),
    (DType::U32, "uint32"),
    (DType::U64, "uint64"),
    (DType::F16, "float16"),
    (DType::Bf16, "bfloat16"),
    (DType::F32, "float32"),
    (DType::F64, "float64"),
];

/// The names of all element types, for messages.
pub const ALL: &str = "bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32 and float64";

/// The name of an element type in NumPy.
pub fn name(dtype: DType) -> &'static str {
    NAMES.iter().find(|(known, _)| *known == dtype).map_or("?", |(_, name)| name)
}

/// The element type with a name of NumPy's or ours, which differ about `i8` and `u8`.
fn of_name(text: &str) -> Option<DType> {
    let text = text.rsplit('.').next().unwrap_or(text);
    if matches!(text, "i8" | "u8") {
        return None;
    }
    let known = NAMES.iter().find(|(dtype, name)| *name == text || dtype.name() == text).map(|(dtype, _)| *dtype);
    known.or(match text {
        "?" | "b1" => Some(DType::Bool),
        "i1" => Some(DType::I8),
        "i2" => Some(DType::I16),
        "i4" => Some(DType::I32),
        "u1" => Some(DType::U8),
        "u2" => Some(DType::U16),
        "u4" => Some(DType::U32),
        "half" | "f2" => Some(DType::F16),
        "single" | "f4" => Some(DType::F32),
        "float" | "double" | "f8" => Some(DType::F64),
        "int" => Some(DType::I64),
        _ => None,
    })
}

/// The number of an element type in keys and NumPy's number of it; `None` of bfloat16, whose number differs from run to
/// run.
pub fn numpy_number(dtype: DType) -> Option<i32> {
    Some(match dtype {
        DType::Bool => 0,
        DType::I8 => 1,
        DType::U8 => 2,
        DType::I16 => 3,
        DType::U16 => 4,
        DType::I32 => 5,
        DType::U32 => 6,
        // `long` has 8 bytes, but on Windows.
        DType::I64 => {
            if cfg!(windows) {
                9
            } else {
                7
            }
        }
        DType::U64 => {
            if cfg!(windows) {
                10
            } else {
                8
            }
        }
        DType::F16 => 23,
        DType::F32 => 11,
        DType::F64 => 12,
        _ => return None,
    })
}

/// The element type with NumPy's number.
pub fn of_numpy_number(number: i32) -> Option<DType> {
    Some(match number {
        0 => DType::Bool,
        1 => DType::I8,
        2 => DType::U8,
        3 => DType::I16,
        4 => DType::U16,
        5 => DType::I32,
        6 => DType::U32,
        7 => {
            if cfg!(windows) {
                DType::I32
            } else {
                DType::I64
            }
        }
        8 => {
            if cfg!(windows) {
                DType::U32
            } else {
                DType::U64
            }
        }
        9 => DType::I64,
        10 => DType::U64,
        11 => DType::F32,
        12 => DType::F64,
        23 => DType::F16,
        _ => return None,
    })
}

/// The element type of DLPack's code and bits.
pub fn of_dlpack(code: u8, bits: u8, lanes: u16) -> Option<DType> {
    Some(match (code, bits, lanes) {
        (6, 8, 1) => DType::Bool,
        (0, 8, 1) => DType::I8,
        (0, 16, 1) => DType::I16,
        (0, 32, 1) => DType::I32,
        (0, 64, 1) => DType::I64,
        (1, 8, 1) => DType::U8,
        (1, 16, 1) => DType::U16,
        (1, 32, 1) => DType::U32,
        (1, 64, 1) => DType::U64,
        (2, 16, 1) => DType::F16,
        (2, 32, 1) => DType::F32,
        (2, 64, 1) => DType::F64,
        (4, 16, 1) => DType::Bf16,
        _ => return None,
    })
}

/// DLPack's code of an element type.
pub fn dlpack_code(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 6,
        DType::Bf16 => 4,
        dtype if dtype.is_float() => 2,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 1,
        _ => 0,
    }
}

/// NumPy's `dtype` of bfloat16, which the package `ml_dtypes` defines.
pub fn numpy_bfloat16<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    static DTYPE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make = || {
        let scalar = py.import("ml_dtypes")?.getattr("bfloat16")?;
        Ok::<_, PyErr>(py.import("numpy")?.call_method1("dtype", (scalar,))?.unbind())
    };
    Ok(DTYPE.get_or_try_init(py, make)?.bind(py))
}

/// The element type that a caller asks for: a `numpy.dtype`, a type such as `numpy.float32` or `float`, torch's or JAX's
/// own, or a name.
///
/// # Errors
/// `TypeError` if it is none of ours.
pub fn asked(dtype: &Bound<'_, PyAny>) -> PyResult<DType> {
    let refused = || {
        let given = dtype.str().map_or_else(|_| "?".into(), |text| text.to_string());
        PyTypeError::new_err(match given.as_str() {
            "i8" | "u8" => {
                format!("dtype {given} has 64 bits in NumPy and 8 in specs; pass the long name, such as int64")
            }
            _ => format!("dtype {given} is not supported; the dtypes are {ALL}"),
        })
    };
    if let Ok(text) = dtype.cast::<PyString>() {
        return of_name(&text.to_string()).ok_or_else(refused);
    }
    if let Ok(kind) = dtype.cast::<PyType>() {
        return of_name(&kind.name()?.to_string()).ok_or_else(refused);
    }
    let text = match dtype.getattr("name") {
        Ok(name) => {
            if !dtype.getattr("isnative").map_or(Ok(true), |native| native.is_truthy())? {
                return Err(refused());
            }
            name.to_string()
        }
        Err(_) => dtype.str()?.to_string(),
    };
    of_name(&text).ok_or_else(refused)
}
