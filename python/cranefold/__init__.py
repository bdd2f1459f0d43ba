"""Reductions of arrays with one answer.

The same values of the same shape give the same bits: in C or Fortran order, sliced, transposed or reversed, on one thread
or many, on any machine. The functions have the names of NumPy and of the array API, take arrays of NumPy, torch (CPU), JAX
(CPU) and anything with DLPack or the buffer protocol, copy nothing, and answer in the kind of array they got.

>>> import cranefold as cf, numpy as np
>>> x = np.arange(6, dtype=np.float32).reshape(2, 3)
>>> cf.sum(x, axis=1)
array([ 3., 12.], dtype=float32)
>>> cf.sum(np.asfortranarray(x), axis=1).tobytes() == cf.sum(x, axis=1).tobytes()
True
"""

from cranefold import linalg
from cranefold._core import InternalError, Kernel, SpecError
from cranefold._functions import (
    all,
    any,
    argmax,
    argmin,
    average,
    count_nonzero,
    layer_norm,
    log_softmax,
    logsumexp,
    max,
    mean,
    median,
    min,
    nanargmax,
    nanargmin,
    nanmax,
    nanmean,
    nanmedian,
    nanmin,
    nanprod,
    nanquantile,
    nanstd,
    nansum,
    nanvar,
    normalize,
    prod,
    ptp,
    quantile,
    rms_norm,
    softmax,
    std,
    sum,
    var,
    vector_norm,
)
from cranefold._kernels import compile, reduce
from cranefold._settings import get_num_threads, set_num_threads, show_config

__version__: str = show_config(stream=None)["version"]

__all__ = [
    "InternalError",
    "Kernel",
    "SpecError",
    "__version__",
    "all",
    "any",
    "argmax",
    "argmin",
    "average",
    "compile",
    "count_nonzero",
    "get_num_threads",
    "layer_norm",
    "linalg",
    "log_softmax",
    "logsumexp",
    "max",
    "mean",
    "median",
    "min",
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "normalize",
    "prod",
    "ptp",
    "quantile",
    "reduce",
    "rms_norm",
    "set_num_threads",
    "show_config",
    "softmax",
    "std",
    "sum",
    "var",
    "vector_norm",
]
