"""Drawn side views of a potted weed, with a disc and a ruler of known size: its height in centimetres is known.

A stem of nodes with leaves stretches and gains nodes along a logistic curve. The camera is tilted up or down by up to 5
degrees, so that measurements in the picture differ slightly from the truth.
"""

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.vision.reading import bounds
from agrotools_build.scenes.marks import Box, outlined
from agrotools_build.scenes.scene import (
    TABLES,
    Difficulty,
    Kind,
    Mask,
    Plane,
    Rng,
    Scene,
    fractal_field,
    levels,
    one_thread,
    smooth_field,
)

Points = NDArray[np.float64]
Picture = NDArray[np.float32]
"""Rows, columns, 3; 0 to 255."""
Colour = tuple[float, float, float]
"""Red, green and blue, 0 to 255."""

ROWS_PX, COLUMNS_PX = SIZE = 512, 640
MOST_TILT_DEG = 5.0
_FOOT_PX = 400
_DISTANCE = 3.2
"""Distance of the camera, in heights of the picture."""
_DISC_CM = (10.0, 16.0)
"""Range of the disc. It is drawn apart from the plant, so that the note on it tells nothing about the plant."""
_BESIDE_DISC_PX = (278.0, 189.0)
"""Room for the disc and half of the plant, with one plant and with two in the picture."""
_TILT = (0.5, 2.0, 3.5, MOST_TILT_DEG)
_POTS: tuple[Colour, ...] = ((150, 84, 58), (52, 50, 52), (176, 168, 158))
_LIGHT = -1.9
"""Direction of the light source, radians in the picture."""


@dataclass(frozen=True)
class Growth:
    """Growth curve of a plant: limit of its height, rate per week, and the week in which it has half that height."""

    final_cm: float
    rate: float
    middle: float

    def height_cm(self, week: float) -> float:
        return self.final_cm / (1.0 + math.exp(-self.rate * (week - self.middle)))


FORMS: dict[str, Kind] = {name: Kind(**form) for name, form in TABLES["forms"].items()}
"""Forms by the common name of the weed."""


@dataclass(frozen=True, eq=False)
class _Brush:
    """Painter of a plant in centimetres from its foot, which is at pixel ``x``, ``y`` of ``picture``.

    ``cover`` (rows, columns) accumulates the covered share of each pixel; ``scale`` is in pixels per centimetre.
    """

    picture: Picture
    cover: Plane
    x: float
    y: float
    scale: float

    def part(self, points: Points, colour: Colour, shade: float, edge: float) -> None:
        """Paint a closed part (n, 2), shaded like a round body; ``edge``: darkening of its rim."""
        placed = np.stack(
            [self.x + self.scale * points[:, 0], self.y - self.scale * points[:, 1]], axis=1
        )
        rows, columns = self.cover.shape
        (left, top), (right, bottom) = placed.min(axis=0), placed.max(axis=0)
        x0, y0 = max(0, int(left) - 2), max(0, int(top) - 2)
        x1, y1 = min(columns, int(right) + 3), min(rows, int(bottom) + 3)
        if x1 <= x0 or y1 <= y0:
            return
        mask = np.zeros((y1 - y0, x1 - x0), np.uint8)
        outline = np.round(placed * 16).astype(np.int32) - (x0 * 16, y0 * 16)
        cv2.fillPoly(mask, [outline], 255, cv2.LINE_AA, 4)
        share = mask.astype(np.float32) * np.float32(1 / 255.0)
        tone = _tone(placed, (x0, y0, x1, y1), shade)
        if edge:
            inner = cv2.erode(mask, np.ones((3, 3), np.uint8)).astype(np.float32) / 255.0
            tone = tone * (1.0 - edge * np.clip(mask.astype(np.float32) / 255.0 - inner, 0.0, 1.0))
        view = self.picture[y0:y1, x0:x1]
        view += share[..., None] * (tone[..., None] * np.asarray(colour, np.float32) - view)
        seen = self.cover[y0:y1, x0:x1]
        np.maximum(seen, share, out=seen)

    def line(
        self,
        points: Sequence[tuple[float, float]],
        width: float,
        colour: Colour,
        taper: float = 0.6,
    ) -> None:
        """Paint a stem through these points; its end is ``taper`` times as wide, and at least about a pixel."""
        bones = _smooth(np.array(points, np.float64))
        half = max(width, 0.7 / self.scale) / 2 * np.linspace(1.0, taper, len(bones))[:, None]
        across = _normals(bones)
        self.part(
            np.concatenate([bones + across * half, (bones - across * half)[::-1]]), colour, 0.0, 0.0
        )


def draw_growth(rng: Rng) -> Growth:
    """Draw the growth curve of one plant."""
    return Growth(rng.uniform(22, 58), rng.uniform(0.45, 0.75), rng.uniform(4.5, 6.5))


@one_thread()
def make_pot(
    seed: int,
    difficulty: Difficulty,
    species: str,
    height_cm: float,
    marked: float | None = None,
    *,
    scaled: bool = True,
) -> Scene:
    """Draw one pot, or two with ``marked``: the plant of ``height_cm`` in a red box, next to one of ``marked`` cm.

    With ``scaled`` off there is a brick and a slat in place of disc and ruler; all else stays the same. ``truth``:
    ``height_cm``, ``width_cm``, ``area_cm2``, ``convex_hull_cm2`` and ``solidity`` of the plant before the camera tilt,
    ``disc_cm``, ``cm_px``; with ``marked`` also ``box`` inside the stroke [x0, y0, x1, y1]. ``masks``: ``plant`` as
    seen. KeyError: unknown species.
    """
    form = FORMS[species]
    rng = np.random.default_rng([seed, zlib.crc32(b"pot"), difficulty])
    tallest = max(height_cm, marked or 0.0)
    half = (0.6 if form.blades else 0.475) * tallest
    room = COLUMNS_PX * (0.34 if marked is not None else 0.55)
    disc_cm = round(float(rng.uniform(*_DISC_CM)), 1)
    beside = _BESIDE_DISC_PX[marked is not None] / (disc_cm + half)
    scale = min(0.60 * ROWS_PX / tallest, room / (2 * half), beside) * rng.uniform(0.82, 1.0)
    picture = _wall(rng, difficulty)
    xs = (
        [COLUMNS_PX * 0.5 + rng.uniform(-20, 20)]
        if marked is None
        else [COLUMNS_PX * 0.33, COLUMNS_PX * 0.67]
    )
    order = [int(k) for k in rng.permutation(len(xs))]
    covers = [np.zeros(SIZE, np.float32) for _ in xs]
    for cover, place, high in zip(covers, order, (height_cm, marked or 0.0), strict=False):
        brush = _Brush(picture, cover, float(xs[place]), float(_FOOT_PX), scale)
        _grow(rng, brush, form, high, difficulty)
        _pot(rng, picture, float(xs[place]), scale * tallest * 0.22 + 22)
    _markers(rng, picture, scale, disc_cm, shown=scaled)
    truth: dict[str, object] = {
        **_measured(covers[0] > 0.5, scale),
        "disc_cm": disc_cm,
        "cm_px": 1.0 / scale,
    }
    turn = _tilted(rng, difficulty)
    size = (COLUMNS_PX, ROWS_PX)
    seen = np.asarray(
        cv2.warpPerspective(picture, turn, size, borderMode=cv2.BORDER_REPLICATE), np.float32
    )
    mask = cv2.warpPerspective(covers[0], turn, (COLUMNS_PX, ROWS_PX)) > 0.5
    rgb = _photographed(rng, seen, difficulty)
    if marked is not None:
        x0, y0, x1, y1 = bounds(mask)
        rgb, truth["box"] = outlined(rgb, (x0 - 10, y0 - 10, x1 + 9, y1 + 11))
    return Scene({"rgb": rgb}, truth=truth, masks={"plant": mask})


def _wall(rng: Rng, difficulty: Difficulty) -> Picture:
    wall = np.array([rng.uniform(150, 205)] * 3, np.float32) * np.array(
        [1.0, 1.0, rng.uniform(0.94, 1.04)], np.float32
    )
    picture = np.empty((ROWS_PX, COLUMNS_PX, 3), np.float32)
    picture[:] = wall
    picture *= (1.0 + (0.012 + 0.012 * difficulty) * fractal_field(rng, SIZE, 120, 4))[..., None]
    bench = np.array([118, 98, 82], np.float32) * np.float32(rng.uniform(0.8, 1.15))
    picture[_FOOT_PX + 60 :] = bench
    picture[_FOOT_PX + 60 :] *= (
        1.0 + 0.06 * fractal_field(rng, (ROWS_PX - _FOOT_PX - 60, COLUMNS_PX), 40, 4)
    )[..., None]
    return picture


def _pot(rng: Rng, picture: Picture, x: float, half: float) -> None:
    tone = np.asarray(_POTS[int(rng.integers(len(_POTS)))], np.float64) * rng.uniform(0.9, 1.1)
    top, foot = _FOOT_PX, _FOOT_PX + 84
    for corners, shade in (
        (((x - half, top), (x + half, top), (x + 0.78 * half, foot), (x - 0.78 * half, foot)), 1.0),
        (
            (
                (x - 1.08 * half, top),
                (x + 1.08 * half, top),
                (x + 1.08 * half, top + 14),
                (x - 1.08 * half, top + 14),
            ),
            1.15,
        ),
    ):
        mask = np.zeros(picture.shape[:2], np.uint8)
        cv2.fillPoly(mask, [np.round(np.array(corners) * 16).astype(np.int32)], 255, cv2.LINE_AA, 4)
        _lay(
            picture, mask, (float(tone[0] * shade), float(tone[1] * shade), float(tone[2] * shade))
        )


def _grow(rng: Rng, brush: _Brush, form: Kind, height_cm: float, difficulty: Difficulty) -> None:
    """Paint the plant, in centimetres from its foot."""
    yellow = 0.10 * difficulty

    def green(young: float) -> Colour:
        old = float(np.clip(rng.normal(yellow * (1 - young), 0.08), 0.0, 0.6))
        bright = rng.normal(1.0, 0.06) * (0.88 + 0.2 * young)
        r, g, b = (part * bright for part in form.green)
        return r + old * (150 - r) * 0.6, g + old * 10, b

    if form.blades:
        _tuft(rng, brush, form, height_cm, green)
        return
    lean = rng.normal(0, 0.05) * height_cm
    spine = [(0.0, 0.0), (lean * 0.3, height_cm * 0.5), (lean, height_cm * 0.93)]
    stem = (form.green[0] * 1.05, form.green[1] * 0.95, form.green[2] * 0.9)
    brush.line(spine, max(0.10, 0.018 * height_cm + 0.08), stem, 0.5)
    nodes = int(np.clip(2 + height_cm / 4.5, 3, 9))
    side = 1 if rng.uniform() < 0.5 else -1
    for node in range(nodes):
        t = (node + 0.8) / nodes
        y, x = t * height_cm * 0.93, lean * t * t
        size = form.long * height_cm * (1.15 - 0.75 * t) * rng.uniform(0.85, 1.12)
        for k in range(form.leaves):
            side = -side
            rise = form.rise + 0.5 * t + rng.normal(0, 0.15)
            facing = (
                rng.uniform(0.62, 1.0) if form.leaves == 2 and k == 0 else rng.uniform(0.8, 1.0)
            )
            _leaf(brush, x, y, side, rise, size * facing, form, green(t))
    _leaf(brush, lean, height_cm * 0.90, 1, math.pi / 2 - 0.1, height_cm * 0.10, form, green(1.0))


def _leaf(
    brush: _Brush,
    x: float,
    y: float,
    side: int,
    rise: float,
    length: float,
    form: Kind,
    colour: Colour,
) -> None:
    """Paint a leaf on a short stalk, with its tip bent down but never below the foot of the plant."""
    droop = 0.28
    along = np.linspace(0.0, 1.0, 13)
    up = length * (math.sin(rise) * along - droop * along**2)
    out = side * length * math.cos(rise) * along
    up = np.maximum(up, 0.35 - y)
    half = (
        0.5
        * form.slim
        * length
        * np.sqrt(np.clip(np.sin(np.pi * np.clip((along - 0.12) / 0.88, 0, 1)), 0, 1))
    )
    if form.toothed:
        half = half * (1.0 + 0.22 * np.cos(np.arange(13) * np.pi))
    normal = np.array([-math.sin(rise) * side, math.cos(rise)])
    upper = [
        (x + o + n * normal[0], y + u + n * normal[1])
        for o, u, n in zip(out, up, half, strict=True)
    ]
    lower = [
        (x + o - n * normal[0], max(0.3, y + u - n * normal[1]))
        for o, u, n in zip(out, up, half, strict=True)
    ]
    brush.line([(x, y), (x + out[2], y + up[2])], max(0.07, 0.03 * length), colour)
    outline = [*upper[1:], *reversed(lower[1:]), upper[1]]
    brush.part(_smooth(np.array(outline, np.float64)), colour, 0.22, 0.35)


def _tuft(
    rng: Rng, brush: _Brush, form: Kind, height_cm: float, green: Callable[[float], Colour]
) -> None:
    """Paint blades that rise from the foot, the inner ones steeper; the longest reaches the plant's height."""
    count = int(np.clip(4 + height_cm / 5, 5, 12))
    for k in range(count):
        young = k / count
        side = 1 if k % 2 else -1
        rise = form.rise + 0.55 * young + rng.normal(0, 0.08)
        length = height_cm * (1.02 if k == count - 1 else rng.uniform(0.7, 1.0) * form.long * 1.2)
        rise = math.pi / 2 - 0.12 * side if k == count - 1 else min(rise, 1.5)
        along = np.linspace(0.0, 1.0, 15)
        bend = 0.03 if k == count - 1 else rng.uniform(0.25, 0.5)
        x = side * length * math.cos(rise) * along + side * 0.25 * bend * length * along**2
        y = np.maximum(length * (math.sin(rise) * along - bend * along**2.5), 0.0)
        half = 0.5 * form.slim * height_cm * np.sqrt(np.clip(1.0 - along**1.5, 0, 1)) + 0.03
        bone = np.stack([x, y], 1)
        normal = _normals(bone)
        edge = np.concatenate(
            [bone + normal * half[:, None], (bone - normal * half[:, None])[::-1]]
        )
        edge[:, 1] = np.maximum(edge[:, 1], 0.0)
        brush.part(edge, green(young), 0.2, 0.35)


_BRICK = 1.7
"""Width of a brick by its height, far from that of a disc."""


def _markers(rng: Rng, picture: Picture, scale: float, disc_cm: float, *, shown: bool) -> None:
    """Paint a ruler on one side, with a line for each centimetre, and a disc on a stick on the other.

    If they are not ``shown``, a plain slat and a dark brick of the same colours and areas stand there, so that the
    colours of the picture do not tell that nothing gives the scale.
    """
    on_left = rng.uniform() < 0.5
    x = COLUMNS_PX - 26 if on_left else 10
    length = int(min(_FOOT_PX - 30, 30 * scale))
    picture[_FOOT_PX - length : _FOOT_PX, x : x + 16] = (226, 206, 128)
    lines = int(length / scale) + 1 if shown else 0
    for k in range(lines):
        y = int(_FOOT_PX - k * scale)
        picture[y - 1 : y + 1, x : x + (16 if k % 5 == 0 else 8)] = (40, 36, 30)
    radius = disc_cm * scale / 2
    centre_x = radius + 14 if on_left else COLUMNS_PX - radius - 14
    centre = (int(centre_x * 16), int((_FOOT_PX - radius - 8) * 16))
    mask = np.zeros(picture.shape[:2], np.uint8)
    if shown:
        cv2.ellipse(mask, centre, (round(radius * 16),) * 2, 0, 0, 360, 255, -1, cv2.LINE_AA, 4)
    else:
        high = radius * math.sqrt(math.pi / _BRICK)
        left, top = round(centre_x - _BRICK * high / 2), round(_FOOT_PX - 8 - high)
        right, bottom = round(centre_x + _BRICK * high / 2), _FOOT_PX - 8
        cv2.rectangle(mask, (max(0, left), top), (min(COLUMNS_PX - 1, right), bottom), 255, -1)
    _lay(picture, mask, (28.0, 28.0, 34.0))


def _tilted(rng: Rng, difficulty: Difficulty) -> NDArray[np.float64]:
    """Return the homography, (3, 3), of the plant's plane for a camera tilted up or down by a few degrees."""
    angle = math.radians(rng.uniform(0.3, 1.0) * _TILT[difficulty]) * (
        1 if rng.uniform() < 0.5 else -1
    )
    focal = _DISTANCE * ROWS_PX
    c, s = math.cos(angle), math.sin(angle)
    to_middle = np.array([[1, 0, -COLUMNS_PX / 2], [0, 1, -ROWS_PX / 2], [0, 0, 1]], np.float64)
    plane = np.array([[focal, 0, 0], [0, focal * c, 0], [0, s, focal]], np.float64)
    back = np.array([[1, 0, COLUMNS_PX / 2], [0, 1, ROWS_PX / 2], [0, 0, 1]], np.float64)
    return back @ plane @ to_middle


def _measured(mask: Mask, scale: float) -> dict[str, object]:
    left, top, right, bottom = bounds(mask)
    points = np.argwhere(mask)[:, ::-1].astype(np.float32)
    corners = np.concatenate(
        [points + offset for offset in ((0, 0), (1, 0), (0, 1), (1, 1))]
    ).astype(np.float32)
    hull = float(cv2.contourArea(cv2.convexHull(corners)))
    area = int(mask.sum())
    return {
        "height_cm": round((min(bottom, _FOOT_PX) - top) / scale, 3),
        "width_cm": round((right - left) / scale, 3),
        "area_cm2": round(area / scale**2, 3),
        "convex_hull_cm2": round(hull / scale**2, 3),
        "solidity": round(area / hull, 4),
    }


def _lay(picture: Picture, mask: NDArray[np.uint8], colour: Colour) -> None:
    """Blend in a colour by ``mask``, 0 to 255; masks are 8-bit because OpenCV smooths edges in 8-bit pictures only."""
    picture += (mask.astype(np.float32) / 255.0)[..., None] * (
        np.asarray(colour, np.float32) - picture
    )


def _photographed(rng: Rng, picture: Picture, difficulty: Difficulty) -> NDArray[np.uint8]:
    """Return the picture under uneven and dim light, with blur and noise."""
    nuisance = levels("pot_plants")[difficulty]
    rows, columns = picture.shape[:2]
    light = 1.0 + nuisance.light * np.clip(smooth_field(rng, (rows, columns), 700), -1.3, 1.3)
    light *= 1.0 - nuisance.dark * rng.uniform(0.0, 1.0)
    warmth = rng.normal(0, 0.02 + 0.02 * difficulty)
    lit = (
        picture
        * light[..., None].astype(np.float32)
        * np.array([1.0 + warmth, 1.0, 1.0 - warmth], np.float32)
    )
    seen = cv2.GaussianBlur(lit, (0, 0), nuisance.blur * rng.uniform(0.7, 1.1))
    grain = rng.standard_normal((rows, columns, 3), dtype=np.float32) * np.float32(nuisance.noise)
    return np.clip(seen + grain + 0.5, 0, 255).astype(np.uint8)


def _tone(placed: Points, box: Box, shade: float) -> Plane:
    """Return brightness: higher towards the light, lowest on the opposite side, with a soft highlight in between."""
    x0, y0, x1, y1 = box
    if not shade:
        return np.ones((y1 - y0, x1 - x0), np.float32)
    middle, half = placed.mean(axis=0), np.maximum(np.ptp(placed, axis=0) / 2, 1.0)
    u = (np.arange(x0, x1, dtype=np.float32) - np.float32(middle[0])) / np.float32(half[0])
    v = (np.arange(y0, y1, dtype=np.float32) - np.float32(middle[1])) / np.float32(half[1])
    towards = u[None, :] * np.float32(math.cos(_LIGHT)) + v[:, None] * np.float32(math.sin(_LIGHT))
    gloss = np.exp(-6.0 * ((towards - 0.45) ** 2 + 0.3 * (u[None, :] ** 2 + v[:, None] ** 2)))
    return (1.0 + np.float32(shade) * (0.8 * towards + 0.9 * gloss - 0.15)).astype(np.float32)


def _normals(line: Points) -> Points:
    """Return unit vectors perpendicular to a line of points (n, 2)."""
    along = np.gradient(line, axis=0)
    along /= np.maximum(np.hypot(along[:, 0], along[:, 1]), 1e-9)[:, None]
    return np.stack([-along[:, 1], along[:, 0]], axis=1)


def _smooth(points: Points) -> Points:
    """Apply two rounds of corner cutting (Chaikin 1974); the end points stay."""
    for _ in range(2):
        first, second = points[:-1], points[1:]
        cut = np.stack(
            [0.75 * first + 0.25 * second, 0.25 * first + 0.75 * second], axis=1
        ).reshape(-1, 2)
        points = np.concatenate([points[:1], cut, points[-1:]])
    return points
