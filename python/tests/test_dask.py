"""Dask arrays: one set of bits from any chunks, that of the spec in memory."""

import warnings

import numpy as np
import pytest

import cranefold as cf

da = pytest.importorskip("dask.array", reason="dask is not installed")
cfd = pytest.importorskip("cranefold.dask")

OPS = [
    ("sum", (100_003,), 0), ("var", (5_000, 7), 0), ("argmax", (50_000,), 0), ("log_sum_exp", (6, 4_000), 1),
    ("mean,max", (3_000, 5), 0), ("sum", (300, 5, 40), (0, 2)), ("std", (40, 30, 20), None), ("min", (7, 1, 999), (0, 2)),
]


def array(shape, dtype=np.float32, seed=1):
    random = np.random.default_rng(seed)
    return (random.standard_normal(shape) * 10.0 ** random.integers(-3, 4, shape)).astype(dtype)


def expected(op, x, axis):
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis)
    text = f"{op} f32[{','.join(map(str, x.shape))}] axes=[{','.join(map(str, axes))}] order=logical"
    answer = cf.compile(text)(x)
    return answer if isinstance(answer, tuple) else (answer,)


def cuts(extent, random):
    bounds = sorted({0, extent, *random.integers(0, extent + 1, random.integers(0, 6)).tolist()})
    return tuple(np.diff(bounds).tolist())


@pytest.mark.parametrize(("op", "shape", "axis"), OPS)
def test_any_chunks_have_the_bits_of_the_whole(op, shape, axis):
    x, random = array(shape), np.random.default_rng(3)
    whole = expected(op, x, axis)
    first = 0 if axis is None else np.atleast_1d(axis)[0]
    reduced = set(range(x.ndim) if axis is None else np.atleast_1d(axis).tolist())
    for split_every in (2, 3, 8):
        chunks = tuple(cuts(n, random) if a == first or a not in reduced else n for a, n in enumerate(shape))
        answer = cfd.reduce(op, da.from_array(x, chunks=chunks), axis, split_every=split_every)
        answer = answer if isinstance(answer, tuple) else (answer,)
        for got, want in zip(answer, whole, strict=True):
            assert got.shape == np.shape(want) and got.dtype == np.asarray(want).dtype
            assert got.compute().tobytes() == np.asarray(want).tobytes(), chunks


def test_inner_chunks_are_brought_together_and_said_to_be():
    x = array((300, 5, 40))
    with pytest.warns(UserWarning, match=r"reduced axes \[2\] are brought together"):
        answer = cfd.sum(da.from_array(x, chunks=(7, 2, 11)), axis=(0, 2))
    assert answer.compute().tobytes() == expected("sum", x, (0, 2))[0].tobytes()


def test_tokens_are_deterministic_and_names_say_what_tasks_do():
    x = da.ones((1000, 3), chunks=(77, 2), dtype=np.float32)
    one, same, other = cfd.mean(x, 0), cfd.mean(x, 0), cfd.mean(x, 1)
    assert one.name == same.name != other.name
    assert any("cranefold-mean-shard" in str(key) for key in dict(one.dask))


def test_dims_stay_where_asked():
    x = array((60, 9))
    answer = cfd.max(da.from_array(x, chunks=(7, 4)), axis=0, keepdims=True)
    assert answer.shape == (1, 9) and answer.compute().tobytes() == x.max(0, keepdims=True).tobytes()


def test_bad_arguments_are_refused():
    x = da.ones((4, 4), chunks=2, dtype=np.float32)
    with pytest.raises(np.exceptions.AxisError):
        cfd.sum(x, axis=2)
    with pytest.raises(ValueError, match="twice"):
        cfd.sum(x, axis=(0, -2))
    with pytest.raises(ValueError, match="partial results"):
        cfd.reduce("median", x, axis=0)
    with pytest.raises(cf.SpecError):
        cfd.reduce("summ", x, axis=0)
    with pytest.raises(ValueError, match="split_every is 1"):
        cfd.reduce("sum", x, axis=0, split_every=1)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        cfd.sum(x[x > 0])


def test_workers_of_a_cluster_give_the_same_bits():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    x = array((200_000,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
            with distributed.Client(cluster):
                answer = cfd.var(da.from_array(x, chunks=33_333)).compute()
    assert answer.tobytes() == expected("var", x, 0)[0].tobytes()
