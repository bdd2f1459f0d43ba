"""The package is typed, and its stubs are those of the extension module."""

import inspect
import pathlib
import subprocess
import sys

import cranefold as cf


def mypy(*given):
    return subprocess.run([sys.executable, "-m", *given], capture_output=True, text=True, cwd="/", timeout=300)


def test_stubs(tmp_path):
    allowed = tmp_path / "allowed"
    # stubtest takes an alias of `Literal` for a union, and asks for annotations of NumPy's names.
    allowed.write_text("cranefold._types.Order\ncranefold.array_api\\..*\n")
    told = mypy("mypy.stubtest", "cranefold", "--allowlist", str(allowed))
    assert told.returncode == 0, told.stdout + told.stderr


def test_annotations():
    folder = pathlib.Path(cf.__file__).parent
    told = mypy("mypy", "--strict", "-p", "cranefold")
    assert told.returncode == 0, told.stdout + told.stderr
    assert (folder / "py.typed").exists()


def test_signatures():
    for name in cf.__all__:
        thing = getattr(cf, name)
        if inspect.isfunction(thing):
            parameters = inspect.signature(thing).parameters
            assert all(p.annotation is not p.empty for p in parameters.values()), name
