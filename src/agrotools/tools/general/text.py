"""Printed text and formulas in a picture."""

from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from agrotools.core import Artifact
from agrotools.tools.contract import ImageFile, Region, ToolResult, tool
from agrotools.tools.general.images import OpenedImage, chosen_backend, draw_boxes, open_image, whole_box
from agrotools.tools.general.ocr import SEEN_PX, ocr_files
from agrotools.tools.learned import LEARNED, weight_files, write_down_learned
from agrotools.tools.services import VLM
from agrotools.tools.workspace import backend_in_use

_SMALL_LETTERS_PX = 12
"""Lines lower than this after shrinking are read badly."""


class ReadLine(BaseModel):
    """One line of text."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

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
    score_min: Annotated[float, Field(ge=0, le=1, description="leave out lines that are less sure than this")] = 0.5,
) -> ReadText:
    """Read the printed text in a picture: menus, labels, tables, signs, screens, pages; Latin and Chinese letters.

    Gives each line with its box in pixels, in reading order: prose in columns column by column, all else row by row.
    A picture without text gives no lines. Handwriting and formulas are read badly.

    Raises:
        ToolError: ``backend_unavailable`` (the extra ocr is not installed), and as the readers.

    Sources: PP-OCR (Du et al. 2020, arXiv 2009.09941) as rapidocr ships it; order of lines,
        :mod:`agrotools.tools.general.ocr`.
    """
    looked = open_image(image, region)
    lines, notes, flags = _by_model(looked) if backend_in_use() == VLM else _by_ocr(looked)
    lines = [line for line in lines if line.score >= score_min]
    if not lines:
        flags.append("no_text_found")
    numbers = [str(number) for number in range(1, len(lines) + 1)]
    return ReadText(
        text="\n".join(line.text for line in lines),
        lines=tuple(lines),
        overlay=draw_boxes("text_overlay.png", looked, [line.box for line in lines], numbers, f"{len(lines)} lines"),
        notes=(*looked.notes, *notes),
        flags=tuple(dict.fromkeys((*looked.flags, *flags))),
    )


def _by_ocr(looked: OpenedImage) -> tuple[list[ReadLine], list[str], list[str]]:
    from agrotools.tools.general.ocr import read_lines

    x0, y0, x1, y1 = looked.box
    found = read_lines(np.ascontiguousarray(looked.pixels[y0:y1, x0:x1]))
    moved = [
        ReadLine(
            box=whole_box((line.box[0] + x0, line.box[1] + y0, line.box[2] + x0, line.box[3] + y0)),
            text=line.text,
            score=line.score,
        )
        for line in found
    ]
    flags: list[str] = []
    shrink = SEEN_PX / max(x1 - x0, y1 - y0)
    if shrink < 1 and (not found or min(line.box[3] - line.box[1] for line in found) * shrink < _SMALL_LETTERS_PX):
        flags.append("large_picture_shrunk")
    return moved, ["text: PP-OCR models of rapidocr"], flags


def _by_model(looked: OpenedImage) -> tuple[list[ReadLine], list[str], list[str]]:
    from agrotools.tools.services.vision_tasks import read_lines

    answer = read_lines(looked.pixels, looked.box)
    lines = [
        ReadLine(box=whole_box(box), text=text, score=score)
        for box, text, score in zip(answer.boxes.tolist(), answer.labels, answer.scores.tolist(), strict=True)
    ]
    return lines, list(answer.notes), list(answer.flags)


class ReadFormula(ToolResult):
    latex: str
    """the formula as LaTeX; several formulas on lines of their own"""


@tool(category="general", version="1", backends=("offline", LEARNED, VLM), backend_files=weight_files)
def read_formula(image: ImageFile, region: Region | None = None) -> ReadFormula:
    """Read a mathematical formula in a picture and write it as LaTeX.

    Needs a large model: vlm, or learned with a model that writes down pictures (Nougat and others of its build).

    Raises:
        ToolError: ``backend_unavailable``, ``region_empty``, and as the readers.
    """
    backend = chosen_backend("reading a formula", learned="facebook/nougat-small")
    looked = open_image(image, region)
    if backend == VLM:
        from agrotools.tools.services.vision_tasks import read_latex

        answer = read_latex(looked.pixels, looked.box)
    else:
        answer = write_down_learned(backend, looked.pixels, looked.box)
    flags = (*looked.flags, *answer.flags, *(() if answer.text else ("no_text_found",)))
    return ReadFormula(latex=answer.text, notes=(*looked.notes, *answer.notes), flags=flags)
