"""Benchmarks that ship with the package, as targets of the registry."""

BUILT_IN = {
    name: f"agrotools.benchmarks.{target}"
    for name, target in {
        "embedded": "embedded.plugin:PLUGIN",
        "agrieval": "agrieval.plugin:AGRIEVAL",
        "cmmlu-agronomy": "agrieval.plugin:CMMLU_AGRONOMY",
        "gta": "gta.plugin:PLUGIN",
        "gta-2": "gta2.plugin:PLUGIN",
        "thinkgeo": "thinkgeo.plugin:PLUGIN",
        "agent-x": "agent_x.plugin:PLUGIN",
    }.items()
}
