"""Kernels of specs and regions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranefold import _core

if TYPE_CHECKING:
    from cranefold._types import Array, Order


def compile(spec: str, /, *, schedule: str | None = None, width: int | None = None) -> _core.Kernel:
    """The kernel of a spec or region, whose text says shapes and strides; `docs/specs.md` has the language.

    A call `k(x, out=None)` takes an array for each input and a number for each scalar. An array has the shape and strides
    of its operand, or is the operand's whole buffer as an array of one axis. Several outputs are a tuple. The order of
    accumulation is that of the text, `order=memory` unless it says `order=logical`.

    `schedule` forces the schedule, `width` the bits of the widest vector; no result depends on them.

    Raises
    ------
    SpecError for a wrong text, ValueError for a schedule that does not fit.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> k = cf.compile("max,argmax f32[2,3] axes=[1]")
    >>> k(np.array([[1, 5, 2], [9, 7, 8]], dtype=np.float32))
    (array([5., 9.], dtype=float32), array([1, 0]))
    >>> k.outputs
    [((2,), 'float32'), ((2,), 'int64')]
    >>> print(k.explain().splitlines()[0])
    max, argmax f32[2,3] axes=[1]
    """
    return _core.compile(spec, schedule=schedule, width=width)


def reduce(spec: str, /, *inputs: Array, out: Any = None, order: Order = "logical") -> Any:
    """Reduces arrays by a spec or region without operands, whose types, shapes and strides are those of the arrays.

    The arrays are `x0`, `x1` and so on, or have the names that stand after the word `region`. Numbers for the scalars of
    the text follow the arrays. `order` counts unless the text says `order=` itself.

    Raises
    ------
    SpecError for a wrong text, TypeError and ValueError for wrong arrays.

    Examples
    --------
    >>> import cranefold as cf, numpy as np
    >>> x = np.array([[1.0, 2.0], [3.0, 5.0]])
    >>> cf.reduce("sum,max axes=[1]", x)
    (array([3., 8.]), array([2., 5.]))
    >>> cf.reduce("sum axes=[0] map='x0*x1'", x, x)
    array([10., 29.])
    >>> cf.reduce("region x axes=[1] scalar eps:f64 { x / (sum(x) + eps) }", x, 1.0)
    array([[0.25      , 0.5       ],
           [0.33333333, 0.55555556]])
    """
    return _core.reduce(spec, *inputs, out=out, order=order)
