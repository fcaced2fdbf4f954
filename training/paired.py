"""Unanswerable twins for a share of the questions of a benchmark."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from agrotools.core import AbstainSlot
from agrotools_build.choosing import Chosen, in_turn
from agrotools_build.templates.thing import Subject
from agrotools_build.twins import paired, unanswerable_twin

SHARE = 0.17
"""Share of unanswerable samples in a benchmark; some of them break."""


def with_twins(
    items: Sequence[Chosen],
    share: float = SHARE,
    listed: float = 1.0,
    subjects: Sequence[Subject] = (),
    source_of: Callable[[Chosen], str] = lambda _: "",
    most_of_a_source: int | None = None,
) -> list[Chosen]:
    """Return questions in their order, as many with a twin as make up ``share`` of the result, if so many have one.

    Reasons take turns, and so do the templates of a reason. ``listed``: largest share of the twins that the list of
    the files tells apart; ``subjects``: as in :func:`unanswerable_twin`. ``most_of_a_source``: most questions of a
    source (``source_of``), twins counted; None for no limit.
    """
    most = round(len(items) * share / (1 - share))
    twins = {
        number: twin
        for number, item in enumerate(items)
        if (twin := unanswerable_twin(item, subjects)) is not None
    }
    waiting: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, twin in twins.items():
        reason = next(slot.reason for slot in twin.slots if isinstance(slot, AbstainSlot))
        waiting[reason][twin.question.template].append(number)
    told = {
        number
        for number, twin in twins.items()
        if listed_facts(items[number]) != listed_facts(twin)
    }
    limit = (
        most
        if listed >= 1
        else int(min(most * listed, (len(twins) - len(told)) * listed / (1 - listed)))
    )
    order = in_turn(in_turn(templates.values()) for templates in waiting.values())
    refused = {*[number for number in order if number in told][limit:]}
    allowed = [number for number in order if number not in refused]
    if most_of_a_source is not None:
        asked = Counter(source_of(item) for item in items)
        room = {source: most_of_a_source - count for source, count in asked.items()}
        allowed = _within(room, allowed, [source_of(item) for item in items])
    chosen = {*allowed[:most]}
    return [
        each
        for number, item in enumerate(items)
        for each in (paired(item, twins[number]) if number in chosen else (item,))
    ]


def _within(room: dict[str, int], numbers: Sequence[int], sources: Sequence[str]) -> list[int]:
    """Return the numbers in their order, no more of a source than it has room for."""
    taken, allowed = Counter[str](), list[int]()
    for number in numbers:
        source = sources[number]
        if taken[source] < room[source]:
            taken[source] += 1
            allowed.append(number)
    return allowed


def listed_facts(item: Chosen) -> list[tuple[str, ...]]:
    """Return the name of each file in the prompt and the facts given about it; a twin that lacks some can be told."""
    return [(file.name, *file.model_dump(exclude_none=True)) for file in item.instance.files]
