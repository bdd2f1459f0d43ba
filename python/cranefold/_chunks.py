"""Graphs of tasks that reduce chunks to states, combine them in order, and finish them.

A graph has a task for each chunk (`shard`), a tree of tasks that combine neighbouring states (`combine`), and a task for
each chunk of the result (`finish`). Where chunks have whole slices, there is one task for each (`reduce`) and no state. The
functions of the tasks are at the head of this file: they take text, numbers, bytes
and arrays, and compile what they need once in each process.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import operator
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from cranefold import _core
from cranefold._operands import NAMES, aligned, cut_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Range = tuple[int, int]
"""The first position along an axis, and the one after the last."""

# The partial results of boxes, and of the last box of each spec, whose code those of equal extents share. Each process
# makes its own, and keeps so many.
_PARTIALS: dict[tuple[str, tuple[Range, ...]], _core.Partial] = {}
_LAST: dict[str, _core.Partial] = {}
_MOST_PARTIALS = 1024


def _partial(spec: str, kept: tuple[Range, ...]) -> _core.Partial:
    found = _PARTIALS.get((spec, kept))
    if found is None:
        if len(_PARTIALS) >= _MOST_PARTIALS:
            _PARTIALS.clear()
            _LAST.clear()
        last = _LAST.get(spec)
        found = _core.Partial(spec, list(kept)) if last is None else last.of_box(list(kept))
        _PARTIALS[spec, kept] = _LAST[spec] = found
    return found


def _dtype(name: str) -> Any:
    return np.dtype(importlib.import_module("ml_dtypes").bfloat16 if name == "bfloat16" else name)


def _check(dtypes: Sequence[str], arrays: Sequence[Any]) -> None:
    """Refuses chunks of other dtypes than their arrays, which shows only once they are made."""
    for dtype, x in zip(dtypes, arrays, strict=True):
        if x.dtype.name != dtype or not x.dtype.isnative:
            raise TypeError(f"a chunk is {x.dtype.newbyteorder('=')}, and its array says {dtype}")


def _rows(dtypes: Sequence[str], arrays: Sequence[Any]) -> list[Any]:
    """The bytes of arrays in row-major order."""
    _check(dtypes, arrays)
    return [np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in arrays]


def _shard(spec: str, kept: tuple[Range, ...], chunk: tuple[Range, ...], dtypes: tuple[str, ...], *arrays: Any) -> bytes:
    return _partial(spec, kept).shard(list(chunk), _rows(dtypes, arrays))


def _combine(spec: str, kept: tuple[Range, ...], states: Sequence[bytes]) -> bytes:
    return functools.reduce(_partial(spec, kept).combine, states)


def _finish(spec: str, kept: tuple[Range, ...], state: bytes, dtypes: tuple[str, ...], *arrays: Any) -> Any:
    partial = _partial(spec, kept)
    rows = partial.finish(state, _rows(dtypes, arrays))
    outputs = zip(partial.outputs, rows, strict=True)
    # An array over `bytes` is read-only, and those of other functions are not.
    results = [np.frombuffer(row, _dtype(dtype)).reshape(shape).copy() for (dtype, shape), row in outputs]
    return results[0] if len(results) == 1 else tuple(results)


def _whole(text: str, words: str, dtypes: Sequence[str], *arrays: Any) -> Any:
    _check(dtypes, arrays)
    found = _core.reduce_chunk(text, words, *arrays)
    return tuple(map(np.asarray, found)) if isinstance(found, tuple) else np.asarray(found)


def _nothing(dtypes: Sequence[str], shape: tuple[int, ...]) -> Any:
    results = [np.empty(shape, _dtype(dtype)) for dtype in dtypes]
    return results[0] if len(results) == 1 else tuple(results)


def _elements(*arrays: Any, text: str, result: str) -> Any:
    x = arrays[0]
    return _core.reduce_chunk(text, "order=logical", *arrays) if x.size else np.empty(x.shape, _dtype(result))


def _label(text: str) -> str:
    """The words that tell tasks of this text apart in Dask's bars, which show letters up to the first word with others."""
    if text.split(None, 1)[0] == "region":
        return "region"
    ops = re.sub(r"\([^()]*\)", "", re.split(r"\s+\w+=", text)[0])
    words = re.findall(r"[a-z]+", ops.lower())
    return "-".join(words)


def reduced(text: str, operands: Sequence[Any], axes: Sequence[int], *, keepdims: bool = False, split_every: int = 8,
            words: str = "", label: str | None = None) -> tuple[Any, ...]:
    """The outputs of a spec or region without operands as Dask arrays."""
    tokenize: Any = importlib.import_module("dask.base").tokenize
    typed = [f"{NAMES[x.dtype.name]}[{','.join(map(str, x.shape))}]" for x in operands]
    words += f" axes=[{','.join(map(str, axes))}]{' keep_dims' if keepdims else ''} order=logical"
    reduction = _core.Reduction(text, typed, words.strip())
    spec, shape, places = reduction.spec, reduction.shape, reduction.places
    operands, chunks = aligned(operands, places, axes, shape)
    token = tokenize("cranefold", spec, [x.name for x in operands], split_every)
    label = label or _label(text)
    cut = cut_of(shape, axes)
    graph = _Graph(spec, operands, places, chunks, axes, cut, keepdims)
    if graph.has_states_as_large_as_chunks():
        whole = [{own: -1} if (own := place[cut]) is not None else {} for place in places]
        operands = [x.rechunk(own) if own else x for x, own in zip(operands, whole, strict=True)]
        chunks = [(shape[axis],) if axis == cut else sizes for axis, sizes in enumerate(chunks)]
        graph = _Graph(spec, operands, places, chunks, axes, cut, keepdims)
    # The numbers of kept axes, and their extents, are those of the whole array.
    is_apart = graph.is_apart() and not re.search(r"\b(position|extent)\b", text)
    return graph.arrays(reduction.outputs, label, token, split_every, (text, words.strip()) if is_apart else None)


class _Graph:
    """The graph of a reduction of operands in chunks that agree."""

    def __init__(self, spec: str, operands: Sequence[Any], places: Sequence[Sequence[int | None]],
                 chunks: Sequence[tuple[int, ...]], axes: Sequence[int], cut: int, keepdims: bool) -> None:
        self.spec, self.operands, self.places, self.chunks = spec, operands, places, chunks
        self.axes, self.cut, self.keepdims = axes, cut, keepdims
        self.kept = [axis for axis in range(len(chunks)) if axis not in axes]
        self.bounds = [[0, *itertools.accumulate(sizes)] for sizes in chunks]

    def range_of(self, axis: int, block: int) -> Range:
        return self.bounds[axis][block], self.bounds[axis][block + 1]

    def blocks(self, at: Mapping[int, int]) -> tuple[int, ...]:
        """The number of the chunk along each axis, of which there is one where `at` does not say."""
        return tuple(at.get(axis, 0) for axis in range(len(self.chunks)))

    def operand_blocks(self, numbers: Sequence[int], at: Mapping[int, int]) -> list[tuple[Any, ...]]:
        """The keys of operands' chunks."""
        keys = []
        for n in numbers:
            own = {own: at.get(axis, 0) for axis, own in enumerate(self.places[n]) if own is not None}
            keys.append((self.operands[n].name, *(own.get(axis, 0) for axis in range(self.operands[n].ndim))))
        return keys

    def result_of(self, values: Mapping[int, Any], reduced: Any) -> tuple[Any, ...]:
        """A value for each axis of the result, of which the reduced ones have `reduced`."""
        axes = range(len(self.chunks))
        return tuple(values.get(axis, reduced) for axis in axes if self.keepdims or axis not in self.axes)

    def is_apart(self) -> bool:
        """True if each chunk has whole slices, whose results are those of a kernel of the chunk alone."""
        return len(self.chunks[self.cut]) == 1 and self.has_own_trees()

    def has_own_trees(self) -> bool:
        """True if whole slices of a box of kept axes are reduced as those of the array.

        Kept axes behind the last reduced one decide how many lanes a slice has, so they must be whole, too.
        """
        behind = range(max(self.axes) + 1, len(self.chunks))
        return all(len(self.chunks[axis]) == 1 for axis in behind) and all(sum(self.chunks[axis]) > 0 for axis in self.axes)

    def has_states_as_large_as_chunks(self) -> bool:
        """True if slices are so short that the states of their chunks may have all of their elements."""
        if len(self.chunks[self.cut]) == 1 or not self.has_own_trees():
            return False
        at = {axis: int(np.argmax(self.chunks[axis])) for axis in self.kept}
        kept = tuple(self.range_of(axis, block) for axis, block in at.items())
        if any(start == stop for start, stop in kept):
            return False
        extents = {axis: stop - start for axis, (start, stop) in zip(self.kept, kept, strict=True)}
        elements = [
            [extents.get(axis, sum(self.chunks[axis])) for axis, own in enumerate(place) if own is not None]
            for place in self.places
        ]
        size = sum(math.prod(own) * x.dtype.itemsize for own, x in zip(elements, self.operands, strict=True))
        return bool(_partial(self.spec, kept).state_bytes >= size)

    def arrays(self, outputs: Sequence[str], label: str, token: str, split_every: int,
               alone: tuple[str, str] | None) -> tuple[Any, ...]:
        """The outputs; `alone` has the text and the words of a kernel of each chunk, if there is one."""
        da: Any = importlib.import_module("dask.array")
        steps = ("shard", "combine", "finish") if alone is None else ("reduce",)
        names = {step: f"cranefold-{label}-{step}-{token}" for step in steps}
        below = {layer for x in self.operands for layer in x.__dask_layers__()}
        if alone is None:
            layers = self.layers(names, outputs, split_every)
            shard, combine, finish = names.values()
            depends = {shard: below, combine: {shard}, finish: {shard, combine, *below}}
        else:
            finish = names["reduce"]
            layers, depends = {finish: self.whole(finish, outputs, *alone)}, {finish: below}
        results = [finish]
        if len(outputs) > 1:
            results = [f"cranefold-{label}-output-{n}-{token}" for n in range(len(outputs))]
            for n, name in enumerate(results):
                layers[name] = {(name, *key[1:]): (operator.getitem, key, n) for key in layers[finish]}
                depends[name] = {finish}
        chunks = self.result_of({axis: self.chunks[axis] for axis in self.kept}, (1,))
        found = []
        for dtype, name in zip(outputs, results, strict=True):
            graph = self.graph(layers, depends, [*names.values(), name])
            meta = np.empty((0,) * len(chunks), _dtype(dtype))
            found.append(da.Array(graph, name, chunks, dtype=meta.dtype, meta=meta))
        return tuple(found)

    def graph(self, layers: Mapping[str, Any], depends: Mapping[str, set[str]], names: Sequence[str]) -> Any:
        """The graph of some layers, and of those of the operands."""
        graphs: Any = importlib.import_module("dask.highlevelgraph").HighLevelGraph
        below = graphs.merge(*(x.dask for x in self.operands))
        own = {name: layers[name] for name in names}
        return graphs({**below.layers, **own}, {**below.dependencies, **{name: depends[name] for name in own}})

    def whole(self, name: str, outputs: Sequence[str], text: str, words: str) -> dict[Any, Any]:
        """The tasks that reduce whole slices."""
        tasks: dict[Any, Any] = {}
        is_checked = False
        dtypes = tuple(x.dtype.name for x in self.operands)
        for places in itertools.product(*(range(len(self.chunks[axis])) for axis in self.kept)):
            at = dict(zip(self.kept, places, strict=True))
            extents = {axis: self.chunks[axis][block] for axis, block in at.items()}
            key = (name, *self.result_of(at, 0))
            if 0 in extents.values():
                tasks[key] = (_nothing, list(outputs), self.result_of(extents, 1))
                continue
            if not is_checked:
                # What other chunks refuse is refused here, too.
                _partial(self.spec, tuple(self.range_of(axis, block) for axis, block in at.items()))
                is_checked = True
            arrays = self.operand_blocks(range(len(self.operands)), at)
            tasks[key] = (_whole, text, words, dtypes, *arrays)
        return tasks

    def layers(self, names: Mapping[str, str], outputs: Sequence[str], split_every: int) -> dict[str, dict[Any, Any]]:
        """The tasks of each step."""
        shards: dict[Any, Any] = {}
        combines: dict[Any, Any] = {}
        finishes: dict[Any, Any] = {}
        takes: tuple[list[int], list[int]] | None = None
        dtypes = [x.dtype.name for x in self.operands]
        for places in itertools.product(*(range(len(self.chunks[axis])) for axis in self.kept)):
            at = dict(zip(self.kept, places, strict=True))
            kept = tuple(self.range_of(axis, block) for axis, block in at.items())
            end = (names["finish"], *self.result_of(at, 0))
            if any(start == stop for start, stop in kept):
                extents = {axis: stop - start for axis, (start, stop) in zip(self.kept, kept, strict=True)}
                finishes[end] = (_nothing, list(outputs), self.result_of(extents, 1))
                continue
            takes = takes or self.takes(kept, at)
            read, late = takes
            row: list[Any] = []
            for block in range(len(self.chunks[self.cut])):
                here = {**at, self.cut: block}
                key = (names["shard"], *self.blocks(here))
                chunk = tuple(self.range_of(axis, n) for axis, n in enumerate(self.blocks(here)))
                arrays = self.operand_blocks(read, here)
                shards[key] = (_shard, self.spec, kept, chunk, tuple(dtypes[n] for n in read), *arrays)
                row.append(key)
            for level in itertools.count():
                if len(row) == 1:
                    break
                groups = [row[n:n + split_every] for n in range(0, len(row), split_every)]
                row = [(names["combine"], *places, level, n) for n in range(len(groups))]
                combines.update((key, (_combine, self.spec, kept, group)) for key, group in zip(row, groups, strict=True))
            arrays = self.operand_blocks(late, at)
            finishes[end] = (_finish, self.spec, kept, row[0], tuple(dtypes[n] for n in late), *arrays)
        return {names["shard"]: shards, names["combine"]: combines, names["finish"]: finishes}

    def takes(self, kept: tuple[Range, ...], at: Mapping[int, int]) -> tuple[list[int], list[int]]:
        """The operands that chunks are reduced from, and those that the finish reads."""
        partial = _partial(self.spec, kept)
        chunk = [self.range_of(axis, n) for axis, n in enumerate(self.blocks(at))]
        chunk[self.cut] = (0, 0)
        return partial.reads(chunk), partial.finish_reads


def applied(text: str, x: Any, others: Sequence[Any], dtype: str, label: str) -> Any:
    """The elements of a region without operands, chunk by chunk of the first of them; the others broadcast to it."""
    da: Any = importlib.import_module("dask.array")
    axes = tuple(range(x.ndim))
    operands = [part for one in (x, *others) for part in (one, axes[x.ndim - one.ndim:])]
    meta = np.empty((0,) * x.ndim, _dtype(dtype))
    return da.blockwise(_elements, axes, *operands, text=text, result=dtype, dtype=meta.dtype, meta=meta,
                        token=f"cranefold-{label}-apply", align_arrays=False)
