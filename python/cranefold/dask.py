"""Reductions of Dask arrays whose bits do not depend on the chunks.

Each chunk becomes a state of a few hundred bytes, or more where it ends inside a block of the reduction tree; neighbouring
states combine in order in a tree of tasks, and the finish gives the bits of ``cranefold`` on the whole array in memory.
Chunks are any along the first reduced axis of extent above 1, and any along kept axes. Along the other reduced axes they are
brought together first by ``rechunk``, with a warning that says so.

The functions have the names, results and dtypes of those of ``cranefold``; ``reduce`` takes any spec or region of one stage.
All of them take an ``axis`` (an integer, a tuple of integers, or None for all axes) and are lazy: a `dask.array.Array` comes
back, and its tasks are named for the function and their step, as ``cranefold-sum-shard``.

>>> import cranefold.dask as cfd, dask.array as da, numpy as np
>>> x = da.from_array(np.arange(10, dtype=np.float32), chunks=(3, 6, 1))
>>> float(cfd.sum(x).compute())
45.0

Raises
------
All functions raise, before any task runs: TypeError for what is no Dask array and for dtypes or chunks that are not
supported, `numpy.exceptions.AxisError` for an axis out of range, and ValueError for shapes that are not known and parameters
out of range.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from cranefold import _core
from cranefold._chunks import applied, reduced
from cranefold._operands import NAMES, axes_of, beside, checked, scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranefold._types import Axis

__all__ = [
    "all", "any", "argmax", "argmin", "count_nonzero", "layer_norm", "log_softmax", "logsumexp", "max", "mean", "min",
    "nanmax", "nanmean", "nanmin", "nanprod", "nansum", "normalize", "prod", "ptp", "reduce", "rms_norm", "softmax", "std",
    "sum", "var", "vector_norm",
]


def reduce(op: str, x: Any, axis: Axis = None, *, keepdims: bool = False, split_every: int = 8) -> Any:
    """The reduction of Dask arrays by the text of a spec or region, without its operands and axes.

    Parameters
    ----------
    op : ops as in a spec, such as ``"var(ddof=1)"``, with words such as ``map=``, or a region of one stage whose outputs are
        values of the slice. Several outputs give a tuple of arrays in one pass.
    x : a Dask array, or a tuple of arrays that broadcast as the operands of the text do. The first is a Dask array; arrays
        of NumPy are taken in the chunks of it.
    axis : an axis, a tuple of axes, or None for all, of the shape to which the operands broadcast
    keepdims : keep reduced axes with extent 1
    split_every : how many states a task combines, at least 2

    Returns
    -------
    An array of the kept axes, in the chunks of ``x``. Dtypes are those of the text: ``sum`` of float16 is float16. The bits
    are those of the spec with ``order=logical`` in memory, whatever the chunks and ``split_every``.

    Raises
    ------
    cranefold.SpecError
        If the text is wrong or does not take the dtypes.
    ValueError
        If the text has no partial results, as for ``"median"``, or a region has several stages.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da, numpy as np
    >>> x = da.from_array(np.arange(12, dtype=np.float32).reshape(6, 2), chunks=((1, 5), 1))
    >>> mean, most = cfd.reduce("mean,max", x, axis=0)
    >>> mean.compute(), most.compute()
    (array([5., 6.], dtype=float32), array([10., 11.], dtype=float32))
    >>> weight = np.array([[0], [0], [0], [0], [1], [3]], dtype=np.float32)
    >>> cfd.reduce("region x, w { sum(x * w) / sum(w) }", (x, weight), axis=0).compute()
    array([ 9.5, 10.5], dtype=float32)
    """
    if not isinstance(split_every, int) or split_every < 2:
        raise ValueError(f"split_every is {split_every!r}, and the least is 2")
    given = list(x) if isinstance(x, (tuple, list)) else [x]
    if not given:
        raise ValueError("no array is given")
    first = checked(given[0])
    operands = [first, *(beside(one, first, f"operand {n}") for n, one in enumerate(given[1:], 1))]
    axes = axes_of(axis, sorted(one.ndim for one in operands)[-1])
    # The least and the greatest of floats and integers are the same in any order.
    again = op.strip() if op.strip() in ("max", "min") and len(operands) == 1 else None
    found = reduced(op, operands, axes, keepdims=keepdims, split_every=split_every, again=again)
    return found[0] if len(found) == 1 else found


def _function(name: str, x: Any, axis: Axis, keepdims: bool, parameter: float = 0.0, skips_nan: bool = False,
              dtype: Any = None) -> Any:
    """A function of the package over an array in chunks."""
    x = checked(x)
    axes = axes_of(axis, x.ndim)
    body, in_f64 = _core.body(_core.FUNCTIONS[name], x.dtype, parameter, skips_nan, dtype)
    text = _text(body)
    label = ("nan" if skips_nan else "") + name.replace("_", "-")
    words = "acc=f64" if in_f64 else ""
    again = _again(name, x.dtype, skips_nan) if dtype is None else None
    return reduced(text, [x], axes, keepdims=keepdims, words=words, label=label, again=again)[0]


def _again(name: str, dtype: Any, skips_nan: bool) -> str | None:
    """The text that reduces results of a function to one, if the bits of the function do not depend on the order."""
    if name in ("max", "min", "any", "all"):
        dtype = np.dtype(bool) if name in ("any", "all") else dtype
    elif name == "count_nonzero":
        name, dtype = "sum", np.dtype(np.int64)
    elif name in ("sum", "prod") and dtype.kind in "biu":
        dtype = np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
    else:
        return None
    body, _ = _core.body(_core.FUNCTIONS[name], dtype, 0.0, skips_nan)
    return _text(body)


def _text(body: str) -> str:
    return f"region x0 {{ {body} }}" if "x0" in body else body


def sum(x: Any, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum, with the dtypes of `cranefold.sum`: that of ``x`` for floats, int64 or uint64 for integers.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> cfd.sum(da.ones((1000, 3), chunks=(77, 2), dtype="int8"), axis=0).compute()
    array([1000, 1000, 1000])
    """
    return _function("sum", x, axis, keepdims, dtype=dtype)


def prod(x: Any, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product, with the dtypes of `cranefold.prod`.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> int(cfd.prod(da.arange(1, 6, chunks=2)).compute())
    120
    """
    return _function("prod", x, axis, keepdims, dtype=dtype)


def mean(x: Any, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Any:
    """The mean; of integers and bool in float64.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> float(cfd.mean(da.arange(8, chunks=3)).compute())
    3.5
    """
    return _function("mean", x, axis, keepdims, dtype=dtype)


def var(x: Any, axis: Axis = None, *, dtype: Any = None, correction: float = 0, keepdims: bool = False) -> Any:
    """The variance: the sum of squared distances from the mean over the count less ``correction``, at least 0.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> float(cfd.var(da.arange(4, chunks=3), correction=1).compute())
    1.6666666666666667
    """
    return _function("var", x, axis, keepdims, float(correction), dtype=dtype)


def std(x: Any, axis: Axis = None, *, dtype: Any = None, correction: float = 0, keepdims: bool = False) -> Any:
    """The square root of the variance; otherwise as :func:`var`.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> float(cfd.std(da.from_array([1.0, 3.0], chunks=1)).compute())
    1.0
    """
    return _function("std", x, axis, keepdims, float(correction), dtype=dtype)


def max(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The greatest element, in the dtype of ``x``; NaN if there is one.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> cfd.max(da.from_array([[1, 5], [7, 3]], chunks=1), axis=1).compute()
    array([5, 7])
    """
    return _function("max", x, axis, keepdims)


def min(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The least element, in the dtype of ``x``; NaN if there is one.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> cfd.min(da.from_array([[1, 5], [7, 3]], chunks=1), axis=1).compute()
    array([1, 3])
    """
    return _function("min", x, axis, keepdims)


def ptp(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The greatest element less the least one.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> float(cfd.ptp(da.from_array([2.0, 7.0, 3.0], chunks=2)).compute())
    5.0
    """
    return _function("ptp", x, axis, keepdims)


def argmax(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The position of the first greatest element in the whole array's reduced axes, in row-major order; int64.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> int(cfd.argmax(da.from_array([2.0, 7.0, 3.0, 7.0], chunks=3)).compute())
    1
    """
    return _function("argmax", x, axis, keepdims)


def argmin(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The position of the first least element; otherwise as :func:`argmax`.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> int(cfd.argmin(da.from_array([2.0, 7.0, 1.0, 7.0], chunks=2)).compute())
    2
    """
    return _function("argmin", x, axis, keepdims)


def any(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """True where an element is not 0.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> cfd.any(da.from_array([[0, 1], [0, 0]], chunks=1), axis=1).compute()
    array([ True, False])
    """
    return _function("any", x, axis, keepdims)


def all(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """True where no element is 0.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> cfd.all(da.from_array([[0, 1], [1, 1]], chunks=1), axis=1).compute()
    array([False,  True])
    """
    return _function("all", x, axis, keepdims)


def count_nonzero(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The number of elements that are not 0; int64.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> int(cfd.count_nonzero(da.from_array([0, 3, 0, 4], chunks=3)).compute())
    2
    """
    return _function("count_nonzero", x, axis, keepdims)


def vector_norm(x: Any, axis: Axis = None, *, ord: float = 2, keepdims: bool = False) -> Any:
    """The norm of an order: the root of the sum of squares for 2, the greatest absolute value for inf.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> float(cfd.vector_norm(da.from_array([3.0, 4.0], chunks=1)).compute())
    5.0
    """
    return _function("vector_norm", x, axis, keepdims, float(ord))


def logsumexp(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The logarithm of the sum of the exponentials, without overflow.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> float(cfd.logsumexp(da.from_array([1000.0, 1000.0], chunks=1)).compute())
    1000.6931471805599
    """
    return _function("logsumexp", x, axis, keepdims)


def nansum(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The sum of the elements that are not NaN.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> float(cfd.nansum(da.from_array([1.0, float("nan"), 2.0], chunks=2)).compute())
    3.0
    """
    return _function("sum", x, axis, keepdims, skips_nan=True)


def nanprod(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The product of the elements that are not NaN.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> float(cfd.nanprod(da.from_array([3.0, float("nan"), 2.0], chunks=2)).compute())
    6.0
    """
    return _function("prod", x, axis, keepdims, skips_nan=True)


def nanmax(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The greatest element that is not NaN, or NaN if all are.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> float(cfd.nanmax(da.from_array([1.0, float("nan"), 2.0], chunks=2)).compute())
    2.0
    """
    return _function("max", x, axis, keepdims, skips_nan=True)


def nanmin(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The least element that is not NaN, or NaN if all are.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> float(cfd.nanmin(da.from_array([1.0, float("nan"), 2.0], chunks=2)).compute())
    1.0
    """
    return _function("min", x, axis, keepdims, skips_nan=True)


def nanmean(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The mean of the elements that are not NaN, or NaN if all are.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> float(cfd.nanmean(da.from_array([1.0, float("nan"), 2.0], chunks=2)).compute())
    1.5
    """
    return _function("mean", x, axis, keepdims, skips_nan=True)


def _normalised(name: str, x: Any, axis: Axis, stages: Sequence[tuple[str, str]], value: str,
                weight: Any = None, bias: Any = None) -> Any:
    """An element for each of `x`: reductions, whose results are named, then a value of the element and the results.

    This is the region of `cranefold`'s function, stage by stage. `$` stands for the element in the type of floats.
    """
    x = checked(x)
    axes = axes_of(axis, x.ndim)
    others = {name: scale(name, one, x, axes) for name, one in (("weight", weight), ("bias", bias)) if one is not None}
    is_float = x.dtype.name in ("float16", "bfloat16", "float32", "float64")
    in_f64 = not is_float or "float64" in (x.dtype.name, *(one.dtype.name for one in others.values()))
    wide = "f64" if in_f64 else "f32"

    def written(text: str, names: dict[str, Any]) -> tuple[str, list[Any], str]:
        """A region of the element and of the names that its text has, with these operands, and the words for its type."""
        used = {name: one for name, one in names.items() if re.search(rf"\b{name}\b", text)}
        operands = [x, *used.values()]
        text = text.replace("$", "x" if is_float else f"{wide}(x)")
        acc = "acc=f64" if in_f64 and "float64" not in [one.dtype.name for one in operands] else ""
        return f"region {', '.join(['x', *used])} %s {{ {text} }}", operands, acc

    label = name.replace("_", "-")
    found: dict[str, Any] = {}
    for results, text in stages:
        region, operands, acc = written(text, found)
        name = f"{label}-{results.replace(', ', '-')}"
        arrays = reduced(region % "", operands, axes, keepdims=True, words=acc, label=name, tells=not found)
        found.update(zip(results.split(", "), arrays, strict=True))
    for name, sign in (("weight", "*"), ("bias", "+")):
        if name in others:
            value += f" {sign} " + (f"{wide}({name})" if others[name].dtype.kind in "biu" else name)
    result = x.dtype.name if is_float else "float64"
    value = value if NAMES[result] == wide else f"{NAMES[result]}({value})"
    region, operands, acc = written(value, {**found, **others})
    return applied(region % f"{acc} axes=[]", operands[0], operands[1:], result, label)


def softmax(x: Any, axis: Axis = -1) -> Any:
    """exp(x - max) divided by the sum of it over some axes; the result has the shape and chunks of ``x``.

    The array is read three times: for the greatest elements, for the sums, and for the result. Chunks that are made by tasks
    are held, or spilled to disk by Dask, until the last pass.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> cfd.softmax(da.from_array([[0.0, 0.0], [1.0, float("-inf")]], chunks=1)).compute()
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    return _normalised("softmax", x, axis, [("m", "max($)"), ("s", "sum(exp($ - m))")], "exp($ - m) / s")


def log_softmax(x: Any, axis: Axis = -1) -> Any:
    """x - max - log(sum(exp(x - max))) over some axes; otherwise as :func:`softmax`.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> cfd.log_softmax(da.from_array([0.0, 0.0], chunks=1)).compute()
    array([-0.69314718, -0.69314718])
    """
    return _normalised("log_softmax", x, axis, [("m", "max($)"), ("s", "log(sum(exp($ - m)))")], "$ - m - s")


def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, axis: Axis = -1, eps: float = 1e-5) -> Any:
    """(x - mean) / sqrt(var + eps) * weight + bias, with mean and variance over some axes.

    ``weight`` and ``bias`` are arrays of NumPy or Dask that have the shape of the reduced axes, or one that broadcasts to
    ``x``. The result has the shape, chunks and dtype of ``x``, which is read twice.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da, numpy as np
    >>> cfd.layer_norm(da.from_array([[1.0, 3.0], [5.0, 5.0]], chunks=1), np.array([2.0, 1.0]), eps=0).compute()
    array([[-2.,  1.],
           [nan, nan]])
    """
    moments = f"c, d = mean_pair($); c, d, 1 / sqrt(var($) + {float(eps)!r})"
    return _normalised("layer_norm", x, axis, [("c, d, r", moments)], "($ - c - d) * r", weight, bias)


def rms_norm(x: Any, weight: Any = None, *, axis: Axis = -1, eps: float = 1e-5) -> Any:
    """x / sqrt(mean(x * x) + eps) * weight, with the mean over some axes; otherwise as :func:`layer_norm`.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> cfd.rms_norm(da.from_array([3.0, -3.0], chunks=1), eps=0).compute()
    array([ 1., -1.])
    """
    return _normalised("rms_norm", x, axis, [("r", f"1 / sqrt(mean($ * $) + {float(eps)!r})")], "$ * r", weight)


def normalize(x: Any, axis: Axis = -1, *, ord: float = 2, eps: float = 1e-12) -> Any:
    """x / max(norm, eps), with the norm of :func:`vector_norm` over some axes; the result has the shape of ``x``.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da
    >>> cfd.normalize(da.from_array([3.0, 4.0], chunks=1)).compute()
    array([0.6, 0.8])
    """
    wide = np.float32 if checked(x).dtype.name in ("float16", "bfloat16", "float32") else np.float64
    norm, _ = _core.body(_core.FUNCTIONS["vector_norm"], np.dtype(wide), float(ord))
    stages = [("n", f"max({norm.replace('x0', '$')}, {float(eps)!r})")]
    return _normalised("normalize", x, axis, stages, "$ / n")
