"""Subjects and things of questions (files, measuring call, truth), and filled-in questions."""

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import JsonValue

from agrotools.build.references import PlannedCall, ref
from agrotools.core import AnswerType, Arguments, SampleFile, Slot

Words = Mapping[str, str]

_REF = re.compile(r"@(\d+)((?:\.[A-Za-z_]\w*|\[\d+\])+)")
_GIVEN = re.compile(r"\{(\w+)\}")


def filled(text: str, words: Words) -> str:
    """Text with ``{limit}`` and other words replaced by their values.

    Raises:
        ValueError: an unknown word.
    """

    def word(match: re.Match[str]) -> str:
        if match[1] not in words:
            raise ValueError(f"{{{match[1]}}} is not a word of this template; known: {', '.join(sorted(words))}")
        return words[match[1]]

    return _GIVEN.sub(word, text)


def references_written_out(text: str) -> str:
    """``@0.severity_pct`` as ``steps[0].observation.severity_pct``."""
    return _REF.sub(lambda match: f"steps[{match[1]}].observation{match[2]}", text)


def filled_arguments(value: JsonValue, words: Words) -> JsonValue:
    """Arguments of a step with words and references in place; a word alone that is a number becomes one."""
    if isinstance(value, dict):
        return {filled(key, words): filled_arguments(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [filled_arguments(item, words) for item in value]
    if not isinstance(value, str):
        return value
    if match := _REF.fullmatch(value):
        return ref(int(match[1]), match[2].lstrip("."))
    if (lone := _GIVEN.fullmatch(value)) and lone[1] in words:
        return _number(words[lone[1]])
    return filled(value, words)


def _number(text: str) -> JsonValue:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


_STEP = re.compile(r"steps\[(\d+)\]")


@dataclass(frozen=True)
class Thing:
    """Something that one call measures: a leaf in a photo, a tile of canopy heights, a pair of dates.

    ``truth`` is what a perfect tool returns, as far as the source knows it, in the tool's own form. ``called`` is how
    a question names it: the name of a file ("image_1.jpg"), or a part of one ("left half"). ``words`` are more words
    for wordings (``{one_...}``, ``{two_...}``: prefixed by the thing's place in the sample). ``before`` are calls
    before the measurement (a marked region is found, then measured); where they or the measurement refer to steps,
    these are counted within the thing. ``closer`` are calls that look closer at what the measurement returned, by the
    sample's own count of steps; only made where one thing is asked of. ``readings`` are the unrounded truth as the
    source reads it, and other ways to read it: what they do not agree on is not asked. A thing that has them is
    measured by its one call.
    """

    files: tuple[SampleFile, ...]
    tool: str
    arguments: Arguments
    truth: Mapping[str, JsonValue]
    called: str
    thought: str
    words: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    closer: tuple[PlannedCall, ...] = ()
    before: tuple[PlannedCall, ...] = ()
    readings: tuple[dict[str, JsonValue], ...] = ()

    @property
    def as_read(self) -> dict[str, JsonValue]:
        """The truth as the source reads it."""
        return self.readings[0] if self.readings else dict(self.truth)

    @property
    def measured(self) -> PlannedCall:
        """The measurement."""
        return PlannedCall(self.tool, self.arguments, dict(self.truth), thought=self.thought)


def distinct_files(things: Sequence[Thing]) -> tuple[SampleFile, ...]:
    """The files of these things; parts of one file bring it once."""
    return tuple({file.name: file for thing in things for file in thing.files}.values())


def calls_on(things: Sequence[Thing]) -> tuple[PlannedCall, ...]:
    """The calls on these things: what comes before, of one thing after the other, then all measurements, then what
    looks closer. Of several things, the first calls of all are one group, the second another."""
    chains = [(*thing.before, thing.measured) for thing in things]
    many = len(chains) > 1
    placed = [
        replace(
            call,
            arguments=cast(Arguments, _moved(dict(call.arguments), number, len(chains))),
            group=level if many else call.group,
        )
        for level, calls in enumerate(zip(*chains, strict=True))
        for number, call in enumerate(calls)
    ]
    # Calls of a group do not build on each other, so several things are not looked at closer.
    return (*placed, *(() if many else things[0].closer))


def _moved(value: JsonValue, number: int, things: int) -> JsonValue:
    """References to steps within thing ``number``, as steps of the sample."""
    if isinstance(value, dict):
        if isinstance(target := value.get("$ref"), str):
            moved = _STEP.sub(lambda match: f"steps[{int(match[1]) * things + number}]", target, count=1)
            return {**value, "$ref": moved}
        return {key: _moved(item, number, things) for key, item in value.items()}
    if isinstance(value, list):
        return [_moved(item, number, things) for item in value]
    return value


@dataclass(frozen=True)
class Subject:
    """One or more things that samples are made of; samples of one subject share files, so it is one cluster.

    ``shown(index, number)`` is thing ``index`` of the subject as the ``number``-th of a sample (its files are named
    after the number, so that a name tells nothing). ``of`` is the kind of thing; only questions about that kind are
    asked.
    """

    name: str
    things: int
    shown: Callable[[int, int], Any]
    metadata: dict[str, JsonValue] = field(default_factory=dict)
    of: str = "field"


@dataclass(frozen=True)
class QuestionInstance:
    """A question about given things, with its answer: everything that a sample needs except the observations.

    ``words`` fill the wording; one of ``remarks`` is added if there are any.
    """

    files: tuple[SampleFile, ...]
    calls: tuple[PlannedCall, ...]
    slots: tuple[Slot, ...]
    answer_type: AnswerType
    words: Mapping[str, str]
    remarks: tuple[str, ...] = ()

    def query(self, wording: str) -> str:
        """The question as a person asks it."""
        text = wording.format(**self.words)
        if not self.remarks:
            return text
        return f"{text} {self.remarks[zlib.crc32(wording.encode()) % len(self.remarks)]}"
