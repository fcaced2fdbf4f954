"""Solved examples before a question: of the same kind, never of the question's own group."""

import random
from collections import defaultdict
from collections.abc import Sequence

from agrotools.benchmarks.agrieval.items import Item
from agrotools.core import OptionKind, UsageError

_TRIES = 50


class Examples:
    """Draws examples from ``pool``, the same for the same item and seed.

    The group of an item is the narrowest that its file tells: field, else domain, else type. Where all of a kind are of
    one group, or tell none, the group cannot be kept out; ``groups_kept_out`` says so. An item with the same question
    is never drawn.
    """

    def __init__(self, pool: Sequence[Item], seed: int) -> None:
        self._by_kind: dict[OptionKind | None, list[Item]] = defaultdict(list)
        for item in pool:
            self._by_kind[item.kind].append(item)
        self._seed = seed
        self.groups_kept_out = {
            kind: len({_group(item) for item in items}) > 1 for kind, items in self._by_kind.items()
        }

    def for_item(self, item: Item, count: int) -> list[Item]:
        """``count`` examples for ``item``.

        Raises:
            UsageError: there are not enough of its kind outside its group.
        """
        pool = self._by_kind.get(item.kind, [])
        own = _group(item) if self.groups_kept_out.get(item.kind) else None
        rng = random.Random(f"{self._seed}/{item.kind}/{item.number}/{item.question}")
        drawn: dict[str, Item] = {}
        for _ in range(_TRIES * count):
            if len(drawn) == count or not pool:
                break
            other = pool[rng.randrange(len(pool))]
            if other.question != item.question and (own is None or _group(other) != own):
                drawn.setdefault(other.question, other)
        if len(drawn) < count:
            raise UsageError(
                f"there are not {count} examples of the kind {item.kind or 'open'} outside the group of question "
                f"{item.number}",
                hint="ask for fewer shots, or give another file with --option examples=FILE",
            )
        return list(drawn.values())


def _group(item: Item) -> str:
    return next((item.groups[name] for name in ("field", "domain", "type") if name in item.groups), "")
