"""Drawn fruit of one variety among leaves, seen by a colour camera with depth; every diameter is known."""

import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.fruits import (
    FOLIAGE,
    KINDS,
    Fruit,
    Seen,
    Sunlight,
    View,
    backdrop,
    lay_fruit,
    lay_leaf,
    leaf_sprites,
    twig,
)
from agrotools.build.scenes.scene import (
    Difficulty,
    Floats,
    Kind,
    Level,
    Rng,
    Scene,
    depth_frame,
    fractal_field,
    infrared_frame,
    levels,
    one_of,
    one_thread,
    snapshot,
    value_at,
)


@dataclass(frozen=True, eq=False)
class Foliage:
    """The leaves of one plant: shapes, usual colour and length."""

    sprites: list[NDArray[np.uint8]]
    base: Floats
    leaf_mm: float
    odd_leaves: float
    """Share of leaves with another colour."""
    odd: tuple[str, ...]
    """Colours of these leaves: yellow, red or brown."""


def random_position(rng: Rng, view: View) -> tuple[float, float]:
    """Return a random position in the picture or just outside it, pixels."""
    rows, columns = view.size
    return float(rng.uniform(-0.04, 1.04) * columns), float(rng.uniform(-0.04, 1.04) * rows)


def position_near_fruit(rng: Rng, view: View, hung: list[Fruit], over: float) -> tuple[float, float]:
    """Return the position of a leaf's stalk: near a fruit with probability ``over``, otherwise anywhere."""
    if hung and rng.uniform() < over:
        fruit = hung[int(rng.integers(len(hung)))]
        turn = rng.uniform(0, 2 * np.pi)
        return fruit.centre_px[0] + 34 * math.cos(turn), fruit.centre_px[1] - 12 + 30 * math.sin(turn)
    return random_position(rng, view)


def lay_cluster(rng: Rng, view: View, foliage: Foliage, at: tuple[float, float], distance: float, dim: float) -> None:
    """Paint the leaves of one spur or shoot tip, which spread from about one point."""
    turn = rng.uniform(0, 2 * np.pi)
    scatter = 0.10 * foliage.leaf_mm * view.focal_px / distance
    for _ in range(int(rng.integers(4, 9))):
        turn += 2.4 + rng.normal(0, 0.3)
        x, y = at[0] + rng.normal(0, scatter), at[1] + rng.normal(0, scatter)
        lay_one(rng, view, foliage, (x, y), distance * float(rng.uniform(0.98, 1.02)), dim, turn)


def lay_one(
    rng: Rng, view: View, foliage: Foliage, at: tuple[float, float], distance: float, dim: float,
    turn: float | None = None,
) -> None:  # fmt: skip
    """Paint one leaf whose stalk is at ``at``. ``dim``: share of light on it, 1 at the front of the crown."""
    sunny = value_at(view.dapple, *at) * (0.3 + 0.7 * dim)
    tone = foliage.base * rng.uniform(0.5, 1.0) + one_of(rng, FOLIAGE["greens"]) * 0.4
    tone = tone * rng.normal(1.0, 0.10, 4).clip(0.7, 1.35)
    chance = rng.uniform()
    if chance < foliage.odd_leaves:
        tone = tone + (FOLIAGE[str(rng.choice(foliage.odd))] - tone) * rng.uniform(0.5, 1.0)
    elif chance > 0.86:
        tone = tone + (FOLIAGE["underside"] - tone) * 0.6
    elif chance > 0.76 and sunny > 0.5:
        tone = tone * np.array([1.7, 1.75, 0.8, 1.0])  # light from the sun behind it shines through
    sky = (1.0 - view.sun.share) * rng.uniform(0.35, 0.9)
    first, second = (max(0.0, float(rng.normal(0.5, 0.38))) * view.sun.share * 2.4 * sunny for _ in range(2))
    depth = 0.2 + 0.8 * dim
    shadow = None
    if dim > 0.6:
        drop = rng.uniform(4, 12)
        shadow = (round(-drop * view.sun.towards[0]), round(-drop * view.sun.towards[1]))
    angle = float(rng.normal(np.pi / 2, 1.1)) if turn is None else turn
    length = foliage.leaf_mm * float(rng.uniform(0.6, 1.15)) * view.focal_px / distance
    turned = float(np.clip(abs(rng.normal(0.8, 0.25)), 0.2, 1.0))
    gloss = float(rng.uniform(0.05, 0.3)) if rng.uniform() < 0.3 else 0.0
    lay_leaf(
        view, foliage.sprites[int(rng.integers(len(foliage.sprites)))], at, angle=angle, length=length, turned=turned,
        distance_mm=distance, colour=tone.astype(np.float32), lit=((sky + first) * depth, (sky + second) * depth),
        gloss=gloss, shadow=shadow,
    )  # fmt: skip


def lay_branches(rng: Rng, view: View, distance: float, count: int, tone: float, step_px: float) -> None:
    """Paint ``count`` branches with segments of ``step_px`` that rise through the picture."""
    rows, columns = view.size
    for _ in range(count):
        x, y = float(rng.uniform(0, columns)), float(rows * rng.uniform(0.5, 1.25))
        turn, wide = -np.pi / 2 + rng.normal(0, 0.7), rng.uniform(8, 30) * view.focal_px / distance
        points, widths = [(x, y)], [wide]
        for _ in range(7):
            turn += rng.normal(0, 0.22)
            x, y = x + step_px * math.cos(turn), y + step_px * math.sin(turn)
            points.append((x, y))
            widths.append(widths[-1] * 0.86)
        twig(view, points, widths, distance, tone * rng.uniform(0.5, 1.2))


ROWS_PX, COLUMNS_PX = 480, 640
WELL_SEEN = 0.6
"""Minimum visible share of a fruit that counts as measurable."""
LEAST_SEEN = 0.15
"""Minimum visible share of a fruit that counts as visible at all."""


@one_thread()
def make_orchard(
    seed: int, difficulty: Difficulty = 1, kind: str = "apple", *,
    fruits: int | None = None, skin: str | None = None, mean_mm: float | None = None,
) -> Scene:  # fmt: skip
    """Draw a picture of 640 x 480 px with its depth. The same arguments give the same scene.

    Args:
        kind: one of :data:`agrotools.build.scenes.fruits.KINDS`.
        fruits: number of fruits; None: drawn. There are fewer if there is not enough room.
        skin: variety; None: drawn.
        mean_mm: mean diameter of the fruit on this plant; None: drawn.

    Returns:
        ``images``: ``rgb`` uint8 (480, 640, 3); ``nir`` uint8 (480, 640); ``depth`` uint16 (480, 640), millimetres
        along the optical axis, 0 unknown. ``masks``: ``ids`` int16 (480, 640), 0 for pixels without fruit. ``truth``:
        ``fruits``, from near to far, each with ``id``, ``diameter_mm`` (across the axis), ``distance_mm`` (from the
        camera to the centre), ``centre_px``, ``box`` (of the whole fruit including hidden parts, clipped to the
        picture) and ``visibility`` (visible share of its outline); ``skin``. ``sidecar``: ``fx_px``, the focal
        length in pixels.
    """
    rng = np.random.default_rng([seed, zlib.crc32(b"orchard"), zlib.crc32(kind.encode()), difficulty])
    level, fruit_kind = levels("orchard")[difficulty], KINDS[kind]
    variety = str(rng.choice(varieties_of(kind, difficulty))) if skin is None else skin
    # Small fruit is photographed from nearer, to cover enough pixels.
    near = float(rng.uniform(760, 1150)) * (fruit_kind.diameter_mm[0] / 74.0) ** 0.75
    focal_px = float(rng.uniform(760, 1000))
    low, high = level.fruits
    count = int(rng.integers(low, high + 1)) if fruits is None else fruits
    if kind == "cherry" and fruits is None:
        count *= 3
    view = _empty(rng, level, focal_px)
    hung = _hang(rng, fruit_kind, variety, count, focal_px, near, mean_mm)
    view, seen = _paint(rng, view, level, near, hung)
    light = view.light
    photo = snapshot(rng, light, float(rng.uniform(*level.exposure)), level.electrons)
    infrared = infrared_frame(rng, light[..., 3], 1.6)
    depth = depth_frame(rng, view.distance_mm, level.depth_noise, level.holes, level.flying)
    images = {"rgb": photo, "nir": infrared, "depth": depth}
    return Scene(images, {"fx_px": focal_px}, {"fruits": _truth(view, hung, seen), "skin": variety}, {"ids": view.ids})


def varieties_of(kind: str, difficulty: Difficulty) -> tuple[str, ...]:
    """Return the varieties of a fruit that are drawn at a difficulty."""
    return levels("orchard")[difficulty].skins if kind == "apple" else tuple(KINDS[kind].skins)


def _empty(rng: Rng, level: Level, focal_px: float) -> View:
    towards = np.array([rng.uniform(-0.8, 0.8), rng.uniform(-1.0, -0.45), rng.uniform(-0.95, -0.05)])
    towards /= np.linalg.norm(towards)
    sun = Sunlight((float(towards[0]), float(towards[1]), float(towards[2])), float(rng.uniform(*level.sun)))
    light, distance = backdrop(
        rng, ROWS_PX, COLUMNS_PX, float(rng.uniform(*level.sky)), float(rng.uniform(*level.horizon))
    )
    flecks = fractal_field(rng, ROWS_PX, COLUMNS_PX, 95, 3)
    dapple = 1.0 / (1.0 + np.exp(-4.0 * (flecks + 0.9 - 1.9 * level.shade)))
    return View(light, distance, sun, dapple.astype(np.float32), focal_px)


def _hang(
    rng: Rng, kind: Kind, variety: str, wanted: int, focal_px: float, near_mm: float, mean_mm: float | None
) -> list[Fruit]:
    """Return fruits that do not touch each other, singly and in clusters."""
    skin = kind.skins[variety]
    drawn = float(rng.normal(kind.diameter_mm[0], 0.6 * kind.diameter_mm[1]))
    mean = drawn if mean_mm is None else mean_mm
    fruits_hung: list[Fruit] = []
    places: list[tuple[np.ndarray, float]] = []
    for _ in range(40 * wanted):
        if len(fruits_hung) >= wanted:
            break
        diameter = float(np.clip(rng.normal(mean, 0.75 * kind.diameter_mm[1]), 0.68 * mean, 1.35 * mean))
        distance = near_mm * float(rng.uniform(1.0, 1.32))
        radius_px = focal_px * diameter / (2 * distance)
        if places and rng.uniform() < 0.45:
            other, size = places[int(rng.integers(len(places)))]
            turn, near = rng.uniform(0, 2 * np.pi), (size + diameter) / 2 * rng.uniform(1.0, 1.25)
            spot = other + near * np.array([math.cos(turn), 0.75 * math.sin(turn), rng.uniform(-0.4, 0.4)])
            distance = float(spot[2])
            x, y = (float(spot[k]) * focal_px / distance + (COLUMNS_PX / 2, ROWS_PX / 2)[k] for k in (0, 1))
        else:
            x = float(rng.uniform(0.7 * radius_px, COLUMNS_PX - 0.7 * radius_px))
            y = float(rng.uniform(0.7 * radius_px, ROWS_PX - 0.7 * radius_px))
        inside = -0.2 * radius_px < x < COLUMNS_PX + 0.2 * radius_px and -0.2 * radius_px < y < ROWS_PX
        if not inside or distance < 0.8 * near_mm:
            continue
        spot = np.array([(x - COLUMNS_PX / 2), (y - ROWS_PX / 2), focal_px]) * distance / focal_px
        long = max(1.0, kind.flat[1]) if kind.lobed else 1.0
        if any(np.linalg.norm(spot - other) < long * (diameter + size) / 2 for other, size in places):
            continue
        axis = np.array([rng.normal(0, 0.45), -1.0, rng.normal(-0.15, 0.5)])
        axis /= np.linalg.norm(axis)
        places.append((spot, diameter))
        fruits_hung.append(
            Fruit(
                kind, skin, (x, y), distance, diameter, float(rng.uniform(*kind.flat)),
                (float(axis[0]), float(axis[1]), float(axis[2])), float(rng.uniform(*skin.share)),
                int(rng.integers(2**31)),
            )
        )  # fmt: skip
    return sorted(fruits_hung, key=lambda fruit: -fruit.distance_mm)


def _paint(rng: Rng, view: View, level: Level, near: float, hung: list[Fruit]) -> tuple[View, list[Seen]]:
    """Paint everything from far to near. The far background is drawn at half size, because it is out of focus."""
    sprites = leaf_sprites(rng, float(rng.uniform(0.8, 1.1)))
    foliage = Foliage(
        sprites, one_of(rng, FOLIAGE["greens"]), float(rng.uniform(70, 100)) * near / 1100.0,
        level.odd_leaves, level.odd,
    )  # fmt: skip
    far = view.halved()
    lay_branches(rng, far, near * 1.8, 3, 0.5, 31.0)
    for distance in np.sort(rng.uniform(1.45 * near, 1.95 * near, 105))[::-1]:
        lay_cluster(rng, far, foliage, random_position(rng, far), float(distance), 0.42)
    view = far.doubled(view)
    lay_branches(rng, view, near * 1.42, 4, 0.9, 62.0)
    density = np.clip(0.62 + 0.5 * fractal_field(rng, ROWS_PX, COLUMNS_PX, 150, 2), 0.05, 1.0)
    for distance in np.sort(rng.uniform(1.2 * near, 1.42 * near, 72))[::-1]:
        at = random_position(rng, view)
        if rng.uniform() < value_at(density, *at):
            lay_cluster(rng, view, foliage, at, float(distance), 0.75)
    among = list(np.sort(rng.uniform(near, 1.32 * near, 50))[::-1])
    seen: list[Seen] = []
    for number, fruit in enumerate(hung, start=1):
        while among and among[0] > fruit.distance_mm:
            lay_one(rng, view, foliage, random_position(rng, view), float(among.pop(0)), 0.95)
        seen.append(lay_fruit(view, fruit, number, value_at(view.dapple, *fruit.centre_px)))
    low, high = level.front_leaves
    for distance in np.sort(rng.uniform(0.86 * near, 0.99 * near, int(rng.integers(low, high + 1))))[::-1]:
        at = position_near_fruit(rng, view, hung, level.over_fruit)
        lay_one(rng, view, foliage, at, float(distance), 1.0)
    return view, seen


def _truth(view: View, hung: list[Fruit], seen: list[Seen]) -> list[dict[str, Any]]:
    counted = np.bincount(view.ids.ravel(), minlength=len(hung) + 1)
    rows: list[dict[str, Any]] = []
    for number, (fruit, (whole_px, (x0, y0, x1, y1))) in enumerate(zip(hung, seen, strict=True), start=1):
        x, y = fruit.centre_px[0] - COLUMNS_PX / 2, fruit.centre_px[1] - ROWS_PX / 2
        slant = math.sqrt(1.0 + (x * x + y * y) / view.focal_px**2)
        rows.append(
            {
                "id": number,
                "diameter_mm": round(fruit.diameter_mm, 2),
                "distance_mm": round(fruit.distance_mm * slant, 1),
                "centre_px": [round(fruit.centre_px[0], 2), round(fruit.centre_px[1], 2)],
                "box": [max(0, x0), max(0, y0), min(COLUMNS_PX, x1), min(ROWS_PX, y1)],
                "visibility": round(int(counted[number]) / max(1, whole_px), 4),
            }
        )
    return rows[::-1]
