"""Accuracy of extract_marked_region and describe_region: marks drawn on photographs, and regions of known content.

The photographs are split into halves by their hashes.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from accuracy.study import Bench, Columns, Figure, Study, mean_of
from agrotools.core import BenchmarkError, SampleFile, ToolError
from agrotools.core.files import fold_of
from agrotools.text.agreement_values import box_iou
from agrotools.vision.reading import read_image
from agrotools_tools.marks import MarkColour, MarkShape
from agrotools_tools.marks.measure import COLOURS, PURE_COLOURS, find_marks
from agrotools_tools.vision.colours import NAMED_COLOURS, lab_of_list

SHAPES: tuple[MarkShape, ...] = ("box", "ellipse", "polygon")
LEAST_SIDE_PX = 160
"""Minimum side of a photograph; on smaller ones a mark is hardly larger than its stroke."""
NOT_PHOTOS = ("ocr_text", "gta_samples")
"""Folders of pages and screenshots, which are excluded because some contain drawn boxes already."""


@dataclass(frozen=True)
class DrawnMark:
    """Mark drawn on a photograph. ``box``: bounds of its pixels (x0, y0, x1, y1), stroke included."""

    box: tuple[int, int, int, int]
    colour: MarkColour
    shape: MarkShape
    stroke_px: int


def find_photos(data: Path) -> list[Path]:
    """Return the photographs in all folders of a data set, sorted by name, without masks, rasters and pages."""
    paths = [
        path
        for folder in sorted(data.iterdir())
        if folder.is_dir() and folder.name not in NOT_PHOTOS
        for part in ("images", "A", "B")
        for path in sorted((folder / part).glob("*"))
    ]
    return [path for path in paths if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp")]


_OFF_COLOUR = 0.12
"""Largest distance of a mark's colour from the pure one, as a share of the full scale per channel."""


def draw_mark_on(
    pixels: NDArray[np.uint8],
    colour: MarkColour,
    shape: MarkShape,
    stroke_px: int,
    draw: np.random.Generator,
) -> tuple[NDArray[np.uint8], DrawnMark]:
    """Return a copy of a picture with one mark drawn on it, and the mark.

    Args:
        pixels: uint8 (rows, columns, 3).
        draw: generator of the mark's position and size: sides from 8 % (at least 24 px) to 60 % of the picture's.
    """
    height, width = pixels.shape[:2]
    w, h = (int(draw.integers(max(24, 0.08 * side), 0.6 * side)) for side in (width, height))
    x0, y0 = int(draw.integers(4, width - w - 4)), int(draw.integers(4, height - h - 4))
    pure = np.array(PURE_COLOURS[colour], np.float64)
    shade = np.clip(np.abs(pure - 255 * _OFF_COLOUR * draw.random(3)), 0, 255).astype(int).tolist()
    line = int(draw.choice([cv2.LINE_8, cv2.LINE_AA]))
    points = np.zeros((0, 2), np.int32)
    if shape == "polygon":
        turns = np.sort(draw.random(int(draw.integers(3, 8)))) * 2 * np.pi
        while np.diff([*turns, turns[0] + 2 * np.pi]).max() > 0.9 * np.pi:
            turns = np.sort(draw.random(len(turns))) * 2 * np.pi
        radius = draw.uniform(0.7, 1.0, len(turns))
        points = np.column_stack(
            [
                x0 + w / 2 + w / 2 * radius * np.cos(turns),
                y0 + h / 2 + h / 2 * radius * np.sin(turns),
            ]
        ).astype(np.int32)
    mask = _line_mask((height, width), shape, (x0, y0, w, h), points, stroke_px)
    share = (mask if line == cv2.LINE_AA else 255 * (mask > 127))[..., None] / 255
    picture = (pixels + share * (np.array(shade) - pixels)).round().astype(np.uint8)
    rows, columns = (
        np.flatnonzero((mask > 127).any(axis=1)),
        np.flatnonzero((mask > 127).any(axis=0)),
    )
    box = (int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)
    return picture, DrawnMark(box, colour, shape, stroke_px)


_FINER = 4
"""Lines are drawn on a canvas finer by this factor, as OpenCV draws them one or two pixels wider than it is told."""


def _line_mask(
    size: tuple[int, int],
    shape: MarkShape,
    place: tuple[int, int, int, int],
    points: NDArray[np.int32],
    stroke_px: int,
) -> NDArray[np.uint8]:
    """Return the share of each pixel that the line covers, 0 to 255; its width is right to a quarter of a pixel.

    ``size``: rows and columns. ``place``: left, top, width and height of the mark. ``points``: corners of a polygon.
    """
    x0, y0, w, h = place
    mask = np.zeros(size, np.uint8)
    if shape == "box":
        mask[y0 : y0 + h + 1, x0 : x0 + w + 1] = 255
        mask[y0 + stroke_px : y0 + h + 1 - stroke_px, x0 + stroke_px : x0 + w + 1 - stroke_px] = 0
        return mask

    def finer(x: int, y: int) -> tuple[int, int]:
        return _FINER * x + _FINER // 2, _FINER * y + _FINER // 2

    canvas = np.zeros((_FINER * size[0], _FINER * size[1]), np.uint8)
    thickness = _FINER * stroke_px  # drawn one pixel of the finer canvas wider
    if shape == "ellipse":
        axes = (_FINER * (w // 2), _FINER * (h // 2))
        cv2.ellipse(canvas, finer(x0 + w // 2, y0 + h // 2), axes, 0, 0, 360, 255, thickness)
    elif shape == "polygon":
        corners = _FINER * points + _FINER // 2
        cv2.polylines(canvas, [corners], True, 255, thickness)
    else:
        ends = finer(x0, y0), finer(x0 + w, y0 + h)
        cv2.arrowedLine(canvas, *ends, 255, thickness, tipLength=0.2)
    smaller = cv2.resize(canvas, (size[1], size[0]), interpolation=cv2.INTER_AREA)
    return np.asarray(smaller, np.uint8)


def save_as_jpeg(pixels: NDArray[np.uint8], quality: int, path: Path) -> Path:
    """Save a picture as a JPEG with colours at half resolution (4:2:0), as phones and websites do."""
    Image.fromarray(pixels).save(path, quality=quality, subsampling=2)
    return path


GOAL = 0.93
_MARKS_PER_PHOTO = 2
_FOUND = 0.5


@dataclass(frozen=True)
class _Marked:
    """Photograph with one drawn mark, and the half that it belongs to."""

    path: Path
    drawn: DrawnMark
    half: int
    photo: str


def _marks(bench: Bench) -> list[Figure]:
    columns = Columns()
    marked = _drawn_photos(bench)
    for item in marked:
        best: Any = None
        try:
            result = bench.call(image=item.path)
            best = max(result.regions, key=lambda region: box_iou(region.box, item.drawn.box))
        except ToolError as error:
            if error.kind != "nothing_found":
                raise
        drawn = item.drawn
        iou = box_iou(best.box, drawn.box) if best is not None else 0.0
        kinds = ("all", drawn.colour, drawn.shape, f"{drawn.stroke_px} px")
        columns.add(item.photo, missed=iou <= _FOUND, **dict.fromkeys(kinds, iou))
        if best is not None and iou > _FOUND:
            columns.add(colour=best.color == drawn.colour, shape=best.shape == drawn.shape)
    strokes = sorted({item.drawn.stroke_px for item in marked})
    return [
        columns.mean("box IoU of drawn marks, mean", "all", goal=GOAL),
        columns.mean_error("marks missed (IoU under 0.5), share", "missed"),
        columns.mean("colour right where found, share", "colour"),
        columns.mean("shape right where found, share", "shape"),
        *(columns.mean(f"box IoU, {colour} marks", colour) for colour in COLOURS),
        *(columns.mean(f"box IoU, shape {shape}", shape) for shape in SHAPES),
        *(columns.mean(f"box IoU, stroke {stroke} px", f"{stroke} px") for stroke in strokes),
    ]


def _halves(bench: Bench) -> list[Figure]:
    """Report box IoU and false marks on each half; one mark per photograph."""
    columns = Columns()
    for item in _drawn_photos(bench)[::_MARKS_PER_PHOTO]:
        marks = find_marks(read_image(item.path).pixels)
        iou = max((box_iou(mark.box, item.drawn.box) for mark in marks), default=0.0)
        columns.add(item.photo, **{f"iou {item.half}": iou})
    for path, half in _photos(bench).items():
        columns.add(**{f"false {half}": bool(find_marks(read_image(path).pixels))})
    figures: list[Figure] = []
    for half in (1, 0):
        metric = f"photographs of half {half} with a false mark, share"
        figures += [
            columns.mean(f"box IoU on half {half}, mean", f"iou {half}", goal=GOAL),
            columns.mean_error(metric, f"false {half}", goal=0.0),
        ]
    return figures


def _unmarked(bench: Bench) -> list[Figure]:
    false: list[float] = []
    for path in _photos(bench):
        try:
            bench.call(image=path)
            false.append(1.0)
        except ToolError as error:
            if error.kind != "nothing_found":
                raise
            false.append(0.0)
    return [
        mean_of(
            "unmarked photographs with a false mark, share", false, goal=0.0, higher_is_better=False
        )
    ]


def _photos(bench: Bench) -> dict[Path, int]:
    """Return the photographs of all folders, each with its half; BenchmarkError if there are none."""
    data = bench.folder.parent
    photos = find_photos(data) if data.is_dir() else []
    if not photos:
        raise BenchmarkError(
            f"there are no photographs in the folders of {data}", hint="give --data DIR"
        )
    hashes = {path: sha256(path.read_bytes()).hexdigest() for path in photos}
    halves = fold_of(hashes.values())
    return {path: halves[digest] for path, digest in hashes.items()}


def _drawn_photos(bench: Bench) -> list[_Marked]:
    """Draw marks of all colours and shapes on each photograph: real strokes 2 to 6 px, JPEG quality 75 to 95, 4:2:0."""
    marked: list[_Marked] = []
    for number, (path, half) in enumerate(_photos(bench).items()):
        pixels = read_image(path).pixels
        if min(pixels.shape[:2]) < LEAST_SIDE_PX:
            continue
        digest = sha256(path.read_bytes()).hexdigest()
        draw = np.random.default_rng(int(digest[:8], 16))
        for turn in range(_MARKS_PER_PHOTO):
            colour = COLOURS[(_MARKS_PER_PHOTO * number + turn) % len(COLOURS)]
            shape, stroke = SHAPES[int(draw.integers(len(SHAPES)))], int(draw.integers(2, 7))
            picture, mask = draw_mark_on(pixels, colour, shape, stroke, draw)
            target = bench.scratch / f"marked-{number}-{turn}.jpg"
            save_as_jpeg(picture, int(draw.integers(75, 96)), target)
            marked.append(_Marked(target, mask, half, digest))
    return marked


STUDIES = (
    Study("extract_marked_region", "marks drawn on photographs", _marks, needs_folder=False),
    Study("extract_marked_region", "marks drawn, two-fold", _halves, needs_folder=False),
    Study("extract_marked_region", "unmarked photographs", _unmarked, needs_folder=False),
)


_PATCH_PICTURES = 40
_APART = 20.0
"""Minimum distance in Lab between the colours of one drawn picture; closer colours look the same to the eye."""


def _classes(bench: Bench) -> list[Figure]:
    """Compare the class percentages of every mask of the folder with a count of its values."""
    worst: list[float] = []
    for item in bench.items():
        path = bench.folder / item["mask"]
        known = SampleFile(
            name=path.name, path=str(path), kind="mask", classes=item["mask_classes"]
        )
        result = bench.call(infos={path: known}, image=path)
        with Image.open(path) as image:
            values = np.asarray(image)
        errors = [
            abs(result.class_pcts.get(name, 0.0) - 100 * float((values == int(number)).mean()))
            for number, name in item["mask_classes"].items()
        ]
        worst.append(max(errors))
    return [
        mean_of("class percent, largest error, points", worst, goal=0.0, higher_is_better=False)
    ]


def _cover(bench: Bench) -> list[Figure]:
    errors: list[float] = []
    for item in bench.items():
        result = bench.call(image=bench.folder / item["image"])
        with Image.open(bench.folder / item["vegetation"]) as image:
            true = 100 * float((np.asarray(image) > 0).mean())
        errors.append(abs((result.vegetation_pct or 0.0) - true))
    return [
        mean_of("vegetation percent, mean absolute error, points", errors, higher_is_better=False)
    ]


def _patches(bench: Bench) -> list[Figure]:
    """Compare colour names and shares with pictures of two to five named colours with sensor noise."""
    columns = Columns()
    for number in range(_PATCH_PICTURES):
        pixels, true = patches(np.random.default_rng(number))
        result = bench.call(
            image=bench.picture(f"patches-{number}.png", pixels), attributes=["colour"]
        )
        shares = {colour.name: colour.pct for colour in result.dominant_colours}
        error = max(abs(shares.get(name, 0.0) - pct) for name, pct in true.items())
        columns.add(error=error, hit=shares.keys() == true.keys())
    return [
        columns.mean(
            "drawn colours, all named right and no other, share of pictures", "hit", goal=1.0
        ),
        columns.mean_error("drawn colours, largest error of a share, points", "error"),
    ]


def patches(
    draw: np.random.Generator, shape: tuple[int, int] = (120, 200)
) -> tuple[NDArray[np.uint8], dict[str, float]]:
    """Draw two to five named colours side by side, with noise (sd 3).

    Returns:
        The picture, and the share of each colour in percent by name.
    """
    names = list(NAMED_COLOURS)
    lab = lab_of_list(np.array(list(NAMED_COLOURS.values()), np.uint8))
    count, chosen = int(draw.integers(2, 6)), []
    for place in draw.permutation(len(names)).tolist():
        if all(np.linalg.norm(lab[place] - lab[other]) >= _APART for other in chosen):
            chosen.append(place)
        if len(chosen) == count:
            break
    height, width = shape
    edges = [0, *sorted((draw.permutation(9)[: len(chosen) - 1] + 1) * width // 10), width]
    pixels = np.empty((height, width, 3), np.float64)
    for place, start, end in zip(chosen, edges[:-1], edges[1:], strict=True):
        pixels[:, start:end] = NAMED_COLOURS[names[place]]
    noisy = np.clip(pixels + draw.normal(0, 3, pixels.shape), 0, 255).round().astype(np.uint8)
    shares = {
        names[place]: 100 * float(end - start) / width
        for place, start, end in zip(chosen, edges[:-1], edges[1:], strict=True)
    }
    return noisy, shares


REGION_STUDIES = (
    *(Study("describe_region", folder, _classes)
      for folder in ("cwfid", "coffee_lesions", "levir_cd", "dsifn_cd", "tree_canopy")),
    Study("describe_region", "cwfid", _cover),
    Study("describe_region", "drawn patches of colour", _patches, needs_folder=False),
)  # fmt: skip
