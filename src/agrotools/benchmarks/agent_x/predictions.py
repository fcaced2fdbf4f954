"""Agent-X's prediction files and data set, and the comparison of a file as published and corrected.

Predictions are a list of objects with one key each, the id of the sample. A sample for which nothing came out has
empty texts in the place of its steps and its answer; others are absent.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agrotools.benchmarks.agent_x import corrected_scorer
from agrotools.benchmarks.agent_x.error_classes import errors_of_agent_x
from agrotools.benchmarks.agent_x.judge_replies import JudgeTable, read_judgements
from agrotools.benchmarks.agent_x.published_errors import error_analysis
from agrotools.benchmarks.agent_x.published_scorer import aggregate, mended, tool_call_statistics
from agrotools.core import BenchmarkError
from agrotools.plugin import PredictionFormat, PredictionInput
from agrotools.scoring.errors_in_records import keywords
from agrotools.scoring.predictions import Compared, PublishedScorerStops, Scores, read_json
from agrotools.text.loose_json import is_list, is_object, is_text

_FORM = 'predictions look like [{"0": {"query": ..., "reasoning_steps": [...], "final_answer": {...}}}, ...]'


def read_predictions(path: Path) -> tuple[list[Any], list[str]]:
    """Raises :class:`BenchmarkError` where the file cannot be read or is no list of predictions."""
    return parse_predictions(read_json(path), path.name)


def parse_predictions(found: Any, name: str) -> tuple[list[Any], list[str]]:
    """The items of a list of one-key objects as they stand, and what is malformed in them, by its place in the file.

    Raises:
        BenchmarkError: it is no list, or holds no prediction at all.
    """
    if not is_list(found):
        raise BenchmarkError(f"{name} is no list", hint=_FORM)
    seen: set[str] = set()
    malformed: list[str] = []
    for position, item in enumerate(found):
        pairs: list[tuple[str, Any]] = list(item.items()) if is_object(item) else []
        if len(pairs) != 1:
            malformed.append(f"{name}, item {position} is no object with one key")
        for key, value in pairs:
            where = f'{name}, key "{key}"'
            malformed += [f"{where} stands there twice"] if key in seen else _faults(value, where)
            seen.add(key)
    if found and not seen:
        raise BenchmarkError(malformed[0], hint=_FORM)
    return found, malformed


def _faults(entry: Any, where: str) -> Iterator[str]:
    """What in a prediction is of another form than it should be; keys that are missing are counted elsewhere."""
    if not is_object(entry):
        yield f"{where} is no prediction"
        return
    steps: Any = entry.get("reasoning_steps", [])
    listed: list[Any] = steps if is_list(steps) else []
    if not is_list(steps) and steps != "":
        yield f"{where}: reasoning_steps is no list"
    for place, step in enumerate(listed):
        if not is_object(step):
            yield f"{where}: reasoning_steps[{place}] is no object"
        else:
            yield from (
                f"{where}: reasoning_steps[{place}].{name} is no text"
                for name in ("task", "tool", "tool_used", "thought")
                if (value := step.get(name, "")) is not None or name in ("task", "thought")
                if not is_text(value)
            )
    if not is_object(entry.get("final_answer", {})):
        yield f"{where}: final_answer is no object"


def read_data(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """The data set by id, each sample out of its list of one.

    Raises:
        BenchmarkError: it cannot be read or is of another form.
    """
    found = read_json(path)
    if not is_object(found) or not found:
        raise BenchmarkError(f"{path.name} is no object of samples", hint="give data.json of Agent-X")
    samples: dict[str, Mapping[str, Any]] = {}
    for key, entry in found.items():
        sample: Any = entry[0] if is_list(entry) and entry else entry
        if not is_object(sample):
            raise BenchmarkError(f'{path.name}, key "{key}" is no sample', hint="a sample is a list of one object")
        samples[key] = sample
    return samples


_MENDED = "what is malformed taken as empty"
_READ = "missing or unreadable is 0"
_JUDGED = ("ground_s", "tool_p", "tool_acc", "faith_acc", "context_s", "fact_p", "sem_acc", "step_s", "clarity")
_DIFFERENCES = {
    **dict.fromkeys((*_JUDGED, "reward"), _READ),
    "goal_acc": f"generative tasks by their type; {_READ}",
    "goal_acc_imggen": f"generative tasks by their type, tool sets by code; {_READ}",
    "toolset_acc": "replaced by toolset_f1",
    "toolset_f1": "tool sets are compared by code",
}
"""By the end of its id, what each corrected metric does otherwise; docs/reference-scorers.md explains each."""


def _compare(given: PredictionInput) -> Compared:
    path, data, judgements = given.file, given.data, given.judgements
    is_table = path.suffix.lower() == ".csv"
    predictions, malformed = ([], []) if is_table else read_predictions(path)
    entries = read_data(data) if data is not None else None
    source = path if is_table else judgements
    table = read_judgements(source) if source is not None else None
    published: Scores | None = None
    stop = None
    try:
        if table is not None:
            published = aggregate(_numbers(table) if table.raw else table.rows)
    except PublishedScorerStops as error:
        stop = error.message
    if table is None:
        stop = "needs what the judge said (--judgements)"
    extra, count_stops = _published_counts(predictions, entries)
    corrected = corrected_scorer.score(table, predictions, entries)
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
        extra["tool calls as published"] = tool_call_statistics(predictions).as_counts()
    except PublishedScorerStops as stop:
        extra[f"tool calls, {_MENDED}"] = tool_call_statistics(mended(predictions)).as_counts()
        stops.append(f"tool calls: {stop.message}")
    errors = error_analysis(predictions, raw, keywords)
    extra["errors as published"] = {"samples": errors.samples, **errors.counts}
    if errors.stops:
        again = error_analysis(mended(predictions), raw, keywords).counts
        extra[f"errors, {_MENDED}"] = {error: again.get(error) for error in errors.stops}
        stops += [f"{error}: {stop.message}" for error, stop in errors.stops.items()]
    return extra, tuple(stops)


def _numbers(table: JudgeTable) -> list[dict[str, float | None]]:
    """Whole replies as numbers, by our reading: how the published tables read them is not known."""
    return [
        {column: score.value for column, score in scores.items() if column in row}
        for row, scores in zip(table.rows, table.scores, strict=True)
    ]


FORMAT = PredictionFormat(
    "Agent-X",
    "agent_x",
    _compare,
    {f"agent_x.{name}": text for name, text in _DIFFERENCES.items()},
    refused={"embedder": ("Agent-X compares no texts by cosines: --embedder is for gta and thinkgeo", "leave it out")},
)
