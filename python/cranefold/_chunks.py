"""Graphs of tasks that reduce chunks to states, combine them in order, and finish them.

A graph has a task for each chunk (`shard`), a tree of tasks that combine neighbouring states (`combine`), and a task for
each chunk of the result (`finish`). Where chunks have whole slices, there is one task for each (`reduce`) and no state. The
functions of the tasks are at the head of this file: they take text, numbers, bytes
and arrays, and compile what they need once in each process.
"""

from __future__ import annotations

import importlib
import itertools
import math
import operator
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from cranefold import _core, _parts
from cranefold._operands import NAMES, aligned, cut_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranefold._parts import Take

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


def _shard_parts(spec: str, kept: tuple[Range, ...], chunk: tuple[Range, ...], dtypes: tuple[str, ...], cut: int, least: int,
                 takes: Sequence[Take | None], axes: Sequence[int | None], *arrays: Any) -> bytes:
    first, last = chunk[cut]
    states = []
    for start, stop, operands in _parts.bands(takes, axes, last - first, least, arrays):
        band = (*chunk[:cut], (first + start, first + stop), *chunk[cut + 1:])
        states.append(_shard(spec, kept, band, dtypes, *operands))
    return _combine(spec, kept, states)


def _combine(spec: str, kept: tuple[Range, ...], states: Sequence[bytes]) -> bytes:
    return _partial(spec, kept).combine(list(states))


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


def _whole_parts(text: str, words: str, dtypes: Sequence[str], extent: int, axis: int, takes: Sequence[Take | None],
                 axes: Sequence[int | None], *arrays: Any) -> Any:
    found = [_whole(text, words, dtypes, *band) for _, _, band in _parts.bands(takes, axes, extent, 1, arrays)]
    if len(found) == 1:
        return found[0]
    if isinstance(found[0], tuple):
        return tuple(np.concatenate(outputs, axis) for outputs in zip(*found, strict=True))
    return np.concatenate(found, axis)


def _again(text: str, shape: tuple[int, ...], results: Sequence[Any]) -> Any:
    """The results of chunks that lie side by side, reduced to those of all: in whatever order, the bits are the same."""
    dtypes = [results[0].dtype.name]
    all_of_them = np.stack([result.reshape(-1) for result in results])
    return _whole(text, "axes=[0] order=logical", dtypes, all_of_them).reshape(shape)


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
            words: str = "", label: str | None = None, tells: bool = True, again: str | None = None) -> tuple[Any, ...]:
    """The outputs of a spec or region without operands as Dask arrays.

    `tells` warns of chunks that are brought together. If the bits do not depend on the order of elements, `again` is the
    text that reduces results of several chunks to one.
    """
    tokenize: Any = importlib.import_module("dask.base").tokenize
    typed = [f"{NAMES[x.dtype.name]}[{','.join(map(str, x.shape))}]" for x in operands]
    words += f" axes=[{','.join(map(str, axes))}]{' keep_dims' if keepdims else ''} order=logical"
    reduction = _core.Reduction(text, typed, words.strip())
    spec, shape, places = reduction.spec, reduction.shape, reduction.places
    label = label or _label(text)
    if again is not None and math.prod(operands[0].numblocks[axis] for axis in axes) > 1 and 0 not in shape:
        token = tokenize("cranefold", spec, operands[0].name, split_every, again)
        return (in_any_order(operands[0], axes, keepdims, reduction.outputs, label, token, split_every, text, words, again),)
    operands, chunks = aligned(operands, places, axes, shape, tells)
    token = tokenize("cranefold", spec, [x.name for x in operands], split_every)
    graph = _Graph(spec, operands, places, chunks, axes, keepdims)
    results = graph.result_chunks()
    if graph.has_states_as_large_as_chunks():
        graph = graph.joined()
    if graph.has_parts():
        graph = graph.divided()
    # The numbers of kept axes, and their extents, are those of the whole array.
    is_apart = graph.is_apart() and not re.search(r"\b(position|extent)\b", text)
    found = graph.arrays(reduction.outputs, label, token, split_every, (text, words.strip()) if is_apart else None)
    # Names are the same with a client and without one, which another method of Dask would ask for.
    return tuple(x if x.chunks == results else x.rechunk(results, method="tasks") for x in found)


def in_any_order(x: Any, axes: Sequence[int], keepdims: bool, outputs: Sequence[str], label: str, token: str,
                 split_every: int, text: str, words: str, again: str) -> Any:
    """A reduction whose bits do not depend on the order of elements: of each chunk alone, and then of the results."""
    one, combined = (f"cranefold-{label}-{step}-{token}" for step in ("reduce", "combine"))
    own = words.strip()
    reduces: dict[Any, Any] = {}
    combines: dict[Any, Any] = {}
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    for places in itertools.product(*(range(x.numblocks[axis]) for axis in kept)):
        at = dict(zip(kept, places, strict=True))
        extents = {axis: x.chunks[axis][block] for axis, block in at.items()}
        shape = tuple(extents.get(axis, 1) for axis in range(x.ndim) if keepdims or axis in extents)
        end = (combined, *(at.get(axis, 0) for axis in range(x.ndim) if keepdims or axis in extents))
        if 0 in extents.values():
            combines[end] = (_nothing, list(outputs), shape)
            continue
        row: list[Any] = []
        for blocks in itertools.product(*([at[axis]] if axis in at else range(n) for axis, n in enumerate(x.numblocks))):
            if all(x.chunks[axis][blocks[axis]] for axis in axes):
                row.append((one, *blocks))
                reduces[row[-1]] = (_whole, text, own, (x.dtype.name,), (x.name, *blocks))
        for level in itertools.count():
            groups = [row[n:n + split_every] for n in range(0, len(row), split_every)]
            if len(groups) == 1:
                break
            row = [(combined, *places, level, n) for n in range(len(groups))]
            combines.update((key, (_again, again, shape, group)) for key, group in zip(row, groups, strict=True))
        combines[end] = (_again, again, shape, row)
    da: Any = importlib.import_module("dask.array")
    graphs: Any = importlib.import_module("dask.highlevelgraph").HighLevelGraph
    layers = {**x.dask.layers, one: reduces, combined: combines}
    depends = {**x.dask.dependencies, one: set(x.__dask_layers__()), combined: {one}}
    chunks = tuple((1,) if axis in axes else x.chunks[axis] for axis in range(x.ndim) if keepdims or axis not in axes)
    meta = np.empty((0,) * len(chunks), _dtype(outputs[0]))
    return da.Array(graphs(layers, depends), combined, chunks, dtype=meta.dtype, meta=meta)


class _Graph:
    """The graph of a reduction of operands in chunks that agree."""

    def __init__(self, spec: str, operands: Sequence[Any], places: Sequence[Sequence[int | None]],
                 chunks: Sequence[tuple[int, ...]], axes: Sequence[int], keepdims: bool) -> None:
        self.spec, self.operands, self.places, self.chunks = spec, operands, places, chunks
        self.axes, self.keepdims = axes, keepdims
        self.shape = [sum(sizes) for sizes in chunks]
        self.cut = cut_of(self.shape, axes)
        self.kept = [axis for axis in range(len(chunks)) if axis not in axes]
        self.bounds = [[0, *itertools.accumulate(sizes)] for sizes in chunks]
        self.given = [[[0, *itertools.accumulate(sizes)] for sizes in x.chunks] for x in operands]
        self.slices: dict[str, dict[Any, Any]] = {}
        self.sliced: dict[str, set[str]] = {}

    def of_chunks(self, chunks: Sequence[tuple[int, ...]]) -> _Graph:
        return _Graph(self.spec, self.operands, self.places, chunks, self.axes, self.keepdims)

    def joined(self) -> _Graph:
        """The graph with one chunk along the cut axis."""
        return self.of_chunks([(self.shape[axis],) if axis == self.cut else s for axis, s in enumerate(self.chunks)])

    def has_parts(self) -> bool:
        """True if chunks along a reduced axis are made of several chunks of an operand."""
        own = [(x, place[axis], axis) for x, place in zip(self.operands, self.places, strict=True) for axis in self.axes]
        return any(at is not None and len(x.chunks[at]) > len(self.chunks[axis]) for x, at, axis in own)

    def divided(self) -> _Graph:
        """The graph with chunks of about as many bytes as those of the operands.

        Kept axes in front of the last reduced one are divided first, then the cut axis, if that leaves small states beside
        the chunks, and then the kept axes behind, where slices lie side by side.
        """
        chunks, behind = list(self.chunks), range(max(self.axes) + 1, len(self.chunks))
        single = [axis for axis in self.axes if len(chunks[axis]) == 1]
        parts = max(math.prod(x.numblocks[own] for axis in single if (own := place[axis]) is not None)
                    for x, place in zip(self.operands, self.places, strict=True))
        given = sum(math.prod(x.chunksize) * x.dtype.itemsize for x in self.operands)
        most = max(given, _parts.LEAST_BYTES, parts * _parts.LEAST_PART_BYTES)
        inner = math.prod(self.shape[axis] for axis in self.axes if axis != self.cut)
        block = _parts.block(math.prod(max(chunks[axis]) for axis in behind))
        is_joined = any(place[self.cut] is not None and x.numblocks[place[self.cut]] > len(chunks[self.cut])
                        for x, place in zip(self.operands, self.places, strict=True))
        order = [axis for axis in self.kept if axis not in behind] + [self.cut] * (not is_joined) + [*behind]
        for axis in order:
            ratio = -(-self.bytes_of(chunks) // most)
            if ratio <= 1:
                break
            width = -(-max(chunks[axis]) // ratio)
            chunks[axis] = _parts.divided(chunks[axis], _parts.whole_blocks(width, inner, block) if axis == self.cut else width)
        return self.of_chunks(chunks)

    def bytes_of(self, chunks: Sequence[tuple[int, ...]]) -> int:
        """The most bytes that the operands of a chunk have."""
        size = 0
        for x, place in zip(self.operands, self.places, strict=True):
            size += math.prod(max(chunks[axis]) for axis, own in enumerate(place) if own is not None) * x.dtype.itemsize
        return size

    def result_chunks(self) -> tuple[Any, ...]:
        return self.result_of({axis: self.chunks[axis] for axis in self.kept}, (1,))

    def range_of(self, axis: int, block: int) -> Range:
        return self.bounds[axis][block], self.bounds[axis][block + 1]

    def blocks(self, at: Mapping[int, int]) -> tuple[int, ...]:
        """The number of the chunk along each axis, of which there is one where `at` does not say."""
        return tuple(at.get(axis, 0) for axis in range(len(self.chunks)))

    def operand_blocks(self, numbers: Sequence[int], at: Mapping[int, int]) -> tuple[list[Take | None], list[tuple[Any, ...]]]:
        """The keys of operands' chunks, or of their parts where there are several."""
        takes: list[Take | None] = []
        keys: list[tuple[Any, ...]] = []
        for n in numbers:
            take, own = self.parts(n, at)
            takes.append(take)
            keys += own
        return takes, keys

    def parts(self, n: int, at: Mapping[int, int]) -> tuple[Take | None, list[tuple[Any, ...]]]:
        """The keys of the parts of an operand's chunk, and their places if there are several."""
        given = self.given[n]
        ranges = [(0, bounds[-1]) for bounds in given]
        along = [[(0, *bounds)] for bounds in ranges]
        for axis, own in enumerate(self.places[n]):
            if own is None:
                continue
            block = at.get(axis, 0)
            ranges[own] = start, stop = self.range_of(axis, block)
            same = self.bounds[axis] == given[own]
            along[own] = [(block, 0, stop - start)] if same else _parts.overlaps(given[own], start, stop)
        firsts, keys = [], []
        for part in itertools.product(*along):
            blocks, starts, stops = zip(*part, strict=True) if part else ((), (), ())
            firsts.append(tuple(given[own][b] + s - ranges[own][0] for own, (b, s, _) in enumerate(part)))
            keys.append(self.slice(n, blocks, starts, stops))
        shape = tuple(stop - start for start, stop in ranges)
        return (None if len(keys) == 1 else (shape, tuple(firsts))), keys

    def slice(self, n: int, blocks: tuple[int, ...], starts: tuple[int, ...], stops: tuple[int, ...]) -> tuple[Any, ...]:
        """The key of a box of an operand's chunk: that of the chunk if the box is all of it."""
        x = self.operands[n]
        if not any(starts) and stops == tuple(sizes[block] for sizes, block in zip(x.chunks, blocks, strict=True)):
            return (x.name, *blocks)
        tokenize: Any = importlib.import_module("dask.base").tokenize
        bounds = [[self.bounds[axis], own] for axis, own in enumerate(self.places[n]) if own is not None]
        # Reductions of an array in the same chunks share the slices.
        name = f"cranefold-slice-{tokenize('cranefold', x.name, bounds)}"
        key = (name, *blocks, *starts)
        # Layers of the other operands may depend on these slices.
        self.sliced[name] = set(x.__dask_layers__())
        self.slices.setdefault(name, {})[key] = (_parts.part_of, (x.name, *blocks), starts, stops)
        return key

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
        """True if chunks along the cut axis are worth bringing together.

        They are where slices are so short that a state may have all of their elements. Where states have half of the elements
        of their chunks, they are if there are as many slices to divide among tasks as chunks along the axis.
        """
        if len(self.chunks[self.cut]) == 1 or not self.has_own_trees():
            return False
        at = {axis: int(np.argmax(self.chunks[axis])) for axis in self.kept}
        kept = tuple(self.range_of(axis, block) for axis, block in at.items())
        if any(start == stop for start, stop in kept):
            return False
        whole = [(self.shape[axis],) if axis in self.axes else self.chunks[axis] for axis in range(len(self.chunks))]
        size, partial = self.bytes_of(whole), _partial(self.spec, kept)
        if partial.state_bytes >= size:
            return True
        slices = math.prod(self.shape[axis] for axis in self.kept if axis < max(self.axes))
        if slices < len(self.chunks[self.cut]):
            return False
        return 2 * sum(partial.range_bytes(*ends) for ends in itertools.pairwise(self.bounds[self.cut])) >= size

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
        depends |= {name: depends[name] | set(self.slices) for name in names.values()} | self.sliced
        layers |= self.slices
        chunks = self.result_chunks()
        found = []
        for dtype, name in zip(outputs, results, strict=True):
            graph = self.graph(layers, depends, [*self.slices, *names.values(), name])
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
            takes, arrays = self.operand_blocks(range(len(self.operands)), at)
            if any(takes):
                # The first axis of results along which bands lie.
                band = next((axis for axis in self.kept if extents[axis] > 1), self.cut)
                result = [axis for axis in range(len(self.chunks)) if self.keepdims or axis in self.kept]
                extent, axis = extents.get(band, 1), result.index(band) if band in result else 0
                owns = [place[band] if band in extents else None for place in self.places]
                tasks[key] = (_whole_parts, text, words, dtypes, extent, axis, takes, owns, *arrays)
            else:
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
            least = self.least_of_band(kept)
            row: list[Any] = []
            for block in range(len(self.chunks[self.cut])):
                here = {**at, self.cut: block}
                key = (names["shard"], *self.blocks(here))
                chunk = tuple(self.range_of(axis, n) for axis, n in enumerate(self.blocks(here)))
                parts, arrays = self.operand_blocks(read, here)
                own = tuple(dtypes[n] for n in read)
                if any(parts):
                    owns = [self.places[n][self.cut] for n in read]
                    shards[key] = (_shard_parts, self.spec, kept, chunk, own, self.cut, least, parts, owns, *arrays)
                else:
                    shards[key] = (_shard, self.spec, kept, chunk, own, *arrays)
                row.append(key)
            for level in itertools.count():
                if len(row) == 1:
                    break
                groups = [row[n:n + split_every] for n in range(0, len(row), split_every)]
                row = [(names["combine"], *places, level, n) for n in range(len(groups))]
                combines.update((key, (_combine, self.spec, kept, group)) for key, group in zip(row, groups, strict=True))
            # They lack the reduced axes, along which alone chunks are made of parts.
            _, arrays = self.operand_blocks(late, at)
            finishes[end] = (_finish, self.spec, kept, row[0], tuple(dtypes[n] for n in late), *arrays)
        return {names["shard"]: shards, names["combine"]: combines, names["finish"]: finishes}

    def least_of_band(self, kept: Sequence[Range]) -> int:
        """The positions of the cut axis below which the states of bands are large beside them."""
        behind = (stop - start for axis, (start, stop) in zip(self.kept, kept, strict=True) if axis > max(self.axes))
        inner = math.prod(self.shape[axis] for axis in self.axes if axis != self.cut)
        return _parts.whole_blocks(1, inner, _parts.block(math.prod(behind)))

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
