"""Weeds from above, near enough to be told apart by their leaves and flowers: schematic drawings of sixteen species.

Each species is a function that lays leaves with their reflectance, lowest first, as in
:mod:`agrotools.build.scenes.plants`; what sets it apart (divided or whole leaves, teeth, flowers, thorns) is drawn.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.canvas import Leaf
from agrotools.build.scenes.plants import GOLDEN, WEEDS, Habit, profile, stalk_of, tip_of
from agrotools.build.scenes.spectra import LEAVES, Spectrum, spectrum

Rng = np.random.Generator
Laid = Iterator[tuple[Leaf, Spectrum]]

_GREEN = spectrum(0.036, 0.120, 0.058, 0.240, 0.480)
_PALE = spectrum(0.070, 0.190, 0.120, 0.300, 0.500)
_DEEP = spectrum(0.026, 0.085, 0.040, 0.190, 0.450)
_GREY = spectrum(0.075, 0.150, 0.105, 0.250, 0.440)
_YELLOWISH = spectrum(0.040, 0.175, 0.115, 0.310, 0.480)
_WHITE = spectrum(0.62, 0.66, 0.66, 0.64, 0.62)
_PINK = spectrum(0.36, 0.22, 0.62, 0.60, 0.58)
_YELLOW = spectrum(0.04, 0.50, 0.66, 0.62, 0.58)
_ORANGE = spectrum(0.03, 0.24, 0.62, 0.60, 0.56)
_LILAC = spectrum(0.48, 0.36, 0.52, 0.55, 0.55)
_VIOLET = spectrum(0.32, 0.09, 0.16, 0.40, 0.52)
_RED_STEM = spectrum(0.05, 0.06, 0.20, 0.30, 0.45)
_STRAW = spectrum(0.12, 0.22, 0.28, 0.33, 0.40)
_POINTS = 26


def _disc(x: float, y: float, radius: float, height: float) -> Leaf:
    round_ = np.sqrt(np.clip(1 - (2 * np.linspace(0, 1, _POINTS) - 1) ** 2, 0, None))
    widths = np.stack([round_, round_])
    return Leaf(x - radius, y, 0.0, 2 * radius, radius, widths, 0.0, height, veins=0.0, fold=0.05, brightness=1.0)


def _petals(rng: Rng, x: float, y: float, radius: float, count: int, colour: Spectrum, eye: Spectrum) -> Laid:
    turn = rng.uniform(0, 2 * np.pi)
    for k in range(count):
        angle = turn + 2 * np.pi * k / count + rng.normal(0, 0.06)
        shape = profile(rng, 0.9, 0.4, 0.03)
        yield Leaf(x, y, angle, radius, radius * 0.42, shape, 0.0, 10.0, veins=0.0, fold=0.05), colour
    yield _disc(x, y, radius * 0.22, 10.0), eye


def _blade(
    rng: Rng, x: float, y: float, angle: float, length: float, slim: float, shape: NDArray[np.float64], young: float,
    veins: float = 5.0, gloss: float = 0.05,
) -> Leaf:  # fmt: skip
    return Leaf(
        x, y, angle, length, length * slim * rng.uniform(0.92, 1.08), shape, rng.normal(0, 0.06), 3.0 + 8.0 * young,
        veins=veins, fold=rng.uniform(0.06, 0.2), gloss=gloss, brightness=0.84 + 0.24 * young,
    )  # fmt: skip


def _pairs_on_shoots(
    rng: Rng, at: Habit, *, shoots: int, nodes: int, size: float, slim: float, shape: Callable[[], NDArray[np.float64]],
    colour: Spectrum, stem: Spectrum = _GREEN, alternate: bool = False, gloss: float = 0.05, wind: float = 0.10,
    tips: list[tuple[float, float]] | None = None,
) -> Laid:  # fmt: skip
    """Leaves in pairs (or one by one) along shoots that spread from the middle; ``tips`` collects where these end."""
    for k in range(shoots):
        heading = at.turn + 2 * np.pi * k / shoots + rng.normal(0, 0.25)
        reach = at.radius * rng.uniform(0.72, 0.95)
        stem_leaf = stalk_of(at.x, at.y, heading, reach, max(0.9, at.radius * 0.013), 3.0, rng.normal(0, wind))
        yield stem_leaf, stem
        c, d = np.cos(heading), np.sin(heading)
        for node in range(nodes):
            t = (node + 0.7) / nodes
            along, across = t * reach, stem_leaf.bend * reach * t * t
            x, y = at.x + along * c - across * d, at.y + along * d + across * c
            length = at.radius * size * (1.0 - 0.45 * t) * rng.uniform(0.85, 1.12)
            for side in (1, -1) if not alternate else ((1,) if node % 2 else (-1,)):
                lean = side * rng.uniform(0.75, 1.25) * (1.0 - 0.25 * t)
                yield _blade(rng, x, y, heading + lean, length, slim, shape(), t, gloss=gloss), colour
        end = tip_of(stem_leaf)
        yield _blade(rng, end[0], end[1], heading, at.radius * size * 0.5, slim, shape(), 1.0, gloss=gloss), colour
        if tips is not None:
            tips.append((end[0], end[1]))


def _lantana(rng: Rng, at: Habit) -> Laid:
    tips: list[tuple[float, float]] = []
    yield from _pairs_on_shoots(
        rng, at, shoots=5, nodes=3, size=0.46, slim=0.30, colour=_GREEN, tips=tips,
        shape=lambda: profile(rng, 0.42, 0.75, 0.03, teeth=10, depth=0.16),
    )  # fmt: skip
    outer = _PINK if rng.uniform() < 0.6 else _ORANGE
    for x, y in tips[: int(rng.integers(3, 6))]:
        head = at.radius * rng.uniform(0.13, 0.17)
        for ring, count, colour in ((1.0, 12, outer), (0.62, 8, _YELLOW), (0.25, 4, _ORANGE)):
            for k in range(count):
                angle = 2 * np.pi * k / count + rng.normal(0, 0.12)
                yield _disc(x + head * ring * np.cos(angle), y + head * ring * np.sin(angle), head * 0.24, 12.0), colour


def _parthenium(rng: Rng, at: Habit) -> Laid:
    count = int(rng.integers(8, 12))
    for k in range(count):
        young = k / count
        length = at.radius * (1.0 - 0.45 * young) * rng.uniform(0.88, 1.06)
        angle = at.turn + k * GOLDEN + rng.normal(0, 0.15)
        rib = stalk_of(at.x, at.y, angle, length * 0.96, max(0.9, length * 0.018), 3.0 + 5 * young, rng.normal(0, 0.06))
        yield rib, _PALE
        for t in np.linspace(0.24, 0.92, 6):
            along, across = t * length * 0.96, rib.bend * length * t * t
            x = at.x + along * np.cos(angle) - across * np.sin(angle)
            y = at.y + along * np.sin(angle) + across * np.cos(angle)
            for side in (1, -1):
                lobe = length * 0.30 * np.sin(np.pi * (0.22 + 0.66 * t)) * rng.uniform(0.85, 1.1)
                shape = profile(rng, 0.5, 0.5, 0.08, depth=0.5, lobes=2)
                yield (
                    _blade(rng, x, y, angle + side * rng.uniform(0.6, 0.9), lobe, 0.24, shape, young, veins=0.0),
                    _PALE,
                )
    for _ in range(int(rng.integers(10, 26))):
        far, turn = at.radius * rng.uniform(0.05, 0.5), rng.uniform(0, 2 * np.pi)
        yield _disc(at.x + far * np.cos(turn), at.y + far * np.sin(turn), at.radius * 0.022, 14.0), _WHITE


def _siam_weed(rng: Rng, at: Habit) -> Laid:
    tips: list[tuple[float, float]] = []
    yield from _pairs_on_shoots(
        rng, at, shoots=4, nodes=3, size=0.52, slim=0.34, colour=_YELLOWISH, tips=tips,
        shape=lambda: profile(rng, 0.18, 1.05, 0.03, teeth=4, depth=0.22),
    )  # fmt: skip
    for x, y in tips[: int(rng.integers(1, 4))]:
        for _ in range(26):
            far, turn = at.radius * 0.15 * np.sqrt(rng.uniform()), rng.uniform(0, 2 * np.pi)
            yield _disc(x + far * np.cos(turn), y + far * np.sin(turn), at.radius * 0.020, 12.0), _LILAC


def _snake_weed(rng: Rng, at: Habit) -> Laid:
    yield from _pairs_on_shoots(
        rng, at, shoots=6, nodes=3, size=0.34, slim=0.27, colour=_DEEP,
        shape=lambda: profile(rng, 0.50, 0.70, 0.04, teeth=8, depth=0.30),
    )  # fmt: skip
    for _ in range(int(rng.integers(3, 6))):
        angle, length = rng.uniform(0, 2 * np.pi), at.radius * rng.uniform(0.75, 1.1)
        spike = stalk_of(at.x, at.y, angle, length, at.radius * 0.018, 14.0, rng.normal(0, 0.12))
        yield spike, _DEEP
        for t in rng.uniform(0.45, 0.95, 7):
            along, across = t * length, spike.bend * length * t * t
            x = at.x + along * np.cos(angle) - across * np.sin(angle)
            y = at.y + along * np.sin(angle) + across * np.cos(angle)
            yield _disc(x + rng.normal(0, 2), y + rng.normal(0, 2), at.radius * 0.034, 15.0), _VIOLET


def _rubber_vine(rng: Rng, at: Habit) -> Laid:
    tips: list[tuple[float, float]] = []
    yield from _pairs_on_shoots(
        rng, at, shoots=3, nodes=4, size=0.52, slim=0.24, colour=_DEEP, stem=_RED_STEM, gloss=0.5, wind=0.3, tips=tips,
        shape=lambda: profile(rng, 0.55, 0.60, 0.02),
    )  # fmt: skip
    for x, y in tips[: int(rng.integers(1, 3))]:
        yield from _petals(rng, x, y, at.radius * 0.20, 5, _WHITE, _VIOLET)


def _parkinsonia(rng: Rng, at: Habit) -> Laid:
    for k in range(int(rng.integers(13, 19))):
        angle, length = at.turn + k * GOLDEN + rng.normal(0, 0.2), at.radius * rng.uniform(0.75, 1.08)
        strap = stalk_of(at.x, at.y, angle, length, max(1.2, at.radius * 0.014), 5.0, rng.normal(0, 0.16))
        yield strap, _YELLOWISH
        for t in np.linspace(0.2, 0.95, 11):
            along, across = t * length, strap.bend * length * t * t
            x = at.x + along * np.cos(angle) - across * np.sin(angle)
            y = at.y + along * np.sin(angle) + across * np.cos(angle)
            for side in (1, -1):
                shape = profile(rng, 0.6, 0.6, 0.02)
                yield _blade(rng, x, y, angle + side * 1.0, at.radius * 0.050, 0.26, shape, 0.5, veins=0.0), _GREEN
    for _ in range(int(rng.integers(2, 6))):
        far, turn = at.radius * rng.uniform(0.2, 0.7), rng.uniform(0, 2 * np.pi)
        yield from _petals(
            rng, at.x + far * np.cos(turn), at.y + far * np.sin(turn), at.radius * 0.10, 5, _YELLOW, _ORANGE
        )


def _prickly_acacia(rng: Rng, at: Habit) -> Laid:
    for k in range(6):
        angle, length = at.turn + k * np.pi / 3 + rng.normal(0, 0.15), at.radius * rng.uniform(0.8, 1.0)
        twig = stalk_of(at.x, at.y, angle, length, max(1.0, at.radius * 0.012), 3.0, rng.normal(0, 0.1))
        yield twig, _STRAW
        for t in np.linspace(0.28, 0.95, 5):
            along, across = t * length, twig.bend * length * t * t
            x = at.x + along * np.cos(angle) - across * np.sin(angle)
            y = at.y + along * np.sin(angle) + across * np.cos(angle)
            for side in (1, -1):
                feather, heading = at.radius * 0.24 * rng.uniform(0.8, 1.1), angle + side * rng.uniform(0.8, 1.1)
                for s in np.linspace(0.15, 1.0, 7):
                    fx, fy = x + s * feather * np.cos(heading), y + s * feather * np.sin(heading)
                    for turn in (1.2, -1.2):
                        shape = profile(rng, 0.6, 0.6, 0.0)
                        yield _blade(rng, fx, fy, heading + turn, feather * 0.26, 0.22, shape, t, veins=0.0), _GREY
                thorn = stalk_of(x, y, angle + side * 0.6, at.radius * 0.11, 1.0, 8.0, 0.0)
                yield thorn, _WHITE * np.float32(0.7)
    for _ in range(int(rng.integers(4, 9))):
        far, turn = at.radius * rng.uniform(0.15, 0.75), rng.uniform(0, 2 * np.pi)
        yield _disc(at.x + far * np.cos(turn), at.y + far * np.sin(turn), at.radius * 0.055, 12.0), _YELLOW


def _chinee_apple(rng: Rng, at: Habit) -> Laid:
    yield from _pairs_on_shoots(
        rng, at, shoots=5, nodes=6, size=0.30, slim=0.44, colour=_GREEN * np.float32(1.1), stem=_STRAW, alternate=True,
        gloss=0.35, shape=lambda: profile(rng, 0.40, 0.42, 0.02),
    )  # fmt: skip
    for _ in range(int(rng.integers(2, 7))):
        far, turn = at.radius * rng.uniform(0.15, 0.8), rng.uniform(0, 2 * np.pi)
        yield (
            _disc(at.x + far * np.cos(turn), at.y + far * np.sin(turn), at.radius * 0.050, 10.0),
            _ORANGE * np.float32(0.8),
        )


def _velvetleaf(rng: Rng, at: Habit) -> Laid:
    count = int(rng.integers(5, 8))
    for k in range(count):
        young = k / count
        angle, reach = at.turn + k * GOLDEN, at.radius * (1.0 - 0.55 * young)
        foot = stalk_of(at.x, at.y, angle, reach * 0.42, max(1.0, reach * 0.020), 5.0, 0.0)
        yield foot, _PALE
        x, y, heading = tip_of(foot)
        shape = profile(rng, 0.16, 0.85, 0.02)
        back = reach * 0.10
        x, y = x - back * np.cos(heading), y - back * np.sin(heading)
        yield _blade(rng, x, y, heading, reach * 0.72, 0.46, shape, young, veins=6.0), _PALE
    yield from _petals(rng, at.x + at.radius * 0.12, at.y, at.radius * 0.10, 5, _YELLOW, _ORANGE)


def _field_bindweed(rng: Rng, at: Habit) -> Laid:
    for k in range(4):
        angle, length = at.turn + k * np.pi / 2 + rng.normal(0, 0.3), at.radius * rng.uniform(0.85, 1.1)
        vine = stalk_of(at.x, at.y, angle, length, max(0.9, at.radius * 0.010), 2.0, rng.normal(0, 0.35))
        yield vine, _GREEN
        for t in np.linspace(0.15, 0.98, 7):
            along, across = t * length, vine.bend * length * t * t
            x = at.x + along * np.cos(angle) - across * np.sin(angle)
            y = at.y + along * np.sin(angle) + across * np.cos(angle)
            heading, size = angle + rng.choice([-1, 1]) * rng.uniform(0.8, 1.4), at.radius * rng.uniform(0.19, 0.25)
            yield _blade(rng, x, y, heading, size, 0.20, profile(rng, 0.25, 0.9, 0.02), t), _GREEN
            for side in (1, -1):
                yield (
                    _blade(rng, x, y, heading + side * 2.2, size * 0.36, 0.26, profile(rng, 0.4, 0.7, 0.02), t, 0.0),
                    _GREEN,
                )
    for _ in range(int(rng.integers(1, 4))):
        far, turn = at.radius * rng.uniform(0.3, 0.8), rng.uniform(0, 2 * np.pi)
        x, y, size = at.x + far * np.cos(turn), at.y + far * np.sin(turn), at.radius * 0.15
        yield _disc(x, y, size, 9.0), _WHITE
        for k in range(5):
            band = profile(rng, 0.3, 0.9, 0.0)
            yield Leaf(x, y, 2 * np.pi * k / 5, size * 0.95, size * 0.16, band, 0.0, 1.0, veins=0.0), _PINK
        yield _disc(x, y, size * 0.22, 9.0), _YELLOW


def _purslane(rng: Rng, at: Habit) -> Laid:
    for k in range(8):
        angle, length = at.turn + k * GOLDEN, at.radius * rng.uniform(0.55, 1.0)
        stem = stalk_of(at.x, at.y, angle, length, at.radius * 0.026, 2.0, rng.normal(0, 0.12))
        yield stem, _RED_STEM
        for t in np.linspace(0.30, 1.0, 5):
            along, across = t * length, stem.bend * length * t * t
            x = at.x + along * np.cos(angle) - across * np.sin(angle)
            y = at.y + along * np.sin(angle) + across * np.cos(angle)
            for turn in (0.9, -0.9, *((0.0,) if t > 0.9 else ())):
                paddle = profile(rng, 1.3, 0.32, 0.02)
                size = at.radius * rng.uniform(0.15, 0.20)
                yield _blade(rng, x, y, angle + turn, size, 0.30, paddle, t, veins=0.0, gloss=0.35), _GREEN


def _nutsedge(rng: Rng, at: Habit) -> Laid:
    for k in range(int(rng.integers(8, 12))):
        angle = at.turn + (k % 3) * 2 * np.pi / 3 + rng.normal(0, 0.16)
        length = at.radius * rng.uniform(0.7, 1.1)
        shape = profile(rng, 0.10, 0.70, 0.02)
        yield _blade(rng, at.x, at.y, angle, length, 0.034, shape, k / 12, veins=0.0, gloss=0.5), _YELLOWISH
    if rng.uniform() < 0.6:
        for _ in range(7):
            angle = rng.uniform(0, 2 * np.pi)
            spike = stalk_of(at.x, at.y, angle, at.radius * 0.30, at.radius * 0.020, 12.0, 0.0)
            yield spike, _STRAW * np.float32(1.2)


def _known(name: str) -> Callable[[Rng, Habit], Laid]:
    """A species of the crop-row scenes, nearer."""

    def lay(rng: Rng, at: Habit) -> Laid:
        for leaf in WEEDS[name].leaves(rng, at):
            yield leaf, LEAVES[name]

    return lay


def _tuft(rng: Rng, at: Habit) -> Laid:
    for k in range(int(rng.integers(14, 22))):
        angle, length = rng.uniform(0, 2 * np.pi), at.radius * rng.uniform(0.6, 1.1)
        shape = profile(rng, 0.16, 0.62, 0.03)
        blade = Leaf(
            at.x + rng.normal(0, 4), at.y + rng.normal(0, 4), angle, length, length * 0.052, shape, rng.normal(0, 0.30),
            2.0 + 0.5 * k, veins=0.0, fold=0.22, gloss=0.15, brightness=rng.uniform(0.85, 1.1),
        )  # fmt: skip
        yield blade, LEAVES["grass"]
    for _ in range(3):
        stem = stalk_of(at.x, at.y, rng.uniform(0, 2 * np.pi), at.radius * 0.30, at.radius * 0.014, 6.0, 0.1)
        yield stem, _RED_STEM


WEED_SHAPES: Mapping[str, Callable[[Rng, Habit], Laid]] = {
    "lantana": _lantana,
    "parthenium": _parthenium,
    "siam_weed": _siam_weed,
    "snake_weed": _snake_weed,
    "rubber_vine": _rubber_vine,
    "parkinsonia": _parkinsonia,
    "prickly_acacia": _prickly_acacia,
    "chinee_apple": _chinee_apple,
    "velvetleaf": _velvetleaf,
    "field_bindweed": _field_bindweed,
    "common_purslane": _purslane,
    "yellow_nutsedge": _nutsedge,
    "barnyardgrass": _tuft,
    "canada_thistle": _known("thistle"),
    "lambsquarters": _known("goosefoot"),
    "redroot_pigweed": _known("amaranth"),
}
"""By the slug of the entry in the knowledge base (``weed.<slug>``)."""
