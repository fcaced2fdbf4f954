"""Runs on Agent-X in the metrics of its paper: as its notebooks have them, and corrected; with what they count.

What the judges gave stands for the table that Agent-X's notebooks begin with. Which rows of it are generative is told
by the place of a sample in the published file, so that a part of the questions is counted as the whole is.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from agrotools.benchmarks.agent_x import corrected_scorer
from agrotools.benchmarks.agent_x.judge_replies import JudgeTable
from agrotools.benchmarks.agent_x.published_errors import error_analysis
from agrotools.benchmarks.agent_x.published_scorer import COLUMNS, GENERATIVE_ROWS, aggregate, tool_call_statistics
from agrotools.core import Record
from agrotools.plugin import PublishedRun, Scoring
from agrotools.scoring.judging.judgements import JudgedRows
from agrotools.scoring.predictions import PublishedScorerStops
from agrotools.scoring.published_form import agent_x_gold, agent_x_prediction, in_file_order
from agrotools.scoring.sample_units import is_invalid
from agrotools.scoring.statistics import Estimate
from agrotools.scoring.summary import PublishedFigures

FAMILY = "agent-x"
PUBLISHED_JUDGES = ("GPT-4o", "Qwen-14B")
"""The models that judged for the paper, as its tables spell them."""
_NOT_JUDGED = "no judge was asked: agrotools score RUN --judge MODEL"


def agent_x_figures(run: PublishedRun) -> PublishedFigures | None:
    """The figures of one mode; None where its records hold no predictions (step-by-step, or all of them invalid).

    A prediction with neither steps nor an answer, which no judge is asked about, scores 0. A reply without a score
    counts for nothing as published, and as 0 corrected.

    Invalid records and repeats count for nothing, as no prediction file holds them. ``differs`` names the judges and
    their rubrics, too.
    """
    mode, judges = run.mode, run.judges
    valid = [record for record in in_file_order(run.records) if record.epoch == 0 and not is_invalid(record)]
    valid = [record for record in valid if record.trajectory is not None]
    if mode == "step-by-step" or not valid:
        return None
    keys = [_key(record) for record in valid]
    predictions = [{key: agent_x_prediction(record)} for key, record in zip(keys, valid, strict=True)]
    table = _table(valid, keys, judges)
    data = {key: agent_x_gold(record.sample) for key, record in zip(keys, valid, strict=True)}
    ours = corrected_scorer.score(table, predictions, data)
    estimates = {metric: ours.estimate(metric) or _without_interval(*figure) for metric, figure in ours.metrics.items()}
    stops, reference = "", {}
    if table is not None:
        generative = [
            at for at, record in enumerate(valid) if record.sample.metadata.get("position") in GENERATIVE_ROWS
        ]
        try:
            reference = {name: figure.value for name, figure in aggregate(table.rows, generative).metrics.items()}
        except PublishedScorerStops as error:
            stops = error.message
    return PublishedFigures(
        family=FAMILY,
        reference={metric: _share(value) for metric, value in reference.items()},
        stops=stops,
        corrected={metric: estimate for metric, estimate in estimates.items() if estimate is not None},
        left_out={**({} if table else dict.fromkeys(_REFERENCE_METRICS, _NOT_JUDGED)), **ours.left_out, **_ONE_SIDED},
        counts=published_counts(predictions),
        differs=(*run.differs, *_judging_differs(judges)) if table else run.differs,
    )


_ONE_SIDED = {
    "agent_x.toolset_acc_corrected": "guessed by a judge; the F1 of tool sets beside it is counted by code",
    "agent_x.toolset_f1": "no metric of the paper, whose judge guesses it",
}
_REFERENCE_METRICS = [*(f"agent_x.{name}" for name in COLUMNS.values()), "agent_x.goal_acc_imggen"]


def published_counts(predictions: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """What the notebooks of Agent-X count in predictions: calls, and errors of form; less those at which they stop.

    The two classes of errors that rest on keywords of spaCy are left out.
    """
    counts: dict[str, int] = {}
    with suppress(PublishedScorerStops):
        calls = tool_call_statistics(predictions)
        counts |= {
            "steps": calls.steps,
            "successful_calls": calls.successful,
            "failed_calls": calls.failed,
            "invalid_calls": calls.invalid,
            "samples_without_steps": calls.empty_samples,
        }
    return {**counts, **error_analysis(predictions).counts}


def _key(record: Record) -> str:
    """The sample's key in the published file."""
    return str(record.sample.metadata.get("entry", record.sample.id))


def _table(records: Sequence[Record], keys: Sequence[str], judges: JudgedRows) -> JudgeTable | None:
    """What the judges gave as the notebooks have it; None where none was asked."""
    criteria = {column: f"agent_x.{name}" for column, name in COLUMNS.items() if f"agent_x.{name}" in judges.metrics}
    if not criteria:
        return None
    rows: list[dict[str, float | None]] = []
    for record in records:
        given = judges.values(record)
        rows.append({column: given.get(metric) if given else 0.0 for column, metric in criteria.items()})
    return JudgeTable(tuple(rows), tuple(keys), raw=False)


def _judging_differs(judges: JudgedRows) -> list[str]:
    """How judging differs from the paper's: who judged, and by which rubrics."""
    names = ", ".join(judges.criteria_judges)
    return [f"judged by {names} (the paper: {', '.join(PUBLISHED_JUDGES)})", judges.rubrics.label]


def _share(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value / 100


def _without_interval(value: float | None, n: int) -> Estimate | None:
    return None if value is None else Estimate(value=value / 100, n=n, n_clusters=n)


SCORING = Scoring(published=agent_x_figures)
