"""Prediction files and data set of Agent-X, and scores of a file as published and corrected.

Predictions are a list of objects with one key each, the id of the sample. A sample without output has empty texts in
place of its steps and its answer, or is missing.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agrotools.benchmarks._dialogs.record_dialogues import in_file_order
from agrotools.benchmarks.agent_x import score as corrected_scorer
from agrotools.benchmarks.agent_x.judge import JudgeTable, read_judgements
from agrotools.benchmarks.agent_x.plugin import FACTS
from agrotools.benchmarks.agent_x.published_scorer import COLUMNS, aggregate, error_analysis, tool_call_statistics
from agrotools.benchmarks.agent_x.replies import prediction_of
from agrotools.benchmarks.facts import differences_of
from agrotools.core import BenchmarkError, Mode, Record
from agrotools.plugin import PredictionContent, PredictionFormat, PredictionInput
from agrotools.runner.manifest import Manifest
from agrotools.scoring.predictions import PublishedScorerStops, ScoredFile, Scores, read_json
from agrotools.text.loose_json import is_list, is_object, is_text
from agrotools.text.normalise import data_lines

_FORM = 'predictions look like [{"0": {"query": ..., "reasoning_steps": [...], "final_answer": {...}}}, ...]'


def read_predictions(path: Path) -> tuple[list[Any], list[str]]:
    """Read predictions and descriptions of malformed parts from a file. Raises :class:`BenchmarkError` for another
    form."""
    return parse_predictions(read_json(path), path.name)


def parse_predictions(data: Any, name: str) -> tuple[list[Any], list[str]]:
    """Return the items of a list of one-key objects unchanged, and descriptions of malformed parts with their place.

    Raises:
        BenchmarkError: the data are not a list, or hold no prediction.
    """
    if not is_list(data):
        raise BenchmarkError(f"{name} is no list", hint=_FORM)
    seen: set[str] = set()
    malformed: list[str] = []
    for position, item in enumerate(data):
        pairs: list[tuple[str, Any]] = list(item.items()) if is_object(item) else []
        if len(pairs) != 1:
            malformed.append(f"{name}, item {position} is no object with one key")
        for key, value in pairs:
            where = f'{name}, key "{key}"'
            malformed += [f"{where} stands there twice"] if key in seen else _faults(value, where)
            seen.add(key)
    if data and not seen:
        raise BenchmarkError(malformed[0], hint=_FORM)
    return data, malformed


def _faults(entry: Any, where: str) -> Iterator[str]:
    """Yield descriptions of the malformed parts of a prediction; missing keys are counted elsewhere."""
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
    """Read the data set by id, each sample out of its list of one; BenchmarkError if it has another form."""
    data = read_json(path)
    if not is_object(data) or not data:
        raise BenchmarkError(f"{path.name} is no object of samples", hint="give data.json of Agent-X")
    samples: dict[str, Mapping[str, Any]] = {}
    for key, entry in data.items():
        sample: Any = entry[0] if is_list(entry) and entry else entry
        if not is_object(sample):
            raise BenchmarkError(f'{path.name}, key "{key}" is no sample', hint="a sample is a list of one object")
        samples[key] = sample
    return samples


def _compare(inputs: PredictionInput) -> ScoredFile:
    path, data, judgements = inputs.file, inputs.data, inputs.judgements
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
        stop = "needs the replies of the judge (--judgements)"
    extra, count_stops = _published_counts(predictions, entries)
    corrected = corrected_scorer.score(table, predictions, entries)
    samples = corrected.counts["samples"]
    malformed += table.malformed if table is not None else ()
    return ScoredFile(
        "agentx", "single-shot", samples, published, corrected, stop, extra, count_stops, tuple(malformed)
    )


def _published_counts(
    predictions: Sequence[Any], entries: Mapping[str, Mapping[str, Any]] | None
) -> tuple[dict[str, Mapping[str, int | None]], tuple[str, ...]]:
    """Return counts that Agent-X's code makes of predictions, and the counts at which it raises an exception."""
    if not predictions:
        return {}, ()
    extra: dict[str, Mapping[str, int | None]] = {}
    stops: list[str] = []
    try:
        extra["tool calls as published"] = tool_call_statistics(predictions)
    except PublishedScorerStops as stop:
        stops.append(f"tool calls: {stop.message}")
    raw = {key: [sample] for key, sample in entries.items()} if entries is not None else None
    errors = error_analysis(predictions, raw, keywords)
    extra["errors as published"] = {"samples": errors.samples, **errors.counts}
    return extra, (*stops, *(f"{error}: {stop.message}" for error, stop in errors.stops.items()))


def _numbers(table: JudgeTable) -> list[dict[str, float | None]]:
    """Convert complete replies to numbers with the parser of this package, because the published one is not known."""
    return [
        {column: scores.get(column) for column in row if column in COLUMNS}
        for row, scores in zip(table.rows, table.scores, strict=True)
    ]


def _content(_: Manifest, mode: Mode, records: Sequence[Record]) -> PredictionContent | None:
    if mode == "step-by-step":
        return None
    ordered = in_file_order(records)
    return PredictionContent([{str(each.sample.metadata.get("entry", "")): prediction_of(each)} for each in ordered])


FORMAT = PredictionFormat(
    "Agent-X",
    "agent_x",
    _compare,
    differences_of(FACTS, "agent_x"),
    refused={"embedder": ("Agent-X compares no texts by cosines: --embedder is for gta and thinkgeo", "leave it out")},
    write=_content,
)


# --- keywords of a text, instead of the nouns that Agent-X extracts with spaCy ---------------------------------------

_MOST_KEYWORDS = 21
_WORD = re.compile(r"[^\W\d_][^\W_]{1,28}(?![^\W_])")


def keywords(text: str) -> list[str]:
    """Return at most 21 keywords of ``text`` in lower case, by frequency and then by position."""
    words = (_singular(word) for word in map(str.lower, _WORD.findall(text)) if _may_be_noun(word))
    return [word for word, _ in Counter(words).most_common(_MOST_KEYWORDS)]


@cache
def _function_words() -> frozenset[str]:
    return frozenset(" ".join(data_lines("function_words.txt")).split())


def _may_be_noun(word: str) -> bool:
    return word not in _function_words() and not (word.endswith("ly") and len(word) > 4)


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
