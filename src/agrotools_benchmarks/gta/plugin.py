"""Plug-in of GTA."""

from agrotools.core.registry import deferred
from agrotools.loading.contract import PublishedFiles
from agrotools.loading.facts import plugin_of, read_facts
from agrotools_benchmarks._dialogs.plugin_parts import LAGENT, ImageCallsSlot, PaperRun

FACTS = read_facts(__file__)
PAPER_RUN = PaperRun(**FACTS["paper_run"])
PLUGIN = plugin_of(
    FACTS,
    load=deferred("agrotools_benchmarks.gta.score:GTA.load"),
    find=deferred("agrotools_benchmarks.gta.score:GTA.layout.find"),
    roots=deferred("agrotools_benchmarks.gta.score:GTA.layout.roots"),
    check=deferred("agrotools_benchmarks.gta.score:GTA.check"),
    protocols=LAGENT,
    slots=(ImageCallsSlot,),
    figures=PublishedFiles("agrotools_benchmarks.gta", "gta"),
)
