"""Plug-ins of the benchmarks that ship with the package, and the slot types that their metrics apply to."""

from typing import NamedTuple


class BuiltIn(NamedTuple):
    """Plug-in of a benchmark. It is imported for computing metrics only if a sample has one of ``slot_types``."""

    target: str
    slot_types: frozenset[str] = frozenset()


_ROOM = "agrotools.benchmarks"
BUILT_IN = {
    "embedded": BuiltIn(f"{_ROOM}.embedded.plugin:EMBEDDED"),
    "frontier": BuiltIn(f"{_ROOM}.embedded.plugin:FRONTIER"),
    "field": BuiltIn(f"{_ROOM}.field.plugin:PLUGIN"),
    "agrotools": BuiltIn(f"{_ROOM}.released.plugin:PLUGIN"),
    "agrieval": BuiltIn(
        f"{_ROOM}.agrieval.plugin:AGRIEVAL", frozenset({"options", "reference_text"})
    ),
    "cmmlu-agronomy": BuiltIn(f"{_ROOM}.agrieval.plugin:CMMLU_AGRONOMY"),
    "agvqa": BuiltIn(f"{_ROOM}.agvqa.plugin:OWN_FILE"),
    **{
        name: BuiltIn(f"{_ROOM}.agvqa.plugin:{name.upper().replace('-', '_')}")
        for name in ("agrobench", "agmmu", "agromind", "mirage", "mirage-mmst")
    },
    "gta": BuiltIn(f"{_ROOM}.gta.plugin:PLUGIN"),
    "gta-2": BuiltIn(f"{_ROOM}.gta2.plugin:PLUGIN", frozenset({"sub_tasks"})),
    "thinkgeo": BuiltIn(f"{_ROOM}.thinkgeo.plugin:PLUGIN", frozenset({"keywords"})),
    "agent-x": BuiltIn(
        f"{_ROOM}.agent_x.plugin:PLUGIN", frozenset({"keywords", "reference_texts", "image_calls"})
    ),
}
TARGETS = {name: each.target for name, each in BUILT_IN.items()}
