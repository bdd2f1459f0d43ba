"""Measures the package beside NumPy, torch, JAX and bottleneck, and writes a page as text and as SVG.

    python python/bench/run.py [--quick] [--out FOLDER]

Each case is a function, a dtype, a shape and an axis. All libraries that are installed reduce the same array in turns, in
one process, on the same number of threads; their answers are compared before anything is timed. A figure is the median of
the rounds. The page names every case in which another library is faster.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import time
from typing import Any, Callable

import numpy as np

import cranefold as cf

SHAPES = [
    ((64, 64), 0),
    ((64, 64), 1),
    ((128, 128), None),
    ((256, 1024), 0),
    ((256, 1024), 1),
    ((1024, 1024), 0),
    ((1024, 1024), 1),
    ((1024, 1024), None),
    ((16, 64, 28, 28), (0, 2, 3)),
    ((2048, 4096), 0),
    ((2048, 4096), 1),
]
QUICK = [((256, 1024), 0), ((256, 1024), 1)]
FUNCTIONS = ["sum", "mean", "max", "var", "argmax", "logsumexp", "softmax", "nansum"]
DTYPES = ["float32", "float64", "int32"]
FLOATS_ONLY = {"logsumexp", "softmax", "nansum", "var"}
PEER_COLOURS = {"numpy": "#4477aa", "torch": "#ee6677", "jax": "#ccbb44", "bottleneck": "#228833"}

Call = Callable[[], Any]


def single(axis: Any) -> bool:
    return axis is None or isinstance(axis, int)


def calls(function: str, x: np.ndarray, axis: Any) -> dict[str, Call]:
    """The call of each library that has the function, over the array in its own form."""
    found: dict[str, Call] = {}
    if not (function in ("argmax", "softmax") and not single(axis)):
        found["cranefold"] = lambda: getattr(cf, function)(x, axis)
    if function not in ("logsumexp", "softmax") and not (function == "argmax" and not single(axis)):
        # NumPy's sums of int32 are int64 too.
        found["numpy"] = lambda: getattr(np, function)(x, axis=axis)
    found |= torch_calls(function, x, axis)
    found |= jax_calls(function, x, axis)
    found |= bottleneck_calls(function, x, axis)
    return found


def torch_calls(function: str, x: np.ndarray, axis: Any) -> dict[str, Call]:
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(cf.get_num_threads())
    t = torch.from_numpy(x)
    dim = tuple(range(x.ndim)) if axis is None else axis
    calls: dict[str, Call] = {
        "sum": lambda: torch.sum(t, dim),
        "mean": lambda: torch.mean(t, dim),
        "max": lambda: torch.amax(t, dim),
        "var": lambda: torch.var(t, dim, correction=0),
        "argmax": lambda: torch.argmax(t, axis),
        "logsumexp": lambda: torch.logsumexp(t, dim),
        "softmax": lambda: torch.softmax(t, axis),
        "nansum": lambda: torch.nansum(t, dim),
    }
    if (function in ("mean", "var") and x.dtype.kind != "f") or (function in ("argmax", "softmax") and not single(axis)):
        return {}
    if function == "softmax" and axis is None:
        return {}
    return {"torch": calls[function]}


def jax_calls(function: str, x: np.ndarray, axis: Any) -> dict[str, Call]:
    try:
        import jax
    except ImportError:
        return {}
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    if function in ("argmax", "softmax") and not single(axis):
        return {}
    j = jax.numpy.asarray(x)
    namespaces = {"logsumexp": jax.nn.logsumexp, "softmax": jax.nn.softmax}
    plain = namespaces.get(function) or getattr(jax.numpy, function)
    compiled = jax.jit(lambda y: plain(y, axis=axis))
    return {"jax": lambda: compiled(j).block_until_ready()}


def bottleneck_calls(function: str, x: np.ndarray, axis: Any) -> dict[str, Call]:
    try:
        import bottleneck
    except ImportError:
        return {}
    name = {"sum": "nansum", "nansum": "nansum", "mean": "nanmean", "max": "nanmax", "var": "nanvar"}.get(function)
    name = name or ("nanargmax" if function == "argmax" else None)
    if name is None or not single(axis):
        return {}
    return {"bottleneck": lambda: getattr(bottleneck, name)(x, axis=axis)}


def check(case: str, found: dict[str, Call], x: np.ndarray) -> None:
    """Stops where two libraries disagree by more than rounding explains."""
    expected = np.asarray(found["cranefold"]())
    for name, call in found.items():
        answer = np.asarray(call())
        assert answer.shape == expected.shape, (case, name, answer.shape, expected.shape)
        # JAX takes means of int32 in float32.
        scale = 1e-9 if x.dtype == np.float64 else 1e-3
        atol = scale * max(float(np.abs(expected).max(initial=0)), 1e-3)
        np.testing.assert_allclose(answer, expected, rtol=scale, atol=atol, err_msg=f"{case}: {name}")


def measure(found: dict[str, Call], rounds: int, seconds: float) -> dict[str, float]:
    """The median time of each call over rounds in turns, in seconds."""
    counts = {}
    for name, call in found.items():
        start = time.perf_counter()
        for _ in range(3):
            call()
        counts[name] = max(1, int(seconds / max((time.perf_counter() - start) / 3, 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(rounds):
        for name, call in found.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                call()
            times[name].append((time.perf_counter() - start) / counts[name])
    return {name: statistics.median(list_) for name, list_ in times.items()}


def data(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    random = np.random.default_rng(0)
    if dtype.startswith("float"):
        return random.standard_normal(shape).astype(dtype)
    return random.integers(-1000, 1000, shape).astype(dtype)


def cases(quick: bool) -> list[tuple[str, str, tuple[int, ...], Any]]:
    shapes, dtypes = (QUICK, ["float32"]) if quick else (SHAPES, DTYPES)
    return [
        (function, dtype, shape, axis)
        for function in FUNCTIONS
        for dtype in dtypes
        for shape, axis in shapes
        if not (dtype.startswith("int") and function in FLOATS_ONLY)
        and not (function in ("argmax", "softmax") and not isinstance(axis, int))
    ]


def text_page(rows: list[tuple[str, int, dict[str, float]]], threads: int) -> str:
    """The table, and the share of cases from 64 KB on in which no other library is faster."""
    names = ["numpy", "torch", "jax", "bottleneck"]
    lines = [f"{threads} threads; microseconds, medians; ratio: the fastest other library over cranefold", ""]
    lines.append(f"{'case':<44}{'cranefold':>11}" + "".join(f"{name:>11}" for name in names) + f"{'ratio':>8}")
    lost, large = [], 0
    for case, size, times in rows:
        others = {name: seconds for name, seconds in times.items() if name != "cranefold"}
        ratio = min(others.values()) / times["cranefold"] if others else float("nan")
        cells = "".join(f"{times[name] * 1e6:11.1f}" if name in times else f"{'':>11}" for name in names)
        lines.append(f"{case:<44}{times['cranefold'] * 1e6:11.1f}{cells}{ratio:8.2f}")
        if size >= 1 << 16 and others:
            large += 1
            if ratio < 1:
                lost.append(f"  {case}: {min(others, key=lambda name: others[name])} is {1 / ratio:.2f} times as fast")
    share = 100 * (large - len(lost)) / max(large, 1)
    lines += ["", f"at least as fast as the fastest in {share:.0f} % of {large} cases from 64 KB on; the others:"]
    return "\n".join(lines + (lost or ["  none"])) + "\n"


def svg_page(rows: list[tuple[str, int, dict[str, float]]]) -> str:
    """A row for each case with a dot for each library: its time over ours, on a scale of powers of two."""
    width, left, step = 900, 330, 16
    height = step * len(rows) + 50

    def place(ratio: float) -> float:
        return left + (np.clip(np.log2(ratio), -2, 6) + 2) * (width - left - 20) / 8

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">']
    parts.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for power in range(-2, 7):
        x = place(2.0**power)
        colour = "#333333" if power == 0 else "#dddddd"
        parts.append(f'<line x1="{x:.1f}" y1="30" x2="{x:.1f}" y2="{height - 10}" stroke="{colour}"/>')
        parts.append(f'<text x="{x:.1f}" y="24" font-size="11" text-anchor="middle">{2.0**power:g}</text>')
    for n, (case, _, times) in enumerate(rows):
        y = 40 + n * step
        parts.append(f'<text x="4" y="{y + 4}" font-size="11">{case}</text>')
        for name, seconds in times.items():
            if name != "cranefold":
                x = place(seconds / times["cranefold"])
                parts.append(f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="{PEER_COLOURS[name]}"><title>{name}</title></circle>')
    for n, (name, colour) in enumerate(PEER_COLOURS.items()):
        parts.append(f'<circle cx="{10 + 80 * n}" cy="10" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{18 + 80 * n}" y="14" font-size="11">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few cases and short rounds")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    given = parser.parse_args()
    cf.set_num_threads(given.threads)
    if given.threads == 1:
        # JAX reads the number of its threads when it is imported.
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    rows = []
    for function, dtype, shape, axis in cases(given.quick):
        x = data(dtype, shape)
        case = f"{function} {dtype}{list(shape)} axis={axis}".replace(", ", ",")
        found = calls(function, x, axis)
        check(case, found, x)
        times = measure(found, 3 if given.quick else 7, 0.002 if given.quick else 0.01)
        rows.append((case, x.nbytes, times))
        print(case, {name: f"{seconds * 1e6:.1f}" for name, seconds in times.items()}, flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    page = text_page(rows, given.threads)
    (given.out / "python.txt").write_text(page)
    (given.out / "python.svg").write_text(svg_page(rows))
    print(page)


if __name__ == "__main__":
    main()
