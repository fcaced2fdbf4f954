"""Printed text in a picture.

Text is read by the PP-OCR models of PaddleOCR as included in the package rapidocr (extra ``ocr``); nothing is
downloaded.

Reading order: prose in columns is read column by column, by the two rules of Breuel 2003 ("High performance document
layout analysis"). A line precedes a lower line if their horizontal extents overlap, and it precedes a line entirely to
its right unless a line between them spans both. A text box set between columns (a quotation, a caption) is read after
the columns. Anything else (receipts, menus, signs, tables) is read row by row.
"""

import logging
import os
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agrotools.calling.contract import ImageFile, Region, ToolResult, tool
from agrotools.calling.result import ResultPart
from agrotools.calling.services import VLM
from agrotools.calling.workspace import backend_in_use
from agrotools.core import Artifact, ToolError
from agrotools.core.texts import install_command
from agrotools.vision import THREADS
from agrotools.vision.reading import crop_pixels
from agrotools_tools.general.images import OpenedImage, draw_boxes, open_image, whole_box
from agrotools_tools.vision_questions import read_lines as read_lines_by_model

_PROSE = 10.0
"""Smallest ratio of length to height of a line of prose."""
_MOST_LINES = 500
"""Maximum number of lines for reading by columns, whose second rule compares all triples of lines."""
_SAME_ROW = 0.5
_INSET = 0.5
"""A line between two columns covers less than this share of the width of their lines."""
_OVERLAP = 0.1
"""Lines that overlap by less than this share of the narrower one do not count as overlapping."""


def reading_order(boxes: NDArray[np.float64]) -> list[int]:
    """Return the indices of boxes (n, 4) x0, y0, x1, y1 in the reading order of their text."""
    rows = _rows(boxes)
    if len(boxes) <= _MOST_LINES and _is_prose(boxes, rows):
        inset = _insets(boxes)
        parts = (np.flatnonzero(~inset), np.flatnonzero(inset))
        return [int(part[index]) for part in parts for index in _by_columns(boxes[part])]
    return [index for row in rows for index in row]


def _rows(boxes: NDArray[np.float64]) -> list[list[int]]:
    """Group boxes into rows from top to bottom, each sorted from left to right."""
    rows: list[list[int]] = []
    for index in np.lexsort((boxes[:, 0], boxes[:, 1] + boxes[:, 3])).tolist():
        top, bottom = boxes[index, 1], boxes[index, 3]
        if rows:
            first = boxes[rows[-1][0]]
            common = min(bottom, first[3]) - max(top, first[1])
            if common > _SAME_ROW * min(bottom - top, first[3] - first[1]):
                rows[-1].append(index)
                continue
        rows.append([index])
    return [sorted(row, key=lambda index: float(boxes[index, 0])) for row in rows]


def _is_prose(boxes: NDArray[np.float64], rows: list[list[int]]) -> bool:
    beside = [index for row in rows if len(row) > 1 for index in row]
    if len(beside) < 4:
        return False
    sizes = boxes[beside, 2:] - boxes[beside, :2]
    return float(np.median(sizes[:, 0] / np.maximum(sizes[:, 1], 1))) >= _PROSE


def _insets(boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the mask of lines set between two columns, which overlap lines of both a little, above and below."""
    x0, y0, x1, y1 = boxes.T
    width, middle = x1 - x0, (y0 + y1) / 2
    common = np.clip(np.minimum(x1[:, None], x1) - np.maximum(x0[:, None], x0), 0, None)
    apart = common <= _OVERLAP * np.minimum(width[:, None], width)
    reaches = (common > 0) & (common < _INSET * width) & ~np.eye(len(boxes), dtype=bool)
    inset = np.zeros(len(boxes), np.bool_)
    for index in range(len(boxes)):
        touched = np.flatnonzero(reaches[index])
        above, below = (
            touched[middle[touched] < middle[index]],
            touched[middle[touched] > middle[index]],
        )
        inset[index] = all(
            len(part) > 1 and apart[np.ix_(part, part)].any() for part in (above, below)
        )
    return inset


def _by_columns(boxes: NDArray[np.float64]) -> list[int]:
    x0, y0, x1, y1 = boxes.T
    middle = (y0 + y1) / 2
    common = np.minimum(x1[:, None], x1) - np.maximum(x0[:, None], x0)
    narrower = np.minimum((x1 - x0)[:, None], x1 - x0)
    over = common > _OVERLAP * narrower
    above = middle[:, None] < middle
    left = ~over & ((x0 + x1)[:, None] < x0 + x1)
    before = over & above
    for a, b in np.argwhere(left).tolist():
        low, high = min(middle[a], middle[b]), max(middle[a], middle[b])
        between = (middle > low) & (middle < high) & over[a] & over[b]
        before[a, b] = not between.any()
    order: list[int] = []
    left_before = before.sum(axis=0)
    waiting = np.ones(len(boxes), np.bool_)
    while waiting.any():
        free = np.flatnonzero(waiting & (left_before == 0))
        # The two rules can contradict each other; then the highest line goes first.
        among = free if len(free) else np.flatnonzero(waiting)
        keys = (middle[among], x0[among]) if len(free) else (x0[among], middle[among])
        chosen = int(among[np.lexsort(keys)[0]])
        order.append(chosen)
        waiting[chosen] = False
        left_before -= before[chosen]
    return order


EXTRA = "ocr"
SEEN_PX = 2000
"""Longest side, in pixels, to which the library shrinks pictures."""
_PARTS = {"Det": "*det*.onnx", "Cls": "*cls*.onnx", "Rec": "*rec*.onnx"}
_WORD_PX = 100
"""Height, in pixels, up to which a picture without detected text is read as a single line."""
_NARROWEST, _LOWEST = 4, 60
"""Largest ratios of height to width and of width to height; pictures beyond them get a margin.

The library enlarges pictures until their shorter side has 736 pixels, so one of 20 x 2,000 pixels would use up all
memory.
"""


class TextLine(NamedTuple):
    """Line of text: its box x0, y0, x1, y1 in pixels, its text, and the model's confidence, 0 to 1."""

    box: tuple[float, float, float, float]
    text: str
    score: float


def ocr_files() -> tuple[Path, ...]:
    """Return the files of the weights, none if the library is not installed."""
    spec = find_spec("rapidocr")
    if spec is None or spec.origin is None:
        return ()
    folder = Path(spec.origin).parent / "models"
    candidates = [sorted(folder.glob(pattern)) for pattern in _PARTS.values()]
    return tuple(files[0] for files in candidates) if all(candidates) else ()


def read_lines(pixels: NDArray[np.uint8]) -> list[TextLine]:
    """Read the lines of text in a picture in reading order, including upside-down lines."""
    engine = _engine()
    padded = _add_margin(np.ascontiguousarray(pixels[:, :, ::-1]))
    raw_lines = engine(padded, use_det=True, use_cls=True, use_rec=True)
    lines: list[TextLine] = []
    if raw_lines.txts:
        for corners, text, score in zip(
            raw_lines.boxes, raw_lines.txts, raw_lines.scores, strict=True
        ):
            low, high = corners.min(axis=0), corners.max(axis=0)
            rows, columns = pixels.shape[:2]
            if low[0] >= columns or low[1] >= rows:
                continue  # in the margin
            box = (
                float(low[0]),
                float(low[1]),
                min(float(high[0]), columns),
                min(float(high[1]), rows),
            )
            lines.append(TextLine(box, str(text), float(score)))
    elif pixels.shape[0] <= _WORD_PX:
        alone = engine(padded, use_det=False, use_cls=True, use_rec=True)
        if alone.txts and alone.txts[0].strip() and alone.scores[0] >= 0.5:
            box = (0.0, 0.0, float(pixels.shape[1]), float(pixels.shape[0]))
            lines.append(TextLine(box, str(alone.txts[0]), float(alone.scores[0])))
    if not lines:
        return []
    return [lines[index] for index in reading_order(np.array([line.box for line in lines]))]


def _add_margin(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Extend a very narrow picture to the right or below with its mean colour, to limit its aspect ratio."""
    rows, columns = pixels.shape[:2]
    height, width = max(rows, columns // _LOWEST), max(columns, rows // _NARROWEST)
    if (height, width) == (rows, columns):
        return pixels
    larger = np.empty((height, width, 3), np.uint8)
    larger[:] = pixels.mean(axis=(0, 1))
    larger[:rows, :columns] = pixels
    return larger


@lru_cache(maxsize=1)
def _engine() -> Any:
    files = ocr_files()
    if not files:
        there = find_spec("rapidocr") is not None
        why = (
            "its installation of rapidocr holds no weights"
            if there
            else "it needs rapidocr, which is not installed"
        )
        raise ToolError("backend_unavailable", f"reading text: {why}", setup=install_command(EXTRA))
    try:
        from rapidocr import RapidOCR  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ToolError(
            "backend_unavailable",
            f"rapidocr cannot be imported: {error}",
            setup=install_command(EXTRA),
        ) from error
    logging.getLogger("RapidOCR").disabled = True
    paths = {f"{part}.model_path": str(path) for part, path in zip(_PARTS, files, strict=True)}
    threads = int(os.environ.get(THREADS, "1"))
    return RapidOCR(
        params={
            **paths,
            "Global.log_level": "critical",
            "Global.max_side_len": SEEN_PX,
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


_SMALL_LETTERS_PX = 12
"""Height, in pixels after shrinking, below which lines are read badly."""


class ReadLine(ResultPart):
    """One line of text."""

    box: tuple[int, int, int, int]
    """[x0, y0, x1, y1] in pixels of the picture"""
    text: str
    """what the line says"""
    score: float
    """how sure the model is, 0 to 1"""


class ReadText(ToolResult):
    text: str
    """all lines, in reading order"""
    lines: tuple[ReadLine, ...]
    """each line and where it is"""
    overlay: Artifact
    """the picture with the lines framed and numbered in reading order"""


@tool(category="general", version="1", backends=("offline", VLM), data_files=ocr_files)
def read_text(
    image: ImageFile,
    region: Region | None = None,
    score_min: Annotated[
        float, Field(ge=0, le=1, description="leave out lines that are less sure than this")
    ] = 0.5,
) -> ReadText:
    """Read the printed text in a picture: menus, labels, tables, signs, screens, pages; Latin and Chinese letters.

    Gives each line with its box in pixels, in reading order: prose in columns column by column, all else row by row.
    A picture without text gives no lines. Handwriting and formulas are read badly.

    Raises:
        ToolError: ``backend_unavailable`` (the extra ocr is not installed), and those of a file that cannot be read.

    Sources: PP-OCR (Du et al. 2020, arXiv 2009.09941) as rapidocr ships it; order of lines,
        :func:`reading_order`.
    """
    source = open_image(image, region)
    lines, notes, flags = _by_model(source) if backend_in_use() == VLM else _by_ocr(source)
    lines = [line for line in lines if line.score >= score_min]
    if not lines:
        flags.append("no_text_found")
    numbers = [str(number) for number in range(1, len(lines) + 1)]
    return ReadText(
        text="\n".join(line.text for line in lines),
        lines=tuple(lines),
        overlay=draw_boxes(
            "text_overlay.png", source, [line.box for line in lines], numbers, f"{len(lines)} lines"
        ),
        notes=(*source.notes, *notes),
        flags=tuple(dict.fromkeys((*source.flags, *flags))),
    )


def _by_ocr(source: OpenedImage) -> tuple[list[ReadLine], list[str], list[str]]:
    x0, y0, x1, y1 = source.box
    text_lines = read_lines(crop_pixels(source.pixels, source.box))
    moved = [
        ReadLine(
            box=whole_box((line.box[0] + x0, line.box[1] + y0, line.box[2] + x0, line.box[3] + y0)),
            text=line.text,
            score=line.score,
        )
        for line in text_lines
    ]
    flags: list[str] = []
    shrink = SEEN_PX / max(x1 - x0, y1 - y0)
    if shrink < 1 and (
        not text_lines
        or min(line.box[3] - line.box[1] for line in text_lines) * shrink < _SMALL_LETTERS_PX
    ):
        flags.append("large_picture_shrunk")
    return moved, ["text: PP-OCR models of rapidocr"], flags


def _by_model(source: OpenedImage) -> tuple[list[ReadLine], list[str], list[str]]:
    answer = read_lines_by_model(source.pixels, source.box)
    lines = [
        ReadLine(box=whole_box(box), text=text, score=score)
        for box, text, score in zip(
            answer.boxes.tolist(), answer.names, answer.scores.tolist(), strict=True
        )
    ]
    return lines, list(answer.notes), list(answer.flags)
