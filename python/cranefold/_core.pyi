from typing import Any, final

from cranefold._types import Array, Axis, DTypeLike, Order

__all__ = [
    "FUNCTIONS",
    "Answer",
    "InternalError",
    "Kernel",
    "SpecError",
    "apply",
    "compile",
    "config",
    "fail",
    "get_num_threads",
    "reduce",
    "set_num_threads",
    "set_width",
]

FUNCTIONS: dict[str, int]

class SpecError(ValueError): ...
class InternalError(Exception): ...

@final
class Answer:
    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

@final
class Kernel:
    @property
    def spec(self) -> str: ...
    @property
    def schedule(self) -> str: ...
    @property
    def inputs(self) -> list[tuple[tuple[int, ...], str]]: ...
    @property
    def outputs(self) -> list[tuple[tuple[int, ...], str]]: ...
    @property
    def buffers(self) -> list[tuple[int, str]]: ...
    @property
    def bytes(self) -> int: ...
    def __call__(self, *inputs: Array, out: Any = None) -> Any: ...
    def explain(self) -> str: ...
    def dump(self, stage: str = "all", /) -> str: ...
    def _repr_html_(self) -> str: ...

def apply(
    function: int,
    x: Array,
    axis: Axis,
    keepdims: bool,
    order: Order,
    dtype: DTypeLike = None,
    out: Array | None = None,
    initial: Any = None,
    where: Array | None = None,
    parameter: float = 0.0,
    second: float = 2.0,
    skips_nan: bool = False,
    weight: Array | None = None,
    bias: Array | None = None,
    /,
) -> Any: ...
def compile(spec: str, /, *, schedule: str | None = None, width: int | None = None) -> Kernel: ...
def reduce(spec: str, /, *inputs: Array, out: Any = None, order: Order = "logical") -> Any: ...
def config() -> dict[str, Any]: ...
def fail() -> None: ...
def get_num_threads() -> int: ...
def set_num_threads(threads: int, /) -> None: ...
def set_width(bits: int, /) -> None: ...
