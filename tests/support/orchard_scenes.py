"""Fruit walls made in code: spheres of known size before a camera of known focal length, with leaves in the way.

Colour and depth are traced per pixel, so outlines and depths are exact before noise, holes and flying pixels are added.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

RED, BLUSH, GREEN_FRUIT, ORANGE_FRUIT = (170, 35, 45), (185, 90, 60), (140, 160, 70), (225, 135, 30)
LEAF, DARK, TWIG = (70, 105, 50), (35, 50, 30), (90, 75, 60)


@dataclass
class Scene:
    """``pixels`` uint8 (rows, columns, 3); ``depth_mm`` float64, 0 where not measured; fruits as they are."""

    pixels: NDArray[np.uint8]
    depth_mm: NDArray[np.float64]
    focal_px: float
    centres_mm: NDArray[np.float64]
    diameters_mm: NDArray[np.float64]
    visible: NDArray[np.float64]
    """share of each fruit's outline area that is not hidden, 0..1"""
    boxes: list[tuple[int, int, int, int]] = field(default_factory=list)
    """around the whole fruit, hidden parts included"""

    @property
    def centre_px(self) -> NDArray[np.float64]:
        height, width = self.depth_mm.shape
        return self.centres_mm[:, :2] / self.centres_mm[:, 2:] * self.focal_px + (
            width / 2,
            height / 2,
        )


def orchard(
    seed: int,
    *,
    size: tuple[int, int] = (640, 480),
    focal_px: float = 600.0,
    fruits: int = 8,
    colour: tuple[int, int, int] = RED,
    leaves: int = 14,
    noise_mm: float = 1.8,
    holes: float = 0.05,
    flying: bool = True,
    apart: float = 1.02,
    distance_mm: tuple[float, float] = (900, 1600),
    diameter_mm: tuple[float, float] = (55, 90),
) -> Scene:
    """A scene; ``noise_mm`` is the standard deviation of depth at one metre, growing with its square."""
    draw = np.random.default_rng(seed)
    width, height = size
    x, y = np.meshgrid(
        (np.arange(width) + 0.5 - width / 2) / focal_px,
        (np.arange(height) + 0.5 - height / 2) / focal_px,
    )
    centres, diameters = _placed(draw, size, focal_px, fruits, distance_mm, diameter_mm, apart)
    depth = np.full((height, width), distance_mm[1] + 350.0)
    texture = _texture(draw, (height, width))
    shade = np.array(DARK) * (0.6 + 0.9 * texture[..., None])
    owner = np.full((height, width), -1)
    full = np.zeros(len(diameters))
    ray = np.sqrt(x**2 + y**2 + 1)
    for number, (centre, diameter) in enumerate(zip(centres, diameters, strict=True)):
        along = (x * centre[0] + y * centre[1] + centre[2]) / ray
        root = along**2 - (centre @ centre - (diameter / 2) ** 2)
        hit = root > 0
        z = (along - np.sqrt(np.maximum(root, 0))) / ray
        full[number] = hit.sum()
        front = hit & (z < depth)
        lit = np.sqrt(np.maximum(root, 0)) / (diameter / 2)
        tint = np.array(colour) * (1 + draw.normal(0, 0.06, 3))
        shade[front] = tint * (0.45 + 0.6 * lit[front, None]) * (0.92 + 0.16 * texture[front, None])
        depth[front], owner[front] = z[front], number
    for _ in range(leaves):
        _leaf(draw, x * focal_px, y * focal_px, depth, shade, owner, texture, centres, focal_px)
    for _ in range(2):
        offset, slope, z = (
            draw.uniform(-width / 2, width / 2),
            draw.uniform(-0.5, 0.5),
            draw.uniform(*distance_mm),
        )
        twig = np.abs(x * focal_px - offset - slope * y * focal_px) < 5 * focal_px / z
        front = twig & (z < depth)
        shade[front], depth[front], owner[front] = np.array(TWIG) * 1.0, z, -1
    visible = np.array(
        [np.count_nonzero(owner == number) for number in range(len(diameters))]
    ) / np.maximum(full, 1)
    pixels = _photographed(draw, shade)
    measured = _measured(draw, depth, noise_mm, holes, flying, distance_mm[1] + 300)
    scene = Scene(pixels, measured, focal_px, centres, diameters, visible)
    for centre, diameter in zip(centres, diameters, strict=True):
        turn = np.linspace(0, 2 * np.pi, 90)
        reach = (
            np.sqrt(centre @ centre - (diameter / 2) ** 2) * (diameter / 2) / np.linalg.norm(centre)
        )
        back = centre * (1 - (diameter / 2) ** 2 / (centre @ centre))
        first = np.cross([0.0, 1.0, 0.0], centre)
        first /= np.linalg.norm(first)
        second = np.cross(centre, first) / np.linalg.norm(centre)
        rim = back + reach * (np.cos(turn)[:, None] * first + np.sin(turn)[:, None] * second)
        across, down = (
            rim[:, 0] / rim[:, 2] * focal_px + width / 2,
            rim[:, 1] / rim[:, 2] * focal_px + height / 2,
        )
        scene.boxes.append(
            (
                int(np.floor(across.min())),
                int(np.floor(down.min())),
                int(np.ceil(across.max())),
                int(np.ceil(down.max())),
            )
        )
    return scene


def _placed(draw, size, focal_px, fruits, distance_mm, diameter_mm, apart):
    centres: list[NDArray[np.float64]] = []
    diameters: list[float] = []
    for _ in range(4000):
        if len(centres) == fruits:
            break
        diameter, z = draw.uniform(*diameter_mm), draw.uniform(*distance_mm)
        radius = diameter / 2 * focal_px / z
        if min(size) < 2.6 * radius:
            continue
        across = draw.uniform(1.2 * radius, size[0] - 1.2 * radius) - size[0] / 2
        down = draw.uniform(1.2 * radius, size[1] - 1.2 * radius) - size[1] / 2
        centre = np.array([across * z / focal_px, down * z / focal_px, z])
        if all(
            np.hypot(*(centre[:2] / z - other[:2] / other[2])) * focal_px
            > apart * (radius + size_of / 2 * focal_px / other[2])
            for other, size_of in zip(centres, diameters, strict=True)
        ):
            centres.append(centre)
            diameters.append(diameter)
    return np.array(centres).reshape(-1, 3), np.array(diameters)


def _texture(draw, shape):
    import cv2

    coarse = draw.random((shape[0] // 12 + 2, shape[1] // 12 + 2)).astype(np.float32)
    fine = draw.random((shape[0] // 3 + 2, shape[1] // 3 + 2)).astype(np.float32)
    size = (shape[1], shape[0])
    return 0.6 * cv2.resize(coarse, size, interpolation=cv2.INTER_CUBIC) + 0.4 * cv2.resize(
        fine, size
    )


def _leaf(draw, x, y, depth, shade, owner, texture, centres, focal_px):
    """A leaf; three of four hang before a fruit and hide a part of it."""
    if len(centres) and draw.random() < 0.75:
        target = centres[draw.integers(len(centres))]
        z = target[2] - draw.uniform(50, 160)
        middle = target[:2] / target[2] * focal_px + draw.normal(0, 34, 2) * focal_px / z
    else:
        z = draw.uniform(depth.min(), depth.max())
        middle = draw.uniform([x.min(), y.min()], [x.max(), y.max()])
    long, wide = np.array([draw.uniform(30, 55), draw.uniform(11, 22)]) * focal_px / z
    turn = draw.uniform(0, np.pi)
    along = (x - middle[0]) * np.cos(turn) + (y - middle[1]) * np.sin(turn)
    across = -(x - middle[0]) * np.sin(turn) + (y - middle[1]) * np.cos(turn)
    surface = z + along * draw.uniform(-0.4, 0.4) * z / focal_px
    front = ((along / long) ** 2 + (across / wide) ** 2 < 1) & (surface < depth)
    shade[front] = np.array(LEAF) * (0.7 + 0.6 * texture[front, None]) * draw.uniform(0.7, 1.3)
    depth[front], owner[front] = surface[front], -1


def _photographed(draw, shade):
    import cv2

    blurred = cv2.GaussianBlur(shade.astype(np.float32), (0, 0), 0.8)
    return np.clip(blurred + draw.normal(0, 4, shade.shape), 0, 255).astype(np.uint8)


def _measured(draw, depth, noise_mm, holes, flying, farthest):
    import cv2

    noisy = depth + draw.normal(0, 1, depth.shape) * noise_mm * (depth / 1000) ** 2
    if flying:
        near, far = cv2.erode(depth, np.ones((3, 3))), cv2.dilate(depth, np.ones((3, 3)))
        edge = far - near > 25
        mixed = near + (far - near) * draw.random(depth.shape)
        noisy = np.where(edge & (draw.random(depth.shape) < 0.5), mixed, noisy)
    if holes > 0:
        spots = cv2.resize(
            draw.random((depth.shape[0] // 6 + 1, depth.shape[1] // 6 + 1)), depth.shape[::-1]
        )
        noisy[spots > np.quantile(spots, 1 - holes)] = 0
    noisy[noisy > farthest] = 0
    return noisy
