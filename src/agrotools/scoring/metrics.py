"""Metrics by id, with their meaning and the slots of a sample they are the mean of; and the version of scoring.

Scores of different versions are never compared.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from agrotools.core import (
    BENCHMARKS,
    Mode,
    ScoringVersionError,
    Slot,
    counts_in_headline,
)
from agrotools.plugin import ENGINE, MetricInfo, WithPlugins, plugins_about
from agrotools.text.guess_model import guessable

SLOT_METRIC = "agrotools.slot"
FAS = "agrotools.fas"
GUESS_METRIC = "agrotools.guess"
"""FAS of the answer that the prompt alone suggests (:mod:`agrotools.text.guess_model`), for the same sample."""
APART_METRIC = "agrotools.ots_apart"
"""OTS of the slots that count in no headline: other subjects share too many of their facts."""

_MODES_OF_OUTCOMES: tuple[Mode, ...] = ("no-tool", "end-to-end")
_ENGINE_METRICS = {
    FAS: MetricInfo(
        "FAS",
        "Final Answer Score: mean over the slots of a sample",
        slots=lambda slot: not slot.scored_apart and counts_in_headline(slot),
        stands_for_sample=True,
        compared_in=_MODES_OF_OUTCOMES,
    ),
    "agrotools.css": MetricInfo(
        "CSS", "Closed-Slot Score: labels, yes/no, sets, files and numbers", slots=lambda slot: slot.closed
    ),
    "agrotools.ots": MetricInfo(
        "OTS",
        "Open-Text Score: key facts stated",
        slots=lambda slot: slot.type == "open_text" and counts_in_headline(slot),
    ),
    APART_METRIC: MetricInfo(
        "OTS apart",
        "Open-Text Score of slots that count in no headline",
        slots=lambda slot: not counts_in_headline(slot),
    ),
    "agrotools.plot": MetricInfo(
        "Plot",
        "Plot Score: the data, kind and labels of the figure drawn",
        slots=lambda slot: slot.type == "plot",
    ),
    GUESS_METRIC: MetricInfo(
        "Guess",
        "FAS of the answer that the prompt alone suggests, seeing no file",
        slots=lambda slot: guessable(slot) and counts_in_headline(slot),
    ),
    "agrotools.st_acc": MetricInfo("STAcc", "predicted step type (call or answer) is right"),
    "agrotools.tool_acc": MetricInfo("ToolAcc", "right tool at steps that call one"),
    "agrotools.tool_acc_strict": MetricInfo("ToolAcc strict", "right tool in the written order"),
    "agrotools.tool_acc_guess": MetricInfo("ToolAcc guess", "ToolAcc of the usual plan for such an answer form"),
    "agrotools.arg_acc": MetricInfo("ArgAcc", "right tool and every argument agrees", compared_in=("step-by-step",)),
    "agrotools.arg_acc_strict": MetricInfo("ArgAcc strict", "arguments equal those written, in the written order"),
    "agrotools.arg_acc_guess": MetricInfo("ArgAcc guess", "ArgAcc of the usual plan for such an answer form"),
    "agrotools.ear": MetricInfo("EAR", "answered where a call was due; lower is better", lower_is_better=True),
    "agrotools.summ_acc": MetricInfo("SummAcc", "final answer against what the shown observations imply"),
    "agrotools.summ_acc_truth": MetricInfo("SummAcc truth", "final answer against the ground truth"),
    "agrotools.call_ratio": MetricInfo(
        "Calls/needed",
        "calls made over calls of the reference, mean over answered samples; 1: as many as needed",
        out_of=1,
    ),
    "agrotools.ots_judge": MetricInfo(
        "OTS judge",
        "grade of a model that looks for the key facts in the answer",
        slots=lambda slot: slot.type == "open_text",
        on_request=True,
        by_judge=True,
    ),
}
OUTCOME_METRICS = tuple(name for name, info in _ENGINE_METRICS.items() if info.slots)
"""Metrics of the engine that are means over slots."""
METRICS = WithPlugins(_ENGINE_METRICS, lambda plugin: plugin.metrics)
"""All metrics: those of the engine, and those of benchmark plug-ins."""

SLOTS_OF_METRIC: WithPlugins[Callable[[Slot], bool]] = WithPlugins(
    {name: info.slots for name, info in _ENGINE_METRICS.items() if info.slots},
    lambda plugin: {name: info.slots for name, info in plugin.metrics.items() if info.slots},
)
"""Slots of a sample that each metric is the mean of; a sample without any has no row of that metric."""


def metrics_about(slots: Sequence[Slot]) -> Mapping[str, MetricInfo]:
    """The metrics that may be means over some of ``slots``, by id."""
    return _metrics_about(frozenset(slot.type for slot in slots), BENCHMARKS.names())


@cache
def _metrics_about(types: frozenset[str], _benchmarks: tuple[str, ...]) -> Mapping[str, MetricInfo]:
    metrics = dict(_ENGINE_METRICS)
    for plugin in plugins_about(types):
        for name, info in plugin.metrics.items():
            metrics.setdefault(name, info)
    return {name: info for name, info in metrics.items() if info.slots}


def own_metric(metric: str) -> bool:
    """True if a metric is one of the engine's, which is in the tables of every benchmark."""
    return metric in _ENGINE_METRICS


def stands_for_sample(metric: str) -> bool:
    """True if a metric stands for a whole sample, which has no row of it before a judge was asked where one must be."""
    info = _ENGINE_METRICS.get(metric) if metric.startswith(ENGINE) else METRICS.get(metric)
    return metric == APART_METRIC or (info is not None and info.stands_for_sample)


SCORING_VERSION = "3"
"""Rises when the same answer may score otherwise, or be asked for otherwise, than before."""
FIRST_VERSION = "1"
"""Of runs and scores that do not name theirs."""


def check_one_version(versions: Sequence[str]) -> None:
    """Refuse scores of several scoring versions.

    Raises:
        ScoringVersionError: there are.
    """
    different = sorted(set(versions))
    if len(different) > 1:
        raise ScoringVersionError(
            f"the scores of these runs are of different scoring versions ({' and '.join(different)}): they cannot be "
            "compared",
            hint=f"agrotools score RUN --rescore scores an older run again by version {SCORING_VERSION}",
        )
