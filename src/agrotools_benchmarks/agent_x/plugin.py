"""Plug-in of Agent-X."""

from typing import NamedTuple

from agrotools.agents.protocols import PromptTemplates, RunProtocol
from agrotools.core import KeywordsSlot, ReferenceTextsSlot, Slot
from agrotools.core.registry import deferred
from agrotools.loading.contract import PublishedFiles
from agrotools.loading.facts import plugin_of, read_facts
from agrotools.scoring.contracts import MetricInfo
from agrotools_benchmarks._dialogs.plugin_parts import ImageCallsSlot, PaperRun


class Criterion(NamedTuple):
    """Criterion of Agent-X (arXiv 2505.24876), with fields as ``benchmark.toml`` explains them."""

    label: str
    meaning: str
    column: str
    printed: str = ""


def is_published(slot: Slot) -> bool:
    """Return True if judges grade the slot; samples of Agent-X have slots of all published types."""
    return isinstance(slot, KeywordsSlot | ReferenceTextsSlot | ImageCallsSlot)


FACTS = read_facts(__file__)
PAPER_RUN = PaperRun(**FACTS["paper_run"])
CRITERIA = {name: Criterion(**criterion) for name, criterion in FACTS["criteria"].items()}
PROTOCOL = RunProtocol(
    modes=("no-tool",),
    agent=deferred("agrotools_benchmarks.agent_x.protocol:make_agent"),
    templates=PromptTemplates("agent_x", "agrotools_benchmarks.agent_x"),
    single_shot=True,
    error_counts={"no-tool": "agrotools_benchmarks.agent_x.predictions:SINGLE_REPLY"},
)
METRICS = {
    f"agent_x.{name}": MetricInfo(
        label=criterion.label,
        meaning=f"{criterion.meaning}; by a judge",
        slots=is_published,
        by_judge=True,
    )
    for name, criterion in CRITERIA.items()
}
PLUGIN = plugin_of(
    FACTS,
    load=deferred("agrotools_benchmarks.agent_x.load:AGENT_X.load"),
    find=deferred("agrotools_benchmarks.agent_x.load:AGENT_X.layout.find"),
    roots=deferred("agrotools_benchmarks.agent_x.load:AGENT_X.layout.roots"),
    check=deferred("agrotools_benchmarks.agent_x.load:AGENT_X.check"),
    protocols={"agent-x": PROTOCOL},
    slots=(ImageCallsSlot,),
    metrics=METRICS,
    figures=PublishedFiles("agrotools_benchmarks.agent_x", "agentx"),
)
