"""Questions whose answer is a chart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agrotools.build.area_truth import AreaTruth
from agrotools.build.questions.parts import (
    QUARTERS,
    calculated,
    halves,
    highest_quarter,
    obs,
    quarters,
    round_area_ha,
)
from agrotools.build.questions.question import Areas, Ask, Draft, Measure, Question
from agrotools.build.references import PlannedCall, ref
from agrotools.core import ExactSlot, FileSlot, PlotKind, PlotSeries, PlotSlot, PlotSpec, Slot

_BOTH = (Measure(0), Measure(1))


@dataclass(frozen=True)
class _Point:
    """A value of a chart: its category, where the chain has it, and what it is in truth."""

    x: str
    step: int
    field: str
    value: Callable[[Areas], float]


@dataclass(frozen=True)
class _Chart:
    """A chart to be drawn: the last call of a chain and the slot that it fills."""

    kind: PlotKind
    series: tuple[tuple[str, tuple[_Point, ...]], ...]
    title: str
    x_label: str
    y_label: str
    y_unit: str = "%"

    def call(self) -> PlannedCall:
        series: list[JsonValue] = [
            {"name": name, "x": [point.x for point in points], "y": [ref(point.step, point.field) for point in points]}
            for name, points in self.series
        ]
        arguments: dict[str, JsonValue] = {
            "kind": self.kind, "series": series, "title": self.title, "x_label": self.x_label, "y_label": self.y_label,
            "y_unit": self.y_unit,
        }  # fmt: skip
        return PlannedCall("plot", arguments, thought="All values are there; now the chart.")

    def slot(self, areas: Areas, step: int) -> PlotSlot:
        series = tuple(
            PlotSeries(name=name, x=tuple(p.x for p in points), y=tuple(_six(p.value(areas)) for p in points))
            for name, points in self.series
        )
        spec = PlotSpec(
            kind=self.kind, series=series, title=self.title, x_label=self.x_label, y_label=self.y_label,
            y_unit=self.y_unit, legend=self.kind == "pie" or len(series) > 1,
        )  # fmt: skip
        return PlotSlot(name="chart", label=self.title, value=spec.model_dump(mode="json"), from_=obs(step, "spec"))


def _six(value: float) -> float:
    """Tools round what they return to six significant digits."""
    return float(f"{value:.6g}")


def _of(position: int, field: str) -> Callable[[Areas], float]:
    return lambda areas: float(getattr(areas[position], field))


def _point(x: str, position: int, field: str) -> _Point:
    return _Point(x, position, "weed_share_of_veg_pct" if field == "weed_share_pct" else field, _of(position, field))


def _drawn(
    chart: _Chart,
    measures: tuple[Measure, ...] = (Measure(),),
    words: dict[str, str] | None = None,
    before: tuple[PlannedCall, ...] = (),
    more: Callable[[Areas], Sequence[Slot]] = lambda _: (),
    clear: Callable[[Areas], bool] = lambda _: True,
) -> Draft:
    step = len(measures) + len(before)

    def slots(areas: Areas) -> tuple[Slot, ...]:
        return (chart.slot(areas, step), *more(areas))

    return Draft(slots, "plot", measures, (*before, chart.call()), words or {}, clear)


_SURFACE = (("crop", "crop_pct"), ("weeds", "weed_pct"), ("bare soil", "soil_pct"))
_OPEN = (("plants", "veg_pct"), ("bare soil", "soil_pct"))


def _enough(areas: Sequence[AreaTruth], *fields: str) -> bool:
    """Nothing to be drawn is so small that 5 % of it is below what an image can tell."""
    return all(getattr(area, field) >= 0.4 for area in areas for field in fields)


def _surface_bars(ask: Ask) -> Draft | None:
    if not _enough([ask.area()], "crop_pct", "weed_pct"):
        return None
    points = tuple(_point(x, 0, field) for x, field in _SURFACE)
    return _drawn(_Chart("bar", (("cover", points),), "Crop, weeds and bare soil", "surface", "share of the area"))


def _weed_soil_bars(ask: Ask) -> Draft | None:
    if not _enough([ask.area()], "weed_pct"):
        return None
    quantities = (("plants", "veg_pct"), ("weeds", "weed_pct"), ("bare soil", "soil_pct"))
    points = tuple(_point(x, 0, field) for x, field in quantities)
    title = "Plants, weeds among them, and bare soil"
    return _drawn(_Chart("bar", (("cover", points),), title, "surface", "share of the area"))


def _plant_soil_pie(_: Ask) -> Draft | None:
    points = tuple(_point(x, 0, field) for x, field in _OPEN)
    return _drawn(_Chart("pie", (("surface", points),), "Plants and bare soil", "surface", "share of the area"))


def _quarter_bars(ask: Ask) -> Draft | None:
    regions = quarters(ask.picture)
    if not _enough([ask.area(0, region) for region in regions], "veg_pct"):
        return None
    points = tuple(_point(name, k, "veg_pct") for k, name in enumerate(QUARTERS))
    chart = _Chart("bar", (("plant cover", points),), "Plant cover by quarter of the image", "quarter", "plant cover")

    def densest(areas: Areas) -> tuple[ExactSlot, ...]:
        covers = [area.veg_pct for area in areas]
        return (highest_quarter("densest", "quarter with the highest bar", "veg_pct", covers),)

    def clear(areas: Areas) -> bool:
        second, first = sorted(area.veg_pct for area in areas)[-2:]
        return first - second >= 1.0 and first >= 1.15 * second

    return _drawn(chart, tuple(Measure(0, region) for region in regions), more=densest, clear=clear)


def _half_bars(ask: Ask) -> Draft | None:
    upright = ask.rng.uniform() < 0.5
    names = ("left", "right") if upright else ("upper", "lower")
    regions = halves(ask.picture, upright)
    if not _enough([ask.area(0, region) for region in regions], "veg_pct"):
        return None
    series = tuple(
        (label, tuple(_point(name, k, field) for k, name in enumerate(names)))
        for label, field in (("plants", "veg_pct"), ("bare soil", "soil_pct"))
    )
    title = f"Plants and bare soil, {names[0]} and {names[1]} half"
    chart = _Chart("grouped_bar", series, title, "half of the image", "share of the area")
    return _drawn(chart, tuple(Measure(0, region) for region in regions), {"first": names[0], "second": names[1]})


def _names(ask: Ask) -> dict[str, str]:
    return {"one": ask.pictures[0].name, "two": ask.pictures[1].name}


def _pair_surface(ask: Ask) -> Draft | None:
    names = tuple(picture.name for picture in ask.pictures)
    if not _enough([ask.area(0), ask.area(1)], "veg_pct"):
        return None
    series = tuple((label, tuple(_point(name, k, field) for k, name in enumerate(names))) for label, field in _OPEN)
    chart = _Chart("grouped_bar", series, "Plants and bare soil of two images", "image", "share of the area")
    return _drawn(chart, _BOTH, _names(ask))


def _pair_crop_weeds(ask: Ask) -> Draft | None:
    names = tuple(picture.name for picture in ask.pictures)
    if not _enough([ask.area(0), ask.area(1)], "crop_pct", "weed_pct"):
        return None
    series = tuple(
        (label, tuple(_point(name, k, field) for k, name in enumerate(names)))
        for label, field in (("crop", "crop_pct"), ("weeds", "weed_pct"))
    )
    chart = _Chart("grouped_bar", series, "Crop cover and weed cover of two images", "image", "share of the area")
    return _drawn(chart, _BOTH, _names(ask))


def _pair_weeds(ask: Ask) -> Draft | None:
    names = tuple(picture.name for picture in ask.pictures)
    if not _enough([ask.area(0), ask.area(1)], "weed_pct"):
        return None
    points = tuple(_point(name, k, "weed_pct") for k, name in enumerate(names))
    chart = _Chart("bar", (("weed cover", points),), "Weed cover of two images", "image", "weed cover")

    def taller(areas: Areas) -> tuple[FileSlot, ...]:
        more = areas[0].weed_pct > areas[1].weed_pct
        from_ = f"'{names[0]}' if {obs(0, 'weed_pct')} > {obs(1, 'weed_pct')} else '{names[1]}'"
        label = "image with the taller bar"
        return (FileSlot(name="taller", label=label, value=names[0 if more else 1], choices=names, from_=from_),)

    def clear(areas: Areas) -> bool:
        low, high = sorted(area.weed_pct for area in areas)
        return high - low >= 1.0 and high >= 1.25 * low

    return _drawn(chart, _BOTH, _names(ask), more=taller, clear=clear)


def _pair_shares(ask: Ask) -> Draft | None:
    names = tuple(picture.name for picture in ask.pictures)
    if not all(area.crop_px and area.weed_px for area in (ask.area(0), ask.area(1))):
        return None
    points = tuple(_point(name, k, "weed_share_pct") for k, name in enumerate(names))
    title = "Weeds as a share of the plants"
    return _drawn(
        _Chart("bar", (("weed share", points),), title, "image", "weeds in the plant area"), _BOTH, _names(ask)
    )


def _pair_and_mean(ask: Ask) -> Draft | None:
    names = tuple(picture.name for picture in ask.pictures)
    if not _enough([ask.area(0), ask.area(1)], "veg_pct"):
        return None
    variables = {"first": (0, "veg_pct"), "second": (1, "veg_pct")}
    mean = calculated("(first + second) / 2", variables, unit="%", thought="The mean of the two covers.")
    points = (
        *(_point(name, k, "veg_pct") for k, name in enumerate(names)),
        _Point("mean", 2, "value", lambda areas: (areas[0].veg_pct + areas[1].veg_pct) / 2),
    )
    chart = _Chart(
        "bar", (("plant cover", points),), "Plant cover of two images and their mean", "image", "plant cover"
    )
    return _drawn(chart, _BOTH, _names(ask), before=(mean,))


def _pair_halves(ask: Ask) -> Draft | None:
    upright = ask.rng.uniform() < 0.5
    halves_named = ("left", "right") if upright else ("upper", "lower")
    names = tuple(picture.name for picture in ask.pictures)
    measures = tuple(Measure(p, region) for p in range(2) for region in halves(ask.pictures[p], upright))
    if not _enough([ask.area(measure.picture, measure.region) for measure in measures], "veg_pct"):
        return None
    series = tuple(
        (half, tuple(_point(name, 2 * p + h, "veg_pct") for p, name in enumerate(names)))
        for h, half in enumerate(halves_named)
    )
    title = f"Plant cover of the {halves_named[0]} and {halves_named[1]} halves"
    words = {**_names(ask), "first": halves_named[0], "second": halves_named[1]}
    return _drawn(_Chart("grouped_bar", series, title, "image", "plant cover"), measures, words)


def _block_areas(ask: Ask) -> Draft | None:
    first, second = round_area_ha(ask.rng), round_area_ha(ask.rng)
    if first == second or not _enough([ask.area(0), ask.area(1)], "veg_pct"):
        return None
    names = tuple(picture.name for picture in ask.pictures)
    calls = tuple(
        calculated(
            "cover / 100 * hectares", {"cover": (k, "veg_pct")}, {"hectares": hectares}, unit="ha",
            thought=f"The green area of the block that looks like {names[k]}.",
        )
        for k, hectares in enumerate((first, second))
    )  # fmt: skip
    points = (
        _Point(names[0], 2, "value", lambda areas: areas[0].veg_pct / 100 * first),
        _Point(names[1], 3, "value", lambda areas: areas[1].veg_pct / 100 * second),
    )
    title = "Area under plants in two blocks"
    chart = _Chart("bar", (("area under plants", points),), title, "image", "area under plants", "ha")
    words = {**_names(ask), "first_ha": f"{first:g}", "second_ha": f"{second:g}"}
    return _drawn(chart, _BOTH, words, before=calls)


CHARTS: tuple[Question, ...] = (
    Question("surface_bars", "plotting", 1, _surface_bars),
    Question("weed_soil_bars", "plotting", 1, _weed_soil_bars),
    Question("plant_soil_pie", "plotting", 1, _plant_soil_pie),
    Question("quarter_bars", "plotting", 1, _quarter_bars),
    Question("half_bars", "plotting", 1, _half_bars),
    Question("pair_surface", "plotting", 2, _pair_surface),
    Question("pair_crop_weeds", "plotting", 2, _pair_crop_weeds),
    Question("pair_weeds", "plotting", 2, _pair_weeds),
    Question("pair_shares", "plotting", 2, _pair_shares),
    Question("pair_and_mean", "plotting", 2, _pair_and_mean),
    Question("pair_halves", "plotting", 2, _pair_halves),
    Question("block_areas", "plotting", 2, _block_areas),
)
