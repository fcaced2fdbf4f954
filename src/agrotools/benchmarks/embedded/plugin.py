"""Plug-ins of the packed benchmarks of drawn scenes."""

from functools import partial
from typing import Any

from agrotools.plugin import BenchmarkPlugin, deferred


def _plugin(name: str, about: str) -> BenchmarkPlugin:
    functions = {"load": "load_drawn", "find": "find_drawn", "file_roots": "drawn_roots"}
    room = "agrotools.benchmarks.embedded.load"
    files: dict[str, Any] = {
        part: partial(deferred(f"{room}:{function}"), name) for part, function in functions.items()
    }
    return BenchmarkPlugin(name=name, about=f"questions on drawn scenes that the tools of the package {about}", **files)


EMBEDDED = _plugin("embedded", "can answer, all agricultural tools")
FRONTIER = _plugin("frontier", "get wrong: what better tools would win")
