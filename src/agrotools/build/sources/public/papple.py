"""PApple RGB-D-Size (Ferrer-Ferrer et al. 2023; Gené-Mola et al. 2023): apple tree photographs with depth, in crops."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.build.boxes import read_marks
from agrotools.build.sources.part import DataSet, Part, adapter, reasons
from agrotools.build.sources.photos import TOGETHER, apple_subject
from agrotools.build.sources.reading import (
    existing_files,
    find_root,
    first_of,
    read_lines,
    read_photo,
    spread,
)
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, Intrinsics, ToolError
from agrotools.tools.fruit.camera import read_depth

Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, half-open."""
Outline = list[NDArray[np.int32]]
"""Polygons, each (points, 2); an apple behind a twig consists of several."""
_LARGEST_PX = 20_000
FOCAL_PX = 5805.34
"""Focal length of the photographs in pixels, as used by the authors; a file may give others."""
DEPTH_UNIT_MM = 0.1
_FARTHEST = 65534
"""Largest depth of a 16-bit picture, in steps of :data:`DEPTH_UNIT_MM`. Larger depths are background; the value 65535
means "not measured".
"""
_OUTLINES, _WHOLE_OUTLINES = "via_region_data_instance.json", "via_region_data_amodal.json"
_DEPTH_FOLDERS = ("depth_maps", "depthCropNpy")
_DIAMETER_FILES = ("GT_diameter.txt", "GT_diameters.txt")
_FOCAL_FILE = "focal_length.txt"
_DIAMETER = re.compile(r"(\d{4})_(\d+)_(\d+)\.txt\s*,\s*(\d+(?:\.\d+)?)")
_FOCAL = re.compile(r"(.*),\s*(\d+(?:\.\d+)?)")
_ORCHARD = 1
"""Second number in the lines of diameters that belong to the crops."""
_YEARS = {"2": 2018, "3": 2018, "6": 2020, "7": 2020}
"""Year by the first digit of the number of a photograph."""
_LEAST_MM, _MOST_MM = 10.0, 150.0
_LEAST_SEEN = 0.6
"""Minimum visible share of an apple, as in the authors' size errors; with less, its box may not identify it."""
_LEAST_AREA_PX = 70
_LEAST_DEPTH = 0.5
_SAME_SHAPE = 0.02
_SEED = 4


@dataclass(frozen=True, eq=False)
class _Apple:
    """An apple. ``seen``: its visible pieces; ``box``: around the whole apple including hidden parts, half-open."""

    key: tuple[int, int]
    seen: Outline
    box: Box
    diameter_mm: float


@dataclass(frozen=True, eq=False)
class _Picture:
    path: Path
    depth: Path
    year: int
    apples: Sequence[_Apple]

    @property
    def files(self) -> tuple[Path, Path]:
        return self.path, self.depth


@adapter("papple")
def papple(data: DataSet) -> Part:
    """Diameters of apples in boxes, each apple used once."""
    root = find_root(data.folder, (f"gt_json/test/{_OUTLINES}", f"gt_json/test/{_WHOLE_OUTLINES}", "images/test"))
    depths = first_of(root, _DEPTH_FOLDERS)
    diameters, focals = _diameters(first_of(root, _DIAMETER_FILES)), _focals(root / _FOCAL_FILE)
    pictures = list(_pictures(root, depths, diameters, data.dropped))
    there = existing_files(data, root, (str(path.relative_to(root)) for one in pictures for path in one.files))
    pictures = [one for one in pictures if all(str(path.relative_to(root)) in there for path in one.files)]
    in_turn = spread(pictures, lambda one: (one.year, min(len(one.apples), TOGETHER)), len(pictures), _SEED)
    subjects: list[Subject] = []
    shown_keys: set[tuple[int, int]] = set()
    in_use = 0
    for number, picture in enumerate(in_turn):
        if in_use == data.wanted:
            break
        # An apple may be in several crops; its answer in one would reveal it in another.
        fresh = [apple for apple in picture.apples if apple.key not in shown_keys]
        data.dropped["apples shown in another picture already"] += len(picture.apples) - len(fresh)
        focal = focals.get(picture.path.name, FOCAL_PX)
        some, keys = _subjects(f"papple-{number}", picture, fresh, focal, data) if fresh else ([], set())
        subjects += some
        subjects += [replace(one, name=f"{one.name}-boxed", of="boxed_apple") for one in some]
        shown_keys |= keys
        in_use += bool(some)
    if not subjects:
        why = reasons(data.dropped) or "none is annotated"
        raise BenchmarkError(f"{root} has no picture with an apple that can be asked about: {why}")
    return data.part(
        subjects, ["apple", "apple_choice", "drawn_apple_boxes"], {"papple_usable_pictures": len(pictures)}
    )


def _diameters(path: Path) -> dict[tuple[int, int], float]:
    """Return calliper diameters in millimetres by year and number of the apple, without contradictory ones."""
    diameters: dict[tuple[int, int], set[float]] = {}
    for number, line in read_lines(path):
        match = _DIAMETER.fullmatch(line)
        if match is None:
            raise BenchmarkError(f"{path}, line {number} is not a diameter (2020_01_322.txt,63): {line[:60]}")
        if int(match[2]) != _ORCHARD:
            continue
        diameter = float(match[4])
        if not _LEAST_MM <= diameter <= _MOST_MM:
            raise BenchmarkError(f"{path}, line {number}: no apple measures {diameter:g} mm")
        diameters.setdefault((int(match[1]), int(match[3])), set()).add(diameter)
    return {key: values.pop() for key, values in diameters.items() if len(values) == 1}


def _focals(path: Path) -> dict[str, float]:
    """Return focal lengths in pixels by picture; empty if the optional file does not exist."""
    focals: dict[str, float] = {}
    for number, line in read_lines(path) if path.is_file() else ():
        match = _FOCAL.fullmatch(line)
        if match is None or not 100 <= float(match[2]) <= 100_000:
            raise BenchmarkError(f"{path}, line {number} is not a focal length in pixels: {line[:60]}")
        focals[match[1].strip()] = float(match[2])
    return focals


def _pictures(
    root: Path, depths: Path, diameters: Mapping[tuple[int, int], float], left_out: Counter[str]
) -> Iterator[_Picture]:
    """Yield the pictures with at least one apple that is usable by its outlines and diameter."""
    seen = read_outlines(root / "gt_json" / "test" / _OUTLINES, left_out)
    whole = read_outlines(root / "gt_json" / "test" / _WHOLE_OUTLINES, Counter())
    for name, pieces in seen.items():
        parts = Path(name).stem.split("_")
        year = _YEARS.get(parts[2][:1]) if len(parts) > 2 else None
        if year is None:
            left_out["pictures whose names tell no year"] += 1
            continue
        apples: list[_Apple] = []
        for number, outline in pieces.items():
            apple = _apple((year, number), outline, whole.get(name, {}).get(number), diameters)
            if isinstance(apple, str):
                left_out[apple] += 1
            else:
                apples.append(apple)
        if apples:
            yield _Picture(root / "images" / "test" / name, depths / f"{Path(name).stem}.npy", year, apples)
        else:
            left_out["pictures without a usable apple"] += 1


def _apple(
    key: tuple[int, int], seen: Outline, whole: Outline | None, diameters: Mapping[tuple[int, int], float]
) -> _Apple | str:
    """Return the apple, or the reason why it cannot be used."""
    if key not in diameters:
        return "apples without a diameter"
    if whole is None:
        return "apples without a whole outline"
    box = box_of(whole)
    seen_px, whole_px = (int(np.count_nonzero(mask_of(outline, box))) for outline in (seen, whole))
    if seen_px < _LEAST_AREA_PX:
        return "apples that are too small in the picture"
    if seen_px < _LEAST_SEEN * whole_px:
        return "apples that are mostly hidden"
    return _Apple(key, seen, box, diameters[key])


def _subjects(
    name: str, picture: _Picture, apples: Sequence[_Apple], focal_px: float, data: DataSet
) -> tuple[list[Subject], set[tuple[int, int]]]:
    """Return subjects of one picture and the keys of their apples; both empty if no apple has a depth."""
    photo = read_photo(picture.path)
    width, height = photo.width, photo.height
    steps = _depth_steps(picture.depth, (width, height))
    if steps is None:
        data.dropped["pictures without depth"] += 1
        return [], set()
    usable: list[_Apple] = []
    for apple in apples:
        x0, y0, x1, y1 = apple.box
        if x0 <= 0 or y0 <= 0 or x1 >= width or y1 >= height:
            data.dropped["apples at the edge of a picture"] += 1
        elif np.mean(steps[y0:y1, x0:x1][mask_of(apple.seen, apple.box)] > 0) < _LEAST_DEPTH:
            data.dropped["apples without depth"] += 1
        else:
            usable.append(apple)
    if not usable:
        return [], set()
    camera = Intrinsics(fx_px=focal_px, fy_px=focal_px, cx_px=width / 2, cy_px=height / 2)
    size = {"width_px": width, "height_px": height}
    note = "Part of a photograph of apple trees."
    image = data.originals.file(picture.path, **size, intrinsics=camera, note=note)
    depth = data.originals.add_content(
        cv2.imencode(".png", steps)[1].tobytes(),
        ".png",
        kind="depth",
        depth_unit_mm=DEPTH_UNIT_MM,
        note="Depth registered to the picture.",
    )
    fruits = [(apple.box, apple.diameter_mm) for apple in usable]
    starts = range(0, len(fruits), TOGETHER)
    subjects = [apple_subject(f"{name}-{start}", (image, depth), fruits[start : start + TOGETHER]) for start in starts]
    return subjects, {apple.key for apple in usable}


def _depth_steps(path: Path, size: tuple[int, int]) -> NDArray[np.uint16] | None:
    """Return depth at ``size`` (width, height) in steps of :data:`DEPTH_UNIT_MM`, 0 if unknown; None without any."""
    try:
        mm = read_depth(path, 1000.0, shown_as=str(path)).mm
    except ToolError as error:
        if error.kind == "nothing_found":
            return None
        raise BenchmarkError(f"{path} is no depth in metres: {error.message}") from error
    across, down = mm.shape[1] / size[0], mm.shape[0] / size[1]
    if abs(across - down) > _SAME_SHAPE * max(across, down):
        values = f"{mm.shape[1]} x {mm.shape[0]} values"
        raise BenchmarkError(f"{path} has {values}, and its picture {size[0]} x {size[1]} pixels")
    if (mm.shape[1], mm.shape[0]) != size:
        # Nearest values, because depths between an apple and the leaves behind it do not exist.
        mm = cv2.resize(mm, size, interpolation=cv2.INTER_NEAREST)
    steps = np.round(np.nan_to_num(mm, nan=0.0) / DEPTH_UNIT_MM)
    return np.where(steps <= _FARTHEST, steps, 0).astype(np.uint16)


def read_outlines(path: Path, left_out: Counter[str]) -> dict[str, dict[int, Outline]]:
    """Read the pieces of every numbered apple, by picture and number, from a file of the VGG Image Annotator.

    ``left_out``: counter of unusable outlines, by reason.

    Raises:
        BenchmarkError: the file cannot be read, or has another format.
    """
    outlines: dict[str, dict[int, Outline]] = {}
    for name, marks in read_marks(path, "apple_ID") or ():
        if Path(name).name != name or name in outlines:
            raise BenchmarkError(f"{path} cannot be read: picture {name!r} is named twice or leads elsewhere")
        pieces = outlines.setdefault(name, {})
        for number, shape, *_ in marks:
            if not number.strip("0"):
                left_out["outlines without the number of an apple"] += 1
            elif len(shape) < 6:
                left_out["outlines of fewer than three points"] += 1
            elif number.isdecimal() and all(abs(value) <= _LARGEST_PX for value in shape):
                pieces.setdefault(int(number), []).append(np.round(np.reshape(shape, (-1, 2))).astype(np.int32))
            else:
                what = "cannot be read: no number of an apple, or an outline that reaches beyond any picture"
                raise BenchmarkError(f"{path}, {name[:80]} {what}: {number[:20]}")
    return outlines


def box_of(outline: Outline) -> Box:
    """Return the box around all pieces."""
    points = np.concatenate(outline)
    (x0, y0), (x1, y1) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return x0, y0, x1 + 1, y1 + 1


def mask_of(outline: Outline, box: Sequence[int]) -> NDArray[np.bool_]:
    """Return the mask of pixels in the box that are inside one of the pieces."""
    drawn = np.zeros((box[3] - box[1], box[2] - box[0]), np.uint8)
    for piece in outline:
        # Pieces are drawn one by one, because overlapping pieces drawn together would leave a hole.
        cv2.fillPoly(drawn, [piece - np.array(box[:2], np.int32)], 1)
    return drawn > 0
