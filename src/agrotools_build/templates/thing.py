"""Subjects and things of questions (files, measuring call, truth), and questions with their values filled in."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import JsonValue

from agrotools.core import AnswerType, Arguments, SampleFile, Slot
from agrotools.core.record import renumber_refs
from agrotools_build.references import PlannedCall, ref

Words = Mapping[str, str]

_REF = re.compile(r"@(\d+)((?:\.[A-Za-z_]\w*|\[\d+\])+)")
_GIVEN = re.compile(r"\{(\w+)\}")


def filled(text: str, words: Words) -> str:
    """Return the text with ``{limit}`` and other words replaced by their values; ValueError if a word is unknown."""

    def word(match: re.Match[str]) -> str:
        if match[1] not in words:
            raise ValueError(
                f"{{{match[1]}}} is not a word of this template; known: {', '.join(sorted(words))}"
            )
        return words[match[1]]

    return _GIVEN.sub(word, text)


def references_written_out(text: str) -> str:
    """Expand ``@0.severity_pct`` to ``steps[0].observation.severity_pct``."""
    return _REF.sub(lambda match: f"steps[{match[1]}].observation{match[2]}", text)


def filled_arguments(value: JsonValue, words: Words) -> JsonValue:
    """Return arguments of a step with words and references filled in; a lone numeric word becomes a number."""
    if isinstance(value, dict):
        return {filled(key, words): filled_arguments(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [filled_arguments(item, words) for item in value]
    if not isinstance(value, str):
        return value
    if match := _REF.fullmatch(filled(value, words)):
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


@dataclass(frozen=True)
class Thing:
    """Something that one call measures: a leaf in a photo, a tile of canopy heights, a pair of dates.

    Attributes:
        truth: result of a perfect tool, in the tool's own format, as far as the source knows it.
        called: name used in the question: a file ("image_1.jpg") or a part of one ("left half").
        words: further words for wordings (``{one_...}``, ``{two_...}``: prefixed by the thing's place in the sample).
        before: calls before the measurement (a marked region is found, then measured). References in them or in the
            measurement number the steps within the thing.
        closer: calls that inspect the result of the measurement further, with references in the sample's step numbers;
            only made for questions about a single thing.
        readings: the unrounded truth as the source reads it, followed by alternative readings; a question is not asked
            if they disagree on its answer. A thing with readings is measured by a single call.
        lacking: why no back-end of this machine can measure it; empty if one can.
    """

    files: tuple[SampleFile, ...]
    tool: str
    arguments: Arguments
    truth: Mapping[str, JsonValue]
    called: str
    thought: str
    words: Mapping[str, str] = field(default_factory=dict)
    closer: tuple[PlannedCall, ...] = ()
    before: tuple[PlannedCall, ...] = ()
    readings: tuple[dict[str, JsonValue], ...] = ()
    lacking: str = ""

    @property
    def as_read(self) -> dict[str, JsonValue]:
        """The unrounded truth as the source reads it, or the rounded truth if there are no readings."""
        return self.readings[0] if self.readings else dict(self.truth)

    @property
    def measured(self) -> PlannedCall:
        return PlannedCall(
            self.tool, self.arguments, dict(self.truth), thought=self.thought, lacking=self.lacking
        )


def distinct_files(things: Sequence[Thing]) -> tuple[SampleFile, ...]:
    """Return the files of these things, each file once."""
    return tuple({file.name: file for thing in things for file in thing.files}.values())


def calls_on(things: Sequence[Thing]) -> tuple[PlannedCall, ...]:
    """Return the calls on these things in order.

    The calls before the measurements come first, level by level for all things, then all measurements, then closer
    inspections. With several things, the first calls of all things form one group, their second calls the next. A first
    call that several things need, as that for the mark of a picture which shows them all, is made once.
    """
    depth, many = max(len(thing.before) for thing in things), len(things) > 1
    spots = [
        (level, n)
        for level in range(depth)
        for n, thing in enumerate(things)
        if level < len(thing.before)
    ]
    spots += [(depth, n) for n in range(len(things))]
    placed: list[PlannedCall] = []
    steps_of: list[list[int]] = [[] for _ in things]
    for level, n in spots:
        call = things[n].measured if level == depth else things[n].before[level]
        shared = _shared_first_call(things, n) if level == 0 and depth else n
        if shared != n:
            steps_of[n].append(steps_of[shared][0])
            continue
        arguments = renumber_refs(dict(call.arguments), dict(enumerate(steps_of[n])))
        steps_of[n].append(len(placed))
        placed.append(
            replace(call, arguments=cast(Arguments, arguments), group=level if many else call.group)
        )
    # Calls of a group do not depend on each other, so there are no closer inspections with several things.
    return (*placed, *(() if many else things[0].closer))


def first_calls(things: Sequence[Thing]) -> int:
    """Return the number of calls before the measurements."""
    return sum(
        len(thing.before) - (_shared_first_call(things, n) != n) for n, thing in enumerate(things)
    )


def _shared_first_call(things: Sequence[Thing], number: int) -> int:
    """Return the number of the first thing that begins with the same call before its measurement as this one."""
    first = things[number].before[:1]
    alike = (n for n in range(number) if first and things[n].before[:1] == first)
    return next(alike, number)


@dataclass(frozen=True)
class Subject:
    """One or more things from which samples are made. Samples of a subject share files, so a subject is one cluster.

    Subjects that name the same ``cluster`` form one cluster, too: the place, day or plant that their files show.

    ``shown(index, number)`` returns thing ``index`` of the subject as the ``number``-th thing of a sample; its files
    are named after ``number``, so that their names reveal nothing. ``of`` is the kind of thing; only questions about
    this kind are asked. ``instead``: files that may be shown in place of others to make a question unanswerable, by
    kind (``bare``) and by the stored path of the file whose place they take. ``blank`` returns a file that holds
    nothing and is listed like a given one; None if there is none of its kind. ``elsewhere`` returns for the calls of a
    question what ``instead`` holds of kind ``elsewhere``: files in which the places that these calls point at show
    something else; empty if there are none. ``groups`` are those of its samples.
    """

    name: str
    things: int
    shown: Callable[[int, int], Any]
    metadata: dict[str, JsonValue] = field(default_factory=dict)
    of: str = "field"
    instead: Mapping[str, Mapping[str, SampleFile]] = field(default_factory=dict)
    blank: Callable[[SampleFile], SampleFile | None] | None = None
    elsewhere: Callable[[Sequence[PlannedCall]], Mapping[str, SampleFile]] | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    cluster: str = ""


@dataclass(frozen=True)
class QuestionInstance:
    """A question about given things with its answer: a sample without observations. ``words`` fill the wording.

    ``has_known_truth``: it has no answer, and its calls have the results of perfect tools, which say so; real tools may
    say otherwise. Else an unanswerable question is dropped if the real tools answer it.
    """

    files: tuple[SampleFile, ...]
    calls: tuple[PlannedCall, ...]
    slots: tuple[Slot, ...]
    answer_type: AnswerType
    words: Mapping[str, str]
    has_known_truth: bool = False
    reason_is_seen: bool = False
    """True if it has no answer, and whoever looks at the files sees why."""
    has_empty_file: bool = False
    """True if it has no answer because a file holds nothing: a black picture, a depth map without readings."""

    def query(self, wording: str) -> str:
        return wording.format(**self.words)
