"""Choice of questions for subjects, spread evenly over kinds of questions and over subjects."""

import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, zip_longest
from typing import TypeVar

import numpy as np

from agrotools.build.allocation import Marginals, Offer, allocate
from agrotools.build.templates.template import Template
from agrotools.build.templates.thing import QuestionInstance, Subject, distinct_files
from agrotools.build.templates.wording import sentences
from agrotools.core import Slot, ToleranceSlot

T = TypeVar("T")
_MOST_TRIED = 40
"""Maximum number of combinations of a subject's things that are tried for a question."""


@dataclass(frozen=True)
class Chosen:
    """A question chosen for a subject, with everything that a sample needs before its calls are run."""

    subject: Subject
    question: Template
    instance: QuestionInstance
    wording: str
    pair: str = ""
    """Key that an answerable question and its unanswerable twin share; empty without a twin."""

    @property
    def query(self) -> str:
        return self.instance.query(self.wording)

    @property
    def slots(self) -> tuple[Slot, ...]:
        return self.instance.slots


def choose(
    subjects: Sequence[Subject],
    questions: Sequence[Template],
    count: int,
    seed: int,
    used_sentences: Collection[str] = (),
) -> list[Chosen]:
    """Choose up to ``count`` questions, spread evenly over kinds of questions and over subjects.

    The least used kind is next, for a subject with few samples so far. Among such subjects, those whose answer was not
    yet given to this kind of question are preferred, so that no answer can be guessed from others. No two questions
    share a sentence with each other or with ``used_sentences`` (in the form returned by
    :func:`~agrotools.build.templates.wording.sentences`), no subject is asked the same kind of question twice, and only
    questions with an unambiguous true answer are asked. The same arguments give the same choice.
    """
    candidates: dict[tuple[str, str], Chosen | None] = {}
    chosen: list[Chosen] = []
    used_sentences = set(used_sentences)
    used_up: set[str] = set()
    # Templates about several things alternate with templates about one, so that neither group is served last.
    kinds = ([each for each in questions if (each.things == 1) == is_single] for is_single in (False, True))
    order = {question.template: index for index, question in enumerate(in_turn(kinds))}

    def candidate(subject: Subject, question: Template) -> Chosen | None:
        key = (subject.name, question.template)
        if key not in candidates:
            candidates[key] = ask_subject(subject, question, seed)
        return candidates[key]

    while len(chosen) < count:
        uses = Counter(item.question.template for item in chosen)
        question_counts = Counter(item.subject.name for item in chosen)
        usable = [question for question in questions if question.template not in used_up]
        for question in sorted(usable, key=lambda question: (uses[question.template], order[question.template])):
            settled = [item for subject in subjects if (item := candidate(subject, question)) is not None]
            if settled:
                break
        else:
            return chosen
        before = [item for item in chosen if item.question is question]
        item = worded(most_novel(settled, before, question_counts), before, used_sentences)
        if item is None:
            used_up.add(question.template)
            continue
        used_sentences.update(sentences(item.query))
        chosen.append(item)
        candidates[item.subject.name, question.template] = None
    return chosen


def worded(item: Chosen, before: Sequence[Chosen], used_sentences: Collection[str]) -> Chosen | None:
    """Return the question in the first wording that is new for its kind and shares no sentence with ``used_sentences``.

    ``before``: earlier questions of the same kind. None if every wording is used up.
    """
    used = {other.wording for other in before}
    for wording in item.question.wordings:
        if wording in used:
            continue
        reworded = replace(item, wording=wording)
        if not any(sentence in used_sentences for sentence in sentences(reworded.query)):
            return reworded
    return None


def most_novel(settled: Sequence[Chosen], before: Sequence[Chosen], asked: Counter[str]) -> Chosen:
    """Return the candidate least like earlier answers, of subjects with the fewest samples or one more."""
    fewest = min(asked[item.subject.name] for item in settled)
    fresh = [item for item in settled if asked[item.subject.name] <= fewest + 1]
    shift = zlib.crc32(settled[0].question.template.encode())

    def rank(position: int) -> tuple[int, int, int]:
        item = fresh[position]
        # Answers that would be right if copied from an earlier sample of the same kind.
        clashes = sum(
            _copied_is_right(slot, other)
            for earlier in before
            for slot, other in zip(item.slots, earlier.slots, strict=True)
        )
        return clashes, asked[item.subject.name], (position + shift) % len(fresh)

    return fresh[min(range(len(fresh)), key=rank)]


def _copied_is_right(slot: Slot, other: Slot) -> bool:
    if isinstance(slot, ToleranceSlot) and isinstance(other, ToleranceSlot):
        return abs(slot.value - other.value) <= slot.margin
    copied = ("plot", "open_text", "keywords", "reference_texts", "image_calls", "sub_tasks")
    return slot.type not in copied and getattr(slot, "value", 0) == getattr(other, "value", 1)


def ask_subject(subject: Subject, question: Template, seed: int) -> Chosen | None:
    """Return the question about some of the subject's things, without a wording yet; None if no answer is clear."""
    shown = question.things + question.beside
    if question.of != subject.of or shown > subject.things:
        return None
    rng = np.random.default_rng([seed, zlib.crc32(question.template.encode()), zlib.crc32(subject.name.encode())])
    order = [int(index) for index in rng.permutation(subject.things)]
    for number, indices in enumerate(combinations(order, question.things)):
        if number == _MOST_TRIED:
            break
        # More than two things keep their order if it is meaningful (quarters of a picture, dates). Otherwise they are
        # shuffled, because combinations start with the item drawn first and a rare thing would mostly come last.
        in_order = len(indices) > 2 and not question.shuffled
        ordered = tuple(sorted(indices)) if in_order else tuple(int(index) for index in rng.permutation(indices))
        others = [index for index in order if index not in indices][: question.beside]
        numbers = [1 + int(place) for place in rng.permutation(shown)] if others else list(range(1, shown + 1))
        places = zip((*ordered, *others), numbers, strict=True)
        by_number = {number: subject.shown(index, number) for index, number in places}
        things = tuple(by_number[number] for number in numbers[: question.things])
        if (instance := question.instantiate(things, rng)) is not None:
            if others:
                instance = replace(instance, files=distinct_files([by_number[number] for number in sorted(numbers)]))
            return Chosen(subject, question, instance, wording="")
    return None


def in_turn(groups: Iterable[Sequence[T]]) -> list[T]:
    """Return the members of all groups, one of each group at a time."""
    return [member for row in zip_longest(*groups) for member in row if member is not None]


Stocks = Mapping[str, tuple[Sequence[Subject], Sequence[Template]]]
"""Subjects and questions available from each source."""


def choose_allocated(stocks: Stocks, wanted: Marginals, seed: int) -> list[Chosen]:
    """Choose questions that meet the wanted marginals as closely as possible, in an order that mixes sources.

    No two questions share a sentence, no subject is asked the same kind of question twice, and subjects with few
    questions so far are preferred. The same arguments give the same choice.

    Raises:
        BenchmarkError: nothing can be asked.
    """
    offered = _offered(stocks, seed)
    available = {offer: len(items) for offer, items in offered.items()}
    ways = {question.template: len(question.wordings) for _, questions in stocks.values() for question in questions}
    while True:
        allocation = allocate(available, wanted, ways)
        chosen, short = _chosen(allocation, offered)
        if not short:
            return chosen
        # Some wordings of a template share a sentence, so fewer are usable than were counted.
        ways |= short


def _chosen(
    allocation: Mapping[Offer, int], offered: Mapping[Offer, Sequence[Chosen]]
) -> tuple[list[Chosen], dict[str, int]]:
    """Choose subject and wording of each allotted question; also return the wordings of templates that have too few."""
    question_counts: Counter[str] = Counter()
    of_kind: dict[str, list[Chosen]] = defaultdict(list)
    used_sentences: set[str] = set()
    chosen: list[Chosen] = []
    short: dict[str, int] = {}
    # Offers take turns, so that the first ones do not use up subjects that others need.
    for offer in in_turn([offer] * count for offer, count in allocation.items()):
        before = of_kind[offer.template]
        used_subjects = {item.subject.name for item in before}
        available = [item for item in offered[offer] if item.subject.name not in used_subjects]
        item = worded(most_novel(available, before, question_counts), before, used_sentences)
        if item is None:
            short[offer.template] = len(before)
            continue
        used_sentences.update(sentences(item.query))
        question_counts[item.subject.name] += 1
        before.append(item)
        chosen.append(item)
    return chosen, short


def _offered(stocks: Stocks, seed: int) -> dict[Offer, list[Chosen]]:
    offered: dict[Offer, list[Chosen]] = defaultdict(list)
    for source, (subjects, questions) in stocks.items():
        for subject in subjects:
            for question in questions:
                if (item := ask_subject(subject, question, seed)) is not None:
                    offered[_offer(source, item)].append(item)
    return offered


def _offer(source: str, item: Chosen) -> Offer:
    instance, question = item.instance, item.question
    return Offer(
        template=question.template,
        task_type=question.task_type,
        source=source,
        answer_type=instance.answer_type,
        tools=len({call.tool for call in instance.calls}),
        calls=len(instance.calls),
        files=len(instance.files),
    )
