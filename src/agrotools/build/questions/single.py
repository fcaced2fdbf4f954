"""Questions about one picture."""

from agrotools.build import tolerances
from agrotools.build.questions.parts import (
    calculated,
    cover_clear_of,
    obs,
    round_area_ha,
)
from agrotools.build.questions.question import Areas, Ask, Draft, Question
from agrotools.core import BooleanSlot, ExactSlot, ToleranceSlot


def _plant_cover(ask: Ask) -> Draft | None:
    if ask.area().veg_pct < tolerances.LEAST_COVER:
        return None

    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        return (
            ToleranceSlot(
                name="plant_cover", label="share of the ground covered by plants", value=areas[0].veg_pct, unit="%",
                abs_tol=tolerances.of_cover().abs_tol, from_=obs(0, "veg_pct"),
            ),
        )  # fmt: skip

    return Draft(slots, "tolerance")


def _bare_soil(_: Ask) -> Draft | None:
    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        return (
            ToleranceSlot(
                name="bare_soil", label="share of the image that is bare soil", value=areas[0].soil_pct, unit="%",
                abs_tol=tolerances.of_cover().abs_tol, from_=f"100 - {obs(0, 'veg_pct')}",
            ),
        )  # fmt: skip

    return Draft(slots, "tolerance")


def _weed_cover(ask: Ask) -> Draft | None:
    if ask.area().weed_pct < tolerances.LEAST_COVER:
        return None

    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        return (
            ToleranceSlot(
                name="weed_cover", label="share of the image area under weeds", value=areas[0].weed_pct, unit="%",
                abs_tol=tolerances.of_cover().abs_tol, from_=obs(0, "weed_pct"),
            ),
        )  # fmt: skip

    return Draft(slots, "tolerance")


def _weed_share(ask: Ask) -> Draft | None:
    area = ask.area()
    if not area.crop_px or not area.weed_px:
        return None
    margin = tolerances.of_share(area.weed_pct, area.crop_pct).abs_tol

    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        return (
            ToleranceSlot(
                name="weed_share", label="share of weeds in the area covered by plants", value=areas[0].weed_share_pct,
                unit="%", abs_tol=margin, from_=obs(0, "weed_share_of_veg_pct"),
            ),
        )  # fmt: skip

    return Draft(slots, "tolerance")


def _crop_share(ask: Ask) -> Draft | None:
    area = ask.area()
    if not area.crop_px or not area.weed_px:
        return None
    margin = tolerances.of_share(area.crop_pct, area.weed_pct).abs_tol

    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        return (
            ToleranceSlot(
                name="crop_share", label="share of the crop in the area covered by plants",
                value=100.0 - areas[0].weed_share_pct, unit="%", abs_tol=margin,
                from_=f"100 - {obs(0, 'weed_share_of_veg_pct')}",
            ),
        )  # fmt: skip

    return Draft(slots, "tolerance")


def _weed_crop_ratio(ask: Ask) -> Draft | None:
    area = ask.area()
    if area.ratio is None or not 0.1 <= area.ratio <= 12:
        return None
    margin = tolerances.of_quotient(area.weed_pct, area.crop_pct).rel_tol

    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        return (
            ToleranceSlot(
                name="weed_to_crop", label="weed area divided by crop area", value=areas[0].ratio or 0.0,
                rel_tol=margin, from_=obs(0, "weed_to_crop_ratio"),
            ),
        )  # fmt: skip

    return Draft(slots, "tolerance")


def _weed_limit(ask: Ask) -> Draft | None:
    cover = ask.area().weed_pct
    limit = cover_clear_of(ask.rng, (cover,), range(5, 13))
    if limit is None or cover < tolerances.LEAST_COVER:
        return None

    def slots(areas: Areas) -> tuple[BooleanSlot | ToleranceSlot, ...]:
        return (
            BooleanSlot(
                name="above_limit", label=f"weeds cover more than {limit} % of the ground",
                value=areas[0].weed_pct > limit, from_=f"{obs(0, 'weed_pct')} > {limit}",
            ),
            ToleranceSlot(
                name="weed_cover", label="share of the image area under weeds", value=areas[0].weed_pct, unit="%",
                abs_tol=tolerances.of_cover().abs_tol, from_=obs(0, "weed_pct"),
            ),
        )  # fmt: skip

    return Draft(slots, "exact", words={"limit": str(limit)}, clear=lambda areas: abs(areas[0].weed_pct - limit) >= 1.0)


def _leading_plants(ask: Ask) -> Draft | None:
    area = ask.area()
    if not area.crop_px or not area.weed_px:
        return None
    margin = tolerances.of_quotient(area.weed_pct, area.crop_pct).rel_tol
    crop, weeds = obs(0, "crop_px"), obs(0, "weed_px")

    def slots(areas: Areas) -> tuple[ExactSlot | ToleranceSlot, ...]:
        leads = areas[0].weed_px > areas[0].crop_px
        low, high = sorted((areas[0].crop_px, areas[0].weed_px))
        return (
            ExactSlot(
                name="larger_part", label="what takes up the larger area, crop or weeds",
                value="weeds" if leads else "crop", choices=("crop", "weeds"),
                aliases={"crop": ("crops", "crop plants"), "weeds": ("weed",)},
                from_=f"'weeds' if {weeds} > {crop} else 'crop'",
            ),
            ToleranceSlot(
                name="area_times", label="the larger of the two areas divided by the smaller", value=high / low,
                rel_tol=margin, from_=f"max({crop}, {weeds}) / min({crop}, {weeds})",
            ),
        )  # fmt: skip

    def clear(areas: Areas) -> bool:
        low, high = sorted((areas[0].crop_px, areas[0].weed_px))
        return high >= 1.5 * low

    return Draft(slots, "exact", clear=clear)


_CLASSES = ("light", "moderate", "heavy")
_EDGES = ((1, 3), (2, 5), (2, 7), (3, 8), (4, 10), (5, 12), (6, 15), (8, 20), (12, 25))
"""Covers of weeds in percent from which on they are moderate, and heavy."""


def _pressure_class(ask: Ask) -> Draft | None:
    cover = ask.area().weed_pct
    edges = [_EDGES[int(k)] for k in ask.rng.permutation(len(_EDGES))]
    settled = [pair for pair in edges if all(abs(cover - edge) >= 0.5 for edge in pair)]
    # The class is drawn before the edges, so that none is the usual one.
    wanted = int(ask.rng.integers(len(_CLASSES)))
    fitting = [pair for pair in settled if sum(cover >= edge for edge in pair) == wanted] or settled
    if not fitting:
        return None
    first, second = fitting[0]

    def of(weed_pct: float) -> str:
        return _CLASSES[0] if weed_pct < first else _CLASSES[1] if weed_pct < second else _CLASSES[2]

    def slots(areas: Areas) -> tuple[ExactSlot | ToleranceSlot, ...]:
        value = of(areas[0].weed_pct)
        weed = obs(0, "weed_pct")
        return (
            ExactSlot(
                name="weed_pressure", label="weed pressure: light, moderate or heavy", value=value,
                choices=_CLASSES,
                from_=f"'light' if {weed} < {first} else ('moderate' if {weed} < {second} else 'heavy')",
            ),
            ToleranceSlot(
                name="weed_cover", label="share of the image area under weeds", value=areas[0].weed_pct, unit="%",
                abs_tol=tolerances.of_cover().abs_tol, from_=weed,
            ),
        )  # fmt: skip

    def clear(areas: Areas) -> bool:
        return all(abs(areas[0].weed_pct - edge) >= 0.5 for edge in (first, second))

    return Draft(slots, "exact", words={"first": str(first), "second": str(second)}, clear=clear)


def _weeds_in_field(ask: Ask) -> Draft | None:
    weed_pct = ask.area().weed_pct
    if weed_pct < 1.0:
        return None
    hectares = round_area_ha(ask.rng)
    margin = tolerances.of_product(weed_pct).rel_tol

    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        return (
            ToleranceSlot(
                name="weed_area", label="area under weeds in the whole field", unit="m^2", rel_tol=margin,
                value=areas[0].weed_pct / 100.0 * hectares * 10_000, from_=obs(1, "value"),
            ),
        )  # fmt: skip

    call = calculated(
        "cover / 100 * hectares * 10000", {"cover": (0, "weed_pct")}, {"hectares": hectares}, unit="m^2",
        thought="The same share of the whole field is under weeds.",
    )  # fmt: skip
    return Draft(slots, "tolerance", then=(call,), words={"hectares": f"{hectares:g}"})


SINGLE: tuple[Question, ...] = (
    Question("plant_cover", "weed_crop_area", 1, _plant_cover),
    Question("bare_soil", "weed_crop_area", 1, _bare_soil),
    Question("weed_cover", "weed_crop_area", 1, _weed_cover),
    Question("weed_share", "weed_crop_area", 1, _weed_share),
    Question("crop_share", "weed_crop_area", 1, _crop_share),
    Question("weed_crop_ratio", "weed_crop_area", 1, _weed_crop_ratio),
    Question("weed_limit", "weed_crop_area", 1, _weed_limit),
    Question("leading_plants", "weed_crop_area", 1, _leading_plants),
    Question("pressure_class", "weed_crop_area", 1, _pressure_class),
    Question("weeds_in_field", "weed_crop_area", 1, _weeds_in_field),
)
