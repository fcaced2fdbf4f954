"""The canvas of a scene: reflectance, class map and plant numbers, painted leaf by leaf with shadows."""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.spectra import Spectrum

_SUBPIXEL_BITS = 4
_SUBPIXELS = 1 << _SUBPIXEL_BITS
_SHADE_BY_BAND = np.array([0.78, 0.88, 0.95, 0.92, 0.80], dtype=np.float32)
"""How much of a shadow each band takes: sky light fills the blue, leaf transmission the near infrared."""


@dataclass(frozen=True)
class Sun:
    """Direction that shadows fall (unit vector, image coordinates), shadow length per height, and darkness 0..1."""

    dx: float
    dy: float
    length: float
    darkness: float


@dataclass(frozen=True)
class Leaf:
    """A flat leaf: base point, direction, length and half width in pixels, and how it is drawn.

    The midrib is a parabola that leaves the straight axis by ``bend * length`` at the tip. ``widths`` is the half
    width at equal steps from base to tip, relative to ``half_width``, left and right side apart.
    """

    x: float
    y: float
    angle: float
    length: float
    half_width: float
    widths: NDArray[np.float64]
    bend: float = 0.0
    height: float = 4.0
    veins: float = 6.0
    fold: float = 0.15
    gloss: float = 0.0
    brightness: float = 1.0

    @property
    def outline(self) -> NDArray[np.float64]:
        """The outline as points (n, 2)."""
        t = np.arange(self.widths.shape[1]) / (self.widths.shape[1] - 1)
        along, across = t * self.length, self.bend * self.length * t * t
        left = across + self.half_width * self.widths[0]
        right = across - self.half_width * self.widths[1]
        s = np.concatenate([along, along[::-1]])
        n = np.concatenate([left, right[::-1]])
        c, d = math.cos(self.angle), math.sin(self.angle)
        points = np.empty((s.size, 2))
        points[:, 0] = self.x + s * c - n * d
        points[:, 1] = self.y + s * d + n * c
        return points


class Canvas:
    """Reflectance (rows, columns, bands), class per pixel and plant number per pixel (0: none)."""

    def __init__(self, ground: NDArray[np.float32], sun: Sun, texture: NDArray[np.float32]) -> None:
        self.bands = ground
        self.sun = sun
        self.classes = np.zeros(ground.shape[:2], dtype=np.uint8)
        self.plants = np.zeros(ground.shape[:2], dtype=np.int32)
        self._texture = texture

    def paint(self, leaf: Leaf, reflectance: Spectrum, class_id: int, plant: int) -> None:
        """Cast the leaf's shadow on what lies below, then lay the leaf over it.

        A pixel belongs to the leaf where the leaf covers at least half of it.
        """
        outline = np.round(leaf.outline * _SUBPIXELS).astype(np.int32)
        shift_x = self.sun.dx * self.sun.length * leaf.height
        shift_y = self.sun.dy * self.sun.length * leaf.height
        box = self._box(outline, shift_x, shift_y)
        if box is None:
            return
        x0, y0, x1, y1 = box
        alpha = np.zeros((y1 - y0, x1 - x0), dtype=np.uint8)
        cv2.fillPoly(alpha, [outline - (x0 * _SUBPIXELS, y0 * _SUBPIXELS)], 255, cv2.LINE_AA, _SUBPIXEL_BITS)
        view = self.bands[y0:y1, x0:x1]
        self._shade(view, alpha, shift_x, shift_y, leaf.height)
        cover = (alpha.astype(np.float32) / 255.0)[..., None]
        if leaf.half_width < 1.5:
            colour = np.float32(leaf.brightness) * reflectance
        else:
            colour = self._leaf_shading(leaf, x0, y0, alpha.shape)[..., None] * reflectance
        view += cover * (colour - view)
        inside = alpha >= 128
        self.classes[y0:y1, x0:x1][inside] = class_id
        self.plants[y0:y1, x0:x1][inside] = plant

    def _box(self, outline: NDArray[np.int32], dx: float, dy: float) -> tuple[int, int, int, int] | None:
        """The pixels that leaf and shadow may touch; None where that is outside the picture."""
        left, top, width, height = (value / _SUBPIXELS for value in cv2.boundingRect(outline))
        rows, columns = self.bands.shape[:2]
        x0, y0 = max(0, int(left + min(0.0, dx)) - 3), max(0, int(top + min(0.0, dy)) - 3)
        x1, y1 = min(columns, int(left + width + max(0.0, dx)) + 4), min(rows, int(top + height + max(0.0, dy)) + 4)
        return (x0, y0, x1, y1) if x1 - x0 > 1 and y1 - y0 > 1 else None

    def _shade(self, view: NDArray[np.float32], alpha: NDArray[np.uint8], dx: float, dy: float, height: float) -> None:
        move = np.array([[1, 0, dx], [0, 1, dy]], dtype=np.float32)
        cast = cv2.warpAffine(alpha, move, (alpha.shape[1], alpha.shape[0]), flags=cv2.INTER_LINEAR)
        soft = cv2.GaussianBlur(cast, (0, 0), 0.6 + 0.08 * height).astype(np.float32) / 255.0
        view *= 1.0 - (self.sun.darkness * soft)[..., None] * _SHADE_BY_BAND

    def _leaf_shading(self, leaf: Leaf, x0: int, y0: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
        c, d = math.cos(leaf.angle), math.sin(leaf.angle)
        ys = (np.arange(shape[0], dtype=np.float32) + (y0 - leaf.y))[:, None]
        xs = (np.arange(shape[1], dtype=np.float32) + (x0 - leaf.x))[None, :]
        u = np.clip((xs * c + ys * d) / leaf.length, 0.0, 1.0)
        v = ((ys * c - xs * d) - leaf.bend * leaf.length * u * u) / max(leaf.half_width, 1.0)
        lit = math.copysign(leaf.fold, self.sun.dx * d - self.sun.dy * c)
        rib = np.exp(-((v / (0.10 + 0.6 / max(leaf.half_width, 2.0))) ** 2))
        shading = 0.86 + lit * np.tanh(3.0 * v) + 0.16 * u + 0.16 * rib * (1.0 - 0.6 * u)
        if leaf.veins:
            shading += 0.045 * np.cos(2 * np.pi * (leaf.veins * u - 0.9 * np.abs(v)))
        if leaf.gloss:
            shading += leaf.gloss * np.exp(-(((u - 0.45) / 0.22) ** 2))
        shading += 0.10 * self._texture[y0 : y0 + shape[0], x0 : x0 + shape[1]]
        return (leaf.brightness * np.clip(shading, 0.25, 1.8)).astype(np.float32)
