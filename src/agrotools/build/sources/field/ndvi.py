"""NDVI rasters of one square kilometre on several dates, from Sentinel-2. The rasters themselves are the truth."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from agrotools.build.asking import Subject
from agrotools.build.sources.part import Originals, Part
from agrotools.build.sources.prepared import read_items
from agrotools.build.templates import Thing, load_templates
from agrotools.core import SampleFile
from agrotools.core.benchmark_header import SourceNote
from agrotools.tools.result import round_significant
from agrotools.vision import open_raster

SAMPLES = 16
SOURCE = SourceNote(
    name="eo-learn example patch",
    licence="MIT (licence file of the repository sentinel-hub/eo-learn); contains modified Copernicus Sentinel data",
    url="https://github.com/sentinel-hub/eo-learn",
    note="Questions, reference calls and tolerances are by agrotools. All dates show the same square kilometre, so all"
    " samples form one cluster.",
)
_DIGITS = 6


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
    subjects = [_subject(number, *pair) for number, pair in enumerate(pairwise(dates))]
    return Part("ndvi", SOURCE, subjects, load_templates("ndvi"), SAMPLES, originals.files)


def _subject(number: int, before: tuple[SampleFile, float], after: tuple[SampleFile, float]) -> Subject:
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
