"""The types of arguments, for annotations."""

from typing import Any, Literal, TypeAlias

Array: TypeAlias = Any
"""An array: of NumPy, torch, JAX, or anything with DLPack or the buffer protocol."""

Axis: TypeAlias = int | tuple[int, ...] | None
"""An axis, several, or all."""

DTypeLike: TypeAlias = Any
"""A `numpy.dtype`, a type such as `numpy.float32`, torch's or JAX's own, or a name such as "float32" or "bf16"."""

Order: TypeAlias = Literal["logical", "memory"]
"""The order of accumulation: by the shape alone, or by strides."""
