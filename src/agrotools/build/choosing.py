"""Which question is asked of which pictures: spread evenly over kinds of questions and over subjects."""

import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from agrotools.build.asking import Askable, Asked, Subject
from agrotools.build.templates.wording import sentences
from agrotools.core import Slot, ToleranceSlot

_MOST_TRIED = 40
"""Combinations of a subject's things that a question is tried on."""


@dataclass(frozen=True)
class Chosen:
    """A question asked of a subject: all that a sample needs before its calls are run."""

    subject: Subject
    question: Askable
    asked: Asked
    wording: str

    @property
    def query(self) -> str:
        """The question as a person asks it."""
        return self.asked.query(self.wording)

    @property
    def slots(self) -> tuple[Slot, ...]:
        return self.asked.slots


def choose(
    subjects: Sequence[Subject],
    questions: Sequence[Askable],
    count: int,
    seed: int,
    said: Collection[str] = (),
) -> list[Chosen]:
    """Up to ``count`` samples: the least used kind of question next, of a subject with few samples so far.

    Among such subjects one is taken whose answer was not yet given to this kind of question, so that no answer can be
    guessed from others. No two questions share a sentence, nor does one with ``said`` (as
    :func:`~agrotools.build.templates.wording.sentences` gives them), no subject is asked the same kind of question
    twice, and only questions that the truth settles are asked. Same arguments, same choice.
    """
    candidates: dict[tuple[str, str], Chosen | None] = {}
    chosen: list[Chosen] = []
    taken = set(said)
    used_up: set[str] = set()
    order = {question.template: index for index, question in enumerate(_interleaved(questions))}

    def candidate(subject: Subject, question: Askable) -> Chosen | None:
        key = (subject.name, question.template)
        if key not in candidates:
            candidates[key] = asked_of(subject, question, seed)
        return candidates[key]

    while len(chosen) < count:
        uses = Counter(item.question.template for item in chosen)
        asked = Counter(item.subject.name for item in chosen)
        usable = [question for question in questions if question.template not in used_up]
        for question in sorted(usable, key=lambda question: (uses[question.template], order[question.template])):
            settled = [item for subject in subjects if (item := candidate(subject, question)) is not None]
            if settled:
                break
        else:
            return chosen
        before = [item for item in chosen if item.question is question]
        item = worded(least_like(settled, before, asked), before, taken)
        if item is None:
            used_up.add(question.template)
            continue
        taken.update(sentences(item.query))
        chosen.append(item)
        candidates[item.subject.name, question.template] = None
    return chosen


def worded(item: Chosen, before: Sequence[Chosen], said: Collection[str]) -> Chosen | None:
    """The question in the first wording that none of its kind had ``before`` and that shares no sentence with ``said``;
    None if there is none."""
    used = {other.wording for other in before}
    for wording in item.question.wordings:
        if wording in used:
            continue
        put = replace(item, wording=wording)
        if not any(sentence in said for sentence in sentences(put.query)):
            return put
    return None


def least_like(settled: Sequence[Chosen], before: Sequence[Chosen], asked: Counter[str]) -> Chosen:
    """Of the subjects with fewest samples (one more is as good), the one whose answer is least like earlier ones."""
    fewest = min(asked[item.subject.name] for item in settled)
    fresh = [item for item in settled if asked[item.subject.name] <= fewest + 1]
    shift = zlib.crc32(settled[0].question.template.encode())

    def rank(position: int) -> tuple[int, int, int]:
        item = fresh[position]
        clashes = sum(_clash(item.slots, earlier.slots) for earlier in before)
        return clashes, asked[item.subject.name], (position + shift) % len(fresh)

    return fresh[min(range(len(fresh)), key=rank)]


def _clash(slots: Sequence[Slot], earlier: Sequence[Slot]) -> int:
    """How many answers would be right if they were copied from an earlier sample of the kind."""
    return sum(_copied_is_right(slot, other) for slot, other in zip(slots, earlier, strict=True))


def _copied_is_right(slot: Slot, other: Slot) -> bool:
    if isinstance(slot, ToleranceSlot) and isinstance(other, ToleranceSlot):
        return abs(slot.value - other.value) <= slot.margin
    return slot.type not in (
        "plot",
        "open_text",
        "keywords",
        "reference_texts",
        "image_calls",
        "sub_tasks",
    ) and getattr(slot, "value", 0) == getattr(other, "value", 1)


def asked_of(subject: Subject, question: Askable, seed: int) -> Chosen | None:
    """The question asked of some of the subject's things, not worded yet; None where the truth settles it for none."""
    if question.of != subject.of or question.things > subject.things:
        return None
    rng = np.random.default_rng([seed, zlib.crc32(question.template.encode()), zlib.crc32(subject.name.encode())])
    order = [int(index) for index in rng.permutation(subject.things)]
    for number, indices in enumerate(combinations(order, question.things)):
        if number == _MOST_TRIED:
            break
        # Many things are shown in their own order where that says something: quarters of a picture, dates. Others are
        # put into any order: combinations begin with the first that was drawn, so a rare thing would mostly come last.
        in_order = len(indices) > 2 and not question.shuffled
        ordered = tuple(sorted(indices)) if in_order else tuple(int(index) for index in rng.permutation(indices))
        shown = tuple(subject.shown(index, number) for number, index in enumerate(ordered, start=1))
        if (asked := question.asked(shown, rng)) is not None:
            return Chosen(subject, question, asked, wording="")
    return None


def _interleaved(questions: Sequence[Askable]) -> list[Askable]:
    """Kinds about several things and kinds about one in turn, so that neither waits for the other."""
    pairs = [question for question in questions if question.things > 1]
    singles = [question for question in questions if question.things == 1]
    longest = max(len(pairs), len(singles))
    return [kind[k] for k in range(longest) for kind in (pairs, singles) if k < len(kind)]
