"""Builds of insects whose wings are seen: moths, butterflies, hoppers, whiteflies, flies and midges."""

import math
from collections.abc import Sequence

import numpy as np

from agrotools.build.scenes.insects.brush import Brush, Colour, body, mirror, one_side, oval
from agrotools.build.scenes.insects.builds import DARK, Build, Rng, feelers, legs, stray


def moth(
    *, fore: Colour, trunk: Colour, spread: float = 0.62, dot: tuple[float, float, float] | None = None,
    lines: Sequence[float] = (), mark: Colour = (35, 25, 20), rim: Colour | None = None,
) -> Build:  # fmt: skip
    """A moth at rest, its fore wings a flat roof. ``dot``: x, y, radius; ``lines``: across, x."""

    def draw(brush: Brush, rng: Rng) -> None:
        s = spread * rng.uniform(0.9, 1.1)
        legs(brush, rng, (0.25, 0.15), 0.22, 0.016, trunk)
        feelers(brush, rng, 0.42, 0.30, 0.012, DARK, 0.55)
        brush.part(body([-0.40, -0.1, 0.2, 0.3], [0.02, 0.07, 0.10, 0.09]), stray(rng, trunk))
        for flip in (False, True):
            wing = one_side([(0.32, 0.02), (0.22, 0.12), (-0.30, s * 0.52), (-0.50, s * 0.40), (-0.46, 0.03)])
            wing = mirror(wing) if flip else wing
            brush.part(wing, stray(rng, fore, 0.03), 0.22)
            side = -1 if flip else 1
            for x in lines:
                far = s * 0.50 * (0.30 - x) / 0.66 * 0.92
                middle = (x - 0.035 + rng.normal(0, 0.01), side * far * 0.5)
                brush.line([(x, side * 0.03), middle, (x + 0.02, side * far)], 0.022, mark, 1.0)
            if rim is not None:
                brush.line([(-0.30, side * s * 0.50), (-0.47, side * s * 0.38), (-0.46, side * 0.05)], 0.045, rim, 1.0)
            if dot is not None:
                brush.part(oval(dot[0], side * dot[1] * s, dot[2], dot[2]), mark, 0.0, 0.0)
        brush.part(oval(0.30, 0.0, 0.10, 0.085), stray(rng, trunk))
        brush.part(oval(0.40, 0.0, 0.05, 0.055), stray(rng, trunk))

    return draw


def butterfly(
    *, wing: Colour, mark: Colour, tails: bool = False, veins: bool = False, tip: bool = True, spots: int = 0
) -> Build:
    """Wings spread flat."""

    def draw(brush: Brush, rng: Rng) -> None:
        feelers(brush, rng, 0.26, 0.26, 0.012, DARK, 0.45, 0.016)
        for flip in (False, True):
            side = -1 if flip else 1
            hind = [(0.05, 0.03), (-0.02, 0.36), (-0.25, 0.44), (-0.42, 0.30), (-0.36, 0.06)]
            if tails:
                hind[3:3] = [(-0.40, 0.36), (-0.60, 0.34), (-0.60, 0.29)]
            front = [(0.22, 0.02), (0.38, 0.36), (0.40, 0.56), (0.24, 0.56), (0.02, 0.42), (0.02, 0.03)]
            for corners in (hind, front):
                outline = one_side([(x, y * side) for x, y in corners])
                brush.part(outline, mark if veins else stray(rng, wing, 0.03), 0.12, 0.5)
                if veins:
                    middle = outline.mean(axis=0)
                    for start in (0.15, 0.38, 0.60, 0.82):
                        k = int(start * len(outline))
                        strip = np.stack([middle * 0.9, outline[k] * 0.84, outline[(k + 5) % len(outline)] * 0.84])
                        brush.part(strip, stray(rng, wing, 0.04), 0.0, 0.0)
            if tip:
                brush.part(one_side([(0.39, 0.40 * side), (0.41, 0.56 * side), (0.22, 0.57 * side)]), mark, 0.0, 0.0)
            for k in range(spots):
                brush.part(oval(0.16 - 0.02 * k, side * (0.40 - 0.14 * k), 0.030, 0.030), mark, 0.0, 0.0)
        brush.part(body([-0.36, -0.1, 0.1, 0.28], [0.02, 0.045, 0.055, 0.035]), DARK, 0.3)

    return draw


def wedge(
    *, wings: Colour, trunk: Colour, wide: float = 0.17, tips: Colour | None = None, clear: float = 1.0,
    eyes: Colour = (60, 20, 20), stripe: Colour | None = None, spots: int = 0, spot: Colour = (25, 20, 20),
) -> Build:  # fmt: skip
    """Hoppers and their kin: a blunt head, wings as a roof, narrow behind. ``clear``: how opaque the wings are."""

    def draw(brush: Brush, rng: Rng) -> None:
        w = wide * rng.uniform(0.92, 1.08)
        legs(brush, rng, (0.22, 0.10, -0.06), 0.24, 0.020, trunk, w * 0.6)
        brush.part(body([-0.36, -0.1, 0.2, 0.30], [0.03, w * 0.75, w * 0.8, w * 0.7]), stray(rng, trunk))
        for side in (1, -1):
            roof = one_side(
                [(0.26, 0.0), (0.24, side * w * 0.9), (-0.15, side * w), (-0.5, side * w * 0.35), (-0.48, 0.0)]
            )
            brush.part(roof, stray(rng, wings, 0.04), 0.25, 0.5, clear)
            for k in range(spots):
                x, y = 0.12 - 0.075 * k + rng.normal(0, 0.01), side * w * (0.35 + 0.35 * (k % 2))
                brush.part(oval(x, y, 0.024, 0.020), spot, 0.0, 0.0)
            if tips is not None:
                end = one_side([(-0.32, side * w * 0.75), (-0.5, side * w * 0.35), (-0.48, 0.0), (-0.34, 0.0)])
                brush.part(end, tips, 0.1, 0.0)
        brush.part(body([0.20, 0.26, 0.36], [w * 0.95, w * 0.98, w * 0.75]), stray(rng, trunk))
        brush.part(oval(0.38, 0.0, 0.075, w * 0.78), stray(rng, trunk))
        if stripe is not None:
            brush.line([(0.42, 0.0), (0.30, 0.0), (0.18, 0.0)], 0.03, stripe)
        for side in (1, -1):
            brush.part(oval(0.38, side * w * 0.72, 0.032, 0.026), eyes, 0.3)

    return draw


def whitefly(*, wings: Colour, trunk: Colour) -> Build:
    def draw(brush: Brush, rng: Rng) -> None:
        legs(brush, rng, (0.20, 0.10), 0.22, 0.016, trunk)
        feelers(brush, rng, 0.34, 0.16, 0.014, trunk, 0.6)
        brush.part(body([-0.3, 0.0, 0.22, 0.34], [0.04, 0.10, 0.12, 0.07]), stray(rng, trunk))
        for side in (1, -1):
            wing = one_side(
                [(0.22, side * 0.03), (0.10, side * 0.20), (-0.30, side * 0.34), (-0.48, side * 0.22), (-0.42, 0.0)]
            )
            brush.part(wing, stray(rng, wings, 0.02), 0.10, 0.22)
        brush.part(oval(0.30, 0.0, 0.07, 0.09), stray(rng, trunk))
        for side in (1, -1):
            brush.part(oval(0.32, side * 0.065, 0.020, 0.018), (120, 25, 25), 0.2)

    return draw


def fly(
    *, trunk: Colour, belly: Colour, wing: float = 0.45, bands: Colour | None = None, slim: float = 1.0,
    leg_reach: float = 0.34, rim: Colour = (90, 80, 70), marks: Colour | None = None,
) -> Build:  # fmt: skip
    """Two clear wings held out; ``slim``: 1 a fly, 0.5 a midge; ``wing``: angle between wing and body, radians."""

    def draw(brush: Brush, rng: Rng) -> None:
        legs(brush, rng, (0.22, 0.14, 0.06), leg_reach, 0.016, trunk, 0.08 * slim)
        if slim < 0.8:
            feelers(brush, rng, 0.40, 0.34, 0.012, trunk, 0.6)
        brush.part(
            body([-0.5, -0.44, -0.2, 0.02, 0.08], [0.02, 0.07 * slim, 0.14 * slim, 0.10 * slim, 0.05]),
            stray(rng, belly),
        )
        if bands is not None:
            for x in (-0.36, -0.24, -0.12):
                brush.line([(x, 0.10 * slim), (x, -0.10 * slim)], 0.028, bands, 1.0)
            brush.line([(-0.10, 0), (-0.45, 0)], 0.022, bands)
        brush.part(oval(0.18, 0.0, 0.15, 0.135 * slim), stray(rng, trunk))
        if marks is not None:
            for side in (1, -1):
                brush.line([(0.28, side * 0.075), (0.06, side * 0.085)], 0.028, marks, 1.0)
            brush.part(oval(0.04, 0.0, 0.035, 0.06), marks, 0.0, 0.0)
        brush.part(oval(0.37, 0.0, 0.07, 0.11 * slim + 0.02), stray(rng, trunk))
        for side in (1, -1):
            brush.part(oval(0.38, side * (0.07 * slim + 0.02), 0.05, 0.04), (110, 30, 25), 0.35)
        for side in (1, -1):
            open_by = wing * rng.uniform(0.8, 1.2)
            c, s = math.cos(math.pi - open_by), math.sin(math.pi - open_by)
            shape = [(0.0, 0.0), (0.15, 0.09), (0.42, 0.14), (0.60, 0.05), (0.45, -0.05), (0.15, -0.03)]
            points = one_side([(0.20 + u * c - v * s, side * (0.06 + u * s + v * c)) for u, v in shape])
            brush.part(points, (215, 220, 222), 0.1, 0.5, 0.45)
            brush.line(
                [(0.20, side * 0.06), (0.20 + 0.58 * c - 0.09 * s, side * (0.06 + 0.58 * s + 0.09 * c))], 0.016, rim
            )

    return draw
