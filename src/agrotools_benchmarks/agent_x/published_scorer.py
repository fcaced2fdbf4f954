"""Published scorer of Agent-X's notebooks (arXiv 2505.24876): means of judge scores, counts of calls and of errors.

Reimplemented from the behaviour of analysis/metrics.ipynb (github.com/mbzuai-oryx/Agent-X, commit
843862974dd517724a1ea6998f96ea5dc7414e76), which starts from a table of scores with one row per prediction. How the
judge's replies became that table is not published. Unexpected behaviour is kept; docs/reference-scorers.md lists it.
Errors (Table 10 of the paper) are counted as in "statistical breakdown/error_analysis.ipynb" (commit
d0278bba488c06d0cfecd6e53231f18120529398): a sample may count for several classes. That notebook extracts keywords with
spaCy's en_core_web_sm; here the caller provides a function for that.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agrotools.scoring.predictions import Figure, PredictionScores, PublishedScorerStops, published
from agrotools.text.json_kinds import is_list, is_object, is_text
from agrotools_benchmarks.agent_x.plugin import CRITERIA, FACTS

COLUMNS = {criterion.column: name for name, criterion in CRITERIA.items()}
"""Names of metrics in Agent-X's files (with their spelling), each with the suffix of the metric id after
``agent_x.``."""

GOAL, TOOL_COLUMNS = "goal_accuray", ("precision_score", "tool_accuray", "toolset_accuray")

GENERATIVE_ROWS = frozenset(
    map(int, Path(__file__).with_name("generative_rows.txt").read_text().split())
)
"""Rows of the result tables that the notebook treats as generative tasks: 222 positions, from 0.

The notebook calls them ids but uses them as positions, so that they refer to other samples if a table lacks rows.
"""

# pandas accepts only ASCII digits and white space.
_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*", re.ASCII)
_INFINITE = re.compile(r"\s*([-+]?)inf(?:inity)?\s*", re.ASCII | re.IGNORECASE)


def numeric(cell: Any) -> float | None:
    """Convert a cell to a number as pandas 2 does; None for anything else, which is then ignored.

    A text with a number beyond the range of a float gives None (pandas 3 gives infinity).
    """
    if isinstance(cell, bool | int | float):
        try:
            return None if math.isnan(cell) else float(cell)
        except OverflowError:
            return math.inf if cell > 0 else -math.inf
    if not isinstance(cell, str):
        return None
    if _NUMBER.fullmatch(cell):
        number = float(cell)
        return None if math.isinf(number) else number
    sign = _INFINITE.fullmatch(cell)
    return float(f"{sign[1]}inf") if sign else None


def aggregate(
    rows: Sequence[Mapping[str, Any]], generative: Collection[int] = GENERATIVE_ROWS
) -> PredictionScores:
    """Compute the column means in percent: ``goal_acc`` without generative rows, and ``goal_acc_imggen`` (Goal*).

    ``rows``: the table in its order. ``generative``: *positions* in it, from 0. Cells that are not numbers are ignored.
    Goal* is the mean of three means over the generative rows, or NaN if one of them has no number.

    Raises:
        PublishedScorerStops: the table lacks a column that the notebook needs.
    """
    for column in (GOAL, *TOOL_COLUMNS):
        if not any(column in row for row in rows):
            raise PublishedScorerStops("KeyError", "the table", f"no column {column}")
    chosen = {position for position in generative if 0 <= position < len(rows)}
    metrics: dict[str, Figure] = {}
    unreadable = 0
    for column, name in COLUMNS.items():
        numbers = [numeric(row.get(column)) for row in rows]
        unreadable += sum(number is None for number in numbers)
        if column == GOAL:
            numbers = [
                None if position in chosen else number for position, number in enumerate(numbers)
            ]
        if any(column in row for row in rows):
            metrics[f"agent_x.{name}"] = _mean(numbers)
    means = [
        _mean([numeric(rows[position].get(column)) for position in sorted(chosen)])
        for column in TOOL_COLUMNS
    ]
    starred = sum(math.nan if mean.value is None else mean.value for mean in means) / len(means)
    metrics["agent_x.goal_acc_imggen"] = Figure(starred, len(chosen))
    return PredictionScores(
        "single-shot",
        metrics,
        {"rows": len(rows), "generative": len(chosen), "left_out_cells": unreadable},
    )


def _mean(numbers: Sequence[float | None]) -> Figure:
    counted = [number for number in numbers if number is not None]
    return Figure(sum(counted) / len(counted) * 100 if counted else math.nan, len(counted))


def tool_call_statistics(predictions: Sequence[Any]) -> dict[str, int]:
    """Count the steps of predictions by whether they have a tool and an output.

    ``invalid`` calls name a tool outside the benchmark; they may also count as ``successful``. ``failures`` is the sum
    of ``empty_samples``, ``failed`` and ``invalid``.

    Raises:
        PublishedScorerStops: the original raises an exception, e.g. at a step whose thought is null.
    """
    names = (
        "empty_samples",
        "successful",
        "failed",
        "no_output",
        "no_tool",
        "empty_steps",
        "invalid",
    )
    counts = {"samples": len(predictions), **dict.fromkeys(("steps", *names), 0)}
    for position, item in enumerate(predictions):
        if not is_object(item):
            continue
        with published(f"prediction {position}"):
            values = list(item.values())
            steps = values[0].get("reasoning_steps", [])
            if not is_list(steps) or not steps:
                counts["empty_samples"] += 1
                continue
            for step in steps:
                _count_step(step, counts)
    return {**counts, "failures": counts["empty_samples"] + counts["failed"] + counts["invalid"]}


def _count_step(step: Any, counts: dict[str, int]) -> None:
    counts["steps"] += 1
    tool = step.get("tool") or step.get("tool_used")
    output = step.get("output") or step.get("tool_output")
    without_thought = step.get("thought", "").strip() == ""
    without_tool, without_output = tool in [None, "", "null"], output in [None, "", "null", 0]
    counts["invalid"] += bool(tool) and isinstance(tool, str) and tool not in FACTS["tools"]
    if not without_tool and not without_output:
        counts["successful"] += 1
        return
    counts["failed"] += 1
    counts["empty_steps"] += without_tool and without_output and without_thought
    counts["no_output"] += not without_tool and without_output
    counts["no_tool"] += without_tool and not without_output


Keywords = Callable[[str], Sequence[str]]
"""Function that returns the keywords of a text, at most 21."""

_TOP_KEYS = ("query", "filename", "final_answer")
_STEP_KEYS = frozenset(("step", "task", "tool_used", "tool_output", "thought"))


@dataclass(frozen=True)
class ErrorAnalysis:
    """Errors as counted by the notebook.

    ``counts``: number of samples by class. ``stops``: exceptions by class if the notebook fails for it. Keyword classes
    are in neither if no gold was given.
    Classes are named by what the notebook detects; ``benchmark.toml`` has the terms of the paper.
    """

    samples: int
    counts: Mapping[str, int]
    stops: Mapping[str, PublishedScorerStops]


def error_analysis(
    predictions: Sequence[Any],
    gold: Mapping[str, Any] | None = None,
    keywords: Keywords | None = None,
) -> ErrorAnalysis:
    """Count the errors of predictions (a list of one-key objects). ``gold``: data set, which provides the keywords.

    Each class has a separate cell in the notebook: if one raises an exception, the others still have their counts.
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
                counts[error] = _without_keywords(
                    predictions, _gold_words(gold, gold_text, keywords), text
                )
            except PublishedScorerStops as stop:
                stops[error] = stop
    return ErrorAnalysis(len(predictions), counts, stops)


def _counted(predictions: Sequence[Any], is_one: Callable[[Any], bool], *, all_keys: bool) -> int:
    """Count the entries of a class. Keys must be numbers, either of all entries or only of the counted ones."""
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
    """Return two flags: True if a step names two tools, and True if a tool occurs twice in a row."""
    conflict = repeated = False
    before = None
    for step in value.get("reasoning_steps", []):
        if not is_object(step):
            continue
        used, names_two = _lower_case(step.get("tool_used")), _lower_case(step.get("tool"))
        conflict |= bool(used) and bool(names_two) and used != names_two
        current = used or names_two
        repeated |= bool(current) and current == before
        before = current
    return conflict, repeated


def _lower_case(name: Any) -> str | None:
    return name.strip().lower() if is_text(name) else None


def _is_faulty(value: Any) -> bool:
    if not all(key in value for key in _TOP_KEYS):
        return True
    answer, steps = value.get("final_answer"), value.get("reasoning_steps", [])
    if not is_object(answer) or "value" not in answer or "justification" not in answer:
        return True
    return not is_list(steps) or any(
        not is_object(step) or not _STEP_KEYS.issubset(step) for step in steps
    )


def _gold_words(
    gold: Mapping[str, Any], text_of: Callable[[Any], str], keywords: Keywords
) -> dict[str, Sequence[str]]:
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
    return " ".join(
        _plain(step.get(name, "")) for step in steps if is_object(step) for name in fields
    )


def _answer_text(entry: Any) -> str:
    answer = entry.get("final_answer", {})
    return (answer if is_text(answer) else _gold_answer(entry)).lower()


def _steps_text(entry: Any) -> str:
    fields = ("task", "tool_used", "tool_output", "thought")
    return " ".join(
        _plain(step.get(name, "")) for step in entry.get("reasoning_steps", []) for name in fields
    ).lower()


def _plain(value: Any) -> str:
    return json.dumps(value) if is_list(value) or is_object(value) else str(value)


def _without_keywords(
    predictions: Sequence[Any], words: Mapping[str, Sequence[str]], text_of: Callable[[Any], str]
) -> int:
    """Count the samples whose text has none of the keywords, including samples without gold."""
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
