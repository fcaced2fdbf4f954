"""Plug-in of ThinkGeo."""

from agrotools.core import KeywordsSlot, Slot
from agrotools.loading.contract import PublishedFiles
from agrotools.loading.facts import plugin_of, read_facts
from agrotools_benchmarks._dialogs.plugin_parts import LAGENT, ImageCallsSlot, PaperRun, files_of


def has_questions(slot: Slot) -> bool:
    """Return True if a judge is asked about the slot."""
    return isinstance(slot, KeywordsSlot) and bool(slot.questions)


FACTS = read_facts(__file__)
PAPER_RUN = PaperRun(**FACTS["paper_run"])
PLUGIN = plugin_of(
    FACTS,
    {"questions": has_questions},
    **files_of("agrotools_benchmarks.thinkgeo.load", "THINKGEO", check="check_thinkgeo"),
    protocols=LAGENT,
    slots=(ImageCallsSlot,),
    figures=PublishedFiles("agrotools_benchmarks.thinkgeo", "thinkgeo"),
)
