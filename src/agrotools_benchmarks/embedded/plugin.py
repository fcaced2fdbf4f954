"""Plug-ins of the packed benchmarks of drawn scenes."""

from agrotools.loading.contract import BenchmarkPlugin
from agrotools.loading.facts import loaders_of, plugin_of


def _plugin(name: str, about: str) -> BenchmarkPlugin:
    about = f"questions on drawn scenes that the tools of the package {about}"
    functions = {"load": "load_drawn", "find": "find_drawn", "roots": "drawn_roots"}
    return plugin_of(
        {"name": name, "about": about},
        **loaders_of(name, "agrotools_benchmarks.embedded.load", **functions),
    )


EMBEDDED = _plugin("embedded", "can answer, all agricultural tools")
FRONTIER = _plugin("frontier", "get wrong: what better tools would win")
