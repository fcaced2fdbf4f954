"""Metrics of Agent-X for a run: corrected (docs/reference-scorers.md describes how), and as in its paper.

An unreadable judge score, and a sample that the judge or the model omitted, score 0 and are counted. Generative tasks
are identified by query type and id instead of the row's position; tool sets are compared by code.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from agrotools.core import BenchmarkError, Mode, Record
from agrotools.formats.manifest import Manifest
from agrotools.runner.policies import is_baseline
from agrotools.scoring.contracts import PublishedRun, Scoring
from agrotools.scoring.judging.judgements import JudgedRows
from agrotools.scoring.metrics import is_invalid
from agrotools.scoring.predictions import (
    Figure,
    PredictionScores,
    PublishedScorerStops,
    SampleParts,
    ScoreSum,
    summed,
)
from agrotools.scoring.statistics import Estimate
from agrotools.scoring.summary import PublishedFigures
from agrotools.text.json_kinds import is_list, is_object, is_text
from agrotools_benchmarks._dialogs.record_dialogues import in_file_order
from agrotools_benchmarks._dialogs.scores import (
    differences_of_settings,
    score_image_calls,
    tools_by_source,
)
from agrotools_benchmarks.agent_x.judge import JudgeTable
from agrotools_benchmarks.agent_x.plugin import PAPER_RUN
from agrotools_benchmarks.agent_x.published_scorer import (
    COLUMNS,
    GENERATIVE_ROWS,
    GOAL,
    aggregate,
    error_analysis,
    tool_call_statistics,
)
from agrotools_benchmarks.agent_x.replies import gold_of, prediction_of

_TOOLSET = "agent_x.toolset_f1_corrected"
_GOAL_STAR = "agent_x.goal_acc_imggen_corrected"
_STAR_PARTS = ("agent_x.tool_p_corrected", "agent_x.tool_acc_corrected", _TOOLSET)


def score(
    table: JudgeTable | None,
    predictions: Sequence[Any] = (),
    data: Mapping[str, Mapping[str, Any]] | None = None,
) -> PredictionScores:
    """Compute means in percent over all expected samples: those of ``data``, or else of the predictions and the table.

    ``toolset_f1_corrected`` needs predictions and data, all other metrics need the table. Goal covers samples that are
    not generative; Goal* (``goal_acc_imggen_corrected``) is the mean of tool precision, tool accuracy and the F1 of
    tool sets over the generative samples.

    ``predictions``: one-key objects by id; any other item is a sample without a prediction. If an id occurs twice, the
    first prediction counts.

    Raises:
        BenchmarkError: the table has no ids and another number of rows than there are predictions, or most samples are
            not in the data set.
    """
    answers: dict[str, Any] = {}
    for item in filter(is_object, predictions):
        for key, value in item.items():
            answers.setdefault(key, value)
    judged = _judged(
        table, [next(iter(item), "") if is_object(item) else "" for item in predictions]
    )
    keys = _keys(data, {**answers, **judged})
    generative = generative_ids(data) if data is not None else {str(row) for row in GENERATIVE_ROWS}
    counts = {
        "samples": len(keys),
        "without_prediction": len({*keys}.difference(answers)) if predictions else 0,
        "without_judgement": len({*keys}.difference(judged)) if table is not None else 0,
        "generative": len({*keys} & generative),
        **dict.fromkeys(("unreadable_scores", "missing_scores", "without_gold_tools"), 0),
        "not_in_the_data_set": len({*answers, *judged}.difference(keys)),
    }
    columns = {
        column: f"agent_x.{name}_corrected"
        for column, name in COLUMNS.items()
        if table is not None and column in table.columns and name != "toolset_acc"
    }
    samples: list[SampleParts] = []
    for key in keys:
        of_key = {
            column: metric
            for column, metric in columns.items()
            if column != GOAL or key not in generative
        }
        parts = _judged_parts(judged.get(key, {}), of_key, counts)
        if data is not None and predictions:
            if gold_tools := tools_of(data[key]):
                tools = tools_of(answers.get(key, {}))
                parts[_TOOLSET] = ScoreSum(
                    2 * len(tools & gold_tools) / (len(tools) + len(gold_tools)), 1
                )
            else:
                counts["without_gold_tools"] += 1
        samples.append(SampleParts(key, parts))
    ids = [f"agent_x.{name}_corrected" for name in COLUMNS.values() if name != "toolset_acc"]
    left_out = _left_out(ids, table, bool(predictions), data)
    metrics = summed(samples, [*ids, _TOOLSET], left_out)
    if _GOAL_STAR not in left_out:
        of_images = [sample for sample in samples if sample.key in generative]
        values = [
            figure.value
            for figure in summed(of_images, _STAR_PARTS).values()
            if figure.value is not None
        ]
        complete = len(values) == len(_STAR_PARTS)
        metrics[_GOAL_STAR] = Figure(
            sum(values) / len(values) if complete else None, len(of_images)
        )
    return PredictionScores("single-shot", metrics, counts, left_out, tuple(samples))


def _judged_parts(
    scores: Mapping[str, float | None], columns: Mapping[str, str], counts: dict[str, int]
) -> dict[str, ScoreSum]:
    for column in columns:
        counts["missing_scores"] += column not in scores
        counts["unreadable_scores"] += column in scores and scores[column] is None
    return {metric: ScoreSum(scores.get(column) or 0.0, 1) for column, metric in columns.items()}


def generative_ids(data: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the samples whose query type asks for an image to be generated.

    If no query type does, the samples in the published list are returned, with its positions taken as ids.
    """
    generative = {
        key
        for key, sample in data.items()
        if "generat" in str(sample.get("query_type", "")).lower()
    }
    return generative or {str(row) for row in GENERATIVE_ROWS if str(row) in data}


def _judged(table: JudgeTable | None, ids: list[str]) -> dict[str, Mapping[str, float | None]]:
    if table is None:
        return {}
    if table.ids is None and ids and len(ids) != len(table.rows):
        raise BenchmarkError(
            f"the table of scores has {len(table.rows)} rows without ids, but there are {len(ids)} predictions",
            hint="add a column named id",
        )
    positions = [str(position) for position in range(len(table.rows))]
    names = table.ids if table.ids is not None else ids or positions
    pairs = [pair for pair in zip(names, table.scores, strict=True) if pair[0]]
    return dict(reversed(pairs))


def _keys(data: Mapping[str, Any] | None, known: Mapping[str, Any]) -> list[str]:
    """Return the ids of the expected samples; ``known``: samples with predictions or judgements."""
    if data is None:
        return list(known)
    strangers = [key for key in known if key not in data]
    if 2 * len(strangers) > len(known):
        raise BenchmarkError(
            f'the data set has no sample "{strangers[0]}" ({len(strangers)} such)',
            hint="give the data set that the predictions were made on",
        )
    return list(data)


def steps_of(entry: Any) -> list[Any]:
    """Return the steps of a prediction or gold sample, some of which are wrapped in a list; empty for another form."""
    steps: Any = entry.get("reasoning_steps") if is_object(entry) else None
    if is_list(steps) and len(steps) == 1 and is_list(steps[0]):
        steps = steps[0]
    return steps if is_list(steps) else []


def tools_of(entry: Any) -> frozenset[str]:
    """Return the names of the tools that the steps of a prediction or gold sample use."""
    named = [
        step.get("tool_used") or step.get("tool") for step in steps_of(entry) if is_object(step)
    ]
    names = {name.strip() for name in named if is_text(name)}
    return frozenset(name for name in names if name and name.lower() not in ("null", "none"))


def _left_out(
    ids: Sequence[str],
    table: JudgeTable | None,
    has_predictions: bool,
    data: Mapping[str, Any] | None,
) -> dict[str, str]:
    if table is None:
        reasons = dict.fromkeys(ids, "needs the replies of the judge (--judgements)")
    else:
        absent = [
            f"agent_x.{name}_corrected"
            for column, name in COLUMNS.items()
            if column not in table.columns
        ]
        reasons = dict.fromkeys(
            [name for name in absent if name in ids], "not in what the judge said"
        )
    if not has_predictions or data is None:
        reasons[_TOOLSET] = "needs the predictions and the data set (--data)"
    if missing := [name for name in _STAR_PARTS if name in reasons]:
        reasons[_GOAL_STAR] = (
            f"needs {', '.join(name.split('.')[1].removesuffix('_corrected') for name in missing)}"
        )
    return reasons


FAMILY = "agent-x"
PUBLISHED_JUDGES = ("GPT-4o", "Qwen-14B")
"""Models that judged for the paper, as spelled in its tables."""
_NO_JUDGE = "no judge was asked: agrotools score RUN --judge MODEL"


def agent_x_figures(run: PublishedRun) -> PublishedFigures | None:
    """Compute the figures of one mode; None if its records hold no predictions (step-by-step, or no valid record).

    A prediction with neither steps nor an answer, for which no judge is asked, scores 0. A reply without a score is
    ignored in the published metrics and scores 0 in the corrected ones.

    Invalid records and repeated epochs are ignored, because prediction files have neither. ``differs`` also names the
    judges and their rubrics.
    """
    mode, judges = run.mode, run.judges
    valid = [
        record
        for record in in_file_order(run.records)
        if record.epoch == 0 and not is_invalid(record)
    ]
    valid = [record for record in valid if record.trajectory is not None]
    if mode == "step-by-step" or not valid:
        return None
    keys = [str(record.sample.metadata.get("entry", record.sample.id)) for record in valid]
    predictions = [{key: prediction_of(record)} for key, record in zip(keys, valid, strict=True)]
    table = _table(valid, keys, judges)
    data = {key: gold_of(record.sample) for key, record in zip(keys, valid, strict=True)}
    ours = score(table, predictions, data)
    estimates = {
        metric: ours.estimate(metric)
        or (None if value is None else Estimate(value=value / 100, n=n, n_clusters=n))
        for metric, (value, n) in ours.metrics.items()
    }
    stops, reference = "", {}
    if table is not None:
        places = [record.sample.metadata.get("position") for record in valid]
        generative = [at for at, place in enumerate(places) if place in GENERATIVE_ROWS]
        try:
            reference = aggregate(table.rows, generative).shares
        except PublishedScorerStops as error:
            stops = error.message
    named = (
        f"judged by {', '.join(judges.criteria_judges)} (the paper: {', '.join(PUBLISHED_JUDGES)})"
    )
    judging = (named, judges.rubrics_label) if table else ()
    return PublishedFigures(
        family=FAMILY,
        reference=reference,
        stops=stops,
        corrected={
            metric: estimate for metric, estimate in estimates.items() if estimate is not None
        },
        left_out={
            **({} if table else dict.fromkeys(_REFERENCE_METRICS, _NO_JUDGE)),
            **ours.left_out,
            **_ONE_SIDED,
        },
        counts=published_counts(predictions),
        differs=(*_differences(run.manifest, mode), *judging),
    )


_ONE_SIDED = {
    "agent_x.toolset_acc_corrected": "estimated by a judge; agent_x.toolset_f1 is computed exactly",
    "agent_x.toolset_f1": "not in the paper, where a judge estimates it",
}
_REFERENCE_METRICS = [*(f"agent_x.{name}" for name in COLUMNS.values()), "agent_x.goal_acc_imggen"]


def published_counts(predictions: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the counts of Agent-X's notebooks for predictions (calls, format errors), without those that raise an
    exception.

    The two error classes that depend on spaCy keywords are excluded.
    """
    counts: dict[str, int] = {}
    with suppress(PublishedScorerStops):
        calls = tool_call_statistics(predictions)
        counts["steps"] = calls["steps"]
        counts |= {f"{kind}_calls": calls[kind] for kind in ("successful", "failed", "invalid")}
        counts["samples_without_steps"] = calls["empty_samples"]
    return {**counts, **error_analysis(predictions).counts}


def _table(records: Sequence[Record], keys: Sequence[str], judges: JudgedRows) -> JudgeTable | None:
    """Return the judges' scores as a table of the notebooks; None if no judge was asked."""
    criteria = {
        column: f"agent_x.{name}"
        for column, name in COLUMNS.items()
        if f"agent_x.{name}" in judges.metrics
    }
    if not criteria:
        return None
    rows = tuple(
        {column: values.get(metric) if values else 0.0 for column, metric in criteria.items()}
        for values in map(judges.values, records)
    )
    return JudgeTable(rows, tuple(keys), raw=False)


def _differences(manifest: Manifest, mode: Mode) -> list[str]:
    """Return the differences of a run from those of the paper, where the model invents what tools return."""
    differences = differences_of_settings(manifest, PAPER_RUN)
    if mode == "end-to-end":
        recorded, others = tools_by_source(manifest)
        ran = "tools ran" if others else "recorded observations" if recorded else ""
        return (
            [*differences, f"{ran}; in the paper the model makes up what tools return"]
            if ran
            else differences
        )
    prompted = manifest.protocol == PAPER_RUN.protocol and not is_baseline(manifest.model)
    return (
        [*differences, "our prompt, which offers only the tools of the question"]
        if prompted
        else differences
    )


SCORING = Scoring(call_scorers={"image_calls": score_image_calls}, published=agent_x_figures)
