"""Templates of ``own.toml`` made into those of one column: its words, its tolerances, where its tool has the answer."""

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from agrotools.build.own_photos.plan import Column, Measure, Plan, measures
from agrotools.build.templates import Template, load_templates
from agrotools.build.templates.wording import Language

_FAMILIES = {"number": ("own_number",), "name": ("own_name",), "yes": ("own_statement",), "advice": ("own_advice",)}
_LIMITS = 5
_MOST_FACTS = 3


def templates_for(
    column: Column, place: int, plan: Plan, values: Sequence[float], *, counted_per_area: bool
) -> list[Template]:
    """Templates that suit a column, in the plan's languages; ``of`` is :func:`kind_of_thing`.

    Columns with the same measure share wordings: each gets every n-th, so that no sentence is used twice.

    Args:
        place: of the column among those of the plan with the same kind of measure.
        values: the numbers of the column, from which limits are drawn.
        counted_per_area: True if the size of a pixel is known, so that counts per hectare can be computed.
    """
    measure = measures()[column.ask]
    about = plan.column(column.names_in) if column.names_in else None
    naming = measures()[about.ask] if about and about.is_asked else measure
    alike = sum(each.is_asked and measures()[each.ask].kind == measure.kind for each in plan.columns)
    families = {*_FAMILIES[measure.kind]}
    if measure.name == "count":
        families |= {"own_count", "own_density"} if counted_per_area else {"own_count"}
    templates: list[Template] = []
    for language in plan.languages:
        for template in load_templates("own", language):
            if template.of in families:
                templates += _of_column(template, place, alike, _ColumnInfo(column, measure, naming), values, language)
    return templates


def kind_of_thing(column: Column) -> str:
    """Name of a column's subjects."""
    return f"own:{column.column}"


class _ColumnInfo(NamedTuple):
    """A column, its measure, and (for advice) the measure that names the subject of the advice."""

    column: Column
    measure: Measure
    named: Measure


def _of_column(
    template: Template, place: int, alike: int, info: _ColumnInfo, values: Sequence[float], language: Language
) -> list[Template]:
    column, measure = info.column, info.measure
    limits = round_limits(values) if template.template == "own_limit" else []
    if template.template == "own_limit" and not limits:
        return []
    plain = json.dumps(template.model_dump(mode="json", by_alias=True))
    plain = re.sub(r"@(\d+)\.answer\b", lambda found: f"@{found[1]}.{info.named.answer}", plain)
    common = "common_name" if info.named.tool == "identify_weed" else "candidates[0].common_name"
    plain = re.sub(r"@(\d+)\.named\b", lambda found: f"@{found[1]}.{common}", plain)
    if measure.kind == "yes":
        # What the tool says of a photo with a yes: another word than healthy, or that it is a weed.
        plain = re.sub(r"(@\d+)\.[\w\[\].]+ == 'statement'", rf"{_yes_of(measure)}", plain)
    if language == "zh":
        plain = re.sub(r"\{(one_|two_)?(option_\d|called|suspected|sought|offered|names)\}", r"{\1zh_\2}", plain)
    data: dict[str, Any] = json.loads(plain)
    suffix = ("" if alike == 1 else f"_{place + 1}") + ("_zh" if language == "zh" else "")
    data |= {
        "template": f"{template.template}{suffix}",
        "of": kind_of_thing(column),
        "task_type": template.task_type if template.task_type == "plotting" else info.named.task_type,
        "given": {"limit": limits} if limits else {},
        "wordings": data["wordings"][place::alike],
    }
    absolute, relative = tolerance_of(column, measure)
    for slot in data["slots"]:
        slot["abs_tol"], slot["rel_tol"] = slot["abs_tol"] * absolute, slot["rel_tol"] * relative
        if slot["type"] == "tolerance" and slot["unit"] is None and measure.unit:
            slot["unit"] = measure.unit
    if template.of != "own_advice":
        return [Template.model_validate(data)]
    return [_with_facts(data, count) for count in range(1, _MOST_FACTS + 1)]


def tolerance_of(column: Column, measure: Measure) -> tuple[float, float]:
    """``abs_tol`` and ``rel_tol`` of one value of a column: the plan's, else the measure's. Never both 0."""
    if column.abs_tol is None and column.rel_tol is None:
        return measure.abs_tol, measure.rel_tol
    absolute, relative = column.abs_tol or 0.0, column.rel_tol or 0.0
    return (absolute, relative) if absolute or relative else (measure.abs_tol, measure.rel_tol)


def _yes_of(measure: Measure) -> str:
    return r"(\1.candidates[0].kind != 'healthy')" if measure.name == "diseased" else r"\1.is_weed"


def _with_facts(data: dict[str, Any], count: int) -> Template:
    """The template for answers of ``count`` key facts; each has every third wording."""
    slots = [{**slot, "facts": slot["facts"][:count]} for slot in data["slots"]]
    more = {"slots": slots, "clear": [f"{{facts}} == {count}"], "wordings": data["wordings"][count - 1 :: _MOST_FACTS]}
    return Template.model_validate({**data, **more, "template": f"{data['template']}_{count}"})


def round_limits(values: Sequence[float]) -> list[float]:
    """Up to five round numbers between the lower and the upper fifth of the values; none where all are alike."""
    ordered = sorted(values)
    if len(ordered) < 2 or ordered[0] == ordered[-1]:
        return []
    low, high = ordered[len(ordered) // 6], ordered[-1 - len(ordered) // 6]
    limits = [_round(low + (high - low) * (k + 0.5) / _LIMITS) for k in range(_LIMITS)]
    return list(dict.fromkeys(limit for limit in limits if ordered[0] < limit < ordered[-1]))


def _round(value: float) -> float:
    if value == 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    rounded = round(value / (5 * step)) * 5 * step if abs(value) >= 10 * step * 2 else round(value / step) * step
    return float(f"{rounded:.6g}")
