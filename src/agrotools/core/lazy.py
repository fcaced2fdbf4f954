"""What takes long to import or to make, and few commands need: numpy and scipy where they are used late, extras."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agrotools.core.errors import UsageError
from agrotools.core.texts import install_command

T = TypeVar("T")


class _Late:
    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._make(), name)
        setattr(self, name, value)
        return value


def late(make: Callable[[], T]) -> T:
    """Return what stands for an object that is made when it is first used; its attributes are those of the object.

    For what takes long to make and few commands need: large modules, regular expressions.
    """
    return cast(T, _Late(make))


special: Any = late(lambda: import_module("scipy.special"))
optimize: Any = late(lambda: import_module("scipy.optimize"))

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    SingleArray = NDArray[np.float32]
    IntArray = NDArray[np.int64]
    BoolArray = NDArray[np.bool_]
else:
    np = late(lambda: import_module("numpy"))
    FloatArray = SingleArray = IntArray = BoolArray = Any


def import_of_extra(module: str, extra: str, message: str) -> Any:
    """Import a module of an extra; UsageError with ``message`` if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(message, hint=install_command(extra)) from error


def arrow_and_parquet() -> tuple[Any, Any]:
    """Import ``pyarrow`` and ``pyarrow.parquet``; UsageError if they are not installed."""
    arrow, parquet = (
        import_of_extra(name, "build", "this needs pyarrow")
        for name in ("pyarrow", "pyarrow.parquet")
    )
    return arrow, parquet
