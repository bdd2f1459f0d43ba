"""The rules of the array API and of NumPy, over dtypes, axes, keepdims, empties and special values."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cranefold as cf
import cranefold.array_api as xp

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, np.float32, np.float64]
NUMBERS = INTEGERS + FLOATS
ALL = [np.bool_, *NUMBERS]
EPS = {np.float16: 2e-3, np.float32: 1e-5, np.float64: 1e-13}

# Each shape is compiled for a millisecond or more.
SETTINGS = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 5, 17]), max_size=4).map(tuple)


@st.composite
def arrays(draw, dtypes):
    """An array in any of some layouts, with an axis argument."""
    dtype, shape = draw(st.sampled_from(dtypes)), draw(SHAPES)
    random = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    if dtype is np.bool_:
        x = random.integers(0, 2, shape).astype(bool)
    elif dtype in FLOATS:
        x = np.asarray(random.standard_normal(shape) * 4, dtype)
        if x.size and draw(st.booleans()):
            special = [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).tiny / 4, 1.0]
            at = random.integers(0, x.size, 1 + x.size // 5)
            x.reshape(-1)[at] = random.choice(special, at.size)
    else:
        limits = np.iinfo(dtype)
        x = np.asarray(random.integers(limits.min, limits.max, shape, dtype, endpoint=True))
    if x.ndim and draw(st.booleans()):
        x = np.asfortranarray(x)
    if x.ndim and draw(st.booleans()):
        x = x[::-1]
    one = st.integers(-x.ndim, x.ndim - 1) if x.ndim else st.nothing()
    some = st.lists(one, max_size=x.ndim, unique_by=lambda axis: axis % x.ndim).map(tuple) if x.ndim else st.just(())
    axis = draw(st.none() | some | one if x.ndim else st.none() | st.just(()))
    return x, axis, draw(st.booleans())


def nothing(x, axis):
    """True if some result has no elements to come from."""
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = {a % x.ndim for a in axes} if x.ndim else set()
    kept = math.prod(n for k, n in enumerate(x.shape) if k not in axes)
    return kept > 0 and math.prod(x.shape[k] for k in axes) == 0


def quiet(function, *args, **kwargs):
    with np.errstate(all="ignore"):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)


def same(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def close(found, expected, dtype, scale):
    """Equal within the error of a sum of magnitudes up to `scale`, and equal where that is no number."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (np.dtype(dtype), expected.shape)
    found, expected = found.astype(np.float64), np.asarray(expected, np.float64)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    atol = EPS[np.dtype(dtype).type] * (scale if np.isfinite(scale) else 0)
    finite = np.isfinite(expected) & np.isfinite(found)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=2 * EPS[np.dtype(dtype).type], atol=atol)


@SETTINGS
@given(arrays(INTEGERS + [np.bool_]), st.sampled_from(["sum", "prod"]))
def test_sums_of_integers_are_exact(case, name):
    x, axis, keepdims = case
    wide = np.uint64 if x.dtype.kind == "u" else np.int64
    same(getattr(cf, name)(x, axis, keepdims=keepdims), getattr(np, name)(x, axis=axis, dtype=wide, keepdims=keepdims))


@SETTINGS
@given(arrays(FLOATS))
def test_sums_of_floats(case):
    x, axis, keepdims = case
    expected = quiet(np.sum, x.astype(np.float64), axis=axis, keepdims=keepdims)
    found = cf.sum(x, axis, keepdims=keepdims)
    finite = np.where(np.isfinite(x), x, 0).astype(np.float64)
    close(found, expected, x.dtype.type, np.abs(finite).sum())


@SETTINGS
@given(arrays(ALL), st.sampled_from(["max", "min"]))
def test_extremes(case, name):
    x, axis, keepdims = case
    function, peer = getattr(cf, name), getattr(np, name)
    if x.size == 0 and not nothing(x, axis):
        # NumPy refuses some of these, whose results have no elements.
        same(function(x, axis, keepdims=keepdims), np.sum(x, axis=axis, keepdims=keepdims).astype(x.dtype))
        return
    if nothing(x, axis):
        with pytest.raises(ValueError, match="of nothing"):
            function(x, axis, keepdims=keepdims)
        limit = x.dtype.type(1)
        same(function(x, axis, keepdims=keepdims, initial=limit), peer(x, axis=axis, keepdims=keepdims, initial=limit))
        return
    same(function(x, axis, keepdims=keepdims), quiet(peer, x, axis=axis, keepdims=keepdims))


def test_zeros_are_ordered():
    """-0 is below +0, which the standard leaves open."""
    assert not np.signbit(cf.max(np.array([-0.0, 0.0]))) and not np.signbit(cf.max(np.array([0.0, -0.0])))
    assert np.signbit(cf.min(np.array([-0.0, 0.0]))) and np.signbit(cf.min(np.array([0.0, -0.0])))
    assert np.signbit(cf.sum(np.array([-0.0, -0.0]))) and not np.signbit(cf.sum(np.array([])))


@SETTINGS
@given(arrays(ALL))
def test_means(case):
    x, axis, keepdims = case
    result = x.dtype.type if x.dtype.kind == "f" else np.float64
    expected = quiet(np.mean, x.astype(np.float64), axis=axis, keepdims=keepdims)
    finite = np.where(np.isfinite(x.astype(np.float64)), x.astype(np.float64), 0)
    close(cf.mean(x, axis, keepdims=keepdims), expected, result, np.abs(finite).max(initial=0))


@SETTINGS
@given(arrays(ALL), st.sampled_from(["var", "std"]), st.sampled_from([0, 1, 0.5, 3]))
def test_variances(case, name, ddof):
    x, axis, keepdims = case
    result = x.dtype.type if x.dtype.kind == "f" else np.float64
    wide = x.astype(np.float64)
    expected = quiet(getattr(np, name), wide, axis=axis, ddof=ddof, keepdims=keepdims)
    found = getattr(cf, name)(x, axis, ddof=ddof, keepdims=keepdims)
    assert np.asarray(found).dtype == result and np.shape(found) == np.shape(expected)
    finite = np.isfinite(expected) & np.isfinite(found)
    scale = np.abs(wide[np.isfinite(wide)]).max(initial=0) ** (2 if name == "var" else 1)
    np.testing.assert_allclose(
        np.asarray(found)[finite], np.asarray(expected)[finite], rtol=8 * EPS[result], atol=1e-14 * scale
    )


@SETTINGS
@given(arrays(ALL), st.sampled_from(["argmax", "argmin"]))
def test_positions(case, name):
    x, axis, keepdims = case
    axis = axis if axis is None or isinstance(axis, int) else None
    function = getattr(cf, name)
    if nothing(x, axis):
        with pytest.raises(ValueError, match="of nothing"):
            function(x, axis, keepdims=keepdims)
        return
    if x.size == 0:
        return  # NumPy refuses positions in kept axes without elements, whose result is empty
    same(function(x, axis, keepdims=keepdims), getattr(np, name)(x, axis=axis, keepdims=keepdims))


@SETTINGS
@given(arrays(ALL), st.sampled_from(["any", "all", "count_nonzero"]))
def test_truth(case, name):
    x, axis, keepdims = case
    expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    if name == "count_nonzero":
        expected = np.asarray(expected, np.int64)
    same(getattr(cf, name)(x, axis, keepdims=keepdims), expected)


@SETTINGS
@given(arrays([np.float32, np.float64, np.int32]), st.sampled_from([1, 2, 3, 0, np.inf, -np.inf, 0.5, -1]))
def test_norms(case, order):
    x, axis, keepdims = case
    if nothing(x, axis) and order < 0:
        return
    result = x.dtype.type if x.dtype.kind == "f" else np.float64
    wide = np.where(np.isfinite(x), x, 1).astype(np.float64)
    found = cf.vector_norm(wide.astype(x.dtype), axis=axis, keepdims=keepdims, ord=order)
    assert np.asarray(found).dtype == result
    if x.size:
        expected = quiet(np.linalg.vector_norm, wide, axis=axis, keepdims=keepdims, ord=order)
        np.testing.assert_allclose(found, expected, rtol=20 * EPS[result])


@SETTINGS
@given(arrays(FLOATS), st.sampled_from(["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"]))
def test_variants_without_nan(case, name):
    x, axis, keepdims = case
    if name in ("nanmax", "nanmin") and nothing(x, axis):
        return
    x = np.where(np.isinf(x), x.dtype.type(2), x)
    expected = quiet(getattr(np, name), x.astype(np.float64), axis=axis, keepdims=keepdims)
    found = getattr(cf, name)(x, axis, keepdims=keepdims)
    assert np.asarray(found).dtype == x.dtype
    fits = np.abs(np.nan_to_num(expected)) < np.finfo(x.dtype).max / 2
    scale = np.abs(np.nan_to_num(x.astype(np.float64))).sum() if name == "nansum" else 1e-3
    np.testing.assert_allclose(
        np.asarray(found)[fits], np.asarray(expected)[fits], rtol=1e-2 if x.dtype == np.float16 else 1e-4,
        atol=EPS[x.dtype.type] * scale + (1e-6 if x.dtype == np.float16 else 0),
    )


@SETTINGS
@given(arrays(FLOATS), st.sampled_from([0.0, 0.25, 0.3, 0.9, 1.0]))
def test_quantiles_without_nan(case, q):
    x, axis, keepdims = case
    x = np.where(np.isinf(x), x.dtype.type(2), x)
    axis = None if axis == () else axis
    wide = x.astype(np.float64)
    if x.size == 0:
        expected = np.full(np.sum(x, axis=axis, keepdims=keepdims).shape, np.nan)
        same(cf.nanmedian(x, axis, keepdims=keepdims), expected.astype(x.dtype))
        return
    expected = quiet(np.nanquantile, wide, q, axis=axis, keepdims=keepdims)
    close(cf.nanquantile(x, q, axis, keepdims=keepdims), expected, x.dtype.type, 10)
    expected = quiet(np.nanmedian, wide, axis=axis, keepdims=keepdims)
    close(cf.nanmedian(x, axis, keepdims=keepdims), expected, x.dtype.type, 10)


@pytest.mark.parametrize("dtype", [*FLOATS, ml_dtypes.bfloat16])
def test_quantiles_without_nan_are_those_of_the_rest(dtype):
    """The bits of `median` and `quantile` over the elements that are not NaN, infinities and zeros among them."""
    random = np.random.default_rng(0)
    most = float(ml_dtypes.finfo(dtype).max)
    special = np.array([0.0, -0.0, np.inf, -np.inf, most, -most, 1, 2], dtype)
    for count in range(1, 40):
        row = np.where(random.random(count) < 0.4, random.choice(special, count), random.standard_normal(count).astype(dtype))
        row = row.astype(dtype)
        x = np.full(57, np.nan, dtype)
        x[np.sort(random.permutation(57)[:count])] = row
        for q in (0.0, 0.25, 1 / 3, 0.5, 0.77, 1.0):
            found, expected = cf.nanquantile(x, q), cf.quantile(row, q)
            assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes()), (row, q)
        assert cf.nanmedian(x).tobytes() == cf.median(row).tobytes(), row
    assert np.isnan(cf.nanmedian(np.full((2, 3), np.nan, dtype), 1).astype(np.float64)).all()


METHODS = [
    "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
    "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased",
]


@SETTINGS
@given(arrays([np.float32, np.float64, np.int16, np.uint8]), st.sampled_from(METHODS), st.integers(0, 16))
def test_methods_of_quantiles(case, method, sixteenths):
    """Those of NumPy, of slices with NaN and without, also where q hits an element or the middle of two."""
    x, axis, keepdims = case
    if x.size == 0:
        return
    axis = None if axis == () else axis
    q = sixteenths / 16
    x = np.where(np.isinf(x), x.dtype.type(2), x)
    result = x.dtype.type if x.dtype.kind == "f" else np.float64
    wide = x.astype(np.float64)
    for name in ("quantile", "nanquantile"):
        expected = quiet(getattr(np, name), wide, q, axis=axis, keepdims=keepdims, method=method)
        close(getattr(cf, name)(x, q, axis, keepdims=keepdims, method=method), expected, result, 10)


def test_methods_of_several_quantiles():
    x = np.array([[3, 1, 2, 9], [7, 7, 8, 0]])
    same(cf.quantile(x, [0.3, 1.0], 1, method="lower"), np.array([[1.0, 0.0], [9.0, 8.0]]))
    out = np.zeros(2)
    assert cf.quantile(x, 0.3, 1, out, method="higher") is out
    same(out, np.array([2.0, 7.0]))
    same(cf.quantile(x.T, 0.3, 0, method="hazen"), cf.quantile(x, 0.3, 1, method="hazen"))
    same(cf.quantile(x, 0.3, method="linear"), cf.quantile(x, 0.3))


def test_quantiles_of_integers_have_no_nan():
    x = np.array([[1, 9, 2], [4, 8, 6]])
    same(cf.nanmedian(x, 1), cf.median(x, 1))
    same(cf.nanquantile(x, [0.1, 0.5], 0), cf.quantile(x, [0.1, 0.5], 0))


def test_out_of_quantiles():
    x = np.array([[1.0, np.nan, 3.0, 2.0], [5.0, 6.0, np.nan, np.nan]])
    wide = np.zeros((2, 2))
    assert cf.nanmedian(x, 1, out=wide[:, 1]) is not None
    same(wide, np.array([[0, 2], [0, 5.5]]))
    kept = np.zeros((2, 1))
    assert cf.nanquantile(x, 1.0, 1, kept, keepdims=True) is kept
    same(kept, np.array([[3.0], [6.0]]))
    several = np.zeros((3, 2))[::-1]
    assert cf.quantile(np.nan_to_num(x), [0.0, 0.5, 1.0], 1, several) is several
    same(several, cf.quantile(np.nan_to_num(x), [0.0, 0.5, 1.0], 1))
    same(cf.nanquantile(x, [0.0, 1.0]), np.array([1.0, 6.0]))


def test_positions_without_nan():
    x = np.array([[np.nan, -np.inf, -np.inf], [3, np.nan, 5]])
    same(cf.nanargmax(x, 1), np.array([1, 2]))
    same(cf.nanargmin(x, 1), np.array([1, 0]))
    with pytest.raises(ValueError, match="nanargmax of nothing"):
        cf.nanargmax(np.array([[np.nan, np.nan], [1, 2]]), 1)


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
@pytest.mark.parametrize("dtype", [*FLOATS, ml_dtypes.bfloat16])
def test_positions_among_infinities(name, dtype):
    """Where the best element is the infinity that others exceed, and NaN stand before it, which NumPy gets wrong."""
    function, worst, choose = (cf.nanargmax, -np.inf, max) if name == "nanargmax" else (cf.nanargmin, np.inf, min)
    random = np.random.default_rng(0)
    for shape, axes in (((40, 9), (1,)), ((40, 9), (0,)), ((6, 5, 7), (0, 2)), ((300,), (0,)), ((3, 1100), (1,)), ((0, 3), (1,))):
        x = random.choice(np.array([np.nan, worst, 1], dtype), shape, p=[0.7, 0.28, 0.02])
        last = tuple(slice(-1, None) if axis in axes else slice(None) for axis in range(x.ndim))
        x[last] = np.where(np.isnan(x[last]), np.array(worst, dtype), x[last])
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        rows = np.transpose(x, kept + list(axes)).reshape(math.prod(x.shape[axis] for axis in kept), -1).tolist() if x.size else []
        best = [choose(float(one) for one in row if one == one) for row in rows]
        expected = np.array([row.index(one) for row, one in zip(rows, best, strict=True)], np.int64)
        expected = expected.reshape([x.shape[axis] for axis in kept])
        for same_values in (x, np.asfortranarray(x), np.flip(np.flip(x, 0).copy(), 0)):
            same(function(same_values, axes), expected)
            kept_shape = [1 if axis in axes else n for axis, n in enumerate(shape)]
            out = np.zeros([2 * n for n in kept_shape], np.int64)[tuple(slice(None, None, 2) for _ in shape)]
            assert function(same_values, axes, out, keepdims=True) is out
            same(out, expected.reshape(kept_shape))


@SETTINGS
@given(arrays([np.float32, np.float64, np.int16]), st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]))
def test_quantiles(case, q):
    x, axis, keepdims = case
    x = np.where(np.isfinite(x), x, x.dtype.type(2))
    if x.size == 0:
        return
    axis = None if axis == () else axis
    result = x.dtype.type if x.dtype.kind == "f" else np.float64
    wide = x.astype(np.float64)
    close(cf.quantile(x, q, axis, keepdims=keepdims), np.quantile(wide, q, axis=axis, keepdims=keepdims), result, 10)
    close(cf.median(x, axis, keepdims=keepdims), np.median(wide, axis=axis, keepdims=keepdims), result, 10)


@pytest.mark.parametrize("dtype", [None, "float16", "float32", "float64"])
@pytest.mark.parametrize("given_dtype", ALL)
def test_dtype_of_sums_and_means(given_dtype, dtype):
    x = np.arange(12).reshape(3, 4).astype(given_dtype)
    for name in ("sum", "prod", "mean"):
        found = getattr(cf, name)(x, 1, dtype=dtype)
        expected = getattr(np, name)(x, axis=1, dtype=dtype)
        if dtype is None and name != "mean" and x.dtype.kind in "iub":
            expected = expected.astype(np.uint64 if x.dtype.kind == "u" else np.int64)
        if dtype is None and name == "mean" and x.dtype.kind in "iub":
            expected = expected.astype(np.float64)
        same(found, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("result", INTEGERS)
def test_integer_dtypes_of_sums(dtype, result):
    x = np.array([[100, 100, 27], [3, 4, 5]]).astype(dtype)
    same(cf.sum(x, 1, dtype=result), np.sum(x, axis=1, dtype=result))
    same(cf.prod(x, 1, dtype=result), np.prod(x, axis=1, dtype=result))


def test_bfloat16():
    x = np.array([[1, 2, 3], [4, 5, 6.5]], ml_dtypes.bfloat16)
    assert cf.sum(x, 1).dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(cf.sum(x, 1).astype(float), [6, 15.5])
    assert cf.sum(x, 1, dtype="float64").dtype == np.float64
    assert cf.sum(x.astype(np.float32), 1, dtype=ml_dtypes.bfloat16).dtype == ml_dtypes.bfloat16
    assert cf.sum(np.full(4096, 1, ml_dtypes.bfloat16)) == 4096
    np.testing.assert_array_equal(cf.argmax(x, 1), [2, 2])
    assert cf.max(x).dtype == ml_dtypes.bfloat16


def test_initial():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    same(cf.sum(x, 1, initial=10), np.sum(x, axis=1, initial=10))
    same(cf.prod(x, 1, initial=3), np.prod(x, axis=1, initial=3))
    same(cf.max(x, 1, initial=3), np.max(x, axis=1, initial=3))
    for dtype in INTEGERS:
        y = x.astype(dtype)
        same(cf.min(y, 1, initial=2), np.min(y, axis=1, initial=2))
        wide = np.uint64 if y.dtype.kind == "u" else np.int64
        same(cf.sum(y, 1, initial=7), np.sum(y, axis=1, initial=7, dtype=wide))
    same(cf.max(np.array([], bool), initial=True), np.bool_(True))
    mask = np.array([[True, False, False], [False, False, False]])
    same(cf.max(x > 0, 1, initial=False, where=mask), np.max(x > 0, axis=1, initial=False, where=mask))


def test_where_broadcasts_and_selects():
    x = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    for mask in (x % 3 == 0, np.array([True, False, True, True]), (np.arange(3) > 0)[:, None]):
        for axis in (None, 0, (1, 2), (0, 2)):
            same(cf.sum(x, axis, where=mask), np.sum(x, axis=axis, where=mask, dtype=np.int64))
            same(cf.any(x, axis, where=mask), np.any(x, axis=axis, where=mask))
            same(cf.all(x, axis, where=mask), np.all(x, axis=axis, where=mask))
            found, expected = cf.mean(x, axis, where=mask), quiet(np.mean, x, axis=axis, where=mask)
            np.testing.assert_allclose(found, expected)


def test_out():
    x = np.arange(12, dtype=np.float64).reshape(3, 4)
    wide = np.full((3, 6), 7.0)
    out = wide[:, ::2][:, 1]
    assert cf.sum(x, 1, out=out) is out
    np.testing.assert_array_equal(wide[:, 2], x.sum(1))
    assert (np.delete(wide, 2, axis=1) == 7).all()
    kept = np.zeros((3, 1))
    cf.mean(x, 1, out=kept, keepdims=True)
    np.testing.assert_array_equal(kept, x.mean(1, keepdims=True))
    whole = np.zeros(())
    assert cf.sum(x, out=whole) is whole and whole == 66
    turned = np.zeros((4, 3)).T
    np.testing.assert_array_equal(cf.softmax(x, out=turned), cf.softmax(x))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.int32, np.float16])
def test_out_of_extremes(dtype):
    x = np.arange(12).reshape(3, 4).astype(dtype)
    wide = np.zeros((3, 4), dtype)
    assert cf.max(x, 1, out=wide[:, 1]) is not None
    same(wide[:, 1], x.max(1))
    same(cf.min(x, 0, out=wide[::-1][0], keepdims=False), x.min(0))


def test_average():
    x = np.arange(6.0).reshape(2, 3)
    w = np.array([1.0, 2.0, 5.0])
    same(cf.average(x, 1, w), np.average(x, 1, w))
    same(cf.average(x, weights=x + 1), np.average(x, weights=x + 1))
    for found, expected in zip(cf.average(x, 1, w, True), np.average(x, 1, w, True), strict=True):
        same(found, expected)
    for found, expected in zip(cf.average(x, 0, returned=True), np.average(x, 0, returned=True), strict=True):
        same(found, expected)
    assert cf.average(x.astype(np.int8), 0).dtype == np.float64
    with pytest.raises(ZeroDivisionError):
        cf.average(x, 1, np.zeros(3))


def test_norms_over_elements():
    x = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
    w, b = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    expected = centred / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(cf.layer_norm(x, w, b), expected, atol=1e-5)
    alone = centred / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(cf.layer_norm(x), alone, atol=1e-5)
    np.testing.assert_allclose(cf.layer_norm(x, None, b), alone + 1, atol=1e-5)
    for given in (np.float64, np.int32):
        mixed = cf.layer_norm(x, w.astype(given), b)
        assert mixed.dtype == x.dtype
        np.testing.assert_allclose(mixed, alone * w.astype(given) + b, atol=1e-5)
    np.testing.assert_allclose(
        cf.rms_norm(x, w), wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * w, atol=1e-5
    )
    channels = np.random.default_rng(1).standard_normal((2, 3, 4))
    scale = np.array([1.0, 2.0, 3.0])
    expected = cf.rms_norm(np.moveaxis(channels, 1, -1).copy(), scale)
    np.testing.assert_allclose(cf.rms_norm(channels, scale, axis=1), np.moveaxis(expected, -1, 1), rtol=1e-14)
    np.testing.assert_allclose(cf.softmax(x, 0), np.exp(wide) / np.exp(wide).sum(0), rtol=1e-5)
    np.testing.assert_allclose(cf.log_softmax(x), wide - np.log(np.exp(wide).sum(1, keepdims=True)), atol=1e-5)
    np.testing.assert_allclose(cf.normalize(x, ord=1), wide / np.abs(wide).sum(1, keepdims=True), rtol=1e-5)
    assert cf.softmax(np.array([1, 2])).dtype == np.float64
    assert cf.softmax(np.zeros((0, 3))).shape == (0, 3) and cf.softmax(np.float32(3), None) == 1


def test_logsumexp():
    x = np.array([[-np.inf, -np.inf], [np.inf, 0], [np.nan, np.inf], [1000, 1000]])
    np.testing.assert_allclose(cf.logsumexp(x, 1), [-np.inf, np.inf, np.nan, 1000 + np.log(2)])
    assert cf.logsumexp(np.array([])) == -np.inf


@pytest.mark.parametrize("rank", [0, 1, 5, 31])
def test_ranks(rank):
    x = np.arange(2**min(rank, 3), dtype=np.float32).reshape((1,) * (rank - min(rank, 3)) + (2,) * min(rank, 3))
    assert cf.sum(x) == x.sum()
    same(cf.sum(x, ()), x)
    same(cf.softmax(x, ()), np.ones_like(x)[()])
    if rank:
        same(cf.sum(x, -1), x.sum(-1))


def test_array_api_namespace():
    import inspect

    assert xp.__array_api_version__ == "2024.12"
    assert xp.zeros is np.zeros and xp.sum is not np.sum and "sum" in dir(xp) and "zeros" in dir(xp)
    for name in ("sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin", "count_nonzero"):
        parameters = list(inspect.signature(getattr(xp, name)).parameters.values())
        assert parameters[0].kind == inspect.Parameter.POSITIONAL_ONLY
        assert all(p.kind == inspect.Parameter.KEYWORD_ONLY for p in parameters[1:])
    x = xp.asarray([[1, 2], [3, 4]], dtype=xp.int16)
    assert xp.sum(x).dtype == xp.int64 and xp.mean(x).dtype == xp.float64
    assert xp.std(x, correction=1) == pytest.approx(np.std([1, 2, 3, 4], ddof=1))
    assert xp.linalg.vector_norm(xp.asarray([3.0, 4.0])) == 5
    assert xp.linalg.norm is np.linalg.norm
    with pytest.raises(AttributeError):
        _ = xp.no_such_name
    with pytest.raises(TypeError):
        xp.sum(x, 0)
