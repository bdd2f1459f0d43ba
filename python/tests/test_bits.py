"""One answer: the bits of a result depend on values, shape and axes alone."""

import ml_dtypes
import numpy as np
import pytest

import cranefold as cf
from cranefold import _core

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
REDUCTIONS = {
    "sum": cf.sum,
    "prod": lambda x, axis, **rest: cf.prod(x * x.dtype.type(0.25) + x.dtype.type(1), axis, **rest),
    "mean": cf.mean,
    "var": cf.var,
    "std": lambda x, axis, **rest: cf.std(x, axis, ddof=1, **rest),
    "max": cf.max,
    "argmin": cf.argmin,
    "vector_norm": lambda x, axis, **rest: cf.vector_norm(x, axis=axis, **rest),
    "logsumexp": cf.logsumexp,
    "softmax": cf.softmax,
    "log_softmax": cf.log_softmax,
    "layer_norm": lambda x, axis, **rest: cf.layer_norm(x, axis=axis, **rest),
    "rms_norm": lambda x, axis, **rest: cf.rms_norm(x, axis=axis, **rest),
    "normalize": cf.normalize,
    "median": cf.median,
    "nansum": cf.nansum,
    "nanvar": cf.nanvar,
    "nanmedian": lambda x, axis, **rest: cf.nanmedian(with_nan(x), axis, **rest),
    "masked var": lambda x, axis, **rest: cf.var(x, axis, where=x > 0, **rest),
}


def with_nan(x):
    """The array, in its own layout, with NaN in place of what is negative."""
    x = x.copy(order="K")
    x[x < 0] = np.nan
    return x


def data(shape, dtype, seed=0):
    """Elements of many magnitudes, so that any other order of the additions shows."""
    random = np.random.default_rng(seed)
    values = random.standard_normal(shape) * np.exp2(random.integers(-8, 9, shape))
    return values.astype(dtype)


def bits(array):
    """The bytes of an array in row-major order, with its dtype and shape."""
    array = np.asarray(array)
    return str(array.dtype), array.shape, array.tobytes()


def layouts(x):
    """The same values in other places of memory."""
    yield "C", np.ascontiguousarray(x)
    yield "F", np.asfortranarray(x)
    for axis in range(x.ndim):
        # Every second element of a larger array, and the array backwards.
        wide = np.repeat(x, 2, axis=axis)
        yield f"slice {axis}", wide[(slice(None),) * axis + (slice(None, None, 2),)]
        yield f"reversed {axis}", np.flip(np.ascontiguousarray(np.flip(x, axis)), axis)
    turned = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, -1)), -1, 0)
    yield "transposed", turned
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:]
    unaligned[:] = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
    yield "unaligned", unaligned.view(x.dtype).reshape(x.shape)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize(
    ("shape", "axis"), [((7, 130), 1), ((7, 130), 0), ((5, 6, 41), (0, 2)), ((5, 6, 41), (1, 2)), ((3, 67), (0, 1))]
)
def test_layouts(name, dtype, shape, axis):
    function, x = REDUCTIONS[name], data(shape, dtype)
    expected = bits(function(x, axis))
    for layout, same in layouts(x):
        assert np.array_equal(same, x)
        assert bits(function(same, axis)) == expected, layout


@pytest.mark.parametrize("name", ["sum", "mean", "var", "logsumexp", "vector_norm"])
@pytest.mark.parametrize(("shape", "axis"), [((1 << 21,), 0), ((1500, 1100), 1), ((1500, 1100), 0), ((1500, 1100), (0, 1))])
def test_threads_and_widths(name, shape, axis):
    function, x = REDUCTIONS[name], data(shape, np.float32)
    same = [(layout, array) for layout, array in layouts(x) if layout in ("C", "F", "slice 0", "reversed 0")]
    expected = None
    for threads in (1, 2, 4):
        for width in (0, 128, 256):
            cf.set_num_threads(threads)
            _core.set_width(width)
            for layout, array in same:
                found = bits(function(array, axis))
                expected = expected or found
                assert found == expected, (threads, width, layout)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_layouts_on_threads_and_widths(name):
    """Every function, in every layout, on 1, 2 and 4 threads, by vectors of 128 bits and of the machine."""
    function, x = REDUCTIONS[name], data((300, 431), np.float32)
    same = list(layouts(x))
    for axis in (0, 1):
        expected = bits(function(x, axis))
        for threads, width in ((1, 128), (2, 0), (4, 0), (4, 256)):
            cf.set_num_threads(threads)
            _core.set_width(width)
            for layout, array in same:
                assert bits(function(array, axis)) == expected, (axis, threads, width, layout)


def test_several_threads_have_several_parts():
    """The test above compares calls of one part with calls of several."""
    cf.set_num_threads(4)
    assert "parts=" in cf.compile("sum f32[1500,1100] axes=[1]").schedule
    cf.set_num_threads(1)
    assert "parts=" not in cf.compile("sum f32[1500,1100] axes=[1]").schedule


@pytest.mark.parametrize(
    "name", ["sum", "softmax", "log_softmax", "layer_norm", "rms_norm", "normalize", "vector_norm", "var", "mean", "logsumexp"]
)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_batches(name, dtype):
    """A row has the bits that it has alone, in a batch of any size."""
    function, x = REDUCTIONS[name], data((65, 300), dtype)
    whole = function(x, 1)
    for batch in range(1, 66):
        part = function(x[:batch], 1)
        assert bits(part) == bits(whole[:batch]), batch
        assert bits(function(np.asfortranarray(x[65 - batch :]), 1)) == bits(whole[65 - batch :]), batch


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std"])
@pytest.mark.parametrize("dtype", [*FLOATS, np.int16, np.uint8])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_an_all_true_mask_changes_no_bit(name, dtype, axis):
    function = getattr(cf, name)
    x = data((9, 200), np.float32)
    x = (x / 64).astype(dtype) if name == "prod" else x.astype(dtype)
    expected = bits(function(x, axis))
    for mask in (np.ones(x.shape, bool), np.ones(200, bool), np.ones((9, 1), bool), np.array(True)):
        assert bits(function(x, axis, where=mask)) == expected
    with_initial = cf.max(x, axis, initial=x.min(), where=np.ones(x.shape, bool))
    assert bits(with_initial) == bits(cf.max(x, axis))
    assert bits(getattr(cf, "nan" + name)(x, axis)) == expected


@pytest.mark.parametrize("ddof", [0, 1, 2.5])
def test_an_all_true_mask_of_a_long_slice(ddof):
    """Where n - 1 is no float32, and with several blocks and parts."""
    x = data((1 << 24) + 3, np.float32)
    assert bits(cf.var(x, ddof=ddof, where=np.array(True))) == bits(cf.var(x, ddof=ddof))
    x = data((700, 900), np.float32)
    for axis in (0, 1, None):
        for name in ("var", "std"):
            function = getattr(cf, name)
            assert bits(function(x, axis, ddof=ddof, where=np.ones(x.shape, bool))) == bits(function(x, axis, ddof=ddof))


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("kept", [0.02, 0.5, 0.999])
def test_a_masked_variance_is_as_exact_as_another(mean, kept):
    """Within the 64 additions of a lane, also where the mean is large beside the deviations and few elements are left."""
    random = np.random.default_rng(0)
    x = (random.standard_normal((20, 3000)) + mean).astype(np.float32)
    mask = random.random(x.shape) < kept
    expected = np.var(x.astype(np.float64), axis=1, ddof=1, where=mask)
    np.testing.assert_allclose(cf.var(x, 1, ddof=1, where=mask), expected, rtol=64 * 2.0**-24)
    np.testing.assert_allclose(cf.nanvar(np.where(mask, x, np.nan), 1, ddof=1), expected, rtol=64 * 2.0**-24)


def test_masked_variances_of_few():
    """One element is left, or fewer than ddof; infinities that are hidden and seen."""
    x = np.array([[1, 7, np.inf], [2, 4, 9], [3, 5, 5]], np.float32)
    mask = np.array([[True, True, False], [False, True, False], [False, False, False]])
    np.testing.assert_array_equal(cf.var(x, 1, where=mask), [9, 0, np.nan])
    np.testing.assert_array_equal(cf.var(x, 1, ddof=1, where=mask), [18, np.nan, np.nan])
    np.testing.assert_array_equal(cf.var(x, 1, ddof=2, where=mask), [np.inf, np.nan, np.nan])
    assert np.isnan(cf.var(x, where=x > 5)) and cf.std(x, where=x < 3) == 0.5
    huge = np.array([3e38, 3e38, -3e38, 1], np.float32)
    assert bits(cf.var(huge, where=np.ones(4, bool))) == bits(cf.var(huge))


def test_nothing_selected():
    x = data((4, 50), np.float32)
    none = np.zeros(x.shape, bool)
    assert bits(cf.sum(x, 1, where=none)) == bits(np.zeros(4, np.float32))
    assert bits(cf.prod(x, 1, where=none)) == bits(np.ones(4, np.float32))
    assert np.isnan(cf.mean(x, 1, where=none)).all()
    assert np.isnan(cf.var(x, 1, where=none)).all()
    assert bits(cf.max(x, 1, where=none, initial=-3)) == bits(np.full(4, -3, np.float32))
    assert not cf.any(x, 1, where=none).any() and cf.all(x, 1, where=none).all()


def test_a_mask_hides_its_elements():
    x = data((4, 50), np.float32)
    mask = np.random.default_rng(1).random(x.shape) < 0.5
    hidden = np.where(mask, x, np.nan)
    for name in ("sum", "prod", "mean", "var", "std"):
        function = getattr(cf, name)
        assert bits(function(hidden, 1, where=mask)) == bits(function(x, 1, where=mask)), name
        expected = getattr(np, name)(x.astype(np.float64), axis=1, where=mask)
        np.testing.assert_allclose(function(x, 1, where=mask), expected, rtol=2e-5)


def test_neighbours_change_nothing():
    """A zero-stride view and a broadcast copy have the same bits."""
    row = data((1, 300), np.float32)
    view = np.broadcast_to(row, (40, 300))
    assert bits(cf.sum(view, 0)) == bits(cf.sum(view.copy(), 0))
    assert bits(cf.var(view, (0, 1))) == bits(cf.var(view.copy(), (0, 1)))


def test_memory_order_has_bits_of_its_own():
    x = data((300, 200), np.float32)
    logical = cf.sum(x)
    assert bits(cf.sum(x.T.copy().T)) == bits(logical)
    assert bits(cf.sum(x, order="memory")) == bits(cf.sum(x.T, order="memory"))
    assert cf.sum(x.T.copy().T, order="memory") == pytest.approx(logical, rel=1e-3)
