"""Builds of insects and mites: a function for each that lays the parts of one individual with a brush.

A build takes the brush, a source of chance and what sets a species of that build apart. No two individuals are equal:
legs, proportions and colours stray by a few percent.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from agrotools.build.scenes.insects.brush import Brush, Colour, body, one_side, oval

Rng = np.random.Generator
Build = Callable[[Brush, Rng], None]
DARK: Colour = (38, 30, 26)


def stray(rng: Rng, colour: Colour, spread: float = 0.07) -> Colour:
    """A colour a little lighter or darker, and a little off in hue."""
    bright = rng.normal(1.0, spread)
    red, green, blue = (float(np.clip(part * bright * rng.normal(1.0, spread / 2), 0, 255)) for part in colour)
    return red, green, blue


def legs(
    brush: Brush, rng: Rng, at: Sequence[float], reach: float, width: float, colour: Colour, base: float = 0.08,
    lean: Sequence[float] = (0.7, 0.05, -0.7),
) -> None:  # fmt: skip
    """A pair of legs at each place along the body; ``lean``: how far forward each pair points."""
    for x, forward in zip(at, lean, strict=False):
        for side in (1, -1):
            stretch = reach * rng.uniform(0.85, 1.15)
            knee = (x + stretch * 0.35 * forward + rng.normal(0, 0.015), side * (base + stretch * 0.55))
            foot = (x + stretch * (0.9 * forward + rng.normal(0, 0.10)), side * (base + stretch))
            brush.line([(x, side * base * 0.4), knee, foot], width, colour)


def feelers(
    brush: Brush, rng: Rng, x: float, length: float, width: float, colour: Colour, spread: float = 0.5,
    club: float = 0.0, y: float = 0.025,
) -> None:  # fmt: skip
    """Two antennae from the head; ``club``: radius of a knob at the end."""
    for side in (1, -1):
        open_by = spread * rng.uniform(0.75, 1.25)
        end = (x + length * math.cos(open_by), side * (y + length * math.sin(open_by)))
        middle = (x + 0.55 * length * math.cos(open_by * 0.6), side * (y + 0.55 * length * math.sin(open_by * 0.6)))
        brush.line([(x, side * y), middle, end], width, colour)
        if club:
            brush.part(oval(*end, club, club * 0.7), colour, 0.1, 0.2)


def beetle(
    *, wide: float, wings: Colour, collar: Colour, head: Colour, leg: Colour = DARK, feeler: float = 0.3,
    neck: float = 0.75, snout: float = 0.0, thick_thigh: bool = False, spots: Sequence[tuple[float, float, float]] = (),
    spot: Colour = (20, 18, 16), bands: Sequence[float] = (), stripe: Colour | None = None, gloss: float = 0.4,
) -> Build:  # fmt: skip
    """``wide``: half width over length; ``spots``: x, y, radius, on both sides; ``bands``: across the wing cases, x."""

    def draw(brush: Brush, rng: Rng) -> None:
        w = wide * rng.uniform(0.93, 1.07)
        legs(brush, rng, (0.16, 0.02, -0.12), 0.30, 0.030, leg, w * 0.7)
        if thick_thigh:
            for side in (1, -1):
                brush.part(oval(-0.22, side * (w + 0.02), 0.15, 0.055, -0.5 * side), leg)
        feelers(brush, rng, 0.40, feeler, 0.018, leg)
        if snout:
            brush.line([(0.38, 0.0), (0.45, 0.01), (0.45 + snout, -0.005)], 0.055, head, 0.75)
        brush.part(oval(0.38, 0.0, 0.10, w * 0.55), stray(rng, head), gloss)
        brush.part(body([0.10, 0.16, 0.28, 0.36], [w * 0.86, w * 0.9, w * neck, w * 0.45]), stray(rng, collar), gloss)
        case = stray(rng, wings)
        shell = body([-0.5, -0.46, -0.30, -0.05, 0.10, 0.14], [0.02, w * 0.5, w * 0.94, w, w * 0.86, w * 0.5])
        brush.part(shell, case, gloss)
        if stripe is not None:
            for y in (w * 0.35, -w * 0.35, w * 0.72, -w * 0.72):
                brush.line([(0.10, y * 0.85), (-0.12, y), (-0.40, y * 0.5)], w * 0.14, stripe, 0.8)
        for x in bands:
            reach = w * 0.93 * math.sqrt(max(0.05, 1 - (x / 0.5) ** 2))
            brush.line([(x - 0.03, reach), (x + 0.03, 0.0), (x - 0.03, -reach)], 0.055, spot, 1.0)
        for x, y, radius in spots:
            for side in (1, -1):
                brush.part(oval(x + rng.normal(0, 0.008), side * y * w, radius, radius * 0.85), spot, 0.0, 0.0)
        brush.line([(0.11, 0.0), (-0.2, 0.0), (-0.49, 0.0)], 0.012, (case[0] * 0.35, case[1] * 0.35, case[2] * 0.35))

    return draw


def larva(
    *, wide: float, skin: Colour, head: Colour, curl: float = 0.25, stripes: Sequence[tuple[float, Colour]] = (),
    dots: Colour | None = None, triangles: Colour | None = None, rings: float = 0.25, count: int = 11,
    hard: bool = False, stumps: bool = True,
) -> Build:  # fmt: skip
    """A soft body in rings along an arc. ``stripes``: place across (-1 to 1) and colour; ``curl``: 1 makes it a C."""

    def draw(brush: Brush, rng: Rng) -> None:
        bend = curl * rng.uniform(0.75, 1.25) * (1 if rng.uniform() < 0.5 else -1)
        phase = rng.uniform(-0.4, 0.4) * (0.5 if curl < 0.5 else 0.0)
        t = np.linspace(-0.5, 0.5, count)
        angle = bend * 4.2 * t + phase * np.sin(6.0 * t)
        steps = np.stack([np.cos(angle), np.sin(angle)], 1) / count
        spine = np.cumsum(steps, axis=0)
        spine -= (spine.max(axis=0) + spine.min(axis=0)) / 2
        normal = np.stack([-np.sin(angle), np.cos(angle)], 1)
        fat = wide * rng.uniform(0.92, 1.08) * np.interp(t, [-0.5, -0.4, 0.0, 0.42, 0.5], [0.55, 0.85, 1.0, 0.9, 0.7])
        own = stray(rng, skin)
        if stumps:
            for k in (*range(2, 6), *range(count - 4, count - 1)):
                for side in (1, -1):
                    end = spine[k] + normal[k] * side * (fat[k] + 0.030)
                    brush.line(np.stack([spine[k], end]), 0.030, (own[0] * 0.7, own[1] * 0.7, own[2] * 0.7))
        half = 0.62 / count if hard else 0.80 / count
        for k in range(count):
            x, y = spine[k]
            brush.part(oval(x, y, half, fat[k], angle[k]), own, 0.30, rings)
        for place, colour in stripes:
            points = spine + normal * place * fat[:, None]
            brush.line(points, wide * 0.15, colour, 0.9)
        for k in range(1, count - 1):
            for side in (1, -1):
                if dots is not None:
                    for far in (0.35, 0.75):
                        spot = spine[k] + normal[k] * side * far * fat[k]
                        brush.part(oval(spot[0], spot[1], 0.012, 0.012), dots, 0.0, 0.0)
                if triangles is not None:
                    near, wide_at = spine[k] + normal[k] * side * 0.42 * fat[k], steps[k] * 0.42
                    tip = spine[k] + normal[k] * side * 0.78 * fat[k]
                    brush.part(np.stack([near - wide_at, near + wide_at, tip]), triangles, 0.0, 0.0)
        front = spine[-1] + steps[-1] * 0.85
        if not stumps:
            for k in (count - 2, count - 3, count - 4):
                for side in (1,) if curl >= 0.5 else (1, -1):
                    inward = math.copysign(1.0, bend) if curl >= 0.5 else side
                    foot = spine[k] + normal[k] * inward * (fat[k] + 0.10) + steps[k]
                    brush.line(np.stack([spine[k] + normal[k] * inward * fat[k] * 0.8, foot]), 0.028, head)
        brush.part(oval(front[0], front[1], 0.052 + 0.15 * wide, fat[-1] * 0.85, angle[-1]), stray(rng, head), 0.4)

    return draw


def aphid(*, skin: Colour, tubes: Colour) -> Build:
    """Pear-shaped, with two tubes on the back and a tail."""

    def draw(brush: Brush, rng: Rng) -> None:
        w = 0.27 * rng.uniform(0.9, 1.1)
        legs(brush, rng, (0.20, 0.08, -0.08), 0.36, 0.020, tubes, w * 0.6)
        feelers(brush, rng, 0.40, 0.52, 0.014, tubes, 0.5)
        own = stray(rng, skin)
        brush.line([(-0.40, 0.0), (-0.52, 0.0)], 0.05, own)
        brush.part(
            body([-0.45, -0.38, -0.15, 0.15, 0.34, 0.42], [0.05, w * 0.7, w, w * 0.72, w * 0.42, 0.05]), own, 0.4
        )
        for x in (-0.28, -0.15, -0.02, 0.11):
            reach = w * 0.8 * math.sqrt(1 - (x / 0.5) ** 2)
            brush.line(
                [(x, reach), (x + 0.012, 0.0), (x, -reach)], 0.012, (own[0] * 0.75, own[1] * 0.75, own[2] * 0.75)
            )
        for side in (1, -1):
            brush.line([(-0.27, side * w * 0.62), (-0.46, side * w * 0.95)], 0.045, tubes, 0.8)
            brush.part(oval(0.35, side * 0.075, 0.022, 0.022), (70, 15, 15), 0.2)

    return draw


def plant_bug(*, back: Colour, mark: Colour, membrane: Colour) -> Build:
    def draw(brush: Brush, rng: Rng) -> None:
        w = 0.235 * rng.uniform(0.94, 1.06)
        legs(brush, rng, (0.22, 0.08, -0.08), 0.34, 0.022, (back[0] * 0.8, back[1] * 0.8, back[2] * 0.8), w * 0.7)
        feelers(brush, rng, 0.42, 0.42, 0.018, (back[0] * 0.6, back[1] * 0.6, back[2] * 0.6), 0.55)
        brush.part(body([-0.5, -0.42, -0.15, 0.12, 0.2], [0.08, w * 0.78, w, w * 0.82, w * 0.6]), stray(rng, back))
        brush.part(
            one_side(
                [(-0.24, w * 0.55), (-0.46, w * 0.5), (-0.5, 0), (-0.46, -w * 0.5), (-0.24, -w * 0.55), (-0.2, 0)]
            ),
            membrane,
            0.15,
        )
        brush.part(body([0.14, 0.2, 0.34], [w * 0.92, w * 0.9, w * 0.5]), stray(rng, back))
        shield = np.array([(0.15, w * 0.42), (0.15, -w * 0.42), (-0.10, 0.0)])
        brush.part(shield, stray(rng, mark, 0.04), 0.1, 0.5)
        for side in (1, -1):
            brush.part(
                np.array([(-0.22, side * w * 0.95), (-0.22, side * w * 0.6), (-0.31, side * w * 0.75)]), mark, 0.0
            )
        brush.part(oval(0.38, 0.0, 0.06, w * 0.42), stray(rng, back))
        for side in (1, -1):
            brush.part(oval(0.37, side * w * 0.42, 0.03, 0.025), DARK, 0.3)

    return draw


def thrips(*, skin: Colour, fringe: Colour) -> Build:
    def draw(brush: Brush, rng: Rng) -> None:
        legs(brush, rng, (0.22, 0.10, -0.02), 0.14, 0.020, skin, 0.04)
        feelers(brush, rng, 0.44, 0.15, 0.020, skin, 0.45)
        own = stray(rng, skin)
        brush.part(
            body(
                [-0.5, -0.44, -0.2, 0.02, 0.1, 0.24, 0.34, 0.46], [0.01, 0.04, 0.085, 0.075, 0.085, 0.085, 0.055, 0.05]
            ),
            own,
        )
        for x in np.linspace(-0.40, 0.0, 7):
            brush.line([(x, 0.06), (x, -0.06)], 0.010, (own[0] * 0.6, own[1] * 0.6, own[2] * 0.6), 1.0)
        for side in (1, -1):
            tilt = 0.07 + rng.uniform(0, 0.06)
            for x in np.linspace(0.05, -0.38, 12):
                y = 0.05 + (0.14 - x) * tilt * 1.6
                brush.line([(x, side * y), (x - 0.05, side * (y + 0.06))], 0.006, fringe, 1.0)
            brush.line(
                [(0.14, side * 0.05), (-0.15, side * (0.05 + 0.3 * tilt)), (-0.42, side * (0.05 + tilt))], 0.035, fringe
            )

    return draw


def mite(*, skin: Colour, blotch: Colour | None) -> Build:
    def draw(brush: Brush, rng: Rng) -> None:
        w = 0.31 * rng.uniform(0.92, 1.08)
        leg = (skin[0] * 0.9 + 20, skin[1] * 0.9 + 20, skin[2] * 0.9 + 15)
        legs(brush, rng, (0.24, 0.14, -0.02, -0.14), 0.38, 0.030, leg, w * 0.55, (0.95, 0.45, -0.35, -0.85))
        own = stray(rng, skin)
        brush.part(body([-0.45, -0.35, -0.05, 0.2, 0.36, 0.42], [0.08, w * 0.8, w, w * 0.85, w * 0.4, 0.03]), own, 0.45)
        if blotch is not None:
            for side in (1, -1):
                brush.part(oval(-0.06, side * w * 0.55, 0.15, 0.07, 0.2 * side), blotch, 0.0, 0.0)
        for side in (1, -1):
            for x in (-0.3, -0.1, 0.12):
                brush.line([(x, side * w * 0.5), (x - 0.05, side * w * 0.95)], 0.008, (240, 225, 210), 1.0)
            brush.part(oval(0.24, side * 0.10, 0.02, 0.02), (90, 10, 10), 0.0, 0.0)

    return draw


def grasshopper(*, skin: Colour, wing: Colour) -> Build:
    """From the side, as it sits."""

    def draw(brush: Brush, rng: Rng) -> None:
        own = stray(rng, skin)
        darker = (own[0] * 0.7, own[1] * 0.7, own[2] * 0.65)
        for x in (0.28, 0.16):
            brush.line([(x, -0.05), (x + 0.02, -0.16), (x + rng.normal(0, 0.03), -0.24)], 0.022, darker)
        for k in (0.0, 0.02):
            brush.line([(0.42, 0.05), (0.52, 0.14 + k * 3), (0.58 + k, 0.16 + k * 4)], 0.012, darker)
        brush.part(body([-0.5, -0.42, -0.1, 0.2], [0.02, 0.055, 0.075, 0.08]), own)
        brush.part(
            one_side([(0.20, 0.07), (-0.20, 0.085), (-0.60, 0.02), (-0.55, -0.02), (-0.1, 0.0), (0.2, 0.02)]),
            stray(rng, wing),
            0.15,
        )
        brush.part(one_side([(0.36, 0.07), (0.20, 0.11), (0.10, 0.06), (0.14, -0.06), (0.34, -0.06)]), own, 0.3)
        brush.part(oval(0.40, 0.02, 0.07, 0.085, -0.25), own, 0.3)
        brush.part(oval(0.42, 0.045, 0.022, 0.026), DARK, 0.2)
        knee = (-0.26 + rng.normal(0, 0.03), 0.22 + rng.normal(0, 0.02))
        brush.line([(0.08, -0.03), (-0.08, 0.08), knee], 0.095, own, 0.35)
        brush.line([knee, (-0.14, 0.0), (-0.10 + rng.normal(0, 0.03), -0.24)], 0.028, darker)

    return draw


def mole_cricket(*, skin: Colour) -> Build:
    def draw(brush: Brush, rng: Rng) -> None:
        own = stray(rng, skin)
        darker = (own[0] * 0.65, own[1] * 0.65, own[2] * 0.6)
        for side in (1, -1):
            brush.line([(-0.42, side * 0.04), (-0.62, side * (0.12 + rng.uniform(0, 0.04)))], 0.018, own)
            brush.line([(0.02, side * 0.10), (-0.10, side * 0.24), (-0.28, side * 0.22)], 0.040, darker)
            brush.line([(0.14, side * 0.10), (0.10, side * 0.22), (0.0, side * 0.27)], 0.028, darker)
        feelers(brush, rng, 0.46, 0.16, 0.016, darker, 0.5)
        brush.part(body([-0.5, -0.4, -0.15, 0.1], [0.04, 0.10, 0.125, 0.11]), own)
        for x in np.linspace(-0.42, -0.12, 6):
            brush.line([(x, 0.10), (x - 0.01, 0.0), (x, -0.10)], 0.014, darker, 1.0)
        for side in (1, -1):
            brush.part(
                one_side([(0.12, side * 0.02), (0.08, side * 0.12), (-0.16, side * 0.10), (-0.20, side * 0.02)]),
                stray(rng, skin, 0.1),
                0.2,
            )
        brush.part(body([0.08, 0.14, 0.28, 0.36], [0.115, 0.135, 0.12, 0.08]), own, 0.4)
        brush.part(oval(0.40, 0.0, 0.085, 0.075), own, 0.35)
        for side in (1, -1):
            brush.part(
                one_side(
                    [
                        (0.28, side * 0.10),
                        (0.34, side * 0.20),
                        (0.46, side * 0.22),
                        (0.50, side * 0.13),
                        (0.40, side * 0.12),
                    ]
                ),
                darker,
                0.3,
            )
            for k in range(4):
                brush.line(
                    [(0.44 + 0.015 * k, side * (0.21 - 0.025 * k)), (0.51 + 0.02 * k, side * (0.23 - 0.035 * k))],
                    0.022,
                    darker,
                    0.3,
                )
            brush.part(oval(0.44, side * 0.05, 0.018, 0.018), (15, 12, 10), 0.0, 0.0)

    return draw
