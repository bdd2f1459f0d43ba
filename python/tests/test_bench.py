"""The script of the benchmark page: answers are compared before times, and the page names what is lost."""

import importlib.util
import pathlib
import xml.etree.ElementTree as xml

import numpy as np
import pytest

SCRIPT = pathlib.Path(__file__).parents[1] / "bench" / "run.py"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_run", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("function", ["sum", "mean", "max", "var", "argmax", "logsumexp", "softmax", "nansum"])
def test_answers_are_compared(bench, function):
    for dtype in ("float32", "float16") if function in bench.FLOATS_ONLY else bench.DTYPES:
        x = bench.data(dtype, (16, 33))
        found = {name: call for name, call in bench.calls(function, x, 1).items() if name in ("cranefold", "numpy")}
        bench.check(function, found, x)
        found["wrong"] = lambda: np.asarray(found["cranefold"]()) + 10
        with pytest.raises(AssertionError, match="wrong"):
            bench.check(function, found, x)
    times = bench.measure(found, 2, 1e-5, 0.01)
    assert set(times) == set(found) and all(0 < seconds < 1 for seconds in times.values())


def test_the_page(bench):
    rows = [
        ("sum", "float32[256,1024] axis=1", 1 << 20, {"cranefold": 1e-5, "numpy": 2e-5, "torch": 3e-5}),
        ("sum", "float32[256,1024] axis=0", 1 << 20, {"cranefold": 3e-5, "numpy": 2e-5}),
        ("sum", "float32[8,8] axis=0", 256, {"cranefold": 2e-6, "numpy": 1e-6}),
        ("var", "float64[256,1024] axis=0", 1 << 21, {"cranefold": 3e-5}),
    ]
    page = bench.text_page(rows, 1, "python run.py", (0.5, 1.5))
    assert "in 50 % of 2 cases" in page and "on one thread" in page and "## var" in page
    assert "| `sum float32[256,1024] axis=0` | numpy | 1.50 |" in page
    assert "| `float32[256,1024] axis=1` | 10.0 | 20.0 | 30.0 |  |  | 2.00 |" in page
    picture = xml.fromstring(bench.svg_page(rows))
    dots = [dot for dot in picture.iter() if dot.tag.endswith("circle")]
    assert len(dots) == 4 + 4  # a dot for each other library of each case, and the legend


def test_cases(bench):
    assert len(bench.cases(True)) < len(bench.cases(False))
    large = [case for case in bench.cases(False) if np.dtype(case[1]).itemsize * int(np.prod(case[2])) >= bench.LARGE]
    assert {case[1] for case in large} == set(bench.DTYPES) and {case[0] for case in large} == set(bench.FUNCTIONS)
