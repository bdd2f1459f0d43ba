"""Dask arrays: one set of bits from any chunks, that of the function on the array in memory."""

import collections
import inspect
import pathlib
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from test_docs import run

import cranefold as cf

da = pytest.importorskip("dask.array", reason="dask is not installed")
cfd = pytest.importorskip("cranefold.dask")
_parts = pytest.importorskip("cranefold._parts")
dask = pytest.importorskip("dask")

OPS = [
    ("sum", (100_003,), 0), ("var", (5_000, 7), 0), ("argmax", (50_000,), 0), ("log_sum_exp", (6, 4_000), 1),
    ("mean,max", (3_000, 5), 0), ("sum", (300, 5, 40), (0, 2)), ("std", (40, 30, 20), None), ("min", (7, 1, 999), (0, 2)),
    ("argmin", (9_000, 2, 3), (0, 1)), ("var(ddof=1)", (1, 4_500, 3), (0, 1)), ("sum map='abs(x0)'", (4_000, 3), 0),
    ("region x { sum(x), sqrt(mean(x * x)) }", (4_000, 3), 0),
]

FUNCTIONS = [
    ("sum", {}), ("prod", {}), ("mean", {}), ("max", {}), ("min", {}), ("ptp", {}), ("argmax", {}), ("argmin", {}),
    ("any", {}), ("all", {}), ("count_nonzero", {}), ("var", {"correction": 1}), ("std", {}), ("logsumexp", {}),
    ("vector_norm", {}), ("vector_norm", {"ord": 1}), ("vector_norm", {"ord": np.inf}), ("vector_norm", {"ord": 3}),
    ("nansum", {}), ("nanprod", {}), ("nanmax", {}), ("nanmin", {}), ("nanmean", {}),
]

NORMS = [
    ("softmax", {}), ("log_softmax", {}), ("layer_norm", {}), ("rms_norm", {"eps": 0.5}), ("normalize", {}),
    ("normalize", {"ord": 1}), ("normalize", {"ord": 0}), ("normalize", {"ord": -np.inf}), ("normalize", {"ord": 0.5}),
]


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def array(shape, dtype=np.float32, seed=1):
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "biu":
        return random.integers(0, 3, shape).astype(dtype)
    return (random.standard_normal(shape) * 10.0 ** random.integers(-3, 4, shape)).astype(dtype)


def expected(op, x, axis):
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis)
    head, brace, body = op.partition(" {")
    answer = cf.reduce(f"{head} axes=[{','.join(map(str, axes))}]{brace}{body}", x)
    return answer if isinstance(answer, tuple) else (answer,)


def cuts(extent, random):
    """Chunks of any lengths, some of them empty."""
    bounds = sorted([0, extent, *random.integers(0, extent + 1, random.integers(0, 6)).tolist()])
    return tuple(np.diff(bounds).tolist())


def chunks(shape, axis, seed):
    """Chunks along kept axes and the first reduced axis of extent above 1."""
    random = np.random.default_rng(seed)
    reduced = [a % len(shape) for a in (range(len(shape)) if axis is None else np.atleast_1d(axis))]
    cut = next((a for a in sorted(reduced) if shape[a] > 1), reduced[0])
    return tuple(cuts(n, random) if a == cut or a not in reduced else (n,) for a, n in enumerate(shape))


def same(got, want):
    want = np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype
    assert np.asarray(got.compute()).tobytes() == want.tobytes(), got.chunks


@pytest.mark.parametrize(("op", "shape", "axis"), OPS)
def test_any_chunks_have_the_bits_of_the_whole(op, shape, axis):
    x = array(shape)
    whole = expected(op, x, axis)
    for seed, split_every in enumerate((2, 3, 8)):
        answer = cfd.reduce(op, da.from_array(x, chunks=chunks(shape, axis, seed)), axis, split_every=split_every)
        answer = answer if isinstance(answer, tuple) else (answer,)
        for got, want in zip(answer, whole, strict=True):
            same(got, want)


@pytest.mark.parametrize(("name", "given"), FUNCTIONS)
def test_functions_are_those_of_the_package(name, given):
    for n, dtype in enumerate(("float32", "float16", "bfloat16", "int8", "uint32", "bool")):
        if name == "ptp" and dtype == "bool":
            continue
        kind = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype
        x = array((700, 3), kind, seed=n)
        if name.startswith("nan") and dtype == "float32":
            x[5:9], x[:, 2] = np.nan, np.nan
        d = da.from_array(x, chunks=chunks(x.shape, 0, n))
        same(getattr(cfd, name)(d, axis=0, **given), getattr(cf, name)(x, axis=0, **given) if name != "vector_norm"
             else cf.vector_norm(x, axis=0, **given))


def test_sums_of_a_dtype_asked_for():
    x = array((1000, 2), np.float32)
    same(cfd.sum(da.from_array(x, chunks=(70, 1)), 0, dtype="float64"), cf.sum(x, 0, dtype="float64"))
    with pytest.raises(TypeError, match="a float"):
        cfd.mean(da.from_array(x), dtype="int32")


@pytest.mark.parametrize(("name", "given"), NORMS)
def test_normalisations_have_the_bits_of_the_whole(name, given):
    for n, (shape, axis, dtype) in enumerate([
        ((9_000,), 0, "float32"), ((700, 5), 0, "float16"), ((6, 3, 900), -1, "float64"), ((300, 4, 5), (0, 2), "float32"),
        ((400, 2), None, "int16"),
    ]):
        x = array(shape, dtype, seed=n)
        if dtype == "float16":
            x[3, 1], x[:, 2], x[:, 3] = np.inf, -np.inf, np.nan
        d = da.from_array(x, chunks=chunks(shape, axis, n))
        got = getattr(cfd, name)(d, axis=axis, **given)
        assert got.chunks == d.chunks
        same(got, getattr(cf, name)(x, axis=axis, **given))


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32"])
def test_weights_and_biases(dtype):
    x = array((500, 6), "float32")
    of_axis, of_all, of_kept = array((500,), dtype, 2), array((500, 6), dtype, 3), array((6,), dtype, 4)
    d = da.from_array(x, chunks=((1, 0, 333, 166), (2, 4)))
    for weight, bias in [(of_axis, of_axis), (of_axis, None), (of_all, of_kept), (None, of_kept)]:
        want = cf.layer_norm(x, weight, bias, axis=0)
        same(cfd.layer_norm(d, weight, bias, axis=0), want)
        lazy = [one if one is None else da.from_array(one, chunks=77) for one in (weight, bias)]
        same(cfd.layer_norm(d, *lazy, axis=0), want)
    same(cfd.rms_norm(d, of_axis, axis=0), cf.rms_norm(x, of_axis, axis=0))


def test_operands_in_chunks_alike_or_broadcast():
    x, w, v = array((3_000, 4), seed=1), array((3_000, 1), seed=2), array((4,), seed=3)
    text = "region x, w, v axes=[0] { sum(x * w) / sum(w) * v }"
    want = cf.reduce(text, x, w, v)
    text = text.replace(" axes=[0]", "")
    d = da.from_array(x, chunks=((1000, 1, 1999), (3, 1)))
    same(cfd.reduce(text, (d, w, v), 0), want)
    same(cfd.reduce(text, (d, da.from_array(w, chunks=(d.chunks[0], 1)), da.from_array(v, chunks=(d.chunks[1],))), 0), want)
    with pytest.warns(UserWarning, match=r"operand 1 is rechunked along its axes \[0\]"):
        same(cfd.reduce(text, (d, da.from_array(w, chunks=500), v), 0), want)
    with pytest.raises(ValueError, match="write numbers in place of scalars"):
        cfd.reduce("region x scalar c:f32 { sum(x) * c }", d, 0)


def test_inner_chunks_are_brought_together_and_said_to_be():
    x = array((300, 5, 40))
    with pytest.warns(UserWarning, match=r"reduced axes \[2\] are brought together") as told:
        answer = cfd.sum(da.from_array(x, chunks=(7, 2, 11)), axis=(0, 2))
    assert told[0].filename == __file__
    same(answer, expected("sum", x, (0, 2))[0])
    with pytest.warns(UserWarning, match=r"reduced axes \[1, 2\] are brought together") as told:
        answer = cfd.softmax(da.from_array(x, chunks=(7, 2, 11)), axis=None)
    assert len(told) == 1
    same(answer, cf.softmax(x, axis=None))


def steps_of(x):
    """How many tasks there are of each step, by its last word."""
    split = pytest.importorskip("dask.utils").key_split
    names = [split(key) for key in dict(x.dask)]
    return collections.Counter(name.rsplit("-", 1)[1] for name in names if name.startswith("cranefold"))


PARTS = [
    # Short slices, slices in narrow chunks, an inner axis, all axes, and kept axes behind the reduced one.
    ((4_096, 1_024), 1, (4_096, 300), {"slice": 16, "reduce": 4}),
    ((64, 70_000), 1, (64, 5_000), {"slice": 70, "reduce": 5}),
    ((512, 256, 128), (0, 2), (128, 256, 32), {"slice": 64, "shard": 16, "combine": 4, "finish": 4}),
    ((500, 1_024, 8), None, (500, 256, 8), {"slice": 16, "shard": 4, "combine": 1, "finish": 1}),
    ((100, 1 << 16), 0, (10, 1 << 16), {"slice": 100, "shard": 10, "finish": 10}),
    # Chunks of less than a megabyte are not divided.
    ((60, 1_024), 1, (60, 300), {"reduce": 1}),
]


@pytest.mark.parametrize(("shape", "axis", "pieces", "steps"), PARTS)
def test_chunks_that_are_brought_together_are_divided_along_other_axes(shape, axis, pieces, steps, monkeypatch):
    """About as many tasks as chunks, each of about as many bytes, and the result in the chunks of the array."""
    sizes = []
    copied = _parts.bands
    monkeypatch.setattr(_parts, "bands", lambda *given: (sizes.append(sum(x.nbytes for x in given[-1])), copied(*given))[1])
    x = array(shape)
    d = da.from_array(x, chunks=pieces)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        total = cfd.sum(d, axis)
        same(total, cf.sum(x, axis))
        assert steps_of(total) == steps
        largest = int(np.prod(d.chunksize)) * 4
        assert max(sizes) <= 1.05 * max(largest, 1 << 20, d.npartitions << 18)
        for name in ("var", "argmax", "logsumexp"):
            got, kept = getattr(cfd, name)(d, axis), getattr(cfd, name)(d, axis, keepdims=True)
            assert got.chunks == tuple(c for a, c in enumerate(d.chunks) if axis is not None and a not in np.atleast_1d(axis))
            same(got, getattr(cf, name)(x, axis))
            same(kept, getattr(cf, name)(x, axis, keepdims=True))
        soft = cfd.softmax(d, axis)
        assert soft.chunks == d.chunks
        same(soft, cf.softmax(x, axis))
        for one, want in zip(cfd.reduce("mean,max", d, axis), expected("mean,max", x, axis), strict=True):
            same(one, want)


def test_random_chunks_that_are_brought_together(monkeypatch):
    """With small bounds, so that small arrays are divided, in bands of few positions."""
    for name, most in (("BAND_BYTES", 1 << 10), ("LEAST_BYTES", 64), ("LEAST_PART_BYTES", 64)):
        monkeypatch.setattr(_parts, name, most)
    random = np.random.default_rng(5)
    for n, (shape, axis) in enumerate([((37, 900), 1), ((6, 50, 70), 2), ((6, 50, 70), (0, 2)), ((5, 40, 3, 60), (1, 3)),
                                       ((40, 9, 70), None), ((90, 300), 0), ((1, 7, 1, 900), (0, 2, 3))]):
        x = array(shape, seed=n)
        reduced = range(x.ndim) if axis is None else np.atleast_1d(axis)
        w = array([e if a in reduced or random.integers(2) else 1 for a, e in enumerate(shape)], seed=n + 9)
        for _ in range(6):
            d = da.from_array(x, chunks=tuple(cuts(extent, random) for extent in shape))
            lazy = da.from_array(w, chunks=tuple(cuts(extent, random) if extent > 1 else 1 for extent in w.shape))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                same(cfd.sum(d, axis), cf.sum(x, axis))
                same(cfd.argmin(d, axis, keepdims=True), cf.argmin(x, axis, keepdims=True))
                same(cfd.max(d, axis), cf.max(x, axis))
                same(cfd.layer_norm(d, axis=axis), cf.layer_norm(x, axis=axis))
                text = "region x, w { sum(x * w) / 3, max(x) }"
                axes = ",".join(map(str, range(x.ndim) if axis is None else np.atleast_1d(axis)))
                want = cf.reduce(text.replace(" {", f" axes=[{axes}] {{"), x, w)
                for got, one in zip(cfd.reduce(text, (d, lazy), axis), want, strict=True):
                    same(got, one)


ANY_ORDER = ["max", "min", "any", "all", "count_nonzero", "sum", "prod", "nanmax", "nanmin", "nansum"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "uint16", "int64", "bool"])
def test_reductions_in_any_order_are_of_each_chunk_alone(dtype):
    """No state, no chunks brought together and no warning: least and greatest elements, and sums of integers."""
    random = np.random.default_rng(3)
    for shape, axis, pieces in [((60, 103), 1, (25, (0, 30, 40, 33))), ((9, 8, 70), (0, 2), ((4, 0, 5), (3, 0, 5), 20)),
                                ((9, 8, 70), None, (2, 3, 20)), ((3, 9_000), 1, (2, 1_000)), ((700, 3), 0, (1, 3))]:
        x = array(shape, pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype)
        if dtype not in ("int8", "uint16", "int64", "bool"):
            x[random.random(shape) < 0.3], x[random.random(shape) < 0.3] = 0.0, -0.0
            x[random.random(shape) < 0.01] = np.nan
        if dtype == "float32":
            # NaN of any sign and payload.
            bits, nan = x.view(np.uint32), np.isnan(x)
            bits[nan] |= (random.integers(0, 1000, nan.sum()) + (random.integers(0, 2, nan.sum()) << 31)).astype(np.uint32)
        d = da.from_array(x, chunks=pieces)
        for name in ANY_ORDER:
            for keepdims in (False, True):
                got, want = (getattr(of, name, None) for of in (cfd, cf))
                want = want(x, axis, keepdims=keepdims) if want else \
                    getattr(cf, name[3:])(x, axis, keepdims=keepdims, nan_policy="skip")
                got = got(d, axis, keepdims=keepdims)
                same(got, want)
                if name in ("max", "any") or (name == "sum" and dtype in ("int8", "bool")):
                    assert set(steps_of(got)) == {"reduce", "combine"}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            same(cfd.reduce("max", d, axis, split_every=2), expected("max", x, axis)[0])
    assert cfd.max(d, 0).name == cfd.max(d, 0).name != cfd.max(d, 0, keepdims=True).name
    assert cfd.reduce("max", d, 0, split_every=2).name != cfd.reduce("max", d, 0).name


NAMES = """
import cranefold.dask as cfd, dask, dask.array as da
x = da.ones((1000, 3), chunks=(77, 2), dtype="float32")
wide = da.ones((4096, 1024), chunks=(4096, 300), dtype="float32")
for y in (cfd.mean(x, 0), cfd.softmax(x, 0), *cfd.reduce("sum,max", x, 0), cfd.layer_norm(x, [2.0] * 3), cfd.max(x),
          cfd.sum(wide, 1), cfd.softmax(wide, 1)):
    print(y.name, dask.base.tokenize(y))
"""


def test_names_are_those_of_any_process():
    told = [subprocess.run([sys.executable, "-c", NAMES], capture_output=True, text=True) for _ in range(2)]
    assert told[0].returncode == 0, told[0].stderr
    assert told[0].stdout == told[1].stdout and len(set(told[0].stdout.split())) == 16


def test_tokens_are_deterministic_and_names_say_what_tasks_do():
    split = pytest.importorskip("dask.utils").key_split
    x = da.ones((1000, 3), chunks=(77, 2), dtype=np.float32)
    one, same, other = cfd.mean(x, 0), cfd.mean(x, 0), cfd.mean(x, 1)
    assert one.name == same.name != other.name
    steps = {split(key) for key in dict(one.dask) if "cranefold" in str(key)}
    assert steps == {"cranefold-mean-shard", "cranefold-mean-combine", "cranefold-mean-finish"}
    steps = {split(key) for key in dict(cfd.softmax(x, 0).dask)}
    assert {"cranefold-softmax-m-shard", "cranefold-softmax-s-finish", "cranefold-softmax-apply"} <= steps
    assert split(cfd.reduce("log_sum_exp", x, 0).name) == "cranefold-log-sum-exp-finish"


@pytest.mark.parametrize(("shape", "axis", "pieces", "is_alone"), [
    ((300, 700), 1, (77, 700), True), ((40, 900, 3), 1, (7, 900, 3), True), ((40, 900, 3), 1, (7, 900, 2), False),
    ((9, 30, 50), (0, 2), (9, 4, 50), True), ((60, 40), None, (60, 40), True), ((60, 40), 0, (60, 7), False),
])
def test_chunks_of_whole_slices_are_reduced_without_states(shape, axis, pieces, is_alone):
    """Where the tree of a chunk alone is that of the whole: kept axes behind the reduced ones are not cut."""
    split = pytest.importorskip("dask.utils").key_split
    for dtype in ("float32", "bfloat16"):
        x = array(shape, pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype)
        d = da.from_array(x, chunks=pieces)
        for name in ("sum", "var", "argmax", "logsumexp"):
            got = getattr(cfd, name)(d, axis)
            steps = {split(key) for key in dict(got.dask) if "cranefold" in str(key)}
            assert (steps == {f"cranefold-{name}-reduce"}) == is_alone
            same(got, getattr(cf, name)(x, axis))
            same(getattr(cfd, name)(d, axis, keepdims=True), getattr(cf, name)(x, axis, keepdims=True))
        got = cfd.reduce("mean,max", d, axis)
        for one, want in zip(got, expected("mean,max", x, axis), strict=True):
            same(one, want)
    with pytest.raises(ValueError, match="partial results"):
        cfd.reduce("median", d, axis)
    # Positions along kept axes count from the start of the array.
    x = array((6, 50))
    text = "region x { sum(x) + f32(position(0)) }"
    same(cfd.reduce(text, da.from_array(x, chunks=(2, 50)), 1), expected(text, x, 1)[0])


def test_graphs_go_through_what_dask_does_with_them(capsys):
    diagnostics = pytest.importorskip("dask.diagnostics")
    x = array((1000, 4))
    d = da.from_array(x, chunks=(70, 3))
    mean, most = cfd.reduce("mean,max", d, 0)
    with diagnostics.ProgressBar():
        found = dask.compute(mean, most, cfd.softmax(d, 0))
    assert "100% Completed" in capsys.readouterr().out
    want = (*expected("mean,max", x, 0), cf.softmax(x, 0))
    assert [one.tobytes() for one in found] == [one.tobytes() for one in want]
    with dask.config.set(scheduler="threads", num_workers=4):
        same(cfd.var(da.from_array(x, chunks=(11, 1)), 0), cf.var(x, 0))
    same(dask.optimize(mean)[0], want[0])
    same(most.persist(), want[1])
    # Parts of an array cull the graph, and results go on in Dask.
    part = cfd.sum(d, 0)[3:]
    assert len(part.dask.cull(part.__dask_keys__())) < len(cfd.sum(d, 0).dask)
    same(part, cf.sum(x, 0)[3:])
    same(d - cfd.mean(d, 0, keepdims=True), x - cf.mean(x, 0, keepdims=True))


def test_shapes_at_the_edges():
    x = array((60, 9))
    same(cfd.max(da.from_array(x, chunks=(7, 4)), axis=0, keepdims=True), cf.max(x, 0, keepdims=True))
    total = cfd.sum(da.from_array(x, chunks=((60,), (0, 5, 4, 0))), axis=0)
    same(total, cf.sum(x, 0))
    assert cfd.sum(da.from_array(x, chunks=(7, 9))).ndim == 0
    for shape in ((0,), (0, 3), (3, 0)):
        empty = np.empty(shape, np.float32)
        d = da.from_array(empty, chunks=shape)
        same(cfd.sum(d, 0), cf.sum(empty, 0))
        same(cfd.softmax(d, 0), empty)
    ones = np.ones((1, 1, 3), np.float32)
    same(cfd.mean(da.from_array(ones, chunks=1), (0, 1)), cf.mean(ones, (0, 1)))
    big = x.astype(">f4")
    same(cfd.sum(da.from_array(big, chunks=11), 0), cf.sum(x, 0))


BAD = [
    (lambda x: cfd.sum(x, axis=2), np.exceptions.AxisError, "axis 2 is out of range for rank 2"),
    (lambda x: cfd.sum(x, axis=(0, -2)), ValueError, "twice"),
    (lambda x: cfd.sum(x, axis=()), ValueError, "no axis is reduced"),
    (lambda x: cfd.sum(x, axis=0.5), TypeError, "axis is 0.5"),
    (lambda x: cfd.reduce("median", x, axis=0), ValueError, "partial results"),
    (lambda x: cfd.reduce("summ", x, axis=0), cf.SpecError, "summ"),
    (lambda x: cfd.reduce("region x { m = max(x); sum(exp(x - m)) }", x, axis=0), ValueError, "partial results"),
    (lambda x: cfd.reduce("region x { x - mean(x) }", x, axis=0), ValueError, "partial results"),
    (lambda x: cfd.reduce("sum", x, axis=0, split_every=1), ValueError, "split_every is 1"),
    (lambda x: cfd.reduce("sum", x, axis=0, split_every=2.5), ValueError, "split_every is 2.5"),
    (lambda x: cfd.reduce("sum", (), axis=0), ValueError, "no array"),
    (lambda x: cfd.reduce("sum map='x0*x1'", (x, "text"), axis=0), TypeError, "no reductions"),
    (lambda x: cfd.sum(x[x > 0]), ValueError, "compute_chunk_sizes"),
    (lambda x: cfd.sum(np.ones(3)), TypeError, "numpy.ndarray, not a dask.array.Array"),
    (lambda x: cfd.sum(x.astype("complex64")), TypeError, "complex64 has no reductions"),
    (lambda x: cfd.sum(x.map_blocks(np.ma.masked_array)), TypeError, "MaskedArray, not numpy.ndarray"),
    (lambda x: cfd.var(x, correction=-1), ValueError, "ddof"),
    (lambda x: cfd.vector_norm(x, ord=np.nan), ValueError, "ord is NaN"),
    (lambda x: cfd.layer_norm(x, np.ones(3)), ValueError, "weight of shape"),
    (lambda x: cfd.layer_norm(x, bias=np.ones((2, 4, 4))), ValueError, "bias of shape"),
    (lambda x: cfd.sum(x.map_blocks(np.float64, dtype="float32")).compute(), TypeError, "a chunk is float64"),
]


@pytest.mark.parametrize(("call", "kind", "text"), BAD)
def test_bad_arguments_are_refused(call, kind, text):
    x = da.ones((4, 4), chunks=2, dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(kind, match=text):
            call(x)


def test_data_arrays_of_xarray():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    x = array((4, 900, 3))
    lazy = xr.DataArray(da.from_array(x, chunks=(2, (7, 893), 2)), dims=("lat", "time", "lon"))
    mean = xr.apply_ufunc(cfd.mean, lazy, input_core_dims=[["time"]], kwargs={"axis": -1}, dask="allowed")
    assert mean.dims == ("lat", "lon") and mean.chunks is not None
    # The core dim is moved to the end, which is another spec.
    moved = np.moveaxis(x, 1, -1)
    assert mean.values.tobytes() == cf.mean(moved, axis=-1).tobytes()
    kept = {"input_core_dims": [["time"]], "output_core_dims": [["time"]], "kwargs": {"axis": -1}, "dask": "allowed"}
    soft = xr.apply_ufunc(cfd.softmax, lazy, **kept)
    assert soft.values.tobytes() == cf.softmax(moved, axis=-1).tobytes()
    assert lazy.reduce(cfd.mean, "time").values.tobytes() == cf.mean(x, axis=1).tobytes()
    with pytest.raises(TypeError, match=r"pass .* the .data of an xarray.DataArray"):
        cfd.mean(lazy)


@pytest.mark.parametrize("name", cfd.__all__)
def test_every_function_has_an_example(name):
    assert run(inspect.cleandoc(getattr(cfd, name).__doc__), name) > 0


def test_the_page_about_chunks():
    page = pathlib.Path(__file__).parents[2] / "docs" / "distributed.md"
    if not page.exists():
        pytest.skip(f"{page.name} is not beside an installed package")
    pytest.importorskip("xarray", reason="xarray is not installed")
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    assert run("\n".join(blocks), page.name) > 0
    assert run(cfd.__doc__, "cranefold.dask") > 0
