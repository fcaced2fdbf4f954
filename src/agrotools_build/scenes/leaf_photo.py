"""Drawn leaves with lesions on a board, a cloth or soil; the diseased pixels are known exactly.

Kinds of lesions are spots with halos, blotches, angular spots between veins, rust pustules and mildew. Each marks the
diseased pixels and paints them. A pixel counts as diseased if its tissue has lost its healthy colour, halos included.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools_build.scenes.rows import SOILS, paint_soil
from agrotools_build.scenes.scene import (
    TABLES,
    Axes,
    Difficulty,
    Floats,
    Kind,
    Level,
    Mask,
    Plane,
    Rng,
    Scene,
    Sun,
    blurred,
    fractal_field,
    levels,
    moved,
    one_of,
    one_thread,
    overlap,
    resized,
    smooth_field,
    snapshot,
    spectra,
    spectrum,
    sun_at,
    with_spectra,
)

TONES = spectra("lesions")
"""Reflectances of lesions, of the nerves of a leaf, and of the cloths it may lie on."""


BLADES: dict[str, Kind] = {
    crop: with_spectra(blade, "tone") for crop, blade in TABLES["blades"].items()
}


@dataclass(frozen=True, eq=False)
class Blade:
    """A leaf in its own patch of the picture; all planes are (rows, columns).

    ``cover`` 0 to 1; ``veins`` 0 to 1; ``height`` in pixels (its gradient determines the light); ``along`` 0 at the
    stalk to 1 at the tip; ``across`` -1 to 1 between its edges; ``stalk`` 0 to 1; ``x0``, ``y0``: position of the
    patch.
    """

    kind: Kind
    x0: int
    y0: int
    cover: Floats
    veins: Floats
    height: Floats
    along: Floats
    across: Floats
    stalk: Floats
    length_px: float

    @property
    def inside(self) -> Mask:
        """Mask of the leaf."""
        return self.cover > 0.5


def lay_out(
    rng: Rng, kind: Kind, centre: tuple[float, float], length_px: float, angle: float, curl: float
) -> Blade:
    """Return a leaf of that length around ``centre`` (px), with its tip in direction ``angle``."""
    slim = float(rng.uniform(*kind.slim))
    reach = int(length_px * max(0.60, slim + 0.12)) + 6
    x0, y0, side = int(centre[0]) - reach, int(centre[1]) - reach, 2 * reach
    xs = np.arange(side, dtype=np.float32)[None, :] + np.float32(x0 + 0.5 - centre[0])
    ys = np.arange(side, dtype=np.float32)[:, None] + np.float32(y0 + 0.5 - centre[1])
    # u: from the stalk, 0, to the tip, 1; v: to the right of the midrib, in lengths of the leaf.
    axes = Axes.plain(angle)
    u = axes.along(xs, ys) / np.float32(length_px) + 0.5
    v = axes.across(xs, ys) / np.float32(length_px)
    wobble = np.float32(0.012)
    u = u + wobble * smooth_field(rng, (side, side), 0.16 * length_px)
    v = v + wobble * smooth_field(rng, (side, side), 0.16 * length_px)
    v = v - np.float32(rng.normal(0, 0.07)) * (4.0 * u * (1.0 - u) - 0.5)
    body = np.clip(u, 1e-3, 1.0 - 1e-3)
    shape = body**kind.rise * (1.0 - body) ** kind.fall
    peak = kind.rise / (kind.rise + kind.fall)
    half = slim * shape / (peak**kind.rise * (1.0 - peak) ** kind.fall)
    right = v > 0
    phases = rng.uniform(0, 2 * np.pi, 4)
    wave = np.where(right, np.sin(11 * body + phases[0]), np.sin(12 * body + phases[1]))
    fine = np.where(right, np.sin(23 * body + phases[2]), np.sin(21 * body + phases[3]))
    half = half * (1.0 + kind.wave * wave + 0.5 * kind.wave * fine)
    count, depth = kind.teeth
    if count:
        half = half * (1.0 + depth * ((body * count + 0.37 * right) % 1.0 - 0.5))
    if kind.lobes:
        half = half * (1.0 + kind.lobes * np.cos(2 * np.pi * (2.3 * body - 0.25)))
    edge = (half - np.abs(v)) * np.float32(length_px)
    ends = np.minimum(u, 1.0 - u) * np.float32(length_px)
    cover = np.clip(np.minimum(edge, ends) + 0.5, 0.0, 1.0)
    across = np.clip(v / np.maximum(half, 0.01), -1.5, 1.5)
    veins = _veins(rng, kind, body, v, across, np.float32(length_px))
    height = _relief(rng, across, body, veins, length_px, curl)
    thick = np.float32(0.011 * length_px)
    stalk = np.clip(thick - np.abs(v) * np.float32(length_px) + 0.5, 0, 1) * (
        (u < 0.03) & (u > -0.09)
    )
    return Blade(
        kind=kind,
        x0=x0,
        y0=y0,
        cover=np.asarray(cover, np.float32),
        veins=np.asarray(veins, np.float32),
        height=np.asarray(height, np.float32),
        along=np.asarray(body, np.float32),
        across=np.asarray(across, np.float32),
        stalk=np.asarray(stalk, np.float32),
        length_px=length_px,
    )


def _veins(
    rng: Rng, kind: Kind, u: Floats, v: Floats, across: Floats, length_px: np.float32
) -> Floats:
    """Return the midrib, side veins that bend towards the tip, and a net of fine veins."""
    aside = np.abs(v)
    rib = np.exp(-((aside * length_px / (0.0065 * length_px * (1.35 - u) + 0.6)) ** 2))
    lean = np.float32(rng.uniform(0.55, 0.95))
    stray = 0.010 * smooth_field(rng, u.shape, 0.12 * float(length_px))
    start = u - lean * aside + np.float32(0.45) * aside * aside + stray
    shift = np.where(v > 0, 0.0, 0.5) * rng.uniform(0.3, 1.0)
    place = start * (kind.veins + 1) + shift
    off = np.abs(place - np.round(place)) / (kind.veins + 1) * length_px
    side = (
        np.exp(-((off / (0.0036 * length_px + 0.45)) ** 2))
        * (1.0 - 0.6 * np.abs(across))
        * (start > 0.0)
    )
    cell = max(5.0, 0.028 * float(length_px))
    net = 1.0 - np.abs(smooth_field(rng, u.shape, cell)) * 2.6
    fine = np.clip(net, 0.0, 1.0) * 0.22
    return np.clip(np.maximum(np.maximum(rib, 0.62 * side), fine), 0.0, 1.0).astype(np.float32)


def _relief(
    rng: Rng, across: Floats, u: Floats, veins: Floats, length_px: float, curl: float
) -> Floats:
    """Return the height in pixels: the blade bulges between its veins, and curls up or down along its edges."""
    bulge = -0.010 * length_px * (veins**0.7)
    folds = 0.010 * length_px * fractal_field(rng, u.shape, 0.22 * length_px, 3)
    edge = curl * 0.05 * length_px * np.clip(across, -1.2, 1.2) ** 2 * (0.5 + np.sin(np.pi * u))
    lengthwise = curl * 0.06 * length_px * rng.normal(0, 1.0) * (u - 0.5) ** 2 * 4.0
    return np.asarray(bulge + folds + edge + lengthwise, dtype=np.float32)


def blade_colour(rng: Rng, blade: Blade, age: float) -> Plane:
    """Return the reflectance (rows, columns, 4) of the healthy leaf; ``age``: 0 young to 1 old and paler."""
    tone = blade.kind.tone * rng.normal(1.0, 0.08, 4).clip(0.8, 1.25).astype(np.float32)
    mottle = 1.0 + 0.07 * fractal_field(rng, blade.cover.shape, 0.10 * blade.length_px, 4, 0.75)
    body = mottle[..., None] * tone
    pale = np.clip(
        0.5 * age * (0.6 + 0.5 * smooth_field(rng, blade.cover.shape, 0.35 * blade.length_px)),
        0.0,
        0.5,
    )
    body += pale[..., None] * (spectrum(0.150, 0.200, 0.045, 0.50) - body)
    nerve = 0.75 * blade.veins * (0.7 + 0.3 * pale)
    return np.asarray(body + nerve[..., None] * (TONES["nerve"] - body), dtype=np.float32)


_MOST_STEPS = 900
_CENTRES = (TONES["tan"], TONES["brown"], TONES["grey"], TONES["brown"])


def _blend(surface: Plane, where: Floats, tone: Floats) -> None:
    surface += where[..., None] * (tone - surface)


def _spots(
    rng: Rng,
    blade: Blade,
    surface: Plane,
    goal: int,
    strength: float,
    *,
    radius: tuple[float, float],
    centre: Floats,
    halo: float,
    rim: float,
) -> Mask:
    """Paint roundish spots in loose groups: pale or brown centre, dark rim, yellow halo.

    ``radius``: smallest and largest radius, px; ``centre``: reflectance of the centre; ``halo``: width of the halo and
    ``rim``: width of the rim, as shares of the radius, 0 for none.
    """
    inside = blade.inside
    rows, columns = inside.shape
    marked = np.zeros(inside.shape, np.bool_)
    ys, xs = np.nonzero(inside)
    density = smooth_field(rng, (rows, columns), 0.22 * blade.length_px)
    ragged = fractal_field(rng, (rows, columns), 9, 3, 0.7)
    counted = 0
    for _ in range(_MOST_STEPS):
        if counted >= goal:
            break
        pick = int(rng.integers(len(ys)))
        x, y = float(xs[pick]), float(ys[pick])
        if density[int(y), int(x)] + 0.7 * rng.normal() < -0.1:
            continue
        r = float(np.clip(rng.lognormal(np.log(np.sqrt(radius[0] * radius[1])), 0.4), *radius))
        # The last spot is limited to the area that is still missing.
        r = min(r, max(1.6, float(np.sqrt(max(goal - counted, 6) / np.pi)) * 1.15))
        reach = int(1.8 * r + 4)
        x0, x1 = max(0, int(x) - reach), min(columns, int(x) + reach + 1)
        y0, y1 = max(0, int(y) - reach), min(rows, int(y) + reach + 1)
        dx = (np.arange(x0, x1, dtype=np.float32) - np.float32(x))[None, :]
        dy = (np.arange(y0, y1, dtype=np.float32) - np.float32(y))[:, None]
        turn, squeeze = rng.uniform(0, np.pi), rng.uniform(0.7, 1.0)
        axes = Axes.single(turn)
        off = np.sqrt(axes.along(dx, dy) ** 2 + (axes.across(dx, dy) / np.float32(squeeze)) ** 2)
        off = off * (1.0 + (0.05 if halo else 0.12) * ragged[y0:y1, x0:x1]) / np.float32(r)
        part = surface[y0:y1, x0:x1]
        area = inside[y0:y1, x0:x1]
        wide = 1.0 + halo * rng.uniform(0.6, 1.3)
        if halo:
            _blend(
                part, strength * 0.85 * area * np.clip((wide - off) * 3.2, 0.0, 1.0), TONES["halo"]
            )
        edge = np.clip((1.0 - off) * r * 0.7 + 0.5, 0.0, 1.0)
        tone = (centre * rng.normal(1.0, 0.12)).astype(np.float32)
        if rim:
            _blend(part, strength * area * edge, TONES["dark"] * 0.6 + TONES["brown"] * 0.4)
            _blend(
                part, strength * area * np.clip((1.0 - rim - off) * r * 0.6 + 0.5, 0.0, 1.0), tone
            )
        else:
            _blend(part, strength * area * edge, tone)
        hit = area & (off < (wide - 0.15 if halo else 1.0))
        view = marked[y0:y1, x0:x1]
        counted += int(np.count_nonzero(hit & ~view))
        view |= hit
    return marked


def ring_spots(rng: Rng, blade: Blade, surface: Plane, goal: int, strength: float) -> Mask:
    """Paint spots with a dark rim and a halo, as caused by Cercospora, Septoria or Alternaria."""
    tone = _CENTRES[int(rng.integers(len(_CENTRES)))]
    top = rng.uniform(0.020, 0.050) * blade.length_px
    halo = rng.uniform(0.15, 0.6)
    return _spots(
        rng,
        blade,
        surface,
        goal,
        strength,
        radius=(0.35 * top, top),
        centre=tone,
        halo=halo,
        rim=0.28,
    )


def dead_spots(rng: Rng, blade: Blade, surface: Plane, goal: int, strength: float) -> Mask:
    """Paint a few large brown spots without a halo."""
    top = rng.uniform(0.05, 0.10) * blade.length_px
    rim = float(rng.choice([0.0, 0.2]))
    return _spots(
        rng,
        blade,
        surface,
        goal,
        strength,
        radius=(0.3 * top, top),
        centre=TONES["brown"],
        halo=0.0,
        rim=rim,
    )


def rust(rng: Rng, blade: Blade, surface: Plane, goal: int, strength: float) -> Mask:
    """Paint many small orange pustules, each in a pale yellow ring."""
    top = max(3.0, 0.013 * blade.length_px)
    halo = rng.uniform(0.5, 0.9)
    return _spots(
        rng,
        blade,
        surface,
        goal,
        strength,
        radius=(0.5 * top, top),
        centre=TONES["rust"],
        halo=halo,
        rim=0.0,
    )


def blotches(rng: Rng, blade: Blade, surface: Plane, goal: int, strength: float) -> Mask:
    """Paint irregular blotches: the pattern of a short-range activator and a long-range inhibitor from random noise."""
    rows, columns = blade.inside.shape
    small = (max(16, columns // 4), max(16, rows // 4))
    state = rng.standard_normal((small[1], small[0])).astype(np.float32)
    range_px = rng.uniform(0.012, 0.024) * blade.length_px / 4 * 2.2
    for _ in range(7):
        state = np.tanh(
            3.0 * (blurred(state, range_px) - 0.93 * blurred(state, 2.1 * range_px))
            * range_px
        )  # fmt: skip
    field = resized(state, columns, rows, cv2.INTER_CUBIC)
    field = field / max(float(field.std()), 1e-6)
    field += 1.5 * smooth_field(rng, (rows, columns), 0.3 * blade.length_px)
    field += 0.22 * fractal_field(rng, (rows, columns), 8, 3)
    marked, level = _highest(field, blade.inside, goal)
    margin = np.clip((field - level) * 5.0 + 0.5, 0.0, 1.0) * blade.inside
    _blend(surface, strength * 0.9 * margin, TONES["halo"] * 0.55 + TONES["brown"] * 0.45)
    dead = np.clip((field - level - 0.22) * 4.0, 0.0, 1.0) * blade.inside
    _blend(surface, strength * dead, TONES["brown"] * 0.8 + TONES["tan"] * 0.2)
    _blend(
        surface,
        strength * 0.7 * np.clip((field - level - 0.8) * 2.0, 0.0, 1.0) * blade.inside,
        TONES["grey"],
    )
    return marked


def angular(rng: Rng, blade: Blade, surface: Plane, goal: int, strength: float) -> Mask:
    """Paint spots that end at the fine veins, so that they have corners."""
    rows, columns = blade.inside.shape
    gap = max(5.0, rng.uniform(0.018, 0.034) * blade.length_px)
    seeds = np.full((rows, columns), 255, np.uint8)
    count = int(rows * columns / gap**2)
    seeds[rng.integers(0, rows, count), rng.integers(0, columns, count)] = 0
    _, labels = cv2.distanceTransformWithLabels(
        seeds, cv2.DIST_L2, 3, labelType=cv2.DIST_LABEL_PIXEL
    )
    cells = np.asarray(labels, dtype=np.int32)
    wish = smooth_field(rng, (rows, columns), 0.16 * blade.length_px) + 0.5 * smooth_field(
        rng, (rows, columns), gap * 1.5
    )
    number = int(cells.max()) + 1
    sizes = np.bincount(cells[blade.inside], minlength=number)
    wishes = np.bincount(cells.ravel(), weights=wish.ravel(), minlength=number)
    wishes /= np.maximum(np.bincount(cells.ravel(), minlength=number), 1)
    order = np.argsort(-wishes, kind="stable")
    within_goal = order[np.cumsum(sizes[order]) <= max(goal, 1)]
    chosen = np.zeros(number, np.bool_)
    chosen[within_goal] = True
    # The larger veins stay green.
    marked = chosen[cells] & blade.inside & (blade.veins < 0.5)
    soft = blurred(marked.astype(np.float32), 0.8) * blade.inside
    tones = rng.normal(1.0, 0.22, number).clip(0.5, 1.6).astype(np.float32)[cells]
    tone = (TONES["brown"] * 0.75 + TONES["tan"] * 0.25) * tones[..., None]
    surface += (strength * soft)[..., None] * (tone - surface)
    return marked


def mildew(rng: Rng, blade: Blade, surface: Plane, goal: int, strength: float) -> Mask:
    """Paint white powdery patches with soft edges."""
    field = smooth_field(rng, blade.inside.shape, 0.15 * blade.length_px)
    field += 0.35 * fractal_field(rng, blade.inside.shape, 0.05 * blade.length_px, 4, 0.7)
    marked, level = _highest(field, blade.inside, goal)
    powder = np.clip(0.62 + 0.25 * fractal_field(rng, blade.inside.shape, 5, 3, 0.9), 0.2, 1.0)
    cover = np.clip((field - level) * 2.4 + 0.55, 0.0, 1.0) * powder * blade.inside
    _blend(surface, strength * 0.9 * cover, TONES["mildew"])
    return marked


def _highest(field: Floats, inside: Mask, goal: int) -> tuple[Mask, float]:
    """Return the mask of the ``goal`` leaf pixels with the highest values of the field, and their lowest value."""
    values = np.sort(field[inside])
    if goal <= 0 or not len(values):
        return np.zeros(inside.shape, np.bool_), float("inf") if not len(values) else float(
            values[-1]
        ) + 10.0
    level = float(values[max(0, len(values) - goal)])
    return (field >= level) & inside, level


_PAINTERS = (ring_spots, dead_spots, blotches, angular, rust, mildew)
KINDS: dict[str, Callable[[Rng, Blade, Plane, int, float], Mask]] = {
    each.__name__: each for each in _PAINTERS
}
"""Functions that paint about ``goal`` pixels at ``strength`` 0.5 (faint) to 1 and return the mask of diseased ones."""


ROWS_PX, COLUMNS_PX = SIZE = 480, 640
BACKGROUND, HEALTHY, LESION = 0, 1, 2
LEAST_LESION_PX = 12
"""Minimum size of a lesion in ``n_lesions``; pixels of smaller patches still count as diseased."""
MOST_LEAVES = 3


@one_thread()
def make_leaf_photo(
    seed: int,
    difficulty: Difficulty = 1,
    crop: str | None = None,
    lesion: str | None = None,
    *,
    leaves: int = 1,
    severity_pct: float | Sequence[float] | None = None,
) -> Scene:
    """Draw a photograph of 640 x 480 px with one to three leaves of one crop. The same arguments give the same scene.

    Args:
        crop: one of :data:`BLADES`; None: drawn.
        lesion: one of :data:`KINDS`; None: drawn, one or two kinds.
        leaves: number of leaves side by side, at most :data:`MOST_LEAVES`.
        severity_pct: approximate diseased share of each leaf, percent, or those of the leaves from left to right; None:
            drawn, sometimes 0.

    Returns:
        ``images``: ``rgb`` uint8 (480, 640, 3). ``masks``: ``classes`` uint8 (480, 640), 0 background, 1 healthy leaf,
        2 diseased; ``leaves`` uint8, number of the leaf from left to right. ``truth``: ``leaves``, each with
        ``leaf_area_px``, ``lesion_area_px``, ``severity_pct``, ``n_lesions`` (8-connected, at least 12 px) and
        ``box``; ``ground``.
    """
    rng = np.random.default_rng([seed, zlib.crc32(b"leaf_photo"), difficulty])
    level = levels("leaf_photo")[difficulty]
    crop = crop or str(rng.choice(list(BLADES)))
    kinds = (
        [lesion]
        if lesion
        else [str(k) for k in rng.permutation(list(KINDS))[: rng.integers(1, level.kinds + 1)]]
    )
    sun = sun_at(rng.uniform(0, 2 * np.pi), rng.uniform(0.5, 1.3), rng.uniform(0.35, 0.6))
    ground = str(rng.choice(level.grounds))
    light = _ground(rng, ground, sun)
    classes = np.zeros(SIZE, np.uint8)
    numbers = np.zeros(SIZE, np.uint8)
    for number in range(1, leaves + 1):
        blade = _placed(rng, crop, number, leaves, level.curl)
        surface = blade_colour(rng, blade, float(rng.uniform(*level.age)))
        share = severity_pct[number - 1] if isinstance(severity_pct, Sequence) else severity_pct
        diseased = _infect(rng, level, blade, surface, kinds, share)
        _lay(rng, light, blade, surface, sun, level)
        blade_window, window = overlap(blade.cover.shape, classes.shape, blade.x0, blade.y0)
        inside = blade.inside[blade_window]
        classes[window][inside] = HEALTHY
        classes[window][inside & diseased[blade_window]] = LESION
        numbers[window][inside] = number
    if rng.uniform() < level.shadow:
        _shadow_over(rng, light)
    # The exposure is limited, so that a leaf on dark ground does not turn white.
    bright = max(float(np.quantile(light[::4, ::4, :3].max(axis=2), 0.97)) * 1.05, 0.5)
    photo = snapshot(rng, light, rng.uniform(1.0, 1.25) / bright, level.electrons)
    rows = [_counted(classes, numbers, number) for number in range(1, leaves + 1)]
    return Scene(
        images={"rgb": photo},
        truth={"leaves": rows, "ground": ground},
        masks={"classes": classes, "leaves": numbers},
    )


def _placed(rng: Rng, crop: str, number: int, leaves: int, curl: float) -> Blade:
    kind = BLADES[crop]
    widest = 2 * kind.slim[1] * (1 + kind.lobes + kind.wave)
    if leaves == 1:
        length = min(ROWS_PX * 0.88 / max(widest, 0.62), COLUMNS_PX * 0.80) * rng.uniform(0.88, 1.0)
        angle = float(rng.choice([0.0, np.pi])) + rng.normal(0, 0.18)
        centre = (COLUMNS_PX / 2 + rng.normal(0, 10), ROWS_PX / 2 + rng.normal(0, 6))
    else:
        room = COLUMNS_PX / leaves
        length = min(ROWS_PX * 0.84, 0.86 * room / widest) * rng.uniform(0.85, 1.0)
        angle = -np.pi / 2 + rng.normal(0, 0.07)
        centre = (room * (number - 0.5) + rng.normal(0, 3), ROWS_PX / 2 + rng.normal(0, 10))
    return lay_out(rng, kind, centre, length, angle, curl * rng.normal(0, 1.0))


def _infect(
    rng: Rng,
    level: Level,
    blade: Blade,
    surface: Plane,
    kinds: list[str],
    severity_pct: float | None,
) -> Mask:
    diseased = np.zeros(blade.cover.shape, np.bool_)
    low, high = np.log(level.severity_pct[0]), np.log(level.severity_pct[1])
    healthy, intensity = rng.uniform() < level.healthy, float(np.exp(rng.uniform(low, high)))
    if healthy and severity_pct is None:
        return diseased
    share = intensity if severity_pct is None else severity_pct
    goal = share / 100.0 * float(np.count_nonzero(blade.inside))
    for kind in kinds:
        diseased |= KINDS[kind](
            rng, blade, surface, int(goal / len(kinds)), float(rng.uniform(*level.strength))
        )
    return diseased


def _lay(rng: Rng, light: Plane, blade: Blade, surface: Plane, sun: Sun, level: Level) -> None:
    """Paint the leaf's shadow on the ground, then the leaf, lit according to its relief."""
    blade_window, window = overlap(blade.cover.shape, light.shape, blade.x0, blade.y0)
    raised = 4.0 + 7.0 * level.curl * rng.uniform(0.2, 1.0)
    shape = np.maximum(blade.cover, blade.stalk)
    whole = np.zeros(SIZE, np.float32)
    whole[window] = shape[blade_window]
    cast = blurred(
        moved(whole, sun.dx * sun.length * raised, sun.dy * sun.length * raised), 1.0 + 0.5 * raised
    )
    contact = blurred(whole, 5.0)
    light *= (1.0 - sun.darkness * 0.9 * cast)[..., None] * (1.0 - 0.25 * contact)[..., None]
    smooth = blurred(blade.height, 1.2)
    gx, gy = (
        cv2.Sobel(smooth, cv2.CV_32F, 1, 0, ksize=3) / 8.0,
        cv2.Sobel(smooth, cv2.CV_32F, 0, 1, ksize=3) / 8.0,
    )
    rise = 1.0 / max(sun.length, 0.3)
    norm = np.sqrt(1.0 + gx * gx + gy * gy)
    lambert = np.clip(
        (rise + gx * sun.dx + gy * sun.dy) / (norm * np.sqrt(1.0 + rise * rise)), 0.0, 1.0
    )
    lambert *= np.sqrt(1.0 + rise * rise) / rise
    shine = (1.0 - sun.darkness) + sun.darkness * lambert
    lit = shine[..., None] * surface
    # The cuticle reflects the sky where the blade tilts half way towards the sun.
    tilt = ((gx + 0.22 * sun.dx) ** 2 + (gy + 0.22 * sun.dy) ** 2) / 0.02
    gloss = blade.kind.gloss * level.gloss * 0.16 * np.exp(-np.clip(tilt, 0.0, 30.0))
    lit += gloss[..., None] * np.array([0.95, 1.0, 1.08, 0.6], np.float32)
    stalk = shine[..., None] * spectrum(0.11, 0.15, 0.055, 0.46)
    part = light[window]
    part += blade.stalk[blade_window][..., None] * (stalk[blade_window] - part)
    part += blade.cover[blade_window][..., None] * (lit[blade_window] - part)


def _ground(rng: Rng, kind: str, sun: Sun) -> Plane:
    if kind == "soil":
        soil = paint_soil(rng, SIZE, SOILS[int(rng.integers(len(SOILS)))], sun, rng.uniform(0, 0.6))
        return np.ascontiguousarray(soil[..., [2, 1, 0, 4]])
    if kind == "cloth":
        return _cloth(rng)
    tone = spectrum(0.72, 0.71, 0.70, 0.7) * np.float32(rng.uniform(0.75, 1.1))
    tone = tone * rng.normal(1.0, 0.03, 4).astype(np.float32)
    even = 1.0 + 0.05 * smooth_field(rng, SIZE, 400) + 0.008 * fractal_field(rng, SIZE, 6, 3)
    return np.asarray(even[..., None] * tone, np.float32)


def _cloth(rng: Rng) -> Plane:
    """Return woven cloth, dark or coloured, with a few folds."""
    tone = one_of(rng, TONES["cloths"])
    y, x = np.mgrid[0:ROWS_PX, 0:COLUMNS_PX].astype(np.float32)
    pitch, turn = rng.uniform(2.6, 4.2), rng.uniform(-0.3, 0.3)
    axes = Axes.single(turn)
    frequency = np.float32(2 * np.pi / pitch)
    weave: Floats = np.sin(axes.along(x, y) * frequency) * np.sin(axes.across(x, y) * frequency)
    folds = fractal_field(rng, SIZE, 240, 2)
    light = 1.0 + 0.10 * weave + 0.13 * folds + 0.05 * fractal_field(rng, SIZE, 4, 2, 0.8)
    return np.asarray(np.clip(light, 0.2, 2.0)[..., None] * tone, np.float32)


def _shadow_over(rng: Rng, light: Plane) -> None:
    """Darken one side of an edge, like the shadow of a hand or of the photographer."""
    y, x = np.mgrid[0:ROWS_PX, 0:COLUMNS_PX].astype(np.float32)
    turn = rng.uniform(0, 2 * np.pi)
    x_edge = rng.uniform(0.25, 0.75) * COLUMNS_PX
    y_edge = rng.uniform(0.3, 0.7) * ROWS_PX
    side = Axes.double(turn).along(x - x_edge, y - y_edge)
    side += 14.0 * smooth_field(rng, SIZE, 90)
    soft = blurred((side > 0).astype(np.float32), 6.0)
    light *= (1.0 - rng.uniform(0.3, 0.55) * soft)[..., None]


def _counted(classes: NDArray[np.uint8], numbers: NDArray[np.uint8], number: int) -> dict[str, Any]:
    of_leaf = numbers == number
    leaf, lesion = int(np.count_nonzero(of_leaf)), of_leaf & (classes == LESION)
    ys, xs = np.nonzero(of_leaf)
    _, _, stats, _ = cv2.connectedComponentsWithStats(lesion.astype(np.uint8), connectivity=8)
    return {
        "leaf_area_px": leaf,
        "lesion_area_px": int(np.count_nonzero(lesion)),
        "severity_pct": round(100.0 * int(np.count_nonzero(lesion)) / leaf, 4),
        "n_lesions": int(np.count_nonzero(stats[1:, cv2.CC_STAT_AREA] >= LEAST_LESION_PX)),
        "box": [int(xs.min()), int(ys.min()), int(xs.max()) + 1, int(ys.max()) + 1],
    }
