"""Plug-ins of the packed benchmarks of drawn scenes: two light objects, whose loader is imported when it is needed."""

from agrotools.plugin import BenchmarkFiles, BenchmarkPlugin, deferred

EMBEDDED = BenchmarkPlugin(
    name="embedded",
    about="questions on drawn scenes that the tools of the package can answer",
    scope=(
        "Scores show whether a model calls the right tools, uses their results, and refuses questions "
        "that cannot be answered. They do not show how well it sees by itself, and say nothing about "
        "real fields. The benchmark has no questions on farmland change, pest diagnosis, weed "
        "identification or crop disease."
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
        "Scores show how far a model gets where our tools are wrong, by looking at the pictures itself "
        "or by using better tools. They say nothing about refusing questions, nor about real fields. "
        "The benchmark has no questions on canopy height, band selection, pest diagnosis, weed "
        "identification or crop disease."
    ),
    load=deferred("agrotools_benchmarks.embedded.load:load_drawn", "frontier"),
    files=BenchmarkFiles(
        find=deferred("agrotools_benchmarks.embedded.load:find_drawn", "frontier"),
        roots=deferred("agrotools_benchmarks.embedded.load:drawn_roots", "frontier"),
    ),
)
