"""The embedded benchmark: questions on drawn crop rows, as photo, as five-band raster, or with a class map.

Everything follows from a fixed seed. Answers come from the scene's own class map, never from a tool.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from agrotools import __version__
from agrotools.construct.area_truth import AreaTruth, count_area
from agrotools.construct.asking import Subject
from agrotools.construct.building import build_samples
from agrotools.construct.choosing import choose
from agrotools.construct.export import FILES_FOLDER, sha256_of_file, write_benchmark
from agrotools.construct.picture_parts import Region
from agrotools.construct.progress import Progress, no_progress
from agrotools.construct.questions import QUESTIONS, Picture
from agrotools.construct.scenes.rows import COLUMNS_PX, ROWS_PX, Difficulty, Scene, make_scene
from agrotools.core import Arguments, SampleFile
from agrotools.core.benchmark_header import BenchmarkHeader, SourceNote
from agrotools.tools import AGROTOOLS

VERSION = "1"
SAMPLES = 64
SEED = 20261120
View = Literal["photo", "bands", "map"]

PLAN: tuple[tuple[View, int, Difficulty], ...] = (
    ("photo", 2, 0), ("bands", 2, 1), ("photo", 2, 2), ("map", 1, 3), ("photo", 2, 3), ("photo", 2, 1),
    ("bands", 1, 0), ("photo", 1, 1), ("bands", 2, 3), ("photo", 2, 0), ("map", 2, 1), ("bands", 1, 2),
    ("photo", 2, 1), ("photo", 2, 2), ("bands", 1, 3), ("map", 1, 0), ("photo", 1, 2), ("photo", 2, 3),
    ("bands", 1, 1), ("map", 2, 2), ("photo", 1, 0), ("bands", 2, 2), ("photo", 1, 3), ("map", 1, 2),
    ("bands", 1, 0), ("photo", 2, 1),
)  # fmt: skip
"""Subjects: what is shown, how many scenes, how difficult."""

_NOTES: dict[View, str] = {
    "photo": "Field seen straight from above, natural colours.",
    "bands": "Field seen straight from above, calibrated reflectance times 10,000 in five bands.",
    "map": "Field seen straight from above, natural colours.",
}
_NOUNS: dict[View, str] = {"photo": "photo", "bands": "multispectral image", "map": "photo"}
_REMARKS = (
    "The class map is in {files}.",
    "I have had every pixel classified already, see {files}.",
    "Crop, weeds and soil are told apart in {files}.",
    "Go by the classification in {files}.",
)


def write_rows_benchmark(folder: Path, progress: Progress = no_progress) -> BenchmarkHeader:
    """Draw all scenes and write the benchmark into the empty folder ``folder``.

    Raises:
        BenchmarkError, InfrastructureError: as :func:`~agrotools.construct.building.build_samples`.
    """
    (folder / FILES_FOLDER).mkdir(parents=True)
    total = sum(count for _, count, _ in PLAN)
    stored: list[_Stored] = []
    subjects: list[Subject] = []
    for number, (view, count, difficulty) in enumerate(PLAN):
        scenes = []
        for _ in range(count):
            scenes.append(_store(folder, view, make_scene(SEED + len(stored), difficulty), len(stored)))
            stored.append(scenes[-1])
            progress("scenes", len(stored), total)
        subjects.append(_subject(number, view, difficulty, scenes))
    chosen = choose(subjects, QUESTIONS, SAMPLES, SEED)
    samples = build_samples(
        chosen,
        folder,
        prefix="embedded",
        source="scenes.rows",
        toolset=AGROTOOLS,
        progress=progress,
        # The same observations on every machine, whatever heads were trained there.
        backends={"measure_crop_weed_area": "untrained"},
    )
    header = BenchmarkHeader(
        name="embedded",
        version=VERSION,
        licence="Apache-2.0",
        description="Crop, weeds and bare soil in drawn scenes of crop rows. Synthetic: no photographs.",
        synthetic=True,
        toolset=AGROTOOLS,
        sources=(SourceNote(name="agrotools scenes", licence="Apache-2.0", note="Drawn by agrotools from a seed."),),
        metadata={"agrotools": __version__, "seed": SEED, "scenes": len(stored), "subjects": len(subjects)},
    )
    write_benchmark(folder, header, samples)
    return header


@dataclass(frozen=True, eq=False)
class _Stored:
    """A scene on disk: its files by role, without a name yet, and its class mask."""

    files: tuple[tuple[str, SampleFile], ...]
    classes: NDArray[np.uint8]


def _store(folder: Path, view: View, scene: Scene, number: int) -> _Stored:
    classes = cast("NDArray[np.uint8]", scene.masks["classes"])
    gsd_m = cast(float, scene.sidecar["gsd_m"])
    stem = f"{FILES_FOLDER}/scene_{number:03d}"
    note = _NOTES[view]

    def file(path: str, kind: Literal["image", "raster", "mask"], **more: object) -> SampleFile:
        size = {"width_px": COLUMNS_PX, "height_px": ROWS_PX, "gsd_m": gsd_m, "sha256": sha256_of_file(folder / path)}
        return SampleFile.model_validate({"name": "x", "path": path, "kind": kind, **size, **more})

    if view == "bands":
        bands = tuple(cast("list[str]", scene.sidecar["bands"]))
        _write_raster(folder / f"{stem}.tif", cast("NDArray[np.uint16]", scene.images["bands"]), bands, gsd_m, number)
        raster = file(f"{stem}.tif", "raster", bands=bands, crs="EPSG:32632", note=note)
        return _Stored((("bands_{}.tif", raster),), classes)
    _write_photo(folder / f"{stem}.jpg", cast("NDArray[np.uint8]", scene.images["rgb"]))
    photo = ("image_{}.jpg", file(f"{stem}.jpg", "image", note=note))
    if view == "photo":
        return _Stored((photo,), classes)
    _write_labels(folder / f"{stem}_labels.png", classes)
    named = cast("dict[str, str]", scene.sidecar["classes"])
    labels = file(f"{stem}_labels.png", "mask", classes=named, note="Class map of the photo of the same number.")
    return _Stored((photo, ("labels_{}.png", labels)), classes)


def _subject(number: int, view: View, difficulty: Difficulty, scenes: list[_Stored]) -> Subject:
    def picture(index: int, position: int) -> Picture:
        scene = scenes[index]
        files = tuple(file.model_copy(update={"name": pattern.format(position)}) for pattern, file in scene.files)
        arguments: Arguments = {"image": files[0].name}
        if view == "map":
            arguments["label_raster"] = files[1].name
        remarks = _REMARKS if view == "map" else ()
        return Picture(files, arguments, _area_of(scene), COLUMNS_PX, ROWS_PX, _NOUNS[view], remarks)

    metadata = {"view": view, "difficulty": difficulty}
    return Subject(f"rows-{number:02d}", len(scenes), cache(picture), {**metadata})


def _area_of(scene: _Stored) -> Callable[[Region | None], AreaTruth]:
    return lambda region: count_area(scene.classes, None, region)


def _write_photo(path: Path, rgb: NDArray[np.uint8]) -> None:
    from PIL import Image

    Image.fromarray(rgb).save(path, "JPEG", quality=93, subsampling=0)


def _write_labels(path: Path, classes: NDArray[np.uint8]) -> None:
    from PIL import Image

    Image.fromarray(classes).save(path, "PNG")


def _write_raster(path: Path, bands: NDArray[np.uint16], names: tuple[str, ...], gsd_m: float, number: int) -> None:
    """A GeoTIFF in UTM coordinates of nowhere in particular, with band names and the reflectance scale."""
    import rasterio
    from rasterio.transform import from_origin

    profile = {
        "driver": "GTiff", "count": bands.shape[0], "height": bands.shape[1], "width": bands.shape[2],
        "dtype": "uint16", "crs": "EPSG:32632", "compress": "deflate", "predictor": 2,
        "transform": from_origin(500_000 + 10 * number, 5_800_000, gsd_m, gsd_m),
    }  # fmt: skip
    with rasterio.open(path, "w", **profile) as target:
        target.write(bands)
        for index, name in enumerate(names, start=1):
            target.set_band_description(index, name)
        target.scales = (1e-4,) * len(names)
