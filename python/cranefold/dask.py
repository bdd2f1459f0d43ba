"""Reductions of Dask arrays whose bits do not depend on the chunks.

Each chunk becomes a state of a few hundred bytes, or more where it ends inside a block of the reduction tree; neighbouring
states combine in order in a tree of tasks, and the finish gives the bits of ``cranefold`` on the whole array in memory.
Chunks are any along the first reduced axis of extent above 1, and any along kept axes. Along the other reduced axes they are
brought together first by ``rechunk``, with a warning that says so.

>>> import cranefold.dask as cfd, dask.array as da, numpy as np
>>> x = da.from_array(np.arange(10, dtype=np.float32), chunks=(3, 6, 1))
>>> float(cfd.sum(x).compute())
45.0
"""

from __future__ import annotations

import functools
import importlib
import itertools
import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from cranefold import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["argmax", "argmin", "logsumexp", "max", "mean", "min", "prod", "reduce", "std", "sum", "var"]

# The builtins whose names the functions below take.
_zip, _range = zip, range

_NAMES = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16",
}


# The partial results of boxes, which each process makes for itself, and the most that it keeps.
_PARTIALS: dict[tuple[str, tuple[tuple[int, int], ...]], _core.Partial] = {}
_MOST_PARTIALS = 1024


def _partial(spec: str, kept: tuple[tuple[int, int], ...]) -> _core.Partial:
    found = _PARTIALS.get((spec, kept))
    if found is None:
        if len(_PARTIALS) >= _MOST_PARTIALS:
            _PARTIALS.clear()
        found = _PARTIALS[spec, kept] = _core.Partial(spec, list(kept))
    return found


def _dtype(name: str) -> Any:
    return np.dtype(importlib.import_module("ml_dtypes").bfloat16 if name == "bfloat16" else name)


def _row(x: Any) -> Any:
    """The bytes of an array in row-major order."""
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def _shard(spec: str, kept: tuple[tuple[int, int], ...], chunk: tuple[tuple[int, int], ...], x: Any) -> bytes:
    return _partial(spec, kept).shard(list(chunk), [_row(x)])


def _combine(spec: str, kept: tuple[tuple[int, int], ...], states: Sequence[bytes]) -> bytes:
    return functools.reduce(_partial(spec, kept).combine, states)


def _finish(spec: str, kept: tuple[tuple[int, int], ...], state: bytes) -> tuple[Any, ...]:
    partial = _partial(spec, kept)
    outputs = _zip(partial.outputs, partial.finish(state))
    return tuple(np.frombuffer(row, _dtype(dtype)).reshape(shape).copy() for (dtype, shape), row in outputs)


def _nothing(outputs: Sequence[str], shape: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(np.empty(shape, _dtype(dtype)) for dtype in outputs)


def _take(outputs: tuple[Any, ...], number: int) -> Any:
    return outputs[number]


def _axes(axis: int | Sequence[int] | None, rank: int) -> list[int]:
    given = _range(rank) if axis is None else [axis] if isinstance(axis, (int, np.integer)) else axis
    axes = []
    for one in given:
        if not -rank <= one < rank:
            raise np.exceptions.AxisError(one, rank)
        axes.append(int(one) % rank)
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis {tuple(given)} names an axis twice")
    return sorted(axes)


def reduce(op: str, x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False,
           split_every: int = 8) -> Any:
    """The reduction of a Dask array by an op as in the text of a spec, such as ``"var(ddof=1)"``.

    Several ops with commas between them give a tuple of arrays in one pass. The bits are those of the spec
    ``op dtype[shape] axes=[axis] order=logical`` in memory, whatever the chunks and ``split_every``, the number of states
    that a task combines.

    Raises
    ------
    cranefold.SpecError
        If the op is unknown or does not take the type.
    ValueError
        If the array has an unknown shape or no elements to reduce in blocks, as for ``"median"``.

    Examples
    --------
    >>> import cranefold.dask as cfd, dask.array as da, numpy as np
    >>> x = da.from_array(np.arange(12, dtype=np.float32).reshape(6, 2), chunks=((1, 5), 1))
    >>> mean, most = cfd.reduce("mean,max", x, axis=0)
    >>> mean.compute(), most.compute()
    (array([5., 6.], dtype=float32), array([10., 11.], dtype=float32))
    """
    da: Any = importlib.import_module("dask.array")
    tokenize: Any = importlib.import_module("dask.base").tokenize
    layers: Any = importlib.import_module("dask.highlevelgraph").HighLevelGraph
    if split_every < 2:
        raise ValueError(f"split_every is {split_every}, the least is 2")
    if any(np.isnan(extent) for extent in x.shape):
        raise ValueError(f"the shape {x.shape} is not known: call compute_chunk_sizes() first")
    axes = _axes(axis, x.ndim)
    if not axes:
        raise ValueError("no axis is reduced")
    if x.dtype.name not in _NAMES:
        raise TypeError(f"{x.dtype} has no reductions")
    shape = ",".join(str(extent) for extent in x.shape)
    keep = " keep_dims" if keepdims else ""
    spec = f"{op} {_NAMES[x.dtype.name]}[{shape}] axes=[{','.join(map(str, axes))}]{keep} order=logical"
    whole = _core.Partial(spec)
    cut = whole.axis
    several = [a for a in axes if a != cut and x.numblocks[a] > 1]
    if several:
        warnings.warn(f"chunks along the reduced axes {several} are brought together: of reduced axes only the first, "
                      f"axis {cut}, may be in several chunks", stacklevel=2)
        x = x.rechunk({a: -1 for a in several})

    token = tokenize("cranefold.dask", spec, x.name, split_every)
    label = re.sub(r"[^a-z0-9_]+", "-", op.lower()).strip("-")
    shard, combine, finish = (f"cranefold-{label}-{step}-{token}" for step in ("shard", "combine", "finish"))
    bounds = [[0, *itertools.accumulate(sizes)] for sizes in x.chunks]
    kept_axes = [a for a in _range(x.ndim) if a not in axes]
    graph: dict[Any, Any] = {}

    def block(at: dict[int, int]) -> tuple[int, ...]:
        return tuple(at.get(a, 0) for a in _range(x.ndim))

    def within(at: dict[int, int]) -> tuple[tuple[int, int], ...]:
        return tuple((bounds[a][i], bounds[a][i + 1]) for a, i in enumerate(block(at)))

    for places in itertools.product(*(_range(x.numblocks[a]) for a in kept_axes)):
        kept_at = dict(_zip(kept_axes, places))
        kept = tuple(within(kept_at)[a] for a in kept_axes)
        if any(start == end for start, end in kept):
            sizes = tuple(1 if a in axes else end - start
                          for a, (start, end) in enumerate(within(kept_at)) if keepdims or a not in axes)
            graph[(finish, *places)] = (_nothing, [dtype for dtype, _ in whole.outputs], sizes)
            continue
        row: list[Any] = []
        for i in _range(x.numblocks[cut]):
            at = {**kept_at, cut: i}
            graph[(shard, *block(at))] = (_shard, spec, kept, within(at), (x.name, *block(at)))
            row.append((shard, *block(at)))
        level = 0
        while len(row) > 1:
            groups = [row[n:n + split_every] for n in _range(0, len(row), split_every)]
            row = []
            for n, group in enumerate(groups):
                key = (f"{combine}-{level}", *places, n)
                graph[key] = (_combine, spec, kept, group)
                row.append(key)
            level += 1
        graph[(finish, *places)] = (_finish, spec, kept, row[0])

    results = []
    for number, (dtype_name, _) in enumerate(whole.outputs):
        name = f"cranefold-{label}-{number}-{token}"
        chunks = tuple((1,) if a in axes else x.chunks[a] for a in _range(x.ndim) if keepdims or a not in axes)
        layer = dict(graph)
        for places in itertools.product(*(_range(x.numblocks[a]) for a in kept_axes)):
            own = dict(_zip(kept_axes, places))
            key = (name, *(own.get(a, 0) for a in _range(x.ndim) if keepdims or a not in axes))
            layer[key] = (_take, (finish, *places), number)
        dtype = _dtype(dtype_name)
        collection = layers.from_collections(name, layer, dependencies=[x])
        meta = np.empty((0,) * len(chunks), dtype)
        results.append(da.Array(collection, name, chunks, dtype=dtype, meta=meta))
    return results[0] if len(results) == 1 else tuple(results)


def sum(x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Any:
    """The sum, of the type that the op's text gives: that of ``x`` for floats."""
    return reduce("sum", x, axis, keepdims=keepdims)


def prod(x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Any:
    """The product."""
    return reduce("prod", x, axis, keepdims=keepdims)


def mean(x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Any:
    """The mean."""
    return reduce("mean", x, axis, keepdims=keepdims)


def var(x: Any, axis: int | Sequence[int] | None = None, *, correction: float = 0, keepdims: bool = False) -> Any:
    """The variance: the sum of squared distances from the mean over the count less ``correction``."""
    return reduce(f"var(ddof={correction})" if correction else "var", x, axis, keepdims=keepdims)


def std(x: Any, axis: int | Sequence[int] | None = None, *, correction: float = 0, keepdims: bool = False) -> Any:
    """The square root of the variance."""
    return reduce(f"std(ddof={correction})" if correction else "std", x, axis, keepdims=keepdims)


def max(x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Any:
    """The greatest element; NaN if there is one."""
    return reduce("max", x, axis, keepdims=keepdims)


def min(x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Any:
    """The least element; NaN if there is one."""
    return reduce("min", x, axis, keepdims=keepdims)


def argmax(x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Any:
    """The position of the first greatest element in the whole array's reduced axes."""
    return reduce("argmax", x, axis, keepdims=keepdims)


def argmin(x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Any:
    """The position of the first least element in the whole array's reduced axes."""
    return reduce("argmin", x, axis, keepdims=keepdims)


def logsumexp(x: Any, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Any:
    """The logarithm of the sum of the exponentials."""
    return reduce("log_sum_exp", x, axis, keepdims=keepdims)
