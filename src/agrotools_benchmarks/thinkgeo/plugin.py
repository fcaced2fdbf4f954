"""Plug-in of ThinkGeo."""

from agrotools.core import KeywordsSlot, Slot
from agrotools.core.registry import deferred
from agrotools.loading.contract import PublishedFiles
from agrotools.loading.facts import plugin_of, read_facts
from agrotools_benchmarks._dialogs.plugin_parts import LAGENT, ImageCallsSlot, PaperRun


def has_questions(slot: Slot) -> bool:
    """Return True if a judge is asked about the slot."""
    return isinstance(slot, KeywordsSlot) and bool(slot.questions)


FACTS = read_facts(__file__)
PAPER_RUN = PaperRun(**FACTS["paper_run"])
PLUGIN = plugin_of(
    FACTS,
    {"questions": has_questions},
    load=deferred("agrotools_benchmarks.thinkgeo.load:THINKGEO.load"),
    find=deferred("agrotools_benchmarks.thinkgeo.load:THINKGEO.layout.find"),
    roots=deferred("agrotools_benchmarks.thinkgeo.load:THINKGEO.layout.roots"),
    check=deferred("agrotools_benchmarks.thinkgeo.load:check_thinkgeo"),
    protocols=LAGENT,
    slots=(ImageCallsSlot,),
    figures=PublishedFiles("agrotools_benchmarks.thinkgeo", "thinkgeo"),
)
