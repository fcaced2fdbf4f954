"""Colours as people distinguish them: CIELAB, names, and the dominant colours of a picture.

Names and values are from the colour name survey of xkcd (R. Munroe 2010, xkcd.com/color/rgb, CC0): about fifty of the
most frequent names, chosen to include colours of soils, leaves, fruit and skies.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray


def lab_of(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return CIE 1976 L*a*b* (D65) of sRGB pixels, float32 (rows, columns, 3): L 0..100."""
    return np.asarray(
        cv2.cvtColor(pixels.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2LAB), np.float32
    )


_XKCD = """
red e50000, orange f97306, yellow ffff14, green 15b01a, blue 0343df, purple 7e1e9c, pink ff81c0, brown 653700,
grey 929591, black 000000, white ffffff, teal 029386, cyan 00ffff, magenta c20078, tan d1b26f, beige e6daa6,
olive 6e750e, maroon 650021, lavender c79fef, light green 96f97b, dark green 033500, light blue 95d0fc,
dark blue 00035b, light brown ad8150, dark brown 341c02, light grey d8dcd6, dark grey 363737,
yellow green c0fb2d, forest green 06470c, leaf green 5ca904, grass green 3f9b0b, army green 4b5d16,
grey green 789b73, drab 828344, taupe b9a281, greyish brown 7a6a4f, sky blue 75bbfd, cream ffffc2, gold dbb40c,
rust a83c09, khaki aaa662, salmon ff796c, dark red 840000, pale green c7fdb5, lime green 89fe05, violet 9a0eea,
pale yellow ffff84, bright green 01ff07, mustard ceb301, turquoise 06c2ac, peach ffb07c, light pink ffd1df
"""
NAMED_COLOURS: dict[str, tuple[int, int, int]] = {
    name.strip(): (*bytes.fromhex(value),)  # pyright: ignore[reportAssignmentType]
    for name, value in (entry.rsplit(maxsplit=1) for entry in _XKCD.split(","))
}
_SAMPLE_PX = 8_000
_RESTARTS = 3
_ROUNDS = 25


@dataclass(frozen=True)
class ColourShare:
    """Share of a colour. ``rgb``: 0..255. ``share``: share of the pixels, 0..1."""

    name: str
    rgb: tuple[int, int, int]
    share: float


def lab_of_list(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return CIE 1976 L*a*b* (D65) of sRGB colours, float32 (pixels, 3): L 0..100."""
    return lab_of(np.ascontiguousarray(rgb.reshape(-1, 1, 3)))[:, 0]


def colour_name(rgb: tuple[float, float, float]) -> str:
    """Return the name of the nearest colour of the table, by distance in Lab (CIE 1976)."""
    table = lab_of_list(np.array(list(NAMED_COLOURS.values()), np.uint8))
    sample_lab = lab_of_list(np.array([[round(part) for part in rgb]], np.uint8))
    return list(NAMED_COLOURS)[int(np.argmin(((table - sample_lab) ** 2).sum(axis=1)))]


def dominant_colours(pixels: NDArray[np.uint8], groups: int = 5) -> list[ColourShare]:
    """Return the mean colours of up to ``groups`` groups of pixels, (pixels, 3), by name, largest share first:
    k-means in Lab with a fixed seed on a regular sample; groups of one name are merged."""
    sample = pixels[:: -(-len(pixels) // _SAMPLE_PX)]
    lab = lab_of_list(sample)
    labels = _group_colours(lab, groups)
    shares: dict[str, list[NDArray[np.uint8]]] = {}
    for group in range(groups):
        members = sample[labels == group]
        if len(members):
            mean = members.mean(axis=0)
            shares.setdefault(colour_name((mean[0], mean[1], mean[2])), []).append(members)
    colours: list[ColourShare] = []
    for name, parts in shares.items():
        members = np.concatenate(parts)
        red, green, blue = (round(float(part)) for part in members.mean(axis=0))
        colours.append(ColourShare(name, (red, green, blue), len(members) / len(sample)))
    return sorted(colours, key=lambda colour: (-colour.share, colour.name))


def _group_colours(lab: NDArray[np.float32], groups: int) -> NDArray[np.int64]:
    """Run k-means (Lloyd 1982) with several k-means++ starts (Arthur and Vassilvitskii 2007); return the best."""
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
            centres = np.where(
                counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres
            ).astype(np.float32)
        spread = float(((lab - centres[labels]) ** 2).sum())
        if spread < best[0]:
            best = (spread, labels)
    return best[1]


def _distances(lab: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return squared distances, (pixels, centres)."""
    away = (lab**2).sum(axis=1)[:, None] - 2 * lab @ centres.T + (centres**2).sum(axis=1)
    return np.maximum(away, 0)
