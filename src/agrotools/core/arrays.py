"""numpy and scipy, imported when they are first used: most commands need neither, and both take long to import."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agrotools.core.base import late

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
