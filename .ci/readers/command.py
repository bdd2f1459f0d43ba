"""The command `cranefold model`, as both scripts call it."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import tempfile

import ml_dtypes
import numpy

COMMAND = os.environ.get("CRANEFOLD", "target/release/cranefold")
NPY = {numpy.dtype(ml_dtypes.bfloat16): numpy.uint16}


class Failed(Exception):
    """The command refused a model; the message is its own."""


def _call(arguments):
    done = subprocess.run([COMMAND, "model", *arguments], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise Failed(" ".join(done.stderr.split())[:2000] or f"exit {done.returncode}")
    return done.stdout


def run(model, inputs, outputs):
    """The outputs of a model: `inputs` are arrays by name, `outputs` the element types of the first outputs."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["run", str(model)]
        for place, (name, array) in enumerate(inputs.items()):
            path = pathlib.Path(folder, f"in{place}.npy")
            array = numpy.ascontiguousarray(array).reshape(array.shape)
            numpy.save(path, array.view(NPY.get(array.dtype, array.dtype)))
            arguments += ["--input", f"{name}={path}"]
        for place in range(len(outputs)):
            arguments += ["--output", f"{folder}/out{place}.npy"]
        _call(arguments)
        found = []
        for place, dtype in enumerate(outputs):
            array = numpy.load(f"{folder}/out{place}.npy")
            dtype = numpy.dtype(dtype)
            found.append(array.view(dtype) if dtype in NPY else array)
        return found


def plan(model):
    """The plan of a model."""
    return json.loads(_call(["plan", str(model), "--json"]))


def each(work, items):
    """The results of a function of each item, or the exception it raised; two at a time."""

    def tried(item):
        try:
            return work(item)
        except Exception as error:  # A case may fail in any way; the caller tells which.
            return error

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(tried, items))


def difference(found, wanted, rtol, atol):
    """Why two arrays are not equal within the tolerance; none if they are."""
    wanted = numpy.asarray(wanted)
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return f"{found.dtype}{list(found.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    exact = wanted.dtype.kind in "biu"
    a, b = (found, wanted) if exact else (found.astype(numpy.float64), wanted.astype(numpy.float64))
    close = a == b if exact else numpy.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    if numpy.all(close):
        return None
    at = numpy.argmin(close.reshape(-1)) if close.ndim else 0
    count = close.size - numpy.count_nonzero(close)
    return f"{count} of {close.size} elements differ: {a.reshape(-1)[at]} instead of {b.reshape(-1)[at]}"
