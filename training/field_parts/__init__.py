"""The ``field`` benchmark: questions on real images with ground truth, from local data sets.

Each data set is a part: an adapter reads it into subjects and names the templates that suit them. Parts whose folders
do not exist are left out and listed in the metadata.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import JsonValue

from agrotools.core.errors import NoFileError
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.benchmark import BenchmarkHeader
from agrotools.formats.writing import check_replaceable
from agrotools_build.choosing import Chosen
from agrotools_build.sources.assembling import assembled
from agrotools_build.sources.part import Adapter, Part
from agrotools_build.templates.thing import Subject

sys.path.append(
    str(Path(__file__).resolve().parents[2] / "studies")
)  # for the reader of prepared data sets

from paired import with_twins

from field_parts.aerial_trees import (
    date_palms,
    oil_palms,
    town_trees,
    tree_crowns,
    trees_from_the_air,
)
from field_parts.crops import beets, potatoes, sesame
from field_parts.heights import gaps, pines, taped
from field_parts.land import buildings, canopy, land_use, ndvi, scene, trees
from field_parts.mango import mango_leaves
from field_parts.pests import pests, rice_pests
from field_parts.photos import apples, leaf_photos, leaves, orchard, weed_photos
from field_parts.plots import trial_plots
from field_parts.rasters import bands, forest, season, soybeans, stands
from field_parts.weeds import weeds
from field_parts.windows import amazon, built, chiapas, cotton, towns

PARTS: dict[str, Adapter] = {
    "cwfid": weeds,
    "coffee_lesions": leaves,
    "chm": canopy,
    "levir_cd": buildings,
    "dsifn_cd": land_use,
    "rgbd_apples": apples,
    "s2_ndvi": ndvi,
    "tree_canopy": trees,
    "multiband": scene,
    "neon_trees": trees_from_the_air,
    "deepweeds": weed_photos,
    "bean_leaf_class": leaf_photos("bean"),
    "coffee_leaf_class": leaf_photos("coffee"),
    "jute_pests": pests,
    "orchard_apples": orchard("apple", "orchard_apples"),
    "orchard_pears": orchard("pear", "orchard_pears"),
    "orchard_cherries": orchard("cherry", "orchard_cherries"),
    "town_trees": town_trees,
    "oil_palms": oil_palms,
    "date_palms": date_palms,
    "tree_crowns": tree_crowns,
    "sinop_season": season,
    "soybean_heights": soybeans,
    "forest_heights": forest,
    "stand_metrics": stands,
    "amazon_bands": bands,
    "forest_gaps": gaps,
    "longleaf_pines": pines,
    "chablais_trees": taped,
    "amazon_scenes": amazon,
    "chiapas_bands": chiapas,
    "town_bands": towns,
    "built_over": built,
    "cotton_season": cotton,
    "trial_plots": trial_plots,
    "beet_weeds": beets,
    "potato_weeds": potatoes,
    "sesame_weeds": sesame,
    "rice_pests": rice_pests,
    "mango_leaves": mango_leaves,
}
"""Adapters by the name of the data set's folder."""
DESCRIPTION = (
    "Questions on photographs and rasters of fields, leaves, trees, fruit and pests. Answers follow from what people"
    " marked, counted or named; those on heights and bands from the values of the raster."
)
MOST_OF_A_PHOTOGRAPH = 4
"""Most answerable questions about a photograph, so that no place weighs more than others."""
MOST_OF_A_SOURCE = 100
"""Most questions of a source, unanswerable twins counted, so that none weighs more than others of its task types.

``field.toml`` lets a source ask a few more where reviewers doubt many: they leave before the pack is written.
"""

_OF_PARTS_OF_A_PICTURE = (
    "pair_halves",
    "half_bars",
    "quarter_bars",
    "half_difference",
    "canopy_half_gap",
    "canopy_half_bars",
    "canopy_quarter_bars",
    "change_half_bars",
)
"""Templates about halves and quarters of a picture, which decide nothing for a grower, as reviewers found."""
_COMPLEMENTS = (
    "crop_share",
    "bare_soil",
    "barer_image",
    "surely_barer",
    "plot_bare",
    "leaf_healthy_share",
)
"""Templates that ask how much is left of 100 %, when another one asks how much is not."""
_TWINS = 0.125
"""Share of unanswerable questions: about 150 beside 1,080, so that intervals of refusals are narrow enough."""
_LISTED = 0.22
"""Largest share of these that the list of files tells apart; others need a look at a picture."""


def build_field(folder: Path, out: Path, progress: Progress = no_progress) -> BenchmarkHeader:
    """Build the benchmark from the data sets in subfolders of ``folder``, or from CWFID alone, into ``out``.

    Returns:
        The header; its licence lists the terms of every data set used.

    Raises:
        BenchmarkError: there is no data set, one is incomplete, or ``out`` holds something other than a benchmark.
    """
    check_replaceable(out)
    if not folder.is_dir():
        raise NoFileError(f"{folder} is not a folder", hint="give the folder of the data sets")
    there = [name for name in PARTS if (folder / name).is_dir()]
    # Without subfolders, read CWFID in its authors' layout, or raise an error that describes what is missing.
    absent: list[JsonValue] = [*sorted(PARTS.keys() - there)]
    with TemporaryDirectory() as scratch:
        every = [PARTS[name](folder / name, Path(scratch)) for name in there] or [
            weeds(folder, Path(scratch))
        ]
        parts = [as_asked(part) for part in every]
        return assembled(
            parts,
            out,
            name="field",
            version="3",
            description=DESCRIPTION,
            metadata={"absent": absent} if absent else {},
            most_of_a_file=MOST_OF_A_PHOTOGRAPH,
            progress=progress,
            people_decide=True,
            may_share=True,
            paired=twins_within_sources(parts),
        )


def as_asked(part: Part) -> Part:
    """Return a part without the templates that decide nothing, or ask for the rest of what another one asks for."""
    left_out = (*_OF_PARTS_OF_A_PICTURE, *_COMPLEMENTS)
    asked = [each for each in part.questions if each.template not in left_out]
    return replace(part, questions=asked)


def twins_within_sources(
    parts: Sequence[Part],
) -> Callable[[list[Chosen], list[Subject]], list[Chosen]]:
    """Return what adds unanswerable twins to chosen questions, as many as leave no source with too many questions."""
    source_of = {id(each): part.source.name for part in parts for each in part.subjects}

    def with_some_twins(chosen: list[Chosen], subjects: list[Subject]) -> list[Chosen]:
        return with_twins(
            chosen,
            _TWINS,
            listed=_LISTED,
            subjects=subjects,
            source_of=lambda item: source_of[id(item.subject)],
            most_of_a_source=MOST_OF_A_SOURCE,
        )

    return with_some_twins


__all__ = [
    "MOST_OF_A_PHOTOGRAPH",
    "MOST_OF_A_SOURCE",
    "PARTS",
    "as_asked",
    "build_field",
    "twins_within_sources",
]
