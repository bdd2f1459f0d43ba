"""Threads, and processes that fork."""

import multiprocessing
import os
import sys
import sysconfig
import threading
import time

import numpy as np
import pytest

import cranefold as cf

SHAPE = (1500, 1100)


def data(seed=0):
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)


def results():
    """Bits of reductions of several parts, of one part, and of a kernel that is compiled anew."""
    x = data()
    fresh = cf.reduce(f"sum map='x0 * {os.getpid() % 97 + 1}'", x) / (os.getpid() % 97 + 1)
    assert np.isfinite(fresh)
    return [cf.sum(x).tobytes(), cf.sum(x, 1).tobytes(), cf.var(x, 0).tobytes(), cf.sum(x[:8, :8]).tobytes()]


def child(queue):
    queue.put(results())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is Unix's")
@pytest.mark.parametrize("generations", [1, 2])
def test_fork(generations):
    """Work of several parts in the parent, in its children, and in theirs."""
    cf.set_num_threads(4)
    assert "parts=" in cf.compile("sum f32[1500,1100] axes=[1]").schedule
    expected = results()
    context = multiprocessing.get_context("fork")

    def run(queue, left):
        if left > 1:
            inner = context.Process(target=run, args=(queue, left - 1))
            inner.start()
            inner.join(60)
            assert inner.exitcode == 0
        for _ in range(3):
            found = results()
        queue.put(found)

    queue = context.SimpleQueue()
    children = [context.Process(target=run, args=(queue, generations)) for _ in range(2)]
    for process in children:
        process.start()
    for process in children:
        process.join(60)
        assert process.exitcode == 0, "the child hangs or fails"
    for _ in range(2 * generations):
        assert queue.get() == expected
    assert results() == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is Unix's")
def test_fork_while_other_threads_reduce():
    """A child that is made in the midst of calls and compilations of other threads."""
    cf.set_num_threads(2)
    expected, stop = results(), threading.Event()

    def work(seed):
        x, n = data(seed), 0
        while not stop.is_set():
            n += 1
            cf.sum(x)
            cf.reduce(f"sum axes=[1] map='x0 * {seed}{n}'", x[:8])

    workers = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for worker in workers:
        worker.start()
    context = multiprocessing.get_context("fork")
    try:
        for _ in range(5):
            queue = context.SimpleQueue()
            process = context.Process(target=child, args=(queue,))
            process.start()
            process.join(60)
            assert process.exitcode == 0, "the child hangs or fails"
            assert queue.get() == expected
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def test_spawned_processes():
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    process.join(120)
    assert process.exitcode == 0 and queue.get() == results()


def test_calls_from_many_threads():
    """Threads share no table; each has the same answers, of small and of large arrays."""
    expected, wrong = results(), []

    def work():
        for _ in range(3):
            if results() != expected:
                wrong.append(threading.get_ident())

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_no_lock_of_the_interpreter():
    """In a free-threaded Python the package leaves the lock off; a module that does not say so turns it on."""
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this Python has the lock")
    assert not sys._is_gil_enabled()


def test_other_threads_run_meanwhile():
    """A call of much work lets other Python threads run: they count while it works."""
    cf.set_num_threads(1)
    x = np.random.default_rng(0).standard_normal(4_000_000)
    cf.median(x[:4000])
    counts, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counts[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    try:
        before = counts[0]
        for _ in range(20):
            cf.logsumexp(x)
        assert counts[0] - before > 1000
    finally:
        stop.set()
        counter.join()


def counted(call, calls, seconds):
    """How often a thread that only yields runs during warm calls of a thread that gives the lock up for nothing else."""
    before, counts, stop = sys.getswitchinterval(), [0], threading.Event()

    def count():
        while not stop.is_set():
            counts[0] += 1
            time.sleep(0)

    for _ in range(8):
        call()
    counter = threading.Thread(target=count)
    sys.setswitchinterval(seconds)
    try:
        counter.start()
        while counts[0] == 0:
            time.sleep(0.001)
        start = counts[0]
        for _ in range(calls):
            call()
            if counts[0] > start:
                break
        return counts[0] - start
    finally:
        sys.setswitchinterval(before)
        stop.set()
        counter.join()


@pytest.mark.skipif(bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="this Python has no lock to give up")
@pytest.mark.parametrize("name", ["normalize", "masked var", "kernel", "sum"])
def test_the_lock_is_given_up_by_the_work_of_a_call(name):
    """Calls of some 50 us give it up, over few bytes too; those under a microsecond keep it."""
    cf.set_num_threads(1)
    x = np.random.default_rng(0).standard_normal((600, 240)).astype(np.float32)
    mask, kernel = x > 0, cf.compile("median f32[60,120] axes=[1]")
    call = {
        "normalize": lambda: cf.normalize(x, ord=3),
        "masked var": lambda: cf.var(x, 0, where=mask),
        "kernel": lambda: kernel(x[:60, :120].copy()),
        "sum": lambda: cf.sum(x[:8, :8]),
    }[name]
    # The interpreter itself would take the lock away after these seconds.
    found = counted(call, 2000, 60)
    assert (found == 0) == (name == "sum")


def test_settings_of_threads():
    cf.set_num_threads(3)
    assert cf.get_num_threads() == 3
    cf.set_num_threads(0)
    assert cf.get_num_threads() == (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())


def test_settings_come_back():
    """Threads that were set before are not started anew."""
    x = data()
    expected = cf.sum(x).tobytes()
    before = None
    for turn in range(20):
        for threads in (2, 3):
            cf.set_num_threads(threads)
            assert cf.sum(x).tobytes() == expected
        count = len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 0
        before = before or count
        assert count == before
