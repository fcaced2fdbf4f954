"""Answers that are written in a picture. Needs the extra ``ocr``; without it the check is told as not made."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agrotools.benchmarks.checks.leaks import revealed_answer
from agrotools.build.quality.finding import Finding
from agrotools.core import Sample, ToolError
from agrotools.core.progress import Progress, no_progress

Reader = Callable[[Path], str]
"""From a picture to the text written in it, line by line."""


def text_reader() -> Reader | None:
    """Reads text in pictures with rapidocr (its models come with it); None where it is not installed."""
    try:
        from rapidocr import RapidOCR  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    engine: Any = RapidOCR(params={"Global.log_level": "critical"})

    def read(path: Path) -> str:
        from agrotools.vision.reading import read_image

        try:
            pixels = read_image(path).pixels
        except ToolError:
            return ""
        found = engine(pixels[:, :, ::-1].copy())  # rapidocr takes blue first
        return "\n".join(found.txts or ())

    return read


def check_written(
    samples: Sequence[Sample], root: Path, reader: Reader, progress: Progress = no_progress
) -> Iterator[Finding]:
    """Check ``answer_in_picture``: OCR of an image reads the answer of a sample."""
    read = cache(reader)
    for number, sample in enumerate(samples, start=1):
        progress("samples searched for written answers", number, len(samples))
        for file in sample.files:
            if file.kind != "image":
                continue
            text = read(root / file.path)
            for slot in sample.answer:
                if said := revealed_answer(slot, text):
                    message = f"{said!r}, (part of) the answer {slot.name!r}, is written in {file.name}"
                    yield Finding(id=sample.id, check="answer_in_picture", severity="warning", message=message)
