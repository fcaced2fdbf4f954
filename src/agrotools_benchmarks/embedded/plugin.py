"""Plug-ins of the packed benchmarks of drawn scenes: two light objects, whose loader is imported when it is needed."""

from agrotools.plugin import BenchmarkFiles, BenchmarkPlugin, deferred

EMBEDDED = BenchmarkPlugin(
    name="embedded",
    about="questions on drawn scenes that the tools of the package can answer",
    scores_say=(
        "A score says how well a model calls tools that are right, uses what they return, and refuses "
        "where nothing can be answered. It does not say whether the model sees, notices a wrong tool, "
        "or would do well on real fields."
    ),
    not_asked=(
        "Not asked, since a drawing cannot: pest diagnosis, weed identification, crop disease. "
        "Farmland change is in frontier, since no tool of ours maps it in pictures."
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
    scores_say=(
        "A score says how far a model gets on drawn pictures on which our tools are wrong: by looking "
        "itself, by distrust of a result, or with better tools. It does not say how well the model "
        "calls tools that are right, when it refuses, or how it would do on real fields."
    ),
    not_asked=(
        "Not asked, since a drawing cannot: pest diagnosis, weed identification, crop disease. "
        "Canopy height and band selection are in embedded, since the tools are right on them."
    ),
    load=deferred("agrotools_benchmarks.embedded.load:load_drawn", "frontier"),
    files=BenchmarkFiles(
        find=deferred("agrotools_benchmarks.embedded.load:find_drawn", "frontier"),
        roots=deferred("agrotools_benchmarks.embedded.load:drawn_roots", "frontier"),
    ),
)
