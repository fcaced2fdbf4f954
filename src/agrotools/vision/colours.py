"""Colours as people tell them apart: CIELAB, names, and the main colours of a picture.

Names and values are from the colour name survey of xkcd (R. Munroe 2010, xkcd.com/color/rgb, CC0): some fifty of the
names that people gave most, chosen so that soils, leaves, fruit and skies have one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def lab_of(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """CIE 1976 L*a*b* (D65) of sRGB pixels, float32 (rows, columns, 3): L 0..100."""
    import cv2

    return np.asarray(cv2.cvtColor(pixels.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2LAB), np.float32)


NAMED_COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (229, 0, 0),
    "orange": (249, 115, 6),
    "yellow": (255, 255, 20),
    "green": (21, 176, 26),
    "blue": (3, 67, 223),
    "purple": (126, 30, 156),
    "pink": (255, 129, 192),
    "brown": (101, 55, 0),
    "grey": (146, 149, 145),
    "black": (0, 0, 0),
    "white": (255, 255, 255),
    "teal": (2, 147, 134),
    "cyan": (0, 255, 255),
    "magenta": (194, 0, 120),
    "tan": (209, 178, 111),
    "beige": (230, 218, 166),
    "olive": (110, 117, 14),
    "maroon": (101, 0, 33),
    "lavender": (199, 159, 239),
    "light green": (150, 249, 123),
    "dark green": (3, 53, 0),
    "light blue": (149, 208, 252),
    "dark blue": (0, 3, 91),
    "light brown": (173, 129, 80),
    "dark brown": (52, 28, 2),
    "light grey": (216, 220, 214),
    "dark grey": (54, 55, 55),
    "yellow green": (192, 251, 45),
    "forest green": (6, 71, 12),
    "leaf green": (92, 169, 4),
    "grass green": (63, 155, 11),
    "army green": (75, 93, 22),
    "grey green": (120, 155, 115),
    "drab": (130, 131, 68),
    "taupe": (185, 162, 129),
    "greyish brown": (122, 106, 79),
    "sky blue": (117, 187, 253),
    "cream": (255, 255, 194),
    "gold": (219, 180, 12),
    "rust": (168, 60, 9),
    "khaki": (170, 166, 98),
    "salmon": (255, 121, 108),
    "dark red": (132, 0, 0),
    "pale green": (199, 253, 181),
    "lime green": (137, 254, 5),
    "violet": (154, 14, 234),
    "pale yellow": (255, 255, 132),
    "bright green": (1, 255, 7),
    "mustard": (206, 179, 1),
    "turquoise": (6, 194, 172),
    "peach": (255, 176, 124),
    "light pink": (255, 209, 223),
}
_SAMPLE_PX = 8_000
_RESTARTS = 3
_ROUNDS = 25


@dataclass(frozen=True)
class ColourShare:
    """``rgb``: 0..255. ``share``: 0..1 of the pixels."""

    name: str
    rgb: tuple[int, int, int]
    share: float


def lab_of_list(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    """CIE 1976 L*a*b* (D65) of sRGB colours, float32 (pixels, 3): L 0..100."""
    return lab_of(np.ascontiguousarray(rgb.reshape(-1, 1, 3)))[:, 0]


def colour_name(rgb: tuple[float, float, float]) -> str:
    """The name of the nearest colour of the table, by distance in Lab (CIE 1976)."""
    table = lab_of_list(np.array(list(NAMED_COLOURS.values()), np.uint8))
    own = lab_of_list(np.array([[round(part) for part in rgb]], np.uint8))
    return list(NAMED_COLOURS)[int(np.argmin(((table - own) ** 2).sum(axis=1)))]


def dominant_colours(pixels: NDArray[np.uint8], groups: int = 5) -> list[ColourShare]:
    """The colours of up to ``groups`` groups of pixels (k-means in Lab), by name, the largest share first.

    Groups whose colours have one name count as one. Deterministic: the seed is fixed. Of many pixels every second,
    third... is looked at.

    Args:
        pixels: uint8 (pixels, 3), at least one.
    """
    sample = pixels[:: -(-len(pixels) // _SAMPLE_PX)]
    lab = lab_of_list(sample)
    labels = _group_colours(lab, groups)
    shares: dict[str, list[NDArray[np.uint8]]] = {}
    for group in range(groups):
        members = sample[labels == group]
        if len(members):
            mean = members.mean(axis=0)
            shares.setdefault(colour_name((mean[0], mean[1], mean[2])), []).append(members)
    found: list[ColourShare] = []
    for name, parts in shares.items():
        members = np.concatenate(parts)
        red, green, blue = (round(float(part)) for part in members.mean(axis=0))
        found.append(ColourShare(name, (red, green, blue), len(members) / len(sample)))
    return sorted(found, key=lambda colour: (-colour.share, colour.name))


def _group_colours(lab: NDArray[np.float32], groups: int) -> NDArray[np.int64]:
    """k-means (Lloyd 1982): the best of several runs, each started as k-means++ (Arthur and Vassilvitskii 2007)."""
    draw = np.random.default_rng(0)
    best: tuple[float, NDArray[np.int64]] = (np.inf, np.zeros(len(lab), np.int64))
    for _ in range(_RESTARTS):
        centres = lab[draw.integers(len(lab))][None]
        while len(centres) < groups:
            away = _distances(lab, centres).min(axis=1).astype(np.float64)
            if not away.sum() > 1e-6:
                break
            centres = np.vstack([centres, lab[draw.choice(len(lab), p=away / away.sum())]])
        labels = np.zeros(len(lab), np.int64)
        for _ in range(_ROUNDS):
            fresh = np.argmin(_distances(lab, centres), axis=1)
            if np.array_equal(fresh, labels):
                break
            labels = fresh
            counts = np.bincount(labels, minlength=len(centres))
            sums = np.column_stack([np.bincount(labels, lab[:, k], len(centres)) for k in range(3)])
            centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres).astype(np.float32)
        spread = float(((lab - centres[labels]) ** 2).sum())
        if spread < best[0]:
            best = (spread, labels)
    return best[1]


def _distances(lab: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.float32]:
    """Squared distances, (pixels, centres)."""
    away = (lab**2).sum(axis=1)[:, None] - 2 * lab @ centres.T + (centres**2).sum(axis=1)
    return np.maximum(away, 0)
