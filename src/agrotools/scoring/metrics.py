"""Metrics by id, and the version of scoring. Scores of different versions are never compared.

Each metric is stated once, with its name, its meaning and the slots that count in it; tables, pages and ``compare`` ask
here. Metrics of benchmark plug-ins stand beside those of the engine.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from agrotools.core import BENCHMARKS, Mode, Record, Slot, counts_in_headline
from agrotools.core.installed import WithPlugins, plugins_for_slot_types
from agrotools.scoring.contracts import MetricInfo

PREDICTIONS = "predictions"
"""Protocol of a run that was made of a file of answers or transcripts of another program."""
SLOT_METRIC = "slot"
FAS = "fas"
GUESS_METRIC = "guess"
"""FAS of the answer that the prompt alone suggests (:mod:`agrotools.scoring.floors`), for the same sample."""
CONSTANT_METRIC = "constant"
"""FAS of the best constant answers (:mod:`agrotools.scoring.constants`), for the same sample."""
OPEN_TEXT = "ots"
"""Score of open text by judges. It counts in FAS where a judge graded the answer."""
OPEN_TEXT_FLOOR = "ots_floor"
FAS_TEXT = "fas_text"
ONLY_IN_JSON = (OPEN_TEXT_FLOOR, FAS_TEXT)
"""Metrics of ``scores.json`` and ``--json`` that tables of runs leave out: plain rules give them, and they rank no
models."""
FALSE_CONFIDENCE = "false_confidence"
FALSE_REFUSAL = "false_refusal"
HARMFUL_ADVICE = "harmful_advice"


def is_judged_text(slot: Slot) -> bool:
    """Return True if a slot is open text that counts in headline metrics."""
    return slot.type == "open_text" and counts_in_headline(slot)


def counts_in_fas(slot: Slot) -> bool:
    """Return True if a slot counts in the Final Answer Score, also where no judge graded open text."""
    return not slot.scored_apart and slot.type != "open_text"


def counts_in_guess(slot: Slot) -> bool:
    """Return True if a slot counts in the floor of the Final Answer Score.

    Plot slots count because a usual chart can be drawn, unanswerable questions because a prompt may show that they are.
    """
    return slot.type in ("abstain", "exact", "boolean", "choice_set", "file", "tolerance", "plot")


_MODES_OF_OUTCOMES: tuple[Mode, ...] = ("no-tool", "end-to-end")
_OWN_CLOSED = ("exact", "boolean", "choice_set", "file", "tolerance")


def is_closed(slot: Slot) -> bool:
    """Return True for slots of labels, yes/no, sets, files and numbers."""
    return slot.type in _OWN_CLOSED


_ENGINE_METRICS = {
    FAS: MetricInfo(
        "FAS",
        "Final Answer Score: mean score of the parts (slots) of an answer",
        slots=counts_in_fas,
        scores_sample=True,
        compared_in=_MODES_OF_OUTCOMES,
    ),
    "css": MetricInfo(
        "CSS",
        "Closed-Slot Score: labels, yes/no, sets, files and numbers",
        slots=lambda slot: slot.closed,
    ),
    OPEN_TEXT: MetricInfo(
        "OTS",
        "Open-Text Score: key facts stated, by a judge",
        slots=is_judged_text,
        on_request=True,
        by_judge=True,
    ),
    OPEN_TEXT_FLOOR: MetricInfo(
        "OTS floor", "key facts in open text, by a plain rule", slots=is_judged_text
    ),
    "plot": MetricInfo(
        "Plot",
        "Plot Score: the data, kind and labels of the figure drawn",
        slots=lambda slot: slot.type == "plot",
    ),
    FALSE_CONFIDENCE: MetricInfo(
        "False confidence",
        "unanswerable questions that were answered; lower is better",
        slots=lambda slot: slot.type == "abstain",
        lower_is_better=True,
        on_request=True,
    ),
    FALSE_REFUSAL: MetricInfo(
        "False refusal",
        "answerable questions that were refused, where the form offers to refuse; lower is better",
        slots=lambda slot: slot.type != "abstain" and not slot.scored_apart,
        lower_is_better=True,
        on_request=True,
    ),
    HARMFUL_ADVICE: MetricInfo(
        "Harmful advice",
        "answers with advice that make at least one of the harmful claims listed for them; lower is better",
        slots=lambda slot: bool(getattr(slot, "harmful", ())),
        lower_is_better=True,
        on_request=True,
    ),
    GUESS_METRIC: MetricInfo(
        "Guess",
        "FAS of the answer that the prompt alone suggests, without the files",
        slots=counts_in_guess,
    ),
    CONSTANT_METRIC: MetricInfo(
        "Constant",
        "FAS of the best constant answer of each template, chosen on the other clusters",
        slots=counts_in_guess,
        on_request=True,
    ),
    FAS_TEXT: MetricInfo(
        "FAS text",
        "mean score of labels, yes/no, sets, files and numbers in the model's own words, before the form",
        slots=is_closed,
        on_request=True,
    ),
    "st_acc": MetricInfo("STAcc", "predicted step type (call or answer) is right"),
    "tool_acc": MetricInfo("ToolAcc", "right tool at steps that call one"),
    "tool_acc_strict": MetricInfo("ToolAcc strict", "right tool in the written order"),
    "tool_acc_guess": MetricInfo("ToolAcc guess", "ToolAcc of the usual plan for such a question"),
    "arg_acc": MetricInfo(
        "ArgAcc", "right tool and every argument agrees", compared_in=("step-by-step",)
    ),
    "arg_acc_strict": MetricInfo(
        "ArgAcc strict", "arguments equal those written, in the written order"
    ),
    "arg_acc_guess": MetricInfo("ArgAcc guess", "ArgAcc of the usual plan for such a question"),
    "ear": MetricInfo(
        "EAR", "answered where a call was due; lower is better", lower_is_better=True
    ),
    "summ_acc": MetricInfo("SummAcc", "final answer against what the shown observations imply"),
    "summ_acc_truth": MetricInfo("SummAcc truth", "final answer against the ground truth"),
    "call_ratio": MetricInfo(
        "Calls/needed",
        "calls made over calls of the reference, mean over answered samples; 1: as many as needed",
        out_of=1,
    ),
    "score": MetricInfo("Score", "mean score of a table that another program made"),
}
OUTCOME_METRICS = tuple(name for name, info in _ENGINE_METRICS.items() if info.slots)
"""Metrics of the engine that are means over slots."""
METRICS = WithPlugins("metric", _ENGINE_METRICS, lambda plugin: plugin.metrics)
"""All metrics of the engine and of benchmark plug-ins."""


def is_outcome(metric: str) -> bool:
    """Return True if a metric is a mean over slots; a sample without slots that count has no row of it."""
    return (
        metric != SLOT_METRIC
        and (info := METRICS.get(metric)) is not None
        and info.slots is not None
    )


def places_by_metric(slots: Sequence[Slot]) -> Mapping[str, Sequence[int]]:
    """Return the places of the slots that each metric averages, without metrics that average none, by id."""
    metrics = _metrics_about(frozenset(slot.type for slot in slots), BENCHMARKS.names())
    all_places = {
        name: [at for at, slot in enumerate(slots) if info.slots and info.slots(slot)]
        for name, info in metrics.items()
    }
    return {name: each for name, each in all_places.items() if each}


@cache
def _metrics_about(types: frozenset[str], _benchmarks: tuple[str, ...]) -> Mapping[str, MetricInfo]:
    """Return the metrics that may average slots of these types, by id."""
    metrics = dict(_ENGINE_METRICS)
    for plugin in plugins_for_slot_types(types):
        for name, info in plugin.metrics.items():
            metrics.setdefault(name, info)
    return {name: info for name, info in metrics.items() if info.slots}


def own_metric(metric: str) -> bool:
    """Return True if a metric belongs to the engine and therefore appears in the tables of every benchmark."""
    return metric in _ENGINE_METRICS


def scores_sample(metric: str) -> bool:
    """Return True if a metric is the score of a whole sample. If a judge grades it, it has no rows before that."""
    if "." not in metric:
        return metric in _SAMPLE_METRICS
    return (info := METRICS.get(metric)) is not None and info.scores_sample


_SAMPLE_METRICS = frozenset(name for name, info in _ENGINE_METRICS.items() if info.scores_sample)


FAS_FLOORS = (GUESS_METRIC, CONSTANT_METRIC)
"""Floors of the Final Answer Score. The one that is higher in all is the floor that is printed."""
FLOOR_METRICS = (*FAS_FLOORS, "tool_acc_guess", "arg_acc_guess")
"""Metrics of policies that see no files, on the same samples; they are the same for every run."""
CALL_STEP_METRICS = (
    "tool_acc",
    "tool_acc_strict",
    "arg_acc",
    "arg_acc_strict",
    "ear",
    *FLOOR_METRICS[len(FAS_FLOORS) :],
)
SUMMARY_METRICS = ("summ_acc", "summ_acc_truth")
STEP_METRICS = ("st_acc", *CALL_STEP_METRICS, *SUMMARY_METRICS)

SCORING_VERSION = "10"
"""Scoring version. It rises when the same answer may score differently or is requested differently."""


def is_invalid(record: Record) -> bool:
    """Return True if the record is a failure of the infrastructure and not a result."""
    return record.invalid is not None or (
        record.trajectory is not None and record.trajectory.termination == "infrastructure"
    )
