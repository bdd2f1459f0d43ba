"""The namespace of the array API: NumPy's, with the reductions of this package in front.

The signatures and rules of these reductions are those of the standard, 2024.12. It has complex numbers, and says that a
variance of no more elements than the correction is NaN; in all else these are the functions of the package itself. Complex
arrays go to NumPy's functions, and so does everything that is no reduction. NumPy 2.1 or later has all names of the standard.

>>> from cranefold import array_api as xp
>>> xp.sum(xp.asarray([1, 2, 3], dtype=xp.int16))
np.int64(6)
>>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0]))
np.float64(5.0)
"""

from __future__ import annotations

import builtins as _builtins
from types import SimpleNamespace as _SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as _numpy

from cranefold import _functions

if TYPE_CHECKING:
    from cranefold._types import Array, Axis, DTypeLike

__array_api_version__ = "2024.12"


def _is_complex(x: Array, dtype: DTypeLike = None) -> bool:
    """True if NumPy has the call: of complex elements, or for a complex result."""
    kinds = (getattr(given, "kind", "") for given in (getattr(x, "dtype", None), dtype))
    return "c" in kinds or (isinstance(dtype, type) and issubclass(dtype, (complex, _numpy.complexfloating)))


def sum(x: Array, /, *, axis: Axis = None, dtype: DTypeLike = None, keepdims: bool = False) -> Any:
    """The sum: :func:`cranefold.sum`."""
    if _is_complex(x, dtype):
        return _numpy.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)
    return _functions.sum(x, axis, dtype, None, keepdims)


def prod(x: Array, /, *, axis: Axis = None, dtype: DTypeLike = None, keepdims: bool = False) -> Any:
    """The product: :func:`cranefold.prod`."""
    if _is_complex(x, dtype):
        return _numpy.prod(x, axis=axis, dtype=dtype, keepdims=keepdims)
    return _functions.prod(x, axis, dtype, None, keepdims)


def max(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The greatest element: :func:`cranefold.max`."""
    return _functions.max(x, axis, None, keepdims)


def min(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The least element: :func:`cranefold.min`."""
    return _functions.min(x, axis, None, keepdims)


def mean(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The mean: :func:`cranefold.mean`."""
    if _is_complex(x):
        return _numpy.mean(x, axis=axis, keepdims=keepdims)
    return _functions.mean(x, axis, None, None, keepdims)


def _unless_too_few(spread: Any, x: Array, axis: Axis, correction: float) -> Any:
    """The variance, or NaN where there are no more elements than the correction."""
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    count = 1
    for one in axes:
        count *= x.shape[one]
    return spread if count > correction else spread * float("nan")


def var(x: Array, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The variance, :func:`cranefold.var`; NaN where there are no more elements than the correction."""
    return _unless_too_few(_functions.var(x, axis, None, None, correction, keepdims), x, axis, correction)


def std(x: Array, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The standard deviation, :func:`cranefold.std`; NaN where there are no more elements than the correction."""
    return _unless_too_few(_functions.std(x, axis, None, None, correction, keepdims), x, axis, correction)


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """The position of the greatest element: :func:`cranefold.argmax`."""
    return _functions.argmax(x, axis, keepdims=keepdims)


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """The position of the least element: :func:`cranefold.argmin`."""
    return _functions.argmin(x, axis, keepdims=keepdims)


def any(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """True where some element is not 0: :func:`cranefold.any`."""
    if _is_complex(x):
        return _numpy.any(x, axis=axis, keepdims=keepdims)
    return _functions.any(x, axis, None, keepdims)


def all(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """True where no element is 0: :func:`cranefold.all`."""
    if _is_complex(x):
        return _numpy.all(x, axis=axis, keepdims=keepdims)
    return _functions.all(x, axis, None, keepdims)


def count_nonzero(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The number of elements that are not 0: :func:`cranefold.count_nonzero`."""
    if _is_complex(x):
        return _numpy.asarray(_numpy.count_nonzero(x, axis=axis, keepdims=keepdims))[()]
    return _functions.count_nonzero(x, axis, keepdims=keepdims)


def vector_norm(x: Array, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Any:
    """The norm: :func:`cranefold.vector_norm`."""
    if _is_complex(x):
        return _numpy.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)  # type: ignore[arg-type]
    return _functions.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


linalg = _SimpleNamespace(
    **{name: getattr(_numpy.linalg, name) for name in dir(_numpy.linalg) if not name.startswith("_")}
)
linalg.vector_norm = vector_norm
del vector_norm


def __getattr__(name: str) -> Any:
    """A name of NumPy's that is no reduction of ours."""
    if name.startswith("__") and name != "__array_namespace_info__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_numpy, name)


def __dir__() -> list[str]:
    public = (name for name in dir(_numpy) if not name.startswith("_") or name == "__array_namespace_info__")
    return sorted(_builtins.set(public) | _builtins.set(globals()))
