"""The examples of docstrings and pages run and print what they say."""

import doctest
import importlib
import inspect
import pathlib
import re

import pytest

import cranefold as cf
import cranefold.array_api

MODULES = ["cranefold", "cranefold.array_api", "cranefold.linalg", "cranefold._settings", "cranefold._kernels"]
RUNNER = doctest.NORMALIZE_WHITESPACE
ROOT = pathlib.Path(__file__).parents[1]


def run(text: str, name: str) -> int:
    """Runs the examples of a text; returns how many there are."""
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    told = []
    result = doctest.DocTestRunner(optionflags=RUNNER).run(test, out=told.append)
    assert result.failed == 0, "".join(told)
    return result.attempted


@pytest.mark.parametrize("name", [name for name in cf.__all__ if callable(getattr(cf, name))])
def test_every_public_name_has_an_example(name):
    thing = getattr(cf, name)
    documented = thing.__doc__ or ""
    attempted = run(inspect.cleandoc(documented), name)
    assert attempted > 0 or name in ("Kernel", "InternalError"), f"{name} has no example"
    assert documented, f"{name} has no docstring"


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    run(importlib.import_module(name).__doc__ or "", name)


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT.parent / "docs" / "python.md"])
def test_pages(page):
    if not page.exists():
        pytest.skip(f"{page.name} is not beside an installed package")
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    assert blocks
    prompts = "\n".join(block for block in blocks if ">>>" in block)
    if prompts:
        assert run(prompts, page.name) > 0
    for block in blocks:
        if ">>>" not in block:
            exec(compile(block, str(page), "exec"), {})
