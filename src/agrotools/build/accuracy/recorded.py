"""Differences between recorded observations and the truth, with one measure for drawn scenes and photographs.

Drawn scenes are easier than photographs for some tools and harder for others, so figures on drawn scenes should be read
next to those on photographs.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any, Literal, cast

from agrotools.core import ReferenceStep, Sample
from agrotools.text.agreement_values import box_iou

Result = Mapping[str, Any]
Kind = Literal["difference", "relative, %", "equal, %", "IoU"]


@dataclass(frozen=True)
class ComparedField:
    """Compared field of a tool's result. ``read`` returns None if the result does not have the field."""

    tool: str
    what: str
    kind: Kind
    read: Callable[[Result], Any]
    needs: Callable[[Result], bool] = lambda _: True


@dataclass(frozen=True)
class FieldAgreement:
    """Agreement of observed and true values of one field.

    ``figure``: median difference, median relative difference in percent, share of equal values in percent, or median
    intersection over union, over ``n`` calls with a value. ``without``: number of calls that failed or left the value
    open.
    """

    tool: str
    what: str
    kind: Kind
    figure: float | None
    n: int
    without: int


def _field(name: str) -> Callable[[Result], Any]:
    return lambda result: result.get(name)


def _mean_diameter(result: Result) -> float | None:
    sizes = [fruit["diameter_mm"] for fruit in result.get("fruits") or () if fruit.get("diameter_mm") is not None]
    return sum(sizes) / len(sizes) if sizes else None


def _name(result: Result) -> str | None:
    """Return the first candidate of a diagnosis, or the species; None if the tool abstained."""
    if result.get("abstained"):
        return None
    candidates = result.get("candidates")
    if isinstance(candidates, Sequence) and candidates and "species" not in result:
        return str(candidates[0].get("kb_id") or candidates[0].get("label"))
    return cast("str | None", result.get("kb_id"))


def _event(result: Result) -> Any:
    pond = result.get("pond")
    return pond.get("event") if isinstance(pond, Mapping) else None


def _box(result: Result) -> Any:
    regions = result.get("regions") or ()
    return regions[0].get("box") if len(regions) == 1 else None


COMPARED = (
    ComparedField("diagnose_pest_disease", "entry named", "equal, %", _name),
    ComparedField("identify_weed", "entry named", "equal, %", _name),
    ComparedField("count_objects", "count", "difference", _field("count")),
    ComparedField("count_objects", "count", "relative, %", _field("count"), lambda truth: bool(truth.get("count"))),
    ComparedField("measure_fruit_size", "mean diameter, mm", "difference", _mean_diameter),
    ComparedField("measure_weed_phenotype", "height, cm", "difference", _field("height_cm")),
    ComparedField("extract_marked_region", "box", "IoU", _box),
    ComparedField("analyze_lesions", "severity, points", "difference", _field("severity_pct")),
    ComparedField("estimate_canopy_height", "mean height, m", "difference", _field("mean_m")),
    ComparedField("estimate_canopy_height", "cover, points", "difference", _field("cover_pct")),
    ComparedField("measure_crop_weed_area", "plant cover, points", "difference", _field("veg_pct")),
    ComparedField("measure_crop_weed_area", "weeds, points", "difference", _field("weed_pct")),
    ComparedField("detect_change", "changed or not", "equal, %", _field("changed")),
    ComparedField("detect_change", "changed share, points", "difference", _field("change_pct")),
    ComparedField("detect_change", "pond event", "equal, %", _event),
    ComparedField(
        "describe_region", "area", "relative, %", _field("area_px"), lambda truth: bool(truth.get("area_px"))
    ),
)
"""Compared fields by tool."""


def compare_fields(samples: Iterable[Sample]) -> list[FieldAgreement]:
    """Compare truth and observation of all reference steps that have both, each distinct call once."""
    steps: dict[str, list[ReferenceStep]] = defaultdict(list)
    seen: set[tuple[str, ...]] = set()
    for sample in samples:
        paths = sorted(f"{file.name}={file.path}" for file in sample.files)
        for step in sample.reference.steps if sample.reference else ():
            call = (step.tool, repr(step.arguments), *paths)
            if step.truth is not None and step.observation is not None and call not in seen:
                seen.add(call)
                steps[step.tool].append(step)
    rows = [_compare_field(compared, steps[compared.tool]) for compared in COMPARED if compared.tool in steps]
    return [row for row in rows if row.n or row.without]


def _compare_field(compared: ComparedField, steps: Sequence[ReferenceStep]) -> FieldAgreement:
    figures: list[float] = []
    without = 0
    for step in steps:
        truth = cast(Result, step.truth)
        expected = compared.read(truth)
        if expected is None or not compared.needs(truth):
            continue
        observed = step.observation.result if step.observation else None
        value = compared.read(cast(Result, observed)) if observed is not None else None
        if value is None:
            without += 1
        elif compared.kind == "equal, %":
            figures.append(100.0 * (value == expected))
        elif compared.kind == "IoU":
            figures.append(box_iou(value, expected))
        else:
            off = abs(float(value) - float(expected))
            figures.append(off if compared.kind == "difference" else 100 * off / abs(float(expected)))
    average = mean if compared.kind == "equal, %" else median
    figure = average(figures) if figures else None
    return FieldAgreement(compared.tool, compared.what, compared.kind, figure, len(figures), without)
