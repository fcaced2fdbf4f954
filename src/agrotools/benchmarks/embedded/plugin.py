"""Plug-ins of the packed benchmarks of drawn scenes."""

from agrotools.benchmarks.facts import loaders_of
from agrotools.plugin import BenchmarkPlugin


def _plugin(name: str, about: str) -> BenchmarkPlugin:
    loaders = loaders_of(
        name, "agrotools.benchmarks.embedded.load", load="load_drawn", find="find_drawn", file_roots="drawn_roots"
    )
    about = f"questions on drawn scenes that the tools of the package {about}"
    return BenchmarkPlugin(name=name, about=about, **loaders)


EMBEDDED = _plugin("embedded", "can answer, all agricultural tools")
FRONTIER = _plugin("frontier", "get wrong: what better tools would win")
