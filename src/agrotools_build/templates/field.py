"""Pictures of fields with crop, weeds and soil: the things for the templates ``field*.toml``."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from agrotools.core import Arguments, SampleFile
from agrotools_build import area_truth
from agrotools_build.area_truth import AreaTruth, Region
from agrotools_build.templates.thing import Thing

MEASURE = "measure_crop_weed_area"
TEMPLATES = ("field", "field_pairs", "field_charts")
"""Template files, with those about a single picture first."""

_ROUND_AREAS_HA = (1.4, 2.5, 3.6, 4.2, 5.5, 6.8, 7.5, 8.4, 12.5, 16.0)
"""Typical field sizes in hectares."""
_CLASS_EDGES = ((1, 3), (2, 5), (2, 7), (3, 8), (4, 10), (5, 12), (6, 15), (8, 20), (12, 25))
"""Weed covers in percent from which weeds count as moderate and as heavy."""


@dataclass(frozen=True)
class FieldPicture(Thing):
    """A picture with known areas of crop, weeds and soil, in total and in any region.

    ``width`` and ``height`` are in pixels; ``area`` returns the true counts of a region, or of the whole picture for
    None.
    """

    width: int = 0
    height: int = 0
    area: Callable[[Region | None], AreaTruth] = field(kw_only=True)

    def part(self, region: Region) -> "FieldPicture":
        return replace(
            self,
            arguments={**self.arguments, "region": list(region)},
            thought=f"{self.thought[:-1]} in the part asked for.",
            **_counts(self.area(region), self.files[0].gsd_m),
        )


def field_picture(
    files: tuple[SampleFile, ...],
    arguments: Arguments,
    area: Callable[[Region | None], AreaTruth],
    width: int,
    height: int,
    noun: str = "photo",
) -> FieldPicture:
    """Return a picture (``files[0]``, called ``noun``) that the tool measures with ``arguments``.

    ``area`` returns the true counts of a region, or of the whole picture for None.
    """
    name = files[0].name
    return FieldPicture(
        files=files,
        tool=MEASURE,
        arguments=arguments,
        called=name,
        thought=f"I need the areas of crop, weeds and bare soil in {name}.",
        words={"photo": noun, "photos": f"{noun}s"},
        width=width,
        height=height,
        area=area,
        **_counts(area(None), files[0].gsd_m),
    )


def _counts(area: AreaTruth, gsd_m: float | None) -> dict[str, Any]:
    readings = tuple(reading.as_result(gsd_m, digits=None) for reading in area.readings())
    return {"truth": area.as_result(gsd_m), "readings": readings}


DrawnPart = tuple[tuple[Thing, ...], Mapping[str, Any]]
"""Things to measure, and values of words."""


def drawn_parts(
    what: Sequence[str | int], shown: Sequence[Thing], rng: np.random.Generator
) -> DrawnPart | None:
    """Draw parts or values that suit the measured pictures, by the list ``drawn`` of a template; None if none do.

    Accepted lists: ``["halves"]`` and ``["quarters"]`` (parts of the pictures), ``["box", field, least]`` (a box with
    at least that much of a measured field), ``["limit", field, low, high]`` (a whole number at a distance from the
    field's values), ``["classes", field]`` (two class edges), ``["hectares", word...]`` (field sizes).
    """
    pictures = cast("Sequence[FieldPicture]", shown)
    kind, *more = what
    match kind:
        case "halves":
            return _halves(pictures, rng)
        case "quarters":
            (picture,) = pictures
            regions = area_truth.quarters(picture.width, picture.height)
            return tuple(picture.part(region) for _, region in regions), {}
        case "box":
            return _box(pictures[0], str(more[0]), float(more[1]), rng)
        case "limit":
            low, high = int(more[1]), int(more[2])
            limit = _limit_clear_of(rng, _values(pictures, str(more[0])), range(low, high + 1))
            return None if limit is None else (tuple(pictures), {"limit": limit})
        case "classes":
            edges = _class_edges(_values(pictures, str(more[0]))[0], rng)
            return (
                None
                if edges is None
                else (tuple(pictures), {"first": edges[0], "second": edges[1]})
            )
        case "hectares":
            return tuple(pictures), {str(word): float(rng.choice(_ROUND_AREAS_HA)) for word in more}
        case _:
            raise ValueError(f"{kind} cannot be drawn")


def _values(pictures: Iterable[Thing], name: str) -> list[float]:
    return [cast(float, picture.readings[0][name]) for picture in pictures]


def _halves(pictures: Sequence[FieldPicture], rng: np.random.Generator) -> DrawnPart:
    """Return the left and right halves of all pictures, or the upper and lower halves."""
    upright = rng.uniform() < 0.5
    halves = [area_truth.halves(picture.width, picture.height)[not upright] for picture in pictures]
    parts = tuple(
        picture.part(region)
        for picture, of_it in zip(pictures, halves, strict=True)
        for _, region in of_it
    )
    first, second = (name for name, _ in halves[0])
    words = {
        "first": first,
        "second": second,
        "first_half": f"{first} half",
        "second_half": f"{second} half",
    }
    called = {
        place: picture.called for place, picture in zip(("one", "two"), pictures, strict=False)
    }
    return parts, words | called


def _box(
    picture: FieldPicture, name: str, least: float, rng: np.random.Generator
) -> DrawnPart | None:
    """Return a box with sides of 35 to 65 % of the picture's, at multiples of 20 px."""
    for _ in range(20):
        width = round(picture.width * rng.uniform(0.35, 0.65) / 20) * 20
        height = round(picture.height * rng.uniform(0.35, 0.65) / 20) * 20
        x0 = int(rng.integers(0, (picture.width - width) // 20 + 1)) * 20
        y0 = int(rng.integers(0, (picture.height - height) // 20 + 1)) * 20
        part = picture.part((x0, y0, x0 + width, y0 + height))
        if _values([part], name)[0] >= least:
            return (part,), {"x0": x0, "y0": y0, "x1": x0 + width, "y1": y0 + height}
    return None


def _limit_clear_of(
    rng: np.random.Generator, covers: Sequence[float], limits: Iterable[int]
) -> int | None:
    """Return a limit (percent) at least one point from every cover, at random below or above the largest cover."""
    clear = [limit for limit in limits if all(abs(limit - cover) >= 1.0 for cover in covers)]
    sides = [
        side
        for above in (False, True)
        if (side := [each for each in clear if (each > max(covers)) == above])
    ]
    if not sides:
        return None
    side = sides[int(rng.integers(len(sides)))]
    return side[int(rng.integers(len(side)))]


def _class_edges(cover: float, rng: np.random.Generator) -> tuple[int, int] | None:
    """Return class edges at least half a point from the cover; its class is drawn first, so that none is typical."""
    edges = [_CLASS_EDGES[int(k)] for k in rng.permutation(len(_CLASS_EDGES))]
    clear = [pair for pair in edges if all(abs(cover - edge) >= 0.5 for edge in pair)]
    wanted = int(rng.integers(3))
    fitting = [pair for pair in clear if sum(cover >= edge for edge in pair) == wanted] or clear
    return fitting[0] if fitting else None
