"""Plug-in of ThinkGeo."""

from agrotools.benchmarks._dialogs.plugin_parts import LAGENT, ImageCallsSlot, PaperRun, files_of
from agrotools.benchmarks.contract import PublishedFiles
from agrotools.benchmarks.facts import plugin_of, read_facts
from agrotools.core import KeywordsSlot, Slot


def has_questions(slot: Slot) -> bool:
    """Return True if a judge is asked about the slot."""
    return isinstance(slot, KeywordsSlot) and bool(slot.questions)


FACTS = read_facts(__file__)
PAPER_RUN = PaperRun(**FACTS["paper_run"])
PLUGIN = plugin_of(
    FACTS,
    {"questions": has_questions},
    **files_of("agrotools.benchmarks.thinkgeo.load", "THINKGEO", check="check_thinkgeo"),
    protocols=LAGENT,
    slots=(ImageCallsSlot,),
    figures=PublishedFiles("agrotools.benchmarks.thinkgeo", "thinkgeo"),
)
