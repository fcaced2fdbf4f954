"""Ground truth of areas (crop, weeds, vegetation, soil) in a picture or part of it, and tolerances of their values."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.calling.result import round_significant

Region = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, half-open."""
Part = tuple[str, Region]


def halves(columns: int, rows: int) -> tuple[list[Part], list[Part]]:
    """Return the left and right halves of a picture, and its upper and lower halves."""
    x, y = columns // 2, rows // 2
    across: list[Part] = [("left", (0, 0, x, rows)), ("right", (x, 0, columns, rows))]
    return across, [("upper", (0, 0, columns, y)), ("lower", (0, y, columns, rows))]


def quarters(columns: int, rows: int) -> list[Part]:
    """Return the quarters of a picture, row by row."""
    x, y = columns // 2, rows // 2
    across, down = (("left", 0, x), ("right", x, columns)), (("top", 0, y), ("bottom", y, rows))
    return [(f"{row} {side}", (x0, y0, x1, y1)) for row, y0, y1 in down for side, x0, x1 in across]


def cut_out(pixels: NDArray[Any], region: Region | Sequence[int] | None) -> NDArray[Any]:
    """Return the pixels (rows, columns) in a region, or all pixels if it is None."""
    if region is None:
        return pixels
    x0, y0, x1, y1 = region
    return pixels[y0:y1, x0:x1]


_DIGITS = 6


@dataclass(frozen=True)
class AreaTruth:
    """Pixel counts of a picture or region; shares are NaN if it holds no data.

    ``unnamed_px`` is vegetation that the source detected but labelled neither crop nor weed. It counts as vegetation,
    but not towards the shares of crop and weeds; :meth:`readings` shows how much this choice matters.
    """

    crop_px: int
    weed_px: int
    unnamed_px: int
    total_px: int

    @property
    def veg_px(self) -> int:
        return self.crop_px + self.weed_px + self.unnamed_px

    @property
    def soil_px(self) -> int:
        return self.total_px - self.veg_px

    @property
    def veg_pct(self) -> float:
        return self._share(self.veg_px)

    @property
    def weed_pct(self) -> float:
        return self._share(self.weed_px)

    def _share(self, pixels: int) -> float:
        return 100.0 * pixels / self.total_px if self.total_px else math.nan

    def readings(self) -> tuple["AreaTruth", ...]:
        """Return this count, and the counts if all unlabelled vegetation were weeds or all of it crop."""
        weeds = replace(self, weed_px=self.weed_px + self.unnamed_px, unnamed_px=0)
        crop = replace(self, crop_px=self.crop_px + self.unnamed_px, unnamed_px=0)
        return (self, weeds, crop) if self.unnamed_px else (self,)

    def as_result(
        self, gsd_m: float | None = None, digits: int | None = _DIGITS
    ) -> dict[str, JsonValue]:
        """Return the result of a perfect ``measure_crop_weed_area``.

        Args:
            gsd_m: ground sampling distance, metres per pixel; without it there are no areas in square metres.
            digits: significant digits; None: not rounded.
        """
        plants = {"veg": self.veg_px, "crop": self.crop_px, "weed": self.weed_px}
        pixels = {"total": self.total_px, **plants, "soil": self.soil_px}
        areas = {
            name: round_significant(count * (gsd_m or 0) ** 2, digits)
            for name, count in pixels.items()
        }
        area_m2: JsonValue = None if gsd_m is None else {**areas}
        named_px = self.crop_px + self.weed_px
        weed_share = 100.0 * self.weed_px / named_px if named_px else math.nan
        return {
            **{f"{name}_px": count for name, count in pixels.items()},
            **{
                f"{name}_pct": round_significant(self._share(pixels[name]), digits)
                for name in (*plants, "soil")
            },
            "weed_share_of_veg_pct": round_significant(weed_share, digits),
            "weed_to_crop_ratio": round_significant(self.weed_px / self.crop_px, digits)
            if self.crop_px
            else None,
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

    Args:
        vegetation: mask of all plants, labelled or not; labelled pixels always count as vegetation.
        valid: mask of pixels that hold data; other pixels are not counted.
    """
    classes = cut_out(classes, region)
    plants = (
        np.zeros(classes.shape, np.bool_) if vegetation is None else cut_out(vegetation, region)
    )
    if valid is not None:
        inside = cut_out(valid, region)
        classes, plants = classes[inside], plants[inside]
    crop, weed = int(np.count_nonzero(classes == 1)), int(np.count_nonzero(classes == 2))
    unnamed = int(np.count_nonzero(plants & (classes == 0)))
    return AreaTruth(crop, weed, unnamed, classes.size)


COVER_POINTS = 2.0
"""Tolerance of a ground cover, in percentage points."""
LEAST_COVER = 2 * COVER_POINTS
"""Smallest cover that is asked for directly, percent, so that 0 is never within the tolerance."""
_PARENT_SHARE = 0.10
_BEYOND = 0.05


class Tolerance(NamedTuple):
    """Tolerance of a value derived from covers, set from the needs of the task before any tool was run.

    A derived value is right within the combined tolerances of its parents, taken as independent errors, plus 5 % of
    the value itself. A parent's tolerance is the smaller of 2 points and 10 % of the parent, because 2 points of a
    crop that covers 1 % of the ground would allow any ratio at all.
    """

    abs_tol: float = 0.0
    rel_tol: float = 0.0


def _relative(cover: float) -> float:
    return min(COVER_POINTS / cover, _PARENT_SHARE) if cover > 0 else _PARENT_SHARE


def _rounded(value: float) -> float:
    """Round to three significant digits, so that tolerances are readable in files."""
    return float(f"{value:.3g}")


def _of_ratio(*covers: float) -> Tolerance:
    return Tolerance(rel_tol=_rounded(math.hypot(*map(_relative, covers)) + _BEYOND))


def _of_difference(first: float, second: float) -> float:
    return math.hypot(_relative(first) * first, _relative(second) * second) + _BEYOND * abs(
        first - second
    )


def _of_share(first: float, second: float) -> float:
    share = first / (first + second)
    combined = share * (1.0 - share) * math.hypot(_relative(first), _relative(second))
    return 100.0 * (combined + _BEYOND * share)


def _absolute(tolerance: Callable[..., float]) -> Callable[..., Tolerance]:
    return lambda *values: Tolerance(abs_tol=_rounded(tolerance(*values)))


TOLERANCES: Mapping[str, Callable[..., Tolerance]] = {
    "quotient": _of_ratio,
    "product": _of_ratio,
    "difference": _absolute(_of_difference),
    "sum": _absolute(
        lambda *parts: math.hypot(*(_PARENT_SHARE * part for part in parts)) + _BEYOND * sum(parts)
    ),
    "share": _absolute(_of_share),
    "cover": _absolute(
        lambda cover, *limits: min(
            COVER_POINTS,
            max(0.1, min(cover, 100 - cover) / 2),
            *(abs(cover - limit) for limit in limits),
        )
    ),
    "larger": _absolute(lambda value, points, part: max(points, part * value)),
}
"""Tolerance functions by kind of value.

``quotient``: ``first / second`` or a multiple; ``product``: a multiple of a cover; ``difference``: in points; ``sum``:
of multiples; ``share``: ``100 * first / (first + second)`` in percent; ``cover``: at most half of what is covered or
bare, and no limit lies within; ``larger``: points, or a part of the first value if that is more.
"""
