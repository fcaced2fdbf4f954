"""Things that questions written as data are asked of: files, the call that measures them, and the truth."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from pydantic import JsonValue

from agrotools.build.references import PlannedCall
from agrotools.core import Arguments, SampleFile

_STEP = re.compile(r"steps\[(\d+)\]")


@dataclass(frozen=True)
class Thing:
    """Something that one call measures: a leaf in a photo, a tile of canopy heights, a pair of dates.

    ``truth`` is what a perfect tool returns, as far as the source knows it, in the tool's own form. ``called`` is how
    a question names it: the name of a file ("image_1.jpg"), or a part of one ("left half"). ``words`` are more words
    for wordings (``{one_...}``, ``{two_...}``: prefixed by the thing's place in the sample). ``before`` are calls
    before the measurement (a marked region is found, then measured); where they or the measurement refer to steps,
    these are counted within the thing. ``closer`` are calls that look closer at what the measurement returned, by the
    sample's own count of steps; only made where one thing is asked of.
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
