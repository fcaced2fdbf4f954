"""How Agent-X counts errors (its Table 10), to the letter.

Written anew from the behaviour of "statistical breakdown/error_analysis.ipynb" (github.com/mbzuai-oryx/Agent-X, commit
d0278bba488c06d0cfecd6e53231f18120529398). The classes overlap: one sample may count for several. The notebook takes
keywords from spaCy's en_core_web_sm; here whoever calls gives the function that takes them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agrotools.scoring.loose import is_list, is_object, is_text, zeroes
from agrotools.scoring.reference.stops import published

Keywords = Callable[[str], Sequence[str]]
"""The keywords of a text, at most 21."""

_TOP_KEYS = ("query", "filename", "final_answer")
_STEP_KEYS = frozenset(("step", "task", "tool_used", "tool_output", "thought"))


@dataclass(frozen=True)
class ErrorAnalysis:
    """Samples of each class, under what the notebook looks for; the paper's words for the last four differ.

    ``invalid_format``: "invalid JSON format in argument specification"; ``repeated_tool``: "multiple tool calls in a
    single step"; ``answer_in_invalid_format``: "final answer generation without adhering to the format";
    ``no_answer_keyword``: "misinterpreting visual content"; ``no_step_keyword``: "incorrect spatial reasoning".
    The last two are None where no gold was given.
    """

    samples: int
    no_response: int
    only_answer: int
    invalid_format: int
    conflicting_tools: int
    repeated_tool: int
    answer_in_invalid_format: int
    no_answer_keyword: int | None
    no_step_keyword: int | None


def error_analysis(
    predictions: Sequence[Any], gold: Mapping[str, Any] | None = None, keywords: Keywords | None = None
) -> ErrorAnalysis:
    """Counts over predictions (a list of one-key objects); ``gold`` is the data set, which keywords come from.

    Raises:
        PublishedScorerStops: the notebook ends with an exception.
    """
    counts = zeroes("no_response", "only_answer", "invalid_format", "conflicting_tools", "repeated_tool")
    counts |= zeroes("answer_in_invalid_format")
    for position, item in enumerate(predictions):
        with published(f"prediction {position}"):
            for key, value in item.items():
                int(key)
                _count(value, counts)
    missed: tuple[int | None, int | None] = (None, None)
    if gold is not None and keywords is not None:
        missed = (
            _without_keywords(predictions, _gold_words(gold, _gold_answer, keywords), _answer_text),
            _without_keywords(predictions, _gold_words(gold, _gold_steps, keywords), _steps_text),
        )
    return ErrorAnalysis(len(predictions), **counts, no_answer_keyword=missed[0], no_step_keyword=missed[1])


def _count(value: Any, counts: dict[str, int]) -> None:
    answer = value.get("final_answer", {})
    answered = is_object(answer) and bool(answer.get("value"))
    empty = not value.get("reasoning_steps")
    counts["no_response"] += empty and not answered
    counts["only_answer"] += empty and answered
    faulty = _is_faulty(value)
    counts["invalid_format"] += faulty
    counts["answer_in_invalid_format"] += faulty and answered
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
    counts["conflicting_tools"] += conflict
    counts["repeated_tool"] += repeated


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
