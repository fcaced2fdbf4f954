"""Which question is asked of which pictures: spread evenly over kinds of questions and over subjects."""

import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pydantic import JsonValue

from agrotools.construct.questions import Ask, Draft, Picture, Question, settled_draft
from agrotools.core import Slot, ToleranceSlot


@dataclass(frozen=True)
class Subject:
    """One or two pictures that samples are made of; samples of one subject share files, so it is one cluster.

    ``picture(index, number)`` is picture ``index`` of the subject as the ``number``-th picture of a sample (its files
    are named after the number, so that a name tells nothing).
    """

    name: str
    pictures: int
    picture: Callable[[int, int], Picture]
    metadata: dict[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True)
class Chosen:
    """A question asked of a subject: all that a sample needs before its calls are run."""

    subject: Subject
    question: Question
    ask: Ask
    draft: Draft
    slots: tuple[Slot, ...]
    wording: str

    @property
    def query(self) -> str:
        """The question as a person asks it."""
        first = self.ask.picture
        words = {"photo": first.noun, "photos": f"{first.noun}s", **self.draft.words}
        remarks = first.remarks
        if not remarks:
            return self.wording.format(**words)
        remark = remarks[zlib.crc32(self.wording.encode()) % len(remarks)]
        names = [file.name for picture in self.ask.pictures for file in picture.files[1:]]
        return f"{self.wording.format(**words)} {remark.format(files=' and '.join(names))}"


def choose(subjects: Sequence[Subject], questions: Sequence[Question], count: int, seed: int) -> list[Chosen]:
    """Up to ``count`` samples: the least used kind of question next, of a subject with few samples so far.

    Among such subjects one is taken whose answer was not yet given to this kind of question, so that no answer can be
    guessed from others. No wording is used twice, no subject is asked the same kind of question twice, and only
    questions that the truth settles are asked. Same arguments, same choice.
    """
    candidates: dict[tuple[str, str], Chosen | None] = {}
    chosen: list[Chosen] = []
    order = {question.template: index for index, question in enumerate(_interleaved(questions))}

    def candidate(subject: Subject, question: Question) -> Chosen | None:
        key = (subject.name, question.template)
        if key not in candidates:
            candidates[key] = _asked_of(subject, question, seed)
        return candidates[key]

    while len(chosen) < count:
        uses = Counter(item.question.template for item in chosen)
        asked = Counter(item.subject.name for item in chosen)
        usable = [question for question in questions if uses[question.template] < len(question.wordings)]
        for question in sorted(usable, key=lambda question: (uses[question.template], order[question.template])):
            settled = [item for subject in subjects if (item := candidate(subject, question)) is not None]
            if settled:
                break
        else:
            return chosen
        before = [item for item in chosen if item.question is question]
        item = _best(settled, before, asked)
        chosen.append(replace(item, wording=question.wordings[len(before)]))
        candidates[item.subject.name, question.template] = None
    return chosen


def _best(settled: Sequence[Chosen], before: Sequence[Chosen], asked: Counter[str]) -> Chosen:
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
    return slot.type not in ("plot", "open_text") and getattr(slot, "value", 0) == getattr(other, "value", 1)


def _asked_of(subject: Subject, question: Question, seed: int) -> Chosen | None:
    if question.pictures > subject.pictures:
        return None
    rng = np.random.default_rng([seed, zlib.crc32(question.template.encode()), zlib.crc32(subject.name.encode())])
    order = [int(index) for index in rng.permutation(subject.pictures)]
    sets = [order[:2]] if question.pictures == 2 else [[index] for index in order]
    for indices in sets:
        ask = Ask(tuple(subject.picture(index, number) for number, index in enumerate(indices, start=1)), rng)
        if (settled := settled_draft(question, ask)) is not None:
            return Chosen(subject, question, ask, *settled, wording="")
    return None


def _interleaved(questions: Sequence[Question]) -> list[Question]:
    """Kinds about two pictures and kinds about one in turn, so that neither waits for the other."""
    pairs = [question for question in questions if question.pictures == 2]
    singles = [question for question in questions if question.pictures == 1]
    longest = max(len(pairs), len(singles))
    return [kind[k] for k in range(longest) for kind in (pairs, singles) if k < len(kind)]
