"""Which question is asked of which pictures: spread evenly over kinds of questions and over subjects."""

import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from pydantic import JsonValue

from agrotools.construct.questions import Ask, Draft, Picture, Question, settled_draft
from agrotools.core import Slot


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
    """Up to ``count`` samples: the least used kind of question next, of the subject with fewest samples so far.

    No wording is used twice, no subject is asked the same kind of question twice, and only questions that the truth
    settles are asked. Same arguments, same choice.
    """
    chosen: list[Chosen] = []
    uses: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    found: dict[tuple[str, str], Chosen | None] = {}
    order = {question.template: index for index, question in enumerate(_interleaved(questions))}
    while len(chosen) < count:
        open_questions = [question for question in questions if uses[question.template] < len(question.wordings)]
        open_questions.sort(key=lambda question: (uses[question.template], order[question.template]))
        step = _next(open_questions, subjects, asked, found, uses, seed)
        if step is None:
            break
        chosen.append(step)
        uses[step.question.template] += 1
        asked[step.subject.name] += 1
        found[step.subject.name, step.question.template] = None
    return chosen


def _next(
    questions: Sequence[Question],
    subjects: Sequence[Subject],
    asked: Counter[str],
    found: dict[tuple[str, str], Chosen | None],
    uses: Counter[str],
    seed: int,
) -> Chosen | None:
    for question in questions:
        shift = zlib.crc32(question.template.encode()) % len(subjects)
        rotated = [*subjects[shift:], *subjects[:shift]]
        for subject in sorted(rotated, key=lambda subject: asked[subject.name]):
            key = (subject.name, question.template)
            if key not in found:
                found[key] = _asked_of(subject, question, seed)
            if (candidate := found[key]) is not None:
                wording = question.wordings[uses[question.template]]
                return Chosen(subject, question, candidate.ask, candidate.draft, candidate.slots, wording)
    return None


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
