"""Choice of the constants for changes of buildings: on the other scenes when they are measured, on all when they ship.

The candidate with the best worst scene is chosen, by F1 less that of marking everything as changed. Giving no map is a
candidate with a difference of zero, so a rule ships only if it is better than marking everything in every scene.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agrotools.tools.change.buildings import RoofRule, built_change
from agrotools.tools.change.pairs import shift_back, shift_between
from agrotools.vision.reading import read_image, read_labels

LEVIR_M = 0.5
"""Ground sampling distance at which the LEVIR-CD data are published (Chen and Shi 2020)."""
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ScenePair:
    """Two registered pictures, uint8 (rows, columns, 3), pixels with data in both, and the true change."""

    name: str
    scene: str
    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    valid: Mask
    truth: Mask


class Candidates(Protocol):
    """Rules to choose from (None: no map), and the map that one makes."""

    @property
    def grid(self) -> Sequence[Any]: ...

    def mask(self, rule: Any, pair: ScenePair) -> Mask: ...


@dataclass(frozen=True)
class RoofRules:
    """Rules for single roofs, gained or also lost."""

    gains_only: bool
    grid: Sequence[RoofRule | None] = (
        *(
            RoofRule(blue=blue, half_width_m=half, lasting=lasting)
            for blue, half, lasting in product((0.5, 0.75, 1.0, 1.5), (2.5, 3.5, 4.5, 5.5), (0.2, 0.3, 0.4, 0.5))
        ),
        None,
    )

    def mask(self, rule: RoofRule, pair: ScenePair) -> Mask:
        built = built_change(pair.before, pair.after, pair.valid, LEVIR_M, rule)
        return built.gained if self.gains_only else built.gained | built.lost


@dataclass(frozen=True, eq=False)
class Choice:
    """Maps made with the rules chosen on the other scenes (None: no map), and the choice of all scenes together.

    ``worst``: F1 less that of marking everything, of the choice of all in its worst scene.
    """

    masks: Sequence[Mask | None]
    of_all: Any
    worst: float


def read_pairs(folder: Path, items: Sequence[Mapping[str, Any]]) -> list[ScenePair]:
    """Read the pairs of LEVIR-CD."""
    pairs: list[ScenePair] = []
    for item in items:
        before, after = (read_image(folder / item[date]).pixels for date in ("before", "after"))
        truth = read_labels(folder / item["mask"]).classes > 0
        valid = np.ones(truth.shape, np.bool_)
        shift = shift_between(before, after, valid)
        if shift.is_worth_moving:
            after, valid = shift_back(after, valid, shift)
        # test_2_0000_0512 is part of the scene test_2.
        scene = str(item["id"]).rsplit("_", 2)[0]
        pairs.append(ScenePair(str(item["id"]), scene, before, after, valid, truth))
    return pairs


def left_out(pairs: Sequence[ScenePair], units: Sequence[str], rules: Candidates) -> Choice:
    """Make the map of each pair with the rule chosen on the other units."""
    masks = [[None if rule is None else rules.mask(rule, pair) for pair in pairs] for rule in rules.grid]
    gains = [_gains(pairs, units, made) for made in masks]
    held_out: list[Mask | None] = [None] * len(pairs)
    for unit in dict.fromkeys(units):
        best = best_of([[gain for other, gain in each.items() if other != unit] for each in gains])
        for place in (place for place, other in enumerate(units) if other == unit):
            held_out[place] = masks[best][place]
    best = best_of([list(each.values()) for each in gains])
    return Choice(held_out, rules.grid[best], min(gains[best].values(), default=0.0))


def best_of(gains: Sequence[Sequence[float]]) -> int:
    """Return the place of the rule whose worst scene is best, then the one best on average, then the first.

    ``gains``: of each rule, of each scene, F1 less that of calling everything changed.
    """
    return max(range(len(gains)), key=lambda place: (min(gains[place], default=0.0), sum(gains[place])))


def _gains(pairs: Sequence[ScenePair], units: Sequence[str], masks: Sequence[Mask | None]) -> dict[str, float]:
    scores = f1_of_units(pairs, units, masks)
    return {unit: 0.0 if mine is None else mine - everything for unit, (mine, everything) in scores.items()}


def f1_of_units(
    pairs: Sequence[ScenePair], units: Sequence[str], masks: Sequence[Mask | None]
) -> dict[str, tuple[float | None, float]]:
    """Return F1 of the maps (None without one) and of marking everything, of each unit in which anything changed."""
    scores: dict[str, tuple[float | None, float]] = {}
    for unit in dict.fromkeys(units):
        places = [place for place, other in enumerate(units) if other == unit]
        truths = [pairs[place].truth for place in places]
        maps = [mask for mask in (masks[place] for place in places) if mask is not None]
        if any(true.any() for true in truths):
            everything = f1_of([np.ones_like(true) for true in truths], truths)
            scores[unit] = f1_of(maps, truths) if maps else None, everything
    return scores


def f1_of(found: Sequence[Mask], truth: Sequence[Mask]) -> float:
    """Return F1 of the pixels of all maps together."""
    hits = sum(int((mine & true).sum()) for mine, true in zip(found, truth, strict=True))
    return 2 * hits / max(1, sum(int(mine.sum()) + int(true.sum()) for mine, true in zip(found, truth, strict=True)))
