"""The ``field`` benchmark: questions on real images with ground truth, from data sets that the user has.

Each data set is a part: a module here that reads it, says what its things are and which questions suit them. A part
whose folder is absent is left out, and the benchmark says so.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from pydantic import JsonValue

from agrotools import __version__
from agrotools.construct.building import build_samples
from agrotools.construct.choosing import choose
from agrotools.construct.export import FILES_FOLDER, check_replaceable, replacing, write_benchmark
from agrotools.construct.progress import Progress, no_progress
from agrotools.construct.sources.field.apples import apples
from agrotools.construct.sources.field.canopy import canopy
from agrotools.construct.sources.field.change import buildings, land_use
from agrotools.construct.sources.field.land import scene, trees
from agrotools.construct.sources.field.leaf_photos import BEANS, COFFEE, leaf_photos
from agrotools.construct.sources.field.leaves import leaves
from agrotools.construct.sources.field.ndvi import ndvi
from agrotools.construct.sources.field.orchards import orchard
from agrotools.construct.sources.field.part import Part
from agrotools.construct.sources.field.weed_photos import weed_photos
from agrotools.construct.sources.field.weeds import weeds
from agrotools.core import BenchmarkError, Sample
from agrotools.core.benchmark_header import BenchmarkHeader
from agrotools.tools import AGROTOOLS

SEED = 20140906

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
    with replacing(out) as made:
        (made / FILES_FOLDER).mkdir()
        samples: list[Sample] = []
        metadata: dict[str, JsonValue] = {"agrotools": __version__, "seed": SEED}
        for part in parts:
            for name, original in part.files.items():
                shutil.copyfile(original, made / name)
            chosen = choose(part.subjects, part.questions, part.samples, SEED)
            of_part = build_samples(
                chosen, made, prefix=part.name, source=part.source.name, toolset=AGROTOOLS, progress=progress
            )
            samples += of_part
            metadata |= {**part.metadata, **part.described(of_part)}
        absent = sorted(PARTS.keys() - {name for name in PARTS if _folder_of(folder, name)})
        header = BenchmarkHeader(
            name="field",
            version="2",
            licence="; ".join(f"{part.source.name}: {part.source.licence}" for part in parts)
            + " Questions and reference calls: Apache-2.0.",
            description="Questions on real images of fields, leaves, trees and fruits, with ground truth by people.",
            toolset=AGROTOOLS,
            sources=tuple(part.source for part in parts),
            metadata={**metadata, **({"absent": [*absent]} if absent else {})},
        )
        write_benchmark(made, header, samples)
    return header


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
