"""Wrong arguments: the class and the text of each exception."""

import array

import ml_dtypes
import numpy as np
import pytest

import cranefold as cf
from cranefold import _core

X = np.arange(12, dtype=np.float32).reshape(3, 4)


class Frame:
    """A table that gives its values only when asked."""

    def to_numpy(self):
        return X


class Sparse:
    def toarray(self):
        return X


class Elsewhere:
    """An array on a GPU."""

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **given):
        raise AssertionError("the device is asked first")


class Broken:
    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **given):
        raise BufferError("no")


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def strided(shape, strides):
    """A writable array whose elements share memory."""
    return np.lib.stride_tricks.as_strided(np.zeros(16, np.float32), np.atleast_1d(shape), np.atleast_1d(strides))


CASES = [
    # The array.
    (lambda: cf.sum(np.array([1, None])), TypeError, "dtype object is not supported; the dtypes are bool, int8 to"),
    (lambda: cf.sum(np.array(["2020"], "M8[D]")), TypeError, "dtype datetime64"),
    (lambda: cf.sum(np.array([1], "m8[s]")), TypeError, "dtype timedelta64"),
    (lambda: cf.sum(np.array([1j])), TypeError, "dtype complex128"),
    (lambda: cf.sum(np.array(["a"])), TypeError, "dtype <U1"),
    (lambda: cf.sum(np.array([b"a"])), TypeError, "dtype"),
    (lambda: cf.sum(np.zeros(2, [("a", "f4"), ("b", "i8")])), TypeError, "dtype"),
    (lambda: cf.sum(np.zeros(2, np.longdouble)), TypeError, "dtype (float128|longdouble|float64)"),
    (lambda: cf.sum(np.zeros(2, ml_dtypes.float8_e4m3fn)), TypeError, "dtype float8_e4m3fn"),
    (lambda: cf.sum(np.zeros(2, ">f4")), TypeError, "byte order of another machine; pass x.astype"),
    (lambda: cf.sum(np.ma.masked_array([1, 2], [True, False])), TypeError, "pass x.data and where=~x.mask"),
    (lambda: cf.sum(np.asmatrix([[1, 2]])), TypeError, r"numpy.matrix is not supported; pass numpy.asarray\(x\)"),
    (lambda: cf.sum(Frame()), TypeError, r"Frame is no array.*pass x.to_numpy\(\)"),
    (lambda: cf.sum(Sparse()), TypeError, r"Sparse is no array.*pass x.toarray\(\)"),
    (lambda: cf.sum(object()), TypeError, "object is no array: it has neither DLPack nor the buffer protocol"),
    (lambda: cf.sum("text"), TypeError, "str is no array"),
    (lambda: cf.sum({1, 2}), TypeError, "set is no array"),
    (lambda: cf.sum(None), TypeError, "NoneType is no array"),
    (lambda: cf.sum([1, "a"]), TypeError, "dtype <U"),
    (lambda: cf.sum([[1, 2], [3]]), ValueError, "inhomogeneous"),
    (lambda: cf.sum(1j), TypeError, "dtype complex128"),
    (lambda: cf.sum(Elsewhere()), TypeError, r"device \(2, 0\) of DLPack's, not on the CPU"),
    (lambda: cf.sum(Broken()), TypeError, "Broken gives no tensor by DLPack: no"),
    (lambda: cf.sum(np.zeros(3, "i1,f4")["f1"]), ValueError, "a stride of 5 bytes is no whole number of float32"),
    # Axes.
    (lambda: cf.sum(X, 2), np.exceptions.AxisError, "axis 2 is out of range for rank 2"),
    (lambda: cf.sum(X, -3), ValueError, "axis -3 is out of range for rank 2"),
    (lambda: cf.sum(np.float32(1), 0), IndexError, "axis 0 is out of range for rank 0"),
    (lambda: cf.sum(X, (0, 0)), ValueError, r"axis 0 is listed twice in \(0, 0\)"),
    (lambda: cf.sum(X, (1, -1)), ValueError, "axis -1 is listed twice"),
    (lambda: cf.sum(X, 1.0), TypeError, "axis is 1.0, not an integer, a tuple of integers or None"),
    (lambda: cf.sum(X, "1"), TypeError, "axis is '1', not an integer"),
    (lambda: cf.sum(X, (0, 0.5)), TypeError, "axis is 0.5, not an integer"),
    (lambda: cf.sum(X, [0]), TypeError, r"axis is \[0\], not an integer, a tuple"),
    (lambda: cf.sum(X, 1 << 70), IndexError, "axis 1180591620717411303424 is out of range for rank 2"),
    # Nothing.
    (lambda: cf.max(X[:0]), ValueError, r"max of nothing: .*\[0, 4\] have no element and no initial= is given"),
    (lambda: cf.argmin(X[:, :0], 1), ValueError, "argmin of nothing"),
    (lambda: cf.ptp(X[:0], 0), ValueError, "ptp of nothing"),
    (lambda: cf.max(X, where=X > 0), ValueError, "max with where= needs initial="),
    (lambda: cf.nanmax(X[:0]), ValueError, "max of nothing"),
    (lambda: cf.nanmin(np.zeros((2, 0), np.int8), 1), ValueError, "min of nothing"),
    (lambda: cf.nanmin(X, where=X > 0), ValueError, "min with where= needs initial="),
    (lambda: cf.nanargmax(X * np.nan), ValueError, "nanargmax of nothing: a slice has no element but NaN"),
    # Masks, initials and outputs.
    (lambda: cf.sum(X, where=X), TypeError, "where is float32, not bool"),
    (lambda: cf.var(X, where=X), TypeError, "where is float32, not bool"),
    (lambda: cf.sum(X, where=np.ones(3, bool)), ValueError, r"where of shape \[3\] does not broadcast to shape \[3, 4\]"),
    (lambda: cf.std(X, where=np.ones(3, bool)), ValueError, r"where of shape \[3\] does not broadcast"),
    (lambda: cf.sum(X[0], where=np.ones((3, 4), bool)), ValueError, "does not broadcast"),
    (lambda: cf.sum(X, initial="a"), TypeError, "initial: must be real number, not str"),
    (lambda: cf.max(X.astype(np.int8), initial=300), OverflowError, "initial: "),
    (lambda: cf.max(X.astype(np.int8), initial=0.5), TypeError, "initial: .*float"),
    (lambda: cf.sum(X, 0, out=np.zeros(3, np.float32)), ValueError, r"out has shape \[3\], .* has shape \[4\]"),
    (lambda: cf.sum(X, 0, out=np.zeros((1, 4), np.float32)), ValueError, r"out has shape \[1, 4\]"),
    (lambda: cf.sum(X, 0, out=np.zeros(4)), TypeError, "out is float64, and the result is float32"),
    (lambda: cf.sum(X, 0, out=read_only(X[0])), ValueError, "out is read-only"),
    (lambda: cf.sum(X, 0, out=X[0]), ValueError, "out shares memory with an array that is read"),
    (lambda: cf.softmax(X, out=X), ValueError, "out shares memory"),
    (lambda: cf.sum(X, 0, out=strided(4, 0)), ValueError, "out has stride 0 along axis 0, where 4 results would go to"),
    (lambda: cf.softmax(X, out=strided((3, 4), (4, 4))), ValueError, "write one element"),
    (lambda: cf.sum(X, 0, out=np.broadcast_to(np.float32(0), (4,))), ValueError, ""),
    (lambda: cf.sum(X, 0, out=[0, 0, 0, 0]), TypeError, "out is int64"),
    (lambda: cf.sum(X.astype(float), 0, out=[0.0, 0, 0, 0]), TypeError, "out is no array"),
    (lambda: cf.sum(X, out=np.float32(0)), TypeError, "out is no array"),
    (lambda: cf.compile("sum f32[3,4]")(X, out=np.float32(0)), TypeError, "out is no array"),
    # Dtypes and parameters.
    (lambda: cf.sum(X, dtype=complex), TypeError, "dtype complex is not supported|dtype <class 'complex'>"),
    (lambda: cf.sum(X, dtype="f7"), TypeError, "dtype f7 is not supported"),
    (lambda: cf.sum(X, dtype=np.dtype(">f4")), TypeError, "dtype >f4 is not supported"),
    (lambda: cf.sum(X, dtype=bool), TypeError, "dtype=bool is refused for sum: the result is a number"),
    (lambda: cf.mean(X, dtype=int), TypeError, "dtype=int64 is refused for mean: the result is a float"),
    (lambda: cf.quantile(X, float("nan")), ValueError, "q must be between 0 and 1, NaN given"),
    (lambda: cf.quantile(X, 1.5), ValueError, "q must be between 0 and 1, 1.5 given"),
    (lambda: cf.quantile(X, []), ValueError, "q has no element"),
    (lambda: cf.quantile(X, [0.5, float("nan")], 1, np.zeros((2, 3), np.float32)), ValueError, "NaN given"),
    (lambda: cf.quantile(X, [0.5, 1], 1, np.zeros((3, 3), np.float32)), ValueError, r"out has shape \[3, 3\], .* \[2, 3\]"),
    (lambda: cf.quantile(X, [0.5, 1], 1, np.zeros((2, 3))), TypeError, "out is float64, and the result is float32"),
    (lambda: cf.nanquantile(X, float("nan")), ValueError, "q must be between 0 and 1, NaN given"),
    (lambda: cf.nanquantile(X, -0.1, 0), ValueError, "q must be between 0 and 1, -0.1 given"),
    (lambda: cf.sum(X, dtype="i8"), TypeError, "dtype i8 has 64 bits in NumPy and 8 in specs; pass the long name"),
    (lambda: cf.sum(X, 0, keepdims="a"), TypeError, "keepdims is 'a', not a bool"),
    (lambda: cf.sum(X, order=None), TypeError, "order is None, not a string"),
    (lambda: cf.sum(X, (0,) * 5000), ValueError, "axis 0 is listed twice$"),
    (lambda: cf.sum(X, initial=np.ones(2)), TypeError, "initial: only"),
    (lambda: cf.sum(X, out="text"), TypeError, "out: str is no array"),
    (lambda: cf.sum(X, where="text"), TypeError, "where: str is no array"),
    (lambda: cf.vector_norm(X, ord="fro"), TypeError, "ord: must be real number, not str"),
    (lambda: cf.normalize(X, ord="fro"), TypeError, "ord: must be real number, not str"),
    (lambda: cf.layer_norm(X, eps="a"), TypeError, "eps: must be real number, not str"),
    (lambda: cf.layer_norm(X, np.ones(4, complex)), TypeError, "weight: dtype complex128 is not supported"),
    (lambda: cf.average(X, weights=np.ones(5)), ValueError, r"weights of shape \[5\] does not broadcast"),
    (lambda: cf.average(X, weights="text"), TypeError, "weights: str is no array"),
    (lambda: cf.quantile(X, "a"), TypeError, "q is 'a', not a number or numbers along one axis"),
    (lambda: cf.quantile(X, None), TypeError, "q is None, not a number"),
    (lambda: cf.quantile(X, 0.5, method=[]), ValueError, r"method is \[\]; the methods are"),
    (lambda: cf.quantile(X, 0.5, method="best"), ValueError, "method is 'best'; the methods are linear, lower, higher"),
    (lambda: cf.nanquantile(X, 0.5, method="best"), ValueError, "method is 'best'"),
    (lambda: cf.quantile(X, float("nan"), method="lower"), ValueError, "q must be between 0 and 1, NaN given"),
    (lambda: cf.nanmedian(X, 2), ValueError, "axis 2 is out of range for rank 2"),
    (lambda: cf.nanmedian(X, 0, out=np.zeros(3, np.float32)), ValueError, r"out has shape \[3\], .* has shape \[4\]"),
    (lambda: cf.nanmedian(X, 0, out=np.zeros(4)), TypeError, "out is float64, and the result is float32"),
    (lambda: cf.nanmedian(X, 0, out=X[0]), ValueError, "out shares memory"),
    (lambda: cf.nanmedian(X, 0, out=read_only(X[0])), ValueError, "out is read-only"),
    (lambda: cf.nanmedian(X, order="C"), ValueError, 'order is "C"'),
    (lambda: cf.vector_norm(X, ord=float("nan")), ValueError, "ord is NaN"),
    (lambda: cf.quantile(X, np.ones((1, 2))), ValueError, "q has 2 axes; it is a number, or numbers along one axis"),
    (lambda: cf.vector_norm(X, ord=1e300), ValueError, "ord is 1e300, beyond the greatest float32, 3.4028234"),
    (lambda: cf.vector_norm(X, ord=1e-300), ValueError, "ord is 1e-300, and 1 / ord is beyond the greatest float32"),
    (lambda: cf.var(X, ddof=-1), ValueError, r"ddof must be between 0 and 3.4\d*e38, -1.0 given"),
    (lambda: cf.std(X, ddof=float("nan")), ValueError, "ddof must be between 0 and .*, NaN given"),
    (lambda: cf.nanvar(X, ddof=1e300), ValueError, "ddof must be between 0 and .*, 1e300 given"),
    (lambda: cf.var(X, ddof=1, correction=2), ValueError, "ddof=1 and correction=2 are two names of one argument"),
    (lambda: cf.var(X, ddof="1"), TypeError, "ddof: must be real number, not str"),
    (lambda: cf.layer_norm(X, eps=float("nan")), ValueError, "eps is NaN"),
    (lambda: cf.rms_norm(X, eps=-1e300), ValueError, "eps is -1e300, beyond the greatest float32"),
    (lambda: cf.normalize(X, eps=float("nan")), ValueError, "eps is NaN"),
    (lambda: cf.normalize(X, ord=float("nan")), ValueError, "ord is NaN"),
    (lambda: cf.ptp(X > 0), TypeError, "ptp of bool is refused"),
    (lambda: cf.sum(X, order="C"), ValueError, 'order is "C", not "logical" or "memory"'),
    (lambda: cf.layer_norm(X, np.ones(3)), ValueError, r"weight of shape \[3\] does not broadcast"),
    (lambda: cf.layer_norm(X, None, np.ones(3)), ValueError, r"(weight|bias) of shape \[3\] does not broadcast"),
    (lambda: cf.average(X, weights=np.zeros(X.shape)), ZeroDivisionError, "the weights of a slice sum to 0"),
    (lambda: cf.set_num_threads(5000), ValueError, "5000 threads are above the limit of 4096"),
    (lambda: cf.set_num_threads(-1), OverflowError, ""),
    (lambda: _core.set_width(100), ValueError, "vectors of 100 bits"),
    # Specs.
    (lambda: cf.compile("sum f32[2,3] axes=[2]"), cf.SpecError, "axis 2 is out of range for rank 2"),
    (lambda: cf.compile("frobnicate f32[2]"), cf.SpecError, "unknown op `frobnicate`"),
    (lambda: cf.compile("region x:f32[2] { y = x; sum(z) }"), cf.SpecError, r"unknown name `z`(.|\n)*\n +\^"),
    (lambda: cf.compile("sum f32[8]", schedule="jam=x"), ValueError, ""),
    (lambda: cf.compile("sum f32[8]", width=7), ValueError, "width"),
    (lambda: cf.compile(7), TypeError, ""),
    (lambda: cf.reduce("sum axes=[5]", X), cf.SpecError, "axis 5 is out of range"),
    (lambda: cf.reduce("sum"), TypeError, "takes at least one array, and 0 scalars"),
    (lambda: cf.reduce("region x, y axes=[1] { sum(x + y) }", X), ValueError, "the region names 2 operands, 1 are given"),
    (lambda: cf.reduce("sum", X, order="F"), ValueError, 'order is "F"'),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_bad_input(case):
    call, kind, text = CASES[case]
    with pytest.raises(kind, match=text or None):
        call()


KERNEL = cf.compile("sum,max f32[3,4] axes=[1]")
KERNEL_CASES = [
    (lambda: KERNEL(), TypeError, "0 inputs are given, the kernel takes 1"),
    (lambda: KERNEL(X, X), TypeError, "2 inputs are given"),
    (lambda: KERNEL(X.astype(np.float64)), TypeError, "input 0 is float64, the kernel takes float32"),
    (lambda: KERNEL(X.reshape(4, 3)), ValueError, r"input 0 has shape \[4, 3\], the kernel takes \[3,4\]"),
    (lambda: KERNEL(np.asfortranarray(X)), ValueError, r"input 0 has strides \[1, 3\], the kernel takes \[4, 1\]"),
    (lambda: KERNEL(X, out=np.zeros(3, np.float32)), TypeError, "1 outputs are given, the kernel has 2"),
    (lambda: KERNEL(X, out=(np.zeros(3, np.float32), np.zeros(3))), TypeError, "output 1 is float64"),
    (lambda: KERNEL(X, out=(np.zeros(3, np.float32),) * 2), TypeError, ""),
    (lambda: KERNEL(X, out=(read_only(X[:, 0]), np.zeros(3, np.float32))), ValueError, "out is read-only"),
    (lambda: KERNEL.dump("none"), ValueError, "`none` is no stage; the stages are"),
]


@pytest.mark.parametrize("case", [k for k in range(len(KERNEL_CASES)) if k != 7])
def test_bad_calls_of_kernels(case):
    call, kind, text = KERNEL_CASES[case]
    with pytest.raises(kind, match=text or None):
        call()


def test_one_output_given_twice():
    out = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match="out shares memory"):
        KERNEL(X, out=(out, out))


def test_nothing_is_written_by_a_wrong_call():
    out = np.full(4, 9, np.float32)
    for wrong in (lambda: cf.sum(X, 1, out=out), lambda: cf.sum(X, 0, out=out, where=X)):
        with pytest.raises((TypeError, ValueError)):
            wrong()
    assert (out == 9).all()


def test_panics_are_internal_errors():
    with pytest.raises(cf.InternalError, match="this is a bug in cranefold: a panic on purpose\nplease report"):
        _core.fail()


def test_what_is_an_array():
    """Everything with a buffer or an interface goes in; answers are NumPy's."""
    numbers = array.array("d", [1, 2, 3])
    assert cf.sum(numbers) == 6 and isinstance(cf.sum(numbers), np.float64)
    assert cf.sum(memoryview(numbers)[::2]) == 4
    assert cf.sum(bytearray([1, 2, 255])) == 258 and cf.sum(bytes([1, 2])).dtype == np.uint64
    assert cf.sum([1, 2, 3]) == 6 and cf.sum((1.5, 2)) == 3.5 and cf.sum(True) == 1 and cf.sum(2.5) == 2.5
    assert cf.sum(np.float32(2)) == 2 and cf.sum(np.int8(2)).dtype == np.int64

    class Interface:
        __array_interface__ = X.__array_interface__

    assert cf.sum(Interface()) == 66
    memory = np.memmap
    assert issubclass(memory, np.ndarray)
    assert cf.sum(X.view(np.recarray)) == 66


def test_empty_arrays_without_memory():
    for shape in ((0,), (0, 3), (3, 0), (2, 0, 3)):
        x = np.zeros(shape, np.float32)
        np.testing.assert_array_equal(cf.sum(x, -1), np.sum(x, -1))
        assert cf.sum(x) == 0 and cf.prod(x) == 1 and np.isnan(cf.mean(x)) and cf.softmax(x).shape == shape
        assert cf.sum(x, where=np.ones(shape, bool)) == 0 and cf.any(x) == np.False_ and cf.all(x)
