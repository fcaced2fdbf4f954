"""Questions about parts of one picture: halves, quarters, a box."""

from agrotools.build import tolerances
from agrotools.build.questions.parts import calculated, halves, highest_quarter, obs, quarters, random_box
from agrotools.build.questions.question import Areas, Ask, Draft, Measure, Question
from agrotools.core import ExactSlot, ToleranceSlot


def _denser_half(ask: Ask) -> Draft | None:
    upright = ask.rng.uniform() < 0.5
    names = ("left", "right") if upright else ("upper", "lower")
    regions = halves(ask.picture, upright)

    def slots(areas: Areas) -> tuple[ExactSlot | ToleranceSlot, ...]:
        first = areas[0].veg_pct > areas[1].veg_pct
        value = names[0] if first else names[1]
        return (
            ExactSlot(
                name="denser_half", label=f"half with the denser plant cover: {names[0]} or {names[1]}", value=value,
                choices=names, aliases={name: (f"{name} half",) for name in names},
                from_=f"'{names[0]}' if {obs(0, 'veg_pct')} > {obs(1, 'veg_pct')} else '{names[1]}'",
            ),
            ToleranceSlot(
                name="denser_cover", label="plant cover of that half", unit="%",
                abs_tol=tolerances.of_cover().abs_tol, value=max(area.veg_pct for area in areas),
                from_=f"max({obs(0, 'veg_pct')}, {obs(1, 'veg_pct')})",
            ),
        )  # fmt: skip

    measures = tuple(Measure(0, region) for region in regions)
    return Draft(
        slots,
        "exact",
        measures,
        words={"first": names[0], "second": names[1], "First": names[0].capitalize()},
        clear=_apart,
    )


def _apart(areas: Areas) -> bool:
    low, high = sorted(area.veg_pct for area in areas)
    return high - low >= 1.5 and high >= 1.25 * low


def _cover_in_box(ask: Ask) -> Draft | None:
    for _ in range(20):
        box = random_box(ask.rng, ask.picture)
        if ask.area(0, box).veg_pct >= tolerances.LEAST_COVER:
            break
    else:
        return None

    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        return (
            ToleranceSlot(
                name="cover_in_box", label="plant cover inside the rectangle", value=areas[0].veg_pct, unit="%",
                abs_tol=tolerances.of_cover().abs_tol, from_=obs(0, "veg_pct"),
            ),
        )  # fmt: skip

    words = {"x0": str(box[0]), "y0": str(box[1]), "x1": str(box[2]), "y1": str(box[3])}
    return Draft(slots, "tolerance", (Measure(0, box),), words=words)


def _half_difference(ask: Ask) -> Draft | None:
    upright = ask.rng.uniform() < 0.5
    names = ("left", "right") if upright else ("upper", "lower")
    regions = halves(ask.picture, upright)
    covers = [ask.area(0, region).veg_pct for region in regions]
    margin = tolerances.of_difference(*covers).abs_tol
    if abs(covers[0] - covers[1]) < 2 * margin:
        return None

    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        return (
            ToleranceSlot(
                name="difference", label="difference in plant cover between the halves, in percentage points", unit="%",
                value=abs(areas[0].veg_pct - areas[1].veg_pct), abs_tol=margin, from_=obs(2, "value"),
            ),
            *(
                ToleranceSlot(
                    name=f"{name}_half_cover", label=f"plant cover of the {names[k]} half", unit="%",
                    value=areas[k].veg_pct, abs_tol=tolerances.of_cover().abs_tol, from_=obs(k, "veg_pct"),
                )
                for k, name in enumerate(("first", "second"))
            ),
        )  # fmt: skip

    call = calculated(
        "abs(first - second)", {"first": (0, "veg_pct"), "second": (1, "veg_pct")}, unit="%",
        thought="The difference of the two covers.",
    )  # fmt: skip
    measures = tuple(Measure(0, region) for region in regions)
    return Draft(slots, "tolerance", measures, (call,), {"first": names[0], "second": names[1]})


def _weediest_quarter(ask: Ask) -> Draft | None:
    measures = tuple(Measure(0, region) for region in quarters(ask.picture))

    def slots(areas: Areas) -> tuple[ExactSlot, ...]:
        values = [area.weed_pct for area in areas]
        return (highest_quarter("weediest_quarter", "quarter with most weeds", "weed_pct", values),)

    def clear(areas: Areas) -> bool:
        second, first = sorted(area.weed_pct for area in areas)[-2:]
        return first - second >= 1.0 and first >= 1.25 * second

    return Draft(slots, "exact", measures, clear=clear)


REGIONS: tuple[Question, ...] = (
    Question("denser_half", "weed_crop_area", 1, _denser_half),
    Question("cover_in_box", "weed_crop_area", 1, _cover_in_box),
    Question("half_difference", "weed_crop_area", 1, _half_difference),
    Question("weediest_quarter", "weed_crop_area", 1, _weediest_quarter),
)
