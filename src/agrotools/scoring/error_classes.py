"""Error classes from papers on agents, with the definitions used here, counted one record at a time.

Benchmark plug-ins name the papers and their terms for the classes (:class:`agrotools.plugin.ErrorSource`). ``meaning``
is the paper's rule if the paper publishes counts, else a rule of agrotools.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from agrotools.core import (
    Action,
    Answer,
    CallTools,
    Mode,
    Record,
    Sample,
    Score,
    Step,
    ToolCall,
    ToolError,
    ToolErrorKind,
    Trajectory,
    Unparseable,
    UsageError,
)
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


def errors_of(record: Record) -> tuple[Counter[str], int]:
    """Return the number of errors of a valid record by class, and of the steps that were examined."""
    if record.actions is not None:
        return _of_actions(record, record.actions), len(record.actions)
    if record.trajectory is not None:
        return _of_trajectory(record, record.trajectory), len(record.trajectory.steps)
    return Counter(), 0


def not_looked_for(mode: Mode) -> dict[str, str]:
    """Return the reasons why classes cannot be counted in a mode, by class."""
    if mode == "step-by-step":
        return _NOT_IN_STEPS
    if mode == "no-tool":
        return {each: "no tool is offered in this mode" for each in CLASSES if each not in _WITHOUT_TOOLS}
    return {IN_HEAD: "counted in step-by-step runs only, from the scores of their calls"}


def _of_actions(record: Record, actions: Sequence[Action]) -> Counter[str]:
    """Count the errors of step-by-step actions. No tool is run in this mode, so arguments are checked by its schema."""
    errors = Counter[str]()
    due = len(record.sample.reference.steps) if record.sample.reference else 0
    for index, action in enumerate(actions):
        if isinstance(action, CallTools):
            errors["several_calls"] += len(action.calls) > 1
            errors.update(filter(None, (_class_of_call(record.sample, call) for call in action.calls)))
        elif isinstance(action, Answer):
            errors["single_step_answer"] += index < due
        else:
            errors[_class_of_unread(action.reason) if isinstance(action, Unparseable) else "format_error"] += 1
    return errors


def _class_of_call(sample: Sample, call: ToolCall) -> str | None:
    if call.tool not in sample.toolset:
        return "wrong_tool_name"
    try:
        get_tool(call.tool, sample.declared).validate(call.arguments)
    except ToolError:
        return "invalid_arguments"
    except (UsageError, RecursionError):
        pass
    return None


def _of_trajectory(record: Record, made: Trajectory) -> Counter[str]:
    errors = Counter(_class_of_unread(step.reason) for step in made.steps if step.kind == "unparseable")
    worked: set[tuple[str, str]] = set()
    for step in made.calls:
        if error := _class_of_step(step):
            errors[error] += 1
        elif step.call is not None:
            call = step.call.tool, arguments_key(step.call.arguments)
            errors["redundant_call"] += call in worked
            worked.add(call)
    errors["several_calls"] += sum(count > 1 for count in Counter(step.turn for step in made.calls).values())
    names = [step.call.tool for step in made.calls if step.call]
    reference = record.sample.reference.tools if record.sample.reference else ()
    errors["repeated_tool"] += bool(_repeated(names) - _repeated(reference))
    answered = made.answer_text is not None
    errors["single_step_answer"] += record.mode != "no-tool" and bool(reference) and answered and not names
    if not answered and not names:
        errors["only_thought" if any(step.text.strip() for step in made.steps) else "no_response"] += 1
    return errors


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
        self._counts = Counter[str]()
        self._n_records = self._n_steps = 0
        self._seen: dict[str, bytearray] = defaultdict(bytearray)
        """1 at the number of each sample with an error of the class."""
        self._examples: dict[str, list[str]] = defaultdict(list)

    def add(self, record: Record, number: int, rows: Sequence[Score] = ()) -> None:
        """Add a valid record with the number of its sample and its score rows."""
        errors, n_steps = errors_of(record)
        self._n_records += 1
        self._n_steps += n_steps
        if record.actions is not None:
            errors[IN_HEAD] += sum(row.reading.get(IN_HEAD) is True for row in rows)
        self._counts += errors
        for error in +errors:
            seen = self._seen[error]
            seen.extend(bytes(max(0, number + 1 - len(seen))))
            seen[number] = 1
            if len(examples := self._examples[error]) < EXAMPLES and record.sample.id not in examples:
                examples.append(record.sample.id)

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
        count, of = self._counts[error], self._n_steps if unit == "step" else self._n_records
        return ErrorCount(
            error=error,
            unit=unit,
            count=count,
            of=of,
            share=count / of if of else None,
            samples=sum(self._seen[error]),
            examples=tuple(self._examples[error]),
        )
