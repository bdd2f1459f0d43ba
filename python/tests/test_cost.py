"""The cost of a call: small arrays beside NumPy, and memory over many calls."""

import resource
import timeit

import numpy as np

import cranefold as cf


def nanoseconds(call, number=5000):
    """The least time of a call over several rounds."""
    return min(timeit.repeat(call, number=number, repeat=9)) / number * 1e9


def test_a_warm_call_of_a_small_array():
    """An 8x8 sum takes less than NumPy's, in rounds beside it on the same machine, which is about 1.05 us."""
    x = np.ones((8, 8), np.float32)
    for axis in (None, 0, 1):
        ours, peer = nanoseconds(lambda: cf.sum(x, axis=axis)), nanoseconds(lambda: np.sum(x, axis=axis))
        assert ours < 0.95 * peer, f"{ours:.0f} ns, NumPy {peer:.0f} ns"


def test_memory_stays():
    """Results, plans and errors are freed."""
    x = np.ones((512, 512), np.float32)

    def work(calls):
        for _ in range(calls):
            cf.softmax(x)
            cf.sum(x, 0)
            cf.reduce("sum,max axes=[1]", x)
            try:
                cf.sum(x, 7)
            except ValueError:
                pass

    work(50)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work(400)  # 400 MB of results
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_more_shapes_than_a_table_holds():
    """Plans make room for one another."""
    x = np.arange(1500, dtype=np.float32)
    for _ in range(2):
        for n in range(1, 1500, 2):
            assert cf.max(x[:n]) == n - 1
