"""Plants from above: each species is a function that yields leaves, lowest first.

Shapes follow field plants at the 2 to 8 leaf stage: beet (broad wavy leaves on stalks), bean (three leaflets on a
stalk), maize (long arched blades), goosefoot and amaranth (opposite pairs, toothed or smooth), thistle (lobed rosette),
seedlings (two seed leaves) and grass tufts. No two leaves of a plant are equal.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.canvas import SURFACES, Canvas, Leaf, Spectrum

Rng = np.random.Generator
_POINTS = 26
_T = np.linspace(0.0, 1.0, _POINTS)
_KNOTS = np.linspace(0.0, 1.0, 7)
GOLDEN = np.pi * (3.0 - np.sqrt(5.0))


@dataclass(frozen=True)
class Habit:
    """Pose of a plant: centre (px), radius of its crown (px), rotation, and vigour (0.6 poor to 1.2 lush)."""

    x: float
    y: float
    radius: float
    turn: float
    vigour: float


def profile(
    rng: Rng, rise: float, fall: float, ragged: float = 0.03, teeth: int = 0, depth: float = 0.0, lobes: int = 0
) -> NDArray[np.float64]:
    """Return half widths (2, points): ``t**rise * (1-t)**fall`` with a peak of 1, roughened, toothed or lobed."""
    shape = _T**rise * (1.0 - _T) ** fall
    shape = shape / shape.max()
    sides = []
    for _ in range(2):
        wave = np.interp(_T, _KNOTS, rng.normal(0, ragged, 7))
        side = shape * (1.0 + wave)
        if teeth:
            side = side * (1.0 + depth * (np.abs((_T * teeth + rng.uniform(0, 0.3)) % 1.0 - 0.5) * 2.0 - 0.5))
        if lobes:
            side = side * (1.0 - depth * (0.5 + 0.5 * np.cos(2 * np.pi * lobes * _T + rng.uniform(-0.5, 0.5))))
        sides.append(np.clip(side, 0.0, None))
    return np.stack(sides)


def stalk_of(x: float, y: float, angle: float, length: float, width: float, height: float, bend: float) -> Leaf:
    widths = np.full((2, _POINTS), 1.0)
    return Leaf(x, y, angle, length, width, widths, bend, height, veins=0.0, fold=0.0, brightness=1.05)


def tip_of(stalk: Leaf) -> tuple[float, float, float]:
    """Return the end of a stalk's midrib and its direction there."""
    c, d = np.cos(stalk.angle), np.sin(stalk.angle)
    along, across = stalk.length, stalk.bend * stalk.length
    return stalk.x + along * c - across * d, stalk.y + along * d + across * c, stalk.angle + np.arctan(2 * stalk.bend)


def _beet(rng: Rng, at: Habit) -> Iterator[Leaf]:
    count = int(rng.integers(6, 11))
    for k in range(count):
        young = k / count
        reach = at.radius * (1.0 - 0.62 * young) * rng.uniform(0.82, 1.08)
        angle = at.turn + k * GOLDEN + rng.normal(0, 0.22)
        height = 5.0 + 9.0 * young
        stalk = stalk_of(at.x, at.y, angle, reach * 0.40, max(0.9, reach * 0.032), height * 0.6, rng.normal(0, 0.05))
        yield stalk
        x, y, direction = tip_of(stalk)
        lean = rng.uniform(0.75, 1.0)
        yield Leaf(
            x, y, direction, reach * 0.66 * lean, reach * rng.uniform(0.22, 0.29),
            profile(rng, 0.42, 0.50, 0.09), rng.normal(0, 0.10), height,
            veins=5.0, fold=rng.uniform(0.05, 0.2), gloss=rng.uniform(0, 0.12), brightness=0.84 + 0.26 * young,
        )  # fmt: skip


def _bean(rng: Rng, at: Habit) -> Iterator[Leaf]:
    count = int(rng.integers(4, 8))
    for k in range(count):
        young = k / count
        reach = at.radius * (1.0 - 0.5 * young) * rng.uniform(0.85, 1.1)
        angle = at.turn + k * GOLDEN * 1.02 + rng.normal(0, 0.25)
        height = 6.0 + 10.0 * young
        stalk = stalk_of(at.x, at.y, angle, reach * 0.48, max(0.7, reach * 0.02), height * 0.6, rng.normal(0, 0.08))
        yield stalk
        x, y, direction = tip_of(stalk)
        for turn in (-1.45, 1.45, 0.0):
            size = reach * (0.46 if turn else 0.52) * rng.uniform(0.85, 1.05)
            yield Leaf(
                x, y, direction + turn + rng.normal(0, 0.18), size, size * rng.uniform(0.30, 0.37),
                profile(rng, 0.45, 0.62, 0.04), rng.normal(0, 0.07), height + rng.uniform(0, 2),
                veins=5.0, fold=rng.uniform(0.05, 0.25), brightness=0.85 + 0.25 * young,
            )  # fmt: skip


def _maize(rng: Rng, at: Habit) -> Iterator[Leaf]:
    count = int(rng.integers(5, 9))
    for k in range(count):
        young = k / count
        length = at.radius * (0.75 + 0.55 * np.sin(np.pi * (0.25 + 0.65 * young))) * rng.uniform(0.85, 1.1)
        angle = at.turn + (k % 2) * np.pi + rng.normal(0, 0.32)
        yield Leaf(
            at.x, at.y, angle, length, max(1.4, at.radius * rng.uniform(0.055, 0.085)),
            profile(rng, 0.22, 0.80, 0.06), rng.normal(0, 0.30), 6.0 + 9.0 * young,
            veins=0.0, fold=rng.uniform(0.05, 0.22), gloss=rng.uniform(0.08, 0.30), brightness=0.86 + 0.24 * young,
        )  # fmt: skip


def _pairs(rng: Rng, at: Habit, profile: Callable[[], NDArray[np.float64]], slim: float, tint: float) -> Iterator[Leaf]:
    """Yield opposite pairs of leaves, each at a right angle to the pair below and smaller."""
    pairs = int(rng.integers(2, 5))
    for k in range(pairs):
        young = k / pairs
        reach = at.radius * (1.0 - 0.72 * young) * rng.uniform(0.88, 1.1)
        for side in range(2):
            if rng.uniform() < 0.06:
                continue
            angle = at.turn + k * np.pi / 2 + side * np.pi + rng.normal(0, 0.20)
            height = 3.0 + 7.0 * young
            stalk = stalk_of(at.x, at.y, angle, reach * 0.36, max(0.6, reach * 0.03), height * 0.6, rng.normal(0, 0.06))
            yield stalk
            x, y, direction = tip_of(stalk)
            size = reach * 0.68 * rng.uniform(0.85, 1.08)
            yield Leaf(
                x, y, direction, size, size * slim * rng.uniform(0.88, 1.12), profile(), rng.normal(0, 0.09), height,
                veins=4.0, fold=rng.uniform(0.04, 0.2), brightness=(0.85 + 0.28 * young) * tint,
            )  # fmt: skip


def _goosefoot(rng: Rng, at: Habit) -> Iterator[Leaf]:
    return _pairs(rng, at, lambda: profile(rng, 0.55, 0.85, 0.06, teeth=5, depth=0.35), 0.36, 1.06)


def _amaranth(rng: Rng, at: Habit) -> Iterator[Leaf]:
    return _pairs(rng, at, lambda: profile(rng, 0.50, 0.70, 0.04), 0.33, 0.95)


def _thistle(rng: Rng, at: Habit) -> Iterator[Leaf]:
    count = int(rng.integers(6, 11))
    for k in range(count):
        young = k / count
        length = at.radius * (1.0 - 0.55 * young) * rng.uniform(0.85, 1.1)
        yield Leaf(
            at.x, at.y, at.turn + k * GOLDEN + rng.normal(0, 0.15), length, length * rng.uniform(0.16, 0.22),
            profile(rng, 0.55, 0.45, 0.06, depth=0.55, lobes=int(rng.integers(3, 5))),
            rng.normal(0, 0.12), 2.5 + 4.0 * young, veins=0.0, fold=0.1, brightness=0.85 + 0.25 * young,
        )  # fmt: skip


def _seedling(rng: Rng, at: Habit) -> Iterator[Leaf]:
    spread = at.radius * 0.9
    for side in range(2):
        angle = at.turn + side * np.pi + rng.normal(0, 0.15)
        yield Leaf(
            at.x, at.y, angle, spread * rng.uniform(0.85, 1.1), spread * rng.uniform(0.20, 0.34),
            profile(rng, 0.75, 0.42, 0.03), rng.normal(0, 0.05), 3.0, veins=0.0, fold=0.08,
        )  # fmt: skip
    for side in range(2):
        angle = at.turn + np.pi / 2 + side * np.pi + rng.normal(0, 0.2)
        size = spread * rng.uniform(0.35, 0.75)
        widths = profile(rng, 0.6, 0.6, 0.05)
        yield Leaf(at.x, at.y, angle, size, size * 0.30, widths, 0.0, 4.5, veins=0.0, brightness=1.08)


def _grass(rng: Rng, at: Habit) -> Iterator[Leaf]:
    count = int(rng.integers(4, 13))
    lean = rng.uniform(0, 2 * np.pi)
    for k in range(count):
        angle = rng.uniform(0, 2 * np.pi) if rng.uniform() < 0.7 else lean + rng.normal(0, 0.5)
        length = at.radius * rng.uniform(0.55, 1.15)
        x, y = at.x + rng.normal(0, 0.05 * at.radius), at.y + rng.normal(0, 0.05 * at.radius)
        yield Leaf(
            x, y, angle, length, max(0.85, at.radius * rng.uniform(0.040, 0.062)),
            profile(rng, 0.18, 0.70, 0.04), rng.normal(0, 0.22), 2.0 + 5.0 * k / count,
            veins=0.0, fold=rng.uniform(0.05, 0.25), gloss=rng.uniform(0, 0.2), brightness=rng.uniform(0.82, 1.12),
        )  # fmt: skip


@dataclass(frozen=True)
class Species:
    """A species: arrangement of its leaves, its spectrum, and range of its crown radius in metres."""

    name: str
    leaves: Callable[[Rng, Habit], Iterator[Leaf]]
    radius_m: tuple[float, float]

    @property
    def reflectance(self) -> Spectrum:
        return SURFACES[self.name]


CROPS: dict[str, Species] = {
    "beet": Species("beet", _beet, (0.075, 0.120)),
    "bean": Species("bean", _bean, (0.070, 0.115)),
    "maize": Species("maize", _maize, (0.100, 0.150)),
}
WEEDS: dict[str, Species] = {
    "goosefoot": Species("goosefoot", _goosefoot, (0.020, 0.070)),
    "amaranth": Species("amaranth", _amaranth, (0.020, 0.065)),
    "thistle": Species("thistle", _thistle, (0.030, 0.090)),
    "seedling": Species("seedling", _seedling, (0.010, 0.024)),
    "grass": Species("grass", _grass, (0.025, 0.085)),
}


def paint_plant(rng: Rng, canvas: Canvas, species: Species, habit: Habit, class_id: int, yellowing: float) -> None:
    """Paint one plant; its spectrum varies from the species' by a few percent in each band, and from leaf to leaf."""
    stray = rng.normal(1.0, 0.05, 5)
    reflectance = species.reflectance * np.float32(habit.vigour) ** np.array([-0.35, -0.25, -0.5, 0.2, 0.45]) * stray
    for leaf in species.leaves(rng, habit):
        old = float(np.clip(rng.normal(yellowing, 0.10), 0.0, 0.85)) if yellowing else abs(float(rng.normal(0, 0.04)))
        colour = (reflectance * (1.0 - old) + SURFACES["yellowed"] * old) * rng.normal(1.0, 0.04)
        canvas.paint(leaf, colour.astype(np.float32), class_id)
