"""Arrays of torch and JAX: no copy in, their own kind out, the same bits as NumPy's."""

import numpy as np
import pytest

import cranefold as cf
from cranefold import _core

torch = pytest.importorskip("torch", reason="torch is not installed")
jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy

FUNCTIONS = ["sum", "prod", "mean", "var", "std", "max", "min", "argmax", "any", "all", "count_nonzero", "logsumexp"]
ELEMENTS = ["softmax", "log_softmax", "layer_norm", "rms_norm", "normalize"]


def data(shape=(37, 130), dtype=np.float32):
    random = np.random.default_rng(0)
    return (random.standard_normal(shape) * np.exp2(random.integers(-6, 7, shape))).astype(dtype)


def raw(array):
    return np.asarray(array).tobytes()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_same_bits(name, axis):
    x, function = data(), getattr(cf, name)
    expected = np.asarray(function(x, axis))
    tensor = torch.from_numpy(x.copy())
    for same in (tensor, tensor.t().contiguous().t(), tensor.repeat_interleave(2, 0)[::2], torch.from_numpy(x)):
        found = function(same, axis)
        assert isinstance(found, torch.Tensor) and found.shape == expected.shape
        assert raw(found) == raw(expected)
    with jax.enable_x64(True):
        found = function(jnp.asarray(x), axis)
        assert isinstance(found, jax.Array) and found.shape == expected.shape and found.dtype == expected.dtype
        assert raw(found) == raw(expected)


@pytest.mark.parametrize("name", ELEMENTS)
def test_same_bits_of_elements(name):
    x, function = data(), getattr(cf, name)
    expected = raw(function(x))
    found = function(torch.from_numpy(x))
    assert isinstance(found, torch.Tensor) and raw(found) == expected
    assert raw(function(torch.from_numpy(x.T.copy()).t())) == expected
    assert raw(function(jnp.asarray(x))) == expected


def tensors(x):
    """The values of an array as tensors of torch and arrays of JAX, in places that differ."""
    yield "torch", torch.from_numpy(x.copy())
    yield "torch, F", torch.from_numpy(x.T.copy()).t()
    yield "torch, slice", torch.from_numpy(x.copy()).repeat_interleave(2, 1)[:, ::2]
    yield "NumPy, reversed", np.flip(np.flip(x, 0).copy(), 0)
    yield "JAX", jnp.asarray(x)


@pytest.mark.parametrize("name", ["sum", "mean", "var", "argmax", "vector_norm", "logsumexp", *ELEMENTS])
@pytest.mark.parametrize("axis", [0, 1])
def test_same_bits_on_threads_and_widths(name, axis):
    """1, 2 and 4 threads x widths x libraries x layouts, of arrays with several parts."""
    x, function = data((600, 900)), getattr(cf, name)
    cf.set_num_threads(1)
    expected = raw(function(x, axis=axis))
    with jax.enable_x64(True):
        same = list(tensors(x))
        for threads in (1, 2, 4):
            for width in (128, 0):
                cf.set_num_threads(threads)
                _core.set_width(width)
                for kind, tensor in same:
                    assert raw(function(tensor, axis=axis)) == expected, (threads, width, kind)


@pytest.mark.parametrize("name", ["sum", "vector_norm", *ELEMENTS])
def test_batches(name):
    """A row has the bits that it has alone, in a batch of any size, in every library."""
    x, function = data((65, 300)), getattr(cf, name)
    whole = np.asarray(function(x, axis=1))
    tensor, array = torch.from_numpy(x), jnp.asarray(x)
    for batch in range(1, 66):
        assert raw(function(tensor[:batch], axis=1)) == whole[:batch].tobytes(), batch
        if batch % 8 == 1:
            assert raw(function(array[:batch], axis=1)) == whole[:batch].tobytes(), batch


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64"])
def test_dtypes(dtype):
    tensor = (torch.arange(12).reshape(3, 4) % 5).to(getattr(torch, dtype))
    total = cf.sum(tensor, 1)
    expected = {"bool": "int64", "int8": "int64", "int32": "int64", "uint8": "uint64"}.get(dtype, dtype)
    assert total.dtype == getattr(torch, expected)
    assert total.to(torch.float64).tolist() == tensor.to(torch.float64).sum(1).tolist()
    assert cf.max(tensor, 0).dtype == tensor.dtype
    assert cf.mean(tensor, dtype=torch.float64).dtype == torch.float64
    with jax.enable_x64(True):
        array = jnp.asarray((np.arange(12).reshape(3, 4) % 5), dtype=dtype)
        assert cf.sum(array, 1).dtype == expected
        assert cf.max(array, 0).dtype == array.dtype
        assert cf.mean(array, dtype=jnp.float32).dtype == jnp.float32


def test_jax_in_32_bits():
    """Without x64, JAX has no int64: sums of integers are refused by JAX or narrowed by it, never wrong."""
    array = jnp.arange(12, dtype=jnp.int32)
    found = cf.sum(array)
    assert int(found) == 66


def test_nothing_is_copied():
    tensor = torch.zeros(8)
    out = torch.zeros(())
    tensor[3] = 5
    assert cf.sum(tensor, out=out) is out and out == 5
    wide = torch.zeros(4, 6)
    cf.sum(torch.ones(3, 6), 0, out=wide[1])
    assert wide.sum() == 18 and wide[1].tolist() == [3.0] * 6
    assert cf.sum(torch.broadcast_to(torch.ones(1), (1 << 40,))[: 1 << 10]) == 1024


def test_scalars_and_empties():
    assert cf.sum(torch.tensor(3.0)).shape == () and cf.sum(torch.zeros(0)) == 0
    assert cf.softmax(torch.zeros(0, 3)).shape == (0, 3)
    assert cf.sum(jnp.zeros((0, 3)), 0).shape == (3,)


def test_several_outputs():
    total, most = cf.reduce("sum,max axes=[1]", torch.ones(3, 4))
    assert isinstance(total, torch.Tensor) and total.tolist() == [4.0] * 3 and most.tolist() == [1.0] * 3
    k = cf.compile("softmax f32[3,4] axes=[1]")
    assert k(torch.zeros(3, 4)).tolist() == [[0.25] * 4] * 3
    assert cf.quantile(torch.arange(5.0), [0.0, 0.5]).tolist() == [0.0, 2.0]
    out = torch.zeros(2)
    assert cf.quantile(torch.arange(5.0), [0.0, 0.5], None, out) is out and out.tolist() == [0.0, 2.0]
    assert cf.nanmedian(torch.tensor([[1.0, torch.nan], [3.0, 5.0]]), 1).tolist() == [1.0, 4.0]
    assert isinstance(cf.nanquantile(jnp.arange(5.0), 0.25), jax.Array)
    assert isinstance(cf.average(jnp.arange(4.0), weights=jnp.ones(4)), jax.Array)


def test_masks():
    x, mask = torch.arange(6.0), torch.tensor([True, False] * 3)
    assert cf.sum(x, where=mask) == 6 and cf.var(x, where=torch.ones(6, dtype=torch.bool)) == cf.var(x)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: torch.ones(3, requires_grad=True), r"requires gradients.*pass x.detach\(\)"),
        (lambda: torch.nn.Parameter(torch.ones(3)), "requires gradients"),
        (lambda: torch.ones(3, dtype=torch.complex64).conj(), r"conjugate view; pass x.resolve_conj\(\)"),
        (lambda: torch.ones(3, dtype=torch.complex64).conj().imag, r"negated view; pass x.resolve_neg\(\)"),
        (lambda: torch.ones(3, dtype=torch.complex64), "dtype torch.complex64 is not supported"),
        (lambda: torch.ones(3, dtype=torch.float8_e5m2), "float8"),
        (lambda: torch.eye(3).to_sparse(), "gives no tensor by DLPack"),
        (lambda: torch.ones(3, device="meta"), "DLPack|device"),
        (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8), "DLPack|dtype"),
        (lambda: jnp.ones(3, jnp.complex64), "dtype complex64"),
        (lambda: jax.random.key(0), "DLPack|dtype|no array"),
    ],
)
def test_refused(make, text):
    with pytest.raises(TypeError, match=text):
        cf.sum(make())


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda pandas: pandas.Series([1.0, 2.0]), r"Series is no array.*pass x.to_numpy\(\)"),
        (lambda pandas: pandas.DataFrame({"a": [1.0, 2.0]}), r"DataFrame is no array.*pass x.to_numpy\(\)"),
        (lambda pandas: pandas.Index([1.0, 2.0]), r"Index is no array.*pass x.to_numpy\(\)"),
        (lambda pandas: pandas.array([1, None], dtype="Int64"), r"IntegerArray is no array.*pass x.to_numpy\(\)"),
    ],
)
def test_pandas_is_refused(make, text):
    with pytest.raises(TypeError, match=text):
        cf.sum(make(pytest.importorskip("pandas", reason="pandas is not installed")))


@pytest.mark.parametrize("name", ["csr_matrix", "csc_array", "coo_array", "bsr_array"])
def test_sparse_arrays_are_refused(name):
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")
    with pytest.raises(TypeError, match=r"is no array.*pass x.toarray\(\)"):
        cf.sum(getattr(sparse, name)(np.eye(4)))


def test_tracers_are_refused():
    with pytest.raises(TypeError):
        jax.jit(cf.sum)(jnp.ones(3))


def test_devices():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    with pytest.raises(TypeError, match=r"on device \(2, 0\) of DLPack's, not on the CPU"):
        cf.sum(torch.ones(3, device="cuda"))


def test_memory_stays():
    """Answers are freed by the libraries that took them."""
    import resource

    tensor, array = torch.ones(512, 512), jnp.ones((512, 512))

    def work(calls):
        for _ in range(calls):
            cf.softmax(tensor)
            cf.softmax(array)
            with pytest.raises(ValueError, match="axis 7"):
                cf.sum(tensor, 7)

    work(50)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work(200)  # 400 MB of results
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
