"""Plug-ins of the packed benchmarks of drawn scenes: two light objects, whose loader is imported when it is needed."""

from agrotools.plugin import BenchmarkFiles, BenchmarkPlugin, deferred

EMBEDDED = BenchmarkPlugin(
    name="embedded",
    about="questions on drawn scenes that the tools of the package can answer",
    scope=(
        "Scores measure calling right tools, using results, and refusing. They do not measure eyes, "
        "doubt about a tool, or real fields. "
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
        "Scores measure how far eyes, doubt about a tool, or better tools get where ours are wrong. "
        "They do not measure calling right tools, refusing, or real fields. "
        "Not asked: canopy height, band selection, pest diagnosis, weed identification, crop disease."
    ),
    load=deferred("agrotools_benchmarks.embedded.load:load_drawn", "frontier"),
    files=BenchmarkFiles(
        find=deferred("agrotools_benchmarks.embedded.load:find_drawn", "frontier"),
        roots=deferred("agrotools_benchmarks.embedded.load:drawn_roots", "frontier"),
    ),
)
