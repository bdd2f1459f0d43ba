"""The functions, with NumPy's names and habits.

Each is one line over the extension module, which chooses a kernel by element types, shapes and strides.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from cranefold import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranefold._types import Array, Axis, DTypeLike, Order

_apply = _core.apply
_METHODS = _core.METHODS
_N = _core.FUNCTIONS
_SUM, _PROD, _MAX, _MIN = _N["sum"], _N["prod"], _N["max"], _N["min"]
_MEAN, _VAR, _STD = _N["mean"], _N["var"], _N["std"]
_ARGMAX, _ARGMIN, _ANY, _ALL = _N["argmax"], _N["argmin"], _N["any"], _N["all"]
_COUNT, _NORM, _PTP, _AVERAGE = _N["count_nonzero"], _N["vector_norm"], _N["ptp"], _N["average"]
_MEDIAN, _QUANTILE, _LOGSUMEXP = _N["median"], _N["quantile"], _N["logsumexp"]
_SOFTMAX, _LOG_SOFTMAX, _NORMALIZE = _N["softmax"], _N["log_softmax"], _N["normalize"]
_LAYER_NORM, _RMS_NORM = _N["layer_norm"], _N["rms_norm"]


def sum(x: Array, /, axis: Axis = None, dtype: DTypeLike = None, out: Array | None = None, keepdims: bool = False,
        initial: Any = None, where: Array | None = None, *, order: Order = "logical") -> Any:
    """The sum over some axes.

    Floats add up in float32 or float64 (float16 and bfloat16 in float32, rounded once); integers are exact modulo 2^64,
    and int8 to int64 and bool sum to int64, uint8 to uint64 to uint64.

    Parameters
    ----------
    x : array of numbers or bool, of any shape and strides
    axis : an axis, a tuple of axes, or None for all
    dtype : the dtype of the result, to which elements are converted first
    out : an array for the result, of its shape and dtype, which shares no memory with `x`
    keepdims : keep reduced axes with extent 1
    initial : a number that is added to the sum
    where : bool array that broadcasts to `x`: the elements that take part. One that is all true changes no bit.
    order : "logical", the order of accumulation that the shape alone decides, or "memory", the fastest one

    Returns
    -------
    An array of the kept axes, of the library of `x`; the sum of nothing is 0.

    Raises
    ------
    TypeError for dtypes that are not supported, ValueError for axes and shapes that do not fit.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> x = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32)
    >>> cf.sum(x, axis=0)
    array([5., 7., 9.], dtype=float32)
    >>> cf.sum(x, where=x > 2, initial=10)
    np.float32(28.0)
    """
    return _apply(_SUM, x, axis, keepdims, order, dtype, out, initial, where)


def prod(x: Array, /, axis: Axis = None, dtype: DTypeLike = None, out: Array | None = None, keepdims: bool = False,
         initial: Any = None, where: Array | None = None, *, order: Order = "logical") -> Any:
    """The product over some axes; arguments and dtypes are those of :func:`sum`. The product of nothing is 1.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.prod(np.array([[1, 2], [3, 4]], dtype=np.int16), axis=1)
    array([ 2, 12])
    """
    return _apply(_PROD, x, axis, keepdims, order, dtype, out, initial, where)


def max(x: Array, /, axis: Axis = None, out: Array | None = None, keepdims: bool = False, initial: Any = None,
        where: Array | None = None, *, order: Order = "logical") -> Any:
    """The greatest element over some axes, in the dtype of `x`. A NaN makes the result NaN; -0 is below +0.

    `axis`, `out`, `keepdims`, `where` and `order` are those of :func:`sum`; `initial` is the least result.

    Raises
    ------
    ValueError where there is nothing to compare and no `initial`: `where=` always needs one.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> x = np.array([[1, 5], [7, 3]], dtype=np.int8)
    >>> cf.max(x, axis=1)
    array([5, 7], dtype=int8)
    >>> cf.max(x, where=x < 4, initial=-128)
    np.int8(3)
    """
    return _apply(_MAX, x, axis, keepdims, order, None, out, initial, where)


def min(x: Array, /, axis: Axis = None, out: Array | None = None, keepdims: bool = False, initial: Any = None,
        where: Array | None = None, *, order: Order = "logical") -> Any:
    """The least element over some axes; otherwise as :func:`max`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.min(np.array([[1.0, 5.0], [7.0, np.nan]]), axis=1)
    array([ 1., nan])
    """
    return _apply(_MIN, x, axis, keepdims, order, None, out, initial, where)


def mean(x: Array, /, axis: Axis = None, dtype: DTypeLike = None, out: Array | None = None, keepdims: bool = False,
         *, where: Array | None = None, order: Order = "logical") -> Any:
    """The arithmetic mean over some axes: the sum divided once by the count. Integers and bool give float64.

    Arguments are those of :func:`sum`; the mean of nothing is NaN.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.mean(np.array([[1, 2], [3, 5]]), axis=1)
    array([1.5, 4. ])
    """
    return _apply(_MEAN, x, axis, keepdims, order, dtype, out, None, where)


def _ddof(ddof: float, correction: float | None) -> float:
    """The correction by either of its names."""
    if correction is None:
        return ddof
    if ddof != 0:
        raise ValueError(f"ddof={ddof} and correction={correction} are two names of one argument; pass one of them")
    return correction


def var(x: Array, /, axis: Axis = None, dtype: DTypeLike = None, out: Array | None = None, ddof: float = 0.0,
        keepdims: bool = False, *, where: Array | None = None, correction: float | None = None,
        order: Order = "logical") -> Any:
    """The variance over some axes: the sum of squared deviations from the mean, divided by n - ddof.

    `ddof` (or `correction`, its name in the array API) is at least 0; where it is n or more, the division is by 0.
    Integers and bool give float64. Other arguments are those of :func:`sum`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.var(np.array([1.0, 2.0, 3.0, 4.0]), ddof=1)
    np.float64(1.6666666666666667)
    """
    ddof = _ddof(ddof, correction)
    return _apply(_VAR, x, axis, keepdims, order, dtype, out, None, where, ddof)


def std(x: Array, /, axis: Axis = None, dtype: DTypeLike = None, out: Array | None = None, ddof: float = 0.0,
        keepdims: bool = False, *, where: Array | None = None, correction: float | None = None,
        order: Order = "logical") -> Any:
    """The standard deviation over some axes, the square root of :func:`var`, whose arguments it has.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.std(np.array([[1.0, 3.0], [2.0, 6.0]]), axis=1)
    array([1., 2.])
    """
    ddof = _ddof(ddof, correction)
    return _apply(_STD, x, axis, keepdims, order, dtype, out, None, where, ddof)


def argmax(x: Array, /, axis: Axis = None, out: Array | None = None, *, keepdims: bool = False,
           order: Order = "logical") -> Any:
    """The position of the greatest element, the first of equal ones; a NaN is the greatest.

    `axis` is an axis, None for the row-major position in the whole array, or a tuple for the row-major position within
    these axes. The dtype is int64; -0 and +0 are equal.

    Raises
    ------
    ValueError if the reduced axes have no element.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> x = np.array([[1, 9, 2], [7, 7, 0]])
    >>> cf.argmax(x, axis=1), cf.argmax(x)
    (array([1, 0]), np.int64(1))
    """
    return _apply(_ARGMAX, x, axis, keepdims, order, None, out)


def argmin(x: Array, /, axis: Axis = None, out: Array | None = None, *, keepdims: bool = False,
           order: Order = "logical") -> Any:
    """The position of the least element; otherwise as :func:`argmax`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.argmin(np.array([[1, 9, 2], [7, 7, 0]]), axis=1)
    array([0, 2])
    """
    return _apply(_ARGMIN, x, axis, keepdims, order, None, out)


def any(x: Array, /, axis: Axis = None, out: Array | None = None, keepdims: bool = False, *,
        where: Array | None = None, order: Order = "logical") -> Any:
    """True where some element is not 0 (a NaN is not 0); of nothing False. Arguments are those of :func:`sum`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.any(np.array([[0, 1], [0, 0]]), axis=1)
    array([ True, False])
    """
    return _apply(_ANY, x, axis, keepdims, order, None, out, None, where)


def all(x: Array, /, axis: Axis = None, out: Array | None = None, keepdims: bool = False, *,
        where: Array | None = None, order: Order = "logical") -> Any:
    """True where no element is 0; of nothing True. Arguments are those of :func:`sum`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.all(np.array([[2, 1], [0, 1]]), axis=1)
    array([ True, False])
    """
    return _apply(_ALL, x, axis, keepdims, order, None, out, None, where)


def count_nonzero(x: Array, /, axis: Axis = None, *, keepdims: bool = False, out: Array | None = None,
                  order: Order = "logical") -> Any:
    """The number of elements that are not 0, as int64.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.count_nonzero(np.array([[0, 1], [2, 3]]), axis=0)
    array([1, 2])
    """
    return _apply(_COUNT, x, axis, keepdims, order, None, out)


def vector_norm(x: Array, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2, out: Array | None = None,
                order: Order = "logical") -> Any:
    """The norm over some axes, as `linalg.vector_norm` of the array API: (sum of abs(x)^ord)^(1/ord).

    `ord` is inf for the greatest magnitude, -inf for the least, 0 for the count of elements that are not 0, or any
    number. Norms are not scaled: the 2-norm of 1e30 in float32 is inf. Integers give float64.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> x = np.array([[3.0, -4.0], [0.0, 2.0]])
    >>> cf.vector_norm(x, axis=1), cf.vector_norm(x, axis=1, ord=np.inf)
    (array([5., 2.]), array([4., 2.]))
    """
    return _apply(_NORM, x, axis, keepdims, order, None, out, None, None, ord)


def ptp(x: Array, /, axis: Axis = None, out: Array | None = None, keepdims: bool = False, *,
        order: Order = "logical") -> Any:
    """The greatest element less the least, in the dtype of `x`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.ptp(np.array([[4.0, 9.0], [2.0, 2.5]]), axis=1)
    array([5. , 0.5])
    """
    return _apply(_PTP, x, axis, keepdims, order, None, out)


def average(x: Array, /, axis: Axis = None, weights: Array | None = None, returned: bool = False, *,
            keepdims: bool = False, order: Order = "logical") -> Any:
    """The weighted mean: sum(x * weights) / sum(weights); without weights the mean.

    `weights` has the shape of `x`, of the reduced axes, or one that broadcasts to `x`. With `returned` the result is a
    pair of the mean and the sum of the weights.

    Raises
    ------
    ZeroDivisionError if the weights of a slice sum to 0.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.average(np.array([[1.0, 2.0], [3.0, 5.0]]), axis=1, weights=np.array([3.0, 1.0]))
    array([1.25, 3.5 ])
    """
    if weights is None and not returned:
        return mean(x, axis, keepdims=keepdims, order=order)
    if weights is None:
        weights = np.ones((), np.float16)
    average, total = _apply(_AVERAGE, x, axis, keepdims, order, None, None, None, None, None, None, False, weights)
    if not bool(_apply(_ALL, total, None, False, order)):
        raise ZeroDivisionError("the weights of a slice sum to 0")
    return (average, total) if returned else average


def median(x: Array, /, axis: Axis = None, out: Array | None = None, *, keepdims: bool = False,
           order: Order = "logical") -> Any:
    """The median: the middle element of the sorted ones, or the mean of the middle two; NaN if there is one.

    Integers give float64; the median of nothing is NaN.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.median(np.array([[1, 9, 2], [4, 8, 6]]), axis=1)
    array([2., 6.])
    """
    return _apply(_MEDIAN, x, axis, keepdims, order, None, out)


def _stack(arrays: list[Any]) -> Any:
    """The arrays along a new first axis, by the function of their own library."""
    if isinstance(arrays[0], (np.ndarray, np.generic)):
        return np.stack(arrays)
    if hasattr(arrays[0], "__array_namespace__"):
        return arrays[0].__array_namespace__().stack(arrays)
    return sys.modules[type(arrays[0]).__module__.partition(".")[0]].stack(arrays)


def _quantiles(x: Array, q: float | Sequence[float], axis: Axis, out: Array | None, keepdims: bool, order: Order,
               method: str, skips_nan: bool) -> Any:
    """The quantile of one q, or those of several along a new first axis."""
    number = _METHODS.get(method) if isinstance(method, str) else None
    if number is None:
        raise ValueError(f"method is {method!r}; the methods are {', '.join(_METHODS)}")
    if isinstance(q, (int, float)) or getattr(q, "shape", None) == ():
        return _apply(_QUANTILE, x, axis, keepdims, order, None, out, None, None, float(q),  # type: ignore[arg-type]
                      number, skips_nan)
    rank = getattr(q, "ndim", 1)
    if rank > 1:
        raise ValueError(f"q has {rank} axes; it is a number, or numbers along one axis")
    try:
        each = [float(one) for one in q]
    except (TypeError, ValueError):
        raise TypeError(f"q is {q!r}, not a number or numbers along one axis") from None
    if not each:
        raise ValueError("q has no element")
    found = [_apply(_QUANTILE, x, axis, keepdims, order, None, None, None, None, one, number, skips_nan) for one in each]
    if out is None:
        return _stack(found)
    shape = (len(each), *found[0].shape)
    if out.dtype != found[0].dtype:
        raise TypeError(f"out is {out.dtype}, and the result is {found[0].dtype}")
    if tuple(out.shape) != shape:
        raise ValueError(f"out has shape {list(out.shape)}, and the result has shape {list(shape)}")
    for number, one in enumerate(found):
        out[number, ...] = one
    return out


def quantile(x: Array, q: float | Sequence[float], /, axis: Axis = None, out: Array | None = None, *,
             method: str = "linear", keepdims: bool = False, order: Order = "logical") -> Any:
    """The quantile: the sorted elements at q * (n - 1), linear between the two nearest; NaN if there is one.

    `q` is a number from 0 to 1, or a sequence of them, which makes the first axis of the result. `method` is one of
    NumPy's: "lower", "higher", "midpoint" and "nearest" round q * (n - 1), and "inverted_cdf", "averaged_inverted_cdf",
    "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased" and "normal_unbiased" are
    those of Hyndman and Fan, which sort on one thread. Integers give float64.

    Raises
    ------
    ValueError if a q is NaN or out of range, or there is no such method.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> x = np.array([0.0, 1.0, 2.0, 10.0])
    >>> cf.quantile(x, [0.25, 0.5])
    array([0.75, 1.5 ])
    >>> cf.quantile(x, 0.75, method="higher")
    np.float64(10.0)
    """
    return _quantiles(x, q, axis, out, keepdims, order, method, False)


def logsumexp(x: Array, /, axis: Axis = None, *, keepdims: bool = False, out: Array | None = None,
              order: Order = "logical") -> Any:
    """The logarithm of the sum of exponentials, log(sum(exp(x))), without overflow; of nothing -inf.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.logsumexp(np.array([1000.0, 1000.0]))
    np.float64(1000.6931471805599)
    """
    return _apply(_LOGSUMEXP, x, axis, keepdims, order, None, out)


def softmax(x: Array, /, axis: Axis = -1, *, out: Array | None = None, order: Order = "logical") -> Any:
    """exp(x - max) divided by the sum of it over some axes; the result has the shape of `x`.

    A slice of -inf alone gives NaN. Integers give float64.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.softmax(np.array([[0.0, 0.0], [1.0, -np.inf]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    return _apply(_SOFTMAX, x, axis, False, order, None, out)


def log_softmax(x: Array, /, axis: Axis = -1, *, out: Array | None = None, order: Order = "logical") -> Any:
    """x - max - log(sum(exp(x - max))) over some axes; otherwise as :func:`softmax`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.log_softmax(np.array([0.0, 0.0]))
    array([-0.69314718, -0.69314718])
    """
    return _apply(_LOG_SOFTMAX, x, axis, False, order, None, out)


def layer_norm(x: Array, /, weight: Array | None = None, bias: Array | None = None, *, axis: Axis = -1,
               eps: float = 1e-5, out: Array | None = None, order: Order = "logical") -> Any:
    """(x - mean) / sqrt(var + eps) * weight + bias, with mean and variance over some axes.

    `weight` and `bias` have the shape of the reduced axes, or one that broadcasts to `x`; the result has the shape of
    `x`, and its dtype.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.layer_norm(np.array([[1.0, 3.0], [5.0, 5.0]]), np.array([2.0, 1.0]), eps=0)
    array([[-2.,  1.],
           [nan, nan]])
    """
    return _apply(_LAYER_NORM, x, axis, False, order, None, out, None, None, eps, None, False, weight, bias)


def rms_norm(x: Array, /, weight: Array | None = None, *, axis: Axis = -1, eps: float = 1e-5,
             out: Array | None = None, order: Order = "logical") -> Any:
    """x / sqrt(mean(x * x) + eps) * weight, with the mean over some axes; otherwise as :func:`layer_norm`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.rms_norm(np.array([3.0, -3.0]), eps=0)
    array([ 1., -1.])
    """
    return _apply(_RMS_NORM, x, axis, False, order, None, out, None, None, eps, None, False, weight)


def normalize(x: Array, /, axis: Axis = -1, *, ord: float = 2, eps: float = 1e-12, out: Array | None = None,
              order: Order = "logical") -> Any:
    """x / max(norm, eps), with the norm of :func:`vector_norm` over some axes; the result has the shape of `x`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.normalize(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    return _apply(_NORMALIZE, x, axis, False, order, None, out, None, None, eps, ord)


def nansum(x: Array, /, axis: Axis = None, dtype: DTypeLike = None, out: Array | None = None, keepdims: bool = False,
           initial: Any = None, where: Array | None = None, *, order: Order = "logical") -> Any:
    """The sum of the elements that are not NaN; otherwise as :func:`sum`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.nansum(np.array([1.0, np.nan, 2.0]))
    np.float64(3.0)
    """
    return _apply(_SUM, x, axis, keepdims, order, dtype, out, initial, where, None, None, True)


def nanprod(x: Array, /, axis: Axis = None, dtype: DTypeLike = None, out: Array | None = None, keepdims: bool = False,
            initial: Any = None, where: Array | None = None, *, order: Order = "logical") -> Any:
    """The product of the elements that are not NaN; otherwise as :func:`prod`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.nanprod(np.array([2.0, np.nan, 3.0]))
    np.float64(6.0)
    """
    return _apply(_PROD, x, axis, keepdims, order, dtype, out, initial, where, None, None, True)


def nanmax(x: Array, /, axis: Axis = None, out: Array | None = None, keepdims: bool = False, initial: Any = None,
           where: Array | None = None, *, order: Order = "logical") -> Any:
    """The greatest element that is not NaN, or NaN if all are; otherwise as :func:`max`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.nanmax(np.array([[1.0, np.nan], [np.nan, np.nan]]), axis=1)
    array([ 1., nan])
    """
    return _apply(_MAX, x, axis, keepdims, order, None, out, initial, where, None, None, True)


def nanmin(x: Array, /, axis: Axis = None, out: Array | None = None, keepdims: bool = False, initial: Any = None,
           where: Array | None = None, *, order: Order = "logical") -> Any:
    """The least element that is not NaN, or NaN if all are; otherwise as :func:`min`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.nanmin(np.array([np.nan, 3.0, 2.0]))
    np.float64(2.0)
    """
    return _apply(_MIN, x, axis, keepdims, order, None, out, initial, where, None, None, True)


def nanmean(x: Array, /, axis: Axis = None, dtype: DTypeLike = None, out: Array | None = None, keepdims: bool = False,
            *, where: Array | None = None, order: Order = "logical") -> Any:
    """The mean of the elements that are not NaN, or NaN if all are; otherwise as :func:`mean`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.nanmean(np.array([1.0, np.nan, 2.0]))
    np.float64(1.5)
    """
    return _apply(_MEAN, x, axis, keepdims, order, dtype, out, None, where, None, None, True)


def nanvar(x: Array, /, axis: Axis = None, dtype: DTypeLike = None, out: Array | None = None, ddof: float = 0.0,
           keepdims: bool = False, *, where: Array | None = None, correction: float | None = None,
           order: Order = "logical") -> Any:
    """The variance of the elements that are not NaN; otherwise as :func:`var`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.nanvar(np.array([1.0, np.nan, 3.0]))
    np.float64(1.0)
    """
    ddof = _ddof(ddof, correction)
    return _apply(_VAR, x, axis, keepdims, order, dtype, out, None, where, ddof, None, True)


def nanstd(x: Array, /, axis: Axis = None, dtype: DTypeLike = None, out: Array | None = None, ddof: float = 0.0,
           keepdims: bool = False, *, where: Array | None = None, correction: float | None = None,
           order: Order = "logical") -> Any:
    """The standard deviation of the elements that are not NaN; otherwise as :func:`std`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.nanstd(np.array([1.0, np.nan, 5.0]))
    np.float64(2.0)
    """
    ddof = _ddof(ddof, correction)
    return _apply(_STD, x, axis, keepdims, order, dtype, out, None, where, ddof, None, True)


def nanargmax(x: Array, /, axis: Axis = None, out: Array | None = None, *, keepdims: bool = False,
              order: Order = "logical") -> Any:
    """The position of the greatest element that is not NaN; otherwise as :func:`argmax`.

    Raises
    ------
    ValueError if all elements of a slice are NaN.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.nanargmax(np.array([np.nan, 1.0, 2.0]))
    np.int64(2)
    """
    return _apply(_ARGMAX, x, axis, keepdims, order, None, out, None, None, None, None, True)


def nanargmin(x: Array, /, axis: Axis = None, out: Array | None = None, *, keepdims: bool = False,
              order: Order = "logical") -> Any:
    """The position of the least element that is not NaN; otherwise as :func:`nanargmax`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.nanargmin(np.array([np.nan, 1.0, 2.0]))
    np.int64(1)
    """
    return _apply(_ARGMIN, x, axis, keepdims, order, None, out, None, None, None, None, True)


def nanmedian(x: Array, /, axis: Axis = None, out: Array | None = None, *, keepdims: bool = False,
              order: Order = "logical") -> Any:
    """The median of the elements that are not NaN, or NaN if all are; otherwise as :func:`median`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.nanmedian(np.array([[1.0, np.nan, 2.0], [np.nan, np.nan, 7.0]]), axis=1)
    array([1.5, 7. ])
    """
    return _apply(_MEDIAN, x, axis, keepdims, order, None, out, None, None, None, None, True)


def nanquantile(x: Array, q: float | Sequence[float], /, axis: Axis = None, out: Array | None = None, *,
                method: str = "linear", keepdims: bool = False, order: Order = "logical") -> Any:
    """The quantile of the elements that are not NaN, or NaN if all are; otherwise as :func:`quantile`.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> cf.nanquantile(np.array([0.0, np.nan, 2.0, 10.0]), 0.25)
    np.float64(1.0)
    """
    return _quantiles(x, q, axis, out, keepdims, order, method, True)
