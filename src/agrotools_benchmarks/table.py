"""Plug-ins of the benchmarks that ship with the package, and the slot types that their metrics apply to."""

from agrotools.packages import BuiltIn, PackageTable

_HERE = __name__.rpartition(".")[0]

_BENCHMARKS = {
    "embedded": BuiltIn(f"{_HERE}.embedded.plugin:EMBEDDED"),
    "frontier": BuiltIn(f"{_HERE}.embedded.plugin:FRONTIER"),
    "field": BuiltIn(f"{_HERE}.field.plugin:PLUGIN"),
    "agrotools": BuiltIn(f"{_HERE}.released.plugin:PLUGIN"),
    "agrieval": BuiltIn(
        f"{_HERE}.agrieval.plugin:AGRIEVAL", frozenset({"options", "reference_text"})
    ),
    "cmmlu-agronomy": BuiltIn(f"{_HERE}.agrieval.plugin:CMMLU_AGRONOMY"),
    "agvqa": BuiltIn(f"{_HERE}.agvqa.plugin:OWN_FILE"),
    **{
        name: BuiltIn(f"{_HERE}.agvqa.plugin:SETS.{name.replace('-', '_')}")
        for name in ("agrobench", "agmmu", "agromind", "mirage", "mirage-mmst")
    },
    "gta": BuiltIn(f"{_HERE}.gta.plugin:PLUGIN"),
    "thinkgeo": BuiltIn(f"{_HERE}.thinkgeo.plugin:PLUGIN", frozenset({"keywords"})),
    "agent-x": BuiltIn(
        f"{_HERE}.agent_x.plugin:PLUGIN", frozenset({"keywords", "reference_texts", "image_calls"})
    ),
}

TABLE = PackageTable(
    package=_HERE,
    benchmarks=_BENCHMARKS,
    answers=("data",),
    # reads benchmarks of other authors in the shape of GTA, or by a field map
    sources={"gta": f"{_HERE}._dialogs.gta_in:build_gta"},
)
"""Table of this package, which the engine reads."""
