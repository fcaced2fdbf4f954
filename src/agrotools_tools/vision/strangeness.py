"""Strangeness: how much a picture differs from the pictures that a tool or a net is made for.

A domain is a collection of reference pictures of two kinds: known (what the tool is made for, by class where it names
classes) and other (pictures of other things). A picture is described by :func:`picture_traits`, colours and texture of
the whole picture, and for nets also by the net's embedding. In each description, its distance to the nearest known
pictures (of the class that is about to be named) and the ratio of that distance to the distance to the nearest other
pictures are taken as logarithms, scaled by their spread over held-out known pictures, and added up, with the likeness
to the pictures learnt from where the net computes it: nearest neighbours as in Sun et al. 2022 (ICML), with outliers
exposed as in Hendrycks et al. 2019 (ICLR). The threshold is a quantile of held-out known pictures.

``data/strangeness.npz`` holds the references and ``data/strangeness.json`` describes them; both are written by
``training/fit_strangeness.py``. The flag of a strange picture is :data:`FLAG`: names are refused, and a measured value
comes with the flag and without an interval.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, FiniteFloat

from agrotools_tools.shipped import shipped_file
from agrotools_tools.vision import STRANGENESS_FILES
from agrotools_tools.vision.colours import lab_of
from agrotools_tools.vision.nets import Arrays, checked_arrays

Vector = NDArray[np.float32]
FLAG = "out_of_distribution"
"""Flag of results on pictures that are unlike those the tool is made for."""
NEIGHBOURS = 3
_LEAST_DISTANCE = 1e-3
_LEAST_SPREAD = 0.1


@dataclass(frozen=True)
class Strangeness:
    """Strangeness of a picture. It is strange if ``score`` is above ``threshold``."""

    score: float
    threshold: float

    @property
    def is_strange(self) -> bool:
        return self.score > self.threshold


class Scale(BaseModel):
    """Median, spread (to the 90 % quantile) and weight of a term; from held-out known pictures."""

    median: FiniteFloat
    spread: FiniteFloat
    weight: FiniteFloat

    @classmethod
    def of(cls, values: NDArray[np.float64], weight: float = 1.0) -> Self:
        """Return the scale of a term from its values (n,); a spread below 0.1 counts as 0.1."""
        median = float(np.median(values))
        spread = max(float(np.quantile(values, 0.9)) - median, _LEAST_SPREAD)
        return cls(median=median, spread=spread, weight=weight)


class DomainInfo(BaseModel):
    """Description of a domain.

    ``classes``: names of the classes that references are sorted by, empty if there are none. ``scales``: of each term,
    by description and term (``traits near``, ``traits ratio``, ``embedding near``, ``embedding ratio``), and of
    ``likeness``.
    """

    classes: tuple[str, ...] = ()
    threshold: FiniteFloat
    kept: FiniteFloat
    """Share of held-out known pictures at or below the threshold."""
    known: str
    other: str
    scales: dict[str, Scale]
    net_sha256: str | None = None
    """Hash of the weights of the net whose embeddings the references hold."""


class StrangenessInfo(BaseModel):
    recipe: str
    licence: str
    sha256: str
    domains: dict[str, DomainInfo]


def strangeness(
    picture: NDArray[np.uint8] | Vector,
    domain: str,
    *,
    embedding: Vector | None = None,
    label: str | None = None,
    likeness: NDArray[np.float64] | None = None,
) -> Strangeness:
    """Return the strangeness of a picture, or of its :func:`picture_traits`, to a tool or net, a domain in
    ``data/strangeness.json``. For a net: its embedding, the class about to be named (default: the nearest known
    pictures of any class count), and its likeness, (1,), if it has one."""
    info, arrays = _references()
    traits = picture if picture.ndim == 1 else picture_traits(picture.astype(np.uint8, copy=False))
    given = {"traits": traits, **({} if embedding is None else {"embedding": embedding})}
    one = info.domains[domain]
    terms = terms_of({name: _project(domain, name, value, arrays)[None] for name, value in given.items()},
                     {name: value for name, value in _references_of(domain).items() if name in given},
                     None if label is None else np.array([one.classes.index(label)]), likeness)  # fmt: skip
    return Strangeness(float(score_of(terms, one.scales)[0]), one.threshold)


def has_references_of(domain: str, net_sha256: str) -> bool:
    """True if the references of a domain hold embeddings of the net with these weights."""
    one = _references()[0].domains.get(domain)
    return one is not None and one.net_sha256 == net_sha256


@dataclass(frozen=True, eq=False)
class References:
    """References in one description. ``known``: (n, width). ``classes``: (n,), -1 if none. ``other``: (m, width)."""

    known: Vector
    classes: NDArray[np.int64]
    other: Vector


def terms_of(
    values: Mapping[str, Vector],
    references: Mapping[str, References],
    labels: NDArray[np.int64] | None,
    likeness: NDArray[np.float64] | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Return the terms of pictures, float64 (n,), from their descriptions (n, width), classes and likeness (n,)."""
    terms: dict[str, NDArray[np.float64]] = {}
    for name, rows in values.items():
        one = references[name]
        near = np.empty(len(rows))
        for label in (-1,) if labels is None else np.unique(labels):
            chosen = slice(None) if labels is None else labels == label
            of_class = one.known if labels is None else one.known[one.classes == label]
            near[chosen] = nearest_distance(rows[chosen], of_class)
        terms[f"{name} near"] = np.log(near)
        terms[f"{name} ratio"] = np.log(near) - np.log(nearest_distance(rows, one.other))
    if likeness is not None:
        terms["likeness"] = np.log(np.maximum(1 - likeness, _LEAST_DISTANCE))
    return terms


def score_of(
    terms: Mapping[str, NDArray[np.float64]], scales: Mapping[str, Scale]
) -> NDArray[np.float64]:
    """Return the sum of the terms, each in units of its spread over held-out known pictures."""
    parts = [
        one.weight * (terms[name] - one.median) / one.spread
        for name, one in scales.items()
        if name in terms
    ]
    return np.sum(parts, axis=0)


def nearest_distance(rows: Vector, references: Vector) -> NDArray[np.float64]:
    """Return the root mean squared distance of each row to the nearest three references, at least 0.001."""
    squares = (rows**2).sum(axis=1)[:, None] + (references**2).sum(axis=1) - 2 * rows @ references.T
    count = min(NEIGHBOURS, len(references))
    nearest = np.partition(np.maximum(squares, 0), count - 1, axis=1)[:, :count]
    return np.maximum(np.sqrt(nearest.mean(axis=1, dtype=np.float64)), _LEAST_DISTANCE)


def unit_rows(rows: Vector) -> Vector:
    """Return rows (n, width) of length 1."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def _project(domain: str, name: str, value: Vector, arrays: Arrays) -> Vector:
    """Return a description in the space of the references: scaled traits, or main directions of the embedding."""
    if name == "embedding":
        return (
            unit_rows(value[None])[0] @ arrays[f"{domain} directions"].astype(np.float32)
        ).astype(np.float32)
    mean, width = (arrays[f"{domain} {name}"].astype(np.float32) for name in ("mean", "width"))
    return (value - mean) / width


def references_of(domain: str, arrays: Arrays) -> dict[str, References]:
    """Return the references of a domain by description."""
    found: dict[str, References] = {}
    for name in ("traits", "embedding"):
        if f"{domain} {name} known" in arrays:
            step = arrays[f"{domain} {name} step"].astype(np.float32)
            known, other = (
                arrays[f"{domain} {name} {kind}"].astype(np.float32) * step
                for kind in ("known", "other")
            )
            found[name] = References(known, arrays[f"{domain} classes"].astype(np.int64), other)
    return found


@cache
def _references_of(domain: str) -> dict[str, References]:
    return references_of(domain, _references()[1])


@cache
def _references() -> tuple[StrangenessInfo, Arrays]:
    facts, pictures = map(shipped_file, STRANGENESS_FILES)
    info = StrangenessInfo.model_validate_json(facts.read_bytes())
    what, hint = "the reference pictures of strangeness", "install agrotools again"
    return info, checked_arrays(pictures, info.sha256, what=what, hint=hint)


TRAITS_VERSION = 1
"""Version of :func:`picture_traits`, increased whenever its values change."""
_SIDE = 128
_A_RANGE, _B_RANGE, _BINS, _LIGHTNESS_BINS = (-48.0, 48.0), (-32.0, 64.0), 8, 8


def picture_traits(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return traits of a picture, uint8 (rows, columns, 3), float32 (101,).

    They are square roots of the shares in histograms of a* and b* (8 x 8), of L*, and of uniform local binary patterns
    at two scales (Ojala et al. 2002), and the mean and standard deviation of Lab and its difference between the middle
    and the margin of the picture.
    """
    small = np.asarray(cv2.resize(pixels, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA), np.uint8)
    lab = lab_of(small)
    colour, _, _ = np.histogram2d(
        np.clip(lab[..., 1].ravel(), *_clip_bounds(_A_RANGE)),
        np.clip(lab[..., 2].ravel(), *_clip_bounds(_B_RANGE)),
        bins=_BINS,
        range=(_A_RANGE, _B_RANGE),
    )
    lightness, _ = np.histogram(lab[..., 0], bins=_LIGHTNESS_BINS, range=(0, 100.001))
    grey = np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), np.int16)
    coarse = np.asarray(
        cv2.resize(grey.astype(np.uint8), (64, 64), interpolation=cv2.INTER_AREA), np.int16
    )
    counts = [colour.ravel(), lightness, binary_patterns(grey), binary_patterns(coarse)]
    quarter = _SIDE // 4
    middle = np.zeros((_SIDE, _SIDE), np.bool_)
    middle[quarter:-quarter, quarter:-quarter] = True
    mean = lab.mean(axis=(0, 1)) / 50
    step = (lab[middle].mean(axis=0) - lab[~middle].mean(axis=0)) / 25
    shares = [np.sqrt(part / max(1.0, float(part.sum()))) for part in counts]
    return np.concatenate([*shares, mean, lab.std(axis=(0, 1)) / 25, step]).astype(np.float32)


def binary_patterns(grey: NDArray[np.int16]) -> NDArray[np.int64]:
    """Count rotation-invariant uniform local binary patterns of eight neighbours, int64 (10,)."""
    middle = grey[1:-1, 1:-1]
    rows, columns = grey.shape
    ring = ((0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0))
    bits = np.stack(
        [grey[y : y + rows - 2, x : x + columns - 2] >= middle for y, x in ring]
    ).astype(np.int8)
    changes = (bits != np.roll(bits, 1, axis=0)).sum(axis=0)
    pattern = np.where(changes <= 2, bits.sum(axis=0), 9)
    return np.bincount(pattern.ravel(), minlength=10)


def _clip_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    return bounds[0], bounds[1] - 1e-3
