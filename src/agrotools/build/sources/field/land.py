"""Maps of tree cover drawn by people on aerial images, and a multispectral scene whose values are the truth."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agrotools.build.asking import Subject
from agrotools.build.picture_parts import Region, halves, quarters
from agrotools.build.sources.part import Originals, Part
from agrotools.build.sources.prepared import read_items
from agrotools.build.templates import Thing, load_templates
from agrotools.core import SampleFile
from agrotools.core.benchmark_header import SourceNote
from agrotools.tools.result import round_significant
from agrotools.vision import open_raster, read_labels

TREE_SAMPLES, SCENE_SAMPLES = 16, 4
_DIGITS = 6
_NOTE = "Questions, reference calls and tolerances are by agrotools."
_TREES = SourceNote(
    name="detectree tiles",
    licence="GPL-3 (licence file of the repository martibosch/detectree)",
    url="https://github.com/martibosch/detectree",
    citation="Bosch, M.: DetecTree: Tree detection from aerial imagery in Python. JOSS 5, 2020.",
    note=_NOTE,
)
_SCENE = SourceNote(
    name="Sentinel-2 sample of spyndex",
    licence="MIT (spyndex); contains modified Copernicus Sentinel data",
    url="https://github.com/awesome-spectral-indices/spyndex",
    note=_NOTE,
)
_BANDS = ("B", "G", "R", "NIR")


def trees(folder: Path) -> Part:
    """Raises BenchmarkError: the data set is incomplete."""
    originals = Originals()
    subjects: list[Subject] = []
    for number, item in enumerate(read_items(folder, ("gsd_m",), ("mask",))):
        classes = {"0": "other", "1": "trees"}
        note = "Map of tree cover, drawn on an aerial image of a town."
        file = originals.file(folder / item["mask"], kind="mask", classes=classes, gsd_m=item["gsd_m"], note=note)
        mask = read_labels(folder / item["mask"]).classes

        def truth(region: Region | None, mask: Any = mask, gsd_m: float = item["gsd_m"]) -> dict[str, Any]:
            x0, y0, x1, y1 = region or (0, 0, mask.shape[1], mask.shape[0])
            inside = mask[y0:y1, x0:x1]
            share = 100 * np.count_nonzero(inside == 1) / inside.size
            pcts = {"trees": round_significant(share, _DIGITS), "other": round_significant(100 - share, _DIGITS)}
            return {
                "class_pcts": pcts,
                "area_px": inside.size,
                "area_m2": round_significant(inside.size * gsd_m**2, _DIGITS),
            }

        named = file.model_copy(update={"name": "tree_map.png"})
        across, down = halves(mask.shape[1], mask.shape[0])
        subjects += [
            _subject(f"trees-{number}", "trees", named, [(named.name, None)], truth),
            _subject(f"trees-{number}-across", "trees_half", named, across, truth),
            _subject(f"trees-{number}-down", "trees_half", named, down, truth),
        ]
    return Part("trees", _TREES, subjects, load_templates("land"), TREE_SAMPLES, originals.files)


def scene(folder: Path) -> Part:
    """Raises BenchmarkError: the data set is incomplete."""
    originals = Originals()
    subjects: list[Subject] = []
    for number, item in enumerate(read_items(folder, ("bands",), ("raster",))):
        if len(item["bands"] if isinstance(item["bands"], list) else ()) != len(_BANDS):
            continue  # a hyperspectral file, for which there is no truth but its size
        with open_raster(folder / item["raster"]) as raster:
            values = raster.read([3, 4]).astype(np.float64)
        index = (values[1] - values[0]) / (values[1] + values[0])
        note = "Sentinel-2, four bands of 10 m, reflectance times 10,000."
        size = {"width_px": index.shape[1], "height_px": index.shape[0]}
        file = originals.file(folder / item["raster"], kind="raster", bands=_BANDS, note=note, **size)

        def truth(region: Region | None, index: Any = index) -> dict[str, Any]:
            x0, y0, x1, y1 = region or (0, 0, index.shape[1], index.shape[0])
            inside = index[y0:y1, x0:x1]
            return {"ndvi": round_significant(float(np.nanmean(inside)), _DIGITS), "area_px": inside.size}

        named = file.model_copy(update={"name": "scene.tif"})
        across, down = halves(index.shape[1], index.shape[0])
        subjects += [
            _subject(f"scene-{number}-across", "scene_half", named, across, truth),
            _subject(f"scene-{number}-down", "scene_half", named, down, truth),
            _subject(f"scene-{number}", "scene_quarter", named, quarters(index.shape[1], index.shape[0]), truth),
        ]
    return Part("scene", _SCENE, subjects, load_templates("land"), SCENE_SAMPLES, originals.files)


def _subject(
    name: str,
    of: str,
    file: SampleFile,
    parts: Sequence[tuple[str, Region | None]],
    truth: Callable[[Region | None], dict[str, Any]],
) -> Subject:
    def shown(index: int, _: int) -> Thing:
        called, region = parts[index]
        arguments: dict[str, Any] = (
            {"image": file.name} if region is None else {"image": file.name, "region": [*region]}
        )
        where = "" if region is None else f", {called} part"
        thought = f"I need the numbers of {file.name}{where}."
        return Thing((file,), "describe_region", arguments, truth(region), called, thought)

    return Subject(name, len(parts), shown, {"subject": name}, of=of)
