"""Answers and places that stand in a file beside its pixels: EXIF, comments, text chunks, the file's own path."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from agrotools.benchmarks.checks.leaks import has_word, labels_of, revealed_answer, spaced
from agrotools.build.quality.finding import Finding
from agrotools.core import ChoiceSetSlot, ExactSlot, Sample, ToolError

_DESCRIPTIONS = {
    "ImageDescription": 270, "DocumentName": 269, "PageName": 285, "XPTitle": 40091, "XPComment": 40092,
    "XPKeywords": 40094, "XPSubject": 40095,
}  # fmt: skip
_EXIF, _GPS, _USER_COMMENT = 34665, 34853, 37510
_GPS_LATITUDE = 2
_CHUNKS_OF_SOFTWARE = {"software", "icc_profile", "dpi", "jfif", "exif", "gamma", "srgb", "progressive", "adobe"}
_LONGEST = 4000


class Beside:
    """Metadata of a file beside its pixels: ``texts`` by where they stand, and whether it knows where it was taken."""

    def __init__(self, path: Path) -> None:
        self.texts: dict[str, str] = {}
        self.has_position = False
        from PIL import Image

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # broken EXIF does not matter here
                with Image.open(path) as picture:
                    self._read(picture)
        except (OSError, ValueError, SyntaxError, TypeError, KeyError, Image.DecompressionBombError):
            return  # No picture that Pillow reads, and so no metadata that it shows anybody.

    def _read(self, picture: object) -> None:
        exif = picture.getexif()  # pyright: ignore[reportAttributeAccessIssue]
        for name, tag in _DESCRIPTIONS.items():
            self._note(f"EXIF {name}", exif.get(tag))
        self._note("EXIF UserComment", exif.get_ifd(_EXIF).get(_USER_COMMENT))
        self.has_position = _GPS_LATITUDE in exif.get_ifd(_GPS)
        for name, value in picture.info.items():  # pyright: ignore[reportAttributeAccessIssue]
            if str(name).lower() not in _CHUNKS_OF_SOFTWARE:
                self._note(str(name), value)

    def _note(self, name: str, value: object) -> None:
        if isinstance(value, bytes):
            wide = name.startswith("EXIF XP")
            value = value.removeprefix(b"ASCII\0\0\0").removeprefix(b"UNICODE\0")
            value = value.decode("utf-16-le" if wide else "utf-8", errors="replace")
        if isinstance(value, str) and (text := value.replace("\0", " ").strip()):
            self.texts[name] = text[:_LONGEST]


def check_metadata(samples: Iterable[Sample], root: Path) -> Iterator[Finding]:
    """Checks ``answer_in_metadata``, ``answer_in_path`` and ``position_in_metadata``."""
    known: dict[str, Beside] = {}
    for sample in samples:
        positions = 0
        for file in sample.files:
            if file.path not in known:
                known[file.path] = Beside(root / file.path)
            beside = known[file.path]
            positions += beside.has_position
            for slot in sample.answer:
                for where, text in beside.texts.items():
                    if said := revealed_answer(slot, text):
                        message = f"{where} of {file.name} holds {said!r}, (part of) the answer {slot.name!r}"
                        yield Finding(id=sample.id, check="answer_in_metadata", severity="error", message=message)
                if isinstance(slot, ExactSlot | ChoiceSetSlot):
                    stem = spaced(PurePosixPath(file.path).stem)
                    if label := next((label for label in labels_of(slot) if has_word(stem, spaced(label))), None):
                        message = f"the stored file {file.path} tells the answer {label!r}; no model sees that name"
                        yield Finding(id=sample.id, check="answer_in_path", severity="info", message=message)
        if positions:
            message = f"{positions} files say where they were taken (GPS in EXIF): remove it before you share them"
            yield Finding(id=sample.id, check="position_in_metadata", severity="info", message=message)


_HASHED_SIDE, _COMPARED_SIDE = 32, 12
MOST_BITS = 22
"""Hashes that differ in more of their 63 bits are of different pictures (two unrelated ones differ in about 31)."""
LEAST_CORRELATION = 0.92
_ROWS = 2048


@dataclass(frozen=True, eq=False)
class Look:
    """Features of a picture that are compared.

    ``hashes``: uint64 (2,), of the picture and of its mirror image. ``thumbnails``: float32 (2, 432), of both, with
    mean 0 and length 1. A picture of one colour has no look.
    """

    hashes: NDArray[np.uint64]
    thumbnails: NDArray[np.float32]


def look_of(pixels: NDArray[np.uint8]) -> Look | None:
    """The look of a picture, uint8 (rows, columns, 3); None where it is of one colour."""
    import cv2

    small = cv2.resize(pixels, (_HASHED_SIDE, _HASHED_SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    if small.std() < 1.0:
        return None
    smaller = cv2.resize(small, (_COMPARED_SIDE, _COMPARED_SIDE), interpolation=cv2.INTER_AREA)
    thumbnails = np.stack([smaller, smaller[:, ::-1]]).reshape(2, -1) - smaller.mean()
    thumbnails /= np.maximum(np.linalg.norm(thumbnails, axis=1, keepdims=True), 1e-6)
    hashes = np.array([_hash(view.mean(axis=2)) for view in (small, small[:, ::-1])], np.uint64)
    return Look(hashes, thumbnails.astype(np.float32))


def _hash(grey: NDArray[np.float32]) -> int:
    from scipy.fft import dctn

    low = np.asarray(dctn(grey, norm="ortho"))[:8, :8].ravel()[1:]
    return int("".join("1" if value > np.median(low) else "0" for value in low), 2)


def look_of_file(path: Path) -> Look | None:
    """The look of a picture file; None where it cannot be read as a picture or is of one colour."""
    from agrotools.vision.reading import read_image

    try:
        return look_of(np.asarray(read_image(path).pixels))
    except ToolError:
        return None


def near_pairs(looks: Sequence[Look]) -> Iterator[tuple[int, int, float]]:
    """Pairs of positions (first < second) of pictures that are nearly the same, with the correlation of their looks."""
    if len(looks) < 2:
        return
    hashes = np.stack([look.hashes for look in looks])
    for start in range(0, len(looks), _ROWS):
        # Mirrored or not: the first picture as it is, against both views of the second.
        differ = np.bitwise_count(hashes[start : start + _ROWS, None, :1] ^ hashes[None, :, :]).min(axis=2)
        for row, second in zip(*np.nonzero(differ <= MOST_BITS), strict=True):
            first = start + int(row)
            if first < second:
                alike = float((looks[second].thumbnails @ looks[first].thumbnails[0]).max())
                if alike >= LEAST_CORRELATION:
                    yield first, int(second), alike
