"""Splits of the pool by group, so that no photograph lies in two parts."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np


def halves(rows: Sequence[tuple[str, str, bool]], share: float, seed: int) -> set[int]:
    """Return places of about ``share`` of the wanted rows of each label, whole groups at a time.

    Args:
        rows: group, label and whether it is wanted, of each row.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for place, (group, _, wanted) in enumerate(rows):
        if wanted:
            places[group].append(place)
    total = Counter(label for _, label, wanted in rows if wanted)
    taken: Counter[str] = Counter()
    chosen: set[int] = set()
    order = sorted(places)
    np.random.default_rng(seed).shuffle(order)
    for group in order:
        inside = Counter(rows[place][1] for place in places[group])
        if all(
            taken[label] + number <= share * total[label] + 0.5 for label, number in inside.items()
        ):
            chosen.update(places[group])
            taken.update(inside)
    return chosen


def random_parts(labels: Sequence[str], shares: dict[str, float], seed: int) -> list[str]:
    """Return a part for each row, drawn within each label, groups disregarded."""
    parts = [""] * len(labels)
    places: dict[str, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        places[label].append(place)
    draw = np.random.default_rng(seed)
    for label in sorted(places):
        order = draw.permutation(np.array(places[label]))
        ends = np.round(
            np.cumsum(list(shares.values())) / sum(shares.values()) * len(order)
        ).astype(int)
        for part, some in zip(shares, np.split(order, ends[:-1]), strict=True):
            for place in some:
                parts[int(place)] = part
    return parts
