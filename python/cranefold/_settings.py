"""Threads, and the facts of this build."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from cranefold import _core

_STDOUT: Any = object()


def get_num_threads() -> int:
    """The number of threads that a call uses at most; by default the processors of the affinity mask.

    >>> import cranefold as cf
    >>> cf.get_num_threads() >= 1
    True
    """
    return _core.get_num_threads()


def set_num_threads(threads: int, /) -> None:
    """Sets the number of threads of all calls of this process; 0 is the default. No result depends on it.

    Raises
    ------
    ValueError above 4096, OverflowError below 0.

    Examples
    --------
    >>> import cranefold as cf
    >>> cf.set_num_threads(2)
    >>> cf.get_num_threads()
    2
    >>> cf.set_num_threads(0)
    """
    _core.set_num_threads(threads)


def show_config(stream: TextIO | None = _STDOUT) -> dict[str, Any]:
    """Prints the version, the target of the code, the bits of its vectors, the threads, and the number of the rules that
    the bits of results follow; returns them as a dict. With `stream=None` it prints nothing.

    >>> import cranefold as cf
    >>> sorted(cf.show_config(stream=None))
    ['kernels', 'processors', 'results_version', 'target', 'threads', 'vector_bits', 'version']
    """
    facts = _core.config()
    if stream is not None:
        lines = [f"{name:<16} {value}\n" for name, value in facts.items()]
        (sys.stdout if stream is _STDOUT else stream).write("".join(lines))
    return facts
