"""Near copies among questions: nearly the same words, whatever files they show, or the same calls on the same files."""

import json
import re
from difflib import SequenceMatcher

from agrotools.core import Sample
from agrotools.core.record import literal_value, rename_texts

_NEAR = 0.9
"""Share of equal characters, as difflib counts them, from which two questions are nearly the same: one word of ten
differs."""
_VARYING = re.compile(r"\S+\.\w{2,4}\b|\d+(?:[.,]\d+)*")
"""Names of files and numbers, which tell no wordings apart."""


class Questions:
    """Questions so far, to find near copies of them."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}
        self._asked: dict[str, str] = {}

    def copy_of(self, sample: Sample, *, words_alone: bool = False) -> str | None:
        """Return the id of the question that a sample nearly copies; None if there is none."""
        if not words_alone and (asked := self._asked.get(_asked(sample))):
            return asked
        words = _plain(sample.query)
        for other, name in self._words.items():
            matcher = SequenceMatcher(None, words, other, autojunk=False)
            if (
                matcher.real_quick_ratio() >= _NEAR
                and matcher.quick_ratio() >= _NEAR
                and matcher.ratio() >= _NEAR
            ):
                return name
        return None

    def add(self, sample: Sample) -> None:
        """Take a question as one that later ones must not copy."""
        self._words.setdefault(_plain(sample.query), sample.id)
        self._asked.setdefault(_asked(sample), sample.id)


def _plain(question: str) -> str:
    return " ".join(_VARYING.sub("#", question.casefold()).split())


def _asked(sample: Sample) -> str:
    """Return the calls on files by their content and where the answer is: equal for one question in other words."""
    digests = {file.name: file.sha256 or file.name for file in sample.files}
    calls: list[str] = []
    for step in sample.reference.steps if sample.reference else ():
        arguments = rename_texts(dict(step.arguments), digests)
        calls.append(f"{step.tool} {json.dumps(literal_value(arguments), sort_keys=True)}")
    return " ".join([*calls, *sorted(str(slot.from_) for slot in sample.answer)])
