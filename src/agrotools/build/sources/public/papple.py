"""PApple RGB-D-Size (Ferrer-Ferrer et al. 2023; Gené-Mola et al. 2023): crops of photographs of apple trees with depth
from many views; people outlined the apples, as seen and whole, and measured each with a calliper. The test split."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.build.asking import Subject
from agrotools.build.sources.field.fruit import TOGETHER, apple_subject
from agrotools.build.sources.part import Originals, Part, first_few
from agrotools.build.sources.public.reading import (
    Box,
    Outline,
    box_of,
    find_root,
    mask_of,
    read_outlines,
    spread,
    upright_size,
)
from agrotools.build.templates import load_templates
from agrotools.core import BenchmarkError, Intrinsics, ToolError
from agrotools.formats.benchmark import SourceNote
from agrotools.tools.fruit.camera import read_depth

GET_IT = (
    "get PApple_RGB-D-Size_dataset_v4.zip from Zenodo record 7260694, so that images/test, gt_json/test, depth_maps"
    " (or depthCropNpy) and GT_diameter.txt (or GT_diameters.txt) lie side by side"
)
SOURCE = SourceNote(
    name="PApple RGB-D-Size",
    licence="not stated",
    url="https://zenodo.org/records/7260694",
    citation="Ferrer-Ferrer, M. et al.: Simultaneous fruit detection and size estimation using multitask deep neural"
    " networks. Biosystems Engineering, 2023. Gené-Mola, J. et al.: Looking behind occlusions through amodal"
    " segmentation for robust on-tree fruit size measurement. Computers and Electronics in Agriculture 209, 107854,"
    " 2023.",
    note="Questions, reference calls and tolerances are by agrotools; images, outlines, depth and calliper sizes are"
    " the authors'. Test split. Depth was rewritten in steps of 0.1 mm; where the optical axis meets a crop is not"
    " known and was taken as its middle.",
)
FOCAL_PX = 5805.34
"""Of every photograph, as the authors use it, where no file says otherwise."""
DEPTH_UNIT_MM = 0.1
_FARTHEST = 65534
"""Steps of depth that a picture of 16 bits holds; the largest value means "not measured". Farther is background."""
_OUTLINES, _WHOLE_OUTLINES = "via_region_data_instance.json", "via_region_data_amodal.json"
_DEPTH_FOLDERS = ("depth_maps", "depthCropNpy")
_DIAMETER_FILES = ("GT_diameter.txt", "GT_diameters.txt")
_FOCAL_FILE = "focal_length.txt"
_DIAMETER = re.compile(r"(\d{4})_(\d+)_(\d+)\.txt\s*,\s*(\d+(?:\.\d+)?)")
_ORCHARD = 1
"""Second number of a line of diameters that crops belong to."""
_YEARS = {"2": 2018, "3": 2018, "6": 2020, "7": 2020}
"""By the first digit of the number of a photograph."""
_LEAST_MM, _MOST_MM = 10.0, 150.0
_LEAST_SEEN = 0.6
"""Share of an apple that must be seen, as where the authors report errors of sizes: of less a box hardly says which
apple is meant."""
_LEAST_AREA_PX = 70
_LEAST_DEPTH = 0.5
_SAME_SHAPE = 0.02
_SEED = 4
_PICTURES_A_SAMPLE = 2


@dataclass(frozen=True, eq=False)
class _Apple:
    """``seen``: its visible pieces; ``box``: of the whole apple, hidden parts included, ends excluded."""

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


def read(folder: Path, scratch: Path, samples: int) -> Part:
    """Raises BenchmarkError: the data set is incomplete, or not as its authors describe it."""
    root = find_root(
        folder, (f"gt_json/test/{_OUTLINES}", f"gt_json/test/{_WHOLE_OUTLINES}", "images/test"), get_it=GET_IT
    )
    depths = _one_of(root, _DEPTH_FOLDERS)
    diameters, focals = _diameters(_one_of(root, _DIAMETER_FILES)), _focals(root / _FOCAL_FILE)
    left_out: Counter[str] = Counter()
    pictures = list(_pictures(root, depths, diameters, left_out))
    _refuse_missing([picture.path for picture in pictures] + [picture.depth for picture in pictures])
    in_turn = spread(pictures, lambda one: (one.year, min(len(one.apples), TOGETHER)), len(pictures), _SEED)
    originals = Originals(scratch)
    subjects: list[Subject] = []
    asked: set[tuple[int, int]] = set()
    shown = 0
    for number, picture in enumerate(in_turn):
        if shown == _PICTURES_A_SAMPLE * samples:
            break
        # One apple is in several crops and would give its answer away to whoever knows it from another.
        fresh = [apple for apple in picture.apples if apple.key not in asked]
        left_out["apples shown in another picture already"] += len(picture.apples) - len(fresh)
        focal = focals.get(picture.path.name, FOCAL_PX)
        if fresh and (some := _subjects(f"papple-{number}", picture, fresh, focal, originals, left_out)):
            subjects += some[0]
            asked |= some[1]
            shown += 1
    if not subjects:
        raise BenchmarkError(
            f"{root} has no picture with an apple that can be asked about: {_told(left_out)}", hint=GET_IT
        )
    return Part(
        "papple",
        SOURCE,
        subjects,
        (*load_templates("apple"), *load_templates("apple_choice")),
        samples,
        originals.files,
        metadata={"papple_usable_pictures": len(pictures), "papple_left_out": {**left_out}},
        dropped=left_out,
    )


def _one_of(root: Path, names: Sequence[str]) -> Path:
    for name in names:
        if (root / name).exists():
            return root / name
    raise BenchmarkError(f"{root} has neither {' nor '.join(names)}", hint=GET_IT)


def _refuse_missing(paths: Sequence[Path]) -> None:
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise BenchmarkError(f"these files are missing: {first_few(missing)}", hint=GET_IT)


def _told(left_out: Counter[str]) -> str:
    return "; ".join(f"{count} {what}" for what, count in left_out.items() if count) or "none is annotated"


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}", hint=GET_IT) from error
    return ((number, line.strip()) for number, line in enumerate(text.splitlines(), start=1) if line.strip())


def _diameters(path: Path) -> dict[tuple[int, int], float]:
    """Calliper diameters in millimetres by year and number of the apple; those with two different ones are left out."""
    found: dict[tuple[int, int], set[float]] = {}
    for number, line in _lines(path):
        match = _DIAMETER.fullmatch(line)
        if match is None:
            raise BenchmarkError(
                f"{path}, line {number} is not a diameter (2020_01_322.txt,63): {line[:60]}", hint=GET_IT
            )
        if int(match[2]) != _ORCHARD:
            continue
        diameter = float(match[4])
        if not _LEAST_MM <= diameter <= _MOST_MM:
            raise BenchmarkError(f"{path}, line {number}: no apple measures {diameter:g} mm", hint=GET_IT)
        found.setdefault((int(match[1]), int(match[3])), set()).add(diameter)
    return {key: values.pop() for key, values in found.items() if len(values) == 1}


def _focals(path: Path) -> dict[str, float]:
    """Focal lengths in pixels by picture; none where the file, which is optional, is absent."""
    found: dict[str, float] = {}
    for number, line in _lines(path) if path.is_file() else ():
        name, _, length = line.rpartition(",")
        try:
            found[name.strip()] = float(length)
        except ValueError:
            found[name.strip()] = 0.0
        if not 100 <= found[name.strip()] <= 100_000:
            raise BenchmarkError(f"{path}, line {number} is not a focal length in pixels: {line[:60]}", hint=GET_IT)
    return found


def _pictures(
    root: Path, depths: Path, diameters: Mapping[tuple[int, int], float], left_out: Counter[str]
) -> Iterator[_Picture]:
    """Pictures with at least one apple that can be asked about, as far as outlines and sizes tell."""
    seen = read_outlines(root / "gt_json" / "test" / _OUTLINES, left_out, get_it=GET_IT)
    whole = read_outlines(root / "gt_json" / "test" / _WHOLE_OUTLINES, Counter(), get_it=GET_IT)
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
    """The apple, or why it cannot be asked about."""
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
    name: str,
    picture: _Picture,
    apples: Sequence[_Apple],
    focal_px: float,
    originals: Originals,
    left_out: Counter[str],
) -> tuple[list[Subject], set[tuple[int, int]]] | None:
    """Things of one picture, with their apples; None where none has a depth."""
    width, height = upright_size(picture.path, get_it=GET_IT)
    steps = _depth_steps(picture.depth, (width, height))
    if steps is None:
        left_out["pictures without depth"] += 1
        return None
    kept: list[_Apple] = []
    for apple in apples:
        x0, y0, x1, y1 = apple.box
        if x0 <= 0 or y0 <= 0 or x1 >= width or y1 >= height:
            left_out["apples at the edge of a picture"] += 1
        elif np.mean(steps[y0:y1, x0:x1][mask_of(apple.seen, apple.box)] > 0) < _LEAST_DEPTH:
            left_out["apples without depth"] += 1
        else:
            kept.append(apple)
    if not kept:
        return None
    camera = Intrinsics(fx_px=focal_px, fy_px=focal_px, cx_px=width / 2, cy_px=height / 2)
    image = originals.file(
        picture.path, width_px=width, height_px=height, intrinsics=camera, note="Part of a photograph of apple trees."
    )
    depth = originals.made(
        _png_of(steps), ".png", kind="depth", depth_unit_mm=DEPTH_UNIT_MM, note="Depth registered to the picture."
    )
    fruits = [(apple.box, apple.diameter_mm) for apple in kept]
    starts = range(0, len(fruits), TOGETHER)
    subjects = [apple_subject(f"{name}-{start}", (image, depth), fruits[start : start + TOGETHER]) for start in starts]
    return subjects, {apple.key for apple in kept}


def _depth_steps(path: Path, size: tuple[int, int]) -> NDArray[np.uint16] | None:
    """Depth of every pixel of a picture of ``size`` (width, height), 0 where unknown; None where all is."""
    import cv2

    try:
        mm = read_depth(path, 1000.0, shown_as=str(path)).mm
    except ToolError as error:
        if error.kind == "nothing_found":
            return None
        raise BenchmarkError(f"{path} is no depth in metres: {error.message}", hint=GET_IT) from error
    across, down = mm.shape[1] / size[0], mm.shape[0] / size[1]
    if abs(across - down) > _SAME_SHAPE * max(across, down):
        raise BenchmarkError(
            f"{path} has {mm.shape[1]} x {mm.shape[0]} values, and its picture {size[0]} x {size[1]} pixels",
            hint=GET_IT,
        )
    if (mm.shape[1], mm.shape[0]) != size:
        # Nearest values: between an apple and the leaves behind it there is nothing.
        mm = cv2.resize(mm, size, interpolation=cv2.INTER_NEAREST)
    steps = np.round(np.nan_to_num(mm, nan=0.0) / DEPTH_UNIT_MM)
    return np.where(steps <= _FARTHEST, steps, 0).astype(np.uint16)


def _png_of(steps: NDArray[np.uint16]) -> bytes:
    import cv2

    return cv2.imencode(".png", steps)[1].tobytes()
