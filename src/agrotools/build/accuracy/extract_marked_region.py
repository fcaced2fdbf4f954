"""Marks that we draw on photographs of all folders, and marks that nobody drew.

The photographs are halved by their hashes. How strict the tool is with strokes is chosen on one half and reported on
the other, and the other way round; the figures by colour, shape and stroke are those of the tool as it ships.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from agrotools.build.accuracy.figures import Figure, mean_of
from agrotools.build.accuracy.marks_on_photos import (
    LEAST_SIDE_PX,
    SHAPES,
    Drawn,
    box_iou,
    drawn_on,
    photos_in,
    saved_as_jpeg,
)
from agrotools.build.accuracy.study import Bench, Study
from agrotools.core import BenchmarkError, ToolError
from agrotools.core.hashing import fold_of
from agrotools.tools.marks.finding import COLOURS, find_marks
from agrotools.vision.reading import read_image

GOAL = 0.93
STRICTNESSES = (0.7, 1.0, 1.4)
_MARKS_PER_PHOTO = 2
_FOUND = 0.5


@dataclass(frozen=True)
class _Marked:
    """A photograph with one mark drawn in, and the half that it belongs to."""

    path: Path
    drawn: Drawn
    half: int
    photo: str


def _marks(bench: Bench) -> list[Figure]:
    marked = _drawn_photos(bench)
    ious: list[float] = []
    named: list[bool] = []
    formed: list[bool] = []
    for item in marked:
        best: Any = None
        try:
            result = bench.call(image=item.path)
            best = max(result.regions, key=lambda region: box_iou(region.box, item.drawn.box))
        except ToolError as error:
            if error.kind != "nothing_found":
                raise
        iou = box_iou(best.box, item.drawn.box) if best is not None else 0.0
        ious.append(iou)
        if best is not None and iou > _FOUND:
            named.append(best.color == item.drawn.colour)
            formed.append(best.shape == item.drawn.shape)
    everything: Callable[[_Marked], bool] = lambda _: True  # noqa: E731
    figures = [
        _iou("box IoU of drawn marks, mean", marked, ious, everything, goal=GOAL),
        mean_of(
            "marks missed (IoU under 0.5), share",
            [float(iou <= _FOUND) for iou in ious],
            clusters=tuple(item.photo for item in marked),
            higher_is_better=False,
        ),
        mean_of("colour right where found, share", [float(right) for right in named]),
        mean_of("shape right where found, share", [float(right) for right in formed]),
    ]
    for colour in COLOURS:
        figures.append(_iou(f"box IoU, {colour} marks", marked, ious, lambda m, c=colour: m.drawn.colour == c))
    for shape in SHAPES:
        figures.append(_iou(f"box IoU, shape {shape}", marked, ious, lambda m, s=shape: m.drawn.shape == s))
    for stroke in sorted({item.drawn.stroke_px for item in marked}):
        figures.append(_iou(f"box IoU, stroke {stroke} px", marked, ious, lambda m, w=stroke: m.drawn.stroke_px == w))
    return figures


def _halves(bench: Bench) -> list[Figure]:
    """Strictness chosen on one half, box IoU and false marks reported on the other; one mark per photograph."""
    marked = _drawn_photos(bench)[::_MARKS_PER_PHOTO]
    pictures = [read_image(item.path).pixels for item in marked]
    plain = list(_photos(bench).items())
    found: dict[float, list[float]] = {}
    false: dict[float, list[bool]] = {}
    for strictness in STRICTNESSES:
        found[strictness] = [
            max((box_iou(mark.box, item.drawn.box) for mark in find_marks(pixels, strictness=strictness)), default=0.0)
            for item, pixels in zip(marked, pictures, strict=True)
        ]
        false[strictness] = [bool(find_marks(read_image(path).pixels, strictness=strictness)) for path, _ in plain]
    figures: list[Figure] = []
    for half in (0, 1):
        chosen = min(
            STRICTNESSES,
            key=lambda s: (
                sum(is_false for is_false, (_, own) in zip(false[s], plain, strict=True) if own == half),
                -sum(iou for iou, item in zip(found[s], marked, strict=True) if item.half == half),
            ),
        )
        note = f"strictness {chosen:g} was chosen on the other half"
        other = 1 - half
        figures.append(
            _iou(f"box IoU on half {other}, mean", marked, found[chosen], lambda m, h=other: m.half == h, GOAL, note)
        )
        figures.append(
            mean_of(
                f"photographs of half {other} with a false mark, share",
                [float(is_false) for is_false, (_, own) in zip(false[chosen], plain, strict=True) if own == other],
                goal=0.0,
                higher_is_better=False,
                note=note,
            )
        )
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
    return [mean_of("unmarked photographs with a false mark, share", false, goal=0.0, higher_is_better=False)]


def _photos(bench: Bench) -> dict[Path, int]:
    """The photographs of all folders beside the study's own, each with its half.

    Raises:
        BenchmarkError: there are none.
    """
    data = bench.folder.parent
    found = photos_in(data) if data.is_dir() else []
    if not found:
        raise BenchmarkError(f"there are no photographs in the folders of {data}", hint="give --data DIR")
    hashes = {path: sha256(path.read_bytes()).hexdigest() for path in found}
    halves = fold_of(hashes.values())
    return {path: halves[digest] for path, digest in hashes.items()}


def _drawn_photos(bench: Bench) -> list[_Marked]:
    """Marks of all colours, shapes and strokes from 2 to 6 px on each photograph, JPEG quality 75 to 95, 4:2:0."""
    made: list[_Marked] = []
    bench.scratch.mkdir(parents=True, exist_ok=True)
    for number, (path, half) in enumerate(_photos(bench).items()):
        pixels = read_image(path).pixels
        if min(pixels.shape[:2]) < LEAST_SIDE_PX:
            continue
        digest = sha256(path.read_bytes()).hexdigest()
        draw = np.random.default_rng(int(digest[:8], 16))
        for turn in range(_MARKS_PER_PHOTO):
            colour = COLOURS[(_MARKS_PER_PHOTO * number + turn) % len(COLOURS)]
            shape, stroke = SHAPES[int(draw.integers(len(SHAPES)))], int(draw.integers(2, 7))
            picture, drawn = drawn_on(pixels, colour, shape, stroke, draw)
            target = bench.scratch / f"marked-{number}-{turn}.jpg"
            saved_as_jpeg(picture, int(draw.integers(75, 96)), target)
            made.append(_Marked(target, drawn, half, digest))
    return made


def _iou(
    metric: str,
    marked: Sequence[_Marked],
    ious: Sequence[float],
    chosen: Callable[[_Marked], bool],
    goal: float | None = None,
    note: str = "",
) -> Figure:
    kept = [(iou, item.photo) for iou, item in zip(ious, marked, strict=True) if chosen(item)]
    return mean_of(metric, [iou for iou, _ in kept], clusters=tuple(photo for _, photo in kept), goal=goal, note=note)


STUDIES = (
    Study("extract_marked_region", "marks drawn on photographs", _marks, needs_folder=False),
    Study("extract_marked_region", "marks drawn, two-fold", _halves, needs_folder=False),
    Study("extract_marked_region", "unmarked photographs", _unmarked, needs_folder=False),
)
