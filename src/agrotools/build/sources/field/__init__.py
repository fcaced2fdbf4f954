"""The ``field`` benchmark: questions on real images with ground truth, from data sets that the user has.

Each data set is a part: a module here that reads it, says what its things are and which questions suit them. A part
whose folder is absent is left out, and the benchmark says so.
"""

from collections.abc import Callable
from pathlib import Path

from pydantic import JsonValue

from agrotools.build.sources.assembling import assembled
from agrotools.build.sources.field.canopy import canopy
from agrotools.build.sources.field.fruit import apples, orchard
from agrotools.build.sources.field.land import buildings, land_use, ndvi, scene, trees
from agrotools.build.sources.field.leaves import BEANS, COFFEE, leaf_photos, leaves
from agrotools.build.sources.field.weed_photos import weed_photos
from agrotools.build.sources.field.weeds import weeds
from agrotools.build.sources.part import Part
from agrotools.core import BenchmarkError
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.benchmark import BenchmarkHeader
from agrotools.formats.replacement import check_replaceable

PARTS: dict[str, Callable[[Path], Part]] = {
    "cwfid": weeds,
    "coffee_lesions": leaves,
    "chm": canopy,
    "levir_cd": buildings,
    "dsifn_cd": land_use,
    "rgbd_apples": apples,
    "s2_ndvi": ndvi,
    "tree_canopy": trees,
    "multiband": scene,
    "deepweeds": weed_photos,
    "bean_leaf_class": leaf_photos("bean", BEANS),
    "coffee_leaf_class": leaf_photos("coffee", COFFEE),
    "orchard_apples": orchard("apple", "AppleBBCH81"),
    "orchard_pears": orchard("pear", "Pear640"),
    "orchard_cherries": orchard("cherry", "CherryBBCH81"),
}
"""By name of the folder in which the data set lies."""


def build_field(folder: Path, out: Path, progress: Progress = no_progress) -> BenchmarkHeader:
    """Build the benchmark from the data sets side by side in ``folder`` (or from CWFID alone) into ``out``.

    Returns:
        The header, whose licence names the terms of every data set that was used.

    Raises:
        BenchmarkError: no data set is there, one is incomplete, or ``out`` holds something else than a benchmark.
    """
    check_replaceable(out)
    parts = _parts(folder)
    absent: list[JsonValue] = [*sorted(PARTS.keys() - {name for name in PARTS if _folder_of(folder, name)})]
    return assembled(
        parts,
        out,
        name="field",
        version="2",
        description="Questions on real images of fields, leaves, trees and fruits, with ground truth by people.",
        metadata={"absent": absent} if absent else {},
        progress=progress,
    )


def _parts(folder: Path) -> list[Part]:
    if not folder.is_dir():
        raise BenchmarkError(f"{folder} is not a folder", hint="give the folder of the data sets: --source field=DIR")
    there = {name: place for name in PARTS if (place := _folder_of(folder, name))}
    if not there:
        # CWFID in its authors' layout, or what is wrong with it.
        return [weeds(folder)]
    return [PARTS[name](place) for name, place in there.items()]


def _folder_of(folder: Path, name: str) -> Path | None:
    return folder / name if (folder / name).is_dir() else None


__all__ = ["PARTS", "build_field"]
