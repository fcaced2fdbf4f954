"""Errors in the records of a run by the classes of GTA, ThinkGeo and Agent-X, counted one record at a time.

Numbers and a few ids are all that is kept.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from agrotools.core import (
    PROTOCOLS,
    Answer,
    Arguments,
    CallTools,
    Halt,
    KeywordsSlot,
    Mode,
    OpenTextSlot,
    Protocol,
    Record,
    ReferenceTextsSlot,
    Score,
    Slot,
    Step,
    ToolError,
    ToolErrorKind,
    Unparseable,
    UsageError,
    imported,
)
from agrotools.plugin import RecordErrors, plugins
from agrotools.scoring.error_classes import (
    CLASSES,
    IN_HEAD,
    OF_KEYWORDS,
    OF_SCORES,
    OF_SINGLE_SHOT,
    Errors,
    arguments_key,
)
from agrotools.scoring.sample_units import is_invalid
from agrotools.scoring.summary import ErrorCount
from agrotools.text.normalise import reading_words
from agrotools.tools import get_tool

_ARGUMENT_KINDS: frozenset[ToolErrorKind] = frozenset({"invalid_argument", "missing_metadata"})
NOT_IN_CALLS: dict[str, str] = dict.fromkeys(
    OF_SINGLE_SHOT, "calls are made one by one, and tools return what they return"
)
"""Reasons by class of errors that records of calls cannot tell."""
NOT_IN_STEPS: dict[str, str] = dict.fromkeys(
    ("repeated_tool", "redundant_call", "no_response", "only_thought", *OF_KEYWORDS),
    "every step starts from the reference, whatever was said before",
)
"""Reasons by class of errors that step-by-step records cannot tell, whatever the protocol."""
_WITHOUT_TOOLS = ("format_error", "no_response", "only_thought", "no_answer_keyword")
_NO_JSON = (
    "is not valid JSON",
    "is cut off or its brackets do not match",
    "no JSON object follows",
    "must be a JSON object",
    "is not a JSON object",
)
"""Messages of the readers of replies on a call whose arguments, or which itself, is no JSON."""
_FIRST_OF_EAST_ASIA = "\u2e80"


def errors_of_records(records: Iterable[Record], protocol: Protocol = "react") -> Errors:
    """Errors in the valid records of one mode of a run in the ``protocol``."""
    errors = Errors()
    mode: Mode | None = None
    for record in records:
        mode = record.mode
        add_record(record, errors, protocol)
    if mode is not None:
        errors.not_looked_for |= {IN_HEAD: OF_SCORES, **not_looked_for(mode, protocol, errors)}
    return errors


def add_record(record: Record, found: Errors, protocol: Protocol = "react") -> None:
    """Count the errors of one record; an invalid one counts for nothing.

    A benchmark plug-in may count those of a protocol of its own, from the model's own replies.
    """
    if is_invalid(record):
        return
    if special := _errors_of_plugin(protocol, record.mode):
        special.add(record, found)
    else:
        found.total += 1
        if record.actions is not None:
            _add_actions(record, found)
        elif record.trajectory is not None:
            _add_trajectory(record, found)
            add_missed_keywords(record, found)


def _errors_of_plugin(protocol: Protocol, mode: Mode) -> RecordErrors | None:
    if protocol in PROTOCOLS:
        return None
    targets = (plugin.error_counts.get((protocol, mode)) for plugin in plugins())
    return next((imported(target) for target in targets if target), None)


def not_looked_for(mode: Mode, protocol: Protocol, found: Errors) -> dict[str, str]:
    """The classes that records of a mode and protocol cannot tell, and why; ``found``: what was counted in them."""
    reasons: dict[str, str] = {}
    if mode != "step-by-step":
        reasons[IN_HEAD] = OF_SCORES
    if special := _errors_of_plugin(protocol, mode):
        reasons |= special.not_looked_for
    elif mode == "no-tool":
        reasons |= {each: "no tool is offered in this mode" for each in CLASSES if each not in _WITHOUT_TOOLS}
    else:
        reasons |= NOT_IN_CALLS
        if mode == "step-by-step":
            reasons |= {**NOT_IN_STEPS, "tool_error": "no tool is run in this mode"}
    missing = {
        each: "no sample has English text to take keywords of" for each in OF_KEYWORDS if not found.keyed.get(each)
    }
    return {**missing, **reasons}


def _add_actions(record: Record, found: Errors) -> None:
    """Step by step no tool is run: whether arguments would be taken is asked of the tool's schema."""
    key = record.sample.id
    due = len(record.sample.reference.steps) if record.sample.reference else 0
    for index, action in enumerate(record.actions or ()):
        found.steps += 1
        if isinstance(action, Unparseable):
            found.add(_class_of_unread(action.reason), key)
        elif isinstance(action, Halt):
            found.add("format_error", key)
        elif isinstance(action, Answer):
            found.add("single_step_answer", key, int(index < due))
        else:
            _add_call_action(record, action, found)


def _add_call_action(record: Record, action: CallTools, found: Errors) -> None:
    key = record.sample.id
    found.add("several_calls", key, int(len(action.calls) > 1))
    for call in action.calls:
        if call.tool not in record.sample.toolset:
            found.add("wrong_tool_name", key)
            continue
        try:
            get_tool(call.tool).validated(call.arguments)
        except ToolError:
            found.add("invalid_arguments", key)
        except (UsageError, RecursionError):
            continue


def _add_trajectory(record: Record, found: Errors) -> None:
    assert record.trajectory is not None
    key, steps, calls = record.sample.id, record.trajectory.steps, record.trajectory.calls
    found.steps += len(steps)
    for step in steps:
        if step.kind == "unparseable":
            found.add(_class_of_unread(step.reason), key)
    worked: dict[str, list[Arguments]] = {}
    turns: dict[int, int] = {}
    for step in calls:
        turns[step.turn] = turns.get(step.turn, 0) + 1
        if error := _class_of_step(step):
            found.add(error, key)
        elif step.call is not None:
            earlier = worked.setdefault(step.call.tool, [])
            if earlier and arguments_key(step.call.arguments) in map(arguments_key, earlier):
                found.add("redundant_call", key)
            earlier.append(step.call.arguments)
    found.add("several_calls", key, sum(count > 1 for count in turns.values()))
    names = [step.call.tool for step in calls if step.call]
    if any(one == other for one, other in pairwise(names)):
        found.add("repeated_tool", key)
    needs_calls = record.mode != "no-tool" and bool(record.sample.reference and record.sample.reference.steps)
    answer = record.trajectory.answer
    if needs_calls and answer is not None and not names:
        found.add("single_step_answer", key)
    if answer is None and not names:
        found.add("only_thought" if any(step.text.strip() for step in steps) else "no_response", key)


def _class_of_unread(reason: str) -> str:
    """The class of a reply that could not be read, by what its reader says of it."""
    return "invalid_json" if any(words in reason for words in _NO_JSON) else "format_error"


def _class_of_step(step: Step) -> str | None:
    """The class of a call's error; None where it worked."""
    error = step.observation.error if step.observation else None
    if error is None:
        return None
    if error.kind == "unknown_tool":
        return "wrong_tool_name"
    return "invalid_arguments" if error.kind in _ARGUMENT_KINDS else "tool_error"


def add_missed_keywords(record: Record, found: Errors) -> None:
    """True if the answer has a keyword of a right text, and the steps one of the reference's thoughts.

    Looked for where the right answer is free text, and where the reference has thoughts; in English alone.
    """
    if record.trajectory is None:
        return
    key, answer = record.sample.id, record.trajectory.answer
    if answer is not None and (texts := [text for slot in record.sample.answer for text in _texts_of(slot)]):
        # A right answer may be an alias that has no keyword in it, a number above all.
        aliases = [text for slot in record.sample.answer if slot.type == "keywords" for text in _texts_of(slot)]
        _look_for_keywords("no_answer_keyword", key, " ".join(texts), answer, found, aliases)
    calls = [step for step in record.trajectory.calls if step.call]
    reference = record.sample.reference.steps if record.sample.reference else ()
    if calls and any(step.thought for step in reference):
        gold = " ".join(f"{step.tool} {step.thought}" for step in reference)
        thoughts = " ".join(f"{step.call.tool} {step.thought}" for step in calls if step.call)
        _look_for_keywords("no_step_keyword", key, gold, thoughts, found)


def _look_for_keywords(error: str, key: str, gold: str, given: str, found: Errors, also: Sequence[str] = ()) -> None:
    if max(gold, default="") < _FIRST_OF_EAST_ASIA and (gold_keywords := keywords(gold)):
        given = given.lower()
        found.add_keyed(error, key, not any(word in given for word in (*gold_keywords, *map(str.lower, also))))


def _texts_of(slot: Slot) -> list[str]:
    """Right answers of a slot that are free text."""
    if isinstance(slot, OpenTextSlot):
        return [phrase for fact in slot.facts for phrase in fact.phrases]
    if isinstance(slot, ReferenceTextsSlot):
        return list(slot.values)
    if isinstance(slot, KeywordsSlot):
        return [alias for group in slot.whitelist for alias in group]
    return [slot.right_text] if slot.free_text and slot.right_text is not None else []


EXAMPLES = 5
"""Ids of samples that are kept of each class."""


class ErrorTally:
    """Errors in the valid records of one mode of a run in the ``protocol``."""

    def __init__(self, mode: Mode, protocol: Protocol = "react") -> None:
        self._mode: Mode = mode
        self._protocol: Protocol = protocol
        self._errors = Errors()
        self._seen: dict[str, set[int]] = defaultdict(set)
        self._examples: dict[str, list[str]] = defaultdict(list)

    def add(self, record: Record, number: int, rows: Sequence[Score] = ()) -> None:
        """A valid record, the number of its sample, and its score rows."""
        add_record(record, self._errors, self._protocol)
        self._errors.add(IN_HEAD, record.sample.id, sum(row.reading.get(IN_HEAD) is True for row in rows))
        for error, (sample,) in self._errors.samples.items():
            self._seen[error].add(number)
            if len(examples := self._examples[error]) < EXAMPLES and sample not in examples:
                examples.append(sample)
        self._errors.samples.clear()

    def counts(self) -> tuple[ErrorCount, ...]:
        """A row for every class."""
        skipped = not_looked_for(self._mode, self._protocol, self._errors)
        return tuple(
            ErrorCount(error=each.id, unit=each.unit, not_looked_for=skipped[each.id])
            if each.id in skipped
            else self._count(each.id)
            for each in CLASSES.values()
        )

    def _count(self, error: str) -> ErrorCount:
        # Step by step there is one prediction for each step, and an error of each at most.
        unit = "step" if self._mode == "step-by-step" else CLASSES[error].unit
        count, of = self._errors.counts[error], self._errors.looked_at(error, unit)
        return ErrorCount(
            error=error,
            unit=unit,
            count=count,
            of=of,
            share=count / of if of else None,
            samples=len(self._seen[error]),
            examples=tuple(self._examples[error]),
        )


# --- keywords of a text, in place of the nouns that Agent-X takes from spaCy -----------------------------------------

MOST = 21

_WORD = re.compile(r"[^\W\d_][^\W_]{1,28}(?![^\W_])")


def keywords(text: str) -> list[str]:
    """At most 21 keywords of ``text``, in lower case; the most frequent first, among equals the first named."""
    words = (_singular(word) for word in map(str.lower, _WORD.findall(text)) if _may_be_noun(word))
    return [word for word, _ in Counter(words).most_common(MOST)]


def _may_be_noun(word: str) -> bool:
    return word not in reading_words("function") and not (word.endswith("ly") and len(word) > 4)


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
