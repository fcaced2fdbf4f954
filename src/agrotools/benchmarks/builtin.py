"""Benchmarks that ship with the package, as targets of the registry."""

BUILT_IN = {
    "embedded": "agrotools.benchmarks.embedded.plugin:PLUGIN",
    "agrieval": "agrotools.benchmarks.agrieval.plugin:AGRIEVAL",
    "cmmlu-agronomy": "agrotools.benchmarks.agrieval.plugin:CMMLU_AGRONOMY",
    "gta": "agrotools.benchmarks.gta.plugin:PLUGIN",
    "gta-2": "agrotools.benchmarks.gta2.plugin:PLUGIN",
    "thinkgeo": "agrotools.benchmarks.thinkgeo.plugin:PLUGIN",
    "agent-x": "agrotools.benchmarks.agent_x.plugin:PLUGIN",
}

SLOT_TYPES: dict[str, frozenset[str]] = {
    "embedded": frozenset(),
    "agrieval": frozenset({"options", "reference_text"}),
    "cmmlu-agronomy": frozenset(),
    "gta": frozenset(),
    "gta-2": frozenset({"sub_tasks"}),
    "thinkgeo": frozenset({"keywords"}),
    "agent-x": frozenset({"keywords", "reference_texts", "image_calls"}),
}
"""Slot types that the metrics of each are about: only samples with one of them import its plug-in."""
