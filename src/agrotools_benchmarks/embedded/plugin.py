"""Plug-ins of the packed benchmarks of drawn scenes: two light objects, whose loader is imported when it is needed."""

from agrotools.plugin import BenchmarkFiles, BenchmarkPlugin, deferred

EMBEDDED = BenchmarkPlugin(
    name="embedded",
    about="questions on drawn scenes that the tools of the package can answer",
    scope=(
        "Scores measure calling the right tools, using their results, and refusing. They do not show "
        "what a model sees by itself, nor say anything about real fields. "
        "Not asked: farmland change, pest diagnosis, weed identification, crop disease."
    ),
    load=deferred("agrotools_benchmarks.embedded.load:load_drawn", "embedded"),
    files=BenchmarkFiles(
        find=deferred("agrotools_benchmarks.embedded.load:find_drawn", "embedded"),
        roots=deferred("agrotools_benchmarks.embedded.load:drawn_roots", "embedded"),
    ),
)
FRONTIER = BenchmarkPlugin(
    name="frontier",
    about="questions on drawn scenes that the tools of the package get wrong: what better tools would win",
    scope=(
        "Scores measure how far a model gets where our tools are wrong: by looking itself, or by better "
        "tools. They say nothing about refusing, nor about real fields. "
        "Not asked: canopy height, band selection, pest diagnosis, weed identification, crop disease."
    ),
    load=deferred("agrotools_benchmarks.embedded.load:load_drawn", "frontier"),
    files=BenchmarkFiles(
        find=deferred("agrotools_benchmarks.embedded.load:find_drawn", "frontier"),
        roots=deferred("agrotools_benchmarks.embedded.load:drawn_roots", "frontier"),
    ),
)
