"""The operands of reductions in chunks: their checks, and chunks that agree."""

from __future__ import annotations

import importlib
import math
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranefold._types import Axis

NAMES = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16",
}
"""The dtypes, with the names that specs have for them."""


def warn(message: str) -> None:
    """Warns at the line that called this package."""
    depth = 1
    while sys._getframe(depth).f_globals.get("__name__", "").startswith("cranefold."):
        depth += 1
    warnings.warn(message, stacklevel=depth + 1)


def checked(x: Any, name: str = "x") -> Any:
    """A Dask array whose chunks can be reduced."""
    da: Any = importlib.import_module("dask.array")
    if not isinstance(x, da.Array):
        kind = f"{type(x).__module__}.{type(x).__qualname__}"
        raise TypeError(f"{name} is a {kind}, not a dask.array.Array: pass dask.array.from_array({name}), the .data of an "
                        "xarray.DataArray, or call the function of cranefold itself")
    if any(math.isnan(extent) for extent in x.shape):
        raise ValueError(f"the shape {x.shape} of {name} is not known: call {name}.compute_chunk_sizes() first")
    if x.dtype.name not in NAMES:
        raise TypeError(f"{x.dtype} has no reductions: the dtypes are {', '.join(NAMES)}")
    if type(x._meta) is not np.ndarray:
        kind = f"{type(x._meta).__module__}.{type(x._meta).__qualname__}"
        raise TypeError(f"the chunks of {name} are {kind}, not numpy.ndarray")
    return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))


def axes_of(axis: Axis, rank: int) -> list[int]:
    """The reduced axes in order, each once and from 0 on."""
    given = range(rank) if axis is None else axis if isinstance(axis, (tuple, list)) else [axis]
    axes = []
    for one in given:
        if not isinstance(one, (int, np.integer)) or isinstance(one, bool):
            raise TypeError(f"axis is {axis!r}, not an integer, a tuple of integers or None")
        if not -rank <= one < rank:
            raise np.exceptions.AxisError(f"axis {one} is out of range for rank {rank}")
        axes.append(int(one) % rank)
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis {tuple(given)} names an axis twice")
    if not axes:
        raise ValueError(f"no axis is reduced: axis is {axis!r}, and the rank is {rank}")
    return sorted(axes)


def cut_of(shape: Sequence[int], axes: Sequence[int]) -> int:
    """The reduced axis that may be in several chunks: the first of extent above 1."""
    return next((axis for axis in axes if shape[axis] > 1), axes[0])


def aligned(operands: Sequence[Any], places: Sequence[Sequence[int | None]], axes: Sequence[int],
            shape: Sequence[int], tells: bool) -> tuple[list[Any], list[tuple[int, ...]]]:
    """The operands, and the chunks of each axis of the shape: those of the first operand that has the axis.

    Of reduced axes only the first of extent above 1 may be in several chunks, those of the operands along the others are
    brought together, and a warning `tells` so. Operands in other chunks are rechunked along the other axes. `places` has the
    own axes of each operand.
    """
    cut = cut_of(shape, axes)
    chunks: list[tuple[int, ...]] = []
    for axis, extent in enumerate(shape):
        owners = ((x, place[axis]) for x, place in zip(operands, places, strict=True))
        sizes = next(x.chunks[own] for x, own in owners if own is not None)
        chunks.append((extent,) if axis in axes and axis != cut else sizes)
    found, several = [], set()
    for number, (x, place) in enumerate(zip(operands, places, strict=True)):
        wanted = {axis: own for axis, own in enumerate(place) if own is not None and x.chunks[own] != chunks[axis]}
        inner = {axis for axis in wanted if axis in axes and axis != cut}
        several |= inner
        others = {own: chunks[axis] for axis, own in wanted.items() if axis not in inner}
        if others:
            warn(f"operand {number} is rechunked along its axes {[*others]}, to the chunks of the operands before it")
        found.append(x.rechunk(others) if others else x)
    if several and tells:
        warn(f"chunks along the reduced axes {sorted(several)} are brought together: of reduced axes only the first, axis "
             f"{cut}, may be in several chunks")
    return found, chunks


def beside(one: Any, x: Any, name: str) -> Any:
    """A further operand as a Dask array: that of NumPy in chunks like those of `x`."""
    da: Any = importlib.import_module("dask.array")
    if isinstance(one, da.Array):
        return checked(one, name)
    one = np.asarray(one)
    first = x.ndim - one.ndim
    chunks = [x.chunks[first + axis] if first + axis >= 0 and x.shape[first + axis] == extent else (extent,)
              for axis, extent in enumerate(one.shape)]
    return checked(da.from_array(one, chunks=tuple(chunks)), name)


def scale(name: str, one: Any, x: Any, axes: Sequence[int]) -> Any:
    """A weight or bias in the chunks of `x`: it has the shape of the reduced axes, or one that broadcasts to `x`."""
    one = one if hasattr(one, "ndim") else np.asarray(one)
    if one.shape != x.shape and one.shape == tuple(x.shape[axis] for axis in axes):
        one = one.reshape([x.shape[axis] if axis in axes else 1 for axis in range(x.ndim)])
    first = x.ndim - one.ndim
    if first < 0 or any(own not in (1, extent) for own, extent in zip(one.shape, x.shape[first:], strict=True)):
        raise ValueError(f"{name} of shape {list(one.shape)} does not broadcast to shape {list(x.shape)}")
    one = beside(one, x, name)
    alike = {axis: x.chunks[first + axis] for axis, own in enumerate(one.shape) if own == x.shape[first + axis]}
    return one.rechunk(alike)
