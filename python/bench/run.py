"""Measures the package beside NumPy, torch, JAX and bottleneck, and writes a page as text and as SVG.

    python python/bench/run.py [--quick] [--threads N] [--out FOLDER] [--rows FILE]

Each case is a function, a dtype, a shape and an axis. All libraries that are installed reduce the same array in turns, in
one process, on the same number of threads; their answers are compared before anything is timed. A figure is the least time
of the rounds, so that other work on the machine counts little. The page, `FOLDER/python-speed.md` with
`FOLDER/pictures/python-speed.svg`, names every case in which another library is faster. With `--rows` the cases go to a file, and those that it has already are
not measured again: a run that was ended goes on there.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import platform
import time
from importlib import metadata
from typing import Any, Callable

import numpy as np

import cranefold as cf

SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((64, 64), 1),
    ((128, 128), None),
    ((256, 1024), 0),
    ((256, 1024), 1),
    ((1024, 1024), 0),
    ((1024, 1024), 1),
    ((16, 64, 28, 28), (0, 2, 3)),
    ((2048, 4096), 0),
    ((2048, 4096), 1),
]
QUICK: list[tuple[tuple[int, ...], Any]] = [((256, 1024), 0), ((256, 1024), 1)]
NARROW: list[tuple[tuple[int, ...], Any]] = [((256, 1024), 0), ((256, 1024), 1), ((2048, 4096), 1)]
FUNCTIONS = ["sum", "mean", "max", "var", "argmax", "logsumexp", "softmax", "nansum"]
DTYPES = ["float32", "float64", "int32", "float16", "int8"]
FLOATS_ONLY = {"logsumexp", "softmax", "nansum", "var"}
PEER_COLOURS = {"numpy": "#4477aa", "torch": "#ee6677", "jax": "#ccbb44", "bottleneck": "#228833"}
LARGE = 1 << 16

Call = Callable[[], Any]
# A function, what it reduces, the bytes of the array, and the seconds of each library.
Row = tuple[str, str, int, dict[str, float]]


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
    # Other dtypes go through NumPy.
    if name is None or not single(axis) or x.dtype.name not in ("float32", "float64", "int32"):
        return {}
    return {"bottleneck": lambda: getattr(bottleneck, name)(x, axis=axis)}


def check(case: str, found: dict[str, Call], x: np.ndarray) -> None:
    """Stops where two libraries disagree by more than rounding explains."""
    expected = np.asarray(found["cranefold"]())
    for name, call in found.items():
        answer = np.asarray(call())
        assert answer.shape == expected.shape, (case, name, answer.shape, expected.shape)
        # JAX takes means of integers in float32, and NumPy adds float16 in float16.
        scale = {"float64": 1e-9, "float16": 5e-2}.get(x.dtype.name, 1e-3)
        atol = scale * max(float(np.abs(expected).max(initial=0)), 1e-3)
        wide = (answer.astype(np.float64), expected.astype(np.float64))
        np.testing.assert_allclose(*wide, rtol=scale, atol=atol, err_msg=f"{case}: {name}")


def measure(found: dict[str, Call], rounds: int, seconds: float, most: float) -> dict[str, float]:
    """The least time of each call over rounds in turns, in seconds: two rounds at least, and as many as confirm it in `most`
    seconds."""
    counts = {}
    for name, call in found.items():
        start = time.perf_counter()
        call()
        counts[name] = max(1, int(seconds / max(time.perf_counter() - start, 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in found}
    end = time.perf_counter() + most

    def confirmed() -> bool:
        """True if a second round of each library has come within a tenth of its least time."""
        return all(sorted(list_)[1] <= 1.1 * min(list_) for list_ in times.values())

    turns = 0
    while turns < rounds or (time.perf_counter() < end and not confirmed()):
        turns += 1
        for name, call in found.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                call()
            times[name].append((time.perf_counter() - start) / counts[name])
    return {name: min(list_) for name, list_ in times.items()}


def data(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    random = np.random.default_rng(0)
    if dtype.startswith("float"):
        return random.standard_normal(shape).astype(dtype)
    return random.integers(-100, 100, shape).astype(dtype)


def cases(quick: bool) -> list[tuple[str, str, tuple[int, ...], Any]]:
    def shapes(dtype: str) -> list[tuple[tuple[int, ...], Any]]:
        return QUICK if quick else NARROW if dtype in ("float16", "int8") else SHAPES

    return [
        (function, dtype, shape, axis)
        for function in FUNCTIONS
        for dtype in (["float32"] if quick else DTYPES)
        for shape, axis in shapes(dtype)
        if not (dtype.startswith("int") and function in FLOATS_ONLY)
        and not (function in ("argmax", "softmax") and not isinstance(axis, int))
    ]


def ratio(times: dict[str, float]) -> float:
    """The time of the fastest other library over ours; NaN if there is none."""
    return min((seconds for name, seconds in times.items() if name != "cranefold"), default=math.nan) / times["cranefold"]


def machine() -> str:
    """The processor, and the versions of what is measured."""
    model = platform.processor() or platform.machine()
    about = pathlib.Path("/proc/cpuinfo")
    if about.exists():
        names = [line.partition(":")[2].strip() for line in about.read_text().splitlines() if line.startswith("model name")]
        model = names[0] if names else model
    versions = []
    for name in ("cranefold", *PEER_COLOURS):
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"no {name}")
    return f"{model}, {os.cpu_count()} processors; Python {platform.python_version()}, {', '.join(versions)}"


def table(rows: list[Row]) -> list[str]:
    """The cases of a function, in microseconds."""
    lines = ["| array | cranefold | " + " | ".join(PEER_COLOURS) + " | ratio |", "| --- |" + " --- |" * 6]
    for _, case, _, times in rows:
        cells = [f"{times[name] * 1e6:.1f}" if name in times else "" for name in ("cranefold", *PEER_COLOURS)]
        lines.append(f"| `{case}` | {' | '.join(cells)} | {ratio(times):.2f} |")
    return lines


def text_page(rows: list[Row], threads: int, command: str, load: tuple[float, float]) -> str:
    """The share of large cases in which no other library is faster, the others by name, and all figures."""
    large = [row for row in rows if row[2] >= LARGE and not math.isnan(ratio(row[3]))]
    lost = sorted((row for row in large if ratio(row[3]) < 1), key=lambda row: ratio(row[3]))
    share = 100 * (len(large) - len(lost)) / max(len(large), 1)
    count = "one thread" if threads == 1 else f"{threads} threads"
    lines = [
        "# Speed beside other Python libraries",
        "",
        f"The script `python/bench/run.py` wrote this page and its picture by `{command}`. All libraries reduce the same "
        f"array in turns, in one process, on {count}; their answers are compared before anything is timed. Figures are "
        "microseconds a call from Python, the least of at least five rounds. The ratio is the time of the fastest other library over "
        "that of cranefold: above 1 cranefold is the fastest. Bottleneck has `nansum`, `nanmean` and so on only, and stands "
        "beside the plain functions too.",
        "",
        f"Measured on {machine()}. Meanwhile {load[0]:.1f} to {load[1]:.1f} processes ran or waited for a processor; figures of "
        "a busy machine are rough, those of JAX most, since it hands calls to threads of its own.",
        "",
        f"From {LARGE >> 10} KB on cranefold is at least as fast as the fastest other library in {share:.0f} % of "
        f"{len(large)} cases. "
        + ("The others:" if lost else "There is no other."),
        "",
    ]
    if lost:
        lines += ["| case | faster | times as fast |", "| --- | --- | --- |"]
        for function, case, _, times in lost:
            best = min((name for name in times if name != "cranefold"), key=lambda name: times[name])
            lines.append(f"| `{function} {case}` | {best} | {1 / ratio(times):.2f} |")
        lines.append("")
    lines += ["![The time of each library over that of cranefold](pictures/python-speed.svg)", ""]
    for function in dict.fromkeys(row[0] for row in rows):
        lines += [f"## {function}", "", *table([row for row in rows if row[0] == function]), ""]
    return "\n".join(lines)


def svg_page(rows: list[Row]) -> str:
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
    for n, (function, case, _, times) in enumerate(rows):
        y = 40 + n * step
        parts.append(f'<text x="4" y="{y + 4}" font-size="11">{function} {case}</text>')
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
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/bench"))
    parser.add_argument("--rows", type=pathlib.Path, help="a file for the cases, from which a run goes on")
    given = parser.parse_args()
    cf.set_num_threads(given.threads)
    if given.threads == 1:
        # JAX reads the number of its threads when it is imported.
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    kept: list[tuple[Row, float]] = []
    if given.rows and given.rows.exists():
        kept = [((function, case, size, times), load) for (function, case, size, times), load in json.loads(given.rows.read_text())]
    known = {row[:2]: (row, load) for row, load in kept}
    kept = []
    for function, dtype, shape, axis in cases(given.quick):
        case = f"{dtype}{list(shape)} axis={axis}".replace(", ", ",")
        if (function, case) not in known:
            x = data(dtype, shape)
            found = calls(function, x, axis)
            check(f"{function} {case}", found, x)
            times = measure(found, 5, 0.002, 0.2 if given.quick else 3.0)
            known[function, case] = ((function, case, x.nbytes, times), os.getloadavg()[0])
            print(function, case, {name: f"{seconds * 1e6:.1f}" for name, seconds in times.items()}, flush=True)
            if given.rows:
                given.rows.write_text(json.dumps(list(known.values())))
        kept.append(known[function, case])
    rows, loads = [row for row, _ in kept], [load for _, load in kept]
    (given.out / "pictures").mkdir(parents=True, exist_ok=True)
    command = f"python python/bench/run.py {'--quick ' if given.quick else ''}--threads {given.threads}"
    page = text_page(rows, given.threads, command, (min(loads), max(loads)))
    (given.out / "python-speed.md").write_text(page)
    (given.out / "pictures" / "python-speed.svg").write_text(svg_page(rows))
    print(page)


if __name__ == "__main__":
    main()
