"""Prediction files of Agent-X scored twice: as published, and corrected."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agrotools.plugin import PredictionFormat, PredictionInput
from agrotools.scoring.corrected import agent_x as corrected_agent_x
from agrotools.scoring.error_taxonomy_agent_x import errors_of_agent_x
from agrotools.scoring.figures import Scores
from agrotools.scoring.keyword_extraction import keywords
from agrotools.scoring.predictions import agent_x_files
from agrotools.scoring.predictions.compared import Compared
from agrotools.scoring.reference import agent_x
from agrotools.scoring.reference.agent_x_errors import error_analysis
from agrotools.scoring.reference.stops import PublishedScorerStops


def _agent_x(path: Path, data: Path | None, judgements: Path | None) -> Compared:
    is_table = path.suffix.lower() == ".csv"
    predictions, malformed = ([], []) if is_table else agent_x_files.read_predictions(path)
    entries = agent_x_files.read_data(data) if data is not None else None
    source = path if is_table else judgements
    table = agent_x_files.read_judgements(source) if source is not None else None
    published: Scores | None = None
    stop = None
    try:
        if table is not None:
            published = agent_x.aggregate(_numbers(table) if table.raw else table.rows)
    except PublishedScorerStops as error:
        stop = error.message
    if table is None:
        stop = "needs what the judge said (--judgements)"
    extra, count_stops = _published_counts(predictions, entries)
    corrected = corrected_agent_x.score(table, predictions, entries)
    errors = errors_of_agent_x(predictions, entries)
    samples = corrected.counts["samples"]
    malformed += table.malformed if table is not None else ()
    return Compared(
        "agentx", "single-shot", samples, published, corrected, errors, stop, extra, count_stops, tuple(malformed)
    )


def _published_counts(
    predictions: Sequence[Any], entries: Mapping[str, Mapping[str, Any]] | None
) -> tuple[dict[str, Mapping[str, int | None]], tuple[str, ...]]:
    """What Agent-X's code counts in predictions. Each count stands by itself: where its own code ends with an
    exception, that is said, and it is counted by the same rule with what is malformed as empty."""
    if not predictions:
        return {}, ()
    extra: dict[str, Mapping[str, int | None]] = {}
    stops: list[str] = []
    raw = {key: [sample] for key, sample in entries.items()} if entries is not None else None
    try:
        extra["tool calls as published"] = agent_x.tool_call_statistics(predictions).as_counts()
    except PublishedScorerStops as stop:
        extra[f"tool calls, {_MENDED}"] = agent_x.tool_call_statistics(agent_x.mended(predictions)).as_counts()
        stops.append(f"tool calls: {stop.message}")
    errors = error_analysis(predictions, raw, keywords)
    extra["errors as published"] = {"samples": errors.samples, **errors.counts}
    if errors.stops:
        again = error_analysis(agent_x.mended(predictions), raw, keywords).counts
        extra[f"errors, {_MENDED}"] = {error: again.get(error) for error in errors.stops}
        stops += [f"{error}: {stop.message}" for error, stop in errors.stops.items()]
    return extra, tuple(stops)


_MENDED = "what is malformed taken as empty"


def _numbers(table: agent_x_files.JudgeTable) -> list[dict[str, float | None]]:
    """Whole replies as numbers, by our reading: how the published tables read them is not known."""
    return [
        {column: score.value for column, score in scores.items() if column in row}
        for row, scores in zip(table.rows, table.scores, strict=True)
    ]


_READ = "missing or unreadable is 0"
_JUDGED = ("ground_s", "tool_p", "tool_acc", "faith_acc", "context_s", "fact_p", "sem_acc", "step_s", "clarity")
_AGENT_X = {
    **dict.fromkeys((*_JUDGED, "reward"), _READ),
    "goal_acc": f"generative tasks by their type; {_READ}",
    "goal_acc_imggen": f"generative tasks by their type, tool sets by code; {_READ}",
    "toolset_acc": "replaced by toolset_f1",
    "toolset_f1": "tool sets are compared by code",
}
"""What each corrected metric does otherwise; docs/reference-scorers.md says it at length, with a worked number each."""


def _agentx(given: PredictionInput) -> Compared:
    return _agent_x(given.file, given.data, given.judgements)


AGENT_X_FORMAT = PredictionFormat(
    "Agent-X",
    "agent_x",
    _agentx,
    {f"agent_x.{name}": text for name, text in _AGENT_X.items()},
    refused={"embedder": ("Agent-X compares no texts by cosines: --embedder is for gta and thinkgeo", "leave it out")},
)
