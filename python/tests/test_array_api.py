"""The rules of the array API, 2024.12, over arrays that the namespace itself makes."""

import inspect
import math
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.array_api import make_strategies_namespace

import cranefold as cf
import cranefold.array_api as xp

xps = make_strategies_namespace(xp, api_version="2024.12" if hasattr(xp, "cumulative_prod") else "2023.12")
SETTINGS = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
SHAPES = xps.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6)
REAL, FLOATS = xps.real_dtypes(), xps.floating_dtypes()
EVERY = REAL | xps.boolean_dtypes()

AXIS, KEEPDIMS = ("axis", None), ("keepdims", False)
SIGNATURES = {
    "sum": [AXIS, ("dtype", None), KEEPDIMS],
    "prod": [AXIS, ("dtype", None), KEEPDIMS],
    "max": [AXIS, KEEPDIMS],
    "min": [AXIS, KEEPDIMS],
    "mean": [AXIS, KEEPDIMS],
    "var": [AXIS, ("correction", 0.0), KEEPDIMS],
    "std": [AXIS, ("correction", 0.0), KEEPDIMS],
    "argmax": [AXIS, KEEPDIMS],
    "argmin": [AXIS, KEEPDIMS],
    "any": [AXIS, KEEPDIMS],
    "all": [AXIS, KEEPDIMS],
    "count_nonzero": [AXIS, KEEPDIMS],
    "linalg.vector_norm": [AXIS, KEEPDIMS, ("ord", 2)],
}
NAMES = """abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh bitwise_and
bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bool broadcast_arrays broadcast_to can_cast ceil
clip complex128 complex64 concat conj copysign cos cosh count_nonzero cumulative_prod cumulative_sum diff divide e empty
empty_like equal exp expand_dims expm1 eye finfo flip float32 float64 floor floor_divide from_dlpack full full_like greater
greater_equal hypot iinfo imag inf int16 int32 int64 int8 isdtype isfinite isinf isnan less less_equal linspace log log10 log1p
log2 logaddexp logical_and logical_not logical_or logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum
moveaxis multiply nan negative newaxis nextafter nonzero not_equal ones ones_like permute_dims pi positive pow prod real
reciprocal remainder repeat reshape result_type roll round searchsorted sign signbit sin sinh sqrt square squeeze stack std
subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc uint16 uint32 uint64 uint8 unique_all unique_counts
unique_inverse unique_values unstack var vecdot where zeros zeros_like""".split()


def function(name):
    """A function by its name, which may have a dot."""
    found = xp
    for part in name.split("."):
        found = getattr(found, part)
    return found


def arguments(x, draw, axes=True):
    """An axis, or a tuple of axes, and `keepdims`, as keywords that may be missing."""
    given = {}
    one = st.integers(-x.ndim, x.ndim - 1) if x.ndim else st.nothing()
    some = xps.valid_tuple_axes(x.ndim) if axes else st.nothing()
    if draw(st.booleans()):
        given["axis"] = draw(st.none() | one | some)
    if draw(st.booleans()):
        given["keepdims"] = draw(st.booleans())
    return given


def slices(x, axis=None, keepdims=False):
    """The shape of a result, and for each of its elements in row-major order the elements of the slice."""
    axes = set(range(x.ndim)) if axis is None else {axis % x.ndim} if isinstance(axis, int) else {a % x.ndim for a in axis}
    kept = [a for a in range(x.ndim) if a not in axes]
    shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape) if keepdims or a not in axes)
    turned = np.transpose(x, kept + sorted(axes)).reshape([x.shape[a] for a in kept] + [-1]) if x.size else None
    count = math.prod(x.shape[a] for a in axes)
    rows = math.prod(x.shape[a] for a in kept)
    return shape, [[]] * rows if turned is None else turned.reshape(rows, count).tolist()


def check(found, expected, shape, dtype, rtol=0.0, atol=0.0):
    """The dtype, the shape and each element of a result."""
    assert found.dtype == dtype, (found.dtype, dtype)
    assert found.shape == shape, (found.shape, shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.asarray(expected, dtype).reshape(shape)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    first, *rest = inspect.signature(function(name)).parameters.values()
    assert first.name == "x" and first.kind is first.POSITIONAL_ONLY and first.default is first.empty
    assert [(p.name, p.default) for p in rest] == SIGNATURES[name]
    assert all(p.kind is p.KEYWORD_ONLY for p in rest)
    assert [type(p.default) for p in rest] == [type(default) for _, default in SIGNATURES[name]]


def test_the_namespace_is_whole():
    if not hasattr(np, "cumulative_prod"):
        pytest.skip("NumPy has the names of the standard from 2.1 on")
    assert xp.__array_api_version__ == "2024.12"
    for name in NAMES:
        assert hasattr(xp, name) and name in dir(xp), name
    info = xp.__array_namespace_info__()
    assert info.default_device() == "cpu" and info.default_dtypes()["integral"] == xp.int64
    assert set(info.capabilities()) >= {"boolean indexing", "data-dependent shapes"}
    assert xp.linalg.svd is np.linalg.svd and xp.fft.fft is np.fft.fft
    assert all(function(name).__module__ == "cranefold.array_api" for name in SIGNATURES)
    with pytest.raises(AttributeError, match="no attribute '__no_such_name__'"):
        _ = xp.__no_such_name__


@SETTINGS
@given(st.data())
def test_sums_of_numbers(data):
    x = data.draw(xps.arrays(REAL, SHAPES, elements={"allow_nan": False, "allow_infinity": False, "max_value": 100}))
    name, given_ = data.draw(st.sampled_from(["sum", "prod"])), arguments(x, data.draw)
    x = xp.astype(xp.where(abs(x.astype(xp.float64)) > 100, xp.asarray(3, dtype=x.dtype), x), x.dtype)
    default = x.dtype if x.dtype.kind == "f" else np.dtype(xp.uint64 if x.dtype.kind == "u" else xp.int64)
    shape, rows = slices(x, **given_)
    found = function(name)(x, **given_)
    assert (found.dtype, found.shape) == (default, shape)
    for one, row in zip(np.asarray(found).reshape(-1).tolist(), rows, strict=True):
        if default.kind != "f":
            exact = (sum if name == "sum" else math.prod)(row)
            low = 0 if default.kind == "u" else -(1 << 63)
            assert one == (exact - low) % (1 << 64) + low
        elif name == "sum":
            tolerance = np.finfo(default).eps * (1 + sum(map(abs, row))) * 4
            assert abs(one - math.fsum(row)) <= tolerance
        else:
            exact = math.prod(row)
            if abs(exact) < np.finfo(default).max / 4:
                assert abs(one - exact) <= np.finfo(default).eps * abs(exact) * (2 + len(row)) + np.finfo(default).tiny


@SETTINGS
@given(st.data())
def test_dtype_of_sums(data):
    """A result in an asked dtype, to which the elements are converted first."""
    x = data.draw(xps.arrays(xps.integer_dtypes(sizes=(8, 16)), SHAPES))
    to = data.draw(st.sampled_from([xp.int16, xp.int32, xp.int64, xp.uint32, xp.float32, xp.float64]))
    found = xp.sum(x, dtype=to)
    with np.errstate(over="ignore"):
        assert found.dtype == to and found == np.sum(x.astype(to), dtype=to)
    assert xp.prod(x, dtype=to).dtype == to


@SETTINGS
@given(st.data())
def test_extremes_and_positions(data):
    x = data.draw(xps.arrays(REAL, xps.array_shapes(max_dims=4, max_side=6)))
    for name, choose in (("max", max), ("min", min)):
        given_ = arguments(x, data.draw)
        shape, rows = slices(x, **given_)
        best = [math.nan if any(one != one for one in row) else choose(row) for row in rows]
        check(function(name)(x, **given_), best, shape, x.dtype)
        given_ = arguments(x, data.draw, axes=False)
        shape, rows = slices(x, **given_)
        nan = [next((k for k, one in enumerate(row) if one != one), None) for row in rows]
        at = [row.index(choose(row)) if k is None else k for k, row in zip(nan, rows, strict=True)]
        check(function("arg" + name)(x, **given_), at, shape, np.int64)


@SETTINGS
@given(st.data())
def test_means_and_variances(data):
    x = data.draw(xps.arrays(FLOATS, SHAPES, elements={"allow_nan": False, "min_value": -99, "max_value": 99}))
    given_ = arguments(x, data.draw)
    shape, rows = slices(x, **given_)
    eps = float(np.finfo(x.dtype).eps)
    means = [math.fsum(row) / len(row) if row else math.nan for row in rows]
    check(xp.mean(x, **given_), means, shape, x.dtype, 4 * eps, 400 * eps)
    longest = max(map(len, rows), default=0)
    correction = data.draw(st.integers(0, longest) | st.floats(0, longest))
    spread = [
        math.fsum((one - mean) ** 2 for one in row) / (len(row) - correction) if len(row) > correction else math.nan
        for row, mean in zip(rows, means, strict=True)
    ]
    scale = 1 / min((len(row) - correction for row in rows if len(row) > correction), default=1)
    if scale < 1e6:
        found = xp.var(x, correction=correction, **given_)
        check(found, spread, shape, x.dtype, 32 * eps, 1e5 * eps * max(scale, 1))
        root = xp.std(x, correction=correction, **given_)
        np.testing.assert_allclose(root, np.sqrt(np.asarray(found)), rtol=4 * eps)
        assert (root.dtype, root.shape) == (x.dtype, shape)


@SETTINGS
@given(st.data())
def test_truth(data):
    x = data.draw(xps.arrays(EVERY, SHAPES))
    given_ = arguments(x, data.draw)
    shape, rows = slices(x, **given_)
    check(xp.any(x, **given_), [any(row) for row in rows], shape, np.bool_)
    check(xp.all(x, **given_), [all(row) for row in rows], shape, np.bool_)
    check(xp.count_nonzero(x, **given_), [sum(map(bool, row)) for row in rows], shape, np.int64)


@SETTINGS
@given(st.data())
def test_norms(data):
    x = data.draw(xps.arrays(FLOATS, SHAPES, elements={"allow_nan": False, "min_value": -9, "max_value": 9}))
    order = data.draw(st.sampled_from([1, 2, 3.5, 0, math.inf]))
    given_ = arguments(x, data.draw)
    shape, rows = slices(x, **given_)
    norm = {0: lambda row: sum(map(bool, row)), math.inf: lambda row: max(map(abs, row), default=0)}.get(
        order, lambda row: math.fsum(abs(one) ** order for one in row) ** (1 / order)
    )
    check(xp.linalg.vector_norm(x, ord=order, **given_), list(map(norm, rows)), shape, x.dtype, 1e-4, 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_cases(dtype):
    """The special cases of the standard's text, one after the other."""
    dtype = getattr(xp, dtype)
    nothing, inf, nan = xp.asarray([], dtype=dtype), xp.inf, xp.nan
    assert xp.sum(nothing) == 0 and xp.prod(nothing) == 1 and not xp.signbit(xp.sum(nothing))
    for name in ("mean", "var", "std"):
        assert xp.isnan(function(name)(nothing)) and function(name)(nothing).dtype == dtype
    for name in ("sum", "prod", "mean", "var", "std", "max", "min"):
        for place in range(5):
            x = xp.asarray([1.0, -inf, 0.0, inf, 2.0], dtype=dtype)
            x[place] = nan
            assert xp.isnan(function(name)(x)), (name, place)
    # N - M is at most 0: NaN, also where the sum of squares is not 0.
    x = xp.asarray([[1.0, 2.0], [3.0, 7.0]], dtype=dtype)
    for correction in (2, 2.0, 2.5, 100):
        for name in ("var", "std"):
            assert xp.all(xp.isnan(function(name)(x, axis=1, correction=correction)))
            found = function(name)(x, axis=(1,), correction=correction, keepdims=True)
            assert found.shape == (2, 1) and found.dtype == dtype and xp.all(xp.isnan(found))
    assert xp.isfinite(xp.var(x, correction=2)) and cf.var(x, 1, ddof=2)[0] == inf
    one = xp.asarray(3.0, dtype=dtype)
    assert xp.var(one) == 0 and xp.isnan(xp.var(one, correction=1)) and xp.var(one, axis=()) == 0
    assert not xp.any(nothing) and xp.all(nothing) and xp.count_nonzero(nothing) == 0
    for value in (nan, inf, -inf):
        x = xp.asarray([value, 0.0], dtype=dtype)
        assert xp.any(x) and not xp.all(x) and xp.count_nonzero(x) == 1
    assert not xp.any(xp.asarray([0.0, -0.0], dtype=dtype))
    x = xp.asarray([5.0, nan, 9.0, nan], dtype=dtype)
    assert xp.argmax(x) == xp.argmin(x) == 1


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_numpys(dtype):
    dtype = getattr(xp, dtype)
    x = xp.asarray([[1 + 1j, 0], [2j, 3]], dtype=dtype)
    for name in ("sum", "prod", "mean", "any", "all", "count_nonzero", "linalg.vector_norm"):
        for given_ in ({}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}):
            found, expected = function(name)(x, **given_), np.asarray(eval(f"np.{name}")(x, **given_))
            assert found.dtype == expected.dtype and np.array_equal(found, expected), (name, given_)
    for to in (dtype, np.dtype(dtype), complex):
        assert xp.sum(xp.asarray([1, 2]), dtype=to) == 3 and xp.prod(xp.asarray([1.0, 2.0]), dtype=to).dtype.kind == "c"
    for name in ("max", "min", "argmax", "argmin", "var", "std"):
        with pytest.raises(TypeError, match="complex"):
            function(name)(x)


def test_results_are_arrays_of_the_namespace():
    x = xp.ones((2, 3), dtype=xp.int8)
    for name in SIGNATURES:
        found = function(name)(x, axis=1)
        assert isinstance(found, np.ndarray) and found.__array_namespace__() is np
        assert xp.asarray(function(name)(x)).shape == ()
