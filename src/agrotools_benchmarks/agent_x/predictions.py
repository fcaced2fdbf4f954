"""Prediction files and data set of Agent-X, scores of a file as published and corrected, and counts of error classes.

Predictions are a list of objects with one key each, the id of the sample. A sample without output has empty texts in
place of its steps and its answer, or is missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agrotools.core import BenchmarkError, Mode, Record
from agrotools.formats.manifest import Manifest
from agrotools.loading.facts import differences_of
from agrotools.scoring.contracts import RecordErrors
from agrotools.scoring.error_classes import IN_HEAD, IN_HEAD_REASON, Errors, keywords
from agrotools.scoring.prediction_format import PredictionContent, PredictionFormat, PredictionInput
from agrotools.scoring.predictions import (
    PredictionScores,
    PublishedScorerStops,
    ScoredFile,
    read_json,
)
from agrotools.text.json_kinds import is_list, is_object, is_text
from agrotools_benchmarks._dialogs.record_dialogues import in_file_order
from agrotools_benchmarks.agent_x import score as corrected_scorer
from agrotools_benchmarks.agent_x.judge import read_judgements
from agrotools_benchmarks.agent_x.plugin import FACTS
from agrotools_benchmarks.agent_x.published_scorer import (
    COLUMNS,
    aggregate,
    error_analysis,
    tool_call_statistics,
)
from agrotools_benchmarks.agent_x.replies import (
    gold_of,
    prediction_of,
    raw_object,
    without_thinking,
)

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
        raise BenchmarkError(
            f"{path.name} is no object of samples", hint="give data.json of Agent-X"
        )
    samples: dict[str, Mapping[str, Any]] = {}
    for key, entry in data.items():
        sample: Any = entry[0] if is_list(entry) and entry else entry
        if not is_object(sample):
            raise BenchmarkError(
                f'{path.name}, key "{key}" is no sample', hint="a sample is a list of one object"
            )
        samples[key] = sample
    return samples


def _compare(inputs: PredictionInput) -> ScoredFile:
    path, data, judgements = inputs.file, inputs.data, inputs.judgements
    is_table = path.suffix.lower() == ".csv"
    predictions, malformed = ([], []) if is_table else read_predictions(path)
    entries = read_data(data) if data is not None else None
    source = path if is_table else judgements
    table = read_judgements(source) if source is not None else None
    published: PredictionScores | None = None
    stop = None
    try:
        if table is not None:
            # The parser of complete replies is this package's, because the published one is not known.
            pairs = zip(table.rows, table.scores, strict=True)
            numbers = (
                {name: scores.get(name) for name in row if name in COLUMNS} for row, scores in pairs
            )
            published = aggregate([*numbers] if table.raw else table.rows)
    except PublishedScorerStops as error:
        stop = error.message
    if table is None:
        stop = "needs the replies of the judge (--judgements)"
    extra, count_stops = _published_counts(predictions, entries)
    corrected = corrected_scorer.score(table, predictions, entries)
    errors = errors_of_agent_x(predictions, entries)
    all_malformed = (*malformed, *(table.malformed if table is not None else ()))
    n, mode = corrected.counts["samples"], "single-shot"
    return ScoredFile(
        "agentx", mode, n, published, corrected, errors, stop, extra, count_stops, all_malformed
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


def _content(_: Manifest, mode: Mode, records: Sequence[Record]) -> PredictionContent | None:
    if mode == "step-by-step":
        return None
    ordered = in_file_order(records)
    return PredictionContent(
        [{str(each.sample.metadata.get("entry", "")): prediction_of(each)} for each in ordered]
    )


FORMAT = PredictionFormat(
    "Agent-X",
    "agent_x",
    _compare,
    differences_of(FACTS, "agent_x"),
    refused={
        "embedder": (
            "Agent-X compares no texts by cosines: --embedder is for gta and thinkgeo",
            "leave it out",
        )
    },
    write=_content,
)


OF_CALLS = (
    "format_error",
    "invalid_json",
    "invalid_arguments",
    "valid_call_failed",
    "redundant_call",
)
"""Error classes of calls that are actually executed."""
_STEP_KEYS = frozenset(("step", "task", "tool_used", "tool_output", "thought"))
_NOTHING = (None, "", "null")


def errors_of_agent_x(predictions: Sequence[Any], data: Mapping[str, Any] | None = None) -> Errors:
    """Count the errors in a list of one-key objects. ``data``: data set by id, which provides keywords and tools.

    Unlike in the published notebook, a sample without a response counts only as such, a sample without gold counts for
    no keyword class, and the step keys ``tool`` and ``output`` are as valid as ``tool_used`` and ``tool_output``.
    """
    errors = Errors(total=len(predictions))
    errors.skip(OF_CALLS, "no tool is run, and predictions hold no arguments")
    errors.skip((IN_HEAD,), IN_HEAD_REASON)
    if data is None:
        errors.skip(
            ("no_answer_keyword", "no_step_keyword", "single_step_answer"), "needs the data set"
        )
    for position, item in enumerate(predictions):
        pairs = list(item.items()) if is_object(item) else [(str(position), item)]
        for key, entry in pairs:
            _errors_of_entry(str(key), entry, (data or {}).get(str(key)), errors)
    return errors


def add_single_reply(record: Record, errors: Errors) -> None:
    """Count the errors of a valid record whose model wrote steps, tool outputs and answer in one reply.

    Query and file name, which Agent-X's predictions also contain, are not requested from a model here and not missed. A
    reply without any JSON object counts as thought only; one with an unreadable object has an invalid format.
    """
    sample, trajectory = record.sample, record.trajectory
    errors.total += 1
    replies = [step.reply for step in trajectory.steps if step.reply] if trajectory else []
    last = trajectory and (trajectory.halted_by or (replies[-1] if replies else None))
    text = last.text if last else ""
    entry: Any = raw_object(text)
    if entry is None:
        error = "invalid_format" if "{" in without_thinking(text) else "only_thought"
        errors.add(error if text.strip() else "no_response", sample.id)
        return
    _errors_of_entry(sample.id, {"query": "", "filename": "", **entry}, gold_of(sample), errors)


def _errors_of_entry(key: str, entry: Any, gold: Any, errors: Errors) -> None:
    if not is_object(entry):
        errors.add("invalid_format", key)
        return
    raw: Any = entry.get("reasoning_steps")
    steps: list[Any] = raw if is_list(raw) else []
    answer: Any = entry.get("final_answer")
    value: Any = answer.get("value") if is_object(answer) else answer
    answered = value not in _NOTHING
    errors.steps += len(steps)
    if not steps and not answered:
        errors.add("no_response", key)
        return
    if not steps:
        errors.add("only_thought", key)
    faulty = _is_faulty(entry, raw, answer)
    errors.add("invalid_format", key, int(faulty))
    errors.add("answer_in_invalid_format", key, int(faulty and answered))
    _errors_of_steps(key, steps, errors)
    if is_object(gold):
        if not steps and corrected_scorer.steps_of(gold):
            errors.add("single_step_answer", key)
        _missed_keywords(key, entry, steps, gold, errors)


def _is_faulty(entry: Any, steps: Any, answer: Any) -> bool:
    if not all(name in entry for name in ("query", "filename")) or not is_list(steps):
        return True
    if not is_object(answer) or "value" not in answer or "justification" not in answer:
        return True
    names = {"tool": "tool_used", "output": "tool_output"}
    return not all(
        is_object(step) and {names.get(key, key) for key in step} >= _STEP_KEYS for step in steps
    )


def _errors_of_steps(key: str, steps: list[Any], errors: Errors) -> None:
    before, repeated = "", False
    for step in filter(is_object, steps):
        tool: Any = step.get("tool_used") or step.get("tool")
        output: Any = step.get("tool_output") or step.get("output")
        if is_list(tool):
            errors.add("several_calls", key, int(len(tool) > 1))
        if not is_text(tool) or tool.strip() in _NOTHING:
            before = ""
            continue
        names = [name.strip() for name in tool.split(",")]
        errors.add("several_calls", key, int(len(names) > 1))
        errors.add("wrong_tool_name", key, sum(name not in FACTS["tools"] for name in names))
        errors.add("call_without_output", key, int(output in _NOTHING))
        repeated |= before == tool.strip().lower()
        before = tool.strip().lower()
    errors.add("repeated_tool", key, int(repeated))


def _missed_keywords(key: str, entry: Any, steps: list[Any], gold: Any, errors: Errors) -> None:
    if gold_keywords := keywords(_answer_text(gold.get("final_answer"))):
        answer = _answer_text(entry.get("final_answer")).lower()
        errors.add_keyed(
            "no_answer_keyword", key, not any(word.lower() in answer for word in gold_keywords)
        )
    if steps and (gold_keywords := keywords(_steps_text(corrected_scorer.steps_of(gold)))):
        answer = _steps_text(steps).lower()
        errors.add_keyed(
            "no_step_keyword", key, not any(word.lower() in answer for word in gold_keywords)
        )


def _answer_text(answer: Any) -> str:
    return (
        f"{answer.get('value', '')} {answer.get('justification', '')}"
        if is_object(answer)
        else str(answer or "")
    )


def _steps_text(steps: list[Any]) -> str:
    fields = ("task", "tool", "tool_used", "output", "tool_output", "thought")
    return " ".join(str(step.get(name, "")) for step in steps if is_object(step) for name in fields)


SINGLE_REPLY = RecordErrors(
    add_single_reply,
    dict.fromkeys(OF_CALLS, "no tool is executed, and the predicted calls have no arguments"),
)
