"""Plug-in of GTA."""

from agrotools.benchmarks._dialogs.plugin_parts import LAGENT, ImageCallsSlot, PaperRun, files_of
from agrotools.benchmarks.contract import PublishedFiles
from agrotools.benchmarks.facts import plugin_of, read_facts

FACTS = read_facts(__file__)
PAPER_RUN = PaperRun(**FACTS["paper_run"])
PLUGIN = plugin_of(
    FACTS,
    **files_of("agrotools.benchmarks.gta.score", "GTA"),
    protocols=LAGENT,
    slots=(ImageCallsSlot,),
    figures=PublishedFiles("agrotools.benchmarks.gta", "gta"),
)
