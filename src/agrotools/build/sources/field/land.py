"""Maps of tree cover drawn by people on aerial images, and a multispectral scene whose values are the truth."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.build.area_truth import Region, halves, quarters
from agrotools.build.sources.part import Originals, Part, read_items
from agrotools.build.templates import Thing, load_templates
from agrotools.build.templates.thing import Subject
from agrotools.core import Arguments, SampleFile
from agrotools.formats.benchmark import SourceNote
from agrotools.tools.result import round_significant
from agrotools.vision.rasters import open_raster
from agrotools.vision.reading import read_labels

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


PAIR_SAMPLES = 24
_PAIR_NOTE = "Questions, reference calls and tolerances are by agrotools; images and masks are the authors'."
_LEVIR = SourceNote(
    name="LEVIR-CD",
    licence="academic use only, as its authors say; the tiles come from the ChangeFormer repository (MIT)",
    url="https://github.com/wgcban/ChangeFormer",
    citation="Chen, H. and Shi, Z.: A Spatial-Temporal Attention-Based Method and a New Dataset for Remote Sensing"
    " Image Change Detection. Remote Sensing 12, 2020.",
    note=_PAIR_NOTE,
)
_DSIFN = SourceNote(
    name="DSIFN-CD",
    licence="terms of the data are not stated; the tiles come from the ChangeFormer repository (MIT)",
    url="https://github.com/wgcban/ChangeFormer",
    citation="Zhang, C. et al.: A deeply supervised image fusion network for change detection in high resolution"
    " bi-temporal remote sensing images. ISPRS Journal of Photogrammetry and Remote Sensing 166, 2020.",
    note=_PAIR_NOTE,
)
LEVIR_GSD_M = 0.5
"""Chen and Shi 2020. That of the DSIFN tiles, which were cut and resized, is not known."""


def buildings(folder: Path) -> Part:
    """LEVIR-CD: new buildings. Raises BenchmarkError: the data set is incomplete."""
    return _part(folder, "buildings", _LEVIR, "newly covered by buildings", LEVIR_GSD_M)


def land_use(folder: Path) -> Part:
    """DSIFN-CD: lasting changes of the surface, mostly fields built over. Raises BenchmarkError: incomplete."""
    return _part(folder, "landuse", _DSIFN, "built over or otherwise changed for good", None)


def _part(folder: Path, name: str, source: SourceNote, changed: str, gsd_m: float | None) -> Part:
    originals = Originals()
    subjects: list[Subject] = []
    for number, item in enumerate(read_items(folder, files=("before", "after", "mask"))):
        files = tuple(
            originals.file(folder / item[date], gsd_m=gsd_m, note=f"Seen from the air, {order} date.").model_copy(
                update={"name": f"{date}{Path(item[date]).suffix}"}
            )
            for date, order in (("before", "first"), ("after", "second"))
        )
        mask = read_labels(folder / item["mask"]).classes > 0
        subjects += change_subjects(f"{name}-{number}", files, mask, changed, gsd_m)
    return Part(name, source, subjects, load_templates("change"), PAIR_SAMPLES, originals.files)


def change_subjects(
    name: str, files: tuple[SampleFile, ...], mask: NDArray[np.bool_], changed: str, gsd_m: float | None
) -> list[Subject]:
    """A pair of pictures (``files``: before, after) as a whole and by its halves, for the questions about change.

    ``changed`` is what happened where ``mask`` is true, as it is said after "was".
    """
    across, down = halves(mask.shape[1], mask.shape[0])

    def shown(parts: list[tuple[str, Region | None]]) -> Callable[[int, int], Thing]:
        def thing(index: int, _: int) -> Thing:
            called, region = parts[index]
            arguments: Arguments = {"before": files[0].name, "after": files[1].name, "target": "farmland"}
            if region is not None:
                arguments["region"] = [*region]
            where = "" if region is None else f" in the {called} half"
            thought = f"I need to know how much of the ground{where} was {changed}."
            words = {"changed": changed, "before": files[0].name, "after": files[1].name}
            return Thing(files, "detect_change", arguments, _truth(mask, region, gsd_m), called, thought, words)

        return thing

    return [
        Subject(name, 1, shown([("the scene", None)]), {"pair": name}, of="change"),
        Subject(f"{name}-across", 2, shown([*across]), {"pair": name}, of="change_half"),
        Subject(f"{name}-down", 2, shown([*down]), {"pair": name}, of="change_half"),
    ]


def _truth(mask: NDArray[np.bool_], region: Region | None, gsd_m: float | None) -> dict[str, Any]:
    x0, y0, x1, y1 = region or (0, 0, mask.shape[1], mask.shape[0])
    inside = mask[y0:y1, x0:x1]
    change = int(np.count_nonzero(inside))
    area_m2 = None if gsd_m is None else round_significant(change * gsd_m**2, _DIGITS)
    return {
        "changed": change > 0,
        "change_px": change,
        "change_pct": round_significant(100 * change / inside.size, _DIGITS),
        "change_area_m2": area_m2,
        "change_area_ha": None if area_m2 is None else round_significant(area_m2 / 10_000, _DIGITS),
        "total_px": inside.size,
        "gsd_m": gsd_m,
    }


NDVI_SAMPLES = 16
SOURCE = SourceNote(
    name="eo-learn example patch",
    licence="MIT (licence file of the repository sentinel-hub/eo-learn); contains modified Copernicus Sentinel data",
    url="https://github.com/sentinel-hub/eo-learn",
    note="Questions, reference calls and tolerances are by agrotools. All dates show the same square kilometre, so all"
    " samples form one cluster.",
)


def ndvi(folder: Path) -> Part:
    """Raises BenchmarkError: the data set is incomplete."""
    originals = Originals()
    dates: list[tuple[SampleFile, float]] = []
    for item in sorted(read_items(folder, files=("ndvi",)), key=lambda item: str(item["id"])):
        with open_raster(folder / item["ndvi"]) as raster:
            values, gsd_m = raster.read([1])[0], raster.sampling.gsd_m
        note = "NDVI from Sentinel-2, one band, -1 to 1."
        size = {"width_px": values.shape[1], "height_px": values.shape[0]}
        file = originals.file(folder / item["ndvi"], kind="raster", bands=("NDVI",), gsd_m=gsd_m, note=note, **size)
        dates.append((file, float(np.nanmean(values.astype(np.float64)))))
    # Neighbouring pairs share a date, so that samples of one place are one cluster.
    subjects = [_ndvi_subject(number, *pair) for number, pair in enumerate(pairwise(dates))]
    return Part("ndvi", SOURCE, subjects, load_templates("ndvi"), NDVI_SAMPLES, originals.files)


def _ndvi_subject(number: int, before: tuple[SampleFile, float], after: tuple[SampleFile, float]) -> Subject:
    files = tuple(
        file.model_copy(update={"name": f"ndvi_{name}{Path(file.path).suffix}"})
        for name, (file, _) in (("first", before), ("second", after))
    )

    def shown(_: int, __: int) -> Thing:
        means = {
            "mean_before": round_significant(before[1], _DIGITS),
            "mean_after": round_significant(after[1], _DIGITS),
        }
        truth: dict[str, Any] = {"vegetation": {"index": "ndvi", **means}}
        arguments: dict[str, Any] = {"before": files[0].name, "after": files[1].name, "target": "vegetation"}
        words = {"before": files[0].name, "after": files[1].name}
        thought = "I need the vegetation index of both dates."
        return Thing(files, "detect_change", arguments, truth, "the place", thought, words)

    return Subject(f"ndvi-{number}", 1, shown, {"dates": number}, of="ndvi_pair")
