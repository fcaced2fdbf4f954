"""Painting of drawn plants with a brush, the light and noise of a camera, and outlines drawn on photos.

All pictures are float32 (rows, columns, 3), 0 to 255, until :func:`photographed` turns them into uint8.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.scene import Difficulty, smooth_field

Picture = NDArray[np.float32]
MARK: tuple[float, float, float] = (235.0, 20.0, 20.0)
STROKE_PX = 4


@dataclass(frozen=True)
class Nuisance:
    """Nuisances of a difficulty level: uneven and dim light, blur (px), noise (grey levels)."""

    light: float
    dark: float
    blur: float
    noise: float


NUISANCES: tuple[Nuisance, ...] = (
    Nuisance(0.06, 0.02, 0.4, 2.0),
    Nuisance(0.14, 0.08, 0.7, 4.0),
    Nuisance(0.20, 0.14, 1.1, 6.0),
    Nuisance(0.28, 0.20, 1.5, 9.0),
)


def lay(picture: Picture, mask: NDArray[np.uint8], colour: tuple[float, float, float]) -> None:
    """Blend a colour in where ``mask`` says so, 0 to 255: OpenCV smooths edges in 8-bit pictures only."""
    picture += (mask.astype(np.float32) / 255.0)[..., None] * (np.asarray(colour, np.float32) - picture)


def photographed(rng: np.random.Generator, picture: Picture, difficulty: Difficulty) -> NDArray[np.uint8]:
    """Uneven and dim light, blur, noise: uint8 (rows, columns, 3)."""
    nuisances = NUISANCES[difficulty]
    rows, columns = picture.shape[:2]
    light = 1.0 + nuisances.light * np.clip(smooth_field(rng, rows, columns, 700), -1.3, 1.3)
    light *= 1.0 - nuisances.dark * rng.uniform(0.0, 1.0)
    warmth = rng.normal(0, 0.02 + 0.02 * difficulty)
    tint = np.array([1.0 + warmth, 1.0, 1.0 - warmth], np.float32)
    seen = cv2.GaussianBlur(
        picture * light[..., None].astype(np.float32) * tint, (0, 0), nuisances.blur * rng.uniform(0.7, 1.1)
    )
    grain = rng.standard_normal((rows, columns, 3), dtype=np.float32) * np.float32(nuisances.noise)
    return np.clip(seen + grain + 0.5, 0, 255).astype(np.uint8)


def outlined(
    rgb: NDArray[np.uint8], box: Sequence[int], shape: Literal["box", "ellipse"] = "box"
) -> tuple[NDArray[np.uint8], list[int]]:
    """A photo with a red outline drawn on it along ``box`` [x0, y0, x1, y1]; and the bounds inside the stroke."""
    rows, columns = rgb.shape[:2]
    x0, y0, x1, y1 = max(4, box[0]), max(4, box[1]), min(columns - 5, box[2]), min(rows - 5, box[3])
    stroke = np.zeros((rows, columns), np.uint8)
    if shape == "box":
        cv2.rectangle(stroke, (x0, y0), (x1, y1), 255, STROKE_PX)
    else:
        centre, axes = ((x0 + x1) * 8, (y0 + y1) * 8), ((x1 - x0) * 8, (y1 - y0) * 8)
        cv2.ellipse(stroke, centre, axes, 0, 0, 360, 255, STROKE_PX, cv2.LINE_AA, 4)
    picture = rgb.astype(np.float32)
    lay(picture, stroke, MARK)
    return (picture + 0.5).astype(np.uint8), [x0 + 3, y0 + 3, x1 - 2, y1 - 2]


Points = NDArray[np.float64]
Colour = tuple[float, float, float]
"""Red, green and blue, 0 to 255."""
_SUBPIXEL_BITS = 4
_SUBPIXELS = 1 << _SUBPIXEL_BITS


@dataclass(frozen=True, eq=False)
class Brush:
    """``canvas`` float32 (rows, columns, 3), 0 to 255, is painted on; ``cover`` float32 (rows, columns) collects how
    much of each pixel the body covers. ``scale``: pixels per unit; ``turn``: direction of the head, radians; ``light``:
    direction that light comes from, radians in the picture; ``flat``: 1 leaves the parts without shading."""

    canvas: NDArray[np.float32]
    cover: NDArray[np.float32]
    x: float
    y: float
    scale: float
    turn: float
    light: float = -2.2
    flat: float = 0.0
    mirrored: bool = False

    def place(self, points: Points) -> Points:
        """Body coordinates (n, 2) as pixels of the picture."""
        c, s = math.cos(self.turn), math.sin(self.turn)
        x, y = points[:, 0], points[:, 1] * (1.0 if self.mirrored else -1.0)
        return np.stack([self.x + self.scale * (x * c - y * s), self.y + self.scale * (x * s + y * c)], axis=1)

    def part(self, points: Points, colour: Colour, shade: float = 0.30, edge: float = 0.45, alpha: float = 1.0) -> None:
        """A closed part, lit as something round; ``edge``: how much darker its rim is; ``alpha``: 1 opaque."""
        placed = self.place(points)
        outline = np.round(placed * _SUBPIXELS).astype(np.int32)
        box = self._box(placed)
        if box is None:
            return
        x0, y0, x1, y1 = box
        mask = np.zeros((y1 - y0, x1 - x0), np.uint8)
        shifted = outline - (x0 * _SUBPIXELS, y0 * _SUBPIXELS)
        cv2.fillPoly(mask, [shifted], 255, cv2.LINE_AA, _SUBPIXEL_BITS)
        share = mask.astype(np.float32) * np.float32(alpha / 255.0)
        tone = self._tone(placed, box, shade * (1.0 - self.flat))
        if edge:
            inner = cv2.erode(mask, np.ones((3, 3), np.uint8)).astype(np.float32) / 255.0
            tone = tone * (1.0 - edge * np.clip(mask.astype(np.float32) / 255.0 - inner, 0.0, 1.0))
        view = self.canvas[y0:y1, x0:x1]
        view += share[..., None] * (tone[..., None] * np.asarray(colour, np.float32) - view)
        seen = self.cover[y0:y1, x0:x1]
        np.maximum(seen, share, out=seen)

    def line(
        self, points: Sequence[tuple[float, float]] | Points, width: float, colour: Colour, taper: float = 0.6
    ) -> None:
        """A leg, an antenna or a stripe through these points; ``width`` in units, at the end ``taper`` times that.
        Never thinner than about a pixel."""
        bones = _smooth(np.array(points, np.float64))
        along = np.gradient(bones, axis=0)
        along /= np.maximum(np.hypot(along[:, 0], along[:, 1]), 1e-9)[:, None]
        across = np.stack([-along[:, 1], along[:, 0]], axis=1)
        half = max(width, 0.7 / self.scale) / 2 * np.linspace(1.0, taper, len(bones))[:, None]
        self.part(np.concatenate([bones + across * half, (bones - across * half)[::-1]]), colour, 0.0, 0.0)

    def _box(self, placed: Points) -> tuple[int, int, int, int] | None:
        rows, columns = self.canvas.shape[:2]
        (left, top), (right, bottom) = placed.min(axis=0), placed.max(axis=0)
        x0, y0 = max(0, int(left) - 2), max(0, int(top) - 2)
        x1, y1 = min(columns, int(right) + 3), min(rows, int(bottom) + 3)
        return (x0, y0, x1, y1) if x1 > x0 and y1 > y0 else None

    def _tone(self, placed: Points, box: tuple[int, int, int, int], shade: float) -> NDArray[np.float32]:
        """Brighter towards the light, darkest opposite, with a soft spot of gloss between middle and rim."""
        x0, y0, x1, y1 = box
        if not shade:
            return np.ones((y1 - y0, x1 - x0), np.float32)
        middle, half = placed.mean(axis=0), np.maximum(np.ptp(placed, axis=0) / 2, 1.0)
        u = (np.arange(x0, x1, dtype=np.float32) - np.float32(middle[0])) / np.float32(half[0])
        v = (np.arange(y0, y1, dtype=np.float32) - np.float32(middle[1])) / np.float32(half[1])
        towards = u[None, :] * np.float32(math.cos(self.light)) + v[:, None] * np.float32(math.sin(self.light))
        gloss = np.exp(-6.0 * ((towards - 0.45) ** 2 + 0.3 * (u[None, :] ** 2 + v[:, None] ** 2)))
        return (1.0 + np.float32(shade) * (0.8 * towards + 0.9 * gloss - 0.15)).astype(np.float32)


def one_side(points: Sequence[tuple[float, float]]) -> Points:
    """A closed smooth outline through corners, as of a wing."""
    closed = np.array([*points, points[0]], np.float64)
    return _smooth(closed)


def _smooth(points: Points) -> Points:
    """Two rounds of corner cutting (Chaikin 1974); the ends stay."""
    for _ in range(2):
        first, second = points[:-1], points[1:]
        cut = np.stack([0.75 * first + 0.25 * second, 0.25 * first + 0.75 * second], axis=1).reshape(-1, 2)
        points = np.concatenate([points[:1], cut, points[-1:]])
    return points
