"""Subjects that questions can be asked of, and questions that were asked of them."""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from agrotools.build.references import PlannedCall
from agrotools.core import AnswerType, SampleFile, Slot


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
class Asked:
    """A question asked of certain things, with its answer: all that a sample needs but the observations.

    ``words`` fill the wording; one of ``remarks`` is added where there are any.
    """

    files: tuple[SampleFile, ...]
    calls: tuple[PlannedCall, ...]
    slots: tuple[Slot, ...]
    answer_type: AnswerType
    words: Mapping[str, str]
    remarks: tuple[str, ...] = ()

    def query(self, wording: str) -> str:
        """The question as a person asks it."""
        asked = wording.format(**self.words)
        if not self.remarks:
            return asked
        return f"{asked} {self.remarks[zlib.crc32(wording.encode()) % len(self.remarks)]}"
