"""The tables of the report: which metrics of a run each shows, in which setting."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agrotools.core import Mode
from agrotools.scoring import Metric, Summary
from agrotools.scoring.differences import GAIN_METRICS
from agrotools.scoring.knowledge_answers import TEXT_METRICS

OUTCOME = (*GAIN_METRICS, "agrotools.plot")
PROCESS = ("agrotools.st_acc", "agrotools.tool_acc", "agrotools.arg_acc", "agrotools.ear", "agrotools.summ_acc")
CALL_RATIO = "agrotools.call_ratio"
ON_REQUEST = frozenset(
    {
        "agrieval.likelihood",
        "agrieval.rouge_l_lexeval",
        "agrieval.similarity_minilm",
        "agrieval.similarity_mpnet",
        "agrieval.judge",
        "agrotools.ots_judge",
    }
)
"""Metrics that have a column only where a run has them."""
KNOWLEDGE = (
    "agrieval.accuracy",
    "agrieval.partial",
    "agrieval.likelihood",
    "agrieval.rouge_l",
    "agrieval.rouge_l_lexeval",
    "agrieval.similarity_minilm",
    "agrieval.similarity_mpnet",
    "agrieval.judge",
)
AGENT_X_STEPS = tuple(f"agent_x.{name}" for name in ("ground_s", "tool_p", "tool_acc", "step_s", "clarity", "reward"))
AGENT_X_OUTCOME = tuple(
    f"agent_x.{name}" for name in ("faith_acc", "context_s", "fact_p", "sem_acc", "goal_acc", "toolset_acc")
)
GTA2 = ("gta2.gpt_score", "gta2.score_corrected")
BESIDE_KNOWLEDGE = ("agrieval.accuracy_lexeval", "agrieval.accuracy_published", *TEXT_METRICS)
BESIDE = {
    "agrieval.accuracy": (
        ("authors' scorer", "agrieval.accuracy_published"),
        ("LexEval's rule", "agrieval.accuracy_lexeval"),
    ),
    "agrieval.rouge_l": (
        ("authors' scorer", "agrieval.rouge_l_published"),
        ("normalised", "agrieval.rouge_l_normalised"),
    ),
    "agrotools.fas": (("guess", "agrotools.guess"),),
    "agrotools.tool_acc": (("strict", "agrotools.tool_acc_strict"), ("guess", "agrotools.tool_acc_guess")),
    "agrotools.arg_acc": (("strict", "agrotools.arg_acc_strict"), ("guess", "agrotools.arg_acc_guess")),
    "agrotools.summ_acc": (("truth", "agrotools.summ_acc_truth"),),
}
"""Variants that stand beneath their metric, and what they are called there."""


@dataclass(frozen=True)
class Setting:
    """A table of the report: which metrics of a summary it shows, under which title."""

    title: str
    mode: Mode
    metrics: Sequence[str]
    of: Callable[[Summary], Mapping[str, Metric] | None]
    """The metrics of a run in this setting; None where the run has none at all."""
    kept_out: Callable[[Summary], int]
    """Schematic drawings of a run that they do not count."""
    plots_left_out: bool = False
    whole_mode: bool = True
    """Whether it shows all samples of the mode."""


def _metrics_of_mode(mode: Mode) -> Callable[[Summary], Mapping[str, Metric] | None]:
    def metrics(summary: Summary) -> Mapping[str, Metric] | None:
        if mode not in summary.modes or _asks_knowledge_alone(summary):
            return None
        own = summary.modes[mode].metrics
        return None if own and set(own) <= {*GTA2} else own

    return metrics


def _knowledge_metrics(summary: Summary) -> Mapping[str, Metric] | None:
    return summary.modes["no-tool"].metrics if _asks_knowledge_alone(summary) else None


def _asks_knowledge_alone(summary: Summary) -> bool:
    """Whether the run is on examination questions, which have metrics of their own and one mode."""
    metrics = summary.modes["no-tool"].metrics if "no-tool" in summary.modes else {}
    return bool(metrics) and set(metrics) <= {*KNOWLEDGE, *BESIDE_KNOWLEDGE}


def judge_alone_scores(summary: Summary) -> bool:
    """Whether the run is on tasks that nothing but a judge scores, and that no mode without tools is run on."""
    part = summary.modes.get("end-to-end")
    if part is None or part.invalid.n == part.n_records:
        return False
    return set(part.metrics) <= {*GTA2}


def _kept_out_of_mode(mode: Mode) -> Callable[[Summary], int]:
    def count(summary: Summary) -> int:
        part = summary.modes[mode].schematic if mode in summary.modes else None
        return part.n_samples if part is not None else 0

    return count


def kept_out_line(counts: Iterable[int]) -> str:
    """How many samples a table does not count, for each of its runs; nothing where it is none."""
    found = sorted(set(counts))
    if not any(found):
        return ""
    n = " to ".join(str(count) for count in dict.fromkeys((found[0], found[-1])))
    return f"Excluded: {n} sample{'s' * (n != '1')} that ask to recognise schematic drawings."


def kept_out_on_no_tool(summary: Summary) -> int:
    """Schematic drawings among the samples that a mode without tools is run on."""
    return summary.no_tool_part.n_schematic if summary.no_tool_part is not None else 0


def _metrics_on_no_tool(summary: Summary) -> Mapping[str, Metric] | None:
    has = "end-to-end" in summary.modes and summary.no_tool_part is not None and not judge_alone_scores(summary)
    return summary.no_tool_part.metrics if has and summary.no_tool_part else None


def _gta2_metrics(summary: Summary) -> Mapping[str, Metric] | None:
    """Those of GTA-2, where a judge was asked."""
    own = summary.modes["end-to-end"].metrics if "end-to-end" in summary.modes else {}
    return own if GTA2[0] in own else None


def _judged_metrics(mode: Mode) -> Callable[[Summary], Mapping[str, Metric] | None]:
    """Those of Agent-X, where a judge was asked and they do not stand beside the printed rows."""

    def metrics(summary: Summary) -> Mapping[str, Metric] | None:
        part = summary.modes.get(mode)
        if part is None or (part.published is not None and part.published.reference):
            return None
        return part.metrics if any(metric in part.metrics for metric in (*AGENT_X_STEPS, *AGENT_X_OUTCOME)) else None

    return metrics


_AGENT_X_MODES: tuple[Mode, ...] = ("no-tool", "end-to-end")
OF_AGENT_X = tuple(
    Setting(f"Agent-X ({mode}), {what}, by a judge", mode, columns, _judged_metrics(mode), lambda _: 0)
    for mode in _AGENT_X_MODES
    for what, columns in (("steps", AGENT_X_STEPS), ("reasoning and outcome", AGENT_X_OUTCOME))
)
SETTINGS = (
    Setting("Examination questions", "no-tool", KNOWLEDGE, _knowledge_metrics, _kept_out_of_mode("no-tool")),
    Setting(
        "No tools", "no-tool", OUTCOME, _metrics_of_mode("no-tool"), _kept_out_of_mode("no-tool"), plots_left_out=True
    ),
    Setting(
        "End to end",
        "end-to-end",
        (*OUTCOME, CALL_RATIO),
        _metrics_of_mode("end-to-end"),
        _kept_out_of_mode("end-to-end"),
    ),
    Setting(
        "End to end, on the samples of no-tool",
        "end-to-end",
        OUTCOME,
        _metrics_on_no_tool,
        kept_out_on_no_tool,
        plots_left_out=True,
        whole_mode=False,
    ),
    Setting(
        "Step by step", "step-by-step", PROCESS, _metrics_of_mode("step-by-step"), _kept_out_of_mode("step-by-step")
    ),
    *OF_AGENT_X,
    Setting("GTA-2 (end-to-end), by a judge, in words of ours", "end-to-end", GTA2, _gta2_metrics, lambda _: 0),
)
