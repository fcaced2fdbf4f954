"""PApple RGB-D-Size (Ferrer-Ferrer et al. 2023; Gené-Mola et al. 2023): apple tree photographs with depth, in crops."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.core import BenchmarkError, Intrinsics, ToolError
from agrotools_build.boxes import read_marks
from agrotools_build.sources.land import TOGETHER, apple_subject
from agrotools_build.sources.part import DataSet, Part
from agrotools_build.sources.reading import (
    Item,
    Row,
    find_root,
    first_of,
    read_photo,
    read_rows,
    spread,
    with_files,
)
from agrotools_build.templates.thing import Subject
from agrotools_tools.fruit.camera import read_depth

Outline = list[NDArray[np.int32]]
"""Polygons, each (points, 2); an apple behind a twig consists of several."""
Key = tuple[int, int]
"""Year and number of an apple."""
_LARGEST_PX = 20_000
_DEPTH_UNIT_MM = 0.1
_FARTHEST = 65534
"""Largest depth of a 16-bit picture, in steps of 0.1 mm. Larger depths are background; 65535 means "not measured"."""
_SAME_SHAPE = 0.02


class _Apple(NamedTuple):
    """An apple. ``seen``: its visible pieces; ``box``: around the whole apple including hidden parts, half-open."""

    key: Key
    seen: Outline
    box: tuple[int, int, int, int]
    diameter_mm: float


def papple(data: DataSet) -> Part:
    """Diameters of apples in boxes, each apple used once."""
    of = data.layout
    root = find_root(data.folder, of["root"])
    focal_file = root / "focal_length.txt"
    focals = (
        {row["name"]: row["px"] for row in read_rows(focal_file, of["focals"])}
        if focal_file.is_file()
        else {}
    )
    apples = _apples_in(root, _diameters(first_of(root, of["diameters"]["in"]), data), data)
    rows: Iterator[Row] = ({"name": name} for name in apples)
    pictures = with_files(data, root, rows, "the file of outlines")

    def kind(picture: Item) -> tuple[int, int]:
        some = apples[picture.name]
        return some[0].key[0], min(len(some), TOGETHER)

    in_turn = spread(pictures, kind, len(pictures), of["seed"])
    subjects: list[Subject] = []
    shown_keys: set[Key] = set()
    in_use = 0
    for number, picture in enumerate(in_turn):
        if in_use == data.wanted:
            break
        # An apple may be in several crops; its answer in one would reveal it in another.
        fresh = [apple for apple in apples[picture.name] if apple.key not in shown_keys]
        data.dropped["apples shown in another picture already"] += len(apples[picture.name]) - len(
            fresh
        )
        focal_px = float(focals.get(picture.name) or of["focal_px"])
        some, keys = (
            _subjects(f"papple-{number}", picture, fresh, focal_px, data) if fresh else ([], set())
        )
        subjects += some
        subjects += [replace(one, name=f"{one.name}-boxed", of="boxed_apple") for one in some]
        shown_keys |= keys
        in_use += bool(some)
    templates = ["apple", "apple_choice", "drawn_apple_boxes"]
    return data.part(subjects, templates, {"papple_usable_pictures": len(pictures)})


def _diameters(path: Path, data: DataSet) -> dict[Key, float]:
    """Return calliper diameters in millimetres, without contradictory ones."""
    least, most = data.layout["range_mm"]
    diameters: dict[Key, set[float]] = {}
    for row in read_rows(path, data.layout["diameters"]):
        if int(row["orchard"]) == int(data.layout["orchard"]):
            if not least <= float(row["mm"]) <= most:
                raise BenchmarkError(
                    f"{path}: no apple measures {row['mm']} mm ({row['year']}, {row['apple']})"
                )
            diameters.setdefault((int(row["year"]), int(row["apple"])), set()).add(float(row["mm"]))
    return {key: values.pop() for key, values in diameters.items() if len(values) == 1}


def _apples_in(
    root: Path, diameters: Mapping[Key, float], data: DataSet
) -> dict[str, list[_Apple]]:
    """Return the apples that are usable by their outlines and diameters, by picture that has any."""
    of, left_out = data.layout, data.dropped
    seen = read_outlines(root / of["root"][0], left_out)
    whole = read_outlines(root / of["root"][1], Counter())
    by_name: dict[str, list[_Apple]] = {}
    for name, pieces in seen.items():
        parts = Path(name).stem.split("_")
        year = of["years"].get(parts[2][:1]) if len(parts) > 2 else None
        if year is None:
            left_out["pictures whose names tell no year"] += 1
            continue
        for number, outline in pieces.items():
            key = year, number
            if key not in diameters:
                left_out["apples without a diameter"] += 1
                continue
            if number not in whole.get(name, {}):
                left_out["apples without a whole outline"] += 1
                continue
            points = np.concatenate(whole[name][number])
            (x0, y0), (x1, y1) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
            box = (x0, y0, x1 + 1, y1 + 1)
            seen_px, whole_px = (
                int(_mask_of(one, box).sum()) for one in (outline, whole[name][number])
            )
            if seen_px < of["least_area_px"]:
                left_out["apples that are too small in the picture"] += 1
            elif seen_px < of["least_seen"] * whole_px:
                left_out["apples that are mostly hidden"] += 1
            else:
                by_name.setdefault(name, []).append(_Apple(key, outline, box, diameters[key]))
        if name not in by_name:
            left_out["pictures without a usable apple"] += 1
    return by_name


def _subjects(
    name: str, picture: Item, apples: Sequence[_Apple], focal_px: float, data: DataSet
) -> tuple[list[Subject], set[Key]]:
    """Return subjects of one picture and the keys of their apples; both empty if no apple has a depth."""
    photo = read_photo(picture.files["picture"])
    width, height = photo.width, photo.height
    steps = _depth_steps(picture.files["depth"], (width, height))
    if steps is None:
        data.dropped["pictures without depth"] += 1
        return [], set()
    usable: list[_Apple] = []
    for apple in apples:
        x0, y0, x1, y1 = apple.box
        if x0 <= 0 or y0 <= 0 or x1 >= width or y1 >= height:
            data.dropped["apples at the edge of a picture"] += 1
        elif (
            np.mean(steps[y0:y1, x0:x1][_mask_of(apple.seen, apple.box)] > 0)
            < data.layout["least_depth"]
        ):
            data.dropped["apples without depth"] += 1
        else:
            usable.append(apple)
    if not usable:
        return [], set()
    camera = Intrinsics(fx_px=focal_px, fy_px=focal_px, cx_px=width / 2, cy_px=height / 2)
    note = "Part of a photograph of apple trees."
    size = {"width_px": width, "height_px": height}
    image = data.originals.file(picture.files["picture"], **size, intrinsics=camera, note=note)
    content = cv2.imencode(".png", steps)[1].tobytes()
    about = {
        "kind": "depth",
        "depth_unit_mm": _DEPTH_UNIT_MM,
        "note": "Depth registered to the picture.",
    }
    files = image, data.originals.add_content(content, ".png", **about)
    fruits = [(apple.box, apple.diameter_mm) for apple in usable]
    starts = range(0, len(fruits), TOGETHER)
    subjects = [
        apple_subject(f"{name}-{start}", files, fruits[start : start + TOGETHER])
        for start in starts
    ]
    return subjects, {apple.key for apple in usable}


def _depth_steps(path: Path, size: tuple[int, int]) -> NDArray[np.uint16] | None:
    """Return depth at ``size`` (width, height) in steps of 0.1 mm, 0 if unknown; None without any."""
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
    steps = np.round(np.nan_to_num(mm, nan=0.0) / _DEPTH_UNIT_MM)
    return np.where(steps <= _FARTHEST, steps, 0).astype(np.uint16)


def read_outlines(path: Path, left_out: Counter[str]) -> dict[str, dict[int, Outline]]:
    """Read the pieces of numbered apples, by picture and number, from a file of the VGG Image Annotator.

    ``left_out`` counts unusable ones. BenchmarkError: the file has another format.
    """
    outlines: dict[str, dict[int, Outline]] = {}
    for annotated in read_marks(path, "apple_ID") or ():
        name = annotated.name
        if Path(name).name != name or name in outlines:
            raise BenchmarkError(
                f"{path} cannot be read: picture {name!r} is named twice or leads elsewhere"
            )
        pieces = outlines.setdefault(name, {})
        for number, shape, *_ in annotated.marks:
            if not number.strip("0"):
                left_out["outlines without the number of an apple"] += 1
            elif len(shape) < 6:
                left_out["outlines of fewer than three points"] += 1
            elif number.isdecimal() and all(abs(value) <= _LARGEST_PX for value in shape):
                pieces.setdefault(int(number), []).append(
                    np.round(np.reshape(shape, (-1, 2))).astype(np.int32)
                )
            else:
                what = "cannot be read: no number of an apple, or an outline that reaches beyond any picture"
                raise BenchmarkError(f"{path}, {name[:80]} {what}: {number[:20]}")
    return outlines


def _mask_of(outline: Outline, box: Sequence[int]) -> NDArray[np.bool_]:
    drawn = np.zeros((box[3] - box[1], box[2] - box[0]), np.uint8)
    for piece in outline:
        # Pieces are drawn one by one, because overlapping pieces drawn together would leave a hole.
        cv2.fillPoly(drawn, [piece - np.array(box[:2], np.int32)], 1)
    return drawn > 0
