"""The page of a kernel in a notebook."""

from __future__ import annotations

import html
import re
import time
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cranefold._core import Kernel

_SECONDS = 0.02
_LOOP = re.compile(r"^ *for \w+ in (\d+)\.\.(\d+)")


def _buffer(elems: int, name: str, random: np.random.Generator) -> Any:
    """A buffer of random elements."""
    if name == "bfloat16":
        from ml_dtypes import bfloat16  # the only dtype that NumPy lacks

        return random.standard_normal(elems).astype(bfloat16)
    dtype = np.dtype(name)
    if dtype.kind == "f":
        return random.standard_normal(elems).astype(dtype)
    return random.integers(0, 2, elems).astype(dtype)


def measured(kernel: Kernel) -> float | None:
    """The median time of a call on random data, in seconds; None where an output is read before it is written."""
    random = np.random.default_rng(0)
    arrays = [_buffer(elems, name, random) for elems, name in kernel.buffers]
    arrays = [array if shape != () else array[0] for array, (shape, _) in zip(arrays, kernel.inputs, strict=True)]
    times: list[float] = []
    end = time.perf_counter() + _SECONDS
    try:
        while len(times) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            kernel(*arrays)
            times.append(time.perf_counter() - start)
    except (TypeError, ValueError):
        return None
    return float(np.median(times))


def hot_loop(nest: str) -> range:
    """The lines of the loop whose body runs most often, by the extents of the loops around it."""
    most, lines = 0, range(0)
    around: list[tuple[int, int]] = []  # indentation and trips of each loop that is open
    for number, line in enumerate(nest.splitlines()):
        indent = len(line) - len(line.lstrip())
        while around and around[-1][0] >= indent:
            around.pop()
        if not (match := _LOOP.match(line)):
            continue
        trips = (int(match[2]) - int(match[1])) * (around[-1][1] if around else 1)
        around.append((indent, trips))
        if trips > most:
            rest = nest.splitlines()[number:]
            closed = line.rstrip().endswith("}")
            end = 1 if closed else next(k for k, other in enumerate(rest) if other == " " * indent + "}") + 1
            most, lines = trips, range(number, number + end)
    return lines


def page(kernel: Kernel) -> str:
    """The region, the schedule, the predicted time beside the measured one, and the nest with its hot loop marked."""
    explained = kernel.explain()
    predicted = next((line[10:].strip() for line in explained.splitlines() if line.startswith("predicted")), "none")
    seconds = measured(kernel)
    told = "not measured" if seconds is None else f"{seconds * 1e6:.1f} us a call from Python"
    if seconds is not None and kernel.bytes:
        told += f", {kernel.bytes / seconds / 1e9:.1f} GB/s"
    nest = kernel.dump("nest")
    hot = hot_loop(nest)
    lines = [
        f'<mark style="background:#fde9c8">{html.escape(line)}</mark>' if number in hot else html.escape(line)
        for number, line in enumerate(nest.splitlines())
    ]
    rows = [("spec", kernel.spec), ("schedule", kernel.schedule), ("predicted", predicted), ("measured", told)]
    cells = "".join(
        f'<tr><th style="text-align:left">{name}</th><td style="text-align:left"><code>{html.escape(text)}</code></td></tr>'
        for name, text in rows
    )
    return (
        f'<div class="cranefold"><table>{cells}</table>'
        f"<details open><summary>nest</summary><pre>{chr(10).join(lines)}</pre></details>"
        f"<details><summary>explain</summary><pre>{html.escape(explained)}</pre></details></div>"
    )
