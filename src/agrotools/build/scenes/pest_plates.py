"""Plates with schematic insects: one species on a leaf or card, a mixed catch with one animal outlined, sticky traps.

Drawn, and marked so wherever they are used: what a recogniser gets right here says nothing of photographs.
"""

import zlib
from collections.abc import Sequence
from typing import Literal

import cv2
import numpy as np

from agrotools.build.scenes.grounds import (
    GROUNDS,
    NUISANCES,
    Ground,
    Picture,
    add_specks,
    lay,
    outlined,
    paint_ground,
    photographed,
)
from agrotools.build.scenes.insects import SPECIES, Insect, insect_named
from agrotools.build.scenes.insects.brush import Brush
from agrotools.build.scenes.scene import Difficulty, Scene
from agrotools.build.scenes.threads import one_thread

ROWS_PX, COLUMNS_PX = 384, 512
_LENGTHS = ((0.52, 0.66), (0.42, 0.62), (0.34, 0.58), (0.28, 0.52))
"""Length of an animal that is shown alone, share of the shorter side, by difficulty."""
_HIDDEN = (0.0, 0.25, 0.5, 0.7)
"""How often a blade of grass lies over an animal, by difficulty."""
_MIXED = (3, 3, 4, 5)
COUNTED: tuple[str, ...] = tuple(insect.slug for insect in SPECIES if insect.compact)
"""Species that traps are drawn with: of one tone and about round, so that they can be counted."""


def make_pest_plate(seed: int, difficulty: Difficulty, species: str | None = None) -> Scene:
    """One species, alone or (in a third of the harder plates) two or three of it: 512 x 384 px.

    ``truth``: ``species`` (slug), ``ground``, ``boxes`` of the animals [x0, y0, x1, y1], pixels.

    Raises:
        KeyError: no such species is drawn.
    """
    rng = _chance(b"pest plate", seed, difficulty)
    insect = SPECIES[int(rng.integers(len(SPECIES)))] if species is None else insect_named(species)
    with one_thread():
        ground = GROUNDS[int(rng.integers(len(GROUNDS)))]
        picture = paint_ground(rng, ROWS_PX, COLUMNS_PX, ground)
        add_specks(rng, picture, NUISANCES[difficulty].specks)
        many = int(rng.integers(2, 4)) if difficulty and rng.uniform() < 0.35 else 1
        low, high = _LENGTHS[difficulty]
        length = ROWS_PX * rng.uniform(low, high) * (0.72 + 0.28 * insect.size) * (1.0 if many == 1 else 0.62)
        boxes = [_set(rng, picture, insect, length, spot) for spot in _spots(rng, many, length)]
        _hide(rng, picture, boxes[0], _HIDDEN[difficulty])
        rgb = photographed(rng, picture, difficulty)
    return Scene({"rgb": rgb}, truth={"species": insect.slug, "ground": ground, "boxes": boxes})


def make_marked_plate(seed: int, difficulty: Difficulty, species: str | None = None) -> Scene:
    """Three to five species on one ground, one of them in a red outline (box or ellipse, 4 px wide).

    ``truth``: ``species`` of the marked one, ``others``, ``box`` inside the stroke [x0, y0, x1, y1], ``shape``.

    Raises:
        KeyError: no such species is drawn.
    """
    rng = _chance(b"marked plate", seed, difficulty)
    with one_thread():
        order = [SPECIES[int(k)] for k in rng.permutation(len(SPECIES))]
        first = order[0] if species is None else insect_named(species)
        shown = [first, *(insect for insect in order if insect is not first)][: _MIXED[difficulty]]
        ground: Ground = ("card", "cloth", "leaf")[int(rng.integers(3))]
        picture = paint_ground(rng, ROWS_PX, COLUMNS_PX, ground)
        add_specks(rng, picture, NUISANCES[difficulty].specks)
        length = ROWS_PX * rng.uniform(0.26, 0.34)
        spots = _spots(rng, len(shown), length * 1.25)
        boxes = [
            _set(rng, picture, insect, length * (0.75 + 0.25 * insect.size), spot)
            for insect, spot in zip(shown, spots, strict=True)
        ]
        shape: Literal["box", "ellipse"] = "box" if rng.uniform() < 0.5 else "ellipse"
        x0, y0, x1, y1 = boxes[0]
        grow = 14 if shape == "box" else 14 + int(0.18 * max(x1 - x0, y1 - y0))
        around = (x0 - grow, y0 - grow, x1 + grow, y1 + grow)
        rgb, box = outlined(photographed(rng, picture, difficulty), around, shape)
    truth = {"species": first.slug, "others": [insect.slug for insect in shown[1:]], "box": box, "shape": shape}
    return Scene({"rgb": rgb}, truth=truth)


def make_trap(
    seed: int, difficulty: Difficulty, species: str | None = None, count: int | None = None, marked: bool = False
) -> Scene:
    """A sticky card with a catch of one species, none hidden under another; ``marked``: with a red box drawn on it.

    ``truth``: ``species``, ``count``, ``centres`` [[x, y]...], ``length_px`` of an animal, and of a marked one ``box``
    inside the stroke and ``count_in_box`` by centres.
    """
    rng = _chance(b"trap", seed, difficulty)
    insect = insect_named(COUNTED[int(rng.integers(len(COUNTED)))] if species is None else species)
    with one_thread():
        picture = paint_ground(rng, ROWS_PX, COLUMNS_PX, "card", rules=difficulty >= 2)
        add_specks(rng, picture, NUISANCES[difficulty].specks // 2, 3.0)
        wanted = int(rng.integers(6, 46)) if count is None else count
        length = float(rng.integers(19, 27)) + float(rng.choice([0.3, 0.4, 0.6, 0.7]))
        spots = _apart(rng, wanted, length * (1.55 - 0.12 * difficulty))
        for spot in spots:
            _set(rng, picture, insect, length * rng.uniform(0.88, 1.12), spot)
        truth: dict[str, object] = {"species": insect.slug, "count": len(spots), "centres": spots, "length_px": length}
        around = _between(rng, spots, length) if marked else None
        rgb = photographed(rng, picture, difficulty)
        if around is not None:
            x0, y0, x1, y1 = around
            rgb, box = outlined(rgb, around)
            truth |= {"box": box, "count_in_box": sum(x0 < x < x1 and y0 < y < y1 for x, y in spots)}
    return Scene({"rgb": rgb}, truth=truth)


def _chance(name: bytes, seed: int, difficulty: Difficulty) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(name), difficulty])


def _set(
    rng: np.random.Generator, picture: Picture, insect: Insect, length: float, spot: tuple[float, float]
) -> list[int]:
    """Draw one animal with the soft shadow below it; its bounds."""
    turn, mirrored = rng.uniform(0, 2 * np.pi), bool(rng.uniform() < 0.5)
    reach = int(length * 0.95) + 4
    rows, columns = picture.shape[:2]
    x0, y0 = max(0, int(spot[0]) - reach), max(0, int(spot[1]) - reach)
    x1, y1 = min(columns, int(spot[0]) + reach), min(rows, int(spot[1]) + reach)
    part = np.ascontiguousarray(picture[y0:y1, x0:x1])
    cover = np.zeros(part.shape[:2], np.float32)
    brush = Brush(part, cover, spot[0] - x0, spot[1] - y0, length, turn, -2.2 + rng.normal(0, 0.25), 0.0, mirrored)
    insect.draw(brush, rng)
    below = picture[y0:y1, x0:x1]
    move = np.array([[1, 0, 0.020 * length], [0, 1, 0.030 * length]], np.float32)
    cast = cv2.warpAffine(cover, move, (part.shape[1], part.shape[0]))
    cast = cv2.GaussianBlur(cast, (0, 0), max(0.8, 0.022 * length))
    shade = (0.45 * cast * (1.0 - cover))[..., None]
    below[:] = part * (1.0 - shade)
    ys, xs = np.nonzero(cover > 0.5)
    return [x0 + int(xs.min()), y0 + int(ys.min()), x0 + int(xs.max()) + 1, y0 + int(ys.max()) + 1]


def _spots(rng: np.random.Generator, count: int, length: float) -> list[tuple[float, float]]:
    """Places for a few animals of that length: the middle, or one in each of as many parts of the picture."""
    if count == 1:
        stray = 0.10 * ROWS_PX
        return [(COLUMNS_PX / 2 + rng.uniform(-stray, stray), ROWS_PX / 2 + rng.uniform(-stray, stray) * 0.6)]
    cells = [(c, r) for r in range(2) for c in range(3)]
    taken = [cells[int(k)] for k in rng.permutation(len(cells))[:count]]
    room_x, room_y = max(0.0, COLUMNS_PX / 3 - length) / 2, max(0.0, ROWS_PX / 2 - length) / 2
    return [
        (
            COLUMNS_PX * (c + 0.5) / 3 + rng.uniform(-room_x, room_x),
            ROWS_PX * (r + 0.5) / 2 + rng.uniform(-room_y, room_y),
        )
        for c, r in taken
    ]


def _apart(rng: np.random.Generator, count: int, least: float) -> list[tuple[float, float]]:
    """Up to ``count`` places at least ``least`` pixels from each other and from the edge."""
    spots: list[tuple[float, float]] = []
    for _ in range(60 * count):
        if len(spots) == count:
            break
        x, y = rng.uniform(least * 0.7, COLUMNS_PX - least * 0.7), rng.uniform(least * 0.7, ROWS_PX - least * 0.7)
        if all((x - a) ** 2 + (y - b) ** 2 >= least**2 for a, b in spots):
            spots.append((round(float(x), 2), round(float(y), 2)))
    return spots


def _hide(rng: np.random.Generator, picture: Picture, box: Sequence[int], often: float) -> None:
    """Now and then a blade of grass over a part of the animal."""
    if rng.uniform() >= often:
        return
    x0, y0, x1, y1 = box
    x, y = rng.uniform(x0, x1), rng.uniform(y0, y1)
    angle, half = rng.uniform(0, np.pi), rng.uniform(0.035, 0.075) * (x1 - x0 + y1 - y0) / 2
    along = np.array([np.cos(angle), np.sin(angle)]) * 700
    across = np.array([-np.sin(angle), np.cos(angle)]) * half
    ends = (-along + across, along + across * 0.6, along - across * 0.6, -along - across)
    corners = np.stack(ends) + np.array([x, y])
    tone = np.asarray((112, 150, 70), np.float64) * rng.uniform(0.75, 1.15)
    mask = np.zeros(picture.shape[:2], np.uint8)
    cv2.fillPoly(mask, [np.round(corners * 16).astype(np.int32)], 255, cv2.LINE_AA, 4)
    lay(picture, mask, (float(tone[0]), float(tone[1]), float(tone[2])))


def _between(rng: np.random.Generator, spots: Sequence[tuple[float, float]], length: float) -> list[int]:
    """A box [x0, y0, x1, y1] of about a third of the card whose edge runs as far from the animals as it can."""
    best: tuple[float, list[int]] = (-1.0, [])
    for _ in range(60):
        width, height = rng.uniform(0.45, 0.65) * COLUMNS_PX, rng.uniform(0.45, 0.65) * ROWS_PX
        x0, y0 = rng.uniform(8, COLUMNS_PX - width - 8), rng.uniform(8, ROWS_PX - height - 8)
        x1, y1 = x0 + width, y0 + height
        # Distance to the box along its nearer axis: negative inside.
        off = (max(max(x0 - x, x - x1), max(y0 - y, y - y1)) for x, y in spots)
        clear = min(map(abs, off), default=length)
        if clear > best[0]:
            best = (clear, [int(x0), int(y0), int(x1), int(y1)])
    return best[1]
