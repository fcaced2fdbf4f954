"""How Agent-X counts errors (its Table 10), to the letter.

Written anew from the behaviour of "statistical breakdown/error_analysis.ipynb" (github.com/mbzuai-oryx/Agent-X, commit
d0278bba488c06d0cfecd6e53231f18120529398). The classes overlap: one sample may count for several. The notebook takes
keywords from spaCy's en_core_web_sm; here whoever calls gives the function that takes them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agrotools.scoring.predictions import PublishedScorerStops, published
from agrotools.text.loose_json import is_list, is_object, is_text

Keywords = Callable[[str], Sequence[str]]
"""The keywords of a text, at most 21."""

_TOP_KEYS = ("query", "filename", "final_answer")
_STEP_KEYS = frozenset(("step", "task", "tool_used", "tool_output", "thought"))


@dataclass(frozen=True)
class ErrorAnalysis:
    """``counts``: samples of each class that the notebook comes to a number for. ``stops``: of each other one, with
    what exception its part of the notebook ends; the classes of keywords are in neither where no gold was given.

    Classes go by what the notebook looks for; the paper's words for some of them differ. ``invalid_format``: "invalid
    JSON format in argument specification"; ``repeated_tool``: "multiple tool calls in a single step";
    ``answer_in_invalid_format``: "final answer generation without adhering to the format"; ``no_answer_keyword``:
    "misinterpreting visual content"; ``no_step_keyword``: "incorrect spatial reasoning".
    """

    samples: int
    counts: Mapping[str, int]
    stops: Mapping[str, PublishedScorerStops]


def error_analysis(
    predictions: Sequence[Any], gold: Mapping[str, Any] | None = None, keywords: Keywords | None = None
) -> ErrorAnalysis:
    """Counts over predictions (a list of one-key objects); ``gold`` is the data set, which keywords come from.

    Each class has a cell of its own in the notebook: where one ends with an exception the others have their counts.
    """
    counts: dict[str, int] = {}
    stops: dict[str, PublishedScorerStops] = {}
    for error, is_one in _CLASSES.items():
        try:
            counts[error] = _counted(predictions, is_one, all_keys=error not in _COUNTED_KEYS)
        except PublishedScorerStops as stop:
            stops[error] = stop
    if gold is not None and keywords is not None:
        for error, gold_text, text in _OF_KEYWORDS:
            try:
                counts[error] = _without_keywords(predictions, _gold_words(gold, gold_text, keywords), text)
            except PublishedScorerStops as stop:
                stops[error] = stop
    return ErrorAnalysis(len(predictions), counts, stops)


def _counted(predictions: Sequence[Any], is_one: Callable[[Any], bool], *, all_keys: bool) -> int:
    """Entries of the class. Keys must be numbers, of all entries or of those that are counted."""
    count = 0
    for position, item in enumerate(predictions):
        with published(f"prediction {position}"):
            for key, value in item.items():
                if all_keys:
                    int(key)
                if is_one(value):
                    int(key)
                    count += 1
    return count


def _answered(value: Any) -> bool:
    answer = value.get("final_answer", {})
    return is_object(answer) and bool(answer.get("value"))


def _tools_of(value: Any) -> tuple[bool, bool]:
    """Whether a step names two tools, and whether a tool comes twice in a row."""
    conflict = repeated = False
    before = None
    for step in value.get("reasoning_steps", []):
        if not is_object(step):
            continue
        used, named = _lowered(step.get("tool_used")), _lowered(step.get("tool"))
        conflict |= bool(used) and bool(named) and used != named
        current = used or named
        repeated |= bool(current) and current == before
        before = current
    return conflict, repeated


def _lowered(name: Any) -> str | None:
    return name.strip().lower() if is_text(name) else None


def _is_faulty(value: Any) -> bool:
    if not all(key in value for key in _TOP_KEYS):
        return True
    answer, steps = value.get("final_answer"), value.get("reasoning_steps", [])
    if not is_object(answer) or "value" not in answer or "justification" not in answer:
        return True
    return not is_list(steps) or any(not is_object(step) or not _STEP_KEYS.issubset(step) for step in steps)


def _gold_words(gold: Mapping[str, Any], text_of: Callable[[Any], str], keywords: Keywords) -> dict[str, Sequence[str]]:
    words: dict[str, Sequence[str]] = {}
    for key, entries in gold.items():
        with published(f"gold sample {key}"):
            if not entries or not is_list(entries):
                continue
            if (text := text_of(entries[0])).strip():
                words[key] = keywords(text)
    return words


def _gold_answer(entry: Any) -> str:
    answer = entry.get("final_answer", {})
    return f"{answer.get('value', '')} {answer.get('justification', '')}"


def _gold_steps(entry: Any) -> str:
    steps = entry.get("reasoning_steps", [])
    if len(steps) == 1 and is_list(steps[0]):
        steps = steps[0]
    fields = ("task", "tool", "output", "thought")
    return " ".join(_plain(step.get(name, "")) for step in steps if is_object(step) for name in fields)


def _answer_text(entry: Any) -> str:
    answer = entry.get("final_answer", {})
    if is_text(answer):
        return answer.lower()
    return f"{answer.get('value', '')} {answer.get('justification', '')}".lower()


def _steps_text(entry: Any) -> str:
    fields = ("task", "tool_used", "tool_output", "thought")
    return " ".join(_plain(step.get(name, "")) for step in entry.get("reasoning_steps", []) for name in fields).lower()


def _plain(value: Any) -> str:
    return json.dumps(value) if is_list(value) or is_object(value) else str(value)


def _without_keywords(
    predictions: Sequence[Any], words: Mapping[str, Sequence[str]], text_of: Callable[[Any], str]
) -> int:
    """Samples whose text has none of the keywords; one that has no gold counts as well."""
    missed: dict[str, bool] = {}
    for position, item in enumerate(predictions):
        with published(f"prediction {position}"):
            keys = list(item.keys())
            key = keys[0]
            text = text_of(item[key])
            missed[key] = not any(word.lower() in text for word in words.get(key, ()))
    return sum(missed.values())


_CLASSES: Mapping[str, Callable[[Any], bool]] = {
    "no_response": lambda value: not value.get("reasoning_steps") and not _answered(value),
    "only_answer": lambda value: not value.get("reasoning_steps") and _answered(value),
    "invalid_format": _is_faulty,
    "conflicting_tools": lambda value: _tools_of(value)[0],
    "repeated_tool": lambda value: _tools_of(value)[1],
    "answer_in_invalid_format": lambda value: _answered(value) and _is_faulty(value),
}
_COUNTED_KEYS = ("no_response", "only_answer")
_OF_KEYWORDS = (
    ("no_answer_keyword", _gold_answer, _answer_text),
    ("no_step_keyword", _gold_steps, _steps_text),
)
