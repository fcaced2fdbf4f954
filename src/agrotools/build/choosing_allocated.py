"""Which question is asked of which subject where a benchmark must have given marginals."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agrotools.build.allocating import Allocation, Offer, allocate, offer_order
from agrotools.build.asking import Askable, Subject
from agrotools.build.choosing import Chosen, asked_of, least_like, worded
from agrotools.build.marginals import Marginals
from agrotools.build.templates.wording import sentences
from agrotools.core import BenchmarkError

RecordedCounts = Mapping[str, Mapping[str, Sequence[Sequence[int]]]]
"""By source and template: [distinct tools, calls, files, count] of each offer that is taken."""


@dataclass(frozen=True)
class Stock:
    """What questions can be asked of: ``source`` is the data set whose share they fill."""

    source: str
    subjects: Sequence[Subject]
    questions: Sequence[Askable]


def choose_allocated(stocks: Sequence[Stock], wanted: Marginals, seed: int) -> tuple[list[Chosen], Allocation]:
    """Questions with these marginals, in an order that mixes sources; and how they were allotted.

    No two share a sentence, no subject is asked the same kind of question twice, and of the subjects on offer those
    with few questions so far are taken first. Same arguments, same choice.

    Raises:
        BenchmarkError: subjects and wordings do not suffice for so many questions.
    """
    offered = _offered(stocks, seed)
    available = {offer: len(items) for offer, items in offered.items()}
    ways = {question.template: len(question.wordings) for stock in stocks for question in stock.questions}
    while True:
        allocation = allocate(available, wanted, ways)
        chosen, short = _chosen(allocation, offered)
        if not short:
            return chosen, allocation
        # Ways to put a question may share a sentence with one another, so there are fewer than were counted.
        ways |= short


def choose_recorded(stocks: Sequence[Stock], recorded: RecordedCounts, seed: int) -> tuple[list[Chosen], Allocation]:
    """Questions by recorded counts instead of marginals; otherwise as :func:`choose_allocated`.

    Raises:
        BenchmarkError: subjects and wordings do not suffice for what is recorded.
    """
    offered = _offered(stocks, seed)
    wanted: dict[tuple[str | int, ...], int] = {
        (template, source, *row[:-1]): row[-1]
        for source, templates in recorded.items()
        for template, rows in templates.items()
        for row in rows
    }
    counts = {offer: wanted[key] for offer in sorted(offered, key=offer_order) if (key := offer_order(offer)) in wanted}
    allocation = Allocation(counts)
    chosen, short = _chosen(allocation, offered)
    if short or len(chosen) != sum(wanted.values()):
        raise BenchmarkError(f"only {len(chosen)} of the {sum(wanted.values())} recorded questions can be asked")
    return chosen, allocation


def _chosen(allocation: Allocation, offered: Mapping[Offer, Sequence[Chosen]]) -> tuple[list[Chosen], dict[str, int]]:
    """A subject and a wording for each; and of templates whose wordings do not suffice, how often they do."""
    asked: Counter[str] = Counter()
    of_kind: dict[str, list[Chosen]] = defaultdict(list)
    said: set[str] = set()
    chosen: list[Chosen] = []
    short: dict[str, int] = {}
    for offer in _in_turn(allocation.counts):
        before = of_kind[offer.template]
        taken = {item.subject.name for item in before}
        left = [item for item in offered[offer] if item.subject.name not in taken]
        item = worded(least_like(left, before, asked), before, said)
        if item is None:
            short[offer.template] = len(before)
            continue
        said.update(sentences(item.query))
        asked[item.subject.name] += 1
        before.append(item)
        chosen.append(item)
    return chosen, short


def _offered(stocks: Sequence[Stock], seed: int) -> dict[Offer, list[Chosen]]:
    offered: dict[Offer, list[Chosen]] = defaultdict(list)
    for stock in stocks:
        for subject in stock.subjects:
            for question in stock.questions:
                if (item := asked_of(subject, question, seed)) is not None:
                    offered[_offer(stock.source, item)].append(item)
    return offered


def _offer(source: str, item: Chosen) -> Offer:
    asked, question = item.asked, item.question
    return Offer(
        template=question.template,
        task_type=question.task_type,
        source=source,
        answer_type=asked.answer_type,
        tools=len({call.tool for call in asked.calls}),
        calls=len(asked.calls),
        files=len(asked.files),
    )


def _in_turn(counts: Mapping[Offer, int]) -> list[Offer]:
    """One of each offer after the other, so that subjects with few choices left are not all taken by the first."""
    rounds = max(counts.values(), default=0)
    return [offer for turn in range(rounds) for offer, count in counts.items() if turn < count]
