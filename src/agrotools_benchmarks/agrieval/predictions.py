"""Result files of AgriEval: its questions with a model's replies, as its scripts write them.

A result file is a list of data set entries, each with ``generated_answer`` if the model was asked (eval/choice_run.py,
eval/qa_run.py), or with ``response``, a text or a list of texts (eval/run_multi_choice_base.py). Entries with options
are choice questions, others are open questions; both hold the correct answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agrotools.core import BenchmarkError
from agrotools.loading.facts import differences_of
from agrotools.scoring.prediction_format import PredictionFormat, PredictionInput
from agrotools.scoring.predictions import (
    PredictionScores,
    PublishedScorerStops,
    SampleParts,
    ScoredFile,
    ScoreSum,
    read_json,
    summed,
)
from agrotools.text.json_kinds import is_list, is_object, is_text
from agrotools_benchmarks.agrieval.items import UnusableEntry, read_item, slot_of
from agrotools_benchmarks.agrieval.plugin import FACTS, KINDS, OptionsSlot, ReferenceTextSlot
from agrotools_benchmarks.agrieval.published_scorer import score_choices, score_open
from agrotools_benchmarks.agrieval.score import read_options, text_values

_FORM = 'results look like [{"question": ..., "options": {...}, "answer": "A", "generated_answer": ...}, ...]'


@dataclass(frozen=True)
class Answered:
    """Question that can be scored. ``replies`` are empty if the model gave none, which counts as wrong."""

    key: str
    slot: OptionsSlot | ReferenceTextSlot
    replies: tuple[str, ...]


@dataclass(frozen=True)
class Results:
    """Content of a result file: its raw entries of both kinds, and the questions that can be scored (``answered``)."""

    choices: tuple[Mapping[str, Any], ...]
    open_questions: tuple[Mapping[str, Any], ...]
    answered: tuple[Answered, ...]
    malformed: tuple[str, ...]


def read_results(path: Path) -> Results:
    """Read a result file. Raises :class:`BenchmarkError` if it contains no question with its answer."""
    data = read_json(path)
    if not is_list(data):
        raise BenchmarkError(f"{path.name} is not a list", hint=_FORM)
    entries: list[Mapping[str, Any]] = [entry for entry in data if is_object(entry)]
    answered: list[Answered] = []
    malformed: list[str] = []
    for position, entry in enumerate(data):
        where = f"{path.name}, entry {position}"
        slot = _slot(entry)
        if slot is None:
            malformed.append(f"{where} is not a question with an answer")
            continue
        reply: Any = entry.get("generated_answer", entry.get("response"))
        replies: list[Any] = reply if is_list(reply) else [reply]
        texts = (
            tuple(each if is_text(each) else "" for each in replies) if reply is not None else ()
        )
        if reply is not None and not all(map(is_text, replies)):
            malformed.append(f"{where}: the reply is no text")
        answered.append(Answered(str(position), slot, texts))
    if not answered:
        raise BenchmarkError(f"{path.name} contains no question with an answer", hint=_FORM)
    choices = tuple(entry for entry in entries if "options" in entry)
    open_questions = tuple(entry for entry in entries if "options" not in entry)
    return Results(choices, open_questions, tuple(answered), tuple(malformed))


def _slot(entry: Any) -> OptionsSlot | ReferenceTextSlot | None:
    """Return the slot of the question; None if the question or its answer cannot be read."""
    if not is_object(entry):
        return None
    # Neither the text of a question nor the kind of an open one is needed.
    fields = {name: entry[name] for name in ("answer", "options") if name in entry} | {
        "question": "-"
    }
    if "options" in entry:
        kind: Any = entry.get("question_type")
        if not (is_object(entry["options"]) and is_text(kind) and kind in KINDS):
            return None
        fields["question_type"] = kind
    try:
        item = read_item(fields)
    except UnusableEntry:
        return None
    return slot_of(item, item.options, item.answer)


def compare_results(inputs: PredictionInput) -> ScoredFile:
    """Score the file as AgriEval's own code does, and as runs are scored in this package."""
    results = read_results(inputs.file)
    published = PredictionScores("", {}, {})
    stops: list[str] = []
    for score, entries in ((score_choices, results.choices), (score_open, results.open_questions)):
        try:
            scored = score(entries) if entries else published
        except PublishedScorerStops as error:
            stops.append(error.message)
            continue
        left_out = {**published.left_out, **scored.left_out}
        published = PredictionScores("", {**published.metrics, **scored.metrics}, {}, left_out)
    samples = tuple(_parts(each) for each in results.answered)
    metrics = dict.fromkeys(metric for sample in samples for metric in sample.parts)
    counts: dict[str, int] = dict.fromkeys(("choices", "open_questions", "without_reply"), 0)
    for each in results.answered:
        counts["choices" if each.slot.type == "options" else "open_questions"] += 1
        if not each.replies:
            counts["without_reply"] += 1
    ours = PredictionScores("", summed(samples, metrics), counts, {}, samples)
    mode = " and ".join(
        name.replace("_", " ") for name in ("choices", "open_questions") if counts[name]
    )
    stop = "; ".join(stops) or None
    return ScoredFile(
        "agrieval", mode, len(samples), published, ours, None, stop, malformed=results.malformed
    )


def _parts(each: Answered) -> SampleParts:
    """Return the mean scores over the replies to a question; a missing reply scores like an empty text."""
    rows = [
        read_options(each.slot, reply)[1]
        if isinstance(each.slot, OptionsSlot)
        else text_values(each.slot, reply)
        for reply in each.replies or ("",)
    ]
    mine = [name for name in rows[0] if not name.endswith("_published")]
    return SampleParts(
        each.key, {name: ScoreSum(sum(row[name] for row in rows) / len(rows), 1) for name in mine}
    )


_NOT_HERE = ("AgriEval's result files hold the answers, and have no judge", "give the file alone")
FORMAT = PredictionFormat(
    "AgriEval",
    "agrieval",
    compare_results,
    differences_of(FACTS, "agrieval"),
    published_suffix="_published",
    corrected_suffix="",
    refused={
        "embedder": (
            "AgriEval compares no texts by cosines: --embedder is for gta and thinkgeo",
            "leave it out",
        ),
        "data": _NOT_HERE,
        "judgements": _NOT_HERE,
    },
)
