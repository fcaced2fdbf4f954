"""Solved examples before a question: of the same kind, never of the question's own group."""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence

from agrotools.benchmarks.agrieval.items import Item, question_key
from agrotools.core import OptionKind, UsageError


class Examples:
    """Draws examples from ``pool``, the same for the same item and seed.

    The group of an item is the narrowest that its file tells: field, else domain, else type. Where all of a kind are of
    one group, or tell none, the group cannot be kept out; ``groups_kept_out`` says so. An item with the same question,
    or with one that differs in marks and spaces alone, is never drawn: it would tell the answer.
    """

    def __init__(self, pool: Sequence[Item], seed: int) -> None:
        self._by_kind: dict[OptionKind | None, dict[str, tuple[str, Item]]] = defaultdict(dict)
        """By what is asked: group and item."""
        for item in pool:
            self._by_kind[item.kind].setdefault(question_key(item.question), (_group(item), item))
        self._seed = seed
        self._outside: dict[tuple[OptionKind | None, str | None], list[tuple[str, Item]]] = {}
        self.groups_kept_out = {
            kind: len({group for group, _ in items.values()}) > 1 for kind, items in self._by_kind.items()
        }

    def for_item(self, item: Item, count: int) -> list[Item]:
        """``count`` examples for ``item``.

        Raises:
            UsageError: there are not enough of its kind outside its group.
        """
        others = self._others(item)
        rng = random.Random(f"{self._seed}/{item.kind}/{item.number}/{item.question}")
        own = question_key(item.question)
        # One more than is asked for, as the question itself may be among them.
        drawn = [other for key, other in rng.sample(others, min(count + 1, len(others))) if key != own][:count]
        if len(drawn) < count:
            raise UsageError(
                f"there are not {count} examples of the kind {item.kind or 'open'} outside the group of question "
                f"{item.number}",
                hint="ask for fewer shots, or give another file with --option examples=FILE",
            )
        return drawn

    def check(self, items: Iterable[Item], count: int) -> None:
        """Raises as :meth:`for_item` does for the first of ``items`` that has too few."""
        for item in items:
            if len(self._others(item)) <= count:  # with more, there are enough even if it is itself among them
                self.for_item(item, count)

    def _others(self, item: Item) -> list[tuple[str, Item]]:
        """What examples for ``item`` are drawn from, with the keys of the questions; itself may be among them."""
        kind, group = item.kind, _group(item) if self.groups_kept_out.get(item.kind) else None
        if (kind, group) not in self._outside:
            items = self._by_kind.get(kind, {}).items()
            self._outside[kind, group] = [(key, item) for key, (own, item) in items if own != group]
        return self._outside[kind, group]


def _group(item: Item) -> str:
    return next((item.groups[name] for name in ("field", "domain", "type") if name in item.groups), "")
