"""Reductions of Dask arrays on a cluster of processes: the bits of any chunks, and the time and memory beside Dask's own.

A file of random numbers is read lazily in random chunks, each fifth time from a Zarr store. Each case runs over all
chunkings, and its bits are compared with one kernel's over the whole array. Then Dask's own reduction and ours take turns
over one array, in chunks of each width, that the workers hold.

    python python/bench/dask_bits.py                                      # 64 MB, 30 chunkings of 12 cases
    python python/bench/dask_bits.py --megabytes 2048 --chunkings 3 --cases 3 --times
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import statistics
import sys
import tempfile
import time
from typing import Any, NamedTuple

import dask
import dask.array as da
import distributed
import numpy as np

import cranefold as cf
import cranefold.dask as cfd


class Case(NamedTuple):
    """A reduction of an array of this many columns, or of one axis."""

    name: str
    columns: int
    axis: int | tuple[int, ...]
    dtype: str
    given: dict[str, Any]


CASES = [
    Case("sum", 0, 0, "float32", {}),
    Case("var", 512, 0, "float32", {}),
    Case("softmax", 256, 0, "float32", {}),
    Case("mean", 4096, 0, "float32", {}),
    Case("max", 512, 1, "float32", {}),
    Case("argmax", 64, 0, "float32", {}),
    Case("logsumexp", 0, 0, "float32", {}),
    Case("std", 100, (0, 1), "float64", {"correction": 1}),
    Case("sum", 1000, 0, "float16", {}),
    Case("sum", 300, 0, "int16", {}),
    Case("vector_norm", 2048, 1, "float32", {}),
    Case("layer_norm", 512, 1, "float32", {}),
]
"""The first three are those of a large run."""


def base_of(case: Case, numbers: np.ndarray) -> np.ndarray:
    """The file's numbers in the case's shape."""
    return numbers[:len(numbers) // case.columns * case.columns].reshape(-1, case.columns) if case.columns else numbers


def converted(case: Case, x: np.ndarray) -> np.ndarray:
    """Elements in the case's dtype."""
    return (x * 1000).astype(case.dtype) if case.dtype == "int16" else x.astype(case.dtype, copy=False)


def chunk_of_file(path: str, case: Case, block_info: Any = None) -> np.ndarray:
    """A chunk, read from the file."""
    place = tuple(slice(*ends) for ends in block_info[None]["array-location"])
    numbers = np.load(path, mmap_mode="r")
    return converted(case, np.array(base_of(case, numbers)[place]))


def lazily(path: str, case: Case, shape: tuple[int, ...], chunks: Any) -> Any:
    """The case's array, read when its tasks run."""
    meta = np.empty((0,) * len(shape), case.dtype)
    return da.map_blocks(chunk_of_file, path, case, chunks=chunks, dtype=meta.dtype, meta=meta)


def stored(path: str, x: np.ndarray) -> Any:
    """A Zarr array on disk, in chunks of its own."""
    zarr: Any = importlib.import_module("zarr")
    chunks = (max(1, x.shape[0] // 7), *x.shape[1:])
    store = zarr.create_array(path, shape=x.shape, chunks=chunks, dtype=x.dtype, compressors=None, overwrite=True)
    store[:] = x
    return store


def chunkings(case: Case, shape: tuple[int, ...], count: int, pieces: int) -> list[Any]:
    """Random chunks: along the first reduced axis of any lengths, along kept ones at a few places.

    The box of each chunk of the kept axes is compiled once in each worker, which takes longer than to reduce 64 MB.
    """
    random = np.random.default_rng(7)
    reduced = np.atleast_1d(case.axis).tolist()
    places = [np.array([1, *random.integers(0, extent + 1, 2)]) for extent in shape]

    def cut(axis: int) -> tuple[int, ...]:
        extent = shape[axis]
        if axis in reduced[1:]:
            return (extent,)
        if axis in reduced:
            near = random.integers(0, extent + 1, random.integers(1, pieces))
            near = [*near, *(near[:1] + 1).clip(0, extent)]
        else:
            near = random.choice(places[axis], random.integers(0, 2))
        ends = sorted([0, extent, *map(int, near)])
        return tuple(np.diff(ends).tolist())

    return [tuple(cut(axis) for axis in range(len(shape))) for _ in range(count)]


def unequal(ours: Any, path: str, block_info: Any = None) -> np.ndarray:
    """The number of elements of a chunk whose bits are not those of a file."""
    place = tuple(slice(*ends) for ends in block_info[0]["array-location"])
    whole = np.array(np.load(path, mmap_mode="r")[place])
    bits = f"u{whole.dtype.itemsize}"
    different = np.ascontiguousarray(ours).view(bits) != whole.view(bits)
    return np.full((1,) * ours.ndim, np.count_nonzero(different))


def check(client: Any, case: Case, path: str, count: int, pieces: int) -> int:
    """Reduces an array in `count` chunkings; returns how many have other bits than one kernel."""
    x = converted(case, base_of(case, np.load(path, mmap_mode="r")))
    want = np.asarray(getattr(cf, case.name)(x, axis=case.axis, **case.given))
    elements = case.name in ("softmax", "layer_norm")
    answers = path + ".answers.npy"
    np.save(answers, want)
    store = stored(path + ".zarr", x) if importlib.util.find_spec("zarr") else None
    tasks = []
    for n, chunks in enumerate(chunkings(case, x.shape, count, pieces)):
        in_zarr = n % 5 == 2 and store is not None
        lazy = da.from_array(store, chunks=chunks) if in_zarr else lazily(path, case, x.shape, chunks)
        ours = getattr(cfd, case.name)(lazy, axis=case.axis, **case.given)
        if elements:
            counts = tuple((1,) * n for n in ours.numblocks)
            ours = da.map_blocks(unequal, ours, answers, dtype=np.int64, chunks=counts).sum()
        tasks.append(ours)
    wrong = 0
    for start in range(0, count, 5):
        for found in client.gather(client.compute(tasks[start:start + 5])):
            wrong += bool(found) if elements else np.asarray(found).tobytes() != want.tobytes()
    return wrong


def peak_megabytes() -> float:
    """The most memory that this process had since it began; `getrusage` counts that of its parent, too."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


def times(client: Any, name: str, shape: tuple[int, ...], axis: int, widths: list[int], rounds: int) -> None:
    """Prints the rates of Dask's own reduction and of ours, in turns, over chunks of each width along the axis.

    The first ratio is that of the times that passed, the second of the processor times of the workers, in which other
    processes of the machine count little.
    """
    heads = ["reduction", "chunk", "chunks", "dask.array GB/s", "cranefold GB/s", "ratio", "ratio of worker time"]
    print("| " + " | ".join(heads) + " |\n" + "| --- " * len(heads) + "|")
    for width in widths:
        chunks = tuple(width if a == axis else extent for a, extent in enumerate(shape))
        x = da.random.default_rng(1).standard_normal(shape, chunks=chunks, dtype=np.float32).persist()
        distributed.wait(x)
        pair = [lambda x=x: getattr(x, name)(axis=axis), lambda x=x: getattr(cfd, name)(x, axis=axis)]
        taken: list[list[float]] = [[], []]
        worked: list[list[float]] = [[], []]
        for turn in range(rounds + 1):
            for own, work, make in zip(taken, worked, pair, strict=True):
                before, start = client.run(time.process_time), time.perf_counter()
                make().compute()
                if turn:
                    own.append(time.perf_counter() - start)
                    work.append(sum(client.run(time.process_time).values()) - sum(before.values()))
        rates = [x.nbytes / statistics.median(own) / 1e9 for own in taken]
        ratios = [statistics.median(a / b for a, b in zip(*both, strict=True)) for both in (taken, worked)]
        text = "x".join(map(str, shape))
        row = [f"`{name}` {text}, axis {axis}", width, x.npartitions, *(f"{rate:.2f}" for rate in (*rates, *ratios))]
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
        del x, pair


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--chunkings", type=int, default=30)
    parser.add_argument("--cases", type=int, default=len(CASES))
    parser.add_argument("--pieces", type=int, default=0, help="the most chunks along an axis; 8, or one for each 64 MB")
    parser.add_argument("--times", action="store_true", help="times beside those of dask.array")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args(arguments)
    pieces = asked.pieces or max(8, 2 * asked.megabytes // 64)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "numbers.npy")
        count = asked.megabytes << 18
        numbers = np.lib.format.open_memmap(path, "w+", np.float32, (count,))
        random = np.random.default_rng(3)
        for start in range(0, count, 1 << 22):
            part = numbers[start:start + (1 << 22)]
            part[:] = random.standard_normal(len(part), np.float32)
        del numbers
        quiet = {"distributed.worker.daemon": False}
        with dask.config.set(quiet), distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
        ) as cluster, distributed.Client(cluster) as client:
            before = max(client.run(peak_megabytes).values())
            for case in CASES[:asked.cases]:
                start = time.perf_counter()
                differ = check(client, case, path, asked.chunkings, pieces)
                wrong += differ
                took, peak = time.perf_counter() - start, max(client.run(peak_megabytes).values())
                print(f"{case.name:12} {case.columns:5} columns, axis {case.axis!s:6} {case.dtype:8} "
                      f"{asked.chunkings} chunkings: {differ} with other bits, {took:.1f} s; "
                      f"peak of a worker {peak:.0f} MB, {before:.0f} at the start", flush=True)
            if asked.times:
                # Blocks of 4096 elements, or of 64 rows; ends of chunks lie inside them.
                for name in ("sum", "max"):
                    times(client, name, (count,), 0, [4096 * blocks + 7 for blocks in (2048, 64, 16)], asked.rounds)
                    times(client, name, (count // 16,), 0, [4096 * blocks + 7 for blocks in (4, 1)], asked.rounds)
                widths = [64 * blocks + 7 for blocks in (256, 64, 16, 4, 1)]
                times(client, "var", (count // 1024, 1024), 0, widths, asked.rounds)
                times(client, "max", (count // 1024, 1024), 1, [1024, 300], asked.rounds)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
