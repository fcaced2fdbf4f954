"""Which three bands tell crop, weeds and soil apart best: the ranking as a tool reports it."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from agrotools.core import SampleFile, ToolError
from agrotools.tools.segmentation.area_result import CROP, PLANTS, SOIL, WEED, BandTriplet, Separability
from agrotools.tools.segmentation.field_picture import raster_roles
from agrotools.vision.formats import Box
from agrotools.vision.rasters import RasterSource
from agrotools.vision.separability import rank_triplets

ClassesFrom = Literal["labels", "row", "model", "index"]

_MOST_LISTED = 20
_MOST_BANDS = 12
_NAMES = {SOIL: "soil", CROP: "crop", WEED: "weed", PLANTS: "plants"}


def ranked_bands(
    bands: Mapping[Any, NDArray[Any]], classes: NDArray[np.uint8], box: Box, classes_from: ClassesFrom
) -> Separability | None:
    """Every three bands ranked for the classes within ``box``; None with fewer than three bands or two classes."""
    x0, y0, x1, y1 = box
    inside = classes[y0:y1, x0:x1]
    named = {str(name): values[y0:y1, x0:x1] for name, values in bands.items()}
    ranked = rank_triplets(named, {name: inside == value for value, name in _NAMES.items()})
    if not ranked:
        return None
    pairs = ranked[0].jm
    return Separability(
        classes=tuple(dict.fromkeys(name for pair in pairs for name in pair.split("/"))),
        classes_from=classes_from,
        triplets=tuple(
            BandTriplet(
                bands=one.bands,
                expected_accuracy=one.accuracy,
                tied=one.tied,
                min_jm=one.min_jm,
                worst_pair=one.worst_pair,
                mean_jm=one.mean_jm,
                jm=one.jm,
                oif=one.oif,
            )
            for one in ranked[:_MOST_LISTED]
        ),
        ranked_by="min_jm" if ranked[0].accuracy is None else "expected_accuracy",
        ties=sum(one.tied for one in ranked),
    )


def band_numbers(
    source: RasterSource, bands: Mapping[str, int | str] | None, info: SampleFile | None
) -> dict[str, int]:
    """Bands to rank, name to 1-based number: those whose role is known, else the first twelve by name or number."""
    try:
        return {str(role): number for role, number in raster_roles(source, bands, info)[0].items()}
    except ToolError:
        if bands is not None:
            raise
    numbers = [number for number in range(1, source.count + 1) if number != source.alpha_band][:_MOST_BANDS]
    names = [source.band_names[number - 1] or f"band_{number}" for number in numbers]
    if len(set(names)) < len(names):
        names = [f"band_{number}" for number in numbers]
    return dict(zip(names, numbers, strict=True))


def ranking_notes(ranking: Separability | None) -> tuple[str, ...]:
    """What the ranking rests on."""
    if ranking is None:
        return ()
    source = {
        "labels": "the label raster",
        "row": "this call's own segmentation (index and rows)",
        "model": "this call's own segmentation (index and trained head)",
        "index": "this call's own segmentation (index)",
    }[ranking.classes_from]
    classes = ", ".join(ranking.classes)
    by = (
        f"the share of {classes} that a classifier gets right on blocks it was not learnt from"
        if ranking.ranked_by == "expected_accuracy"
        else f"the JM distance of the worst told pair of {classes} (too few pixels to try a classifier)"
    )
    return (f"band triplets are ranked by {by}; classes are those of {source}",)


def ranking_flags(ranking: Separability | None) -> tuple[str, ...]:
    """``separability_from_own_classes`` where the classes are no truth."""
    return () if ranking is None or ranking.classes_from == "labels" else ("separability_from_own_classes",)
