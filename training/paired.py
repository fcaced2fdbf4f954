"""Unanswerable twins for a share of the questions of a benchmark.

Part of ``pack_benchmarks.py`` and of ``field_parts``.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from agrotools.core import AbstainSlot
from agrotools_build.choosing import Chosen, in_turn
from agrotools_build.templates.thing import Subject
from agrotools_build.twins import paired, unanswerable_twin

SHARE = 0.17
"""Share of unanswerable samples in a benchmark; some of them break."""


EMPTY = 1 / 8
"""Largest share of twins with an empty file: a black picture is known by its mean colour, without a look."""


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
    the files tells apart; ``subjects``: as in :func:`unanswerable_twin`. Beyond that share, and beyond :data:`EMPTY`, a
    question gets a twin that must be looked at, or none. ``most_of_a_source``: most questions of a source
    (``source_of``), twins counted; None for no limit.
    """
    most = round(len(items) * share / (1 - share))
    twins = _twins_of(items, subjects, looked_at=False)
    looked_at = _twins_of(items, subjects, looked_at=True)
    told = {number for number, twin in twins.items() if _is_told(items[number], twin)}
    empty = {number for number, twin in twins.items() if twin.instance.has_empty_file}
    plain = len(twins.keys() - told - empty) + len((told | empty) & looked_at.keys())
    refused: set[int] = set()
    for some, largest in ((told, listed), (empty, EMPTY)):
        if largest < 1:
            limit = int(min(most * largest, plain * largest / (1 - largest)))
            refused |= {*[number for number in _in_turn(twins) if number in some][limit:]}
    left = {number: twin for number, twin in twins.items() if number not in refused}
    left |= {number: looked_at[number] for number in refused if number in looked_at}
    allowed = _in_turn(left)
    if most_of_a_source is not None:
        asked = Counter(source_of(item) for item in items)
        room = {source: most_of_a_source - count for source, count in asked.items()}
        allowed = _within(room, allowed, [source_of(item) for item in items])
    chosen = {*allowed[:most]}
    return [
        each
        for number, item in enumerate(items)
        for each in (paired(item, left[number]) if number in chosen else (item,))
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


def _twins_of(
    items: Sequence[Chosen], subjects: Sequence[Subject], *, looked_at: bool
) -> dict[int, Chosen]:
    """Return the twins of those questions that have one, by the place of the question."""
    return {
        number: twin
        for number, item in enumerate(items)
        if (twin := unanswerable_twin(item, subjects, looked_at=looked_at)) is not None
    }


def _in_turn(twins: Mapping[int, Chosen]) -> list[int]:
    """Return the places of questions with a twin: reasons take turns, and so do the templates of a reason."""
    waiting: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, twin in sorted(twins.items()):
        reason = next(slot.reason for slot in twin.slots if isinstance(slot, AbstainSlot))
        waiting[reason][twin.question.template].append(number)
    return in_turn([in_turn(templates.values()) for templates in waiting.values()])


def _is_told(item: Chosen, twin: Chosen) -> bool:
    return listed_facts(item) != listed_facts(twin)


def listed_facts(item: Chosen) -> list[tuple[str, ...]]:
    """Return the name of each file in the prompt and the facts given about it; a twin that lacks some can be told."""
    return [(file.name, *file.model_dump(exclude_none=True)) for file in item.instance.files]
