"""Questions about two pictures."""

from collections.abc import Callable

from agrotools.build import tolerances
from agrotools.build.area_truth import AreaTruth
from agrotools.build.questions.parts import calculated, cover_clear_of, obs, round_area_ha
from agrotools.build.questions.question import Areas, Ask, Draft, Measure, Question
from agrotools.core import BooleanSlot, FileSlot, ToleranceSlot

_BOTH = (Measure(0), Measure(1))


def _file_slot(ask: Ask, name: str, label: str, field: str, first: bool) -> FileSlot:
    names = (ask.pictures[0].name, ask.pictures[1].name)
    from_ = f"'{names[0]}' if {obs(0, field)} > {obs(1, field)} else '{names[1]}'"
    return FileSlot(name=name, label=label, value=names[0] if first else names[1], choices=names, from_=from_)


def _names(ask: Ask) -> dict[str, str]:
    return {"one": ask.pictures[0].name, "two": ask.pictures[1].name}


def _apart(value: Callable[[AreaTruth], float], least: float) -> Callable[[Areas], bool]:
    """The two values differ by at least ``least`` and by a quarter of the smaller one."""

    def clear(areas: Areas) -> bool:
        low, high = sorted(value(area) for area in areas[:2])
        return high - low >= least and high >= 1.25 * low

    return clear


def _weedier(ask: Ask) -> Draft | None:
    if max(ask.area(k).weed_pct for k in range(2)) < tolerances.LEAST_COVER:
        return None

    def slots(areas: Areas) -> tuple[FileSlot | ToleranceSlot, ...]:
        more = areas[0].weed_pct > areas[1].weed_pct
        return (
            _file_slot(ask, "weedier_image", "image with the larger area under weeds", "weed_pct", more),
            ToleranceSlot(
                name="larger_weed_cover", label="weed cover of that image", unit="%",
                abs_tol=tolerances.of_cover().abs_tol, value=max(area.weed_pct for area in areas),
                from_=f"max({obs(0, 'weed_pct')}, {obs(1, 'weed_pct')})",
            ),
        )  # fmt: skip

    return Draft(slots, "exact", _BOTH, words=_names(ask), clear=_apart(lambda area: area.weed_pct, 1.0))


def _more_soil(ask: Ask) -> Draft | None:
    def slots(areas: Areas) -> tuple[FileSlot | ToleranceSlot, ...]:
        more = areas[0].soil_pct > areas[1].soil_pct
        names = (ask.pictures[0].name, ask.pictures[1].name)
        from_ = f"'{names[0]}' if {obs(0, 'veg_pct')} < {obs(1, 'veg_pct')} else '{names[1]}'"
        label = "image with more bare soil"
        return (
            FileSlot(name="barer_image", label=label, value=names[0 if more else 1], choices=names, from_=from_),
            ToleranceSlot(
                name="larger_bare_soil", label="share of that image that is bare soil", unit="%",
                abs_tol=tolerances.of_cover().abs_tol, value=max(area.soil_pct for area in areas),
                from_=f"100 - min({obs(0, 'veg_pct')}, {obs(1, 'veg_pct')})",
            ),
        )  # fmt: skip

    return Draft(slots, "exact", _BOTH, words=_names(ask), clear=_apart(lambda area: area.veg_pct, 1.5))


def _weedier_share(ask: Ask) -> Draft | None:
    worse = max((ask.area(k) for k in range(2)), key=lambda area: area.weed_share_pct)
    if not worse.weed_px or not worse.crop_px:
        return None
    margin = tolerances.of_share(worse.weed_pct, worse.crop_pct).abs_tol

    def slots(areas: Areas) -> tuple[FileSlot | ToleranceSlot, ...]:
        more = areas[0].weed_share_pct > areas[1].weed_share_pct
        label = "image where weeds are the larger share of the plants"
        share = "weed_share_of_veg_pct"
        return (
            _file_slot(ask, "more_infested", label, share, more),
            ToleranceSlot(
                name="larger_weed_share", label="share of weeds in the plant area of that image", unit="%",
                abs_tol=margin, value=max(area.weed_share_pct for area in areas),
                from_=f"max({obs(0, share)}, {obs(1, share)})",
            ),
        )  # fmt: skip

    def clear(areas: Areas) -> bool:
        return abs(areas[0].weed_share_pct - areas[1].weed_share_pct) >= 5.0

    return Draft(slots, "exact", _BOTH, words=_names(ask), clear=clear)


def _covers(ask: Ask, areas: Areas) -> tuple[ToleranceSlot, ...]:
    return tuple(
        ToleranceSlot(
            name=name, label=f"plant cover of {picture.name}", value=area.veg_pct, unit="%",
            abs_tol=tolerances.of_cover().abs_tol, from_=obs(k, "veg_pct"),
        )
        for k, (name, picture, area) in enumerate(
            zip(("first_cover", "second_cover"), ask.pictures, areas, strict=True)
        )
    )  # fmt: skip


def _cover_gap(ask: Ask) -> Draft | None:
    covers = (ask.area(0).veg_pct, ask.area(1).veg_pct)
    margin = tolerances.of_difference(*covers).abs_tol
    if abs(covers[0] - covers[1]) < 2 * margin:
        return None

    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        return (
            ToleranceSlot(
                name="cover_gap", label="difference in plant cover, in percentage points", unit="%", abs_tol=margin,
                value=abs(areas[0].veg_pct - areas[1].veg_pct), from_=obs(2, "value"),
            ),
            *_covers(ask, areas),
        )  # fmt: skip

    variables = {"first": (0, "veg_pct"), "second": (1, "veg_pct")}
    call = calculated("abs(first - second)", variables, unit="%", thought="The difference of the two covers.")
    return Draft(slots, "tolerance", _BOTH, (call,), _names(ask))


def _weed_gap(ask: Ask) -> Draft | None:
    covers = (ask.area(0).weed_pct, ask.area(1).weed_pct)
    margin = tolerances.of_difference(*covers).abs_tol
    if abs(covers[0] - covers[1]) < 2 * margin:
        return None

    def slots(areas: Areas) -> tuple[FileSlot | ToleranceSlot, ...]:
        more = areas[0].weed_pct > areas[1].weed_pct
        return (
            _file_slot(ask, "weedier_image", "image with the larger area under weeds", "weed_pct", more),
            ToleranceSlot(
                name="weed_gap", label="by how many percentage points", unit="%", abs_tol=margin,
                value=abs(areas[0].weed_pct - areas[1].weed_pct), from_=obs(2, "value"),
            ),
        )  # fmt: skip

    variables = {"first": (0, "weed_pct"), "second": (1, "weed_pct")}
    call = calculated("abs(first - second)", variables, unit="%", thought="The difference of the two weed covers.")
    clear = _apart(lambda area: area.weed_pct, 1.0)
    return Draft(slots, "tolerance", _BOTH, (call,), _names(ask), clear)


def _mean_weeds(ask: Ask) -> Draft | None:
    if ask.area(0).weed_pct + ask.area(1).weed_pct < 2 * tolerances.LEAST_COVER:
        return None

    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        return (
            ToleranceSlot(
                name="mean_weed_cover", label="mean weed cover of the two images", unit="%",
                abs_tol=tolerances.of_cover().abs_tol, value=(areas[0].weed_pct + areas[1].weed_pct) / 2,
                from_=obs(2, "value"),
            ),
        )  # fmt: skip

    variables = {"first": (0, "weed_pct"), "second": (1, "weed_pct")}
    call = calculated("(first + second) / 2", variables, unit="%", thought="The mean of the two.")
    return Draft(slots, "tolerance", _BOTH, (call,), _names(ask))


def _mean_cover(ask: Ask) -> Draft | None:
    if ask.area(0).veg_pct + ask.area(1).veg_pct < 2 * tolerances.LEAST_COVER:
        return None

    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        return (
            ToleranceSlot(
                name="mean_cover", label="mean plant cover of the two images", unit="%",
                abs_tol=tolerances.of_cover().abs_tol, value=(areas[0].veg_pct + areas[1].veg_pct) / 2,
                from_=obs(2, "value"),
            ),
        )  # fmt: skip

    variables = {"first": (0, "veg_pct"), "second": (1, "veg_pct")}
    call = calculated("(first + second) / 2", variables, unit="%", thought="The mean of the two covers.")
    return Draft(slots, "tolerance", _BOTH, (call,), _names(ask))


def _times_more(ask: Ask) -> Draft | None:
    covers = (ask.area(0).veg_pct, ask.area(1).veg_pct)
    if min(covers) < 1.0 or max(covers) < 1.3 * min(covers):
        return None
    margin = tolerances.of_quotient(*covers).rel_tol

    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        low, high = sorted(area.veg_pct for area in areas)
        return (
            ToleranceSlot(
                name="times", label="larger plant cover divided by the smaller", value=high / low, rel_tol=margin,
                from_=obs(2, "value"),
            ),
            *_covers(ask, areas),
        )  # fmt: skip

    variables = {"first": (0, "veg_pct"), "second": (1, "veg_pct")}
    expression = "max(first, second) / min(first, second)"
    call = calculated(expression, variables, thought="The larger cover over the smaller.")
    return Draft(slots, "tolerance", _BOTH, (call,), _names(ask))


def _pooled_share(ask: Ask) -> Draft | None:
    first, second = ask.area(0), ask.area(1)
    weeds, crop = first.weed_px + second.weed_px, first.crop_px + second.crop_px
    if not weeds or not crop:
        return None
    total = first.total_px + second.total_px
    margin = tolerances.of_share(100 * weeds / total, 100 * crop / total).abs_tol

    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        named = sum(area.named_px for area in areas)
        return (
            ToleranceSlot(
                name="pooled_weed_share", label="share of weeds in the plant area of both images together", unit="%",
                value=100.0 * sum(area.weed_px for area in areas) / named, abs_tol=margin, from_=obs(2, "value"),
            ),
        )  # fmt: skip

    variables = {
        "weeds_a": (0, "weed_px"), "weeds_b": (1, "weed_px"), "crop_a": (0, "crop_px"), "crop_b": (1, "crop_px"),
    }  # fmt: skip
    expression = "100 * (weeds_a + weeds_b) / (weeds_a + weeds_b + crop_a + crop_b)"
    call = calculated(expression, variables, unit="%", thought="Weeds of both over all plants of both.")
    return Draft(slots, "tolerance", _BOTH, (call,), _names(ask))


def _both_below(ask: Ask) -> Draft | None:
    covers = (ask.area(0).veg_pct, ask.area(1).veg_pct)
    limit = cover_clear_of(ask.rng, covers, range(18, 41))
    if limit is None:
        return None

    def slots(areas: Areas) -> tuple[BooleanSlot | ToleranceSlot, ...]:
        return (
            BooleanSlot(
                name="both_below", label=f"plant cover is below {limit} % in both images",
                value=all(area.veg_pct < limit for area in areas),
                from_=f"{obs(0, 'veg_pct')} < {limit} and {obs(1, 'veg_pct')} < {limit}",
            ),
            *_covers(ask, areas),
        )  # fmt: skip

    return Draft(slots, "exact", _BOTH, words={**_names(ask), "limit": str(limit)})


def _blocks(ask: Ask) -> Draft | None:
    first, second = round_area_ha(ask.rng), round_area_ha(ask.rng)
    covers = (ask.area(0).weed_pct, ask.area(1).weed_pct)
    if first == second or sum(covers) < 2.0:
        return None
    margin = tolerances.of_sum(covers[0] / 100 * first, covers[1] / 100 * second).abs_tol

    def slots(areas: Areas) -> tuple[ToleranceSlot, ...]:
        return (
            ToleranceSlot(
                name="weed_area", label="area under weeds in both blocks together", unit="ha", abs_tol=margin,
                value=areas[0].weed_pct / 100 * first + areas[1].weed_pct / 100 * second, from_=obs(2, "value"),
            ),
        )  # fmt: skip

    call = calculated(
        "cover_a / 100 * hectares_a + cover_b / 100 * hectares_b",
        {"cover_a": (0, "weed_pct"), "cover_b": (1, "weed_pct")},
        {"hectares_a": first, "hectares_b": second},
        unit="ha", thought="Each block has the weed cover of its image.",
    )  # fmt: skip
    words = {**_names(ask), "first_ha": f"{first:g}", "second_ha": f"{second:g}"}
    return Draft(slots, "tolerance", _BOTH, (call,), words)


PAIRS: tuple[Question, ...] = (
    Question("weedier_image", "weed_crop_area", 2, _weedier),
    Question("barer_image", "weed_crop_area", 2, _more_soil),
    Question("more_infested", "weed_crop_area", 2, _weedier_share),
    Question("cover_gap", "weed_crop_area", 2, _cover_gap),
    Question("weed_gap", "weed_crop_area", 2, _weed_gap),
    Question("mean_weed_cover", "weed_crop_area", 2, _mean_weeds),
    Question("mean_plant_cover", "weed_crop_area", 2, _mean_cover),
    Question("times_more_cover", "weed_crop_area", 2, _times_more),
    Question("pooled_weed_share", "weed_crop_area", 2, _pooled_share),
    Question("both_below", "weed_crop_area", 2, _both_below),
    Question("weeds_in_blocks", "weed_crop_area", 2, _blocks),
)
