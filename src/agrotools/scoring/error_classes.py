"""Error classes from papers on agents, with the definitions used here, counted one record at a time.

Benchmark plug-ins name the papers and their terms for the classes (:class:`agrotools.plugin.ErrorSource`). ``meaning``
is the paper's rule if the paper publishes counts, else a rule of agrotools.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, Literal

from agrotools.calling import get_tool
from agrotools.core import (
    PROTOCOLS,
    Answer,
    Arguments,
    Halt,
    KeywordsSlot,
    Mode,
    OpenTextSlot,
    Protocol,
    Record,
    ReferenceTextsSlot,
    Sample,
    Score,
    Slot,
    ToolCall,
    ToolError,
    ToolErrorKind,
    Unparseable,
    UsageError,
    imported,
)
from agrotools.core.installed import plugins
from agrotools.scoring.contracts import ErrorSource, RecordErrors
from agrotools.scoring.metrics import is_invalid
from agrotools.scoring.summary import ErrorCount
from agrotools.text.normalise import data_lines

Unit = Literal["step", "sample"]
IN_HEAD = "calculated_in_head"
IN_HEAD_REASON = "counted in step-by-step runs only, from the scores of their calls"
"""Reason why the class is counted in step-by-step runs only: elsewhere, calls have no reference call."""
KEYWORD_CLASSES = ("no_answer_keyword", "no_step_keyword")
OF_SINGLE_SHOT = ("call_without_output", "invalid_format", "answer_in_invalid_format")
"""Classes of predictions that contain steps and answer in one reply."""


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
    "valid_call_failed": "any other error of a well-formed call, such as one inside the tool",
    "call_without_output": "a step that names a tool but no output, in formats where the model writes both",
    "repeated_tool": "the same tool in two consecutive steps (in a run: unless the reference does so with that tool)",
    "redundant_call": "repeats an earlier successful call",
    "several_calls": "more than one call in one message or step",
    "single_step_answer": "an answer without any call where the reference has calls; "
    "step by step: an answer where a call is due",
    "no_response": "neither steps nor an answer",
    "only_thought": "an answer without steps, or text alone that is neither a call nor an answer",
    "invalid_format": "a prediction that lacks a field, or has a step that does",
    "answer_in_invalid_format": "as invalid_format, but the prediction contains an answer",
    "no_answer_keyword": "an answer with no keyword of the gold answer (keywords extracted by agrotools, not by spaCy)",
    "no_step_keyword": "steps with no keyword of the gold steps (keywords extracted by agrotools, not by spaCy)",
}
_OF_SAMPLES = frozenset(
    "repeated_tool single_step_answer no_response only_thought invalid_format answer_in_invalid_format "
    "no_answer_keyword no_step_keyword".split()
)
CLASSES: Mapping[str, ErrorClass] = {
    name: ErrorClass(name, "sample" if name in _OF_SAMPLES else "step", meaning)
    for name, meaning in _MEANINGS.items()
}


def error_sources() -> list[ErrorSource]:
    """Return the places in papers that define error classes, from all benchmark plug-ins."""
    return [source for plugin in plugins() for source in plugin.paper.error_sources]


@dataclass
class Errors:
    """Errors counted by class.

    ``samples`` holds the ids of the samples in which each class occurred, in order. ``steps`` is the number of examined
    calls and answers, ``total`` the number of samples. ``keyed`` is the number of samples that were searched for
    keywords, for each class that depends on them.
    """

    total: int = 0
    steps: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))
    samples: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])
    keyed: Counter[str] = field(default_factory=Counter[str])
    not_looked_for: dict[str, str] = field(default_factory=dict[str, str])
    """Reasons why classes cannot be counted, by class. A count of 0 has no meaning for these classes."""

    def add(self, error: str, sample: str, count: int = 1) -> None:
        if count:
            self.counts[error] += count
            self.samples.setdefault(error, {})[sample] = None

    def add_keyed(self, error: str, sample: str, missed: bool) -> None:
        """Add a sample that was searched for keywords."""
        self.keyed[error] += 1
        self.add(error, sample, int(missed))

    def skip(self, errors: Iterable[str], reason: str) -> None:
        self.not_looked_for |= dict.fromkeys(errors, reason)

    def examined(self, error: str, unit: Unit) -> int:
        """Return the number of steps or samples that were searched for a class."""
        if error in KEYWORD_CLASSES:
            return self.keyed[error]
        return self.steps if unit == "step" else self.total

    def as_data(self) -> list[dict[str, object]]:
        """Return a row for each class: id, count, samples, unit, meaning, sources, and the reason if not counted."""
        sources = error_sources()
        return [
            {
                "error": each.id,
                "count": None if each.id in self.not_looked_for else self.counts[each.id],
                "samples": len(self.samples.get(each.id, ())),
                "unit": each.unit,
                "meaning": each.meaning,
                "sources": [
                    f"{source}: {source.words[each.id]}"
                    for source in sources
                    if each.id in source.words
                ],
                "not_looked_for": self.not_looked_for.get(each.id),
            }
            for each in CLASSES.values()
        ]


def arguments_key(arguments: Any) -> str:
    """Return a text that is the same for equal arguments."""
    try:
        return json.dumps(arguments, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return repr(arguments)[:10_000]


_CLASS_OF_KIND: dict[ToolErrorKind, str] = {
    "unknown_tool": "wrong_tool_name", "invalid_argument": "invalid_arguments", "missing_metadata": "invalid_arguments"
}  # fmt: skip
"""Error class of a failed call; of other kinds it is ``valid_call_failed``."""
NOT_IN_CALLS: dict[str, str] = dict.fromkeys(
    OF_SINGLE_SHOT, "not possible in this mode: a tool executes every call"
)
"""Reasons why classes cannot be counted in records of calls, by class."""
NOT_IN_STEPS: dict[str, str] = dict.fromkeys(
    ("repeated_tool", "redundant_call", "no_response", "only_thought", *KEYWORD_CLASSES),
    "every step starts from the reference, whatever was said before",
)
"""Reasons why classes cannot be counted in step-by-step records of any protocol, by class."""
_WITHOUT_TOOLS = ("format_error", "no_response", "only_thought", "no_answer_keyword")
_NO_JSON = (
    "is not valid JSON",
    "is cut off or its brackets do not match",
    "no JSON object follows",
    "must be a JSON object",
    "is not a JSON object",
)
"""Parts of the parsers' messages about calls or arguments that are not JSON."""
_FIRST_OF_EAST_ASIA = "\u2e80"


def add_record(
    record: Record, errors: Errors, protocol: Protocol = "react", rows: Sequence[Score] = ()
) -> None:
    """Count the errors of one record with its score rows; an invalid record is skipped.

    The errors of a plug-in's own protocol are counted by the plug-in, from the model's replies.
    """
    if is_invalid(record):
        return
    if special := _errors_of_plugin(protocol, record.mode):
        special.add(record, errors)
    else:
        errors.total += 1
        if record.actions is not None:
            _add_actions(record, errors)
        elif record.trajectory is not None:
            _add_trajectory(record, errors)
            add_missed_keywords(record, errors)
    if record.actions is not None:
        errors.add(IN_HEAD, record.sample.id, sum(row.reading.get(IN_HEAD) is True for row in rows))


def _errors_of_plugin(protocol: Protocol, mode: Mode) -> RecordErrors | None:
    if protocol in PROTOCOLS:
        return None
    protocols = (plugin.protocols[protocol] for plugin in plugins() if protocol in plugin.protocols)
    targets = (each.error_counts.get(mode) for each in protocols)
    return next((imported(target) for target in targets if target), None)


def not_looked_for(mode: Mode, protocol: Protocol, errors: Errors) -> dict[str, str]:
    """Return the reasons why classes cannot be counted in a mode and protocol, by class.

    ``errors`` holds the counts of the records."""
    reasons: dict[str, str] = {}
    if mode != "step-by-step":
        reasons[IN_HEAD] = IN_HEAD_REASON
    if special := _errors_of_plugin(protocol, mode):
        reasons |= special.undetectable
    elif mode == "no-tool":
        reasons |= {
            each: "no tool is offered in this mode"
            for each in CLASSES
            if each not in _WITHOUT_TOOLS
        }
    else:
        reasons |= NOT_IN_CALLS
        if mode == "step-by-step":
            reasons |= {**NOT_IN_STEPS, "valid_call_failed": "no tool is run in this mode"}
    unkeyed = (each for each in KEYWORD_CLASSES if not errors.keyed[each])
    return dict.fromkeys(unkeyed, "no sample has English text to extract keywords from") | reasons


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
            errors.add("several_calls", key, int(len(action.calls) > 1))
            for call in action.calls:
                if fault := _class_of_call(call, record.sample):
                    errors.add(fault, key)


def _class_of_call(call: ToolCall, sample: Sample) -> str:
    """Return the error class of a call that is not run; empty if its tool takes it."""
    if call.tool not in sample.toolset:
        return "wrong_tool_name"
    with suppress(UsageError, RecursionError):
        try:
            get_tool(call.tool, sample.declared).validate(call.arguments)
        except ToolError:
            return "invalid_arguments"
    return ""


def _add_trajectory(record: Record, errors: Errors) -> None:
    assert record.trajectory is not None
    key, steps, calls = record.sample.id, record.trajectory.steps, record.trajectory.calls
    errors.steps += len(steps)
    for step in steps:
        if step.kind == "unparseable":
            errors.add(_class_of_unread(step.reason), key)
    worked: dict[str, list[Arguments]] = {}
    for step in calls:
        if step.observation and (error := step.observation.error):
            errors.add(_CLASS_OF_KIND.get(error.kind, "valid_call_failed"), key)
        elif step.call is not None:
            earlier = worked.setdefault(step.call.tool, [])
            if earlier and arguments_key(step.call.arguments) in map(arguments_key, earlier):
                errors.add("redundant_call", key)
            earlier.append(step.call.arguments)
    errors.add(
        "several_calls",
        key,
        sum(count > 1 for count in Counter(step.turn for step in calls).values()),
    )
    names = [step.call.tool for step in calls if step.call]
    reference = record.sample.reference.tools if record.sample.reference else ()
    if _repeated(names) - _repeated(reference):
        errors.add("repeated_tool", key)
    needs_calls = record.mode != "no-tool" and bool(reference)
    answer = record.trajectory.answer_text
    if needs_calls and answer is not None and not names:
        errors.add("single_step_answer", key)
    if answer is None and not names:
        errors.add(
            "only_thought" if any(step.text.strip() for step in steps) else "no_response", key
        )


def _repeated(tools: Sequence[str]) -> set[str]:
    return {one for one, other in pairwise(tools) if one == other}


def _class_of_unread(reason: str) -> str:
    """Return the class of a reply that could not be parsed, from the parser's message."""
    return "invalid_json" if any(words in reason for words in _NO_JSON) else "format_error"


def add_missed_keywords(record: Record, errors: Errors) -> None:
    """Count an answer without a keyword of the right texts, and steps without a keyword of the reference's steps.

    Answers are searched if the right answer is free text, steps if the reference has thoughts; both only in English.
    """
    if record.trajectory is None:
        return
    key, answer = record.sample.id, record.trajectory.answer_text
    if answer is not None and (
        texts := [text for slot in record.sample.answer for text in _texts_of(slot)]
    ):
        # A right answer may be an alias without a keyword, such as a number.
        aliases = [
            text
            for slot in record.sample.answer
            if slot.type == "keywords"
            for text in _texts_of(slot)
        ]
        _look_for_keywords("no_answer_keyword", key, " ".join(texts), answer, errors, aliases)
    calls = [step for step in record.trajectory.calls if step.call]
    reference = record.sample.reference.steps if record.sample.reference else ()
    if calls and any(step.thought for step in reference):
        gold = " ".join(f"{step.tool} {step.thought}" for step in reference)
        thoughts = " ".join(f"{step.call.tool} {step.thought}" for step in calls if step.call)
        _look_for_keywords("no_step_keyword", key, gold, thoughts, errors)


def _look_for_keywords(
    error: str, key: str, gold: str, text: str, errors: Errors, also: Sequence[str] = ()
) -> None:
    if max(gold, default="") < _FIRST_OF_EAST_ASIA and (gold_keywords := keywords(gold)):
        text = text.lower()
        errors.add_keyed(
            error, key, not any(word in text for word in (*gold_keywords, *map(str.lower, also)))
        )


def _texts_of(slot: Slot) -> list[str]:
    if isinstance(slot, OpenTextSlot):
        return [phrase for fact in slot.facts for phrase in fact.phrases]
    if isinstance(slot, ReferenceTextsSlot):
        return list(slot.values)
    if isinstance(slot, KeywordsSlot):
        return [alias for group in slot.whitelist for alias in group]
    return [slot.right_text] if slot.free_text and slot.right_text is not None else []


EXAMPLES = 5
"""Maximum number of sample ids given for each class."""


def error_counts(errors: Errors, mode: Mode, protocol: Protocol) -> tuple[ErrorCount, ...]:
    """Return one count for every class, of the valid records of one mode of a run."""
    skipped = not_looked_for(mode, protocol, errors)
    counts: list[ErrorCount] = []
    for error, kind in CLASSES.items():
        if error in skipped:
            counts.append(ErrorCount(error=error, unit=kind.unit, not_looked_for=skipped[error]))
            continue
        # Step-by-step records have one prediction for each step and at most one error of a class in it.
        unit = "step" if mode == "step-by-step" else kind.unit
        count, of, samples = (
            errors.counts[error],
            errors.examined(error, unit),
            errors.samples.get(error, {}),
        )
        share, examples = count / of if of else None, tuple([*samples][:EXAMPLES])
        counts.append(
            ErrorCount(
                error=error,
                unit=unit,
                count=count,
                of=of,
                share=share,
                samples=len(samples),
                examples=examples,
            )
        )
    return tuple(counts)


# --- keywords of a text, instead of the nouns that Agent-X extracts with spaCy ---------------------------------------

MOST = 21

_WORD = re.compile(r"[^\W\d_][^\W_]{1,28}(?![^\W_])")


def keywords(text: str) -> list[str]:
    """Return at most 21 keywords of ``text`` in lower case, by frequency and then by position."""
    words = (word for word in map(str.lower, _WORD.findall(text)) if word not in _function_words())
    words = (_singular(word) for word in words if not (word.endswith("ly") and len(word) > 4))
    return [word for word, _ in Counter(words).most_common(MOST)]


@cache
def _function_words() -> frozenset[str]:
    return frozenset(" ".join(data_lines("function_words.txt")).split())


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
