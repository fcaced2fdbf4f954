"""Answers in metres of which nobody says how many pixels they are."""

import re
from collections.abc import Iterable

from agrotools.build.quality.finding import Finding
from agrotools.core import ExactSlot, Sample, ToleranceSlot
from agrotools.text.units import UNITS, canonical_unit, unit_pattern

_PHYSICAL = {"length", "area", "volume", "density", "growth"}
_SCALE_WORDS = re.compile(
    r"\b(?:ruler|scale|coin|tape|checkerboard|pixels? per|per pixel|resolution|gsd|ground sampling|distance|focal|"
    r"intrinsics|side length|known (?:size|diameter))\b|px/|/ ?px|"
    r"比例尺|标尺|直尺|尺子|硬币|分辨率|每像素|像素/|距离|焦距|边长",
    re.IGNORECASE,
)
_QUANTITY = re.compile(rf"\d\s*{unit_pattern()}", re.IGNORECASE)
_VALUES_ARE_METRES = {"estimate_canopy_height"}
"""Tools that read lengths from the values of a raster, whatever its pixels measure."""


def check_scale(samples: Iterable[Sample]) -> Iterable[Finding]:
    """Check ``ambiguous_scale``: an answer in physical units, and neither a file nor the question gives a scale."""
    for sample in samples:
        units = [slot.unit for slot in sample.answer if isinstance(slot, ToleranceSlot | ExactSlot) and slot.unit]
        physical = [unit for unit in units if _dimension(unit) in _PHYSICAL]
        if not physical or _has_scale(sample, {_dimension(unit) for unit in physical}):
            continue
        message = f"the answer is in {physical[0]}, but no file has gsd_m or intrinsics and the question names no scale"
        yield Finding(id=sample.id, check="ambiguous_scale", severity="warning", message=message)


def _has_scale(sample: Sample, dimensions: set[str | None]) -> bool:
    if any(file.gsd_m or file.intrinsics or file.crs or file.kind == "depth" for file in sample.files):
        return True
    if dimensions == {"length"} and sample.reference and _VALUES_ARE_METRES & set(sample.reference.tools):
        return True
    texts = [sample.query, *(file.note or "" for file in sample.files)]
    if any(_SCALE_WORDS.search(text) for text in texts):
        return True
    # "The field has 3 ha": a share of that needs no scale of the picture. "The disc is 2.4 cm across" is one.
    stated = {_dimension(match["unit"]) for text in texts for match in _QUANTITY.finditer(text)}
    return bool(stated & _PHYSICAL)


def _dimension(unit: str) -> str | None:
    known = canonical_unit(unit)
    return UNITS[known].dimension if known else None
