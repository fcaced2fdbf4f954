"""Degradation of the pictures of a benchmark: coarser pixels, blur, haze, noise and compression, at given doses.

The steps follow a photograph from the scene to the file: haze, optics, sampling, sensor noise, compression. Policies
and tools get the same degraded files. The pixel grid stays, so that boxes, marks and ground sampling distances of
questions, reference calls and metadata keep their meaning: ``gsd=2`` averages blocks of 2 x 2 pixels and interpolates
them back.

The truth is that of the scene and does not change. A sample is left out where this fails: its truth is a statistic of
the pixel values, or its pictures cannot be degraded alike. Depth images, masks, tables and height models come from
other instruments and stay as they are. Degraded files are cached by the content of the original, the doses and the
seed.
"""

# rasterio ships no type stubs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import io
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import cv2
import numpy as np
import rasterio
from numpy.typing import NDArray
from PIL import ExifTags, Image
from pydantic import Field
from rasterio.io import MemoryFile

from agrotools.calling.cache import Sweeper, limit_from_environment
from agrotools.core import AbstainSlot, Sample, SampleFile, ToolError, UsageError
from agrotools.core.files import cache_dir, sha256_of_file, sha256_of_json, write_whole
from agrotools.core.progress import Progress, no_progress
from agrotools.core.texts import count_text
from agrotools.formats.benchmark import Benchmark, facts_of, select_samples
from agrotools.runner.faults import Doses
from agrotools.vision.formats import MAX_PIXELS, PHOTO_FORMATS, file_format
from agrotools.vision.rasters import RasterSource, open_raster, without_place_warning
from agrotools.vision.reading import read_image

FloatArray = NDArray[np.float32]
_VERSION = 1
"""Version of the cached files; to be raised when the same doses yield other pixels."""
_AIRLIGHT = 230.0
"""Colour of haze on each channel, 0 to 255: the neutral grey of an overcast sky."""
_LEAST_SHARE_OF_DATA = 1e-6
"""Least share of pixels with data by which an average is divided, so that none is divided by 0."""
_PIXEL_STATISTICS = frozenset({"band_selection"})
"""Task types whose truth is a statistic of the pixel values rather than a property of the scene."""
_READER_OF_MARKS = "extract_marked_region"
"""Tool that reads marks drawn into a picture, which belong to the question rather than to the scene."""
_OTHER_INSTRUMENTS = frozenset({"depth", "mask", "table", "document", "audio"})


class Degradation(Doses):
    """Doses of a degradation; the defaults change nothing.

    ``gsd``: pixels are this many times coarser. ``blur``: standard deviation of a Gaussian, in pixels. ``haze``: share
    of airlight. ``noise``: standard deviation of Gaussian noise in 8-bit levels (in other rasters: of 255 parts of the
    range from the 2nd to the 98th percentile of a band). ``jpeg``: quality; None for no compression.
    """

    OPTION: ClassVar = "--degrade"
    EXAMPLE: ClassVar = "gsd=2,blur=1.5,jpeg=30"

    gsd: Annotated[float, Field(ge=1, le=64)] = 1.0
    blur: Annotated[float, Field(ge=0, le=100)] = 0.0
    haze: Annotated[float, Field(ge=0, lt=1)] = 0.0
    noise: Annotated[float, Field(ge=0, le=128)] = 0.0
    jpeg: Annotated[int | None, Field(ge=1, le=100)] = None


@dataclass(frozen=True, eq=False)
class DegradedBenchmark(Benchmark):
    """Benchmark whose pictures are degraded when they are first needed. ``seed`` determines the noise."""

    degradation: Degradation = field(default_factory=Degradation)
    seed: int = 0
    clean_hash: str = ""
    """Content hash of the benchmark as it is."""
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Reason why a sample is left out, by its id."""

    def file_path(self, file: SampleFile) -> Path:
        """Return the path of the degraded file; of the original if it stays as it is."""
        path = super().file_path(file)
        if not _is_picture(file):
            return path
        sha256 = file.sha256 or sha256_of_file(path)
        key = sha256_of_json([_VERSION, sha256, self.degradation.doses, self.seed])
        target = cache_dir("degraded", key[:2]) / key
        if not target.is_file():
            # Doses are not part of the seed: a curve of noise then differs by the dose, not by another draw.
            noise_seed = int(sha256_of_json([file.pixels or sha256, self.seed])[:16], 16)
            try:
                content = degrade_file(path, file, self.degradation, noise_seed)
            except ToolError:
                return (
                    path  # damaged beyond its header: no tool and no model can read it at any dose
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, content)
            self._sweeper.record_write(len(content))
        self._sweeper.mark_used(target)
        return target

    @property
    def manifest_fields(self) -> dict[str, Any]:
        """Fields of a run's manifest about the degradation."""
        left_out: dict[str, tuple[str, ...]] = {}
        for sample_id, reason in self.left_out.items():
            left_out[reason] = (*left_out.get(reason, ()), sample_id)
        return {"clean_hash": self.clean_hash, "left_out": left_out}

    def degrade_files(self, sample_ids: Iterable[str], progress: Progress = no_progress) -> None:
        """Degrade the files of these samples in threads, so that the run does not wait for each of them."""
        chosen = [self.sample(sample_id) for sample_id in sample_ids]
        files = {file.path: file for sample in chosen for file in sample.files if _is_picture(file)}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            try:
                for done, _ in enumerate(pool.map(self.file_path, files.values()), start=1):
                    progress("degrading files", done, len(files))
            finally:
                pool.shutdown(cancel_futures=True)  # otherwise Ctrl-C would wait for all files

    @cached_property
    def _sweeper(self) -> Any:
        return Sweeper(cache_dir("degraded"), limit_from_environment())


def degrade_benchmark(
    benchmark: Benchmark, degradation: Degradation, seed: int = 0, *, quick: bool = False
) -> DegradedBenchmark:
    """Return ``benchmark`` with degraded pictures, without step-by-step and without samples that cannot be degraded.

    Step-by-step shows recorded observations, which are those of the original files. ``quick``: only the quick part is
    run, so the note on samples that are left out counts those.

    Raises:
        UsageError: no sample can be degraded, or the benchmark has step-by-step alone.
    """
    ids = facts_of(benchmark.samples).ids
    left_out = _samples_left_out(benchmark, degradation)
    places = [at for at, sample_id in enumerate(ids) if sample_id not in left_out]
    modes = tuple(mode for mode in benchmark.modes if mode != "step-by-step")
    if not places or not modes:
        reason = next(iter(left_out.values()), "it has step-by-step alone")
        raise UsageError(
            f"no sample of {benchmark.name} can be degraded ({reason})", hint="omit --degrade"
        )
    metadata = dict(benchmark.header.metadata)
    notes = metadata.get("notes")
    metadata["notes"] = [
        *(notes if isinstance(notes, list) else ()),
        *_notes(left_out, benchmark.header.quick if quick else ids),
    ]
    return DegradedBenchmark(
        benchmark.header.model_copy(update={"modes": modes, "metadata": metadata}),
        benchmark.root,
        select_samples(benchmark.samples, places),
        sha256_of_json([_VERSION, benchmark.content_hash, degradation.doses, seed]),
        benchmark.external_folders,
        degradation=degradation,
        seed=seed,
        clean_hash=benchmark.content_hash,
        left_out=left_out,
    )


def _samples_left_out(benchmark: Benchmark, degradation: Degradation) -> dict[str, str]:
    """Return the reason why a sample is left out, by its id; a twin is left out with its sample."""
    faults: dict[str, str] = {}
    left_out: dict[str, str] = {}
    twins: dict[str, str] = {}
    for sample in benchmark.samples:
        reason = _reason_to_leave_out(sample, benchmark, degradation, faults)
        if reason:
            left_out[sample.id] = reason
        if sample.twin:
            twins[sample.id] = sample.twin
    of_twins: dict[str, str] = {}
    for sample_id, twin in twins.items():
        if twin in left_out and sample_id not in left_out:
            of_twins[sample_id] = left_out[twin]
    return left_out | of_twins


def _notes(left_out: Mapping[str, str], ids: Iterable[str]) -> list[str]:
    counts = Counter(left_out[each] for each in ids if each in left_out)
    reasons = "; ".join(f"{reason} ({n})" for reason, n in counts.most_common())
    samples = (
        f"{counts.total()} of {count_text(len([*ids]), 'sample')} left out: {reasons}; "
        if counts
        else ""
    )
    return [f"{samples}step-by-step is left out: it shows observations of the original files"]


def _is_picture(file: SampleFile) -> bool:
    """True for photographs and rasters of several bands; a raster of a single band is a height model."""
    return file.kind == "image" or (
        file.kind == "raster" and (file.bands is None or len(file.bands) > 1)
    )


def _reason_to_leave_out(
    sample: Sample, benchmark: Benchmark, degradation: Degradation, faults: dict[str, str]
) -> str | None:
    if any(
        isinstance(slot, AbstainSlot) and slot.reason == "unfit_image" for slot in sample.answer
    ):
        return "a sample of the pair asks whether the picture is fit, which the doses change"
    if sample.task_type in _PIXEL_STATISTICS:
        return f"the truth of {sample.task_type} is a statistic of the pixel values, which the doses change"
    if sample.reference and _READER_OF_MARKS in sample.reference.tools:
        return "the question refers to marks drawn into the picture, which the doses would change"
    if not any(map(_is_picture, sample.files)):
        return "no photograph or multispectral raster among the files"
    for file in sample.files:
        if not _is_picture(file):
            if file.kind not in _OTHER_INSTRUMENTS and file.kind != "raster":
                return f"files of the kind {file.kind} cannot be degraded"
            continue
        if file.path not in faults:
            faults[file.path] = _fault(benchmark.file_path(file), degradation)
        if faults[file.path]:
            return faults[file.path]
    return None


def _fault(path: Path, degradation: Degradation) -> str:
    """Return the reason why a picture cannot be degraded, by its header; empty if there is none."""
    if not path.exists():
        return ""  # the loader left it out because the run does not need it
    try:
        if file_format(path) in PHOTO_FORMATS:
            with Image.open(path) as image:
                pixels = image.width * image.height
        else:
            with open_raster(path) as source:
                pixels = (
                    source.width * source.height * max(1, source.count // 4)
                )  # rasters are read with all bands
                if source.dataset.colorinterp[0].name == "palette":
                    return "colours of a palette cannot be averaged"
                for dose in ("haze", "jpeg"):
                    if dose in degradation.doses and not _is_rgb(source):
                        return f"{dose} is defined for 8-bit colour pictures, not for multispectral rasters"
    except (ToolError, OSError, ValueError):
        return "a picture among the files cannot be read"
    return "a picture among the files is too large to decode" if pixels > MAX_PIXELS else ""


def _is_rgb(source: RasterSource) -> bool:
    return source.dtype == "uint8" and len(source.data_bands) == 3


def degrade_file(path: Path, file: SampleFile, degradation: Degradation, noise_seed: int) -> bytes:
    """Return the content of the degraded copy of a picture.

    A photograph becomes a PNG, or a JPEG at the dose ``jpeg``, upright, with the EXIF data of its camera. A raster
    becomes a GeoTIFF with the type, georeference, names and missing data of the original.

    Raises:
        ToolError: the file cannot be read.
    """
    generator = np.random.default_rng(noise_seed)
    if file_format(path, shown_as=file.name) not in PHOTO_FORMATS:
        return _degrade_raster(path, degradation, generator)
    picture = read_image(path, shown_as=file.name, may_be_blank=True)
    bands = picture.pixels.transpose(2, 0, 1).astype(np.float32)
    bands = degrade_bands(
        bands, degradation, generator, np.ones(3, np.float32), is_grey=picture.is_grey
    )
    image = Image.fromarray(_as_bytes(bands))
    exif = _camera_data(path)
    buffer = io.BytesIO()
    if picture.valid is None and degradation.jpeg is not None:
        image.save(buffer, "JPEG", quality=degradation.jpeg, exif=exif)
        return buffer.getvalue()
    image = _compressed(image, degradation.jpeg)
    if picture.valid is not None:
        image.putalpha(Image.fromarray(picture.valid.astype(np.uint8) * 255))
    image.save(buffer, "PNG", compress_level=2, exif=exif)
    return buffer.getvalue()


def degrade_bands(
    bands: FloatArray,
    degradation: Degradation,
    generator: np.random.Generator,
    levels: FloatArray,
    *,
    is_grey: bool = False,
) -> FloatArray:
    """Return bands (bands, rows, columns) with haze, blur, coarser sampling and noise; NaN (missing data) stays.

    Args:
        levels: size of one level of the noise, for each band.
        is_grey: add the same noise to all bands, so that a grey picture stays grey.
    """
    scene_share = np.float32(1 - degradation.haze)
    airlight = np.float32(_AIRLIGHT * degradation.haze)
    noise_levels = np.float32(degradation.noise)
    degraded = np.empty_like(bands)
    noise: FloatArray | None = None
    for at, values in enumerate(bands):
        hazy = values * scene_share + airlight
        smooth = _smoothed_data(hazy, np.isfinite(values), degradation)
        if degradation.noise and (noise is None or not is_grey):
            noise = generator.standard_normal(values.shape, np.float32) * noise_levels
        degraded[at] = smooth if noise is None else smooth + noise * levels[at]
    return degraded


def _smoothed_data(
    values: FloatArray, valid: NDArray[np.bool_], degradation: Degradation
) -> FloatArray:
    """Return a smoothed band, in which only pixels with data are averaged; those without become NaN."""
    if valid.all():
        return _smoothed(values, degradation)
    share_of_data = np.maximum(
        _smoothed(valid.astype(np.float32), degradation), _LEAST_SHARE_OF_DATA
    )
    sum_of_data = _smoothed(np.where(valid, values, 0).astype(np.float32), degradation)
    return np.where(valid, sum_of_data / share_of_data, np.nan)


def _smoothed(values: FloatArray, degradation: Degradation) -> FloatArray:
    """Return a band after the optics and the sampling: blurred, averaged to coarser pixels and interpolated back."""
    if degradation.blur:
        values = np.asarray(cv2.GaussianBlur(values, (0, 0), degradation.blur), np.float32)
    if degradation.gsd > 1:
        rows, columns = values.shape
        size = (columns, rows)
        coarse = (
            max(1, round(columns / degradation.gsd)),
            max(1, round(rows / degradation.gsd)),
        )
        values = np.asarray(cv2.resize(values, coarse, interpolation=cv2.INTER_AREA), np.float32)
        values = np.asarray(cv2.resize(values, size, interpolation=cv2.INTER_LINEAR), np.float32)
    return values


def _as_bytes(bands: FloatArray) -> NDArray[np.uint8]:
    return np.ascontiguousarray(
        np.clip(np.rint(np.nan_to_num(bands)), 0, 255).astype(np.uint8).transpose(1, 2, 0)
    )


def _compressed(image: Any, quality: int | None) -> Any:
    if quality is None:
        return image
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return Image.open(io.BytesIO(buffer.getvalue())).convert("RGB")


def _camera_data(path: Path) -> bytes:
    """Return the EXIF data without the orientation, because decoded pixels are upright; empty if damaged."""
    try:
        with Image.open(path) as image:
            exif = image.getexif()
            exif.pop(ExifTags.Base.Orientation, None)
            return exif.tobytes() if len(exif) else b""
    except Exception:
        return b""


def _degrade_raster(path: Path, degradation: Degradation, generator: np.random.Generator) -> bytes:
    """Return a GeoTIFF with degraded bands of data; other bands, such as a mask, stay as they are."""
    with open_raster(path) as source:
        dataset = source.dataset
        values = source.read(source.data_bands)
        raw = dataset.read()
        changed = degrade_bands(values, degradation, generator, _noise_levels(source, values))
        if _is_rgb(source):
            changed = _compressed_bands(changed, degradation.jpeg)
        for band, number in zip(changed, source.data_bands, strict=True):
            stored = (band - dataset.offsets[number - 1]) / dataset.scales[number - 1]
            _write_band(stored, raw[number - 1])
        return _geotiff(dataset, raw)


def _noise_levels(source: RasterSource, values: FloatArray) -> FloatArray:
    """Return the size of one level of the noise for each band: 1 of 255, or 1/255 of the range of its values."""
    if _is_rgb(source):
        return np.ones(len(values), np.float32)
    low, high = np.nanpercentile(values, (2, 98), axis=(1, 2))
    return np.asarray((high - low) / 255, np.float32)


def _compressed_bands(bands: FloatArray, quality: int | None) -> NDArray[Any]:
    """Return the bands of a colour picture after compression; NaN stays."""
    picture = _compressed(Image.fromarray(_as_bytes(bands)), quality)
    return np.where(np.isfinite(bands), np.asarray(picture).transpose(2, 0, 1), np.nan)


def _write_band(stored: NDArray[Any], raw: NDArray[Any]) -> None:
    """Write the values of a band into ``raw``, in its type; where they are missing, it keeps its own."""
    if raw.dtype.kind != "f":
        limits = np.iinfo(raw.dtype)
        stored = np.clip(np.rint(stored), limits.min, limits.max)
    valid = np.isfinite(stored)
    raw[valid] = stored[valid].astype(raw.dtype)


def _geotiff(dataset: Any, raw: NDArray[Any]) -> bytes:
    """Return the content of a GeoTIFF with other values, and what describes the bands of ``dataset``."""
    profile = dataset.profile
    with MemoryFile() as memory:
        with rasterio.Env(GDAL_PAM_ENABLED="NO"):
            with without_place_warning():
                out = memory.open(
                    driver="GTiff",
                    compress="deflate",
                    dtype=profile["dtype"],
                    nodata=profile["nodata"],
                    width=profile["width"],
                    height=profile["height"],
                    count=profile["count"],
                    crs=profile["crs"],
                    transform=profile["transform"],
                )
            with out:
                out.write(raw)
                out.descriptions = dataset.descriptions
                out.colorinterp = dataset.colorinterp
                out.scales = dataset.scales
                out.offsets = dataset.offsets
                for number in dataset.indexes:
                    out.update_tags(number, **dataset.tags(number))
        content: bytes = memory.read()
        return content
