"""What schematic insects and plants lie on: a leaf, a sticky card, cloth, soil; and what a camera makes of it.

All pictures are float32 (rows, columns, 3), 0 to 255, until :func:`photographed` turns them into uint8.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.scenes.noise import fractal_field, smooth_field
from agrotools.build.scenes.scene import Difficulty

Picture = NDArray[np.float32]
MARK: tuple[float, float, float] = (235.0, 20.0, 20.0)
STROKE_PX = 4
Ground = Literal["leaf", "card", "cloth", "soil"]
GROUNDS: tuple[Ground, ...] = ("leaf", "card", "cloth", "soil")
_CARDS = ((236, 204, 52), (240, 214, 70), (70, 140, 206))
_LEAVES = ((92, 142, 54), (70, 122, 52), (122, 158, 66))
_CLOTHS = ((228, 226, 218), (206, 214, 222), (214, 204, 186))
_SOILS = ((122, 92, 66), (96, 76, 60), (142, 116, 90))


@dataclass(frozen=True)
class Nuisance:
    """What makes a drawing harder: uneven and dim light, blur (px), noise (grey levels), JPEG quality, dirt specks."""

    light: float
    dark: float
    blur: float
    noise: float
    jpeg: int
    specks: int


NUISANCES: tuple[Nuisance, ...] = (
    Nuisance(0.06, 0.02, 0.4, 2.0, 95, 0),
    Nuisance(0.14, 0.08, 0.7, 4.0, 90, 8),
    Nuisance(0.20, 0.14, 1.1, 6.0, 80, 20),
    Nuisance(0.28, 0.20, 1.5, 9.0, 68, 40),
)


def paint_ground(rng: np.random.Generator, rows: int, columns: int, ground: Ground, rules: bool = True) -> Picture:
    """A ground; ``rules``: whether a card has its printed lines."""
    tone = {"leaf": _LEAVES, "card": _CARDS, "cloth": _CLOTHS, "soil": _SOILS}[ground]
    base = np.asarray(tone[int(rng.integers(len(tone)))], np.float32) * np.float32(rng.normal(1.0, 0.05))
    picture = np.empty((rows, columns, 3), np.float32)
    picture[:] = base
    if ground == "leaf":
        return _leaf(rng, picture)
    if ground == "card":
        grain = 1.0 + 0.012 * fractal_field(rng, rows, columns, 90, 3)
        if rules:
            step, first = int(rng.integers(44, 70)), rng.integers(0, 40, 2)
            picture[:, int(first[0]) :: step] *= np.float32(0.72)
            picture[int(first[1]) :: step] *= np.float32(0.72)
        return (picture * grain[..., None]).astype(np.float32)
    if ground == "cloth":
        y, x = np.mgrid[0:rows, 0:columns].astype(np.float32)
        weave = 0.014 * (np.sin(x * 2.1) + np.sin(y * 2.1))
        return (picture * (1.0 + weave + 0.03 * smooth_field(rng, rows, columns, 120))[..., None]).astype(np.float32)
    rough = fractal_field(rng, rows, columns, 60, 5, 0.85)
    return (picture * (1.0 + 0.16 * rough)[..., None]).astype(np.float32)


def _leaf(rng: np.random.Generator, picture: Picture) -> Picture:
    """A part of a leaf so near that it fills the view: a midrib, side veins, mottled green between."""
    rows, columns = picture.shape[:2]
    y, x = np.mgrid[0:rows, 0:columns].astype(np.float32)
    turn = rng.uniform(-0.6, 0.6)
    across = (y - rows * rng.uniform(0.3, 0.7)) * np.cos(turn) - (x - columns / 2) * np.sin(turn)
    along = (x - columns / 2) * np.cos(turn) + (y - rows / 2) * np.sin(turn)
    spacing = rng.uniform(46, 78)
    slant = rng.uniform(0.7, 1.2)
    wave = (along - slant * np.abs(across) + 6.0 * smooth_field(rng, rows, columns, 120)) / spacing
    veins = np.exp(-(((wave - np.round(wave)) * spacing / 2.2) ** 2))
    rib = np.exp(-((across / rng.uniform(4.0, 7.0)) ** 2))
    between = 0.05 * np.cos(2 * np.pi * wave) + 0.05 * fractal_field(rng, rows, columns, 30, 4, 0.8)
    tone = 1.0 + between - 0.10 * veins
    picture = picture * tone[..., None]
    pale = np.asarray((176, 200, 120), np.float32)
    return (picture + (0.55 * rib + 0.14 * veins)[..., None] * (pale - picture)).astype(np.float32)


def lay(picture: Picture, mask: NDArray[np.uint8], colour: tuple[float, float, float]) -> None:
    """Blend a colour in where ``mask`` says so, 0 to 255: OpenCV smooths edges in 8-bit pictures only."""
    picture += (mask.astype(np.float32) / 255.0)[..., None] * (np.asarray(colour, np.float32) - picture)


def add_specks(rng: np.random.Generator, picture: Picture, count: int, largest: float = 5.0) -> None:
    """Dirt: crumbs and short hairs of any direction, much smaller than an insect."""
    rows, columns = picture.shape[:2]
    mask = np.zeros((rows, columns), np.uint8)
    for _ in range(count):
        x, y = rng.uniform(0, columns), rng.uniform(0, rows)
        strength = int(rng.uniform(120, 255))
        if rng.uniform() < 0.4:
            angle, length = rng.uniform(0, np.pi), rng.uniform(5, 16)
            end = (int(x + length * np.cos(angle)), int(y + length * np.sin(angle)))
            cv2.line(mask, (int(x), int(y)), end, strength, 1, cv2.LINE_AA)
        else:
            axes = (int(rng.uniform(0.8, largest / 2) * 16), int(rng.uniform(0.8, largest / 2) * 16))
            cv2.ellipse(mask, (int(x * 16), int(y * 16)), axes, 0, 0, 360, strength, -1, cv2.LINE_AA, 4)
    tone = float(rng.uniform(35, 80))
    lay(picture, mask, (tone * 1.1, tone, tone * 0.85))


def photographed(rng: np.random.Generator, picture: Picture, difficulty: Difficulty) -> NDArray[np.uint8]:
    """Uneven and dim light, blur, noise: uint8 (rows, columns, 3)."""
    own = NUISANCES[difficulty]
    rows, columns = picture.shape[:2]
    light = 1.0 + own.light * np.clip(smooth_field(rng, rows, columns, 700), -1.3, 1.3)
    light *= 1.0 - own.dark * rng.uniform(0.0, 1.0)
    warmth = rng.normal(0, 0.02 + 0.02 * difficulty)
    tint = np.array([1.0 + warmth, 1.0, 1.0 - warmth], np.float32)
    seen = cv2.GaussianBlur(
        picture * light[..., None].astype(np.float32) * tint, (0, 0), own.blur * rng.uniform(0.7, 1.1)
    )
    grain = rng.standard_normal((rows, columns, 3), dtype=np.float32) * np.float32(own.noise)
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
