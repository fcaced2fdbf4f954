"""Benchmarks of drawn scenes: each :class:`SceneKind` draws subjects and turns them into things for questions.

Also files as cameras and sensors write them, and calls that find the marks drawn on them.
"""

import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.core.taxonomy import FileKind
from agrotools_build.references import PlannedCall, ref
from agrotools_build.scenes.scene import Difficulty
from agrotools_build.sources.part import Originals
from agrotools_build.sources.reading import geotiff_of
from agrotools_build.templates.thing import Subject, Thing

T = TypeVar("T")
Only = Callable[[str], bool]
"""Choice of the files of a scene that are needed, by name; pictures without such a file need not be drawn."""


def every_file(_: str) -> bool:
    """Return True: all files of the scene are needed."""
    return True


@dataclass(frozen=True)
class DrawnScene:
    """A drawn subject. ``folder`` holds its files; ``record`` is its truth as :attr:`SceneKind.draw` returned it."""

    name: str
    seed: int
    difficulty: Difficulty
    folder: Path
    record: Mapping[str, JsonValue]

    def subject(
        self, suffix: str, things: int, shown: Callable[[int, int], Thing], of: str, **more: str
    ) -> Subject:
        """Return a subject of this scene whose metadata hold its difficulty and ``more``."""
        metadata: dict[str, JsonValue] = {"difficulty": self.difficulty, **more}
        return Subject(f"{self.name}-{self.seed}-{suffix}", things, shown, metadata, of=of)


@dataclass(frozen=True)
class SceneKind:
    """A kind of scene: its drawing and its questions.

    ``number``: offset of its seeds; ``templates``: files of its templates; ``subjects``: makes subjects of a drawn
    scene; ``backends``: of its reference calls, if not the default. ``draw(seed, difficulty, folder, only)`` draws a
    subject (a pair of dates, four plots...), writes its files into the empty ``folder`` and returns all truth as plain
    JSON, unless some files are left out. A file is the same whatever else is drawn, and depends on the arguments only.
    """

    number: int
    templates: tuple[str, ...]
    draw: Callable[[int, Difficulty, Path, Only], dict[str, JsonValue]]
    subjects: Callable[[DrawnScene, Originals], list[Subject]]
    backends: Mapping[str, str] = field(default_factory=dict)


def turn_of(seed: int, modes: Sequence[T]) -> T:
    """Return the mode of a seed; consecutive seeds take turns, and so do seeds of one difficulty."""
    return modes[(seed + seed // 4) % len(modes)]


SHARES_WITH_MARK = (0.0, 1 / 3, 2 / 3, 1.0)
"""Shares of a scene's pictures in which a mark says what is meant.

Each share is equally likely, so that the words do not tell in how many pictures a mark must be found first.
"""
_NO_DATA = -9999.0
_TOO_FAR = 65535
_FULL_COLOUR = 0
"""JPEG subsampling that preserves thin coloured strokes."""
_BLOCK = 24 * 1024
"""JPEG files are padded to whole blocks: without one thing a picture is hardly smaller, and its size must not tell."""
_CHUNK = 20
"""Bytes of an empty comment chunk in a PNG file: length, type, keyword, checksum."""
INSIDE = ref(0, "regions[0].inner_box")
"""Reference to the region inside the stroke of the mark that the first call found."""


def save_jpeg(
    path: Path, rgb: NDArray[np.uint8], quality: int = 92, *, full_colour: bool = False
) -> None:
    """Save an 8-bit colour picture (rows, columns, 3) as a JPEG; ``full_colour`` keeps colours at full resolution."""
    from PIL import Image

    buffer = BytesIO()
    Image.fromarray(rgb).save(
        buffer, "JPEG", quality=quality, subsampling=_FULL_COLOUR if full_colour else -1
    )
    content = buffer.getvalue()
    path.write_bytes(_padded(content, path.suffix, -len(content) % _BLOCK))


def can_be_blank(path: Path, kind: FileKind) -> bool:
    """Return True if :func:`save_blank` can write a blank file of this kind."""
    return (kind, path.suffix) in (("image", ".jpg"), ("depth", ".png")) or path.name.startswith(
        "heights"
    )


def save_blank(path: Path, original: Path, seed: int) -> None:
    """Save a file of the format and size of ``original`` that holds nothing.

    A photograph is black, washed out or behind a fogged lens, with sensor noise in whole numbers, so that it is the
    same on every machine. In a depth map each pixel has one of the two values that mean "no reading", in a raster of
    heights one of two customary values that mean "no data". The file has as many bytes as ``original``: its size must
    not tell what only a look at the picture tells.
    """
    _write_blank(path, original, seed)
    content = path.read_bytes()
    missing = original.stat().st_size - len(content)
    if missing > _CHUNK:
        path.write_bytes(_padded(content, path.suffix, missing))


def _padded(content: bytes, suffix: str, missing: int) -> bytes:
    """Return the file ``missing`` bytes longer, by parts that readers of its format skip."""
    if suffix == ".jpg":  # comments of at most 65,533 bytes behind the JFIF header
        header_end, comments = 4 + int.from_bytes(content[4:6]), b""
        while missing > 3:
            size = min(missing - 4, 65_529)
            comments += b"\xff\xfe" + (size + 2).to_bytes(2) + bytes(size)
            missing -= size + 4
        return content[:header_end] + comments + content[header_end:]
    if suffix == ".png":  # a text chunk ahead of the end chunk
        chunk = b"tEXtComment\0" + b" " * (missing - _CHUNK)
        return (
            content[:-12]
            + (len(chunk) - 4).to_bytes(4)
            + chunk
            + zlib.crc32(chunk).to_bytes(4)
            + content[-12:]
        )
    return content + bytes(missing)


def _write_blank(path: Path, original: Path, seed: int) -> None:
    rng = np.random.default_rng([seed, zlib.crc32(original.name.encode())])
    if original.suffix == ".tif":
        import rasterio

        with warnings.catch_warnings(action="ignore"), rasterio.open(original) as raster:
            place = {"crs": raster.crs, "transform": raster.transform, "nodata": _NO_DATA}
            stored = np.full((1, *raster.shape), _NO_DATA, np.float32)
        stored[rng.integers(400, size=stored.shape) == 0] = np.finfo(np.float32).min
        path.write_bytes(geotiff_of(stored, ("height",), "m", predictor=3, **place))
        return
    from PIL import Image

    with Image.open(original) as picture:
        columns, rows = picture.size
    if original.suffix == ".png":
        save_png(
            path,
            np.where(rng.integers(400, size=(rows, columns)) == 0, _TOO_FAR, 0).astype(np.uint16),
        )
        return
    veil = (4, 251, int(rng.integers(170, 216)))[int(rng.integers(3))]
    grain = rng.integers(-3, 4, (2, rows, columns, 3), np.int8).sum(axis=0, dtype=np.int16)
    save_jpeg(path, np.clip(veil + grain, 0, 255).astype(np.uint8), 80)


def save_png(path: Path, plane: NDArray[Any]) -> None:
    """Save a plane of 8 or 16 bits losslessly."""
    from PIL import Image

    Image.fromarray(plane).save(path, "PNG")


def save_raster(
    path: Path, bands: NDArray[np.uint16], names: Sequence[str], gsd_m: float, number: int
) -> None:
    """Save reflectance x 10,000 (bands, rows, columns) as a GeoTIFF in UTM zone 32, moved by ``number``."""
    from rasterio.transform import from_origin

    place = {
        "crs": "EPSG:32632",
        "transform": from_origin(500_000 + 10 * number, 5_800_000, gsd_m, gsd_m),
    }
    path.write_bytes(geotiff_of(bands, names, scale=1e-4, predictor=2, **place))


def save_heights(path: Path, heights: NDArray[np.float32], gsd_m: float) -> None:
    """Save metres above ground (rows, columns), NaN without data, to the centimetre, as a GeoTIFF in UTM zone 33."""
    from rasterio.transform import from_origin

    rounded = np.round(heights.astype(np.float64), 2).astype(np.float32)
    stored = np.where(np.isfinite(rounded), rounded, np.float32(_NO_DATA))[None]
    place = {
        "crs": "EPSG:32633",
        "transform": from_origin(500_000.0, 5_000_000.0, gsd_m, gsd_m),
        "nodata": _NO_DATA,
    }
    path.write_bytes(geotiff_of(stored, ("height",), "m", predictor=3, **place))


def find_mark(image: str, colour: str, truth: Mapping[str, JsonValue]) -> PlannedCall:
    """Return the call that finds the only mark of that colour; the enclosed box is ``crop_box`` of its result."""
    thought = f"First I need to know what the {colour} mark in {image} encloses."
    return PlannedCall(
        "extract_marked_region", {"image": image, "mark_color": colour}, {**truth}, thought=thought
    )


def absent_colour(pens: Sequence[str], marks: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return ``{"absent": ...}`` with the first of ``pens`` unlike all drawn marks; empty if there is none."""
    drawn = {mark["color"] for mark in marks}
    taken = drawn | (
        {"blue", "cyan"} if drawn & {"blue", "cyan"} else set()
    )  # these might be taken for each other
    absent = [pen for pen in pens if pen not in taken]
    return {"absent": absent[0]} if absent else {}


def find_outline(image: str, box: list[int]) -> PlannedCall:
    """Return the call that finds the red outline; ``box``: bounds inside the stroke [x0, y0, x1, y1], pixels."""
    truth: dict[str, Any] = {
        "regions": [{"index": 1, "inner_box": box, "color": "red"}],
        "crop_box": box,
    }
    thought = f"First I need where the red outline is in {image}."
    return PlannedCall(
        "extract_marked_region", {"image": image, "mark_color": "red"}, truth, thought=thought
    )


def measured_in_mark(
    thing: Thing, image: str, mark: Mapping[str, Any], question: str, thought: str
) -> Thing:
    """Return ``thing`` measured inside the only mark on ``image``, which a first call finds.

    ``mark``: result of a perfect ``extract_marked_region``; ``question`` continues "I need to know" in its thought.
    """
    look = PlannedCall(
        "extract_marked_region", {"image": image}, {**mark}, thought=f"I need to know {question}."
    )
    words = {**thing.words, "colour": mark["regions"][0]["color"]}
    arguments = {**thing.arguments, "region": INSIDE}
    return replace(thing, arguments=arguments, thought=thought, words=words, before=(look,))
