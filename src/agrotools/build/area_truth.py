"""Ground truth of areas in a picture or a part of it (crop, weeds, vegetation, soil) and tolerances of their values."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.tools.result import round_significant

Region = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, half-open."""
Part = tuple[str, Region]


def halves(columns: int, rows: int) -> tuple[list[Part], list[Part]]:
    """The left and right half of a picture, and its upper and lower one."""
    x, y = columns // 2, rows // 2
    across: list[Part] = [("left", (0, 0, x, rows)), ("right", (x, 0, columns, rows))]
    return across, [("upper", (0, 0, columns, y)), ("lower", (0, y, columns, rows))]


def quarters(columns: int, rows: int) -> list[Part]:
    """The quarters of a picture, row by row."""
    x, y = columns // 2, rows // 2
    return [
        ("top left", (0, 0, x, y)),
        ("top right", (x, 0, columns, y)),
        ("bottom left", (0, y, x, rows)),
        ("bottom right", (x, y, columns, rows)),
    ]


def cut_out(pixels: NDArray[Any], region: Region | Sequence[int] | None) -> NDArray[Any]:
    """The pixels (rows, columns) in a region, or all."""
    if region is None:
        return pixels
    x0, y0, x1, y1 = region
    return pixels[y0:y1, x0:x1]


_DIGITS = 6


@dataclass(frozen=True)
class AreaTruth:
    """Pixel counts of a picture or region; shares are NaN where it holds no data at all.

    ``unnamed_px`` is vegetation that the source saw but did not call crop or weed. It counts as vegetation, and in
    shares of crop and weeds it counts for neither; :meth:`readings` says how far that choice matters.
    """

    crop_px: int
    weed_px: int
    unnamed_px: int
    total_px: int

    @property
    def veg_px(self) -> int:
        return self.crop_px + self.weed_px + self.unnamed_px

    @property
    def named_px(self) -> int:
        return self.crop_px + self.weed_px

    @property
    def soil_px(self) -> int:
        return self.total_px - self.veg_px

    @property
    def veg_pct(self) -> float:
        return self._share(self.veg_px)

    @property
    def soil_pct(self) -> float:
        return self._share(self.soil_px)

    @property
    def crop_pct(self) -> float:
        return self._share(self.crop_px)

    @property
    def weed_pct(self) -> float:
        return self._share(self.weed_px)

    @property
    def weed_share_pct(self) -> float:
        """Weeds among the plants that were named, percent; NaN where there is no plant."""
        return 100.0 * self.weed_px / self.named_px if self.named_px else math.nan

    @property
    def ratio(self) -> float | None:
        """Weed area over crop area; None without crop."""
        return self.weed_px / self.crop_px if self.crop_px else None

    def _share(self, pixels: int) -> float:
        return 100.0 * pixels / self.total_px if self.total_px else math.nan

    def readings(self) -> tuple["AreaTruth", ...]:
        """This count, and what it would be if all unnamed vegetation were weeds, or all of it crop."""
        if not self.unnamed_px:
            return (self,)
        return (
            self,
            replace(self, weed_px=self.weed_px + self.unnamed_px, unnamed_px=0),
            replace(self, crop_px=self.crop_px + self.unnamed_px, unnamed_px=0),
        )

    def as_result(self, gsd_m: float | None = None, digits: int | None = _DIGITS) -> dict[str, JsonValue]:
        """Result of a perfect ``measure_crop_weed_area``, as far as masks and the ground sampling distance tell.

        ``digits``: significant ones; None: not rounded.
        """
        pixels = {"total": self.total_px, "veg": self.veg_px, "crop": self.crop_px, "weed": self.weed_px}
        pixels["soil"] = self.soil_px
        area_m2: JsonValue = None
        if gsd_m is not None:
            area_m2 = {name: round_significant(count * gsd_m**2, digits) for name, count in pixels.items()}
        return {
            "total_px": self.total_px,
            "veg_px": self.veg_px,
            "crop_px": self.crop_px,
            "weed_px": self.weed_px,
            "soil_px": self.soil_px,
            "veg_pct": round_significant(self.veg_pct, digits),
            "crop_pct": round_significant(self.crop_pct, digits),
            "weed_pct": round_significant(self.weed_pct, digits),
            "soil_pct": round_significant(self.soil_pct, digits),
            "weed_share_of_veg_pct": round_significant(self.weed_share_pct, digits),
            "weed_to_crop_ratio": None if self.ratio is None else round_significant(self.ratio, digits),
            "area_m2": area_m2,
            "gsd_m": gsd_m,
        }


def count_area(
    classes: NDArray[np.uint8],
    vegetation: NDArray[np.bool_] | None = None,
    region: Region | None = None,
    valid: NDArray[np.bool_] | None = None,
) -> AreaTruth:
    """Count a class mask (0 other, 1 crop, 2 weed; rows, columns) within ``region``.

    ``vegetation`` adds the plants that the class mask leaves unnamed; a named pixel is vegetation in any case.
    ``valid`` says where the picture holds data; other pixels do not count.
    """
    classes = cut_out(classes, region)
    plants = np.zeros(classes.shape, np.bool_) if vegetation is None else cut_out(vegetation, region)
    if valid is not None:
        inside = cut_out(valid, region)
        classes, plants = classes[inside], plants[inside]
    crop, weed = int(np.count_nonzero(classes == 1)), int(np.count_nonzero(classes == 2))
    unnamed = int(np.count_nonzero(plants & (classes == 0)))
    return AreaTruth(crop, weed, unnamed, classes.size)


COVER_POINTS = 2.0
"""A cover of the ground is right within so much."""
LEAST_COVER = 2 * COVER_POINTS
"""Smallest cover that is asked for outright, so that "none" is never right."""
_PARENT_SHARE = 0.10
_BEYOND = 0.05


class Tolerance(NamedTuple):
    """Tolerance of a value derived from covers. Set from what the task needs, before any tool was run.

    A derived value is right within what its parents' tolerances combine to, as independent errors, and 5 % of its own
    value beyond that. A parent's tolerance is 2 points or 10 % of the parent, whichever is less: 2 points of a crop
    that covers 1 % of the ground would allow any ratio at all.
    """

    abs_tol: float = 0.0
    rel_tol: float = 0.0


def _of_quotient(first: float, second: float) -> Tolerance:
    return Tolerance(rel_tol=_rounded(math.hypot(_relative(first), _relative(second)) + _BEYOND))


def _of_product(cover: float) -> Tolerance:
    return Tolerance(rel_tol=_rounded(_relative(cover) + _BEYOND))


def _of_difference(first: float, second: float) -> Tolerance:
    combined = math.hypot(_relative(first) * first, _relative(second) * second)
    return Tolerance(abs_tol=_rounded(combined + _BEYOND * abs(first - second)))


def _of_sum(*parts: float) -> Tolerance:
    combined = math.hypot(*(_PARENT_SHARE * part for part in parts))
    return Tolerance(abs_tol=_rounded(combined + _BEYOND * sum(parts)))


def _of_share(first: float, second: float) -> Tolerance:
    share = first / (first + second)
    combined = share * (1.0 - share) * math.hypot(_relative(first), _relative(second))
    return Tolerance(abs_tol=_rounded(100.0 * (combined + _BEYOND * share)))


TOLERANCES: Mapping[str, Callable[..., Tolerance]] = {
    "quotient": _of_quotient,
    "product": _of_product,
    "difference": _of_difference,
    "sum": _of_sum,
    "share": _of_share,
}
"""By kind of value: of ``first / second`` (or a constant times it), a constant times a cover, ``first - second`` in
points, a sum of terms that are each a constant times a cover, ``100 * first / (first + second)`` in percent."""


def _relative(cover: float) -> float:
    return min(COVER_POINTS / cover, _PARENT_SHARE) if cover > 0 else _PARENT_SHARE


def _rounded(value: float) -> float:
    """To three significant digits, so that tolerances read well in files."""
    return float(f"{value:.3g}")
