"""Parts that many questions share: references, calculations, regions, round numbers."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from pydantic import JsonValue

from agrotools.build import area_truth
from agrotools.build.area_truth import Region
from agrotools.build.questions.question import Picture
from agrotools.build.references import PlannedCall, ref
from agrotools.core import ExactSlot


def obs(step: int, field: str) -> str:
    """``steps[0].observation.weed_pct``, as it stands in a slot's ``from``."""
    return f"steps[{step}].observation.{field}"


def calculated(
    expression: str,
    measured: Mapping[str, tuple[int, str]],
    given: Mapping[str, float] | None = None,
    *,
    unit: str | None = None,
    thought: str = "",
) -> PlannedCall:
    """A calculation with variables that are measured (step, field) or given in the question."""
    variables: dict[str, JsonValue] = {name: ref(*source) for name, source in measured.items()}
    variables |= dict(given or {})
    arguments: dict[str, JsonValue] = {"expression": expression, "variables": variables}
    if unit is not None:
        arguments["unit"] = unit
    return PlannedCall("calculate", arguments, thought=thought)


def halves(picture: Picture, upright: bool) -> tuple[Region, Region]:
    """Left and right half (``upright``), or upper and lower."""
    across, down = area_truth.halves(picture.width, picture.height)
    (_, first), (_, second) = across if upright else down
    return first, second


QUARTERS = tuple(name for name, _ in area_truth.quarters(2, 2))


def quarters(picture: Picture) -> tuple[Region, ...]:
    """The regions of ``QUARTERS``, in that order."""
    return tuple(region for _, region in area_truth.quarters(picture.width, picture.height))


def highest_quarter(name: str, what: str, field: str, values: Sequence[float]) -> ExactSlot:
    """Slot for the quarter with the highest of ``values``, measured as ``field`` by the steps 0 to 3."""
    value = QUARTERS[values.index(max(values))]
    measured = ", ".join(obs(step, field) for step in range(len(QUARTERS)))
    return ExactSlot(
        name=name,
        label=f"{what}: {', '.join(QUARTERS)}",
        value=value,
        choices=QUARTERS,
        aliases={name: (name.replace("top", "upper").replace("bottom", "lower"),) for name in QUARTERS},
        from_=f"label_of_max([{', '.join(map(repr, QUARTERS))}], [{measured}])",
    )


def random_box(rng: np.random.Generator, picture: Picture) -> Region:
    """A box of a third to two thirds of each side, at multiples of 20 px."""
    width = round(picture.width * rng.uniform(0.35, 0.65) / 20) * 20
    height = round(picture.height * rng.uniform(0.35, 0.65) / 20) * 20
    x0 = int(rng.integers(0, (picture.width - width) // 20 + 1)) * 20
    y0 = int(rng.integers(0, (picture.height - height) // 20 + 1)) * 20
    return x0, y0, x0 + width, y0 + height


def cover_clear_of(
    rng: np.random.Generator, covers: Iterable[float], limits: Sequence[int], apart: float = 1.0
) -> int | None:
    """One of ``limits`` (percent) that stays ``apart`` from every cover: by chance below the largest or above it.

    ``limits`` are to be near the middle of usual covers, so that their size does not tell which."""
    covers = tuple(covers)
    largest = max(covers)
    near = [limit for limit in limits if all(abs(limit - cover) >= apart for cover in covers)]
    low = [limit for limit in near if limit < largest]
    high = [limit for limit in near if limit > largest]
    sides = [side for side in (low, high) if side]
    if not sides:
        return None
    side = sides[int(rng.integers(len(sides)))]
    return int(side[int(rng.integers(len(side)))])


def round_area_ha(rng: np.random.Generator) -> float:
    """Size of a field as people say it."""
    return float(rng.choice([1.4, 2.5, 3.6, 4.2, 5.5, 6.8, 7.5, 8.4, 12.5, 16.0]))
