"""The tools by name, each imported on first use.

    from agrotools.tools import measure_crop_weed_area
    area = measure_crop_weed_area("field.jpg")

:func:`agrotools.calling.get_tool` returns a tool whose name is known only at run time, also one of another package.
"""

from typing import Any

from agrotools.calling import get_tool
from agrotools.tools.table import AGROTOOLS, GENERAL_TOOLS, TARGETS


def __getattr__(name: str) -> Any:
    if name in TARGETS:
        return get_tool(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *TARGETS})


__all__ = ["AGROTOOLS", "GENERAL_TOOLS", *TARGETS]
