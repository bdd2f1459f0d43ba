"""Chunks of parts of other chunks: where a range lies in them, how kept axes are divided, and the elements in bands.

Where chunks along a reduced axis are brought together, no array of the whole is made. A task gets the parts, copies a band
of them at a time to memory that the next band overwrites, and reduces it there. Kept axes are divided, so that there are
about as many tasks as there were chunks, and each reads about as many bytes.
"""

from __future__ import annotations

import bisect
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Take = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]
"""The shape of a chunk that is made of parts, and the position of the first element of each part in it."""

BAND_BYTES = 1 << 21
"""Bytes of a band. Of 256 KB, bands of 256 MB took 1.7 times as long as of 4 MB, and of 1 MB 1.2 times."""

LEAST_BYTES = 1 << 20
"""The bytes below which chunks are not divided: a task takes some milliseconds on a cluster."""

LEAST_PART_BYTES = 1 << 18
"""The bytes below which parts are not divided: each is a task, too."""

LEAST_BLOCKS = 16
"""The blocks of a slice below which a range along the cut axis is not divided: its ragged ends would travel."""

BLOCK_ELEMENTS, BLOCK_ROWS = 4096, 64
"""The most elements of a block of one slice, and its rows where kept axes lie behind the reduced ones."""


def overlaps(bounds: Sequence[int], start: int, stop: int) -> list[tuple[int, int, int]]:
    """The blocks that a range lies in, each with the first position and the one after the last in the block."""
    if start == stop:
        block = min(max(bisect.bisect_left(bounds, start) - 1, 0), len(bounds) - 2)
        return [(block, start - bounds[block], start - bounds[block])]
    found = []
    for block in range(bisect.bisect_right(bounds, start) - 1, bisect.bisect_left(bounds, stop)):
        first, last = max(start, bounds[block]), min(stop, bounds[block + 1])
        if first < last:
            found.append((block, first - bounds[block], last - bounds[block]))
    return found


def divided(sizes: Sequence[int], width: int) -> tuple[int, ...]:
    """Chunks of at most this width, whose ends are those of the given chunks and others between them."""
    full = [[width] * (size // width) + [size % width] * (size % width > 0 or size == 0) for size in sizes]
    return tuple(itertools.chain.from_iterable(full))


def block(behind: int) -> int:
    """The most elements of a block of one slice, of which so many lie side by side."""
    return BLOCK_ELEMENTS if behind == 1 else BLOCK_ROWS


def whole_blocks(width: int, inner: int, elements: int) -> int:
    """A width near this one along the cut axis, of whole blocks and at least the least number of them.

    `inner` is the number of elements of a slice at each position, and `elements` that of a block.
    """
    step = elements // math.gcd(max(inner, 1), elements)
    least = -(-LEAST_BLOCKS * elements // max(inner, 1))
    return -(-max(width - width % step, least) // step) * step


def part_of(x: Any, starts: Sequence[int], stops: Sequence[int]) -> Any:
    """The elements of an array in a box."""
    return x[tuple(map(slice, starts, stops))]


def bands(takes: Sequence[Take | None], axes: Sequence[int | None], extent: int, least: int,
          arrays: Sequence[Any]) -> Iterator[tuple[int, int, list[Any]]]:
    """The operands of a chunk, some positions of an axis at a time, each with its first position and the one after the last.

    Operand n is one array, or of the parts that `takes[n]` places, and has the axis as `axes[n]`, or lacks it. A band has at
    least so many positions. Its parts are copied to memory that the next band overwrites.
    """
    given = iter(arrays)
    groups = [list(itertools.islice(given, 1 if take is None else len(take[1]))) for take in takes]
    shapes = [list(group[0].shape if take is None else take[0]) for take, group in zip(takes, groups, strict=True)]
    joined = [(n, own) for n, own in enumerate(axes) if takes[n] is not None and own is not None]
    each = sum(math.prod(shapes[n]) // max(extent, 1) * groups[n][0].dtype.itemsize for n, _ in joined)
    # Powers of two, so that chunks of other extents have bands of the same shape, whose code is compiled.
    rows = max(1 << (max(BAND_BYTES // max(each, 1), 1).bit_length() - 1), least)
    room = {n: np.empty([*shapes[n][:own], min(rows, extent), *shapes[n][own + 1:]], groups[n][0].dtype) for n, own in joined}
    whole = {n: np.empty(shapes[n], groups[n][0].dtype) for n, take in enumerate(takes) if take is not None and n not in room}
    for n, array in whole.items():
        fill(array, takes[n], groups[n], None, 0, 0)
    for start in range(0, max(extent, 1), rows):
        stop = min(start + rows, extent)
        operands = []
        for n, own in enumerate(axes):
            if own is None:
                operands.append(whole.get(n, groups[n][0]))
            elif n in room:
                band = room[n][(slice(None),) * own + (slice(stop - start),)]
                fill(band, takes[n], groups[n], own, start, stop)
                operands.append(band)
            else:
                operands.append(groups[n][0][(slice(None),) * own + (slice(start, stop),)])
        yield start, stop, operands


def fill(into: Any, take: Take | None, parts: Sequence[Any], axis: int | None, start: int, stop: int) -> None:
    """Copies parts of a chunk, as far as they lie in a range of an axis, to an array of that range."""
    for first, part in zip(take[1] if take else [], parts, strict=True):
        given, place = [], []
        for own, (at, count) in enumerate(zip(first, part.shape, strict=True)):
            low, high = (max(at, start), min(at + count, stop)) if own == axis else (at, at + count)
            given.append(slice(low - at, max(high - at, low - at)))
            origin = start if own == axis else 0
            place.append(slice(low - origin, max(high - origin, low - origin)))
        into[tuple(place)] = part[tuple(given)]
