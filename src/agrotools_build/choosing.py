"""Choice of questions for subjects, spread evenly, or by the composition of the published benchmark.

That is the one of AgroTools (arXiv 2605.22366, section 3), scaled and allocated to templates.
"""

import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations, product, zip_longest
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from pydantic import JsonValue

from agrotools.core import (
    FAMILY_OF_TASK_TYPE,
    AnswerType,
    BenchmarkError,
    Sample,
    Slot,
    ToleranceSlot,
)
from agrotools.loading.leaks import revealed_answer
from agrotools_build.templates.template import Template
from agrotools_build.templates.thing import QuestionInstance, Subject, distinct_files
from agrotools_build.templates.wording import sentences

K = TypeVar("K")

QUERIES = 539
CALLS = 1_447
FILES = 1_097
DISTINCT_TOOLS = {1: 59, 2: 412, 3: 49, 4: 19}
ANSWER_TYPES: dict[AnswerType, int] = {"tolerance": 177, "exact": 154, "plot": 139, "open_text": 69}
"""Queries by answer type.

``plot`` covers all questions about a chart: the paper also reports 52 figures as outputs, but here each of the 139 has
the figure itself among its answers, so that no answer is right without drawing it.
"""

_RANGE = (
    "agromind",
    "clcd",
    "deepnir",
    "deepweeds",
    "fpcd",
    "hi_cna",
    "papple",
    "plantseg",
    "weedsense",
)
_GIVEN = {"ip102": 21.34, "open_canopy": 10.20, "weedmap": 11.50}
SOURCE_PCTS: Mapping[str, float] = {
    **dict.fromkeys(_RANGE, (100 - sum(_GIVEN.values())) / len(_RANGE)),
    **_GIVEN,
}
"""Percent of the queries by data set. Those for which the paper gives only a range, 3.34 to 7.61, have equal shares."""


@dataclass(frozen=True)
class Marginals:
    """Marginal counts of a benchmark of ``queries`` questions.

    The questions are counted by number of distinct tools, answer type and source; ``calls`` and ``files`` are totals
    over all questions.
    """

    queries: int
    distinct_tools: Mapping[int, int]
    answer_types: Mapping[AnswerType, int]
    sources: Mapping[str, int]
    calls: int
    files: int


def published(queries: int = QUERIES) -> Marginals:
    """Return the published figures, scaled to ``queries`` by the largest-remainder method."""
    return Marginals(
        queries=queries,
        distinct_tools=apportioned(DISTINCT_TOOLS, queries),
        answer_types=apportioned(ANSWER_TYPES, queries),
        sources=apportioned(SOURCE_PCTS, queries),
        calls=round(CALLS * queries / QUERIES),
        files=round(FILES * queries / QUERIES),
    )


def apportioned(shares: Mapping[K, float], total: int) -> dict[K, int]:
    """Return whole numbers in these proportions that add up to ``total`` (largest-remainder method)."""
    whole = sum(shares.values())
    exact = {key: share * total / whole for key, share in shares.items()}
    parts = {key: int(value) for key, value in exact.items()}
    by_remainder = sorted(exact, key=lambda key: parts[key] - exact[key])
    for key in by_remainder[: total - sum(parts.values())]:
        parts[key] += 1
    return parts


_MISS = 10_000.0
"""Cost of missing a marginal by one; larger than the total cost of an uneven spread."""
_ABSENT, _FILE = 2 * _MISS, 0.1 * _MISS
"""Cost of a task type that no question has, and of missing the number of files by one."""
_SHORT = 20 * _MISS
"""Cost of a question that a source does not contribute; larger than what any question costs by its kind."""
_SECONDS = 60.0


@dataclass(frozen=True)
class Offer:
    """Properties shared by all questions of an offer; ``tools`` is the number of distinct tools."""

    template: str
    task_type: str
    source: str
    answer_type: AnswerType
    tools: int
    calls: int
    files: int


def allocate(
    available: Mapping[Offer, int], wanted: Marginals, most_of_a_template: Mapping[str, int]
) -> dict[Offer, int]:
    """Choose the number of questions of each offer by integer programming.

    No source contributes more than its share; each contributes as much of it as it can. Then the marginals are met as
    closely as possible, task types that have no question are avoided, and templates are used evenly. ``available``:
    maximum number of each offer; ``most_of_a_template``: number of its wordings. BenchmarkError: no solution.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # takes longer than drawing a scene
    from scipy.sparse import block_diag, bmat

    offers = sorted(
        available, key=lambda each: (each.template, each.source, each.tools, each.calls, each.files)
    )
    if not offers:
        raise BenchmarkError("no question can be asked", hint="give more pictures")
    per_template: Counter[str] = Counter()
    for offer in offers:
        per_template[offer.template] += available[offer]
    most = {
        template: min(total, most_of_a_template[template])
        for template, total in sorted(per_template.items())
    }
    marginals = _marginals(offers, wanted)
    # Unknowns: count per offer; deviation per marginal, down and up; uses of each template, each costlier than the
    # last.
    count, soft, units = len(offers), len(marginals), sum(most.values())
    evenly = {template: 1 / _fair_share(template, offers, wanted) for template in most}
    uses = [
        (2 * rank + 1) * evenly[template]
        for template, number in most.items()
        for rank in range(number)
    ]
    deviations = [
        price for marginal in marginals for price in (marginal.less, marginal.more or 0.0)
    ]
    cost = np.concatenate([np.zeros(count), deviations, uses])
    contributions = np.array([marginal.contributions for marginal in marginals], float)
    membership = np.array(
        [[offer.template == template for offer in offers] for template in most], float
    )
    matrix = bmat(
        [
            [contributions, np.kron(np.eye(soft), [1, -1]), None],
            [membership, None, block_diag([-np.ones((1, number)) for number in most.values()])],
        ],
        format="csc",
    )
    target = np.array([*(marginal.total for marginal in marginals), *[0] * len(most)], float)
    anything = float(wanted.calls + wanted.files + sum(available.values()))
    limits = [
        limit for each in marginals for limit in (anything, 0.0 if each.more is None else anything)
    ]
    upper = np.concatenate([[available[offer] for offer in offers], limits, np.ones(units)])
    solved = milp(
        cost,
        integrality=np.concatenate([np.ones(count + 2 * soft), np.zeros(units)]),
        bounds=Bounds(cast(Any, np.zeros(len(cost))), cast(Any, upper)),
        constraints=LinearConstraint(cast(Any, matrix), cast(Any, target), cast(Any, target)),
        options={"time_limit": _SECONDS, "mip_rel_gap": 0.002, "presolve": False},
    )
    if solved.x is None:
        raise BenchmarkError(
            f"no allocation was found: {solved.message}", hint="ask for fewer questions"
        )
    values = np.round(solved.x[:count]).astype(int)
    return {offer: int(number) for offer, number in zip(offers, values, strict=True) if number}


class _Marginal(NamedTuple):
    """Contribution of each offer to a total, and the cost of one less and one more; None: no more is possible."""

    contributions: list[int]
    total: int
    less: float = _MISS
    more: float | None = _MISS


def _marginals(offers: Sequence[Offer], wanted: Marginals) -> list[_Marginal]:
    def of(field: str, value: object) -> list[int]:
        return [int(getattr(offer, field) == value) for offer in offers]

    return [
        *(_Marginal(of("tools", value), total) for value, total in wanted.distinct_tools.items()),
        *(
            _Marginal(of("answer_type", value), total)
            for value, total in wanted.answer_types.items()
        ),
        *(
            _Marginal(of("source", value), total, _SHORT, None)
            for value, total in wanted.sources.items()
        ),
        *(
            _Marginal(of("task_type", value), 1, _ABSENT, 0.0)
            for value in sorted({each.task_type for each in offers})
        ),
        _Marginal([offer.calls for offer in offers], wanted.calls),
        _Marginal([offer.files for offer in offers], wanted.files, _FILE, _FILE),
    ]


def composition(samples: Sequence[Sample], wanted: Marginals) -> dict[str, JsonValue]:
    """Return the number reached and the number wanted of each kind of sample, and the task types without any."""
    references = [sample.reference for sample in samples if sample.reference]
    tools = Counter(len(set(reference.tools)) for reference in references)
    answers = Counter(sample.answer_type for sample in samples)
    reached: dict[str, tuple[int, int]] = {
        "questions": (len(samples), wanted.queries),
        **{
            f"with {number} tools": (tools[number], total)
            for number, total in wanted.distinct_tools.items()
        },
        **{
            f"{answer} answers": (answers[answer], total)
            for answer, total in wanted.answer_types.items()
        },
        "calls": (sum(len(reference.steps) for reference in references), wanted.calls),
        "shown files": (sum(len(sample.files) for sample in samples), wanted.files),
    }
    absent = FAMILY_OF_TASK_TYPE.keys() - {sample.task_type for sample in samples}
    return {
        "reached": {name: [*pair] for name, pair in reached.items()},
        "absent_task_types": [*sorted(absent)],
    }


def _fair_share(template: str, offers: Sequence[Offer], wanted: Marginals) -> float:
    """Return the number of uses of a template if its sources' questions were spread evenly over their templates."""
    sources = {offer.source for offer in offers if offer.template == template}
    siblings = {offer.template for offer in offers if offer.source in sources}
    return max(1.0, sum(wanted.sources.get(source, 0) for source in sources) / len(siblings))


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
    most_of_a_file: int | None = None,
    *,
    most_of_a_kind: int | None = None,
    shown: Mapping[str, int] | None = None,
    may_share: bool = False,
) -> list[Chosen]:
    """Choose up to ``count`` questions, spread evenly over kinds of questions and over subjects.

    The least used kind is next, for a subject with few samples so far. Among such subjects, those whose answer was not
    yet given to this kind of question are preferred, so that no answer can be guessed from others. No two questions
    share a sentence with each other or with ``used_sentences`` (in the form returned by
    :func:`~agrotools_build.templates.wording.sentences`), no subject is asked the same kind of question twice, and only
    questions with an unambiguous true answer are asked. ``most_of_a_file``: most questions that show the same file;
    None for no limit. No file is shown again before every other one that can be shown has been. The same arguments give
    the same choice.

    ``most_of_a_kind``: most questions of a template; None for no limit. ``shown``: questions asked before that show a
    file, by its stored path. ``may_share``: two questions may share a sentence, but not all of them.
    """
    candidates: dict[tuple[str, str], Chosen | None] = {}
    choice, used_up = _Choice(used_sentences, shown or {}, may_share=may_share), set[str]()
    # Templates about several things alternate with templates about one, so that neither group is served last.
    kinds = (
        [each for each in questions if (each.things == 1) == is_single]
        for is_single in (False, True)
    )
    order = {question.template: index for index, question in enumerate(in_turn(kinds))}

    def candidate(subject: Subject, question: Template) -> Chosen | None:
        key = (subject.name, question.template)
        if key not in candidates:
            candidates[key] = _asked_openly(subject, question, seed)
        return candidates[key]

    def ask_one_more() -> bool:
        most = math.inf if most_of_a_kind is None else most_of_a_kind
        usable = [
            question
            for question in questions
            if question.template not in used_up and len(choice.of_kind[question.template]) < most
        ]
        usable.sort(
            key=lambda question: (len(choice.of_kind[question.template]), order[question.template])
        )
        askable = (
            [
                item
                for each in subjects
                if (item := candidate(each, question)) and choice.has_room(item)
            ]
            for question in usable
        )
        if not (settled := next(filter(None, askable), [])):
            return False
        if item := choice.add(settled):
            candidates[item.subject.name, item.question.template] = None
        else:
            used_up.add(settled[0].question.template)
        return True

    # The limit rises by one at a time, so that the questions are about as many files as possible.
    limits = [None] if most_of_a_file is None else range(1, most_of_a_file + 1)
    for limit in limits:
        choice.most_of_a_file = limit
        while len(choice.chosen) < count and ask_one_more():
            pass
    return choice.chosen


class _Choice:
    """Chosen questions; no two share a sentence, nor two of one kind a wording.

    ``shown`` and ``may_share``: as in :func:`choose`.
    """

    def __init__(
        self,
        used_sentences: Iterable[str] = (),
        shown: Mapping[str, int] | None = None,
        *,
        may_share: bool = False,
    ) -> None:
        self._parts = whole_question if may_share else sentences
        self.chosen: list[Chosen] = []
        self.of_kind = defaultdict[str, list[Chosen]](list)
        self._asked = Counter[str]()
        self._shown = Counter[str](shown or {})
        """Number of chosen questions by the stored path of each file that they show."""
        self._used_sentences = set(used_sentences)
        self.most_of_a_file: int | None = None
        """Most questions that show the same file; None for no limit."""

    def has_room(self, item: Chosen) -> bool:
        """Return False if a file of a question is already shown by as many as may show it."""
        most = self.most_of_a_file
        if most is None:
            return True
        return all(self._shown[file.path] < most for file in item.instance.files)

    def add(self, settled: Sequence[Chosen]) -> Chosen | None:
        """Choose the most novel of questions of one kind; None if none of its wordings can be used."""
        before = self.of_kind[settled[0].question.template]
        novel = _most_novel(settled, before, self._asked)
        item = worded(novel, before, self._used_sentences, self._parts)
        if item is not None:
            self._used_sentences.update(self._parts(item.query))
            self._asked[item.subject.name] += 1
            self._shown.update({file.path for file in item.instance.files})
            before.append(item)
            self.chosen.append(item)
        return item


def whole_question(query: str) -> tuple[str]:
    """Return a question without the parts that vary, as the one part that no other question may share."""
    return (" / ".join(sentences(query)),)


def worded(
    item: Chosen,
    before: Sequence[Chosen],
    used_sentences: Set[str],
    parts: Callable[[str], Iterable[str]] = sentences,
) -> Chosen | None:
    """Return the question in the first wording that is new for its kind and shares no sentence with ``used_sentences``.

    ``before``: earlier questions of the same kind; ``parts``: what of a question no other one may share. None if every
    wording is used up.
    """
    used = {other.wording for other in before}
    reworded = (
        replace(item, wording=wording) for wording in item.question.wordings if wording not in used
    )
    for each in reworded:
        if used_sentences.isdisjoint(parts(each.query)):
            return each
    return None


def _most_novel(settled: Sequence[Chosen], before: Sequence[Chosen], asked: Counter[str]) -> Chosen:
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
    copied = ("plot", "open_text", "keywords", "reference_texts", "image_calls")
    return slot.type not in copied and getattr(slot, "value", 0) == getattr(other, "value", 1)


def ask_subject(subject: Subject, question: Template, seed: int) -> Chosen | None:
    """Return the question about some of the subject's things, without a wording yet; None if no answer is clear."""
    shown = question.things + question.beside
    if question.of != subject.of or shown > subject.things:
        return None
    rng = np.random.default_rng(
        [seed, zlib.crc32(question.template.encode()), zlib.crc32(subject.name.encode())]
    )
    order = [int(index) for index in rng.permutation(subject.things)]
    for number, indices in enumerate(combinations(order, question.things)):
        if number == _MOST_TRIED:
            break
        # More than two things keep their order if it is meaningful (quarters of a picture, dates). Otherwise they are
        # shuffled, because combinations start with the item drawn first and a rare thing would mostly come last.
        in_order = len(indices) > 2 and not question.shuffled
        ordered = (
            tuple(sorted(indices))
            if in_order
            else tuple(int(index) for index in rng.permutation(indices))
        )
        others = [index for index in order if index not in indices][: question.beside]
        numbers = (
            [1 + int(place) for place in rng.permutation(shown)]
            if others
            else list(range(1, shown + 1))
        )
        places = zip((*ordered, *others), numbers, strict=True)
        by_number = {number: subject.shown(index, number) for index, number in places}
        things = tuple(by_number[number] for number in numbers[: question.things])
        if (instance := question.instantiate(things, rng)) is not None:
            if others:
                instance = replace(
                    instance,
                    files=distinct_files([by_number[number] for number in sorted(numbers)]),
                )
            return Chosen(subject, question, instance, wording="")
    return None


def _asked_openly(subject: Subject, question: Template, seed: int) -> Chosen | None:
    """Return the question as :func:`ask_subject` does; None if a number that it gives is by chance its answer."""
    item = ask_subject(subject, question, seed)
    if item is None:
        return None
    query = item.instance.query(question.wordings[0])
    numbers = [slot for slot in item.instance.slots if slot.type == "tolerance"]
    is_told = any(revealed_answer(slot, query) for slot in numbers)
    return None if is_told else item


def in_turn(groups: Iterable[Sequence[T]]) -> list[T]:
    """Return the members of all groups, one of each group at a time."""
    return [member for row in zip_longest(*groups) for member in row if member is not None]


Stocks = Mapping[str, tuple[Sequence[Subject], Sequence[Template]]]
"""Subjects and questions available from each source."""


def choose_allocated(stocks: Stocks, wanted: Marginals, seed: int) -> list[Chosen]:
    """Choose questions that meet the wanted marginals as closely as possible, in an order that mixes sources.

    No two questions share a sentence, no subject is asked the same kind of question twice, and subjects with few
    questions so far are preferred. The same arguments give the same choice. BenchmarkError: nothing can be asked.
    """
    offered = _offered(stocks, seed)
    available = {offer: len(items) for offer, items in offered.items()}
    ways = {
        question.template: len(question.wordings)
        for _, questions in stocks.values()
        for question in questions
    }
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
    choice, short = _Choice(), dict[str, int]()
    # Offers take turns, so that the first ones do not use up subjects that others need.
    for offer in in_turn([offer] * count for offer, count in allocation.items()):
        before = choice.of_kind[offer.template]
        used_subjects = {item.subject.name for item in before}
        if (
            choice.add([item for item in offered[offer] if item.subject.name not in used_subjects])
            is None
        ):
            short[offer.template] = len(before)
    return choice.chosen, short


def _offered(stocks: Stocks, seed: int) -> dict[Offer, list[Chosen]]:
    offered: dict[Offer, list[Chosen]] = defaultdict(list)
    for source, (subjects, questions) in stocks.items():
        for subject, question in product(subjects, questions):
            if (item := _asked_openly(subject, question, seed)) is not None:
                calls, files, kind = (
                    item.instance.calls,
                    item.instance.files,
                    item.instance.answer_type,
                )
                tools = len({call.tool for call in calls})
                offer = Offer(
                    question.template,
                    question.task_type,
                    source,
                    kind,
                    tools,
                    len(calls),
                    len(files),
                )
                offered[offer].append(item)
    return offered
