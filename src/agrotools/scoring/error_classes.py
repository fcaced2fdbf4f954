"""Error classes from papers on agents, with the definitions used here, counted one record at a time.

Benchmark plug-ins name the papers and their terms for the classes (:class:`agrotools.plugin.ErrorSource`). ``meaning``
is the paper's rule if the paper publishes counts, else a rule of agrotools.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from agrotools.core import (
    Answer,
    Arguments,
    CallTools,
    Halt,
    Mode,
    Record,
    Score,
    Step,
    ToolError,
    ToolErrorKind,
    Unparseable,
    UsageError,
)
from agrotools.scoring.metrics import is_invalid
from agrotools.scoring.summary import ErrorCount
from agrotools.tools import get_tool

Unit = Literal["step", "sample"]
IN_HEAD = "calculated_in_head"


@dataclass(frozen=True)
class ErrorClass:
    """Error class. ``unit`` is the unit that it is counted by."""

    id: str
    unit: Unit
    meaning: str


_MEANINGS = {
    "format_error": "output that is neither a call nor an answer",
    "invalid_json": "a call whose arguments are not a JSON object",
    "invalid_arguments": "a call whose arguments the tool does not take: unknown, missing, or of a wrong type or value",
    IN_HEAD: "a calculation of the reference's value without the observations that it comes from",
    "wrong_tool_name": "call to a tool that does not exist",
    "tool_error": "any other error of a well-formed call, mostly an error inside the tool",
    "repeated_tool": "the same tool in two consecutive steps (in a run: unless the reference does so with that tool)",
    "redundant_call": "repeats an earlier successful call",
    "several_calls": "more than one call in one message or step",
    "single_step_answer": "an answer without any call where the reference has calls; "
    "step by step: an answer where a call is due",
    "no_response": "neither steps nor an answer",
    "only_thought": "text alone that is neither a call nor an answer",
}
_OF_SAMPLES = ("repeated_tool", "single_step_answer", "no_response", "only_thought")
CLASSES: Mapping[str, ErrorClass] = {
    name: ErrorClass(name, "sample" if name in _OF_SAMPLES else "step", meaning) for name, meaning in _MEANINGS.items()
}


@dataclass
class Errors:
    """Errors counted by class.

    ``samples`` holds the ids of the samples in which each class occurred, in order. ``steps`` is the number of examined
    calls and answers, ``total`` the number of samples.
    """

    total: int = 0
    steps: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))
    samples: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def add(self, error: str, sample: str, count: int = 1) -> None:
        if count:
            self.counts[error] += count
            listed = self.samples.setdefault(error, [])
            if not listed or listed[-1] != sample:
                listed.append(sample)


def arguments_key(arguments: Any) -> str:
    """Return a text that is the same for equal arguments."""
    try:
        return json.dumps(arguments, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return repr(arguments)[:10_000]


_ARGUMENT_KINDS: frozenset[ToolErrorKind] = frozenset({"invalid_argument", "missing_metadata"})
_WITHOUT_TOOLS = ("format_error", "no_response", "only_thought")
_NOT_IN_STEPS: dict[str, str] = {
    **dict.fromkeys(
        ("repeated_tool", "redundant_call", "no_response", "only_thought"),
        "every step starts from the reference, whatever was said before",
    ),
    "tool_error": "no tool is run in this mode",
}
_NO_JSON = (
    "is not valid JSON",
    "is cut off or its brackets do not match",
    "no JSON object follows",
    "must be a JSON object",
    "is not a JSON object",
)
"""Parts of the parsers' messages about calls or arguments that are not JSON."""


def add_record(record: Record, errors: Errors) -> None:
    """Count the errors of one record; an invalid record is skipped."""
    if is_invalid(record):
        return
    errors.total += 1
    if record.actions is not None:
        _add_actions(record, errors)
    elif record.trajectory is not None:
        _add_trajectory(record, errors)


def not_looked_for(mode: Mode) -> dict[str, str]:
    """Return the reasons why classes cannot be counted in a mode, by class."""
    if mode == "step-by-step":
        return _NOT_IN_STEPS
    if mode == "no-tool":
        return {each: "no tool is offered in this mode" for each in CLASSES if each not in _WITHOUT_TOOLS}
    return {IN_HEAD: "counted in step-by-step runs only, from the scores of their calls"}


def _add_actions(record: Record, errors: Errors) -> None:
    """Count the errors of step-by-step actions. No tool is run in this mode, so arguments are checked by its schema."""
    key = record.sample.id
    due = len(record.sample.reference.steps) if record.sample.reference else 0
    for index, action in enumerate(record.actions or ()):
        errors.steps += 1
        if isinstance(action, Unparseable):
            errors.add(_class_of_unread(action.reason), key)
        elif isinstance(action, Halt):
            errors.add("format_error", key)
        elif isinstance(action, Answer):
            errors.add("single_step_answer", key, int(index < due))
        else:
            _add_call_action(record, action, errors)


def _add_call_action(record: Record, action: CallTools, errors: Errors) -> None:
    key = record.sample.id
    errors.add("several_calls", key, int(len(action.calls) > 1))
    for call in action.calls:
        if call.tool not in record.sample.toolset:
            errors.add("wrong_tool_name", key)
            continue
        try:
            get_tool(call.tool, record.sample.declared).validate(call.arguments)
        except ToolError:
            errors.add("invalid_arguments", key)
        except (UsageError, RecursionError):
            continue


def _add_trajectory(record: Record, errors: Errors) -> None:
    assert record.trajectory is not None
    key, steps, calls = record.sample.id, record.trajectory.steps, record.trajectory.calls
    errors.steps += len(steps)
    for step in steps:
        if step.kind == "unparseable":
            errors.add(_class_of_unread(step.reason), key)
    worked: dict[str, list[Arguments]] = {}
    turns: dict[int, int] = {}
    for step in calls:
        turns[step.turn] = turns.get(step.turn, 0) + 1
        if error := _class_of_step(step):
            errors.add(error, key)
        elif step.call is not None:
            earlier = worked.setdefault(step.call.tool, [])
            if earlier and arguments_key(step.call.arguments) in map(arguments_key, earlier):
                errors.add("redundant_call", key)
            earlier.append(step.call.arguments)
    errors.add("several_calls", key, sum(count > 1 for count in turns.values()))
    names = [step.call.tool for step in calls if step.call]
    reference = record.sample.reference.tools if record.sample.reference else ()
    if _repeated(names) - _repeated(reference):
        errors.add("repeated_tool", key)
    needs_calls = record.mode != "no-tool" and bool(reference)
    answer = record.trajectory.answer_text
    if needs_calls and answer is not None and not names:
        errors.add("single_step_answer", key)
    if answer is None and not names:
        errors.add("only_thought" if any(step.text.strip() for step in steps) else "no_response", key)


def _repeated(tools: Sequence[str]) -> set[str]:
    """Return the tools that are called twice in a row."""
    return {one for one, other in pairwise(tools) if one == other}


def _class_of_unread(reason: str) -> str:
    """Return the class of a reply that could not be parsed, from the parser's message."""
    return "invalid_json" if any(words in reason for words in _NO_JSON) else "format_error"


def _class_of_step(step: Step) -> str | None:
    """Return the error class of a call; None if the call succeeded."""
    error = step.observation.error if step.observation else None
    if error is None:
        return None
    if error.kind == "unknown_tool":
        return "wrong_tool_name"
    return "invalid_arguments" if error.kind in _ARGUMENT_KINDS else "tool_error"


EXAMPLES = 5
"""Maximum number of sample ids stored for each class."""


class ErrorTally:
    """Counter of errors in the valid records of one mode of a run."""

    def __init__(self, mode: Mode) -> None:
        self._mode: Mode = mode
        self._errors = Errors()
        self._seen: dict[str, bytearray] = defaultdict(bytearray)
        """1 at the number of each sample with an error of the class."""
        self._examples: dict[str, list[str]] = defaultdict(list)

    def add(self, record: Record, number: int, rows: Sequence[Score] = ()) -> None:
        """Add a valid record with the number of its sample and its score rows."""
        add_record(record, self._errors)
        if record.actions is not None:
            self._errors.add(IN_HEAD, record.sample.id, sum(row.reading.get(IN_HEAD) is True for row in rows))
        for error, (sample,) in self._errors.samples.items():
            seen = self._seen[error]
            seen.extend(bytes(max(0, number + 1 - len(seen))))
            seen[number] = 1
            if len(examples := self._examples[error]) < EXAMPLES and sample not in examples:
                examples.append(sample)
        self._errors.samples.clear()

    def counts(self) -> tuple[ErrorCount, ...]:
        """Return one count for every class."""
        skipped = not_looked_for(self._mode)
        return tuple(
            ErrorCount(error=each.id, unit=each.unit, not_looked_for=skipped[each.id])
            if each.id in skipped
            else self._count(each.id)
            for each in CLASSES.values()
        )

    def _count(self, error: str) -> ErrorCount:
        # Step-by-step records have one prediction for each step and at most one error of a class in it.
        unit = "step" if self._mode == "step-by-step" else CLASSES[error].unit
        count, of = self._errors.counts[error], self._errors.steps if unit == "step" else self._errors.total
        return ErrorCount(
            error=error,
            unit=unit,
            count=count,
            of=of,
            share=count / of if of else None,
            samples=sum(self._seen[error]),
            examples=tuple(self._examples[error]),
        )
