"""Plug-in of GTA."""

from agrotools.loading.contract import PublishedFiles
from agrotools.loading.facts import plugin_of, read_facts
from agrotools_benchmarks._dialogs.plugin_parts import LAGENT, ImageCallsSlot, PaperRun, files_of

FACTS = read_facts(__file__)
PAPER_RUN = PaperRun(**FACTS["paper_run"])
PLUGIN = plugin_of(
    FACTS,
    **files_of("agrotools_benchmarks.gta.score", "GTA"),
    protocols=LAGENT,
    slots=(ImageCallsSlot,),
    figures=PublishedFiles("agrotools_benchmarks.gta", "gta"),
)
